"""How large the errors of a table's questions are expected to be, by what is public: what a certificate's number is measured against.

Errors are larger where a question is about more cells, and where more rows are believed to be. With p the table that is believed, K = (Σ√p)²
is how many cells it has that matter, and v(q) = Σ_x q(x)√p(x) / Σ√p the part of them that q is about. A question q on s attributes is
allowed

    level·min over (c, slope) of c + slope·v(q),       level = typical error · FACTOR[s] · K^POWER[s]

rows, and a sum that a mean is made of less than none, by AHEAD of its own typical errors. Its own typical error is in proportion to v(q)^USUAL, or as much of what is not in q, over that of the boxes that the typical error is the mean of. All that is a guess, by how errors of fitted tables came out: no proof needs it. A bar is what is allowed and the one number that says by how
much any question exceeds it, so that a bad guess costs width and nothing else.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow._types import Array
from hedgerow.engines.practical.largest_errors import Steps

FACTOR, POWER = {1: 0.26, 2: 0.7, 3: 1.7}, {1: 0.58, 2: 0.5, 3: 0.28}  # by the number of attributes
PIECES = ((1.9, 0.0), (0.6, 18.0))  # (c, slope): the least of two lines, the first of them flat
AHEAD = 1.5  # of their own typical errors: by how much sums that means are made of are expected to be nearer than products exceed what they are allowed
USUAL = 0.4
MOST = 2**53  # steps of a level
MOST_SUM = 2**60  # steps of a table


@dataclass(frozen=True)
class Allowed:
    """``offset`` steps and those of ``table`` on the cells of a question; None is a table of zeros."""

    offset: int
    table: Steps | None


def allowed(believed: Array, typical: float, bits: int, *, flat: bool = False) -> list[Allowed]:
    """What is allowed to the questions of one table, each line by itself, in steps of 2^-bits rows. ``typical`` is in rows.

    ``flat``: only the lines that allow all questions alike.
    """
    roots = np.sqrt(np.maximum(believed, 0.0))
    total = float(roots.sum())
    if not 0 < total < math.inf:
        return [Allowed(0, None)]
    size = sum(m > 1 for m in believed.shape) or 1
    level = min(math.ldexp(typical * FACTOR[size] * total ** (2 * POWER[size]), bits), MOST)
    found = []
    for c, slope in PIECES:
        if slope == 0:
            found.append(Allowed(int(c * level), None))
        elif not flat:
            table = np.clip(np.rint(slope * level / total * roots), 0, MOST_SUM // roots.size)
            found.append(Allowed(int(c * level), table.astype(np.int64)))
    return found


def ahead(usual: float, bits: int) -> int:
    """By how many steps the sums that means are made of are to be ahead of products. ``usual``: how many rows such a sum is off in the mean, as a guess."""
    return int(min(math.ldexp(AHEAD * usual, bits), MOST))


def usual(believed: Array, ordered: Sequence[bool], parts: Array) -> Array:
    """The typical errors of questions about these parts of what is believed, ⟨q, √p⟩, in typical errors of boxes of the table."""
    total = float(np.sqrt(np.maximum(believed, 0.0)).sum())
    v = np.clip(parts / total, 0.0, 1.0) if total > 0 else np.zeros(parts.shape)
    found: Array = (np.minimum(v, 1 - v) / part_of_boxes(believed.shape, ordered)) ** USUAL
    return found


def part_of_boxes(shape: Sequence[int], ordered: Sequence[bool]) -> float:
    """Of the cells of a table, in the mean over its boxes."""
    return math.prod(_mean_part(m, o) for m, o in zip(shape, ordered, strict=True))


@functools.cache
def _mean_part(size: int, is_ordered: bool) -> float:
    """Of the cells of an attribute, in the mean over its boxes: one value, or an interval that is not all of it."""
    if not is_ordered or size == 1:
        return 1 / size
    lengths = np.arange(1, size)
    return float(np.average(lengths, weights=size - lengths + 1)) / size
