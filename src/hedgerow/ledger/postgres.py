"""A ledger in a PostgreSQL database: the tables ``hedgerow_lines`` and ``hedgerow_snapshots``.

The tables are in the first schema of the connection's search path.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from hedgerow._extras import extra
from hedgerow.errors import InvalidInput
from hedgerow.ledger.store import INSERT, LAST, Store

if TYPE_CHECKING:
    import psycopg

LOCK = f"{0x68656467}, 'hedgerow_lines'::regclass::oid::integer"
"""The two numbers of the advisory lock: "hedg" in ASCII, and the table's identifier."""


class Postgres(Store):
    """A store in PostgreSQL.

    A turn is an advisory lock, held by a connection of its own. An append locks the table against other writers.
    """

    name = "PostgreSQL"
    mark = "%s"
    number = "BIGINT"
    there = "SELECT 1 WHERE to_regclass('hedgerow_lines') IS NOT NULL"

    def __init__(self, place: str, wait: float) -> None:
        super().__init__(wait)
        self._driver = extra("psycopg")
        self.errors = (self._driver.Error,)
        self._place = self._read_place(place)
        self._turning: psycopg.Connection[Any] | None = None
        self._quick: psycopg.Connection[Any] | None = None

    def _read_place(self, place: str) -> dict[str, Any]:
        """Return the parts of a URL, or refuse it.

        PostgreSQL's own error for an unreadable URL, or for a wrong host or port, may quote a piece of a password. So
        such a URL is refused here.
        """
        user = place.partition("://")[2].partition("?")[0].rpartition("@")[0]
        found: dict[str, Any] = {"port": "?"}
        with contextlib.suppress(*self.errors):
            found = self._driver.conninfo.conninfo_to_dict(place)
        if "@" in user or "/" in user or str(found.get("port", "")).strip("0123456789,"):
            raise InvalidInput(
                "ledger must be a URL that PostgreSQL can read. Found one that it cannot. In a name or password, write "
                "each character that is neither a letter nor a digit by its code, such as %40 for @ and %25 for %."
            )
        return (
            {"connect_timeout": 10} | found | {"client_encoding": "utf8"}
        )  # without it, texts of some databases would arrive as bytes

    def _connect(self, autocommit: bool = False) -> psycopg.Connection[Any]:
        """Return a new connection."""
        found: psycopg.Connection[Any] = self._driver.connect(autocommit=autocommit, **self._place)
        return found

    def _is_lost(self, connection: psycopg.Connection[Any]) -> bool:
        return bool(connection.closed)

    def make_room(self) -> None:
        """Do nothing: the server's log has its full size already."""

    def _prepare_making(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute(f"SELECT pg_advisory_xact_lock({0x68656467})")

    def _prepare_write(self, connection: psycopg.Connection[Any], durable: bool) -> None:
        """Begin a transaction that locks the table against other writers."""
        connection.execute(
            f"SET LOCAL synchronous_commit = {'on' if durable else 'off'}; SET LOCAL lock_timeout = '{self._limit}';"
            "LOCK TABLE hedgerow_lines IN EXCLUSIVE MODE"  # which still permits reading
        )

    @property
    def _limit(self) -> str:
        return f"{max(1, int(1000 * self.wait))}ms"  # 0 would mean to wait for ever

    def _insert_after(self, row: tuple[int | str, ...], number: int) -> bool:
        """Insert the row if the last line has this number, without waiting for the disk."""
        try:
            if self._quick is None or self._quick.closed:
                self._quick = self.track(self._connect(autocommit=True))
                self._quick.execute("SET synchronous_commit = off")
            inserted = self._quick.execute(f"{INSERT} SELECT %s, %s, %s, %s, %s, %s WHERE {LAST} = %s", (*row, number))
            return inserted.rowcount == 1
        except self.errors:
            return False

    def _take_turn(self) -> None:
        """Take the advisory lock, on a new connection if the old one was lost."""
        for is_last in (False, True):
            try:
                if self._turning is None:
                    self._turning = self.track(self._connect(autocommit=True))
                    self._turning.execute(f"SET lock_timeout = '{self._limit}'")
                self._turning.execute(f"SELECT pg_advisory_lock({LOCK})")
                return
            except self.errors as error:
                lost = self._turning is not None and self._is_lost(self._turning)
                self._forget_turn()
                if isinstance(error, self._driver.errors.LockNotAvailable):
                    raise TimeoutError from None
                if is_last or not lost:  # a connection that was lost since the last turn is worth a second attempt
                    raise

    def _end_turn(self) -> None:
        """Release the advisory lock."""
        assert self._turning is not None
        try:
            self._turning.execute(f"SELECT pg_advisory_unlock({LOCK})")
        except self.errors:  # a lost connection has already lost its locks
            self._forget_turn()

    def _forget_turn(self) -> None:
        if self._turning is not None:
            self.discard(self._turning)
            self._turning = None

    def close(self) -> None:
        """Close every connection, including those of turns and quick appends."""
        super().close()
        self._turning = self._quick = None
