"""Wald's sequential test: stop as soon as the runs show whether failures are as rare as promised.

Each run multiplies the likelihood of a rate of ``worse`` over that of the promised ``rate``. While failures are at most as likely as promised the
product is a supermartingale, so by Ville it ever reaches 1 / ``false_fail`` with probability at most ``false_fail``; while they are at least as
likely as ``worse`` so is its inverse. These are the rates of runs_to_tell, with as many runs as it takes: few where a promise is kept with ease.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

FALSE_FAIL, FALSE_PASS = 1e-6, 1e-3


class Promise:
    """The promise that a run fails with probability at most ``rate``. It is broken at ``worse`` or more."""

    def __init__(self, rate: float, worse: float, false_fail: float = FALSE_FAIL, false_pass: float = FALSE_PASS):
        self._steps = math.log((1 - worse) / (1 - rate)), math.log(worse / rate)
        self._kept_at, self._broken_at = math.log(false_pass), -math.log(false_fail)
        self._ratio = 0.0

    @property
    def kept(self) -> bool:
        return self._ratio <= self._kept_at

    @property
    def broken(self) -> bool:
        return self._ratio >= self._broken_at

    @property
    def is_open(self) -> bool:
        return not self.kept and not self.broken

    def hear(self, failed: bool) -> None:
        """Add the outcome of one more run. A verdict once reached does not change."""
        if self.is_open:
            self._ratio += self._steps[bool(failed)]


def is_kept(failures: Iterable[bool], rate: float, worse: float, **errors: float) -> bool:
    """Return True if the promise is kept, from runs that go on until the test has decided."""
    promise = Promise(rate, worse, **errors)
    all_told(((failed,) for failed in failures), (promise,))
    return promise.kept


def all_told(runs: Iterable[tuple[bool, ...]], promises: tuple[Promise, ...]) -> None:
    """Runs on which several promises are judged, until every one is."""
    for found in runs:
        for promise, failed in zip(promises, found, strict=True):
            promise.hear(failed)
        if not any(promise.is_open for promise in promises):
            return
    raise AssertionError("the runs ended before they told")
