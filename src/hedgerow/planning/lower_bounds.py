"""Errors below which no private mechanism can promise anything, whatever it does: the other direction of ``theorems``.

Papers: Kasiviswanathan, Rudelson & Smith, *The power of linear reconstruction attacks* ([U] §1 and §4.3 rest on it);
Ullman, *Answering n^(2+o(1)) counting queries with differential privacy is hard*, in [U] §4.3; Fish et al.,
Proposition 9; Talwar et al., Theorem 5.8 (``erm.rates.lasso_lower``). Proofs, with the constants:
docs/proofs/lower_bounds.md.

Symbols: n rows, |X| cells, k questions, α the error of all answers but with probability β; δ_t = δ(e^{tε} − 1)/(e^ε −
1) the δ of t neighbouring steps; m bits of a secret, each in g rows.

Differs: the papers' constants are hidden. Here every bound is derived anew, with its constants, for a mechanism that
answers *every* set of k questions on *every* table. A table may be easier. Where a bound of the papers has no constant,
its ``constant`` is False, and only its growth can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow.convex.losses.families import Squared
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.convex.sets import L1Ball
from hedgerow.erm import rates
from hedgerow.privacy.budget import Budget


@dataclass(frozen=True)
class LowerBound:
    """An error that no mechanism can undercut.

    ``condition`` says for which questions and tables. ``constant`` is False if only the growth of the bound is known.
    """

    error: float
    about: str
    by: str
    condition: str
    constant: bool = True


def told_apart(budget: Budget, beta: float) -> int:
    """Return the least t such that an answer may tell tables apart that are t steps from each other, but for β.

    A step is a row, or a person. If events A and A′ exclude each other, P(A) ≥ 1 − β on one table and P′(A′) ≥ 1 − β on
    the other, then 1 − β ≤ P(A) ≤ e^{tε}·P′(A) + δ_t ≤ e^{tε}·β + δ_t.
    """
    ε, δ = budget.epsilon, budget.delta
    if not beta < 0.5:
        return 0
    low, high = 0, math.ceil(math.log((1 - beta) / beta) / ε)  # the latter is enough where δ = 0, so it is for any δ
    while high - low > 1:
        middle = (low + high) // 2
        reached = math.exp(middle * ε) * beta + grown_delta(ε, δ, middle) >= 1 - beta
        low, high = (low, middle) if reached else (middle, high)
    return high


def grown_delta(epsilon: float, delta: float, steps: int) -> float:
    """Return δ_t, at most 1."""
    if delta == 0 or steps * epsilon > 700:
        return 1.0 if delta > 0 else 0.0
    return min(1.0, delta * math.expm1(steps * epsilon) / math.expm1(epsilon))


def one_count(budget: Budget, rows: float, beta: float) -> float:
    """Return the least α of a single count, (t − 1)/2n.

    Tables t − 1 steps apart cannot be told apart, and a count may differ on them by t − 1 rows.
    """
    return min(0.5, max(0, told_apart(budget, beta) - 1) / (2 * rows))


def many_counts(budget: Budget, rows: float, queries: int, cells: int, beta: float) -> float:
    """Return the least α of k counts, by reconstruction: the largest (g/6n)·√(m(c_g − β)) over m and g.

    c_g = (1 − δ_g)/(1 + e^{gε}) and m is a power of two, at most k and |X| − 1, with mg ≤ n. From answers within α, a
    Hadamard transform rebuilds all but 36α²n²/(g²m) of the secret's bits, and privacy lets nobody be wrong about less
    than c_g of them. At m = n this is of order 1/√n: for k ≥ 1/α² questions n is of order 1/α², as [U] states.
    """
    ε, δ = budget.epsilon, budget.delta
    if budget.neighbours == "add-remove":  # a bit changes when a row leaves and another comes
        ε, δ = 2 * ε, min(1.0, δ * (1 + math.exp(min(ε, 700.0))))
    best, bits = 0.0, 1
    while bits <= min(queries, cells - 1, rows):
        most = min(math.floor(rows / bits), math.ceil(3 / ε))  # more copies than 3/ε give the secret away
        for g in {max(1, math.floor(most * share / 16)) for share in range(1, 17)}:
            hidden = (1 - grown_delta(ε, δ, g)) / (1 + math.exp(min(g * ε, 700.0))) - beta
            best = max(best, g * math.sqrt(max(0.0, hidden) * bits) / (6 * rows))
        bits *= 2
    return min(best, 0.5)


def one_minimizer(budget: Budget, rows: float, beta: float, lipschitz: float, radius: float) -> float:
    """Return the least excess of one question about L-Lipschitz losses on a set that reaches R both ways: LR(t − 2)/n.

    The loss is ℓ_x(θ) = −L·x·θ, x = ±1, along that direction. On tables of mean s and −s the excess of any θ adds up to
    2LRs, so none is below LRs on both; the tables differ in sn rows, a number with the parity of n.
    """
    return lipschitz * radius * min(1.0, max(0, told_apart(budget, beta) - 2) / rows)


def evaluations(alpha: float, queries: int) -> float:
    """Return the least expected number of evaluations of k queries that are all within α, each but with probability ⅕.

    Fish et al., Proposition 9, on a universe of at least 2·ln 10/α² cells, for α < ⅛. A value of a query tells coins of
    bias ½ and ½ + 4α apart with probability ⅗, so their total variation is at least ⅕ and, by Pinsker's inequality, the
    values' divergence at least 2/25: each has −½·ln(1 − 64α²).
    """
    if not 0 < alpha < 1 / 8:
        return 0.0
    return queries * (2 / 25) / (-0.5 * math.log1p(-64 * alpha**2))


def is_hard(rows: float, queries: float) -> bool:
    """Return True if k > n²: no algorithm that is polynomial in n and log|X| is known then.

    If one-way functions exist, there is none.

    [U] §4.3: no algorithm of time polynomial in n and the number of attributes answers every set of k counts, or convex
    questions, within 1/100, for n ≤ k^(½ − o(1)). Mechanisms of this package take time polynomial in |X|, or answer
    special questions.
    """
    return queries > rows**2


def lower_bounds(
    budget: Budget, rows: float, queries: int, beta: float, cells: int, questions: Sequence[BoundMinimize] = ()
) -> list[LowerBound]:
    """Return the lower bounds for counts and, if convex questions are given, for minimizers."""
    found = [
        LowerBound(one_count(budget, rows, beta), "counts", "privacy of a group of rows", "one count, on some table"),
        LowerBound(
            many_counts(budget, rows, queries, cells, beta), "counts", "Kasiviswanathan, Rudelson & Smith; Ullman §4.3",
            f"some {queries:,} counts over {cells:,} cells, on some table",
        ),
    ]  # fmt: skip
    for question in dict.fromkeys(questions):
        p, over = question.risk.dimension, question.over
        if question.risk.strong_convexity(over) == 0:  # linear losses are then within the same constants
            L, R = question.risk.lipschitz(over), over.diameter_l2(p) / 2
            found.append(
                LowerBound(
                    one_minimizer(budget, rows, beta, L, R), "minimizers", "privacy of a group of rows",
                    f"some loss of slope {L:.3g} on a set of diameter {2 * R:.3g}, on some table",
                )
            )  # fmt: skip
        glm = question.risk.glm
        lasso = glm is not None and isinstance(glm.loss, Squared) and isinstance(over, L1Ball)
        if lasso and budget.epsilon <= 0.1 and 0 < budget.delta <= 1 / rows**2:
            order = rates.lasso_lower(rates.Setting(max(2, int(rows)), p, budget.epsilon, budget.delta))
            found.append(
                LowerBound(
                    order, "minimizers", "Talwar et al., Theorem 5.8",
                    "growth only: squared loss over an ℓ1 ball, p of order (n log n)^(2/3)", constant=False,
                )
            )  # fmt: skip
    return [bound for bound in found if bound.error > 0]
