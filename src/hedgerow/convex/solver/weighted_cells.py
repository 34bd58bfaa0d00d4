"""A loss over weighted cells, as a function of θ per unit of mass: what ``public_minimum`` minimises.

Symbols: f(θ) = Σ m(x)ℓ_x(θ)/Σ m, h the half width over which a kink is rounded, d = z − k the distance of a predictor
from its kink, e(x) ≥ 0 by how much a slope misses being a subgradient of φ there.

Slopes between φ′(k−) and φ′(k+) are the subgradients at the kink k. A rounded loss takes them in turn over [k − h, k + h],
and at a distance d < h from the kink e = ½·jump·d(1 − d/h).
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

WIDER = 5.0
LARGEST_LIST = 2 * 10**5  # numbers in a list of feature vectors


class Function(Protocol):
    smoothness: float
    strong: float
    width: float

    def value(self, theta: Array) -> float: ...
    def gradient(self, theta: Array) -> Array: ...
    def hessian(self, theta: Array, damping: int = 0) -> Array:
        """f″, made larger where ``damping`` says that steps by it went too far."""

    def missed(self, theta: Array) -> float:
        """Σ m e: by how much the gradient misses being a subgradient of the loss itself."""

    def third(self) -> float:
        """R with |f‴[v, w, w]| ≤ R‖v‖·f″[w, w], infinite where none is known."""


class Smooth:
    """A smooth loss as it is (also any loss with its own subgradients, where only those are asked)."""

    width = 0.0

    def __init__(self, risk: Risk, objective: Any, over: ConvexSet) -> None:
        self.risk, self.objective, self.mass = risk, objective, objective.mass
        self.smoothness, self.strong = risk.smoothness, risk.strong_convexity(over)

    def value(self, theta: Array) -> float:
        return float(self.objective.value(theta) / self.mass)

    def gradient(self, theta: Array) -> Array:
        return np.asarray(self.objective.gradient(theta) / self.mass)

    def hessian(self, theta: Array, damping: int = 0) -> Array:
        found = self.objective.hessian(theta) / self.mass
        return np.asarray(found + self.smoothness * 1e-8 * (10**damping - 1) * np.eye(len(theta)))

    def missed(self, theta: Array) -> float:
        return 0.0

    def third(self) -> float:
        if not isinstance(self.risk, GlmRisk) or type(self.risk.loss) not in (Squared, Logistic):
            return math.inf
        return 0.0 if type(self.risk.loss) is Squared else self.risk.features.row_norm_bound  # |φ‴| ≤ φ″


class Listed:
    """Σ m(x)φ(⟨x, θ⟩, y) with the feature vectors spelled out, where that is small: those of weight zero left out."""

    def __init__(self, risk: GlmRisk, objective: GlmObjective) -> None:
        self.risk, self.loss, self.mass = risk, risk.loss, objective.mass
        axis = risk.kept.index(risk.target)
        table = np.moveaxis(objective.weights, axis, 0).reshape(len(risk.labels), -1)
        used = np.flatnonzero(table.any(axis=0))
        used = used if used.size else np.zeros(1, np.int64)  # an empty slice
        codes = np.unravel_index(used, risk.features.shape) if risk.features.shape else ()
        names = risk.features.attributes
        rows = risk.features.rows(dict(zip(names, codes, strict=True))) if names else np.ones((len(used), 1))
        self.X, self.weights, self.y = rows, table[:, used], risk.labels[:, None]

    def parts(self, theta: Array) -> tuple[Array, Array]:
        return (self.X @ theta)[None, :], self.y

    def value(self, theta: Array) -> float:
        z, y = self.parts(theta)
        penalty = self.loss.ridge / 2 * float(theta @ theta)
        return float((self.weights * self.loss.value(z, y)).sum()) + self.mass * penalty

    def gradient(self, theta: Array) -> Array:
        z, y = self.parts(theta)
        each = (self.weights * self.loss.derivative(z, y)).sum(axis=0)
        return np.asarray(self.X.T @ each + self.mass * self.loss.ridge * theta)

    def hessian(self, theta: Array) -> Array:
        z, y = self.parts(theta)
        each = (self.weights * self.loss.curvature(z, y)).sum(axis=0)
        return np.asarray((self.X * each[:, None]).T @ self.X + self.mass * self.loss.ridge * np.eye(len(theta)))


def listed(risk: Risk, objective: Any) -> Any:
    small = isinstance(risk, GlmRisk) and not risk.outputs
    if small and math.prod(risk.features.shape) * risk.dimension <= LARGEST_LIST:  # type: ignore[attr-defined]
        return Listed(risk, objective)  # type: ignore[arg-type]
    return objective


def _label(y: Array) -> Array:
    return y


def _sign(y: Array) -> Array:
    return 2 * y - 1


KINKS = {Hinge: _sign, Absolute: _label, Pinball: _label}
"""Where φ(·, y) has its one kink; it is linear on either side."""


@dataclass(frozen=True)
class RoundedLoss:
    """φ with its slope going linearly from φ′(k−) to φ′(k+) over [k − h, k + h]; it lies between φ and φ + jump·h/4."""

    loss: Any
    h: float

    @property
    def ridge(self) -> float:
        return float(self.loss.ridge)

    def _at(self, z: Array, y: Array) -> tuple[Array, Array, Array, Array]:
        k = KINKS[type(self.loss)](y)
        left, right = self.loss.slopes(k, y)
        return z - k, left, right - left, self.loss.value(k, y)

    def value(self, z: Array, y: Array) -> Array:
        d, left, jump, at_kink = self._at(z, y)
        inside = np.clip(d + self.h, 0.0, 2 * self.h)
        return at_kink + left * d + jump * (inside**2 / (4 * self.h) + np.maximum(d - self.h, 0.0))

    def derivative(self, z: Array, y: Array) -> Array:
        d, left, jump, _ = self._at(z, y)
        return left + jump * np.clip((d + self.h) / (2 * self.h), 0.0, 1.0)

    def curvature(self, z: Array, y: Array) -> Array:
        d, _, jump, _ = self._at(z, y)
        return (np.abs(d) < self.h) * (jump / (2 * self.h))

    def missed(self, z: Array, y: Array) -> Array:
        d, _, jump, _ = self._at(z, y)
        d = np.minimum(np.abs(d), self.h)
        return jump / 2 * d * (1 - d / self.h)


class Rounded(Smooth):
    """A loss with kinks, rounded over the half width h."""

    def __init__(self, risk: GlmRisk, objective: Any, over: ConvexSet, h: float) -> None:
        super().__init__(risk, objective, over)
        self.smoothness = rounded_smoothness(risk, h)
        self._loss, self._given = risk.loss, objective
        self.objective, self.width = self._rounded(h), h

    def _rounded(self, h: float) -> Any:
        objective = copy.copy(self._given)
        if isinstance(objective, Listed):
            objective.loss = RoundedLoss(self._loss, h)  # type: ignore[assignment]
        else:
            object.__setattr__(objective, "risk", rounded_risk(self.risk, h))
        return objective

    def hessian(self, theta: Array, damping: int = 0) -> Array:
        """Few cells or none lie within h of their kink, so f″ says little: wider roundings say what is farther off."""
        found, h = self.objective.hessian(theta) / self.mass, self.width
        while h < 1 and (damping > 0 or not np.diag(found).max() > 0):
            h, damping = WIDER * h, damping - 1
            found = found + self._rounded(h).hessian(theta) / self.mass
        return np.asarray(found)

    def missed(self, theta: Array) -> float:
        z, y = self.objective.parts(theta)
        return float((self.objective.weights * RoundedLoss(self._loss, self.width).missed(z, y)).sum() / self.mass)


def rounded_risk(risk: Risk, h: float) -> Risk:
    """The same question of the loss with its kinks rounded over the half width h."""
    twin = copy.copy(risk)
    twin.loss = RoundedLoss(risk.loss, h)  # type: ignore[attr-defined]
    return twin


def rounded_smoothness(risk: GlmRisk, h: float) -> float:
    return 2.0 / (2 * h) * risk.features.row_norm_bound**2 + risk.loss.ridge if h > 0 else math.inf  # jump ≤ 2
