"""Check numbers passed by the user, and convert them to Python's own types."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
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


def require_path(role: str, path: Any) -> Path:
    """Return a path. Refuse anything that is none."""
    try:
        return Path(path)
    except TypeError:
        raise InvalidInput(f"{role} must be a text or a Path. Found {type(path).__name__}. Name a file.") from None


def require_folder(role: str, path: Any) -> Path:
    """Return a path to write to. Refuse it unless it is the path of a file in a folder that exists."""
    target = require_path(role, path)
    if target.is_dir():
        raise InvalidInput(f"{role} must be that of a file. Found the folder {str(target)!r}. Name a file in it.")
    if not target.parent.is_dir():
        raise InvalidInput(f"{role} must be in a folder that exists. Found {str(target.parent)!r}. Make it first.")
    return target


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


def plain_spelling(value: Any) -> str:
    """Return a value as text, without surrounding blanks and quotes and without case."""
    return str(value).strip(" \t\r\n\"'").casefold()


def did_you_mean(value: Any, known: Sequence[Any]) -> str:
    """Return " Did you mean …?" with the known value that this one was probably meant to be, or nothing.

    Only the first thousand known values are compared.
    """
    some = list(known[:1000])
    spelled = plain_spelling(value)
    for each in some:
        if plain_spelling(each) == spelled or (not isinstance(each, bool) and number(each) == _number_in(value)):
            return f" Did you mean {each!r}?"
    texts = {plain_spelling(each): each for each in some if isinstance(each, str)}
    close = difflib.get_close_matches(spelled, list(texts), 1, 0.75)
    return f" Did you mean {texts[close[0]]!r}?" if close else ""


def _number_in(value: Any) -> float:
    """Return the number that a value is or spells, or NaN."""
    try:
        return number(float(value.strip()) if isinstance(value, str) else value)
    except ValueError:
        return math.nan


def listed_names(names: Iterable[Any]) -> tuple[str, ...]:
    """Return names that were given one by one, or all in one list. Refuse anything but texts."""
    given = tuple(names)
    if len(given) == 1 and isinstance(given[0], list | tuple):
        given = tuple(given[0])
    wrong = [name for name in given if not isinstance(name, str)]
    if wrong:
        raise InvalidInput(
            f"Attributes must be given by their names. Found {_shorten(wrong[0])}. Give texts, as in ('age', 'sex')."
        )
    return given
