"""The sparse vector technique: many threshold questions about the data for the price of those answered "above".

Papers: Dwork & Roth, *The Algorithmic Foundations of Differential Privacy*, ch. 3 (AboveThreshold, NumericSparse);
Ullman, *Private multiplicative weights beyond linear queries*, Theorem 3.1; Lyu, Su & Li, *Understanding the sparse
vector technique*; Ding et al., *Free gap information from the differentially private sparse vector and noisy max
mechanisms*. Proof: docs/proofs/sparse_vector.md.

Symbols: Δ sensitivity in rows, ε₁ for the threshold, ε₂ for the values, τ ~ Lap(Δ/ε₁) drawn once a round,
ν ~ Lap(2Δ/ε₂) drawn for every value, ⊤ "above" (value + ν ≥ threshold + τ), ⊥ "below", c rounds, k values in all.

Differs: each ⊤ ends a round and the next begins with a fresh τ. A round is charged when it opens, before τ exists, and
opens when it is first needed. The ratio ε₁ : ε₂ is free; 1 : 2^(2/3) minimises the variance of τ − ν (the book's is
1 : 1). All noise is discrete and Δ, which the event rounds up, is on its grid, so that the proof's shifts are exact.
The free gap, which is released, needs values and threshold on a grid of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import final

from hedgerow.accounting import Accountant, Budget
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.events import AboveThreshold, Gaussian, Laplace
from hedgerow.noise import Noise

FINEST = 2.0**-20  # of a row: the finest grid of values, thresholds and the noise of comparisons
LEAST_VARIANCE = 2 ** (2 / 3)  # ε₂/ε₁ that minimises 2(Δ/ε₁)² + 2(2Δ/ε₂)²


def guard_round(epsilon: float, ratio: float = LEAST_VARIANCE, sensitivity: float = 1.0) -> AboveThreshold:
    """One round of ε in all, split ε₁ : ε₂ = 1 : ratio."""
    if not 0 < ratio < math.inf:
        raise InvalidInput(f"ratio must be finite and above 0. Found {ratio!r}. Give epsilon_query/epsilon_threshold.")
    first = epsilon / (1 + ratio)
    return AboveThreshold(sensitivity, first, epsilon - first)


@final
@dataclass(frozen=True)
class SparseVector:
    """What is public: a threshold in rows, the round's privacy, and how many ⊤ there may be.

    ``measurement``: NumericSparse. On ⊤ the value is measured with this fresh noise, charged separately.
    ``gap``: on ⊤ also release (value + ν) − (threshold + τ), which costs nothing more. It is never given on ⊥, nor
    are the noisy value and the noisy threshold themselves. As an estimate of value − threshold it is biased upwards,
    for it is only seen when it is not negative, and of a value |x| it says nothing about the sign of x. Values, the
    threshold and Δ must then be multiples of ``grid``.
    """

    threshold: float
    guard: AboveThreshold
    rounds: int
    measurement: Laplace | Gaussian | None = None
    gap: bool = False
    grid: float = 1.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.threshold):
            raise InvalidInput(f"threshold must be finite. Found {self.threshold!r}. Give it in rows.")
        if not (isinstance(self.rounds, int) and self.rounds >= 1):
            raise InvalidInput(
                f"rounds must be a whole number of at least 1. Found {self.rounds!r}. Allow one ⊤ or more."
            )
        # on the grid of the noise, so that no rounding depends on the data; down, so that ⊥ promises no less
        object.__setattr__(self, "threshold", math.floor(self.threshold / FINEST) * FINEST)
        if self.gap and any(x % self.grid for x in (self.threshold, self.guard.sensitivity)):
            raise InvalidInput(
                f"threshold and sensitivity must be multiples of the grid when the gap is released. Found "
                f"{self.threshold!r}, {self.guard.sensitivity!r} and grid {self.grid!r}. Round the threshold."
            )


@final
@dataclass(frozen=True)
class Progress:
    """How far a sparse vector is. ``threshold_noise`` (τ) is secret: never shown, stored or used after its ⊤."""

    tops: int = 0
    threshold_noise: float | None = field(default=None, repr=False, compare=False)

    @property
    def is_open(self) -> bool:
        """Whether a round is open, so that a value below the threshold costs nothing."""
        return self.threshold_noise is not None


@final
@dataclass(frozen=True)
class Outcome:
    """What is released about one value; ``cost`` is what it charged, in the budget's currency."""

    above: bool
    measured: float | None = None
    gap: float | None = None
    cost: float = 0.0


def step(
    config: SparseVector, progress: Progress, value: float, accountant: Accountant, noise: Noise
) -> tuple[Outcome, Progress]:
    """Compare one private value (in rows, Δ-sensitive given all that was released) with the threshold."""
    opened, cost = ready(config, progress, accountant, noise)
    assert opened.threshold_noise is not None
    # q + ν ≥ T + τ, as q − T ≥ τ − ν: either side is exact in float64, and a comparison always is
    distance, margin = value - config.threshold, opened.threshold_noise - _query_noise(config, noise)
    if distance < margin:
        return Outcome(above=False, cost=cost), opened
    closed = Progress(tops=opened.tops + 1)  # τ is dropped here and never seen again
    measured = None
    if config.measurement is not None:
        accountant.charge(config.measurement)
        cost += accountant.budget.cost(config.measurement)
        measured = float(noise.add(value, config.measurement))
    return Outcome(above=True, measured=measured, gap=distance - margin if config.gap else None, cost=cost), closed


def ready(config: SparseVector, progress: Progress, accountant: Accountant, noise: Noise) -> tuple[Progress, float]:
    """An open round, and what opening it charged (0 if it was open). Callers may do this before they touch the data.

    A round is charged first, then its threshold noise is drawn. Refused when c rounds are over, or the budget is.
    """
    if progress.is_open:
        if config.measurement is not None and not accountant.affords(config.measurement):
            # said before the comparison, whatever its outcome: after ⊤ it would come too late to drop τ
            raise BudgetExceeded(
                f"The budget must afford a measurement. Found {accountant.remaining:.6g} left. Stop here."
            )
        return progress, 0.0
    if progress.tops >= config.rounds:
        raise BudgetExceeded(
            f"A sparse vector must stop after {config.rounds} answers above its threshold. Found {progress.tops}. "
            "Stop here, or open a new one with a new budget."
        )
    if config.measurement is not None and not accountant.affords(config.guard, config.measurement):
        raise BudgetExceeded(
            f"The budget must afford a round and its measurement. Found {accountant.remaining:.6g} left. Stop here."
        )
    accountant.charge(config.guard)
    if config.gap:
        shape = Laplace(config.guard.sensitivity, config.guard.threshold_scale, config.grid)
        drawn = float(noise.add(0.0, shape))
    else:
        drawn = float(noise.comparison(config.guard.threshold_scale))
    return replace(progress, threshold_noise=drawn), accountant.budget.cost(config.guard)


def _query_noise(config: SparseVector, noise: Noise) -> float:
    if not config.gap:
        return float(noise.comparison(config.guard.query_scale))
    return float(noise.add(0.0, Laplace(2 * config.guard.sensitivity, config.guard.query_scale, config.grid)))


# Accuracy: every one of k adaptive comparisons is right to within a width w, except with probability β.


def comparison_weight(rounds: int, queries: int, beta: float) -> tuple[float, float]:
    """(ε·w/Δ, the best ε₂/ε₁) for which all comparisons of c rounds and k values are right to within w.

    |τ| ≤ A in all c rounds except with probability c·exp(−Aε₁/Δ) ≤ β/2. ν is fresh and errs on one side only, so it
    stays within B except with probability k·½·exp(−Bε₂/(2Δ)) ≤ β/2. With P = ln(2c/β), Q = 2 ln(k/β) and A + B = w:
    ε₁ + ε₂ = PΔ/A + QΔ/B, least at A : B = √P : √Q, where it is (√P + √Q)²Δ/w and ε₁ : ε₂ = √P : √Q.
    """
    P, Q = math.log(2 * rounds / beta), 2 * math.log(max(queries, 2) / beta)
    return (math.sqrt(P) + math.sqrt(Q)) ** 2, math.sqrt(Q / P)


def threshold_game_config(
    budget: Budget, *, threshold: float, rounds: int, queries: int, beta: float, sensitivity: float = 1.0
) -> tuple[SparseVector, float]:
    """The whole budget on one sparse vector, and the width w of ``comparison_weight`` that it reaches, in rows."""
    weight, ratio = comparison_weight(rounds, queries, beta)
    epsilon = epsilon_of_round(budget, budget.total / rounds)
    guard = guard_round(epsilon, ratio, sensitivity)
    return SparseVector(threshold, guard, rounds), weight * guard.sensitivity / epsilon


def epsilon_of_round(budget: Budget, cost: float) -> float:
    """The ε of a guard round that costs this much: itself if the budget is pure, else ε·tanh(ε/2) = ρ inverted."""
    if budget.pure:
        return cost
    low, high = math.sqrt(2 * cost), math.sqrt(2 * cost) + cost + 1  # ε²/2 ≥ ε·tanh(ε/2) ≥ ε − 1 … either side of ρ
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.tanh(middle / 2) <= cost else (low, middle)
    return low
