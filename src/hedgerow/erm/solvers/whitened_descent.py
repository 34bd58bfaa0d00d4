"""Whitened descent: measure how the features vary, then put the noise where it harms least. The practical choice.

Papers: Künsch, Stefanski & Carroll "Conditionally unbiased bounded-influence estimation in general regression models"
(weights that depend on a row's own features keep a GLM unbiased); Dong, Roth & Su "Gaussian differential privacy".

Symbols: M = Σxxᵀ/n, M̃ its release, r the spectral norm of its noise; A = max(M̃, r)^(−½), a public matrix; θ = Aθ′;
C = √tr(AM̃A), about the root mean square of ‖Ax‖; w = min(1, C/‖Ax‖) the weight of a row; b the bound on |φ′|.

1. Release M with a tenth of ρ. A row adds xxᵀ, with ‖xxᵀ‖_F ≤ ‖x‖², and two such matrices are at most √2·‖x‖² apart.
2. Take T steps θ′ ← θ′ − η·(A·Σ w·φ′(⟨x, θ⟩, y)·x + N(0, σ²I))/n. Release A times the mean of all θ′, with weights 1,
   …, T.

Privacy. A row adds w·φ′·Ax to a sum, which is at most bC long, so the sum moves by at most 2bC (bC if a row is added or
removed). A and C are functions of M̃, and the weight of a row is a function of its own features and of A. All releases
are Gaussian and compose to one mechanism. If n is a guess and there are more rows than allowed for, the sum is
projected onto a ball after it was multiplied by A. Before the multiplication, the projection would be a contraction in
another metric than the one that is billed.

Reason. Noise of covariance Σ on the gradient costs ½tr(H⁻¹Σ), with H about M. If all rows were as long as their root
mean square, noise of covariance A⁻² would be needed tr(A²M) times, and that product is least at A ∝ M^(−½)
(Cauchy–Schwarz). It is p² there, while plain noise costs trM·trM⁻¹. In the same metric few steps suffice. Rows longer
than C count for less, instead of increasing the noise for all.

The loss is fitted in a bounded form: ``BoundedLogistic`` for ``Logistic``; for ``Squared``, ``Huber`` with a width of
twice Σ|y|³/Σy², whose two sums are released with a fiftieth of ρ; the hinge with its kink rounded. If labels follow the
model, the first two forms and the weights leave the minimum unchanged. Otherwise the minimum moves, and no theorem here
bounds by how much: ``risk_bound`` is None, and docs/benchmarks-erm.md has measurements.

Steps: T balances the noise against a fit with scores of root mean square ``spread``, by ηT = spread·n/(σ₁√p), σ₁ the
noise for T = 1. η = 1/φ″ if possible. Proofs: docs/proofs/erm_whitened_descent.md.
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
from hedgerow.erm.problem import Problem, require_steps
from hedgerow.erm.solver import Draw, SolverPlan, public
from hedgerow.erm.solvers.minimum import require_smooth
from hedgerow.errors import InvalidInput
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.events import Gaussian

MOST_FEATURES = 500  # at most this many features, because the second moments have p²/2 values
SHARE = 0.1  # share of ρ for the second moments
LABELS_SHARE = 0.02  # share of ρ for the labels' size, if the loss adapts to it
USUAL_SPREAD = 2.5  # root mean square of the log-odds that a classifier is expected to have
FEWEST_STEPS, MOST_STEPS = 16, 500  # limits of the default number of steps
HINGE = 0.2  # length of the interval of margins over which the hinge's kink is rounded
# Limits of the eigenvalues of M̃, in units of ‖x‖². The lower one keeps A well conditioned. The upper one is not
# exceeded by 8 times as many rows as guessed.
_FLATTEST = 1e-8
_STEEPEST = 8.0
_BLOCK = 4096  # rows whose lengths are computed at a time
_ROUNDING = 1e-7  # rounding of ‖Ax‖ as a share of C, within the margin that `allowance` has for clipped norms


class WhiteningMetric(NamedTuple):
    """The metric that the released second moments define."""

    A: Array  # symmetric
    moments: Array  # A⁻²: M̃ with its eigenvalues clipped
    length: float  # C, beyond which the weight of a row falls


@dataclasses.dataclass(frozen=True)
class Releases:
    """All noise of a descent. Moments are in units of ‖x‖², sums of gradients in units of bC, which depends on M̃."""

    labels: Gaussian | None  # noise on the labels' size, if the loss adapts to it
    moments: Gaussian
    step: Gaussian
    steps: int
    spread: float
    amount: Amount = dataclasses.field(compare=False)  # the amount that pays for all of it

    @property
    def events(self) -> tuple[Gaussian, ...]:
        """All events, in the order in which they are drawn."""
        return (*(() if self.labels is None else (self.labels,)), self.moments, *(self.step,) * self.steps)


@dataclasses.dataclass(frozen=True)
class WhitenedDescent:
    """Fit a smooth loss, or the hinge, with noise shaped like the data, for up to 500 features.

    ``over`` may be an L2Ball. The result is then its point that is nearest in the metric of M̃.

    Parameters
    ----------
    - iterations: the number of steps. The default suits nearly always.
    - spread: the expected root mean square of the scores ⟨x, θ⟩. By default 2.5 for classes, that of the labels
      otherwise.

    Example
    -------
    >>> result = hr.erm.whitened_descent(X, y, loss=loss, over=hr.L2Ball(1.0), budget=hr.Budget(1.0, 1e-6))
    """

    iterations: int | None = None
    spread: float | None = None
    name: ClassVar[str] = "whitened_descent"

    def plan(self, problem: Problem, amount: Amount) -> SolverPlan[Releases]:
        """Plan the release of the moments, one noisy gradient per step, and for squared loss the labels' size."""
        if not isinstance(problem.over, L2Ball | Unconstrained):
            raise InvalidInput(
                f"over must be an L2Ball, or left out, for whitened_descent. Found {type(problem.over).__name__}. Use "
                "auto."
            )
        fitted = _bounded_problem(problem)
        require_smooth(fitted, self.name)
        if problem.p > MOST_FEATURES:
            raise InvalidInput(
                f"X must have at most {MOST_FEATURES} columns for whitened_descent. Found {problem.p}. Use "
                "mirror_descent."
            )
        usual = USUAL_SPREAD if problem.loss.labels == "binary" else problem.label_bound
        aim = usual if self.spread is None else positive("spread", self.spread)
        adapts = isinstance(problem.loss, Squared)
        releases = plan_noise(fitted, amount, problem.p, aim, adapts=adapts, iterations=self.iterations)
        return SolverPlan(self, releases.events, None, releases.steps, releases)

    def run(self, problem: Problem, plan: SolverPlan[Releases], draw: Draw) -> Array:
        """Take the steps, and project onto the ball if there is one."""
        theta, metric = descend_whitened(_bounded_problem(problem), plan.details, draw)
        if isinstance(problem.loss, Hinge):
            theta = theta / (1 - HINGE / 2)  # margins gather at the middle of the rounded kink; move that middle to 1
        if isinstance(problem.over, L2Ball):
            theta = into_ball(theta, metric.moments, problem.over.radius)
        return theta


def _bounded_problem(problem: Problem) -> Problem:
    """Return the problem with the bounded form of its loss and without its set."""
    form = bounded_form(problem.loss, problem.label_bound)
    return dataclasses.replace(problem, loss=form, over=Unconstrained())


def bounded_form(loss: Loss, label_bound: float) -> Loss:
    """Return the bounded form of a loss: smooth, with small slopes.

    Its minimum is that of the loss if labels follow the model.
    """
    if isinstance(loss, Logistic):
        return BoundedLogistic(ridge=loss.ridge)
    if isinstance(loss, Squared):
        return Huber(width=2 * positive("label_bound", label_bound), ridge=loss.ridge)
    if isinstance(loss, Hinge):
        return SmoothedHinge(width=HINGE, ridge=loss.ridge)
    return loss


def plan_noise(
    problem: Problem, amount: Amount, features: int, spread: float, *, adapts: bool, iterations: int | None = None
) -> Releases:
    """Plan all noise for at most ``features`` features, whichever they are."""
    p, budget = features, problem.budget
    left = 1 - SHARE - (LABELS_SHARE if adapts else 0.0)
    # Scaling a sum of products rounds it twice. The sum is at most `most_rows`.
    scaled = 4 * p * 2.0**-53 * problem.most_rows
    moments = amount.fine_gaussian(budget.marginal_l2() + scaled, p * (p + 1) // 2, share=SHARE)
    if iterations is None:
        # C² is assumed to be p/4. The steps are enough even if it turns out to be as small as p/9.
        far = _travel(problem, amount, p, spread, math.sqrt(p) / 2, left) * problem.loss.mean_smoothness
        iterations = round(min(max(far, FEWEST_STEPS), MOST_STEPS))
    T = require_steps(iterations)
    rounded = _rounding_distance(problem, p, _floor(moments, p, problem.n))
    step = amount.fine_gaussian(budget.gradient(1.0) + rounded, p, T, share=left)
    labels = label_event(problem, amount, LABELS_SHARE) if adapts else None
    return Releases(labels, moments, step, T, spread, amount)


def _floor(moments: Gaussian, p: int, n: int) -> float:
    """Return r in units of ‖x‖².

    Noise with variance σ² on the diagonal and half of that off the diagonal has spectral norm √(2p)·σ.
    """
    return max(math.sqrt(2 * p) * moments.sigma / n, _FLATTEST)


def _rounding_distance(problem: Problem, p: int, floor: float) -> float:
    """Return the most by which rounding of A·Σ and of its projection moves two neighbours apart, in units of bC."""
    if problem.budget.neighbours == "replace":  # ‖A‖·‖x‖ ≤ floor^(−½), C ≥ 1 and ‖Σ‖ ≤ rows·b·‖x‖
        return 2 * (p + 3) * (math.sqrt(p) + 1) * 2.0**-53 * problem.most_rows / math.sqrt(floor)
    # There may be any number of rows. Errors are relative to ‖A‖·‖Σ‖, hence to ‖A·Σ‖ times A's condition number, and
    # the ball bounds ‖A·Σ‖.
    condition = math.sqrt(max(_STEEPEST / floor, 1.0))
    return 2 * ((p + 3) * 2.0**-53 + ROUNDED) * (math.sqrt(p) + 1) * condition * problem.most_rows


def _travel(problem: Problem, amount: Amount, p: int, spread: float, length: float, share: float) -> float:
    """Return the ηT at which noise and fit balance, for p features and rows cut at this length."""
    one = amount.fine_gaussian(problem.budget.gradient(1.0), p, share=share).sigma
    return spread * problem.n / (problem.slope_bound * length * one * math.sqrt(p))


def descend_whitened(problem: Problem, releases: Releases, draw: Draw) -> tuple[Array, WhiteningMetric]:
    """Return θ and the metric in which it was found, from the events that were paid for."""
    p, T, spread, left = problem.p, releases.steps, releases.spread, 1 - SHARE
    if releases.labels is not None:
        size = label_size(problem, problem.slope_bound / 2, releases.labels, draw)
        problem, spread, left = with_huber_loss(problem, 2 * size.large), min(spread, size.typical), left - LABELS_SHARE
    metric = metric_of(problem, releases.moments, draw)
    A, unit, weights = metric.A, problem.slope_bound * metric.length, row_weights(problem, metric)
    # steps are stable up to 2/φ″
    η = min(_travel(problem, releases.amount, p, spread, metric.length, left) / T, 1.5 / problem.loss.mean_smoothness)
    shrink = np.linalg.inv(np.eye(p) + η * problem.loss.ridge * A @ A)  # an implicit step for the ridge
    θ, mean = np.zeros(p), np.zeros(p)
    with draw.bar("whitened descent", T) as tick:
        for t in range(T):
            total = whiten_sum(problem, metric, problem.gradient(A @ θ, weights=weights, cut=False))
            θ = shrink @ (θ - η * unit / problem.n * draw.add(total))
            mean += (θ - mean) * (2 / (t + 2))  # weights 1, 2, …, T
            tick(t + 1)
    return np.asarray(A @ mean), metric


def whiten_sum(problem: Problem, metric: WhiteningMetric, total: Array) -> Array:
    """Return A·Σ/(bC), to which a row adds at most 1. Private.

    If there are more than ``most_rows`` rows, it is projected onto the ball of that radius.
    """
    moved = metric.A @ total / (problem.slope_bound * metric.length)
    length = float(np.linalg.norm(moved))
    return moved if length <= problem.most_rows else moved * (problem.most_rows / length)


@np.errstate(all="ignore")
def metric_of(problem: Problem, event: Gaussian, draw: Draw) -> WhiteningMetric:
    """Release the noisy second moments and return the metric they define."""
    p, size = problem.p, problem.row_l2
    gram = problem.sums(_features_twice, problem.bits, problem.bits) * (problem.unit / size) ** 2
    gram = np.clip(gram, -float(problem.most_rows), problem.most_rows)
    upper = np.triu_indices(p)
    scale = np.where(upper[0] == upper[1], 1.0, math.sqrt(2.0))  # off the diagonal, both halves count in ‖·‖_F
    square = np.zeros((p, p))
    square[upper] = draw.add(gram[upper] * scale) / scale / problem.n
    values, vectors = np.linalg.eigh(square + np.triu(square, 1).T)
    floor = _floor(event, p, problem.n)
    raised = np.clip(values, floor, max(_STEEPEST, floor))
    length = math.sqrt(max(float((values / raised).sum()), 1.0))
    return WhiteningMetric(
        (vectors / np.sqrt(raised)) @ vectors.T / size, (vectors * raised) @ vectors.T * size**2, length
    )


def _features_twice(problem: Problem) -> tuple[Matrix, Matrix]:
    return problem.X, problem.X


class LabelSize(NamedTuple):
    """The size of the labels: their root mean square, and Σ|y|³/Σy².

    The latter rises with a few large labels among many small ones.
    """

    typical: float
    large: float


def label_event(problem: Problem, amount: Amount, share: float = 1.0) -> Gaussian:
    """Return the noise on Σ|y/b|² and Σ|y/b|³. Each term is in [0, 1], so each sum moves by at most 1."""
    return amount.fine_gaussian(math.sqrt(2) * problem.budget.linear(), 2, share=share)


@np.errstate(all="ignore")
def label_size(problem: Problem, bound: float, event: Gaussian, draw: Draw) -> LabelSize:
    """Release the two noisy sums and return the size of the labels.

    Each sum is exact, over whole multiples of a power of two.
    """
    bits = problem.bits + problem.slope_bits
    sums = problem.sums(functools.partial(_powers_of_labels, bound=bound, bits=bits), 0, bits)[0] * 2.0**-bits
    noisy = draw.add(np.minimum(sums, problem.most_rows)) / problem.n
    second = min(max(float(noisy[0]), event.sigma / problem.n), 1.0)  # the noise could hide a sum as large as σ
    third = min(max(float(noisy[1]), second**1.5), second)  # the true moments of labels within the bound obey this
    return LabelSize(bound * math.sqrt(second), bound * third / second)


@np.errstate(all="ignore")
def _powers_of_labels(problem: Problem, bound: float, bits: int) -> tuple[Matrix, Matrix]:
    """Return squares and cubes of the labels, in whole units, to be summed."""
    sizes = np.abs(problem.y / bound)
    whole = np.trunc(np.column_stack([sizes**2, sizes**3]) * 2.0**bits)
    return np.ones((whole.shape[0], 1)), whole


def with_huber_loss(problem: Problem, width: float) -> Problem:
    """Return the same problem with Huber's loss, which turns linear at this width."""
    return dataclasses.replace(problem, loss=Huber(width=width, ridge=problem.loss.ridge), held_at=width)


def row_weights(problem: Problem, metric: WhiteningMetric) -> Array:
    """Return the weight min(1, C/‖Ax‖) of every row. Private."""
    return problem.of_each_row(functools.partial(_weights, metric=metric))


@np.errstate(all="ignore")
def _weights(problem: Problem, metric: WhiteningMetric) -> Array:
    """Compute the weights of the rows of a problem, each row by itself."""
    lengths, A = np.empty(problem.X.shape[0]), metric.A * problem.unit
    for i in range(0, lengths.size, _BLOCK):
        rows = problem.X[i : i + _BLOCK]
        dense = rows.toarray() if sp.issparse(rows) else rows
        moved = np.vecdot(dense[:, None, :], A)  # each row by itself to the last bit, as in `row_products`
        lengths[i : i + _BLOCK] = np.sqrt(np.vecdot(moved, moved))
    weights: Array = np.minimum(1.0, metric.length * (1 - _ROUNDING) / np.maximum(lengths, 1e-300))
    return weights


def into_ball(theta: Array, metric: Array, radius: float) -> Array:
    """Return the point of ‖·‖₂ ≤ radius that is nearest to θ in the metric.

    It is (metric + λI)⁻¹·metric·θ for the λ that reaches the ball.
    """
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
