"""The sensitive table, of which mechanisms see only counts over the cells of a few attributes.

A table is read once, when it is opened, batch by batch; each row is coded into its cells by itself (``coding``), and
the cells alone are kept: a snapshot, so that the whole budget is about one dataset. Where the universe has few cells, or there are many
more rows than cells, the counts of all cells are kept instead, which say as much in less. Whether a table can be opened
depends on public facts: no value is refused. What an engine raises is replaced by a message that quotes no row.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Counts, Integers, Names
from hedgerow.data.batches import Source
from hedgerow.data.coding import Coder
from hedgerow.data.contributions import Unit, kept_query, persons
from hedgerow.data.counting import ManyTables
from hedgerow.data.csv_file import Csv
from hedgerow.data.histogram import Histogram
from hedgerow.data.readers import ROWS, of_duckdb, opened
from hedgerow.data.schema import require_match
from hedgerow.data.source import DataSource
from hedgerow.data.withheld import folder_of as folder_of
from hedgerow.data.withheld import without_messages as without_messages
from hedgerow.errors import DataUnavailable, HedgerowError
from hedgerow.questions.universe import Universe

MEMORY = "1GiB"  # of the engine: a table of more cells is partly on disk
FOLDED_AT_ONCE = 1 << 17  # cells of a universe so small that rows are never kept, and no engine is started
MOST_FOLDED = 1 << 21  # cells of a universe of which all are counted while rows are read
FEWEST_FOLDED = 1 << 20  # rows, and no fewer than cells: rows are quicker to count than so many cells to sum
COLUMN_TYPES = {"uint8": "UTINYINT", "uint16": "USMALLINT", "uint32": "UINTEGER", "uint64": "UBIGINT"}


class Table(DataSource):
    """A table from a file, a frame or a database: each row coded into its cells, and only the cells kept, by DuckDB."""

    def __init__(
        self,
        source: Any,
        universe: Universe,
        *,
        table: str | None = None,
        csv: Csv | None = None,
        unit: Unit | None = None,
    ) -> None:
        """``unit``: of whom at most so many rows are kept (``contributions``)."""
        super().__init__(universe)
        beside = folder_of(self)
        self._groups: dict[str, Integers] = {}
        self._whole: Table | None = None
        self._engine: Any  # None where nothing but counts was ever kept
        self._folded: Histogram | None  # in place of rows
        self._engine, self._folded = without_messages(
            lambda: _kept(coded_batches(source, universe, table=table, csv=csv, unit=unit), universe, unit, beside)
        )

    def merged(self, universe: Universe, groups: Mapping[str, Integers]) -> Table:
        """A view: the rows are kept once, and grouped as they are counted."""
        view = Table.__new__(Table)
        DataSource.__init__(view, universe)
        view._engine, view._whole = self._engine, self  # whose folder stays as long as it does
        view._groups, view._folded = composed(self._groups, groups), None
        if self._folded is not None:
            view._groups, view._folded = {}, self._folded.merged(universe, groups)
        return view

    def _count_all(self, sets: Sequence[Names]) -> list[Counts]:
        """In one scan, by a kernel over the cells (``counting``); or summed, where all cells are counted."""
        if self._folded is not None:
            return self._folded._count_all(sets)
        found = ManyTables(self.universe, sets)
        columns = found.columns or self.universe.names[:1]

        def count() -> None:
            for batch in of_duckdb(self._engine, f"SELECT {self._columns(columns)} FROM coded", ROWS):
                columns_of_batch = [self._grouped(name, batch.column(i).to_numpy()) for i, name in enumerate(columns)]
                found.add(columns_of_batch, batch.num_rows)

        without_messages(count)
        return found.tables()

    def fingerprint(self) -> str:
        def of_all() -> str:
            if self._engine is None:
                return super(Table, self).fingerprint()
            with _with_all_memory(self._engine):
                return super(Table, self).fingerprint()

        return without_messages(of_all)

    def _distinct(self) -> Iterator[Integers]:
        if self._folded is not None:
            yield from self._folded._distinct()
            return
        columns = self._columns(self.universe.names)
        query = f"SELECT {columns}, count(*) FROM coded GROUP BY {columns} ORDER BY {columns}"
        batches = of_duckdb(self._engine, query, ROWS)
        each = (np.column_stack([column.to_numpy().astype(np.int64) for column in batch.columns]) for batch in batches)
        yield from each if not self._groups else merged_records(self.universe, self._groups, each)

    def _grouped(self, name: str, cells: NDArray[Any]) -> NDArray[Any]:
        return self._groups[name][cells] if name in self._groups else cells

    def _columns(self, names: Names) -> str:
        return ", ".join(f"c{self.universe.index(name)}" for name in names)


def composed(first: Mapping[str, Integers], then: Mapping[str, Integers]) -> dict[str, Integers]:
    """The groups of values that were grouped before."""
    return {**first, **{name: group[first[name]] if name in first else group for name, group in then.items()}}


def merged_records(
    universe: Universe, groups: Mapping[str, Integers], batches: Iterable[Integers]
) -> Iterator[Integers]:
    """Distinct records and how often, of those of the values before they were grouped."""
    records = np.concatenate([np.zeros((0, len(universe.names) + 1), np.int64), *batches])
    for i, name in enumerate(universe.names):
        if name in groups:
            records[:, i] = groups[name][records[:, i]]
    distinct, places = np.unique(records[:, :-1], axis=0, return_inverse=True)
    counts = np.zeros(len(distinct), np.int64)
    np.add.at(counts, places.ravel(), records[:, -1])
    yield np.column_stack([distinct, counts])


def coded_batches(
    source: Any, universe: Universe, *, table: str | None = None, csv: Csv | None = None, unit: Unit | None = None
) -> Iterator[list[Any]]:
    """The cells of a source's rows, an array an attribute, some rows at a time: each row by itself, in order. Last, whose it is."""
    found = opened_before_rows(source, table, csv)
    positions = found.positions(universe.names)
    wanted = positions if unit is None else found.positions(list(dict.fromkeys([*universe.names, unit.column])))
    attributes = [universe[name] for name in universe.names]
    require_match(universe.names, attributes, [found.type_of(i) for i in positions])
    coders = [Coder(attribute) for attribute in attributes]
    kinds = [np.min_scalar_type(size - 1) for size in universe.shape]
    for batch in found.batches(wanted):
        cells = [coder.cells(column).astype(kind) for coder, column, kind in zip(coders, batch, kinds, strict=False)]
        whose = [] if unit is None else [persons(batch[wanted.index(found.columns.index(unit.column))])]
        yield [*cells, *whose]


def opened_before_rows(source: Any, table: str | None, csv: Csv | None) -> Source:
    """The source, opened. What fails here fails before any row is read, so how the failure is called may be told."""
    refusal: Exception | None = None
    try:
        return opened(source, table, csv)
    except (HedgerowError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as failed:
        refusal = DataUnavailable(
            f"The source must open before its rows are read. Found that it does not ({type(failed).__name__}): it is no "
            "file, table or connection of its kind any more. Check the file's format, or connect again."
        )
    raise refusal


def _kept(
    batches: Iterator[list[Any]], universe: Universe, unit: Unit | None, beside: str
) -> tuple[Any, Histogram | None]:
    """An embedded engine that holds the cells, of each person's rows those that stay; what MEMORY does not hold, in a folder.

    Once there are many more rows than cells, counts of all cells in its place.
    """
    if unit is None and universe.size <= FOLDED_AT_ONCE:
        counted = ManyTables(universe, [universe.names])
        for cells in batches:
            counted.add(cells, len(cells[0]))
        return None, Histogram(universe, counted.tables()[0])

    import duckdb
    import pyarrow as pa

    engine = duckdb.connect()
    with contextlib.suppress(Exception):  # some notebooks refuse the setting
        engine.execute("SET enable_progress_bar = false")
    engine.execute(f"SET memory_limit = '{MEMORY}'")
    engine.execute("SET temp_directory = '" + beside.replace("'", "''") + "'")
    kinds = [COLUMN_TYPES[np.min_scalar_type(size - 1).name] for size in universe.shape]
    columns = [f"c{i}" for i in range(len(kinds))]
    declared = ", ".join(f"{column} {kind}" for column, kind in zip(columns, kinds, strict=True))
    engine.execute(f"CREATE TABLE coded ({declared}{'' if unit is None else ', unit BLOB'})")
    every: ManyTables | None = None
    rows = 0
    most = max(FEWEST_FOLDED, universe.size) if unit is None and universe.size <= MOST_FOLDED else math.inf
    for cells in batches:
        rows += len(cells[0])
        if rows > most:
            if every is None:
                every = ManyTables(universe, [universe.names])
                for batch in of_duckdb(engine, "SELECT * FROM coded", ROWS):
                    every.add([column.to_numpy() for column in batch.columns], batch.num_rows)
                engine.execute("DROP TABLE coded")
            every.add(cells, len(cells[0]))
            continue
        engine.register("batch", pa.table(dict(zip([*columns, "unit"], cells, strict=False))))
        engine.execute("INSERT INTO coded SELECT * FROM batch")
        engine.unregister("batch")
    if unit is not None:
        with _with_all_memory(engine):
            engine.execute(f"CREATE TABLE kept AS {kept_query('coded', columns, unit.rows)}")
        engine.execute("DROP TABLE coded")
        engine.execute("ALTER TABLE kept RENAME TO coded")
    return engine, None if every is None else Histogram(universe, every.tables()[0])


@contextlib.contextmanager
def _with_all_memory(engine: Any) -> Iterator[None]:
    """For what sorts and groups all rows: within less, whether it succeeds could depend on how many are distinct."""
    engine.execute("RESET memory_limit")
    try:
        yield
    finally:
        engine.execute(f"SET memory_limit = '{MEMORY}'")
