"""The bar of a free convex answer: the largest excess risk for any table that the measurements leave possible.

Symbols: D the data and D̂ the hypothesis, as fractions on the risk's attributes; θ̂ = argmin ℓ_D̂; err(D, θ) = ℓ_D(θ)
− min ℓ_D; S the scale of the loss. Proof: docs/proofs/practical_convex.md.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.convex.bound_loss import GlmRisk
from hedgerow.convex.losses.families import Logistic, Squared
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.convex.solver.public_minimum import Minimum
from hedgerow.model.hypothesis import Hypothesis

FLATTEST = 1e-9  # smallest curvature, relative to the largest, that float64 can tell from none


class HypothesisBounds(Protocol):
    """A hypothesis with bounds on its distance from the table (``knowledge.Knowledge``)."""

    @property
    def hypothesis(self) -> Hypothesis:
        """The public model that answers come from."""
        ...

    def distance(self, names: Names, marginal: Array) -> float:
        """Return a bound on the ℓ2 distance between the true fractions and ``marginal``."""
        ...

    def variation(self, names: Names, marginal: Array) -> float:
        """Return a bound on the total variation distance between the true fractions and ``marginal``."""
        ...


def free_answer(known: HypothesisBounds, query: BoundMinimize) -> tuple[Minimum, float]:
    """Return θ̂ and a bound on its excess risk, infinite if no bound is worth stating."""
    found, marginal = query.fit_on(known.hypothesis)
    distance, variation = known.distance(query.attributes, marginal), known.variation(query.attributes, marginal)
    return found, excess_bound(query, marginal, found, distance, variation)


def excess_bound(
    query: BoundMinimize, marginal: Array, found: Minimum, distance: float, variation: float = math.inf
) -> float:
    """Bound err(D, θ̂) for every D with ‖D − D̂‖₂ ≤ distance and ‖D − D̂‖₁ ≤ 2·variation.

    Return infinity if no bound is worth stating. With f_v(x) = ℓ_x(θ̂) − ℓ_x(θ̂ + v), err = sup over v of ⟨f_v, D̂⟩ +
    ⟨f_v, D − D̂⟩. The first term is at most the solver's gap, and at most the Frank–Wolfe gap less the curvature of
    ℓ_D̂; the second is at most distance·‖f_v‖₂, where |f_v(x)| ≤ min(S, sup|φ′|·|⟨x, v⟩|). Alternatively, by
    convexity on D, err ≤ sup −⟨∇ℓ_D(θ̂), v⟩.
    """
    if query.scale is None:
        return math.inf
    bounds = [*_by_variation(query, marginal, found, variation), *_by_distance(query, marginal, found, distance)]
    found_bound = min(bounds, default=math.inf)
    return found_bound if found_bound < trivial_bound(query, found.theta) else math.inf


def _by_variation(query: BoundMinimize, marginal: Array, found: Minimum, variation: float) -> list[float]:
    """Return bounds from ⟨f, D − D̂⟩ ≤ variation·(max f − min f) ≤ 2·variation·max|f|: D and D̂ are distributions."""
    risk, over = query.risk, query.over
    assert query.scale is not None
    if not math.isfinite(variation):
        return []
    bounds = [found.gap + 2 * variation * query.scale]
    if isinstance(risk, GlmRisk):
        each = risk.losses(found.theta)
        if risk.loss.labels != "count":  # the loss is never negative, so err ≤ ℓ_D(θ̂)
            bounds.append(float((each * marginal).sum()) + variation * float(each.max() - each.min()))
        R = min(over.diameter_l2(risk.dimension), over.radius_l2(risk.dimension) + float(np.linalg.norm(found.theta)))
        longest = risk.features.row_norm_bound
        a = 2 * variation * longest * risk.slope_bound(over)  # |f_v| ≤ sup|φ′|·‖x‖·‖v‖
        bounds.append(found.gap + a * R)
        if not risk.outputs:
            r = np.abs(risk.loss.derivative(risk.predictor(found.theta), risk.label()) * risk.mask())
            slope = risk.objective(marginal).gradient(found.theta)
            uphill = float(slope @ (found.theta - over.minimize(slope)))
            bounds.append(uphill + 2 * variation * longest * float(r.max()) * R)
            if risk.is_smooth:
                H = _curvature(risk, marginal, found.theta, R)
                bounds.append(uphill + _sup_quadratic(a, np.eye(H.shape[0]), H, R))
    return bounds


def _by_distance(query: BoundMinimize, marginal: Array, found: Minimum, distance: float) -> list[float]:
    """Return bounds from ⟨f, D − D̂⟩ ≤ distance·‖f‖₂."""
    risk, over = query.risk, query.over
    assert query.scale is not None
    if not math.isfinite(distance):
        return []
    bounds = [found.gap + distance * math.sqrt(marginal.size) * query.scale]
    if isinstance(risk, GlmRisk):
        if risk.loss.labels != "count":  # the loss is never negative, so err ≤ ℓ_D(θ̂)
            each = risk.losses(found.theta)
            bounds.append(float((each * marginal).sum()) + distance * float(np.linalg.norm(each - each.mean())))
        C = risk.features.gram(_per_feature(risk, np.ones(risk.shape)))  # Σ x xᵀ over the cells, each once
        R = min(over.diameter_l2(risk.dimension), over.radius_l2(risk.dimension) + float(np.linalg.norm(found.theta)))
        a = distance * risk.slope_bound(over)
        bounds.append(found.gap + a * R * _root_of_largest(C))
        if not risk.outputs:
            r = risk.loss.derivative(risk.predictor(found.theta), risk.label()) ** 2
            G = risk.features.gram(_per_feature(risk, np.broadcast_to(r, risk.shape)))  # Σ g gᵀ without the ridge
            slope = risk.objective(marginal).gradient(found.theta)
            uphill = float(slope @ (found.theta - over.minimize(slope)))
            bounds.append(uphill + distance * R * _root_of_largest(G))
            if risk.is_smooth:
                bounds.append(uphill + _sup_quadratic(a, C, _curvature(risk, marginal, found.theta, R), R))
    return bounds


def trivial_bound(query: BoundMinimize, theta: Array) -> float:
    """Return the bound on err that holds whatever the data: S, and the largest loss at θ̂ if no loss is negative."""
    assert query.scale is not None
    if isinstance(query.risk, GlmRisk) and query.risk.loss.labels != "count":
        return min(query.scale, float(query.risk.losses(theta).max()))
    return query.scale


def coefficient_bounds(query: BoundMinimize, theta: Array, error: float, least: Array | None) -> Array | None:
    """Bound the distance of each entry of θ from that of the minimizer θ* on the data, given err(D, θ) ≤ ``error``.

    Return None where nothing bounds it. No direction from θ* into the set leads down, so ℓ_D(θ) ≥ ℓ_D(θ*) + ½vᵀHv for
    v = θ − θ*. Hence vᵀHv ≤ 2·error and |v_j| ≤ √(2·error·(H⁻¹)_jj). H is the strong convexity of the loss, and for
    squared loss Σ D(x)·x xᵀ besides. That sum only grows with D, so it is taken at ``least``, which is below every
    cell's true fraction.
    """
    risk, over = query.risk, query.over
    if not (math.isfinite(error) and isinstance(risk, GlmRisk)):
        return None
    H = risk.strong_convexity(over) * np.eye(risk.dimension)
    if type(risk.loss) is Squared and least is not None:
        H = risk.loss.ridge * np.eye(risk.dimension) + risk.features.gram(_per_feature(risk, least))
    λ, V = np.linalg.eigh(H)
    if not λ[0] > FLATTEST * max(float(λ[-1]), 1e-300):
        return None
    reach = np.sqrt(2 * error * ((V**2) / (λ * (1 - 1e-9))).sum(axis=1))
    widest = over.diameter_l2(risk.dimension) if over.is_bounded else math.inf
    return None if float(reach.min()) >= widest else np.minimum(reach, widest)


def _per_feature(risk: GlmRisk, weights: Array) -> Array:
    """Sum weights over the cells, 0 outside ``where``, to the features' own cells."""
    objective = risk.objective(weights)
    return objective.collect(objective.weights)


def _curvature(risk: GlmRisk, marginal: Array, theta: Array, reach: float) -> Array:
    """Return H with ℓ_D̂(θ̂ + v) ≥ ℓ_D̂(θ̂) + ⟨∇, v⟩ + ½vᵀHv for ‖v‖ ≤ reach.

    Logistic: φ(z + d) − φ(z) − φ′(z)d ≥ φ″(z)(e^{−|d|} + |d| − 1) ≥ φ″(z)d²/(2 + |d|), as |φ‴| ≤ φ″.
    """
    p = risk.features.dimension
    if type(risk.loss) not in (Squared, Logistic):
        return risk.loss.ridge * np.eye(p)
    kept = 1.0 if type(risk.loss) is Squared else 2 / (2 + reach * risk.features.row_norm_bound)
    ridge = risk.loss.ridge * np.eye(p)
    hessian: Array = kept * (risk.objective(marginal).hessian(theta) - ridge) + ridge
    return hessian


def _sup_quadratic(a: float, C: Array, H: Array, reach: float) -> float:
    """Bound sup over ‖v‖ ≤ reach of a·√(vᵀCv) − ½vᵀHv by a√q ≤ κ/2 + a²q/(2κ), for the best of many κ."""
    best = widest = a * reach * _root_of_largest(C)
    for κ in widest * np.geomspace(1e-4, 1.0, 13) if widest > 0 else ():  # widest is 0 for a set of one point
        excess = float(np.linalg.eigvalsh(a * a / κ * C - H)[-1])
        best = min(best, κ / 2 + reach**2 / 2 * max(0.0, excess))
    return best


def _root_of_largest(A: Array) -> float:
    """Return the square root of the largest eigenvalue."""
    return math.sqrt(max(0.0, float(np.linalg.eigvalsh(A)[-1])))
