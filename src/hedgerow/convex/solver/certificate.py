"""Proven bounds on the distance of f(θ) from the least value, as ``public_minimum`` reports them.

Symbols: f, C, g, σ, m and e as in ``public_minimum``; f* the least value of the loss over C.

Every bound rests on min over C of ⟨g, θ′ − θ⟩ + (σ/2)‖θ′ − θ‖² ≤ f* − f(θ) + Σ m e and bounds this minimum from below:
- for a bounded C by the Frank–Wolfe gap ⟨g, θ − argmin_C ⟨g, ·⟩⟩, and if σ > 0 also by the value at the projection of θ
  − g/σ;
- for C everything by ‖g‖²/(2σ), or, for squared and logistic losses, by the Newton decrement, as in Bach,
  *Self-concordant analysis for logistic regression* (docs/proofs/convex_pmw.md).
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from hedgerow._types import Array
from hedgerow.convex.bound_loss import GlmRisk, Risk
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.convex.solver.weighted_cells import ObjectiveFunction

ROUNDING = 1e-14  # relative rounding error of a loss, in units of the numbers from which it is computed


class Judge(Protocol):
    """A receiver of the points that a method visits. The proven gap of a point tells the method when to stop."""

    def offer(self, f: ObjectiveFunction, theta: Array, g: Array, hessian: Array | None = None) -> float:
        """Return the proven gap of f at θ."""
        ...


class Best:
    """The point with the smallest proven gap so far. A gap at one point also bounds f at every other point."""

    def __init__(
        self, objective: Any, over: ConvexSet, rounding: float, widest: float = math.inf, stationary: bool = False
    ) -> None:
        self.objective, self.over, self.rounding, self.widest = objective, over, rounding, widest
        self.stationary = stationary and over.is_bounded
        self.nonnegative = isinstance(objective.risk, GlmRisk) and objective.risk.loss.labels != "count"
        self.theta: Array | None = None
        self.value = self.gap = math.inf
        self.width = 0.0

    def offer(self, f: ObjectiveFunction, theta: Array, g: Array, hessian: Array | None = None) -> float:
        """Return the gap of f at θ, and keep θ if it has the smallest gap for the loss itself."""
        below = self._below(f, theta, g, hessian)
        value = self.objective.value(theta) / self.objective.mass
        self._keep(theta, value, below + f.subgradient_gap(theta), f.width)
        return below + self.rounding

    def keep(self, theta: Array, value: float, gap: float, width: float) -> None:
        """Consider a point whose value was bounded by other means, which prove nothing about its slopes."""
        if not self.stationary or self.theta is None:
            self._keep(theta, value, math.inf if self.stationary else gap, width)

    def _keep(self, theta: Array, value: float, gap: float, width: float) -> None:
        """Keep the point if its gap is smaller than that of the best one. A kink rounded too widely counts last."""
        if self.nonnegative and not self.stationary:
            gap = min(gap, value)
        gap = max(gap, 0.0) + self.rounding
        if self.theta is None or (width > self.widest, gap) < (self.width > self.widest, self.gap):
            self.theta, self.value, self.gap, self.width = theta, value, gap, width

    def _below(self, f: ObjectiveFunction, theta: Array, g: Array, hessian: Array | None) -> float:
        """Return an upper bound on f(θ) + Σ m e minus the least value of the loss."""
        bounds = [math.inf]
        if self.over.is_bounded:
            bounds.append(float(g @ (theta - self.over.minimize(g))))
        if f.strong > 0 and not self.stationary:
            move = self.over.project(theta - g / f.strong) - theta
            bounds.append(-float(g @ move) - f.strong / 2 * float(move @ move))
        if not self.over.is_bounded and hessian is not None:
            bounds.append(_decrement_bound(g, hessian, f.third()))
        found = min(bounds)
        return found if not math.isnan(found) else math.inf


def _decrement_bound(g: Array, H: Array, R: float) -> float:
    """Return (x + (1 − x)ln(1 − x))/t², about ν²/2, with x = νt, ν² = gᵀH⁺g and t = R/√λ.

    Proof: docs/proofs/convex_pmw.md.
    """
    if not math.isfinite(R):
        return math.inf
    λ, V = np.linalg.eigh(H)
    kept = λ > 1e-12 * max(float(λ[-1]), 1e-300)
    if not kept.any():
        return 0.0 if not g.any() else math.inf
    ν, t = math.sqrt(float((((V.T @ g)[kept]) ** 2 / λ[kept]).sum())), R / math.sqrt(float(λ[kept].min()))
    x = ν * t
    if x < 1e-4:
        return ν * ν / 2 * (1 + x)
    return (x + (1 - x) * math.log1p(-x)) / t**2 if x < 1 else math.inf


def rounding_of(risk: Risk, over: ConvexSet) -> float:
    """Return a bound on the rounding error of float64 sums. It is added to every gap."""
    return ROUNDING * (risk.scale(over) + risk.magnitude(over) if over.is_bounded else 1.0)
