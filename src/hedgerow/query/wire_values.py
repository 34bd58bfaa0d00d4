"""JSON forms of plain values: numbers, texts, labels, lists and arrays, without loss.

Written as themselves: null, true, false, texts, finite floats (their shortest exact decimal) and whole numbers up to
2^53, beyond which other languages round. Everything else is an object with a kind:

    {"kind": "float", "text": "inf"}          also "-inf" and "nan", for which JSON has no token
    {"kind": "integer", "text": "-9007199254740993"}
    {"kind": "decimal", "text": "3.00"}       and "date", "time", "datetime", in ISO 8601
    {"kind": "tuple", "items": [...]}
    {"kind": "array", "dtype": "float64", "shape": [2, 3], "data": "AAAA…"}

An array is the base64 of its items in C order, little-endian. Booleans are packed eight to a byte, the first in the
highest bit. Every value has exactly one text, so a value that is read and written again has the same text.

``write_…`` and ``read_…`` are pairs. Both refuse with InvalidInput. A reader assumes nothing about its input except
that it is plain JSON, which ``wire.from_json`` has checked.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import math
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Names
from hedgerow.errors import InvalidInput
from hedgerow.query.linear import LARGEST_TABLE

Json = Any
"""None, bool, int, float, str, a list of these or a dict from str to these."""

LARGEST_PLAIN = 2**53  # every JSON reader agrees on whole numbers up to this one
MOST_DIGITS = 1000  # a whole number or a decimal has at most this many digits
MOST_AXES = 32  # an array has at most this many axes
DTYPES = {"bool": np.dtype(bool), "int64": np.dtype("<i8"), "float64": np.dtype("<f8")}
VALUE_KINDS = ("array", "date", "datetime", "decimal", "float", "integer", "time", "tuple")
_NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
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


def refuse(role: str, wanted: str, found: Any, way_out: str = "Correct the record.") -> NoReturn:
    """Raise InvalidInput: ``role`` must be ``wanted``, but ``found`` was found."""
    raise InvalidInput(f"{role} must be {wanted}. Found {shown(found)}. {way_out}")


def shown(found: Any) -> str:
    """Describe a value briefly, because a hostile record may be long."""
    if found is None or isinstance(found, bool | float):
        return repr(found)
    if isinstance(found, str):
        return repr(found if len(found) <= 40 else found[:40] + "…")
    return repr(found) if isinstance(found, int) and abs(found) < 10**40 else f"a {type(found).__name__}"


def kind_of(record: Json) -> str | None:
    """Return the kind of a record, or None if it has none."""
    kind = record.get("kind") if type(record) is dict else None
    return kind if type(kind) is str else None


# Plain values, as an answer or a released measurement may hold them.


def write_value(value: Any) -> Json:
    """Write a label, a NaN, an array, or a list or tuple of these."""
    if isinstance(value, np.ndarray):
        return write_array(value)
    if type(value) is list:
        return [write_value(item) for item in value]
    if type(value) is tuple:
        return {"kind": "tuple", "items": [write_value(item) for item in value]}
    return {"kind": "float", "text": "nan"} if _is_nan(value) else write_label(value)


def read_value(record: Json) -> Any:
    """Read a value that ``write_value`` wrote."""
    if isinstance(record, list):
        return [read_value(item) for item in record]
    kind = kind_of(record)
    if kind == "array":
        return read_array(record)
    if kind == "tuple":
        return tuple(read_value(item) for item in read_list("The items of a tuple", fields(record, "items")[0]))
    return math.nan if record == {"kind": "float", "text": "nan"} else read_label(record)


# Labels: the values that an attribute may have. They are hashable and equal to themselves, so NaN is none.


def write_label(value: Any) -> Json:
    """Write a label."""
    value = _own(value)
    if value is None or type(value) is bool:
        return value
    if type(value) is str:
        return write_text("A text", value)
    if type(value) is int:
        return _write_integer(value)
    if type(value) is float and not math.isnan(value):
        return value if math.isfinite(value) else {"kind": "float", "text": repr(value)}
    if type(value) is tuple:
        return {"kind": "tuple", "items": [write_label(item) for item in value]}
    if type(value) in _TEXTS:
        kind, text_of = _TEXTS[type(value)]
        written = {"kind": kind, "text": text_of(value)}
        if not _is_nan(value) and _read_item(written) == value:
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
    return refuse("A value", "a plain one or of a kind in " + ", ".join(VALUE_KINDS), record if kind is None else kind)


def _own(value: Any) -> Any:
    """Convert NumPy scalars to Python ones, if that changes neither what they equal nor how they are written."""
    if type(value) is np.str_:
        return "".join([value])  # np.str_.item() would lose a NUL at the end
    return value.item() if type(value) in (np.bool_, np.float64) or isinstance(value, np.integer) else value


def _is_nan(value: Any) -> bool:
    return value.is_nan() if type(value) is Decimal else isinstance(value, float) and math.isnan(value)


def _read_item(record: dict[str, Json]) -> Any:
    """Read a date, time or decimal; refuse a text other than the one Python writes."""
    kind = record["kind"]
    text = read_text(f"A {kind}", fields(record, "text")[0])
    try:
        item = _ITEMS[kind](text) if len(text) <= MOST_DIGITS else None
    except (ValueError, InvalidOperation, OverflowError):
        item = None
    if item is None or type(item) not in _TEXTS or _TEXTS[type(item)][1](item) != text or _is_nan(item):
        refuse(f"A {kind}", "as Python writes it", text)
    return item


def _write_integer(value: int) -> Json:
    """Write a whole number, as text if it is large."""
    if abs(value) <= LARGEST_PLAIN:
        return value
    if abs(value) >= 10**MOST_DIGITS:
        raise InvalidInput(f"A whole number must have at most {MOST_DIGITS} digits. Found more. Give a smaller one.")
    return {"kind": "integer", "text": str(value)}


def _read_integer(record: dict[str, Json]) -> int:
    """Read a large whole number from its text."""
    text = read_text("A whole number", fields(record, "text")[0])
    digits = text.removeprefix("-")
    value = int(text) if digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS else 0
    if str(value) != text or abs(value) <= LARGEST_PLAIN:
        refuse("A whole number in a text", "beyond 2^53, of digits alone", text)
    return value


# Values of one given type, for fields.


def write_text(role: str, value: Any) -> str:
    """Write a text."""
    return read_text(role, _own(value))


def read_text(role: str, record: Json) -> str:
    """Return a plain str. Refuse lone surrogates, because two of them would be read back as one character."""
    if type(record) is not str or not _is_whole(record):
        refuse(role, "a text of whole characters", record)
    return record


def _is_whole(text: str) -> bool:
    """Return True if a text has no lone surrogates."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def write_number(role: str, value: Any) -> Json:
    """Write a number as a float."""
    value = _own(value)
    if type(value) not in (int, float):
        refuse(role, "a number", value)
    return write_value(float(value))


def read_number(role: str, record: Json) -> float:
    """Read a float, also if it was written without a point. Non-finite numbers must be written as objects."""
    value = read_value(record) if isinstance(record, dict) else record
    if type(value) not in (int, float) or (type(value) is int and abs(value) > LARGEST_PLAIN):
        refuse(role, "a number", record)
    return float(value)


def write_whole(role: str, value: Any) -> Json:
    """Write a whole number."""
    value = _own(value)
    return _write_integer(value) if type(value) is int else refuse(role, "a whole number", value)


def read_whole(role: str, record: Json) -> int:
    """Read a whole number."""
    value = read_label(record) if isinstance(record, dict) else record
    if type(value) is not int:
        refuse(role, "a whole number", record)
    return value


def write_flag(role: str, value: Any) -> bool:
    """Write a boolean."""
    return read_flag(role, _own(value))


def read_flag(role: str, record: Json) -> bool:
    """Read a boolean."""
    if type(record) is not bool:
        refuse(role, "true or false", record)
    return record


def read_list(role: str, record: Json) -> list[Json]:
    """Return a list; refuse anything else."""
    if type(record) is not list:
        refuse(role, "a list", record)
    return record


def read_pairs(role: str, record: Json) -> list[tuple[str, Json]]:
    """Read pairs of a name and a record. Refuse repeated names."""
    pairs = []
    for pair in read_list(role, record):
        if type(pair) is not list or len(pair) != 2:
            refuse(role, "a list of pairs", pair)
        pairs.append((read_text("A name", pair[0]), pair[1]))
    if len(dict(pairs)) != len(pairs):
        refuse(role, "of different names", [name for name, _ in pairs])
    return pairs


def write_names(role: str, names: Sequence[Any]) -> list[Json]:
    """Write a sequence of names."""
    return [write_text(role, name) for name in names]


def read_names(role: str, record: Json) -> Names:
    """Read a list of names."""
    return tuple(read_text(role, name) for name in read_list(role, record))


def write_array(array: NDArray[Any]) -> dict[str, Json]:
    """Write an array of booleans, 64-bit integers or floats."""
    dtype = next((name for name, known in DTYPES.items() if array.dtype == known), None)
    if dtype is None or array.size > LARGEST_TABLE or array.ndim > MOST_AXES:
        raise InvalidInput(
            f"An array must be of {', '.join(DTYPES)}, with at most {LARGEST_TABLE} items and {MOST_AXES} axes. "
            f"Found {array.dtype} of shape {array.shape}. Convert it."
        )
    plain: NDArray[Any] = np.ascontiguousarray(array, dtype=DTYPES[dtype])
    items = np.packbits(plain) if dtype == "bool" else plain
    data = base64.b64encode(items.tobytes()).decode("ascii")
    return {"kind": "array", "dtype": dtype, "shape": list(array.shape), "data": data}


def read_array(record: Json, *dtypes: str) -> NDArray[Any]:
    """Read an array into memory of its own. Its dtype must be one of ``dtypes``, if any are named."""
    if kind_of(record) != "array":
        refuse("An array", 'an object of kind "array"', record)
    dtype, shape, data = fields(record, "dtype", "shape", "data")
    if not isinstance(dtype, str) or dtype not in (dtypes or DTYPES):
        refuse("The dtype of an array", " or ".join(dtypes or DTYPES), dtype)
    sizes = tuple(read_whole("A side of an array", side) for side in read_list("The shape of an array", shape))
    if len(sizes) > MOST_AXES or any(not 0 <= side <= LARGEST_TABLE for side in sizes):
        refuse("The shape of an array", f"at most {MOST_AXES} sides from 0 to {LARGEST_TABLE}", sizes)
    cells = math.prod(sizes)
    length = -(-cells // 8) if dtype == "bool" else 8 * cells
    text = read_text("The data of an array", data)
    if len(text) != -(-length // 3) * 4 or cells > LARGEST_TABLE:
        refuse("The data of an array", f"base64 of {length} bytes, for at most {LARGEST_TABLE} items", data)
    try:
        items = base64.b64decode(text.encode("ascii"), validate=True)
    except (ValueError, binascii.Error):
        refuse("The data of an array", "base64", data)
    array = _unpacked(items, dtype, cells) if len(items) == length else None
    if array is None or write_array(array)["data"] != text:
        refuse("The data of an array", "base64 with nothing but zeros beyond its items", data)
    return array.reshape(sizes)


def _unpacked(items: bytes, dtype: str, cells: int) -> NDArray[Any]:
    """Return the items of an array from their bytes."""
    if dtype == "bool":
        return np.unpackbits(np.frombuffer(items, np.uint8), count=cells).astype(bool)
    return np.frombuffer(items, DTYPES[dtype]).astype(DTYPES[dtype].newbyteorder("="))


def fields(record: dict[str, Json], *names: str) -> list[Json]:
    """Return the named fields of a record, in this order. Refuse a record with other fields."""
    require_fields(record, names)
    return [record[name] for name in names]


def require_fields(record: dict[str, Json], names: Collection[str], optional: Collection[str] = ()) -> None:
    """Refuse a record unless it has exactly the fields ``names``, of which ``optional`` ones may be missing."""
    found = set(record) - {"kind"}
    if not set(names) - set(optional) <= found <= set(names):
        raise InvalidInput(
            f"The fields of {shown(kind_of(record))} must be {', '.join(sorted(names)) or 'none'}. "
            f"Found {', '.join(shown(name) for name in sorted(found)[:12]) or 'none'}. "
            "Read the record with the version that wrote it."
        )
