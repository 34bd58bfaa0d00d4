"""Noisy stochastic gradient descent: many cheap steps, each on a secret random sample of the rows.

Papers: Bassily, Smith & Thakurta "Private empirical risk minimization: efficient algorithms and tight error bounds";
Abadi et al. "Deep learning with differential privacy"; Mironov, Talwar & Zhang "Rényi differential privacy of the sampled
Gaussian mechanism"; Ullman "Private multiplicative weights beyond linear queries", Theorem 4.1, whose oracle this is.

Symbols: q the rate at which every row is in a step's sample, independently; T steps; L the ℓ2 bound on a row's gradient;
σ = zL the noise on the sum over a sample, z the noise multiplier.

Privacy. A row that comes or goes moves the sum over a sample by at most L, and is in it with probability q only: T steps
have the privacy of T subsampled Gaussian releases, which dp-accounting composes (`accounting.subsampled_multiplier`). To
replace a row is to remove one and add one, so (ε, δ) for replaced rows is (ε/2, δ/(1 + e^{ε/2})) for rows that come and
go. The bill is one (ε, δ) step: subsampled noise has no ρ worth the name. So an Ledger needs slack in δ for it.

Risk. The gradient estimate is unbiased with V ≤ ‖Q‖₂²L²/(qn) + (σ/qn)²(G_Q² + ‖Q‖₂²); the bound is that of `descent`.

Differs: samples are Poisson at a public rate, so that the true number of rows plays no part; steps follow the potential of
the set and are accelerated where the loss is smooth.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hedgerow._checks import positive
from hedgerow._progress import bar
from hedgerow._types import Array
from hedgerow.convex.losses.families import Loss
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.convex.sets.potentials import Euclidean
from hedgerow.erm.problem import Norm, Result, prepared, require_count
from hedgerow.erm.solvers.descent import Terms, descend, schedule
from hedgerow.erm.solvers.mirror_descent import require_bounded, row_dual_norm
from hedgerow.privacy import events
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import subsampled_multiplier
from hedgerow.privacy.ledger import Ledger

_COIN = 2**32  # rates are multiples of its inverse, so that a coin is a comparison of whole numbers
_USUAL_BATCH = 512
_MARGIN = 1e-6  # of ε and δ, for noise on a grid


@np.errstate(all="ignore")
def noisy_sgd(
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
    spend: float | None = None,
    batch: int | None = None,
    epochs: float = 20.0,
    seed: int | None = None,
    progress: bool = False,
) -> Result:
    """θ in `over` by noisy gradients of samples of about `batch` rows, as many as make `epochs` passes over the data."""
    problem = prepared(
        X, y, loss, over, budget, row_bound=row_bound, norm=norm, label_bound=label_bound, rows=rows, spend=spend,
        seed=seed, progress=progress,
    )  # fmt: skip
    Ψ, n = require_bounded(over).potential(problem.p), problem.n
    size = require_count("batch", _USUAL_BATCH if batch is None else batch)
    heads = min(_COIN, math.ceil(min(1.0, size / n) * _COIN))
    q = heads / _COIN
    T = max(1, math.ceil(positive("epochs", epochs) / q))

    event = problem.payment.approximate()
    σ = noise_multiplier(event, q, T, problem.budget.neighbours) * problem.lipschitz
    drawn = events.Gaussian(problem.lipschitz, σ, events.grid_at_most(problem.lipschitz * 5e-7 / math.sqrt(problem.p)))
    row, Q2 = row_dual_norm(problem, Ψ), Ψ.norm_radius_l2
    V = (Q2 * problem.lipschitz) ** 2 / (q * n) + (σ / (q * n)) ** 2 * (Ψ.norm_width**2 + Q2**2)
    composite = isinstance(Ψ, Euclidean)
    outside = 0.0 if composite else loss.ridge  # a ridge that the steps do not take care of is part of the gradient
    terms = Terms(
        spread=Ψ.range,
        noise=V / T,
        smoothness=loss.smoothness * row**2 + outside * Q2**2,
        lipschitz=problem.slope_bound * row + loss.ridge * Q2 * over.radius_l2(problem.p),
        ridge=loss.ridge if composite else 0.0,
    )
    plan = schedule(terms, T, steps=T)
    cost = problem.payment.charge((event,))

    def gradient(theta: Array) -> Array:
        coins = problem.noise.subsample(_COIN, problem.X.shape[0], replace=True)
        noisy = problem.noise.add(problem.gradient(theta, np.flatnonzero(coins < heads)), drawn)
        return noisy / (q * n) + outside * theta

    with bar("noisy SGD", T, progress) as tick:
        theta = descend(gradient, Ψ, plan, tick)
    return Result(theta, (event,), cost, plan.bound, T, "noisy_sgd")


def noise_multiplier(event: events.ApproximateDP, rate: float, steps: int, neighbours: str) -> float:
    """z = σ/L for the event's (ε, δ) under the neighbours, with a margin for rounding."""
    ε, δ = event.epsilon * (1 - _MARGIN), event.delta * (1 - _MARGIN)
    if neighbours == "replace":
        ε, δ = ε / 2, δ / (1 + math.exp(ε / 2))
    return subsampled_multiplier(ε, δ, rate, steps) * (1 + 1e-6)
