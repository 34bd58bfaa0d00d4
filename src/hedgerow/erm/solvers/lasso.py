"""The private lasso: least squares over an ℓ1 ball, for features and targets that are bounded one by one.

Paper: Talwar, Thakurta & Zhang, *Private Empirical Risk Minimization Beyond the Worst Case: The Effect of the
Constraint Set Geometry*, §5.3, Corollary 5.7: Algorithm 4 on the ℓ1 ball. No private algorithm has a risk that shrinks
faster than (n log n)^(−2/3) for every table (Theorem 5.8, ``hard_instance``).

Symbols: ½·mean (⟨x, θ⟩ − y)² over ‖θ‖₁ ≤ R, with |x|∞ ≤ row_bound and |y| ≤ label_bound. Then |ℓ'| ≤ R·row_bound +
label_bound, Γ = 4(R·row_bound)², and the 2p vertices ±R·e_j are never spelled out.

Differs: with ``refit``, the default where δ > 0, Algorithm 4 gets half of the budget. The features it has picked are
public then, and few; the other half fits their coefficients (``refit``). On tables where few features matter the risk is smaller by
orders of magnitude, for the coefficients no longer come in steps of 2/T, and residuals are held at the labels' measured size
and not at the worst case. ``refit=False`` is Algorithm 4, with the bound of its theorem; the refit has none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hedgerow._checks import positive
from hedgerow.convex.losses.families import Squared
from hedgerow.convex.sets import L1Ball
from hedgerow.erm.problem import Result, prepared
from hedgerow.erm.solvers.frank_wolfe import descended, planned_steps
from hedgerow.erm.solvers.sparse_refit import named_and_refitted
from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise


@np.errstate(all="ignore")
def lasso(
    X: Any,
    y: ArrayLike,
    *,
    budget: Budget | Ledger,
    radius: float = 1.0,
    row_bound: float = 1.0,
    label_bound: float = 1.0,
    rows: int | None = None,
    iterations: int | None = None,
    refit: bool | None = None,
    seed: int | None = None,
    noise: Noise | None = None,
    spend: float | None = None,
    progress: bool = False,
) -> Result:
    """Least squares with ‖θ‖₁ ≤ radius; entries of X and y are clipped to their bounds."""
    over, b_y = L1Ball(radius), positive("label_bound", label_bound, "Give the largest size of a target.")
    problem = prepared(
        X, y, Squared(), over, budget, row_bound=row_bound, norm="linf", label_bound=b_y, rows=rows, seed=seed,
        noise=noise, spend=spend, progress=progress,
    )  # fmt: skip
    payment = problem.payment
    again = not payment.budget.pure if refit is None else refit
    if again and payment.budget.pure:
        raise InvalidInput("delta must be above 0 to refit. Found 0. Give a delta, or refit=False.")
    if again:
        return named_and_refitted(problem, over, b_y, iterations)
    event, T, bound = planned_steps(problem, over, iterations)
    planned = (event,) * T
    cost = payment.charge(planned)
    return Result(descended(problem, over, event, T), planned, cost, bound, T, "lasso")
