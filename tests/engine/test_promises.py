"""Engines keep their promises, answer from released values alone, and are the same when they are resumed."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import hedgerow as hr
from hedgerow.convex import bound_loss
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.convex.solver.gradient_sums import GradientSums
from hedgerow.convex.solver.public_minimum import minimize_over
from hedgerow.data import HistogramSource, Table
from hedgerow.engine import theory
from hedgerow.engine.practical import engine as practical
from hedgerow.engine.practical import public
from hedgerow.engine.practical.convex.excess_bounds import coefficient_bounds, excess_bound
from hedgerow.engine.practical.engine import PracticalEngine
from hedgerow.engine.practical.free_answers import FittedModel, FreeAnswers
from hedgerow.engine.practical.measure.prefit import residual_event
from hedgerow.engine.practical.measure.purchases import NUMBER, TABLE, Purchases, WantedBar
from hedgerow.engine.practical.measurement import along
from hedgerow.engine.release import ReleaseEngine, run_mwem
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Accountant, Entry
from hedgerow.privacy.noise import Seeded
from hedgerow.query.bound import Estimate
from hedgerow.query.counts import BoundMarginal
from hedgerow.query.counts import bound as bound_to
from hedgerow.query.linear import Linear
from hedgerow.textbook import mwem

UNIVERSE = hr.Universe.from_sizes({"a": 4, "b": 3, "c": 2})
APPROXIMATE, PURE = hr.Budget(1.0, 1e-6), hr.Budget(1.0, 0.0)
PRIVATE_N = hr.Budget(1.0, 1e-6, "add-remove")
RIDGE = hr.minimize(hr.losses.Squared(target="a", features=["b", "c"], ridge=0.5), hr.L2Ball(1.0))
REGRESSION = hr.minimize(hr.losses.Squared(target="a", features=["b", "c"]), hr.L2Ball(1.0))


def table(rows: int, seed: int = 0) -> HistogramSource:
    """Return a table of exactly this number of rows, far from uniform and from the table of another seed."""
    shares = np.random.default_rng(seed).dirichlet(np.full(UNIVERSE.size, 0.3))
    counts = np.floor(rows * shares).astype(np.int64)
    counts[0] += rows - counts.sum()
    return HistogramSource(UNIVERSE, counts)


def even(rows: int) -> HistogramSource:
    counts = np.full(UNIVERSE.size, rows // UNIVERSE.size)
    counts[0] += rows - counts.sum()
    return HistogramSource(UNIVERSE, counts)


def opened(data: HistogramSource, budget: hr.Budget, **options: Any) -> hr.Session:
    return hr.open(data, universe=UNIVERSE, budget=budget, seed=3, **options)


def thrifty(data: HistogramSource, budget: hr.Budget, **options: Any) -> hr.Session:
    """Most of the budget is left to be spent on what is asked."""
    return opened(data, budget, reserve=0.8, workload=[hr.count(a=1)], **options)


def engine_of(session: hr.Session) -> PracticalEngine:
    assert isinstance(session._engine, PracticalEngine)
    return session._engine


def asked_of(question: hr.Query) -> BoundMinimize:
    found = bound_to(question, UNIVERSE)
    assert isinstance(found, BoundMinimize)
    return found


# Nothing but what was released


@pytest.mark.parametrize("budget", [APPROXIMATE, PURE, PRIVATE_N], ids=["approximate", "pure", "n private"])
def test_a_prefit_goes_the_same_way_on_any_table_once_its_releases_are_there(budget) -> None:
    """The next measurement and its noise follow from released values, and from nothing else about the table."""
    for seed in range(4):
        first = opened(table(40_000, seed), budget)
        for other in (even(40_000), table(40_000, seed + 10)):
            again = opened(other, budget, ledger=Accountant(budget, earlier=first.ledger.entries()))
            assert [entry.events for entry in again.log] == [entry.events for entry in first.log]
            assert again.spent == first.spent


@pytest.mark.parametrize("budget", [APPROXIMATE, PURE, PRIVATE_N], ids=["approximate", "pure", "n private"])
def test_a_session_resumed_on_another_table_gives_the_same_answers(budget) -> None:
    """All that it knows came out of its ledger, so the table can be any other: what it charges and says is the same.

    A count that is learned or looked at without being paid for would say something of the other table.
    """
    questions = [
        hr.count(a=1, b={0, 2}),
        hr.linear(["b", "c"], np.linspace(0, 1, 6).reshape(3, 2)),
        hr.marginal("a", "c"),
    ]
    first = thrifty(table(40_000), budget)
    for query in questions:
        first.ask(query, within=0.05)
    assert {entry.why for entry in first.log} & {TABLE, "measured query"}
    taken = Accountant(budget, earlier=first.ledger.entries())
    again = thrifty(table(40_000, seed=1), budget, ledger=taken)
    assert [entry.events for entry in again.log] == [entry.events for entry in first.log]
    assert np.array_equal(again.hypothesis.marginal(UNIVERSE.names), first.hypothesis.marginal(UNIVERSE.names))
    assert all(entry.is_complete for entry in first.log)


def test_a_resumed_session_repeats_its_answers_for_free() -> None:
    first, query = thrifty(table(40_000), APPROXIMATE), hr.count(a=1, c=0)
    bought = first.ask(query, within=0.05)
    assert bought.cost > 0
    ledger = hr.wire.ledger_from_lines(list(hr.wire.ledger_lines(first.ledger)), UNIVERSE)
    repeated = thrifty(table(40_000), APPROXIMATE, ledger=ledger).ask(query, within=0.05)
    assert (repeated.value, repeated.error, repeated.source, repeated.cost) == (bought.value, bought.error, "repeat", 0)


def test_an_entry_comes_back_with_every_field() -> None:
    query = Linear.from_table(UNIVERSE, ("a",), [0.5, 1.0, 0.0, 0.25])
    sent = Entry(
        number=3, events=(Laplace(1.0, 20.0), Gaussian(1.0, 30.0, 0.5)), cost=0.125, why="why",
        about={"query": query, "threshold": 2.5}, asked=hr.count(a=1), kept=False, released=(np.arange(3.0),), private=False,
    )  # fmt: skip
    back = hr.wire.loads(hr.wire.dumps(sent))
    for field in ("number", "events", "cost", "why", "asked", "kept", "private"):
        assert getattr(back, field) == getattr(sent, field)
    assert back.about["query"].key == query.key and back.about["threshold"] == 2.5
    assert len(back.released) == 1 and back.released[0].tolist() == [0.0, 1.0, 2.0]
    for budget in (APPROXIMATE, PURE, PRIVATE_N):
        assert hr.wire.loads(hr.wire.dumps(budget)) == budget


def test_an_answer_without_a_bar_comes_back_without_one() -> None:
    for error in (None, 0.0, 0.25):
        assert hr.wire.loads(hr.wire.dumps(Estimate(0.5, error, "hypothesis"))) == Estimate(0.5, error, "hypothesis")


# What a row does is what is paid for


@pytest.mark.parametrize("budget", [APPROXIMATE, PURE, PRIVATE_N], ids=["approximate", "pure", "n private"])
def test_a_table_is_bought_with_the_noise_of_a_table(budget) -> None:
    """A replaced row moves two of its counts: 2 in ℓ1, which Laplace noise is for, and √2 in ℓ2."""
    session = thrifty(table(40_000), budget)
    session.ask(hr.marginal("a", "b"), within=0.05)
    (bought,) = [entry for entry in session.log if entry.why == TABLE and entry.about["attributes"]]
    moved = {APPROXIMATE: math.sqrt(2), PURE: 2.0, PRIVATE_N: 1.0}[budget]
    assert bought.event.sensitivity == pytest.approx(moved)


def test_the_noise_of_a_residual_pays_for_its_rounding() -> None:
    for sizes, ranged in (((2,), ()), ((5, 7), ()), ((50, 40), ()), ((5, 7), (True, False)), ((50, 40), (True, True))):
        by = along(sizes, ranged)
        event = residual_event(Amount(APPROXIMATE, 0.01), by, 10.0**6)
        off = event.grid * math.sqrt(math.prod(each.count for each in by))
        moved = APPROXIMATE.tensor_l2([each.contribution for each in by])
        assert event.sensitivity >= moved + off > moved
        assert event.sensitivity == pytest.approx(moved, rel=0.01)


def test_the_guards_value_is_the_gap_in_rows() -> None:
    data = table(40_000)
    engine = engine_of(opened(data, APPROXIMATE))
    query = bound_to(hr.count(a=1, b={0, 2}), UNIVERSE)
    assert isinstance(query, Linear)
    gap = query.dot(data.marginal(query.attributes)) - 40_000 * engine.hypothesis.answer(query)
    assert engine._gap(query) == pytest.approx(abs(gap), abs=0.5)


def test_a_private_n_that_is_too_inaccurate_for_a_bar_is_bought_to_a_third_of_it_and_no_better() -> None:
    """As the first measurement: whoever asks pays for what the bar needs, and not for more."""
    engine = engine_of(opened(table(40_000), PRIVATE_N, reserve=0.5))
    purchases, rows = engine._purchases, engine.knowledge.rows
    query, within = bound_to(hr.count(a=1, b={0, 2}), UNIVERSE), 1.5 * rows.doubt
    assert isinstance(query, Linear)
    first, *others = purchases._plan([WantedBar(query, within)], tables=True, fine=True)
    assert (first.names, first.query) == ((), None) and others
    everybody = Linear((), (), (), np.array(1.0), True)
    width = engine.knowledge.bars.width(everybody, first.event, alone=False)
    assert 0.9 * within / 3 < width / rows.low <= within / 3 * (1 + 1e-6)


def test_no_coefficient_has_a_bar_that_rests_on_what_a_user_says_of_a_loss() -> None:
    """Losses of the package are strongly convex by proof; a user's own may be called so."""
    own = hr.losses.Custom(
        lambda theta, records: (theta[0] - records["a"]) ** 2, lambda theta, records: 2 * (theta - records["a"][:, None]),
        ["a"], 1, lipschitz=10.0, smoothness=2.0, strong_convexity=2.0,
    )  # fmt: skip
    for question, has_bars in [(hr.minimize(own, hr.L2Ball(1.0)), False), (RIDGE, True)]:
        asked = asked_of(question)
        bars = coefficient_bounds(asked, np.zeros(asked.risk.dimension), 1e-4, None)
        assert (bars is not None) == has_bars


class Counting(Seeded):
    """Noise that counts the draws from each receipt."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.drawn: dict[int, int] = {}

    def add(self, value: Any, receipt: Any) -> Any:
        self.drawn[receipt.number] = self.drawn.get(receipt.number, 0) + 1
        return super().add(value, receipt)


@pytest.mark.parametrize("budget", [APPROXIMATE, PURE], ids=["approximate", "pure"])
def test_a_convex_question_draws_what_it_is_charged_for_at_the_price_of_a_row(budget) -> None:
    """Err is measured for all that a row moves it, and gradients in the norm that their noise is for: ℓ1 of Laplace."""
    ledger, noise = Accountant(budget), Counting(0)
    options: dict[str, Any] = {"workload": [hr.count(a=1)], "queries": 10, "beta": 0.1, "guard": 0.0, "reserve": 0.5}
    engine = practical.build_practical_engine(table(200_000), ledger, noise, **options)
    question, convex, opening = asked_of(REGRESSION), engine._convex, len(ledger.entries())
    theta = engine.minimize(question, None).value
    excess, event = convex._check(question, theta, 0.5)
    assert event.sensitivity >= excess.sensitivity(event.grid)
    width = engine.knowledge.bars.number(event)
    bar = convex._measure_excess(question, excess, event)
    (measured,) = [entry for entry in ledger.entries() if entry.why == NUMBER]
    assert bar == pytest.approx((max(measured.released[0], 0.0) + width + excess.below) / 200_000)
    assert convex._oracle(question, theta, 0.1 * budget.total) is not None
    sums = GradientSums(question.risk, question.over, budget, 200_000)
    bought = [entry for entry in ledger.entries() if entry.why == "gradient"]
    p = question.risk.dimension
    norm = math.sqrt(p) if budget.pure else 1.0
    assert bought and all(entry.event.sensitivity >= norm * sums.sensitivity for entry in bought)
    assert all(noise.drawn.get(entry.number) == 1 for entry in ledger.entries()[opening:])


def test_a_table_too_large_to_count_is_refused_before_it_is_charged() -> None:
    huge = hr.Universe(x=hr.Integers(0, 9999), y=hr.Integers(0, 9999))
    ledger, data = Accountant(APPROXIMATE), Table(pd.DataFrame({"x": [1, 2], "y": [3, 4]}), huge)
    purchases = Purchases(data, ledger, Seeded(0), FreeAnswers(FittedModel.nothing(huge, 2.0), 0.1, 2))
    with pytest.raises(hr.TooLarge):
        purchases.table(("x", "y"), Gaussian(1.0, 50.0))
    assert ledger.spent == 0


def test_reserves_of_the_guard_and_of_the_owner_are_left_after_the_opening() -> None:
    session = opened(table(24 * 10**6), APPROXIMATE, guard=0.1, reserve=0.3)
    assert engine_of(session).guard is not None
    assert session.remaining == pytest.approx((0.3 + 2 * 0.1) * APPROXIMATE.total, rel=1e-6)


# β is shared


def test_each_number_that_is_bought_takes_a_share_of_beta() -> None:
    """Also in a session that is taken up, whether or not it came out."""
    session = opened(table(40_000), APPROXIMATE, reserve=0.3)
    engine, event = engine_of(session), Gaussian(1.0, 5000.0)
    before = engine.knowledge.bars.number(event)
    engine._purchases.number(event)
    after = engine.knowledge.bars.number(event)
    assert after > before
    engine._purchases.resume([entry for entry in session.log if entry.why == NUMBER])
    assert engine.knowledge.bars.number(event) > after


def test_bars_and_guard_share_beta() -> None:
    event = Gaussian(1.0, 5000.0)
    data, workload = even(24 * 10**6), [hr.count(a=1)]
    with_guard = engine_of(opened(data, APPROXIMATE, beta=0.1, guard=0.1, workload=workload))
    half = engine_of(opened(data, APPROXIMATE, beta=0.05, guard=0.0, workload=workload))
    assert with_guard.guard is not None and half.guard is None
    assert with_guard.knowledge.bars.number(event) == pytest.approx(half.knowledge.bars.number(event))


# The guard


@pytest.mark.parametrize("budget", [APPROXIMATE, PRIVATE_N], ids=["n public", "n private"])
def test_below_the_guard_an_answer_has_the_bar_that_it_promises(budget) -> None:
    """3w rows, its threshold being 2w, and how far rounding may move a gap; where n is private, of ñ, that may be off."""
    session = opened(even(24 * 10**6), budget, guard=0.1, workload=[hr.count(a=1)])
    engine = engine_of(session)
    engine.knowledge.certified = None  # which bounds what is asked by less
    answer = session.ask(hr.linear(["b", "c"], np.linspace(0, 1, 6).reshape(3, 2)))
    assert answer.source == "hypothesis" and engine.guard is not None
    known = engine.knowledge
    promised = 1.5 * engine.guard.config.threshold + 5 * 2.0**-20 + known.grid + known.rows.high * 2.0**-40
    if budget is PRIVATE_N:
        promised += known.rows.off
    assert answer.error == pytest.approx(promised / engine.rows, rel=1e-9)


def test_below_the_guard_a_convex_answer_has_the_bar_of_as_many_rows() -> None:
    """3w rows, each for all that a row moves its excess risk: no less, and hardly more."""
    rows = 24 * 10**6
    session = opened(even(rows), APPROXIMATE, guard=0.1, workload=[hr.count(a=1)])
    engine = engine_of(session)
    engine.knowledge.certified = None  # which bounds what is asked by less
    answer = session.ask(REGRESSION)
    assert answer.source == "hypothesis" and engine.guard is not None
    excess = engine._convex._excess(asked_of(REGRESSION), answer.value, 1e-4)
    assert excess is not None
    moved = 1.5 * engine.guard.config.threshold * excess.most * excess.unit / rows
    assert moved <= (answer.error or 0.0) <= 1.2 * moved


@pytest.mark.parametrize("kind", ["Squared", "Logistic"])
@pytest.mark.parametrize("distance", [0.05, 0.3])
def test_the_worst_table_at_a_distance_has_no_more_excess_risk_than_is_stated(kind, distance) -> None:
    """For the mean of a flag the worst table is known: the whole distance moves from one value to the other."""
    universe = hr.Universe(y=hr.Flag())
    question = hr.minimize(getattr(hr.losses, kind)(target="y"), hr.Box(-1.0, 1.0)).on(universe)
    hypothesis = Hypothesis(universe)
    found, believed = question.fit_on(hypothesis)
    worst = believed + distance * np.array([-1.0, 1.0]) / math.sqrt(2)
    best = minimize_over(question.risk, worst, question.over, 1e-9)
    excess = question.risk.objective(worst).value(found.theta) - best.value
    bound = excess_bound(question, believed, found, distance)
    assert 0 < excess <= bound
    assert bound < 30 * excess or bound == math.inf


def fired(session: hr.Session) -> int:
    """Questions that no workload foresaw, on a table far from uniform, until the guard has had enough."""
    found = 0
    for values in itertools.product(range(4), range(3), range(2)):
        found += session.ask(hr.count(a=values[0], b=values[1], c=values[2])).source == "measured"
    return found


def test_an_exhausted_guard_is_off_and_a_resumed_one_has_its_remaining_rounds() -> None:
    options: dict[str, Any] = {"guard": 0.1, "workload": [hr.count(a=1)], "reserve": 0.3}
    session = opened(table(24 * 10**6), APPROXIMATE, **options)
    assert fired(session) > 0
    watch = engine_of(session)._watch
    assert watch is not None
    taken = Accountant(APPROXIMATE, earlier=session.ledger.entries())
    again = engine_of(opened(table(24 * 10**6), APPROXIMATE, ledger=taken, **options))._watch
    assert again is not None and again._progress.tops == watch._progress.tops > 0
    watch._progress = replace(watch._progress, tops=watch.guard.config.rounds, round=None)
    assert not watch.is_on


# Releases and the theory


def offline(stopped: bool) -> tuple[ReleaseEngine, Linear, Linear]:
    """A release of one query by a mechanism that met its stop or not, at a known α."""
    inside, outside = (Linear.from_table(UNIVERSE, ("a",), np.eye(4)[i]) for i in (0, 1))
    config = mwem.configure(APPROXIMATE, cells=24, scale=10**7, queries=1, beta=0.05, alpha=0.05)
    released = mwem.MWEMRelease(Hypothesis(UNIVERSE), (), 0, stopped=stopped)
    with (
        mock.patch.object(mwem, "configure", lambda *_, **__: config),
        mock.patch.object(mwem, "release", lambda *_: released),
    ):
        engine = run_mwem(table(10**7), Accountant(APPROXIMATE), Seeded(0), workload=[inside], beta=0.05)
    return engine, inside, outside


def test_a_release_that_did_not_stop_promises_nothing() -> None:
    engine, inside, _ = offline(stopped=False)
    assert engine.linear(inside, None).error is None
    with pytest.raises(hr.BudgetExceeded, match=r"promises \(none\)"):
        engine.linear(inside, 0.5)
    engine, inside, _ = offline(stopped=True)
    assert engine.linear(inside, None).error == pytest.approx(3 * 0.05)


def test_a_release_promises_nothing_of_what_was_not_in_its_workload() -> None:
    engine, inside, outside = offline(stopped=True)
    assert engine.linear(inside, None).error is not None
    assert engine.linear(outside, None).error is None
    assert engine.marginal(BoundMarginal(("a",), ()), None).error is None  # of which one cell is in it


@pytest.mark.parametrize("beta", [0.3, 1e-3])
def test_the_theory_knows_n_as_well_as_its_noise_allows(beta) -> None:
    for event, law in ((Gaussian(1.0, 40.0), stats.norm(scale=40.0)), (Laplace(1.0, 30.0), stats.laplace(scale=30.0))):
        assert 2 * law.sf(theory._reach(event, beta)) <= beta


def theoretical(budget: hr.Budget) -> theory.TheoryEngine:
    question = asked_of(hr.minimize(hr.losses.Squared(target="c"), hr.Box(-1.0, 1.0)))
    return theory.build_theory_engine(
        table(10**8), Accountant(budget), Seeded(0), convex=[question], queries=50, beta=0.1, alpha=None, trusted_losses=(),
    )  # fmt: skip


@pytest.mark.parametrize("budget", [APPROXIMATE, PRIVATE_N], ids=["n public", "n private"])
def test_counts_and_convex_questions_of_the_theory_share_budget_and_beta(budget) -> None:
    engine = theoretical(budget)
    assert engine._convex is not None
    linear, convex = engine._pmw.config, engine._convex.config
    assert linear.beta + convex.beta <= (0.1 if budget is APPROXIMATE else 0.09) * (1 + 1e-12)
    of_counts = linear.rounds * (budget.cost(linear.guard) + budget.cost(linear.measurement))
    of_losses = convex.rounds * (budget.cost(convex.guard) + budget.cost(convex.plan.event))
    assert of_counts + of_losses + engine.ledger.spent <= budget.total * (1 + 1e-12)


def test_with_a_private_n_the_convex_promise_of_the_theory_is_wider() -> None:
    """α is of ñ rows, and there may be fewer."""
    engine = theoretical(PRIVATE_N)
    assert engine._convex is not None and 0 < engine._doubt < 1
    question = asked_of(hr.minimize(hr.losses.Squared(target="c"), hr.Box(-1.0, 1.0)))
    with pytest.raises(hr.InvalidInput, match="within must be at least alpha"):
        engine.minimize(question, engine._convex.config.alpha * (1 + engine._doubt / 2))


def test_the_theory_refuses_a_loss_whose_table_cannot_be_listed_before_it_asks_anything(monkeypatch) -> None:
    engine = theoretical(APPROXIMATE)
    assert engine._convex is not None
    monkeypatch.setattr(bound_loss, "LARGEST_LISTED", 1)
    question = asked_of(hr.minimize(hr.losses.Squared(target="c"), hr.Box(-1.0, 1.0)))
    spent, asked = engine.ledger.spent, []
    monkeypatch.setattr(engine._convex, "ask", lambda *given: asked.append(given))
    with pytest.raises(hr.TooLarge, match="must fit in memory"):
        engine.minimize(question, None)
    assert engine.ledger.spent == spent and not asked


def test_a_table_that_the_theory_returns_is_the_askers_own() -> None:
    answers = theoretical(APPROXIMATE).public
    table_asked = bound_to(hr.marginal(*UNIVERSE.names), UNIVERSE)
    assert isinstance(table_asked, BoundMarginal)
    found = answers.marginal(table_asked, None).value
    before = found.copy()
    found[...] = 7.0
    assert np.array_equal(answers.marginal(table_asked, None).value, before)


def test_the_theory_refuses_what_its_theorem_does_not_give() -> None:
    session = opened(table(10**8), APPROXIMATE, profile="theory", queries=50)
    spent = session.spent
    bar = session.ask(hr.count(a=1)).error or 0.0
    assert bar == pytest.approx(3 * session._engine._pmw.config.alpha)  # type: ignore[attr-defined]
    with pytest.raises(hr.InvalidInput, match="within must be at least the bar"):
        session.ask(hr.count(a=2), within=0.9 * bar)
    assert session.spent >= spent


def test_an_answer_without_a_bound_has_no_bar() -> None:
    assert public.estimate(0.0, 1.0).error is None
    assert public.estimate(0.3, 0.7).error == 0.7


def test_a_bar_in_rows_is_of_as_many_rows() -> None:
    session, query = opened(table(40_000), APPROXIMATE), hr.count(a=1, c=0)
    fraction, rows = session.ask(query), session.ask(query, scale="rows")
    assert (rows.value, rows.error) == pytest.approx((40_000 * fraction.value, 40_000 * (fraction.error or 0.0)))


# Opening


def test_a_session_is_opened_on_the_budget_of_its_ledger() -> None:
    with pytest.raises(hr.InvalidInput, match="budget must be that of the ledger"):
        opened(table(1000), hr.Budget(2.0, 1e-6), ledger=Accountant(APPROXIMATE))


def test_a_session_is_opened_on_the_universe_of_its_data() -> None:
    other = hr.Universe.from_sizes({"a": 3, "b": 4, "c": 2})
    with pytest.raises(hr.InvalidInput, match="coded by the session's universe"):
        hr.open(table(1000), universe=other, budget=APPROXIMATE)


def test_an_empty_table_opens_where_n_is_private() -> None:
    session = opened(even(0), PRIVATE_N)
    assert 0 <= session.ask(hr.count(a=1)).value <= 1
    with pytest.raises(hr.InvalidInput, match="at least one row"):
        opened(even(0), APPROXIMATE)
