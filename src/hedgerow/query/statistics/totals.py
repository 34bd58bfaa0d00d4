"""Totals: the sum of an attribute over the records."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from hedgerow._types import Names
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
from hedgerow.query.linear import Linear, spread
from hedgerow.query.ratios import BoundMean, bound_mean
from hedgerow.query.raw_rows import RawRows
from hedgerow.query.statistics.statistic import OfRecords, offer, require_where
from hedgerow.universe.universe import Universe


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

    def typical(self, known: AnswerKnowledge) -> float | None:
        """Return the typical error of the sum."""
        return typical_total(self.part.universe, self.part.names, self.part.most(0.0), known)

    def best(self, known: LinearKnowledge) -> float:
        """Return the interpolated sum on the hypothesis."""
        table = self.part.middle * spread(self.part.among.share, self.part.names)
        return self.part.hypothesis_sum(known, table)


@dataclass(frozen=True, eq=False, repr=False)
class Total(OfRecords):
    """A sum, made by ``total``."""

    attribute: str
    where: Query | None = None

    @property
    def quantity(self) -> Quantity:
        """A value in the units of the column."""
        return "value"

    def __post_init__(self) -> None:
        require_where(self.where)

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundTotal:
        """Bind the sum."""
        return BoundTotal(bound_mean("A total", universe, self.attribute, self.where, resolution))

    def true_value(self, rows: RawRows) -> float:
        """Return the sum of the values."""
        return float(rows.values(self.attribute, self.where).sum())


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


offer(Total, total)
