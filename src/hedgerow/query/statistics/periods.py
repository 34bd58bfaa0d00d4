"""Groups of dates: the days of a column by year, quarter, month, week, day, or day of the week."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from hedgerow.errors import InvalidInput
from hedgerow.universe.attributes import Attribute
from hedgerow.universe.dates import BY, Dates, date_of, first_days, period_name

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
PARTS = (*BY, "weekday", "month of year")  # ways to group dates
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"
)  # fmt: skip

Cell = tuple[Any, Any]
"""Label of a group, and the predicate of ``count`` that its records satisfy."""


def require_part(by: Any) -> str:
    """Return a way to group dates, and refuse any other."""
    if by not in PARTS:
        raise InvalidInput(f"by must be one of {', '.join(map(repr, PARTS))}. Found {by!r}. Choose one.")
    return str(by)


def require_days(name: str, attribute: Attribute) -> None:
    """Refuse a part of the week or the month for a column that knows no days: its answers would have no usable bars."""
    if attribute.days is None or len(attribute.listed) != len(attribute.days):
        raise InvalidInput(
            f"{name!r} must be declared by day, for days of the week or of the month. Found longer bins. Declare "
            "Dates(…, by='day'), or group by month, quarter or year."
        )


def period_cells(name: str, attribute: Dates, by: str) -> list[Cell]:
    """Return the groups of a column of dates. Extra cells are groups of their own.

    A period that the bins of the column cut gets the interpolated share of its bins, as any range of days does.
    """
    first, last = int(attribute.firsts[0]), attribute.last
    extras: list[Cell] = [(label, label) for label in attribute.labels[len(attribute.edges) - 1 :]]
    if by in BY:
        starts = first_days(first, last, by)
        ends = [*(start - 1 for start in starts[1:]), last]
        days = zip(starts, ends, strict=True)
        return [*((period_name(a, b, by), (date_of(a), date_of(b))) for a, b in days), *extras]
    if by == "weekday":
        require_days(name, attribute)
    names: Sequence[str] = WEEKDAYS if by == "weekday" else MONTHS
    groups: list[set[datetime.date]] = [set() for _ in names]
    for day in range(first, last + 1):
        date = date_of(day)
        groups[date.weekday() if by == "weekday" else date.month - 1].add(date)
    return [*((name, frozenset(dates)) for name, dates in zip(names, groups, strict=True)), *extras]
