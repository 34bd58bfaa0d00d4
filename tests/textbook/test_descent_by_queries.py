"""Gradient descent by statistical queries: Theorems 14 and 21 with their constants, projection, and boosting."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hedgerow import losses
from hedgerow.convex.sets import Box, L2Ball, Unconstrained
from hedgerow.data.row_store import in_memory
from hedgerow.data.row_values import STEPS
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import DistinctRows, Exponential, Laplace
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Seeded
from hedgerow.textbook import descent_by_queries as descent

N = 20_000
GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(-1, 1, (N, 2))
Y = (X @ [1.0, -0.5] + 0.5 * GENERATOR.normal(size=N)) > 0
ROWS = in_memory({"a": X[:, 0], "b": X[:, 1], "y": Y})
RICH = Budget(1e6, 0.5)


def risk(ridge: float = 0.0, **changes) -> descent.ClippedRisk:
    loss = losses.Logistic(target="y", features=["a", "b"], intercept=False, ridge=ridge)
    return descent.ClippedRisk(loss, changes.pop("over", L2Ball(1.0)), **changes)


def average(of: descent.ClippedRisk, theta: np.ndarray) -> float:
    return float(of.loss.value(X @ theta, Y * 1.0).mean()) + of.loss.ridge / 2 * float(theta @ theta)


def least(of: descent.ClippedRisk) -> float:
    """By projected gradient descent on everything, to 10⁻⁶."""
    theta = np.zeros(2)
    for _ in range(3000):
        slope = of.loss.derivative(X @ theta, Y * 1.0)
        theta = of.over.project(theta - 1.0 * (X.T @ slope / N + of.loss.ridge * theta))
    return average(of, theta)


@pytest.mark.audit
@pytest.mark.parametrize("ridge", [0.0, 0.5], ids=["convex", "strongly convex"])
def test_the_expected_excess_on_the_table_is_within_the_theorem(ridge) -> None:
    """The mean of 6 runs, whose spread is far below the bound: it would have to be ten times larger to be noticed by chance."""
    of = risk(ridge)
    plan = descent.configure(of, N, alpha=0.4)
    assert plan.expected_excess <= 0.4 and plan.choice is None and plan.runs == 1
    found = [descent.minimize(plan, ROWS, Accountant(RICH, 0.25), Seeded(s)) for s in range(6)]
    assert np.mean([average(of, theta) for theta in found]) - least(of) <= plan.expected_excess
    assert all(of.over.contains(theta) for theta in found)
    fewer = descent.configure(of, N, alpha=0.4, noise=0.01)
    assert fewer.steps < plan.steps and fewer.query.event.epsilon > plan.query.event.epsilon


def test_the_steps_are_those_of_the_theorems_and_their_bounds_have_the_rates() -> None:
    convex, strong = (descent.configure(risk(ridge), N, alpha=0.4) for ridge in (0.0, 0.5))
    G, D = convex.risk.norm, convex.risk.diameter
    assert (pytest.approx(convex.risk.slope * math.sqrt(2)), 2.0) == (G, D)
    assert convex.step(9) == pytest.approx(D / (G * 3)) and strong.step(9) == pytest.approx(2 / (0.5 * 9))
    for plan, rate in ((convex, 2.0), (strong, 1.0)):
        few, many = (descent.expected_excess(plan.risk, T, plan.query) for T in (10**4, 10**6))
        assert few / many == pytest.approx(100 ** (1 / rate), rel=0.5)
    assert descent.expected_excess(convex.risk, 100, convex.query) == pytest.approx(
        D / 10 * (G / 2 + 1.5 * G), rel=1e-3
    )


def test_a_coordinate_is_a_statistical_query_whose_average_is_the_gradients() -> None:
    of, theta = risk(), np.array([0.3, -0.7])
    slope = of.loss.derivative(X @ theta, Y * 1.0)
    for j in range(2):
        values = of.gradient(ROWS, theta, j)(np.arange(N))
        assert values.min() >= 0 and values.max() <= STEPS
        assert (2 * values.mean() / STEPS - 1) * of.coordinate == pytest.approx((slope * X[:, j]).mean(), abs=1e-5)


def test_iterates_are_projected_where_the_listing_forgets_to() -> None:
    """Were they not, the average would leave a set as small as this."""
    plan = descent.configure(risk(over=Box(-0.01, 0.01)), N, alpha=0.02)
    theta = descent.descend(plan, ROWS, Accountant(RICH, 0.25), Seeded(0))
    assert plan.risk.over.contains(theta)


def test_values_out_of_bounds_are_cut_and_what_is_no_number_is_0() -> None:
    rows = in_memory({"a": [5.0, np.nan, -math.inf, 0.5], "y": [3.0, np.nan, 1.0, 0.2]})
    of = descent.ClippedRisk(losses.Logistic(target="y", features=["a"], intercept=True), L2Ball(1.0))
    found, labels = of.rows(rows, np.arange(4))
    assert found.tolist() == [[1.0, 1.0], [0.0, 1.0], [-1.0, 1.0], [0.5, 1.0]] and labels.tolist() == [1, 0, 1, 0]


@pytest.mark.audit
def test_boosting_chooses_the_best_run_by_bounded_scores_of_a_sample() -> None:
    plan = descent.configure(risk(0.5), N, alpha=1.5, beta=0.2)
    assert plan.runs == math.ceil(math.log2(2 / 0.2)) == 4
    assert isinstance(plan.choice.sample, DistinctRows) and isinstance(plan.choice.inner, Exponential)
    ledger = Accountant(RICH, 0.25)
    theta = descent.minimize(plan, ROWS, ledger, Seeded(0))
    assert average(plan.risk, theta) - least(plan.risk) <= 1.5
    assert len(ledger.entries()) == plan.calls + 1 and ledger.entries()[-1].event == plan.choice
    scored = risk().scores(ROWS, [np.zeros(2), np.array([0.8, -0.4]), np.array([-1.0, 0.0])], np.zeros(2))
    values = scored(np.arange(N))
    assert values.min() >= 0 and values.max() <= STEPS and (values[0] == STEPS // 2).all()
    assert values[1].mean() > values[0].mean() > values[2].mean()


def test_all_of_it_is_refused_before_anything_is_asked() -> None:
    plan, ledger = descent.configure(risk(), N, alpha=0.4), Accountant(Budget(0.01, 0.0))
    with pytest.raises(BudgetExceeded, match=f"for {plan.calls} queries"):
        descent.minimize(plan, ROWS, ledger, Seeded(0))
    assert ledger.spent == 0 and plan.calls == 2 * plan.steps and isinstance(plan.query.event.inner, Laplace)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: risk(over=Unconstrained()), "must be bounded"),
        (lambda: descent.ClippedRisk(losses.Logistic(), L2Ball(1.0)), "must have a target"),
        (lambda: descent.configure(risk(), N, alpha=0.4, beta=2.0), "beta must be between"),
        (lambda: descent.configure(risk(), N, alpha=1e-9), "alpha must be larger"),
    ],
)
def test_plans_outside_the_theorems_are_refused(make, said) -> None:
    with pytest.raises(InvalidInput, match=said):
        make()
