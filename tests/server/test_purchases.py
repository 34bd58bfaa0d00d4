"""Purchases that wait together: each is as if it were alone, and all wait for the disk once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import serving

import hedgerow as hr
from hedgerow.errors import LedgerUnavailable
from hedgerow.ledger import read
from hedgerow.ledger.log import StoredLog
from hedgerow.ledger.sqlite import Sqlite
from hedgerow.server.answer_queue import Meter
from hedgerow.server.dataset import Dataset
from hedgerow.server.pool import REHEARSED, WorkerPool
from hedgerow.server.problems import Refusal
from hedgerow.session import Session

QUESTIONS = [hr.count(age=(20 + i, 70 - i), sex="FM"[i % 2], smoker=i % 3 == 0) for i in range(6)]
WITHIN = 0.01
MODEL = hr.minimize(hr.losses.Logistic(target="smoker", features=["age", "sex"]), over=hr.L2Ball(2.0))


def opened(folder: Path, **options: Any) -> Session:
    return hr.open(
        serving.people(), universe=serving.UNIVERSE, budget=serving.BUDGET, ledger=f"sqlite:///{folder}/ledger",
        reserve=0.4, **options,
    )  # fmt: skip


def buying(query: hr.Query, within: float = WITHIN) -> Callable[[Session], Any]:
    return lambda session: session.ask(query, within=within)


async def at_once(
    dataset: Dataset, wanted: list[tuple[str, Callable[[Session], Any], bool]]
) -> tuple[list[Any], list[float]]:
    """Let all purchases wait before the first is made. Return their outcomes and their charges."""
    busy, done = threading.Event(), threading.Event()

    def hold(_: Session) -> None:
        busy.set()
        assert done.wait(60)

    holding = asyncio.create_task(dataset.run("owner", hold))
    await asyncio.to_thread(busy.wait)
    meters = [Meter() for _ in wanted]
    waiting = [
        asyncio.create_task(dataset.sell(who, work, meter, is_long=is_long))
        for (who, work, is_long), meter in zip(wanted, meters, strict=True)
    ]
    await asyncio.sleep(0)
    done.set()
    await holding
    return await asyncio.gather(*waiting, return_exceptions=True), [meter.cost for meter in meters]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """An entry for each time that a ledger waited for the disk."""
    found: list[None] = []
    usual = Sqlite._prepare_write

    def noted(self: Sqlite, connection: Any, durable: bool) -> None:
        found.extend([None] * durable)
        usual(self, connection, durable)

    monkeypatch.setattr(Sqlite, "_prepare_write", noted)
    return found


def test_waiting_purchases_of_several_people_wait_for_the_disk_once_and_have_their_own_bills(
    tmp_path: Path, waits: list[None]
) -> None:
    session = opened(tmp_path)
    session.ledger.cap("heart/cem", 1e-6)
    dataset = Dataset("people", session, 100)
    people = ["ana", "heart/ben", "heart/cem", "ana", "heart/ben", "eve"]
    wanted = [(who, buying(query), False) for who, query in zip(people, QUESTIONS, strict=True)]
    wanted.append(("eve", buying(QUESTIONS[0], 1e-7), False))  # which nobody can pay for
    wanted.append(("eve", buying(QUESTIONS[0]), False))  # which ana has just bought
    waits.clear()
    outcomes, costs = asyncio.run(at_once(dataset, wanted))
    assert len(waits) == 1
    refused = [i for i, each in enumerate(outcomes) if isinstance(each, hr.BudgetExceeded)]
    assert refused == [2, 6] and not any(costs[i] for i in (2, 6, 7))
    assert (outcomes[7].value, outcomes[7].cost) == (outcomes[0].value, 0.0)
    bills = dict.fromkeys(people, 0.0)
    for i in (0, 1, 3, 4, 5):
        assert outcomes[i].cost == pytest.approx(costs[i]) != 0 and outcomes[i].error <= WITHIN * (1 + 1e-9)
        bills[people[i]] += outcomes[i].cost
    asyncio.run(dataset.close())
    ledger = read(f"sqlite:///{tmp_path}/ledger")
    spending = dict(ledger.spending()[["who", "spent"]].values)
    assert {who: spending.get(who, 0.0) for who in bills} == pytest.approx(bills)
    again = opened(tmp_path)
    assert [again.ask(QUESTIONS[i], within=WITHIN).value for i in (0, 1, 3, 4, 5)] == [
        outcomes[i].value for i in (0, 1, 3, 4, 5)
    ]
    again.close()


def test_short_purchases_go_before_long_ones_whose_people_take_turns(tmp_path: Path) -> None:
    dataset, order = Dataset("people", opened(tmp_path), 100), list[str]()

    def noted(name: str) -> Callable[[Session], Any]:
        return lambda _: order.append(name)

    wanted = [("eve", noted(f"long {i}"), True) for i in range(3)]
    wanted += [("ana", noted("long of ana"), True), ("ben", noted("short"), False), ("ana", noted("short"), False)]
    asyncio.run(at_once(dataset, wanted))
    assert order == ["short", "short", "long 0", "long of ana", "long 1", "long 2"]
    asyncio.run(dataset.close())


def test_purchases_that_cannot_be_written_together_are_given_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = Dataset("people", opened(tmp_path), 100)

    def broken(self: StoredLog) -> None:
        raise LedgerUnavailable("no room")

    monkeypatch.setattr(StoredLog, "end_group", broken)
    outcomes, costs = asyncio.run(at_once(dataset, [("ana", buying(q), False) for q in QUESTIONS[:3]]))
    assert all(isinstance(each, LedgerUnavailable) for each in outcomes) and all(costs)
    assert dataset._changes == 0  # nobody is told what was learned


class Workers:
    """A loop with worker processes that all tests of this file share."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.pool = self.run(self._pool())

    async def _pool(self) -> WorkerPool:
        return WorkerPool(2, 60, 2_000_000_000)

    def run(self, work: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(work)


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    found = Workers()
    yield found
    found.run(found.pool.close())
    found.loop.close()


@pytest.mark.parametrize("options", [{}, {"guard": 0.2}, {"block": "first"}], ids=["free", "guarded", "blocks"])
def test_a_fit_that_takes_too_long_is_refused_before_anything_is_charged(
    workers: Workers, tmp_path: Path, options: dict[str, Any]
) -> None:
    session = opened(tmp_path, **options)
    if "block" in options:
        session.append(serving.people(500), block="second")

    async def made() -> Dataset:
        return Dataset(str(tmp_path), session, 100, 100, workers.pool)

    dataset, spent = workers.run(made()), session.spent
    assert dataset.is_published == (not options)
    workers.run(
        dataset.rehearse(
            "ana", hr.minimize(hr.losses.Squared(target="age", features=["sex"]), over=hr.L2Ball(1.0)), "values"
        )
    )
    usual, workers.pool.seconds = workers.pool.seconds, 0.001 * REHEARSED
    try:
        with pytest.raises(Refusal, match="too-long"):
            workers.run(dataset.rehearse("eve", MODEL, "values"))
    finally:
        workers.pool.seconds = usual
    assert session.spent == spent
    workers.run(dataset.rehearse("ana", MODEL, "values"))
    workers.run(dataset.close())
