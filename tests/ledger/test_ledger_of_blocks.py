"""Blocks on a durable ledger: they resume unchanged, are billed once, and each has its own account on one chain."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import tempfile
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from crashing import BUDGET, TABLE, UNIVERSE, Fate, Log, in_a_process
from fresh_ledgers import postgres_url, sqlite_url

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.errors import BudgetExceeded, InvalidInput, LedgerBroken
from hedgerow.ledger import read, snapshots
from hedgerow.privacy.ledger import Receipt

everywhere = pytest.mark.parametrize("fresh", [sqlite_url, postgres_url], ids=["SQLite", "PostgreSQL"])
pytestmark = pytest.mark.filterwarnings("ignore::hedgerow.errors.NotPrivateWarning")
COUNTS = TABLE.marginal(UNIVERSE.names)
BLOCKS = [HistogramSource(UNIVERSE, COUNTS // k) for k in (20, 15, 30)]
NAMES = ["first", "second", "third"]
SERIES = hr.count(a=(1, 3)).over_time(share=0.05, span=4)
BOUGHT, WITHIN = hr.count(a=2, c="x", d=1), 0.004
ASKED = [hr.count(a=(0, 2), b=True), hr.mean("a", where=hr.count(c="x")), hr.marginal("a", "c"), hr.quantile("d", 0.7)]


def opened(url: str, blocks: int = 3, **options) -> hr.Session:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = {"universe": UNIVERSE, "budget": BUDGET, "guard": 0.0, "reserve": 0.3, "workload": hr.marginals(1)}
        session = hr.open(BLOCKS[0], ledger=url, block=NAMES[0], **given | options)
        for i in range(1, blocks):
            session.append(BLOCKS[i], block=NAMES[i])
    return session


def said(answer: hr.Answer) -> list[object]:
    return [np.asarray(answer.value).tobytes().hex(), np.asarray(answer.error, dtype=float).tolist()]


def everything(session: hr.Session) -> list[object]:
    """About all, one and some blocks, free and paid, and over time."""
    views = [session, session.select_blocks("second"), session.select_blocks("first", "second")]
    found = [said(view.ask(query)) for view in views for query in ASKED]
    found += [said(view.ask(BOUGHT, within=WITHIN)) for view in views[:2]]
    return [*found, said(session.ask(SERIES)), *(said(views[2].ask(query)) for query in ASKED)]


def spent(session: hr.Session) -> list[float]:
    return [block.spent for block in session.blocks.values()]


@everywhere
def test_a_session_of_blocks_is_resumed_with_the_same_answers_for_free(fresh) -> None:
    url = fresh()
    first = opened(url)
    heard, paid = everything(first), spent(first)
    own = json.loads(first.report().json)["answers"]
    first.close()
    again = opened(url)
    assert spent(again) == paid
    known = [(a["question"], a["value"]) for a in json.loads(again.report(everybody=True).json)["answers"]]
    assert all(
        (answer["question"], answer["value"]) in known for answer in own if "over_time" not in answer["question"]
    )
    assert len(own) == len(ASKED) + 2
    assert everything(again) == heard
    assert spent(again) == paid
    ledger = read(url)
    head = ledger.verify()
    assert list(ledger.blocks) == NAMES[1:] and [ledger.spent, *(b.spent for b in ledger.blocks.values())] == paid
    assert head == ledger.head and len(ledger.blocks["second"].entries()) == len(
        again.blocks["second"].ledger.entries()
    )
    kinds = {json.loads(line)["kind"] for line in ledger.export()}
    assert {"account", "block", "charge", "charge:1", "release:2", "snapshot", "snapshot:1", "snapshot:2"} <= kinds
    ledger.close()
    again.close()


def test_answers_of_before_snapshots_and_without_them_are_the_same(monkeypatch) -> None:
    """The engine's state may be read from a snapshot or computed from all entries again, with its prior unchanged."""
    url = sqlite_url()
    first = opened(url)
    heard = everything(first)
    first.close()
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM hedgerow_snapshots")
    engine.dispose()
    again = opened(url)
    assert everything(again) == heard
    prior = [s.blocks["third"].engine.knowledge.learned._origin for s in (first, again)]
    assert all(np.array_equal(prior[0][names], prior[1][names]) for names in prior[0]) and prior[0]


@everywhere
def test_a_block_is_refused_that_is_not_what_the_ledger_knows(fresh) -> None:
    url = fresh()
    opened(url).close()
    session = opened(url, 1)
    with pytest.raises(
        InvalidInput, match="All blocks of the ledger must be appended before a question about all rows"
    ):
        session.ask(ASKED[0])
    for ask in (
        lambda: session.ask_all(ASKED),
        lambda: session.synthetic(10),
        lambda: session.price(BOUGHT, within=0.1),
    ):
        with pytest.raises(InvalidInput, match="All blocks of the ledger"):
            ask()
    assert session.select_blocks("first").ask(ASKED[0]).cost == 0
    other = HistogramSource(UNIVERSE, COUNTS // 7)
    refused = [
        ({"source": other, "block": "second"}, "resumed on the table that it was opened on"),
        ({"source": BLOCKS[1], "block": "third"}, "in the order of the ledger"),
        ({"source": BLOCKS[1], "block": "new"}, "in the order of the ledger"),
        ({"source": BLOCKS[1], "block": "second", "budget": hr.Budget(2.0, 1e-6)}, "budget must be that of the ledger"),
        (
            {"source": BLOCKS[1], "block": "second", "ledger": hr.Accountant(BUDGET)},
            "ledger must be that of this block",
        ),
    ]
    before = session.ledger.head.number
    for given, refusal in refused:
        with pytest.raises(InvalidInput, match=refusal):
            session.append(given.pop("source"), **given)
    assert session.ledger.head.number == before and list(session.blocks) == ["first"]
    session.append(BLOCKS[1], block="second").append(BLOCKS[2], block="third")
    with pytest.raises(InvalidInput, match="must not be those of another"):
        session.append(HistogramSource(UNIVERSE, COUNTS // 15), block="fourth")
    assert list(session.blocks["first"].ledger.blocks) == NAMES[1:]
    assert session.append(other, block="fourth").blocks["fourth"].spent > 0
    session.close()


def test_another_name_of_the_first_block_or_another_option_is_refused() -> None:
    url = sqlite_url()
    opened(url, 2).close()
    with pytest.raises(InvalidInput, match=r"resumed as it was opened\. Found another block"):
        hr.open(
            BLOCKS[0], universe=UNIVERSE, budget=BUDGET, guard=0.0, reserve=0.3, workload=hr.marginals(1), ledger=url, block="1"
        )  # fmt: skip


@everywhere
def test_processes_share_every_block(fresh) -> None:
    url = fresh()
    one, two = opened(url, seed=1), opened(url, seed=2)
    first = one.ask(BOUGHT, within=WITHIN)
    second = two.ask(BOUGHT, within=WITHIN)  # finds what the other bought, and learns it
    assert first.cost > 0 and second.cost == 0 and spent(two) == spent(one)
    third = two.ask(SERIES)
    fourth = one.ask(SERIES)
    assert third.cost > 0 and fourth.cost == 0 and np.array_equal(third.value, fourth.value)
    assert spent(two) == spent(one)
    two.append(HistogramSource(UNIVERSE, COUNTS // 9), block="fourth")
    one.blocks["first"].ledger.refresh()
    with pytest.raises(InvalidInput, match="Found that 'fourth' is not"):
        one.ask(ASKED[0])
    with pytest.raises(InvalidInput, match="in the order of the ledger"):
        one.append(HistogramSource(UNIVERSE, COUNTS // 8), block="fifth")
    assert one.append(HistogramSource(UNIVERSE, COUNTS // 9), block="fourth").ask(SERIES).value.shape == (4, 2)
    one.close()
    two.close()


def test_threads_that_ask_of_different_blocks_of_one_ledger_take_turns() -> None:
    session = opened(sqlite_url(), blocks=2)
    first, second = (block.ledger for block in session.blocks.values())
    done: list[str] = []

    def other() -> None:
        with second.asking():
            done.append("second")

    thread = threading.Thread(target=other)
    with first.asking():
        thread.start()
        thread.join(0.1)  # it has all the time that it needs, and waits
        done.append("first")
    thread.join()
    assert done == ["first", "second"]


def test_a_cap_holds_in_every_block() -> None:
    url = sqlite_url()
    owner = opened(url, 2)
    owner.blocks["first"].ledger.cap("ana", epsilon=0.1)
    ana = opened(url, 2, who="ana")
    capped = hr.Budget(0.1, 1e-6).total
    assert ana.blocks["second"].remaining == pytest.approx(capped)
    assert owner.blocks["second"].remaining > capped
    with pytest.raises(BudgetExceeded, match="Every block must be able to pay for the answer"):
        ana.ask(BOUGHT, within=0.0015)
    with pytest.raises(BudgetExceeded):
        ana.ask(hr.count(a=1).over_time(share=0.25))
    assert ana.ask(BOUGHT, within=0.02).error <= 0.02
    owner.append(BLOCKS[2], block="third")
    later = opened(url, 3, who="ana")
    assert later.blocks["third"].remaining == pytest.approx(capped)
    spending = later.blocks["third"].ledger.spending()
    assert set(spending["who"]) == {""} and spending["spent"].sum() == pytest.approx(later.blocks["third"].spent)


def test_a_change_to_any_line_of_any_block_is_found() -> None:
    url = sqlite_url()
    session = opened(url, 2)
    session.ask(SERIES)
    session.close()
    ledger = read(url)
    ledger.verify()
    lines = [json.loads(line) for line in ledger.export()]
    engine = sa.create_engine(url)
    for kind in ("block", "charge:1", "release:1", "snapshot:1"):
        number, body = next((line["number"], line["body"]) for line in lines if line["kind"] == kind)
        for change in (("body", body + " ", body), ("kind", "charge", kind), ("kind", f"{kind}0", kind)):
            with engine.begin() as connection:
                update = sa.text(f"UPDATE hedgerow_lines SET {change[0]} = :value WHERE number = :number")
                connection.execute(update, {"value": change[1], "number": number})
            with pytest.raises(LedgerBroken):
                ledger.verify()
            with engine.begin() as connection:
                connection.execute(update, {"value": change[2], "number": number})
    ledger.verify()
    engine.dispose()


# Killed while a block is appended, and while a series is drawn


AMPLE = {"reserve": 0.6}  # what a life paid for and did not live to hear is paid again


def grow(url: str, log: Log, at: int) -> None:
    """Open, append and ask; killed at step ``at``."""
    redeem = Receipt.redeem
    Fate(log, at).take_hold()

    def drawn(this: Receipt, *kinds: Any) -> Any:
        log.write("drawn", this._ledger._parts.chain.block, this.number, this.cost)
        return redeem(this, *kinds)

    Receipt.redeem = drawn  # type: ignore[method-assign]
    snapshots.EVERY = 3
    session = opened(url, **AMPLE)
    log.write("answered", everything(session), spent(session))
    session.close()


@everywhere
def test_killed_at_any_step_of_an_append_nothing_is_unbilled_and_nothing_is_asked_twice(fresh) -> None:
    """The draws of a killed process are in the ledger of its block. The next process continues and repeats earlier answers."""
    url, heard = fresh(), []
    with tempfile.TemporaryDirectory() as folder:
        log = Log(Path(folder) / "log")
        for at in itertools.chain(range(6, 400, 17), itertools.repeat(10**9)):
            child = in_a_process(lambda at=at: grow(url, log, at), log)
            _, status = os.waitpid(child, 0)
            told = log.read()
            assert not [e for e in told if e[0] == "failed"], told[-1][1]
            with contextlib.suppress(InvalidInput):  # before its first line
                ledger = read(url)
                ledger.verify()
                each = [ledger, *ledger.blocks.values()]
                assert all(b.spent <= BUDGET.total * (1 + 1e-9) for b in each)
                billed = {(i, e.number, e.cost) for i, b in enumerate(each) for e in b.entries()}
                assert {tuple(e[1:]) for e in told if e[0] == "drawn"} <= billed, "drawn, and not in its block's ledger"
                names = [*ledger.blocks]
                assert names == NAMES[1 : 1 + len(names)]  # each once, in order
                ledger.close()
            heard += [e[1] for e in told if e[0] == "answered"]
            if os.WIFEXITED(status):
                break
            assert os.WTERMSIG(status) == signal.SIGKILL
        kills = [e[1] for e in log.read() if e[0] == "killed"]
    assert len(kills) > 4 and len(set(kills)) > 2 and heard
    assert all(each == heard[0] for each in heard)
    again = opened(url, **AMPLE)
    assert everything(again) == heard[0]
    again.close()
