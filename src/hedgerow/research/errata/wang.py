"""Errata of [W], lecture 12."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array
from hedgerow.errors import InvalidInput
from hedgerow.privacy.events import Exponential
from hedgerow.research.errata.erratum import WANG, ErratumFinding, NotedErratum, erratum
from hedgerow.textbook import multiplicative_weights as experts


@erratum(
    "wang-halving-logarithm",
    document=WANG,
    place="Lemma 12.1 (and 12.2)",
    printed="at most log N mistakes",
    wrong=(
        "The logarithm is to base 2 here, and natural from Theorem 12.3 on, where γ = √(log N/T) results from ln. The "
        "lecture writes log for both. Here there are eight experts; every day half of the remaining ones are wrong, "
        "and the majority with them."
    ),
    instead="log₂ N in Lemmas 12.1 and 12.2, ln N from Theorem 12.3 on",
    module="hedgerow.textbook.multiplicative_weights",
)
def halving_logarithm() -> tuple[ErratumFinding, ErratumFinding]:
    """Count the mistakes of the halving algorithm among 8 experts."""
    number = np.arange(8)
    # every day is a tie, which the algorithm breaks towards "down"
    advice = np.array([(number >> bit) & 1 == 0 for bit in range(3)])
    mistakes = experts.run_halving(advice, np.ones(3, dtype=bool)).mistakes
    what = "mistakes of Algorithm 1 among 8 experts, one of them perfect"
    return ErratumFinding(what, mistakes, math.log(8)), ErratumFinding(what, mistakes, experts.halving_mistakes(8))


@erratum(
    "wang-majority-constant",
    document=WANG,
    place="Lemma 12.2",
    printed="There is an algorithm that makes at most 2.4(OPT + log N) mistakes",
    wrong=(
        "The proof gives 1/log₂(4/3) = 2.409…, and 2.4 rounds it down. Here there are 1,024 experts. Every day the "
        "heaviest of them, with just over half of the weight, say “down” and are wrong. So all 12,000 days are "
        "mistakes of Algorithm 2. The logarithm is to base 2, the larger of the two readings."
    ),
    instead="(OPT + log₂ N)/log₂(4/3)",
    module="hedgerow.textbook.multiplicative_weights",
)
def majority_constant() -> tuple[ErratumFinding, ErratumFinding]:
    """Count the mistakes that an adversary forces on Algorithm 2."""
    N, days = 1024, 12_000
    advice, best = _balanced_advice(N, days)
    mistakes = experts.weighted_majority(advice, np.ones(days, dtype=bool)).mistakes
    what = f"mistakes of Algorithm 2 where the best expert makes {best:,}"
    return (
        ErratumFinding(what, mistakes, 2.4 * (best + math.log2(N))),
        ErratumFinding(what, mistakes, experts.weighted_majority_mistakes(N, best)),
    )


def _balanced_advice(N: int, days: int) -> tuple[NDArray[np.bool_], int]:
    """Return advice that errs with at least half of the weight, but little more, and the mistakes of the best expert.

    An expert with m mistakes has weight 2^−m. The heaviest err, so that all weights stay within a factor of four.
    """
    made = np.zeros(N, dtype=np.int64)
    advice = np.ones((days, N), dtype=bool)
    for day in advice:
        order = np.argsort(made, kind="stable")
        weights = np.exp2(made[order[-1]] - made[order]).cumsum()  # whole numbers
        err = order[: int(np.searchsorted(2 * weights, weights[-1])) + 1]
        day[err] = False
        made[err] += 1
    return advice, int(made.min())


@erratum(
    "wang-regret-of-few-rounds",
    document=WANG,
    place="Theorems 12.3 and 12.4",
    printed="For an arbitrary sequence of losses, E[L_A] − L_i ≤ 2√(T log N), with γ = √(log N / T)",
    wrong=(
        "The proof uses ln(1 − x) ≥ −x − x² on |x| ≤ ½, so it needs γ ≤ ½, which means T ≥ 4 ln N. In fewer than ln N "
        "rounds γ is above 1, weights become negative, and the 'distribution' need not be bounded. Here N = 100 and "
        "T = 2. In the first round the losses are 1 for 66 experts and 0 for the others; in the second they are 1 for "
        "experts above the average weight and −1 for those below."
    ),
    instead="T ≥ 4 ln N is required; shorter games are refused",
    module="hedgerow.textbook.multiplicative_weights",
)
def regret_of_few_rounds() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the regret of too few rounds, and of the fewest rounds allowed."""
    N, T = 100, 2
    first = np.where(np.arange(N) < 66, 1.0, 0.0)

    def regret(rounds: int, gamma: float) -> float:
        """Return the regret against the best expert after these rounds."""
        w, total, suffered = np.ones(N), np.zeros(N), 0.0
        for t in range(rounds):
            p = w / w.sum()
            loss = first if t == 0 else np.sign(p - p.mean())
            suffered += float(p @ loss)
            total += loss
            w = w * (1 - gamma * loss)
        return suffered - float(total.min())

    try:
        experts.learning_rate(N, T)
    except InvalidInput:
        T_ours = math.ceil(4 * math.log(N))
    else:
        T_ours = T
    printed = ErratumFinding(
        "regret of 2 rounds, against 2√(T ln N)", regret(T, math.sqrt(math.log(N) / T)), 2 * math.sqrt(T * math.log(N))
    )
    ours = ErratumFinding(
        f"regret of the fewest rounds allowed, {T_ours}, against 2√(T ln N)",
        regret(T_ours, experts.learning_rate(N, T_ours)),
        experts.regret_bound(N, T_ours),
    )
    return printed, ours


@erratum(
    "wang-restricted-choice",
    document=WANG,
    place="Algorithm 6, line 3",
    printed=(
        "Use the exponential mechanism to choose a query fᵗ among the k queries with |⟨fᵗ, pᵗ⟩ − ⟨fᵗ, h_D⟩| > α "
        "using ε₀-DP"
    ),
    wrong=(
        "The set of queries with an error above α is private. If one row decides that a query is in the set, the "
        "choice tells neighbours apart with certainty. Here there are ten rows on {0, 1}, p = (½, ½), the queries 'is "
        "0' and 'is 1 with weight .9', α = .19, 8 zeros against 7, and ε₀ = 1."
    ),
    instead="the exponential mechanism over all k queries, which favors those with large errors",
    module="hedgerow.textbook.mwem",
)
def restricted_choice() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the privacy loss of a choice among some queries, and among all."""
    n, alpha, epsilon = 10, 0.19, 1.0
    queries, p = np.array([[1.0, 0.0], [0.0, 0.9]]), np.array([0.5, 0.5])

    def chosen(zeros: int, restricted: bool) -> Array:
        # in rows, so that one row moves a score by at most 1
        scores = n * np.abs(queries @ (p - np.array([zeros, n - zeros]) / n))
        weights = np.exp(scores / Exponential(1.0, epsilon).scale)
        if restricted:
            weights = np.where(scores > alpha * n, weights, 0.0)
        return np.asarray(weights / weights.sum())

    def loss(restricted: bool) -> float:
        one, other = chosen(8, restricted), chosen(7, restricted)
        with np.errstate(divide="ignore"):
            return float(np.abs(np.log(one) - np.log(other)).max())

    what = "privacy loss of the choice, against ε₀"
    return ErratumFinding(what, loss(True), epsilon), ErratumFinding(what, loss(False), epsilon)


NOTED = (
    NotedErratum(
        WANG,
        "the introduction",
        "“the error will be n = O(…)” repeats the sample complexity; the error is the α it is solved for.",
    ),
    NotedErratum(WANG, "(12.3)", "1 − ℓᵗ·pᵗ lacks γ, which (12.4) has."),
    NotedErratum(WANG, "(12.6)", "The middle sum (ℓᵢᵗ)² lacks γ², which the last term has."),
    NotedErratum(
        WANG,
        "(12.7)",
        "γ²T² should be γ²T; (12.8) follows from that and not from the printed formula.",
    ),
    NotedErratum(
        WANG,
        "§12.2.2, accuracy",
        "The exponential mechanism errs by O(log k/(ε₀n)), not O(log|D|/(ε₀n)): it chooses among k queries.",
    ),
)
