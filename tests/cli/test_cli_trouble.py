"""Failures on the command line end with a sentence and its code, and show neither a row nor a credential."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import typer
from desks import BUDGET, HEAD, RESERVE, Desk, made, opened
from sqlite_file import open_sqlite
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow.cli import app, environment, output

PASSWORD = "correct-horse/battery@staple"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return opened(tmp_path_factory.mktemp("desk"), 2000)


def changed(desk: Desk, tmp_path: Path, old: str, new: str) -> Desk:
    """The same desk, with another text in its file."""
    text = desk.file.read_text()
    assert old in text
    other = Desk(tmp_path)
    (tmp_path / "people.csv").write_bytes((desk.folder / "people.csv").read_bytes())
    other.file.write_text(text.replace(old, new, 1))
    return other


def refused(ran: Any, code: int, *words: str) -> None:
    assert ran.exit_code == code, ran.output
    assert all(word in ran.stderr for word in words), ran.stderr
    assert "Traceback" not in ran.output and ran.stdout == ""


# Codes


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("[budget]", "[buget]", "'buget'"),
        ("reserve", "reverse", "'reverse'"),
        ("[budget]", "[buget]", "Did you mean 'budget'"),
        ('kind = "Integers"', 'kind = "integers"', "Did you mean 'Integers'"),
        ("epsilon = 1.0", "epsilon = 1,0", "at line"),
        ("epsilon = 1.0", "epsilon = -1", "epsilon must be"),
        ("epsilon = 1.0", "", "no epsilon and delta"),
        ('ledger = "sqlite:///people.ledger"', "", "every command would spend again"),
        ('ledger = "sqlite:///people.ledger"', 'ledger = "mysql://x/y"', "SQLite or PostgreSQL"),
        ('kind = "Integers"', 'kind = "Whole"', "kind of"),
        ("guard = 0.0", 'workload = "everything"', "must name columns"),
        ("guard = 0.0", 'workload = "marginals(2"', "must be written"),
        ("[budget]", "[csv]\ndelimiter = 'ab'\n[budget]", "delimiter must be"),
        ("[budget]", "[draft]\nepsilon = 2.0\ndelta = 0.0\n[budget]", "must exceed the cost of the draft"),
        ("[budget]", "[draft]\nepsilon = 'all'\n[budget]", "[draft] must have"),
        ("[budget]", "[budget", "must be TOML"),
        ('source = "people.csv"', "source = 3", "source must be a text"),
        ('source = "people.csv"', 'source = "people.csv"\nblocks = ["february.csv"]', "blocks must be tables"),
        ('source = "people.csv"', 'source = "nowhere.csv"', "nowhere.csv"),
        ('source = "people.csv"', 'source = "${HEDGEROW_NOWHERE}"', "environment must have HEDGEROW_NOWHERE"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(desk: Desk, tmp_path: Path, old: str, new: str, word: str) -> None:
    refused_ = changed(desk, tmp_path, old, new).run("open", "--yes")
    assert refused_.exit_code == 2 and word in refused_.stderr and refused_.stdout == "", refused_.output
    assert not (tmp_path / "people.ledger").exists()


@pytest.mark.parametrize(
    "command",
    [
        ["ask", "count(height=3)"],
        ["ask", "count("],
        ["ask"],
        ["ask", "count(age=1)", "--price"],
        ["ask", "count(age=1)", "--within", "2"],
        ["ask", "count(age=1)", "--scale", "people"],
        ["ask", '{"v": 1, "kind": "count"}'],
        ["ask", "count(age=1)", "--from", "/no/such/file"],
        ["sql", "DELETE FROM data"],
        ["sql", "SELECT 'open"],
        ["fit", "height", "age"],
        ["synth", "--rows", "0"],
        ["ledger", "show", "--days", "-1"],
        ["ledger", "verify", "--head", "nothing"],
        ["plan"],
        ["plan", "--rows", "10", "--epsilon", "1"],
        ["plan", "--rows", "10", "--public", "/no/such/file.csv"],
    ],
    ids=" ".join,
)
def test_senseless_commands_have_status_2_and_a_reason(desk: Desk, command: list[str]) -> None:
    before = hr.ledger.read(desk.url).spent
    refused(desk.run(*command), output.INPUT, ". ")
    assert hr.ledger.read(desk.url).spent == before


@pytest.mark.parametrize("universe", ["", "[universe]"])
def test_a_file_without_a_universe_is_refused_with_the_way_out(tmp_path: Path, universe: str) -> None:
    desk = Desk(tmp_path)
    desk.file.write_text(HEAD + universe)
    refused(desk.run("open", "--yes"), 2, "must declare the universe", "docs/universe.md")


def test_a_wrong_file_is_refused_before_anybody_confirms_a_price(desk: Desk, tmp_path: Path) -> None:
    ran = changed(desk, tmp_path, 'kind = "Integers"', 'kind = "Whole"').run("open", "--yes")
    assert ran.exit_code == output.INPUT and "spends up to" not in ran.stderr


def test_a_file_that_windows_wrote_is_read_and_one_in_latin_1_is_refused(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.file.write_text(HEAD, encoding="utf-8-sig")
    refused(desk.run("open", "--yes"), output.INPUT, "must declare the universe")
    desk.file.write_bytes((HEAD + "# größe").encode("latin-1"))
    refused(desk.run("open", "--yes"), output.INPUT, "not UTF-8")


@pytest.mark.parametrize(
    ("text", "encoding", "word"),
    [
        ("age;sex\n34;F\n", "utf-8", "--delimiter ';'"),
        ("age\tsex\n34\tF\n", "utf-8", "--delimiter '\\t'"),
        ("age,sex\n34,F\n", "utf-16", "--encoding utf-16"),
        ("größe,sex\n34,F\n", "latin-1", "--encoding latin-1"),
        ("", "utf-8", "an empty one"),
    ],
)
def test_init_refuses_a_first_line_that_is_no_header_with_the_option_that_reads_it(
    tmp_path: Path, text: str, encoding: str, word: str
) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    command = ["init", str(tmp_path / "t.csv"), "--file", str(tmp_path / "h.toml")]
    refused(CliRunner().invoke(app, command), output.INPUT, word)
    if option := word.partition("--")[2].replace("'", ""):
        name, value = option.split()
        ran = CliRunner().invoke(app, [*command, f"--{name}", value, "--json"])
        assert len(json.loads(ran.stdout)["columns"]) == 2, ran.output


def test_a_file_that_is_not_there_is_refused_with_the_way_out(tmp_path: Path) -> None:
    refused(Desk(tmp_path).run("open"), 2, "hedgerow init")


def test_a_ledger_that_is_not_what_was_written_has_status_1_where_it_is_checked_and_4_elsewhere(tmp_path: Path) -> None:
    desk = opened(tmp_path, 300)
    with open_sqlite(tmp_path / "people.ledger") as store:
        store.execute("UPDATE hedgerow_lines SET who = 'eve' WHERE number = 1")
    checked = desk.run("ledger", "verify")
    assert checked.exit_code == output.FAILED and "line 1" in checked.stderr.lower()
    record = desk.run("ledger", "verify", "--json")
    assert record.exit_code == output.FAILED and json.loads(record.stdout)["whole"] is False
    refused(desk.run("ask", "count(sex='F')"), output.LEDGER)


def test_a_ledger_that_is_away_has_status_4(desk: Desk, tmp_path: Path) -> None:
    away = changed(desk, tmp_path, '"sqlite:///people.ledger"', '"postgresql://ana@127.0.0.1:1/nothing"')
    refused(away.run("ask", "count(sex='F')"), output.LEDGER, "must be read")


def test_an_unreadable_table_has_status_5_and_nothing_of_it_is_shown(desk: Desk, tmp_path: Path) -> None:
    broken = changed(desk, tmp_path, "people.csv", "people.parquet")
    (tmp_path / "people.parquet").write_bytes(b"PAR1 Erika Mustermann, HIV positive PAR1")
    ran = broken.run("open", "--yes")
    refused_words = ran.stderr.split("\n", 1)[1]  # after what opening will cost
    assert ran.exit_code == output.DATA and "Mustermann" not in ran.output and "must" in refused_words


def test_another_table_or_declaration_is_refused_and_costs_nothing(desk: Desk, tmp_path: Path) -> None:
    other = changed(desk, tmp_path, "reserve = 0.3", "reserve = 0.2")
    (tmp_path / "people.ledger").write_bytes(b"")
    other.file.write_text(other.file.read_text().replace("sqlite:///people.ledger", desk.url))
    refused(other.run("ask", "count(sex='F')"), 2, "another reserve")


def test_an_unexpected_error_shows_its_kind_and_place_and_not_its_message(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise ZeroDivisionError("Erika Mustermann, HIV positive")

    monkeypatch.setattr(hr.Session, "ask_all", failing)
    ran = desk.run("ask", "count(sex='F')")
    refused(ran, output.UNEXPECTED, "ZeroDivisionError", "hidden")
    assert "Mustermann" not in ran.output


def test_logs_of_other_libraries_are_not_shown(tmp_path: Path) -> None:
    """In a process of its own: the test's own handlers would take it."""
    command = ["demo", "--table", str(tmp_path / "people.csv")]
    program = f"import logging; from hedgerow.cli import app; app({command}, standalone_mode=False); logging.getLogger('sql').error('row 17')"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200)
    assert ran.returncode == 0 and ran.stdout and ran.stderr == ""


def test_warnings_of_other_libraries_are_not_shown(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    def warning(*_: object, **__: object) -> list[object]:
        warnings.warn("Erika Mustermann is an outlier", RuntimeWarning, stacklevel=1)
        return []

    monkeypatch.setattr(hr.Session, "ask_all", warning)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        ran = desk.run("ask", "count(sex='F')")
    assert ran.exit_code == 0 and "Mustermann" not in ran.output


# Credentials


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ana:{PASSWORD}@127.0.0.1:1/people",
        f"postgresql://ana@127.0.0.1:1/people?password={PASSWORD}",
        f"postgresql://127.0.0.1:1/people?user=ana&sslpassword={PASSWORD}",
        f"mysql://ana:{PASSWORD}@127.0.0.1:1/people",
        f"duckdb://people.duckdb?motherduck_token={PASSWORD}",
    ],
)
def test_a_password_that_is_spelt_out_is_refused_and_neither_stored_nor_shown(
    desk: Desk, tmp_path: Path, url: str
) -> None:
    place = tmp_path / "new.toml"
    for command in (["init", url, "--table", "people"], ["init", str(desk.folder / "people.csv"), "--ledger", url]):
        ran = CliRunner().invoke(app, [*command, "--file", str(place)])
        assert ran.exit_code == 2 and "must not contain a password" in ran.stderr
        assert PASSWORD not in ran.output and not place.exists()
    for key, old in (("source", 'source = "people.csv"'), ("ledger", 'ledger = "sqlite:///people.ledger"')):
        ran = changed(desk, tmp_path, old, f'{key} = "{url}"').run("open", "--yes")
        assert ran.exit_code == 2 and "must not contain a password" in ran.stderr and PASSWORD not in ran.output


@pytest.mark.parametrize("whole", [False, True])
def test_a_password_of_the_environment_is_used_and_shown_nowhere(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    monkeypatch.setenv("PEOPLE_PASSWORD", PASSWORD)
    monkeypatch.setenv("PEOPLE_URL", f"postgresql://ana:{quote(PASSWORD, safe='')}@127.0.0.1:1/people")
    url = "${PEOPLE_URL}" if whole else "postgresql://ana:${PEOPLE_PASSWORD}@127.0.0.1:1/people"
    for old, key in (('source = "people.csv"', "source"), ('ledger = "sqlite:///people.ledger"', "ledger")):
        away = changed(desk, tmp_path, old, f'{key} = "{url}"\n' + ('table = "people"' if key == "source" else ""))
        ran = away.run("open", "--yes", "--json")
        assert ran.exit_code in (output.LEDGER, output.DATA), ran.output
        assert all(part not in ran.output for part in (PASSWORD, "correct-horse", "battery", "staple"))
        assert PASSWORD not in away.file.read_text()


def test_values_from_the_environment_are_escaped_in_urls_and_removed_from_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PEOPLE_PASSWORD", "p@ss/word:1")
    assert environment.expand("pg://a:${PEOPLE_PASSWORD}@h/d", "source") == "pg://a:p%40ss%2Fword%3A1@h/d"
    assert environment.expand("${PEOPLE_PASSWORD}", "source") == "p@ss/word:1"
    assert environment.redact("no host p@ss/word:1 or p%40ss%2Fword%3A1") == "no host *** or ***"


def test_a_table_that_is_given_for_questions_is_not_quoted(desk: Desk) -> None:
    row = (desk.folder / "people.csv").read_text().splitlines()[1]
    for command in ("ask", "sql"):
        ran = desk.run(command, "--from", str(desk.folder / "people.csv"))
        refused(ran, 2, "file of questions")
        assert row not in ran.output


def test_marks_that_would_steer_a_terminal_are_not_shown() -> None:
    assert output.format_cell("poor\x1b[2J\x07") == "poor\ufffd[2J\ufffd"


# Interruptions, and several at once


ENDS = {
    "well": (None, 0), "by Ctrl-C": (KeyboardInterrupt(), output.INTERRUPTED), "by a bug": (ZeroDivisionError("8675309"), output.UNEXPECTED),
    "without a file": (FileNotFoundError(2, "No such file", "people.csv"), output.INPUT), "by bad input": (hr.InvalidInput("x"), output.INPUT),
    "by its size": (hr.TooLarge("x"), output.INPUT), "without budget": (hr.BudgetExceeded("x"), output.BUDGET),
    "without its ledger": (hr.LedgerUnavailable("x"), output.LEDGER), "by a broken ledger": (hr.LedgerBroken("x"), output.LEDGER),
    "without data": (hr.DataUnavailable("x"), output.DATA),
}  # fmt: skip


@pytest.mark.parametrize("how", ENDS)
def test_a_command_ends_with_the_status_of_how_it_ended_and_with_0_only_where_all_is_well(how: str) -> None:
    raised, code = ENDS[how]
    commands = typer.Typer(cls=output.GuardedGroup)

    @commands.callback()
    def several() -> None: ...

    @commands.command()
    def run() -> None:
        if raised is not None:
            raise raised

    ran = CliRunner().invoke(commands, ["run"])
    assert ran.exit_code == code and (code == 0) == (ran.stderr == "")
    assert ran.stdout == "" and "Traceback" not in ran.stderr and "8675309" not in ran.stderr


def lines_of(desk: Desk) -> int:
    try:
        with open_sqlite(f"file:{desk.folder / 'people.ledger'}?mode=ro", uri=True) as store:
            return int(store.execute("SELECT count(*) FROM hedgerow_lines").fetchone()[0])
    except sqlite3.Error:
        return 0


def test_ctrl_c_while_opening_keeps_what_was_paid_and_the_same_command_goes_on(tmp_path: Path) -> None:
    desk = made(tmp_path, 2000)
    process = desk.start("open", "--yes")
    until = time.monotonic() + 200
    while lines_of(desk) < 3 and process.poll() is None and time.monotonic() < until:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=200)
    if process.returncode == 0 and "Interrupted" not in err:
        pytest.skip("it was done before it could be interrupted")
    assert process.returncode == output.INTERRUPTED and out == "" and "Traceback" not in err, err
    assert "was spent. Open again with the same ledger" in err
    spent = hr.ledger.read(desk.url).spent
    assert 0 < spent < BUDGET.total
    again = desk.json("open", "--yes")
    assert spent < again["spent"] <= BUDGET.total and again["opened"] == "before" and again["private"] is True


def test_two_at_once_open_one_session(tmp_path: Path) -> None:
    desk = made(tmp_path, 2000)
    running = [desk.start("open", "--yes", "--json") for _ in range(2)]
    said = [process.communicate(timeout=300) for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    records = [json.loads(out) for out, _ in said]
    assert 0.5 * BUDGET.total < records[0]["spent"] == records[1]["spent"] <= (1 - RESERVE) * BUDGET.total * (1 + 1e-9)


@pytest.mark.audit
def test_two_at_once_buy_one_answer(tmp_path: Path) -> None:
    desk = opened(tmp_path, 2000)
    before = hr.ledger.read(desk.url).spent
    question, within = "count(age=(3, 5), sex='F', smoker=True, region={0, 2})", "0.05"
    price = desk.json("ask", question, "--within", within, "--price")["prices"][0]
    assert price > 0
    running = [desk.start("ask", question, "--within", within, "--json") for _ in range(2)]
    said = [process.communicate(timeout=300) for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    values = {json.loads(out)["answers"][0]["value"] for out, _ in said}
    assert len(values) == 1
    assert hr.ledger.read(desk.url).spent == pytest.approx(before + price, rel=1e-6)
