"""A table given by its counts, of which the number of rows is only a scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from hedgerow._types import Counts, Integers, Names
from hedgerow.data.source import MOST_ROWS, DataSource
from hedgerow.errors import InvalidInput
from hedgerow.universe.universe import Universe


class HistogramSource(DataSource):
    """A table given by its counts over the whole universe. A billion rows cost no more than ten.

    Parameters
    ----------
    universe : Universe
        The universe.
    counts : array_like of int
        One count per cell of the universe, at most ``MOST_ROWS`` (2^50) in all.

    Raises
    ------
    InvalidInput
        If the counts are no such histogram. The owner, who made the counts, sees this before any question.
    """

    def __init__(self, universe: Universe, counts: ArrayLike) -> None:
        super().__init__(universe)
        array = np.asarray(counts)
        if array.size != universe.size or not np.issubdtype(array.dtype, np.integer) or (array < 0).any():
            raise InvalidInput(
                f"A histogram must hold {universe.size} counts, whole and not negative. Found other values or another "
                "size. Give one count per cell of the universe."
            )
        if array.sum(dtype=float) > MOST_ROWS:  # a float cannot overflow, and its rounding does not matter at this size
            raise InvalidInput("A histogram must hold at most 2^50 rows in all. Found more. Give smaller counts.")
        self._counts = array.reshape(universe.shape).astype(np.int64)

    def merge_values(self, universe: Universe, groups: Mapping[str, Integers]) -> HistogramSource:
        """Return the histogram under a universe with fewer values, given the group of every value."""
        counts = self._counts
        for name, group in groups.items():
            axis = self.universe.index(name)
            fewer = np.zeros((universe[name].size, *np.delete(counts.shape, axis)), np.int64)
            np.add.at(fewer, group, np.moveaxis(counts, axis, 0))
            counts = np.moveaxis(fewer, 0, axis)
        return HistogramSource(universe, counts)

    def _count_all(self, sets: Sequence[Names]) -> list[Counts]:
        return [np.asarray(self._counts.sum(axis=self._axes_beside(names))) for names in sets]

    def _axes_beside(self, names: Names) -> tuple[int, ...]:
        return tuple(i for i, name in enumerate(self.universe.names) if name not in names)

    def _distinct(self) -> Iterator[Integers]:
        occurring = np.argwhere(self._counts)
        yield np.column_stack([occurring, self._counts[self._counts > 0]])
