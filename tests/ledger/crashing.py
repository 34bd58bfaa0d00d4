"""Sessions on a durable ledger that are killed, by ``kill -9``, at any step they take; and many at once.

A life is a process that opens the ledger, asks again all that was answered in earlier lives, and goes on with the script. What it
does is written to a log that outlives it: which entries it drew from, what it was answered. ``Lives`` reads that and the ledger.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import signal
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine.practical import free_answers
from hedgerow.engine.practical.free_answers import FreeAnswers
from hedgerow.ledger import read, snapshots
from hedgerow.ledger.store import Store
from hedgerow.privacy.ledger import Receipt

UNIVERSE = hr.Universe(a=hr.Integers(0, 5), b=hr.Flag(), c=hr.Categories(["w", "x", "y"]), d=hr.Integers(0, 3))
_drawn = np.random.default_rng(7).dirichlet(np.full(UNIVERSE.size, 0.3)).reshape(UNIVERSE.shape)
_alone = [_drawn.sum(axis=tuple(j for j in range(4) if j != i)) for i in range(4)]
SHARES = (
    0.9 * np.einsum("a,b,c,d->abcd", *_alone) + 0.1 * _drawn
)  # nearly independent: a guard says "right" and "wrong"
TABLE = HistogramSource(UNIVERSE, np.round(1e6 * SHARES).astype(np.int64))
BUDGET = hr.Budget(1.0, 1e-6)
FREE = [hr.count(a=a, b=True, c={"w", "x"}, d=(0, 1)) for a in range(6)] + [hr.count(a=(1, a)) for a in range(2, 6)]
BOUGHT = [  # of attributes that differ, or what is bought for one would do for the next
    hr.count(a=0, c="x", d=1), hr.count(a=1, b=True, d=2), hr.count(a=2, b=False, c="x"), hr.count(b=True, c="x", d=1),
    hr.count(a=0, b=True, c="x", d=2), hr.count(a=1, d=1),
]  # fmt: skip
MANY = [hr.count(a=(0, a), b=False, c={"w", "y"}, d=d) for a in range(5) for d in range(3)]
TABLES = [hr.marginal("a", "c"), hr.marginal("b", "d")]
WITHIN = 0.0015


def opened(url: str, *, guard: float = 0.15, **options: Any) -> hr.Session:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hr.open(
            TABLE, universe=UNIVERSE, budget=BUDGET, guard=guard, reserve=0.3, workload=hr.marginals(1), ledger=url, **options
        )  # fmt: skip


def warm_up() -> None:
    """Compile once, before there are many processes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = hr.open(TABLE, universe=UNIVERSE, budget=BUDGET, guard=0.15, reserve=0.3, workload=hr.marginals(1))
    for query, within in script():
        session.ask(query, within=within)


def script() -> list[tuple[hr.Query, float | None]]:
    """Free, guarded and bought, in turn."""
    asked: list[tuple[hr.Query, float | None]] = []
    for i, query in enumerate(FREE):
        asked.append((query, None))
        if i < len(BOUGHT):
            asked.append((BOUGHT[i], WITHIN))
        if i < len(TABLES):
            asked.append((TABLES[i], None))
    return asked


class Log:
    """Lines of JSON that are in the file before ``write`` returns, and stay there when the process is killed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, *said: Any) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, json.dumps(said).encode() + b"\n")
        os.close(file)

    def read(self) -> list[Any]:
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []


class Fate:
    """Counts the steps of a process, and kills it at one of them."""

    def __init__(self, log: Log, at: int) -> None:
        self._log, self._left = log, at

    def step(self, name: str) -> None:
        self._left -= 1
        if self._left == 0:
            self._log.write("killed", name)
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: Any, method: str, name: Callable[..., str]) -> None:
        """A step before and one after each call."""
        usual = getattr(owner, method)

        def stepped(this: Any, *given: Any, **named: Any) -> Any:
            called = name(*given)
            self.step(f"before {called}")
            result = usual(this, *given, **named)
            self.step(f"after {called}")
            return result

        setattr(owner, method, stepped)

    def take_hold(self) -> None:
        """In a process of its own: nothing is changed back."""
        import sqlalchemy as sa

        self.around(Store, "append_quickly", lambda said, after: "quick answers")
        self.around(Store, "append", lambda said, *rest: "+".join(kind for _, _, kind, _ in said))
        self.around(Receipt, "released", lambda *rest: "draw and record")
        self.around(FreeAnswers, "learn", lambda *rest: "refit")
        self.around(snapshots.StoredSnapshots, "take", lambda: "snapshot")
        sa.event.listen(sa.Engine, "commit", lambda connection: self.step("before the commit"))
        redeem = Receipt.redeem

        def drawn(this: Receipt, *kinds: Any) -> Any:
            self._log.write("drawn", this.number, this.cost)
            return redeem(this, *kinds)

        Receipt.redeem = drawn  # type: ignore[method-assign]


def said(answer: hr.Answer) -> list[Any]:
    return [np.asarray(answer.value).tobytes().hex(), np.asarray(answer.error, dtype=float).tolist()]


def live(url: str, log: Log, at: int, guard: float, group: int = 1) -> None:
    """Ask again what was answered, then the rest of the script. Killed at step ``at``.

    So many questions of a ``group`` wait for the disk together, and are answered after that.
    """
    answered = {index: heard for what, index, *heard in (e for e in log.read() if e[0] == "answered")}
    Fate(log, at).take_hold()
    snapshots.EVERY = 3  # so that there are snapshots to be killed at
    session = opened(url, guard=guard)
    log.write("opened", session.spent)

    def heard(index: int, answer: hr.Answer) -> None:
        if index in answered and (said(answer) != answered[index] or answer.cost != 0):
            log.write("changed", index, said(answer), answered[index], answer.cost, answer.source)
        elif index not in answered:
            log.write("answered", index, *said(answer))

    asked = list(enumerate(script()))
    for start in range(0, len(asked), group):
        answers = {}
        with session.ledger.committing_once() if group > 1 else contextlib.nullcontext():
            for index, (query, within) in asked[start : start + group]:
                with contextlib.suppress(hr.BudgetExceeded):
                    answers[index] = session.ask(query, within=within)
        for index, answer in answers.items():
            heard(index, answer)
        if start <= 4 < start + group:
            for number, answer in enumerate(session.ask_all(MANY)):
                heard(100 + number, answer)
    log.write("finished")


def in_a_process(task: Callable[[], None], log: Log, seconds: int = 300) -> int:
    """A fork, its number. One that hangs is ended."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(seconds)
            task()
            status = 0
        except BaseException:
            log.write("failed", traceback.format_exc())
        finally:
            os._exit(status)
    return child


@dataclass
class Lives:
    """Ledgers and what became of them. ``kills`` by the step at which they came."""

    fresh: Callable[[], str]
    kills: collections.Counter[str] = field(default_factory=collections.Counter)
    finished: int = 0
    lost_rounds: int = 0

    def run(self, wanted: int, stride: int = 37, span: int = 150) -> None:
        """So many kills, at steps all over a life; each ledger until its script is done, or a dozen lives."""
        turn = ledgers = 0
        while self.kills.total() < wanted:
            url = self.fresh()
            guard = (0.15, 0.0)[ledgers % 2]  # without a guard most answers are not written, but had again
            group = (1, 3, 3, 1)[ledgers % 4]
            ledgers += 1
            with tempfile.TemporaryDirectory() as folder:
                log = Log(Path(folder) / "log")
                for life in range(12):
                    turn += 1
                    room = span if life == 0 else span // 3
                    done = self._live(url, log, 1 + turn * stride % room, guard, group)
                    self.check(url, log)
                    if done or self.kills.total() >= wanted:
                        break

    def _live(self, url: str, log: Log, at: int, guard: float, group: int) -> bool:
        child = in_a_process(lambda: live(url, log, at, guard, group), log)
        _, status = os.waitpid(child, 0)
        told = log.read()
        assert not [e for e in told if e[0] == "failed"], told[-1][1]
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            self.kills[told[-1][1]] += 1
            return False
        assert told[-1] == ["finished"], told[-3:]
        self.finished += 1
        return True

    def check(self, url: str, log: Log) -> None:
        told = log.read()
        changed = [e for e in told if e[0] == "changed"]
        assert not changed, f"an answer was lost: {changed}"
        ledger = read(url) if _is_there(url) else None
        drawn = {number: cost for what, number, cost in (e for e in told if e[0] == "drawn")}
        if ledger is None:
            assert not drawn
            return
        try:
            ledger.verify()
            entries = ledger.entries()
            costs = {entry.number: entry.cost for entry in entries}
            assert set(drawn) <= set(costs), "something was drawn that is not in the ledger"
            assert all(costs[number] == cost for number, cost in drawn.items())
            assert ledger.spent >= sum(drawn.values()) * (1 - 1e-12)
            assert ledger.spent <= BUDGET.total * (1 + 1e-11)
            deaths = sum(e[0] == "killed" for e in told)
            lost = [e for e in entries if e.why == "guard round" and not e.released]
            assert len(lost) <= deaths + 1, "more than one round a crash"
            self.lost_rounds += len(lost)
        finally:
            ledger.close()


def _is_there(url: str) -> bool:
    """Return True if the ledger has its first line: a process may end before it is written."""
    with contextlib.suppress(hr.HedgerowError):
        read(url).close()
        return True
    return False


# Many at once

PAID = 0.35  # of the questions of a crowd
DEAR, CHEAP = 0.001, 0.02  # bars: so many of the dear ones that in a long run the budget ends before the questions do
REMEMBERED = 40  # answers of each process that are asked for again when all is over


def questions(seed: int, count: int) -> Iterator[tuple[hr.Query, float | None]]:
    """Free counts, of which many come again, and weights that nobody else asks for, each of which is paid."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        if rng.random() < PAID:
            yield hr.linear(UNIVERSE.names, rng.random(UNIVERSE.shape)), DEAR if rng.random() < 0.07 else CHEAP
        else:
            a, d = sorted(rng.integers(0, 6, 2)), sorted(rng.integers(0, 4, 2))
            yield hr.count(a=(int(a[0]), int(a[1])), d=(int(d[0]), int(d[1])), b=bool(rng.integers(2))), None


def crowd(url: str, processes: int, count: int) -> dict[str, int]:
    """So many processes ask so many questions each, on one ledger: what was charged, said and refused. It holds, or raises."""
    with tempfile.TemporaryDirectory() as folder:
        logs = [Log(Path(folder) / f"log{i}") for i in range(processes)]

        def ask(i: int) -> None:
            free_answers.ROOM = 0  # thousands of purchases are learned by all: as bars, which takes no fit of the model
            session = opened(f"{url}{'&' if '?' in url else '?'}timeout=240", who=f"analyst {i}")
            answered = refused = 0
            for number, (query, within) in enumerate(questions(i, count)):
                before = len(session.ledger.entries())
                try:
                    answer = session.ask(query, within=within)
                    answered += 1
                except hr.BudgetExceeded:
                    refused += 1
                    continue
                if answer.cost:
                    logs[i].write("paid", i, answer.cost)
                if number % max(1, count // REMEMBERED) == 0:
                    logs[i].write("said", i, number, *said(answer))
                assert len(session.ledger.entries()) >= before
            logs[i].write("done", answered, refused)
            session.ledger.close()

        children = [in_a_process(lambda i=i: ask(i), logs[i], 7200) for i in range(processes)]
        statuses = [os.waitpid(child, 0)[1] for child in children]
        told = [e for log in logs for e in log.read()]
    assert statuses == [0] * processes, [e[1] for e in told if e[0] == "failed"]
    ledger = read(url)
    try:
        ledger.verify()
        entries, view = ledger.entries(), ledger.spending()
        assert [entry.number for entry in entries] == list(range(len(entries)))
        assert all(entry.is_complete for entry in entries if entry.why != "guard round"), "what was paid for came out"
        assert ledger.spent <= BUDGET.total * (1 + 1e-11)
        for i in range(processes):
            paid = sum(e[2] for e in told if e[:2] == ["paid", i])
            charged = float(view[view.who == f"analyst {i}"].spent.sum())
            assert abs(paid - charged) <= 1e-12 * BUDGET.total, "what was billed was charged: no entry lost or doubled"
        done = [e for e in told if e[0] == "done"]
        assert sum(e[1] + e[2] for e in done) == processes * count
        _repeated(url, [e[1:] for e in told if e[0] == "said"], count)
        assert read(url).spent == ledger.spent
        return {
            "processes": processes,
            "questions": processes * count,
            "entries": len(entries),
            "paid": sum(e[0] == "paid" for e in told),
            "refused": sum(e[2] for e in done),
        }
    finally:
        ledger.close()


def _repeated(url: str, heard: list[Any], count: int) -> None:
    """All of these answers, by analyst and number, are given again by one who was not there, for nothing."""
    usual, free_answers.ROOM = free_answers.ROOM, 0
    session = opened(url)
    try:
        for analyst in {i for i, *_ in heard}:
            asked = list(questions(analyst, count))
            for _, number, *before in (e for e in heard if e[0] == analyst):
                query, within = asked[number]
                again = session.ask(query, within=within)
                assert said(again) == before and again.cost == 0, (query, within, again, before)
    finally:
        session.ledger.close()
        free_answers.ROOM = usual
