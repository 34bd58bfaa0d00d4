"""The games that define accuracy and privacy, as harnesses that take an adaptive analyst.

Paper: Ullman, *Private multiplicative weights beyond linear queries*: Figure 1 (accuracy game), Figure 2 (threshold
game), Figure 4 (T-fold adaptive composition). The adversary ℬ chooses the data, then every query in the light of all
previous queries and answers. The mechanism 𝒜 only sees the data and the queries.

The analysts here are as strong as linear queries allow. They chose the data and rebuild the public hypothesis from the
answers alone, so at every moment they know the error of each query. They are for simulations only: the data are their
own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array
from hedgerow.data import DataSource, HistogramSource
from hedgerow.data.counting import everywhere
from hedgerow.errors import BudgetExceeded
from hedgerow.query.linear import Linear
from hedgerow.textbook import multiplicative_weights as experts
from hedgerow.textbook.pmw import PMWAnswer, PMWConfig
from hedgerow.universe.universe import Universe

Q = TypeVar("Q")
A = TypeVar("A")
Q_co = TypeVar("Q_co", covariant=True)
D = TypeVar("D")


@dataclass(frozen=True)
class GameTurn(Generic[Q, A]):
    """A query, its answer and its true error."""

    query: Q
    answer: A
    error: float


@dataclass(frozen=True)
class Transcript(Generic[Q, A]):
    """A finished game. ``halted`` tells that the mechanism refused before all queries were answered."""

    turns: tuple[GameTurn[Q, A], ...]
    halted: bool

    @property
    def worst(self) -> float:
        """The largest error of an answer."""
        return max((turn.error for turn in self.turns), default=0.0)

    def accurate(self, error: float) -> bool:
        """Return True if all queries were answered, each within the error."""
        return not self.halted and self.worst <= error


class Analyst(Protocol[Q_co, A]):
    """A player that chooses the data, then each query from all previous queries and answers. None ends the game."""

    @property
    def data(self) -> DataSource:
        """The data that the analyst chose."""
        ...

    def __call__(self, past: Sequence[GameTurn[Any, A]], /) -> Q_co | None:
        """Return the next query, or None to end the game."""
        ...


def accuracy_game(
    analyst: Analyst[Q, A],
    mechanism: Callable[[DataSource], Callable[[Q], A]],
    queries: int,
    error: Callable[[DataSource, Q, A], float],
) -> Transcript[Q, A]:
    """Play Figure 1. ``mechanism`` is started on the analyst's data and answers one query at a time."""
    answer = mechanism(analyst.data)
    turns: list[GameTurn[Q, A]] = []
    for _ in range(queries):
        query = analyst(turns)
        if query is None:
            break
        try:
            given = answer(query)
        except BudgetExceeded:
            return Transcript(tuple(turns), halted=True)
        turns.append(GameTurn(query, given, error(analyst.data, query, given)))
    return Transcript(tuple(turns), halted=False)


def linear_error(data: DataSource, query: Linear, answer: PMWAnswer) -> float:
    """Return |⟨q, D⟩ − answer| as a fraction."""
    return abs(query.dot(data.marginal(query.attributes)) / data.rows - answer.value)


@dataclass(frozen=True)
class ThresholdTurn:
    """A value and the mechanism's answer, True for ⊤."""

    value: float
    above: bool


@dataclass(frozen=True)
class ThresholdTranscript:
    """A finished threshold game."""

    turns: tuple[ThresholdTurn, ...]
    halted: bool

    def wrong(self, alpha: float) -> list[int]:
        """Return the turns that break Theorem 3.1: a value of at least α answered ⊥, or of at most α/2 answered ⊤."""
        return [
            j
            for j, turn in enumerate(self.turns)
            if (turn.value >= alpha and not turn.above) or (turn.value <= alpha / 2 and turn.above)
        ]


def threshold_game(
    adversary: Callable[[Sequence[ThresholdTurn]], float | None], above: Callable[[float], bool], queries: int
) -> ThresholdTranscript:
    """Play Figure 2. The adversary knows the data, so a query is its value there. The sparse vector answers ⊤ or ⊥."""
    turns: list[ThresholdTurn] = []
    for _ in range(queries):
        value = adversary(turns)
        if value is None:
            break
        try:
            turns.append(ThresholdTurn(value, above(value)))
        except BudgetExceeded:
            return ThresholdTranscript(tuple(turns), halted=True)
    return ThresholdTranscript(tuple(turns), halted=False)


def adaptive_composition(
    adversary: Callable[[tuple[Any, ...]], Callable[[D], Any]], data: D, rounds: int
) -> tuple[Any, ...]:
    """Play Figure 4. From the results so far the adversary chooses the next private algorithm to run on the data."""
    results: tuple[Any, ...] = ()
    for _ in range(rounds):
        results = (*results, adversary(results)(data))
    return results


class _KnowsTheHypothesis:
    """An analyst that chose the data and tracks the hypothesis of an online PMW by replaying its public answers."""

    def __init__(self, universe: Universe, counts: NDArray[np.int64], config: PMWConfig) -> None:
        self.data: DataSource = HistogramSource(universe, counts)
        self.universe, self.config = universe, config
        self.truth = counts.reshape(-1) / counts.sum()
        self._log_weights = np.zeros(universe.size)
        self._seen = 0

    def hypothesis(self, past: Sequence[GameTurn[Any, PMWAnswer]]) -> Array:
        """Return D̂ as a vector over the universe, in universe order."""
        for turn in past[self._seen :]:
            if turn.answer.measured_rows is not None:
                q = everywhere(self.universe, turn.query)
                believed = q @ experts.normalize(self._log_weights)
                overshoots = turn.answer.measured_rows < self.config.scale * believed
                self._log_weights += experts.log_factor(q, overshoots=bool(overshoots), eta=self.config.eta)
        self._seen = len(past)
        return experts.normalize(self._log_weights)


class WorstOfPool(_KnowsTheHypothesis):
    """An analyst that asks, of a pool of queries, the one with the largest current error of the hypothesis."""

    def __init__(
        self, universe: Universe, counts: NDArray[np.int64], config: PMWConfig, pool: Sequence[Linear]
    ) -> None:
        super().__init__(universe, counts, config)
        self._pool = list(pool)
        self._tables = np.stack([everywhere(universe, q) for q in pool])

    def __call__(self, past: Sequence[GameTurn[Any, PMWAnswer]], /) -> Linear | None:
        gaps = np.abs(self._tables @ (self.truth - self.hypothesis(past)))
        return self._pool[int(gaps.argmax())]


class NearGap(_KnowsTheHypothesis):
    """An analyst that asks queries whose gap ⟨q, D⟩ − ⟨q, D̂⟩ is as near as possible to each of the targets in turn.

    With the cells sorted by D − D̂, the gap of the first j cells rises from 0 to the largest gap of any query. So every
    gap can be reached to within the weight of a cell. A target of 1 asks for the worst query of all.
    """

    def __init__(
        self, universe: Universe, counts: NDArray[np.int64], config: PMWConfig, targets: Sequence[float]
    ) -> None:
        super().__init__(universe, counts, config)
        self._targets = tuple(targets)

    def __call__(self, past: Sequence[GameTurn[Any, PMWAnswer]], /) -> Linear | None:
        difference = self.truth - self.hypothesis(past)
        order = np.argsort(-difference, kind="stable")
        gaps = np.cumsum(difference[order])
        target = self._targets[len(past) % len(self._targets)]
        first = int(np.abs(gaps - target).argmin()) + 1
        table = np.zeros(self.universe.size)
        table[order[:first]] = 1
        return Linear.from_table(self.universe, self.universe.names, table.reshape(self.universe.shape))
