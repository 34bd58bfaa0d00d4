"""Which solver: the best in practice where that is known, else the one whose theorem promises the least risk.

All from public quantities. For up to 500 features, a smooth loss or the hinge, and nothing but an ℓ2 bound on θ,
`whitened_descent` is the choice: its noise follows the data, which no worst-case bound can tell, and docs/benchmarks-erm.md
shows what that brings. Everywhere else, and everywhere with ``profile="theory"``, the bounds decide.

Paper: Talwar, Thakurta & Zhang, *Private Empirical Risk Minimization Beyond the Worst Case: The Effect of the
Constraint Set Geometry*, Table 1: mirror descent follows the Gaussian width, Frank–Wolfe the logarithm of the vertices.

Every solver here has a bound, with constants, on the expected excess of the average loss: mirror descent that of many
steps, Frank–Wolfe that of its own schedule, output perturbation, with a ridge, that of its noise. Where nothing bounds θ only the
dimension-free regularised output perturbation can run. Mirror descent stands for objective perturbation and noisy SGD too,
whose bounds are never smaller by more than a constant.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from hedgerow.convex.losses.families import Loss
from hedgerow.convex.sets import L2Ball, Unconstrained
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.erm.problem import Problem
from hedgerow.erm.solver import Plan, Solver, public
from hedgerow.erm.solvers.frank_wolfe import FrankWolfe
from hedgerow.erm.solvers.frank_wolfe_general import FrankWolfeGeneral
from hedgerow.erm.solvers.mirror_descent import MirrorDescent, least_risk
from hedgerow.erm.solvers.output_perturbation import OutputPerturbation, RegularisedOutputPerturbation
from hedgerow.erm.solvers.whitened_descent import MOST_FEATURES, WhitenedDescent, bounded_form
from hedgerow.errors import InvalidInput
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget

Profile = Literal["practical", "theory"]

WITH_A_BOUND: tuple[Solver, ...] = (FrankWolfe(), MirrorDescent(), OutputPerturbation(), FrankWolfeGeneral())


@dataclass(frozen=True)
class Auto:
    """Run the best solver for the problem. The choice sees n, p, the bounds and the budget, and no row.

    ``profile="theory"``: only solvers whose result comes with a bound on its risk.
    """

    profile: Profile = "practical"
    name: ClassVar[str] = "auto"

    def plan(self, problem: Problem, amount: Amount) -> Plan[Any]:
        if self.profile not in get_args(Profile):
            raise InvalidInput(f"profile must be 'practical' or 'theory'. Found {self.profile!r}. Leave it out.")
        if self.profile == "practical" and whitens(problem.loss, problem.over, problem.budget, problem.p):
            return WhitenedDescent().plan(problem, amount)
        if not problem.over.is_bounded:
            return RegularisedOutputPerturbation().plan(problem, amount)
        return min(promises(problem, amount), key=lambda promise: promise.risk).plan


def whitens(loss: Loss, over: ConvexSet, budget: Budget, features: int) -> bool:
    """Whether whitened descent is the choice in practice: what is wrong with the rest of the input, the solver itself will say."""
    return (
        isinstance(over, L2Ball | Unconstrained)
        and loss.labels in ("real", "binary")
        and bounded_form(loss, 1.0).is_smooth
        and not budget.pure
        and features <= MOST_FEATURES
    )


class Promise(NamedTuple):
    plan: Plan[Any]
    risk: float


def promises(problem: Problem, amount: Amount) -> list[Promise]:
    """The plans of the solvers that can run, each with the risk it is compared by."""
    problem.slope_bound  # noqa: B018  refused for all of them, if at all
    found = []
    for solver in WITH_A_BOUND:
        with contextlib.suppress(InvalidInput):
            plan = solver.plan(problem, amount)
            found.append(Promise(plan, _compared(plan, problem, amount)))
    if not found:
        raise InvalidInput(
            f"With delta = 0 the set must have vertices and the loss must be smooth. Found {type(problem.over).__name__} "
            f"and {type(problem.loss).__name__}. Give a delta above 0, or an L1Ball and a smooth loss."
        )
    return found


def _compared(plan: Plan[Any], problem: Problem, amount: Amount) -> float:
    """The bound of the plan; but mirror descent's at its best, of which it gives away up to a tenth to take fewer steps."""
    assert plan.risk_bound is not None  # as these solvers have
    return least_risk(problem, amount) if isinstance(plan.solver, MirrorDescent) else plan.risk_bound


auto = public(Auto)
