"""A plan says what theorems promise, both ways, and what a simulation on public rows showed: it reads no sensitive table."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from people import SMALL, frame

import hedgerow as hr
from hedgerow.planning import simulation
from hedgerow.planning.theorems import mechanisms, noise_width
from hedgerow.textbook import bounds, pmw

BUDGETS = [hr.Budget(1.0, 1e-6), hr.Budget(0.5, 0.0), hr.Budget(1.0, 1e-6, "add-remove")]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_the_error_at_n_and_the_rows_for_an_error_are_inverse(budget: hr.Budget) -> None:
    for mechanism in mechanisms(budget, 1000, 0.05, 128):
        n = mechanism.rows(0.05)
        assert mechanism.error(n) == pytest.approx(0.05, rel=0.02)
        assert mechanism.error(100 * n) < 0.05 < mechanism.error(n / 2)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("accuracy", [0.3, 0.02])
def test_the_rows_that_a_plan_says_are_enough_are_and_half_of_them_are_not(budget: hr.Budget, accuracy: float) -> None:
    made = hr.plan(universe=SMALL, budget=budget, accuracy=accuracy, queries=1000, simulate=False)
    theorems = {m.name: m for m in mechanisms(budget, 1000, 0.05, SMALL.size)}
    assert {option.mechanism for option in made.options} == theorems.keys()
    for option in made.options:
        assert option.rows is not None
        assert theorems[option.mechanism].error(option.rows) <= 1.02 * accuracy
        assert theorems[option.mechanism].error(option.rows / 2) > accuracy


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
    found = {m.name: m for m in mechanisms(budget, 1000, 0.05, 128)}
    assert found["online PMW"].rows(0.3) == pytest.approx(pmw.rows_needed(budget, 0.1, 0.05, 1000, 128), rel=1e-9)
    assert found["online PMW"].rows(0.3) <= bounds.pmw_rows(0.1, 0.05, 1.0, 1e-6, 1000, 128)
    assert found["MWEM"].rows(0.3) <= bounds.mwem_rows(0.1, 0.05, 1.0, 1e-6, 1000, 128)
    assert found["SmallDB"].rows(0.1) == bounds.small_db_rows(0.1, 0.05, 1.0, 1000, 128)


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
    errors = [math.inf if option.error is None else option.error for option in made.options]
    assert errors == sorted(errors) and made.best.mechanism == "practical profile"
    assert made.best.rows is not None and made.best.typical is not None and made.best.error is not None
    assert made.best.typical < made.best.error < 0.02 and made.best.rows < 20_000
    assert "20,000 rows: practical profile (hr.open). The bars of a simulated session were at most ±" in made.sentence
    assert {option.mechanism for option in made.options} == {"practical profile", "noise on every answer", "online PMW", "MWEM", "SmallDB"}  # fmt: skip


def test_what_a_simulation_showed_is_nowhere_called_a_bound_and_what_a_theorem_promises_is(made: hr.Plan) -> None:
    assert [option.mechanism for option in made.options if option.simulated] == ["practical profile"]
    for option, line in zip(made.options, made.lines, strict=True):
        error, rows = line[1], line[3]
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
    assert made.best.by == "simulation on public rows"


def test_a_universe_too_large_for_counts_is_drawn_row_by_row() -> None:
    large = hr.Universe({f"x{i}": hr.Integers(0, 9) for i in range(6)})
    data = simulation.draw_rows(large, 300)
    assert data.rows == 300 and large.size > simulation.DENSE


def test_only_an_accuracy_ranks_by_the_rows() -> None:
    made = hr.plan(universe=SMALL, budget=hr.Budget(1.0, 1e-6), accuracy=0.05, queries=100, simulate=False)
    rows = [option.rows for option in made.options]
    assert rows == sorted(rows, key=lambda r: math.inf if r is None else r)
    assert made.rows is None and "needs " in made.sentence and "within" not in made.columns


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "rows= or for an accuracy="),
        ({"rows": 0}, "rows must be"),
        ({"accuracy": 2}, "accuracy must be"),
        ({"rows": 10, "beta": 0}, "beta must be"),
        ({"rows": 10, "queries": 0}, "queries must be"),
        ({"rows": 10, "budget": 1}, "universe= and budget="),
        ({"rows": 10, "workload": [1]}, "workload of a plan"),
        ({"rows": 10, "workload": []}, "at least one question"),
        ({"rows": 10, "public": [1]}, "pandas frame"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, object], told: str) -> None:
    with pytest.raises(hr.InvalidInput, match=told):
        hr.plan(**{"universe": SMALL, "budget": hr.Budget(1.0, 1e-6), **given})  # type: ignore[arg-type]
