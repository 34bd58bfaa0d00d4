"""Replay, with every log: sums, the charges of a repeated opening, and the remaining entries."""

from __future__ import annotations

import pytest
from fresh_ledgers import OnPostgres, OnSqlite
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import errors
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import AboveThreshold, Gaussian, Laplace
from hedgerow.privacy.filter import Filter
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.log import Entry, MemoryLog
from hedgerow.privacy.replay import Replay

PURE = Budget(1.0, 0.0)


def stored(opened) -> object:
    return lambda earlier: opened(PURE, earlier=earlier)._parts.replay


REPLAYS = {
    "memory": lambda earlier: Replay(Filter(PURE), MemoryLog(), earlier),
    "SQLite": stored(OnSqlite),
    "PostgreSQL": stored(OnPostgres),
}
every = pytest.mark.parametrize("made", REPLAYS.values(), ids=list(REPLAYS))


def laplace(cost: float) -> Laplace:
    return Laplace(1.0, 1.0 / cost)


def entry(number: int, cost: float, *released: float, why: str = "", **about: object) -> Entry:
    return Entry(number, (laplace(cost),), cost, why=why, about=about, released=released)


EARLIER = [entry(0, 0.1, 1.0, why="one"), entry(1, 0.2, why="two"), entry(2, 0.2, 2.0, why="two"), entry(3, 0.3, 3.0)]


@settings(max_examples=50, deadline=None)
@given(costs=st.lists(st.floats(1e-6, 0.4), max_size=15))
def test_the_sums_are_those_of_a_ledger_that_was_charged_for_the_same(costs) -> None:
    ledger = Accountant(Budget(10.0, 0.0))
    for cost in costs:
        ledger.charge(laplace(cost))
    filter, log = Filter(ledger.budget), MemoryLog()
    replay = Replay(filter, log, ledger.entries())
    assert filter.standing == ledger.standing and tuple(log.entries) == ledger.entries()
    assert replay.end() == ledger.entries()


@every
def test_the_entries_are_counted_and_held(made) -> None:
    replay = made(EARLIER)
    assert replay._filter.spent == pytest.approx(0.8)
    assert [e.released for e in replay._log.entries] == [e.released for e in EARLIER]


@every
def test_charges_meet_the_entries_in_order_and_pass_over_those_that_were_lost(made) -> None:
    replay = made(EARLIER)
    assert replay.match((laplace(0.1),), "one", {}).number == 0
    assert replay.match((laplace(0.2),), "two", {}).number == 2  # the value of entry 1 was never recorded
    assert [e.number for e in replay.end()] == [3]
    assert replay.match((laplace(0.3),), "", {}) is None
    assert replay.end() == ()


@every
def test_when_all_that_is_left_was_lost_the_charge_is_new(made) -> None:
    replay = made([entry(0, 0.1)])
    assert replay.match((laplace(0.1),), "", {}) is None and replay.end() == ()
    round_ = Entry(0, (AboveThreshold(1.0, 0.1, 0.1),), 0.2, released=("above",))
    assert made([round_]).match(round_.events, "", {}) is None  # a round is over, and is not drawn again


@every
@pytest.mark.parametrize(
    ("event", "why", "about"),
    [(laplace(0.4), "one", {}), (laplace(0.1), "another", {}), (laplace(0.1), "one", {"table": "b"})],
    ids=["cost", "purpose", "table"],
)
def test_a_charge_other_than_the_next_entry_is_refused_and_the_next_opening_starts_over(
    made, event, why, about
) -> None:
    replay = made([entry(0, 0.1, 1.0, why="one", table="a"), entry(1, 0.1, 2.0, why="one", table="a")])
    assert replay.match((laplace(0.1),), "one", {"table": "a"}).number == 0
    with pytest.raises(errors.InvalidInput, match="opened as before"):
        replay.match((event,), why, about)
    assert replay.match((laplace(0.1),), "one", {"table": "a"}).number == 0


@every
def test_a_charge_that_was_refused_then_is_refused_again_and_the_next_entry_waits(made) -> None:
    replay = made([entry(0, 0.7, 1.0), entry(1, 0.1, 2.0)])
    assert replay.match((laplace(0.7),), "", {}).number == 0
    with pytest.raises(errors.BudgetExceeded, match="refused then too"):
        replay.match((laplace(0.5),), "", {})
    assert replay.match((laplace(0.1),), "", {}).number == 1


@every
def test_an_unfinished_opening_is_replayed_and_a_finished_one_is_not(made) -> None:
    replay = made(EARLIER[:1])
    for _ in range(2):  # interrupted, and begun again
        replay.begin()
        assert replay.match((laplace(0.1),), "one", {}).number == 0
    assert replay.end() == () and not replay.has_other_sessions
    replay.begin()
    assert replay.match((laplace(0.1),), "one", {}) is None
    assert replay.has_other_sessions  # whose answers may be about another table


def test_an_entry_without_a_price_in_the_budget_is_refused() -> None:
    with pytest.raises(errors.InvalidInput, match="An earlier entry must have a cost in epsilon"):
        Replay(Filter(PURE), MemoryLog(), [Entry(0, (Gaussian(1.0, 5.0),), 0.02)])
