"""Convex losses of a linear predictor, for regressions, classifiers, medians and quantiles.

Paper: Ullman, *Private Multiplicative Weights Beyond Linear Queries*, §1 and §4 (convex minimization queries, and the
Lipschitz, generalized linear and strongly convex families).

Symbols: z = ⟨x, θ⟩ the predictor, y the label, φ(z, y) the loss, so ℓ_x(θ) = φ(⟨x, θ⟩, y) + (ridge/2)·‖θ‖₂²; L = sup
‖∇ℓ_x(θ)‖₂, S = sup |⟨θ − θ′, ∇ℓ_x(θ)⟩|.

A loss is used alone on arrays (``Logistic()``), or in a question about a universe (``Logistic(target="smoker",
features=["age"])``, bound by ``on``). Binary labels are 0 and 1; for a two-valued target of a universe, the second
value is 1. A numeric target is standardized by its public bounds to [−1, 1] (a flag is 0 or 1). ``Poisson`` is the
exception: its target is a count and is not scaled.

The ridge penalizes every coefficient, the intercept too. This makes the loss strongly convex. The lasso is ``Squared``
over ``L1Ball(radius)``: each penalty weight corresponds to some radius. As a constraint, the ℓ1 norm keeps the loss
smooth and its constants L and S finite and public; as a penalty it would not.

Differs: at a kink of φ, ``directional`` is the one-sided derivative φ′(z; dz). Ullman's Figure 3 allows any
subgradient, for which Claim 3.5 fails (the claim needs ⟨u, D̂⟩ ≥ 0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow import _scipy as scipy
from hedgerow._checks import number, positive
from hedgerow._types import Array
from hedgerow.convex.bound_loss import GlmRisk
from hedgerow.convex.losses.loss import LOSSES, Interval, Labels, LinearLoss, ends_of
from hedgerow.errors import InvalidInput
from hedgerow.universe.universe import Universe


@dataclass(frozen=True)
class Loss(LinearLoss):
    """A loss that can be bound to a universe and so be named in a question.

    The parameters below are those of every loss. All are optional for a loss that is used on arrays.

    Parameters
    ----------
    target : str
        The attribute to predict.
    features : list of str
        The attributes to predict from.
    intercept : bool
        Add a constant feature. True by default.
    interactions : list of tuples of str
        Groups of attributes whose columns are multiplied.
    onehot : list of str
        Numeric features that get one column per value.
    where : Query
        Restrict the loss to the records that satisfy this query, such as ``hr.count(sex="F")``.
    ridge : float
        The weight of ½‖θ‖². 0 by default.
    coding : str
        "reference", the default: beside an intercept a category has no column for its first value, and coefficients
        are differences from it. "full": one column for every value.

    Example
    -------
    >>> loss = hr.losses.Logistic(target="smoker", features=["age"], ridge=0.1)
    >>> answer = session.ask(hr.minimize(loss, hr.L2Ball(5.0)))
    """

    def on(self, universe: Universe) -> GlmRisk:
        """Bind the loss to a universe: the loss of every record, with its constants.

        Parameters
        ----------
        universe : Universe
            The declared columns.

        Returns
        -------
        GlmRisk

        Raises
        ------
        InvalidInput
            If the universe has no such attribute, or the target does not suit the loss.

        Example
        -------
        >>> hr.losses.Logistic(target="smoker", features=["age"]).on(universe).dimension
        2
        """
        return GlmRisk(self, universe)


@LOSSES.add
@dataclass(frozen=True)
class Squared(Loss):
    """The squared loss ½(z − y)²: linear regression, or a mean if the intercept is the only feature.

    Parameters: see ``Loss``.

    Example
    -------
    >>> hr.losses.Squared(target="income", features=["age", "sex"]).smoothness
    1.0
    """

    @property
    def smoothness(self) -> float:
        """sup φ″ = 1."""
        return 1.0

    def value(self, z: Array, y: Array) -> Array:
        """Return ½(z − y)²."""
        return (z - y) ** 2 / 2

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        """Return z − y as both slopes."""
        return (slope := z - y), slope

    def curvature(self, z: Array, y: Array) -> Array:
        """Return 1."""
        return np.ones(np.broadcast_shapes(np.shape(z), np.shape(y)))

    def curvature_floor(self, z: Interval) -> float:
        """Return 1."""
        return 1.0


@LOSSES.add
@dataclass(frozen=True)
class Logistic(Loss):
    """The logistic loss ln(1 + e^z) − yz for y in {0, 1}: logistic regression.

    Parameters: see ``Loss``.

    Example
    -------
    >>> hr.losses.Logistic(target="smoker", features=["age", "sex"]).smoothness
    0.25
    """

    labels: ClassVar[Labels] = "binary"

    @property
    def smoothness(self) -> float:
        """sup φ″ = ¼, at z = 0."""
        return 0.25

    def value(self, z: Array, y: Array) -> Array:
        """Return ln(1 + e^z) − yz."""
        return np.logaddexp(0.0, z) - y * z

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        """Return 1/(1 + e^−z) − y as both slopes."""
        return (slope := scipy.special.expit(z) - y), slope

    def curvature(self, z: Array, y: Array) -> Array:
        """Return s(1 − s) for s = 1/(1 + e^−z)."""
        s = scipy.special.expit(z)
        return np.broadcast_to(s * (1 - s), np.broadcast_shapes(np.shape(z), np.shape(y)))

    def curvature_floor(self, z: Interval) -> float:
        """Return the curvature at the end of the interval that is farther from 0."""
        widest = float(np.abs(ends_of(z)).max())
        return float(scipy.special.expit(widest) * scipy.special.expit(-widest))


@LOSSES.add
@dataclass(frozen=True)
class BoundedLogistic(Loss):
    """A bounded-slope logistic loss: ½e^(−m) for margins m = (2y − 1)z > 0, and its tangent ½(1 − m) below.

    It estimates log-odds as the logistic loss does, with half the slope. Where y = 1 has probability p, the mean slope
    is 0 at z = ln(p/(1 − p)), as for ``Logistic``: (1 − p)·½ = p·½e^(−z) if p ≥ ½. No such loss with slopes within ±½
    has more curvature at any z (docs/proofs/erm_whitened_descent.md).

    Parameters: see ``Loss``.

    Example
    -------
    >>> hr.losses.BoundedLogistic(target="smoker", features=["age"]).lipschitz()
    0.5
    """

    labels: ClassVar[Labels] = "binary"

    @property
    def smoothness(self) -> float:
        """sup φ″ = ½, at the margin 0."""
        return 0.5

    @property
    def mean_smoothness(self) -> float:
        """sup over z of the mean of φ″ over y, if y = 1 has the probability that z predicts: ¼."""
        return 0.25  # p·½e^(−z) = (1 − p)/2 for p ≥ ½

    def value(self, z: Array, y: Array) -> Array:
        """Return ½e^(−m) for margins m > 0 and ½(1 − m) for the others."""
        margin = (2 * y - 1) * z
        return np.exp(-np.maximum(margin, 0.0)) / 2 - np.minimum(margin, 0.0) / 2

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        """Return φ′ as both slopes; it lies within ±½."""
        s = 2 * y - 1
        return (slope := -s * np.exp(-np.maximum(s * z, 0.0)) / 2), slope

    def curvature(self, z: Array, y: Array) -> Array:
        """Return ½e^(−m) for margins m > 0 and 0 for the others."""
        margin = (2 * y - 1) * z
        return np.where(margin > 0, np.exp(-np.maximum(margin, 0.0)) / 2, 0.0)


@LOSSES.add
@dataclass(frozen=True)
class Hinge(Loss):
    """The hinge loss max(0, 1 − sz) for s = 2y − 1, y in {0, 1}: the support vector machine.

    Parameters: see ``Loss``.

    Example
    -------
    >>> hr.losses.Hinge(target="smoker", features=["age"]).lipschitz()
    1.0
    """

    labels: ClassVar[Labels] = "binary"

    def value(self, z: Array, y: Array) -> Array:
        """Return max(0, 1 − sz)."""
        return np.maximum(0.0, 1 - (2 * y - 1) * z)

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        """Return the left and right slopes, which differ at the margin 1."""
        s = 2 * y - 1
        left, right = _step(s * z - 1, tolerance)  # in the margin m = sz the slope is −1 before the kink, 0 after it
        before, after = left - 1, right - 1
        return np.where(s > 0, before, -after), np.where(s > 0, after, -before)

    def curvature(self, z: Array, y: Array) -> Array:
        """Return 0."""
        return np.zeros(np.broadcast_shapes(np.shape(z), np.shape(y)))


@LOSSES.add
@dataclass(frozen=True)
class SmoothedHinge(Loss):
    """The hinge loss with its kink rounded by a parabola over the margins [1 − width, 1].

    Parameters
    ----------
    width : float
        The length of the interval of margins over which the kink is rounded.

    Other parameters: see ``Loss``.

    Raises
    ------
    InvalidInput
        If the width is not positive.

    Example
    -------
    >>> hr.losses.SmoothedHinge(width=0.5, target="smoker", features=["age"]).smoothness
    2.0
    """

    width: float = 0.5

    labels: ClassVar[Labels] = "binary"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "width", positive("width", self.width, "Give the margin the kink is rounded over."))

    @property
    def smoothness(self) -> float:
        """sup φ″ = 1/width."""
        return 1 / self.width

    def value(self, z: Array, y: Array) -> Array:
        """Return the parabola where 1 − m is in [0, width], the line beyond, and 0 for margins m above 1."""
        short = 1 - (2 * y - 1) * z
        inside = np.clip(short, 0.0, self.width)
        return inside**2 / (2 * self.width) + np.maximum(short - self.width, 0.0)

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        """Return φ′ as both slopes; it lies within ±1."""
        s = 2 * y - 1
        return (slope := -s * np.clip((1 - s * z) / self.width, 0.0, 1.0)), slope

    def curvature(self, z: Array, y: Array) -> Array:
        """Return 1/width on the parabola and 0 elsewhere."""
        short = 1 - (2 * y - 1) * z
        return ((short > 0) & (short < self.width)) / self.width


@LOSSES.add
@dataclass(frozen=True)
class Huber(Loss):
    """The Huber loss of r = z − y, ½r² for |r| ≤ width and width·|r| − ½width² beyond: regression robust to outliers.

    Parameters
    ----------
    width : float
        The residual at which the loss turns from quadratic to linear.

    Other parameters: see ``Loss``.

    Raises
    ------
    InvalidInput
        If the width is not positive.

    Example
    -------
    >>> hr.losses.Huber(width=0.5, target="income", features=["age"]).lipschitz()
    0.5
    """

    width: float = 1.0

    @property
    def smoothness(self) -> float:
        """sup φ″ = 1."""
        return 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "width", positive("width", self.width, "Give the residual where it turns linear."))

    def value(self, z: Array, y: Array) -> Array:
        """Return ½r² for |r| ≤ width and width·|r| − ½width² beyond."""
        size = np.abs(z - y)
        inside = np.minimum(size, self.width)
        return inside**2 / 2 + self.width * (size - inside)

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        """Return the residual clipped to ±width as both slopes."""
        return (slope := np.clip(z - y, -self.width, self.width)), slope

    def curvature(self, z: Array, y: Array) -> Array:
        """Return 1 for |r| < width and 0 elsewhere."""
        return (np.abs(z - y) < self.width).astype(float)


@LOSSES.add
@dataclass(frozen=True)
class Pinball(Loss):
    """The pinball loss quantile·(y − z)₊ + (1 − quantile)·(z − y)₊: the quantile of y given x.

    Parameters
    ----------
    quantile : float
        The quantile to estimate, strictly between 0 and 1. The median, 0.5, is the default.

    Other parameters: see ``Loss``.

    Raises
    ------
    InvalidInput
        If the quantile does not lie strictly between 0 and 1.

    Example
    -------
    >>> hr.losses.Pinball(0.9, target="income", features=["age"]).lipschitz()
    0.9
    """

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
        """Return quantile·(y − z)₊ + (1 − quantile)·(z − y)₊."""
        r = z - y
        return np.maximum((1 - self.quantile) * r, -self.quantile * r)

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        """Return the left and right slopes, which differ at z = y."""
        left, right = _step(z - y, tolerance)
        return left - self.quantile, right - self.quantile

    def curvature(self, z: Array, y: Array) -> Array:
        """Return 0."""
        return np.zeros(np.broadcast_shapes(np.shape(z), np.shape(y)))


@LOSSES.add
@dataclass(frozen=True)
class Absolute(Loss):
    """The absolute loss |z − y|: the median of y given x.

    Parameters: see ``Loss``.

    Example
    -------
    >>> hr.losses.Absolute(target="income", features=["age"]).lipschitz()
    1.0
    """

    def value(self, z: Array, y: Array) -> Array:
        """Return |z − y|."""
        return np.abs(z - y)

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        """Return the left and right slopes, which differ at z = y."""
        left, right = _step(z - y, tolerance)
        return 2 * left - 1, 2 * right - 1

    def curvature(self, z: Array, y: Array) -> Array:
        """Return 0."""
        return np.zeros(np.broadcast_shapes(np.shape(z), np.shape(y)))


@LOSSES.add
@dataclass(frozen=True)
class Poisson(Loss):
    """The Poisson loss e^z − yz for counts y ≥ 0. Beyond z = clip the exponential continues along its tangent.

    The tangent makes the loss Lipschitz.

    Parameters
    ----------
    clip : float
        The largest predicted logarithm of a count, at most 100.

    Other parameters: see ``Loss``.

    Raises
    ------
    InvalidInput
        If clip is not finite or above 100.

    Example
    -------
    >>> hr.losses.Poisson(clip=0.0, target="visits", features=["age"]).smoothness
    1.0
    """

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
        """sup φ″ = e^clip."""
        return math.exp(self.clip)

    def value(self, z: Array, y: Array) -> Array:
        """Return e^z − yz, with the tangent of e^z beyond z = clip."""
        inside = np.minimum(z, self.clip)
        return np.exp(inside) * (1 + (z - inside)) - y * z

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        """Return e^min(z, clip) − y as both slopes."""
        return (slope := np.exp(np.minimum(z, self.clip)) - y), slope

    def curvature(self, z: Array, y: Array) -> Array:
        """Return e^z for z < clip and 0 beyond."""
        curved = np.where(z < self.clip, np.exp(np.minimum(z, self.clip)), 0.0)
        return np.broadcast_to(curved, np.broadcast_shapes(np.shape(z), np.shape(y)))

    def curvature_floor(self, z: Interval) -> float:
        """Return the curvature at the low end of the interval, or 0 if the interval reaches beyond clip."""
        low, high = ends_of(z)
        return math.exp(low) if high < self.clip else 0.0


@LOSSES.add
@dataclass(frozen=True)
class MultinomialLogistic(Loss):
    """The multinomial logistic loss ln Σₖ exp(zₖ) − z_y, where y is the number of the class.

    z has one entry per class on its last axis. θ is a p × classes matrix, flattened row by row.

    Parameters
    ----------
    classes : int, optional
        The number of classes. In a question it is the number of values of the target and can be left out.

    Other parameters: see ``Loss``.

    Raises
    ------
    InvalidInput
        If the number of classes is not a whole number of at least 2.

    Example
    -------
    >>> hr.losses.MultinomialLogistic(target="job", features=["age"]).smoothness
    0.5
    """

    classes: int | None = None

    labels: ClassVar[Labels] = "class"

    @property
    def smoothness(self) -> float:
        """sup of the largest eigenvalue of the Hessian in z: ½."""
        return 0.5  # no eigenvalue of diag(s) − ssᵀ is larger

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
        """Return ln Σₖ exp(zₖ) − z_y."""
        z, index = _per_class(z, y)
        chosen = np.take_along_axis(z, index[..., None], axis=-1)[..., 0]
        total: Array = scipy.special.logsumexp(z, axis=-1)
        return total - chosen

    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        """Return softmax(z) − e_y, on the last axis, as both slopes."""
        z, index = _per_class(z, y)
        slope: Array = scipy.special.softmax(z, axis=-1) - (np.arange(z.shape[-1]) == index[..., None])
        return slope, slope

    def directional(self, z: Array, y: Array, dz: Array, tolerance: float = 0.0) -> Array:
        """Return ⟨∇φ, dz⟩."""
        total: Array = (self.derivative(z, y) * dz).sum(axis=-1)
        return total

    def curvature(self, z: Array, y: Array) -> Array:
        """Return the Hessian diag(s) − ssᵀ in z, s = softmax(z), on the last two axes."""
        s = scipy.special.softmax(_per_class(z, y)[0], axis=-1)
        matrix: Array = s[..., None] * (np.eye(s.shape[-1]) - s[..., None, :])
        return matrix

    def lipschitz(self, z: Interval = math.inf, y: Interval = 1.0) -> float:
        """Bound sup ‖softmax(z) − e_y‖₂ by √2·(1 − s_y).

        s_y is least with z_y at the low end and the others at the high end.
        """
        low, high = ends_of(z)
        others = math.inf if self.classes is None else self.classes - 1
        with np.errstate(over="ignore"):
            return math.sqrt(2) * (1 - 1 / (1 + others * float(np.exp(high - low))))


def _per_class(z: Array, y: Array) -> tuple[Array, NDArray[np.int64]]:
    """Broadcast predictors and labels to common shapes, with whole numbers as labels."""
    index = np.asarray(y).astype(np.int64)
    shape = np.broadcast_shapes(z.shape[:-1], index.shape)
    return np.broadcast_to(z, (*shape, z.shape[-1])), np.broadcast_to(index, shape)


def _step(r: Array, tolerance: float) -> tuple[Array, Array]:
    """Return the left and right limits of 1[r > 0]. Within ``tolerance`` of 0 these are 0 and 1."""
    return (r > tolerance).astype(float), (r >= -tolerance).astype(float)
