"""Count many small tables in one scan of coded columns.

A block of rows stays in the processor's cache while all tables are counted in it. Neighbouring rows of a small table
often fall into the same cell, where one increment would have to wait for the previous one. So neighbouring rows are
counted in several copies of the table, which are added up at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._compiled import compile_lazily
from hedgerow._types import Counts, Names
from hedgerow.universe.universe import Universe

BLOCK = 2048  # rows in a block
FEW_PLACES = 1 << 22  # up to this many rows × tables, count table by table without compiled code
COPIES, COPIED = 4, 256  # count in this many copies if a table has at most this many cells


class ManyTables:
    """The counts of many sets of attributes over the batches of rows added so far."""

    def __init__(self, universe: Universe, sets: Sequence[Names]) -> None:
        self._universe, self._sets = universe, sets
        self.columns = universe.order(name for names in sets for name in names)
        where = {name: i for i, name in enumerate(self.columns)}
        widest = max(map(len, sets), default=0)
        self._members = np.full((len(sets), max(widest, 1)), -1, np.int64)
        self._sizes = np.ones(self._members.shape, np.int64)
        for row, names in enumerate(sets):
            self._members[row, : len(names)] = [where[name] for name in names]
            self._sizes[row, : len(names)] = universe.sizes(names)
        self._ends = np.cumsum([0, *(math.prod(universe.sizes(names)) for names in sets)])
        self._counts = np.zeros(int(self._ends[-1]), np.int64)
        largest = max(universe.sizes(self.columns), default=1)
        self._rows = 0  # the rows added so far
        self._kind = np.uint8 if largest <= 1 << 8 else np.uint16 if largest <= 1 << 16 else np.int64

    def add(self, columns: Sequence[NDArray[Any]], rows: int) -> None:
        """Add a batch of rows, given the cells of each of ``columns``."""
        self._rows += rows
        if self._rows * len(self._sets) <= FEW_PLACES:
            self._add_few(columns, rows)
            return
        codes = np.zeros((max(len(columns), 1), rows), self._kind)
        for line, column in zip(codes, columns, strict=False):
            line[:] = column
        _count(codes, self._members, self._sizes, self._ends, self._counts)

    def _add_few(self, columns: Sequence[NDArray[Any]], rows: int) -> None:
        """Count without compiled code."""
        wide = [np.asarray(column, np.int64) for column in columns]
        for members, sizes, start, end in zip(self._members, self._sizes, self._ends, self._ends[1:], strict=False):
            place = np.zeros(rows, np.int64)
            for column, size in zip(members, sizes, strict=True):
                if column >= 0:
                    place = place * size + wide[column]
            self._counts[start:end] += np.bincount(place, minlength=end - start)

    def tables(self) -> list[Counts]:
        """Return the counts of each set of attributes."""
        pieces = zip(self._ends, self._ends[1:], self._sets, strict=False)
        return [self._counts[a:b].reshape(self._universe.sizes(names)).copy() for a, b, names in pieces]


@compile_lazily()
def _count(codes: Any, members: Any, sizes: Any, ends: Any, counts: Any) -> None:
    """Add the counts of coded rows to all tables."""
    place, spread = np.empty(BLOCK, np.int32), np.zeros(COPIES * COPIED, np.int64)
    for start in range(0, codes.shape[1], BLOCK):
        rows = min(BLOCK, codes.shape[1] - start)
        for t in range(members.shape[0]):
            cells = ends[t + 1] - ends[t]
            found = counts[ends[t] : ends[t + 1]]
            place[:] = 0
            for k in range(members.shape[1]):
                column, size = members[t, k], sizes[t, k]
                if column >= 0:
                    line = codes[column, start : start + rows]
                    for i in range(rows):
                        place[i] = place[i] * size + line[i]
            if cells > COPIED:
                for i in range(rows):
                    found[place[i]] += 1
                continue
            for i in range(0, rows - COPIES + 1, COPIES):
                spread[place[i]] += 1
                spread[cells + place[i + 1]] += 1
                spread[2 * cells + place[i + 2]] += 1
                spread[3 * cells + place[i + 3]] += 1
            for i in range(rows - rows % COPIES, rows):
                spread[place[i]] += 1
            for copy in range(COPIES):
                for i in range(cells):
                    found[i] += spread[copy * cells + i]
                    spread[copy * cells + i] = 0
