"""Counts of values: a row counts once in a column, whatever it contains."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from awkward_values import AWKWARD

from hedgerow.data.readers import open_batches
from hedgerow.data.value_counts import ValueCounts, count_values


def tally_of(values) -> ValueCounts:
    return count_values(open_batches(pd.DataFrame({"a": pd.Series(values, dtype=object)}), None, None), [0])[0]


def test_a_row_counts_once() -> None:
    """In the texts or as missing, and in one kind; no value is refused."""
    tally = tally_of(AWKWARD)
    assert sum(tally.texts.values()) + tally.missing == len(AWKWARD) == tally.kinds().sum()
    assert tally.numbers[1].sum() == tally.kinds()[1:3].sum() and tally.days[1].sum() >= tally.kinds()[3]


@pytest.mark.parametrize("value", AWKWARD, ids=lambda v: type(v).__name__)
def test_a_replaced_row_moves_two_counts_by_one_at_most(value) -> None:
    one, other = tally_of(["F", "3", value]), tally_of(["F", "3", "M"])
    moved = [one.texts[t] - other.texts[t] for t in one.texts | other.texts] + [one.missing - other.missing]
    assert sum(map(abs, moved)) <= 2 and sum(moved) == 0
    assert np.abs(one.kinds() - other.kinds()).sum() <= 2


def test_blanks_around_a_text_do_not_make_another_value() -> None:
    tally = tally_of([" F", "F ", "F", "  ", "", None])
    assert (dict(tally.texts), tally.missing) == ({"F": 3}, 3)


def test_a_missing_value_of_any_type_is_missing() -> None:
    for column in (pa.array([1.5, None]), pa.array(["a", None]), pa.array([True, None])):
        assert count_values(open_batches(pa.table({"a": column}), None, None), [0])[0].missing == 1
    assert count_values(open_batches(pd.DataFrame({"a": [1.5, np.nan, np.nan]}), None, None), [0])[0].missing == 2
