"""Run linear algebra on one thread while the package computes, and restore the earlier number of threads afterwards.

Our matrix products are many and small. A multithreaded BLAS wakes all threads for each product and waits for the
slowest one. On a busy machine a product of 10⁵ numbers then takes milliseconds instead of microseconds, and the waiting
occupies every core. Work that profits from several threads (reading and counting a table) does not use BLAS.

The number of threads is a setting of the whole process. It is lowered when the first of our calls begins and restored
when the last one ends, in whichever threads they run.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import sys
import threading
from collections.abc import Callable
from typing import NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Library(NamedTuple):
    """A BLAS library: functions that get and set its number of threads."""

    threads: Callable[[], int]
    use: Callable[[int], None]


def _libraries() -> tuple[_Library, ...]:
    """Return the OpenBLAS of NumPy, and that of SciPy once ``scipy.linalg`` is loaded."""
    return _find_libraries("scipy.linalg" in sys.modules)


@functools.cache
def _find_libraries(with_scipy: bool) -> tuple[_Library, ...]:
    """Find the OpenBLAS libraries of this process with threadpoolctl.

    threadpoolctl itself is not used to set the number, because it lets one thread of a process do so and ignores the
    others. Another BLAS, and an OpenBLAS on OpenMP, whose setting is per thread, are left alone.
    """
    import threadpoolctl

    found = []
    for library in threadpoolctl.threadpool_info():
        if library["internal_api"] == "openblas" and library["threading_layer"] == "pthreads":
            functions = ctypes.CDLL(library["filepath"])
            for before, after in itertools.product(("scipy_", ""), ("64_", "_64", "")):
                get, use = (f"{before}openblas_{verb}_num_threads{after}" for verb in ("get", "set"))
                if hasattr(functions, use):
                    found.append(_Library(getattr(functions, get), getattr(functions, use)))
                    break
    return tuple(found)


class OneThread:
    """Context manager and decorator, ``with one_thread:`` or ``@one_thread``. Calls may nest, also across threads."""

    def __init__(self) -> None:
        self._mine = threading.local()
        self._changing, self._working = threading.Lock(), 0  # _working counts the threads inside the context
        self._before: list[tuple[_Library, int]] = []
        if hasattr(os, "register_at_fork"):  # absent on systems without fork
            os.register_at_fork(after_in_child=self._in_a_fork)

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Wrap a function so that it runs inside the context.

        contextlib.ContextDecorator is not used, because its frame would shift the line that a warning points to.
        """

        @functools.wraps(function)
        def alone(*given: P.args, **named: P.kwargs) -> T:
            with self:
                return function(*given, **named)

        return alone

    def __enter__(self) -> None:
        depth = getattr(self._mine, "depth", 0)
        if depth == 0:
            libraries = _libraries()
            with self._changing:
                if self._working == 0:
                    self._before = [(library, library.threads()) for library in libraries]
                    self._set(to_one=True)
                self._working += 1
        self._mine.depth = depth + 1

    def __exit__(self, *raised: object) -> None:
        self._mine.depth -= 1
        if self._mine.depth == 0:
            with self._changing:
                self._working -= 1
                if self._working == 0:
                    self._set(to_one=False)

    def _set(self, *, to_one: bool) -> None:
        """Set all libraries to one thread, or back to the number they had."""
        for library, threads in self._before:
            if threads != 1:
                library.use(1 if to_one else threads)

    def _in_a_fork(self) -> None:
        """Count the threads anew in a forked child: only the forking thread survives, and calls of others never end."""
        self._changing = threading.Lock()
        others, self._working = self._working, int(getattr(self._mine, "depth", 0) > 0)
        if others and not self._working:
            self._set(to_one=False)


one_thread = OneThread()
