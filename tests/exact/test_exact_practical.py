"""The practical profile from its opening to its last purchase, held to its sensitivities (``neighbouring``).

Releases can be scripted: for a wrong hypothesis, a test replaces a measurement by its opposite.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from neighbouring import BUDGETS, Case, hold, reversed_table, shifted, tables

import hedgerow as hr
from hedgerow import losses
from hedgerow.data import HistogramSource
from hedgerow.engine.practical.convex.loss_certificate import certified_losses
from hedgerow.engine.practical.engine import build_practical_engine
from hedgerow.engine.practical.measure import prefit as selection
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Exponential
from hedgerow.query.counts import bound
from hedgerow.session import Session

U = hr.Universe.from_sizes({"y": 2, "a": 3, "b": 3})
WIDE = hr.Universe.from_sizes({"y": 2, "a": 9, "b": 9})
RANGED = hr.Universe.from_sizes({"y": 2, "a": 5, "b": 4})  # whose ranges are asked about
BROAD = hr.Universe.from_sizes({"y": 2, "a": 26, "b": 3})
PRACTICAL, GUARD = "engine.practical", "textbook.sparse_vector:_ready"
MEASURE, RESIDUAL, OVERVIEW, CHOOSE = (
    f"{PRACTICAL}.measure.prefit:Prefit.{name}" for name in ("_measure", "_residual", "_joint_residuals", "_choose")
)
TABLE, QUERY = (f"{PRACTICAL}.measure.purchases:Purchases.{name}" for name in ("table", "query"))
CERTIFY = f"{PRACTICAL}.certificate.certificate_purchase:buy_certificate"
LOSSES = f"{PRACTICAL}.convex.loss_certificate:certified_losses"
NUMBER, ORACLE = (f"{PRACTICAL}.convex.convex_answers:Convex.{name}" for name in ("_measure_excess", "_oracle"))
SINGLE = [hr.marginal(name) for name in U.names]


def opening(budget: Budget) -> set[str]:
    """Return the places where the opening draws for a workload of single attributes: an overview, and n if it is private."""
    return {MEASURE} if budget.pure else {OVERVIEW, RESIDUAL} if budget.neighbours == "add-remove" else {OVERVIEW}


def people(rows: int, universe: hr.Universe = U) -> np.ndarray:
    """Most of them have all values at their largest; all cells are taken."""
    counts = (np.arange(universe.size) * 7) % 5 + 1
    counts[-1] += rows - counts.sum()
    return counts.reshape(universe.shape)


def opened(counts: np.ndarray, ledger: Any, noise: Any, **options: Any) -> Session:
    data = HistogramSource(next(u for u in (U, WIDE, RANGED, BROAD) if counts.shape == u.shape), counts)
    given = {"workload": None, "queries": 100, "beta": 0.05, "guard": 0.0, "reserve": 0.0, "certify": False, **options}
    return Session(data, ledger, noise, build_practical_engine(data, ledger, noise, **given))


def told(session: Session, answers: Any = ()) -> Any:
    """All that anybody hears."""
    engine = session._engine
    free = [session.ask(q) for q in (hr.count(y=1, a={0, 2}), hr.marginal("a", "b"), hr.mean("y"))]
    measured = [(m.attributes, m.values, m.event) for m in engine.measurements]
    everything = session.hypothesis.marginal(session.universe.names)
    return answers, free, measured, everything, session.rows, session.spent, session.spent_epsilon, session.log


def opposite(site: str, event: Any, value: Any, drawn: Any) -> Any:
    """The table of y alone, back to front or, where it is centred, with its sign changed; all else as it is.

    Among the residuals of an overview of single attributes it is the last.
    """
    if site == OVERVIEW:
        return np.concatenate([drawn[:-1], -drawn[-1:]])
    if isinstance(event, Exponential) or np.shape(value) != ((2,) if event.grid == 1 else (1,)):
        return drawn
    return np.flip(drawn).copy() if event.grid == 1 else -drawn


def prefit(
    budget: Budget, everything: bool = False, rows: int = 3000, fits: bool = True, universe: hr.Universe = U
) -> Case:
    """Every option of the opening: an overview or one-way tables, choices and rounds, or the whole workload at once.

    ``fits``: whether one model may hold all pairs.
    """

    def run(counts: np.ndarray, ledger: Any, noise: Any) -> Any:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(selection, "OVERVIEW_CELLS", selection.OVERVIEW_CELLS if fits else 0)
            session = opened(counts, ledger, noise, everything=everything)
        assert any(m.ranged for m in session._engine.measurements) == (universe is RANGED and not budget.pure)
        return told(session)

    direct, overview = everything and rows > 3000, fits and not budget.pure
    counted = not overview or not direct or budget.neighbours == "add-remove"
    sites = (
        ({MEASURE} if counted else set()) | (set() if direct else {CHOOSE}) | (opening(budget) if overview else set())
    )
    chosen = overview and not direct  # the residual of a triple, of which few rows move all coordinates
    table, reach = (
        people(rows, universe),
        {"prefit: residual": 0.7} if chosen and budget.neighbours == "replace" else {},
    )
    found = frozenset(sites | ({RESIDUAL} if chosen else set()))
    return Case(run, budget, tables(table, budget, 6), reversed_table(table), found, reach)


def merged(budget: Budget, rows: int = 3000) -> Case:
    """An attribute of many values, counted before all else, of which the rare are merged."""

    def run(counts: np.ndarray, ledger: Any, noise: Any) -> Any:
        session = opened(counts, ledger, noise, workload=SINGLE)
        assert session._engine.knowledge.learned.merging.groups
        return told(session)

    table = people(rows, BROAD)
    sites = {f"{PRACTICAL}.fit.value_groups:measure_wide"} | opening(budget)
    return Case(run, budget, tables(table, budget, 6), reversed_table(table), frozenset(sites))


def certificate(budget: Budget, rows: int = 10**5) -> Case:
    """The largest errors of questions on up to three attributes, and the mean of those that no table covers."""

    def run(counts: np.ndarray, ledger: Any, noise: Any) -> Any:
        session = opened(counts, ledger, noise, workload=SINGLE[:1], certify=True)
        assert session.certificate is not None and session.certificate.typical is not None
        assert "means" in {limit.kind for limit in session.certificate.limits}
        return told(session, (repr(session.certificate), session.certificate.limits))

    sites = {CERTIFY} | opening(budget)
    return Case(
        run,
        budget,
        tables(people(rows), budget, 6),
        reversed_table(people(rows)),
        frozenset(sites),
        {"certificate": 0.99},
    )


def purchases(budget: Budget) -> Case:
    """A table, a query whose table would cost more, one of any weights, a mean, and n where it is private."""
    weights = np.where(np.indices(U.shape).sum(axis=0) % 2 == 0, 1.0, 0.0)
    mixed = weights.copy()
    mixed[0, 0] = 0.3
    asked = [
        (hr.marginal("y", "a"), 0.12),
        (hr.linear(U.names, weights), 0.1),
        (hr.linear(U.names, mixed), 0.09),
        (hr.mean("a", where=hr.count(y=1)), 0.2),
        (hr.count(a=1), 0.05 if budget.pure else 0.03),
    ]

    def run(counts: np.ndarray, ledger: Any, noise: Any) -> Any:
        session = opened(counts, ledger, noise, workload=SINGLE[:1], reserve=0.9)
        return told(session, [session.ask(query, within=within) for query, within in asked])

    sites = {TABLE, QUERY} | opening(budget)
    why = {"measured table": 0.9, "measured query": 0.9}
    if budget.neighbours == "add-remove":
        why["measured table of n"] = 0.9
    return Case(run, budget, tables(people(3000), budget, 6), reversed_table(people(3000)), frozenset(sites), why)


def guarded(budget: Budget) -> Case:
    """Counts that no table bounds: right, wrong and learned, and wrong again."""
    parity = np.indices(U.shape).sum(axis=0) % 2 + 0.0
    asked = [
        hr.linear(U.names, table)
        for table in (parity, 1 - parity * 0.99, parity[::-1], 1.0 * (parity[0] > 0) + 0 * parity)
    ]

    def run(counts: np.ndarray, ledger: Any, noise: Any) -> Any:
        session = opened(counts, ledger, noise, workload=SINGLE, guard=0.1, reserve=0.5)
        return told(session, [session.ask(query) for query in asked])

    sites = {GUARD, QUERY} | opening(budget)
    why = {"guard round": 0.9, "measured query": 0.9}
    return Case(
        run,
        budget,
        tables(people(10**6), budget, 6),
        reversed_table(people(10**6)),
        frozenset(sites),
        why,
        guard=lambda: itertools.cycle([False, True]),
    )


# Convex questions. Within a ball of a tenth |⟨θ, x⟩ − y| is linear, so that rows attain its constants; most rows have the
# largest x and y, so that the best θ is as far as can be from that of a hypothesis which believes the smallest y.

LINE = hr.minimize(losses.Absolute(target="y", features=["a", "b"]), hr.L2Ball(0.1))


def convex(
    budget: Budget, within: float | None, rows: int, sites: set[str], universe: hr.Universe = U, **options: Any
) -> Case:
    """Asked of a hypothesis that believes the opposite."""

    def run(counts: np.ndarray, ledger: Any, noise: Any) -> Any:
        session = opened(counts, ledger, noise, workload=SINGLE, **options)
        return told(session, session.ask(LINE, within=within))

    found = sites | opening(budget)
    table, high, low = (
        people(rows, universe),
        universe.size - 1,
        universe.size // 2 - 1,
    )  # x is largest, and y is or not
    moves = [(high, low)] if budget.neighbours == "replace" else [(high, None), (low, None)]
    pairs = [(table, shifted(table, *move)) for move in moves]
    return Case(
        run,
        budget,
        pairs,
        reversed_table(table),
        frozenset(found),
        {"prefit: residuals": 0.45} if budget.neighbours == "replace" and not budget.pure else {},  # only y is another
        guard=lambda: itertools.repeat(True),
        scripted=opposite,
    )


def declared(budget: Budget, rows: int = 10**5) -> Case:
    """The largest excess risk of the losses that the workload declares, about a hypothesis that believes the opposite."""
    slope = hr.minimize(losses.Absolute(target="y", features=["a"]), hr.L2Ball(0.1))
    usual = convex(budget, None, rows, {LOSSES})
    table, high, low = people(rows), U.size - 1, U.size // 2 - 1
    table.flat[high], table.flat[low] = (
        table.flat[high] - rows // 4,
        table.flat[low] + rows // 4,
    )  # so that S is not reached
    moves = [(high, low)] if budget.neighbours == "replace" else [(high, None), (low, None)]

    def run(counts: np.ndarray, ledger: Any, noise: Any) -> Any:
        session = opened(counts, ledger, noise, workload=SINGLE, reserve=0.9)
        asked, allowance = [bound(question, U) for question in (LINE, slope)], Allowance(ledger, 0.89 * budget.total)
        found = certified_losses(
            HistogramSource(U, counts), noise, session._engine.knowledge, asked, allowance, 0.05, ()
        )
        assert len(found.answers) == 2
        return told(session, [found.get(question) for question in asked])

    return replace(usual, run=run, pairs=[(table, shifted(table, *move)) for move in moves], far=reversed_table(table))


def checked(budget: Budget) -> Case:
    """The excess risk is measured, is too large, and the table teaches."""
    return convex(budget, 0.05, 20_000, {NUMBER, TABLE}, reserve=0.5)


def descended(budget: Budget) -> Case:
    """… where its noise would drown the table, so that θ is found by descent, and one query teaches."""
    small = replace(budget, epsilon=0.6)
    return convex(small, 0.3, 1000, {NUMBER, ORACLE, QUERY}, WIDE, reserve=0.04)


def watched(budget: Budget) -> Case:
    return convex(budget, None, 20_000, {GUARD, TABLE}, guard=0.3, reserve=0.39)


CASES: dict[str, Callable[[], Case]] = {
    **{f"prefit, {k}": functools.partial(prefit, b) for k, b in BUDGETS.items()},
    **{f"prefit by ranges, {k}": functools.partial(prefit, b, universe=RANGED) for k, b in BUDGETS.items()},
    **{f"release, {k}": functools.partial(prefit, b, True, 10**5) for k, b in BUDGETS.items()},
    **{f"release of tables, {k}": functools.partial(prefit, b, True, 10**5, False) for k, b in BUDGETS.items()},
    **{f"release with much noise, {k}": functools.partial(prefit, b, True, 100) for k, b in BUDGETS.items()},
    **{f"merged values, {k}": functools.partial(merged, b) for k, b in BUDGETS.items()},
    **{f"certificate, {k}": functools.partial(certificate, b) for k, b in BUDGETS.items()},
    **{f"within, {k}": functools.partial(purchases, b) for k, b in BUDGETS.items()},
    **{f"guard, {k}": functools.partial(guarded, b) for k, b in BUDGETS.items()},
    **{f"declared losses, {k}": functools.partial(declared, b) for k, b in BUDGETS.items()},
    **{f"excess risk, {k}": functools.partial(checked, b) for k, b in BUDGETS.items()},
    **{f"descent, {k}": functools.partial(descended, b) for k, b in BUDGETS.items()},
    **{f"guarded excess risk, {k}": functools.partial(watched, b) for k, b in BUDGETS.items()},
}


@pytest.mark.parametrize("name", CASES)
def test_one_row_moves_what_is_drawn_from_by_its_sensitivity_and_nothing_else_at_all(name: str, monkeypatch) -> None:
    held(CASES[name](), monkeypatch)


def held(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores look past what noise would hide, and one row of these small tables may then move none: so also without that."""
    if CHOOSE in case.sites:
        hold(replace(case, reach={**case.reach, "prefit: choice": 0.0}))
        monkeypatch.setattr(selection, "NOTICEABLE", 0.0)
    hold(case)


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_tables_chosen_together_are_each_paid_for(budget: Budget, monkeypatch) -> None:
    """Several choices before one fit, and an overview of pairs that no model is said to hold."""
    monkeypatch.setattr(selection, "FEW_ATTRIBUTES", 1)
    monkeypatch.setattr(selection, "OVERVIEW_CELLS", 0)
    neighbours = tables(people(3000), budget, 8)  # few move what is chosen by all they could
    with monkeypatch.context() as patched:
        patched.setattr(selection, "OVERVIEW_PAIRS", 0)
        held(replace(prefit(budget), pairs=neighbours, sites=frozenset({MEASURE, CHOOSE}), reach={}), patched)
    if not budget.pure:
        monkeypatch.setattr(selection, "OVERVIEW_NOISE", 1.0)
        of_rows = {MEASURE} if budget.neighbours == "add-remove" else set()
        hold(replace(prefit(budget), sites=frozenset(opening(budget) | of_rows), reach={}))
