"""Noise that records every request and can follow a script: the transcript of a mechanism.

A mechanism runs on a table, and again on a neighbour with the *same released history*, as adaptive composition conditions
on. The two transcripts then differ in the private values alone, and each of these may differ by no more than its event says.

Receipts are required as usual: a ``Recorder`` is ``Seeded`` noise, and its outcomes are recorded in the ledger's entry.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from hedgerow.privacy.events import (
    AboveThreshold,
    DistinctRows,
    Event,
    Exponential,
    FlippedRows,
    Gaussian,
    Laplace,
    PoissonSample,
    RepeatedRows,
)
from hedgerow.privacy.guard_round import GuardRound
from hedgerow.privacy.ledger import Entry, Ledger, Receipt
from hedgerow.privacy.noise import Seeded

Script = Callable[[str, Event, Any, Any], Any]
"""What a draw says: of where it is made, its event, the private value, and what a seed would have given."""

BETWEEN = (__name__, "hedgerow.erm.solver", "contextlib")  # modules that only hand a draw on


@dataclasses.dataclass(frozen=True, eq=False)
class Drawn:
    """One draw. ``raw`` is the exact private value, in the unit of the sensitivity; ``out`` is the released value.

    ``add``: the values on the event's grid. ``choose``: the scores. ``open``: a guard's threshold, and ``compare`` a value
    that is compared with it. ``sample``: the number of rows. ``flips``: the number of rows that say yes. ``scales``: of the noise that a guard drew meanwhile.
    """

    kind: str
    number: int
    event: Event
    raw: tuple[Fraction, ...]
    out: Any
    site: str
    scales: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Transcript:
    """The draws, the charges and the outputs of a run."""

    draws: tuple[Drawn, ...]
    entries: tuple[Entry, ...]
    outcome: Any


class Recorder(Seeded):
    """Noise that replays ``history``, draw by draw, or follows a seed without one.

    ``guard``: the outcomes of the guard's comparisons, in turn, if there is no history: ⊤ or ⊥. ``scripted``: the released
    values and choices.
    """

    def __init__(
        self,
        seed: int = 0,
        history: Sequence[Drawn] | None = None,
        guard: Iterator[bool] | None = None,
        scripted: Script | None = None,
    ) -> None:
        super().__init__(seed)
        self.draws: list[Drawn] = []
        self._history, self._guard, self._scripted = history, guard, scripted
        self._scales: list[float] = []
        self._forced: float | None = None  # noise of a guard, in rows

    def _earlier(self, kind: str, event: Event) -> Drawn:
        assert self._history is not None
        i = len(self.draws)
        assert i < len(self._history), f"a neighbour draws once more: {event!r}"
        assert (kind, event) == (self._history[i].kind, self._history[i].event), "a neighbour draws something else"
        return self._history[i]

    def _write(self, kind: str, number: int, event: Event, raw: Sequence[Any], out: Any) -> None:
        scales, self._scales = tuple(self._scales), []
        self.draws.append(Drawn(kind, number, event, tuple(map(Fraction, raw)), out, _site(), scales))

    def _kept(self, kind: str, receipt: Receipt, event: Event, raw: Sequence[Any], draw: Callable[[], Any]) -> Any:
        out = draw() if self._history is None else self._earlier(kind, event).out
        self._write(kind, receipt.number, event, raw, out)
        return receipt.released(lambda: out.copy() if isinstance(out, np.ndarray) else out, self.private)

    def add(self, value: Any, receipt: Receipt) -> Any:
        event = self._redeem(receipt, Laplace, Gaussian)
        steps = np.rint(np.asarray(value, dtype=float).reshape(-1) / event.grid)

        def draw() -> Any:
            noisy = Seeded._noisy(self, value, event)
            return noisy if self._scripted is None else self._scripted(_site(), event, value, noisy)

        return self._kept("add", receipt, event, [Fraction(s) * Fraction(event.grid) for s in steps.tolist()], draw)

    def add_for_all(self, value: Any, receipts: Sequence[Receipt]) -> Any:
        """Record one draw, which the receipts of all accounts share."""
        assert len({receipt.events for receipt in receipts}) == 1
        out = self.add(value, receipts[0])
        for receipt in receipts[1:]:
            event = self._redeem(receipt, Laplace, Gaussian)
            if self._history is not None:
                assert self._earlier("add", event).out == out
            self._write("add", receipt.number, event, self.draws[-1].raw, out)
            receipt.released(lambda: out, self.private)
        return out

    def choose(self, scores: Any, receipt: Receipt) -> int:
        event = self._redeem(receipt, Exponential)
        values = np.asarray(scores, dtype=float)

        def draw() -> int:
            chosen = self._largest_gumbel(values, event)
            return chosen if self._scripted is None else self._scripted(_site(), event, values, chosen)

        return int(self._kept("choose", receipt, event, values.tolist(), draw))

    def sample(self, rows: int, receipt: Receipt) -> Any:
        event = self._redeem(receipt, PoissonSample)
        # row by row from the same seed, so that a neighbour with a row more at its end has the same others
        coins = Seeded(self.seed + len(self.draws))._below(2**32, rows)
        found = np.flatnonzero(coins < event.heads)
        self._write("sample", receipt.number, event, [rows], found)
        return receipt.released(lambda: found, self.private)

    def draw_rows(self, receipt: Receipt) -> Any:
        event = self._redeem(receipt, DistinctRows, RepeatedRows)
        found = self.subsample(event.rows, event.size, replace=isinstance(event, RepeatedRows))
        if self._history is not None:  # neighbours are compared on the same rows
            found = self._earlier("sample", event).out.copy()
        self._write("sample", receipt.number, event, [event.rows], found.copy())
        return found

    def flips(self, holds: Any, receipt: Receipt) -> Any:
        """Record the number of rows that say yes, on which alone the law of the outcome depends."""
        event = self._redeem(receipt, FlippedRows)
        yes = int(np.sum(holds(np.arange(event.rows))))
        return self._kept("flips", receipt, event, [yes], lambda: np.arange(event.times) % 3 == 0)

    def open_round(self, receipt: Receipt, threshold: int, unit: float, on_grid: bool = False) -> Any:
        event = receipt.events[0]
        assert isinstance(event, AboveThreshold)
        natural = self._history is None and self._guard is None
        self._forced = None if natural else 0.0
        opened = super().open_round(receipt, threshold, unit, on_grid)
        if self._history is not None:
            self._earlier("open", event)
        self._write("open", receipt.number, event, [Fraction(threshold) * Fraction(unit)], None)
        return RecordedRound(self, opened, receipt.number, event, threshold, unit)

    def _comparison(self, scale: float) -> float:
        self._scales.append(scale)
        return super()._comparison(scale) if self._forced is None else self._forced

    def _noisy(self, value: Any, event: Any) -> Any:
        """Draw for a guard, whose noise is on a grid. ``add`` does not call this."""
        self._scales.append(event.scale)
        return super()._noisy(value, event) if self._forced is None else self._forced


class RecordedRound:
    """A guard's round whose noise is chosen so that the comparison has the outcome of the history or of the script."""

    def __init__(
        self, noise: Recorder, opened: GuardRound, number: int, event: AboveThreshold, threshold: int, unit: float
    ) -> None:
        self._noise, self._opened, self._number, self._event = noise, opened, number, event
        self._threshold, self._unit = threshold, unit

    @property
    def is_open(self) -> bool:
        return self._opened.is_open

    def excess(self, value: int) -> int | None:
        noise = self._noise
        if noise._history is not None or noise._guard is not None:
            if noise._history is not None:
                said = noise._earlier("compare", self._event).out
            else:
                said = 0 if next(noise._guard) else None
            noise._forced = (self._threshold + (-1 if said is None else said) - value) * self._unit
        found = self._opened.excess(value)
        noise._write("compare", self._number, self._event, [Fraction(value) * Fraction(self._unit)], found)
        return found


def _site() -> str:
    """Return the module and the function that asked for noise."""
    frame = sys._getframe(1)
    while frame.f_globals["__name__"] in BETWEEN and frame.f_back is not None:
        frame = frame.f_back
    module = frame.f_globals["__name__"].removeprefix("hedgerow.")
    return f"{module}:{frame.f_code.co_qualname.replace('.<locals>', '')}"


def transcribed(run: Callable[[Any, Ledger, Recorder], Any], table: Any, ledger: Ledger, noise: Recorder) -> Transcript:
    """Return the transcript of ``run(table, ledger, noise)``."""
    outcome = run(table, ledger, noise)
    return Transcript(tuple(noise.draws), tuple(ledger.entries()), outcome)
