"""Where the lines of a ledger are kept: what SQLite and PostgreSQL have in common, by SQLAlchemy.

Three locks, all real ones that end with their process:

    an append   is one transaction that first takes the database's own write lock and looks at the last line, so that every line
                follows the one before, whoever writes
    a turn      is held from a question's first charge to its end, and for a whole opening: meanwhile nobody else charges
    readers     wait for neither

Nothing that a database says about the text of a line reaches a message: a value that could not be written was not released.
"""

from __future__ import annotations

import contextlib
import functools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from hedgerow.errors import LedgerUnavailable
from hedgerow.ledgers.chain import Head, Line, next_line

if TYPE_CHECKING:
    import sqlalchemy as sa

T = TypeVar("T")
INSERT = "INSERT INTO hedgerow_lines (number, time, who, kind, body, hash)"
LAST = "(SELECT max(number) FROM hedgerow_lines)"
HEAD = "SELECT number, hash, time FROM hedgerow_lines ORDER BY number DESC LIMIT 1"
AT_ONCE = 5_000  # lines read together

Said = tuple[int, str, str, str]
"""Time, who, kind and body of a line that is to be written."""


class Moved(Exception):
    """The last line is not the one that was expected: another process has written."""


class Store(ABC):
    """The lines of one ledger. ``sqlite`` and ``postgres`` say how it is connected to and locked."""

    name: str  # of the database, for messages
    mark: str  # that stands for a value in a statement as text: every append has these, and SQLAlchemy's own take longer than the disk

    def __init__(self, url: sa.URL, wait: float) -> None:
        import sqlalchemy as sa

        self.sa, self.wait = sa, wait
        tables = sa.MetaData()
        self._lines = sa.Table(
            "hedgerow_lines",
            tables,
            sa.Column("number", self._numbers(), primary_key=True, autoincrement=False),
            sa.Column("time", sa.BigInteger, nullable=False),
            sa.Column("who", sa.Text, nullable=False),
            sa.Column("kind", sa.Text, nullable=False, index=True),
            sa.Column("body", sa.Text, nullable=False),
            sa.Column("hash", sa.Text, nullable=False),
        )
        self._snapshots = sa.Table(
            "hedgerow_snapshots",
            tables,
            sa.Column("number", self._numbers(), primary_key=True, autoincrement=False),
            sa.Column("body", sa.Text, nullable=False),
        )
        self._tables, self.engine, self._depth = tables, self._connected(url), 0

    def _numbers(self) -> Any:
        """The type of the numbers of lines."""
        return self.sa.BigInteger()

    @abstractmethod
    def make_room(self) -> None:
        """Whatever makes the appends that follow faster. In a turn."""

    @abstractmethod
    def _connected(self, url: sa.URL) -> sa.Engine: ...

    @abstractmethod
    def _prepare_write(self, connection: sa.Connection, durable: bool) -> None:
        """At the start of a transaction: take the write lock, and say whether its end waits for the disk."""

    @abstractmethod
    def _take_turn(self) -> None: ...

    @abstractmethod
    def _end_turn(self) -> None: ...

    @abstractmethod
    def _prepare_making(self, connection: sa.Connection) -> None:
        """At the start of the transaction that makes the tables: let no other process make them."""

    def create(self) -> None:
        """The tables, where there are none."""

        def make() -> None:
            with self.engine.connect() as connection:
                self._prepare_making(connection)
                self._tables.create_all(connection)
                connection.commit()

        if not self.exists():
            self._tried("made", make)

    def exists(self) -> bool:
        return self._tried("read", lambda: bool(self.sa.inspect(self.engine).has_table("hedgerow_lines")))

    # Turns

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Nobody else charges meanwhile. It may be nested."""
        self.take_turn()
        try:
            yield
        finally:
            self.end_turn()

    def take_turn(self) -> None:
        if self._depth == 0:
            self._tried("locked", self._take_turn)
        self._depth += 1

    def end_turn(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._tried("unlocked", self._end_turn)

    @property
    def has_turn(self) -> bool:
        return self._depth > 0

    # Lines

    def head(self) -> Head:
        def look() -> Head:
            try:
                with self.engine.connect() as connection:
                    return self._head(connection)
            except self.sa.exc.DBAPIError as error:
                if not error.connection_invalidated:
                    raise
            with self.engine.connect() as connection:  # one that was lost since it was last used says so now, and once
                return self._head(connection)

        return self._tried("read", look)

    def _head(self, connection: sa.Connection) -> Head:
        found = connection.exec_driver_sql(HEAD).first()
        return Head() if found is None else Head(*found)

    def lines(self, after: int = 0, kinds: Sequence[str] = (), upto: int | None = None) -> Iterator[Line]:
        """In order, of these kinds only if any are named."""
        table = self._lines.c
        columns = (table.number, table.time, table.who, table.kind, table.body, table.hash)
        while True:
            query = self.sa.select(*columns).where(table.number > after).order_by(table.number).limit(AT_ONCE)
            query = query.where(table.kind.in_(kinds)) if kinds else query
            query = query if upto is None else query.where(table.number <= upto)
            found = [Line(*row) for row in self._tried("read", functools.partial(self._rows, query))]
            yield from found
            if len(found) < AT_ONCE:
                return
            after = found[-1].number

    def append(
        self, said: Sequence[Said], after: Head | None = None, snapshot: str | None = None, durable: bool = True
    ) -> Head:
        """Write lines, all or none, and the snapshot that belongs to the last; the new head. Moved where ``after`` is not the last.

        Not ``durable``: it survives its process, and not a power cut. Times never go back.
        """
        return self._tried("written", lambda: self._append(said, after, snapshot, durable))

    def _append(self, said: Sequence[Said], after: Head | None, snapshot: str | None, durable: bool) -> Head:
        with self.engine.connect() as connection:
            self._prepare_write(connection, durable)
            head = self._head(connection)
            if after is not None and (head.number, head.hash) != (after.number, after.hash):
                raise Moved
            rows = []
            for when, who, kind, body in said:
                line = next_line(head, max(when, head.time), who, kind, body)
                rows.append(tuple(getattr(line, name) for name in Line.__slots__))
                head = line.head
            connection.exec_driver_sql(f"{INSERT} VALUES ({', '.join([self.mark] * 6)})", rows)
            if snapshot is not None:  # the last one of its kind is all that is needed
                of_kind = self.sa.select(self._lines.c.number).where(self._lines.c.kind == said[-1][2])
                connection.execute(self.sa.delete(self._snapshots).where(self._snapshots.c.number.in_(of_kind)))
                connection.execute(self.sa.insert(self._snapshots), {"number": head.number, "body": snapshot})
            connection.commit()
            return head

    def append_quickly(self, said: Said, after: Head) -> Head | None:
        """The same of one line, not durable, in one statement on a connection of its own; None where that does not work out."""
        line = next_line(after, max(said[0], after.time), *said[1:])
        row = tuple(getattr(line, name) for name in Line.__slots__)
        return line.head if self._insert_after(row, after.number) else None

    @abstractmethod
    def _insert_after(self, row: tuple[int | str, ...], number: int) -> bool:
        """Whether the row was inserted, which it is if the last line has this number."""

    def snapshots(self) -> list[tuple[int, str]]:
        """All there are: the number of the line that has its hash, and that line's kind; nothing, where there is no such line."""
        lines, kept = self._lines.c, self._snapshots.c
        beside = self._snapshots.outerjoin(self._lines, kept.number == lines.number)
        query = self.sa.select(kept.number, lines.kind).select_from(beside).order_by(kept.number)
        return [(number, kind or "") for number, kind in self._tried("read", lambda: self._rows(query))]

    def snapshot(self, number: int) -> str:
        """What the one of a line says."""
        query = self.sa.select(self._snapshots.c.body).where(self._snapshots.c.number == number)
        found: str = self._tried("read", lambda: self._rows(query))[0][0]
        return found

    def _rows(self, query: Any) -> list[Any]:
        with self.engine.connect() as connection:
            return list(connection.execute(query))

    def close(self) -> None:
        self.engine.dispose()

    def _tried(self, done: str, action: Callable[[], T]) -> T:
        """What a database cannot do, as a refusal that says why and holds nothing of what was to be written."""
        try:
            return action()
        except self.sa.exc.SQLAlchemyError as error:
            trouble = _reason(error)
        except TimeoutError:
            trouble = f"another session had its turn for longer than {self.wait:g} s"
        raise LedgerUnavailable(
            f"The ledger on {self.name} must be {done} before anything is released. Found that it cannot: {trouble}. "
            "Nothing was released, and what was charged stays spent. Mend that, and open the session again."
        )


def _reason(error: BaseException) -> str:
    """The database's own first words, without the statement and its values."""
    said = str(getattr(error, "orig", None) or type(error).__name__).strip().splitlines()
    return said[0].rstrip(".")[:160] if said else type(error).__name__


def waited(wait: float) -> Iterator[None]:
    """Again and again, with short sleeps, until so many seconds are over: then TimeoutError."""
    until, pause = time.monotonic() + wait, 0.0005
    while True:
        yield
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
