"""The exact minimum inside a perturbation mechanism, up to a distance that holds for every dataset.

Papers: Iyengar et al. "Towards practical differentially private convex optimization" (approximate minima); `descent`.

Symbols: F(θ) = Σ φ(⟨x, θ⟩, y) + (Λ/2)‖θ‖² + ⟨b, θ⟩ over C; θ* its minimum; L, λ bounds on ‖φ'·x‖ and φ''·‖x‖².

F is Λ-strongly convex, so ‖∇F(θ)‖ ≤ γ proves ‖θ − θ*‖ ≤ γ/Λ. Without a constraint Newton's method gets there in a few
steps, and the norm is checked, with an allowance for the rounding of the sum; a minimum inside C is the constrained one
too. Otherwise accelerated descent runs for as many steps as its bound needs. There is no failure to report.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hedgerow.convex_set import ConvexSet
from hedgerow.erm.contract import Problem
from hedgerow.erm.descent import Schedule, descend, fastest
from hedgerow.errors import InvalidInput
from hedgerow.potentials import Euclidean

Array = NDArray[np.float64]
_BLOCK = 256  # rows summed at a time
_UNIT_ROUNDOFF = 2.0**-53
_NEWTON_STEPS = 60
_NEWTON_UP_TO = 2000  # parameters


def require_smooth(problem: Problem, solver: str) -> None:
    if not problem.loss.is_smooth:
        raise InvalidInput(
            f"loss must be smooth for {solver}. Found {type(problem.loss).__name__}, which has kinks. "
            "Use SmoothedHinge or Huber, or mirror_descent."
        )


def rounding(problem: Problem, weight: float) -> float:
    """The least distance to ask for: twice what rounding in the norm of the gradient can hide."""
    rows = problem.most_rows
    terms = _BLOCK + rows / _BLOCK + problem.p
    return 8 * terms * _UNIT_ROUNDOFF * rows * problem.lipschitz * math.sqrt(problem.p) / weight


def minimum(problem: Problem, over: ConvexSet, weight: float, tilt: Array, distance: float) -> Array:
    """A point within `distance` of θ*, whatever the data; at least `rounding`, which half of it is for."""
    γ = weight * distance / 2
    if problem.p <= _NEWTON_UP_TO:
        θ, size = _newton(problem, weight, tilt, γ)
        if size <= γ and over.contains(θ, 0.0):
            return θ
    return _descent(problem, over, weight, tilt, distance / 2)


def _gradient(problem: Problem, theta: Array, weight: float, tilt: Array) -> tuple[Array, Array, Array]:
    """∇F, and the scores and slopes it is made of. Summed in blocks, so that rounding errors do not add up over n."""
    z = problem.scores(theta)
    s = np.clip(problem.loss.derivative(z, problem.y), -problem.slope_bound, problem.slope_bound)
    total = np.zeros_like(theta)
    for i in range(0, s.size, _BLOCK):
        total += problem.X[i : i + _BLOCK].T @ s[i : i + _BLOCK]
    return total * problem.unit + weight * theta + tilt, z, s


def _newton(problem: Problem, weight: float, tilt: Array, γ: float) -> tuple[Array, float]:
    """Newton's method on ∇F = 0 that backtracks on ‖∇F‖, along which its direction descends."""
    θ = np.zeros(problem.p)
    g, z, s = _gradient(problem, θ, weight, tilt)
    size = float(np.linalg.norm(g))
    for _ in range(_NEWTON_STEPS):
        if size <= γ:
            break
        h = np.where(np.abs(s) < problem.slope_bound, problem.loss.curvature(z, problem.y), 0.0)
        X = problem.X
        H = (X.T * h) @ X if isinstance(X, np.ndarray) else (X.T @ X.multiply(h[:, None]).tocsr()).toarray()
        move = np.linalg.solve(H * problem.unit**2 + weight * np.eye(problem.p), g)
        step = 1.0
        while step > 1e-4:
            then, z_then, s_then = _gradient(problem, θ - step * move, weight, tilt)
            if float(np.linalg.norm(then)) <= (1 - step / 4) * size:
                break
            step /= 2
        else:
            break
        θ, g, z, s = θ - step * move, then, z_then, s_then
        size = float(np.linalg.norm(g))
    return θ, size


def _descent(problem: Problem, over: ConvexSet, weight: float, tilt: Array, distance: float) -> Array:
    """Accelerated descent until its bound D/A_T ≤ (Λ/2n)·distance² on the average loss."""
    n = max(problem.X.shape[0], 1)
    start = over.project(np.zeros(problem.p))
    farthest = (n * problem.lipschitz + float(np.linalg.norm(tilt))) / weight  # ‖θ*‖ where nothing constrains it
    spread = min(farthest + float(np.linalg.norm(start)), over.diameter_l2(problem.p)) ** 2 / 2
    Δ, β = weight / n, problem.smoothness
    weights, A = [], 0.0
    enough = spread / (Δ * distance**2 / 2)
    while enough > A:
        weights.append(float(fastest(A, 1 + Δ * A, β)))
        A += weights[-1]
    plan = Schedule(np.array(weights), 0.0, True, Δ)
    Ψ = Euclidean(start, spread, math.sqrt(problem.p), over.project)
    return descend(lambda θ: _gradient(problem, θ, 0.0, tilt)[0] / n, Ψ, plan)
