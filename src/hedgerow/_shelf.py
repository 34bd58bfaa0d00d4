"""Large arrays that must be had again, kept in a file rather than in memory.

A repeat gives what was answered before, to the last bit, and later knowledge gives other numbers: answers must be kept. A table of
a million cells takes tens of megabytes, and a session may be asked for thousands.
"""

from __future__ import annotations

import mmap
import tempfile
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALL = 1 << 18  # bytes of an array that stays in memory
SEGMENT = 1 << 26  # bytes of a file


class Shelf:
    """Files that have no name and go with the process. What is put there was released: anybody may see it."""

    def __init__(self) -> None:
        self._file: Any = None
        self._maps: list[mmap.mmap] = []
        self._used = self._size = 0

    def put(self, array: NDArray[Any]) -> NDArray[Any]:
        """The same array, which nobody else changes; read-only where it is large. In memory where there is no room on the disk."""
        if array.nbytes <= SMALL or array.dtype.hasobject:
            return array.copy()
        try:
            return self._written(np.ascontiguousarray(array))
        except (OSError, ValueError):
            return array.copy()

    def taken(self, array: NDArray[Any]) -> NDArray[Any]:
        """A copy of one that was put there, which is then in memory once."""
        copy = array.copy()
        if array.nbytes > SMALL and hasattr(mmap, "MADV_DONTNEED"):
            for each in self._maps:
                each.madvise(mmap.MADV_DONTNEED)  # the file has it
        return copy

    def _written(self, array: NDArray[Any]) -> NDArray[Any]:
        if self._used + array.nbytes > self._size:
            self._begin(max(SEGMENT, array.nbytes))
        at, self._used = self._used, self._used + -(-array.nbytes // 64) * 64
        self._file.seek(at)
        self._file.write(array.data)
        self._file.flush()
        kept = np.frombuffer(self._maps[-1], array.dtype, array.size, at)
        return kept.reshape(array.shape)

    def _begin(self, size: int) -> None:
        """Begin another file. Of the file before, its map stays."""
        file = tempfile.TemporaryFile(prefix="hedgerow-")  # noqa: SIM115  # open until the next file, or the end of the shelf
        weakref.finalize(self, file.close)
        file.truncate(size)
        self._maps.append(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
        if self._file is not None:
            self._file.close()
        self._file, self._used, self._size = file, 0, size
