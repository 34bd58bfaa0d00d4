"""The service's own records in one SQLite file: tokens, the audit trail, approvals, outcomes, and who asked what.

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

VERSION = 2
TABLES = """
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY, digest BLOB NOT NULL, person TEXT NOT NULL, project TEXT NOT NULL, role TEXT NOT NULL,
    datasets TEXT, created REAL NOT NULL, expires REAL, revoked REAL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS requests (
    number INTEGER PRIMARY KEY, at REAL NOT NULL, request TEXT NOT NULL, person TEXT NOT NULL, token TEXT NOT NULL,
    dataset TEXT NOT NULL, endpoint TEXT NOT NULL, asked TEXT NOT NULL, cost REAL NOT NULL, status INTEGER NOT NULL,
    analyst TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS requests_of_dataset ON requests (dataset, number);
CREATE TABLE IF NOT EXISTS outcomes (
    token TEXT NOT NULL, key TEXT NOT NULL, request BLOB NOT NULL, process TEXT NOT NULL, at REAL NOT NULL,
    status INTEGER, body BLOB, media TEXT, PRIMARY KEY (token, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS outcomes_by_age ON outcomes (at);
CREATE TABLE IF NOT EXISTS given (number INTEGER PRIMARY KEY AUTOINCREMENT, dataset TEXT NOT NULL, answers TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS approvals (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, dataset TEXT NOT NULL, analyst TEXT NOT NULL,
    person TEXT NOT NULL, purchase BLOB NOT NULL, asked TEXT NOT NULL, within REAL, cost REAL NOT NULL, share REAL NOT NULL,
    state TEXT NOT NULL, at REAL NOT NULL, decided REAL, decided_by TEXT NOT NULL, expires REAL NOT NULL, lasts REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS approvals_of_analyst ON approvals (analyst, dataset, purchase);
CREATE TABLE IF NOT EXISTS questions (
    dataset TEXT NOT NULL, person TEXT NOT NULL, question BLOB NOT NULL, PRIMARY KEY (dataset, person, question)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS registrations (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, state TEXT NOT NULL, person TEXT NOT NULL, at REAL NOT NULL, marks TEXT NOT NULL,
    draft_epsilon REAL NOT NULL, draft_delta REAL NOT NULL, record TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS visits (
    digest BLOB PRIMARY KEY, token TEXT NOT NULL, created REAL NOT NULL, seen REAL NOT NULL
) WITHOUT ROWID;
"""
INDEXES = "CREATE INDEX IF NOT EXISTS requests_of_analyst ON requests (analyst, dataset, number);"
FROM_1 = """
DROP INDEX IF EXISTS requests_of_person;
ALTER TABLE requests ADD COLUMN analyst TEXT NOT NULL DEFAULT '';
UPDATE requests SET analyst = coalesce((
    SELECT CASE project WHEN '' THEN tokens.person ELSE project || '/' || tokens.person END
    FROM tokens WHERE tokens.id = requests.token), person);
DELETE FROM questions;
"""  # questions were noted by the person's name, which two projects may share


class ServiceRegistry:
    """The registry's file, shared by the threads of a process: one connection that writes, and one that reads.

    Readers do not wait for a writer, so that the service looks up a token while a change is written to the disk.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._lock, self._reading = path, threading.RLock(), threading.Lock()
        self._writer: int | None = None  # the thread that is in a transaction
        if not path.exists():
            # the file holds digests of tokens and names of analysts, so nobody else may read it
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, stat.S_IRUSR | stat.S_IWUSR))
        elif os.name == "posix" and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise InvalidInput(
                "The registry must be readable by its owner alone, because it holds names and digests of tokens. "
                f"Found mode {stat.S_IMODE(path.stat().st_mode):04o}. Run `chmod 600 {path.name}`, also for the files "
                "beside it."
            )
        try:
            self._database, self._reader = self._connect(), self._connect()
            (found,) = self._database.execute("PRAGMA user_version").fetchone()
            if found == 1:
                self._database.executescript(f"BEGIN IMMEDIATE; {FROM_1} PRAGMA user_version = {VERSION}; COMMIT;")
            elif found not in (0, VERSION):
                raise InvalidInput(
                    f"The registry must have format {VERSION}. Found {found}. Use the version of hedgerow that wrote "
                    "it."
                )
            self._database.executescript(f"{TABLES} {INDEXES} PRAGMA user_version = {VERSION};")
        except sqlite3.Error:
            raise InvalidInput(
                f"The registry must be a SQLite file that can be written. Found {path.name!r}, which is not. Name "
                "another."
            ) from None

    def _connect(self) -> sqlite3.Connection:
        made = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)
        made.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")
        return made

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT. Within a transaction they are those of the transaction."""
        if self._writer == threading.get_ident():
            return self._database.execute(statement, values).fetchall()
        with self._reading:
            return self._reader.execute(statement, values).fetchall()

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
        """Lock the file for several statements, which take effect together or not at all.

        Transactions can be nested.
        """
        with self._lock:
            outermost = not self._database.in_transaction
            begin, commit, undo = (
                ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK")
                if outermost
                else ("SAVEPOINT part", "RELEASE part", "ROLLBACK TO part; RELEASE part")
            )
            self._database.execute(begin)
            self._writer = threading.get_ident()
            try:
                yield
                self._database.execute(commit)
            except BaseException:
                if self._database.in_transaction:  # SQLite itself rolls back when the disk is full
                    for statement in undo.split("; "):
                        self._database.execute(statement)
                raise
            finally:
                if outermost:
                    self._writer = None

    def close(self) -> None:
        """Close the connections."""
        with self._lock, self._reading:
            self._reader.close()
            self._database.close()
