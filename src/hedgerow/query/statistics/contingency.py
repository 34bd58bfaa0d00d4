"""Contingency: how strongly two attributes depend on each other, as Cramér's V with an interval.

p_ij, a_i, b_j   shares of the records in a cell of both attributes, and in the values of each
φ²               Σ (p_ij − a_i b_j)²/(a_i b_j), the chi-square statistic divided by the number of records
V                √(φ²/(min(r, c) − 1)), from 0 for independent attributes to 1 where one determines the other

Interval. φ² is the sum of the squared canonical correlations, so it is at least ρ(u, v)² for the correlation of any
scores u of the rows and v of the columns; it is that of a table of two by two. The scores are the leading canonical
ones of the hypothesis, which are public. It is also at least, and at most, the sum over the cells of the least, and the
greatest, (p − ab)²/(ab) that the intervals of p, a and b allow. There p²/(ab) ≤ p/max(a, b) ≤ 1, because p ≤ min(a, b).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hedgerow import _memory
from hedgerow._types import Array, Names
from hedgerow.errors import InvalidInput
from hedgerow.query.composed import ComposedQuestion, Ends, LinearKnowledge
from hedgerow.query.counts import Count, Quantity, Query, Resolution, bound_condition
from hedgerow.query.linear import Condition, Linear, require_table
from hedgerow.query.ratios import BoundMean
from hedgerow.query.raw_rows import RawRows
from hedgerow.query.statistics.spread import ROUNDED, BoundCorrelation
from hedgerow.query.statistics.statistic import OfRecords, SingleQuestion, offer, require_where
from hedgerow.universe.universe import Universe

FARTHEST = 3.0  # canonical scores are clipped to this many deviations: rare values would widen the interval
GRID = 64  # and rounded to this part of a deviation
MOST_CELLS = 4_096  # of a larger table only the correlation of scores bounds V


@dataclass(frozen=True, eq=False)
class BoundAssociation(ComposedQuestion):
    """Cramér's V of two attributes over the records of a condition."""

    universe: Universe
    pair: Names
    among: Condition

    is_coarse = False
    limits = (0.0, 1.0)

    @property
    def key(self) -> Hashable:
        """Key of the question."""
        return ("cramers_v", self.pair, self.among.low.key)

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The count of the records."""
        return (self.among.low,)

    @cached_property
    def names(self) -> Names:
        """Attributes of the pair and of the condition."""
        return self.universe.order((*self.pair, *self.among.attributes))

    @property
    def tables(self) -> tuple[Names, ...]:
        """Attribute set of both attributes and the condition."""
        return (self.names,)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each attribute."""
        return self.universe.sizes(self.pair)

    def ends(self, known: LinearKnowledge) -> Ends:
        """Return the least and the greatest V that the knowledge allows."""
        size = min(self.shape) - 1
        correlated = self._correlation(known).ends(known)
        least = 0.0 if correlated[0] <= 0 <= correlated[1] else min(correlated[0] ** 2, correlated[1] ** 2)
        most = max(correlated[0] ** 2, correlated[1] ** 2) if self.shape == (2, 2) else float(size)
        if self.shape != (2, 2) and math.prod(self.shape) <= MOST_CELLS:
            low, high = _square_between(*self._shares_between(known))
            least, most = max(least, low), min(most, high)
        return math.sqrt(min(1.0, least / size)), math.sqrt(min(1.0, max(most, least) / size))

    def best(self, known: LinearKnowledge) -> float:
        """Return V on the hypothesis."""
        return cramers_v_of(self._hypothesis_shares(known))

    def _marks(self) -> Iterator[dict[str, NDArray[np.bool_]]]:
        """Yield the masks of every cell, then of every value of the first and of the second attribute."""
        first, second = ([np.arange(size) == place for place in range(size)] for size in self.shape)
        for row in first:
            for column in second:
                yield {self.pair[0]: row, self.pair[1]: column}
        for name, masks in zip(self.pair, (first, second), strict=True):
            for mask in masks:
                yield {name: mask}

    def _share(self, marks: dict[str, NDArray[np.bool_]]) -> ComposedQuestion:
        """Return the share of the records that are in these cells: a count if the condition selects everybody."""
        if not self.among.attributes:
            return SingleQuestion(Linear.product(self.universe, marks))
        table: Array = np.ones((1,) * len(self.names))
        for name, mask in marks.items():
            table = table * mask.reshape([-1 if n == name else 1 for n in self.names])
        return BoundMean(self.universe, self.names, table, table, table, self.among)

    def _shares_between(self, known: LinearKnowledge) -> tuple[Array, Array, Array]:
        """Return intervals for the shares of the cells and of the values of each attribute, with the ends last."""
        found = np.array([self._share(marks).ends(known) for marks in self._marks()])
        found += ROUNDED * np.array([-1.0, 1.0])  # so that rounding of what is known exactly proves nothing
        cells = math.prod(self.shape)
        rows = cells + self.shape[0]
        return found[:cells].reshape(*self.shape, 2), found[cells:rows], found[rows:]

    def _hypothesis_shares(self, known: LinearKnowledge) -> Array:
        """Return the shares of the cells on the hypothesis."""
        cells = itertools.islice(self._marks(), math.prod(self.shape))
        if self.among.attributes:
            return np.array([self._share(marks).best(known) for marks in cells]).reshape(self.shape)
        asked = [known.hypothesis_answer(Linear.product(self.universe, marks)) for marks in cells]
        return np.array(asked).reshape(self.shape)

    def _correlation(self, known: LinearKnowledge) -> BoundCorrelation:
        """Return the correlation of the leading canonical scores of the hypothesis."""
        parts = []
        for mine, scores in zip(self.pair, canonical_scores(self._hypothesis_shares(known)), strict=True):
            table = scores.reshape([-1 if name == mine else 1 for name in self.names])
            parts.append(BoundMean(self.universe, self.names, table, table, table, self.among))
        return BoundCorrelation(parts[0], parts[1], (np.zeros(1), np.zeros(1)))


def cramers_v_of(table: Array) -> float:
    """Return Cramér's V of a table of shares of two attributes."""
    shares = np.maximum(table, 0.0) / max(float(np.maximum(table, 0.0).sum()), 1e-300)
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    square = np.divide(np.square(shares - expected), expected, out=np.zeros_like(shares), where=expected > 0).sum()
    return math.sqrt(min(1.0, float(square) / max(1, min(table.shape) - 1)))


def canonical_scores(table: Array) -> tuple[Array, Array]:
    """Return the scores of the rows and of the columns of a table that correlate most, rounded and clipped."""
    shares = np.maximum(table, 0.0) + 1e-12
    shares = shares / shares.sum()
    a, b = shares.sum(axis=1), shares.sum(axis=0)
    left, _, right = np.linalg.svd((shares - np.outer(a, b)) / np.sqrt(np.outer(a, b)), full_matrices=False)
    scores = []
    for vector, margin in ((left[:, 0], a), (right[0], b)):
        score = np.round(np.clip(vector / np.sqrt(margin), -FARTHEST, FARTHEST) * GRID) / GRID
        if score.min() == score.max():  # any scores are valid; equal ones would say nothing
            score = np.arange(score.size, dtype=float) / max(1, score.size - 1)
        scores.append(score)
    return scores[0], scores[1]


def _square_between(cells: Array, rows: Array, columns: Array) -> tuple[float, float]:
    """Return the least and the greatest φ² that intervals of the shares allow."""
    (p, q), (a, b), (c, d) = (np.moveaxis(x, -1, 0) for x in (cells, rows, columns))
    least, most = np.outer(a, c), np.outer(b, d)
    larger = np.maximum(a[:, None], c[None, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.where(p > most, (p - most) ** 2 / most, np.where(q < least, (least - q) ** 2 / least, 0.0))
        bound = np.minimum(1.0, np.where(larger > 0, q / larger, 1.0))
        first = np.minimum(bound, np.where(least > 0, q**2 / least, np.inf))
        corners = [np.where(m > 0, (x - m) ** 2 / m, np.inf) for x in (p, q) for m in (least, most)]
    farthest = np.minimum(np.maximum.reduce(corners), np.maximum(0.0, bound + most - 2 * p))
    return float(np.nan_to_num(apart, nan=0.0, posinf=0.0).sum()), float(min(first.sum() - 1, farthest.sum()))


@dataclass(frozen=True, eq=False, repr=False)
class PairAssociation(OfRecords):
    """The strength of an association, made by ``cramers_v``."""

    first: str
    second: str
    where: Query | None = None

    @property
    def quantity(self) -> Quantity:
        """A number without a unit."""
        return "number"

    def __post_init__(self) -> None:
        require_where(self.where)

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundAssociation:
        """Bind the question. It is about the cells of both attributes."""
        if self.first == self.second:
            raise InvalidInput(f"An association must have two attributes. Found {self.first!r} twice. Name another.")
        pair = universe.order((self.first, self.second))
        for name in pair:
            if universe[name].size < 2:
                raise InvalidInput(f"An association must be of attributes that vary. Found {name!r}. Name another.")
        among = bound_condition(Count(()) if self.where is None else self.where, universe, resolution)
        if not among.is_exact:
            raise InvalidInput(
                f'where must not cut bins here. Found {self.where!r}. Choose whole bins, or ask with resolution="bins".'
            )
        if not among.high.attributes and not among.high.table:
            raise InvalidInput(
                f"An association must be among records that can exist. Found {self.where!r}, which holds for none. "
                "Change where."
            )
        bound = BoundAssociation(universe, pair, among)
        require_table(bound.names, universe.sizes(bound.names))
        _memory.require_listing(
            "An association", math.prod(bound.shape), sum(bound.shape), "Declare coarser bins, or fewer values"
        )
        return bound

    def true_value(self, rows: RawRows) -> float:
        """Return Cramér's V of the table of counts."""
        return cramers_v_of(rows.table((self.first, self.second), self.where))

    def __repr__(self) -> str:
        where = "" if self.where is None else f", where={self.where!r}"
        return f"cramers_v({self.first!r}, {self.second!r}{where})"


def cramers_v(first: str, second: str, where: Query | None = None) -> Query:
    """Ask how strongly two attributes depend on each other: Cramér's V, from 0 (not at all) to 1.

    It is about the cells of both attributes: numbers are compared by their bins. V = √(χ²/(n·(min(r, c) − 1))) for the
    chi-square statistic χ² of the table of r by c cells. ``answer.excludes(0)`` tests for a dependence.

    Parameters
    ----------
    first, second : str
        Two attributes.
    where : Query, optional
        A count that selects the records. Default: all.

    Returns
    -------
    Query

    Example
    -------
    >>> cramers_v("region", "smoker")  # doctest: +SKIP
    """
    return PairAssociation(first, second, where)


offer(PairAssociation, cramers_v)
