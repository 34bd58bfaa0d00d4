"""Triangulation: from attribute sets to the maximal cliques of a chordal graph, joined into a forest.

Koller & Friedman, "Probabilistic Graphical Models", ch. 9.4.3 (greedy elimination orders) and 10.4 (clique trees).

Attributes are positions, sets of attributes are bit masks: a forest for twenty cliques takes well below a millisecond.
Everything is deterministic, and nothing depends on the order in which the sets are given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache


@lru_cache(maxsize=65536)
def cells(sizes: tuple[int, ...], sets: frozenset[int]) -> int:
    return sum(math.prod(sizes[i] for i in bits(mask)) for mask, _ in forest(sizes, sets))


@lru_cache(maxsize=1024)
def forest(sizes: tuple[int, ...], sets: frozenset[int]) -> list[tuple[int, int]]:
    """Maximal cliques with their parents' positions, children first: the smaller of the forests of two heuristics."""
    best: list[tuple[int, int]] = []
    fewest: int | None = None
    for fill_first in (True, False):
        joined = _joined(_elimination(sizes, sets, fill_first))
        total = sum(math.prod(sizes[i] for i in bits(mask)) for mask, _ in joined)
        if fewest is None or total < fewest:
            best, fewest = joined, total
    return best


def _elimination(sizes: tuple[int, ...], sets: frozenset[int], fill_first: bool) -> list[tuple[int, int]]:
    """(attribute, its neighbours when eliminated): least fill-in first, or fewest cells first; ties by position."""
    weight = [math.log2(s) for s in sizes]
    near = [0] * len(sizes)
    for mask in sets:
        for v in bits(mask):
            near[v] |= mask & ~(1 << v)

    def score(v: int) -> tuple[float, float, int]:
        around, fill, cells = near[v], 0, weight[v]
        for u in bits(around):
            fill += (around & ~near[u]).bit_count() - 1
            cells += weight[u]
        if fill == 0:
            return (-1.0, cells, v)  # no edge is added: never a worse choice
        return (fill, cells, v) if fill_first else (cells, fill, v)

    scores = {v: score(v) for v in range(len(sizes))}
    order = []
    while scores:
        v = min(scores, key=scores.__getitem__)
        around, touched = near[v], near[v]
        del scores[v]
        order.append((v, around))
        for u in bits(around):
            near[u] = (near[u] | around) & ~(1 << u) & ~(1 << v)
            touched |= near[u]
        for u in bits(touched & ~(1 << v)):
            scores[u] = score(u)
    return order


def _joined(order: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The junction forest of an elimination: a clique's parent is the clique of the next of its neighbours to go."""
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
            while p >= 0 and masks[p] & ~masks[t] == 0:  # a part of this clique, which takes its place in the tree
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
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
