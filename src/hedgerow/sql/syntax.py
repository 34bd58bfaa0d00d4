"""Parse SQL. What is not understood is refused with its place, never ignored.

sqlglot parses. Each kind of node is read by one function, which names the parts that it understands (``parts``). Any
other part of the node is refused, so that syntax added by a later version of sqlglot cannot pass unnoticed.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, NoReturn

import sqlglot
from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from hedgerow.errors import InvalidInput

DIALECT = "duckdb"  # dialect of SQL that sqlglot reads
LONGEST = 100_000  # a statement has at most this many characters
SUPPORTED = (
    "SELECT of count, sum, avg, min, max, median, quantiles, variance, stddev, corr, CASE and arithmetic of these; "
    "FROM one table or a subquery that only filters; WHERE; GROUP BY columns, CASE and functions of dates, with "
    "ROLLUP, CUBE and GROUPING SETS; HAVING; ORDER BY; LIMIT"
)
ADVICE = {  # a part of a statement that is refused, with the way out
    "joins": (
        "A statement must read one table. Found a join", "Join the tables before you open them (docs/joining.md)"
    ),
    "distinct": (
        "A SELECT must ask for aggregates. Found DISTINCT",
        "Write GROUP BY, which lists every declared value, and whose counts have bars",
    ),
    "with_": ("A statement must be one SELECT. Found WITH", "Write the condition into WHERE, or a subquery that only filters"),
    "qualify": ("A statement must have no windows. Found QUALIFY", "Ask for each group with GROUP BY"),
}  # fmt: skip
PERIODS = "Group dates by date_trunc, year, quarter, month or week"
BANDS = "Write bands of numbers as CASE WHEN age < 30 THEN 'under 30' ELSE 'others' END"
INSTEAD: dict[str, str] = {  # an expression that is refused, with the way out
    "distinct": "The declared values are public, and which of them occur is private: GROUP BY lists them with counts",
    "window": "For shares of all rows, ask marginal('sex') without SQL",
    "mode": "Write GROUP BY … ORDER BY count(*) DESC LIMIT 1",
}
INSTEAD_OF_A_COLUMN: dict[str, str] = {
    **INSTEAD,
    **dict.fromkeys(("mul", "div", "intdiv", "add", "sub", "mod", "floor", "ceil", "round"), BANDS),
    **dict.fromkeys(("timetostr", "tochar"), PERIODS),
}
HARMLESS = {"big_int", "typed", "safe", "quoted", "_type"}  # annotations of sqlglot that change no meaning


def parse_select(statement: str) -> exp.Select:
    """Parse a statement, and refuse anything but a single SELECT."""
    if not isinstance(statement, str):
        raise InvalidInput(f"A statement must be text. Found {type(statement).__name__}. Write SQL.")
    if len(statement) > LONGEST:
        raise InvalidInput(
            f"A statement must have at most {LONGEST} characters. Found {len(statement)}. Ask in several statements."
        )
    try:
        found = [each for each in sqlglot.parse(statement, read=DIALECT) if each is not None]
    except SqlglotError as problem:
        where: dict[str, Any] = next(iter(getattr(problem, "errors", ())), {})
        place = f" at line {where['line']}, column {where['col']}" if where.get("line") else ""
        raise InvalidInput(f"A statement must be SQL. Found something else{place}. Supported: {SUPPORTED}.") from None
    except RecursionError:
        raise InvalidInput("A statement must not be nested too deeply. Found too many levels. Flatten it.") from None
    if len(found) != 1:
        way_out = "Ask them one by one." if found else "Write one, such as SELECT count(*) FROM data."
        raise InvalidInput(f"A text must hold one statement. Found {len(found) or 'none'}. {way_out}")
    if not isinstance(found[0], exp.Select):
        refuse(found[0], f"{found[0].key.upper()}", "A statement must be a SELECT")
    return found[0]


def statements(text: str) -> list[str]:
    """Split a text into statements at semicolons.

    The parser's tokens are used, so that a semicolon in a string or a comment ends no statement.
    """
    found, start = [], 0
    tokens = _tokens(text)
    ends = [token.start for token in tokens if token.token_type.name == "SEMICOLON"]
    for end in (*ends, len(text)):
        if any(start <= token.start < end for token in tokens):
            found.append(text[start:end].strip())
        start = end + 1
    return found


def placeholders(statement: str) -> list[int]:
    """Return the positions of the ``?`` placeholders in a statement.

    The parser's tokens are used, so that a ``?`` in a string or a comment is no placeholder.
    """
    return [token.start for token in _tokens(statement) if token.token_type.name == "PLACEHOLDER"]


def _tokens(text: str) -> list[Any]:
    """Return the tokens of a text."""
    try:
        return list(sqlglot.tokenize(text, read=DIALECT))
    except SqlglotError:
        raise InvalidInput(
            "A statement must be SQL. Found a string, a name or a comment that does not end. Close it."
        ) from None


def parts(node: exp.Expression, *understood: str) -> tuple[Any, ...]:
    """Return the named parts of a node, and refuse a node with any other part."""
    for name, value in node.args.items():
        if name not in understood and name not in HARMLESS and value not in (None, False, [], ""):
            inside = value[0] if isinstance(value, list) else value
            if name in ADVICE:
                found, way_out = ADVICE[name]
                raise InvalidInput(
                    f"{found}{place(inside if isinstance(inside, exp.Expression) else node)}. {way_out}."
                )
            refuse(inside if isinstance(inside, exp.Expression) else node, f"{name.strip('_')} in {node.key.upper()}")
    return tuple(node.args.get(name) for name in understood)


def refuse(
    node: Any,
    found: str,
    must: str = "SQL must be of a supported kind",
    ways_out: Mapping[str, str] = INSTEAD,
) -> NoReturn:
    """Raise InvalidInput with the place of the node, and the way out if one is known."""
    instead = f" {ways_out[node.key]}." if node.key in ways_out else ""
    raise InvalidInput(f"{must}. Found {found}{place(node)}.{instead} Supported: {SUPPORTED}.")


def place(node: exp.Expression) -> str:
    """Return the place of a node in the text, as far as the parser knows it."""
    for each in node.walk(bfs=False):
        if "line" in each.meta:
            first = each.meta["start"] - each.meta["end"] + each.meta["col"]
            return f" at line {each.meta['line']}, column {max(1, first)}"
    return f" in {node.sql(dialect=DIALECT)[:60]!r}"


def bare(node: exp.Expression) -> exp.Expression:
    """Return a node without the brackets around it."""
    while isinstance(node, exp.Paren):
        (node,) = parts(node, "this")
    return node


def constant(node: exp.Expression) -> Any:
    """Return the value of a literal."""
    node = bare(node)
    if isinstance(node, exp.Neg):
        (inner,) = parts(node, "this")
        value = constant(inner)
        if isinstance(value, bool) or not isinstance(value, int | float):
            refuse(node, "a minus before something that is no number")
        return -value
    if isinstance(node, exp.Literal):
        text, is_string = parts(node, "this", "is_string")
        return text if is_string else number(node, text)
    if isinstance(node, exp.Boolean):
        (value,) = parts(node, "this")
        return bool(value)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Cast) and node.args["to"].sql(dialect=DIALECT) == "DATE":
        text, _ = parts(node, "this", "to")
        try:
            return datetime.date.fromisoformat(constant(text))
        except (TypeError, ValueError):
            refuse(node, "a date that does not exist", "A date must be written as in DATE '2020-01-31'")
    refuse(node, f"{node.key.upper()} where a literal is expected")


def is_constant(node: exp.Expression) -> bool:
    """Return True if a node is a literal."""
    node = bare(node)
    if isinstance(node, exp.Neg):
        return is_constant(node.this)
    return isinstance(node, exp.Literal | exp.Boolean | exp.Null) or (
        isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal)
    )


def number(node: exp.Expression, text: str) -> int | float:
    """Return the number that a literal writes."""
    try:
        value = float(text)
    except ValueError:
        refuse(node, f"{text[:40]!r}", "A number must be written in digits")
    if value in (float("inf"), float("-inf")):
        refuse(node, "a number beyond all floats", "A number must be finite")
    try:
        return int(text)
    except ValueError:
        return value
