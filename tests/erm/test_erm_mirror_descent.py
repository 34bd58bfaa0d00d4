"""Mirror descent: the theorem of its schedule, its noise, and its accuracy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from hedgerow import errors, losses
from hedgerow.convex import sets
from hedgerow.erm.solvers.descent import Terms, descend, schedule
from hedgerow.erm.solvers.mirror_descent import mirror_descent, risk_bound
from hedgerow.privacy import events
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import gaussian_mu
from hedgerow.privacy.ledger import Accountant

BUDGET = Budget(1.0, 1e-6)
SETS = {
    "l2": sets.L2Ball(2.0),
    "l1": sets.L1Ball(2.0),
    "box": sets.Box(-1.0, 1.0),
    "simplex": sets.Simplex(),
    "polytope": sets.Polytope(np.vstack([np.eye(6), -np.eye(6)])),
    "group": sets.GroupL1Ball(2.0, 2),
    "interpolation": sets.InterpolationBall(2.0, 0.5),
    "nuclear": sets.NuclearBall(2.0, (2, 3)),
}


def classes(n: int = 4000, p: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, p))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, (X @ np.linspace(3, -1, p) + 0.3 * rng.normal(size=n) > 0).astype(int)


def risk(loss, X, y, theta) -> float:
    return float(loss.value(X @ theta, y).mean() + loss.ridge / 2 * theta @ theta)


def best(loss, X, y, over, steps: int = 1500) -> float:
    """The least risk over the set, by projected gradients without noise."""
    θ = over.project(np.zeros(X.shape[1]))
    for _ in range(steps):
        slope = X.T @ loss.derivative(X @ θ, y) / len(y) + loss.ridge * θ
        θ = over.project(θ - 2.0 * slope)
    return risk(loss, X, y, θ)


@pytest.mark.parametrize("name", SETS)
def test_with_every_potential_the_excess_risk_is_within_the_theorems_bound_and_theta_in_the_set(name) -> None:
    X, y = classes()
    loss, over = losses.Logistic(), SETS[name]
    result = mirror_descent(X, y, loss=loss, over=over, budget=BUDGET, seed=1)
    assert over.contains(result.theta, 1e-6)
    assert risk(loss, X, y, result.theta) - best(loss, X, y, over) <= result.risk_bound
    assert risk(loss, X, y, result.theta) < risk(loss, X, y, over.potential(6).start) or name == "simplex"


@pytest.mark.audit
@pytest.mark.parametrize(
    "loss",
    [losses.Hinge(), losses.SmoothedHinge(), losses.Logistic(ridge=0.05), losses.Hinge(ridge=0.05)],
    ids=["kinks", "smooth", "ridge", "kinks and ridge"],
)
def test_losses_with_kinks_and_ridges_are_learnt_within_their_bound(loss) -> None:
    X, y = classes()
    over = SETS["l2"]
    result = mirror_descent(X, y, loss=loss, over=over, budget=BUDGET, seed=2)
    assert risk(loss, X, y, result.theta) < risk(loss, X, y, np.zeros(6))
    assert risk(loss, X, y, result.theta) - best(loss, X, y, over) <= result.risk_bound


@pytest.mark.audit
@pytest.mark.parametrize("smoothness", [0.25, math.inf], ids=["smooth", "kinks"])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_schedules_bound_holds_for_a_quadratic_in_expectation(smoothness, ridge) -> None:
    """200 runs; the mean excess stays below the bound, which it would pass only by 5 standard errors."""
    rng, p, radius, B = np.random.default_rng(0), 4, 3.0, 0.05
    h, centre = 0.25 * np.array([1.0, 0.3, 0.1, 0.0]), np.array([2.0, -1.0, 1.0, 0.0])
    over = sets.L2Ball(radius)
    terms = Terms(radius**2 / 2, B**2 * p, smoothness, float(0.25 * 2 * radius), ridge)
    plan = schedule(terms, 200)

    def value(θ: np.ndarray) -> float:
        return float((h * (θ - centre) ** 2).sum() / 2 + ridge / 2 * θ @ θ)

    least = value(over.project(h * centre / (h + ridge + 1e-300)))
    noise = B * math.sqrt(plan.count)
    runs = [
        value(descend(lambda θ: h * (θ - centre) + noise * rng.normal(size=p), over.potential(p), plan)) - least
        for _ in range(200)
    ]
    assert np.mean(runs) <= plan.bound + 5 * np.std(runs) / math.sqrt(200)
    assert plan.bound < terms.lipschitz * radius  # it says something


def test_more_rows_mean_less_risk_at_the_rates_of_the_theorem() -> None:
    ball = sets.L2Ball(1.0).potential(10)
    mu = gaussian_mu(1.0, 1e-6)
    convex = [risk_bound(n, mu, 1.0, ball) for n in (10**4, 10**6)]
    strong = [risk_bound(n, mu, 1.0, ball, ridge=1.0) for n in (10**4, 10**6)]
    assert math.log10(convex[0] / convex[1]) == pytest.approx(2, abs=0.01)
    assert math.log10(strong[0] / strong[1]) == pytest.approx(4, abs=0.05)
    wide = [risk_bound(10**5, mu, 1.0, sets.L1Ball(1.0).potential(p)) for p in (10, 10_000)]
    assert wide[1] / wide[0] < math.log(20_000) / math.log(20) * 1.2


@pytest.mark.parametrize("smoothness", [1.0, math.inf])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_less_noise_never_makes_the_bound_wider(smoothness, ridge) -> None:
    found = [schedule(Terms(1.0, noise, smoothness, 1.0, ridge), 100).bound for noise in 10.0 ** -np.arange(0, 21)]
    nearly = 1.1  # the fewest steps with nearly the best bound
    assert all(less <= nearly * more for more, less in itertools.pairwise(found))
    assert found[-1] < 0.21  # with kinks and no noise it is √2·G·√(2D/T)


@pytest.mark.parametrize(("neighbours", "rows", "factor"), [("replace", None, 2.0), ("add-remove", 4000, 1.0)])
def test_the_noise_is_the_sensitivity_times_the_root_of_the_steps_over_mu(neighbours, rows, factor) -> None:
    X, y = classes()
    result = mirror_descent(
        X, y, loss=losses.Huber(), over=sets.L2Ball(1.0), budget=Budget(1.0, 1e-6, neighbours), expected_rows=rows,
        iterations=25, seed=0,
    )  # fmt: skip
    (event,) = set(result.events)
    assert isinstance(event, events.Gaussian) and len(result.events) == 25
    assert event.sensitivity == pytest.approx(factor * 1.0, rel=1e-5)  # Huber's slope is at most 1, rows at most 1
    assert event.sigma == pytest.approx(factor * math.sqrt(25) / gaussian_mu(1.0, 1e-6), rel=1e-5)
    assert 0.999 < result.cost <= 1.0


def test_an_accountant_pays_a_share_and_can_pay_again() -> None:
    X, y = classes()
    accountant = Accountant(BUDGET)
    for _ in range(2):
        result = mirror_descent(
            X, y, loss=losses.Logistic(), over=SETS["l2"], budget=accountant, spend=BUDGET.total / 2, seed=0
        )
        assert result.cost == pytest.approx(BUDGET.total / 2)
    with pytest.raises(errors.BudgetExceeded):
        mirror_descent(X, y, loss=losses.Logistic(), over=SETS["l2"], budget=accountant, seed=0)


def test_an_unbounded_set_and_a_silly_count_are_refused() -> None:
    X, y = classes(20)
    with pytest.raises(errors.InvalidInput, match="over must be a bounded set"):
        mirror_descent(X, y, loss=losses.Logistic(), over=sets.Unconstrained(), budget=BUDGET)
    with pytest.raises(errors.InvalidInput, match="iterations must be"):
        mirror_descent(X, y, loss=losses.Logistic(), over=SETS["l2"], budget=BUDGET, iterations=0)


def test_rows_that_do_not_fit_the_bound_cannot_make_it_less_private() -> None:
    """A row of a million is the row at the bound: the sums, and so the results for one seed, are the same."""
    X, y = classes(50)
    X[0] *= 1e6
    clipped = X.copy()
    clipped[0] /= np.linalg.norm(X[0])
    a, b = (
        mirror_descent(Z, y, loss=losses.Logistic(), over=SETS["l2"], budget=BUDGET, seed=3).theta for Z in (X, clipped)
    )
    assert np.allclose(a, b, atol=1e-6)
