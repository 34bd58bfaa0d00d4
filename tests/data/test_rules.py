"""Declared reading rules: blanks, case, words, missing values and dates, the same from every source."""

from __future__ import annotations

import datetime
import subprocess
import sys

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from coded_rows import coded_rows
from sqlite_file import open_sqlite

import hedgerow as hr
from hedgerow.data import Table
from hedgerow.data.coding import Coder, date_in
from hedgerow.errors import DataUnavailable, InvalidInput

D = datetime.date


@pytest.mark.parametrize(
    ("attribute", "cells"),
    [
        (hr.Categories(["Female", "Male"], other=True), {" Female": 0, "Female\t": 0, "female": 2, "Fe male": 2, "  ": 2, None: 2}),
        (hr.Categories(["Female", "Male"], case="ignore"), {" FEMALE ": 0, "mAle": 1, "x": 0}),
        (hr.Categories(["Female", "Male"], spaces="exact", other=True), {" Female": 2, "Female": 0}),
        (hr.Categories(["a", "a "], other=True), {"a": 0, "a ": 1, " a": 2}),
        (hr.Categories(["Y", "N", None]), {None: 2, "": 2, np.nan: 2, pd.NA: 2, " ": 2, "NULL": 0}),
        (hr.Categories(["Y", "N"], missing=True), {None: 2, "": 2, "\t": 2, "x": 0, "N ": 1}),
        (hr.Categories(["Y", "N"], missing=True, other=True), {None: 2, "": 2, "x": 3}),
        (hr.Integers(0, 3, missing=True), {None: 4, "": 4, " ": 4, "abc": 4, 9: 3, -1: 0, "2": 2}),
        (hr.Integers(0, 3, missing=True, other=True), {None: 4, "": 4, "abc": 5, 9: 5, "2": 2}),
        (hr.Range(0, 4, bins=2, missing=True), {None: 2, np.nan: 2, "n/a": 2, 7: 1, 1: 0}),
        (hr.Flag(true="ja", false="nein"), {"JA ": 1, "nein": 0, "yes": 0, True: 1, "true": 1, False: 0}),
        (hr.Flag(true="ja", false="nein", other=True), {True: 1, "True ": 1, False: 0, "false": 0, "FALSE": 0, "no": 2}),
        (hr.Flag(true=1, false=2, other=True), {1: 1, "1.0": 1, 2: 0, 3: 2, None: 2}),
        (hr.Flag(missing=True), {"yes": 1, "no": 0, "?": 0, None: 2, "": 2}),
        (hr.Flag(other=True), {"yes": 1, "no": 0, "?": 2, 0: 0}),
        (
            hr.Dates("2020-01-01", "2020-12-31", "quarter"),
            {D(2020, 4, 1): 1, "2020-04-01": 1, " 2020-12-31T23:59:59Z": 3, D(2050, 1, 1): 3, D(1950, 1, 1): 0, None: 0, 5: 0},
        ),
        (
            hr.Dates("2020-01-01", "2020-12-31", "quarter", missing=True, other=True),
            {None: 4, "": 4, "2020-13-01": 5, "2019-12-31": 5, "2020-4-1": 5, 20200401: 5, True: 5, pd.NaT: 4},
        ),
    ],
)  # fmt: skip
def test_a_value_has_the_cell_that_the_rule_gives_it(attribute, cells) -> None:
    coder = Coder(attribute)
    assert {repr(value): coder.cell(value) for value in cells} == {repr(value): cell for value, cell in cells.items()}
    assert [int(coder.cells([value])[0]) for value in cells] == list(cells.values())


TEXTS = ["F", " F", "f", "M", "", None, "x", "2020-05-01", "3", " 3 "]
RULES = [
    hr.Categories(["F", "M"], other=True), hr.Categories(["F", "M"], case="ignore", missing=True), hr.Categories(["F", " F", None]),
    hr.Flag(true="F", other=True, missing=True), hr.Integers(0, 9, missing=True), hr.Range(0, 9, bins=3, other=True, missing=True),
    hr.Dates("2020-01-01", "2020-12-31", "month", missing=True, other=True),
]  # fmt: skip


@pytest.mark.parametrize("attribute", RULES, ids=lambda a: f"{type(a).__name__} {a.size}")
def test_every_source_of_texts_is_read_by_the_same_rule(attribute, tmp_path) -> None:
    expected = [Coder(attribute).cell(text) for text in TEXTS]
    arrow = pa.table({"a": pa.array(TEXTS, pa.string())})
    pd.DataFrame({"a": TEXTS}).to_csv(tmp_path / "t.csv", index=False, quoting=1)
    pq.write_table(arrow, tmp_path / "t.parquet")
    with open_sqlite(tmp_path / "t.db") as db:
        db.execute("CREATE TABLE t (a)")
        db.executemany("INSERT INTO t VALUES (?)", [(text,) for text in TEXTS])
    engine = ibis.duckdb.connect()
    engine.create_table("t", arrow)
    sources = [
        arrow, tmp_path / "t.csv", tmp_path / "t.parquet", pd.DataFrame({"a": TEXTS}, dtype=object), pl.from_arrow(arrow),
        pd.DataFrame({"a": pd.Categorical(TEXTS)}), pa.table({"a": arrow["a"].combine_chunks().dictionary_encode()}), engine.table("t"),
    ]  # fmt: skip
    universe = hr.Universe(a=attribute)
    for source in sources:
        assert coded_rows(source, universe).ravel().tolist() == expected, source
    assert coded_rows(f"sqlite://{tmp_path}/t.db", universe, table="t").ravel().tolist() == expected


TIMES = [
    "1969-12-31 23:00:00",
    "1970-01-01 00:00:00",
    "2020-02-29 12:00:00",
    "2262-01-01 00:00:00",
    "1700-06-01 01:00:00",
    None,
]


@pytest.mark.parametrize("extra", [{}, {"other": True}, {"missing": True}, {"other": True, "missing": True}], ids=str)
def test_times_of_every_type_are_on_their_day(extra) -> None:
    attribute = hr.Dates("1969-01-01", "2020-12-31", "year", **extra)
    coder = Coder(attribute)
    expected = [coder.cell(text) for text in TIMES]
    for unit in ("s", "ms", "us", "ns"):
        times = np.array([np.datetime64(t) if t else np.datetime64("NaT", "s") for t in TIMES], f"M8[{unit}]")
        carried = (
            [times, pa.array(times), pd.Series(times), pl.Series(times)] if unit != "s" else [times, pa.array(times)]
        )
        for column in carried:
            assert coder.cells(column).tolist() == expected, (unit, type(column))
    days = [date_in(t) if t else None for t in TIMES]
    dates = pa.array(days, pa.int32()).cast(pa.date32())
    assert coder.cells(dates).tolist() == expected
    assert coder.cells(dates.cast(pa.date64())).tolist() == expected
    assert coder.cells([d.as_py() for d in dates]).tolist() == expected


@pytest.mark.parametrize("by", ["day", "week", "month", "quarter", "year"])
def test_every_day_of_a_range_is_in_its_period_and_those_beside_it_are_outside(by) -> None:
    """As a text, with a time, as Python's date and as NumPy's; by counting periods, not by asking for cells."""
    first, last = datetime.date(2019, 11, 26), datetime.date(2020, 3, 4)
    coder = Coder(hr.Dates(first, last, by, other=True))
    days = [first + datetime.timedelta(i) for i in range(-2, (last - first).days + 3)]
    period = {
        "day": lambda d: d.toordinal(), "week": lambda d: d.isocalendar()[:2], "month": lambda d: (d.year, d.month),
        "quarter": lambda d: (d.year, (d.month - 1) // 3), "year": lambda d: d.year,
    }[by]  # fmt: skip
    periods = list(dict.fromkeys(period(d) for d in days if first <= d <= last))
    expected = [periods.index(period(d)) if first <= d <= last else coder.attribute.other_cell for d in days]
    texts = [d.isoformat() for d in days]
    for column in (texts, [f"{text} 23:59:59" for text in texts], days, np.array(texts, "M8[D]"), pa.array(days)):
        assert coder.cells(column).tolist() == expected == [coder.cell(value) for value in column]


def test_years_that_python_has_not_are_no_dates() -> None:
    coder = Coder(hr.Dates("1969-01-01", "2020-12-31", "year", missing=True))
    far = np.array([np.datetime64(2**40, "s"), np.datetime64(-(2**40), "s")])
    assert (
        coder.cells(far).tolist()
        == coder.cells(pa.array(far)).tolist()
        == [coder.cell(v) for v in far]
        == [coder.attribute.missing_cell] * 2
    )


def test_a_time_with_a_zone_is_on_the_day_it_is_written_as() -> None:
    coder = Coder(hr.Dates("2020-01-01", "2020-01-31", "day", other=True))
    zoned = pd.Series(pd.to_datetime(["2020-01-02 23:30", "2020-01-03 00:30"]).tz_localize("America/New_York"))
    assert coder.cells(zoned).tolist() == [1, 2] == [coder.cell(v) for v in zoned]


# What a column's type can never match


def typed(kind: str) -> list:
    """The column in every source whose types the owner calls public."""
    return [hr.TrustSchema(source) for source in unsaid(kind)]


def unsaid(kind: str) -> list:
    """The column in every source that has types, which a reader may have inferred."""
    frames = {
        "number": pd.DataFrame({"a": [1, 2, 3]}), "real": pd.DataFrame({"a": [1.5, 2.5]}), "truth": pd.DataFrame({"a": [True, False]}),
        "date": pd.DataFrame({"a": pd.to_datetime(["2020-01-01", "2020-05-01"])}),
    }  # fmt: skip
    frame = frames[kind]
    engine = ibis.duckdb.connect()
    engine.create_table("t", pa.Table.from_pandas(frame))
    return [
        frame.convert_dtypes(dtype_backend="pyarrow"),
        *([] if kind == "date" else [frame.convert_dtypes()]),
        pl.from_pandas(frame),
        pl.from_pandas(frame).lazy(),
        pa.Table.from_pandas(frame),
        engine.table("t"),
    ]


WORDS, OTHERS = hr.Categories(["F", "M"]), hr.Categories(["F", "M"], other=True)
NEVER = [
    ("number", WORDS), ("number", OTHERS), ("real", WORDS), ("number", hr.Dates("2020-01-01", "2020-12-31", "month")),
    ("number", hr.Flag(true="ja", false="nein")), ("date", hr.Range(0, 1, bins=2)), ("date", hr.Integers(0, 5)), ("date", WORDS),
    ("date", hr.Flag()), ("truth", WORDS), ("truth", hr.Dates("2020-01-01", "2020-12-31", "month")),
]  # fmt: skip
PERHAPS = [
    ("number", hr.Categories(["1", "x"])), ("number", hr.Flag()), ("number", hr.Integers(0, 3)), ("real", hr.Categories([1.5])),
    ("truth", hr.Categories(["True", "False"])), ("truth", hr.Flag(true="ja")), ("truth", hr.Categories([True, False])),
    ("truth", hr.Integers(0, 1)), ("date", hr.Dates("2020-01-01", "2020-12-31", "month")), ("date", hr.Categories(["2020-01-01 00:00:00"])),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "attribute"), NEVER, ids=lambda x: x if isinstance(x, str) else type(x).__name__)
def test_a_declaration_that_a_type_can_never_match_is_refused_from_the_schema(kind, attribute) -> None:
    for source in typed(kind):
        with pytest.raises(InvalidInput, match=r"Attribute 'a' must be .* Declare it by the column's type") as refused:
            Table(source, hr.Universe(a=attribute))
        assert "2020" not in str(refused.value)


@pytest.mark.parametrize(("kind", "attribute"), NEVER, ids=lambda x: x if isinstance(x, str) else type(x).__name__)
def test_a_type_that_came_with_rows_refuses_nothing_until_the_owner_says_so(kind, attribute, tmp_path) -> None:
    """A reader that infers types makes texts of a column for one row; then nothing is refused, so it may not be otherwise either."""
    for source in unsaid(kind):
        assert Table(source, hr.Universe(a=attribute)).rows > 0
    next(s for s in unsaid(kind) if isinstance(s, pl.DataFrame)).write_parquet(tmp_path / "t.parquet")
    assert Table(tmp_path / "t.parquet", hr.Universe(a=attribute)).rows > 0


def test_the_types_of_a_databases_table_are_its_schema(tmp_path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "t.db")) as db:
        db.execute("CREATE TABLE t (a DATE)")
    with pytest.raises(InvalidInput, match="Attribute 'a' must be Dates"):
        Table(f"duckdb://{tmp_path}/t.db", hr.Universe(a=hr.Range(0, 1, bins=2)), table="t")


@pytest.mark.parametrize(("kind", "attribute"), PERHAPS, ids=lambda x: x if isinstance(x, str) else type(x).__name__)
def test_a_declaration_that_a_type_may_match_is_accepted(kind, attribute) -> None:
    for source in typed(kind):
        assert Table(source, hr.Universe(a=attribute)).rows > 0


def test_a_source_without_types_refuses_nothing(tmp_path) -> None:
    """For what its rows hold would decide."""
    (tmp_path / "t.csv").write_text("a\n1\n2\n")
    with open_sqlite(tmp_path / "t.db") as db:
        db.execute("CREATE TABLE t (a INTEGER)")
        db.execute("INSERT INTO t VALUES (1)")
    assert Table(tmp_path / "t.csv", hr.Universe(a=WORDS)).rows == 2
    assert Table(f"sqlite://{tmp_path}/t.db", hr.Universe(a=WORDS), table="t").rows == 1
    assert Table(pd.DataFrame({"a": [1, 2]}, dtype=object), hr.Universe(a=WORDS)).rows == 2
    for attribute in (
        hr.Range(0, 1, bins=2),
        hr.Dates("2020-01-01", "2020-12-31", "month"),
        WORDS,
        hr.Flag(true="ja", false="nein"),
    ):
        assert Table(pa.table({"a": ["1", "2"]}), hr.Universe(a=attribute)).rows == 2
        texts = hr.TrustSchema(pa.table({"a": ["1", "2"]}))  # what is declared a text may spell anything
        assert Table(texts, hr.Universe(a=attribute)).rows == 2


@pytest.mark.parametrize(("kind", "attribute"), NEVER, ids=lambda x: x if isinstance(x, str) else type(x).__name__)
def test_a_type_that_pandas_infers_refuses_nothing_for_one_row_would_decide(kind, attribute) -> None:
    values = {
        "number": [1, 2],
        "real": [1.5, 2.5],
        "truth": [True, False],
        "date": list(pd.to_datetime(["2020-01-01"] * 2)),
    }[kind]
    for last in (values[0], "F", None):
        assert Table(pd.DataFrame({"a": [*values, last]}), hr.Universe(a=attribute)).rows == 3


# What fails before any row is read is said


def test_a_dead_connection_a_wrong_table_and_a_wrong_file_are_told_apart(tmp_path) -> None:
    universe = hr.Universe(a=hr.Flag())
    import duckdb

    with duckdb.connect(str(tmp_path / "t.duckdb")) as db:
        db.execute("CREATE TABLE t (a INTEGER)")
    (tmp_path / "bad.parquet").write_text("no")
    (tmp_path / "bad.db").write_text("no" * 2000)
    engine = ibis.duckdb.connect()
    engine.raw_sql("CREATE TABLE t (a INTEGER)")
    table = engine.table("t")
    engine.disconnect()
    for source, how, kind, words in (
        (f"duckdb://{tmp_path}/t.duckdb", {"table": "people"}, InvalidInput, "must have the table. Found no 'people'"),
        (table, {}, DataUnavailable, "the connection is closed"),
        (
            "postgres://u:secret@127.0.0.1:1/x",
            {"table": "t"},
            DataUnavailable,
            "must answer at its URL, before any row is read",
        ),
        ("nosuch://here", {"table": "t"}, DataUnavailable, "The database"),
        (f"sqlite://{tmp_path}/bad.db", {"table": "t"}, DataUnavailable, "must be a file of SQLite"),
        (tmp_path / "bad.parquet", {}, DataUnavailable, "must open before its rows are read"),
    ):
        with pytest.raises(kind) as refused:
            Table(source, universe, **how)
        assert words in str(refused.value)
        assert "secret" not in str(refused.value) and "withheld" not in str(refused.value)
        assert refused.value.__context__ is None


IN_A_NOTEBOOK = """
import sys, types
shell = type("Shell", (), {"config": {"IPKernelApp": {}}})()
sys.modules["IPython"] = types.ModuleType("IPython")
sys.modules["IPython"].get_ipython = lambda: shell
sys.modules["IPython"].display = sys.modules["IPython.display"] = types.ModuleType("IPython.display")
sys.modules["IPython.display"].display = lambda *shown, **how: None
import duckdb
engine = duckdb.connect()
try:
    engine.execute("SET enable_progress_bar = false")
    print("no notebook")
except duckdb.InvalidInputException as raised:
    print("ipywidgets" in str(raised))
import pandas as pd
import hedgerow as hr
from hedgerow.data import Table
with duckdb.connect(sys.argv[1]) as db:
    db.execute("CREATE TABLE t AS SELECT 1 AS a FROM range(7)")
universe = hr.Universe(a=hr.Flag())
print(Table(pd.DataFrame({"a": [1, 0]}), universe).marginal(("a",)).tolist())
print(Table(f"duckdb://{sys.argv[1]}", universe, table="t").marginal(("a",)).tolist())
"""


def test_a_notebook_without_widgets_opens_tables(tmp_path) -> None:
    """DuckDB refuses the setting of its progress bar there: what it believes to be a notebook is a shell made up here."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", IN_A_NOTEBOOK, str(tmp_path / "t.duckdb")],
        capture_output=True,
        text=True,
    )
    assert ran.stdout.splitlines() == ["True", "[1, 1]", "[0, 7]"], ran.stderr


# For the owner's eyes


def test_an_inspection_says_what_would_be_clamped_unmatched_and_missing() -> None:
    frame = pd.DataFrame(
        {
            "sex": ["F", " M", "x", None] * 5, "age": [3, 500, "abc", ""] * 5, "smoker": [True, "no", "perhaps", None] * 5,
            "born": ["2020-01-01", "1999-01-01", "", 7] * 5,
        }
    )  # fmt: skip
    universe = hr.Universe(
        sex=hr.Categories(["F", "M"]), age=hr.Integers(0, 99, missing=True), smoker=hr.Flag(other=True),
        born=hr.Dates("2020-01-01", "2020-12-31", "month"),
    )  # fmt: skip
    found = hr.unsafe.unsafe_inspect(frame, universe)
    assert found[["rows", "missing", "clamped", "unmatched"]].to_numpy().tolist() == [
        [20, 5, 0, 5], [20, 5, 5, 5], [20, 5, 0, 5], [20, 5, 5, 5],
    ]  # fmt: skip
    assert found["unmatched go to"].tolist() == ["F", hr.MISSING, hr.OTHER, "2020-01"]
    assert found["missing go to"].tolist() == ["F", hr.MISSING, hr.OTHER, "2020-01"]
    assert found["examples"].tolist() == ["'x'", "'500', 'abc'", "'perhaps'", "'1999-01-01', '7'"]


@pytest.mark.parametrize("extra", [None, hr.OTHER, hr.MISSING], ids=str)
def test_an_inspection_can_be_made_of_any_labels(extra) -> None:
    """Also of labels that say that a value is missing or none of the others."""
    frame, universe = pd.DataFrame({"a": ["F", "x", None, "x"]}), hr.Universe(a=hr.Categories(["F", extra]))
    found = hr.unsafe.unsafe_inspect(frame, universe)
    assert found[["rows", "missing", "clamped", "unmatched"]].to_numpy().tolist() == [[4, 1, 0, 2]]


def test_a_number_that_no_category_has_is_unmatched_and_one_beyond_a_range_is_clamped() -> None:
    universe = hr.Universe(place=hr.Categories(["1", "2", "here"]), smoker=hr.Flag(), age=hr.Integers(0, 9))
    frame = pd.DataFrame({"place": [7, 1, 2], "smoker": [5, 1, 0], "age": [12, 3, 4]})
    found = hr.unsafe.unsafe_inspect(frame, universe)
    assert found[["clamped", "unmatched"]].to_numpy().tolist() == [[0, 1], [0, 1], [1, 0]]
