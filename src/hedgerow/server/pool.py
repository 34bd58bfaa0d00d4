"""The worker processes of a service: who does which free work, with which state, and for how long.

The first worker has the light work: small batches of counts and the like. The others have the heavy work: convex fits,
large batches, SQL and synthetic records. So heavy work of one analyst does not delay the small questions of another.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

from hedgerow.server import worker
from hedgerow.server.messages import pack, unpack
from hedgerow.server.problems import Refusal
from hedgerow.server.worker import Task, Work, WorkResult

LOG = logging.getLogger("hedgerow.server")
START = 120  # seconds that a worker may take to import its libraries, beside the time of its first task
LIGHT = 10.0  # seconds of a piece of light work, if there is another worker for it
NICENESS = 10  # of workers for heavy work, so that small questions have a processor when they come
PASSED = 8  # short pieces of work that go before a long one
REHEARSED = (
    4  # times that a purchase may take as long as its rehearsal: three attempts, and the intervals of the answer
)
ROUNDS = 4  # after so many purchases during one piece of work, its answer is noted before it is given


class PublishedState:
    """The public state of a dataset, and the answers that were given from it, as workers need them."""

    def __init__(self, state: bytes, given: bytes) -> None:
        self.version, self.state = 0, state
        self.given: list[tuple[object, bytes]] = [(None, given)]  # who gave them, and the pickled answers
        self.unadopted: list[bytes] = []  # answers that the session does not have yet
        self.replacements = 0  # times that the session gave answers in place of earlier ones
        self.begun = 0  # version with which the given answers begin: a front forgets them with an older state

    def release(self, state: bytes | None) -> None:
        """Replace the state after something was released."""
        if state is not None:
            self.state = state
        self.version += 1

    def add(self, who: object, answers: bytes) -> None:
        """Note answers that were given: by a worker, or with ``who`` None by the session itself."""
        self.given.append((who, answers))
        if who is not None:
            self.unadopted.append(answers)

    def restart(self, state: bytes) -> None:
        """Replace the state, and forget the answers that were given from the one before."""
        self.version += 1
        self.state, self.begun, self.given, self.unadopted = state, self.version, [], []

    def take_unadopted(self) -> list[bytes]:
        """Return the answers that the session does not have yet, once."""
        found, self.unadopted = self.unadopted, []
        return found


class WorkerKnowledge:
    """The version of one dataset that a worker has, and how many of the given answers it has been told."""

    def __init__(self) -> None:
        self.version, self.told, self.accepted, self.rejected = -1, 0, False, False


class WorkerTurns:
    """Turns of a worker. Short work goes before long work, which goes after so many short pieces nevertheless."""

    def __init__(self) -> None:
        self._is_taken, self._passed = False, 0
        self._short: deque[asyncio.Future[None]] = deque()
        self._long: deque[asyncio.Future[None]] = deque()

    @property
    def are_free(self) -> bool:
        """True if nobody has the turn."""
        return not self._is_taken

    @contextlib.asynccontextmanager
    async def one(self, *, is_long: bool) -> AsyncIterator[None]:
        """Take a turn when it comes."""
        if self._is_taken:
            mine = asyncio.get_running_loop().create_future()
            (self._long if is_long else self._short).append(mine)
            try:
                await mine
            except asyncio.CancelledError:
                if mine.done() and not mine.cancelled():
                    self._pass_on()
                raise
        self._is_taken = True
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        """Give the turn to the next one who waits."""
        for queue in (self._long, self._short) if self._passed >= PASSED else (self._short, self._long):
            while queue:
                following = queue.popleft()
                if not following.done():  # else its request was given up
                    self._passed = self._passed + 1 if queue is self._short and self._long else 0
                    following.set_result(None)
                    return
        self._is_taken = False


class WorkerProcess:
    """One worker process, which is started again when it ends."""

    def __init__(self, memory: int, niceness: int = 0) -> None:
        self._memory, self._niceness, self._context = memory, niceness, multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["hedgerow.server.worker"])
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hedgerow-worker")
        self._process: Any = None
        self._pipe: Connection | None = None
        self._known: dict[str, WorkerKnowledge] = {}
        self.turns = WorkerTurns()

    @property
    def pid(self) -> int | None:
        """The number of the process, while there is one."""
        return None if self._process is None else int(self._process.pid)

    async def do(self, dataset: str, published: PublishedState, work: Work, seconds: float) -> tuple[WorkResult, int]:
        """Do work with the state of now, and return the outcome with the version of that state.

        Call it within a turn.
        """
        version = published.version
        try:
            sent = await self._run(self._call, dataset, published, work, seconds)
        except (EOFError, OSError):  # the process has ended, perhaps before it got the task
            sent = await self._run(self._call, dataset, published, work, seconds)
        return sent, version

    def accept(self, dataset: str) -> None:
        """Note that the answers of the last task were given."""
        if dataset in self._known:
            self._known[dataset].accepted = True

    def reject(self, dataset: str) -> None:
        """Note that the answers of the last task were not given, because others were."""
        if dataset in self._known:
            self._known[dataset].rejected = True

    async def start(self) -> None:
        """Start the process before the first task needs it."""
        await self._run(self._require_process)

    async def close(self) -> None:
        """End the process."""
        await self._run(self._stop)
        self._thread.shutdown(wait=False)

    async def _run(self, call: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)

    def _call(self, dataset: str, published: PublishedState, work: Work, seconds: float) -> WorkResult:
        """Send a task and wait for its outcome, in the worker's thread."""
        is_new = self._require_process()
        known = self._known.setdefault(dataset, WorkerKnowledge())
        version, state, upto = published.version, published.state, len(published.given)
        if known.version < published.begun:
            known.told = 0
        given = tuple(blob for who, blob in published.given[known.told : upto] if who is not self and blob)
        if known.told == 0:  # a new process, which has forgotten its own answers too
            given = tuple(blob for _, blob in published.given[:upto] if blob)
        task = Task(dataset, state if known.version != version else None, given, known.accepted, known.rejected, work)
        pipe = self._pipe
        assert pipe is not None
        try:
            pipe.send_bytes(pack(task))
            if not pipe.poll(seconds + (START if is_new else 0)):
                self._stop()
                raise TimeoutError
            outcome: WorkResult = unpack(pipe.recv_bytes())
        except (EOFError, OSError) as ended:
            self._stop()
            if isinstance(ended, TimeoutError):
                raise _too_long(seconds) from None
            raise
        if outcome.fault:  # the worker may have learned only a part of the task
            LOG.error("worker: %s", outcome.fault)
            self._stop()
            raise RuntimeError("work in a worker process failed")
        known.version, known.told, known.accepted, known.rejected = version, upto, False, False
        return outcome

    def _require_process(self) -> bool:
        """Start the process if there is none, and return True if it was started."""
        if self._process is not None and self._process.is_alive():
            return False
        self._stop()
        self._pipe, theirs = self._context.Pipe()
        self._process = self._context.Process(
            target=worker.serve, args=(theirs, self._memory, self._niceness), daemon=True
        )
        self._process.start()
        theirs.close()
        return True

    def _stop(self) -> None:
        """Kill the process, and forget what it knew."""
        self._known.clear()
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            with contextlib.suppress(Exception):
                self._process.kill()
                self._process.join(10)
        self._process = self._pipe = None


class WorkerPool:
    """The workers of a service."""

    def __init__(self, workers: int, seconds: float, memory: int) -> None:
        self.seconds = seconds
        self.workers = [WorkerProcess(memory, NICENESS if number else 0) for number in range(workers)]

    async def start(self) -> None:
        """Start all workers."""
        await asyncio.gather(*(each.start() for each in self.workers))

    async def close(self) -> None:
        """End all workers."""
        await asyncio.gather(*(each.close() for each in self.workers))

    @contextlib.asynccontextmanager
    async def turn(self, *, is_heavy: bool, is_long: bool = False) -> Any:
        """Lend a worker: the first for light work, one of the others for heavy work. Short pieces go first."""
        fit = self.workers[1:] if is_heavy and len(self.workers) > 1 else self.workers[:1]
        free = [each for each in fit if each.turns.are_free]
        chosen = free[0] if free else fit[self._next(len(fit))]
        async with chosen.turns.one(is_long=is_long):
            yield chosen

    def _next(self, count: int) -> int:
        self._turned = (getattr(self, "_turned", -1) + 1) % count
        return self._turned

    async def do(
        self, worker: WorkerProcess, dataset: str, published: PublishedState, work: Work
    ) -> tuple[WorkResult, int]:
        """Do work in a lent worker. What takes the one for light work too long may be heavy, and others wait for it."""
        is_light = worker is self.workers[0] and len(self.workers) > 1
        seconds = self.seconds / REHEARSED if work[0] == "rehearse" else self.seconds
        return await worker.do(dataset, published, work, min(seconds, LIGHT) if is_light else seconds)


def _too_long(seconds: float) -> Refusal:
    return Refusal(
        413, "too-long", "The question takes longer than the limit",
        f"A question must take at most {seconds:g} seconds. Found that it takes longer. Ask less at a time, or a "
        "coarser one.",
    )  # fmt: skip
