"""Folds: the layout of a table over some axes of an array along the array's memory.

The array is cut into runs along its last axes. A flat index is a sum over axes, so that

    index into the table of run (o, m) = outer[o] + middle[m]       plus the place in the run, unless constant along it

with two short arrays of offsets, and the loops of ``kernels`` pass through memory once, from front to back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array
from hedgerow.model import kernels

SHORTEST = 64  # constant runs of at least this length keep the vector units busy
SCATTERED = 16  # shorter runs of a table's own cells are not worth a loop: each cell gets its own index
MIDDLE = 1024  # most indices in the inner of the two index arrays
LONG_ENOUGH = 512  # other runs of this length are not widened further
FEW_CELLS = 1 << 12  # an array of at most this many cells is handled without compiled code
WIDEST = 1 << 15  # most cells of a widened table (256 kB: it stays in the cache)


class Fold:
    """The layout of a table over some axes of an array, along the array's memory, in runs along its last axes.

    A table with some but not all of a run's axes is widened to all of them; tables are widened and sums narrowed on
    the way. Folds whose runs begin at the same axis can be used in one pass.
    """

    def __init__(self, shape: Sequence[int], axes: Sequence[int], first: int) -> None:
        self._shape = tuple(shape)
        self._others = tuple(k for k in range(len(shape)) if k not in axes)
        self._along = tuple(size if k in axes else 1 for k, size in enumerate(shape))  # to broadcast a table by
        run = set(range(first, len(shape)))
        own = {k for k in axes if shape[k] > 1}
        self.constant = not own & run
        wide = own if self.constant else own | run
        strides, self.size = [0] * len(shape), 1  # ``size`` is the number of cells of the widened table
        for k in sorted(wide, reverse=True):
            strides[k], self.size = self.size, self.size * shape[k]
        half = next(k for k in range(first + 1) if math.prod(shape[k:first]) <= MIDDLE)
        self.length = math.prod(shape[first:])
        self.outer = _offsets(shape[:half], strides[:half])
        self.middle = _offsets(shape[half:first], strides[half:first])
        kept = sorted({*axes, *wide})
        self._wide = tuple(shape[k] for k in kept)
        self._narrow = tuple(shape[k] if k in axes else 1 for k in kept)
        self._extra = tuple(i for i, k in enumerate(kept) if k not in axes)

    def sum(self, values: Array) -> Array:
        """Return the sums of the array over all other axes."""
        if values.size <= FEW_CELLS:
            return np.asarray(values.reshape(self._shape).sum(axis=self._others))
        sums = np.zeros(self.size)
        kernels.fold_sum(values.reshape(-1), self.outer, self.middle, self.length, self.constant, sums)
        return self._narrow_sums(sums)

    def sum_in_order(self, values: Array) -> Array:
        """Return the sums of the array over all other axes, the same to the last bit with and without compiled code."""
        if values.size <= FEW_CELLS:
            return self.sum(values)
        sums = np.zeros(self.size)
        kernels.fold_sum_in_order(values.reshape(-1), self.outer, self.middle, self.length, self.constant, sums)
        return self._narrow_sums(sums)

    def add(self, values: Array, table: Array) -> None:
        """Add the table to the array, in place."""
        if values.size <= FEW_CELLS:
            values.reshape(self._shape)[...] += table.reshape(self._along)
            return
        kernels.fold_add(
            values.reshape(-1), self.outer, self.middle, self.length, self.constant, self._widen_table(table)
        )

    def times(self, values: Array, table: Array, onto: Fold) -> Array:
        """Multiply the array by the table, in place; return the new sums, by a fold with the same runs."""
        if values.size <= FEW_CELLS:
            values.reshape(self._shape)[...] *= table.reshape(self._along)
            return onto.sum(values)
        sums = np.zeros(onto.size)
        t = self._widen_table(table)
        run = (self.outer, self.middle, self.length, self.constant)
        kernels.fold_times(values.reshape(-1), *run, t, onto.outer, onto.middle, onto.constant, sums)
        return onto._narrow_sums(sums)

    def _widen_table(self, table: Array) -> Array:
        if self._extra:
            table = np.broadcast_to(table.reshape(self._narrow), self._wide)
        return np.ascontiguousarray(table).reshape(-1)

    def _narrow_sums(self, sums: Array) -> Array:
        wide = sums.reshape(self._wide)
        return np.asarray(wide.sum(axis=self._extra)) if self._extra else wide


@lru_cache(maxsize=4096)
def fold(shape: tuple[int, ...], axes: tuple[int, ...], *, widen: bool = True) -> Fold:
    """Return the fold of a table over these axes, widened where that is faster."""
    along = Fold(shape, axes, _first(shape, set(axes), set(axes), WIDEST if widen else 0))
    return along if along.constant or along.length >= SCATTERED else Fold(shape, axes, len(shape))


@lru_cache(maxsize=1024)
def update_folds(shape: tuple[int, ...], axes: tuple[int, ...], onto: tuple[int, ...]) -> tuple[Fold, Fold]:
    """Return two folds for one pass: of a table to multiply by, and of sums to take."""
    first = _first(shape, set(axes), set(onto), WIDEST)
    return Fold(shape, axes, first), Fold(shape, onto, first)


def _first(shape: tuple[int, ...], axes: set[int], onto: set[int], widest: int) -> int:
    """Return the first axis of the runs.

    Runs take as many last axes as need no widening, and more where these are few and the tables are small.
    """
    room = min(widest, math.prod(shape) // 4)
    first = len(shape)
    for k in reversed(range(len(shape))):
        run = {j for j in range(k, len(shape)) if shape[j] > 1}
        split = [t for t in (axes, onto) if t & run and not run <= t]
        enough = SHORTEST if not (axes | onto) & set(range(first, len(shape))) else LONG_ENOUGH
        if split and math.prod(shape[first:]) >= enough:
            break
        if all(math.prod(shape[j] for j in t | run) <= room for t in split):
            first = k
    return first


def _offsets(shape: Sequence[int], strides: Sequence[int]) -> NDArray[np.int64]:
    """Return the flat offsets of all index combinations of these axes."""
    offsets = np.zeros(1, np.int64)
    for size, stride in zip(shape, strides, strict=True):
        offsets = np.add.outer(offsets, stride * np.arange(size)).reshape(-1)
    return offsets
