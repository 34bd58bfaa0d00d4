"""n·err(D, θ), how much worse θ is on the private counts than the best of the set, as a whole number of public units.

Paper: Ullman, *Private Multiplicative Weights Beyond Linear Queries*, §3 (err). Proof: docs/proofs/private_minimum.md.

Symbols: ℓ_x the loss of record x or its ``Surrogate``, S = sup |⟨θ − θ′, ∇ℓ_x(θ)⟩|, N the most rows a table may have here, g the
unit, K and G units the most that a record can lose and gain by going from θ to another point of the set (S, or for one θ less: what is
left to gain is no more than its loss at θ where no loss is negative), F_x(θ′) = ℓ_x(θ) − ℓ_x(θ′) rounded to whole units and
held within [−K, G], y the minimiser found on the counts.

The value is V = Σ D(x)·F_x(y) (and n times what the surrogate's ridge adds, the same for every record), in whole numbers.
For a fixed θ′ one row moves such a sum by at most K + G units, or the larger of them where rows come and go; so the supremum over θ′ moves by no
more. V is below it by at most the solver's gap and twice N times what rounding a record's loss may hide: these are added
to what is billed. Where n is private, V is held below K·(N − n), which moves by K a row and is zero from N rows on: so no
promise is needed about larger tables, and for tables of up to N/2 rows nothing changes.

A question whose S is too small for float64 to tell its losses apart N times over, or whose minimum is too hard to be sure
of for every table, has no such value (``excess_of`` is None): decided from public facts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array
from hedgerow.convex.bound_loss import GlmRisk, Risk
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.convex.solver.private_minimum import Surrogate, certain_value, minimiser
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import grid_at_most

SHARES = (0.02, 0.2, 1.0)  # of the sensitivity, for the solver's gap: the first that can be promised
HIDDEN = 0.004  # of S: what rounding to units, and what float64, may each hide in N rows
SPARE = 8  # times as many rows as estimated, where n is private: N


@final
@dataclass(frozen=True, eq=False, repr=False)
class Excess:
    """All public: what will be computed, and how far one row moves it. ``units`` alone takes the counts."""

    surrogate: Surrogate
    theta: Array
    unit: float  # g, a power of two
    bound: int  # K, the larger of the two
    gain: int  # G
    penalty: int  # the most units that the ridge adds for a row
    rows: float  # N
    private_rows: bool
    gap: float  # nτ: what the solver may leave, in all
    below: float
    """By how much V·g may be less than n·err, for a table of as many rows as were stated."""

    @property
    def most(self) -> int:
        """Units by which one row moves V."""
        one = self.bound + self.penalty if self.private_rows else self.bound + self.gain
        return one + math.ceil((self.gap + 2 * self._hidden) / self.unit)

    @property
    def _hidden(self) -> float:
        return self.rows * (self.surrogate.evaluated + self.unit)  # half a unit for a loss, half for the ridge

    def sensitivity(self, grid: float) -> float:
        """Of ``value``."""
        return self.most * self.unit + grid

    def value(self, counts: NDArray[np.int64], grid: float) -> float:
        """n·err in whole steps of the grid, a power of two not below the unit. Private."""
        return float(self.units(counts) // round(grid / self.unit)) * grid

    def units(self, counts: NDArray[np.int64]) -> int:
        """V. Private."""
        n = int(counts.sum())
        if self.private_rows and n >= self.rows:
            return 0
        found = minimiser(self.surrogate, counts, self.gap / self.rows)
        with np.errstate(all="ignore"):
            each = np.nan_to_num((self.surrogate.losses(self.theta) - self.surrogate.losses(found)) / self.unit)
            added = self.surrogate.ridge / 2 * (self.theta @ self.theta - found @ found) / self.unit
        F = np.clip(np.rint(each), -self.bound, self.gain).astype(np.int64)
        penalty = min(max(round(float(np.nan_to_num(added))), -self.penalty), self.penalty)
        V = max(_dot(counts, F, n * self.bound) + n * penalty, 0)
        return min(V, self.bound * math.floor(self.rows - n)) if self.private_rows else V


def _dot(counts: NDArray[np.int64], F: NDArray[np.int64], largest: int) -> int:
    present = np.flatnonzero(counts)
    D, F = counts.reshape(-1)[present], F.reshape(-1)[present]
    return int(D @ F) if largest < 2**62 else sum(int(d) * int(f) for d, f in zip(D, F, strict=True))


def excess_of(
    risk: Risk,
    over: ConvexSet,
    theta: Array,
    budget: Budget,
    rows: float,
    error: float,
    shares: tuple[float, ...] = SHARES,
    *,
    only_here: bool = False,
) -> Excess | None:
    """n·err(D, θ) up to ``error`` a row, for tables of ``rows`` rows, or about so many where n is private.

    ``only_here``: with what records can lose and gain from this θ, for which alone it is then; else with S, for every θ of the set.
    """
    with np.errstate(all="ignore"):  # at the ends of float64 constants are infinite, or none: then so is the value
        return _planned(risk, over, theta, budget, rows, error, shares, only_here)


def _planned(
    risk: Risk,
    over: ConvexSet,
    theta: Array,
    budget: Budget,
    rows: float,
    error: float,
    shares: tuple[float, ...],
    only_here: bool,
) -> Excess | None:
    S = risk.scale(over) if over.is_bounded else math.inf
    private = budget.neighbours == "add-remove"
    N = math.ceil(SPARE * rows if private else rows)
    surrogate = Surrogate.of(risk, over, error)
    if not (0 < S < math.inf and surrogate.is_solvable):
        return None
    if not (S / N > 1e-290 and N * surrogate.evaluated <= HIDDEN * S and N <= 2**45):
        return None
    unit = grid_at_most(HIDDEN * S / N)
    loses, gains = _range(surrogate, theta, S) if only_here else (S, S)
    bound, gain = (math.ceil(most * (1 + 2.0**-40) / unit) for most in (max(loses, gains), gains))
    penalty = math.ceil(error / 2 / unit) + 1
    for share in shares:
        gap = share * budget.bounded(S)
        if certain_value(surrogate, gap / N):
            below = gap + rows * (surrogate.evaluated + unit + error)
            return Excess(surrogate, theta, unit, bound, gain, penalty, float(N), private, gap, below)
    return None


def _range(surrogate: Surrogate, theta: Array, S: float) -> tuple[float, float]:
    """The most that a record's loss can rise and fall from θ to any point of the set: S, or less by what losses there are.

    φ is convex, so largest at an end of the predictor's range; rounding a kink adds at most half its width. What all
    records share, the ridge, may rise and fall by all of it.
    """
    risk, over = surrogate.risk, surrogate.over
    if not isinstance(risk, GlmRisk) or risk.outputs or risk.loss.labels == "count":
        return S, S
    radius = over.radius_l2(risk.dimension)
    shared = risk.loss.ridge / 2 * radius * radius + surrogate.width / 2
    ends = np.array(risk.predictor_range(over))[:, None]
    largest = float(risk.loss.value(ends, risk.labels[None, :]).max())
    now = risk.loss.value(risk.predictor(theta), risk.label()) * risk.mask()
    loses, gains = largest - float(now.min()) + shared, float(now.max()) + shared
    return (min(S, loses), min(S, gains)) if math.isfinite(loses + gains) else (S, S)


def in_rows(excess: Excess, counts: NDArray[np.int64], finest: float) -> float:
    """V as a number of rows: V/``per_row`` in whole steps of ``finest``, which one row moves by at most 1. Private."""
    steps = round(1 / finest)
    return min(excess.units(counts) * steps // per_row(excess, finest), 2**52) * finest


def per_row(excess: Excess, finest: float) -> int:
    """Units that count as a row, so many that rounding to steps of ``finest`` leaves a row at most 1."""
    return math.ceil(excess.most * (1 + 4 * finest))
