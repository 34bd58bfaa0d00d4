"""Draft attributes from a codebook and a schema, which is free, because both are public whatever the rows contain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hedgerow.data.schema import Column
from hedgerow.errors import InvalidInput
from hedgerow.universe.attributes import Attribute, Categories, Flag, Integers, Range
from hedgerow.universe.universe import Universe

MOST_INTEGERS = 64  # up to this many whole numbers get one cell each; more are put into bins


def from_codebook(name: str, given: Any) -> Attribute:
    """Return an attribute from an entry of a codebook.

    The entry is an attribute, its record as in a file, a size, a list of values, or a pair of ends.
    """
    if isinstance(given, Attribute):
        return given
    if isinstance(given, Mapping | int):
        return Universe.from_json({name: given})[name]
    if isinstance(given, list | set | frozenset):
        return Categories(sorted(given, key=repr) if isinstance(given, set | frozenset) else given, other=True)
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(end, int | float) for end in given):
        return between(given[0], given[1], all(isinstance(end, int) for end in given), 16, missing=True)
    raise InvalidInput(
        f"The codebook of {name!r} must be an attribute, a list of values or a pair of ends. Found {given!r}. Correct "
        "it."
    )


def from_column(column: Column, dictionary: tuple[Any, ...] | None, bins: int) -> Attribute | None:
    """Return an attribute from an enumeration, a check, a boolean type or a public dictionary, or None without any."""
    if column.labels:
        return Categories(column.labels, missing=True)
    if column.kind == "truth":
        return Flag(missing=True)
    if dictionary:
        return Categories([value for value in dictionary if value is not None], missing=True)
    if column.low is not None and column.high is not None and column.low <= column.high:
        whole = column.kind == "whole" or (
            column.kind is None and isinstance(column.low, int) and isinstance(column.high, int)
        )
        return between(column.low, column.high, whole, bins, missing=True)
    return None


def between(low: float, high: float, whole: bool, bins: int, *, missing: bool) -> Attribute:
    """Return an attribute for numbers from low to high: one cell per whole number if there are few, otherwise bins."""
    if whole and high - low < MOST_INTEGERS:
        return Integers(int(low), int(high), missing=missing)
    return Range(low, high if high > low else low + 1, bins, whole=whole, missing=missing)
