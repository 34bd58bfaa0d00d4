"""Offline private multiplicative weights (MWEM): all queries are known; each round chooses and measures the worst one.

Papers: Wang, *Lecture 12: Releasing Multiple Linear Queries Privately II* (Algorithm 6, Theorem 12.6); Hardt, Ligett &
McSherry, *A simple and practical algorithm for differentially private data release*. Proof: docs/proofs/mwem.md.

Symbols: D the data, D̂ the hypothesis, n rows, |X| cells, k queries, T rounds, y = ⟨q,D̂⟩ − ⟨q,D⟩ + noise. The loop
stops at |y| ≤ 2α, and then every query is within 3α of the data, with probability 1 − β.

Differs: the choice is among all k queries, because the set of "queries with error > α" would itself depend on the data;
the exponential mechanism favors them. Scores are |N − n⟨q,D̂⟩| in rows, on a public grid (``counting``), so their
sensitivity is exactly 1. Choices err by at most ¾α and measurements by ¼α, so an update happens only at errors of at
least 1¾α. T is the bound of Theorem 4.10 at 1¾α, plus the round that stops. Budgets are calibrated by the ledger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hedgerow._threads import one_thread
from hedgerow._types import Array
from hedgerow.data import counting
from hedgerow.data.source import DataSource
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Exponential, Gaussian, Laplace
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.query.linear import Linear, answer_all
from hedgerow.textbook import multiplicative_weights as experts
from hedgerow.textbook.bounds import smallest_alpha
from hedgerow.textbook.multiplicative_weights import Step
from hedgerow.universe.universe import Universe

MarginalOf = Callable[[tuple[str, ...]], NDArray[Any]]
LARGEST_MATRIX = 5_000_000  # a matrix of all queries over all cells is built if it has at most this many numbers
CHOICE, SAMPLE = 0.75, 0.25  # shares of α lost by the choice and by the measurement
PROGRESS = 2 - SAMPLE  # the least error of a query that causes an update, in units of α


@final
@dataclass(frozen=True)
class MWEMConfig:
    """The public parameters of a run. Made by ``configure``."""

    scale: float  # n, or under add-remove a public estimate of it
    alpha: float
    beta: float
    step: Step
    rounds: int
    choice: Exponential
    measurement: Laplace | Gaussian

    @property
    def eta(self) -> float:
        """η, the step of the update."""
        return experts.step_size(PROGRESS * self.alpha, self.step)

    @property
    def error(self) -> float:
        """3α: every query of the workload is this close, with probability 1 − β."""
        return 3 * self.alpha

    @property
    def grid(self) -> float:
        """The grid of the values of queries that are not counts."""
        return counting.grid_for(
            self.scale, getattr(self.measurement, "scale", 0) or getattr(self.measurement, "sigma", 0)
        )


def configure(
    budget: Budget,
    *,
    cells: int,
    scale: float,
    queries: int,
    beta: float,
    alpha: float | None = None,
    step: Step = "hoeffding",
) -> MWEMConfig:
    """Calibrate to the whole budget. By default α is the smallest that ``scale`` rows can guarantee."""
    smallest = smallest_alpha(lambda a: rows_needed(budget, a, beta, queries, cells, step), scale)
    if math.isinf(smallest) or (alpha is not None and alpha < smallest):
        least = rows_needed(budget, alpha or 0.3, beta, queries, cells, step)
        raise InvalidInput(
            f"rows must be at least {math.ceil(least)} for alpha = {alpha or 0.3:g}. Found {scale:g}"
            + ("" if math.isinf(smallest) else f", for which alpha can be {smallest:.4g}")
            + ". Use more rows, a larger budget, or a larger alpha."
        )
    alpha = smallest if alpha is None else alpha
    choice, measurement, rounds, _ = _calibrate(budget, alpha, beta, queries, cells, step)
    return MWEMConfig(scale, alpha, beta, step, rounds, choice, measurement)


def rows_needed(budget: Budget, alpha: float, beta: float, queries: int, cells: int, step: Step = "hoeffding") -> float:
    """Return the rows for which ``configure`` guarantees α. They are fewer than ``bounds.mwem_rows``."""
    *_, width = _calibrate(budget, alpha, beta, queries, cells, step)
    return (width + 2) / alpha  # rounded scores and noise in whole rows lose less than two rows


def _calibrate(
    budget: Budget, alpha: float, beta: float, queries: int, cells: int, step: Step
) -> tuple[Exponential, Laplace | Gaussian, int, float]:
    """Return the events of a round, the number of rounds, and the width w = αn that they need. All scale with w.

    Choice: 2Δ/ε₀·ln(2kT/β) ≤ ¾w. Measurement: within ¼w except with probability T·exp(−w/4b) ≤ β/2 or
    2T·exp(−w²/32σ²) ≤ β/2.
    """
    if not (isinstance(queries, int) and queries >= 1 and cells >= 2 and 0 < beta < 1):
        raise InvalidInput(
            "queries must be at least 1, cells at least 2 and beta between 0 and 1. "
            f"Found {queries!r}, {cells!r} and {beta!r}. Correct them."
        )
    delta = budget.linear()
    T = experts.update_bound(min(PROGRESS * alpha, 0.999), cells, step) + 1
    E = 2 * math.log(2 * queries * T / beta) / CHOICE  # ε₀ = EΔ/w
    if budget.pure:
        M = math.log(2 * T / beta) / SAMPLE
        w = delta * T * (E + M) / budget.total
        measurement: Laplace | Gaussian = Laplace(delta, w / M)
    else:
        M = math.sqrt(2 * math.log(4 * T / beta)) / SAMPLE
        w = delta * math.sqrt(T * (E**2 / 8 + M**2 / 2) / budget.total)
        measurement = Gaussian(delta, w / M)
    return Exponential(delta, E * delta / w), measurement, T, w


@final
@dataclass(frozen=True)
class MWEMRelease:
    """A public hypothesis, the measurements that made it (query and noisy rows), and a flag for an early stop."""

    hypothesis: Hypothesis
    measurements: tuple[tuple[Linear, float], ...]
    updates: int
    stopped: bool


@one_thread
def release(
    config: MWEMConfig,
    queries: Sequence[Linear],
    data: DataSource,
    ledger: Ledger,
    noise: Noise,
    hypothesis: Hypothesis | None = None,
) -> MWEMRelease:
    """Run Wang's Algorithm 6. An early stop leaves the rest of the budget in the ledger."""
    with ledger.exclusively():
        return _run_locked(config, queries, data, ledger, noise, hypothesis)


def _run_locked(
    config: MWEMConfig,
    queries: Sequence[Linear],
    data: DataSource,
    ledger: Ledger,
    noise: Noise,
    hypothesis: Hypothesis | None,
) -> MWEMRelease:
    """Run the mechanism under the ledger's lock."""
    if not queries:
        raise InvalidInput("The workload must have at least one query. Found none. List the queries to learn.")
    universe = data.universe
    hypothesis = Hypothesis(universe) if hypothesis is None else hypothesis
    workload = [counting.on_grid(universe, q) for q in queries]
    steps = np.array([counting.step_of(q, config.grid) for q in workload])
    answers = _evaluator(universe, workload)
    counted = counting.exact_counts(workload, data.marginal, config.grid)  # N, exact and private
    # "paper" is the lecture's update, 1 − η·sign(y)·q with η = √(ln|X|/T), which is half the progress of a mistake
    factor = experts.linear_log_factor if config.step == "paper" else experts.log_factor
    measurements: list[tuple[Linear, float]] = []
    for _ in range(config.rounds):
        believed = config.scale * answers(hypothesis.marginal)  # n⟨q, D̂⟩
        choice = ledger.charge(config.choice, why="mwem: choice")
        worst = noise.choose(_scores(counted, believed, steps), choice)
        measurement = replace(config.measurement, grid=float(steps[worst]))
        measured = float(noise.add(float(counted[worst]), ledger.charge(measurement, why="mwem: measurement")))
        query = workload[worst]
        measurements.append((query, measured))
        y = float(believed[worst]) - measured
        if abs(y) <= 2 * config.alpha * config.scale:
            return MWEMRelease(hypothesis, tuple(measurements), len(measurements) - 1, stopped=True)
        hypothesis.add_factor(query.attributes, factor(query.table, overshoots=y > 0, eta=config.eta))
    return MWEMRelease(hypothesis, tuple(measurements), len(measurements), stopped=False)


def _evaluator(universe: Universe, workload: Sequence[Linear]) -> Callable[[MarginalOf], Array]:
    """Return a function that answers all queries on one distribution.

    It multiplies by a matrix over a small universe. Otherwise it groups the queries by attributes.
    """
    if universe.size * len(workload) > LARGEST_MATRIX:
        return lambda marginal_of: answer_all(workload, marginal_of)
    matrix = np.stack([counting.everywhere(universe, q) for q in workload])
    return lambda marginal_of: np.asarray(matrix @ marginal_of(universe.names).reshape(-1))


def _scores(counted: Array, believed: Array, steps: Array) -> Array:
    """Return |N − n⟨q, D̂⟩| with the public part rounded to the query's step. One row moves each by at most 1, exactly.

    Both parts are at least 0 and at most 2^53 steps, so float64 subtracts them without error.
    """
    expected = np.clip(np.floor(believed / steps + 0.5), 0, counting.LARGEST) * steps
    return np.asarray(np.abs(counted - expected))
