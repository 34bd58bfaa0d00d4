"""Objective perturbation: tilt the objective at random, minimize it, and release the minimizer.

Papers: Talwar, Thakurta & Zhang "Private empirical risk minimization beyond the worst case", Algorithm 2; Kifer, Smith
& Thakurta "Private convex empirical risk minimization and high-dimensional regression"; Iyengar et al. "Towards
practical differentially private convex optimization" (approximate minima).

Symbols: θ̂ = argmin over C of Σ φ(⟨x, θ⟩, y) + (Λ/2)‖θ‖² + ⟨b, θ⟩, b ~ N(0, σ²I); L bounds |φ'|·‖x‖, λ bounds φ''·‖x‖²;
g the distance up to which θ̂ is computed.

Privacy: ``perturbed_objective`` gives the σ that the tilt needs and the noise that hides a distance of g. It checks
both when they are charged (docs/proofs/erm_objective_perturbation.md).

Risk: let G be the Gaussian width of C and R = ‖C‖₂. Then E f(θ̂) − min over C of f ≤ (ΛR²/2 + min(pσ²/(2Λ), σG))/n. The
last noise, of scale σ_h, moves the projected point by at most σ_h√p, and f by at most L times that. The distance g adds
(Λ/2n)·g². Without a set, the bound compares with the best θ of ‖θ‖₂ ≤ ``radius``, and the last noise adds λ/2 times its
variance.

Differs: the printed σ suits neither kind of neighbours and leaves nothing of ε to the Jacobian, so it is not (ε, δ)
private. Minimizing without the set and projecting afterwards would be just as private, but such a point may be far from
the best of the set, however many rows there are.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hedgerow._checks import positive
from hedgerow._types import Array
from hedgerow.erm.problem import Problem, require_here, typical_radius
from hedgerow.erm.solver import Draw, SolverPlan, public
from hedgerow.erm.solvers.minimum import MinimumTarget, minimum, require_projection, require_smooth, rounding_distance
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Neighbours
from hedgerow.privacy.conversion import gaussian_mu
from hedgerow.privacy.events import Gaussian, PerturbedObjective, grid_at_most
from hedgerow.privacy.perturbed_objective import for_the_tilt, hiding_mu, noise_scale

_NEAR = 1e-8  # distance up to which the minimum is computed, as a share of σ/Λ, without a set
_SMALL = 0.01  # share of the bound that hiding this distance may take within a set, if rounding allows it


@dataclass(frozen=True)
class ObjectivePerturbation:
    """Minimize a randomly tilted objective. It needs one draw of noise and works for smooth losses only.

    Parameters
    ----------
    - radius: the ‖θ‖₂ for which the ridge is chosen. By default that of the set. Without a set, the bound on the risk
      compares with the best θ of at most this norm.

    Example
    -------
    >>> result = hr.erm.objective_perturbation(X, y, loss=loss, over=hr.L2Ball(1.0), budget=hr.Budget(1.0, 1e-6))
    """

    radius: float | None = None
    name: ClassVar[str] = "objective_perturbation"

    def plan(self, problem: Problem, amount: Amount) -> SolverPlan[MinimumTarget]:
        """Choose the ridge, the tilt and the noise that hides the distance to the minimum."""
        require_here(problem, self.name)
        require_smooth(problem, self.name)
        require_projection(problem, self.name)
        ε, δ = amount.approximate()
        reach = positive("radius", typical_radius(problem) if self.radius is None else self.radius)
        μ = hiding_mu(ε, δ)
        Λ, σ = weight_of(problem, ε, δ, reach)
        over, p, own = problem.over, problem.p, problem.n * problem.loss.ridge
        inside = over.is_bounded
        bound = risk_bound(
            problem.n, p, typical_radius(problem) if inside else reach, Λ - own, σ, own, width_of(problem)
        )
        tilt = Gaussian(problem.gradient_change, σ, grid_at_most(σ * (2.0**-39 if inside else 2.0**-32)))
        rounded = math.sqrt(p) * tilt.grid / (2 * Λ)  # the most by which drawing b on a grid moves the minimum
        near = min(_NEAR * σ / Λ, _SMALL * bound / hidden_risk(problem, 2 / μ) if inside else math.inf)
        longest = σ * (math.sqrt(p) + beyond(ε, δ)) if inside else 0.0
        g = near + rounding_distance(problem, over, Λ, longest) + rounded
        apart = 2 * g * 1.001
        hide = Gaussian(apart, apart / μ, grid_at_most(g * 1e-3 / math.sqrt(p)))
        steps = over.diameter_l2(p) * math.sqrt(p) * tilt.grid / 2 if inside else 0.0  # the grid's addition to σG
        bound += hidden_risk(problem, hide.sigma) + (Λ * g**2 / 2 + steps) / problem.n
        event = PerturbedObjective(ε, δ, problem.smoothness / Λ, tilt, hide)
        return SolverPlan(self, (event,), bound, 1, MinimumTarget(Λ, g - rounded))

    def run(self, problem: Problem, plan: SolverPlan[MinimumTarget], draw: Draw) -> Array:
        """Draw the tilt, minimize, hide the distance by noise, and project onto the set."""
        b = draw.add(np.zeros(problem.p))
        found = minimum(problem, problem.over, plan.details.weight, b, plan.details.distance)
        return problem.over.project(draw.add(found))


def beyond(epsilon: float, delta: float) -> float:
    """Return a t, at least 12, such that the event ‖b‖ > σ(√p + t) costs at most 10^-9·δ.

    The event has probability at most e^(−t²/2) and costs (1 + e^ε)·e^(−t²/2).
    """
    return max(12.0, math.sqrt(2 * (math.log(2e9) - math.log(delta) + epsilon)))


def width_of(problem: Problem) -> float:
    """Return G, the Gaussian width of the set, which is infinite without a set."""
    return problem.over.gaussian_width(problem.p)


def hidden_risk(problem: Problem, sigma: float) -> float:
    """Return the risk that Gaussian noise on a point adds.

    It is (L + Δ‖C‖₂)·σ√p if the point is projected onto a set, and (λ + pΔ)·σ²/2 without one.
    """
    Δ, p = problem.loss.ridge, problem.p
    if not problem.over.is_bounded:
        return (problem.smoothness + Δ * p) * sigma**2 / 2
    return (problem.lipschitz + Δ * problem.over.radius_l2(p)) * sigma * math.sqrt(p)


def weight_of(problem: Problem, epsilon: float, delta: float, radius: float) -> tuple[float, float]:
    """Return (Λ, σ): the weight on the sum with the best bound, and the noise that it needs."""
    λ, over = problem.smoothness, problem.over
    # within a set, hiding the rounding error of the minimum costs about this much, times 1/Λ
    hiding = (
        λ * hidden_risk(problem, 2 * rounding_distance(problem, over, λ) / hiding_mu(epsilon, delta))
        if over.is_bounded
        else 0.0
    )
    return _best_weight(
        *for_the_tilt(epsilon, delta), λ, problem.lipschitz, problem.n, problem.p,
        problem.n * problem.loss.ridge, radius, width_of(problem), hiding, problem.budget.neighbours,
    )  # fmt: skip


@functools.lru_cache(maxsize=64)
def _best_weight(
    ε: float, δ: float, λ: float, L: float, n: int, p: int, given: float, radius: float, width: float, hiding: float,
    neighbours: Neighbours,
) -> tuple[float, float]:  # fmt: skip
    """Return (Λ, σ) with the best bound.

    ``given`` is the weight of the loss's own ridge. It is already part of the objective, so it adds no bias.
    """
    least = max(given, λ / math.expm1(0.9 * ε))  # leaves a tenth of ε to the tilt
    twice = 2.0 if neighbours == "replace" else 1.0

    def rough(Λ: float) -> float:  # replacing a row costs nearly as much as a gradient of twice the size
        σ = twice * L / gaussian_mu(ε - math.log1p(λ / Λ), δ / 2)
        return risk_bound(n, p, radius, Λ - given, σ, given, width) + hiding / Λ

    Λ = min([least, *(least + λ / math.expm1(ε) * np.geomspace(1e-2, 1e6, 150)).tolist()], key=rough)
    return Λ, noise_scale(ε, δ, λ, L, Λ, neighbours)


def risk_bound(
    n: int, p: int, radius: float, weight: float, sigma: float, ridge: float = 0.0, width: float = math.inf
) -> float:
    """Return (ΛR²/2 + min(pσ²/(2(Λ + ridge)), σG))/n.

    ``weight`` is Λ, ``width`` is G, and ``ridge`` is the loss's own ridge on the sum.
    """
    return (weight * radius**2 / 2 + min(p * sigma**2 / (2 * (weight + ridge)), sigma * width)) / n


objective_perturbation = public(ObjectivePerturbation)
