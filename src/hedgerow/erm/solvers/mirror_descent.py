"""Noisy mirror descent: the risk of a constrained minimum, at the price of the set's Gaussian width.

Paper: Talwar, Thakurta & Zhang "Private empirical risk minimization beyond the worst case", Algorithm 1 (A_Noise-MD),
Theorem 3.2 and §3.2; Appendix A for strong convexity.

Symbols: f the average loss; L the ℓ2 bound on a row's gradient; Ψ, Q, G_Q, D as in ``potentials``; σ the noise on a sum
of gradients, T steps; B² = (σ/n)²(G_Q² + ‖Q‖₂²)/T; μ what the budget allows (``allowance``).

Privacy. One neighbour moves the sum of gradients by at most 2L in ℓ2 (L if a row is added or removed). Every step
releases that sum with noise N(0, σ²I), and everything else is a function of what was released. So T steps are one
Gaussian mechanism of sensitivity 2L√T, and σ = 2L√T/μ. The n, T and step sizes in use do not depend on the data.

Risk. With D/τ + τB²/2 at its best, τ = √(2D)/B, the expected excess is about √(2D)·B = 2L·√(2D(G_Q² + ‖Q‖₂²))/(nμ), of
order G_C·L·log(1/δ)^½/(nε). The bound in the result has the exact constants of the schedule that is run. With a ridge Δ
it is about 2B²/Δ, of order 1/n².

Differs: if the loss is smooth, steps are taken by accelerated dual averaging (``descent``). The noise of T steps grows
with √T, and acceleration needs only the square root of as many steps. The start is argminΨ, not "arbitrary": entropy at
a vertex would be infinitely far. T is not the paper's n²ε²/…, which only serves to reduce the term G²/T of losses with
kinks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hedgerow._types import Array
from hedgerow.convex.sets import L1Ball
from hedgerow.convex.sets.potentials import Entropy, Euclidean, HyperbolicEntropy, Potential
from hedgerow.erm.problem import Problem, require_steps
from hedgerow.erm.solver import Draw, SolverPlan, public
from hedgerow.erm.solvers.descent import Schedule, Terms, descend, schedule
from hedgerow.errors import InvalidInput
from hedgerow.privacy.allowance import Amount

MOST_STEPS = 1000  # a schedule has at most this many steps


@dataclass(frozen=True)
class MirrorDescent:
    """Minimize the average loss over a bounded set by noisy gradients.

    Parameters
    ----------
    - iterations: the number of steps. By default the fewest with nearly the best bound.
    - potential: the mirror potential. By default that of the set.

    Example
    -------
    >>> result = hr.erm.mirror_descent(X, y, loss=loss, over=hr.L2Ball(1.0), budget=hr.Budget(1.0, 1e-6))
    """

    iterations: int | None = None
    potential: Potential | None = None
    name: ClassVar[str] = "mirror_descent"

    def plan(self, problem: Problem, amount: Amount) -> SolverPlan[Schedule]:
        """Plan one noisy gradient per step."""
        steps = schedule_of(problem, self._potential(problem), amount, self.iterations)
        event = amount.fine_gaussian(problem.gradient_change, problem.p, steps.count)
        return SolverPlan(self, (event,) * steps.count, steps.bound, steps.count, steps)

    def run(self, problem: Problem, plan: SolverPlan[Schedule], draw: Draw) -> Array:
        """Take the steps."""
        steps, n = plan.details, problem.n
        ridge = problem.loss.ridge - steps.ridge  # a ridge that the steps do not handle is part of the gradient

        def gradient(theta: Array) -> Array:
            return draw.add(problem.gradient(theta)) / n + ridge * theta

        with draw.bar("mirror descent", steps.count) as tick:
            return descend(gradient, self._potential(problem), steps, tick)

    def _potential(self, problem: Problem) -> Potential:
        return potential_of(problem) if self.potential is None else self.potential


def potential_of(problem: Problem) -> Potential:
    """Return the potential of the set. Refuse an unbounded set."""
    if not problem.over.is_bounded:
        raise InvalidInput(
            "over must be a bounded set. Found no constraint. Give one such as L2Ball(radius), or use "
            "regularised_output_perturbation."
        )
    return problem.over.potential(problem.p)


def schedule_of(problem: Problem, potential: Potential, amount: Amount, iterations: int | None = None) -> Schedule:
    """Return the steps with their weights and bound, from public facts alone."""
    one_step = amount.fine_gaussian(problem.gradient_change, problem.p).sigma / problem.n
    terms = terms_of(problem, potential, one_step**2 * (potential.norm_width**2 + potential.norm_radius_l2**2))
    return schedule(terms, MOST_STEPS, None if iterations is None else require_steps(iterations))


def terms_of(problem: Problem, potential: Potential, noise: float) -> Terms:
    """Return the numbers on which a schedule depends, for noise B² of the gradient if there were only one step."""
    row, Q2, ridge = row_dual_norm(problem, potential), potential.norm_radius_l2, problem.loss.ridge
    composite = isinstance(potential, Euclidean)  # Euclidean steps handle the ridge; otherwise it is in the gradient
    return Terms(
        spread=potential.range,
        noise=noise,
        smoothness=problem.loss.smoothness * row**2 + (0.0 if composite else ridge) * Q2**2,
        lipschitz=problem.slope_bound * row + ridge * Q2 * problem.over.radius_l2(problem.p),
        ridge=ridge if composite else 0.0,
    )


def row_dual_norm(problem: Problem, potential: Potential) -> float:
    """Return a bound on ‖x‖_{Q*} = max over Q of ⟨x, ·⟩: ‖x‖∞ if Q is an ℓ1 ball, and always at most ‖Q‖₂·‖x‖₂."""
    l1 = isinstance(potential, (Entropy, HyperbolicEntropy)) or (
        isinstance(problem.over, L1Ball) and not isinstance(potential, Euclidean)
    )
    return min(problem.row_bound if l1 else math.inf, problem.row_l2 * potential.norm_radius_l2)


def least_risk(problem: Problem, amount: Amount) -> float:
    """Return the bound of many steps, with the set's own potential."""
    Ψ = potential_of(problem)
    ridge = problem.loss.ridge if isinstance(Ψ, Euclidean) else 0.0  # only Euclidean steps profit from the ridge
    change = problem.budget.gradient(1.0)
    return risk_bound(problem.n, amount.mu, problem.lipschitz, Ψ, sensitivity=change, ridge=ridge)


def risk_bound(
    n: int, mu: float, lipschitz: float, potential: Potential, *, sensitivity: float = 2.0, ridge: float = 0.0
) -> float:
    """Return the limit of the bound for many steps.

    It is √(2D)·B, or with a ridge the least of (D + 2B²(√(1+ΔA) − 1)²/Δ²)/A over A.
    B² = (sensitivity·lipschitz/(n·mu))²(G_Q² + ‖Q‖₂²). The sensitivity is 2 if rows are replaced, else 1.
    """
    D = potential.range
    B2 = (sensitivity * lipschitz / (n * mu)) ** 2 * (potential.norm_width**2 + potential.norm_radius_l2**2)
    if ridge == 0:
        return math.sqrt(2 * D * B2)
    A = math.sqrt(D / B2) * np.geomspace(1e-2, 1e12, 400)
    return float(((D + 2 * B2 * (np.sqrt(1 + ridge * A) - 1) ** 2 / ridge**2) / A).min())


mirror_descent = public(MirrorDescent)
