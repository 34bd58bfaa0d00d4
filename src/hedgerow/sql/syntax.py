"""Reading SQL: what is not understood is refused with its place, never ignored.

sqlglot parses. Each kind of node is read by one function, which names the parts that it understands (``parts``); any other
part that is there is refused. So a word that a later version of sqlglot learns cannot pass unnoticed.
"""

from __future__ import annotations

import datetime
from typing import Any, NoReturn

import sqlglot
from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from hedgerow.errors import InvalidInput

DIALECT = "duckdb"
LONGEST = 100_000  # characters of a statement
SUPPORTED = (
    "SELECT of count, sum, avg, min, max, median, quantiles, variance, stddev, corr, CASE and arithmetic of these; FROM one "
    "table or a subquery that only filters; WHERE; GROUP BY with ROLLUP, CUBE and GROUPING SETS; HAVING; ORDER BY; LIMIT"
)
HARMLESS = {"big_int", "typed", "safe", "quoted", "_type"}  # what sqlglot notes for itself


def parsed(statement: str) -> exp.Select:
    """The statement, if it is a single SELECT."""
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
        raise InvalidInput("A statement must not nest so deeply. Found too many levels. Write it flatter.") from None
    if len(found) != 1:
        raise InvalidInput(f"There must be one statement. Found {len(found)}. Ask them one by one.")
    if not isinstance(found[0], exp.Select):
        refuse(found[0], f"{found[0].key.upper()}", "A statement must be a SELECT")
    return found[0]


def statements(text: str) -> list[str]:
    """The statements of a text, which semicolons end: by the tokens that the parser reads, so one in a text or a comment ends none."""
    found, start = [], 0
    tokens = _tokens(text)
    ends = [token.start for token in tokens if token.token_type.name == "SEMICOLON"]
    for end in (*ends, len(text)):
        if any(start <= token.start < end for token in tokens):
            found.append(text[start:end].strip())
        start = end + 1
    return found


def placeholders(statement: str) -> list[int]:
    """Where the words ``?`` of a statement are, by the tokens that the parser reads: one in a text or a comment is none."""
    return [token.start for token in _tokens(statement) if token.token_type.name == "PLACEHOLDER"]


def _tokens(text: str) -> list[Any]:
    try:
        return list(sqlglot.tokenize(text, read=DIALECT))
    except SqlglotError:
        raise InvalidInput(
            "A statement must be SQL. Found a text, a name or a comment that does not end. Close it."
        ) from None


def parts(node: exp.Expression, *understood: str) -> tuple[Any, ...]:
    """The named parts of a node; what else it has is refused."""
    for name, value in node.args.items():
        if name not in understood and name not in HARMLESS and value not in (None, False, [], ""):
            inside = value[0] if isinstance(value, list) else value
            refuse(inside if isinstance(inside, exp.Expression) else node, f"{name.strip('_')} in {node.key.upper()}")
    return tuple(node.args.get(name) for name in understood)


def refuse(node: Any, found: str, must: str = "SQL must be of the kind that is supported") -> NoReturn:
    raise InvalidInput(f"{must}. Found {found}{place(node)}. Supported: {SUPPORTED}.")


def place(node: exp.Expression) -> str:
    """Where the node is written, as far as the parser knows."""
    for each in node.walk(bfs=False):
        if "line" in each.meta:
            first = each.meta["start"] - each.meta["end"] + each.meta["col"]
            return f" at line {each.meta['line']}, column {max(1, first)}"
    return f" in {node.sql(dialect=DIALECT)[:60]!r}"


def bare(node: exp.Expression) -> exp.Expression:
    """Without the brackets around it."""
    while isinstance(node, exp.Paren):
        (node,) = parts(node, "this")
    return node


def constant(node: exp.Expression) -> Any:
    """The value of a literal."""
    node = bare(node)
    if isinstance(node, exp.Neg):
        (inner,) = parts(node, "this")
        value = constant(inner)
        if isinstance(value, bool) or not isinstance(value, int | float):
            refuse(node, "a minus before what is no number")
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
            refuse(node, "a date that is none", "A date must be written as in DATE '2020-01-31'")
    refuse(node, f"{node.key.upper()} where a literal is expected")


def is_constant(node: exp.Expression) -> bool:
    node = bare(node)
    if isinstance(node, exp.Neg):
        return is_constant(node.this)
    return isinstance(node, exp.Literal | exp.Boolean | exp.Null) or (
        isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal)
    )


def number(node: exp.Expression, text: str) -> int | float:
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
