"""The folder listing is the architecture: imports point down only, and randomness is drawn in one module."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "hedgerow"

LAYERS = [
    {"errors", "universe", "linear", "queries", "workloads", "experts"}
    | {"convex_set", "norm_balls", "potentials", "geometry", "features", "glm", "custom", "risk", "losses", "minimize"},
    {"process", "noise", "uniforms", "events", "accounting", "bounds"},
    {"hypothesis", "junction_tree", "triangulation", "folds", "kernels"} | {"data", "coding", "sources", "csv_file"},
    {"sparse_vector", "rows", "pmw", "theory", "mwem", "small_db", "games", "solver", "oracles", "convex_pmw", "erm"}
    | {"weighted", "certificate", "first_order", "minimiser", "excess", "sums", "convex_offline"}
    | {"measurements", "evidence", "fit", "selection", "practical", "practical_convex"},
    {"session", "estimators"},
    {"demo", "cli"},
]
BESIDE = {"audit", "bench", "__init__", "__main__"}
HEIGHT = {module: height for height, modules in enumerate(LAYERS) for module in modules}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The hedgerow modules a file imports, inside functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "hedgerow":
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("hedgerow.")}
    return found


def test_every_module_has_a_layer() -> None:
    assert {name_of(p) for p in modules()} - set(HEIGHT) - BESIDE == set()


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down(path) -> None:
    mine = name_of(path)
    if mine in BESIDE:
        return
    upward = {other for other in imported(path) if HEIGHT.get(other, len(LAYERS)) > HEIGHT[mine]}
    allowed = BESIDE if mine in LAYERS[-1] else set()  # the demo may show true errors: its table is public
    assert upward - allowed - {mine} == set()


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
        [ruff, "check", "--config", config, "--stdin-filename", str(SOURCE / "noise.py"), "-"],
        input=offender, capture_output=True, text=True,
    )  # fmt: skip
    assert "Draw through" not in allowed.stdout
