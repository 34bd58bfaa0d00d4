"""Released measurements: noisy counts, the event that drew them, and the coordinates in which they were drawn.

The residual of a table is measured in contrasts along each attribute, of m values:

    Helmert's    m − 1 orthonormal contrasts: the same noise in every direction, for questions about single values
    of ranges    m contrasts s(x − y mod m), for an ordered attribute whose ranges are asked about: less noise in what
                 varies slowly along the values, and more in what does not

A range sums neighbouring values, so errors that are alike in neighbours add up in it, and others do not. Let w_k be
the mean of |f_k|²/m, f_k the k-th Fourier coefficient of a question: a range with random ends, or now and then a
single value. With noise of variance 1/λ_k along frequency k, the question has the mean variance Σ w_k/λ_k. A row
moves the coordinates by (Σ λ_k/m)^½ whatever its value, because the contrasts of one value are those of another,
rotated. For a given Σ λ_k the variance is least where λ_k ∝ √w_k (Li et al., "The matrix mechanism", 2015: its
eigen-design, on a circle). The contrasts are the symmetric root of this, rounded to whole multiples of 2⁻⁷ that add
up to 0.

All contrasts are functions of m, and so public.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _memory
from hedgerow._types import Array, Names
from hedgerow.privacy.budget import Contribution
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.query.linear import Linear
from hedgerow.universe.universe import Universe

FEWEST = 4  # smallest m with ranges that are neither one value nor all but one
SINGLE = 0.25  # assumed share of questions about an ordered attribute that ask about a single value
AT_ONCE = 1_024  # frequencies computed at a time, to save memory
MOST_ENTRIES = 1 << 24  # most matrix entries for the contrasts of all attributes together
BITS = 7  # contrasts of ranges are multiples of 2⁻⁷, so counts along two such attributes lie on a grid of 2⁻¹⁴ already


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Coordinates along an attribute: rows·counts/√squares, in whole numbers; every row adds up to 0."""

    rows: NDArray[np.int64]
    squares: NDArray[np.int64]
    inverse: Array  # maps the coordinates back to the centred counts
    asked: tuple[float, float]  # of a typical question: variance of the centred part under this noise, and squared mean

    @property
    def size(self) -> int:
        """The number m of values of the attribute."""
        return int(self.rows.shape[1])

    @property
    def count(self) -> int:
        """The number of contrasts."""
        return len(self.rows)

    @property
    def is_orthonormal(self) -> bool:
        """True for Helmert's contrasts, which are fewer than the values."""
        return self.count < self.size

    @cached_property
    def loss(self) -> float:
        """The factor by which a cell has more variance, on average, than with orthonormal contrasts."""
        return 1.0 if self.is_orthonormal else float(np.square(self.inverse).sum()) / (self.size - 1)

    @cached_property
    def widest(self) -> float:
        """The largest variance along a unit vector."""
        return 1.0 if self.is_orthonormal else float(np.abs(np.fft.fft(self.inverse[0])).max()) ** 2

    @cached_property
    def contribution(self) -> Contribution:
        """The amount that a row adds to the coordinates, for the sensitivity."""
        if self.is_orthonormal:
            return Contribution.centered_bounds(self.size)
        # Whole numbers below 2^53, divided by a power of two: exact.
        inner = (self.rows[:, :1] * self.rows).sum(axis=0) / float(self.squares[0])
        return Contribution(float(inner[0]), float(inner[1:].min()), float(inner[1:].max()))


def contrasts_of(made: Callable[[int], Contrasts]) -> Callable[[int], Contrasts]:
    """Cache contrasts by m, however many sessions are opened.

    The cache holds at most ``MOST_ENTRIES`` entries, enough for the attributes of one universe.
    """
    there: dict[int, Contrasts] = {}

    @wraps(made)
    def found(m: int) -> Contrasts:
        wanted = there.get(m)
        if wanted is None:
            wanted = there[m] = made(m)
            while len(there) > 1 and sum(each * each for each in tuple(there)) > MOST_ENTRIES:
                there.pop(next(iter(there)), None)  # threads may race: a missing entry is computed again
        return wanted

    return found


@contrasts_of
def helmert(m: int) -> Contrasts:
    """Return Helmert's contrasts: the sum of the first k values minus k times the next, for k = 1 … m − 1.

    They suit questions about single values.
    """
    rows = np.tril(np.ones((m - 1, m), np.int64))
    rows[np.arange(m - 1), np.arange(1, m)] = -np.arange(1, m)
    rows, squares = np.tril(rows, 1), np.arange(1, m) * np.arange(2, m + 1)
    return Contrasts(rows, squares, (rows / np.sqrt(squares)[:, None]).T, (1 - 1 / m, 1 / m**2))


@contrasts_of
def of_ranges(m: int) -> Contrasts:
    """Return contrasts of ranges for an attribute of at least ``FEWEST`` values.

    They suit questions about single values and about ranges other than the whole.
    """
    lengths, k = np.arange(1, m), np.arange(1, m)
    often = (m - lengths + 1) * np.where(lengths == 1, 1, 2)  # frequency of each length if both ends are random
    often = (1 - SINGLE) * often / often.sum() + SINGLE * (lengths == 1)
    some = [k[start : start + AT_ONCE] for start in range(0, m - 1, AT_ONCE)]
    squares = np.concatenate([often @ np.square(np.sin(np.pi * np.outer(lengths, each) / m)) for each in some])
    w = squares / np.square(np.sin(np.pi * k / m)) / m
    eigenvalues = np.sqrt(w) * (m - 1) / np.sqrt(w).sum()  # scaled so that a row adds as much as to Helmert's contrasts
    around = np.rint(2.0**BITS * np.fft.ifft([0.0, *np.sqrt(eigenvalues)]).real).astype(np.int64)
    around = around[np.minimum(np.arange(m), m - np.arange(m))]  # make it symmetric to the last bit
    around[0] -= around.sum()
    roots = np.fft.fft(around).real[1:] / 2.0**BITS
    asked = float((w / roots**2).sum()), float(often @ np.square(lengths / m))
    return Contrasts(_circulant(around), np.full(m, 4**BITS), _circulant(np.fft.ifft([0.0, *(1 / roots)]).real), asked)


def _circulant(around: NDArray[Any]) -> NDArray[Any]:
    """Return the circulant matrix with this first row; it is symmetric, because ``around`` is."""
    places = np.arange(len(around))
    return around[np.abs(np.subtract.outer(places, places))]


def are_few(sizes: Sequence[int]) -> bool:
    """Return True if the contrasts of all these attributes, which are m × m matrices, fit in memory. A public fact."""
    entries = sum(m * m for m in set(sizes))
    return entries <= MOST_ENTRIES and _memory.fits(entries, _memory.SQUARE)


def along(sizes: Sequence[int], ranged: Sequence[bool] = ()) -> tuple[Contrasts, ...]:
    """Return the contrasts of each attribute of a table: those of ranges where ``ranged`` is True."""
    ranged = ranged or [False] * len(sizes)
    return tuple(of_ranges(m) if each else helmert(m) for m, each in zip(sizes, ranged, strict=True))


@dataclass(frozen=True, eq=False)
class Measurement:
    """Noisy counts on ``attributes`` (or of ``query`` alone, then a single number), with the event that drew them.

    ``residual``: the counts are centred along every attribute and say nothing about smaller tables (``residuals``).
    ``ranged``: the attributes along which a residual was measured by contrasts of ranges (``contrasts``).
    ``of_groups``: the counts are of groups of values, not of single values (``value_groups``).
    ``rounding``: the largest difference, per row, between ``query`` and the query that was counted
        (``counting.on_grid``).
    """

    attributes: Names
    values: Array
    event: Laplace | Gaussian
    query: Linear | None = None
    residual: bool = False
    rounding: float = 0.0
    of_groups: bool = False
    ranged: Names = ()
    _projected: dict[Names, Array] = field(default_factory=dict, repr=False)

    def with_values(self, values: Array) -> Measurement:
        """Return the same measurement with other released values."""
        return replace(self, values=values, _projected={})

    @property
    def variance(self) -> float:
        """The variance of each noisy count, or of each coordinate of a residual.

        It is σ² for Gaussian noise and 2b² for Laplace noise of scale b.
        """
        if isinstance(self.event, Gaussian):
            return self.event.sigma**2
        return 2 * self.event.scale**2

    @property
    def contrasts(self) -> tuple[Contrasts, ...]:
        """The contrasts along each attribute that a residual was measured by."""
        return along(self.values.shape, [name in self.ranged for name in self.attributes])

    def onto(self, names: Names) -> Array:
        """Sum the noisy counts to fewer attributes."""
        if names not in self._projected:
            away = tuple(i for i, name in enumerate(self.attributes) if name not in names)
            self._projected[names] = self.values.sum(axis=away)
        return self._projected[names]


@dataclass(frozen=True)
class RowCountInterval:
    """The public knowledge of n: exact under replace-one; an estimate with interval and deviation under add/remove."""

    estimate: float
    low: float
    high: float
    deviation: float = 0.0

    @property
    def off(self) -> float:
        """The largest distance of n from the estimate. ``low`` is at least 1, for fractions; n itself may be 0."""
        return max(self.high - self.estimate, self.estimate - (self.low if self.low > 1 else 0.0))

    @property
    def doubt(self) -> float:
        """The most by which half an interval for a fraction is wider than if n were known to be ``low``."""
        return (self.high - self.low) / (2 * self.low)


def varying_names(universe: Universe, names: Names) -> Names:
    """Leave out the attributes with only one value: they change no table."""
    return tuple(name for name in names if universe[name].size > 1)
