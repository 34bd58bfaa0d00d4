"""A loss over weighted cells, as a function of θ per unit of mass. ``public_minimum`` minimizes it.

Symbols: f(θ) = Σ m(x)ℓ_x(θ)/Σ m, h the half width over which a kink is rounded, d = z − k the distance of a predictor
from its kink, e(x) ≥ 0 the amount by which a slope misses being a subgradient of φ there.

The subgradients at the kink k are the slopes between φ′(k−) and φ′(k+). A rounded loss runs through them over [k − h, k
+ h]. At a distance d < h from the kink, e = ½·jump·d(1 − d/h).
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hedgerow._types import Array
from hedgerow.convex.bound_loss import GlmObjective, GlmRisk, Risk
from hedgerow.convex.losses.families import Absolute, Hinge, Logistic, Pinball, Squared
from hedgerow.convex.sets.convex_set import ConvexSet

WIDER = 5.0  # ratio of the widths of two roundings whose Hessians are added
LARGEST_LIST = 2 * 10**5  # feature vectors are listed if they have at most this many numbers in all


class ObjectiveFunction(Protocol):
    """A function f of θ, with the constants and derivatives that the solvers need."""

    smoothness: float  # β
    strong: float  # σ
    width: float  # h, or 0 if no kink is rounded

    def value(self, theta: Array) -> float:
        """Return f(θ)."""
        ...

    def gradient(self, theta: Array) -> Array:
        """Return a (sub)gradient of f at θ."""
        ...

    def hessian(self, theta: Array, damping: int = 0) -> Array:
        """Return f″, made larger by ``damping`` after steps that went too far."""

    def subgradient_gap(self, theta: Array) -> float:
        """Return Σ m e, the amount by which the gradient misses being a subgradient of the loss itself."""

    def third(self) -> float:
        """Return an R with |f‴[v, w, w]| ≤ R‖v‖·f″[w, w], or infinity if none is known."""


class SmoothObjective:
    """A smooth loss without changes. It also serves any loss with its own subgradients where only these are used."""

    width = 0.0

    def __init__(self, risk: Risk, objective: Any, over: ConvexSet) -> None:
        self.risk, self.objective, self.mass = risk, objective, objective.mass
        self.smoothness, self.strong = risk.smoothness, risk.strong_convexity(over)

    def value(self, theta: Array) -> float:
        """Return f(θ)."""
        return float(self.objective.value(theta) / self.mass)

    def gradient(self, theta: Array) -> Array:
        """Return a (sub)gradient of f at θ."""
        return np.asarray(self.objective.gradient(theta) / self.mass)

    def hessian(self, theta: Array, damping: int = 0) -> Array:
        """Return the Hessian, plus a multiple of the identity that grows tenfold with each unit of damping."""
        found = self.objective.hessian(theta) / self.mass
        return np.asarray(found + self.smoothness * 1e-8 * (10**damping - 1) * np.eye(len(theta)))

    def subgradient_gap(self, theta: Array) -> float:
        """Return 0: the gradients are those of the loss itself."""
        return 0.0

    def third(self) -> float:
        """Return R for squared and logistic losses, infinity for others."""
        if not isinstance(self.risk, GlmRisk) or type(self.risk.loss) not in (Squared, Logistic):
            return math.inf
        return 0.0 if type(self.risk.loss) is Squared else self.risk.features.row_norm_bound  # |φ‴| ≤ φ″


class ListedCells:
    """The sum Σ m(x)φ(⟨x, θ⟩, y) with an explicit list of feature vectors, for small universes.

    Feature vectors of weight zero are left out.
    """

    def __init__(self, risk: GlmRisk, objective: GlmObjective) -> None:
        self.risk, self.loss, self.mass = risk, risk.loss, objective.mass
        axis = risk.kept.index(risk.target)
        table = np.moveaxis(objective.weights, axis, 0).reshape(len(risk.labels), -1)
        used = np.flatnonzero(table.any(axis=0))
        used = used if used.size else np.zeros(1, np.int64)  # all weights are zero: keep one cell
        codes = np.unravel_index(used, risk.features.shape) if risk.features.shape else ()
        names = risk.features.attributes
        rows = risk.features.rows(dict(zip(names, codes, strict=True))) if names else np.ones((len(used), 1))
        self.X, self.weights, self.y = rows, table[:, used], risk.labels[:, None]

    def parts(self, theta: Array) -> tuple[Array, Array]:
        """Return the predictors and the labels of the listed cells."""
        return (self.X @ theta)[None, :], self.y

    def value(self, theta: Array) -> float:
        """Return the weighted sum of losses."""
        z, y = self.parts(theta)
        penalty = self.loss.ridge / 2 * float(theta @ theta)
        return float((self.weights * self.loss.value(z, y)).sum()) + self.mass * penalty

    def gradient(self, theta: Array) -> Array:
        """Return the weighted sum of gradients."""
        z, y = self.parts(theta)
        each = (self.weights * self.loss.derivative(z, y)).sum(axis=0)
        return np.asarray(self.X.T @ each + self.mass * self.loss.ridge * theta)

    def hessian(self, theta: Array) -> Array:
        """Return the weighted sum of Hessians."""
        z, y = self.parts(theta)
        each = (self.weights * self.loss.curvature(z, y)).sum(axis=0)
        return np.asarray((self.X * each[:, None]).T @ self.X + self.mass * self.loss.ridge * np.eye(len(theta)))


def list_cells(risk: Risk, objective: Any) -> Any:
    """Return the objective with listed feature vectors if the list is small enough. Otherwise return it unchanged."""
    small = isinstance(risk, GlmRisk) and not risk.outputs
    if small and math.prod(risk.features.shape) * risk.dimension <= LARGEST_LIST:  # type: ignore[attr-defined]
        return ListedCells(risk, objective)  # type: ignore[arg-type]
    return objective


def _label(y: Array) -> Array:
    return y


def _sign(y: Array) -> Array:
    return 2 * y - 1


KINKS = {Hinge: _sign, Absolute: _label, Pinball: _label}
"""For each loss with a kink, the predictor at which φ(·, y) has its only kink. φ is linear on either side."""


@dataclass(frozen=True)
class RoundedLoss:
    """The loss φ with a rounded kink: its slope goes linearly from φ′(k−) to φ′(k+) over [k − h, k + h].

    It lies between φ and φ + jump·h/4.
    """

    loss: Any
    h: float

    @property
    def ridge(self) -> float:
        """The ridge of the original loss."""
        return float(self.loss.ridge)

    def _at(self, z: Array, y: Array) -> tuple[Array, Array, Array, Array]:
        """Return d = z − k, the left slope, the jump of the slope, and φ(k)."""
        k = KINKS[type(self.loss)](y)
        left, right = self.loss.slopes(k, y)
        return z - k, left, right - left, self.loss.value(k, y)

    def value(self, z: Array, y: Array) -> Array:
        """Return the rounded φ."""
        d, left, jump, at_kink = self._at(z, y)
        inside = np.clip(d + self.h, 0.0, 2 * self.h)
        return at_kink + left * d + jump * (inside**2 / (4 * self.h) + np.maximum(d - self.h, 0.0))

    def derivative(self, z: Array, y: Array) -> Array:
        """Return its slope."""
        d, left, jump, _ = self._at(z, y)
        return left + jump * np.clip((d + self.h) / (2 * self.h), 0.0, 1.0)

    def curvature(self, z: Array, y: Array) -> Array:
        """Return jump/(2h) within h of the kink and 0 elsewhere."""
        d, _, jump, _ = self._at(z, y)
        return (np.abs(d) < self.h) * (jump / (2 * self.h))

    def subgradient_gap(self, z: Array, y: Array) -> Array:
        """Return e, the amount by which the slope misses being a subgradient of φ."""
        d, _, jump, _ = self._at(z, y)
        d = np.minimum(np.abs(d), self.h)
        return jump / 2 * d * (1 - d / self.h)


class RoundedObjective(SmoothObjective):
    """A loss with kinks, rounded over the half width h."""

    def __init__(self, risk: GlmRisk, objective: Any, over: ConvexSet, h: float) -> None:
        super().__init__(risk, objective, over)
        self.smoothness = rounded_smoothness(risk, h)
        self._loss, self._given = risk.loss, objective
        self.objective, self.width = self._with_rounding(h), h

    def _with_rounding(self, h: float) -> Any:
        """Return a copy of the objective whose kinks are rounded over h."""
        objective = copy.copy(self._given)
        if isinstance(objective, ListedCells):
            objective.loss = RoundedLoss(self._loss, h)  # type: ignore[assignment]
        else:
            object.__setattr__(objective, "risk", rounded_risk(self.risk, h))
        return objective

    def hessian(self, theta: Array, damping: int = 0) -> Array:
        """Return the Hessian of f plus Hessians of wider roundings.

        Few cells or none lie within h of their kink, so f″ alone carries little information. Wider roundings add what
        lies farther away.
        """
        found, h = self.objective.hessian(theta) / self.mass, self.width
        while h < 1 and (damping > 0 or not np.diag(found).max() > 0):
            h, damping = WIDER * h, damping - 1
            found = found + self._with_rounding(h).hessian(theta) / self.mass
        return np.asarray(found)

    def subgradient_gap(self, theta: Array) -> float:
        """Return Σ m e."""
        z, y = self.objective.parts(theta)
        return float(
            (self.objective.weights * RoundedLoss(self._loss, self.width).subgradient_gap(z, y)).sum() / self.mass
        )


def rounded_risk(risk: Risk, h: float) -> Risk:
    """Return the same risk for the loss with its kinks rounded over the half width h."""
    twin = copy.copy(risk)
    twin.loss = RoundedLoss(risk.loss, h)  # type: ignore[attr-defined]
    return twin


def rounded_smoothness(risk: GlmRisk, h: float) -> float:
    """Return the smoothness of a loss whose kinks are rounded over the half width h."""
    return 2.0 / (2 * h) * risk.features.row_norm_bound**2 + risk.loss.ridge if h > 0 else math.inf  # jump ≤ 2
