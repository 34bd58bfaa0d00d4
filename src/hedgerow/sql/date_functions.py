"""Functions of dates in SQL: their possible values, each with the records that have it.

``date_trunc``, ``extract``, ``date_part`` and ``year``, ``quarter``, ``month``, ``week``, ``day``, ``dayofweek``,
``isodow``, ``dayname`` and ``monthname`` mean what they mean in DuckDB.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from sqlglot import expressions as exp

from hedgerow.query.counts import Count
from hedgerow.query.statistics.periods import MONTHS, WEEKDAYS, require_days
from hedgerow.sql.scope import Scope
from hedgerow.sql.syntax import bare, constant, parts, refuse
from hedgerow.universe.attributes import not_
from hedgerow.universe.dates import BY, date_of, first_days

PARTS: dict[str, Callable[[datetime.date], Any]] = {
    "year": lambda date: date.year,
    "quarter": lambda date: (date.month + 2) // 3,
    "month": lambda date: date.month,
    "week": lambda date: date.isocalendar()[1],
    "day": lambda date: date.day,
    "dow": lambda date: date.isoweekday() % 7,
    "isodow": lambda date: date.isoweekday(),
    "dayname": lambda date: WEEKDAYS[date.weekday()],
    "monthname": lambda date: MONTHS[date.month - 1],
}
ALIASES = {
    "dayofweek": "dow", "weekday": "dow", "dayofmonth": "day", "weekofyear": "week", "dayofweekiso": "isodow",
    "dayofweek_iso": "isodow",
}  # fmt: skip

Values = list[tuple[Any, Count, Count]]
"""Possible values of a function, each with the records that have it and those that have another."""


def date_function(node: exp.Expression, scope: Scope) -> Values | None:
    """Return the values of a function of a column of dates, in order, or None for any other expression."""
    read = _call(bare(node))
    if read is None:
        return None
    name, unit, argument = read
    column = _column(argument, scope)
    attribute = scope.universe[column]
    if attribute.days is None:
        refuse(
            node, f"{column!r}, which is declared as {type(attribute).__name__}", f"{name} must be of a column of dates"
        )
    first, last = attribute.days[0], attribute.days[-1]
    whole = (date_of(first), date_of(last))  # all dates, and so no missing value
    chosen: list[tuple[Any, Any]]
    if name == "date_trunc":
        if unit not in BY:
            refuse(node, f"{unit!r}", f"date_trunc must be to one of {', '.join(BY)}")
        starts = first_days(first, last, unit)
        ends = [*(start - 1 for start in starts[1:]), last]
        chosen = [(_first_day(date_of(a), unit), (date_of(a), date_of(b))) for a, b in zip(starts, ends, strict=True)]
    else:
        part = PARTS.get(ALIASES.get(unit, unit))
        if part is None:
            refuse(node, f"{unit!r}", f"A part of a date must be one of {', '.join(PARTS)}")
        if ALIASES.get(unit, unit) not in BY[2:]:
            require_days(column, attribute)
        days: dict[Any, set[datetime.date]] = {}
        for day in attribute.days:
            date = date_of(day)
            days.setdefault(part(date), set()).add(date)
        order = list(WEEKDAYS + MONTHS)
        chosen = sorted(
            ((value, frozenset(dates)) for value, dates in days.items()),
            key=lambda pair: order.index(pair[0]) if isinstance(pair[0], str) else pair[0],
        )
    return [
        (value, Count(((column, dates),)), Count(((column, whole), (column, not_(dates))))) for value, dates in chosen
    ]


def _first_day(date: datetime.date, unit: str) -> datetime.date:
    """Return the first day of the period of a date."""
    if unit == "week":
        return date - datetime.timedelta(days=date.weekday())
    month = {"year": 1, "quarter": (date.month + 2) // 3 * 3 - 2}.get(unit, date.month)
    return date if unit == "day" else datetime.date(date.year, month, 1)


def _call(node: exp.Expression) -> tuple[str, str, exp.Expression] | None:
    """Return the function, its unit in lower case, and its argument, or None if it is no function of dates."""
    kind = type(node).__name__
    if kind in ("TimestampTrunc", "DateTrunc"):
        argument, unit = parts(node, "this", "unit")
        return "date_trunc", str(unit.name).lower(), argument
    if kind == "Extract":
        unit, argument = parts(node, "this", "expression")
        return "extract", str(unit.name).lower(), argument
    if kind == "Anonymous":
        name, given = str(node.name).lower(), node.expressions
        if name in ("date_part", "datepart") and len(given) == 2:
            unit = constant(given[0])
            return "date_part", unit.lower() if isinstance(unit, str) else str(unit), given[1]
        if len(given) == 1 and ALIASES.get(name, name) in PARTS:
            return name, name, given[0]
        return None
    name = kind.lower()
    if isinstance(node, exp.Func) and ALIASES.get(name, name) in PARTS:
        return name, name, parts(node, "this")[0]
    return None


def _column(node: exp.Expression, scope: Scope) -> str:
    """Return the column that a function is of, without a cast to a date around it."""
    node = bare(node)
    while isinstance(node, exp.Cast) and str(node.args["to"].this).split(".")[-1] in ("DATE", "TIMESTAMP"):
        node = bare(node.this)
    return scope.column(node)
