"""Errata of [DR], chapter 4 of the book."""

from __future__ import annotations

import math

import numpy as np

from hedgerow._types import Array
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import epsilon_of_rho
from hedgerow.research.errata.erratum import A_PROOF, DWORK_ROTH, ErratumFinding, NotedErratum, erratum
from hedgerow.textbook import bounds, pmw


@erratum(
    "dwork-roth-constant",
    document=DWORK_ROTH,
    place="Theorem 4.14 and its proof",
    printed="α ≥ 32 log|X|(log|Q| + log(32 log|X|/(α²β)))/(εα²‖x‖₁) … with this value we get T = 2α",
    wrong=(
        "The proof's 9c with c = 4 log|X|/α² is 36 (which the book has two displays later). With 32 the threshold of "
        "Algorithm 6 is 2¼α, the noise is within 1⅛α, and answers from the hypothesis are within 3⅜α, not 3α. Here "
        "|X| = 2¹⁰, |Q| = 10⁶, β = .05, α = .1, ε = 1."
    ),
    instead="36",
    module="hedgerow.textbook.bounds",
)
def constant() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the threshold of Algorithm 6 at the rows of the theorem."""
    alpha, beta, epsilon, cells, queries = 0.1, 0.05, 1.0, 2**10, 10**6
    c = 4 * math.log(cells) / alpha**2

    def threshold(rows: float) -> float:  # the threshold of Algorithm 6, in units of α
        return 18 * c * (math.log(2 * queries) + math.log(4 * c / beta)) / (epsilon * rows) / alpha

    union = math.log(queries) + math.log(32 * math.log(cells) / (alpha**2 * beta))
    printed = 32 * math.log(cells) * union / (epsilon * alpha**3)
    ours = bounds.pmw_rows(alpha, beta, epsilon, 0.0, queries, cells)
    what = "Algorithm 6's threshold T in units of α, at the rows of the theorem"
    return ErratumFinding(what, threshold(printed), 2.0), ErratumFinding(what, threshold(ours), 2.0)


@erratum(
    "dwork-roth-pure-privacy",
    document=DWORK_ROTH,
    place="Theorem 4.13",
    printed="The Online Multiplicative Weights Mechanism (via NumericSparse) is (ε, 0)-differentially private",
    wrong=(
        "This holds only for δ = 0. For δ > 0 NumericSparse answers with Laplace noise of scale √(32c ln(2/δ))/ε₂ "
        "rows, ε₂ = 2ε/(√512 + 1), and c such answers lose c·ε₂/√(32c ln(2/δ)) at δ = 0, which grows like √c. Here "
        "|X| = 2²⁰, α = .01, δ = 10⁻⁶, ε = 1. (This scale is from the book's chapter 3, which is not among the five "
        "documents and was not checked; it agrees with the 2 + 32√2 = 2(1 + √512) of Algorithm 6.)"
    ),
    instead="(ε, δ), as the ledger counts it",
    module="hedgerow.textbook.pmw",
)
def pure_privacy() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the ε of the book's answers at δ = 0, and of ours at δ."""
    epsilon, delta, alpha, cells = 1.0, 1e-6, 0.01, 2**20
    c = 4 * math.log(cells) / alpha**2
    answers = 2 * epsilon / (math.sqrt(512) + 1)
    printed = c * answers / math.sqrt(32 * c * math.log(2 / delta))
    budget = Budget(epsilon, delta)
    rows = math.ceil(pmw.rows_needed(budget, alpha, 0.05, 1000, cells))
    config = pmw.configure(budget, cells=cells, scale=rows, queries=1000, beta=0.05, alpha=alpha)
    rho = config.rounds * (config.guard.rho + config.measurement.rho)
    return (
        ErratumFinding("ε of the answers alone, at δ = 0", printed, epsilon),
        ErratumFinding("ε of guard and answers, at δ", epsilon_of_rho(rho, delta), epsilon),
    )


@erratum(
    "dwork-roth-both-below",
    document=DWORK_ROTH,
    place="Proof of Theorem 4.14, item 1",
    printed="at most one of E₂ᵢ₋₁, E₂ᵢ will have value ⊥",
    wrong=(
        "It must read at least one. If the hypothesis is right, both one-sided tests answer ⊥, as Algorithm 6 itself "
        "provides. The accuracy of the sparse vector only rules out that both are above. Here the noise is within α, "
        "and T = 2α."
    ),
    instead="at most one is above (hedgerow.textbook.pmw has one test on the absolute gap)",
    module=A_PROOF,
)
def both_below() -> tuple[ErratumFinding, ErratumFinding]:
    """Count the answers ⊥ and ⊤ of the two tests of a query."""
    alpha = 0.1
    gaps, noises = np.linspace(-1, 1, 201), np.array([-alpha, 0.0, alpha]) * (1 - 1e-9)

    def above(gap: float) -> list[int]:
        return [int(gap + a >= 2 * alpha) + int(-gap + b >= 2 * alpha) for a in noises for b in noises]

    below = 2 - min(min(above(gap)) for gap in gaps)
    tops = max(max(above(gap)) for gap in gaps)
    return (
        ErratumFinding("the most ⊥ among the two tests of a query", below, 1),
        ErratumFinding("the most ⊤ among the two tests of a query", tops, 1),
    )


@erratum(
    "dwork-roth-log-sum",
    document=DWORK_ROTH,
    place="Proof of Proposition 4.11",
    printed="Σ aᵢ log(aᵢ/bᵢ) ≥ (Σ aᵢ)·(Σ aᵢ)/(Σ bᵢ)",
    wrong="The logarithm on the right is missing. With a = b the left side is 0 and the right side is 1.",
    instead="(Σ aᵢ)·log(Σ aᵢ/Σ bᵢ), so the potential Ψ = KL(D ‖ D̂) is never negative",
    module=A_PROOF,
    in_the_copy=True,
)
def log_sum() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the least difference of both sides of the inequality."""
    a = np.array([0.5, 0.5])

    def left(b: Array) -> float:
        return float(np.sum(a * np.log(a / b)))

    others = [np.array([t, 1 - t]) for t in np.linspace(0.01, 0.99, 99)]
    what = "left side less right side, the least over b"
    printed = min(left(b) - float(a.sum() ** 2 / b.sum()) for b in others)
    ours = min(left(b) - float(a.sum() * math.log(a.sum() / b.sum())) for b in others)
    return ErratumFinding(what, printed, 0.0, "at least"), ErratumFinding(what, ours, 0.0, "at least")


NOTED = (
    NotedErratum(
        DWORK_ROTH,
        "Lemma 4.3",
        "“any collection of linear queries” needs |Q| > 2, as the proof says, and log|Q|/α² must be rounded up to "
        "whole rows.",
    ),
    NotedErratum(
        DWORK_ROTH,
        "Proof of Theorem 4.5",
        "“By Theorem 4.2” should be Proposition 4.4, and “yields (4.4)” should be (4.2).",
    ),
    NotedErratum(
        DWORK_ROTH,
        "Proof of Lemma 4.12",
        "The sixth line follows by ≥, the “first inequality” of the text, but is printed with =.",
    ),
    NotedErratum(
        DWORK_ROTH, "Algorithm 6, δ > 0", "k is not defined; Theorem 4.15 has |Q| there, and there are 2|Q| tests."
    ),
)
