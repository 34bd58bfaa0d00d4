"""Output and objective perturbation: the distance between minima of neighbours, and the cost of the printed scale."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
from preparing import prepared

from hedgerow import errors, losses
from hedgerow.convex import sets
from hedgerow.erm.solvers.minimum import minimum, rounding_distance
from hedgerow.erm.solvers.objective_perturbation import objective_perturbation
from hedgerow.erm.solvers.output_perturbation import output_perturbation, regularised_output_perturbation
from hedgerow.privacy import events, perturbed_objective
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import gaussian_delta, gaussian_mu
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.perturbed_objective import noise_scale, privacy_delta

BUDGET = Budget(1.0, 1e-6)
BALL = sets.L2Ball(3.0)


def classes(n: int = 4000, p: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, p))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, (X @ np.linspace(3, -1, p) + 0.3 * rng.normal(size=n) > 0).astype(int)


def risk(loss, X, y, theta) -> float:
    return float(loss.value(X @ theta, y).mean() + loss.ridge / 2 * theta @ theta)


SOLVERS = {
    "objective": lambda X, y, **k: objective_perturbation(X, y, loss=losses.Logistic(), over=BALL, **k),
    "output": lambda X, y, **k: output_perturbation(X, y, loss=losses.Logistic(ridge=0.02), over=BALL, **k),
    "regularised": lambda X, y, **k: regularised_output_perturbation(X, y, loss=losses.Logistic(), radius=3.0, **k),
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("neighbours", "rows"), [("replace", None), ("add-remove", 5000)])
def test_each_beats_the_zero_model_and_bills_the_whole_budget(solver, neighbours, rows) -> None:
    X, y = classes()
    result = SOLVERS[solver](X, y, budget=Budget(1.0, 1e-6, neighbours), expected_rows=rows, seed=1)
    assert risk(losses.Logistic(), X, y, result.theta) < 0.9 * math.log(2)
    assert 0.999 < result.cost <= 1.0 and len(result.events) == 1 and result.risk_bound > 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_kinks_are_refused_with_the_way_out(solver) -> None:
    X, y = classes(20)
    run = {
        "objective": objective_perturbation,
        "output": output_perturbation,
        "regularised": regularised_output_perturbation,
    }[solver]
    over = sets.Unconstrained() if solver == "regularised" else BALL
    with pytest.raises(errors.InvalidInput, match=r"loss must be smooth.*SmoothedHinge"):
        run(X, y, loss=losses.Hinge(ridge=0.1), over=over, budget=BUDGET)


def test_output_perturbation_needs_a_ridge_and_its_regularised_form_no_set() -> None:
    X, y = classes(20)
    with pytest.raises(errors.InvalidInput, match="must be strongly convex"):
        output_perturbation(X, y, loss=losses.Logistic(), over=BALL, budget=BUDGET)
    with pytest.raises(errors.InvalidInput, match="over must be left out"):
        regularised_output_perturbation(X, y, loss=losses.Logistic(), over=BALL, budget=BUDGET)


@pytest.mark.parametrize("over", [sets.Unconstrained(), sets.L2Ball(0.5), sets.L1Ball(0.5)], ids=repr)
def test_the_minimum_is_as_near_as_it_says(over) -> None:
    X, y = classes(400)
    problem = prepared(X, y, losses.Logistic(), over, BUDGET)
    Λ, tilt = 4.0, np.linspace(-3, 5, 6)
    coarse = minimum(problem, over, Λ, tilt, 1e-2)
    fine = minimum(problem, over, Λ, tilt, max(1e-7, rounding_distance(problem, over, Λ)))
    assert np.linalg.norm(coarse - fine) <= 1e-2 + 1e-6
    slope = problem.gradient(fine) + Λ * fine + tilt
    assert np.linalg.norm(over.project(fine - slope / 400) - fine) < 1e-5  # a fixed point of the projected gradient


def neighbours_of_minimum(loss, n: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """Minima of two neighbours, one row of which pulls as hard as it may to either side."""
    X, y = np.zeros((n, 1)), np.zeros(n)
    X[0] = 1.0
    found = []
    for label in (60.0, -60.0):
        y[0] = label
        problem = prepared(X, y, loss, sets.Unconstrained(), BUDGET, label_bound=60.0)
        found.append(minimum(problem, sets.Unconstrained(), n * loss.ridge, np.zeros(1), 1e-6))
    return found[0], found[1]


def test_the_worst_neighbour_moves_the_minimum_by_the_sensitivity_that_is_billed() -> None:
    loss = losses.Huber(ridge=0.01)
    a, b = neighbours_of_minimum(loss)
    X, y = np.ones((30, 1)), np.zeros(30)
    (event,) = output_perturbation(
        X, y, loss=loss, over=sets.Unconstrained(), budget=BUDGET, label_bound=60.0, seed=0
    ).events
    assert isinstance(event, events.Gaussian)
    assert abs(a - b)[0] == pytest.approx(2 * 1.0 / (30 * 0.01), rel=1e-4)  # 2L/Λ
    assert abs(a - b)[0] <= event.sensitivity <= 1.001 * abs(a - b)[0]
    assert event.sigma == pytest.approx(event.sensitivity / gaussian_mu(1.0, 1e-6), rel=1e-4)


def test_the_risk_bounds_hold_on_average() -> None:
    """20 runs each; the bounds are worst cases and far above what is seen here."""
    X, y = classes()
    for name in ("objective", "regularised"):
        results = [SOLVERS[name](X, y, budget=BUDGET, seed=s) for s in range(20)]
        problem = prepared(X, y, losses.Logistic(), BALL, BUDGET)
        best = risk(losses.Logistic(), X, y, minimum(problem, BALL, 1.0, np.zeros(6), 1e-2))
        mean = np.mean([risk(losses.Logistic(), X, y, r.theta) for r in results])
        assert mean - best <= results[0].risk_bound


FAR, ASIDE = (2.0, -3.0, 1.0, -2.0, 3.0), (2.0, -0.2, 0.1, -0.1, 0.2)
BINDING = {
    "ℓ2 ball": (sets.L2Ball(1.0), FAR), "ℓ1 ball": (sets.L1Ball(1.0), FAR), "box": (sets.Box(-0.3, 0.3), ASIDE),
    "simplex": (sets.Simplex(), FAR), "groups": (sets.GroupL1Ball(0.8, 2), FAR),
}  # fmt: skip


@functools.cache
def stretched(n: int, theta: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose directions differ 16 times in length, turned against the axes; 5,000 of them, again and again."""
    rng = np.random.default_rng(3)
    turned = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    X = rng.normal(size=(5000, 5)) * 2.0 ** -np.arange(5) @ turned.T
    X /= np.linalg.norm(X, axis=1).max()
    y = np.clip(X @ theta + 0.1 * rng.normal(size=5000), -1, 1)
    return np.tile(X, (n // 5000, 1)), np.tile(y, n // 5000)


def excess_of(over: sets.ConvexSet, X: np.ndarray, y: np.ndarray, *thetas: np.ndarray) -> list[float]:
    """Return the mean squared error minus the least one in the set, which the linear minimizer proves to be least."""
    H, c = X.T @ X / len(y), X.T @ y / len(y)
    best = ahead = over.project(np.zeros(5))
    largest = float(np.linalg.eigvalsh(H)[-1])
    for t in range(1500):
        before, best = best, over.project(ahead - (H @ ahead - c) / largest)
        ahead = best + t / (t + 3) * (best - before)
    slope = H @ best - c
    assert slope @ (best - over.minimize(slope)) < 1e-11
    return [float((t - best) @ (H @ (t + best) / 2 - c)) for t in thetas]


@pytest.mark.parametrize("n", [10_000, 100_000, pytest.param(1_000_000, marks=pytest.mark.audit)])
@pytest.mark.parametrize("name", BINDING)
def test_the_risk_of_objective_perturbation_is_bounded_where_the_set_binds(name, n) -> None:
    """Over the best of the set, however many rows. The minimum without the set, projected, would be as far off at every n.

    The bound is on the mean, and many times the excess of every seed.
    """
    over, theta = BINDING[name]
    X, y = stretched(n, theta)
    given = {"loss": losses.Squared(), "over": over, "budget": BUDGET}
    results = [objective_perturbation(X, y, **given, seed=seed) for seed in range(4 if n < 10**5 else 2)]
    few = X[:5000], y[:5000]
    excess = excess_of(over, *few, *(r.theta for r in results))
    assert all(over.contains(r.theta) for r in results)
    assert np.mean(excess) <= results[0].risk_bound
    projected = over.project(np.linalg.lstsq(*few, rcond=None)[0])
    assert n < 10**5 or excess_of(over, *few, projected)[0] > 2 * results[0].risk_bound
    assert results[0].risk_bound <= 60 / n  # it falls as 1/n: about σ√p


def test_the_bound_of_objective_perturbation_follows_the_width_of_the_set() -> None:
    """For an ℓ1 ball the bound grows with √log p, for an ℓ2 ball with √p."""
    bounds = {}
    for over in (sets.L1Ball(1.0), sets.L2Ball(1.0)):
        for p in (8, 512):
            rows = np.eye(p)[np.arange(1000) % p]
            plan = objective_perturbation(
                rows, np.arange(1000) % 2, loss=losses.Logistic(), over=over, budget=BUDGET, seed=0
            )
            bounds[type(over), p] = plan.risk_bound
    assert bounds[sets.L1Ball, 512] < 1.8 * bounds[sets.L1Ball, 8]
    assert bounds[sets.L2Ball, 512] > 5 * bounds[sets.L2Ball, 8]


@pytest.mark.parametrize("radius", [0.1, 1.0, 30.0])
def test_a_radius_chooses_the_ridge_and_the_bound_stays_one_over_the_set(radius) -> None:
    X, y = classes(2000)
    usual, other = (
        objective_perturbation(X, y, loss=losses.Logistic(), over=sets.L2Ball(2.0), radius=r, budget=BUDGET, seed=0)
        for r in (None, radius)
    )
    assert other.risk_bound >= usual.risk_bound * (1 - 1e-6)


@pytest.mark.parametrize("solver", [objective_perturbation, output_perturbation], ids=["objective", "output"])
def test_a_set_whose_nearest_points_are_a_solvers_outcome_is_refused_whatever_the_rows(solver) -> None:
    X, y = classes(50)
    for rows in (X, 0 * X):
        with pytest.raises(errors.InvalidInput, match=r"a formula gives for o.*Found Polytope.*frank_wolfe"):
            solver(rows, y, loss=losses.Logistic(ridge=0.1), over=sets.Polytope(np.eye(6)), budget=BUDGET)


@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_the_regularised_bound_does_not_grow_with_the_dimension(ridge) -> None:
    bounds = []
    for p in (5, 500):
        X, y = np.eye(p)[np.arange(1000) % p], np.arange(1000) % 2
        bounds.append(
            regularised_output_perturbation(
                X, y, loss=losses.Logistic(ridge=ridge), radius=1.0, budget=BUDGET, seed=0
            ).risk_bound
        )
    assert bounds[1] < 1.01 * bounds[0] if ridge == 0 else bounds[1] > bounds[0]


# Objective perturbation's noise

PRINTED = {"weight": 2 * 1.0 / 1.0, "sigma": math.sqrt(2 * math.log(1e6)) / 1.0}  # ζn = 2λ/ε, σn = L√(2 log 1/δ)/ε


def exact_delta(sigma: float, epsilon: float, shift: float) -> float:
    """δ of the tilted minimum where the row's gradient is ±shift/2 wherever θ is: a Gaussian moved by the shift."""
    return gaussian_delta(shift / sigma, epsilon)


def test_the_printed_scale_is_not_private_and_ours_is() -> None:
    """Huber rows with labels ±∞ have gradients ∓L and no curvature, so the minimum is exactly Gaussian."""
    assert exact_delta(PRINTED["sigma"], 1.0, shift=2.0) > 500 * 1e-6
    ours = noise_scale(1.0, 1e-6, 1.0, 1.0, PRINTED["weight"], "replace")
    assert exact_delta(ours, 1.0, shift=2.0) < 1e-6
    # nor is it certified where rows come and go: the Jacobian alone takes log(1 + λ/Λ) of ε
    assert privacy_delta(1.0, 1.0, 1.0, PRINTED["weight"], PRINTED["sigma"], "add-remove") > 1e-6


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_the_certified_delta_covers_the_true_one_of_a_curved_loss_in_one_dimension(neighbours) -> None:
    """θ's density is Gauss(b(θ))·|b'(θ)|; δ is an integral, which the certificate must not be below."""
    loss, Λ, ε, δ = losses.Huber(), 3.0, 1.0, 1e-3
    σ = noise_scale(ε, δ, 1.0, 1.0, Λ, neighbours)
    θ = np.linspace(-40, 40, 400_001)

    def density(labels: list[float]) -> np.ndarray:
        b = -sum(loss.derivative(θ, np.float64(y)) for y in labels) - Λ * θ
        jacobian = sum(loss.curvature(θ, np.float64(y)) for y in labels) + Λ
        return np.exp(-(b**2) / (2 * σ**2)) / (σ * math.sqrt(2 * math.pi)) * jacobian

    worst = 0.0
    for y in (0.0, 2.0, 5.0, 60.0):
        one, two = density([y]), density([-y] if neighbours == "replace" else [])
        assert np.trapezoid(one, θ) == pytest.approx(1, abs=1e-4)
        for p, q in ((one, two), (two, one)):
            worst = max(worst, float(np.trapezoid(np.maximum(p - math.exp(ε) * q, 0), θ)))
    assert 0.001 * δ < worst <= δ


def test_less_weight_leaves_less_of_epsilon_to_the_tilt_and_too_little_is_refused() -> None:
    scales = [noise_scale(1.0, 1e-6, 0.25, 1.0, Λ, "replace") for Λ in (0.3, 1.0, 100.0)]
    assert scales[0] > scales[1] > scales[2] > 2 / gaussian_mu(1.0, 1e-6)
    with pytest.raises(errors.InvalidInput, match="weight must be above"):
        noise_scale(1.0, 1e-6, 0.25, 1.0, 0.1, "replace")


def test_an_accountant_with_slack_pays_for_an_objective() -> None:
    X, y = classes(500)
    accountant = Accountant(BUDGET, slack=5e-7)
    result = SOLVERS["objective"](X, y, budget=accountant, seed=0)
    assert result.cost == pytest.approx(BUDGET.rho(5e-7)) and accountant.slack == 0


def test_a_ridge_too_flat_for_a_certain_minimum_is_refused_whatever_the_rows() -> None:
    X, y = classes(50)
    for rows in (X, 0 * X):
        with pytest.raises(
            errors.InvalidInput, match=r"ridge must be at least 2\.5e-05, 1e-08 of the loss's curvature"
        ):
            output_perturbation(rows, y, loss=losses.Logistic(ridge=1e-6), over=BALL, budget=BUDGET, row_bound=100.0)


# A charge checks what an objective claims


def planned_event(neighbours: str) -> events.PerturbedObjective:
    X, y = classes(500)
    rows = None if neighbours == "replace" else 500
    (event,) = SOLVERS["objective"](X, y, budget=Budget(1.0, 1e-6, neighbours), expected_rows=rows, seed=0).events
    return event


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_no_claim_is_billed_that_the_draws_of_an_objective_do_not_keep(neighbours) -> None:
    event, budget = planned_event(neighbours), Budget(2.0, 1e-5, neighbours)
    assert budget.cost(event) == event.rho
    less = [
        replace(event, epsilon=0.999 * event.epsilon),
        replace(event, delta=0.99 * event.delta),
        replace(event, curvature=1.1 * event.curvature),
        replace(event, tilt=replace(event.tilt, sigma=0.999 * event.tilt.sigma)),
        replace(event, tilt=replace(event.tilt, sensitivity=1.001 * event.tilt.sensitivity)),
        replace(event, hide=replace(event.hide, sigma=0.999 * event.hide.sigma)),
    ]
    for claim in less:
        account = Accountant(budget, slack=5e-6)
        with pytest.raises(errors.InvalidInput, match="must be what its two draws have"):
            account.charge(claim)
        assert account.spent == 0 and not account.entries()


def test_an_objective_planned_for_rows_that_go_does_not_pass_for_rows_that_are_replaced() -> None:
    """Half of the sensitivity that a replaced row has: the noise is billed for what it is, and the claim is refused."""
    event = planned_event("add-remove")
    honest = replace(event, tilt=replace(event.tilt, sensitivity=2 * event.tilt.sensitivity))
    with pytest.raises(errors.InvalidInput, match="must be what its two draws have"):
        Budget(1.0, 1e-6).cost(honest)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (5.0, 1e-3)])
def test_the_parts_of_a_perturbed_objective_add_up_to_its_claim(epsilon, delta) -> None:
    parts = [perturbed_objective.for_the_tilt(epsilon, delta), perturbed_objective.for_hiding(epsilon, delta)]
    for claimed, part in zip((epsilon, delta), zip(*parts, strict=True), strict=True):
        assert 0.999 * claimed < sum(part) < claimed


@pytest.mark.parametrize("mu", [0.1, 0.7, 3.0])
@pytest.mark.parametrize("epsilon", [-0.2, 0.05, 1.0, 4.0])
def test_the_delta_of_a_tilt_is_that_of_both_its_sides(mu, epsilon) -> None:
    """E max(0, 1 − exp(ε − μ|N| − μ²/2)), by adding it up."""
    z = np.linspace(-40, 40, 800_001)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    exact = (np.maximum(0.0, -np.expm1(epsilon - mu * np.abs(z) - mu**2 / 2)) * density).sum() * (z[1] - z[0])
    assert perturbed_objective._two_sided(mu, epsilon) == pytest.approx(exact, rel=1e-4, abs=1e-12)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_the_jacobian_takes_its_part_of_epsilon(neighbours) -> None:
    """A row of curvature λ on a weight Λ changes densities by 1 + λ/Λ, as ln(1 + λ/Λ) less of ε would."""
    for part in (0.1, 0.5):
        curved = privacy_delta(1.0, math.expm1(part), 1.0, 1.0, 3.0, neighbours)
        assert curved == pytest.approx(privacy_delta(1.0 - part, 1e-18, 1.0, 1.0, 3.0, neighbours), rel=1e-9)
