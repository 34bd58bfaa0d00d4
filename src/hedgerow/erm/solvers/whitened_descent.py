"""Whitened descent: measure how the features vary, then put the noise where it harms least. The practical choice.

Papers: Künsch, Stefanski & Carroll "Conditionally unbiased bounded-influence estimation in general regression models"
(weights that depend on a row's own features keep a GLM unbiased); Dong, Roth & Su "Gaussian differential privacy".

Symbols: M = Σxxᵀ/n, M̃ its release, r the spectral norm of its noise; A = max(M̃, r)^(−½), a public matrix; θ = Aθ′;
C = √tr(AM̃A), about the root mean square of ‖Ax‖; w = min(1, C/‖Ax‖) the weight of a row; b the bound on |φ′|.

 1. Release M with a tenth of ρ: a row adds xxᵀ, of ‖xxᵀ‖_F ≤ ‖x‖², and two such matrices are at most √2·‖x‖² apart.
 2. T steps θ′ ← θ′ − η·(A·Σ w·φ′(⟨x, θ⟩, y)·x + N(0, σ²I))/n; release A times the mean of all θ′, with weights 1, …, T.

Privacy. A row's part of a sum is w·φ′·Ax, at most bC long, so the sum moves by at most 2bC (bC where rows come and go). A
and C are functions of M̃, and a row's weight of its own features and of A. All releases are Gaussian: one mechanism. Where n is
a guess and there are more rows than are allowed for, the sum is pulled into a ball after it was multiplied by A: before, that
would be a contraction in another metric than the one that is billed.

Why. Noise of covariance Σ on the gradient costs ½tr(H⁻¹Σ), H about M. Were all rows as long as their root mean square,
noise of covariance A⁻² would be needed tr(A²M) times, and that product is least at A ∝ M^(−½) (Cauchy–Schwarz): p², where
plain noise costs trM·trM⁻¹. In the same metric few steps suffice. Rows longer than C count for less, instead of making noise for all.

The loss is fitted in its bounded form: `BoundedLogistic` for `Logistic`; for `Squared`, `Huber` of twice Σ|y|³/Σy², for which
both sums are released with a fiftieth of ρ; the hinge with its kink rounded. Where labels follow the model the first two and the
weights leave the minimum where it is; elsewhere it moves, which no theorem here bounds: `risk_bound` is None, and
docs/benchmarks-erm.md has what was measured.

Steps: T so that noise and a fit with scores of root mean square `spread` balance, ηT = spread·n/(σ₁√p) with σ₁ the noise if
T were 1; η = 1/φ″ if it can be. Proofs: docs/proofs/erm_whitened_descent.md.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq

from hedgerow._checks import positive
from hedgerow._types import Array, Matrix
from hedgerow.convex.losses.families import BoundedLogistic, Hinge, Huber, Logistic, Loss, SmoothedHinge, Squared
from hedgerow.convex.sets import L2Ball, Unconstrained
from hedgerow.erm.exact_sums import ROUNDED
from hedgerow.erm.problem import Problem, require_count
from hedgerow.erm.solver import Draw, Plan, public
from hedgerow.erm.solvers.minimum import require_smooth
from hedgerow.errors import InvalidInput
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.events import Gaussian

MOST_FEATURES = 500  # the second moments have p²/2 values
SHARE = 0.1  # of ρ, for the second moments
LABELS_SHARE = 0.02  # of ρ, for the labels' size, where the loss is to fit it
USUAL_SPREAD = 2.5  # log-odds of a classifier, root mean square
FEWEST_STEPS, MOST_STEPS = 16, 500
HINGE = 0.2  # margins over which its kink is rounded
_FLATTEST = 1e-8  # of ‖x‖²: eigenvalues of M̃ are raised to it at least, so that A stays well conditioned
_STEEPEST = 8.0  # of ‖x‖²: they are lowered to it, which 8 times the rows of the guess do not exceed
_BLOCK = 4096  # rows whose lengths are computed at a time
_ROUNDING = 1e-7  # share of C for the rounding of ‖Ax‖, within the margin that `allowance` has for clipped norms


class Metric(NamedTuple):
    """What the second moments say."""

    A: Array  # symmetric
    moments: Array  # A⁻²: M̃ with its eigenvalues held
    length: float  # C, at which rows are held


@dataclasses.dataclass(frozen=True)
class Releases:
    """All noise of a descent. Moments are in units of ‖x‖², sums of gradients of bC, which M̃ decides."""

    labels: Gaussian | None  # where the loss is to fit the labels' size
    moments: Gaussian
    step: Gaussian
    steps: int
    spread: float
    amount: Amount = dataclasses.field(compare=False)  # what buys all of it

    @property
    def events(self) -> tuple[Gaussian, ...]:
        return (*(() if self.labels is None else (self.labels,)), self.moments, *(self.step,) * self.steps)


@dataclasses.dataclass(frozen=True)
class WhitenedDescent:
    """θ of a smooth loss, for up to 500 features; `over` may be an L2Ball, of which the point nearest in M̃ is taken.

    ``iterations``: leave it out. ``spread``: the root mean square of the scores ⟨x, θ⟩ it aims for: 2.5 for classes, that of
    the labels for numbers.
    """

    iterations: int | None = None
    spread: float | None = None
    name: ClassVar[str] = "whitened_descent"

    def plan(self, problem: Problem, amount: Amount) -> Plan[Releases]:
        if not isinstance(problem.over, L2Ball | Unconstrained):
            raise InvalidInput(
                f"over must be an L2Ball, or left out, for whitened_descent. Found {type(problem.over).__name__}. Use auto."
            )
        fitted = _fitted(problem)
        require_smooth(fitted, self.name)
        if problem.p > MOST_FEATURES:
            raise InvalidInput(
                f"X must have at most {MOST_FEATURES} columns for whitened_descent. Found {problem.p}. Use mirror_descent."
            )
        usual = USUAL_SPREAD if problem.loss.labels == "binary" else problem.label_bound
        aim = usual if self.spread is None else positive("spread", self.spread)
        adapts = isinstance(problem.loss, Squared)
        releases = planned(fitted, amount, problem.p, aim, adapts=adapts, iterations=self.iterations)
        return Plan(self, releases.events, None, releases.steps, releases)

    def run(self, problem: Problem, plan: Plan[Releases], draw: Draw) -> Array:
        theta, metric = descended(_fitted(problem), plan.details, draw)
        if isinstance(problem.loss, Hinge):
            theta = theta / (1 - HINGE / 2)  # margins gather in the middle of the rounded kink, which belongs at 1
        if isinstance(problem.over, L2Ball):
            theta = into_ball(theta, metric.moments, problem.over.radius)
        return theta


def _fitted(problem: Problem) -> Problem:
    """The problem that is solved in its place."""
    form = bounded_form(problem.loss, problem.label_bound)
    return dataclasses.replace(problem, loss=form, over=Unconstrained())


def bounded_form(loss: Loss, label_bound: float) -> Loss:
    """The loss to fit in its place: smooth, of small slope, and with the same minimum where labels follow the model."""
    if isinstance(loss, Logistic):
        return BoundedLogistic(ridge=loss.ridge)
    if isinstance(loss, Squared):
        return Huber(width=2 * positive("label_bound", label_bound), ridge=loss.ridge)
    if isinstance(loss, Hinge):
        return SmoothedHinge(width=HINGE, ridge=loss.ridge)
    return loss


def planned(
    problem: Problem, amount: Amount, features: int, spread: float, *, adapts: bool, iterations: int | None = None
) -> Releases:
    """All noise for at most so many features, whichever they are."""
    p, budget = features, problem.budget
    left = 1 - SHARE - (LABELS_SHARE if adapts else 0.0)
    # A sum of products is scaled, by two roundings each, and is at most `most_rows`.
    scaled = 4 * p * 2.0**-53 * problem.most_rows
    moments = amount.fine_gaussian(budget.marginal_l2() + scaled, p * (p + 1) // 2, share=SHARE)
    if iterations is None:
        # C² is taken to be p/4: steps are enough if it turns out to be as small as p/9.
        far = _travel(problem, amount, p, spread, math.sqrt(p) / 2, left) * problem.loss.mean_smoothness
        iterations = round(min(max(far, FEWEST_STEPS), MOST_STEPS))
    T = require_count("iterations", iterations)
    rounded = _rounding(problem, p, _floor(moments, p, problem.n))
    step = amount.fine_gaussian(budget.gradient(1.0) + rounded, p, T, share=left)
    labels = label_event(problem, amount, LABELS_SHARE) if adapts else None
    return Releases(labels, moments, step, T, spread, amount)


def _floor(moments: Gaussian, p: int, n: int) -> float:
    """r, in units of ‖x‖²: noise with variance σ² on the diagonal and half of that off it has norm √(2p)·σ."""
    return max(math.sqrt(2 * p) * moments.sigma / n, _FLATTEST)


def _rounding(problem: Problem, p: int, floor: float) -> float:
    """How far rounding of A·Σ and of its pull into the ball moves two neighbours apart at most, in units of bC."""
    if problem.budget.neighbours == "replace":  # ‖A‖·‖x‖ ≤ floor^(−½), C ≥ 1 and ‖Σ‖ ≤ rows·b·‖x‖
        return 2 * (p + 3) * (math.sqrt(p) + 1) * 2.0**-53 * problem.most_rows / math.sqrt(floor)
    # There may be any number of rows: errors are relative to ‖A‖·‖Σ‖, so to ‖A·Σ‖ times A's condition number, and the ball bounds that.
    condition = math.sqrt(max(_STEEPEST / floor, 1.0))
    return 2 * ((p + 3) * 2.0**-53 + ROUNDED) * (math.sqrt(p) + 1) * condition * problem.most_rows


def _travel(problem: Problem, amount: Amount, p: int, spread: float, length: float, share: float) -> float:
    """ηT at which noise and fit balance, for p features and rows held at this length."""
    one = amount.fine_gaussian(problem.budget.gradient(1.0), p, share=share).sigma
    return spread * problem.n / (problem.slope_bound * length * one * math.sqrt(p))


def descended(problem: Problem, releases: Releases, draw: Draw) -> tuple[Array, Metric]:
    """θ, and the metric it was found in, from the events that were paid for."""
    p, T, spread, left = problem.p, releases.steps, releases.spread, 1 - SHARE
    if releases.labels is not None:
        size = label_size(problem, problem.slope_bound / 2, releases.labels, draw)
        problem, spread, left = held_residuals(problem, 2 * size.large), min(spread, size.usual), left - LABELS_SHARE
    metric = metric_of(problem, releases.moments, draw)
    A, unit, weights = metric.A, problem.slope_bound * metric.length, row_weights(problem, metric)
    # Stable up to 2/φ″.
    η = min(_travel(problem, releases.amount, p, spread, metric.length, left) / T, 1.5 / problem.loss.mean_smoothness)
    shrink = np.linalg.inv(np.eye(p) + η * problem.loss.ridge * A @ A)  # the ridge, by an implicit step
    θ, mean = np.zeros(p), np.zeros(p)
    with draw.bar("whitened descent", T) as tick:
        for t in range(T):
            total = whitened_sum(problem, metric, problem.gradient(A @ θ, weights=weights, cut=False))
            θ = shrink @ (θ - η * unit / problem.n * draw.add(total))
            mean += (θ - mean) * (2 / (t + 2))  # weights 1, 2, …, T
            tick(t + 1)
    return np.asarray(A @ mean), metric


def whitened_sum(problem: Problem, metric: Metric, total: Array) -> Array:
    """A·Σ/(bC), to which a row adds at most 1: the nearest point of the ball ‖·‖ ≤ rows, itself unless there are more. Private."""
    moved = metric.A @ total / (problem.slope_bound * metric.length)
    length = float(np.linalg.norm(moved))
    return moved if length <= problem.most_rows else moved * (problem.most_rows / length)


@np.errstate(all="ignore")
def metric_of(problem: Problem, event: Gaussian, draw: Draw) -> Metric:
    """From the noisy second moments, so a function of what is released."""
    p, size = problem.p, problem.row_l2
    gram = problem.sums(_features_twice, problem.bits, problem.bits) * (problem.unit / size) ** 2
    gram = np.clip(gram, -float(problem.most_rows), problem.most_rows)
    upper = np.triu_indices(p)
    scale = np.where(upper[0] == upper[1], 1.0, math.sqrt(2.0))  # both halves of a pair count in ‖·‖_F
    square = np.zeros((p, p))
    square[upper] = draw.add(gram[upper] * scale) / scale / problem.n
    values, vectors = np.linalg.eigh(square + np.triu(square, 1).T)
    floor = _floor(event, p, problem.n)
    raised = np.clip(values, floor, max(_STEEPEST, floor))
    length = math.sqrt(max(float((values / raised).sum()), 1.0))
    return Metric((vectors / np.sqrt(raised)) @ vectors.T / size, (vectors * raised) @ vectors.T * size**2, length)


def _features_twice(problem: Problem) -> tuple[Matrix, Matrix]:
    return problem.X, problem.X


class LabelSize(NamedTuple):
    """How large labels are: their root mean square, and Σ|y|³/Σy², which a few large ones among many small raise."""

    usual: float
    large: float


def label_event(problem: Problem, amount: Amount, share: float = 1.0) -> Gaussian:
    """The noise on Σ|y/b|² and Σ|y/b|³: each term is in [0, 1], so both move by at most 1."""
    return amount.fine_gaussian(math.sqrt(2) * problem.budget.linear(), 2, share=share)


@np.errstate(all="ignore")
def label_size(problem: Problem, bound: float, event: Gaussian, draw: Draw) -> LabelSize:
    """From the two noisy sums, so a function of what is released; each is exact, of whole multiples of a power of two."""
    bits = problem.bits + problem.slope_bits
    sums = problem.sums(functools.partial(_powers_of_labels, bound=bound, bits=bits), 0, bits)[0] * 2.0**-bits
    noisy = draw.add(np.minimum(sums, problem.most_rows)) / problem.n
    second = min(max(float(noisy[0]), event.sigma / problem.n), 1.0)  # noise may hide as much
    third = min(max(float(noisy[1]), second**1.5), second)  # as it is for every label within the bound
    return LabelSize(bound * math.sqrt(second), bound * third / second)


@np.errstate(all="ignore")
def _powers_of_labels(problem: Problem, bound: float, bits: int) -> tuple[Matrix, Matrix]:
    sizes = np.abs(problem.y / bound)
    whole = np.trunc(np.column_stack([sizes**2, sizes**3]) * 2.0**bits)
    return np.ones((whole.shape[0], 1)), whole


def held_residuals(problem: Problem, width: float) -> Problem:
    """The same problem with Huber's loss, which turns linear at this width."""
    return dataclasses.replace(problem, loss=Huber(width=width, ridge=problem.loss.ridge), held_at=width)


def row_weights(problem: Problem, metric: Metric) -> Array:
    """min(1, C/‖Ax‖) of every row. Private."""
    return problem.of_each_row(functools.partial(_weights, metric=metric))


@np.errstate(all="ignore")
def _weights(problem: Problem, metric: Metric) -> Array:
    lengths, A = np.empty(problem.X.shape[0]), metric.A * problem.unit
    for i in range(0, lengths.size, _BLOCK):
        rows = problem.X[i : i + _BLOCK]
        dense = rows.toarray() if sp.issparse(rows) else rows
        moved = np.vecdot(dense[:, None, :], A)  # row by row, to the last bit, as in `row_products`
        lengths[i : i + _BLOCK] = np.sqrt(np.vecdot(moved, moved))
    weights: Array = np.minimum(1.0, metric.length * (1 - _ROUNDING) / np.maximum(lengths, 1e-300))
    return weights


def into_ball(theta: Array, metric: Array, radius: float) -> Array:
    """The point of ‖·‖₂ ≤ radius that is nearest in the metric: (metric + λI)⁻¹·metric·θ for the λ that reaches the ball."""
    values, vectors = np.linalg.eigh(metric)
    within = vectors.T @ theta

    def shrunk(log_λ: float) -> Array:
        return np.asarray(within * values / (values + math.exp(log_λ)))

    def excess(log_λ: float) -> float:
        return float(np.linalg.norm(shrunk(log_λ))) - radius

    low, high = math.log(values[0]) - 40, math.log(values[-1]) + 40
    if excess(low) <= 0:
        return theta
    while excess(high) > 0:
        high += 40
    found: Array = vectors @ shrunk(brentq(excess, low, high, xtol=1e-12))
    return found * min(1.0, radius / float(np.linalg.norm(found)))


whitened_descent = public(WhitenedDescent, over=None)
