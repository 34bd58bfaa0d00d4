"""Minimizers on private counts, close to the true minimizer for every table that could exist, rounding included.

Papers: Nesterov, *Gradient methods for minimizing composite functions* (accelerated steps); Devolder, Glineur &
Nesterov, *First-order methods with inexact oracle* (the effect of rounding on them). Proofs:
docs/proofs/private_minimum.md.

Symbols: f the average of a β-smooth, σ-strongly convex loss over weighted cells, κ = β/σ, C the set, R its ℓ2 radius, D
its diameter, θ* the minimizer. The errors of float64: δ in the bound that a gradient gives on f, e in the norm of a
gradient, ρ in a projection.

A solver that stops when it seems to have converged may stop too early on some table. The sensitivity that is billed for
a value that rests on it would then be wrong. So only smooth, strongly convex losses are minimized on the data: a
``Surrogate`` of the loss in question, chosen from public facts. Newton's method comes first. Its result is used only
with a proof, f(y) − f* ≤ (‖ξ‖ + 4e)²/2σ for the ξ of ``_residual``. Otherwise accelerated steps follow, whose number is
known in advance:

    values   f(u) − f* ≤ D²/2A_k + (1 + √κ)δ, where A_k grows by (1 + ½√(1/κ))² per step;
    places   ‖v − θ*‖ ≤ D/√(σA_k) + 6(e + βρ)/σ.

``certain_value`` and ``certain_place`` decide from public facts if these bounds reach the wanted accuracy. No function
here raises or warns, and none returns anything but a point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array
from hedgerow.convex.bound_loss import GlmRisk, Risk
from hedgerow.convex.sets import Polytope
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.convex.solver.public_minimum import newton
from hedgerow.convex.solver.weighted_cells import (
    KINKS,
    ObjectiveFunction,
    RoundedObjective,
    SmoothObjective,
    list_cells,
    rounded_risk,
    rounded_smoothness,
)

MOST_WORK, MOST_STEPS = 2 * 10**9, 10**5  # limits of the proven method: cells × steps, and steps
NARROWER = 0.2  # ratio of the widths of two consecutive roundings of a kink
CHECKED = 10  # the accelerated method tries to prove its point once every CHECKED steps
ULP = 2.0**-52  # relative rounding error of float64


@final
@dataclass(frozen=True, eq=False, repr=False)
class Surrogate:
    """A smooth, strongly convex stand-in for ℓ: kinks rounded over the half width ``width``, plus (ridge/2)‖θ − c‖².

    The ``center`` c is a public point of the set, and the origin if it is None.

    It is public. It lies above ℓ by at most h/2 + ridge·R²/2, h = ``width``, because the slope of a loss jumps by at
    most 2. Its excess risk differs from err by at most as much.
    """

    risk: Risk
    over: ConvexSet
    width: float = 0.0
    ridge: float = 0.0
    center: Array | None = None

    def __post_init__(self) -> None:
        if not has_kinks(self.risk):
            object.__setattr__(self, "width", 0.0)

    @classmethod
    def of(cls, risk: Risk, over: ConvexSet, error: float) -> Surrogate:
        """Return the strongly convex surrogate whose excess risk differs from that of the loss by at most ``error``."""
        radius = over.radius_l2(risk.dimension)
        square = radius * radius
        return cls(risk, over, error, error / square if square > 0 else 0.0)

    @cached_property
    def smoothness(self) -> float:
        """β."""
        rounded = isinstance(self.risk, GlmRisk) and has_kinks(self.risk)
        return (rounded_smoothness(self.risk, self.width) if rounded else self.risk.smoothness) + self.ridge  # type: ignore[arg-type]

    @cached_property
    def strong(self) -> float:
        """σ."""
        return self.risk.strong_convexity(self.over) + self.ridge

    @cached_property
    def is_solvable(self) -> bool:
        """True if the constants are positive and finite and the set is no polytope, so that the proofs apply."""
        p = self.risk.dimension
        radius, diameter = self.over.radius_l2(p), self.over.diameter_l2(p)
        if not self.smoothness > 0:
            return False
        constants = (
            self.smoothness,
            self.strong,
            radius * radius,
            diameter * diameter,
            self.magnitude * self.smoothness,
        )
        # the projection onto a polytope is itself found by a solver, without a proof
        return all(0 < c < math.inf for c in constants) and not isinstance(self.over, Polytope)

    @cached_property
    def magnitude(self) -> float:
        """A bound on the numbers from which a record's loss is computed, and on L²/β, the most that a step can gain."""
        radius, L = self.over.radius_l2(self.risk.dimension), self.risk.lipschitz(self.over)
        spread = 1.0 if self.center is None else 8.0  # ‖θ − c‖ is up to twice the radius, and moves a step's gain too
        return self.risk.magnitude(self.over) + spread * self.ridge * radius * radius + spread * L * L / self.smoothness

    @cached_property
    def evaluated(self) -> float:
        """The rounding error of the difference of two losses of a record, at points that are themselves off by ρ."""
        return 4 * ULP * (self.risk.dimension + 16) * self.magnitude

    @property
    def _summed(self) -> float:
        """The relative rounding error of a sum over all cells."""
        return ULP * (math.prod(self.risk.shape) + self.risk.dimension + 16)

    @cached_property
    def in_values(self) -> float:
        """δ: the error that a computed gradient causes in a bound on f anywhere in the set."""
        p = self.risk.dimension
        steps = math.sqrt(self.smoothness * self.strong) * self.over.diameter_l2(p) * self.over.radius_l2(p)
        return 4 * self._summed * (self.magnitude + steps)

    @cached_property
    def in_gradients(self) -> float:
        """e: the rounding error of a gradient of f, in norm."""
        radius = self.over.radius_l2(self.risk.dimension)
        return self._summed * (self.risk.lipschitz(self.over) + self.smoothness * radius)

    @property
    def in_projections(self) -> float:
        """ρ: the rounding error of a projected step from a point of the set.

        It is relative to the length of the vector that is projected.
        """
        p = self.risk.dimension
        reach = self.over.radius_l2(p) * (1.0 if self.center is None else 3.0)
        return ULP * (p + 16) * (reach + self.risk.lipschitz(self.over) / self.smoothness)

    def losses(self, theta: Array) -> Array:
        """Return the loss of every cell without the added ridge, which is the same for all cells."""
        risk = rounded_risk(self.risk, self.width) if self.width > 0 else self.risk
        return risk.losses(theta)

    def function(self, marginal: NDArray[Any], width: float | None = None) -> _PenalizedObjective | None:
        """Return f for these counts, or None if all counts are zero."""
        objective: Any = self.risk.objective(marginal)
        if not objective.mass > 0:
            return None
        objective = list_cells(self.risk, objective)
        h = self.width if width is None else width
        base = SmoothObjective(self.risk, objective, self.over)
        if h > 0:
            base = RoundedObjective(self.risk, objective, self.over, h)  # type: ignore[arg-type]
        return _PenalizedObjective(base, self.ridge, self.smoothness, self.strong, self.center)


def has_kinks(risk: Risk) -> bool:
    """Return True for a loss of this package that has a kink."""
    return isinstance(risk, GlmRisk) and type(risk.loss) in KINKS


class _PenalizedObjective:
    """A function plus (ridge/2)‖θ − center‖²."""

    width = 0.0

    def __init__(
        self, base: ObjectiveFunction, ridge: float, smoothness: float, strong: float, center: Array | None = None
    ) -> None:
        self._base, self._ridge, self.smoothness, self.strong = base, ridge, smoothness, strong
        self._center = center

    def value(self, theta: Array) -> float:
        """Return f(θ)."""
        apart = self._from_center(theta)
        return self._base.value(theta) + self._ridge / 2 * float(apart @ apart)

    def gradient(self, theta: Array) -> Array:
        """Return ∇f(θ)."""
        return self._base.gradient(theta) + self._ridge * self._from_center(theta)

    def _from_center(self, theta: Array) -> Array:
        return theta if self._center is None else theta - self._center

    def hessian(self, theta: Array, damping: int = 0) -> Array:
        """Return the Hessian of f, damped as the base function's."""
        return self._base.hessian(theta, damping) + self._ridge * np.eye(len(theta))

    def subgradient_gap(self, theta: Array) -> float:
        """Return 0: the surrogate is judged as a function of its own."""
        return 0.0

    def third(self) -> float:
        """Return infinity: the bound is not used here."""
        return math.inf


def _residual(f: _PenalizedObjective, over: ConvexSet, theta: Array) -> tuple[Array, float]:
    """Return y = P_C(θ − g(θ)/β) and ‖ξ‖ for ξ = g(y) − g(θ) + β(θ − y). The point y minimizes f − ⟨ξ, ·⟩ over C."""
    g = f.gradient(theta)
    y = over.project(theta - g / f.smoothness)
    ξ = f.gradient(y) - g + f.smoothness * (theta - y)
    size = float(np.linalg.norm(ξ))
    return y, size if math.isfinite(size) else math.inf


class _ProvenMinimum:
    """The point with the smallest proven gap so far. Newton's method reports its points to it."""

    def __init__(self, surrogate: Surrogate) -> None:
        self._over, self._rounding, self._strong = surrogate.over, 4 * surrogate.in_gradients, surrogate.strong
        self.theta: Array | None = None
        self.gap = math.inf

    def offer(self, f: Any, theta: Array, g: Array, hessian: Array | None = None) -> float:
        """Return the proven gap of the point y that belongs to θ, and keep y if the gap is the smallest."""
        y, size = _residual(f, self._over, theta)
        gap = (size + self._rounding) ** 2 / (2 * self._strong)
        if gap < self.gap:
            self.theta, self.gap = y, gap
        return gap


def private_minimizer(surrogate: Surrogate, counts: NDArray[Any], tolerance: float) -> Array:
    """Return a θ of the set with f(θ) − f* ≤ ``tolerance``, if ``certain_value`` holds. Private."""
    with np.errstate(all="ignore"):
        f = surrogate.function(counts)
        if f is None:
            return _start(surrogate)
        quick = _by_newton(surrogate, counts, f, tolerance)
        return _run_accelerated(surrogate, f, tolerance)[0] if quick is None else quick


def locate_minimum(surrogate: Surrogate, counts: NDArray[Any], distance: float) -> Array:
    """Return a θ of the set with ‖θ − θ*‖ ≤ ``distance``, if ``certain_place`` holds. Private."""
    with np.errstate(all="ignore"):
        f = surrogate.function(counts)
        if f is None:
            return _start(surrogate)
        tolerance = surrogate.strong * distance * distance / 4
        quick = _by_newton(surrogate, counts, f, tolerance)
        return _run_accelerated(surrogate, f, tolerance)[1] if quick is None else quick


def certain_value(surrogate: Surrogate, tolerance: float) -> bool:
    """Return True if ``private_minimizer`` reaches the tolerance for every table.

    A public fact about the loss and the set.
    """
    if not surrogate.is_solvable:
        return False
    floor = (1 + math.sqrt(_condition(surrogate))) * surrogate.in_values
    return floor <= tolerance / 2 and _accelerated_steps(surrogate, tolerance) <= _most_steps(surrogate)


def certain_place(surrogate: Surrogate, distance: float) -> bool:
    """Return True if ``locate_minimum`` reaches the distance for every table.

    A public fact about the loss and the set.
    """
    if not surrogate.is_solvable:
        return False
    floor = 6 * (surrogate.in_gradients + surrogate.smoothness * surrogate.in_projections) / surrogate.strong
    tolerance = surrogate.strong * distance * distance / 4
    return floor <= distance / 2 and _accelerated_steps(surrogate, tolerance) <= _most_steps(surrogate)


def _start(surrogate: Surrogate) -> Array:
    return surrogate.over.project(np.zeros(surrogate.risk.dimension))


def _condition(surrogate: Surrogate) -> float:
    return max(surrogate.smoothness / surrogate.strong, 1.0)


def most_steps_on(cells: int) -> float:
    """Return the most steps of the proven method on so many cells."""
    return min(MOST_STEPS, max(100.0, MOST_WORK / cells))


def _most_steps(surrogate: Surrogate) -> float:
    return most_steps_on(math.prod(surrogate.risk.shape))


def _by_newton(surrogate: Surrogate, counts: NDArray[Any], f: _PenalizedObjective, tolerance: float) -> Array | None:
    """Run Newton's method on ever narrower roundings of the kinks. Return None if it ends without a proof."""
    if not isinstance(surrogate.risk, GlmRisk):  # a user-defined loss has no second derivatives
        return None
    proven, theta = _ProvenMinimum(surrogate), _start(surrogate)
    try:
        h = 1.0
        while has_kinks(surrogate.risk) and h * NARROWER > surrogate.width:
            wider = surrogate.function(counts, h)
            assert wider is not None
            theta = newton(wider, surrogate.over, _ProvenMinimum(surrogate), theta, max(tolerance, h / 1000))
            h *= NARROWER
        newton(f, surrogate.over, proven, theta, tolerance)
    except Exception:  # the failure may depend on the counts, so it stays invisible, and the proven method follows
        return None
    return proven.theta if proven.gap <= tolerance else None


def _accelerated_steps(surrogate: Surrogate, tolerance: float) -> float:
    """Return a k with D²/A_k ≤ tolerance, from A_k ≥ (1/β)(1 + ½√(1/κ))^(2(k−1))."""
    far = surrogate.over.diameter_l2(surrogate.risk.dimension)
    wanted = surrogate.smoothness * far * far / tolerance if tolerance > 0 else math.inf
    return 2 + math.log(max(wanted, 1.0)) / (2 * math.log1p(0.5 / math.sqrt(_condition(surrogate))))


def _run_accelerated(surrogate: Surrogate, f: _PenalizedObjective, tolerance: float) -> tuple[Array, Array]:
    """Run the accelerated steps. Return u, whose value is close to f*, and v, which is close to θ*.

    A(f(u) − f*) + ½(1 + σA)‖v − θ*‖² never grows except by rounding. A point with a proven gap is returned early, as
    both.
    """
    over, β, σ = surrogate.over, surrogate.smoothness, surrogate.strong
    u = v = _start(surrogate)
    proven, A = _ProvenMinimum(surrogate), 0.0
    for k in range(1, math.ceil(min(_accelerated_steps(surrogate, tolerance), _most_steps(surrogate))) + 1):
        weight = (1 + σ * A) / β
        a = (weight + math.sqrt(weight**2 + 4 * weight * A)) / 2  # βa² = (A + a)(1 + σA)
        x = (A * u + a * v) / (A + a)
        g = f.gradient(x)
        v = over.project(v + a / (1 + σ * (A + a)) * (σ * (x - v) - g))
        u, A = (A * u + a * v) / (A + a), A + a
        if k % CHECKED == 0 and proven.offer(f, u, g) <= tolerance:
            assert proven.theta is not None
            return proven.theta, proven.theta
    return u, v
