"""The contract of every log: entries are kept in order, added and completed and never taken back, as durably as the log promises.

A new log is tested by one line in ``LOGS``: a ledger that has one.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from fresh_ledgers import OnPostgres, OnSqlite

from hedgerow import errors, wire
from hedgerow.ledger.durable import Durable
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import AboveThreshold, Laplace
from hedgerow.privacy.ledger import Accountant, Ledger
from hedgerow.privacy.log import Entry

PURE = Budget(1.0, 0.0)
LOGS = {"memory": Accountant, "SQLite": OnSqlite, "PostgreSQL": OnPostgres}
every = pytest.mark.parametrize("opened", LOGS.values(), ids=list(LOGS))
on_disk = pytest.mark.parametrize("opened", [OnSqlite, OnPostgres], ids=["SQLite", "PostgreSQL"])


def entry(number: int, *released: object, cost: float = 0.1) -> Entry:
    return Entry(
        number, (Laplace(1.0, 1 / cost), Laplace(1.0, 1 / cost)), 2 * cost, why=f"n{number}", released=released
    )


def kept(ledger: Ledger) -> list[str]:
    """Return the entries that the next reader of the log finds."""
    if isinstance(ledger, Durable):
        return [wire.dumps(e) for e in Durable(ledger._store, ledger.budget).entries()]
    return [wire.dumps(e) for e in ledger._parts.log.entries]


def texts(*entries: Entry) -> list[str]:
    return [wire.dumps(e) for e in entries]


@every
def test_entries_are_in_the_order_in_which_they_were_appended_and_kept_at_once(opened) -> None:
    ledger = opened(PURE)
    log = ledger._parts.log
    assert len(log.entries) == 0
    for number in range(4):
        log.require_ready()
        log.append(entry(number, cost=0.01 * (number + 1)))
        assert [e.number for e in log.entries] == list(range(number + 1))
        assert kept(ledger) == texts(*log.entries)


@every
def test_an_update_completes_one_entry_and_leaves_the_others(opened) -> None:
    ledger = opened(PURE)
    log = ledger._parts.log
    for number in range(3):
        log.append(entry(number))
    half = replace(log.entries[1], released=(1.5,))
    log.update(half)
    assert not log.entries[1].is_complete and kept(ledger) == texts(entry(0), entry(1, 1.5), entry(2))
    log.update(replace(half, released=(1.5, np.arange(3.0)), private=False))
    assert log.entries[1].is_complete
    assert kept(ledger) == texts(entry(0), replace(entry(1, 1.5, np.arange(3.0)), private=False), entry(2))


@every
def test_restored_entries_are_held_and_not_written_again(opened) -> None:
    ledger = opened(PURE)
    log, before = ledger._parts.log, kept(ledger)
    log.restore(entry(0))
    log.restore(entry(0, 2.5))
    assert texts(*log.entries) == texts(entry(0, 2.5))
    if isinstance(ledger, Durable):
        assert kept(ledger) == before == []


@every
def test_a_lost_value_leaves_its_entry_incomplete_and_the_next_in_its_place(opened) -> None:
    ledger = opened(PURE)
    log = ledger._parts.log
    log.append(Entry(0, (AboveThreshold(1.0, 0.1, 0.1),), 0.2))
    log.append(entry(1))
    log.update(replace(log.entries[1], released=(1.0,)))
    assert [e.is_complete for e in log.entries] == [False, False]
    assert kept(ledger) == texts(*log.entries)


@on_disk
def test_a_charge_is_refused_that_follows_one_of_another_process_that_was_not_seen(opened) -> None:
    one = opened(PURE)
    two = Durable(one._store, PURE)
    one._parts.log.append(entry(0))
    with pytest.raises(errors.LedgerUnavailable, match="the turn was lost"):
        two._parts.log.append(entry(0, cost=0.2))
    assert kept(one) == texts(entry(0))
    with pytest.raises(errors.LedgerUnavailable, match="must be opened again"):
        two._parts.log.catch_up()


@on_disk
def test_lines_of_another_process_are_read_counted_and_kept_for_the_engine(opened) -> None:
    one = opened(PURE)
    two = Durable(one._store, PURE)
    log = two._parts.log
    one._parts.log.append(entry(0))
    assert not log.has_news and two.spent == 0
    log.catch_up()
    assert log.has_news and two.spent == pytest.approx(0.2) and texts(*log.entries) == texts(entry(0))
    one._parts.log.update(entry(0, 1.0))
    log.catch_up()
    assert texts(*log.take_news()) == texts(entry(0, 1.0))
    assert not log.has_news and two.spent == pytest.approx(0.2)
    log.append(entry(1))  # having seen all, it may charge
    assert kept(one) == texts(entry(0, 1.0), entry(1))


@on_disk
def test_after_a_write_that_failed_nothing_more_is_written(opened, monkeypatch) -> None:
    ledger = opened(PURE)
    log = ledger._parts.log
    with monkeypatch.context() as patched:
        patched.setattr(
            type(ledger._store), "append", lambda *given, **options: (_ for _ in ()).throw(OSError("disk full"))
        )
        with pytest.raises(OSError, match="disk full"):
            log.append(entry(0))
    assert ledger._parts.chain.is_broken and kept(ledger) == []
    for use in (log.catch_up, lambda: ledger.charge(Laplace(1.0, 10.0))):
        with pytest.raises(errors.LedgerUnavailable, match="must be opened again"):
            use()


@every
def test_a_log_goes_with_its_ledger_wherever_that_is_copied(opened) -> None:
    ledger = opened(PURE)
    copy.deepcopy(ledger)._parts.log.append(entry(0))
    assert len(ledger.entries()) == 1
