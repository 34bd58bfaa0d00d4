"""The largest error of any question of a class on one small table, in whole steps: exact, for integers add up without error.

The table is of differences, data minus hypothesis. Two classes, one within the other, and the lines of which means are made:

    products  an interval of each ordered attribute, times a set of cells of each other one
    any       any set of cells, and so any weights in [0, 1]: a sum is largest where the weights are 0 or 1
    means     i/(m − 1) − c on the i-th of the m cells of an ordered attribute within one cell of another, 0 elsewhere

What a public table allows a product can be taken off its error: |⟨q, D⟩| − ⟨q, A⟩ is the larger of ⟨q, D − A⟩ and ⟨q, −D − A⟩, each a sum
over the cells of q. Along the last ordered axis the interval with the largest sum is found in one pass; along the others all
intervals are gone through. Of the unordered axes all sets of all but the largest are gone through, and of that one the positive
sums are the best set. Where these sets are too many, the unordered axes are taken as one: a larger class, and so a larger number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow._compiled import compiled

Steps = NDArray[np.int64]
MOST_SETS = 1 << 12  # of cells of all unordered attributes but the largest
PLACES = 64  # of c between 0 and 1
FEW_SUMS = 1 << 19  # are taken by arrays, and nothing is compiled
LIMB = 31  # bits of a sum that are added up by themselves, so that the total of many sums cannot overflow


def largest_error(table: Steps, ordered: Sequence[bool], allowed: Steps | None = None) -> int:
    """The largest |Σ_x q(x)·table(x)| − Σ_x q(x)·allowed(x) over the products q, none included, for a table of one to three axes.

    The sums of the positive cells and of the negative ones must fit an int64, less what is allowed: then so does every sum here.
    """
    if allowed is None:
        allowed = np.zeros(table.shape, np.int64)
    return max(_largest_sum(table - allowed, ordered), _largest_sum(-table - allowed, ordered))


def half_distance(table: Steps) -> int:
    """The largest |Σ_x q(x)·table(x)| over all weights q in [0, 1]."""
    return int(max(table[table > 0].sum(), -table[table < 0].sum()))


def largest_of_means(table: Steps, axis: int, places: NDArray[np.int64]) -> int:
    """The largest |Σ_i (i/(m − 1) − c_k)·table(i, k)| over the cells k of the other axis, c_k = places[k]/PLACES, rounded down.

    In whole numbers of any size: what a row moves by whole steps it moves by as many when rounded down.
    """
    lines = np.moveaxis(table, axis, -1).astype(object)
    last = lines.shape[-1] - 1
    along, totals = lines @ np.arange(last + 1).astype(object), lines.sum(axis=-1)
    return int(max(abs(PLACES * along - last * places.astype(object) * totals)) // (PLACES * last))


def _largest_sum(table: Steps, ordered: Sequence[bool]) -> int:
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
    last = np.moveaxis(arranged.reshape(-1, cells, *sizes[1:]), 1, -1)  # at most two ordered axes beside a set's
    if _few(sizes[1:], last.size // math.prod(sizes[1:])):
        return int(np.maximum(_over_intervals(last, (1, 2)), 0).sum(axis=-1).max())
    return int(_best_sets(np.ascontiguousarray(last)))


def _few(sizes: Sequence[int], lines: int) -> bool:
    """Tell whether all products of intervals of axes of these sizes fit one small array, so many times: not worth compiling for."""
    return lines * math.prod(m * (m + 1) // 2 for m in sizes) <= FEW_SUMS


def _over_intervals(table: Steps, axes: Sequence[int], *, but_all: bool = False) -> Steps:
    """Replace each of these axes by all its intervals: sums of the table over them. ``but_all``: without the whole axis, if it is longer than 1."""
    for axis in axes:
        m = table.shape[axis]
        starts, ends = np.triu_indices(m)
        wanted = np.full(len(starts), True) if m == 1 or not but_all else ends - starts + 1 < m
        sums = np.insert(np.cumsum(table, axis=axis), 0, 0, axis=axis)
        table = np.take(sums, ends[wanted] + 1, axis=axis) - np.take(sums, starts[wanted], axis=axis)
    return table


def work(shape: Sequence[int], ordered: Sequence[bool]) -> float:
    """About how many additions it takes: public, so that what takes too long is left out beforehand."""
    intervals, sets = _axes(shape, ordered)
    sizes = [shape[i] for i in intervals]
    pairs = [m * (m + 1) / 2 for m in sizes]
    if not sets:
        return math.prod(pairs[:-1]) * sizes[-1]
    tried = _number_of_sets(shape, sets)
    cells = tried * shape[sets[-1]] if tried <= MOST_SETS else math.prod(shape[i] for i in sets)
    return math.prod(pairs) * cells


def _axes(shape: Sequence[int], ordered: Sequence[bool]) -> tuple[list[int], list[int]]:
    """The ordered axes and the others, each from the smallest to the largest."""
    by_size = sorted(range(len(shape)), key=lambda i: shape[i])
    return [i for i in by_size if ordered[i]], [i for i in by_size if not ordered[i]]


def _number_of_sets(shape: Sequence[int], sets: Sequence[int]) -> int:
    return 1 << sum(shape[i] for i in sets[:-1])


def _all_sets(cells: int) -> Steps:
    """The masks of all sets of so many cells, one a row."""
    return (np.arange(1 << cells)[:, None] >> np.arange(cells)) & 1


@compiled()
def _best_intervals(table: Steps) -> int:
    """Over the products of intervals of the three axes."""
    m1, m2, m3 = table.shape
    largest = 0
    for start in range(m1):
        plane = np.zeros((m2, m3), np.int64)
        for end in range(start, m1):
            plane += table[end]
            for top in range(m2):
                line = np.zeros(m3, np.int64)
                for bottom in range(top, m2):
                    best = 0  # of the intervals that end here
                    for i in range(m3):
                        line[i] += plane[bottom, i]
                        best = max(best + line[i], 0)
                        largest = max(largest, best)
    return largest


@compiled()
def _best_sets(tables: Steps) -> int:
    """Over the first axis, the products of intervals of the next two, and all sets of cells of the last."""
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


# The sum over all boxes: an interval of each ordered attribute that is not all of it, and a cell of each other one


def sum_of_errors(table: Steps, ordered: Sequence[bool]) -> int:
    """Σ |Σ of the table in the box| over all boxes."""
    intervals, sets = _axes(table.shape, ordered)
    sizes = [1] * (3 - len(intervals)) + [table.shape[i] for i in intervals]
    arranged = np.ascontiguousarray(np.transpose(table, sets + intervals)).reshape(-1, *sizes)
    if _few(sizes, arranged.size // math.prod(sizes)):
        found = np.abs(_over_intervals(arranged, (1, 2, 3), but_all=True))
        return (int((found >> LIMB).sum()) << LIMB) + int((found & ((1 << LIMB) - 1)).sum())
    upper, lower = _sum_over_boxes(arranged)
    return (int(upper) << LIMB) + int(lower)


def boxes_with(size: int, is_ordered: bool) -> tuple[int, int]:
    """Of one attribute: how many sets there are, and how many of them at most hold one cell."""
    if not is_ordered or size == 1:
        return size, 1
    middle = size // 2
    return size * (size + 1) // 2 - 1, (middle + 1) * (size - middle) - 1


@compiled()
def _sum_over_boxes(tables: Steps) -> tuple[int, int]:
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
