"""The time of the lines of a ledger."""

from __future__ import annotations

import time


def now() -> int:
    """Return the time in microseconds since 1970, UTC."""
    return time.time_ns() // 1000
