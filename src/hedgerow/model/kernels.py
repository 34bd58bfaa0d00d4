"""Compiled loops over large arrays: each reads (and writes) its array once.

Tables over some axes of an array are laid along its memory by a fold (see ``memory_layout``). Exponentials are
computed by a polynomial, 2^k (1 + r + r²/2! + … + r¹³/13!) with |r| ≤ ln(2)/2, which vectorises without a math
library; its error is about one unit in the last place.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._compiled import compile_lazily
from hedgerow._types import Array

CHUNK = 2048  # cells summed into one accumulator, so that rounding errors grow only with the number of chunks
LOWEST = -708.0  # exp of anything below counts as 0: it would be subnormal
LONG_RUN = 200  # without compiled code, runs of at least this length are added one by one
SAFE_RANGE = 600.0  # if log potentials span less than this, no exp underflows and one common maximum is enough


@compile_lazily("contract")
def _exp(x: float) -> float:
    """Return exp(x), by the polynomial of the module docstring; 0 below ``LOWEST``."""
    shifted = x * 1.4426950408889634 + 6755399441055744.0  # 1.5 * 2^52: the sum's low bits are round(x / ln 2)
    k = shifted - 6755399441055744.0
    r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    bits = np.float64(p).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)
    y = np.int64(bits).view(np.float64)
    return y if x > LOWEST else 0.0


@compile_lazily("reassoc", "contract", "nsz")
def exp_times(values: Array, logs: Array, top: float) -> float:
    """Multiply values by exp(logs − top), in place; return the new sum."""
    total = 0.0
    for start in range(0, values.size, CHUNK):
        v, t = values[start : start + CHUNK], logs[start : start + CHUNK]
        part = 0.0
        for i in range(v.size):
            x = v[i] * _exp(t[i] - top)
            v[i] = x
            part += x
        total += part
    return total


# Loops along a fold. Their arguments are the array, the fold (outer, middle, length, constant), then tables along it.


@compile_lazily("reassoc", "contract", "nsz")
def fold_times(
    values: Array,
    outer: Any,
    middle: Any,
    length: int,
    constant: bool,
    table: Array,
    onto: Any,
    within: Any,
    summed: bool,
    sums: Array,
) -> None:
    """Multiply values by the table, in place, and add them to the sums.

    The sums have a fold of their own (onto, within, summed) with the same runs.
    """
    start = 0
    for o in range(outer.size):
        for m in range(middle.size):
            base, place = outer[o] + middle[m], onto[o] + within[m]
            c = table[base]
            for at in range(0, length, CHUNK):
                upto = min(at + CHUNK, length)
                v, part = values[start + at : start + upto], 0.0
                if constant and summed:
                    for i in range(v.size):
                        x = v[i] * c
                        v[i] = x
                        part += x
                    sums[place] += part
                elif constant:
                    s = sums[place + at : place + upto]
                    for i in range(v.size):
                        x = v[i] * c
                        v[i] = x
                        s[i] += x
                elif summed:
                    t = table[base + at : base + upto]
                    for i in range(v.size):
                        x = v[i] * t[i]
                        v[i] = x
                        part += x
                    sums[place] += part
                else:
                    s, t = sums[place + at : place + upto], table[base + at : base + upto]
                    for i in range(v.size):
                        x = v[i] * t[i]
                        v[i] = x
                        s[i] += x
            start += length


@compile_lazily("reassoc", "contract", "nsz")
def fold_sum(values: Array, outer: Any, middle: Any, length: int, constant: bool, sums: Array) -> None:
    """Add values to the sums."""
    start = 0
    if length == 1:
        for o in range(outer.size):
            base, v = outer[o], values[start : start + middle.size]
            for m in range(middle.size):
                sums[np.uint64(base + middle[m])] += v[m]
            start += middle.size
        return
    for o in range(outer.size):
        for m in range(middle.size):
            base = outer[o] + middle[m]
            if constant:
                for at in range(start, start + length, CHUNK):
                    v = values[at : min(at + CHUNK, start + length)]
                    part = 0.0
                    for i in range(v.size):
                        part += v[i]
                    sums[base] += part
            else:
                v, s = values[start : start + length], sums[base : base + length]
                for i in range(length):
                    s[i] += v[i]
            start += length


def _fold_places(outer: Any, middle: Any, length: int, constant: bool) -> NDArray[np.int64]:
    """Return the place in the table for each cell of the array, in the order of memory."""
    runs = np.add.outer(outer, middle).reshape(-1, 1)
    return np.ascontiguousarray(
        np.broadcast_to(runs if constant else runs + np.arange(length), (runs.size, length))
    ).reshape(-1)


def _sum_in_order_plainly(values: Array, outer: Any, middle: Any, length: int, constant: bool, sums: Array) -> None:
    """Add values to sums that are 0, as ``fold_sum_in_order`` does."""
    if length >= LONG_RUN and not constant:
        for run, base in zip(values.reshape(-1, length), np.add.outer(outer, middle).reshape(-1).tolist(), strict=True):
            sums[base : base + length] += run
        return
    sums[:] = np.bincount(_fold_places(outer, middle, length, constant), values, sums.size)


@compile_lazily(plain=_sum_in_order_plainly)
def fold_sum_in_order(values: Array, outer: Any, middle: Any, length: int, constant: bool, sums: Array) -> None:
    """Add values to sums that are 0, each sum in the order of memory, so that NumPy can give the same bits."""
    start = 0
    if length == 1:
        for o in range(outer.size):
            base, v = outer[o], values[start : start + middle.size]
            for m in range(middle.size):
                sums[np.uint64(base + middle[m])] += v[m]
            start += middle.size
        return
    for o in range(outer.size):
        for m in range(middle.size):
            base, v = outer[o] + middle[m], values[start : start + length]
            if constant:
                total = sums[base]
                for i in range(length):
                    total += v[i]
                sums[base] = total
            else:
                s = sums[base : base + length]
                for i in range(length):
                    s[i] += v[i]
            start += length


def _fold_add_plainly(values: Array, outer: Any, middle: Any, length: int, constant: bool, table: Array) -> None:
    """Add the table to values, in place, as ``fold_add`` does."""
    if length >= LONG_RUN:
        for run, base in zip(values.reshape(-1, length), np.add.outer(outer, middle).reshape(-1).tolist(), strict=True):
            run += table[base] if constant else table[base : base + length]
        return
    values += table[_fold_places(outer, middle, length, constant)]


@compile_lazily("contract", plain=_fold_add_plainly)
def fold_add(values: Array, outer: Any, middle: Any, length: int, constant: bool, table: Array) -> None:
    """Add the table to values, in place."""
    start = 0
    if length == 1:
        for o in range(outer.size):
            base, v = outer[o], values[start : start + middle.size]
            for m in range(middle.size):
                v[m] += table[np.uint64(base + middle[m])]
            start += middle.size
        return
    for o in range(outer.size):
        for m in range(middle.size):
            base = outer[o] + middle[m]
            v = values[start : start + length]
            if constant:
                c = table[base]
                for i in range(length):
                    v[i] += c
            else:
                t = table[base : base + length]
                for i in range(length):
                    v[i] += t[i]
            start += length


@compile_lazily("contract")
def fold_scale(values: Array, outer: Any, middle: Any, length: int, constant: bool, table: Array) -> None:
    """Multiply values by the table, in place."""
    start = 0
    if length == 1:
        for o in range(outer.size):
            base, v = outer[o], values[start : start + middle.size]
            for m in range(middle.size):
                v[m] *= table[np.uint64(base + middle[m])]
            start += middle.size
        return
    for o in range(outer.size):
        for m in range(middle.size):
            base = outer[o] + middle[m]
            v = values[start : start + length]
            if constant:
                c = table[base]
                for i in range(length):
                    v[i] *= c
            else:
                t = table[base : base + length]
                for i in range(length):
                    v[i] *= t[i]
            start += length


@compile_lazily("reassoc", "contract", "nsz", "nnan")
def fold_max(values: Array, outer: Any, middle: Any, length: int, constant: bool, tops: Array) -> None:
    """Raise each entry of ``tops`` to the largest of its values."""
    start = 0
    if length == 1:
        for o in range(outer.size):
            base, v = outer[o], values[start : start + middle.size]
            for m in range(middle.size):
                at = np.uint64(base + middle[m])
                tops[at] = v[m] if v[m] > tops[at] else tops[at]
            start += middle.size
        return
    for o in range(outer.size):
        for m in range(middle.size):
            base = outer[o] + middle[m]
            v = values[start : start + length]
            if constant:
                high = tops[base]
                for i in range(length):
                    high = v[i] if v[i] > high else high
                tops[base] = high
            else:
                t = tops[base : base + length]
                for i in range(length):
                    t[i] = v[i] if v[i] > t[i] else t[i]
            start += length


@compile_lazily("reassoc", "contract", "nsz")
def fold_exp(values: Array, outer: Any, middle: Any, length: int, constant: bool, tops: Array, sums: Array) -> None:
    """Replace values by exp(values − tops), in place, and add them to the sums."""
    start = 0
    if length == 1:
        for o in range(outer.size):
            base, v = outer[o], values[start : start + middle.size]
            for m in range(middle.size):
                v[m] = _exp(v[m] - tops[np.uint64(base + middle[m])])
            for m in range(middle.size):
                sums[np.uint64(base + middle[m])] += v[m]
            start += middle.size
        return
    for o in range(outer.size):
        for m in range(middle.size):
            base = outer[o] + middle[m]
            if constant:
                c = tops[base]
                for at in range(start, start + length, CHUNK):
                    v = values[at : min(at + CHUNK, start + length)]
                    part = 0.0
                    for i in range(v.size):
                        x = _exp(v[i] - c)
                        v[i] = x
                        part += x
                    sums[base] += part
            else:
                v, t, s = values[start : start + length], tops[base : base + length], sums[base : base + length]
                for i in range(length):
                    x = _exp(v[i] - t[i])
                    v[i] = x
                    s[i] += x
            start += length


def _extremes_plainly(values: Array) -> tuple[float, float]:
    """Return what ``extremes`` finds."""
    low, high = float(values.min()), float(values.max())
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (math.nan, math.nan)


@compile_lazily(plain=_extremes_plainly)
def extremes(values: Array) -> tuple[float, float]:
    """Return the least and the greatest value; NaN if any is not finite.

    A single running minimum would not vectorise, so each lane has its own.
    """
    lanes = min(64, values.size)
    low, high, bad = values[:lanes].copy(), values[:lanes].copy(), 0.0 * values[:lanes]
    for start in range(values.size % lanes, values.size, lanes):
        v = values[start : start + lanes]
        for i in range(lanes):
            low[i] = v[i] if v[i] < low[i] else low[i]
            high[i] = v[i] if v[i] > high[i] else high[i]
            bad[i] += 0.0 * v[i]
    return low.min() + bad.sum(), high.max() + bad.sum()


@compile_lazily("contract")
def calibrate(values: Array, plan: Any, indices: Any, tops: Array, scales: Array) -> float:
    """Turn the log potentials of all cliques into probabilities, in place; return the log partition function.

    A row of the plan is a clique, children first: its place in ``values``, its separator's place in ``tops`` and
    ``scales``, its parent, and the folds of the separator along the clique and along the parent.
    """
    log_partition = 0.0
    for c in range(plan.shape[0]):
        start, stop, first, last, parent, o, m, end, length, constant = plan[c, :10]
        v, top, z = values[start:stop], tops[first:last], scales[first:last]
        outer, middle = indices[o:m], indices[m:end]
        low, high = extremes(v)
        if high - low < SAFE_RANGE:
            top[:] = high
        else:
            top[:] = -np.inf
            fold_max(v, outer, middle, length, constant != 0, top)
        z[:] = 0.0
        fold_exp(v, outer, middle, length, constant != 0, top, z)  # W(r | s) and Z(s)
        for s in range(z.size):
            top[s] += math.log(z[s])  # the message
        if parent < 0:
            log_partition += top[0]
        else:
            o, m, end, length, constant = plan[c, 10:]
            above = values[plan[parent, 0] : plan[parent, 1]]
            fold_add(above, indices[o:m], indices[m:end], length, constant != 0, top)
    for c in range(plan.shape[0] - 1, -1, -1):
        start, stop, first, last, parent, o, m, end, length, constant = plan[c, :10]
        top, z = tops[first:last], scales[first:last]
        if parent < 0:
            top[:] = 1.0
        else:
            above_o, above_m, above_end, above_length, above_constant = plan[c, 10:]
            above = values[plan[parent, 0] : plan[parent, 1]]
            top[:] = 0.0
            fold_sum(
                above, indices[above_o:above_m], indices[above_m:above_end], above_length, above_constant != 0, top
            )
        for s in range(z.size):
            z[s] = top[s] / z[s]
        fold_scale(values[start:stop], indices[o:m], indices[m:end], length, constant != 0, z)  # P(r | s) P(s)
    return log_partition


@compile_lazily("contract")
def rake(columns: Any, chosen: Any, strides: Any, target: Array, weights: Array, places: Any, sums: Array) -> None:
    """Scale the weights of records so that they have these sums in the table of some attributes.

    ``columns`` has a row of codes for each attribute. ``chosen`` are the table's attributes, and ``strides`` their
    steps in it. ``places`` and ``sums`` are working space.
    """
    places[:] = 0
    for a in range(chosen.size):
        stride, codes = strides[a], columns[chosen[a]]
        for i in range(places.size):
            places[i] += stride * codes[i]
    sums[:] = 0.0
    for i in range(places.size):
        sums[places[i]] += weights[i]
    for c in range(sums.size):
        sums[c] = target[c] / max(sums[c], 1e-300)
    for i in range(places.size):
        weights[i] *= sums[places[i]]
