"""A function that fails on all made-up records is refused before it costs anything."""

from __future__ import annotations

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.query.row_trial import TRIALS, made_up_records, require_usable

UNIVERSE = hr.Universe(
    age=hr.Integers(17, 90), sex=hr.Categories(["F", "M", None]), smoker=hr.Flag(), pay=hr.Range(0, 10, 4, missing=True),
    seen=hr.Dates("2020-01-01", "2020-12-31", "month"),
)  # fmt: skip
KINDS = {"age": float, "sex": str, "smoker": bool, "pay": float, "seen": str, "note": str}


def test_made_up_records_are_of_the_declared_values_and_types() -> None:
    records = made_up_records(("age", "sex", "smoker", "pay", "seen", "note"), KINDS, UNIVERSE)
    assert len(records) == TRIALS and len(set(records)) > TRIALS / 2
    for age, sex, smoker, pay, seen, note in records:
        assert isinstance(age, float) and 17 <= age <= 90 and sex in ("F", "M") and type(smoker) is bool
        assert 0 <= pay <= 10 and seen.startswith("2020-") and isinstance(note, str)


@pytest.mark.parametrize(
    ("function", "names", "vectorized", "words"),
    [
        (lambda r: r["age"] > 40, ["age"], False, "TypeError.*not with a row"),
        (lambda a: 1 / 0, ["age"], False, "ZeroDivisionError"),
        (lambda a: str(a), ["age"], False, "Found str, which is none"),
        (lambda a: None, ["age"], False, "NoneType"),
        (lambda a: a, ["age"], False, "Found 17.0 for the made-up record age=17.0"),
        (lambda a: -1.0, ["age"], False, "from 0 to 1"),
        (lambda a: a.nothing, ["age"], True, "AttributeError"),
        (lambda a: a.sum(), ["age"], True, "NoneType"),
    ],
)
def test_a_function_without_any_number_is_refused_with_its_exception(function, names, vectorized, words) -> None:
    with pytest.raises(InvalidInput, match=words):
        require_usable(hr.statistic(function, names, vectorized=vectorized), KINDS, UNIVERSE)


@pytest.mark.parametrize(
    ("function", "names", "vectorized"),
    [
        (lambda a: a > 40, ["age"], False),
        (lambda a: 1 / 0 if a < 30 else 1.0, ["age"], False),  # it fails on some records only
        (lambda s: s == "F", ["sex"], False),
        (lambda a: (a > 40).astype(float), ["age"], True),
        (lambda a, s: np.float64(0.5), ["age", "sex"], False),
        (lambda a: 0, ["age"], False),
    ],
)
def test_a_function_with_some_numbers_passes(function, names, vectorized) -> None:
    require_usable(hr.statistic(function, names, vectorized=vectorized), KINDS, UNIVERSE)


def test_nothing_is_charged_for_a_function_that_is_refused() -> None:
    import pandas as pd

    frame = pd.DataFrame({"age": np.arange(500) % 74 + 17})
    with pytest.warns(hr.errors.NotPrivateWarning):
        session = hr.open(
            frame,
            universe=hr.Universe(age=hr.Integers(17, 90)),
            budget=hr.Budget(1.0, 1e-6),
            keep_rows=True,
            reserve=0.5,
            seed=1,
        )
    spent = session.spent
    with pytest.raises(InvalidInput, match="not with a row"):
        session.ask(hr.statistic(lambda r: r["age"] > 40, ["age"]), within=0.2)
    assert session.spent == spent
