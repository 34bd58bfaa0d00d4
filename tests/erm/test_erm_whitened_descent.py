"""Whitened descent: the influence of one row, the charge, and the accuracy with defaults."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from paying import paid
from preparing import prepared
from scipy.special import expit

from hedgerow import erm, errors, losses
from hedgerow.convex import sets
from hedgerow.erm.problem import Problem
from hedgerow.erm.solver import Draw
from hedgerow.erm.solvers.whitened_descent import (
    SHARE,
    Releases,
    WhiteningMetric,
    _rounding_distance,
    bounded_form,
    into_ball,
    label_event,
    label_size,
    metric_of,
    plan_noise,
    row_weights,
    whiten_sum,
    whitened_descent,
)
from hedgerow.privacy import events
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Seeded

BUDGET = Budget(1.0, 1e-6)


def skewed(n: int = 20_000, p: int = 20, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features of very different spread, and classes that follow the model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.geomspace(1, 0.03, p)
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    theta = rng.normal(size=p) * np.geomspace(1, 20, p)
    return X, (rng.random(n) < expit(X @ theta)).astype(float)


def excess(loss: losses.Loss, X, y, theta) -> float:
    """Over the least risk without a constraint, by Newton's method."""
    best = np.zeros(X.shape[1])
    for _ in range(30):
        z = X @ best
        H = (X.T * loss.curvature(z, y)) @ X + 1e-9 * np.eye(best.size)
        best = best - np.linalg.solve(H, X.T @ loss.derivative(z, y))
    return float(np.mean(loss.value(X @ theta, y)) - np.mean(loss.value(X @ best, y)))


def problem_of(X, y, loss=losses.Logistic(), budget=BUDGET, label_bound=1.0, **choices) -> Problem:
    return prepared(
        X,
        y,
        bounded_form(loss, label_bound),
        sets.Unconstrained(),
        budget,
        label_bound=label_bound,
        **choices,
    )


def plan_of(problem: Problem) -> Releases:
    return plan_noise(problem, Allowance.of(problem.budget), problem.p, 1.0, adapts=False)


def drawn(event: events.Gaussian) -> Draw:
    return Draw(Seeded(0), paid(event))


@pytest.mark.audit
def test_it_learns_more_than_mirror_descent_where_features_differ_in_spread() -> None:
    X, y = skewed()
    loss = losses.Logistic()
    ours = [excess(loss, X, y, whitened_descent(X, y, loss=loss, budget=BUDGET, seed=s).theta) for s in range(3)]
    ball = sets.L2Ball(30.0)
    plain = [
        excess(loss, X, y, erm.mirror_descent(X, y, loss=loss, over=ball, budget=BUDGET, seed=s).theta)
        for s in range(3)
    ]
    assert np.mean(ours) < np.mean(plain) / 3


@pytest.mark.parametrize("short", [1.0, 0.25], ids=["tight bounds", "bounds four times too large"])
def test_regression_needs_no_tight_bounds(short) -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(20_000), rng.uniform(-1, 1, (20_000, 4))]) / math.sqrt(5)
    y = X @ np.array([1.0, 1.5, -1.0, 0.5, 0.0]) / 2 + 0.1 * rng.normal(size=20_000)
    theta = whitened_descent(X * short, y * short, loss=losses.Squared(), budget=BUDGET, seed=0).theta
    left = np.mean((X @ theta - y) ** 2) - 0.01
    assert left < 0.02 * np.var(y)


def test_a_ridge_is_minimised_too() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20_000, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.clip(X @ np.array([0.5, -0.5, 0.2, 0.0, 0.1]) + 0.1 * rng.normal(size=20_000), -1, 1)
    best = np.linalg.solve(X.T @ X / 20_000 + 0.3 * np.eye(5), X.T @ y / 20_000)
    found = whitened_descent(X, y, loss=losses.Squared(ridge=0.3), budget=Budget(20.0, 1e-6), seed=0).theta
    assert np.abs(found - best).max() < 0.02


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Squared()], ids=["classes", "numbers"])
def test_no_row_moves_a_sum_by_more_than_is_billed(neighbours, loss) -> None:
    """Rows of all lengths, and the metric of other rows, so that some are far longer in it than C."""
    X, y = skewed(2000)
    X[:50] = np.eye(20)[np.arange(50) % 20]  # at the bound, along directions in which the others hardly vary
    problem = problem_of(
        X, y, loss, Budget(50.0, 1e-6, neighbours), expected_rows=None if neighbours == "replace" else 2000
    )
    plan = plan_of(problem)
    metric = metric_of(problem, plan.moments, drawn(plan.moments))
    weights = row_weights(problem, metric)
    assert weights.min() < 0.5  # the test would be idle otherwise
    rng = np.random.default_rng(0)
    theta = metric.A @ rng.normal(size=20)
    unit = problem.slope_bound * metric.length
    parts = [
        np.linalg.norm(metric.A @ problem.gradient(theta, np.array([i]), weights[i : i + 1]) / unit)
        for i in range(2000)
    ]
    assert 0.5 < max(parts) <= 1.0
    assert max(parts) * (2 if neighbours == "replace" else 1) <= plan.step.sensitivity


def test_a_row_that_goes_leaves_the_weights_of_the_others_as_they_were_to_the_last_bit() -> None:
    X, y = skewed(5000)
    budget = Budget(50.0, 1e-6, "add-remove")
    problem = problem_of(X, y, budget=budget, expected_rows=5000)
    moments = plan_of(problem).moments
    metric = metric_of(problem, moments, drawn(moments))
    whole = row_weights(problem, metric)
    for gone in (0, 2500, 4999):
        left = row_weights(
            problem_of(np.delete(X, gone, 0), np.delete(y, gone), budget=budget, expected_rows=5000), metric
        )
        assert np.array_equal(left, np.delete(whole, gone))
    assert (whole < 1).any()


CROWD = Budget(1000.0, 1e-6, "add-remove")  # knows small eigenvalues from smaller ones


@pytest.mark.parametrize("times", [1, 9, 100, 10_000])
def test_the_metric_is_no_more_stretched_than_its_arithmetic_is_billed_for(times) -> None:
    """Rows alike, and as many times as were guessed: eigenvalues of their cut sum would reach 8 a feature."""
    p, guess = 6, 10
    problem = problem_of(
        np.ones((times * guess, p)), np.ones(times * guess), budget=CROWD, expected_rows=guess, norm="linf"
    )
    plan = plan_of(problem)
    values = np.linalg.eigvalsh(metric_of(problem, plan.moments, drawn(plan.moments)).moments) / problem.row_l2**2
    floor = math.sqrt(2 * p) * plan.moments.sigma / guess
    assert np.all(values >= floor * (1 - 1e-9)) and values.max() <= 8 * (1 + 1e-9)


@pytest.mark.parametrize("beyond", [0.1, 1.0, 100.0, 1e6])
def test_rounding_in_the_whitened_sum_is_within_what_is_billed_for_any_number_of_rows(beyond) -> None:
    """Against whole numbers and 60 digits; sums from a tenth of what is allowed for to a million times that."""
    rng, p, guess = np.random.default_rng(1), 4, 1000
    problem = problem_of(np.zeros((1, p)), np.zeros(1), losses.BoundedLogistic(), budget=CROWD, expected_rows=guess)
    floor = 1e-4
    billed, worst = _rounding_distance(problem, p, floor) / 2, 0.0
    step = Fraction(problem.unit) * Fraction(problem.slope_unit)
    axes = np.linalg.qr(rng.normal(size=(p, p)))[0]
    A = (axes / np.sqrt(np.array([floor, 1e-2, 1.0, 8.0]))) @ axes.T
    metric = WhiteningMetric(A, np.linalg.inv(A @ A), 1.0)
    for _ in range(200):
        far = beyond * problem.most_rows * problem.lipschitz / float(step)
        whole = [int(rng.uniform(-far, far)) * 3 + 1 for _ in range(p)]  # beyond 2^53 most are no float64
        found = whiten_sum(problem, metric, np.array([float(w) for w in whole]) * float(step))
        true = [sum(Fraction(a) * w for a, w in zip(row, whole, strict=True)) * step for row in A.tolist()]
        scaled = [t / (Fraction(problem.slope_bound) * Fraction(metric.length)) for t in true]
        square = sum(t * t for t in scaled)
        shrink = Fraction(1)
        if square > problem.most_rows**2:
            with localcontext(prec=60):
                shrink = Fraction(problem.most_rows / (Decimal(square.numerator) / Decimal(square.denominator)).sqrt())
        worst = max(
            worst,
            math.sqrt(sum(float(Fraction(f) - t * shrink) ** 2 for f, t in zip(found.tolist(), scaled, strict=True))),
        )
        assert np.linalg.norm(found) <= problem.most_rows * (1 + 1e-12)
    assert 1e-4 * billed < worst <= billed


def test_two_rows_second_moments_are_apart_by_no_more_than_is_billed() -> None:
    """√2 is reached by orthogonal rows, and 2, what two arbitrary vectors could do, by none."""
    rng = np.random.default_rng(0)
    upper = np.triu_indices(3)
    scale = np.where(upper[0] == upper[1], 1.0, math.sqrt(2))
    plan = plan_of(problem_of(rng.normal(size=(40, 3)), np.zeros(40)))
    far = 0.0
    for _ in range(2000):
        pair = rng.normal(size=(2, 3))
        pair /= np.linalg.norm(pair, axis=1, keepdims=True)
        far = max(far, float(np.linalg.norm((np.outer(pair[0], pair[0]) - np.outer(pair[1], pair[1]))[upper] * scale)))
    assert 0.97 * math.sqrt(2) < far <= plan.moments.sensitivity


@pytest.mark.parametrize(
    ("labels", "usual", "large"), [([1.0, -1.0] * 5000, 1.0, 1.0), ([2.0, *[0.0] * 9] * 1000, 0.4**0.5, 2.0)]
)
def test_the_size_of_labels_is_found_within_noise(labels, usual, large) -> None:
    problem = problem_of(np.zeros((10_000, 1)), np.array(labels), losses.Squared(), label_bound=4.0)
    event = label_event(problem, Allowance.of(BUDGET))
    size = label_size(problem, 4.0, event, drawn(event))
    assert size.typical == pytest.approx(usual, abs=0.1)
    assert size.large == pytest.approx(large, abs=0.5)


def test_labels_of_which_few_are_large_are_fitted_in_the_mean() -> None:
    """Residuals held at the size of most labels would give the median, 0."""
    X, y = np.ones((20_000, 1)), np.zeros(20_000)
    y[:1000] = 1.0
    theta = whitened_descent(X, y, loss=losses.Squared(), budget=BUDGET, seed=0).theta
    assert theta[0] == pytest.approx(0.05, abs=0.01)


@pytest.mark.parametrize("radius", [0.4, 1.5])
def test_the_point_of_a_ball_is_the_nearest_in_the_metric(radius) -> None:
    rng = np.random.default_rng(3)
    metric, theta = np.diag([1.0, 1e-3, 0.1]), np.array([1.0, 3.0, -1.0])
    near = into_ball(theta, metric, radius)
    assert np.linalg.norm(near) == pytest.approx(radius)
    others = rng.normal(size=(5000, 3))
    others *= radius / np.linalg.norm(others, axis=1, keepdims=True)
    distances = np.einsum("ij,jk,ik->i", others - theta, metric, others - theta)
    assert (near - theta) @ metric @ (near - theta) <= distances.min()
    assert np.array_equal(into_ball(theta, metric, 10.0), theta)


def test_charges_are_those_of_the_plan_and_the_plan_sees_no_row() -> None:
    X, y = skewed(1000)
    found = [whitened_descent(rows, y, loss=losses.Logistic(), budget=BUDGET, seed=0) for rows in (X, 0 * X, 50 * X)]
    assert found[0].events == found[1].events == found[2].events
    assert all(isinstance(event, events.Gaussian) for event in found[0].events)
    assert len(found[0].events) == found[0].iterations + 1
    assert 0.999 < found[0].cost <= 1.0
    spent = sum(event.rho for event in found[0].events)
    assert found[0].events[0].rho == pytest.approx(SHARE * spent)
    assert all(np.isfinite(result.theta).all() for result in found)


def test_an_accountant_pays_a_share_of_its_own() -> None:
    X, y = skewed(1000)
    accountant = Accountant(BUDGET)
    whitened_descent(X, y, loss=losses.Logistic(), budget=accountant, spend=BUDGET.total / 2, seed=0)
    assert accountant.spent == pytest.approx(BUDGET.total / 2)


def test_sparse_rows_are_fitted_like_dense_ones_and_a_ball_holds_the_result() -> None:
    X, y = skewed(1000)
    X[:, 5:15] = 0
    ball = sets.L2Ball(1.5)
    dense, sparse = (
        whitened_descent(rows, y, loss=losses.Logistic(), over=ball, budget=BUDGET, seed=0).theta
        for rows in (X, sp.csr_array(X))
    )
    assert np.allclose(dense, sparse, atol=1e-9)
    assert ball.contains(dense)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"over": sets.L1Ball(1.0)}, "over must be an L2Ball"),
        ({"iterations": 0}, "iterations must be"),
        ({"spread": -1.0}, "spread must be"),
        ({"loss": losses.Absolute()}, "loss must be smooth"),
        ({"loss": losses.Squared(), "label_bound": 0.0}, "label_bound must be"),
        ({"budget": Budget(1.0, 0.0)}, "delta must be above 0"),
    ],
)
def test_unsupported_calls_are_refused_by_name(choices, message) -> None:
    X, y = skewed(100)
    with pytest.raises(errors.InvalidInput, match=message):
        whitened_descent(X, y, **{"loss": losses.Logistic(), "budget": BUDGET, **choices})


def test_more_features_than_it_can_measure_are_refused() -> None:
    with pytest.raises(errors.InvalidInput, match="at most 500 columns"):
        whitened_descent(np.zeros((3, 501)), np.zeros(3), loss=losses.Logistic(), budget=BUDGET)


@pytest.mark.parametrize("n", [1, 2, 30])
def test_tables_of_a_few_rows_are_noise_and_no_error(n) -> None:
    X, y = skewed(n)
    assert np.isfinite(whitened_descent(X, y, loss=losses.Logistic(), budget=BUDGET).theta).all()
