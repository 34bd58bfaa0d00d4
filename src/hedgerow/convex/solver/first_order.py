"""Minimizers that need only values and (sub)gradients.

Papers: Beck & Teboulle, *A fast iterative shrinkage-thresholding algorithm* (FISTA); Yudin & Nemirovskii 1976
(ellipsoids); Lemaréchal, Nemirovskii & Nesterov, *New variants of bundle methods* (the level bundle method).

Symbols: f, C, g as in ``public_minimum``; β smoothness, S = sup |⟨θ − θ′, ∇ℓ_x(θ)⟩|, r the radius of a ball inside C.
"""

from __future__ import annotations

import math

import numpy as np

from hedgerow import _scipy as scipy
from hedgerow._types import Array
from hedgerow.convex.sets import Box, GroupL1Ball, InterpolationBall, L1Ball, L2Ball, NuclearBall
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.convex.solver.certificate import Best
from hedgerow.convex.solver.weighted_cells import ObjectiveFunction

BUNDLE_STEPS = 400  # at most this many cuts of the bundle method
CHECKED = 10  # FISTA computes its bound once every CHECKED steps


def run_fista(
    f: ObjectiveFunction, over: ConvexSet, best: Best, theta: Array, tolerance: float, steps: int, *, restart: bool
) -> None:
    """Run FISTA with a step that only shrinks, never below 1/β.

    Without restarts its gap is at most 2β·diameter²/(k + 1)² after k steps. With restarts it is faster but has no such
    bound.
    """
    diameter = over.diameter_l2(len(theta))
    β, v, ahead, momentum = f.smoothness / 2**10, theta, theta, 1.0
    for k in range(1, steps + 1):
        value, g = f.value(ahead), f.gradient(ahead)
        while True:
            new = over.project(ahead - g / β)
            move = new - ahead
            if β >= f.smoothness or f.value(new) <= value + float(g @ move) + β / 2 * float(move @ move):
                break
            β = min(2 * β, f.smoothness)
        if restart and (ahead - new) @ (new - v) > 0:
            momentum = 1.0
        faster = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / faster * (new - v)
        v, momentum = new, faster
        if k % CHECKED == 0 or k == steps:
            best.offer(f, v, f.gradient(v))
            if not restart:
                best.keep(v, f.value(v), 2 * β * diameter**2 / (k + 1) ** 2, 0.0)
            if best.gap <= tolerance:
                return


def ellipsoid(
    f: ObjectiveFunction, over: ConvexSet, best: Best, start: Array, tolerance: float, most: int, scale: float
) -> None:
    """Cut an ellipsoid that contains C through its center, again and again.

    After k cuts some visited point is within S·(R/r)·e^(−k/2p(p+1)) of the least value, R the diameter of C and r the
    radius of a ball in C: once (vol E_k/vol C)^(1/p) < ε, the cuts have removed a part of θ* + ε(C − θ*), on which
    f ≤ f* + εS.

    The ellipsoid is center + B·ball. BBᵀ is a valid shape whatever rounding does to B.
    """
    p, R, inner = len(start), over.diameter_l2(len(start)), _inner_radius(over, len(start))
    center, B = start.copy(), np.eye(p) * R
    least, seen = math.inf, start
    shrunk = 1 - math.sqrt((p - 1) / (p + 1))
    for k in range(1, most + 1 if inner > 0 else 1):
        inside = over.project(center)
        away = center - inside
        if float(away @ away) > 1e-24 * R**2:
            cut = away
        else:
            value = f.value(inside)
            if value < least:
                least, seen = value, inside
            cut = f.gradient(inside)
            if not cut.any():  # zero is a subgradient, so this is the least value
                best.keep(inside, value, 0.0, 0.0)
                return
        q = B.T @ cut
        length = float(np.linalg.norm(q))
        if not 0 < length < math.inf:  # the ellipsoid is flatter than float64 resolves, so nothing more can be proven
            return
        q /= length
        along = B @ q
        center = center - along / (p + 1)
        B = B / 2 if p == 1 else p / math.sqrt(p**2 - 1) * (B - shrunk * np.outer(along, q))
        proven = scale * R / inner * math.exp(-k / (2 * p * (p + 1)))
        if proven <= tolerance:
            best.keep(seen, least, proven, 0.0)
            return


def _inner_radius(over: ConvexSet, p: int) -> float:
    """Return the radius of a ball inside the set, or 0 if none is known."""
    if isinstance(over, L2Ball):
        return over.radius
    if isinstance(over, L1Ball | GroupL1Ball | InterpolationBall | NuclearBall):
        return over.radius / math.sqrt(p)
    return float(np.min(np.subtract(over.high, over.low))) / 2 if isinstance(over, Box) else 0.0


def bundle(f: ObjectiveFunction, over: ConvexSet, best: Best, theta: Array, tolerance: float) -> None:
    """Run the level bundle method: project the best point onto {every cut ≤ level}.

    Any weights w ≥ 0 with Σw = 1 on the cuts prove the lower bound Σ w c + min_C ⟨Gᵀw, ·⟩ ≤ f*. Good weights are λ/Σλ
    from the dual of the projection, max over λ ≥ 0 of Σλ(c + Gθ(λ) − level) + ½‖θ(λ) − θ_best‖² with θ(λ) = P_C(θ_best
    − Gᵀλ).
    """
    if not over.is_bounded:
        g = f.gradient(theta)
        best.offer(f, theta, g)
        return
    G, c = np.empty((0, len(theta))), np.empty(0)  # the cuts f ≥ c + ⟨G, θ⟩, one per row
    least, top, center = -math.inf, math.inf, theta
    weights = np.empty(0)
    for _ in range(BUNDLE_STEPS):
        value, g = f.value(theta), f.gradient(theta)
        if value < top:
            top, center = value, theta
        G, c = np.vstack([G, g]), np.append(c, value - float(g @ theta))
        weights = np.append(weights, 0.0)
        least = max(least, value - float(g @ (theta - over.minimize(g))))
        for _ in range(60):  # raise the lower bound until the level can be reached
            best.keep(center, top, top - least, 0.0)
            if best.gap <= tolerance:
                return
            level = least + 0.3 * (top - least)
            theta, weights = _onto_level(over, center, G, c, level, weights)
            total = float(weights.sum())
            if not total > 0:
                break
            w = weights / total
            proven = float(w @ c) + float((w @ G) @ over.minimize(w @ G))
            raised = proven > least + 0.01 * (level - least)
            least = max(least, proven)
            if not raised:
                break
        if len(c) > 20 + 4 * len(theta):
            keep = np.sort(np.argsort(-weights, kind="stable")[: 10 + 2 * len(theta)])
            w = weights / max(float(weights.sum()), 1e-300)
            G, c, weights = np.vstack([G[keep], w @ G]), np.append(c[keep], w @ c), np.append(weights[keep], 0.0)


def _onto_level(over: ConvexSet, center: Array, G: Array, c: Array, level: float, start: Array) -> tuple[Array, Array]:
    """Project the center onto {every cut ≤ level} through the dual. Return the point and the multipliers λ."""

    def negative_dual(λ: Array) -> tuple[float, Array]:
        v = over.project(center - G.T @ λ)
        over_level = c + G @ v - level
        return -float(λ @ over_level) - float((v - center) @ (v - center)) / 2, -over_level

    found = scipy.optimize.minimize(
        negative_dual, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(c), options={"maxiter": 100}
    )
    λ = np.maximum(np.nan_to_num(found.x), 0.0)
    return over.project(center - G.T @ λ), λ
