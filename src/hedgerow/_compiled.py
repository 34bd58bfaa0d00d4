"""Loops compiled to machine code, and cached on disk for the next process.

Importing Numba takes longer than all other imports together, and compiling takes seconds, so both wait for the first
call. Small inputs take a NumPy path beside each loop. The choice depends on sizes only. If the results are floating
point, it depends on public sizes of the call itself, so that a result never depends on what the process did before.
Loops with a ``plain`` twin, which gives the same numbers to the last bit, are compiled only where the process has spent
some time in such twins: a published release then answers its first questions without Numba.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])
_one_at_a_time = threading.Lock()
PATIENCE = 0.25  # seconds that a process spends in plain twins before it compiles; importing Numba takes about as long
_spent = 0.0


def compile_lazily(*fastmath: str, plain: Callable[..., Any] | None = None) -> Callable[[Function], Function]:
    """Mark a function to be compiled when it, or another one of its module, is first called.

    ``fastmath`` lists the liberties that the compiler may take with floating point, by their LLVM names; none by
    default. ``plain`` is a slower function that gives the same results to the last bit. It is called instead while
    the process has spent little time in such functions.
    """

    def later(function: Function) -> Function:
        return cast(Function, _Later(function, fastmath, plain))

    return later


class _Later:
    """A function that is handed to Numba when a function of its module is first called."""

    def __init__(
        self, function: Callable[..., Any], fastmath: tuple[str, ...], plain: Callable[..., Any] | None
    ) -> None:
        functools.update_wrapper(self, function)
        self.plain = plain
        self._function, self._fastmath = function, set(fastmath)
        self.py_func = function  # the uncompiled function, under Numba's name for it
        self._machine: Callable[..., Any] | None = None

    def __call__(self, *given: Any) -> Any:
        global _spent
        if self._machine is None and self.plain is not None and _spent < PATIENCE:
            start = time.perf_counter()
            found = self.plain(*given)
            _spent += time.perf_counter() - start
            return found
        if self._machine is None:
            self._compile_module()
        assert self._machine is not None
        return self._machine(*given)

    def _compile_module(self) -> None:
        """Compile all marked functions of the module at once, because compiled functions can only call compiled ones.

        Each is inlined where it is called. A call would be linked by name to whichever copy the process loaded first,
        and a copy that was optimized anew with its caller rounds differently. The process that compiles would then give
        other last bits than all later processes.
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
