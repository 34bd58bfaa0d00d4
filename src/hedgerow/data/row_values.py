"""The values that a function gives to a few rows, as whole numbers of steps, by one rule for every function.

The value of a row is a number from 0 to 1, rounded to the nearest multiple of 2^-20. A number below 0 counts as 0, and
one above 1 as 1. A result that is no number (NaN, a text, None, an array of another shape) counts as 0, and so does a
row on which the function raises. The value depends on that row alone, and not on the other rows that were drawn,
because the function is called for each row by itself.

A function declared ``vectorised`` is called with whole columns. If that raises or returns another shape, it is called
with columns of one row. Whoever declares a function ``vectorised`` guarantees that both give the same values. Warnings
of the function are suppressed. Only Ctrl-C passes through.

Values are whole numbers of steps, so that their sums are exact and one row changes a sum by at most 2^20 steps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from hedgerow._checks import number
from hedgerow._types import Integers
from hedgerow.data.row_store import RowStore
from hedgerow.query.linear import Linear
from hedgerow.query.row_statistic import RowStatistic
from hedgerow.universe.universe import Universe

STEPS = 2**20  # the number of steps in a value of 1
MOST_SAMPLED = 2**30  # the largest number of sampled rows, so that sums of their steps stay below 2^53

Valued = Callable[[Integers], Integers]
"""A function from row numbers to the rows' values in steps."""


def statistic_values(store: RowStore, asked: RowStatistic) -> Valued:
    """Return the function that evaluates a statistic on these rows."""
    store.require(asked.attributes)

    def valued(indices: Integers) -> Integers:
        """Return the values of these rows in steps. The function may not warn or raise."""
        columns = store.take(indices, asked.attributes)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return (
                _call_with_columns(asked.function, columns)
                if asked.vectorised
                else _one_by_one(asked.function, columns)
            )

    return valued


def linear_values(store: RowStore, universe: Universe, asked: Linear) -> Valued:
    """Return the function that evaluates an expression on these rows: the weight of the cells of their values."""
    store.require_cells(universe)
    steps = np.rint(np.clip(asked.table, 0.0, 1.0) * STEPS).astype(np.int64)

    def valued(indices: Integers) -> Integers:
        cells = tuple(store.cells(indices, universe, asked.attributes))
        return np.broadcast_to(steps[cells], indices.shape)

    return valued


def _one_by_one(function: Callable[..., Any], columns: list[Any]) -> Integers:
    """Call the function for each row."""
    plain = [column.tolist() for column in columns]
    return np.fromiter((_value(function, row) for row in zip(*plain, strict=True)), np.int64, len(plain[0]))


def _value(function: Callable[..., Any], row: tuple[Any, ...]) -> int:
    """Return the value of one row in steps."""
    try:
        given = function(*row)
        if isinstance(given, bool | np.bool_):
            return STEPS if given else 0
        value = number(given)
        return 0 if value != value else int(min(max(value, 0.0), 1.0) * STEPS + 0.5)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return 0


def _call_with_columns(function: Callable[..., Any], columns: list[Any]) -> Integers:
    """Call the function with whole columns, or, if that fails, with columns of one row."""
    found = _block(function, columns)
    if found is not None:
        return found
    rows = range(len(columns[0]))
    alone = (_block(function, [column[i : i + 1] for column in columns]) for i in rows)
    return np.fromiter((0 if one is None else int(one[0]) for one in alone), np.int64, len(rows))


def _block(function: Callable[..., Any], columns: list[Any]) -> Integers | None:
    """Return the values of all rows from one call, or None if the result is not one number per row."""
    try:
        given = np.asarray(function(*(column.copy() for column in columns)))
        if given.shape != columns[0].shape or given.dtype.kind not in "biuf":
            return None
        values = np.nan_to_num(given.astype(np.float64), nan=0.0, posinf=1.0, neginf=0.0)
        return np.floor(np.clip(values, 0.0, 1.0) * STEPS + 0.5).astype(np.int64)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None
