"""The interface of every constraint set, and numerical pieces that the sets share.

Symbols: C a closed convex set of vectors θ ∈ R^p, ‖C‖₁ and ‖C‖₂ its radii (the largest norm of a point of C), G_C its
Gaussian width E sup_{θ∈C} ⟨b, θ⟩ for b ~ N(0, I).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow._renamed import renamed_methods
from hedgerow._types import Array
from hedgerow.convex.sets.potentials import Potential
from hedgerow.errors import InvalidInput

ROUNDED = 16 * 2.0**-53  # relative error of a sum that rounding explains, so that no correction can improve it
CORRECTIONS = 4  # at most this many corrections of a projection onto the simplex


@renamed_methods(minimise="minimize")
class ConvexSet(ABC):
    """A set of allowed parameters θ. Sets are frozen values. Most fit any dimension p, some only their own."""

    @property
    def dimension(self) -> int | None:
        """The only dimension that fits the set, or None if any does."""
        return None

    @property
    def is_bounded(self) -> bool:
        """True if the radii are finite."""
        return True

    @abstractmethod
    def contains(self, theta: ArrayLike, tolerance: float = 1e-9) -> bool:
        """Return True if θ is in the set, up to ``tolerance`` in the set's own gauge.

        Parameters
        ----------
        theta : array
            The parameters θ, a vector.
        tolerance : float
            How far outside the set θ may lie, in the set's own gauge.

        Returns
        -------
        bool

        Example
        -------
        >>> hr.L2Ball(1.0).contains([0.6, 0.8]), hr.L2Ball(1.0).contains([1.0, 1.0])
        (True, False)
        """

    @abstractmethod
    def project(self, theta: ArrayLike) -> Array:
        """Return the point of the set that is nearest in Euclidean distance.

        Parameters
        ----------
        theta : array
            A vector of finite numbers.

        Returns
        -------
        array

        Raises
        ------
        InvalidInput
            If θ is not a finite vector that fits the set.

        Example
        -------
        >>> hr.Box(0.0, 1.0).project([-2.0, 0.5, 3.0]).tolist()
        [0.0, 0.5, 1.0]
        """

    @abstractmethod
    def minimize(self, gradient: ArrayLike) -> Array:
        """Return a point of the set that minimizes ⟨gradient, θ⟩.

        Parameters
        ----------
        gradient : array
            A vector of finite numbers.

        Returns
        -------
        array

        Raises
        ------
        InvalidInput
            If the gradient is not a finite vector that fits the set, or the set is not bounded.

        Example
        -------
        >>> hr.L1Ball(2.0).minimize([0.1, -0.7, 0.2]).tolist()
        [0.0, 2.0, 0.0]
        """

    @abstractmethod
    def radius_l1(self, p: int) -> float:
        """Return ‖C‖₁ = max ‖θ‖₁ over the set.

        Parameters
        ----------
        p : int
            The number of coordinates of θ.

        Returns
        -------
        float

        Example
        -------
        >>> hr.Box(-1.0, 2.0).radius_l1(3)
        6.0
        """

    @abstractmethod
    def radius_l2(self, p: int) -> float:
        """Return ‖C‖₂ = max ‖θ‖₂ over the set.

        Parameters
        ----------
        p : int
            The number of coordinates of θ.

        Returns
        -------
        float

        Example
        -------
        >>> hr.L1Ball(3.0).radius_l2(10)
        3.0
        """

    @abstractmethod
    def diameter_l2(self, p: int) -> float:
        """Return max ‖θ − θ′‖₂ over the set.

        Parameters
        ----------
        p : int
            The number of coordinates of θ.

        Returns
        -------
        float

        Example
        -------
        >>> hr.L2Ball(3.0).diameter_l2(10)
        6.0
        """

    @abstractmethod
    def gaussian_width(self, p: int) -> float:
        """Return G_C = E sup ⟨b, θ⟩ for standard normal b, exactly or as an upper bound.

        Parameters
        ----------
        p : int
            The number of coordinates of θ.

        Returns
        -------
        float

        Example
        -------
        >>> round(hr.L1Ball(1.0).gaussian_width(100), 2), round(hr.L2Ball(1.0).gaussian_width(100), 2)
        (3.26, 9.98)
        """

    @abstractmethod
    def potential(self, p: int) -> Potential:
        """Return the mirror potential Ψ that suits the set in dimension p.

        Parameters
        ----------
        p : int
            The number of coordinates of θ.

        Returns
        -------
        Potential

        Raises
        ------
        InvalidInput
            If the dimension does not fit the set.

        Example
        -------
        >>> hr.L2Ball(3.0).potential(10).range
        4.5
        """

    def require(self, p: int) -> int:
        """Return the dimension p as an int. Refuse a dimension that does not fit the set.

        Parameters
        ----------
        p : int
            The number of coordinates of θ.

        Returns
        -------
        int

        Raises
        ------
        InvalidInput
            If p is not a whole number of at least 1, or is not the dimension of the set.

        Example
        -------
        >>> hr.Box([0.0, 0.0], [1.0, 2.0]).require(2)
        2
        """
        if isinstance(p, bool) or int(p) != p or p < 1:
            raise InvalidInput(f"The dimension must be a whole number of at least 1. Found {p!r}. Correct it.")
        if self.dimension is not None and p != self.dimension:
            raise InvalidInput(
                f"The dimension must be {self.dimension}, that of the constraint set. Found {p}. "
                "Give a set that fits the parameters."
            )
        return int(p)

    def vector(self, theta: ArrayLike) -> Array:
        """Return θ as a float vector. Refuse a θ that is not finite or does not fit the set.

        Parameters
        ----------
        theta : array
            The parameters.

        Returns
        -------
        array

        Raises
        ------
        InvalidInput
            If θ is not one axis of finite numbers, or its length does not fit the set.

        Example
        -------
        >>> hr.L2Ball(1.0).vector([1, 2]).tolist()
        [1.0, 2.0]
        """
        v = np.asarray(theta, dtype=float)
        if v.ndim != 1:
            raise InvalidInput(f"Parameters must be a vector. Found {v.ndim} axes. Flatten them to one axis.")
        self.require(v.size)
        if not np.isfinite(v).all():
            raise InvalidInput("Parameters must be finite. Found NaN or infinity. Check the loss and its gradient.")
        return v


class SparsePoint(NamedTuple):
    """A vector given by the coordinates that may differ from zero."""

    indices: NDArray[np.int64]
    values: Array

    def dense(self, p: int) -> Array:
        """Return the vector with all p coordinates."""
        v = np.zeros(p)
        v[self.indices] = self.values
        return v


class VertexSet(ConvexSet):
    """The convex hull of finitely many numbered vertices. The list of vertices is never built."""

    @abstractmethod
    def vertex_count(self, p: int) -> int:
        """Return the number of vertices in dimension p.

        Parameters
        ----------
        p : int
            The number of coordinates of θ.

        Returns
        -------
        int

        Example
        -------
        >>> hr.L1Ball(1.0).vertex_count(5)
        10
        """
        ...

    @abstractmethod
    def vertex_scores(self, gradient: ArrayLike) -> Array:
        """Return ⟨gradient, v⟩ for every vertex v, in the order of their numbers.

        Parameters
        ----------
        gradient : array
            A vector of finite numbers.

        Returns
        -------
        array
            One number for each vertex.

        Raises
        ------
        InvalidInput
            If the gradient is not a finite vector that fits the set.

        Example
        -------
        >>> hr.L1Ball(1.0).vertex_scores([0.5, -2.0]).tolist()
        [0.5, -2.0, -0.5, 2.0]
        """

    @abstractmethod
    def vertex(self, index: int, p: int) -> SparsePoint:
        """Return the vertex with this number.

        Parameters
        ----------
        index : int
            The number of the vertex, from 0.
        p : int
            The number of coordinates of θ.

        Returns
        -------
        SparsePoint

        Raises
        ------
        InvalidInput
            If no vertex has this number.

        Example
        -------
        >>> hr.L1Ball(3.0).vertex(1, 4).dense(4).tolist()
        [0.0, 3.0, 0.0, 0.0]
        """
        ...


def project_simplex(v: Array, scale: float) -> Array:
    """Return the nearest point of {x ≥ 0, Σx = scale}: subtract the τ that makes the positive parts sum to scale.

    The running sum that gives τ has a rounding error that grows with its length and is the same in every coordinate.
    The sum of the positive parts reveals the size of this error, and the corrections remove it.
    """
    v = v - v.max()  # the projection stays the same, and rounding cannot lose a small scale beside a large v
    ordered = -np.sort(-v)
    excess = np.cumsum(ordered) - scale
    active = np.flatnonzero(ordered * np.arange(1, v.size + 1) > excess)  # a prefix, not empty because scale > 0
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
    """Return the point of {x ≥ 0, Σx ≤ radius} that is nearest to the nonnegative sizes."""
    return sizes if sizes.sum() <= radius else project_simplex(sizes, radius)


def expected_norm(p: int) -> float:
    """Return E‖b‖₂ for b ~ N(0, I_p), exactly: √2·Γ((p+1)/2)/Γ(p/2)."""
    return math.sqrt(2) * math.exp(math.lgamma((p + 1) / 2) - math.lgamma(p / 2))
