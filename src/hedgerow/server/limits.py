"""Rates: how many requests a token may make, and how many wrong tokens an address may try."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

REMEMBERED = 10_000  # keys whose rate is remembered; the oldest are forgotten first


class Rate:
    """A bucket for each key that fills at a steady rate and holds one minute's worth."""

    def __init__(self, per_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        self._most, self._now = float(per_minute), now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> float:
        """Take one from the key's bucket. Return 0, or the seconds to wait if the bucket is empty."""
        left = self._fill(key)
        enough = left >= 1
        self._keep(key, left - 1 if enough else left)
        return 0.0 if enough else (1 - left) * 60 / self._most

    def _fill(self, key: str) -> float:
        now = self._now()
        left, at = self._left.get(key, (self._most, now))
        return min(self._most, left + (now - at) * self._most / 60)

    def _keep(self, key: str, left: float) -> None:
        self._left[key] = (left, self._now())
        self._left.move_to_end(key)
        if len(self._left) > REMEMBERED:
            self._left.popitem(last=False)
