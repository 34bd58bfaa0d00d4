"""How far a fit draws each noisy count to what was believed before it.

    y, v    the counts of a table and the variance of each
    n·h     what was believed of them

A count is drawn by the ridge a = max(v/(n·h), c·√v) of ``log_linear``, as if the logarithm of (count / n·h) had the variance 1 before
anything was measured. One that stands out of the noise by itself is not drawn.

Of a table of wide attributes hardly any cell does, though thousands together may: all that an independent guess puts beside the
diagonal of two dependent numbers, for one. Blocks of neighbouring values are therefore counted and drawn as well, each with the
noise of its sum (``log_linear.Blocks``): a cell's logarithm is the sum of its own part and of its blocks'.

A function of released values.
"""

from __future__ import annotations

import math

import numpy as np

from hedgerow._types import Array
from hedgerow.model.log_linear import Blocks, Target

RIDGE_FLOOR = 0.2
STANDS_OUT = 3.0  # deviations by which a count above its prior is believed itself
WIDE = 24  # values of an attribute that has blocks
STRIDES = (4, 16)  # of its values make a block


def ridge(
    rows: float,
    prior: Array,
    counts: Array,
    variance: float | Array,
    trust: float = 1.0,
    stands_out: float = STANDS_OUT,
) -> Array:
    """How much each count is drawn to its prior: one that stands so many deviations above it is not."""
    sd = np.sqrt(variance)
    believed = np.maximum(np.maximum(rows * prior, counts - stands_out * sd), 0.01 * sd)
    return np.asarray(np.maximum(variance / (trust * believed), RIDGE_FLOOR * sd))


def blocks(
    rows: float, prior: Array, counts: Array, variance: float, stands_out: float = STANDS_OUT
) -> tuple[Blocks, ...]:
    """Those of a table of several attributes, finer ones first; none where no attribute is wide."""
    found = []
    for stride in STRIDES if counts.ndim > 1 else ():
        cuts = [np.arange(m) // (stride if m >= max(WIDE, 2 * stride) else 1) for m in counts.shape]
        shape = tuple(int(cut[-1]) + 1 for cut in cuts)
        if math.prod(shape) < counts.size:
            place = np.ravel_multi_index(np.ix_(*cuts), shape).ravel()
            before, now = (np.asarray(np.bincount(place, table.ravel()), float) for table in (prior, counts))
            noise = np.asarray(variance * np.bincount(place), float)
            found.append(Blocks(place, ridge(rows, before, now, noise, stands_out=stands_out)))
    return tuple(found)


def as_target(rows: float, prior: Array, counts: Array, variance: float) -> Target:
    """A table as the fit takes it."""
    return Target(counts, ridge(rows, prior, counts, variance), blocks(rows, prior, counts, variance))
