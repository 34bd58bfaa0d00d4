"""In which coordinates the residual of a table is measured, along one attribute of m values.

    Helmert's    m − 1 orthonormal contrasts: noise is alike in every direction, as for values that are asked about one by one
    of ranges    m contrasts s(x − y mod m), for an ordered attribute whose ranges are asked about: less noise in what varies
                 slowly along the values, and more in what does not

A range sums neighbouring values, so that errors alike in neighbours add up in it and others do not. Let w_k be the mean of |f_k|²/m, f_k the
k-th Fourier coefficient of what is asked: a range whose ends are drawn at random, or now and then a single value. With noise of variance
1/λ_k along it that has the mean variance Σ w_k/λ_k, and a row moves the coordinates by (Σ λ_k/m)^½ whatever its value, for the
contrasts of one value are those of another, turned. For a given Σ λ_k that is least where λ_k ∝ √w_k (Li et al., "The matrix
mechanism", 2015: its eigen-design, on a circle). The contrasts are the symmetric root of this, rounded to whole multiples of 2⁻⁷ that add up to 0.

Public: functions of m.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _memory
from hedgerow._types import Array
from hedgerow.privacy.budget import Contribution

FEWEST = 4  # values of which some ranges are neither one value nor all but one
SINGLE = 0.25  # of what is asked of an ordered attribute: about one value
AT_ONCE = 1_024  # frequencies
MOST_ENTRIES = 1 << 24  # of the matrices of all attributes of a family
BITS = 7  # so that counts along contrasts of ranges of two attributes are on a grid of 2⁻¹⁴ by themselves


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Coordinates along an attribute: rows·counts/√squares, all whole numbers, and every row adds up to 0."""

    rows: NDArray[np.int64]
    squares: NDArray[np.int64]
    inverse: Array  # by which they make the centred counts again
    asked: tuple[float, float]  # of what is usually asked: the variance of the centred part, and the squared mean

    @property
    def size(self) -> int:
        return int(self.rows.shape[1])

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def is_orthonormal(self) -> bool:
        return self.count < self.size

    @cached_property
    def loss(self) -> float:
        """How much more variance a cell has, on average, than with orthonormal ones."""
        return 1.0 if self.is_orthonormal else float(np.square(self.inverse).sum()) / (self.size - 1)

    @cached_property
    def widest(self) -> float:
        """The largest variance along a unit vector."""
        return 1.0 if self.is_orthonormal else float(np.abs(np.fft.fft(self.inverse[0])).max()) ** 2

    @cached_property
    def contribution(self) -> Contribution:
        """What rows add to the coordinates."""
        if self.is_orthonormal:
            return Contribution.centred(self.size)
        # whole numbers below 2^53, over a power of two: exact
        inner = (self.rows[:, :1] * self.rows).sum(axis=0) / float(self.squares[0])
        return Contribution(float(inner[0]), float(inner[1:].min()), float(inner[1:].max()))


def kept(made: Callable[[int], Contrasts]) -> Callable[[int], Contrasts]:
    """Keep the last ones made, of MOST_ENTRIES in all: those of one family, however many sessions a process opens."""
    there: dict[int, Contrasts] = {}

    @wraps(made)
    def found(m: int) -> Contrasts:
        wanted = there.get(m)
        if wanted is None:
            wanted = there[m] = made(m)
            while len(there) > 1 and sum(each * each for each in tuple(there)) > MOST_ENTRIES:
                there.pop(next(iter(there)), None)  # threads may race: what is missing is made again
        return wanted

    return found


@kept
def helmert(m: int) -> Contrasts:
    """The sum of the first k minus k times the next, k = 1 … m − 1; single values are asked about."""
    rows = np.tril(np.ones((m - 1, m), np.int64))
    rows[np.arange(m - 1), np.arange(1, m)] = -np.arange(1, m)
    rows, squares = np.tril(rows, 1), np.arange(1, m) * np.arange(2, m + 1)
    return Contrasts(rows, squares, (rows / np.sqrt(squares)[:, None]).T, (1 - 1 / m, 1 / m**2))


@kept
def of_ranges(m: int) -> Contrasts:
    """Of an attribute of at least ``FEWEST`` values; single values and ranges are asked about, but for the whole."""
    lengths, k = np.arange(1, m), np.arange(1, m)
    often = (m - lengths + 1) * np.where(lengths == 1, 1, 2)  # as two ends drawn at random make them
    often = (1 - SINGLE) * often / often.sum() + SINGLE * (lengths == 1)
    some = [k[start : start + AT_ONCE] for start in range(0, m - 1, AT_ONCE)]  # at a time, to save memory
    squares = np.concatenate([often @ np.square(np.sin(np.pi * np.outer(lengths, each) / m)) for each in some])
    w = squares / np.square(np.sin(np.pi * k / m)) / m
    eigenvalues = np.sqrt(w) * (m - 1) / np.sqrt(w).sum()  # a row adds as much as to Helmert's
    around = np.rint(2.0**BITS * np.fft.ifft([0.0, *np.sqrt(eigenvalues)]).real).astype(np.int64)
    around = around[
        np.minimum(np.arange(m), m - np.arange(m))
    ]  # the same to the left and to the right, to the last bit
    around[0] -= around.sum()
    roots = np.fft.fft(around).real[1:] / 2.0**BITS
    asked = float((w / roots**2).sum()), float(often @ np.square(lengths / m))
    return Contrasts(_turned(around), np.full(m, 4**BITS), _turned(np.fft.ifft([0.0, *(1 / roots)]).real), asked)


def _turned(around: NDArray[Any]) -> NDArray[Any]:
    """Row by row, turned by one more: symmetric, as values to the left and to the right of one are alike."""
    places = np.arange(len(around))
    return around[np.abs(np.subtract.outer(places, places))]


def are_few(sizes: Sequence[int]) -> bool:
    """Whether the contrasts of all these attributes, which are matrices, fit in memory together: a public fact."""
    entries = sum(m * m for m in set(sizes))
    return entries <= MOST_ENTRIES and _memory.fits(entries, _memory.SQUARE)


def along(sizes: Sequence[int], ranged: Sequence[bool] = ()) -> tuple[Contrasts, ...]:
    """Those of each attribute of a table: of ranges where ``ranged`` says so."""
    ranged = ranged or [False] * len(sizes)
    return tuple(of_ranges(m) if each else helmert(m) for m, each in zip(sizes, ranged, strict=True))
