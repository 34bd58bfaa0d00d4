"""Expected errors of a table's questions, from public values: the allowances that a certificate is measured against.

Errors are larger where a question is about more cells, and where the hypothesis believes there are more rows. With p
the believed table, K = (Σ√p)² is the number of its cells that matter, and v(q) = Σ_x q(x)√p(x) / Σ√p the part of them
that q is about. A question q on s attributes is allowed

    level·min over (c, slope) of c + slope·v(q) rows,       level = typical error · FACTOR[s] · K^POWER[s]

A question's own typical error is proportional to v(q)^USUAL, or the same of its complement if that is smaller,
relative to the boxes that the typical error is the mean of. The sum Σ (x − c) that a mean within a group is made of is
allowed what it is off if the mean is off by APART standard deviations, where its pair was not measured. All of this is a guess, made from the observed
errors of fitted tables; no proof needs it. A bar is the allowance plus the one number by which any question exceeds its
allowance, so a bad guess costs width and nothing else.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedgerow._types import Array
from hedgerow.engine.practical.certificate.largest_errors import Steps

FACTOR, POWER = {1: 0.26, 2: 0.7, 3: 1.7}, {1: 0.58, 2: 0.5, 3: 0.28}  # by the number of attributes
PIECES = ((1.9, 0.0), (0.6, 18.0))  # (c, slope): the allowance is the least of two lines, the first of them flat
# Standard deviations within a group by which its mean is expected to be off, where its pair was not measured.
APART = 0.12
USUAL = 0.4  # exponent of v in a question's own typical error
MOST = 2**53  # most steps of a level
MOST_SUM = 2**60  # most steps of a table


@dataclass(frozen=True)
class ErrorAllowance:
    """An allowance: ``offset`` steps, plus those of ``table`` on the cells of a question; None is a table of zeros."""

    offset: int
    table: Steps | None

    @cached_property
    def weights(self) -> Array:
        """The steps of ``table`` as floats."""
        assert self.table is not None
        return self.table.astype(float)


def error_allowances(believed: Array, typical: float, bits: int, *, flat: bool = False) -> list[ErrorAllowance]:
    """Return the allowances of the questions on one table, each line separately, in steps of 2^-bits rows.

    ``typical`` is in rows. With ``flat`` only the lines that allow all questions the same are returned.
    """
    roots = np.sqrt(np.maximum(believed, 0.0))
    total = float(roots.sum())
    if not 0 < total < math.inf:
        return [ErrorAllowance(0, None)]
    size = sum(m > 1 for m in believed.shape) or 1
    level = min(math.ldexp(typical * FACTOR[size] * total ** (2 * POWER[size]), bits), MOST)
    found = []
    for c, slope in PIECES:
        if slope == 0:
            found.append(ErrorAllowance(int(c * level), None))
        elif not flat:
            table = np.clip(np.rint(slope * level / total * roots), 0, MOST_SUM // roots.size)
            found.append(ErrorAllowance(int(c * level), table.astype(np.int64)))
    return found


def allowance_of_means(lines: Array, centers: Array, bits: int) -> Steps:
    """Return the allowance, in steps, of Σ (x − c) for each group of a pair that no measurement covers.

    ``lines`` are the rows that are believed to have each value of the number, one line for each group, ``centers`` the
    places c in the number's range.
    """
    lines = np.maximum(lines, 0.0)
    off = np.linspace(0.0, 1.0, lines.shape[-1]) - centers[:, None]
    rows = APART * np.sqrt((np.square(off) * lines).sum(axis=-1) * lines.sum(axis=-1))
    steps: Steps = np.minimum(np.ldexp(rows, bits), MOST).astype(np.int64)
    return steps


def typical_errors(roots: Array, ordered: Sequence[bool], parts: Array) -> Array:
    """Return the typical errors of questions with these sums ⟨q, √p⟩, in typical errors of the table's boxes.

    ``roots`` is √p.
    """
    total = float(roots.sum())
    v = np.minimum(np.maximum(parts / total, 0.0), 1.0) if total > 0 else np.zeros(parts.shape)
    found: Array = (np.minimum(v, 1 - v) / part_of_boxes(roots.shape, ordered)) ** USUAL
    return found


def part_of_boxes(shape: Sequence[int], ordered: Sequence[bool]) -> float:
    """Return the mean part of a table's cells that its boxes contain."""
    return math.prod(_mean_part(m, o) for m, o in zip(shape, ordered, strict=True))


@functools.cache
def _mean_part(size: int, is_ordered: bool) -> float:
    """Return the mean part of an attribute's cells that its boxes contain.

    A box has one value of an unordered attribute, or an interval of an ordered one that is not all of it.
    """
    if not is_ordered or size == 1:
        return 1 / size
    lengths = np.arange(1, size)
    return float(np.average(lengths, weights=size - lengths + 1)) / size
