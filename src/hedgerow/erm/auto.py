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

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from hedgerow._types import Matrix
from hedgerow.convex.losses.families import Loss
from hedgerow.convex.sets import L2Ball, Unconstrained
from hedgerow.convex.sets.convex_set import ConvexSet, VertexSet
from hedgerow.convex.sets.potentials import Euclidean
from hedgerow.erm.problem import Norm, Problem, Result, prepared
from hedgerow.erm.solvers.frank_wolfe import frank_wolfe, planned_steps
from hedgerow.erm.solvers.frank_wolfe_general import frank_wolfe_general, schedule
from hedgerow.erm.solvers.mirror_descent import mirror_descent
from hedgerow.erm.solvers.mirror_descent import risk_bound as descent_bound
from hedgerow.erm.solvers.output_perturbation import (
    is_round,
    output_perturbation,
    regularised_output_perturbation,
    risk_bound,
)
from hedgerow.erm.solvers.whitened_descent import MOST_FEATURES, bounded_form, whitened_descent
from hedgerow.erm.values import matrix
from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Ledger

Profile = Literal["practical", "theory"]
Solver = Callable[..., Result]

SOLVERS: dict[str, Solver] = {
    "mirror_descent": mirror_descent,
    "frank_wolfe": frank_wolfe,
    "frank_wolfe_general": frank_wolfe_general,
    "output_perturbation": output_perturbation,
    "regularised_output_perturbation": regularised_output_perturbation,
    "whitened_descent": whitened_descent,
}


@np.errstate(all="ignore")
def auto(
    X: Any,
    y: ArrayLike,
    *,
    loss: Loss,
    over: ConvexSet,
    budget: Budget | Ledger,
    row_bound: float = 1.0,
    norm: Norm = "l2",
    label_bound: float | None = None,
    rows: int | None = None,
    seed: int | None = None,
    spend: float | None = None,
    profile: Profile = "practical",
    progress: bool = False,
) -> Result:
    """Run the best solver for the problem. The choice sees n, p, the bounds and the budget, and no row.

    ``profile="theory"``: only solvers whose result comes with a bound on its risk.
    """
    if profile not in get_args(Profile):
        raise InvalidInput(f"profile must be 'practical' or 'theory'. Found {profile!r}. Leave it out.")
    X = matrix(X)
    stated: dict[str, Any] = dict(row_bound=row_bound, norm=norm, label_bound=label_bound, rows=rows)
    if profile == "practical" and whitens(X, loss, over, budget):
        name = "whitened_descent"
    elif isinstance(over, ConvexSet) and not over.is_bounded:
        name = "regularised_output_perturbation"
    else:
        problem = prepared(X, y, loss, over, budget, spend=spend, **stated)
        name = min((bounds := predicted(problem)), key=lambda name: bounds[name])
    return SOLVERS[name](X, y, loss=loss, over=over, budget=budget, seed=seed, spend=spend, progress=progress, **stated)


def whitens(X: Matrix, loss: Loss, over: ConvexSet, budget: Budget | Ledger) -> bool:
    """Whether whitened descent can run: what is wrong with the rest of the input, the solver itself will say."""
    paid = budget.budget if isinstance(budget, Ledger) else budget
    return (
        isinstance(over, L2Ball | Unconstrained)
        and isinstance(loss, Loss)
        and loss.labels in ("real", "binary")
        and bounded_form(loss, 1.0).is_smooth
        and isinstance(paid, Budget)
        and not paid.pure
        and X.shape[1] <= MOST_FEATURES
    )


def predicted(problem: Problem) -> dict[str, float]:
    """The solvers that can run, by name, with the risk each promises."""
    over, loss, payment = problem.over, problem.loss, problem.payment
    promises: dict[str, float] = {}
    if loss.is_smooth and isinstance(over, VertexSet):
        promises["frank_wolfe"] = planned_steps(problem, over)[2]
    if not payment.budget.pure:
        Ψ = over.potential(problem.p)
        ridge = loss.ridge if isinstance(Ψ, Euclidean) else 0.0  # only there do its steps make use of it
        promises["mirror_descent"] = descent_bound(
            problem.n, payment.mu, problem.lipschitz, Ψ, sensitivity=problem.budget.gradient(1.0), ridge=ridge
        )
        if loss.is_smooth:
            if loss.ridge > 0 and is_round(problem):
                σ = problem.gaussian(1).sigma / (loss.ridge * problem.n)
                promises["output_perturbation"] = risk_bound(problem, σ)
            promises["frank_wolfe_general"] = schedule(problem).risk_bound
    if not promises:
        raise InvalidInput(
            f"With delta = 0 the set must have vertices and the loss must be smooth. Found {type(over).__name__} and "
            f"{type(loss).__name__}. Give a delta above 0, or an L1Ball and a smooth loss."
        )
    return promises
