"""The choice of an oracle for each convex question: the rates and the bound of the localized oracle, and the promise
that an opened session answers.

A bound that holds except with probability β₀ = 10⁻⁷ is tested on 8 runs, and fails by chance once in 10⁶ times. It is a
worst case: a bill of half the noise is noticed by the test of the unit, not by this one.
"""

from __future__ import annotations

import dataclasses
import math
import time

import numpy as np
import pytest
from paying import paid

import hedgerow as hr
from hedgerow import losses
from hedgerow.convex.sets import L1Ball, L2Ball
from hedgerow.convex.solver.public_minimum import minimize_over
from hedgerow.data import HistogramSource
from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.noise import Seeded
from hedgerow.textbook import convex_pmw, oracle_choice
from hedgerow.textbook.localized_oracle import LocalizedOracle
from hedgerow.textbook.oracles import (
    NoisyGradientDescentOracle,
    OutputPerturbationOracle,
    RegularizedOutputPerturbationOracle,
)
from hedgerow.universe.universe import Universe

BUDGET = Budget(1.0, 1e-9)
SMALL = Universe.from_sizes({"y": 2, "a": 3, "b": 2})
BALL = L2Ball(1.0)
KINDS = {
    "Logistic": losses.Logistic,
    "Hinge": losses.Hinge,
    "Absolute": losses.Absolute,
    "Huber": losses.Huber,
    "Squared": losses.Squared,
}


def asked(kind: str, ridge: float = 0.0) -> losses.Loss:
    return KINDS[kind](target="y", features=["a", "b"], ridge=ridge)


def counts_of(rows: float, seed: int = 0) -> np.ndarray:
    shares = np.random.default_rng(seed).dirichlet(np.ones(SMALL.size))
    counts = np.floor(shares * rows).astype(np.int64).reshape(SMALL.shape)
    counts.flat[0] += int(rows) - counts.sum()
    return counts


# Table 1: the rate of strongly convex losses


def first_term(alpha: float, sigma: float, dimension: int = 100) -> float:
    """n′ of Theorem 3.8: the rows that the oracle needs for α₀ = 0.24α at its part of the cost of T rounds."""
    S = 10.5
    oracle = LocalizedOracle(5.25, 2.0, 1.0, dimension, cells=8, smoothness=3.5, strong_convexity=sigma)
    T = convex_pmw.update_bound(alpha * S, 1024, S, "hoeffding") + 1
    allowed = convex_pmw.ORACLE * alpha * S
    low, high = 1.0, 1e15
    while high / low > 1 + 1e-3:
        middle = math.sqrt(low * high)
        plan = oracle.plan(BUDGET, BUDGET.total / T / 2, middle, 0.05 / T, allowed)
        low, high = (low, middle) if plan is not None and plan.error <= allowed else (middle, high)
    return high


def test_the_strongly_convex_row_has_the_exponents_of_theorem_4_6() -> None:
    """n ~ √p/(√σ·α^1.5): halving α takes 2.83 times the rows, and quartering σ twice as many, up to the logarithm of T."""
    halved = [first_term(alpha / 2, 0.5) / first_term(alpha, 0.5) for alpha in (0.04, 0.01)]
    quartered = [first_term(alpha, 0.125) / first_term(alpha, 0.5) for alpha in (0.01,)]
    assert all(2.7 < ratio < 3.1 for ratio in halved)
    assert all(1.9 < ratio < 2.2 for ratio in quartered)
    assert first_term(0.01, 0.5, 400) / first_term(0.01, 0.5, 100) == pytest.approx(2, rel=0.25)


def test_the_localized_oracle_needs_fewer_rows_than_one_perturbed_minimum() -> None:
    given = (BUDGET, 0.01 * 10.5, 0.1, 8, 1024, 10.5)
    localized = LocalizedOracle(5.25, 2.0, 1.0, 3, cells=8, smoothness=3.5, strong_convexity=0.125)
    once = OutputPerturbationOracle(5.25, 0.125, 3, 10.5)
    assert convex_pmw.rows_needed(*given, localized) < 0.5 * convex_pmw.rows_needed(*given, once)


def test_lipschitz_losses_need_the_rows_of_theorem_4_1_in_a_few_minimizers() -> None:
    """The error of a call is of order LD√p/(n√ρ₀): 4 times the rows give a quarter of it, 4 times the dimension twice it."""
    oracle = LocalizedOracle(1.0, 2.0, 1.0, 100, cells=8, smoothness=1.0)
    error = lambda n, o=oracle: o.plan(BUDGET, 1e-5, n, 0.01).error  # noqa: E731
    assert error(10**7) / error(4 * 10**7) == pytest.approx(4, rel=0.2)
    assert error(10**7, dataclasses.replace(oracle, dimension=400)) / error(10**7) == pytest.approx(2, rel=0.25)
    descent = NoisyGradientDescentOracle(1.0, 2.0, 100).plan(BUDGET, 1e-5, 10**7, 0.01)
    assert error(10**7) < 3 * descent.error and descent.steps > 1000 * oracle.plan(BUDGET, 1e-5, 10**7, 0.01).steps


# The bound and the bill of the localized oracle


@pytest.mark.parametrize("kind, ridge", [("Logistic", 0.0), ("Hinge", 0.0), ("Squared", 0.3)])
@pytest.mark.parametrize("over", [BALL, L1Ball(1.0)], ids=["ℓ2", "ℓ1"])
def test_the_answers_of_the_localized_oracle_are_within_its_bound(kind, ridge, over) -> None:
    risk, counts = asked(kind, ridge).on(SMALL), counts_of(10**5)
    oracle = LocalizedOracle.of(risk, over)
    plan = oracle.plan(BUDGET, 1e-3, 10**5, 1e-7)
    assert plan is not None and oracle.certain(plan, risk, over, BUDGET, 10**5)
    least, objective = minimize_over(risk, counts / 10**5, over, 1e-7).value, risk.objective(counts / 10**5)
    found = [
        oracle.answer(plan, risk, over, counts, Seeded(seed), paid(plan.event), BUDGET, 10**5) for seed in range(8)
    ]
    excess = [objective.value(theta) - least for theta in found]
    assert all(over.contains(theta) for theta in found)
    assert max(excess) <= plan.error
    assert len({theta.tobytes() for theta in found}) == 8  # the noise is there


def test_a_unit_is_as_far_as_one_row_moves_the_minimizer_of_its_phase() -> None:
    oracle = LocalizedOracle(1.5, 2.0, 1.0, 3, cells=12, smoothness=2.0, strong_convexity=0.1)
    n, cost = 10**6, 1e-4
    plan = oracle.plan(BUDGET, cost, n, 0.01)
    assert len(plan.phases) == plan.event.times and BUDGET.cost(plan.event) <= cost * (1 + 1e-9)
    assert plan.noise.sensitivity == 1.0
    for phase in plan.phases:
        assert phase.unit >= 2 * 1.5 / (n * (phase.ridge + 0.1)) + 2 * phase.distance


@pytest.mark.parametrize("name", ["lipschitz", "diameter", "radius", "dimension", "cells", "smoothness", "jump"])
def test_a_loss_beyond_the_constants_of_the_localized_oracle_is_refused(name) -> None:
    risk = asked("Hinge" if name == "jump" else "Logistic").on(SMALL)
    own = LocalizedOracle.of(risk, BALL)
    own.fits(risk, BALL)
    half = dataclasses.replace(own, **{name: type(getattr(own, name))(getattr(own, name) / 2)})
    with pytest.raises(InvalidInput, match=f"The {name} of a loss must be at most"):
        half.fits(risk, BALL)
    with pytest.raises(InvalidInput, match="strongly convex"):
        dataclasses.replace(own, strong_convexity=0.5).fits(risk, BALL)
    with pytest.raises(InvalidInput, match="replace a row"):
        own.plan(Budget(1.0, 1e-9, "add-remove"), 1e-4, 1e6, 0.1)


# The choice


def test_a_choice_promises_for_every_loss_the_least_that_one_of_its_oracles_gives() -> None:
    questions = [(asked(kind, ridge).on(SMALL), BALL) for kind, ridge in (("Logistic", 0.0), ("Squared", 0.5))]
    inside = oracle_choice.choices_for(questions, BUDGET)[0]
    assert not inside.leaves_the_set
    plan = inside.plan(BUDGET, 1e-5, 1e8, 0.01, 0.0)
    plans = dict(plan.members)
    assert plan.error == max(min(plans[oracle].error for oracle in group) for group in inside.groups)
    assert all(BUDGET.cost(own.event) <= BUDGET.cost(plan.event) <= 1e-5 * (1 + 1e-9) for own in plans.values())


def test_a_dimension_free_oracle_is_offered_where_every_update_may_leave_the_set() -> None:
    choices = oracle_choice.choices_for([(asked("Logistic").on(SMALL), BALL)], BUDGET)
    kinds = [{type(oracle) for group in choice.groups for oracle in group} for choice in choices]
    assert kinds[0] == {LocalizedOracle, NoisyGradientDescentOracle}
    assert kinds[1] == kinds[0] | {RegularizedOutputPerturbationOracle}


def test_gradient_descent_alone_serves_where_n_is_private() -> None:
    choices = oracle_choice.choices_for([(asked("Squared", 0.5).on(SMALL), BALL)], Budget(1.0, 1e-9, "add-remove"))
    assert [[type(oracle) for oracle in group] for group in choices[0].groups] == [[NoisyGradientDescentOracle]]


def test_a_choice_has_no_answer_of_its_own() -> None:
    (choice, *_), risk = oracle_choice.choices_for([(asked("Huber").on(SMALL), BALL)], BUDGET), asked("Huber").on(SMALL)
    plan = choice.plan(BUDGET, 1e-5, 1e8, 0.01)
    assert choice.certain(plan, risk, BALL, BUDGET, 1e8)
    with pytest.raises(InvalidInput, match="member"):
        choice.answer(plan, risk, BALL, counts_of(10**8), Seeded(0), paid(plan.event), BUDGET, 1e8)


# What opens is answered


def opened(kind: str, rows: float, **options) -> tuple[hr.Session, hr.Query]:
    question = hr.minimize(asked(kind), BALL)
    data = HistogramSource(SMALL, counts_of(rows))
    session = hr.open(
        data, universe=SMALL, budget=hr.Budget(1.0, 1e-9), profile="theory", workload=[question], queries=10, seed=1,
        progress=False, **options,
    )  # fmt: skip
    return session, question


@pytest.mark.parametrize(
    "kind, rows",
    [
        ("Logistic", 1e8), ("Hinge", 1e9), ("Huber", 1e12),
        *(pytest.param(kind, rows, marks=pytest.mark.audit) for kind in KINDS for rows in (1e7, 1e8, 1e9, 1e10, 1e11, 1e12)),
    ],
)  # fmt: skip
def test_a_declared_workload_that_opens_is_answered_at_every_n(kind, rows) -> None:
    session, question = opened(kind, rows)
    answer = session.ask(question)
    assert answer.error is not None and 0 < answer.error < 1
    risk, marginal = asked(kind).on(SMALL), counts_of(rows) / rows
    least = minimize_over(risk, marginal, BALL, 1e-7).value
    assert risk.objective(marginal).value(np.asarray(answer.value)) - least <= answer.error


def test_the_alpha_of_convex_questions_is_obeyed_or_refused() -> None:
    best = opened("Logistic", 1e8)[0]
    (least, question) = best.ask(hr.minimize(asked("Logistic"), BALL)).error, hr.minimize(asked("Logistic"), BALL)
    for alpha in (1.5 * least, 3 * least):
        session, _ = opened("Logistic", 1e8, alpha=alpha)
        assert session.ask(question).error == alpha
    with pytest.raises(InvalidInput, match="alpha"):
        opened("Logistic", 1e8, alpha=least / 5)


@pytest.mark.audit
def test_an_oracle_call_on_a_histogram_of_a_hundred_thousand_cells_takes_two_seconds_at_most() -> None:
    universe = Universe.from_sizes({"y": 2, "a": 50, "b": 32, "c": 32})
    counts = (
        np.random.default_rng(0).multinomial(10**8, np.full(universe.size, 1 / universe.size)).reshape(universe.shape)
    )
    for kind in ("Logistic", "Huber", "Squared"):
        risk = KINDS[kind](target="y", features=["a", "b", "c"]).on(universe)
        oracle = LocalizedOracle.of(risk, BALL)
        plan = oracle.plan(BUDGET, 1e-5, 1e8, 0.01, 0.05)
        assert oracle.certain(plan, risk, BALL, BUDGET, 1e8)
        started = time.process_time()
        oracle.answer(plan, risk, BALL, counts, Seeded(0), paid(plan.event), BUDGET, 1e8)
        assert time.process_time() - started < 2
