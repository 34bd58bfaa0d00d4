"""Mirror potentials Ψ, which make mirror descent follow the shape of a constraint set.

Paper: Talwar, Thakurta & Zhang, *Private Empirical Risk Minimization Beyond the Worst Case: The Effect of the
Constraint Set Geometry*, §3.1–3.2.

Symbols: C the constraint set, Q the unit ball of the norm ‖·‖_Q, Ψ the potential, 1-strongly convex with respect to
‖·‖_Q on C; q the exponent of a q-norm; β the width of the hyperbolic entropy.

One step is argmin_{C} ⟨ηg − ∇Ψ(θ), ·⟩ + Ψ. The choice of a step size η needs three constants. ``range`` is maxΨ − minΨ.
``norm_width`` (G_Q) and ``norm_radius_l2`` (‖Q‖₂) bound the noise: for b ~ N(0, σ²I) added to a gradient,
E‖b‖²_{Q*} ≤ σ²(G_Q² + ‖Q‖₂²) by the Gaussian Poincaré inequality.

Differs: every potential is scaled to a strong convexity of exactly 1, and several printed potentials are replaced.
- Fact 3.4 prints ‖·‖²_{Q,q}/(4(q−1)). The potential that is 1-strongly convex in the q-norm has 1/(2(q−1)), and in
  ‖·‖_Q a further factor k^{2(1−1/q)}, which is e² at the paper's q. ``QNorm`` takes the q with the smallest range,
  about e·ln k.
- For a list of k vertices, ``VertexEntropy`` is the least negative entropy of a mixture that gives θ. It has the same
  norm, range ln k and a closed-form step. The step of the q-norm would need a convex program.
- For the ℓ1 ball, ``HyperbolicEntropy`` (Ghai, Hazan & Singer 2020) has range about ln(2p), against e·ln p for the
  q-norm. The q-norm remains available as ``L1Ball.potential(p, "q-norm")``.
- Groups and singular values use the squared q-norm of their sizes, which is strongly convex everywhere. The paper's
  power sums are strongly convex on the unit ball only. They need 4√e·ln(2m) for the nuclear norm, and O(log(p/k)) for
  groups where O(√log(p/k)) is printed.
Proofs: docs/proofs/geometry.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hedgerow import _scipy as scipy
from hedgerow._types import Array

LARGEST_EXPONENT = 700.0  # exp overflows beyond it, and a size this large is outside every set


class Potential(ABC):
    """A potential Ψ on C that is 1-strongly convex in ``norm``: Ψ(θ′) ≥ Ψ(θ) + ⟨∇Ψ(θ), θ′−θ⟩ + ½‖θ′−θ‖²."""

    strong_convexity = 1.0
    start: Array  # the minimizer of Ψ over C
    range: float  # maxΨ − minΨ over C, or an upper bound
    norm_radius_l2: float  # ‖Q‖₂, the largest ℓ2 norm in the unit ball of ``norm``
    norm_width: float  # G_Q, the Gaussian width of that ball, or an upper bound

    @abstractmethod
    def value(self, theta: Array) -> float:
        """Return Ψ(θ)."""
        ...

    @abstractmethod
    def gradient(self, theta: Array) -> Array:
        """Return ∇Ψ(θ)."""
        ...

    @abstractmethod
    def minimizer(self, dual: Array) -> Array:
        """Return argmin over C of Ψ − ⟨dual, ·⟩."""

    @abstractmethod
    def norm(self, x: Array) -> float:
        """Return ‖x‖_Q."""
        ...

    @abstractmethod
    def dual_norm(self, g: Array) -> float:
        """Return the dual norm of a gradient, sup ⟨g, x⟩ over ‖x‖_Q ≤ 1."""
        ...

    def mirror_step(self, theta: Array, direction: Array, eta: float) -> Array:
        """Take one step of mirror descent: argmin over C of ⟨η·direction − ∇Ψ(θ), ·⟩ + Ψ."""
        return self.minimizer(self.gradient(theta) - eta * direction)


@dataclass(frozen=True, eq=False)
class Euclidean(Potential):
    """The Euclidean potential ½‖θ − center‖₂², whose step is a projection.

    It works for any set and is the best for ℓ2 balls and boxes.
    """

    start: Array
    range: float
    norm_width: float
    project: Callable[[Array], Array]
    norm_radius_l2: float = 1.0

    def value(self, theta: Array) -> float:
        """Return ½‖θ − center‖₂²."""
        return float(np.sum((theta - self.start) ** 2)) / 2

    def gradient(self, theta: Array) -> Array:
        """Return θ − center."""
        return theta - self.start

    def minimizer(self, dual: Array) -> Array:
        """Project center + dual onto C."""
        return self.project(self.start + dual)

    def norm(self, x: Array) -> float:
        """Return ‖x‖₂."""
        return float(np.linalg.norm(x))

    def dual_norm(self, g: Array) -> float:
        """Return ‖g‖₂."""
        return float(np.linalg.norm(g))


@dataclass(frozen=True, eq=False)
class Entropy(Potential):
    """The entropy s·Σθ ln(θ/s) on the simplex of scale s, whose step is multiplicative weights.

    Its range is s²·ln p in the ℓ1 norm.
    """

    p: int
    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", np.full(self.p, self.scale / self.p))
        object.__setattr__(self, "range", self.scale**2 * math.log(self.p))
        object.__setattr__(self, "norm_radius_l2", 1.0)
        object.__setattr__(self, "norm_width", math.sqrt(2 * math.log(2 * self.p)))

    def value(self, theta: Array) -> float:
        """Return s·Σθ ln(θ/s)."""
        return self.scale * float(scipy.special.xlogy(theta, theta / self.scale).sum())

    def gradient(self, theta: Array) -> Array:
        """Return s·(ln(θ/s) + 1)."""
        with np.errstate(divide="ignore"):  # a weight that underflowed to zero has gradient −∞ and stays zero
            return self.scale * (np.log(theta / self.scale) + 1)

    def minimizer(self, dual: Array) -> Array:
        """Return s·softmax(dual/s)."""
        weights: Array = scipy.special.softmax(dual / self.scale)
        return self.scale * weights

    def norm(self, x: Array) -> float:
        """Return ‖x‖₁."""
        return float(np.abs(x).sum())

    def dual_norm(self, g: Array) -> float:
        """Return ‖g‖_∞."""
        return float(np.abs(g).max())


@dataclass(frozen=True, eq=False)
class VertexEntropy(Potential):
    """The least negative entropy Σα ln α of the mixtures α of vertices that give θ.

    Its range is ln k in the norm whose unit ball is conv(±(V − center)). Strong convexity depends only on differences
    of points, so the vertices are centered first. The step V·softmax(V·dual) has a closed form, but ∇Ψ(θ) is found by
    Newton's method. A loop does best to keep the dual: the dual that gave θ *is* ∇Ψ(θ).
    """

    vertices: Array  # k × p
    _centred: Array = field(init=False)
    _basis: Array = field(init=False)  # p × rank, orthonormal columns that span the centered vertices

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
        """Return Ψ(θ), computed from its dual."""
        v, x = self.gradient(theta), theta - self.start
        return float(
            v @ x - scipy.special.logsumexp(self._centred @ v)
        )  # by strong duality Ψ(θ) is the largest ⟨v, θ⟩ − ln Σ exp⟨v, vᵢ⟩

    def gradient(self, theta: Array) -> Array:
        """Return the v in the span of the vertices with V·softmax(Vv) = θ.

        Newton's method minimizes the convex function ln Σ exp⟨v, vᵢ⟩ − ⟨v, θ⟩.
        """
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
            if -decrease < 1e-13:  # the value is exact up to rounding; one more full step squares the error in v
                return self._basis @ (v + move)
            while (
                then := float(scipy.special.logsumexp(W @ (v + step * move)) - (v + step * move) @ x)
            ) > now + step * decrease / 4:
                step /= 2
                if step < 1e-9:  # θ is on the boundary, where the slope is infinite
                    return self._basis @ v
            v, now = v + step * move, then
        return self._basis @ v

    def minimizer(self, dual: Array) -> Array:
        """Return the mixture of the vertices with weights softmax(V·dual)."""
        weights: Array = scipy.special.softmax(self._centred @ dual)
        return weights @ self.vertices

    def norm(self, x: Array) -> float:
        """Return inf Σ|α| over the α with Σ α·(v − center) = x, or infinity if x is not in the span of the vertices."""
        k = len(self.vertices)
        found = scipy.optimize.linprog(np.ones(2 * k), A_eq=np.hstack([self._centred.T, -self._centred.T]), b_eq=x)
        return float(found.fun) if found.success else math.inf

    def dual_norm(self, g: Array) -> float:
        """Return max |⟨g, v − center⟩| over the vertices v."""
        return float(np.abs(self._centred @ g).max())


@dataclass(frozen=True, eq=False)
class HyperbolicEntropy(Potential):
    """The hyperbolic entropy κ·Σ [θ asinh(θ/β) − √(θ²+β²)] on sets within the ℓ1 ball of radius r, with κ = r + βp.

    It is 1-strongly convex in the ℓ1 norm: ∇²Ψ = κ·diag(1/√(θ²+β²)), so ⟨x, ∇²Ψ x⟩ ≥ κ‖x‖₁²/Σ√(θᵢ²+β²) ≥ ‖x‖₁² by
    Cauchy–Schwarz. β is chosen to make the range smallest. ``solve(|dual|/κ, β)`` returns the sizes of the minimizer's
    coordinates.
    """

    p: int
    radius: float
    solve: Callable[[Array, float], Array]
    beta: float = field(init=False)

    def __post_init__(self) -> None:
        def spread(log_b: float) -> float:  # the range Ψ(r·e₁) − Ψ(0) for r = 1 and β = b
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
        """κ = r + βp, the factor that makes the strong convexity 1."""
        return self.radius + self.beta * self.p

    def value(self, theta: Array) -> float:
        """Return κ·Σ [θ asinh(θ/β) − √(θ²+β²)]."""
        b = self.beta
        return self.kappa * float((theta * np.arcsinh(theta / b) - np.sqrt(theta**2 + b * b)).sum())

    def gradient(self, theta: Array) -> Array:
        """Return κ·asinh(θ/β)."""
        return self.kappa * np.arcsinh(theta / self.beta)

    def minimizer(self, dual: Array) -> Array:
        """Solve for the sizes of the coordinates and give them the signs of the dual."""
        return np.sign(dual) * self.solve(np.abs(dual) / self.kappa, self.beta)

    def norm(self, x: Array) -> float:
        """Return ‖x‖₁."""
        return float(np.abs(x).sum())

    def dual_norm(self, g: Array) -> float:
        """Return ‖g‖_∞."""
        return float(np.abs(g).max())


def hyperbolic_on_l1(v: Array, beta: float, radius: float) -> Array:
    """Return β·sinh((v − λ)₊) for v ≥ 0, with the least λ ≥ 0 for which the sum is at most ``radius``.

    The active coordinates follow from sorting, and λ from a quadratic equation.
    """
    if beta * np.sinh(np.minimum(v, LARGEST_EXPONENT)).sum() <= radius:
        return beta * np.sinh(v)
    # Measure everything from the largest entry. Otherwise rounding would lose the other terms beside a large v.
    behind = float(v.max()) - v
    w = -np.sort(behind[behind < math.asinh(radius / beta)])  # ≤ 0 and decreasing; entries left out become zero
    up, down = np.cumsum(np.exp(w)), np.cumsum(np.exp(-w))
    reached = beta * (up * np.exp(-w) - down * np.exp(w)) / 2  # the sum if λ were at w
    k = int(np.flatnonzero(reached <= radius)[-1])
    a, b, c = up[k], down[k], radius / beta  # a·y − b/y = 2c for y = exp(max v − λ)
    y = (c + math.sqrt(c * c + a * b)) / a
    sizes = beta * np.sinh(np.maximum(math.log(y) - behind, 0.0))
    return _within(sizes, float(sizes.sum()), radius)


@dataclass(frozen=True, eq=False)
class QNorm(Potential):
    """The potential (c/2)·‖sizes(θ)‖_q², for a norm that is the sum of k sizes.

    The sizes are those of coordinates, groups or singular values. ½‖·‖_q² is (q−1)-strongly convex in the q-norm, and
    Σsizes ≤ k^{1−1/q}·‖sizes‖_q, so c = k^{2(1−1/q)}/(q−1). ``decompose(θ)`` returns the sizes, and a function from new
    sizes to a vector with the directions of θ.
    """

    p: int
    k: int
    radius: float
    norm_width: float
    decompose: Callable[[Array], tuple[Array, Callable[[Array], Array]]]
    norm_radius_l2: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", np.zeros(self.p))
        object.__setattr__(self, "range", self.weight * self.radius**2 / 2)  # Ψ is largest where only one size is not 0

    @cached_property
    def q(self) -> float:
        """The q in (1, 2] with the smallest c. For s = q − 1, (1 + s)² = 2s·ln k if this equation has a root s ≤ 1."""
        m = math.log(self.k) - 1
        return 2.0 if m <= 1 else 1 + 1 / (m + math.sqrt(m * m - 1))

    @property
    def weight(self) -> float:
        """The factor c that makes the strong convexity 1."""
        return float(self.k ** (2 * (1 - 1 / self.q))) / (self.q - 1)

    def value(self, theta: Array) -> float:
        """Return (c/2)·‖sizes(θ)‖_q²."""
        return self.weight * _q_norm(self.decompose(theta)[0], self.q) ** 2 / 2

    def gradient(self, theta: Array) -> Array:
        """Return ∇Ψ(θ), with the directions of θ."""
        sizes, recompose = self.decompose(theta)
        return recompose(self.weight * _dual_sizes(sizes, self.q))

    def minimizer(self, dual: Array) -> Array:
        """Solve for the sizes of the minimizer and give them the directions of the dual."""
        sizes, recompose = self.decompose(dual)
        return recompose(self._solve(sizes))

    def _solve(self, w: Array) -> Array:
        """Return the sizes of the minimizer for a dual of sizes w, by a search for the multiplier of the constraint."""
        conjugate = self.q / (self.q - 1)

        def at(multiplier: float) -> Array:
            return _dual_sizes(np.maximum(w - multiplier, 0.0), conjugate) / self.weight

        if at(0.0).sum() <= self.radius:
            return at(0.0)
        root = scipy.optimize.brentq(lambda m: at(m).sum() - self.radius, 0.0, float(w.max()), xtol=1e-300, rtol=1e-15)
        sizes = at(float(root))
        return _within(sizes, float(sizes.sum()), self.radius)

    def norm(self, x: Array) -> float:
        """Return the sum of the sizes of x."""
        return float(self.decompose(x)[0].sum())

    def dual_norm(self, g: Array) -> float:
        """Return the largest size of g."""
        return float(self.decompose(g)[0].max())


def _within(sizes: Array, norm: float, radius: float) -> Array:
    """Scale the sizes back into the ball if rounding left them outside."""
    return sizes if norm <= radius else sizes * (radius / norm)


def _q_norm(sizes: Array, q: float) -> float:
    """Return ‖sizes‖_q without overflow."""
    top = float(sizes.max())
    return 0.0 if top == 0 else top * float(((sizes / top) ** q).sum()) ** (1 / q)


def _dual_sizes(sizes: Array, q: float) -> Array:
    """Return the gradient of ½‖·‖_q² at nonnegative sizes: ‖x‖_q^{2−q}·x^{q−1}."""
    norm = _q_norm(sizes, q)
    return np.zeros_like(sizes) if norm == 0 else norm * (sizes / norm) ** (q - 1)
