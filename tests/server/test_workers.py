"""Free answers from worker processes: the session's answers, beside a purchase, within limits, after a crash."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pytest
import serving

import hedgerow as hr
from hedgerow.release_file.replica import Replica, adopt_answers, public_state
from hedgerow.server.answer_queue import Meter, question_name
from hedgerow.server.commits import GroupCommits
from hedgerow.server.dataset import Dataset, charges_of, cost_since
from hedgerow.server.journal import AnswerJournal
from hedgerow.server.limits import Rate
from hedgerow.server.messages import pack, unpack
from hedgerow.server.pool import PASSED, WorkerPool, WorkerTurns
from hedgerow.server.problems import Refusal
from hedgerow.server.registry import ServiceRegistry
from hedgerow.server.worker import WorkResult

T = TypeVar("T")
MODEL = hr.minimize(hr.losses.Logistic(target="smoker", features=["age"]), over=hr.L2Ball(2.0))


def opened(folder: Path, **options: Any) -> hr.Session:
    return hr.open(
        serving.people(), universe=serving.UNIVERSE, budget=serving.BUDGET, ledger=f"sqlite:///{folder}/ledger",
        reserve=0.4, **options,
    )  # fmt: skip


def counts(low: int, high: int) -> list[hr.Query]:
    return [hr.count(age=(17, a), sex=s) for a in range(low, high) for s in "FM"]


class Serving:
    """A loop in a thread of its own with a pool that all tests share, because workers take seconds to start."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.pool: WorkerPool = self.run(self._pool)

    async def _pool(self) -> WorkerPool:
        return WorkerPool(2, 60, 2_000_000_000)

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        async def done() -> T:
            return await work()

        return asyncio.run_coroutine_threadsafe(done(), self.loop).result(120)

    def close(self) -> None:
        self.run(self.pool.close)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.fixture(scope="module")
def service() -> Iterator[Serving]:
    found = Serving()
    yield found
    found.close()


@pytest.fixture
def served(service: Serving, tmp_path: Path) -> Iterator[tuple[Serving, Dataset]]:
    registry = ServiceRegistry(tmp_path / "registry.sqlite")

    async def made() -> Dataset:
        commits = GroupCommits(registry)
        return Dataset(str(tmp_path), opened(tmp_path), 100, 100, service.pool, AnswerJournal(registry, commits))

    dataset = service.run(made)
    yield service, dataset
    service.run(dataset.close)
    registry.close()


def test_workers_answer_as_the_session_does_before_and_after_a_purchase(
    served: tuple[Serving, Dataset], tmp_path: Path
) -> None:
    service, dataset = served
    (tmp_path / "twin").mkdir()
    twin = opened(tmp_path / "twin", seed=1)
    questions = [
        *counts(20, 40),
        hr.mean("age", where=hr.count(sex="F")),
        hr.median("age"),
        hr.marginal("sex", "smoker"),
    ]
    state = public_state(dataset.session)
    replica = Replica()
    assert state is not None
    replica.learn(unpack(pack(state)))
    alone = replica.release.ask_all(questions)
    got = service.run(lambda: dataset.ask("ana", questions))
    assert [str(a) for a in got] == [str(a) for a in alone]
    bought = service.run(lambda: dataset.run("ana", lambda session: session.ask(hr.count(age=(17, 70)), within=0.008)))
    assert bought.cost > 0
    again = service.run(lambda: dataset.ask("ben", questions))
    assert [str(a.value) for a in again] == [str(a.value) for a in got] and {a.source for a in again} == {"repeat"}
    new = counts(41, 60)
    late = service.run(lambda: dataset.ask("ana", new))
    service.run(lambda: dataset.run("ana", lambda session: None))  # the session adopts what the workers answered
    mine = dataset.session.ask_all([*questions, *new], progress=False)
    assert [str(a.value) for a in mine] == [str(a.value) for a in [*got, *late]]
    assert {a.source for a in mine} == {"repeat"}
    (repeated,) = service.run(lambda: dataset.ask("ben", [hr.count(age=(17, 70))]))
    assert repeated.value == bought.value
    twin.close()


def test_the_second_of_two_equal_questions_of_one_request_repeats_the_first(served: tuple[Serving, Dataset]) -> None:
    service, dataset = served
    first, second = service.run(lambda: dataset.ask("ana", [hr.count(sex="F"), hr.count(sex="F")]))
    assert first.value == second.value and (first.source, second.source) == ("hypothesis", "repeat")


def test_free_work_goes_on_while_the_session_is_busy(served: tuple[Serving, Dataset]) -> None:
    service, dataset = served
    service.run(lambda: dataset.ask("ana", [hr.count(sex="M")]))
    busy, done = threading.Event(), threading.Event()

    def purchase(_: hr.Session) -> None:
        busy.set()
        assert done.wait(60)

    async def both() -> list[Any]:
        waiting = asyncio.create_task(dataset.run("ana", purchase))
        await asyncio.to_thread(busy.wait)
        light = await dataset.ask("ben", counts(61, 63))
        (heavy,) = await dataset.ask("ben", [MODEL])
        sql = await dataset.compute("ben", "run_sql", "SELECT sex, count(*) AS n FROM data GROUP BY sex", 1_000)
        records = await dataset.compute("ben", "synthesize", 20, "csv")
        assert not waiting.done()
        done.set()
        await waiting
        return [light, heavy, sql, records]

    light, heavy, sql, records = service.run(both)
    assert len(light) == 4 and heavy.value.shape == (2,)
    assert sql[0] == ("sex", "n", "n_error", "n_typical") and records.count(b"\n") == 21


def test_an_answer_given_during_a_charge_is_the_same_after_a_crash(service: Serving, tmp_path: Path) -> None:
    """The answer follows from the state before the charge, and the ledger does not have it when the process ends."""
    registry = ServiceRegistry(tmp_path / "registry.sqlite")
    busy, done = threading.Event(), threading.Event()
    questions = counts(30, 34)

    def purchase(session: hr.Session) -> None:
        session.ask(hr.count(age=(17, 31), sex="F"), within=0.008)
        busy.set()
        assert done.wait(60)
        raise RuntimeError("the process ends here")

    async def life() -> list[Any]:
        commits = GroupCommits(registry)
        dataset = Dataset("crashed", opened(tmp_path), 10, 10, service.pool, AnswerJournal(registry, commits))
        dataset.settle_soon = lambda: None  # type: ignore[method-assign]
        waiting = asyncio.create_task(dataset.run("ana", purchase))
        await asyncio.to_thread(busy.wait)
        given = await dataset.ask("ben", questions)
        done.set()
        with pytest.raises(RuntimeError):
            await waiting
        return given

    given = service.run(life)  # its session is never closed

    async def next_life() -> tuple[list[Any], int]:
        dataset = Dataset("crashed", opened(tmp_path), 10, 10, None, None)
        AnswerJournal(registry, GroupCommits(registry)).adopt_into("crashed", dataset.session)
        found = await dataset.ask("ben", questions)
        await dataset.close()
        return found, len(registry.rows("SELECT 1 FROM given"))

    again, left = service.run(next_life)
    assert left == 0
    differ = [i for i, (a, b) in enumerate(zip(again, given, strict=True)) if a.value != b.value]
    assert differ == [questions.index(hr.count(age=(17, 31), sex="F"))]  # which the purchase itself was about
    registry.close()


def test_an_answer_of_an_older_state_is_computed_again(served: tuple[Serving, Dataset]) -> None:
    service, dataset = served
    asked: list[int] = []
    pool = service.pool
    original = pool.do

    async def slow(worker: Any, name: str, published: Any, work: Any) -> tuple[WorkResult, int]:
        found = await original(worker, name, published, work)
        if not asked:
            asked.append(found[1])
            await dataset.run("ana", lambda session: session.ask(hr.count(age=(17, 50)), within=0.008))
        return found

    pool.do = slow  # type: ignore[method-assign]
    try:
        got = service.run(lambda: dataset.ask("ben", counts(48, 52)))
    finally:
        pool.do = original  # type: ignore[method-assign]
    state = public_state(dataset.session)
    replica = Replica()
    assert state is not None
    replica.learn(state)
    assert [a.value for a in got] == [a.value for a in replica.release.ask_all(counts(48, 52))]


def test_a_worker_that_is_killed_is_replaced_and_nothing_is_lost(served: tuple[Serving, Dataset]) -> None:
    service, dataset = served
    before = service.run(lambda: dataset.ask("ana", counts(20, 25)))
    dataset._repeats.clear()
    for worker in service.pool.workers:
        if worker.pid is not None:
            os.kill(worker.pid, signal.SIGKILL)
    after = service.run(lambda: dataset.ask("ana", counts(20, 26)))
    assert [a.value for a in after[:10]] == [a.value for a in before]
    assert {a.source for a in after[:10]} == {"repeat"}


def test_work_that_takes_too_long_or_too_much_memory_is_refused_and_others_go_on(
    served: tuple[Serving, Dataset],
) -> None:
    service, dataset = served
    service.run(lambda: dataset.ask("ana", [MODEL]))  # so that the worker for heavy work has started
    service.pool.seconds = 0.05
    started = time.monotonic()
    try:
        with pytest.raises(Refusal, match="too-long"):
            service.run(lambda: dataset.compute("eve", "synthesize", 3_000_000, "csv"))
        assert time.monotonic() - started < 20
    finally:
        service.pool.seconds = 60.0
    with pytest.raises(hr.TooLarge):
        service.run(lambda: dataset.compute("eve", "synthesize", 10**9, "csv"))
    assert service.run(lambda: dataset.ask("ben", counts(64, 66)))


class AskedBefore:
    """A memory of questions in which everything was asked that ``ask`` noted."""

    def __init__(self) -> None:
        self.asked: set[tuple[str, str]] = set()

    def knows(self, dataset: str, analyst: str, questions: Any) -> bool:
        return all((analyst, question) in self.asked for question in questions)

    def ask(self, service: Serving, dataset: Dataset, analyst: str, queries: list[hr.Query]) -> list[Any]:
        """Ask and count, as an endpoint does."""

        async def work() -> list[Any]:
            answers = await dataset.ask(analyst, queries)
            names = {(analyst, question_name(query, "values")) for query in queries}
            dataset.count_new(analyst, len(names - self.asked))
            self.asked |= names
            return answers

        return service.run(work)


def test_a_person_with_many_new_questions_waits_and_repeats_and_others_go_on(served: tuple[Serving, Dataset]) -> None:
    """Questions that others have asked before count like the rest, or the limit would tell which these are."""
    service, dataset = served
    dataset._new, memory = Rate(10, seconds=86_400.0), AskedBefore()
    dataset._asked = memory
    own, others, nobodys = counts(50, 56), counts(56, 60), counts(60, 64)
    memory.ask(service, dataset, "ben", others)
    first = memory.ask(service, dataset, "eve", own)
    for asked in (others, nobodys, [*own, *others]):
        with pytest.raises(Refusal, match="too-many-questions"):
            memory.ask(service, dataset, "eve", asked)
    with pytest.raises(Refusal, match="too-many-questions"):
        service.run(lambda: dataset.compute("eve", "run_sql", "SELECT age, count(*) FROM data GROUP BY age", 1_000))
    assert [a.value for a in memory.ask(service, dataset, "eve", own)] == [a.value for a in first]
    assert len(memory.ask(service, dataset, "ana", nobodys)) == 8
    dataset._new = Rate(10, seconds=86_400.0)
    memory.ask(service, dataset, "eve", others)  # which ben asked
    assert dataset._new.take("eve", 0) == 0 and dataset._new._left["eve"][0] < 3


def test_a_refusal_in_a_batch_of_several_people_is_that_persons_own(served: tuple[Serving, Dataset]) -> None:
    service, dataset = served

    async def all_of_them() -> list[Any]:
        asked = [[hr.count(sex="F", age=(18, 30))], [hr.count(nothing=1)], [hr.count(sex="M", age=(18, 30))]]
        waiting = [dataset.ask(who, queries) for who, queries in zip("abc", asked, strict=True)]
        return await asyncio.gather(*waiting, return_exceptions=True)

    first, second, third = service.run(all_of_them)
    assert isinstance(second, hr.InvalidInput) and len(first) == len(third) == 1


def test_a_refused_or_a_large_question_takes_no_other_out_of_its_batch(served: tuple[Serving, Dataset]) -> None:
    """Otherwise whoever asks badly, or much, sends the small questions of others to where they wait for fits."""
    service, _ = served
    wide = hr.Universe(a=hr.Integers(0, 199), b=hr.Integers(0, 199), c=hr.Integers(0, 49))
    table = pd.DataFrame({name: [i % wide[name].size for i in range(500)] for name in wide.names})
    turns: list[bool] = []
    usual = service.pool.turn

    def noted(*, is_heavy: bool, is_long: bool = False) -> Any:
        turns.append(is_heavy)
        return usual(is_heavy=is_heavy, is_long=is_long)

    async def large() -> list[Any]:
        other = Dataset("wide", hr.open(table, universe=wide, budget=hr.Budget(1.0, 1e-6)), 10, 10, service.pool)
        asked = [[hr.count(a=(3, 7))], [hr.marginal("a", "b", "c")], [hr.count(nothing=1)], [hr.count(b=(3, 7))]]
        found = await asyncio.gather(*(other.ask("ana", each) for each in asked), return_exceptions=True)
        await other.close()
        return found

    service.pool.turn = noted  # type: ignore[method-assign]
    try:
        first, table_of_all, refused, last = service.run(large)
    finally:
        service.pool.turn = usual  # type: ignore[method-assign]
    assert len(first) == len(last) == 1 and isinstance(refused, hr.InvalidInput)
    assert table_of_all[0].value.shape == (200, 200, 50)
    assert turns.count(True) == 1  # for the large table, and nothing else


def test_the_result_of_a_statement_is_repeated_until_something_is_released(served: tuple[Serving, Dataset]) -> None:
    service, dataset = served
    statement = "SELECT sex, count(*) AS n FROM data WHERE smoker GROUP BY sex"
    asked: list[str] = []
    usual = dataset._do

    async def noted(work: Any, *, is_heavy: bool) -> WorkResult:
        asked.append(work[0])
        return await usual(work, is_heavy=is_heavy)

    dataset._do = noted  # type: ignore[method-assign]

    def run(who: str) -> Any:
        return service.run(lambda: dataset.compute(who, "run_sql", statement, 1_000, key=(statement, 1_000)))

    first = run("ana")
    assert run("ben") == first and asked == ["run_sql"]
    bought = hr.count(sex="F", smoker=True)
    answer = service.run(lambda: dataset.run("ana", lambda session: session.ask(bought, within=0.0025, scale="rows")))
    assert answer.cost > 0
    changed = run("ben")
    assert asked == ["run_sql", "run_sql"]
    assert (changed[1][0][1], first[1][0][1]) == (answer.value, first[1][0][1]) and changed != first


def test_short_work_goes_before_long_work_which_is_not_forgotten() -> None:
    async def order() -> list[str]:
        turns, found = WorkerTurns(), list[str]()

        async def take(name: str, *, is_long: bool) -> None:
            async with turns.one(is_long=is_long):
                found.append(name)
                await asyncio.sleep(0)

        async with turns.one(is_long=True):
            names = [("long", True), *((f"short {i}", False) for i in range(PASSED + 2))]
            tasks = [asyncio.create_task(take(name, is_long=is_long)) for name, is_long in names]
            await asyncio.sleep(0)
            tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert turns.are_free
        return found

    assert asyncio.run(order()) == [*(f"short {i}" for i in range(1, PASSED + 1)), "long", f"short {PASSED + 1}"]


def test_an_answer_is_repeated_only_after_it_was_written_down(served: tuple[Serving, Dataset]) -> None:
    """Another worker knows it sooner. If it were given then, and the service killed, the person would see another."""
    service, dataset = served
    journal, may_write = dataset._journal, threading.Event()
    assert journal is not None
    usual, question = journal.note, hr.count(age=(21, 22), sex="F")

    async def slow(name: str, answers: bytes) -> int:
        await asyncio.to_thread(may_write.wait, 60)
        return await usual(name, answers)

    async def repeated() -> tuple[Any, Any]:
        statement = "SELECT count(*) AS n FROM data WHERE sex = 'F' AND age BETWEEN 21 AND 22"
        first = asyncio.create_task(dataset.compute("ana", "run_sql", statement, 10))
        while not dataset._notes:
            await asyncio.sleep(0.01)
        second = asyncio.create_task(dataset.ask("ben", [question], "rows"))
        await asyncio.wait([first, second], timeout=1)
        assert not first.done() and not second.done()
        may_write.set()
        return await first, await second

    journal.note = slow  # type: ignore[method-assign]
    try:
        (_, [[value, *_]], _), (answer,) = service.run(repeated)
    finally:
        may_write.set()
        journal.note = usual  # type: ignore[method-assign]
    assert answer.value == value and answer.source == "repeat"


def test_the_meter_has_the_charge_of_a_refused_request(served: tuple[Serving, Dataset]) -> None:
    service, dataset = served
    spent = dataset.session.spent

    def refused(session: hr.Session) -> None:
        session.ask(hr.count(age=(17, 45)), within=0.008)
        session.ask(hr.count(age=(17, 46)), within=1e-9)

    async def asked() -> Meter:
        meter = Meter()
        with pytest.raises(hr.BudgetExceeded):
            await dataset.run("ana", refused, meter)
        return meter

    assert service.run(asked).cost == pytest.approx(dataset.session.spent - spent) != 0


def test_a_purchase_about_some_blocks_has_the_cost_of_the_block_that_pays_most() -> None:
    """A row is in one block: what the person with the largest bill pays is the cost, and the trail must not say less."""
    session = hr.open(serving.people(), universe=serving.UNIVERSE, budget=serving.BUDGET, reserve=0.4, block="first")
    session = session.append(serving.people(), block="second")
    before = charges_of(session)
    answer = session.select_blocks("second").ask(hr.count(age=(17, 45)), within=0.012)
    assert cost_since(session, before) == pytest.approx(answer.cost) != 0


def test_a_worker_gets_the_number_of_rows_only_if_it_is_public() -> None:
    for neighbours, rows in (("replace", len(serving.people())), ("add-remove", None)):
        budget = hr.Budget(1.0, 1e-6, neighbours)  # type: ignore[arg-type]
        state = public_state(hr.open(serving.people(), universe=serving.UNIVERSE, budget=budget))
        assert state is not None and state.rows == rows


def test_a_session_whose_answers_may_depend_on_the_table_has_no_public_state(tmp_path: Path) -> None:
    theory = hr.open(serving.people(400), universe=serving.UNIVERSE, budget=serving.BUDGET, profile="theory")
    assert public_state(theory) is None
    guarded = hr.open(serving.people(), universe=serving.UNIVERSE, budget=serving.BUDGET, guard=0.2, reserve=0.2)
    assert public_state(guarded) is None
    several = opened(tmp_path)
    assert public_state(several) is not None
    several.append(serving.people(500), block="second")
    assert public_state(several) is None
    several.close()


def test_adopted_answers_do_not_replace_the_sessions(tmp_path: Path) -> None:
    session = opened(tmp_path)
    state, replica = public_state(session), Replica()
    assert state is not None
    replica.learn(state)
    free = replica.release.ask(hr.count(age=(17, 33)))
    bought = session.ask(hr.count(age=(17, 33)), within=0.008)
    adopt_answers(session, replica.take_fresh())
    assert session.ask(hr.count(age=(17, 33))).value == bought.value != free.value
    session.close()
