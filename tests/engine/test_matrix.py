"""The factorization release: its errors are known in advance, its shares are optimal, its bars are for the workload."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine import matrix
from hedgerow.engine.matrix import plan_matrix, run_matrix
from hedgerow.privacy.events import Planned
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Seeded
from hedgerow.query.counts import bound
from hedgerow.query.linear import Linear

U = hr.Universe.from_sizes({"a": 4, "b": 3, "c": 2, "one": 1})
ROWS = 10**6
COUNTS = np.random.default_rng(0).multinomial(ROWS, np.random.default_rng(1).dirichlet(np.ones(24))).reshape(U.shape)
BUDGET = hr.Budget(1.0, 1e-9)
TABLES = [("a", "b"), ("b", "c", "one")]
QUERIES = [Linear.from_table(U, ("a", "c"), np.array([[1, 0], [0, 0.5], [0, 0], [1, 1]]))]


def planned(budget: hr.Budget = BUDGET, **changes) -> matrix.MatrixPlan:
    given = {"rows": ROWS, "beta": 0.05, "tables": TABLES, "queries": QUERIES, **changes}
    return plan_matrix(budget, U, given.pop("tables"), given.pop("queries"), **given)


def errors(plan: matrix.MatrixPlan, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """In rows: of the tables' cells, and of the query."""
    engine = run_matrix(HistogramSource(U, COUNTS), Accountant(BUDGET), Seeded(seed), plan)
    told = [engine._overview.onto(names) for names in (("a", "b"), ("b", "c"))]
    true = [COUNTS.sum(axis=(2, 3)), COUNTS.sum(axis=(0, 3))]
    query = QUERIES[0]
    off = query.dot(engine._overview.onto(("a", "c"))) - query.dot(COUNTS.sum(axis=(1, 3)).astype(float))
    return (told[0] - true[0]).ravel(), (told[1] - true[1]).ravel(), float(off)


def test_the_errors_are_those_that_were_known_beforehand() -> None:
    """400 runs: the spread of a variance is 7 %, and a deviation of 5 of these is 35 % of it, or 17 % of the deviation."""
    plan, found = planned(), [errors(planned(), seed) for seed in range(400)]
    for i, names in enumerate((("a", "b"), ("b", "c"))):
        each = np.array([run[i] for run in found])
        assert np.sqrt((each**2).mean(axis=0)) == pytest.approx(plan.deviation_of_cells(names), rel=0.17)
        assert abs(each.mean(axis=0)).max() < 5 * plan.deviation_of_cells(names) / math.sqrt(400)  # unbiased
    assert np.std([run[2] for run in found]) == pytest.approx(plan.deviation(QUERIES[0]), rel=0.17)
    typical = np.mean([np.abs([*run[0], *run[1], run[2]]).mean() for run in found]) / ROWS
    assert typical == pytest.approx(plan.typical, rel=0.05)
    widest = max(np.abs([*run[0], *run[1], run[2]]).max() for run in found) / ROWS
    assert plan.widest / 2 < widest < 1.2 * plan.widest  # 400 runs of 13 numbers, of which 5 % may have one outside


def test_no_other_shares_have_a_smaller_mean_squared_error() -> None:
    """Σ c_s σ_s² at the same cost, against random shares; c_s by the definition, from the queries' components."""
    plan = planned()
    variance = {s: v for s, v in zip(plan.sets, plan._variances.values(), strict=True)}
    cost = {s: BUDGET.cost(event) for s, event in zip(plan.sets, plan.charged, strict=True)}

    def objective(shares: np.ndarray) -> float:
        total = 0.0
        for names in (("a", "b"), ("b", "c")):
            cell = Linear.from_table(U, names, np.eye(U.cells(names))[0].reshape(U.sizes(names)))
            total += _variance(cell, dict(zip(plan.sets, shares, strict=True)))
        return total + _variance(QUERIES[0], dict(zip(plan.sets, shares, strict=True)))

    def _variance(query: Linear, by: dict) -> float:
        names = query.attributes
        found = 0.0
        for size in range(1, len(names) + 1):
            for s in itertools.combinations(names, size):
                away = tuple(i for i, n in enumerate(names) if n not in s)
                part = query.table.mean(axis=away)
                for axis in range(part.ndim):
                    part = part - part.mean(axis=axis, keepdims=True)
                found += by[s] * float((part**2).sum())
        return found

    best = objective(np.array([variance[s] for s in plan.sets]))
    rng = np.random.default_rng(0)
    for _ in range(200):
        scaled = rng.dirichlet(np.full(len(plan.sets), 5.0)) * sum(cost.values())
        other = np.array([variance[s] * cost[s] / c for s, c in zip(plan.sets, scaled, strict=True)])
        assert objective(other) > best * (1 - 1e-6)


def test_a_release_spends_the_whole_budget_and_promises_the_workload_alone() -> None:
    made = hr.release(
        HistogramSource(U, COUNTS), universe=U, budget=BUDGET, workload=hr.marginals(2), method="matrix", seed=1
    )
    assert made.remaining < 1e-8 * made.budget.total
    table = made.ask(hr.marginal("a", "b"))
    assert np.all(np.abs(table.value - COUNTS.sum(axis=(2, 3)) / ROWS) <= table.error) and table.error.max() < 0.001
    assert table.typical.max() < table.error.min() and table.source == "measured"
    cell, both = made.ask(hr.count(a=1, b=2)), made.ask(hr.count(a=1, b=2, c=1))
    assert cell.error == pytest.approx(table.error[1, 2]) and both.error is None
    other = made.ask(hr.count(a=[0, 1], b=2))  # within a table of the workload, and no cell of it
    assert other.error is None and other.typical is not None
    assert abs(other.value - COUNTS[:2, 2].sum() / ROWS) < 10 * other.typical
    assert made.ask(hr.marginal("a", "b", "c")).error is None and len(made.synthetic(50)) == 50
    with pytest.raises(hr.BudgetExceeded, match="the bar that the release promises"):
        made.ask(hr.marginal("a", "b"), within=1e-9)


def test_counts_and_means_of_a_workload_are_promised() -> None:
    asked = [hr.count(a=[0, 3], c=1), hr.count(b=2)]
    made = hr.release(HistogramSource(U, COUNTS), universe=U, budget=BUDGET, workload=asked, method="matrix", seed=1)
    for query in asked:
        answer, exact = made.ask(query), bound(query, U).condition.low
        assert abs(answer.value - exact.dot(COUNTS.sum(axis=_away(exact)).astype(float)) / ROWS) <= answer.error < 0.001


def _away(query: Linear) -> tuple[int, ...]:
    return tuple(i for i, name in enumerate(U.names) if name not in query.attributes)


def test_all_noise_is_planned_and_the_parts_are_the_whole() -> None:
    plan = planned()
    assert all(isinstance(event, Planned) for event in plan.charged)
    assert sum(map(BUDGET.cost, plan.charged)) == pytest.approx(BUDGET.total, rel=1e-6)
    assert plan.promised == 12 + 6 + 1 and set(plan.sets) >= {("a",), ("a", "b"), ("a", "c"), ("b", "c")}
    assert not any("one" in s for s in plan.sets)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"budget": hr.Budget(1.0, 0.0)}, "delta above 0"),
        ({"budget": hr.Budget(1.0, 1e-9, "add-remove")}, "a public n"),
        ({"tables": [("one",)], "queries": []}, "ask about some attribute"),
    ],
)
def test_a_workload_that_cannot_be_planned_is_refused(changes, said) -> None:
    with pytest.raises(hr.InvalidInput, match=said):
        planned(**changes)
