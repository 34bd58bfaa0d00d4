"""A ledger in a PostgreSQL database: the tables ``hedgerow_lines`` and ``hedgerow_snapshots`` of the schema that is searched first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow._extras import extra
from hedgerow.ledgers.store import INSERT, LAST, Store

if TYPE_CHECKING:
    import psycopg
    import sqlalchemy as sa

LOCK = f"{0x68656467}, 'hedgerow_lines'::regclass::oid::integer"
"""The name of the advisory lock: "hedg", and the table's."""


class Postgres(Store):
    """A turn is an advisory lock of a connection of its own; an append locks the table against other writers."""

    name = "PostgreSQL"
    mark = "%s"

    def _connected(self, url: sa.URL) -> sa.Engine:
        extra("psycopg")
        self._turning: sa.Connection | None = None
        self._quick: psycopg.Connection[Any] | None = None
        self._place = url.set(drivername="postgresql").render_as_string(hide_password=False)
        engine: sa.Engine = self.sa.create_engine(
            url.set(drivername="postgresql+psycopg"),
            hide_parameters=True,
            pool_size=2,
            connect_args={"connect_timeout": 10},
        )
        return engine

    def make_room(self) -> None:
        """The server's log has its size already."""

    def _prepare_making(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({0x68656467})")

    def _prepare_write(self, connection: sa.Connection, durable: bool) -> None:
        connection.exec_driver_sql(
            f"SET LOCAL synchronous_commit = {'on' if durable else 'off'}; SET LOCAL lock_timeout = '{self._limit}';"
            "LOCK TABLE hedgerow_lines IN EXCLUSIVE MODE"  # reading goes on
        )

    @property
    def _limit(self) -> str:
        return f"{int(1000 * self.wait)}ms"

    def _insert_after(self, row: tuple[int | str, ...], number: int) -> bool:
        import psycopg

        try:
            if self._quick is None or self._quick.closed:
                self._quick = psycopg.connect(self._place, autocommit=True, connect_timeout=10)
                self._quick.execute("SET synchronous_commit = off")
            inserted = self._quick.execute(f"{INSERT} SELECT %s, %s, %s, %s, %s, %s WHERE {LAST} = %s", (*row, number))
            return inserted.rowcount == 1
        except psycopg.Error:
            return False

    def _take_turn(self) -> None:
        for is_last in (False, True):
            try:
                if self._turning is None:
                    self._turning = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
                    self._turning.exec_driver_sql(f"SET lock_timeout = '{self._limit}'")
                self._turning.exec_driver_sql(f"SELECT pg_advisory_lock({LOCK})")
                return
            except self.sa.exc.DBAPIError as error:
                self._give_up()
                if type(error.orig).__name__ == "LockNotAvailable":
                    raise TimeoutError from None
                if is_last or not error.connection_invalidated:  # else it was lost since the last turn
                    raise

    def _end_turn(self) -> None:
        assert self._turning is not None
        try:
            self._turning.exec_driver_sql(f"SELECT pg_advisory_unlock({LOCK})")
        except self.sa.exc.DBAPIError:  # a connection that is lost has lost its locks
            self._give_up()

    def _give_up(self) -> None:
        if self._turning is not None:
            self._turning.invalidate()
            self._turning.close()
            self._turning = None

    def close(self) -> None:
        if self._quick is not None:
            self._quick.close()
            self._quick = None
        if self._turning is not None:
            self._turning.close()
            self._turning = None
        super().close()
