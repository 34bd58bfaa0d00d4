"""No error tells what the rows of a holdout contain, and no row changes the value of another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.errors import InvalidInput

TRAIN = np.column_stack([np.arange(200) % 2, np.arange(200) % 3]).astype(object)
TARGET = np.arange(200) % 2


def selected(held: Any, train: Any) -> list[Any]:
    holdout = hr.Holdout((held, TARGET), hr.Budget(10, 0.0), train=(train, TARGET), seed=1)
    return [one.column for one in holdout.select_features()]


@pytest.mark.parametrize(
    "awkward", ["secret", None, [1], 10**400, pd.Timestamp("2020")], ids=lambda value: type(value).__name__
)
def test_a_row_that_holds_no_number_is_not_quoted_and_not_refused(awkward: Any) -> None:
    held = TRAIN.copy()
    held[7, 0] = awkward
    assert selected(held, TRAIN)[0] == 0
    named, train = pd.DataFrame(held, columns=["a", "b"]), pd.DataFrame(TRAIN, columns=["a", "b"])
    assert selected(named, train)[0] == "a"


@pytest.mark.parametrize("by_row", [False, True])
def test_a_model_that_writes_to_a_frame_changes_no_later_score(by_row: bool) -> None:
    """The written values may depend on all rows, and later models would see them."""
    frame = pd.DataFrame({"a": TARGET.astype(float)})
    holdout = hr.Holdout((frame, TARGET), hr.Budget(1000, 0.0), seed=1)

    def spoiling(X: pd.DataFrame) -> Any:
        X["a"] -= 1000.0
        X.iloc[:, 0] = 7.0
        X["b"] = 1.0
        return X["a"]

    for model in (spoiling, lambda X: X["a"]):
        last = holdout.score(model, guess=1.0, by_row=by_row)
    assert last.source == "guess" and list(frame.columns) == ["a"] and frame["a"].tolist() == TARGET.tolist()


def test_a_metric_cannot_write_to_the_target() -> None:
    target = TARGET.copy()
    holdout = hr.Holdout((TRAIN, target), hr.Budget(1000, 0.0), seed=1)

    def spoiling(y: Any, predicted: Any) -> Any:
        y[:] = 0
        return np.zeros(200)

    with pytest.raises(InvalidInput, match="Found that one of them raised"):
        holdout.score(lambda X: X[:, 0], spoiling, guess=0.5)
    assert target.tolist() == TARGET.tolist()
