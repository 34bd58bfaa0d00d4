"""Spill large arrays to disk and read them back.

A repeated question must get its earlier answer to the last bit, although the engine may have learned more since, so all
answers are kept. A table of a million cells takes tens of megabytes, and a session may be asked for thousands.
"""

from __future__ import annotations

import mmap
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALL = 1 << 18  # an array of at most this many bytes stays in memory
SEGMENT = 1 << 26  # size of one spill file in bytes, unless a single array is larger


class Shelf:
    """Anonymous temporary files that hold arrays and vanish with the process.

    Everything stored here has been released, so the files contain nothing private.
    """

    def __init__(self) -> None:
        self._file: Any = None
        self._maps: list[mmap.mmap] = []
        self._used = self._size = 0

    def put(self, array: NDArray[Any]) -> NDArray[Any]:
        """Store an array and return it in a form that nobody else changes.

        A large array is returned as a read-only view of a file. A small one, or one for which the disk has no room, is
        a copy in memory.
        """
        if array.nbytes <= SMALL or array.dtype.hasobject:
            return array.copy()
        try:
            return self._append(np.ascontiguousarray(array))
        except (OSError, ValueError):
            return array.copy()

    def take_copy(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of a stored array, and release the file's pages so that memory holds it only once."""
        copy = array.copy()
        if array.nbytes > SMALL and hasattr(mmap, "MADV_DONTNEED"):
            for each in self._maps:
                each.madvise(mmap.MADV_DONTNEED)  # the file still holds the data
        return copy

    def _append(self, array: NDArray[Any]) -> NDArray[Any]:
        """Append an array to the current file and return a view of it."""
        if self._used + array.nbytes > self._size:
            self._begin(max(SEGMENT, array.nbytes))
        at, self._used = self._used, self._used + -(-array.nbytes // 64) * 64
        self._file.seek(at)
        self._file.write(array.data)
        self._file.flush()
        kept = np.frombuffer(self._maps[-1], array.dtype, array.size, at)
        return kept.reshape(array.shape)

    def _begin(self, size: int) -> None:
        """Begin another file. The map of the earlier file stays valid."""
        # stays open until the next file begins or the shelf is dropped
        import tempfile  # loaded when it is needed: reading a release file does without it

        file = tempfile.TemporaryFile(prefix="hedgerow-")  # noqa: SIM115
        weakref.finalize(self, file.close)
        file.truncate(size)
        self._maps.append(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
        if self._file is not None:
            self._file.close()
        self._file, self._used, self._size = file, 0, size
