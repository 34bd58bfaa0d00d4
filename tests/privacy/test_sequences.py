"""Whole sequences of charges, of every kind of event, against their composed privacy losses (``loss_laws``).

An analyst charges random events of a real ledger until it refuses, and spends the rest to the last. The δ that all of it has at the
promised ε, computed in another way than the ledger's, must be at most the promised one.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loss_laws import Losses, delta, discrete_gaussian, laplace, losses_of, most_delta_of_choices, ranged, response
from scipy.optimize import brentq

from hedgerow.errors import BudgetExceeded
from hedgerow.privacy import amplification, perturbed_objective
from hedgerow.privacy.allowance import Allowance, Amount, OneCallLedger
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import gaussian_delta
from hedgerow.privacy.events import (
    COIN,
    KINDS,
    AboveThreshold,
    ApproximateDP,
    DistinctRows,
    Event,
    Exponential,
    FlippedRows,
    Gaussian,
    Laplace,
    PerturbedObjective,
    Planned,
    PoissonSample,
    Repeated,
    RepeatedRows,
    Subsampled,
    SubsampledGaussian,
    ThresholdedCounts,
    grid_at_most,
)
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.renyi_events import HitRound, RandomRuns

Make = Callable[[np.random.Generator, float, Budget, float], Event]
ROUNDED = 1e-5  # relative: of the grid on which losses are composed


def gaussian(rng: np.random.Generator, cost: float, budget: Budget, slack: float) -> Event:
    σ = 1 / math.sqrt(2 * cost)
    return Gaussian(1.0, σ, grid_at_most(σ / 1024))


def coarse(rng: np.random.Generator, cost: float, budget: Budget, slack: float) -> Event:
    Δ = float(rng.integers(1, 4))
    return Gaussian(Δ, Δ / math.sqrt(2 * cost))


def laplacian(rng: np.random.Generator, cost: float, budget: Budget, slack: float) -> Event:
    Δ = float(rng.choice([1.0, 2.0, 64.0]))
    return Laplace(Δ, Δ / _root(lambda ε: Laplace(Δ, Δ / ε).rho, cost))


def exponential(rng: np.random.Generator, cost: float, budget: Budget, slack: float) -> Event:
    return Exponential(1.0, math.sqrt(8 * cost))


def guard(rng: np.random.Generator, cost: float, budget: Budget, slack: float) -> Event:
    ε, share = pure_of(cost), rng.uniform(0.2, 0.8)
    return AboveThreshold(1.0, share * ε, (1 - share) * ε)


def sampled(rng: np.random.Generator, cost: float, budget: Budget, slack: float) -> Event:
    kinds: list[Any] = [DistinctRows(20, 100), RepeatedRows(20, 100)]
    if budget.neighbours == "add-remove":
        kinds = [PoissonSample(COIN // 5)]
    sample = kinds[rng.integers(len(kinds))]
    inner = amplification.inner_epsilon(sample, pure_of(cost))
    return Subsampled(sample, Exponential(1.0, inner) if rng.random() < 0.5 else Laplace(1.0, 1 / inner, 2.0**-10))


def flipped(rng: np.random.Generator, cost: float, budget: Budget, slack: float) -> Event:
    if budget.neighbours == "add-remove":
        return exponential(rng, cost, budget, slack)
    times = int(rng.integers(1, 9))
    rows = math.ceil(8 / (math.expm1(pure_of(cost / times)) * 0.1))  # lies with a probability of 0.1: 0.8/(0.1·n)
    return FlippedRows(math.ceil(0.1 * COIN), max(rows, 1), times)


def repeated(rng: np.random.Generator, cost: float, budget: Budget, slack: float) -> Event:
    times = int(rng.integers(2, 20))
    make = (gaussian, coarse, laplacian)[rng.integers(3)]
    return Repeated(make(rng, cost / times, budget, slack), times)  # type: ignore[arg-type]


def approximate(rng: np.random.Generator, cost: float, budget: Budget, slack: float) -> Event:
    return ApproximateDP(pure_of(cost), slack * rng.uniform(0.05, 0.6)) if slack > 0 else guard(rng, cost, budget, 0)


def descended(rng: np.random.Generator, cost: float, budget: Budget, slack: float) -> Event:
    """Noise on samples, of which ε is one of a few, for it takes long to find."""
    if slack < 1e-8 or cost < 0.005:
        return gaussian(rng, cost, budget, slack)
    rounded = 10.0 ** math.floor(math.log10(slack))
    return _descended(2.0 ** math.floor(math.log2(pure_of(cost))), rounded, budget.neighbours)


@functools.cache
def _descended(epsilon: float, delta_: float, neighbours: str) -> SubsampledGaussian:
    return amplification.subsampled_gaussian(
        epsilon, delta_, neighbours, heads=COIN // 100, steps=50, sensitivity=1.0, values=1
    )


def tilted(rng: np.random.Generator, cost: float, budget: Budget, slack: float) -> Event:
    if slack <= 0:
        return guard(rng, cost, budget, 0)
    ε, δ, curvature = pure_of(cost), slack * rng.uniform(0.1, 0.6), pure_of(cost) / 4
    σ = perturbed_objective.noise_scale(*perturbed_objective.for_the_tilt(ε, δ), curvature, 1.0, 1.0, budget.neighbours)
    hide = 1 / perturbed_objective.hiding_mu(ε, δ) * (1 + 1e-9)
    Δ = 2.0 if budget.neighbours == "replace" else 1.0
    tilt = Gaussian(Δ, σ, grid_at_most(σ * 2.0**-33))
    return PerturbedObjective(ε, δ, curvature, tilt, Gaussian(1.0, hide, 2.0**-12))


def told(rng: np.random.Generator, cost: float, budget: Budget, slack: float) -> Event:
    """Counts of values above a threshold, of which the δ fits what is left of the slack."""
    if slack <= 0:
        return coarse(rng, cost, budget, slack)
    σ = 1 / math.sqrt(2 * cost)
    return ThresholdedCounts(Gaussian(1.0, σ), 2 + math.ceil(σ * math.sqrt(2 * math.log(2 / slack))))


def of_hits(rng: np.random.Generator, cost: float, budget: Budget, slack: float) -> Event:
    """Tests that pay for hits, or a guard where the account does not pay for them."""
    if slack > 0 or budget.rows_per_unit > 1:
        return guard(rng, cost, budget, slack)
    return HitRound(1.0, Amount(budget, cost).hit_epsilon())


def of_runs(rng: np.random.Generator, cost: float, budget: Budget, slack: float) -> Event:
    """The best of a random number of runs, or one run where the account does not pay for several."""
    made = [RandomRuns(1e-9 * cost, mean) for mean in (0.1, 3.0, 10.0)]
    made = [event for event in made if budget.cost(event) < cost / 2]
    if slack > 0 or not made:
        return of_hits(rng, cost, budget, slack)
    each = _root(lambda each: budget.cost(dataclasses.replace(made[-1], each=each)), cost)
    return dataclasses.replace(made[-1], each=each)


MAKERS: tuple[Make, ...] = (
    gaussian, coarse, laplacian, exponential, guard, sampled, flipped, repeated, approximate, descended, tilted, told,
    of_hits, of_runs,
)  # fmt: skip


def pure_of(cost: float) -> float:
    """ε whose ρ as that of any ε-DP mechanism is the cost, rounded down."""
    return _root(lambda ε: ε * math.tanh(ε / 2), cost)


def _root(rho: Callable[[float], float], cost: float) -> float:
    return float(brentq(lambda ε: rho(ε) - cost, 1e-9, 100.0 + cost, xtol=1e-300, rtol=1e-13)) * (1 - 1e-12)


def budget_of(rng: np.random.Generator) -> tuple[Budget, float]:
    """A budget, and the slack in its δ."""
    ε, δ = float(rng.choice([0.1, 0.5, 1.0, 3.0, 8.0])), 10.0 ** rng.uniform(-9, -3)
    rows = int(rng.choice([1, 1, 2, 5]))
    budget = Budget(ε, δ, ("replace", "add-remove")[rng.integers(2)], rows)
    return budget, δ * rng.uniform(0.05, 0.5) if rows == 1 and rng.random() < 0.5 else 0.0


def spent(seed: int) -> tuple[Accountant, np.random.Generator]:
    """A ledger of which nothing is left."""
    rng = np.random.default_rng(seed)
    budget, slack = budget_of(rng)
    ledger = Accountant(budget, slack=slack)
    total, share = float(ledger.remaining), rng.choice([0.5, 0.9, 0.98])
    if slack == 0 and rng.random() < 0.5:  # planned noise comes first, and then as anything does
        first = budget.plan_noise(gaussian(rng, 0.3 * share * total, budget, 0), share)  # type: ignore[arg-type]
        if first is not None:
            ledger.charge(first)
    for _ in range(30):
        cost = min(ledger.remaining, total) * rng.uniform(0.01, 0.4)
        if cost > 1e-9 * total:
            make = MAKERS[rng.integers(len(MAKERS))]
            if make in (of_hits, of_runs) and (slack > 0 or ledger._parts.filter._charged.share is not None):
                make = guard
            made = make(rng, cost, budget, ledger.slack)
            assert ledger.affords(made)
            ledger.charge(made)
        left = _left_of_planned(ledger)
        if left > 1e-9 * total and rng.random() < 0.3:
            ledger.charge(
                budget.plan_noise(
                    gaussian(rng, left * rng.uniform(0.1, 0.9), budget, 0), ledger._parts.filter._charged.share
                )
            )  # type: ignore[arg-type]
    for _ in range(3):
        _fill(ledger, rng, total)
    return ledger, rng


def _left_of_planned(ledger: Accountant) -> float:
    return (
        0.0
        if ledger._parts.filter._charged.share is None
        else float(ledger._parts.filter._charged.subtract_from(ledger._parts.filter._total)[0])
    )


def _fill(ledger: Accountant, rng: np.random.Generator, total: float) -> None:
    """Spend all that is left, and be refused what is more."""
    make, left = (gaussian, exponential, guard, laplacian)[rng.integers(4)], ledger.remaining
    if left > 1e-9 * total:
        with pytest.raises(BudgetExceeded):
            ledger.charge(make(rng, left * (1 + 1e-9) + total * 1e-11, ledger.budget, 0))
        ledger.charge(make(rng, left * (1 - 1e-9), ledger.budget, 0))
    if _left_of_planned(ledger) > 1e-9 * total:
        share = ledger._parts.filter._charged.share
        more = ledger.budget.plan_noise(gaussian(rng, _left_of_planned(ledger) * (1 - 1e-9), ledger.budget, 0), share)  # type: ignore[arg-type]
        ledger.charge(more)  # type: ignore[arg-type]
    if ledger.slack > 0:
        with pytest.raises(BudgetExceeded):
            ledger.charge(ApproximateDP(1e-9, ledger.slack * (1 + 1e-9)))


def ratio(seed: int) -> tuple[float, set[str]]:
    """The true δ as a share of the promised one, and the kinds of events."""
    ledger, rng = spent(seed)
    budget = ledger.budget
    found = delta(losses_of(ledger.events, budget.rows_per_unit, rng), budget.epsilon) / budget.delta
    return found, {type(event).__name__ for event in ledger.events}


def largest_ratio(seeds: range) -> float:
    found = [ratio(seed) for seed in seeds]
    assert max(share for share, _ in found) <= 1 + ROUNDED
    parts = {"DistinctRows", "PoissonSample", "RepeatedRows"}  # of others
    assert set().union(*(kinds for _, kinds in found)) == KINDS.keys() - parts
    return max(share for share, _ in found)


def test_no_sequence_of_charges_loses_more_than_the_budget_promises() -> None:
    assert largest_ratio(range(14)) > 0.2  # else the search would be too weak to tell


@pytest.mark.audit
def test_no_sequence_of_four_hundred_loses_more_than_the_budget_promises() -> None:
    assert largest_ratio(range(1000, 1400)) > 0.5


def overspent(share: float) -> float:
    """Return δ(ε) over the δ of the budget, for a ledger that lets this multiple of the planned noise pass."""
    budget = Budget(1.0, 1e-6)
    event = budget.plan_noise(gaussian(np.random.default_rng(0), 0.98 * budget.total, budget, 0), 0.98)  # type: ignore[arg-type]
    assert isinstance(event, Planned)
    mu2 = (event.event.sensitivity / event.event.sigma) ** 2 * share
    return delta(Losses(mu2=mu2), budget.epsilon) / budget.delta


def test_a_ledger_that_let_a_tenth_more_pass_would_be_noticed() -> None:
    assert overspent(1.0) <= 1 < overspent(1.1)


@pytest.mark.parametrize("rows", [1, 3])
def test_all_of_a_budget_in_one_call_of_gaussian_noise_has_its_delta_and_no_more(rows: int) -> None:
    """A row's noise for persons of several rows: Δ is theirs together."""
    for ε, δ, steps in [(0.1, 1e-8, 1), (1.0, 1e-6, 7), (8.0, 1e-3, 100)]:
        budget = Budget(ε, δ, "add-remove", rows)
        paid = Allowance.of(budget)
        event = paid.quote().fine_gaussian(1.0, 3, steps)
        paid.charge(*[event] * steps)
        found = delta(losses_of([event] * steps, rows, np.random.default_rng(0)), ε) / δ
        assert 0.999 < found <= 1 + ROUNDED
        with pytest.raises(BudgetExceeded):
            OneCallLedger(budget).charge(*[event] * steps, event)


@pytest.mark.parametrize("rows", [1, 4])
def test_no_sequence_without_a_delta_loses_more_than_epsilon(rows: int) -> None:
    rng = np.random.default_rng(rows)
    for neighbours in ("replace", "add-remove"):
        budget = Budget(2.0, 0.0, neighbours, rows)
        ledger = Accountant(budget)
        while ledger.remaining > 1e-9:
            ε = ledger.remaining * (1 if ledger.remaining < 1e-3 else rng.uniform(0.1, 0.6))
            made = [
                Laplace(1.0, 1 / ε), Exponential(1.0, ε), AboveThreshold(1.0, ε / 3, ε * 2 / 3),
                Repeated(Laplace(1.0, 3 / ε), 3),
            ]  # fmt: skip
            event = made[rng.integers(4)]
            if not ledger.affords(event):
                break
            ledger.charge(event)
        found = losses_of(ledger.events, rows, rng)
        assert found.mu2 == found.lost == 0 and found.largest <= 2.0 * (1 + 1e-11)
        assert sum(event.epsilon for event in ledger.events) * rows >= 2.0 * (1 - 1e-6)


def choices(budget: Budget, parts: int) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """The losses of events that cost 1, 2, … parts of a budget: of each kind that has a worst pair of its own."""
    found = []
    for j in range(1, parts + 1):
        cost = budget.total * j / parts
        ε, μ = pure_of(cost), math.sqrt(2 * cost)
        chosen, b = math.sqrt(8 * cost), _root(lambda ε: Laplace(8.0, 8 / ε).rho, cost)
        normal = np.arange(-40, 41) / 5
        edges = np.concatenate([[-np.inf], (normal[:-1] + normal[1:]) / 2, [np.inf]])
        p = np.diff([0.5 * math.erfc(-x / math.sqrt(2)) for x in edges])
        shown = [
            (μ**2 / 2 + μ * (normal - 0.1), p),  # each cell at its lower end: what is reached is reached
            *(tuple(map(np.array, law)) for law in (response(ε), laplace(b, 8), ranged(chosen, chosen / 4), ranged(chosen, 3 * chosen / 4))),
        ]  # fmt: skip
        found.append(shown)
    return found


def reached_by_choices(epsilon: float, delta_: float) -> float:
    budget = Budget(epsilon, delta_)
    width = 3 * epsilon + 10 * math.sqrt(2 * budget.total)
    return most_delta_of_choices(epsilon, 12, choices(budget, 12), width) / delta_


@pytest.mark.parametrize(("epsilon", "delta_"), [(1.0, 1e-6), (3.0, 1e-3)])
def test_no_analyst_who_chooses_each_event_by_the_loss_so_far_gets_beyond_the_budget(
    epsilon: float, delta_: float
) -> None:
    """The best of all strategies over twelve parts of a budget, found backwards from the end."""
    fixed = gaussian_delta(math.sqrt(2 * Budget(epsilon, delta_).total), epsilon) / delta_
    assert 0.5 * fixed < reached_by_choices(epsilon, delta_) <= 1


def test_laws_of_losses_are_laws() -> None:
    """p and q = p·e^−ℓ both add up to 1."""
    for values, p in (response(0.7), ranged(0.7, 0.2), laplace(0.7, 5), discrete_gaussian(3.0, 2)):
        assert math.isclose(sum(p), 1.0, rel_tol=1e-12)
        assert math.isclose(float(np.dot(p, np.exp(-np.array(values)))), 1.0, rel_tol=1e-9)
    for μ, ε in [(0.2, 1.0), (1.0, 3.0), (0.05, 0.1)]:
        assert math.isclose(delta(Losses(mu2=μ**2), ε), gaussian_delta(μ, ε), rel_tol=ROUNDED)
