"""Differences of two numbers."""

from __future__ import annotations

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
    total_between,
    typical_total,
)
from hedgerow.query.counts import (
    Quantity,
    Query,
    Resolution,
)
from hedgerow.query.linear import Linear, require_table, spread
from hedgerow.query.raw_rows import RawRows
from hedgerow.query.statistics.statistic import Statistic, offer, part_of
from hedgerow.universe.universe import Universe


@dataclass(frozen=True, eq=False)
class BoundDifference(ComposedQuestion):
    """The difference of two numbers. For two counts the bar of the difference itself is used, too."""

    universe: Universe
    first: ComposedQuestion
    second: ComposedQuestion
    is_fraction: bool = False

    @property
    def key(self) -> Hashable:
        """Key of the question."""
        return ("difference", self.first.key, self.second.key)

    @property
    def linears(self) -> tuple[Linear, ...]:
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

    @property
    def limits(self) -> Ends:
        """Differences of the parts' limits."""
        first, second = self.first.limits, self.second.limits
        return first[0] - second[1], first[1] - second[0]

    def ends(self, known: LinearKnowledge) -> Ends:
        """Return the least and the greatest difference that the knowledge allows."""
        first, second = self.first.ends(known), self.second.ends(known)
        low, high = first[0] - second[1], first[1] - second[0]
        if self._is_of_counts:
            least, most = (self._join_extremes(upper=upper) for upper in (False, True))
            low, high = max(low, self._total(least, known)[0]), min(high, self._total(most, known)[1])
        return low, high

    def best(self, known: LinearKnowledge) -> float:
        """Return the difference of the best answers to the parts."""
        return float(self.first.best(known) - self.second.best(known))

    def typical(self, known: AnswerKnowledge) -> float | None:
        """Return that of the joined table of two counts, or of other parts their typical errors in quadrature."""
        if self._is_of_counts:
            return typical_total(self.universe, *self._join_extremes(upper=True), known)
        parts = [part.typical(known) for part in (self.first, self.second)]
        return None if None in parts else math.hypot(*parts)

    def buy(self, known: AnswerKnowledge, within: float, free: Ends) -> Ends:
        """Buy the difference of two counts as one linear query."""
        if not self._is_of_counts or self.is_coarse:
            return super().buy(known, within, free)
        names, table = self._join_extremes(upper=True)
        query = Linear.from_table(self.universe, names, (table + 1) / 2)
        low, high = known.buy(query, within / 2)
        return 2 * low - 1, 2 * high - 1

    @property
    def _is_of_counts(self) -> bool:
        """True if both parts are counts, and not differences, which are fractions too."""
        return self.first.sides is not None and self.second.sides is not None

    def _join_extremes(self, *, upper: bool) -> tuple[Names, Array]:
        """Return the most, or the least, that a record may add to the difference, by cell."""
        first, second = self.first.sides, self.second.sides
        assert first is not None and second is not None
        plus, minus = (first[1], second[0]) if upper else (first[0], second[1])
        names = self.universe.order((*plus.attributes, *minus.attributes))
        require_table(names, self.universe.sizes(names))
        return names, np.broadcast_to(spread(plus, names) - spread(minus, names), self.universe.sizes(names))

    def _total(self, joined: tuple[Names, Array], known: LinearKnowledge) -> tuple[float, float]:
        """Return an interval for the sum of a joined table."""
        return total_between(self.universe, joined[0], joined[1], known)


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Statistic):
    """A difference, made by ``difference``."""

    first: Query
    second: Query

    @property
    def quantity(self) -> Quantity:
        """A difference, in points if both are shares."""
        return quantity_of_difference(self.first, self.second)

    def __post_init__(self) -> None:
        for part in (self.first, self.second):
            if not isinstance(part, Query):
                raise InvalidInput(f"A difference must have two questions. Found {part!r}. Give counts or means.")

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundDifference:
        """Bind both parts."""
        return difference_of(universe, self.first, self.second, resolution)

    def true_value(self, rows: RawRows) -> float | Array:
        """Return the difference of the true answers."""
        return self.first.true_value(rows) - self.second.true_value(rows)


def difference_of(universe: Universe, first: Query, second: Query, resolution: Resolution) -> BoundDifference:
    """Bind the difference of two numbers."""
    parts = [part_of(query, universe, resolution) for query in (first, second)]
    return BoundDifference(universe, parts[0], parts[1], all(part.is_fraction for part in parts))


def difference(first: Query, second: Query) -> Query:
    """Ask for one number minus another: two counts, means, shares and so on.

    Parameters
    ----------
    first, second : Query
        The question, and the question to subtract from it.

    Returns
    -------
    Query

    Example
    -------
    >>> difference(mean("age", count(sex="F")), mean("age", count(sex="M")))  # doctest: +SKIP
    """
    return Difference(first, second)


offer(Difference, difference)


def quantity_of_difference(first: Query, second: Query) -> Quantity:
    """Return the quantity of the difference of two answers."""
    kinds = {first.quantity, second.quantity}
    return "points" if kinds <= {"share", "count", "points"} else "number" if kinds == {"number"} else "value"
