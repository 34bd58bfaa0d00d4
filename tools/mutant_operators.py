"""Operators that make mutants of any code: each finds the places in a module where it applies, and the text that takes their place.

    comparison   < becomes <= or >, == becomes !=, and becomes or, min becomes max, a `not` is dropped
    constant     a number is one more, or twice as large; True becomes False
    sign         + becomes -, * becomes /, a minus is dropped
    statement    a call, an augmented assignment, an assignment to an attribute or an item, or a check that raises is dropped
    arguments    two neighbouring arguments change places
    charge       one of several charged events is dropped; a cost that is read, a sensitivity, a scale or a failure probability is halved
    privilege    a lock, a copy, a read-only view, a type's check, `frozen`, or a requirement is dropped

Left out is what no user suffers from: docstrings, messages, representations, annotations, progress and log lines, help texts.
"""

from __future__ import annotations

import ast
import bisect
import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

OPERATORS = ("comparison", "constant", "sign", "statement", "arguments", "charge", "privilege")

COMPARED: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}
SIGNS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
}
PAID = {"charge", "affords", "_require_price", "_admitted"}
COSTS = {"cost", "spent", "failing", "_failing", "planned", "sensitivity"}
EVENTS = {"Gaussian", "Laplace", "Exponential", "AboveThreshold", "FlippedRows", "Sampled"}
HALVED = {"sensitivity", "scale", "sigma", "beta", "delta", "slack", "epsilon", "rho", "cost", "width", "failure"}
GUARDS = re.compile(r"^_?(require|check|refuse|forbid|verify|ensure|validate|must)(_|$)|^setflags$|^_home$")
LOCKS = re.compile(r"lock|turn|exclusively|_alone|_charging|closed|one_thread|suppress|hidden|quiet|transaction")
VIEWS = {"MappingProxyType", "frozenset", "tuple", "final", "bool"}
FLAGS = {"frozen", "read_only", "readonly", "write", "private", "closed", "exclusive", "keep", "eq"}
SILENT_CALLS = {
    "tell", "warn", "print", "bar", "counting_bar", "cast", "TypeVar", "ParamSpec", "Option", "Argument", "add_column", "debug", "info",
    "Panel", "Column", "rule", "echo", "secho", "add_note", "count_of", "phases", "notice",
}  # fmt: skip
SILENT_KEYWORDS = {"strict", "help", "maxsize", "why", "message", "hint", "stacklevel", "doc", "title", "cache", "repr", "slots", "kw_only"}  # fmt: skip
SILENT_FUNCTIONS = {"__repr__", "__str__", "__dir__", "__hash__", "__rich__", "_repr_html_", "_repr_mimebundle_", "_repr_pretty_"}  # fmt: skip
ERRORS = re.compile(r"(Error|Exceeded|Invalid\w*|Refused|Warning|Exception|Unsupported\w*|Mismatch|Trouble)$")


@dataclass(frozen=True)
class Site:
    """A change of one place. ``old`` and ``new`` are how it reads, without its formatting; ``start`` and ``end`` count bytes."""

    file: str
    where: str
    operator: str
    old: str
    new: str
    start: int
    end: int
    text: str
    lines: tuple[int, ...]
    statement: tuple[int, ...]
    names: tuple[str, ...]
    nth: int = 0

    @property
    def id(self) -> str:
        return "R" + self.rank("")[:7]

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Return the place and the text, which stay the same if the file moves or lines are added before it."""
        return self.where, self.old, self.new, self.nth

    def rank(self, seed: object) -> str:
        said = "\n".join((str(seed), self.file, self.operator, *map(str, self.key)))
        return hashlib.sha256(said.encode()).hexdigest()

    def found_in(self, package: Path) -> Path:
        return package / self.file

    def changed(self, text: str) -> str:
        source = text.encode()
        return (source[: self.start] + self.text.encode() + source[self.end :]).decode()


def sites(file: str, text: str) -> list[Site]:
    """Return all places of a module, in order."""
    found = list(_Finder(file, text).found())
    counts: Counter[tuple[str, str, str, int]] = Counter()
    numbered = []
    for site in found:
        nth = counts[site.key]
        counts[site.key] += 1
        numbered.append(Site(**{**vars(site), "nth": nth}))
    return numbered


def drawn(package: Path, strata: Sequence[str], count: int, seed: int, earlier: Iterable[Site] = ()) -> list[Site]:
    """Draw mutants: from each folder in proportion to the root of its places, and from each operator alike.

    The rank of a place is a hash of the seed and of how the place reads. So a change of the code changes the draw only where the code
    has changed. Places that were drawn ``earlier`` stay drawn, wherever their files are now: only those that are gone are replaced.
    """
    by_folder = {stratum: _of_stratum(package, stratum) for stratum in strata}
    kept = set(_found_again(earlier, by_folder))
    weights = {stratum: len(places) ** 0.5 for stratum, places in by_folder.items()}
    chosen: list[Site] = []
    for stratum, places in by_folder.items():
        wanted = round(count * weights[stratum] / sum(weights.values()))
        queues = {
            operator: sorted(
                (p for p in places if p.operator == operator), key=lambda p: (p.id not in kept, p.rank(seed))
            )
            for operator in OPERATORS
        }
        taken: list[Site] = []
        while len(taken) < wanted and any(queues.values()):
            for queue in queues.values():
                if queue and len(taken) < wanted and _is_python(package, queue[0]):
                    taken.append(queue[0])
                del queue[:1]
        chosen += taken
    return chosen


def _found_again(earlier: Iterable[Site], by_folder: Mapping[str, Sequence[Site]]) -> Iterator[str]:
    """Yield the ids that places have now: in their own file, or in the only other one that reads so."""
    places = [place for found in by_folder.values() for place in found]
    ids = {place.id for place in places}
    for site in earlier:
        alike = [p for p in places if (p.operator, p.key) == (site.operator, site.key)] if site.id not in ids else []
        if site.id in ids:
            yield site.id
        elif len(alike) == 1:
            yield alike[0].id


def _is_python(package: Path, site: Site) -> bool:
    try:
        compile(site.changed((package / site.file).read_text()), site.file, "exec")
    except SyntaxError:
        return False
    return True


def _of_stratum(package: Path, stratum: str) -> list[Site]:
    folder = package / stratum
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [package / f"{stratum}.py"]
    return [site for file in files for site in sites(file.relative_to(package).as_posix(), file.read_text())]


class _Finder:
    def __init__(self, file: str, text: str) -> None:
        self.file, self.text, self.source = file, text, text.encode()
        self.tree = ast.parse(text)
        starts = [0]
        for line in self.source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self.starts = starts
        self.parents: dict[ast.AST, ast.AST] = {}
        self.names: dict[ast.AST, str] = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node

    def found(self) -> Iterator[Site]:
        for node in self._visited(self.tree):
            for operator, start, end, new, shown in self._changes(node):
                yield from self._site(operator, start, end, new, shown)

    # What is looked at

    def _visited(self, node: ast.AST) -> Iterator[ast.AST]:
        yield node
        for child in ast.iter_child_nodes(node):
            if not self._is_left_out(child, node):
                yield from self._visited(child)

    def _is_left_out(self, node: ast.AST, parent: ast.AST) -> bool:
        if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert | ast.Import | ast.ImportFrom):
            return True
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return True
        if isinstance(node, ast.FunctionDef):
            named = {_name(d) for d in node.decorator_list}
            return node.name in SILENT_FUNCTIONS or bool(named & {"overload", "abstractmethod"})
        if isinstance(node, ast.ClassDef) and any(_name(b) == "Protocol" for b in node.bases):
            return True
        if isinstance(node, ast.If) and (
            "TYPE_CHECKING" in ast.unparse(node.test) or "__name__" in ast.unparse(node.test)
        ):
            return True
        if isinstance(parent, ast.AnnAssign | ast.arg) and node is parent.annotation:
            return True
        if isinstance(parent, ast.FunctionDef) and (node is parent.returns or node in parent.decorator_list):
            return True
        if isinstance(node, ast.Call):
            name = _name(node.func)
            return name in SILENT_CALLS or bool(ERRORS.search(name))
        if isinstance(node, ast.keyword):
            return node.arg in SILENT_KEYWORDS
        if isinstance(node, ast.Subscript) and _name(node.value) in ("Literal", "Annotated"):
            return True
        if isinstance(node, ast.Assign) and any(_name(t) in ("__all__", "__slots__") for t in node.targets):
            return True
        return isinstance(node, ast.TypeAlias) if hasattr(ast, "TypeAlias") else False

    # What is changed: operator, where from and to, new text, and the node that shows it

    def _changes(self, node: ast.AST) -> Iterator[tuple[str, int, int, str, ast.AST]]:
        if isinstance(node, ast.Compare):
            yield from self._comparisons(node)
        elif isinstance(node, ast.BoolOp):
            was, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from self._between("comparison", left, right, was, new, node)
        elif isinstance(node, ast.UnaryOp):
            if isinstance(node.op, ast.Not | ast.USub) and not isinstance(node.operand, ast.Constant):
                operator = "sign" if isinstance(node.op, ast.USub) else "comparison"
                yield operator, *self._span(node), f"({self._of(node.operand)})", node
        elif isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
            if not any(_is_list(part) for part in (node.left, node.right)):
                was, new = SIGNS[type(node.op)]
                yield from self._between("sign", node.left, node.right, was, new, node)
        elif isinstance(node, ast.AugAssign) and type(node.op) in SIGNS and not _is_list(node.value):
            was, new = SIGNS[type(node.op)]
            yield from self._between("sign", node.target, node.value, was + "=", new + "=", node)
        elif isinstance(node, ast.Constant):
            yield from self._constants(node)
        elif isinstance(node, ast.Call):
            yield from self._calls(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            parent = self.parents[node]
            is_called = isinstance(parent, ast.Call) and node is parent.func
            if node.attr in COSTS and not is_called and not isinstance(parent, ast.Attribute | ast.Starred):
                yield "charge", *self._span(node), f"({self._of(node)} / 2)", self._phrase(node)
        if isinstance(node, ast.stmt):
            yield from self._statements(node)

    def _comparisons(self, node: ast.Compare) -> Iterator[tuple[str, int, int, str, ast.AST]]:
        operands = [node.left, *node.comparators]
        for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
            was, news = COMPARED[type(op)]
            for new in news:
                yield from self._between("comparison", left, right, was, new, node)

    def _constants(self, node: ast.Constant) -> Iterator[tuple[str, int, int, str, ast.AST]]:
        parent = self.parents[node]
        if isinstance(parent, ast.keyword) and parent.arg in FLAGS:
            return
        value = node.value
        if isinstance(value, bool):
            yield "constant", *self._span(node), str(not value), self._phrase(node)
        elif isinstance(value, int):
            yield "constant", *self._span(node), str(value + 1), self._phrase(node)
        elif isinstance(value, float) and value not in (0.0, float("inf")):
            yield "constant", *self._span(node), repr(value * 2), self._phrase(node)

    def _calls(self, node: ast.Call) -> Iterator[tuple[str, int, int, str, ast.AST]]:
        name = _name(node.func)
        plain = [arg for arg in node.args if not isinstance(arg, ast.Starred)]
        if len(plain) == len(node.args):
            for left, right in itertools.pairwise(plain):
                if ast.dump(left) != ast.dump(right) and name not in ("isinstance", "max", "min", "getattr", "setattr"):
                    begin, end = self._span(left)[0], self._span(right)[1]
                    gap = self.source[self._span(left)[1] : self._span(right)[0]].decode()
                    if gap.strip() == ",":
                        yield "arguments", begin, end, self._of(right) + gap + self._of(left), node
        if isinstance(node.func, ast.Name) and name in ("min", "max") and len(node.args) > 1:
            yield "comparison", *self._span(node.func), "max" if name == "min" else "min", node
        if name in PAID and len(plain) > 1:
            for left, right in itertools.pairwise(plain):
                yield "charge", self._span(left)[1], self._span(right)[1], "", node
        if name in EVENTS and plain and plain[0] is node.args[0]:
            yield "charge", *self._span(plain[0]), f"({self._of(plain[0])}) / 2", node
        if name == "cost" and isinstance(node.func, ast.Attribute) and node.args:
            yield "charge", *self._span(node), f"({self._of(node)} / 2)", node
        for keyword in node.keywords:
            if keyword.arg in HALVED and not GUARDS.search(name) and not isinstance(keyword.value, ast.Constant):
                yield "charge", *self._span(keyword.value), f"({self._of(keyword.value)}) / 2", node
            if (
                keyword.arg in FLAGS
                and isinstance(keyword.value, ast.Constant)
                and isinstance(keyword.value.value, bool)
            ):
                yield "privilege", *self._span(keyword.value), str(not keyword.value.value), node
        if isinstance(node.func, ast.Attribute) and name == "copy" and not node.args:
            yield "privilege", *self._span(node), self._of(node.func.value), node
        elif name in VIEWS and len(node.args) == 1 and not isinstance(node.args[0], ast.GeneratorExp | ast.Starred):
            yield "privilege", *self._span(node), f"({self._of(node.args[0])})", node
        elif name == "isinstance":
            yield "privilege", *self._span(node), "True", node

    def _statements(self, node: ast.stmt) -> Iterator[tuple[str, int, int, str, ast.AST]]:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            name = _name(node.value.func)
            if name not in SILENT_CALLS and not self._is_super(node.value):
                kind = "charge" if name in PAID else "privilege" if GUARDS.search(name) else "statement"
                yield kind, *self._span(node), "pass", node
        elif isinstance(node, ast.AugAssign):
            yield "statement", *self._span(node), "pass", node
        elif isinstance(node, ast.Assign) and all(isinstance(t, ast.Attribute | ast.Subscript) for t in node.targets):
            function = self._function(node)
            if function is None or function.name not in ("__init__", "__post_init__", "__new__"):
                yield "statement", *self._span(node), "pass", node
        elif (
            isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and not node.orelse
        ):
            begin, end = self._span(node.test)
            yield "privilege", begin, end, "False", node.test
        elif isinstance(node, ast.With):
            for item in node.items:
                if item.optional_vars is None and LOCKS.search(ast.unparse(item.context_expr)):
                    yield (
                        "privilege",
                        *self._span(item.context_expr),
                        '__import__("contextlib").nullcontext()',
                        item.context_expr,
                    )
        elif isinstance(node, ast.ClassDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call):
                    yield from self._calls(decorator)

    def _is_super(self, call: ast.Call) -> bool:
        return ast.unparse(call.func) == "super().__init__"

    # Where things are

    def _span(self, node: ast.AST) -> tuple[int, int]:
        begin = self.starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return begin, self.starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def _of(self, node: ast.AST) -> str:
        begin, end = self._span(node)
        return self.source[begin:end].decode()

    def _between(
        self, operator: str, left: ast.AST, right: ast.AST, was: str, new: str, shown: ast.AST
    ) -> Iterator[tuple[str, int, int, str, ast.AST]]:
        begin, end = self._span(left)[1], self._span(right)[0]
        gap = self.source[begin:end].decode()
        if gap.count(was) == 1 and "#" not in gap:
            yield operator, begin, end, gap.replace(was, new), shown

    def _function(self, node: ast.AST) -> ast.FunctionDef | None:
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, ast.FunctionDef):
                return node
        return None

    def _phrase(self, node: ast.AST) -> ast.AST:
        """Return the expression around a constant, which alone says nothing."""
        parent = self.parents[node]
        while isinstance(parent, ast.keyword | ast.Slice | ast.Tuple | ast.UnaryOp | ast.Starred):
            parent = self.parents[parent]
        return (
            parent if isinstance(parent, ast.expr | ast.Assign | ast.AnnAssign | ast.Return | ast.AugAssign) else node
        )

    def _where(self, node: ast.AST) -> str:
        names = []
        while node in self.parents:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.append(node.name)
            node = self.parents[node]
        return ".".join(reversed(names))

    def _site(self, operator: str, begin: int, end: int, new: str, shown: ast.AST) -> Iterator[Site]:
        first, last = self._span(shown)
        statement = shown
        while not isinstance(statement, ast.stmt):
            statement = self.parents[statement]
        head = range(
            statement.lineno,
            (statement.body[0].lineno if hasattr(statement, "body") else (statement.end_lineno or 0) + 1),
        )
        lines = tuple(sorted({self._line(begin), self._line(end - 1)}))
        where = self._where(shown)
        old = _plain(self.source[first:last].decode())
        became = _plain((self.source[first:begin] + new.encode() + self.source[end:last]).decode())
        if old != became:
            yield Site(
                self.file, where, operator, old, became, begin, end, new,
                lines, tuple(head) or (statement.lineno,), self._named(statement, where),
            )  # fmt: skip

    def _line(self, offset: int) -> int:
        return bisect.bisect_right(self.starts, offset)

    def _named(self, statement: ast.stmt, where: str) -> tuple[str, ...]:
        """Return the name that others use: of its constant, or of its function and class."""
        targets = (
            statement.targets
            if isinstance(statement, ast.Assign)
            else [statement.target]
            if isinstance(statement, ast.AnnAssign)
            else []
        )
        if (where and self._function(statement) is not None) or isinstance(statement, ast.FunctionDef):
            return tuple(reversed(where.split(".")))
        return tuple(name for name in (*(_name(t) for t in targets), *reversed(where.split("."))) if name)


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        return _name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_list(node: ast.AST) -> bool:
    """Return True for a list or a text, which have no sign."""
    if isinstance(node, ast.IfExp):
        return _is_list(node.body) or _is_list(node.orelse)
    if isinstance(node, ast.BinOp):
        return _is_list(node.left) or _is_list(node.right)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | bytes)
    return isinstance(node, ast.List | ast.ListComp | ast.Tuple | ast.JoinedStr)


def _plain(text: str) -> str:
    """Return the text without its formatting."""
    try:
        return ast.unparse(ast.parse(f"({text}\n)", mode="eval"))
    except SyntaxError:
        try:
            return ast.unparse(ast.parse(text))
        except SyntaxError:
            return " ".join(text.split())
