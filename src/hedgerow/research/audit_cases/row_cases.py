"""Certificates, holdouts, sampled statistics and flips, on neighbours that differ where each mechanism looks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.convex.minimize import bound_convex
from hedgerow.data import HistogramSource
from hedgerow.data.row_store import in_memory
from hedgerow.data.row_values import statistic_values
from hedgerow.engine.practical.certificate.certificate_purchase import buy_certificate
from hedgerow.engine.practical.certificate.certified_bounds import CertifiedCounts
from hedgerow.engine.practical.convex.loss_certificate import certified_losses
from hedgerow.engine.practical.free_answers import FittedModel, FreeAnswers
from hedgerow.engine.practical.measurement import Measurement
from hedgerow.generalise.holdout import Holdout
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import COIN, Gaussian
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise
from hedgerow.query.row_statistic import statistic
from hedgerow.research.audit_cases.erm_cases import RecordingNoise
from hedgerow.research.audit_cases.session_cases import CORRELATED, ONE, QUESTION
from hedgerow.textbook import scq, subsampled
from hedgerow.universe.attributes import Flag, Integers
from hedgerow.universe.universe import Universe

PURE = Budget(4.0, 0.0)
CERTIFIED = (HistogramSource(ONE, np.array([3000, 1000])), HistogramSource(ONE, np.array([3001, 999])))
NUMBERED = Universe(number=Integers(0, 4), flag=Flag())
# all rows are at the two ends of the number and share one value of the flag, which is far from the hypothesis
ENDS = np.zeros((5, 2), np.int64)
ENDS[[0, -1], 1] = 1000, 3000
OTHER_END = ENDS.copy()
OTHER_END[[0, -1], 1] = 999, 3001
OF_MEANS = (HistogramSource(NUMBERED, ENDS), HistogramSource(NUMBERED, OTHER_END))
FEW_ROWS = (np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(4))
LABELS = np.zeros(10)
RIGHT, WRONG = (np.zeros((10, 1)), LABELS), (np.eye(10)[:, :1], LABELS)  # one of ten rows is right or wrong
ONE_FLIP = scq.SCQ(4, COIN // 8)


def certificate(budget: Budget) -> Callable[[HistogramSource, Noise], float]:
    """Spend the whole budget on a certificate of a hypothesis that knows nothing: the largest error of a count."""

    return lambda data, noise: _certify(budget, data, noise).flat(data.universe.names)


def certificate_of_means(budget: Budget) -> Callable[[HistogramSource, Noise], float]:
    """Do the same, and return the number that bounds means.

    The other numbers hardly move, so part of the claim stays unused.
    """

    return lambda data, noise: _certify(budget, data, noise).means


def _certify(budget: Budget, data: HistogramSource, noise: Noise) -> CertifiedCounts:
    """Return a certificate of a hypothesis that knows nothing."""
    known, ledger = FreeAnswers(FittedModel.nothing(data.universe, data.rows), 0.5, data.rows), Accountant(budget)
    made = buy_certificate(data, noise, known, Allowance(ledger, budget.total), 0.5, 0.5)
    assert made is not None
    return made


def certificate_of_losses(budget: Budget) -> Callable[[HistogramSource, Noise], float]:
    """Spend the whole budget on the excess risk of one question.

    The hypothesis knows each attribute alone and is as wrong as possible about both together.
    """
    (question,) = bound_convex([QUESTION], CORRELATED[0].universe)

    @functools.cache
    def known() -> FreeAnswers:
        """Return the answers of a model that knows the single columns of the first table."""
        first = CORRELATED[0]
        learned = FittedModel.nothing(first.universe, first.rows)
        for name in first.universe.names:
            counts = first.marginal((name,)).astype(float)
            learned.add(Measurement((name,), counts, Gaussian(1.0, 0.01, 2.0**-20)))
        learned.grow(*((name,) for name in first.universe.names))
        learned.refit(50)
        return FreeAnswers(learned, 0.5, first.rows)

    def run(data: HistogramSource, noise: Noise) -> float:
        overheard, allowance = RecordingNoise(noise), Allowance(Accountant(budget), budget.total)
        certified_losses(data, overheard, known(), [question], allowance, 0.5, ())
        (drawn,) = overheard.heard
        return float(np.asarray(drawn))

    return run


def held_out(table: tuple[NDArray[Any], NDArray[Any]], noise: Noise) -> tuple[Any, ...]:
    """Give the same guess until it is wrong, at most four times.

    Return how often it was right, and the measured value.
    """
    held = Holdout(table, PURE, rounds=1, threshold=0.05)
    for right in range(4):
        score = held.score(lambda X: X[:, 0], guess=1.0)
        if score.source == "holdout":
            return str(right), score.value
    return ("always",)


def sampled_statistic(table: NDArray[np.float64], noise: Noise, *, replace: bool = False) -> float:
    """Return a statistic of 2 of 4 rows."""
    rows = in_memory({"x": table})
    plan = subsampled.affordable(rows.rows, epsilon=PURE.epsilon, size=2, beta=0.5, replace=replace)
    valued = statistic_values(rows, statistic(lambda x: x, "x"))
    return subsampled.answer(plan, valued, rows.rows, Accountant(PURE), noise).value


def sampled_flip(table: NDArray[np.float64], noise: Noise) -> int:
    """Return one sampled answer about 4 rows."""
    rows = in_memory({"x": table})
    valued = statistic_values(rows, statistic(lambda x: x, "x"))
    return int(scq.sample_yes_no(ONE_FLIP, valued, rows.rows, Accountant(Budget(2.0, 0.0)), noise)[0])
