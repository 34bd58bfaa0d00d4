"""A part of a budget buys noise that costs exactly what it says, and pays for no more than it has.

A new way to spend an ``Amount`` is tested by one line in ``BUYS``.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import errors
from hedgerow.privacy.allowance import Allowance, Amount, OneCallLedger
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import gaussian_delta, gaussian_mu
from hedgerow.privacy.events import (
    AboveThreshold,
    ApproximateDP,
    Exponential,
    Gaussian,
    Laplace,
    PerturbedObjective,
    Repeated,
)
from hedgerow.privacy.ledger import Accountant

BUDGETS = {
    "pure": Budget(1.0, 0.0),
    "approximate": Budget(1.0, 1e-6),
    "add-remove, pure": Budget(0.3, 0.0, "add-remove"),
    "add-remove": Budget(3.0, 1e-9, "add-remove"),
}
PURE, APPROXIMATE = BUDGETS["pure"], BUDGETS["approximate"]
BUYS = {
    "noise": lambda amount: amount.noise(2.0, math.sqrt(2.0), 0.25),
    "count": lambda amount: amount.count(),
    "marginal": lambda amount: amount.marginal(),
    "choice": lambda amount: amount.choice(3.0),
    "a guard round": lambda amount: AboveThreshold(1.0, 0.4 * amount.round_epsilon(), 0.6 * amount.round_epsilon()),
    "a seventh of the guard rounds": lambda amount: AboveThreshold(
        1.0, 0.4 * amount.round_epsilon(7), 0.6 * amount.round_epsilon(7)
    ),
    "gaussian on a fine grid": lambda amount: amount.fine_gaussian(1.5, values=10),
    "one of 50 gaussians": lambda amount: amount.fine_gaussian(1.5, values=10, steps=50),
    "a third of them": lambda amount: amount.fine_gaussian(1.5, values=10, steps=50, share=1 / 3),
}
OF_WHICH = {"a seventh of the guard rounds": 7, "one of 50 gaussians": 50, "a third of them": 150}

ONLY_WITH_A_DELTA = {"gaussian on a fine grid", "one of 50 gaussians", "a third of them"}

every_budget = pytest.mark.parametrize("budget", BUDGETS.values(), ids=list(BUDGETS))


# What an amount buys


@every_budget
@pytest.mark.parametrize("buys", BUYS)
@pytest.mark.parametrize("share", [1.0, 0.1, 1e-5])
def test_noise_bought_with_an_amount_costs_exactly_that_amount(budget, buys, share) -> None:
    amount = Amount.share_of(budget, share)
    assert amount.left == share * budget.total
    if budget.pure and buys in ONLY_WITH_A_DELTA:
        with pytest.raises(errors.InvalidInput, match="delta must be above 0 for Gaussian noise"):
            BUYS[buys](amount)
        return
    spent = OF_WHICH.get(buys, 1) * budget.cost(BUYS[buys](amount))
    assert spent <= amount.left * (1 + 1e-12)
    assert spent == pytest.approx(amount.left, rel=1e-9)


@every_budget
def test_it_buys_laplace_noise_by_l1_without_a_delta_and_gaussian_noise_by_l2_with_one(budget) -> None:
    noise = Amount.share_of(budget).noise(5.0, 2.0)
    assert noise.sensitivity == (5.0 if budget.pure else 2.0)
    assert isinstance(noise, Laplace if budget.pure else Gaussian)
    count, marginal = Amount.share_of(budget).count(), Amount.share_of(budget).marginal()
    assert count.sensitivity == budget.linear()
    assert marginal.sensitivity == (budget.marginal_l1() if budget.pure else budget.marginal_l2())
    assert Amount.share_of(budget).choice(3.0).sensitivity == 3.0


def test_gaussian_noise_on_a_grid_costs_all_of_an_amount() -> None:
    amount = Amount.share_of(APPROXIMATE, 0.3)
    assert APPROXIMATE.cost(amount.gaussian(1.5, 0.25)) == pytest.approx(amount.left, rel=1e-12)
    assert (amount.gaussian(1.5, 0.25).sensitivity, amount.gaussian(1.5, 0.25).grid) == (1.5, 0.25)


def test_a_fine_grid_is_paid_for_in_the_sensitivity() -> None:
    for sensitivity, values in ((1.5, 10), (1e-6, 1), (100.0, 10**6)):
        noise = Amount.share_of(APPROXIMATE).fine_gaussian(sensitivity, values)
        assert math.sqrt(values) * noise.grid <= 1e-6 * sensitivity
        clipped = sensitivity * (1 + 5e-7)  # what rounding in clipped norms may add, besides the grid
        assert noise.sensitivity >= (clipped + math.sqrt(values) * noise.grid) * (1 - 1e-15)
        assert noise.sensitivity <= sensitivity * (1 + 2e-6)


@given(st.floats(1e-12, 50.0))
def test_the_epsilon_of_a_round_is_the_largest_that_its_cost_buys(cost) -> None:
    epsilon = Amount(APPROXIMATE, cost).round_epsilon()
    assert epsilon * math.tanh(epsilon / 2) <= cost
    more = epsilon * (1 + 1e-12)
    assert more * math.tanh(more / 2) >= cost * (1 - 1e-15)
    assert Amount(PURE, cost).round_epsilon(4) == cost / 4


@every_budget
def test_a_part_of_a_plan_is_a_plan(budget) -> None:
    for amount in (Amount.share_of(budget), Allowance.of(Accountant(budget))):
        part = amount.part(0.25)
        assert type(part) is Amount
        assert (part.budget, part.left) == (budget, 0.25 * budget.total)
        assert amount.left == budget.total
    assert type(Allowance.share_of(budget)) is Amount


# What an allowance pays


@every_budget
def test_an_allowance_that_is_split_off_and_charged_is_no_longer_left(budget) -> None:
    ledger = Accountant(budget)
    whole = Allowance.of(ledger, 0.8 * budget.total)
    part = whole.carve(0.3 * budget.total)
    assert whole.left == pytest.approx(0.5 * budget.total)
    assert (part.left, part.ledger, part.budget) == (0.3 * budget.total, ledger, budget)
    assert ledger.spent == 0
    receipt = part.charge(part.count(), why="a count")
    assert receipt.cost == pytest.approx(0.3 * budget.total) == ledger.spent
    assert abs(part.left) <= 1e-12 * budget.total
    assert ledger.entries()[0].why == "a count"
    event = whole.part(0.5).marginal()
    whole.charge(event, dataclasses.replace(event))
    assert abs(whole.left) <= 1e-12 * budget.total
    assert ledger.spent == pytest.approx(0.8 * budget.total)


@every_budget
def test_beyond_what_is_left_everything_is_refused_whatever_the_ledger_has(budget) -> None:
    ledger = Accountant(budget)
    allowance = Allowance.of(ledger, 0.1 * budget.total)
    dear = Amount(budget, 0.11 * budget.total).count()
    for ask in (
        lambda: allowance.charge(dear),
        lambda: allowance.charge(*[Amount(budget, 0.06 * budget.total).count()] * 2),
    ):
        with pytest.raises(errors.BudgetExceeded, match="what is left"):
            ask()
    for amount in (0.11 * budget.total, -1e-3, math.nan, math.inf):
        with pytest.raises(errors.BudgetExceeded, match="A part must be at most"):
            allowance.carve(amount)
    assert (allowance.left, ledger.spent) == (0.1 * budget.total, 0)
    part = allowance.carve(0.1 * budget.total)
    with pytest.raises(errors.BudgetExceeded):
        allowance.charge(Amount(budget, 1e-3 * budget.total).count())
    with pytest.raises(errors.BudgetExceeded):
        part.carve(0.1001 * budget.total)
    part.charge(part.count())
    with pytest.raises(errors.BudgetExceeded):
        part.charge(Amount(budget, 1e-6 * budget.total).count())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=200))
def test_all_shares_of_an_allowance_fit_it_whatever_they_round_to(weights) -> None:
    ledger = Accountant(APPROXIMATE)
    allowance = Allowance.of(ledger, 0.5 * APPROXIMATE.total)
    for share in 0.5 * APPROXIMATE.total * np.array(weights) / math.fsum(weights):
        part = allowance.carve(float(share))
        part.charge(part.count())
    assert ledger.spent <= 0.5 * APPROXIMATE.total * (1 + 1e-12)
    assert abs(allowance.left) <= 1e-12 * APPROXIMATE.total


def test_two_allowances_of_one_ledger_share_what_it_has() -> None:
    ledger = Accountant(PURE)
    one, other = Allowance.of(ledger), Allowance.of(ledger)
    one.charge(one.part(0.7).count())
    with pytest.raises(errors.BudgetExceeded):
        other.charge(other.part(0.7).count())
    assert other.left == 1.0  # a refusal takes nothing
    assert ledger.spent == pytest.approx(0.7)


def test_an_allowance_is_of_a_budget_or_of_a_ledger_with_something_left() -> None:
    for payer in (1.0, None, "all", Amount.share_of(PURE)):
        with pytest.raises(errors.InvalidInput, match="budget must be a Budget or an Accountant"):
            Allowance.of(payer)
    with pytest.raises(errors.InvalidInput, match="spend must be left out with a Budget"):
        Allowance.of(PURE, 0.5)
    ledger = Accountant(PURE)
    with pytest.raises(errors.BudgetExceeded, match="spend must be at most epsilon = 1"):
        Allowance.of(ledger, 1.1)
    for spend in (0.0, -1.0, math.nan):
        with pytest.raises(errors.InvalidInput, match="spend must be"):
            Allowance.of(ledger, spend)
    ledger.charge(Laplace(1.0, 1.0))
    with pytest.raises(errors.BudgetExceeded, match="Found none"):
        Allowance.of(ledger)


# A Budget that pays for one call


def test_gaussian_noise_that_is_all_of_a_budget_has_the_analytic_scale_and_is_certified() -> None:
    for budget in (APPROXIMATE, Budget(0.1, 1e-9), Budget(8.0, 1e-3, "add-remove")):
        for steps in (1, 20):
            allowance = Allowance.of(budget)
            noise = allowance.fine_gaussian(1.0, values=3, steps=steps)
            mu = math.sqrt(steps) * noise.sensitivity / noise.sigma
            assert gaussian_delta(mu, budget.epsilon) <= budget.delta  # Balle & Wang, Theorem 8
            assert gaussian_delta(mu * (1 + 1e-4), budget.epsilon) > budget.delta
            assert noise.sigma < Amount.share_of(budget).fine_gaussian(1.0, values=3, steps=steps).sigma
            receipt = allowance.charge(*[noise] * steps)
            assert receipt.cost == pytest.approx(budget.epsilon, rel=1e-5)
            assert receipt.cost <= budget.epsilon
            assert allowance.left == 0


def test_a_little_less_noise_than_a_budget_buys_is_refused() -> None:
    noise = Allowance.of(APPROXIMATE).fine_gaussian(1.0, values=3)
    for wrong in (
        dataclasses.replace(noise, sigma=noise.sigma * (1 - 1e-4)),
        dataclasses.replace(noise, sensitivity=1.001),
    ):
        with pytest.raises(errors.BudgetExceeded):
            Allowance.of(APPROXIMATE).charge(wrong)
    with pytest.raises(errors.BudgetExceeded):
        Allowance.of(APPROXIMATE).charge(noise, noise)


def test_the_cost_of_less_noise_than_all_is_its_own_epsilon() -> None:
    noise = Gaussian(1.0, 20.0, 2.0**-16)  # fine enough for the formula of continuous noise
    cost = OneCallLedger(APPROXIMATE).charge(noise).cost
    assert gaussian_delta(1 / 20, cost) <= 1e-6 < gaussian_delta(1 / 20, cost * 0.999)


@pytest.mark.parametrize("part", [1.0, 0.5])
def test_a_millionth_of_epsilon_and_of_delta_is_kept_for_noise_on_a_grid(part) -> None:
    """The formula of continuous noise certifies the last μ that fits and half of it, and refuses one just above."""
    kept, ε, δ = 1 - 1e-6, APPROXIMATE.epsilon, APPROXIMATE.delta
    μ = part * gaussian_mu(ε * kept, δ * kept)
    cost = OneCallLedger(APPROXIMATE).charge(Gaussian(1.0, (1 + 1e-9) / μ, 2.0**-20)).cost
    assert gaussian_delta(μ, cost * kept) <= δ * kept * (1 + 1e-7)
    if part == 1:
        with pytest.raises(errors.BudgetExceeded):
            OneCallLedger(APPROXIMATE).charge(Gaussian(1.0, (1 - 5e-8) / μ, 2.0**-20))


def test_a_step_with_a_delta_is_paid_by_its_epsilon_and_delta() -> None:
    epsilon, delta = Allowance.of(APPROXIMATE).approximate()
    assert (epsilon, delta) == (1.0, 1e-6)
    tilted = PerturbedObjective(epsilon, delta, 0.01, Gaussian(1.0, 20.0, 2.0**-28), Gaussian(0.1, 100.0, 2.0**-14))
    assert Allowance.of(APPROXIMATE).charge(tilted).cost == epsilon
    for false in (dataclasses.replace(tilted, epsilon=1.01), dataclasses.replace(tilted, delta=1.01e-6)):
        with pytest.raises(errors.BudgetExceeded, match="cost must be at most epsilon = 1 and delta = 1e-06"):
            Allowance.of(APPROXIMATE).charge(false)


def test_a_step_with_a_delta_takes_what_a_ledger_and_its_slack_allow() -> None:
    ledger = Accountant(APPROXIMATE, slack=4e-7)
    allowance = Allowance.of(ledger, 0.5 * ledger.remaining)
    epsilon, delta = allowance.approximate()
    assert delta == 4e-7
    assert allowance.charge(ApproximateDP(epsilon, delta)).cost == pytest.approx(0.5 * APPROXIMATE.rho(4e-7), rel=1e-9)
    with pytest.raises(errors.BudgetExceeded, match="must have slack in delta"):
        Allowance.of(ledger).approximate()
    with pytest.raises(errors.InvalidInput, match="delta must be above 0"):
        Allowance.of(Accountant(PURE)).approximate()


def test_other_calls_are_certified_by_their_rho() -> None:
    for events in (
        [Exponential(1.0, 0.01)] * 20,
        [Repeated(Laplace(1.0, 50.0), 30)],
        [Gaussian(1.0, 9.0), Laplace(1.0, 50.0)],
    ):
        alone = Accountant(APPROXIMATE)
        for event in events:
            alone.charge(event)
        receipt = Allowance.of(APPROXIMATE).charge(*events)
        assert receipt.cost == pytest.approx(alone.spent_epsilon, rel=1e-9)
        assert receipt.cost <= 1


def test_a_pure_budget_pays_for_pure_events_alone() -> None:
    assert Allowance.of(PURE).charge(*[Exponential(1.0, 0.25)] * 4).cost == pytest.approx(1.0)
    for events in ([Gaussian(1.0, 1e6)], [ApproximateDP(0.1, 1e-9)], [Exponential(1.0, 0.25)] * 5):
        with pytest.raises(errors.BudgetExceeded):
            Allowance.of(PURE).charge(*events)
    with pytest.raises(errors.InvalidInput, match="delta must be above 0"):
        Allowance.of(PURE).fine_gaussian(1.0, 1)


@pytest.mark.parametrize("budget", [PURE, APPROXIMATE], ids=["pure", "approximate"])
def test_one_call_is_paid_once(budget) -> None:
    allowance = Allowance.of(budget)
    allowance.charge(Laplace(1.0, 100.0))
    assert allowance.left == 0
    with pytest.raises(errors.BudgetExceeded, match="must be charged once"):
        allowance.charge(Laplace(1.0, 1e6))
    with pytest.raises(errors.BudgetExceeded, match="Found none"):
        Allowance.of(allowance.ledger)


@every_budget
def test_a_table_of_counts_has_the_noise_of_a_table_and_a_number_of_rows_that_of_one(budget) -> None:
    """A replaced row moves two counts of a table, and the number of rows not at all: or by one, to be safe."""
    amount, rows_moved = Amount(budget, 0.01), 2 if budget.neighbours == "replace" else 1
    assert amount.marginal().sensitivity == pytest.approx(rows_moved if budget.pure else math.sqrt(rows_moved))
    assert amount.count().sensitivity == 1
