"""An engine fails while rows are read: the refusal is clear and contains no row, nothing is spent, and reopening works."""

from __future__ import annotations

import os
import shutil
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import postgres
import psycopg
import pytest
from sqlite_file import open_sqlite

import hedgerow as hr
from hedgerow.data import postgres_table, readers
from hedgerow.data.coding import Coder
from hedgerow.errors import DataUnavailable

ROWS = 20_000
UNIVERSE = hr.Universe(a=hr.Integers(0, 9), b=hr.Categories(["SECRET", "other"]))
BUDGET = hr.Budget(1.0, 1e-6)
FRAME = pd.DataFrame({"a": np.arange(ROWS) % 10, "b": np.where(np.arange(ROWS) % 3, "SECRET", "other")})

Broken = tuple[Callable[[], dict[str, Any]], Callable[[], None], Callable[[], None]]
"""What to open, how it dies, and how it comes back."""


def filled(url: str) -> None:
    with psycopg.connect(url) as db:
        db.execute("CREATE TABLE people (a bigint, b text)")
        with db.cursor().copy("COPY people FROM STDIN") as copy:
            for row in FRAME.itertuples(index=False):
                copy.write_row(row)


def postgres_connection(folder: Path, request: Any) -> Broken:
    url = postgres.server().fresh()
    filled(url)

    def end() -> None:
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hedgerow'")

    return lambda: {"source": url, "table": "people"}, end, lambda: None


def postgres_server(folder: Path, request: Any) -> Broken:
    if postgres.binary("initdb") is None:
        pytest.skip("no PostgreSQL here")
    server = postgres.Server()
    request.addfinalizer(server.remove)
    url = server.fresh()
    filled(url)
    return lambda: {"source": url, "table": "people"}, server.stop, server.start


def sqlite_file(folder: Path, request: Any) -> Broken:
    path, kept = folder / "people.db", folder / "kept.db"
    with open_sqlite(kept) as db:
        FRAME.to_sql("people", db, index=False)
    shutil.copy(kept, path)
    return (
        lambda: {"source": f"sqlite://{path}", "table": "people"},
        lambda: os.truncate(path, 8192),
        lambda: shutil.copy(kept, path) and None,
    )


def duckdb_file(folder: Path, request: Any) -> Broken:
    """Write a DuckDB file with several groups of rows, which are read as they are needed."""
    path, kept = folder / "people.duckdb", folder / "kept.duckdb"
    with duckdb.connect(str(kept)) as db:
        db.execute("CREATE TABLE people AS SELECT (hash(range) // 2)::BIGINT AS a, 'SECRET' AS b FROM range(1_000_000)")
    shutil.copy(kept, path)
    return (
        lambda: {"source": f"duckdb://{path}", "table": "people"},
        lambda: os.truncate(path, 1 << 20),
        lambda: shutil.copy(kept, path) and None,
    )


@pytest.mark.parametrize(
    "engine", [postgres_connection, postgres_server, sqlite_file, duckdb_file], ids=lambda make: make.__name__
)
def test_an_engine_that_dies_while_rows_are_read_costs_nothing_and_can_be_opened_again(
    engine, tmp_path, monkeypatch, request
) -> None:
    source, dies, returns = engine(tmp_path, request)
    monkeypatch.setattr(readers, "ROWS_OF_AN_ENGINE", 2048)
    monkeypatch.setattr(postgres_table, "ROWS_OF_AN_ENGINE", 2048)
    cells, seen = Coder.cells, [0]

    def watched(self: Coder, column: Any) -> Any:
        seen[0] += 1
        if seen[0] == 7:
            dies()
        return cells(self, column)

    monkeypatch.setattr(Coder, "cells", watched)
    ledger = hr.Accountant(BUDGET)
    with pytest.raises(DataUnavailable, match="Check the file's format, its types and the connection") as refused:
        hr.open(**source(), universe=UNIVERSE, budget=BUDGET, ledger=ledger)
    assert seen[0] >= 7 and ledger.spent == 0 and not ledger.events
    assert "SECRET" not in "".join(traceback.format_exception(refused.value)) and refused.value.__context__ is None
    returns()
    monkeypatch.setattr(readers, "ROWS_OF_AN_ENGINE", 1 << 15)
    monkeypatch.setattr(postgres_table, "ROWS_OF_AN_ENGINE", 1 << 15)
    session = hr.open(**source(), universe=UNIVERSE, budget=BUDGET, ledger=ledger)
    assert session.rows in (ROWS, 1_000_000) and ledger.spent > 0
    dies()  # what is open has its own copy
    session._data.forget()
    assert session._data.marginal(["a"]).sum() == session.rows
    assert session.ask(hr.count(a=3)).value >= 0
