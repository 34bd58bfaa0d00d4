"""Common statistics: quantiles, totals, variances, correlations, histograms, groups, most frequent values, differences.

Each is composed of linear queries (``composed``, ``ratios``), and its error bar holds together with theirs.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import numbers
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow import _memory
from hedgerow._checks import number
from hedgerow._types import Array, Names
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.query.bound import Bound, Estimate, Labels
from hedgerow.query.composed import (
    AnswerKnowledge,
    BoundCount,
    ComposedQuestion,
    Ends,
    LinearKnowledge,
    total_between,
)
from hedgerow.query.counts import (
    QUESTIONS,
    BoundMarginal,
    CombinedQuery,
    Condition,
    Count,
    MarginalRespondent,
    Not,
    Parity,
    Query,
    Resolution,
    bound,
    count,
    marginal,
    require_boolean,
)
from hedgerow.query.linear import Linear, require_table, spread
from hedgerow.query.ratios import BoundMean, Mean, Share, bound_mean, mean, numbers_among, share
from hedgerow.universe.attributes import Range
from hedgerow.universe.universe import Universe

MOST_GROUPS = 20_000  # a question is asked of at most this many groups
NOTHING = 1e-9  # tolerance, in rows, for the rounding of a whole number of rows in float64
CONDITIONS = (Count, CombinedQuery, Not, Parity)


# Quantiles


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
            self.lowest.tobytes(),
            self.highest.tobytes(),
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


# Totals


@dataclass(frozen=True, eq=False)
class BoundTotal(ComposedQuestion):
    """Σ x over the records of a condition, as a sum of fractions. Multiplied by the number of rows it is the total."""

    part: BoundMean

    in_rows = True

    @property
    def key(self) -> Hashable:
        """Key of the question."""
        return ("total", self.part.key)

    @property
    def linears(self) -> tuple[Linear, ...]:
        """None needed in advance."""
        return ()

    @property
    def tables(self) -> tuple[Names, ...]:
        """Attribute set of the sum."""
        return (self.part.names,)

    @property
    def is_coarse(self) -> bool:
        """True if the sum depends on values inside bins."""
        return self.part.is_coarse

    @property
    def limits(self) -> Ends:
        """Least and greatest contribution of a record, 0 included."""
        return min(0.0, self.part.low), max(0.0, self.part.high)

    def ends(self, known: LinearKnowledge) -> Ends:
        """Return the least and the greatest sum that the knowledge allows."""
        return self.part.between(known, self.part.least(0.0))[0], self.part.between(known, self.part.most(0.0))[1]

    def best(self, known: LinearKnowledge) -> float:
        """Return the interpolated sum on the hypothesis."""
        table = self.part.middle * spread(self.part.among.share, self.part.names)
        return self.part.hypothesis_sum(known, table)


# Variances and correlations


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

    def ends(self, known: LinearKnowledge) -> Ends:
        """Return the least and the greatest variance that the knowledge allows."""
        c = self.part.round_to_place(self.part.best(known))
        squares = about(self.part, *_product(_shift_range(self.part, c), _shift_range(self.part, c), same=True)).ends(
            known
        )
        low, high = (end - c for end in self.part.ends(known))
        nearest = 0.0 if low <= 0 <= high else min(low * low, high * high)
        least, most = self.limits
        return max(least, squares[0] - max(low * low, high * high)), min(most, squares[1] - nearest)

    def best(self, known: LinearKnowledge) -> float:
        """Return the interpolated variance on the hypothesis."""
        c = self.part.best(known)
        table = (self.part.middle - c) ** 2 + self.inner
        return max(0.0, _believed_mean(self.part, known, table))


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
        places = [part.round_to_place(part.best(known)) for part in (self.first, self.second)]
        shifted = [_shift_range(part, c) for part, c in zip((self.first, self.second), places, strict=True)]
        product = about(self.first, *_product(*shifted, same=False)).ends(known)
        off = [[end - c for end in part.ends(known)] for part, c in zip((self.first, self.second), places, strict=True)]
        moved = [a * b for a, b in itertools.product(*off)]
        low, high = product[0] - max(moved), product[1] - min(moved)
        variances = [variance.ends(known) for variance in self._variances]
        least, most = (math.sqrt(max(0.0, variances[0][i] * variances[1][i])) for i in (0, 1))

        def over(covariance: float, *, upper: bool) -> float:
            scale = least if (covariance > 0) == upper else most
            if scale <= 0:
                return math.copysign(1.0, covariance) if covariance else 0.0
            return min(1.0, max(-1.0, covariance / scale))

        return over(low, upper=False), over(high, upper=True)

    def best(self, known: LinearKnowledge) -> float:
        """Return the interpolated correlation on the hypothesis."""
        means = [part.best(known) for part in (self.first, self.second)]
        table = (self.first.middle - means[0]) * (self.second.middle - means[1])
        scale = math.sqrt(math.prod(variance.best(known) for variance in self._variances))
        return min(1.0, max(-1.0, _believed_mean(self.first, known, table) / scale)) if scale > 0 else 0.0


def about(part: BoundMean, lowest: Array, highest: Array) -> BoundMean:
    """Return the mean of another number over the same records."""
    return BoundMean(part.universe, part.names, lowest, highest, (lowest + highest) / 2, part.among)


def _shift_range(part: BoundMean, c: float) -> tuple[Array, Array]:
    """Return the lowest and highest values minus c."""
    return part.lowest - c, part.highest - c


def _product(first: tuple[Array, Array], second: tuple[Array, Array], *, same: bool) -> tuple[Array, Array]:
    """Return the least and greatest product of numbers in two intervals, or of one number with itself."""
    if same:
        low, high = (end * end for end in first)
        crossed = (first[0] < 0) & (first[1] > 0)
        return np.where(crossed, 0.0, np.minimum(low, high)), np.maximum(low, high)
    corners = [a * b for a in first for b in second]
    return np.minimum.reduce(np.broadcast_arrays(*corners)), np.maximum.reduce(np.broadcast_arrays(*corners))


def _believed_mean(part: BoundMean, known: LinearKnowledge, table: Array) -> float:
    """Return the mean of a table over the records of the condition, on the hypothesis."""
    among = part.among.share
    mass = known.hypothesis_answer(among)
    return part.hypothesis_sum(known, table * spread(among, part.names)) / mass if mass > 0 else 0.0


def _inner_variance(universe: Universe, attribute: str, resolution: Resolution) -> Array:
    """Return the variance of values spread evenly over each bin: w²/12, or (k² − 1)/12 for k whole numbers."""
    declared = universe[attribute]
    assert declared.bounds is not None
    if resolution == "bins":
        return np.zeros(declared.size)
    width = np.nan_to_num(declared.bounds[1] - declared.bounds[0])
    inner: Array = ((width + 1) ** 2 - 1) / 12 if declared.is_whole else width**2 / 12
    return inner


# Differences


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
        return all(isinstance(part, SingleQuestion | BoundCount) for part in (self.first, self.second))

    def _join_extremes(self, *, upper: bool) -> tuple[Names, Array]:
        """Return the most, or the least, that a record may add to the difference, by cell."""
        first, second = (_sides(part) for part in (self.first, self.second))
        plus, minus = (first[1], second[0]) if upper else (first[0], second[1])
        names = self.universe.order((*plus.attributes, *minus.attributes))
        require_table(names, self.universe.sizes(names))
        return names, np.broadcast_to(spread(plus, names) - spread(minus, names), self.universe.sizes(names))

    def _total(self, joined: tuple[Names, Array], known: LinearKnowledge) -> tuple[float, float]:
        """Return an interval for the sum of a joined table."""
        return total_between(self.universe, joined[0], joined[1], known)


@dataclass(frozen=True, eq=False)
class SingleQuestion(ComposedQuestion):
    """One linear query as a part of a composed question."""

    query: Linear

    is_fraction = True
    is_coarse = False
    limits = (0.0, 1.0)

    @property
    def key(self) -> Hashable:
        """Key of the query."""
        return self.query.key

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The query itself."""
        return (self.query,)

    def kept_cells(self, universe: Universe) -> int:
        """Return 0: a linear query keeps no table."""
        return 0

    def ends(self, known: LinearKnowledge) -> Ends:
        """Return the interval of the query."""
        return known.interval(self.query)

    def best(self, known: LinearKnowledge) -> float:
        """Return the answer to the query."""
        return known.value(self.query)


def _sides(part: ComposedQuestion) -> tuple[Linear, Linear]:
    """Return the lower and the upper linear query of a count."""
    if isinstance(part, SingleQuestion):
        return part.query, part.query
    assert isinstance(part, BoundCount)
    return part.low, part.high


def _part(query: Query, universe: Universe, resolution: Resolution) -> ComposedQuestion:
    """Bind a part of a difference or of a histogram; refuse anything but one number."""
    found = _single(query, universe, resolution)
    if isinstance(found, ComposedQuestion) and not isinstance(found, SeveralQuestions | BoundTop) and not found.in_rows:
        return found
    raise InvalidInput(
        f"A difference must be between two numbers, such as counts or means. Found {query!r}. Compare its cells "
        "instead."
    )


# Several at once


@dataclass(frozen=True, eq=False)
class SeveralQuestions(ComposedQuestion):
    """Questions of one kind, one for each cell of a table."""

    parts: tuple[ComposedQuestion, ...]
    axes: Labels
    is_fraction: bool

    @property
    def labels(self) -> Labels:  # type: ignore[override]
        """Labels of the axes."""
        return self.axes

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells along each axis."""
        return tuple(len(labels) for _, labels in self.axes)

    @property
    def key(self) -> Hashable:
        """Key of the question."""
        return ("several", self.shape, tuple(part.key for part in self.parts))

    @property
    def linears(self) -> list[Linear]:
        """Those of all parts."""
        return [query for part in self.parts for query in part.linears]

    @property
    def tables(self) -> list[Names]:
        """Those of all parts, each once."""
        return list(dict.fromkeys(names for part in self.parts for names in part.tables))

    def kept_cells(self, universe: Universe) -> int:
        """Return the sum over all parts."""
        return sum(part.kept_cells(universe) for part in self.parts)

    @property
    def in_rows(self) -> bool:  # type: ignore[override]
        """True if a part is a sum over all rows."""
        return any(part.in_rows for part in self.parts)

    @property
    def is_coarse(self) -> bool:
        """True if bins are cut in one of the parts."""
        return any(part.is_coarse for part in self.parts)

    @property
    def limits(self) -> Ends:
        """Limits of each part."""
        return self._each(lambda part: part.limits[0]), self._each(lambda part: part.limits[1])

    def _each(self, of: Callable[[ComposedQuestion], float]) -> Array:
        """Apply a function to every part."""
        return np.array([of(part) for part in self.parts], dtype=float).reshape(self.shape)

    def ends(self, known: LinearKnowledge) -> Ends:
        """Return the ends of each part."""
        found = np.array([part.ends(known) for part in self.parts], dtype=float).reshape(*self.shape, 2)
        return found[..., 0], found[..., 1]

    def best(self, known: LinearKnowledge) -> Array:
        """Return the best answer to each part."""
        return self._each(lambda part: part.best(known))


@dataclass(frozen=True, eq=False)
class BoundTop(ComposedQuestion):
    """Cells of an attribute, sorted by frequency."""

    whole: BoundMarginal
    k: int

    is_fraction = True

    @property
    def key(self) -> Hashable:
        """Key of the question."""
        return ("top", self.whole.key, self.k)

    @property
    def linears(self) -> tuple[Linear, ...]:
        """None: the answer needs the whole marginal."""
        return ()

    @property
    def tables(self) -> Sequence[Names]:
        """Attribute set of the marginal."""
        return self.whole.tables

    def ask(self, respondent: MarginalRespondent, within: float | None) -> Estimate:  # type: ignore[override]
        """Return the k most frequent cells, followed by all that the bars do not exclude from the top k."""
        said = self.whole.ask(respondent, within)
        values = np.asarray(said.value)
        errors = np.ones(values.shape) if said.error is None else np.asarray(said.error)
        order = np.argsort(-values, kind="stable")
        surely = np.sort(values - errors)[::-1][self.k - 1]  # at least k cells certainly have this fraction
        kept = [i for place, i in enumerate(order) if place < self.k or values[i] + errors[i] >= surely]
        labels = self.whole.labels[0][1]
        typical = None if said.typical is None else np.asarray(said.typical)[kept]
        axes = ((self.whole.asked[0], tuple(labels[i] for i in kept)),)
        error = None if said.error is None else errors[kept]
        return Estimate(values[kept], error, said.source, 0.0, typical, axes)


# The questions


class Statistic(Query):
    """Base of questions that are defined by the values of their fields."""

    def _identity(self) -> Any:
        fields: list[Any] = [getattr(self, field.name) for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        return (type(self).__name__, *(v._identity() if isinstance(v, Query) else v for v in fields))

    def __repr__(self) -> str:
        fields: list[Any] = [(f.name, getattr(self, f.name)) for f in dataclasses.fields(self)]  # type: ignore[arg-type]
        told = ", ".join(f"{name}={value!r}" for name, value in fields if value is not None)
        return f"{type(self).__name__.lower()}({told})"


@dataclass(frozen=True, eq=False, repr=False)
class QuantileStatistic(Statistic):
    """A quantile, made by ``quantile`` or ``median``."""

    attribute: str
    q: float
    where: Query | None = None
    is_interpolated: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", _number("q", self.q))
        if not 0 <= self.q <= 1:
            raise InvalidInput(f"q must be at least 0 and at most 1. Found {self.q!r}. The median has 0.5.")
        _require_where(self.where)

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


class InterpolatedQuantile(QuantileStatistic):
    """A quantile between neighboring values, made by ``interpolated_quantile``."""

    is_interpolated: ClassVar[bool] = True

    def __repr__(self) -> str:
        return super().__repr__().replace("interpolatedquantile(", "interpolated_quantile(", 1)


@dataclass(frozen=True, eq=False, repr=False)
class Total(Statistic):
    """A sum, made by ``total``."""

    attribute: str
    where: Query | None = None

    def __post_init__(self) -> None:
        _require_where(self.where)

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundTotal:
        """Bind the sum."""
        return BoundTotal(bound_mean("A total", universe, self.attribute, self.where, resolution))


@dataclass(frozen=True, eq=False, repr=False)
class Variance(Statistic):
    """A variance, made by ``variance``."""

    attribute: str
    where: Query | None = None

    def __post_init__(self) -> None:
        _require_where(self.where)

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundVariance:
        """Bind the variance."""
        part = bound_mean("A variance", universe, self.attribute, self.where, resolution)
        return BoundVariance(part, _inner_variance(universe, self.attribute, resolution).reshape(part.middle.shape))


@dataclass(frozen=True, eq=False, repr=False)
class Correlation(Statistic):
    """A correlation, made by ``correlation``."""

    first: str
    second: str
    where: Query | None = None

    def __post_init__(self) -> None:
        _require_where(self.where)

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
            inner.append(_inner_variance(universe, name, resolution).reshape(shape))
        return BoundCorrelation(parts[0], parts[1], (inner[0], inner[1]))


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(Statistic):
    """A histogram, made by ``histogram``."""

    attribute: str
    edges: tuple[float, ...] | None = None
    where: Query | None = None

    def __post_init__(self) -> None:
        _require_where(self.where)
        if self.edges is None:
            return
        cuts = tuple(_number("An edge", edge) for edge in self.edges)
        if len(cuts) < 2 or not all(a < b for a, b in itertools.pairwise(cuts)):
            raise InvalidInput(f"edges must be at least two increasing numbers. Found {cuts[:6]!r}. Sort them.")
        object.__setattr__(self, "edges", cuts)

    def on(self, universe: Universe, resolution: Resolution = "values") -> SeveralQuestions:
        """Bind one count for each bin."""
        declared = universe[self.attribute]
        if self.edges is None:
            _memory.require_listing("A histogram", declared.size, declared.size, "Give edges of fewer bins")
            masks = np.eye(declared.size, dtype=bool)
            cells: list[Query | None] = [count({self.attribute: mask}) for mask in masks]
            labels = tuple(declared.labels)
        else:
            cells, labels = _half_open(universe, self.attribute, self.edges), tuple(Range(edges=self.edges).labels)
        none = SingleQuestion(Linear((), (), (), np.array(0.0), True))
        parts = tuple(
            none if cell is None else _part(cell if self.where is None else cell & self.where, universe, resolution)
            for cell in cells
        )
        return SeveralQuestions(parts, ((self.attribute, labels),), True)


def _half_open(universe: Universe, attribute: str, edges: tuple[float, ...]) -> list[Query | None]:
    """Return one count per bin, with its lower edge and without its upper one; the last bin has both.

    The count is None for a bin in which no record can be.
    """
    declared = universe[attribute]
    if declared.bounds is None:
        raise InvalidInput(
            f"A histogram with edges must have a numeric attribute. Found {attribute!r}, which has labels only. "
            "Leave the edges out."
        )
    least, most = np.nanmin(declared.bounds[0]), np.nanmax(declared.bounds[1])
    closed = [*(math.nextafter(edge, -math.inf) for edge in edges[1:-1]), edges[-1]]
    pairs = zip(edges, closed, strict=False)
    return [None if a > most or b < least else count({attribute: (a, b)}) for a, b in pairs]


@dataclass(frozen=True, eq=False, repr=False)
class Top(Statistic):
    """The most frequent values, made by ``top``."""

    attribute: str
    k: int

    def __post_init__(self) -> None:
        if not isinstance(self.k, int | np.integer) or isinstance(self.k, bool) or self.k < 1:
            raise InvalidInput(f"k must be a whole number of at least 1. Found {self.k!r}. Give the number of values.")
        object.__setattr__(self, "k", int(self.k))

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundTop:
        """Bind the marginal of the attribute."""
        whole = marginal(self.attribute).on(universe)
        assert isinstance(whole, BoundMarginal)
        return BoundTop(whole, min(self.k, universe[self.attribute].size))


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Statistic):
    """A difference, made by ``difference``."""

    first: Query
    second: Query

    def __post_init__(self) -> None:
        for part in (self.first, self.second):
            if not isinstance(part, Query):
                raise InvalidInput(f"A difference must have two questions. Found {part!r}. Give counts or means.")

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundDifference:
        """Bind both parts."""
        first, second = (_part(query, universe, resolution) for query in (self.first, self.second))
        return BoundDifference(universe, first, second, first.is_fraction and second.is_fraction)


@dataclass(frozen=True, eq=False, repr=False)
class GroupedQuestion(Statistic):
    """A question for each group, made by ``group_by``. Without one, the fraction of records in each group."""

    attributes: tuple[str, ...]
    of: Query | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(dict.fromkeys(self.attributes)))
        if not self.attributes:
            raise InvalidInput("Groups must have at least one attribute. Found none. Name the attributes.")
        if type(self.of) not in (
            *CONDITIONS,
            type(None),
            Mean,
            Share,
            QuantileStatistic,
            InterpolatedQuantile,
            Total,
            Variance,
            Correlation,
        ):
            raise InvalidInput(
                f"The question for each group must be a count, share, mean, quantile, total, variance or correlation. "
                f"Found {self.of!r}. Ask it for each group separately."
            )

    def on(self, universe: Universe, resolution: Resolution = "values") -> Bound[Any]:
        """Bind the question once for each group."""
        if self.of is None:
            return marginal(*self.attributes).on(universe)
        parts = tuple(_single(part, universe, resolution) for part in self.parts(universe).ravel().tolist())
        axes = tuple((name, tuple(universe[name].labels)) for name in self.attributes)
        return SeveralQuestions(parts, axes, all(part.is_fraction for part in parts))

    def parts(self, universe: Universe) -> NDArray[np.object_]:
        """Return the question of each group, as an array with one axis per attribute."""
        assert self.of is not None
        shape = universe.sizes(self.attributes)
        if math.prod(shape) > MOST_GROUPS:
            raise TooLarge(
                f"Groups must be at most {MOST_GROUPS}. Found {math.prod(shape)}. Group by fewer attributes."
            )
        _memory.require_listing("A question of groups", math.prod(shape), sum(shape), "Group by fewer attributes")
        found = np.empty(shape, dtype=object)
        for cell in np.ndindex(shape):
            group = count({n: np.arange(m) == i for n, m, i in zip(self.attributes, shape, cell, strict=True)})
            part = found[cell] = _among(self.of, group)
            if not any(cell):  # all other groups are as large
                require_kept("A question of groups", universe, [part], math.prod(shape), "Group by fewer attributes")
        return found


def require_kept(what: str, universe: Universe, alike: Sequence[Query], times: int, way_out: str) -> None:
    """Refuse to ask these questions ``times`` times if the tables that they leave cached exceed the memory limit."""
    parts = [bound(query, universe) for query in alike]
    cells = sum(part.kept_cells(universe) for part in parts if isinstance(part, ComposedQuestion)) * times
    _memory.require(f"{what}, with a table for each group,", cells, _memory.KEPT, way_out)


def _single(query: Query, universe: Universe, resolution: Resolution) -> ComposedQuestion:
    """Bind a question; a linear query becomes a composed one."""
    found = bound(query, universe, resolution)
    return SingleQuestion(found) if isinstance(found, Linear) else found  # type: ignore[return-value]


def _among(query: Query, group: Query) -> Query:
    """Return the question restricted to a group."""
    if isinstance(query, CONDITIONS):
        return query & group
    where = query.where  # type: ignore[attr-defined]
    narrower = group if where is None else where & group
    if isinstance(query, Mean):
        return Mean(query.attribute, narrower)
    if isinstance(query, Share):
        return Share(query.part, narrower)
    return dataclasses.replace(query, where=narrower)  # type: ignore[type-var]


class Groups:
    """Groups of records by the cells of some attributes. Its methods ask for their counts, means and so on."""

    def __init__(self, attributes: tuple[str, ...]) -> None:
        self._attributes = attributes

    def count(self, where: Query | None = None) -> Query:
        """Ask for the fraction of records in each group, counting only those of ``where`` if given."""
        return GroupedQuestion(self._attributes, where)

    def mean(self, attribute: str, where: Query | None = None) -> Query:
        """Ask for the mean of an attribute in each group."""
        return GroupedQuestion(self._attributes, mean(attribute, where))

    def share(self, part: Query, where: Query | None = None) -> Query:
        """Ask for the fraction of each group for which ``part`` holds."""
        return GroupedQuestion(self._attributes, share(part, Count(()) if where is None else where))

    def median(self, attribute: str, where: Query | None = None) -> Query:
        """Ask for the median of an attribute in each group."""
        return GroupedQuestion(self._attributes, median(attribute, where))

    def quantile(self, attribute: str, q: float, where: Query | None = None) -> Query:
        """Ask for a quantile of an attribute in each group."""
        return GroupedQuestion(self._attributes, quantile(attribute, q, where))

    def total(self, attribute: str, where: Query | None = None) -> Query:
        """Ask for the sum of an attribute over each group."""
        return GroupedQuestion(self._attributes, total(attribute, where))

    def variance(self, attribute: str, where: Query | None = None) -> Query:
        """Ask for the variance of an attribute in each group."""
        return GroupedQuestion(self._attributes, variance(attribute, where))

    def __repr__(self) -> str:
        return f"group_by({', '.join(map(repr, self._attributes))})"


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


def total(attribute: str, where: Query | None = None) -> Query:
    """Ask for the sum of an attribute over the records, or over those of ``where``.

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
    >>> total("visits")  # doctest: +SKIP
    """
    return Total(attribute, where)


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


def histogram(attribute: str, edges: Sequence[float] | None = None, where: Query | None = None) -> Query:
    """Ask for the fraction of records in each bin.

    As in NumPy, a bin includes its lower edge but not its upper one, the last bin includes both, and records outside
    are in no bin.

    Parameters
    ----------
    attribute : str
        The attribute.
    edges : sequence of float, optional
        Increasing edges of the bins. Default: the cells of the universe.
    where : Query, optional
        A count that selects the records. Default: all.

    Returns
    -------
    Query

    Example
    -------
    >>> histogram("age", edges=[20, 40, 60, 80])  # doctest: +SKIP
    """
    return Histogram(attribute, None if edges is None else tuple(edges), where)


def group_by(*attributes: str) -> Groups:
    """Group records by the cells of some attributes. The methods of the result ask one question of all groups.

    Parameters
    ----------
    *attributes : str
        Names of the attributes.

    Returns
    -------
    Groups

    Example
    -------
    >>> group_by("sex").mean("age")  # doctest: +SKIP
    """
    if not attributes:
        raise InvalidInput("Groups must have at least one attribute. Found none. Name the attributes.")
    return Groups(tuple(attributes))


def top(attribute: str, k: int) -> Query:
    """Ask for the k most frequent values (cells) of an attribute with their fractions, the most frequent first.

    After them come all values that the error bars do not exclude from the top k. If there are none, the answer is
    certain.

    Parameters
    ----------
    attribute : str
        The attribute.
    k : int
        Number of values.

    Returns
    -------
    Query

    Example
    -------
    >>> top("job", 3)  # doctest: +SKIP
    """
    return Top(attribute, k)


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


def _require_where(where: object) -> None:
    """Refuse a ``where`` that is not a count."""
    if where is not None:
        require_boolean(where)


def _number(name: str, value: object) -> float:
    """Check that a value is a number, and return it as a float."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidInput(f"{name} must be a number. Found {value!r}. Give a number.")
    return number(value)


STATISTICS: dict[str, type[Query]] = {
    "quantile": QuantileStatistic,
    "interpolated_quantile": InterpolatedQuantile,
    "total": Total,
    "variance": Variance,
    "correlation": Correlation,
    "histogram": Histogram,
    "group_by": GroupedQuestion,
    "top": Top,
    "difference": Difference,
}
"""Classes of statistics, by the name of the function that makes them."""

QUESTIONS.update(STATISTICS.values())
