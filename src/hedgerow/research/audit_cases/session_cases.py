"""Whole sessions on worst neighbours, with a distinguisher that spends the whole budget.

Neighbours. One row among few changes the only attribute, so that whatever is measured moves by its sensitivity.

Distinguisher. It knows both tables and reads the whole ledger. After the questions of its case it asks for the tightest
bar that is still affordable, until nothing is left, because budget that is not spent reveals nothing.

Statistic. The log-likelihood ratio of all noisy numbers, from their known laws. Choices and the guard's bits are left
out.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import losses
from hedgerow._types import Array
from hedgerow.convex.minimize import minimize
from hedgerow.convex.sets import L2Ball
from hedgerow.data import HistogramSource
from hedgerow.engine.over_time import WHY, BlockSource, Series
from hedgerow.engine.practical.fit.residuals import coordinates
from hedgerow.engine.practical.measure.purchases import NUMBER
from hedgerow.errors import BudgetExceeded, NotPrivateWarning
from hedgerow.opening import open as open_session
from hedgerow.opening import release
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Accountant, Entry
from hedgerow.privacy.noise import Noise
from hedgerow.query.counts import Query, count, marginal
from hedgerow.query.linear import Linear, as_linear
from hedgerow.session import Session
from hedgerow.universe.universe import Universe

Pair = tuple[HistogramSource, HistogramSource]
Ask = Callable[[Session, float], float]
"""A function that asks a session questions, the last with a bar of at least the given size. It returns the bar used."""

TIGHTEST, LOOSEST = 1e-5, 1.0
COARSE = 1.2  # factor by which a bar is widened while its price exceeds the budget

ONE = Universe.from_sizes({"x": 2})
REPLACED: Pair = HistogramSource(ONE, np.array([1000, 0])), HistogramSource(ONE, np.array([999, 1]))
REMOVED: Pair = HistogramSource(ONE, np.array([1000, 0])), HistogramSource(ONE, np.array([999, 0]))


def log_ratio(entries: Iterable[Entry], pair: Pair) -> float:
    """Return the log-likelihood ratio of all noisy numbers, the first table against the second."""
    ratio = 0.0
    for entry in entries:
        drawn = (part for event in entry.events for part in event.draws)
        for event, released in zip(
            drawn, entry.released, strict=False
        ):  # not strict, because a guard's bits are not kept
            if isinstance(event, Laplace | Gaussian):
                z = np.asarray(released, dtype=float)
                first, second = (_noisy_value(entry, event, z.shape, table) for table in pair)
                ratio += _ratio(event, z, first, second)
    return ratio


def _ratio(event: Laplace | Gaussian, z: Array, first: Array, second: Array) -> float:
    if isinstance(event, Laplace):
        return float((np.abs(z - second) - np.abs(z - first)).sum()) / event.scale
    return float(((z - second) ** 2 - (z - first) ** 2).sum()) / (2 * event.sigma**2)


def _noisy_value(entry: Entry, event: Laplace | Gaussian, shape: tuple[int, ...], data: HistogramSource) -> Array:
    """Return the value to which the noise was added."""
    if entry.why == WHY:  # a sum over several blocks, of which the others are known
        query, others = entry.about["query"], MORE[: int(entry.about["last"])]
        return np.array(sum(query.dot(each.marginal(query.attributes)) for each in (data, *others)))
    if entry.why == NUMBER:
        return np.array(SCALE * _correlation(data))
    if (query := as_linear(entry.about.get("query"))) is not None:
        return np.array(query.dot(data.marginal(query.attributes)))
    if not shape:
        return np.array(float(data.rows))
    if "sets" in entry.about:  # the residuals of an overview, end to end
        parts = zip(entry.about["sets"], entry.about["times"], strict=True)
        return np.concatenate([coordinates(data.marginal(tuple(s)), event.grid, times=k).ravel() for s, k in parts])
    counts = data.marginal(tuple(entry.about["attributes"]))
    return coordinates(counts, event.grid) if "residual" in entry.why else counts.astype(float)


def spend_all(question: Query) -> Ask:
    """Return a function that asks for a bar the budget cannot pay, and for wider ones until it can.

    A refusal costs nothing.
    """

    def ask(session: Session, within: float) -> float:
        """Ask with the smallest ``within`` that can be paid for, and return it."""
        while within < LOOSEST and not _may_be_paid(session, question, COARSE * within):
            within *= COARSE
        while within < LOOSEST:
            with contextlib.suppress(BudgetExceeded):
                session.ask(question, within=within)
                break
            within *= 1.02
        return within

    return ask


def _may_be_paid(session: Session, question: Query, within: float) -> bool:
    """Return True if the price, which is public, fits the budget. Asking may cost more."""
    try:
        return session.price(question, within=min(within, LOOSEST)) <= session.remaining
    except BudgetExceeded:
        return False


def session_run(
    budget: Budget, pair: Pair, ask: Ask = lambda session, within: within, **options: Any
) -> Callable[[HistogramSource, Noise], float]:
    """Return a run that opens a session and asks its questions.

    Prices are public, so one rehearsal session beforehand finds the first bar to ask for.
    """

    @functools.cache
    def bar() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotPrivateWarning)
            rehearsal = open_session(pair[0], universe=pair[0].universe, budget=budget, **{"seed": 0, **options})
        return 0.98 * ask(rehearsal, TIGHTEST)

    def run(data: HistogramSource, noise: Noise) -> float:
        session = open_session(data, universe=data.universe, budget=budget, **options)
        ask(session, bar())
        first = next(iter(session.blocks.values()))  # the rows of the other blocks are known
        return log_ratio(first.ledger.entries(), pair)

    return run


def release_run(
    budget: Budget, pair: Pair, seed: int | None = None, **options: Any
) -> Callable[[HistogramSource, Noise], float]:
    """Return a run that makes an offline release and scores it."""

    def run(data: HistogramSource, noise: Noise) -> float:
        return log_ratio(release(data, universe=data.universe, budget=budget, seed=seed, **options).log, pair)

    return run


# Blocks: three known blocks follow the first, and all sums that include the first are counted over time

MORE = tuple(HistogramSource(ONE, np.array([300 + i, 200])) for i in range(3))
GROWING: dict[str, Any] = {"reserve": 0.9, "guard": 0.0}


def ask_over_time(session: Session, within: float) -> float:
    """Ask for counts over time adaptively: the next block's budget depends on the previous answer."""
    series = count(x=0).over_time(span=4, share=0.89)
    for more in MORE:
        said = session.ask(series)
        budget = (
            session.budget if said.value[-1, 1] > 1000 else Budget(2 * session.budget.epsilon, session.budget.delta)
        )
        session.append(more, budget=budget)
    session.ask(series)
    return within


def over_time(budget: Budget, pair: Pair) -> Callable[[HistogramSource, Noise], float]:
    """Return a run of the counting tree alone, with the whole budget, as blocks arrive.

    No other question is charged.
    """
    series, known = count(x=0).over_time(span=4, share=1.0), Linear.product(ONE, {"x": np.array([True, False])})

    def run(data: HistogramSource, noise: Noise) -> float:
        columns = [BlockSource(each, Accountant(budget)) for each in (data, *MORE)]
        for blocks in range(len(columns)):
            Series(series, known, columns[: blocks + 1], noise).draw_nodes()
        return log_ratio(columns[0].ledger.entries(), pair)

    return run


# A guard: the workload names one attribute, and the guard finds what the hypothesis does not know about two

TWO = Universe.from_sizes({"x": 2, "z": 3})
GUARDED: Pair = (
    HistogramSource(TWO, np.array([[1000, 0, 0], [0, 1000, 0]])),
    HistogramSource(TWO, np.array([[999, 0, 0], [1, 1000, 0]])),
)
GUARD: dict[str, Any] = {"workload": [count(x=0)], "guard": 0.2, "reserve": 0.5, "queries": 4, "beta": 0.5}


def ask_the_guard(session: Session, within: float) -> float:
    """Ask the guard about both attributes, then spend the rest."""
    for z in range(3):
        session.ask(count(x=0, z=z))
    return spend_all(count(x=0))(session, within)


# A convex question: from each attribute alone θ = −R seems best, from both together θ = R

PLANE = Universe.from_sizes({"y": 2, "a": 3})
CORRELATED: Pair = (
    HistogramSource(PLANE, np.array([[400, 0, 200], [0, 0, 400]])),
    HistogramSource(PLANE, np.array([[400, 0, 201], [0, 0, 399]])),
)
WIDTH, RADIUS = 0.25, 0.25
SCALE = 2 * WIDTH * RADIUS  # difference of a row's losses at the two ends
QUESTION = minimize(losses.Huber(target="y", features=("a",), width=WIDTH, intercept=False), over=L2Ball(RADIUS))
KNOWN: dict[str, Any] = {"workload": [count(y=0), count(a=0)], "guard": 0.0, "reserve": 0.9}


def _correlation(data: HistogramSource) -> float:
    """Return Σ y·a over the rows."""
    return float(np.array([-1, 1]) @ data.marginal(("y", "a")) @ np.array([-1, 0, 1]))


# Canaries: pairs of cells of one attribute, with one row per pair in the cell that a coin decides


def canary_scores(budget: Budget) -> Callable[[NDArray[np.bool_]], ArrayLike]:
    """Return a run of one session whose reserve buys the table of all cells.

    Its scores are the log-likelihood ratios of each pair of numbers in that table.
    """

    def scores(coins: NDArray[np.bool_]) -> ArrayLike:
        """Return a score for each canary, from one session on the table that the coins choose."""
        crowd = Universe.from_sizes({"cell": 2 * coins.size})
        counts = np.zeros(2 * coins.size, np.int64)
        counts[2 * np.arange(coins.size) + coins] = 1
        session = open_session(HistogramSource(crowd, counts), universe=crowd, budget=budget, reserve=0.95, guard=0.0)
        spend_all(marginal("cell"))(session, 1e-4)
        (event,), (table,) = session.log[-1].events, session.log[-1].released
        ratios = np.abs(table) - np.abs(table - 1) if isinstance(event, Laplace) else np.asarray(table)
        return np.asarray(ratios[1::2] - ratios[::2])

    return scores
