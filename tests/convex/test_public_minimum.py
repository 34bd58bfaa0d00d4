"""The minimizer over weighted cells: its bound against brute force, its number of steps, and no warnings."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from hedgerow import losses
from hedgerow.convex.sets import Box, GroupL1Ball, L1Ball, L2Ball, Simplex, Unconstrained
from hedgerow.convex.solver import certificate, first_order
from hedgerow.convex.solver import public_minimum as solver
from hedgerow.convex.solver import weighted_cells as weighted
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.universe.universe import Universe

UNIVERSE = Universe.from_sizes({"y": 2, "a": 3, "b": 4, "c": 2})
REAL = Universe.from_sizes({"y": 5, "a": 3, "b": 4, "c": 2})
FEATURES = {"features": ["a", "b", "c"]}
SMOOTH = [
    losses.Squared(target="y", **FEATURES),
    losses.Logistic(target="y", **FEATURES),
    losses.Huber(width=0.3, target="y", **FEATURES),
    losses.SmoothedHinge(target="y", **FEATURES),
    losses.Poisson(clip=1.0, target="y", **FEATURES),
    losses.Logistic(target="y", onehot=["b"], ridge=0.05, **FEATURES),
    losses.MultinomialLogistic(target="y", features=["a", "b"]),
]
KINKED = [
    losses.Hinge(target="y", **FEATURES),
    losses.Absolute(target="y", **FEATURES),
    losses.Pinball(quantile=0.8, target="y", onehot=["b"], **FEATURES),
    losses.Hinge(target="y", ridge=0.1, **FEATURES),
]
SETS = [L2Ball(0.5), L2Ball(20.0), L1Ball(0.4), Box(-0.3, 0.2), Simplex(1.0), GroupL1Ball(0.5, 2)]


def bound(loss):
    return loss.on(UNIVERSE if loss.labels == "binary" else REAL)


def random_marginal(risk, seed: int, zeros: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(math.prod(risk.shape), 0.3)).reshape(risk.shape)
    return weights * (rng.random(risk.shape) >= zeros)


@pytest.mark.parametrize("over", SETS, ids=repr)
@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: type(loss).__name__)
def test_a_smooth_loss_is_solved_to_1e_8_and_no_point_of_the_set_is_lower(loss, over):
    risk = bound(loss)
    marginal = random_marginal(risk, 0)
    found = solver.minimize_over(risk, marginal, over)
    assert over.contains(found.theta)
    assert found.gap <= 1e-8
    objective = risk.objective(marginal)
    assert found.value == pytest.approx(objective.value(found.theta), abs=1e-12)
    rng = np.random.default_rng(1)
    for scale in (1e-3, 0.1, 1.0, 30.0):
        for _ in range(20):
            other = over.project(found.theta + scale * rng.normal(size=risk.dimension))
            assert objective.value(other) >= found.value - found.gap


@pytest.mark.parametrize("over", SETS[:4], ids=repr)
@pytest.mark.parametrize("loss", KINKED, ids=lambda loss: type(loss).__name__)
def test_a_loss_with_kinks_is_solved_and_no_point_of_the_set_is_lower(loss, over):
    risk = bound(loss)
    marginal = random_marginal(risk, 2)
    found = solver.minimize_over(risk, marginal, over, 1e-7)
    assert found.gap <= 1e-7
    objective = risk.objective(marginal)
    rng = np.random.default_rng(3)
    for scale in (1e-6, 1e-3, 0.1, 1.0):
        for _ in range(20):
            other = over.project(found.theta + scale * rng.normal(size=risk.dimension))
            assert objective.value(other) >= found.value - found.gap


@pytest.mark.parametrize("loss", [losses.Absolute, losses.Pinball])
def test_the_median_of_a_box_agrees_with_a_linear_programme(loss):
    risk = loss(target="y", features=["a", "b", "c"]).on(REAL)
    marginal = random_marginal(risk, 4)
    found = solver.minimize_over(risk, marginal, Box(-0.7, 0.7), 1e-8)
    axis = risk.attributes.index("y")
    weights = np.moveaxis(marginal, axis, -1).reshape(-1, 5)
    X, y = risk.features.design(), risk.labels
    rows, p = len(X) * 5, risk.dimension
    cost = np.concatenate([np.zeros(p), weights.reshape(-1)])
    z = np.repeat(X, 5, axis=0)
    target = np.tile(y, len(X))
    down, up = (-1.0, 1.0) if loss is losses.Absolute else (-0.5, 0.5)
    slack = -np.eye(rows)
    A = np.vstack([np.hstack([up * z, slack]), np.hstack([down * z, slack])])
    b = np.concatenate([up * target, down * target])
    exact = linprog(cost, A, b, bounds=[(-0.7, 0.7)] * p + [(0, None)] * rows).fun
    assert found.value == pytest.approx(exact, abs=2e-8)
    assert found.value - exact <= found.gap + 1e-10


def test_the_minimum_over_everything_agrees_with_a_general_optimiser():
    for loss in (losses.Squared, losses.Logistic):
        risk = loss(target="y", features=["a", "b"]).on(UNIVERSE)
        marginal = random_marginal(risk, 5)
        objective = risk.objective(marginal)
        found = solver.minimize_over(risk, marginal, Unconstrained())
        peer = minimize(objective.value, np.zeros(3), jac=objective.gradient, tol=1e-12)
        assert found.gap <= 1e-8
        assert found.value == pytest.approx(peer.fun, abs=1e-9)
    ridge = losses.Hinge(target="y", features=["a"], ridge=0.1).on(UNIVERSE)
    assert solver.minimize_over(ridge, random_marginal(ridge, 6), Unconstrained(), 1e-6).gap <= 1e-6


def test_a_gap_that_cannot_be_proven_is_not_claimed():
    risk = losses.Absolute(target="y", features=["a"]).on(REAL)
    found = solver.minimize_over(risk, random_marginal(risk, 7), Unconstrained(), 1e-6)
    assert found.gap == pytest.approx(found.value, abs=1e-10)  # the loss is never negative: all that is known
    separable = losses.Logistic(target="y", features=["a"]).on(UNIVERSE)
    marginal = np.zeros(separable.shape)
    marginal[1] = 1 / marginal[1].size  # all labels are 1: the infimum is not attained
    loose = solver.minimize_over(separable, marginal, Unconstrained())
    assert loose.value <= loose.gap + 1e-10


def test_an_early_stop_says_how_far_it_is(monkeypatch):
    monkeypatch.setattr(solver, "NEWTON_STEPS", 1)
    monkeypatch.setattr(solver, "QUICK_STEPS", 3)
    monkeypatch.setattr(solver, "MOST_WORK", 1)
    risk = bound(SMOOTH[1])
    marginal = random_marginal(risk, 8)
    hurried = solver.minimize_over(risk, marginal, L2Ball(20.0))
    assert hurried.gap > 1e-8
    monkeypatch.undo()
    assert hurried.value - solver.minimize_over(risk, marginal, L2Ball(20.0)).value <= hurried.gap


@pytest.mark.parametrize("loss", [SMOOTH[1], *KINKED[:2]], ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("over", [L2Ball(2.0), L1Ball(1.0), Box(-1.0, 1.0)], ids=repr)
def test_the_last_resort_alone_reaches_the_tolerance(loss, over):
    """Also in one dimension, where ellipsoids are intervals."""
    for asked in (loss, type(loss)(target="y")):
        risk = bound(asked)
        marginal = random_marginal(risk, 9)
        best = certificate.Best(risk.objective(marginal), over, 1e-12)
        solver._last_resort(risk, risk.objective(marginal), over, best, 1e-5)
        assert best.gap <= 1e-5
        assert best.value - solver.minimize_over(risk, marginal, over, 1e-8).value <= best.gap


def test_an_ellipsoid_too_flat_for_float64_proves_nothing():
    """Hinge losses of a far larger set than their margins: here the matrix of a plain ellipsoid stops being positive."""
    risk = losses.SmoothedHinge(width=1e-3, target="y", features=["a", "c"]).on(UNIVERSE)
    over, marginal = (
        L2Ball(100.0),
        random_marginal(losses.SmoothedHinge(target="y", features=["a", "c"]).on(UNIVERSE), 3),
    )
    best = certificate.Best(risk.objective(marginal), over, 1e-12)
    f = weighted.SmoothObjective(risk, risk.objective(marginal), over)
    first_order.ellipsoid(f, over, best, np.zeros(risk.dimension), 1e-13, 10**5, risk.scale(over))
    least = solver.minimize_over(risk, marginal, over, 1e-8).value
    assert best.theta is None or best.value - least <= best.gap + 1e-8


def test_counts_give_the_same_point_and_values_in_rows():
    risk = bound(SMOOTH[1])
    counts = np.random.default_rng(10).integers(0, 1000, risk.shape)
    rows = solver.minimize_over(risk, counts, L2Ball(1.0))
    fractions = solver.minimize_over(risk, counts / counts.sum(), L2Ball(1.0))
    assert rows.theta == pytest.approx(fractions.theta, abs=1e-7)
    assert rows.value == pytest.approx(fractions.value * counts.sum())
    assert rows.gap <= 1e-8 * counts.sum()


def test_an_empty_table_an_empty_slice_and_a_full_one_look_alike():
    from hedgerow.query.counts import count

    empty = solver.minimize_over(bound(SMOOTH[1]), np.zeros(bound(SMOOTH[1]).shape), L2Ball(1.0))
    assert (empty.value, empty.gap) == (0.0, 0.0)
    risk = losses.Hinge(target="y", features=["a"], where=count(c=1)).on(UNIVERSE)
    marginal = random_marginal(risk, 11)
    marginal[..., 1] = 0.0
    assert solver.minimize_over(risk, marginal, L2Ball(1.0)).value == 0.0


def test_the_same_question_has_the_same_answer_to_the_last_bit():
    risk = bound(KINKED[1])
    marginal = random_marginal(risk, 12)
    first, second = (solver.minimize_over(risk, marginal, L2Ball(1.0)) for _ in range(2))
    assert (first.theta == second.theta).all()
    assert "0." not in repr(first)  # no data in a repr


def test_spelling_out_feature_vectors_changes_nothing(monkeypatch):
    for loss in (SMOOTH[1], KINKED[0]):
        risk = bound(loss)
        marginal = random_marginal(risk, 13, zeros=0.4)
        listed = solver.minimize_over(risk, marginal, L2Ball(1.0))
        monkeypatch.setattr(weighted, "LARGEST_LIST", 0)
        assert solver.minimize_over(risk, marginal, L2Ball(1.0)).value == pytest.approx(listed.value, abs=2e-8)
        monkeypatch.undo()


def test_a_users_loss_with_kinks_is_solved_by_its_subgradients():
    def value(theta, records):
        return np.abs(records["a"] * theta[0] + theta[1] - records["b"]) / 4

    def gradient(theta, records):
        sign = np.sign(records["a"] * theta[0] + theta[1] - records["b"]) / 4
        return np.stack([sign * records["a"], sign], axis=1)

    risk = losses.Custom(value, gradient, ("a", "b"), 2, lipschitz=1.0).on(REAL)
    marginal = random_marginal(risk, 14)
    found = solver.minimize_over(risk, marginal, L2Ball(2.0), 1e-5)
    assert found.gap <= 1e-5
    objective = risk.objective(marginal)
    grid = [
        np.array([r * math.cos(t), r * math.sin(t)]) for r in np.linspace(0, 2, 41) for t in np.linspace(0, 6.28, 90)
    ]
    assert min(map(objective.value, grid)) >= found.value - found.gap


def test_a_logistic_regression_of_seven_features_on_half_a_million_cells_is_certified():
    sizes = {"y": 2} | dict.fromkeys("abcd", 8) | dict.fromkeys("efg", 4)
    risk = losses.Logistic(target="y", features=list("abcdefg")).on(Universe.from_sizes(sizes))
    rng = np.random.default_rng(16)
    z = risk.predictor(np.array([1.5, -1.0, 0.5, 2.0, 0.0, -0.7, 0.3, 0.2]))
    p = 1 / (1 + np.exp(-z))
    marginal = rng.random(risk.shape) * np.concatenate([1 - p, p])
    marginal /= marginal.sum()
    assert marginal.size == 524_288
    assert solver.minimize_over(risk, marginal, L2Ball(10.0), 1e-8).gap <= 1e-8


def test_parameters_past_memory_are_refused_with_the_way_out():
    wide = Universe.from_sizes({f"x{i}": 10_000 for i in range(10)})
    with pytest.raises(TooLarge, match=r"fewer features, declare coarser bins, fit it once"):
        losses.Squared(target="x0", features=["x1", "x2"], onehot=[f"x{i}" for i in range(1, 3)]).on(wide)


def test_a_set_of_another_dimension_or_a_tolerance_of_zero_is_refused():
    risk = bound(SMOOTH[0])
    marginal = random_marginal(risk, 17)
    with pytest.raises(InvalidInput, match="dimension must be 2"):
        solver.minimize_over(risk, marginal, Box([0, 0], [1, 1]))
    with pytest.raises(InvalidInput, match="tolerance must be a finite number above 0"):
        solver.minimize_over(risk, marginal, L2Ball(1.0), 0.0)


@pytest.mark.parametrize("length", [1.0, 1 + 2**-52, 1 - 2**-53, 1 + 1e-12])
def test_a_newton_step_to_the_very_edge_of_a_ball_is_no_error(length) -> None:
    """The quadratic model's minimiser at the radius up to rounding, on either side."""
    from hedgerow.convex.solver.public_minimum import _model_minimizer

    target = length * np.array([0.6, 0.8])
    H = np.array([[2.0, 0.5], [0.5, 1.0]])
    found = _model_minimizer(L2Ball(1.0), np.zeros(2), -H @ target, H, 1.0, 1e-9)
    assert np.linalg.norm(found) <= 1 + 1e-12
    assert np.allclose(found, target, atol=1e-9)
