"""Triangulation: from attribute sets to the maximal cliques of a chordal graph, joined into a forest.

Koller & Friedman, "Probabilistic Graphical Models", ch. 9.4.3 (greedy elimination orders) and 10.4 (clique trees).

Attributes are positions, sets of attributes are bit masks, and the elimination is compiled: the forest of hundreds of
attributes takes a few milliseconds. Everything is deterministic, and nothing depends on the order in which the sets
are given.

The size of a forest with each of many further sets is predicted without building a forest for each:

    cells_with   exact, for each set: a greedy elimination
    edge_cells   upper bounds, for every pair of attributes at once, from the present tree

A tree that holds a and b apart can take the edge ab along the path between them. Let S_1 … S_k be the separators on
that path from the last clique with a to the first with b, and S_{k+1} = {b}. The chain of new cliques {a} ∪ S_i ∪
S_{i+1} joins both, and every old clique hangs on its own S_i ∪ S_{i+1}. So it is a junction tree, with at most Σ
m_a·cells(S_i ∪ S_{i+1}) more cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow._compiled import compile_lazily
from hedgerow._types import Array, Names

Words = NDArray[np.uint64]  # one row per attribute: its neighbours as bits, 64 to a word
BITS = 64  # bits of a word
FEW = 6  # graphs of at most this many attributes are not worth compiling for


@lru_cache(maxsize=65536)
def cells(sizes: tuple[int, ...], sets: frozenset[int]) -> int:
    """Return the number of cells of the junction forest of these sets: the smaller of the two heuristics' forests."""
    near = links(len(sizes), sets)
    found = []
    for fill_first in (True, False):
        order, maximal = _eliminate(near, sizes, fill_first)
        cliques = (around | 1 << v for (v, around), largest in zip(order, maximal, strict=True) if largest)
        found.append(_cells(sizes, cliques))
    return min(found)


@lru_cache(maxsize=1024)
def forest(sizes: tuple[int, ...], sets: frozenset[int]) -> list[tuple[int, int]]:
    """Return maximal cliques with their parents' positions, children first: the smaller of two heuristics' forests."""
    near = links(len(sizes), sets)
    both = [_join_cliques(_eliminate(near, sizes, fill_first)[0]) for fill_first in (True, False)]
    return min(both, key=lambda joined: _cells(sizes, (mask for mask, _ in joined)))


def _cells(sizes: tuple[int, ...], masks: Iterable[int]) -> int:
    return sum(math.prod(sizes[i] for i in bits(mask)) for mask in masks)


def links(attributes: int, sets: Iterable[int]) -> Words:
    """Return for each attribute the attributes that share a set with it."""
    near = [0] * attributes
    for mask in sets:
        for v in bits(mask):
            near[v] |= mask
    return words(attributes, [mask & ~(1 << v) for v, mask in enumerate(near)])


def words(attributes: int, masks: Sequence[int]) -> Words:
    """Pack masks of ``attributes`` bits into rows of words."""
    width = max(1, -(-attributes // BITS))
    rows = b"".join(mask.to_bytes(width * BITS // 8, "little") for mask in masks)
    return np.frombuffer(rows, "<u8").reshape(-1, width)


def _eliminate(near: Words, sizes: tuple[int, ...], fill_first: bool) -> tuple[list[tuple[int, int]], list[bool]]:
    """Return (attribute, its neighbours when eliminated) in order, and whether each makes a maximal clique."""
    if len(sizes) <= FEW:
        return eliminate_few(masks_of(near), [math.log2(s) for s in sizes], fill_first)
    around, order, maximal = near.copy(), np.empty(len(sizes), np.int64), np.empty(len(sizes), np.bool_)
    eliminate(around, np.array([math.log2(s) for s in sizes]), fill_first, order, maximal)
    return [(v, int.from_bytes(around[v].tobytes(), "little")) for v in order.tolist()], maximal.tolist()


def masks_of(near: Words) -> list[int]:
    """Unpack rows of words into Python integers."""
    return [int.from_bytes(row.tobytes(), "little") for row in near]


def eliminate_few(
    near: list[int], weights: Sequence[float], fill_first: bool
) -> tuple[list[tuple[int, int]], list[bool]]:
    """Eliminate as ``eliminate`` does, on masks that are Python integers: nothing is compiled."""

    def fill_and_weight(v: int) -> tuple[int, float]:
        fill, weight = 0, weights[v]
        for u in bits(near[v]):
            weight += weights[u]
            fill += (near[v] & ~near[u]).bit_count() - 1
        return fill, weight

    def worth(v: int) -> tuple[float, float, int]:
        fill, weight = known[v]
        return (-1.0, weight, v) if fill == 0 else (fill, weight, v) if fill_first else (weight, fill, v)

    near, left, maximal = list(near), set(range(len(near))), []
    order: list[tuple[int, int]] = []
    known, childless = [fill_and_weight(v) for v in range(len(near))], set(left)
    while left:
        v = min(map(worth, left))[-1]
        left.remove(v)
        parents = [u for u, around in order if u in childless and around >> v & 1]
        maximal.append(not any(near[u].bit_count() == near[v].bit_count() + 1 for u in parents))
        childless -= set(parents)
        order.append((v, near[v]))
        touched = near[v]
        for u in bits(near[v]):
            near[u] = (near[u] | near[v]) & ~(1 << u | 1 << v)
            touched |= near[u]
        for u in left:
            if touched >> u & 1:
                known[u] = fill_and_weight(u)
    return order, maximal


def _eliminate_plainly(near: Words, weights: Array, fill_first: bool, order: Any, maximal: Any) -> None:
    """Eliminate as ``eliminate`` does, in Python."""
    found, largest = eliminate_few(masks_of(near), weights.tolist(), fill_first)
    order[:], maximal[:] = [v for v, _ in found], largest
    around = dict(found)
    near[:] = words(len(near), [around[v] for v in range(len(near))])


def cells_with_few(near: list[int], sizes: Sequence[int], joined: Sequence[int]) -> list[int]:
    """Return what ``cells_with_each`` finds, on masks that are Python integers: nothing is compiled."""
    weights, found = [math.log2(size) for size in sizes], []
    for mask in joined:
        linked = [(around | mask) & ~(1 << v) if mask >> v & 1 else around for v, around in enumerate(near)]
        totals = []
        for fill_first in (True, False):
            order, maximal = eliminate_few(linked, weights, fill_first)
            cliques = (around | 1 << v for (v, around), largest in zip(order, maximal, strict=True) if largest)
            totals.append(_cells(tuple(sizes), cliques))
        found.append(min(totals))
    return found


@compile_lazily(plain=_eliminate_plainly)
def eliminate(near: Words, weights: Array, fill_first: bool, order: Any, maximal: Any) -> None:
    """Eliminate attributes greedily: least fill-in first, or fewest cells first; ties by position.

    ``weights`` are the logarithms of the sizes. ``near`` becomes each attribute's neighbours at its elimination.
    """
    d, width = near.shape
    fill, size, left = np.zeros(d, np.int64), np.zeros(d), np.ones(d, np.bool_)
    degree, childless, touched = np.zeros(d, np.int64), np.ones(d, np.bool_), np.zeros(width, np.uint64)
    for v in range(d):
        fill[v], size[v] = fill_and_size(near, weights, v)
    for step in range(d):
        best, first, second = -1, 0.0, 0.0
        for v in range(d):
            if left[v]:
                one, two = float(fill[v]), size[v]
                if fill[v] == 0:
                    one = -1.0  # it adds no edge, and so is never a worse choice
                elif not fill_first:
                    one, two = two, one
                if best < 0 or one < first or (one == first and two < second):
                    best, first, second = v, one, two
        v = best
        order[step], left[v] = v, False
        for k in range(width):
            touched[k] = near[v, k]
            degree[v] += ones(near[v, k])
        maximal[step] = True
        for u in range(d):  # the cliques that hang on this one; one of them may contain it
            if not left[u] and u != v and childless[u] and has(near, u, v):
                childless[u] = False
                if degree[u] == degree[v] + 1:
                    maximal[step] = False
        for u in range(d):
            if has(near, v, u):
                for k in range(width):
                    near[u, k] |= near[v, k]
                drop(near, u, u)
                drop(near, u, v)
                for k in range(width):
                    touched[k] |= near[u, k]
        for u in range(d):
            if left[u] and touched[u >> 6] >> np.uint64(u & 63) & np.uint64(1):
                fill[u], size[u] = fill_and_size(near, weights, u)


@compile_lazily()
def cells_with_each(near: Words, weights: Array, sizes: Array, joined: Words, found: Array) -> None:
    """Find the cells of the smaller of two heuristics' trees when each row of ``joined`` is linked too."""
    d, width = near.shape
    order, maximal = np.empty(d, np.int64), np.empty(d, np.bool_)
    for c in range(joined.shape[0]):
        found[c] = np.inf
        for fill_first in (True, False):
            around, total = near.copy(), 0.0
            for v in range(d):
                if (joined[c, v >> 6] >> np.uint64(v & 63)) & np.uint64(1):
                    for k in range(width):
                        around[v, k] |= joined[c, k]
                    drop(around, v, v)
            eliminate(around, weights, fill_first, order, maximal)
            for step in range(d):
                if maximal[step]:
                    size = sizes[order[step]]
                    for u in range(d):
                        if has(around, order[step], u):
                            size *= sizes[u]
                    total += size
            found[c] = min(found[c], total)


@compile_lazily()
def fill_and_size(near: Words, weights: Array, v: int) -> tuple[int, float]:
    """Return twice the number of edges that eliminating v adds, and the logarithm of its clique's cells."""
    fill, size, width = 0, weights[v], near.shape[1]
    for word in range(width):
        rest = near[v, word]
        while rest:
            low = rest & (~rest + np.uint64(1))
            rest ^= low
            u = 64 * word + ones(low - np.uint64(1))
            size += weights[u]
            fill -= 1
            for k in range(width):
                fill += ones(near[v, k] & ~near[u, k])
    return fill, size


@compile_lazily()
def has(near: Words, u: int, v: int) -> bool:
    """Return True if v is a neighbour of u."""
    return bool((near[u, v >> 6] >> np.uint64(v & 63)) & np.uint64(1))


@compile_lazily()
def drop(near: Words, u: int, v: int) -> None:
    """Remove v from the neighbours of u."""
    near[u, v >> 6] &= ~(np.uint64(1) << np.uint64(v & 63))


@compile_lazily()
def ones(word: Any) -> int:
    """Return the number of bits that are set: sums of neighbouring bits, of pairs of them, of bytes."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int(np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56)))


def _join_cliques(order: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the junction forest of an elimination: a clique's parent is the clique of its next neighbour to go."""
    when = {v: t for t, (v, _) in enumerate(order)}
    masks = [around | 1 << v for v, around in order]
    parents = [min((when[u] for u in bits(around)), default=-1) for _, around in order]
    absorbed: dict[int, int] = {}

    def alive(t: int) -> int:
        while t in absorbed:
            t = absorbed[t]
        return t

    for t in range(len(order)):
        if t not in absorbed:
            p = alive(parents[t])
            while p >= 0 and masks[p] & ~masks[t] == 0:  # the parent is part of this clique, which takes its place
                absorbed[p] = t
                p = alive(parents[p])
            parents[t] = p
    parent = {t: alive(parents[t]) for t in range(len(order)) if t not in absorbed}
    depth = {-1: -1}
    for t in parent:
        path = [t]
        while path[-1] not in depth:
            path.append(parent[path[-1]])
        for above, node in zip(path[:0:-1], path[-2::-1], strict=True):
            depth[node] = depth[above] + 1
    last_first = sorted(parent, key=lambda t: (-depth[t], t))
    position = {-1: -1} | {t: k for k, t in enumerate(last_first)}
    return [(masks[t], position[parent[t]]) for t in last_first]


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the bits that are set, from the lowest."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Forest(Protocol):
    """A junction forest: its cliques, children first, each with its parent and the separator between them."""

    sizes: dict[str, int]
    cliques: tuple[Names, ...]
    parents: tuple[int, ...]
    separators: tuple[Names, ...]


def cells_with(tree: Forest, sets: Sequence[Names], candidates: Sequence[Names]) -> Array:
    """Return the cells of the junction tree of ``sets`` and one candidate, for each candidate.

    The attributes are those of ``tree``.
    """
    sizes = np.array(list(tree.sizes.values()), float)
    bit = {name: 1 << i for i, name in enumerate(tree.sizes)}
    near = links(sizes.size, (sum(bit[n] for n in names) for names in sets))
    masks = [sum(bit[n] for n in names) for names in candidates]
    if sizes.size <= FEW:
        return np.array(cells_with_few(masks_of(near), list(tree.sizes.values()), masks), float)
    joined = words(sizes.size, masks)
    found = np.empty(len(candidates))
    cells_with_each(near, np.array([math.log2(m) for m in sizes]), sizes, joined, found)
    return found


def edge_cells(tree: Forest) -> Array:
    """Bound the cells that an edge between two attributes would add to the tree: a symmetric matrix."""
    names = list(tree.sizes)
    sizes = np.array(list(tree.sizes.values()), float)
    where = {name: i for i, name in enumerate(names)}
    added = np.multiply.outer(sizes, sizes)  # between two trees of the forest: a clique of the pair
    cliques = [frozenset(where[n] for n in clique) for clique in tree.cliques]
    shared = [frozenset(where[n] for n in separator) for separator in tree.separators]
    cells = [float(np.prod(sizes[list(s)])) for s in shared]
    joined: list[list[tuple[int, int]]] = [[] for _ in cliques]  # neighbours, and the separator in between
    for i, parent in enumerate(tree.parents):
        if parent >= 0 and shared[i]:
            joined[i].append((parent, i))
            joined[parent].append((i, i))
    new = [[(b, cells[i] * sizes[b]) for b in cliques[c] - shared[i]] for i, c in _ways(tree)]
    onward = [
        [(_way(tree, j, d), float(np.prod(sizes[list(shared[i] | shared[j])]))) for d, j in joined[c] if j != i]
        for i, c in _ways(tree)
    ]
    for clique in cliques:
        for a in clique:
            added[a, list(clique)] = 0.0
    for a, m in enumerate(sizes):
        own, line = [c for c, clique in enumerate(cliques) if a in clique], added[a]
        stack = [(_way(tree, j, d), 0.0) for c in own for d, j in joined[c] if a not in cliques[d]]
        while stack:
            way, before = stack.pop()
            for b, more in new[way]:
                line[b] = before + m * more
            stack += [(further, before + m * more) for further, more in onward[way]]
    return np.asarray(np.minimum(added, added.T))


def _ways(tree: Forest) -> list[tuple[int, int]]:
    """List every separator twice: with the clique that is entered through it, the child's or the parent's."""
    return [(i, c) for i, parent in enumerate(tree.parents) for c in (i, max(parent, 0))]


def _way(tree: Forest, separator: int, into: int) -> int:
    """Return the position in ``_ways`` of entering clique ``into`` through this separator."""
    return 2 * separator + (into != separator)
