"""Count how often each value of a column occurs, for drafting a universe. The counts are as secret as the table.

A row counts once in a column: as missing, or under the text of its value, without the blanks around it (``coding``
defines the text). So replacing a row lowers one count and raises one, and adding a row raises one.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.coding import date_in, meaning, number_of
from hedgerow.data.schema import BatchSource
from hedgerow.universe.attributes import BLANKS

Counted = tuple[NDArray[np.float64], NDArray[np.int64]]


@dataclass
class ValueCounts:
    """The counts of one column: ``texts`` by value, and ``missing``."""

    texts: Counter[str] = field(default_factory=Counter)
    missing: int = 0

    def count(self, value: Any, times: int) -> None:
        """Count a value that occurs ``times`` times."""
        text = meaning(value)[0]
        text = None if text is None else text.strip(BLANKS)
        if text:
            self.texts[text] += times
        else:
            self.missing += times

    @functools.cached_property
    def numbers(self) -> Counted:
        """The numbers that occur, in order, and the number of rows of each."""
        return _sort_numbers((number_of(text), times) for text, times in self.texts.items())

    @functools.cached_property
    def days(self) -> Counted:
        """The dates that occur, in days since 1970-01-01, and the number of rows of each."""
        return _sort_numbers((date_in(text), times) for text, times in self.texts.items())

    def kinds(self) -> NDArray[np.int64]:
        """Return how many rows are missing, whole numbers, other numbers, dates and texts, in this order."""
        found = np.zeros(5, np.int64)
        found[0] = self.missing
        for text, times in self.texts.items():
            number = number_of(text)
            if number is None:
                found[4 if date_in(text) is None else 3] += times
            else:
                found[1 if isinstance(number, int) else 2] += times
        return found


def _sort_numbers(found: Iterable[tuple[int | float | None, int]]) -> Counted:
    """Return numbers in order, with their counts."""
    pairs = sorted((_as_float(number), times) for number, times in found if number is not None)
    return np.array([number for number, _ in pairs], float), np.array([times for _, times in pairs], np.int64)


def _as_float(number: int | float) -> float:
    """Return a number as a float, with infinity for a number that is too large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def count_values(source: BatchSource, positions: Sequence[int]) -> list[ValueCounts]:
    """Return the counts of the columns at these positions, read once."""
    tallies = [ValueCounts() for _ in positions]
    for batch in source.batches(positions):
        for tally, column in zip(tallies, batch, strict=True):
            for value, times in group_values(column):
                tally.count(value, times)
    return tallies


def group_values(column: Any) -> Iterable[tuple[Any, int]]:
    """Return values with their counts. Values of plain types are grouped, and the others come one by one."""
    import pyarrow as pa

    family = type(column).__module__.split(".")[0]
    if family == "pandas" and isinstance(column.dtype, np.dtype):
        column = column.to_numpy()
    elif family == "pandas":
        column = column.tolist()
    elif family == "polars":
        column = column.to_list()
    if isinstance(column, np.ndarray) and column.dtype.kind in "iufbM":
        values, times = np.unique(column, return_counts=True, equal_nan=True)
        return zip(values, times.tolist(), strict=True)
    if isinstance(column, pa.Array | pa.ChunkedArray):
        column = _of_arrow(column)
    counted: Counter[tuple[type, Any]] = Counter()
    alone: list[tuple[Any, int]] = []
    for value in column:
        if type(value) in (str, bytes, int, float, bool, type(None)):
            counted[type(value), value] += 1
        else:
            alone.append((value, 1))
    return [*((value, times) for (_, value), times in counted.items()), *alone]


def _of_arrow(array: Any) -> Iterable[Any]:
    """Yield the values of an Arrow array as Python objects."""
    for scalar in array:
        try:
            yield scalar.as_py()
        except Exception:  # a value that Python cannot hold (a year 300,000) gets a text that no label has
            yield "\0"
