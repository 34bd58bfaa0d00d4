"""The store of raw values: every source gives the same rows, only its owner can read it, and it is reused while it fits."""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import stat
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from awkward_values import AWKWARD
from sqlite_file import open_sqlite

import hedgerow as hr
from hedgerow.data import row_store as store
from hedgerow.data.coding import meaning, numbers_of, texts_of
from hedgerow.data.row_store import columns_of, in_memory, row_store
from hedgerow.errors import DataUnavailable, InvalidInput

COLUMNS = {"age": float, "smoker": bool, "city": str}
FRAME = pd.DataFrame(
    {
        "age": [37.25, 40.0, math.nan, -3.0],
        "smoker": [True, False, False, True],
        "city": ["Zürich", "", "a,b", "x" * 300],
        "unused": [1, 2, 3, 4],
    }
)
ALL = np.arange(4)


def sources(folder: Path) -> dict[str, tuple[object, dict]]:
    FRAME.to_csv(folder / "t.csv", index=False)
    FRAME.to_parquet(folder / "t.parquet")
    with open_sqlite(folder / "t.db") as database:
        FRAME.to_sql("people", database, index=False)
    table = pa.Table.from_pandas(FRAME)
    return {
        "pandas": (FRAME, {}),
        "polars": (pl.from_pandas(FRAME), {}),
        "lazy": (pl.from_pandas(FRAME).lazy(), {}),
        "arrow": (table, {}),
        "reader": (pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=3)), {}),
        "csv": (folder / "t.csv", {}),
        "parquet": (str(folder / "t.parquet"), {}),
        "sqlite": (f"sqlite://{folder / 't.db'}", {"table": "people"}),
    }


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "arrow", "reader", "csv", "parquet", "sqlite"])
def test_every_source_has_the_same_raw_values(kind, tmp_path) -> None:
    source, options = sources(tmp_path)[kind]
    rows = row_store(source, COLUMNS, tmp_path / "rows", **options)
    age, smoker, city = rows.take(ALL, ("age", "smoker", "city"))
    assert rows.rows == 4
    assert np.array_equal(age, FRAME["age"], equal_nan=True)
    assert smoker.tolist() == FRAME["smoker"].tolist() and smoker.dtype == bool
    assert city.tolist() == FRAME["city"].tolist()
    city, age = rows.take(np.array([3, 0, 0]), ("city", "age"))
    assert city.tolist() == ["x" * 300, "Zürich", "Zürich"] and age.tolist() == [-3.0, 37.25, 37.25]


def test_a_value_has_the_number_and_the_text_that_it_has_alone() -> None:
    """Whatever others are in its column: no type of a column is found out from its values."""
    column = list(AWKWARD)
    numbers, texts = numbers_of(column), texts_of(column)
    for i, value in enumerate(column):
        text, number = meaning(value)
        expected = math.nan if number is None else _float(number)
        assert numbers[i] == expected or (math.isnan(numbers[i]) and math.isnan(expected))
        assert texts[i].as_py().decode("utf-8", "replace") == (text or "").encode("utf-8", "replace").decode()


def _float(number) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, 3]), pa.array([1.5, None, math.nan]), pa.array([True, None, False]), pa.array(["1", None, " 2.5e1 "]),
        pa.array(["7", "x", None]).dictionary_encode(), pa.chunked_array([[1, 2], [None]]), pd.Series(["3", None, "y"], dtype="category"),
        pd.Series([1, None, 2], dtype="Int64"), pl.Series([1, None, 300]), np.array([1, 2, 3], np.uint8), pa.array([b"\xff", b"2", None]),
    ],
    ids=lambda column: f"{type(column).__name__} {getattr(column, 'type', getattr(column, 'dtype', ''))}",
)  # fmt: skip
def test_a_column_has_what_its_values_have_one_by_one(column) -> None:
    values = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    numbers, texts = numbers_of(column), texts_of(column)
    for i, value in enumerate(values):
        assert np.array_equal([numbers[i]], numbers_of([value]), equal_nan=True)
        assert texts[i].as_py().decode("utf-8", "replace") == texts_of([value])[0].as_py().decode()


def test_a_universe_says_what_its_attributes_are() -> None:
    universe = hr.Universe(
        {
            "age": hr.Range(0, 90, bins=3),
            "kids": hr.Integers(0, 9),
            "smoker": hr.Flag(),
            "city": hr.Categories(["a", "b"]),
        }
    )
    assert columns_of(universe) == {"age": float, "kids": float, "smoker": bool, "city": str}


# Its owner alone can read it


def test_only_the_owner_can_open_the_folder_and_its_files(tmp_path) -> None:
    row_store(FRAME, COLUMNS, tmp_path / "rows")
    assert stat.S_IMODE((tmp_path / "rows").stat().st_mode) == 0o700
    files = list((tmp_path / "rows").iterdir())
    assert len(files) == 4 and {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def test_a_folder_that_others_can_open_or_that_holds_something_else_is_refused(tmp_path) -> None:
    row_store(FRAME, COLUMNS, tmp_path / "rows")
    (tmp_path / "rows").chmod(0o750)
    with pytest.raises(InvalidInput, match="nobody but its owner can open"):
        row_store(FRAME, COLUMNS, tmp_path / "rows")
    (tmp_path / "mine").mkdir(mode=0o700)
    (tmp_path / "mine" / "letters.txt").write_text("dear")
    with pytest.raises(InvalidInput, match="must be empty, or a store"):
        row_store(FRAME, COLUMNS, tmp_path / "mine")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    with pytest.raises(InvalidInput, match="nobody but its owner can open"):
        row_store(FRAME, COLUMNS, tmp_path / "link")
    assert (tmp_path / "mine" / "letters.txt").read_text() == "dear"


def test_rows_show_no_value_and_do_not_leave_their_process() -> None:
    rows = in_memory({"age": [37.25], "city": ["Zürich"]})
    assert repr(rows) == "Rows(age: float, city: str)"
    with pytest.raises(InvalidInput, match="must stay in their process"):
        pickle.dumps(rows)


def test_a_temporary_store_has_no_name_so_that_nothing_is_left_of_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = row_store(FRAME, COLUMNS)
    assert list(tmp_path.iterdir()) == []
    age, city = rows.take(ALL, ("age", "city"))
    assert np.array_equal(age, FRAME["age"], equal_nan=True) and city.tolist() == FRAME["city"].tolist()


def test_an_unreadable_source_leaves_nothing_behind_and_reveals_nothing(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    (tmp_path / "t.parquet").write_bytes(b"PAR1 secret PAR1")
    for folder in (None, tmp_path / "rows"):
        with pytest.raises(DataUnavailable) as raised:
            row_store(tmp_path / "t.parquet", COLUMNS, folder)
        assert "secret" not in str(raised.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.parquet", "temporary"]
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize("columns", [{}, {"age": int}, {"age": "float"}, {3: float}])
def test_a_declaration_of_other_types_is_refused(columns) -> None:
    with pytest.raises(InvalidInput, match="columns must be a mapping"):
        row_store(FRAME, columns)
    with pytest.raises(InvalidInput, match="The table must have every column"):
        row_store(FRAME, {"height": float})
    with pytest.raises(InvalidInput, match="Found no 'height'"):
        in_memory({"age": [1.0]}).take(np.arange(1), ("height",))


# Used again, or not


def written(folder: Path) -> int:
    return (folder / store.MANIFEST).stat().st_ino


def test_a_store_is_used_again_until_its_source_changes(tmp_path) -> None:
    path, folder = tmp_path / "t.csv", tmp_path / "rows"
    path.write_text("age\n31\n32\n")
    row_store(path, {"age": float}, folder)
    first = written(folder)
    row_store(path, {"age": float}, folder)
    assert written(folder) == first
    for text, later in (("age\n41\n42\n", 10**9), ("age\n51\n52\n53\n", 0)):  # as large and later; larger
        changed = path.stat().st_mtime_ns
        path.write_text(text)
        os.utime(path, ns=(changed, changed + later))
        ages = row_store(path, {"age": float}, folder).take(np.arange(2), ("age",))[0]
        assert [f"{age:.0f}" for age in ages] == text.split()[1:3]
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["rows", "t.csv"]


@pytest.mark.parametrize(
    "change", ["another column", "a changed byte", "a missing file", "no manifest to read", "other rows"]
)
def test_a_store_that_does_not_fit_any_more_is_built_again(change, tmp_path) -> None:
    path, folder = tmp_path / "t.parquet", tmp_path / "rows"
    FRAME.to_parquet(path)
    row_store(path, COLUMNS, folder)
    first, columns, numbers = written(folder), dict(COLUMNS), folder / store.NUMBERS
    match change:
        case "another column":
            columns["unused"] = float
        case "a changed byte":
            content = bytearray(numbers.read_bytes())
            content[5] ^= 1
            numbers.write_bytes(content)
        case "a missing file":
            numbers.unlink()
        case "no manifest to read":
            (folder / store.MANIFEST).write_text("{")
        case _:
            (tmp_path / "other.parquet").write_bytes(path.read_bytes())
            path = tmp_path / "other.parquet"
    rows = row_store(path, columns, folder)
    assert written(folder) != first
    assert np.array_equal(rows.take(ALL, ("age",))[0], FRAME["age"], equal_nan=True)


def test_a_frame_is_read_every_time_for_nothing_says_whether_it_changed(tmp_path) -> None:
    row_store(FRAME, COLUMNS, tmp_path / "rows")
    rows = row_store(FRAME.assign(age=2.0), COLUMNS, tmp_path / "rows")
    assert rows.take(ALL, ("age",))[0].tolist() == [2.0] * 4


def test_rows_of_an_old_store_stay_what_they_were(tmp_path) -> None:
    old = row_store(FRAME, COLUMNS, tmp_path / "rows")
    row_store(FRAME.assign(age=2.0), COLUMNS, tmp_path / "rows")
    assert np.array_equal(old.take(ALL, ("age",))[0], FRAME["age"], equal_nan=True)


def test_many_batches_are_one_table(tmp_path) -> None:
    n = 300_000
    table = pa.table({"x": np.arange(n) / 7, "s": [str(i % 1013) for i in range(n)]})
    pq.write_table(table, tmp_path / "t.parquet")
    rows = row_store(tmp_path / "t.parquet", {"s": str, "x": float})
    some = np.array([0, 131_071, 131_072, n - 1])
    s, x = rows.take(some, ("s", "x"))
    assert x.tolist() == (some / 7).tolist() and s.tolist() == [str(i % 1013) for i in some]


@pytest.mark.parametrize(
    "columns", [COLUMNS, {"no such column": COLUMNS[next(iter(COLUMNS))]}], ids=["fine", "refused"]
)
def test_rows_without_a_folder_leave_no_file_behind(columns, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with contextlib.suppress(InvalidInput):
        assert row_store(FRAME, columns).rows == len(FRAME)
    assert list(tmp_path.iterdir()) == []
