"""Mirror descent with noisy gradients: the convergence of Algorithm 1 for any norm, potential and noise covariance.

Paper: Talwar, Thakurta & Zhang, *Private Empirical Risk Minimization Beyond the Worst Case: The Effect of the
Constraint Set Geometry*, §3.3 (Corollary 3.6) and Appendix A (Theorem A.1). Proof: docs/proofs/erm_mirror_descent.md.

Symbols: C the set, Ψ a potential that is 1-strongly convex in ‖·‖_Q, D = maxΨ − minΨ, γ_t the gradient with ‖γ_t‖_{Q*}
≤ G, b_t ~ N(0, Σ) its noise, V ≥ E‖b_t‖²_{Q*}, M² = 2(G² + V) ≥ E‖γ_t + b_t‖²_{Q*}, T steps η_t, Δ the strong convexity
relative to Ψ: f(u) ≥ f(θ) + ⟨γ, u − θ⟩ + Δ·B_Ψ(u, θ).

    convex:           η_t = √(2D/T)/M       the average of θ_1 … θ_T is within M·√(2D/T) of the minimum
    strongly convex:  η_t = 2/(Δ(t + 1))    the average with weights t is within 2M²/(Δ(T + 1)) of it

Both hold in expectation. Nothing here is private by itself: the caller draws the noise, and the corollary is about
the noise alone. ``erm.mirror_descent`` is the private solver.

Differs: V follows the shape of Σ where the potential allows it, and is λ_max(Σ)·(G_Q² + ‖Q‖₂²) otherwise, as in the
corollary. The corollary's bound has a factor √T too many. Theorem A.1 has the step 2/(Δt), an even average and
therefore a factor log T. With the weights t no logarithm is left, and the start does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from hedgerow._checks import positive, whole
from hedgerow._types import Array
from hedgerow.convex.sets.potentials import Entropy, Euclidean, HyperbolicEntropy, Potential
from hedgerow.errors import InvalidInput

Gradient = Callable[[Array], Array]


def noise_in_dual_norm(potential: Potential, covariance: ArrayLike) -> float:
    """Return V, a bound on E‖b‖²_{Q*} for b ~ N(0, Σ).

    It is tr Σ in the Euclidean norm, and max Σ_ii·(G_Q² + 1) in the ℓ1 norm, because E max|b_i| does not grow with
    correlation. Otherwise it is λ_max(Σ)·(G_Q² + ‖Q‖₂²): sup over Q of ⟨b, ·⟩ has at most √λ_max times the mean of
    standard noise (Sudakov–Fernique), and a variance of at most λ_max·‖Q‖₂² (Poincaré).
    """
    Σ = np.asarray(covariance, dtype=float)
    p = potential.start.size
    sizes = np.linalg.eigvalsh(Σ) if Σ.shape == (p, p) and np.isfinite(Σ).all() else np.array([-math.inf])
    if not (np.allclose(Σ, Σ.T) and sizes.min() >= -1e-12 * max(float(sizes.max()), 0.0)):
        raise InvalidInput(
            f"covariance must be a positive semidefinite matrix of {p} × {p} numbers. Found an array of shape "
            f"{Σ.shape}. Correct it."
        )
    if isinstance(potential, Euclidean):
        return float(np.trace(Σ))
    largest = float(np.diag(Σ).max()) if isinstance(potential, Entropy | HyperbolicEntropy) else float(sizes.max())
    return largest * (potential.norm_width**2 + potential.norm_radius_l2**2)


def noisy_descent_bound(potential: Potential, slope: float, noise: float, steps: int) -> float:
    """Return M·√(2D/T), the bound of Corollary 3.6, for ``slope`` G and ``noise`` V."""
    return math.sqrt(_second_moment(slope, noise)) * math.sqrt(2 * potential.range / whole("steps", steps))


def strongly_convex_bound(strong_convexity: float, slope: float, noise: float, steps: int) -> float:
    """Return 2M²/(Δ(T + 1)), the bound of Theorem A.1 for any potential, without its logarithms."""
    Δ = positive("strong_convexity", strong_convexity)
    return 2 * _second_moment(slope, noise) / (Δ * (whole("steps", steps) + 1))


def noisy_descent(potential: Potential, gradient: Gradient, *, slope: float, noise: float, steps: int) -> Array:
    """Run Algorithm 1 with even steps, and return the average. ``gradient`` is noisy, its expectation a subgradient."""
    η = math.sqrt(2 * potential.range / whole("steps", steps) / _second_moment(slope, noise))
    θ, total = potential.start, np.zeros_like(potential.start)
    for _ in range(steps):
        total += θ
        θ = potential.mirror_step(θ, gradient(θ), η)  # argmin ⟨η(γ + b) − ∇Ψ(θ_t), ·⟩ + Ψ
    return total / steps


def strongly_convex_descent(potential: Potential, gradient: Gradient, *, strong_convexity: float, steps: int) -> Array:
    """Run Algorithm 1 for a function that is Δ-strongly convex relative to Ψ. Return the average with weights t."""
    Δ = positive("strong_convexity", strong_convexity)
    θ, total = potential.start, np.zeros_like(potential.start)
    for t in range(1, whole("steps", steps) + 1):
        total += t * θ
        θ = potential.mirror_step(θ, gradient(θ), 2 / (Δ * (t + 1)))
    return total / (steps * (steps + 1) / 2)


def _second_moment(slope: float, noise: float) -> float:
    """Return M² = 2(G² + V)."""
    if not (slope >= 0 and noise >= 0 and 0 < slope + noise < math.inf):
        raise InvalidInput(
            f"slope and noise must be at least 0, and one of them positive. Found {slope!r} and {noise!r}. Give bounds."
        )
    return 2 * (slope**2 + noise)
