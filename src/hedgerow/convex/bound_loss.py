"""A convex loss bound to a universe: the loss of every record, its gradients over a marginal, and its constants.

Paper: Ullman, *Private Multiplicative Weights Beyond Linear Queries*, §2–3.

Symbols: ℓ_x(θ) the loss of record x, L = sup ‖∇ℓ_x(θ)‖₂, S = sup |⟨θ − θ′, ∇ℓ_x(θ)⟩|, u(x) = ℓ′_x(θ̂; θ − θ̂).

Everything in this module depends only on the universe, the loss and the constraint set, so every refusal is public. The
one exception is ``Objective``, which holds a marginal. An objective never raises on the values of its marginal.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow import _memory
from hedgerow._types import Array
from hedgerow.convex.features import Features, standardize
from hedgerow.convex.losses.loss import LinearLoss
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.query.counts import Query
from hedgerow.query.counts import bound as bound_to
from hedgerow.query.linear import LARGEST_TABLE, Linear
from hedgerow.universe.universe import Universe

LARGEST_LISTED = 1 << 23  # a table of more cells is not written out: its loss is minimized over a sample of records,
LARGEST_SAMPLE = 1 << 18  # of at most this many


class Objective(Protocol):
    """The function Σ_x m(x)·ℓ_x(θ) of θ, for a fixed marginal m of fractions or counts. Solvers minimize it."""

    @property
    def mass(self) -> float:
        """Σ_x m(x), the total weight of the marginal."""
        ...

    def value(self, theta: Array) -> float:
        """Return Σ_x m(x)·ℓ_x(θ)."""
        ...

    def gradient(self, theta: Array) -> Array:
        """Return a (sub)gradient of the objective at θ."""
        ...


class Risk(ABC):
    """The loss ℓ_x(θ) for every cell x of the marginal on ``attributes``."""

    universe: Universe
    attributes: tuple[str, ...]
    shape: tuple[int, ...]
    dimension: int
    is_glm: bool
    is_listable: bool = True  # the table of all its cells can be written out

    @property
    def glm(self) -> GlmRisk | None:
        """The loss as one of a linear predictor; None for any other."""
        return None

    smoothness: float  # the largest norm of a Hessian; infinite if the loss has a kink

    @property
    def is_smooth(self) -> bool:
        """True if the loss has no kink, so that its smoothness constant is finite."""
        return math.isfinite(self.smoothness)

    @abstractmethod
    def losses(self, theta: Array) -> Array:
        """Return ℓ_x(θ) for every cell x."""

    @abstractmethod
    def directional(self, theta: Array, toward: Array, tolerance: float = 0.0) -> Array:
        """Return the directional derivatives u(x) = ℓ′_x(θ; toward − θ) for every cell x, one-sided at kinks.

        A predictor within ``tolerance`` of a kink is treated as lying on the kink.
        """

    @abstractmethod
    def objective(self, marginal: NDArray[np.generic]) -> Objective:
        """Return the objective Σ_x m(x)·ℓ_x for the marginal m."""
        ...

    @abstractmethod
    def lipschitz(self, over: ConvexSet) -> float:
        """Return L, the largest gradient norm over the set."""

    @abstractmethod
    def scale(self, over: ConvexSet) -> float:
        """Return S, the largest |⟨θ − θ′, ∇ℓ_x(θ)⟩| over the set."""

    @abstractmethod
    def strong_convexity(self, over: ConvexSet) -> float:
        """Return a σ ≥ 0 such that every ℓ_x is σ-strongly convex over the set."""
        ...

    @abstractmethod
    def magnitude(self, over: ConvexSet) -> float:
        """Return a bound on the numbers from which a record's loss is computed.

        It bounds the rounding error of float64.
        """

    def require_size(self, outputs: int = 1, columns: Iterable[int] = ()) -> None:
        """Refuse a question whose cells or parameters do not fit in memory."""
        cells = math.prod(self.shape) if self.is_listable else LARGEST_SAMPLE
        if cells > LARGEST_TABLE:
            raise TooLarge(
                f"A convex question must be about at most {LARGEST_TABLE} cells. Found {cells} on {self.attributes!r}. "
                "Use fewer features, declare coarser bins, or fit it once with hedgerow.erm."
            )
        what, way_out = (
            f"A convex question on {self.attributes!r}",
            "Use fewer features, declare coarser bins, fit it once with hedgerow.erm",
        )
        _memory.require_fit(what, cells, outputs, columns, self.dimension, way_out)


class GlmRisk(Risk):
    """The loss φ(⟨x, θ⟩, y)·1[where] + (ridge/2)‖θ‖² on a universe. No design matrix is built (see ``features``)."""

    is_glm = True

    @property
    def glm(self) -> GlmRisk:
        """This loss."""
        return self

    def __init__(self, loss: LinearLoss, universe: Universe) -> None:
        self.loss, self.universe = loss, universe
        self.target = _checked_target(loss, universe)
        self.outputs = (universe[self.target].size,) if loss.labels == "class" else ()
        self.features = Features(
            universe,
            loss.features,
            intercept=loss.intercept,
            interactions=loss.interactions,
            onehot=loss.onehot,
            coding=loss.coding,
        )
        self.restriction = None if loss.where is None else _restriction(loss.where, universe)
        named = (self.target, *self.features.attributes)
        self.attributes = universe.order((*named, *(self.restriction.attributes if self.restriction else ())))
        self.shape = universe.sizes(self.attributes)
        self.dimension = self.features.dimension * math.prod(self.outputs)
        columns = (universe[name].size * width for name, width in self.features.widths.items())
        self.is_listable = math.prod(self.shape) <= LARGEST_LISTED
        self.require_size(math.prod(self.outputs), columns)
        self.labels = _label_table(loss, universe)
        self.kept = universe.order(named)  # the axes that remain once ``where`` is summed out
        self.smoothness = loss.smoothness * self.features.row_norm_bound**2 + loss.ridge

    def predictor(self, theta: Array, axes: Sequence[str] | None = None) -> Array:
        """Return ⟨x, θ⟩ over the marginal's axes. An axis on which x does not depend has length one."""
        z = self.features.predictor(theta.reshape((-1, *self.outputs)))
        names = self.attributes if axes is None else axes
        return z[tuple(slice(None) if name in self.features.attributes else None for name in names)]

    def label(self, axes: Sequence[str] | None = None) -> Array:
        """Return the label y over the marginal's axes. Every axis but the target's has length one."""
        names = self.attributes if axes is None else axes
        return self.labels.reshape([-1 if name == self.target else 1 for name in names])

    def mask(self) -> Array:
        """Return 1 for cells whose records satisfy ``where`` and 0 for the others, over the marginal's axes."""
        if self.restriction is None:
            return np.ones((1,) * len(self.shape))
        spread = dict(zip(self.restriction.attributes, self.restriction.shape, strict=True))
        return self.restriction.table.reshape([spread.get(name, 1) for name in self.attributes])

    def losses(self, theta: Array) -> Array:
        """Return ℓ_x(θ) for every cell, including the ridge."""
        each = self.loss.value(self.predictor(theta), self.label()) * self.mask()
        return np.broadcast_to(each, self.shape) + self.loss.ridge / 2 * float(theta @ theta)

    def directional(self, theta: Array, toward: Array, tolerance: float = 0.0) -> Array:
        """Return φ′(z; dz)·1[where] plus the derivative of the ridge, for every cell."""
        z, dz = self.predictor(theta), self.predictor(toward - theta)
        each = self.loss.directional(z, self.label(), dz, tolerance) * self.mask()
        return np.broadcast_to(each, self.shape) + self.loss.ridge * float(theta @ (toward - theta))

    def objective(self, marginal: NDArray[np.generic]) -> GlmObjective:
        """Return the objective on the marginal, with the axes that only ``where`` uses summed out."""
        if marginal.shape != self.shape:
            raise InvalidInput(
                f"The marginal must be over {self.attributes!r}, of shape {self.shape}. Found shape {marginal.shape}. "
                "Ask for the marginal on the loss's attributes."
            )
        m = np.asarray(marginal, dtype=float)
        weights = m if self.restriction is None else m * self.mask()
        dropped = tuple(i for i, name in enumerate(self.attributes) if name not in self.kept)
        return GlmObjective(self, weights.sum(axis=dropped) if dropped else weights, float(m.sum()))

    def predictor_range(self, over: ConvexSet) -> tuple[float, float]:
        """Return an interval that contains ⟨x, θ⟩ for every record and every θ in the set.

        The interval is exact when the intercept is the only feature.
        """
        over.require(self.dimension)
        if self._only_intercept and over.is_bounded:
            return float(over.minimize([1.0])[0]), float(over.minimize([-1.0])[0])
        bound = self._reach(over.radius_l2(self.dimension), over.radius_l1(self.dimension))
        return -bound, bound

    @property
    def _only_intercept(self) -> bool:
        """True if the intercept is the only feature and θ has a single output."""
        return self.features.dimension == 1 and not self.features.attributes and not self.outputs

    def _reach(self, length_l2: float, length_l1: float) -> float:
        """Bound |⟨x, v⟩| for vectors v with these ℓ2 and ℓ1 norms, by Hölder's inequality."""
        return min(length_l2 * self.features.row_norm_bound, length_l1 * self.features.row_sup_bound)

    def slope_bound(self, over: ConvexSet) -> float:
        """Return sup |φ′| over the predictors of the set and over all labels."""
        ends = (float(self.labels.min()), float(self.labels.max()))
        return self._require_finite(self.loss.lipschitz(self.predictor_range(over), ends), over)

    def _require_finite(self, constant: float, over: ConvexSet) -> float:
        """Return the constant if it is finite. Otherwise refuse the set."""
        if not math.isfinite(constant):
            raise InvalidInput(
                f"{type(self.loss).__name__} must be minimised over a bounded "
                f"set{' with a ridge' if self.loss.ridge else ''}. "
                f"Found {over!r}. Give one, such as L2Ball(5.0)."
            )
        return constant

    def lipschitz(self, over: ConvexSet) -> float:
        """Return L = sup|φ′|·max‖x‖₂, plus the ridge's part."""
        return self._add_ridge(self.slope_bound(over) * self.features.row_norm_bound, over)

    def lipschitz_sup(self, over: ConvexSet) -> float:
        """Return sup ‖∇ℓ_x(θ)‖_∞, the constant on which Frank–Wolfe over the ℓ1 ball depends."""
        return self._add_ridge(self.slope_bound(over) * self.features.row_sup_bound, over)

    def _add_ridge(self, constant: float, over: ConvexSet) -> float:
        """Add the largest gradient of the ridge to a bound on the gradient of φ."""
        if self.loss.ridge == 0:
            return constant
        return self._require_finite(constant + self.loss.ridge * over.radius_l2(self.dimension), over)

    def scale(self, over: ConvexSet) -> float:
        """Return S = sup|φ′|·sup|⟨x, θ − θ′⟩|, plus the ridge's part."""
        if not over.is_bounded:
            return self._require_finite(math.inf, over)
        diameter, radius = over.diameter_l2(self.dimension), over.radius_l2(self.dimension)
        spread = self._reach(diameter, 2 * over.radius_l1(self.dimension))
        return self.slope_bound(over) * spread + self.loss.ridge * diameter * radius

    def magnitude(self, over: ConvexSet) -> float:
        """Return a bound on the numbers from which a record's loss is computed.

        Every φ of this package is computed from terms below (|φ′| + |y| + 1)(|z| + |y| + 1).
        """
        reach = self._reach(over.radius_l2(self.dimension), over.radius_l1(self.dimension))
        label = float(np.abs(self.labels).max())
        radius = over.radius_l2(self.dimension)
        penalty = self.loss.ridge * radius * radius
        return (self.slope_bound(over) + label + 1) * (reach + label + 1) + penalty

    def strong_convexity(self, over: ConvexSet) -> float:
        """Return the ridge. If the intercept is the only feature, add the least curvature of φ."""
        if not self._only_intercept or self.restriction is not None:
            return self.loss.strong_convexity
        return self.loss.strong_convexity + self.loss.curvature_floor(self.predictor_range(over))


@dataclass(frozen=True, eq=False, repr=False)
class GlmObjective:
    """The function Σ_x m(x)·ℓ_x(θ): value, gradient and Hessian from marginal sums.

    It holds a marginal, so it has no repr.
    """

    risk: GlmRisk
    weights: Array  # over the axes of the features and the target
    mass: float  # Σ m, the weight with which the ridge enters

    def parts(self, theta: Array) -> tuple[Array, Array]:
        """Return the predictor and the label of every cell, over the axes of the weights."""
        axes = self.risk.kept
        return self.risk.predictor(theta, axes), self.risk.label(axes)

    def collect(self, each: Array) -> Array:
        """Sum an array over the kept axes that are not feature axes. Axes of outputs stay."""
        kept, wanted = self.risk.kept, self.risk.features.attributes
        summed: Array = each.sum(axis=tuple(i for i, name in enumerate(kept) if name not in wanted))
        return summed

    def _weigh(self, each: Array) -> Array:
        """Multiply an array over cells (and outputs) by the weights of the cells."""
        extra = each.ndim - self.weights.ndim
        return each * self.weights.reshape(self.weights.shape + (1,) * extra)

    def value(self, theta: Array) -> float:
        """Return Σ_x m(x)·ℓ_x(θ)."""
        z, y = self.parts(theta)
        penalty = self.risk.loss.ridge / 2 * float(theta @ theta)
        return float((self.weights * self.risk.loss.value(z, y)).sum()) + self.mass * penalty

    def gradient(self, theta: Array) -> Array:
        """Return the gradient, p numbers (p·K for K outputs).

        At a kink it is the subgradient halfway between both slopes.
        """
        z, y = self.parts(theta)
        residual = self.collect(self._weigh(self.risk.loss.derivative(z, y)))
        return self.risk.features.gradient(residual).ravel() + self.mass * self.risk.loss.ridge * theta

    def hessian(self, theta: Array) -> Array:
        """Return the p × p Hessian of a smooth loss, from φ″."""
        z, y = self.parts(theta)
        curved = self.collect(self._weigh(self.risk.loss.curvature(z, y)))
        gram = self.risk.features.gram
        if not self.risk.outputs:
            hessian = gram(curved)
        else:  # θ is p × K, flattened row by row: block (k, m) couples outputs k and m
            (K,), p = self.risk.outputs, self.risk.features.dimension
            blocks = np.array([[gram(curved[..., k, m]) for m in range(K)] for k in range(K)])
            hessian = blocks.transpose(2, 0, 3, 1).reshape(p * K, p * K)
        return hessian + self.mass * self.risk.loss.ridge * np.eye(len(hessian))


def _checked_target(loss: LinearLoss, universe: Universe) -> str:
    """Return the target of a loss, after checking that it has two values or more and is not a feature."""
    if loss.target is None:
        raise InvalidInput(
            f"{type(loss).__name__} must name its target. Found none. Write {type(loss).__name__}(target=..., "
            "features=[...])."
        )
    size = universe[loss.target].size
    if size < 2:
        raise InvalidInput(
            f"The target must have at least two values. Found {loss.target!r} with {size}. Choose another target."
        )
    used = {*loss.features, *(name for pair in loss.interactions for name in pair)}
    if loss.target in used:
        raise InvalidInput(
            f"The target must not be among the features. Found {loss.target!r} in both. Remove it from the features."
        )
    return loss.target


def _label_table(loss: LinearLoss, universe: Universe) -> Array:
    """Return the label y of every value of the target."""
    assert loss.target is not None
    attribute, name = universe[loss.target], type(loss).__name__
    if loss.labels == "binary":
        if attribute.size != 2:
            raise InvalidInput(
                f"The target of {name} must have two values. Found {loss.target!r} with {attribute.size}. "
                "Choose a two-valued target, or use MultinomialLogistic."
            )
        return np.array([0.0, 1.0])
    if loss.labels == "class":
        classes = getattr(loss, "classes", None)
        if classes not in (None, attribute.size):
            raise InvalidInput(
                f"classes must be {attribute.size}, the number of values of {loss.target!r}. Found {classes}. Leave "
                "it out."
            )
        return np.arange(attribute.size, dtype=float)
    if not attribute.is_number and (attribute.size != 2 or loss.labels == "count"):
        raise InvalidInput(
            f"The target of {name} must be a number. Found {loss.target!r}, which has labels only. "
            "Declare it as a Range, Integers or Flag, or use MultinomialLogistic."
        )
    if not attribute.is_number:
        return np.array([0.0, 1.0])
    if loss.labels == "real":
        return standardize(attribute)
    assert attribute.values is not None
    counts = np.nan_to_num(attribute.values, nan=0.0)
    if counts.min() < 0:
        raise InvalidInput(
            f"The target of {name} must have no value below 0. Found {loss.target!r} from {counts.min():g}. "
            "Choose a count, or use Squared."
        )
    return counts


def _restriction(where: Query, universe: Universe) -> Linear:
    """Bind ``where`` to the universe. Refuse a query that is not true or false for each record."""
    condition = bound_to(where, universe, "bins").condition  # a question about coded records, for which bins are exact
    if condition is None or not condition.is_exact:
        raise InvalidInput(
            f"where must be true or false for each record. Found {where!r}. Give a count, such as count(sex='F')."
        )
    found: Linear = condition.low
    return found
