"""Check numbers passed by the user, and convert them to Python's own types."""

from __future__ import annotations

import math
from typing import Any

from hedgerow.errors import InvalidInput


def number(value: Any) -> float:
    """Return ``value`` as a plain Python float, or NaN if it is not a number.

    Every range check refuses NaN. An instance of another class is converted, because its methods would otherwise see
    private values.
    """
    try:
        return math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def positive(name: str, value: Any, way_out: str = "Give it as a positive float.") -> float:
    """Return ``value`` as a float. Refuse it unless it is a finite number above 0."""
    found = number(value)
    if not 0 < found < math.inf:
        raise InvalidInput(f"{name} must be a finite number above 0. Found {value!r}. {way_out}")
    return found


def whole(name: str, value: Any, way_out: str = "Give an int.") -> int:
    """Return ``value`` as an int. Refuse it unless it is a whole number of at least 1."""
    if isinstance(value, bool) or not 1 <= number(value) < math.inf or int(value) != value:
        raise InvalidInput(f"{name} must be a whole number of at least 1. Found {value!r}. {way_out}")
    return int(value)
