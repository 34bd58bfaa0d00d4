"""Parse a question from text. It is written as in Python, and nothing is executed.

    count(smoker=True, age=(40, 65))
    mean("age", where=count(sex="F") & ~count(age=(None, 30)))
    group_by("sex").median("age")
    count(smoker=True).over_time()

Only calls of the functions listed here, literals, ``&``, ``|`` and ``~`` are understood. Any other Python is refused
with its place. ``hr.`` before a name may be left out.
"""

from __future__ import annotations

import ast
import datetime
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.query.counts import (
    Query,
    any_of,
    conjunction,
    count,
    interval,
    linear,
    marginal,
    parity,
    threshold,
)
from hedgerow.query.ratios import mean, share
from hedgerow.query.statistics import MAKERS, Groups
from hedgerow.universe.attributes import MISSING, OTHER, not_

GUIDE = "Write it as in docs/questions.md."
LONGEST = 20_000  # a question has at most this many characters
Names = Mapping[str, Any]

COUNTED: Names = {
    function.__name__: function
    for function in (
        any_of, conjunction, count, interval, linear, marginal, mean, parity, share, threshold,
    )
}  # fmt: skip
WORDS: Names = {"not_": not_, "isnt": not_, "date": datetime.date, "MISSING": MISSING, "OTHER": OTHER}
# methods of group_by(…) that a question may call
OF_GROUPS = ("count", "mean", "median", "quantile", "share", "total", "variance")


def makers() -> dict[str, Any]:
    """Return the functions that make questions, by name: those of counts, and those of every statistic."""
    return dict(sorted({**COUNTED, **MAKERS}.items()))


def question(text: str, more: Names | None = None) -> Query:
    """Parse a question. ``more`` are further names that it may call."""
    found = read_question(text, {**makers(), **WORDS, **(more or {})})
    if not isinstance(found, Query):
        raise InvalidInput(
            f"A question must be made by {', '.join(makers())}. Found {_short(text)}. For example count(smoker=True)."
        )
    return found


def read_question(text: str, names: Names) -> Any:
    """Evaluate an expression of calls and literals. ``names`` lists everything that it may call."""
    if len(text) > LONGEST:
        raise InvalidInput(
            f"A question must have at most {LONGEST} characters. Found {len(text)}. Ask in several questions."
        )
    tree: ast.Expression | None = None
    wrong = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns about unknown escapes in texts
            tree = ast.parse(text.strip(), mode="eval")
        return _Reader(names).value(tree.body)
    except SyntaxError as problem:
        wrong = f" at column {problem.offset}" if problem.offset else ""
    except (RecursionError, MemoryError):
        wrong = ", nested too deeply"
    except ValueError as problem:
        if isinstance(problem, HedgerowError):
            raise
    raise InvalidInput(
        f"A question must be written as in Python. Found {_short(text)}{wrong}. For example count(smoker=True, "
        "age=(40, 65))."
    )


def _short(text: str) -> str:
    """Quote a text, cut to 60 characters."""
    return repr(text if len(text) <= 60 else text[:60] + "…")


class _Reader:
    """Evaluate a syntax tree without executing anything but the listed functions."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def value(self, node: ast.expr) -> Any:
        """Return the value of an expression."""
        match node:
            case ast.Constant(value=str() | bool() | int() | float() | None as value):
                return value
            case ast.Tuple(elts=parts):
                return tuple(map(self.value, parts))
            case ast.List(elts=parts):
                return list(map(self.value, parts))
            case ast.Set(elts=parts):
                return self._make(node, frozenset, [self.value(part) for part in parts])
            case ast.Dict(keys=keys, values=values) if None not in keys:
                pairs = [(self.value(key), self.value(value)) for key, value in zip(keys, values, strict=True) if key]
                return self._make(node, dict, pairs)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                number = self.value(operand)
                if isinstance(number, bool) or not isinstance(number, int | float):
                    _refuse(node, "a sign before something that is no number")
                return -number if isinstance(sign, ast.USub) else number
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return ~self._query(operand)
            case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
                return self._query(left) & self._query(right)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return self._query(left) | self._query(right)
            case ast.BinOp():
                _refuse(
                    node,
                    "arithmetic",
                    "A difference of questions must be written as difference(a, b), and a quotient as ratio(a, b)",
                )
            case ast.Call(func=function, args=given, keywords=named):
                if any(isinstance(each, ast.Starred) for each in given) or any(each.arg is None for each in named):
                    _refuse(node, "* or ** in a call")
                values = [self.value(each) for each in given]
                options = {str(each.arg): self.value(each.value) for each in named}
                return self._make(node, self._function(function), *values, **options)
            case ast.Name() | ast.Attribute():
                found = self._names.get(_dotted_name(node))
                if found is None or callable(found):
                    name = _dotted_name(node)
                    _refuse(node, f"{name!r}, which is no value", f'A text must be in quotes, as in "{name}"')
                return found
            case ast.Compare():
                must = 'A comparison must be a range in a count, such as count(age=(40, None)) or count(sex=not_("F"))'
                _refuse(node, "a comparison", must)
        _refuse(node, f"{type(node).__name__}")

    def _query(self, node: ast.expr) -> Query:
        """Return the question that an operand of &, | or ~ evaluates to."""
        found = self.value(node)
        if not isinstance(found, Query):
            _refuse(node, "&, | or ~ with something that is no question")
        return found

    def _function(self, node: ast.expr) -> Callable[..., Any]:
        """Return the function that a call names."""
        if isinstance(node, ast.Attribute) and node.attr in OF_GROUPS and isinstance(node.value, ast.Call):
            groups = self.value(node.value)
            if isinstance(groups, Groups):
                method: Callable[..., Any] = getattr(groups, node.attr)
                return method
        if isinstance(node, ast.Attribute) and node.attr == "over_time":
            return self._query(node.value).over_time
        found: Callable[..., Any] | None = self._names.get(_dotted_name(node))
        if not callable(found):
            known = ", ".join(name for name, thing in self._names.items() if callable(thing))
            _refuse(node, f"{_dotted_name(node)!r}", f"A question must be made of {known}")
        return found

    def _make(self, node: ast.expr, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Call a function. Refuse arguments that it does not accept, with their place."""
        try:
            return function(*given, **named)
        except HedgerowError:
            raise
        except (TypeError, ValueError, AttributeError, OverflowError, LookupError):
            pass
        name = getattr(function, "__name__", "it")
        _refuse(
            node, f"{ast.unparse(node)[:60]!r}", f"{name} must be given the arguments that it takes (docs/questions.md)"
        )


def _dotted_name(node: ast.expr) -> str:
    """Return a name, or names joined by dots; an empty text for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=inner, attr=name):
            before = _dotted_name(inner)
            return name if before in ("hr", "hedgerow", "datetime") else f"{before}.{name}"
    return ""


def _refuse(node: ast.expr, found: str, must: str = "A question must be made of calls and literals") -> NoReturn:
    """Refuse a part of a question, with its place."""
    raise InvalidInput(f"{must}. Found {found} at column {node.col_offset + 1}. {GUIDE}")
