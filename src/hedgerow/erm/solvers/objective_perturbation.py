"""Objective perturbation: tilt the objective at random, minimise it, release the minimum.

Papers: Talwar, Thakurta & Zhang "Private empirical risk minimization beyond the worst case", Algorithm 2; Kifer, Smith &
Thakurta "Private convex empirical risk minimization and high-dimensional regression"; Iyengar et al. "Towards practical
differentially private convex optimization" (approximate minima); Redberg, Koskela & Wang "Improving the privacy and
practicality of objective perturbation" (the privacy profile).

Symbols: θ̂ = argmin Σ φ(⟨x, θ⟩, y) + (Λ/2)‖θ‖² + ⟨b, θ⟩, b ~ N(0, σ²I); L bounds |φ'|·‖x‖, λ bounds φ''·‖x‖²; s = L/σ;
H_ε(μ) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), the analytic Gaussian's δ.

Privacy (docs/proofs/erm_objective_perturbation.md). θ̂ determines b, so densities change by the Jacobian, a factor of at
most 1 + λ/Λ as a row is a rank-one term of the Hessian, and by the Gaussian's density at b and at b + v, v the change of
the row's gradient. A row that comes or goes has v = tx with x fixed and |t|·‖x‖ ≤ L, whatever θ̂, so that
    loss ≤ log(1 + λ/Λ) + s|N| + s²/2,  N ~ N(0, 1):     δ(ε) ≤ 2·H_{ε − log(1 + λ/Λ)}(s).
A replaced row has v in a rhombus of the plane of x and x', whose diagonals are orthogonal with squares that add up to
(2L)²: δ(ε) ≤ max over φ of 2·H(2s·cos φ) + 2·H(2s·sin φ), each at ε − log(1 + λ/Λ).
The minimum is known up to a distance g only, and b is drawn on a grid, which is a distance too: noise for sensitivity 2g
is added at the end, and a hundredth of ε and δ pays for it.

Risk: E f(θ̂) − f(u) ≤ (Λ‖u‖²/2 + pσ²/(2Λ))/n for every u, and the last noise adds λ/2 times its variance; Λ is the one with the best bound at ‖u‖ = `radius`. It is of the
minimum before it is projected to `over`.

Differs: the printed σ is for neither kind of neighbours and leaves nothing of ε to the Jacobian, so it is not (ε, δ)
private. The set is reached by projecting afterwards, not within the minimisation.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import log_ndtr

from hedgerow._checks import positive
from hedgerow.convex.losses.families import Loss
from hedgerow.convex.sets import Unconstrained
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.erm.problem import Norm, Problem, Result, prepared, usual_radius
from hedgerow.erm.solvers.minimum import minimum, require_smooth, rounding
from hedgerow.errors import InvalidInput
from hedgerow.privacy import events
from hedgerow.privacy.budget import Budget, Neighbours
from hedgerow.privacy.conversion import gaussian_delta, gaussian_mu
from hedgerow.privacy.ledger import Ledger

_SHARE = 0.01  # of ε and δ, for the noise that hides how near the minimum was


@np.errstate(all="ignore")
def objective_perturbation(
    X: Any,
    y: ArrayLike,
    *,
    loss: Loss,
    over: ConvexSet,
    budget: Budget | Ledger,
    row_bound: float = 1.0,
    norm: Norm = "l2",
    label_bound: float | None = None,
    rows: int | None = None,
    spend: float | None = None,
    radius: float | None = None,
    seed: int | None = None,
    progress: bool = False,
) -> Result:
    """θ by a tilted objective: one draw of noise, however many steps its minimum takes. Smooth losses only.

    `radius`: the ‖θ‖₂ at which the bound is best, the set's unless given.
    """
    problem = prepared(
        X, y, loss, over, budget, row_bound=row_bound, norm=norm, label_bound=label_bound, rows=rows, spend=spend,
        seed=seed, progress=progress,
    )  # fmt: skip
    require_smooth(problem, "objective_perturbation")
    event = problem.payment.approximate()
    reach = radius if radius is not None else usual_radius(problem)
    Λ, σ, bound = weight_of(problem, event, positive("radius", reach))
    p = problem.p
    change = problem.budget.gradient(problem.lipschitz)
    tilt = events.Gaussian(change, σ, events.grid_at_most(σ * 2.0**-32))
    rounded = math.sqrt(p) * tilt.grid / (2 * Λ)  # how far drawing b on a grid can move the minimum
    g = 1e-8 * σ / Λ + rounding(problem, Unconstrained(), Λ) + rounded
    hide = events.Gaussian(2 * g * 1.001, 2 * g * 1.001 / near_mu(event), events.grid_at_most(g * 1e-3 / math.sqrt(p)))
    cost = problem.payment.charge((event,))
    b = problem.noise.add(np.zeros(p), tilt)
    θ = problem.noise.add(minimum(problem, Unconstrained(), Λ, b, g - rounded), hide)
    bound += (problem.smoothness + loss.ridge * p) * hide.sigma**2 / 2
    return Result(over.project(θ), (event,), cost, bound, 1, "objective_perturbation")


def near_mu(event: events.ApproximateDP) -> float:
    """Δ/σ of the noise that hides how near the minimum was: all that its share of ε and δ allows."""
    return gaussian_mu(_SHARE * (1 - 1e-6) * event.epsilon, _SHARE * (1 - 1e-6) * event.delta)


def weight_of(problem: Problem, event: events.ApproximateDP, radius: float) -> tuple[float, float, float]:
    """(Λ, σ, bound): the weight on the sum with the best bound, the noise it needs, and the bound."""
    ε, δ = (1 - _SHARE) * (1 - 1e-6) * event.epsilon, (1 - _SHARE) * (1 - 1e-6) * event.delta  # b is on a grid
    return _best_weight(
        ε, δ, problem.smoothness, problem.lipschitz, problem.n, problem.p, problem.n * problem.loss.ridge, radius,
        problem.budget.neighbours,
    )  # fmt: skip


@functools.lru_cache(maxsize=64)
def _best_weight(
    ε: float, δ: float, λ: float, L: float, n: int, p: int, given: float, radius: float, neighbours: Neighbours
) -> tuple[float, float, float]:
    """`given` is the weight of the loss's own ridge: part of the objective already, so without bias."""
    least = max(given, λ / math.expm1(0.9 * ε))  # leaves a tenth of ε to the tilt
    twice = 2.0 if neighbours == "replace" else 1.0

    def rough(Λ: float) -> float:  # what replacing costs is nearly what twice the gradient costs
        σ = twice * L / gaussian_mu(ε - math.log1p(λ / Λ), δ / 2)
        return risk_bound(n, p, radius, Λ - given, σ, given)

    Λ = min([least, *(least + λ / math.expm1(ε) * np.geomspace(1e-2, 1e6, 150)).tolist()], key=rough)
    σ = noise_scale(ε, δ, λ, L, Λ, neighbours)
    return Λ, σ, risk_bound(n, p, radius, Λ - given, σ, given)


def noise_scale(
    epsilon: float, delta: float, smoothness: float, lipschitz: float, weight: float, neighbours: Neighbours
) -> float:
    """σ of the tilt: the least for which `privacy_delta` is at most delta, rounded up."""
    left = epsilon - math.log1p(smoothness / weight)
    if left <= 0:
        raise InvalidInput(
            f"weight must be above smoothness / (e^epsilon − 1) = {smoothness / math.expm1(epsilon):.4g}. "
            f"Found {weight:.4g}. Raise it."
        )
    low = high = lipschitz / gaussian_mu(epsilon, delta)
    while privacy_delta(epsilon, smoothness, lipschitz, weight, high, neighbours) > delta:
        high *= 2
    while privacy_delta(epsilon, smoothness, lipschitz, weight, low, neighbours) <= delta:
        low /= 2
    root = brentq(
        lambda σ: privacy_delta(epsilon, smoothness, lipschitz, weight, σ, neighbours) - delta, low, high, rtol=1e-12
    )
    return float(root) * (1 + 1e-9)


def privacy_delta(
    epsilon: float, smoothness: float, lipschitz: float, weight: float, sigma: float, neighbours: Neighbours
) -> float:
    """The δ at which the exact minimum of the tilted objective is certified (epsilon, δ)-private; at most 1."""
    left, s = epsilon - math.log1p(smoothness / weight), lipschitz / sigma
    if neighbours == "add-remove":
        return min(1.0, _two_sided(s, left))
    angles = np.linspace(0.0, math.pi / 4, 25)
    # both terms grow with their argument, so the ends of an interval bound all angles in it
    largest = [_two_sided(2 * s * math.cos(a), left) for a in angles[:-1]]
    smallest = [_two_sided(2 * s * math.sin(a), left) for a in angles[1:]]
    return min(1.0, max(map(sum, zip(largest, smallest, strict=True))))


def _two_sided(mu: float, epsilon: float) -> float:
    """E max(0, 1 − exp(ε − μ|N| − μ²/2)) for N ~ N(0, 1)."""
    if mu < 1e-12:
        return 0.0 if epsilon >= 0 else -math.expm1(epsilon)
    if epsilon >= mu**2 / 2:
        return 2 * gaussian_delta(mu, epsilon)
    return -math.expm1(epsilon + math.log(2) + float(log_ndtr(-mu)))


def risk_bound(n: int, p: int, radius: float, weight: float, sigma: float, ridge: float = 0.0) -> float:
    """(ΛR²/2 + pσ²/(2(Λ + ridge)))/n, `weight` = Λ and `ridge` on the sum; the ridge is the loss's own."""
    return (weight * radius**2 / 2 + p * sigma**2 / (2 * (weight + ridge))) / n
