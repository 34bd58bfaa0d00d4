"""A plan states what theorems promise and what a simulation on public rows showed. It reads no sensitive table."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import math
import sys
from typing import Any, get_args

import numpy as np
import pytest
from people import SMALL, frame

import hedgerow as hr
from hedgerow import losses
from hedgerow.engine.matrix import plan_matrix
from hedgerow.planning import lower_bounds, simulation
from hedgerow.planning.report import FOUND
from hedgerow.planning.theorems import (
    LEAST_BETA,
    LEAST_DELTA,
    LEAST_EPSILON,
    QUERIES_AT_MOST,
    Goal,
    Mechanism,
    Unknown,
    convex_mechanisms,
    mechanisms,
    noise_width,
    solve,
)
from hedgerow.textbook import bounds, pmw

BUDGETS = [hr.Budget(1.0, 1e-6), hr.Budget(0.5, 0.0), hr.Budget(1.0, 1e-6, "add-remove")]


ASKED = hr.minimize(losses.Squared(target="smoker", features=["age"]), over=hr.L1Ball(1.0)).on(SMALL)
EVERY = [*mechanisms(128, 5), *convex_mechanisms([ASKED], 128)]


def goal_of(mechanism: Mechanism, budget: hr.Budget) -> Goal:
    fits = mechanism.about == "minimizers"
    wide = 0.3 * mechanism.largest
    rows = 10**9 if "PMW" in mechanism.name else 10**4 if mechanism.in_expectation else 10**7
    return Goal(budget, rows, wide, 3 if fits else 1000, 0.05)


@functools.cache
def solved(number: int, unknown: Unknown, budget: hr.Budget) -> float | None:
    return solve(EVERY[number], goal_of(EVERY[number], budget), unknown)


CASES = [  # the fits plan many steps, so they are tried at one budget
    pytest.param(m, u, b, id=f"{m.name}-{u}-{b}")
    for m, u, b in itertools.product(EVERY, get_args(Unknown), BUDGETS)
    if not m.in_expectation or b == BUDGETS[0]
]


@pytest.mark.parametrize(("mechanism", "unknown", "budget"), CASES)
def test_every_quantity_is_found_from_all_others(mechanism: Mechanism, unknown: Unknown, budget: hr.Budget) -> None:
    """The value found is enough, and 5 % less (of questions: more) is not."""
    goal = goal_of(mechanism, budget)
    found = solved(EVERY.index(mechanism), unknown, budget)
    if found is None or found in (0.0, 1.0, LEAST_BETA, LEAST_DELTA, LEAST_EPSILON, QUERIES_AT_MOST):
        return
    assert mechanism.suffices(goal.having(unknown, found))
    less = found * (1.05 if unknown == "queries" else 0.95) + (1 if unknown == "queries" else 0)
    with contextlib.suppress(hr.InvalidInput, hr.BudgetExceeded):
        assert not mechanism.suffices(goal.having(unknown, max(1.0, math.floor(less)) if unknown == "rows" else less))


def test_every_bound_is_used_for_some_budget() -> None:
    """Each mechanism promises something at some budget, for every unknown: the test above is about something."""
    for unknown in get_args(Unknown):
        for number, mechanism in enumerate(EVERY):
            if unknown == "beta" and mechanism.in_expectation:
                continue
            found = [solved(number, unknown, b) for b in BUDGETS[: 1 if mechanism.in_expectation else None]]
            assert any(each is not None for each in found) or mechanism.name in ("output perturbation", "SmallDB"), (
                unknown
            )


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("accuracy", [0.3, 0.02])
def test_the_rows_that_a_plan_says_are_enough_are_and_half_of_them_are_not(budget: hr.Budget, accuracy: float) -> None:
    made = hr.plan(universe=SMALL, budget=budget, accuracy=accuracy, queries=1000, simulate=False)
    theorems = {m.name: m for m in mechanisms(SMALL.size)}
    assert {option.mechanism for option in made.options} == theorems.keys()
    for option in made.options:
        goal = Goal(budget, 1.0, accuracy, 1000, 0.05)
        if option.rows is not None:
            assert theorems[option.mechanism].suffices(goal.having("rows", option.rows))
            assert not theorems[option.mechanism].suffices(goal.having("rows", option.rows / 2))
        else:
            assert budget.neighbours == "add-remove" and option.how.startswith("hr.")


def test_a_plan_finds_any_one_quantity_from_the_others() -> None:
    facts = {"universe": SMALL, "rows": 10**6, "accuracy": 0.05, "simulate": False}
    for unknown in ("queries", "beta", "epsilon", "delta"):
        made = hr.plan(budget=hr.Budget(1.0, 1e-6), solve_for=unknown, **facts)
        assert made.best.solution is not None and made.columns[2] == FOUND[unknown] and made.limit is None
        assert FOUND[unknown] in made.sentence and made.verdict is None
        assert json.loads(made.json)["solve_for"] == unknown
    by_rows = hr.plan(budget=hr.Budget(1.0, 1e-6), solve_for="rows", **facts)
    assert by_rows.best.rows is not None and by_rows.rows is None and by_rows.solve_for is None
    impossible = hr.plan(budget=hr.Budget(1e-5, 0.0), solve_for="beta", **(facts | {"accuracy": 1e-6}))
    assert impossible.best.solution is None and "no mechanism can promise that" in impossible.sentence


def test_convex_questions_are_planned_beside_counts() -> None:
    asked = [
        hr.minimize(losses.Logistic(target="smoker", features=["age"]), over=hr.L2Ball(1.0)),
        hr.count(smoker=True),
    ]
    both = hr.plan(universe=SMALL, budget=hr.Budget(1.0, 1e-6), rows=10**6, workload=asked, simulate=False)
    convex = hr.plan(universe=SMALL, budget=hr.Budget(1.0, 1e-6), rows=10**6, workload=asked[:1])
    assert {option.about for option in both.options} == {"counts", "minimizers", "population", "scores"}
    assert both.best.about == "counts" and {option.about for option in convex.options} == {"minimizers"}
    assert convex.best.in_expectation and "expected excess" in convex.sentence and convex.verdict is None
    assert convex.queries == 1 and convex.limit is not None and "an excess of" in convex.limit


def test_a_stated_workload_is_compared_with_its_best_factorization() -> None:
    facts = {"universe": SMALL, "budget": hr.Budget(1.0, 1e-6), "rows": 10_000, "simulate": False}
    made = hr.plan(workload=hr.marginals(2), accuracy=0.05, **facts)
    (option,) = [option for option in made.options if option.mechanism == "matrix mechanism"]
    tables = [("age", "region")] if len(SMALL.names) == 2 else list(itertools.combinations(SMALL.names, 2))
    exact = plan_matrix(facts["budget"], SMALL, tables, [], rows=10_000, beta=0.05).plan
    assert option.error == pytest.approx(exact.widest, rel=1e-3) and option.typical == pytest.approx(
        exact.typical, rel=1e-3
    )
    assert option.rows == pytest.approx(10_000 * exact.widest / 0.05, rel=1e-3) and made.best is option
    for other in (hr.plan(workload=hr.marginals(2), **(facts | {"budget": hr.Budget(1.0, 0.0)})), hr.plan(**facts)):
        assert not [o for o in other.options if o.mechanism == "matrix mechanism" and o.error is not None]


def test_a_release_of_the_workload_is_planned_for_its_own_answers_alone() -> None:
    """Its promise is about 2 answers, so it is no answer to how many questions a table is good for, nor to its verdict."""
    asked = [hr.count(smoker=True), hr.count(smoker=False)]
    facts = {"universe": SMALL, "budget": hr.Budget(1.0, 1e-6), "rows": 10**5, "workload": asked, "simulate": False}
    made = hr.plan(**facts)
    assert made.best.answers == 2 and made.sentence.startswith("The workload's 2 answers at ε")
    others = [option for option in made.options if option.about == "counts" and option.answers is None]
    (told,) = [o for o in others if o.error == min(each.error for each in others if each.error is not None)]
    assert made.verdict is not None and f"{100 * told.error:.2g} %" in made.verdict
    most = hr.plan(accuracy=0.05, solve_for="queries", **facts)
    (option,) = [option for option in most.options if option.answers is not None]
    assert option.solution == 2 and most.best.solution > 2 and "2, of the workload" in str(most)


def test_a_plan_says_what_no_mechanism_can_do() -> None:
    made = hr.plan(universe=SMALL, budget=hr.Budget(1.0, 1e-6), rows=1000, queries=100, simulate=False)
    assert made.limit is not None and "No mechanism can promise less than ±" in made.limit and made.limit in str(made)
    assert made.best.error is not None and max(bound.error for bound in made.lower_bounds) < made.best.error
    many = hr.plan(universe=SMALL, budget=hr.Budget(1.0, 1e-6), rows=100, queries=100_000, simulate=False)
    assert many.limit is not None and "one-way functions" in many.limit and "one-way" not in made.limit


def test_a_plan_says_how_many_rows_any_answers_take() -> None:
    """Proposition 9 needs a universe of 2·ln 10/α² cells, and α below ⅛."""
    wide = hr.Universe.from_sizes({"a": 100, "b": 100})
    facts = {"budget": hr.Budget(1.0, 1e-6), "queries": 1000, "simulate": False}
    made = hr.plan(universe=wide, accuracy=0.05, **facts)
    assert made.limit is not None and f"{lower_bounds.evaluations(0.05, 1000):,.0f} evaluations" in made.limit
    for universe, accuracy in ((wide, 0.13), (SMALL, 0.05)):
        assert "evaluations" not in (hr.plan(universe=universe, accuracy=accuracy, **facts).limit or "")


def test_a_bound_without_a_constant_is_not_stated_as_a_limit() -> None:
    lasso = [hr.minimize(losses.Squared(target="smoker", features=["age"]), over=hr.L1Ball(1.0))]
    made = hr.plan(universe=SMALL, budget=hr.Budget(0.1, 1e-12), rows=10**5, workload=lasso, simulate=False)
    assert [bound.by for bound in made.lower_bounds if not bound.constant] == ["Talwar et al., Theorem 5.8"]
    assert made.limit is not None and "Talwar" not in made.limit


def test_a_workload_that_is_too_long_is_not_planned_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"universe": SMALL, "budget": hr.Budget(1.0, 1e-6), "rows": 10_000, "simulate": False}
    asked = [hr.count(smoker=True), hr.count(smoker=False)]
    monkeypatch.setattr(sys.modules["hedgerow.planning.plan"], "MOST_LISTED", 1)
    assert "matrix mechanism" in {option.mechanism for option in hr.plan(workload=asked[:1], **facts).options}
    assert "matrix mechanism" not in {option.mechanism for option in hr.plan(workload=asked, **facts).options}


def test_a_mechanism_that_cannot_be_run_comes_last() -> None:
    made = hr.plan(universe=SMALL, budget=hr.Budget(1.0, 1e-6), accuracy=0.02, queries=1000, simulate=False)
    counts = [option for option in made.options if option.about == "counts"]
    assert not counts[-1].runs and counts[-1].mechanism == "SmallDB" and "too large to run" in str(made)
    tiny = hr.Universe(flag=hr.Flag())
    small = hr.plan(universe=tiny, budget=hr.Budget(1.0, 1e-6), accuracy=0.2, queries=3, simulate=False)
    assert all(option.runs for option in small.options)


@pytest.mark.parametrize("error", [None, 0.5, 0.02])
def test_no_rows_are_promised_that_the_simulation_did_not_find_enough(
    monkeypatch: pytest.MonkeyPatch, error: float | None
) -> None:
    """Whatever is tried has bars of this width, or none: more than the accuracy, or just that."""
    monkeypatch.setattr(
        simulation, "simulate_session", lambda u, b, rows, **_: simulation.SimulatedErrors(rows, error, 0.001, 0.01)
    )
    made = hr.plan(universe=SMALL, budget=hr.Budget(1.0, 1e-6), accuracy=0.02, queries=10)
    (tried,) = (option for option in made.options if option.mechanism == "practical profile")
    assert (tried.rows is not None) == (error == 0.02)
    if tried.rows is None:
        assert made.best is not tried and "practical profile" not in made.sentence


def test_the_theorems_are_those_of_the_textbook_said_of_every_answer() -> None:
    budget = hr.Budget(1.0, 1e-6)
    rows = {m.name: solve(m, Goal(budget, 1.0, 0.3, 1000, 0.05), "rows") or 0.0 for m in mechanisms(128)}
    assert rows["online PMW"] == pytest.approx(pmw.rows_needed(budget, 0.1, 0.05, 1000, 128), rel=1e-4)
    assert 0 < rows["online PMW"] <= bounds.pmw_rows(0.1, 0.05, 1.0, 1e-6, 1000, 128)
    assert 0 < rows["MWEM"] <= bounds.mwem_rows(0.1, 0.05, 1.0, 1e-6, 1000, 128)
    assert rows["SmallDB"] == pytest.approx(bounds.small_db_rows(0.3, 0.05, 1.0, 1000, 128), rel=1e-4)


@pytest.mark.parametrize("budget", BUDGETS[:2], ids=str)
def test_noise_on_every_answer_stays_within_what_is_said_of_it(budget: hr.Budget) -> None:
    """All of k draws are within the width but for β. 400 runs at β = 0.5: a true rate above it fails 1 in 10⁶."""
    from hedgerow.privacy.allowance import Amount
    from hedgerow.privacy.events import Laplace

    k, runs, beta = 50, 400, 0.5
    event = Amount.share_of(budget).noise(float(k), math.sqrt(k))
    rng = np.random.default_rng(0)
    draw = rng.laplace(scale=event.scale, size=(runs, k)) if isinstance(event, Laplace) else rng.normal(scale=event.sigma, size=(runs, k))  # fmt: skip
    outside = np.mean(np.abs(draw).max(axis=1) > noise_width(budget, k, beta))
    assert 0.01 < outside < beta + 5 * math.sqrt(0.25 / runs)
    assert budget.cost(event) <= budget.total * (1 + 1e-9)


@pytest.fixture(scope="module")
def made() -> hr.Plan:
    return hr.plan(universe=SMALL, budget=hr.Budget(1.0, 1e-6), rows=20_000, accuracy=0.02, queries=1000)


def test_a_plan_ranks_by_the_error_and_says_what_to_do(made: hr.Plan) -> None:
    errors = [math.inf if o.error is None else o.error for o in made.options if o.about == "counts" and o.runs]
    assert errors == sorted(errors) and made.best.mechanism == "practical profile"
    assert made.best.rows is not None and made.best.typical is not None and made.best.error is not None
    assert made.best.typical < made.best.error < 0.02 and made.best.rows < 20_000
    assert "20,000 rows: practical profile (hr.open). The bars of a simulated session were at most ±" in made.sentence
    named = {"practical profile", "noise on every answer", "online PMW", "MWEM", "SmallDB", "sampled rows"}
    assert {option.mechanism for option in made.options if option.about == "counts"} == named
    low, high = made.best.interval or (0.0, 0.0)
    assert low < made.best.typical < high <= 4 * low


def test_only_promises_of_theorems_are_called_bounds_never_results_of_simulations(made: hr.Plan) -> None:
    assert [option.mechanism for option in made.options if option.simulated] == ["practical profile"]
    for option, line in zip(made.options, made.lines, strict=True):
        error, rows = line[2], line[4]
        assert error.split()[0] == ("about" if option.simulated else "at" if option.error is not None else "no")
        assert rows.startswith("about ") == option.simulated
    by_rows = hr.plan(universe=SMALL, budget=hr.Budget(1.0, 1e-6), accuracy=0.02, queries=1000)
    for sentence in (made.sentence, by_rows.sentence):
        assert "is no bound" in sentence and "promise" not in sentence
    theorems = [
        hr.plan(universe=SMALL, budget=hr.Budget(1.0, 1e-6), queries=1000, simulate=False, **{what: size}).sentence
        for what, size in (("rows", 10**7), ("accuracy", 0.02))
    ]
    assert (
        "promises an error of at most ±" in theorems[0]
        and "needs " in theorems[1]
        and not any("no bound" in each for each in theorems)
    )


def test_a_plan_is_a_table_a_page_and_a_record(made: hr.Plan) -> None:
    record = json.loads(made.json)
    assert record["sentence"] == made.sentence and record["options"][0]["mechanism"] == "practical profile"
    assert str(made).count("\n") >= 6 and made.sentence in str(made)
    assert "<table>" in made._repr_html_() and made.population is not None and made.population in str(made)


def test_the_simulated_errors_are_within_their_bars_and_fall_with_the_rows() -> None:
    few, many = (
        simulation.simulate_session(SMALL, hr.Budget(1.0, 1e-6), n, queries=100, beta=0.05) for n in (2000, 2_000_000)
    )
    for found in (few, many):
        assert found.error is not None and found.typical <= found.largest <= found.error
    assert many.error is not None and few.error is not None and many.error < few.error / 100
    assert many.rows == 2_000_000


def test_public_rows_are_what_is_asked_about() -> None:
    data = simulation.draw_rows(SMALL, 500, frame(50))
    assert data.rows == 500 and data.marginal(["age"]).tolist() != [0]
    seen = set(map(tuple, frame(50)[["age", "region"]].to_numpy().tolist()))
    table = data.marginal(["age", "region"])
    assert {tuple(cell) for cell in np.argwhere(table).tolist()} <= seen
    made = hr.plan(
        universe=SMALL,
        budget=hr.Budget(1.0, 1e-6),
        rows=5000,
        queries=10_000,
        public=frame(5000),
        workload=hr.marginals(2),
    )
    by = {option.mechanism: option.by for option in made.options}
    assert by["practical profile"] == "simulation on public rows"


def test_a_universe_too_large_for_counts_is_drawn_row_by_row() -> None:
    large = hr.Universe({f"x{i}": hr.Integers(0, 9) for i in range(6)})
    data = simulation.draw_rows(large, 300)
    assert data.rows == 300 and large.size > simulation.DENSE


@pytest.mark.parametrize(
    ("asked", "most"),
    [({"rows": 500}, 1), ({"rows": 500, "workload": ["age ~ region"]}, 2), ({"rows": 500, "accuracy": 0.2}, 4)],
)
def test_a_plan_opens_each_simulated_session_once(
    monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], most: int
) -> None:
    opened, opening = [], simulation.open_session
    monkeypatch.setattr(
        simulation,
        "open_session",
        lambda data, **how: opened.append((data.rows, str(how["workload"]))) or opening(data, **how),
    )
    hr.plan(universe=SMALL, budget=hr.Budget(1.0, 1e-6), **asked)
    assert len(opened) == len(set(opened)) <= most


def test_only_an_accuracy_ranks_by_the_rows() -> None:
    made = hr.plan(universe=SMALL, budget=hr.Budget(1.0, 1e-6), accuracy=0.05, queries=100, simulate=False)
    rows = [option.rows for option in made.options if option.about == "counts" and option.runs]
    assert rows == sorted(rows, key=lambda r: math.inf if r is None else r)
    assert made.rows is None and "needs " in made.sentence and "within" not in made.columns


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "for a number of rows or for an accuracy"),
        ({"rows": 0}, "rows must be"),
        ({"accuracy": 2}, "accuracy must be"),
        ({"rows": 10, "beta": 0}, "beta must be"),
        ({"rows": 10, "queries": 0}, "queries must be"),
        ({"rows": 10, "budget": 1}, "universe= and budget="),
        ({"rows": 10, "workload": [1]}, "workload must be"),
        ({"rows": 10, "workload": []}, "at least one question"),
        ({"rows": 10, "solve_for": "n"}, "solve_for must be one of"),
        ({"rows": 10, "solve_for": "queries"}, "for both if solve_for is another quantity"),
        ({"rows": 10, "solve_for": "rows"}, "for a number of rows or for an accuracy"),
        ({"rows": 10, "public": [1]}, "pandas frame"),
    ],
)
def test_senseless_arguments_are_refused(given: dict[str, object], told: str) -> None:
    with pytest.raises(hr.InvalidInput, match=told):
        hr.plan(**{"universe": SMALL, "budget": hr.Budget(1.0, 1e-6), **given})  # type: ignore[arg-type]
