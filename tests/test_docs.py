"""The pages tell the truth: their examples run as printed, and what they name is there."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import doc_pictures
import matplotlib
import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.demo import path as bundled
from hedgerow.errors import NotPrivateWarning

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
GUIDES = ("owner.md", "analyst.md")  # which tests/cli/test_guides.py walks through, one after the other
CODE = re.compile(r"^```(python|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
WITH_EXAMPLES = [page for page in PAGES if CODE.search(page.read_text()) and page.name not in GUIDES]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run_in_order_as_printed(page, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 100_000
    people = {"age": rng.integers(17, 90, n), "sex": rng.choice(["F", "M"], n), "smoker": rng.random(n) < 0.3}
    pd.DataFrame(people).to_csv("people.csv", index=False)  # the reader's own table
    pd.read_parquet(bundled()).to_csv("visits.csv", index=False)  # as `hedgerow demo --table visits.csv` writes it
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotPrivateWarning)  # a page does nothing that is not private
        for kind, block in CODE.findall(page.read_text()):
            if kind == "sh":
                doc_pictures.run_shell(block)
            else:
                exec(compile(block, page.name, "exec", dont_inherit=True), names)
    plt.close("all")


def test_the_commands_of_the_readme_run_in_order_as_printed(tmp_path) -> None:
    """From a folder with nothing in it, but for what its Python leaves, which the test above runs."""
    readme = (ROOT / "README.md").read_text()
    commands = [line.split("#")[0].strip() for line in re.findall(r"^    (hedgerow .*)$", readme, re.MULTILINE)]
    commands = [line.partition("   ")[0] for line in commands if "serve" not in line]
    assert commands[0] == "hedgerow demo --table visits.csv" and len(commands) == 7
    environment = {**os.environ, "HEDGEROW_LEDGER_KEY_FILE": str(tmp_path / "key"), "COLUMNS": "120"}

    def run(line: str) -> str:
        _, *words = shlex.split(line)
        more = ["--yes"] if words[0] in ("init", "open") else []
        given = [sys.executable, "-m", "hedgerow.cli", *words, *more]
        done = subprocess.run(given, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (line, done.stderr)
        return done.stdout

    said = [run(line) for line in commands if "visits.hedgerow" not in line]
    assert "20,190" in said[0] and (tmp_path / "hedgerow.toml").exists() and "mean('visits')" in said[-1]


def test_the_pages_with_examples_are_found() -> None:
    assert {"README.md", "answers.md", "architecture.md", "erm.md", "reading.md", "wire.md"} <= {
        page.name for page in WITH_EXAMPLES
    }


def test_the_api_reference_is_what_the_code_says(tmp_path) -> None:
    spec = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    assert spec is not None and spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    assert reference.written() == (DOCS / "api.md").read_text(), "run `make docs`"


def test_the_api_reference_has_every_public_name_and_nothing_else() -> None:
    told = set(re.findall(r"^### `([\w.]+)", (DOCS / "api.md").read_text(), re.MULTILINE))
    public = {name for name in hr.__all__ if not isinstance(getattr(hr, name), ModuleType)}
    for module in (hr.losses, hr.erm, hr.estimators, hr.serialize, hr.audit, hr.unsafe):
        public |= {name for name in module.__all__}
    assert told == public


ARCHITECTURE = (DOCS / "architecture.md").read_text()
PACKAGE = ROOT / "src" / "hedgerow"


def modules_of(room: str) -> set[str]:
    """Return the modules and folders of a room, and of the engine those of its folders too."""
    paths = [path for path in (PACKAGE / room).rglob("[!_]*") if "__pycache__" not in path.parts]
    kept = [path for path in paths if room == "engine" or path.parent == PACKAGE / room]
    return {path.stem for path in kept if path.suffix == ".py" or path.is_dir()}


def modules_named(room: str) -> set[str]:
    """Return the modules that the architecture page lists for a room."""
    found = re.search(rf"^- \*\*{room}/\*\*(.*?)(?=^- \*\*|^### )", ARCHITECTURE, re.MULTILINE | re.DOTALL)
    assert found is not None, room
    return {Path(name).name for name in re.findall(r"`([\w/]+)`", found[1])}


@pytest.mark.parametrize("room", sorted(path.parent.name for path in PACKAGE.glob("[!_]*/__init__.py")))
def test_the_architecture_page_lists_the_modules_of_a_room_and_no_others(room) -> None:
    assert modules_named(room) == modules_of(room)


def test_the_architecture_page_names_every_module_at_the_top() -> None:
    top = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert {name for name in top if f"`{name}`" not in ARCHITECTURE} == set()


def test_each_place_that_the_architecture_page_names_is_in_its_file() -> None:
    listed = ARCHITECTURE.partition("## Find it by name")[2].partition("\n## ")[0]
    places = re.findall(r"`([\w/]+\.py)`(?:: ((?:`[\w.]+`(?:, )?)+))?", listed)
    assert len(places) >= 10
    for file, names in places:
        tree = ast.parse((PACKAGE / file).read_text())
        for name in re.findall(r"[\w.]+", names):
            scope: Any = tree
            for part in name.split("."):
                scope = next(node for node in scope.body if getattr(node, "name", None) == part)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_a_page_names_is_there(page) -> None:
    """Files by their path from the root, or inside the package."""
    named = set(re.findall(r"`((?:[\w]+/)+[\w]+\.(?:py|md))`", page.read_text()))
    places = (ROOT, ROOT / "src", ROOT / "src" / "hedgerow", DOCS)
    assert {name for name in named if not any((place / name).exists() for place in places)} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_between_pages_leads_somewhere(page) -> None:
    links = re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
