"""Many questions of a stream with a guard: all that does not depend on the guard's noise is worked out together.

Answers and bars follow from what is known, and so does the gap between a count and what is believed of it. They are worked out
for all questions that are still to come, and anew when something was learned. The guard is then asked of one at a time, in the
order of the questions: what it compares, draws and says is what it would if they were asked one by one.
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
from hedgerow.engines.practical.knowledge import Knowledge
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.questions.linear import LARGEST_TABLE, Linear, answer_all

TOGETHER = 8_000_000  # cells of counts that are held while their queries are counted


class Free(NamedTuple):
    """What is answered for nothing: the value, its bar, and how large such errors are on average."""

    value: float
    error: float
    usual: float


class Ahead:
    """Questions that are to be asked next, each once. ``promise``: with a bar up to here the guard is not asked."""

    def __init__(
        self, data: DataSource, knowledge: Knowledge, queries: Iterable[Linear] = (), promise: float = 1.0
    ) -> None:
        self._data, self._knowledge, self._promise = data, knowledge, promise
        self._left = {query.key: query for query in queries}
        self._of: Hypothesis | None = None  # of what was known when the following were worked out
        self._free: dict[Hashable, Free] = {}
        self._gaps: dict[Hashable, float] = {}  # private

    def free(self, query: Linear) -> Free | None:
        """The answer to one of them; None where it was not to be asked."""
        if query.key not in self._left:
            return None
        if self._knowledge.hypothesis is not self._of:
            self._of, self._gaps, queries = self._knowledge.hypothesis, {}, list(self._left.values())
            found = (*self._knowledge.free_all(queries), self._knowledge.typical(queries))
            self._free = dict(
                zip(self._left, (Free(*each) for each in zip(*(f.tolist() for f in found), strict=True)), strict=True)
            )
        del self._left[query.key]
        return self._free[query.key]

    def gap(self, query: Linear) -> float:
        """That of a question whose answer was just asked for (``gaps``). Private."""
        if query.key not in self._gaps:
            queries = [query, *(q for q in self._left.values() if self._is_guarded(q))]
            self._gaps = dict(zip((q.key for q in queries), gaps(self._data, self._knowledge, queries), strict=True))
        return self._gaps[query.key]

    def _is_guarded(self, query: Linear) -> bool:
        return query.key in self._free and self._free[query.key].error > self._promise and is_countable(query)


def is_countable(query: Linear) -> bool:
    """Whether there is a table to compare with: a public fact."""
    cells = math.prod(query.shape)
    return cells <= LARGEST_TABLE and _memory.fits(cells, _memory.TABLE)


def gaps(data: DataSource, knowledge: Knowledge, queries: Sequence[Linear]) -> list[float]:
    """By how much each count differs from the hypothesis', in rows; one row moves it by at most 1. Private.

    The count is a whole number of steps and so is what it is compared with, which is public: rounding tells nothing.
    """
    gridded = [exact.on_grid(data.universe, query) for query in queries]
    steps = [exact.step_of(query, knowledge.grid) for query in gridded]
    believed = knowledge.rows.estimate * answer_all(gridded, knowledge.believed)
    counted = np.empty(len(queries))
    for members, tables in _counted_together(data, gridded):
        counted[members] = exact.counted_all([gridded[i] for i in members], tables.__getitem__, knowledge.grid)
    return [
        abs(c - exact.nearest(b, step)) for c, b, step in zip(counted.tolist(), believed.tolist(), steps, strict=True)
    ]


def rounded_rows(query: Linear, grid: float, rows: float) -> float:
    """How far rounding may move the gap of a query: half a row of what is believed; of weights, a half each of both and of every row's weight."""
    return 0.5 if query.is_count else grid + 2 * rows * 2.0 ** -(exact.WEIGHT_BITS + 1)


def _counted_together(data: DataSource, queries: Sequence[Linear]) -> Iterator[tuple[list[int], dict[Names, Counts]]]:
    """The queries by their attributes, some sets at a time, with the counts on these; the largest first, which hold others."""
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
