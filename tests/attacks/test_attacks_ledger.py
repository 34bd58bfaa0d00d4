"""Resuming a ledger, however often, returns the recorded releases and buys nothing a second time."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy.allowance import OneCallLedger
from hedgerow.privacy.events import ApproximateDP, Event, Gaussian, Laplace, PerturbedObjective, Repeated
from hedgerow.privacy.ledger import Accountant, Ledger
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.privacy.perturbed_objective import for_the_tilt, hiding_mu, noise_scale
from hedgerow.textbook import sparse_vector

UNIVERSE = hr.Universe(a=hr.Integers(0, 3), b=hr.Flag(), c=hr.Integers(0, 2))
SIZES = UNIVERSE.sizes(UNIVERSE.names)
COUNTS = np.random.default_rng(0).multinomial(200_000, np.ones(24) / 24).reshape(SIZES)
PURE, APPROXIMATE = hr.Budget(1.0, 0.0), hr.Budget(1.0, 1e-6)
X = np.random.default_rng(1).normal(size=(500, 2))
Y = np.sign(X[:, 0])


def opened(budget: hr.Budget = APPROXIMATE, counts: Any = COUNTS, **options: Any) -> hr.Session:
    return hr.open(HistogramSource(UNIVERSE, counts), universe=UNIVERSE, budget=budget, **options)


def taken_up(ledger: Ledger) -> Accountant:
    return hr.wire.ledger_from_lines(list(hr.wire.ledger_lines(ledger)), UNIVERSE)


# One charge, one draw


def test_a_round_that_ended_is_not_opened_again_for_what_it_cost() -> None:
    config = sparse_vector.SparseVector(100.0, sparse_vector.guard_round(0.3, 1.0, 1.0), 1)
    ledger, ended = Accountant(PURE), 0
    with pytest.raises(BudgetExceeded):
        while True:
            outcome, _ = sparse_vector.step(config, sparse_vector.Progress(), 1e6, ledger, Noise())
            ended += outcome.above
            assert ledger.spent >= 0.3 * ended * (1 - 1e-9)
            ledger = taken_up(ledger)
    assert ended == 3


@pytest.mark.parametrize(
    "event", [Gaussian(1.0, 10.0), Repeated(Gaussian(1.0, 20.0), 2)], ids=lambda e: type(e).__name__
)
def test_a_lost_value_is_not_drawn_again_for_its_old_charge(event: Event) -> None:
    ledger, noise = Accountant(APPROXIMATE), Noise()
    for times in (1, 2, 3):
        receipt = ledger.charge(event, keep=False)
        for _ in event.draws:
            noise.add(0.0, receipt)
        assert ledger.spent == pytest.approx(times * event.rho)
        ledger = taken_up(ledger)


def test_draws_made_elsewhere_are_charged_each_time() -> None:
    ledger = Accountant(APPROXIMATE, slack=9e-7)
    for times in (1, 2, 3):
        ledger.charge(ApproximateDP(0.01, 1e-7))
        assert ledger.slack == pytest.approx(9e-7 - times * 1e-7)
        ledger = taken_up(ledger)


def test_a_fit_paid_by_a_ledger_is_paid_again_when_the_ledger_is_resumed() -> None:
    def fitted(ledger: Ledger) -> Any:
        ball = hr.L2Ball(1.0)
        return hr.erm.auto(X, Y, loss=hr.losses.Logistic(), over=ball, budget=ledger, spend=0.004).theta

    ledger = Accountant(APPROXIMATE)
    first = fitted(ledger)
    again = taken_up(ledger)
    assert not np.array_equal(fitted(again), first)
    assert again.spent == pytest.approx(2 * ledger.spent)


def test_reading_a_ledger_depends_on_no_table() -> None:
    """Also of other tables, as far apart as can be: opened on one, taken up on the other."""
    everybody = np.zeros(SIZES, np.int64)
    everybody[0, 0, 0] = COUNTS.sum()
    fewer = COUNTS // 2
    for budget, other in [(PURE, everybody), (APPROXIMATE, everybody), (hr.Budget(1.0, 1e-6, "add-remove"), fewer)]:
        first = opened(budget, guard=0.0)
        again = opened(budget, other, guard=0.0, ledger=taken_up(first.ledger))
        assert again.spent == first.spent and again.rows == first.rows
        for query in (hr.count(a=1, b=True), hr.count(a=(1, 2), c=0), hr.mean("a", where=hr.count(b=True))):
            mine, theirs = first.ask(query), again.ask(query)
            assert (mine.value, mine.error, mine.cost) == (theirs.value, theirs.error, theirs.cost)


def test_a_secret_draw_of_a_fit_is_not_written_down() -> None:
    ledger = Accountant(hr.Budget(2.0, 1e-5), slack=5e-6)
    fits = (hr.erm.objective_perturbation, hr.erm.noisy_sgd, hr.erm.auto)
    for fit in fits:
        ledger.charge(Gaussian(1.0, 1000.0), keep=False)  # as another's between them
        loss = hr.losses.Logistic()
        try:
            theta = fit(X, Y, loss=loss, over=hr.L2Ball(1.0), budget=ledger, spend=0.01).theta
        except BudgetExceeded:  # the whole slack went to the one before
            continue
        entry = ledger.entries()[-1]
        assert len(entry.released) == 1 and np.array_equal(entry.released[0], theta)
    assert any(isinstance(event, PerturbedObjective) for event in ledger.events)


# What was promised before is promised still


def test_the_delta_set_aside_is_still_set_aside_when_a_ledger_is_resumed() -> None:
    ledger = Accountant(APPROXIMATE, slack=5e-7)
    ledger.charge(ApproximateDP(0.01, 3e-7))
    again = taken_up(ledger)
    assert (again.remaining, again.slack, again.set_aside) == (ledger.remaining, ledger.slack, ledger.set_aside)
    assert again.slack == pytest.approx(2e-7)
    with pytest.raises(BudgetExceeded, match="slack"):
        again.charge(ApproximateDP(0.01, 3e-7))


def test_entries_with_more_delta_than_is_set_aside_are_refused() -> None:
    ledger = Accountant(APPROXIMATE, slack=5e-7)
    ledger.charge(ApproximateDP(0.01, 3e-7))
    with pytest.raises(InvalidInput, match="slack must be at least"):
        Accountant(APPROXIMATE, earlier=ledger.entries())
    lines = [hr.wire.dumps(APPROXIMATE), *list(hr.wire.ledger_lines(ledger))[1:]]
    with pytest.raises(InvalidInput, match="slack must be at least"):
        hr.wire.ledger_from_lines(lines, UNIVERSE)


def test_an_entry_that_its_budget_cannot_price_is_refused() -> None:
    ledger = Accountant(APPROXIMATE)
    ledger.charge(Gaussian(1.0, 10.0))
    with pytest.raises(InvalidInput, match="must have a cost in epsilon"):
        Accountant(PURE, earlier=ledger.entries())


def test_a_ledger_that_was_opened_otherwise_first_is_read_from_its_beginning() -> None:
    noise, first = Noise(), Accountant(PURE)
    values = [noise.add(0.0, first.charge(Laplace(1.0, scale))) for scale in (1e3, 1e3, 1e3, 2e3)]
    again = taken_up(first)
    again.charge(Laplace(1.0, 1e3))
    with pytest.raises(InvalidInput, match="opened as before"):
        again.charge(Laplace(1.0, 5.0))
    assert [noise.add(0.0, again.charge(Laplace(1.0, scale))) for scale in (1e3, 1e3, 1e3, 2e3)] == values


def test_a_charge_refused_after_a_crash_is_refused_again_at_every_resume() -> None:
    noise, first = Noise(), Accountant(PURE)
    value = noise.add(0.0, first.charge(Laplace(1.0, 5.0)))
    lost = first.charge(Laplace(1.0, 2.0))  # and then the process ended
    second = taken_up(first)
    assert noise.add(0.0, second.charge(Laplace(1.0, 5.0))) == value
    with pytest.raises(BudgetExceeded):
        second.charge(*lost.events)
    second.end_replay()
    noise.add(0.0, second.charge(Laplace(1.0, 10.0)))  # the stream
    third = taken_up(second)
    assert noise.add(0.0, third.charge(Laplace(1.0, 5.0))) == value
    with pytest.raises(BudgetExceeded, match="when the session ran before"):
        third.charge(*lost.events)
    assert third.end_replay() == third.entries()[2:]
    assert third.spent == second.spent


def test_a_session_that_lost_a_measurement_can_be_resumed_repeatedly() -> None:
    entries = opened(PURE, guard=0.0, seed=1).ledger.entries()
    for at in range(len(entries)):
        lost = [*entries[:at], replace(entries[at], released=())]
        session = opened(PURE, guard=0.0, seed=2, ledger=Accountant(PURE, earlier=lost))
        if session.remaining > 0:
            session.ledger.charge(Laplace(1.0, 2 / session.remaining), why="of the stream")
        again = opened(PURE, guard=0.0, seed=3, ledger=taken_up(session.ledger))
        assert again.spent == session.spent
        assert np.array_equal(again.hypothesis.marginal(("a", "b")), session.hypothesis.marginal(("a", "b")))


def test_a_session_that_lost_its_overview_measures_less_and_opens_all_the_same() -> None:
    budget = hr.Budget(1.0, 1e-6, "add-remove")  # with a charge for the number of rows before that for all pairs
    universe = hr.Universe({f"a{i}": hr.Integers(0, 2) for i in range(6)})
    table = HistogramSource(universe, np.full(universe.shape, 40))

    def of_six(**more: Any) -> hr.Session:
        return hr.open(table, universe=universe, budget=budget, guard=0.0, reserve=0.1, progress=False, **more)

    entries = of_six(seed=1).ledger.entries()
    overviews = [i for i, entry in enumerate(entries) if entry.why.startswith("prefit: residual")]
    assert overviews  # one event for all pairs, or one for each of them
    for at in overviews:
        lost = [*entries[:at], replace(entries[at], released=())]
        session = of_six(seed=2, ledger=Accountant(budget, earlier=lost))
        assert session.spent <= budget.total * (1 + 1e-9)
        again = [entry for entry in session.ledger.entries() if entry.why == entries[at].why and entry.released]
        assert again  # with a part of what was lost
        assert of_six(seed=3, ledger=taken_up(session.ledger)).spent == session.spent


def test_one_draw_from_a_seed_is_not_forgotten_for_another_without() -> None:
    ledger = Accountant(PURE)
    receipt = ledger.charge(Laplace(1.0, 10.0), Laplace(1.0, 10.0))
    Seeded(1).add(0.0, receipt)
    Noise().add(0.0, receipt)
    assert not ledger.entries()[0].private


# Claims of events


def test_noise_on_a_coarse_grid_is_not_certified_as_continuous() -> None:
    """At ε = 5, δ = 10^-3 the analytic formula would let a discrete Gaussian pass that has twice the δ."""
    ε, δ, σ = 5.0, 1e-3, 0.69
    k = np.arange(-60, 62)
    P, Q = (np.exp(-((k - shift) ** 2) / (2 * σ**2)) for shift in (0, 1))
    assert np.maximum(P / P.sum() - math.exp(ε) * Q / Q.sum(), 0).sum() > 1.9 * δ
    with pytest.raises(BudgetExceeded):
        OneCallLedger(hr.Budget(ε, δ)).charge(Gaussian(1.0, σ))
    OneCallLedger(hr.Budget(ε, δ)).charge(Gaussian(1.0, σ, 2.0**-20))


def test_a_tilt_that_its_grid_rounds_away_is_refused() -> None:
    ε, δ = 1.0, 1e-6
    σ, μ = noise_scale(*for_the_tilt(ε, δ), 0.25, 1.0, 10.0, "replace"), hiding_mu(ε, δ)

    def event(tilt: float, hide: float) -> PerturbedObjective:
        return PerturbedObjective(ε, δ, 0.025, Gaussian(2.0, σ, tilt), Gaussian(2.0**-20, 2.0**-20 / μ, hide))

    for grids in [(2.0**20, 2.0**-40), (2.0**-31, 2.0**-20)]:
        with pytest.raises(InvalidInput, match="grids of a perturbed objective"):
            OneCallLedger(APPROXIMATE).charge(event(*grids))
    OneCallLedger(APPROXIMATE).charge(event(2.0**-31, 2.0**-40))


# Answers that others get


@pytest.mark.parametrize(
    "query",
    [hr.marginal("a", "b"), hr.minimize(hr.losses.Logistic(target="b", features=["a", "c"]), over=hr.L2Ball(2.0))],
    ids=["marginal", "minimize"],
)
def test_an_answer_that_is_written_over_is_repeated_as_it_was(query) -> None:
    session = opened()
    answer = session.ask(query).value
    was = answer.copy()
    answer[...] = 7.0
    for later in (session, opened(ledger=taken_up(session.ledger))):
        repeat = later.ask(query)
        assert repeat.source == "repeat" and np.array_equal(repeat.value, was)
        repeat.value[...] = 7.0
        assert np.array_equal(later.ask(query).value, was)
