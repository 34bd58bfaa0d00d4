"""Objective perturbation: tilt the objective at random, minimise it, release the minimum.

Papers: Talwar, Thakurta & Zhang "Private empirical risk minimization beyond the worst case", Algorithm 2; Kifer, Smith &
Thakurta "Private convex empirical risk minimization and high-dimensional regression"; Iyengar et al. "Towards practical
differentially private convex optimization" (approximate minima).

Symbols: θ̂ = argmin Σ φ(⟨x, θ⟩, y) + (Λ/2)‖θ‖² + ⟨b, θ⟩, b ~ N(0, σ²I); L bounds |φ'|·‖x‖, λ bounds φ''·‖x‖²; g the
distance up to which θ̂ is computed.

Privacy: `perturbed_objective` has what σ the tilt needs and what noise hides a distance of g, and checks both when they are
charged (docs/proofs/erm_objective_perturbation.md).

Risk: E f(θ̂) − f(u) ≤ (Λ‖u‖²/2 + pσ²/(2Λ))/n for every u, and the last noise adds λ/2 times its variance; Λ is the one with
the best bound at ‖u‖ = `radius`. It is of the minimum before it is projected to `over`.

Differs: the printed σ is for neither kind of neighbours and leaves nothing of ε to the Jacobian, so it is not (ε, δ)
private. The set is reached by projecting afterwards, not within the minimisation.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hedgerow._checks import positive
from hedgerow._types import Array
from hedgerow.convex.sets import Unconstrained
from hedgerow.erm.problem import Problem, require_here, usual_radius
from hedgerow.erm.solver import Draw, Plan, public
from hedgerow.erm.solvers.minimum import Target, minimum, require_smooth, rounding
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Neighbours
from hedgerow.privacy.conversion import gaussian_mu
from hedgerow.privacy.events import Gaussian, PerturbedObjective, grid_at_most
from hedgerow.privacy.perturbed_objective import for_the_tilt, hiding_mu, noise_scale


@dataclass(frozen=True)
class ObjectivePerturbation:
    """θ by a tilted objective: one draw of noise, however many steps its minimum takes. Smooth losses only.

    ``radius``: the ‖θ‖₂ at which the bound is best, the set's unless given.
    """

    radius: float | None = None
    name: ClassVar[str] = "objective_perturbation"

    def plan(self, problem: Problem, amount: Amount) -> Plan[Target]:
        require_here(problem, self.name)
        require_smooth(problem, self.name)
        ε, δ = amount.approximate()
        reach = positive("radius", usual_radius(problem) if self.radius is None else self.radius)
        Λ, σ, bound = weight_of(problem, ε, δ, reach)
        tilt = Gaussian(problem.gradient_change, σ, grid_at_most(σ * 2.0**-32))
        rounded = math.sqrt(problem.p) * tilt.grid / (2 * Λ)  # how far drawing b on a grid can move the minimum
        g = 1e-8 * σ / Λ + rounding(problem, Unconstrained(), Λ) + rounded
        apart = 2 * g * 1.001
        hide = Gaussian(apart, apart / hiding_mu(ε, δ), grid_at_most(g * 1e-3 / math.sqrt(problem.p)))
        bound += (problem.smoothness + problem.loss.ridge * problem.p) * hide.sigma**2 / 2
        event = PerturbedObjective(ε, δ, problem.smoothness / Λ, tilt, hide)
        return Plan(self, (event,), bound, 1, Target(Λ, g - rounded))

    def run(self, problem: Problem, plan: Plan[Target], draw: Draw) -> Array:
        b = draw.add(np.zeros(problem.p))
        found = minimum(problem, Unconstrained(), plan.details.weight, b, plan.details.distance)
        return problem.over.project(draw.add(found))


def weight_of(problem: Problem, epsilon: float, delta: float, radius: float) -> tuple[float, float, float]:
    """(Λ, σ, bound): the weight on the sum with the best bound, the noise it needs, and the bound."""
    return _best_weight(
        *for_the_tilt(epsilon, delta), problem.smoothness, problem.lipschitz, problem.n, problem.p,
        problem.n * problem.loss.ridge, radius, problem.budget.neighbours,
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


def risk_bound(n: int, p: int, radius: float, weight: float, sigma: float, ridge: float = 0.0) -> float:
    """(ΛR²/2 + pσ²/(2(Λ + ridge)))/n, `weight` = Λ and `ridge` on the sum; the ridge is the loss's own."""
    return (weight * radius**2 / 2 + p * sigma**2 / (2 * (weight + ridge))) / n


objective_perturbation = public(ObjectivePerturbation)
