"""Read an uploaded file once, in a process with limits of memory, time and content; report only that it is readable.

Compressed files may have a thousand times their size of content, and say less in their heads. So all of it is unpacked
here, a part at a time, where it can do no harm. Nothing of the content is returned.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import resource
from pathlib import Path

from hedgerow.server.confinement import drop_secrets, limit_addresses

ROWS = 1 << 12  # rows of a part
BLOCK = 1 << 20
SECONDS = 110  # of computing
FIELDS = 10_000  # columns of a table


def read_through(path: str, most: int, memory: int) -> None:
    """End the process with 0 if the file can be read and has at most so many bytes of content, and otherwise with 1."""
    drop_secrets()
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # an engine's message may quote rows
        os.dup2(null, stream)
    is_fine = False
    with contextlib.suppress(BaseException):
        import pyarrow.parquet as _  # noqa: F401  # loaded before memory is limited

        limit_addresses(memory)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        is_fine = _size_of(Path(path), most) <= most
    raise SystemExit(0 if is_fine else 1)


def _size_of(path: Path, most: int) -> int:
    """Return the size of the content of a compressed file, or a larger number than ``most``."""
    if path.suffix == ".parquet":
        return _parquet_size(path, most)
    size = 0
    with gzip.open(path) as file:
        while size <= most and (block := file.read(BLOCK)):
            size += len(block)
    return size


def _parquet_size(path: Path, most: int) -> int:
    """Return the size of a Parquet file's contents, or more than ``most`` once it is exceeded."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path, pre_buffer=False)
    facts = file.metadata
    stated = sum(facts.row_group(i).total_byte_size for i in range(facts.num_row_groups))
    if stated > most or facts.num_columns > FIELDS or facts.num_rows > most:
        return most + 1
    size = 0
    for batch in file.iter_batches(ROWS, use_threads=False):
        size += max(batch.nbytes, batch.num_rows)
        if size > most:
            break
    return size
