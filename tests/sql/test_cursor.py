"""A session as a PEP-249 connection and an SQLAlchemy engine."""

from __future__ import annotations

import datetime

import checking
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.sql import cursor

STATEMENT = "SELECT c, count(*) AS n, avg(a) AS mean FROM data WHERE b >= 1 GROUP BY c ORDER BY n DESC"


@pytest.fixture(scope="module")
def session() -> hr.Session:
    return hr.open(checking.table(), universe=checking.UNIVERSE, budget=hr.Budget(1, 1e-6), seed=1)


def test_a_cursor_gives_the_rows_of_the_frame(session: hr.Session) -> None:
    frame = session.sql(STATEMENT)
    with cursor.connect(session) as connection:
        asked = connection.cursor().execute(STATEMENT)
        assert [column[0] for column in asked.description] == list(frame.columns)
        assert list(frame.columns) == ["c", "n", "n_error", "n_typical", "mean", "mean_error", "mean_typical"]
        assert asked.rowcount == 3
        first, rest = asked.fetchone(), asked.fetchall()
        assert pd.DataFrame([first, *rest], columns=frame.columns).equals(frame)
        assert asked.fetchone() is None and asked.fetchmany(2) == []
        connection.commit()
        connection.rollback()
    with pytest.raises(cursor.InterfaceError):
        connection.cursor().execute(STATEMENT)


def test_parameters_are_literals_where_they_stand(session: hr.Session) -> None:
    connection = cursor.connect(session)
    asked = connection.cursor().execute(
        "SELECT count(*) AS n FROM data WHERE c = ? AND a >= ? AND flag = ?", ("x", 1, True)
    )
    plain = session.sql("SELECT count(*) AS n FROM data WHERE c = 'x' AND a >= 1 AND flag = TRUE")
    assert asked.fetchall()[0][0] == plain["n"][0]
    assert cursor.with_parameters("'?' ? \"?\" ?", ["o'k", None]) == "'?'  'o''k'  \"?\"  NULL "
    assert cursor.with_parameters("?", [datetime.date(2020, 1, 31)]) == " DATE '2020-01-31' "
    for few_or_many in (("x",), ("x", 1, True, 2)):
        with pytest.raises(cursor.ProgrammingError, match="one"):
            connection.cursor().execute("SELECT count(*) FROM data WHERE c = ? AND a >= ? AND flag = ?", few_or_many)
    with pytest.raises(cursor.ProgrammingError, match="number, text"):
        cursor.with_parameters("?", [object])


def test_refusals_are_errors_of_the_database_interface(session: hr.Session) -> None:
    asked = cursor.connect(session).cursor()
    with pytest.raises(cursor.ProgrammingError, match="before its rows"):
        asked.fetchall()
    with pytest.raises(cursor.ProgrammingError, match="column 8"):
        asked.execute("SELECT a FROM data")
    with pytest.raises(cursor.NotSupportedError):
        asked.executemany(STATEMENT, [])
    asked.close()
    with pytest.raises(cursor.InterfaceError):
        asked.execute(STATEMENT)


def test_pandas_reads_through_sqlalchemy(session: hr.Session) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    from hedgerow.sql import dialect

    engine = dialect.engine(session)
    assert pd.read_sql(STATEMENT, engine).equals(session.sql(STATEMENT))
    inspected = sqlalchemy.inspect(engine)
    assert inspected.get_table_names() == ["data"]
    types = {column["name"]: type(column["type"]).__name__ for column in inspected.get_columns("data")}
    assert types == {"a": "Integer", "b": "Integer", "c": "String", "m": "String", "flag": "Boolean"}
    table = sqlalchemy.Table("data", sqlalchemy.MetaData(), autoload_with=engine)
    chosen = sqlalchemy.select(table.c.c, sqlalchemy.func.count().label("n")).where(table.c.a > 2).group_by(table.c.c)
    with engine.connect() as connection:
        assert len(connection.execute(chosen).all()) == 3
