"""Ask the questions of a statement, and group, filter, sort and limit the answers.

Every declared value of a GROUP BY column gets a row, empty or not, because which groups are empty is private. HAVING,
ORDER BY and LIMIT look at private answers only, so they cost nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow import _memory
from hedgerow.errors import TooLarge
from hedgerow.query.counts import Count, Query, bound_condition
from hedgerow.query.statistics import require_kept
from hedgerow.query.wording import predicate_of
from hedgerow.sql.statement import (
    Aggregate,
    AppliedFunction,
    Expression,
    Group,
    GroupByColumn,
    Number,
    Order,
    Statement,
    read_statement,
)
from hedgerow.universe.universe import Universe

if TYPE_CHECKING:
    import pandas as pd

MOST_QUESTIONS = 1_000_000  # a statement asks at most this many questions


AskAll = Callable[[list[Query]], Sequence[Any]]
"""Function that answers many questions in order, with counts in rows."""


@dataclass(frozen=True)
class SqlResult:
    """Rows of a statement: labels of GROUP BY columns, answers and numbers."""

    names: tuple[str, ...]
    is_answer: tuple[bool, ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns. An answer is followed by its guaranteed and its typical error."""
        return tuple(
            column
            for name, answer in zip(self.names, self.is_answer, strict=True)
            for column in ((name, f"{name}_error", f"{name}_typical") if answer else (name,))
        )

    @property
    def records(self) -> list[tuple[Any, ...]]:
        """Rows as plain values, one for each column."""
        return [
            tuple(
                value
                for cell, answer in zip(row, self.is_answer, strict=True)
                for value in (_plain(cell) if answer else (cell,))
            )
            for row in self.rows
        ]

    @property
    def frame(self) -> pd.DataFrame:
        """Rows as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.records, columns=list(self.columns))


def run_statement(
    statement: str, universe: Universe, ask_all: AskAll, *, most_questions: int | None = None
) -> SqlResult:
    """Return the rows of a statement. The whole statement is read before any question is asked."""
    most = MOST_QUESTIONS if most_questions is None else most_questions
    asked = read_statement(statement, universe)
    groups = _groups(asked, most)
    of = [*asked.outputs, *(asked.having.of if asked.having else ()), *(order.by for order in asked.order)]
    aggregates = list(dict.fromkeys(a for expression in of for a in _aggregates(expression)))
    if len(aggregates) * len(groups) > most:
        raise TooLarge(
            f"A statement must ask at most {most} questions. Found {len(aggregates) * len(groups)}, because "
            "every declared value of a GROUP BY column gets a row. Group by fewer columns."
        )
    first = [_question(asked, aggregate, groups[0]) for aggregate in aggregates]
    alike = [question for question in first if question is not None]
    require_kept("A statement", universe, alike, len(groups), "Group by fewer columns")
    questions = [[_question(asked, aggregate, group) for aggregate in aggregates] for group in groups]
    answers = iter(ask_all([question for row in questions for question in row if question is not None]))
    rows = []
    for group, row in zip(groups, questions, strict=True):
        known = {a: a.of_nobody if q is None else next(answers) for a, q in zip(aggregates, row, strict=True)}
        values = [_value(expression, asked, group, known) for expression in of]
        rows.append((group, values))
    shown, compared = len(asked.outputs), len(asked.outputs) + (len(asked.having.of) if asked.having else 0)
    if asked.having is not None:
        holds = asked.having.holds
        rows = [(group, values) for group, values in rows if holds([_number(v) for v in values[shown:compared]])]
    for k in range(len(asked.order) - 1, -1, -1):
        order = asked.order[k]
        rows.sort(
            key=lambda row, k=k, order=order: _sort_key(order, row[0], row[1][compared + k]),  # type: ignore[misc]
        )
    last = None if asked.limit is None else asked.offset + asked.limit
    return SqlResult(
        asked.names,
        tuple(not isinstance(each, GroupByColumn) for each in asked.outputs),
        tuple(tuple(values[:shown]) for _, values in rows[asked.offset : last]),
    )


def example_questions(statement: str, universe: Universe) -> list[Query]:
    """Return the questions of a statement about the first group of each grouping; those of others are alike."""
    asked = read_statement(statement, universe)
    of = [*asked.outputs, *(asked.having.of if asked.having else ()), *(order.by for order in asked.order)]
    aggregates = list(dict.fromkeys(a for expression in of for a in _aggregates(expression)))
    groups = [dict.fromkeys(columns, 0) for columns in asked.sets]
    found = [_question(asked, aggregate, group) for group in groups for aggregate in aggregates]
    return [question for question in found if question is not None]


def _groups(asked: Statement, most: int) -> list[Group]:
    """Return all groups of a statement, and refuse too many."""
    groups = sum(math.prod(_sizes(asked, columns)) for columns in asked.sets)
    if groups > most:
        raise TooLarge(
            f"A statement must have at most {most} groups. Found more, because every declared value of a "
            "GROUP BY column gets a row. Group by fewer columns."
        )
    widest = max((sum(_sizes(asked, columns)) for columns in asked.sets), default=0)
    _memory.require_listing("A statement", groups, widest, "Group by fewer columns")
    return [
        dict(zip(columns, cells, strict=True))
        for columns in asked.sets
        for cells in itertools.product(*(range(size) for size in _sizes(asked, columns)))
    ]


def _sizes(asked: Statement, columns: Sequence[str]) -> list[int]:
    """Return the number of values of each GROUP BY column."""
    return [len(asked.derived[c]) if c in asked.derived else asked.universe[c].size for c in columns]


def _question(asked: Statement, aggregate: Aggregate, group: Group) -> Query | None:
    """Return the question about a group; None if it is no count and no record can satisfy its condition."""
    who = (asked.where & aggregate.among).true
    for column, cell in group.items():
        if column in asked.derived:
            who = who & asked.derived[column][cell][1].true
        else:
            attribute = asked.universe[column]
            who = who & Count(((column, predicate_of(attribute, np.arange(attribute.size) == cell)),))
    if not aggregate.counts:
        possible = bound_condition(who, asked.universe).high
        if not possible.attributes and not possible.table:
            return None
    return aggregate.ask(who)


def _aggregates(expression: Expression) -> list[Aggregate]:
    """Return all aggregates in an expression."""
    if isinstance(expression, Aggregate):
        return [expression]
    return [a for each in expression.of for a in _aggregates(each)] if isinstance(expression, AppliedFunction) else []


def _value(expression: Expression, asked: Statement, group: Group, known: dict[Aggregate, Any]) -> Any:
    """Evaluate an expression for a group; None is NULL."""
    if isinstance(expression, Aggregate):
        return known[expression]
    if isinstance(expression, Number):
        return expression.value
    if isinstance(expression, GroupByColumn):
        cell = group.get(expression.column)
        if cell is None:
            return None
        derived = asked.derived.get(expression.column)
        return asked.universe[expression.column].labels[cell] if derived is None else derived[cell][0]
    parts = [_value(each, asked, group, known) for each in expression.of]
    if any(part is None for part in parts):
        return None
    try:
        return expression.do(*parts)
    except ZeroDivisionError:
        return None


def _number(value: Any) -> float | None:
    """Return the value of an answer or number as a float; None for NULL and NaN."""
    number = math.nan if value is None else float(getattr(value, "value", value))
    return None if math.isnan(number) else number


def _sort_key(order: Order, group: Group, value: Any) -> tuple[bool, float]:
    """Return the sort key of a row.

    GROUP BY columns are sorted as declared. NULL, and therefore the total of a ROLLUP, comes last unless NULLS FIRST is
    given.
    """
    number = group.get(order.by.column) if isinstance(order.by, GroupByColumn) else _number(value)
    if number is None:
        return not order.nulls_first, 0.0
    return order.nulls_first, -number if order.descending else number


def _plain(value: Any) -> tuple[Any, Any, Any]:
    """Return value, guaranteed error and typical error of a cell."""
    if value is None:
        return None, None, None
    if isinstance(value, int | float):
        return value, 0.0, 0.0
    return value.value, value.error, value.typical
