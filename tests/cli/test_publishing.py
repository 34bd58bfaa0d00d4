"""The command line publishes a session, verifies the file, and asks it without the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from desks import opened
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow.cli import app


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return opened(tmp_path_factory.mktemp("desk"))


def run(*command: str) -> Any:
    return CliRunner().invoke(app, list(command))


def test_a_published_file_is_asked_without_the_table(desk, tmp_path: Path) -> None:
    file = str(tmp_path / "people.hedgerow")
    said = desk.json("publish", file, "--answers", "none")
    assert said["digest"] == hr.load(file).digest and said["bytes"] == Path(file).stat().st_size
    asked = desk.json("ask", "count(smoker=True, age=(2, 4))", "mean('age')")
    ran = run("ask", "--file", file, "count(smoker=True, age=(2, 4))", "mean('age')", "--json")
    assert ran.exit_code == 0, ran.output
    import json

    theirs = json.loads(ran.stdout)
    assert [a["value"] for a in theirs["answers"]] == [a["value"] for a in asked["answers"]]
    assert [a["error"] for a in theirs["answers"]] == [a["error"] for a in asked["answers"]]
    for command in (
        ("sql", "SELECT sex, count(*) FROM data GROUP BY sex"),
        ("synth", "--rows", "10"),
        ("describe",),
        ("statement",),
        ("fit", "smoker", "age"),
        ("ledger", "report", "--out", str(tmp_path / "report.html")),
    ):
        ran = run(*command, "--file", file)
        assert ran.exit_code == 0, (command, ran.output)
    assert (tmp_path / "report.html").exists()


def test_a_file_is_verified_and_a_withdrawn_or_changed_one_is_refused(desk, tmp_path: Path) -> None:
    file, listed = tmp_path / "people.hedgerow", tmp_path / "withdrawn.txt"
    assert desk.run("publish", str(file)).exit_code == 0
    assert "whole" in run("verify", str(file)).output
    listed.write_text("# none\n")
    assert run("verify", str(file), "--withdrawn", str(listed)).exit_code == 0
    listed.write_text(f"{hr.load(file).digest}  # a column too many\n")
    assert run("verify", str(file), "--withdrawn", str(listed)).exit_code == 2
    file.write_bytes(file.read_bytes()[:-30])
    ran = run("verify", str(file))
    assert ran.exit_code == 2 and "as it was published" in ran.output


def test_a_release_refuses_unsupported_calls_in_a_sentence(desk, tmp_path: Path) -> None:
    file = tmp_path / "people.hedgerow"
    assert desk.run("publish", str(file)).exit_code == 0
    for command in (
        ("ask", "count(age=1)", "--within", "0.0001"),
        ("ask", "count(age=1)", "--analyst", "ana"),
        ("synth", "--out", str(file)),
    ):
        ran = run(*command, "--file", str(file))
        assert ran.exit_code == 2 and "must" in ran.output, (command, ran.output)
    assert desk.run("publish", str(tmp_path / "people.zip")).exit_code == 2
