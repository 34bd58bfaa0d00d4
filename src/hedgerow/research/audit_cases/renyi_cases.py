"""Exact losses of whole budgets that buy rounds of hits, or the best of a random number of runs.

Neighbours. Tests lose most where "yes" is as likely as "no", and every value moves the same way. Each run gives one
number, which one row moves by the whole sensitivity, and the largest is released.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import scipy  # a lazy import: scipy loads its submodules when they are first named

from hedgerow._types import Array
from hedgerow.audit import exact
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.renyi_events import HitRound, RandomRuns
from hedgerow.research.audit_cases.gallery import EpsilonEvidence

OF_HITS, ROUNDS, TESTS = Budget(1.0, 1e-3), 2, 60
OF_RUNS, RUNS = Budget(2.0, 1e-3), 2.0
TINY = 1e-300  # keeps the logarithm of an outcome that float64 rounds to 0


def hits_loss() -> EpsilonEvidence:
    """Compute the loss of rounds of many tests, each with a value at the threshold on one of two neighbours."""
    event = HitRound(1.0, Amount.share_of(OF_HITS).hit_epsilon(ROUNDS))
    found = 0.0
    for distance in (-1.0, 0.0, 1.0):
        low, high = [distance] * TESTS, [distance + 1.0] * TESTS
        each = [exact.hit_round_pair(low, high, event)] * ROUNDS
        found = max(found, functools.reduce(exact.Pair.then, each).epsilon_at(OF_HITS.delta))
    return EpsilonEvidence(found)


def runs_loss() -> EpsilonEvidence:
    """Compute the loss of the best of a random number of runs, each a number with Gaussian noise."""

    def room(each: float) -> float:
        return OF_RUNS.cost(RandomRuns(each, RUNS)) - OF_RUNS.total

    each = float(scipy.optimize.brentq(room, 1e-9, OF_RUNS.total)) * (1 - 1e-9)
    event, shift = RandomRuns(each, RUNS), math.sqrt(2 * each)
    ends = np.linspace(-8.0, 8.0 + shift, 4000)
    laws = [np.diff(scipy.special.ndtr(np.concatenate([[-np.inf], ends - moved, [np.inf]]))) for moved in (0.0, shift)]
    p, q = (best_law(law, event) + TINY for law in laws)
    return EpsilonEvidence(exact.Pair.of(p, q).epsilon_at(OF_RUNS.delta))


def best_law(law: Array, event: RandomRuns) -> Array:
    """Return the law of the best of K draws from a law of outcomes, the worst first: f(P[≤ y]) − f(P[< y])."""
    below = np.concatenate([[0.0], np.cumsum(law)])
    return np.asarray(np.diff(np.expm1(event.mean * below) / math.expm1(event.mean)))
