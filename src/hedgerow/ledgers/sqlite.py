"""A ledger in one file. Beside it SQLite keeps its log, ``…-wal``, and this module the lock of turns, ``…-turn``.

An append waits for the log to be on the disk. Where the log grows with it the file system must write down the file's new size as well,
which takes several times as long as the line: so the log is given its size beforehand (``make_room``), and is written over from its
start whenever its content is in the file.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

from hedgerow.errors import InvalidInput, LedgerUnavailable
from hedgerow.ledgers.store import INSERT, LAST, Store, waited

PAGE = 4096  # bytes
LOG = 256  # pages after which the log's content is moved into the file


class Sqlite(Store):
    """WAL: readers never wait. ``synchronous = FULL``: a commit ends when it is on the disk."""

    name = "SQLite"
    mark = "?"
    number = "INTEGER"  # of 64 bits, and then no index beside the table
    there = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'hedgerow_lines'"
    errors = (sqlite3.Error,)

    def __init__(self, database: str, wait: float) -> None:
        super().__init__(wait)
        if not database or database == ":memory:" or database.startswith("file:"):
            raise InvalidInput(
                "A durable ledger must be a file. Found none in its URL. Give 'sqlite:///people.ledger', or leave ledger out."
            )
        self._path = Path(database).resolve()  # wherever the process goes; a link's turns are those of its file
        if not self._path.parent.is_dir():
            raise InvalidInput(
                f"The folder of a ledger must be there. Found none at {str(self._path.parent)!r}. Make it, or choose another."
            )
        self._file: tuple[int, int] | None = None
        self._turning: sqlite3.Connection | None = None
        self._turns: tuple[int, int] | None = None
        self._quick: sqlite3.Connection | None = None

    def _connect(self) -> sqlite3.Connection:
        connection = _connected(self._path, self.wait)
        # fullfsync: on macOS a plain fsync does not wait for the disk; elsewhere it changes nothing
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON", f"wal_autocheckpoint = {LOG}"):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _is_lost(self, connection: sqlite3.Connection) -> bool:
        return False

    def exists(self) -> bool:
        if not self._path.exists():  # to connect would make the file
            return False
        self._require_file()
        return super().exists()

    def make_room(self) -> None:
        """A transaction of the log's size that is not committed: the log keeps its size, and the file has nothing of it."""
        log = Path(f"{self._path}-wal")
        if log.exists() and log.stat().st_size >= PAGE * LOG:
            return
        if shutil.disk_usage(self._path.parent).free < 100 * PAGE * LOG:  # what room there is is for lines
            return
        room: sqlite3.Connection | None = None
        try:
            room = _connected(self._path, self.wait)
            room.execute("PRAGMA cache_size = 10")  # what does not fit is written to the log at once
            room.execute("BEGIN IMMEDIATE")
            room.execute("CREATE TABLE hedgerow_room (body BLOB)")
            room.execute("INSERT INTO hedgerow_room VALUES (zeroblob(?))", (PAGE * (LOG + 20),))
            room.execute("ROLLBACK")
        except sqlite3.Error:  # slower without, and no worse: whatever is wrong shows with the first line
            pass
        finally:
            if room is not None:
                room.close()

    def _prepare_making(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")

    def _prepare_write(self, connection: sqlite3.Connection, durable: bool) -> None:
        self._require_file()
        # NORMAL leaves the log to the operating system, which a killed process does not take with it
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.execute("BEGIN IMMEDIATE")

    def _insert_after(self, row: tuple[int | str, ...], number: int) -> bool:
        try:
            if self._quick is None:
                self._quick = self.track(_connected(self._path, self.wait))
                self._quick.execute("PRAGMA synchronous = NORMAL")
            return (
                self._quick.execute(f"{INSERT} SELECT ?, ?, ?, ?, ?, ? WHERE {LAST} = ?", (*row, number)).rowcount == 1
            )
        except sqlite3.Error:
            return False

    def _take_turn(self) -> None:
        """A transaction on a file of its own, held for as long as the turn: commits of the ledger do not end it."""
        turn = Path(f"{self._path}-turn")
        self._require_file()
        for _ in waited(self.wait):
            try:
                if self._turning is None or self._turns is None or self._turns != _file_at(turn):
                    self._forget_turn()  # whoever removed the file left others to make a new one
                    self._turning = self.track(_connected(turn, 0))
                    self._turning.execute("PRAGMA synchronous = OFF")
                    self._turns = _file_at(turn)
                    if turn.stat().st_size == 0:  # or every transaction would begin with making the file
                        self._turning.execute("PRAGMA user_version = 1")
                self._turning.execute("BEGIN EXCLUSIVE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise

    def _require_file(self) -> None:
        """Refuse to go on where the path has become another file's: SQLite would write to the one that nobody finds any more."""
        found = _file_at(self._path)
        if self._file is None and found is not None and self._path.stat().st_nlink > 1:
            raise LedgerUnavailable(
                f"The file of a ledger must have one name, for SQLite's log has it too. Found a second one of {str(self._path)!r}. Nothing "
                "was released. Remove the other name, or make a copy of it."
            )
        self._file = self._file or found
        if found != self._file:
            raise LedgerUnavailable(
                f"The file of a ledger must stay where it is while sessions are open. Found {'another' if found else 'none'} at "
                f"{str(self._path)!r}. Nothing was released. Bring back the file that this session wrote to, and open the session again."
            )

    def _forget_turn(self) -> None:
        if self._turning is not None:
            self.discard(self._turning)
        self._turning = self._turns = None

    def _end_turn(self) -> None:
        assert self._turning is not None
        self._turning.execute("ROLLBACK")

    def close(self) -> None:
        super().close()
        self._turning = self._turns = self._quick = None


def _connected(path: Path, wait: float) -> sqlite3.Connection:
    """Return a connection that begins transactions when told to, and waits for locks for so many seconds."""
    return sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False)


def _file_at(path: Path) -> tuple[int, int] | None:
    """Return the identity of a file, whatever it is called; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
