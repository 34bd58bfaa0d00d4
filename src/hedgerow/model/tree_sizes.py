"""Predict the size of a junction tree with each of many candidate sets, without building a tree for each.

    cells_with   exact, for each set: a greedy elimination as in ``triangulation``
    edge_cells   upper bounds, for every pair of attributes at once, from the present tree

A tree that holds a and b apart can take the edge ab along the path between them. Let S_1 … S_k be the separators on
that path from the last clique with a to the first with b, and S_{k+1} = {b}. The chain of new cliques {a} ∪ S_i ∪
S_{i+1} joins both, and every old clique hangs on its own S_i ∪ S_{i+1}. So it is a junction tree, with at most Σ
m_a·cells(S_i ∪ S_{i+1}) more cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.model.junction_tree import JunctionTree
from hedgerow.model.triangulation import FEW, cells_with_each, cells_with_few, links, masks_of, words


def cells_with(tree: JunctionTree, sets: Sequence[Names], candidates: Sequence[Names]) -> Array:
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


def edge_cells(tree: JunctionTree) -> Array:
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


def _ways(tree: JunctionTree) -> list[tuple[int, int]]:
    """List every separator twice: with the clique that is entered through it, the child's or the parent's."""
    return [(i, c) for i, parent in enumerate(tree.parents) for c in (i, max(parent, 0))]


def _way(tree: JunctionTree, separator: int, into: int) -> int:
    """Return the position in ``_ways`` of entering clique ``into`` through this separator."""
    return 2 * separator + (into != separator)
