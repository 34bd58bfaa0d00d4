"""Gradient descent in which every coordinate of a gradient is a statistical query to a few random rows.

Paper: Fish, Reyzin & Rubinstein, *Sampling without compromising accuracy in adaptive data analysis*, Algorithm 4,
Theorems 14 and 21, Corollaries 15 and 16; Shamir & Zhang for the strongly convex steps. Proof:
docs/proofs/descent_by_queries.md.

Symbols: S the table, Θ the set, D its diameter, d coordinates, G a bound on the norm of a row's gradient, H the strong
convexity, T steps, η_t the step, ∇̃ the answers; r the variance of the noise in ∇̃ as a share of G²; m runs, k
questions in all.

Differs: x_t is projected onto Θ (the proofs do this, the listing does not). An answer is an unbiased estimate of the
table's gradient for any sample size, so the bound on the expected excess does not need the accuracy of a single answer.
ℓ is a few dozen, where the theorems ask for d/α⁴, and the requirement on n follows from the noise alone. The constants
are stated. A ridge is public and added exactly. Boosting uses scores on a sample that are bounded by G·D: losses minus
that of the starting point.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from hedgerow._checks import positive, whole
from hedgerow._threads import one_thread
from hedgerow._types import Array, Integers
from hedgerow.convex.losses.families import Loss
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.data.row_store import RowStore
from hedgerow.data.row_values import STEPS, Valued
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import DistinctRows, Exponential, Laplace, Subsampled
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.textbook import subsampled
from hedgerow.textbook.subsampled import GRID


@final
@dataclass(frozen=True)
class ClippedRisk:
    """The average loss over rows, with its public constants.

    Features are cut to ±``feature_bound``, labels to ±``label_bound``. ``loss`` names its target and features, which
    are columns of numbers or flags. A value that is no number counts as 0.
    """

    loss: Loss
    over: ConvexSet
    feature_bound: float = 1.0
    label_bound: float = 1.0

    def __post_init__(self) -> None:
        loss = self.loss
        if loss.target is None or loss.interactions or loss.onehot or loss.where is not None:
            raise InvalidInput(
                "A loss of rows must have a target and plain features. Found none, or interactions, onehot or where. "
                "For example losses.Logistic(target='smoker', features=['age'])."
            )
        if not math.isfinite(self.over.diameter_l2(self.dimension)):
            raise InvalidInput("The set must be bounded. Found one that is not. Give one, such as L2Ball(1.0).")
        positive("The largest slope of the loss", self.slope, "Use a loss with a bounded slope on the set.")

    @property
    def dimension(self) -> int:
        """d, the number of parameters."""
        return len(self.loss.features) + int(self.loss.intercept)

    @functools.cached_property
    def slope(self) -> float:
        """sup |φ′| over the set."""
        b = positive("feature_bound", self.feature_bound)
        return self.loss.lipschitz(max(b, 1.0) * self.over.radius_l1(self.dimension), self.label_bound)

    @property
    def coordinate(self) -> float:
        """The largest coordinate of a row's gradient, without the ridge."""
        return self.slope * max(self.feature_bound, 1.0)

    @property
    def data_norm(self) -> float:
        """The largest norm of a row's gradient, without the ridge."""
        return self.coordinate * math.sqrt(self.dimension)

    @property
    def norm(self) -> float:
        """G."""
        return self.data_norm + self.loss.ridge * self.over.radius_l2(self.dimension)

    @property
    def diameter(self) -> float:
        """D."""
        return self.over.diameter_l2(self.dimension)

    @property
    def strong_convexity(self) -> float:
        """H."""
        return self.loss.strong_convexity

    def rows(self, data: RowStore, indices: Integers) -> tuple[Array, Array]:
        """Return features and labels of rows, cut to their bounds."""
        target = self.loss.target
        assert target is not None
        *columns, labels = data.take(indices, (*self.loss.features, target))
        X = np.ones((indices.size, self.dimension))
        for j, column in enumerate(columns):
            X[:, j] = _numbers(column, self.feature_bound)
        return X, self.loss.as_labels(_numbers(labels, self.label_bound))

    def gradient(self, data: RowStore, theta: Array, j: int) -> Valued:
        """Return coordinate j of the gradient as a statistical query: (g/B + 1)/2 for B the largest coordinate."""

        def valued(indices: Integers) -> Integers:
            X, y = self.rows(data, indices)
            return _steps(self.loss.derivative(np.vecdot(X, theta), y) * X[:, j], self.coordinate)

        return valued

    def scores(self, data: RowStore, thetas: list[Array], start: Array) -> Callable[[Integers], Integers]:
        """Return a function that scores each θ against the start for every row, ridge included.

        Scores are in [0, 1], in whole steps, one line per θ.
        """

        def scored(indices: Integers) -> Integers:
            X, y = self.rows(data, indices)
            at_start = self._value(X, y, start)
            return np.stack(
                [_steps(at_start - self._value(X, y, theta), self.norm * self.diameter) for theta in thetas]
            )

        return scored

    def _value(self, X: Array, y: Array, theta: Array) -> Array:
        """Return the loss of every row at θ, ridge included."""
        return self.loss.value(np.vecdot(X, theta), y) + self.loss.ridge / 2 * float(theta @ theta)


def _numbers(column: Any, bound: float) -> Array:
    """Return a column as numbers within the bound, 0 for NaN."""
    return np.clip(np.nan_to_num(np.asarray(column, dtype=np.float64), nan=0.0), -bound, bound)


def _steps(values: Array, bound: float) -> Integers:
    """Map values in ±bound to whole steps from 0 to STEPS."""
    return np.floor(np.clip(values / (2 * bound) + 0.5, 0.0, 1.0) * STEPS + 0.5).astype(np.int64)


@final
@dataclass(frozen=True)
class DescentPlan:
    """The queries that will be asked, all of them public. ``choice`` is set if runs are boosted."""

    risk: ClippedRisk
    steps: int
    query: subsampled.SamplePlan
    runs: int = 1
    choice: Subsampled | None = None

    @property
    def calls(self) -> int:
        """The number of calls of Algorithm 1."""
        return self.runs * self.steps * self.risk.dimension

    def cost(self, budget: Budget) -> float:
        """Return the cost of all queries in the budget's currency."""
        choice = budget.cost(self.choice) if self.choice is not None else 0.0
        return self.calls * budget.cost(self.query.event) + choice

    def step(self, t: int) -> float:
        """Return η_t: 2/(Ht) if the loss is strongly convex, else D/(G√t)."""
        H = self.risk.strong_convexity
        return 2 / (H * t) if H > 0 else self.risk.diameter / (self.risk.norm * math.sqrt(t))

    @property
    def expected_excess(self) -> float:
        """A bound on the expected excess of one run on the table: Theorem 14, or 21, with constants."""
        return expected_excess(self.risk, self.steps, self.query)


def answer_variance(risk: ClippedRisk, query: subsampled.SamplePlan) -> float:
    """Return d times the variance of the noise in one coordinate.

    The variance of discrete Laplace noise is at most that of the continuous, 2b².
    """
    noise = query.event.inner
    assert isinstance(noise, Laplace)
    return risk.dimension * 2 * (noise.scale * 2 * risk.coordinate / query.scale) ** 2


def expected_excess(risk: ClippedRisk, steps: int, query: subsampled.SamplePlan) -> float:
    """Return a bound on the expected excess of one run on the table.

    Convex: (D/√T)(G/2 + G̃²/G). Strongly convex: G̃²(1 + ln T)/(HT). G̃² = G² plus the noise's variance. Values are
    rounded to a grid, which biases a coordinate by at most half a grid step.
    """
    G, D, T, H = risk.norm, risk.diameter, steps, risk.strong_convexity
    second = G**2 + answer_variance(risk, query)
    rounding = math.sqrt(risk.dimension) * GRID * risk.coordinate * D
    if H > 0:
        return second * (1 + math.log(T)) / (H * T) + rounding
    return D / math.sqrt(T) * (G / 2 + second / G) + rounding


def configure(
    risk: ClippedRisk,
    rows: int,
    *,
    alpha: float,
    beta: float | None = None,
    queries: int = 1,
    size: int = 64,
    noise: float = 0.5,
) -> DescentPlan:
    """Plan steps and noise for an expected excess of α on the table.

    With ``beta``, all of k questions are within α, except with probability β. ``size`` is ℓ. ``noise`` is the variance
    of the noise as a share of G²: with more noise a step is cheaper, and more steps are needed.
    """
    sample = DistinctRows(min(whole("size", size), rows), rows)
    spread = (
        math.sqrt(positive("noise", noise) / (2 * risk.dimension)) * risk.norm / (2 * risk.coordinate) * sample.size
    )
    query = subsampled.SamplePlan(Subsampled(sample, Laplace(1.0, spread, GRID)), 1.0, 1.0, float(sample.size))
    positive("alpha", alpha)
    if beta is None:
        return DescentPlan(risk, _steps_for(risk, query, alpha), query)
    if not 0 < positive("beta", beta) < 1:
        raise InvalidInput(f"beta must be between 0 and 1. Found {beta!r}. Give the probability of failure.")
    # Each run is within α/4 with probability ½ (Markov), so one of m is, except with probability β/(2k). The choice
    # adds at most 3α/4.
    runs = max(1, math.ceil(math.log2(2 * queries / beta)))
    return DescentPlan(
        risk,
        _steps_for(risk, query, alpha / 8),
        query,
        runs,
        _choice(risk, rows, 0.75 * alpha, beta / (2 * queries), runs),
    )


def _steps_for(risk: ClippedRisk, query: subsampled.SamplePlan, alpha: float) -> int:
    """Return the least number of steps whose expected excess is at most α."""
    high = 1
    while expected_excess(risk, high, query) > alpha:
        high *= 2
        if high > 2**40:
            raise InvalidInput(f"alpha must be larger. Found {alpha!r}. Ask for less accuracy, or scale the features.")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if expected_excess(risk, middle, query) <= alpha else (middle, high)
    return high


def _choice(risk: ClippedRisk, rows: int, alpha: float, beta: float, runs: int) -> Subsampled:
    """Return the exponential mechanism on scores of a sample. It is within α of the best run except with probability β.

    Half of α is for the sample, whose mean is within t for every run: 2V·2t. The other half is for the choice:
    2V/ℓ·(2/ε′)·ln(m·2/β).
    """
    V = risk.norm * risk.diameter
    t = (alpha / 2) / (4 * V) - GRID
    if not t > 0:
        raise InvalidInput(f"alpha must be larger. Found {alpha!r}. Ask for less accuracy, or scale the features.")
    size = math.ceil(math.log(4 * runs / beta) / (2 * t * t))
    sample = DistinctRows(min(size, rows), rows)
    epsilon = 2 * math.log(2 * runs / beta) * 2 * V / (sample.size * alpha / 2)
    return Subsampled(sample, Exponential(1.0, epsilon))


def descend(plan: DescentPlan, data: RowStore, ledger: Ledger, noise: Noise) -> Array:
    """Run Algorithm 4 once. Return the average of the points at which the gradient was asked for."""
    risk = plan.risk
    theta = risk.over.project(np.zeros(risk.dimension))
    total = np.zeros(risk.dimension)
    for t in range(1, plan.steps + 1):
        total += theta
        said = [
            subsampled.answer(plan.query, risk.gradient(data, theta, j), data.rows, ledger, noise).value
            for j in range(risk.dimension)
        ]
        gradient = (2 * np.array(said) - 1) * risk.coordinate + risk.loss.ridge * theta
        theta = risk.over.project(theta - plan.step(t) * gradient)  # x_t = Π(x_{t−1} − η_t ∇̃)
    return total / plan.steps


@one_thread
def minimize(plan: DescentPlan, data: RowStore, ledger: Ledger, noise: Noise) -> Array:
    """Return θ: the result of one run, or the best of several by the exponential mechanism (Corollaries 15 and 16).

    A plan that the budget cannot pay for is refused before it begins.
    """
    data.require((*plan.risk.loss.features, str(plan.risk.loss.target)))
    with ledger.exclusively():
        cost = plan.cost(ledger.budget)
        if cost > ledger.remaining * (1 + 1e-12):
            raise BudgetExceeded(
                f"cost must be at most {ledger.remaining:.4g} (what is left). Found {cost:.4g} for {plan.calls} "
                "queries. Ask for less accuracy, or use more rows."
            )
        runs = [descend(plan, data, ledger, noise) for _ in range(plan.runs)]
        if plan.choice is None:
            return runs[0]
        start = plan.risk.over.project(np.zeros(plan.risk.dimension))
        scored = plan.risk.scores(data, runs, start)
        return runs[subsampled.choose(plan.choice, scored, data.rows, ledger, noise)]
