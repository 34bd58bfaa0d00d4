"""Draws from a few random rows keep to their sensitivity: neighbours are compared on the same rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from neighbouring import Case, hold

from hedgerow import losses
from hedgerow.convex.sets import L2Ball
from hedgerow.data.row_store import in_memory
from hedgerow.data.row_values import statistic_values
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import COIN, Laplace, PoissonSample, Subsampled
from hedgerow.query.row_statistic import statistic
from hedgerow.textbook import descent_by_queries, scq, subsampled

ROWS = 6
REPLACED, COME_AND_GO = Budget(1.0, 1e-6), Budget(1.0, 1e-6, "add-remove")
BASE = np.array([0.0, 0.25, 1.0, 0.5, 0.1, 0.9])
STRANGE = (0.0, 1.0, 5.0, -3.0, np.nan, np.inf)
ANSWER, CHOICE = "textbook.subsampled:answer", "textbook.subsampled:choose"


def replaced(base: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Each row replaced by whatever there is: out of range, missing, and one on which the function raises."""
    pairs = []
    for i in range(base.size):
        for value in (*STRANGE, 7.0):
            other = base.copy()
            other[i] = value
            pairs.append((base, other))
    return pairs


def raising(x: float) -> Any:
    if x == 7.0:
        raise ValueError("seven")
    return x


def asked(plan: Callable[[], subsampled.SamplePlan], vectorised: bool) -> Callable[..., Any]:
    def run(table: np.ndarray, ledger: Any, noise: Any) -> Any:
        rows = in_memory({"x": table})
        questions = [statistic((lambda x: x) if vectorised else raising, ["x"], vectorised=vectorised)]
        questions.append(statistic(lambda x: 1 - x, ["x"], vectorised=vectorised))
        return [subsampled.answer(plan(), statistic_values(rows, q), rows.rows, ledger, noise) for q in questions]

    return run


def statistics(plan: Callable[[], subsampled.SamplePlan], budget: Budget = REPLACED, vectorised: bool = False) -> Case:
    if budget is COME_AND_GO:
        pairs = [(BASE, np.delete(BASE, BASE.size - 1)), (np.append(BASE, 1.0), BASE), (np.append(BASE, 0.0), BASE)]
    else:
        pairs = replaced(BASE)
    return Case(asked(plan, vectorised), budget, pairs, BASE[::-1].copy(), frozenset({ANSWER}))


def flipped() -> Case:
    def run(table: np.ndarray, ledger: Any, noise: Any) -> Any:
        rows = in_memory({"x": table})
        valued = statistic_values(rows, statistic(raising, ["x"]))
        return scq.sample_yes_no(scq.scq(rows.rows, 0.1), valued, rows.rows, ledger, noise, 4)

    return Case(run, REPLACED_LOOSE, replaced(BASE), BASE[::-1].copy(), frozenset({"textbook.scq:sample_yes_no"}))


def naive() -> Case:
    def run(table: np.ndarray, ledger: Any, noise: Any) -> Any:
        valued = statistic_values(in_memory({"x": table}), statistic(raising, ["x"]))
        return scq.naive_flip(0.2, 0.05, valued, table.size, ledger, noise)

    return Case(run, REPLACED_LOOSE, replaced(BASE), BASE[::-1].copy(), frozenset({"textbook.scq:naive_flip"}))


REPLACED_LOOSE = Budget(1000.0, 0.0)
RISK = descent_by_queries.ClippedRisk(losses.Logistic(target="y", features=["a"], intercept=False), L2Ball(1.0))


def descending() -> Case:
    plan = descent_by_queries.configure(RISK, ROWS, alpha=2.0, beta=0.5, size=4)

    def run(table: np.ndarray, ledger: Any, noise: Any) -> Any:
        rows = in_memory({"a": table[:, 0], "y": table[:, 1]})
        return descent_by_queries.minimize(plan, rows, ledger, noise)

    base = np.column_stack([np.linspace(-1, 1, ROWS), np.arange(ROWS) % 2])
    pairs = []
    for i in (0, ROWS // 2, ROWS - 1):
        for row in ([1.0, 0.0], [-1.0, 0.0], [np.nan, 1.0], [1e300, 1e300]):
            other = base.copy()
            other[i] = row
            pairs.append((base, other))
    # what one row moves a coordinate by is at most half of what it could be for another θ; scores move by less still
    reach = {"sampled statistic": 0.5, "sampled choice": 0.0}
    return Case(run, REPLACED_LOOSE, pairs, base[::-1].copy(), frozenset({ANSWER, CHOICE}), reach)


def poisson() -> subsampled.SamplePlan:
    return subsampled.SamplePlan(Subsampled(PoissonSample(COIN - 1), Laplace(1.0, 5e5, subsampled.GRID)), 1.0, 1.0, 6.0)


def fixed(replace: bool) -> Callable[[], subsampled.SamplePlan]:
    return lambda: subsampled.affordable(ROWS, epsilon=1e-5, size=4, beta=0.1, replace=replace)


CASES: dict[str, Callable[[], Case]] = {
    "sampled statistic, without replacement": lambda: statistics(fixed(False)),
    "sampled statistic, vectorised": lambda: statistics(fixed(False), vectorised=True),
    "sampled statistic, rows that come and go": lambda: statistics(poisson, COME_AND_GO),
    "flips": flipped,
    "the naive flip": naive,
    "descent by queries": descending,
}


@pytest.mark.parametrize("name", CASES)
def test_one_row_moves_what_is_drawn_by_no_more_than_is_billed(name: str) -> None:
    hold(CASES[name]())


def test_with_replacement_a_row_that_is_drawn_j_times_moves_the_sum_by_j_and_no_more() -> None:
    """The loss is computed for this: the event's sensitivity is of one row of the sample."""
    rows = 3
    plan = subsampled.affordable(rows, epsilon=1e-5, size=5, beta=0.1, replace=True)
    case = Case(
        asked(lambda: plan, False),
        REPLACED,
        [(np.zeros(rows), np.array([1.0, 0.0, 0.0]))],
        np.ones(rows),
        frozenset({ANSWER}),
    )
    for one, other in case.transcripts():
        for i in range(0, len(one.draws), 2):
            drawn = int((one.draws[i].out == 0).sum())
            assert abs(one.draws[i + 1].raw[0] - other.draws[i + 1].raw[0]) == drawn
