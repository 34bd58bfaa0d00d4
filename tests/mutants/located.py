"""Find a place of a module by the function it is in and by its syntax, whatever its formatting and wherever it has moved.

A fragment that is an expression or statements is looked for among the nodes of the syntax tree. Any other fragment (the head of a
statement, a part of a sum, words within a text) is looked for as a run of tokens, between which there may be any space.
"""

from __future__ import annotations

import ast
import bisect
import re
import textwrap
from collections.abc import Iterator, Sequence
from functools import lru_cache

Span = tuple[int, int]
SPACE = r"\s+(?:#[^\n]*\n\s*)*"  # with comments


class NotOnce(ValueError):
    """A fragment that is not there, or there more than once."""


def changed(text: str, where: str, old: str, new: str) -> str:
    """The text of a module with one place changed."""
    found = spans(text, where, old)
    if len(found) != 1:
        raise NotOnce(
            f"{old!r} must be in {where or 'the module'} once. Found it {len(found)} times. Renew the mutant."
        )
    begin, end = found[0]
    return text[:begin] + _indented(text, begin, old, new) + text[end:]


def spans(text: str, where: str, old: str) -> list[Span]:
    """Return the places of a fragment in a function, a class or the constant of that name; "" is the whole module."""
    module = _module(text)
    areas = [(0, len(text))] if not where else module.areas.get(where, [])
    pattern = _parsed(old)
    if pattern is not None:
        exact = sorted({span for area in areas for span in module.matching(pattern, area)})
        if exact:
            return exact
    tokens = _tokens(old)
    runs = {m.span() for begin, end in areas for m in tokens.finditer(text, begin, end)}
    return sorted(runs)


def enclosing(text: str, begin: int, end: int) -> str:
    """The qualified name of the innermost function, class or constant around a place."""
    areas = _module(text).areas
    around = [
        (last - first, name) for name, all_ in areas.items() for first, last in all_ if first <= begin and end <= last
    ]
    return min(around)[1] if around else ""


class _Module:
    def __init__(self, text: str) -> None:
        self.tree = ast.parse(text)
        self.starts = [0]
        self.bytes = [line.encode() for line in text.splitlines(keepends=True)]
        for line in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.areas: dict[str, list[Span]] = {}
        self.dumps: dict[ast.AST, str] = {}
        self._name(self.tree, "")
        self.nodes: dict[type[ast.AST], list[ast.expr]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.expr):
                self.nodes.setdefault(type(node), []).append(node)
        self.bodies = [
            body
            for node in ast.walk(self.tree)
            for field in ("body", "orelse", "finalbody")
            if isinstance(body := getattr(node, field, None), list) and body
        ]

    def _name(self, node: ast.AST, within: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = ""
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = child.name
            elif isinstance(child, ast.Assign | ast.AnnAssign) and isinstance(node, ast.Module | ast.ClassDef):
                targets = child.targets[0] if isinstance(child, ast.Assign) else child.target
                name = next((part.id for part in ast.walk(targets) if isinstance(part, ast.Name)), "")
            if name:
                full = f"{within}.{name}" if within else name
                first = min([child, *getattr(child, "decorator_list", ())], key=lambda part: part.lineno)
                self.areas.setdefault(full, []).append((self.starts[first.lineno - 1], self.span(child)[1]))
                self._name(child, full)
            else:
                self._name(child, within)

    def span(self, node: ast.AST) -> Span:
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.bytes[line - 1][:column].decode())

    def _dump(self, node: ast.AST) -> str:
        if node not in self.dumps:
            self.dumps[node] = _dump(node)
        return self.dumps[node]

    def matching(self, pattern: Sequence[ast.stmt] | ast.expr, area: Span) -> Iterator[Span]:
        begin, end = area
        first_line, last_line = bisect.bisect_right(self.starts, begin), bisect.bisect_right(self.starts, end)
        if isinstance(pattern, ast.expr):
            wanted = _dump(pattern)
            for node in self.nodes.get(type(pattern), []):
                if first_line <= node.lineno <= last_line and self._dump(node) == wanted:
                    yield self.span(node)
            return
        dumps = [_dump(statement) for statement in pattern]
        for body in self.bodies:
            for i in range(len(body) - len(dumps) + 1):
                run = body[i : i + len(dumps)]
                is_inside = first_line <= run[0].lineno and (run[-1].end_lineno or 0) <= last_line
                if is_inside and [*map(type, run)] == [*map(type, pattern)] and [*map(self._dump, run)] == dumps:
                    yield self.span(run[0])[0], self.span(run[-1])[1]


@lru_cache(maxsize=256)
def _module(text: str) -> _Module:
    return _Module(text)


def _dump(node: ast.AST) -> str:
    return re.sub(r", ctx=\w+\(\)", "", ast.dump(node))


def _parsed(fragment: str) -> list[ast.stmt] | ast.expr | None:
    text = textwrap.dedent(fragment).strip()
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return None
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else body


def _tokens(fragment: str) -> re.Pattern[str]:
    """The words and signs of a fragment, with any space between them, and a comma before a closing bracket or none."""
    atoms = re.findall(r"\w+|[^\w\s]", fragment)
    said = ""
    for before, atom in zip(["", *atoms], atoms, strict=False):
        if before:
            is_apart = (before[-1] + atom[0]).replace("_", "a").isalnum()
            said += SPACE if is_apart else f"(?:{SPACE})?"
        if atom in ")]}" and before not in ("", ","):
            said += rf"(?:,(?:{SPACE})?)?"
        said += re.escape(atom)
    return re.compile(said)


def _indented(text: str, begin: int, old: str, new: str) -> str:
    """The new lines, as deep as the old ones are now."""
    was = re.match(r"[ \n]*", old)
    lead = was.group() if was else ""
    line = text[text.rfind("\n", 0, begin) + 1 : begin]
    if line.strip() or "\n" not in old + new:
        return new.strip(" ") if not line.strip() and lead else new
    depth, now = len(lead.rpartition("\n")[2]), len(line)
    first, *rest = new.removeprefix(lead).split("\n") if new.startswith(lead) else new.lstrip().split("\n")
    shifted = [
        " " * max(0, len(r) - len(r.lstrip()) + now - depth) + r.lstrip() if lead and r.strip() else r for r in rest
    ]
    return "\n".join([first, *shifted])
