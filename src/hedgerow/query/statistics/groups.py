"""Groups: one question for each cell of some attributes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _memory
from hedgerow._checks import listed_names
from hedgerow._registry import NEWER
from hedgerow._types import Array
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.query.bound import Bound, Labels
from hedgerow.query.counts import (
    QUESTIONS,
    Count,
    Marginal,
    Quantity,
    Query,
    Resolution,
    bound,
    count,
    marginal,
)
from hedgerow.query.ratios import Mean, Share, mean, share
from hedgerow.query.raw_rows import RawRows
from hedgerow.query.statistics.periods import Cell, period_cells, require_part
from hedgerow.query.statistics.quantiles import median, quantile
from hedgerow.query.statistics.spread import variance
from hedgerow.query.statistics.statistic import OfRecords, SeveralQuestions, Statistic, offer, single
from hedgerow.query.statistics.totals import total
from hedgerow.universe.dates import Dates
from hedgerow.universe.universe import Universe

MOST_GROUPS = 20_000  # a question is asked of at most this many groups


@dataclass(frozen=True, eq=False, repr=False)
class GroupedQuestion(Statistic):
    """A question for each group, made by ``group_by``. Without one, the fraction of records in each group."""

    attributes: tuple[str, ...]
    of: Query | None = None
    by: str | None = field(default=None, metadata=NEWER)
    """Period or part of the date by which dates are grouped; None for their bins."""

    @property
    def quantity(self) -> Quantity:
        """Quantity of the question about each group."""
        return "count" if self.of is None else self.of.quantity

    @property
    def divides_rows(self) -> bool:  # type: ignore[override]
        """True if each group is counted."""
        return self.of is None or self.of.is_condition

    def __post_init__(self) -> None:
        if self.by is not None:
            require_part(self.by)
        object.__setattr__(self, "attributes", tuple(dict.fromkeys(self.attributes)))
        if not self.attributes:
            raise InvalidInput("Groups must have at least one attribute. Found none. Name the attributes.")
        if self.of is not None and (type(self.of) not in QUESTIONS or self.of.among(Count(())) is None):
            raise InvalidInput(
                f"The question for each group must be a count, share, mean, quantile, total, variance or correlation. "
                f"Found {self.of!r}. Ask it for each group separately."
            )

    def on(self, universe: Universe, resolution: Resolution = "values") -> Bound[Any]:
        """Bind the question once for each group."""
        if self.of is None and self.by is None:
            return marginal(*self.attributes).on(universe)
        parts = tuple(single(part, universe, resolution) for part in self.parts(universe).ravel().tolist())
        return SeveralQuestions(parts, self.axes(universe), all(part.is_fraction for part in parts))

    def true_value(self, rows: RawRows) -> float | Array:
        """Return the true answer of each group."""
        if self.of is None and self.by is None:
            return Marginal(self.attributes).true_value(rows)
        answers = np.vectorize(lambda part: part.true_value(rows), otypes=[float])
        return np.asarray(answers(self.parts(rows.universe)))

    def axes(self, universe: Universe) -> Labels:
        """Return each attribute with the labels of its groups."""
        return tuple((name, tuple(label for label, _ in self._cells(universe, name))) for name in self.attributes)

    def _cells(self, universe: Universe, name: str) -> list[Cell]:
        """Return the label and the predicate of each group of one attribute."""
        declared = universe[name]
        if self.by is not None and isinstance(declared, Dates):
            return period_cells(name, declared, self.by)
        return [(label, np.arange(declared.size) == i) for i, label in enumerate(declared.labels)]

    def _shape(self, universe: Universe) -> tuple[int, ...]:
        """Return the number of groups of each attribute."""
        if self.by is None:
            return universe.sizes(self.attributes)
        if not any(isinstance(universe[name], Dates) for name in self.attributes):
            raise InvalidInput(
                f"by must be for an attribute of dates. Found {self.by!r} and {', '.join(map(repr, self.attributes))}. "
                "Leave it out, or name a column that is declared as Dates."
            )
        return tuple(len(self._cells(universe, name)) for name in self.attributes)

    def parts(self, universe: Universe) -> NDArray[np.object_]:
        """Return the question of each group, as an array with one axis per attribute."""
        of = Count(()) if self.of is None else self.of
        shape = self._shape(universe)
        if math.prod(shape) > MOST_GROUPS:
            raise TooLarge(
                f"Groups must be at most {MOST_GROUPS}. Found {math.prod(shape)}. Group by fewer attributes."
            )
        _memory.require_listing("A question of groups", math.prod(shape), sum(shape), "Group by fewer attributes")
        found = np.empty(shape, dtype=object)
        cells = [self._cells(universe, name) for name in self.attributes]
        for cell in np.ndindex(shape):
            group = count({name: axis[i][1] for name, axis, i in zip(self.attributes, cells, cell, strict=True)})
            part = found[cell] = of.among(group)
            assert part is not None
            if not any(cell):  # all other groups are as large
                require_kept("A question of groups", universe, [part], math.prod(shape), "Group by fewer attributes")
        return found

    def __repr__(self) -> str:
        groups = repr(Groups(self.attributes, self.by))
        of = repr(self.of)
        if self.of is None or isinstance(self.of, OfRecords | Mean | Share):
            return f"{groups}.{'count()' if self.of is None else of}"
        return f"{groups}.count({of})"


def require_kept(what: str, universe: Universe, alike: Sequence[Query], times: int, way_out: str) -> None:
    """Refuse to ask these questions ``times`` times if the tables that they leave cached exceed the memory limit."""
    cells = 0
    for query in alike:  # one at a time, because all of them bound may be too many already
        cells += bound(query, universe).kept_cells(universe) * times
        _memory.require(f"{what}, with a table for each group,", cells, _memory.KEPT, way_out)


class Groups:
    """Groups of records by the cells of some attributes. Its methods ask for their counts, means and so on."""

    def __init__(self, attributes: tuple[str, ...], by: str | None = None) -> None:
        self._attributes, self._by = attributes, by

    def _each(self, of: Query | None) -> Query:
        return GroupedQuestion(self._attributes, of, self._by)

    def count(self, where: Query | None = None) -> Query:
        """Ask for the fraction of records in each group, counting only those of ``where`` if given."""
        return self._each(where)

    def mean(self, attribute: str, where: Query | None = None) -> Query:
        """Ask for the mean of an attribute in each group."""
        return self._each(mean(attribute, where))

    def share(self, part: Query, where: Query | None = None) -> Query:
        """Ask for the fraction of each group for which ``part`` holds."""
        return self._each(share(part, Count(()) if where is None else where))

    def median(self, attribute: str, where: Query | None = None) -> Query:
        """Ask for the median of an attribute in each group."""
        return self._each(median(attribute, where))

    def quantile(self, attribute: str, q: float, where: Query | None = None) -> Query:
        """Ask for a quantile of an attribute in each group."""
        return self._each(quantile(attribute, q, where))

    def total(self, attribute: str, where: Query | None = None) -> Query:
        """Ask for the sum of an attribute over each group."""
        return self._each(total(attribute, where))

    def variance(self, attribute: str, where: Query | None = None) -> Query:
        """Ask for the variance of an attribute in each group."""
        return self._each(variance(attribute, where))

    def __repr__(self) -> str:
        by = "" if self._by is None else f", by={self._by!r}"
        return f"group_by({', '.join(map(repr, self._attributes))}{by})"


def group_by(*attributes: str, by: str | None = None) -> Groups:
    """Group records by the cells of some attributes. The methods of the result ask one question of all groups.

    Parameters
    ----------
    *attributes : str
        Names of the attributes, one by one or in a list.
    by : {"year", "quarter", "month", "week", "day", "weekday", "month of year"}, optional
        How to group dates. Default: by the bins that the universe declares.

    Returns
    -------
    Groups

    Raises
    ------
    InvalidInput
        If no attribute is named, or a question is given among the names.

    Example
    -------
    >>> group_by("sex").mean("age")  # doctest: +SKIP
    """
    if any(isinstance(each, Query) for each in attributes):
        raise InvalidInput(
            "Groups must be named, and their question asked of them. Found a question among the names. Write "
            "group_by('region').mean('age')."
        )
    names = listed_names(attributes)
    if not names:
        raise InvalidInput("Groups must have at least one attribute. Found none. Name the attributes.")
    return Groups(names, None if by is None else require_part(by))


offer(GroupedQuestion, group_by)
