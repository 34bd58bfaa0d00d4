"""Every mechanism of this package on neighbours that are as bad as could be built, with what it claims and how close an audit comes.

*exact*: the law of each event's noise, whose loss is computed. *runs*: the mechanism itself, drawing from the operating system,
by ``sampled.distinguish``. *one run*: a whole session with canaries.

``reach`` is the share of the claim that the audit must find: an audit without power is none. Where it is far below 1 the claim has
slack for these neighbours: a composition pays for more than one row can change at once, or rounds are paid for that were not needed.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import losses
from hedgerow.audit import erm_cases, exact, sampled
from hedgerow.audit.gallery import SAMPLED, Evidence, poisson_sample
from hedgerow.audit.one_run import one_run
from hedgerow.convex.minimize import minimize
from hedgerow.convex.sets import L2Ball
from hedgerow.data import Histogram
from hedgerow.errors import BudgetExceeded
from hedgerow.opening import open as open_session
from hedgerow.opening import release
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import AboveThreshold, Event, Exponential, Gaussian, Laplace, Repeated
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise
from hedgerow.questions.counts import count, marginal
from hedgerow.questions.linear import Linear
from hedgerow.questions.universe import Universe
from hedgerow.textbook import convex_offline, convex_pmw, mwem, oracles, pmw, small_db, sparse_vector

CONFIDENCE = 1 - 1e-5  # of each audit, so that fifty of them together err with probability 0.0005


@final
@dataclasses.dataclass(frozen=True)
class Case:
    """A mechanism of ours, its claim and the audit. ``examine(share, workers)`` does so with that share of its runs."""

    name: str
    claim: Budget
    auditor: Literal["exact", "runs", "one run"]
    reach: float
    examine: Callable[[float, int], Evidence]
    currency: str = "ε"


# Exact: the noise of each event


def _exact(name: str, event: Event, pair: Callable[[], exact.Pair], reach: float) -> Case:
    """The pure loss against the event's ε; of Gaussian noise, which has none, ρ against ρ. Every order and δ must hold besides."""
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
    Case(
        "Gaussian noise on a secret sample", Budget(SAMPLED.epsilon, SAMPLED.delta), "exact", 0.6,
        lambda share, workers: poisson_sample(Noise()),
    ),
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
    def make(number: int) -> sampled.Mechanism:
        noise = Noise()  # of the process and block
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
    """One round, on values that fall and one that rises: the threshold hides the many, the value's own noise the one.

    Whether it was that one, and with its gap by how much.
    """
    config = sparse_vector.SparseVector(2.0, sparse_vector.guard_round(2.0), rounds=1, gap=gap)
    ledger, progress = Accountant(Budget(2.0, 0.0)), sparse_vector.Progress()
    for place, value in enumerate(values):
        outcome, progress = sparse_vector.step(config, progress, value, ledger, noise)
        if outcome.above:
            return 1.0 + (outcome.gap or 0.0) if place == len(values) - 1 else 0.0
    return 0.0


# One row of ten is replaced

ONE = Universe.from_sizes({"x": 2})
HAS_X, WEIGHTED = Linear.from_table(ONE, ("x",), [0.0, 1.0]), Linear.from_table(ONE, ("x",), [0.25, 1.0])
FIRST, SECOND = np.array([10, 0]), np.array([9, 1])
TABLE, NEIGHBOUR = Histogram(ONE, FIRST), Histogram(ONE, SECOND)
PURE, APPROXIMATE = Budget(4.0, 0.0), Budget(3.0, 0.05)


def run_pmw(data: Histogram, noise: Noise, budget: Budget = PURE) -> tuple[Any, ...]:
    """Two rounds, so small that no theorem applies: what is at stake is privacy alone."""
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
    choice, measurement = Exponential(1.0, budget.epsilon / 8), Laplace(1.0, 8 / (3 * budget.epsilon))
    config = mwem.MWEMConfig(10.0, 0.05, 0.1, "hoeffding", 2, choice, measurement)
    released = mwem.release(config, [HAS_X, WEIGHTED], data, Accountant(budget), noise)
    return tuple(part for query, rows in released.measurements for part in (str(query.is_count), rows))


def run_small_db(data: Histogram, noise: Noise, budget: Budget = PURE) -> tuple[int, ...]:
    released = small_db.release([HAS_X], data, Accountant(budget), noise, size=1)
    return tuple(int(k) for k in released.counts)


# Sessions: all that their ledger says came out


def log_ratio(ledger: Accountant) -> float:
    """How much likelier all that was measured is on TABLE than on NEIGHBOUR: marginals by their law, residuals but for a constant."""
    ratio = 0.0
    for entry in ledger.entries():
        for event, released in zip(entry.events, entry.released, strict=True):
            z = np.ravel(released)
            if isinstance(event, Gaussian) and z.size == 1:  # (count of 0 − count of 1)/√2
                ratio += float(z[0]) * event.sensitivity / event.sigma**2
            elif isinstance(event, Gaussian):
                ratio += float(((z - SECOND) ** 2 - (z - FIRST) ** 2).sum()) / (2 * event.sigma**2)
            elif isinstance(event, Laplace):
                ratio += float((np.abs(z - SECOND) - np.abs(z - FIRST)).sum()) / event.scale
    return ratio


def transcript(ledger: Accountant) -> tuple[float, ...]:
    return tuple(
        float(z)
        for entry in ledger.entries()
        for released in entry.released
        for z in np.ravel(released)
        if not isinstance(released, str)
    )


def _session(
    budget: Budget,
    ask: Callable[[Any], object] = lambda session: None,
    said: Callable[[Accountant], Any] = log_ratio,
    **options: Any,
) -> Run:
    def run(data: Histogram, noise: Noise) -> Any:
        ledger = Accountant(budget)
        session = open_session(data, universe=data.universe, budget=budget, ledger=ledger, **options)
        ask(session)
        return said(ledger)

    return run


def _released(method: Literal["adaptive", "mwem"]) -> Run:
    def run(data: Histogram, noise: Noise) -> tuple[float, ...]:
        session = release(data, universe=ONE, budget=APPROXIMATE, method=method)
        return tuple(float(z) for entry in session.log for r in entry.released for z in np.ravel(r))

    return run


def _guard_transcript(data: Histogram, noise: Noise) -> tuple[Any, ...]:
    """Questions until the guard says "wrong" often enough: where it did, and what was measured then."""
    ledger = Accountant(APPROXIMATE)
    session = open_session(
        data, universe=ONE, budget=APPROXIMATE, ledger=ledger, guard=0.45, reserve=0.0, queries=2, beta=0.9
    )
    sources = []
    for value in (0, 1):
        try:
            sources.append(str(session.ask(count(x=value)).source))
        except BudgetExceeded:
            sources.append("refused")
    return (*sources, *transcript(ledger))


# Convex questions: rows whose slopes are as steep as the loss allows

PLANE = Universe.from_sizes({"y": 2, "a": 2})
BALL, ROWS = L2Ball(1.0), 4
STEEP = Histogram(PLANE, np.array([[0, ROWS // 2], [0, ROWS // 2]]))
TURNED = Histogram(PLANE, np.array([[0, ROWS // 2 + 1], [0, ROWS // 2 - 1]]))
CONVEX = Budget(4.0, 0.05)
LIPSCHITZ = math.sqrt(2)  # a feature of ±1 and the intercept

ORACLES: dict[str, tuple[float, oracles.Oracle, losses.Loss]] = {
    "noisy descent": (
        2 * LIPSCHITZ, oracles.NoisyGradientDescent(LIPSCHITZ, 2.0, 2), losses.Huber(target="y", features=("a",)),
    ),
    "regularised output perturbation": (
        2 * LIPSCHITZ, oracles.RegularisedOutputPerturbation(LIPSCHITZ, 1.0, 2, 2 * LIPSCHITZ),
        losses.Huber(target="y", features=("a",)),
    ),
    "output perturbation": (
        10.5, oracles.OutputPerturbation(5.25, 0.5, 2, 10.5), losses.Squared(target="y", features=("a",), ridge=0.5),
    ),
}  # fmt: skip


@functools.cache
def _convex_config(name: str) -> convex_pmw.ConvexPMWConfig:
    """One round, whose guard has a tenth of the budget and whose oracle the rest."""
    S, oracle, _ = ORACLES[name]
    cost = 0.9 * (1 - 1e-9) * CONVEX.total
    plan = oracle.plan(CONVEX, cost, ROWS, 0.1)
    assert plan is not None
    sensitivity = CONVEX.bounded(S) + 2 * convex_pmw.NUMERICAL * S
    epsilon = 2 * math.sqrt(0.1 * (1 - 1e-9) * CONVEX.total / 2)
    guard = sparse_vector.guard_round(epsilon * 0.9, sensitivity=sensitivity)
    return convex_pmw.ConvexPMWConfig(ROWS, 4, 4, 1e-6 * S, 0.1, "hoeffding", S, 1, guard, oracle, plan)


def _convex(name: str) -> Run:
    _, _, loss = ORACLES[name]
    risk = loss.on(PLANE)

    def run(data: Histogram, noise: Noise) -> float:
        overheard = erm_cases.Overheard(noise)
        mechanism = convex_pmw.OnlineConvexPMW(_convex_config(name), data, Accountant(CONVEX), overheard)
        mechanism.ask(risk, BALL)
        return _along_the_row(overheard)

    return run


def _along_the_row(overheard: erm_cases.Overheard) -> float:
    """All that an oracle drew, along the features of the row that is turned: more than it tells. Nothing if it was not asked."""
    return sum(float(np.sum(z)) for z in overheard.heard if np.size(z) == 2)


def _convex_offline(data: Histogram, noise: Noise) -> float:
    online = _convex_config("noisy descent")
    sensitivity, left = online.guard.sensitivity, 0.1 * CONVEX.total
    choice = Exponential(sensitivity, math.sqrt(8 * 0.4 * left))
    measurement = Gaussian(sensitivity, sensitivity / math.sqrt(2 * 0.4 * left), online.grid)
    config = convex_offline.OfflineConfig(online, choice, measurement)
    overheard = erm_cases.Overheard(noise)
    risk = ORACLES["noisy descent"][2].on(PLANE)
    convex_offline.release(config, [(risk, BALL)], data, Accountant(CONVEX), overheard)
    return _along_the_row(overheard)


def _convex_within(session: Any) -> object:
    question = minimize(losses.Huber(target="y", features=("a",)), over=BALL)
    return session.ask(question, within=1.0)


# Canaries: pairs of cells of one attribute, one row each, which of the two by a coin

CANARIES = 1000
CROWD = Universe.from_sizes({"cell": 2 * CANARIES})
ONE_RUN = Budget(4.0, 1e-5)


def session_scores(coins: NDArray[np.bool_]) -> ArrayLike:
    """One session on a table of canaries: the difference of the two cells' answers."""
    counts = np.zeros(2 * CANARIES, np.int64)
    counts[2 * np.arange(CANARIES) + coins] = 1
    session = open_session(Histogram(CROWD, counts), universe=CROWD, budget=ONE_RUN, reserve=0.0, guard=0.0)
    answers = np.asarray(session.ask(marginal("cell")).value)
    return np.asarray(answers[1::2] - answers[::2])


def _one_run(share: float, workers: int) -> Evidence:
    found = one_run(session_scores, CANARIES, guesses=CANARIES // 5, delta=ONE_RUN.delta, confidence=0.999)
    return Evidence(found.epsilon, found.confidence, runs=1)


def _erm() -> Iterator[Case]:
    for name, case in (erm_cases.CASES | erm_cases.LONGER).items():
        for neighbours, reach in zip(("replace", "add-remove"), case.reach, strict=True):
            claim = dataclasses.replace(case.claim(erm_cases.LONG), neighbours=neighbours)  # type: ignore[arg-type]
            slow = case.score is erm_cases.overheard_lasso
            if slow and neighbours == "add-remove":
                continue
            yield _sampled(
                f"ERM: {name}", claim, functools.partial(_solved, case, claim), case.tables(neighbours),
                800 if slow else 5000, 0.0 if slow else 0.5 * reach,
            )  # fmt: skip


def _solved(case: erm_cases.Case, claim: Budget, table: erm_cases.Rows, noise: Noise) -> float:
    return case.run(table, claim)


PAIR = (TABLE, NEIGHBOUR)
TWO_ROWS = (Histogram(ONE, np.array([2, 0])), Histogram(ONE, np.array([1, 1])))

RUNS = (
    _sampled("drawn Laplace noise", Budget(1.0, 0.0), _added(Laplace(1.0, 1.0), Budget(1.0, 0.0)), (0, 1), 20_000, 0.7),
    _sampled("drawn Gaussian noise", NOISY, _added(GAUSS, NOISY), (0, 1), 20_000, 0.3),
    _sampled("drawn choices", Budget(1.0, 0.0), _chosen, ([0.0, -6.0], [-1.0, -5.0]), 20_000, 0.4),
    _sampled(
        "sparse vector, one round", Budget(2.0, 0.0), _guarded, ([0.0] * 8 + [1.0], [1.0] * 8 + [0.0]), 20_000, 0.3,
    ),
    _sampled(
        "sparse vector with its gap", Budget(2.0, 0.0), functools.partial(_guarded, gap=True),
        ([0.0] * 8 + [1.0], [1.0] * 8 + [0.0]), 5000, 0.05,
    ),
    _sampled("PMW", PURE, run_pmw, PAIR, 10_000, 0.25, kind="sequence"),
    _sampled("MWEM", PURE, run_mwem, PAIR, 10_000, 0.3, kind="sequence"),
    _sampled("SmallDB", PURE, run_small_db, TWO_ROWS, 10_000, 0.6, kind="category"),
    *(
        _sampled(f"convex PMW, {name}", CONVEX, _convex(name), (STEEP, TURNED), 4000, 0.0)
        for name in ORACLES
    ),
    _sampled("convex PMW, offline", CONVEX, _convex_offline, (STEEP, TURNED), 4000, 0.0),
    _sampled("a session, pure", PURE, _session(PURE, reserve=0.0, guard=0.0), PAIR, 4000, 0.1),
    _sampled("a session", APPROXIMATE, _session(APPROXIMATE, reserve=0.0, guard=0.0), PAIR, 4000, 0.2),
    _sampled(
        "a session, rows that come and go", dataclasses.replace(APPROXIMATE, neighbours="add-remove"),
        _session(dataclasses.replace(APPROXIMATE, neighbours="add-remove"), said=transcript, reserve=0.0, guard=0.0),
        (Histogram(ONE, np.array([9, 1])), Histogram(ONE, np.array([9, 0]))), 4000, 0.15, kind="vector",
    ),
    _sampled(
        "a session with within", APPROXIMATE,
        _session(APPROXIMATE, lambda session: session.ask(count(x=1), within=0.45), reserve=0.95, guard=0.0),
        PAIR, 4000, 0.1,
    ),
    _sampled("a session with a guard", APPROXIMATE, _guard_transcript, PAIR, 4000, 0.0, kind="sequence"),
    _sampled(
        "a session with a convex question within", CONVEX, _session(CONVEX, _convex_within, transcript, reserve=0.95, guard=0.0),
        (Histogram(PLANE, np.array([[0, 0], [0, 40]])), Histogram(PLANE, np.array([[0, 1], [0, 39]]))), 1500, 0.0,
        kind="sequence",
    ),
    _sampled("a release", APPROXIMATE, _released("adaptive"), PAIR, 4000, 0.15, kind="vector"),
    Case("a session with 1000 canaries", ONE_RUN, "one run", 0.04, _one_run),
)  # fmt: skip

CASES: tuple[Case, ...] = (*EXACT, *RUNS, *_erm())
