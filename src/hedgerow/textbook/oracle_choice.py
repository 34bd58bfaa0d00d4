"""A choice of oracles: each loss is answered by the row of the paper's Table 1 that guarantees it the smallest error.

Paper: Ullman, *Private Multiplicative Weights Beyond Linear Queries*, §4 and Table 1.

The choice is made from public facts: the constants of the loss, n (or its estimate), the cost of a call, and a limit on
its predicted time. Every call charges the event of the oracle that answers it, and none costs more than was planned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array
from hedgerow.convex.bound_loss import GlmRisk, Risk
from hedgerow.convex.sets import L2Ball
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Receipt
from hedgerow.privacy.noise import Noise
from hedgerow.textbook.localized_oracle import LocalizedOracle
from hedgerow.textbook.oracles import (
    NoisyGradientDescentOracle,
    Oracle,
    OraclePlan,
    OutputPerturbationOracle,
    RegularizedOutputPerturbationOracle,
)

SECONDS = 1.0  # the longest call that is planned
CELL, STEP = 1e-8, 1e-4  # seconds of a gradient per cell and parameter, and of a step besides
NEWTON = 30  # steps of Newton's method for a minimizer, as a rule


@final
@dataclass(frozen=True)
class OracleChoice:
    """The oracles that can answer each declared loss, one group for each loss."""

    groups: tuple[tuple[Oracle, ...], ...]

    @property
    def leaves_the_set(self) -> bool:
        """True if some oracle may leave Θ."""
        return any(oracle.leaves_the_set for group in self.groups for oracle in group)

    def fits(self, risk: Risk, over: ConvexSet) -> None:
        """Refuse a loss that fits no oracle."""
        refusal: InvalidInput | None = None
        for oracle in dict.fromkeys(oracle for group in self.groups for oracle in group):
            try:
                return oracle.fits(risk, over)
            except InvalidInput as found:
                refusal = found
        assert refusal is not None
        raise refusal

    def plan(self, budget: Budget, cost: float, rows: float, beta: float, error: float = 0.0) -> OraclePlan | None:
        """Plan every oracle. The error is the largest, over the losses, of the smallest that an oracle gives."""
        plans = {
            oracle: oracle.plan(budget, cost, rows, beta, error)
            for oracle in dict.fromkeys(oracle for group in self.groups for oracle in group)
        }
        worst: OraclePlan | None = None
        for group in self.groups:
            found = [plan for plan in map(plans.__getitem__, group) if plan is not None]
            if not found:
                return None
            best = min(found, key=lambda plan: plan.error + plan.deficit)
            if worst is None or best.error + best.deficit > worst.error + worst.deficit:
                worst = best
        assert worst is not None
        members = tuple((oracle, plan) for oracle, plan in plans.items() if plan is not None)
        dearest = max((plan.event for _, plan in members), key=budget.cost)
        return OraclePlan(dearest, worst.error, worst.deficit, members=members)

    def certain(self, plan: OraclePlan, risk: Risk, over: ConvexSet, budget: Budget, rows: float) -> bool:
        """Return True if the plan of some oracle that the loss fits holds for every table."""
        return any(_fits(o, risk, over) and o.certain(own, risk, over, budget, rows) for o, own in plan.members)

    def answer(
        self,
        plan: OraclePlan,
        risk: Risk,
        over: ConvexSet,
        counts: NDArray[np.int64],
        noise: Noise,
        receipt: Receipt,
        budget: Budget,
        rows: float,
    ) -> Array:
        """Refuse: a caller asks ``convex_pmw.chosen_oracle`` for the member, whose event it charges."""
        raise InvalidInput("A choice of oracles must be asked for a member. Found a call of its own. Choose a member.")


def _fits(oracle: Oracle, risk: Risk, over: ConvexSet) -> bool:
    try:
        oracle.fits(risk, over)
    except InvalidInput:
        return False
    return True


def choices_for(questions: Sequence[tuple[Risk, ConvexSet]], budget: Budget) -> list[OracleChoice]:
    """Return the choices to compare, for these losses and for others within their constants.

    Gradient descent has the largest constants of all losses. An oracle that leaves the set makes every update dearer,
    so there is one choice without such oracles and, if every loss allows one, another with them.
    """
    descent = NoisyGradientDescentOracle(
        max(risk.lipschitz(over) for risk, over in questions),
        max(over.diameter_l2(risk.dimension) for risk, over in questions),
        max(risk.dimension for risk, _ in questions),
        max(1, min(_affordable_steps(risk) for risk, _ in questions)),
    )
    inside = [(*_within_the_set(risk, over, budget), descent) for risk, over in questions]
    outside = [_outside_the_set(risk, over) for risk, over in questions]
    found = [OracleChoice(tuple(inside))]
    if any(outside):
        found.append(OracleChoice(tuple((*out, *ins) for out, ins in zip(outside, inside, strict=True))))
    return found


def _affordable_steps(risk: Risk) -> int:
    """Return the steps of gradient descent that fit into SECONDS."""
    return math.floor(SECONDS / (STEP + CELL * math.prod(risk.shape) * (risk.dimension + 4)))


def _minimizes_in_time(risk: Risk) -> bool:
    """Return True if a minimizer is predicted within SECONDS."""
    return NEWTON * CELL * math.prod(risk.shape) * (risk.dimension + 4) <= SECONDS


def _within_the_set(risk: Risk, over: ConvexSet, budget: Budget) -> tuple[Oracle, ...]:
    """Return the oracles for one loss whose answers stay in the set."""
    if budget.neighbours != "replace" or not _minimizes_in_time(risk):
        return ()
    localized = LocalizedOracle.of(risk, over)
    if not (math.isfinite(localized.smoothness) and 0 < localized.lipschitz < math.inf and localized.diameter > 0):
        return ()
    if localized.strong_convexity == 0:
        return (localized,)
    perturbed = OutputPerturbationOracle(
        localized.lipschitz, localized.strong_convexity, risk.dimension, risk.scale(over)
    )
    return (localized, perturbed)


def _outside_the_set(risk: Risk, over: ConvexSet) -> tuple[Oracle, ...]:
    """Return the dimension-free oracle, if it is for this loss."""
    if not (isinstance(risk, GlmRisk) and isinstance(over, L2Ball)) or not _minimizes_in_time(risk):
        return ()
    ends = (float(risk.labels.min()), float(risk.labels.max()))
    slope = risk.loss.lipschitz(math.inf, ends) * risk.features.row_norm_bound if not risk.outputs else math.inf
    if not 0 < slope < math.inf:
        return ()
    oracle = RegularizedOutputPerturbationOracle(slope, over.radius, risk.dimension, risk.scale(over))
    return (oracle,) if _fits(oracle, risk, over) else ()
