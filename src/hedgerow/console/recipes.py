"""A question as code that asks it elsewhere: in Python, at a command line, in SQL. No secret is in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

import hedgerow as hr
from hedgerow._json import write_spaced
from hedgerow.console.exploration import Exploration
from hedgerow.console.page_request import PageRequest
from hedgerow.universe.attributes import Attribute, Categories, Flag, Integers, Range

Recipes = list[tuple[str, str]]
"""Names of languages, each with a text."""


def of_questions(asked: PageRequest, questions: Sequence[str], chosen: Exploration | None = None) -> Recipes:
    """Return questions as Python and as a command, and what a page explores as SQL, where it can be said so.

    A question whose text is not read again has no recipe.
    """
    lines = [python_of(text) for text in questions]
    if not lines or None in lines:
        return []
    many = len(lines) > 1
    every = "".join(f"    {line},\n" for line in lines)
    call = f"people.ask_all([\n{every}])" if many else f"people.ask({lines[0]})"
    body = {"questions": list(questions)} if many else {"question": questions[0]}
    statement = None if chosen is None else sql_of(chosen)
    return [
        ("Python", _python(asked, call)),
        *([("SQL", statement)] if statement else []),
        ("curl", _curl(asked, "batch" if many else "ask", body)),
    ]


def of_statement(asked: PageRequest, statement: str) -> Recipes:
    """Return a statement as Python, as SQL and as a command."""
    python = _python(asked, f"people.sql({statement!r})")
    return [("Python", python), ("SQL", statement), ("curl", _curl(asked, "sql", {"statement": statement}))]


def _python(asked: PageRequest, call: str) -> str:
    modules = "import datetime\n\nimport hedgerow as hr" if "datetime." in call else "import hedgerow as hr"
    return f"{modules}\n\npeople = hr.connect({_base(asked)!r}, dataset={asked.dataset!r})\n{call}"


def _curl(asked: PageRequest, endpoint: str, body: Any) -> str:
    quoted = write_spaced(body).replace("'", "'\\''")
    return (
        f'curl -H "Authorization: Bearer $HEDGEROW_TOKEN" -H "Content-Type: application/json" \\\n'
        f"     -d '{quoted}' \\\n     {_base(asked)}/v1/datasets/{asked.dataset}/{endpoint}"
    )


def _base(asked: PageRequest) -> str:
    return str(asked.request.base_url).rstrip("/") + asked.address_of("")


class _Prefix(ast.NodeTransformer):
    """Write names as those of the package."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == "hr":
            return node
        if node.id == "date":
            return ast.Attribute(ast.Name("datetime", ast.Load()), "date", ast.Load())
        if not hasattr(hr, node.id):
            raise LookupError
        return ast.Attribute(ast.Name("hr", ast.Load()), node.id, ast.Load())


def python_of(question: str) -> str | None:
    """Return the text of a question as an expression of Python, or None if it is none."""
    try:
        return ast.unparse(_Prefix().visit(ast.parse(question.strip(), mode="eval")))
    except (SyntaxError, LookupError, ValueError, RecursionError, MemoryError):
        return None


def sql_of(chosen: Exploration) -> str | None:
    """Return the SQL statement of what a page explores, in numbers of rows; None if SQL cannot express it."""
    universe = chosen.universe
    conditions = [condition(name, universe[name], cells) for name, cells in chosen.filters.items()]
    if None in conditions or chosen.measure == "median":
        return None
    where = " AND ".join(str(each) for each in conditions)
    names, is_rate = [quote_name(name) for name in chosen.by], chosen.measure == "rate"
    value = {
        "mean": f"avg({quote_name(chosen.of)}) AS mean",
        "rate": f"count(*) FILTER (WHERE {where}) / count(*) AS share",
    }.get(chosen.measure, "count(*) AS n")
    return " ".join(
        [
            f"SELECT {', '.join([*names, value])} FROM data",
            *([f"WHERE {where}"] if where and not is_rate else []),
            *([f"GROUP BY {', '.join(names)}"] if names else []),
        ]
    )


def condition(name: str, attribute: Attribute, cells: Sequence[int]) -> str | None:
    """Return the condition that a column is in some of its cells, or None where SQL has no words for it."""
    if attribute.missing_cell in cells or attribute.other_cell in cells:
        return None
    column, labels = quote_name(name), [attribute.labels[k] for k in cells]
    if isinstance(attribute, Range):
        last = len(attribute.edges) - 2
        parts = [
            f"{column} >= {attribute.edges[low]:.17g} AND {column} <{'=' if high == last else ''} "
            f"{attribute.edges[high + 1]:.17g}"
            for low, high in _runs(cells)
        ]
        return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"
    if isinstance(attribute, Flag):
        return None if len(labels) > 1 else column if labels[0] else f"NOT {column}"
    if not isinstance(attribute, Categories | Integers) or not all(isinstance(each, str | int) for each in labels):
        return None
    if isinstance(attribute, Integers) and len(labels) > 1 and len(_runs(cells)) == 1:
        return f"{column} BETWEEN {labels[0]} AND {labels[-1]}"
    values = [_literal(each) for each in labels]
    return f"{column} = {values[0]}" if len(values) == 1 else f"{column} IN ({', '.join(values)})"


def _runs(cells: Sequence[int]) -> list[tuple[int, int]]:
    """Return cells as spans from the first to the last."""
    found: list[tuple[int, int]] = []
    for cell in cells:
        if found and found[-1][1] == cell - 1:
            found[-1] = (found[-1][0], cell)
        else:
            found.append((cell, cell))
    return found


def _literal(value: str | int) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def quote_name(name: str) -> str:
    """Return the name of a column as SQL writes it."""
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'
