"""Tables on up to three attributes that no clique contains together, many of them from one calibration.

    P(x | S)     the distribution of an attribute on one side of a separator S, given S: a *message*
    M            the clique at which the paths to the attributes part

Seen from M, attributes outside it lie behind different separators, and are independent given M:

    P(a, b, c) = Σ_M P(M)·P(a | S_a)·P(b | S_b)·P(c | S_c)        an attribute inside M has itself as message

Messages are computed when they are first needed, each from those that reach the clique before its separator, and are
kept. A table then costs one sum over a few attributes of one clique, where an elimination would visit all cliques in
between. The root of each tree is its largest clique. Messages go up for all attributes below a separator at once,
because few attributes are below a large separator. For a third attribute they go down, one by one, and are dropped
when they become many. Of the tables that are announced, those that meet in one clique by the same paths are summed
together, with the messages of all their attributes side by side.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow._compiled import compile_lazily
from hedgerow._types import Array, Names
from hedgerow.model.junction_tree import BYTES_PER_CELL, JunctionTree
from hedgerow.model.memory_layout import fold

MOST = 3  # most attributes of a table
KEPT_BYTES = 600_000_000  # memory for messages: half for those that go up, half for those that go down
CLIQUE_CELLS = 2_000_000  # most cells of the sums and places that are cached for one clique
FEW_CELLS = 1 << 12  # up to this many cells are handled with NumPy, and nothing is compiled
LONG_WAY = 4_000_000  # if clique cells × values of a message exceed this, the best order of summation is searched
TOGETHER = 2_000_000  # most numbers held while several tables are computed together
MOST_UNASKED = 2  # tables are computed together if that makes at most this many tables for each one requested
SCATTERED = 4_096  # from this many cells on, NumPy's sums over many short axes are slow


def fits(tree: JunctionTree, names: Sequence[str], memory_limit: float = math.inf) -> bool:
    """Return True if a table on these attributes can be computed here: the table and all messages are small."""
    cells = math.prod(tree.sizes[n] for n in names)
    small = 1 <= len(names) <= MOST and BYTES_PER_CELL * cells <= memory_limit
    return small and 8 * _root_tree(tree).message_cells <= min(memory_limit, KEPT_BYTES) / 2


class RootedForest:
    """The cliques of a forest, with the largest clique of each tree as its root."""

    def __init__(self, tree: JunctionTree) -> None:
        count = len(tree.cliques)
        joined: list[list[tuple[int, Names]]] = [[] for _ in range(count)]
        for i, (parent, shared) in enumerate(zip(tree.parents, tree.separators, strict=True)):
            if parent >= 0 and shared:
                joined[i].append((parent, shared))
                joined[parent].append((i, shared))
        self.above = [-1] * count  # the clique above each; -1 for a root
        self.separators: list[Names] = [()] * count  # the attributes shared with the clique above
        self.next: list[list[int]] = [[] for _ in range(count)]  # the cliques directly below each
        self.below = [set(names) for names in tree.cliques]  # the attributes in each clique and below it
        self.depth, self.top = [0] * count, [0] * count  # the number of cliques above each, and its root
        reached: set[int] = set()
        for top in sorted(range(count), key=lambda i: -math.prod(tree.shapes[i])):
            down = [] if top in reached else [top]
            for c in down:  # the list grows while it is read
                reached.add(c)
                self.top[c] = top
                for d, shared in joined[c]:
                    if d != self.above[c]:
                        self.above[d], self.separators[d], self.depth[d] = c, shared, self.depth[c] + 1
                        self.next[c].append(d)
                        down.append(d)
            for c in reversed(down[1:]):
                self.below[self.above[c]] |= self.below[c]
        self.toward = [
            {n: c for c in below for n in self.below[c].difference(own)}
            for own, below in zip(tree.cliques, self.next, strict=True)
        ]  # for each clique, the next clique on the path to an attribute that is below it and not in it
        self.home = {n: i for i in sorted(range(count), key=lambda i: -self.depth[i]) for n in tree.cliques[i]}
        self.cells = [math.prod(tree.sizes[n] for n in shared) for shared in self.separators]
        self.message_cells = sum(
            cells * sum(tree.sizes[n] for n in below.difference(shared))
            for above, cells, shared, below in zip(self.above, self.cells, self.separators, self.below, strict=True)
            if above >= 0
        )

    def further(self, clique: int, names: Names) -> int | None:
        """Return the clique below this one where the attributes still meet; None if they part here.

        Two of the attributes are still together there, or one of them together with all that the others share with
        it.
        """
        ways = [self.toward[clique][n] for n in names if n in self.toward[clique]]
        for i, way in enumerate(ways):
            if way in ways[:i] or all(n in self.below[way] for n in names):
                return way
        return None


@lru_cache(maxsize=64)
def _root_tree(tree: JunctionTree) -> RootedForest:
    """Return the rooted form of a tree, cached."""
    return RootedForest(tree)


class SmallTables:
    """Tables of up to three attributes from the calibrated beliefs of a tree."""

    def __init__(self, tree: JunctionTree, beliefs: Sequence[Array]) -> None:
        self._tree, self._rooted = tree, _root_tree(tree)
        self._cliques = [CliqueTable(names, belief) for names, belief in zip(tree.cliques, beliefs, strict=True)]
        self._up: dict[int, dict[str, Array]] = {}
        self._down: dict[tuple[int, str], Array] = {}
        self._down_cells = 0
        self._met: dict[Names, tuple[_Meeting, Names]] = {}  # meetings of the announced tables
        self._alike: dict[_Meeting, list[Names]] = {}  # outside attributes by meeting, of tables computed together
        self._made: dict[tuple[Names, Names], Array] = {}  # computed tables, by inside and outside attributes

    def marginal(self, names: Names) -> Array:
        """Return the probabilities on these attributes, in their order."""
        found, order = np.ones(()), list[str]()
        for together in self._trees(names):
            meeting, outside = self._met.get(together) or self._meeting(together)
            if together in self._met and meeting in self._alike and (meeting.inside, outside) not in self._made:
                self._make(meeting, self._alike[meeting])
            table = self._made.get((meeting.inside, outside))
            if table is None:
                table = self._sum_paths(meeting, [(n,) for n in outside])
            found = np.multiply.outer(found, table)
            order += [*meeting.inside, *outside]
        return np.ascontiguousarray(np.transpose(found, [order.index(n) for n in names]))

    def expect(self, sets: Iterable[Names]) -> None:
        """Announce tables: those whose attributes reach the same clique by the same paths are computed together.

        They equal, to the last bit, the results of single computations.
        """
        together = dict.fromkeys(part for names in sets for part in self._trees(names) if len(part) > 1)
        self._met, self._made = {part: self._meeting(part) for part in together}, {}
        alike: dict[_Meeting, list[Names]] = {}
        for meeting, outside in self._met.values():
            alike.setdefault(meeting, []).append(outside)
        self._alike = {meeting: all_outside for meeting, all_outside in alike.items() if _are_most(all_outside)}

    def _trees(self, names: Names) -> list[Names]:
        """Group the attributes by tree: attributes of different trees are independent."""
        parts: dict[int, list[str]] = {}
        for name in names:
            parts.setdefault(self._rooted.top[self._rooted.home[name]], []).append(name)
        return [tuple(part) for part in parts.values()]

    def _meeting(self, names: Names) -> tuple[_Meeting, Names]:
        """Return the meeting M of these attributes, and those outside it in the order of their paths.

        The search goes from the root down while two of the attributes are in or below the next clique and none is
        left above it. Attributes that come through the largest separators are summed over first, so that what is left
        lies along the attributes inside. Where that would take long, the cheapest order is searched.
        """
        rooted, at = self._rooted, self._rooted.top[self._rooted.home[names[0]]]
        while (further := rooted.further(at, names)) is not None:
            at = further
        table, toward = self._cliques[at], rooted.toward[at]
        inside = table.join(tuple(n for n in names if n in table.names))
        coming = []
        for n in names:
            if n not in table.names:
                way = toward.get(n, at)  # the clique itself stands for the path from above
                coming.append(_Path(way, rooted.separators[way], n, self._tree.sizes[n]))
        coming.sort(key=lambda way: (-rooted.cells[way.through], way.through))
        if len(coming) > 1 and table.size(table.names) * max(way.values for way in coming) > LONG_WAY:
            coming = min(map(list, itertools.permutations(coming)), key=lambda order: _length(table, inside, order))
        return _Meeting(at, inside, tuple(way.through for way in coming)), tuple(way.name for way in coming)

    def _make(self, meeting: _Meeting, all_outside: Sequence[Names]) -> None:
        """Compute the tables of all these attributes together, in parts where their sums would be large."""
        others = [tuple(dict.fromkeys(names)) for names in zip(*all_outside, strict=True)]
        if len(all_outside) > 1 and self._largest(meeting, others) > TOGETHER:
            axis = max(range(len(others)), key=lambda k: len(others[k]))
            first = set(others[axis][: len(others[axis]) // 2])
            for half in (True, False):
                self._make(meeting, [outside for outside in all_outside if (outside[axis] in first) is half])
            return
        table, places = self._sum_paths(meeting, others), []
        for names in others:
            ends = np.cumsum([0, *(self._tree.sizes[n] for n in names)]).tolist()
            places.append({n: slice(*cut) for n, cut in zip(names, itertools.pairwise(ends), strict=True)})
        whole: list[slice] = [slice(None)] * len(meeting.inside)
        for outside in all_outside:
            own = [place[n] for place, n in zip(places, outside, strict=True)]
            self._made[meeting.inside, outside] = table[tuple(whole + own)]

    def _largest(self, meeting: _Meeting, others: Sequence[Names]) -> int:
        """Return the largest number of values in memory while these attributes are summed over."""
        table, columns, most = self._cliques[meeting.clique], 1, 0
        shared = [self._rooted.separators[way] for way in meeting.ways]
        for k, names in enumerate(others):
            columns *= sum(self._tree.sizes[n] for n in names)
            most = max(most, columns * table.size(table.join(meeting.inside, *shared[k + 1 :])))
        return most

    def _sum_paths(self, meeting: _Meeting, others: Sequence[Names]) -> Array:
        """Compute the formula of the module docstring.

        The table's axes are the attributes inside, and for each path the values of all attributes that come by it.
        """
        table, inside = self._cliques[meeting.clique], meeting.inside
        own = [self._rooted.separators[way] for way in meeting.ways]
        left = table.join(inside, *own)
        values, columns, shape = table.sum(left).reshape(-1, 1), 1, [self._tree.sizes[n] for n in inside]
        for k, (way, names) in enumerate(zip(meeting.ways, others, strict=True)):
            messages = [self._from_above(way, n) if way == meeting.clique else self._from_below(way)[n] for n in names]
            given = messages[0] if len(messages) == 1 else np.concatenate(messages, axis=1)
            onto = table.join(inside, *own[k + 1 :])
            found = np.zeros((table.size(onto), columns, given.shape[1]))
            _pass_messages(values, table.places(left, own[k]), table.places(left, onto), given, found)
            values, left, columns = found.reshape(len(found), -1), onto, columns * given.shape[1]
            shape.append(given.shape[1])
        return values.reshape(shape)

    def _from_above(self, clique: int, name: str) -> Array:
        """Return P(x | S), with S the separator above a clique and x an attribute that is not below it.

        The array has a row for each cell of S and a column for each value of x.
        """
        # Go up to where the message is known, or where the attribute is in the clique above or below that clique.
        rooted, path = self._rooted, [clique]
        while (path[-1], name) not in self._down and name not in rooted.below[rooted.above[path[-1]]]:
            path.append(rooted.above[path[-1]])
        found = self._down.get((path[-1], name))
        for c in reversed(path if found is None else path[:-1]):
            found = self._pass_down(c, name, found)
            if 8 * (self._down_cells + found.size) > KEPT_BYTES // 2:
                self._down, self._down_cells = {}, 0
            self._down[c, name] = found
            self._down_cells += found.size
        assert found is not None
        return found

    def _pass_down(self, clique: int, name: str, come: Array | None) -> Array:
        """Pass a message down one separator.

        ``come`` is the message into the clique above, if the attribute is neither in that clique nor below it.
        """
        rooted, shared, start = self._rooted, self._rooted.separators[clique], self._rooted.above[clique]
        table = self._cliques[start]
        if name in table.names:
            return table.onto(shared, (name,)) / self._likely(clique)
        if come is not None:
            return table.through(come, rooted.separators[start], shared) / self._likely(clique)
        way = next(c for c in rooted.next[start] if name in rooted.below[c])
        return table.through(self._from_below(way)[name], rooted.separators[way], shared) / self._likely(clique)

    def _likely(self, clique: int) -> Array:
        """Return P(S) as a column, with S the separator above the clique."""
        return np.maximum(self._cliques[clique].sum(self._rooted.separators[clique]).reshape(-1, 1), 1e-300)

    def _from_below(self, clique: int) -> dict[str, Array]:
        """Return P(x | S) for each attribute x below the separator S above a clique."""
        waiting = [] if clique in self._up else [clique]
        for c in waiting:  # the list grows while it is read
            waiting += [d for d in self._rooted.next[c] if d not in self._up]
        for c in reversed(waiting):
            self._up[c] = self._pass_up(c)
        return self._up[clique]

    def _pass_up(self, clique: int) -> dict[str, Array]:
        """Compute the messages up from a clique, once the cliques below have theirs."""
        table, shared, likely = self._cliques[clique], self._rooted.separators[clique], self._likely(clique)
        found = {n: table.onto(shared, (n,)) / likely for n in table.names if n not in shared}
        for c in self._rooted.next[clique]:
            come = self._up[c]
            rows = np.concatenate(list(come.values()), axis=1)
            passed = table.through(rows, self._rooted.separators[c], shared) / likely
            cuts = np.cumsum([given.shape[1] for given in come.values()])[:-1]
            parts = np.split(passed, cuts, axis=1)
            found.update(zip(come, map(np.ascontiguousarray, parts), strict=True))
        return found


class _Meeting(NamedTuple):
    """The clique where attributes meet, those of them that are inside it, and the path of each of the others.

    A path is named by the clique it comes through, below this one; the clique itself stands for the path from above.
    """

    clique: int
    inside: Names
    ways: tuple[int, ...]


class _Path(NamedTuple):
    """The path of one attribute to a meeting: clique, separator, name and number of values."""

    through: int
    shared: Names
    name: str
    values: int


def _are_most(all_outside: Sequence[Names]) -> bool:
    """Return True if several tables are requested, and not far fewer than all combinations of their attributes."""
    others = math.prod(len(set(names)) for names in zip(*all_outside, strict=True))
    return 1 < others <= MOST_UNASKED * len(all_outside)


def _length(table: CliqueTable, inside: Names, coming: Sequence[_Path]) -> int:
    """Return the number of products that summing in this order takes, an upper bound on the numbers held."""
    total, columns = 0, 1
    for k, way in enumerate(coming):
        columns *= way.values
        total += table.size(table.join(inside, *(each.shared for each in coming[k:]))) * columns
    return total


class CliqueTable:
    """One clique's table with its sums and index maps between sets of its attributes, each computed once."""

    def __init__(self, names: Names, belief: Array) -> None:
        self.names, self._belief = names, belief
        self._sizes = dict(zip(names, belief.shape, strict=True))
        self._sums: dict[Names, Array] = {}
        self._places: dict[tuple[Names, Names], NDArray[np.int64]] = {}
        self._kept = 0  # number of cells in both caches

    def size(self, names: Names) -> int:
        """Return the number of cells of these attributes."""
        return math.prod(self._sizes[n] for n in names)

    def join(self, *sets: Names) -> Names:
        """Return the union of these sets, in the clique's order."""
        wanted = {n for s in sets for n in s}
        return tuple(n for n in self.names if n in wanted)

    def sum(self, names: Names) -> Array:
        """Return the probabilities on these attributes."""
        if names not in self._sums:
            away = tuple(i for i, n in enumerate(self.names) if n not in names)
            found = self._belief
            if away and found.size < SCATTERED:
                found = np.ascontiguousarray(found.sum(axis=away))
            elif away:
                kept = tuple(i for i, n in enumerate(self.names) if n in names)
                found = fold(found.shape, kept).sum_in_order(found)
            self._make_room(found.size)
            self._sums[names] = found
        return self._sums[names]

    def places(self, names: Names, part: Names) -> NDArray[np.int64]:
        """Return, for each cell of ``names``, the cell of ``part`` that it lies in."""
        if (names, part) not in self._places:
            shape = np.array([self._sizes[n] for n in names], np.int64)
            inside = np.array([n in part for n in names], bool)
            found = np.empty(self.size(names), np.int64)
            if found.size <= FEW_CELLS:
                _places_plainly(shape, inside, found)
            else:
                _places(shape, inside, found)
            self._make_room(found.size)
            self._places[names, part] = found
        return self._places[names, part]

    def _make_room(self, cells: int) -> None:
        """Empty the caches when they hold too many cells."""
        self._kept += cells
        if self._kept > CLIQUE_CELLS:
            self._sums, self._places, self._kept = {}, {}, cells

    def onto(self, first: Names, second: Names) -> Array:
        """Return the joint probabilities of two sets of attributes, which may overlap, as a matrix."""
        both = self.join(first, second)
        found = np.zeros((self.size(first), self.size(second)))
        found[self.places(both, first), self.places(both, second)] = self.sum(both).reshape(-1)
        return found

    def through(self, given: Array, shared: Names, onto: Names) -> Array:
        """Return Σ_s P(s, t)·given[s] for the cells t of ``onto``: carry a message from one separator to another."""
        both = self.join(shared, onto)
        found = np.zeros((self.size(onto), given.shape[1]))
        table = self.sum(both).reshape(-1)
        if table.size * given.shape[1] <= FEW_CELLS:
            terms = table[:, None] * given[self.places(both, shared)]
            np.add.at(found, self.places(both, onto), terms)
            return found
        _through(table, self.places(both, shared), self.places(both, onto), np.ascontiguousarray(given), found)
        return found


def _places_plainly(shape: Any, inside: Any, found: Any) -> None:
    """Find what ``_places`` finds."""
    strides = np.cumprod(np.append(1, np.where(inside, shape, 1)[:0:-1]))[::-1] * inside
    lines = [stride * np.arange(size) for stride, size in zip(strides, shape, strict=True)]
    found[:] = functools.reduce(np.add.outer, lines, np.zeros((), np.int64)).reshape(-1)


@compile_lazily(plain=_places_plainly)
def _places(shape: Any, inside: Any, found: Any) -> None:
    """Find, for each cell of a table, its place among the cells of the attributes ``inside``."""
    found[0] = 0
    block, stride = 1, 1  # number of cells of the axes so far, and of those among them that are inside
    for axis in range(shape.size - 1, -1, -1):
        step = stride if inside[axis] else 0
        for k in range(1, shape[axis]):
            for i in range(block):
                found[k * block + i] = found[i] + k * step
        block *= shape[axis]
        if inside[axis]:
            stride *= shape[axis]


def _through_plainly(table: Array, sources: Any, targets: Any, given: Array, found: Array) -> None:
    """Add to ``found`` as ``_through`` does."""
    terms = np.empty_like(found)
    for cells in _in_turn(targets, len(found)):
        np.take(given, sources[cells], axis=0, out=terms, mode="clip")
        terms *= table[cells, None]
        found += terms


def _pass_messages_plainly(values: Array, sources: Any, targets: Any, given: Array, found: Array) -> None:
    """Add to ``found`` as ``_pass_messages`` does."""
    for cells in _in_turn(targets, len(found)):
        found += values[cells, :, None] * given[sources[cells], None, :]


def _in_turn(targets: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return rows of cells: in each row one for each target, which all have equally many, in the order of memory."""
    return np.ascontiguousarray(np.argsort(targets, kind="stable").reshape(count, -1).T)


# Neither contracts products and sums, so that the plain functions give the same bits.


@compile_lazily(plain=_through_plainly)
def _through(table: Array, sources: Any, targets: Any, given: Array, found: Array) -> None:
    """Add table·given[source] to found[target], a row for each cell."""
    for i in range(table.size):
        t, row, onto = table[i], given[sources[i]], found[targets[i]]
        for r in range(row.size):
            onto[r] += t * row[r]


@compile_lazily(plain=_pass_messages_plainly)
def _pass_messages(values: Array, sources: Any, targets: Any, given: Array, found: Array) -> None:
    """Add values ⊗ given[source] to found[target], a matrix for each cell.

    The places are unsigned, so that none is counted from the end.
    """
    rows, onto, columns, width = given.reshape(-1), found.reshape(-1), values.shape[1], given.shape[1]
    for i in range(values.shape[0]):
        s, t = np.uint64(sources[i] * width), np.uint64(targets[i] * columns * width)
        for j in range(columns):
            v = values[i, j]
            for k in range(width):
                onto[t + np.uint64(k)] += v * rows[s + np.uint64(k)]
            t += np.uint64(width)
