"""A table on a Spark cluster, coded and counted where it lives. Only counts come back.

The workers run the same ``coding`` on every row as all other sources, so hedgerow must be installed there. The cells
are written once, as a Parquet folder on storage that all workers reach, and every count is of that copy. A worker that
dies is replaced and reads the copy again, a source that changes meanwhile changes nothing, and a new Spark session
continues where the old one ended. This process holds counts, whose size the universe determines, and no row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Counts, Integers, Names
from hedgerow.data.coding import Coder
from hedgerow.data.contributions import PersonColumn, kept_query, persons
from hedgerow.data.readers import TrustSchema, open_before_rows
from hedgerow.data.schema import hide_engine_errors, require_match
from hedgerow.data.source import DataSource, compose_groups, merge_records
from hedgerow.data.spark_frame import new_folder, quiet, select_columns
from hedgerow.universe.universe import Universe

AT_ONCE = 1 << 16  # the number of distinct records that come back together
TYPES = {"int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint"}  # Spark's integers are all signed


class SparkTable(DataSource):
    """A Spark frame, coded into a copy on the cluster's storage and counted there."""

    def __init__(self, frame: Any, universe: Universe, unit: PersonColumn | None = None) -> None:
        """Code a frame. With ``unit``, keep at most so many rows of each person (see ``contributions``)."""
        super().__init__(universe)
        self._groups: dict[str, Integers] = {}
        self._whole: SparkTable | None = None
        found = open_before_rows(frame, None, None)
        frame = frame.source if isinstance(frame, TrustSchema) else frame
        self._spark = frame.sparkSession
        positions = found.positions(universe.names)
        attributes = [universe[name] for name in universe.names]
        require_match(universe.names, attributes, [found.type_of(i) for i in positions])
        self._kinds = [_as_signed(size) for size in universe.shape]
        self._schema = ", ".join(f"c{i} {TYPES[kind.name]}" for i, kind in enumerate(self._kinds))
        rows = select_columns(frame, [*positions, *([] if unit is None else found.positions([unit.column]))])
        self._folder = new_folder(self, self._spark)
        coded = rows.mapInArrow(
            _row_coder(universe, self._kinds, unit), self._schema if unit is None else f"{self._schema}, unit binary"
        )
        if unit is not None:
            columns = [f"c{i}" for i in range(len(self._kinds))]
            coded = self._spark.sql(kept_query("{coded}", columns, unit.rows), coded=coded)
        with quiet(self._spark):
            hide_engine_errors(lambda: coded.write.parquet(self._folder))

    def merge_values(self, universe: Universe, groups: Mapping[str, Integers]) -> SparkTable:
        """Return a view: the copy is stored once, and the workers group values as they count."""
        view = SparkTable.__new__(SparkTable)
        DataSource.__init__(view, universe)
        view._spark, view._folder, view._whole = (
            self._spark,
            self._folder,
            self,
        )  # keeps the owner of the folder alive, and with it the folder
        view._kinds, view._schema, view._groups = self._kinds, self._schema, compose_groups(self._groups, groups)
        return view

    def _read_coded(self) -> Any:
        """Read the copy with the session that is active now. The session that wrote the copy may have ended."""
        from pyspark.sql import SparkSession

        self._spark = SparkSession.getActiveSession() or self._spark
        return self._spark.read.schema(self._schema).parquet(self._folder)

    def _count_all(self, sets: Sequence[Names]) -> list[Counts]:
        """Count all sets on the workers, in one scan of the copy."""
        used = self.universe.order(name for names in sets for name in names) or self.universe.names[:1]
        columns = [f"c{self.universe.index(name)}" for name in used]
        axes = [[used.index(name) for name in names] for names in sets]
        groups = [self._groups.get(name) for name in used]
        shapes = [self.universe.sizes(names) for names in sets]
        ends = np.cumsum([0, *(self.universe.cells(names) for names in sets)])
        flat = np.zeros(ends[-1], np.int64)

        def count() -> None:
            of_workers = (
                self._read_coded()
                .select(*columns)
                .mapInArrow(_row_counter(axes, shapes, groups), "place bigint, times bigint")
            )
            found = of_workers.groupBy("place").sum("times").toArrow()
            flat[found.column(0).to_numpy()] = found.column(1).to_numpy()

        hide_engine_errors(count)
        return [
            flat[start:end].copy().reshape(shape) for start, end, shape in zip(ends[:-1], ends[1:], shapes, strict=True)
        ]

    def fingerprint(self) -> str:
        """Return the fingerprint of the table, and hide engine errors."""
        return hide_engine_errors(super().fingerprint)

    def _distinct(self) -> Iterator[Integers]:
        each = self._distinct_values()
        yield from each if not self._groups else merge_records(self.universe, self._groups, each)

    def _distinct_values(self) -> Iterator[Integers]:
        """Yield the distinct records before values are grouped."""
        columns = [f"c{i}" for i in range(len(self._kinds))]
        some: list[Any] = []
        for row in self._read_coded().groupBy(*columns).count().orderBy(*columns).toLocalIterator():
            some.append(tuple(row))
            if len(some) == AT_ONCE:
                yield np.array(some, np.int64)
                some = []
        if some:
            yield np.array(some, np.int64)


def _as_signed(size: int) -> np.dtype[Any]:
    return next(kind for kind in map(np.dtype, TYPES) if size - 1 <= np.iinfo(kind).max)


# The functions below run on the workers.


def _row_coder(
    universe: Universe, kinds: Sequence[np.dtype[Any]], unit: PersonColumn | None
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return a function that codes batches of rows into cells."""

    def code(batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the cells of each batch of rows, on a worker."""
        import pyarrow as pa

        coders = [Coder(universe[name]) for name in universe.names]
        for batch in batches:
            cells = [coder.cells(batch.column(i)) for i, coder in enumerate(coders)]
            columns = {f"c{i}": pa.array(column.astype(kinds[i])) for i, column in enumerate(cells)}
            if unit is not None:
                columns["unit"] = persons(batch.column(len(coders))).cast(pa.binary())
            yield pa.record_batch(columns)

    return code


def _row_counter(
    axes: Sequence[Sequence[int]], shapes: Sequence[tuple[int, ...]], groups: Sequence[Integers | None]
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return a function that counts the rows of a partition.

    Its result has the places in the flattened tables, one table after the other, and the number of rows at each place.
    """

    def count(batches: Iterable[Any]) -> Iterator[Any]:
        """Count the cells of each wanted table over the batches of a worker."""
        import pyarrow as pa

        found: list[NDArray[np.int64]] = [np.zeros(shape, np.int64).reshape(-1) for shape in shapes]
        for batch in batches:
            found_cells = [column.to_numpy().astype(np.int64) for column in batch.columns]
            cells = [c if group is None else group[c] for c, group in zip(found_cells, groups, strict=True)]
            for wanted, shape, counts in zip(axes, shapes, found, strict=True):
                place = np.zeros(batch.num_rows, np.int64)
                for axis, size in zip(wanted, shape, strict=True):
                    place = place * size + cells[axis]
                if counts.size <= batch.num_rows:
                    counts += np.bincount(place, minlength=counts.size)
                else:
                    np.add.at(counts, place, 1)
        flat = np.concatenate(found)
        places = np.flatnonzero(flat)
        yield pa.record_batch({"place": places, "times": flat[places]})

    return count
