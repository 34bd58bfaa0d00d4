"""Unsupported SQL is refused with its place in the statement, and the refusal names what is supported."""

from __future__ import annotations

import checking
import pytest

import hedgerow as hr
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.sql import result, run_statement

REFUSED = {
    "SELECT * FROM data": "rows are private|STAR",
    "SELECT a FROM data": "in GROUP BY or in an aggregate.*column 8",
    "SELECT count(DISTINCT a) FROM data": "DISTINCT",
    "SELECT DISTINCT a FROM data GROUP BY a": "DISTINCT",
    "SELECT count(*) FROM data TABLESAMPLE 10%": "sample",
    "SELECT count(*) FROM other": "called 'data'. Found 'other' at line 1, column 22",
    "SELECT count(*)\nFROM data\nWHERE zz = 1": "one of 'a'.*Found 'zz' at line 3, column 7",
    "SELECT count(*) FROM data WHERE c = 'unheard'": "declares: 'x', 'xy', 'z'. Found 'unheard'.*line 1, column 33",
    "SELECT count(*) FROM data WHERE c < 'y'": "have an order.*Found 'c'",
    "SELECT count(*) FROM data WHERE a < '3'": "a number. Found '3'",
    "SELECT count(*) FROM data WHERE a < 1e": "A number must be written in digits. Found '1e'.*column 37",
    "SELECT count(*) FROM data WHERE a < -1e999": "A number must be finite. Found a number beyond all floats",
    "SELECT count(*) FROM data WHERE a < -'3'": "a minus before something that is no number",
    "SELECT count(*) FROM data WHERE a < DATE '2020-02-30'": "A date must be written as in",
    "SELECT count(*) FROM data WHERE a = b": "a column and a literal",
    "SELECT count(*) FROM data WHERE a LIKE '1%'": "LIKE must be used on a column whose categories are all declared",
    "SELECT count(*) FROM data WHERE a": "true or false",
    "SELECT count(*) FROM data WHERE a IS NULL": "declares where missing values go",
    "SELECT count(*) FROM data WHERE a IN (SELECT b FROM data)": "query in IN",
    "SELECT count(*) FROM data WHERE EXISTS (SELECT 1)": "EXISTS",
    "SELECT count(*) OVER () FROM data": "WINDOW",
    "SELECT count(*) FROM data d JOIN data e ON TRUE": "Found a join.*docs/joining.md",
    "SELECT count(*) FROM data, data": "Found a join",
    "WITH x AS (SELECT 1) SELECT count(*) FROM data": "Found WITH",
    "SELECT count(*) FROM data UNION SELECT 1": "must be a SELECT. Found UNION",
    "SELECT count(*) FROM (SELECT * FROM data LIMIT 3) t": "limit",
    "SELECT count(*) FROM (SELECT a, count(*) FROM data GROUP BY a) t": "group|column is expected",
    "SELECT avg(c) FROM data": "a column of numbers.*Found 'c'",
    "SELECT avg(a + b) FROM data": "a column or a CASE",
    "SELECT quantile_cont(a, 2) FROM data": "between 0 and 1",
    "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY a DESC) FROM data": "in ascending order. Found PERCENTILE_DISC in descending",
    "SELECT foo(a) FROM data": "among the outputs",
    "SELECT a + 1 FROM data GROUP BY a": "Arithmetic must be on aggregates",
    "SELECT count(*) FROM data LIMIT -1": "at least 0",
    "SELECT count(*) FROM data GROUP BY 7": "the position of an output",
    "SELECT count(*) FROM data ORDER BY 7": "the position of an output",
    "SELECT count(*) FROM data HAVING a > 1": "in GROUP BY or in an aggregate",
    "SELECT count(*) FROM data QUALIFY 1 > 0": "QUALIFY",
    "SELECT count(*)": "must read from the table",
    "SELECT count(*) FROM data; SELECT count(*) FROM data": "one statement. Found 2",
    "DELETE FROM data": "must be a SELECT. Found DELETE",
    "SELECT count(* FROM data": "must be SQL",
    "": "one statement. Found none",
    "SELECT count(*) FROM data WHERE " + "(" * 5000 + "TRUE" + ")" * 5000: "nest|must be SQL",
}


@pytest.mark.parametrize("statement", REFUSED, ids=lambda s: s[:60])
def test_it_is_refused_in_a_sentence_and_nothing_is_asked(statement: str) -> None:
    def nobody(_: object) -> list[object]:
        raise AssertionError("asked")

    with pytest.raises(InvalidInput, match=REFUSED[statement]) as refused:
        run_statement(statement, checking.UNIVERSE, nobody)
    assert str(refused.value).count(". ") >= 2


@pytest.mark.parametrize("statement", [3, None, b"SELECT 1"])
def test_a_statement_is_text(statement: object) -> None:
    with pytest.raises(InvalidInput, match="must be text"):
        run_statement(statement, checking.UNIVERSE, list)  # type: ignore[arg-type]


def test_a_pattern_is_refused_where_texts_may_occur_that_are_not_declared() -> None:
    universe = hr.Universe(c=hr.Categories(["x", "xy"], other=True))
    with pytest.raises(InvalidInput, match="LIKE must be used on a column whose categories are all declared"):
        run_statement(
            "SELECT count(*) FROM data WHERE c LIKE 'x%'", universe, lambda queries: pytest.fail("nothing is asked")
        )


def test_more_questions_than_can_be_answered_are_refused_before_any_is_asked(monkeypatch) -> None:
    monkeypatch.setattr(result, "MOST_QUESTIONS", 5)
    universe = hr.Universe(g=hr.Integers(0, 2), x=hr.Integers(0, 3))
    with pytest.raises(TooLarge, match="at most 5 questions"):
        run_statement(
            "SELECT g, count(*), avg(x) FROM data GROUP BY g", universe, lambda queries: pytest.fail("nothing is asked")
        )
