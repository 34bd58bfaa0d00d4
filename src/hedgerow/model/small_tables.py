"""The probabilities on two or three attributes that no clique holds together, many of them from one calibration.

    P(x | s)     what an attribute on one side of a separator S is likely to be, given S: a *message*
    M            the clique at which the ways to three attributes part

Seen from M, attributes outside it lie behind different separators, and are independent given M:

    P(a, b, c) = Σ_M P(M)·P(a | S_a)·P(b | S_b)·P(c | S_c)        an attribute of M is its own, with certainty

Messages are made when they are first needed, each from those that come to the clique before its separator, and kept: a table
then costs one sum over a few attributes of one clique, where an elimination goes through all cliques in between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._compiled import compiled
from hedgerow._types import Array, Names
from hedgerow.model.junction_tree import BYTES_PER_CELL, JunctionTree

MOST = 3  # attributes of a table
INSIDE, ELSEWHERE = -1, -2  # not the number of a separator: the clique has the attribute, or its tree has not
MESSAGE_CELLS = 16_000_000  # of the values of all attributes times the largest separator
KEPT_BYTES = 400_000_000  # of all messages, of which an attribute has one at each separator
CLIQUE_CELLS = 2_000_000  # of the sums and places that are kept of one clique


def fits(tree: JunctionTree, names: Sequence[str], memory_limit: float = math.inf) -> bool:
    """Whether a table on these attributes is one for here: small, and messages are."""
    cells = math.prod(tree.sizes[n] for n in names)
    return 1 <= len(names) <= MOST and BYTES_PER_CELL * cells <= memory_limit and _moderate(tree, memory_limit)


@lru_cache(maxsize=64)
def _moderate(tree: JunctionTree, memory_limit: float) -> bool:
    values = sum(tree.sizes.values())
    messages = [values * math.prod(tree.sizes[n] for n in separator) for separator in tree.separators]
    return max(messages) <= MESSAGE_CELLS and 8 * sum(messages) <= min(memory_limit / 4, KEPT_BYTES)


class SmallTables:
    """Tables of up to three attributes from the calibrated beliefs of a tree."""

    def __init__(self, tree: JunctionTree, beliefs: Sequence[Array]) -> None:
        self._tree = tree
        self._place = {name: i for i, name in enumerate(tree.sizes)}
        self._cliques = [CliqueTable(names, belief) for names, belief in zip(tree.cliques, beliefs, strict=True)]
        self._joined: list[list[int]] = [[] for _ in tree.cliques]  # the separators of each clique, by their child
        for i, parent in enumerate(tree.parents):
            if parent >= 0 and tree.separators[i]:
                self._joined[i].append(i)
                self._joined[parent].append(i)
        self._toward, self._first = _directions(tree)
        self._messages: dict[tuple[int, int], dict[str, Array]] = {}

    def marginal(self, names: Names) -> Array:
        """The probabilities on these attributes, in their order."""
        places = [self._place[n] for n in names]
        at = self._meeting(places)
        apart = [n for n, x in zip(names, places, strict=True) if self._toward[at, x] == ELSEWHERE]
        if not apart:
            return self._at(at, names)
        together = tuple(n for n in names if n not in apart)
        first, second = self._at(at, together), self.marginal(tuple(apart))
        joint = np.multiply.outer(first, second)
        order = [(*together, *apart).index(n) for n in names]
        return np.ascontiguousarray(np.transpose(joint, order))

    def _meeting(self, places: list[int]) -> int:
        """From the first attribute's clique on, as long as the ways to two of them are one."""
        at = int(self._first[places[0]])
        while True:
            ways = [w for w in self._toward[at, places].tolist() if w >= 0]
            common = next((w for w in ways if ways.count(w) > 1), None)
            if common is None:
                return at
            at = common if common != at else self._tree.parents[at]

    def _at(self, clique: int, names: Names) -> Array:
        """The formula above: all attributes in the clique's tree, and behind different separators.

        Those behind the largest separators are summed over first; what is left then lies along the attributes inside.
        """
        ways = {n: int(self._toward[clique, self._place[n]]) for n in names}
        outside = [n for n in names if ways[n] != INSIDE]
        inside = tuple(n for n in self._tree.cliques[clique] if ways.get(n) == INSIDE)
        outside.sort(key=lambda n: -math.prod(self._tree.sizes[m] for m in self._tree.separators[ways[n]]))
        table, own = self._cliques[clique], tuple(self._tree.separators[ways[n]] for n in outside)
        left = table.joined(inside, *own)
        values, rows = table.sum(left).reshape(-1, 1), 1
        for k, name in enumerate(outside):
            onto = table.joined(inside, *own[k + 1 :])
            given = self._message(ways[name], clique)[name]
            found = np.zeros((table.size(onto), rows, given.shape[1]))
            _passed(values, table.places(left, own[k]), table.places(left, onto), given, found)
            values, left, rows = found.reshape(len(found), -1), onto, rows * given.shape[1]
        shape = [self._tree.sizes[n] for n in (*inside, *outside)]
        order = [(*inside, *outside).index(n) for n in names]
        return np.ascontiguousarray(np.transpose(values.reshape(shape), order))

    def _message(self, separator: int, into: int) -> dict[str, Array]:
        """P(x | S) for the attributes x on the other side of a separator from the clique ``into``: cells of S by values."""
        found = self._messages.get((separator, into))
        if found is None:
            child, parent = separator, self._tree.parents[separator]
            start = child if into == parent else parent
            clique, shared = self._cliques[start], self._tree.separators[separator]
            below = np.maximum(clique.sum(shared).reshape(-1, 1), 1e-300)
            found = {n: clique.onto(shared, (n,)) / below for n in clique.names if n not in shared}
            for other in self._joined[start]:
                if other != separator:
                    come = self._message(other, start)
                    rows = np.concatenate(list(come.values()), axis=1)
                    passed = clique.through(rows, self._tree.separators[other], shared) / below
                    cuts = np.cumsum([given.shape[1] for given in come.values()])[:-1]
                    parts = np.split(passed, cuts, axis=1)
                    found.update(zip(come, map(np.ascontiguousarray, parts), strict=True))
            self._messages[separator, into] = found
        return found


def _directions(tree: JunctionTree) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each clique and attribute, behind which of its separators the attribute is; and the first clique of each attribute."""
    place = {name: i for i, name in enumerate(tree.sizes)}
    member = np.zeros((len(tree.cliques), len(place)), bool)
    for row, names in zip(member, tree.cliques, strict=True):
        row[[place[n] for n in names]] = True
    below = member.copy()
    root = list(range(len(tree.cliques)))
    for c, parent in enumerate(tree.parents):  # children first
        if parent >= 0 and tree.separators[c]:
            below[parent] |= below[c]
    found = np.full(member.shape, ELSEWHERE)
    for c in reversed(range(len(tree.cliques))):
        parent = tree.parents[c]
        if parent >= 0 and tree.separators[c]:
            root[c] = root[parent]
            found[c, below[root[c]]] = c
    for c, parent in enumerate(tree.parents):
        if parent >= 0 and tree.separators[c]:
            found[parent, below[c]] = c
    found[member] = INSIDE
    return found, np.argmax(member, axis=0)


class CliqueTable:
    """One clique's table, sums of it, and where the cells of some attributes are among those of others; each made once."""

    def __init__(self, names: Names, belief: Array) -> None:
        self.names, self._belief = names, belief
        self._sizes = dict(zip(names, belief.shape, strict=True))
        self._sums: dict[Names, Array] = {}
        self._places: dict[tuple[Names, Names], NDArray[np.int64]] = {}
        self._kept = 0  # cells of both

    def size(self, names: Names) -> int:
        return math.prod(self._sizes[n] for n in names)

    def joined(self, *sets: Names) -> Names:
        """All these attributes, in order."""
        return tuple(n for n in self.names if any(n in s for s in sets))

    def sum(self, names: Names) -> Array:
        """The probabilities on these attributes."""
        if names not in self._sums:
            away = tuple(i for i, n in enumerate(self.names) if n not in names)
            found = np.ascontiguousarray(self._belief.sum(axis=away)) if away else self._belief
            self._make_room(found.size)
            self._sums[names] = found
        return self._sums[names]

    def places(self, names: Names, part: Names) -> NDArray[np.int64]:
        """For each cell of some attributes, that of a part of them."""
        if (names, part) not in self._places:
            shape = [self._sizes[n] for n in names]
            place, stride = np.zeros((1,) * len(shape), np.int64), 1
            for axis in reversed(range(len(shape))):
                if names[axis] in part:
                    line = stride * np.arange(shape[axis])
                    place = place + line.reshape([-1 if k == axis else 1 for k in range(len(shape))])
                    stride *= shape[axis]
            found = np.broadcast_to(place, shape).reshape(-1)
            self._make_room(found.size)
            self._places[names, part] = found
        return self._places[names, part]

    def _make_room(self, cells: int) -> None:
        self._kept += cells
        if self._kept > CLIQUE_CELLS:
            self._sums, self._places, self._kept = {}, {}, cells

    def onto(self, first: Names, second: Names) -> Array:
        """The probabilities of the cells of two sets of attributes, which may overlap, as a matrix."""
        both = self.joined(first, second)
        found = np.zeros((self.size(first), self.size(second)))
        found[self.places(both, first), self.places(both, second)] = self.sum(both).reshape(-1)
        return found

    def through(self, given: Array, shared: Names, onto: Names) -> Array:
        """Σ_s P(s, t)·given[s] for the cells t of ``onto``: given what is known along one separator, along another."""
        both = self.joined(shared, onto)
        found = np.zeros((self.size(onto), given.shape[1]))
        table = self.sum(both).reshape(-1)
        _through(table, self.places(both, shared), self.places(both, onto), np.ascontiguousarray(given), found)
        return found


@compiled("contract")
def _through(table: Array, sources: Any, targets: Any, given: Array, found: Array) -> None:
    """found[target] += table·given[source], a row for each cell."""
    for i in range(table.size):
        t, row, onto = table[i], given[sources[i]], found[targets[i]]
        for r in range(row.size):
            onto[r] += t * row[r]


@compiled("contract")
def _passed(values: Array, sources: Any, targets: Any, given: Array, found: Array) -> None:
    """found[target] += values ⊗ given[source], a matrix for each cell."""
    for i in range(values.shape[0]):
        row = given[sources[i]]
        for j in range(values.shape[1]):
            v, onto = values[i, j], found[targets[i], j]
            for k in range(row.size):
                onto[k] += v * row[k]
