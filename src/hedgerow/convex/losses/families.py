"""Convex losses of a linear predictor: what regressions, classifiers, medians and quantiles minimise.

Paper: Ullman, *Private Multiplicative Weights Beyond Linear Queries*, §1 and §4 (convex minimization queries, and the
families Lipschitz, generalised linear, strongly convex).

Symbols: z = ⟨x, θ⟩ the predictor, y the label, φ(z, y) the loss, so ℓ_x(θ) = φ(⟨x, θ⟩, y) + (ridge/2)·‖θ‖₂²;
L = sup ‖∇ℓ_x(θ)‖₂, S = sup |⟨θ − θ′, ∇ℓ_x(θ)⟩|.

A loss is used alone on arrays (``Logistic()``) or asked of a universe (``Logistic(target="smoker", features=["age"])``,
bound by ``on``). Binary labels are 0 and 1; of a universe's two-valued target the second value is 1. A numeric target is
standardised by its public bounds to [−1, 1] (a flag is 0 or 1), except for ``Poisson``, which counts.

The ridge penalises every coefficient, the intercept too: it is what makes the loss strongly convex. The lasso is
``Squared`` over ``L1Ball(radius)``: each penalty weight is some radius, and as a constraint it keeps the loss smooth and
its constants L and S finite and public, which a penalty weight would not.

Differs: where φ has a kink, ``directional`` is the one-sided derivative φ′(z; dz). Ullman's Figure 3 allows any
subgradient, for which Claim 3.5 fails (it needs ⟨u, D̂⟩ ≥ 0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy  # which loads its parts when they are first named
from numpy.typing import NDArray

from hedgerow._checks import number, positive
from hedgerow._types import Array
from hedgerow.convex.bound_loss import GlmRisk
from hedgerow.convex.losses.loss import Interval, Labels, LinearLoss, ends_of
from hedgerow.errors import InvalidInput
from hedgerow.questions.universe import Universe

__all__ = [
    "Absolute",
    "BoundedLogistic",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "MultinomialLogistic",
    "Pinball",
    "Poisson",
    "SmoothedHinge",
    "Squared",
]


@dataclass(frozen=True)
class Loss(LinearLoss):
    """A loss of this file: it can be bound to a universe, and so be asked about."""

    def on(self, universe: Universe) -> GlmRisk:
        """The loss of every record of the universe, with its constants."""
        return GlmRisk(self, universe)


@dataclass(frozen=True)
class Squared(Loss):
    """½(z − y)²: linear regression; a mean when there is only the intercept."""

    @property
    def smoothness(self) -> float:
        return 1.0

    def value(self, z: Array, y: Array) -> Array:
        return (z - y) ** 2 / 2

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        return (slope := z - y), slope

    def curvature(self, z: Array, y: Array) -> Array:
        return np.ones(np.broadcast_shapes(np.shape(z), np.shape(y)))

    def curvature_floor(self, z: Interval) -> float:
        return 1.0


@dataclass(frozen=True)
class Logistic(Loss):
    """ln(1 + e^z) − yz for y in {0, 1}: logistic regression."""

    labels: ClassVar[Labels] = "binary"

    @property
    def smoothness(self) -> float:
        return 0.25

    def value(self, z: Array, y: Array) -> Array:
        return np.logaddexp(0.0, z) - y * z

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        return (slope := scipy.special.expit(z) - y), slope

    def curvature(self, z: Array, y: Array) -> Array:
        s = scipy.special.expit(z)
        return np.broadcast_to(s * (1 - s), np.broadcast_shapes(np.shape(z), np.shape(y)))

    def curvature_floor(self, z: Interval) -> float:
        widest = float(np.abs(ends_of(z)).max())
        return float(scipy.special.expit(widest) * scipy.special.expit(-widest))


@dataclass(frozen=True)
class BoundedLogistic(Loss):
    """½e^(−m) for margins m = (2y − 1)z > 0, and its tangent ½(1 − m) below: log-odds, like the logistic loss, at half its slope.

    Where y = 1 has probability p the mean slope is 0 at z = ln(p/(1 − p)), as for ``Logistic``: (1 − p)·½ = p·½e^(−z) if
    p ≥ ½. No such loss with slopes within ±½ has more curvature at any z (docs/proofs/erm_whitened_descent.md).
    """

    labels: ClassVar[Labels] = "binary"

    @property
    def smoothness(self) -> float:
        return 0.5

    @property
    def mean_smoothness(self) -> float:
        return 0.25  # p·½e^(−z) = (1 − p)/2 for p ≥ ½

    def value(self, z: Array, y: Array) -> Array:
        margin = (2 * y - 1) * z
        return np.exp(-np.maximum(margin, 0.0)) / 2 - np.minimum(margin, 0.0) / 2

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        s = 2 * y - 1
        return (slope := -s * np.exp(-np.maximum(s * z, 0.0)) / 2), slope

    def curvature(self, z: Array, y: Array) -> Array:
        margin = (2 * y - 1) * z
        return np.where(margin > 0, np.exp(-np.maximum(margin, 0.0)) / 2, 0.0)


@dataclass(frozen=True)
class Hinge(Loss):
    """max(0, 1 − sz) for s = 2y − 1, y in {0, 1}: the support vector machine."""

    labels: ClassVar[Labels] = "binary"

    def value(self, z: Array, y: Array) -> Array:
        return np.maximum(0.0, 1 - (2 * y - 1) * z)

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        s = 2 * y - 1
        left, right = _step(s * z - 1, tolerance)  # of −(m − 1)₋ in the margin m = sz: −1 before the kink, 0 after
        before, after = left - 1, right - 1
        return np.where(s > 0, before, -after), np.where(s > 0, after, -before)

    def curvature(self, z: Array, y: Array) -> Array:
        return np.zeros(np.broadcast_shapes(np.shape(z), np.shape(y)))


@dataclass(frozen=True)
class SmoothedHinge(Loss):
    """The hinge with its kink rounded by a parabola over margins [1 − width, 1]."""

    width: float = 0.5

    labels: ClassVar[Labels] = "binary"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "width", positive("width", self.width, "Give the margin the kink is rounded over."))

    @property
    def smoothness(self) -> float:
        return 1 / self.width

    def value(self, z: Array, y: Array) -> Array:
        short = 1 - (2 * y - 1) * z
        inside = np.clip(short, 0.0, self.width)
        return inside**2 / (2 * self.width) + np.maximum(short - self.width, 0.0)

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        s = 2 * y - 1
        return (slope := -s * np.clip((1 - s * z) / self.width, 0.0, 1.0)), slope

    def curvature(self, z: Array, y: Array) -> Array:
        short = 1 - (2 * y - 1) * z
        return ((short > 0) & (short < self.width)) / self.width


@dataclass(frozen=True)
class Huber(Loss):
    """½r² for |r| ≤ width and width·|r| − ½width² beyond, r = z − y: regression robust to outliers."""

    width: float = 1.0

    @property
    def smoothness(self) -> float:
        return 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "width", positive("width", self.width, "Give the residual where it turns linear."))

    def value(self, z: Array, y: Array) -> Array:
        size = np.abs(z - y)
        inside = np.minimum(size, self.width)
        return inside**2 / 2 + self.width * (size - inside)

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        return (slope := np.clip(z - y, -self.width, self.width)), slope

    def curvature(self, z: Array, y: Array) -> Array:
        return (np.abs(z - y) < self.width).astype(float)


@dataclass(frozen=True)
class Pinball(Loss):
    """quantile·(y − z)₊ + (1 − quantile)·(z − y)₊: the quantile of y given x."""

    quantile: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        quantile = number(self.quantile)
        if not 0 < quantile < 1:
            raise InvalidInput(
                f"quantile must lie strictly between 0 and 1. Found {self.quantile!r}. The median is 0.5."
            )
        object.__setattr__(self, "quantile", quantile)

    def value(self, z: Array, y: Array) -> Array:
        r = z - y
        return np.maximum((1 - self.quantile) * r, -self.quantile * r)

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        left, right = _step(z - y, tolerance)
        return left - self.quantile, right - self.quantile

    def curvature(self, z: Array, y: Array) -> Array:
        return np.zeros(np.broadcast_shapes(np.shape(z), np.shape(y)))


@dataclass(frozen=True)
class Absolute(Loss):
    """|z − y|: the median of y given x."""

    def value(self, z: Array, y: Array) -> Array:
        return np.abs(z - y)

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        left, right = _step(z - y, tolerance)
        return 2 * left - 1, 2 * right - 1

    def curvature(self, z: Array, y: Array) -> Array:
        return np.zeros(np.broadcast_shapes(np.shape(z), np.shape(y)))


@dataclass(frozen=True)
class Poisson(Loss):
    """e^z − yz for counts y ≥ 0, its exponential going on along its tangent beyond z = clip, so that it is Lipschitz."""

    clip: float = 3.0

    labels: ClassVar[Labels] = "count"

    def __post_init__(self) -> None:
        super().__post_init__()
        clip = number(self.clip)
        if not -math.inf < clip <= 100:
            raise InvalidInput(
                f"clip must be finite and at most 100. Found {self.clip!r}. Give the largest predicted log of a count."
            )
        object.__setattr__(self, "clip", clip)

    @property
    def smoothness(self) -> float:
        return math.exp(self.clip)

    def value(self, z: Array, y: Array) -> Array:
        inside = np.minimum(z, self.clip)
        return np.exp(inside) * (1 + (z - inside)) - y * z

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        return (slope := np.exp(np.minimum(z, self.clip)) - y), slope

    def curvature(self, z: Array, y: Array) -> Array:
        curved = np.where(z < self.clip, np.exp(np.minimum(z, self.clip)), 0.0)
        return np.broadcast_to(curved, np.broadcast_shapes(np.shape(z), np.shape(y)))

    def curvature_floor(self, z: Interval) -> float:
        low, high = ends_of(z)
        return math.exp(low) if high < self.clip else 0.0


@dataclass(frozen=True)
class MultinomialLogistic(Loss):
    """ln Σₖ exp(zₖ) − z_y: z has one entry per class on its last axis, y is the number of the class.

    θ is p × classes, flattened row by row. ``classes`` may be left to the target's values.
    """

    classes: int | None = None

    labels: ClassVar[Labels] = "class"

    @property
    def smoothness(self) -> float:
        return 0.5  # the largest eigenvalue of diag(s) − ssᵀ

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.classes is None:
            return
        classes = number(self.classes)
        if not (classes >= 2 and classes.is_integer()):
            raise InvalidInput(
                f"classes must be a whole number of at least 2. Found {self.classes!r}. Count the labels."
            )
        object.__setattr__(self, "classes", int(classes))

    def value(self, z: Array, y: Array) -> Array:
        z, index = _per_class(z, y)
        chosen = np.take_along_axis(z, index[..., None], axis=-1)[..., 0]
        total: Array = scipy.special.logsumexp(z, axis=-1)
        return total - chosen

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        """softmax(z) − e_y, on the last axis."""
        z, index = _per_class(z, y)
        slope: Array = scipy.special.softmax(z, axis=-1) - (np.arange(z.shape[-1]) == index[..., None])
        return slope, slope

    def directional(self, z: Array, y: Array, dz: Array, tolerance: float = 0.0) -> Array:
        total: Array = (self.derivative(z, y) * dz).sum(axis=-1)
        return total

    def curvature(self, z: Array, y: Array) -> Array:
        """diag(s) − ssᵀ, on two last axes."""
        s = scipy.special.softmax(_per_class(z, y)[0], axis=-1)
        matrix: Array = s[..., None] * (np.eye(s.shape[-1]) - s[..., None, :])
        return matrix

    def lipschitz(self, z: Interval = math.inf, y: Interval = 1.0) -> float:
        """A bound on sup ‖softmax(z) − e_y‖₂ ≤ √2·(1 − s_y): s_y is least with y at the low end, the others at the high."""
        low, high = ends_of(z)
        others = math.inf if self.classes is None else self.classes - 1
        with np.errstate(over="ignore"):
            return math.sqrt(2) * (1 - 1 / (1 + others * float(np.exp(high - low))))


def _per_class(z: Array, y: Array) -> tuple[Array, NDArray[np.int64]]:
    index = np.asarray(y).astype(np.int64)
    shape = np.broadcast_shapes(z.shape[:-1], index.shape)
    return np.broadcast_to(z, (*shape, z.shape[-1])), np.broadcast_to(index, shape)


def _step(r: Array, tolerance: float) -> tuple[Array, Array]:
    """The left and right limits of 1[r > 0]; both ends of the jump within ``tolerance`` of it."""
    return (r > tolerance).astype(float), (r >= -tolerance).astype(float)
