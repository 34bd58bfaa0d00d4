"""Empirical privacy: lower bounds on ε from runs on two neighbours, and the runs that a claim about a rate takes.

Papers: Ding et al., *Detecting violations of differential privacy*; Jagielski, Ullman & Oprea, *Auditing differentially
private machine learning*; Clopper & Pearson, *The use of confidence or fiducial limits*.

Symbols: for an (ε, δ)-private M, neighbours D, D′ and any event S, P[M(D) ∈ S] ≤ e^ε·P[M(D′) ∈ S] + δ. So ln((p − δ)/q)
is a lower bound on ε, with p bounded from below and q from above by Clopper–Pearson.

A bound above the claim refutes it, at the stated confidence. A bound below it proves nothing, because another event or
another pair of neighbours may be worse: the proofs are in docs/proofs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, bdtrc, betaincinv

from hedgerow.errors import InvalidInput

_CHOOSE = 4  # one in this many runs is used to choose the event
_THRESHOLDS = 500  # at most this many thresholds are tried
_DOUBT = 0.1  # error probability of the bounds that only choose an event


def epsilon_lower_bound(
    run: Callable[[], Hashable],
    run_neighbour: Callable[[], Hashable],
    runs: int,
    *,
    confidence: float = 0.999,
    delta: float = 0.0,
) -> float:
    """Return a lower bound on ε, at the confidence, from ``runs`` outputs on each of two neighbours.

    The first half of the runs chooses, in either direction, the event that best tells the neighbours apart: the outputs
    with the highest likelihood ratio. The second half, independent of the choice, bounds the two probabilities of the
    event.

    Parameters
    ----------
    run, run_neighbour : callable
        Functions that return one output on the data and on the neighbour. There should be few different outputs, so
        discretize continuous ones.
    runs : int
        The number of runs on each neighbour, at least 2.
    confidence : float
        The probability with which the bound holds.
    delta : float
        The δ of the claim.

    Returns
    -------
    float
        The lower bound on ε, at least 0.

    Raises
    ------
    InvalidInput
        If a parameter is out of range.

    Example
    -------
    >>> rng = np.random.default_rng(0)
    >>> tell = lambda p: bool(rng.random() < p)
    >>> bound = hr.audit.epsilon_lower_bound(lambda: tell(0.75), lambda: tell(0.25), runs=2000)
    >>> 0 < bound < 1.1  # the truth is ln 3, and the bound is below it with the confidence
    True
    """
    half = runs // 2
    _require(half >= 1, runs, 2, confidence, delta)
    seen, other = Counter(run() for _ in range(half)), Counter(run_neighbour() for _ in range(half))
    events = [_best_event(seen, other, half, delta), _best_event(other, seen, half, delta)]
    seen, other = Counter(run() for _ in range(half)), Counter(run_neighbour() for _ in range(half))
    error = (1 - confidence) / 4  # two directions, two probabilities each
    forward = _bound(_hits(seen, events[0]), _hits(other, events[0]), half, delta, error)
    backward = _bound(_hits(other, events[1]), _hits(seen, events[1]), half, delta, error)
    return max(0.0, forward, backward)


def epsilon_lower_bound_of_scores(
    scores: ArrayLike, neighbour_scores: ArrayLike, *, confidence: float = 0.999, delta: float = 0.0
) -> float:
    """Return a lower bound on ε, at the confidence, from one number for each run on either of two neighbours.

    The first quarter of the runs chooses one event, "at least t" or "at most t", and the neighbour for which it speaks.
    The other runs, independent of the choice, bound its two probabilities. If the likelihood ratio is monotone in the
    number, as for a sum with noise, no event tells the neighbours apart better than the best of these. One event needs
    half as many bounds as ``epsilon_lower_bound``, and no bins.

    Parameters
    ----------
    scores, neighbour_scores : array
        One number per run.
    confidence : float
        The probability with which the bound holds.
    delta : float
        The δ of the claim.

    Returns
    -------
    float
        The lower bound on ε, at least 0.

    Raises
    ------
    InvalidInput
        If the scores are not numbers, or are too few.

    Example
    -------
    >>> rng = np.random.default_rng(0)
    >>> bound = hr.audit.epsilon_lower_bound_of_scores(rng.laplace(1.0, size=4000), rng.laplace(0.0, size=4000))
    >>> bool(0 < bound < 1)
    True
    """
    first, second = np.asarray(scores, dtype=float), np.asarray(neighbour_scores, dtype=float)
    if first.ndim != 1 or second.ndim != 1 or np.isnan(first).any() or np.isnan(second).any():
        raise InvalidInput(
            "scores must be one number for each run. Found other axes, or NaN. Give two lists of numbers."
        )
    runs = min(first.size, second.size)
    _require(runs >= _CHOOSE, runs, _CHOOSE, confidence, delta)
    chosen = chosen_runs(runs)
    event = best_tail(first[:chosen], second[:chosen], runs - chosen, delta=delta, confidence=confidence)
    hits = event.hits(first[chosen:runs]), event.hits(second[chosen:runs])
    return bound_of_hits(*(hits if event.for_first else hits[::-1]), runs - chosen, delta=delta, confidence=confidence)


@final
@dataclass(frozen=True)
class Tail:
    """The event "at least t" or "at most t", the neighbour for which it speaks, and the bound on ε that it promises."""

    threshold: float
    at_least: bool
    for_first: bool
    promise: float

    def hits(self, scores: NDArray[np.float64]) -> int:
        """Return the number of scores in the event."""
        return int(np.count_nonzero(scores >= self.threshold if self.at_least else scores <= self.threshold))

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.threshold:.4g}"


def best_tail(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    judged: int,
    *,
    delta: float = 0.0,
    confidence: float = 0.999,
) -> Tail:
    """Return the event of two lists of scores that promises most for the given number of judged runs.

    Its probabilities are estimated with some doubt.
    """
    thresholds = np.unique(np.concatenate([first, second]))
    thresholds = thresholds[:: math.ceil(thresholds.size / _THRESHOLDS)]
    p, q = _tail_probabilities(first, second, thresholds)
    error = (1 - confidence) / 2
    low = betaincinv(np.maximum(p * judged, 1e-9), judged - p * judged + 1, error)
    high = np.where(q < 1, betaincinv(q * judged + 1, np.maximum(judged - q * judged, 1e-9), 1 - error), 1.0)
    with np.errstate(divide="ignore"):
        promises = np.log(np.maximum(low - delta, 0.0) / high)
    family, i = np.unravel_index(np.argmax(promises), promises.shape)
    return Tail(float(thresholds[i]), bool(family < 2), bool(family % 2 == 0), float(promises[family, i]))


def bound_of_hits(hits: int, neighbor_hits: int, runs: int, *, delta: float = 0.0, confidence: float = 0.999) -> float:
    """Return a lower bound on ε from the hits of one event in the same number of runs on either neighbour.

    The event must have been chosen beforehand.
    """
    _require(runs >= 1, runs, 1, confidence, delta)
    return max(0.0, _bound(hits, neighbor_hits, runs, delta, (1 - confidence) / 2))  # two probabilities share the error


def chosen_runs(runs: int) -> int:
    """Return the number of scores that choose the event. The others judge it."""
    return runs // _CHOOSE


def reachable_epsilon(judged: int, *, confidence: float = 0.999, delta: float = 0.0) -> float:
    """Return the largest bound that this many judged runs on each neighbour can give.

    It is reached if the event always happens on one neighbour and never on the other. An audit says nothing about
    larger losses; these take more runs.

    Parameters
    ----------
    judged : int
        The number of runs that judge the event.
    confidence, delta : float
        As in ``epsilon_lower_bound``.

    Returns
    -------
    float

    Raises
    ------
    InvalidInput
        If a parameter is out of range.

    Example
    -------
    >>> round(hr.audit.reachable_epsilon(1000), 2)
    4.88
    """
    _require(judged >= 1, judged, 1, confidence, delta)
    return max(0.0, _bound(judged, 0, judged, delta, (1 - confidence) / 2))


def epsilon_of_event(
    p: float, q: float, judged: int, *, miss: float = 0.01, confidence: float = 0.999, delta: float = 0.0
) -> float:
    """Return the bound that this many judged runs find for an event of known probabilities: the power of an audit.

    Parameters
    ----------
    p, q : float
        The probabilities of the event on the two neighbours.
    judged : int
        The number of runs that judge the event.
    miss : float
        The probability of finding less.
    confidence, delta : float
        As in ``epsilon_lower_bound``.

    Returns
    -------
    float

    Raises
    ------
    InvalidInput
        If a parameter is out of range.

    Example
    -------
    >>> round(hr.audit.epsilon_of_event(0.5, 0.25, 10_000), 2)
    0.53
    """
    _require(judged >= 1, judged, 1, confidence, delta)
    fewest, most = (int(scipy.stats.binom.ppf(at, judged, rate)) for at, rate in ((miss / 2, p), (1 - miss / 2, q)))
    return max(0.0, _bound(fewest, most, judged, delta, (1 - confidence) / 2))


def chance_to_refute(
    p: float, q: float, judged: int, epsilon: float, *, confidence: float = 0.999, delta: float = 0.0
) -> float:
    """Return a lower bound on the probability that an event of probabilities p and q refutes (epsilon, delta)."""
    _require(judged >= 1, judged, 1, confidence, delta)
    error, best = (1 - confidence) / 2, 0.0
    for level in np.geomspace(1e-9, 0.1, 33):
        fewest = int(scipy.stats.binom.ppf(level, judged, p))
        low, high = -1, judged  # search for the most hits on the neighbour with which ``fewest`` hits still refute
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _bound(fewest, middle, judged, delta, error) > epsilon else (low, middle)
        if low >= 0:
            missed = scipy.stats.binom.cdf(fewest - 1, judged, p) + scipy.stats.binom.sf(low, judged, q)
            best = max(best, 1 - float(missed))
    return best


def clopper_pearson(hits: int, runs: int, error: float) -> tuple[float, float]:
    """Return a lower and an upper bound on a probability from its frequency.

    Parameters
    ----------
    hits, runs : int
        The frequency.
    error : float
        The probability with which each bound may be wrong.

    Returns
    -------
    tuple of float
        The lower and the upper bound.

    Example
    -------
    >>> [round(end, 3) for end in hr.audit.clopper_pearson(50, 100, error=0.025)]
    [0.398, 0.602]
    """
    low = 0.0 if hits == 0 else float(betaincinv(hits, runs - hits + 1, error))
    high = 1.0 if hits == runs else float(betaincinv(hits + 1, runs - hits, 1 - error))
    return low, high


def runs_to_tell(rate: float, worse: float, false_fail: float, false_pass: float) -> tuple[int, int]:
    """Return (runs, allowed failures) of the smallest test that tells failure rates ≤ ``rate`` from rates ≥ ``worse``.

    More than ``allowed`` failures among ``runs`` happen with probability at most ``false_fail`` at the rate ``rate``.
    No more than ``allowed`` failures happen with probability at most ``false_pass`` at the rate ``worse``.

    Parameters
    ----------
    rate, worse : float
        The failure rate that should pass, and the failure rate that should be noticed.
    false_fail, false_pass : float
        The largest probabilities of failing at ``rate`` and of passing at ``worse``.

    Returns
    -------
    tuple of int
        The number of runs, and the number of failures that are allowed.

    Raises
    ------
    InvalidInput
        If rate is not below worse, or an error rate is not between 0 and 1.

    Example
    -------
    >>> runs, allowed = hr.audit.runs_to_tell(0.05, 0.2, false_fail=0.01, false_pass=0.01)
    >>> allowed < runs * 0.2
    True
    """
    if not (0 <= rate < worse <= 1 and 0 < false_fail < 1 and 0 < false_pass < 1):
        raise InvalidInput(
            "rate must be below worse, and both error rates between 0 and 1. "
            f"Found {rate!r}, {worse!r}, {false_fail!r}, {false_pass!r}. Correct them."
        )
    runs = 0
    while True:
        runs += 1
        allowed = next(f for f in range(runs + 1) if f == runs or bdtrc(f, runs, rate) <= false_fail)
        if allowed < runs and bdtr(allowed, runs, worse) <= false_pass:
            return runs, allowed


def _require(enough: bool, runs: int, least: int, confidence: float, delta: float) -> None:
    """Refuse too few runs, and a confidence or a delta out of range."""
    if not enough or not 0 < confidence < 1 or not 0 <= delta < 1:
        raise InvalidInput(
            f"runs must be at least {least}, confidence between 0 and 1 and delta at least 0 and below 1. "
            f"Found {runs!r}, {confidence!r} and {delta!r}. Correct them."
        )


def _tail_probabilities(
    first: NDArray[np.float64], second: NDArray[np.float64], thresholds: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower bounds on p and upper bounds on q, with one column per threshold.

    The rows are "at least t" for the first and for the second neighbour, then "at most t" for either.
    """
    runs, ordered = first.size, (np.sort(first), np.sort(second))
    above = [runs - np.searchsorted(z, thresholds, "left") for z in ordered]
    below = [np.searchsorted(z, thresholds, "right") for z in ordered]
    hits = np.array([above, above[::-1], below, below[::-1]])  # (event and neighbour) × (p, q) × t
    p = np.where(hits[:, 0] > 0, betaincinv(np.maximum(hits[:, 0], 1), runs - hits[:, 0] + 1, _DOUBT), 0.0)
    q = np.where(hits[:, 1] < runs, betaincinv(hits[:, 1] + 1, np.maximum(runs - hits[:, 1], 1), 1 - _DOUBT), 1.0)
    return p, q


def _bound(hits: int, neighbor_hits: int, runs: int, delta: float, error: float) -> float:
    p, q = clopper_pearson(hits, runs, error)[0], clopper_pearson(neighbor_hits, runs, error)[1]
    return math.log((p - delta) / q) if p > delta else -math.inf


def _best_event(seen: Counter[Hashable], other: Counter[Hashable], runs: int, delta: float) -> frozenset[Hashable]:
    """Return the set of outputs that best tells the neighbours apart in these counts."""
    ranked = sorted(seen | other, key=lambda z: (seen[z] + 0.5) / (other[z] + 0.5), reverse=True)
    best, chosen, hits, hits_other = -math.inf, 0, 0, 0
    for size, z in enumerate(ranked, start=1):
        hits, hits_other = hits + seen[z], hits_other + other[z]
        bound = _bound(hits, hits_other, runs, delta, 0.01)
        if bound > best:
            best, chosen = bound, size
    return frozenset(ranked[:chosen])


def _hits(counts: Counter[Hashable], event: frozenset[Hashable]) -> int:
    return sum(counts[z] for z in event)
