"""The sensitive table in an embedded engine. Mechanisms see only counts over the cells of a few attributes.

A table is read once, when it is opened, batch by batch. Each row is coded into its cells by itself (``coding``), and
only the cells are kept. They are a snapshot, so that the whole budget is about one dataset. If the universe has few
cells, or if there are many more rows than cells, the counts of all cells are kept instead, which are smaller and say
the same. Only public facts decide whether a table can be opened: no value is refused. Errors of an engine are replaced
by a message that quotes no row.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Counts, Integers, Names
from hedgerow.data.coding import Coder
from hedgerow.data.contributions import PersonColumn, kept_query, persons
from hedgerow.data.counting import ManyTables
from hedgerow.data.csv_file import Csv
from hedgerow.data.readers import ROWS, TrustSchema, of_duckdb, open_before_rows
from hedgerow.data.schema import folder_of, hide_engine_errors, require_match
from hedgerow.data.source import DataSource, HistogramSource, compose_groups, merge_records
from hedgerow.data.spark_frame import spark_frame
from hedgerow.data.spark_table import SparkTable
from hedgerow.universe.universe import Universe

MEMORY = "1GiB"  # the engine's memory: a table with more cells is partly on disk
FOLDED_AT_ONCE = 1 << 17  # a universe of at most this many cells keeps counts from the start, and no engine is started
MOST_FOLDED = 1 << 21  # a universe of at most this many cells can switch from rows to counts while rows are read
# It switches after this many rows, and after as many rows as cells: fewer rows are faster to count than cells to sum.
FEWEST_FOLDED = 1 << 20
COLUMN_TYPES = {"uint8": "UTINYINT", "uint16": "USMALLINT", "uint32": "UINTEGER", "uint64": "UBIGINT"}


def open_source(
    source: Any,
    universe: Universe,
    *,
    table: str | None = None,
    csv: Csv | None = None,
    unit: PersonColumn | None = None,
) -> DataSource:
    """Read and code a source, and return it as a ``DataSource``.

    A Spark frame stays on its cluster. The cells of all other sources are copied into this process.
    """
    inner = source.source if isinstance(source, TrustSchema) else source
    if csv is None and table is None and not isinstance(inner, str | os.PathLike):
        frame = spark_frame(inner)
        if frame is not None:
            return SparkTable(frame if inner is source else TrustSchema(frame), universe, unit)
    return Table(source, universe, table=table, csv=csv, unit=unit)


class Table(DataSource):
    """A table from a file, a frame or a database. Each row is coded into its cells, and DuckDB keeps only the cells."""

    def __init__(
        self,
        source: Any,
        universe: Universe,
        *,
        table: str | None = None,
        csv: Csv | None = None,
        unit: PersonColumn | None = None,
    ) -> None:
        """Read a table. With ``unit``, keep at most so many rows of each person (see ``contributions``)."""
        super().__init__(universe)
        beside = folder_of(self)
        self._groups: dict[str, Integers] = {}
        self._whole: Table | None = None
        self._engine: Any  # None if only counts were ever kept
        self._folded: HistogramSource | None  # counts that replace the rows
        self._engine, self._folded = hide_engine_errors(
            lambda: _keep_rows(code_batches(source, universe, table=table, csv=csv, unit=unit), universe, unit, beside)
        )

    def merge_values(self, universe: Universe, groups: Mapping[str, Integers]) -> Table:
        """Return a view: the rows are stored once, and values are grouped as they are counted."""
        view = Table.__new__(Table)
        DataSource.__init__(view, universe)
        view._engine, view._whole = self._engine, self  # keeps the owner of the folder alive, and with it the folder
        view._groups, view._folded = compose_groups(self._groups, groups), None
        if self._folded is not None:
            view._groups, view._folded = {}, self._folded.merge_values(universe, groups)
        return view

    def _count_all(self, sets: Sequence[Names]) -> list[Counts]:
        """Count all sets in one scan of the cells (see ``counting``), or sum them if all cells are counted already."""
        if self._folded is not None:
            return self._folded._count_all(sets)
        found = ManyTables(self.universe, sets)
        columns = found.columns or self.universe.names[:1]

        def count() -> None:
            for batch in of_duckdb(self._engine, f"SELECT {self._columns(columns)} FROM coded", ROWS):
                columns_of_batch = [
                    self._group_values(name, batch.column(i).to_numpy()) for i, name in enumerate(columns)
                ]
                found.add(columns_of_batch, batch.num_rows)

        hide_engine_errors(count)
        return found.tables()

    def fingerprint(self) -> str:
        """Return the fingerprint of the table, and hide engine errors."""

        def of_all() -> str:
            if self._engine is None:
                return super(Table, self).fingerprint()
            with _with_all_memory(self._engine):
                return super(Table, self).fingerprint()

        return hide_engine_errors(of_all)

    def _distinct(self) -> Iterator[Integers]:
        """Yield the distinct records with their counts."""
        if self._folded is not None:
            yield from self._folded._distinct()
            return
        columns = self._columns(self.universe.names)
        query = f"SELECT {columns}, count(*) FROM coded GROUP BY {columns} ORDER BY {columns}"
        batches = of_duckdb(self._engine, query, ROWS)
        each = (np.column_stack([column.to_numpy().astype(np.int64) for column in batch.columns]) for batch in batches)
        yield from each if not self._groups else merge_records(self.universe, self._groups, each)

    def _group_values(self, name: str, cells: NDArray[Any]) -> NDArray[Any]:
        return self._groups[name][cells] if name in self._groups else cells

    def _columns(self, names: Names) -> str:
        return ", ".join(f"c{self.universe.index(name)}" for name in names)


def code_batches(
    source: Any,
    universe: Universe,
    *,
    table: str | None = None,
    csv: Csv | None = None,
    unit: PersonColumn | None = None,
) -> Iterator[list[Any]]:
    """Yield the cells of a source's rows in batches: one array per attribute, and with ``unit`` a last one of persons.

    Each row is coded by itself, in order.
    """
    found = open_before_rows(source, table, csv)
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


def _keep_rows(
    batches: Iterator[list[Any]], universe: Universe, unit: PersonColumn | None, beside: str
) -> tuple[Any, HistogramSource | None]:
    """Return an embedded engine with the cells of the kept rows, and the counts of all cells if they replace the rows.

    Cells that do not fit into MEMORY are in the folder ``beside``. Once there are many more rows than cells, the counts
    of all cells take the place of the rows.
    """
    if unit is None and universe.size <= FOLDED_AT_ONCE:
        counted = ManyTables(universe, [universe.names])
        for cells in batches:
            counted.add(cells, len(cells[0]))
        return None, HistogramSource(universe, counted.tables()[0])

    import duckdb
    import pyarrow as pa

    engine = duckdb.connect()
    with contextlib.suppress(Exception):  # some notebooks refuse this setting
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
    return engine, None if every is None else HistogramSource(universe, every.tables()[0])


@contextlib.contextmanager
def _with_all_memory(engine: Any) -> Iterator[None]:
    """Lift the memory limit for work that sorts and groups all rows.

    Under the limit, success could depend on the number of distinct records, which is private.
    """
    engine.execute("RESET memory_limit")
    try:
        yield
    finally:
        engine.execute(f"SET memory_limit = '{MEMORY}'")
