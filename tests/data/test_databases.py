"""Databases and folders: every type has its cells, nothing is written, one snapshot is read, and failures reveal nothing."""

from __future__ import annotations

import contextlib
import os
import traceback
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import postgres
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from awkward_values import AWKWARD
from coded_rows import coded_rows

import hedgerow as hr
from hedgerow.data import Table, postgres_table, readers
from hedgerow.data.coding import Coder
from hedgerow.errors import DataUnavailable, InvalidInput

FLAG = hr.Universe(a=hr.Flag())


def table_of(definition: str, rows: list[tuple[object, ...]], **how: str) -> str:
    """The URL of a new table t."""
    url = how.get("url") or postgres.server().fresh()
    with psycopg.connect(url) as db:
        db.execute(f"CREATE TABLE t ({definition})")
        if rows:
            db.cursor().executemany(f"INSERT INTO t VALUES ({', '.join(['%s'] * len(rows[0]))})", rows)
    return url


def cells(url: str, universe: hr.Universe) -> list[list[int]]:
    return coded_rows(url, universe, table="t").tolist()


class Refusing:
    """A connection on which nothing can be set."""

    is_closed = False

    def execute(self, settings: bytes) -> None:
        raise psycopg.OperationalError("hunter2")

    def close(self) -> None:
        self.is_closed = True


def test_a_connection_that_cannot_be_used_is_closed(monkeypatch) -> None:
    """An owner who tries again and again must not use up the connections of a server."""
    made = Refusing()
    monkeypatch.setattr(psycopg, "connect", lambda *given, **named: made)
    with pytest.raises(DataUnavailable, match="OperationalError") as refused:
        postgres_table._connect("postgresql://localhost/people")
    assert made.is_closed and "hunter2" not in str(refused.value)


NUMBERS = hr.Range(0, 3, bins=3, other=True, missing=True)
DAYS = hr.Dates("2020-01-01", "2021-12-31", "year", other=True, missing=True)
WORDS = hr.Categories(["F", "true", "3"], other=True, missing=True)
TYPES = [
    ("smallint", hr.Integers(0, 3), [1, -9, 32767, None], [1, 0, 3, 0]),
    ("bigint", hr.Integers(0, 3, other=True), [1, -(2**63), 2**63 - 1, None], [1, 4, 4, 4]),
    ("real", NUMBERS, [0.7, "NaN", "Infinity", "-0", None], [0, 3, 4, 0, 3]),
    ("float8", NUMBERS, [2.0, 1.9999999999999998, 3.0000000000000004, 5e-324, "NaN"], [2, 1, 4, 0, 3]),
    ("numeric", NUMBERS, [Decimal("1.5"), "NaN", "Infinity", Decimal(10) ** 300, Decimal("1e-300")], [1, 3, 4, 4, 0]),
    ("boolean", hr.Flag(), [True, False, None], [1, 0, 0]),
    ("boolean", WORDS, [True, False, None], [1, 4, 3]),
    ("text", WORDS, ["F", " F ", "f", "", "3.0", "TRUE", None], [0, 0, 4, 3, 2, 4, 3]),
    ("char(5)", WORDS, ["F", "3", None], [0, 2, 3]),
    ("bytea", WORDS, [b"F", b"\xff", b"F\0", None], [0, 4, 4, 3]),
    ("date", DAYS, ["2020-12-31", "2021-01-01", "infinity", "2020-06-01 BC", "12020-01-01", None], [0, 1, 3, 3, 3, 2]),
    ("timestamp", DAYS, ["2020-12-31 23:59:59.9", "-infinity", "2020-06-01 00:00 BC", None], [0, 3, 3, 2]),
    ("timestamptz", DAYS, ["2020-12-31 23:59:59-05", "2021-01-01 00:30+02", None], [1, 0, 2]),
    ("uuid", hr.Categories(["x", "00000000-0000-0000-0000-000000000001"]), ["00000000-0000-0000-0000-000000000001"], [1]),
    ("int[]", hr.Categories(["x", "{1,2}"]), [[1, 2]], [1]),
    ("jsonb", hr.Categories(["x", "3"]), ["3", '{"a": 1}', None], [1, 0, 0]),
    ("interval", hr.Categories(["x", "1 day 13:05:00"]), ["1 day 13:05:00", "999999 years"], [1, 0]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "attribute", "values", "expected"), TYPES, ids=[kind for kind, *_ in TYPES])
def test_every_type_of_postgresql_has_the_cells_of_the_rule(kind, attribute, values, expected) -> None:
    assert [c for (c,) in cells(table_of(f"a {kind}", [(v,) for v in values]), hr.Universe(a=attribute))] == expected


def test_awkward_texts_of_postgresql_have_the_cells_of_the_rule() -> None:
    texts = [value for value in AWKWARD if isinstance(value, str) and "\0" not in value and value.isprintable()]
    for attribute in (WORDS, NUMBERS, DAYS, hr.Flag(other=True)):
        coder = Coder(attribute)
        found = cells(table_of("a text", [(text,) for text in texts]), hr.Universe(a=attribute))
        assert found == [[coder.cell(text)] for text in texts]


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII", "EUC_JP"])
def test_texts_come_in_the_encoding_of_their_server_and_none_fails(encoding) -> None:
    """SQL_ASCII holds any bytes, and EUC_JP characters that UTF-8 has not: a conversion by the server would fail on such a row."""
    server = postgres.server()
    name = f"of_{encoding.lower()}"
    server.sql(f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    url = f"postgresql://owner@/{name}?host={server.folder}"
    codec = {"LATIN1": "latin-1", "SQL_ASCII": "utf-8", "EUC_JP": "euc_jp"}[encoding]
    word = "日" if encoding == "EUC_JP" else "é"
    with psycopg.connect(url) as db:
        db.execute("SET client_encoding = SQL_ASCII")
        db.execute(b"CREATE TABLE t (a text)")
        wrong = b"\\xf5\\xfe" if encoding == "EUC_JP" else b"\\xe9\\xe8"
        db.execute(b"INSERT INTO t VALUES ('" + word.encode(codec) + b"'), (E'" + wrong + b"'), (NULL)")
    found = cells(url, hr.Universe(a=hr.Categories(["x", word], other=True)))
    assert found == [[1], [2], [2]]


def test_schemas_domains_views_and_names_of_any_kind() -> None:
    url = table_of('"é ""x"" %s" int, a int', [(2, 3)])
    with psycopg.connect(url) as db:
        db.execute("CREATE DOMAIN age AS int CHECK (VALUE < 200)")
        db.execute('CREATE VIEW "my.view" AS SELECT a::age AS a FROM t')
        schema = db.execute("SELECT current_schema()").fetchone()[0]
    assert cells(url, hr.Universe({'é "x" %s': hr.Integers(0, 9), "a": hr.Integers(0, 9)})) == [[2, 3]]
    for name in ("my.view", f"{schema}.t"):
        assert Table(url, hr.Universe(a=hr.Integers(0, 9)), table=name).marginal(["a"]).argmax() == 3
    for name in ("none", "no.t", "t; DROP TABLE t", 'x"'):
        with pytest.raises(InvalidInput, match="must have the table"):
            Table(url, FLAG, table=name)
    with pytest.raises(InvalidInput, match="must be Dates, as its column holds dates"):
        Table(table_of("a date", []), hr.Universe(a=hr.Integers(0, 9)), table="t")


def test_the_catalogue_says_enumerations_and_checks() -> None:
    url = postgres.server().fresh()
    with psycopg.connect(url) as db:
        db.execute("CREATE TYPE sex AS ENUM ('F', 'M')")
    table_of("a sex, b int CHECK (b >= 0 AND b <= 120)", [("F", 3)], url=url)
    a, b = readers.open_batches(url, "t", None).types
    assert a.labels == ("F", "M") and (b.kind, b.low, b.high) == ("whole", 0, 120)


def test_a_database_is_read_at_one_moment_by_a_connection_that_cannot_write(monkeypatch) -> None:
    url = table_of("a int", [(i % 2,) for i in range(100)])
    monkeypatch.setattr(postgres_table, "ROWS_OF_AN_ENGINE", 10)
    batches = readers.open_batches(url, "t", None).batches([0])
    read = [next(batches)[0]]
    with psycopg.connect(url) as db:
        db.execute("DELETE FROM t")
    read += [column for (column,) in batches]
    assert sum(map(len, read)) == 100
    with (
        contextlib.closing(postgres_table._connect(url)) as reading,
        pytest.raises(psycopg.errors.ReadOnlySqlTransaction),
    ):
        reading.execute("CREATE TABLE u (a int)")


def test_a_connection_lost_while_rows_are_read_is_reported_without_them_and_costs_nothing(monkeypatch) -> None:
    url = table_of("a text", [("SECRET",)] * 100)
    monkeypatch.setattr(postgres_table, "ROWS_OF_AN_ENGINE", 10)
    carried, left = postgres_table._as_arrow, iter(range(3))

    def dropping(*given):
        if next(left, None) is None:
            with psycopg.connect(url, autocommit=True) as db:
                db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hedgerow'")
        return carried(*given)

    monkeypatch.setattr(postgres_table, "_as_arrow", dropping)
    ledger = hr.Accountant(hr.Budget(1.0, 1e-6))
    with pytest.raises(DataUnavailable, match="Check the file's format, its types and the connection") as refused:
        hr.open(url, table="t", universe=FLAG, budget=ledger.budget, ledger=ledger)
    assert "SECRET" not in "".join(traceback.format_exception(refused.value)) and ledger.spent == 0
    monkeypatch.setattr(postgres_table, "_as_arrow", carried)
    assert hr.open(url, table="t", universe=FLAG, budget=ledger.budget, ledger=ledger).rows == 100


def test_the_password_comes_from_the_environment_and_is_in_no_message(monkeypatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    for url in (
        "postgresql://u@127.0.0.1:1/x",
        "postgresql://u:hunter2@127.0.0.1:1/x",
        "postgresql://u:%zzhunter2@h/x",
    ):
        with pytest.raises(DataUnavailable) as refused:
            Table(url, FLAG, table="t")
        assert "hunter2" not in "".join(traceback.format_exception(refused.value))
        assert refused.value.__context__ is None


def test_a_file_of_duckdb_is_opened_to_be_read(tmp_path) -> None:
    import duckdb

    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute("CREATE TABLE t AS SELECT 1 AS a")
    os.chmod(path, 0o400)
    before = path.read_bytes()
    reading = readers._read_only(str(path))
    with pytest.raises(duckdb.InvalidInputException, match="read-only"):
        reading.con.execute("CREATE TABLE u AS SELECT 1")
    reading.disconnect()
    assert Table(f"duckdb://{path}", FLAG, table="t").marginal(["a"]).tolist() == [0, 1]
    assert path.read_bytes() == before
    with duckdb.connect(str(path)):  # by a process that has it open otherwise, too
        assert Table(f"duckdb://{path}", FLAG, table="t").rows == 1


# folders of Parquet


def written(path: Path, **columns: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def test_no_file_of_a_folder_changes_how_another_is_read(tmp_path) -> None:
    """The types of the files would not agree: each file is read as if it were alone."""
    written(tmp_path / "t" / "1.parquet", a=[1, 2], b=["x", "y"])
    written(tmp_path / "t" / "2.parquet", a=["2", "no"], b=["y", None])
    written(tmp_path / "t" / "3.parquet", a=[2.5])
    universe = hr.Universe(a=hr.Integers(0, 3, other=True), b=hr.Categories(["x", "y"], missing=True))
    assert coded_rows(tmp_path / "t", universe).tolist() == [[1, 0], [2, 1], [2, 1], [4, 2], [2, 2]]
    assert [column.kind for column in readers.open_batches(readers.TrustSchema(tmp_path / "t"), None, None).types] == [
        None,
        "text",
    ]


def test_folders_called_by_a_key_are_a_column_and_what_is_hidden_is_no_data(tmp_path) -> None:
    base = tmp_path / "a=9" / "t"  # above what was named: no key
    written(base / "a=1" / "b=F%2FM" / "x.parquet", c=[1, 1])
    written(base / "a=2" / "b=__HIVE_DEFAULT_PARTITION__" / "x.parquet", c=[0])
    for hidden in ("_temporary/x.parquet", ".x.parquet", "_metadata.parquet"):
        written(base / hidden, c=[7])
    (base / "_SUCCESS").write_text("")
    universe = hr.Universe(a=hr.Integers(0, 9), b=hr.Categories(["F/M"], missing=True), c=hr.Integers(0, 9))
    expected = [[1, 0, 1], [1, 0, 1], [2, 1, 0]]
    for where in (
        base,
        str(base),
        f"file://{base}/",
        str(base / "a=*" / "*" / "*.parquet"),
        f"file://{base}/a=*/b=*/*.parquet",
    ):
        assert coded_rows(where, universe).tolist() == expected
    assert readers.open_batches(base, None, None).types[1].kind is None  # a key is a text


@pytest.mark.parametrize("where", ["none/*.parquet", "empty", "*.parquet"])
def test_no_file_is_a_public_fact(tmp_path, monkeypatch, where) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match=r"must have \.parquet files"):
        Table(where, FLAG)


def test_files_out_of_reach_are_told_from_rows(tmp_path) -> None:
    for url in ("nosuch://key:SECRET@bucket/t.parquet", f"file://{tmp_path}/none.parquet"):
        with pytest.raises((DataUnavailable, InvalidInput)) as refused:
            Table(url, FLAG)
        assert "withheld" not in str(refused.value) and refused.value.__context__ is None
        assert "SECRET" not in str(refused.value)
    with pytest.raises(InvalidInput, match="must come with table="):
        Table("s3://bucket/people", FLAG)


def test_a_folder_is_drafted_and_kept_as_rows_like_a_file(tmp_path) -> None:
    written(tmp_path / "t" / "x=1" / "1.parquet", a=[1, 2])
    written(tmp_path / "t" / "x=2" / "2.parquet", a=[2])
    universe = hr.Universe(a=hr.Integers(0, 3), x=hr.Integers(0, 3))
    kept = hr.open(tmp_path / "t", universe=universe, budget=hr.Budget(1.0, 1e-6), keep_rows=True)
    assert kept.rows == 3
    frame = pd.DataFrame({"a": [1, 2, 2], "x": [1, 1, 2]})
    assert Table(tmp_path / "t", universe).fingerprint() == Table(frame, universe).fingerprint()
    assert np.array_equal(Table(frame, universe).marginal(["x"]), [0, 2, 1, 0])
