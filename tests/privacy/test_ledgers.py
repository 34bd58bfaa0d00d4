"""The contract of every ledger: it refuses or records before anything is drawn, and nothing is drawn without its receipt.

A new ledger is tested by one line in ``LEDGERS`` (and, if it pays for more than one call, in ``MANY``): how to open one on
a budget, with a slack. What is said of ``Accountant`` by name, below, is its arithmetic.
"""

from __future__ import annotations

import contextlib
import copy
import math
import os
import pickle
import signal

import numpy as np
import pytest
from concurrency import forked, together
from fresh_ledgers import OnPostgres, OnSqlite
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import errors, wire
from hedgerow.privacy.allowance import OneCallLedger
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import (
    AboveThreshold,
    ApproximateDP,
    Exponential,
    Gaussian,
    Laplace,
    PoissonSample,
    Repeated,
)
from hedgerow.privacy.ledger import Accountant, Entry, Ledger, Receipt
from hedgerow.privacy.noise import Noise

MANY = {"Accountant": Accountant, "SQLite": OnSqlite, "PostgreSQL": OnPostgres}
LEDGERS = {**MANY, "OneCall": OneCallLedger}

every = pytest.mark.parametrize("opened", LEDGERS.values(), ids=list(LEDGERS))
lasting = pytest.mark.parametrize("opened", MANY.values(), ids=list(MANY))
in_memory = pytest.mark.parametrize("opened", [Accountant], ids=["Accountant"])
on_disk = pytest.mark.parametrize("opened", [OnSqlite, OnPostgres], ids=["SQLite", "PostgreSQL"])
PURE, APPROXIMATE = Budget(1.0, 0.0), Budget(1.0, 1e-6)
FIT = 1 + 1e-12


def laplace(cost: float) -> Laplace:
    return Laplace(1.0, 1.0 / cost)


def state(ledger: Ledger) -> tuple[object, ...]:
    return ledger.spent, ledger.remaining, ledger.slack, ledger.events, ledger.entries(), ledger.spent_epsilon


def texts(entries) -> list[str]:
    return [wire.dumps(entry) for entry in entries]


# Charges


@every
def test_a_charge_is_one_entry_with_all_its_events_what_they_cost_why_and_who_asked(opened) -> None:
    ledger = opened(PURE)
    events = (laplace(0.25), Exponential(1.0, 0.5))
    with ledger.asking("how many"):
        receipt = ledger.charge(*events, why="a test")
    (entry,) = ledger.entries()
    assert (entry.number, entry.events, entry.cost, entry.why, entry.asked) == (
        0,
        events,
        receipt.cost,
        "a test",
        "how many",
    )
    assert (entry.about, entry.released, entry.private, entry.is_complete) == ({}, (), True, False)
    assert entry.event == events[0]
    assert (receipt.number, receipt.events) == (0, events)
    assert receipt.cost == pytest.approx(0.75) == ledger.spent
    assert ledger.events == events


@every
def test_events_charged_together_pass_together_or_not_at_all(opened) -> None:
    ledger = opened(PURE)
    before = state(ledger)
    assert not ledger.affords(laplace(0.6), laplace(0.6))
    with pytest.raises(errors.BudgetExceeded):
        ledger.charge(laplace(0.6), laplace(0.6))  # each of them alone would pass
    assert state(ledger) == before
    assert ledger.affords(laplace(0.6), laplace(0.4))
    ledger.charge(laplace(0.6), laplace(0.4))
    assert ledger.spent == pytest.approx(1.0)


class Free:
    epsilon = rho = delta = 0.0


class Cheap(Laplace):  # type: ignore[misc]
    @property
    def epsilon(self) -> float:
        return 1e-9

    @property
    def rho(self) -> float:
        return 1e-9


STRANGERS = [Free(), Cheap(1.0, 1e-3), None, 0.1, "Laplace", Laplace]
UNPAYABLE = {
    "too dear": (APPROXIMATE, [Gaussian(1.0, 1.0)]),
    "too dear in all": (APPROXIMATE, [Gaussian(1.0, 10.0), Gaussian(1.0, 4.6)]),
    "Gaussian without a delta": (PURE, [Gaussian(1.0, 1e6)]),
    "Gaussian of a loss that float64 does not see": (PURE, [Gaussian(1.0, 2.0**39)]),
    "a delta without a delta": (PURE, [ApproximateDP(0.1, 1e-9)]),
    "more delta than there is": (APPROXIMATE, [ApproximateDP(1e-3, 1e-5)]),
    "a sample by itself": (APPROXIMATE, [PoissonSample(1)]),
    "a sample by itself, for a large budget": (Budget(1e6, 0.5), [PoissonSample(1)]),
    "nothing": (PURE, []),
    **{f"a stranger, {type(stranger).__name__}": (PURE, [laplace(0.1), stranger]) for stranger in STRANGERS},
}


@every
@pytest.mark.parametrize("refused", UNPAYABLE)
def test_a_refusal_spends_nothing_keeps_no_entry_and_gives_no_receipt(opened, refused) -> None:
    budget, events = UNPAYABLE[refused]
    ledger = opened(budget)
    before = state(ledger)
    with ledger.asking() as bill, pytest.raises((errors.BudgetExceeded, errors.InvalidInput)):
        ledger.charge(*events)
    assert state(ledger) == before
    assert bill.charges == {}
    ledger.charge(laplace(1e-3))  # it goes on


@every
@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda s: type(s).__name__)
def test_objects_other_than_events_are_neither_priced_nor_charged(opened, stranger) -> None:
    ledger = opened(PURE)
    for ask in (ledger.budget.cost, ledger.affords, ledger.charge):
        with pytest.raises(errors.InvalidInput, match="event must be one of"):
            ask(stranger)


@every
def test_affordable_events_can_be_charged_and_others_cannot(opened) -> None:
    for budget in (PURE, APPROXIMATE, Budget(3.0, 1e-3, "add-remove")):
        for size in np.geomspace(0.01, 10, 40 if opened is Accountant else 6):
            event = Laplace(1.0, 1 / size)
            ledger = opened(budget)
            passed = ledger.affords(event)
            assert ledger.spent == 0
            with contextlib.suppress(errors.BudgetExceeded):
                ledger.charge(event)
            assert (ledger.entries() != ()) == passed


class Generous(Budget):  # type: ignore[misc]
    def cost(self, event) -> float:
        return 1e-9


@every
@pytest.mark.parametrize("budget", [Generous(1, 0), 1.0, (1.0, 0.0), None])
def test_only_a_budget_that_prices_as_it_should_opens_an_account(opened, budget) -> None:
    with pytest.raises(errors.InvalidInput, match="budget must be a Budget"):
        opened(budget)


@every
def test_a_ledger_keeps_the_budget_it_was_opened_with(opened) -> None:
    ledger = opened(PURE)
    with pytest.raises(AttributeError):
        ledger.budget = Budget(100, 0)
    assert ledger.budget == PURE


# Costs as a stranger would choose them, looking at all that is public
COSTS = st.one_of(
    st.floats(1e-12, 3.0),
    st.sampled_from(["all that is left", "half of it", "a hair more", "all of it, twice", "as the last"]),
)


def adaptive(ledger: Ledger, wanted: float | str, last: float) -> list[float]:
    left = max(ledger.remaining, 1e-30)
    match wanted:
        case "all that is left":
            return [left]
        case "half of it":
            return [left / 2]
        case "a hair more":
            return [left * (1 + 1e-9)]
        case "all of it, twice":
            return [left, left]
        case "as the last":
            return [last]
    return [float(wanted)]


@in_memory
@settings(max_examples=150, deadline=None)
@given(wanted=st.lists(COSTS, max_size=40), pure=st.booleans())
def test_no_adaptive_sequence_overspends(opened, wanted, pure) -> None:
    budget = PURE if pure else APPROXIMATE
    ledger, last, receipts = opened(budget), 0.01, []
    for each in wanted:
        costs = adaptive(ledger, each, last)
        events = [laplace(c) if pure else Gaussian(1.0, math.sqrt(0.5 / c), 2.0**-20) for c in costs if c > 1e-11]
        if not events:
            continue
        before = state(ledger)
        try:
            receipts.append(ledger.charge(*events))
            last = costs[-1]
        except errors.BudgetExceeded:
            assert state(ledger) == before
    costs = [budget.cost(event) for receipt in receipts for event in receipt.events]
    assert math.fsum(costs) <= budget.total * FIT * (1 + 1e-15)
    assert ledger.spent == pytest.approx(math.fsum(costs), rel=1e-15)
    assert ledger.spent_epsilon <= budget.epsilon * FIT
    assert [entry.number for entry in ledger.entries()] == list(range(len(receipts)))
    assert [entry.events for entry in ledger.entries()] == [receipt.events for receipt in receipts]
    assert ledger.events == tuple(event for receipt in receipts for event in receipt.events)


@in_memory
@settings(max_examples=60, deadline=None)
@given(parts=st.lists(st.tuples(st.floats(1e-4, 0.1), st.floats(1e-9, 5e-7)), max_size=20), slack=st.floats(1e-8, 9e-7))
def test_no_adaptive_sequence_overspends_delta(opened, parts, slack) -> None:
    ledger = opened(APPROXIMATE, slack)
    for epsilon, delta in parts:
        before = state(ledger)
        try:
            ledger.charge(ApproximateDP(epsilon, delta))
        except errors.BudgetExceeded:
            assert state(ledger) == before
    assert math.fsum(event.delta for event in ledger.events) <= slack * FIT
    assert math.fsum(event.rho for event in ledger.events) <= APPROXIMATE.rho(slack) * FIT
    assert ledger.slack == pytest.approx(slack - math.fsum(event.delta for event in ledger.events), abs=1e-20)
    assert ledger.spent_epsilon <= APPROXIMATE.epsilon * FIT


@on_disk
@settings(max_examples=6, deadline=None)
@given(wanted=st.lists(COSTS, max_size=12), pure=st.booleans())
def test_no_adaptive_sequence_overspends_on_a_disk(opened, wanted, pure) -> None:
    test_no_adaptive_sequence_overspends.hypothesis.inner_test(opened, wanted, pure)


@on_disk
@settings(max_examples=4, deadline=None)
@given(parts=st.lists(st.tuples(st.floats(1e-4, 0.1), st.floats(1e-9, 5e-7)), max_size=8), slack=st.floats(1e-8, 9e-7))
def test_no_adaptive_sequence_overspends_delta_on_a_disk(opened, parts, slack) -> None:
    test_no_adaptive_sequence_overspends_delta.hypothesis.inner_test(opened, parts, slack)


# One call


@pytest.mark.parametrize("again", [Laplace(1.0, 1e9), Gaussian(1.0, 1e9), ApproximateDP(1e-9, 1e-12)])
def test_one_call_is_paid_for_once_however_little_it_and_the_next_cost(again) -> None:
    ledger = OneCallLedger(APPROXIMATE)
    ledger.charge(Laplace(1.0, 1e9))
    assert ledger.remaining == 0
    assert not ledger.affords(again)
    before = state(ledger)
    with pytest.raises(errors.BudgetExceeded, match="must be charged once"):
        ledger.charge(again)
    assert state(ledger) == before


def test_the_cost_of_one_call_is_its_epsilon_also_where_it_is_counted_in_rho() -> None:
    ledger = OneCallLedger(APPROXIMATE)
    receipt = ledger.charge(Laplace(1.0, 5.0))
    assert receipt.cost == ledger.spent == ledger.spent_epsilon == pytest.approx(0.2)
    assert repr(ledger) == ("OneCallLedger(Budget(epsilon=1.0, delta=1e-06, neighbours='replace'), spent=0.2 epsilon)")


# Receipts


def test_a_receipt_is_made_by_a_ledger_alone() -> None:
    for maker in (object(), None, True, Accountant(PURE), PURE):
        with pytest.raises(errors.InvalidInput, match="A receipt must come from a ledger"):
            Receipt(maker, Accountant(PURE), Entry(0, (laplace(0.1),), 0.1))
    blank = object.__new__(Receipt)
    with pytest.raises((errors.InvalidInput, AttributeError)):
        Noise().add(1.0, blank)


@every
def test_a_receipt_cannot_be_made_over_copied_pickled_or_taken_along(opened) -> None:
    receipt = opened(PURE).charge(laplace(0.5))
    assert copy.copy(receipt) is copy.deepcopy(receipt) is receipt
    with pytest.raises(errors.InvalidInput, match="must stay in its process"):
        pickle.dumps(receipt)
    with pytest.raises(errors.InvalidInput, match="must come from a ledger"):
        receipt.__init__(object(), Accountant(PURE), Entry(0, (laplace(0.5),), 0.1))
    assert "must be used in the process that made it" in forked(lambda: receipt.redeem(Laplace))
    assert receipt.redeem(Laplace) == laplace(0.5)


@every
def test_a_receipt_tells_what_was_paid_for_and_no_more(opened) -> None:
    assert repr(opened(PURE).charge(laplace(0.25), Exponential(1.0, 0.25))) == (
        "Receipt(0: Laplace, Exponential, cost 0.5)"
    )


def test_an_event_of_a_receipt_goes_to_one_thread_only(eager) -> None:
    for _ in range(30):
        receipt, got = Accountant(PURE).charge(Repeated(laplace(1e-3), 50)), []

        def take(receipt=receipt, got=got) -> None:
            for _ in range(50):
                with contextlib.suppress(errors.InvalidInput, ValueError):  # over, or in another thread's hands
                    got.append(receipt.redeem(Laplace))

        together(*[take] * 4)
        assert len(got) <= 50


# What came out


@every
def test_a_release_is_recorded_once_and_only_for_its_own_receipt(opened) -> None:
    ledger, other = opened(PURE), opened(PURE)
    events = (laplace(0.25), laplace(0.25))
    mine, theirs = ledger.charge(*events), other.charge(*events)
    with pytest.raises(errors.InvalidInput, match="must be recorded once, in the ledger that was charged"):
        ledger.record(theirs, 1.0)
    assert ledger.entries()[0].released == ()
    ledger.record(mine, 2.0)
    assert not ledger.entries()[0].is_complete
    ledger.record(mine, 3.0)
    assert ledger.entries()[0].is_complete
    with pytest.raises(errors.InvalidInput, match="must be recorded once"):
        ledger.record(mine, 4.0)
    assert ledger.entries()[0].released == (2.0, 3.0)


@every
def test_every_draw_is_recorded_as_it_was_released(opened) -> None:
    ledger = opened(PURE)
    receipt = ledger.charge(laplace(0.25), Exponential(1.0, 0.25), AboveThreshold(1.0, 0.1, 0.1))
    noise = Noise()
    table = noise.add(np.arange(3), receipt)
    chosen = noise.choose(np.arange(4.0), receipt)
    round_ = noise.open_round(receipt, 0, 2.0**-20)
    assert len(ledger.entries()[0].released) == 2  # a round says nothing until it is over
    assert round_.excess(2**60) is not None
    kept = ledger.entries()[0].released
    assert np.array_equal(kept[0], table) and kept[1:] == (chosen, "above")
    table += 1  # what was written down stays
    assert np.array_equal(ledger.entries()[0].released[0], table - 1)
    with pytest.raises(ValueError, match="read-only"):
        kept[0][0] = 0.0


@every
def test_values_that_are_not_kept_are_drawn_and_not_recorded(opened) -> None:
    ledger = opened(PURE)
    receipt = ledger.charge(Repeated(laplace(0.1), 3), keep=False)
    for _ in range(3):
        Noise().add(1.0, receipt)
    (entry,) = ledger.entries()
    assert entry.released == () and entry.is_complete
    ledger.record(receipt, "what was made of them")
    with pytest.raises(errors.InvalidInput, match="must be recorded once"):
        ledger.record(receipt, "again")
    assert ledger.entries()[0].released == ("what was made of them",)


@lasting
def test_a_resumed_ledger_has_its_spending_and_returns_earlier_releases(opened) -> None:
    first, noise = opened(PURE), Noise()
    values = [noise.add(np.arange(4), first.charge(laplace(cost))) for cost in (0.1, 0.2, 0.3)]
    again = opened(PURE, earlier=first.entries())
    assert again.spent == first.spent and texts(again.entries()) == texts(first.entries())
    for cost, value in zip((0.1, 0.2), values, strict=False):
        assert np.array_equal(noise.add(np.zeros(4), again.charge(laplace(cost))), value)
    assert again.spent == first.spent
    assert texts(again.end_replay()) == texts(first.entries()[2:])
    noise.add(np.zeros(4), again.charge(laplace(0.3)))  # after that a charge is a new one
    assert again.spent == pytest.approx(0.9) and len(again.entries()) == 4
    with pytest.raises(errors.BudgetExceeded):
        again.charge(laplace(0.2))


@lasting
def test_an_opening_reuses_all_charges_of_an_unfinished_opening_and_none_of_a_finished_one(opened) -> None:
    """Another table may be opened second: draws about the first say nothing of it, and must not be free."""
    ledger, noise = opened(PURE), Noise()
    for number in range(3):
        ledger.begin_replay()
        noise.add(1e6 * number, ledger.charge(laplace(0.1)))  # and then it was interrupted
        ledger.begin_replay()
        again = noise.add(0.0, ledger.charge(laplace(0.1)))
        assert again == ledger.entries()[number].released[0] and abs(again - 1e6 * number) < 1e5
        assert ledger.end_replay() == () and ledger.spent == pytest.approx(0.1 * (number + 1))
    assert len(ledger.entries()) == 3


@lasting
def test_a_ledger_resumed_with_other_options_is_refused_and_lost_draws_are_paid_again(opened) -> None:
    first, noise = opened(PURE), Noise()
    noise.add(1.0, first.charge(laplace(0.1)))
    first.charge(laplace(0.2))  # and then the process ended
    with pytest.raises(errors.InvalidInput, match="resumed by a session that is opened as before"):
        opened(PURE, earlier=first.entries()).charge(laplace(0.3))
    again = opened(PURE, earlier=first.entries())
    noise.add(1.0, again.charge(laplace(0.1)))
    receipt = again.charge(laplace(0.2))
    assert receipt.number == 2 and again.spent == pytest.approx(0.5)
    noise.add(1.0, receipt)
    with pytest.raises(errors.InvalidInput, match="one draw more"):
        noise.add(1.0, receipt)


@lasting
def test_an_entry_of_which_only_a_part_came_out_is_lost_and_paid_again(opened) -> None:
    first, noise, pair = opened(PURE), Noise(), (laplace(0.1), laplace(0.2))
    noise.add(1.0, first.charge(*pair))  # and before the second draw the process ended
    again = opened(PURE, earlier=first.entries())
    receipt = again.charge(*pair)
    assert receipt.number == 1 and again.spent == pytest.approx(0.6)


@lasting
def test_a_resumed_receipt_returns_each_of_its_releases_in_turn(opened) -> None:
    first, noise, pair = opened(PURE), Noise(), (laplace(0.1), laplace(0.2))
    receipt = first.charge(*pair)
    values = [noise.add(np.arange(9) * 1e6, receipt) for _ in pair]
    again = opened(PURE, earlier=first.entries()).charge(*pair)
    assert [noise.add(np.zeros(9), again).tolist() for _ in pair] == [value.tolist() for value in values]


@lasting
def test_entries_beyond_the_budget_leave_nothing_to_spend(opened) -> None:
    rich = opened(Budget(5.0, 0.0))
    rich.charge(laplace(2.0))
    taken = opened(PURE, earlier=rich.entries())
    assert taken.remaining == 0.0
    assert not taken.affords(laplace(1e-6))


@in_memory
def test_an_earlier_entry_that_has_no_price_in_the_budget_is_refused(opened) -> None:
    """No sum of pure ε can hold a Gaussian: what it cost is unbounded, whatever the entry says."""
    with pytest.raises(errors.InvalidInput, match="An earlier entry must have a cost in epsilon"):
        opened(PURE, earlier=[Entry(0, (Gaussian(1.0, 5.0),), 0.02)])


@lasting
def test_a_receipt_of_a_longer_ledger_is_refused_by_a_shorter_one(opened) -> None:
    ledger, other = opened(PURE), opened(PURE)
    ledger.charge(laplace(0.1))
    other.charge(laplace(0.1))
    with pytest.raises(errors.InvalidInput, match="must be recorded once, in the ledger that was charged"):
        ledger.record(other.charge(laplace(0.1)), 1.0)


# Questions and their bills


@lasting
def test_a_bill_has_exactly_the_receipts_of_its_question_and_their_sum(opened) -> None:
    ledger = opened(PURE)
    before = ledger.charge(laplace(0.1))
    with ledger.asking("first") as bill:
        assert (bill.charges, bill.cost) == ({}, 0)
        inside = [ledger.charge(laplace(0.1)), ledger.charge(laplace(0.05), laplace(0.05))]
        with pytest.raises(errors.BudgetExceeded):
            ledger.charge(laplace(5.0))
    after = ledger.charge(laplace(0.1))
    assert bill.charges == {receipt.number: receipt.cost for receipt in inside}
    assert bill.cost == math.fsum(receipt.cost for receipt in inside) == pytest.approx(0.2)
    assert {before.number, after.number}.isdisjoint(bill.charges)
    assert [entry.asked for entry in ledger.entries()] == [None, "first", "first", None]


@lasting
def test_a_question_within_a_question_is_on_both_bills_and_names_the_inner(opened) -> None:
    ledger = opened(PURE)
    with ledger.asking("outer") as outer:
        ledger.charge(laplace(0.1))
        with ledger.asking("inner") as inner:
            asked = ledger.charge(laplace(0.1))
        ledger.charge(laplace(0.1))
    assert inner.charges == {asked.number: asked.cost}
    assert outer.cost == pytest.approx(0.3) == ledger.spent
    assert [entry.asked for entry in ledger.entries()] == ["outer", "inner", "outer"]


@lasting
def test_a_question_that_fails_is_over_and_what_it_paid_is_spent(opened) -> None:
    ledger = opened(PURE)
    with pytest.raises(KeyboardInterrupt), ledger.asking("broken") as bill:
        ledger.charge(laplace(0.5))
        raise KeyboardInterrupt
    ledger.charge(laplace(0.25))
    assert bill.cost == 0.5
    assert [entry.asked for entry in ledger.entries()] == ["broken", None]
    assert ledger.spent == 0.75


# Processes, threads, handlers


@every
def test_threads_together_spend_what_there_is_and_no_more(opened, eager) -> None:
    ledger, passed = opened(PURE), []

    def spend() -> None:
        with contextlib.suppress(errors.BudgetExceeded):
            while True:
                passed.append(ledger.charge(laplace(1 / 256)))

    together(*[spend] * 4)
    assert len(passed) == len(ledger.entries()) == (256 if opened in MANY.values() else 1)
    assert sorted(receipt.number for receipt in passed) == list(range(len(passed)))
    assert ledger.spent == pytest.approx(len(passed) / 256, rel=1e-12)


@lasting
def test_a_bill_has_nothing_of_what_other_threads_ask(opened, eager) -> None:
    ledger, bills = opened(PURE), {}

    def ask(name: str, cost: float) -> None:
        for _ in range(20):
            with ledger.asking(name) as bill:
                ledger.charge(laplace(cost))
                ledger.charge(laplace(cost))
            bills.setdefault(name, []).append(bill.cost)

    costs = {"a": 1e-3, "b": 2e-3, "c": 3e-3}
    together(*[lambda name=name: ask(name, costs[name]) for name in costs])
    assert {name: set(found) for name, found in bills.items()} == {
        name: {math.fsum([PURE.cost(laplace(cost))] * 2)} for name, cost in costs.items()
    }
    assert all(entry.cost == PURE.cost(laplace(costs[entry.asked])) for entry in ledger.entries())


@every
def test_a_copy_of_a_ledger_is_the_ledger_and_there_is_no_pickle(opened) -> None:
    ledger = opened(PURE)
    assert copy.copy(ledger) is copy.deepcopy(ledger) is ledger
    with pytest.raises(errors.InvalidInput, match="must stay in its process"):
        pickle.dumps(ledger)


@every
def test_a_fork_may_read_a_ledger_but_neither_charge_ask_nor_record(opened) -> None:
    ledger, paid = opened(PURE), opened(PURE)
    receipt = paid.charge(laplace(0.5))

    def asked() -> None:
        with ledger.asking("a fork"):
            pass

    for use in (lambda: ledger.charge(laplace(0.5)), asked, lambda: paid.record(receipt, {})):
        assert "must be used in the process that made it" in forked(use)
    assert forked(lambda: state(paid)[:3]) == f"returned {state(paid)[:3]!r}"
    ledger.charge(laplace(0.5))


@every
def test_a_charge_within_a_charge_is_refused_as_that_of_a_signals_handler_is(opened, monkeypatch) -> None:
    """The handler comes at the worst moment, when the outer charge has read the sum and not yet written it."""
    refused, ledger = [], opened(PURE)
    admit = ledger._parts.filter.admit

    def interrupted(planned, costs):
        found = admit(planned, costs)
        if not refused:
            os.kill(os.getpid(), signal.SIGUSR1)
        return found

    monkeypatch.setattr(ledger._parts.filter, "admit", interrupted)

    def handler(*_) -> None:
        try:
            ledger.charge(laplace(1.0))
        except errors.InvalidInput as refusal:
            refused.append(str(refusal))

    usual = signal.signal(signal.SIGUSR1, handler)
    try:
        ledger.charge(laplace(1.0))
    finally:
        signal.signal(signal.SIGUSR1, usual)
    assert refused == ["A charge must end before the next. Found a charge within another. Ask after it has ended."]
    assert ledger.spent == 1.0
    assert len(ledger.entries()) == 1


@every
def test_an_interrupt_while_an_entry_is_kept_counts_too_much_and_gives_no_receipt(opened, monkeypatch) -> None:
    def full(entry):
        raise OSError("disk full")

    ledger = opened(PURE)
    monkeypatch.setattr(ledger._parts.log, "append", full)
    with ledger.asking() as bill, pytest.raises(OSError, match="disk full"):
        ledger.charge(laplace(0.5))
    assert bill.charges == {}
    assert ledger.spent == 0.5


@every
def test_every_entry_is_kept_before_its_receipt_is_given_and_again_when_it_is_recorded(opened, monkeypatch) -> None:
    kept, ledger = [], opened(PURE)
    for name in ("append", "update"):
        usual = getattr(ledger._parts.log, name)
        monkeypatch.setattr(ledger._parts.log, name, lambda entry, usual=usual: (usual(entry), kept.append(entry)))
    receipt = ledger.charge(laplace(0.5), why="first")
    assert kept == list(ledger.entries())
    ledger.record(receipt, 1.0)
    assert [entry.released for entry in kept] == [(), (1.0,)]
    assert kept[-1:] == list(ledger.entries())


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


def test_the_tolerance_of_a_fit_is_given_once_and_not_for_every_charge() -> None:
    accountant = Accountant(Budget(1, 0))
    accountant.charge(Laplace(1, 1))
    tiny = Laplace(0.1, 1e12)  # a tenth of the tolerance
    with pytest.raises(errors.BudgetExceeded):
        for _ in range(100):
            accountant.charge(tiny)
    assert 1 < accountant.spent <= 1 + 1e-12


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


@pytest.mark.parametrize(("ε", "δ"), [(1.0, 1e-9), (1.0, 1e-6), (0.1, 1e-12), (1e-3, 1e-6), (10.0, 1e-5)])
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
