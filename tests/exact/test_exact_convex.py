"""The textbook's mechanisms for convex questions, with every oracle, held to their sensitivities (``neighbouring``).

Over labels of ±1 the absolute loss |θ − y| is linear on [−1, 1], with slopes of ±1: its constants L = 1 and S = 2 are attained
by every row, and one that is replaced moves sums of gradients by 2L, and the excess of θ = −1 over the best, 1, by 2S.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from neighbouring import BUDGETS, Case, hold, shifted

from hedgerow import losses
from hedgerow.convex.minimize import minimize
from hedgerow.convex.sets import L2Ball
from hedgerow.data import HistogramSource
from hedgerow.engine.theory import build_theory_engine
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.budget import Budget
from hedgerow.query.counts import bound, count
from hedgerow.session import Session
from hedgerow.textbook import convex_offline, convex_pmw, localized_oracle, oracles
from hedgerow.universe.universe import Universe

Y = Universe.from_sizes({"y": 2, "z": 2})
ROWS = 100_000
OVER = L2Ball(1.0)
RIDGE = 0.02
GUARD = "textbook.sparse_vector:_ready"
APPROXIMATE = {budget.neighbours: budget for budget in BUDGETS.values() if not budget.pure}

FAMILIES: dict[str, tuple[oracles.Oracle, float, float]] = {  # the oracle, the ridge of its losses, and S
    "NoisyGradientDescentOracle": (oracles.NoisyGradientDescentOracle(1.0, 2.0, 1), 0.0, 2.0),
    "RegularizedOutputPerturbationOracle": (oracles.RegularizedOutputPerturbationOracle(1.0, 1.0, 1, 2.0), 0.0, 2.0),
    "OutputPerturbationOracle": (
        oracles.OutputPerturbationOracle(1 + RIDGE, RIDGE, 1, 2 * (1 + RIDGE)),
        RIDGE,
        2 * (1 + RIDGE),
    ),
    "LocalizedOracle": (
        localized_oracle.LocalizedOracle(1.0, 2.0, 1.0, dimension=1, cells=2, smoothness=0.0, jump=1.0), 0.0, 2.0,
    ),
}  # fmt: skip
SITES = {name: f"textbook.oracles:{name}.answer" for name in FAMILIES}
SITES["LocalizedOracle"] = "textbook.localized_oracle:LocalizedOracle.answer"
OF_N = ("OutputPerturbationOracle", "LocalizedOracle")  # their noise depends on the number of rows


def mostly(share: float) -> np.ndarray:
    """So many of the labels are 1, whatever z is."""
    ones = round(share * ROWS)
    half = np.array([ROWS - ones, ones]) // 2
    return np.array([[half[0], ROWS - ones - half[0]], [half[1], ones - half[1]]])


def pairs(budget: Budget) -> list[tuple[np.ndarray, np.ndarray]]:
    """A table of ones, where θ = −1 is as wrong as can be; and one that is balanced, where a ridged minimum is inside."""
    move = (2, 1) if budget.neighbours == "replace" else (2, None)
    return [(table, shifted(table, *move)) for table in (mostly(1.0), mostly(0.5))]


def mistaken() -> Hypothesis:
    """It believes that labels are −1."""
    hypothesis = Hypothesis(Y)
    hypothesis.add_factor(("y",), np.array([6.0, 0.0]))
    return hypothesis


def often() -> Iterator[bool]:
    return itertools.cycle([False, True])


def asked(ridge: float) -> list[Any]:
    return [losses.Absolute(target=name, ridge=ridge).on(Y) for name in ("y", "z")]


def online(family: str, budget: Budget) -> Case:
    oracle, ridge, S = FAMILIES[family]
    config = convex_pmw.configure(
        budget, cells=Y.size, rows=ROWS, queries=4, beta=0.1, scale_S=S, oracle=oracle, alpha=0.75 * S
    )

    def run(counts: np.ndarray, ledger: Any, noise: Any) -> Any:
        mechanism = convex_pmw.OnlineConvexPMW(config, HistogramSource(Y, counts), ledger, noise, mistaken())
        answers = [mechanism.ask(risk, OVER) for risk in asked(ridge)[:1] * 3 + asked(ridge)[1:]]
        return answers, mechanism.hypothesis.marginal(Y.names), mechanism.updates

    sites = frozenset({GUARD, SITES[family]})
    return Case(
        run, budget, pairs(budget), mostly(0.2), sites, {"guard round": 0.9, convex_pmw.LEARNED: 0.9}, guard=often
    )


def offline(family: str, budget: Budget) -> Case:
    oracle, ridge, S = FAMILIES[family]
    config = convex_offline.configure(
        budget, cells=Y.size, rows=ROWS, queries=2, beta=0.1, scale_S=S, oracle=oracle, alpha=0.75 * S
    )

    def run(counts: np.ndarray, ledger: Any, noise: Any) -> Any:
        workload = [(risk, OVER) for risk in asked(ridge)]
        found = convex_offline.release(config, workload, HistogramSource(Y, counts), ledger, noise, mistaken())
        return found.hypothesis.marginal(Y.names), found.answers, found.updates, found.stopped

    def unsatisfied(site: str, event: Any, value: Any, drawn: Any) -> Any:
        """Losses are chosen in turn, and the first errors are found too large, so that it learns on every table."""
        if event == config.choice:
            return next(chosen)
        return event.grid * round(ROWS / event.grid) if event == config.measurement and next(turn) < 2 else drawn

    chosen = itertools.cycle([0, 1, 0])
    turn = itertools.cycle(range(3))
    sites = frozenset({"textbook.convex_offline:_run_locked", SITES[family]})
    why = {f"convex offline: {what}": 0.9 for what in ("choice", "error", "oracle")}
    return Case(run, budget, pairs(budget), mostly(0.2), sites, why, scripted=unsatisfied)


def theory(budget: Budget) -> Case:
    """Counts and convex questions, by one hypothesis."""
    question = minimize(losses.Absolute(target="y"), OVER)

    def run(counts: np.ndarray, ledger: Any, noise: Any) -> Any:
        data = HistogramSource(Y, counts)
        engine = build_theory_engine(
            data, ledger, noise, convex=[bound(question, Y)], queries=4, beta=0.1, alpha=None, trusted_losses=()
        )
        session = Session(data, ledger, noise, engine)
        answers = [session.ask(q) for q in (count(y=1), question, count(y=1, z=0))]
        return answers, session.hypothesis.marginal(Y.names), session.rows, session.spent

    oracle = "LocalizedOracle" if budget.neighbours == "replace" else "NoisyGradientDescentOracle"
    sites = {GUARD, "textbook.pmw:OnlinePMW.ask", SITES[oracle]}
    if budget.neighbours == "add-remove":
        sites |= {"engine.theory:build_theory_engine"}
    return Case(run, budget, pairs(budget), mostly(0.2), frozenset(sites), guard=lambda: itertools.repeat(True))


CASES: dict[str, Callable[[], Case]] = {
    f"{mechanism.__name__}, {family}, {kind}": functools.partial(mechanism, family, budget)
    for mechanism in (online, offline)
    for family in FAMILIES
    for kind, budget in APPROXIMATE.items()
    if family not in OF_N or kind != "add-remove"  # refused
} | {f"theory engine, {kind}": functools.partial(theory, budget) for kind, budget in APPROXIMATE.items()}


@pytest.mark.parametrize("name", CASES)
def test_one_row_moves_what_is_drawn_from_by_its_sensitivity_and_nothing_else_at_all(name: str) -> None:
    hold(CASES[name]())


def test_every_oracle_is_held_to_its_sensitivity() -> None:
    there = {**vars(oracles), **vars(localized_oracle)}
    found = {name for name, value in there.items() if hasattr(value, "answer") and name != "Oracle"}
    assert found == set(FAMILIES)
