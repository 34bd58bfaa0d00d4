"""Dates in public bins: days, weeks, months, quarters, years, or between explicit edges.

A date is a number of days since 1 January 1970. The time of day is ignored.
"""

from __future__ import annotations

import datetime
import math
import re
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
PERIOD = re.compile(r"(\d{4})(?:-Q([1-4])|-(\d{2}))?")  # a year, a quarter or a month, as a text
FIRST_DAY, LAST_DAY = (date.toordinal() - EPOCH for date in (datetime.date.min, datetime.date.max))


def day_of(date: datetime.date) -> int:
    """Return the number of days from 1970-01-01 to a date."""
    return date.toordinal() - EPOCH


def date_of(day: float) -> datetime.date:
    """Return the date that is this many days after 1970-01-01."""
    return datetime.date.fromordinal(int(np.floor(day)) + EPOCH)


@dataclass(frozen=True, init=False, repr=False)
class Dates(Attribute):
    """A column of dates or times in public bins, from the day ``low`` to the day ``high``, both included.

    The label of a bin is its day (a date), or a text that names its period: "2020-01" for a month, "2020-Q1" for a
    quarter, "2020" for a year, and "2020-01-06/2020-01-12" for a week and a period of your own. A label in a question
    means the whole bin, and a date means one day. A text for a longer period, such as "2020" with months, means all its
    days. Dates outside are clamped to the nearest bin. Missing values and values that are no dates go to the first bin,
    or to an extra cell with ``missing=True`` or ``other=True``.

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
            days = [day_given(edge) for edge in edges] if not isinstance(edges, str) else []
            if len(days) < 2 or sorted(set(days[:-1])) != days[:-1] or days[-1] < days[-2]:
                raise InvalidInput(
                    f"The edges of Dates must be increasing, at least two. Found {edges!r}. "
                    "Give the first day of each bin, and the last day of the last."
                )
            firsts, last = days[:-1], days[-1]
        elif edges is None and low is not None and high is not None and by in BY:
            firsts, last = first_days(day_given(low), day_given(high), by), day_given(high)
        else:
            raise InvalidInput(
                "Dates must have low, high and by, or edges. Found another combination. For example "
                "Dates('2015-01-01', '2024-12-31', by='month')."
            )
        lasts = [*(day - 1 for day in firsts[1:]), last]
        middles = (np.array(firsts, float) + np.array(lasts, float)) / 2
        starts = [date_of(day) for day in firsts]
        labels = [period_name(first, last, by) for first, last in zip(firsts, lasts, strict=True)]
        super().__init__(
            with_extras(labels, missing, other), values_with_extras(middles, missing, other), other, True, missing
        )
        object.__setattr__(self, "edges", (*starts, date_of(last)))
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
        if isinstance(value, datetime.date) or (isinstance(value, str) and not self.has_label(value)):
            day = day_given(value)
            if self.firsts[0] <= day <= self.last:
                return int(np.searchsorted(self.firsts, day, side="right")) - 1
        return super().cell(value)

    @property
    def plain_labels(self) -> Sequence[Any]:
        """First day of each bin, and the labels of the extra cells."""
        return (*self.edges[:-1], *self.labels[len(self.edges) - 1 :])

    @property
    def days(self) -> range:
        """All days of the bins, as numbers."""
        return range(int(self.firsts[0]), self.last + 1)

    @property
    def compared_with(self) -> tuple[type, ...]:
        """Dates: a number could mean a year, or days."""
        return (datetime.date,)

    @property
    def has_bins(self) -> bool:
        """True: a cell is a bin."""
        return True

    @property
    def is_whole(self) -> bool:
        """True: days are whole numbers."""
        return True

    def ends_of_range(self, ends: tuple[Any, ...]) -> tuple[float, float]:
        """Return the two ends of a range in days."""
        if len(ends) != 2:
            return super().ends_of_range(ends)
        days = (days_given(end)[i] if isinstance(end, datetime.date | str) else end for i, end in enumerate(ends))
        return super().ends_of_range(tuple(days))

    def _cover_between(self, low: float, high: float) -> Cover:
        """Return the cover of an inclusive range of days."""
        self.require_meeting(low, high)
        lowest, highest = self.bounds
        return self._cover_days(np.minimum(highest, high) - np.maximum(lowest, low) + 1)

    def _cover_values(self, wanted: Iterable[Any]) -> Cover:
        """Return the cover of a list. A label is its whole bin, a date is one day, and a period is all its days."""
        days: set[int] = set()
        whole = np.zeros(self.size, bool)
        for value in wanted:
            if value is None or self.has_label(value):
                whole[super().cell(value)] = True
            else:
                first, last = days_given(value)
                if last < self.firsts[0] or first > self.last:
                    raise self.unknown_value(value)
                days.update(range(max(first, int(self.firsts[0])), min(last, self.last) + 1))
        cells = np.searchsorted(self.firsts, sorted(days), side="right") - 1
        found = self._cover_days(np.bincount(cells, minlength=self.size).astype(float))
        return Cover(found.inside | whole, found.touched | whole, np.where(whole, 1.0, found.share)).settle()

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


def day_given(given: Any) -> int:
    """Convert a date, or its ISO text, to a number of days."""
    try:
        date = datetime.date.fromisoformat(given) if isinstance(given, str) else given
        if isinstance(date, np.datetime64):
            date = date.astype("datetime64[D]").item()
        return day_of(date.date() if isinstance(date, datetime.datetime) else date)
    except (ValueError, AttributeError, TypeError):
        raise InvalidInput(
            f"A date must be a datetime.date, or a text such as '2020-01-31'. Found {given!r}. Give one."
        ) from None


def days_given(given: Any) -> tuple[int, int]:
    """Return the first and the last day of a date, or of the text of a year, a quarter or a month."""
    named = PERIOD.fullmatch(given) if isinstance(given, str) else None
    if named is None:
        return day_given(given), day_given(given)
    year, quarter, month = (None if part is None else int(part) for part in named.groups())
    first = 3 * quarter - 2 if quarter else month or 1
    last = 3 * quarter if quarter else month or 12
    if not year or last > 12:
        raise InvalidInput(f"A period must exist, as '2020-01', '2020-Q1' and '2020' do. Found {given!r}. Correct it.")
    return day_of(datetime.date(year, first, 1)), _end_of_month(year, last)


def _end_of_month(year: int, month: int) -> int:
    """Return the last day of a month."""
    import calendar  # loaded when it is needed: reading a release file does without it

    return day_of(datetime.date(year, month, calendar.monthrange(year, month)[1]))


def period_name(first: int, last: int, by: str | None) -> Any:
    """Return the label of a bin: a date for a day, and otherwise a text."""
    start = date_of(first)
    if by == "day":
        return start
    if by == "month":
        return f"{start.year:04}-{start.month:02}"
    if by == "quarter":
        return f"{start.year:04}-Q{(start.month + 2) // 3}"
    return f"{start.year:04}" if by == "year" else f"{start}/{date_of(last)}"


def first_days(low: int, high: int, by: Any) -> list[int]:
    """Return the first day of each period between two days."""
    if high < low:
        raise InvalidInput(f"Dates must have low <= high. Found ({date_of(low)}, {date_of(high)}). Swap the two ends.")
    if by in ("day", "week") and high - low >= MOST_BINS:
        raise InvalidInput(f"Dates must have at most {MOST_BINS} bins. Found more bins. Use longer bins.")
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
