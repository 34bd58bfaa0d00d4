"""Add all tables of a model to its cliques, and sum its cliques onto all tables, in two compiled loops.

This suits a model of many small tables, whose arithmetic takes less time than a function call for each: every cell of
a table's clique has the place of its parameter, computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow._compiled import compile_lazily
from hedgerow._types import Array, Names
from hedgerow.model.junction_tree import JunctionTree

MOST_PLACES = 1_000_000  # with more places in all, adding tables one by one along memory is faster (``memory_layout``)
FEW_TABLES, FEW_PLACES = 32, 1 << 17  # up to this size tables are added one by one, and nothing is compiled


class FlatSums:
    """The map between parameters of tables on ``sets`` and beliefs on the cliques of a tree, both laid end to end."""

    def __init__(self, tree: JunctionTree, sets: Sequence[Names], homes: Sequence[int]) -> None:
        starts = np.cumsum([0, *(int(np.prod(shape)) for shape in tree.shapes)])
        places, first = [np.zeros(0, np.int32)], 0
        for names, home in zip(sets, homes, strict=True):
            shape = tree.shapes[home]
            place, stride = np.full((1,) * len(shape), first), 1
            for axis in reversed(range(len(shape))):
                if tree.cliques[home][axis] in names:
                    line = stride * np.arange(shape[axis])
                    place = place + line.reshape([-1 if k == axis else 1 for k in range(len(shape))])
                    stride *= shape[axis]
            places.append(np.broadcast_to(place, shape).reshape(-1).astype(np.int32))
            first += stride
        self._places = np.concatenate(places)
        self._few = len(sets) <= FEW_TABLES and self._places.size <= FEW_PLACES
        self._starts = starts[list(homes)].astype(np.int64)
        self._ends = starts[[home + 1 for home in homes]].astype(np.int64)
        self._tables = list(zip(self._starts.tolist(), self._ends.tolist(), places[1:], strict=True))

    @staticmethod
    def plan(tree: JunctionTree, sets: Sequence[Names]) -> FlatSums | None:
        """Return the map; None if it would be large, or if a set lies in no clique."""
        homes = [tree.home(names) for names in sets]
        inside = [home for home in homes if home is not None]
        if len(inside) < len(homes) or sum(int(np.prod(tree.shapes[h])) for h in inside) > MOST_PLACES:
            return None
        return FlatSums(tree, sets, inside)

    def potentials(self, parameters: Array, found: Array) -> None:
        """Set the cliques' log potentials from the parameters."""
        found.fill(0.0)
        if not self._few:
            _add(parameters, self._starts, self._ends, self._places, found)
        for start, end, places in self._tables if self._few else ():
            found[start:end] += parameters[places]

    def means(self, beliefs: Array, found: Array) -> None:
        """Set the tables' sums from the cliques' beliefs."""
        found.fill(0.0)
        if not self._few:
            _sum(beliefs, self._starts, self._ends, self._places, found)
        for start, end, places in self._tables if self._few else ():
            found += np.bincount(places, beliefs[start:end], minlength=found.size)


@compile_lazily()
def _add(parameters: Array, starts: Any, ends: Any, places: Any, found: Array) -> None:
    """Add parameters to the cells of their cliques."""
    at = 0
    for t in range(starts.size):
        for i in range(starts[t], ends[t]):
            found[i] += parameters[places[at]]
            at += 1


@compile_lazily()
def _sum(beliefs: Array, starts: Any, ends: Any, places: Any, found: Array) -> None:
    """Add the cells of cliques to the sums of their tables."""
    at = 0
    for t in range(starts.size):
        for i in range(starts[t], ends[t]):
            found[places[at]] += beliefs[i]
            at += 1
