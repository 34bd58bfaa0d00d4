"""200 questions as Python, as SQL and on the command line: the same answers on a seeded session, and one ledger for all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import serving
from desks import SEED, Desk, opened

import hedgerow as hr
from hedgerow.server.people import TokenStore
from hedgerow.server.registry import ServiceRegistry

HOW_MANY = 200


class Asked(NamedTuple):
    """One question in three ways, each written by itself."""

    python: hr.Query
    text: str
    sql: str


def predicate(rng: np.random.Generator, name: str) -> tuple[Any, str, str]:
    if name == "sex":
        value = str(rng.choice(["F", "M"]))
        return value, repr(value), f"sex = '{value}'"
    if name == "smoker":
        value = bool(rng.integers(2))
        return value, repr(value), "smoker" if value else "NOT smoker"
    most = 7 if name == "age" else 3
    low, high = sorted(int(x) for x in rng.integers(0, most + 1, 2))
    if rng.random() < 0.3:
        return {low, high}, f"{{{low}, {high}}}", f"{name} IN ({low}, {high})"
    return (low, high), f"({low}, {high})", f"{name} BETWEEN {low} AND {high}"


def condition(rng: np.random.Generator) -> tuple[hr.Query, str, str]:
    names = [str(n) for n in rng.choice(["age", "sex", "smoker", "region"], size=rng.integers(1, 4), replace=False)]
    found = {name: predicate(rng, name) for name in names}
    query = hr.count({name: value for name, (value, _, _) in found.items()})
    text = f"count({', '.join(f'{name}={text}' for name, (_, text, _) in found.items())})"
    return query, text, "(" + " AND ".join(sql for _, _, sql in found.values()) + ")"


def question(rng: np.random.Generator) -> Asked:
    (a, a_text, a_sql), (b, b_text, b_sql) = condition(rng), condition(rng)
    number = str(rng.choice(["age", "region"]))
    match int(rng.integers(9)):
        case 0:
            return Asked(a | b, f"{a_text} | {b_text}", f"SELECT count(*) FROM data WHERE {a_sql} OR {b_sql}")
        case 1:
            return Asked(a & ~b, f"hr.{a_text} & ~{b_text}", f"SELECT count(*) FROM data WHERE {a_sql} AND NOT {b_sql}")
        case 2:
            text = f'mean("{number}", where={a_text})'
            return Asked(hr.mean(number, where=a), text, f"SELECT avg({number}) FROM data WHERE {a_sql}")
        case 3:
            text = f"total('{number}', {a_text})"
            return Asked(hr.total(number, a), text, f"SELECT sum({number}) FROM data WHERE {a_sql}")
        case 4:
            sql = f"SELECT quantile_disc({number}, 0.25) FROM data WHERE {a_sql}"
            return Asked(hr.quantile(number, 0.25, where=a), f'quantile("{number}", 0.25, where={a_text})', sql)
    return Asked(a, a_text, f"SELECT count(*) FROM data WHERE {a_sql}")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return opened(tmp_path_factory.mktemp("desk"))


@pytest.fixture(scope="module")
def asked() -> list[Asked]:
    rng = np.random.default_rng(0)
    return [question(rng) for _ in range(HOW_MANY)]


def numbers(answers: list[Any]) -> np.ndarray[Any, Any]:
    return np.array([[a["value"], np.nan if a["error"] is None else a["error"]] for a in answers])


def of_python(answers: list[hr.Answer]) -> np.ndarray[Any, Any]:
    return np.array([[a.value, np.nan if a.error is None else a.error] for a in answers])


def test_200_questions_as_python_sql_and_cli_give_the_same_answers_on_a_seeded_session(
    desk: Desk, asked: list[Asked], tmp_path: Path
) -> None:
    (tmp_path / "asked.txt").write_text("# 200 questions\n\n" + "\n".join(each.text for each in asked))
    (tmp_path / "asked.sql").write_text(";\n".join(each.sql for each in asked))
    python = desk.in_python().ask_all([each.python for each in asked], scale="rows")  # a session of its own each
    by_sql = desk.in_python()
    sql = np.array([by_sql.sql(each.sql).to_numpy(dtype=float)[0, :2] for each in asked])
    first = desk.json("ask", "--from", str(tmp_path / "asked.txt"), "--scale", "rows")
    assert len(first["answers"]) == HOW_MANY and first["private"] is False
    cli = numbers(first["answers"])
    np.testing.assert_allclose(cli, of_python(python), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(cli, sql, rtol=1e-9, atol=1e-9)
    assert len(np.unique(cli[:, 0])) > HOW_MANY / 2  # and they are not all one number

    # On the ledger that the command line wrote, to the last bit, asked as it was.
    again = desk.json("ask", "--from", str(tmp_path / "asked.txt"), "--scale", "rows")
    np.testing.assert_array_equal(numbers(again["answers"]), cli)
    assert {answer["source"] for answer in again["answers"]} == {"repeat"} and again["spent"] == first["spent"]
    resumed = desk.in_python(ledger=desk.url)
    np.testing.assert_array_equal(of_python(resumed.ask_all([each.python for each in asked], scale="rows")), cli)
    resumed.ledger.close()  # type: ignore[attr-defined]
    tables = desk.json("sql", "--from", str(tmp_path / "asked.sql"))["results"]
    by_rows = np.array([t["rows"][0][:2] for t in tables], dtype=float)
    np.testing.assert_allclose(by_rows, cli, rtol=1e-14)  # SQL scales to rows by itself


def test_one_by_one_and_in_processes_of_their_own_they_are_the_same_too(desk: Desk, asked: list[Asked]) -> None:
    together = desk.json("ask", *(each.text for each in asked[:3]), "--scale", "rows")["answers"]
    for each, known in zip(asked[:3], together, strict=True):
        alone = desk.json("ask", each.text, "--scale", "rows")["answers"][0]
        form = desk.json("ask", hr.wire.dumps(each.python), "--scale", "rows")["answers"][0]
        assert alone["value"] == form["value"] == known["value"] and alone["error"] == form["error"] == known["error"]
    process = desk.start("ask", asked[0].text, "--scale", "rows", "--json")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert json.loads(out)["answers"][0]["value"] == together[0]["value"]


def test_the_session_of_the_test_has_the_seed_that_is_said(desk: Desk) -> None:
    assert desk.in_python().ask(hr.count(sex="F")).value == desk.json("ask", 'count(sex="F")')["answers"][0]["value"]
    other = hr.open(
        desk.folder / "people.csv", universe=desk.in_python().universe, budget=hr.Budget(1.0, 1e-6), reserve=0.3, guard=0.0,
        seed=SEED + 1,
    )  # fmt: skip
    assert other.ask(hr.count(sex="F")).value != desk.in_python().ask(hr.count(sex="F")).value


def test_the_same_200_over_http_by_the_client_and_by_sql_of_a_service(desk: Desk, asked: list[Asked]) -> None:
    want = numbers(desk.json("ask", *(each.text for each in asked), "--scale", "rows")["answers"])
    port = serving.free_port()
    registry = ServiceRegistry(desk.folder / "hedgerow-service.sqlite")
    token = TokenStore(registry).create("ana", "analyst")[0]
    registry.close()
    with (
        serving.process("--file", str(desk.file), port=port),
        hr.connect(f"http://127.0.0.1:{port}", token) as people,
    ):
        by_client = people.ask_all([each.python for each in asked], scale="rows")
        one_by_one = [people.ask(each.python, scale="rows") for each in asked[:20]]
        http = people._connection.post(
            f"{people._at}/batch", {"questions": [each.text for each in asked], "scale": "rows"}
        )["answers"]
        by_sql = [people.sql(each.sql).to_numpy(dtype=float)[0, :2] for each in asked[:50]]
    np.testing.assert_array_equal(of_python(by_client), want)
    np.testing.assert_array_equal(of_python(one_by_one), want[:20])
    np.testing.assert_array_equal(numbers(http), want)
    np.testing.assert_allclose(np.array(by_sql), want[:50], rtol=1e-14)
