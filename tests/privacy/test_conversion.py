"""Conversions against independent formulas, and the right calls of dp-accounting."""

from __future__ import annotations

import math
import subprocess
import sys

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from scipy import optimize, stats

from hedgerow.privacy import conversion
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import _dominating_laplace, dp_events, epsilon_of_rho
from hedgerow.privacy.events import AboveThreshold, Exponential, Gaussian, Laplace
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


# ρ


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


# dp-accounting

MIXED = [AboveThreshold(1, 0.01, 0.016), Exponential(2, 0.02), Gaussian(math.sqrt(2), 60.0), Laplace(1, 45.0)]


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
        "from hedgerow.privacy.budget import Budget\n"
        "from hedgerow.privacy.ledger import Accountant\n"
        "from hedgerow.privacy.events import Laplace\n"
        "Accountant(Budget(1, 0)).charge(Laplace(1, 2))\n"
        "assert not {'dp_accounting', 'opendp'} & set(sys.modules), 'imported too early'\n"
        "accountant = Accountant(Budget(1, 1e-9))\n"
        "assert not {'dp_accounting', 'opendp', 'scipy.special'} & set(sys.modules), 'imported too early'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("event", [Laplace(1, 1), Laplace(1, 5), Laplace(2, 1, 0.25)])
def test_an_exported_event_loses_no_less_than_the_draw(event) -> None:
    """At the order next to 1, where ρ is met by the noise itself: see test_events."""
    exported = rdp.RdpAccountant([1.0 + 1e-6]).compose(dp_events({event: 1})).rdp[0]
    assert exported >= event.rho * (1 - 1e-6)


RHOS = [0.0, 1e-12, 1e-9, 1e-6, 1e-4, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0, 1e4]
DELTAS = [1e-200, 1e-30, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5]


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", RHOS)
def test_epsilon_of_rho_is_what_dp_accounting_computes(rho, delta) -> None:
    """By its own conversion, at orders that are ours and then around the best of them."""
    coarse, order = rdp.compute_epsilon(conversion._COARSE, rho * conversion._COARSE, delta)
    near = conversion._around(order)
    expected = min(coarse, rdp.compute_epsilon(near, rho * near, delta)[0])
    assert epsilon_of_rho(rho, delta) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("rho", RHOS[1:])
def test_without_a_delta_only_no_loss_at_all_has_an_epsilon(rho) -> None:
    assert epsilon_of_rho(rho, 0.0) == math.inf
    assert epsilon_of_rho(0.0, 0.0) == 0.0


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 0.1, 1.0, 5.0, 50.0])
def test_the_largest_rho_is_within_its_epsilon_and_nothing_larger_is(epsilon, delta) -> None:
    rho = conversion.largest_rho(epsilon, delta)
    assert epsilon_of_rho(rho, delta) <= epsilon
    assert epsilon_of_rho(rho * (1 + 1e-9), delta) > epsilon


MIXTURES = [
    {Gaussian(1, 3.0): 1},
    {Laplace(1, 4): 7},
    {Laplace(1, 1e8): 3},
    {Gaussian(2, 9.0): 5, Laplace(1, 30): 11, Exponential(1, 0.01): 4},
    {AboveThreshold(1, 0.01, 0.02): 6, Gaussian(1, 100.0): 1000},
]


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("counts", MIXTURES)
def test_the_epsilon_of_mixed_events_is_what_dp_accountings_renyi_accountant_finds(counts, delta) -> None:
    event = dp_events(counts)
    coarse, order = rdp.RdpAccountant(conversion._COARSE[1:]).compose(event).get_epsilon_and_optimal_order(delta)
    near = rdp.RdpAccountant(conversion._around(order)).compose(event)
    expected = min(coarse, near.get_epsilon(delta))
    assert conversion.renyi_epsilon(counts, delta) == pytest.approx(expected, rel=1e-12, abs=1e-15)
