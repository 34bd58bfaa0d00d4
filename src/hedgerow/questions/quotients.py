"""Means, shares and ratios: quotients of two sums, with a bar found by asking about their difference.

A mean is c where Σ (x − c) over its records is 0. How far that sum may be from 0 is a question about one linear query, whose
bar is far tighter than what the bars of numerator and denominator leave: if Σ is known to ± b and the records are at least T,
the mean is known to ± b/T. Where bins are cut, or a cell holds more than one value, the sum has a greatest and a least
value, and the two ends of the interval come from these.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array, Names
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.questions.composed import Answers, Composed, Ends, Knows, total_between
from hedgerow.questions.counts import (
    QUESTIONS,
    Condition,
    Count,
    Query,
    Resolution,
    bound_condition,
    count,
    require_boolean,
)
from hedgerow.questions.linear import Linear, require_table, spread
from hedgerow.questions.universe import Universe

STEPS = 64  # places for c between the least and the greatest value: few, so that a repeat asks the same again
HALVINGS = 20  # to find c where bins are cut


@dataclass(frozen=True, eq=False)
class Quotient(Composed):
    """A quotient of two sums over the cells of ``names``."""

    universe: Universe
    names: Names

    def most(self, c: float) -> Array:
        """Of each cell, the most that a record of it may add to numerator − c·denominator."""
        raise NotImplementedError

    def least(self, c: float) -> Array:
        raise NotImplementedError

    def slopes(self, *, upper: bool) -> tuple[Linear, Linear]:
        """Between which the sum of ``most``, or of ``least``, falls as c rises by one."""
        raise NotImplementedError

    def starts(self, known: Knows) -> tuple[float, float]:
        """Where the sums of ``least`` and ``most`` are about 0, as far as is believed."""
        raise NotImplementedError

    def ends(self, known: Knows) -> Ends:
        lower, upper = self.starts(known)
        return self.end(known, lower, upper=False), self.end(known, upper, upper=True)

    def end(self, known: Knows, c: float, *, upper: bool) -> float:
        """The greatest, or the least, quotient for which the sum at c and its slope leave room."""
        low, high = self.between(known, (self.most if upper else self.least)(c))
        far = high if upper else low
        slow, fast = (known.interval(slope) for slope in self.slopes(upper=upper))
        outwards = far > 0 if upper else far < 0
        slope = slow[0] if outwards else fast[1]
        least, most = self.limits
        if slope <= 0:
            return float(most if upper else least)
        return float(min(most, max(least, c + far / slope)))

    def between(self, known: Knows, table: Array) -> tuple[float, float]:
        return total_between(self.universe, self.names, np.broadcast_to(table, self.universe.sizes(self.names)), known)

    def believed(self, known: Knows, table: Array) -> float:
        """The sum of a table of finite numbers, as the hypothesis has it."""
        table = np.broadcast_to(table, self.universe.sizes(self.names))
        least, most = float(table.min()), float(table.max())
        if least == most:
            return least
        scaled = np.clip((table - least) / (most - least), 0.0, 1.0)
        return least + (most - least) * known.believed(Linear.from_table(self.universe, self.names, scaled))


@dataclass(frozen=True, eq=False)
class BoundMean(Quotient):
    """The mean, among the records of a condition, of a number that lies between ``lowest`` and ``highest`` in each cell."""

    lowest: Array
    highest: Array
    middle: Array
    """What the number is in each cell by interpolation."""
    among: Condition

    @cached_property
    def limits(self) -> Ends:
        possible = np.broadcast_to(self._touched, self.universe.sizes(self.names))
        lowest, highest = (np.broadcast_to(x, possible.shape)[possible] for x in (self.lowest, self.highest))
        return float(lowest.min()), float(highest.max())

    @property
    def low(self) -> float:
        return float(self.limits[0])

    @property
    def high(self) -> float:
        return float(self.limits[1])

    @cached_property
    def numerator(self) -> Linear:
        """The interpolated number rescaled from [low, high] to [0, 1], where the condition holds."""
        width = self.high - self.low
        scaled = np.clip((self.middle - self.low) / width, 0.0, 1.0) if width > 0 else np.zeros(np.shape(self.middle))
        table = np.broadcast_to(scaled * spread(self.among.share, self.names), self.universe.sizes(self.names))
        return Linear.from_table(self.universe, self.names, table)

    @property
    def denominator(self) -> Linear:
        return self.among.share

    @property
    def linears(self) -> tuple[Linear, ...]:
        return (self.among.low,) if self.among.is_exact else (self.among.low, self.among.high)

    @property
    def tables(self) -> tuple[Names, ...]:
        return (self.names, self.among.low.attributes)

    @property
    def key(self) -> Hashable:
        cells = (self.lowest, self.highest, self.middle)
        conditions = (self.among.low.key, self.among.high.key, self.among.share.key)
        return ("mean", self.names, *((x.shape, x.tobytes()) for x in cells), *conditions)

    @cached_property
    def is_coarse(self) -> bool:
        return not self.among.is_exact or bool((self.lowest != self.highest).any())

    @cached_property
    def _inside(self) -> NDArray[np.bool_]:
        return spread(self.among.low, self.names).astype(bool)

    @cached_property
    def _touched(self) -> NDArray[np.bool_]:
        return spread(self.among.high, self.names).astype(bool)

    def most(self, c: float) -> Array:
        above = self.highest - c
        return np.where(self._inside, above, np.where(self._touched, np.maximum(above, 0.0), 0.0))

    def least(self, c: float) -> Array:
        above = self.lowest - c
        return np.where(self._inside, above, np.where(self._touched, np.minimum(above, 0.0), 0.0))

    def slopes(self, *, upper: bool) -> tuple[Linear, Linear]:
        return self.among.low, self.among.high

    def starts(self, known: Knows) -> tuple[float, float]:
        if not self.is_coarse:
            c = self.placed(self.best(known))
            return c, c
        return self.placed(self._zero(known, self.least)), self.placed(self._zero(known, self.most))

    def _zero(self, known: Knows, table: Callable[[float], Array]) -> float:
        """Where the believed sum of the table is 0. It falls as c rises."""
        if self.among.is_exact:
            mass = known.believed(self.among.low)
            return float(self.low + self.believed(known, table(self.low)) / mass) if mass > 0 else self.low
        low, high = self.low, self.high
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.believed(known, table(middle)) > 0 else (low, middle)
        return (low + high) / 2

    def placed(self, c: float) -> float:
        """The nearest of a few places, so that a repeat asks about the same."""
        width = self.high - self.low
        return self.low + width * round((c - self.low) / width * STEPS) / STEPS if width > 0 else self.low

    def best(self, known: Knows) -> float:
        mass = known.believed(self.denominator)
        share = known.believed(self.numerator) / mass if mass > 0 else 0.5
        return self.low + (self.high - self.low) * min(1.0, max(0.0, share))

    def typical(self, known: Answers) -> float | None:
        """That of the sum at c, over the records it is of."""
        table = np.broadcast_to(self.most(self.placed(self.best(known))), self.universe.sizes(self.names))
        width = float(table.max() - table.min())
        if width == 0:
            return 0.0
        query = Linear.from_table(self.universe, self.names, np.clip((table - table.min()) / width, 0.0, 1.0))
        usual, mass = known.typical(query), known.believed(self.denominator)
        return None if usual is None or mass <= 0 else usual * width / mass

    def bought(self, known: Answers, within: float, free: Ends) -> Ends:
        """One linear query is bought: that of Σ (x − c), x in the middle of each cell's values and c of what is known.

        With T₋ ≤ T ≤ T₊ records, and |mean − c| ≤ w₀ known for free, a bar of b on the sum gives the mean to
        b/T₋ + ½(w₀ + b/T₊)(T₊ − T₋)/T₋, and to half the mean width of its cells more.
        """
        if not self.among.is_exact:
            raise InvalidInput(
                f"within must be at least {(free[1] - free[0]) / 2:.4g} among records that bins do not tell apart. "
                f'Found {within:g}. Choose where by whole bins, or ask with resolution="bins".'
            )
        few, many = known.interval(self.among.low)
        centre = BoundMean(self.universe, self.names, *((self.lowest + self.highest) / 2,) * 3, self.among)
        width = self.highest - self.lowest
        coarse = 0.0
        if self.is_coarse:
            coarse = BoundMean(self.universe, self.names, width, width, width, self.among).ends(known)[1] / 2
        ends = centre.ends(known)
        c = centre.placed((ends[0] + ends[1]) / 2)
        reach = max(ends[1] - c, c - ends[0])
        doubt = (many - few) / few if few > 0 else np.inf
        unsold = coarse + reach * doubt / 2 if few > 0 else np.inf  # however tightly the sum is bought
        room = within - unsold
        if room <= 0:
            raise BudgetExceeded(
                f"within must be above {min((free[1] - free[0]) / 2, unsold):.4g} while so little is known of how many "
                f"records the mean is of. Found {within:g}. Buy that count first, or ask for less."
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
    """One count over another, whichever records they are of."""

    above: Condition
    below: Condition

    limits = (0.0, np.inf)

    @property
    def linears(self) -> tuple[Linear, ...]:
        return self.above.low, self.above.high, self.below.low, self.below.high

    @property
    def key(self) -> Hashable:
        return ("ratio", *(q.key for part in (self.above, self.below) for q in (part.low, part.high, part.share)))

    @property
    def is_coarse(self) -> bool:
        return not (self.above.is_exact and self.below.is_exact)

    def most(self, c: float) -> Array:
        return spread(self.above.high, self.names) - c * spread(self.below.low, self.names)

    def least(self, c: float) -> Array:
        return spread(self.above.low, self.names) - c * spread(self.below.high, self.names)

    def slopes(self, *, upper: bool) -> tuple[Linear, Linear]:
        slope = self.below.low if upper else self.below.high
        return slope, slope

    def starts(self, known: Knows) -> tuple[float, float]:
        return _over(known, self.above.low, self.below.high), _over(known, self.above.high, self.below.low)

    def best(self, known: Knows) -> float:
        return _over(known, self.above.share, self.below.share)


def _over(known: Knows, above: Linear, below: Linear) -> float:
    mass = known.believed(below)
    return known.believed(above) / mass if mass > 0 else 1.0


class Mean(Query):
    """See ``mean``."""

    def __init__(self, attribute: str, where: Query | None) -> None:
        if where is not None:
            require_boolean(where)
        self.attribute, self.where = attribute, where

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundMean:
        return bound_mean("A mean", universe, self.attribute, self.where, resolution)

    def _identity(self) -> Any:
        return ("mean", self.attribute, None if self.where is None else self.where._identity())

    def __repr__(self) -> str:
        return f"mean({self.attribute!r}" + (")" if self.where is None else f", where={self.where!r})")


class Share(Query):
    """See ``share``."""

    def __init__(self, part: Query, where: Query) -> None:
        require_boolean(part)
        require_boolean(where)
        self.part, self.where = part, where

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundMean:
        part, among = (bound_condition(query, universe, resolution) for query in (self.part, self.where))
        names = universe.order((*part.attributes, *among.attributes))
        require_table(names, universe.sizes(names))
        _require_someone("A share", among, self.where)
        low, high, middle = (spread(query, names) for query in (part.low, part.high, part.share))
        return BoundMean(universe, names, low, high, middle, among)

    def _identity(self) -> Any:
        return ("share", self.part._identity(), self.where._identity())

    def __repr__(self) -> str:
        return f"share({self.part!r}, where={self.where!r})"


class Ratio(Query):
    """See ``ratio``."""

    def __init__(self, above: Query, below: Query) -> None:
        require_boolean(above)
        require_boolean(below)
        self.above, self.below = above, below

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundRatio:
        above, below = (bound_condition(query, universe, resolution) for query in (self.above, self.below))
        names = universe.order((*above.attributes, *below.attributes))
        require_table(names, universe.sizes(names))
        _require_someone("A ratio", below, self.below)
        return BoundRatio(universe, names, above, below)

    def _identity(self) -> Any:
        return ("ratio", self.above._identity(), self.below._identity())

    def __repr__(self) -> str:
        return f"ratio({self.above!r}, {self.below!r})"


def mean(attribute: str, where: Query | None = None) -> Query:
    """The mean of a bounded attribute, among the records of ``where`` if given.

    Its interval holds whatever the values in each bin are; ``values`` of the universe's bins give the estimate. Cells without
    a number (``other``) are left out.
    """
    return Mean(attribute, where)


def share(part: Query, where: Query) -> Query:
    """The fraction of the records of ``where`` for which ``part`` holds too."""
    return Share(part, where)


def ratio(above: Query, below: Query) -> Query:
    """One count divided by another."""
    return Ratio(above, below)


QUESTIONS.update({Mean, Share, Ratio})


def bound_mean(what: str, universe: Universe, attribute: str, where: Query | None, resolution: Resolution) -> BoundMean:
    """The mean of an attribute's values among the records that have one."""
    (numbers,), among = numbers_among(what, universe, (attribute,), where, resolution)
    names = universe.order((attribute, *among.attributes))
    require_table(names, universe.sizes(names))
    shape = [-1 if name == attribute else 1 for name in names]
    low, high, middle = (x.reshape(shape) for x in numbers)
    return BoundMean(universe, names, low, high, middle, among)


def numbers_among(
    what: str, universe: Universe, attributes: tuple[str, ...], where: Query | None, resolution: Resolution
) -> tuple[list[tuple[Array, Array, Array]], Condition]:
    """Of each attribute the lowest, highest and interpolated value of every cell, and the records that have one of each."""
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
        if none.any():  # an extra cell has no value: the mean is over the records that have one
            among = among & count({attribute: ~none})
        ends = declared.bounds if resolution == "values" else (declared.values, declared.values)
        least = float(np.nanmin(declared.values))
        low, high, middle = (np.where(none, least, x) for x in (*ends, declared.values))
        found.append((low, high, np.clip(middle, low, high)))
    condition = bound_condition(among, universe, resolution)
    _require_someone(what, condition, among)
    return found, condition


def _require_someone(what: str, among: Condition, where: Query) -> None:
    if not among.high.attributes and not among.high.table:
        raise InvalidInput(
            f"{what} must be among records that can exist. Found {where!r}, which holds for none. Change where."
        )
