"""Noisy SGD: subsampled noise, billed as one (ε, δ) step."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hedgerow import errors, losses
from hedgerow.convex import sets
from hedgerow.erm.solvers.noisy_sgd import noisy_sgd
from hedgerow.privacy import events
from hedgerow.privacy.amplification import subsampled_gaussian
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import gaussian_mu, subsampled_multiplier
from hedgerow.privacy.ledger import Accountant

BUDGET = Budget(1.0, 1e-6)


def classes(n: int = 4000, p: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, p))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, (X @ np.linspace(3, -1, p) + 0.3 * rng.normal(size=n) > 0).astype(int)


@pytest.mark.parametrize("over", [sets.L2Ball(3.0), sets.L1Ball(3.0)], ids=["euclidean", "hyperbolic"])
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Hinge(ridge=0.01)], ids=lambda v: type(v).__name__)
def test_it_learns_and_bills_one_step_of_the_whole_budget(loss, over) -> None:
    X, y = classes()
    result = noisy_sgd(X, y, loss=loss, over=over, budget=BUDGET, epochs=10, seed=0)
    assert loss.value(X @ result.theta, y).mean() < 0.95 * loss.value(0 * y, y).mean()
    (event,) = result.events
    assert isinstance(event, events.SubsampledGaussian) and (event.epsilon, event.delta) == (1.0, 1e-6)
    assert result.cost == 1.0 and event.steps == result.iterations
    assert over.contains(result.theta, 1e-6) and result.risk_bound > 0


def test_a_full_sample_costs_what_the_gaussian_mechanism_costs() -> None:
    """Rate 1 is no sampling: the Rényi calibration is near the analytic one, and never below it."""
    μ = gaussian_mu(1.0, 1e-6)
    multiplier = subsampled_multiplier(1.0, 1e-6, 1.0, 16)
    assert math.sqrt(16) / μ <= multiplier <= 1.15 * math.sqrt(16) / μ


def test_sampling_amplifies_and_replacing_a_row_costs_more_than_losing_it() -> None:
    def noise(rate: float, neighbours: str) -> float:
        heads = int(rate * events.COIN)
        event = subsampled_gaussian(1.0, 1e-6, neighbours, heads=heads, steps=100, sensitivity=1.0, values=1)
        return event.noise.sigma

    once, sampled = (noise(q, "add-remove") for q in (1.0, 0.1))
    assert sampled < once / 4
    assert noise(0.1, "replace") > 1.5 * sampled


def test_an_accountant_without_slack_is_refused_and_one_with_slack_pays() -> None:
    X, y = classes(500)
    choices = {"loss": losses.Logistic(), "over": sets.L2Ball(1.0), "seed": 0, "epochs": 2}
    with pytest.raises(errors.BudgetExceeded, match="slack"):
        noisy_sgd(X, y, budget=Accountant(BUDGET), **choices)
    accountant = Accountant(BUDGET, slack=5e-7)
    assert noisy_sgd(X, y, budget=accountant, **choices).cost == pytest.approx(BUDGET.rho(5e-7))
    assert accountant.slack == 0


@pytest.mark.parametrize("choices", [{"batch": 0}, {"epochs": -1.0}, {"over": sets.Unconstrained()}])
def test_choices_that_make_no_sense_are_refused(choices) -> None:
    X, y = classes(20)
    with pytest.raises(errors.InvalidInput):
        noisy_sgd(X, y, **{"loss": losses.Logistic(), "over": sets.L2Ball(1.0), "budget": BUDGET} | choices)
