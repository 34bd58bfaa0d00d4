"""Minimisers on private counts: close to the true one for every table that could exist, rounding included.

Papers: Nesterov, *Gradient methods for minimizing composite functions* (accelerated steps); Devolder, Glineur & Nesterov,
*First-order methods with inexact oracle* (what rounding does to them). Proofs: docs/proofs/private_minimum.md.

Symbols: f the average of a β-smooth, σ-strongly convex loss over weighted cells, κ = β/σ, C the set, R its ℓ2 radius, D its
diameter, θ* the minimiser; what float64 may get wrong: δ in what a gradient says of a value of f, e in its norm, ρ in a projection.

A solver that stops when it looks done may stop too early on some table, and what is billed for a value that rests on it
would be wrong there. So only smooth, strongly convex losses are ever minimised on the data: a ``Surrogate`` of the loss
that was asked about, chosen from public facts. Newton's method comes first and is believed only with a proof,
f(y) − f* ≤ (‖ξ‖ + 4e)²/2σ for the ξ of ``_residual``. Otherwise accelerated steps follow, whose number is known beforehand:

    values   f(u) − f* ≤ D²/2A_k + (1 + √κ)δ, where A_k grows by (1 + ½√(1/κ))² a step;
    places   ‖v − θ*‖ ≤ D/√(σA_k) + 6(e + βρ)/σ.

``certain_value`` and ``certain_place`` say from public facts whether these reach what is wanted. Nothing here raises,
warns or returns anything but a point.
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
    Function,
    Rounded,
    Smooth,
    listed,
    rounded_risk,
    rounded_smoothness,
)

MOST_WORK, MOST_STEPS = 2 * 10**9, 10**5  # cells × steps, and steps, that a proven method may take
NARROWER = 0.2  # from one rounding of a kink to the next
CHECKED = 10  # steps between two looks at the proof
ULP = 2.0**-52


@final
@dataclass(frozen=True, eq=False, repr=False)
class Surrogate:
    """ℓ with its kinks rounded over the half width ``width``, plus (ridge/2)‖θ‖²: public, smooth and strongly convex.

    It lies within h/2 + ridge·R²/2 above ℓ, as the jump of a slope is at most 2; so does its excess risk about err.
    """

    risk: Risk
    over: ConvexSet
    width: float = 0.0
    ridge: float = 0.0

    def __post_init__(self) -> None:
        if not has_kinks(self.risk):
            object.__setattr__(self, "width", 0.0)

    @classmethod
    def of(cls, risk: Risk, over: ConvexSet, error: float) -> Surrogate:
        """Strongly convex, with an excess risk that differs from that of the loss by at most ``error``."""
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
        """Whether its constants are such that the proofs apply."""
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
        # a polytope's projection is itself the outcome of a solver
        return all(0 < c < math.inf for c in constants) and not isinstance(self.over, Polytope)

    @cached_property
    def magnitude(self) -> float:
        """A bound on the numbers that a loss of one record is computed from, and on L²/β, what a step may gain."""
        radius, L = self.over.radius_l2(self.risk.dimension), self.risk.lipschitz(self.over)
        return self.risk.magnitude(self.over) + self.ridge * radius * radius + L * L / self.smoothness

    @cached_property
    def evaluated(self) -> float:
        """What float64 may get wrong in the difference of two losses of a record, at points that are themselves off by ρ."""
        return 4 * ULP * (self.risk.dimension + 16) * self.magnitude

    @property
    def _summed(self) -> float:
        return ULP * (math.prod(self.risk.shape) + self.risk.dimension + 16)

    @cached_property
    def in_values(self) -> float:
        """δ: by how much a computed gradient may miss being one of f, as a value of f anywhere in the set."""
        p = self.risk.dimension
        steps = math.sqrt(self.smoothness * self.strong) * self.over.diameter_l2(p) * self.over.radius_l2(p)
        return 4 * self._summed * (self.magnitude + steps)

    @cached_property
    def in_gradients(self) -> float:
        """e: what float64 may get wrong in the norm of a gradient of f."""
        radius = self.over.radius_l2(self.risk.dimension)
        return self._summed * (self.risk.lipschitz(self.over) + self.smoothness * radius)

    @property
    def in_projections(self) -> float:
        """ρ, of a step from a point of the set: relative to the length of what is projected."""
        p = self.risk.dimension
        return ULP * (p + 16) * (self.over.radius_l2(p) + self.risk.lipschitz(self.over) / self.smoothness)

    def losses(self, theta: Array) -> Array:
        """The loss of every cell without the added ridge, which is the same for all."""
        risk = rounded_risk(self.risk, self.width) if self.width > 0 else self.risk
        return risk.losses(theta)

    def function(self, marginal: NDArray[Any], width: float | None = None) -> _Penalised | None:
        """f for these counts; None where they are all zero."""
        objective: Any = self.risk.objective(marginal)
        if not objective.mass > 0:
            return None
        objective = listed(self.risk, objective)
        h = self.width if width is None else width
        base = Rounded(self.risk, objective, self.over, h) if h > 0 else Smooth(self.risk, objective, self.over)  # type: ignore[arg-type]
        return _Penalised(base, self.ridge, self.smoothness, self.strong)


def has_kinks(risk: Risk) -> bool:
    return isinstance(risk, GlmRisk) and type(risk.loss) in KINKS


class _Penalised:
    """A function plus (ridge/2)‖θ‖²."""

    width = 0.0

    def __init__(self, base: Function, ridge: float, smoothness: float, strong: float) -> None:
        self._base, self._ridge, self.smoothness, self.strong = base, ridge, smoothness, strong

    def value(self, theta: Array) -> float:
        return self._base.value(theta) + self._ridge / 2 * float(theta @ theta)

    def gradient(self, theta: Array) -> Array:
        return self._base.gradient(theta) + self._ridge * theta

    def hessian(self, theta: Array, damping: int = 0) -> Array:
        return self._base.hessian(theta, damping) + self._ridge * np.eye(len(theta))

    def missed(self, theta: Array) -> float:
        return 0.0

    def third(self) -> float:
        return math.inf


def _residual(f: _Penalised, over: ConvexSet, theta: Array) -> tuple[Array, float]:
    """y = P_C(θ − g(θ)/β) and ‖ξ‖ for ξ = g(y) − g(θ) + β(θ − y): y minimises f − ⟨ξ, ·⟩ over C."""
    g = f.gradient(theta)
    y = over.project(theta - g / f.smoothness)
    ξ = f.gradient(y) - g + f.smoothness * (theta - y)
    size = float(np.linalg.norm(ξ))
    return y, size if math.isfinite(size) else math.inf


class _Proven:
    """The point with the smallest proven gap so far, in the form that Newton's method reports to."""

    def __init__(self, surrogate: Surrogate) -> None:
        self._over, self._rounding, self._strong = surrogate.over, 4 * surrogate.in_gradients, surrogate.strong
        self.theta: Array | None = None
        self.gap = math.inf

    def offer(self, f: Any, theta: Array, g: Array, hessian: Array | None = None) -> float:
        y, size = _residual(f, self._over, theta)
        gap = (size + self._rounding) ** 2 / (2 * self._strong)
        if gap < self.gap:
            self.theta, self.gap = y, gap
        return gap


def minimiser(surrogate: Surrogate, counts: NDArray[Any], tolerance: float) -> Array:
    """θ of the set with f(θ) − f* ≤ ``tolerance``, where ``certain_value`` says so. Private."""
    with np.errstate(all="ignore"):
        f = surrogate.function(counts)
        if f is None:
            return _start(surrogate)
        quick = _by_newton(surrogate, counts, f, tolerance)
        return _accelerated(surrogate, f, tolerance)[0] if quick is None else quick


def located(surrogate: Surrogate, counts: NDArray[Any], distance: float) -> Array:
    """θ of the set with ‖θ − θ*‖ ≤ ``distance``, where ``certain_place`` says so. Private."""
    with np.errstate(all="ignore"):
        f = surrogate.function(counts)
        if f is None:
            return _start(surrogate)
        tolerance = surrogate.strong * distance * distance / 4
        quick = _by_newton(surrogate, counts, f, tolerance)
        return _accelerated(surrogate, f, tolerance)[1] if quick is None else quick


def certain_value(surrogate: Surrogate, tolerance: float) -> bool:
    """Whether ``minimiser`` reaches the tolerance for every table: a public fact about the loss and the set."""
    if not surrogate.is_solvable:
        return False
    floor = (1 + math.sqrt(_condition(surrogate))) * surrogate.in_values
    return floor <= tolerance / 2 and _accelerated_steps(surrogate, tolerance) <= _most_steps(surrogate)


def certain_place(surrogate: Surrogate, distance: float) -> bool:
    """Whether ``located`` reaches the distance for every table: a public fact about the loss and the set."""
    if not surrogate.is_solvable:
        return False
    floor = 6 * (surrogate.in_gradients + surrogate.smoothness * surrogate.in_projections) / surrogate.strong
    tolerance = surrogate.strong * distance * distance / 4
    return floor <= distance / 2 and _accelerated_steps(surrogate, tolerance) <= _most_steps(surrogate)


def _start(surrogate: Surrogate) -> Array:
    return surrogate.over.project(np.zeros(surrogate.risk.dimension))


def _condition(surrogate: Surrogate) -> float:
    return max(surrogate.smoothness / surrogate.strong, 1.0)


def _most_steps(surrogate: Surrogate) -> float:
    return min(MOST_STEPS, max(100.0, MOST_WORK / math.prod(surrogate.risk.shape)))


def _by_newton(surrogate: Surrogate, counts: NDArray[Any], f: _Penalised, tolerance: float) -> Array | None:
    """Newton's method, kinks rounded over ever smaller widths; None where it ends without a proof."""
    if not isinstance(surrogate.risk, GlmRisk):  # a user's loss has no second derivatives
        return None
    proven, theta = _Proven(surrogate), _start(surrogate)
    try:
        h = 1.0
        while has_kinks(surrogate.risk) and h * NARROWER > surrogate.width:
            wider = surrogate.function(counts, h)
            assert wider is not None
            theta = newton(wider, surrogate.over, _Proven(surrogate), theta, max(tolerance, h / 1000))
            h *= NARROWER
        newton(f, surrogate.over, proven, theta, tolerance)
    except Exception:  # what ended it may depend on the counts, so nobody hears of it: the proven method follows
        return None
    return proven.theta if proven.gap <= tolerance else None


def _accelerated_steps(surrogate: Surrogate, tolerance: float) -> float:
    """k with D²/A_k ≤ tolerance, by A_k ≥ (1/β)(1 + ½√(1/κ))^(2(k−1))."""
    far = surrogate.over.diameter_l2(surrogate.risk.dimension)
    wanted = surrogate.smoothness * far * far / tolerance if tolerance > 0 else math.inf
    return 2 + math.log(max(wanted, 1.0)) / (2 * math.log1p(0.5 / math.sqrt(_condition(surrogate))))


def _accelerated(surrogate: Surrogate, f: _Penalised, tolerance: float) -> tuple[Array, Array]:
    """u and v, for which A(f(u) − f*) + ½(1 + σA)‖v − θ*‖² never grows but for rounding; a proven point as both."""
    over, β, σ = surrogate.over, surrogate.smoothness, surrogate.strong
    u = v = _start(surrogate)
    proven, A = _Proven(surrogate), 0.0
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
