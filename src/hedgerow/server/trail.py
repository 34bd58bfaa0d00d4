"""The audit trail: who asked what, when and at what cost; and which questions each analyst has asked before.

An analyst is a person within a project: two people of one name in two projects have two histories.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hedgerow.server.people import Token
from hedgerow.server.registry import ServiceRegistry

LONGEST = 2_000  # characters of a question that the trail keeps
LONGEST_NAME = 64  # characters of a dataset's name that it keeps
AT_MOST = 1_000  # requests that wait to be written
KEPT = 1_000_000  # requests of one analyst that are kept; of more, the oldest free ones are removed
SURPLUS = 1_000  # requests beyond that before any are removed
NAMED = 1_000_000  # questions of one analyst about a dataset that are recognized as asked before
RECENT = 100_000  # questions that are recognized without reading the file


Question = tuple[str, str, bytes]
"""A dataset, an analyst, and the digest of a question."""


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
    analyst: str


LAST = 2**62  # a number beyond every request's
COLUMNS = "number, at, request, person, token, dataset, endpoint, asked, cost, status, analyst"


class Trail:
    """The trail of a service.

    Requests are written together: free ones a moment later, paid ones before their answer is sent.
    """

    def __init__(
        self, registry: ServiceRegistry, now: Callable[[], float] = time.time, kept: int = KEPT, named: int = NAMED
    ) -> None:
        self._registry, self._now, self._kept, self._named = registry, now, kept, named
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._waiting: list[tuple[Any, ...]] = []
        self._new: dict[Question, None] = {}  # questions that wait to be written
        self._recent: dict[Question, None] = {}  # questions that are known to be asked, the latest last
        self._requests_of: dict[str, int] = {}  # how many requests of an analyst are in the file
        self._questions_of: dict[tuple[str, str], int] = {}  # how many questions of an analyst about a dataset are

    def add(
        self, token: Token, *, request: str, dataset: str, endpoint: str, asked: str, cost: float, status: int
    ) -> None:
        """Note one request, which ``flush`` writes."""
        named = dataset[:LONGEST_NAME]  # of a path, which may name no dataset
        row = (
            self._now(), request, token.person, token.id, named, endpoint, asked[:LONGEST], cost, status, token.analyst,
        )  # fmt: skip
        with self._lock:
            self._waiting.append(row)

    def flush(self) -> None:
        """Write what waits. Records that cannot be written stay in the queue."""
        with self._writing:
            with self._lock:
                rows, new = list(self._waiting), list(self._new)
            if not rows and not new:
                return
            with self._registry.transaction():
                if rows:
                    self._registry.insert_all(
                        "INSERT INTO requests (at, request, person, token, dataset, endpoint, asked, cost, status, "
                        "analyst) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        rows,
                    )
                if new:
                    self._registry.insert_all("INSERT OR IGNORE INTO questions VALUES (?, ?, ?)", new)
                for analyst, count in Counter(row[-1] for row in rows).items():
                    self._remove_surplus(analyst, count)
            with self._lock:
                del self._waiting[: len(rows)]
                for question in new:
                    del self._new[question]

    def _remove_surplus(self, analyst: str, count: int) -> None:
        """Keep an analyst's requests below the quota: remove the oldest that cost nothing. What was paid for stays."""
        if analyst in self._requests_of:
            found = self._requests_of[analyst] + count
        else:
            ((found,),) = self._registry.rows("SELECT count(*) FROM requests WHERE analyst = ?", (analyst,))
        if found > self._kept + min(SURPLUS, self._kept):
            found -= self._registry.write(
                "DELETE FROM requests WHERE number IN (SELECT number FROM requests WHERE analyst = ? AND cost = 0 "
                "ORDER BY number LIMIT ?)",
                (analyst, found - self._kept),
            )
        self._requests_of[analyst] = found

    def is_first(self, dataset: str, analyst: str, questions: Sequence[str]) -> list[bool]:
        """Tell for each question whether this analyst asks it for the first time, and remember that it was asked.

        Beyond the quota a question is not remembered, so its repetition looks like a first one.
        """
        found = []
        for question in questions:
            key = _question(dataset, analyst, question)
            is_known = self._is_known(key)
            if not is_known and self._has_room(dataset, analyst):
                with self._lock:
                    self._new[key] = None
            with self._lock:
                self._recent[key] = None
                if len(self._recent) > RECENT:
                    self._recent.pop(next(iter(self._recent)))
            found.append(not is_known)
        return found

    def knows(self, dataset: str, analyst: str, questions: Sequence[str]) -> bool:
        """Return True if this analyst has asked all of these questions before."""
        return all(self._is_known(_question(dataset, analyst, question)) for question in questions)

    def _is_known(self, key: Question) -> bool:
        with self._lock:
            is_known = key in self._recent or key in self._new
        return is_known or bool(
            self._registry.rows("SELECT 1 FROM questions WHERE dataset = ? AND person = ? AND question = ?", key)
        )

    def _has_room(self, dataset: str, analyst: str) -> bool:
        """Count one more question of an analyst, unless there are too many."""
        if (dataset, analyst) not in self._questions_of:
            statement = "SELECT count(*) FROM questions WHERE dataset = ? AND person = ?"
            ((self._questions_of[dataset, analyst],),) = self._registry.rows(statement, (dataset, analyst))
        self._questions_of[dataset, analyst] += 1
        return self._questions_of[dataset, analyst] <= self._named

    @property
    def is_due(self) -> bool:
        """True if so many requests wait that they should be written now."""
        return len(self._waiting) >= AT_MOST

    def requests(self, dataset: str, *, before: int | None = None, most: int = 100) -> list[TrailEntry]:
        """Return the latest requests about a dataset, newest first."""
        self.flush()
        rows = self._registry.rows(
            f"SELECT {COLUMNS} FROM requests WHERE dataset = ? AND number < ? ORDER BY number DESC LIMIT ?",
            (dataset, LAST if before is None else before, most),
        )
        return [TrailEntry(*row) for row in rows]

    def own_requests(
        self, dataset: str, analyst: str, *, before: int | None = None, most: int = 100
    ) -> list[TrailEntry]:
        """Return one analyst's latest requests about a dataset, newest first.

        They are numbered among themselves, because numbers among all requests would tell how much others ask.
        """
        self.flush()
        whose = "FROM requests WHERE dataset = ? AND analyst = ?"
        ((total,),) = self._registry.rows(f"SELECT count(*) {whose}", (dataset, analyst))
        last = total if before is None else max(0, min(total, before - 1))
        rows = self._registry.rows(
            f"SELECT {COLUMNS} {whose} ORDER BY number DESC LIMIT ? OFFSET ?", (dataset, analyst, most, total - last)
        )
        return [replace(TrailEntry(*row), number=last - k) for k, row in enumerate(rows)]


def _question(dataset: str, analyst: str, question: str) -> Question:
    return dataset, analyst, hashlib.blake2b(question.encode(), digest_size=16).digest()
