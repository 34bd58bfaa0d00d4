"""Choice of a solver: the best one in practice if that is known, else the one whose theorem promises the least risk.

The choice uses public quantities only. ``whitened_descent`` is chosen for up to 500 features, a smooth loss or the
hinge, and no constraint on θ other than an ℓ2 bound. Its noise follows the data, which no worst-case bound can capture;
docs/benchmarks-erm.md shows the gain. In all other cases, and always with ``profile="theory"``, the bounds decide.

Paper: Talwar, Thakurta & Zhang, *Private Empirical Risk Minimization Beyond the Worst Case: The Effect of the
Constraint Set Geometry*, Table 1: mirror descent follows the Gaussian width, Frank–Wolfe the logarithm of the number of
vertices.

Every solver compared here has a bound, with constants, on the expected excess of the average loss: mirror descent that
of many steps, Frank–Wolfe that of its own schedule, and output perturbation of a loss with a ridge that of its noise.
If nothing bounds θ, only the dimension-free regularised output perturbation can run. Mirror descent also stands for
objective perturbation and noisy SGD, whose bounds are smaller by at most a constant factor.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from hedgerow.convex.losses.families import Loss
from hedgerow.convex.sets import L2Ball, Unconstrained
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.erm.problem import Problem
from hedgerow.erm.solver import Solver, SolverPlan, public
from hedgerow.erm.solvers.frank_wolfe import FrankWolfe
from hedgerow.erm.solvers.frank_wolfe_general import FrankWolfeGeneral
from hedgerow.erm.solvers.mirror_descent import MirrorDescent, least_risk
from hedgerow.erm.solvers.output_perturbation import OutputPerturbation, RegularizedOutputPerturbation
from hedgerow.erm.solvers.whitened_descent import MOST_FEATURES, WhitenedDescent, bounded_form
from hedgerow.errors import InvalidInput
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget

Profile = Literal["practical", "theory"]

# the solvers that are compared by their risk bounds
WITH_A_BOUND: tuple[Solver, ...] = (FrankWolfe(), MirrorDescent(), OutputPerturbation(), FrankWolfeGeneral())


@dataclass(frozen=True)
class Auto:
    """Minimize the average loss with the best solver for the problem.

    The choice depends on n, p, the bounds and the budget, and on no row.

    Parameters
    ----------
    - profile: "practical" (the default), or "theory" for solvers whose result comes with a bound on its risk.

    Example
    -------
    >>> result = hr.erm.auto(X, y, loss=loss, over=hr.L2Ball(1.0), budget=hr.Budget(1.0, 1e-6))
    """

    profile: Profile = "practical"
    name: ClassVar[str] = "auto"

    def plan(self, problem: Problem, amount: Amount) -> SolverPlan[Any]:
        """Return the plan of the chosen solver."""
        if self.profile not in get_args(Profile):
            raise InvalidInput(f"profile must be 'practical' or 'theory'. Found {self.profile!r}. Leave it out.")
        if self.profile == "practical" and whitens(problem.loss, problem.over, problem.budget, problem.p):
            return WhitenedDescent().plan(problem, amount)
        if not problem.over.is_bounded:
            return RegularizedOutputPerturbation().plan(problem, amount)
        return min(promises(problem, amount), key=lambda promise: promise.risk).plan


def whitens(loss: Loss, over: ConvexSet, budget: Budget, features: int) -> bool:
    """Return True if whitened descent is the choice in practice.

    The solver itself refuses any other fault of the input.
    """
    return (
        isinstance(over, L2Ball | Unconstrained)
        and loss.labels in ("real", "binary")
        and bounded_form(loss, 1.0).is_smooth
        and not budget.pure
        and features <= MOST_FEATURES
    )


class ComparedPlan(NamedTuple):
    """A plan, with the risk by which it is compared."""

    plan: SolverPlan[Any]
    risk: float


def promises(problem: Problem, amount: Amount) -> list[ComparedPlan]:
    """Return the plans of the solvers that can run, each with the risk by which it is compared."""
    problem.slope_bound  # noqa: B018  raises if the slope is unbounded, which rules out every solver
    found = []
    for solver in WITH_A_BOUND:
        with contextlib.suppress(InvalidInput):
            plan = solver.plan(problem, amount)
            found.append(ComparedPlan(plan, _comparable_risk(plan, problem, amount)))
    if not found:
        raise InvalidInput(
            "With delta = 0 the set must have vertices and the loss must be smooth. Found "
            f"{type(problem.over).__name__} and {type(problem.loss).__name__}. Give a delta above 0, or an L1Ball and "
            "a smooth loss."
        )
    return found


def _comparable_risk(plan: SolverPlan[Any], problem: Problem, amount: Amount) -> float:
    """Return the risk by which a plan is compared.

    It is the plan's own bound. For mirror descent it is the best bound; the plan itself accepts one that is up to a
    tenth larger, to take fewer steps.
    """
    assert plan.risk_bound is not None  # every solver that is compared has a bound
    return least_risk(problem, amount) if isinstance(plan.solver, MirrorDescent) else plan.risk_bound


auto = public(Auto)
