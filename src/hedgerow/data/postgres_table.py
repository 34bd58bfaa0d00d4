"""Read a PostgreSQL table by one statement, in a read-only transaction, and therefore as it was at one moment.

No value is converted in a way that could fail on a row. Whole numbers, floats, booleans and numerics come as they are
(NaN too). Texts come as the server's own bytes and are decoded here, because a conversion of encodings by the server
fails on characters that it does not know. Dates and times come as ISO 8601 texts. A time with a zone comes in UTC,
because PostgreSQL stores no other zone. All other types come as their texts.

The password may be in the URL or, better, where libpq looks for it (PGPASSWORD, ~/.pgpass). It appears in no message,
and nothing here is written to disk.
"""

from __future__ import annotations

import codecs
import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hedgerow._extras import extra
from hedgerow.data import schema
from hedgerow.data.schema import ROWS_OF_AN_ENGINE, BatchSource, quote_identifier
from hedgerow.errors import DataUnavailable, InvalidInput

SCHEMES = ("postgresql://", "postgres://", "postgresql+psycopg://")
KINDS: dict[str, schema.Kind] = {
    "int2": "whole", "int4": "whole", "int8": "whole", "float4": "number", "float8": "number", "numeric": "number",
    "bool": "truth", "date": "date", "timestamp": "date", "timestamptz": "date", "time": "time", "timetz": "time",
    "interval": "time", "text": "text", "varchar": "text", "bpchar": "text", "name": "text",
}  # fmt: skip
ARROW = {"int2": "int64", "int4": "int64", "int8": "int64", "float4": "float64", "float8": "float64", "bool": "bool_"}
CODECS = {"UTF8": "utf-8", "SQL_ASCII": "utf-8", "EUC_JIS_2004": "euc_jis_2004", "SHIFT_JIS_2004": "shift_jis_2004"}
NO_YEAR = "'0001-01-01'"  # the text of an earlier date begins like a date after this day, so it gets a minus sign

CATALOGUE = b"""
SELECT a.attname::text, b.typname::text, b.oid, c.oid FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
WHERE c.oid = to_regclass(%b) ORDER BY a.attnum"""
LABELS = b"SELECT enumtypid, enumlabel::text FROM pg_enum ORDER BY enumtypid, enumsortorder"
CHECKS = (
    b"SELECT pg_get_constraintdef(oid)::text FROM pg_constraint WHERE conrelid = %b AND contype = 'c' AND convalidated"
)


class _Column(NamedTuple):
    """A column of the table."""

    name: str
    kind: str  # the catalogue's name of its type, or of the base type of its domain
    public: schema.Column


def is_postgres(url: str) -> bool:
    """Return True for a PostgreSQL URL."""
    return url.startswith(SCHEMES)


def of_postgres(url: str, table: str) -> BatchSource:
    """Return a table or view, ``name`` or ``schema.name``, as a source. Its rows are read when they are asked for."""
    link = "postgresql://" + url.partition("://")[2]
    with contextlib.closing(_connect(link)) as connection:
        codec = _codec(connection)
        named, columns = _find_table(connection, table, codec)

    def batches(positions: Sequence[int]) -> Iterator[list[Any]]:
        """Yield the columns of the table, batch by batch, from a cursor of one transaction."""
        wanted = [columns[i] for i in positions]
        listed = ", ".join(_expression(column) for column in wanted)
        with contextlib.closing(_connect(link)) as reading:
            reading.execute(f"DECLARE hedgerow_rows NO SCROLL CURSOR FOR SELECT {listed} FROM {named}".encode(codec))
            while some := reading.execute(b"FETCH %d FROM hedgerow_rows" % ROWS_OF_AN_ENGINE, binary=True).fetchall():
                yield [
                    _as_arrow(column.kind, values, codec)
                    for column, values in zip(wanted, zip(*some, strict=True), strict=True)
                ]

    return BatchSource([column.name for column in columns], batches, [column.public for column in columns])


def _connect(link: str) -> Any:
    """Return a read-only connection that sees one moment."""
    failed: Exception | None = None
    psycopg, connection = extra("psycopg"), None
    try:
        connection = psycopg.connect(link, application_name="hedgerow")
        connection.read_only, connection.isolation_level = True, psycopg.IsolationLevel.REPEATABLE_READ
        settings = (
            b"SET client_encoding = SQL_ASCII; SET datestyle = ISO; SET timezone = UTC; SET intervalstyle = postgres"
        )
        connection.execute(settings)
        return connection
    except Exception as raised:  # a driver's message may quote a password, so only its class is shown
        failed = raised
    if connection is not None:
        connection.close()
    refuse_connection(failed)


def refuse_connection(failed: Exception) -> None:
    """Raise the error for a failure before any row was read, naming only its class."""
    if isinstance(failed, ImportError):
        raise DataUnavailable(
            "The database's driver must be installed. Found no driver. Install what Ibis needs for this database."
        ) from None
    raise DataUnavailable(
        "The database must answer at its URL, before any row is read. "
        f"Found that it does not ({type(failed).__name__}). Check the URL, the credentials, "
        "and that the database runs and is reachable."
    ) from None


def refuse_table(table: str) -> None:
    """Raise the error for a table that does not exist."""
    raise InvalidInput(f"The database must have the table. Found no {table!r}. Check the spelling of table=.")


def _codec(connection: Any) -> str:
    """Return the codec of the server's texts.

    An encoding that Python does not know is read as UTF-8, with U+FFFD for invalid bytes, as everywhere.
    """
    name = connection.execute(b"SHOW server_encoding").fetchone()[0]
    called = name.decode() if isinstance(name, bytes) else str(name)
    with contextlib.suppress(LookupError):
        return codecs.lookup(CODECS.get(called, called.replace("WIN", "cp"))).name
    return "utf-8"


def _find_table(connection: Any, table: str, codec: str) -> tuple[str, list[_Column]]:
    """Return the table's name in SQL, and its columns."""
    schema_name, dot, rest = table.partition(".")
    rows: list[Any] = []
    named = quote_identifier(table)
    for named in [
        quote_identifier(table),
        *([f"{quote_identifier(schema_name)}.{quote_identifier(rest)}"] if dot else []),
    ]:
        literal = "'" + named.replace("'", "''") + "'"
        rows = connection.execute(CATALOGUE.replace(b"%b", literal.encode(codec, "replace"))).fetchall()
        if rows:
            break
    if not rows:
        refuse_table(table)
    labels: dict[int, list[str]] = {}
    for kind, label in connection.execute(LABELS).fetchall():
        labels.setdefault(kind, []).append(_text(label, codec))
    names = [_text(row[0], codec) for row in rows]
    public = [
        schema.Column("text", labels=tuple(labels[oid]))
        if oid in labels
        else schema.Column(KINDS.get(_text(kind, codec)))
        for _, kind, oid, _ in rows
    ]
    checks = connection.execute(CHECKS.replace(b"%b", str(rows[0][3]).encode())).fetchall()
    statement = (
        ", ".join([f"CREATE TABLE t ({quote_identifier(names[0])} INT", *(_text(check, codec) for (check,) in checks)])
        + ")"
    )
    public = schema.with_statement(names, public, statement, "postgres")
    return named, [
        _Column(name, _text(row[1], codec), column) for name, row, column in zip(names, rows, public, strict=True)
    ]


def _text(value: Any, codec: str) -> str:
    return value.decode(codec, "replace") if isinstance(value, bytes) else str(value)


def _expression(column: _Column) -> str:
    """Return the SQL expression by which a column is sent: as it is, or as its text, which every value has."""
    name, kind = quote_identifier(column.name), column.kind
    if kind == "float4":
        return f"{name}::float8"
    if kind in ("int2", "int4", "int8", "float8", "bool", "numeric", "bytea", "text"):
        return name
    if kind in ("date", "timestamp", "timestamptz"):
        text = f"({name} AT TIME ZONE 'UTC')::text || '+00:00'" if kind == "timestamptz" else f"{name}::text"
        return f"CASE WHEN {name} < {NO_YEAR}::{kind} THEN '-' || {text} ELSE {text} END"
    return f"{name}::text"


def _as_arrow(kind: str, values: Sequence[Any], codec: str) -> Any:
    """Return values as an Arrow array, if there is a type that holds every possible value, or else as a list."""
    import pyarrow as pa

    if kind in ARROW:
        return pa.array(values, getattr(pa, ARROW[kind])())
    if kind == "numeric":
        return list(values)
    if kind != "bytea" and codec != "utf-8":
        values = [None if each is None else each.decode(codec, "replace").encode() for each in values]
    return pa.array(values, pa.large_binary())
