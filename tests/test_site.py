"""The site has every page, its code and data are checked by programs, and it loads nothing from elsewhere."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
import site_pages
import typer

from hedgerow._extras import EXTRAS
from hedgerow.cli import app

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
KINDS = {"python", "sh", "toml", "json", "text", "bash", "pycon", "py"}
ELSEWHERE = {
    "service.md": 2,
    "spark.md": 1,
}  # indented Python, run by tests/server/test_remote.py and tests/data/test_spark.py


def blocks(page: Path, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def indented(page: Path) -> list[str]:
    """Return the indented blocks of a page: lines after a blank line that begin with four blanks, outside of lists and code."""
    found: list[list[str]] = []
    for prose, is_code in site_pages.parts(page.read_text()):
        before, is_list = "", False
        for line in [] if is_code else prose.split("\n"):
            if line.strip() and not line.startswith(" "):
                is_list = bool(site_pages.ITEM.match(line))
            if line.startswith("    ") and not is_list:
                if not before.startswith("    "):
                    found.append([])
                found[-1].append(line[4:])
            before = line
    return ["\n".join(lines) for lines in found]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    ran = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr  # dead links, pages that are in no menu, and outside requests are warnings
    return folder


def test_the_site_builds_without_a_warning_and_has_every_page(built: Path) -> None:
    pages = {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.md")}
    expected = {re.sub(r"README\.html$", "index.html", page) for page in pages}
    made = {path.relative_to(built).as_posix() for path in built.rglob("*.html")}
    assert made == {
        *expected,
        "404.html",
        "changelog.html",
        "contributing.html",
        "security.html",
        "examples.html",
        "regressions.html",
    }
    searched = json.loads((built / "search" / "search_index.json").read_text())["docs"]
    assert {each["location"].partition("#")[0] for each in searched} >= expected - {"index.html"}


def test_no_page_and_no_style_loads_anything_from_elsewhere(built: Path) -> None:
    for page in built.rglob("*.html"):
        assert site_pages.loaded_from_elsewhere(page.read_text()) == []
    for style in built.rglob("*.css"):
        assert not re.search(r"@import|url\([\"']?(?:https?:)?//", style.read_text())
    assert site_pages.loaded_from_elsewhere('<script src="https://x.org/a.js">') == ["https://x.org/a.js"]
    assert site_pages.loaded_from_elsewhere("<link href=//x.org/a.css>") == ["//x.org/a.css"]


def test_the_site_is_searched_without_a_server(built: Path) -> None:
    """A page that is opened from a folder may fetch nothing: the index is a script, and so is what stands for a worker."""
    assert (built / "search" / "search_index.js").read_text().startswith("var __index = {")
    assert '<script src="iframe-worker.js">' in (built / "index.html").read_text()
    assert "IFrameWorker" in (built / "iframe-worker.js").read_text()


def test_stars_of_formulas_are_no_emphasis() -> None:
    assert site_pages.plain_stars("‖v − θ*‖ ≤ ‖g‖_{Q*}, *so*.") == r"‖v − θ\*‖ ≤ ‖g‖_{Q\*}, *so*."
    assert site_pages.plain_stars("2**-20 to 32*2**5, *so* and `a**b`") == r"2\*\*-20 to 32\*2\*\*5, *so* and `a**b`"


def test_lists_and_links_become_those_of_the_site() -> None:
    assert site_pages.spaced_lists("Two:\n- a\n  b\n- c") == "Two:\n\n- a\n    b\n- c"
    assert site_pages.spaced_lists("| `&`, `\\|` |") == "| `&`, `|` |"
    assert site_pages.relocate("[a](../README.md) [b](../tests/x.py) ![c](d.png)", "docs", "") == (
        "[a](README.md) b ![c](d.png)"
    )
    assert site_pages.relocate("[a](docs/sql.md#b)", "", "") == "[a](sql.md#b)"
    assert site_pages.relocate("[a](../errata.md)", "docs", "proofs") == "[a](../errata.md)"
    assert site_pages.relocate("```text\n[a](../README.md)\n```", "docs", "") == "```text\n[a](../README.md)\n```"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_of_a_kind_that_some_test_runs_or_reads(page: Path) -> None:
    kinds = {kind for kind in re.findall(r"^```(\w*)$", page.read_text(), re.MULTILINE) if kind}
    assert kinds <= KINDS
    for text in blocks(page, "toml"):
        tomllib.loads(text)
    for text in blocks(page, "json"):
        json.loads(text)
    is_proof = page.parent.name == "proofs"  # equations
    python = [text for text in indented(page) if re.search(r"^\w+ = |^import ", text, re.MULTILINE) and not is_proof]
    assert len(python) == ELSEWHERE.get(page.name, 0), python
    for text in python:
        compile(text, page.name, "exec")


def commands(page: Path) -> list[str]:
    """Return the commands of hedgerow that a page shows in indented blocks."""
    lines = "\n".join(indented(page)).replace("\\\n", " ").splitlines()
    return [line.partition("| ")[2] or line for line in lines if re.match(r"(echo .* \| )?hedgerow ", line)]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.name)
def test_every_command_that_a_page_shows_is_one(page: Path) -> None:
    """Commands and their options exist. They are not run: they would serve, wait, or read files of the reader."""
    for line in commands(page):
        _, *words = shlex.split(line.replace("…", "x"), comments=True)
        command: Any = typer.main.get_command(app)
        while hasattr(command, "commands") and words and not words[0].startswith("-"):
            assert words[0] in command.commands, line
            command = command.commands[words.pop(0)]
        known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | {"--help"}
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known, line


def test_the_tutorial_runs_from_a_plain_install_within_three_minutes(tmp_path: Path) -> None:
    """Libraries of the extras cannot be imported, as after a plain install; the lines that draw are left out."""
    code = "\n".join(blocks(DOCS / "tutorial.md", "python"))
    plain = "\n".join(line for line in code.splitlines() if ".plot()" not in line)
    assert len(plain.splitlines()) == len(code.splitlines()) - 4
    missing = "".join(f"sys.modules[{library!r}] = None\n" for library in EXTRAS)
    table = "from hedgerow.cli import app\napp(['demo', '--table', 'visits.csv'], standalone_mode=False)\n"
    script = tmp_path / "tutorial.py"
    script.write_text(f"import sys\n{missing}{table}{plain}\n")
    started = time.monotonic()
    ran = subprocess.run([sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, timeout=180)
    assert ran.returncode == 0, ran.stderr
    assert time.monotonic() - started < 180
    assert "spent in all: ε" in ran.stdout and (tmp_path / "report.html").exists()


def test_tables_of_the_comparison_are_those_of_the_benchmarks() -> None:
    text, counts = (DOCS / "comparison.md").read_text(), (DOCS / "benchmarks.md").read_text()
    for line in re.findall(r"^\| (100|1,000|10,000|100,000) \|(.*)\|$", text, re.MULTILINE):
        told = [float(cell) for cell in line[1].split("|")]
        found = [
            float(cell)
            for method in ("hedgerow", "Gaussian noise per query")
            for cell in re.search(rf"^\| {method} \| {line[0]} \| (\S+) \| (\S+) \|$", counts, re.MULTILINE).groups()  # type: ignore[union-attr]
        ]
        assert told == [pytest.approx(value, abs=0.6e-4) for value in found]
    for epsilon in ("0.1", "1", "10"):
        row = re.search(rf"^\| {re.escape(epsilon)} \| (.*) \|$", text, re.MULTILINE)
        ours = re.search(rf"^\| hedgerow \| {re.escape(epsilon)} \| (\S+) \| (\S+) ", counts, re.MULTILINE)
        noise = re.search(
            rf"^\| Gaussian noise \+ simplex \| {re.escape(epsilon)} \| (\S+) \| (\S+) ", counts, re.MULTILINE
        )
        assert row and ours and noise
        told = [float(cell) for cell in row[1].split(" | ")]
        found = [float(ours[1]), float(noise[1]), float(ours[2]), float(noise[2])]
        assert told == [pytest.approx(value, abs=0.6e-3) for value in found]
