"""The private lasso, its refit, and the scaled-down hard instance."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from preparing import prepared

from hedgerow import errors
from hedgerow.convex.sets import L1Ball
from hedgerow.erm.solver import Draw
from hedgerow.erm.solvers.frank_wolfe import descend, plan_steps
from hedgerow.erm.solvers.lasso import lasso
from hedgerow.erm.solvers.whitened_descent import with_huber_loss
from hedgerow.losses import Squared
from hedgerow.privacy import events
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.noise import Seeded
from hedgerow.research.hard_instance import hard_instance


def sparse_regression(n: int, p: int, s: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, theta = rng.choice([-1.0, 1.0], (n, p)), np.zeros(p)
    theta[:s] = rng.choice([-1.0, 1.0], s) / s
    return X, np.clip(X @ theta + 0.1 * rng.normal(size=n), -1, 1), theta


def risk(X, y, theta) -> float:
    return float(np.mean((X @ theta - y) ** 2)) / 2


def test_the_refit_beats_the_steps_of_frank_wolfe_at_the_same_budget() -> None:
    X, y, theta = sparse_regression(20_000, 50)
    excess = {
        refit: np.mean([risk(X, y, lasso(X, y, budget=Budget(1.0, 1e-6), refit=refit, seed=s).theta) for s in range(3)])
        - risk(X, y, theta)
        for refit in (False, True)
    }
    assert excess[True] < excess[False] / 3


def test_the_excess_risk_of_algorithm_4_is_within_its_bound() -> None:
    X, y, theta = sparse_regression(5000, 30)
    for seed in range(3):
        found = lasso(X, y, budget=Budget(1.0, 1e-6), refit=False, seed=seed)
        assert risk(X, y, found.theta) - risk(X, y, theta) <= found.risk_bound


@pytest.mark.parametrize("refit", [False, True])
def test_the_result_is_in_the_ball(refit) -> None:
    X, y, _ = sparse_regression(5000, 30)
    found = lasso(X, y, budget=Budget(1.0, 1e-6), radius=0.5, refit=refit, seed=0)
    assert np.abs(found.theta).sum() <= 0.5 * (1 + 1e-9)


def test_a_label_bound_ten_times_too_large_costs_little() -> None:
    """Residuals are held at the size of the labels that was measured, not at the bound."""
    X, y, theta = sparse_regression(20_000, 50)
    found = lasso(X, y, budget=Budget(1.0, 1e-6), label_bound=10.0, seed=0)
    assert risk(X, y, found.theta) - risk(X, y, theta) < 0.01 * np.var(y)


def test_the_events_are_fixed_before_a_feature_is_named_and_fit_the_budget() -> None:
    X, y, _ = sparse_regression(2000, 20)
    budget = Budget(1.0, 1e-6)
    runs = [lasso(rows, labels, budget=budget, seed=0) for rows, labels in ((X, y), (0 * X, y), (X[:, ::-1], 0 * y))]
    assert len({run.events for run in runs}) == 1
    assert {type(event) for event in runs[0].events} == {events.Gaussian, events.Exponential}
    assert 0.999 * budget.total < sum(map(budget.cost, runs[0].events)) <= budget.total


def test_a_step_on_smaller_slopes_is_taken_in_their_units() -> None:
    """Residuals at the start are 0 or ±2, so all slopes, scores and Δ are in proportion to the width: so are no choices."""
    rng = np.random.default_rng(0)
    X, y = rng.choice([-1.0, 1.0], (400, 20)), rng.choice([-1.0, 1.0], 400)
    over = L1Ball(1.0)

    def picked(width: float, seed: int) -> list[int]:
        problem = with_huber_loss(prepared(X, y, Squared(), over, Budget(0.02, 1e-6), norm="linf"), 1.0)
        allowance = Allowance.of(problem.budget)
        event, _ = plan_steps(problem, allowance, 1)
        draw = Draw(Seeded(seed), allowance.charge(event))
        return np.flatnonzero(descend(with_huber_loss(problem, width), (event,), draw)).tolist()

    chosen = [picked(1.0, seed) for seed in range(20)]
    assert chosen == [picked(0.25, seed) for seed in range(20)]
    assert len({tuple(pick) for pick in chosen}) > 3  # noise decides some of them


def test_one_feature_whose_steps_cancel_is_refitted_all_the_same() -> None:
    """+, + and − in three steps of weights 1, ⅔ and ½ leave exactly 0, in about every eighth run."""
    X = np.zeros((50, 1))
    steps = [lasso(X, X[:, 0], budget=Budget(1.0, 1e-6), iterations=3, refit=False, seed=s).theta[0] for s in range(40)]
    assert 0.0 in steps
    for seed in range(40):
        found = lasso(X, X[:, 0], budget=Budget(1.0, 1e-6), iterations=3, seed=seed)
        assert np.isfinite(found.theta).all()


def test_a_pure_budget_runs_without_a_refit_and_refuses_one() -> None:
    X, y, _ = sparse_regression(500, 20)
    found = lasso(X, y, budget=Budget(1.0, 0.0), seed=0)
    assert all(isinstance(event, events.Exponential) for event in found.events)
    with pytest.raises(errors.InvalidInput, match="delta"):
        lasso(X, y, budget=Budget(1.0, 0.0), refit=True)


def test_units_of_features_and_targets_do_not_matter() -> None:
    X, y, _ = sparse_regression(2000, 20)
    plain = lasso(X, y, budget=Budget(3.0, 1e-6), seed=1).theta
    scaled = lasso(8 * X, 4 * y, budget=Budget(3.0, 1e-6), row_bound=8.0, label_bound=4.0, radius=0.5, seed=1).theta
    assert np.allclose(scaled * 2, plain, atol=1e-6)


def test_sparse_rows_give_the_same_answer() -> None:
    X, y, _ = sparse_regression(1000, 20)
    X[:, 10:] = 0
    both = [lasso(rows, y, budget=Budget(3.0, 1e-6), seed=1).theta for rows in (X, sp.csr_array(X))]
    assert np.allclose(both[0], both[1], atol=1e-12)


# The hard instance


def test_the_hard_instance_says_that_it_is_scaled_down() -> None:
    made = hard_instance(11, 64, generator=np.random.default_rng(0))
    assert "scaled-down" in made.label


def test_its_rows_are_codewords_over_orthogonal_rows() -> None:
    made = hard_instance(11, 128, generator=np.random.default_rng(0))
    k = int((made.y == 0).sum())
    Y = made.X[:k]
    assert np.array_equal(Y.T @ Y, k * np.eye(128))
    assert set(np.unique(made.X)) == {-1.0, 1.0}
    assert (made.y == 1).sum() == 10
    assert np.mean(made.signs != 0) >= 1 - made.code_share


def test_its_reference_has_the_risk_of_the_papers_equation_23() -> None:
    made = hard_instance(11, 256, generator=np.random.default_rng(1), code_share=0.1)
    k, w, τ = int((made.y == 0).sum()), 10, 0.1
    total = float(np.sum((made.X @ made.reference() - made.y) ** 2))
    assert total <= w * (2 * τ) ** 2 + k / 256


def test_a_good_answer_carries_the_signs_of_the_consensus_columns() -> None:
    """Lemma 5.10 at its constants' scale: the minimum over the ℓ1 ball agrees on more than ¾ of the columns."""
    made = hard_instance(11, 64, generator=np.random.default_rng(2))
    good = lasso(made.X, made.y, budget=Budget(1e7, 1e-6), refit=False, iterations=2000, seed=0).theta
    assert made.agreement(made.reference()) >= 0.9
    assert made.agreement(good) >= 0.75


@pytest.mark.parametrize(
    "words, features, share, left_out", [(1, 8, 0.1, 0), (4, 1, 0.1, 0), (4, 8, 1.0, 0), (4, 8, 0.1, 4)]
)
def test_a_hard_instance_that_cannot_be_built_is_refused(words, features, share, left_out) -> None:
    with pytest.raises(errors.InvalidInput):
        hard_instance(words, features, generator=np.random.default_rng(0), code_share=share, left_out=left_out)
