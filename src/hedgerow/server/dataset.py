"""One open session, and who answers about it: worker processes what is free, a thread of its own what may charge.

Free answers follow from released values, so worker processes give them from the public state of the session. A purchase
delays none of them. Everything that may read the table or charge the ledger runs in the session's one thread, in the
order of arrival. Purchases that wait at the same time are made one after the other and wait for the disk together: each
has its own price, cap, approval and refusal, as if it were alone. After a charge the workers get the new state; an
answer that was computed from the old one meanwhile is computed again.

Where free answers may depend on the table (a guard, the theory profile, several blocks), the session's thread gives
them too. Questions that wait at the same time are answered together. Answers are the same as if each had been asked
alone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice, zip_longest
from typing import Any, TypeVar

from hedgerow.answer import Answer
from hedgerow.errors import HedgerowError, LedgerUnavailable
from hedgerow.privacy.noise import random_token
from hedgerow.query.counts import Query
from hedgerow.release_file.replica import GivenAnswer, adopt_answers, given_answers, public_state, state_of_block
from hedgerow.server.answer_queue import MOST_NEW, AnswerQueue, AskedQuestions, Meter, Resolution, WaitingRequest
from hedgerow.server.heads import HeadFile
from hedgerow.server.journal import AnswerJournal
from hedgerow.server.messages import pack, unpack
from hedgerow.server.pool import ROUNDS, PublishedState, WorkerPool
from hedgerow.server.questions import NAMES
from hedgerow.server.shared_answers import GivenAnswers
from hedgerow.server.worker import LONG, Work, WorkResult
from hedgerow.session import Session
from hedgerow.universe.universe import Universe

TOGETHER = 100  # purchases that wait for the disk together
REHEARSALS = 1_000  # models that need not be rehearsed again
UNADOPTED = 200  # pieces of work whose answers wait for the session
T = TypeVar("T")


@dataclass(frozen=True)
class WaitingPurchase:
    """A purchase that waits for the session's thread, and the promise of its answer."""

    analyst: str
    work: Callable[[Session], Any]
    meter: Meter = field(compare=False)
    promise: asyncio.Future[Any] = field(compare=False)


class Dataset(AnswerQueue):
    """A session that is served."""

    def __init__(
        self,
        name: str,
        session: Session,
        most_waiting: int,
        most_of_one: int | None = None,
        pool: WorkerPool | None = None,
        journal: AnswerJournal | None = None,
        head: HeadFile | None = None,
        new_a_day: int = MOST_NEW,
        asked: AskedQuestions | None = None,
    ) -> None:
        super().__init__(name, most_waiting, most_of_one, new_a_day, asked)
        self._head = head
        if head is not None:
            head.note(session)
        self.session = session
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"hedgerow-{name}")
        self._pool, self._journal = pool, journal
        self._notes = set[asyncio.Future[int]]()  # that are being written
        self._noted = 0  # the last line of the journal
        self._settling: asyncio.Task[None] | None = None
        self._rehearsed: dict[tuple[str, str], None] = {}
        self._short: deque[WaitingPurchase] = deque()
        self._long: dict[str, deque[WaitingPurchase]] = {}
        self._selling: asyncio.Task[None] | None = None
        self._facts: dict[str, tuple[int, Any]] = {}
        self._changes = 0  # jobs that charged
        self._published: PublishedState | None = None
        if pool is not None:
            state = _pickled_state(session)
            if journal is not None:
                journal.adopt_into(name, session)
            if state is not None:
                self._published = PublishedState(state, pack(given_answers(session)))
        self.shared, self._life = GivenAnswers(), random_token(4)

    @property
    def is_published(self) -> bool:
        """True if free answers never depend on the table, so that worker processes give them."""
        return self._published is not None

    @property
    def universe(self) -> Universe:
        """The public universe."""
        return self.session.universe

    @property
    def version(self) -> str:
        """Name of the public state, in this life of the service."""
        return "" if self._published is None else f"{self._life}.{self._published.version}"

    @property
    def revision(self) -> str:
        """Name of the public state and of the answers that replaced others.

        Within a revision no given answer changes.
        """
        return "" if self._published is None else f"{self.version}.{self._published.replacements}"

    @property
    def published(self) -> PublishedState | None:
        """The public state and the answers that were given from it, or None if free answers may depend on the table."""
        return self._published

    # Free answers

    async def warm(self) -> None:
        """Let every worker load what its first question needs."""
        if self._pool is not None and self._published is not None:
            await self.warm_workers(self._pool, self._published)

    async def _do(self, work: Work, *, is_heavy: bool) -> WorkResult:
        """Do work in a worker, until nothing was released meanwhile. Note its new answers as given."""
        pool, published, rounds = self._pool, self._published, 0
        assert pool is not None and published is not None
        async with pool.turn(is_heavy=is_heavy, is_long=work[0] in LONG) as worker:
            while True:
                outcome: WorkResult
                accepted = self.shared.count
                outcome, version = await pool.do(worker, self.name, published, work)
                is_stale, rounds = version != published.version, rounds + 1
                if is_stale and rounds < ROUNDS:
                    continue
                if outcome.fresh and self.shared.count != accepted and self.shared.has_any(outcome.fresh):
                    worker.reject(self.name)  # a front gave an answer first, which the worker repeats
                    continue
                break
            if outcome.refusal is not None:
                raise outcome.refusal
            if outcome.fresh:
                worker.accept(self.name)
                published.add(worker, outcome.fresh)
        if outcome.fresh:
            await self.note_given(outcome.fresh)
        else:
            await self.wait_for_notes()
        if outcome.fresh and is_stale:
            self.settle_soon()
        else:
            self.settle_if_due()
        return outcome

    async def rehearse(self, analyst: str, query: Query, resolution: Resolution) -> None:
        """Fit a model to what was released, in a worker, and refuse one that takes too long or too much memory there.

        A purchase of it, or a fit whose answer may depend on the table, then takes a few times as much of the session's
        thread. In the theory profile, and without workers, nothing is rehearsed.
        """
        pool = self._pool
        if pool is None or not query.is_convex:
            return
        if self.is_published:
            await self.compute(analyst, "rehearse", query, resolution, key=(NAMES.of(query), resolution))
            return
        name = (NAMES.of(query), resolution)
        if name in self._rehearsed:
            return
        with self.room(analyst):
            for block, state in (await self.read("states of blocks", _states_of_blocks)).items():
                published = PublishedState(state, b"")
                published.version = self._changes
                async with pool.turn(is_heavy=True, is_long=True) as worker:
                    outcome, _ = await pool.do(
                        worker, f"{self.name} {block}", published, ("rehearse", (query, resolution))
                    )
                if outcome.refusal is not None:
                    raise outcome.refusal
        self._rehearsed[name] = None
        if len(self._rehearsed) > REHEARSALS:
            self._rehearsed.pop(next(iter(self._rehearsed)))

    async def note_given(self, answers: bytes) -> None:
        """Write answers down that are given now: a later charge would change them, also in another life."""
        if self._journal is None:
            return
        note = asyncio.ensure_future(self._journal.note(self.name, answers))
        self._notes.add(note)
        try:
            self._noted = max(self._noted, await note)
        finally:
            self._notes.discard(note)
        await self.wait_for_notes()

    async def wait_for_notes(self) -> None:
        """Wait until the answers that are given now are written down: no answer repeats one sooner."""
        for note in list(self._notes):
            await asyncio.shield(note)

    async def _answer_elsewhere(self, batch: Sequence[WaitingRequest]) -> list[list[Answer] | BaseException]:
        """Answer a batch in the session's thread."""
        return await self._in_thread(lambda: self._answer(batch), Meter())

    # The session's thread

    async def run(self, analyst: str, work: Callable[[Session], T], meter: Meter | None = None) -> T:
        """Run work on the session in its thread, on behalf of an analyst. It may charge, which the meter shows."""

        def on_behalf() -> T:
            with self.session.on_behalf_of(analyst):
                return work(self.session)

        with self.room(analyst):
            return await self._in_thread(on_behalf, meter or Meter())

    async def sell(self, analyst: str, work: Callable[[Session], T], meter: Meter, *, is_long: bool = False) -> T:
        """Make a purchase on behalf of an analyst, beside others that wait now. The meter shows its charge alone.

        Long ones are made one at a time, in turn of their people, and short ones that wait go before each of them.
        """
        with self.room(analyst):
            promise = asyncio.get_running_loop().create_future()
            purchase = WaitingPurchase(analyst, work, meter, promise)
            if is_long:
                self._long.setdefault(analyst, deque()).append(purchase)
            else:
                self._short.append(purchase)
            if self._selling is None or self._selling.done():
                self._selling = asyncio.create_task(self._sell())
            return await promise  # type: ignore[no-any-return]

    async def _sell(self) -> None:
        """Make waiting purchases until there are none. A fault of all together is the outcome of each."""
        while self._short or self._long:
            parts = [[self._short.popleft() for _ in range(min(TOGETHER, len(self._short)))], self._next_long()]
            for part in filter(None, parts):
                wanted = [each for each in part if not each.promise.done()]  # else its request was given up
                found: list[Any]
                try:
                    found = await self._in_thread(partial(self._make, wanted), Meter())
                except Exception as fault:  # nobody may wait for an answer that will not come
                    found = [fault] * len(wanted)
                for each, outcome in zip(wanted, found, strict=True):
                    if each.promise.done():
                        continue
                    if isinstance(outcome, BaseException):
                        each.promise.set_exception(outcome)
                    else:
                        each.promise.set_result(outcome)

    def _next_long(self) -> list[WaitingPurchase]:
        """Return the first long purchase of the person whose turn it is."""
        for analyst in list(self._long):
            waiting = self._long.pop(analyst)
            first = waiting.popleft()
            if waiting:
                self._long[analyst] = waiting  # behind the others
            return [first]
        return []

    def _make(self, purchases: Sequence[WaitingPurchase]) -> list[Any]:
        """Make purchases in the session's thread. Each has its answer or its own refusal, once all are on the disk."""
        session, outcomes = self.session, list[Any]()
        with contextlib.ExitStack() as group:
            for block in session.blocks.values():
                group.enter_context(block.ledger.committing_once())
            for each in purchases:
                before = charges_of(session)
                try:
                    with session.on_behalf_of(each.analyst):
                        outcomes.append(run_plainly(lambda each=each: each.work(session)))  # type: ignore[misc]
                except Exception as fault:  # a refusal or a fault of one must not stop the others
                    outcomes.append(fault)
                finally:
                    each.meter.cost += cost_since(session, before)
        return outcomes

    async def read(self, name: str, work: Callable[[Session], T]) -> T:
        """Return a public fact that changes with charges only. It is computed once after each."""
        known = self._facts.get(name)
        if known is None or known[0] != self._changes:
            now = self._changes
            known = self._facts[name] = (now, await self._in_thread(lambda: work(self.session), Meter()))
        return known[1]  # type: ignore[no-any-return]

    async def _in_thread(self, work: Callable[[], T], meter: Meter) -> T:
        """Run work in the session's thread. Tell the workers afterwards what it released and answered."""
        given = [] if self._published is None else self._published.take_unadopted()
        job = Job(self.session, given, self._head, is_published=self._published is not None)
        try:
            value = await asyncio.get_running_loop().run_in_executor(self._thread, job.run, work)
        finally:
            meter.cost += job.cost
            self._changes += job.has_released
            if self._published is not None:
                if not job.has_adopted:  # the ledger could not be reached; the next job adopts them
                    self._published.unadopted[:0] = given
                if job.has_released and job.state is None:
                    self._published = None  # its thread answers from now on
                elif job.has_released:
                    self._published.release(job.state)
                    self.forget_repeats()
                if job.kept and self._published is not None:
                    self._published.add(None, job.kept)
                    self.forget_repeats()
                    if job.has_replaced or (self.shared.count and self.shared.has_any(job.kept)):
                        self._published.replacements += 1
        return value

    def settle_if_due(self) -> None:
        """Let the session adopt the answers of workers and fronts, if there are many."""
        if self._published is not None and len(self._published.unadopted) > UNADOPTED:
            self.settle_soon()

    def settle_soon(self) -> None:
        """Let the session adopt the answers of workers and fronts."""
        if self._settling is None or self._settling.done():
            self._settling = asyncio.create_task(self._settle())

    async def _settle(self) -> None:
        """Let the session adopt the answers of workers, and finish the lines of the journal."""
        upto = self._noted
        with contextlib.suppress(HedgerowError):  # it is tried again with the next job
            await self._in_thread(self._flush, Meter())
            if self._journal is not None and upto:
                await self._journal.end(self.name, upto)

    def _flush(self) -> None:
        for block in self.session.blocks.values():
            if (flush := getattr(block.ledger, "flush", None)) is not None:
                flush()

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
                for asked, answered in zip(group[1:], outcomes[-len(group) :][1:], strict=True):
                    cost = sum(answer.cost for answer in answered)  # type: ignore[union-attr, misc]
                    asked.meter.cost += cost  # the first has what is left
                    group[0].meter.cost -= cost
        return outcomes

    def _outcome(self, like: WaitingRequest, queries: Sequence[Query]) -> list[Answer] | BaseException:
        """Return the answers to questions of one kind of request, or the refusal of the first that is refused.

        The whole charge is on the meter of the request.
        """

        def ask() -> list[Answer]:
            with self.session.on_behalf_of(like.analyst):
                return self.session.ask_all(list(queries), scale=like.scale, resolution=like.resolution, progress=False)

        before = charges_of(self.session)
        try:
            return run_plainly(ask)
        except Exception as fault:  # a refusal or a fault of one request must not stop the requests of others
            return fault
        finally:
            like.meter.cost += cost_since(self.session, before)

    async def close(self) -> None:
        """Answer the waiting requests, then close the session."""
        await self.finish()
        if self._selling is not None:
            await self._selling
        if self._settling is not None:
            await self._settling
        await self._settle()
        await asyncio.get_running_loop().run_in_executor(self._thread, self.session.close)
        self._thread.shutdown()


class Job:
    """Work in the session's thread, with what it charged, released and answered."""

    def __init__(
        self, session: Session, given: Sequence[bytes], head: HeadFile | None = None, *, is_published: bool
    ) -> None:
        self._session, self._given, self._head, self._is_published = session, given, head, is_published
        self.cost, self.has_released, self.has_adopted, self.has_replaced = 0.0, False, False, False
        self.state: bytes | None = None
        self.kept = b""

    def run(self, work: Callable[[], T]) -> T:
        """Adopt earlier answers of workers, then do the work."""
        session, kept = self._session, list[GivenAnswer]()

        def keep(bound: Any, estimate: Any, is_better: bool) -> None:
            kept.append((bound, estimate))
            self.has_replaced |= is_better

        blocks = list(session.blocks.values())
        if self._is_published:
            for blob in self._given:
                adopt_answers(session, unpack(blob))
            self.has_adopted = True
            blocks[0].cache.watcher = keep
        before, spent = charges_of(session), [block.ledger.spent for block in blocks]
        is_on_disk = True
        try:
            return run_plainly(work)
        except LedgerUnavailable:  # the release may not be on the disk, so nobody may see it
            is_on_disk = False
            raise
        finally:
            self.cost = cost_since(session, before)
            self.has_released = is_on_disk and (
                charges_of(session) != before or [block.ledger.spent for block in blocks] != spent
            )
            if self._is_published:
                blocks[0].cache.watcher = None
                self.state = _pickled_state(session) if self.has_released else None
                self.kept = pack(kept) if kept and is_on_disk else b""
            if self._head is not None and self.has_released:
                self._head.note(session)


def charges_of(session: Session) -> list[float]:
    """Return what this process has charged to each block."""
    return [block.ledger.charged for block in session.blocks.values()]


def cost_since(session: Session, before: Sequence[float]) -> float:
    """Return what was charged since then: a row is in one block only, so it is the charge of the block that paid most.

    A block that was appended since then had paid nothing.
    """
    return max(now - then for now, then in zip_longest(charges_of(session), before, fillvalue=0.0))


def _pickled_state(session: Session) -> bytes | None:
    """Return the public state of a session for workers, or None if its free answers may depend on the table."""
    state = public_state(session)
    if state is None:
        return None
    try:
        return pack(state)
    except Exception:  # a loss that is the owner's own code stays in this process
        return None


def _states_of_blocks(session: Session) -> dict[str, bytes]:
    """Return what was released about each block, pickled, as far as models can be fitted to it."""
    states = {name: state_of_block(block, session.private) for name, block in session.blocks.items()}
    return {name: pack(state) for name, state in states.items() if state is not None}


def run_plainly(work: Callable[[], T]) -> T:
    """Run work, and raise what a future cannot carry, such as a panic of native code, as an ordinary fault."""
    try:
        return work()
    except BaseException as fault:
        if isinstance(fault, Exception) and not isinstance(fault, StopIteration):
            raise
        raise RuntimeError(type(fault).__name__).with_traceback(fault.__traceback__) from None
