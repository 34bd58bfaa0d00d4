"""Events whose loss is known at Rényi orders below a limit only, so that no ρ holds for all orders.

Papers: Cohen & Lyu, "The target charging technique for privacy analysis across interactive computations" (a test pays
for its hits alone); Papernot & Steinke, "Hyperparameter tuning with Rényi differential privacy" (the best of a random
number of runs), Theorem 2 and Lemma 7; Liu & Talwar, "Private selection from private candidates".

Symbols: α a Rényi order; ε the pure loss of one test; ρ₀ the zCDP loss of one run; K the number of runs, drawn from a
truncated negative binomial law with the parameters η and γ: P[K = k] ∝ (1 − γ)^k·Γ(k + η)/k!, k ≥ 1.

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
from hedgerow._types import Array
from hedgerow.privacy import events
from hedgerow.privacy.events import Event

TAIL = 1e-8  # relative change of the generating function's derivative by which the law of K may be rounded
COINS = 2**62  # probabilities of K are whole multiples of 1/COINS
MOST_RUNS = 200.0  # the largest expected number of runs


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
    """The best of a random number of runs, each of which is ρ₀-zCDP. Only the best is released.

    The number K of runs has the expectation ``runs`` and the shape η. With λ̂ ≥ 1 free,
        D_α ≤ αρ₀ + (1 + η)·(ρ₀(λ̂ − 1) + ln(1/γ)/λ̂) + ln E[K]/(α − 1)
    (Papernot & Steinke, Theorem 2; docs/proofs/private_search.md).
    """

    each: float
    runs: float
    shape: float

    def __post_init__(self) -> None:
        for name in ("each", "runs"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        object.__setattr__(self, "shape", float(self.shape))
        if not 1 <= self.runs <= MOST_RUNS:
            raise errors.InvalidInput(f"runs must be between 1 and {MOST_RUNS:g}. Found {self.runs!r}. Expect fewer.")
        if not -0.9 <= self.shape <= 3:
            raise errors.InvalidInput(f"shape must be between -0.9 and 3. Found {self.shape!r}. Use 0 or 1.")

    @property
    def gamma(self) -> float:
        """γ, by which K has its expectation."""
        return _gamma(self.runs, self.shape)

    def divergence(self, order: float) -> float:
        """Return the bound at the best λ̂ = √(ln(1/γ)/ρ₀), or 1 where that is less."""
        if not order > 1:
            return math.inf
        η, ρ, surprise = self.shape, self.each, math.log(1 / self.gamma)
        other = max(1.0, math.sqrt(surprise / ρ))
        bound = order * ρ + (1 + η) * (ρ * (other - 1) + surprise / other) + math.log(self.runs) / (order - 1)
        rounded = 4 * TAIL * order / (order - 1)  # the law of K is rounded (docs/proofs/private_search.md)
        return bound * (1 + events.ROUNDING) + rounded

    @property
    def weights(self) -> list[int]:
        """The probabilities of K = 1, 2, …, as whole multiples of 1/COINS that sum to 1."""
        return _weights(self.runs, self.shape)


def _law(gamma: float, shape: float, most: int) -> Array:
    """Return P[K = k] for k = 1 … ``most`` as shares of P[K = 1]: each is (1 − γ)(k + η)/(k + 1) of the one before."""
    k = np.arange(1.0, most)
    return np.concatenate([[1.0], np.cumprod((1 - gamma) * (k + shape) / (k + 1))])


@functools.lru_cache(maxsize=64)
def _gamma(runs: float, shape: float) -> float:
    """Return γ with E[K] = runs: E[K] = η(1 − γ)/(γ(1 − γ^η)), or (1/γ − 1)/ln(1/γ) at η = 0."""

    def mean(ln: float) -> float:  # of γ = e^ln
        if shape == 0:
            return math.expm1(-ln) / -ln
        return shape * math.expm1(-ln) / -math.expm1(shape * ln)

    low, high = -60.0, -1e-12
    if mean(high) >= runs:
        return math.exp(high)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if mean(middle) >= runs else (low, middle)
    return math.exp(low)


@functools.lru_cache(maxsize=64)
def _weights(runs: float, shape: float) -> list[int]:
    """Return the rounded law of K. The rounding moves Σ k·|p̃_k − p_k| by less than TAIL·p₁."""
    gamma, most = _gamma(runs, shape), 64
    while True:
        p, k = _law(gamma, shape, most), np.arange(1.0, most + 1)
        fall = (1 - gamma) * max(1.0, (most + shape) / most)  # beyond ``most``, k·p_k falls by this or more each time
        if fall < 1 and most * float(p[-1]) * fall / (1 - fall) < TAIL / 4:
            break
        most *= 2
    total = math.fsum(p.tolist())
    off = float(k.sum()) * total / COINS + float((k * k * p).sum()) * 2.0**-50  # rounding to multiples, and of floats
    if off > TAIL / 4:
        raise errors.InvalidInput(f"runs must be fewer, or the shape larger. Found {runs!r}. Expect fewer runs.")
    weights = [math.floor(each / total * COINS) for each in p.tolist()]
    weights[0] += COINS - sum(weights)
    return weights


for _kind in (HitRound, RandomRuns):
    events.KINDS[_kind.__name__] = _kind
