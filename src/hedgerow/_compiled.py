"""Loops compiled to machine code, kept on disk for the next process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(*fastmath: str) -> Callable[[Function], Function]:
    """``fastmath``: the liberties that the compiler may take with floating point, by LLVM's names; none by default."""
    return cast(Callable[[Function], Function], numba.njit(cache=True, nogil=True, fastmath=set(fastmath) or False))
