"""Frank–Wolfe on any bounded convex set: Gaussian noise on the gradient, then the set's own linear minimizer.

Paper: Talwar, Thakurta & Zhang, *Private Empirical Risk Minimization Beyond the Worst Case: The Effect of the
Constraint Set Geometry*, Appendix B, Algorithm 5 and Theorem B.2.

Symbols: L a bound on the ℓ2 norm of one row's gradient; G_C the Gaussian width of C; Γ the curvature of the average
loss; T steps; σ the noise on a sum of gradients; μ = √T·Δ/σ what the budget allows, Δ = 2L (replace) or L (add or
remove).

Step t: s_t = argmin over C of ⟨s, Σ∇ℓ(θ_t) + b_t⟩, b_t ~ N(0, σ²I), and θ moves towards it by 2/(t+2).
E[risk] ≤ 2Γ/(T+2) + σ·G_C/n: the minimizer for the true gradient does not depend on b_t, so E⟨b_t, ·⟩ is 0 there and at
most σ·G_C at s_t. T is the same share of the T with the least bound as in ``frank_wolfe``.

Differs: the printed σ² lacks a square on L (its units are wrong) and spends log²(n/δ), although the composition of T
Gaussians is a Gaussian. The printed step 1/(T+2) does not converge. The start is the minimizer of the set's potential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hedgerow._types import Array
from hedgerow.erm.problem import Problem
from hedgerow.erm.solver import Draw, SolverPlan, public
from hedgerow.erm.solvers.frank_wolfe import best_steps, curvature, require_smooth
from hedgerow.errors import InvalidInput
from hedgerow.privacy.allowance import Amount


@dataclass(frozen=True)
class FrankWolfeGeneral:
    """Minimize the average loss over a bounded convex set with a linear minimizer.

    Parameters
    ----------
    - iterations: the number of steps. By default chosen from the bound.

    Example
    -------
    >>> result = hr.erm.frank_wolfe_general(X, y, loss=loss, over=hr.L2Ball(1.0), budget=hr.Budget(1.0, 1e-6))
    """

    iterations: int | None = None
    name: ClassVar[str] = "frank_wolfe_general"

    def plan(self, problem: Problem, amount: Amount) -> SolverPlan[None]:
        """Plan one noisy gradient per step."""
        over, p = problem.over, problem.p
        if not over.is_bounded:
            raise InvalidInput(f"The set must be bounded. Found {type(over).__name__}. Give one, such as L2Ball(1.0).")
        require_smooth(problem.loss)
        one = amount.fine_gaussian(problem.gradient_change, p)  # σ grows like √T
        scale = one.sigma * over.gaussian_width(p) / problem.n
        T, bound = best_steps(2 * curvature(problem), scale, 0.5, self.iterations)
        return SolverPlan(self, (amount.fine_gaussian(problem.gradient_change, p, T),) * T, bound, T, None)

    def run(self, problem: Problem, plan: SolverPlan[None], draw: Draw) -> Array:
        """Take the steps."""
        over, T = problem.over, plan.iterations
        theta = over.potential(problem.p).start.copy()
        with draw.bar("Frank–Wolfe", T) as tick:
            for t in range(T):
                noisy = draw.add(problem.gradient(theta)) + problem.n * problem.loss.ridge * theta
                theta += 2 / (t + 2) * (over.minimize(noisy) - theta)
                tick(t + 1)
        return theta


frank_wolfe_general = public(FrankWolfeGeneral)
