"""Sessions whose guard pays for hits: promise, cost and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine.practical.guard import plan_guard
from hedgerow.errors import InvalidInput
from hedgerow.privacy.events import AboveThreshold, Planned
from hedgerow.privacy.renyi_events import HitRound

UNIVERSE = hr.Universe.from_sizes({"a": 4, "b": 3, "c": 4, "d": 2})
BUDGET = hr.Budget(1.0, 1e-9)
ROWS = 4_000_000
ASKED = [
    hr.count({"a": {i, (i + 2) % 4}, "b": {j}, "c": {k, (k + 2) % 4}, "d": {m}})
    for i in range(4) for j in range(3) for k in range(4) for m in range(2)
]  # fmt: skip


def data() -> HistogramSource:
    """A table of which single attributes tell nothing: d is the parity of a and c in three rows of four."""
    a, b, c, d = np.indices(UNIVERSE.shape)
    weights = (1 + b) * np.where((a + c + d) % 2 == 0, 3, 1)
    counts = np.floor(ROWS * weights / weights.sum()).astype(np.int64)
    counts.flat[0] += ROWS - counts.sum()
    return HistogramSource(UNIVERSE, counts)


def opened(budget: hr.Budget = BUDGET, **options) -> hr.Session:
    given = {"workload": [hr.marginal(name) for name in UNIVERSE.names], "guard": 0.1, "reserve": 0.1, "seed": 0}
    return hr.open(data(), universe=UNIVERSE, budget=budget, **given | {"pay_for_hits": True} | options)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_an_answer_that_a_guard_of_hits_passes_is_within_its_bar(neighbours) -> None:
    session = opened(hr.Budget(1.0, 1e-9, neighbours))
    answers = session.ask_all(ASKED, progress=False)
    off = [abs(answer.value - hr.unsafe.unsafe_answer(data(), answer.query)) for answer in answers]
    assert all(o <= answer.error for o, answer in zip(off, answers, strict=True))
    rounds = [entry for entry in session.log if isinstance(entry.event, HitRound)]
    hits = session._engine._watch.tops
    assert 1 <= hits <= 16 and hits <= len(rounds) <= hits + 1
    assert session.spent <= session.budget.total and session.spent_epsilon <= session.budget.epsilon
    assert not any(isinstance(event, Planned | AboveThreshold) for entry in session.log for event in entry.events)


def test_its_threshold_is_less_than_two_thirds_of_that_of_a_guard_whose_threshold_has_noise_for_twice_the_rounds() -> (
    None
):
    usual, hits = (plan_guard(BUDGET, ROWS, 100_000, 0.025, 0.1, way) for way in (False, True))
    assert hits.promise < 0.65 * usual.promise
    assert 16 * BUDGET.cost(hits.config.guard) <= 0.1 * BUDGET.total * (1 + 1e-9)
    assert hits.promise == pytest.approx(1.5 * hits.config.threshold / ROWS, rel=1e-6)


@pytest.mark.parametrize(
    "budget", [BUDGET, hr.Budget(1.0, 1e-6), hr.Budget(0.3, 1e-9, "add-remove"), hr.Budget(4.0, 1e-9)]
)
def test_by_default_it_promises_more_than_the_usual_guard_for_a_third_of_its_budget(budget) -> None:
    usual, hits = (plan_guard(budget, 10**8, 100_000, 0.025, None, way) for way in (False, True))
    assert hits.promise < usual.promise and hits.share == 0.03 and hits.config.rounds == 2 * usual.config.rounds
    assert budget.cost(hits.config.guard) < 0.16 * budget.cost(usual.config.guard)  # of a round
    assert 16 * budget.cost(hits.config.guard) <= 0.03 * budget.total * (1 + 1e-9)


def test_a_stream_that_finds_nothing_wrong_pays_for_one_round() -> None:
    session = opened(workload=None)
    session.ask_all(ASKED, progress=False)
    rounds = [entry for entry in session.log if isinstance(entry.event, HitRound)]
    assert len(rounds) <= 1 and session._engine._watch.tops == 0


def test_a_ledger_of_hits_is_resumed_with_the_rounds_that_it_had_left(tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/hits.ledger"
    with opened(ledger=url) as session:
        answers = [session.ask(query).value for query in ASKED[:40]]
        tops, spent = session._engine._watch.tops, session.spent
    with opened(ledger=url) as again:
        assert again._engine._watch.tops == tops >= 1 and again.spent == spent
        assert [again.ask(query).value for query in ASKED[:40]] == answers
    with pytest.raises(InvalidInput):
        opened(ledger=url, pay_for_hits=False)


def test_an_analyst_under_a_cap_opens_no_round_of_hits_and_is_answered_all_the_same(tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/capped.ledger"
    opened(ledger=url).ledger.cap("ana", 0.5)
    with opened(ledger=url, analyst="ana") as session:
        spent = session.spent
        answers = session.ask_all(ASKED[:20], progress=False)
        assert session.spent == spent and all(np.isfinite(answer.value) for answer in answers)
        session.ask(ASKED[0], within=0.01)
        assert session.spent > spent


@pytest.mark.parametrize("budget", [hr.Budget(1.0, 0.0), hr.Budget(1.0, 1e-9, rows_per_unit=2)])
def test_a_budget_that_cannot_price_hits_is_refused_before_anything_is_spent(budget) -> None:
    account = hr.Accountant(budget)
    with pytest.raises(InvalidInput, match="pay_for_hits must come with"):
        opened(budget, ledger=account)
    assert account.spent == 0


def test_the_option_is_true_or_false() -> None:
    with pytest.raises(InvalidInput, match="pay_for_hits must be True or False"):
        hr.Practical(pay_for_hits=0.1)
