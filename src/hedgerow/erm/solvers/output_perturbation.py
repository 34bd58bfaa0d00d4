"""Output perturbation: find the minimum, then add noise for the distance by which a neighbour can move it.

Papers: Chaudhuri, Monteleoni & Sarwate "Differentially private empirical risk minimization"; Jain & Thakurta "(Near)
dimension independent risk bounds for differentially private learning" (the regularized form); Ullman "Private
multiplicative weights beyond linear queries", Theorems 4.2–4.6, whose oracles these are.

Symbols: θ* = argmin over C of Σ φ(⟨x, θ⟩, y) + (Λ/2)‖θ‖²; L bounds |φ'|·‖x‖, λ bounds φ''·‖x‖²; g the distance up to
which θ* is computed; μ what the budget allows (``allowance``).

Privacy. The sums of two neighbours differ by a function whose gradient is at most 2L (L if a row is added or removed).
Each sum is Λ-strongly convex, so their minima over C are at most 2L/Λ apart, and the computed ones at most 2L/Λ + 2g.
This is one Gaussian mechanism with σ = (2L/Λ + 2g)/μ. For a loss with ridge Δ the weight is Λ = nΔ, with the stated n
if the true one is private.

Risk.
- Constrained: (L + Δ·max‖θ‖)·σ√p, because the loss is Lipschitz and projecting onto C moves no farther than the noise.
- Unconstrained: the gradient vanishes at θ*, so (λ + Δ)·pσ²/2, of order p·L²/(Δ²n²μ²).
- Regularized GLM: a score moves by ⟨x, noise⟩ ~ N(0, σ²‖x‖²) whatever p is. So the risk is at most ΛR²/(2n) +
  min(λσ²/2, √(2/π)·Lσ) with σ ∝ 1/Λ, and Λ is the one with the best bound. It is free of dimension as long as θ is not
  projected.

Differs: noise is Gaussian with the analytic calibration; Chaudhuri et al. draw from exp(−ε‖·‖).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar

from hedgerow._checks import positive
from hedgerow._types import Array
from hedgerow.erm.problem import Problem, require_here, typical_radius
from hedgerow.erm.solver import Draw, SolverPlan, public
from hedgerow.erm.solvers.minimum import MinimumTarget, minimum, require_projection, require_smooth, rounding_distance
from hedgerow.errors import InvalidInput
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.events import Gaussian

_NEAR = 1e-4  # distance up to which the minimum is computed, as a share of 2L/Λ
FLATTEST = 1e-8  # least ridge, as a share of the smoothness: with less, a proven minimum would take millions of steps


@dataclass(frozen=True)
class OutputPerturbation:
    """Minimize a loss with a ridge (``loss.ridge`` > 0) over the set, add noise, and project back onto the set.

    It has no options of its own.

    Example
    -------
    >>> loss = hr.losses.Logistic(ridge=0.1)
    >>> result = hr.erm.output_perturbation(X, y, loss=loss, over=hr.L2Ball(1.0), budget=hr.Budget(1.0, 1e-6))
    """

    name: ClassVar[str] = "output_perturbation"

    def plan(self, problem: Problem, amount: Amount) -> SolverPlan[MinimumTarget]:
        """Plan one draw of Gaussian noise on the minimum."""
        loss = problem.loss
        require_here(problem, self.name)
        require_smooth(problem, self.name)
        require_projection(problem, self.name)
        if loss.strong_convexity <= 0:
            raise InvalidInput(
                "loss must be strongly convex for output_perturbation. Found ridge = 0. Give the loss a ridge, or use "
                "regularised_output_perturbation."
            )
        if not is_round(problem):
            raise InvalidInput(
                f"ridge must be at least {FLATTEST * problem.smoothness:.3g}, {FLATTEST:g} of the loss's curvature, "
                f"for output_perturbation. Found {loss.ridge!r}. Raise it, lower row_bound, or use another solver."
            )
        event, target = _noise_on_minimum(problem, problem.n * loss.strong_convexity, amount)
        return SolverPlan(self, (event,), risk_bound(problem, event.sigma), 1, target)

    def run(self, problem: Problem, plan: SolverPlan[MinimumTarget], draw: Draw) -> Array:
        """Find the minimum, add noise, and project."""
        return problem.over.project(_noisy_minimum(problem, plan.details, draw))


@dataclass(frozen=True)
class RegularizedOutputPerturbation:
    """Minimize a Lipschitz GLM without a constraint, with a risk free of dimension.

    Parameters
    ----------
    - radius: the ‖θ‖₂ of the parameters with which the bound compares.

    Example
    -------
    >>> budget = hr.Budget(1.0, 1e-6)
    >>> result = hr.erm.regularised_output_perturbation(X, y, loss=loss, over=None, budget=budget)
    """

    radius: float | None = None
    name: ClassVar[str] = "regularised_output_perturbation"

    def plan(self, problem: Problem, amount: Amount) -> SolverPlan[MinimumTarget]:
        """Choose the ridge with the best bound, and plan one draw of Gaussian noise on the minimum."""
        require_here(problem, self.name)
        if problem.over.is_bounded:
            raise InvalidInput(
                "over must be left out for regularised_output_perturbation, whose risk is free of dimension only "
                f"where θ is not projected. Found {type(problem.over).__name__}. Drop it, or use output_perturbation "
                "or mirror_descent."
            )
        require_smooth(problem, self.name)
        reach = positive("radius", typical_radius(problem) if self.radius is None else self.radius)
        Λ, bound = regularized_weight(problem, amount.mu, reach)
        event, target = _noise_on_minimum(problem, Λ, amount)
        return SolverPlan(self, (event,), bound, 1, target)

    def run(self, problem: Problem, plan: SolverPlan[MinimumTarget], draw: Draw) -> Array:
        """Find the minimum and add noise."""
        return _noisy_minimum(problem, plan.details, draw)


def is_round(problem: Problem) -> bool:
    """Return True if a minimum can be proven in reasonable time, whatever the rows are. A public fact."""
    return problem.loss.strong_convexity >= FLATTEST * problem.smoothness


def risk_bound(problem: Problem, sigma: float) -> float:
    """Return (L + Δ‖C‖₂)·σ√p within a set, (λ + Δ)·pσ²/2 without one."""
    Δ, p = problem.loss.strong_convexity, problem.p
    if not problem.over.is_bounded:
        return (problem.smoothness + Δ) * p * sigma**2 / 2
    return (problem.lipschitz + Δ * problem.over.radius_l2(p)) * sigma * math.sqrt(p)


def regularized_weight(problem: Problem, mu: float, radius: float) -> tuple[float, float]:
    """Return (Λ, bound): the weight on the sum of losses with the best bound ΛR²/(2n) + min(λσ²/2, √(2/π)·Lσ)."""
    given, n = problem.n * problem.loss.ridge, problem.n
    moved = problem.gradient_change * (1 + 2 * _NEAR) / mu  # σ·Λ

    def bound(log_weight: float) -> float:
        extra = math.exp(log_weight)
        σ = moved / (extra + given)
        risk = min(problem.smoothness * σ**2 / 2, math.sqrt(2 / math.pi) * problem.lipschitz * σ)
        # the loss's own ridge is not a GLM, so its part of the risk depends on the dimension
        return extra * radius**2 / (2 * n) + risk + problem.loss.ridge * problem.p * σ**2 / 2

    grid = np.linspace(math.log(problem.smoothness) - 20, math.log(problem.smoothness * n) + 10, 400)
    i = int(np.argmin([bound(v) for v in grid]))
    found = minimize_scalar(bound, bounds=(grid[max(i - 1, 0)], grid[min(i + 1, grid.size - 1)]), method="bounded")
    return math.exp(float(found.x)) + given, float(found.fun)


def _noise_on_minimum(problem: Problem, weight: float, amount: Amount) -> tuple[Gaussian, MinimumTarget]:
    """Return the noise that the whole amount buys, and the distance within which the minimum must be found."""
    apart = problem.gradient_change / weight  # 2L/Λ, or L/Λ
    g = _NEAR * apart / 2 + rounding_distance(problem, problem.over, weight)
    return amount.fine_gaussian(apart + 2 * g, problem.p), MinimumTarget(weight, g)


def _noisy_minimum(problem: Problem, target: MinimumTarget, draw: Draw) -> Array:
    """Return the minimum with noise."""
    return draw.add(minimum(problem, problem.over, target.weight, np.zeros(problem.p), target.distance))


output_perturbation = public(OutputPerturbation)
regularised_output_perturbation = public(RegularizedOutputPerturbation, over=None)
