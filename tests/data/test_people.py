"""Persons with several rows: the kept rows of a person depend on that person alone, and the promise is for persons."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pandas as pd
import postgres
import psycopg
import pyarrow as pa
import pytest
from awkward_values import AWKWARD
from sqlite_file import open_sqlite

import hedgerow as hr
from hedgerow.data import HistogramSource, Table, table
from hedgerow.data.contributions import PersonColumn, persons
from hedgerow.errors import InvalidInput
from hedgerow.privacy.conversion import epsilon_of_rho

UNIVERSE = hr.Universe(a=hr.Integers(0, 4), b=hr.Flag())
BUDGET = hr.Budget(1.0, 1e-6, "add-remove")


def visits(people: int, seed: int = 0) -> pd.DataFrame:
    """Some have one row, some eleven, in no order; ids are of any kind."""
    rng = np.random.default_rng(seed)
    names = [f" p{i}" if i % 3 else i for i in range(people)]
    owners = rng.permutation(np.repeat(np.arange(people), rng.integers(1, 12, people)))
    owner = np.array(names, dtype=object)[owners]
    return pd.DataFrame({"who": owner, "a": rng.integers(0, 5, len(owner)), "b": rng.random(len(owner)) < 0.5})


def records(frame: pd.DataFrame, most: int) -> Counter[tuple[int, ...]]:
    data = Table(frame, UNIVERSE, unit=PersonColumn("who", most))
    counts = data.marginal(UNIVERSE.names)
    return Counter({tuple(cell): int(counts[tuple(cell)]) for cell in np.argwhere(counts).tolist()})


@pytest.mark.parametrize("most", [1, 3])
def test_an_added_or_removed_person_moves_at_most_k_rows_of_their_own(most) -> None:
    frame = visits(12)
    everybody = records(frame, most)
    for person in frame["who"].unique():
        gone = everybody.copy()
        gone.subtract(records(frame[frame["who"] != person], most))
        own = records(frame[frame["who"] == person], most)
        assert +gone == own and min(gone.values()) >= 0
        assert 1 <= own.total() == min(most, int((frame["who"] == person).sum()))


def test_a_table_of_many_rows_keeps_no_more_of_a_person_s_than_one_of_few(monkeypatch) -> None:
    few = records(visits(40), 2)
    monkeypatch.setattr(table, "FEWEST_FOLDED", 20)  # beyond, rows without persons are kept as counts
    assert records(visits(40), 2) == few


def test_the_order_of_rows_decides_nothing() -> None:
    frame = visits(30)
    shuffled = frame.sample(frac=1.0, random_state=1)
    assert records(frame, 2) == records(shuffled, 2)
    assert (
        Table(frame, UNIVERSE, unit=PersonColumn("who", 2)).fingerprint()
        == Table(shuffled, UNIVERSE, unit=PersonColumn("who", 2)).fingerprint()
    )


def test_the_value_of_one_id_changes_no_other_person() -> None:
    """A missing or strange one changes the type that pandas infers; the persons stay whom they were."""
    frame = pd.DataFrame(
        {"who": np.repeat(np.arange(1000, 1040), 5), "a": np.arange(200) % 5, "b": np.arange(200) % 3 == 0}
    )
    alone = records(frame, 2)
    for value in (None, 1.5, "x", math.nan, *AWKWARD[::14]):
        ids = pd.Series(
            [*frame["who"].tolist(), value], dtype=object if isinstance(value, list | tuple | dict) else None
        )
        more = pd.concat([frame, pd.DataFrame({"a": [0], "b": [True]})], ignore_index=True).assign(who=ids)
        assert records(more, 2) == alone + Counter({(0, 1): 1})


def test_ids_are_texts_blanks_aside_and_rows_without_one_are_one_person() -> None:
    ids = [1, 1.0, "1", " 1 ", b"1\t", None, math.nan, "", "  ", "01"]
    assert persons(pa.array([b"1 ", b"", None, b"\xff"], pa.binary())).to_pylist() == [b"1", b"", b"", b"\xff"]
    frame = pd.DataFrame({"who": pd.Series(ids, dtype=object), "a": 0, "b": False})
    assert records(frame, 1).total() == 3 and records(frame, 2).total() == 5


def test_each_row_of_a_person_is_as_likely_to_stay() -> None:
    """For different rows and for equal ones: 6,000 persons keep one row of four. Each count is wrong with probability 1e-6."""
    people, tolerance = 6000, 4.9
    distinct = pd.DataFrame({"who": np.repeat(np.arange(people), 4), "a": np.tile([0, 1, 2, 3], people), "b": False})
    twice = distinct.assign(a=np.tile([0, 0, 0, 1], people))
    for frame, shares in ((distinct, [0.25] * 4), (twice, [0.75, 0.25])):
        counts = Table(frame, UNIVERSE, unit=PersonColumn("who", 1)).marginal(["a"])
        assert counts.sum() == people
        for count, share in zip(counts, shares, strict=False):
            assert abs(count - people * share) <= tolerance * math.sqrt(people * share * (1 - share))


def test_every_source_keeps_the_same_rows(tmp_path) -> None:
    frame = visits(40).assign(who=lambda f: f["who"].astype(str))
    expected = Table(frame, UNIVERSE, unit=PersonColumn("who", 2)).fingerprint()
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    with open_sqlite(tmp_path / "t.db") as db:
        frame.to_sql("t", db, index=False)
    url = postgres.server().fresh()
    with psycopg.connect(url) as db:
        db.execute("CREATE TABLE t (who text, a int, b boolean)")
        db.cursor().executemany("INSERT INTO t VALUES (%s, %s, %s)", frame.values.tolist())
    for source, how in (
        (tmp_path / "t.csv", {}),
        (tmp_path / "t.parquet", {}),
        (pa.Table.from_pandas(frame), {}),
        (f"sqlite://{tmp_path}/t.db", {"table": "t"}),
        (url, {"table": "t"}),
    ):
        assert Table(source, UNIVERSE, unit=PersonColumn("who", 2), **how).fingerprint() == expected


def test_a_column_of_the_universe_may_tell_persons_apart() -> None:
    frame = visits(20).assign(who=lambda f: f["a"])
    assert Table(frame, UNIVERSE, unit=PersonColumn("a", 3)).marginal(["a"]).tolist() == [3] * 5


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_session_with_k_rows_a_person_pays_for_k_at_once(delta) -> None:
    budget = hr.Budget(1.0, delta, "add-remove")
    frame = visits(400)
    session = hr.open(frame, universe=UNIVERSE, budget=budget, unit="who", rows_per_unit=3, reserve=0.2)
    session.ask(hr.count(a=(1, 2), b=True), within=0.5)
    assert session.budget == hr.Budget(1.0, delta, "add-remove", rows_per_unit=3)
    events = [event for entry in session.log for event in entry.events]
    if delta == 0:
        assert 0.5 < sum(3 * event.epsilon for event in events) <= 1.0 + 1e-9
    else:  # three rows move a Gaussian's value by three times its sensitivity, and ρ is quadratic in it
        spent = sum(9 * event.rho for event in events)
        assert 0.5 * budget.total < spent <= budget.total * (1 + 1e-9)
        assert epsilon_of_rho(spent, delta) <= 1.0 + 1e-6
    assert session.spent_epsilon <= 1.0 + 1e-6
    assert "rows per unit  3" in str(session)
    released = hr.release(frame, universe=UNIVERSE, budget=budget, unit="who", rows_per_unit=3)
    assert released.budget == session.budget and released.spent <= released.budget.total * (1 + 1e-9)


def test_a_ledger_that_lasts_knows_the_persons(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HEDGEROW_LEDGER_KEY", "00" * 32)
    frame, url = visits(100), f"sqlite:///{tmp_path}/people.ledger"
    how = {"universe": UNIVERSE, "budget": BUDGET, "unit": "who", "ledger": url}
    session = hr.open(frame, rows_per_unit=2, **how)
    value, spent = session.ask(hr.count(b=True)).value, session.spent
    session.ledger.close()
    again = hr.open(frame.sample(frac=1.0, random_state=0), rows_per_unit=2, **how)
    assert again.ask(hr.count(b=True)).value == value and again.spent == spent
    again.ledger.close()
    with pytest.raises(InvalidInput, match="budget must be that of the ledger"):
        hr.open(frame, rows_per_unit=3, **how)


def test_options_without_a_promise_to_persons_are_refused() -> None:
    frame = visits(5)
    how = {"universe": UNIVERSE, "budget": BUDGET}
    for bad, words in (
        ({"unit": "who"}, "unit must come with rows_per_unit"),
        ({"rows_per_unit": 2}, "rows_per_unit must come with unit"),
        ({"unit": "who", "rows_per_unit": 0}, "rows_per_unit must be a whole number"),
        ({"unit": "nobody", "rows_per_unit": 2}, "Found no 'nobody'"),
        ({"unit": 3, "rows_per_unit": 2}, "unit must be the name of the column"),
        ({"unit": "who", "rows_per_unit": 2, "budget": hr.Budget(1.0, 1e-6)}, "unit must come with neighbours='add-remove'"),
        ({"unit": "who", "rows_per_unit": 2, "budget": 1.0}, "budget must be an hr.Budget"),
        ({"unit": "who", "rows_per_unit": 2, "budget": hr.Budget(1, 0, "add-remove", 3)}, "must be that of the budget, 3"),
        ({"unit": "who", "rows_per_unit": 2, "ledger": hr.Accountant(BUDGET)}, "budget must be that of the ledger"),
        ({"unit": "who", "rows_per_unit": 2, "keep_rows": True}, "rows must come with neighbours='replace'"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=words):
            hr.open(frame, **{**how, **bad})
    counts = HistogramSource(UNIVERSE, np.ones(UNIVERSE.size, int))
    with pytest.raises(InvalidInput, match="a source of counts only"):
        hr.open(counts, unit="who", rows_per_unit=2, **how)
    with pytest.raises(InvalidInput, match="A draft's budget must be for single rows"):
        hr.Universe.draft(frame, budget=hr.Budget(1.0, 1e-6, rows_per_unit=2))
