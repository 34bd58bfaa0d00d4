"""A PEP-249 connection to a session: ``hedgerow.sql.cursor.connect(session)``.

A connection asks through any object with a ``sql_result`` method, such as a ``Session``. There are no transactions: an
answer cannot be taken back, so ``commit`` and ``rollback`` do nothing.
"""

from __future__ import annotations

import datetime
import itertools
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from hedgerow.errors import (
    BudgetExceeded,
    DataUnavailable,
    HedgerowError,
    InvalidInput,
    LedgerBroken,
    LedgerUnavailable,
)
from hedgerow.sql.syntax import placeholders
from hedgerow.universe.universe import Universe

apilevel = "2.0"
threadsafety = 2  # threads may share a connection, because a session lets them take turns
paramstyle = "qmark"
LARGEST = int(sys.float_info.max)


class Warning(Exception):
    """PEP 249: an important warning. Never raised."""

    pass


class Error(Exception):
    """PEP 249: base class of errors."""

    pass


class InterfaceError(Error):
    """PEP 249: a closed connection or cursor was used."""

    pass


class DatabaseError(Error):
    """PEP 249: base class of errors of the database."""

    pass


class DataError(DatabaseError):
    """PEP 249: a problem with the processed data. Never raised."""

    pass


class OperationalError(DatabaseError):
    """PEP 249: the budget is used up, or the table cannot be read."""

    pass


class IntegrityError(DatabaseError):
    """PEP 249: a broken relation. Never raised."""

    pass


class InternalError(DatabaseError):
    """PEP 249: an internal error. Never raised."""

    pass


class ProgrammingError(DatabaseError):
    """PEP 249: a statement or its parameters are not valid."""

    pass


class NotSupportedError(DatabaseError):
    """PEP 249: an operation that is not supported."""

    pass


class SqlRows(Protocol):
    """The rows of a statement, as far as a cursor needs them."""

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns."""
        ...

    @property
    def records(self) -> list[tuple[Any, ...]]:
        """Rows as plain values, one for each column."""
        ...


class SqlRespondent(Protocol):
    """A session, as far as a connection needs it."""

    @property
    def universe(self) -> Universe:
        """Public universe of the table."""
        ...

    def sql_result(self, statement: str) -> SqlRows:
        """Run a SELECT and return its rows."""
        ...


class Connection:
    """A PEP-249 connection."""

    def __init__(self, session: SqlRespondent) -> None:
        self._session: SqlRespondent | None = session

    @property
    def session(self) -> SqlRespondent:
        """The session, while the connection is open."""
        if self._session is None:
            raise InterfaceError("A connection must be open. Found a closed one. Connect again.")
        return self._session

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing: an answer cannot be taken back."""

    def rollback(self) -> None:
        """Do nothing: an answer cannot be taken back."""

    def close(self) -> None:
        """Close the connection. The session stays open."""
        self._session = None

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Cursor:
    """A PEP-249 cursor."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self.connection: Connection | None = connection
        self._result: SqlRows | None = None
        self._records: list[tuple[Any, ...]] = []
        self._rows: Iterator[tuple[Any, ...]] = iter(())

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """Name of each column, and None for the other six items, as PEP 249 allows."""
        if self._result is None:
            return None
        return [(name, None, None, None, None, None, None) for name in self._result.columns]

    @property
    def rowcount(self) -> int:
        """Number of rows of the last statement, or −1 before the first."""
        return -1 if self._result is None else len(self._records)

    def execute(self, statement: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> Cursor:
        """Run a statement, with a literal for each ``?``."""
        if self.connection is None:
            raise InterfaceError("A cursor must be open. Found a closed one. Make another.")
        try:
            self._result = self.connection.session.sql_result(with_parameters(statement, parameters))
        except (BudgetExceeded, DataUnavailable, LedgerUnavailable, LedgerBroken) as refused:
            raise OperationalError(str(refused)) from refused
        except (InvalidInput, HedgerowError) as refused:
            raise ProgrammingError(str(refused)) from refused
        self._records = self._result.records
        self._rows = iter(self._records)
        return self

    def executemany(self, statement: str, sequence: Sequence[Sequence[Any]]) -> Cursor:
        """Refuse: statements are executed one by one."""
        raise NotSupportedError("Statements must be executed one by one. Found many at once. Use execute.")

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, or None."""
        self._require_result()
        return next(self._rows, None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """Return the next ``size`` rows; ``arraysize`` by default."""
        self._require_result()
        return [row for _, row in zip(range(self.arraysize if size is None else size), self._rows, strict=False)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all remaining rows."""
        self._require_result()
        return list(self._rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.fetchall())

    def close(self) -> None:
        """Close the cursor."""
        self.connection, self._result = None, None

    def setinputsizes(self, sizes: Any) -> None:
        """Do nothing, as PEP 249 allows."""

    def setoutputsize(self, size: Any, column: Any = None) -> None:
        """Do nothing, as PEP 249 allows."""

    def _require_result(self) -> None:
        """Refuse to fetch before a statement was executed."""
        if self._result is None:
            raise ProgrammingError("A statement must be executed before its rows are fetched. Found none. Execute one.")


def connect(session: SqlRespondent) -> Connection:
    """Return a PEP-249 connection that asks through the session."""
    return Connection(session)


def with_parameters(statement: str, parameters: Sequence[Any] | Mapping[str, Any]) -> str:
    """Return the statement with a literal in place of each ``?`` that is not in a string, a name or a comment."""
    values = list(parameters)
    if not values:
        return statement
    if isinstance(parameters, Mapping):
        raise ProgrammingError("Parameters must be a sequence, one for each ?. Found a mapping. List them in order.")
    try:
        marks = placeholders(statement)
    except InvalidInput as refused:
        raise ProgrammingError(str(refused)) from None
    if len(marks) != len(values):
        raise ProgrammingError(
            f"A statement must have one ? for each parameter. Found {len(marks)} and {len(values)}. Give one for each."
        )
    ends = [-1, *marks, len(statement)]
    kept = [statement[before + 1 : after] for before, after in itertools.pairwise(ends)]
    literals = [*map(_literal, values), ""]
    return "".join(part for pair in zip(kept, literals, strict=True) for part in pair)


def _literal(value: Any) -> str:
    """Write a parameter as an SQL literal."""
    if value is None:
        return " NULL "
    if isinstance(value, bool):
        return " TRUE " if value else " FALSE "
    if isinstance(value, int) and abs(value) <= LARGEST:
        return f"({int(value)!r})"
    if isinstance(value, float) and math.isfinite(value):
        return f"({float(value)!r})"
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return f" DATE '{value.isoformat()}' "
    if isinstance(value, str):
        return " '" + value.replace("'", "''") + "' "  # apart from what is beside it, as from the E of E'…'
    raise ProgrammingError(
        f"A parameter must be a finite number, text, bool or date. Found {type(value).__name__}. Convert it."
    )
