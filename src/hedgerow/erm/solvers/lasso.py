"""The private lasso: least squares over an ℓ1 ball, for features and targets that are bounded one by one.

Paper: Talwar, Thakurta & Zhang, *Private Empirical Risk Minimization Beyond the Worst Case: The Effect of the
Constraint Set Geometry*, §5.3, Corollary 5.7: Algorithm 4 on the ℓ1 ball. No private algorithm has a risk that shrinks
faster than (n log n)^(−2/3) for every table (Theorem 5.8, ``research/hard_instance``).

Symbols: ½·mean (⟨x, θ⟩ − y)² over ‖θ‖₁ ≤ R, with |x|∞ ≤ row_bound and |y| ≤ label_bound. Then |ℓ'| ≤ R·row_bound +
label_bound and Γ = 4(R·row_bound)². The 2p vertices ±R·e_j are never listed.

Differs: with ``refit``, the default if δ > 0, Algorithm 4 gets half of the budget. The few features that it picks are
then public, and the other half of the budget fits their coefficients (``sparse_refit``). On tables where few features
matter, the risk is smaller by orders of magnitude. The reasons: the coefficients no longer come in steps of 2/T, and
residuals are bounded by the labels' measured size instead of the worst case. ``refit=False`` is Algorithm 4 with the
bound of its theorem. The refit has no bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hedgerow._types import Array
from hedgerow.convex.losses.families import Loss, Squared
from hedgerow.convex.sets import L1Ball
from hedgerow.erm.problem import Problem
from hedgerow.erm.rows import Norm
from hedgerow.erm.solver import Draw, SolverPlan, public
from hedgerow.erm.solvers.frank_wolfe import Picks, descend, plan_steps
from hedgerow.erm.solvers.sparse_refit import Refit, plan_refit, refit_named
from hedgerow.errors import InvalidInput
from hedgerow.privacy.allowance import Amount


@dataclass(frozen=True)
class LassoSolver:
    """Minimize least squares with ‖θ‖₁ ≤ radius. Entries of X and y are clipped to their bounds.

    Parameters
    ----------
    - radius: the bound on ‖θ‖₁.
    - iterations: the number of Frank–Wolfe steps. By default chosen from the bound.
    - refit: fit the coefficients of the chosen features once more. True by default if δ > 0.

    Example
    -------
    >>> result = hr.erm.lasso(X, y, budget=hr.Budget(1.0, 1e-6), radius=1.0)
    """

    radius: float = 1.0
    iterations: int | None = None
    refit: bool | None = None
    name: ClassVar[str] = "lasso"
    loss: ClassVar[Loss] = Squared()
    norm: ClassVar[Norm] = "linf"

    @property
    def over(self) -> L1Ball:
        """The ℓ1 ball of the radius."""
        return L1Ball(self.radius)

    def plan(self, problem: Problem, amount: Amount) -> SolverPlan[Refit | Picks]:
        """Plan Frank–Wolfe alone, or Frank–Wolfe and a refit."""
        again = not amount.budget.pure if self.refit is None else self.refit
        if again and amount.budget.pure:
            raise InvalidInput("delta must be above 0 to refit. Found 0. Give a delta, or refit=False.")
        if again:
            refit = plan_refit(problem, amount, self.iterations)
            return SolverPlan(self, refit.events, None, len(refit.picks), refit)
        event, steps = plan_steps(problem, amount, self.iterations)
        picks = (event,) * steps.iterations
        return SolverPlan(self, picks, steps.risk_bound, steps.iterations, picks)

    def run(self, problem: Problem, plan: SolverPlan[Refit | Picks], draw: Draw) -> Array:
        """Run what was planned."""
        if isinstance(plan.details, Refit):
            return refit_named(problem, plan.details, draw)
        return descend(problem, plan.details, draw)


lasso = public(LassoSolver, fixed=("loss", "over", "norm"), label_bound=1.0)
