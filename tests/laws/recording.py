"""Sources of noise that record every request and every draw, and change nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hedgerow.engine.practical.fit.residuals import coordinates
from hedgerow.privacy.events import AboveThreshold, Exponential, Gaussian, Laplace, PoissonSample, comparison_grid
from hedgerow.privacy.log import Entry
from hedgerow.privacy.noise import Noise, Seeded


@dataclass
class Record:
    """Everything in the order in which it was drawn, by kind."""

    added: list[tuple[Laplace | Gaussian, np.ndarray, np.ndarray]] = field(
        default_factory=list
    )  # event, value, released
    chosen: list[tuple[Exponential, np.ndarray, int]] = field(default_factory=list)
    thresholds: list[tuple[Laplace, float]] = field(default_factory=list)  # the law billed, and τ
    compared: list[tuple[Laplace, float]] = field(default_factory=list)  # and ν
    sampled: list[tuple[PoissonSample, int, np.ndarray]] = field(default_factory=list)

    def noises(self) -> list[tuple[Laplace | Gaussian, np.ndarray]]:
        """Released − value, the value on the grid: to the last bit, in steps of the grid."""
        return [(e, (np.rint(out / e.grid) - np.rint(value / e.grid)) * e.grid) for e, value, out in self.added]


class _Recording(Noise):
    record: Record

    def add(self, value: Any, receipt: Any) -> Any:
        released = super().add(value, receipt)
        self.record.added.append((self._event, np.asarray(value, dtype=float), np.asarray(released, dtype=float)))
        return released

    def choose(self, scores: Any, receipt: Any) -> int:
        chosen = super().choose(scores, receipt)
        self.record.chosen.append((self._event, np.array(scores, dtype=float), chosen))
        return chosen

    def sample(self, rows: int, receipt: Any) -> Any:
        drawn = super().sample(rows, receipt)
        self.record.sampled.append((self._event, rows, drawn))
        return drawn

    def open_round(self, receipt: Any, threshold: int, unit: float, on_grid: bool = False) -> Any:
        opened = super().open_round(receipt, threshold, unit, on_grid)
        billed: AboveThreshold = self._event
        laws = [
            Laplace(billed.sensitivity, scale, unit if on_grid else comparison_grid(scale))
            for scale in (billed.threshold_scale, billed.query_scale)
        ]
        self.record.thresholds.append((laws[0], (opened._threshold - threshold) * unit))
        draw = opened._draw

        def drawn() -> int:
            steps = draw()
            self.record.compared.append((laws[1], steps * unit))
            return steps

        opened._draw = drawn
        return opened

    def _redeem(self, receipt: Any, *kinds: Any) -> Any:
        self._event = super()._redeem(receipt, *kinds)  # what was billed
        return self._event


class Recorded(_Recording, Noise):
    """Private noise."""

    def __init__(self) -> None:
        super().__init__()
        self.record = Record()


class RecordedSeeded(_Recording, Seeded):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.record = Record()


def measured_noises(
    engine: Any, data: Any, entries: Sequence[Entry] = ()
) -> list[tuple[Laplace | Gaussian, np.ndarray]]:
    """Return the noise of the practical engine: its measurements minus the data, on the grid of the event.

    Residuals that were one draw, as the ledger's ``entries`` tell, are one again.
    """
    found = []
    joint = iter(
        [(tuple(names), k, entry) for entry in entries if "times" in entry.about for names, k in _parts(entry)]
    )
    parts: dict[int, list[np.ndarray]] = {}
    events = {}
    for measurement in engine.measurements:
        values, true, event = measurement.values, data.marginal(measurement.attributes), measurement.event
        if measurement.query is not None:  # to the nearest step
            true = np.rint(measurement.query.dot(true.astype(float)) / event.grid) * event.grid
        if not measurement.residual:
            found.append((event, values - true))
            continue
        names, times, entry = (None, 1, None) if not measurement.attributes else next(joint, (None, 1, None))
        if entry is not None:
            assert names == measurement.attributes
            (event,) = entry.event.draws
        # in coordinates, which are what was rounded to the grid
        true = coordinates(true, event.grid, measurement.contrasts, times)
        for axis, each in enumerate(measurement.contrasts):
            assert each.is_orthonormal  # or some of the noise would not be seen
            values = np.moveaxis(np.tensordot(each.inverse.T, values, axes=(1, axis)), 0, axis)
        values = np.rint(values * math.sqrt(times) / event.grid) * event.grid  # of what the change of basis added
        if entry is None:
            found.append((event, values - true))
        else:
            events[entry.number] = event
            parts.setdefault(entry.number, []).append((values - true).ravel())
    return found + [(events[number], np.concatenate(each)) for number, each in parts.items()]


def _parts(entry: Entry) -> zip[tuple[Any, int]]:
    """The sets of one draw, and the square of what each was multiplied by."""
    return zip(entry.about["sets"], entry.about["times"], strict=True)


def joint_noises(
    source: _Recording, entry: Entry, shapes: dict[tuple[str, ...], tuple[int, ...]]
) -> dict[Any, np.ndarray]:
    """The noise of each set of one draw, as it is in rows."""
    (event,) = entry.event.draws
    (drawn,) = [z for e, z in source.record.noises() if e == event]
    sets = [(tuple(names), k) for names, k in _parts(entry)]
    cuts = np.cumsum([math.prod(shapes[names]) for names, _ in sets])
    assert cuts[-1] == drawn.size
    pieces = np.split(drawn, cuts[:-1])
    return {names: z.reshape(shapes[names]) / math.sqrt(k) for (names, k), z in zip(sets, pieces, strict=True)}
