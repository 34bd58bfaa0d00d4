"""Balls of structured norms: groups of coordinates, ℓ1/ℓ2 interpolation, and the nuclear norm of a matrix.

Paper: Talwar, Thakurta & Zhang, *Private Empirical Risk Minimization Beyond the Worst Case: The Effect of the
Constraint Set Geometry*, §3.2.

Symbols: R the radius, J groups of at most k coordinates, α the ℓ2 share of the interpolation norm N(θ) = (1−α)‖θ‖₁ +
α‖θ‖₂, N* its dual norm, m × n the shape of a matrix.

Differs: for the interpolation ball the paper cites the existence of a potential. This module uses the Euclidean
potential or the hyperbolic entropy of the enclosing ℓ1 ball. It takes the one with the smaller range·(G_Q² + ‖Q‖₂²),
the quantity on which the risk bound depends. The width is the least of three bounds; the paper has one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import _scipy as scipy
from hedgerow._checks import number, positive
from hedgerow._types import Array
from hedgerow.convex.sets.convex_set import ConvexSet, expected_norm, shrink_to_sum
from hedgerow.convex.sets.potentials import (
    LARGEST_EXPONENT,
    Euclidean,
    HyperbolicEntropy,
    Potential,
    QNorm,
    hyperbolic_on_l1,
)
from hedgerow.errors import InvalidInput

SWEEPS = 60  # at most this many sweeps of Jacobi rotations; a few are usually enough
FAR = 1e8  # above this size of a dual, the entropy (a few units) is negligible, and soon below the dual's rounding


@dataclass(frozen=True)
class GroupL1Ball(ConvexSet):
    """The group ball {Σ over groups of ‖θ_group‖₂ ≤ radius}, which favors parameters that vanish in whole groups.

    Parameters
    ----------
    radius : float
        The largest sum of group norms allowed.
    groups : int or list of int
        The size of consecutive blocks, or the number of the group of every coordinate.

    Raises
    ------
    InvalidInput
        If the radius is not positive, or the groups are neither a size nor whole numbers.

    Example
    -------
    >>> hr.GroupL1Ball(1.0, groups=2).minimize([0.0, 1.0, -3.0, -4.0]).round(6).tolist()
    [0.0, 0.0, 0.6, 0.8]
    """

    radius: float
    groups: int | tuple[int, ...]

    def __init__(self, radius: float, groups: int | Sequence[int]) -> None:
        object.__setattr__(self, "radius", positive("The radius", radius, "Give the largest group norm allowed."))
        listed = np.asarray(groups)
        if listed.dtype.kind not in "iu" or listed.ndim > 1 or listed.size == 0 or (listed.ndim == 0 and listed < 1):
            raise InvalidInput(
                "groups must be a block size of at least 1, or a whole number per coordinate. "
                f"Found {groups!r}. Give the size, or the group of each coordinate."
            )
        if listed.ndim:  # number the groups 0 … J−1
            listed = np.unique(listed, return_inverse=True)[1]
        object.__setattr__(self, "groups", tuple(listed.tolist()) if listed.ndim else int(listed))

    @property
    def dimension(self) -> int | None:
        """The number of coordinates if each was given a group, else None."""
        return len(self.groups) if isinstance(self.groups, tuple) else None

    def _labels(self, p: int) -> NDArray[np.int64]:
        """Return the group of each of p coordinates."""
        self.require(p)
        return np.array(self.groups) if isinstance(self.groups, tuple) else np.arange(p) // self.groups

    def _sizes(self, v: Array) -> Array:
        """Return the ℓ2 norm of every group."""
        return np.sqrt(np.bincount(self._labels(v.size), v * v))

    def _decompose(self, v: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return the group norms, and a function that gives new norms to the directions of v."""
        labels, sizes = self._labels(v.size), self._sizes(v)
        directions = v / np.where(sizes > 0, sizes, 1.0)[labels]
        return sizes, lambda new: directions * new[labels]

    def contains(self, theta: ArrayLike, tolerance: float = 1e-9) -> bool:
        """Return True if the group norms sum to at most radius + tolerance."""
        return bool(self._sizes(np.asarray(theta, dtype=float)).sum() <= self.radius + tolerance)

    def project(self, theta: ArrayLike) -> Array:
        """Shrink all group norms by a common amount until they sum to the radius."""
        sizes, recompose = self._decompose(self.vector(theta))
        return recompose(shrink_to_sum(sizes, self.radius))

    def minimize(self, gradient: ArrayLike) -> Array:
        """Put the whole radius on the group with the longest gradient, against its direction."""
        sizes, recompose = self._decompose(self.vector(gradient))
        return recompose(np.where(np.arange(sizes.size) == np.argmax(sizes), -self.radius, 0.0))

    def radius_l1(self, p: int) -> float:
        """Return R√k for the largest group, of k coordinates."""
        return self.radius * math.sqrt(np.bincount(self._labels(p)).max())

    def radius_l2(self, p: int) -> float:
        """Return the radius."""
        return self.radius

    def diameter_l2(self, p: int) -> float:
        """Return twice the radius."""
        return 2 * self.radius

    def gaussian_width(self, p: int) -> float:
        """Return an upper bound. E max‖b_group‖₂ ≤ max E‖b_group‖₂ + √(2 ln J), because norms are 1-Lipschitz."""
        counts = np.bincount(self._labels(p))
        return self.radius * (expected_norm(int(counts.max())) + math.sqrt(2 * math.log(counts.size)))

    def potential(self, p: int) -> Potential:
        """Return the squared q-norm of the group norms."""
        groups = np.bincount(self._labels(p)).size
        return QNorm(p, groups, self.radius, self.gaussian_width(p) / self.radius, self._decompose)


@dataclass(frozen=True)
class InterpolationBall(ConvexSet):
    """The ball {(1−alpha)‖θ‖₁ + alpha‖θ‖₂ ≤ radius}: the ℓ1 ball at alpha = 0, the ℓ2 ball at alpha = 1.

    Parameters
    ----------
    radius : float
        The largest norm allowed.
    alpha : float
        The share of the ℓ2 norm, in [0, 1].

    Raises
    ------
    InvalidInput
        If the radius is not positive, or alpha is not in [0, 1].

    Example
    -------
    >>> hr.InterpolationBall(1.0, alpha=0.5).contains([0.5, 0.5])
    True
    """

    radius: float
    alpha: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive("The radius", self.radius, "Give the largest norm allowed."))
        alpha = number(self.alpha)
        if not 0 <= alpha <= 1:
            raise InvalidInput(
                f"alpha must lie in [0, 1]. Found {self.alpha!r}. Give the share of the ℓ2 norm in the interpolation."
            )
        object.__setattr__(self, "alpha", alpha)

    def norm(self, v: Array) -> float:
        """Return N(v).

        Parameters
        ----------
        v : array
            A vector.

        Returns
        -------
        float

        Example
        -------
        >>> hr.InterpolationBall(1.0, alpha=0.5).norm(np.array([3.0, 4.0]))
        6.0
        """
        return (1 - self.alpha) * float(np.abs(v).sum()) + self.alpha * float(np.linalg.norm(v))

    def dual_norm(self, g: Array) -> float:
        """Return N*(g), the τ for which the part of |g| above τ(1−α) has ℓ2 norm τα.

        Parameters
        ----------
        g : array
            A vector.

        Returns
        -------
        float

        Example
        -------
        >>> round(hr.InterpolationBall(1.0, alpha=1.0).dual_norm(np.array([3.0, 4.0])), 6)
        5.0
        """
        size = np.abs(g)
        top = float(size.max())
        if self.alpha == 0 or top == 0:
            return top
        if self.alpha == 1:
            return float(np.linalg.norm(g))

        def left(tau: float) -> float:
            return float(np.linalg.norm(np.maximum(size - tau * (1 - self.alpha), 0.0))) - tau * self.alpha

        return float(scipy.optimize.brentq(left, 0.0, top / (1 - self.alpha), xtol=1e-300, rtol=1e-15))

    def contains(self, theta: ArrayLike, tolerance: float = 1e-9) -> bool:
        """Return True if N(θ) ≤ radius + tolerance."""
        return bool(self.norm(np.asarray(theta, dtype=float)) <= self.radius + tolerance)

    def project(self, theta: ArrayLike) -> Array:
        """Shrink every coordinate by λ(1−α), then the whole vector by λα.

        λ ≥ 0 is the least multiplier that reaches the ball.
        """
        v = self.vector(theta)
        if self.norm(v) <= self.radius:
            return v.copy()

        def at(multiplier: float) -> Array:
            soft = np.maximum(np.abs(v) - multiplier * (1 - self.alpha), 0.0)
            length = float(np.linalg.norm(soft))
            return soft * max(1 - multiplier * self.alpha / length, 0.0) if length > 0 else soft

        ends = [float(np.linalg.norm(v)) / self.alpha if self.alpha else math.inf]
        ends += [float(np.abs(v).max()) / (1 - self.alpha) if self.alpha < 1 else math.inf]
        low, high = 0.0, min(ends)  # bisection cannot fail by rounding; θ may be private, so nothing may raise
        while low < (middle := (low + high) / 2) < high:
            low, high = (middle, high) if self.norm(at(middle)) > self.radius else (low, middle)
        return np.sign(v) * self._inside(at(high))

    def _inside(self, x: Array) -> Array:
        """Scale x back into the ball if rounding left it outside."""
        return x * min(1.0, self.radius / self.norm(x)) if x.any() else x

    def minimize(self, gradient: ArrayLike) -> Array:
        """Return the point of norm R that minimizes ⟨gradient, θ⟩: proportional to the part of |g| above N*(g)(1−α)."""
        g = self.vector(gradient)
        if not g.any():
            return np.zeros_like(g)
        size = np.abs(g)
        left = np.maximum(size - self.dual_norm(g) * (1 - self.alpha), 0.0)
        if self.alpha == 0 or not left.any():
            left = (np.arange(g.size) == np.argmax(size)).astype(float)
        return -np.sign(g) * left * (self.radius / self.norm(left))

    def radius_l1(self, p: int) -> float:
        """Return R√p/((1−α)√p + α), reached where all coordinates are equal."""
        root = math.sqrt(p)  # for a given ‖θ‖₁, N(θ) is least if all coordinates are equal
        return self.radius * root / ((1 - self.alpha) * root + self.alpha)

    def radius_l2(self, p: int) -> float:
        """Return the radius: N ≥ ‖·‖₂, with equality at eᵢ."""
        return self.radius  # N ≥ ‖·‖₂, with equality at eᵢ

    def diameter_l2(self, p: int) -> float:
        """Return twice the radius."""
        return 2 * self.radius

    def gaussian_width(self, p: int) -> float:
        """Return the least of three upper bounds: for R·B₂, for the enclosing ℓ1 ball, and for (1−α)R·B₁ + αR·B₂."""
        l1, l2 = math.sqrt(2 * math.log(2 * p)), expected_norm(p)
        mixed = self.radius * ((1 - self.alpha) * l1 + self.alpha * l2)
        return min(self.radius * l2, self.radius_l1(p) * l1, mixed)

    def potential(self, p: int) -> Potential:
        """Return the Euclidean potential or the hyperbolic entropy, whichever gives the smaller risk bound."""
        round_one = Euclidean(np.zeros(self.require(p)), self.radius**2 / 2, expected_norm(p), self.project)
        sparse_one = HyperbolicEntropy(p, self.radius_l1(p), self._hyperbolic)
        return min(round_one, sparse_one, key=lambda q: q.range * (q.norm_width**2 + q.norm_radius_l2**2))

    def _hyperbolic(self, v: Array, beta: float) -> Array:
        """Return the sizes x of the minimizer of the hyperbolic entropy for a dual of sizes κv.

        x ≥ 0 solves asinh(x/β) + λ(1−α) + λα·x/‖x‖₂ = v where x > 0, for the least λ ≥ 0 with N(x) ≤ R.
        """
        if self.alpha == 0:
            return hyperbolic_on_l1(v, beta, self.radius)
        if (top := float(v.max())) > FAR:
            return -self.minimize(v / top)
        free = beta * np.sinh(np.minimum(v, LARGEST_EXPONENT / 2))
        if self.norm(free) <= self.radius:
            return free

        def at(multiplier: float) -> Array:
            """Return the sizes x for a multiplier λ: the length of x solves an equation in one variable."""
            u = np.maximum(v - multiplier * (1 - self.alpha), 0.0)
            if not u.any():
                return u
            drag = multiplier * self.alpha
            longest = min(float(np.linalg.norm(_hyperbolic_root(u, 0.0, beta))), 2 * self.radius)
            shortest = 1e-12 * self.radius
            gap: Callable[[float], float] = lambda n: float(np.linalg.norm(_hyperbolic_root(u, drag / n, beta))) - n  # noqa: E731
            if gap(shortest) <= 0:
                return np.zeros_like(u)
            if gap(longest) >= 0:  # still longer than 2R, hence outside the ball
                return _hyperbolic_root(u, drag / longest, beta)
            return _hyperbolic_root(u, drag / float(scipy.optimize.brentq(gap, shortest, longest, rtol=1e-14)), beta)

        found = scipy.optimize.brentq(
            lambda m: self.norm(at(m)) - self.radius, 0.0, self.dual_norm(v), xtol=1e-300, rtol=1e-14
        )
        return self._inside(at(float(found)))


def _hyperbolic_root(u: Array, slope: float, beta: float) -> Array:
    """Return the x ≥ 0 with asinh(x/β) + slope·x = u.

    The equation is convex in t = asinh(x/β), so Newton's method from above never overshoots.
    """
    if slope == 0:
        return beta * np.sinh(np.minimum(u, LARGEST_EXPONENT / 2))
    c = slope * beta
    t = np.minimum(u, np.arcsinh(u / c))
    for _ in range(60):
        move = (t + c * np.sinh(t) - u) / (1 + c * np.cosh(t))
        t = t - move
        if float(np.abs(move).max()) <= 1e-14 * float(t.max()):
            break
    return beta * np.sinh(np.maximum(t, 0.0))


@dataclass(frozen=True)
class NuclearBall(ConvexSet):
    """The nuclear-norm ball {Σ singular values ≤ radius} of matrices. θ is the matrix flattened row by row.

    Parameters
    ----------
    radius : float
        The largest nuclear norm allowed.
    shape : tuple of two int
        The shape of the matrix.

    Raises
    ------
    InvalidInput
        If the radius is not positive, or the shape is not two whole numbers.

    Example
    -------
    >>> hr.NuclearBall(1.0, shape=(2, 2)).contains([0.5, 0.0, 0.0, 0.5])
    True
    """

    radius: float
    shape: tuple[int, int]

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "radius", positive("The radius", self.radius, "Give the largest nuclear norm allowed.")
        )
        sides = tuple(self.shape)
        if len(sides) != 2 or not all(isinstance(s, int | np.integer) and s >= 1 for s in sides):
            raise InvalidInput(
                f"The shape of a matrix must be two whole numbers of at least 1. Found {self.shape!r}. Correct it."
            )
        object.__setattr__(self, "shape", (int(sides[0]), int(sides[1])))

    @property
    def dimension(self) -> int:
        """The number of entries of the matrix."""
        return self.shape[0] * self.shape[1]

    def _decompose(self, v: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return the singular values, and a function that gives new values to the singular vectors of v."""
        matrix = v.reshape(self.shape)
        try:
            left, sizes, right = np.linalg.svd(matrix, full_matrices=False)
        except np.linalg.LinAlgError:  # θ may be private, so a failure of LAPACK must stay invisible
            left, sizes, right = svd_by_rotations(matrix)
        return sizes, lambda new: np.ravel((left * new) @ right)

    def contains(self, theta: ArrayLike, tolerance: float = 1e-9) -> bool:
        """Return True if the singular values sum to at most radius + tolerance."""
        v = np.asarray(theta, dtype=float)
        self.require(v.size)
        return bool(np.isfinite(v).all() and self._decompose(v)[0].sum() <= self.radius + tolerance)

    def project(self, theta: ArrayLike) -> Array:
        """Shrink all singular values by a common amount until they sum to the radius."""
        v = self.vector(theta)
        sizes, recompose = self._decompose(v)
        return v.copy() if sizes.sum() <= self.radius else recompose(shrink_to_sum(sizes, self.radius))

    def minimize(self, gradient: ArrayLike) -> Array:
        """Return −radius times the outer product of the gradient's leading singular vectors."""
        sizes, recompose = self._decompose(self.vector(gradient))
        return recompose(np.where(np.arange(sizes.size) == 0, -self.radius, 0.0))

    def radius_l1(self, p: int) -> float:
        """Return R√p, reached at a matrix of rank one whose entries have equal sizes."""
        return self.radius * math.sqrt(self.require(p))  # the flat matrix of rank one

    def radius_l2(self, p: int) -> float:
        """Return the radius."""
        return self.radius

    def diameter_l2(self, p: int) -> float:
        """Return twice the radius."""
        return 2 * self.radius

    def gaussian_width(self, p: int) -> float:
        """Return R(√m + √n), an upper bound by the expected largest singular value."""
        self.require(p)
        return self.radius * (math.sqrt(self.shape[0]) + math.sqrt(self.shape[1]))  # E of the largest singular value

    def potential(self, p: int) -> Potential:
        """Return the squared q-norm of the singular values."""
        width = self.gaussian_width(p) / self.radius
        return QNorm(self.require(p), min(self.shape), self.radius, width, self._decompose)


def svd_by_rotations(matrix: Array) -> tuple[Array, Array, Array]:
    """Return U, s and Vᵀ by one-sided Jacobi rotations. Slower than LAPACK, but it always returns a result."""
    if matrix.shape[0] < matrix.shape[1]:
        left, sizes, right = svd_by_rotations(matrix.T)
        return right.T, sizes, left.T
    size = float(np.abs(matrix).max()) or 1.0
    A, V = matrix / size, np.eye(matrix.shape[1])
    for _ in range(SWEEPS):
        is_done = True
        for i in range(1, len(V)):
            for j in range(i):
                a, b, c = float(A[:, j] @ A[:, j]), float(A[:, i] @ A[:, i]), float(A[:, j] @ A[:, i])
                if abs(c) <= 1e-16 * math.sqrt(a * b):
                    continue
                is_done = False
                angle = math.atan2(2 * c, a - b) / 2
                turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
                A[:, [j, i]], V[:, [j, i]] = A[:, [j, i]] @ turn, V[:, [j, i]] @ turn
        if is_done:
            break
    sizes = np.linalg.norm(A, axis=0)
    order = np.argsort(-sizes)
    left = A[:, order] / np.where(sizes > 0, sizes, 1.0)[order]
    return left, sizes[order] * size, V[:, order].T
