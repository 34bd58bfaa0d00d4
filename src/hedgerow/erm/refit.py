"""Least squares on the features that a private selection has already named: few, so their moments are cheap.

Papers: Talwar, Thakurta & Zhang, *Private Empirical Risk Minimization Beyond the Worst Case*, §5 (the selection); Vu &
Slavković "Differential privacy for clinical trial data" and Wang "Revisiting differentially private linear regression"
(noisy moments, with a ridge of the size of their noise).

Symbols: S the named features, m = |S|; a = (x_S/b_x, y/b_y), entries in [−1, 1]; A = Σ over rows of the products a_i·a_j
for i ≤ j in S and of a_i·a_y: q = m(m+1)/2 + m values, so one row's are at most √q long and A/√q has ℓ2 sensitivity 2
(replace) or 1 (add or remove); σ the noise on A/√q, s = σ√q that on A; N the noise on the matrix of products.

The least squares over ‖θ‖₁ ≤ R, θ zero off S, of the noisy moments, with a ridge s√m towards the θ₀ of the selection.
It is post-processing: exact arithmetic on public numbers. Against θ₀ its risk is larger by at most
(3s√m·R²·b_x² + 2s·√(2 ln 2m)·R·b_x·b_y)/n in expectation: the minimiser's noisy value is no more than θ₀'s; the noise moves
the quadratic by at most ½‖N‖R² (E‖N‖ ≤ 2s√m) and the linear part by R·max|noise|, at both ends; and cutting negative
eigenvalues by ½‖N‖R² once more.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hedgerow import events
from hedgerow.convex_set import shrink_to_sum
from hedgerow.erm.contract import Problem

Array = NDArray[np.float64]
_FINE = 1e-6  # share of the sensitivity that rounding to the grid may add


def moments_event(problem: Problem, most: int, rho: float) -> events.Gaussian:
    """The noise on A/√q for at most ``most`` features: fixed before they are named."""
    exact, cells = problem.budget.gradient(1.0) * (1 + _FINE / 2), math.sqrt(_values(most))
    spread = exact / math.sqrt(2 * rho)
    # Fine beside the sensitivity; but n steps must stay below 2^53, and the noise below 2^40 steps.
    grid = events.grid_at_most(max(_FINE / 2 / cells, problem.n * 2.0**-49, spread * 2.0**-38))
    Δ = exact + cells * grid  # rounding moves each value of two neighbours by half a step
    return events.Gaussian(Δ, Δ / math.sqrt(2 * rho), grid)


def added_risk(problem: Problem, radius: float, label_bound: float, event: events.Gaussian, m: int) -> float:
    """The bound above, for m features."""
    s = event.sigma * math.sqrt(_values(m))
    b = problem.row_bound * radius
    return float((3 * s * math.sqrt(m) * b**2 + 2 * s * math.sqrt(2 * math.log(2 * m)) * b * label_bound) / problem.n)


def refitted(problem: Problem, start: Array, radius: float, label_bound: float, event: events.Gaussian) -> Array:
    """θ with the support of ``start``, a released vector that is not zero."""
    S = np.flatnonzero(start)
    m, n, q = S.size, problem.n, _values(S.size)
    gram, cross = _moments(problem, S, label_bound)
    upper = np.triu_indices(m)
    noisy = problem.noise.add(np.concatenate([gram[upper], cross]) / math.sqrt(q), event) * math.sqrt(q) / n
    Q = np.zeros((m, m))
    Q[upper] = noisy[: upper[0].size]
    Q = Q + np.triu(Q, 1).T
    values, vectors = np.linalg.eigh(Q)
    ridge = event.sigma * math.sqrt(q * m) / n
    # In units where features and label lie in [−1, 1], θ·b_x/b_y is the coefficient.
    unit = problem.row_bound / label_bound
    theta0 = start[S] * unit
    Q = (vectors * (np.maximum(values, 0.0) + ridge)) @ vectors.T
    best = _least_squares(Q, noisy[upper[0].size :] + ridge * theta0, radius * unit, theta0)
    theta = np.zeros_like(start)
    theta[S] = best / unit
    return theta


def _values(m: int) -> int:
    return m * (m + 1) // 2 + m


def _moments(problem: Problem, S: NDArray[np.int64], label_bound: float) -> tuple[Array, Array]:
    """Σ a aᵀ and Σ a·a_y, exact: entries in steps of 2^-h, so that n products add up below 2^53 steps."""
    columns = problem.X[:, S].toarray() if sp.issparse(problem.X) else problem.X[:, S]
    h = (50 - math.ceil(math.log2(max(problem.n, 2)))) // 2
    a = np.trunc(np.clip(columns * (problem.unit / problem.row_bound), -1, 1) * 2.0**h)
    a_y = np.trunc(np.clip(problem.y / label_bound, -1, 1) * 2.0**h)
    return a.T @ a * 4.0**-h, a.T @ a_y * 4.0**-h


def _least_squares(Q: Array, c: Array, radius: float, theta: Array, steps: int = 2000) -> Array:
    """argmin ½θᵀQθ − ⟨c, θ⟩ over ‖θ‖₁ ≤ radius, by accelerated projected gradients."""
    step = 1 / max(float(np.linalg.eigvalsh(Q)[-1]), 1e-300)
    ahead, momentum = theta, 1.0
    for _ in range(steps):
        moved = ahead - step * (Q @ ahead - c)
        new = np.sign(moved) * shrink_to_sum(np.abs(moved), radius)
        if float((ahead - new) @ (new - theta)) > 0:  # overshot: start the momentum afresh
            momentum = 1.0
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead, theta, momentum = new + (momentum - 1) / following * (new - theta), new, following
    return theta
