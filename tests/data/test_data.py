"""The sensitive table through a real engine: every source counts alike, and nothing about rows escapes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource, Table
from hedgerow.errors import DataUnavailable, InvalidInput

UNIVERSE = hr.Universe(
    age=hr.Range(17, 90, bins=4),
    sex=hr.Categories(["F", "M"], other=True),
    smoker=hr.Flag(),
    children=hr.Integers(0, 3),
    grade=hr.Categories([1, 2, 3]),
)
FRAME = pd.DataFrame(
    {
        "age": [10, 30.5, 90, 91, None, 17, 53.5],
        "sex": ["F", "M", "X", None, "F", "F", "M"],
        "smoker": [True, False, None, True, True, False, True],
        "children": [1, 2, 3, 9, -4, 0, 2],
        "grade": [1, 2, 3, 7, 2, 2, 1],
        "unused": list("abcdefg"),
    }
)
EXPECTED = {"age": [4, 0, 1, 2], "sex": [3, 2, 2], "smoker": [3, 4], "children": [2, 1, 2, 2], "grade": [3, 3, 1]}


def sources(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    FRAME.to_csv(tmp_path / "t.csv.gz", index=False)
    FRAME.to_parquet(tmp_path / "t.parquet")
    arrow = pa.Table.from_pandas(FRAME)
    return {
        "csv": tmp_path / "t.csv",
        "gz": str(tmp_path / "t.csv.gz"),
        "parquet": tmp_path / "t.parquet",
        "pandas": FRAME,
        "polars": pl.from_arrow(arrow),
        "lazy": pl.from_arrow(arrow).lazy(),
        "arrow": arrow,
    }


@pytest.mark.parametrize("kind", ["csv", "gz", "parquet", "pandas", "polars", "lazy", "arrow"])
def test_every_source_counts_alike_and_values_outside_the_domain_have_their_place(kind, tmp_path) -> None:
    data = Table(sources(tmp_path)[kind], UNIVERSE)
    assert data.rows == 7
    assert {name: data.marginal([name]).tolist() for name in UNIVERSE.names} == EXPECTED


def test_an_ibis_table_is_counted_alike() -> None:
    import ibis

    data = Table(ibis.memtable(FRAME), UNIVERSE)
    assert {name: data.marginal([name]).tolist() for name in UNIVERSE.names} == EXPECTED


def test_a_database_is_opened_by_url_and_table(tmp_path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "t.duckdb")) as db:
        db.register("frame", FRAME)
        db.execute("CREATE TABLE people AS SELECT * FROM frame")
    data = Table(f"duckdb://{tmp_path}/t.duckdb", UNIVERSE, table="people")
    assert data.marginal(["grade"]).tolist() == EXPECTED["grade"]
    with pytest.raises(InvalidInput, match="must come with table="):
        Table(f"duckdb://{tmp_path}/t.duckdb", UNIVERSE)


def test_a_joint_marginal_has_its_axes_in_universe_order() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, (3, 4, 5), size=(1000, 3))
    universe = hr.Universe.from_sizes({"a": 3, "b": 4, "c": 5})
    data = Table(pd.DataFrame(codes, columns=["a", "b", "c"]), universe)
    expected = np.zeros((3, 5), int)
    np.add.at(expected, (codes[:, 0], codes[:, 2]), 1)
    assert np.array_equal(data.marginal(["c", "a"]), expected)


def test_a_histogram_counts_as_the_rows_it_stands_for() -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, (3, 4), size=(500, 2))
    universe = hr.Universe.from_sizes({"a": 3, "b": 4})
    counts = np.zeros((3, 4), int)
    np.add.at(counts, tuple(codes.T), 1)
    table, histogram = Table(pd.DataFrame(codes, columns=["a", "b"]), universe), HistogramSource(universe, counts)
    for names in [(), ("a",), ("b",), ("a", "b")]:
        assert np.array_equal(table.marginal(names), histogram.marginal(names))


def test_the_snapshot_does_not_follow_later_changes_of_the_file(tmp_path) -> None:
    path = tmp_path / "t.csv"
    FRAME.to_csv(path, index=False)
    data = Table(path, UNIVERSE)
    FRAME.head(2).to_csv(path, index=False)
    assert data.marginal(["age"]).sum() == 7


def test_text_in_a_numeric_column_is_outside_the_domain_not_an_error() -> None:
    frame = pd.DataFrame({"age": ["20", "forty", "NaN", "inf", "-inf", ""]})
    data = Table(frame, hr.Universe(age=hr.Range(0, 100, bins=2)))
    assert data.marginal(["age"]).tolist() == [5, 1]


def test_a_secret_in_an_unreadable_file_never_reaches_the_message(tmp_path) -> None:
    path = tmp_path / "broken.parquet"
    path.write_text("SECRET-4711 is not Parquet")
    with pytest.raises(DataUnavailable) as refused:
        Table(path, UNIVERSE)
    assert "SECRET" not in str(refused.value)
    assert refused.value.__context__ is None
    assert refused.value.__cause__ is None


def test_a_column_the_engine_cannot_convert_never_reaches_the_message() -> None:
    frame = pd.DataFrame({"age": pd.Series([{"SECRET-4711": 1}, 3, "x"], dtype=object)})
    try:
        data = Table(frame, hr.Universe(age=hr.Range(0, 100, bins=2)))
    except DataUnavailable as refused:
        assert "SECRET" not in str(refused)
    else:
        assert data.rows == 3


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nowhere.csv", "The data file must exist. Found nothing at 'nowhere.csv'."),
        (pd.DataFrame({"age": [1]}), "must have every column the universe declares. Found no 'sex', 'smoker'"),
        (3, "A source must be a CSV or Parquet path"),
        (__file__, "The data file must be .csv, .tsv or .parquet."),
    ],
)
def test_a_bad_source_is_refused_by_name(source, words) -> None:
    with pytest.raises(InvalidInput) as refused:
        Table(source, UNIVERSE)
    assert words in str(refused.value)


def test_a_marginal_past_memory_is_refused_with_its_size() -> None:
    universe = hr.Universe.from_sizes({f"a{i}": 100 for i in range(5)})
    data = Table(pd.DataFrame({f"a{i}": [0] for i in range(5)}), universe)
    with pytest.raises(hr.TooLarge, match="Found 10000000000 on"):
        data.marginal(universe.names)


def test_the_data_never_show_in_a_repr(tmp_path) -> None:
    frame = pd.DataFrame({"code": [4711] * 123})
    shown = repr(Table(frame, hr.Universe(code=hr.Integers(4000, 5000))))
    assert "4711" not in shown
    assert "123" not in shown


def test_a_bad_histogram_is_refused() -> None:
    universe = hr.Universe.from_sizes({"a": 3})
    for bad in ([1, 2], [1, 2, -1], [0.5, 0.5, 1]):
        with pytest.raises(InvalidInput, match="A histogram must hold 3 counts"):
            HistogramSource(universe, bad)
