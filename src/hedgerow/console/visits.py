"""Visits: a token is exchanged for a cookie, and the browser never sees the token again.

The cookie has 256 random bits; the registry stores their SHA-256 digest, so visits survive a restart of the service. A
visit ends when the person signs out, when the token ends, after two hours without a request, and after twelve hours.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from hedgerow.privacy.noise import random_token
from hedgerow.server.people import Token, TokenStore
from hedgerow.server.registry import ServiceRegistry

LONGEST = 12 * 3600.0  # seconds of a visit
IDLE = 2 * 3600.0  # seconds without a request after which a visit ends
NOTED_EVERY = 60.0  # seconds between notes that a visit goes on


@dataclass(frozen=True)
class Visit:
    """A person who is signed in: their token's record, and the text that their forms must repeat."""

    token: Token
    form_key: str


class VisitStore:
    """The visits of a service's console."""

    def __init__(self, registry: ServiceRegistry, tokens: TokenStore, now: Callable[[], float] = time.time) -> None:
        self._registry, self._tokens, self._now = registry, tokens, now

    def begin(self, token: Token) -> str:
        """Begin a visit and return the value of its cookie. Visits that are over are forgotten."""
        cookie, now = random_token(32), self._now()
        self._registry.write("DELETE FROM visits WHERE created < ? OR seen < ?", (now - LONGEST, now - IDLE))
        self._registry.write("INSERT INTO visits VALUES (?, ?, ?, ?)", (_digest(cookie), token.id, now, now))
        return cookie

    def find(self, cookie: str) -> Visit | None:
        """Return the visit of a cookie, or None if there is none or it is over."""
        if not cookie:
            return None
        digest, now = _digest(cookie), self._now()
        found = self._registry.rows("SELECT token, created, seen FROM visits WHERE digest = ?", (digest,))
        if not found:
            return None
        ((identity, created, seen),) = found
        token = self._tokens.with_id(identity)
        if token is None or created < now - LONGEST or seen < now - IDLE:
            return None
        if seen < now - NOTED_EVERY:
            self._registry.write("UPDATE visits SET seen = ? WHERE digest = ?", (now, digest))
        return Visit(token, hashlib.sha256(f"form {cookie}".encode()).hexdigest()[:32])

    def end(self, cookie: str) -> None:
        """End the visit of a cookie."""
        self._registry.write("DELETE FROM visits WHERE digest = ?", (_digest(cookie),))


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()
