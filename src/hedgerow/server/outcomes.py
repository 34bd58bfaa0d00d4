"""Outcomes of requests with an idempotency key: a repeated request gets the stored outcome and is billed once.

The outcome is stored before it is sent. A service that was killed in between finds no outcome. The repeated request is then
asked again, and the ledger answers a question that was paid for from its own record.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from hedgerow.server.problems import Problem, bad_request
from hedgerow.server.registry import Registry

HEADER = "idempotency-key"
LONGEST = 200  # characters of a key
KEPT = 7 * 86_400  # seconds that an outcome is kept


@dataclass(frozen=True)
class Outcome:
    """A stored response."""

    status: int
    body: bytes
    media: str


class Outcomes:
    """The stored outcomes of a service. ``process`` is the name of this life of the service."""

    def __init__(self, registry: Registry, process: str, now: Callable[[], float] = time.time) -> None:
        self._registry, self._process, self._now = registry, process, now

    def begin(self, token: str, key: str, method: str, path: str, body: bytes) -> Outcome | None:
        """Reserve a key for a request, or return the outcome that it has already.

        A key that belongs to another request, or to one that is still running, is refused.
        """
        if not key.isascii() or not key.isprintable() or not 0 < len(key) <= LONGEST:
            raise bad_request(
                f"Idempotency-Key must be up to {LONGEST} printable ASCII characters. Found another. Use a UUID."
            )
        digest = hashlib.sha256(b"\0".join([method.encode(), path.encode(), body])).digest()
        with self._registry.transaction():
            self._registry.write("DELETE FROM outcomes WHERE at < ?", (self._now() - KEPT,))
            found = self._registry.rows(
                "SELECT request, process, status, body, media FROM outcomes WHERE token = ? AND key = ?", (token, key)
            )
            if not found:
                self._registry.write(
                    "INSERT INTO outcomes (token, key, request, process, at) VALUES (?, ?, ?, ?, ?)",
                    (token, key, digest, self._process, self._now()),
                )
                return None
            request, process, status, content, media = found[0]
            if bytes(request) != digest:
                raise Problem(
                    422, "key-reused", "The idempotency key belongs to another request",
                    "Idempotency-Key must be new for every new request. Found one of another request. Use a new one.",
                )  # fmt: skip
            if status is not None:
                return Outcome(status, bytes(content), media)
            if process == self._process:
                raise Problem(
                    409, "in-progress", "The request is still running",
                    "A request must end before it is repeated. Found it running. Repeat it in a moment.",
                    {"Retry-After": "1"},
                )  # fmt: skip
            self._registry.write(  # an earlier life of the service was stopped before it stored the outcome
                "UPDATE outcomes SET process = ?, at = ? WHERE token = ? AND key = ?",
                (self._process, self._now(), token, key),
            )
            return None

    def end(self, token: str, key: str, outcome: Outcome) -> None:
        """Store an outcome."""
        self._registry.write(
            "UPDATE outcomes SET status = ?, body = ?, media = ? WHERE token = ? AND key = ?",
            (outcome.status, outcome.body, outcome.media, token, key),
        )

    def forget(self, token: str, key: str) -> None:
        """Free a key whose request failed for a passing reason, so that it may be repeated."""
        self._registry.write("DELETE FROM outcomes WHERE token = ? AND key = ? AND status IS NULL", (token, key))
