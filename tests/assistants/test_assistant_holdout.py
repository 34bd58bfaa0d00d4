"""Models as data on held-out rows: scores are right, repeats are free, and code or wrong data is refused."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import people
import pytest
from assisting import release_desk

import hedgerow as hr
from hedgerow.assistants.desk import AssistantDesk
from hedgerow.assistants.holdout import ModelHoldout
from hedgerow.assistants.toolbox import call_tool
from hedgerow.estimators import LinearRegression, LogisticRegression


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> AssistantDesk:
    found = release_desk(tmp_path_factory.mktemp("release"))
    held = ModelHoldout(people.frame(20_000, seed=9), people.SMALL, hr.Budget(4.0, 0.0), seed=3)
    return AssistantDesk(found.table, holdout=held)


def fitted(desk: AssistantDesk, target: str, *features: str) -> dict[str, Any]:
    found = call_tool(desk, "fit_model", {"target": target, "features": list(features)})
    return copy.deepcopy(found.data["model"])


@pytest.mark.parametrize(
    ("target", "estimator"), [("smoker", LogisticRegression), ("age", LinearRegression), ("sex", LogisticRegression)]
)
def test_the_interval_of_a_score_contains_the_score_on_fresh_rows(
    desk: AssistantDesk, target: str, estimator: Any
) -> None:
    features = [name for name in people.SMALL.names if name != target][:2]
    model = fitted(desk, target, *features)
    score = call_tool(desk, "score_on_holdout", {"model": model}).data
    fresh = people.frame(200_000, seed=77)
    own = estimator(desk.table, target=target, features=features).fit()
    predicted = own.predict(fresh[features])
    if score["metric"] == "accuracy":
        truth = float(np.mean(predicted == fresh[target].to_numpy()))
    else:
        truth = float(np.mean(np.minimum(1, np.abs(predicted - fresh[target].to_numpy()) / 7)))
    assert score["low"] <= truth <= score["high"] and score["high"] - score["low"] < 0.2


def test_a_repeated_score_is_the_same_and_costs_nothing(desk: AssistantDesk) -> None:
    model = fitted(desk, "smoker", "age")
    assert desk.holdout is not None
    first = call_tool(desk, "score_on_holdout", {"model": model})
    left = desk.holdout.remaining
    assert call_tool(desk, "score_on_holdout", {"model": model}) == first and desk.holdout.remaining == left


def test_a_search_of_many_models_stays_within_the_budget(desk: AssistantDesk) -> None:
    """Their guesses come from the released model, so most of them are not measured."""
    model = fitted(desk, "smoker", "age", "region")
    rng, sources = np.random.default_rng(0), []
    for _ in range(200):
        model["coefficients"] = {name: float(rng.normal()) for name in model["coefficients"]}
        sources.append(call_tool(desk, "score_on_holdout", {"model": model}).data["source"])
    assert sources.count("guess") > 190


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"coefficients": {}}, "exactly the"),
        ({"coefficients": {"age": 1.0, "intercept": float("nan")}}, "finite"),
        ({"coefficients": {"age": "__import__('os')", "intercept": 0}}, "must be a number or an object"),
        ({"coefficients": {"age": {"F": 1.0}, "intercept": 0}}, "must be numbers"),
        ({"coefficients": {"age": 1e300, "intercept": 0}}, "must be from"),
        ({"family": "pickle"}, "must be one of"),
        ({"target": "nobody"}, "must be a column"),
        ({"code": "lambda x: x"}, "must be among"),
    ],
)
def test_a_model_that_is_no_data_is_refused_and_costs_nothing(
    desk: AssistantDesk, change: dict[str, Any], part: str
) -> None:
    model = fitted(desk, "smoker", "age") | change
    assert desk.holdout is not None
    left = desk.holdout.remaining
    with pytest.raises(hr.InvalidInput, match=part):
        call_tool(desk, "score_on_holdout", {"model": model})
    assert desk.holdout.remaining == left


def test_an_exhausted_holdout_refuses_and_a_restart_renews_nothing(tmp_path: Path) -> None:
    found, budget = release_desk(tmp_path), hr.Budget(0.5, 0.0)
    frame = people.frame(20_000, seed=5)
    frame["smoker"] = ~frame["smoker"]  # no guess is near
    refusals, left = 0, []
    for _ in range(2):
        ledger = hr.ledger.opened(f"sqlite:///{tmp_path / 'held.ledger'}", budget)
        try:
            held = ModelHoldout(frame, people.SMALL, budget, ledger=ledger, rounds=2, seed=1)
            desk = AssistantDesk(found.table, holdout=held)
            model = fitted(desk, "smoker", "age")
            for size in range(8):
                model["coefficients"] = {"age": 0.0, "intercept": -1.0 - size / 10}
                call_tool(desk, "score_on_holdout", {"model": model})
        except hr.BudgetExceeded as refused:
            refusals += "exhausted" in str(refused)
        left.append(ledger.remaining)
        ledger.close()
    assert refusals == 2 and left[1] <= left[0] < 0.1 and ledger.spent <= ledger.budget.total


def test_a_holdout_without_a_column_is_refused() -> None:
    with pytest.raises(hr.InvalidInput, match="must have the columns"):
        ModelHoldout(people.frame(100).drop(columns="age"), people.SMALL, hr.Budget(1.0, 0.0))
