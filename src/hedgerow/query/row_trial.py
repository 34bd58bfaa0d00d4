"""Try a function of a record on made-up records, before it is billed.

A function that fails on a row counts as 0 there, so that nothing about the row shows. A function that fails on every
row would be 0 with a guaranteed bar. So it is first called with records made of the universe's values, which are
public: what happens then is a public fact, too.
"""

from __future__ import annotations

import datetime
import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from hedgerow._checks import number
from hedgerow.errors import InvalidInput
from hedgerow.query.row_statistic import RowStatistic
from hedgerow.universe.universe import Universe

TRIALS = 24  # the number of made-up records
STRIDES = (1, 5, 7, 11, 13)  # steps through the values of each attribute, so that combinations vary
MOST_VALUES = 48  # at most this many values of an attribute are used


def require_usable(asked: RowStatistic, kinds: Mapping[str, type], universe: Universe) -> None:
    """Refuse a function that raises on all made-up records, or returns no number from 0 to 1 on any of them."""
    records = made_up_records(asked.attributes, kinds, universe)
    found: list[Any] = []
    failure: BaseException | None = None
    for record in records:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found.append(_call(asked, record))
        except KeyboardInterrupt:
            raise
        except BaseException as failed:
            failure = failed
    shown = ", ".join(f"{name}={value!r}" for name, value in zip(asked.attributes, records[0], strict=True))
    if not found and failure is not None:
        reason = f"{type(failure).__name__}: {failure}" if str(failure) else type(failure).__name__
        raise InvalidInput(
            f"function must return a number for some record. Found {reason[:200]}, on all made-up records, such as "
            f"{shown}. It is called with the values of {', '.join(asked.attributes)}, not with a row: correct it."
        )
    numbers = [_number(value) for value in found]
    if all(map(math.isnan, numbers)):
        raise InvalidInput(
            f"function must return a number from 0 to 1. Found {type(found[0]).__name__}, which is none, on all "
            f"made-up records, such as {shown}. Return a number or a truth value."
        )
    if all(math.isnan(value) or not 0 <= value <= 1 for value in numbers):
        raise InvalidInput(
            f"function must return a number from 0 to 1. Found {found[0]!r} for the made-up record {shown}, and "
            "nothing from 0 to 1 for others. Scale it, for example to (age - 17) / 73."
        )


def made_up_records(names: tuple[str, ...], kinds: Mapping[str, type], universe: Universe) -> list[tuple[Any, ...]]:
    """Return public records: values that the universe declares, combined in different ways."""
    values = [_values(name, kinds[name], universe) for name in names]
    return [
        tuple(column[i * STRIDES[j % len(STRIDES)] % len(column)] for j, column in enumerate(values))
        for i in range(TRIALS)
    ]


def _values(name: str, kind: type, universe: Universe) -> list[Any]:
    """Return some public values of a column, as a function of a record gets them."""
    if kind is bool:
        return [True, False]
    declared = universe[name] if name in universe.names else None
    if declared is None:
        return [0.0, 1.0, 10.0, 0.5, -1.0, 1000.0] if kind is float else ["a", "b", "1", "2020-01-31"]
    places = np.unique(np.linspace(0, len(declared.listed) - 1, MOST_VALUES).astype(int)).tolist()
    if kind is float:
        return [float(declared.values[i]) for i in places] if declared.values is not None else [0.0, 1.0]
    labels = [declared.plain_labels[i] for i in places]
    return [
        label.isoformat() if isinstance(label, datetime.date) else str(label) for label in labels if label is not None
    ]


def _call(asked: RowStatistic, record: tuple[Any, ...]) -> Any:
    """Call the function with one record, or with columns of one record."""
    if not asked.vectorised:
        return asked.function(*record)
    given = np.asarray(asked.function(*(np.array([value]) for value in record)))
    return given[0] if given.shape == (1,) and given.dtype.kind in "biuf" else None


def _number(value: Any) -> float:
    """Return the number that a function returned, or NaN."""
    return float(value) if isinstance(value, bool | np.bool_) else number(value)
