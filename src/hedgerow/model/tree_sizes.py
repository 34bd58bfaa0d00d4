"""How large a junction tree would become: of many sets that could be added, without building a tree for each.

    cells_with   exactly, for each set: a greedy elimination as in ``triangulation``, compiled
    edge_cells   at most, for every pair of attributes at once, from the tree there is

A tree that holds a and b apart can take the edge ab along the path between them. Let S_1 … S_k be the separators on that
path from the last clique with a to the first with b, and S_{k+1} = {b}. The chain of new cliques {a} ∪ S_i ∪ S_{i+1} joins both,
every old clique hangs on its own S_i ∪ S_{i+1}, and so it is a junction tree: of Σ m_a·cells(S_i ∪ S_{i+1}) more cells at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow._compiled import compiled
from hedgerow._types import Array, Names
from hedgerow.model.junction_tree import JunctionTree

Links = NDArray[np.bool_]


def cells_with(tree: JunctionTree, sets: Sequence[Names], candidates: Sequence[Names]) -> Array:
    """The cells of the junction tree of ``sets`` (over the attributes of ``tree``) and each of the candidates."""
    sizes = np.array(list(tree.sizes.values()), float)
    where = {name: i for i, name in enumerate(tree.sizes)}
    linked = np.zeros((sizes.size, sizes.size), bool)
    for names in sets:
        places = [where[n] for n in names]
        linked[np.ix_(places, places)] = True
    members = np.zeros((len(candidates), sizes.size), bool)
    for row, names in zip(members, candidates, strict=True):
        row[[where[n] for n in names]] = True
    found = np.empty(len(candidates))
    _all_cells(linked, np.array([math.log2(m) for m in sizes]), sizes, members, found)
    return found


def edge_cells(tree: JunctionTree) -> Array:
    """How many cells the tree would have more, at most, with an edge between two attributes: a symmetric matrix."""
    names = list(tree.sizes)
    sizes = np.array(list(tree.sizes.values()), float)
    where = {name: i for i, name in enumerate(names)}
    added = np.multiply.outer(sizes, sizes)  # between trees: a clique of the two
    cliques = [frozenset(where[n] for n in clique) for clique in tree.cliques]
    shared = [frozenset(where[n] for n in separator) for separator in tree.separators]
    cells = [float(np.prod(sizes[list(s)])) for s in shared]
    joined: list[list[tuple[int, int]]] = [[] for _ in cliques]  # neighbours, and which separator is between
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


def _ways(tree: JunctionTree) -> list[tuple[int, int]]:
    """Every separator twice: with the clique that one comes to through it, its parent's or its child's."""
    return [(i, c) for i, parent in enumerate(tree.parents) for c in (i, max(parent, 0))]


def _way(tree: JunctionTree, separator: int, into: int) -> int:
    return 2 * separator + (into != separator)


@compiled()
def _all_cells(linked: Links, weights: Array, sizes: Array, members: Links, found: Array) -> None:
    for c in range(members.shape[0]):
        near = linked.copy()
        for u in range(sizes.size):
            for v in range(sizes.size):
                if members[c, u] and members[c, v]:
                    near[u, v] = True
        for v in range(sizes.size):
            near[v, v] = False
        found[c] = min(
            _eliminated(near.copy(), weights, sizes, True),
            _eliminated(near, weights, sizes, False),
        )


@compiled()
def _score(near: Links, weights: Array, v: int) -> tuple[int, float]:
    """The edges that eliminating v adds, and the logarithm of its clique's cells."""
    fill, cells = 0, weights[v]
    for u in range(weights.size):
        if near[v, u]:
            cells += weights[u]
            for w in range(u):
                if near[v, w] and not near[u, w]:
                    fill += 1
    return fill, cells


@compiled()
def _eliminated(near: Links, weights: Array, sizes: Array, fill_first: bool) -> float:
    """The cells of the maximal cliques of a greedy elimination; ``near`` is used up."""
    d = weights.size
    fill, cells, left = np.zeros(d, np.int64), np.zeros(d), np.ones(d, np.bool_)
    around, degree, childless = np.zeros((d, d), np.bool_), np.zeros(d, np.int64), np.ones(d, np.bool_)
    touched = np.zeros(d, np.bool_)
    for v in range(d):
        fill[v], cells[v] = _score(near, weights, v)
    total = 0.0
    for _ in range(d):
        best, first, second = -1, 0.0, 0.0
        for v in range(d):
            if left[v]:
                one, two = float(fill[v]), cells[v]
                if fill[v] == 0:
                    one = -1.0
                elif not fill_first:
                    one, two = two, one
                if best < 0 or one < first or (one == first and two < second):
                    best, first, second = v, one, two
        v, size = best, sizes[best]
        left[v] = False
        degree[v] = 0
        for u in range(d):
            touched[u] = False
        for u in range(d):
            around[v, u] = near[v, u]
            if near[v, u]:
                degree[v] += 1
                size *= sizes[u]
        maximal = True
        for u in range(d):  # the cliques that come next to this one, and one of which may hold it
            if not left[u] and u != v and childless[u] and around[u, v]:
                childless[u] = False
                maximal = maximal and degree[u] != degree[v] + 1
        if maximal:
            total += size
        for u in range(d):
            if around[v, u]:
                near[u, v] = False
                for w in range(d):
                    if around[v, w] and w != u:
                        near[u, w] = True
        for u in range(d):
            if around[v, u]:
                touched[u] = True
                for w in range(d):
                    if near[u, w]:
                        touched[w] = True
        for u in range(d):
            if touched[u] and left[u]:
                fill[u], cells[u] = _score(near, weights, u)
    return total
