"""The sequential test has its stated error rates, computed exactly."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sequential import Promise, all_told, is_kept

RATE, WORSE = 0.1, 0.3


def said_kept(rate: float, false_fail: float, false_pass: float) -> tuple[float, float]:
    """The probabilities that runs of this rate are said to keep the promise, and to break it: over all numbers of failures."""
    open_, kept, broken = {0: 1.0}, 0.0, 0.0  # by failures, while nothing is said
    for runs in range(1, 800):
        after: dict[int, float] = {}
        for failures, mass in open_.items():
            after[failures] = after.get(failures, 0.0) + mass * (1 - rate)
            after[failures + 1] = after.get(failures + 1, 0.0) + mass * rate
        open_ = {}
        for failures, mass in after.items():
            promise = Promise(RATE, WORSE, false_fail, false_pass)
            promise._ratio = float(np.dot((runs - failures, failures), promise._steps))
            kept, broken = kept + mass * promise.kept, broken + mass * promise.broken
            if promise.is_open:
                open_[failures] = mass
    assert sum(open_.values()) < 1e-9
    return kept, broken


@pytest.mark.parametrize(("false_fail", "false_pass"), [(1e-6, 1e-3), (0.01, 0.05)])
def test_both_errors_are_at_most_what_is_stated_and_not_much_less(false_fail: float, false_pass: float) -> None:
    _, broken = said_kept(RATE, false_fail, false_pass)
    assert false_fail / 10 < broken <= false_fail
    kept, _ = said_kept(WORSE, false_fail, false_pass)
    assert false_pass / 10 < kept <= false_pass


def test_runs_that_never_fail_or_always_do_are_told_soon() -> None:
    never, always = itertools.repeat(False), itertools.repeat(True)
    assert is_kept(itertools.islice(never, 28), RATE, WORSE) and not is_kept(itertools.islice(always, 13), RATE, WORSE)
    with pytest.raises(AssertionError, match="ended before they told"):
        is_kept(itertools.islice(never, 27), RATE, WORSE)


def test_several_promises_are_judged_on_the_same_runs_until_all_are() -> None:
    good, bad = Promise(RATE, WORSE), Promise(RATE, WORSE)
    runs = iter([(False, True)] * 100)
    all_told(runs, (good, bad))
    assert good.kept and bad.broken and 100 - len(list(runs)) == 28
