"""Spread and association: variances and correlations, each from means of products near the mean."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.errors import InvalidInput
from hedgerow.query.composed import (
    AnswerKnowledge,
    ComposedQuestion,
    Ends,
    LinearKnowledge,
)
from hedgerow.query.counts import (
    Quantity,
    Query,
    Resolution,
)
from hedgerow.query.linear import Linear, require_table, spread
from hedgerow.query.ratios import BoundMean, bound_mean, numbers_among
from hedgerow.query.raw_rows import RawRows
from hedgerow.query.statistics.statistic import OfRecords, offer, require_where
from hedgerow.universe.universe import Universe

ROUNDED = 1e-12  # part of a range, or of all records, that float64 may leave of nothing


@dataclass(frozen=True, eq=False)
class BoundVariance(ComposedQuestion):
    """E(x − c)² − (E x − c)². With c near the mean, its error is that of the first term."""

    part: BoundMean
    inner: Array
    """Variance of the values inside each cell, by interpolation."""

    @property
    def key(self) -> Hashable:
        """Key of the question."""
        return ("variance", self.part.key)

    @property
    def linears(self) -> tuple[Linear, ...]:
        """Those of the mean."""
        return self.part.linears

    @property
    def tables(self) -> tuple[Names, ...]:
        """Those of the mean."""
        return self.part.tables

    @property
    def is_coarse(self) -> bool:
        """True if the variance depends on values inside bins."""
        return self.part.is_coarse

    @property
    def limits(self) -> Ends:
        """0, and a quarter of the squared range."""
        return 0.0, (self.part.high - self.part.low) ** 2 / 4

    def _squares(self, known: LinearKnowledge) -> tuple[float, BoundMean]:
        """Return a place c near the mean, and the mean of (x − c)²."""
        c = self.part.round_to_place(self.part.best(known))
        shifted = shift_range(self.part, c)
        return c, about(self.part, *product_range(shifted, shifted, same=True))

    def typical(self, known: AnswerKnowledge) -> float | None:
        """Return the typical error of the mean square about a place near the mean, which is all to first order."""
        return self._squares(known)[1].typical(known)

    def ends(self, known: LinearKnowledge) -> Ends:
        """Return the least and the greatest variance that the knowledge allows."""
        c, mean_square = self._squares(known)
        squares = mean_square.ends(known)
        low, high = (end - c for end in self.part.ends(known))
        nearest = 0.0 if low <= 0 <= high else min(low * low, high * high)
        least, most = self.limits
        return max(least, squares[0] - max(low * low, high * high)), min(most, squares[1] - nearest)

    def best(self, known: LinearKnowledge) -> float:
        """Return the interpolated variance on the hypothesis."""
        c = self.part.best(known)
        table = (self.part.middle - c) ** 2 + self.inner
        return max(0.0, believed_mean(self.part, known, table))


@dataclass(frozen=True, eq=False)
class BoundCorrelation(ComposedQuestion):
    """Cov(a, b) / (sd(a)·sd(b)), each factor within its interval."""

    first: BoundMean
    second: BoundMean
    inner: tuple[Array, Array]

    @property
    def key(self) -> Hashable:
        """Key of the question."""
        return ("correlation", self.first.key, self.second.key)

    @property
    def linears(self) -> tuple[Linear, ...]:
        """Those of the first mean."""
        return self.first.linears

    @property
    def tables(self) -> tuple[Names, ...]:
        """Attribute set of the products."""
        return (self.first.names,)

    @property
    def is_coarse(self) -> bool:
        """True if the correlation depends on values inside bins."""
        return self.first.is_coarse or self.second.is_coarse

    limits = (-1.0, 1.0)

    @property
    def _variances(self) -> tuple[BoundVariance, BoundVariance]:
        """Variances of both attributes."""
        return BoundVariance(self.first, self.inner[0]), BoundVariance(self.second, self.inner[1])

    def ends(self, known: LinearKnowledge) -> Ends:
        """Return the least and the greatest correlation that the knowledge allows."""
        places, mean_product = self._product(known)
        product = mean_product.ends(known)
        off = [[end - c for end in part.ends(known)] for part, c in zip((self.first, self.second), places, strict=True)]
        moved = [a * b for a, b in itertools.product(*off)]
        low, high = product[0] - max(moved), product[1] - min(moved)
        variances = [variance.ends(known) for variance in self._variances]
        least, most = (math.sqrt(max(0.0, variances[0][i] * variances[1][i])) for i in (0, 1))
        nothing = ROUNDED * math.prod(part.high - part.low for part in (self.first, self.second))

        def over(covariance: float, *, upper: bool) -> float:
            is_outward = (covariance > 0) == upper
            scale = least if is_outward else most
            if scale <= nothing:  # what is constant has no covariance either: any that is left inwards is rounding
                return math.copysign(1.0, covariance) if is_outward and covariance else 0.0
            return min(1.0, max(-1.0, covariance / scale))

        return over(low, upper=False), over(high, upper=True)

    def _product(self, known: LinearKnowledge) -> tuple[list[float], BoundMean]:
        """Return places near the means, and the mean of (a − c)(b − d)."""
        places = [part.round_to_place(part.best(known)) for part in (self.first, self.second)]
        shifted = [shift_range(part, c) for part, c in zip((self.first, self.second), places, strict=True)]
        return places, about(self.first, *product_range(*shifted, same=False))

    def typical(self, known: AnswerKnowledge) -> float | None:
        """Return the typical error of the mean product, times what the variances' errors add to it.

        To first order a correlation r of the standard scores z and w errs as the mean of zw − r(z² + w²)/2 does. Noise
        is spread over all cells, so the size of that, relative to that of zw, is taken as if z and w were independent:
        1 + r²(E z⁴ + E w⁴ + 2)/4, squared.
        """
        of_product, variances = self._product(known)[1].typical(known), [each.best(known) for each in self._variances]
        if of_product is None or min(variances) <= 0:
            return None
        fourth = 0.0
        for part, variance_ in zip((self.first, self.second), variances, strict=True):
            fourth += believed_mean(part, known, (part.middle - part.best(known)) ** 4) / variance_**2
        size = math.sqrt(1 + self.best(known) ** 2 * (fourth + 2) / 4)
        return min(1.0, of_product * size / math.sqrt(math.prod(variances)))

    def best(self, known: LinearKnowledge) -> float:
        """Return the interpolated correlation on the hypothesis."""
        means = [part.best(known) for part in (self.first, self.second)]
        table = (self.first.middle - means[0]) * (self.second.middle - means[1])
        scale = math.sqrt(math.prod(variance.best(known) for variance in self._variances))
        return min(1.0, max(-1.0, believed_mean(self.first, known, table) / scale)) if scale > 0 else 0.0


def about(part: BoundMean, lowest: Array, highest: Array) -> BoundMean:
    """Return the mean of another number over the same records."""
    return BoundMean(part.universe, part.names, lowest, highest, (lowest + highest) / 2, part.among)


def shift_range(part: BoundMean, c: float) -> tuple[Array, Array]:
    """Return the lowest and highest values minus c."""
    return part.lowest - c, part.highest - c


def product_range(first: tuple[Array, Array], second: tuple[Array, Array], *, same: bool) -> tuple[Array, Array]:
    """Return the least and greatest product of numbers in two intervals, or of one number with itself."""
    if same:
        low, high = (end * end for end in first)
        crossed = (first[0] < 0) & (first[1] > 0)
        return np.where(crossed, 0.0, np.minimum(low, high)), np.maximum(low, high)
    corners = [a * b for a in first for b in second]
    return np.minimum.reduce(np.broadcast_arrays(*corners)), np.maximum.reduce(np.broadcast_arrays(*corners))


def believed_mean(part: BoundMean, known: LinearKnowledge, table: Array) -> float:
    """Return the mean of a table over the records of the condition, on the hypothesis."""
    among = part.among.share
    mass = known.hypothesis_answer(among)
    return part.hypothesis_sum(known, table * spread(among, part.names)) / mass if mass > 0 else 0.0


def inner_variance(universe: Universe, attribute: str, resolution: Resolution) -> Array:
    """Return the variance of values spread evenly over each bin: w²/12, or (k² − 1)/12 for k whole numbers."""
    declared = universe[attribute]
    assert declared.bounds is not None
    if resolution == "bins":
        return np.zeros(declared.size)
    width = np.nan_to_num(declared.bounds[1] - declared.bounds[0])
    inner: Array = ((width + 1) ** 2 - 1) / 12 if declared.is_whole else width**2 / 12
    return inner


@dataclass(frozen=True, eq=False, repr=False)
class Variance(OfRecords):
    """A variance, made by ``variance``."""

    attribute: str
    where: Query | None = None

    @property
    def quantity(self) -> Quantity:
        """A value in the square of the units."""
        return "value"

    def __post_init__(self) -> None:
        require_where(self.where)

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundVariance:
        """Bind the variance."""
        part = bound_mean("A variance", universe, self.attribute, self.where, resolution)
        return BoundVariance(part, inner_variance(universe, self.attribute, resolution).reshape(part.middle.shape))

    def true_value(self, rows: RawRows) -> float:
        """Return the variance of the values."""
        return float(rows.values(self.attribute, self.where).var())


@dataclass(frozen=True, eq=False, repr=False)
class Correlation(OfRecords):
    """A correlation, made by ``correlation``."""

    first: str
    second: str
    where: Query | None = None

    @property
    def quantity(self) -> Quantity:
        """A number without a unit."""
        return "number"

    def __post_init__(self) -> None:
        require_where(self.where)

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundCorrelation:
        """Bind the correlation."""
        pair = (self.first, self.second)
        if self.first == self.second:
            raise InvalidInput(f"A correlation must have two attributes. Found {self.first!r} twice. Name another.")
        numbers_, among = numbers_among("A correlation", universe, pair, self.where, resolution)
        names = universe.order((*pair, *among.attributes))
        require_table(names, universe.sizes(names))
        parts, inner = [], []
        for name, cells in zip(pair, numbers_, strict=True):
            shape = [-1 if n == name else 1 for n in names]
            low, high, middle = (x.reshape(shape) for x in cells)
            parts.append(BoundMean(universe, names, low, high, middle, among))
            inner.append(inner_variance(universe, name, resolution).reshape(shape))
        return BoundCorrelation(parts[0], parts[1], (inner[0], inner[1]))

    def true_value(self, rows: RawRows) -> float:
        """Return the correlation over the rows that have both values."""
        a, b = rows.numbers(self.first), rows.numbers(self.second)
        both = rows.holds(self.where) & ~np.isnan(a) & ~np.isnan(b)
        return float(np.corrcoef(a[both], b[both])[0, 1])


def variance(attribute: str, where: Query | None = None) -> Query:
    """Ask for the variance of an attribute over the records, or over those of ``where``.

    It is the mean squared distance from the mean.

    Parameters
    ----------
    attribute : str
        A numeric attribute.
    where : Query, optional
        A count that selects the records. Default: all.

    Returns
    -------
    Query

    Example
    -------
    >>> variance("age")  # doctest: +SKIP
    """
    return Variance(attribute, where)


def correlation(first: str, second: str, where: Query | None = None) -> Query:
    """Ask for Pearson's correlation of two attributes over the records, or over those of ``where``.

    Parameters
    ----------
    first, second : str
        Two numeric attributes.
    where : Query, optional
        A count that selects the records. Default: all.

    Returns
    -------
    Query

    Example
    -------
    >>> correlation("age", "visits")  # doctest: +SKIP
    """
    return Correlation(first, second, where)


offer(Variance, variance)
offer(Correlation, correlation)
