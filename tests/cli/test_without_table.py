"""Commands that cannot spend answer from the ledger, without the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from desks import Desk, made, opened
from people import SMALL, frame

import hedgerow as hr
from hedgerow.data.absent import AbsentTable

FREE: tuple[tuple[str, ...], ...] = (
    ("ask", "count(smoker=True, age=(2, 4))", "mean('age')"),
    ("sql", "SELECT sex, count(*), avg(age) FROM data GROUP BY sex"),
    ("fit", "smoker", "age"),
    ("describe",),
)


def answered(desk: Desk, command: tuple[str, ...]) -> Any:
    found = desk.json(*command)
    return [found.get(part) for part in ("answers", "results", "coefficients", "columns", "errors")]


def hide(desk: Desk) -> None:
    for table in desk.folder.glob("*.csv"):
        table.rename(table.with_suffix(".hidden"))


def test_free_calls_give_the_same_without_the_table(tmp_path: Path) -> None:
    desk = opened(tmp_path)
    bought = desk.json("ask", "count(smoker=True)", "--within", "0.02")["answers"]
    with hr.open(  # asks first, so that nothing below is a repeat of what a command said
        tmp_path / "people.csv", universe=SMALL, budget=hr.Budget(1.0, 1e-6), reserve=0.3, guard=0.0, ledger=desk.url
    ) as session:
        wanted = session.ask_all([hr.count(smoker=True, age=(2, 4)), hr.mean("age")])
    hide(desk)
    for command in FREE:
        assert answered(desk, command) == answered(desk, command)
    asked = desk.json(*FREE[0])["answers"]
    assert [(a["value"], a["error"]) for a in asked] == [(a.value, a.error) for a in wanted]
    assert desk.json("ask", "count(smoker=True)")["answers"][0]["value"] == bought[0]["value"]
    for command in (
        ("synth", "--rows", "5"),
        ("statement",),
        ("publish", str(tmp_path / "people.hedgerow")),
        ("ledger", "report", "--out", str(tmp_path / "report.json")),
    ):
        ran = desk.run(*command)
        assert ran.exit_code == 0, (command, ran.output)


def test_a_drafted_file_with_a_table_for_its_profile_does_without_the_table(tmp_path: Path) -> None:
    desk = made(tmp_path)
    text = desk.file.read_text()
    assert "[options]" in text
    desk.file.write_text(text.replace("[options]", "[practical]"))
    assert desk.run("open", "--yes", "--seed", "7").exit_code == 0
    hide(desk)
    assert desk.run("ask", "count(smoker=True)").exit_code == 0


def test_calls_that_may_spend_need_the_table_and_cost_nothing_without_it(tmp_path: Path) -> None:
    desk = opened(tmp_path)
    spent = desk.json("ask", "count(smoker=True)")["spent"]
    hide(desk)
    for command in (("ask", "count(sex='F')", "--within", "0.004"), ("ask", "count(sex='F').over_time()")):
        assert desk.run(*command).exit_code != 0
    assert desk.json("ask", "count(smoker=True)")["spent"] == spent


def test_a_guard_reads_the_table_and_records_do_not(tmp_path: Path, monkeypatch) -> None:
    desk = made(tmp_path)
    desk.file.write_text(desk.file.read_text().replace("guard = 0.0", "guard = 0.2"))
    assert desk.run("open", "--yes", "--seed", "7").exit_code == 0
    hide(desk)
    closed: list[hr.Session] = []
    monkeypatch.setattr(hr.Session, "close", lambda self, close=hr.Session.close: (closed.append(self), close(self))[1])
    assert desk.run("ask", "count(smoker=True)").exit_code != 0
    assert len(closed) == 1  # the session that could not ask its guard
    assert desk.run("sql", "SELECT count(*) FROM data WHERE smoker").exit_code != 0
    assert desk.run("synth", "--rows", "5").exit_code == 0


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_blocks_are_resumed_without_their_tables(tmp_path: Path, neighbours: str) -> None:
    desk = made(tmp_path)
    frame(3000, 1).to_csv(tmp_path / "february.csv", index=False)
    text = desk.file.read_text().replace("[budget]\n", f'[budget]\nneighbours = "{neighbours}"\n')
    desk.file.write_text('block = "january"\n' + text)
    assert desk.run("open", "--yes", "--seed", "7").exit_code == 0
    ran = desk.run("append", "february.csv", "--block", "february", "--yes", "--seed", "7")
    assert ran.exit_code == 0, ran.output
    before = desk.json(*FREE[0])["answers"], desk.json("ask", "count(sex='M')", "--over", "february")["answers"]
    hide(desk)
    after = desk.json(*FREE[0])["answers"], desk.json("ask", "count(sex='M')", "--over", "february")["answers"]
    assert [[a["value"] for a in each] for each in before] == [[a["value"] for a in each] for each in after]


def test_an_absent_table_counts_nothing_and_opens_no_ledger(tmp_path: Path) -> None:
    table = AbsentTable(SMALL, 4000)
    for read in (lambda: table.marginal(("sex",)), table.fingerprint, lambda: AbsentTable(SMALL, None).rows):
        with pytest.raises(hr.InvalidInput, match="Open the session on the table"):
            read()
    url = f"sqlite:///{tmp_path / 'new.ledger'}"
    with pytest.raises(hr.InvalidInput, match="A new ledger must be opened on its table"):
        hr.open(table, universe=SMALL, budget=hr.Budget(1.0, 1e-6), guard=0.0, ledger=url)
    assert not hr.ledger.exists(url)
