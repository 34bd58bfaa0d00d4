"""Gaussian noise that is planned: a share of the budget, fixed before anything is charged, that pays for Gaussian noise alone.

Papers: Dong, Roth & Su "Gaussian differential privacy"; Canonne, Kamath & Steinke "The discrete Gaussian for differential
privacy" (Proposition 12); Peikert "An efficient and parallel Gaussian sampler for lattices" (a discrete Gaussian is a continuous
one, rounded at random).

Symbols: ε, δ the budget and R its ρ; s the share; G = Σ Δ²/2σ² of all planned noise and O = Σ ρ of all else; α = 1 + b a Rényi order;
κ the price of planned noise.

The loss of Gaussian noise is normal, which says more than its ρ does. Where planned noise has at most G and all else at most O,
whatever the order and however chosen,

    δ(ε) ≤ E δ_O(ε − Z),   Z normal with mean G and variance 2G,   δ_O(x) = min over α of e^(b(αO − x))·b^b/α^α

(docs/proofs/planned.md). So with O = (1 − s)R there may be more planned noise than G = sR: as much as sR/κ. Planned noise is billed at
κ ≤ 1 times its Δ²/2σ², and the sums of either part are filtered, in ρ.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from hedgerow._types import Array
from hedgerow.privacy.conversion import largest_rho
from hedgerow.privacy.events import Event, Planned

MARGIN = 1e-8  # share of ε and δ kept for rounding, for sums that fit but for rounding, and for discrete noise
CELLS = 2**13  # of Z
LOWEST = -9.0  # deviations of Z: all below counts as this
TAIL = 1e-6  # of δ: all of Z above counts as lost
LEAST_EPSILON, MOST_EPSILON, LEAST_DELTA = 1e-6, 1e3, 1e-200  # beyond, planned noise has the price of any other
LEAST_PRICE = 0.25  # a sum may exceed its part by ``ledger.FIT`` of the total, which must not buy much
# Any b gives a valid bound; for each loss there must be one close to the best.
ORDERS: Array = np.geomspace(1e-12, 1e12, 4000)


def mixed_delta(G: float, O: float, epsilon: float, tail: float) -> float:  # noqa: E741
    """An upper bound of E δ_O(ε − Z): each cell of Z counts as its upper end, and what is above all cells, ``tail``, as lost."""
    ends, above = _cells_of_normal(tail)
    masses = -np.diff(above, prepend=1.0)  # the first is of all below
    return float(masses @ _delta(O, epsilon - G - math.sqrt(2 * G) * ends)) + float(above[-1])


@functools.lru_cache(maxsize=16)
def _cells_of_normal(tail: float) -> tuple[Array, Array]:
    """Return the upper ends of the cells of Z, the last of which has about ``tail`` above it, and the mass above each end."""
    ends = np.linspace(LOWEST, -statistics.NormalDist().inv_cdf(tail), CELLS)
    return ends, np.array([math.erfc(end / math.sqrt(2)) / 2 for end in ends.tolist()])


def _delta(O: float, x: Array) -> Array:  # noqa: E741
    """δ_O(x). The best b has (1 + 2b)·O + log(b/(1 + b)) = x."""
    b = np.exp(np.interp(x, (1 + 2 * ORDERS) * O + np.log(ORDERS) - np.log1p(ORDERS), np.log(ORDERS)))
    logarithm = b * ((1 + b) * O - x) - b * np.log1p(1 / b) - np.log1p(b)
    return np.asarray(np.exp(np.minimum(logarithm, 0.0)))


@functools.lru_cache(maxsize=256)
def price(epsilon: float, delta: float, share: float) -> float:
    """κ: what planned noise of Δ²/2σ² = 1 costs where its share of the budget is this. Rounded up, and at most 1."""
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
    """The least ε found at which planned noise of G and all else of O are (ε, delta)-private together; at most ``highest`` where that is one."""
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


@final
@dataclass(frozen=True)
class Parts:
    """What was charged, at its prices, to the share of planned noise and beside it. Without planned noise there is no share."""

    share: float | None = None
    planned: Fraction = Fraction(0)
    others: Fraction = Fraction(0)

    @property
    def spent(self) -> Fraction:
        return self.planned + self.others

    def after(self, events: Sequence[Event], costs: Sequence[float]) -> Parts | None:
        """With these charged too. None where planned noise comes too late, or with another share."""
        shares = {event.share for event in events if isinstance(event, Planned)}
        if shares and self.share is None and self.spent > 0:
            return None  # the share could be chosen by what came out
        known = shares if self.share is None else shares | {self.share}
        if len(known) > 1:
            return None
        own = [Fraction(c) for e, c in zip(events, costs, strict=True) if isinstance(e, Planned)]
        planned, every = sum(own, Fraction(0)), sum(map(Fraction, costs), Fraction(0))
        return Parts(next(iter(known), None), self.planned + planned, self.others + every - planned)

    def left(self, total: Fraction) -> tuple[Fraction, Fraction]:
        """Of such a total, for planned noise and for all else."""
        share = Fraction(0 if self.share is None else self.share) * total
        return share - self.planned, total - share - self.others
