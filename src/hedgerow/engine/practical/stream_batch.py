"""Compute everything that does not depend on the guard's noise for many questions of a stream at once.

Answers and bars follow from public knowledge. The gap between a true count and the hypothesis' answer does not depend
on the guard either. All three are computed together for the questions that are still to come, and again after every
refit. The guard is then asked about one question at a time, in their order: it compares, draws and answers exactly as
if they were asked one by one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hedgerow import _memory
from hedgerow._types import Counts, Names
from hedgerow.data import exact_counts as exact
from hedgerow.data.source import DataSource
from hedgerow.engine.practical.free_answers import FreeAnswers
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.query.linear import LARGEST_TABLE, Linear, answer_all

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
