"""A ledger in a PostgreSQL database: the tables ``hedgerow_lines`` and ``hedgerow_snapshots`` of the schema that is searched first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow._extras import extra
from hedgerow.ledgers.store import INSERT, LAST, Store

if TYPE_CHECKING:
    import psycopg

LOCK = f"{0x68656467}, 'hedgerow_lines'::regclass::oid::integer"
"""The name of the advisory lock: "hedg", and the table's."""


class Postgres(Store):
    """A turn is an advisory lock of a connection of its own; an append locks the table against other writers."""

    name = "PostgreSQL"
    mark = "%s"
    number = "BIGINT"
    there = "SELECT 1 WHERE to_regclass('hedgerow_lines') IS NOT NULL"

    def __init__(self, place: str, wait: float) -> None:
        super().__init__(wait)
        self._driver = extra("psycopg")
        self.errors = (self._driver.Error,)
        self._place = place
        self._turning: psycopg.Connection[Any] | None = None
        self._quick: psycopg.Connection[Any] | None = None

    def _connect(self, autocommit: bool = False) -> psycopg.Connection[Any]:
        found: psycopg.Connection[Any] = self._driver.connect(self._place, autocommit=autocommit, connect_timeout=10)
        return found

    def _is_lost(self, connection: psycopg.Connection[Any]) -> bool:
        return bool(connection.closed)

    def make_room(self) -> None:
        """The server's log has its size already."""

    def _prepare_making(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute(f"SELECT pg_advisory_xact_lock({0x68656467})")

    def _prepare_write(self, connection: psycopg.Connection[Any], durable: bool) -> None:
        connection.execute(
            f"SET LOCAL synchronous_commit = {'on' if durable else 'off'}; SET LOCAL lock_timeout = '{self._limit}';"
            "LOCK TABLE hedgerow_lines IN EXCLUSIVE MODE"  # reading goes on
        )

    @property
    def _limit(self) -> str:
        return f"{int(1000 * self.wait)}ms"

    def _insert_after(self, row: tuple[int | str, ...], number: int) -> bool:
        try:
            if self._quick is None or self._quick.closed:
                self._quick = self.track(self._connect(autocommit=True))
                self._quick.execute("SET synchronous_commit = off")
            inserted = self._quick.execute(f"{INSERT} SELECT %s, %s, %s, %s, %s, %s WHERE {LAST} = %s", (*row, number))
            return inserted.rowcount == 1
        except self.errors:
            return False

    def _take_turn(self) -> None:
        for is_last in (False, True):
            try:
                if self._turning is None:
                    self._turning = self.track(self._connect(autocommit=True))
                    self._turning.execute(f"SET lock_timeout = '{self._limit}'")
                self._turning.execute(f"SELECT pg_advisory_lock({LOCK})")
                return
            except self.errors as error:
                lost = self._turning is not None and self._is_lost(self._turning)
                self._give_up()
                if isinstance(error, self._driver.errors.LockNotAvailable):
                    raise TimeoutError from None
                if is_last or not lost:  # else it was lost since the last turn
                    raise

    def _end_turn(self) -> None:
        assert self._turning is not None
        try:
            self._turning.execute(f"SELECT pg_advisory_unlock({LOCK})")
        except self.errors:  # a connection that is lost has lost its locks
            self._give_up()

    def _give_up(self) -> None:
        if self._turning is not None:
            self.discard(self._turning)
            self._turning = None

    def close(self) -> None:
        super().close()
        self._turning = self._quick = None
