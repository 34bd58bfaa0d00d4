"""The service's own records in one SQLite file: tokens, the audit trail, stored outcomes, and who asked what.

The privacy ledger is elsewhere. Losing this file loses tokens and the trail, never privacy.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hedgerow.errors import InvalidInput

VERSION = 1
TABLES = """
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY, digest BLOB NOT NULL, person TEXT NOT NULL, project TEXT NOT NULL, role TEXT NOT NULL,
    datasets TEXT, created REAL NOT NULL, expires REAL, revoked REAL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS requests (
    number INTEGER PRIMARY KEY, at REAL NOT NULL, request TEXT NOT NULL, person TEXT NOT NULL, token TEXT NOT NULL,
    dataset TEXT NOT NULL, endpoint TEXT NOT NULL, asked TEXT NOT NULL, cost REAL NOT NULL, status INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS requests_of_person ON requests (dataset, person, number);
CREATE INDEX IF NOT EXISTS requests_of_dataset ON requests (dataset, number);
CREATE TABLE IF NOT EXISTS outcomes (
    token TEXT NOT NULL, key TEXT NOT NULL, request BLOB NOT NULL, process TEXT NOT NULL, at REAL NOT NULL,
    status INTEGER, body BLOB, media TEXT, PRIMARY KEY (token, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS outcomes_by_age ON outcomes (at);
CREATE TABLE IF NOT EXISTS questions (
    dataset TEXT NOT NULL, person TEXT NOT NULL, question BLOB NOT NULL, PRIMARY KEY (dataset, person, question)
) WITHOUT ROWID;
"""


class ServiceRegistry:
    """One connection to the registry's file, shared by the threads of a process."""

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, threading.RLock()
        if not path.exists():
            # the file holds digests of tokens and names of analysts, so nobody else may read it
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, stat.S_IRUSR | stat.S_IWUSR))
        try:
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
            self._database.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")
            (found,) = self._database.execute("PRAGMA user_version").fetchone()
            if found not in (0, VERSION):
                raise InvalidInput(
                    f"The registry must have format {VERSION}. Found {found}. Use the version of hedgerow that wrote it."
                )
            self._database.executescript(f"{TABLES} PRAGMA user_version = {VERSION};")
        except sqlite3.Error:
            raise InvalidInput(
                f"The registry must be a SQLite file that can be written. Found {path.name!r}, which is not. Name another."
            ) from None

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT."""
        with self._lock:
            return self._database.execute(statement, values).fetchall()

    def write(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run one statement in a transaction of its own. Return the number of rows that it changed."""
        with self._lock:
            return self._database.execute(statement, values).rowcount

    def insert_all(self, statement: str, values: Iterable[Sequence[Any]]) -> None:
        """Run one statement for many rows, within a transaction."""
        with self._lock:
            self._database.executemany(statement, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the file for several statements, all or none of which take effect."""
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:  # SQLite itself rolls back when the disk is full
                    self._database.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._database.close()
