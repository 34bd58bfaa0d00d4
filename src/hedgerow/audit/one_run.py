"""A lower bound on ε from one run: many canaries, each in or out by a fair coin, and guesses as to which were in.

Paper: Steinke, Nasr & Jagielski, *Privacy auditing with one (1) training run* (2023), Theorem 5.2 and Corollary 5.4.

Symbols: m canaries, S_i a fair coin for each, all independent; M(S) the release; T_i ∈ {in, out, no guess} a function
of it; r guesses, v of them right; W ~ Binomial(r, e^ε/(e^ε + 1)).

If M is (ε, δ)-private with respect to each S_i, P[v or more are right] ≤ P[W ≥ v] + 2mδ·max over i ≥ 1 of P[v − i ≤ W <
v]/i.

Assumptions. The coins are fair and independent of everything else. Guesses come from the release and from public facts,
and their number was fixed before. Nothing is assumed about how canaries interact, but a high bound takes canaries that
do not interact.

Meaning. If a coin decides that a canary's row is in the table or not, then flipping it adds or removes a row, and the
bound is for add-remove neighbours. If n is public, a coin must decide between two rows that are fixed beforehand, so
that the size of the table says nothing. Flipping it replaces a row, and the bound is for replace-one neighbours. A
bound for one kind is none for the other: a replacement is a removal and an addition, so (ε, δ) under add-remove is (2ε,
(1 + e^ε)δ) under replace-one. The bound is about these canaries in this run, at the stated confidence over coins and
noise. Other tables and rows may lose more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from hedgerow.errors import InvalidInput
from hedgerow.privacy.noise import Noise


@final
@dataclass(frozen=True)
class OneRun:
    """The result of an audit: with probability ``confidence``, ε at δ is at least ``epsilon``.

    Attributes
    ----------
    epsilon, delta, confidence : float
        The bound on ε, its δ, and the probability with which it holds.
    canaries, guesses, right : int
        The number of canaries, of guesses, and of right guesses.
    reachable : float
        The bound if all guesses had been right.

    Example
    -------
    >>> result = hr.audit.one_run(lambda coins: coins + np.random.default_rng().laplace(size=100), 100, guesses=20)
    >>> result.epsilon <= result.reachable
    True
    """

    epsilon: float
    delta: float
    confidence: float
    canaries: int
    guesses: int
    right: int
    reachable: float


def probability_of_guessing(right: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """Return the largest probability of so many right guesses, or more, under (epsilon, delta)-privacy.

    Parameters
    ----------
    right, guesses, canaries : int
        The right guesses, all guesses, and all canaries.
    epsilon, delta : float
        The claim.

    Returns
    -------
    float

    Raises
    ------
    InvalidInput
        If the numbers are impossible.

    Example
    -------
    >>> round(hr.audit.probability_of_guessing(9, 10, canaries=10, epsilon=0.0, delta=0.0), 3)
    0.011
    """
    if not 0 <= right <= guesses <= canaries or not epsilon >= 0 or not 0 <= delta <= 1:
        raise InvalidInput(
            "right must be at most guesses, guesses at most canaries, and epsilon and delta possible. "
            f"Found {right!r}, {guesses!r}, {canaries!r}, {epsilon!r} and {delta!r}. Correct them."
        )
    rate = scipy.special.expit(epsilon)
    tail = float(scipy.stats.binom.sf(right - 1, guesses, rate))
    if delta == 0 or right == 0:
        return min(1.0, tail)
    just_below = np.cumsum(scipy.stats.binom.pmf(np.arange(right - 1, -1, -1), guesses, rate))  # P[v − i ≤ W < v]
    return min(1.0, tail + 2 * canaries * delta * float(np.max(just_below / np.arange(1, right + 1))))


def epsilon_of_guesses(
    right: int, guesses: int, canaries: int, *, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """Return a lower bound on ε, at the confidence, from the number of right guesses.

    Parameters
    ----------
    right, guesses, canaries : int
        The right guesses, all guesses, and all canaries.
    delta : float
        The δ of the claim.
    confidence : float
        The probability with which the bound holds.

    Returns
    -------
    float

    Raises
    ------
    InvalidInput
        If the confidence is not between 0 and 1, or the numbers are impossible.

    Example
    -------
    >>> round(hr.audit.epsilon_of_guesses(95, 100, canaries=1000), 2)
    2.17
    """
    if not 0 < confidence < 1:
        raise InvalidInput(f"confidence must be between 0 and 1. Found {confidence!r}. Give 0.95, for instance.")

    def is_refuted(epsilon: float) -> bool:
        return probability_of_guessing(right, guesses, canaries, epsilon, delta) < 1 - confidence

    if not is_refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while is_refuted(high):
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low


def one_run(
    run: Callable[[NDArray[np.bool_]], ArrayLike],
    canaries: int,
    *,
    guesses: int,
    noise: Noise | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> OneRun:
    """Audit a mechanism by one run: toss a coin for each canary, run once, and guess.

    The canaries with the highest scores are guessed to be in, those with the lowest to be out, half of ``guesses``
    each.

    Parameters
    ----------
    run : callable
        ``run(coins)`` puts canary i, or its first version, into the table if coins[i] is true. Otherwise it leaves the
        canary out, or puts its second version in. It returns a score for each canary from the release, higher if "in"
        seems likelier.
    canaries : int
        The number of canaries.
    guesses : int
        The number of guesses, even.
    noise : Noise, optional
        The source of the coins.
    delta : float
        The δ of the claim.
    confidence : float
        The probability with which the bound holds.

    Returns
    -------
    OneRun

    Raises
    ------
    InvalidInput
        If the number of guesses or the scores do not fit.

    Example
    -------
    >>> result = hr.audit.one_run(lambda coins: coins + np.random.default_rng().laplace(size=100), 100, guesses=20)
    >>> result.guesses
    20
    """
    if not (isinstance(guesses, int) and 2 <= guesses <= canaries and guesses % 2 == 0):
        raise InvalidInput(f"guesses must be even, from 2 to {canaries}. Found {guesses!r}. Half are in, half out.")
    generator = (Noise() if noise is None else noise).generator()
    coins = generator.random(canaries) < 0.5
    scores = np.asarray(run(coins.copy()), dtype=float)
    if scores.shape != (canaries,) or np.isnan(scores).any():
        raise InvalidInput(f"run must give {canaries} scores. Found shape {scores.shape}. Score each canary.")
    order = np.lexsort((generator.random(canaries), scores))  # ties are broken at random
    half = guesses // 2
    right = int(np.count_nonzero(coins[order[-half:]]) + np.count_nonzero(~coins[order[:half]]))
    best, found = (
        epsilon_of_guesses(v, guesses, canaries, delta=delta, confidence=confidence) for v in (guesses, right)
    )
    return OneRun(found, delta, confidence, canaries, guesses, right, best)


def canaries_needed(epsilon: float, *, confidence: float = 0.95) -> int:
    """Return the fewest guesses, all of them right, that show an ε this large at δ = 0."""
    return math.ceil(math.log(1 - confidence) / float(scipy.special.log_expit(epsilon)) + 1e-12)
