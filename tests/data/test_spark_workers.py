"""The functions that Spark's workers run, here on batches in Spark's form: they give the cells and counts of the table in memory."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource, Table, spark_table
from hedgerow.data.contributions import PersonColumn, persons
from hedgerow.data.source import DataSource
from hedgerow.data.spark_frame import _pack
from hedgerow.data.spark_table import SparkTable, _as_signed, _row_coder, _row_counter

UNIVERSE = hr.Universe(age=hr.Integers(0, 9), sex=hr.Categories(["F", "M"], other=True), x=hr.Range(0, 1, bins=300))
SETS = [names for k in range(4) for names in itertools.combinations(UNIVERSE.names, k)]


def table(rows: int) -> pa.Table:
    rng = np.random.default_rng(rows)
    columns = {
        "age": pa.array(rng.integers(-2, 13, rows)),
        "sex": pa.array(rng.choice(["F", "M", "f", "é"], rows)),
        "x": pa.array(rng.normal(0.5, 0.4, rows)),
        "who": pa.array(rng.choice(["Ann", " ann", "", "é"], rows)),
    }
    return pa.table({name: pa.array([*column.to_pylist()[:-1], None]) for name, column in columns.items()})


@pytest.mark.parametrize("merge", [False, True])
def test_batches_are_coded_and_counted_as_the_table_in_memory(merge) -> None:
    given = table(1500)
    kinds = [_as_signed(size) for size in UNIVERSE.shape]
    assert [kind.name for kind in kinds] == ["int8", "int8", "int16"]
    coded = list(_row_coder(UNIVERSE, kinds, None)(given.select(UNIVERSE.names).to_batches(max_chunksize=400)))
    assert [batch.num_columns for batch in coded] == [3] * 4
    group = np.arange(300) // 100
    here = Table(given, UNIVERSE)
    if merge:
        here = here.merge_values(
            hr.Universe(age=UNIVERSE["age"], sex=UNIVERSE["sex"], x=hr.Range(0, 1, bins=3)), {"x": group}
        )
    axes = [[UNIVERSE.index(name) for name in names] for names in SETS]
    shapes = [here.universe.sizes(names) for names in SETS]
    flat = np.zeros(sum(here.universe.cells(names) for names in SETS), np.int64)
    for part in (coded[:1], coded[1:], []):  # each worker has some of the batches, or none
        for found in _row_counter(axes, shapes, [None, None, group if merge else None])(part):
            flat[found.column(0).to_numpy()] += found.column(1).to_numpy()
    whole = np.concatenate([counts.reshape(-1) for counts in here.marginals(SETS)])
    assert np.array_equal(flat, whole) and flat.sum() == len(SETS) * 1500


def test_every_cell_fits_the_signed_type_of_its_column() -> None:
    """And the smallest that does: cells are as many as rows."""
    for size in (1, 2, 127, 128, 129, 200, 255, 256, 257, 32_768, 32_769, 65_535, 65_536, 2**31, 2**31 + 1):
        kind = _as_signed(size)
        assert np.array([0, size - 1]).astype(kind).tolist() == [0, size - 1]
        assert kind.itemsize == 1 or size - 1 > np.iinfo(f"i{kind.itemsize // 2}").max


@pytest.mark.parametrize("at_once", [1, 7, 8, 40, 1 << 16])
def test_a_fingerprint_is_of_all_records_however_many_come_together(monkeypatch, at_once) -> None:
    """Spark's grouped and ordered copy is given as rows; how many is no multiple of those that come together, or is one."""
    monkeypatch.setattr(spark_table, "AT_ONCE", at_once)
    universe = hr.Universe(a=hr.Integers(0, 199), b=hr.Flag())
    counts = np.zeros(universe.shape, np.int64)
    counts[np.arange(40) * 5, np.arange(40) % 2] = np.arange(1, 41)

    class Copied(SparkTable):
        def __init__(self) -> None:
            DataSource.__init__(self, universe)
            self._groups, self._kinds = {}, [_as_signed(size) for size in universe.shape]

        def _read_coded(self) -> Copied:
            return self

        def toLocalIterator(self) -> list[tuple[int, ...]]:
            return [(*map(int, cell), int(counts[tuple(cell)])) for cell in np.argwhere(counts)]

    for asked in ("groupBy", "count", "orderBy"):
        setattr(Copied, asked, lambda self, *columns: self)
    assert Copied().fingerprint() == HistogramSource(universe, counts).fingerprint()


def test_persons_come_with_their_rows() -> None:
    given = table(50)
    (batch,) = _row_coder(UNIVERSE, [np.dtype(np.int16)] * 3, PersonColumn("who", 1))(given.to_batches())
    assert batch.column("unit").to_pylist() == persons(given["who"].combine_chunks()).cast(pa.binary()).to_pylist()


def test_rows_that_come_to_this_process_are_packed_without_loss() -> None:
    given = table(50)
    sent = [row.as_py() for batch in _pack(given.to_batches(max_chunksize=20)) for row in batch.column(0)]
    assert len(sent) == 3
    assert pa.Table.from_batches([b for bytes_ in sent for b in pa.ipc.open_stream(bytes_)]).equals(given)
