"""A workload is written as questions, SQL, formulas and names of columns, and means the same as the questions spelled out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from people import frame, opened

import hedgerow as hr
from hedgerow.cli.file import workload_in
from hedgerow.profiles import read_workload
from hedgerow.query.counts import bound

UNIVERSE = hr.Universe(
    income=hr.Integers(0, 9),
    sex=hr.Categories(["F", "M"]),
    age=hr.Integers(0, 5),
    region=hr.Categories(["n", "s", "w"]),
)


def sets(workload: object) -> list[tuple[str, ...]]:
    read = read_workload(workload, UNIVERSE)
    assert isinstance(read, list)
    return [names for query in read for names in bound(query, UNIVERSE).tables]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["income ~ sex + age"], [("income", "sex"), ("income", "age"), ("sex", "age")]),
        (["income ~ sex:age"], [("income", "sex", "age"), ("sex", "age")]),
        (["income ~ sex * age"], [("income", "sex"), ("income", "age"), ("income", "sex", "age"), ("sex", "age")]),
        ("income ~ region", [("income", "region")]),
        ([("sex", "income")], [("income", "sex")]),
        ([["age"]], [("age",)]),
        (["region"], [("income", "region"), ("sex", "region"), ("age", "region")]),
        (["SELECT sex, AVG(income) FROM data WHERE age > 3 GROUP BY sex"], [("income", "sex", "age"), ("sex", "age")]),
        (["select count(*) from data where region = 'n'"], [("region",)]),
        (['mean("income", where=count(sex="F"))'], [("income", "sex"), ("sex",)]),
        ([hr.count(sex="F"), "age ~ sex"], [("sex",), ("sex", "age")]),
    ],
)
def test_a_formula_becomes_tables_of_its_columns(written, expected) -> None:
    others = set(UNIVERSE.names) - {name for names in expected for name in names}  # each by itself
    assert {frozenset(names) for names in sets(written)} == {frozenset(names) for names in (*expected, *zip(others))}


def test_a_call_of_a_workload_and_a_workload_stay_what_they_are() -> None:
    assert read_workload("marginals(2)", UNIVERSE) == hr.marginals(2) or repr(
        read_workload("marginals(2)", UNIVERSE)
    ) == repr(hr.marginals(2))
    assert read_workload(None, UNIVERSE) is None
    assert read_workload([hr.count(sex="F")], UNIVERSE) == [hr.count(sex="F")]
    assert read_workload((whole := hr.marginals(1)), UNIVERSE) is whole


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (["wealth"], "must name columns of the universe. Found 'wealth'"),
        (["income ~ wealth"], "Found 'wealth'"),
        ([("sex", "wealth")], "Found 'wealth'"),
        (["income ~ sex ~ age"], "A formula must have one ~"),
        (["~ sex"], "A formula must have one ~"),
        (["income ~ income"], "on both sides"),
        ([3], "workload must be a workload"),
        ([()], "workload must be a workload"),
        (["SELECT wealth FROM data"], "wealth"),
    ],
)
def test_questions_without_a_column_are_refused(written, reason) -> None:
    with pytest.raises(hr.HedgerowError, match=reason):
        read_workload(written, UNIVERSE)


def test_a_session_opened_with_a_formula_is_one_opened_with_its_tables(table) -> None:
    spelled = [hr.marginal("age", "sex"), hr.marginal("age", "region"), hr.marginal("sex", "region")]
    spelled.append(hr.marginal("smoker"))
    written, listed = (opened(table, workload=each) for each in ("age ~ sex + region", spelled))
    questions = [hr.marginal("age", "sex"), hr.count(smoker=True)]
    for one, other in zip(written.ask_all(questions), listed.ask_all(questions), strict=True):
        assert np.array_equal(one.value, other.value)
    assert written.spent == listed.spent


def test_a_ledger_is_resumed_with_the_same_text(tmp_path) -> None:
    url, rows = f"sqlite:///{tmp_path / 'people.ledger'}", frame(2000)
    budget = hr.Budget(1.0, 1e-6)
    about = {"universe": opened(rows).universe, "budget": budget, "ledger": url, "seed": 1, "progress": False}
    first = hr.open(rows, workload=["age ~ sex"], **about)
    value = first.ask(hr.marginal("age", "sex")).value
    first.close()
    again = hr.open(rows, workload=["age ~ sex"], **about)
    assert np.array_equal(again.ask(hr.marginal("age", "sex")).value, value) and again.spent == first.spent
    again.close()


def test_a_file_of_the_command_line_passes_workloads_on() -> None:
    assert workload_in(["income ~ sex", ["sex", "age"]]) == ["income ~ sex", ("sex", "age")]
    assert workload_in("marginals(2)") == "marginals(2)"


def test_a_plan_says_what_a_workload_does_to_its_own_and_to_other_questions() -> None:
    rng = np.random.default_rng(1)
    universe = hr.Universe({f"c{i}": hr.Integers(0, 9) for i in range(8)})
    rows = pd.DataFrame({f"c{i}": rng.integers(0, 10, 4000) for i in range(8)})
    rows["c5"] = (rows.c0 + rng.integers(0, 5, 4000)) % 10
    about = {"universe": universe, "budget": hr.Budget(0.3, 1e-6), "rows": 4000, "public": rows, "progress": False}
    plan = hr.plan(workload=["c0 ~ c5"], **about)
    assert plan.effect is not None and plan.effect.declared <= plan.effect.declared_without
    assert "With this workload its questions are typically off by" in str(plan) and '"effect"' in plan.json
    assert hr.plan(**about).effect is None
