"""Every mechanism of this package on the worst neighbours that could be built, with its claim and its audit.

*exact*: the law of each event's noise, whose loss is computed. *runs*: the mechanism itself, with noise from the
operating system, audited by ``sampled.distinguish``. *one run*: a whole session with canaries.

``reach`` is the share of the claim that the audit must find, because an audit without power is worthless. If it is far
below 1, the claim has slack for these neighbours: a composition pays for more than one row can change at once, or
rounds are paid for that were not needed.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, final

import numpy as np

from hedgerow.audit import exact, sampled
from hedgerow.audit.one_run import one_run
from hedgerow.data import HistogramSource
from hedgerow.errors import BudgetExceeded
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import (
    COIN,
    AboveThreshold,
    DistinctRows,
    Event,
    Exponential,
    FlippedRows,
    Gaussian,
    Laplace,
    PoissonSample,
    Repeated,
    Subsampled,
)
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise
from hedgerow.query.counts import count, marginal
from hedgerow.query.linear import Linear
from hedgerow.research.audit_cases import convex_cases, erm_cases, renyi_cases, row_cases, session_cases
from hedgerow.research.audit_cases.gallery import SAMPLED, TOLD, TWICE, EpsilonEvidence, poisson_sample, told_values
from hedgerow.research.audit_cases.session_cases import REPLACED, spend_all
from hedgerow.textbook import mwem, pmw, small_db, sparse_vector

CONFIDENCE = 1 - 1e-5  # confidence of each audit, so that fifty of them together err with probability 0.0005


@final
@dataclasses.dataclass(frozen=True)
class AuditCase:
    """A mechanism of this package, its claim and its audit.

    ``examine(share, workers)`` audits with that share of the runs.
    """

    name: str
    claim: Budget
    auditor: Literal["exact", "runs", "one run"]
    reach: float
    examine: Callable[[float, int], EpsilonEvidence]
    currency: str = "ε"


# Exact: the noise of each event


def _exact(name: str, event: Event, pair: Callable[[], exact.Pair], reach: float) -> AuditCase:
    """Return a case for the exact loss of an event.

    The pure loss is compared with the event's ε or, for Gaussian noise, which has none, ρ with ρ. Every order and every
    δ must hold, too.
    """
    by_rho = math.isinf(event.epsilon)
    claim = event.rho if by_rho else event.epsilon

    def examine(share: float, workers: int) -> EpsilonEvidence:
        verdict = exact.check_pair(pair(), event)
        found = verdict.rho if by_rho else verdict.epsilon
        return EpsilonEvidence(found if verdict.holds else max(found, 2 * claim))

    return AuditCase(name, Budget(claim, 0.0), "exact", reach, examine, "ρ" if by_rho else "ε")


LAPLACE, GAUSSIAN, CHOICE = Laplace(1.0, 2.0), Gaussian(1.0, 3.0), Exponential(1.0, 1.0)
ROUND = AboveThreshold(1.0, 0.5, 0.5)
MANY_BELOW, MANY_ABOVE = [0.0] * 200 + [1.0], [1.0] * 200 + [0.0]


def _repeated_case() -> exact.Pair:
    return functools.reduce(exact.Pair.then, [exact.laplace_pair(LAPLACE)] * 3)


FEW, COINS = Subsampled(DistinctRows(3, 10), Laplace(1.0, 1.0)), Subsampled(PoissonSample(COIN // 4), Laplace(1.0, 1.0))
FLIP = FlippedRows(COIN // 8, 10)


def _flip_pair(flip: FlippedRows) -> exact.Pair:
    """Return the laws of a flip on a table where nobody says yes, and on one where one row does."""
    lie, told = flip.flip, flip.flip + (1 - 2 * flip.flip) / flip.rows
    return exact.Pair.of([lie, 1 - lie], [told, 1 - told])


PLANNED, PLANNED_SHARE = Budget(1.0, 1e-3), 0.9


def _budget_loss() -> EpsilonEvidence:
    """Compute the loss of a whole budget: planned noise of its share, and a yes-or-no answer that has the rest."""
    Δ = 50.0
    noise = PLANNED.plan_noise(Amount.share_of(PLANNED, PLANNED_SHARE).gaussian(Δ), PLANNED_SHARE)
    assert noise is not None
    told = 1 / (1 + math.exp(-Amount.share_of(PLANNED, 1 - PLANNED_SHARE).round_epsilon()))
    answer = exact.Pair.of([told, 1 - told], [1 - told, told])
    return EpsilonEvidence(exact.gaussian_pair(noise.event).then(answer).epsilon_at(PLANNED.delta))


EXACT = (
    _exact("Laplace noise", LAPLACE, lambda: exact.laplace_pair(LAPLACE), 0.999),
    _exact("Laplace noise on a fine grid", Laplace(3.0, 2.0, 2.0**-8), lambda: exact.laplace_pair(Laplace(3.0, 2.0, 2.0**-8)), 0.999),
    _exact("Gaussian noise", GAUSSIAN, lambda: exact.gaussian_pair(GAUSSIAN), 0.999),
    _exact("Gaussian noise on a fine grid", Gaussian(2.0, 3.0, 2.0**-6), lambda: exact.gaussian_pair(Gaussian(2.0, 3.0, 2.0**-6)), 0.999),
    _exact("the exponential mechanism", CHOICE, lambda: exact.exponential_pair([0.0, -30.0], [-1.0, -29.0], CHOICE), 0.999),
    _exact("three Laplace releases", Repeated(LAPLACE, 3), _repeated_case, 0.999),
    _exact("a guard round", ROUND, lambda: exact.above_threshold_pair(MANY_BELOW, MANY_ABOVE, ROUND, threshold=14.0), 0.85),
    _exact(
        "a guard round with its gap", ROUND,
        lambda: exact.above_threshold_pair(MANY_BELOW, MANY_ABOVE, ROUND, threshold=14.0, gap=True), 0.85,
    ),
    _exact(
        "a count of 3 of 10 rows", FEW, lambda: exact.subsampled_pair(FEW, [0.7, 0.3], [1.0]), 0.999,
    ),
    _exact(
        "a count of 2 of 2 rows, with replacement", TWICE,
        lambda: exact.subsampled_pair(TWICE, [0.25, 0.5, 0.25], [1.0]), 0.999,
    ),
    _exact(
        "a count of a Poisson sample", COINS, lambda: exact.subsampled_pair(COINS, [0.75, 0.25], [1.0]), 0.999,
    ),
    _exact("a flip", FLIP, lambda: _flip_pair(FLIP), 0.999),
    AuditCase(
        "Gaussian noise on a secret sample", Budget(SAMPLED.epsilon, SAMPLED.delta), "exact", 0.6,
        lambda share, workers: poisson_sample(Noise()),
    ),
    AuditCase("two rounds of hits", renyi_cases.OF_HITS, "exact", 0.5, lambda share, workers: renyi_cases.hits_loss()),
    AuditCase("the best of a random number of runs", renyi_cases.OF_RUNS, "exact", 0.65, lambda share, workers: renyi_cases.runs_loss()),
    AuditCase("planned noise and an answer", PLANNED, "exact", 0.9, lambda share, workers: _budget_loss()),
    AuditCase("values told at a threshold", TOLD, "exact", 0.7, lambda share, workers: told_values()),
)  # fmt: skip


# Runs

Run = Callable[[Any, Noise], Any]


def _mechanism_case(
    name: str,
    claim: Budget,
    run: Run,
    tables: tuple[Any, Any],
    runs: int,
    reach: float,
    *,
    kind: sampled.Kind = "number",
) -> AuditCase:
    """Return a case for runs of a mechanism."""

    def make(number: int) -> sampled.Mechanism:
        noise = Noise()  # each process and block has its own noise
        return lambda table: run(table, noise)

    def examine(share: float, workers: int) -> EpsilonEvidence:
        found = sampled.distinguish(
            sampled.PerProcess(make), *tables, runs=max(int(share * runs), 2 * sampled.BLOCKS), delta=claim.delta,
            confidence=CONFIDENCE, kind=kind, workers=workers,
        )  # fmt: skip
        return EpsilonEvidence(found.epsilon, CONFIDENCE, runs=found.runs)

    return AuditCase(name, claim, "runs", reach, examine)


def _noise_case(event: Laplace | Gaussian, budget: Budget) -> Run:
    return lambda value, noise: noise.add(float(value), Accountant(budget).charge(event))


def _choice_case(scores: list[float], noise: Noise) -> int:
    return noise.choose(np.array(scores), Accountant(Budget(1.0, 0.0)).charge(Exponential(1.0, 1.0)))


NOISY = Budget(1.0, 0.05)
GAUSS = Gaussian(1.0, 1 / math.sqrt(2 * NOISY.total), 2.0**-10)


def _guard_round(values: list[float], noise: Noise, *, gap: bool = False) -> float:
    """Play one round on values that fall and one value that rises.

    The threshold's noise hides the many values, and the value's own noise hides the one. Return a positive number if
    that one was above, and with ``gap`` also by how much.
    """
    config = sparse_vector.SparseVector(2.0, sparse_vector.guard_round(2.0), rounds=1, gap=gap)
    ledger, progress = Accountant(Budget(2.0, 0.0)), sparse_vector.Progress()
    for place, value in enumerate(values):
        outcome, progress = sparse_vector.step(config, progress, value, ledger, noise)
        if outcome.above:
            return 1.0 + (outcome.gap or 0.0) if place == len(values) - 1 else 0.0
    return 0.0


# One row of ten is replaced

ONE = session_cases.ONE
HAS_X, WEIGHTED = Linear.from_table(ONE, ("x",), [0.0, 1.0]), Linear.from_table(ONE, ("x",), [0.25, 1.0])
PAIR = (HistogramSource(ONE, np.array([10, 0])), HistogramSource(ONE, np.array([9, 1])))
TWO_ROWS = (HistogramSource(ONE, np.array([2, 0])), HistogramSource(ONE, np.array([1, 1])))
PURE, APPROXIMATE = Budget(4.0, 0.0), Budget(3.0, 0.05)
COMING = dataclasses.replace(APPROXIMATE, neighbours="add-remove")


def run_pmw(data: HistogramSource, noise: Noise, budget: Budget = PURE) -> tuple[Any, ...]:
    """Run PMW for two rounds, which are too small for any theorem: only privacy is at stake."""
    guard, measurement = sparse_vector.guard_round(budget.epsilon / 8), Laplace(1.0, 8 / (3 * budget.epsilon))
    config = pmw.PMWConfig(10.0, 2, 9, 0.1, 0.1, "hoeffding", 2, guard, measurement)
    mechanism = pmw.OnlinePMW(config, data, Accountant(budget), noise)
    seen: list[Any] = []
    for query in (HAS_X, WEIGHTED, HAS_X):
        try:
            answer = mechanism.ask(query)
        except BudgetExceeded:
            break
        seen.append(answer.measured_rows)
    return tuple(seen)


def run_mwem(data: HistogramSource, noise: Noise, budget: Budget = PURE) -> tuple[Any, ...]:
    """Run MWEM for two rounds and return its choices and measurements."""
    choice, measurement = Exponential(1.0, budget.epsilon / 8), Laplace(1.0, 8 / (3 * budget.epsilon))
    config = mwem.MWEMConfig(10.0, 0.05, 0.1, "hoeffding", 2, choice, measurement)
    released = mwem.release(config, [HAS_X, WEIGHTED], data, Accountant(budget), noise)
    return tuple(part for query, rows in released.measurements for part in (str(query.is_count), rows))


def run_small_db(data: HistogramSource, noise: Noise, budget: Budget = PURE) -> tuple[int, ...]:
    """Run SmallDB with one row and return its counts."""
    released = small_db.release([HAS_X], data, Accountant(budget), noise, size=1)
    return tuple(int(k) for k in released.counts)


# Canaries

ONE_RUN = Budget(4.0, 1e-5)
CANARIES = 4000


def _one_run(budget: Budget) -> AuditCase:
    """Return a case for one session with canaries."""

    def examine(share: float, workers: int) -> EpsilonEvidence:
        scores = session_cases.canary_scores(budget)
        found = one_run(scores, CANARIES, guesses=CANARIES // 4, delta=budget.delta, confidence=0.999)
        return EpsilonEvidence(found.epsilon, found.confidence, runs=1)

    name = f"a session with {CANARIES} canaries" + (", pure" if budget.pure else "")
    return AuditCase(name, budget, "one run", 0.65 if budget.pure else 0.15, examine)


def _erm() -> Iterator[AuditCase]:
    """Yield the cases of every private solver, for both kinds of neighbours."""
    for name, case in (erm_cases.CASES | erm_cases.LONGER).items():
        for neighbours, reach in zip(("replace", "add-remove"), case.reach, strict=True):
            claim = dataclasses.replace(case.claim(erm_cases.LONG), neighbours=neighbours)  # type: ignore[arg-type]
            yield _mechanism_case(
                f"ERM: {name}", claim, functools.partial(_solver_case, case, claim), case.tables(neighbours),
                case.long, 0.5 * reach,
            )  # fmt: skip


def _solver_case(case: erm_cases.ErmCase, claim: Budget, table: erm_cases.Rows, noise: Noise) -> float:
    return case.run(table, claim)


def _session_case(
    name: str,
    budget: Budget,
    pair: session_cases.Pair,
    runs: int,
    reach: float,
    ask: session_cases.Ask = lambda session, within: within,
    **options: Any,
) -> AuditCase:
    """Return a case for runs of a whole session."""
    return _mechanism_case(name, budget, session_cases.session_run(budget, pair, ask, **options), pair, runs, reach)


RUNS = (
    _mechanism_case("drawn Laplace noise", Budget(1.0, 0.0), _noise_case(Laplace(1.0, 1.0), Budget(1.0, 0.0)), (0, 1), 20_000, 0.7),
    _mechanism_case("drawn Gaussian noise", NOISY, _noise_case(GAUSS, NOISY), (0, 1), 20_000, 0.3),
    _mechanism_case("drawn choices", Budget(1.0, 0.0), _choice_case, ([0.0, -6.0], [-1.0, -5.0]), 20_000, 0.4),
    _mechanism_case(
        "sparse vector, one round", Budget(2.0, 0.0), _guard_round, ([0.0] * 8 + [1.0], [1.0] * 8 + [0.0]), 60_000, 0.5,
    ),
    _mechanism_case(
        "sparse vector with its gap", Budget(2.0, 0.0), functools.partial(_guard_round, gap=True),
        ([0.0] * 8 + [1.0], [1.0] * 8 + [0.0]), 20_000, 0.45,
    ),
    _mechanism_case("a statistic of 2 of 4 rows", PURE, row_cases.sampled_statistic, row_cases.FEW_ROWS, 4000, 0.1),
    _mechanism_case(
        "a statistic of 2 of 4 rows, with replacement", PURE,
        functools.partial(row_cases.sampled_statistic, replace=True), row_cases.FEW_ROWS, 4000, 0.1,
    ),
    _mechanism_case(
        "a sampling counting query", Budget(row_cases.ONE_FLIP.event().epsilon, 0.0), row_cases.sampled_flip,
        row_cases.FEW_ROWS, 10_000, 0.3,
    ),
    _mechanism_case("PMW", PURE, run_pmw, PAIR, 6000, 0.33, kind="sequence"),
    _mechanism_case("MWEM", PURE, run_mwem, PAIR, 6000, 0.42, kind="sequence"),
    _mechanism_case("SmallDB", PURE, run_small_db, TWO_ROWS, 10_000, 0.6, kind="category"),
    _mechanism_case("a reusable holdout", PURE, row_cases.held_out, (row_cases.RIGHT, row_cases.WRONG), 4000, 0.1, kind="sequence"),
    *(
        _mechanism_case(
            f"convex PMW, {name}", convex_cases.CLAIM, functools.partial(convex_cases.online, name), family.tables, 6000, 0.3,
        )
        for name, family in convex_cases.FAMILIES.items()
    ),
    _mechanism_case(
        "convex PMW, offline", convex_cases.CLAIM, convex_cases.offline,
        convex_cases.FAMILIES["noisy descent"].tables, 6000, 0.3,
    ),
    _session_case("a session", APPROXIMATE, REPLACED, 6000, 0.28, reserve=0.0, guard=0.0),
    _session_case("a session, rows that come and go", COMING, session_cases.REMOVED, 6000, 0.26, reserve=0.0, guard=0.0),
    _session_case("a session with within, pure", PURE, REPLACED, 6000, 0.6, spend_all(count(x=0)), reserve=0.6, guard=0.0),
    _session_case("a session with within", APPROXIMATE, REPLACED, 6000, 0.28, spend_all(count(x=0)), reserve=0.95, guard=0.0),
    _session_case(
        "a session with a guard", APPROXIMATE, session_cases.GUARDED, 6000, 0.22, session_cases.ask_the_guard,
        **session_cases.GUARD,
    ),
    _session_case(
        "a session with a convex question within", convex_cases.CLAIM, session_cases.CORRELATED, 6000, 0.25,
        spend_all(session_cases.QUESTION), **session_cases.KNOWN,
    ),
    _mechanism_case("a count over time, pure", PURE, session_cases.over_time(PURE, REPLACED), REPLACED, 6000, 0.5),
    _mechanism_case("a count over time", APPROXIMATE, session_cases.over_time(APPROXIMATE, REPLACED), REPLACED, 6000, 0.28),
    _mechanism_case("a certificate", PURE, row_cases.certificate(PURE), row_cases.CERTIFIED, 1500, 0.2),
    _mechanism_case("a certificate, δ", APPROXIMATE, row_cases.certificate(APPROXIMATE), row_cases.CERTIFIED, 1500, 0.1),
    _mechanism_case("a certificate of means", PURE, row_cases.certificate_of_means(PURE), row_cases.OF_MEANS, 1500, 0.15),
    _mechanism_case("a certificate of losses", PURE, row_cases.certificate_of_losses(PURE), session_cases.CORRELATED, 600, 0.3),
    _mechanism_case("a release", APPROXIMATE, session_cases.release_run(APPROXIMATE, REPLACED), REPLACED, 6000, 0.33),
    _mechanism_case(
        "a factorization release", APPROXIMATE,
        session_cases.release_run(APPROXIMATE, REPLACED, method="matrix", workload=[marginal("x")]), REPLACED, 6000, 0.33,
    ),
    _one_run(PURE),
    _one_run(ONE_RUN),
)  # fmt: skip

CASES: tuple[AuditCase, ...] = (*EXACT, *RUNS, *_erm())
