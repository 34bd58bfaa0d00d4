"""Whole records: the outermost object with its version, as JSON types or as text, checked before it is read."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np

from hedgerow._json import LARGEST_PLAIN, Json, canonical, describe_value, fields, kind_of, parse, refuse
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.serialize.registry import decode, encode, is_declared
from hedgerow.serialize.values import VALUE_KINDS, read_value, write_value

VERSION = 1  # version of the JSON forms, written into every record
MOST_DEPTH = 100  # lists and objects are nested at most this deep
MOST_ITEMS = 2**22  # a record has at most this many items; an array counts as one
LONGEST_TEXT = 2**30  # a record has at most this many characters

T = TypeVar("T")


def to_json(thing: Any) -> dict[str, Json]:
    """Return the record of an object, with its version, as plain JSON types.

    Parameters
    ----------
    thing
        An object of a registered type, or a plain value.

    Returns
    -------
    dict

    Raises
    ------
    InvalidInput
        If the object has no JSON form.

    Example
    -------
    >>> hr.serialize.to_json(hr.count(sex="F"))
    {'v': 1, 'kind': 'count', 'predicates': [['sex', {'kind': 'in', 'values': ['F']}]]}
    """
    try:
        written = encode(thing) if is_declared(type(thing)) else write_value(thing)
    except RecursionError:
        raise _too_large() from None
    record = written if isinstance(written, dict) else {"kind": "value", "value": written}
    _require_plain(record)
    return {"v": VERSION, **record}


def from_json(record: Json, of: type[T] = object) -> T:  # type: ignore[assignment]
    """Rebuild the object that ``to_json`` described.

    Parameters
    ----------
    record
        The record, as plain JSON types.
    of : type
        The expected type. Anything else is refused.

    Returns
    -------
    object

    Raises
    ------
    InvalidInput
        If the record is not valid, or describes an object of another type.

    Example
    -------
    >>> hr.serialize.from_json(hr.serialize.to_json(hr.count(sex="F")))
    count(sex='F')
    """
    _require_plain(record)
    if type(record) is not dict:
        refuse("A record", "an object with a version and a kind", record)
    if type(record.get("v")) is not int or record["v"] != VERSION:
        refuse("The version v", f"{VERSION}", record.get("v"), "Read it with the version that wrote it.")
    try:
        with np.errstate(all="ignore"):
            return _outermost({name: item for name, item in record.items() if name != "v"}, of)
    except InvalidInput:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError, MemoryError, TooLarge):
        # Decoders should refuse with InvalidInput. One that fails in another way must not reveal details to a stranger.
        raise InvalidInput(
            f"A record must describe a valid object. Found one of kind {describe_value(record.get('kind'))} that does "
            "not. Read it with the version that wrote it."
        ) from None


def dumps(thing: Any) -> str:
    """Return the canonical JSON text of an object. See ``to_json``.

    Parameters
    ----------
    thing
        A question, universe, workload, loss, set, event, measurement or answer.

    Returns
    -------
    str

    Raises
    ------
    InvalidInput
        If the object has no JSON form, or is too large.

    Example
    -------
    >>> hr.serialize.dumps(hr.L2Ball(1.0))
    '{"kind":"L2Ball","radius":1.0,"v":1}'
    """
    return _bounded(canonical(to_json(thing)))


def loads(text: str, of: type[T] = object) -> T:  # type: ignore[assignment]
    """Rebuild the object from the text that ``dumps`` returned. See ``from_json``.

    Parameters
    ----------
    text : str
        The text.
    of : type
        The expected type. Anything else is refused.

    Returns
    -------
    object

    Raises
    ------
    InvalidInput
        If the text is not a valid record, or describes an object of another type.

    Example
    -------
    >>> hr.serialize.loads(hr.serialize.dumps(hr.L2Ball(1.0)), of=hr.L2Ball)
    L2Ball(radius=1.0)
    """
    try:
        record = parse(_bounded(text), distinct=True)
    except InvalidInput:
        raise
    except ValueError:
        raise InvalidInput("A record must be JSON. Found other text. Check where it comes from.") from None
    return from_json(record, of)


def _bounded(text: str) -> str:
    """Return a text; refuse one that is too long."""
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        refuse("A record", f"a text of at most {LONGEST_TEXT} characters", text)
    return text


def _outermost(record: dict[str, Json], of: type[T]) -> T:
    """Rebuild the outermost object, which may also be a plain value."""
    kind = kind_of(record)
    if kind not in (*VALUE_KINDS, "value"):
        return decode("a record", record, of)
    value = read_value(fields(record, "value")[0] if kind == "value" else record)
    if kind == "value" and isinstance(record["value"], dict):
        refuse("The value", "null, a truth, a number, a text or a list", record["value"], "Put its fields beside v.")
    if not isinstance(value, of):
        refuse("A record", f"a {of.__name__}", value)
    return value


def _require_plain(record: Json) -> None:
    """Refuse input that is not plain JSON, or too much of it, before anything else reads it. Uses no recursion."""
    waiting, seen = [(record, 1)], 0
    while waiting:
        item, depth = waiting.pop()
        seen += 1
        if depth > MOST_DEPTH or seen > MOST_ITEMS:
            raise _too_large()
        if type(item) is dict:
            if not all(type(name) is str for name in item):
                refuse("The names of fields", "texts", next(name for name in item if type(name) is not str))
            waiting.extend((inside, depth + 1) for inside in item.values())
        elif type(item) is list:
            waiting.extend((inside, depth + 1) for inside in item)
        elif type(item) is float and not math.isfinite(item):
            refuse("A number", "finite", item, 'Write {"kind": "float", "text": "inf"}.')
        elif type(item) is int and abs(item) > LARGEST_PLAIN:
            refuse("A whole number", "at most 2^53 in size", item, 'Write {"kind": "integer", "text": "…"}.')
        elif item is not None and type(item) not in (bool, int, float, str):
            refuse("A record", "of JSON's own types", item)


def _too_large() -> InvalidInput:
    """Return the error about a record that is too deep or too large."""
    return InvalidInput(
        f"A record must be nested at most {MOST_DEPTH} deep and have at most {MOST_ITEMS} items. Found more. Ask about "
        "less."
    )
