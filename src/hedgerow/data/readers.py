"""Open a source of any kind: the names of its columns, and the declared columns in batches, as the source carries them.

Only declared columns are read. No value is converted to another type here, because a conversion could fail on a row: an
engine hands over numbers, booleans and texts as they are, and casts every other type to text, which always succeeds.
Only public facts are refused by name: a path, a type, a table or a column that does not exist.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hedgerow._extras import extra
from hedgerow.data import schema
from hedgerow.data.csv_file import Csv, CsvFile
from hedgerow.data.parquet_files import of_parquet
from hedgerow.data.postgres_table import is_postgres, of_postgres, refuse_connection, refuse_table
from hedgerow.data.schema import ROWS_OF_AN_ENGINE, BatchSource, quote_identifier
from hedgerow.data.spark_frame import of_spark, spark_frame
from hedgerow.errors import DataUnavailable, HedgerowError, InvalidInput

ROWS = 1 << 17  # rows of a batch
FILES = (".csv", ".tsv", ".parquet")  # the suffixes of readable files
LISTED = "SELECT table_name FROM information_schema.tables WHERE table_catalog = current_database() AND table_schema = current_schema()"
CATALOGUED = "SELECT type, sql FROM sqlite_master WHERE type IN ('table', 'view') AND name = ? COLLATE NOCASE"


@dataclass(frozen=True)
class TrustSchema:
    """A source whose column types are public, on the owner's word: they were declared, and no row decided them.

    Types of databases opened by URL are always public, because their tables were created with types.

    Parameters
    ----------
    source : frame, path or Ibis table
        A frame, a Parquet file or an Ibis table.

    Examples
    --------
    >>> session = hr.open(hr.TrustSchema(frame), universe=universe, budget=budget)
    """

    source: Any


def open_before_rows(source: Any, table: str | None, csv: Csv | None) -> BatchSource:
    """Open a source. A failure here comes before any row is read, so its class may be shown."""
    refusal: Exception | None = None
    try:
        return open_batches(source, table, csv)
    except (HedgerowError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as failed:
        refusal = DataUnavailable(
            f"The source must open before its rows are read. Found that it does not ({type(failed).__name__}): it is "
            "no longer a file, table or connection of its kind. Check the file's format, or connect again."
        )
    raise refusal


def open_batches(source: Any, table: str | None, csv: Csv | None) -> BatchSource:
    """Open a source of any kind.

    Types that came with rows are dropped unless the owner called them public with ``TrustSchema``. Whoever wrote the
    frame or the file may have inferred the types, so that one row decided between numbers and texts. A type that lists
    its values (polars' Enum) was declared, so its labels are kept.
    """
    if isinstance(source, TrustSchema):
        return _open_carrier(source.source, table, csv)
    found = _open_carrier(source, table, csv)
    # A URL with table= is a database, whose types are public. Without table= it is a URL of files.
    if isinstance(source, str) and "://" in source and table is not None:
        return found
    return replace(found, types=[schema.Column(labels=column.labels) for column in found.types])


def _open_carrier(source: Any, table: str | None, csv: Csv | None) -> BatchSource:
    """Open a source with the types that it carries."""
    if csv is not None and not isinstance(csv, Csv):
        raise InvalidInput(f"csv must be an hr.Csv. Found {type(csv).__name__}. For example hr.Csv(delimiter=';').")
    if isinstance(source, str) and "://" in source:
        _require_no_dialect(csv)
        return _of_url(source, table)
    if table is not None:
        raise InvalidInput("table must come with the URL of a database. Found another source. Leave it out.")
    if isinstance(source, str | Path):
        return _of_file(Path(source).expanduser(), csv)
    _require_no_dialect(csv)
    families = {kind.__module__.split(".")[0] for kind in type(source).__mro__}
    if "pandas" in families and hasattr(source, "columns"):
        types = [schema.of_pandas(dtype) for dtype in source.dtypes]
        found = _of_frame([str(name) for name in source.columns], len(source), lambda i: source.iloc[:, i], types)
        return replace(found, dictionary=lambda i: _categories(source.dtypes.iloc[i]))
    if "polars" in families and hasattr(source, "collect_schema"):
        return _of_polars(source)
    if "pyarrow" in families and hasattr(source, "schema"):
        return _of_arrow(source)
    spark = spark_frame(source)
    if spark is not None:
        return of_spark(spark)
    if "ibis" in families and hasattr(source, "to_pyarrow_batches"):
        return _of_ibis(source)
    raise InvalidInput(
        "A source must be a CSV or Parquet path, a pandas, polars, Arrow or Spark frame, an Ibis table, or a database "
        f"URL. Found {type(source).__name__}. Open one of these, for example pandas.DataFrame(…)."
    )


def _require_no_dialect(csv: Csv | None) -> None:
    if csv is not None:
        raise InvalidInput("csv must come with the path of a .csv or .tsv file. Found another source. Leave it out.")


def _of_url(url: str, table: str | None) -> BatchSource:
    """Open a database table if one is named, and otherwise Parquet files."""
    if table is None and (".parquet" in url.lower() or url.endswith("/")):
        return of_parquet(url)
    if table is None:
        raise InvalidInput(
            "A database URL must come with table=, and the URL of files must name .parquet or end with a slash. Found "
            "neither. Name the table to open."
        )
    if url.startswith("sqlite://"):
        return _of_sqlite(url, table)
    return of_postgres(url, table) if is_postgres(url) else _of_database(url, table)


def _of_file(path: Path, csv: Csv | None) -> BatchSource:
    """Open a file, or a folder or pattern of Parquet files."""
    if path == Path():
        raise InvalidInput("The data file must have a name. Found the current folder. Give its path.")
    pattern = any(mark in str(path) for mark in "*?[") and not path.exists()
    if not pattern and not path.exists():
        raise InvalidInput(f"The data file must exist. Found nothing at {str(path)!r}. Check the path.")
    if pattern and path.suffix.lower() in (".csv", ".tsv", ".gz"):
        raise InvalidInput(
            f"A pattern must be of Parquet files. Found {path.name!r}. Open one CSV file, or read them yourself and "
            "pass one frame."
        )
    kind = [s for s in (s.lower() for s in path.suffixes) if s in FILES]
    if kind[-1:] == [".parquet"] or pattern or (path.is_dir() and not kind):
        _require_no_dialect(csv)
        return of_parquet(str(path))
    if path.is_dir():
        raise InvalidInput(f"The data file must be a file. Found the folder {str(path)!r}. Open one file.")
    if not kind:
        raise InvalidInput(
            f"The data file must be .csv, .tsv or .parquet. Found {path.name!r}. Convert it first, or read it "
            "yourself and pass the frame."
        )
    file = CsvFile(path, csv or Csv())
    return BatchSource(file.columns, file.batches, is_text=(csv or Csv()).columns is None)


def _of_frame(
    names: list[str], rows: int, column: Callable[[int], Any], types: list[schema.Column] | None = None
) -> BatchSource:
    """Return a frame in memory as a source, in slices of ROWS rows."""

    def batches(positions: Sequence[int]) -> Iterator[list[Any]]:
        columns = [column(i) for i in positions]
        for start in range(0, rows, ROWS):
            yield [c.iloc[start : start + ROWS] if hasattr(c, "iloc") else c[start : start + ROWS] for c in columns]

    return BatchSource(names, batches, types or [])


def _of_polars(source: Any) -> BatchSource:
    """Open a polars frame, lazy or not."""
    found = source.collect_schema()
    names, types = list(found.names()), [schema.of_polars(dtype) for dtype in found.dtypes()]
    if not hasattr(source, "collect"):
        return _of_frame(names, source.height, source.to_series, types)

    def batches(positions: Sequence[int]) -> Iterator[list[Any]]:
        frame = source.select([names[i] for i in positions]).collect()
        return _of_frame(names, frame.height, frame.to_series).batches(range(frame.width))

    return BatchSource(names, batches, types)


def _of_arrow(source: Any) -> BatchSource:
    """Open an Arrow table, dataset or reader of batches."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    names, types = list(source.schema.names), [schema.of_arrow(kind) for kind in source.schema.types]
    if isinstance(source, pa.Table | pa.RecordBatch):
        found = _of_frame(names, source.num_rows, source.column, types)
        return replace(found, dictionary=lambda i: _dictionary(source.column(i)))

    def batches(positions: Sequence[int]) -> Iterator[list[Any]]:
        if isinstance(source, ds.Dataset):
            wanted = [names[i] for i in positions]
            for batch in source.scanner(columns=wanted, batch_size=ROWS).to_batches():
                yield [batch.column(i) for i in range(len(wanted))]
        else:  # a reader of batches
            for batch in source:
                yield [batch.column(i) for i in positions]

    return BatchSource(names, batches, types)


def _dictionary(column: Any) -> tuple[Any, ...] | None:
    """Return the dictionary of a dictionary-encoded Arrow column, or None."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return None
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return tuple(dict.fromkeys(value for chunk in chunks for value in chunk.dictionary.to_pylist()))


def _categories(dtype: Any) -> tuple[Any, ...] | None:
    """Return the categories of a pandas categorical, or None."""
    return tuple(dtype.categories.tolist()) if str(dtype) == "category" else None


def _of_ibis(table: Any) -> BatchSource:
    """Open an Ibis table."""
    held = getattr(getattr(table.op(), "data", None), "obj", None)
    if type(held).__module__.split(".")[0] in ("pandas", "polars", "pyarrow"):
        found = _open_carrier(held, None, None)  # a frame in memory, which Ibis would convert as a whole
        return BatchSource(list(table.columns), found.batches, found.types)
    if table.get_backend().name == "sqlite":
        return _of_sqlite_query(table)
    names, kinds = list(table.columns), table.schema()
    _require_answer(lambda: list(_arrow_batches(table.limit(0))))

    def batches(positions: Sequence[int]) -> Iterator[list[Any]]:
        """Yield the columns of the table, batch by batch, as types that need no conversion here."""
        columns = {}
        for k, i in enumerate(positions):
            kind, column = kinds[names[i]], table[names[i]]
            native = (
                kind.is_integer() or kind.is_floating() or kind.is_boolean() or kind.is_string() or kind.is_binary()
            )
            columns[f"c{k}"] = column if native else column.cast("string")
        for batch in _arrow_batches(table.select(**columns)):
            yield [batch.column(k) for k in range(len(positions))]

    return BatchSource(names, batches, [schema.of_ibis(kinds[name]) for name in names])


def _require_answer(ask_for_no_row: Callable[[], Any]) -> None:
    """Refuse a dead connection or a missing table, so that it is not mistaken for rows that cannot be read."""
    with contextlib.suppress(Exception):
        ask_for_no_row()
        return
    raise DataUnavailable(
        "The database must answer a query for no row. Found that it does not: the connection is closed, or the table "
        "is gone or may not be read. Connect again, and check the table."
    )


def _arrow_batches(expression: Any) -> Iterator[Any]:
    """Yield the rows of an Ibis table. DuckDB is read without Ibis, which calls a method that newer versions lack."""
    engine = expression.get_backend()
    if engine.name != "duckdb":
        yield from expression.to_pyarrow_batches(chunk_size=ROWS_OF_AN_ENGINE)
        return
    engine._run_pre_execute_hooks(expression)
    yield from of_duckdb(engine.con, str(engine.compile(expression)), ROWS_OF_AN_ENGINE)


def of_duckdb(connection: Any, query: str, rows: int) -> Iterator[Any]:
    """Yield the result of a DuckDB query in Arrow batches."""
    found = connection.cursor().sql(query)
    read = found.to_arrow_reader if hasattr(found, "to_arrow_reader") else found.fetch_arrow_reader
    yield from read(rows)


def _of_database(url: str, table: str) -> BatchSource:
    """Open a table of a database through Ibis."""
    ibis = extra("ibis")
    path = file_of_url(url)
    if url.startswith("duckdb://") and path and not path.startswith((":memory:", "md:")) and not Path(path).exists():
        raise InvalidInput(f"The database file must exist. Found nothing at {path!r}. Check the URL.")
    connection: Any = None
    found = failed = None
    missing = False
    try:
        plain = url.startswith("duckdb://") and "?" not in url and Path(path).is_file()
        connection = _read_only(path) if plain else ibis.connect(url)
    except Exception as raised:  # a driver's message may quote a password, so only its class is shown
        failed = raised
    if failed is not None:
        refuse_connection(failed)
    with contextlib.suppress(Exception):
        connection.raw_sql("SET arrow_large_buffer_size = true")  # lets DuckDB return more than 2 GiB of text
    try:
        if connection.name == "duckdb":  # which takes another name for a path or an address, and reads what is there
            listed = connection.con.cursor().execute(LISTED).fetchall()
            missing = table.casefold() not in (name.casefold() for (name,) in listed)
        found = None if missing else connection.table(table)
    except ibis.common.exceptions.TableNotFound:
        missing = True
    except Exception as raised:  # no row was read, so the class of the failure is public
        failed = raised
    if missing:
        refuse_table(table)
    if failed is not None:
        refuse_connection(failed)
    source = _of_ibis(found)
    return _with_catalogue(source, connection, table) if connection.name == "duckdb" else source


def file_of_url(url: str) -> str:
    """Return the path in a database's URL: absolute, or below the working folder as in the URL of a ledger."""
    path = re.sub("^/+", "/", url.partition("://")[2].partition("?")[0])
    below = path.removeprefix("/")
    return below if not Path(path).exists() and Path(below).is_file() else path


def _read_only(path: str) -> Any:
    """Connect to a DuckDB file read-only, or, if this process has it open for writing, with a further connection."""
    ibis = extra("ibis")
    with contextlib.suppress(Exception):
        return ibis.duckdb.connect(path, read_only=True)
    return ibis.duckdb.connect(path)


def _with_catalogue(source: BatchSource, connection: Any, table: str) -> BatchSource:
    """Add the enumerations and checks that DuckDB's catalogue has for the table."""
    types = source.types
    with contextlib.suppress(Exception):  # a view has no statement, and older versions use other names
        asked = connection.con.cursor()
        columns = asked.execute("SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ?", [table])
        listed = {name: schema.of_enumeration(kind) for name, kind in columns.fetchall()}
        types = [replace(t, labels=listed.get(name)) for name, t in zip(source.columns, types, strict=True)]
        made = asked.execute("SELECT sql FROM duckdb_tables() WHERE table_name = ?", [table]).fetchall()
        if len(made) == 1:
            types = schema.with_statement(source.columns, types, made[0][0], "duckdb")
    return replace(source, types=types)


def _of_sqlite(url: str, table: str) -> BatchSource:
    """Open a SQLite table through Python's own module, because any row of SQLite may hold any type and any bytes."""
    path = file_of_url(url)
    if not Path(path).is_file():
        raise InvalidInput(f"The database file must exist. Found nothing at {path!r}. Check the URL.")
    connection = sqlite3.connect(f"file:{quote(str(Path(path).absolute()))}?mode=ro", uri=True, check_same_thread=False)
    connection.text_factory = bytes
    rows, made, failed = [], [], None
    try:
        made = connection.execute(CATALOGUED, [table]).fetchall()  # else its own functions would be tables, too
        rows = connection.execute(f"PRAGMA table_xinfo({quote_identifier(table)})").fetchall() if made else []
    except sqlite3.Error as raised:  # no row was read
        failed = raised
    if failed is not None:
        raise DataUnavailable(
            f"The database must be a file of SQLite. Found that it does not open as one ({type(failed).__name__}). "
            "Check the URL."
        )
    if not rows:
        refuse_table(table)
    names = [str(row[1], "utf-8", "replace") for row in rows]

    def batches(positions: Sequence[int]) -> Iterator[list[Any]]:
        query = f"SELECT {', '.join(quote_identifier(names[i]) for i in positions)} FROM {quote_identifier(table)}"
        with contextlib.closing(connection):
            yield from _fetch_batches(connection, query)

    kind, text = made[0]
    statement = str(text, "utf-8", "replace") if kind == b"table" and text is not None else ""
    return BatchSource(names, batches, schema.with_statement(names, [], statement, "sqlite"))


def _of_sqlite_query(table: Any) -> BatchSource:
    """Open an Ibis table on SQLite, without the types to which Ibis would convert its rows."""
    names, engine = list(table.columns), table.get_backend()
    _require_answer(lambda: list(_fetch_batches(engine.con, str(engine.compile(table.limit(0))))))

    def batches(positions: Sequence[int]) -> Iterator[list[Any]]:
        wanted = table.select(**{f"c{k}": table[names[i]] for k, i in enumerate(positions)})
        kept, engine.con.text_factory = engine.con.text_factory, bytes
        try:
            yield from _fetch_batches(engine.con, str(engine.compile(wanted)))
        finally:
            engine.con.text_factory = kept

    return BatchSource(names, batches)


def _fetch_batches(connection: sqlite3.Connection, query: str) -> Iterator[list[Any]]:
    """Yield the columns of a query's result in batches."""
    cursor = connection.execute(query)
    while some := cursor.fetchmany(ROWS_OF_AN_ENGINE):
        yield [list(column) for column in zip(*some, strict=True)]
