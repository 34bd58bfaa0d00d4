"""The audit trail: who asked what, when and at what cost; and which questions each person has asked before."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hedgerow.server.people import Token
from hedgerow.server.registry import ServiceRegistry

LONGEST = 2_000  # characters of a question that the trail keeps
LONGEST_NAME = 64  # characters of a dataset's name that it keeps
AT_MOST = 1_000  # requests that wait to be written


@dataclass(frozen=True)
class TrailEntry:
    """One request of the trail."""

    number: int
    at: float
    request: str
    person: str
    token: str
    dataset: str
    endpoint: str
    asked: str
    cost: float
    status: int


LAST = 2**62  # a number beyond every request's
COLUMNS = "number, at, request, person, token, dataset, endpoint, asked, cost, status"


class Trail:
    """The trail of a service. Free requests are written together, a moment later; paid ones at once."""

    def __init__(self, registry: ServiceRegistry, now: Callable[[], float] = time.time) -> None:
        self._registry, self._now = registry, now
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._waiting: list[tuple[Any, ...]] = []
        self._new: dict[tuple[str, str, bytes], None] = {}  # questions that wait to be written

    def add(
        self, token: Token, *, request: str, dataset: str, endpoint: str, asked: str, cost: float, status: int
    ) -> None:
        """Note one request."""
        named = dataset[:LONGEST_NAME]  # of a path, which may name no dataset
        row = (self._now(), request, token.person, token.id, named, endpoint, asked[:LONGEST], cost, status)
        with self._lock:
            self._waiting.append(row)
            is_due = cost > 0 or len(self._waiting) >= AT_MOST
        if is_due:
            with contextlib.suppress(sqlite3.Error):  # else the entry waits, and is written later
                self.flush()

    def flush(self) -> None:
        """Write what waits. What cannot be written goes on waiting."""
        with self._writing:
            with self._lock:
                rows, new = list(self._waiting), list(self._new)
            if not rows and not new:
                return
            with self._registry.transaction():
                if rows:
                    self._registry.insert_all(
                        "INSERT INTO requests (at, request, person, token, dataset, endpoint, asked, cost, status) "
                        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        rows,
                    )
                if new:
                    self._registry.insert_all("INSERT OR IGNORE INTO questions VALUES (?, ?, ?)", new)
            with self._lock:
                del self._waiting[: len(rows)]
                for question in new:
                    del self._new[question]

    def is_first(self, dataset: str, person: str, questions: Sequence[str]) -> list[bool]:
        """Tell for each question whether this person asks it for the first time, and remember that it was asked."""
        found = []
        for question in questions:
            key = (dataset, person, hashlib.blake2b(question.encode(), digest_size=16).digest())
            with self._lock:
                is_known = key in self._new
            is_known = is_known or bool(
                self._registry.rows("SELECT 1 FROM questions WHERE dataset = ? AND person = ? AND question = ?", key)
            )
            if not is_known:
                with self._lock:
                    self._new[key] = None
            found.append(not is_known)
        return found

    def requests(
        self, dataset: str, *, person: str | None = None, before: int | None = None, most: int = 100
    ) -> list[TrailEntry]:
        """Return the latest requests about a dataset, of everybody or of one person, newest first."""
        self.flush()
        who = "" if person is None else "AND person = ? "
        rows = self._registry.rows(
            f"SELECT {COLUMNS} FROM requests WHERE dataset = ? {who}AND number < ? ORDER BY number DESC LIMIT ?",
            (dataset, *([] if person is None else [person]), LAST if before is None else before, most),
        )
        return [TrailEntry(*row) for row in rows]
