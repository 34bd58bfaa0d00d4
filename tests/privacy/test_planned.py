"""Planned Gaussian noise: its price against losses computed independently, and the two parts of a ledger."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy
from fresh_ledgers import sqlite_url

import hedgerow as hr
from hedgerow import errors
from hedgerow.audit import exact
from hedgerow.data import HistogramSource
from hedgerow.engine.practical.measure import prefit
from hedgerow.engine.practical.measure.prefit import Prefit
from hedgerow.ledger import opened
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import gaussian_delta, gaussian_mu, largest_rho
from hedgerow.privacy.events import Exponential, Gaussian, Laplace, Planned
from hedgerow.privacy.ledger import Accountant, Entry
from hedgerow.privacy.noise import Seeded
from hedgerow.privacy.planned import mixed_delta, mixed_epsilon, price

BUDGET = Budget(1.0, 1e-6)
PLACES = [(1.0, 1e-9, 0.9), (1.0, 1e-6, 0.8), (1.0, 1e-3, 0.5), (0.1, 1e-6, 0.95), (10.0, 1e-9, 0.7), (1.0, 1e-6, 0.05)]
ORDERS = 1 + np.geomspace(1e-3, 1e5, 400)
each = pytest.mark.parametrize(("epsilon", "delta", "share"), PLACES)


def parts(epsilon: float, delta: float, share: float) -> tuple[float, float]:
    """G and O of a budget that is spent."""
    ρ = largest_rho(epsilon, delta)
    return share * ρ / price(epsilon, delta, share), (1 - share) * ρ


def gaussian(rho: float, grid: float = 2.0**-14) -> Gaussian:
    return Gaussian(1.0, 1 / math.sqrt(2 * rho), grid)


def planned(part: float, share: float, budget: Budget = BUDGET) -> Planned:
    """Planned noise that costs so much of the total."""
    found = budget.plan_noise(gaussian(part * budget.total), share)
    assert found is not None
    return found


def after(mu: float, epsilon: float, law: exact.Pair) -> float:
    """δ of Gaussian noise of Δ/σ = mu together with one of a few outcomes, exactly."""
    p, losses = np.exp(law.log_p), law.log_p - law.log_q
    return sum(each * gaussian_delta(mu, epsilon - loss) for each, loss in zip(p, losses, strict=True))


def rare(loss: float, rho: float) -> exact.Pair:
    """One outcome that tells ``loss``, as often as ρ-zCDP allows: the heaviest tail there is."""

    def law(log: float) -> exact.Pair:
        p, q = math.exp(log), math.exp(log - loss)
        return exact.Pair(np.array([log, math.log1p(-p)]), np.array([log - loss, math.log1p(-q)]))

    def most(log: float) -> float:
        """Return the largest D_α/α, in either direction."""
        (p, r), (q, s) = law(log).log_p, law(log).log_q
        α = ORDERS
        one, two = (
            np.logaddexp(α * p + (1 - α) * q, α * r + (1 - α) * s),
            np.logaddexp(α * q + (1 - α) * p, α * s + (1 - α) * r),
        )
        return float((np.maximum(one, two) / (α - 1) / α).max())

    low, high = -200.0, math.log(0.5)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if most(middle) <= rho else (low, middle)
    return law(low)


# The price


@each
def test_more_of_the_same_noise_and_an_answer_or_a_rare_event_are_within_the_budget(epsilon, delta, share) -> None:
    G, O = parts(epsilon, delta, share)  # noqa: E741
    mu = math.sqrt(2 * G)
    assert gaussian_delta(math.sqrt(2 * (G + O)), epsilon) <= delta
    ε0 = scipy.optimize.brentq(lambda x: x * math.tanh(x / 2) - O, 0.0, 50.0)
    yes = 1 / (1 + math.exp(-ε0))
    assert after(mu, epsilon, exact.Pair.of([yes, 1 - yes], [1 - yes, yes])) <= delta
    rares = [rare(loss, O) for loss in math.sqrt(2 * O) * np.geomspace(1.0, 10.0, 12)]
    found = [after(mu, epsilon, law) for law in rares]
    assert max(found) <= delta
    assert max(found) > 0.25 * delta  # the bound is not far above what can happen
    # Chosen after the Gaussian noise was seen, for what it told
    z = np.linspace(-9, 9, 4001)
    mass = np.diff(scipy.special.ndtr(z))
    left = epsilon - G - mu * z[:-1]
    worst = np.zeros_like(left)
    for law in rares:
        p, losses = np.exp(law.log_p), law.log_p - law.log_q
        tell = sum(p[i] * -np.expm1(np.minimum(left - losses[i], 0.0)) for i in (0, 1))
        worst = np.maximum(worst, tell)
    assert max(found) < float(mass @ worst) <= delta


@each
def test_a_thousandth_more_would_be_above_what_is_proved(epsilon, delta, share) -> None:
    G, O = parts(epsilon, delta, share)  # noqa: E741
    assert mixed_delta(G, O, epsilon, 1e-6 * delta) <= delta < mixed_delta(1.001 * G, O, epsilon, 1e-6 * delta)


@pytest.mark.parametrize("tail", [0.3, 1e-2, 1e-4])
def test_all_that_is_above_the_cells_counts_as_lost(tail) -> None:
    """If everything else reveals the row whatever Z is, the bound is the whole probability of Z: of its cells and its tail."""
    assert mixed_delta(1e-12, 1e3, 0.0, tail) == pytest.approx(1.0, rel=1e-9)


@each
def test_the_bound_is_an_upper_sum_of_the_integral_and_near_it(epsilon, delta, share) -> None:
    """By another rule, another order of integration and orders found one by one."""
    G, O = parts(epsilon, delta, share)  # noqa: E741
    orders = 1 + np.geomspace(1e-6, 1e6, 6001)

    def lost(z: float) -> float:
        x = epsilon - G - math.sqrt(2 * G) * z
        logs = (orders - 1) * (orders * O - x) - np.log(orders - 1) + orders * np.log1p(-1 / orders)
        return min(1.0, math.exp(min(0.0, float(logs.min())))) * math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)

    points = np.linspace(-9, 9, 361)
    nodes, weights = np.polynomial.legendre.leggauss(4)
    integral = sum(
        (b - a) / 2 * sum(w * lost(a + (b - a) * (t + 1) / 2) for t, w in zip(nodes, weights, strict=True))
        for a, b in itertools.pairwise(points)
    )
    assert integral * (1 - 1e-6) <= mixed_delta(G, O, epsilon, 1e-6 * delta) <= integral * 1.1


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-9), (1.0, 1e-6), (10.0, 1e-6), (0.01, 1e-12)])
def test_the_price_falls_with_the_share_to_that_of_the_analytic_formula(epsilon, delta) -> None:
    prices = [price(epsilon, delta, share) for share in (1e-3, 0.1, 0.3, 0.6, 0.8, 0.9, 0.97, 0.999, 1.0)]
    assert all(a > b for a, b in itertools.pairwise(prices))
    alone = 2 * largest_rho(epsilon, delta) / gaussian_mu(epsilon, delta) ** 2
    assert alone <= prices[-1] <= alone * 1.001 and prices[0] < 1


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-7, 1e-9), (1e4, 1e-9), (1.0, 1e-250)])
def test_planned_noise_beyond_the_margins_has_the_ordinary_price(epsilon, delta) -> None:
    assert price(epsilon, delta, 0.9) == 1
    assert Budget(epsilon, delta).plan_noise(Gaussian(1.0, 100.0), 0.9) is None


def test_the_figures_of_the_page() -> None:
    less = [1 - math.sqrt(price(1.0, delta, share)) for delta, share in [(1e-9, 1.0), (1e-9, 0.9), (1e-6, 0.9)]]
    assert [round(100 * x, 1) for x in less] == pytest.approx([4.9, 3.3, 4.8])


def test_the_loss_of_two_parts_is_that_of_either_where_the_other_is_nothing() -> None:
    assert mixed_epsilon(0.02, 1e-12, 1e-6, 1.0) == pytest.approx(
        scipy.optimize.brentq(lambda e: gaussian_delta(0.2, e) - 1e-6, 0.1, 5.0), rel=1e-3
    )
    ρ = largest_rho(1.0, 1e-6)
    assert mixed_epsilon(1e-9, ρ, 1e-6, 0.5) == pytest.approx(1.0, rel=1e-3)
    assert mixed_epsilon(0.01, 0.0, 1e-250, 1.0) == mixed_epsilon(1e4, 0.0, 1e-9, 1e5) == math.inf


# The noise


@pytest.mark.parametrize("steps", [4.0, 4.7, 9.0])
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_discrete_noise_is_continuous_noise_of_the_billed_loss_rounded_at_random(steps, value) -> None:
    event = Planned(Gaussian(1.0, steps, 1.0), 0.5)
    σ = 1 / math.sqrt(2 * event.continuous_rho)
    assert σ < steps and event.continuous_rho > event.rho == event.event.rho
    whole = np.arange(-80, 81)
    y, step = np.linspace(
        -80, 80, 160 * 64 + 1, retstep=True
    )  # trapezoids: exact to the last digits for such functions
    rounding = np.exp(-((whole[:, None] - y) ** 2) / 8)
    rounded = (rounding / rounding.sum(axis=0)) @ scipy.stats.norm.pdf(y, value, σ) * step
    law = np.exp(-((whole - value) ** 2) / (2 * steps**2))
    assert np.abs(rounded[30:-30] / (law / law.sum())[30:-30] - 1).max() < 1e-9


def test_an_event_says_what_it_is() -> None:
    event = planned(0.5, 0.9)
    assert event.epsilon == math.inf and list(event.draws) == [event.event] and event.delta == 0
    assert Planned.from_dict(event.to_dict()) == event
    with pytest.raises(errors.InvalidInput, match="share must be at most 1"):
        Planned(event.event, 1.5)
    with pytest.raises(errors.InvalidInput, match="at least 4 grid steps"):
        Planned(Gaussian(1.0, 3.9, 1.0), 0.5)
    with pytest.raises(errors.InvalidInput, match="event must be Gaussian"):
        Planned(Laplace(1.0, 3.0), 0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("grid", [2.0**-14, 1.0])
@pytest.mark.parametrize("budget", [BUDGET, Budget(1.0, 1e-9, "add-remove"), Budget(1.0, 1e-6, rows_per_unit=5)])
def test_planned_noise_has_the_cost_that_was_asked_for_and_is_less(budget, grid) -> None:
    plain = Gaussian(1.0, 20.0, grid)
    less = budget.plan_noise(plain, 0.9)
    assert less is not None
    assert less.event.sensitivity == 1.0 and less.event.grid == min(grid, 2.0**-6) and less.event.sigma < 0.97 * 20.0
    assert budget.cost(plain) * (1 - 1e-11) <= budget.cost(less) <= budget.cost(plain)
    assert budget.cost(less) == pytest.approx(price(1.0, budget.delta, 0.9) * less.continuous_rho, rel=1e-11)


@pytest.mark.parametrize("sigma", [1e-3, 0.7, 3.0, 1e6])
def test_all_of_what_is_planned_is_however_small_its_noise(sigma) -> None:
    """Else some would be charged to all else, where there is no room for it."""
    less = BUDGET.plan_noise(Gaussian(1.0, sigma, 1.0), 0.9)
    assert less is not None and less.event.sigma < 0.96 * sigma and less.event.grid <= min(1.0, sigma / 1024)


def test_nothing_is_planned_if_that_saves_nothing() -> None:
    assert Budget(1.0, 0.0).plan_noise(Gaussian(1.0, 20.0), 0.9) is None
    assert BUDGET.plan_noise(Gaussian(1.0, 20.0), 0.0) is None
    with pytest.raises(errors.BudgetExceeded, match="finite"):
        Accountant(Budget(1.0, 0.0)).charge(Planned(Gaussian(1.0, 1e6), 0.9))


@pytest.mark.parametrize(("sensitivity", "reached"), [(2.0, 0.4), (50.0, 0.6)])
def test_exact_noise_of_a_spent_budget_is_within_it(sensitivity, reached) -> None:
    """On a grid nearly as coarse as there may be, and on a fine one: the law of what is drawn, with an answer of the rest."""
    budget = Budget(1.0, 1e-3)
    loss = 0.9 * budget.total / price(1.0, 1e-3, 0.9)
    less = Planned(Gaussian(sensitivity, math.sqrt(sensitivity**2 / (2 * loss) + 4), 1.0), 0.9)
    assert budget.cost(less) == pytest.approx(0.9 * budget.total)
    ε0 = scipy.optimize.brentq(lambda x: x * math.tanh(x / 2) - 0.1 * budget.total, 0.0, 50.0)
    yes = 1 / (1 + math.exp(-ε0))
    together = exact.gaussian_pair(less.event).then(exact.Pair.of([yes, 1 - yes], [1 - yes, yes]))
    assert reached * budget.delta < together.delta(budget.epsilon) <= budget.delta


# The ledger


def accountant(budget: Budget = BUDGET, slack: float = 0.0) -> Accountant:
    return Accountant(budget, slack)


def on_sqlite(budget: Budget = BUDGET, slack: float = 0.0):
    return opened(sqlite_url(), budget, slack=slack)


lasting = pytest.mark.parametrize("made", [accountant, on_sqlite])


@lasting
def test_each_part_pays_for_its_own_and_for_nothing_else(made) -> None:
    ledger = made()
    ledger.charge(planned(0.6, 0.8))
    assert ledger.remaining == pytest.approx(0.2 * BUDGET.total)
    before = ledger.spent
    for refused in (
        planned(0.21, 0.8),
        gaussian(0.21 * BUDGET.total),
        Exponential(1.0, math.sqrt(8 * 0.21 * BUDGET.total)),
    ):
        assert not ledger.affords(refused)
        with pytest.raises(errors.BudgetExceeded, match="must be at most"):
            ledger.charge(refused)
    assert not ledger.affords(planned(0.1, 0.8), gaussian(0.21 * BUDGET.total))
    assert ledger.spent == before
    ledger.charge(gaussian(0.2 * BUDGET.total))
    assert ledger.remaining == pytest.approx(0.0, abs=1e-12) and not ledger.affords(gaussian(1e-3 * BUDGET.total))
    ledger.charge(planned(0.2, 0.8))  # its own part is as it was
    assert ledger.spent == pytest.approx(BUDGET.total)
    assert not ledger.affords(planned(1e-3, 0.8))
    assert BUDGET.epsilon * 0.99 < ledger.spent_epsilon <= BUDGET.epsilon


@lasting
def test_a_share_is_declared_before_anything_else_and_once(made) -> None:
    late = made()
    late.charge(gaussian(1e-3 * BUDGET.total))
    with pytest.raises(errors.BudgetExceeded, match="declared before anything else"):
        late.charge(planned(0.1, 0.8))
    ledger = made()
    with pytest.raises(errors.BudgetExceeded, match="one share"):
        ledger.charge(planned(0.1, 0.8), planned(0.1, 0.81))
    ledger.charge(gaussian(1e-3 * BUDGET.total), planned(0.1, 0.8))  # together: nothing was drawn before
    with pytest.raises(errors.BudgetExceeded, match="one share"):
        ledger.charge(planned(0.1, 0.81))
    ledger.charge(planned(0.1, 0.8))


@lasting
def test_with_slack_nothing_is_planned(made) -> None:
    with pytest.raises(errors.BudgetExceeded, match="slack"):
        made(BUDGET, 1e-8).charge(planned(0.1, 0.8))


def test_a_resumed_ledger_has_both_its_parts() -> None:
    url = sqlite_url()
    first = opened(url, BUDGET)
    first.charge(planned(0.3, 0.6))
    first.charge(gaussian(0.3 * BUDGET.total))
    again = opened(url, BUDGET)
    for ledger in (first, again):
        assert (ledger.spent, ledger.remaining) == (first.spent, first.remaining)
        assert not ledger.affords(planned(0.31, 0.6)) and not ledger.affords(gaussian(0.11 * BUDGET.total))
    again.charge(planned(0.3, 0.6))
    first.refresh()
    assert first.spent == again.spent and not first.affords(planned(0.01, 0.6))


def test_under_a_cap_nothing_is_planned() -> None:
    url = sqlite_url()
    opened(url, BUDGET).charge(planned(0.1, 0.6))
    ana, ben = opened(url, BUDGET, who="ana"), opened(url, BUDGET, who="ben")
    ben.cap("ana", 0.5)
    ana.refresh()
    with pytest.raises(errors.BudgetExceeded, match="under the cap of 'ana'"):
        ana.charge(planned(0.1, 0.6))
    ana.charge(gaussian(0.1 * BUDGET.total))
    ben.charge(planned(0.1, 0.6))


def test_a_standing_has_both_parts() -> None:
    first = Accountant(BUDGET)
    first.charge(planned(0.3, 0.6))
    first.charge(gaussian(0.2 * BUDGET.total))
    again = Accountant(BUDGET, standing=first.standing)
    assert (again.spent, again.remaining) == (first.spent, first.remaining)
    assert again.remaining == pytest.approx(0.2 * BUDGET.total)
    again.charge(planned(0.3, 0.6))
    assert not again.affords(planned(0.01, 0.6))


def test_a_resumed_ledger_without_planned_noise_has_spent_the_same() -> None:
    first = Accountant(BUDGET)
    first.charge(gaussian(0.2 * BUDGET.total))
    again = Accountant(BUDGET, standing=first.standing)
    assert (again.spent, again.remaining) == (first.spent, first.remaining)


def test_a_price_is_that_of_the_record_whatever_an_entry_says() -> None:
    noise, other = planned(0.3, 0.6), gaussian(0.3 * BUDGET.total)
    again = Accountant(BUDGET, earlier=[Entry(0, (noise,), 1e-9), Entry(1, (other,), 1e-9)])
    again.end_replay()
    assert again.spent == pytest.approx(0.6 * BUDGET.total)
    assert again.remaining == pytest.approx(0.1 * BUDGET.total)
    for impossible in ([(other,), (noise,)], [(noise,), (planned(0.1, 0.7),)]):
        with pytest.raises(errors.InvalidInput, match="Planned noise must be the first"):
            Accountant(BUDGET, earlier=[Entry(i, events, 0.0) for i, events in enumerate(impossible)])


def test_spending_is_stated_from_the_noise_and_not_from_its_price() -> None:
    """Half of the planned part alone: by its price it would be less than it is."""
    ledger = Accountant(BUDGET)
    ledger.charge(planned(0.45, 0.9))
    (event,) = ledger.events
    true = scipy.optimize.brentq(lambda e: gaussian_delta(math.sqrt(2 * event.rho), e) - 1e-6, 1e-3, 5.0)
    assert true <= ledger.spent_epsilon <= 1.01 * true
    assert ledger.dp_event().events[0].event.noise_multiplier == event.event.sigma


@pytest.mark.parametrize("rows_per_unit", [1, 7])
def test_a_persons_rows_are_in_the_price(rows_per_unit) -> None:
    budget = dataclasses.replace(BUDGET, rows_per_unit=rows_per_unit)
    ledger = Accountant(budget)
    ledger.charge(planned(0.9, 0.9, budget))
    (event,) = ledger.events
    assert gaussian_delta(rows_per_unit * math.sqrt(2 * event.continuous_rho), 1.0) < 1e-6
    ledger.charge(gaussian(0.1 * budget.total))
    assert 0.99 < ledger.spent_epsilon <= 1.0


# Allowances


def test_an_allowance_charges_less_noise_where_it_may_be_planned_and_else_the_event_as_it_is() -> None:
    ledger, event = Accountant(BUDGET), gaussian(0.4 * BUDGET.total)
    allowance = Allowance(ledger, BUDGET.total)
    (less,), receipt = allowance.charge_planned(event, share=0.6, finest=0.0, why="first")
    assert less.sigma < event.sigma and receipt.events[0] == Planned(less, 0.6)
    # It no longer fits: from the rest, at its own price
    (again,), receipt = allowance.charge_planned(event, share=0.6, finest=0.0, why="second")
    assert again == event and receipt.events == (event,)
    assert allowance.left == pytest.approx(0.2 * BUDGET.total)
    with pytest.raises(errors.BudgetExceeded):
        allowance.charge_planned(event, share=0.6, finest=0.0)


def test_after_a_crash_lost_noise_is_spent_and_the_last_draw_has_the_ordinary_price() -> None:
    """The third opening meets what the second found: a refusal is refused again."""
    event, share, noise = gaussian(0.2 * BUDGET.total), 0.6, Seeded(1)

    def go(ledger: Accountant, draws: int) -> list[tuple[Gaussian, float]]:
        allowance, found = Allowance(ledger, BUDGET.total), []
        for i in range(3):
            (drawn,), receipt = allowance.charge_planned(event, share=share, finest=0.0)
            if i < draws:
                found.append((drawn, float(noise.add(0.0, receipt))))
        return found

    first = Accountant(BUDGET)
    go(first, 1)
    second = Accountant(BUDGET, earlier=first.entries())
    allowance = Allowance(second, BUDGET.total)
    met = allowance.charge_planned(event, share=share, finest=0.0)[1]
    assert met.number == 0
    # Two were lost: a new one does not fit beside them, and the two after it have the rest to themselves
    rest = [allowance.charge_planned(event, share=share, finest=0.0) for _ in range(2)]
    assert [drawn for drawn, _ in rest] == [[event], [event]]
    values = [float(noise.add(0.0, receipt)) for _, receipt in rest]
    third = Accountant(BUDGET, earlier=second.entries())
    found = go(third, 3)
    assert [value for _, value in found][1:] == values and [drawn for drawn, _ in found][1:] == [event, event]
    assert third.spent == second.spent == pytest.approx(BUDGET.total)


# The practical profile

UNIVERSE = hr.Universe({"a": hr.Flag(), "b": hr.Integers(0, 3), "c": hr.Integers(0, 2)})
COUNTS = np.random.default_rng(0).multinomial(3000, np.full(24, 1 / 24)).reshape(2, 4, 3)
TABLE = HistogramSource(UNIVERSE, COUNTS)


def session(budget: Budget, **options):
    return hr.open(TABLE, universe=UNIVERSE, budget=budget, seed=0, **options)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("epsilon", [1.0, 16.0])
def test_a_prefit_plans_its_overview_and_what_it_measures_after_it(epsilon, neighbours) -> None:
    budget = Budget(epsilon, 1e-6, neighbours)
    found = session(budget, reserve=0.1, guard=0.0)
    noise = [(entry.why, event) for entry in found.log for event in entry.events if isinstance(event, Planned)]
    assert {why for why, _ in noise} - {"prefit: marginal", "prefit: residual"} == {"prefit: residuals", "certificate"}
    assert noise[0][0] == found.log[0].why
    others = {entry.why for entry in found.log for event in entry.events if not isinstance(event, Planned)}
    assert others == {"prefit: choice"}
    (share,) = {event.share for _, event in noise}
    spent = sum(Fraction(budget.cost(event)) for _, event in noise)
    assert float(spent) == pytest.approx(share * budget.total, rel=1e-9)
    assert 0.89 < share < 0.9 and found.ledger.remaining >= 0.1 * budget.total * (1 - 1e-9)
    assert found.spent_epsilon < epsilon


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("rows", [300, 10**6])  # of few, single attributes are measured twice
def test_a_prefit_without_an_overview_plans_all_but_its_choices(rows, neighbours, monkeypatch) -> None:
    monkeypatch.setattr(prefit, "OVERVIEW_CELLS", 0)
    monkeypatch.setattr(prefit, "OVERVIEW_NOISE", 0.0)
    budget = Budget(1.0, 1e-6, neighbours)
    ledger = Accountant(budget)
    pairs = {("a", "b"): 1.0, ("b", "c"): 1.0}
    public = None if neighbours == "add-remove" else float(rows)
    Prefit(
        HistogramSource(UNIVERSE, COUNTS * rows // 3000),
        Seeded(0),
        pairs,
        Allowance(ledger, 0.9 * budget.total),
        public,
    ).run()
    noise = [event for event in ledger.events if isinstance(event, Planned)]
    assert {type(event) for event in ledger.events} == {Planned, Exponential}
    assert noise[0].share == pytest.approx(0.91 * 0.9)
    assert math.fsum(map(budget.cost, noise)) == pytest.approx(0.91 * 0.9 * budget.total, rel=1e-9)
    assert ledger.spent == pytest.approx(0.9 * budget.total)
    assert ledger.remaining == pytest.approx(0.1 * budget.total)


def test_a_prefit_whose_ledger_paid_for_something_before_plans_nothing() -> None:
    ledger = Accountant(BUDGET)
    ledger.charge(gaussian(1e-3 * BUDGET.total))
    Prefit(TABLE, Seeded(0), {("a", "b"): 1.0, ("b", "c"): 1.0}, Allowance(ledger, 0.9 * BUDGET.total), 3000.0).run()
    assert len(ledger.entries()) > 3 and not any(isinstance(event, Planned) for event in ledger.events)
    assert ledger.spent == pytest.approx(0.901 * BUDGET.total)


def test_without_a_delta_nothing_is_planned() -> None:
    assert not any(isinstance(event, Planned) for entry in session(Budget(1.0, 0.0)).log for event in entry.events)


@pytest.mark.parametrize("share", [5e-324, 1e-100, 1e-20, 1e-12, 1e-9, 1e-6])
def test_the_tolerance_of_a_sum_buys_next_to_nothing_however_small_the_share(share: float) -> None:
    """Sums fit up to 1e-12 of the total: at a price near nothing that would be noise of any size."""
    budget = Budget(1.0, 1e-6)
    assert 0.25 <= price(1.0, 1e-6, share) <= 1.0
    for times in (10.0, 1e-3, 1e-9):
        with pytest.raises(errors.BudgetExceeded):
            Accountant(budget).charge(Planned(gaussian(max(times, 10 * share) * budget.total), share))


def test_planned_noise_is_on_a_grid_that_holds_the_largest_counts() -> None:
    for sigma, finest in ((20.0, 2.0**-3), (0.3, 2.0**-3), (20.0, 2.0**-20), (1e-3, 2.0**-3)):
        found = BUDGET.plan_noise(Gaussian(1.0, sigma, 1.0), 0.9, finest)
        assert found is not None
        assert found.event.sigma >= 4 * found.event.grid
        assert found.event.grid >= min(finest, sigma / 16)


def test_a_very_large_table_is_answered_as_it_is() -> None:
    """Counts of 2^49 rows must not be cut off by a grid that is too fine for them."""
    rng = np.random.default_rng(1)
    few = rng.multinomial(2**20, np.full(6, 1 / 6)).reshape(2, 3)
    universe = hr.Universe.from_sizes({"a": 2, "b": 3})
    for neighbours in ("replace", "add-remove"):
        data = HistogramSource(universe, few.astype(np.int64) * 2**29)
        session = hr.open(data, universe=universe, budget=Budget(1.0, 1e-6, neighbours), seed=1)
        answer = session.ask(hr.count(a=1, b=2))
        assert answer.value == pytest.approx(few[1, 2] / few.sum(), abs=1e-6)
        assert abs(answer.value - few[1, 2] / few.sum()) <= answer.error
