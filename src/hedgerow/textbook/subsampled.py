"""Statistical queries answered from a few random rows, in a time that does not grow with the table.

Paper: Fish, Reyzin & Rubinstein, *Sampling without compromising accuracy in adaptive data analysis*, Algorithm 1,
Theorem 5, Propositions 6 and 7. Proof: docs/proofs/subsampled.md.

Symbols: n rows, ℓ of them in a query's sample, q: X → [0, 1] a query, k queries in all; α the accuracy of all queries
except with probability β; ε′ the loss of the noise on a sample, ε that of the query, which the sampling amplifies.

Differs: ε′ solves the exact formula for the loss. Without replacement it is log(1 + (ℓ/n)(e^ε′ − 1)), which the paper
linearizes. With replacement it is ℓ·log(1 + (e^ε′ − 1)/n), where Proposition 7 is wrong. The ledger composes the
queries. Values are multiples of 2^-20 and the noise is discrete on that grid, so sums are exact. Accuracy α on the
population needs α/8 on the sample, not α (``for_population``). If rows are added or removed, n is private: the sample
is then a Poisson sample at a public rate, and sums are divided by a public scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from hedgerow._checks import positive, whole
from hedgerow._types import Integers
from hedgerow.data.row_values import MOST_SAMPLED, STEPS, Valued
from hedgerow.errors import InvalidInput
from hedgerow.privacy.amplification import inner_epsilon
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import COIN, DistinctRows, Exponential, Laplace, PoissonSample, RepeatedRows, Subsampled
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise

GRID = 1 / STEPS  # the grid of values and noise
WHY = "sampled statistic"  # purpose of the ledger entries


@final
@dataclass(frozen=True)
class SamplePlan:
    """One query: its event, and its accuracy α on the table except with probability ``beta``."""

    event: Subsampled
    alpha: float
    beta: float
    scale: float
    """The divisor of a sum over the sample: ℓ, or under add-remove the rate times a public number of rows."""


@final
@dataclass(frozen=True)
class SampledAnswer:
    """An answer: a fraction as it was drawn, not cut to [0, 1], and its cost in the budget's currency."""

    value: float
    error: float
    cost: float


def sampling_error(size: int, beta: float, rows: int | None = None) -> float:
    """Return the distance of the mean of ℓ rows from that of the table, except with probability β.

    The bound is Hoeffding's or, for rows drawn without replacement from n, Serfling's.
    """
    left = 1.0 if rows is None else 1 - (size - 1) / rows
    return 0.0 if size == rows else math.sqrt(left * math.log(2 / beta) / (2 * size))


def noise_error(event: Laplace, beta: float) -> float:
    """Return the size of the discrete noise in rows, except with probability β: P[|X| ≥ mg] ≤ e^((1 − m)g/b)."""
    return event.scale * math.log(1 / beta) + event.grid


def sample_size(alpha: float, beta: float, queries: int = 1, rows: int | None = None) -> int:
    """Return the least ℓ whose mean is within α/2 of the table's in all of k queries, except with probability β/2.

    It is 2 log(4k/β)/α², as in Theorem 5. Without replacement from n rows it is a little less, and never more than n.
    """
    _require(alpha, beta, queries)
    t = 2 * math.log(4 * queries / beta) / alpha**2
    if rows is None:
        return math.ceil(t)
    return min(rows, math.ceil(t * (1 + 1 / rows) / (1 + t / rows)))  # ℓ ≥ t(1 − (ℓ − 1)/n)


def plan(
    rows: int, *, alpha: float, beta: float, queries: int = 1, size: int | None = None, replace: bool = False
) -> SamplePlan:
    """Plan the least loss at which k queries are all within α of the table, except with probability β.

    Replace-one only.

    ``size`` is ℓ, by default ``sample_size``. A larger sample costs more time and, up to a factor of 2, less privacy.
    ``replace`` draws the sample with replacement.
    """
    _require(alpha, beta, queries)
    of = None if replace else whole("rows", rows)
    chosen = sample_size(alpha, beta, queries, of) if size is None else whole("size", size)
    _require_size(chosen)
    sample = RepeatedRows(chosen, rows) if replace else DistinctRows(chosen, rows)
    failure = beta / queries
    left = alpha - GRID - sampling_error(chosen, failure / 2, of)
    if not left > 0:
        raise InvalidInput(
            f"size must be at least about {sample_size(alpha, beta, queries, of)} for alpha = {alpha:g}. Found "
            f"{chosen}. Sample more rows, or ask for less accuracy."
        )
    scale = (left * chosen - GRID) / math.log(2 / failure)
    return SamplePlan(Subsampled(sample, Laplace(1.0, scale, GRID)), alpha, failure, float(chosen))


def affordable(rows: int, *, epsilon: float, size: int, beta: float, replace: bool = False) -> SamplePlan:
    """Plan one query of loss ε from a sample of ℓ rows, with the noise that solves the exact formula."""
    _require_size(whole("size", size))
    sample = RepeatedRows(size, rows) if replace else DistinctRows(size, rows)
    noise = Laplace(1.0, 1 / inner_epsilon(sample, positive("epsilon", epsilon)), GRID)
    alpha = sampling_error(size, beta / 2, None if replace else rows) + noise_error(noise, beta / 2) / size + GRID
    return SamplePlan(Subsampled(sample, noise), alpha, beta, float(size))


def poisson_plan(scale: float, *, alpha: float, beta: float, queries: int = 1, size: int | None = None) -> SamplePlan:
    """Plan a query for add-remove neighbours, where n is private.

    Every row is sampled at the public rate ℓ/``scale``, and the sum is divided by ℓ. The answer is within α of (rows
    where q holds)/scale, by Bernstein's inequality for independent coins, if n is at most 2·scale.
    """
    _require(alpha, beta, queries)
    scale, failure = positive("scale", scale), beta / queries
    L = math.log(4 / failure)
    least = math.ceil(20 * L / alpha**2)
    chosen = least if size is None else whole("size", size)
    _require_size(chosen)
    heads = min(COIN, max(1, round(chosen / scale * COIN)))
    expected = heads / COIN * scale
    spread = 0.0 if heads == COIN else math.sqrt(4 * L / expected) + 2 * L / (3 * expected)
    left = alpha - GRID - spread
    if not left > 0:
        raise InvalidInput(
            f"size must be larger for alpha = {alpha:g} where rows come and go. Found {chosen}. Give size={least}."
        )
    noise = Laplace(1.0, (left * expected - GRID) / math.log(2 / failure), GRID)
    return SamplePlan(Subsampled(PoissonSample(heads), noise), alpha, failure, expected)


def answer(plan: SamplePlan, valued: Valued, rows: int, ledger: Ledger, noise: Noise) -> SampledAnswer:
    """Return q(S_ℓ) + Lap(1/(ℓε′)). ``valued`` gives the values of rows by their numbers, each from its row alone."""
    with ledger.exclusively():
        receipt = ledger.charge(_require_rows(plan.event, rows), why=WHY, keep=False)
        if isinstance(plan.event.sample, PoissonSample):
            drawn = noise.sample(rows, receipt)
        else:
            drawn = noise.draw_rows(receipt)
        with ledger.closed():
            total = _total(valued, drawn)
        noisy = float(noise.add(total * GRID, receipt))
        ledger.record(receipt, noisy, noise.private)
        return SampledAnswer(noisy / plan.scale, plan.alpha, receipt.cost)


def choose(event: Subsampled, scored: Callable[[Integers], Integers], rows: int, ledger: Ledger, noise: Noise) -> int:
    """Run the exponential mechanism on scores summed over a sample, and return its choice.

    ``scored`` gives the scores of rows by number, in steps, one line per candidate.
    """
    with ledger.exclusively():
        receipt = ledger.charge(_require_rows(event, rows), why="sampled choice", keep=False)
        drawn = noise.draw_rows(receipt)
        with ledger.closed():
            scores = scored(drawn).sum(axis=1)
        chosen = noise.choose(scores * GRID, receipt)
        ledger.record(receipt, chosen, noise.private)
        return chosen


def _total(valued: Valued, drawn: Integers) -> int:
    drawn.sort()  # for locality in memory; the order does not matter to a sum
    return int(valued(drawn).sum()) if drawn.size else 0


def _require_rows(event: Subsampled, rows: int) -> Subsampled:
    """Refuse an event made for another number of rows.

    If it counts on more rows than there are, its bill is too small.
    """
    if not isinstance(event.sample, PoissonSample) and event.sample.rows != rows:
        raise InvalidInput(f"A plan must be for the table's {rows} rows. Found {event.sample.rows}. Plan it again.")
    if isinstance(event.inner, Laplace | Exponential) and event.inner.sensitivity < 1:
        raise InvalidInput(
            f"The sensitivity must be 1 row. Found {event.inner.sensitivity!r}. Make the plan with plan()."
        )
    return event


# Theorem 5 on the population, by Theorem 4


@final
@dataclass(frozen=True)
class PopulationPlan:
    """A plan for k queries within α of the population, except with probability β: each query, and the budget of all."""

    plan: SamplePlan
    budget: Budget
    alpha: float
    beta: float


def for_population(rows: int, *, alpha: float, beta: float, queries: int, replace: bool = False) -> PopulationPlan:
    """Plan queries that are (α, β)-accurate on the population (Theorem 5, by Theorem 4).

    They are (α/8, αβ/16)-accurate on the sample and (α/64, αβ/32)-private.
    """
    _require(alpha, beta, queries)
    budget = Budget(alpha / 64, alpha * beta / 32)
    found = plan(rows, alpha=alpha / 8, beta=alpha * beta / 16, queries=queries, replace=replace)
    if not queries * found.event.rho <= budget.total:
        raise InvalidInput(
            f"rows must be at least {population_rows(alpha=alpha, beta=beta, queries=queries)} for this. Found {rows}. "
            "Use more rows, or ask for less accuracy."
        )
    return PopulationPlan(found, budget, alpha, beta)


def population_rows(*, alpha: float, beta: float, queries: int) -> int:
    """Return a number of rows for which ``for_population`` has a plan, within 0.1 % of the least.

    It is O(√k log(k/β) / α²), up to logarithms.
    """
    total = Budget(alpha / 64, alpha * beta / 32).total

    def enough(rows: int) -> bool:
        found = plan(rows, alpha=alpha / 8, beta=alpha * beta / 16, queries=queries)
        return queries * found.event.rho <= total

    high = 1
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _require(alpha: float, beta: float, queries: int) -> None:
    """Refuse parameters out of range."""
    if not 0 < positive("alpha", alpha) <= 1:
        raise InvalidInput(f"alpha must be above 0 and at most 1. Found {alpha!r}. Give a fraction, such as 0.05.")
    if not 0 < positive("beta", beta) < 1:
        raise InvalidInput(f"beta must be between 0 and 1. Found {beta!r}. Give the probability of failure.")
    whole("queries", queries)


def _require_size(size: int) -> None:
    if not size <= MOST_SAMPLED:
        raise InvalidInput(f"size must be at most 2^30. Found {size}. Ask for less accuracy.")
