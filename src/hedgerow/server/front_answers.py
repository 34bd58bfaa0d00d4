"""The free answers of a front, which its workers compute from the public state and the engine approves.

A front with a token of the role ``front`` answers free questions, statements, fits, synthetic records and summaries
itself. Every other request is handed on, and so is everything about a dataset whose free answers may depend on the
table.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path

from hedgerow.answer import Answer
from hedgerow.ledger import answer_log
from hedgerow.query.counts import Query
from hedgerow.release_file.replica import StateFile
from hedgerow.server.answer_queue import LIGHT, AnswerQueue, Meter, Resolution, Scale, question_name
from hedgerow.server.api import ENDPOINTS
from hedgerow.server.arrivals import bearer_of
from hedgerow.server.endpoint import Call, Endpoint, Service
from hedgerow.server.front_engine import EngineDesk, StateUnavailable
from hedgerow.server.fronts import AdmissionRequest
from hedgerow.server.limits import Rate
from hedgerow.server.messages import pack, unpack
from hedgerow.server.outcomes import HEADER, request_digest
from hedgerow.server.people import Token
from hedgerow.server.pool import PublishedState, WorkerPool
from hedgerow.server.problems import Refusal, too_many
from hedgerow.server.replies import decode_body, handle, if_changed
from hedgerow.server.settings import NAME, Limits
from hedgerow.server.worker import LONG, Work, WorkResult

ROUNDS = 8  # purchases during one piece of work after which it is refused
UNPUBLISHED = 10.0  # seconds after which the engine is asked again for a public state
LONGEST = 2_000  # characters of a question that the trail keeps
T = TypeVar("T")


class EngineNeeded(Exception):
    """A request that the engine must answer."""


class FrontDataset(AnswerQueue):
    """The free answers of one dataset at a front."""

    def __init__(self, name: str, engine: EngineDesk, pool: WorkerPool, limits: Limits) -> None:
        super().__init__(name, limits.waiting, limits.waiting_of_one, limits.new_answers_per_day)
        self._engine, self._pool = engine, pool
        self.revision, self._version = "", ""
        self._state = PublishedState(b"", b"")
        self._changing = asyncio.Lock()

    @property
    def is_published(self) -> bool:
        """True: what is not published is handed on."""
        return True

    def _require_new(self, *_: Any) -> None:
        """Do nothing: beyond the limit of a day, requests are handed on to the engine, which knows who asked what."""

    async def catch_up(self, seen: str) -> None:
        """Take the engine's present state, if the revision is still the one that was seen."""
        async with self._changing:
            if self.revision != seen:
                return
            found = await self._engine.state(self.name, self._version)
            state = self._state.state
            if found.data is not None:
                state = pack(StateFile(found.data))
            self._state.restart(state)
            self.forget_repeats()
            self.revision, self._version = found.revision, found.version

    async def warm(self) -> None:
        """Let every worker load what its first question needs."""
        await self.warm_workers(self._pool, self._state)

    async def _do(self, work: Work, *, is_heavy: bool) -> WorkResult:
        """Do work in a worker, until the engine agrees that its new answers are given."""
        state = self._state
        async with self._pool.turn(is_heavy=is_heavy, is_long=work[0] in LONG) as worker:
            for _ in range(ROUNDS):
                revision = self.revision
                outcome: WorkResult
                outcome, version = await self._pool.do(worker, self.name, state, work)
                if version != state.version:
                    continue
                if outcome.refusal is not None:
                    raise outcome.refusal
                if not outcome.fresh:
                    return outcome
                answers = await asyncio.to_thread(lambda fresh=outcome.fresh: answer_log.line_body(unpack(fresh)))  # type: ignore[misc]
                verdict = await self._engine.give(self.name, revision, answers)
                if "is_given" in verdict:
                    if version == state.version:
                        worker.accept(self.name)
                        state.add(worker, outcome.fresh)
                        state.take_unadopted()
                    return outcome
                worker.reject(self.name)
                if "others" in verdict:
                    state.add(None, await asyncio.to_thread(_read_given, verdict["others"], unpack(outcome.fresh)))
                else:
                    await self.catch_up(revision)
        raise busy()


def _read_given(line: str, own: Sequence[tuple[Any, Any]]) -> bytes:
    """Return the pickled answers of a line, which are about some of these questions."""
    bound = {answer_log.name_of(each): each for each, _ in own}
    return pack([(bound[note["name"]], answer_log.estimate_in(note)) for note in answer_log.notes_in(line)])


class FrontRequest:
    """One request of a person: the dataset as its endpoint sees it, and what the engine is told about the request."""

    def __init__(
        self, dataset: FrontDataset, engine: EngineDesk, token: str, endpoint: str, request: str, *, is_new: bool
    ) -> None:
        self.dataset, self.engine, self.token, self.endpoint, self.request = dataset, engine, token, endpoint, request
        self.is_new, self.is_noted = is_new, False  # in the rate, in the trail
        self.key: str | None = None
        self.digest = b""
        self.call: Call | None = None
        self._first: list[bool] = []  # of the questions that were answered last, which are new to the person

    @property
    def name(self) -> str:
        """Name of the dataset."""
        return self.dataset.name

    @property
    def is_published(self) -> bool:
        """True: what is not published is handed on."""
        return True

    @property
    def universe(self) -> None:
        """Nothing: the workers have it, and read every statement."""
        return None

    @property
    def session(self) -> Any:
        """Nothing: the table is elsewhere."""
        raise EngineNeeded

    async def run(self, *_: Any) -> Any:
        """Hand on what may charge."""
        raise EngineNeeded

    async def ask(
        self,
        analyst: str,
        queries: Sequence[Query],
        scale: Scale = "fraction",
        resolution: Resolution = "values",
        meter: Meter | None = None,
    ) -> list[Answer]:
        """Answer free questions, of the revision that the engine has."""
        names = [question_name(query, resolution) for query in queries]
        return await self._admitted(lambda: self.dataset.ask(analyst, queries, scale, resolution, meter), names)

    async def compute(
        self, analyst: str, name: str, *arguments: Any, question: str = "", key: tuple[Hashable, ...] = ()
    ) -> Any:
        """Do free work in a worker."""
        return await self._admitted(
            lambda: self.dataset.compute(analyst, name, *arguments, key=key), [question] if question else []
        )

    def count_new(self, analyst: str, count: int) -> None:
        """Count questions that the person asked for the first time."""
        self.dataset.count_new(analyst, count)

    async def _admitted(self, work: Callable[[], Awaitable[T]], questions: list[str]) -> T:
        """Do work, until the engine agrees that the person is given its answers. The request is then in the trail."""
        for _ in range(ROUNDS):
            revision = self.dataset.revision
            found, first = await work(), list[bool]()
            for start in range(0, max(1, len(questions)), LIGHT):
                verdict = await self.tell(200, questions=questions[start : start + LIGHT], revision=revision)
                if "is_stale" in verdict:
                    break
                first += verdict["first"]
            else:
                self._first += first
                return found
            await self.dataset.catch_up(revision)
        raise busy()

    async def tell(self, status: int | None = None, **more: Any) -> Any:
        """Tell the engine about this request. Return its verdict, or raise its refusal.

        With a status the request is noted in the trail, once.
        """
        asked = AdmissionRequest(
            self.token, self.dataset.name, self.endpoint, self.request, is_new=self.is_new, key=self.key,
            digest=self.digest, asked="" if self.call is None else self.call.asked[:LONGEST],
            status=None if self.is_noted else status, **more,
        )  # fmt: skip
        self.is_new = False
        verdict = await self.engine.admit(asked)
        self.is_noted = self.is_noted or (status is not None and "is_stale" not in verdict)
        return verdict

    # The trail, as an endpoint sees it

    def is_first(self, dataset: str, analyst: str, questions: Sequence[str]) -> list[bool]:
        """Tell for each question that was just answered whether the person asks it for the first time."""
        found, self._first = self._first[: len(questions)], self._first[len(questions) :]
        return found

    def add(
        self, token: Token, *, request: str, dataset: str, endpoint: str, asked: str, cost: float, status: int
    ) -> None:
        """Do nothing: a stream is in the trail before it begins, and a part of it that is refused costs nothing."""


class FrontAnswers:
    """The requests that a front answers itself."""

    def __init__(self, engine: EngineDesk, pool: WorkerPool, limits: Limits) -> None:
        self._engine, self._pool, self._limits = engine, pool, limits
        self._datasets: dict[str, FrontDataset] = {}
        self._unpublished: dict[str, float] = {}  # until when requests are handed on
        self._rate, self._wrong = Rate(limits.requests_per_minute), Rate(limits.wrong_tokens_per_minute)
        self._endpoints = [(each, compile_path(each.path)[0]) for each in ENDPOINTS if each.is_answered_by_fronts]
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Start the workers before the first request needs them."""
        self._begin_task(self._pool.start())

    def _begin_task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Finish what was begun, and end the workers."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._limits.seconds)
        await self._pool.close()

    async def serve(self, request: Request, path: str, body: bytes, identity: str) -> Response | None:
        """Answer a request, or return None if it must be handed on. Raise a refusal."""
        endpoint, name = self._endpoint(request.method, path)
        token = bearer_of(request)
        if (
            endpoint is None
            or not token
            or not NAME.fullmatch(name)
            or self._unpublished.get(name, 0.0) > time.monotonic()
        ):
            return None
        try:
            person, dataset, was_asked = await self._begin(request, token, endpoint, name, identity)
        except StateUnavailable:
            self._unpublished = {name: time.monotonic() + UNPUBLISHED, **dict(list(self._unpublished.items())[:1_000])}
            self._datasets.pop(name, None)
            return None
        asked = FrontRequest(dataset, self._engine, token, endpoint.name, identity, is_new=not was_asked)
        if endpoint.is_kept and (key := request.headers.get(HEADER)) is not None:
            asked.key, asked.digest = key, request_digest(key, endpoint.method, path, body)
        task = self._begin_task(self._answer(asked, endpoint, request, person, body))
        try:
            return await asyncio.wait_for(asyncio.shield(task), self._limits.seconds)
        except EngineNeeded:
            return None
        except StateUnavailable:
            self._datasets.pop(name, None)
            return None

    def _endpoint(self, method: str, path: str) -> tuple[Endpoint | None, str]:
        for endpoint, pattern in self._endpoints:
            found = pattern.match(path) if endpoint.method == method else None
            if found is not None:
                return endpoint, found["dataset"]
        return None, ""

    async def _begin(
        self, request: Request, token: str, endpoint: Endpoint, name: str, identity: str
    ) -> tuple[Token, FrontDataset, bool]:
        """Return the person and the dataset of a request. A token that was wrong is not tried often."""
        address = request.client.host if request.client else ""
        try:
            person, was_asked = await self._engine.person(token, name, endpoint.name, identity)
        except Refusal as refused:
            if refused.status == 401 and (wait := self._wrong.take(address)):
                raise too_many(wait) from None
            raise
        if wait := self._rate.take(person.id):
            raise too_many(wait)
        if name not in self._datasets:
            made = FrontDataset(name, self._engine, self._pool, self._limits)
            await made.catch_up("")
            if self._datasets.setdefault(name, made) is made:
                self._begin_task(made.warm())
        return person, self._datasets[name], was_asked

    async def _answer(
        self, asked: FrontRequest, endpoint: Endpoint, request: Request, person: Token, body: bytes
    ) -> Response:
        """Answer a free question from the public state, and leave what may be charged to the engine."""
        service: Any = Service({asked.name: asked}, None, asked, None, self._limits, None)  # type: ignore[arg-type, dict-item]
        try:
            content = decode_body(endpoint, request, body)
        except Refusal:
            await asked.tell()
            raise
        asked.call = call = Call(
            service, person, asked.request, content, request.query_params, {"dataset": asked.name},
            request.headers.get("accept", ""), request.is_disconnected,
        )  # fmt: skip
        if endpoint.charges(call) or asked.dataset.has_many_new(person.analyst):
            raise EngineNeeded
        _, response = await handle(endpoint, call, passes=(EngineNeeded, StateUnavailable))
        if not asked.is_noted:  # a refusal, or a stream that begins
            await asked.tell(response.status_code)
        return if_changed(request, response)


def busy() -> Refusal:
    """Return the refusal of work that was overtaken by purchases each time."""
    return Refusal(
        503, "busy", "The released values change too often",
        "The released values must stay the same while an answer is computed. Found that they change. Try again in a "
        "moment.",
        {"Retry-After": "1"},
    )  # fmt: skip
