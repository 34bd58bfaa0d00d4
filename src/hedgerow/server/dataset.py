"""One open session, which answers the waiting questions of all analysts in a thread of its own.

The session has one writer: everything that may read the table or charge the ledger runs in this thread, in the order of
arrival. Questions that wait at the same time are answered together, so that many small requests cost little more than one
large one. Answers are the same as if each had been asked alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Literal, TypeVar

from hedgerow.answer import Answer
from hedgerow.query.counts import Query
from hedgerow.server.problems import Refusal
from hedgerow.session import Session

LOG = logging.getLogger("hedgerow.server")
TOGETHER = 10_000  # questions that are answered in one turn, unless one request has more
T = TypeVar("T")
Scale = Literal["fraction", "rows"]
Resolution = Literal["values", "bins"]


@dataclass(frozen=True)
class WaitingRequest:
    """Questions of one request that wait for the session, and the promise of their answers."""

    analyst: str
    queries: Sequence[Query]
    scale: Scale
    resolution: Resolution
    promise: asyncio.Future[list[Answer]] = field(compare=False)

    @property
    def alike(self) -> tuple[str, Scale, Resolution]:
        """Key of requests that may be answered in one call."""
        return self.analyst, self.scale, self.resolution


class Dataset:
    """A session that is served."""

    def __init__(self, name: str, session: Session, most_waiting: int, most_of_one: int | None = None) -> None:
        self.name, self.session, self._most = name, session, most_waiting
        self._most_of_one = most_waiting if most_of_one is None else most_of_one
        self._unanswered: Counter[str] = Counter()  # requests of each analyst that have no answer yet
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"hedgerow-{name}")
        self._waiting: deque[WaitingRequest] = deque()
        self._draining: asyncio.Task[None] | None = None

    async def ask(
        self, analyst: str, queries: Sequence[Query], scale: Scale = "fraction", resolution: Resolution = "values"
    ) -> list[Answer]:
        """Answer questions without ``within``, together with others that wait now."""
        with self._room(analyst):
            promise: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
            self._waiting.append(WaitingRequest(analyst, queries, scale, resolution, promise))
            if self._draining is None or self._draining.done():
                self._draining = asyncio.create_task(self._drain())
            return await promise

    async def run(self, analyst: str, work: Callable[[Session], T]) -> T:
        """Run other work on the session in its thread, on behalf of an analyst."""

        def on_behalf() -> T:
            with self.session.on_behalf_of(analyst):
                return work(self.session)

        with self._room(analyst):
            return await asyncio.get_running_loop().run_in_executor(self._thread, _run_plainly, on_behalf)

    async def _drain(self) -> None:
        """Answer what waits, until nothing does. A fault is the outcome of every request that it meets."""
        while self._waiting:
            batch = self._next_batch()
            found: list[list[Answer] | BaseException]
            try:
                found = await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, batch)
            except Exception as fault:  # nobody may wait for an answer that will not come
                LOG.error("dataset %s: %s", self.name, type(fault).__name__)
                found = [RuntimeError("a batch was not answered") for _ in batch]
            for asked, outcome in zip(batch, found, strict=True):
                if asked.promise.done():  # its request was given up
                    continue
                if isinstance(outcome, BaseException):
                    asked.promise.set_exception(outcome)
                else:
                    asked.promise.set_result(outcome)

    def _next_batch(self) -> list[WaitingRequest]:
        """Take requests in their order until they have ``TOGETHER`` questions; other work then has its turn."""
        batch: list[WaitingRequest] = []
        questions = 0
        while self._waiting and (not batch or questions + len(self._waiting[0].queries) <= TOGETHER):
            first = self._waiting.popleft()
            if not first.promise.done():  # else its request was given up
                batch.append(first)
                questions += len(first.queries)
        return batch

    def _answer(self, batch: Sequence[WaitingRequest]) -> list[list[Answer] | BaseException]:
        """Answer a batch in the session's thread. Each request gets its answers, or its own refusal."""
        outcomes: list[list[Answer] | BaseException] = []
        for _, alike in groupby(batch, key=lambda asked: asked.alike):
            group = list(alike)
            together = self._outcome(group[0], [query for asked in group for query in asked.queries])
            if isinstance(together, BaseException) and len(group) > 1:
                outcomes += [self._outcome(asked, asked.queries) for asked in group]
            elif isinstance(together, BaseException):
                outcomes.append(together)
            else:
                answers = iter(together)
                outcomes += [list(islice(answers, len(asked.queries))) for asked in group]
        return outcomes

    def _outcome(self, like: WaitingRequest, queries: Sequence[Query]) -> list[Answer] | BaseException:
        """Return the answers to questions of one kind of request, or the refusal of the first that is refused."""

        def ask() -> list[Answer]:
            with self.session.on_behalf_of(like.analyst):
                return self.session.ask_all(list(queries), scale=like.scale, resolution=like.resolution, progress=False)

        try:
            return _run_plainly(ask)
        except Exception as fault:  # a refusal or a fault of one request must not stop the requests of others
            return fault

    @contextlib.contextmanager
    def _room(self, analyst: str) -> Iterator[None]:
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

    async def close(self) -> None:
        """Answer what waits, then close the session."""
        if self._draining is not None:
            await self._draining
        await asyncio.get_running_loop().run_in_executor(self._thread, self.session.close)
        self._thread.shutdown()


def _run_plainly(work: Callable[[], T]) -> T:
    """Run work, and raise what a future cannot carry, such as a panic of native code, as an ordinary fault."""
    try:
        return work()
    except BaseException as fault:
        if isinstance(fault, Exception) and not isinstance(fault, StopIteration):
            raise
        raise RuntimeError(type(fault).__name__).with_traceback(fault.__traceback__) from None
