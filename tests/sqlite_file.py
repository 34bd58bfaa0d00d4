"""Open SQLite files in tests, and close them: Python's own connection commits at the end of a with block, but stays open."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def open_sqlite(path: str | Path, *, uri: bool = False) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, uri=uri)) as connection, connection:
        yield connection
