"""The guides run as printed: the owner's from a CSV file to a report, then the analyst's on the same desk."""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hedgerow.cli import app
from hedgerow.errors import NotPrivateWarning

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def walked(page: str, names: dict[str, Any]) -> str:
    """Run the commands of a page, each of which must succeed, and return their output."""
    said = ""
    for kind, text in BLOCK.findall((DOCS / page).read_text()):
        if kind == "toml":
            Path("codebook.toml").write_text(text)
        elif kind == "python":
            exec(compile(text, page, "exec", dont_inherit=True), names)
        elif kind == "sh":
            for line in text.strip().splitlines():
                program, *command = shlex.split(line, comments=True)
                assert program == "hedgerow"
                ran = CliRunner().invoke(app, command)
                assert ran.exit_code == 0, (line, ran.output)
                said += ran.output
    return said


def test_the_guides_run_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotPrivateWarning)  # a page does nothing that is not private
        said = walked("owner.md", names)
        assert (
            "NOT PRIVATE" not in said
            and "ana may spend up to ε = 0.3" in said
            and "lines, all as they were written" in said
        )
        assert (tmp_path / "report.html").read_text().count("<tr>") > 20 and (tmp_path / "synthetic.csv").exists()
        said = walked("analyst.md", names)
    assert "linear model of visits" in said and (tmp_path / "answers.html").exists()
    assert names["session"].spent <= names["session"].budget.total


def test_the_page_of_commands_has_every_command_option_of_the_file_and_status() -> None:
    from hedgerow.cli import file, output

    page = (DOCS / "cli.md").read_text()
    commands = {command.name for command in app.registered_commands}
    assert {name for name in commands if not re.search(rf"`[^`]*\b{name}\b", page)} == set()
    for key in (*file.KEYS, *file.OPTIONS):
        assert re.search(rf"\b{key}\b", page), key
    codes = (
        output.FAILED,
        output.INPUT,
        output.BUDGET,
        output.LEDGER,
        output.DATA,
        output.UNEXPECTED,
        output.INTERRUPTED,
    )
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)] == [0, *codes]
