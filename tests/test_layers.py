"""The folder listing is the architecture: imports point down, privates stay at home, randomness is drawn in one module.

Each rule is a function of a source tree, so that a small tree that breaks it shows that the rule can fail.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "hedgerow"

HELPERS = {
    "_checks",
    "_compiled",
    "_deprecated",
    "_duration",
    "_extras",
    "_html",
    "_numbers",
    "_json",
    "_renamed",
    "_memory",
    "_progress",
    "_registry",
    "_scipy",
    "_spill",
    "_threads",
    "_truth",
    "_types",
    "errors",
}
LAYERS = [  # a module sees the layers above it in this list, and its own folder
    {"errors"},
    HELPERS - {"errors"},
    {"privacy", "universe"},
    {"query"},
    {"data", "convex"},
    {"losses"},  # the public names of convex/losses
    {"model", "drafting"},
    {"textbook"},
    {"engine", "erm", "generalise"},
    {"display"},
    {"answer"},
    {"serialize"},  # the forms of all that is below
    {"sql", "ledger"},
    {"report"},
    {"answering"},
    {"release_file"},
    {"session", "profiles"},
    {"opening"},
    {"estimators", "wire", "planning"},
    {"client"},
    {"hedgerow"},  # the public names
    {"demo"},
    {"assistants"},
    {"server"},
    {"console"},
    {"cli"},
    {"__main__"},
]
SEES_ONLY = {  # and the helpers
    "query": {"universe"},
    "erm": {"privacy", "convex"},
    "generalise": {"privacy", "query", "textbook", "universe"},
    "sql": {"query", "universe"},
    "ledger": {"privacy", "query", "serialize", "universe"},
}
SEES_ALSO = {
    "erm": {
        "hedgerow.data.contributions",  # which rows of a person stay
        "hedgerow.data.spark_frame",  # how a cluster hands over rows
        "hedgerow.data.schema",  # engine errors stay hidden
        "hedgerow.data.row_store",  # rows by their number, for descent by statistical queries
        "hedgerow.textbook.descent_by_queries",
    },
}
SHORTCUTS = {("hedgerow.universe.universe", "hedgerow.drafting.draft")}
"""The only imports that point up: ``Universe.draft`` and ``Universe.from_schema`` call ``hr.drafting`` by another name."""
BESIDE = {"audit", "research", "unsafe"}  # they see everything, and are seen by few
SEES_BESIDE = {
    "demo": {"unsafe"},
    "planning": {"unsafe"},
    "hedgerow": {"audit", "unsafe"},
    "cli": {"audit", "research"},
    "console": {"research", "unsafe"},
}  # a demo's, a tour's and a plan's rows are public
DOORS_TO_RESEARCH = {
    "cli",
    "console",
    "research",
    "hedgerow.audit.__main__",
}  # rooms or modules; the product does without
BY_TEXT = (
    "__init__.py",
    "_deprecated.py",
    "erm/__init__.py",
    "textbook/__init__.py",
)  # doors, which import a public or a former name by its text
HEIGHT = {room: height for height, rooms in enumerate(LAYERS) for room in rooms}

KINDS = {"universe": "Attribute", "query": "Query", "convex": "Loss"}  # by folder, the base of the kinds in it
TELL_KINDS_APART = {
    "hedgerow.data.coding",  # a rule for each kind of attribute
    "hedgerow.data.owner_inspection",
    "hedgerow.data.row_store",
    "hedgerow.data.schema",
    "hedgerow.query.statistics.groups",
    "hedgerow.query.statistics.histograms",
    "hedgerow.query.wording",
    "hedgerow.query.workloads",
    "hedgerow.answering.released_session",
    "hedgerow.answering.summary",
    "hedgerow.assistants.asking",
    "hedgerow.console.exploration",
    "hedgerow.console.recipes",
    "hedgerow.demo",
    "hedgerow.display.report_page",
    "hedgerow.erm.solvers.whitened_descent",  # its steps are one loss's each
    "hedgerow.planning.lower_bounds",
    "hedgerow.server.questions",
    "hedgerow.server.worker",  # a count of few predicates is quick
}
"""The modules outside of a kind's folder that still test of which kind an object is. No module may join them."""

# What others' libraries document under a private name, or have under no other.
DOCUMENTED = {
    "_replace",  # of named tuples
    "_getframe",  # of sys
    "_jvm",  # of PySpark: the only way to the driver's own loggers
    "_run_pre_execute_hooks",  # of Ibis: what its own ways to run a query call first
}


def modules(root: Path) -> dict[str, Path]:
    """Every module of the tree by its dotted name; a folder's is that of its ``__init__``."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = [root.name, *path.relative_to(root).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room_of(module: str) -> str:
    """The folder or the single file under hedgerow that a module is in."""
    return module.split(".")[1] if "." in module else module


def parsed(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a module, of a text that is parsed once."""
    return _nodes(path.read_text())


@functools.cache
def _nodes(text: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(text)))


def imports(root: Path) -> dict[str, set[str]]:
    """The modules of the tree that each module imports, within functions and under TYPE_CHECKING too."""
    known = modules(root)
    found: dict[str, set[str]] = {}
    for module, path in known.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        named: set[str] = set()
        for node in parsed(path):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                start = ".".join([*above, *([node.module] if node.module else [])])
                whole = {f"{start}.{alias.name}" for alias in node.names}
                named |= (whole & set(known)) | ({start} if whole - set(known) else set())
        found[module] = {name for name in named if name.split(".")[0] == root.name}
    return found


def downward(root: Path) -> dict[str, set[str]]:
    """The imports without the shortcuts."""
    return {
        module: {other for other in others if (module, other) not in SHORTCUTS}
        for module, others in imports(root).items()
    }


def upward_imports(root: Path) -> list[str]:
    offenders = []
    for module, others in downward(root).items():
        mine = room_of(module)
        for other in sorted(others):
            room = room_of(other)
            if room == "research" and not {mine, module} & DOORS_TO_RESEARCH:
                offenders.append(f"{module} imports {other}")
                continue
            if (
                room == mine
                or mine in BESIDE
                or room in SEES_BESIDE.get(mine, set())
                or other in SEES_ALSO.get(mine, ())
            ):
                continue
            lower = HEIGHT.get(room, len(LAYERS)) < HEIGHT.get(mine, -1)
            if not lower or not (room in HELPERS or room in SEES_ONLY.get(mine, {room})):
                offenders.append(f"{module} imports {other}")
    return offenders


def cycles(root: Path) -> list[str]:
    try:
        list(graphlib.TopologicalSorter(downward(root)).static_order())
    except graphlib.CycleError as found:
        return [" imports ".join(reversed(found.args[1]))]
    return []


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def own_privates(nodes: tuple[ast.AST, ...]) -> set[str]:
    """The private attributes that the classes of a module define: in their body, or on self or cls."""
    found: set[str] = set()
    for outer in nodes:
        if not isinstance(outer, ast.ClassDef):
            continue
        for node in outer.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            found |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for node in ast.walk(outer):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and on_self(node):
                found.add(node.attr)
            elif isinstance(node, ast.Call) and is_set_on_a_frozen_one(node.func):
                found.add(ast.literal_eval(node.args[1]) if isinstance(node.args[1], ast.Constant) else "")
    return found


def is_set_on_a_frozen_one(called: ast.expr) -> bool:
    return isinstance(called, ast.Attribute) and called.attr == "__setattr__" and ast.unparse(called.value) == "object"


def on_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def private_uses(path: Path) -> Iterator[tuple[int, str]]:
    nodes = parsed(path)
    own = own_privates(nodes) | DOCUMENTED
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module != "hedgerow":  # whose helper modules are everybody's
            yield from ((node.lineno, f"import {alias.name}") for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "setattr"):
            name = node.args[1]
            if isinstance(name, ast.Constant) and is_private(str(name.value)) and name.value not in own:
                yield node.lineno, ast.unparse(node)


def imports_by_text(root: Path) -> list[str]:
    """Calls of ``import_module`` with the name of a module of the tree."""
    found = []
    for path in modules(root).values():
        for node in parsed(path):
            if not (isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__"))):
                continue
            if node.args and root.name in ast.unparse(node.args[0]):
                found.append(f"{path.relative_to(root)}:{node.lineno}")
    return found


def kinds_in(root: Path) -> dict[str, str]:
    """The classes derived from a base of ``KINDS``, without the base, with their folder."""
    bases: dict[str, dict[str, set[str]]] = {folder: {} for folder in KINDS}
    for module, path in modules(root).items():
        if room_of(module) in KINDS:
            for node in parsed(path):
                if isinstance(node, ast.ClassDef):
                    bases[room_of(module)][node.name] = {ast.unparse(base).split("[")[0] for base in node.bases}
    found: dict[str, str] = {}
    for folder, base in KINDS.items():
        derived = {base}
        while more := {name for name, above in bases[folder].items() if above & derived} - derived:
            derived |= more
        found |= dict.fromkeys(derived - {base}, folder)
    return found


def modules_that_test_kinds(root: Path) -> set[str]:
    """The modules that test, outside of its folder, of which kind an object is: by isinstance or by a pattern."""
    kinds, found = kinds_in(root), set()
    for module, path in modules(root).items():
        for node in parsed(path):
            named: list[ast.AST] = []
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                named = list(ast.walk(node.args[1]))
            elif isinstance(node, ast.MatchClass):
                named = [node.cls]
            names = [ast.unparse(each).removeprefix("hr.") for each in named]
            if any(kinds.get(name, room_of(module)) != room_of(module) for name in names):
                found.add(module)
    return found


def others_privates(root: Path) -> list[str]:
    files = modules(root).values()
    return [f"{path.relative_to(root)}:{line} {used}" for path in files for line, used in private_uses(path)]


def test_every_module_has_a_layer() -> None:
    assert {room_of(module) for module in modules(SOURCE)} - set(HEIGHT) - BESIDE == set()


def test_every_layer_has_a_module() -> None:
    listed = set(HEIGHT) | HELPERS | set(SEES_ONLY) | set(SEES_ALSO) | BESIDE | set(SEES_BESIDE)
    assert listed - {room_of(module) for module in modules(SOURCE)} == set()


def test_imports_point_down() -> None:
    assert upward_imports(SOURCE) == []


def test_every_shortcut_is_taken() -> None:
    every = imports(SOURCE)
    assert [shortcut for shortcut in SHORTCUTS if shortcut[1] not in every[shortcut[0]]] == []


def test_no_module_imports_itself_through_others() -> None:
    assert cycles(SOURCE) == []


def test_no_module_imports_another_by_a_text() -> None:
    """The rules above would not see such an import."""
    assert [found for found in imports_by_text(SOURCE) if not found.startswith(BY_TEXT)] == []


def test_kinds_are_told_apart_in_their_folder() -> None:
    assert modules_that_test_kinds(SOURCE) == TELL_KINDS_APART


@pytest.mark.parametrize(
    "text",
    ["isinstance(a, Flag)", "isinstance(a, str | hr.Flag)", "match a:\n    case Flag(): pass"],
)
def test_a_test_of_a_kind_outside_of_its_folder_is_found(text: str, tmp_path: Path) -> None:
    kinds = "class Attribute: ...\nclass Number(Attribute): ...\nclass Flag(Number): ...\n"
    root = tree(tmp_path, universe__attribute=f"{kinds}{text}", sql__parse=text, data__table="isinstance(a, Attribute)")
    assert modules_that_test_kinds(root) == {"hedgerow.sql.parse"}


def test_no_module_uses_what_another_keeps_private() -> None:
    assert others_privates(SOURCE) == []


def tree(folder: Path, **files: str) -> Path:
    """A small hedgerow: ``data__table="…"`` is its data/table.py."""
    for name, text in files.items():
        path = folder / "hedgerow" / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "hedgerow"


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("query__counts", "from hedgerow.privacy.noise import Noise"),  # beside each other
        ("query__counts", "from hedgerow.privacy import noise"),
        ("query__counts", "from ..privacy import noise"),
        ("query__counts", "import hedgerow.privacy.noise"),
        ("privacy__ledger", "if TYPE_CHECKING:\n    from hedgerow.data import Table"),
        ("privacy__ledger", "def f():\n    from hedgerow.data import Table"),
        ("privacy__ledger", "import hedgerow as hr"),
        ("privacy__ledger", "from hedgerow import Budget"),
        ("_types", "from hedgerow.privacy import noise"),
        ("erm__problem", "from hedgerow.data import Table"),
        ("sql__parse", "from hedgerow.privacy import noise"),
        ("engine__theory", "from hedgerow import unsafe"),
        ("engine__theory", "from hedgerow.serialize import encode"),  # states are plain data
        ("query__counts", "from hedgerow.serialize.registry import register"),
        ("demo__show", "from hedgerow.research.errata import ERRATA"),
        ("universe__dates", "from hedgerow.query import counts"),
        ("audit__exact", "from hedgerow.research.errata import ERRATA"),
        ("unsafe", "from hedgerow.research import errata"),
        ("unheard_of", "from hedgerow.privacy import noise"),
    ],
)
def test_an_import_that_points_up_is_found(where: str, text: str, tmp_path: Path) -> None:
    beside = {
        "privacy__noise": "",
        "data__table": "",
        "data____init__": "",
        "unsafe": "",
        "query__counts": "",
        "__init__": "",
        "research__errata____init__": "",
        "serialize____init__": "",
        "serialize__registry": "",
    }
    assert len(upward_imports(tree(tmp_path, **{**beside, where: text}))) == 1


def test_an_import_that_points_down_is_not_found(tmp_path: Path) -> None:
    root = tree(
        tmp_path, errors="", privacy__noise="from hedgerow.errors import InvalidInput", unsafe="import hedgerow",
        erm__auto="from hedgerow.privacy import noise\nfrom .problem import Problem", erm__problem="", __init__="",
        demo__show="from hedgerow.unsafe import unsafe_answer\nimport numpy",
        research__errata__page="from hedgerow.privacy import noise", cli="from hedgerow.research.errata import page",
    )  # fmt: skip
    assert upward_imports(root) == []


def test_a_cycle_inside_a_folder_is_found(tmp_path: Path) -> None:
    root = tree(
        tmp_path, data__table="from hedgerow.data.coding import Coder",
        data__coding="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from hedgerow.data import table",
    )  # fmt: skip
    assert sorted(cycles(root)[0].split(" imports ")[1:]) == ["hedgerow.data.coding", "hedgerow.data.table"]


@pytest.mark.parametrize(
    "text",
    [
        "from hedgerow.data.coding import _meaning",
        "import hedgerow.data.coding as c\nc._meaning(1)",
        "def f(session): return session._data",
        "def f(session): return getattr(session, '_data')",
        "class A(B):\n    def f(self): return self._inherited",
        "def _helper(): ...\ndef f(other): return other._helper",  # its own helper is no attribute of the other
    ],
)
def test_a_use_of_anothers_private_name_is_found(text: str, tmp_path: Path) -> None:
    assert len(others_privates(tree(tmp_path, data__table=text))) == 1


def test_an_import_by_a_text_is_found(tmp_path: Path) -> None:
    by_text = "import importlib\ndef f(name): return importlib.import_module(f'hedgerow.{name}')"
    root = tree(tmp_path, universe__universe=by_text, _extras="import importlib\nimportlib.import_module('numpy')")
    assert imports_by_text(root) == ["universe/universe.py:2"]


def test_a_use_of_ones_own_private_names_is_not_found(tmp_path: Path) -> None:
    text = """
from hedgerow import _progress
from hedgerow._types import Array
class A:
    _kept: int = 0
    def __init__(self): self._x = 1; object.__setattr__(self, "_y", 2)
    def __eq__(self, other): return self._x == other._x and other._y == other._kept and self._f()
    def _f(self): return self.__class__.__name__
def g(a): return a._f(), a._replace(), sys._getframe()
"""
    assert others_privates(tree(tmp_path, data__table=text)) == []


@pytest.mark.parametrize(
    ("file", "messages"), [("session.py", 2), ("privacy/noise.py", 0), ("privacy/conversion.py", 2), ("noise.py", 2)]
)
def test_the_lint_rule_finds_randomness_outside_its_module(file: str, messages: int) -> None:
    ruff = Path(sys.executable).parent / "ruff"
    offender = "import os\nimport numpy as np\n\nKEY = os.urandom(8)\nRNG = np.random.default_rng(0)\n"
    config = str(SOURCE.parent.parent / "pyproject.toml")
    ran = subprocess.run(
        [ruff, "check", "--config", config, "--stdin-filename", str(SOURCE / file), "-"],
        input=offender, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.stdout.count("Draw through hedgerow.privacy.noise.") == messages
