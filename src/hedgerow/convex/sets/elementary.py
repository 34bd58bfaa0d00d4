"""Elementary constraint sets: balls, boxes, the simplex and polytopes.

Paper: Talwar, Thakurta & Zhang, *Private Empirical Risk Minimization Beyond the Worst Case: The Effect of the
Constraint Set Geometry*, §2.2 and §3.2. The structured norms of §3.2 are in ``structured``.

Symbols: see ``convex_set`` (C, p, ‖C‖₁, ‖C‖₂, G_C) and ``potentials`` (Ψ, Q).

Radii and diameters are exact, except the diameter of a polytope with more than 2,000 vertices, which is an upper bound.
Widths are exact for ℓ2 balls and boxes. The other widths are upper bounds: the expected maximum of N normals of
variance at most r² is at most r√(2 ln N).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from hedgerow import _scipy as scipy
from hedgerow._checks import positive
from hedgerow._types import Array
from hedgerow.convex.sets.convex_set import (
    ConvexSet,
    SparsePoint,
    VertexSet,
    expected_norm,
    project_simplex,
    shrink_to_sum,
)
from hedgerow.convex.sets.potentials import (
    Entropy,
    Euclidean,
    HyperbolicEntropy,
    Potential,
    QNorm,
    VertexEntropy,
    hyperbolic_on_l1,
)
from hedgerow.errors import InvalidInput


@dataclass(frozen=True)
class Unconstrained(ConvexSet):
    """The set of all vectors. Its radii, its width and the range of its potential are infinite.

    Example
    -------
    >>> hr.Unconstrained().contains([1e9, -1e9])
    True
    """

    @property
    def is_bounded(self) -> bool:
        """False."""
        return False

    def contains(self, theta: ArrayLike, tolerance: float = 1e-9) -> bool:
        """Return True if every coordinate is finite."""
        return bool(np.isfinite(np.asarray(theta, dtype=float)).all())

    def project(self, theta: ArrayLike) -> Array:
        """Return θ itself."""
        return self.vector(theta).copy()

    def minimize(self, gradient: ArrayLike) -> Array:
        """Refuse: a linear function has no minimum over all vectors."""
        raise InvalidInput(
            "A linear function must be minimised over a bounded set. Found no constraint. Give one, such as "
            "L2Ball(1.0)."
        )

    def radius_l1(self, p: int) -> float:
        """Return infinity."""
        return math.inf

    def radius_l2(self, p: int) -> float:
        """Return infinity."""
        return math.inf

    def diameter_l2(self, p: int) -> float:
        """Return infinity."""
        return math.inf

    def gaussian_width(self, p: int) -> float:
        """Return infinity."""
        return math.inf

    def potential(self, p: int) -> Potential:
        """Return the Euclidean potential centered at 0."""
        return Euclidean(np.zeros(self.require(p)), math.inf, expected_norm(p), self.project)


@dataclass(frozen=True)
class L2Ball(ConvexSet):
    """The Euclidean ball {‖θ‖₂ ≤ radius}.

    Parameters
    ----------
    radius : float
        The largest ℓ2 norm allowed.

    Raises
    ------
    InvalidInput
        If the radius is not positive.

    Example
    -------
    >>> hr.L2Ball(1.0).project([3.0, 4.0]).round(6).tolist()
    [0.6, 0.8]
    """

    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive("The radius", self.radius, "Give the largest norm allowed."))

    def contains(self, theta: ArrayLike, tolerance: float = 1e-9) -> bool:
        """Return True if ‖θ‖₂ ≤ radius + tolerance."""
        return bool(np.linalg.norm(np.asarray(theta, dtype=float)) <= self.radius + tolerance)

    def project(self, theta: ArrayLike) -> Array:
        """Scale θ down to the radius if it is longer."""
        v = self.vector(theta)
        norm = float(np.linalg.norm(v))
        return v.copy() if norm <= self.radius else v * (self.radius / norm)

    def minimize(self, gradient: ArrayLike) -> Array:
        """Return −radius·g/‖g‖₂, or 0 if the gradient g is 0."""
        g = self.vector(gradient)
        norm = float(np.linalg.norm(g))
        return np.zeros_like(g) if norm == 0 else g * (-self.radius / norm)

    def radius_l1(self, p: int) -> float:
        """Return radius·√p."""
        return self.radius * math.sqrt(p)

    def radius_l2(self, p: int) -> float:
        """Return the radius."""
        return self.radius

    def diameter_l2(self, p: int) -> float:
        """Return twice the radius."""
        return 2 * self.radius

    def gaussian_width(self, p: int) -> float:
        """Return radius·E‖b‖₂, exactly."""
        return self.radius * expected_norm(p)

    def potential(self, p: int) -> Potential:
        """Return the Euclidean potential, of range ½radius²."""
        return Euclidean(np.zeros(self.require(p)), self.radius**2 / 2, expected_norm(p), self.project)


@dataclass(frozen=True)
class L1Ball(VertexSet):
    """The ℓ1 ball {‖θ‖₁ ≤ radius}, the constraint of the lasso.

    Vertex i < p is radius·eᵢ, and vertex p + i is −radius·eᵢ.

    Parameters
    ----------
    radius : float
        The largest ℓ1 norm allowed.

    Raises
    ------
    InvalidInput
        If the radius is not positive.

    Example
    -------
    >>> hr.L1Ball(1.0).project([3.0, 1.0]).tolist()
    [1.0, 0.0]
    """

    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive("The radius", self.radius, "Give the largest ℓ1 norm allowed."))

    def contains(self, theta: ArrayLike, tolerance: float = 1e-9) -> bool:
        """Return True if ‖θ‖₁ ≤ radius + tolerance."""
        return bool(np.abs(np.asarray(theta, dtype=float)).sum() <= self.radius + tolerance)

    def project(self, theta: ArrayLike) -> Array:
        """Shrink the sizes of all coordinates by a common amount until they sum to the radius."""
        v = self.vector(theta)
        return np.sign(v) * shrink_to_sum(np.abs(v), self.radius)

    def minimize(self, gradient: ArrayLike) -> Array:
        """Return the vertex opposite to the gradient's largest coordinate."""
        g = self.vector(gradient)
        i = int(np.argmax(np.abs(g)))
        return self.vertex(i if g[i] <= 0 else g.size + i, g.size).dense(g.size)

    def vertex_count(self, p: int) -> int:
        """Return 2p."""
        return 2 * p

    def vertex_scores(self, gradient: ArrayLike) -> Array:
        """Return radius·g followed by −radius·g for the gradient g."""
        scaled = self.radius * self.vector(gradient)
        return np.concatenate([scaled, -scaled])

    def vertex(self, index: int, p: int) -> SparsePoint:
        """Return ±radius·eᵢ."""
        sign, i = divmod(_vertex_index(index, 2 * p), p)
        return SparsePoint(np.array([i]), np.array([-self.radius if sign else self.radius]))

    def radius_l1(self, p: int) -> float:
        """Return the radius."""
        return self.radius

    def radius_l2(self, p: int) -> float:
        """Return the radius."""
        return self.radius

    def diameter_l2(self, p: int) -> float:
        """Return twice the radius."""
        return 2 * self.radius

    def gaussian_width(self, p: int) -> float:
        """Return the upper bound radius·√(2 ln 2p)."""
        return self.radius * math.sqrt(2 * math.log(2 * p))

    def potential(self, p: int, kind: Literal["hyperbolic", "q-norm"] = "hyperbolic") -> Potential:
        """Return the hyperbolic entropy, of range about r²·ln(2p), or the paper's q-norm, of range about e·r²·ln p."""
        self.require(p)
        if kind == "q-norm":
            width = math.sqrt(2 * math.log(2 * p))
            return QNorm(p, p, self.radius, width, lambda v: (np.abs(v), lambda sizes: np.sign(v) * sizes))
        if kind != "hyperbolic":
            raise InvalidInput(f"The potential must be 'hyperbolic' or 'q-norm'. Found {kind!r}. Choose one of them.")
        return HyperbolicEntropy(p, self.radius, partial(hyperbolic_on_l1, radius=self.radius))


@dataclass(frozen=True)
class Box(ConvexSet):
    """The box {low ≤ θ ≤ high}.

    Parameters
    ----------
    low, high : float or list of float
        The ends of every coordinate: one number for all, or one number per coordinate.

    Raises
    ------
    InvalidInput
        If the ends are not finite, not in order, or not of one length.

    Example
    -------
    >>> hr.Box([0.0, -1.0], [1.0, 1.0]).project([2.0, -3.0]).tolist()
    [1.0, -1.0]
    """

    low: float | tuple[float, ...]
    high: float | tuple[float, ...]

    def __init__(self, low: float | Sequence[float], high: float | Sequence[float]) -> None:
        below, above = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
        fits = below.ndim < 2 and above.ndim < 2 and (below.ndim * above.ndim == 0 or below.size == above.size)
        if not fits or below.size == 0 or above.size == 0:
            raise InvalidInput(
                "The ends of a box must be numbers or vectors of one length. "
                f"Found shapes {below.shape} and {above.shape}. Give one low and one high end per coordinate."
            )
        if not (np.isfinite(below).all() and np.isfinite(above).all() and (below <= above).all()):
            raise InvalidInput(
                "The ends of a box must be finite with low <= high. "
                f"Found low from {below.min():g} to {below.max():g} and high from {above.min():g} to {above.max():g}. "
                "Swap or correct them."
            )
        object.__setattr__(self, "low", tuple(below.tolist()) if below.ndim else float(below))
        object.__setattr__(self, "high", tuple(above.tolist()) if above.ndim else float(above))

    @property
    def dimension(self) -> int | None:
        """The number of ends that were given, or None if one pair of ends serves every coordinate."""
        return next((len(end) for end in (self.low, self.high) if isinstance(end, tuple)), None)

    def ends(self, p: int) -> tuple[Array, Array]:
        """Return the least and the largest value of each of p coordinates.

        Parameters
        ----------
        p : int
            The number of coordinates of θ.

        Returns
        -------
        tuple of two arrays

        Raises
        ------
        InvalidInput
            If the dimension does not fit the box.

        Example
        -------
        >>> [end.tolist() for end in hr.Box(0.0, 1.0).ends(2)]
        [[0.0, 0.0], [1.0, 1.0]]
        """
        self.require(p)
        return np.broadcast_to(np.asarray(self.low, float), p), np.broadcast_to(np.asarray(self.high, float), p)

    def contains(self, theta: ArrayLike, tolerance: float = 1e-9) -> bool:
        """Return True if every coordinate is between its ends, up to tolerance."""
        v = np.asarray(theta, dtype=float)
        low, high = self.ends(v.size)
        return bool(((v >= low - tolerance) & (v <= high + tolerance)).all())

    def project(self, theta: ArrayLike) -> Array:
        """Clip every coordinate to its ends."""
        v = self.vector(theta)
        return np.clip(v, *self.ends(v.size))

    def minimize(self, gradient: ArrayLike) -> Array:
        """Return the low end where the gradient is positive and the high end elsewhere."""
        g = self.vector(gradient)
        low, high = self.ends(g.size)
        return np.where(g > 0, low, high)

    def _farthest(self, p: int) -> Array:
        """Return the largest size of each coordinate."""
        low, high = self.ends(p)
        return np.maximum(np.abs(low), np.abs(high))

    def radius_l1(self, p: int) -> float:
        """Return the sum of the coordinates' largest sizes."""
        return float(self._farthest(p).sum())

    def radius_l2(self, p: int) -> float:
        """Return the ℓ2 norm of the coordinates' largest sizes."""
        return float(np.linalg.norm(self._farthest(p)))

    def diameter_l2(self, p: int) -> float:
        """Return ‖high − low‖₂."""
        low, high = self.ends(p)
        return float(np.linalg.norm(high - low))

    def gaussian_width(self, p: int) -> float:
        """Return √(2/π)·½Σ(high − low), exactly."""
        low, high = self.ends(p)
        return math.sqrt(2 / math.pi) * float((high - low).sum()) / 2  # E|b| = √(2/π)

    def potential(self, p: int) -> Potential:
        """Return the Euclidean potential around the center of the box, of range diameter²/8."""
        low, high = self.ends(p)
        return Euclidean((low + high) / 2, self.diameter_l2(p) ** 2 / 8, expected_norm(p), self.project)


@dataclass(frozen=True)
class Simplex(VertexSet):
    """The simplex {θ ≥ 0, Σθ = scale}, for mixtures. Vertex i is scale·eᵢ.

    Parameters
    ----------
    scale : float
        The sum of the coordinates. 1 by default.

    Raises
    ------
    InvalidInput
        If the scale is not positive.

    Example
    -------
    >>> hr.Simplex().project([0.5, 0.7]).round(6).tolist()
    [0.4, 0.6]
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive("The scale", self.scale, "Give the sum of the coordinates."))

    def contains(self, theta: ArrayLike, tolerance: float = 1e-9) -> bool:
        """Return True if every coordinate is at least −tolerance and their sum is the scale, up to tolerance."""
        v = np.asarray(theta, dtype=float)
        return bool((v >= -tolerance).all() and abs(v.sum() - self.scale) <= tolerance)

    def project(self, theta: ArrayLike) -> Array:
        """Subtract a common amount from all coordinates and keep the positive parts, so that they sum to the scale."""
        return project_simplex(self.vector(theta), self.scale)

    def minimize(self, gradient: ArrayLike) -> Array:
        """Return the vertex of the gradient's least coordinate."""
        g = self.vector(gradient)
        return self.vertex(int(np.argmin(g)), g.size).dense(g.size)

    def vertex_count(self, p: int) -> int:
        """Return p."""
        return p

    def vertex_scores(self, gradient: ArrayLike) -> Array:
        """Return scale·gradient."""
        return self.scale * self.vector(gradient)

    def vertex(self, index: int, p: int) -> SparsePoint:
        """Return scale·eᵢ."""
        return SparsePoint(np.array([_vertex_index(index, p)]), np.array([self.scale]))

    def radius_l1(self, p: int) -> float:
        """Return the scale."""
        return self.scale

    def radius_l2(self, p: int) -> float:
        """Return the scale."""
        return self.scale

    def diameter_l2(self, p: int) -> float:
        """Return √2·scale, the distance of two vertices."""
        return math.sqrt(2) * self.scale if p > 1 else 0.0

    def gaussian_width(self, p: int) -> float:
        """Return the upper bound scale·√(2 ln p)."""
        return self.scale * math.sqrt(2 * math.log(p))

    def potential(self, p: int) -> Potential:
        """Return the entropy, of range scale²·ln p."""
        return Entropy(self.require(p), self.scale)


@dataclass(frozen=True)
class Polytope(VertexSet):
    """The convex hull of a list of vertices.

    Parameters
    ----------
    vertices : array
        One vertex per row, all numbers finite.

    Raises
    ------
    InvalidInput
        If the vertices are not a table of finite numbers.

    Example
    -------
    >>> triangle = hr.Polytope([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> triangle.minimize([-2.0, -1.0]).tolist()
    [1.0, 0.0]
    """

    vertices: Array = field(compare=False, repr=False)
    _key: tuple[tuple[int, ...], bytes] = field(init=False, repr=False)

    def __init__(self, vertices: ArrayLike) -> None:
        listed = np.array(vertices, dtype=float)
        if listed.ndim != 2 or 0 in listed.shape or not np.isfinite(listed).all():
            raise InvalidInput(
                "The vertices of a polytope must be a table of finite numbers with at least one row, a vertex each. "
                f"Found shape {listed.shape}{'' if np.isfinite(listed).all() else ' with NaN or infinity'}. "
                "Give one row per vertex."
            )
        listed.setflags(write=False)
        object.__setattr__(self, "vertices", listed)
        object.__setattr__(self, "_key", (listed.shape, listed.tobytes()))

    @property
    def dimension(self) -> int:
        """The length of a vertex."""
        return int(self.vertices.shape[1])

    def contains(self, theta: ArrayLike, tolerance: float = 1e-9) -> bool:
        """Return True if the projection of θ is within tolerance of θ."""
        v = np.asarray(theta, dtype=float)
        return bool(np.isfinite(v).all() and np.linalg.norm(self.project(v) - v) <= tolerance)

    def project(self, theta: ArrayLike) -> Array:
        """Return the nearest point of the hull, from the point of least norm in conv(V − θ).

        Nonnegative least squares finds that point: it solves min ‖U z‖² + (Σz − 1)² over z ≥ 0, with the rows of V − θ
        in U. At z = tα with Σα = 1 and the best t, the value grows with ‖Uα‖ alone. So z/Σz is exactly the mixture of
        vertices that is nearest to θ.
        """
        v = self.vector(theta)
        U = self.vertices - v
        size = float(np.abs(U).max())
        if size == 0:
            return v.copy()
        z = scipy.optimize.nnls(np.vstack([U.T / size, np.ones(len(U))]), np.append(np.zeros(v.size), 1.0))[0]
        mixed: Array = z @ self.vertices / z.sum()
        return mixed

    def minimize(self, gradient: ArrayLike) -> Array:
        """Return the vertex v with the least ⟨gradient, v⟩."""
        return np.array(self.vertices[int(np.argmin(self.vertex_scores(gradient)))])

    def vertex_count(self, p: int) -> int:
        """Return the number of vertices."""
        self.require(p)
        return len(self.vertices)

    def vertex_scores(self, gradient: ArrayLike) -> Array:
        """Return ⟨gradient, v⟩ for every vertex v."""
        return self.vertices @ self.vector(gradient)

    def vertex(self, index: int, p: int) -> SparsePoint:
        """Return the vertex with this number."""
        row = self.vertices[_vertex_index(index, self.vertex_count(p))]
        indices = np.flatnonzero(row)
        return SparsePoint(indices, row[indices])

    def radius_l1(self, p: int) -> float:
        """Return the largest ℓ1 norm of a vertex."""
        self.require(p)
        return float(np.abs(self.vertices).sum(axis=1).max())

    def radius_l2(self, p: int) -> float:
        """Return the largest ℓ2 norm of a vertex."""
        self.require(p)
        return float(np.linalg.norm(self.vertices, axis=1).max())

    def diameter_l2(self, p: int) -> float:
        """Return the largest distance of two vertices; for more than 2,000 vertices, an upper bound."""
        self.require(p)
        V = self.vertices - self.vertices.mean(axis=0)
        if len(V) > 2000:  # comparing all pairs would take too long
            return 2 * float(np.linalg.norm(V, axis=1).max())
        return max(float(np.linalg.norm(V - v, axis=1).max()) for v in V)

    def gaussian_width(self, p: int) -> float:
        """Return the upper bound r·min(√(2 ln N), √p) for N vertices at distance at most r from their mean."""
        self.require(p)
        V = self.vertices - self.vertices.mean(axis=0)  # a shift does not change the width
        return float(np.linalg.norm(V, axis=1).max()) * min(math.sqrt(2 * math.log(len(V))), math.sqrt(p))

    def potential(self, p: int) -> Potential:
        """Return the entropy of mixtures of the vertices."""
        self.require(p)
        return VertexEntropy(self.vertices)


def _vertex_index(index: Any, count: int) -> int:
    """Return the number of a vertex as an int. Refuse a number out of range."""
    if not 0 <= index < count:
        raise InvalidInput(f"A vertex must be numbered 0 to {count - 1}. Found {index!r}. Give a number in that range.")
    return int(index)
