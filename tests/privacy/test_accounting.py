"""The budget's numbers against independent formulas, and a filter that refuses before anything is drawn."""

from __future__ import annotations

import math
import re
import subprocess
import sys

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from hedgerow.privacy.UNKNOWN__dominating_laplace import _dominating_laplace
from scipy import optimize, stats

from hedgerow import errors
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import AboveThreshold, ApproximateDP, Exponential, Gaussian, Laplace
from hedgerow.privacy.ledger import Accountant

BUDGETS = [(1.0, 1e-9), (1.0, 1e-6), (0.1, 1e-12), (1e-3, 1e-6), (10.0, 1e-5), (100.0, 1e-5), (0.5, 0.3)]


def log_delta_of_zcdp(ρ: float, ε: float) -> float:
    """Canonne, Kamath & Steinke, Corollary 13: the least over α > 1 of e^((α−1)(αρ−ε))/(α−1)·(1 − 1/α)^α, in logs."""

    def at(log_excess: float) -> float:
        α = 1 + math.exp(log_excess)
        return (α - 1) * (α * ρ - ε) - math.log(α - 1) + α * math.log1p(-1 / α)

    return float(optimize.minimize_scalar(at, bounds=(-4, 25), method="bounded", options={"xatol": 1e-12}).fun)


def log_delta_of_gaussian(ρ: float, ε: float) -> float:
    """The exact δ of one Gaussian mechanism of this ρ (Balle & Wang, Theorem 8), in logs."""
    μ = math.sqrt(2 * ρ)
    first = stats.norm.logcdf(μ / 2 - ε / μ)
    return float(first + np.log1p(-np.exp(ε + stats.norm.logcdf(-μ / 2 - ε / μ) - first)))


# Budget


@pytest.mark.parametrize("ε", [0, -1, math.nan, math.inf, -math.inf, "1", True, None])
def test_an_epsilon_that_is_not_a_finite_number_above_zero_is_refused(ε) -> None:
    with pytest.raises(
        errors.InvalidInput, match=f"epsilon must be a finite number above 0. Found {re.escape(repr(ε))}"
    ):
        Budget(ε, 1e-9)


@pytest.mark.parametrize("δ", [-1e-9, 1, 1.5, math.nan, math.inf, "0", None, False])
def test_a_delta_outside_zero_to_one_is_refused(δ) -> None:
    with pytest.raises(errors.InvalidInput, match="delta must be at least 0 and below 1"):
        Budget(1.0, δ)


@pytest.mark.parametrize("neighbours", ["add", "", "Replace", None, 1])
def test_unknown_neighbours_are_refused_by_name(neighbours) -> None:
    with pytest.raises(
        errors.InvalidInput, match=f"neighbours must be 'replace' or 'add-remove'. Found {neighbours!r}"
    ):
        Budget(1.0, 0, neighbours)


def test_epsilon_and_delta_have_no_default() -> None:
    with pytest.raises(TypeError):
        Budget()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Budget(1.0)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("ask", "replace", "add_remove"),
    [
        (lambda b: b.linear(), 1, 1),
        (lambda b: b.bounded(3.5), 7, 3.5),
        (lambda b: b.marginal_l1(), 2, 1),
        (lambda b: b.marginal_l2(), math.sqrt(2), 1),
        (lambda b: b.marginal_distance(), 2, 1),
        (lambda b: b.gradient(0.5), 1, 0.5),
    ],
)
def test_sensitivities_follow_the_neighbours(ask, replace, add_remove) -> None:
    assert ask(Budget(1, 0)) == ask(Budget(1, 0, "replace")) == replace
    assert ask(Budget(1, 0, "add-remove")) == add_remove


def test_brute_force_finds_no_neighbours_further_apart_than_the_stated_sensitivities() -> None:
    rng = np.random.default_rng(0)
    cells, target = 5, rng.random(5) * 4
    scores = rng.random((200, cells))
    moves = {
        "replace": [np.eye(cells)[i] - np.eye(cells)[j] for i in range(cells) for j in range(cells)],
        "add-remove": [sign * np.eye(cells)[i] for i in range(cells) for sign in (1, -1)],
    }
    table = np.array([3.0, 1, 0, 6, 2])
    for neighbours, steps in moves.items():
        budget = Budget(1, 0, neighbours)
        assert max(np.abs(m).sum() for m in steps) == budget.marginal_l1()
        assert max(np.sqrt((m**2).sum()) for m in steps) == pytest.approx(budget.marginal_l2())
        assert max(np.abs(scores @ m).max() for m in steps) <= budget.linear()
        assert max(np.abs((2 * scores - 1) @ m).max() for m in steps) <= budget.bounded(1)
        distances = [abs(np.abs(table + m - target).sum() - np.abs(table - target).sum()) for m in steps]
        assert max(distances) <= budget.marginal_distance() * (1 + 1e-12)


@pytest.mark.parametrize("bound", [0, -1, math.nan])
def test_a_bound_that_bounds_nothing_is_refused(bound) -> None:
    for ask in (Budget(1, 0).bounded, Budget(1, 0).gradient):
        with pytest.raises(errors.InvalidInput):
            ask(bound)


def test_the_total_is_epsilon_without_a_delta_and_rho_with_one() -> None:
    assert (Budget(0.7, 0).total, Budget(0.7, 0).currency, Budget(0.7, 0).pure) == (0.7, "epsilon", True)
    mixed = Budget(0.7, 1e-6)
    assert (mixed.total, mixed.currency, mixed.pure) == (mixed.rho(), "rho", False)


@pytest.mark.parametrize(("ε", "δ"), [b for b in BUDGETS if b[1] < 0.1])
def test_rho_is_the_root_of_the_published_conversion_and_never_above_it(ε, δ) -> None:
    root = optimize.brentq(lambda ρ: log_delta_of_zcdp(ρ, ε) - math.log(δ), ε * 1e-9, ε, xtol=1e-300, rtol=1e-14)
    assert root * (1 - 1e-5) <= Budget(ε, δ).rho() <= root * (1 + 1e-11)


@pytest.mark.parametrize(("ε", "δ"), BUDGETS)
def test_a_gaussian_that_spends_all_of_rho_is_truly_within_the_budget(ε, δ) -> None:
    assert log_delta_of_gaussian(Budget(ε, δ).rho(), ε) <= math.log(δ)


def test_rho_at_one_and_a_billionth_is_fifteen_thousandths_and_beats_the_simple_formula() -> None:
    ρ = Budget(1, 1e-9).rho()
    simple = optimize.brentq(lambda ρ: ρ + 2 * math.sqrt(ρ * math.log(1e9)) - 1, 1e-6, 1)
    assert ρ == pytest.approx(0.014973, abs=1e-6) and simple == pytest.approx(0.0118, abs=1e-4)


def test_slack_is_taken_from_delta_before_converting() -> None:
    budget = Budget(1, 1e-6)
    assert budget.rho(9e-7) == pytest.approx(Budget(1, 1e-7).rho(), rel=1e-9)
    assert budget.rho(9e-7) < budget.rho()


@pytest.mark.parametrize("slack", [-1e-9, 1e-6, 1, math.nan])
def test_a_slack_that_leaves_no_delta_is_refused(slack) -> None:
    with pytest.raises(errors.InvalidInput, match="slack must be"):
        Budget(1, 1e-6).rho(slack)


def test_a_pure_budget_has_no_rho() -> None:
    with pytest.raises(errors.InvalidInput, match="delta must be above 0"):
        Budget(1, 0).rho()


# Accountant


@pytest.mark.parametrize("parts", [1, 3, 7, 10, 49, 1000])
@pytest.mark.parametrize(
    ("δ", "event_of"), [(0, lambda c: Laplace(1, 1 / c)), (1e-9, lambda c: Gaussian(1, math.sqrt(0.5 / c)))]
)
def test_equal_parts_fit_exactly_and_one_more_is_refused(parts, δ, event_of) -> None:
    accountant = Accountant(Budget(0.3, δ))
    event = event_of(accountant.remaining / parts)
    assert accountant.affords(*[event] * parts) and not accountant.affords(*[event] * (parts + 1))
    for _ in range(parts):
        accountant.charge(event)
    assert accountant.spent == pytest.approx(accountant.budget.total, rel=1e-12)
    assert accountant.remaining <= 1e-12 * accountant.budget.total
    with pytest.raises(errors.BudgetExceeded):
        accountant.charge(event)
    assert accountant.events == (event,) * parts


def test_spending_what_remains_again_and_again_never_passes_the_total() -> None:
    accountant = Accountant(Budget(1, 0))
    rng = np.random.default_rng(1)
    for _ in range(300):
        accountant.charge(Laplace(1, 1 / (accountant.remaining * rng.uniform(0.01, 0.1))))
    assert accountant.spent + accountant.remaining == pytest.approx(1, rel=1e-15)
    accountant.charge(Laplace(1, 1 / accountant.remaining))
    assert accountant.spent <= 1 + 1e-12


def test_many_small_costs_do_not_drown_in_rounding() -> None:
    accountant = Accountant(Budget(2**20, 0))
    accountant.charge(Laplace(2**19, 1))
    small = Laplace(2.0**-36, 1, 2.0**-36)  # far below half a unit in the last place of what was spent
    for _ in range(1 << 10):
        accountant.charge(small)
    assert accountant.spent == 2**19 + 2.0**-26


def test_a_refusal_says_the_numbers_and_records_nothing() -> None:
    accountant = Accountant(Budget(1, 1e-9))
    accountant.charge(Gaussian(1, math.sqrt(0.5 / 0.0138)))
    before = (accountant.spent, accountant.events)
    with pytest.raises(errors.BudgetExceeded) as refusal:
        accountant.charge(Gaussian(1, math.sqrt(0.5 / 0.002)))
    assert str(refusal.value) == (
        "cost must be at most rho = 0.001173 (what is left of 0.01497). Found 0.002. "
        "Ask for a looser error, or stop here."
    )
    assert (accountant.spent, accountant.events) == before


def test_a_pure_budget_cannot_pay_for_gaussian_noise_and_says_what_to_do() -> None:
    accountant = Accountant(Budget(1, 0))
    assert accountant.budget.cost(Gaussian(1, 1e6)) == math.inf and not accountant.affords(Gaussian(1, 1e6))
    with pytest.raises(
        errors.BudgetExceeded, match=r"Found infinity for Gaussian noise.*Use Laplace noise, or give a delta"
    ):
        accountant.charge(Gaussian(1, 1e6))
    assert accountant.spent == 0


class Free:
    epsilon = rho = 0.0
    delta = 0.0


@pytest.mark.parametrize("stranger", [Free(), None, 0.1, "Laplace", Laplace])
def test_what_is_not_an_event_is_neither_priced_nor_charged(stranger) -> None:
    accountant = Accountant(Budget(1, 0))
    for ask in (accountant.budget.cost, accountant.affords, accountant.charge):
        with pytest.raises(errors.InvalidInput, match="event must be one of"):
            ask(stranger)


def test_the_cost_is_read_in_the_currency() -> None:
    for event in (Laplace(1, 10), Exponential(2, 0.1), AboveThreshold(1, 0.1, 0.2)):
        assert Budget(1, 0).cost(event) == event.epsilon
        assert Budget(1, 1e-9).cost(event) == event.rho


def test_the_tolerance_of_a_fit_is_given_once_and_not_for_every_charge() -> None:
    accountant = Accountant(Budget(1, 0))
    accountant.charge(Laplace(1, 1))
    tiny = Laplace(0.1, 1e12)  # a tenth of the tolerance
    with pytest.raises(errors.BudgetExceeded):
        for _ in range(100):
            accountant.charge(tiny)
    assert 1 < accountant.spent <= 1 + 1e-12


def test_an_account_keeps_the_budget_it_was_opened_with() -> None:
    accountant = Accountant(Budget(1, 0))
    with pytest.raises(AttributeError):
        accountant.budget = Budget(100, 0)  # type: ignore[misc]
    assert accountant.budget == Budget(1, 0)


class Generous(Budget):  # type: ignore[misc]
    def cost(self, event) -> float:
        return 1e-9


@pytest.mark.parametrize("budget", [Generous(1, 0), 1.0, (1.0, 0.0), None])
def test_only_a_budget_that_prices_as_it_should_opens_an_account(budget) -> None:
    with pytest.raises(errors.InvalidInput, match="budget must be a Budget"):
        Accountant(budget)


def test_the_repr_shows_the_budget_and_what_was_spent() -> None:
    accountant = Accountant(Budget(1, 0))
    accountant.charge(Laplace(1, 4))
    assert repr(accountant) == ("Accountant(Budget(epsilon=1.0, delta=0.0, neighbours='replace'), spent=0.25 epsilon)")


# Events with a delta of their own


def test_an_approximate_event_needs_a_slack_set_aside_for_its_delta() -> None:
    event = ApproximateDP(0.01, 1e-8)
    plain = Accountant(Budget(1, 1e-6))
    assert not plain.affords(event)
    with pytest.raises(errors.BudgetExceeded, match="delta must be at most 0"):
        plain.charge(event)
    with pytest.raises(errors.BudgetExceeded, match="Found infinity for ApproximateDP"):
        Accountant(Budget(1, 0)).charge(event)
    assert plain.spent == 0 and plain.events == ()


@pytest.mark.parametrize("parts", [1, 3, 10])
def test_a_slack_is_spent_in_exactly_its_parts_and_paid_for_in_rho(parts) -> None:
    budget = Budget(1, 1e-6)
    accountant = Accountant(budget, slack=4e-7)
    assert accountant.remaining == budget.rho(4e-7) < budget.total
    event = ApproximateDP(0.01, 4e-7 / parts)
    assert accountant.affords(*[event] * parts) and not accountant.affords(*[event] * (parts + 1))
    for _ in range(parts):
        accountant.charge(event)
    with pytest.raises(errors.BudgetExceeded, match="what is left of the slack"):
        accountant.charge(event)
    assert len(accountant.events) == parts and accountant.spent == pytest.approx(parts * event.rho)


def test_the_spent_epsilon_converts_with_the_delta_that_the_events_left() -> None:
    accountant = Accountant(Budget(1, 1e-6), slack=9e-7)
    accountant.charge(ApproximateDP(0.01, 9e-7))
    accountant.charge(Gaussian(1, math.sqrt(0.5 / accountant.remaining)))
    assert 1 - 1e-5 <= accountant.spent_epsilon <= 1


@pytest.mark.parametrize("slack", [1e-6, -1e-9, math.nan])
def test_an_accountant_refuses_a_slack_that_leaves_no_delta(slack) -> None:
    with pytest.raises(errors.InvalidInput, match="slack must be"):
        Accountant(Budget(1, 1e-6), slack)
    with pytest.raises(errors.InvalidInput):
        Accountant(Budget(1, 0), slack)


# What was spent, as an epsilon


@pytest.mark.parametrize("δ", [0, 1e-9])
def test_nothing_spent_is_epsilon_zero(δ) -> None:
    assert Accountant(Budget(1, δ)).spent_epsilon == 0


def test_a_pure_budget_adds_epsilons() -> None:
    accountant = Accountant(Budget(1, 0))
    accountant.charge(Laplace(1, 10))
    accountant.charge(AboveThreshold(1, 0.1, 0.2))
    assert accountant.spent_epsilon == accountant.spent == pytest.approx(0.4)


@pytest.mark.parametrize(("ε", "δ"), BUDGETS[:5])
def test_a_budget_spent_in_full_on_gaussians_comes_back_as_its_epsilon(ε, δ) -> None:
    accountant = Accountant(Budget(ε, δ))
    for _ in range(10):
        accountant.charge(Gaussian(1, math.sqrt(5 / accountant.budget.total)))
    assert ε * (1 - 1e-5) <= accountant.spent_epsilon <= ε


MIXED = [AboveThreshold(1, 0.01, 0.016), Exponential(2, 0.02), Gaussian(math.sqrt(2), 60.0), Laplace(1, 45.0)]


def test_the_spent_epsilon_grows_with_every_event_and_stays_within_the_budget() -> None:
    accountant = Accountant(Budget(1, 1e-9))
    seen = [accountant.spent_epsilon]
    while accountant.affords(MIXED[len(seen) % 4]):
        accountant.charge(MIXED[len(seen) % 4])
        seen.append(accountant.spent_epsilon)
    assert len(seen) > 40 and np.all(np.diff(seen) > 0)
    assert 0.9 < seen[-1] <= 1


def test_one_epsilon_dp_event_never_counts_for_more_than_its_epsilon() -> None:
    accountant = Accountant(Budget(1, 1e-9))
    accountant.charge(Laplace(1, 10))
    assert accountant.spent_epsilon <= 0.1


def test_tiny_laplace_costs_are_not_lost_in_the_conversion() -> None:
    accountant = Accountant(Budget(1e-5, 1e-12))
    accountant.charge(Laplace(1, 1e8))
    assert 1e-10 < accountant.spent_epsilon <= 1e-8


# dp-accounting, called in the one way that is right


def composed(accountant: dp_accounting.PrivacyAccountant, *events: dp_accounting.DpEvent, delta: float = 1e-9) -> float:
    for event in events:
        accountant.compose(event)
    return float(accountant.get_epsilon(delta))


def test_the_exported_event_groups_equal_ones_and_names_their_noise() -> None:
    accountant = Accountant(Budget(1, 1e-9))
    assert isinstance(accountant.dp_event(), dp_accounting.NoOpDpEvent)
    for event in (*MIXED, *MIXED, MIXED[2]):
        accountant.charge(event)
    groups = accountant.dp_event().events
    assert [group.count for group in groups] == [2, 2, 3, 2]
    guard, choice, gaussian, laplace = (group.event for group in groups)
    assert guard == dp_accounting.ZCDpEvent(MIXED[0].rho) and choice == dp_accounting.ZCDpEvent(MIXED[1].rho)
    assert gaussian == dp_accounting.GaussianDpEvent(60 / math.sqrt(2))
    assert isinstance(laplace, dp_accounting.LaplaceDpEvent)
    assert 1 / 45 < 1 / laplace.noise_multiplier < (1 / 45) * (1 + 1 / 150)


@pytest.mark.parametrize("event", MIXED, ids=lambda e: type(e).__name__)
def test_a_grouped_count_counts(event) -> None:
    """Trap: the PLD accountant ignores the count of a randomized response. None of ours may lose its count."""
    once, often = Accountant(Budget(50, 1e-9)), Accountant(Budget(50, 1e-9))
    once.charge(event)
    for _ in range(8):
        often.charge(event)
    one, grouped = once.dp_event(), often.dp_event()
    assert composed(rdp.RdpAccountant(), grouped) == pytest.approx(composed(rdp.RdpAccountant(), *[one] * 8))
    assert composed(rdp.RdpAccountant(), grouped) > 1.5 * composed(rdp.RdpAccountant(), one)
    if isinstance(event, (Gaussian, Laplace)):
        apart = composed(pld.PLDAccountant(), *[one] * 8)
        assert composed(pld.PLDAccountant(), grouped) == pytest.approx(apart, rel=1e-2)
        assert composed(pld.PLDAccountant(), grouped) > 1.5 * composed(pld.PLDAccountant(), one)
    else:
        assert not pld.PLDAccountant().supports(grouped)  # refused, rather than counted wrongly


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_measured_marginal_has_the_exact_delta_of_its_gaussian_in_either_accountant(neighbours) -> None:
    """Trap: replace-one doubles the sensitivity of a Gaussian in one accountant and not in the other."""
    budget = Budget(1, 1e-9, neighbours)
    event = Gaussian(budget.marginal_l2(), 30.0)
    accountant = Accountant(budget)
    accountant.charge(event)
    exact = optimize.brentq(lambda ε: log_delta_of_gaussian(event.rho, ε) - math.log(1e-9), 1e-3, 5)
    assert composed(pld.PLDAccountant(), accountant.dp_event()) == pytest.approx(exact, rel=1e-2)
    renyi = composed(rdp.RdpAccountant(), accountant.dp_event())
    assert exact <= renyi <= 1.15 * exact
    assert exact <= accountant.spent_epsilon <= renyi * (1 + 1e-9)


@pytest.mark.parametrize("ε", [1e-9, 1e-4, 9.9e-4, 1.1e-3, 0.1, 1.0, 4.0])
def test_the_exported_laplace_dominates_every_epsilon_dp_mechanism(ε) -> None:
    """Its trade-off curve lies nowhere above randomized response's, and touches it."""
    dominating = _dominating_laplace(ε)
    α = np.concatenate([np.linspace(0, 1, 10_001), [1 / (1 + math.exp(ε))]])
    response = np.maximum(1 - math.exp(ε) * α, math.exp(-ε) * (1 - α))
    with np.errstate(divide="ignore"):
        laplace = np.select(
            [α < math.exp(-dominating) / 2, α <= 0.5],
            [1 - math.exp(dominating) * α, math.exp(-dominating) / (4 * α)],
            math.exp(-dominating) * (1 - α),
        )
    assert np.all(laplace <= response + 1e-15)
    assert laplace[-1] == pytest.approx(response[-1], rel=1e-7)


def test_a_continuous_laplace_of_the_same_epsilon_would_under_count_the_discrete_one() -> None:
    event = Laplace(1, 1)
    first_order = rdp.RdpAccountant([1.0 + 1e-9]).compose(dp_accounting.LaplaceDpEvent(1.0)).rdp[0]
    assert event.rho > 1.2 * first_order  # ρ is met by the noise itself: see test_events


def test_neither_heavy_library_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, hedgerow, hedgerow.privacy.noise\n"
        "from hedgerow.privacy.accounting import *\n"
        "from hedgerow.privacy.events import Laplace\n"
        "Accountant(Budget(1, 0)).charge(Laplace(1, 2))\n"
        "assert not {'dp_accounting', 'opendp'} & set(sys.modules), 'imported too early'\n"
        "Budget(1, 1e-9).total\n"
        "assert 'dp_accounting' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
