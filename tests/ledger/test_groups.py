"""Questions that wait for the disk together: one wait, and everything else as if each had been asked alone."""

from __future__ import annotations

from typing import Any

import pytest
from crashing import BOUGHT, WITHIN, opened
from fresh_ledgers import postgres_url, sqlite_url

import hedgerow as hr
from hedgerow.errors import LedgerUnavailable
from hedgerow.ledger import read
from hedgerow.ledger.postgres import Postgres
from hedgerow.ledger.sqlite import Sqlite
from hedgerow.ledger.store import Store
from hedgerow.ledger.urls import store_at

everywhere = pytest.mark.parametrize("fresh", [sqlite_url, postgres_url], ids=["SQLite", "PostgreSQL"])
WHO = ("ana", "heart/ben", "heart/cem")


def buy(session: hr.Session, queries: list[hr.Query], who: tuple[str, ...] = WHO) -> list[Any]:
    """Ask on behalf of one person after the other; a refusal is an outcome."""
    outcomes: list[Any] = []
    for number, query in enumerate(queries):
        try:
            with session.on_behalf_of(who[number % len(who)]):
                outcomes.append(session.ask(query, within=WITHIN))
        except hr.BudgetExceeded as refused:
            outcomes.append(refused)
    return outcomes


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Writes to a ledger's database so far: True for one that waits for the disk."""
    found: list[bool] = []
    for kind in (Sqlite, Postgres):
        usual = kind._prepare_write

        def noted(self: Any, connection: Any, durable: bool, usual: Any = usual) -> None:
            found.append(durable)
            usual(self, connection, durable)

        monkeypatch.setattr(kind, "_prepare_write", noted)
    return found


@everywhere
def test_a_group_of_purchases_waits_for_the_disk_once_and_is_otherwise_like_one_after_the_other(fresh, waits) -> None:
    url, alone = fresh(), fresh()
    session, twin = opened(url, guard=0.0, seed=1), opened(alone, guard=0.0, seed=1)
    waits.clear()
    expected = buy(twin, BOUGHT)
    assert waits.count(True) >= 3 * len(BOUGHT)
    waits.clear()
    with session.ledger.committing_once():
        found = buy(session, BOUGHT)
        assert not any(waits)
    assert waits.count(True) == 1
    assert [(a.value, a.error, a.cost) for a in found] == [(a.value, a.error, a.cost) for a in expected]
    assert all(a.cost > 0 for a in found)
    for each in (session, twin):
        each.close()
    assert list(read(url).spending().who) == list(read(alone).spending().who)
    assert list(read(url).spending().spent) == list(read(alone).spending().spent)
    assert [e.events for e in read(url).entries()] == [e.events for e in read(alone).entries()]
    again = opened(url, guard=0.0, seed=2)
    assert [a.value for a in buy(again, BOUGHT)] == [a.value for a in found] and again.spent == session.spent
    again.close()


@everywhere
def test_in_a_group_everybody_has_their_own_cap_and_a_refusal_stops_nobody_else(fresh) -> None:
    session = opened(fresh(), guard=0.0)
    price = session.price(BOUGHT[0], within=WITHIN)
    assert price > 0
    session.ledger.cap("heart", 1e-9)
    with session.ledger.committing_once():
        found = buy(session, BOUGHT[:3])
    assert found[0].cost > 0
    assert all(isinstance(each, hr.BudgetExceeded) for each in found[1:])
    assert dict(session.ledger.spending()[["who", "spent"]].values)["ana"] == pytest.approx(found[0].cost)
    session.close()


def test_no_answer_of_a_group_is_in_the_database_before_all_of_it_is_on_the_disk() -> None:
    """Another process could read it there, give it, and outlive the power cut that loses its charge."""
    url = sqlite_url()
    session = opened(url, guard=0.0)
    session.ask(hr.count(a=2))  # free, and given: it is written before the first charge
    other = store_at(url)
    before = other.head().number
    with session.ledger.committing_once():
        buy(session, BOUGHT)
        kinds = [line.kind for line in other.lines(after=before)]
        assert kinds[0] == "answers" and "answers" not in kinds[1:] and kinds.count("charge") >= len(BOUGHT)
    assert [line.kind for line in other.lines(after=before)][-1] == "answers"
    other.close()
    session.close()


def test_a_group_whose_end_is_not_written_gives_nothing_and_charges_nothing_more(monkeypatch) -> None:
    url = sqlite_url()
    session = opened(url, guard=0.0)
    usual = Store.append

    def broken(self: Store, said: Any, *rest: Any, durable: bool = True, **named: Any) -> Any:
        if durable:
            raise LedgerUnavailable("no room")
        return usual(self, said, *rest, durable=durable, **named)

    found: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setattr(Store, "append", broken)
        with pytest.raises(LedgerUnavailable), session.ledger.committing_once():
            found += buy(session, BOUGHT[:2])
    assert found[0].cost > 0
    with pytest.raises(LedgerUnavailable):
        session.ask(BOUGHT[2], within=WITHIN)
    assert read(url).spent == pytest.approx(session.spent)
