"""How far a point can be from the least value: the proven bounds that ``public_minimum`` reports.

Every bound is one of these, all for min over C of ⟨g, θ′ − θ⟩ + (σ/2)‖θ′ − θ‖² ≤ f* − f(θ) + Σ m e:
 - bounded C: the Frank–Wolfe gap ⟨g, θ − argmin_C ⟨g, ·⟩⟩; with σ > 0 also its value at the projection of θ − g/σ;
 - C everything: ‖g‖²/(2σ); else, for squared and logistic losses, by the Newton decrement, as in Bach,
   *Self-concordant analysis for logistic regression* (docs/proofs/convex_pmw.md).
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from hedgerow._types import Array
from hedgerow.convex.bound_loss import GlmRisk, Risk
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.convex.solver.weighted_cells import Function

ROUNDING = 1e-14  # of the numbers that a loss is computed from


class Judge(Protocol):
    """What a method reports its points to: the proven gap of each decides when it may stop."""

    def offer(self, f: Function, theta: Array, g: Array, hessian: Array | None = None) -> float: ...


class Best:
    """The point with the smallest proven gap so far. A gap at one point also bounds f at every other."""

    def __init__(
        self, objective: Any, over: ConvexSet, rounding: float, widest: float = math.inf, stationary: bool = False
    ) -> None:
        self.objective, self.over, self.rounding, self.widest = objective, over, rounding, widest
        self.stationary = stationary and over.is_bounded
        self.nonnegative = isinstance(objective.risk, GlmRisk) and objective.risk.loss.labels != "count"
        self.theta: Array | None = None
        self.value = self.gap = math.inf
        self.width = 0.0

    def offer(self, f: Function, theta: Array, g: Array, hessian: Array | None = None) -> float:
        """The gap of f itself at θ; remembers θ if it has the least for the loss."""
        below = self._below(f, theta, g, hessian)
        value = self.objective.value(theta) / self.objective.mass
        self._keep(theta, value, below + f.missed(theta), f.width)
        return below + self.rounding

    def keep(self, theta: Array, value: float, gap: float, width: float) -> None:
        """A point whose value is within the gap by other means: says nothing of its slopes."""
        if not self.stationary or self.theta is None:
            self._keep(theta, value, math.inf if self.stationary else gap, width)

    def _keep(self, theta: Array, value: float, gap: float, width: float) -> None:
        if self.nonnegative and not self.stationary:
            gap = min(gap, value)
        gap = max(gap, 0.0) + self.rounding
        if self.theta is None or (width > self.widest, gap) < (self.width > self.widest, self.gap):
            self.theta, self.value, self.gap, self.width = theta, value, gap, width

    def _below(self, f: Function, theta: Array, g: Array, hessian: Array | None) -> float:
        """How far below f(θ) + Σ m e the least value can be."""
        bounds = [math.inf]
        if self.over.is_bounded:
            bounds.append(float(g @ (theta - self.over.minimise(g))))
        if f.strong > 0 and not self.stationary:
            move = self.over.project(theta - g / f.strong) - theta
            bounds.append(-float(g @ move) - f.strong / 2 * float(move @ move))
        if not self.over.is_bounded and hessian is not None:
            bounds.append(_decrement_bound(g, hessian, f.third()))
        found = min(bounds)
        return found if not math.isnan(found) else math.inf


def _decrement_bound(g: Array, H: Array, R: float) -> float:
    """(x + (1 − x)ln(1 − x))/t² with x = νt, ν² = gᵀH⁺g, t = R/√λ: about ν²/2 (docs/proofs/convex_pmw.md)."""
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
    """What float64 sums may hide, added to every bound."""
    return ROUNDING * (risk.scale(over) + risk.magnitude(over) if over.is_bounded else 1.0)
