"""A ledger in one file. Beside it SQLite keeps its log, ``…-wal``, and this module the lock of turns, ``…-turn``."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import InvalidInput
from hedgerow.ledgers.store import INSERT, LAST, Store, waited

if TYPE_CHECKING:
    import sqlalchemy as sa


class Sqlite(Store):
    """WAL: readers never wait. ``synchronous = FULL``: a commit ends when it is on the disk."""

    name = "SQLite"

    def _connected(self, url: sa.URL) -> sa.Engine:
        if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
            raise InvalidInput(
                "A durable ledger must be a file. Found none in its URL. Give 'sqlite:///people.ledger', or leave ledger out."
            )
        self._path = Path(url.database).absolute()  # wherever the process goes
        if not self._path.parent.is_dir():
            raise InvalidInput(
                f"The folder of a ledger must be there. Found none at {str(self._path.parent)!r}. Make it, or choose another."
            )
        engine: sa.Engine = self.sa.create_engine(
            url.set(database=str(self._path)),
            hide_parameters=True,
            connect_args={"timeout": self.wait, "isolation_level": None},
        )
        self._turning: sqlite3.Connection | None = None
        self._quick: sqlite3.Connection | None = None

        def prepare(connection: Any, _: Any) -> None:
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 1000"):
                connection.execute(f"PRAGMA {pragma}")

        self.sa.event.listen(engine, "connect", prepare)
        return engine

    def exists(self) -> bool:
        return self._path.exists() and super().exists()  # to connect would make the file

    def _prepare_making(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    def _prepare_write(self, connection: sa.Connection, durable: bool) -> None:
        # NORMAL leaves the log to the operating system, which a killed process does not take with it
        connection.exec_driver_sql(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    def _insert_after(self, row: tuple[int | str, ...], number: int) -> bool:
        try:
            if self._quick is None:
                self._quick = sqlite3.connect(
                    self._path, timeout=self.wait, isolation_level=None, check_same_thread=False
                )
                self._quick.execute("PRAGMA synchronous = NORMAL")
            return (
                self._quick.execute(f"{INSERT} SELECT ?, ?, ?, ?, ?, ? WHERE {LAST} = ?", (*row, number)).rowcount == 1
            )
        except sqlite3.Error:
            return False

    def _take_turn(self) -> None:
        """A transaction on a file of its own, held for as long as the turn: commits of the ledger do not end it."""
        for _ in waited(self.wait):
            try:
                if self._turning is None:
                    self._turning = sqlite3.connect(
                        f"{self._path}-turn", timeout=0, isolation_level=None, check_same_thread=False
                    )
                self._turning.execute("BEGIN EXCLUSIVE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise self.sa.exc.OperationalError("", None, error) from None

    def _end_turn(self) -> None:
        assert self._turning is not None
        self._turning.execute("ROLLBACK")

    def close(self) -> None:
        super().close()
        for connection in (self._turning, self._quick):
            if connection is not None:
                connection.close()
        self._turning = self._quick = None
