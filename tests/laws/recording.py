"""Sources of noise that write down what was asked of them and what they gave. They change nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hedgerow.engine.practical.fit.residuals import coordinates
from hedgerow.privacy.events import AboveThreshold, Exponential, Gaussian, Laplace, PoissonSample, comparison_grid
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


def measured_noises(engine: Any, data: Any) -> list[tuple[Laplace | Gaussian, np.ndarray]]:
    """What the practical engine has measured and answers from, minus what the data say: its noise, on the event's grid."""
    found = []
    for measurement in engine.measurements:
        values, true, event = measurement.values, data.marginal(measurement.attributes), measurement.event
        if measurement.query is not None:  # to the nearest step
            true = np.rint(measurement.query.dot(true.astype(float)) / event.grid) * event.grid
        if measurement.residual:  # in coordinates, which are what was rounded to the grid
            true = coordinates(true, event.grid, measurement.contrasts)
            for axis, each in enumerate(measurement.contrasts):
                assert each.is_orthonormal  # or some of the noise would not be seen
                values = np.moveaxis(np.tensordot(each.inverse.T, values, axes=(1, axis)), 0, axis)
            values = np.rint(values / event.grid) * event.grid  # of what the change of basis added
        found.append((event, values - true))
    return found
