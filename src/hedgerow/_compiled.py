"""Loops compiled to machine code, kept on disk for the next process.

Numba takes longer to import than all else together, and compiling takes seconds, so both wait for the first call. Small work has a
path through NumPy beside each loop. Which one is taken depends on sizes alone: where results are floating point, on public sizes of the
call itself, so that a result never depends on what the process did before.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])
_one_at_a_time = threading.Lock()


def compiled(*fastmath: str) -> Callable[[Function], Function]:
    """``fastmath``: the liberties that the compiler may take with floating point, by LLVM's names; none by default."""

    def later(function: Function) -> Function:
        return cast(Function, _Later(function, fastmath))

    return later


class _Later:
    """A function of a module that is handed to numba when one of that module's is first called."""

    def __init__(self, function: Callable[..., Any], fastmath: tuple[str, ...]) -> None:
        functools.update_wrapper(self, function)
        self._function, self._fastmath = function, set(fastmath)
        self.py_func = function  # not compiled, under the name that numba gives it
        self._machine: Callable[..., Any] | None = None

    def __call__(self, *given: Any) -> Any:
        if self._machine is None:
            self._compile_module()
        assert self._machine is not None
        return self._machine(*given)

    def _compile_module(self) -> None:
        """All of the module at once, under their own names: compiled functions can call only compiled ones.

        Inlined where they are called. A call would be linked by name to whichever copy the process met first, and a copy that was
        optimised anew with its caller rounds otherwise: the process that compiles would give other last bits than all after it.
        """
        import numba

        with _one_at_a_time:
            home = self._function.__globals__
            waiting = {name: later for name, later in home.items() if isinstance(later, _Later)}
            ready = {
                name: numba.njit(cache=True, nogil=True, forceinline=True, fastmath=later._fastmath or False)(
                    later._function
                )
                for name, later in waiting.items()
            }
            home.update(ready)
            for name, later in waiting.items():
                later._machine = ready[name]
