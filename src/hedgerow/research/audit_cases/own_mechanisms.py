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
from hedgerow.data import Histogram
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
from hedgerow.query.counts import count
from hedgerow.query.linear import Linear
from hedgerow.research.audit_cases import convex_cases, erm_cases, row_cases, session_cases
from hedgerow.research.audit_cases.gallery import SAMPLED, TOLD, TWICE, Evidence, poisson_sample, told_values
from hedgerow.research.audit_cases.session_cases import REPLACED, spending
from hedgerow.textbook import mwem, pmw, small_db, sparse_vector

CONFIDENCE = 1 - 1e-5  # confidence of each audit, so that fifty of them together err with probability 0.0005


@final
@dataclasses.dataclass(frozen=True)
class Case:
    """A mechanism of this package, its claim and its audit.

    ``examine(share, workers)`` audits with that share of the runs.
    """

    name: str
    claim: Budget
    auditor: Literal["exact", "runs", "one run"]
    reach: float
    examine: Callable[[float, int], Evidence]
    currency: str = "ε"


# Exact: the noise of each event


def _exact(name: str, event: Event, pair: Callable[[], exact.Pair], reach: float) -> Case:
    """Return a case for the exact loss of an event.

    The pure loss is compared with the event's ε or, for Gaussian noise, which has none, ρ with ρ. Every order and every
    δ must hold, too.
    """
    by_rho = math.isinf(event.epsilon)
    claim = event.rho if by_rho else event.epsilon

    def examine(share: float, workers: int) -> Evidence:
        verdict = exact.checked(pair(), event)
        found = verdict.rho if by_rho else verdict.epsilon
        return Evidence(found if verdict.holds else max(found, 2 * claim))

    return Case(name, Budget(claim, 0.0), "exact", reach, examine, "ρ" if by_rho else "ε")


LAPLACE, GAUSSIAN, CHOICE = Laplace(1.0, 2.0), Gaussian(1.0, 3.0), Exponential(1.0, 1.0)
ROUND = AboveThreshold(1.0, 0.5, 0.5)
MANY_BELOW, MANY_ABOVE = [0.0] * 200 + [1.0], [1.0] * 200 + [0.0]


def _repeated() -> exact.Pair:
    return functools.reduce(exact.Pair.then, [exact.laplace_pair(LAPLACE)] * 3)


FEW, COINS = Subsampled(DistinctRows(3, 10), Laplace(1.0, 1.0)), Subsampled(PoissonSample(COIN // 4), Laplace(1.0, 1.0))
FLIP = FlippedRows(COIN // 8, 10)


def _flip_pair(flip: FlippedRows) -> exact.Pair:
    """Return the laws of a flip on a table where nobody says yes, and on one where one row does."""
    lie, told = flip.flip, flip.flip + (1 - 2 * flip.flip) / flip.rows
    return exact.Pair.of([lie, 1 - lie], [told, 1 - told])


PLANNED, PLANNED_SHARE = Budget(1.0, 1e-3), 0.9


def _planned() -> Evidence:
    """Compute the loss of a whole budget: planned noise of its share, and a yes-or-no answer that has the rest."""
    Δ = 50.0
    noise = PLANNED.planned(Amount.share_of(PLANNED, PLANNED_SHARE).gaussian(Δ), PLANNED_SHARE)
    assert noise is not None
    told = 1 / (1 + math.exp(-Amount.share_of(PLANNED, 1 - PLANNED_SHARE).round_epsilon()))
    answer = exact.Pair.of([told, 1 - told], [1 - told, told])
    return Evidence(exact.gaussian_pair(noise.event).then(answer).epsilon_at(PLANNED.delta))


EXACT = (
    _exact("Laplace noise", LAPLACE, lambda: exact.laplace_pair(LAPLACE), 0.999),
    _exact("Laplace noise on a fine grid", Laplace(3.0, 2.0, 2.0**-8), lambda: exact.laplace_pair(Laplace(3.0, 2.0, 2.0**-8)), 0.999),
    _exact("Gaussian noise", GAUSSIAN, lambda: exact.gaussian_pair(GAUSSIAN), 0.999),
    _exact("Gaussian noise on a fine grid", Gaussian(2.0, 3.0, 2.0**-6), lambda: exact.gaussian_pair(Gaussian(2.0, 3.0, 2.0**-6)), 0.999),
    _exact("the exponential mechanism", CHOICE, lambda: exact.exponential_pair([0.0, -30.0], [-1.0, -29.0], CHOICE), 0.999),
    _exact("three Laplace releases", Repeated(LAPLACE, 3), _repeated, 0.999),
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
    Case(
        "Gaussian noise on a secret sample", Budget(SAMPLED.epsilon, SAMPLED.delta), "exact", 0.6,
        lambda share, workers: poisson_sample(Noise()),
    ),
    Case("planned noise and an answer", PLANNED, "exact", 0.9, lambda share, workers: _planned()),
    Case("values told at a threshold", TOLD, "exact", 0.7, lambda share, workers: told_values()),
)  # fmt: skip


# Runs

Run = Callable[[Any, Noise], Any]


def _sampled(
    name: str,
    claim: Budget,
    run: Run,
    tables: tuple[Any, Any],
    runs: int,
    reach: float,
    *,
    kind: sampled.Kind = "number",
) -> Case:
    """Return a case for runs of a mechanism."""

    def make(number: int) -> sampled.Mechanism:
        noise = Noise()  # each process and block has its own noise
        return lambda table: run(table, noise)

    def examine(share: float, workers: int) -> Evidence:
        found = sampled.distinguish(
            sampled.PerProcess(make), *tables, runs=max(int(share * runs), 2 * sampled.BLOCKS), delta=claim.delta,
            confidence=CONFIDENCE, kind=kind, workers=workers,
        )  # fmt: skip
        return Evidence(found.epsilon, CONFIDENCE, runs=found.runs)

    return Case(name, claim, "runs", reach, examine)


def _added(event: Laplace | Gaussian, budget: Budget) -> Run:
    return lambda value, noise: noise.add(float(value), Accountant(budget).charge(event))


def _chosen(scores: list[float], noise: Noise) -> int:
    return noise.choose(np.array(scores), Accountant(Budget(1.0, 0.0)).charge(Exponential(1.0, 1.0)))


NOISY = Budget(1.0, 0.05)
GAUSS = Gaussian(1.0, 1 / math.sqrt(2 * NOISY.total), 2.0**-10)


def _guarded(values: list[float], noise: Noise, *, gap: bool = False) -> float:
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
PAIR = (Histogram(ONE, np.array([10, 0])), Histogram(ONE, np.array([9, 1])))
TWO_ROWS = (Histogram(ONE, np.array([2, 0])), Histogram(ONE, np.array([1, 1])))
PURE, APPROXIMATE = Budget(4.0, 0.0), Budget(3.0, 0.05)
COMING = dataclasses.replace(APPROXIMATE, neighbours="add-remove")


def run_pmw(data: Histogram, noise: Noise, budget: Budget = PURE) -> tuple[Any, ...]:
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


def run_mwem(data: Histogram, noise: Noise, budget: Budget = PURE) -> tuple[Any, ...]:
    """Run MWEM for two rounds and return its choices and measurements."""
    choice, measurement = Exponential(1.0, budget.epsilon / 8), Laplace(1.0, 8 / (3 * budget.epsilon))
    config = mwem.MWEMConfig(10.0, 0.05, 0.1, "hoeffding", 2, choice, measurement)
    released = mwem.release(config, [HAS_X, WEIGHTED], data, Accountant(budget), noise)
    return tuple(part for query, rows in released.measurements for part in (str(query.is_count), rows))


def run_small_db(data: Histogram, noise: Noise, budget: Budget = PURE) -> tuple[int, ...]:
    """Run SmallDB with one row and return its counts."""
    released = small_db.release([HAS_X], data, Accountant(budget), noise, size=1)
    return tuple(int(k) for k in released.counts)


# Canaries

ONE_RUN = Budget(4.0, 1e-5)
CANARIES = 4000


def _one_run(budget: Budget) -> Case:
    """Return a case for one session with canaries."""

    def examine(share: float, workers: int) -> Evidence:
        scores = session_cases.canary_scores(budget)
        found = one_run(scores, CANARIES, guesses=CANARIES // 4, delta=budget.delta, confidence=0.999)
        return Evidence(found.epsilon, found.confidence, runs=1)

    name = f"a session with {CANARIES} canaries" + (", pure" if budget.pure else "")
    return Case(name, budget, "one run", 0.65 if budget.pure else 0.15, examine)


def _erm() -> Iterator[Case]:
    """Yield the cases of every private solver, for both kinds of neighbours."""
    for name, case in (erm_cases.CASES | erm_cases.LONGER).items():
        for neighbours, reach in zip(("replace", "add-remove"), case.reach, strict=True):
            claim = dataclasses.replace(case.claim(erm_cases.LONG), neighbours=neighbours)  # type: ignore[arg-type]
            yield _sampled(
                f"ERM: {name}", claim, functools.partial(_solved, case, claim), case.tables(neighbours),
                case.long, 0.5 * reach,
            )  # fmt: skip


def _solved(case: erm_cases.Case, claim: Budget, table: erm_cases.Rows, noise: Noise) -> float:
    return case.run(table, claim)


def _opened(
    name: str,
    budget: Budget,
    pair: session_cases.Pair,
    runs: int,
    reach: float,
    ask: session_cases.Ask = lambda session, within: within,
    **options: Any,
) -> Case:
    """Return a case for runs of a whole session."""
    return _sampled(name, budget, session_cases.opened(budget, pair, ask, **options), pair, runs, reach)


RUNS = (
    _sampled("drawn Laplace noise", Budget(1.0, 0.0), _added(Laplace(1.0, 1.0), Budget(1.0, 0.0)), (0, 1), 20_000, 0.7),
    _sampled("drawn Gaussian noise", NOISY, _added(GAUSS, NOISY), (0, 1), 20_000, 0.3),
    _sampled("drawn choices", Budget(1.0, 0.0), _chosen, ([0.0, -6.0], [-1.0, -5.0]), 20_000, 0.4),
    _sampled(
        "sparse vector, one round", Budget(2.0, 0.0), _guarded, ([0.0] * 8 + [1.0], [1.0] * 8 + [0.0]), 60_000, 0.5,
    ),
    _sampled(
        "sparse vector with its gap", Budget(2.0, 0.0), functools.partial(_guarded, gap=True),
        ([0.0] * 8 + [1.0], [1.0] * 8 + [0.0]), 20_000, 0.45,
    ),
    _sampled("a statistic of 2 of 4 rows", PURE, row_cases.sampled_statistic, row_cases.FEW_ROWS, 4000, 0.1),
    _sampled(
        "a statistic of 2 of 4 rows, with replacement", PURE,
        functools.partial(row_cases.sampled_statistic, replace=True), row_cases.FEW_ROWS, 4000, 0.1,
    ),
    _sampled(
        "a sampling counting query", Budget(row_cases.ONE_FLIP.event().epsilon, 0.0), row_cases.flipped,
        row_cases.FEW_ROWS, 10_000, 0.3,
    ),
    _sampled("PMW", PURE, run_pmw, PAIR, 6000, 0.33, kind="sequence"),
    _sampled("MWEM", PURE, run_mwem, PAIR, 6000, 0.42, kind="sequence"),
    _sampled("SmallDB", PURE, run_small_db, TWO_ROWS, 10_000, 0.6, kind="category"),
    _sampled("a reusable holdout", PURE, row_cases.held_out, (row_cases.RIGHT, row_cases.WRONG), 4000, 0.1, kind="sequence"),
    *(
        _sampled(
            f"convex PMW, {name}", convex_cases.CLAIM, functools.partial(convex_cases.online, name), family.tables, 6000, 0.3,
        )
        for name, family in convex_cases.FAMILIES.items()
    ),
    _sampled(
        "convex PMW, offline", convex_cases.CLAIM, convex_cases.offline,
        convex_cases.FAMILIES["noisy descent"].tables, 6000, 0.3,
    ),
    _opened("a session", APPROXIMATE, REPLACED, 6000, 0.28, reserve=0.0, guard=0.0),
    _opened("a session, rows that come and go", COMING, session_cases.REMOVED, 6000, 0.26, reserve=0.0, guard=0.0),
    _opened("a session with within, pure", PURE, REPLACED, 6000, 0.6, spending(count(x=0)), reserve=0.6, guard=0.0),
    _opened("a session with within", APPROXIMATE, REPLACED, 6000, 0.28, spending(count(x=0)), reserve=0.95, guard=0.0),
    _opened(
        "a session with a guard", APPROXIMATE, session_cases.GUARDED, 6000, 0.22, session_cases.ask_the_guard,
        **session_cases.GUARD,
    ),
    _opened(
        "a session with a convex question within", convex_cases.CLAIM, session_cases.CORRELATED, 6000, 0.25,
        spending(session_cases.QUESTION), **session_cases.KNOWN,
    ),
    _sampled("a count over time, pure", PURE, session_cases.over_time(PURE, REPLACED), REPLACED, 6000, 0.5),
    _sampled("a count over time", APPROXIMATE, session_cases.over_time(APPROXIMATE, REPLACED), REPLACED, 6000, 0.28),
    _sampled("a certificate", PURE, row_cases.certificate(PURE), row_cases.CERTIFIED, 1500, 0.2),
    _sampled("a certificate, δ", APPROXIMATE, row_cases.certificate(APPROXIMATE), row_cases.CERTIFIED, 1500, 0.1),
    _sampled("a certificate of means", PURE, row_cases.certificate_of_means(PURE), row_cases.OF_MEANS, 1500, 0.15),
    _sampled("a certificate of losses", PURE, row_cases.certificate_of_losses(PURE), session_cases.CORRELATED, 600, 0.3),
    _sampled("a release", APPROXIMATE, session_cases.released(APPROXIMATE, REPLACED), REPLACED, 6000, 0.33),
    _one_run(PURE),
    _one_run(ONE_RUN),
)  # fmt: skip

CASES: tuple[Case, ...] = (*EXACT, *RUNS, *_erm())
