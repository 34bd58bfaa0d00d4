"""Trends: the slope of a number, or of a share, over an ordered attribute.

x, y      the ordered attribute and the outcome, of the records of a condition
s         the slope Cov(x, y)/Var(x) of least squares. For a share it is the linear-by-linear association of
          Cochran and Armitage: it is 0 exactly if the scores x and the outcome do not correlate.
s₀        the slope on the hypothesis, rounded
d         Cov(x, y) − s₀·Var(x) = E (x−a)(y−b−s₀(x−a)) − (E x − a)(E y − b − s₀(E x − a)) for any a, b;
          s = s₀ + d/Var(x). With a, b near the means only the first term has an error of the first order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.errors import InvalidInput
from hedgerow.query.composed import ComposedQuestion, Ends, LinearKnowledge
from hedgerow.query.counts import Count, Quantity, Query, Resolution, bound_condition, count, is_boolean
from hedgerow.query.linear import Linear, require_table, spread
from hedgerow.query.ratios import BoundMean, Mean, mean, narrow, numbers_among
from hedgerow.query.raw_rows import RawRows
from hedgerow.query.statistics.spread import BoundVariance, about, believed_mean, inner_variance, shift_range
from hedgerow.query.statistics.statistic import OfRecords, offer, require_where
from hedgerow.universe.universe import Universe

PLACES = 256  # s₀ is rounded to this part of the largest slope between the ends of both ranges


@dataclass(frozen=True, eq=False)
class BoundTrend(ComposedQuestion):
    """The slope of ``outcome`` over ``score``, both over the same records."""

    score: BoundMean
    outcome: BoundMean
    inner: Array
    """Variance of the scores inside each cell, by interpolation."""

    limits = (-math.inf, math.inf)

    @property
    def key(self) -> Hashable:
        """Key of the question."""
        return ("trend", self.score.key, self.outcome.key)

    @property
    def linears(self) -> tuple[Linear, ...]:
        """Those of the mean score."""
        return self.score.linears

    @property
    def tables(self) -> tuple[Names, ...]:
        """Attribute set of the products."""
        return (self.score.names,)

    @property
    def is_coarse(self) -> bool:
        """True if the slope depends on values inside bins."""
        return self.score.is_coarse or self.outcome.is_coarse

    def ends(self, known: LinearKnowledge) -> Ends:
        """Return the least and the greatest slope that the knowledge allows."""
        score, outcome = self.score, self.outcome
        a, b = (part.round_to_place(part.best(known)) for part in (score, outcome))
        unit = (outcome.high - outcome.low) / (score.high - score.low)
        start = unit * round(self.best(known) / unit * PLACES) / PLACES if unit > 0 else 0.0
        x, y = shift_range(score, a), shift_range(outcome, b)
        low, high = _residual_range(x, y, start)
        first = about(score, low, high).ends(known)
        u, v = ([end - place for end in part.ends(known)] for part, place in ((score, a), (outcome, b)))
        corners = [p * q for p, q in itertools.product(u, v)]
        square = [0.0 if u[0] <= 0 <= u[1] else min(u[0] ** 2, u[1] ** 2), max(u[0] ** 2, u[1] ** 2)]
        bent = sorted(start * each for each in square)
        d = first[0] - (max(corners) - bent[0]), first[1] - (min(corners) - bent[1])
        least, most = BoundVariance(score, self.inner).ends(known)
        low_slope, high_slope = (start + _over(d[end], least, most, upper=bool(end)) for end in (0, 1))
        outcomes = BoundVariance(outcome, np.zeros(1)).ends(known)[1]
        steepest = math.sqrt(outcomes / least) if least > 0 else math.inf  # |Cov| ≤ sd(x)·sd(y)
        return max(low_slope, -steepest), min(high_slope, steepest)

    def best(self, known: LinearKnowledge) -> float:
        """Return the interpolated slope on the hypothesis; 0 if the scores do not vary."""
        means = [part.best(known) for part in (self.score, self.outcome)]
        table = (self.score.middle - means[0]) * (self.outcome.middle - means[1])
        spread_of_scores = BoundVariance(self.score, self.inner).best(known)
        return believed_mean(self.score, known, table) / spread_of_scores if spread_of_scores > 0 else 0.0


def _residual_range(x: tuple[Array, Array], y: tuple[Array, Array], slope: float) -> tuple[Array, Array]:
    """Return the least and the greatest x·(y − slope·x) for numbers in two intervals.

    It is linear in y, so an end of y attains it; and quadratic in x, so an end of x does, or the vertex y/(2·slope).
    """
    found = []
    for end in y:
        places = [*x] if slope == 0 else [*x, np.clip(end / (2 * slope), *x)]
        found += [place * (end - slope * place) for place in places]
    values = np.broadcast_arrays(*found)
    return np.minimum.reduce(values), np.maximum.reduce(values)


def _over(d: float, least: float, most: float, *, upper: bool) -> float:
    """Return the greatest, or the least, quotient of d and a number in [least, most]."""
    outwards = d > 0 if upper else d < 0
    scale = least if outwards else most
    if scale <= 0:
        return math.copysign(math.inf, d) if outwards else 0.0
    return d / scale


def scores_of(universe: Universe, attribute: str, resolution: Resolution) -> tuple[tuple[Array, Array, Array], Query]:
    """Return the lowest, the highest and the interpolated score of each cell, and the records that have a score.

    The scores of an attribute without numbers are the places of its declared values: 0, 1, 2 and so on.
    """
    declared = universe[attribute]
    if declared.values is not None and declared.bounds is not None:
        (found,), _ = numbers_among("A trend", universe, (attribute,), None, resolution)
        none = np.isnan(declared.values)
    else:
        none = np.arange(declared.size) >= len(declared.listed)
        places = np.where(none, 0.0, np.arange(declared.size, dtype=float))
        found = (places, places, places)
    return found, count({attribute: ~none}) if none.any() else Count(())


@dataclass(frozen=True, eq=False, repr=False)
class Trend(OfRecords):
    """A slope, made by ``trend``."""

    of: Query
    over: str
    where: Query | None = None

    @property
    def quantity(self) -> Quantity:
        """A change for each unit."""
        return "value"

    def __post_init__(self) -> None:
        require_where(self.where)
        if not (is_boolean(self.of) or (type(self.of) is Mean and self.of.where is None)):
            raise InvalidInput(
                f"A trend must be of a numeric attribute or of a count. Found {self.of!r}. Name the attribute, or give "
                "a count; choose records by where."
            )

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundTrend:
        """Bind the slope."""
        if isinstance(self.of, Mean) and self.of.attribute == self.over:
            raise InvalidInput(f"A trend must have two attributes. Found {self.over!r} twice. Name another.")
        scores, scored = scores_of(universe, self.over, resolution)
        among = narrow(self.where, scored) if scored != Count(()) else self.where
        if isinstance(self.of, Mean):
            (numbers,), condition = numbers_among("A trend", universe, (self.of.attribute,), among, resolution)
            names = universe.order((self.of.attribute, self.over, *condition.attributes))
            y = [cells.reshape([-1 if n == self.of.attribute else 1 for n in names]) for cells in numbers]
        else:
            part = bound_condition(self.of, universe, resolution)
            condition = bound_condition(Count(()) if among is None else among, universe, resolution)
            names = universe.order((*part.attributes, self.over, *condition.attributes))
            y = [spread(query, names) for query in (part.low, part.high, part.share)]
        require_table(names, universe.sizes(names))
        shape = [-1 if n == self.over else 1 for n in names]
        low, high, middle = (cells.reshape(shape) for cells in scores)
        inner = np.zeros(low.shape)
        if universe[self.over].bounds is not None and resolution == "values":
            inner = inner_variance(universe, self.over, resolution).reshape(shape)
        score = BoundMean(universe, names, low, high, middle, condition)
        return BoundTrend(score, BoundMean(universe, names, y[0], y[1], y[2], condition), inner)

    def true_value(self, rows: RawRows) -> float:
        """Return the slope of least squares of the outcome over the scores."""
        numbers = rows.scores(self.over)
        outcome = rows.numbers(self.of.attribute) if isinstance(self.of, Mean) else self.of.holds(rows).astype(float)
        kept = rows.holds(self.where) & ~np.isnan(numbers) & ~np.isnan(outcome)
        x, y = numbers[kept], outcome[kept]
        return float(((x - x.mean()) * (y - y.mean())).mean() / x.var())


def trend(of: str | Query, over: str, where: Query | None = None) -> Query:
    """Ask for the slope of a number, or of a share, over an ordered attribute: the change for each unit of ``over``.

    It is the slope of least squares. It is 0 exactly if the two do not correlate, so ``answer.excludes(0)`` tests for a
    trend. The labels of an attribute without numbers are scored 0, 1, 2 and so on, in the order of their declaration.

    Parameters
    ----------
    of : str or Query
        A numeric attribute, or a count, whose share of the records is taken.
    over : str
        The ordered attribute.
    where : Query, optional
        A count that selects the records. Default: all.

    Returns
    -------
    Query

    Example
    -------
    >>> trend("income", over="education")  # doctest: +SKIP
    """
    return Trend(mean(of) if isinstance(of, str) else of, over, where)


offer(Trend, trend)
