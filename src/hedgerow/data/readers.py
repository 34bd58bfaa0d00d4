"""Where a table comes from: its columns' names, and the declared columns in batches, as their source carries them.

Only declared columns are read, and nothing is converted to another type here, for a conversion could fail on a row: an
engine hands over numbers, truths and texts as they are, and casts every other type to text, which always succeeds. Only
public facts are refused by name: a path, a type, a table or a column that does not exist.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hedgerow.data.csv_file import Csv, CsvFile
from hedgerow.errors import DataUnavailable, InvalidInput

ROWS = 1 << 17  # of a batch
ROWS_OF_AN_ENGINE = 1 << 15  # fewer, for an engine may not hold more than 2 GiB of texts in a batch


@dataclass(frozen=True)
class Source:
    """``batches(positions)`` gives the columns at these positions, some rows at a time, in the order of the rows."""

    columns: list[str]
    batches: Callable[[Sequence[int]], Iterator[list[Any]]]

    def positions(self, names: Sequence[str]) -> list[int]:
        """Where the named columns are; InvalidInput where one is not there, or there twice."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise InvalidInput(
                f"The table must have every column the universe declares. Found no {_listed(missing)}. "
                "Rename the column, or take it out of the universe."
            )
        twice = [name for name in names if self.columns.count(name) > 1]
        if twice:
            raise InvalidInput(
                f"The table must have each declared column once. Found {_listed(twice)} more than once. "
                "Rename all but one of them."
            )
        return [self.columns.index(name) for name in names]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:8]))


def opened(source: Any, table: str | None, csv: Csv | None) -> Source:
    """A source of any kind."""
    if csv is not None and not isinstance(csv, Csv):
        raise InvalidInput(f"csv must be an hr.Csv. Found {type(csv).__name__}. For example hr.Csv(delimiter=';').")
    if isinstance(source, str) and "://" in source:
        _require_no_dialect(csv)
        if table is None:
            raise InvalidInput("A database URL must come with table=. Found none. Name the table to open.")
        return _of_sqlite(source, table) if source.startswith("sqlite://") else _of_database(source, table)
    if isinstance(source, str | Path):
        return _of_file(Path(source), csv)
    _require_no_dialect(csv)
    families = {kind.__module__.split(".")[0] for kind in type(source).__mro__}
    if "pandas" in families and hasattr(source, "columns"):
        return _of_frame([str(name) for name in source.columns], len(source), lambda i: source.iloc[:, i])
    if "polars" in families and hasattr(source, "collect_schema"):
        return _of_polars(source)
    if "pyarrow" in families and hasattr(source, "schema"):
        return _of_arrow(source)
    if "ibis" in families and hasattr(source, "to_pyarrow_batches"):
        return _of_ibis(source)
    raise InvalidInput(
        "A source must be a CSV or Parquet path, a pandas, polars or Arrow frame, an Ibis table, or a database URL. "
        f"Found {type(source).__name__}. Open one of these."
    )


def _require_no_dialect(csv: Csv | None) -> None:
    if csv is not None:
        raise InvalidInput("csv must come with the path of a .csv or .tsv file. Found another source. Leave it out.")


def _of_file(path: Path, csv: Csv | None) -> Source:
    if not path.exists():
        raise InvalidInput(f"The data file must exist. Found nothing at {str(path)!r}. Check the path.")
    if path.is_dir():
        raise InvalidInput(f"The data file must be a file. Found the folder {str(path)!r}. Open one file.")
    kind = [s for s in (s.lower() for s in path.suffixes) if s in (".csv", ".tsv", ".parquet")]
    if not kind:
        raise InvalidInput(f"The data file must be .csv, .tsv or .parquet. Found {path.name!r}. Convert it first.")
    if kind[-1] == ".parquet":
        _require_no_dialect(csv)
        return _of_parquet(path)
    file = CsvFile(path, csv or Csv())
    return Source(file.columns, file.batches)


def _of_parquet(path: Path) -> Source:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    names = list(file.schema_arrow.names)

    def batches(positions: Sequence[int]) -> Iterator[list[Any]]:
        wanted = [names[i] for i in positions]
        for batch in file.iter_batches(ROWS, columns=wanted):
            yield [batch.column(batch.schema.get_field_index(name)) for name in wanted]

    return Source(names, batches)


def _of_frame(names: list[str], rows: int, column: Callable[[int], Any]) -> Source:
    def batches(positions: Sequence[int]) -> Iterator[list[Any]]:
        columns = [column(i) for i in positions]
        for start in range(0, rows, ROWS):
            yield [c.iloc[start : start + ROWS] if hasattr(c, "iloc") else c[start : start + ROWS] for c in columns]

    return Source(names, batches)


def _of_polars(source: Any) -> Source:
    names = list(source.collect_schema().names())
    if not hasattr(source, "collect"):
        return _of_frame(names, source.height, source.to_series)

    def batches(positions: Sequence[int]) -> Iterator[list[Any]]:
        frame = source.select([names[i] for i in positions]).collect()
        return _of_frame(names, frame.height, frame.to_series).batches(range(frame.width))

    return Source(names, batches)


def _of_arrow(source: Any) -> Source:
    import pyarrow as pa
    import pyarrow.dataset as ds

    names = list(source.schema.names)
    if isinstance(source, pa.Table | pa.RecordBatch):
        return _of_frame(names, source.num_rows, source.column)

    def batches(positions: Sequence[int]) -> Iterator[list[Any]]:
        if isinstance(source, ds.Dataset):
            wanted = [names[i] for i in positions]
            for batch in source.scanner(columns=wanted, batch_size=ROWS).to_batches():
                yield [batch.column(i) for i in range(len(wanted))]
        else:  # a reader of batches
            for batch in source:
                yield [batch.column(i) for i in positions]

    return Source(names, batches)


def _of_ibis(table: Any) -> Source:
    held = getattr(getattr(table.op(), "data", None), "obj", None)
    if type(held).__module__.split(".")[0] in ("pandas", "polars", "pyarrow"):
        found = opened(held, None, None)  # a frame in memory, which Ibis would convert whole
        return Source(list(table.columns), found.batches)
    if table.get_backend().name == "sqlite":
        return _of_sqlite_query(table)
    names, schema = list(table.columns), table.schema()

    def batches(positions: Sequence[int]) -> Iterator[list[Any]]:
        columns = {}
        for k, i in enumerate(positions):
            kind, column = schema[names[i]], table[names[i]]
            native = (
                kind.is_integer() or kind.is_floating() or kind.is_boolean() or kind.is_string() or kind.is_binary()
            )
            columns[f"c{k}"] = column if native else column.cast("string")
        for batch in _arrow_batches(table.select(**columns)):
            yield [batch.column(k) for k in range(len(positions))]

    return Source(names, batches)


def _arrow_batches(expression: Any) -> Iterator[Any]:
    """The rows of an Ibis table. From DuckDB without Ibis, which asks it by a name that newer versions do not have."""
    engine = expression.get_backend()
    if engine.name != "duckdb":
        yield from expression.to_pyarrow_batches(chunk_size=ROWS_OF_AN_ENGINE)
        return
    engine._run_pre_execute_hooks(expression)
    yield from of_duckdb(engine.con, str(engine.compile(expression)), ROWS_OF_AN_ENGINE)


def of_duckdb(connection: Any, query: str, rows: int) -> Iterator[Any]:
    """What DuckDB finds, in batches of Arrow."""
    found = connection.cursor().sql(query)
    read = found.to_arrow_reader if hasattr(found, "to_arrow_reader") else found.fetch_arrow_reader
    yield from read(rows)


def _of_database(url: str, table: str) -> Source:
    import ibis

    path = url.partition("://")[2].partition("?")[0]
    if url.startswith("duckdb://") and path and not path.startswith((":memory:", "md:")) and not Path(path).exists():
        raise InvalidInput(f"The database file must exist. Found nothing at {path!r}. Check the URL.")
    connection = found = None
    missing = False
    with contextlib.suppress(Exception):  # what a driver says is withheld
        connection = ibis.connect(url)
    if connection is None:
        raise DataUnavailable(
            "The database must answer at its URL. Found no connection (the driver's message is withheld). "
            "Check the URL, the credentials and that the database's driver is installed."
        )
    with contextlib.suppress(Exception):
        connection.raw_sql("SET arrow_large_buffer_size = true")  # DuckDB's way to hold more than 2 GiB of texts
    try:
        found = connection.table(table)
    except ibis.common.exceptions.TableNotFound:
        missing = True
    if missing:
        _refuse_table(table)
    return _of_ibis(found)


def _refuse_table(table: str) -> None:
    raise InvalidInput(f"The database must have the table. Found no {table!r}. Check the spelling of table=.")


def _of_sqlite(url: str, table: str) -> Source:
    """Through Python's own module, for any row of SQLite may hold any type and any bytes."""
    path = url.removeprefix("sqlite://").partition("?")[0]
    if not Path(path).is_file():
        raise InvalidInput(f"The database file must exist. Found nothing at {path!r}. Check the URL.")
    connection = sqlite3.connect(f"file:{quote(str(Path(path).absolute()))}?mode=ro", uri=True, check_same_thread=False)
    connection.text_factory = bytes
    rows = connection.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
    if not rows:
        _refuse_table(table)
    names = [str(row[1], "utf-8", "replace") for row in rows]

    def batches(positions: Sequence[int]) -> Iterator[list[Any]]:
        query = f"SELECT {', '.join(_quoted(names[i]) for i in positions)} FROM {_quoted(table)}"
        with contextlib.closing(connection):
            yield from _fetched(connection, query)

    return Source(names, batches)


def _of_sqlite_query(table: Any) -> Source:
    """A table of Ibis over SQLite, without the types that Ibis would hold its rows to."""
    names, engine = list(table.columns), table.get_backend()

    def batches(positions: Sequence[int]) -> Iterator[list[Any]]:
        wanted = table.select(**{f"c{k}": table[names[i]] for k, i in enumerate(positions)})
        kept, engine.con.text_factory = engine.con.text_factory, bytes
        try:
            yield from _fetched(engine.con, str(engine.compile(wanted)))
        finally:
            engine.con.text_factory = kept

    return Source(names, batches)


def _fetched(connection: sqlite3.Connection, query: str) -> Iterator[list[Any]]:
    cursor = connection.execute(query)
    while some := cursor.fetchmany(ROWS_OF_AN_ENGINE):
        yield [list(column) for column in zip(*some, strict=True)]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
