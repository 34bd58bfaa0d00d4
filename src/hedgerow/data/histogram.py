"""A table given as its counts: n is only a scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from hedgerow._types import Counts, Integers, Names
from hedgerow.data.source import MOST_ROWS, DataSource
from hedgerow.errors import InvalidInput
from hedgerow.questions.universe import Universe


class Histogram(DataSource):
    """A table given as its counts over the whole universe: n is only a scale, so a billion rows cost nothing.

    What is no histogram of at most ``MOST_ROWS`` rows is refused here, to the owner who made it, before any question.
    """

    def __init__(self, universe: Universe, counts: ArrayLike) -> None:
        super().__init__(universe)
        array = np.asarray(counts)
        if array.size != universe.size or not np.issubdtype(array.dtype, np.integer) or (array < 0).any():
            raise InvalidInput(
                f"A histogram must hold {universe.size} counts, whole and not negative. Found other values or another size. "
                "Give one count per cell of the universe."
            )
        if array.sum(dtype=float) > MOST_ROWS:  # a float cannot overflow, and what it rounds is far from what matters
            raise InvalidInput("A histogram must hold at most 2^50 rows in all. Found more. Give smaller counts.")
        self._counts = array.reshape(universe.shape).astype(np.int64)

    def merged(self, universe: Universe, groups: Mapping[str, Integers]) -> Histogram:
        counts = self._counts
        for name, group in groups.items():
            axis = self.universe.index(name)
            fewer = np.zeros((universe[name].size, *np.delete(counts.shape, axis)), np.int64)
            np.add.at(fewer, group, np.moveaxis(counts, axis, 0))
            counts = np.moveaxis(fewer, 0, axis)
        return Histogram(universe, counts)

    def _count_all(self, sets: Sequence[Names]) -> list[Counts]:
        return [np.asarray(self._counts.sum(axis=self._axes_beside(names))) for names in sets]

    def _axes_beside(self, names: Names) -> tuple[int, ...]:
        return tuple(i for i, name in enumerate(self.universe.names) if name not in names)

    def _distinct(self) -> Iterator[Integers]:
        occurring = np.argwhere(self._counts)
        yield np.column_stack([occurring, self._counts[self._counts > 0]])
