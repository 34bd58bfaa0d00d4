"""Histograms: a count for each bin."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from hedgerow import _memory
from hedgerow._registry import NEWER
from hedgerow._types import Array
from hedgerow.errors import InvalidInput
from hedgerow.query.counts import (
    Query,
    Resolution,
    count,
)
from hedgerow.query.linear import Linear
from hedgerow.query.raw_rows import RawRows
from hedgerow.query.statistics.statistic import (
    SeveralQuestions,
    SingleQuestion,
    Statistic,
    offer,
    part_of,
    real_number,
    require_where,
)
from hedgerow.universe.attributes import Range
from hedgerow.universe.dates import Dates, date_of, day_given, period_name
from hedgerow.universe.universe import Universe


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(Statistic):
    """A histogram, made by ``histogram``."""

    attribute: str
    edges: tuple[float, ...] | None = None
    where: Query | None = None
    days: tuple[str, ...] | None = field(default=None, metadata=NEWER)
    """Edges that are dates, as text."""

    divides_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_where(self.where)
        if self.days is not None:
            days = [day_given(day) for day in self.days]
            if len(days) < 2 or not all(a < b for a, b in itertools.pairwise(days)):
                raise InvalidInput(f"edges must be at least two increasing dates. Found {self.days[:6]!r}. Sort them.")
            object.__setattr__(self, "days", tuple(str(date_of(day)) for day in days))
        if self.edges is None:
            return
        cuts = tuple(real_number("An edge", edge) for edge in self.edges)
        if len(cuts) < 2 or not all(a < b for a, b in itertools.pairwise(cuts)):
            raise InvalidInput(f"edges must be at least two increasing numbers. Found {cuts[:6]!r}. Sort them.")
        object.__setattr__(self, "edges", cuts)

    def on(self, universe: Universe, resolution: Resolution = "values") -> SeveralQuestions:
        """Bind one count for each bin."""
        declared = universe[self.attribute]
        if self.days is not None:
            pairs = _periods(universe, self.attribute, tuple(day_given(day) for day in self.days))
            cells: list[Query | None] = [cell for _, cell in pairs]
            labels = tuple(label for label, _ in pairs)
        elif self.edges is None:
            _memory.require_listing("A histogram", declared.size, declared.size, "Give edges of fewer bins")
            masks = np.eye(declared.size, dtype=bool)
            cells = [count({self.attribute: mask}) for mask in masks]
            labels = tuple(declared.labels)
        else:
            cells, labels = _half_open(universe, self.attribute, self.edges), tuple(Range(edges=self.edges).labels)
        none = SingleQuestion(Linear((), (), (), np.array(0.0), True))
        parts = tuple(
            none if cell is None else part_of(cell if self.where is None else cell & self.where, universe, resolution)
            for cell in cells
        )
        return SeveralQuestions(parts, ((self.attribute, labels),), True)

    def true_value(self, rows: RawRows) -> Array:
        """Return the fraction of the rows in each bin."""
        edges = self.edges if self.days is None else [float(day_given(day)) for day in self.days]
        if edges is None:
            return rows.table((self.attribute,), self.where) / rows.count
        return np.asarray(np.histogram(rows.values(self.attribute, self.where), np.array(edges))[0] / rows.count)

    def __repr__(self) -> str:
        edges = self.edges if self.days is None else self.days
        told = {"edges": edges, "where": self.where}
        options = "".join(f", {name}={value!r}" for name, value in told.items() if value is not None)
        return f"histogram({self.attribute!r}{options})"


def _periods(universe: Universe, attribute: str, edges: tuple[int, ...]) -> list[tuple[str, Query | None]]:
    """Return the label and the count of each bin of days.

    A bin has its first day and not its last; the last bin has both.
    """
    declared = universe[attribute]
    if not isinstance(declared, Dates):
        raise InvalidInput(
            f"A histogram with dates as edges must have an attribute of dates. Found {attribute!r}. Give numbers."
        )
    lasts = [*(edge - 1 for edge in edges[1:-1]), edges[-1]]
    found: list[tuple[str, Query | None]] = []
    for first, last in zip(edges, lasts, strict=False):
        is_there = first <= declared.last and last >= declared.firsts[0]
        days = (date_of(first), date_of(last))
        found.append((period_name(first, last, None), count({attribute: days}) if is_there else None))
    return found


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


def histogram(
    attribute: str, edges: Sequence[float | str | datetime.date] | None = None, where: Query | None = None
) -> Query:
    """Ask for the fraction of records in each bin.

    As in NumPy, a bin includes its lower edge but not its upper one, the last bin includes both, and records outside
    are in no bin.

    Parameters
    ----------
    attribute : str
        The attribute.
    edges : sequence of float or date, optional
        Increasing edges of the bins: numbers, or dates such as "2020-01-31". Default: the cells of the universe.
    where : Query, optional
        A count that selects the records. Default: all.

    Returns
    -------
    Query

    Raises
    ------
    InvalidInput
        If the edges are not at least two increasing numbers or dates.

    Example
    -------
    >>> histogram("age", edges=[20, 40, 60, 80])  # doctest: +SKIP
    """
    if edges is None:
        return Histogram(attribute, None, where)
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        raise InvalidInput(
            f"edges must be a list of increasing numbers or dates. Found {edges!r}. For example histogram('age', [0, "
            "40, 80])."
        )
    given = tuple(edges)
    if given and all(isinstance(edge, str | datetime.date) for edge in given):
        return Histogram(attribute, None, where, tuple(str(date_of(day_given(edge))) for edge in given))
    return Histogram(attribute, given, where)  # type: ignore[arg-type]  # it refuses what is no number


offer(Histogram, histogram)
