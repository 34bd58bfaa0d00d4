"""Survival curves: the share of records that survive each time, if some are only observed up to a time (censored).

Paper: Kaplan & Meier, "Nonparametric estimation from incomplete observations". Every record has a time T and a flag: an
event at T, or only observation until T.

d_k      share of the records with an event at the k-th time
r_k      share of the records with T ≥ the k-th time: those at risk
S_k      Π_{j ≤ k} (1 − d_j/r_j), the estimate of P[no event until the k-th time]

Interval. Of the intervals of d_j and r_j follows one of S_k, which grows with each factor. Besides, with N the share of
all records, S_k ≥ P[T > t_k]/N, as if those who were censored had had an event at once, and S_k ≤ 1 − Σ_{j ≤ k} d_j/N,
as if none of them ever had one: each d_j counts with a weight of at least 1/N. S falls, so each end bounds those beside
it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.query.bound import Labels
from hedgerow.query.composed import ComposedQuestion, Ends, LinearKnowledge
from hedgerow.query.counts import Quantity, Query, Resolution, bound_condition, count, is_boolean
from hedgerow.query.linear import Linear
from hedgerow.query.raw_rows import RawRows
from hedgerow.query.statistics.statistic import OfRecords, offer, require_where
from hedgerow.universe.universe import Universe

MOST_TIMES = 2_000


@dataclass(frozen=True, eq=False)
class BoundSurvival(ComposedQuestion):
    """A survival curve over the cells of a time. All counts are exact: they cut no bins."""

    axes: Labels
    events: tuple[Linear, ...]
    at_risk: tuple[Linear, ...]
    so_far: tuple[Linear, ...]
    """Events up to each time."""

    is_fraction = True
    is_number = False
    is_coarse = False

    @property
    def labels(self) -> Labels:  # type: ignore[override]
        """The times."""
        return self.axes

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of times."""
        return (len(self.events),)

    @property
    def key(self) -> Hashable:
        """Key of the question."""
        return ("survival", tuple(query.key for query in (*self.events, self.at_risk[0])))

    @property
    def linears(self) -> tuple[Linear, ...]:
        """Events, records at risk, and events so far, of each time."""
        return (*self.events, *self.at_risk, *self.so_far)

    @property
    def limits(self) -> Ends:
        """The range of a survival curve, 0 to 1."""
        return np.zeros(self.shape), np.ones(self.shape)

    def ends(self, known: LinearKnowledge) -> Ends:
        """Return the lowest and the highest curve that the knowledge allows."""
        d, r, so_far = (_intervals(known, queries) for queries in (self.events, self.at_risk, self.so_far))
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.where(r[:, 0] > 0, np.minimum(d[:, 1] / r[:, 0], 1.0), 1.0)
            least = np.where(r[:, 1] > 0, np.minimum(d[:, 0] / r[:, 1], 1.0), 0.0)
        everyone = r[0]
        later = np.append(r[1:, 0], 0.0)
        low = np.maximum(np.cumprod(1 - most), later / everyone[1] if everyone[1] > 0 else 0.0)
        high = np.minimum(np.cumprod(1 - least), 1 - so_far[:, 0] / everyone[1] if everyone[1] > 0 else 1.0)
        return np.maximum.accumulate(low[::-1])[::-1], np.maximum(np.minimum.accumulate(high), 0.0)

    def best(self, known: LinearKnowledge) -> Array:
        """Return the curve on the hypothesis."""
        d, r = (np.array([max(0.0, known.value(q)) for q in queries]) for queries in (self.events, self.at_risk))
        hazard = np.divide(d, r, out=np.zeros(d.size), where=r > 0)
        return np.asarray(np.cumprod(1 - np.minimum(hazard, 1.0)))


def _intervals(known: LinearKnowledge, queries: tuple[Linear, ...]) -> NDArray[np.float64]:
    """Return the interval of each count, cut to shares."""
    return np.asarray(np.clip(np.array([known.interval(query) for query in queries], dtype=float), 0.0, 1.0))


@dataclass(frozen=True, eq=False, repr=False)
class Survival(OfRecords):
    """A survival curve, made by ``survival``."""

    time: str
    event: Query
    where: Query | None = None

    @property
    def quantity(self) -> Quantity:
        """A share of some rows."""
        return "share"

    def __post_init__(self) -> None:
        require_where(self.where)
        if not is_boolean(self.event):
            raise InvalidInput(
                f"event must be the name of a flag, or a count. Found {self.event!r}. For example survival('days', "
                "'died')."
            )

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundSurvival:
        """Bind the counts of each time. Records without a time are left out."""
        declared = universe[self.time]
        times = len(declared.listed)
        if declared.values is None:
            raise InvalidInput(
                f"time must be a column of numbers or dates. Found {self.time!r}, which has labels only. Declare "
                "Integers, Range or Dates."
            )
        if times > MOST_TIMES:
            raise TooLarge(f"A survival curve must have at most {MOST_TIMES} times. Found {times}. Declare wider bins.")
        cells = np.arange(declared.size)

        def counted(mask: NDArray[np.bool_], of: Query | None = None) -> Linear:
            """Return the count of the records whose time is in these cells, among ``of`` and ``where``."""
            query: Query = count({self.time: mask})
            for part in (of, self.where):
                query = query if part is None else query & part
            found = bound_condition(query, universe, resolution)
            if not found.is_exact:
                raise InvalidInput(
                    f"The event and the records of a survival curve must be whole bins. Found {query!r}, which cuts one. "
                    'Ask with resolution="bins".'
                )
            return found.low

        is_time = cells < times
        return BoundSurvival(
            ((self.time, tuple(declared.labels[:times])),),
            tuple(counted(cells == k, self.event) for k in range(times)),
            tuple(counted(is_time & (cells >= k)) for k in range(times)),
            tuple(counted(cells <= k, self.event) for k in range(times)),
        )

    def true_value(self, rows: RawRows) -> Array:
        """Return the survival curve over the cells of the time."""
        times = len(rows.universe[self.time].listed)
        kept = rows.holds(self.where) & (rows.cells(self.time) < times)
        cells, is_event = rows.cells(self.time)[kept], self.event.holds(rows)[kept]
        d = np.bincount(cells[is_event], minlength=times)
        r = np.bincount(cells, minlength=times)[::-1].cumsum()[::-1]
        return np.cumprod(1 - np.divide(d, r, out=np.zeros(times), where=r > 0))


def survival(time: str, event: str | Query, where: Query | None = None) -> Query:
    """Ask for a survival curve (Kaplan & Meier): the share of records without the event up to each time.

    A record whose flag is false was observed until its time without the event (censored). Times are those of the
    universe: with bins, all records of a bin count as if they had one time. After each event of a time come those who
    were censored at it.

    Parameters
    ----------
    time : str
        Column of numbers or dates: when the event was, or when observation ended.
    event : str or Query
        Name of the flag that is true for an event, or a count of the records with one.
    where : Query, optional
        A count that selects the records. Default: all.

    Returns
    -------
    Query

    Example
    -------
    >>> survival("days", "died")  # doctest: +SKIP
    """
    return Survival(time, count({event: True}) if isinstance(event, str) else event, where)


offer(Survival, survival)
