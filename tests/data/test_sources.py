"""The contract of every data source: exact counts, in batches or one by one, read-only, within memory, and no row shown.

A new source goes into ``SOURCES``: a function that holds the records of an array of cells (rows × attributes).
"""

from __future__ import annotations

import functools
import gc
import itertools
import math
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import postgres
import psycopg
import pyarrow as pa
import pytest
import spark
from numpy.typing import NDArray
from sqlite_file import open_sqlite

import hedgerow as hr
from hedgerow.data import CodedRows, DataSource, HistogramSource, Table, readers
from hedgerow.data import source as module
from hedgerow.data import table as table_module
from hedgerow.data.absent import AbsentTable
from hedgerow.data.spark_table import SparkTable
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.universe.universe import subsets

UNIVERSE = hr.Universe(
    age=hr.Range(20, 80, bins=4),
    region=hr.Categories(["north", "south", "east"]),
    smoker=hr.Flag(),
    visits=hr.Integers(0, 5),
)
Cells = NDArray[np.int64]


def frame_of(universe: hr.Universe, cells: Cells) -> pd.DataFrame:
    frame = pd.DataFrame(universe.decode(cells, numeric=True), columns=list(universe.names))
    texts = [name for name in universe.names if all(isinstance(label, str) for label in universe[name].labels)]
    # declared: of no rows pandas would infer numbers, which no label matches
    return frame.astype({name: str for name in texts if isinstance(universe[name], hr.Categories)})


def histogram(folder: Path, universe: hr.Universe, cells: Cells) -> DataSource:
    flat = np.ravel_multi_index(tuple(cells.T), universe.shape)
    return HistogramSource(universe, np.bincount(flat, minlength=universe.size))


def coded_rows(folder: Path, universe: hr.Universe, cells: Cells) -> DataSource:
    return CodedRows(universe, list(cells.T))


def csv_file(folder: Path, universe: hr.Universe, cells: Cells) -> DataSource:
    frame_of(universe, cells).to_csv(folder / "table.csv", index=False)
    return Table(folder / "table.csv", universe)


def parquet_file(folder: Path, universe: hr.Universe, cells: Cells) -> DataSource:
    frame_of(universe, cells).to_parquet(folder / "table.parquet")
    return Table(str(folder / "table.parquet"), universe)


def sqlite_table(folder: Path, universe: hr.Universe, cells: Cells) -> DataSource:
    (folder / "table.db").unlink(missing_ok=True)
    with open_sqlite(folder / "table.db") as connection:
        frame_of(universe, cells).to_sql("people", connection, index=False)
    return Table(f"sqlite://{folder / 'table.db'}", universe, table="people")


def csv_gzip(folder: Path, universe: hr.Universe, cells: Cells) -> DataSource:
    frame_of(universe, cells).to_csv(folder / "table.csv.gz", index=False)
    return Table(folder / "table.csv.gz", universe)


def duckdb_file(folder: Path, universe: hr.Universe, cells: Cells) -> DataSource:
    (folder / "table.duckdb").unlink(missing_ok=True)
    frame = frame_of(universe, cells)
    with duckdb.connect(str(folder / "table.duckdb")) as db:
        db.execute("CREATE TABLE people AS SELECT * FROM frame")
    assert len(frame) == len(cells)
    return Table(f"duckdb://{folder / 'table.duckdb'}", universe, table="people")


def ibis_table(folder: Path, universe: hr.Universe, cells: Cells) -> DataSource:
    engine = ibis.duckdb.connect()
    engine.create_table("people", pa.Table.from_pandas(frame_of(universe, cells)))
    return Table(engine.table("people"), universe)


def postgres_table(folder: Path, universe: hr.Universe, cells: Cells) -> DataSource:
    url, frame = postgres.server().fresh(), frame_of(universe, cells)
    kinds = {"i": "bigint", "f": "float8", "b": "boolean"}
    columns = ", ".join(f'"{name}" {kinds.get(frame[name].dtype.kind, "text")}' for name in universe.names)
    with psycopg.connect(url) as db:
        db.execute(f"CREATE TABLE people ({columns})")
        with db.cursor().copy("COPY people FROM STDIN") as copy:
            for row in frame.itertuples(index=False):
                copy.write_row([each.item() if isinstance(each, np.generic) else each for each in row])
    return Table(url, universe, table="people")


def parquet_folder(folder: Path, universe: hr.Universe, cells: Cells) -> DataSource:
    """By the first attribute, as Spark and Hive write it, and each part in two files."""
    frame, key = frame_of(universe, cells), universe.names[0]
    base = folder / "parts"
    shutil.rmtree(base, ignore_errors=True)
    for value in sorted(set(frame[key])) or [0]:
        part = base / f"{key}={value}"
        part.mkdir(parents=True)
        rows = frame[frame[key] == value].drop(columns=key)
        rows[::2].to_parquet(part / "even.parquet")
        rows[1::2].to_parquet(part / "odd.parquet")
    return Table(base, universe)


def parquet_pattern(folder: Path, universe: hr.Universe, cells: Cells) -> DataSource:
    for old in folder.glob("part-*.parquet"):
        old.unlink()
    for i, some in enumerate(np.array_split(cells, 3)):
        frame_of(universe, some).to_parquet(folder / f"part-{i}.parquet")
    return Table(str(folder / "part-*.parquet"), universe)


def parquet_by_url(folder: Path, universe: hr.Universe, cells: Cells) -> DataSource:
    pytest.importorskip("fsspec")
    frame_of(universe, cells).to_parquet(folder / "table.parquet")
    return Table(f"file://{folder / 'table.parquet'}", universe)


def pandas_frame(folder: Path, universe: hr.Universe, cells: Cells) -> DataSource:
    return Table(frame_of(universe, cells), universe)


def polars_frame(folder: Path, universe: hr.Universe, cells: Cells) -> DataSource:
    return Table(pl.DataFrame(dict(frame_of(universe, cells))), universe)


def folded_table(folder: Path, universe: hr.Universe, cells: Cells) -> DataSource:
    """As a table of many more rows than cells is kept: some of its batches before there are so many, some after."""
    kept = table_module.FOLDED_AT_ONCE, table_module.FEWEST_FOLDED, readers.ROWS
    table_module.FOLDED_AT_ONCE, table_module.FEWEST_FOLDED, readers.ROWS = 0, 40, 30
    try:
        return Table(frame_of(universe, cells), universe)
    finally:
        table_module.FOLDED_AT_ONCE, table_module.FEWEST_FOLDED, readers.ROWS = kept


def table_of_rows(folder: Path, universe: hr.Universe, cells: Cells) -> DataSource:
    """As a table of a large universe is kept: its rows, by the engine."""
    kept, table_module.FOLDED_AT_ONCE = table_module.FOLDED_AT_ONCE, 0
    try:
        return Table(frame_of(universe, cells), universe)
    finally:
        table_module.FOLDED_AT_ONCE = kept


def arrow_table(folder: Path, universe: hr.Universe, cells: Cells) -> DataSource:
    return Table(pa.Table.from_pandas(frame_of(universe, cells)), universe)


Make = Callable[[Path, hr.Universe, Cells], DataSource]
SOURCES: list[Make] = [
    histogram, coded_rows, csv_file, csv_gzip, parquet_file, parquet_folder, parquet_pattern, parquet_by_url, sqlite_table, duckdb_file,
    ibis_table, postgres_table, pandas_frame, polars_frame, arrow_table, folded_table, table_of_rows,
    spark.spark_frame,
]  # fmt: skip
SETS = subsets(UNIVERSE.names)


def records(seed: int, rows: int = 500, universe: hr.Universe = UNIVERSE) -> Cells:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(0, size, rows) ** 2 // size for size in universe.shape])


def brute_force(cells: Cells, names: tuple[str, ...], universe: hr.Universe = UNIVERSE) -> NDArray[np.int64]:
    counts = np.zeros(universe.sizes(names), np.int64)
    for record in cells:
        counts[tuple(record[universe.index(name)] for name in names)] += 1
    return counts


LONG = [spark.spark_frame]  # in `make audit`; tests/data/test_spark.py has the same in one pass
PARAMS = [pytest.param(make, marks=pytest.mark.audit if make in LONG else ()) for make in SOURCES]


@pytest.fixture(params=PARAMS, ids=lambda make: make.__name__)
def make(request, tmp_path) -> Callable[..., DataSource]:
    return lambda cells, universe=UNIVERSE: request.param(tmp_path, universe, cells)


# Once rows are read, all tables are held alike, whatever they were read from: for what comes after, one of each way to hold them, and the others in `make audit`
HELD = [histogram, coded_rows, pandas_frame, folded_table, table_of_rows]
HELD_PARAMS = [pytest.param(make, marks=() if make in HELD else pytest.mark.audit) for make in SOURCES]


@pytest.fixture(params=HELD_PARAMS, ids=lambda make: make.__name__)
def hold(request, tmp_path) -> Callable[..., DataSource]:
    return lambda cells, universe=UNIVERSE: request.param(tmp_path, universe, cells)


def test_every_kind_of_source_is_under_this_contract(tmp_path) -> None:
    kinds = {kind for kind in subclasses(DataSource) if kind.__module__.startswith("hedgerow.")}
    tested = {type(source(tmp_path, UNIVERSE, records(0, 3))) for source in SOURCES if source not in LONG}
    tested |= {SparkTable, AbsentTable}  # the first is in LONG; the second counts nothing, and its own tests say so
    assert kinds == tested, "Add a function that makes one to SOURCES in tests/data/test_sources.py."


def subclasses(kind: type) -> set[type]:
    return {kind for below in kind.__subclasses__() for kind in ({below} | subclasses(below))}


def test_a_marginal_is_what_counting_the_records_one_by_one_gives(make) -> None:
    cells = records(1)
    data = make(cells)
    for names in SETS:
        counts = data.marginal(names)
        assert counts.dtype == np.int64
        assert np.array_equal(counts, brute_force(cells, names))


def test_many_marginals_at_once_are_those_of_one_by_one(make) -> None:
    cells = records(2)
    together, alone = make(cells), make(cells)
    for a, b in zip(together.marginals(SETS), [alone.marginal(names) for names in SETS], strict=True):
        assert np.array_equal(a, b)
    assert together.marginals([]) == []


def test_sets_may_repeat_and_names_come_in_any_order(hold) -> None:
    data = hold(records(3))
    asked = [["visits", "age"], ("age",), iter(["age", "visits", "age"]), {"visits", "age"}]
    first, age, *again = data.marginals(asked)
    assert first.shape == UNIVERSE.sizes(("age", "visits"))
    assert np.array_equal(first.sum(axis=1), age)
    for other in (*again, data.marginal(["visits", "age"])):
        assert np.array_equal(first, other)


def test_no_attributes_give_the_number_of_rows(make) -> None:
    data = make(records(4, rows=37))
    assert data.marginal(()).shape == ()
    assert data.marginal(()) == data.rows == 37


def test_a_table_without_rows_has_counts_of_zero(make) -> None:
    data = make(np.zeros((0, 4), np.int64))
    assert data.rows == 0
    assert not any(counts.any() for counts in data.marginals(SETS))
    assert len(data.fingerprint()) == 64


def test_counts_cannot_be_written_to(hold) -> None:
    data = hold(records(5))
    for counts in [data.marginal(["age"]), *data.marginals([["age"], ["region", "age"], ()])]:
        with pytest.raises(ValueError, match="read-only"):
            counts[...] = 0


def test_an_unknown_attribute_is_refused(hold) -> None:
    with pytest.raises(InvalidInput, match="Found 'height'"):
        hold(records(6)).marginals([["age"], ["height"]])


def test_too_large_tables_are_refused_before_anything_is_counted(hold, monkeypatch) -> None:
    data = hold(records(7))
    monkeypatch.setattr(data, "_count_all", lambda sets: pytest.fail("It was counted."))
    monkeypatch.setattr(module, "LARGEST_MARGINAL", 23)
    with pytest.raises(TooLarge, match=r"at most 23 cells. Found 24 on \('age', 'visits'\)"):
        data.marginals([["age"], ["age", "visits"]])
    monkeypatch.setattr(module, "COUNTED_CELLS", 9)
    with pytest.raises(TooLarge, match=r"at most 9 cells in all\. Found 10"):
        data.marginals([["age"], ["region"], ["age"], ["region"], ["smoker"], ()])


def test_the_cache_stays_within_its_bound_and_counts_stay_right(hold, monkeypatch) -> None:
    monkeypatch.setattr(module, "CACHED_CELLS", 40)
    cells = records(8)
    data = hold(cells)
    for names in [s for s in SETS * 2 if UNIVERSE.cells(s) <= 40]:
        assert np.array_equal(data.marginal(names), brute_force(cells, names))
        assert sum(counts.size for counts in data._cache.values()) <= 40


def test_cached_tables_are_not_counted_again(hold, monkeypatch) -> None:
    data = hold(records(9))
    known = data.marginal(["age"])
    counted: list[list[tuple[str, ...]]] = []
    count = data._count_all
    monkeypatch.setattr(data, "_count_all", lambda sets: counted.append(list(sets)) or count(sets))
    assert data.marginals([["age"], ["region"], ["age"], ["region"]])[0] is known
    assert counted == [[("region",)]]


def test_part_of_a_table_that_is_counted_is_summed_from_it_unless_that_is_large(hold, monkeypatch) -> None:
    cells = records(10)
    data, counted = hold(cells), []
    count = data._count_all
    monkeypatch.setattr(data, "_count_all", lambda sets: counted.extend(sets) or count(sets))
    asked = [("age",), ("region", "visits"), ("age", "region", "visits"), (), ("smoker",)]
    for names, counts in zip(asked, data.marginals(asked), strict=True):
        assert np.array_equal(counts, brute_force(cells, names)) and not counts.flags.writeable
    assert counted == [("age", "region", "visits"), ("smoker",)]
    assert np.array_equal(data.marginal(("visits",)), brute_force(cells, ("visits",))) and len(counted) == 2
    monkeypatch.setattr(module, "SUMMED", 0)
    assert np.array_equal(data.marginal(("region",)), brute_force(cells, ("region",))) and len(counted) == 3


def test_the_same_records_have_the_same_fingerprint_in_any_order_and_wherever_they_are_held(make, tmp_path) -> None:
    cells = records(10)
    shuffled = np.random.default_rng(0).permutation(cells)
    assert (
        make(cells).fingerprint() == make(shuffled).fingerprint() == histogram(tmp_path, UNIVERSE, cells).fingerprint()
    )


def test_tables_that_differ_in_one_row_have_other_fingerprints(hold) -> None:
    cells = records(11, rows=60)
    changed = cells.copy()
    changed[17, 2] = 1 - changed[17, 2]
    tables = [cells, changed, cells[1:], np.vstack([cells, cells[:1]]), np.vstack([cells, cells])]
    assert len({hold(table).fingerprint() for table in tables}) == len(tables)


def test_the_same_cells_of_another_universe_have_another_fingerprint(hold) -> None:
    cells = records(12)
    named = {name: UNIVERSE[name] for name in UNIVERSE.names}
    renamed = hr.Universe({**named, "region": hr.Categories(["north", "south", "west"])})
    shifted = hr.Universe({**named, "age": hr.Range(20, 80, bins=4, values=[21, 41, 61, 79])})
    reordered = hr.Universe(dict(reversed(named.items())))
    found = {hold(cells, universe).fingerprint() for universe in (UNIVERSE, renamed, shifted)}
    assert len(found | {hold(cells[:, ::-1], reordered).fingerprint()}) == 4


def test_a_fingerprint_is_the_same_in_every_process_and_of_equal_universes(hold) -> None:
    """Written down once: a ledger that was bound to its table yesterday must know it tomorrow."""
    cells = np.array([[0, 0, 0, 0], [3, 2, 1, 5], [3, 2, 1, 5], [1, 0, 1, 4]])
    stored = "fe5887adf9cd2d1b3648423db56b5acc085912b8d9830800780be6a1008f2e72"
    assert hold(cells).fingerprint() == stored
    region = hr.Categories(np.array(["north", "south", "east"]))
    assert (
        hold(cells, hr.Universe({n: UNIVERSE[n] for n in UNIVERSE.names} | {"region": region})).fingerprint() == stored
    )


def test_nothing_private_shows_in_the_repr(make) -> None:
    one, other = make(records(13, rows=317)), make(records(14, rows=911))
    for data in (one, other):
        data.marginals(SETS)
    assert repr(one) == repr(other)
    assert not any(secret in repr(one) for secret in ("317", one.fingerprint()))


def answers_of(data: DataSource) -> list[object]:
    session = hr.open(data, universe=UNIVERSE, budget=hr.Budget(20.0, 1e-6, "add-remove"), seed=7, reserve=0.7)
    asked = [hr.count(region="south", visits=(1, 4)), hr.marginal("age", "smoker"), hr.mean("visits")]
    answers = session.ask_all(asked)
    answers.append(session.ask(asked[0], within=0.9 * answers[0].error))
    assert answers[-1].cost > 0
    return [(np.asarray(a.value).tolist(), np.asarray(a.error).tolist(), a.cost) for a in answers]


@functools.cache
def expected_answers() -> list[object]:
    return answers_of(histogram(Path(), UNIVERSE, records(17, rows=400)))


def test_a_seeded_session_says_the_same_wherever_its_table_is(make) -> None:
    assert answers_of(make(records(17, rows=400))) == expected_answers()


def test_threads_may_share_a_source(hold, monkeypatch) -> None:
    """With a cache that is too small for all, so that they also push out one another's counts."""
    monkeypatch.setattr(module, "CACHED_CELLS", math.prod(UNIVERSE.shape) + 10)
    cells = records(15)
    data, expected = hold(cells), {names: brute_force(cells, names) for names in SETS}

    def ask(seed: int) -> bool:
        rng = np.random.default_rng(seed)
        picks = [[SETS[i] for i in rng.integers(0, len(SETS), 3)] for _ in range(40)]
        picks = [sets for sets in picks if sum(UNIVERSE.cells(s) for s in set(sets)) <= module.CACHED_CELLS]
        found = [(names, counts) for sets in picks for names, counts in zip(sets, data.marginals(sets), strict=True)]
        return bool(found) and all(np.array_equal(counts, expected[names]) for names, counts in found)

    kept, _ = sys.getswitchinterval(), sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(ask, range(16)))
    finally:
        sys.setswitchinterval(kept)
    assert sum(counts.size for counts in data._cache.values()) <= module.CACHED_CELLS


def test_arrays_outside_memory_are_in_a_folder_that_only_its_owner_can_open(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(table_module, "MEMORY", "32MB")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    universe = hr.Universe.from_sizes({name: 250 for name in "abcdefgh"})
    cells = np.random.default_rng(0).integers(0, 250, (8, 6_000_000), dtype=np.uint8)
    data = Table(pa.table(dict(zip("abcdefgh", cells, strict=True))), universe)
    (folder,) = tmp_path.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and sum(file.stat().st_size for file in folder.iterdir()) > 0
    for name, column in zip("ah", (cells[0], cells[-1]), strict=True):
        assert np.array_equal(data.marginal([name]), np.bincount(column, minlength=250))
    del data
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_large_table_is_counted_batch_by_batch(tmp_path) -> None:
    universe = hr.Universe.from_sizes({"a": 700, "b": 700, "c": 3})  # one set of more cells than a batch has rows
    cells = records(16, rows=300_000, universe=universe)
    data = Table(pd.DataFrame(cells, columns=["a", "b", "c"]), universe)
    sets = [s for k in range(3) for s in itertools.combinations(universe.names, k)]
    for names, counts in zip(sets, data.marginals(sets), strict=True):
        place = np.zeros(len(cells), np.int64)
        for name in names:
            place = place * universe[name].size + cells[:, universe.index(name)]
        expected = np.bincount(place, minlength=universe.cells(names))
        assert np.array_equal(counts.ravel(), expected)
    assert data.fingerprint() == histogram(tmp_path, universe, cells).fingerprint()


def test_rows_under_fewer_values_are_counted_as_if_each_had_been_coded_so(hold) -> None:
    """Neither of the two attributes is the first, so no axis is in its place by chance."""
    cells, sizes = records(11), {"region": 2, "visits": 3}
    groups = {name: np.arange(UNIVERSE[name].size) % size for name, size in sizes.items()}
    fewer = hr.Universe({n: hr.Integers(0, sizes[n] - 1) if n in sizes else UNIVERSE[n] for n in UNIVERSE.names})
    grouped = cells.copy()
    for name, group in groups.items():
        grouped[:, UNIVERSE.index(name)] = group[cells[:, UNIVERSE.index(name)]]
    view, coded = hold(cells).merge_values(fewer, groups), hold(grouped, fewer)
    for names in SETS:
        assert np.array_equal(view.marginal(names), brute_force(grouped, names, fewer))
    assert view.fingerprint() == coded.fingerprint()
    assert view.rows == len(cells)
