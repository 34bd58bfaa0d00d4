"""Quantiles: the value below which a share of the records lies, found by a search over counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array, Names
from hedgerow.errors import InvalidInput
from hedgerow.query.composed import (
    AnswerKnowledge,
    ComposedQuestion,
    Ends,
    LinearKnowledge,
    typical_total,
)
from hedgerow.query.counts import (
    Quantity,
    Query,
    Resolution,
)
from hedgerow.query.linear import Condition, Linear, key_of, require_table, spread
from hedgerow.query.ratios import BoundMean, numbers_among
from hedgerow.query.raw_rows import RawRows
from hedgerow.query.statistics.statistic import OfRecords, offer, real_number, require_where
from hedgerow.universe.universe import Universe

NEAR = 8  # a typical error is taken from a cell at most this far from that of the quantile
NOTHING = 1e-9  # tolerance, in rows, for the rounding of a whole number of rows in float64


@dataclass(frozen=True, eq=False)
class BoundQuantile(ComposedQuestion):
    """The smallest value v such that at least a share ``q`` of the records have a value of at most v.

    Cells are in the order of their values. For q = 0 it is the least value of any record, so that q = 0 and q = 1 give
    the ends of the values that occur.

    ``interpolated``: the value at rank h = q·(m − 1) of the m records in order, counted from 0, interpolated linearly
    between its two neighbors. If some first cells hold N records, the record of rank ⌊h⌋ is above them if N ≤ q·m − q,
    and the record of rank ⌈h⌉ is among them if N ≥ q·m + 1 − q. These conditions differ from those of the plain
    quantile by less than one row.
    """

    universe: Universe
    attribute: str
    q: float
    lowest: Array
    highest: Array
    order: NDArray[np.intp]
    """Cells that have a value, from the lowest to the highest."""
    among: Condition
    is_whole: bool
    interpolated: bool = False

    @property
    def key(self) -> Hashable:
        """Key of the question."""
        among = (self.among.low.key, self.among.high.key, self.among.share.key)
        return (
            "interpolated quantile" if self.interpolated else "quantile",
            self.attribute,
            self.q,
            key_of(self.lowest.tobytes()),
            key_of(self.highest.tobytes()),
            *among,
        )

    @property
    def linears(self) -> tuple[Linear, ...]:
        """None: the search decides which queries are needed."""
        return ()

    @property
    def tables(self) -> tuple[Names, ...]:
        """Attribute set of the table that the search reads."""
        return (self.below(0).names,)

    @cached_property
    def is_coarse(self) -> bool:
        """True if the condition cuts bins, or a cell holds more than one value."""
        return not self.among.is_exact or bool((self.lowest != self.highest)[self.order].any())

    @property
    def limits(self) -> Ends:
        """Lowest and highest value of any cell."""
        return float(self.lowest[self.order].min()), float(self.highest[self.order].max())

    def kept_cells(self, universe: Universe) -> int:
        """Return the cells of one table per step of the search. Without a condition it is one small mask."""
        (names,) = self.tables
        return universe.cells(names) * (len(self.order).bit_length() if self.among.attributes else 1)

    def below(self, place: int) -> BoundMean:
        """Return the mean of the indicator of the cells up to ``place``, which is compared with q."""
        universe = self.universe
        names = universe.order((self.attribute, *self.among.attributes))
        mask = np.zeros(universe[self.attribute].size)
        mask[self.order[: place + 1]] = 1.0
        mask = mask.reshape([-1 if name == self.attribute else 1 for name in names])
        return BoundMean(universe, names, mask, mask, mask, self.among)

    def ends(self, known: LinearKnowledge) -> Ends:
        """Return the ends of the quantile: from the first cell that may hold it to the last."""
        last, row = len(self.order) - 1, 1 / max(1.0, known.least_rows) if self.interpolated else 0.0

        def is_above(place: int) -> bool:
            """Return True if the quantile is certainly above these cells."""
            part = self.below(place)
            most = part.between(known, part.most(self.q))[1]
            if self.interpolated:
                return most <= (NOTHING - self.q) * row
            return most < 0 or (self.q == 0 and most <= 0)  # no record can be in these cells

        def is_within(place: int) -> bool:
            """Return True if the quantile is certainly in one of these cells."""
            part = self.below(place)
            least = part.between(known, part.least(self.q))[0]
            if self.interpolated:
                return least >= (1 - self.q - NOTHING) * row
            return least > 0 if self.q == 0 else least >= 0

        at = self._cell(known)
        lower = 1 + _last_that(is_above, -1, at - 1)
        upper = last if at == last else min(last, 1 + _last_that(lambda place: not is_within(place), at - 1, last - 1))
        lower, upper = min(lower, at), max(upper, at)
        return float(self.lowest[self.order[lower]]), float(self.highest[self.order[upper]])

    def _cell(self, known: LinearKnowledge) -> int:
        """Return the place of the cell that holds the quantile of the hypothesis."""

        everybody = known.hypothesis_answer(self.among.share)

        def is_short(place: int) -> bool:
            below = self._believed_share(known, place)
            return below <= 1e-12 if self.q == 0 else below < self.q * everybody - 1e-12

        return min(len(self.order) - 1, 1 + _last_that(is_short, -1, len(self.order) - 1))

    def _believed_share(self, known: LinearKnowledge, place: int) -> float:
        """Return the share of all records, on the hypothesis, that meet the condition in a cell up to ``place``."""
        part = self.below(place)
        table = part.middle * spread(self.among.share, part.names)
        return known.hypothesis_answer(
            Linear.from_table(self.universe, part.names, np.broadcast_to(table, self.universe.sizes(part.names)))
        )

    def typical(self, known: AnswerKnowledge) -> float | None:
        """Return the mean distance that noise moves the quantile, over the cells near it.

        The error of the share of records below each cell is taken as normal, with the typical error of the nearest
        cell that the search asked about. Where the quantile is far from an edge of its cell, noise hardly moves it.
        """
        at, last = self._cell(known), len(self.order) - 1
        first, top = max(0, at - NEAR), min(last, at + NEAR)
        typical_error = None
        for place in sorted(range(first, top), key=lambda place: abs(place - at)):
            part = self.below(place)
            typical_error = typical_total(self.universe, part.names, part.most(self.q), known)
            if typical_error is not None:
                break
        if typical_error is None:
            return None
        wanted = self.q * known.hypothesis_answer(self.among.share)
        moved, values = 0.0, (self.lowest + self.highest)[self.order] / 2
        for place in range(first, top):  # the quantile crosses the edge above ``place``
            gap = self._believed_share(known, place) - wanted
            beyond = (gap if place >= at else -gap) / max(typical_error * math.sqrt(math.pi), 1e-300)
            moved += float(values[place + 1] - values[place]) * math.erfc(beyond) / 2
        return moved

    def best(self, known: LinearKnowledge) -> float:
        """Return the interpolated quantile of the hypothesis."""
        mass = known.hypothesis_answer(self.among.share)
        if not self.interpolated:
            return self._value(known, self._cell(known), self.q * mass)
        rows, last = max(1.0, known.least_rows), len(self.order) - 1
        h = max(0.0, self.q * (mass * rows - 1))
        first = math.floor(h + NOTHING)

        def of_rank(rank: int) -> float:
            """Return the value of the record of this rank, with cell counts rounded to whole records."""
            middle = (rank + 0.5) / rows
            at = min(last, 1 + _last_that(lambda place: self._believed_share(known, place) < middle, -1, last))
            return self._value(known, at, middle)

        along = max(0.0, h - first)
        return (1 - along) * of_rank(first) + (along * of_rank(first + 1) if along > NOTHING else 0.0)

    def _value(self, known: LinearKnowledge, at: int, mass: float) -> float:
        """Return the point inside a cell at which the hypothesis reaches this share of all records."""
        cell = self.order[at]
        low, high = float(self.lowest[cell]), float(self.highest[cell])
        before = self._believed_share(known, at - 1)
        inside = self._believed_share(known, at) - before
        where = min(1.0, max(0.0, (mass - before) / inside)) if inside > 0 else 0.5
        if self.is_whole:
            return low + max(0, math.ceil(where * (high - low + 1)) - 1)
        return low + where * (high - low)


def _last_that(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the last place in (low, high] for which ``holds`` is true, by bisection; ``low`` if there is none.

    ``holds`` must be true up to some place and false after it.
    """
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


@dataclass(frozen=True, eq=False, repr=False)
class QuantileStatistic(OfRecords):
    """A quantile, made by ``quantile`` or ``median``."""

    attribute: str
    q: float
    where: Query | None = None
    is_interpolated: ClassVar[bool] = False

    @property
    def quantity(self) -> Quantity:
        """A value in the units of the column."""
        return "value"

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", real_number("q", self.q))
        if not 0 <= self.q <= 1:
            raise InvalidInput(f"q must be at least 0 and at most 1. Found {self.q!r}. The median has 0.5.")
        require_where(self.where)

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundQuantile:
        """Bind the quantile."""
        ((low, high, _),), among = numbers_among("A quantile", universe, (self.attribute,), self.where, resolution)
        declared = universe[self.attribute]
        assert declared.values is not None
        names = universe.order((self.attribute, *among.attributes))
        require_table(names, universe.sizes(names))
        order = np.argsort(low, kind="stable")
        order = order[~np.isnan(declared.values[order])]
        whole = declared.is_whole and resolution == "values"
        between = self.is_interpolated and 0 < self.q < 1  # q = 0 and q = 1 need no interpolation
        return BoundQuantile(universe, self.attribute, self.q, low, high, order, among, whole, between)

    def true_value(self, rows: RawRows) -> float:
        """Return the least value with at least q of the values at or below it; for q = 0 the least value."""
        values = np.sort(rows.values(self.attribute, self.where))
        return float(values[max(1, math.ceil(self.q * len(values))) - 1])

    def __repr__(self) -> str:
        maker = "interpolated_quantile" if self.is_interpolated else "quantile"
        return f"{maker}({self.attribute!r}, {self.q:g}" + (")" if self.where is None else f", where={self.where!r})")


class InterpolatedQuantile(QuantileStatistic):
    """A quantile between neighboring values, made by ``interpolated_quantile``."""

    is_interpolated: ClassVar[bool] = True

    def true_value(self, rows: RawRows) -> float:
        """Return the quantile, interpolated between two values."""
        return float(np.quantile(rows.values(self.attribute, self.where), self.q))


def quantile(attribute: str, q: float, where: Query | None = None) -> Query:
    """Ask for the smallest value v such that at least a fraction ``q`` of the records have a value of at most v.

    The error bar is an interval of values. Inside a bin the estimate is interpolated.

    Parameters
    ----------
    attribute : str
        A numeric attribute.
    q : float
        The fraction, from 0 to 1.
    where : Query, optional
        A count that selects the records. Default: all.

    Returns
    -------
    Query

    Example
    -------
    >>> quantile("age", 0.9)  # doctest: +SKIP
    """
    return QuantileStatistic(attribute, q, where)


def interpolated_quantile(attribute: str, q: float, where: Query | None = None) -> Query:
    """Ask for a quantile interpolated linearly between neighboring values, as SQL's ``quantile_cont``.

    It is the value at rank q·(m − 1) of the m records in order, counted from 0. If neighboring records are far apart, a
    few records more or less move it far, and the error bar is that wide.

    Parameters
    ----------
    attribute : str
        A numeric attribute.
    q : float
        The fraction, from 0 to 1.
    where : Query, optional
        A count that selects the records. Default: all.

    Returns
    -------
    Query

    Example
    -------
    >>> interpolated_quantile("age", 0.9)  # doctest: +SKIP
    """
    return InterpolatedQuantile(attribute, q, where)


def median(attribute: str, where: Query | None = None) -> Query:
    """Ask for the smallest value v such that at least half of the records have a value of at most v.

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
    >>> median("age", where=count(sex="F"))  # doctest: +SKIP
    """
    return QuantileStatistic(attribute, 0.5, where)


offer(QuantileStatistic, quantile, median)
offer(InterpolatedQuantile, interpolated_quantile)
