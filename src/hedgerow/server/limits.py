"""Rates: how many requests a token may make, and how many wrong tokens an address may try."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

REMEMBERED = 10_000  # keys whose rate is remembered; the oldest are forgotten first


class Rate:
    """A bucket for each key that fills at a steady rate and holds the worth of one minute, or of another time."""

    def __init__(self, most: int, now: Callable[[], float] = time.monotonic, seconds: float = 60.0) -> None:
        self._most, self._now, self._seconds = float(most), now, seconds
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str, count: int = 1) -> float:
        """Take a token from the key's bucket, unless it is empty. Return 0, or the seconds to wait if it is.

        The last ones may take more than there is, which the bucket makes up for later. Taking 0 only looks.
        """
        left = self._fill(key)
        enough = left >= 1
        self._keep(key, left - count if enough else left)
        return 0.0 if enough else (1 - left) * self._seconds / self._most

    def _fill(self, key: str) -> float:
        now = self._now()
        left, at = self._left.get(key, (self._most, now))
        return min(self._most, left + (now - at) * self._most / self._seconds)

    def _keep(self, key: str, left: float) -> None:
        self._left[key] = (left, self._now())
        self._left.move_to_end(key)
        if len(self._left) > REMEMBERED:
            self._left.popitem(last=False)
