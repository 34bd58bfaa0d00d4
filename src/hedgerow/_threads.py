"""Linear algebra on one thread while the package works, and as many as before once it does not.

Our products are many and small. A BLAS of several threads wakes the others for each and waits for the slowest: on a machine
that has other work a product of 10⁵ numbers then takes milliseconds instead of microseconds, and the waiting burns every core.
What is worth several threads (reading and counting a table) does not go through BLAS.

The number of threads is a setting of the whole process. So it is lowered when the first of our calls begins, raised when the
last one ends, whichever threads they are in.
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
    """A BLAS: how many threads it has, and how to change that."""

    threads: Callable[[], int]
    use: Callable[[int], None]


def _libraries() -> tuple[_Library, ...]:
    """Return the OpenBLAS of NumPy, and that of SciPy once its linear algebra is loaded."""
    return _found("scipy.linalg" in sys.modules)


@functools.cache
def _found(with_scipy: bool) -> tuple[_Library, ...]:
    """Find the libraries by threadpoolctl, which cannot set them itself: it lets one thread of a process do so, and ignores the rest.

    Another BLAS, and one on OpenMP, whose setting each thread has to itself, is left as it is.
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
    """``with one_thread:`` or ``@one_thread``. It may be nested, in one thread and across threads."""

    def __init__(self) -> None:
        self._mine = threading.local()
        self._changing, self._working = threading.Lock(), 0  # how many threads are inside
        self._before: list[tuple[_Library, int]] = []
        os.register_at_fork(after_in_child=self._in_a_fork)

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Not contextlib's, whose frame would stand between a warning and the line that it is about."""

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
        for library, threads in self._before:
            if threads != 1:
                library.use(1 if to_one else threads)

    def _in_a_fork(self) -> None:
        """Of all threads only the one that forked is there; the others' calls never end here."""
        self._changing = threading.Lock()
        others, self._working = self._working, int(getattr(self._mine, "depth", 0) > 0)
        if others and not self._working:
            self._set(to_one=False)


one_thread = OneThread()
