"""WHERE: a boolean tree becomes counts, with SQL's three truth values.

A condition is true for some records and false for others. For the rest, where a value is missing, it is neither. A
condition is therefore stored as two counts, and NOT swaps them.
"""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlglot import expressions as exp

from hedgerow.errors import InvalidInput
from hedgerow.query.counts import Count, Query
from hedgerow.sql.date_functions import date_function
from hedgerow.sql.scope import Scope
from hedgerow.sql.syntax import bare, constant, is_constant, parts, place, refuse
from hedgerow.universe.attributes import not_

EVERYONE = Count(())


@dataclass(frozen=True)
class SqlCondition:
    """Records for which a condition is true, and records for which it is false."""

    true: Query
    false: Query

    def __and__(self, other: SqlCondition) -> SqlCondition:
        return SqlCondition(_both(self.true, other.true), _either(self.false, other.false))

    def __or__(self, other: SqlCondition) -> SqlCondition:
        return SqlCondition(_either(self.true, other.true), _both(self.false, other.false))

    def __invert__(self) -> SqlCondition:
        return SqlCondition(self.false, self.true)


NOBODY: Query = ~EVERYONE
ALWAYS = SqlCondition(EVERYONE, NOBODY)


def _both(a: Query, b: Query) -> Query:
    """Return the conjunction of two counts, simplified if one is trivial."""
    if a is EVERYONE or b is NOBODY:
        return b
    return a if b is EVERYONE or a is NOBODY else a & b


def _either(a: Query, b: Query) -> Query:
    """Return the disjunction of two counts, simplified if one is trivial."""
    if a is NOBODY or b is EVERYONE:
        return b
    return a if b is NOBODY or a is EVERYONE else a | b


def condition(node: exp.Expression | None, scope: Scope) -> SqlCondition:
    """Read a boolean expression over the columns in scope."""
    if node is None:
        return ALWAYS
    node = bare(node)
    if isinstance(node, exp.And | exp.Or):
        sides = _chain(node)
        found = condition(sides[0], scope)
        for side in sides[1:]:
            other = condition(side, scope)
            found = found & other if isinstance(node, exp.And) else found | other
        return found
    if isinstance(node, exp.Not):
        (inner,) = parts(node, "this")
        return ~condition(inner, scope)
    if isinstance(node, exp.Boolean):
        (value,) = parts(node, "this")
        return ALWAYS if value else ~ALWAYS
    if isinstance(node, exp.Null):
        return SqlCondition(NOBODY, NOBODY)
    read = READERS.get(type(node))
    if read is None:
        refuse(node, f"{node.key.upper()} in a condition")
    try:
        return _of_function(node, scope) or read(node, scope)
    except InvalidInput as refused:
        said = str(refused)
        raise (refused if " at line " in said else InvalidInput(f"{said} It is{place(node)}.")) from None


def _chain(node: exp.Expression) -> list[exp.Expression]:
    """Return the operands of a chain of one operator, without recursion."""
    kind, found, left = type(node), [], node
    while isinstance(left, kind):
        left, right = parts(left, "this", "expression")
        found.append(right)
        left = bare(left)
    return [left, *reversed(found)]


def predicate(scope: Scope, name: str, wanted: Any) -> SqlCondition:
    """Return the records whose value satisfies a predicate of ``hr.count``, and those whose value does not."""
    attribute = scope.universe[name]
    try:
        attribute.cover(wanted)
    except InvalidInput as refused:
        raise InvalidInput(f"Attribute {name!r}: {refused}") from None
    found: Query = Count(((name, wanted),))
    others: Query = Count(((name, not_(wanted)),))
    absent = attribute.absent_cells
    if absent.any():
        present = Count(((name, ~absent),))
        found, others = found & present, others & present
    return SqlCondition(found, others)


def _column(node: exp.Expression, scope: Scope) -> SqlCondition:
    """Read a column by itself, which must be a flag."""
    name = scope.column(node)
    if not scope.universe[name].is_truth:
        refuse(node, f"{name!r} alone, which is no flag", "A condition must be true or false")
    return predicate(scope, name, True)


def _of_function(node: exp.Expression, scope: Scope) -> SqlCondition | None:
    """Read a comparison of a function of dates with literals, or return None if there is no such function in it."""
    if not isinstance(node, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.Between | exp.In):
        return None
    swapped = isinstance(node, exp.Binary) and is_constant(node.this)
    found = date_function(node.expression if swapped else node.this, scope)
    if found is None:
        return None
    if isinstance(node, exp.In):
        wanted = [
            constant(value) for value in parts(node, "this", "expressions")[1] or refuse(node, "IN without a list")
        ]
        if None in wanted:
            refuse(node, "IN with NULL")
        holds = [value in wanted for value, _, _ in found]
    else:
        ends = (
            parts(node, "this", "low", "high")[1:]
            if isinstance(node, exp.Between)
            else (node.this if swapped else node.expression,)
        )
        given = [_like_value(found[0][0], constant(end), node) for end in ends]
        if isinstance(node, exp.Between):
            holds = [given[0] <= value <= given[1] for value, _, _ in found]
        else:
            compare = SIGNS[type(node)]
            holds = [compare(given[0], value) if swapped else compare(value, given[0]) for value, _, _ in found]
    some = SqlCondition(NOBODY, NOBODY)
    for (_, true, _), is_in in zip(found, holds, strict=True):
        some = (
            SqlCondition(_either(some.true, true), some.false)
            if is_in
            else SqlCondition(some.true, _either(some.false, true))
        )
    return some


def _like_value(value: Any, given: Any, node: exp.Expression) -> Any:
    """Return a literal as the type of a function's values. Refuse one of another type."""
    if isinstance(value, datetime.date) and isinstance(given, str):
        given = _as_date(given)
    if isinstance(given, bool) or not isinstance(given, type(value)):
        refuse(node, f"{given!r}", f"The function must be compared with a value such as {value!r}")
    return given


def _as_date(text: str) -> Any:
    """Return the date that a text writes, as SQL casts it, or the text."""
    try:
        return datetime.date.fromisoformat(text.strip())
    except ValueError:
        return text


def _equal(node: exp.Expression, scope: Scope) -> SqlCondition:
    """Read x = v."""
    column, value, _ = _sides(node, scope)
    return SqlCondition(NOBODY, NOBODY) if value is None else _among(scope, column, [value])


def _unequal(node: exp.Expression, scope: Scope) -> SqlCondition:
    """Read x <> v."""
    return ~_equal(node, scope)


def _among(scope: Scope, name: str, values: list[Any]) -> SqlCondition:
    """Return the condition that a column has one of these values."""
    attribute = scope.universe[name]
    known = [attribute.read_literal(value) for value in values if value is not None]
    found = predicate(scope, name, frozenset(known)) if known else SqlCondition(NOBODY, EVERYONE)
    if None in values:  # x IN (…, NULL) is true or unknown, never false
        return SqlCondition(found.true, NOBODY)
    return found


def _compare(low: bool, strict: bool) -> Callable[[exp.Expression, Scope], SqlCondition]:
    """Return the reader of x ≥ v and x > v (``low``), or of x ≤ v and x < v.

    A strict comparison is read as the negation of its opposite, which excludes v itself.
    """

    def read(node: exp.Expression, scope: Scope) -> SqlCondition:
        """Return the condition of a comparison of a column with a value."""
        column, value, swapped = _sides(node, scope)
        if value is None:
            return SqlCondition(NOBODY, NOBODY)
        from_below = low != swapped
        value = _require_ordered(scope, column, value)
        ends = (value, None) if from_below != strict else (None, value)
        found = predicate(scope, column, ends)
        return ~found if strict else found

    return read


def _between(node: exp.Expression, scope: Scope) -> SqlCondition:
    """Read x BETWEEN low AND high."""
    this, low, high = parts(node, "this", "low", "high")
    column, ends = scope.column(this), (constant(low), constant(high))
    if None in ends:
        refuse(node, "BETWEEN with NULL")
    ends = tuple(_require_ordered(scope, column, end) for end in ends)
    if ends[0] > ends[1]:
        return ~predicate(scope, column, (None, None))
    return predicate(scope, column, ends)


def _in(node: exp.Expression, scope: Scope) -> SqlCondition:
    """Read x IN (…)."""
    this, values = parts(node, "this", "expressions")
    if not values:
        refuse(node, "IN without a list")
    return _among(scope, scope.column(this), [constant(value) for value in values])


def _is(node: exp.Expression, scope: Scope) -> SqlCondition:
    """Read x IS NULL, and c IS TRUE or c IS FALSE."""
    this, other = parts(node, "this", "expression")
    other = bare(other)
    if isinstance(other, exp.Boolean):
        inner = condition(this, scope)
        chosen = inner.true if constant(other) else inner.false
        return SqlCondition(chosen, ~chosen)
    if not isinstance(other, exp.Null):
        refuse(node, "IS with something other than NULL, TRUE or FALSE")
    name = scope.column(this)
    absent = scope.universe[name].absent_cells
    if not absent.any():
        refuse(
            node, f"{name!r}, whose missing values have no cell of their own",
            "IS NULL must be used on a column that declares where missing values go",
        )  # fmt: skip
    return SqlCondition(Count(((name, absent),)), Count(((name, ~absent),)))


def _like(node: exp.Expression, scope: Scope, escape: str | None = None) -> SqlCondition:
    """Read x LIKE pattern and x ILIKE pattern."""
    this, pattern, negated = parts(node, "this", "expression", "negate")
    name, wanted = scope.column(this), constant(pattern)
    attribute = scope.universe[name]
    if not isinstance(wanted, str):
        refuse(node, "a pattern that is no text")
    if attribute.texts is None:
        refuse(
            node, f"{name!r}, where other texts may occur,",
            "LIKE must be used on a column whose categories are all declared",
        )  # fmt: skip
    # if case is ignored, 'X' and 'x' are in the same cell
    matches = _pattern(wanted, escape, ignore_case=isinstance(node, exp.ILike) or attribute.ignores_case)
    mask = np.array([isinstance(label, str) and matches.fullmatch(label) is not None for label in attribute.texts])
    found = predicate(scope, name, mask)
    return ~found if negated else found


def _read_like(node: exp.Expression, scope: Scope) -> SqlCondition:
    """Read x LIKE pattern ESCAPE character."""
    this, character = parts(node, "this", "expression")
    escape = constant(character)
    if not isinstance(this, exp.Like | exp.ILike) or not isinstance(escape, str) or len(escape) != 1:
        refuse(node, "an ESCAPE that is not one character after LIKE")
    return _like(this, scope, escape)


def _pattern(wanted: str, escape: str | None, *, ignore_case: bool) -> re.Pattern[str]:
    """Translate a LIKE pattern to a regular expression."""
    written, i = "", 0
    while i < len(wanted):
        if wanted[i] == escape and i + 1 < len(wanted):
            i += 1
            written += re.escape(wanted[i])
        else:
            written += {"%": ".*", "_": "."}.get(wanted[i]) or re.escape(wanted[i])
        i += 1
    return re.compile(written, re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def _sides(node: exp.Expression, scope: Scope) -> tuple[str, Any, bool]:
    """Return the column, the literal, and True if the literal comes first."""
    left, right = parts(node, "this", "expression")
    if is_constant(right) and not is_constant(left):
        return scope.column(left), constant(right), False
    if is_constant(left) and not is_constant(right):
        return scope.column(right), constant(left), True
    refuse(node, "another comparison", "A comparison must be between a column and a literal")


def _require_ordered(scope: Scope, name: str, value: Any) -> Any:
    """Return a value to compare a column with. Refuse a column without an order, or a value of another type."""
    attribute = scope.universe[name]
    by_date = datetime.date in attribute.compared_with
    value = _as_date(value) if by_date and isinstance(value, str) else value
    if not attribute.ordered:
        raise InvalidInput(
            f"A column must have an order to be compared by <, > or BETWEEN. Found {name!r}. List its values with IN."
        )
    if isinstance(value, bool) or not isinstance(value, attribute.compared_with):
        raise InvalidInput(
            f"{name!r} must be compared with {'a date' if by_date else 'a number'}. Found {value!r}. Write a number without quotes, a date as DATE "
            "'2020-01-31'."
        )
    return value


SIGNS: dict[type[exp.Expression], Callable[[Any, Any], bool]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
}
READERS: dict[type[exp.Expression], Callable[[exp.Expression, Scope], SqlCondition]] = {
    exp.Column: _column,
    exp.EQ: _equal,
    exp.NEQ: _unequal,
    exp.GT: _compare(low=True, strict=True),
    exp.GTE: _compare(low=True, strict=False),
    exp.LT: _compare(low=False, strict=True),
    exp.LTE: _compare(low=False, strict=False),
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _read_like,
}
