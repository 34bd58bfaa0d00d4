"""A PEP-249 connection to a session: ``hedgerow.sql.cursor.connect(session)``.

A connection asks through whatever has a ``sql_result`` (a ``Session``). There are no transactions: what was answered is
answered, so ``commit`` and ``rollback`` do nothing.
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
from hedgerow.questions.universe import Universe
from hedgerow.sql.result import Result
from hedgerow.sql.syntax import placeholders

apilevel = "2.0"
threadsafety = 2  # sessions take turns
paramstyle = "qmark"
LARGEST = int(sys.float_info.max)


class Warning(Exception):
    pass


class Error(Exception):
    pass


class InterfaceError(Error):
    pass


class DatabaseError(Error):
    pass


class DataError(DatabaseError):
    pass


class OperationalError(DatabaseError):
    pass


class IntegrityError(DatabaseError):
    pass


class InternalError(DatabaseError):
    pass


class ProgrammingError(DatabaseError):
    pass


class NotSupportedError(DatabaseError):
    pass


class AnswersSql(Protocol):
    """A session, as far as a connection needs it."""

    @property
    def universe(self) -> Universe: ...

    def sql_result(self, statement: str) -> Result: ...


class Connection:
    def __init__(self, session: AnswersSql) -> None:
        self._session: AnswersSql | None = session

    @property
    def session(self) -> AnswersSql:
        if self._session is None:
            raise InterfaceError("A connection must be open. Found a closed one. Connect again.")
        return self._session

    def cursor(self) -> Cursor:
        return Cursor(self)

    def commit(self) -> None:
        """Nothing to do: an answer cannot be taken back."""

    def rollback(self) -> None:
        """Nothing to do: an answer cannot be taken back."""

    def close(self) -> None:
        self._session = None

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Cursor:
    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self.connection: Connection | None = connection
        self._result: Result | None = None
        self._rows: Iterator[tuple[Any, ...]] = iter(())

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """Name and nothing else of each column, as PEP 249 allows."""
        if self._result is None:
            return None
        return [(name, None, None, None, None, None, None) for name in self._result.columns]

    @property
    def rowcount(self) -> int:
        return -1 if self._result is None else len(self._result.rows)

    def execute(self, statement: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> Cursor:
        if self.connection is None:
            raise InterfaceError("A cursor must be open. Found a closed one. Make another.")
        try:
            self._result = self.connection.session.sql_result(with_parameters(statement, parameters))
        except (BudgetExceeded, DataUnavailable, LedgerUnavailable, LedgerBroken) as refused:
            raise OperationalError(str(refused)) from refused
        except (InvalidInput, HedgerowError) as refused:
            raise ProgrammingError(str(refused)) from refused
        self._rows = iter(self._result.records)
        return self

    def executemany(self, statement: str, sequence: Sequence[Sequence[Any]]) -> Cursor:
        raise NotSupportedError("Statements must be executed one by one. Found many at once. Use execute.")

    def fetchone(self) -> tuple[Any, ...] | None:
        self._require_result()
        return next(self._rows, None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        self._require_result()
        return [row for _, row in zip(range(self.arraysize if size is None else size), self._rows, strict=False)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        self._require_result()
        return list(self._rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.fetchall())

    def close(self) -> None:
        self.connection, self._result = None, None

    def setinputsizes(self, sizes: Any) -> None:
        """Nothing to do."""

    def setoutputsize(self, size: Any, column: Any = None) -> None:
        """Nothing to do."""

    def _require_result(self) -> None:
        if self._result is None:
            raise ProgrammingError("A statement must be executed before its rows are fetched. Found none. Execute one.")


def connect(session: AnswersSql) -> Connection:
    """A PEP-249 connection that asks through the session."""
    return Connection(session)


def with_parameters(statement: str, parameters: Sequence[Any] | Mapping[str, Any]) -> str:
    """The statement with a literal for each ``?`` that is a word of it: not in a text, a name or a comment."""
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
            f"There must be one ? for each parameter. Found {len(marks)} and {len(values)}. Give one for each."
        )
    ends = [-1, *marks, len(statement)]
    kept = [statement[before + 1 : after] for before, after in itertools.pairwise(ends)]
    literals = [*map(_literal, values), ""]
    return "".join(part for pair in zip(kept, literals, strict=True) for part in pair)


def _literal(value: Any) -> str:
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
        f"A parameter must be a finite number, text, truth or date. Found {type(value).__name__}. Convert it."
    )
