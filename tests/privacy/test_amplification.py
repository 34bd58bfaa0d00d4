"""An event of secret samples claims exactly the loss of its draws, or its charge is refused."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import pytest

from hedgerow import errors
from hedgerow.privacy.allowance import OneCallLedger
from hedgerow.privacy.amplification import require_private, sample_rate, subsampled_gaussian
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import _sampled_divergence, gaussian_epsilon, subsampled_epsilon
from hedgerow.privacy.events import COIN, Gaussian, PoissonSample, SubsampledGaussian, grid_at_most
from hedgerow.privacy.ledger import Accountant

CASES = {
    "few rows, many steps": dict(epsilon=1.0, delta=1e-6, heads=COIN // 50, steps=400, sensitivity=2.0, values=5),
    "half the rows": dict(epsilon=0.3, delta=1e-9, heads=COIN // 2, steps=10, sensitivity=1.0, values=1),
    "all rows, one step": dict(epsilon=2.0, delta=1e-5, heads=COIN, steps=1, sensitivity=1e-3, values=100),
}
BOTH = ("replace", "add-remove")


def made(case: str, neighbours: str) -> SubsampledGaussian:
    given = dict(CASES[case])
    return subsampled_gaussian(given.pop("epsilon"), given.pop("delta"), neighbours, **given)


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("case", CASES)
def test_events_made_here_are_accepted_and_close_to_the_least_noise(case, neighbours) -> None:
    event = made(case, neighbours)
    require_private(event, neighbours)
    assert (event.epsilon, event.delta) == (CASES[case]["epsilon"], CASES[case]["delta"])
    budget = Budget(event.epsilon, event.delta, neighbours)
    assert OneCallLedger(budget).charge(event).cost == event.epsilon
    less_noise = dataclasses.replace(event.noise, sigma=event.noise.sigma * (1 - 3e-3))
    with pytest.raises(errors.InvalidInput, match="epsilon of subsampled noise must be"):
        require_private(dataclasses.replace(event, noise=less_noise), neighbours)


CLAIMS = {
    "half the epsilon": lambda e: dataclasses.replace(e, epsilon=e.epsilon / 2),
    "a smaller delta": lambda e: dataclasses.replace(e, delta=e.delta / 10),
    "more steps": lambda e: dataclasses.replace(e, steps=2 * e.steps),
    "a larger sensitivity": lambda e: dataclasses.replace(
        e, noise=dataclasses.replace(e.noise, sensitivity=1.1 * e.noise.sensitivity)
    ),
    "less noise": lambda e: dataclasses.replace(e, noise=dataclasses.replace(e.noise, sigma=e.noise.sigma / 1.1)),
    "a coarse grid": lambda e: dataclasses.replace(
        e, noise=dataclasses.replace(e.noise, grid=grid_at_most(e.noise.sensitivity))
    ),
}


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("case", CASES)
def test_a_claim_of_less_than_is_drawn_is_refused_wherever_it_could_be_paid(case, claim, neighbours) -> None:
    false = CLAIMS[claim](made(case, neighbours))
    budget = Budget(100.0, 0.1, neighbours)
    for ask in (
        lambda: require_private(false, neighbours),
        lambda: budget.cost(false),
        lambda: Accountant(budget, slack=0.05).affords(false),
        lambda: Accountant(budget, slack=0.05).charge(false),
        lambda: OneCallLedger(budget).charge(false),
    ):
        with pytest.raises(errors.InvalidInput, match="subsampled noise must be"):
            ask()


@pytest.mark.parametrize("neighbours", BOTH)
def test_a_higher_rate_is_refused(neighbours) -> None:
    event = made("few rows, many steps", neighbours)
    with pytest.raises(errors.InvalidInput, match="subsampled noise must be"):
        require_private(dataclasses.replace(event, sample=PoissonSample(2 * event.sample.heads)), neighbours)
    require_private(dataclasses.replace(event, sample=PoissonSample(event.sample.heads // 2)), neighbours)


def test_privacy_for_added_and_removed_rows_is_not_privacy_for_replaced_rows() -> None:
    for case in CASES:
        event = made(case, "add-remove")
        with pytest.raises(errors.InvalidInput, match="subsampled noise must be"):
            Budget(100.0, 0.1, "replace").cost(event)
        Budget(100.0, 0.1, "add-remove").cost(made(case, "replace"))


def test_replacing_a_row_is_removing_one_and_adding_one() -> None:
    event = made("half the rows", "replace")
    z, rate = event.noise.sigma / event.noise.sensitivity, sample_rate(event.sample.heads)
    half = subsampled_epsilon(z, event.delta / (1 + math.exp(event.epsilon / 2)), rate, event.steps)
    assert 0.99 * event.epsilon <= 2 * half <= event.epsilon


def test_with_every_row_in_every_sample_the_noise_is_that_of_composed_gaussians() -> None:
    event = made("all rows, one step", "add-remove")
    exact = Budget(event.epsilon, event.delta).rho()
    assert event.noise.rho == pytest.approx(exact, rel=0.02)


def test_its_noise_is_so_fine_that_rounding_is_within_the_margin() -> None:
    for case, given in CASES.items():
        noise = made(case, "replace").noise
        assert math.sqrt(given["values"]) * noise.grid <= 5e-7 * noise.sensitivity


def test_rates_are_of_exact_coins() -> None:
    assert sample_rate(COIN) == 1
    assert sample_rate(COIN // 4) == 0.25
    for heads in (0, COIN + 1, 0.5, -1):
        with pytest.raises(errors.InvalidInput):
            PoissonSample(heads)


@pytest.mark.parametrize("steps", [1, 16, 100])
def test_steps_that_all_have_every_row_lose_what_one_gaussian_of_their_sum_does(steps) -> None:
    """T releases of Δ/σ = 1/z are one of √T/z: the Rényi bound is no less than its exact ε, and by little more."""
    z, delta = 4 * math.sqrt(steps), 1e-6
    exact = gaussian_epsilon(1 / 4, delta, 10.0)
    assert exact <= subsampled_epsilon(z, delta, 1.0, steps) <= 1.15 * exact


def test_noise_on_a_grid_that_the_proof_does_not_cover_is_refused() -> None:
    event = made("half the rows", "replace")
    coarse = dataclasses.replace(event.noise, grid=grid_at_most(event.noise.sensitivity / 1000))
    with pytest.raises(errors.InvalidInput, match="grid of subsampled noise"):
        Budget(2 * event.epsilon, 2 * event.delta).cost(dataclasses.replace(event, noise=coarse))


def power_series(x: Fraction) -> Fraction:
    """e^x for a small x."""
    return sum((x**k / math.factorial(k) for k in range(12)), Fraction(0))


@pytest.mark.parametrize(
    ("order", "z", "rate"), [(2, 10**6, 1e-3), (3, 10**4, 2.0**-30), (20, 10**6, 0.25), (64, 100, 1e-9)]
)
def test_rounding_makes_no_loss_on_a_sample_free(order, z, rate) -> None:
    """For one step the loss is far below the last digit of 1; for 10^16 steps it is not."""
    q = Fraction(rate)
    terms = (
        math.comb(order, i) * (1 - q) ** (order - i) * q**i * power_series(Fraction(i * i - i, 2 * z * z))
        for i in range(order + 1)
    )
    excess = sum(terms, Fraction(0)) - 1  # and ln(1 + excess) is that but for its square
    assert 0 < excess < 1e-9
    assert _sampled_divergence(order, float(z), rate) == pytest.approx(float(excess) / (order - 1), rel=1e-8, abs=0)


def test_steps_without_end_are_not_free() -> None:
    heads, steps = 1_075_579, 318_907_761_805_041_536  # of one step the rounded sum is a little below 1
    assert 1 < subsampled_epsilon(5e5, 1e-9, sample_rate(heads), steps) < 2
    false = SubsampledGaussian(1e-3, 1e-9, steps, PoissonSample(heads), Gaussian(1.0, 5e5, grid_at_most(5e-7)))
    with pytest.raises(errors.InvalidInput, match="subsampled noise must be"):
        Budget(1.0, 1e-6, "add-remove").cost(false)
