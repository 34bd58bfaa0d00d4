"""The probabilities on all pairs of attributes at once, from one calibration of a junction tree.

    G[(a, v), (b, w)] = P(x_a = v, x_b = w)        one matrix over the values of all attributes
    U_C[(a, v), s]    = P(x_a = v, x_S = s)        a from the part of the tree below clique C, S its separator

Given its separator, what is below a clique is independent of the rest. So U of a child D goes through its parent C as
U_D·P(·|S_D): onto single attributes of C, which gives their pairs with all that is below D; onto C's own separator, for those
further up; and onto the separator of another child E, where it meets U_E. Every step is a sum over one clique's cells for each
row, and no two attributes are eliminated by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._compiled import compiled
from hedgerow._types import Array, Names
from hedgerow.model.junction_tree import JunctionTree


class PairTables:
    """Where the values of attributes are in the matrix of all pairs: block (a, b) is the table on a and b."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        ends = np.cumsum([0, *sizes.values()])
        self.starts = ends[:-1]
        self.values = int(ends[-1])
        self._slices = {name: slice(int(a), int(b)) for name, a, b in zip(sizes, ends, ends[1:], strict=False)}

    def block(self, matrix: NDArray[Any], names: Names) -> NDArray[Any]:
        first, second = names
        return matrix[self._slices[first], self._slices[second]]

    def sums(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Of each block, as a matrix over attributes."""
        return np.asarray(np.add.reduceat(np.add.reduceat(matrix, self.starts, axis=0), self.starts, axis=1))

    def believed(self, tree: JunctionTree, beliefs: Sequence[Array]) -> Array:
        """G of a calibrated tree. Blocks of an attribute with itself are not filled in."""
        found = np.empty((self.values, self.values))
        singles = self._singles(tree, beliefs)
        np.multiply.outer(singles, singles, out=found)  # as between the trees of a forest
        below: dict[int, list[tuple[int, NDArray[np.int64], Array]]] = {}  # by parent: child, rows of G, U
        for c, names in enumerate(tree.cliques):
            clique = _Clique(names, beliefs[c])
            own, rest = tree.separators[c], [n for n in names if n not in tree.separators[c]]
            for i, a in enumerate(names):
                for b in names[:i]:
                    self._put(found, self._places([a]), self._places([b]), clique.onto((a,), (b,)))
            rows = [self._places(rest)]
            parts = [np.concatenate([clique.onto((n,), own) for n in rest])]
            children = below.pop(c, [])
            for k, (child, places, table) in enumerate(children):
                shared = tree.separators[child]
                given = table / np.maximum(clique.onto((), shared), 1e-300)
                others = [n for n in names if n not in shared]
                for n in others:
                    self._put(found, places, self._places([n]), clique.through(given, shared, (n,)))
                for other, theirs, there in children[:k]:
                    apart = tree.separators[other]
                    meeting = clique.through(given, shared, apart) / np.maximum(clique.onto((), apart), 1e-300)
                    self._put(found, places, theirs, meeting @ there.T)
                rows.append(places)
                parts.append(clique.through(given, shared, own))
            if tree.parents[c] >= 0 and own:
                below.setdefault(tree.parents[c], []).append((c, np.concatenate(rows), np.concatenate(parts)))
        return found

    def _places(self, names: Sequence[str]) -> NDArray[np.int64]:
        return np.concatenate([np.arange(self._slices[n].start, self._slices[n].stop) for n in names])

    def _put(self, matrix: Array, rows: NDArray[np.int64], columns: NDArray[np.int64], table: Array) -> None:
        matrix[np.ix_(rows, columns)] = table
        matrix[np.ix_(columns, rows)] = table.T

    def _singles(self, tree: JunctionTree, beliefs: Sequence[Array]) -> Array:
        found, seen = np.empty(self.values), set()
        for names, belief in zip(tree.cliques, beliefs, strict=True):
            for i, name in enumerate(names):
                if name not in seen:
                    seen.add(name)
                    found[self._slices[name]] = belief.sum(axis=tuple(k for k in range(belief.ndim) if k != i))
        return found


class _Clique:
    """One clique's table, and sums of it over its axes, each made once."""

    def __init__(self, names: Names, belief: Array) -> None:
        self._names, self._belief = names, belief
        self._sums: dict[Names, Array] = {}

    def _sum(self, names: Names) -> Array:
        if names not in self._sums:
            away = tuple(i for i, n in enumerate(self._names) if n not in names)
            self._sums[names] = self._belief.sum(axis=away) if away else self._belief
        return self._sums[names]

    def _union(self, first: Names, second: Names) -> tuple[Array, NDArray[np.int64], NDArray[np.int64]]:
        """The probabilities on both, and for each of its cells that of the first and of the second, flattened."""
        both = tuple(n for n in self._names if n in first or n in second)
        table = self._sum(both)
        return table.reshape(-1), _cells(both, table.shape, first), _cells(both, table.shape, second)

    def onto(self, first: Names, second: Names) -> Array:
        """The probabilities of the cells of two sets of attributes, which may overlap; a row where the first is empty."""
        table, rows, columns = self._union(first, second)
        if not first:
            return table
        sizes = dict(zip(self._names, self._belief.shape, strict=True))
        found = np.zeros((math.prod(sizes[n] for n in first), math.prod(sizes[n] for n in second)))
        found[rows, columns] = table
        return found

    def through(self, given: Array, shared: Names, onto: Names) -> Array:
        """Σ given(r | s)·P(s, t) over s, for the cells t of ``onto``: rows by cells."""
        table, rows, columns = self._union(shared, onto)
        sizes = dict(zip(self._names, self._belief.shape, strict=True))
        found = np.zeros((given.shape[0], math.prod(sizes[n] for n in onto)))
        if found.size:
            _through(np.ascontiguousarray(given), table, rows, columns, found)
        return found


def _cells(names: Names, shape: tuple[int, ...], part: Names) -> NDArray[np.int64]:
    """For each cell of a table, that of some of its attributes."""
    place, stride = np.zeros((1,) * len(shape), np.int64), 1
    for axis in reversed(range(len(shape))):
        if names[axis] in part:
            line = stride * np.arange(shape[axis])
            place = place + line.reshape([-1 if k == axis else 1 for k in range(len(shape))])
            stride *= shape[axis]
    return np.broadcast_to(place, shape).reshape(-1)


@compiled("contract")
def _through(given: Array, table: Array, rows: Any, columns: Any, found: Array) -> None:
    for r in range(given.shape[0]):
        for i in range(table.size):
            found[r, columns[i]] += given[r, rows[i]] * table[i]
