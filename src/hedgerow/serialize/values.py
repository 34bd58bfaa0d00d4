"""JSON forms of plain values: numbers, texts, labels, lists and arrays, without loss.

Labels are written as ``universe.labels`` says. Beyond them there are

    {"kind": "float", "text": "nan"}          NaN, for which JSON has no token
    {"kind": "array", "dtype": "float64", "shape": [2, 3], "data": "AAAA…"}

An array is the base64 of its items in C order, little-endian. Booleans are packed eight to a byte, the first in the
highest bit. Every value has exactly one text, so a value that is read and written again has the same text.

``write_…`` and ``read_…`` are pairs. Both refuse with InvalidInput. A reader assumes nothing about its input except
that it is plain JSON, which ``records.from_json`` has checked.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._json import LARGEST_PLAIN, Json, fields, kind_of, read_list, read_text, refuse
from hedgerow._types import Names
from hedgerow.errors import InvalidInput
from hedgerow.query.linear import LARGEST_TABLE
from hedgerow.universe.labels import LABEL_KINDS, is_nan, read_label, without_numpy, write_integer, write_label

REMEMBERED = 1024  # the texts of masks up to this size are remembered
MOST_AXES = 32  # an array has at most this many axes
DTYPES = {"bool": np.dtype(bool), "int64": np.dtype("<i8"), "float64": np.dtype("<f8")}
VALUE_KINDS = ("array", *LABEL_KINDS)
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


# Plain values, as an answer or a released measurement may hold them.


def write_value(value: Any) -> Json:
    """Write a label, a NaN, an array, or a list or tuple of these."""
    if type(value) is float and math.isfinite(value):  # the most frequent first
        return value
    if isinstance(value, np.ndarray):
        return write_array(value)
    if type(value) is list:
        return [write_value(item) for item in value]
    if type(value) is tuple:
        return {"kind": "tuple", "items": [write_value(item) for item in value]}
    return {"kind": "float", "text": "nan"} if is_nan(value) else write_label(value)


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


# Values of one given type, for fields.


def write_text(role: str, value: Any) -> str:
    """Write a text."""
    return read_text(role, without_numpy(value))


def write_number(role: str, value: Any) -> Json:
    """Write a number as a float."""
    value = without_numpy(value)
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
    value = without_numpy(value)
    return write_integer(value) if type(value) is int else refuse(role, "a whole number", value)


def read_whole(role: str, record: Json) -> int:
    """Read a whole number."""
    value = read_label(record) if isinstance(record, dict) else record
    if type(value) is not int:
        refuse(role, "a whole number", record)
    return value


def write_flag(role: str, value: Any) -> bool:
    """Write a boolean."""
    return read_flag(role, without_numpy(value))


def read_flag(role: str, record: Json) -> bool:
    """Read a boolean."""
    if type(record) is not bool:
        refuse(role, "true or false", record)
    return record


def read_pair(role: str, record: Json) -> tuple[Json, Json]:
    """Return the two items of a pair; refuse anything else."""
    if type(record) is not list or len(record) != 2:
        refuse(role, "a pair of a name and a value", record)
    return record[0], record[1]


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
    dtype = _NAMES.get(array.dtype)
    if dtype is None or array.size > LARGEST_TABLE or array.ndim > MOST_AXES:
        raise InvalidInput(
            f"An array must be of {', '.join(DTYPES)}, with at most {LARGEST_TABLE} items and {MOST_AXES} axes. "
            f"Found {array.dtype} of shape {array.shape}. Convert it."
        )
    items = array.astype(DTYPES[dtype], copy=False).tobytes()  # in C order
    if dtype == "bool":
        data = _pack(items) if len(items) <= REMEMBERED else _pack.__wrapped__(items)
    else:
        data = _base64(items)
    return {"kind": "array", "dtype": dtype, "shape": list(array.shape), "data": data}


@lru_cache(maxsize=4096)  # the same few masks come again and again in the answers of a ledger
def _pack(truths: bytes) -> str:
    return _base64(np.packbits(np.frombuffer(truths, bool)).tobytes())


def _base64(items: bytes) -> str:
    return base64.b64encode(items).decode("ascii")


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
    array = _unpack(items, dtype, cells) if len(items) == length else None
    if array is None or write_array(array)["data"] != text:
        refuse("The data of an array", "base64 with nothing but zeros beyond its items", data)
    return array.reshape(sizes)


def _unpack(items: bytes, dtype: str, cells: int) -> NDArray[Any]:
    """Return the items of an array from their bytes."""
    if dtype == "bool":
        return np.unpackbits(np.frombuffer(items, np.uint8), count=cells).astype(bool)
    return np.frombuffer(items, DTYPES[dtype]).astype(DTYPES[dtype].newbyteorder("="))
