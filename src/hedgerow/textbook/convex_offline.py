"""Offline convex minimization: all losses are known, and each round learns the loss on which the hypothesis does worst.

Paper: Ullman, *Private Multiplicative Weights Beyond Linear Queries*, §1.2. Symbols: see ``convex_pmw``. Proof:
docs/proofs/convex_pmw.md.

Differs: the paper names the exponential mechanism and does not say when to stop. Here the error of the chosen loss is
measured, and the loop ends at ⅝α. The choice is right to within α/4 and the measurement to within α/8. So at the end
every loss is within α, and before it every update has err ≥ α/2.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from hedgerow._threads import one_thread
from hedgerow._types import Array
from hedgerow.convex.bound_loss import Risk
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.data.source import DataSource
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import AboveThreshold, Exponential, Gaussian
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.textbook.convex_pmw import (
    NUMERICAL,
    ORACLE,
    SURROGATE,
    ConvexPMWConfig,
    chosen_oracle,
    excess_in,
    log_factor,
    minimizer_on,
    numerical_share,
    reach_of,
    require_family,
    require_parameters,
    require_rows,
    rows_of,
    update_bound,
)
from hedgerow.textbook.multiplicative_weights import Step
from hedgerow.textbook.oracle_choice import choices_for
from hedgerow.textbook.oracles import Oracle


@final
@dataclass(frozen=True)
class OfflineConfig:
    """The events of a round.

    They are a choice right to within α/4, a measurement of its error to within α/8, and A′ if that is above ⅝α.
    """

    online: ConvexPMWConfig
    choice: Exponential
    measurement: Gaussian


def configure(
    budget: Budget,
    *,
    cells: int,
    rows: float,
    queries: int,
    beta: float,
    scale_S: float,
    oracle: Oracle,
    alpha: float,
    step: Step = "hoeffding",
) -> OfflineConfig:
    """Calibrate to the whole budget. β is split over choices, measurements and oracle.

    Parameters: see ``convex_pmw.configure``.
    """
    require_parameters(budget, cells, rows, queries, beta, scale_S, step)
    found = _calibrate(budget, cells, rows, queries, beta, float(scale_S), oracle, alpha, step)
    if found is None:
        raise InvalidInput(
            f"rows must be more for alpha = {alpha:g}. Found {rows:g}. Use more rows, a larger budget, or a larger "
            "alpha."
        )
    return found


def _calibrate(
    budget: Budget,
    cells: int,
    rows: float,
    queries: int,
    beta: float,
    S: float,
    oracle: Oracle,
    alpha: float,
    step: Step,
    numerical: float = NUMERICAL,
) -> OfflineConfig | None:
    """Return the configuration, or None if the rows are too few for α. ``numerical`` is τ as a share of S."""
    T = update_bound(alpha, cells, reach_of(S, alpha, cells, oracle), step) + 1
    Δ, w = budget.bounded_sum(S) + 2 * numerical * S, (1 - 8 * SURROGATE) * alpha * rows - 8 * numerical * S
    if not w > 0:
        return None
    choice = Exponential(Δ, 2 * Δ * math.log(3 * queries * T / beta) / (w / 4))
    σ = w / 8 / math.sqrt(2 * math.log(6 * T / beta))
    left = budget.total / T - choice.rho - (Δ / σ) ** 2 / 2
    plan = oracle.plan(budget, left, rows, beta / (3 * T), ORACLE * alpha) if left > 0 else None
    if plan is None or not plan.error + plan.deficit <= ORACLE * alpha:
        return None
    guard = AboveThreshold(Δ, 1.0, 1.0)  # a placeholder: the offline mechanism has no guard
    online = ConvexPMWConfig(rows, cells, queries, alpha, beta, step, S, T, guard, oracle, plan, numerical)
    return OfflineConfig(online, choice, Gaussian(Δ, σ, online.grid))


def suffices(
    budget: Budget,
    losses: Sequence[tuple[Risk, ConvexSet]],
    *,
    cells: int,
    rows: float,
    queries: int,
    beta: float,
    alpha: float,
) -> bool:
    """Return True if some choice of oracles guarantees α for these losses, and for as many of their kind as stated."""
    return (
        best_configuration(budget, losses, cells=cells, rows=rows, queries=queries, beta=beta, alpha=alpha) is not None
    )


def best_configuration(
    budget: Budget,
    losses: Sequence[tuple[Risk, ConvexSet]],
    *,
    cells: int,
    rows: float,
    queries: int,
    beta: float,
    alpha: float,
) -> OfflineConfig | None:
    """Return the first configuration with this α that answers every loss, or None."""
    S = max(risk.scale(over) for risk, over in losses)
    if not 0 < alpha <= S or budget.pure:
        return None
    numerical = numerical_share(budget, losses, S, alpha, rows)
    if numerical is None:
        return None
    for oracle in choices_for(losses, budget):
        found = _calibrate(budget, cells, rows, queries, beta, S, oracle, alpha, "hoeffding", numerical)
        if found is not None:
            with contextlib.suppress(InvalidInput):
                for risk, over in losses:
                    require_family(found.online, risk, over, budget, rows)
                return found
    return None


@final
@dataclass(frozen=True)
class OfflineRelease:
    """A public hypothesis, its minimizer for every loss, and a flag that tells if the loop stopped by itself."""

    hypothesis: Hypothesis
    answers: tuple[Array, ...]
    updates: int
    stopped: bool


@one_thread
def release(
    config: OfflineConfig,
    losses: Sequence[tuple[Risk, ConvexSet]],
    data: DataSource,
    ledger: Ledger,
    noise: Noise,
    hypothesis: Hypothesis | None = None,
) -> OfflineRelease:
    """Run the mechanism. An early stop leaves the rest of the budget in the ledger."""
    with ledger.exclusively():
        return _run_locked(config, losses, data, ledger, noise, hypothesis)


def _run_locked(
    config: OfflineConfig,
    losses: Sequence[tuple[Risk, ConvexSet]],
    data: DataSource,
    ledger: Ledger,
    noise: Noise,
    hypothesis: Hypothesis | None,
) -> OfflineRelease:
    """Run the mechanism under the ledger's lock."""
    if not losses:
        raise InvalidInput("The workload must have at least one loss. Found none. List the losses to learn.")
    online = config.online
    require_rows(online, data, ledger)
    budget, rows = ledger.budget, rows_of(online, data, ledger)
    hypothesis = Hypothesis(data.universe) if hypothesis is None else hypothesis
    for risk, over in losses:
        require_family(online, risk, over, budget, rows)
        hypothesis.require(risk.attributes)
    updates, stopped = 0, False
    believed = [minimizer_on(hypothesis, risk, over, online.alpha) for risk, over in losses]
    while updates < online.rounds and not stopped:
        choice = ledger.charge(config.choice, why="convex offline: choice")
        errors = np.array(
            [
                excess_in(online, risk, over, found.theta, budget, rows).value(
                    data.marginal(risk.attributes), online.grid
                )
                for (risk, over), found in zip(losses, believed, strict=True)
            ]
        )
        worst = noise.choose(errors, choice)
        risk, over = losses[worst]
        measured = ledger.charge(config.measurement, why="convex offline: error")
        stopped = noise.add(float(errors[worst]), measured) <= 0.625 * online.alpha * online.scale
        if not stopped:
            oracle, plan = chosen_oracle(online, risk, over, budget, rows)
            receipt = ledger.charge(plan.event, why="convex offline: oracle", keep=False)
            counts = data.marginal(risk.attributes)
            theta = oracle.answer(plan, risk, over, counts, noise, receipt, budget, rows)
            hypothesis.add_factor(risk.attributes, log_factor(online, risk, believed[worst], theta))
            believed = [minimizer_on(hypothesis, risk, over, online.alpha) for risk, over in losses]
            updates += 1
    return OfflineRelease(hypothesis, tuple(found.theta for found in believed), updates, stopped)
