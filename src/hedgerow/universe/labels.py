"""JSON forms of labels, the values that an attribute may have, without loss.

Written as themselves: null, true, false, texts, finite floats (their shortest exact decimal) and whole numbers up to
2^53, beyond which other languages round. Everything else is an object with a kind:

    {"kind": "float", "text": "inf"}          also "-inf", for which JSON has no token
    {"kind": "integer", "text": "-9007199254740993"}
    {"kind": "decimal", "text": "3.00"}       and "date", "time", "datetime", in ISO 8601
    {"kind": "tuple", "items": [...]}

Labels are hashable and equal to themselves, so NaN is none. Every label has exactly one text. Universe files and
``hedgerow.serialize`` both write labels in this form.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from hedgerow._json import LARGEST_PLAIN, Json, fields, kind_of, read_list, read_text, refuse
from hedgerow.errors import InvalidInput

LABEL_KINDS = ("date", "datetime", "decimal", "float", "integer", "time", "tuple")
MOST_DIGITS = 1000  # a whole number or a decimal has at most this many digits
_NON_FINITE = {"inf": math.inf, "-inf": -math.inf}
_ITEMS: dict[str, Callable[[str], Any]] = {
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "time": datetime.time.fromisoformat,
    "decimal": Decimal,
}
_TEXTS: dict[type, tuple[str, Callable[[Any], str]]] = {
    datetime.date: ("date", datetime.date.isoformat),
    datetime.datetime: ("datetime", datetime.datetime.isoformat),
    datetime.time: ("time", datetime.time.isoformat),
    Decimal: ("decimal", str),
}


def write_label(value: Any) -> Json:
    """Return a label as a JSON value."""
    value = without_numpy(value)
    if value is None or type(value) is bool:
        return value
    if type(value) is str:
        return read_text("A text", value)
    if type(value) is int:
        return write_integer(value)
    if type(value) is float and not math.isnan(value):
        return value if math.isfinite(value) else {"kind": "float", "text": repr(value)}
    if type(value) is tuple:
        return {"kind": "tuple", "items": [write_label(item) for item in value]}
    if type(value) in _TEXTS:
        kind, text_of = _TEXTS[type(value)]
        written = {"kind": kind, "text": text_of(value)}
        if not is_nan(value) and _read_item(written) == value:
            return written
    raise InvalidInput(
        "A value must be None, a bool, a text, an int, a float that is a number, a date, a time, a Decimal, or a "
        f"tuple of these. Found {type(value).__name__}. Convert it to one of these types, or use None for a missing "
        "value."
    )


def read_label(record: Json) -> Any:
    """Read a label that ``write_label`` wrote."""
    if record is None or isinstance(record, bool | int | float | str):
        return read_text("A text", record) if isinstance(record, str) else record
    kind = kind_of(record)
    if kind == "tuple":
        return tuple(read_label(item) for item in read_list("The items of a tuple", fields(record, "items")[0]))
    if kind == "integer":
        return _read_integer(record)
    if kind == "float":
        number = _NON_FINITE.get(read_text("A float", fields(record, "text")[0]), math.nan)
        return refuse("A float", "'inf' or '-inf'", record["text"]) if math.isnan(number) else number
    if kind in _ITEMS:
        return _read_item(record)
    return refuse("A value", "a plain one or of a kind in " + ", ".join(LABEL_KINDS), record if kind is None else kind)


def without_numpy(value: Any) -> Any:
    """Convert NumPy scalars to Python ones if their equality and their text stay the same."""
    if type(value) in (str, float, int, bool):  # nearly always, and this is called for every text and number
        return value
    if type(value) is np.str_:
        return "".join([value])  # np.str_.item() would lose a NUL at the end
    return value.item() if type(value) in (np.bool_, np.float64) or isinstance(value, np.integer) else value


def is_nan(value: Any) -> bool:
    """Return True for a float or a Decimal that is not a number."""
    return value.is_nan() if type(value) is Decimal else isinstance(value, float) and math.isnan(value)


def write_integer(value: int) -> Json:
    """Return a whole number as a JSON value, as text if it is large."""
    if abs(value) <= LARGEST_PLAIN:
        return value
    if abs(value) >= 10**MOST_DIGITS:
        raise InvalidInput(
            f"A whole number must have at most {MOST_DIGITS} digits. Found a longer number. Give a smaller one."
        )
    return {"kind": "integer", "text": str(value)}


def _read_integer(record: dict[str, Json]) -> int:
    """Read a large whole number from its text."""
    text = read_text("A whole number", fields(record, "text")[0])
    digits = text.removeprefix("-")
    value = int(text) if digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS else 0
    if str(value) != text or abs(value) <= LARGEST_PLAIN:
        refuse("A whole number in a text", "beyond 2^53, of digits alone", text)
    return value


def _read_item(record: dict[str, Json]) -> Any:
    """Read a date, time or decimal; refuse a text other than the one Python writes."""
    kind = record["kind"]
    text = read_text(f"A {kind}", fields(record, "text")[0])
    try:
        item = _ITEMS[kind](text) if len(text) <= MOST_DIGITS else None
    except (ValueError, InvalidOperation, OverflowError):
        item = None
    if item is None or type(item) not in _TEXTS or _TEXTS[type(item)][1](item) != text or is_nan(item):
        refuse(f"A {kind}", "as Python writes it", text)
    return item
