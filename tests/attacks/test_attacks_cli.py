"""Attacks on the command line by its files: outputs that would write over the table or its ledger, tables in the place of questions, names that no file holds."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import desks
import pytest
from people import frame
from typer.testing import CliRunner

from hedgerow.cli import app, environment


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> desks.Desk:
    return desks.opened(tmp_path_factory.mktemp("desk"), 400)


def itself(own: Path, end: str) -> Path:
    return own


def roundabout(own: Path, end: str) -> Path:
    return own.parent / ".." / own.parent.name / own.name


def by_a_symbolic_link(own: Path, end: str) -> Path:
    link = own.with_name(f"symbolic-{own.name}{end}")
    link.unlink(missing_ok=True)
    link.symlink_to(own.name)
    return link


def by_a_hard_link(own: Path, end: str) -> Path:
    link = own.with_name(f"hard-{own.name}{end}")
    link.unlink(missing_ok=True)
    os.link(own, link)
    return link


WAYS = [itself, roundabout, by_a_symbolic_link, by_a_hard_link]
OUTPUTS = [("synth", "--rows", "3"), ("sql", "SELECT count(*) FROM data"), ("ledger", "export"), ("ledger", "report")]
ENDS = {"synth": ".csv", "sql": ".parquet", "export": "", "report": ".html"}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("own", ["people.csv", "people.ledger", "people.ledger-turn", "hedgerow.toml"])
def test_no_command_writes_over_the_table_its_ledger_or_its_file(
    desk: desks.Desk, own: str, way: Callable[[Path, str], Path]
) -> None:
    """A ledger that was written over is none, and the table would be opened, and spent, anew."""
    for command in OUTPUTS:
        name = command[1] if command[0] == "ledger" else command[0]
        out = way(desk.folder / own, ENDS[name])
        before = (desk.folder / own).read_bytes()
        ran = desk.run(*command, "--out", str(out))
        if "link" in way.__name__:
            out.unlink()
        assert ran.exit_code == 2 and "--out must" in ran.stderr, (command, ran.output)
        assert (desk.folder / own).read_bytes() == before


def test_a_release_is_not_written_over_what_it_is_read_from(tmp_path: Path) -> None:
    table, domain = tmp_path / "coded.csv", tmp_path / "domain.json"
    table.write_text("a\n0\n1\n")
    domain.write_text('{"a": 2}')
    given = ["release", str(table), str(domain), "--epsilon", "1", "--delta", "1e-6"]
    ran = CliRunner().invoke(app, [*given, "--out", str(table)])
    assert ran.exit_code == 2 and table.read_text() == "a\n0\n1\n"


@pytest.mark.parametrize("way", [by_a_symbolic_link, by_a_hard_link], ids=lambda way: way.__name__)
@pytest.mark.parametrize("command", ["ask", "sql"])
def test_a_table_in_the_place_of_questions_is_not_quoted_whatever_it_is_called(
    tmp_path: Path, command: str, way: Callable[[Path, str], Path]
) -> None:
    """A question that makes no sense is quoted."""
    desk = desks.made(tmp_path, 3)
    (tmp_path / "people.csv").write_text("Jane_Roe,F\nJohn_Doe,M\n")
    for questions in (way(tmp_path / "people.csv", ".txt"), tmp_path / "PEOPLE.CSV.GZ"):
        questions.touch()
        ran = desk.run(command, "--from", str(questions))
        assert ran.exit_code == 2 and "must be a file of questions" in ran.stderr
        assert "Jane" not in ran.output


def test_a_block_of_any_name_leaves_a_file_that_can_be_read_or_is_refused_unpaid(tmp_path: Path) -> None:
    desk = desks.opened(tmp_path, 400)
    frame(300, seed=5).to_csv(tmp_path / "more.csv", index=False)
    before, head = desk.file.read_text(), desk.json("ledger", "verify")["head"]
    ran = desk.run("append", str(tmp_path / "more.csv"), "--yes", "--block", "\udcff")
    assert ran.exit_code == 2
    assert desk.file.read_text() == before and desk.json("ledger", "verify")["head"] == head
    ran = desk.run("append", str(tmp_path / "more.csv"), "--yes", "--block", '🦔 "\\ é')
    assert ran.exit_code == 0, ran.output
    assert desk.json("ledger", "show")["blocks"][0]["block"] == '🦔 "\\ é'
    assert desk.json("ask", "count(smoker=True)")["answers"][0]["value"] >= 0
    assert sorted(path.name for path in tmp_path.glob(".*")) == []  # nothing is left beside


def test_parts_of_a_url_of_the_environment_are_taken_out_of_messages_as_written_and_as_read(monkeypatch) -> None:
    monkeypatch.setenv("PEOPLE_URL", "postgresql://ana:p%40ss%2Fword@h/d?sslpassword=tw%C3%B6%20keys")
    environment.expand("${PEOPLE_URL}", "source")
    for spelt in ("p%40ss%2Fword", "p@ss/word", "tw%C3%B6%20keys", "twö keys"):
        assert spelt not in environment.redact(f"no such host or password {spelt!r}")
