"""Every name that a benchmark imports exists, since benchmarks themselves run rarely."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parent.parent / "benchmarks").glob("*.py"))


def missing(script: str) -> list[str]:
    """Return the names that a script imports from the package although they do not exist."""
    found = []
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "hedgerow":
            for name in node.names:
                try:
                    if not hasattr(importlib.import_module(node.module or ""), name.name):
                        importlib.import_module(f"{node.module}.{name.name}")
                except ModuleNotFoundError as unknown:
                    if not (unknown.name or "").startswith("hedgerow"):
                        raise
                    found.append(f"{node.module}.{name.name}")
    return found


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_every_import_of_a_benchmark_exists(script: Path) -> None:
    assert missing(script.read_text()) == []


def test_missing_objects_are_noticed() -> None:
    assert missing("from hedgerow.no_such import thing\nfrom hedgerow import nothing_of_that_name") == [
        "hedgerow.no_such.thing",
        "hedgerow.nothing_of_that_name",
    ]
