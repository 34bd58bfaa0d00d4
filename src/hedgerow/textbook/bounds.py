"""The guarantees of the theorems, both ways: the rows that suffice for an error, and the error reachable with the rows.

Papers: Dwork & Roth, *The Algorithmic Foundations of Differential Privacy*, ch. 4 (Theorems 4.5, 4.9, 4.10, 4.14, 4.15,
Proposition 4.4); Wang, lecture 12 (Theorem 12.6); Ullman, *Private multiplicative weights beyond linear queries*
(Theorem 3.1). All for replace-one neighbours, where n is public.

Symbols: n rows, |X| cells of the universe, k queries, (ε, δ) privacy, β the probability of failure. α is the theorem's
own parameter: online PMW and MWEM answer every query within **3α**, SmallDB within α.

Differs: Theorem 4.14 prints 32 where its proof gives 9·4 = 36. Theorem 4.9 hides its constants; here they come from
Rademacher averages and the Sauer–Shelah lemma (docs/proofs/small_db.md). Theorem 12.6 hides its constants; here they
come from zCDP composition (docs/proofs/mwem.md). The mechanisms of this package are calibrated by the ledger and need
fewer rows: ``pmw.rows_needed`` and ``mwem.rows_needed`` stay below these bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from hedgerow.errors import InvalidInput
from hedgerow.textbook.multiplicative_weights import (
    update_bound as update_bound,  # Theorem 4.10 is defined beside the update rule
)

SQRT2 = math.sqrt(2)


def smallest_alpha(rows_needed: Callable[[float], float], rows: float) -> float:
    """Return the least α in (0, 1) with rows_needed(α) ≤ rows, or infinity if there is none.

    ``rows_needed`` must be a decreasing function.
    """
    low, high = 1e-9, 1 - 1e-9
    if not rows_needed(high) <= rows:
        return math.inf
    for _ in range(200):
        middle = math.sqrt(low * high)
        if rows_needed(middle) <= rows:
            high = middle
        else:
            low = middle
        if high / low < 1 + 1e-12:
            break
    return high


# Online PMW for linear queries.


def pmw_rows(alpha: float, beta: float, epsilon: float, delta: float, queries: int, cells: int) -> float:
    """Return the rows for k adaptive queries, each within 3α: Theorem 4.14 (δ = 0, corrected to 36) and 4.15 (δ > 0).

    n ≥ 36·ln|X|·(ln k + ln(32 ln|X|/(α²β)))/(ε α³), or (2 + 32√2)·√(ln|X| ln(2/δ))·(the same)/(ε α²).
    """
    _require(alpha=alpha, beta=beta, epsilon=epsilon, delta=delta, queries=queries, cells=cells)
    ln_x = math.log(cells)
    union = math.log(queries) + math.log(32 * ln_x / (alpha**2 * beta))
    if delta == 0:
        return 36 * ln_x * union / (epsilon * alpha**3)
    return (2 + 32 * SQRT2) * math.sqrt(ln_x * math.log(2 / delta)) * union / (epsilon * alpha**2)


def pmw_alpha(rows: float, beta: float, epsilon: float, delta: float, queries: int, cells: int) -> float:
    """Return the smallest α of Theorems 4.14 and 4.15 at n rows. Answers are within 3α."""
    return smallest_alpha(lambda a: pmw_rows(a, beta, epsilon, delta, queries, cells), rows)


# Offline MWEM.


def mwem_rows(alpha: float, beta: float, epsilon: float, delta: float, queries: int, cells: int) -> float:
    """Return the rows for k known queries, each within 3α: Theorem 12.6 with constants, T = ⌊4 ln|X|/α²⌋ + 1 rounds.

    - δ > 0: n ≥ 2√(T(ln(1/δ) + ε))·(ln(2kT/β) + √(2 ln(4T/β)))/(ε α), that is Õ(ln k·√(ln|X| ln 1/δ)/(ε α²)).
    - δ = 0: n ≥ 2T·(2 ln(2kT/β) + ln(2T/β))/(ε α).

    Rounding adds 2/α rows.
    """
    _require(alpha=alpha, beta=beta, epsilon=epsilon, delta=delta, queries=queries, cells=cells)
    rounds = update_bound(alpha, cells, "paper") + 1
    choice, sample = math.log(2 * queries * rounds / beta), math.log(2 * rounds / beta)
    if delta == 0:
        width = 2 * rounds * (2 * choice + sample) / epsilon
    else:
        one_over_root_rho = 2 * math.sqrt(math.log(1 / delta) + epsilon) / epsilon
        width = math.sqrt(rounds) * one_over_root_rho * (choice + math.sqrt(2 * (sample + math.log(2))))
    return (width + 2) / alpha


def mwem_alpha(rows: float, beta: float, epsilon: float, delta: float, queries: int, cells: int) -> float:
    """Return the smallest α of Theorem 12.6 at n rows. Answers are within 3α."""
    return smallest_alpha(lambda a: mwem_rows(a, beta, epsilon, delta, queries, cells), rows)


# SmallDB.


def small_db_size(alpha: float, queries: int) -> int:
    """Return m = ⌈ln|Q|/α²⌉. Some database of m rows answers every query within α (Lemma 4.3, which needs |Q| > 2)."""
    _require(alpha=alpha, queries=queries)
    return math.ceil(math.log(max(queries, 3)) / alpha**2)


def small_db_size_vc(alpha: float, vc_dimension: int) -> int:
    """Return the size that suffices for any number of 0/1 queries of VC dimension d (Theorem 4.8 with constants).

    It is the least m ≥ d with ``small_db_deviation_vc`` at most α.
    """
    _require(alpha=alpha, vc_dimension=vc_dimension)
    low, high = vc_dimension, 2 * vc_dimension
    while small_db_deviation_vc(high, vc_dimension) > alpha:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if small_db_deviation_vc(middle, vc_dimension) <= alpha else (middle, high)
    return high


def small_db_deviation_vc(size: int, vc_dimension: int) -> float:
    """Return the α within which some database of m ≥ d rows answers every 0/1 query of VC dimension d, else 1.

    It is 2√(2 ln(2(em/d)^d)/m), by symmetrization, Massart's lemma and Sauer–Shelah.
    """
    m, d = size, vc_dimension
    return 2 * math.sqrt(2 * (math.log(2) + d * math.log(math.e * m / d)) / m) if m >= d else 1.0


def small_db_error(rows: float, size: int, beta: float, epsilon: float, cells: int, sampling_error: float) -> float:
    """Return the error of SmallDB with probability 1 − β (Proposition 4.4): sampling_error + 2(ln|R| + ln(1/β))/(εn).

    R is the set of databases of m rows. ``sampling_error`` is the α for which m was chosen. |R| = C(|X| + m − 1, m) is
    exact; the book uses |X|^m.
    """
    _require(beta=beta, epsilon=epsilon, cells=cells, size=size)
    return sampling_error + 2 * (ln_databases(cells, size) + math.log(1 / beta)) / (epsilon * rows)


def ln_databases(cells: int, size: int) -> float:
    """Return ln C(|X| + m − 1, m), the logarithm of the number of databases of m rows. It is never above m ln|X|."""
    if cells + size < 10_000:
        return math.log(math.comb(cells + size - 1, size))
    exact = math.lgamma(cells + size) - math.lgamma(size + 1) - math.lgamma(cells) if cells < 2**40 else math.inf
    return min(exact, size * math.log(cells))


def small_db_rows(
    alpha: float, beta: float, epsilon: float, queries: int, cells: int, vc_dimension: int | None = None
) -> float:
    """Return the rows for SmallDB(α/2) to answer all queries within α: Theorem 4.5, or 4.9 if a VC dimension is given.

    n ≥ (16 ln|X| ln|Q| + 4 ln(1/β))/(ε α³) as printed, or the rows that Proposition 4.4 needs with m rounded up if that
    is more.
    """
    _require(alpha=alpha, beta=beta, epsilon=epsilon, queries=queries, cells=cells)
    size = small_db_size(alpha / 2, queries) if vc_dimension is None else small_db_size_vc(alpha / 2, vc_dimension)
    # half of α is the sampling error, the other half pays for the exponential mechanism
    proposition = 4 * (ln_databases(cells, size) + math.log(1 / beta)) / (epsilon * alpha)
    if vc_dimension is not None:
        return proposition
    printed = (16 * math.log(cells) * math.log(max(queries, 3)) + 4 * math.log(1 / beta)) / (epsilon * alpha**3)
    return max(printed, proposition)


def small_db_alpha(
    rows: float, beta: float, epsilon: float, queries: int, cells: int, vc_dimension: int | None = None
) -> float:
    """Return the smallest α of Theorem 4.5 (or 4.9) at n rows."""
    return smallest_alpha(lambda a: small_db_rows(a, beta, epsilon, queries, cells, vc_dimension), rows)


# The sparse vector.


def threshold_game_rows(
    alpha: float, beta: float, epsilon: float, delta: float, queries: int, tops: int, scale: float = 1.0
) -> float:
    """Return the rows for k adaptive threshold queries with at most T answers ⊤ (Ullman Theorem 3.1).

    The queries are (3S/n)-sensitive. With n ≥ 256·S·√(T ln(2/δ))·ln(4k/β)/(ε α), every q ≥ α is answered ⊤ and every
    q ≤ α/2 is answered ⊥.
    """
    _require(beta=beta, epsilon=epsilon, delta=delta, queries=queries, tops=tops)
    if not (alpha > 0 and delta > 0 and scale > 0):
        raise InvalidInput(
            f"alpha, delta and scale must be above 0. Found {alpha!r}, {delta!r}, {scale!r}. The theorem is for δ > 0."
        )
    return 256 * scale * math.sqrt(tops * math.log(2 / delta)) * math.log(4 * queries / beta) / (epsilon * alpha)


def threshold_game_alpha(
    rows: float, beta: float, epsilon: float, delta: float, queries: int, tops: int, scale: float = 1.0
) -> float:
    """Return the α of Ullman Theorem 3.1 at n rows."""
    return threshold_game_rows(1.0, beta, epsilon, delta, queries, tops, scale) / rows


def _require(**given: float) -> None:
    """Refuse parameters outside the range of their name."""
    for name, value in given.items():
        if name in ("alpha", "beta"):
            good, rule = 0 < value < 1, "between 0 and 1"
        elif name == "epsilon":
            good, rule = 0 < value < math.inf, "finite and above 0"
        elif name == "delta":
            good, rule = 0 <= value < 1, "at least 0 and below 1"
        else:
            least = 2 if name == "cells" else 1
            good, rule = value >= least and value == int(value), f"a whole number of at least {least}"
        if not good:
            raise InvalidInput(f"{name} must be {rule}. Found {value!r}. Correct it.")
