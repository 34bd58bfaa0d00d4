"""GROUP BY a CASE or a function of a date gives what DuckDB gives on the same table."""

from __future__ import annotations

import datetime

import checking
import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.sql import run_statement

rng = np.random.default_rng(3)
N = 4000
TABLE = pd.DataFrame(
    {
        "a": rng.integers(0, 9, N),
        "c": rng.choice(["x", "y", "z"], N),
        "t": pd.Timestamp("2019-11-05") + pd.to_timedelta(rng.integers(0, 500, N), unit="D"),
        "m": np.where(rng.random(N) < 0.2, None, rng.integers(0, 4, N)),
    }
)
UNIVERSE = hr.Universe(
    a=hr.Integers(0, 8), c=hr.Categories(["x", "y", "z"]), t=hr.Dates("2019-11-05", "2021-03-18", by="day"),
    m=hr.Integers(0, 3, missing=True),
)  # fmt: skip
TRUTH = checking.Truth(TABLE, UNIVERSE)

EXPRESSIONS = (
    "CASE WHEN a < 3 THEN 'few' WHEN a < 6 THEN 'some' ELSE 'many' END",
    "CASE WHEN m > 1 THEN 'high' WHEN c = 'x' THEN 'low' END",
    "CASE c WHEN 'x' THEN 1 WHEN 'y' THEN 2 ELSE 1 END",
    "date_trunc('month', t)",
    "date_trunc('quarter', t)",
    "date_trunc('week', t)",
    "date_trunc('year', CAST(t AS DATE))",
    "year(t)",
    "extract(month FROM t)",
    "extract(dow FROM t)",
    "isodow(t)",
    "weekday(t)",
    "dayname(t)",
    "monthname(t)",
    "week(t)",
    "day(t)",
    "date_part('quarter', t)",
)
CONDITIONS = (
    "year(t) = 2020",
    "dayofweek(t) IN (0, 6)",
    "month(t) BETWEEN 3 AND 5",
    "3 > month(t)",
    "date_trunc('month', t) >= DATE '2020-06-01'",
    "date_trunc('month', t) <> '2020-06-01'",
    "t >= '2020-06-15'",
    "NOT quarter(t) = 1 AND t BETWEEN '2020-01-10' AND DATE '2020-12-01'",
)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_group_by_an_expression_is_what_duckdb_gives(expression: str) -> None:
    statement = f"SELECT {expression} AS g, c, count(*) AS x0, avg(a) AS x1 FROM data GROUP BY g, c"
    ours, theirs = TRUTH.ours(statement), TRUTH.theirs(statement)
    assert checking.disagreement(as_text(ours), as_text(theirs), statement) is None
    assert ours["x0"].sum() == N


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_on_a_function_of_a_date_is_what_duckdb_says(condition: str) -> None:
    statement = f"SELECT count(*) AS x0 FROM data WHERE {condition}"
    assert TRUTH.ours(statement)["x0"][0] == TRUTH.theirs(statement)["x0"][0]


def test_missing_dates_are_a_group_of_their_own() -> None:
    frame = pd.DataFrame({"t": [datetime.date(2020, 1, 1), None] * 50})
    universe = hr.Universe(t=hr.Dates("2020-01-01", "2020-12-31", by="month", missing=True))
    found = checking.Truth(frame, universe).ours("SELECT year(t) AS y, count(*) AS n FROM data GROUP BY y")
    assert found["n"].tolist() == [50, 50] and found["y"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("SELECT dayname(t) AS d, count(*) FROM data GROUP BY d", "declared by day"),
        ("SELECT date_trunc('hour', t) AS d, count(*) FROM data GROUP BY d", "one of day, week"),
        ("SELECT year(a) AS d, count(*) FROM data GROUP BY d", "a column of dates"),
        ("SELECT CASE WHEN a < 3 THEN a END AS d, count(*) FROM data GROUP BY d", "must return literals"),
        ("SELECT year(t) AS d, count(*) FROM data", "must be in GROUP BY"),
        ("SELECT count(*) FROM data WHERE year(t) = 'x'", "a value such as 2020"),
    ],
)
def test_questions_without_an_answer_are_refused(statement: str, why: str) -> None:
    universe = hr.Universe(t=hr.Dates("2020-01-01", "2020-12-31", by="month"), a=hr.Integers(0, 4))
    with pytest.raises(InvalidInput, match=why):
        run_statement(statement, universe, lambda queries: pytest.fail("nothing is asked"))


def as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """Write groups alike, whatever type an engine gives dates and numbers beside NULL."""
    g = [None if pd.isna(value) else str(value)[:10].removesuffix(".0") for value in frame["g"]]
    return frame.assign(g=pd.Series(g, dtype=object))


def test_a_report_names_the_value_of_each_group() -> None:
    session = hr.open(TABLE, universe=UNIVERSE, budget=hr.Budget(1, 1e-6))
    session.sql("SELECT c, count(*) AS n FROM data GROUP BY c")
    shown = session.report()._repr_html_()
    assert "Rows, by c" in shown and "of 3 cells" not in shown
    assert all(f"<td>{value}</td>" in shown for value in "xyz")
