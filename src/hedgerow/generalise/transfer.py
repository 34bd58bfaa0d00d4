"""Transfer theorems: a mechanism that is private and accurate on its sample is accurate on the population.

Papers: [F] Fish, Reyzin & Rubinstein, *Sampling without compromising accuracy in adaptive data analysis* (Theorems 4,
8 and 10, Proposition 20); Bassily et al., *Algorithmic stability for adaptive data analysis* (Theorem 4's source);
Jung et al., *A new analysis of differential privacy's generalization guarantees* (ITCS 2020), Theorem 3.5. Proofs:
docs/proofs/transfer.md.

Symbols: n rows, independent draws from a population D; S the sample; k queries q: X → [0, 1], each chosen after the
answers before it; a answers, in [0, 1]; (ε, δ) the privacy of all answers together, for one replaced row; α′ and β′
the error and the probability of failure on the sample; α and β those on the population; T the number of samples of a
monitor, η the privacy of its choice.

Every function returns a number that holds for all answers at once, whoever asks, and that is no better than what the
theorem gives. ``…_epsilon`` and ``…_rows`` are the inverse functions. Errors are cut at 1, which promises nothing.

Differs: Theorems 4 and 10 are special cases, with round constants, of what their proofs show. Both forms are here:
``TheoremNeeds`` for the statement, and ``monitored_error`` and ``sample_gap`` for the best that the proof gives. [F]
bounds E|q(S) − q(D)| by a lemma about |E[q(S) − q(D)]|: the monitor must choose among q and 1 − q, as Bassily's does,
and Theorem 10 then needs log(2k/β) where log(k/β) is printed. Proposition 20 holds over all histories, not given one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from hedgerow._checks import number
from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget, Neighbours

JUNG = "Jung et al. 2020, Theorem 3.5"
MONITOR = "the monitor of Bassily et al. 2016 and [F], Theorem 10"
EXPECTATION = "[F] Proposition 20, unconditional"


@dataclass(frozen=True)
class TheoremNeeds:
    """The requirements of a theorem: privacy, error and failure on the sample, and ``rows`` where it needs some."""

    epsilon: float
    delta: float
    sample_error: float
    sample_beta: float
    rows: float = 1.0


def replace_one(budget: Budget) -> tuple[float, float]:
    """Return (ε, δ) for one replaced row, which the theorems are about: it is one row removed and one added."""
    return replace_one_cost(budget.epsilon, budget.delta, budget.neighbours)


def replace_one_cost(epsilon: float, delta: float, neighbours: Neighbours) -> tuple[float, float]:
    """Return (ε, δ) for one replaced row, given (ε, δ) for these neighbours."""
    if neighbours == "replace":
        return epsilon, delta
    return 2 * epsilon, min(1.0, delta * (2 + _excess(epsilon)))


# With high probability: statistical queries.


def theorem_4(alpha: float, beta: float) -> TheoremNeeds:
    """Return what makes a mechanism (α, β)-accurate on the population, in [F]'s round constants."""
    _require(alpha=alpha, beta=beta)
    return TheoremNeeds(alpha / 64, alpha * beta / 32, alpha / 8, alpha * beta / 16)


def monitored_error(epsilon: float, delta: float, sample_error: float, sample_beta: float, beta: float) -> float:
    """Return α by the proof of Theorem 4, for the best number of samples T of its monitor.

    α·(1 − (1 − β)^T) ≤ E|q(D) − a| of the worst answer of T samples ≤ α′ + Tβ′ + e^ε − 1 + Tδ.
    """
    _require(beta=beta)
    fixed, each = sample_error + _excess(epsilon), sample_beta + delta
    return _best_monitor(lambda T: fixed + T * each, beta)


def monitored_epsilon(alpha: float, delta: float, sample_error: float, sample_beta: float, beta: float) -> float:
    """Return the largest ε for which ``monitored_error`` promises α, rounded down; refuse if there is none."""
    if monitored_error(0.0, delta, sample_error, sample_beta, beta) >= alpha:
        return _log_left(0.0, alpha)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        fits = monitored_error(middle, delta, sample_error, sample_beta, beta) <= alpha
        low, high = (middle, high) if fits else (low, middle)
    return low


def jung(epsilon: float, delta: float, sample_error: float, sample_beta: float, beta: float) -> float:
    """Return α′ + (e^ε − 1) + c + 2d at the least c + 2d for which β′/c + δ/d = β: (√β′ + √(2δ))²/β."""
    _require(beta=beta)
    return _cut_to_unit(sample_error + _excess(epsilon) + jung_extra(delta, sample_beta, beta))


def jung_extra(delta: float, sample_beta: float, beta: float) -> float:
    """Return c + 2d, the price of failures on the sample and of privacy. By Lagrange, c : 2d = √β′ : √(2δ)."""
    return (math.sqrt(sample_beta) + math.sqrt(2 * delta)) ** 2 / beta


def jung_epsilon(alpha: float, delta: float, sample_error: float, sample_beta: float, beta: float) -> float:
    """Return the largest ε for which ``jung`` promises α; refuse if there is none."""
    left = alpha - sample_error - jung_extra(delta, sample_beta, beta)
    return _log_left(left, alpha)


def on_sample(alpha: float, epsilon: float, delta: float, beta: float) -> TheoremNeeds:
    """Return what (ε, δ)-private answers must reach on the sample to be (α, β)-accurate on the population, by ``jung``.

    Any β′ will do, because the error on a sample grows only with its logarithm. Here it is a sixteenth of what e^ε − 1
    and δ leave of α. Refuse if they leave nothing.
    """
    _require(alpha=alpha, beta=beta)
    left = alpha - _excess(epsilon) - 2 * delta / beta
    sample_beta = beta * max(left, 0.0) / 16
    error = alpha - _excess(epsilon) - (jung_extra(delta, sample_beta, beta) if left > 0 else math.inf)
    if not error > 0:
        raise InvalidInput(
            f"within must be above the price of the privacy loss, e^epsilon − 1 + 2·delta/beta = "
            f"{_excess(epsilon) + 2 * delta / beta:.4g}. Found {alpha:g}. Use a smaller budget, or a larger error."
        )
    return TheoremNeeds(epsilon, delta, error, sample_beta)


# With high probability: the sample's own values, for sampling counting queries and for every answer of a session.


def theorem_10(alpha: float, beta: float, queries: int) -> TheoremNeeds:
    """Return what makes a mechanism for sampling counting queries (α, β)-accurate on the population.

    Differs: n ≥ 1024 ln(2k/β)/α², because the monitor chooses among 2kT queries, not kT.
    """
    _require(alpha=alpha, beta=beta)
    return TheoremNeeds(alpha / 64, alpha * beta / 16, alpha / 2, 0.0, 1024 * math.log(2 * queries / beta) / alpha**2)


def sample_gap(epsilon: float, delta: float, rows: float, queries: int, beta: float) -> float:
    """Bound |q(S) − q(D)| for all k queries that were asked, by the proof of Theorem 10 at its best T and η.

    t·(1 − (1 − β)^T) − (2/(ηn))·ln(2kT) ≤ E of what the monitor chooses ≤ e^(ε + η) − 1 + Tδ.
    """
    _require(beta=beta)
    if not (rows >= 1 and queries >= 1):
        raise InvalidInput(f"rows and queries must be at least 1. Found {rows!r} and {queries!r}. Give both.")

    def chosen(T: int) -> float:
        words = math.log(2 * queries * T)
        # The best η solves e^(ε + η) = 2·words/(nη²). A few fixed-point steps are enough, because any η is valid.
        η = math.sqrt(2 * words / rows)
        for _ in range(4):
            η = math.sqrt(2 * words / (rows * math.exp(min(epsilon + η, 50.0))))
        return _excess(epsilon + η) + T * delta + 2 * words / (η * rows)

    return _best_monitor(chosen, beta)


def sample_gap_rows(alpha: float, epsilon: float, delta: float, queries: int, beta: float) -> float:
    """Return the number of rows from which on ``sample_gap`` is at most α; refuse if no number is enough."""
    if sample_gap(epsilon, delta, 1e18, queries, beta) > alpha:
        raise InvalidInput(
            f"alpha must be above e^epsilon − 1 + T·delta, which no number of rows can lower. "
            f"Found {alpha!r} at epsilon = {epsilon!r} and delta = {delta!r}. "
            "Use a smaller epsilon or delta, or a larger alpha."
        )
    low, high = 1.0, 1e18
    while high > low * (1 + 1e-9):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if sample_gap(epsilon, delta, middle, queries, beta) <= alpha else (middle, high)
    return high


def counted_by_sampling(
    epsilon: float, delta: float, sample_error: float, rows: float, queries: int, beta: float
) -> float:
    """Return α of k sampling counting queries whose expectation is always within α′ of the sample's value."""
    return _cut_to_unit(sample_error + sample_gap(epsilon, delta, rows, queries, beta))


# In expectation.


def in_expectation(epsilon: float, delta: float, sample_error: float) -> float:
    """Return α′ + e^ε − 1 + δ, a bound on E|q(D) − a| for any one answer with E|q(S) − a| ≤ α′.

    The bound is over all histories, not given one.
    """
    return _cut_to_unit(sample_error + _excess(epsilon) + delta)


def in_expectation_epsilon(alpha: float, delta: float, sample_error: float) -> float:
    """Return the largest ε for which ``in_expectation`` promises α; refuse if there is none."""
    return _log_left(alpha - sample_error - delta, alpha)


def proposition_20(alpha: float) -> TheoremNeeds:
    """Return [F]'s round constants: E|q(S) − a| ≤ α/2 and (α/8, α/4)-privacy give E|q(D) − a| ≤ α."""
    _require(alpha=alpha)
    return TheoremNeeds(alpha / 8, alpha / 4, alpha / 2, 1.0)


def theorem_8(epsilon: float, delta: float, size: int, inner_epsilon: float) -> float:
    """Bound E|q(D) − a| of Algorithm 1: the mean of ℓ = ``size`` rows of S, with Laplace noise of scale 1/(ℓε′).

    E|a − q(S)| ≤ 1/(ℓε′) + 1/(2√ℓ): the noise's mean size, plus the largest mean deviation of ℓ values in [0, 1].
    """
    return in_expectation(epsilon, delta, subsampled_error(size, inner_epsilon))


def subsampled_error(size: int, inner_epsilon: float) -> float:
    """Return the bound 1/(ℓε′) + 1/(2√ℓ) on E|a − q(S)|."""
    return 1 / (size * inner_epsilon) + 1 / (2 * math.sqrt(size))


# Without privacy: description length.


def few_words(rows: float, words: float, beta: float) -> float:
    """Bound |q(S) − q(D)| for every query of a tree of e^words: Hoeffding's bound at each, and a union over all.

    ``words`` is the logarithm of the number of queries an analyst could ask, whatever the sample: the answers decide
    which.
    """
    _require(beta=beta)
    return _cut_to_unit(math.sqrt((words + math.log(2 / beta)) / (2 * rows)))


def naive(rows: float, queries: int, bits: float, beta: float) -> float:
    """Return the same bound for k answers of ``bits`` bits each, which an adaptive analyst may exploit."""
    return few_words(rows, queries * bits * math.log(2), beta)


def _best_monitor(expected: Callable[[int], float], beta: float) -> float:
    """Return the least expected(T)/(1 − (1 − β)^T) over a spread of candidates T; any T is valid."""
    candidates = {max(1, round(share / beta)) for share in (0.25, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 14, 20)}
    found = min(expected(T) / -math.expm1(T * math.log1p(-beta)) for T in candidates)
    return _cut_to_unit(found)


def _excess(epsilon: float) -> float:
    """Return e^ε − 1."""
    return math.expm1(epsilon) if epsilon < 700 else math.inf


def _cut_to_unit(error: float) -> float:
    return min(1.0, error)


def _log_left(left: float, alpha: float) -> float:
    """Return ln(1 + left); refuse if nothing is left."""
    if not left > 0:
        raise InvalidInput(
            f"alpha must be above the error on the sample plus the price of failures. Found {alpha!r}. "
            "Use a larger alpha, or answer more accurately on the sample."
        )
    return math.log1p(left)


def _require(**given: float) -> None:
    """Refuse a parameter outside (0, 1)."""
    for name, value in given.items():
        if not 0 < number(value) < 1:
            raise InvalidInput(f"{name} must be between 0 and 1. Found {value!r}. Give a probability or a share.")
