"""Outcomes of requests with an idempotency key: a repeated request gets the stored outcome and is billed once.

The outcome is stored before it is sent. A service that was killed in between finds no outcome. The repeated request is
then asked again, and the ledger answers a question that was paid for from its own record.

A request that cannot charge is not stored: its repetition is computed again, at no cost, and has the same answer. Only
the digests of the latest ones are in memory, so that a key is not used for two different requests.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from hedgerow.server.problems import Refusal, bad_request
from hedgerow.server.registry import ServiceRegistry

HEADER = "idempotency-key"
LONGEST = 200  # characters of a key
KEPT = 7 * 86_400  # seconds that an outcome is kept
MOST = 10_000  # outcomes of one token that are kept; the oldest are removed, and their answers are in the ledger
FREE = 20_000  # keys of free requests that are remembered


@dataclass(frozen=True)
class StoredOutcome:
    """A stored response."""

    status: int
    body: bytes
    media: str


class OutcomeStore:
    """The stored outcomes of a service. ``process`` is the name of this life of the service."""

    def __init__(self, registry: ServiceRegistry, process: str, now: Callable[[], float] = time.time) -> None:
        self._registry, self._process, self._now = registry, process, now
        self._free: dict[tuple[str, str], bytes] = {}
        self._kept_of: dict[str, int] = {}

    def begin_free(self, token: str, key: str, digest: bytes) -> None:
        """Remember the key of a request that cannot charge. ``digest`` is that of ``request_digest``.

        A key that belongs to another request is refused.
        """
        found = self._free.pop((token, key), digest)
        self._free[token, key] = found
        if len(self._free) > FREE:
            self._free.pop(next(iter(self._free)))
        if found != digest:
            raise key_reused()

    def begin(self, token: str, key: str, digest: bytes) -> StoredOutcome | None:
        """Reserve a key for a request, or return the outcome that it has already.

        A key that belongs to another request, or to one that is still running, is refused.
        """
        if self._free.get((token, key), digest) != digest:
            raise key_reused()
        with self._registry.transaction():
            self._registry.write("DELETE FROM outcomes WHERE at < ?", (self._now() - KEPT,))
            found = self._registry.rows(
                "SELECT request, process, status, body, media FROM outcomes WHERE token = ? AND key = ?", (token, key)
            )
            if not found:
                self._make_room(token)
                self._registry.write(
                    "INSERT INTO outcomes (token, key, request, process, at) VALUES (?, ?, ?, ?, ?)",
                    (token, key, digest, self._process, self._now()),
                )
                return None
            request, process, status, content, media = found[0]
            if bytes(request) != digest:
                raise key_reused()
            if status is not None:
                return StoredOutcome(status, bytes(content), media)
            if process == self._process:
                raise Refusal(
                    409, "in-progress", "The request is still running",
                    "A request must end before it is repeated. Found it running. Repeat it in a moment.",
                    {"Retry-After": "1"},
                )  # fmt: skip
            self._registry.write(  # an earlier life of the service was stopped before it stored the outcome
                "UPDATE outcomes SET process = ?, at = ? WHERE token = ? AND key = ?",
                (self._process, self._now(), token, key),
            )
            return None

    def _make_room(self, token: str) -> None:
        """Remove the oldest outcomes of a token that has too many."""
        if token not in self._kept_of:
            ((self._kept_of[token],),) = self._registry.rows("SELECT count(*) FROM outcomes WHERE token = ?", (token,))
        self._kept_of[token] += 1
        if self._kept_of[token] > MOST:
            self._registry.write(
                "DELETE FROM outcomes WHERE token = ? AND status IS NOT NULL AND key IN (SELECT key FROM outcomes "
                "WHERE token = ? ORDER BY at LIMIT ?)",
                (token, token, MOST // 10),
            )
            del self._kept_of[token]

    def end(self, token: str, key: str, outcome: StoredOutcome) -> None:
        """Store an outcome."""
        self._registry.write(
            "UPDATE outcomes SET status = ?, body = ?, media = ? WHERE token = ? AND key = ?",
            (outcome.status, outcome.body, outcome.media, token, key),
        )

    def forget(self, token: str, key: str) -> None:
        """Free a key whose request failed for a passing reason, so that it may be repeated."""
        self._registry.write("DELETE FROM outcomes WHERE token = ? AND key = ? AND status IS NULL", (token, key))


def key_reused() -> Refusal:
    """Return the refusal of a key that belongs to another request."""
    return Refusal(
        422, "key-reused", "The idempotency key belongs to another request",
        "Idempotency-Key must be new for every new request. Found one of another request. Use a new one.",
    )  # fmt: skip


def request_digest(key: str, method: str, path: str, body: bytes) -> bytes:
    """Return the digest of a request, and refuse a key of another form."""
    if not key.isascii() or not key.isprintable() or not 0 < len(key) <= LONGEST:
        raise bad_request(
            f"Idempotency-Key must be up to {LONGEST} printable ASCII characters. Found another value. Use a UUID."
        )
    return hashlib.sha256(b"\0".join([method.encode(), path.encode(), body])).digest()
