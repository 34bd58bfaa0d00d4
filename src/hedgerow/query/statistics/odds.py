"""Ratios of two numbers, relative risks and odds ratios.

p, q      shares of the records of two groups for which the same thing holds
ratio     p/q, the relative risk; of any two numbers that cannot be negative
odds      p/(1 − p), which rises with p
OR        odds(p)/odds(q): it rises with p and falls with q, so the ends of both shares give its ends
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from hedgerow._types import Array, Names
from hedgerow.errors import InvalidInput
from hedgerow.query import ratios
from hedgerow.query.composed import AnswerKnowledge, ComposedQuestion, Ends, LinearKnowledge
from hedgerow.query.counts import Quantity, Query, Resolution, is_boolean, require_boolean
from hedgerow.query.ratios import Share
from hedgerow.query.raw_rows import RawRows
from hedgerow.query.statistics.statistic import MAKERS, STATISTICS, Statistic, offer, part_of
from hedgerow.universe.universe import Universe


@dataclass(frozen=True, eq=False)
class BoundQuotient(ComposedQuestion):
    """The quotient of two numbers that cannot be negative."""

    first: ComposedQuestion
    second: ComposedQuestion

    name: ClassVar[str] = "quotient"
    limits = (0.0, math.inf)

    @property
    def key(self) -> Hashable:
        """Key of the question."""
        return (self.name, self.first.key, self.second.key)

    @property
    def linears(self) -> tuple[object, ...]:  # type: ignore[override]
        """Those of both parts."""
        return (*self.first.linears, *self.second.linears)

    @property
    def tables(self) -> tuple[Names, ...]:
        """Those of both parts."""
        return (*self.first.tables, *self.second.tables)

    @property
    def is_coarse(self) -> bool:
        """True if bins are cut in one of the parts."""
        return self.first.is_coarse or self.second.is_coarse

    @staticmethod
    def rise(part: float) -> float:
        """Return the number that is compared: the part itself."""
        return part

    @staticmethod
    def slope(part: float) -> float:
        """Return the derivative of the logarithm of ``rise``."""
        return 1 / part

    def ends(self, known: LinearKnowledge) -> Ends:
        """Return the least and the greatest quotient that the knowledge allows."""
        (low, high), (least, most) = (
            [max(0.0, float(end)) for end in p.ends(known)] for p in (self.first, self.second)
        )
        return _over(self.rise(low), self.rise(most), 0.0), _over(self.rise(high), self.rise(least), math.inf)

    def best(self, known: LinearKnowledge) -> float:
        """Return the quotient of the best answers to the parts; 1 if it is not finite."""
        first, second = (self.rise(max(0.0, float(part.best(known)))) for part in (self.first, self.second))
        found = _over(first, second, math.nan)
        return found if math.isfinite(found) else 1.0

    def typical(self, known: AnswerKnowledge) -> float | None:
        """Return the typical errors of both parts in quadrature, each times the slope of the logarithm."""
        total = 0.0
        for part in (self.first, self.second):
            typical_error, found = part.typical(known), float(part.best(known))
            if typical_error is None or found <= 0 or math.isinf(self.rise(found)):
                return None
            total += (typical_error * self.slope(found)) ** 2
        return self.best(known) * math.sqrt(total)


@dataclass(frozen=True, eq=False)
class BoundOddsRatio(BoundQuotient):
    """The odds of one share divided by those of another."""

    name: ClassVar[str] = "odds"

    @staticmethod
    def rise(part: float) -> float:
        """Return the odds of a share."""
        return math.inf if part >= 1 else part / (1 - part)

    @staticmethod
    def slope(part: float) -> float:
        """Return the derivative of the log-odds."""
        return 1 / (part * (1 - part))


def _over(above: float, below: float, otherwise: float) -> float:
    """Divide two numbers that are at least 0 and may be infinite; ``otherwise`` for 0/0 and ∞/∞."""
    if above == below and (above == 0 or math.isinf(above)):
        return otherwise
    return math.inf if below == 0 else above / below


def quotient_of(universe: Universe, first: Query, second: Query, resolution: Resolution) -> BoundQuotient:
    """Bind the ratio of two numbers that cannot be negative."""
    parts = [part_of(query, universe, resolution, "A ratio") for query in (first, second)]
    for query, part in zip((first, second), parts, strict=True):
        if float(part.limits[0]) < 0:
            raise InvalidInput(
                f"A ratio must be of numbers that cannot be negative. Found {query!r}, which the universe allows to be "
                f"{float(part.limits[0]):g}. Ask for the difference."
            )
    return BoundQuotient(*parts)


def odds_of(universe: Universe, first: Query, second: Query, resolution: Resolution) -> BoundOddsRatio:
    """Bind the odds ratio of two shares."""
    parts = [part_of(query, universe, resolution, "An odds ratio") for query in (first, second)]
    for query in (first, second):
        if not (type(query) is Share or is_boolean(query)):
            raise InvalidInput(f"An odds ratio must be of two shares. Found {query!r}. Give shares or counts.")
    return BoundOddsRatio(*parts)


@dataclass(frozen=True, eq=False, repr=False)
class NumberRatio(Statistic):
    """A ratio of two numbers that are not both counts, made by ``ratio``."""

    above: Query
    below: Query

    @property
    def quantity(self) -> Quantity:
        """A number without a unit."""
        return "number"

    def __post_init__(self) -> None:
        for part in (self.above, self.below):
            if not isinstance(part, Query):
                raise InvalidInput(f"A ratio must have two questions. Found {part!r}. Give counts, shares or means.")

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundQuotient:
        """Bind both parts."""
        return quotient_of(universe, self.above, self.below, resolution)

    def true_value(self, rows: RawRows) -> float | Array:
        """Return the ratio of the true answers."""
        return self.above.true_value(rows) / self.below.true_value(rows)

    def __repr__(self) -> str:
        return f"ratio({self.above!r}, {self.below!r})"


@dataclass(frozen=True, eq=False, repr=False)
class RelativeRisk(Statistic):
    """A relative risk, made by ``relative_risk``."""

    called: ClassVar[str] = "relative risk"

    part: Query
    first: Query
    second: Query

    @property
    def quantity(self) -> Quantity:
        """A number without a unit."""
        return "number"

    def __post_init__(self) -> None:
        for query in (self.part, self.first, self.second):
            require_boolean(query)

    @property
    def shares(self) -> tuple[Query, Query]:
        """The shares that are divided."""
        return Share(self.part, self.first), Share(self.part, self.second)

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundQuotient:
        """Bind both shares."""
        return quotient_of(universe, *self.shares, resolution)

    def true_value(self, rows: RawRows) -> float | Array:
        """Return the ratio of the two shares."""
        first, second = (share.true_value(rows) for share in self.shares)
        return first / second

    def __repr__(self) -> str:
        return f"relative_risk({self.part!r}, {self.first!r}, {self.second!r})"


@dataclass(frozen=True, eq=False, repr=False)
class OddsRatio(RelativeRisk):
    """An odds ratio, made by ``odds_ratio``."""

    called: ClassVar[str] = "odds ratio"

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundOddsRatio:
        """Bind both shares."""
        return odds_of(universe, *self.shares, resolution)

    def true_value(self, rows: RawRows) -> float | Array:
        """Return the ratio of the odds."""
        first, second = (share.true_value(rows) for share in self.shares)
        return first / (1 - first) * (1 - second) / second

    def __repr__(self) -> str:
        return f"odds_ratio({self.part!r}, {self.first!r}, {self.second!r})"


def ratio(above: Query, below: Query) -> Query:
    """Ask for the ratio of two numbers that cannot be negative: counts, shares, means and so on.

    Parameters
    ----------
    above, below : Query
        The numerator and the denominator.

    Returns
    -------
    Query

    Example
    -------
    >>> ratio(mean("age", count(sex="F")), mean("age", count(sex="M")))  # doctest: +SKIP
    """
    if is_boolean(above) and is_boolean(below):
        return ratios.ratio(above, below)
    return NumberRatio(above, below)


def relative_risk(part: Query, first: Query, second: Query) -> Query:
    """Ask for the share of ``first`` for which ``part`` holds, divided by that of ``second``.

    Parameters
    ----------
    part : Query
        A count: the outcome.
    first, second : Query
        Counts that select the two groups.

    Returns
    -------
    Query

    Example
    -------
    >>> relative_risk(count(ill=True), count(smoker=True), count(smoker=False))  # doctest: +SKIP
    """
    return RelativeRisk(part, first, second)


def odds_ratio(part: Query, first: Query, second: Query) -> Query:
    """Ask for the odds of ``part`` in ``first``, divided by its odds in ``second``.

    The odds of a share p are p/(1 − p).

    Parameters
    ----------
    part : Query
        A count: the outcome.
    first, second : Query
        Counts that select the two groups.

    Returns
    -------
    Query

    Example
    -------
    >>> odds_ratio(count(ill=True), count(smoker=True), count(smoker=False))  # doctest: +SKIP
    """
    return OddsRatio(part, first, second)


offer(RelativeRisk, relative_risk)
offer(OddsRatio, odds_ratio)
STATISTICS.add(NumberRatio, "number_ratio")  # "ratio" is the stored form of a ratio of two counts
MAKERS["ratio"] = ratio
