"""Multiplicative weights: learning from experts, and the update rule that every mechanism here shares.

Papers: Wang, *Lecture 12: Releasing Multiple Linear Queries Privately II* (Algorithms 1–5); Dwork & Roth, *The
Algorithmic Foundations of Differential Privacy*, ch. 4 (Algorithm 5, Theorem 4.10).

Symbols: N experts (or cells of the universe X), T rounds, ℓ losses in [−1, 1], w weights, p = w/Σw, γ and η step sizes,
q a linear query, r = q or 1 − q its penalty, α the error that makes a mistake, Ψ = KL(D ‖ D̂) the potential.

Differs: logarithms are base 2 in Lemmas 12.1–12.2 and natural from Theorem 12.3 on; the lecture writes log for both.
The proof of Theorem 12.3 uses ln(1 − x) ≥ −x − x² on |x| ≤ ½, so γ = √(ln N/T) must be at most ½: T ≥ 4 ln N is
required here. Besides the books' step η = α/2 (at most 4 ln|X|/α² updates) there is Hoeffding's η = 4α. By his lemma ln
E exp(−ηr) ≤ −η E r + η²/8 for r in [0, 1], so a mistake lowers Ψ by at least ηα − η²/8 = 2α², and there are at most
ln|X|/(2α²) updates, 8 times fewer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow._types import Array
from hedgerow.errors import InvalidInput

Step = Literal["paper", "hoeffding"]


# Prediction: experts predict up (True) or down (False), then the truth is revealed.


@dataclass(frozen=True)
class Predictions:
    """The predictions of an algorithm, one per day, and its final weights, one per expert."""

    predicted: NDArray[np.bool_]
    mistakes: int
    weights: Array


def run_halving(advice: ArrayLike, truth: ArrayLike) -> Predictions:
    """Run Wang's Algorithm 1: follow the majority of the experts that were never wrong.

    ``advice`` is T × N booleans, ``truth`` T booleans. With a perfect expert there are at most ``halving_mistakes(N)``
    mistakes.
    """
    return _majority(advice, truth, penalty=0.0)


def weighted_majority(advice: ArrayLike, truth: ArrayLike) -> Predictions:
    """Run Wang's Algorithm 2: follow the weighted majority. An expert that is wrong loses half its weight."""
    return _majority(advice, truth, penalty=0.5)


def _majority(advice: ArrayLike, truth: ArrayLike, penalty: float) -> Predictions:
    """Follow the weighted majority. An expert that is wrong has its weight multiplied by the penalty."""
    says, happened = np.asarray(advice, dtype=bool), np.asarray(truth, dtype=bool)
    if says.ndim != 2 or says.shape[1] == 0 or happened.shape != says.shape[:1]:
        raise InvalidInput(
            "Advice must be days × experts and truth one value a day. "
            f"Found {says.shape} and {happened.shape}. Give every expert's prediction for every day."
        )
    w = np.ones(says.shape[1])
    predicted = np.empty(len(says), dtype=bool)
    for t, p in enumerate(says):
        predicted[t] = w[p].sum() > w[~p].sum()
        w[p != happened[t]] *= penalty
        if w.max() > 0:
            w /= w.max()  # a common factor changes no majority and prevents underflow in long games
    return Predictions(predicted, int((predicted != happened).sum()), w)


def halving_mistakes(experts: int) -> float:
    """Return the bound of Lemma 12.1 if one expert is perfect: log₂ N."""
    return math.log2(experts)


def weighted_majority_mistakes(experts: int, best: int) -> float:
    """Return the bound of Lemma 12.2 if the best expert makes OPT mistakes: (OPT + log₂ N) / log₂(4/3)."""
    return (best + math.log2(experts)) / math.log2(4 / 3)


# Losses: every expert has a loss in [−1, 1] in each round.


def learning_rate(experts: int, rounds: int) -> float:
    """Return γ = √(ln N / T). It must be at most ½ for the regret bound to hold, and is refused otherwise."""
    if experts < 2 or rounds < 4 * math.log(experts):
        raise InvalidInput(
            f"rounds must be at least 4 ln N = {4 * math.log(max(experts, 2)):.1f} for N of at least 2 experts. "
            f"Found {rounds} rounds and {experts} experts. Play more rounds."
        )
    return math.sqrt(math.log(experts) / rounds)


def multiplicative_weights(losses: ArrayLike, gamma: float | None = None) -> Array:
    """Run Wang's Algorithm 4: return the distributions p¹ … p^T played against T × N losses, each seen after its p."""
    ell = np.asarray(losses, dtype=float)
    if ell.ndim != 2 or not (np.abs(ell) <= 1).all():
        raise InvalidInput(
            "Losses must be rounds × experts, each in [−1, 1]. Found another shape, or larger losses. Rescale the "
            "losses."
        )
    gamma = learning_rate(ell.shape[1], ell.shape[0]) if gamma is None else gamma
    if not 0 < gamma <= 0.5:
        raise InvalidInput(f"gamma must be in (0, ½]. Found {gamma!r}. Choose a smaller step, or play more rounds.")
    log_w = np.zeros(ell.shape[1])
    played = np.empty_like(ell)
    for t, loss in enumerate(ell):
        played[t] = normalize(log_w)
        log_w = log_w + np.log1p(-gamma * loss)  # w' = w(1 − γ ℓ)
    return played


def multiplicative_weights_picks(
    losses: ArrayLike, uniforms: ArrayLike, gamma: float | None = None
) -> NDArray[np.int64]:
    """Run Wang's Algorithm 3: pick one expert per round from Algorithm 4's distribution.

    ``uniforms`` has one uniform number per round.
    """
    p = multiplicative_weights(losses, gamma)
    u = np.asarray(uniforms, dtype=float)[:, None]
    return np.asarray(np.minimum((p.cumsum(axis=1) <= u).sum(axis=1), p.shape[1] - 1), dtype=np.int64)


def regret_bound(experts: int, rounds: int) -> float:
    """Return 2√(T ln N), in expectation for Algorithm 3 and always for Algorithm 4 (Theorems 12.3–12.4)."""
    learning_rate(experts, rounds)
    return 2 * math.sqrt(rounds * math.log(experts))


# Queries: the experts are the cells of the universe. A mistake is a query on which the hypothesis errs by more than α.


def normalize(log_weights: Array) -> Array:
    """Return the distribution proportional to exp(log_weights)."""
    w = np.exp(log_weights - log_weights.max())
    return np.asarray(w / w.sum())


def penalty(query: Array, *, overshoots: bool) -> Array:
    """Return r of Dwork & Roth's Algorithm 5: it is large where the hypothesis has too much mass."""
    return query if overshoots else 1 - query


def log_factor(query: Array, *, overshoots: bool, eta: float) -> Array:
    """Return the logarithm of the update's factor: D̂' ∝ D̂·exp(−η r), Dwork & Roth Algorithm 5."""
    return -eta * penalty(query, overshoots=overshoots)


def linear_log_factor(query: Array, *, overshoots: bool, eta: float) -> Array:
    """Return the logarithm of the factor in Wang's form of the update: D̂' ∝ D̂·(1 − η·sign·q)."""
    return np.log1p(-eta * query if overshoots else eta * query)


def step_size(alpha: float, step: Step) -> float:
    """Return η for mistakes of at least α: α/2 ("paper") or 4α ("hoeffding")."""
    _require_alpha(alpha)
    return {"paper": alpha / 2, "hoeffding": 4 * alpha}[_step_rule(step)]


def update_bound(alpha: float, cells: int, step: Step) -> int:
    """Return the most updates that mistakes of at least α can cause (Theorem 4.10). They use up the potential Ψ.

    The theorem also requires each measured value to be within α of the truth, so that the update has the right sign.
    """
    _require_alpha(alpha)
    per_update = {"paper": alpha**2 / 4, "hoeffding": 2 * alpha**2}[
        _step_rule(step)
    ]  # the least decrease of Ψ per update
    return math.floor(math.log(cells) / per_update)


def multiplicative_weights_for_queries(
    queries: Sequence[Array] | Array, histogram: Array, alpha: float, step: Step = "hoeffding"
) -> tuple[Array, int]:
    """Run Wang's Algorithm 5, which is not private: update on the worst query until none is wrong by more than α.

    Return the hypothesis and the number of updates, at most ``update_bound(alpha, N, step)``. "paper" is the lecture's
    own linear update with η = √(ln N/T) at T = 4 ln N/α², which is α/2.
    """
    Q, D = np.asarray(queries, dtype=float), np.asarray(histogram, dtype=float)
    eta = step_size(alpha, step)
    factor = linear_log_factor if step == "paper" else log_factor
    log_w = np.zeros(len(D))
    updates = 0
    while True:
        p = normalize(log_w)
        gaps = Q @ (p - D)  # ⟨q, D̂⟩ − ⟨q, D⟩
        worst = int(np.abs(gaps).argmax())
        if abs(gaps[worst]) <= alpha:
            return p, updates
        log_w = log_w + factor(Q[worst], overshoots=bool(gaps[worst] > 0), eta=eta)
        updates += 1


def _require_alpha(alpha: float) -> None:
    """Refuse an α outside (0, 1)."""
    if not 0 < alpha < 1:
        raise InvalidInput(f"alpha must be between 0 and 1. Found {alpha!r}. Give the error as a fraction of the rows.")


def _step_rule(step: Step) -> Step:
    """Return the step rule. Refuse an unknown one."""
    if step not in ("paper", "hoeffding"):
        raise InvalidInput(f"step must be 'paper' or 'hoeffding'. Found {step!r}. Choose one of the two.")
    return step
