"""A table given by the cells of its rows, in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hedgerow._types import Counts, Integers, Names
from hedgerow.data.source import DataSource
from hedgerow.universe.universe import Universe


class CodedRows(DataSource):
    """Rows that are given as cells: made-up ones, for which writing and reading values would take longer than counting.

    Parameters
    ----------
    universe : Universe
        The universe.
    columns : sequence of arrays of int
        For each attribute, the cell of every row.
    """

    def __init__(self, universe: Universe, columns: Sequence[Integers]) -> None:
        super().__init__(universe)
        self._columns = [column.astype(np.int64) for column in columns]

    def merge_values(self, universe: Universe, groups: Mapping[str, Integers]) -> CodedRows:
        """Return the rows under a universe with fewer values, given the group of every value."""
        named = zip(self.universe.names, self._columns, strict=True)
        return CodedRows(universe, [groups[name][column] if name in groups else column for name, column in named])

    def _count_all(self, sets: Sequence[Names]) -> list[Counts]:
        return [self._count(names) for names in sets]

    def _count(self, names: Names) -> Counts:
        cells, shape = np.zeros(len(self._columns[0]), np.int64), tuple(self.universe[name].size for name in names)
        for name, size in zip(names, shape, strict=True):
            cells = cells * size + self._columns[self.universe.index(name)]
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)

    def _distinct(self) -> Iterator[Integers]:
        records, times = np.unique(np.column_stack(self._columns), axis=0, return_counts=True)
        yield np.column_stack([records, times])
