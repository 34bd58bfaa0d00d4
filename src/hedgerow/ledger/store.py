"""The lines of a ledger in a database: the part that SQLite and PostgreSQL share, through their own drivers.

There are two locks, which both end with their process:

    an append   is one transaction that first takes the database's own write lock and reads the last line, so that every
                line follows from the one before, whoever writes
    a turn is held from a question's first charge to its end, and for a whole opening; meanwhile nobody else charges

Readers wait for neither.

No message repeats what a database says about the text of a line, because a value that could not be written was not
released.
"""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

from hedgerow.errors import LedgerUnavailable
from hedgerow.ledger.chain import Head, Line, next_line

T = TypeVar("T")
Connection = TypeVar("Connection")
INSERT = "INSERT INTO hedgerow_lines (number, time, who, kind, body, hash)"
LAST = "(SELECT max(number) FROM hedgerow_lines)"
HEAD = "SELECT number, hash, time FROM hedgerow_lines ORDER BY number DESC LIMIT 1"
TABLES = (
    "CREATE TABLE IF NOT EXISTS hedgerow_lines (number {number} NOT NULL PRIMARY KEY, time BIGINT NOT NULL, "
    "who TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS ix_hedgerow_lines_kind ON hedgerow_lines (kind)",
    "CREATE TABLE IF NOT EXISTS hedgerow_snapshots (number {number} NOT NULL PRIMARY KEY, body TEXT NOT NULL)",
)
AT_ONCE = 5_000  # read this many lines with one query

Said = tuple[int, str, str, str]
"""The time, analyst, kind and body of a line to be written."""


class Moved(Exception):
    """Raised when the last line is not the expected one, because another process has written."""


class Lost(Exception):
    """Raised when the server or the network has ended a connection."""


class Database(ABC):
    """The connections to a database, and the turn that one process has at a time."""

    name: ClassVar[str]  # the name of the database, for messages
    errors: tuple[type[Exception], ...]  # the exceptions of the driver

    def __init__(self, wait: float) -> None:
        self.wait, self._depth = wait, 0
        self._idle: list[Any] = []
        self._open: list[Any] = []  # every open connection, lent or idle
        weakref.finalize(self, _close_all, self._open, os.getpid())

    @abstractmethod
    def _connect(self) -> Any:
        """Return a new connection of the driver."""

    @abstractmethod
    def _is_lost(self, connection: Any) -> bool:
        """Return True if the server or the network has ended the connection."""

    @abstractmethod
    def _take_turn(self) -> None:
        """Wait for the lock of turns and take it. Raise TimeoutError after ``wait`` seconds."""
        ...

    @abstractmethod
    def _end_turn(self) -> None:
        """Release the lock of turns."""
        ...

    @abstractmethod
    def _forget_turn(self) -> None:
        """Close the connection that takes turns, which ends its turn."""

    # Connections

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Any]:
        """Lend an idle or new connection.

        A connection on which anything failed is closed, which ends its transaction.
        """
        connection = self._take_idle() or self.track(self._connect())
        try:
            yield connection
            connection.rollback()  # on PostgreSQL reading opens a transaction
        except BaseException as error:
            lost = self._is_lost(connection)
            self.discard(connection)
            if lost and isinstance(error, self.errors):
                self._close_idle()  # they are most likely lost as well
                raise Lost(str(error)) from error
            raise
        self._idle.append(connection)

    def _take_idle(self) -> Any | None:
        """Return an idle connection, or None."""
        with contextlib.suppress(IndexError):  # in one step, because another thread may be reading
            return self._idle.pop()
        return None

    def track(self, connection: Connection) -> Connection:
        """Register a new connection, to be closed at the latest when the store is dropped, and return it."""
        self._open.append(connection)
        return connection

    def discard(self, connection: Any) -> None:
        """Close a connection."""
        with contextlib.suppress(ValueError):  # another thread has closed all connections
            self._open.remove(connection)
        with contextlib.suppress(*self.errors):
            connection.close()

    def _close_idle(self) -> None:
        while (connection := self._take_idle()) is not None:
            self.discard(connection)

    def _read(self, statement: str, values: Sequence[Any]) -> list[Any]:
        with self._connection() as connection:
            return list(connection.execute(statement, tuple(values)).fetchall())

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query. A lost connection is replaced once."""

        def read() -> list[Any]:
            with contextlib.suppress(Lost):
                return self._read(statement, values)
            # On a new connection, because the idle one was lost since its last use.
            return self._read(statement, values)

        return self._attempt("read", read)

    # Turns

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the turn: no other process charges meanwhile. Turns can be nested."""
        self.take_turn()
        try:
            yield
        finally:
            self.end_turn()

    def take_turn(self) -> None:
        """Take the turn, or enter it once more."""
        if self._depth == 0:
            self._or_forgotten("locked", self._take_turn)
        self._depth += 1

    def end_turn(self) -> None:
        """Leave the turn, and release it when every level was left."""
        self._depth -= 1
        if self._depth == 0:
            self._or_forgotten("unlocked", self._end_turn)

    def _or_forgotten(self, done: str, action: Callable[[], None]) -> None:
        """Run an action on the turn. If it is interrupted, drop the turn's connection.

        After an interrupt nobody knows whether the turn is held, and other processes would wait for it.
        """
        try:
            self._attempt(done, action)
        except BaseException:
            self._forget_turn()
            raise

    @property
    def has_turn(self) -> bool:
        """True while this store holds the turn."""
        return self._depth > 0

    def close(self) -> None:
        """Close every connection, which also ends every turn."""
        self._idle.clear()
        while self._open:
            self.discard(self._open[-1])

    def _attempt(self, done: str, action: Callable[[], T]) -> T:
        """Run an action on the database, and turn its failure into a refusal.

        The refusal gives the reason, and quotes nothing from the line.
        """
        failures: tuple[type[Exception], ...] = (Lost, *self.errors)
        try:
            return action()
        except failures as error:
            trouble = _reason(error)
        except TimeoutError:
            trouble = f"another session had its turn for longer than {self.wait:g} s"
        raise LedgerUnavailable(
            f"The ledger on {self.name} must be {done} before anything is released. Found that it cannot be: "
            f"{trouble}. Nothing was released, and what was charged stays spent. Repair that, and open the session "
            "again."
        )


class Store(Database):
    """The lines of one ledger in its database.

    The subclasses in ``sqlite`` and ``postgres`` add connections and locks.
    """

    mark: ClassVar[str]  # the placeholder of a value in a statement
    number: ClassVar[str]  # the SQL type of line numbers
    there: ClassVar[str]  # a query that returns a row if the table of lines exists

    @abstractmethod
    def make_room(self) -> None:
        """Make later appends faster, if possible. Call it within a turn."""

    @abstractmethod
    def _prepare_write(self, connection: Any, durable: bool) -> None:
        """Begin a transaction: take the write lock, and set whether its commit waits for the disk."""

    @abstractmethod
    def _prepare_making(self, connection: Any) -> None:
        """Begin the transaction that makes the tables, and keep other processes from making them meanwhile."""

    def create(self) -> None:
        """Make the tables if there are none."""

        def make() -> None:
            with self._connection() as connection:
                self._prepare_making(connection)
                for statement in TABLES:
                    connection.execute(statement.format(number=self.number))
                connection.commit()

        if not self.exists():
            self._attempt("made", make)

    def exists(self) -> bool:
        """Return True if the ledger's tables exist."""
        return bool(self._rows(self.there))

    def head(self) -> Head:
        """Return the head of the chain: the number, hash and time of the last line."""
        return _head(self._rows(HEAD))

    def lines(self, after: int = 0, kinds: Sequence[str] = (), upto: int | None = None) -> Iterator[Line]:
        """Yield the lines after number ``after`` up to number ``upto``, in order, optionally of some kinds only."""
        wanted = [f"number > {self.mark}", f"kind IN ({', '.join([self.mark] * len(kinds))})" if kinds else ""]
        wanted.append("" if upto is None else f"number <= {self.mark}")
        where = " AND ".join(filter(None, wanted))
        query = f"SELECT {', '.join(Line.__slots__)} FROM hedgerow_lines WHERE {where} ORDER BY number LIMIT {AT_ONCE}"
        while True:
            found = [Line(*row) for row in self._rows(query, (after, *kinds, *([] if upto is None else [upto])))]
            yield from found
            if len(found) < AT_ONCE:
                return
            after = found[-1].number

    def kinds(self) -> list[str]:
        """Return every kind of line that there is."""
        return [str(kind) for (kind,) in self._rows("SELECT DISTINCT kind FROM hedgerow_lines")]

    def append(
        self, said: Sequence[Said], after: Head | None = None, snapshot: str | None = None, durable: bool = True
    ) -> Head:
        """Write all the lines or none, with the snapshot that belongs to the last line, and return the new head.

        Raises Moved if ``after`` is given and is not the last line. A write that is not ``durable`` survives the
        process, but not a power cut. Times never go back: a line is at least as late as the one before it.
        """
        return self._attempt("written", lambda: self._append(said, after, snapshot, durable))

    def _append(self, said: Sequence[Said], after: Head | None, snapshot: str | None, durable: bool) -> Head:
        """Append lines within one transaction."""
        with self._connection() as connection:
            self._prepare_write(connection, durable)
            head = _head(connection.execute(HEAD).fetchall())
            if after is not None and (head.number, head.hash) != (after.number, after.hash):
                raise Moved
            rows = []
            for when, who, kind, body in said:
                line = next_line(head, max(when, head.time), who, kind, body)
                rows.append(tuple(getattr(line, name) for name in Line.__slots__))
                head = line.head
            connection.cursor().executemany(f"{INSERT} VALUES ({', '.join([self.mark] * 6)})", rows)
            if snapshot is not None:  # only the last snapshot of a kind is needed
                of_kind = f"(SELECT number FROM hedgerow_lines WHERE kind = {self.mark})"
                connection.execute(f"DELETE FROM hedgerow_snapshots WHERE number IN {of_kind}", (said[-1][2],))
                insert = f"INSERT INTO hedgerow_snapshots (number, body) VALUES ({self.mark}, {self.mark})"
                connection.execute(insert, (head.number, snapshot))
            connection.commit()
            return head

    def append_quickly(self, said: Said, after: Head) -> Head | None:
        """Append one line that need not be durable, by one statement on a connection of its own.

        Returns the new head, or None if the line could not be written in this way.
        """
        line = next_line(after, max(said[0], after.time), *said[1:])
        row = tuple(getattr(line, name) for name in Line.__slots__)
        return line.head if self._insert_after(row, after.number) else None

    @abstractmethod
    def _insert_after(self, row: tuple[int | str, ...], number: int) -> bool:
        """Insert the row if the last line has this number, and return True if it was inserted."""

    def snapshots(self) -> list[tuple[int, str]]:
        """Return the line number of each snapshot and the kind of that line, or "" if there is no such line.

        That line holds the hash of the snapshot.
        """
        beside = "hedgerow_snapshots AS kept LEFT JOIN hedgerow_lines AS line ON kept.number = line.number"
        found = self._rows(f"SELECT kept.number, line.kind FROM {beside} ORDER BY kept.number")
        return [(number, kind or "") for number, kind in found]

    def snapshot(self, number: int) -> str:
        """Return the snapshot that belongs to a line."""
        found: str = self._rows(f"SELECT body FROM hedgerow_snapshots WHERE number = {self.mark}", (number,))[0][0]
        return found


def _close_all(connections: list[Any], process: int) -> None:
    """Close the connections that a dropped store left open.

    Not in a fork, where closing would end the connections of the process that opened them.
    """
    while connections and os.getpid() == process:
        with contextlib.suppress(Exception):
            connections.pop().close()


def _head(rows: Sequence[Any]) -> Head:
    return Head(*rows[0]) if rows else Head()


def _reason(error: BaseException) -> str:
    """Return the first line of the database's message, which has neither the statement nor its values."""
    said = str(error).strip().splitlines()
    return said[0].rstrip(".")[:160] if said else type(error).__name__


def poll(wait: float) -> Iterator[None]:
    """Yield again and again, with short sleeps, and raise TimeoutError after ``wait`` seconds."""
    until, pause = time.monotonic() + wait, 0.0005
    while True:
        yield
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
