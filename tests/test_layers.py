"""The folder listing is the architecture: imports point down only, and randomness is drawn in one module."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "hedgerow"

LAYERS = [
    {"errors", "_types", "_checks", "_compiled", "_progress"},
    {"privacy", "questions"},
    {"data", "convex", "losses"},
    {"model"},
    {"textbook"},
    {"engines", "erm"},
    {"session", "estimators"},
    {"demo", "cli"},
]
BESIDE = {"audit", "bench", "__init__", "__main__"}
NARROW = {"erm": LAYERS[0] | {"privacy", "convex", "losses"}}  # sees less than what is below it
HEIGHT = {room: height for height, rooms in enumerate(LAYERS) for room in rooms}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """What a file imports from hedgerow, by its full name; inside functions and for types too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "hedgerow":
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("hedgerow.")}
    return found


def rooms_of(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imported(path)}


def test_every_module_has_a_layer() -> None:
    assert {room_of(p) for p in modules()} - set(HEIGHT) - BESIDE == set()


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down(path) -> None:
    mine = room_of(path)
    if mine in BESIDE:
        return
    below = NARROW.get(mine, {room for room in HEIGHT if HEIGHT[room] <= HEIGHT[mine]})
    allowed = BESIDE if mine in LAYERS[-1] else set()  # the demo may show true errors: its table is public
    assert rooms_of(path) - below - allowed - {mine} == set()


def module_of(name: str) -> Path | None:
    """The file of a name: of a module itself, or of the one that has it."""
    for parts in (name.split(".")[1:], name.split(".")[1:-1]):
        for path in (SOURCE.joinpath(*parts).with_suffix(".py"), SOURCE.joinpath(*parts, "__init__.py")):
            if parts and path.exists():
                return path
    return None


ROOMS = sorted({room_of(p) for p in modules() if p.parent != SOURCE})
CIRCULAR = pytest.mark.xfail(reason="practical/engine and practical/convex know each other")


@pytest.mark.parametrize("room", [pytest.param(r, marks=CIRCULAR) if r == "engines" else r for r in ROOMS])
def test_no_two_modules_of_a_room_import_each_other(room) -> None:
    """Not even in a circle of more. A door, __init__, may import what it shows."""
    inside = [p for p in (SOURCE / room).rglob("*.py") if p.name != "__init__.py"]
    graph = {p: {module_of(name) for name in imported(p)} & set(inside) for p in inside}
    graphlib.TopologicalSorter(graph).prepare()


def test_a_circle_is_found() -> None:
    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter({"a": {"b"}, "b": {"c"}, "c": {"a"}}).prepare()
    assert (
        module_of("hedgerow.privacy.noise.Noise") == module_of("hedgerow.privacy.noise") == SOURCE / "privacy/noise.py"
    )


def test_the_lint_rule_finds_randomness_outside_its_module(tmp_path) -> None:
    ruff = Path(sys.executable).parent / "ruff"
    offender = "import os\nimport numpy as np\n\nKEY = os.urandom(8)\nRNG = np.random.default_rng(0)\n"
    config = str(SOURCE.parent.parent / "pyproject.toml")
    ran = subprocess.run(
        [ruff, "check", "--config", config, "--stdin-filename", str(SOURCE / "session.py"), "-"],
        input=offender, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.stdout.count("Draw through hedgerow.privacy.noise.") == 2
    allowed = subprocess.run(
        [ruff, "check", "--config", config, "--stdin-filename", str(SOURCE / "privacy" / "noise.py"), "-"],
        input=offender, capture_output=True, text=True,
    )  # fmt: skip
    assert "Draw through" not in allowed.stdout
