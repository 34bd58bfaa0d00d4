"""The lasso in practice: select features by Frank–Wolfe, then fit their coefficients by whitened descent.

Papers: Talwar, Thakurta & Zhang, *Private Empirical Risk Minimization Beyond the Worst Case*, §5 (the selection).

Symbols: |x_j| ≤ b_x, |y| ≤ b_y, ‖θ‖₁ ≤ R; S the selected features; M̃ the released second moments of x_S; θ̂ what
whitened descent finds on them.

1. Release the size of the labels: their root mean square and Σ|y|³/Σy². Residuals then need not be bounded by the worst
   case Rb_x + b_y.
2. T steps of Frank–Wolfe select at most T + 1 features. Residuals are bounded by twice the root mean square
   (``Huber``). The bias does not matter for a selection.
3. Whitened descent on x_S, with residuals bounded by twice Σ|y|³/Σy², which does not move the mean of two-valued
   labels. The result is the point of ‖θ‖₁ ≤ R that is nearest to θ̂ in the metric of M̃.

All noise is planned and paid for at the start, whatever the labels' size and S turn out to be. The events are in units
of bounds that these decide.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from hedgerow._types import Array
from hedgerow.convex.sets.convex_set import shrink_to_sum
from hedgerow.erm.problem import Problem
from hedgerow.erm.solver import Draw
from hedgerow.erm.solvers.frank_wolfe import Picks, plan_steps
from hedgerow.erm.solvers.frank_wolfe import descend as frank_wolfe_steps
from hedgerow.erm.solvers.whitened_descent import MOST_FEATURES, Releases, label_event, label_size, with_huber_loss
from hedgerow.erm.solvers.whitened_descent import descend_whitened as whitened_steps
from hedgerow.erm.solvers.whitened_descent import plan_noise as whitened_plan
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.events import Event, Gaussian

SHARES = (0.02, 0.49, 0.49)  # shares of ρ for the labels' size, the selection, and the coefficients
STEPS = 32  # steps of whitened descent; few are enough, because the curvature of least squares is known


@dataclasses.dataclass(frozen=True)
class Refit:
    """All noise, in the order in which it is drawn."""

    labels: Gaussian
    picks: Picks
    most: int  # the largest number of features that are refitted
    coefficients: Releases

    @property
    def events(self) -> tuple[Event, ...]:
        """All events, in the order in which they are drawn."""
        return (self.labels, *self.picks, *self.coefficients.events)


def plan_refit(problem: Problem, amount: Amount, iterations: int | None) -> Refit:
    """Plan all noise. Each of the three parts has its share of ρ. Requires δ > 0."""
    labels, selection, coefficients = (amount.part(share * (1 - 1e-9)) for share in SHARES)
    bound = problem.label_bound
    pick, steps = plan_steps(with_huber_loss(problem, bound), selection, iterations)
    most = min(steps.iterations + 1, problem.p, MOST_FEATURES)
    fitted = whitened_plan(problem, coefficients, most, bound, adapts=False, iterations=STEPS)
    return Refit(label_event(problem, labels), (pick,) * steps.iterations, most, fitted)


def refit_named(problem: Problem, plan: Refit, draw: Draw) -> Array:
    """Return least squares over the ball, from the events that were paid for."""
    bound = problem.label_bound
    size = label_size(problem, bound, plan.labels, draw)
    chosen = frank_wolfe_steps(with_huber_loss(problem, min(2 * size.typical, bound)), plan.picks, draw)
    count = min(max(int(np.count_nonzero(chosen)), 1), plan.most)  # opposite steps along one feature may cancel
    S = np.argsort(-np.abs(chosen), kind="stable")[:count]
    width = min(2 * size.large, problem.slope_bound)
    on_S = with_huber_loss(problem, width).with_features(S)
    found, metric = whitened_steps(on_S, dataclasses.replace(plan.coefficients, spread=size.typical), draw)
    theta = np.zeros_like(chosen)
    theta[S] = nearest(found, metric.moments, problem.over.radius_l1(problem.p))
    return theta


def nearest(point: Array, metric: Array, radius: float, steps: int = 2000) -> Array:
    """Return argmin ½(θ − point)ᵀ·metric·(θ − point) over ‖θ‖₁ ≤ radius, by accelerated projected gradients."""
    step = 1 / float(np.linalg.eigvalsh(metric)[-1])
    theta = ahead = np.sign(point) * shrink_to_sum(np.abs(point), radius)
    momentum = 1.0
    for _ in range(steps):
        moved = ahead - step * (metric @ (ahead - point))
        new = np.sign(moved) * shrink_to_sum(np.abs(moved), radius)
        if np.array_equal(new, ahead) and np.array_equal(new, theta):
            break  # a fixed point: further steps would change nothing
        if float((ahead - new) @ (new - theta)) > 0:  # overshot: restart without momentum
            momentum = 1.0
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead, theta, momentum = new + (momentum - 1) / following * (new - theta), new, following
    return theta
