"""Choose, from many measured pairs, those that the model takes, when no single model can hold the whole overview.

All pairs were measured alike, so the choice costs no budget. The model takes the pairs on which it is farthest from
the measurements, several at a time, no two of them sharing an attribute, and is fitted before the next comparison. A
pair counts only if it is clear of the noise: where the model is right, the squares of its residual's r coordinates,
in units of their deviation, sum to r with the deviation √(2r). A pair that is left out still corrects its own answers
and has its bars.

Everything here is a function of released values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.engine.practical.free_answers import FittedModel
from hedgerow.model.hypothesis import PairTables
from hedgerow.model.triangulation import edge_cells

CLEAR = 3.0  # a sum of squares is clear of the noise if it exceeds its mean by this many standard deviations
STEPS = 40  # of each fit


def expected_distance(sigma: float, sizes: Sequence[int]) -> float:
    """Return the mean ℓ1 distance by which noise of this deviation on a residual's coordinates moves its table."""
    freedom = math.prod(m - 1 for m in sizes)
    return sigma * math.sqrt(2 / math.pi * freedom * math.prod(sizes))


def take_strongest_pairs(learned: FittedModel, pairs: Sequence[Names], most_cells: float, at_once: int) -> None:
    """Add measured pairs to the model while one is clear of the noise and the tree has at most ``most_cells`` cells."""
    universe, overview = learned.merging.inner, learned.overview
    assert overview is not None
    tables = PairTables(dict(zip(universe.names, universe.shape, strict=True)))
    counts = np.zeros((tables.values, tables.values))
    for pair in pairs:
        tables.block(counts, pair)[:] = overview.onto(pair)
    sizes = [universe.sizes(pair) for pair in pairs]
    deviations = np.array([overview.deviation(pair) for pair in pairs])
    noise = np.array([expected_distance(d, s) for d, s in zip(deviations, sizes, strict=True)])
    freedom = np.array([math.prod(m - 1 for m in s) for s in sizes])
    first, second = np.array([[universe.index(n) for n in pair] for pair in pairs]).T

    def of_pairs(matrix: Array) -> Array:
        return np.asarray(tables.sums(matrix)[first, second])

    waiting = np.ones(len(pairs), bool)
    while True:
        tree = learned.model.tree
        off = counts - learned.rows * tables.pair_matrix(tree, learned.model.beliefs())
        squares, gains = of_pairs(off**2) / deviations**2, of_pairs(np.abs(off)) - noise
        clear = waiting & (squares - freedom > CLEAR * np.sqrt(2 * freedom))
        added, room = edge_cells(tree)[first, second], most_cells - tree.cells
        chosen: list[Names] = []
        for i in np.argsort(np.where(clear, -gains, math.inf), kind="stable"):
            if not clear[i] or len(chosen) == at_once:
                break
            if added[i] > room:
                waiting[i] = False  # it stays too large, because the tree only grows
            elif not any({*pairs[i]} & {*other} for other in chosen):
                chosen.append(pairs[i])
                waiting[i], room = False, room - added[i]
        if not chosen:
            return
        learned.grow(*chosen)
        learned.refit(STEPS)
