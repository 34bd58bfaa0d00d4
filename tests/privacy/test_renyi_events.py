"""Events priced at one Rényi order: their divergence against explicit laws, and the accounts that may pay."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from fresh_ledgers import sqlite_url

from hedgerow.audit import exact
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.ledger import opened
from hedgerow.privacy import conversion
from hedgerow.privacy.allowance import Allowance, Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import AboveThreshold, Event, Gaussian, Laplace
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.privacy.renyi_events import COINS, HitRound, RandomRuns, hit_divergence, largest_difference

BUDGET = Budget(1.0, 1e-6)
EPSILONS = (0.003, 0.02, 0.1, 0.5)


def yes_or_no(epsilon: float) -> list[tuple[float, float]]:
    """Probabilities of "yes" on two neighbours, over the whole polygon of ε-DP pairs, its corners included."""
    s = math.exp(epsilon) / (1 + math.exp(epsilon))
    corners = np.array([[0.0, 0.0], [1 - s, s], [1.0, 1.0], [s, 1 - s]])
    parts = [np.array(p) / 12 for p in itertools.product(range(13), repeat=4) if sum(p) == 12]
    return [tuple(part @ corners) for part in parts]


# Rounds of hits


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_test_and_its_discount_never_add_up_to_more_than_one(epsilon) -> None:
    """θ·p^α·q^(1−α) + (1−p)^α·(1−q)^(1−α) ≤ 1: what makes any number of "no" free."""
    for order in 1 + np.array([0.05, 0.3, 0.6, 0.9]) * (math.log1p(math.exp(epsilon)) / epsilon - 1):
        θ = math.exp(-(order - 1) * hit_divergence(epsilon, order))
        for p, q in yes_or_no(epsilon):
            if 0 < p < 1 and 0 < q < 1:
                assert θ * p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order) <= 1 + 1e-12


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_divergence_of_endless_tests_at_the_worst_corner_is_the_bill(epsilon) -> None:
    """Σ over the place of the hit of P^α·Q^(1−α) is a geometric series."""
    s, limit = math.exp(epsilon) / (1 + math.exp(epsilon)), math.log1p(math.exp(epsilon)) / epsilon
    for order in (1 + 0.2 * (limit - 1), 1 + 0.8 * (limit - 1)):
        found = []
        for p, q in ((1 - s, s), (s, 1 - s)):
            hit, stay = p**order * q ** (1 - order), (1 - p) ** order * (1 - q) ** (1 - order)
            found.append(math.log(hit / (1 - stay)) / (order - 1))
        assert max(found) == pytest.approx(hit_divergence(epsilon, order), rel=1e-6)
        assert max(found) <= hit_divergence(epsilon, order)


@pytest.mark.parametrize("lengths", [(1,), (40,), (300,)])
def test_no_round_of_laplace_tests_loses_more_than_its_bill_and_the_worst_loses_nearly_that(lengths) -> None:
    event, order, worst = HitRound(1.0, 0.1), 4.0, 0.0
    for length, distance, way in itertools.product(lengths, (-1, 0, 1, 5, 15), (1, -1)):
        low, high = [float(-distance)] * length, [float(-distance + 1)] * length
        pair = exact.hit_round_pair(low[::way], high[::way], event)
        worst = max(worst, pair.renyi(order))
        mixed = exact.hit_round_pair([0.0, 1.0] * length, [1.0, 0.0] * length, event, threshold=float(distance))
        worst = max(worst, mixed.renyi(order))
    assert worst <= event.divergence(order)
    assert worst >= (0.9 if max(lengths) > 100 else 0.4) * event.divergence(order)


def test_tests_that_choose_the_next_value_by_the_answers_lose_no_more() -> None:
    """Two rounds of up to eight tests, the second of which begins where the first ended."""
    event, order, total = HitRound(1.0, 0.2), 3.0, 0.0

    def law(values, probability):
        for i, value in enumerate(values):
            above = float(exact.laplace_tail(np.array([-value]), event.query_scale)[0])
            yield i, probability * above
            probability *= 1 - above
        yield len(values), probability

    one, other = {}, {}
    for laws, move in ((one, 0), (other, 1)):
        for place, p in law([-3 + move] * 4 + [-1 - move] * 4, 1.0):
            for second, q in law([place % 3 - 2 + move] * (8 - place), p):
                laws[place, second] = q
    total = math.log(sum(one[k] ** order * other[k] ** (1 - order) for k in one)) / (order - 1)
    assert 0 < total <= 2 * event.divergence(order)


def test_the_divergence_is_infinite_from_its_limit_on() -> None:
    limit = math.log1p(math.exp(0.1)) / 0.1
    assert hit_divergence(0.1, limit * (1 - 1e-9)) < 100 < hit_divergence(0.1, limit * (1 + 1e-9)) == math.inf
    assert hit_divergence(0.1, 1.0) == hit_divergence(5.0, 100.0) == math.inf
    orders = np.linspace(1.01, limit * 0.999, 200)
    found = [hit_divergence(0.1, order) for order in orders]
    assert all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(found))


def test_a_round_of_hits_draws_no_noise_for_its_threshold_and_fresh_noise_for_each_value() -> None:
    receipt = Accountant(BUDGET).charge(HitRound(1.0, 0.01))
    round_ = Seeded(0).open_round(receipt, 0, 2.0**-20)
    above = 0
    for _ in range(2000):
        excess = round_.excess(round(-100 * 2.0**20))
        if excess is not None:
            above += 1
            round_ = Seeded(above).open_round(Accountant(BUDGET).charge(HitRound(1.0, 0.01)), 0, 2.0**-20)
    # P[ν ≥ 100] = e^-1/2; a sum of 2,000 coins is within 5 deviations except with probability 6e-7
    assert abs(above - 2000 * math.exp(-1) / 2) < 5 * math.sqrt(2000 * 0.15)
    with pytest.raises(InvalidInput, match="next on the receipt"):
        Noise().open_round(Accountant(BUDGET).charge(HitRound(1.0, 0.01)), 0, 1.0, on_grid=True)


@pytest.mark.parametrize(
    "given", [(0.0, 0.1), (1.0, 0.0), (math.nan, 0.1), (1.0, math.inf), (2.0**-30, 0.1), (1.0, 1e-20)]
)
def test_a_round_of_hits_refuses_what_could_not_be_drawn(given) -> None:
    with pytest.raises(InvalidInput, match=r"must be"):
        HitRound(*given)


# One order


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-9), (0.1, 1e-6), (3.0, 1e-9), (10.0, 1e-5), (1e-3, 1e-6)])
def test_the_divergences_at_the_order_of_a_budget_imply_it(epsilon, delta) -> None:
    α, ρ = Budget(epsilon, delta).order, Budget(epsilon, delta).total
    implied = ρ * α + math.log1p(-1 / α) - math.log(delta * α) / (α - 1)  # Canonne, Kamath & Steinke, Proposition 12
    assert epsilon * (1 - 1e-5) <= implied <= epsilon


@pytest.mark.parametrize("event", [HitRound(1.0, 0.01), RandomRuns(1e-4, 10.0)])
def test_an_event_costs_its_divergence_at_that_order(event) -> None:
    assert BUDGET.cost(event) == event.divergence(BUDGET.order) / BUDGET.order
    assert Budget(1.0, 0.0).cost(event) == math.inf
    assert Budget(1.0, 1e-6, rows_per_unit=2).cost(event) == math.inf
    assert event.rho == event.epsilon == math.inf
    assert Event.from_dict(event.to_dict()) == event


@pytest.mark.parametrize("event", [HitRound(1.0, 0.01), RandomRuns(1e-4, 10.0)])
def test_an_account_with_planned_noise_or_slack_does_not_pay_for_it(event) -> None:
    planned = BUDGET.plan_noise(Gaussian(1.0, 100.0), 0.9)
    ledger = Accountant(BUDGET)
    ledger.charge(planned)
    for refuse in (ledger, Accountant(BUDGET, slack=1e-9)):
        with pytest.raises(BudgetExceeded, match="one Rényi order"):
            refuse.charge(event)
    with pytest.raises(BudgetExceeded, match="one Rényi order"):
        Accountant(BUDGET).charge(planned, event)
    first = Accountant(BUDGET)
    first.charge(event)
    with pytest.raises(BudgetExceeded, match="Planned noise"):
        first.charge(planned)


def test_spending_is_a_sum_of_divergences_and_never_above_the_budget() -> None:
    ledger, event = Accountant(BUDGET), HitRound(1.0, Amount.share_of(BUDGET, 0.5).hit_epsilon(8))
    for number in range(1, 9):
        ledger.charge(event)
        orders = np.linspace(1.5, 200, 4000)
        D = np.array([number * event.divergence(α) for α in orders])
        best = float(np.min(D + np.log1p(-1 / orders) - np.log(BUDGET.delta * orders) / (orders - 1)))
        assert best * (1 - 1e-3) <= ledger.spent_epsilon <= best * (1 + 1e-3)
    assert ledger.spent == pytest.approx(BUDGET.total / 2, rel=1e-9)
    ledger.charge(Gaussian(1.0, 1 / math.sqrt(2 * ledger.remaining)))
    assert BUDGET.epsilon * 0.95 < ledger.spent_epsilon <= BUDGET.epsilon


def test_other_accountants_are_told_that_they_cannot_price_it() -> None:
    ledger = Accountant(BUDGET)
    ledger.charge(HitRound(1.0, 0.01))
    assert "NonPrivateDpEvent" in repr(conversion.dp_events({HitRound(1.0, 0.01): 1}))
    assert "NonPrivate" in repr(ledger.dp_event())


@pytest.mark.parametrize("share", [0.001, 0.1, 1.0])
@pytest.mark.parametrize("rounds", [1, 8, 100])
def test_the_rounds_that_an_amount_buys_fit_it(share, rounds) -> None:
    amount = Amount.share_of(BUDGET, share)
    cost = rounds * BUDGET.cost(HitRound(1.0, amount.hit_epsilon(rounds)))
    assert amount.left * (1 - 1e-9) <= cost <= amount.left * (1 + 1e-12)


def test_tests_of_hits_have_less_noise_and_their_threshold_none() -> None:
    amount = Amount.share_of(BUDGET, 0.1)
    usual = amount.round_epsilon(8)
    assert AboveThreshold(1.0, usual / 3, 2 * usual / 3).query_scale > 1.5 / amount.hit_epsilon(8)


# Random numbers of runs


def exact_best(law: np.ndarray, event: RandomRuns) -> np.ndarray:
    """The law of the best of K draws: f(P[≤ y]) − f(P[< y]) with the generating function f of K."""
    below = np.concatenate([[0.0], np.cumsum(law)])
    return np.diff(np.expm1(event.mean * below) / math.expm1(event.mean))


@pytest.mark.parametrize("mean", [1e-6, 0.5, 5.0, 12.0])
def test_the_law_of_the_number_of_runs_is_that_of_a_poisson_number_of_one_or_more(mean) -> None:
    event = RandomRuns(1e-3, mean)
    p = np.array(event.weights) / COINS
    k = np.arange(1, p.size + 1)
    assert sum(event.weights) == COINS and min(event.weights) >= 0
    assert p[:40] == pytest.approx([mean**i / math.factorial(i) / math.expm1(mean) for i in range(1, 41)], abs=1e-12)
    assert p @ k == pytest.approx(event.expected, rel=1e-6)
    # f'(x) = E[K]·e^(μ(x − 1)), which is all that the proof uses
    for x in (0.0, 0.3, 0.9, 0.999, 1.0):
        derivative = float(np.sum(k * p * x ** (k - 1)))
        assert derivative == pytest.approx(event.expected * math.exp(mean * (x - 1)), rel=1e-6)
        assert event.generating_function(x) == pytest.approx(float(np.sum(p * x**k)), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("rho", [1e-5, 1e-3, 0.05, 1.0])
@pytest.mark.parametrize("order", [1.5, 10.0, 40.0])
def test_no_event_of_a_run_tells_more_than_the_best_of_several_is_billed_for(rho, order) -> None:
    """sup of u′ − c·u with KL(u′ ‖ u) ≤ ρ, on a grid: below the bound, and the bound is nearly reached."""
    u, v = np.meshgrid(np.geomspace(1e-6, 1 - 1e-9, 1500), np.linspace(1e-6, 1 - 1e-6, 1500), indexing="ij")
    divergence = v * np.log(v / u) + (1 - v) * np.log((1 - v) / (1 - u))
    reached = float(np.where(divergence <= rho, v - u * order / (order - 1), 0.0).max())
    assert reached <= largest_difference(rho, order) <= 1.05 * reached + 1e-3


def small_pairs() -> list[tuple[np.ndarray, np.ndarray]]:
    """Laws of one run on neighbours: noisy scores, whose noise is what one row may change."""
    steps = np.arange(-15, 16)
    gaussian = [np.exp(-((steps - m) ** 2) / (2 * 6.0**2)) for m in (0, 1)]
    laplace = [np.exp(-np.abs(steps - m) / 5) for m in (0, 1)]
    coin = [np.array([0.45, 0.55]), np.array([0.55, 0.45])]
    rare = [np.array([0.99, 0.01]), np.array([0.98, 0.02])]  # the best outcome is rare, and one row doubles it
    return [(a / a.sum(), b / b.sum()) for a, b in (gaussian, laplace, coin, rare)]


@pytest.mark.parametrize("mean", [0.5, 3.0, 12.0])
def test_the_best_of_a_random_number_of_runs_loses_no_more_than_its_bill(mean) -> None:
    shares = []
    for p, q in small_pairs():
        one = exact.Pair.of(p, q)
        event = RandomRuns(one.rho(), mean)
        best = exact.Pair.of(*(exact_best(law, event) for law in (p, q)))
        for order in (1.5, 3.0, 10.0, 40.0):
            assert best.renyi(order) <= event.divergence(order)
            shares.append(best.renyi(order) / event.divergence(order))
    if mean > 1:  # the best of several says more than one, by the rare outcome
        assert best.renyi(10.0) > 1.2 * one.renyi(10.0)
    assert max(shares) > 0.2


def test_the_number_of_runs_that_is_drawn_has_its_law_and_is_not_recorded() -> None:
    event, noise, ledger = RandomRuns(1e-9, 4.0), Seeded(1), Accountant(Budget(50.0, 1e-6))
    drawn = np.array([noise.draw_runs(ledger.charge(event)) for _ in range(20)])
    assert all(not entry.released for entry in ledger.entries())
    more = np.array([Seeded(s).draw_runs(Accountant(BUDGET).charge(event)) for s in range(2000)])
    p = np.array(event.weights) / COINS
    # each share is within 5 deviations except with probability 6e-7
    for k in (1, 2, 3, 8):
        assert abs(float((more == k).mean()) - p[k - 1]) < 5 * math.sqrt(p[k - 1] / 2000)
    assert drawn.min() >= 1


@pytest.mark.parametrize("given", [(0.0, 5.0), (1.0, 0.0), (1.0, 1e-9), (1.0, 100.0), (1.0, -1.0), (1.0, math.nan)])
def test_a_number_of_runs_refuses_what_could_not_be_drawn(given) -> None:
    with pytest.raises(InvalidInput, match=r"must be"):
        RandomRuns(*given)


def test_a_receipt_for_runs_is_good_for_one_number() -> None:
    receipt = Accountant(BUDGET).charge(RandomRuns(1e-6, 5.0))
    Noise().draw_runs(receipt)
    with pytest.raises(InvalidInput, match="once per event"):
        Noise().draw_runs(receipt)
    with pytest.raises(InvalidInput):
        Noise().draw_runs(Accountant(BUDGET).charge(Laplace(1.0, 100.0)))


def test_one_call_may_be_paid_for_by_a_budget() -> None:
    call = Allowance.of(BUDGET)
    call.charge(RandomRuns(1e-4, 5.0))
    assert 0 < call.ledger.spent <= BUDGET.epsilon


@pytest.mark.parametrize("event", [HitRound(1.0, 0.003), RandomRuns(1e-4, 10.0)])
def test_nothing_that_is_priced_at_the_budgets_order_is_charged_under_a_cap(event) -> None:
    """A cap is an ε by itself, which converts at an order of its own. There a round of hits may have no bound at all."""
    assert BUDGET.cost(event) < 0.3 * BUDGET.total
    small = Budget(0.02, BUDGET.delta)
    assert HitRound(1.0, 0.003).divergence(small.order) == math.inf
    url = sqlite_url()
    opened(url, BUDGET).charge(event)  # on everybody's behalf
    ana, ben = opened(url, BUDGET, who="ana"), opened(url, BUDGET, who="ben")
    ben.charge(event)
    ben.cap("ana", 0.5)
    ana.refresh()
    assert not ana.affords(event)
    with pytest.raises(BudgetExceeded, match="under the cap of 'ana'"):
        ana.charge(event)
    ana.charge(Gaussian(1.0, 1 / math.sqrt(0.02 * BUDGET.total)))
    ben.cap("ben", 0.5)  # a cap that comes later is spent, whatever the order of the events
    ben.refresh()
    assert ben.remaining == 0 and ana.remaining > 0
