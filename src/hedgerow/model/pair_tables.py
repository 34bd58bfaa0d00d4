"""The probabilities on all pairs of attributes at once, from one calibration of a junction tree.

    G[(a, v), (b, w)] = P(x_a = v, x_b = w)        one matrix over the values of all attributes
    U_C[s, (a, v)]    = P(x_a = v, x_S = s)        a from the part of the tree below clique C, S its separator

Given its separator, the part of the tree below a clique is independent of the rest. So U of a child D passes through
its parent C as U_D/P(S_D): onto single attributes of C, which gives their pairs with everything below D; onto C's own
separator, for cliques further up; and onto the separator of another child E, where it meets U_E. Every step is a sum
over one clique's cells for each row, and no pair needs an elimination of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array, Names
from hedgerow.model.junction_tree import JunctionTree
from hedgerow.model.small_tables import CliqueTable


class PairTables:
    """The layout of the matrix of all pairs: block (a, b) is the table on a and b."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        ends = np.cumsum([0, *sizes.values()])
        self.starts = ends[:-1]
        self.values = int(ends[-1])
        self._slices = {name: slice(int(a), int(b)) for name, a, b in zip(sizes, ends, ends[1:], strict=False)}

    def block(self, matrix: NDArray[Any], names: Names) -> NDArray[Any]:
        """Return the table of one pair, as a view into the matrix."""
        first, second = names
        return matrix[self._slices[first], self._slices[second]]

    def sums(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of each block, as a matrix over attributes."""
        return np.asarray(np.add.reduceat(np.add.reduceat(matrix, self.starts, axis=0), self.starts, axis=1))

    def pair_matrix(self, tree: JunctionTree, beliefs: Sequence[Array]) -> Array:
        """Return G of a calibrated tree. Blocks of an attribute with itself are not filled in."""
        found = np.empty((self.values, self.values))
        singles = self._singles(tree, beliefs)
        np.multiply.outer(singles, singles, out=found)  # right for attributes in different trees, which are independent
        below: dict[int, list[tuple[int, NDArray[np.int64], Array]]] = {}  # by parent: child, rows of G, Uᵀ
        for c, names in enumerate(tree.cliques):
            clique = CliqueTable(names, beliefs[c])
            own, rest = tree.separators[c], [n for n in names if n not in tree.separators[c]]
            for i, a in enumerate(names):
                for b in names[:i]:
                    self._put(found, self._places([a]), self._places([b]), clique.onto((a,), (b,)))
            rows = [self._places(rest)]
            parts = [np.concatenate([clique.onto(own, (n,)) for n in rest], axis=1)]
            children = below.pop(c, [])
            for k, (child, places, table) in enumerate(children):
                shared = tree.separators[child]
                given = table / np.maximum(clique.sum(shared).reshape(-1, 1), 1e-300)
                for n in (n for n in names if n not in shared):
                    self._put(found, self._places([n]), places, clique.through(given, shared, (n,)))
                for other, theirs, there in children[:k]:
                    apart = tree.separators[other]
                    meeting = clique.through(given, shared, apart)
                    meeting /= np.maximum(clique.sum(apart).reshape(-1, 1), 1e-300)
                    self._put(found, places, theirs, meeting.T @ there)
                rows.append(places)
                parts.append(clique.through(given, shared, own))
            if tree.parents[c] >= 0 and own:
                below.setdefault(tree.parents[c], []).append((c, np.concatenate(rows), np.concatenate(parts, axis=1)))
        return found

    def _places(self, names: Sequence[str]) -> NDArray[np.int64]:
        return np.concatenate([np.arange(self._slices[n].start, self._slices[n].stop) for n in names])

    def _put(self, matrix: Array, rows: NDArray[np.int64], columns: NDArray[np.int64], table: Array) -> None:
        matrix[np.ix_(rows, columns)] = table
        matrix[np.ix_(columns, rows)] = table.T

    def _singles(self, tree: JunctionTree, beliefs: Sequence[Array]) -> Array:
        """Return the probabilities on all single attributes, end to end."""
        found, seen = np.empty(self.values), set()
        for names, belief in zip(tree.cliques, beliefs, strict=True):
            for i, name in enumerate(names):
                if name not in seen:
                    seen.add(name)
                    found[self._slices[name]] = belief.sum(axis=tuple(k for k in range(belief.ndim) if k != i))
        return found
