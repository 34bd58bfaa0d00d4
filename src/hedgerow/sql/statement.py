"""A SELECT as public values: its grouping, the questions of each output, and what is computed from the answers."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from typing import Any

from sqlglot import expressions as exp

from hedgerow.query.counts import Query, count
from hedgerow.query.ratios import mean
from hedgerow.query.statistics import correlation, interpolated_quantile, quantile, total, variance
from hedgerow.sql.conditions import ALWAYS, SqlCondition, condition
from hedgerow.sql.date_functions import date_function
from hedgerow.sql.scope import TABLE, Scope
from hedgerow.sql.syntax import DIALECT, bare, constant, is_constant, parse_select, parts, refuse
from hedgerow.universe.universe import Universe

KINDS = {exp.Rollup: 1, exp.Cube: 2, exp.GroupingSets: 3}  # order of the lists in GROUP BY; single columns come first

Group = dict[str, int]
"""Cell of each GROUP BY column."""

DerivedColumn = tuple[tuple[Any, SqlCondition], ...]
"""Values of an expression in GROUP BY, each with the records that have it. None is NULL."""


@dataclass(frozen=True)
class Aggregate:
    """A question about the records of a group. ``ask`` makes it from the condition that these records satisfy.

    ``of_nobody`` is its value if no record of any table can satisfy the condition; None is NULL.
    """

    ask: Callable[[Query], Query]
    among: SqlCondition
    of_nobody: float | None = None

    @property
    def counts(self) -> bool:
        """True if the aggregate counts records."""
        return self.ask is _count_aggregate


@dataclass(frozen=True)
class Number:
    """A literal number."""

    value: float


@dataclass(frozen=True)
class GroupByColumn:
    """A GROUP BY column, or the text of an expression that is grouped by."""

    column: str


@dataclass(frozen=True)
class AppliedFunction:
    """Arithmetic on aggregates and numbers, or a function of one."""

    do: Callable[..., Any]
    of: tuple[Expression, ...]


Expression = Aggregate | Number | GroupByColumn | AppliedFunction


@dataclass(frozen=True)
class Order:
    """One term of ORDER BY."""

    by: Expression
    descending: bool
    nulls_first: bool = False


@dataclass(frozen=True)
class Statement:
    """A SELECT that was read: its condition, grouping sets, outputs, and what is done with the answers.

    ``having`` decides from the values of its expressions if a group is shown.
    """

    universe: Universe
    where: SqlCondition
    sets: tuple[tuple[str, ...], ...]
    derived: Mapping[str, DerivedColumn]
    names: tuple[str, ...]
    outputs: tuple[Expression, ...]
    having: HavingClause | None
    order: tuple[Order, ...]
    limit: int | None
    offset: int


@dataclass(frozen=True)
class HavingClause:
    """A boolean tree over comparisons of expressions. ``holds`` returns None if it is neither true nor false."""

    holds: Callable[[Sequence[float | None]], bool | None]
    of: tuple[Expression, ...]


def read_statement(statement: str, universe: Universe) -> Statement:
    """Read a statement about the universe. Refuse what is not supported, with its place."""
    select = parse_select(statement)
    outputs, source, where, group, having, order, limit, offset = parts(
        select, "expressions", "from_", "where", "group", "having", "order", "limit", "offset"
    )
    if source is None:
        refuse(select, "a SELECT without FROM", f"A statement must read from the table {TABLE!r}")
    scope, kept = _source(source, universe)
    chosen = kept & condition(None if where is None else parts(where, "this")[0], scope)
    reader = _Reader(scope)
    reader.sets = _grouping_sets(group, scope, outputs, reader)
    named = [_output_name(node) for node in outputs]
    reader.aliases = {name.lower(): node for name, node in named if isinstance(node, exp.Expression)}
    expressions = tuple(reader.expression(node) for _, node in named)
    return Statement(
        universe, chosen, reader.sets, reader.derived, _distinct([name for name, _ in named]), expressions,
        None if having is None else reader.having(parts(having, "this")[0]),
        () if order is None else reader.orders(order, expressions),
        _whole(limit), _whole(offset) or 0,
    )  # fmt: skip


def _source(node: exp.Expression, universe: Universe) -> tuple[Scope, SqlCondition]:
    """Read FROM: the table, or a subquery that only filters. Return the visible names and the condition."""
    (inner,) = parts(node, "this")
    if isinstance(inner, exp.Table):
        name, alias = parts(inner, "this", "alias")
        if not isinstance(name, exp.Identifier) or name.name.lower() != TABLE:
            refuse(inner, f"{inner.sql(dialect=DIALECT)[:40]!r}", f"The table must be called {TABLE!r}")
        return Scope(universe, _alias(alias) or TABLE, universe.names), ALWAYS
    if isinstance(inner, exp.Subquery):
        select, alias = parts(inner, "this", "alias")
        if not isinstance(select, exp.Select):
            refuse(inner, "another kind of subquery", "A subquery must be a SELECT that only filters")
        columns, source, where = parts(select, "expressions", "from_", "where")
        if source is None:
            refuse(inner, "a subquery without FROM")
        scope, kept = _source(source, universe)
        visible: list[str] = []
        for column in columns:
            if isinstance(column, exp.Star):
                parts(column)
                visible += scope.columns
            else:
                visible.append(scope.column(column))
        if len(set(visible)) != len(visible):
            refuse(inner, "a column twice", "A subquery must name each column once")
        chosen = kept & condition(None if where is None else parts(where, "this")[0], scope)
        return Scope(universe, _alias(alias) or "", tuple(visible)), chosen
    refuse(inner, f"{inner.key.upper()} in FROM")


def _alias(node: exp.Expression | None) -> str | None:
    """Return the name of an alias, or None."""
    if node is None:
        return None
    (name,) = parts(node, "this")
    return str(name.name)


def _output_name(node: exp.Expression) -> tuple[str, exp.Expression]:
    """Return the name and the expression of an output."""
    if isinstance(node, exp.Alias):
        inner, alias = parts(node, "this", "alias")
        return str(alias.name), bare(inner)
    if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
        return str(node.name), node
    return _as_written(node), bare(node)


def _as_written(node: exp.Expression) -> str:
    """Return an expression as text: in lower case but for names and strings, whose case means something."""
    marked = node.copy()
    kept = [each for each in marked.find_all(exp.Identifier, exp.Literal) if not isinstance(each.this, exp.Expression)]
    texts = [each.sql(dialect=DIALECT) for each in kept]
    for i, each in enumerate(kept):
        each.replace(exp.to_identifier(f"name{i}of{len(kept)}_", quoted=False))
    said = marked.sql(dialect=DIALECT).lower()
    for i, text in enumerate(texts):
        said = said.replace(f"name{i}of{len(kept)}_", text)
    return said


def _distinct(names: list[str]) -> tuple[str, ...]:
    """Make column names distinct: the second of two equal names gets a number."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name}:{seen[name]}")
    return tuple(found)


def _whole(node: exp.Expression | None) -> int | None:
    """Return the number of a LIMIT or OFFSET, or None."""
    if node is None:
        return None
    (inner,) = parts(node, "expression")
    value = constant(inner)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        refuse(node, f"{value!r}", "LIMIT and OFFSET must be whole numbers of at least 0")
    return value


def _grouping_sets(
    node: exp.Expression | None, scope: Scope, outputs: Sequence[exp.Expression], reader: _Reader
) -> tuple[tuple[str, ...], ...]:
    """Return the sets of columns to group by, one after another."""
    if node is None:
        return ((),)
    listed = parts(node, "expressions", "rollup", "cube", "grouping_sets")  # newer sqlglot puts all in the first

    def column(each: exp.Expression) -> str:
        """Return the column that an expression in GROUP BY names, by position, alias or name."""
        each = bare(each)
        if isinstance(each, exp.Literal):
            position = constant(each)
            if not isinstance(position, int) or not 1 <= position <= len(outputs):
                refuse(each, f"{position!r}", "A number in GROUP BY must be the position of an output")
            each = _output_name(outputs[position - 1])[1]
        else:
            aliased = [o for o in outputs if isinstance(o, exp.Alias) and o.alias.lower() == each.name.lower()]
            if aliased and isinstance(each, exp.Column) and each.name not in scope.columns:
                each = bare(aliased[0].this)
        return reader.derive(each) or scope.column(each)

    def columns(each: exp.Expression) -> tuple[str, ...]:
        if isinstance(each, exp.Tuple):
            (inner,) = parts(each, "expressions")
            return tuple(column(i) for i in inner or ())
        return (column(each),)

    def alternatives(each: exp.Expression) -> list[tuple[str, ...]]:
        """Return the sets of columns that ROLLUP, CUBE or GROUPING SETS stands for."""
        if type(each) not in KINDS:
            return [columns(each)]
        steps = [columns(i) for i in _list_items(each)]
        if isinstance(each, exp.Rollup):
            return [sum(steps[:k], ()) for k in range(len(steps), -1, -1)]
        if isinstance(each, exp.Cube):
            return [sum(some, ()) for k in range(len(steps), -1, -1) for some in itertools.combinations(steps, k)]
        return steps

    # Sorted by kind, not as written: older sqlglot loses the order, and rows must not depend on its version.
    given = sorted((each for some in listed for each in some or ()), key=lambda each: KINDS.get(type(each), 0))
    return tuple(tuple(dict.fromkeys(sum(choice, ()))) for choice in itertools.product(*map(alternatives, given)))


def _list_items(node: exp.Expression) -> list[exp.Expression]:
    """Return the items of a ROLLUP, CUBE or GROUPING SETS."""
    (inner,) = parts(node, "expressions")
    if not inner:
        refuse(node, f"{node.key.upper()} without columns")
    return list(inner)


class _Reader:
    """Reader of the expressions of one statement."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.sets: tuple[tuple[str, ...], ...] = ((),)
        self.aliases: dict[str, exp.Expression] = {}
        self.derived: dict[str, DerivedColumn] = {}

    def derive(self, node: exp.Expression) -> str | None:
        """Read an expression in GROUP BY, and return the name under which it is known; None for a mere column."""
        if isinstance(node, exp.Case):
            values = self._cases(node)
        else:
            found = date_function(node, self.scope)
            if found is None:
                return None
            values = {value: true for value, true, _ in found}
            absent = self.scope.universe[found[0][1].predicates[0][0]].absent_cells
            if absent.any():
                values[None] = count({found[0][1].predicates[0][0]: absent})
        name = node.sql(dialect=DIALECT)
        self.derived[name] = tuple((value, SqlCondition(who, ~who)) for value, who in values.items())
        return name

    def _cases(self, node: exp.Expression) -> dict[Any, Query]:
        """Return the results of a CASE in GROUP BY, each with the records that get it; NULL last."""
        values: dict[Any, Query] = {}
        for result, who in self._branches(node, ALWAYS, with_nulls=True):
            if not is_constant(result):
                refuse(result, f"{result.sql(dialect=DIALECT)[:40]!r}", "CASE in GROUP BY must return literals")
            value = constant(result)
            values[value] = values[value] | who.true if value in values else who.true
        if None in values:
            values[None] = values.pop(None)
        return values

    def expression(self, node: exp.Expression) -> Expression:
        """Read an output: a GROUP BY column, an aggregate, a number, or arithmetic on these."""
        node = bare(node)
        if self.derived and node.sql(dialect=DIALECT) in self.derived:
            return GroupByColumn(node.sql(dialect=DIALECT))
        if isinstance(node, exp.Column):
            name = self.scope.column(node)
            if not any(name in columns for columns in self.sets):
                refuse(
                    node, f"{name!r}, which is neither",
                    "An output must be in GROUP BY or in an aggregate, because rows are private",
                )  # fmt: skip
            return GroupByColumn(name)
        if isinstance(node, exp.Neg) and not is_constant(node):
            (inner,) = parts(node, "this")
            return AppliedFunction(operator.neg, (self.number(inner),))
        if type(node) in ARITHMETIC:
            left, right = parts(node, "this", "expression")
            return AppliedFunction(ARITHMETIC[type(node)], (self.number(left), self.number(right)))
        if isinstance(node, exp.Round):
            refuse(node, "ROUND", "Answers must be rounded after the statement, in the frame")
        if is_constant(node):
            value = constant(node)
            if isinstance(value, bool) or not isinstance(value, int | float):
                refuse(node, f"{value!r}", "A literal among the outputs must be a number")
            return Number(float(value))
        return self.aggregate(node, ALWAYS)

    def number(self, node: exp.Expression) -> Expression:
        """Read an expression that must be a number."""
        found = self.expression(node)
        if isinstance(found, GroupByColumn):
            refuse(node, f"{found.column!r}", "Arithmetic must be on aggregates and numbers")
        return found

    def aggregate(self, node: exp.Expression, among: SqlCondition) -> Expression:
        """Read an aggregate over the records that satisfy ``among`` (its FILTER)."""
        if isinstance(node, exp.Filter):
            inner, where = parts(node, "this", "expression")
            return self.aggregate(bare(inner), among & condition(parts(where, "this")[0], self.scope))
        if isinstance(node, exp.WithinGroup):
            return self._within_group(node, among)
        if isinstance(node, exp.Count):
            return self._count(node, among)
        if isinstance(node, exp.CountIf):
            return Aggregate(_count_aggregate, among & condition(parts(node, "this")[0], self.scope))
        if isinstance(node, exp.Sum | exp.Avg):
            return self._sum(node, among)
        if type(node) in OF_ONE_COLUMN:
            column = self.numeric(parts(node, "this")[0])
            return OF_ONE_COLUMN[type(node)](column, self.present(column, among))
        if isinstance(node, exp.PercentileCont | exp.PercentileDisc | exp.Quantile | exp.ApproxQuantile):
            named = "quantile" if isinstance(node, exp.Quantile | exp.ApproxQuantile) else "expression"
            this, at = parts(node, "this", named)
            if at is None:
                refuse(node, "a quantile without its fraction")
            return self._quantile(node, this, at, among)
        if isinstance(node, exp.Corr):
            x, y = (self.numeric(each) for each in parts(node, "this", "expression"))
            return Aggregate(lambda who: correlation(x, y, where=who), self.present(x, self.present(y, among)))
        if isinstance(node, exp.Star):
            refuse(
                node, "*", "The outputs must be aggregates, because rows are private (session.synthetic draws others)"
            )
        if isinstance(node, exp.Case) or date_function(node, self.scope) is not None:
            refuse(node, node.sql(dialect=DIALECT)[:40], "An expression of rows must be in GROUP BY or in an aggregate")
        refuse(node, f"{node.sql_name() if isinstance(node, exp.Func) else node.key.upper()} among the outputs")

    def numeric(self, node: exp.Expression) -> str:
        """Return the name of a column, which must have numbers."""
        column = self.scope.column(node)
        if self.scope.universe[column].values is None:
            refuse(node, f"{column!r}, which has labels only", "This aggregate must be on a column of numbers")
        return column

    def present(self, column: str, among: SqlCondition) -> SqlCondition:
        """Restrict a condition to the records that have a value in the column."""
        absent = self.scope.universe[column].absent_cells
        return among & SqlCondition(count({column: ~absent}), count({column: absent})) if absent.any() else among

    def _count(self, node: exp.Expression, among: SqlCondition) -> Expression:
        """Read COUNT."""
        (what,) = parts(node, "this")
        if what is None or isinstance(what, exp.Star):
            return Aggregate(_count_aggregate, among)
        what = bare(what)
        if isinstance(what, exp.Case):
            return _add_up([Aggregate(_count_aggregate, who) for _, who in self._branches(what, among)])
        if is_constant(what):
            return Aggregate(_count_aggregate, among if constant(what) is not None else ~ALWAYS)
        return Aggregate(_count_aggregate, self.present(self.scope.column(what), among))

    def _sum(self, node: exp.Expression, among: SqlCondition) -> Expression:
        """Read SUM or AVG of a column, a constant or a CASE."""
        (what,) = parts(node, "this")
        what = bare(what)
        whole = isinstance(node, exp.Sum)
        if isinstance(what, exp.Column):
            column = self.numeric(what)
            who = self.present(column, among)
            if whole:
                return Aggregate(lambda w: total(column, where=w), who, 0.0)
            return Aggregate(lambda w: mean(column, where=w), who)
        if is_constant(what):
            branches: list[tuple[exp.Expression, SqlCondition]] = [(what, among)]
        elif isinstance(what, exp.Case):
            branches = self._branches(what, among)
        else:
            refuse(what, f"{what.key.upper()}", f"{node.key.upper()} must be on a column or a CASE")
        sums, counts = [], []
        for value, who in branches:
            if is_constant(value):
                number = constant(value)
                if isinstance(number, bool) or not isinstance(number, int | float):
                    refuse(value, f"{number!r}", "CASE must return numbers")
                sums.append(AppliedFunction(operator.mul, (Aggregate(_count_aggregate, who), Number(float(number)))))
                counts.append(Aggregate(_count_aggregate, who))
            else:
                column = self.numeric(value)
                present = self.present(column, who)
                sums.append(Aggregate(lambda w, c=column: total(c, where=w), present, 0.0))  # type: ignore[misc, arg-type]
                counts.append(Aggregate(_count_aggregate, present))
        return _add_up(sums) if whole else AppliedFunction(_divide, (_add_up(sums), _add_up(counts)))

    def _branches(
        self, node: exp.Expression, among: SqlCondition, *, with_nulls: bool = False
    ) -> list[tuple[exp.Expression, SqlCondition]]:
        """Return the results of a CASE with the records that get each; NULL results only if asked for."""
        base, ifs, default = parts(node, "this", "ifs", "default")
        left, found = among, []
        for each in ifs:
            when, then = parts(each, "this", "true")
            if base is not None:
                when = exp.EQ(this=base.copy(), expression=when.copy())
            holds = condition(when, self.scope)
            found.append((bare(then), left & holds))
            left = left & SqlCondition(~holds.true, holds.true)
        found.append((exp.Null() if default is None else bare(default), left))
        return [(then, who) for then, who in found if with_nulls or not isinstance(then, exp.Null)]

    def _within_group(self, node: exp.Expression, among: SqlCondition) -> Expression:
        """Read PERCENTILE_CONT or PERCENTILE_DISC with WITHIN GROUP."""
        inner, order = parts(node, "this", "expression")
        if not isinstance(inner, exp.PercentileCont | exp.PercentileDisc):
            refuse(node, "WITHIN GROUP of another function")
        (at,) = parts(inner, "this")
        (ordered,) = parts(order, "expressions")
        if len(ordered) != 1:
            refuse(node, "WITHIN GROUP with more than one column")
        column, descending, _ = parts(ordered[0], "this", "desc", "nulls_first")  # a quantile ignores NULLs
        # counted from above, the discrete quantile at q is not the one at 1 − q counted from below
        if descending and isinstance(inner, exp.PercentileDisc):
            refuse(node, "PERCENTILE_DISC in descending order", "A discrete quantile must be in ascending order")
        return self._quantile(inner, column, at, among, descending=bool(descending))

    def _quantile(
        self,
        kind: exp.Expression,
        node: exp.Expression,
        at: exp.Expression,
        among: SqlCondition,
        *,
        descending: bool = False,
    ) -> Expression:
        """Read a quantile. A continuous one interpolates between two records; any other is the value of one record."""
        column, order = self.numeric(node), constant(at)
        if isinstance(order, bool) or not isinstance(order, int | float) or not 0 <= order <= 1:
            refuse(at, f"{order!r}", "The fraction of a quantile must be between 0 and 1")
        q = float(1 - Decimal(str(order))) if descending else order  # decimal, so that 1 − 0.9 is 0.1
        of = interpolated_quantile if isinstance(kind, exp.PercentileCont) else quantile
        return Aggregate(lambda who: of(column, q, where=who), self.present(column, among))

    def having(self, node: exp.Expression) -> HavingClause:
        """Read HAVING."""
        node = bare(node)
        if isinstance(node, exp.And | exp.Or):
            sides = [self.having(side) for side in parts(node, "this", "expression")]
            join = _all if isinstance(node, exp.And) else _any
            first = len(sides[0].of)
            return HavingClause(
                lambda v: join(sides[0].holds(v[:first]), sides[1].holds(v[first:])), sides[0].of + sides[1].of
            )
        if isinstance(node, exp.Not):
            inner = self.having(parts(node, "this")[0])
            return HavingClause(lambda v: _not(inner.holds(v)), inner.of)
        if isinstance(node, exp.Between):
            of = tuple(self.number(self.resolve(each)) for each in parts(node, "this", "low", "high"))
            return HavingClause(
                lambda v: _all(_compare_numbers(operator.le, v[1], v[0]), _compare_numbers(operator.le, v[0], v[2])), of
            )
        if type(node) not in COMPARISONS:
            refuse(node, f"{node.key.upper()} in HAVING")
        compare = COMPARISONS[type(node)]
        of = tuple(self.number(self.resolve(each)) for each in parts(node, "this", "expression"))
        return HavingClause(lambda v: _compare_numbers(compare, v[0], v[1]), of)

    def orders(self, node: exp.Expression, outputs: Sequence[Expression]) -> tuple[Order, ...]:
        """Read ORDER BY."""
        found = []
        for each in parts(node, "expressions")[0]:
            by, descending, nulls_first = parts(each, "this", "desc", "nulls_first")
            if isinstance(bare(by), exp.Literal):
                position = constant(by)
                if not isinstance(position, int) or not 1 <= position <= len(outputs):
                    refuse(by, f"{position!r}", "A number in ORDER BY must be the position of an output")
                chosen = outputs[position - 1]
            else:
                chosen = self.expression(self.resolve(by))
            found.append(Order(chosen, bool(descending), bool(nulls_first)))
        return tuple(found)

    def resolve(self, node: exp.Expression) -> exp.Expression:
        """Replace aliases in an expression by what they stand for."""
        node = bare(node)
        if isinstance(node, exp.Column) and node.args.get("table") is None and node.name.lower() in self.aliases:
            return self.aliases[node.name.lower()]
        if type(node) in ARITHMETIC:
            return type(node)(this=self.resolve(node.this), expression=self.resolve(node.expression))
        return node


def _compare_numbers(compare: Callable[[Any, Any], Any], a: float | None, b: float | None) -> bool | None:
    """Compare two numbers; None if one is NULL."""
    return None if a is None or b is None else bool(compare(a, b))


def _not(a: bool | None) -> bool | None:
    """Three-valued NOT."""
    return None if a is None else not a


def _all(a: bool | None, b: bool | None) -> bool | None:
    """Three-valued AND."""
    return False if a is False or b is False else None if a is None or b is None else True


def _any(a: bool | None, b: bool | None) -> bool | None:
    """Three-valued OR."""
    return _not(_all(_not(a), _not(b)))


def _count_aggregate(who: Query) -> Query:
    return who


def _add_up(found: Sequence[Expression]) -> Expression:
    """Return the sum of some expressions."""
    return reduce(lambda a, b: AppliedFunction(operator.add, (a, b)), found) if found else Number(0.0)


def _root(answer: Any) -> Any:
    """Return the square root of an answer. Its bar is the distance to the farther root of the interval's ends."""
    if isinstance(answer, float):
        return math.sqrt(max(0.0, answer))
    value = math.sqrt(max(0.0, answer.value))
    if answer.error is None:
        return replace(answer, value=value, typical=None)
    low, high = math.sqrt(max(0.0, answer.value - answer.error)), math.sqrt(max(0.0, answer.value + answer.error))
    return replace(answer, value=value, error=max(high - value, value - low), resolution=0.0, typical=None)


def _quantile_of(order: float) -> Callable[[str, SqlCondition], Expression]:
    """Return the reader of MIN or MAX, which are quantiles."""
    return lambda column, who: Aggregate(lambda w: quantile(column, order, where=w), who)


def _divide(value: Any, by: Any) -> Any:
    """A quotient; ZeroDivisionError where the divisor is 0, be it a number or an answer."""
    if float(getattr(by, "value", by)) == 0:
        raise ZeroDivisionError
    return value / by


def _median(column: str, who: SqlCondition) -> Expression:
    """Read MEDIAN: the mean of the two middle values if their number is even."""
    return Aggregate(lambda w: interpolated_quantile(column, 0.5, where=w), who)


def _spread_of(*, sample: bool, root: bool) -> Callable[[str, SqlCondition], Expression]:
    """Return the reader of a variance; for a sample it is multiplied by n/(n − 1)."""

    def read(column: str, who: SqlCondition) -> Expression:
        found: Expression = Aggregate(lambda w: variance(column, where=w), who)
        if sample:
            n = Aggregate(_count_aggregate, who)
            found = AppliedFunction(
                _divide, (AppliedFunction(operator.mul, (found, n)), AppliedFunction(operator.sub, (n, Number(1.0))))
            )
        return AppliedFunction(_root, (found,)) if root else found

    return read


ARITHMETIC: dict[type[exp.Expression], Callable[[Any, Any], Any]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.Div: _divide,
}
COMPARISONS: dict[type[exp.Expression], Callable[[Any, Any], Any]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
}
OF_ONE_COLUMN: dict[type[exp.Expression], Callable[[str, SqlCondition], Expression]] = {
    exp.Min: _quantile_of(0.0),
    exp.Max: _quantile_of(1.0),
    exp.Median: _median,
    exp.Variance: _spread_of(sample=True, root=False),
    exp.VariancePop: _spread_of(sample=False, root=False),
    exp.Stddev: _spread_of(sample=True, root=True),
    exp.StddevSamp: _spread_of(sample=True, root=True),
    exp.StddevPop: _spread_of(sample=False, root=True),
}
