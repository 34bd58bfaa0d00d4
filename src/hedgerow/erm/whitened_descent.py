"""Whitened descent: measure how the features vary, then put the noise where it harms least. The practical choice.

Papers: Künsch, Stefanski & Carroll "Conditionally unbiased bounded-influence estimation in general regression models"
(weights that depend on a row's own features keep a GLM unbiased); Dong, Roth & Su "Gaussian differential privacy".

Symbols: M = Σxxᵀ/n, M̃ its release, r the spectral norm of its noise; A = max(M̃, r)^(−½), a public matrix; θ = Aθ′;
C = √tr(AM̃A), about the root mean square of ‖Ax‖; w = min(1, C/‖Ax‖) the weight of a row; b the bound on |φ′|.

 1. Release M with a tenth of ρ: a row adds xxᵀ, of ‖xxᵀ‖_F ≤ ‖x‖², and two such matrices are at most √2·‖x‖² apart.
 2. T steps θ′ ← θ′ − η·(A·Σ w·φ′(⟨x, θ⟩, y)·x + N(0, σ²I))/n; release A times the mean of all θ′, with weights 1, …, T.

Privacy. A row's part of a sum is w·φ′·Ax, at most bC long, so the sum moves by at most 2bC (bC where rows come and go). A
and C are functions of M̃, and a row's weight of its own features and of A. All releases are Gaussian: one mechanism.

Why. Noise of covariance Σ on the gradient costs ½tr(H⁻¹Σ), H about M. Were all rows as long as their root mean square,
noise of covariance A⁻² would be needed tr(A²M) times, and that product is least at A ∝ M^(−½) (Cauchy–Schwarz): p², where
plain noise costs trM·trM⁻¹. In the same metric few steps suffice. Rows longer than C count for less, instead of making noise for all.

The loss is fitted in its bounded form: `BoundedLogistic` for `Logistic`; for `Squared`, `Huber` of twice the labels' root mean
square, which is released with M; the hinge with its kink rounded. Where labels follow the model the first two and the weights
leave the minimum where it is; elsewhere it moves, which no theorem here bounds: `risk_bound` is None, and
docs/benchmarks-erm.md has what was measured.

Steps: T so that noise and a fit with scores of root mean square `spread` balance, ηT = spread·n/(σ₁√p) with σ₁ the noise if
T were 1; η = 1/φ″ if it can be. Proofs: docs/proofs/erm_whitened_descent.md.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from hedgerow import events
from hedgerow.accounting import Accountant, Budget
from hedgerow.convex_set import ConvexSet
from hedgerow.erm.contract import Array, Norm, Problem, Result, prepared, require_count
from hedgerow.erm.minimum import require_smooth
from hedgerow.erm.progress import bar
from hedgerow.errors import InvalidInput
from hedgerow.geometry import L2Ball, Unconstrained
from hedgerow.losses import BoundedLogistic, Hinge, Huber, Logistic, Loss, SmoothedHinge, Squared

MOST_FEATURES = 500  # the second moments have p²/2 values
SHARE = 0.1  # of ρ, for the second moments
USUAL_SPREAD = 2.5  # log-odds of a classifier, root mean square
FEWEST_STEPS, MOST_STEPS = 16, 500
_LABELS = 0.3  # weight of y² beside xxᵀ in the release: it lengthens a row by 4 %
_FLATTEST = 1e-8  # of ‖x‖²: eigenvalues of M̃ are raised to it at least, so that A stays well conditioned
_BLOCK = 4096  # rows whose lengths are computed at a time
_ROUNDING = 1e-7  # share of C for the rounding of ‖Ax‖, within the margin that `payment` has for clipped norms


class Metric(NamedTuple):
    """What the second moments say."""

    A: Array  # symmetric
    moments: Array  # A⁻²: M̃ with its small eigenvalues raised
    length: float  # C, at which rows are held
    labels: float  # root mean square of the labels, where it was measured


def whitened_descent(
    X: Any,
    y: ArrayLike,
    *,
    loss: Loss,
    over: ConvexSet | None = None,
    budget: Budget | Accountant,
    row_bound: float = 1.0,
    norm: Norm = "l2",
    label_bound: float | None = None,
    rows: int | None = None,
    spend: float | None = None,
    iterations: int | None = None,
    spread: float | None = None,
    seed: int | None = None,
    progress: bool = False,
) -> Result:
    """θ of a smooth loss, for up to 500 features; `over` may be an L2Ball, to which θ is projected at the end.

    `spread`: the root mean square of the scores ⟨x, θ⟩ it aims for: 2.5 for classes, that of the labels for numbers.
    """
    if over is not None and not isinstance(over, L2Ball | Unconstrained):
        raise InvalidInput(
            f"over must be an L2Ball, or left out, for whitened_descent. Found {type(over).__name__}. Use auto."
        )
    largest = 1.0 if label_bound is None else label_bound
    problem = prepared(
        X, y, bounded_form(loss, largest), Unconstrained(), budget, row_bound=row_bound, norm=norm,
        label_bound=label_bound, rows=rows, spend=spend, seed=seed, progress=progress,
    )  # fmt: skip
    require_smooth(problem, "whitened_descent")
    if problem.p > MOST_FEATURES:
        raise InvalidInput(
            f"X must have at most {MOST_FEATURES} columns for whitened_descent. Found {problem.p}. Use mirror_descent."
        )
    plan = planned(problem, problem.p, adapts=isinstance(loss, Squared), spread=spread, iterations=iterations)
    cost = problem.payment.charge(plan.events)
    theta, _ = descended(problem, plan)
    return Result((over or Unconstrained()).project(theta), plan.events, cost, None, plan.steps, "whitened_descent")


def bounded_form(loss: Loss, label_bound: float) -> Loss:
    """The loss to fit in its place: smooth, of small slope, and with the same minimum where labels follow the model."""
    if isinstance(loss, Logistic):
        return BoundedLogistic(ridge=loss.ridge)
    if isinstance(loss, Squared):
        return Huber(width=events.positive("label_bound", label_bound), ridge=loss.ridge)
    if isinstance(loss, Hinge):
        return SmoothedHinge(width=0.25, ridge=loss.ridge)
    return loss


class Plan(NamedTuple):
    """All noise, fixed before any is drawn. Moments are in units of ‖x‖², sums of gradients of bC, which M̃ decides."""

    moments: events.Gaussian
    step: events.Gaussian
    steps: int
    adapts: bool  # whether the labels' size is measured and the loss fitted to it
    spread: float

    @property
    def events(self) -> tuple[events.Gaussian, ...]:
        return (self.moments, *(self.step,) * self.steps)

    def floor(self, problem: Problem) -> float:
        """r, in units of ‖x‖²: noise with variance σ² on the diagonal and half of that off it has norm √(2p)·σ."""
        return max(math.sqrt(2 * problem.p) * self.moments.sigma / problem.n, _FLATTEST)


def planned(
    problem: Problem, features: int, *, adapts: bool, spread: float | None = None, iterations: int | None = None
) -> Plan:
    """The plan for at most so many features, whichever they are."""
    p, n, budget, payment = features, problem.n, problem.budget, problem.payment
    moments = payment.gaussian(
        budget.marginal_l2() * (math.hypot(1, _LABELS) if adapts else 1.0), p * (p + 1) // 2 + adapts, share=SHARE
    )
    usual = USUAL_SPREAD if problem.loss.labels == "binary" else problem.slope_bound
    aim = usual if spread is None else events.positive("spread", spread)
    # For the number of steps, C² is taken to be p/4: there are enough of them if it turns out to be as small as p/9.
    far = _travel(problem, p, aim, math.sqrt(p) / 2) * problem.loss.mean_smoothness
    T = require_count(
        "iterations", round(min(max(far, FEWEST_STEPS), MOST_STEPS)) if iterations is None else iterations
    )
    # Rounding of A·Σ, in units of bC, moves two neighbours apart: ‖A‖·‖x‖ ≤ floor^(−½), C ≥ 1 and ‖Σ‖ ≤ rows·b·‖x‖.
    floor = max(math.sqrt(2 * p) * moments.sigma / n, _FLATTEST)
    rounded = 2 * (p + 3) * math.sqrt(p) * 2.0**-53 * problem.most_rows / math.sqrt(floor)
    step = payment.gaussian(budget.gradient(1.0) + rounded, p, T, share=1 - SHARE)
    return Plan(moments, step, T, adapts, aim)


def _travel(problem: Problem, p: int, spread: float, length: float) -> float:
    """ηT at which noise and fit balance, for p features and rows held at this length."""
    one = problem.payment.gaussian(problem.budget.gradient(1.0), p, share=1 - SHARE).sigma
    return spread * problem.n / (problem.slope_bound * length * one * math.sqrt(p))


def descended(problem: Problem, plan: Plan) -> tuple[Array, Metric]:
    """θ, and the metric it was found in, from the events that were paid for."""
    metric, p, T = _metric(problem, plan), problem.p, plan.steps
    spread = plan.spread
    if plan.adapts:
        spread = min(spread, metric.labels)
        problem = held_residuals(problem, min(2 * metric.labels, problem.slope_bound))
    A, unit, weights = metric.A, problem.slope_bound * metric.length, _weights(problem, metric)
    η = min(_travel(problem, p, spread, metric.length) / T, 1.5 / problem.loss.mean_smoothness)  # stable up to 2/φ″
    shrink = np.linalg.inv(np.eye(p) + η * problem.loss.ridge * A @ A)  # the ridge, by an implicit step
    θ, mean = np.zeros(p), np.zeros(p)
    with bar("whitened descent", T, problem.progress) as tick:
        for t in range(T):
            total = A @ problem.gradient(A @ θ, weights=weights) / unit
            θ = shrink @ (θ - η * unit / problem.n * problem.noise.add(total, plan.step))
            mean += (θ - mean) * (2 / (t + 2))  # weights 1, 2, …, T
            tick(t + 1)
    return np.asarray(A @ mean), metric


def _metric(problem: Problem, plan: Plan) -> Metric:
    """From the noisy second moments, so a function of what is released."""
    p, size = problem.p, problem.row_l2
    gram = problem.X.T @ problem.X  # exact: below 2^53 units
    gram = (gram.toarray() if sp.issparse(gram) else gram) * (problem.unit / size) ** 2
    upper = np.triu_indices(p)
    scale = np.where(upper[0] == upper[1], 1.0, math.sqrt(2.0))  # both halves of a pair count in ‖·‖_F
    b = problem.slope_bound  # that of the labels, where their size is measured
    labels = [_LABELS * math.fsum((problem.y / b) ** 2)] if plan.adapts else []
    noisy = problem.noise.add(np.concatenate([gram[upper] * scale, labels]), plan.moments) / problem.n
    square = np.zeros((p, p))
    square[upper] = noisy[: scale.size] / scale
    values, vectors = np.linalg.eigh(square + np.triu(square, 1).T)
    raised = np.maximum(values, plan.floor(problem))
    length = math.sqrt(max(float((values / raised).sum()), 1.0))
    least = plan.moments.sigma / problem.n  # what noise may hide
    mean_square = max(float(noisy[-1]), least) / _LABELS if plan.adapts else 1.0
    return Metric(
        A=(vectors / np.sqrt(raised)) @ vectors.T / size,
        moments=(vectors * raised) @ vectors.T * size**2,
        length=length,
        labels=b * math.sqrt(min(mean_square, 1.0)),
    )


def held_residuals(problem: Problem, width: float) -> Problem:
    """The same problem with Huber's loss, which turns linear at this width."""
    halvings = problem.slope_bound / problem.slope_unit  # a power of two
    loss = Huber(width=width, ridge=problem.loss.ridge)
    return dataclasses.replace(problem, loss=loss, slope_bound=width, slope_unit=width / halvings)


def _weights(problem: Problem, metric: Metric) -> Array:
    """min(1, C/‖Ax‖) of every row. Private."""
    lengths = np.empty(problem.X.shape[0])
    for i in range(0, lengths.size, _BLOCK):
        block = problem.X[i : i + _BLOCK] @ (metric.A * problem.unit)
        lengths[i : i + _BLOCK] = np.sqrt(np.einsum("ij,ij->i", block, block))
    weights: Array = np.minimum(1.0, metric.length * (1 - _ROUNDING) / np.maximum(lengths, 1e-300))
    return weights
