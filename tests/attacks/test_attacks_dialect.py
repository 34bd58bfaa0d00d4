"""Attacks through SQLAlchemy: metadata, cursors, errors, transactions, pools and parameters reveal and reach nothing private."""

from __future__ import annotations

import threading
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from observing import Conditioned, History, Transcript, first_difference
from people import SMALL, frame
from sqlalchemy.exc import DBAPIError, NoSuchTableError

import hedgerow as hr
from hedgerow import opening
from hedgerow.sql import cursor, dialect

STATEMENTS = [
    "SELECT sex, count(*) AS n FROM data WHERE age > 2 GROUP BY sex ORDER BY n DESC",
    "SELECT region, avg(age), count(*) / 0 FROM data GROUP BY region HAVING count(*) > 90",
    "SELECT count(*) FROM data WHERE region = 3 AND smoker",
    "SELECT max(age), median(age) FROM data LIMIT 1",
    "SELECT nothing FROM data",
    "SELECT count(*) FROM data WHERE sex = 'X'",
    "SELECT sex FROM data",
]
ELSEWHERE = [
    "SELECT count(*) FROM read_csv('{file}')",
    "SELECT count(*) FROM '{file}'",
    "SELECT count(*) FROM main.data",
    "SELECT count(*) FROM memory.main.data",
    "SELECT count(*) FROM information_schema.tables",
    "SELECT count(*) FROM data, read_csv('{file}')",
    "SELECT count(*) FROM data JOIN other ON true",
    "SELECT (SELECT count(*) FROM read_csv('{file}')) FROM data",
    "SELECT count(*) FROM data WHERE age > (SELECT 1)",
    "SELECT count(*) FROM data WHERE EXISTS (SELECT 1 FROM read_csv('{file}'))",
    "WITH data AS (SELECT * FROM read_csv('{file}')) SELECT count(*) FROM data",
    "SELECT count(*) FROM (SELECT * FROM read_csv('{file}')) AS data",
    "SELECT count(*) FROM data UNION SELECT 1",
    "SELECT count(*) FROM data; SELECT count(*) FROM data",
    "SELECT getenv('HOME'), count(*) FROM data",
    "SELECT * FROM data",
    "COPY data TO '{file}'",
    "ATTACH '{file}' AS other",
    "CREATE TABLE other AS SELECT * FROM data",
    "INSERT INTO data VALUES (1)",
    "PRAGMA database_list",
    "SET memory_limit = '1GB'",
    "INSTALL httpfs",
    "EXPLAIN ANALYZE SELECT count(*) FROM data",
]


def paying(table: pd.DataFrame, history: History, monkeypatch: pytest.MonkeyPatch) -> hr.Session:
    """A session that may pay for any question, with this released history."""
    noise = Conditioned(history, seed=1)
    monkeypatch.setattr(opening, "Noise", lambda: noise)
    return hr.open(table, universe=SMALL, budget=hr.Budget(20.0, 1e-6), profile="theory", queries=100)


def all_that_is_shown(session: hr.Session) -> Transcript:
    engine, seen = dialect.engine(session), Transcript()
    inspector = sa.inspect(engine)
    for name in ("columns", "pk_constraint", "indexes", "unique_constraints", "check_constraints", "table_comment"):
        seen.watch(name, lambda name=name: str(getattr(inspector, f"get_{name}")("data")))
    for statement in STATEMENTS:

        def ask(statement: str = statement) -> Any:
            with engine.begin() as connection:
                found = connection.execute(sa.text(statement))
                facts = (found.rowcount, list(found.keys()), found.cursor and found.cursor.description)
                return facts, [tuple(row) for row in found]

        seen.watch(statement, ask, frames=False)
        seen.write(f"spent {session.spent!r}")
    return seen


@pytest.mark.parametrize("last", [slice(0, 399), slice(0, 1)], ids=["one row", "nearly all rows"])
def test_neighbours_look_the_same_through_sqlalchemy(last, monkeypatch) -> None:
    """Also tables that differ in almost all rows: given what was released, nothing that is shown depends on any."""
    table, other = frame(400), frame(400)
    other.iloc[last.stop :] = other.iloc[0].to_numpy()
    history = History(tops=3)
    one = all_that_is_shown(paying(table, history, monkeypatch))
    two = all_that_is_shown(paying(other, history.again(), monkeypatch))
    assert first_difference(one, two) == ""
    assert len({line for line in one.lines if line.startswith("spent")}) > 1  # some were paid for


@pytest.fixture(scope="module")
def session() -> hr.Session:
    return hr.open(frame(400), universe=SMALL, budget=hr.Budget(2.0, 1e-6), seed=1)


def test_no_statement_reaches_another_table_a_file_or_the_engine(session, tmp_path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    with dialect.engine(session).connect() as connection:
        for statement in ELSEWHERE:
            with pytest.raises(DBAPIError) as refused:
                connection.exec_driver_sql(statement.format(file=tmp_path / "a.csv"))
            assert isinstance(refused.value.orig, cursor.ProgrammingError), statement
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv"]


@pytest.mark.parametrize("name", ["other", "hedgerow_lines", "sqlite_master"])
def test_tables_and_schemas_that_are_not_there_have_no_columns(session, name) -> None:
    inspector = sa.inspect(dialect.engine(session))
    for table, schema in ((name, None), ("data", name)):
        assert not inspector.has_table(table, schema=schema)
        with pytest.raises(NoSuchTableError):
            inspector.get_columns(table, schema=schema)
    assert inspector.get_schema_names() == [] and inspector.get_table_names(schema=name) == []


HOSTILE = [
    "F' OR '1'='1", "F'--", "F'; DROP TABLE data; --", "\\' OR 1=1 --", "?", "$$?$$", "F\x00' OR 1=1 --", "F\n'", "'", "''", "\ud800", "E'F'",
]  # fmt: skip


@pytest.mark.parametrize("before", ["", "E", "X", "DATE", "$"])
@pytest.mark.parametrize("after", ["", "'F'"])
def test_a_parameter_is_one_value_whatever_it_holds_and_whatever_is_beside_it(session, before, after) -> None:
    """A text that left its quotes would count more than those of one value, which here is nobody's."""
    asked = cursor.connect(session).cursor()
    for text in HOSTILE:
        with pytest.raises(cursor.ProgrammingError):
            asked.execute(f"SELECT count(*) FROM data WHERE sex = {before}?{after}", [text])
    if not before and not after:
        for number in (10**400, -(10**400), 10**5000, float("inf")):
            with pytest.raises(cursor.ProgrammingError, match="finite number"):
                asked.execute("SELECT count(*) FROM data WHERE age > ?", [number])


@pytest.mark.parametrize("number", ["9" * 400, "9" * 5000, "1e400"])
@pytest.mark.parametrize(
    "statement", ["SELECT count(*) * {} FROM data", "SELECT sex, count(*) FROM data GROUP BY sex HAVING count(*) > {}"]
)
def test_numbers_beyond_all_floats_are_refused_in_the_interface_s_own_words(session, statement, number) -> None:
    with pytest.raises(cursor.ProgrammingError, match="must be finite"):
        cursor.connect(session).cursor().execute(statement.format(number))


def test_division_by_zero_gives_null_for_numbers_and_for_answers(session) -> None:
    none = "count(*) FILTER (WHERE age > 99)"
    asked = cursor.connect(session).cursor().execute(f"SELECT count(*) / 0, 1 / {none}, avg(age) / (2 - 2) FROM data")
    assert set(asked.fetchall()[0]) == {None}


def test_a_purchase_survives_a_rollback_and_is_answered_again(monkeypatch) -> None:
    session = paying(frame(400), History(tops=1), monkeypatch)
    engine, before = dialect.engine(session), session.spent
    with engine.connect() as connection:
        first = connection.execute(sa.text(STATEMENTS[2])).all()
        spent = session.spent
        connection.rollback()
    assert session.spent == spent > before
    engine.dispose()  # the pool's connection is closed, and another made
    with pytest.raises(ZeroDivisionError), engine.begin() as connection:
        assert connection.execute(sa.text(STATEMENTS[2])).all() == first
        raise ZeroDivisionError
    assert session.spent == spent


def test_threads_that_share_a_pool_get_the_rows_of_their_own_statements(session) -> None:
    engine = dialect.engine(session)
    asked = [f"SELECT {i} * count(*) AS n FROM data WHERE region = {i % 4}" for i in range(24)]

    def ask(statement: str) -> Any:
        with engine.connect() as connection:
            return connection.execute(sa.text(statement)).all()

    alone, found = [ask(statement) for statement in asked], {}
    threads = [
        threading.Thread(target=lambda mine=mine: found.update({i: ask(asked[i]) for i in range(mine, 24, 4)}))
        for mine in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] for i in range(24)] == alone


def test_many_at_once_and_points_to_save_are_refused_and_ask_nothing(session) -> None:
    engine, head = dialect.engine(session), len(session.log)
    table = sa.Table("data", sa.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        with pytest.raises(DBAPIError, match="one by one"):
            connection.execute(table.insert(), [{"sex": "F"}, {"sex": "M"}])
        with pytest.raises(DBAPIError, match="must be a SELECT"):
            connection.begin_nested()
    assert len(session.log) == head
