"""What a number handed in must be: refused with what was found, or made one of Python's own."""

from __future__ import annotations

import math
from typing import Any

from hedgerow.errors import InvalidInput


def number(value: Any) -> float:
    """`value` as a float of Python's own class, for another's would meet private values.

    NaN, which every check refuses, if it is not a number.
    """
    try:
        return math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def positive(name: str, value: Any, way_out: str = "Give it as a positive float.") -> float:
    """`value` as a float, refused unless it is a finite number above 0."""
    found = number(value)
    if not 0 < found < math.inf:
        raise InvalidInput(f"{name} must be a finite number above 0. Found {value!r}. {way_out}")
    return found


def whole(name: str, value: Any, way_out: str = "Give an int.") -> int:
    """`value` as an int, refused unless it is a whole number of at least 1."""
    if isinstance(value, bool) or not 1 <= number(value) < math.inf or int(value) != value:
        raise InvalidInput(f"{name} must be a whole number of at least 1. Found {value!r}. {way_out}")
    return int(value)
