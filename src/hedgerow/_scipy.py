"""SciPy, loaded when one of its parts is first named: reading a release file and its first answers do without it."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """Return a part of SciPy, such as ``special``."""
    return getattr(importlib.import_module("scipy"), name)
