"""Functions that the package's door attaches to classes below it.

A universe is read from files and drafted from tables by modules that see it. Its methods call them by name; the door,
``hedgerow/__init__``, which is imported before any of its modules, says which function has the name and imports it when
it is first called. No module calls one that it may not see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_FUNCTIONS: dict[str, Callable[[], Callable[..., Any]]] = {}


def attach(name: str, imported: Callable[[], Callable[..., Any]]) -> None:
    """Say how the function of this name is imported."""
    _FUNCTIONS[name] = imported


def attached_function(name: str) -> Callable[..., Any]:
    """Import the function of this name."""
    return _FUNCTIONS[name]()
