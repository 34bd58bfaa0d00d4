"""Requests that wait for free answers: in which batches they are answered, and how many may wait.

Questions that wait at the same time are answered together. Answers are the same as if each had been asked alone. A
question that was answered before is repeated from memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from hedgerow.answer import Answer
from hedgerow.query.counts import Query
from hedgerow.server.limits import Rate
from hedgerow.server.messages import pack
from hedgerow.server.pool import PublishedState, WorkerPool
from hedgerow.server.problems import Refusal
from hedgerow.server.questions import NAMES
from hedgerow.server.worker import Work, WorkResult

LOG = logging.getLogger("hedgerow.server")
TOGETHER = 10_000  # questions that are answered in one turn of a session, unless one request has more
LIGHT = 500  # questions that are light work for a worker
PART = 100  # questions that are named before other requests have their turn
DAY = 86_400.0
MOST_NEW = 200_000  # questions that one person asks for the first time in a day
REMEMBERED = 200_000  # answers that the service itself repeats
RESULTS = 1_000  # results of statements and the like that the service itself repeats
LARGEST_RESULT = 50_000  # bytes of such a result
Scale = Literal["fraction", "rows"]
Resolution = Literal["values", "bins"]


Outcome = list[Answer] | BaseException | None
"""Answers, a refusal, or None for a request that is heavy work."""


class Meter:
    """Sum of what a request was charged, whether it was answered or refused."""

    def __init__(self) -> None:
        self.cost = 0.0


@dataclass(frozen=True)
class WaitingRequest:
    """Questions of one request that wait to be answered, and the promise of their answers."""

    analyst: str
    queries: Sequence[Query]
    scale: Scale
    resolution: Resolution
    promise: asyncio.Future[list[Answer]] = field(compare=False)
    meter: Meter = field(default_factory=Meter, compare=False)

    @property
    def alike(self) -> tuple[str, Scale, Resolution]:
        """Key of requests that may be answered in one call."""
        return self.analyst, self.scale, self.resolution


class AskedQuestions(Protocol):
    """The questions that each analyst has asked about a dataset."""

    def knows(self, dataset: str, analyst: str, questions: Sequence[str]) -> bool: ...


class AnswerQueue(ABC):
    """The requests about one dataset that wait for free answers."""

    def __init__(
        self,
        name: str,
        most_waiting: int,
        most_of_one: int | None = None,
        new_a_day: int = MOST_NEW,
        asked: AskedQuestions | None = None,
    ) -> None:
        self.name, self._most, self._asked = name, most_waiting, asked
        self._most_of_one = most_waiting if most_of_one is None else most_of_one
        self._unanswered: Counter[str] = Counter()  # requests of each analyst that have no answer yet
        self._waiting: deque[WaitingRequest] = deque()
        self._draining: asyncio.Task[None] | None = None
        self._aside: set[asyncio.Task[None]] = set()  # heavy requests that were taken out of their batch
        self._repeats: dict[tuple[str, Scale, Resolution], Answer] = {}
        self._results: dict[tuple[Hashable, ...], Any] = {}  # of work whose result follows from the public state
        self._changes_of_repeats = 0  # how often they were forgotten
        self._new = Rate(new_a_day, seconds=DAY)  # questions that are new to their person
        self._heavy: dict[str, asyncio.Lock] = {}  # one piece of heavy work of each analyst at a time

    @property
    @abstractmethod
    def is_published(self) -> bool:
        """True if free answers never depend on the table, so that worker processes give them."""

    @abstractmethod
    async def _do(self, work: Work, *, is_heavy: bool) -> WorkResult:
        """Do work in a worker process, and note its new answers as given before they are returned."""

    async def warm_workers(self, pool: WorkerPool, state: PublishedState) -> None:
        """Let every worker load what its first question needs."""
        for is_heavy, workers in ((False, pool.workers[:1]), (True, pool.workers[1:])):
            for _ in workers:
                async with pool.turn(is_heavy=is_heavy) as worker:
                    with contextlib.suppress(
                        Refusal, RuntimeError
                    ):  # such as too little time, which a question says again
                        await pool.do(worker, self.name, state, ("warm", ()))

    async def _answer_elsewhere(self, batch: Sequence[WaitingRequest]) -> Sequence[Outcome]:
        """Answer a batch where workers may not."""
        raise NotImplementedError

    # Free answers

    async def ask(
        self,
        analyst: str,
        queries: Sequence[Query],
        scale: Scale = "fraction",
        resolution: Resolution = "values",
        meter: Meter | None = None,
    ) -> list[Answer]:
        """Answer questions without ``within``, together with others that wait now.

        Whoever shows the answers counts those that are new to the person, with ``count_new``.
        """
        self._require_new(analyst, queries, resolution)
        if not self.is_published:
            with self.room(analyst):
                return await self._wait(
                    WaitingRequest(analyst, queries, scale, resolution, _promise(), meter or Meter())
                )
        names = []
        for start in range(0, len(queries), PART):
            names += [(NAMES.of(query), scale, resolution) for query in queries[start : start + PART]]
            if start:
                await asyncio.sleep(0)
        repeats = {name: self._repeats[name] for name in names if name in self._repeats}
        new = {name: query for name, query in zip(names, queries, strict=True) if name not in repeats}
        found: dict[Any, Answer] = {}
        if new:
            asked, changes = list(new.values()), self._changes_of_repeats
            with self.room(analyst):
                if len(asked) > LIGHT or any(query.is_convex for query in asked):
                    work = ("ask", (asked, scale, resolution))
                    answers = (await self._do_heavy(analyst, work, queries, resolution)).value
                else:
                    answers = await self._wait(WaitingRequest(analyst, asked, scale, resolution, _promise()))
            found = dict(zip(new, answers, strict=True))
            fresh = {name: replace(answer, source="repeat") for name, answer in found.items()}
            repeats |= fresh
            if changes == self._changes_of_repeats:  # else a purchase may have given a better answer meanwhile
                if len(self._repeats) + len(fresh) > REMEMBERED:
                    self._repeats.clear()
                self._repeats |= fresh
        return [
            found.pop(name) if name in found else repeats[name] for name in names
        ]  # the second of two repeats the first

    def forget_repeats(self) -> None:
        """Answer repeated questions anew, because others may have better answers."""
        self._repeats.clear()
        self._results.clear()
        self._changes_of_repeats += 1

    async def compute(
        self, analyst: str, name: str, *arguments: Any, question: str = "", key: tuple[Hashable, ...] = ()
    ) -> Any:
        """Do free work of ``worker`` in a worker process: ``run_sql``, ``synthesize`` or ``describe``.

        ``question`` is the name by which the person's next one like it is recognized, if whoever shows the result
        counts it. With a ``key``, which names work whose result follows from the public state, the result is repeated
        from memory until that state changes.
        """
        self._require_new(analyst)
        if key and (name, *key) in self._results:
            return self._results[name, *key]
        changes = self._changes_of_repeats
        with self.room(analyst):
            found = (await self._do_heavy(analyst, (name, arguments))).value
        if key and changes == self._changes_of_repeats and len(pack(found)) <= LARGEST_RESULT:
            self._results[name, *key] = found
            if len(self._results) > RESULTS:
                self._results.pop(next(iter(self._results)))
        return found

    def count_new(self, analyst: str, count: int) -> None:
        """Count questions that a person asked for the first time.

        Those that others have asked before count as well: else the limit would tell which these are.
        """
        self._new.take(analyst, count)

    def has_many_new(self, analyst: str) -> bool:
        """Return True if a person has asked as many new questions today as the limit allows."""
        return self._new.take(analyst, 0) > 0

    def _require_new(self, analyst: str, queries: Sequence[Query] = (), resolution: Resolution = "values") -> None:
        """Refuse a person who has asked many new questions today, because answers are kept.

        Own questions may be repeated.
        """
        wait = self._new.take(analyst, 0)
        if wait and not (queries and self._has_asked(analyst, queries, resolution)):
            raise Refusal(
                429, "too-many-questions", "Too many new questions",
                "New questions must stay below the limit of a day. Found as many. Repeat earlier ones, ask for whole "
                "tables, or ask the owner to raise limits.new_answers_per_day.", {"Retry-After": str(max(1, round(wait + 0.5)))},
            )  # fmt: skip

    def _has_asked(self, analyst: str, queries: Sequence[Query], resolution: Resolution) -> bool:
        names = [question_name(query, resolution) for query in queries]
        return self._asked is not None and self._asked.knows(self.name, analyst, names)

    async def _do_heavy(
        self, analyst: str, work: Work, queries: Sequence[Query] = (), resolution: Resolution = "values"
    ) -> WorkResult:
        async with self._heavy.setdefault(analyst, asyncio.Lock()):
            self._require_new(analyst, queries, resolution)  # what was done meanwhile counts
            return await self._do(work, is_heavy=True)

    # Waiting requests

    async def _wait(self, request: WaitingRequest) -> list[Answer]:
        self._waiting.append(request)
        if self._draining is None or self._draining.done():
            self._draining = asyncio.create_task(self._drain())
        return await request.promise

    async def _drain(self) -> None:
        """Answer waiting requests until the queue is empty. A fault is the outcome of every request that it meets."""
        while self._waiting:
            batch = self._next_batch()
            found: Sequence[Outcome]
            try:
                answer = self._answer_in_workers if self.is_published else self._answer_elsewhere
                found = await answer(batch)
            except Exception as fault:  # nobody may wait for an answer that will not come
                LOG.error("dataset %s: %s", self.name, type(fault).__name__)
                found = [RuntimeError("a batch was not answered") for _ in batch]
            for asked, outcome in zip(batch, found, strict=True):
                if outcome is None:
                    task = asyncio.create_task(self._answer_heavy(asked))
                    self._aside.add(task)
                    task.add_done_callback(self._aside.discard)
                else:
                    _settle(asked.promise, outcome)

    def _next_batch(self) -> list[WaitingRequest]:
        """Take requests in their order until they have enough questions; other work then has its turn."""
        batch: list[WaitingRequest] = []
        questions, most = 0, LIGHT if self.is_published else TOGETHER
        while self._waiting and (not batch or questions + len(self._waiting[0].queries) <= most):
            first = self._waiting.popleft()
            if not first.promise.done():  # else its request was given up
                batch.append(first)
                questions += len(first.queries)
        return batch

    async def _answer_in_workers(self, batch: Sequence[WaitingRequest]) -> list[Outcome]:
        """Answer a batch in the worker for light work. Each request gets its answers, or its own refusal.

        One that is refused delays no other: the worker answers the others by themselves. Heavy ones have their own
        turns.
        """
        outcomes: dict[int, Outcome] = {}
        kinds: dict[tuple[Scale, Resolution], list[WaitingRequest]] = {}
        for asked in batch:
            kinds.setdefault((asked.scale, asked.resolution), []).append(asked)
        for alike in kinds.values():
            try:
                found = await self._ask_each(alike, is_heavy=False)
            except Exception:  # what was too much for all together may be heavy by itself
                found = [None] * len(alike)
            outcomes |= {id(asked): outcome for asked, outcome in zip(alike, found, strict=True)}
        return [outcomes[id(asked)] for asked in batch]

    async def _ask_each(self, alike: Sequence[WaitingRequest], *, is_heavy: bool) -> list[Outcome]:
        work = ("ask_each", ([list(asked.queries) for asked in alike], alike[0].scale, alike[0].resolution, is_heavy))
        return (await self._do(work, is_heavy=is_heavy)).value  # type: ignore[no-any-return]

    async def _answer_heavy(self, asked: WaitingRequest) -> None:
        """Answer a request in a worker for heavy work, while others are answered."""
        try:
            async with self._heavy.setdefault(asked.analyst, asyncio.Lock()):
                (found,) = await self._ask_each([asked], is_heavy=True)
        except Exception as fault:  # a refusal or a fault of one request must not stop the requests of others
            found = fault
        _settle(asked.promise, found)

    async def finish(self) -> None:
        """Answer the waiting requests."""
        if self._draining is not None:
            await self._draining
        if self._aside:
            await asyncio.wait(self._aside)

    @contextlib.contextmanager
    def room(self, analyst: str) -> Iterator[None]:
        """Count a request while it waits. Refuse it when too many wait, of all analysts or of this one."""
        for waiting, most, whose in (
            (self._unanswered[analyst], self._most_of_one, "of one person "),
            (self._unanswered.total(), self._most, ""),
        ):
            if waiting >= most:
                raise Refusal(
                    503,
                    "busy",
                    "Too many requests wait",
                    f"At most {most:g} requests {whose}may wait for a dataset. Found as many. Try again in a moment.",
                    {"Retry-After": "1"},
                )
        self._unanswered[analyst] += 1
        try:
            yield
        finally:
            self._unanswered[analyst] -= 1
            if not self._unanswered[analyst]:
                del self._unanswered[analyst]
                self._heavy.pop(analyst, None)


def question_name(query: Query, resolution: Resolution) -> str:
    """Return the name under which it is remembered that a person asked a question."""
    return f"{resolution} {NAMES.of(query)}"


def _settle(promise: asyncio.Future[list[Answer]], outcome: list[Answer] | BaseException | None) -> None:
    """Keep a promise, unless its request was given up."""
    if promise.done():
        return
    if isinstance(outcome, list):
        promise.set_result(outcome)
    else:
        promise.set_exception(outcome or RuntimeError("a request was not answered"))


def _promise() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()
