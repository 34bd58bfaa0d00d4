"""Mirror potentials: the Ψ that makes mirror descent follow the shape of the constraint set.

Paper: Talwar, Thakurta & Zhang, *Private Empirical Risk Minimization Beyond the Worst Case: The Effect of the
Constraint Set Geometry*, §3.1–3.2.

Symbols: C the constraint set, Q the unit ball of the norm ‖·‖_Q, Ψ the potential, 1-strongly convex with respect to
‖·‖_Q on C; q the exponent of a q-norm; β the width of the hyperbolic entropy.

One step is argmin_{C} ⟨ηg − ∇Ψ(θ), ·⟩ + Ψ. With range = maxΨ − minΨ and b ~ N(0, σ²I) added to gradients of an
L-Lipschitz loss, E‖b‖²_{Q*} ≤ σ²(G_Q² + ‖Q‖₂²) (Gaussian Poincaré), so ``norm_width`` and ``norm_radius_l2`` are what
a step size needs.

Differs: every potential is scaled to constant exactly 1, and several printed ones are replaced.
 - Fact 3.4 prints ‖·‖²_{Q,q}/(4(q−1)); 1/(2(q−1)) is what is 1-strongly convex in the q-norm, and a further factor
   k^{2(1−1/q)} (e² at the paper's q) in ‖·‖_Q. ``QNorm`` takes the q that makes the range smallest, about e·ln k.
 - For a list of k vertices ``VertexEntropy`` is the least negative entropy of a mixture that gives θ: the same norm,
   range ln k, and a closed-form step, where the q-norm's needs a convex programme.
 - For the ℓ1 ball ``HyperbolicEntropy`` (Ghai, Hazan & Singer 2020) has range about ln(2p) against e·ln p. The
   q-norm remains, as ``L1Ball.potential(p, "q-norm")``.
 - Groups and singular values use the squared q-norm of their sizes, strongly convex everywhere, where the paper's
   power sums are so on the unit ball only (and need 4√e·ln(2m), and O(log(p/k)) where O(√log(p/k)) is printed).
Proofs: docs/proofs/geometry.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy  # which loads its parts when they are first named

from hedgerow._types import Array

LARGEST_EXPONENT = 700.0  # exp of more overflows; a size this large is outside every set here


class Potential(ABC):
    """Ψ on C, 1-strongly convex in ``norm``: Ψ(θ′) ≥ Ψ(θ) + ⟨∇Ψ(θ), θ′−θ⟩ + ½‖θ′−θ‖²."""

    strong_convexity = 1.0
    start: Array  # argmin Ψ over C
    range: float  # maxΨ − minΨ over C, or an upper bound
    norm_radius_l2: float  # ‖Q‖₂, the largest ℓ2 norm in the unit ball of ``norm``
    norm_width: float  # G_Q, its Gaussian width or an upper bound

    @abstractmethod
    def value(self, theta: Array) -> float: ...

    @abstractmethod
    def gradient(self, theta: Array) -> Array: ...

    @abstractmethod
    def minimiser(self, dual: Array) -> Array:
        """argmin over C of Ψ − ⟨dual, ·⟩."""

    @abstractmethod
    def norm(self, x: Array) -> float: ...

    @abstractmethod
    def dual_norm(self, g: Array) -> float: ...

    def mirror_step(self, theta: Array, direction: Array, eta: float) -> Array:
        """argmin over C of ⟨η·direction − ∇Ψ(θ), ·⟩ + Ψ: one step of mirror descent."""
        return self.minimiser(self.gradient(theta) - eta * direction)


@dataclass(frozen=True, eq=False)
class Euclidean(Potential):
    """½‖θ − centre‖₂²; the step is a projection. For any set, and the best for ℓ2 balls and boxes."""

    start: Array
    range: float
    norm_width: float
    project: Callable[[Array], Array]
    norm_radius_l2: float = 1.0

    def value(self, theta: Array) -> float:
        return float(np.sum((theta - self.start) ** 2)) / 2

    def gradient(self, theta: Array) -> Array:
        return theta - self.start

    def minimiser(self, dual: Array) -> Array:
        return self.project(self.start + dual)

    def norm(self, x: Array) -> float:
        return float(np.linalg.norm(x))

    def dual_norm(self, g: Array) -> float:
        return float(np.linalg.norm(g))


@dataclass(frozen=True, eq=False)
class Entropy(Potential):
    """s·Σθ ln(θ/s) on the simplex of scale s; the step is multiplicative weights. Range s²·ln p in the ℓ1 norm."""

    p: int
    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", np.full(self.p, self.scale / self.p))
        object.__setattr__(self, "range", self.scale**2 * math.log(self.p))
        object.__setattr__(self, "norm_radius_l2", 1.0)
        object.__setattr__(self, "norm_width", math.sqrt(2 * math.log(2 * self.p)))

    def value(self, theta: Array) -> float:
        return self.scale * float(scipy.special.xlogy(theta, theta / self.scale).sum())

    def gradient(self, theta: Array) -> Array:
        with np.errstate(divide="ignore"):  # a weight that underflowed to zero stays zero
            return self.scale * (np.log(theta / self.scale) + 1)

    def minimiser(self, dual: Array) -> Array:
        weights: Array = scipy.special.softmax(dual / self.scale)
        return self.scale * weights

    def norm(self, x: Array) -> float:
        return float(np.abs(x).sum())

    def dual_norm(self, g: Array) -> float:
        return float(np.abs(g).max())


@dataclass(frozen=True, eq=False)
class VertexEntropy(Potential):
    """min Σα ln α over the mixtures α of the vertices that give θ. Range ln k in the norm of conv(±(V − centre)).

    Only differences of points matter to strong convexity, so the vertices are centred first. The step
    V·softmax(V·dual) is closed; ∇Ψ(θ) is found by Newton's method, so a loop does best to carry the dual along
    (the dual that gave θ *is* ∇Ψ(θ)).
    """

    vertices: Array  # k × p
    _centred: Array = field(init=False)
    _basis: Array = field(init=False)  # p × rank, orthonormal columns that span the centred vertices

    def __post_init__(self) -> None:
        k, p = self.vertices.shape
        centred = self.vertices - self.vertices.mean(axis=0)
        radius = float(np.linalg.norm(centred, axis=1).max())
        _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
        object.__setattr__(self, "_centred", centred)
        object.__setattr__(self, "_basis", axes[sizes > 1e-12 * max(float(sizes[0]), 1e-300)].T)
        object.__setattr__(self, "start", self.vertices.mean(axis=0))
        object.__setattr__(self, "range", math.log(k))
        object.__setattr__(self, "norm_radius_l2", radius)
        object.__setattr__(self, "norm_width", radius * min(math.sqrt(2 * math.log(2 * k)), math.sqrt(p)))

    def value(self, theta: Array) -> float:
        v, x = self.gradient(theta), theta - self.start
        return float(
            v @ x - scipy.special.logsumexp(self._centred @ v)
        )  # strong duality: the largest ⟨v, θ⟩ − ln Σ exp⟨v, vᵢ⟩

    def gradient(self, theta: Array) -> Array:
        """The v with V·softmax(Vv) = θ, in the span of the vertices: Newton on the convex ln Σ exp⟨v, vᵢ⟩ − ⟨v, θ⟩."""
        x, W = (theta - self.start) @ self._basis, self._centred @ self._basis
        v = np.zeros(x.size)
        now = float(scipy.special.logsumexp(W @ v) - v @ x)
        for _ in range(200):
            a = scipy.special.softmax(W @ v)
            slope = a @ W - x
            hessian = (W * a[:, None]).T @ W - np.outer(a @ W, a @ W)
            hessian[np.diag_indices(x.size)] += 1e-15 * np.trace(hessian) + 1e-300
            move = -np.linalg.solve(hessian, slope)
            decrease, step = float(slope @ move), 1.0
            if -decrease < 1e-13:  # within rounding of the value; one more full step squares the error
                return self._basis @ (v + move)
            while (
                then := float(scipy.special.logsumexp(W @ (v + step * move)) - (v + step * move) @ x)
            ) > now + step * decrease / 4:
                step /= 2
                if step < 1e-9:  # θ is on the boundary, where the slope is infinite
                    return self._basis @ v
            v, now = v + step * move, then
        return self._basis @ v

    def minimiser(self, dual: Array) -> Array:
        weights: Array = scipy.special.softmax(self._centred @ dual)
        return weights @ self.vertices

    def norm(self, x: Array) -> float:
        """inf Σ|α| over the α with Σ α·(v − centre) = x; infinite off their span."""
        k = len(self.vertices)
        found = scipy.optimize.linprog(np.ones(2 * k), A_eq=np.hstack([self._centred.T, -self._centred.T]), b_eq=x)
        return float(found.fun) if found.success else math.inf

    def dual_norm(self, g: Array) -> float:
        return float(np.abs(self._centred @ g).max())


@dataclass(frozen=True, eq=False)
class HyperbolicEntropy(Potential):
    """κ·Σ [θ asinh(θ/β) − √(θ²+β²)] in the ℓ1 norm, on sets within the ℓ1 ball of radius r; κ = r + βp.

    ∇²Ψ = κ·diag(1/√(θ²+β²)), so ⟨x, ∇²Ψ x⟩ ≥ κ‖x‖₁²/Σ√(θᵢ²+β²) ≥ ‖x‖₁² by Cauchy–Schwarz. β is the one with the
    smallest range. ``solve(|dual|/κ, β)`` gives the sizes of the minimiser.
    """

    p: int
    radius: float
    solve: Callable[[Array, float], Array]
    beta: float = field(init=False)

    def __post_init__(self) -> None:
        def spread(log_b: float) -> float:  # Ψ(r·e₁) − Ψ(0) at β = r·b, r = 1
            b = math.exp(log_b)
            return (1 + b * self.p) * (math.asinh(1 / b) - 1 / (math.sqrt(1 + b * b) + b))

        best = scipy.optimize.minimize_scalar(spread, bounds=(-math.log(self.p) - 8, 3.0), method="bounded")
        object.__setattr__(self, "start", np.zeros(self.p))
        object.__setattr__(self, "range", self.radius**2 * float(best.fun))
        object.__setattr__(self, "beta", self.radius * math.exp(best.x))
        object.__setattr__(self, "norm_radius_l2", 1.0)
        object.__setattr__(self, "norm_width", math.sqrt(2 * math.log(2 * self.p)))

    @property
    def kappa(self) -> float:
        return self.radius + self.beta * self.p

    def value(self, theta: Array) -> float:
        b = self.beta
        return self.kappa * float((theta * np.arcsinh(theta / b) - np.sqrt(theta**2 + b * b)).sum())

    def gradient(self, theta: Array) -> Array:
        return self.kappa * np.arcsinh(theta / self.beta)

    def minimiser(self, dual: Array) -> Array:
        return np.sign(dual) * self.solve(np.abs(dual) / self.kappa, self.beta)

    def norm(self, x: Array) -> float:
        return float(np.abs(x).sum())

    def dual_norm(self, g: Array) -> float:
        return float(np.abs(g).max())


def hyperbolic_on_l1(v: Array, beta: float, radius: float) -> Array:
    """β·sinh((v − λ)₊) with the least λ ≥ 0 for which the sum is at most ``radius``; v ≥ 0. Sorting, then a quadratic."""
    if beta * np.sinh(np.minimum(v, LARGEST_EXPONENT)).sum() <= radius:
        return beta * np.sinh(v)
    # All that follows is counted from the largest: beside a large v the rest would be lost to rounding.
    behind = float(v.max()) - v
    w = -np.sort(behind[behind < math.asinh(radius / beta)])  # ≤ 0, decreasing; smaller ones end at zero
    up, down = np.cumsum(np.exp(w)), np.cumsum(np.exp(-w))
    reached = beta * (up * np.exp(-w) - down * np.exp(w)) / 2  # the sum if λ were at w
    k = int(np.flatnonzero(reached <= radius)[-1])
    a, b, c = up[k], down[k], radius / beta  # a·y − b/y = 2c for y = exp(max v − λ)
    y = (c + math.sqrt(c * c + a * b)) / a
    sizes = beta * np.sinh(np.maximum(math.log(y) - behind, 0.0))
    return _within(sizes, float(sizes.sum()), radius)


@dataclass(frozen=True, eq=False)
class QNorm(Potential):
    """(c/2)·‖sizes(θ)‖_q², for a norm that is the sum of k sizes: coordinates, groups, singular values.

    ½‖·‖_q² is (q−1)-strongly convex in its norm and Σsizes ≤ k^{1−1/q}·‖sizes‖_q, so c = k^{2(1−1/q)}/(q−1).
    ``decompose(θ)`` gives the sizes and the map from new sizes back to a vector with θ's directions.
    """

    p: int
    k: int
    radius: float
    norm_width: float
    decompose: Callable[[Array], tuple[Array, Callable[[Array], Array]]]
    norm_radius_l2: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", np.zeros(self.p))
        object.__setattr__(self, "range", self.weight * self.radius**2 / 2)  # largest where one size has it all

    @cached_property
    def q(self) -> float:
        """The q in (1, 2] of smallest c: with s = q − 1, (1 + s)² = 2s·ln k where that has a root s ≤ 1."""
        m = math.log(self.k) - 1
        return 2.0 if m <= 1 else 1 + 1 / (m + math.sqrt(m * m - 1))

    @property
    def weight(self) -> float:
        return float(self.k ** (2 * (1 - 1 / self.q))) / (self.q - 1)

    def value(self, theta: Array) -> float:
        return self.weight * _q_norm(self.decompose(theta)[0], self.q) ** 2 / 2

    def gradient(self, theta: Array) -> Array:
        sizes, recompose = self.decompose(theta)
        return recompose(self.weight * _dual_sizes(sizes, self.q))

    def minimiser(self, dual: Array) -> Array:
        sizes, recompose = self.decompose(dual)
        return recompose(self._solve(sizes))

    def _solve(self, w: Array) -> Array:
        conjugate = self.q / (self.q - 1)

        def at(multiplier: float) -> Array:
            return _dual_sizes(np.maximum(w - multiplier, 0.0), conjugate) / self.weight

        if at(0.0).sum() <= self.radius:
            return at(0.0)
        root = scipy.optimize.brentq(lambda m: at(m).sum() - self.radius, 0.0, float(w.max()), xtol=1e-300, rtol=1e-15)
        sizes = at(float(root))
        return _within(sizes, float(sizes.sum()), self.radius)

    def norm(self, x: Array) -> float:
        return float(self.decompose(x)[0].sum())

    def dual_norm(self, g: Array) -> float:
        return float(self.decompose(g)[0].max())


def _within(sizes: Array, norm: float, radius: float) -> Array:
    """Undo what rounding left outside."""
    return sizes if norm <= radius else sizes * (radius / norm)


def _q_norm(sizes: Array, q: float) -> float:
    top = float(sizes.max())
    return 0.0 if top == 0 else top * float(((sizes / top) ** q).sum()) ** (1 / q)


def _dual_sizes(sizes: Array, q: float) -> Array:
    """The gradient of ½‖·‖_q² at nonnegative sizes: ‖x‖_q^{2−q}·x^{q−1}."""
    norm = _q_norm(sizes, q)
    return np.zeros_like(sizes) if norm == 0 else norm * (sizes / norm) ** (q - 1)
