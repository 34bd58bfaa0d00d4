"""The minimizer of a convex loss over public weighted cells, with a proven bound on its distance from the least value.

Paper: Ullman, *Private Multiplicative Weights Beyond Linear Queries*, Figure 3 (θ̂ and err). Methods: proximal Newton
on constrained sets (Lee, Sun & Saunders 2014), FISTA (Beck & Teboulle 2009), the level bundle method (Lemaréchal,
Nemirovskii & Nesterov 1995), ellipsoids (Yudin & Nemirovskii 1976); self-concordance as in Bach, *Self-concordant
analysis for logistic regression*.

Symbols: f(θ) = Σ m(x)ℓ_x(θ)/Σ m, C the set, g a (sub)gradient, σ the strong convexity, β the smoothness, h the half
width over which a kink is rounded, e(x) ≥ 0 the amount by which a slope misses being a subgradient of φ at the
predictor of cell x.

The bounds are in ``certificate``, the loss as a function in ``weighted_cells``, and the methods that use only
subgradients in ``first_order``. A loss with kinks is rounded over ever smaller h. The accuracy reached depends on the
cells. For private counts see ``private_minimum``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hedgerow import _scipy as scipy
from hedgerow._checks import positive
from hedgerow._types import Array
from hedgerow.convex.bound_loss import GlmRisk, Risk
from hedgerow.convex.sets import Box, L2Ball
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.convex.solver.certificate import Best, Judge, rounding_of
from hedgerow.convex.solver.first_order import bundle, ellipsoid, run_fista
from hedgerow.convex.solver.weighted_cells import (
    KINKS,
    ObjectiveFunction,
    RoundedObjective,
    SmoothObjective,
    list_cells,
)

# At most this many steps of Newton's method and of FISTA with restarts; the damping at which Newton's method gives up.
NEWTON_STEPS, QUICK_STEPS, MOST_DAMPING = 60, 3000, 8
MOST_WORK = 3 * 10**8  # the slow methods may take at most this many cells × steps
NARROWEST = 1e-13  # no kink is rounded over a half width below this one
NARROWER = 0.2  # ratio of the widths of two consecutive roundings of a kink
CHECKED = 10  # the gap of the quadratic model is computed once every CHECKED steps


@final
@dataclass(frozen=True, eq=False, repr=False)
class Minimum:
    """A minimizer θ with its value Σ m(x)ℓ_x(θ) and a proven ``gap`` ≥ value − least value, in units of the marginal.

    It has no repr, because it can be computed from data.
    """

    theta: Array
    value: float
    gap: float
    width: float = 0.0
    """Predictors this close to a kink count as lying on it: the ``tolerance`` of ``Risk.directional`` at this θ."""


def minimize_over(
    risk: Risk, marginal: NDArray[Any], over: ConvexSet, tolerance: float = 1e-8, *, stationary: bool = False
) -> Minimum:
    """Minimize Σ m(x)ℓ_x over the set, to within ``tolerance`` per unit of mass if that can be proven.

    With ``stationary``, over a bounded set, the gap also bounds slopes: Σ m(x)·ℓ′_x(θ; θ′ − θ) ≥ −gap for every θ′ of
    the set. The result is deterministic. Nothing is raised about the values of the marginal: if the tolerance is not
    reached, ``gap`` says so.
    """
    objective: Any = risk.objective(marginal)
    if objective.mass > 0:
        objective = list_cells(risk, objective)
    return minimize_objective(risk, objective, over, tolerance, stationary=stationary)


def minimize_objective(
    risk: Risk, objective: Any, over: ConvexSet, tolerance: float = 1e-8, *, stationary: bool = False
) -> Minimum:
    """Minimize a weighted sum of the losses, however it is computed. See ``minimize_over``."""
    p, tolerance = over.require(risk.dimension), positive("tolerance", tolerance)
    start = over.project(np.zeros(p))
    if not objective.mass > 0:
        return Minimum(start, 0.0, 0.0)
    best = Best(objective, over, rounding_of(risk, over), tolerance, stationary)
    if isinstance(risk, GlmRisk) and type(risk.loss) in KINKS:
        _minimize_by_rounding(risk, objective, over, best, start, tolerance)
    elif not risk.is_smooth:
        bundle(SmoothObjective(risk, objective, over), over, best, start, tolerance)
    elif isinstance(risk, GlmRisk):
        newton(SmoothObjective(risk, objective, over), over, best, start, tolerance)
    if best.gap > tolerance:
        _last_resort(risk, objective, over, best, tolerance)
    assert best.theta is not None
    return Minimum(best.theta, best.value * objective.mass, best.gap * objective.mass, best.width)


# Smooth losses: proximal Newton


def newton(f: ObjectiveFunction, over: ConvexSet, best: Judge, theta: Array, tolerance: float) -> Array:
    """Run proximal Newton: minimize the quadratic model over C, and shorten the step until f falls.

    Return the last θ.
    """
    value, damping = f.value(theta), 0
    g = f.gradient(theta)
    for _ in range(NEWTON_STEPS):
        H = f.hessian(theta, damping)
        gap = best.offer(f, theta, g, H if damping == 0 else None)
        if gap <= tolerance:
            break
        step = _model_minimizer(over, theta, g, H, gap, tolerance) - theta
        t, ahead, found = _line_search(f, over, theta, value, step, float(g @ step))
        if not found < value:  # f is exact up to rounding, or the model promises too much
            full = over.project(theta + step)
            if best.offer(f, full, f.gradient(full)) <= tolerance or damping >= MOST_DAMPING:
                break
            damping += 2
            continue
        damping = damping + 1 if t < 0.2 else max(0, damping - (t >= 1))
        theta, value = ahead, found
        g = f.gradient(theta)
    return theta


def _line_search(
    f: ObjectiveFunction, over: ConvexSet, theta: Array, value: float, step: Array, slope: float
) -> tuple[float, Array, float]:
    """Return a multiple t of the step, the point it leads to, and f there.

    t makes f fall by a tenth of what the slope promises. A rounded loss is straight between its kinks, and steps from
    its curvature are too short there. So t may exceed 1.
    """
    t = 1.0
    while slope < 0 and t > 1e-7:
        ahead = over.project(theta + t * step)
        found = f.value(ahead)
        if found <= value + 0.1 * t * slope:
            while t >= 1 and f.width > 0:
                farther = over.project(theta + 4 * t * step)
                lower = f.value(farther)
                if not lower < min(found, value + 0.4 * t * slope):
                    break
                t, ahead, found = 4 * t, farther, lower
            return t, ahead, found
        # the minimum of the parabola through both values and the slope
        t *= max(0.1, min(0.7, -slope * t / (2 * max(found - value - slope * t, 1e-300))))
    return t, theta, value


def _model_minimizer(over: ConvexSet, theta: Array, g: Array, H: Array, gap: float, tolerance: float) -> Array:
    """Return argmin over C of ⟨g, v − θ⟩ + ½⟨v − θ, H(v − θ)⟩, accurately enough for Newton's convergence rate."""
    λ, V = np.linalg.eigh(H)
    if not λ[-1] > 0:
        return over.minimize(g) if over.is_bounded else theta - g
    λ = np.maximum(λ, 0.0) + 1e-12 * float(λ[-1])
    free: Array = theta - V @ ((V.T @ g) / λ)
    if np.isfinite(free).all() and over.contains(free, 0.0):
        return free
    if isinstance(over, L2Ball):  # (H + νI)v = Hθ − g with ν ≥ 0 such that ‖v‖ = radius
        b = λ * (V.T @ theta) - V.T @ g

        def excess(ν: float) -> float:
            return float(np.linalg.norm(b / (λ + ν))) - over.radius

        longest = float(np.linalg.norm(b)) / over.radius * (1 + 1e-9)
        if not (excess(0.0) > 0 > excess(longest)):  # inside the ball up to rounding; brentq would raise
            return over.project(V @ (b / λ))
        found = scipy.optimize.brentq(excess, 0.0, longest, xtol=1e-300, rtol=1e-14)
        return over.project(V @ (b / (λ + float(found))))
    if isinstance(over, Box):  # minimize ‖√λ Vᵀv − b‖² within the bounds
        root, (low, high) = np.sqrt(λ), over.ends(len(theta))
        b = root * (V.T @ theta) - (V.T @ g) / root
        spread = np.maximum(high - low, 1e-12)
        return over.project(scipy.optimize.lsq_linear(root[:, None] * V.T, b, (low, low + spread), method="bvls").x)
    β, v, ahead, momentum = float(λ[-1]), theta, theta, 1.0
    wanted = max(min(0.1, gap) * gap, tolerance / 10)
    for k in range(600):
        slope = g + H @ (ahead - theta)
        new = over.project(ahead - slope / β)
        if (ahead - new) @ (new - v) > 0:  # the momentum points uphill: start again without it
            momentum = 1.0
        faster = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / faster * (new - v)
        v, momentum = new, faster
        if k % CHECKED == CHECKED - 1 and over.is_bounded:
            slope = g + H @ (v - theta)
            if float(slope @ (v - over.minimize(slope))) <= wanted:
                break
    return v


def _minimize_by_rounding(
    risk: GlmRisk, objective: Any, over: ConvexSet, best: Best, theta: Array, tolerance: float
) -> None:
    """Minimize a loss with kinks: Newton's method on ever narrower roundings, each from the last one's minimizer.

    The widths shrink to h ≤ tolerance even if a wider rounding has already proven enough, because on other data its
    slopes may not be subgradients.
    """
    h, before = 1.0, theta
    while h > NARROWEST:
        start = over.project(theta + NARROWER * (theta - before))  # for small h the minimizers are linear in h
        before = theta
        theta = newton(RoundedObjective(risk, objective, over, h), over, best, start, max(tolerance / 4, h / 1000))
        if h <= tolerance and (best.gap <= tolerance or not over.is_bounded):
            return
        h *= NARROWER


# Last resort: slow methods with proven rates, FISTA for smooth losses and ellipsoids for the others


def _last_resort(risk: Risk, objective: Any, over: ConvexSet, best: Best, tolerance: float) -> None:
    """Improve the best point by slow methods with proven rates, within a limit on their work."""
    f = SmoothObjective(risk, objective, over)
    start = over.project(np.zeros(risk.dimension)) if best.theta is None else best.theta
    best.offer(f, start, f.gradient(start))
    most = max(100, MOST_WORK // math.prod(risk.shape))
    if risk.is_smooth and (over.is_bounded or f.strong > 0 or math.isfinite(f.third())):
        run_fista(f, over, best, start, tolerance, min(most, QUICK_STEPS), restart=True)
    if best.gap <= tolerance or not over.is_bounded:
        return
    if risk.is_smooth:
        run_fista(f, over, best, start, tolerance, most, restart=False)
    else:
        ellipsoid(f, over, best, start, tolerance, most, risk.scale(over))
