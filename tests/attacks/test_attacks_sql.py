"""Statements that earlier versions answered as another question, or with a useless error."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.errors import InvalidInput
from hedgerow.query.composed import AnswerKnowledge
from hedgerow.query.counts import Query, bound
from hedgerow.sql import cursor
from hedgerow.sql.result import run_statement
from hedgerow.sql.statement import Aggregate, read_statement
from hedgerow.unsafe import unsafe_respondent

UNIVERSE = hr.Universe(
    age=hr.Range(0, 100, 10),
    sex=hr.Categories(["F", "M"]),
    town=hr.Categories(["Bern", "basel"], case="ignore"),
    day=hr.Dates("1970-01-01", "2020-12-31", "year"),
)


def cells(statement: str, name: str) -> list[bool]:
    """The cells of a column that WHERE means."""
    where = read_statement(f"SELECT count(*) FROM data WHERE {statement}", UNIVERSE).where.true
    return np.broadcast_to(bound(where, UNIVERSE).table, UNIVERSE[name].size).astype(bool).tolist()


@pytest.mark.parametrize(
    "statement",
    ["a = ? -- it's ?\n AND b = ?", "a = ? /* ' ? */ AND b = ?", "a = ? AND c = $$?$$ AND b = ?", 'a = ? AND "?" = 1 AND b = ?'],
)  # fmt: skip
def test_a_question_mark_in_a_comment_a_text_or_a_name_takes_no_parameter(statement: str) -> None:
    first, rest = statement.split("?", 1)
    middle, last = rest.rsplit("?", 1)
    assert cursor.with_parameters(statement, [1, 2]) == f"{first}(1){middle}(2){last}"


def test_a_text_cannot_leave_a_comment() -> None:
    with pytest.raises(cursor.ProgrammingError, match="one"):
        cursor.with_parameters("SELECT count(*) FROM data -- ?", ["\n WHERE sex = 'F'"])


def test_a_parameter_too_many_is_refused_also_where_it_is_null() -> None:
    with pytest.raises(cursor.ProgrammingError, match="one"):
        cursor.with_parameters("SELECT ?", [1, None])


def test_no_parameters_are_none_in_any_form() -> None:
    assert cursor.with_parameters("SELECT 1", {}) == cursor.with_parameters("SELECT 1", ()) == "SELECT 1"
    with pytest.raises(cursor.ProgrammingError, match="mapping"):
        cursor.with_parameters("SELECT ?", {"a": 1})


def test_numbers_are_written_in_digits_and_only_if_they_are_finite() -> None:
    assert cursor.with_parameters("?, ?", [np.float64(2.5), True]) == "(2.5),  TRUE "
    for not_finite in (float("nan"), float("inf"), np.float64("nan")):
        with pytest.raises(cursor.ProgrammingError, match="finite"):
            cursor.with_parameters("?", [not_finite])


def test_a_statement_that_does_not_end_is_an_error_of_the_interface() -> None:
    with pytest.raises(cursor.ProgrammingError, match="Close it"):
        cursor.with_parameters("SELECT 'a, ?", [1])


def groups(order: str) -> list[str | None]:
    """The order of groups where F has an answer of 1, M none, and the total 2."""

    def answers(questions: list[Query]) -> list[Any]:
        return np.repeat([1.0, np.nan, 2.0], len(questions) // 3).tolist()  # the output, and what is ordered by

    rows = run_statement(
        f"SELECT sex, avg(age) AS x FROM data GROUP BY ROLLUP (sex) ORDER BY {order}", UNIVERSE, answers
    ).rows
    return [sex for sex, _ in rows]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("x", ["F", None, "M"]),
        ("x DESC", [None, "F", "M"]),
        ("x NULLS FIRST", ["M", "F", None]),
        ("x DESC NULLS FIRST", ["M", None, "F"]),
        ("x DESC NULLS LAST", [None, "F", "M"]),
        ("sex DESC", ["M", "F", None]),
        ("sex NULLS FIRST", [None, "F", "M"]),
    ],
)
def test_null_is_where_duckdb_puts_it(order: str, expected: list[str | None]) -> None:
    assert groups(order) == expected


def test_not_like_is_the_rest() -> None:
    assert cells("sex NOT LIKE 'F%'", "sex") == [False, True]
    assert cells("sex NOT ILIKE 'f!%' ESCAPE '!'", "sex") == [True, True]


def test_like_ignores_capitals_if_labels_do() -> None:
    assert cells("town LIKE 'B%'", "town") == [True, True]
    assert cells("town = 'BERN'", "town") == cells("town LIKE 'BERN'", "town") == [True, False]


@pytest.mark.parametrize(
    "condition", ["day < 2020", "day BETWEEN DATE '2000-01-01' AND 2010", "age < DATE '2000-01-01'"]
)
def test_a_date_is_compared_with_dates_alone(condition: str) -> None:
    with pytest.raises(InvalidInput, match="must be compared with"):
        read_statement(f"SELECT count(*) FROM data WHERE {condition}", UNIVERSE)
    assert datetime.date(2000, 1, 1) in UNIVERSE["day"].plain_labels


ZEROS = 1001  # of 4,000 rows, the others being 9: the quantile 0.25025 is on the way from the one to the other


@pytest.mark.parametrize("order", [0.25, 0.25025, 0.2503, 0.5])
@pytest.mark.parametrize(
    "spelling",
    [
        "quantile_cont(a, {})",
        "percentile_cont({}) WITHIN GROUP (ORDER BY a)",
        "percentile_cont(1 - {}) WITHIN GROUP (ORDER BY a DESC)",
    ],
)
def test_a_continuous_quantile_is_inside_its_bar_however_well_the_table_is_known(spelling: str, order: float) -> None:
    """It lies between two records, which no bar about the value of one record holds."""
    statement = spelling.format(order).replace(f"1 - {order}", str(round(1 - order, 6)))
    values = np.sort(np.append(np.zeros(ZEROS), np.full(4000 - ZEROS, 9.0)))
    low, high, said = bar(f"{statement} AS v")
    assert low <= np.quantile(values, order) <= high
    assert (low, high) == ((0.0, 9.0) if 0.25 < order < 0.5 else (9.0, 9.0) if order == 0.5 else (0.0, 0.0))
    assert said == pytest.approx(np.quantile(values, order))


@pytest.mark.parametrize(
    "spelling", ["quantile_disc(a, 0.25025)", "quantile(a, 0.25025)", "approx_quantile(a, 0.25025)"]
)
def test_a_discrete_quantile_is_the_value_of_a_record(spelling: str) -> None:
    assert bar(f"{spelling} AS v")[2] == 0.0


def test_the_median_of_an_even_number_of_rows_is_between_the_two_in_the_middle() -> None:
    assert bar("median(a) AS v", [0, 0, 9, 9]) == (0.0, 9.0, 4.5)
    assert bar("median(a) AS v", [0, 0, 9]) == (0.0, 0.0, 0.0)


def bar(output: str, values: list[int] | None = None) -> tuple[float, float, float]:
    """The ends of what is said, and the value, by one who knows every count exactly."""
    counts = np.zeros(10, dtype=np.int64)
    counts[[0, 9]] = ZEROS, 4000 - ZEROS
    if values is not None:
        counts = np.bincount(values, minlength=10)
    universe = hr.Universe(a=hr.Integers(0, 9))
    (aggregate,) = read_statement(f"SELECT {output} FROM data", universe).outputs
    assert isinstance(aggregate, Aggregate)
    found: Any = bound(aggregate.ask(hr.count(a=(0, 9))), universe)
    respondent = unsafe_respondent(HistogramSource(universe, counts))
    low, high = found.ends(AnswerKnowledge(respondent))
    return low, high, float(found.ask(respondent, None).value)
