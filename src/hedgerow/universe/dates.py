"""Dates in public bins: days, weeks, months, quarters, years, or between explicit edges.

A date is a number of days since 1 January 1970. The time of day is ignored.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InvalidInput
from hedgerow.universe.attributes import MOST_BINS, Attribute, Cover, values_with_extras, with_extras

BY = ("day", "week", "month", "quarter", "year")  # periods that a bin may have
MONTHS = {"month": 1, "quarter": 3, "year": 12}  # length of a period in months
EPOCH = datetime.date(1970, 1, 1).toordinal()
FIRST_DAY, LAST_DAY = (date.toordinal() - EPOCH for date in (datetime.date.min, datetime.date.max))


def day_of(date: datetime.date) -> int:
    """Return the number of days from 1970-01-01 to a date."""
    return date.toordinal() - EPOCH


def date_of(day: float) -> datetime.date:
    """Return the date that is this many days after 1970-01-01."""
    return datetime.date.fromordinal(int(np.floor(day)) + EPOCH)


@dataclass(frozen=True, init=False)
class Dates(Attribute):
    """A column of dates or times in public bins, from the day ``low`` to the day ``high``, both included.

    The label of a bin is its first day. Dates outside are clamped to the nearest bin. Missing values and values that
    are no dates go to the first bin, or to an extra cell with ``missing=True`` or ``other=True``.

    Parameters
    ----------
    low, high : date or str
        First and last day, such as "2020-01-31".
    by : {"day", "week", "month", "quarter", "year"}
        Period of a bin. Weeks begin on Monday. The first and the last bin may be cut by the range.
    edges : sequence of date or str
        First day of each bin, and the last day of the last bin, instead of ``low``, ``high`` and ``by``.
    other : bool
        Add a cell for values that are no dates.
    missing : bool
        Add a cell for missing values.

    Example
    -------
    >>> Dates("2015-01-01", "2024-12-31", by="month")  # doctest: +SKIP
    """

    edges: tuple[datetime.date, ...] = ()
    by: str | None = None

    def __init__(
        self,
        low: datetime.date | str | None = None,
        high: datetime.date | str | None = None,
        by: Literal["day", "week", "month", "quarter", "year"] | None = None,
        *,
        edges: Sequence[datetime.date | str] | None = None,
        other: bool = False,
        missing: bool = False,
    ) -> None:
        if edges is not None and low is None and high is None and by is None:
            days = [_day(edge) for edge in edges] if not isinstance(edges, str) else []
            if len(days) < 2 or sorted(set(days[:-1])) != days[:-1] or days[-1] < days[-2]:
                raise InvalidInput(
                    f"The edges of Dates must be increasing, at least two. Found {edges!r}. "
                    "Give the first day of each bin, and the last day of the last."
                )
            firsts, last = days[:-1], days[-1]
        elif edges is None and low is not None and high is not None and by in BY:
            firsts, last = _firsts(_day(low), _day(high), by), _day(high)
        else:
            raise InvalidInput(
                "Dates must have low, high and by, or edges. Found another combination. For example "
                "Dates('2015-01-01', '2024-12-31', by='month')."
            )
        lasts = [*(day - 1 for day in firsts[1:]), last]
        middles = (np.array(firsts, float) + np.array(lasts, float)) / 2
        labels = [date_of(day) for day in firsts]
        super().__init__(
            with_extras(labels, missing, other), values_with_extras(middles, missing, other), other, True, missing
        )
        object.__setattr__(self, "edges", (*labels, date_of(last)))
        object.__setattr__(self, "by", by)

    @property
    def firsts(self) -> NDArray[np.int64]:
        """First day of every bin, as a number of days."""
        return np.array([day_of(edge) for edge in self.edges[:-1]], np.int64)

    @property
    def last(self) -> int:
        """Last day of the last bin, as a number of days."""
        return day_of(self.edges[-1])

    @property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """First and last day of each cell, as numbers of days; NaN for an extra cell."""
        lasts = np.append(self.firsts[1:] - 1, self.last)
        return (
            values_with_extras(self.firsts.astype(float), self.missing, self.other),
            values_with_extras(lasts.astype(float), self.missing, self.other),
        )

    def cell(self, value: Any) -> int:
        """Return the bin of a date, or the cell of a label. Refuse any other value."""
        if isinstance(value, datetime.date) or (isinstance(value, str) and value not in self.labels):
            day = _day(value)
            if self.firsts[0] <= day <= self.last:
                return int(np.searchsorted(self.firsts, day, side="right")) - 1
        return super().cell(value)

    @property
    def is_whole(self) -> bool:
        """True: days are whole numbers."""
        return True

    def _ends(self, ends: tuple[Any, ...]) -> tuple[float, float]:
        """Return the two ends of a range in days."""
        return super()._ends(tuple(_day(end) if isinstance(end, datetime.date | str) else end for end in ends))

    def _cover_between(self, low: float, high: float) -> Cover:
        """Return the cover of an inclusive range of days."""
        self.require_meeting(low, high)
        lowest, highest = self.bounds
        return self._cover_days(np.minimum(highest, high) - np.maximum(lowest, low) + 1)

    def _cover_values(self, wanted: Iterable[Any]) -> Cover:
        """Return the cover of a list. A date is one day of its bin, even if it is the label of the bin."""
        days, extra = set(), np.zeros(self.size, bool)
        for value in wanted:
            cell = self.cell(value)
            if cell < len(self.firsts):
                days.add((cell, _day(value)))
            else:
                extra[cell] = True
        found = self._cover_days(np.bincount([cell for cell, _ in days], minlength=self.size).astype(float))
        return Cover(found.inside | extra, found.touched | extra, np.where(extra, 1.0, found.share)).settle()

    def _cover_days(self, meant: NDArray[np.float64]) -> Cover:
        """Return the cover of this many days of each cell; none of an extra cell."""
        lowest, highest = self.bounds
        share = np.nan_to_num(np.clip(meant / (highest - lowest + 1), 0.0, 1.0))
        return Cover(share == 1, share > 0, share).settle()

    def draw(self, cells: NDArray[np.integer[Any]], uniforms: NDArray[np.float64]) -> list[Any]:
        """Draw a day of each bin; None for a cell that is no bin."""
        lowest, highest = (bound[cells] for bound in self.bounds)
        days = np.minimum(lowest + np.floor(uniforms * (highest - lowest + 1)), highest)
        return [None if math.isnan(day) else date_of(day) for day in days.tolist()]

    def _write_label(self, number: float) -> str:
        return str(date_of(number))


def _day(given: Any) -> int:
    """Convert a date, or its ISO text, to a number of days."""
    try:
        date = datetime.date.fromisoformat(given) if isinstance(given, str) else given
        return day_of(date.date() if isinstance(date, datetime.datetime) else date)
    except (ValueError, AttributeError, TypeError):
        raise InvalidInput(
            f"A date must be a datetime.date, or a text such as '2020-01-31'. Found {given!r}. Give one."
        ) from None


def _firsts(low: int, high: int, by: Any) -> list[int]:
    """Return the first days of the bins."""
    if high < low:
        raise InvalidInput(f"Dates must have low <= high. Found ({date_of(low)}, {date_of(high)}). Swap the two ends.")
    if by in ("day", "week") and high - low >= MOST_BINS:
        raise InvalidInput(f"Dates must have at most {MOST_BINS} bins. Found more. Use longer ones.")
    if by == "day":
        return list(range(low, high + 1))
    if by == "week":
        monday = low - date_of(low).weekday()
        return [low, *range(monday + 7, high + 1, 7)]
    first, firsts = date_of(low), [low]
    month = first.year * 12 + (first.month - 1) // MONTHS[by] * MONTHS[by]
    while (month := month + MONTHS[by]) // 12 <= datetime.MAXYEAR:
        start = day_of(datetime.date(month // 12, month % 12 + 1, 1))
        if start > high:
            break
        firsts.append(start)
    return firsts
