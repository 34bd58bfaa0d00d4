"""Set how strongly a fit draws each noisy count to its prior.

    y, v    the counts of a table and the variance of each
    n·h     their prior: the counts that were believed before the measurement

A count is drawn by the ridge a = max(v/(n·h), c·√v) of ``log_linear``, as if log(count / n·h) had variance 1 before
anything was measured. A count that stands out of the noise by itself is not drawn.

In a table of wide attributes hardly any single cell stands out, although thousands together may: for example all
cells that an independent guess puts beside the diagonal of two dependent numbers. Blocks of neighbouring values are
therefore counted and drawn as well, each with the noise of its sum (``log_linear.BlockSums``). A cell's logarithm is the
sum of its own part and of its blocks' parts.

Everything here is a function of released values.
"""

from __future__ import annotations

import math

import numpy as np

from hedgerow._types import Array
from hedgerow.model.log_linear import BlockSums, Target

RIDGE_FLOOR = 0.2  # c above: the ridge is at least this many standard deviations
STANDS_OUT = 3.0  # a count this many standard deviations above its prior is believed as it is
WIDE = 24  # an attribute with at least this many values is divided into blocks
STRIDES = (4, 16)  # numbers of neighbouring values that make a block


def ridge(
    rows: float,
    prior: Array,
    counts: Array,
    variance: float | Array,
    trust: float = 1.0,
    stands_out: float = STANDS_OUT,
) -> Array:
    """Return how strongly each count is drawn to its prior; counts ``stands_out`` deviations above it are not drawn."""
    sd = np.sqrt(variance)
    believed = np.maximum(np.maximum(rows * prior, counts - stands_out * sd), 0.01 * sd)
    return np.asarray(np.maximum(variance / (trust * believed), RIDGE_FLOOR * sd))


def blocks(
    rows: float, prior: Array, counts: Array, variance: float, stands_out: float = STANDS_OUT
) -> tuple[BlockSums, ...]:
    """Return the blocks of a table of several attributes, finer ones first; none if no attribute is wide."""
    found = []
    for stride in STRIDES if counts.ndim > 1 else ():
        cuts = [np.arange(m) // (stride if m >= max(WIDE, 2 * stride) else 1) for m in counts.shape]
        shape = tuple(int(cut[-1]) + 1 for cut in cuts)
        if math.prod(shape) < counts.size:
            place = np.ravel_multi_index(np.ix_(*cuts), shape).ravel()
            before, now = (np.asarray(np.bincount(place, table.ravel()), float) for table in (prior, counts))
            noise = np.asarray(variance * np.bincount(place), float)
            found.append(BlockSums(place, ridge(rows, before, now, noise, stands_out=stands_out)))
    return tuple(found)


def as_target(rows: float, prior: Array, counts: Array, variance: float) -> Target:
    """Bundle a measured table with its ridge and blocks into a target of the fit."""
    return Target(counts, ridge(rows, prior, counts, variance), blocks(rows, prior, counts, variance))
