"""The guard of the practical profile: a sparse vector that reports where the hypothesis is wrong.

The guard's share of the budget follows a public rule, ``plan_guard``. At small n its threshold would be too coarse
to help, and the guard gets nothing.

``Precomputed`` has everything that does not depend on the guard's noise, for many questions of a stream at once.
Answers and bars follow from public knowledge. The gap between a true count and the hypothesis' answer does not depend
on the guard either. All three are computed together for the questions that are still to come, and again after every
refit. The guard then takes the questions in order. It compares, draws and answers exactly as if each had been asked
alone.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hedgerow import _memory
from hedgerow._types import Counts, Names
from hedgerow.data import counting as exact
from hedgerow.data.source import DataSource
from hedgerow.engine.practical.free_answers import FreeAnswers
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Entry, Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.privacy.renyi_events import HitRound
from hedgerow.query.linear import LARGEST_TABLE, Linear, answer_all
from hedgerow.textbook import sparse_vector

GUARD_ROUNDS = 8  # number of ⊤ ("wrong") the guard may answer; each is followed by a measurement and a refit
HIT_ROUNDS = 16  # the same of a guard that pays for hits: each is so cheap that there may be more
GUARD_SHARE = 0.1  # default share of the budget
HIT_SHARE = 0.03  # the same of a guard that pays for hits: its promise is then still narrower
GUARD_HELPS = 0.02  # a guard whose promised bar is wider than this is not bought by default


@dataclass(frozen=True)
class Guard:
    """A sparse vector for the stream.

    ``promise`` is the bar of an answer after ⊥, as a fraction of the rows; ``share`` is the guard's part of the
    budget.
    """

    config: sparse_vector.SparseVector
    promise: float
    share: float


def plan_guard(
    budget: Budget, rows: float, queries: int, beta: float, share: float | None = None, hits: bool = False
) -> Guard | None:
    """Return the guard that this share of the budget buys; None if its promise would be too wide to help.

    All k comparisons of c rounds are right to within w = weight·Δ/ε rows (``sparse_vector.comparison_weight``). With
    its threshold at 2w the guard never fires at errors below w, and after ⊥ the error is at most 3w. It is bought
    when 3w/n is at most 2 %, or when the owner asks for a share. An error above 3w gives ⊤ except with probability
    β/2k, and c ⊤ end the guard. So with k ≥ c, what ⊥ promises holds for any number of questions.

    With ``hits``, the rounds are rounds of hits: the threshold has no noise of its own, and w is less.
    """
    wanted = GUARD_SHARE if share is None else share
    if wanted == 0:
        return None
    if hits:
        return _guard_of_hits(budget, rows, queries, beta, share)
    weight, ratio = sparse_vector.comparison_weight(GUARD_ROUNDS, max(queries, GUARD_ROUNDS), beta)
    epsilon = Amount.share_of(budget, wanted).round_epsilon(GUARD_ROUNDS)
    width = weight * budget.linear() / epsilon
    if share is None and 3 * width > GUARD_HELPS * rows:
        return None
    round_ = sparse_vector.guard_round(epsilon, ratio, budget.linear())
    return Guard(sparse_vector.SparseVector(2 * width, round_, GUARD_ROUNDS), 3 * width / rows, wanted)


def require_hits(budget: Budget) -> None:
    """Refuse a guard that pays for hits where the budget cannot price its rounds."""
    if budget.pure or budget.rows_per_unit > 1:
        raise InvalidInput(
            "pay_for_hits must come with a delta above 0 and one row a person. Found "
            f"{'delta = 0' if budget.pure else 'several rows a person'}. Leave it out."
        )


def _guard_of_hits(budget: Budget, rows: float, queries: int, beta: float, share: float | None) -> Guard | None:
    """Return the guard with a public threshold, by the same rule."""
    wanted = HIT_SHARE if share is None else share
    epsilon = Amount.share_of(budget, wanted).hit_epsilon(HIT_ROUNDS)
    width = sparse_vector.hit_weight(max(queries, HIT_ROUNDS), beta) * budget.linear() / epsilon
    if share is None and 3 * width > GUARD_HELPS * rows:
        return None
    round_ = HitRound(budget.linear(), epsilon)
    return Guard(sparse_vector.SparseVector(2 * width, round_, HIT_ROUNDS), 3 * width / rows, wanted)


class GuardWatch:
    """The running guard: its rounds, each charged when it opens."""

    def __init__(self, guard: Guard, ledger: Ledger, noise: Noise) -> None:
        self.guard, self._ledger, self._noise = guard, ledger, noise
        self._progress = sparse_vector.Progress()

    @property
    def is_on(self) -> bool:
        """True while the guard may still be asked: rounds are left, and one is open or can be paid for."""
        if self._progress.tops >= self.guard.config.rounds:
            return False
        return self._progress.is_open or self._ledger.affords(self.guard.config.guard)

    @property
    def is_open(self) -> bool:
        """True while a round is open, so that one more "right" costs nothing."""
        return self._progress.is_open

    def ready(self) -> None:
        """Open a round if none is open; the round is charged before the data are read."""
        self._progress, _ = sparse_vector.ready(self.guard.config, self._progress, self._ledger, self._noise)

    def is_above(self, value: float) -> bool:
        """Return whether a private value is above the threshold: one bit, billed.

        The value is in rows, and one row of the data moves it by at most 1.
        """
        outcome, self._progress = sparse_vector.step(
            self.guard.config, self._progress, value, self._ledger, self._noise
        )
        return outcome.above

    @property
    def tops(self) -> int:
        """The number of rounds that have ended."""
        return self._progress.tops

    def resume(self, entries: Sequence[Entry], tops: int = 0) -> None:
        """Take up the rounds that ``entries`` record, after ``tops`` rounds that ended before them."""
        before = replace(self._progress, tops=self._progress.tops + tops)
        self._progress = sparse_vector.resume_state(self.guard.config, entries, before)


TOGETHER = 8_000_000  # most cells of data tables held in memory at once while queries on them are counted


class FreeAnswer(NamedTuple):
    """An answer that costs nothing: value, bar, and the average size of such errors."""

    value: float
    error: float
    typical: float


class Precomputed:
    """The questions that are asked next, each once, with their precomputed answers and gaps.

    The guard is not asked about a question whose bar is at most ``promise``.
    """

    def __init__(
        self, data: DataSource, knowledge: FreeAnswers, queries: Iterable[Linear] = (), promise: float = 1.0
    ) -> None:
        self._data, self._knowledge, self._promise = data, knowledge, promise
        self._left = {query.key: query for query in queries}
        self._of: Hypothesis | None = None  # the hypothesis that the following were computed from
        self._free: dict[Hashable, FreeAnswer] = {}
        self._gaps: dict[Hashable, float] = {}  # distances of true counts from the hypothesis: private

    def free(self, query: Linear) -> FreeAnswer | None:
        """Return the free answer of an announced question and use it up; None if the question was not announced."""
        if query.key not in self._left:
            return None
        if self._knowledge.hypothesis is not self._of:
            self._of, self._gaps, queries = self._knowledge.hypothesis, {}, list(self._left.values())
            found = (*self._knowledge.free_all(queries), self._knowledge.typical(queries))
            self._free = dict(
                zip(
                    self._left,
                    (FreeAnswer(*each) for each in zip(*(f.tolist() for f in found), strict=True)),
                    strict=True,
                )
            )
        del self._left[query.key]
        return self._free[query.key]

    def gap(self, query: Linear) -> float:
        """Return the gap (``gaps``) of the question whose answer was just taken. Private."""
        if query.key not in self._gaps:
            queries = [query, *(q for q in self._left.values() if self._is_guarded(q))]
            self._gaps = dict(zip((q.key for q in queries), gaps(self._data, self._knowledge, queries), strict=True))
        return self._gaps[query.key]

    def _is_guarded(self, query: Linear) -> bool:
        """Return True if the guard will be asked about this query."""
        return query.key in self._free and self._free[query.key].error > self._promise and is_countable(query)


def is_countable(query: Linear) -> bool:
    """Return True if the query's table is small enough to be counted: a public fact."""
    cells = math.prod(query.shape)
    return cells <= LARGEST_TABLE and _memory.fits(cells, _memory.TABLE)


def gaps(data: DataSource, knowledge: FreeAnswers, queries: Sequence[Linear]) -> list[float]:
    """Return the distance of each count from the hypothesis' answer, in rows. Private.

    One row moves a gap by at most 1. The count is a whole number of steps, and so is the public value that it is
    compared with: rounding reveals nothing.
    """
    gridded = [exact.on_grid(data.universe, query) for query in queries]
    steps = [exact.step_of(query, knowledge.grid) for query in gridded]
    believed = knowledge.rows.estimate * answer_all(gridded, knowledge.hypothesis_table)
    counted = np.empty(len(queries))
    for members, tables in _count_in_groups(data, gridded):
        counted[members] = exact.exact_counts([gridded[i] for i in members], tables.__getitem__, knowledge.grid)
    return [
        abs(c - exact.nearest(b, step)) for c, b, step in zip(counted.tolist(), believed.tolist(), steps, strict=True)
    ]


def rounded_rows(query: Linear, grid: float, rows: float) -> float:
    """Return how far rounding may move the gap of a query, in rows.

    For a count it is half a row of the hypothesis' answer. For weights it is half a step on each side, and the
    rounding of every row's weight.
    """
    return 0.5 if query.is_count else grid + 2 * rows * 2.0 ** -(exact.WEIGHT_BITS + 1)


def _count_in_groups(data: DataSource, queries: Sequence[Linear]) -> Iterator[tuple[list[int], dict[Names, Counts]]]:
    """Yield the queries grouped by attributes, a batch of sets at a time, with the data's counts on these sets.

    The largest sets come first, because they contain others.
    """
    members: dict[Names, list[int]] = {}
    for i, query in enumerate(queries):
        members.setdefault(query.attributes, []).append(i)
    waiting = sorted(members, key=lambda names: (-data.universe.cells(names), names))
    while waiting:
        cells, taken = 0, 0
        while taken < len(waiting) and (taken == 0 or cells + data.universe.cells(waiting[taken]) <= TOGETHER):
            cells, taken = cells + data.universe.cells(waiting[taken]), taken + 1
        some, waiting = waiting[:taken], waiting[taken:]
        yield [i for names in some for i in members[names]], dict(zip(some, data.marginals(some), strict=True))
