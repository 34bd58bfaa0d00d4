"""An analyst's own values as cells of the universe, by the same rules as the sensitive table (``data``), in memory.

Numbers outside the declared range are clamped, unknown categories and missing values go to the first cell, or, where an
attribute has ``other=True``, all of them to its extra last cell. Nothing here sees the sensitive table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data import TRUE_WORDS
from hedgerow.errors import InvalidInput
from hedgerow.universe import Attribute, Categories, Flag, Integers, Range, Universe

Cells = NDArray[np.int64]
FALSE_WORDS = ("false", "f", "no", "n", "0", "0.0")


def cells_of(universe: Universe, name: str, frame: Any) -> Cells:
    """The cell of every value of a frame's column."""
    return coded(universe[name], column_of(frame, name))


def column_of(frame: Any, name: str) -> NDArray[Any]:
    """A column of a pandas, polars or Arrow frame, or of a mapping from names to values."""
    try:
        column = frame[name]
    except Exception:  # each kind of frame has its own way to say so
        raise InvalidInput(
            f"X must be a table with a column {name!r}. Found a {type(frame).__name__} without it. "
            "Pass a frame with the columns the estimator was fitted on."
        ) from None
    return np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)


def coded(attribute: Attribute, column: NDArray[Any]) -> Cells:
    """The cell of each value; every value has one."""
    outside = attribute.size - 1 if attribute.other else 0
    if isinstance(attribute, Flag):
        return _says(column, TRUE_WORDS).astype(np.int64)
    if isinstance(attribute, Categories):
        return _categories(attribute, column, outside)
    number = numbers(column)
    known = ~np.isnan(number)
    if isinstance(attribute, Integers):
        low, high = float(attribute.low), float(attribute.high)
        inside = np.floor(np.clip(np.where(known, number, low), low, high)) - low
    else:
        assert isinstance(attribute, Range)
        edges = np.asarray(attribute.edges)
        low, high = float(edges[0]), float(edges[-1])
        inside = np.searchsorted(edges[1:-1], np.where(known, number, low), side="right")
    if attribute.other:
        known &= (number >= low) & (number <= high)
    return np.where(known, inside, outside).astype(np.int64)


def numbers(column: NDArray[Any]) -> NDArray[np.float64]:
    """The values as floats, NaN where they are none."""
    if column.dtype.kind in "biuf":
        return column.astype(float)

    def number(value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            return np.nan

    return np.array([number(value) for value in column], dtype=float)


def _categories(attribute: Categories, column: NDArray[Any], outside: int) -> Cells:
    listed = attribute.labels[: attribute.size - 1] if attribute.other else attribute.labels
    cells = np.full(len(column), outside, np.int64)
    text, number = column.astype(str), None if column.dtype.kind == "b" else numbers(column)
    for i in reversed(range(len(listed))):  # the first label that matches wins
        label = listed[i]
        if isinstance(label, bool):
            matches = _says(column, TRUE_WORDS if label else FALSE_WORDS)
        elif isinstance(label, int | float | np.number) and number is not None:
            matches = number == float(label)
        else:
            matches = text == str(label)
        cells[matches] = i
    return cells


def _says(column: NDArray[Any], words: tuple[str, ...]) -> NDArray[np.bool_]:
    return np.isin(np.char.strip(np.char.lower(column.astype(str))), words)
