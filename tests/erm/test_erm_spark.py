"""Rows on a cluster give the model of the same rows in memory, to the last bit, or a refusal. No row reaches this process."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import numpy as np
import pandas as pd
import pytest
import spark

from hedgerow import erm, losses
from hedgerow.convex import sets
from hedgerow.erm import spark_rows
from hedgerow.erm.exact_sums import BLOCK, Digits, exact_sum
from hedgerow.erm.solvers import SOLVERS
from hedgerow.errors import DataUnavailable, InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant

RNG = np.random.default_rng(5)
REFUSED = ("noisy_sgd", "objective_perturbation", "output_perturbation", "regularised_output_perturbation")
BUDGET = Budget(1.0, 1e-6)
WORDS = ["1.5", " -2 ", "true", "nothing", "nan", "1e400", None]


def table(rows: int = 400) -> pd.DataFrame:
    """Every kind of value that a column may have, and rows beyond every bound."""
    wide = RNG.normal(size=(rows, 2)) * 10.0 ** RNG.integers(-3, 4, (rows, 1))
    frame = pd.DataFrame(wide, columns=["a", "b"])
    frame["c"] = RNG.integers(-5, 6, rows)
    frame["d"] = RNG.choice(np.array(WORDS, object), rows)
    frame["y"] = RNG.normal(size=rows) + (frame["a"] > 0)
    frame["e"] = RNG.random(rows) < 0.5
    frame["who"] = RNG.integers(0, 60, rows).astype(str)
    return frame


def there(frame: pd.DataFrame, parts: int = 3) -> Any:
    kinds = {"c": "bigint", "d": "string", "e": "boolean", "who": "string"}
    schema = ", ".join(f"{name} {kinds.get(name, 'double')}" for name in frame.columns)
    rows = [tuple(v.item() if isinstance(v, np.generic) else v for v in row) for row in frame.itertuples(index=False)]
    return spark.session().createDataFrame(rows, schema).repartition(parts)


def both(name: str, frame: pd.DataFrame, **given: Any) -> tuple[erm.Result, erm.Result]:
    known = inspect.signature(getattr(erm, name)).parameters
    chosen = {key: value for key, value in given.items() if key in known}
    whose = {"unit": "who"} if "rows_per_unit" in given else {}
    kept = frame if whose else frame.drop(columns="who")
    features = frame.drop(columns=["y", "who"])
    here = {"unit": frame["who"]} if whose else {}
    one = getattr(erm, name)(there(kept), "y", seed=7, **chosen, **whose)
    return one, getattr(erm, name)(features, frame["y"], seed=7, **chosen, **here)


def same(one: erm.Result, other: erm.Result) -> bool:
    bare = [dataclasses.replace(result, theta=np.zeros(0)) for result in (one, other)]
    return np.array_equal(one.theta, other.theta) and repr(bare[0]) == repr(bare[1])


def test_digits_of_parts_add_up_to_the_sum_of_all_rows() -> None:
    for rows, bits, more in [(0, 24, 25), (3, 24, 25), (5000, 24, 25), (30_000, 5, 49), (30_000, 26, 53)]:
        X = RNG.integers(-(2**bits), 2**bits + 1, (rows, 3)).astype(float)
        V = RNG.integers(-(2**more), 2**more + 1, (rows, 2)).astype(float)
        parts = [Digits(bits, more) for _ in range(3)]
        for part, held, of in zip(parts, np.array_split(X, 3), np.array_split(V, 3), strict=True):
            part.add(held, of)
        zero = np.zeros((parts[0].lines, 3, 2), np.int64)
        together = Digits(bits, more, sum((part.values for part in parts if part.values is not None), zero))
        assert np.array_equal(together.total(rows), exact_sum(X, V, bits, more))
    assert BLOCK * 2.0 ** (26 + Digits(26, 53).width) <= 2.0**53


def test_the_model_is_that_of_the_same_rows_in_memory_to_the_last_bit() -> None:
    """The practical choice, and persons: labels' size, second moments, weights, and gradients."""
    frame = table()
    one, other = both("whitened_descent", frame, loss=losses.Squared(), budget=BUDGET, label_bound=3.0, iterations=2)
    assert same(one, other) and np.any(one.theta)
    per_person = Budget(1.0, 1e-6, "add-remove")
    one, other = both(
        "frank_wolfe", frame, loss=losses.Logistic(), over=sets.L1Ball(2.0), budget=per_person, expected_rows=5, rows_per_unit=2, iterations=2,
    )  # fmt: skip
    assert same(one, other) and np.any(one.theta)


SETTINGS: dict[str, dict[str, Any]] = {
    "whitened_descent": {"loss": losses.Logistic(), "over": sets.L2Ball(1.0)},
    "auto": {"loss": losses.Hinge(), "over": sets.L2Ball(1.0)},
    "mirror_descent": {"loss": losses.Hinge(), "over": sets.L1Ball(2.0)},
    "frank_wolfe": {"loss": losses.Squared(ridge=0.1), "over": sets.Simplex()},
    "frank_wolfe_general": {"loss": losses.Logistic(), "over": sets.L2Ball(1.0)},
    "lasso": {"radius": 1.0, "label_bound": 2.0},
}


@pytest.mark.audit
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("name", [*SOLVERS, "auto"])
def test_every_solver_gives_the_model_of_the_same_rows_in_memory_or_is_refused(name, neighbours) -> None:
    budget = Budget(1.0, 1e-6, neighbours)
    given = {
        "budget": budget,
        "iterations": 4,
        **SETTINGS.get(name, {"loss": losses.Logistic(ridge=0.1), "over": None}),
    }
    guess = {"expected_rows": 20} if neighbours == "add-remove" else {}  # more than 8 times as many: sums are cut
    if name in REFUSED:
        account = Accountant(budget)
        with pytest.raises(InvalidInput, match="must be in memory"):
            both(name, table(), **{**given, "budget": account}, **guess)
        assert account.spent == 0
        return
    one, other = both(name, table(), **given, **guess)
    assert same(one, other)


def test_refusals_rest_on_public_facts_and_cost_nothing() -> None:
    frame, account = there(table(5)), Accountant(BUDGET)
    given = {"loss": losses.Logistic(), "over": sets.L2Ball(1.0), "budget": account}
    for label, unit in [(np.ones(5), None), ("z", None), ("y", np.ones(5)), ("y", "nobody")]:
        whose = {} if unit is None else {"unit": unit, "rows_per_unit": 1, "budget": Budget(1.0, 1e-6, "add-remove")}
        with pytest.raises(InvalidInput, match="must be the name of one column"):
            erm.auto(frame, label, **given | whose)
    with pytest.raises(InvalidInput, match="Found no columns but that of y"):
        erm.auto(frame.select("y"), "y", **given)
    with pytest.raises(InvalidInput, match="must be in memory for noisy_sgd"):
        erm.noisy_sgd(frame, "y", **given)
    assert account.spent == 0


def test_workers_that_compute_otherwise_are_refused(monkeypatch) -> None:
    frame = there(table(20)).drop("who")
    given = {"loss": losses.Logistic(), "over": sets.L2Ball(1.0), "budget": BUDGET}
    monkeypatch.setattr(spark_rows.SparkRows, "_count_rows", lambda self: {"one": 10, "other": 10})
    with pytest.raises(InvalidInput, match="Found 2 kinds"):
        erm.auto(frame, "y", **given)
    monkeypatch.setattr(spark_rows.SparkRows, "_count_rows", lambda self: {"another": 20})
    account = Accountant(BUDGET)
    with pytest.raises(DataUnavailable) as refused:
        erm.auto(frame, "y", **given | {"budget": account})
    assert refused.value.__context__ is None and account.spent > 0  # what was drawn may have been seen: it stays paid


@pytest.mark.audit
def test_a_table_without_rows_and_a_copy_that_is_emptied(tmp_path, monkeypatch) -> None:
    frame, copy = there(table(50)).drop("who"), f"file://{tmp_path}/copy"
    monkeypatch.setattr(spark_rows, "new_folder", lambda owner, session: copy)
    erm.frank_wolfe(frame, "y", loss=losses.Logistic(), over=sets.L1Ball(1.0), budget=BUDGET, iterations=1)
    assert spark.session().read.parquet(copy).count() == 0
    monkeypatch.undo()
    given = {"loss": losses.Squared(), "budget": Budget(1.0, 1e-6, "add-remove"), "expected_rows": 50, "seed": 1}
    one = erm.whitened_descent(frame.where("1 = 0"), "y", iterations=2, **given)
    other = erm.whitened_descent(np.zeros((0, 5)), np.zeros(0), iterations=2, **given)
    assert np.array_equal(one.theta, other.theta)
