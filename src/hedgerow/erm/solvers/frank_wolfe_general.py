"""Frank–Wolfe on any bounded convex set: Gaussian noise on the gradient, then the set's own linear minimiser.

Paper: Talwar, Thakurta & Zhang, *Private Empirical Risk Minimization Beyond the Worst Case: The Effect of the
Constraint Set Geometry*, Appendix B, Algorithm 5 and Theorem B.2.

Symbols: L the ℓ2 norm of one row's gradient at most; G_C the Gaussian width of C; Γ the curvature of the average loss; T
steps; σ the noise on a sum of gradients; μ = √T·Δ/σ what the budget allows, Δ = 2L (replace) or L (add or remove).

Step t: s_t = argmin over C of ⟨s, Σ∇ℓ(θ_t) + b_t⟩, b_t ~ N(0, σ²I), and θ moves towards it by 2/(t+2).
E[risk] ≤ 2Γ/(T+2) + σ·G_C/n: the minimiser for the true gradient does not depend on b_t, so E⟨b_t, ·⟩ is 0 there and at
most σ·G_C at s_t. T is ``frank_wolfe``'s share of what makes this least.

Differs: the printed σ² lacks a square on L (it is off in its units) and spends log²(n/δ) where the composition of T
Gaussians is a Gaussian. The printed step 1/(T+2) does not converge. The start is the least point of the set's potential.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hedgerow._progress import bar
from hedgerow.convex.losses.families import Loss
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.erm.problem import Norm, Problem, Result, prepared
from hedgerow.erm.solvers.frank_wolfe import Schedule, best_schedule, curvature, require_smooth
from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise


@np.errstate(all="ignore")
def frank_wolfe_general(
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
    iterations: int | None = None,
    seed: int | None = None,
    noise: Noise | None = None,
    spend: float | None = None,
    progress: bool = False,
) -> Result:
    """Minimise the average loss over a bounded convex set with a linear minimiser."""
    if isinstance(over, ConvexSet) and not over.is_bounded:
        raise InvalidInput(f"The set must be bounded. Found {type(over).__name__}. Give one, such as L2Ball(1.0).")
    require_smooth(loss)
    problem = prepared(
        X, y, loss, over, budget, row_bound=row_bound, norm=norm, label_bound=label_bound, rows=rows, seed=seed,
        noise=noise, spend=spend, progress=progress,
    )  # fmt: skip
    T, bound = schedule(problem, iterations)
    event = problem.gaussian(T)
    planned = (event,) * T
    cost = problem.payment.charge(planned)
    theta = over.potential(problem.p).start.copy()
    with bar("Frank–Wolfe", T, progress) as tick:
        for t in range(T):
            noisy = problem.noise.add(problem.gradient(theta), event) + problem.n * loss.ridge * theta
            theta += 2 / (t + 2) * (over.minimise(noisy) - theta)
            tick(t + 1)
    return Result(theta, planned, cost, bound, T, "frank_wolfe_general")


def schedule(problem: Problem, iterations: int | None = None) -> Schedule:
    """The number of steps, and the bound on the expected excess risk."""
    one = problem.gaussian(1)  # σ grows like √T
    scale = one.sigma * problem.over.gaussian_width(problem.p) / problem.n
    return best_schedule(2 * curvature(problem, problem.over), scale, 0.5, iterations)
