"""Group commits: waiting changes of the registry are written in one transaction, outside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from hedgerow.server.registry import ServiceRegistry

T = TypeVar("T")


class GroupCommits:
    """The changes of a registry that wait to be written."""

    def __init__(self, registry: ServiceRegistry) -> None:
        self._registry = registry
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hedgerow-registry")
        self._waiting: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """Run work in a transaction, together with other work that waits now. It is on the disk when this returns.

        Work that raises an exception changes nothing, and does not stop the rest.
        """
        promise: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((work, promise))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        return await promise

    async def _write(self) -> None:
        """Write the waiting changes, group by group, and give each caller its outcome."""
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            works = [work for work, _ in waiting]
            outcomes: list[tuple[Any, Exception | None]]
            try:
                outcomes = await asyncio.get_running_loop().run_in_executor(self._thread, self._commit, works)
            except Exception as fault:  # nothing was written, for example because the disk is full
                outcomes = [(None, fault)] * len(works)
            for (_, promise), (value, refused) in zip(waiting, outcomes, strict=True):
                if promise.done():
                    continue
                if refused is None:
                    promise.set_result(value)
                else:
                    promise.set_exception(refused)

    def _commit(self, works: list[Callable[[], Any]]) -> list[tuple[Any, Exception | None]]:
        """Make all changes in one transaction. A change that fails is undone alone."""
        outcomes: list[tuple[Any, Exception | None]] = []
        with self._registry.transaction():
            for work in works:
                try:
                    with self._registry.transaction():  # a part of the other
                        outcomes.append((work(), None))
                except Exception as refused:
                    outcomes.append((None, refused))
        return outcomes

    async def close(self) -> None:
        """Write what waits."""
        if self._writing is not None:
            await self._writing
        self._thread.shutdown()
