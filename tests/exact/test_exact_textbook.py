"""The textbook's mechanisms for counts, held to their sensitivities (``neighbouring``)."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from neighbouring import BUDGETS, Case, hold, reversed_table, tables

from hedgerow.data import HistogramSource
from hedgerow.engine.matrix import plan_matrix, run_matrix
from hedgerow.engine.release import run_mwem
from hedgerow.engine.theory import build_theory_engine
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Exponential
from hedgerow.query.counts import bound, count, marginal
from hedgerow.query.linear import Linear
from hedgerow.session import Session
from hedgerow.textbook import mwem, pmw, small_db, sparse_vector
from hedgerow.universe.universe import Universe

U = Universe.from_sizes({"a": 4, "b": 3, "c": 2})
BITS = Universe.from_sizes({"x": 2, "y": 2})
GUARD, MEASURED = "textbook.sparse_vector:_ready", "textbook.sparse_vector:step"
REPLACED = {kind: budget for kind, budget in BUDGETS.items() if budget.neighbours == "replace"}


def uniform(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).random(shape)


def skewed(universe: Universe, rows: int) -> np.ndarray:
    """Most rows in one cell, of which there are others beside."""
    counts = np.arange(universe.size) % 3
    counts[universe.size // 2] += rows - counts.sum()
    return counts.reshape(universe.shape)


def often() -> Iterator[bool]:
    return itertools.cycle([False, True, True])


def questions(universe: Universe = U) -> list[Linear]:
    """Counts, and queries of any weights, one of which is 0 or 1 everywhere but in one cell."""
    names = universe.names[:2]
    sizes = universe.sizes(names)
    odd = np.indices(sizes).sum(axis=0) % 2 + 0.0
    nearly = odd.copy()
    nearly.reshape(-1)[1] = 0.3
    found = [Linear.from_table(universe, names, t) for t in (odd, 1 - odd, nearly, uniform(1, *sizes))]
    return [*found, Linear.from_table(universe, names[:1], np.arange(sizes[0]) / (sizes[0] - 1))]


# The sparse vector, on values that are counts of rows


def compared(config: Callable[[Budget], sparse_vector.SparseVector], budget: Budget) -> Case:
    def run(counts: np.ndarray, ledger: Any, noise: Any) -> Any:
        progress, told = sparse_vector.Progress(), []
        for weights in (
            np.arange(U.size) % 2,
            uniform(2, U.size),
            np.arange(U.size) % 3 == 0,
            -1.0 * (uniform(3, U.size) < 0.5),
        ):
            value = float(np.vdot(weights, counts.reshape(-1)))
            outcome, progress = sparse_vector.step(config(budget), progress, value, ledger, noise)
            assert (outcome.gap is not None) == (config(budget).gap and outcome.above)
            told.append(outcome)
        return told

    sites = {GUARD} | ({MEASURED} if config(budget).measurement else set())
    reach = {"sparse vector: measurement": 0.9} if config(budget).measurement else {}
    return Case(
        run, budget, tables(skewed(U, 60), budget), reversed_table(skewed(U, 60)), frozenset(sites), reach, guard=often
    )


def _plain(budget: Budget) -> sparse_vector.SparseVector:
    return sparse_vector.threshold_game_config(Amount.share_of(budget), threshold=20.0, rounds=3, queries=4, beta=0.1)[
        0
    ]


def _numeric(budget: Budget, gap: bool = False) -> sparse_vector.SparseVector:
    amount = Amount.share_of(budget, 0.1)
    guard = sparse_vector.guard_round(amount.round_epsilon(), sensitivity=budget.linear())
    return sparse_vector.SparseVector(20.0, guard, 3, amount.noise(1.0, 1.0, 0.25), gap, 0.5)


# Private multiplicative weights


def online(budget: Budget, rows: int = 10**7) -> Case:
    config = pmw.configure(budget, cells=U.size, scale=rows, queries=100, beta=0.05, alpha=0.05)

    def run(counts: np.ndarray, ledger: Any, noise: Any) -> Any:
        mechanism = pmw.OnlinePMW(config, HistogramSource(U, counts), ledger, noise)
        answers = [mechanism.ask(query) for query in questions() * 2]
        return answers, mechanism.hypothesis.marginal(U.names), mechanism.updates

    sites = frozenset({GUARD, "textbook.pmw:OnlinePMW.ask"})
    return Case(
        run,
        budget,
        tables(skewed(U, rows), budget),
        reversed_table(skewed(U, rows)),
        sites,
        {pmw.MEASURED: 0.9},
        guard=often,
    )


def offline(budget: Budget) -> Case:
    rows = 10**7
    config = mwem.configure(budget, cells=U.size, scale=rows, queries=5, beta=0.05, alpha=0.05)

    def run(counts: np.ndarray, ledger: Any, noise: Any) -> Any:
        found = mwem.release(config, questions(), HistogramSource(U, counts), ledger, noise)
        return found.hypothesis.marginal(U.names), found.measurements, found.updates, found.stopped

    def in_turn(site: str, event: Any, asked: Any, drawn: Any) -> Any:
        """Every query is chosen at some time."""
        return next(order) % asked.size if isinstance(event, Exponential) else drawn

    order = itertools.count()
    sites, why = frozenset({"textbook.mwem:_run_locked"}), {"mwem: choice": 0.9, "mwem: measurement": 0.9}
    return Case(
        run, budget, tables(skewed(U, rows), budget), reversed_table(skewed(U, rows)), sites, why, scripted=in_turn
    )


def smallest(budget: Budget) -> Case:
    def run(counts: np.ndarray, ledger: Any, noise: Any) -> Any:
        return small_db.release(questions(BITS), HistogramSource(BITS, counts), ledger, noise, size=3)

    sites, why = frozenset({"textbook.small_db:release"}), {"small_db: choice": 0.9}
    return Case(run, budget, tables(skewed(BITS, 40), budget), reversed_table(skewed(BITS, 40)), sites, why)


# The engines that are made of them


def theory(budget: Budget) -> Case:
    """A case of the theory profile. A private n is estimated first."""
    asked = [count(a=0), marginal("b"), count(a=1, c=1)]

    def run(counts: np.ndarray, ledger: Any, noise: Any) -> Any:
        data = HistogramSource(U, counts)
        engine = build_theory_engine(
            data, ledger, noise, convex=[], queries=50, beta=0.05, alpha=None, trusted_losses=()
        )
        session = Session(data, ledger, noise, engine)
        return [session.ask(q) for q in asked], session.hypothesis.marginal(U.names), session.rows, session.spent

    sites, why = {GUARD, "textbook.pmw:OnlinePMW.ask"}, {pmw.MEASURED: 0.9}
    if budget.neighbours == "add-remove":
        sites, why = sites | {"engine.theory:build_theory_engine"}, why | {"theory: number of rows": 0.9}
    return Case(
        run,
        budget,
        tables(skewed(U, 10**8), budget),
        reversed_table(skewed(U, 10**8)),
        frozenset(sites),
        why,
        guard=often,
    )


def offline_engine(budget: Budget) -> Case:
    asked = [count(a=0), marginal("b", "c")]

    def run(counts: np.ndarray, ledger: Any, noise: Any) -> Any:
        data = HistogramSource(U, counts)
        engine = run_mwem(data, ledger, noise, workload=[bound(q, U) for q in asked], beta=0.05)
        session = Session(data, ledger, noise, engine)
        return [session.ask(q) for q in asked], session.hypothesis.marginal(U.names), session.spent

    sites, why = frozenset({"textbook.mwem:_run_locked"}), {"mwem: choice": 0.9, "mwem: measurement": 0.9}
    return Case(run, budget, tables(skewed(U, 10**6), budget, 4), reversed_table(skewed(U, 10**6)), sites, why)


def factorized(budget: Budget) -> Case:
    def run(counts: np.ndarray, ledger: Any, noise: Any) -> Any:
        plan = plan_matrix(budget, U, [("a",), ("b", "c")], [], rows=int(counts.sum()), beta=0.05)
        engine = run_matrix(HistogramSource(U, counts), ledger, noise, plan)
        session = Session(HistogramSource(U, counts), ledger, noise, engine)
        return [session.ask(q) for q in (marginal("a"), marginal("b", "c"), count(a=0, c=1))], session.spent

    sites = frozenset({"engine.matrix:run_matrix"})
    return Case(
        run,
        budget,
        tables(skewed(U, 10**4), budget),
        reversed_table(skewed(U, 10**4)),
        sites,
        {"matrix: residuals": 0.9},
    )


CASES: dict[str, Callable[[], Case]] = {
    **{f"factorization release, {k}": functools.partial(factorized, b) for k, b in REPLACED.items() if not b.pure},
    **{f"sparse vector, {k}": functools.partial(compared, _plain, b) for k, b in BUDGETS.items()},
    **{f"numeric sparse vector, {k}": functools.partial(compared, _numeric, b) for k, b in BUDGETS.items()},
    **{
        f"sparse vector with gap, {k}": functools.partial(compared, functools.partial(_numeric, gap=True), b)
        for k, b in BUDGETS.items()
    },
    **{f"pmw, {k}": functools.partial(online, b) for k, b in BUDGETS.items()},
    **{
        f"pmw of very many rows, {k}": functools.partial(online, b, 2**49 - 1) for k, b in BUDGETS.items() if not b.pure
    },
    **{f"mwem, {k}": functools.partial(offline, b) for k, b in BUDGETS.items()},
    **{f"small_db, {k}": functools.partial(smallest, b) for k, b in REPLACED.items()},
    **{f"theory engine, {k}": functools.partial(theory, b) for k, b in BUDGETS.items()},
    **{f"mwem engine, {k}": functools.partial(offline_engine, b) for k, b in REPLACED.items()},
}


@pytest.mark.parametrize("name", CASES)
def test_one_row_moves_what_is_drawn_from_by_its_sensitivity_and_nothing_else_at_all(name: str) -> None:
    hold(CASES[name]())
