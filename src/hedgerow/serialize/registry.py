"""The registry of forms: which type has which kind and fields in JSON, and how its objects are written and read.

A form is registered once, beside or above its type, by ``register`` or, for a dataclass with fields of plain and
registered types, by ``register_dataclass``. ``encode`` writes an object inside a record and ``decode`` reads it.
Reading makes objects of registered kinds only, through their constructors.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from types import NoneType, UnionType
from typing import Any, TypeVar

import numpy as np

from hedgerow._json import Json, kind_of, read_text, refuse, require_fields
from hedgerow._registry import NEWER
from hedgerow.errors import InvalidInput
from hedgerow.serialize.values import (
    VALUE_KINDS,
    read_array,
    read_flag,
    read_number,
    read_whole,
    write_array,
    write_flag,
    write_number,
    write_text,
    write_whole,
)

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Form:
    """JSON form of the objects of one type: its kind, its fields, and the functions that write and read them."""

    kind: str
    type: type
    write: Callable[[Any], dict[str, Json]]
    read: Callable[..., Any]
    fields: tuple[str, ...]
    optional: frozenset[str]


_KINDS: dict[str, Form] = {}
_TYPES: dict[type, Form] = {}
_REFUSED: dict[type, str] = {}


def register(
    kind: str,
    of: type[T],
    write: Callable[[T], dict[str, Json]],
    read: Callable[..., T],
    *,
    fields: Iterable[str] | None = None,
    optional: Iterable[str] = (),
) -> None:
    """Register the form of objects of exactly this type, not of its subclasses.

    A record may omit a field whose parameter of ``read`` has a default, and the fields that ``optional`` names. In this
    way a kind gains a field and still reads and writes its older records.

    Parameters
    ----------
    kind : str
        The name of the form, as written in records.
    of : type
        The type of the objects.
    write : callable
        A function that returns the fields of an object.
    read : callable
        A function that takes the fields by name, checks every one of them, and returns the object.
    fields : iterable of str, optional
        The names of the fields. Default: the parameters of ``read``.
    optional : iterable of str
        Fields that a record may omit.

    Raises
    ------
    InvalidInput
        If the kind or the type is taken, or a field is called v or kind.

    Example
    -------
    >>> class Ward:
    ...     def __init__(self, name):
    ...         self.name = name
    >>> hr.serialize.register("ward of the example", Ward, lambda ward: {"name": ward.name}, lambda name: Ward(name))
    >>> hr.serialize.to_json(Ward("north"))
    {'v': 1, 'kind': 'ward of the example', 'name': 'north'}
    """
    taken = inspect.signature(read).parameters
    names = tuple(taken if fields is None else fields)
    omitted = {name for name in names if name in taken and taken[name].default is not inspect.Parameter.empty}
    if kind in _KINDS or kind in (*VALUE_KINDS, "value") or of in _TYPES or {"v", "kind"} & set(names):
        raise InvalidInput(
            f"A form must have a new kind and a new type, and no field called v or kind. Found {kind!r} of "
            f"{of.__name__} with {', '.join(names) or 'no fields'}. Choose another name."
        )
    _KINDS[kind] = _TYPES[of] = Form(kind, of, write, read, names, frozenset({*omitted, *optional}))


def register_dataclass(cls: type[Any], kind: str | None = None, omitted: Mapping[str, Any] | None = None) -> None:
    """Register the form of a frozen dataclass, by the types of its constructor arguments.

    A field with the metadata ``NEWER`` that is None is left out, too. In both ways a kind gains a field and keeps its
    older
    records.

    Parameters
    ----------
    cls : type
        The dataclass.
    kind : str, optional
        The name of the form. Default: the name of the class.
    omitted : mapping, optional
        Fields that are younger than the form, each with the value that a record without the field means. A field with
        this value is left out.

    Raises
    ------
    InvalidInput
        If the kind or the type is taken.

    Example
    -------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Clinic:
    ...     beds: int
    >>> hr.serialize.register_dataclass(Clinic, "clinic of the example")
    >>> hr.serialize.to_json(Clinic(12))
    {'v': 1, 'kind': 'clinic of the example', 'beds': 12}
    """
    hints = typing.get_type_hints(cls)
    taken = {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init}

    gained = {field.name: None for field in dataclasses.fields(cls) if field.metadata == NEWER}
    young: dict[str, Any] = {**gained, **(omitted or {})}

    def write(thing: Any) -> dict[str, Json]:
        kept = {name: hint for name, hint in taken.items() if name not in young or getattr(thing, name) != young[name]}
        return {name: _write_as(hint, name, getattr(thing, name)) for name, hint in kept.items()}

    def read(**record: Json) -> Any:
        return cls(**young | {name: _read_as(taken[name], name, record[name]) for name in record})

    register(kind or cls.__name__, cls, write, read, fields=taken, optional=young)


def register_refusal(of: type, why: str) -> None:
    """Declare that objects of this type have no form.

    Parameters
    ----------
    of : type
        The type.
    why : str
        The error message if such an object is written.

    Example
    -------
    >>> class Secret: ...
    >>> hr.serialize.register_refusal(Secret, "A secret must not be written. Found one. Leave it out.")
    """
    _REFUSED[of] = why


def registered() -> dict[str, type]:
    """Return every registered kind with the type of its objects.

    Returns
    -------
    dict

    Example
    -------
    >>> hr.serialize.registered()["L2Ball"] is hr.L2Ball
    True
    """
    return {kind: form.type for kind, form in _KINDS.items()}


def is_declared(of: type) -> bool:
    """Return True if objects of this type have a form, or are refused by name."""
    return of in _TYPES or of in _REFUSED


def encode(thing: Any) -> dict[str, Json]:
    """Return the record of an object within another object, without a version.

    Parameters
    ----------
    thing
        An object of a registered type.

    Returns
    -------
    dict

    Raises
    ------
    InvalidInput
        If the type is not registered, or is refused.

    Example
    -------
    >>> hr.serialize.encode(hr.L2Ball(1.0))
    {'kind': 'L2Ball', 'radius': 1.0}
    """
    if type(thing) in _REFUSED:
        raise InvalidInput(_REFUSED[type(thing)])
    form = _TYPES.get(type(thing))
    if form is None:
        raise InvalidInput(
            f"An object must be of a registered type to be written. Found {type(thing).__name__}. "
            "Use the package's own types, or register a form for it."
        )
    written = form.write(thing)
    if tuple(written) != form.fields:
        require_fields({"kind": form.kind, **written}, form.fields, form.optional)
    return {"kind": form.kind, **written}


def decode(role: str, record: Json, of: type[T] | tuple[type, ...]) -> T:
    """Rebuild the object that ``encode`` described.

    Parameters
    ----------
    role : str
        The name of the record, for errors.
    record : dict
        The record.
    of : type or tuple of types
        The types that are allowed.

    Returns
    -------
    object

    Raises
    ------
    InvalidInput
        If the record is not valid, or describes an object of another type.

    Example
    -------
    >>> hr.serialize.decode("a set", {"kind": "L2Ball", "radius": 1.0}, hr.L2Ball)
    L2Ball(radius=1.0)
    """
    kind = kind_of(record)
    form = None if kind is None else _KINDS.get(kind)
    if form is None or not issubclass(form.type, of):
        fitting = sorted(kind for kind, form in _KINDS.items() if issubclass(form.type, of))
        refuse(f"The kind of {role}", f"one of {', '.join(fitting)}", kind, "Read it with the version that wrote it.")
    require_fields(record, form.fields, form.optional)
    made: T = form.read(**{name: record[name] for name in form.fields if name in record})
    return made


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
    return encode(value) if plain is None else _PLAIN[plain][0](role, value)


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
    return decode(role, record, tuple(o for o in options if isinstance(o, type) and o is not NoneType))
