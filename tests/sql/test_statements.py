"""Random statements: accepted ones have DuckDB's results, and none crashes."""

from __future__ import annotations

from typing import Any

import checking
import duckdb
import grammar
import pandas as pd
import pytest
import sqlglot
from sqlglot import expressions as exp

import hedgerow as hr
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.sql.statement import read_statement

AT_ONCE, LONG = 100, 5_000  # long: four times this many


def tried(seed: int, how_many: int) -> tuple[int, list[str]]:
    """Return the number of accepted statements, and those whose results differ from DuckDB's."""
    written, truth = grammar.Grammar(seed), checking.Truth(checking.table(seed))
    accepted, wrong = 0, []
    for _ in range(how_many):
        statement = written.statement()
        try:
            ours = truth.ours(statement)
        except InvalidInput:
            continue
        except HedgerowError as refused:
            raise AssertionError(f"{statement}: {refused!r}") from refused
        accepted += 1
        try:
            theirs = truth.theirs(statement)
        except Exception as problem:  # whatever it says: we accepted what it does not
            wrong.append(f"{statement}\n  DuckDB: {problem}")
            continue
        differs = checking.disagreement(ours, theirs, statement)
        if differs is not None:
            wrong.append(f"{statement}\n  {differs}")
    return accepted, wrong


@pytest.mark.parametrize("seed", range(2))
def test_accepted_statements_have_the_results_of_duckdb(seed: int) -> None:
    accepted, wrong = tried(seed, AT_ONCE)
    assert not wrong, "\n".join(wrong[:5])
    assert accepted > AT_ONCE / 2


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT min(a) AS x0, max(a) AS x1 FROM data",
        "SELECT c, min(a) AS x0, max(a) AS x1 FROM data WHERE a BETWEEN 1 AND 3 GROUP BY c",
        "SELECT max(b) FILTER (WHERE a <= 2 AND b <= 1) AS x0, min(b) FILTER (WHERE b > 0) AS x1 FROM data",
        "SELECT m, quantile_disc(a, 0.9) AS x0, quantile_disc(a, 0) AS x1 FROM data WHERE a < 3 GROUP BY ROLLUP (m)",
        "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY a) AS x0 FROM data WHERE a >= 2",
        "SELECT m, quantile_cont(a, 0.3) AS x0, quantile_cont(b, 0.77) AS x1, median(a) AS x2 FROM data GROUP BY CUBE (m)",
        "SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY a) AS x0 FROM data WHERE a >= 2",
        "SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY a DESC) AS x0, quantile(a, 0.5) AS x1 FROM data",
        "SELECT count(*) AS x0, avg(s.b) AS x1 FROM (SELECT * FROM data WHERE a > 1) AS s WHERE s.c <> 'x'",
        "SELECT c, sum(b) AS x0 FROM (SELECT b, c FROM (SELECT * FROM data WHERE a < 3) AS t WHERE b > 0) AS s GROUP BY c",
    ],
)
def test_results_are_those_of_duckdb(statement: str) -> None:
    truth = checking.Truth(checking.table(5))
    assert checking.disagreement(truth.ours(statement), truth.theirs(statement), statement) is None


@pytest.mark.parametrize("layout", ["apart", "in one list"])
def test_groupings_mean_the_same_however_the_parser_lists_them(layout, monkeypatch) -> None:
    """sqlglot lists ROLLUP, CUBE and GROUPING SETS apart from columns; later versions list all together."""
    parse = sqlglot.parse

    def laid_out(text, **how):
        (found,) = parse(text, **how)
        group = found.args["group"]
        kinds = {"rollup": exp.Rollup, "cube": exp.Cube, "grouping_sets": exp.GroupingSets}
        every = [
            each for name in ("grouping_sets", "cube", "rollup", "expressions") for each in group.args.get(name) or ()
        ]
        for name, kind in kinds.items():
            group.set(name, [each for each in every if layout == "apart" and isinstance(each, kind)])
        kept = [each for each in every if layout == "in one list" or not isinstance(each, tuple(kinds.values()))]
        group.set("expressions", kept)
        return [found]

    monkeypatch.setattr(sqlglot, "parse", laid_out)
    universe = hr.Universe(a=hr.Flag(), b=hr.Flag(), c=hr.Flag(), d=hr.Flag())
    text = "SELECT count(*) AS n FROM data GROUP BY a, ROLLUP (b), CUBE (c), GROUPING SETS ((d), ())"
    sets = [["a", *b, *c, *d] for b in (["b"], []) for c in (["c"], []) for d in (["d"], [])]
    assert [list(columns) for columns in read_statement(text, universe).sets] == sets


@pytest.mark.audit
@pytest.mark.parametrize("seed", range(1000, 1004))
def test_twenty_thousand_statements_are_what_duckdb_says(seed: int) -> None:
    accepted, wrong = tried(seed, LONG)
    assert not wrong, "\n".join(wrong[:5])
    assert accepted > LONG / 2


BETWEEN = {
    "quantile_cont(a, 0.9)": 7.2,
    "percentile_cont(0.1) WITHIN GROUP (ORDER BY a DESC)": 7.2,
    "median(a)": 0.0,
    "1 + quantile_cont(a, 0.9)": 8.2,
}


@pytest.mark.parametrize("output", BETWEEN)
def test_a_quantile_between_two_records_has_a_bar_that_reaches_both(output: str) -> None:
    """0 of the first 182 records, 9 of the other 21: what is 9/10 of the way along is between them, however little noise there is."""
    people = pd.DataFrame({"a": [0] * 182 + [9] * 21, "g": ["x"] * 203})
    universe = hr.Universe(a=hr.Integers(0, 9), g=hr.Categories(["x", "y"]))
    session = hr.open(people, universe=universe, budget=hr.Budget(1e5, 0.0), seed=1)
    (found,) = session.sql(f"SELECT {output} AS q FROM data WHERE g = 'x'").to_dict("records")
    assert (
        found["q_error"] is None or abs(found["q"] - BETWEEN[output]) <= found["q_error"]
    )  # None: anything is possible
    assert duckdb.query_df(people, "data", f"SELECT {output} AS q FROM data").df()["q"][0] == pytest.approx(
        BETWEEN[output]
    )
    nobody = session.sql("SELECT quantile_cont(a, 0.9) AS q FROM data WHERE g = 'x' AND g = 'y'")
    assert nobody["q"][0] is None


def test_a_quantile_that_is_a_record_has_the_bar_of_that_record_alone() -> None:
    people = pd.DataFrame({"a": [0] * 182 + [9] * 21})
    session = hr.open(people, universe=hr.Universe(a=hr.Integers(0, 9)), budget=hr.Budget(1e5, 0.0), seed=1)
    (found,) = session.sql("SELECT quantile_disc(a, 0.9) AS q, quantile_cont(a, 1) AS top FROM data").to_dict("records")
    assert (found["q"], found["q_error"], found["top"], found["top_error"]) == (9, 0, 9, 0)


def test_a_like_pattern_means_what_duckdb_says_with_escapes_and_an_escape_at_its_end_is_itself() -> None:
    people = pd.DataFrame({"c": ["a", "a!", "b%", "b_", "bx", "!"] * 20})
    universe = hr.Universe(c=hr.Categories(["a", "a!", "b%", "b_", "bx", "!"]))
    session = hr.open(people, universe=universe, budget=hr.Budget(1e5, 0.0), seed=1)

    def found(pattern: str, ask: Any) -> int:
        return round(float(ask(f"SELECT count(*) AS n FROM data WHERE c LIKE '{pattern}' ESCAPE '!'")["n"].iloc[0]))

    for pattern in ("b!%", "b!_", "b_", "b%", "a!!", "!!", "%"):
        assert found(pattern, session.sql) == found(pattern, lambda sql: duckdb.query_df(people, "data", sql).df())
    assert [found(pattern, session.sql) for pattern in ("a!", "!", "b!")] == [20, 20, 0]
