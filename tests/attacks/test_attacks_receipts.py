"""Attacks on receipts by an analyst with a session and Python: draws without a charge, or two draws for one charge."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy.events import KINDS, Laplace
from hedgerow.privacy.ledger import Accountant, Ledger
from hedgerow.privacy.noise import Noise

UNIVERSE = hr.Universe(a=hr.Integers(0, 3), b=hr.Flag(), c=hr.Integers(0, 2))
COUNTS = np.random.default_rng(0).multinomial(200_000, np.random.default_rng(1).dirichlet(np.ones(24))).reshape(4, 2, 3)
LOSS = hr.minimize(hr.losses.Logistic(target="b", features=["a", "c"]), over=hr.L2Ball(2.0))
SESSIONS = {
    "practical": lambda **budget: hr.open(
        HistogramSource(UNIVERSE, COUNTS), universe=UNIVERSE, reserve=0.6, workload=hr.marginals(1), seed=1, **budget
    ),
    "guarded": lambda **budget: hr.open(
        HistogramSource(UNIVERSE, COUNTS),
        universe=UNIVERSE,
        guard=0.3,
        reserve=0.3,
        workload=hr.marginals(1),
        seed=2,
        **budget,
    ),
    "theory": lambda **budget: hr.open(
        HistogramSource(UNIVERSE, COUNTS * 10**4), universe=UNIVERSE, profile="theory", queries=50, seed=3, **budget
    ),
}
BUDGETS = [hr.Budget(1.0, 1e-6), hr.Budget(4.0, 1e-6, "add-remove"), hr.Budget(2.0, 0.0)]


def questions(session: hr.Session) -> None:
    """Free and paid ones of every kind, until refused."""
    asks = [
        lambda: session.ask(hr.count(a=1, b=True)),
        lambda: session.ask(hr.count(a=2), within=0.9 * (session.ask(hr.count(a=2)).error or 1)),
        lambda: session.ask(hr.marginal("a", "c"), within=0.5 * np.max(session.ask(hr.marginal("a", "c")).error)),
        lambda: session.ask(hr.linear(("a", "b"), np.random.default_rng(2).random((4, 2))), within=0.005),
        lambda: session.ask(hr.mean("a", where=hr.count(b=True)), within=0.01),
        lambda: session.ask(LOSS),
        lambda: session.ask(LOSS, within=0.02),
        lambda: session.ask_all([hr.count(a=i, b=bool(j), c=k) for i in range(4) for j in range(2) for k in range(3)]),
    ]
    for ask in asks:
        with contextlib.suppress(BudgetExceeded, InvalidInput):
            ask()


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda b: f"{b.neighbours}, {b.currency}")
@pytest.mark.parametrize("kind", SESSIONS)
def test_no_receipt_of_a_session_has_a_draw_left_for_whoever_kept_it(kind, budget, monkeypatch) -> None:
    session = SESSIONS[kind](budget=budget)
    before, charge, kept = session.spent, Ledger.charge, []

    def watched(*given, **named):
        kept.append(charge(*given, **named))
        return kept[-1]

    monkeypatch.setattr(Ledger, "charge", watched)
    with session.ledger.asking("mine") as bill:
        questions(session)
    assert bill.charges
    assert bill.cost == pytest.approx(session.spent - before, rel=1e-9)
    assert {receipt.number for receipt in kept} == set(bill.charges)
    for receipt in kept:
        with pytest.raises(InvalidInput, match="Found one draw more"):
            receipt.redeem(*KINDS.values())


@pytest.mark.parametrize("kind", SESSIONS)
def test_a_session_pays_from_the_ledger_it_was_opened_with_whatever_it_is_given(kind) -> None:
    session = SESSIONS[kind](budget=BUDGETS[0])
    mine, before = session.ledger, len(session.ledger.entries())
    rich = Accountant(hr.Budget(1e6, 0.1))
    with contextlib.suppress(AttributeError):
        session.ledger = rich
    questions(session)
    assert rich.entries() == ()
    assert len(mine.entries()) > before
    assert mine.spent <= BUDGETS[0].total * (1 + 1e-12)


def test_a_charge_made_by_an_analyst_buys_noise_on_the_analysts_own_numbers_alone() -> None:
    session = SESSIONS["practical"](budget=BUDGETS[2])
    left = session.remaining
    receipt = session.ledger.charge(Laplace(1.0, 2 / left))
    assert session.remaining == pytest.approx(left / 2)
    Noise().add(0.0, receipt)
    with pytest.raises(InvalidInput, match="Found one draw more"):
        Noise().add(0.0, receipt)
    with pytest.raises(BudgetExceeded):
        session.ledger.charge(Laplace(1.0, 1 / left))


def test_values_released_by_a_session_cannot_be_overwritten() -> None:
    session = SESSIONS["practical"](budget=BUDGETS[0])
    entries = session.ledger.entries()
    stranger = Accountant(BUDGETS[0])
    receipt = stranger.charge(*entries[0].events)
    with pytest.raises(InvalidInput, match="in the ledger that was charged"):
        session.ledger.record(receipt, {"value": 0.0})
    assert session.ledger.entries() == entries
    with pytest.raises(TypeError):
        entries[0] = entries[1]
    with pytest.raises(AttributeError):
        entries[0].cost = 0.0
