"""Persons with several rows in one-shot ERM: the kept rows depend on the person alone, and the noise covers all of them."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import hedgerow as hr
from hedgerow.data import contributions
from hedgerow.erm import units
from hedgerow.errors import InvalidInput

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3)).round(1)
Y = np.sign(X[:, 0] + 0.1)
WHO = RNG.integers(0, 25, 120)
BUDGET = hr.Budget(1.0, 1e-6, "add-remove")


def stay(mask: np.ndarray, unit: object = WHO, most: int = 2, matrix: object = X) -> set[tuple[float, ...]]:
    chosen = units.kept_rows(matrix[mask], Y[mask], np.asarray(unit)[mask], most)
    return sorted(map(tuple, np.column_stack([X, Y, WHO])[mask][chosen].tolist()))


def test_a_person_who_goes_takes_their_own_rows_and_no_others() -> None:
    everybody = stay(np.ones(120, bool))
    for person in range(25):
        others = [row for row in everybody if row[-1] != person]
        assert stay(person != WHO) == others
        assert len(everybody) - len(others) == min(2, (person == WHO).sum())


def test_neither_the_order_nor_the_carrier_of_rows_decides() -> None:
    everybody, order = stay(np.ones(120, bool)), RNG.permutation(120)
    chosen = units.kept_rows(X[order], Y[order], WHO[order], 2)
    assert sorted(map(tuple, np.column_stack([X, Y, WHO])[order][chosen].tolist())) == everybody
    for other in (WHO.astype(float), WHO.astype(object), WHO.astype(str), pd.Series(WHO).astype("Int64"), WHO.tolist()):
        assert np.array_equal(units.kept_rows(X, Y, other, 2), units.kept_rows(X, Y, WHO, 2))
    gap = [*WHO.tolist(), None]
    more = units.kept_rows(np.vstack([X, X[:1]]), np.append(Y, Y[0]), pd.Series(gap), 2)
    assert np.array_equal(more[:-1], units.kept_rows(X, Y, WHO, 2)) and more[-1] == 120
    sparse = sp.csr_array(X)
    again = sp.csr_array((np.append(sparse.data, 0.0), np.append(sparse.indices, 0), np.append(sparse.indptr[:-1], sparse.nnz + 1)), shape=X.shape)  # fmt: skip
    assert np.array_equal(units.kept_rows(sparse, Y, WHO, 2), units.kept_rows(again, Y, WHO, 2))


def test_equal_rows_count_as_often_as_they_are_there() -> None:
    """3,000 persons with three equal rows and another: one stays; wrong with probability 1e-6."""
    who = np.repeat(np.arange(3000), 4)
    rows = np.tile([[0.0], [0.0], [0.0], [1.0]], (3000, 1))
    chosen = units.kept_rows(rows, np.ones(12000), who, 1)
    assert len(chosen) == 3000 and abs(rows[chosen].sum() - 750) <= 4.9 * math.sqrt(3000 * 3 / 16)


def test_arrays_and_tables_keep_the_same_rows_of_a_person() -> None:
    """The rule of arrays, and the SQL by which an engine keeps rows of a table, on the same persons and cells."""
    import duckdb
    import pyarrow as pa

    cells, who = RNG.integers(0, 3, (400, 2)), contributions.persons(pa.array(RNG.integers(0, 40, 400)))
    table = pa.table({"a": cells[:, 0], "b": cells[:, 1], "unit": who})
    kept = duckdb.from_arrow(table).query("coded", contributions.kept_query("coded", ["a", "b"], 3)).fetchall()
    stay = contributions.kept_rows(who.to_pylist(), [f"{a},{b}" for a, b in cells.tolist()], 3)
    assert sorted(map(tuple, cells[stay].tolist())) == sorted(kept)
    assert len(kept) == sum(min(3, count) for count in Counter(who.to_pylist()).values())


def test_arrays_and_tables_name_the_same_persons() -> None:
    values = [1, 1.0, "1", " 1\t", True, "true", None, math.nan, "", 2.5, "2.5", "é"]
    told = [contributions.person_of(value) for value in values]
    assert told == contributions.persons(np.array(values, dtype=object)).to_pylist() == units.persons(values)
    assert told[:4] == [b"1"] * 4 and told[4] == told[5] == b"true" and told[6:9] == [b""] * 3


SOLVERS = ["mirror_descent", "frank_wolfe", "noisy_sgd", "objective_perturbation", "auto"]


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_draws_for_k_rows_what_it_bills(name) -> None:
    given = {
        "loss": hr.losses.Logistic(),
        "over": hr.L2Ball(1.0) if name != "frank_wolfe" else hr.L1Ball(1.0),
        "expected_rows": 100,
    }
    k, solver = 4, getattr(hr.erm, name)
    found = solver(X, Y, budget=BUDGET, unit=WHO, rows_per_unit=k, seed=1, **given)
    assert found.cost <= 1.0 + 1e-6
    one = solver(X, Y, budget=BUDGET, seed=1, **given)
    noisy = [(e, o) for e, o in zip(found.events, one.events, strict=False) if type(e) is type(o)]
    assert noisy
    losses = [(event.rho, other.rho) for event, other in noisy]
    assert all(mine < theirs / k for mine, theirs in losses)  # by k² or by (ε/k)


def test_a_session_pays_for_the_same_persons_alone() -> None:
    given = {"loss": hr.losses.Logistic(), "over": hr.L2Ball(1.0), "expected_rows": 100, "unit": WHO}
    ledger = hr.Accountant(hr.Budget(1.0, 1e-6, "add-remove", rows_per_unit=2))
    hr.erm.mirror_descent(X, Y, budget=ledger, **given)
    assert ledger.spent_epsilon <= 1.0 + 1e-6
    for payer, more, words in (
        (hr.Accountant(BUDGET), {"rows_per_unit": 2}, "must have the same rows_per_unit in its budget"),
        (ledger, {"rows_per_unit": 3}, "must be that of the budget, 2"),
        (BUDGET, {}, "unit must come with rows_per_unit"),
        (hr.Budget(1.0, 1e-6), {"rows_per_unit": 2}, "neighbours='add-remove'"),
        (BUDGET, {"rows_per_unit": 2, "unit": WHO[:-1]}, "one value for each row"),
        (BUDGET, {"rows_per_unit": 2, "unit": np.zeros((120, 2))}, "one number or text for each row"),
        (BUDGET, {"rows_per_unit": 2, "unit": None}, "rows_per_unit must come with unit"),
    ):
        with pytest.raises(InvalidInput, match=words):
            hr.erm.mirror_descent(X, Y, budget=payer, **{**given, **more})
