"""A ledger in one SQLite file.

Beside it are SQLite's log, ``…-wal``, and the file by which processes take turns, ``…-turn``.

An append waits until the log is on the disk. Where the log grows with an append, the file system must also write the
new size of the log file, which takes several times as long as the line itself. So the log gets its full size in advance
(``make_room``). Once its content has moved into the file, the log is overwritten from its start.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

from hedgerow.errors import InvalidInput, LedgerUnavailable
from hedgerow.ledger.store import INSERT, LAST, Store, poll

PAGE = 4096  # bytes of a page
LOG = 256  # after this many pages, the content of the log moves into the file


class Sqlite(Store):
    """A store in one SQLite file.

    In WAL mode readers never wait. With ``synchronous = FULL`` a commit returns when it is on the disk.
    """

    name = "SQLite"
    mark = "?"
    number = "INTEGER"  # has 64 bits, and as a primary key needs no index beside the table
    there = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'hedgerow_lines'"
    errors = (sqlite3.Error,)

    def __init__(self, database: str, wait: float) -> None:
        super().__init__(wait)
        if not database or database == ":memory:" or database.startswith("file:"):
            raise InvalidInput(
                "A durable ledger must be a file. Found none in its URL. Give 'sqlite:///people.ledger', or leave "
                "ledger out."
            )
        # The absolute path stays valid if the working directory changes, and a link shares the turns of its file.
        self._path = Path(database).resolve()
        if not self._path.parent.is_dir():
            raise InvalidInput(
                f"The folder of a ledger must exist. Found none at {str(self._path.parent)!r}. Make it, or choose "
                "another."
            )
        self._file: tuple[int, int] | None = None
        self._turning: sqlite3.Connection | None = None
        self._turns: tuple[int, int] | None = None
        self._quick: sqlite3.Connection | None = None

    def _connect(self) -> sqlite3.Connection:
        """Return a new connection whose commits wait for the disk."""
        connection = _connect(self._path, self.wait)
        # fullfsync: on macOS a plain fsync does not wait for the disk; elsewhere it has no effect
        try:
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON", f"wal_autocheckpoint = {LOG}"):
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:  # the file is no database, or the wait was interrupted
            connection.close()
            raise
        return connection

    def _is_lost(self, connection: sqlite3.Connection) -> bool:
        return False

    def exists(self) -> bool:
        """Return True if the file exists and has the ledger's tables."""
        if not self._path.exists():  # connecting would make the file
            return False
        self._require_file()
        return super().exists()

    def make_room(self) -> None:
        """Give the log its full size by a large transaction that is rolled back.

        The log keeps its size, and nothing of the transaction reaches the file.
        """
        log = Path(f"{self._path}-wal")
        if log.exists() and log.stat().st_size >= PAGE * LOG:
            return
        if shutil.disk_usage(self._path.parent).free < 100 * PAGE * LOG:  # leave scarce space to lines
            return
        room: sqlite3.Connection | None = None
        try:
            room = _connect(self._path, self.wait)
            # Pages that do not fit into the cache are written to the log at once.
            room.execute("PRAGMA cache_size = 10")
            room.execute("BEGIN IMMEDIATE")
            room.execute("CREATE TABLE hedgerow_room (body BLOB)")
            room.execute("INSERT INTO hedgerow_room VALUES (zeroblob(?))", (PAGE * (LOG + 20),))
            room.execute("ROLLBACK")
        except sqlite3.Error:  # appends are only slower without room, and a real fault shows with the first line
            pass
        finally:
            if room is not None:
                room.close()

    def _prepare_making(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")

    def _prepare_write(self, connection: sqlite3.Connection, durable: bool) -> None:
        """Begin a transaction that holds the write lock."""
        self._require_file()
        # NORMAL leaves the log to the operating system, so that a commit survives the process but not a power cut
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.execute("BEGIN IMMEDIATE")

    def _insert_after(self, row: tuple[int | str, ...], number: int) -> bool:
        """Insert the row if the last line has this number, without waiting for the disk."""
        try:
            if self._quick is None:
                self._quick = self.track(_connect(self._path, self.wait))
                self._quick.execute("PRAGMA synchronous = NORMAL")
            return (
                self._quick.execute(f"{INSERT} SELECT ?, ?, ?, ?, ?, ? WHERE {LAST} = ?", (*row, number)).rowcount == 1
            )
        except sqlite3.Error:
            return False

    def _take_turn(self) -> None:
        """Begin a transaction on a file of its own, so that commits to the ledger do not end the turn."""
        turn = Path(f"{self._path}-turn")
        self._require_file()
        for _ in poll(self.wait):
            try:
                if self._turning is None or self._turns is None or self._turns != _file_at(turn):
                    self._forget_turn()  # the turn file was removed, and other processes now use a new one
                    self._turning = self.track(_connect(turn, 0))
                    self._turning.execute("PRAGMA synchronous = OFF")
                    self._turns = _file_at(turn)
                    if turn.stat().st_size == 0:  # otherwise every transaction would first have to make the file
                        self._turning.execute("PRAGMA user_version = 1")
                self._turning.execute("BEGIN EXCLUSIVE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise

    def _require_file(self) -> None:
        """Refuse to go on if the path now leads to another file.

        SQLite would write to the old file, which nobody finds any more.
        """
        found = _file_at(self._path)
        if self._file is None and found is not None and self._path.stat().st_nlink > 1:
            raise LedgerUnavailable(
                "The file of a ledger must have one name, because SQLite's log is named after it. Found a second name "
                f"of {str(self._path)!r}. Nothing was released. Remove the other name, or make a copy of it."
            )
        self._file = self._file or found
        if found != self._file:
            raise LedgerUnavailable(
                "The file of a ledger must stay where it is while sessions are open. Found "
                f"{'another' if found else 'none'} at {str(self._path)!r}. Nothing was released. Bring back the file "
                "that this session wrote to, and open the session again."
            )

    def _forget_turn(self) -> None:
        if self._turning is not None:
            self.discard(self._turning)
        self._turning = self._turns = None

    def _end_turn(self) -> None:
        assert self._turning is not None
        self._turning.execute("ROLLBACK")

    def close(self) -> None:
        """Close every connection, including those of turns and quick appends."""
        super().close()
        self._turning = self._turns = self._quick = None


def _connect(path: Path, wait: float) -> sqlite3.Connection:
    """Return a connection without implicit transactions, which waits for locks for ``wait`` seconds."""
    return sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False)


def _file_at(path: Path) -> tuple[int, int] | None:
    """Return the identity of a file, independent of its name, or None if there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
