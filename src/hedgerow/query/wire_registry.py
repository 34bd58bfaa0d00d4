"""Mechanism of ``wire``: a registry of kinds, and the checks that a record must pass before it is decoded."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import typing
from collections.abc import Callable, Iterable
from types import NoneType, UnionType
from typing import Any, TypeVar

import numpy as np

from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.query.wire_values import (
    LARGEST_PLAIN,
    VALUE_KINDS,
    Json,
    fields,
    kind_of,
    read_array,
    read_flag,
    read_number,
    read_text,
    read_value,
    read_whole,
    refuse,
    require_fields,
    shown,
    write_array,
    write_flag,
    write_number,
    write_text,
    write_value,
    write_whole,
)

VERSION = 1  # version of the JSON forms, written into every record
MOST_DEPTH = 100  # lists and objects are nested at most this deep
MOST_ITEMS = 2**22  # a record has at most this many items; an array counts as one
LONGEST_TEXT = 2**30  # a record has at most this many characters

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Form:
    """JSON form of the objects of one type: its kind, its fields, and the functions that encode and decode it."""

    kind: str
    type: type
    encode: Callable[[Any], dict[str, Json]]
    decode: Callable[..., Any]
    fields: tuple[str, ...]
    optional: frozenset[str]


_KINDS: dict[str, Form] = {}
_TYPES: dict[type, Form] = {}
_REFUSED: dict[type, str] = {}


def register(
    kind: str,
    of: type[T],
    encode: Callable[[T], dict[str, Json]],
    decode: Callable[..., T],
    *,
    named: Iterable[str] | None = None,
) -> None:
    """Register the form of objects of exactly this type, not of its subclasses.

    The fields are ``named``, or the parameters of ``decode``. A parameter with a default is a field that a record may
    omit. In this way a kind gains a field and still reads and writes its older records.
    """
    taken = inspect.signature(decode).parameters
    names = tuple(taken if named is None else named)
    optional = frozenset(name for name in names if name in taken and taken[name].default is not inspect.Parameter.empty)
    if kind in _KINDS or kind in (*VALUE_KINDS, "value") or of in _TYPES or {"v", "kind"} & set(names):
        raise InvalidInput(
            f"A form must have a new kind and a new type, and no field called v or kind. Found {kind!r} of "
            f"{of.__name__} with {', '.join(names) or 'no fields'}. Choose another name."
        )
    _KINDS[kind] = _TYPES[of] = Form(kind, of, encode, decode, names, optional)


def register_dataclass(cls: type[Any], kind: str | None = None) -> None:
    """Register the form of a frozen dataclass, by the types of its constructor arguments.

    ``kind`` is the name of the class by default.
    """
    hints = typing.get_type_hints(cls)
    taken = {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init}

    def encode(thing: Any) -> dict[str, Json]:
        return {name: _write_as(hint, name, getattr(thing, name)) for name, hint in taken.items()}

    def decode(**record: Json) -> Any:
        return cls(**{name: _read_as(hint, name, record[name]) for name, hint in taken.items()})

    register(kind or cls.__name__, cls, encode, decode, named=taken)


def register_refusal(of: type, why: str) -> None:
    """Declare that objects of this type have no form. ``why`` is the error message if one is written."""
    _REFUSED[of] = why


def registered() -> dict[str, type]:
    """Return every registered kind with the type of its objects."""
    return {kind: form.type for kind, form in _KINDS.items()}


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
    """
    try:
        written = inner(thing) if type(thing) in _TYPES or type(thing) in _REFUSED else write_value(thing)
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

    Raises
    ------
    InvalidInput
        If the record is not valid, or describes an object of another type.
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
            f"A record must describe a valid object. Found one of kind {shown(record.get('kind'))} that does not. "
            "Read it with the version that wrote it."
        ) from None


def dumps(thing: Any) -> str:
    """Return the canonical JSON text of an object. See ``to_json``."""
    return _bounded(text_of(to_json(thing)))


def loads(text: str, of: type[T] = object) -> T:  # type: ignore[assignment]
    """Rebuild the object from the text that ``dumps`` returned. See ``from_json``."""
    try:
        record = json.loads(_bounded(text), object_pairs_hook=_distinct)
    except InvalidInput:
        raise
    except (ValueError, RecursionError):
        raise InvalidInput("A record must be JSON. Found other text. Check where it comes from.") from None
    return from_json(record, of)


def _bounded(text: str) -> str:
    """Return a text; refuse one that is too long."""
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        refuse("A record", f"a text of at most {LONGEST_TEXT} characters", text)
    return text


def inner(thing: Any) -> dict[str, Json]:
    """Return the record of an object within another object, without a version."""
    if type(thing) in _REFUSED:
        raise InvalidInput(_REFUSED[type(thing)])
    form = _TYPES.get(type(thing))
    if form is None:
        raise InvalidInput(
            f"An object must be of a registered type to be written. Found {type(thing).__name__}. "
            "Use the package's own types, or register a form for it."
        )
    record = {"kind": form.kind, **form.encode(thing)}
    require_fields(record, form.fields, form.optional)
    return record


def thing(role: str, record: Json, of: type[T] | tuple[type, ...]) -> T:
    """Rebuild the object that ``inner`` described, which must be of one of these types."""
    kind = kind_of(record)
    form = None if kind is None else _KINDS.get(kind)
    if form is None or not issubclass(form.type, of):
        fitting = sorted(kind for kind, form in _KINDS.items() if issubclass(form.type, of))
        refuse(f"The kind of {role}", f"one of {', '.join(fitting)}", kind, "Read it with the version that wrote it.")
    require_fields(record, form.fields, form.optional)
    made: T = form.decode(**{name: record[name] for name in form.fields if name in record})
    return made


def _outermost(record: dict[str, Json], of: type[T]) -> T:
    """Rebuild the outermost object, which may also be a plain value."""
    kind = kind_of(record)
    if kind not in (*VALUE_KINDS, "value"):
        return thing("a record", record, of)
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


def _distinct(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Make a dict from the fields of a JSON object; refuse repeated names."""
    record = dict(pairs)
    if len(record) != len(pairs):
        raise InvalidInput("The fields of a record must be distinct. Found one twice. Remove one.")
    return record


def text_of(record: Json) -> str:
    """Return the canonical text of plain JSON."""
    return json.dumps(record, allow_nan=False, sort_keys=True, separators=(",", ":"))


# Dataclasses, by the types of their fields: plain types, tuples, float64 arrays, registered types, and unions of these.

_PLAIN: dict[type, tuple[Callable[[str, Any], Json], Callable[[str, Json], Any]]] = {
    float: (write_number, read_number),
    int: (write_whole, read_whole),
    bool: (write_flag, read_flag),
    str: (write_text, read_text),
}


def _options(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the type itself."""
    return typing.get_args(hint) if typing.get_origin(hint) in (UnionType, typing.Union) else (hint,)


def _only(options: tuple[Any, ...], origin: Any) -> Any:
    """Return the member of a union with this origin, or None."""
    return next((option for option in options if _origin(option) is origin), None)


def _origin(hint: Any) -> Any:
    """Return the class of a parametrized type, also through an alias such as NumPy's ``NDArray`` from 2.5 on."""
    origin = typing.get_origin(hint)
    return typing.get_origin(getattr(origin, "__value__", None)) or origin


def _each(listed: Any, count: int, role: str) -> list[Any]:
    """Return the type of every item of a tuple of ``count`` items."""
    types = typing.get_args(listed)
    if types[-1:] == (...,):
        return [types[0]] * count
    if len(types) != count:
        raise InvalidInput(f"{role} must have {len(types)} items. Found {count}. Correct it.")
    return list(types)


def _write_as(hint: Any, role: str, value: Any) -> Json:
    """Write the value of a field annotated with this type."""
    options = _options(hint)
    if value is None and NoneType in options:
        return None
    if isinstance(value, tuple) and (listed := _only(options, tuple)):
        return [_write_as(h, role, item) for h, item in zip(_each(listed, len(value), role), value, strict=True)]
    if isinstance(value, np.ndarray) and _only(options, np.ndarray):
        return write_array(value)
    plain = next((option for option in options if option in _PLAIN), None)
    return inner(value) if plain is None else _PLAIN[plain][0](role, value)


def _read_as(hint: Any, role: str, record: Json) -> Any:
    """Read the value of a field annotated with this type."""
    options = _options(hint)
    if record is None and NoneType in options:
        return None
    if isinstance(record, list) and (listed := _only(options, tuple)):
        return tuple(_read_as(h, role, r) for h, r in zip(_each(listed, len(record), role), record, strict=True))
    if _only(options, np.ndarray):
        return read_array(record, "float64")
    plain = next((option for option in options if option in _PLAIN), None)
    if plain is not None:
        return _PLAIN[plain][1](role, record)
    return thing(role, record, tuple(o for o in options if isinstance(o, type) and o is not NoneType))
