"""Opening a table succeeds or fails on public facts alone, and no row changes how another is read."""

from __future__ import annotations

import csv
import datetime
import decimal
import gzip
import io
import itertools
import warnings
from pathlib import Path

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from awkward_values import AWKWARD, NUMBERS
from coded_rows import coded_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlite_file import open_sqlite

import hedgerow as hr
from hedgerow.data import coding, readers, schema
from hedgerow.data.coding import Coder
from hedgerow.data.csv_file import LONGEST_RECORD, Csv, CsvFile
from hedgerow.data.table import Table, code_batches
from hedgerow.errors import DataUnavailable, InvalidInput

UNIVERSE = hr.Universe(age=hr.Integers(0, 9), sex=hr.Categories(["F", "M"], other=True))
ROWS = [(str(i % 10), "FM"[i % 2], "ok") for i in range(9)]
NAMES = ("age", "sex", "note")


def test_there_are_many_awkward_values() -> None:
    assert len(AWKWARD) >= 300


def as_text(value: object) -> str:
    try:
        return value.decode("latin-1") if isinstance(value, bytes) else str(value)
    except Exception:
        return "?"


def cells(source, universe=UNIVERSE, **how) -> np.ndarray:
    """Every row's cells; anything raised or warned is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batches = [np.column_stack(batch) for batch in code_batches(source, universe, **how)]
    return np.concatenate([np.zeros((0, len(universe.names)), int), *batches]).astype(int)


EXPECTED = np.array([[i % 10, i % 2] for i in range(9)])


def assert_others_as_before(found: np.ndarray, place: int, what: object) -> None:
    assert len(found) == len(ROWS), what
    others = np.arange(len(ROWS)) != place
    assert np.array_equal(found[others], EXPECTED[others]), what


def replaced(value: object, place: int, columns: tuple[int, ...]) -> list[list[object]]:
    """The table with one row that holds the value in these columns."""
    rows: list[list[object]] = [list(row) for row in ROWS]
    for column in columns:
        rows[place][column] = value
    return rows


# A value is tried in turn at the first, a middle and the last row: in all columns at once, and in `make audit` in each alone.
EVERYWHERE = list(itertools.product((0, 4, 8), ((0,), (1,), (2,))))


@pytest.fixture(params=["all columns", pytest.param("each column", marks=pytest.mark.audit)])
def tried(request) -> list[tuple[object, int, tuple[int, ...]]]:
    if request.param == "all columns":
        return [(value, (0, 4, 8)[i % 3], (0, 1, 2)) for i, value in enumerate(AWKWARD)]
    return [(value, *EVERYWHERE[(i + k) % 9]) for i, value in enumerate(AWKWARD) for k in (0, 4, 8)]


@pytest.mark.parametrize(("quoting", "end"), [(csv.QUOTE_MINIMAL, "\n"), (csv.QUOTE_ALL, "\r\n")])
def test_no_row_of_a_csv_file_as_written_changes_another(quoting, end, tried, tmp_path) -> None:
    path = tmp_path / "t.csv"
    for value, place, columns in tried:
        with open(path, "w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            writer = csv.writer(file, quoting=quoting, lineterminator=end)
            writer.writerows([NAMES, *replaced(as_text(value).replace("\0", "0"), place, columns)])
        assert_others_as_before(cells(path), place, value)


def raw_lines() -> list[bytes]:
    lines = []
    for value in AWKWARD:
        raw = value if isinstance(value, bytes) else as_text(value).encode("utf-8", "surrogatepass")
        for line in {part for part in raw.split(b"\n") if len(part) < 5000}:
            lines += [line, line + b",F,ok", b"3," + line + b",ok", b"3,F," + line]
    return list(dict.fromkeys(lines))


@pytest.mark.parametrize("company", ["plain", "all quoted"])
def test_no_line_of_a_csv_file_changes_another(company, tmp_path) -> None:
    path = tmp_path / "t.csv"
    written = [",".join(f'"{v}"' if company == "all quoted" else v for v in row).encode() for row in ROWS]
    for i, line in enumerate(raw_lines()):
        if company == "all quoted" and b'"' not in line:
            continue
        place = (0, 4, 8)[i % 3]
        lines = [*written[:place], line, *written[place + 1 :]]
        path.write_bytes(b"\n".join([b"age,sex,note", *lines]) + b"\n")
        assert_others_as_before(cells(path), place, line)


def test_no_row_of_a_pandas_frame_changes_another(tried) -> None:
    for value, place, columns in tried:
        rows = replaced(value, place, columns)
        frame = pd.DataFrame({n: pd.Series([r[i] for r in rows], dtype=object) for i, n in enumerate(NAMES)})
        assert_others_as_before(cells(frame), place, value)


def test_no_row_changes_another_through_the_type_that_pandas_infers() -> None:
    universe = hr.Universe(age=hr.Integers(0, 9), sex=hr.Categories(["0", "1", "2"], other=True))
    inferred = set()
    for value in [*NUMBERS, None, pd.NaT, pd.NA, datetime.date(2020, 1, 1), b"3", [3]]:
        for column in (0, 1, 2):
            rows = [[i % 10, i % 2, 1] for i in range(9)]
            rows[4][column] = value
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                frame = pd.DataFrame({n: [r[i] for r in rows] for i, n in enumerate(NAMES)})
            inferred |= {str(dtype) for dtype in frame.dtypes}
            assert_others_as_before(cells(frame, universe), 4, value)
    assert {"int64", "float64", "object"} <= inferred


@pytest.mark.parametrize("kind", ["polars", "polars objects", "arrow", "arrow bytes", "parquet"])
def test_no_row_of_a_typed_frame_or_file_changes_another(kind, tried, tmp_path) -> None:
    for i, (value, place, where) in enumerate(tried):
        rows = replaced(value if kind == "polars objects" else as_text(value), place, where)
        columns = {n: [r[i] for r in rows] for i, n in enumerate(NAMES)}
        if kind == "polars objects":
            source = pl.DataFrame([pl.Series(n, v, dtype=pl.Object) for n, v in columns.items()])
        else:
            encoded = {n: [v.encode("utf-8", "surrogatepass") for v in c] for n, c in columns.items()}
            source = pa.table({n: pa.array(c, pa.binary()) for n, c in encoded.items()})
            if kind != "arrow bytes":
                proper = {n: [v.decode("utf-8", "replace") for v in c] for n, c in encoded.items()}
                source = pa.table({n: pa.array(c, (pa.string(), pa.large_string())[i % 2]) for n, c in proper.items()})
            if kind == "polars":
                source = pl.from_arrow(source) if i % 2 else pl.from_arrow(source).lazy()
            if kind == "parquet":
                if i % 3:
                    continue
                pq.write_table(source, tmp_path / "t.parquet")
                source = tmp_path / "t.parquet"
        assert_others_as_before(cells(source), place, value)


def for_sqlite(value: object) -> object:
    if value is None or isinstance(value, float | bytes) or (type(value) is int and -(2**63) <= value < 2**63):
        return value
    return as_text(value).encode("utf-8", "surrogatepass")  # as the bytes of a text


@pytest.mark.parametrize("through", ["url", "ibis"])
def test_no_row_of_a_sqlite_table_changes_another(through, tried, tmp_path) -> None:
    path = tmp_path / "t.db"
    asked = tried[:: 1 if through == "url" else 8]
    with open_sqlite(path) as db:
        db.execute("BEGIN")
        for i, (value, place, columns) in enumerate(asked):
            db.execute(f'CREATE TABLE "t{i}" (age INTEGER, sex TEXT, note REAL)')
            rows = [[for_sqlite(v) if k in columns and p == place else v for k, v in enumerate(row)]
                    for p, row in enumerate(replaced(value, place, columns))]  # fmt: skip
            marks = ["CAST(? AS TEXT)" if k in columns and i % 2 else "?" for k in range(3)]
            for part, how in ((rows[:place], "???"), (rows[place : place + 1], marks), (rows[place + 1 :], "???")):
                db.executemany(f'INSERT INTO "t{i}" VALUES ({", ".join(how)})', part)
    engine = ibis.sqlite.connect(path) if through == "ibis" else None
    for i, (value, place, _) in enumerate(asked):
        if engine is not None:
            assert_others_as_before(cells(engine.table(f"t{i}")), place, value)
        else:
            assert_others_as_before(cells(f"sqlite://{path}", table=f"t{i}"), place, value)


@pytest.mark.filterwarnings("ignore")
def test_no_row_of_a_duckdb_table_changes_another(tried) -> None:
    engine = ibis.duckdb.connect()
    for value, place, columns in tried[::2]:
        text = as_text(value).encode("utf-8", "replace").decode()
        rows = replaced(text, place, columns)
        given_rows = pa.table({n: pa.array([r[i] for r in rows], pa.string()) for i, n in enumerate(NAMES)})
        engine.con.register("given_rows", given_rows)
        engine.con.execute("CREATE OR REPLACE TABLE t AS FROM given_rows")
        found = np.concatenate([np.column_stack(batch) for batch in code_batches(engine.table("t"), UNIVERSE)])
        assert_others_as_before(found, place, value)


@pytest.mark.filterwarnings("ignore")
def test_every_type_of_a_database_has_cells(tmp_path) -> None:
    import duckdb

    columns = [
        "'infinity'::TIMESTAMP", "'-infinity'::DATE", "DATE '5000-01-01'", "TIMESTAMPTZ '2020-01-01 00:00:00+00'", "TIME '01:02:03'",
        "INTERVAL 1 MONTH", "170141183460469231731687303715884105727::HUGEINT", "18446744073709551615::UBIGINT", "'\\xFF'::BLOB",
        "[1, 2]", "{'a': 1}", "MAP {'a': 1}", "UUID '00000000-0000-0000-0000-000000000000'", "1.50::DECIMAL(38, 2)", "'[1]'::JSON",
        "'inf'::DOUBLE", "'nan'::FLOAT", "'101'::BIT", "NULL::INTEGER", "TRUE", "'a'::ENUM ('a', 'b')", "[1, 2]::INTEGER[2]",
    ]  # fmt: skip
    with duckdb.connect(str(tmp_path / "t.duckdb")) as db:
        db.execute(f"CREATE TABLE t AS SELECT {', '.join(f'{c} AS c{i}' for i, c in enumerate(columns))}")
    kinds = [column.kind for column in readers.open_batches(f"duckdb://{tmp_path}/t.duckdb", "t", None).types]
    for attribute in (
        hr.Integers(0, 3),
        hr.Range(0, 3, bins=2),
        hr.Dates("2020-01-01", "2020-12-31", "month"),
        hr.Flag(),
        hr.Categories(["a", "1.50", True, "2020-01-01"], other=True),
    ):
        universe = hr.Universe(
            {f"c{i}": attribute for i, kind in enumerate(kinds) if schema.mismatch(attribute, kind) is None}
        )
        assert len(universe.names) >= 10
        data = Table(f"duckdb://{tmp_path}/t.duckdb", universe, table="t")
        assert data.rows == 1


TYPED = [
    pa.array([2**63 + 5, None], pa.uint64()), pa.array([decimal.Decimal(10) ** 37, None], pa.decimal128(38, 0)),
    pa.array([decimal.Decimal(10) ** 60, None], pa.decimal256(70, 2)), pa.array([2**62, None]).cast(pa.timestamp("s")),
    pa.array([1, None], pa.timestamp("ns")), pa.array([1, None], pa.date32()), pa.array([2**31 - 1, None], pa.int32()).cast(pa.date32()),
    pa.array([2**62, None]).cast(pa.duration("s")), pa.array([1, None], pa.time64("ns")), pa.array([1.5, None], pa.float16()),
    pa.array([[1], None]), pa.array([{"a": 1}, None]), pa.array([None, None]), pa.array(["a", None]).dictionary_encode(),
    pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), pa.array(["a", None], pa.string_view()), pa.array([b"a", None], pa.binary(1)),
    pa.array(["1", None], pa.large_string()), pa.array([True, None]), pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
    pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())), pa.RunEndEncodedArray.from_arrays([2], ["a"]),
    pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.uint8()), pa.array(["a", None]))[:2],
    pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"\xff1")]),
]  # fmt: skip


@pytest.mark.parametrize("array", TYPED, ids=lambda array: str(array.type))
def test_every_type_of_arrow_has_cells_and_chunks_change_nothing(array) -> None:
    for attribute in (
        hr.Integers(0, 3),
        hr.Range(0, 3, bins=2),
        hr.Flag(),
        hr.Dates("2020-01-01", "2020-12-31", "month"),
        hr.Categories(["a", None, "1"], other=True),
    ):
        universe = hr.Universe(a=attribute)
        if schema.mismatch(attribute, schema.of_arrow(array.type).kind) is not None:
            assert len(Coder(attribute).cells(array)) == 2
            continue
        whole = cells(pa.table({"a": array}), universe)
        parts = cells(pa.table({"a": pa.chunked_array([array[:1], array[1:], array[:0]])}), universe)
        assert len(whole) == 2
        assert np.array_equal(whole, parts)


ATTRIBUTES = [
    hr.Integers(0, 9), hr.Integers(-5, 5, other=True), hr.Integers(2**31 - 6, 2**31 + 5), hr.Integers(2**53 - 3, 2**53 + 3),
    hr.Integers(2**63 - 5, 2**63 + 2, other=True), hr.Range(0, 10, bins=4), hr.Range(edges=[-1, 0.1, 0.7, 2**53], other=True), hr.Flag(),
    hr.Categories(["F", "M"]), hr.Categories(["1", "2", "3"], other=True), hr.Categories([1, 2.5, 3], other=True),
    hr.Categories([True, False], other=True), hr.Categories(["", "3", None], other=True), hr.Categories(["true", "False", "01", "1"]),
    hr.Integers(0, 9, missing=True), hr.Integers(-5, 5, other=True, missing=True), hr.Range(0, 10, bins=4, missing=True),
    hr.Flag(missing=True), hr.Flag(other=True, missing=True), hr.Flag(true=[3, "ok"], false="no"), hr.Flag(true="F", other=True),
    hr.Categories(["F", "M"], case="ignore", other=True), hr.Categories(["F", "F "], missing=True), hr.Categories(["f"], spaces="exact"),
    hr.Categories([" 3", "yes"], other=True, missing=True), hr.Dates("2020-01-01", "2020-12-31", "month"),
    hr.Dates("1960-01-01", "2019-12-31", "year", other=True), hr.Dates("1970-01-01", "2300-12-31", "year", missing=True, other=True),
]  # fmt: skip


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda a: f"{type(a).__name__} of {a.labels[0]!r}")
def test_a_column_is_coded_as_its_values_are_one_by_one(attribute) -> None:
    coder = Coder(attribute)
    written = [as_text(value).encode("utf-8", "surrogatepass") for value in AWKWARD]
    expected = [coder.cell(text) for text in written]
    assert coder.cells(pa.array(written, pa.large_binary())).tolist() == expected
    assert coder.cells(pa.array(written, pa.binary())[3:]).tolist() == expected[3:]
    assert coder.cells(coding._objects(AWKWARD)).tolist() == [coder.cell(value) for value in AWKWARD]
    wholes = [2**k + j for k in (0, 1, 2, 3, 31, 52, 53, 62) for j in (-2, -1, 0, 1, 2)]
    for dtype in (np.int64, np.float64, np.uint64, np.int8, np.float32):
        few = np.array([w for w in wholes if dtype not in (np.uint64, np.int8) or 0 <= w < 128], dtype)
        assert coder.cells(few).tolist() == [coder.cell(v) for v in few]
    huge = np.array([3, 2**63 - 4, 2**63 + 1, 2**64 - 1], np.uint64)
    assert coder.cells(huge).tolist() == [coder.cell(v) for v in huge]
    reals = np.array([0.1, 0.7, -0.0, 9.99, 2.5, np.nan, np.inf, -np.inf, 1e300, 5e-324, 6.5])
    assert coder.cells(reals).tolist() == [coder.cell(v) for v in reals]
    assert coder.cells(pa.array(reals)).tolist() == [coder.cell(v) for v in reals]
    spelled = [repr(float(v)).encode() for v in reals if np.isfinite(v)]
    assert coder.cells(pa.array(spelled)).tolist() == [coder.cell(v) for v in reals if np.isfinite(v)]
    assert all(0 <= coder.cell(value) < attribute.size for value in AWKWARD)


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False), st.sampled_from(["{!r}", "{:e}", "{:.3f}", "{:g}", "+{!r}", " {!r} "]))
def test_a_number_is_the_same_from_its_text_in_any_spelling(value, spelling) -> None:
    text = spelling.format(value)
    number = coding.number_of(text)
    exact = float(text) if not text.strip().startswith("+-") else None
    assert (None if number is None else float(number)) == exact
    if exact is not None:
        coder = Coder(hr.Range(-(10.0**6), 10.0**6, bins=1000, other=True))
        assert coder.cells(pa.array([text])).tolist() == [coder.cell(exact)]


def test_one_missing_value_does_not_change_what_the_others_mean() -> None:
    universe = hr.Universe(a=hr.Categories(["1", "2", "3"], other=True))
    whole = cells(pd.DataFrame({"a": [2, 2, 3]}), universe).ravel().tolist()
    gap = cells(pd.DataFrame({"a": [2, None, 3]}), universe).ravel().tolist()  # floats now
    half = cells(pd.DataFrame({"a": [2, 2.5, 3]}), universe).ravel().tolist()
    assert (whole, gap, half) == ([1, 1, 2], [1, 3, 2], [1, 3, 2])


@pytest.mark.parametrize("low", [2**31 - 6, 4_000_000_000, 2**53 - 3, 2**62, 2**63 - 4, -(2**63) + 1])
def test_whole_numbers_are_exact_however_large(low) -> None:
    universe = hr.Universe(a=hr.Integers(low, low + 7))
    values = [low + k for k in (-1, 0, 1, 4, 7, 8)]
    expected = [0, 0, 1, 4, 7, 7]
    for source in (
        pd.DataFrame({"a": pd.Series(values, dtype=object)}),
        pd.DataFrame({"a": [str(v) for v in values]}),
        pd.DataFrame({"a": [decimal.Decimal(v) for v in values]}),
    ):
        assert cells(source, universe).ravel().tolist() == expected


def test_labels_are_found_by_text_then_by_number() -> None:
    def found(labels, values) -> list[int]:
        return [Coder(hr.Categories(labels, other=True)).cell(v) for v in values]

    assert found(["1", "2"], ["1", 1, 1.0, "1.0", "01", True, " 1", "x", None, ""]) == [0, 0, 0, 0, 0, 0, 0, 2, 2, 2]
    assert found(["01", "1"], ["1", "01", 1, "1.0", "001"]) == [1, 0, 1, 2, 2]  # the same number: only texts decide
    assert found([1, 2.5], ["1", "2.50", 2.5, "1e0", decimal.Decimal("2.5")]) == [0, 1, 1, 0, 1]
    assert found([True, False], [True, "yes", " Y ", 1, "1.0", 0, "FALSE", "off", 2]) == [0, 0, 0, 0, 0, 1, 1, 2, 2]
    assert found(["true", "x"], [True, False, "True"]) == [0, 2, 2]
    assert found(["True", "False"], [True, False, "True"]) == [0, 1, 0]
    assert found([None, "a"], [None, float("nan"), pd.NaT, pd.NA, "", "a", "nan"]) == [0, 0, 0, 0, 0, 1, 2]
    assert found(["", "a"], ["", None]) == [0, 2]
    assert found(["inf"], ["inf", float("inf"), "Infinity", "1e400"]) == [0, 0, 1, 1]


SAME = pd.DataFrame(
    {
        "whole": [1, 2, 3, 2**40, -7],
        "real": [0.1, 0.7, -2.5, 1e-7, 12345.678],
        "text": ["F", "M", "é", "a,b", 'say "x"\nand y'],
        "code": [1, 2, 1, 2, 3],
        "truth": [True, False, True, True, False],
        "gap": [1.0, None, 3.0, 2.0, None],
    }
)
SAME_UNIVERSE = hr.Universe(
    whole=hr.Integers(0, 5, other=True),
    real=hr.Range(edges=[0, 0.1, 0.7, 3], other=True),
    text=hr.Categories(["F", "M", "é", "a,b", 'say "x"\nand y'], other=True),
    code=hr.Categories(["1", "2"], other=True),
    truth=hr.Categories([True, False], other=True),
    gap=hr.Categories(["1", "2", "3"], other=True),
)


@pytest.mark.filterwarnings("ignore")
def test_the_same_table_has_the_same_cells_from_every_source(tmp_path) -> None:
    import duckdb

    arrow = pa.Table.from_pandas(SAME, preserve_index=False)
    SAME.to_csv(tmp_path / "t.csv", index=False)
    SAME.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    SAME.to_csv(tmp_path / "wide.csv", index=False, sep=";", encoding="utf-16")
    SAME.to_csv(tmp_path / "old.csv.gz", index=False, quotechar="'", encoding="latin-1", header=False)
    arrow_parquet = tmp_path / "t.parquet"
    SAME.to_parquet(arrow_parquet)
    with duckdb.connect(str(tmp_path / "t.duckdb")) as db:
        db.register("frame", arrow)
        db.execute("CREATE TABLE t AS SELECT * FROM frame")
    with open_sqlite(tmp_path / "t.db") as db:
        SAME.to_sql("t", db, index=False)
    sources = {
        "csv": (tmp_path / "t.csv", {}),
        "tsv": (tmp_path / "t.tsv", {}),
        "utf-16": (tmp_path / "wide.csv", {"csv": Csv(delimiter=";", encoding="utf-16")}),
        "latin": (tmp_path / "old.csv.gz", {"csv": Csv(quote="'", encoding="latin-1", columns=list(SAME.columns))}),
        "parquet": (arrow_parquet, {}),
        "pandas": (SAME, {}),
        "pandas strings": (SAME.astype(str).replace("nan", None), {}),
        "pandas objects": (SAME.astype(object), {}),
        "pandas categories": (SAME.astype("category"), {}),
        "pandas nullable": (SAME.convert_dtypes(), {}),
        "polars": (pl.from_arrow(arrow), {}),
        "lazy": (pl.from_arrow(arrow).lazy(), {}),
        "arrow": (arrow, {}),
        "batch": (arrow.to_batches()[0], {}),
        "reader": (arrow.to_reader(), {}),
        "ibis": (ibis.memtable(SAME), {}),
        "duckdb": (f"duckdb://{tmp_path}/t.duckdb", {"table": "t"}),
        "sqlite": (f"sqlite://{tmp_path}/t.db", {"table": "t"}),
    }
    expected = [[1, 1, 0, 0, 0, 0], [2, 2, 1, 1, 1, 3], [3, 3, 2, 0, 0, 2], [6, 0, 3, 1, 0, 1], [6, 3, 4, 2, 1, 3]]
    for kind, (source, how) in sources.items():
        assert coded_rows(source, SAME_UNIVERSE, **how).tolist() == expected, kind


# the dialect of CSV


@pytest.fixture(scope="session")
def path(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("csv") / "t.csv"


def fields_of(path: Path, dialect: Csv, columns: int) -> list[list[str]]:
    file = CsvFile(path, dialect)
    found: list[list[str]] = []
    for batch in file.batches(range(columns)):
        found += [
            list(row)
            for row in zip(*([None if v is None else v.decode() for v in c.to_pylist()] for c in batch), strict=True)
        ]
    return found


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.lists(st.text(alphabet="ab\",;\n\r 'é#", max_size=6), min_size=3, max_size=3), min_size=1, max_size=6),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_the_output_of_a_csv_writer_is_read_exactly(path, rows, quoting) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=quoting).writerows([NAMES, *rows])
    found = fields_of(path, Csv(), 3)
    assert [[v or "" for v in row] for row in found] == rows


def plain(value: str) -> bool:
    """Return True if the quoted value cannot end a quote that another line left open."""
    return not value.lstrip('"').startswith((",", "\n", "\r"))


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 3).flatmap(
        lambda width: st.lists(
            st.lists(st.text(alphabet='ab",\n\r ', max_size=4).filter(plain), min_size=width, max_size=width),
            min_size=1,
            max_size=5,
        )
    ),
    st.text(alphabet='ab"",,\r #', max_size=10),
    st.integers(0, 4),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_no_line_changes_a_record_that_a_writer_wrote(path, company, line, place, quoting) -> None:
    def written(rows: list[list[str]]) -> str:
        text = io.StringIO()
        csv.writer(text, quoting=quoting).writerows(rows)
        return text.getvalue()

    place, width = min(place, len(company)), len(company[0])
    path.write_text(written(company[:place]) + line + "\n" + written(company[place:]), encoding="utf-8", newline="")
    found = [[v or "" for v in row] for row in fields_of(path, Csv(columns=list("abc"[:width])), width)]
    assert len(found) == len(company) + 1
    del found[place]
    assert found == company


@settings(max_examples=40, deadline=None)
@given(st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"")), min_size=1, max_size=8))
def test_every_line_is_a_record_where_records_have_one_line(path, lines) -> None:
    single = [Csv(columns=["a", "b"], multiline=False), Csv(columns=["a", "b"], quote=None)]
    for dialect in single:
        alone = []
        for line in lines:
            path.write_bytes(line + b"\n")
            (record,) = (
                pa.table(list(b), names=["a", "b"]).to_pylist() for b in CsvFile(path, dialect).batches([0, 1])
            )
            alone += record
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        (together,) = (pa.table(list(b), names=["a", "b"]).to_pylist() for b in CsvFile(path, dialect).batches([0, 1]))
        assert together == alone


@pytest.mark.parametrize(
    ("content", "records"),
    [
        ("a\n1\n2\n", ["1", "2"]),
        ("a\n1\n2", ["1", "2"]),
        ("a\r\n1\r\n2\r\n", ["1", "2"]),
        ("a\n\n1\n\n", ["", "1", ""]),
        ("a", []),
        ("a\n", []),
        ("\ufeffa\n1\n", ["1"]),
        ('"a"\n"1"\n', ["1"]),
        ('a\n"x\ny"\n', ["x\ny"]),
        ('a\n"x\ny', ['"x', "y"]),
        ('a\n"x"y"\n2\n', ['"x"y"', "2"]),
        ("a\n1,2,3\n", ["1"]),
        ('a,b\n"x\ny"\n', ['"x', 'y"']),
        ('a,b\n"x\ny",2\n', ["x\ny"]),
    ],
)
def test_a_record_is_a_line_and_the_last_newline_ends_the_last_record(content, records, tmp_path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content, encoding="utf-8", newline="")
    assert [row[0] for row in fields_of(path, Csv(), 1)] == records
    assert CsvFile(path, Csv()).columns[0] == "a"


def test_a_short_line_lacks_values_and_a_long_one_has_too_many(tmp_path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n1\n1,2,3,4,5\n\n1,\n")
    assert fields_of(path, Csv(), 3) == [["1", None, None], ["1", "2", "3"], ["", None, None], ["1", "", None]]


@pytest.mark.parametrize(
    "company",
    ['F,",x",ok', '"F","\n",ok', "F,M,ok", '"F","M","ok"', '"""F""",M,""', ',,""', "6',M,ok"],
)
def test_a_quote_left_open_is_not_closed_by_what_is_well_formed_in_the_next_line(company, tmp_path) -> None:
    path = tmp_path / "t.csv"
    expected = next(csv.reader(io.StringIO(company)))
    for line in ('"ok', '"', '""",', '"a""'):
        path.write_text(f"a,b,c\n{line}\n{company}\n", newline="")
        found = [[v or "" for v in row] for row in fields_of(path, Csv(), 3)]
        assert len(found) == 2
        assert found[1] == expected


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64])
def test_the_ends_of_file_blocks_change_nothing(block, tmp_path, monkeypatch) -> None:
    rows = [["1", "a\r\nb", 'say "x"'], ["2", "", '"'], ["3", "\n", ",\r"], ["4", "é日😀", "x" * 50]]
    path = tmp_path / "t.csv"
    for encoding in ("utf-8", "utf-16", "gb18030"):
        with open(path, "w", encoding=encoding, newline="") as file:
            csv.writer(file).writerows([NAMES, *rows])
        monkeypatch.setattr("hedgerow.data.csv_file.BLOCK", block)
        assert fields_of(path, Csv(encoding=encoding), 3) == rows


def test_a_field_of_many_megabytes_concerns_its_row_alone(tmp_path) -> None:
    path = tmp_path / "t.csv"
    for long in (
        "x" * 3_000_000,
        "x" * (LONGEST_RECORD + 10),
        '"' + "x\n" * 2_000_000 + '"',
        '"' + "x" * (LONGEST_RECORD + 9),
    ):
        with open(path, "w") as file:
            file.write("age,sex,note\n" + "".join(f"{i},F,ok\n" for i in range(5)) + f"7,M,{long}\n9,F,ok\n")
        assert cells(path).tolist() == [*([i, 0] for i in range(5)), [7, 1], [9, 0]]


def test_a_quote_left_open_at_the_end_of_many_lines_takes_no_other_line(tmp_path) -> None:
    path = tmp_path / "t.csv"
    lines = [f'{i % 10},{"FM"[i % 2]},"ok' for i in range(20_000)]
    path.write_text("\n".join(["age,sex,note", *lines]))
    assert cells(path).tolist() == [[i % 10, i % 2] for i in range(20_000)]


@pytest.mark.parametrize(
    "special",
    [
        "#3,F,ok",
        "3;F;ok",
        'N/A,F,"',
        "NULL,F,ok",
        "3y,F,ok",
        '3,F,"ok',
        '3,F,"a\\"b"',
        "3,F,Jos\xe9",
        "",
        "3",
        '"3,5",F,ok',
        "3,F,a\rb",
    ],
)
@pytest.mark.parametrize("place", [0, 1000, 1999])
def test_a_strange_line_leaves_a_file_of_thousands_as_it_was(special, place, tmp_path) -> None:
    path = tmp_path / "t.csv"
    lines = [f"{i % 10},{'FM'[i % 2]},ok".encode() for i in range(2000)]
    lines[place] = special.encode("latin-1")
    path.write_bytes(b"\n".join([b"age,sex,note", *lines]) + b"\n")
    data = Table(path, UNIVERSE)
    assert data.rows == 2000
    others = np.arange(2000) != place
    assert np.array_equal(coded_rows(path, UNIVERSE)[others], np.array([[i % 10, i % 2] for i in range(2000)])[others])


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"delimiter": ",,"}, "The delimiter must be one ASCII character"),
        ({"delimiter": ""}, "The delimiter must be one ASCII character"),
        ({"delimiter": "\n"}, "The delimiter must be one ASCII character"),
        ({"delimiter": "§"}, "The delimiter must be one ASCII character"),
        ({"quote": "''"}, "The quote must be one ASCII character"),
        ({"quote": ","}, "must differ"),
        ({"encoding": "klingon"}, "The encoding must be"),
        ({"encoding": "utf-7"}, "The encoding must be"),
        ({"encoding": "iso2022_jp"}, "The encoding must be"),
        ({"encoding": "base64"}, "The encoding must be"),
        ({"encoding": None}, "The encoding must be"),
        ({"columns": "ab"}, "columns must be"),
        ({"columns": [1]}, "columns must be"),
    ],
)
def test_a_bad_dialect_is_refused_by_name(bad, words) -> None:
    with pytest.raises(InvalidInput, match=words):
        Csv(**bad)


# what is refused, and how


@pytest.mark.filterwarnings("ignore")
def test_a_database_file_is_found_below_the_working_folder_as_in_the_url_of_a_ledger(tmp_path, monkeypatch) -> None:
    import duckdb

    monkeypatch.chdir(tmp_path)
    universe = hr.Universe(age=hr.Integers(0, 9))
    with open_sqlite(tmp_path / "t.db") as db:
        db.execute("CREATE TABLE t (age)")
        db.execute("INSERT INTO t VALUES (3)")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as db:
        db.execute("CREATE TABLE t AS SELECT 3 AS age")
    for url in ("sqlite:///t.db", f"sqlite:///{tmp_path}/t.db", "duckdb:///t.duckdb", f"duckdb://{tmp_path}/t.duckdb"):
        assert Table(url, universe, table="t").rows == 1


@pytest.mark.filterwarnings("ignore")
def test_public_failures_are_named(tmp_path) -> None:
    with open_sqlite(tmp_path / "t.db") as db:
        db.execute("CREATE TABLE t (age, sex)")
    frame = pd.DataFrame([[1, 2, "F"]], columns=["age", "age", "sex"])
    (tmp_path / "t.csv").write_text("age;sex\n1;F\n")
    (tmp_path / "dir.csv").mkdir()
    import duckdb

    duckdb.connect(str(tmp_path / "t.duckdb")).close()
    for source, how, words in [
        (frame, {}, "each declared column once. Found 'age' more than once"),
        (f"sqlite://{tmp_path}/t.db", {"table": "u"}, "must have the table. Found no 'u'"),
        (f"duckdb://{tmp_path}/t.duckdb", {"table": "u"}, "must have the table. Found no 'u'"),
        (f"sqlite://{tmp_path}/none.db", {"table": "t"}, "The database file must exist"),
        (f"duckdb://{tmp_path}/none.duckdb", {"table": "t"}, "The database file must exist"),
        (tmp_path / "t.csv", {}, "Found no 'age', 'sex'"),
        (tmp_path / "dir.csv", {}, "must be a file"),
        (frame, {"csv": Csv()}, "csv must come with the path"),
        (tmp_path / "t.csv", {"csv": ","}, "csv must be an hr.Csv"),
    ]:
        with pytest.raises(InvalidInput) as refused:
            Table(source, UNIVERSE, **how)
        assert words in str(refused.value)
        assert refused.value.__context__ is None
    assert Table(tmp_path / "t.csv", UNIVERSE, csv=Csv(delimiter=";")).rows == 1


@pytest.mark.filterwarnings("ignore")
def test_no_refusal_contains_the_message_of_an_engine_about_a_row(tmp_path) -> None:
    broken = tmp_path / "t.parquet"
    broken.write_bytes(b"PAR1 SECRET-4711 PAR1")
    half = tmp_path / "t.csv.gz"
    half.write_bytes(gzip.compress(b"age,sex\n" + b"4711,SECRET\n" * 100_000)[:-200])
    engine = ibis.duckdb.connect()
    engine.create_table("t", pa.table({"age": ["SECRET-4711"], "sex": ["F"]}))
    failing = engine.table("t").mutate(age=ibis._.age.cast("int64"))
    scanned = pl.LazyFrame({"age": ["SECRET-4711"], "sex": ["F"]}).with_columns(pl.col("age").cast(pl.Int64))
    for source, how in [(broken, {}), (half, {}), (failing, {}), (scanned, {}), ("nosuch://SECRET", {"table": "t"})]:
        with pytest.raises(DataUnavailable) as refused:
            Table(source, UNIVERSE, **how)
        assert "SECRET" not in str(refused.value)
        assert refused.value.__context__ is None
        assert refused.value.__cause__ is None


def test_columns_are_named_by_their_text(tmp_path) -> None:
    frame = pd.DataFrame({1: [3, 4], None: ["F", "M"], ("a", 2): [0, 0]})
    universe = hr.Universe({"1": hr.Integers(0, 9), "None": hr.Categories(["F", "M"])})
    assert cells(frame, universe).tolist() == [[3, 0], [4, 1]]
    dotted = pd.DataFrame({"a.b": [1, 2], "a": [3, 4], 'say "x"': [5, 6], "^a.*$": [7, 8]})
    dotted.to_parquet(tmp_path / "t.parquet")
    with open_sqlite(tmp_path / "t.db") as db:
        dotted.to_sql("t", db, index=False)
    named = hr.Universe({name: hr.Integers(0, 9) for name in ("a", "a.b", 'say "x"', "^a.*$")})
    for source, how in [
        (tmp_path / "t.parquet", {}),
        (pl.from_pandas(dotted), {}),
        (f"sqlite://{tmp_path}/t.db", {"table": "t"}),
    ]:
        assert cells(source, named, **how).tolist() == [[3, 1, 5, 7], [4, 2, 6, 8]]


def test_the_index_of_a_frame_changes_nothing() -> None:
    frame = pd.DataFrame({"age": [1, 2, 3], "sex": ["F", "M", "F"]}, index=[2.0, 0.0, 2.0])
    assert cells(frame).tolist() == [[1, 0], [2, 1], [3, 0]]


def test_a_session_opens_on_a_declared_dialect(tmp_path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(io.StringIO("age|sex\n" + "3|F\n" * 50).getvalue().encode("utf-16"))
    how = {"universe": UNIVERSE, "budget": hr.Budget(epsilon=1, delta=1e-6), "csv": hr.Csv("|", encoding="utf-16")}
    assert hr.open(path, **how).rows == 50
    assert hr.release(path, **how).rows == 50


def test_a_database_is_a_snapshot(tmp_path) -> None:
    with open_sqlite(tmp_path / "t.db") as db:
        db.execute("CREATE TABLE t (age, sex)")
        db.execute("INSERT INTO t VALUES (3, 'F')")
    data = Table(f"sqlite://{tmp_path}/t.db", UNIVERSE, table="t")
    with open_sqlite(tmp_path / "t.db") as db:
        db.execute("DELETE FROM t")
    assert data.marginal(["age"]).tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]


def test_a_table_without_rows_opens(tmp_path) -> None:
    (tmp_path / "t.csv").write_text("age,sex\n")
    empty = pa.table({"age": pa.array([], pa.string()), "sex": pa.array([], pa.large_string())})
    pq.write_table(empty, tmp_path / "t.parquet")
    frames = [empty, empty.to_pandas(), pl.from_arrow(empty), pd.DataFrame({"age": [], "sex": []}, dtype=object)]
    for source in [tmp_path / "t.csv", tmp_path / "t.parquet", *frames]:
        data = Table(source, UNIVERSE)
        assert data.rows == 0
        assert coded_rows(source, UNIVERSE).shape == (0, 2)
