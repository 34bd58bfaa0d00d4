"""What a function says of each of a few rows, as a whole number of steps: one rule, whatever the function does.

The value of a row is a number from 0 to 1, to the nearest multiple of 2^-20. Below 0 is 0, above 1 is 1; what is no number (NaN,
a text, None, an array of another shape) is 0, and so is a row on which the function raises. It depends on that row alone and not on
which others were drawn: the function is called for each row by itself. A function declared ``vectorised`` is called with
whole columns, and where that raises or gives another shape, with columns of one row; who declares it vouches that this is the
same. Nothing the function says on its way (warnings) is heard. Ctrl-C alone goes through.

Values are whole numbers of steps, so that their sums are exact and one row moves a sum by at most 2^20 steps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from hedgerow._checks import number
from hedgerow._types import Integers
from hedgerow.data.rows import Rows
from hedgerow.questions.linear import Linear
from hedgerow.questions.row_statistic import RowStatistic
from hedgerow.questions.universe import Universe

STEPS = 2**20  # of a value of 1
MOST_SAMPLED = 2**30  # rows: sums of their steps are below 2^53

Valued = Callable[[Integers], Integers]
"""From the numbers of rows to their values in steps."""


def statistic_values(rows: Rows, asked: RowStatistic) -> Valued:
    """The function of a statistic on these rows."""
    rows.require(asked.attributes)

    def valued(indices: Integers) -> Integers:
        columns = rows.take(indices, asked.attributes)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return _vectorised(asked.function, columns) if asked.vectorised else _one_by_one(asked.function, columns)

    return valued


def linear_values(rows: Rows, universe: Universe, asked: Linear) -> Valued:
    """An expression on these rows: the weight of the cells that their values have, as everywhere else."""
    rows.require_cells(universe)
    steps = np.rint(np.clip(asked.table, 0.0, 1.0) * STEPS).astype(np.int64)

    def valued(indices: Integers) -> Integers:
        cells = tuple(rows.cells(indices, universe, asked.attributes))
        return np.broadcast_to(steps[cells], indices.shape)

    return valued


def _one_by_one(function: Callable[..., Any], columns: list[Any]) -> Integers:
    plain = [column.tolist() for column in columns]
    return np.fromiter((_value(function, row) for row in zip(*plain, strict=True)), np.int64, len(plain[0]))


def _value(function: Callable[..., Any], row: tuple[Any, ...]) -> int:
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


def _vectorised(function: Callable[..., Any], columns: list[Any]) -> Integers:
    found = _block(function, columns)
    if found is not None:
        return found
    rows = range(len(columns[0]))
    alone = (_block(function, [column[i : i + 1] for column in columns]) for i in rows)
    return np.fromiter((0 if one is None else int(one[0]) for one in alone), np.int64, len(rows))


def _block(function: Callable[..., Any], columns: list[Any]) -> Integers | None:
    """The values of all rows at once; None where there are not as many numbers."""
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
