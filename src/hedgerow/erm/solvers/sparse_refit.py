"""The lasso in practice: name features by Frank–Wolfe, then fit the coefficients of these few by whitened descent.

Papers: Talwar, Thakurta & Zhang, *Private Empirical Risk Minimization Beyond the Worst Case*, §5 (the selection).

Symbols: |x_j| ≤ b_x, |y| ≤ b_y, ‖θ‖₁ ≤ R; S the named features; M̃ the released second moments of x_S; θ̂ what whitened
descent finds on them.

 1. Release the labels' size, root mean square and Σ|y|³/Σy²: residuals need not be held at the Rb_x + b_y of the worst case.
 2. T steps of Frank–Wolfe name features, at most T + 1. Residuals are held at twice the first (`Huber`): names need not be unbiased.
 3. Whitened descent on x_S, with residuals held at twice the second, which leaves the mean of two-valued labels where it is; the
    result is the point of ‖θ‖₁ ≤ R next to θ̂ in the metric of M̃.

All noise is planned and paid for at first, whatever the size and S: the events are in units of bounds that these decide.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from hedgerow._types import Array
from hedgerow.convex.sets import L1Ball
from hedgerow.convex.sets.convex_set import shrink_to_sum
from hedgerow.erm.problem import Problem, Result
from hedgerow.erm.solvers.frank_wolfe import descended as frank_wolfe_steps
from hedgerow.erm.solvers.frank_wolfe import planned_steps
from hedgerow.erm.solvers.whitened_descent import MOST_FEATURES, held_residuals, label_event, label_size
from hedgerow.erm.solvers.whitened_descent import descended as whitened_steps
from hedgerow.erm.solvers.whitened_descent import planned as whitened_plan

SHARES = (0.02, 0.49, 0.49)  # of ρ: the labels' size, the selection, the coefficients
STEPS = 32  # of whitened descent: the curvature of least squares is known, so few are enough


def named_and_refitted(problem: Problem, over: L1Ball, label_bound: float, iterations: int | None) -> Result:
    """Least squares over the ball, where δ > 0."""
    payment = problem.payment
    labels, selection, coefficients = (
        dataclasses.replace(problem, payment=payment.part(share * (1 - 1e-9))) for share in SHARES
    )
    sizes = label_event(labels, 1.0)
    selection = held_residuals(selection, label_bound)
    pick, T, _ = planned_steps(selection, over, iterations)
    most = min(T + 1, problem.p, MOST_FEATURES)
    plan = whitened_plan(coefficients, most, label_bound, adapts=False, iterations=STEPS)
    planned = (sizes, *(pick,) * T, *plan.events)
    cost = payment.charge(planned)

    size = label_size(labels, label_bound, sizes)
    chosen = frank_wolfe_steps(held_residuals(selection, min(2 * size.usual, label_bound)), over, pick, T)
    count = min(max(np.count_nonzero(chosen), 1), most)  # steps to and fro along one feature may cancel
    S = np.argsort(-np.abs(chosen), kind="stable")[:count]
    width = min(2 * size.large, problem.slope_bound)
    X = problem.X[:, S]
    X = np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X  # rows one after the other, as `row_products` wants
    on_S = dataclasses.replace(held_residuals(coefficients, width), X=X)
    found, metric = whitened_steps(on_S, plan._replace(spread=size.usual))
    theta = np.zeros_like(chosen)
    theta[S] = _nearest(found, metric.moments, over.radius)
    return Result(theta, planned, cost, None, T, "lasso")


def _nearest(point: Array, metric: Array, radius: float, steps: int = 2000) -> Array:
    """argmin ½(θ − point)ᵀ·metric·(θ − point) over ‖θ‖₁ ≤ radius, by accelerated projected gradients."""
    step = 1 / float(np.linalg.eigvalsh(metric)[-1])
    theta = ahead = np.sign(point) * shrink_to_sum(np.abs(point), radius)
    momentum = 1.0
    for _ in range(steps):
        moved = ahead - step * (metric @ (ahead - point))
        new = np.sign(moved) * shrink_to_sum(np.abs(moved), radius)
        if float((ahead - new) @ (new - theta)) > 0:  # overshot: start the momentum afresh
            momentum = 1.0
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead, theta, momentum = new + (momentum - 1) / following * (new - theta), new, following
    return theta
