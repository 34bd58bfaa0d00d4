"""Certificate of declared losses: the largest excess risk of any of them, itself released, for a share of the budget.

Proof: docs/proofs/practical_convex.md. Symbols: θ̂_l is the answer to the declared question l when the session was
opened, row_l the amount by which one row moves n·err(D, θ̂_l) (``excess``), D the data.

    E = max over l of n·err(D, θ̂_l)/row_l

is a maximum of numbers that one row moves by at most 1, so one row moves it by at most 1. It is drawn once. Then the
excess risk of every declared question is at most row_l·(the drawn value + the noise's quantile)/n, for all questions
at once. Questions that already have a better free bound are left out. err is computed for a loss that is flatter far
from θ̂ (``flatten_loss``), by which it is no smaller.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from hedgerow._types import Array
from hedgerow.convex.bound_loss import Risk
from hedgerow.convex.losses.custom import Custom
from hedgerow.convex.losses.families import Huber, Squared
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.convex.solver.excess import SHARES, Excess, excess_of, in_rows, per_row
from hedgerow.data.source import DataSource
from hedgerow.engine.practical.certificate.certificate_purchase import quantile
from hedgerow.engine.practical.convex.excess_bounds import free_answer, trivial_bound
from hedgerow.engine.practical.free_answers import FreeAnswers
from hedgerow.errors import BudgetExceeded
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.noise import Noise
from hedgerow.textbook.sparse_vector import FINEST

# Tolerated differences between the surrogate's err and the loss's, as parts of the reach of the noise,
SURROGATES = (0.01, 0.05, 0.25, 1.0)
COARSE = (1e-4, 1e-3)  # or as parts of S, where no such surrogate has a certified minimum
MOST_QUESTIONS = 1_000  # only this many declared questions, the first ones, are certified
WHY = "certificate of losses"  # the reason, as the ledger stores it


@dataclass(frozen=True)
class CertifiedLosses:
    """Answers with a bound on their excess risk, by the key of their question."""

    answers: dict[Hashable, tuple[Array, float]] = field(default_factory=dict)
    questions: dict[Hashable, BoundMinimize] = field(default_factory=dict)

    def get(self, question: BoundMinimize) -> tuple[Array, float] | None:
        """Return θ and its bar; None if the question was not certified."""
        return self.answers.get(question.key)

    @classmethod
    def restore(cls, declared: Sequence[BoundMinimize], state: Sequence[Any]) -> CertifiedLosses:
        """Rebuild what ``state`` described, for the same questions in the same order."""
        found = {declared[place].key: (theta, bar) for place, theta, bar in state}
        return cls(found, {question.key: question for question in declared if question.key in found})

    def state(self, declared: Sequence[BoundMinimize]) -> list[Any]:
        """Return the certified answers, by the places of their questions, as plain data."""
        kept = [(place, self.get(question)) for place, question in enumerate(declared)]
        return [[place, found[0], found[1]] for place, found in kept if found is not None]


def certified_losses(
    data: DataSource,
    noise: Noise,
    known: FreeAnswers,
    declared: Sequence[BoundMinimize],
    allowance: Allowance,
    beta: float,
    trusted_losses: Collection[Custom],
) -> CertifiedLosses:
    """Spend the allowance on the largest excess risk, or nothing if no declared question gains.

    All decisions are public.
    """
    event = _event(allowance)
    reach = quantile(event, beta)
    planned: dict[Hashable, tuple[BoundMinimize, Excess]] = {}
    for question in declared[:MOST_QUESTIONS]:
        excess = _worth(known, question, reach, allowance.budget, trusted_losses)
        if excess is not None:
            planned.setdefault(question.key, (question, excess))
    if not planned:
        return CertifiedLosses()
    try:
        receipt = allowance.charge(event, why=WHY)
    except BudgetExceeded:  # only after a crash, when lost draws are paid for twice: go on without a certificate
        return CertifiedLosses()
    largest = max(in_rows(excess, data.marginal(question.attributes), FINEST) for question, excess in planned.values())
    upper = max(0.0, float(noise.add(largest, receipt))) + reach
    answers = {
        key: (excess.theta, bar)
        for key, (question, excess) in planned.items()
        if (bar := bar_of(excess, upper, known.rows.low)) < trivial_bound(question, excess.theta)
    }
    return CertifiedLosses(answers, {key: planned[key][0] for key in answers})


def bar_of(excess: Excess, upper: float, rows: float) -> float:
    """Return the bound on err if n·err is at most ``upper`` times what a row moves it by.

    One step is added, because rounding down to steps may have hidden it.
    """
    return ((upper + FINEST) * per_row(excess, FINEST) * excess.unit + excess.below) / rows


def flatten_loss(risk: Risk, theta: Array) -> Risk:
    """Return a loss with the same value at θ for every record, and nowhere a larger one.

    θ has no less excess risk by it. Squared loss continues in straight lines beyond the largest residual of θ over
    the cells; there one row moves it by far less.
    """
    glm = risk.glm
    if glm is None or type(glm.loss) is not Squared:
        return risk
    residuals = (glm.predictor(theta) - glm.label()) * glm.mask()
    about = {field.name: getattr(glm.loss, field.name) for field in fields(glm.loss)}
    return Huber(width=float(np.abs(residuals).max()) * (1 + 1e-9) + 1e-9, **about).on(risk.universe)


def _event(allowance: Allowance) -> Laplace | Gaussian:
    """Return the noise on the largest excess risk, which one row moves by at most 1."""
    one = allowance.budget.linear()
    return allowance.part(1 - 1e-9).noise(one, one, FINEST)


def _worth(
    known: FreeAnswers, question: BoundMinimize, reach: float, budget: Budget, trusted_losses: Collection[Custom]
) -> Excess | None:
    """Plan how err of the question's answer is computed; None if the certificate cannot improve its free bound."""
    if not question.scale or not question.risk.is_listable or not question.is_trusted(trusted_losses):
        return None
    found, error = free_answer(known, question)
    risk = flatten_loss(question.risk, found.theta)
    aparts = [*(share * reach / known.rows.high for share in SURROGATES), *COARSE]
    planned = [
        excess_of(
            risk, question.over, found.theta, budget, known.rows.high, apart * question.scale, gaps, only_here=True
        )
        for gaps, apart in itertools.product((SHARES[:1], SHARES), aparts)
    ]
    certain = [excess for excess in planned if excess is not None]  # plans with a certified minimum on every table
    best = min(certain, key=lambda excess: bar_of(excess, reach, known.rows.low), default=None)
    least = min(error, trivial_bound(question, found.theta))
    return best if best is not None and bar_of(best, reach, known.rows.low) < least else None
