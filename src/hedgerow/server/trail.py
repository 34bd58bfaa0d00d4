"""The audit trail: who asked what, when and at what cost; and which questions each person has asked before."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hedgerow.server.people import Token
from hedgerow.server.registry import Registry

LONGEST = 2_000  # characters of a question that the trail keeps
AT_MOST = 1_000  # requests that wait to be written


@dataclass(frozen=True)
class Request:
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


COLUMNS = "number, at, request, person, token, dataset, endpoint, asked, cost, status"


class Trail:
    """The trail of a service. Free requests are written together, a moment later; paid ones at once."""

    def __init__(self, registry: Registry, now: Callable[[], float] = time.time) -> None:
        self._registry, self._now, self._lock = registry, now, threading.Lock()
        self._waiting: list[tuple[Any, ...]] = []
        self._asked: dict[tuple[str, str], set[bytes]] = {}
        self._new: list[tuple[str, str, bytes]] = []

    def add(
        self, token: Token, *, request: str, dataset: str, endpoint: str, asked: str, cost: float, status: int
    ) -> None:
        """Note one request."""
        row = (self._now(), request, token.person, token.id, dataset, endpoint, asked[:LONGEST], cost, status)
        with self._lock:
            self._waiting.append(row)
            is_due = cost > 0 or len(self._waiting) >= AT_MOST
        if is_due:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        with self._lock:
            rows, self._waiting = self._waiting, []
            new, self._new = self._new, []
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

    def is_first(self, dataset: str, person: str, questions: Sequence[str]) -> list[bool]:
        """Tell for each question whether this person asks it for the first time, and remember that it was asked."""
        key = (dataset, person)
        with self._lock:
            known = self._asked.get(key)
            if known is None:
                rows = self._registry.rows("SELECT question FROM questions WHERE dataset = ? AND person = ?", key)
                known = self._asked[key] = {bytes(row[0]) for row in rows}
            found = []
            for question in questions:
                digest = hashlib.blake2b(question.encode(), digest_size=16).digest()
                found.append(digest not in known)
                if digest not in known:
                    known.add(digest)
                    self._new.append((dataset, person, digest))
            return found

    def requests(
        self, dataset: str, *, person: str | None = None, before: int | None = None, most: int = 100
    ) -> list[Request]:
        """Return the latest requests about a dataset, of everybody or of one person, newest first."""
        self.flush()
        rows = self._registry.rows(
            f"SELECT {COLUMNS} FROM requests WHERE dataset = ? AND (? IS NULL OR person = ?) AND (? IS NULL OR number < ?) "
            "ORDER BY number DESC LIMIT ?",
            (dataset, person, person, before, before, most),
        )
        return [Request(*row) for row in rows]
