"""Planned Gaussian noise: a share of the budget, fixed before anything is charged, that pays for Gaussian noise alone.

Papers: Dong, Roth & Su "Gaussian differential privacy"; Canonne, Kamath & Steinke "The discrete Gaussian for
differential privacy" (Proposition 12); Peikert "An efficient and parallel Gaussian sampler for lattices" (a discrete
Gaussian is a continuous one, rounded at random).

Symbols: ε, δ the budget and R its ρ; s the share; G = Σ Δ²/2σ² of all planned noise and O = Σ ρ of all else; α = 1 + b
a Rényi order; κ the price of planned noise.

The privacy loss of Gaussian noise has a normal distribution, which says more than its ρ alone. Where planned noise adds
up to at most G and all else to at most O, in any order and however chosen,

    δ(ε) ≤ E δ_O(ε − Z),   Z normal with mean G and variance 2G,   δ_O(x) = min over α of e^(b(αO − x))·b^b/α^α

(docs/proofs/planned.md). So with O = (1 − s)R there is room for more planned noise than G = sR, namely sR/κ. Planned
noise is billed at κ ≤ 1 times its Δ²/2σ², and the sums of the two parts are filtered separately, in ρ.
"""

from __future__ import annotations

import functools
import math
import statistics

import numpy as np

from hedgerow._types import Array
from hedgerow.privacy.conversion import largest_rho

MARGIN = 1e-8  # share of ε and δ kept for rounding, for the filter's tolerance FIT, and for noise being discrete
CELLS = 2**13  # the number of cells into which the range of Z is divided
LOWEST = -9.0  # the lowest cell ends this many standard deviations from the mean of Z, and contains all that is below
TAIL = 1e-6  # share of δ: the upper tail of Z of this probability counts as a failure
# Outside these limits planned noise has no price of its own: it costs as much as any other noise.
LEAST_EPSILON, MOST_EPSILON, LEAST_DELTA = 1e-6, 1e3, 1e-200
LEAST_PRICE = 0.25  # a lower price would let the ledger's tolerance, ``filter.FIT`` of the total, buy too much
# Values of b to try. Every b gives a valid bound, so the list only needs one close to the best for each loss.
ORDERS: Array = np.geomspace(1e-12, 1e12, 4000)


def mixed_delta(G: float, O: float, epsilon: float, tail: float) -> float:  # noqa: E741
    """Return an upper bound on E δ_O(ε − Z).

    Each cell of Z counts as its upper end. The probability above all cells, ``tail``, counts as a failure.
    """
    ends, above = _cells_of_normal(tail)
    masses = -np.diff(above, prepend=1.0)  # the first cell contains all that is below its upper end
    return float(masses @ _delta(O, epsilon - G - math.sqrt(2 * G) * ends)) + float(above[-1])


@functools.lru_cache(maxsize=16)
def _cells_of_normal(tail: float) -> tuple[Array, Array]:
    """Return the upper ends of the cells of Z in standard deviations, and the probability above each end.

    The probability above the last end is about ``tail``.
    """
    ends = np.linspace(LOWEST, -statistics.NormalDist().inv_cdf(tail), CELLS)
    return ends, np.array([math.erfc(end / math.sqrt(2)) / 2 for end in ends.tolist()])


def _delta(O: float, x: Array) -> Array:  # noqa: E741
    """Return δ_O(x). The best b solves (1 + 2b)·O + log(b/(1 + b)) = x."""
    b = np.exp(np.interp(x, (1 + 2 * ORDERS) * O + np.log(ORDERS) - np.log1p(ORDERS), np.log(ORDERS)))
    logarithm = b * ((1 + b) * O - x) - b * np.log1p(1 / b) - np.log1p(b)
    return np.asarray(np.exp(np.minimum(logarithm, 0.0)))


@functools.lru_cache(maxsize=256)
def price(epsilon: float, delta: float, share: float) -> float:
    """Return κ, the cost of planned noise of Δ²/2σ² = 1 under this share of the budget, rounded up and at most 1."""
    if not (LEAST_EPSILON <= epsilon <= MOST_EPSILON and delta >= LEAST_DELTA):
        return 1.0
    ρ, ε, δ = largest_rho(epsilon, delta), epsilon * (1 - MARGIN), delta * (1 - MARGIN)

    def holds(more: float) -> bool:
        return mixed_delta(share * ρ * more, (1 - share) * ρ, ε, TAIL * delta) <= δ

    if holds(1 / LEAST_PRICE):
        return LEAST_PRICE
    low, high = 1.0, 1 / LEAST_PRICE
    while high - low > 1e-6 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return min(1.0, (1 + 1e-15) / low)


def mixed_epsilon(G: float, O: float, delta: float, highest: float) -> float:  # noqa: E741
    """Return the least ε found at which planned noise of G and all else of O are together (ε, delta)-DP.

    The search starts at ``highest``, so the result is at most ``highest`` if that ε holds.
    """
    if not delta >= LEAST_DELTA:
        return math.inf
    low, high = 0.0, min(highest, MOST_EPSILON)

    def holds(epsilon: float) -> bool:
        return mixed_delta(G, O, epsilon * (1 - MARGIN), TAIL * delta) <= delta * (1 - MARGIN)

    while not holds(high):
        if high > MOST_EPSILON:
            return math.inf
        low, high = high, 2 * high
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return max(high, LEAST_EPSILON)
