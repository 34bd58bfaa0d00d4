"""Estimate the memory of a computation before anything is read or charged, and refuse it if it exceeds the limit.

An estimate is a number of cells, which follows from public sizes, times the bytes that a cell takes at the peak of the
computation. A computation above the limit is refused with ``TooLarge``. The limit is set by the owner (``limit=``);
otherwise it is a share of the memory that this process may use. It does not depend on the memory in use, because that
depends on the rows.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import importlib
import math
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from hedgerow.errors import InvalidInput, TooLarge

# Bytes per item, measured at the peak of memory use and rounded up
ARRAY = 8  # per entry of a float array
VALUE = 400  # per declared value of an attribute, to open a session: counts, noise, groups, the model and its bars
TABLE = 200  # per cell of a table that a question lists in full: beliefs, intervals, bars
FIT = 300  # per cell of the table that a convex question is fitted on
SQUARE = 64  # per entry of a square matrix that is decomposed: the matrix, its eigenvectors, workspace
MODEL = 50  # per cell of the model's junction tree
QUESTION = 2_000  # per question of a list, without its masks and tables
KEPT = 50  # per cell of the tables that are cached for the parts of a question
MASK = 4  # per value in the mask of a listed question: the mask, its key, its place in a stack
STACKED = 64  # per value in the masks of questions that are answered together
RECORD = 300  # per value of a synthetic record: its code, its random draw, its place in a frame
ENTRY = 27  # per entry of a dense table that a model is fitted on: 3.3 times its own bytes
STEP = 1_500  # per step of a solver, to choose the weights of the steps
PARAMETER = 400  # per parameter of a model that is fitted once: steps, gradients, noise, averages

OF_MACHINE = 0.5  # default limit, as a share of the memory of the machine or of its container
OF_ADDRESSES = 0.6  # default limit, as a share of the address space that RLIMIT_AS leaves beside the libraries
# address space in bytes that libraries, and Arrow's allocator, reserve: measured on Linux and rounded up
LIBRARIES, ARROW = 12 * 10**8, 11 * 10**8
# libraries that would otherwise be loaded after a charge
LOADED_LATER = ("numba", "duckdb", "pyarrow", "scipy.optimize", "scipy.sparse", "opendp.measurements")
# options of glibc's allocator (malloc.h), and what they are set to if addresses are limited: an array of more bytes is
# mapped, and goes back to the system when it is freed
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
MAPPED, TRIMMED = 1 << 20, 1 << 22
UNKNOWN = 2**32  # memory in bytes that is assumed if the system does not report it
# files in which Linux states the memory limit of a container
GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
BINARY = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)

_limit: ContextVar[int | None] = ContextVar("limit", default=None)


def in_bytes(limit: Any) -> int | None:
    """Convert a limit to bytes: a whole number, or a text such as "2GB" or "512 MiB". None stays None."""
    if limit is None:
        return None
    found = SIZE.fullmatch(limit) if isinstance(limit, str) else None
    if found is not None:
        units = BINARY if found[3] else UNITS
        limit = int(float(found[1]) * units[found[2].lower()])
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise InvalidInput(
            f"limit must be a number of bytes, or a text such as '2GB'. Found {limit!r}. Say how much memory may be "
            "used."
        )
    return limit


@contextlib.contextmanager
def limit_memory(limit: int | None) -> Iterator[None]:
    """Apply this memory limit to everything computed inside; the default limit if it is None."""
    before = _limit.set(default_limit() if limit is None else limit)
    try:
        yield
    finally:
        _limit.reset(before)


def in_force() -> int:
    """Return the memory limit that currently applies, in bytes."""
    given = _limit.get()
    return default_limit() if given is None else given


def require_libraries() -> None:
    """Load libraries before anything is read or charged, if RLIMIT_AS is set. Refuse if they do not fit.

    Otherwise a library that is first needed after a charge could fail to load, and some libraries then abort the
    process.
    """
    addresses = _addresses()
    if addresses is None:
        return
    _map_large_arrays()
    try:
        if addresses < _reserved_bytes():
            raise MemoryError
        for name in LOADED_LATER:
            importlib.import_module(name)
    except (ImportError, OSError, MemoryError):
        raise TooLarge(
            f"RLIMIT_AS must be at least {format_bytes(_reserved_bytes())}, for libraries alone. Found "
            f"{format_bytes(addresses)}, or less that is free. Raise it, or reserve less: set "
            "ARROW_DEFAULT_MEMORY_POOL=system, MALLOC_ARENA_MAX=1 and OPENBLAS_NUM_THREADS=1 before Python starts."
        ) from None


def _map_large_arrays() -> None:
    """Map large arrays separately, so that those of a closed session leave no holes between smaller objects.

    Otherwise glibc's allocator takes arrays of up to 32 MB from one heap, which does not shrink while anything at its
    end is in use. Other allocators have no such options, and stay as they are.
    """
    with contextlib.suppress(OSError, AttributeError):
        own = ctypes.CDLL(None)
        own.mallopt(MMAP_THRESHOLD, MAPPED)
        own.mallopt(TRIM_THRESHOLD, TRIMMED)


def _reserved_bytes() -> int:
    """Return the address space that libraries take. Arrow's own allocator reserves a gigabyte that it may never use."""
    return LIBRARIES + (0 if os.environ.get("ARROW_DEFAULT_MEMORY_POOL") == "system" else ARROW)


def default_limit() -> int:
    """Return the default limit: a share of the memory that machine, container and RLIMIT_AS leave to this process."""
    shares = [OF_MACHINE * found for found in (_machine(), *_groups())]
    addresses = _addresses()
    if addresses is not None:
        shares.append(OF_ADDRESSES * max(0, addresses - _reserved_bytes()))
    return int(min(shares))


def _machine() -> int:
    """Return the memory of the machine in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not every system reports it
        return UNKNOWN


@functools.cache
def _groups() -> list[int]:
    """Return the memory limits of the container. They are read once, because every question is judged by them."""
    found = []
    for path in GROUP_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # no such file, or the word "max"
            found.append(int(Path(path).read_text()))
    return found


def _addresses() -> int | None:
    """Return the address space that RLIMIT_AS allows, in bytes, or None if it is unlimited."""
    try:
        import resource
    except ImportError:  # Windows has none
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def fits(cells: int, each: int) -> bool:
    """Return True if this many cells of ``each`` bytes fit into the limit."""
    return cells * each <= in_force()


def at_most(each: int, most: int) -> int:
    """Return how many parts of ``each`` bytes fit into the limit at once, from 1 to ``most``."""
    return max(1, min(most, in_force() // each))


def require(what: str, cells: int, each: int, way_out: str, unit: str = "cells") -> None:
    """Refuse a computation that needs more memory than the limit, and state what would fit."""
    limit = in_force()
    if cells * each > limit:
        raise TooLarge(
            f"{what} must be at most {limit // each} {unit}, {format_bytes(limit)} of memory. Found {cells} {unit}, "
            f"about {format_bytes(cells * each)}. {way_out}, or raise limit= where there is more memory."
        )


def require_bytes(what: str, size: int, way_out: str) -> None:
    """Refuse a computation of several parts whose total of ``size`` bytes exceeds the limit."""
    limit = in_force()
    if size > limit:
        raise TooLarge(
            f"{what} must take at most {format_bytes(limit)} of memory. Found about {format_bytes(size)}. {way_out}, "
            "or raise limit= where there is more memory."
        )


def require_listing(what: str, questions: int, values: int, way_out: str) -> None:
    """Refuse to list this many questions one by one, each with masks of this many values."""
    size = questions * (QUESTION + MASK * values)
    require_bytes(f"{what}, asked as {questions} questions of {values} values each,", size, way_out)


def require_fit(what: str, cells: int, outputs: int, columns: Iterable[int], dimension: int, way_out: str) -> None:
    """Refuse to fit a convex question that is too large.

    It has this many cells, outputs and parameters (``dimension``); ``columns`` are the sizes of the tables of its
    attributes. The curvature has an entry for each cell and each pair of outputs, the Hessian one for each pair of
    parameters.
    """
    size = cells * outputs**2 * FIT + sum(columns) * ARRAY + dimension**2 * SQUARE
    require_bytes(f"{what}, of {cells} cells and {dimension} parameters,", size, way_out)


def require_values(sizes: Mapping[str, int]) -> None:
    """Refuse to open a session on attributes with too many values in total."""
    limit, total = in_force(), sum(sizes.values())
    if total * VALUE > limit:
        widest = max(sizes, key=sizes.__getitem__)
        raise TooLarge(
            f"The values of all attributes must be at most {limit // VALUE} in all, {format_bytes(limit)} of memory. "
            f"Found {total}, about {format_bytes(total * VALUE)}, of which {widest!r} has {sizes[widest]}. Declare it "
            "in bins, as in Range(low, high, bins=1000), or raise limit= where there is more memory."
        )


def format_bytes(size: int) -> str:
    """Format a number of bytes for a message."""
    for power, unit in ((4, "TB"), (3, "GB"), (2, "MB"), (1, "kB")):
        if size >= 1000**power:
            many = size / 1000**power if size < 10**300 else math.inf
            return f"{many:.3g} {unit}" if many < 1e6 else f"10^{len(str(size)) - 1} bytes"
    return f"{size} bytes"


_pausing = threading.Lock()
_pauses, _was_on = 0, False


@contextlib.contextmanager
def pause_collector() -> Iterator[None]:
    """Pause Python's cyclic garbage collector; it goes on when the last of several pauses ends.

    The collector looks at all new objects again and again. The objects of a batch of answers form no cycles, so that it
    finds nothing, and takes up to a third of the time.
    """
    global _pauses, _was_on
    with _pausing:
        if not _pauses:
            _was_on = gc.isenabled()
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _pausing:
            _pauses -= 1
            if not _pauses and _was_on:
                gc.enable()
