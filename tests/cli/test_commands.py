"""Every command, for people and for programs, on one desk with one ledger."""

from __future__ import annotations

import dataclasses
import inspect
import io
import json
import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from desks import BUDGET, SEED, Desk, made, opened
from people import SMALL, frame
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow.cli import app, asking, output
from hedgerow.cli.file import File
from hedgerow.server.worker import write_records


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return opened(tmp_path_factory.mktemp("desk"))


def words(desk: Desk, *command: str, stdin: str | None = None) -> str:
    ran = desk.run(*command, stdin=stdin)
    assert ran.exit_code == 0, ran.output
    return " ".join(ran.stdout.split())


# init


def test_a_draft_of_a_csv_file_is_free_and_leaves_what_is_not_public_to_the_owner(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "book.toml").write_text('[sex]\nkind = "Categories"\nvalues = ["F", "M"]\n')
    place = tmp_path / "new.toml"
    command = ["init", str(tmp_path / "people.csv"), "--file", str(place), "--codebook", str(tmp_path / "book.toml")]
    ran = CliRunner().invoke(app, command)
    assert ran.exit_code == 0 and "No row was read, nothing was spent" in " ".join(ran.stdout.split()), ran.output
    found = File(place)
    assert found.content["source"] == "people.csv" and found.universe.names == ("sex",)
    assert "# [universe.smoker]" in place.read_text()
    with pytest.raises(hr.InvalidInput, match="no epsilon and delta"):
        _ = found.budget
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 2 and "must not overwrite a file" in again.stderr


def test_a_draft_of_a_typed_file_says_more(tmp_path: Path) -> None:
    frame(10).to_parquet(tmp_path / "people.parquet")
    ran = CliRunner().invoke(
        app, ["init", str(tmp_path / "people.parquet"), "--file", str(tmp_path / "d.toml"), "--json"]
    )
    record = json.loads(ran.stdout)
    assert record["undeclared"] == ["age", "sex", "region"] and record["columns"]["smoker"]["kind"] == "Flag"
    assert '# kind = "Integers"' in (tmp_path / "d.toml").read_text()
    assert record["spent"] == {"epsilon": 0.0, "delta": 0.0}


def test_rows_are_read_for_a_price_that_is_said_agreed_to_noted_and_taken_off_the_budget(tmp_path: Path) -> None:
    made(tmp_path)
    place = tmp_path / "drafted.toml"
    command = ["init", str(tmp_path / "people.csv"), "--file", str(place), "--epsilon", "1", "--delta", "1e-6"]
    paid = [*command, "--budget", "0.25", "1e-7", "--seed", "1"]
    asked = CliRunner().invoke(app, paid)  # nobody to ask
    assert asked.exit_code == 2 and "epsilon = 0.25, delta = 1e-07" in asked.stderr and not place.exists()
    ran = CliRunner().invoke(app, [*paid, "--yes"])
    assert ran.exit_code == 0 and "NOT PRIVATE" not in ran.stdout and "not private" in ran.stderr, ran.output
    file = File(place)
    assert file.budget == hr.Budget(0.75, 9e-7) and file.total == BUDGET and file.universe.names == SMALL.names
    assert "Spent ε = 0.25" in ran.stdout
    twice = CliRunner().invoke(app, [*paid, "--yes", "--force"])
    assert twice.exit_code == 0 and File(place).draft == (0.5, 2e-7)  # both are spent
    kept = CliRunner().invoke(app, [*command, "--force"])
    assert kept.exit_code == 0 and File(place).draft == (0.5, 2e-7)
    text = place.read_text()
    no_delta = CliRunner().invoke(app, [*command, "--budget", "0.1", "0", "--yes", "--force"])
    assert (
        no_delta.exit_code == 2 and "delta above 0" in no_delta.stderr and place.read_text() == text
    )  # and nothing is spent
    more = CliRunner().invoke(app, [*command, "--budget", "0.6", "1e-7", "--yes", "--force"])
    assert more.exit_code == 2 and "a part of the whole" in more.stderr


# open


def test_open_says_the_price_asks_and_opens_once(desk: Desk, tmp_path: Path) -> None:
    other = made(tmp_path, 500)
    asked = other.run("open")
    assert asked.exit_code == 2 and "spends up to 70% of epsilon = 1" in asked.stderr and "--yes" in asked.stderr
    assert not (tmp_path / "people.ledger").exists()
    before = desk.json("open")
    assert before["opened"] == "before" and before["private"] is False and before["facts"]["rows"] == 4000
    assert before["spent"] == pytest.approx(0.7 * BUDGET.total, rel=1e-6) and "probability" in before["certificate"]
    assert desk.json("open")["spent"] == before["spent"]
    assert "spent 70.0% of ε = 1" in words(desk, "open") and "NOT PRIVATE" in words(desk, "open")


def test_a_session_must_be_opened_before_it_is_asked(tmp_path: Path) -> None:
    desk = made(tmp_path, 100)
    for command in (["ask", "count(smoker=True)"], ["synth"], ["ledger", "show"], ["fit", "smoker", "age"]):
        ran = desk.run(*command)
        assert ran.exit_code == 2 and "Run `hedgerow open`" in ran.stderr
    assert not (tmp_path / "people.ledger").exists()


# ask, sql, fit, synth


def test_ask_shows_value_errors_source_and_cost(desk: Desk) -> None:
    said = words(desk, "ask", 'count(sex="F")', 'marginal("sex")', 'mean("age")')
    assert "count(sex='F')" in said and "guaranteed" in said and "free" in said and "marginal('sex')" in said
    answers = desk.json("ask", "--from", "-", stdin='count(sex="F")\n# no question\nmarginal("sex")\n')["answers"]
    assert answers[1]["axes"] == [{"name": "sex", "labels": ["F", "M"]}]
    assert answers[0]["value"] == pytest.approx(answers[1]["value"][0]) and answers[0]["cost"] == 0
    assert desk.json("ask", 'count(sex="F")', "--scale", "rows")["answers"][0]["value"] == answers[0]["value"] * 4000
    coarse = desk.json("ask", 'count(sex="F")', "--resolution", "bins")["answers"][0]
    assert coarse["value"] == answers[0]["value"]


def test_a_convex_question_can_be_asked_too(desk: Desk) -> None:
    asked = 'minimize(losses.Squared(target="age", features=["region"]), over=L2Ball(2.0))'
    assert len(desk.json("ask", asked)["answers"][0]["value"]) == 2


def test_within_is_priced_paid_once_and_refused_with_its_own_code(desk: Desk) -> None:
    question = "count(age=(3, 5), sex='F', smoker=True, region={0, 2})"
    free = desk.json("ask", question)["answers"][0]
    within = str(0.4 * free["error"])
    price = desk.json("ask", question, "--within", within, "--price")
    assert price["prices"][0] > 0 and price["spent"] == desk.json("open")["spent"]
    assert "of the budget" in words(desk, "ask", question, "--within", within, "--price")
    paid = desk.json("ask", question, "--within", within, "--who", "ana", "--seed", "3")
    assert paid["answers"][0]["cost"] == pytest.approx(price["prices"][0], rel=1e-6)
    assert paid["answers"][0]["error"] <= float(within)
    again = desk.json("ask", question, "--within", within, "--who", "ana")
    assert again["answers"][0]["value"] == paid["answers"][0]["value"] and again["spent"] == paid["spent"]
    spending = desk.json("ledger", "show", "--days", "1")["spending"]
    assert {row["who"] for row in spending} == {"", "ana"}
    refused = desk.run("ask", 'count(sex="M")', "count(age=(2, 6), region=2)", "--within", "1e-7", "--json")
    assert refused.exit_code == 3 and "left" in refused.stderr and desk.json("open")["spent"] == paid["spent"]


def test_answers_before_a_refusal_are_shown(desk: Desk) -> None:
    ran = desk.run("ask", "count()", "count(age=(1, 6), region=1)", "--within", "1e-8", "--json")
    assert ran.exit_code == 3 and len(json.loads(ran.stdout)["answers"]) == 1


def test_sql_from_an_argument_from_stdin_and_into_a_file(desk: Desk, tmp_path: Path) -> None:
    statement = "SELECT sex, count(*) AS n FROM data GROUP BY sex"
    (result,) = desk.json("sql", statement)["results"]
    assert result["columns"] == ["sex", "n", "n_error", "n_typical"] and [row[0] for row in result["rows"]] == [
        "F",
        "M",
    ]
    two = desk.json("sql", stdin=f"{statement};\n SELECT count(*) FROM data WHERE smoker; -- the end;")
    assert [len(each["rows"]) for each in two["results"]] == [2, 1] and two["results"][0] == result
    out = tmp_path / "n.csv"
    assert f"Wrote {out}" in "".join(words(desk, "sql", statement, "--out", str(out)).split("\n"))
    assert pd.read_csv(out)["n"].tolist() == [row[1] for row in result["rows"]]
    assert "guaranteed" in words(desk, "sql", statement)
    assert desk.run("sql", f"{statement};{statement}", "--out", str(out)).exit_code == 2


def test_fit_is_free_and_suits_its_target(desk: Desk) -> None:
    found = desk.json("fit", "smoker", "age", "sex")
    assert found["model"] == "logistic" and found["cost"] == 0
    assert list(found["coefficients"]) == ["age", "sex=M", "intercept"] and found["coefficients"]["age"] > 0
    session = desk.in_python(ledger=desk.url)
    theta = session.ask(hr.minimize(hr.losses.Logistic(target="smoker", features=["age", "sex"]), over=hr.L2Ball(5.0)))
    np.testing.assert_allclose(list(found["coefficients"].values()), theta.value, rtol=1e-6)
    assert desk.json("fit", "age", "region", "--where", 'count(sex="F")')["model"] == "linear"
    assert "logistic model of smoker" in words(desk, "fit", "smoker", "age")
    assert desk.json("fit", "age", "region", "--model", "quantile", "--quantile", "0.9")["model"] == "quantile"
    quantile = ("fit", "age", "region", "--model", "quantile")
    assert desk.json(*quantile)["coefficients"] == desk.json(*quantile, "--quantile", "0.5")["coefficients"]
    assert desk.run("fit", "smoker", "age", "--model", "forest").exit_code == 2


@pytest.mark.parametrize(("error", "bound"), [(0.25, "at most 0.25"), (None, "not bounded")])
def test_fit_says_the_bound_and_the_cost_of_its_answer(desk: Desk, monkeypatch, error, bound) -> None:
    """Also where the answer was not free, as with a guard."""
    real = hr.Session.ask
    answers = lambda *given, **named: dataclasses.replace(real(*given, **named), error=error, cost=0.125)  # noqa: E731
    monkeypatch.setattr(hr.Session, "ask", answers)
    found = desk.json("fit", "smoker", "age", "sex")
    assert (found["cost"], found["excess_risk"]) == (0.125, error)
    assert f"Excess risk on the table: {bound} (" in words(desk, "fit", "smoker", "age", "sex")
    assert ", 0.125)" in words(desk, "fit", "smoker", "age", "sex")


def test_each_number_that_ask_prints_is_below_its_heading(desk: Desk, monkeypatch) -> None:
    tables: list[tuple[list[str], list[tuple[object, ...]]]] = []
    real = asking.table
    monkeypatch.setattr(asking, "table", lambda columns, rows: tables.append((columns, rows)) or real(columns, rows))
    for asked in ('count(sex="F")', 'mean("age")'):
        answer = desk.json("ask", asked)["answers"][0]
        desk.run("ask", asked)
        columns, (row,) = tables[-1]
        told = dict(zip(columns, row, strict=True))
        assert (told["question"], told["source"], told["cost"]) == (answer["question"], "repeat", "free")
        assert told["value"] == answer["value"] and ("from bins" in told) == bool(answer["resolution"])


@pytest.mark.parametrize("command", [("sql", "SELECT count(*) FROM data"), ("synth", "--rows", "5"), ("ledger", "export"), ("ledger", "report")])  # fmt: skip
@pytest.mark.parametrize("own", ["people.csv", "people.ledger", "hedgerow.toml"])
def test_no_command_writes_over_what_the_desk_is_made_of(desk: Desk, tmp_path: Path, command, own) -> None:
    """Also through a link of another name."""
    before = (desk.folder / own).read_bytes()
    out = tmp_path / f"out.{'json' if command[0] == 'ledger' else 'csv'}"
    out.symlink_to(desk.folder / own)
    refused = desk.run(*command, "--out", str(out))
    assert refused.exit_code == 2 and "--out must be a file of its own" in " ".join(refused.stderr.split())
    assert (desk.folder / own).read_bytes() == before


def test_synthetic_records_go_to_a_file_or_to_stdout(desk: Desk, tmp_path: Path) -> None:
    ran = desk.run("synth", "--rows", "20")
    lines = ran.stdout.splitlines()
    assert lines[0] == "age,sex,smoker,region" and len(lines) == 21 and "NOT PRIVATE" in ran.stderr
    out = tmp_path / "s.parquet"
    record = desk.json("synth", "--rows", "30", "--out", str(out))
    assert record["rows"] == 30 and len(pd.read_parquet(out)) == 30
    assert len(desk.json("synth", "--rows", "5")["records"]) == 5
    assert desk.run("synth", "--out", "s.xlsx").exit_code == 2


def test_records_go_to_parquet_if_the_labels_of_a_column_are_numbers_and_texts(tmp_path: Path) -> None:
    records = pd.DataFrame({"paid": pd.Series([0, 25, "(other)", None], dtype=object), "visits": [1, 2, 3, 4]})
    output.write_table(records, tmp_path / "s.parquet")
    for parquet in (tmp_path / "s.parquet", io.BytesIO(write_records(records, "parquet"))):
        read = pd.read_parquet(parquet)
        assert list(read["paid"][:3]) == ["0", "25", "(other)"] and pd.isna(read["paid"][3])
        assert read["visits"].dtype == int


def test_the_log_of_the_service_is_on_stderr(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from hedgerow.server import run

    own = logging.getLogger("hedgerow")
    monkeypatch.setattr(own, "handlers", [])
    monkeypatch.setattr(own, "propagate", True)
    monkeypatch.setattr(run, "serve", lambda *_: logging.getLogger("hedgerow.server").error("request 1: ValueError"))
    assert "hedgerow.server: request 1: ValueError" in desk.run("serve").stderr


# ledger


def test_the_ledger_is_shown_verified_and_exported(desk: Desk, tmp_path: Path) -> None:
    shown = desk.json("ledger", "show")
    assert shown["private"] is False and shown["spent"] <= shown["total"] and shown["charges"] > 0
    assert shown["spent"] == pytest.approx(sum(row["spent"] for row in shown["spending"]))
    assert "(everybody)" in words(desk, "ledger", "show")
    whole = desk.json("ledger", "verify")
    assert whole["whole"] and whole["head"] == shown["head"]
    assert "all as they were written" in words(desk, "ledger", "verify", "--head", whole["head"])
    lines = desk.run("ledger", "export").stdout.splitlines()
    assert len(lines) == whole["lines"] and json.loads(lines[-1])["number"] == whole["lines"]
    assert len(desk.json("ledger", "export")) == whole["lines"]
    out = tmp_path / "lines.jsonl"
    assert desk.json("ledger", "export", "--out", str(out))["lines"] == len(out.read_text().splitlines())


def test_the_report_has_everybodys_answers_and_no_row(desk: Desk, tmp_path: Path) -> None:
    value = desk.json("ask", 'count(sex="M", smoker=False)')["answers"][0]["value"]
    record = desk.json("ledger", "report", "--out", str(tmp_path / "r.json"))
    told = {answer["question"]: answer for answer in record["answers"]}
    assert told["count(sex='M', smoker=False)"]["value"] == value
    assert json.loads((tmp_path / "r.json").read_text()) == record and record["certificate"]
    assert "answers" in words(desk, "ledger", "report", "--out", str(tmp_path / "r.html"))
    assert "count(sex=&#x27;M&#x27;" in (tmp_path / "r.html").read_text()
    assert desk.run("ledger", "report", "--out", "r.pdf").exit_code == 2


def test_a_cap_binds_whom_it_is_set_for(desk: Desk) -> None:
    assert "bob may spend" in words(desk, "ledger", "cap", "bob", "0.01")
    assert desk.json("ledger", "cap", "bob", "0.02")["epsilon"] == 0.02
    question = "count(age=(0, 3), smoker=True, sex='M', region={1, 2})"
    within = str(0.4 * desk.json("ask", question)["answers"][0]["error"])
    refused = desk.run("ask", question, "--within", within, "--who", "bob")
    assert refused.exit_code == 3 and "nothing was charged" in refused.stderr
    assert desk.json("ask", question, "--within", within)["answers"][0]["cost"] > 0  # who has no cap, may
    assert "cap of" in words(desk, "ledger", "show")


# plan, and what needs no desk


def test_plan_reads_no_table(desk: Desk, tmp_path: Path) -> None:
    other = made(tmp_path)
    (tmp_path / "people.csv").unlink()
    record = other.json("plan", "--rows", "4000", "--queries", "100")
    assert record["options"][0]["mechanism"] and record["rows"] == 4000
    said = words(
        other, "plan", "--accuracy", "0.05", "--no-simulate", "--epsilon", "2", "--delta", "1e-6", "--beta", "0.1"
    )
    assert "noise on every answer" in said and "ε = 2" in said and "practical" not in said
    (tmp_path / "public.csv").write_text(frame(300).to_csv(index=False))
    public = other.json("plan", "--rows", "400", "--public", str(tmp_path / "public.csv"), "--workload", "marginals(1)")
    assert any(option["by"] == "simulation on public rows" for option in public["options"])


def test_a_plan_is_made_from_what_was_given(tmp_path: Path) -> None:
    other = made(tmp_path)
    file = File(other.file)
    options = {"rows": 4000, "queries": 100, "workload": file.options.get("workload"), "simulate": False}
    wanted = hr.plan(universe=file.universe, budget=file.budget, beta=0.1, **options)
    command = ("plan", "--rows", "4000", "--queries", "100", "--no-simulate")
    assert other.json(*command, "--beta", "0.1") == json.loads(wanted.json) != other.json(*command)


def test_a_plan_with_another_epsilon_is_that_of_a_file_which_declares_it(tmp_path: Path) -> None:
    """Neighbours and the cost of the draft stay: only what is named on the command line is replaced."""
    other, draft = made(tmp_path), "\n[draft]\nepsilon = 0.5\ndelta = 1e-7\n"
    text = other.file.read_text().replace("[options]", f'neighbours = "add-remove"\n{draft}\n[options]', 1)
    plan = ("plan", "--rows", "4000", "--no-simulate", "--queries", "100")
    other.file.write_text(text)
    told = other.json(*plan, "--epsilon", "2", "--delta", "1e-5")
    other.file.write_text(
        text.replace(f"epsilon = {BUDGET.epsilon!r}\ndelta = {BUDGET.delta!r}", "epsilon = 2\ndelta = 1e-5", 1)
    )
    assert File(other.file).budget == hr.Budget(1.5, 9.9e-6, "add-remove")
    assert told == other.json(*plan)
    other.file.write_text(text.replace('neighbours = "add-remove"\n', ""))
    assert told != other.json(*plan, "--epsilon", "2", "--delta", "1e-5")


def test_a_file_that_is_written_over_keeps_the_neighbours_for_which_its_draft_was_paid(tmp_path: Path) -> None:
    """A draft costs another amount if rows are added or removed than if they are replaced."""
    made(tmp_path)
    place = tmp_path / "new.toml"
    init = ["init", str(tmp_path / "people.csv"), "--file", str(place), "--force"]
    place.write_text('[budget]\nneighbours = "add-remove"\n\n[draft]\nepsilon = 0.5\ndelta = 1e-7\n')
    refused = CliRunner().invoke(app, [*init, "--neighbours", "replace"])
    assert refused.exit_code == 2 and "--neighbours must be 'add-remove'" in refused.stderr
    assert CliRunner().invoke(app, init).exit_code == 0
    assert File(place).content["budget"]["neighbours"] == "add-remove" and File(place).draft == (0.5, 1e-7)
    place.write_text('[budget]\nneighbours = "add-remove"\n')  # nothing was paid: the owner may choose
    assert CliRunner().invoke(app, [*init, "--neighbours", "replace"]).exit_code == 0
    assert File(place).content["budget"]["neighbours"] == "replace"


def test_errata_and_demo_have_records_too(tmp_path: Path) -> None:
    from hedgerow.research.errata import ERRATA

    ran = CliRunner().invoke(app, ["errata", ERRATA[0].name, "--json"])
    assert ran.exit_code == 0 and json.loads(ran.stdout)[0]["behaves"] is True
    ran = CliRunner().invoke(app, ["demo", "--table", str(tmp_path / "demo.csv"), "--json"])
    assert json.loads(ran.stdout)["rows"] == len(pd.read_csv(tmp_path / "demo.csv")) == 20_190


def test_an_audit_of_one_mechanism_holds_and_has_a_record() -> None:
    ran = CliRunner().invoke(
        app, ["audit", "values told at a threshold", "--share", "0.01", "--workers", "1", "--json"]
    )
    record = json.loads(ran.stdout)
    assert ran.exit_code == (1 if record["faults"] else 0) and record["ours"] and record["share_of_runs"] == 0.01
    nothing = CliRunner().invoke(app, ["audit", "no such mechanism"])
    assert nothing.exit_code == 2


# completion


def test_the_shell_completes_commands_columns_and_names(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk.folder)

    def completed(typed: str) -> list[str]:
        environment = {"_HEDGEROW_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - (0 if typed.endswith(" ") else 1))}  # fmt: skip
        ran = CliRunner().invoke(app, [], prog_name="hedgerow", env=environment)
        return ran.stdout.split()

    assert {"init", "open", "ask", "sql", "fit", "synth", "plan", "ledger", "audit", "errata", "demo"} <= set(
        completed("hedgerow ")
    )
    assert completed("hedgerow ledger v") == ["verify"]
    assert set(completed("hedgerow fit ")) == set(SMALL.names)
    assert completed("hedgerow demo h") == ["holdout"]
    (desk.folder / "elsewhere").mkdir()
    monkeypatch.chdir(desk.folder / "elsewhere")
    assert completed("hedgerow fit ") == []  # without a file there is nothing to complete, and nothing fails


def test_the_seed_of_the_tests_is_said_wherever_it_is_used(desk: Desk) -> None:
    for command in (["ask", "count(smoker=True)"], ["sql", "SELECT count(*) FROM data"], ["fit", "smoker", "age"]):
        ran = desk.run(*command, "--seed", str(SEED))
        assert "NOT PRIVATE" in ran.stdout and "not private" in ran.stderr


# append


@pytest.mark.parametrize("given", [{}, {"epsilon": 0.5}, {"delta": 1e-9}, {"epsilon": 0.5, "delta": 1e-9}])
def test_a_block_has_the_budget_that_is_written_for_it_and_else_that_of_the_table(tmp_path: Path, given) -> None:
    block = File(made(tmp_path).file).block_arguments({"name": "february", "source": "february.csv", **given})
    assert ("budget" in block) == bool(given)
    if given:
        assert block["budget"] == hr.Budget(given.get("epsilon", BUDGET.epsilon), given.get("delta", BUDGET.delta))


def test_a_program_that_reads_the_answer_does_not_read_the_question(monkeypatch, capsys) -> None:
    """Whoever sits at a terminal is asked on the other stream, which a pipe or a file does not take."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin.readline", lambda *given: "y\n", raising=False)
    monkeypatch.setattr("builtins.input", lambda prompt="": "y")
    output.confirm("Spend it?", False)
    assert capsys.readouterr().out.strip() == ""


def test_no_command_agrees_or_answers_programs_unless_it_is_told_to() -> None:
    """Neither is a seed set, which would take the privacy away."""
    defaults = {"as_json": False, "yes": False, "seed": None}
    groups = [app, *(group.typer_instance for group in app.registered_groups)]
    commands = [command.callback for group in groups for command in group.registered_commands]
    assert len(commands) > 15
    for command in commands:
        for name, parameter in inspect.signature(command).parameters.items():
            assert name not in defaults or parameter.default is defaults[name], (command.__name__, name)


def test_rows_are_appended_noted_in_the_file_and_asked_about(tmp_path: Path) -> None:
    desk = opened(tmp_path)
    alone = desk.json("ask", "count(smoker=True)")["answers"][0]["value"]
    later = frame(3000).assign(smoker=True)
    later.to_csv(tmp_path / "february.csv", index=False)
    ran = desk.run("append", "february.csv", "--block", "february")  # without a terminal nobody can be asked
    assert ran.exit_code == 2 and "--yes" in ran.stderr and "blocks" not in File(desk.file).content
    assert "Appending reads february.csv and spends up to" in " ".join(ran.stderr.split()) and ran.stdout == ""
    said = desk.json("append", "february.csv", "--block", "february", "--epsilon", "0.5", "--yes", "--seed", "8")
    assert said["rows"] == 3000 and said["blocks"] == ["1", "february"]
    assert File(desk.file).content["blocks"] == [{"name": "february", "source": "february.csv", "epsilon": 0.5}]
    both = desk.json("ask", "count(smoker=True)")
    assert both["answers"][0]["value"] > alone + 0.2 and both["spent"] == said["spent"]
    one = desk.json("ask", "count(smoker=True)", "--over", "february")["answers"][0]["value"]
    assert one > 0.9 and desk.json("ask", "count(smoker=True)", "--over", "1")["answers"][0]["value"] == alone
    assert desk.json("ask", "count(smoker=True)", "--over", "1", "--over", "february")["answers"][0]["value"] == pytest.approx(
        both["answers"][0]["value"]
    )  # fmt: skip
    series = desk.json("ask", "count(smoker=True).over_time(share=0.02)")["answers"][0]
    assert np.shape(series["value"]) == (2, 2)
    shown = desk.json("ledger", "show")
    assert [b["block"] for b in shown["blocks"]] == ["february"] and shown["blocks"][0]["epsilon"] == 0.5
    assert "february" in words(desk, "ledger", "show") and desk.json("ledger", "verify")["whole"]
    assert desk.json("open")["opened"] == "before" and desk.json("ledger", "cap", "ana", "0.1")["epsilon"] == 0.1
    again = desk.run("append", "february.csv", "--block", "february", "--yes")
    assert again.exit_code == 2 and "must be a new name" in again.stderr
    same = desk.run("append", "people.csv", "--block", "march", "--yes")
    assert same.exit_code == 2 and "must not be those of another" in " ".join(same.stderr.split())
    assert len(File(desk.file).content["blocks"]) == 1


def test_an_append_that_was_killed_before_the_file_was_written_goes_on(tmp_path: Path) -> None:
    desk = opened(tmp_path)
    frame(3000).assign(smoker=True).to_csv(tmp_path / "february.csv", index=False)
    written = desk.file.read_text()
    first = desk.json("append", "february.csv", "--block", "february", "--yes", "--seed", "8")
    desk.file.write_text(written)
    refused = desk.run("ask", "count(smoker=True)")
    assert refused.exit_code == 2 and "All blocks of the ledger must be appended" in " ".join(refused.stderr.split())
    again = desk.json("append", "february.csv", "--block", "february", "--yes", "--seed", "8")
    assert again["spent"] == first["spent"] and again["blocks"] == ["1", "february"]
    desk.file.write_text(written)
    told = words(desk, "append", "february.csv", "--block", "february", "--yes", "--seed", "8")
    assert told.startswith("Appended 'february', 3,000 rows. ")
