"""The excess risk n·err(D, θ) on private counts, as a whole number of public units.

n·err(D, θ) says how much worse θ is on the counts than the best point of the set.

Paper: Ullman, *Private Multiplicative Weights Beyond Linear Queries*, §3 (err). Proof: docs/proofs/private_minimum.md.

Symbols:
- ℓ_x the loss of record x or its ``Surrogate``, S = sup |⟨θ − θ′, ∇ℓ_x(θ)⟩|;
- N the largest number of rows for which the value is computed, g the unit;
- K and G the largest loss and gain of a record, in units, from θ to another point of the set. Both are at most S. For
  one θ they can be smaller: if no loss is negative, a record gains at most its loss at θ;
- F_x(θ′) = ℓ_x(θ) − ℓ_x(θ′), rounded to whole units and clipped to [−K, G];
- y the minimizer found on the counts.

The value is V = Σ D(x)·F_x(y), plus n times the difference of the surrogate's ridge, which is the same for every
record. All of it is computed in whole numbers.

Sensitivity: for a fixed θ′ one row moves the sum by at most K + G units if it is replaced. If it is added or removed,
it moves the sum by at most the larger of the two, plus the ridge's part. The supremum over θ′ therefore moves by no
more. V is below this supremum by at most the solver's gap plus twice N times the rounding error of a record's loss.
Both are added to the sensitivity that is billed. If n is private, V is clipped to at most K·(N − n). This bound moves
by K per row and is zero from N rows on, so nothing needs to be assumed about larger tables. For tables of up to N/2
rows it changes nothing.

A question has no such value (``excess_of`` returns None) if its S is so small that float64 cannot tell the losses of N
rows apart, or if its minimum is too hard to guarantee for every table. Both are decided from public facts.
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
from hedgerow.convex.solver.private_minimum import Surrogate, certain_value, private_minimizer
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import grid_at_most

# The solver's gap, as a share of the sensitivity: the first share that can be guaranteed is taken.
SHARES = (0.02, 0.2, 1.0)
HIDDEN = 0.004  # share of S that rounding to units, and float64, may each hide in N rows
SPARE = 8  # if n is private, N is this many times the estimated number of rows


@final
@dataclass(frozen=True, eq=False, repr=False)
class Excess:
    """A plan for computing n·err and its sensitivity.

    The plan is public; only ``units`` and ``value`` read the counts.
    """

    surrogate: Surrogate
    theta: Array
    unit: float  # g, a power of two
    bound: int  # K, at least G
    gain: int  # G
    penalty: int  # the most units that the ridge adds per row
    rows: float  # N
    private_rows: bool  # True under add/remove
    gap: float  # the solver's gap, summed over all rows
    below: float
    """The largest amount by which V·g can fall short of n·err, for a table of the stated number of rows."""

    @property
    def most(self) -> int:
        """The sensitivity of V: the largest number of units by which one row moves it."""
        one = self.bound + self.penalty if self.private_rows else self.bound + self.gain
        return one + math.ceil((self.gap + 2 * self._hidden) / self.unit)

    @property
    def _hidden(self) -> float:
        """N times the rounding error of one row."""
        return self.rows * (self.surrogate.evaluated + self.unit)  # half a unit for the loss, half a unit for the ridge

    def sensitivity(self, grid: float) -> float:
        """Return the sensitivity of ``value`` on this grid."""
        return self.most * self.unit + grid

    def value(self, counts: NDArray[np.int64], grid: float) -> float:
        """Return n·err rounded down to the grid, a power of two that is at least the unit. Private."""
        return float(self.units(counts) // round(grid / self.unit)) * grid

    def units(self, counts: NDArray[np.int64]) -> int:
        """Return V. Private."""
        n = int(counts.sum())
        if self.private_rows and n >= self.rows:
            return 0
        found = private_minimizer(self.surrogate, counts, self.gap / self.rows)
        with np.errstate(all="ignore"):
            each = np.nan_to_num((self.surrogate.losses(self.theta) - self.surrogate.losses(found)) / self.unit)
            added = self.surrogate.ridge / 2 * (self.theta @ self.theta - found @ found) / self.unit
        F = np.clip(np.rint(each), -self.bound, self.gain).astype(np.int64)
        penalty = min(max(round(float(np.nan_to_num(added))), -self.penalty), self.penalty)
        V = max(_dot(counts, F, n * self.bound) + n * penalty, 0)
        return min(V, self.bound * math.floor(self.rows - n)) if self.private_rows else V


def _dot(counts: NDArray[np.int64], F: NDArray[np.int64], largest: int) -> int:
    """Return Σ D(x)·F(x) exactly, with Python integers if int64 could overflow."""
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
    hidden: float = HIDDEN,
) -> Excess | None:
    """Plan the value n·err(D, θ), accurate to ``error`` per row. Return None if it cannot be guaranteed.

    Parameters
    ----------
    rows : float
        The number of rows, or a public estimate if n is private.
    error : float
        The largest difference of the surrogate's excess risk from err, per row.
    shares : tuple of float
        The solver's gaps to try, as shares of the sensitivity.
    only_here : bool
        If True, take K and G from the losses and gains that records can have from this θ; the plan then serves this θ
        alone. If False, take both from S; the plan then serves every θ of the set.
    hidden : float
        The share of S that rounding to units, and float64, may each hide.
    """
    with np.errstate(
        all="ignore"
    ):  # near the limits of float64 a constant may be infinite or NaN: there is no value then
        return _plan(risk, over, theta, budget, rows, error, shares, only_here, hidden)


def _plan(
    risk: Risk,
    over: ConvexSet,
    theta: Array,
    budget: Budget,
    rows: float,
    error: float,
    shares: tuple[float, ...],
    only_here: bool,
    hidden: float,
) -> Excess | None:
    """Choose the unit, the bounds K and G, and the solver's gap. Return None if no gap can be guaranteed."""
    S = risk.scale(over) if over.is_bounded else math.inf
    private = budget.neighbours == "add-remove"
    N = math.ceil(SPARE * rows if private else rows)
    surrogate = Surrogate.of(risk, over, error)
    if not (0 < S < math.inf and surrogate.is_solvable):
        return None
    if not (S / N > 1e-290 and N * surrogate.evaluated <= hidden * S and N <= 2**45):
        return None
    unit = grid_at_most(hidden * S / N)
    loses, gains = _range(surrogate, theta, S) if only_here else (S, S)
    bound, gain = (math.ceil(most * (1 + 2.0**-40) / unit) for most in (max(loses, gains), gains))
    penalty = math.ceil(error / 2 / unit) + 1
    for share in shares:
        gap = share * budget.bounded_sum(S)
        if certain_value(surrogate, gap / N):
            below = gap + rows * (surrogate.evaluated + unit + error)
            return Excess(surrogate, theta, unit, bound, gain, penalty, float(N), private, gap, below)
    return None


def _range(surrogate: Surrogate, theta: Array, S: float) -> tuple[float, float]:
    """Return the most that a record's loss can rise and fall from θ to any point of the set.

    The result is S, or less if the losses themselves give a smaller bound. φ is convex, so it is largest at an end of
    the predictor's range. Rounding a kink adds at most half its width. The ridge, which all records share, may rise and
    fall by its whole size.
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
    """Return V as a number of rows, V/``per_row``, rounded down to steps of ``finest``. Private.

    One row moves the result by at most 1.
    """
    steps = round(1 / finest)
    return min(excess.units(counts) * steps // per_row(excess, finest), 2**52) * finest


def per_row(excess: Excess, finest: float) -> int:
    """Return the number of units that count as one row.

    It is so large that, after rounding to steps of ``finest``, one row moves the result by at most 1.
    """
    return math.ceil(excess.most * (1 + 4 * finest))
