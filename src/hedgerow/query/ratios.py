"""Means, shares and ratios: quotients of two sums. Their error bar comes from one query about their difference.

A mean is the c for which Σ (x − c) over its records is 0. The distance of that sum from 0 is a question about one
linear query, whose bar is far tighter than the bars of numerator and denominator imply: if Σ is known to ± b and the
number of records is at least T, the mean is known to ± b/T. If bins are cut, or a cell holds more than one value, the
sum has a greatest and a least value, and these give the two ends of the interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array, Names
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.query.composed import (
    AnswerKnowledge,
    ComposedQuestion,
    Ends,
    LinearKnowledge,
    total_between,
    typical_total,
)
from hedgerow.query.counts import (
    QUESTIONS,
    Count,
    Quantity,
    Query,
    Resolution,
    bound_condition,
    count,
    require_boolean,
)
from hedgerow.query.linear import Condition, Linear, key_of, require_table, spread
from hedgerow.query.raw_rows import RawRows
from hedgerow.universe.universe import Universe

STEPS = 64  # c is rounded to one of this many steps between least and greatest value, so that a repeat asks the same
HALVINGS = 20  # number of bisections that find c if bins are cut


@dataclass(frozen=True, eq=False)
class Quotient(ComposedQuestion):
    """A quotient of two sums over the cells of ``names``."""

    universe: Universe
    names: Names

    def most(self, c: float) -> Array:
        """Return, for each cell, the most that one of its records may add to numerator − c·denominator."""
        raise NotImplementedError

    def least(self, c: float) -> Array:
        """Return, for each cell, the least that one of its records may add to numerator − c·denominator."""
        raise NotImplementedError

    def slopes(self, *, upper: bool) -> tuple[Linear, Linear]:
        """Return two queries that bound the rate at which the sum of ``most`` (or of ``least``) falls as c rises."""
        raise NotImplementedError

    def starts(self, known: LinearKnowledge) -> tuple[float, float]:
        """Return the c at which the sums of ``least`` and of ``most`` are about 0 on the hypothesis."""
        raise NotImplementedError

    def ends(self, known: LinearKnowledge) -> Ends:
        """Return the least and the greatest quotient that the knowledge allows."""
        lower, upper = self.starts(known)
        return self.end(known, lower, upper=False), self.end(known, upper, upper=True)

    def end(self, known: LinearKnowledge, c: float, *, upper: bool) -> float:
        """Return the greatest, or the least, quotient that the sum at c and its slope allow."""
        low, high = self.between(known, (self.most if upper else self.least)(c))
        far = high if upper else low
        slow, fast = (known.interval(slope) for slope in self.slopes(upper=upper))
        outwards = far > 0 if upper else far < 0
        slope = slow[0] if outwards else fast[1]
        least, most = self.limits
        if slope <= 0:
            return float(most if upper else least)
        return float(min(most, max(least, c + far / slope)))

    @property
    def denominator(self) -> Linear:
        """The interpolated count of the denominator."""
        raise NotImplementedError

    def typical(self, known: AnswerKnowledge) -> float | None:
        """Return the typical error of the sum at the quotient, divided by the number of records of the denominator.

        It is at most half of what the quotient's range leaves open, which is all that is known without records.
        """
        least, most = self.limits
        c, mass = self.starts(known)[1], known.hypothesis_answer(self.denominator)
        typical_error = typical_total(self.universe, self.names, self.most(c), known)
        if typical_error is None or (mass <= 0 and not math.isfinite(most - least)):
            return None
        return float(min(typical_error / mass if mass > 0 else math.inf, (most - least) / 2))

    def between(self, known: LinearKnowledge, table: Array) -> tuple[float, float]:
        """Return an interval for the sum of a table over the records."""
        return total_between(self.universe, self.names, np.broadcast_to(table, self.universe.sizes(self.names)), known)

    def hypothesis_sum(self, known: LinearKnowledge, table: Array) -> float:
        """Return the sum of a table of finite numbers on the hypothesis."""
        table = np.broadcast_to(table, self.universe.sizes(self.names))
        least, most = float(table.min()), float(table.max())
        if least == most:
            return least
        scaled = np.clip((table - least) / (most - least), 0.0, 1.0)
        return least + (most - least) * known.hypothesis_answer(Linear.from_table(self.universe, self.names, scaled))


@dataclass(frozen=True, eq=False)
class BoundMean(Quotient):
    """The mean, over the records of a condition, of a number between ``lowest`` and ``highest`` in each cell."""

    lowest: Array
    highest: Array
    middle: Array
    """Interpolated number in each cell."""
    among: Condition

    @cached_property
    def limits(self) -> Ends:
        """Least and greatest number in the cells where the condition can hold."""
        possible = np.broadcast_to(self._touched, self.universe.sizes(self.names))
        lowest, highest = (np.broadcast_to(x, possible.shape)[possible] for x in (self.lowest, self.highest))
        return float(lowest.min()), float(highest.max())

    @property
    def low(self) -> float:
        """Least possible mean."""
        return float(self.limits[0])

    @property
    def high(self) -> float:
        """Greatest possible mean."""
        return float(self.limits[1])

    @cached_property
    def numerator(self) -> Linear:
        """The interpolated number, rescaled from [low, high] to [0, 1], where the condition holds; 0 elsewhere."""
        width = self.high - self.low
        scaled = np.clip((self.middle - self.low) / width, 0.0, 1.0) if width > 0 else np.zeros(np.shape(self.middle))
        table = np.broadcast_to(scaled * spread(self.among.share, self.names), self.universe.sizes(self.names))
        return Linear.from_table(self.universe, self.names, table)

    @property
    def denominator(self) -> Linear:
        """The interpolated count of the condition."""
        return self.among.share

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The lower and the upper count of the condition."""
        return (self.among.low,) if self.among.is_exact else (self.among.low, self.among.high)

    @property
    def tables(self) -> tuple[Names, ...]:
        """Attribute sets of the sum and of the condition."""
        return (self.names, self.among.low.attributes)

    @property
    def key(self) -> Hashable:
        """Key of the question."""
        cells = (self.lowest, self.highest, self.middle)
        conditions = (self.among.low.key, self.among.high.key, self.among.share.key)
        return ("mean", self.names, *((x.shape, key_of(x.tobytes())) for x in cells), *conditions)

    @cached_property
    def is_coarse(self) -> bool:
        """True if the condition cuts bins, or a cell holds more than one number."""
        return not self.among.is_exact or bool((self.lowest != self.highest).any())

    @cached_property
    def _inside(self) -> NDArray[np.bool_]:
        """Cells in which the condition certainly holds."""
        return spread(self.among.low, self.names).astype(bool)

    @cached_property
    def _touched(self) -> NDArray[np.bool_]:
        """Cells in which the condition can hold."""
        return spread(self.among.high, self.names).astype(bool)

    def most(self, c: float) -> Array:
        """Return the most that a record may add to Σ (x − c), by cell."""
        above = self.highest - c
        return np.where(self._inside, above, np.where(self._touched, np.maximum(above, 0.0), 0.0))

    def least(self, c: float) -> Array:
        """Return the least that a record may add to Σ (x − c), by cell."""
        above = self.lowest - c
        return np.where(self._inside, above, np.where(self._touched, np.minimum(above, 0.0), 0.0))

    def slopes(self, *, upper: bool) -> tuple[Linear, Linear]:
        """Return the lower and the upper count of the records."""
        return self.among.low, self.among.high

    def starts(self, known: LinearKnowledge) -> tuple[float, float]:
        """Return the c at which the two sums are about 0 on the hypothesis."""
        if not self.is_coarse:
            c = self.round_to_place(self.best(known))
            return c, c
        return self.round_to_place(self._zero(known, self.least)), self.round_to_place(self._zero(known, self.most))

    def _zero(self, known: LinearKnowledge, table: Callable[[float], Array]) -> float:
        """Return the c at which the sum of the table on the hypothesis is 0. The sum falls as c rises."""
        if self.among.is_exact:
            mass = known.hypothesis_answer(self.among.low)
            return float(self.low + self.hypothesis_sum(known, table(self.low)) / mass) if mass > 0 else self.low
        low, high = self.low, self.high
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.hypothesis_sum(known, table(middle)) > 0 else (low, middle)
        return (low + high) / 2

    def round_to_place(self, c: float) -> float:
        """Round c to one of a few places, so that a repeat asks the same."""
        width = self.high - self.low
        return self.low + width * round((c - self.low) / width * STEPS) / STEPS if width > 0 else self.low

    def best(self, known: LinearKnowledge) -> float:
        """Return the interpolated mean on the hypothesis."""
        mass = known.hypothesis_answer(self.denominator)
        share = known.hypothesis_answer(self.numerator) / mass if mass > 0 else 0.5
        return self.low + (self.high - self.low) * min(1.0, max(0.0, share))

    def buy(self, known: AnswerKnowledge, within: float, free: Ends) -> Ends:
        """Buy one linear query: Σ (x − c), with x the middle of each cell's values and c the middle of what is known.

        With T₋ ≤ T ≤ T₊ records, and |mean − c| ≤ w₀ known for free, a bar of b on the sum gives the mean to b/T₋ +
        ½(w₀ + b/T₊)(T₊ − T₋)/T₋, plus half the mean width of its cells.
        """
        if not self.among.is_exact:
            raise InvalidInput(
                f"within must be at least {(free[1] - free[0]) / 2:.4g} if where cuts bins. "
                f'Found {within:g}. Choose where by whole bins, or ask with resolution="bins".'
            )
        few, many = known.interval(self.among.low)
        centre = BoundMean(self.universe, self.names, *((self.lowest + self.highest) / 2,) * 3, self.among)
        width = self.highest - self.lowest
        coarse = 0.0
        if self.is_coarse:
            coarse = BoundMean(self.universe, self.names, width, width, width, self.among).ends(known)[1] / 2
        ends = centre.ends(known)
        c = centre.round_to_place((ends[0] + ends[1]) / 2)
        reach = max(ends[1] - c, c - ends[0])
        doubt = (many - few) / few if few > 0 else np.inf
        unsold = coarse + reach * doubt / 2 if few > 0 else np.inf  # remains however tightly the sum is bought
        room = within - unsold
        if room <= 0:
            raise BudgetExceeded(
                f"within must be above {min((free[1] - free[0]) / 2, unsold):.4g} while the number of records in the "
                f"mean is known so roughly. Found {within:g}. Buy that count first, or ask for a wider bar."
            )
        table = np.broadcast_to(centre.most(c), self.universe.sizes(self.names))
        least, most = float(table.min()), float(table.max())
        query = Linear.from_table(self.universe, self.names, np.clip((table - least) / (most - least), 0.0, 1.0))
        bar = room / (1 / few + doubt / 2 / many) * (1 - 1e-9)
        low, high = (least + (most - least) * end for end in known.buy(query, min(1.0, bar / (most - least))))
        lower = c + (low / few if low < 0 else low / many) - coarse
        upper = c + (high / few if high > 0 else high / many) + coarse
        return lower, upper


@dataclass(frozen=True, eq=False)
class BoundRatio(Quotient):
    """One count divided by another. Their records need not overlap."""

    above: Condition
    below: Condition

    limits = (0.0, np.inf)

    @property
    def linears(self) -> tuple[Linear, ...]:
        """Lower and upper counts of both conditions."""
        return self.above.low, self.above.high, self.below.low, self.below.high

    @property
    def key(self) -> Hashable:
        """Key of the question."""
        return ("ratio", *(q.key for part in (self.above, self.below) for q in (part.low, part.high, part.share)))

    @property
    def denominator(self) -> Linear:
        """The interpolated count below."""
        return self.below.share

    @property
    def is_coarse(self) -> bool:
        """True if one of the conditions cuts bins."""
        return not (self.above.is_exact and self.below.is_exact)

    def most(self, c: float) -> Array:
        """Return the most that a record may add to numerator − c·denominator, by cell."""
        return spread(self.above.high, self.names) - c * spread(self.below.low, self.names)

    def least(self, c: float) -> Array:
        """Return the least that a record may add to numerator − c·denominator, by cell."""
        return spread(self.above.low, self.names) - c * spread(self.below.high, self.names)

    def slopes(self, *, upper: bool) -> tuple[Linear, Linear]:
        """Return the count of the denominator, as both bounds."""
        slope = self.below.low if upper else self.below.high
        return slope, slope

    def starts(self, known: LinearKnowledge) -> tuple[float, float]:
        """Return the least and the greatest ratio on the hypothesis."""
        return _over(known, self.above.low, self.below.high), _over(known, self.above.high, self.below.low)

    def best(self, known: LinearKnowledge) -> float:
        """Return the interpolated ratio on the hypothesis."""
        return _over(known, self.above.share, self.below.share)


def _over(known: LinearKnowledge, above: Linear, below: Linear) -> float:
    """Divide one count by another on the hypothesis; 1 if the denominator is 0."""
    mass = known.hypothesis_answer(below)
    return known.hypothesis_answer(above) / mass if mass > 0 else 1.0


class Mean(Query):
    """A mean, made by ``mean``."""

    @property
    def quantity(self) -> Quantity:
        """A value in the units of the column."""
        return "value"

    def __init__(self, attribute: str, where: Query | None) -> None:
        if where is not None:
            require_boolean(where)
        self.attribute, self.where = attribute, where

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundMean:
        """Bind the mean."""
        return bound_mean("A mean", universe, self.attribute, self.where, resolution)

    def true_value(self, rows: RawRows) -> float:
        """Return the mean of the values."""
        return float(rows.values(self.attribute, self.where).mean())

    def among(self, group: Query) -> Query:
        """Return the mean over the records of the group."""
        return Mean(self.attribute, narrow(self.where, group))

    def _identity(self) -> Any:
        return ("mean", self.attribute, None if self.where is None else self.where._identity())

    def __repr__(self) -> str:
        return f"mean({self.attribute!r}" + (")" if self.where is None else f", where={self.where!r})")


class Share(Query):
    """A share, made by ``share``."""

    @property
    def quantity(self) -> Quantity:
        """A share of some rows."""
        return "share"

    def __init__(self, part: Query, where: Query) -> None:
        require_boolean(part)
        require_boolean(where)
        self.part, self.where = part, where

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundMean:
        """Bind the share: the mean of the indicator of ``part`` over the records of ``where``."""
        part, among = (bound_condition(query, universe, resolution) for query in (self.part, self.where))
        names = universe.order((*part.attributes, *among.attributes))
        require_table(names, universe.sizes(names))
        _require_someone("A share", among, self.where)
        low, high, middle = (spread(query, names) for query in (part.low, part.high, part.share))
        return BoundMean(universe, names, low, high, middle, among)

    def true_value(self, rows: RawRows) -> float:
        """Return the part of the rows of ``where`` that are among those of ``part``."""
        return float(self.part.holds(rows)[rows.holds(self.where)].mean())

    def among(self, group: Query) -> Query:
        """Return the share over the records of the group."""
        return Share(self.part, self.where & group)

    def _identity(self) -> Any:
        return ("share", self.part._identity(), self.where._identity())

    def __repr__(self) -> str:
        return f"share({self.part!r}, where={self.where!r})"


class Ratio(Query):
    """A ratio, made by ``ratio``."""

    @property
    def quantity(self) -> Quantity:
        """A number without a unit."""
        return "number"

    def __init__(self, above: Query, below: Query) -> None:
        require_boolean(above)
        require_boolean(below)
        self.above, self.below = above, below

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundRatio:
        """Bind the ratio."""
        above, below = (bound_condition(query, universe, resolution) for query in (self.above, self.below))
        names = universe.order((*above.attributes, *below.attributes))
        require_table(names, universe.sizes(names))
        _require_someone("A ratio", below, self.below)
        return BoundRatio(universe, names, above, below)

    def true_value(self, rows: RawRows) -> float:
        """Return the ratio of the two numbers of rows."""
        return float(self.above.holds(rows).sum() / self.below.holds(rows).sum())

    def _identity(self) -> Any:
        return ("ratio", self.above._identity(), self.below._identity())

    def __repr__(self) -> str:
        return f"ratio({self.above!r}, {self.below!r})"


def mean(attribute: str, where: Query | None = None) -> Query:
    """Ask for the mean of a numeric attribute over the records of ``where``, or over all records.

    The interval holds whatever the values inside each bin are. The estimate uses the representative value of each bin.
    Cells without a number (``other``, ``missing``) are left out.

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
    >>> mean("age", where=count(sex="F"))  # doctest: +SKIP
    """
    return Mean(attribute, where)


def share(part: Query, where: Query) -> Query:
    """Ask for the fraction of the records of ``where`` for which ``part`` holds too.

    Parameters
    ----------
    part : Query
        A count.
    where : Query
        A count that selects the records.

    Returns
    -------
    Query

    Example
    -------
    >>> share(count(smoker=True), where=count(sex="F"))  # doctest: +SKIP
    """
    return Share(part, where)


def ratio(above: Query, below: Query) -> Query:
    """Ask for the ratio of two counts, ``above`` divided by ``below``.

    Parameters
    ----------
    above, below : Query
        Two counts: the numerator and the denominator.

    Returns
    -------
    Query

    Example
    -------
    >>> ratio(count(sex="F"), count(sex="M"))  # doctest: +SKIP
    """
    return Ratio(above, below)


def narrow(where: Query | None, group: Query) -> Query:
    """Return the records of a group that a condition selects; all of the group without a condition."""
    return group if where is None else where & group


QUESTIONS.update({Mean, Share, Ratio})


def bound_mean(what: str, universe: Universe, attribute: str, where: Query | None, resolution: Resolution) -> BoundMean:
    """Bind the mean of an attribute over the records that have a value."""
    (numbers,), among = numbers_among(what, universe, (attribute,), where, resolution)
    names = universe.order((attribute, *among.attributes))
    require_table(names, universe.sizes(names))
    shape = [-1 if name == attribute else 1 for name in names]
    low, high, middle = (x.reshape(shape) for x in numbers)
    return BoundMean(universe, names, low, high, middle, among)


def numbers_among(
    what: str, universe: Universe, attributes: tuple[str, ...], where: Query | None, resolution: Resolution
) -> tuple[list[tuple[Array, Array, Array]], Condition]:
    """Return the numbers of each attribute by cell, and the records that have a number for every attribute.

    The numbers are the lowest, the highest and the interpolated value of every cell.
    """
    among = Count(()) if where is None else where
    found = []
    for attribute in attributes:
        declared = universe[attribute]
        if declared.values is None or declared.bounds is None:
            raise InvalidInput(
                f"{what} must be of a numeric attribute. Found {attribute!r}, which has labels only. "
                "Declare it as a Range, Integers or Flag."
            )
        none = np.isnan(declared.values)
        if none.any():  # an extra cell has no value, so its records are left out
            among = among & count({attribute: ~none})
        ends = declared.bounds if resolution == "values" else (declared.values, declared.values)
        least = float(np.nanmin(declared.values))
        low, high, middle = (np.where(none, least, x) for x in (*ends, declared.values))
        found.append((low, high, np.clip(middle, low, high)))
    condition = bound_condition(among, universe, resolution)
    _require_someone(what, condition, among)
    return found, condition


def _require_someone(what: str, among: Condition, where: Query) -> None:
    """Refuse a condition that no record can satisfy."""
    if not among.high.attributes and not among.high.table:
        raise InvalidInput(
            f"{what} must be among records that can exist. Found {where!r}, which holds for none. Change where."
        )
