"""The value of a function on a row follows one rule, whatever the function does and whichever other rows were drawn."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.data import Table
from hedgerow.data.row_store import in_memory
from hedgerow.data.row_values import STEPS, linear_values, statistic_values
from hedgerow.errors import InvalidInput
from hedgerow.query.counts import bound

VALUES = [0.0, 0.25, 1.0, 1.5, -2.0, math.nan, math.inf, -math.inf, 7.0, 8.0]
ROWS = in_memory({"x": VALUES, "s": [str(v) for v in VALUES], "b": [v > 0.5 for v in VALUES]})


def odd(x: float):
    """Everything a function may do wrong, each on rows of its own."""
    if x == 7.0:
        raise SystemExit("private text")
    return {8.0: "0.5", 1.5: None, -2.0: [1.0], 0.25: np.float64(0.25), 1.0: True}.get(x, x)


def odd_columns(x: np.ndarray):
    if (x == 7.0).any():
        raise ValueError("private text")
    return x if not (x == 8.0).any() else x[:0]


def values(function, indices, vectorised=False, attributes="x") -> list[float]:
    asked = hr.statistic(function, attributes, vectorised=vectorised)
    return (statistic_values(ROWS, asked)(np.asarray(indices)) / STEPS).tolist()


def test_the_rule_is_cut_to_0_and_1_and_0_for_what_raises_or_is_no_number() -> None:
    assert values(lambda x: x, range(10)) == [0.0, 0.25, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0]
    assert values(odd, range(10)) == [0.0, 0.25, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert values(odd_columns, range(10), True) == [0.0, 0.25, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert values(lambda x: x * 1j, range(3), True) == [0.0, 0.0, 0.0]
    assert values(lambda x: 10**400, range(2)) == [0.0, 0.0]


@pytest.mark.parametrize(("function", "vectorised"), [(odd, False), (odd_columns, True)])
def test_the_value_of_a_row_does_not_depend_on_which_others_were_drawn(function, vectorised) -> None:
    alone = [values(function, [i], vectorised)[0] for i in range(10)]
    for some in itertools.chain(itertools.permutations(range(10), 2), [range(10), [7] * 5, [8, 0, 7, 8]]):
        assert values(function, list(some), vectorised) == [alone[i] for i in some]


def test_a_function_of_a_row_sees_that_row_alone_as_plain_values() -> None:
    seen = []
    values(lambda *row: seen.append(row), [1, 2], attributes=["s", "x", "b"])
    assert seen == [("0.25", 0.25, False), ("1.0", 1.0, True)]
    assert [type(value) for value in seen[0]] == [str, float, bool]


def test_an_aggregate_that_mixes_rows_is_evaluated_row_by_row_unless_vouched_for() -> None:
    mixing = lambda x: np.mean(x)  # noqa: E731
    assert values(mixing, [0, 1, 2]) == [0.0, 0.25, 1.0]
    assert values(mixing, [0, 1, 2], True) == [0.0, 0.0, 0.0]  # one number is no column of three, nor of one


def test_changes_that_a_function_makes_to_its_columns_are_undone() -> None:
    def spoiling(x):
        x[:] = 1.0
        return x

    assert values(spoiling, [0, 1], True) == [1.0, 1.0]
    assert values(lambda x: x, [0, 1], True) == [0.0, 0.25]


def test_warnings_and_errors_of_a_function_are_dropped_except_the_users_interrupt() -> None:
    def loud(x):
        warnings.warn(f"a value of {x}", stacklevel=1)
        return np.float64(1.0) / (x - x)

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        values(loud, range(10))
        values(lambda x: np.sqrt(-x) / 0.0, range(10), True)
    assert heard == []

    def stopped(x):
        raise KeyboardInterrupt

    for vectorised in (False, True):
        with pytest.raises(KeyboardInterrupt):
            values(stopped, [0], vectorised)


def test_values_are_whole_steps_of_which_a_row_has_at_most_2_to_the_20() -> None:
    found = statistic_values(ROWS, hr.statistic(lambda x: 1 / 3, "x"))(np.arange(10))
    assert found.dtype == np.int64 and STEPS == 2**20 and set(found.tolist()) == {round(2**20 / 3)}


def test_an_expression_has_the_value_of_the_cell_of_each_row() -> None:
    universe = hr.Universe(
        {"x": hr.Range(0, 1, bins=4), "s": hr.Categories(["1.0", "7.0"], other=True), "b": hr.Flag()}
    )
    asked = [
        hr.count(b=True),
        hr.count(s="7.0") | hr.count(x="[0.25, 0.5)"),
        ~hr.count(s=hr.OTHER),
        hr.linear(["x"], [0.0, 0.3, 0.7, 1.0]),
    ]
    table = Table(pd.DataFrame({"x": VALUES, "s": [str(v) for v in VALUES], "b": [v > 0.5 for v in VALUES]}), universe)
    rows = in_memory({"x": VALUES, "s": [str(v) for v in VALUES], "b": [v > 0.5 for v in VALUES]}, coded=universe)
    for query in asked:
        linear = bound(query, universe)
        found = linear_values(rows, universe, linear)(np.arange(10)).sum() / STEPS
        assert found == pytest.approx(float(linear.dot(table.marginal(linear.attributes))), abs=1e-5)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: hr.statistic(3, "x"), "function must be callable"),
        (lambda: hr.statistic(abs, []), "attributes must be different names"),
        (lambda: hr.statistic(abs, ["x", "x"]), "attributes must be different names"),
        (lambda: hr.statistic(abs, "x", within=0.0), "within must be above 0"),
        (lambda: statistic_values(ROWS, hr.statistic(abs, "height")), "Found no 'height'"),
        (lambda: ~hr.statistic(abs, "x"), "must be"),
    ],
)
def test_publicly_wrong_arguments_are_refused(make, said) -> None:
    with pytest.raises(InvalidInput, match=said):
        make()
