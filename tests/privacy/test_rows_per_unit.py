"""A budget for persons with k rows, against the loss of k steps of one row each."""

from __future__ import annotations

import math

import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import hedgerow as hr
from hedgerow import wire
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import gaussian_delta
from hedgerow.privacy.events import ApproximateDP, Gaussian, Laplace

SEVERAL = [2, 5, 40]


@pytest.mark.parametrize("k", SEVERAL)
def test_laplace_noise_on_k_rows_costs_what_the_budget_says(k) -> None:
    budget = Budget(1.0, 0.0, "add-remove", k)
    ledger = hr.Accountant(budget)
    ledger.charge(Laplace(1.0, 1.0 / ledger.remaining))
    scale = ledger.events[0].scale
    assert ledger.remaining == pytest.approx(0, abs=1e-12) and ledger.spent_epsilon == pytest.approx(1.0)
    assert k / scale == pytest.approx(1.0) and k / scale <= 1.0 + 1e-12  # k rows move the count by k: the log-ratio k/b


@pytest.mark.parametrize("k", SEVERAL)
def test_gaussian_noise_on_k_rows_is_private_by_its_own_law(k) -> None:
    budget = Budget(1.0, 1e-6, "add-remove", k)
    ledger = hr.Accountant(budget)
    ledger.charge(Gaussian(1.0, 1.0 / math.sqrt(2 * ledger.remaining)))
    sigma = ledger.events[0].sigma
    ε, μ = 1.0, k / sigma
    assert norm.cdf(μ / 2 - ε / μ) - math.exp(ε) * norm.cdf(-μ / 2 - ε / μ) <= 1e-6
    assert ledger.spent_epsilon <= 1.0 + 1e-9
    one = hr.Accountant(Budget(1.0, 1e-6, "add-remove"))
    assert one.budget.total / budget.total == pytest.approx(k**2)


@pytest.mark.parametrize("k", [1, *SEVERAL])
@pytest.mark.parametrize("share", [0.1, 1.0])
def test_the_loss_of_k_rows_is_that_of_one_row_with_k_times_less_noise(share, k) -> None:
    """A person moves a count by k: that is one row, a count of which has the noise divided by k."""
    person = hr.Accountant(Budget(1.0, 1e-6, "add-remove", k))
    σ = 1.0 / math.sqrt(2 * share * person.budget.total)
    person.charge(Gaussian(1.0, σ))
    row = hr.Accountant(Budget(1.0, 1e-6, "add-remove"))
    row.charge(Gaussian(1.0, σ / k * (1 + 1e-9)))
    true = brentq(lambda ε: gaussian_delta(k / σ, ε) - 1e-6, 1e-3, 5.0)
    assert true <= person.spent_epsilon
    assert row.spent_epsilon == pytest.approx(person.spent_epsilon, rel=0.05)
    if share == 1.0:
        assert person.spent_epsilon == pytest.approx(1.0)


@pytest.mark.parametrize("k", SEVERAL)
def test_one_call_gives_gaussian_noise_k_times_as_large_and_no_less(k) -> None:
    for allowance, factor in (
        (Allowance.of(Budget(1.0, 1e-6, "add-remove", k)), k),
        (Allowance.of(Budget(1.0, 1e-6)), 1),
    ):
        μ = allowance.mu * factor
        assert gaussian_delta(μ, 1.0) <= 1e-6 < gaussian_delta(μ * 1.001, 1.0)
    allowance = Allowance.of(Budget(1.0, 1e-6, "add-remove", k))
    with pytest.raises(BudgetExceeded):
        fine = Gaussian(1.0, 0.99 / allowance.mu, 2.0**-30)
        allowance.charge(fine)


@pytest.mark.parametrize("k", SEVERAL)
def test_an_approximate_step_is_held_to_what_k_of_them_add_up_to(k) -> None:
    budget = Budget(1.0, 1e-6, "replace", k)
    ε, δ = budget.of_a_row
    summed = sum(δ * math.exp(ε * i) for i in range(k))
    assert k * ε <= 1.0 and summed <= 1e-6 and k * ε == pytest.approx(1.0) and summed == pytest.approx(1e-6)
    allowance = Allowance.of(budget)
    assert allowance.approximate() == (ε, δ)
    with pytest.raises(BudgetExceeded):
        Allowance.of(budget).charge(ApproximateDP(ε, 1.01 * δ))
    with pytest.raises(BudgetExceeded):
        Allowance.of(budget).charge(ApproximateDP(1.01 * ε, δ))
    assert Allowance.of(budget).charge(ApproximateDP(ε, δ)).cost == pytest.approx(1.0)


def test_events_that_can_fail_outright_are_not_sold_to_persons_from_a_ledger() -> None:
    with pytest.raises(InvalidInput, match="slack must be 0 where a person has several rows"):
        hr.Accountant(Budget(1.0, 1e-6, "replace", 2), slack=1e-7)
    with pytest.raises(BudgetExceeded, match="slack"):
        hr.Accountant(Budget(1.0, 1e-6, "replace", 2)).charge(ApproximateDP(1e-3, 1e-9))


def test_a_budget_says_its_rows_only_where_there_are_several_and_keeps_them_on_the_wire() -> None:
    one, several = Budget(1.0, 1e-6), Budget(1.0, 1e-6, "add-remove", 4)
    assert "rows_per_unit" not in repr(one) and "rows_per_unit=4" in repr(several)
    assert "rows_per_unit" not in wire.to_json(one)
    for budget in (one, several):
        assert wire.from_json(wire.to_json(budget)) == budget
    assert one != several and hash(several) == hash(Budget(1.0, 1e-6, "add-remove", 4))
    for bad in (0, -1, 1.5, True, 2**20 + 1, None):
        with pytest.raises(InvalidInput, match="rows_per_unit"):
            Budget(1.0, 1e-6, "add-remove", bad)
    assert Budget(20.0, 1e-6, "add-remove", 2**20).of_a_row[1] > 0
    assert Budget(1000.0, 1e-6, "add-remove", 2).of_a_row[1] >= 0
