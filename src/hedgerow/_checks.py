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


LONGEST_NAME = 200  # a name that a ledger keeps, of a block or an analyst, has at most this many characters


def require_name(role: str, text: Any, *, may_be_empty: bool = False) -> str:
    """Return a name. Refuse it unless it is a short printable text."""
    if not isinstance(text, str) or len(text) > LONGEST_NAME or not text.isprintable() or not (text or may_be_empty):
        raise InvalidInput(
            f"{role} must be a name of up to {LONGEST_NAME} printable characters. Found {_shorten(text)}. Give a "
            "short text."
        )
    return text


def _shorten(value: Any) -> str:
    """Show a value, cut to 60 characters."""
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:60] + "…"
