"""Interval widths of a holdout's scores, from public numbers alone. Proof: docs/proofs/holdout.md.

Papers: Rogers et al., *Guaranteed validity for empirical approaches to adaptive data analysis* (Guess and Check);
Dwork et al., *Generalization in adaptive data analysis and holdout reuse* (Thresholdout, description length);
Hoeffding 1963, (2.1).

Symbols: n rows; T the threshold in rows; τ, ν the noise of a round's threshold and of a comparison; i the question's
number, s the number of comparisons, f how many of them were above, m how many scores were measured without being
compared, V the number of values that a measurement may have.

There are two arguments, each with half of β, and both may be used at once.

*Description length.* With all noise fixed, an analyst's i-th query depends only on the answers so far. There are C(s,
f)·V^(f+m) sequences of answers with f of s comparisons above and m measurements. Each gets a share of β,
p(i)·p(f)·p(m)/(C(s, f)·V^(f+m)). The shares add up to at most 1. Hoeffding's bound with that share holds for the
sequence, because its query was not chosen by the sample.

*Privacy.* The theorem of Jung et al. (``transfer.jung``) for the whole budget, with the error on the sample of each
answer.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from hedgerow.generalise import transfer
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import AboveThreshold, Gaussian, Laplace, grid_at_most
from hedgerow.textbook.sparse_vector import FINEST, guard_round

GUARD_SHARE = 0.8
"""Share of a round's price for its comparisons; the measurement that ends it is made once and needs less."""
SPARED = 1e-3
"""Share of β for failures on the sample in the theorem of Jung et al., whose bound contains the ratio of the two."""
FALSE_ALARMS = 0.5
"""Planned number of false alarms: correct guesses among the planned questions that noise makes look wrong."""

NOTHING = "nothing: the budget is too large for the theorem, and the ledger paid for other answers about the rows"
FEW_WORDS = "description length: Hoeffding's bound for every query that the answers could have led to"


@dataclass(frozen=True)
class HoldoutPlan:
    """All public parameters of a holdout's mechanism. Threshold and resolution are in rows."""

    rows: int
    guard: AboveThreshold
    measurement: Laplace | Gaussian
    threshold: float
    resolution: float
    beta: float
    epsilon: float
    delta: float
    questions: int
    rounds: int

    @property
    def values(self) -> int:
        """V, the number of values that a measurement may have."""
        return math.floor(self.rows / self.resolution) + 2


@dataclass(frozen=True)
class QuestionCounts:
    """Public counts of the questions so far: all, those compared, those above, those measured outright, and rounds."""

    questions: int = 0
    compared: int = 0
    above: int = 0
    measured: int = 0
    rounds: int = 0

    def next(self, compared: int = 0, above: int = 0, measured: int = 0) -> QuestionCounts:
        """Return the counts with one more question and its outcome; without an outcome, as when it was asked."""
        return QuestionCounts(
            self.questions + 1, self.compared + compared, self.above + above, self.measured + measured, self.rounds
        )


def plan_holdout(
    amount: Amount, budget: Budget, *, rows: int, trained_on: int | None, rounds: int, questions: int, beta: float,
    threshold: float | None,
) -> HoldoutPlan:  # fmt: skip
    """Divide the amount into equal rounds and fix noise, threshold and resolution.

    The threshold, unless it is given as a fraction, is as low as about k honest guesses allow.
    """
    guard = guard_round(amount.part(GUARD_SHARE).round_epsilon(rounds))
    measurement = amount.part((1 - GUARD_SHARE) / rounds * (1 - 1e-9)).noise(1.0, 1.0, FINEST)
    deviation = math.sqrt((rows + rows**2 / trained_on) / 4) if trained_on else math.sqrt(rows / 4)
    found = threshold_for(guard, deviation, questions) if threshold is None else threshold * rows
    spread = measurement.scale if isinstance(measurement, Laplace) else measurement.sigma
    resolution = max(1.0, grid_at_most((spread + math.sqrt(rows) / 2) / 4))
    return HoldoutPlan(
        rows,
        guard,
        measurement,
        math.floor(found / FINEST) * FINEST,
        resolution,
        beta,
        *transfer.replace_one(budget),
        questions,
        rounds,
    )


def threshold_for(guard: AboveThreshold, deviation: float, questions: int) -> float:
    """Return the threshold T that about ``FALSE_ALARMS`` of k guesses, off by chance alone, exceed.

    T is a plan, not a promise. Chernoff: E e^(λ(X + ν − τ)) ≤ e^(λ²s²/2)/((1 − λ²b²)(1 − λ²c²)), X the difference of
    two means, s its deviation.
    """
    b, c = guard.query_scale, guard.threshold_scale
    λ = np.linspace(0.01, 0.99, 99) / max(b, c)
    grown = λ**2 * deviation**2 / 2 - np.log1p(-((λ * b) ** 2)) - np.log1p(-((λ * c) ** 2))
    return float(np.min((math.log(2 * questions / FALSE_ALARMS) + grown) / λ))


def below(plan: HoldoutPlan, asked: QuestionCounts, beta: float) -> float:
    """Return the half-width in rows after ⊥: |sum − guess| ≤ T + τ − ν, with one-sided tails of τ and ν."""
    τ = plan.guard.threshold_scale * math.log(_parts(asked.rounds, plan.rounds) * 3 / (2 * beta))
    ν = plan.guard.query_scale * math.log(_parts(asked.questions, plan.questions) * 3 / (2 * beta))
    return plan.threshold + max(0.0, τ) + max(0.0, ν) + 2 * FINEST


def measurement_width(plan: HoldoutPlan, asked: QuestionCounts, beta: float) -> float:
    """Return the half-width of a measurement in rows: noise and rounding."""
    share = beta / (3 * _parts(asked.above + asked.measured, plan.rounds))
    if isinstance(plan.measurement, Laplace):
        noise = plan.measurement.scale * math.log(1 / share)
    else:
        noise = plan.measurement.sigma * math.sqrt(2 * math.log(2 / share))
    return noise + plan.resolution / 2 + FINEST


def words(plan: HoldoutPlan, asked: QuestionCounts) -> float:
    """Return ln(1/share) for the share of β that the query at hand has.

    Answers before it count, its own answer does not.
    """
    i, s, f, m = asked.questions, asked.compared, asked.above, asked.measured
    combinations = math.lgamma(s + 1) - math.lgamma(f + 1) - math.lgamma(s - f + 1)
    which = math.log(_parts(i, plan.questions) * (f + 1) * (f + 2) * (m + 1) * (m + 2))
    return which + combinations + (f + m) * math.log(plan.values)


def interval(
    plan: HoldoutPlan, before: QuestionCounts, after: QuestionCounts, center: float, is_below: bool, alone: bool = True,
    *, pairs: bool = False,
) -> tuple[float, float, str]:  # fmt: skip
    """Return an interval for the population's mean, for all answers together with 1 − β, and the main reason for it.

    ``center`` is the guess or the measured value, in rows. ``before`` counts what led to the query, ``after``
    includes its own answer. ``alone`` means that nothing else was revealed about the rows, so that description length
    can be counted. With ``pairs`` the mean is over pairs of rows: it is at most n/2 rows, has the tails of ⌊n/2⌋
    independent values (Hoeffding 1963, §5), and the theorem of Jung et al. does not speak of it.
    """
    n, half = (plan.rows / 2 if pairs else plan.rows), plan.beta / 2
    width = below if is_below else measurement_width
    off = width(plan, after, half / 3)
    spent = words(plan, before) + math.log(3 / (2 * half))  # two thirds of this half of β; the noise has the rest
    low, high, reason = 0.0, 1.0, NOTHING
    if alone:
        low, high = _chernoff(max(0.0, center - off) / n, min(n, center + off) / n, spent + math.log(2), math.floor(n))
        reason = FEW_WORDS
    beyond = math.expm1(plan.epsilon) if plan.epsilon < 1 else 1.0
    if beyond < 1 and not pairs:
        extra = beyond + transfer.jung_extra(plan.delta, SPARED * half, half)
        wide = width(plan, after, SPARED * half) / n + extra
        if 2 * wide < high - low:
            reason = transfer.JUNG
        low, high = max(low, center / n - wide), min(high, center / n + wide)
    return max(0.0, low), min(1.0, high), reason


def interval_of_pairs(
    plan: HoldoutPlan, before: QuestionCounts, after: QuestionCounts, center: float, is_below: bool, alone: bool = True
) -> tuple[float, float, str]:
    """Return an interval for a population's mean over pairs of rows, where the sum over pairs is at most n/2."""
    return interval(plan, before, after, center, is_below, alone, pairs=True)


def on_sample(plan: HoldoutPlan, questions: int, rounds: int) -> float:
    """Return a bound, as a fraction, on the distance of all these answers from the holdout's own values, with 1 − β."""
    last = QuestionCounts(questions, questions, rounds, 0, rounds)
    return max(below(plan, last, plan.beta), measurement_width(plan, last, plan.beta)) / plan.rows


def on_population(plan: HoldoutPlan, questions: int) -> float:
    """Return a bound on the distance of k scores from the population's values, with 1 − β, if all rounds are used.

    It is the width of the last score's interval (``interval``). A Chernoff interval reaches at most √(spent/2n) beyond
    its ends, by Pinsker's inequality.
    """
    rounds, half, n = min(plan.rounds, questions), plan.beta / 2, plan.rows
    last = QuestionCounts(questions, questions, rounds, 0, rounds)
    off = max(below(plan, last, half / 3), measurement_width(plan, last, half / 3))
    spent = words(plan, last) + math.log(3 / (2 * half)) + math.log(2)
    found = off / n + math.sqrt(spent / (2 * n))
    beyond = math.expm1(plan.epsilon) if plan.epsilon < 1 else 1.0
    if beyond < 1:
        wide = max(below(plan, last, SPARED * half), measurement_width(plan, last, SPARED * half)) / n
        found = min(found, wide + beyond + transfer.jung_extra(plan.delta, SPARED * half, half))
    return min(1.0, found)


def split_questions(budget: Budget, rows: int, error: float, beta: float) -> int:
    """Return how many answers the same budget gives if each has Laplace noise of its own.

    All are within ``error`` of the holdout's values together with probability 1 − β. Each costs the same in the
    budget's currency: b·ln(k/β) ≤ error·n at the scale b that k of them can have.
    """
    low, high = 0, 1
    while split_error(budget, rows, high, beta) <= error:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if split_error(budget, rows, middle, beta) <= error else (low, middle)
    return low


def split_error(budget: Budget, rows: int, questions: int, beta: float) -> float:
    """Return the error of k answers that share the budget, each with Laplace noise of its own.

    All are within that error of the holdout's values together with probability 1 − β.
    """
    each = budget.total / questions
    if budget.pure:
        scale = 1 / each
    else:  # invert ρ of fine Laplace noise, ε − 1 + e^−ε: the least noise that the ledger could sell
        low, high = 0.0, 2 * math.sqrt(each) + each + 1
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if Laplace(1.0, 1 / middle, FINEST).rho <= each else (low, middle)
        scale = 1 / low
    return scale * math.log(questions / beta) / rows


@functools.lru_cache(maxsize=1024)
def _chernoff(low: float, high: float, spent: float, n: int) -> tuple[float, float]:
    """Return the range of μ for which the tail bound at a mean in [low, high] is at least e^−spent.

    The bound is Hoeffding's, so the condition is n·KL(mean ‖ μ) ≤ spent (Hoeffding 1963, (2.1)).
    """
    return _furthest(low, 0.0, spent / n), _furthest(high, 1.0, spent / n)


def _furthest(mean: float, end: float, most: float) -> float:
    """Return the point between ``mean`` and ``end`` at which the divergence reaches ``most``, rounded outward."""
    inside, outside = mean, end
    for _ in range(50):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if _divergence(mean, middle) <= most else (inside, middle)
    return outside


def _divergence(p: float, q: float) -> float:
    """Return the KL divergence of two coins; infinite where q excludes an outcome that p has."""
    parts = ((p, q), (1 - p, 1 - q))
    return sum(a * math.log(a / b) if b > 0 else math.inf for a, b in parts if a > 0)


def _parts(count: int, planned: int) -> float:
    """Return 1/share of the count-th event.

    Half of all shares is divided equally among the planned events, and half goes to an infinite series. Σ 1/(i(i+1))
    = 1, so all shares together are at most 1, and both the early ones and the last one planned are large.
    """
    return 2 / (1 / (count * (count + 1)) + (1 / planned if count <= planned else 0.0))
