"""Broken mechanisms: the fault and the claim of each, and the audit that catches it and that our own mechanism passes.

Papers: Lyu, Su & Li, *Understanding the sparse vector technique*; Mironov, *On significance of the least significant
bits*; Talwar, Thakurta & Zhang, *Private empirical risk minimization beyond the worst case* (Algorithms 2 and 4 as
printed); Fish, Reyzin & Rubinstein, *Sampling without compromising accuracy* (Proposition 7 as printed).

There are three auditors: *runs* (``sampled``: a bound with confidence), *exact* (``exact``: the loss itself) and
*ledger* (the sum of the losses of all charges that were allowed). ``python -m hedgerow.audit`` runs every entry and
writes the findings to docs/audit.md.
"""

from __future__ import annotations

import functools
import itertools
import math
import threading
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
import scipy
from numpy.typing import NDArray

from hedgerow import losses
from hedgerow._types import Array
from hedgerow.audit import bounds, exact, sampled
from hedgerow.convex.sets import Box, Unconstrained
from hedgerow.convex.solver.excess import excess_of
from hedgerow.data import HistogramSource
from hedgerow.drafting.selection import threshold_event
from hedgerow.engine.practical.certificate.largest_errors import half_distance, largest_error
from hedgerow.erm.problem import Problem, prepare_problem
from hedgerow.erm.rows import Arrays
from hedgerow.erm.solvers.whitened_descent import WhiteningMetric, row_weights, whiten_sum
from hedgerow.errors import BudgetExceeded, NotPrivateWarning
from hedgerow.opening import open as open_session
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.amplification import sample_rate, subsampled_gaussian
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import gaussian_epsilon
from hedgerow.privacy.events import (
    COIN,
    AboveThreshold,
    Exponential,
    Laplace,
    RepeatedRows,
    Subsampled,
    ThresholdedCounts,
)
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.privacy.perturbed_objective import noise_scale
from hedgerow.query.counts import any_of, conjunction, count, interval
from hedgerow.research.audit_cases import broken_sparse_vector as published
from hedgerow.textbook import sparse_vector
from hedgerow.universe.universe import Universe

CONFIDENCE = 0.9999  # the probability with which a bound from runs holds


@final
@dataclass(frozen=True)
class EpsilonEvidence:
    """The ε found, exactly or as a lower bound with a confidence.

    ``again`` is the probability that the same audit would refute the claim again.
    """

    found: float
    confidence: float = 1.0
    again: float = 1.0
    runs: int = 0
    """Runs on each neighbour; 0 if the loss is exact."""


@final
@dataclass(frozen=True)
class BrokenMechanism:
    """An entry of the gallery.

    ``audit`` and ``ours`` are the same test, on the broken mechanism and on this package's own.
    """

    name: str
    wrong: str
    claim: float
    """The claimed ε, at ``delta``."""
    auditor: Literal["runs", "exact", "ledger"]
    audit: Callable[[Noise], EpsilonEvidence]
    ours: Callable[[Noise], EpsilonEvidence]
    delta: float = 0.0
    ours_claim: float | None = None
    """The ε that our own mechanism claims, if it differs."""

    def is_caught(self, evidence: EpsilonEvidence) -> bool:
        """Return True if the evidence refutes the claim."""
        return evidence.found > self.claim

    def passes(self, evidence: EpsilonEvidence) -> bool:
        """Return True if the evidence does not refute the claim of our own mechanism."""
        claim = self.claim if self.ours_claim is None else self.ours_claim
        return evidence.found <= claim * (1 + 1e-9)


def of_scores(scores: Iterable[Array], claim: float, delta: float = 0.0) -> EpsilonEvidence:
    """Return the bound from scores, and the probability of another refutation.

    The latter assumes that the event's probabilities are the worst that the runs allow.
    """
    first, second = scores
    finding = sampled.judge_event(first, second, bounds.chosen_runs(first.size), delta=delta, confidence=CONFIDENCE)
    error = (1 - CONFIDENCE) / 2
    likelier, rarer = max(finding.hits), min(finding.hits)
    p, q = (
        bounds.clopper_pearson(likelier, finding.judged, error)[0],
        bounds.clopper_pearson(rarer, finding.judged, error)[1],
    )
    again = bounds.chance_to_refute(p, q, finding.judged, claim, confidence=CONFIDENCE, delta=delta)
    return EpsilonEvidence(finding.epsilon, CONFIDENCE, again * CONFIDENCE, finding.runs)


# The sparse vector

HALF = 20
ONE_WAY, OTHER_WAY = np.array([0.0] * HALF + [1.0] * HALF), np.array([1.0] * HALF + [0.0] * HALF)
LOW, HIGH = np.array([0.0] * 6 + [1.0]), np.array([1.0] * 6 + [0.0])


def contrast(answers: Array) -> Array:
    """Return how many more values of the second half than of the first were above. It tells ONE_WAY from OTHER_WAY."""
    above, half = answers == 1, answers.shape[1] // 2
    difference: Array = above[:, half:].sum(axis=1) - above[:, :half].sum(axis=1).astype(float)
    return difference


def low_release(answers: Array) -> Array:
    """Return how many values were below before a number below 0 was released, or −1 if there was no such number."""
    first = (answers != 0).argmax(axis=1)
    number = answers[np.arange(len(answers)), first]
    return np.where((number < 0) & (answers != 0).any(axis=1), first, -1).astype(float)


def play_sparse_vector(
    values: Array, c: int, epsilon: float, runs: int, noise: Noise, *, threshold: float = 0.0, numeric: bool = False
) -> Array:
    """Play our sparse vector with c rounds in ε to its end. An entry is −1 if not answered, or the measured number."""
    each = epsilon / c
    guard = sparse_vector.guard_round(each / 2 if numeric else each)
    measurement = Laplace(1.0, 2 / each, 2.0**-10) if numeric else None
    config = sparse_vector.SparseVector(threshold, guard, rounds=c, measurement=measurement)
    answers = np.full((runs, len(values)), -1.0)
    for row in answers:
        accountant, progress = Accountant(Budget(epsilon, 0.0)), sparse_vector.Progress()
        for j, value in enumerate(values):
            try:
                outcome, progress = sparse_vector.step(config, progress, value, accountant, noise)
            except BudgetExceeded:
                break
            row[j] = outcome.above if outcome.measured is None else outcome.measured
    return answers


def _audit_published(variant: Callable[..., Array], epsilon: float, runs: int) -> Callable[[Noise], EpsilonEvidence]:
    """Return the audit of a published variant."""

    def audit(noise: Noise) -> EpsilonEvidence:
        rng = noise.generator()
        scores = (contrast(variant(v, 0.0, HALF, epsilon, runs, rng)) for v in (ONE_WAY, OTHER_WAY))
        return of_scores(scores, claim=epsilon)

    return audit


@functools.lru_cache(maxsize=1)
def _ours_played(noise: Noise) -> EpsilonEvidence:
    """Audit our own sparse vector on the neighbours of the published variants."""
    scores = (contrast(play_sparse_vector(v, HALF, 0.5, 4000, noise)) for v in (ONE_WAY, OTHER_WAY))
    return of_scores(scores, claim=0.5)


def _compared_value(noise: Noise) -> EpsilonEvidence:
    """Audit NumericSparse that releases the compared value."""
    rng = noise.generator()
    scores = (
        np.concatenate([low_release(published.algorithm_3(v, 0.0, 1, 1.0, 1_000_000, rng)) for _ in range(3)])
        for v in (LOW, HIGH)
    )
    return of_scores(scores, claim=1.0)


def _fresh_measurement(noise: Noise) -> EpsilonEvidence:
    """Audit our NumericSparse, which measures the value anew."""
    scores = (low_release(play_sparse_vector(v, 1, 1.0, 6000, noise, numeric=True)) for v in (LOW, HIGH))
    return of_scores(scores, claim=1.0)


def _gaps_below(noise: Noise) -> EpsilonEvidence:
    """Audit a sparse vector that releases gaps below the threshold."""
    rng, half = noise.generator(), 24
    pair = [np.array(v * half) for v in ([0.0, 1.0], [1.0, 0.0])]
    gaps = (published.gaps_on_both_sides(v, 0.0, 1.0, 40_000, rng) for v in pair)
    scores = (g[:, 1::2].mean(axis=1) - g[:, ::2].mean(axis=1) for g in gaps)
    return of_scores(scores, claim=1.0)


def _gap_above(noise: Noise) -> EpsilonEvidence:
    """Compute the loss of our round, which releases the gap above the threshold only."""
    event = sparse_vector.guard_round(1.0)
    pairs = (
        exact.above_threshold_pair(v[::-1] * 4, v * 4, event, threshold=t, gap=True)
        for v in ([0.0, 1.0], [1.0, 0.0])
        for t in (0.0, 2.0)
    )
    return EpsilonEvidence(max(pair.epsilon for pair in pairs))


def threshold_law(values: list[float], event: AboveThreshold, fresh: bool) -> Array:
    """Return the exact probability of every pattern of above and below, if a round continues after "above".

    ``fresh`` draws new threshold noise after each "above". The law is a sum over the threshold's noise, on a grid of
    whole rows.
    """
    far = math.ceil(exact.CUT * event.threshold_scale)
    τ = np.arange(-far, far + 1)
    weights = np.exp(-np.abs(τ) / event.threshold_scale)
    weights /= weights.sum()
    above = [exact.laplace_tail(τ - round(v), event.query_scale) for v in values]
    law = []
    for pattern in itertools.product((False, True), repeat=len(values)):
        probability, given = 1.0, weights.copy()
        for is_above, p in zip(pattern, above, strict=True):
            given = given * (p if is_above else 1 - p)
            if is_above and fresh:
                probability, given = probability * float(given.sum()), weights.copy()
        law.append(probability * float(given.sum()))
    return np.array(law)


def _pattern_loss(each: float, fresh: bool) -> EpsilonEvidence:
    event, values = sparse_vector.guard_round(each), [[0.0, 1.0] * 4, [1.0, 0.0] * 4]
    return EpsilonEvidence(exact.Pair.of(*(threshold_law(v, event, fresh) for v in values)).epsilon)


MANY = 40  # comparisons of a holdout's value with a guess that is close to it


def _bare_threshold(noise: Noise) -> EpsilonEvidence:
    """Compute the loss of Thresholdout with fresh noise on each comparison and none on the threshold.

    Every answer "the guess is right" reveals a little.
    """
    scale = sparse_vector.guard_round(1.0).query_scale
    near, off = (1 - float(exact.laplace_tail(np.array([2 - v]), scale)[0]) for v in (0, 1))
    return EpsilonEvidence(MANY * abs(math.log(near / off)))


def _hidden_threshold(noise: Noise) -> EpsilonEvidence:
    """Compute the loss of our guard round, whose threshold has noise."""
    event = sparse_vector.guard_round(1.0)
    pairs = (exact.above_threshold_pair([v] * MANY, [1.0 - v] * MANY, event, threshold=2.0) for v in (0.0, 1.0))
    return EpsilonEvidence(max(pair.epsilon for pair in pairs))


# Learning


def _tilted_minimum_loss(sigma: float, delta: float) -> EpsilonEvidence:
    """Compute the loss of a tilted minimum. Huber rows at labels ±∞ have slopes ∓1 and no curvature.

    So the tilted minimum is Gaussian and moves by 2/Λ.
    """
    far = 40 * sigma
    f, g = (lambda z, m=m: scipy.stats.norm.logpdf(z, m, sigma) for m in (0.0, 2.0))
    return EpsilonEvidence(exact.Pair.of_densities(f, g, -far, far + 2).epsilon_at(delta))


def _printed_tilt(noise: Noise) -> EpsilonEvidence:
    return _tilted_minimum_loss(math.sqrt(2 * math.log(1e6)), 1e-6)  # σ = L√(2 log(1/δ))/ε at ε = L = 1


def _our_tilt(noise: Noise) -> EpsilonEvidence:
    return _tilted_minimum_loss(noise_scale(1.0, 1e-6, 1.0, 1.0, 2.0, "replace"), 1e-6)  # Λ = 2λ/ε, as printed


GUESSED, CAME = 100, 2000  # rows that were guessed, and rows that there are
CROWDED = Budget(1.0, 1e-6, "add-remove")


def _crowd_loss(cut: Callable[[Problem, WhiteningMetric, Array], Array]) -> EpsilonEvidence:
    """Compute the loss of one Gaussian step of whitened descent with 20 times as many rows as guessed.

    The step spends the whole budget. All rows are alike, so that their clipped second moments have a long axis beside
    them. The row that is added lies along this axis.
    """
    row = np.array([math.cos(math.radians(14)), math.sin(math.radians(14))])
    values, axes = np.linalg.eigh(np.minimum(np.outer(row, row) * CAME / GUESSED, 8.0))
    raised = np.maximum(values, 0.03)
    metric = WhiteningMetric((axes / np.sqrt(raised)) @ axes.T, (axes * raised) @ axes.T, 1.0)
    X = np.vstack([np.tile(row, (CAME, 1)), axes[:, -1] * np.sign(axes[0, -1])])
    sums = []
    for rows in (X[:-1], X):
        problem = prepare_problem(
            Arrays(rows, np.ones(len(rows))), loss=losses.BoundedLogistic(), over=Unconstrained(), budget=CROWDED,
            row_bound=1.0, norm="l2", label_bound=None, expected_rows=GUESSED,
        )  # fmt: skip
        total = problem.gradient(np.zeros(2), weights=row_weights(problem, metric), cut=False)
        sums.append(cut(problem, metric, total))
    event = Amount(CROWDED, CROWDED.total, whole=True).fine_gaussian(1.0, 2)
    moved = float(np.linalg.norm(sums[1] - sums[0]))
    return EpsilonEvidence(gaussian_epsilon(moved / event.sigma, CROWDED.delta, 100.0))


def _cut_before_whitening(problem: Problem, metric: WhiteningMetric, total: Array) -> Array:
    """Cut the sum by coordinates and project it onto a ball before it is multiplied by A, which is wrong."""
    most = problem.most_rows * problem.slope_bound
    held = np.clip(total, -most, most)
    held = held * min(1.0, most / float(np.linalg.norm(held)))
    return np.asarray(metric.A @ held / (problem.slope_bound * metric.length))


APART = 20.0  # distance of two vertices' scores, in B; a replaced row moves one score up and the other down, by 2B each


def _printed_vertex(noise: Noise) -> EpsilonEvidence:
    """Compute the loss of Laplace noise of scale B/ε₀ on two scores, B = ε₀ = 1.

    At a distance t, P[the far one wins] = ½(1 + t/2)e^−t.
    """
    p, q = ((0.5 + t / 4) * math.exp(-t) for t in (APART, APART - 4))
    return EpsilonEvidence(exact.Pair.of([p, 1 - p], [q, 1 - q]).epsilon)


def _our_vertex(noise: Noise) -> EpsilonEvidence:
    return EpsilonEvidence(exact.exponential_pair([0.0, -APART], [-2.0, 2.0 - APART], Exponential(2.0, 1.0)).epsilon)


TWICE = Subsampled(RepeatedRows(2, 2), Laplace(1.0, 1.0))


def _with_replacement(noise: Noise) -> EpsilonEvidence:
    """Compute the loss for n = ℓ = 2 and ε′ = 1 on {1, 0} and {0, 0}.

    The row is drawn 0, 1 or 2 times, and its count gets Lap(1).
    """
    return EpsilonEvidence(exact.subsampled_pair(TWICE, [0.25, 0.5, 0.25], [1.0]).epsilon)


SAMPLED = subsampled_gaussian(1.0, 1e-5, "add-remove", heads=COIN // 2, steps=1, sensitivity=1.0, values=1)


def poisson_sample(noise: Noise) -> EpsilonEvidence:
    """Compute the loss of our sampling, in which each row has its own coin: one step, at rate ½, of Gaussian noise."""
    σ, rate = SAMPLED.noise.sigma, sample_rate(SAMPLED.sample.heads)

    def without(z: Array) -> Array:
        log: Array = scipy.stats.norm.logpdf(z, 0, σ)
        return log

    def sample(z: Array) -> Array:
        log: Array = np.logaddexp(math.log1p(-rate) + without(z), math.log(rate) + scipy.stats.norm.logpdf(z, 1, σ))
        return log

    return EpsilonEvidence(exact.Pair.of_densities(sample, without, -37 * σ, 37 * σ + 1).epsilon_at(SAMPLED.delta))


def _replaced_as_removed(sensitivity: float) -> EpsilonEvidence:
    """Compute the loss of a histogram in which one row changes its cell, so that two counts move by 1.

    The noise is for ``sensitivity`` at ε = 1.
    """
    moved = exact.laplace_pair(Laplace(sensitivity, sensitivity), shift=1.0)
    return EpsilonEvidence(moved.then(moved).epsilon)


@functools.lru_cache(maxsize=1)
def thresholded_event() -> ThresholdedCounts:
    """Return the event of a draft's column of texts, for half of ε = 1 and δ = 10⁻⁶ each way."""
    return threshold_event(Amount(TOLD, TOLD.rho(TOLD.delta / 2)), TOLD.delta / 2)


TOLD = Budget(1.0, 1e-6)


def told_values(threshold: int = 0) -> EpsilonEvidence:
    """Compute the worst loss of three replaced rows.

    They are the only row of its value that moves to a common value or to a new one, and a row that moves between common
    values.
    """
    event = thresholded_event()
    at = threshold or event.threshold
    tables = [([1, at], [0, at + 1]), ([1, 0], [0, 1]), ([at, at], [at - 1, at + 1])]
    return EpsilonEvidence(
        max(exact.thresholded_pair(event.noise, at, *pair).epsilon_at(TOLD.delta) for pair in tables)
    )


# Implementation


def naive_laplace(value: float, scale: float, runs: int, rng: np.random.Generator) -> Array:
    """Draw by the textbook formula on doubles: value ± scale·ln u."""
    signs = np.where(rng.random(runs) < 0.5, -1.0, 1.0)
    draws: Array = value + signs * (scale * np.log(1 - rng.random(runs)))
    return draws


def could_come_from(value: float, outputs: Array, scale: float) -> Array:
    """Return 1 for each output that some u of 53 bits gives exactly: Mironov's attack on the least significant bits."""
    distance = outputs - value
    nearest = np.rint(np.exp(-np.abs(distance) / scale) * 2.0**53)
    found = np.zeros(outputs.size, bool)
    for step in range(-4, 5):
        u = np.clip(nearest + step, 1, 2.0**53) * 2.0**-53
        found |= value - np.sign(distance) * (scale * np.log(u)) == outputs
    return found.astype(float)


def _support(outputs: tuple[Array, Array], scale: float) -> EpsilonEvidence:
    scores = (could_come_from(0.0, z, scale) - could_come_from(1.0, z, scale) for z in outputs)
    return of_scores(scores, claim=1.0)


def _naive_floats(noise: Noise) -> EpsilonEvidence:
    rng = noise.generator()
    return _support((naive_laplace(0.0, 1.0, 4000, rng), naive_laplace(1.0, 1.0, 4000, rng)), 1.0)


def _on_a_grid(noise: Noise) -> EpsilonEvidence:
    """Audit our noise on a grid by the same attack."""
    event = Laplace(1.0, 1.0, 2.0**-30)
    budget = Budget(4001.0, 0.0)
    # one charge for the whole array: each cell is a run of its own
    first, second = (noise.add(np.full(4000, value), Accountant(budget).charge(event)) for value in (0.0, 1.0))
    return _support((first, second), 1.0)


COIN_UNIVERSE = Universe.from_sizes({"x": 3})
SPELLINGS = (
    count(x=2), conjunction(x=2), any_of(count(x=2)), interval("x", 2, 2), any_of(count(x=2), count(x=2)),
    count(x=[2]), any_of(conjunction(x=2)), count(x=(2, 2)),
)  # fmt: skip


def _by_spelling(noise: Noise) -> EpsilonEvidence:
    """Audit a session that measures each wording with fresh noise and bills only the first."""
    rng = noise.generator()
    scores = ((value + rng.laplace(size=(4000, len(SPELLINGS)))).mean(axis=1) for value in (0.0, 1.0))
    return of_scores(scores, claim=1.0)


def _by_meaning(noise: Noise) -> EpsilonEvidence:
    """Audit our sessions, which recognize a repeated question by its meaning."""
    tables = (HistogramSource(COIN_UNIVERSE, np.array(counts)) for counts in ([9, 1, 0], [9, 0, 1]))
    scores = []
    for table in tables:
        means = []
        for _ in range(400):
            session = open_session(table, universe=COIN_UNIVERSE, budget=Budget(1.0, 0.0), guard=0.0)
            means.append(float(np.mean([session.ask(query).value for query in SPELLINGS])))
        scores.append(np.array(means))
    return of_scores(scores, claim=1.0)


class UnlockedFilter:
    """A filter that first checks if a charge fits, and counts it later.

    Two threads may both check before either counts.
    """

    def __init__(self, total: float, between: Callable[[], object]) -> None:
        self.total, self.spent, self._between = total, 0.0, between

    def charge(self, epsilon: float) -> bool:
        """Return True if the charge was allowed."""
        if self.spent + epsilon > self.total:
            return False
        self._between()  # another thread may run here
        self.spent += epsilon
        return True


def _let_through(charge: Callable[[], bool]) -> EpsilonEvidence:
    """Return the sum of the losses that two threads were allowed, each of which asks for the whole budget."""
    passed: list[bool] = []
    threads = [threading.Thread(target=lambda: passed.append(charge())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return EpsilonEvidence(float(sum(passed)))


def _race(noise: Noise) -> EpsilonEvidence:
    both = threading.Barrier(2)
    ledger = UnlockedFilter(1.0, both.wait)
    return _let_through(lambda: ledger.charge(1.0))


def _no_race(noise: Noise) -> EpsilonEvidence:
    """Let two threads charge our accountant at the same time."""
    both, ledger = threading.Barrier(2), Accountant(Budget(1.0, 0.0))

    def charge() -> bool:
        both.wait()
        try:
            ledger.charge(Laplace(1.0, 1.0))
        except BudgetExceeded:
            return False
        return True

    return _let_through(charge)


def _seeded_by_the_data(noise: Noise) -> EpsilonEvidence:
    """Audit noise seeded by the data. The same table always has the same noise, so an answer identifies its table."""
    answers = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        for table in (3, 4):
            answers.append(np.array([table + Seeded(table).generator().laplace() for _ in range(400)]))
    return of_scores(answers, claim=1.0)


def _not_seeded(noise: Noise) -> EpsilonEvidence:
    """Audit our noise on the same two values."""
    answers = (
        np.array([noise.add(float(t), Accountant(Budget(1.0, 0.0)).charge(Laplace(1.0, 1.0))) for _ in range(400)])
        for t in (3, 4)
    )
    return of_scores(answers, claim=1.0)


# The guard's certificate

ROWS, ASKED = 1000, 0.1
RISK_UNIVERSE = Universe.from_sizes({"x": 2})


def unfinished_excess(ones: int, decrease: float = 60.0) -> int:
    """Return n·err(D, θ)/2 of the mean of n bits, in rows, by a descent that stops when a step gains little.

    One row moves the exact value by 1. The place where the descent stops depends on the data, and the remaining gap is
    not in the sensitivity.
    """
    mean, theta = ones / ROWS, 1.0
    while ROWS * ((theta - mean) ** 2 - ((theta - mean) / 2) ** 2) > decrease:
        theta = (theta + mean) / 2
    return round(ROWS * ((ASKED - mean) ** 2 - (theta - mean) ** 2) / 2)


def _worst_step(values: list[float]) -> tuple[float, float]:
    i = int(np.argmax(np.abs(np.diff(values))))
    return values[i], values[i + 1]


def _guard_loss(one: float, two: float, event: AboveThreshold, grid: float) -> EpsilonEvidence:
    """Compute the loss of a round on three values that one row moves like this: the larger of two orders.

    The threshold is set at the larger value.
    """
    pairs = (
        exact.above_threshold_pair([a, a, b], [b, b, a], event, threshold=max(one, two), grid=grid)
        for a, b in ((one, two), (two, one))
    )
    return EpsilonEvidence(max(pair.epsilon for pair in pairs))


def _gap_ignored(noise: Noise) -> EpsilonEvidence:
    """Compute the loss of a guard whose sensitivity ignores the solver's gap."""
    values = [float(unfinished_excess(k)) for k in range(300, 700)]
    return _guard_loss(*_worst_step(values), sparse_vector.guard_round(1.0), 1.0)


def _gap_counted(noise: Noise) -> EpsilonEvidence:
    """Compute the loss of our guard, whose sensitivity includes the solver's gap."""
    risk, over = losses.Squared(target="x", features=()).on(RISK_UNIVERSE), Box(-1.0, 1.0)
    theta = np.full(risk.dimension, ASKED)
    excess = excess_of(risk, over, theta, Budget(1.0, 0.0), float(ROWS), 1e-3)
    assert excess is not None
    grid = 2.0 ** math.ceil(math.log2(max(excess.unit, 2.0**-6)))
    values = [excess.value(np.array([ROWS - k, k]), grid) for k in range(300, 700, 2)]
    near = [excess.value(np.array([ROWS - k, k]), grid) for k in range(301, 701, 2)]
    i = int(np.argmax(np.abs(np.array(values) - near)))
    sensitivity = math.ceil(excess.sensitivity(grid) / grid) * grid
    return _guard_loss(values[i], near[i], sparse_vector.guard_round(1.0, sensitivity=sensitivity), grid)


# A certificate of the largest error

BELIEVED = np.array([[90, 60, 50], [30, 40, 30]])


def _certificate_loss(released: Callable[[NDArray[np.int64]], float]) -> EpsilonEvidence:
    """Compute the exact loss of Laplace noise of scale 1 on a number, for the worst row that changes its cell."""
    far = 0.0
    for counts in (np.array([[100, 40, 60], [50, 20, 30]]), np.array([[60, 60, 80], [20, 50, 30]])):
        for source, target in itertools.permutations(np.ndindex(counts.shape), 2):
            other = counts.copy()
            other[source] -= 1
            other[target] += 1
            far = max(far, abs(released(counts) - released(other)))
    return EpsilonEvidence(far)


def _whole_distance(noise: Noise) -> EpsilonEvidence:
    return _certificate_loss(lambda counts: float(np.abs(counts - BELIEVED).sum()))


def _largest_error(noise: Noise) -> EpsilonEvidence:
    return _certificate_loss(lambda counts: float(half_distance(counts - BELIEVED)))


def _allowed_by_the_data(noise: Noise) -> EpsilonEvidence:
    return _certificate_loss(lambda counts: float(largest_error(counts - BELIEVED, [True, False], counts >> 1)))


def _allowed_by_what_is_believed(noise: Noise) -> EpsilonEvidence:
    return _certificate_loss(lambda counts: float(largest_error(counts - BELIEVED, [True, False], BELIEVED >> 1)))


def _on(evidence: Callable[..., EpsilonEvidence], *given: Any) -> Callable[[Noise], EpsilonEvidence]:
    """Return an audit that ignores the noise it is given."""
    return lambda noise: evidence(*given)


GALLERY: tuple[BrokenMechanism, ...] = (
    BrokenMechanism(
        "NumericSparse that releases the compared value", "the released number reveals the noisy threshold, which then "
        "protects none of the values below it (Lyu et al., Algorithm 3); ours measures anew and is billed for it",
        1.0, "runs", _compared_value, _fresh_measurement,
    ),
    BrokenMechanism(
        "Sparse vector, Algorithm 4",
        "the noise on values does not grow with c, and all rounds share one threshold noise",
        0.5, "runs", _audit_published(published.algorithm_4, 0.5, 20_000), _ours_played,
    ),
    BrokenMechanism(
        "Sparse vector, Algorithm 5", "values have no noise, and the mechanism never stops",
        0.5, "runs", _audit_published(published.algorithm_5, 0.5, 4000), _ours_played,
    ),
    BrokenMechanism(
        "Sparse vector, Algorithm 6", "the noise on values does not grow with c, and the mechanism never stops",
        0.5, "runs", _audit_published(published.algorithm_6, 0.5, 20_000), _ours_played,
    ),
    BrokenMechanism(
        "Gap released below the threshold",
        "the gap is free only above; below, it amounts to releasing every value with noise",
        1.0, "runs", _gaps_below, _gap_above,
    ),
    BrokenMechanism(
        "Threshold noise kept after an answer above",
        "the price is that of one round, but the round continues, and each answer above costs more",
        1.0, "exact", _on(_pattern_loss, 1.0, False), _on(_pattern_loss, 1 / 8, True),
    ),
    BrokenMechanism(
        "Thresholdout without noise on its threshold",
        "answers from the training set are not billed, but each is one more comparison",
        1.0, "exact", _bare_threshold, _hidden_threshold,
    ),
    BrokenMechanism(
        "Objective perturbation as printed", "σ is for a gradient that moves by L, but a replaced row moves it by 2L",
        1.0, "exact", _printed_tilt, _our_tilt, delta=1e-6,
    ),
    BrokenMechanism(
        "Frank–Wolfe's vertex as printed", "Laplace noise has scale B/ε₀, but a replaced row moves scores by 2B either "
        "way: a step costs up to 4ε₀, not ε₀", 1.0, "exact", _printed_vertex, _our_vertex,
    ),
    BrokenMechanism(
        "A sum that is cut before it is whitened",
        "cutting coordinates and projecting onto a ball does not expand ℓ2 distances, but the noise is for "
        "distances in the metric of the features, which it does expand; ours is cut in that metric",
        1.0, "exact", _on(_crowd_loss, _cut_before_whitening), _on(_crowd_loss, whiten_sum), delta=1e-6,
    ),
    BrokenMechanism(
        "Sampling with replacement as printed",
        "a row that is drawn twice moves the sum by 2, not by 1 (Proposition 7)",
        math.log(1 + 0.75 * math.expm1(1.0)), "exact", _with_replacement, _with_replacement, ours_claim=TWICE.epsilon,
    ),
    BrokenMechanism(
        "Noise for rows that come and go, where they are replaced",
        "a replaced row moves two counts of a histogram, not one",
        1.0, "exact", _on(_replaced_as_removed, 1.0), _on(_replaced_as_removed, 2.0),
    ),
    BrokenMechanism(
        "Values told at a threshold that has no tail",
        "the noise hides how many rows have a value, but not that a single row has it",
        1.0, "exact", _on(told_values, 2), _on(told_values), delta=1e-6,
    ),
    BrokenMechanism(
        "Continuous Laplace noise on doubles",
        "the set of possible doubles depends on the value, so the last bits reveal it",
        1.0, "runs", _naive_floats, _on_a_grid,
    ),
    BrokenMechanism(
        "A repeat known by its spelling", "another wording of an answered question is free, but is measured anew",
        1.0, "runs", _by_spelling, _by_meaning,
    ),
    BrokenMechanism(
        "A budget race", "a filter that checks and counts in two steps lets two threads spend all of it",
        1.0, "ledger", _race, _no_race,
    ),
    BrokenMechanism(
        "A guard that forgets its solver's gap",
        "the gap that the solver leaves depends on the data and adds to the sensitivity",
        1.0, "exact", _gap_ignored, _gap_counted,
    ),
    BrokenMechanism(
        "A certificate that is not half the distance", "a replaced row moves the ℓ1 distance of a table by 2, which is "
        "billed as 1; the largest error of any question is half the distance",
        1.0, "exact", _whole_distance, _largest_error,
    ),
    BrokenMechanism(
        "A certificate that allows more where there are more rows",
        "the error allowed to a question is half of its true count, so a row moves both the error and the "
        "allowance; with half of the believed count it moves the error alone",
        1.0, "exact", _allowed_by_the_data, _allowed_by_what_is_believed,
    ),
    BrokenMechanism(
        "Noise seeded by the data", "the same table always has the same noise, so an answer identifies its table",
        1.0, "runs", _seeded_by_the_data, _not_seeded,
    ),
)  # fmt: skip
