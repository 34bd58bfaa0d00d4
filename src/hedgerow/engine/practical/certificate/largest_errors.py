"""The largest error of any question on one small table, beyond its allowance, in whole steps: without rounding error.

The table holds differences, data minus hypothesis. There are two classes, one within the other, and the sums that
means are made of:

    products  an interval of each ordered attribute, times a set of cells of each other one
    any       any set of cells, and so any weights in [0, 1]: a sum is largest where the weights are 0 or 1
    means     i/(m − 1) − c on the i-th of the m cells of an ordered attribute within one cell of another, 0 elsewhere

The allowance of a product by a public table can be subtracted from its error: |⟨q, D⟩| − ⟨q, A⟩ is the larger of ⟨q,
D − A⟩ and ⟨q, −D − A⟩, each a sum over the cells of q. Along the last ordered axis the interval with the largest sum
is found in one pass; along the other ordered axes all intervals are tried. All sets of the unordered axes but the
largest are tried, and along that one the cells with positive sums are the best set. Where there are too many such
sets, the unordered axes are treated as one: a larger class, and so a larger number.

The allowances, ``error_allowances``, are expected errors, from public values. Errors are larger where a question is
about more cells, and where the hypothesis believes there are more rows. With p the believed table, K = (Σ√p)² is the
number of its cells that matter, and v(q) = Σ_x q(x)√p(x) / Σ√p the part of them that q is about. A question q on s
attributes is allowed

    level·min over (c, slope) of c + slope·v(q) rows,       level = typical error · FACTOR[s] · K^POWER[s]

A question's own typical error is proportional to v(q)^USUAL, or the same of its complement if that is smaller,
relative to the boxes that the typical error is the mean of. The sum Σ (x − c) that a mean within a group is made of is
allowed what it is off if the mean is off by APART standard deviations, where its pair was not measured. All of this is
a guess, made from the observed errors of fitted tables; no proof needs it. A bar is the allowance plus the one number
by which any question exceeds its allowance, so a bad guess costs width and nothing else.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hedgerow._compiled import compile_lazily
from hedgerow._types import Array

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

    A box has one value of an unordered attribute, or an interval of an ordered attribute, but not all of its values.
    """
    if not is_ordered or size == 1:
        return 1 / size
    lengths = np.arange(1, size)
    return float(np.average(lengths, weights=size - lengths + 1)) / size


Steps = NDArray[np.int64]
MOST_SETS = 1 << 12  # most sets of cells that are tried, over all unordered attributes but the largest
PLACES = 64  # c is a multiple of 1/64 between 0 and 1
FEW_SUMS = 1 << 19  # up to this many sums are made with NumPy; beyond, compiled code is worth its start
LIMB = 31  # low bits of a sum that are added up separately, so that the total of many sums cannot overflow


def largest_error(table: Steps, ordered: Sequence[bool], allowed: Steps | None = None) -> int:
    """Return the largest |Σ_x q(x)·table(x)| − Σ_x q(x)·allowed(x) over the products q, the empty one included.

    The table has one to three axes. The sums of its positive cells and of its negative cells, less what is allowed,
    must fit an int64; then so does every sum here.
    """
    if allowed is None:
        allowed = np.zeros(table.shape, np.int64)
    return max(_largest_sum(table - allowed, ordered), _largest_sum(-table - allowed, ordered))


def half_distance(table: Steps) -> int:
    """Return the largest |Σ_x q(x)·table(x)| over all weights q in [0, 1]."""
    return int(max(table[table > 0].sum(), -table[table < 0].sum()))


def largest_of_means(
    table: Steps, axis: int, places: NDArray[np.int64], farthest: NDArray[np.int64], allowed: Steps
) -> int:
    """Return the largest |Σ_i (i/(m − 1) − c_k)·table(i, k)|/f_k − allowed_k over the cells k of the other axis.

    c_k is places[k]/PLACES and f_k is farthest[k]/PLACES. The quotient is rounded down. The arithmetic is in whole
    numbers of any size: a row moves the quotient by whole steps, and by no more after rounding down.
    """
    lines = np.moveaxis(table, axis, -1).astype(object)
    last = lines.shape[-1] - 1
    along, totals = lines @ np.arange(last + 1).astype(object), lines.sum(axis=-1)
    sums = abs(PLACES * along - last * places.astype(object) * totals)
    return int(max(sums // (last * farthest.astype(object)) - allowed.astype(object)))


def _largest_sum(table: Steps, ordered: Sequence[bool]) -> int:
    """Return the largest sum of the table over a product, 0 for the empty one."""
    intervals, sets = _axes(table.shape, ordered)
    arranged = np.transpose(table, sets + intervals)
    sizes = [1] * (3 - len(intervals)) + [table.shape[i] for i in intervals]
    if not sets:
        lines = np.ascontiguousarray(arranged).reshape(sizes)
        few = _few(sizes, 1)
        return max(0, int(_over_intervals(lines, (0, 1, 2)).max())) if few else int(_best_intervals(lines))
    if _number_of_sets(table.shape, sets) <= MOST_SETS:
        for axis in range(len(sets) - 1):
            masks = _all_sets(arranged.shape[axis])
            arranged = np.moveaxis(np.tensordot(masks, arranged, axes=(1, axis)), 0, axis)
        cells = arranged.shape[len(sets) - 1]
    else:
        cells = math.prod(table.shape[i] for i in sets)
    # Besides an unordered axis there are at most two ordered ones.
    last = np.moveaxis(arranged.reshape(-1, cells, *sizes[1:]), 1, -1)
    if _few(sizes[1:], last.size // math.prod(sizes[1:])):
        return int(np.maximum(_over_intervals(last, (1, 2)), 0).sum(axis=-1).max())
    return int(_best_sets(np.ascontiguousarray(last)))


def _few(sizes: Sequence[int], lines: int) -> bool:
    """Return True if there are so few products of intervals that compiled code is not worth its start.

    The axes have these ``sizes``, and the products are formed ``lines`` times.
    """
    return lines * math.prod(m * (m + 1) // 2 for m in sizes) <= FEW_SUMS


def _over_intervals(table: Steps, axes: Sequence[int], *, but_all: bool = False) -> Steps:
    """Replace each of these axes by all its intervals: sums of the table over them.

    With ``but_all`` the whole axis is left out, unless its length is 1.
    """
    for axis in axes:
        starts, ends = _intervals(table.shape[axis], but_all)
        sums = np.zeros((*table.shape[:axis], table.shape[axis] + 1, *table.shape[axis + 1 :]), np.int64)
        np.cumsum(table, axis=axis, out=sums[(slice(None),) * axis + (slice(1, None),)])
        table = np.take(sums, ends, axis=axis) - np.take(sums, starts, axis=axis)
    return table


@functools.lru_cache(maxsize=64)  # a table has at most ``FEW_SUMS`` intervals; many tables have axes of the same length
def _intervals(m: int, but_all: bool) -> tuple[Steps, Steps]:
    """Return the first place of every interval of m places, and the place after its last."""
    starts, ends = np.triu_indices(m)
    wanted = np.full(len(starts), True) if m == 1 or not but_all else ends - starts + 1 < m
    return starts[wanted], ends[wanted] + 1


def work(shape: Sequence[int], ordered: Sequence[bool]) -> float:
    """Return about how many additions a table needs. Public, so that slow tables are left out beforehand."""
    intervals, sets = _axes(shape, ordered)
    sizes = [shape[i] for i in intervals]
    pairs = [m * (m + 1) / 2 for m in sizes]
    if not sets:
        return math.prod(pairs[:-1]) * sizes[-1]
    tried = _number_of_sets(shape, sets)
    cells = tried * shape[sets[-1]] if tried <= MOST_SETS else math.prod(shape[i] for i in sets)
    return math.prod(pairs) * cells


def _axes(shape: Sequence[int], ordered: Sequence[bool]) -> tuple[list[int], list[int]]:
    """Return the ordered axes and the others, each from the smallest to the largest."""
    by_size = sorted(range(len(shape)), key=lambda i: shape[i])
    return [i for i in by_size if ordered[i]], [i for i in by_size if not ordered[i]]


def _number_of_sets(shape: Sequence[int], sets: Sequence[int]) -> int:
    """Return the number of sets of cells over all unordered axes but the largest."""
    return 1 << sum(shape[i] for i in sets[:-1])


def _all_sets(cells: int) -> Steps:
    """Return the masks of all sets of ``cells`` cells, one per row."""
    return (np.arange(1 << cells)[:, None] >> np.arange(cells)) & 1


@compile_lazily()
def _best_intervals(table: Steps) -> int:
    """Return the largest sum over the products of intervals of the three axes."""
    m1, m2, m3 = table.shape
    largest = 0
    for start in range(m1):
        plane = np.zeros((m2, m3), np.int64)
        for end in range(start, m1):
            plane += table[end]
            for top in range(m2):
                line = np.zeros(m3, np.int64)
                for bottom in range(top, m2):
                    best = 0  # largest sum of an interval that ends here
                    for i in range(m3):
                        line[i] += plane[bottom, i]
                        best = max(best + line[i], 0)
                        largest = max(largest, best)
    return largest


@compile_lazily()
def _best_sets(tables: Steps) -> int:
    """Return the largest sum over the first axis, intervals of the next two, and sets of cells of the last."""
    k, m1, m2, cells = tables.shape
    largest = 0
    for u in range(k):
        for start in range(m1):
            plane = np.zeros((m2, cells), np.int64)
            for end in range(start, m1):
                plane += tables[u, end]
                for top in range(m2):
                    line = np.zeros(cells, np.int64)
                    for bottom in range(top, m2):
                        above = 0
                        for i in range(cells):
                            line[i] += plane[bottom, i]
                            above += max(line[i], 0)
                        largest = max(largest, above)
    return largest


# The sum over all boxes. A box is an interval of each ordered attribute that is not all of it, and a cell of each other
# one.


def sum_of_errors(table: Steps, ordered: Sequence[bool]) -> int:
    """Return Σ |Σ of the table in the box| over all boxes."""
    intervals, sets = _axes(table.shape, ordered)
    sizes = [1] * (3 - len(intervals)) + [table.shape[i] for i in intervals]
    arranged = np.ascontiguousarray(np.transpose(table, sets + intervals)).reshape(-1, *sizes)
    if _few(sizes, arranged.size // math.prod(sizes)):
        found = np.abs(_over_intervals(arranged, (1, 2, 3), but_all=True))
        return (int((found >> LIMB).sum()) << LIMB) + int((found & ((1 << LIMB) - 1)).sum())
    upper, lower = _sum_over_boxes(arranged)
    return (int(upper) << LIMB) + int(lower)


def boxes_with(size: int, is_ordered: bool) -> tuple[int, int]:
    """Return the number of an attribute's sets that boxes use, and the most of them that contain any one cell."""
    if not is_ordered or size == 1:
        return size, 1
    middle = size // 2
    return size * (size + 1) // 2 - 1, (middle + 1) * (size - middle) - 1


@compile_lazily()
def _sum_over_boxes(tables: Steps) -> tuple[int, int]:
    """Return the sum over all boxes in two parts: the high bits and the low ``LIMB`` bits."""
    k, m1, m2, m3 = tables.shape
    upper, lower = 0, 0
    for u in range(k):
        for start in range(m1):
            plane = np.zeros((m2, m3), np.int64)
            for end in range(start, m1):
                plane += tables[u, end]
                if end - start + 1 == m1 and m1 > 1:
                    continue
                for top in range(m2):
                    line = np.zeros(m3, np.int64)
                    for bottom in range(top, m2):
                        line += plane[bottom]
                        if bottom - top + 1 == m2 and m2 > 1:
                            continue
                        for left in range(m3):
                            total = 0
                            for right in range(left, m3):
                                total += line[right]
                                if right - left + 1 < m3 or m3 == 1:
                                    size = abs(total)
                                    upper += size >> LIMB
                                    lower += size & ((1 << LIMB) - 1)
    return upper, lower
