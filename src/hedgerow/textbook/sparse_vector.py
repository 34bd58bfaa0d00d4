"""The sparse vector technique: many threshold questions about the data, for the price of those answered "above".

Papers: Dwork & Roth, *The Algorithmic Foundations of Differential Privacy*, ch. 3 (AboveThreshold, NumericSparse);
Ullman, *Private multiplicative weights beyond linear queries*, Theorem 3.1; Lyu, Su & Li, *Understanding the sparse
vector technique*; Ding et al., *Free gap information from the differentially private sparse vector and noisy max
mechanisms*. Proof: docs/proofs/sparse_vector.md.

Symbols: Δ sensitivity in rows, ε₁ for the threshold, ε₂ for the values, τ ~ Lap(Δ/ε₁) drawn once per round,
ν ~ Lap(2Δ/ε₂) drawn for every value, ⊤ "above" (value + ν ≥ threshold + τ), ⊥ "below", c rounds, k values in all.

Differs: each ⊤ ends a round, and the next begins with a fresh τ. A round opens when it is first needed, and it is
charged when it opens, before τ exists. The ratio ε₁ : ε₂ is free; 1 : 2^(2/3) minimizes the variance of τ − ν (the
book's is 1 : 1). All noise is discrete, and Δ, which the event rounds up, is on its grid, so that the proof's shifts
are exact. Values are floored to that grid, after which one row still moves them by at most Δ, and are compared as whole
numbers of its steps. The free gap, which is released, has a grid of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.events import AboveThreshold, Gaussian, Laplace
from hedgerow.privacy.guard_round import ABOVE, GuardRound
from hedgerow.privacy.ledger import Entry, Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.privacy.renyi_events import HitRound

FINEST = 2.0**-20  # the finest grid of values, thresholds and comparison noise, in rows
LARGEST = 2.0**53  # the largest threshold, to which values are clipped, in rows
ROUND = "guard round"  # purpose of the ledger entries of rounds
LEAST_VARIANCE = 2 ** (2 / 3)  # the ratio ε₂/ε₁ that minimizes 2(Δ/ε₁)² + 2(2Δ/ε₂)²


def guard_round(epsilon: float, ratio: float = LEAST_VARIANCE, sensitivity: float = 1.0) -> AboveThreshold:
    """Return a round of total privacy ε, split as ε₁ : ε₂ = 1 : ratio."""
    if not 0 < ratio < math.inf:
        raise InvalidInput(f"ratio must be finite and above 0. Found {ratio!r}. Give epsilon_query/epsilon_threshold.")
    first = epsilon / (1 + ratio)
    return AboveThreshold(sensitivity, first, epsilon - first)


@final
@dataclass(frozen=True)
class SparseVector:
    """The public parameters: a threshold in rows, the privacy of a round, and the largest number of ⊤.

    With a ``measurement`` (NumericSparse), a value that gives ⊤ is measured with this fresh noise, which is charged
    separately.

    A guard that is a ``HitRound`` has a public threshold and fresh noise for each value (docs/proofs/hits.md).

    With ``gap``, a ⊤ also releases (value + ν) − (threshold + τ) at no further cost. The gap is never released on ⊥,
    and neither are the noisy value and the noisy threshold themselves. As an estimate of value − threshold it is biased
    upwards, because it is only seen when it is not negative. For a value |x| it says nothing about the sign of x.
    Values are then rounded down to ``grid``; the threshold and Δ must be multiples of it.
    """

    threshold: float
    guard: AboveThreshold | HitRound
    rounds: int
    measurement: Laplace | Gaussian | None = None
    gap: bool = False
    grid: float = 1.0

    def __post_init__(self) -> None:
        if not abs(self.threshold) <= LARGEST:
            raise InvalidInput(
                f"threshold must be finite, within 2^53 rows. Found {self.threshold!r}. Give it in rows."
            )
        if not (isinstance(self.rounds, int) and self.rounds >= 1):
            raise InvalidInput(
                f"rounds must be a whole number of at least 1. Found {self.rounds!r}. Allow one ⊤ or more."
            )
        # Round to the grid of the noise, so that no rounding depends on the data, and down, so that ⊥ promises no less.
        object.__setattr__(self, "threshold", math.floor(self.threshold / FINEST) * FINEST)
        if self.gap and isinstance(self.guard, HitRound):
            raise InvalidInput("gap must be False for rounds of hits, whose threshold is public. Found True. Drop it.")
        if self.gap and isinstance(
            self.guard, AboveThreshold
        ):  # these events refuse a grid that is too coarse or too fine for the noise
            Laplace(self.guard.sensitivity, self.guard.threshold_scale, self.grid)
            Laplace(2 * self.guard.sensitivity, self.guard.query_scale, self.grid)
        if self.gap and any(x % self.grid for x in (self.threshold, self.guard.sensitivity)):
            raise InvalidInput(
                f"threshold and sensitivity must be multiples of the grid when the gap is released. Found "
                f"{self.threshold!r}, {self.guard.sensitivity!r} and grid {self.grid!r}. Round the threshold."
            )
        measured = self.measurement
        if measured and not measured.sensitivity >= self.guard.sensitivity:
            raise InvalidInput(
                f"A measurement must have at least the guard's sensitivity, {self.guard.sensitivity!r}. Found "
                f"{measured.sensitivity!r}. Measure the value that was compared."
            )
        if measured and measured.sensitivity % measured.grid:  # flooring could then move a value by more than Δ
            raise InvalidInput(
                f"The sensitivity of a measurement must be a multiple of its grid. Found {measured.sensitivity!r} and "
                f"{measured.grid!r}. Round the sensitivity up, or use a finer grid."
            )

    @property
    def unit(self) -> float:
        """The step, in rows, in which values, threshold and noise are counted when they are compared."""
        return self.grid if self.gap else FINEST


@final
@dataclass(frozen=True)
class Progress:
    """The state of a sparse vector.

    An earlier state that is used again finds its round over, and opens and pays for the next.
    """

    tops: int = 0
    round: GuardRound | None = field(default=None, repr=False, compare=False)
    opened_by: tuple[SparseVector, Ledger] | None = field(default=None, repr=False, compare=False)

    @property
    def is_open(self) -> bool:
        """True if a round is open, so that a value below the threshold costs nothing."""
        return self.round is not None and self.round.is_open

    def require(self, config: SparseVector, ledger: Ledger) -> None:
        """Refuse to continue with other noise than was paid for, or on another account."""
        assert self.opened_by is not None
        opened, payer = self.opened_by
        if payer is not ledger or (opened is not config and opened != config):
            raise InvalidInput(
                "An open round must go on with the sparse vector and the account that opened it. Found another "
                "sparse vector or account. Start with a new Progress."
            )


@final
@dataclass(frozen=True)
class Outcome:
    """The release about one value. ``cost`` is the charge in the budget's currency."""

    above: bool
    measured: float | None = None
    gap: float | None = None
    cost: float = 0.0


FREE = Outcome(above=False)  # shared, because most outcomes are free


def step(
    config: SparseVector, progress: Progress, value: float, ledger: Ledger, noise: Noise
) -> tuple[Outcome, Progress]:
    """Compare one private value with the threshold.

    The value is in rows, and Δ-sensitive given all earlier releases.
    """
    with ledger.exclusively():
        opened, cost = _ready(config, progress, ledger, noise)
        assert opened.round is not None
        value = _finite(value)
        excess = opened.round.excess(_floor_units(value, config.unit))
        if excess is None:
            return Outcome(above=False, cost=cost) if cost else FREE, opened
        measured = None
        if config.measurement is not None:
            receipt = ledger.charge(config.measurement, why="sparse vector: measurement")
            cost += receipt.cost
            grid = config.measurement.grid
            measured = float(noise.add(_floor_units(value, grid) * grid, receipt))
        gap = excess * config.grid if config.gap else None
        return Outcome(above=True, measured=measured, gap=gap, cost=cost), Progress(tops=opened.tops + 1)


def ready(config: SparseVector, progress: Progress, ledger: Ledger, noise: Noise) -> tuple[Progress, float]:
    """Return an open round, and the cost of opening it (0 if it was open).

    Callers may do this before they touch the data.

    A round is charged first, then its threshold noise is drawn. Refused after c rounds, or when the budget is spent.
    """
    with ledger.exclusively():
        return _ready(config, progress, ledger, noise)


def _ready(config: SparseVector, progress: Progress, ledger: Ledger, noise: Noise) -> tuple[Progress, float]:
    """Return an open round and its cost, under the ledger's lock."""
    if progress.is_open:
        progress.require(config, ledger)
        if config.measurement is not None and not ledger.affords(config.measurement):
            # refuse before the comparison, whatever its outcome: a later refusal would reveal a ⊤
            raise BudgetExceeded(f"The budget must afford a measurement. Found {ledger.remaining:.6g} left. Stop here.")
        return progress, 0.0
    if progress.tops >= config.rounds:
        raise BudgetExceeded(
            f"A sparse vector must stop after {config.rounds} answers above its threshold. Found {progress.tops}. "
            "Stop here, or open a new one with a new budget."
        )
    if config.measurement is not None and not ledger.affords(config.guard, config.measurement):
        raise BudgetExceeded(
            f"The budget must afford a round and its measurement. Found {ledger.remaining:.6g} left. Stop here."
        )
    receipt = ledger.charge(config.guard, why=ROUND, about={"threshold": config.threshold})
    threshold = _floor_units(config.threshold, config.unit)
    round_ = noise.open_round(receipt, threshold, config.unit, on_grid=config.gap)
    return Progress(progress.tops, round_, (config, ledger)), receipt.cost


def _finite(value: float) -> float:
    """Clip a value, with 0 for NaN. The data never cause an error, and clipping moves no two values apart."""
    if -LARGEST <= value <= LARGEST:
        return float(value)
    return 0.0 if value != value else LARGEST if value > 0 else -LARGEST


def _floor_units(value: float, unit: float) -> int:
    """Return whole units, rounded down. Values that are at most a multiple of the unit apart stay so, exactly."""
    return math.floor(value / unit)


def resume_state(config: SparseVector, entries: Sequence[Entry], progress: Progress | None = None) -> Progress:
    """Return the state after the recorded rounds that ended.

    A round that was open counts as over, and the next is charged.

    If ``progress`` is given, it is the state of a running mechanism, and the entries are those of others. Its own round
    stays open.
    """
    so_far = progress or Progress()
    rounds = [
        e for e in entries if e.why == ROUND and e.event == config.guard and e.about["threshold"] == config.threshold
    ]
    return replace(so_far, tops=so_far.tops + sum(entry.released == (ABOVE,) for entry in rounds))


# Accuracy: all k adaptive comparisons are right to within a width w, except with probability β.


def comparison_weight(rounds: int, queries: int, beta: float) -> tuple[float, float]:
    """Return (ε·w/Δ, the best ε₂/ε₁) for which all comparisons of c rounds and k values are right to within w.

    |τ| ≤ A in all c rounds except with probability c·exp(−Aε₁/Δ) ≤ β/2. ν is fresh and errs on one side only, so it
    stays within B except with probability k·½·exp(−Bε₂/(2Δ)) ≤ β/2. With P = ln(2c/β), Q = 2 ln(k/β) and A + B = w: ε₁
    + ε₂ = PΔ/A + QΔ/B, least at A : B = √P : √Q, where it is (√P + √Q)²Δ/w and ε₁ : ε₂ = √P : √Q.
    """
    P, Q = math.log(2 * rounds / beta), 2 * math.log(max(queries, 2) / beta)
    return (math.sqrt(P) + math.sqrt(Q)) ** 2, math.sqrt(Q / P)


def hit_weight(queries: int, beta: float) -> float:
    """Return ε·w/Δ for which k comparisons with a public threshold are all right to within w.

    ν errs on one side only, so it stays within w except with probability k·½·exp(−wε/Δ) ≤ β/2.
    """
    return math.log(max(queries, 2) / beta)


def threshold_game_config(
    amount: Amount, *, threshold: float, rounds: int, queries: int, beta: float, sensitivity: float = 1.0
) -> tuple[SparseVector, float]:
    """Spend the whole amount on one sparse vector. Return it with the width w of ``comparison_weight`` in rows."""
    weight, ratio = comparison_weight(rounds, queries, beta)
    epsilon = amount.round_epsilon(rounds)
    guard = guard_round(epsilon, ratio, sensitivity)
    return SparseVector(threshold, guard, rounds), weight * guard.sensitivity / epsilon
