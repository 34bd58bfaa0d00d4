"""A universe in one readable file, TOML or JSON: one table per column, with the arguments of its constructor.

    [age]
    kind = "Range"
    low = 17.0
    high = 90.0
    bins = 8

    [sex]
    kind = "Categories"
    values = ["F", "M"]
    other = true

A column given as a plain number is integer-coded: ``age = 85`` stands for 0 … 84. Reading gives back exactly what was
written.
"""

from __future__ import annotations

import datetime
import inspect
import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hedgerow._checks import did_you_mean, require_folder, require_path
from hedgerow._json import Json, parse, quote_text, readable
from hedgerow.errors import InvalidInput
from hedgerow.universe.attributes import MOST_CELLS, Attribute, Categories, Flag, Integers, Range
from hedgerow.universe.attributes.integers import integer_coded
from hedgerow.universe.dates import Dates
from hedgerow.universe.labels import read_label, write_label

KINDS: dict[str, type[Attribute]] = {kind.__name__: kind for kind in (Categories, Dates, Flag, Integers, Range)}
NO_VALUE = {"kind": "none"}  # stands for null, which TOML lacks
BARE = re.compile(r"[A-Za-z0-9_-]+")  # keys that TOML allows without quotes
WAY_OUT = "docs/universe.md has an example of each kind."


class Columns(Protocol):
    """A universe, as this module sees it: the names of its columns, and the attribute of each."""

    names: tuple[str, ...]

    def __getitem__(self, name: str) -> Attribute:
        """Return the attribute of a column."""
        ...


def to_mapping(universe: Columns) -> dict[str, dict[str, Json]]:
    """Return the kind and the constructor arguments of every column, in JSON types."""
    return {name: _declaration(universe[name]) for name in universe.names}


def _declaration(attribute: Attribute) -> dict[str, Json]:
    """Return the kind and the constructor arguments of one attribute."""
    kind = type(attribute).__name__
    if kind not in KINDS:
        raise InvalidInput(
            f"An attribute must be of one of the package's kinds. Found {kind}. Use the package's own kinds."
        )
    record: dict[str, Json] = {"kind": kind}
    match attribute:
        case Categories():
            record["values"] = [write_label(label) for label in attribute.listed]
            record["spaces"] = attribute.spaces
            if attribute.case != "exact":
                record["case"] = attribute.case
        case Flag():
            for name, words, usual in (("true", attribute.true, Flag.true), ("false", attribute.false, Flag.false)):
                if words != usual:
                    record[name] = [write_label(word) for word in words]
        case Integers():
            record |= {"low": write_label(attribute.low), "high": write_label(attribute.high)}
        case Dates():
            if attribute.by is None:
                record["edges"] = [write_label(edge) for edge in attribute.edges]
            else:
                ends = {"low": write_label(attribute.edges[0]), "high": write_label(attribute.edges[-1])}
                record |= {**ends, "by": attribute.by}
        case Range():
            record |= _range(attribute)
    return record | {name: True for name in ("missing", "other") if getattr(attribute, name)}


def _range(attribute: Range) -> dict[str, Json]:
    """Return the arguments of a Range: ends and bins if these give exactly the same edges, else the edges."""
    edges, values = attribute.edges, attribute.values
    assert values is not None
    low, high, bins = edges[0], edges[-1], len(edges) - 1
    even = tuple(np.linspace(low, high, bins + 1).tolist()) == edges
    record: dict[str, Json] = {"low": low, "high": high, "bins": bins} if even else {"edges": list(edges)}
    record |= {"whole": True} if attribute.whole else {}
    usual = Range(edges=edges, whole=attribute.whole).values
    assert usual is not None
    if values[:bins].tolist() != usual.tolist():
        record["values"] = values[:bins].tolist()
    return record


def from_mapping(columns: Mapping[str, Any]) -> dict[str, Attribute]:
    """Return the attributes of a mapping that ``to_mapping`` returned, or of sizes of integer-coded columns."""
    if not isinstance(columns, Mapping) or not columns:
        found = type(columns).__name__ if columns or not isinstance(columns, Mapping) else "no column"
        raise InvalidInput(f"A universe must be a table of columns. Found {found}. {WAY_OUT}")
    return {_name(name): _attribute(name, given) for name, given in columns.items()}


def _name(name: Any) -> str:
    """Return a column name; refuse anything but text."""
    if not isinstance(name, str):
        raise InvalidInput(f"The name of a column must be a text. Found {name!r}. Quote it.")
    return name


def _attribute(name: str, given: Any) -> Attribute:
    """Make an attribute from its table, its size, or an attribute itself."""
    if isinstance(given, Attribute):
        return given
    if not isinstance(given, Mapping):
        return integer_coded(name, given)
    options = dict(given)
    kind = KINDS.get(str(options.pop("kind", None)))
    if kind is None:
        raise InvalidInput(
            f"The kind of {name!r} must be one of {', '.join(KINDS)}. Found {given.get('kind')!r}."
            f"{did_you_mean(given.get('kind'), tuple(KINDS))} {WAY_OUT}"
        )
    try:
        options = {option: _plain(value) for option, value in options.items()}
        if kind is Integers and options.get("high", 0) - options.get("low", 0) >= MOST_CELLS:
            raise InvalidInput(f"Integers must have at most {MOST_CELLS} cells. Found more cells. Use a Range.")
        if kind is Range and not 0 < options.get("bins", 1) <= MOST_CELLS:
            raise InvalidInput(f"bins must be between 1 and {MOST_CELLS}. Found {options['bins']!r}. Use fewer.")
        for option in ("other", "missing"):
            if not isinstance(options.get(option, False), bool):
                raise InvalidInput(f"{option} must be true or false. Found {options[option]!r}. Write one of these.")
        return kind(**options)
    except InvalidInput as refused:
        raise InvalidInput(f"Column {name!r}: {refused}") from None
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise InvalidInput(
            f"Column {name!r} must have the arguments of {kind.__name__}. Found {_wrong_arguments(kind, options)} "
            f"{WAY_OUT}"
        ) from None


def _wrong_arguments(kind: type[Attribute], options: Mapping[str, Any]) -> str:
    """Name the argument that is unknown or missing, or all of them if one is of the wrong type."""
    taken = {name: each for name, each in inspect.signature(kind).parameters.items() if name != "self"}
    unknown = [name for name in options if name not in taken]
    if unknown:
        return f"{unknown[0]!r}, which it does not take.{did_you_mean(unknown[0], tuple(taken))}"
    missing = [name for name, each in taken.items() if each.default is each.empty and name not in options]
    if missing:
        return f"no {missing[0]!r}."
    return f"{', '.join(f'{name} = {value!r}' for name, value in options.items())}, where one is of the wrong type."


def _plain(value: Any) -> Any:
    """Convert a label, or a list of labels, to Python values."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if value == NO_VALUE:
        return None
    if isinstance(value, datetime.date | datetime.time):  # TOML has dates and times of its own
        return value
    return read_label(value)


def load(path: str | Path) -> dict[str, Attribute]:
    """Read the attributes of the universe in a .toml or .json file."""
    place = _place(path)
    try:
        text = place.read_text(encoding="utf-8-sig")
        found = tomllib.loads(text) if place.suffix.lower() == ".toml" else parse(text)
    except OSError:
        raise InvalidInput(f"The universe's file must exist. Found nothing at {str(path)!r}. Check the path.") from None
    except (ValueError, RecursionError) as problem:
        raise InvalidInput(f"The universe's file {str(path)!r} must be TOML or JSON. {toml_problem(problem)}") from None
    return from_mapping(found)


def toml_problem(problem: Exception) -> str:
    """Say why a text file cannot be read, and where: the file is the owner's, and public."""
    if isinstance(problem, UnicodeDecodeError):
        return "Found bytes that are not UTF-8. Save it as UTF-8."
    where = f" ({problem})" if isinstance(problem, tomllib.TOMLDecodeError) else ""
    return f"Found other text{where}. Correct it."


def save(universe: Columns, path: str | Path) -> None:
    """Write a universe to a .toml or .json file."""
    place, declared = require_folder("The path of a universe", _place(path)), to_mapping(universe)
    written = to_toml(declared) if place.suffix.lower() == ".toml" else readable(declared, ascii_only=True) + "\n"
    try:
        content = written.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput("Names and labels must be Unicode texts. Found half of a character. Rename it.") from None
    place.write_bytes(content)


def _place(path: str | Path) -> Path:
    """Check the suffix of a path and return it."""
    place = require_path("The path of a universe", path)
    if place.suffix.lower() not in (".toml", ".json"):
        raise InvalidInput(f"The universe's file must be .toml or .json. Found {place.name!r}. Rename it.")
    return place


# Writer for the part of TOML that a universe needs. Reading gives back exactly what was written.


def to_toml(declared: Mapping[str, Mapping[str, Json]], under: str = "") -> str:
    """Write one TOML table per column, nested ``under`` another table if one is named."""
    tables, before = [], f"{under}." if under else ""
    for name, options in declared.items():
        lines = [
            f"[{before}{_key(name)}]",
            *(f"{_key(option)} = {_toml_value(value)}" for option, value in options.items()),
        ]
        tables.append("\n".join(lines) + "\n")
    return "\n".join(tables)


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else quote_text(name)


def _toml_value(value: Json) -> str:
    """Write one JSON value as TOML."""
    match value:
        case None:
            return _toml_value(NO_VALUE)
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            assert math.isfinite(value)  # infinities are written as objects
            text = repr(value)
            return text if any(mark in text for mark in ".e") else text + ".0"
        case str():
            return quote_text(value)
        case list():
            return "[" + ", ".join(map(_toml_value, value)) + "]"
        case {"kind": "date", "text": str(text)}:
            return text
        case _:
            return "{ " + ", ".join(f"{_key(name)} = {_toml_value(each)}" for name, each in value.items()) + " }"
