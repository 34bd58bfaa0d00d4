"""Descent by statistical queries from arrays: its bill, its bounds, and its excess over the population."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

import hedgerow as hr
from hedgerow import losses
from hedgerow.erm.by_statistical_queries import population_gap
from hedgerow.textbook.descent_by_queries import ClippedRisk

BALL, BUDGET = hr.L2Ball(1.0), hr.Budget(0.1, 1e-9)
TRUTH = np.array([1.0, -0.5])


def drawn(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows from a population whose least squares are TRUTH, with labels within ±2."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 2))
    return X, X @ TRUTH / 2 + rng.uniform(-0.5, 0.5, rows)


def excess_on_population(theta: np.ndarray) -> float:
    """½E(⟨x, θ − θ*⟩)², with E x xᵀ = 1/3 for features that are uniform on ±1."""
    return float(np.sum((theta - TRUTH / 2) ** 2) / 6)


def test_the_mean_excess_over_the_population_is_within_its_bound() -> None:
    """6 runs, each on rows of its own: their mean is far below the bound, of which a tenth is reached."""
    found = []
    for seed in range(6):
        X, y = drawn(50_000, seed)
        made = hr.erm.by_statistical_queries(
            X, y, loss=losses.Squared(), over=BALL, budget=BUDGET, alpha=1.0, label_bound=2.0, seed=seed
        )
        found.append(excess_on_population(made.theta))
    assert made.risk_bound is not None and made.population_bound is not None
    assert np.mean(found) <= made.population_bound and made.risk_bound <= 1.0 < made.population_bound
    assert len({round(each, 9) for each in found}) == 6


def test_the_bound_for_the_population_adds_what_privacy_allows() -> None:
    risk = ClippedRisk(losses.Squared(target="y", features=["a", "b"], intercept=False), BALL)
    by_hand = 2 * risk.norm * risk.diameter * (math.exp(0.1) - 1 + 1e-9)
    assert population_gap(risk, BUDGET) == pytest.approx(by_hand)
    assert population_gap(risk, hr.Budget(50.0, 0.5)) == 2 * risk.norm * risk.diameter


def test_by_default_the_amount_is_spent_on_the_best_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["hedgerow.erm.by_statistical_queries"], "MOST_CALLS", 400)
    X, y = drawn(3000, 0)
    account = hr.Accountant(hr.Budget(0.05, 1e-6))
    part = account.remaining / 2
    made = hr.erm.by_statistical_queries(X, y, loss=losses.Squared(), over=BALL, budget=account, spend=part, seed=0)
    assert made.cost == pytest.approx(account.spent) and made.cost <= part * (1 + 1e-9)
    assert len(made.events) <= 400 and made.risk_bound is not None
    assert BALL.contains(made.theta) and made.solver == "by_statistical_queries"
    richer = hr.erm.by_statistical_queries(X, y, loss=losses.Squared(), over=BALL, budget=hr.Budget(4.0, 1e-6), seed=0)
    assert richer.risk_bound is not None and richer.risk_bound < made.risk_bound


def test_with_beta_the_best_of_several_runs_is_chosen() -> None:
    X, y = drawn(200_000, 1)
    made = hr.erm.by_statistical_queries(
        X,
        y,
        loss=losses.Logistic(ridge=1.0),
        over=BALL,
        budget=hr.Budget(1.0, 1e-9),
        alpha=3.0,
        beta=0.5,
        size=8,
        seed=1,
    )
    assert made.risk_bound == 3.0 and made.events[-1] != made.events[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"budget": hr.Budget(1.0, 1e-9, "add-remove")}, "neighbours must be 'replace'"),
        ({"budget": hr.Budget(1e-9, 0.0), "alpha": 0.01}, "cost must be at most"),
        ({"budget": hr.Budget(1e-12, 0.0)}, "pay for one step"),
        ({"y": [1.0]}, "one label for each"),
        ({"over": hr.Unconstrained()}, "must be bounded"),
        ({"seed": 1, "noise": object()}, "must not both"),
    ],
)
def test_workloads_that_cannot_be_planned_are_refused(changes, said) -> None:
    X, y = drawn(100, 0)
    given = {"X": X, "y": y, "loss": losses.Squared(), "over": BALL, "budget": BUDGET, **changes}
    with pytest.raises(hr.HedgerowError, match=said):
        hr.erm.by_statistical_queries(given.pop("X"), given.pop("y"), **given)


def test_an_accuracy_that_costs_more_than_may_be_spent_is_refused_before_any_charge() -> None:
    """The ledger alone would refuse it after some of its queries were paid."""
    X, y = drawn(50_000, 0)
    ask = {"loss": losses.Squared(), "over": BALL, "alpha": 1.0, "label_bound": 2.0, "seed": 0}
    account = hr.Accountant(BUDGET)
    hr.erm.by_statistical_queries(X, y, budget=account, **ask)
    cost = account.spent
    account = hr.Accountant(BUDGET)
    with pytest.raises(hr.BudgetExceeded, match="what may be spent"):
        hr.erm.by_statistical_queries(X, y, budget=account, spend=0.8 * cost, **ask)
    assert account.spent == 0
