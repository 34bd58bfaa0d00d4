"""Surfaces beside the answers: the command line on neighbouring tables, the fields of an answer, and answers to many threads at once."""

from __future__ import annotations

import gc
import pickle
import re
import sys
import threading
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import desks
import numpy as np
import pandas as pd
import pytest
from observing import Conditioned, History
from people import SMALL, frame

import hedgerow as hr
from hedgerow import opening
from hedgerow.release_file.replica import Replica, given_answers, public_state
from hedgerow.universe.files import to_mapping, to_toml

# The command line, on neighbours with one released history

SHOWN = [
    ("open", "--yes"),
    ("open", "--json"),
    ("ask", "count(smoker=True)", "mean(age)", "marginal(sex, region)"),
    ("ask", "count(age=(2, 5), smoker=True)", "--within", "0.03", "--json"),
    ("ask", "count(region=3)", "--within", "1e-9"),
    ("ask", "count(nobody=1)"),
    ("sql", "SELECT sex, count(*) FROM data WHERE age > 2 GROUP BY sex"),
    ("sql", "SELECT nothing FROM data"),
    ("synth", "5"),
    ("synth", "--rows", "5"),
    ("fit", "smoker", "age", "sex", "--json"),
    ("ask", "count(region=3)", "--within", "0.02", "--price", "--json"),
    ("ledger", "show"),
    ("ledger", "verify"),
]
UNEQUAL = re.compile(
    r"[0-9a-f]{64}|\d{4}-\d\d-\d\d[ T][\d:.]+(\+00:00|Z)?|\b\d+\.\d+ s\b"
)  # hashes under a key, and times
STRANGE = {"age": "99999999999999999999", "sex": "\x1b[31m<b>'\"", "smoker": "nan", "region": "-1e400"}


def desk_of(folder: Path, table: pd.DataFrame, relation: str) -> desks.Desk:
    folder.mkdir()
    table.to_csv(folder / "people.csv", index=False)
    head = desks.HEAD.replace("[options]", f'neighbours = "{relation}"\n\n[options]')
    (folder / "hedgerow.toml").write_text(head + to_toml(to_mapping(SMALL), "universe"))
    return desks.Desk(folder)


def shown(desk: desks.Desk, history: History, monkeypatch: pytest.MonkeyPatch, every: int) -> list[tuple[Any, ...]]:
    noise = Conditioned(history, seed=1)
    monkeypatch.setattr(opening, "Noise", lambda: noise)
    found = []
    for command in SHOWN[::every]:
        ran = desk.run(*command)
        said = [UNEQUAL.sub("…", text.replace(str(desk.folder), "")) for text in (ran.stdout, ran.stderr)]
        found.append((command, ran.exit_code, *said))
    return found


@pytest.mark.parametrize(
    ("relation", "every"),
    [
        ("add-remove", 3),
        pytest.param("replace", 1, marks=pytest.mark.audit),
        pytest.param("add-remove", 1, marks=pytest.mark.audit),
    ],
)
def test_commands_say_the_same_of_neighbours_and_end_with_the_same_status(
    relation: str, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = frame(400).astype(object)
    other = table.iloc[:-1] if relation == "add-remove" else pd.concat([table.iloc[:-1], pd.DataFrame([STRANGE])])
    history = History()
    one = shown(desk_of(tmp_path / "one", table, relation), history, monkeypatch, every)
    two = shown(desk_of(tmp_path / "other", other, relation), history.again(), monkeypatch, every)
    assert one == two
    assert len({status for _, status, *_ in one}) > 1


# What an answer holds

PRIVATE = (
    "Session",
    "Table",
    "Histogram",
    "Ledger",
    "Accountant",
    "Receipt",
    "Problem",
    "Noise",
    "Engine",
    "Rows",
    "Durable",
    "Source",
)


def held_by(thing: Any) -> set[str]:
    """All types of the package, and large arrays, that can be reached from a thing by references."""
    found, seen, rest = set(), set(), [thing]
    while rest:
        one = rest.pop()
        if id(one) in seen or isinstance(one, ModuleType | type | FunctionType | BuiltinFunctionType):
            continue
        seen.add(id(one))
        kind = type(one)
        if kind.__module__.startswith("hedgerow"):
            found.add(kind.__name__)
        if isinstance(one, np.ndarray | pd.DataFrame) and one.size >= 5000:
            found.add("an array of all rows")
        rest += gc.get_referents(one)
    return found


def is_old(age: int) -> float:
    return float(age > 3)


def answers() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    session = hr.open(frame(5000), universe=SMALL, budget=hr.Budget(2.0, 1e-6), reserve=0.4, keep_rows=True)
    logistic = hr.losses.Logistic(target="smoker", features=["age"])
    X, y = rng.normal(size=(5000, 3)), rng.integers(0, 2, 5000)
    return {
        "count": session.ask(hr.count(smoker=True)),
        "bought": session.ask(hr.count(age=(2, 5), smoker=True), within=0.01),
        "marginal": session.ask(hr.marginal("age", "sex")),
        "minimum": session.ask(hr.minimize(logistic, over=hr.L2Ball(2.0))),
        "statistic": session.ask(hr.statistic(is_old, "age", within=0.2)),
        "SQL": session.sql("SELECT sex, count(*) FROM data GROUP BY sex"),
        "synthetic": session.synthetic(10),
        "fit": hr.erm.auto(X, y, loss=hr.losses.Logistic(), over=hr.L2Ball(1.0), budget=hr.Budget(1.0, 1e-6)),
        "refusal": refusal(session),
    }


def refusal(session: hr.Session) -> BaseException:
    """As it leaves the process: a traceback stays where it was raised."""
    with pytest.raises(hr.InvalidInput) as refused:
        session.ask(hr.count(nobody=1))
    passed_on: BaseException = pickle.loads(pickle.dumps(refused.value))
    return passed_on


def test_an_answer_holds_nothing_of_the_session_and_can_be_passed_on() -> None:
    for name, answer in answers().items():
        held = held_by(answer)
        assert not [kind for kind in held if kind.endswith(PRIVATE) or kind == "an array of all rows"], (name, held)
        assert len(pickle.dumps(answer)) < 20_000, name


def test_a_session_that_is_looked_through_is_found_to_hold_its_table() -> None:
    """So the search finds what is there."""
    session = hr.open(frame(5000), universe=SMALL, budget=hr.Budget(2.0, 1e-6), seed=1)
    assert any(kind.endswith(PRIVATE) for kind in held_by(list(vars(session).values())))


def published(session: hr.Session, folder: Path) -> dict[str, Any]:
    """All that leaves the session's process: a file, what workers get, and what an assistant is given."""
    file, state, view = (
        session.publish(folder / "people.hedgerow", answers="all"),
        public_state(session),
        session.public_view(),
    )
    release, replica = hr.load(file), Replica()
    assert state is not None
    replica.learn(state)
    return {
        "release": release,
        "a release that was passed on": pickle.loads(pickle.dumps(release)),
        "what a worker gets": state,
        "answers that workers know": given_answers(session),
        "a worker": replica,
        "an answer of a view": view.ask(hr.count(age=(1, 3))),
        "a table of a view": view.ask(hr.marginal("age", "sex")),
        "records of a view": view.synthetic(10),
        "a statement": session.statement(),
    }


def test_nothing_that_is_published_holds_the_table_the_ledger_or_the_noise(tmp_path) -> None:
    session = hr.open(frame(5000), universe=SMALL, budget=hr.Budget(2.0, 1e-6), reserve=0.4, keep_rows=True)
    session.ask(hr.count(smoker=True), within=0.01)
    for name, thing in published(session, tmp_path).items():
        held = held_by(thing)
        assert not [kind for kind in held if kind.endswith(PRIVATE) or kind == "an array of all rows"], (name, held)
    with pytest.raises(hr.InvalidInput, match="process"):
        pickle.dumps(session.public_view())


# Threads


def test_threads_that_ask_one_session_get_their_own_answers_and_spend_what_is_billed() -> None:
    session = hr.open(frame(5000), universe=SMALL, budget=hr.Budget(1.0, 1e-6), reserve=0.6)
    asked = [hr.count(age=(i, 7), region=j) for i in range(4) for j in range(4)]
    before, found, failed = session.spent, {}, []

    def ask(mine: int) -> None:
        order = np.random.default_rng(mine).permutation(len(asked))
        for i in order[:9].tolist():
            try:
                found[mine, i] = session.ask(asked[i], within=0.02)
            except hr.BudgetExceeded:
                continue
            except BaseException as error:
                failed.append(error)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=ask, args=(mine,)) for mine in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(usual)
    assert failed == [] and len(found) > 9
    ledger = session.ledger
    assert session.spent <= session.budget.total * (1 + 1e-12)
    assert sum(answer.cost for answer in found.values()) == pytest.approx(session.spent - before, rel=1e-9)
    assert sum(map(ledger.budget.cost, ledger.events)) == pytest.approx(session.spent, rel=1e-9)
    for (_, i), answer in found.items():  # a question's answers are all one
        assert answer.value == session.ask(asked[i]).value
