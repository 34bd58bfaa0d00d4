"""Events whose loss is known at some Rényi orders only, so that no ρ holds for all orders.

Papers: Cohen & Lyu, "The target charging technique for privacy analysis across interactive computations" (a test pays
for its hits alone); Papernot & Steinke, "Hyperparameter tuning with Rényi differential privacy" (the best of a random
number of runs), Theorem 6; Liu & Talwar, "Private selection from private candidates".

Symbols: α a Rényi order; ε the pure loss of one test; ρ₀ the zCDP loss of one run; K the number of runs, of a Poisson
law without 0: P[K = k] ∝ μ^k/k!, k ≥ 1.

A budget prices such an event at one order: the α at which its ρ converts to its ε (``conversion.order_of``). The sum of
all divergences at this order is all that the conversion needs (docs/proofs/accounting.md). So a session that pays for
such an event has no planned noise, no slack, and one row a person, because their proofs use every order.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import final

import numpy as np

from hedgerow import errors
from hedgerow._checks import positive
from hedgerow.privacy import events
from hedgerow.privacy.events import Event

TAIL = 1e-8  # relative change of the generating function's derivative by which the law of K may be rounded
COINS = 2**62  # probabilities of K are whole multiples of 1/COINS
LEAST_MEAN, MOST_MEAN = 1e-6, 12.0  # the largest μ whose law multiples of 1/COINS hold exactly enough
TILTS = np.geomspace(1e-3, 20.0, 400)  # s of ``largest_difference``


@dataclass(frozen=True)
class RenyiEvent(Event):
    """An event with a bound on its Rényi divergence at each order, which may be infinite above some order."""

    @property
    def epsilon(self) -> float:
        """Infinity: no finite ε bounds the loss."""
        return math.inf

    @property
    def rho(self) -> float:
        """Infinity: no ρ holds for every order."""
        return math.inf

    def divergence(self, order: float) -> float:
        """Return the bound on D_α at this order above 1."""
        raise NotImplementedError


@final
@dataclass(frozen=True)
class HitRound(RenyiEvent):
    """Tests against a public threshold, up to and including the first "above", each with fresh noise.

    Every value gets noise Lap(Δ/ε), so that each test is ε-DP. A test whose answer is "below" costs nothing: for any
    number of tests until the first "above",
        D_α ≤ ln(1/θ)/(α − 1),   θ = min((1 + e^ε − e^(αε))·e^((α−1)ε), (1 + e^ε − e^((1−α)ε))·e^(−αε))
    while α < ln(1 + e^ε)/ε (docs/proofs/hits.md). Δ is rounded up to the grid of the noise, 2^-20 rows.
    """

    sensitivity: float
    epsilon_query: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon_query", positive("epsilon_query", self.epsilon_query))
        finest, given = events.comparison_grid(0.0), positive("sensitivity", self.sensitivity)
        if not finest <= given <= events.COARSEST:
            raise errors.InvalidInput(
                f"sensitivity must be between 2^-20 and 2^40 rows. Found {given!r}. Count in rows, not in fractions."
            )
        for grid in (finest, 1.0):
            object.__setattr__(self, "sensitivity", math.ceil(given / grid) * grid)
            if events.comparison_grid(self.query_scale) <= grid:
                break
        if not events.FINEST <= self.query_scale <= events.COARSEST:
            raise errors.InvalidInput(
                f"query_scale must be between 2^-40 and 2^40 rows. Found {self.query_scale:.3g}. Change the epsilon."
            )

    @property
    def query_scale(self) -> float:
        """Δ/ε, the scale of each value's noise, in rows."""
        return self.sensitivity / self.epsilon_query

    def divergence(self, order: float) -> float:
        """Return ln(1/θ)/(α − 1), or infinity from the order ln(1 + e^ε)/ε."""
        return hit_divergence(self.epsilon_query, order)


def hit_divergence(epsilon: float, order: float) -> float:
    """Return the bound on D_α of ε-DP yes-or-no tests up to the first "yes", however many they are."""
    ε, α = epsilon, order
    if not α > 1 or α * ε >= 30:
        return math.inf
    # 1 + e^ε − e^(αε), and the same with 1 − α for α, without cancellation: 1 + (e^ε − 1) − (e^(αε) − 1)
    upward = math.expm1(ε) - math.expm1(α * ε)
    downward = math.expm1(ε) - math.expm1((1 - α) * ε)
    if upward <= -1:
        return math.inf
    logarithm = min(math.log1p(upward) + (α - 1) * ε, math.log1p(downward) - α * ε)
    return max(-logarithm, 0.0) / (α - 1) * (1 + events.ROUNDING) + 2.0**-50 / (α - 1)


@final
@dataclass(frozen=True)
class RandomRuns(RenyiEvent):
    """The best of a random number K ≥ 1 of runs, each of which is ρ₀-zCDP. Only the best is released.

    P[K = k] ∝ μ^k/k!. With δ̂ a bound on u′ − u·α/(α − 1) over the probabilities u, u′ of one event of a run on
    neighbours (``largest_difference``),
        D_α ≤ αρ₀ + μδ̂ + ln E[K]/(α − 1),   E[K] = μ/(1 − e^−μ)
    (Papernot & Steinke, Theorem 6; docs/proofs/private_search.md).
    """

    each: float
    mean: float

    def __post_init__(self) -> None:
        for name in ("each", "mean"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        if not LEAST_MEAN <= self.mean <= MOST_MEAN:
            raise errors.InvalidInput(
                f"mean must be between {LEAST_MEAN:g} and {MOST_MEAN:g}. Found {self.mean!r}. Expect fewer."
            )

    @property
    def expected(self) -> float:
        """E[K]."""
        return self.mean / -math.expm1(-self.mean)

    def generating_function(self, x: float) -> float:
        """Return E[x^K] for 0 ≤ x ≤ 1: the probability that every run has an event of probability x."""
        return math.exp(-self.mean * (1 - x)) * math.expm1(-self.mean * x) / math.expm1(-self.mean)

    def divergence(self, order: float) -> float:
        """Return the bound."""
        if not order > 1:
            return math.inf
        bound = (
            order * self.each + self.mean * largest_difference(self.each, order) + math.log(self.expected) / (order - 1)
        )
        rounded = 4 * TAIL * order / (order - 1)  # the law of K is rounded (docs/proofs/private_search.md)
        return bound * (1 + events.ROUNDING) + rounded

    @property
    def weights(self) -> list[int]:
        """The probabilities of K = 1, 2, …, as whole multiples of 1/COINS that sum to 1."""
        return _weights(self.mean)


def largest_difference(rho: float, order: float) -> float:
    """Return a bound on u′ − c·u, c = α/(α − 1), over the probabilities of an event under ρ-zCDP on neighbours.

    By Donsker & Varadhan s·u′ ≤ ρ + ln(1 + u(e^s − 1)) for every s > 0. The u at which the difference of the sides is
    largest has 1 + u(e^s − 1) = (e^s − 1)/(cs), or is 0. Every s gives a valid bound, and the least of many is taken.
    """
    c = order / (order - 1)
    w = np.expm1(TILTS) / (c * TILTS)
    inside = (rho + np.log(np.maximum(w, 1.0)) - 1) / TILTS + c / np.expm1(TILTS)
    return float(np.where(w > 1, inside, rho / TILTS).min()) + 2.0**-40


@functools.lru_cache(maxsize=64)
def _weights(mean: float) -> list[int]:
    """Return the rounded law of K. The rounding moves Σ k·|p̃_k − p_k| by less than TAIL·p₁."""
    most = math.ceil(8 * mean) + 40  # from there on, k·p_k falls by 8 or more each time
    k = np.arange(1.0, most + 1)
    p = np.cumprod(np.concatenate([[1.0], mean / k[1:]]))  # as shares of p₁
    total = math.fsum(p.tolist())
    off = float(k.sum()) * total / COINS + float((k * k * p).sum()) * 2.0**-50  # rounding to multiples, and of floats
    if off > TAIL / 4 or most * float(p[-1]) > TAIL / 4:
        raise errors.InvalidInput(f"mean must be smaller. Found {mean!r}. Expect fewer runs.")
    weights = [math.floor(each / total * COINS) for each in p.tolist()]
    weights[0] += COINS - sum(weights)
    return weights


for _kind in (HitRound, RandomRuns):
    events.KINDS[_kind.__name__] = _kind
