"""What every constraint set can do, and the few numerical pieces the sets share.

Symbols: C a closed convex set of vectors θ ∈ R^p, ‖C‖₁ and ‖C‖₂ its radii (the largest norm of a point of C), G_C its
Gaussian width E sup_{θ∈C} ⟨b, θ⟩ for b ~ N(0, I).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow._types import Array
from hedgerow.convex.sets.potentials import Potential
from hedgerow.errors import InvalidInput

ROUNDED = 16 * 2.0**-53  # of a sum, which is then as near as it gets
CORRECTIONS = 4


class ConvexSet(ABC):
    """Where θ may lie. A frozen value; most sets fit any dimension p, some (``dimension``) only one."""

    @property
    def dimension(self) -> int | None:
        """The one dimension the set lives in, or None where it fits any."""
        return None

    @property
    def is_bounded(self) -> bool:
        return True

    @abstractmethod
    def contains(self, theta: ArrayLike, tolerance: float = 1e-9) -> bool:
        """Whether θ is in the set, up to ``tolerance`` in the set's own gauge."""

    @abstractmethod
    def project(self, theta: ArrayLike) -> Array:
        """The nearest point of the set in Euclidean distance."""

    @abstractmethod
    def minimise(self, gradient: ArrayLike) -> Array:
        """A point of the set that minimises ⟨gradient, θ⟩."""

    @abstractmethod
    def radius_l1(self, p: int) -> float:
        """max ‖θ‖₁ over the set."""

    @abstractmethod
    def radius_l2(self, p: int) -> float:
        """max ‖θ‖₂ over the set."""

    @abstractmethod
    def diameter_l2(self, p: int) -> float:
        """max ‖θ − θ′‖₂ over the set."""

    @abstractmethod
    def gaussian_width(self, p: int) -> float:
        """G_C = E sup ⟨b, θ⟩ for standard normal b: exact or an upper bound."""

    @abstractmethod
    def potential(self, p: int) -> Potential:
        """The mirror potential Ψ suited to the set in dimension p."""

    def require(self, p: int) -> int:
        """Refuse a dimension the set does not live in."""
        if isinstance(p, bool) or int(p) != p or p < 1:
            raise InvalidInput(f"The dimension must be a whole number of at least 1. Found {p!r}. Correct it.")
        if self.dimension is not None and p != self.dimension:
            raise InvalidInput(
                f"The dimension must be {self.dimension}, that of the constraint set. Found {p}. "
                "Give a set that fits the parameters."
            )
        return int(p)

    def vector(self, theta: ArrayLike) -> Array:
        """θ as a finite float vector that fits the set, or a refusal."""
        v = np.asarray(theta, dtype=float)
        if v.ndim != 1:
            raise InvalidInput(f"Parameters must be a vector. Found {v.ndim} axes. Flatten them to one axis.")
        self.require(v.size)
        if not np.isfinite(v).all():
            raise InvalidInput("Parameters must be finite. Found NaN or infinity. Check the loss and its gradient.")
        return v


class SparsePoint(NamedTuple):
    """A vector given by its coordinates that may differ from zero."""

    indices: NDArray[np.int64]
    values: Array

    def dense(self, p: int) -> Array:
        v = np.zeros(p)
        v[self.indices] = self.values
        return v


class VertexSet(ConvexSet):
    """The convex hull of finitely many vertices, numbered, none of which need be spelled out."""

    @abstractmethod
    def vertex_count(self, p: int) -> int: ...

    @abstractmethod
    def vertex_scores(self, gradient: ArrayLike) -> Array:
        """⟨gradient, v⟩ for every vertex v, in the order of their numbers."""

    @abstractmethod
    def vertex(self, index: int, p: int) -> SparsePoint: ...


def project_simplex(v: Array, scale: float) -> Array:
    """The nearest point of {x ≥ 0, Σx = scale}: subtract the τ that makes the positive parts sum to scale.

    A running sum rounds by as much as its length, in every coordinate alike. The sum of the positive parts does not, and tells by how much.
    """
    v = v - v.max()  # which changes nothing but rounding: beside a large v the scale would be lost
    ordered = -np.sort(-v)
    excess = np.cumsum(ordered) - scale
    active = np.flatnonzero(ordered * np.arange(1, v.size + 1) > excess)  # a prefix; never empty, for scale > 0
    count = int(active[-1]) + 1 if active.size else v.size
    τ = float(excess[count - 1]) / count
    inside: Array = np.maximum(v - τ, 0.0)
    for _ in range(CORRECTIONS):
        left = float(inside.sum()) - scale
        if abs(left) <= ROUNDED * scale:
            break
        τ += left / np.count_nonzero(inside)
        inside = np.maximum(v - τ, 0.0)
    return inside


def shrink_to_sum(sizes: Array, radius: float) -> Array:
    """The nearest point of {x ≥ 0, Σx ≤ radius} to nonnegative sizes."""
    return sizes if sizes.sum() <= radius else project_simplex(sizes, radius)


def expected_norm(p: int) -> float:
    """E‖b‖₂ for b ~ N(0, I_p), exactly: √2·Γ((p+1)/2)/Γ(p/2)."""
    return math.sqrt(2) * math.exp(math.lgamma((p + 1) / 2) - math.lgamma(p / 2))
