"""Snapshots of an engine: its state, plain data and registered objects, as JSON and back.

An engine returns its state as dicts, lists, numbers, texts, arrays and objects of registered types, and knows nothing
of JSON. Tuples are written as lists.
"""

from __future__ import annotations

from typing import Any

from hedgerow._json import Json, kind_of
from hedgerow.errors import InvalidInput
from hedgerow.serialize.registry import decode, encode, is_declared
from hedgerow.serialize.values import VALUE_KINDS, read_value, write_value


def encode_state(state: Any) -> Json:
    """Return the JSON form of an engine's state.

    Parameters
    ----------
    state
        Dicts, lists, numbers, texts, arrays and objects of registered types.

    Returns
    -------
    JSON value

    Raises
    ------
    InvalidInput
        If a dict has names that are not texts, or a field called kind.

    Example
    -------
    >>> hr.serialize.encode_state({"steps": 3, "set": hr.L2Ball(1.0)})
    {'steps': 3, 'set': {'kind': 'L2Ball', 'radius': 1.0}}
    """
    if isinstance(state, dict):
        if kind_of(state) is not None or not all(type(name) is str for name in state):
            raise InvalidInput(
                "A dict of a state must have texts for names, and no text called kind. Found another name. Rename "
                "that field."
            )
        return {name: encode_state(part) for name, part in state.items()}
    if isinstance(state, list | tuple):
        return [encode_state(part) for part in state]
    return encode(state) if is_declared(type(state)) else write_value(state)


def decode_state(record: Json) -> Any:
    """Rebuild the state that ``encode_state`` described.

    Parameters
    ----------
    record
        The JSON value.

    Returns
    -------
    object

    Raises
    ------
    InvalidInput
        If a part is not valid.

    Example
    -------
    >>> hr.serialize.decode_state(hr.serialize.encode_state({"steps": 3, "set": hr.L2Ball(1.0)}))
    {'steps': 3, 'set': L2Ball(radius=1.0)}
    """
    if isinstance(record, list):
        return [decode_state(part) for part in record]
    kind = kind_of(record)
    if kind in VALUE_KINDS:
        return read_value(record)
    if kind is not None:
        return decode("a part of a state", record, object)
    if isinstance(record, dict):
        return {name: decode_state(part) for name, part in record.items()}
    return record
