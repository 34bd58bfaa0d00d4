"""The factorization release: its errors are known in advance, its shares are optimal, its bars are for the workload."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine import matrix
from hedgerow.engine.matrix import plan_matrix, run_matrix
from hedgerow.privacy.budget import Contribution
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


def planned(budget: hr.Budget = BUDGET, **changes) -> matrix.MatrixDraw:
    given = {"rows": ROWS, "beta": 0.05, "tables": TABLES, "queries": QUERIES, **changes}
    return plan_matrix(budget, U, given.pop("tables"), given.pop("queries"), **given)


def errors(made: matrix.MatrixDraw, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """In rows: of the tables' cells, and of the query."""
    engine = run_matrix(HistogramSource(U, COUNTS), Accountant(BUDGET), Seeded(seed), made)
    told = [engine._overview.onto(names) for names in (("a", "b"), ("b", "c"))]
    true = [COUNTS.sum(axis=(2, 3)), COUNTS.sum(axis=(0, 3))]
    query = QUERIES[0]
    off = query.dot(engine._overview.onto(("a", "c"))) - query.dot(COUNTS.sum(axis=(1, 3)).astype(float))
    return (told[0] - true[0]).ravel(), (told[1] - true[1]).ravel(), float(off)


def test_the_errors_are_those_that_were_known_beforehand() -> None:
    """400 runs: the spread of a variance is 7 %, and a deviation of 5 of these is 35 % of it, or 17 % of the deviation."""
    plan, found = planned().plan, [errors(planned(), seed) for seed in range(400)]
    for i, names in enumerate((("a", "b"), ("b", "c"))):
        each = np.array([run[i] for run in found])
        assert np.sqrt((each**2).mean(axis=0)) == pytest.approx(plan.deviation_of_cells(names), rel=0.17)
        assert abs(each.mean(axis=0)).max() < 5 * plan.deviation_of_cells(names) / math.sqrt(400)  # unbiased
    assert np.std([run[2] for run in found]) == pytest.approx(plan.deviation(QUERIES[0]), rel=0.17)
    typical = np.mean([np.abs([*run[0], *run[1], run[2]]).mean() for run in found]) / ROWS
    assert typical == pytest.approx(plan.typical, rel=0.05)
    deviations = np.array(
        [
            *[plan.deviation_of_cells(("a", "b"))] * 12,
            *[plan.deviation_of_cells(("b", "c"))] * 6,
            plan.deviation(QUERIES[0]),
        ]
    )
    off = np.abs(np.array([[*run[0], *run[1], run[2]] for run in found])) / ROWS
    outside = (off > plan.bar(deviations)).any(axis=1).mean()
    alone = (off > dataclasses.replace(plan, promised=1).bar(deviations)).any(axis=1).mean()
    assert outside < 0.05 < alone  # bars of single numbers would fail together more often
    assert plan.widest == pytest.approx(plan.bar(deviations).max())


def parts_of(names: tuple[str, ...], table: np.ndarray) -> dict[tuple[str, ...], float]:
    """‖q_s‖² by the definition: the squares of a query's components, for all s within its attributes."""
    found = {}
    for size in range(1, len(names) + 1):
        for s in itertools.combinations(names, size):
            part = table.mean(axis=tuple(i for i, n in enumerate(names) if n not in s))
            for axis in range(part.ndim):
                part = part - part.mean(axis=axis, keepdims=True)
            found[s] = float((part**2).sum())
    return found


def test_no_other_shares_have_a_much_smaller_mean_squared_error() -> None:
    """Σ c_s σ²/k_s at the same cost, for random k and for a charge of its own for each set (Lagrange)."""
    made, rng = planned(), np.random.default_rng(0)
    plan = made.plan
    weight = dict.fromkeys(plan.sets, 0.0)
    for names in TABLES:
        inside = tuple(name for name in names if U[name].size > 1)
        for cell in range(U.cells(inside)):
            for s, part in parts_of(inside, np.eye(U.cells(inside))[cell].reshape(U.sizes(inside))).items():
                weight[s] += part / U.cells(inside)
    for s, part in parts_of(QUERIES[0].attributes, QUERIES[0].table).items():
        weight[s] += part
    of = {name: Contribution.centered_bounds(U[name].size) for name in ("a", "b", "c")}
    places = [["abc".index(name) for name in s] for s in plan.sets]

    def error(k: np.ndarray) -> float:
        return BUDGET.joint_l2(list(of.values()), places, list(k)) ** 2 * sum(
            weight[s] / each for s, each in zip(plan.sets, k, strict=True)
        )

    best = error(np.array(made.times))
    assert all(
        error(np.array(made.times) * rng.dirichlet(np.full(len(made.times), 5.0))) > 0.97 * best for _ in range(300)
    )
    alone = sum(BUDGET.tensor_l2([of[n] for n in s]) * math.sqrt(weight[s]) for s in plan.sets) ** 2
    assert best < 0.8 * alone  # no two rows are far apart in all residuals at once
    assert sum(weight[s] * v for s, v in plan._variances.items()) == pytest.approx(best / 2 / BUDGET.total, rel=0.1)


def test_a_release_of_all_pairs_of_flags_has_three_quarters_of_the_error_of_single_charges() -> None:
    flags = hr.Universe.from_sizes({f"x{i}": 2 for i in range(8)})
    pairs = list(itertools.combinations(flags.names, 2))
    plan = plan_matrix(BUDGET, flags, pairs, [], rows=ROWS, beta=0.05).plan
    each = [Contribution.centered_bounds(2)] * 2
    singles, doubles = 8 * BUDGET.tensor_l2(each[:1]) * math.sqrt(7 * 0.5 / 4), 28 * BUDGET.tensor_l2(each) * 0.5
    alone = math.sqrt((singles + doubles) ** 2 / 2 / BUDGET.total / 28) / ROWS  # root mean square of a cell
    assert plan.typical / math.sqrt(2 / math.pi) < 0.8 * alone


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


def test_all_noise_is_planned_and_uses_the_whole_budget() -> None:
    made = planned()
    plan = made.plan
    assert isinstance(made.charged, Planned)
    assert BUDGET.cost(made.charged) == pytest.approx(BUDGET.total, rel=1e-6)
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
