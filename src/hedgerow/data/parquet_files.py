"""Read Parquet: a file, a folder of files or a pattern, on this machine or wherever fsspec reaches.

Every file is read by itself, in the order of the paths, so that the types of one file never convert the rows of
another. The columns are those of all files together, and a column that a file lacks is missing in its rows. A column
has a public type if all files agree on it. Folders called ``key=value`` are a text column, as Hive and Spark write
them. Names that begin with a dot or an underscore are not data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hedgerow._extras import extra
from hedgerow.data import schema
from hedgerow.data.schema import BatchSource
from hedgerow.errors import DataUnavailable, InvalidInput

ROWS = 1 << 17  # rows of a batch
NOWHERE = "__HIVE_DEFAULT_PARTITION__"  # the folder of rows whose key is missing
ANY = "*?["  # the characters of a pattern


@dataclass(frozen=True)
class _File:
    """A Parquet file.

    ``open`` returns its path or a file object; ``keys`` are the values that the folders above it give.
    """

    open: Callable[[], Any]
    keys: dict[str, str | None]


def of_parquet(where: str) -> BatchSource:
    """Return the source at a path or URL of a file, a folder or a pattern."""
    files = _remote(where) if "://" in where else _local(where)
    if not files:
        raise InvalidInput(f"The data must have .parquet files. Found none at {where!r}. Check the path.")
    schemas = [_parquet(file).schema_arrow for file in files]
    names = list(dict.fromkeys(name for found in schemas for name in found.names))
    names += [key for key in dict.fromkeys(key for file in files for key in file.keys) if key not in names]

    def batches(positions: Sequence[int]) -> Iterator[list[Any]]:
        wanted = [names[i] for i in positions]
        for file in files:
            yield from _rows(file, wanted)

    if len(files) == 1 and not files[0].keys:
        names = list(schemas[0].names)  # a duplicate name is refused where it is used
        return BatchSource(names, batches, [schema.of_arrow(kind) for kind in schemas[0].types])
    return BatchSource(names, batches, [_common_type(name, schemas) for name in names])


def _common_type(name: str, schemas: Sequence[Any]) -> schema.Column:
    """Return the public type of a column if all files agree on it."""
    kinds = {schema.of_arrow(found.field(name).type) for found in schemas if found.names.count(name) == 1}
    return kinds.pop() if len(kinds) == 1 else schema.NOTHING


def _parquet(file: _File) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetFile(file.open(), pre_buffer=False)  # pre-buffering would hold the whole file in memory


def _rows(file: _File, wanted: Sequence[str]) -> Iterator[list[Any]]:
    """Yield the wanted columns of one file, filled with the folders' keys or with nulls where the file lacks them."""
    import pyarrow as pa

    found = _parquet(file)
    there = [name for name in wanted if name in found.schema_arrow.names]
    for batch in found.iter_batches(ROWS, columns=there):
        columns = {name: batch.column(batch.schema.get_field_index(name)) for name in there}
        for name in wanted:
            if name not in columns:
                key = file.keys.get(name)
                columns[name] = pa.nulls(batch.num_rows) if key is None else pa.repeat(pa.scalar(key), batch.num_rows)
        yield [columns[name] for name in wanted]


def _keys(path: str) -> dict[str, str | None]:
    """Return the keys and values in the folders of a path."""
    folders = [part.partition("=") for part in path.split("/")[:-1] if "=" in part]
    return {unquote(key): None if value == NOWHERE else unquote(value) for key, _, value in folders}


def _is_data(path: str) -> bool:
    """Return True if a path, relative to the folder or pattern that was named, is a data file."""
    parts = path.split("/")
    return parts[-1].lower().endswith(".parquet") and not any(
        part.startswith((".", "_")) and "=" not in part for part in parts
    )


def _local(where: str) -> list[_File]:
    """List the Parquet files at a local path."""
    path = Path(where)
    if path.is_file():
        return [_File(lambda: path, {})]
    found: Iterator[Path]
    if path.is_dir():
        base, found = path, path.rglob("*")
    else:
        base = Path(path.anchor or ".").joinpath(*_before_pattern(path.parts[1 if path.anchor else 0 :]))
        found = base.glob(str(path.relative_to(base))) if base.is_dir() else iter(())
    below = sorted(each.relative_to(base).as_posix() for each in found if each.is_file())
    return [_File((base / name).__fspath__, _keys(name)) for name in below if _is_data(name)]


def _before_pattern(parts: Sequence[str]) -> list[str]:
    """Return the leading parts of a path that contain no pattern."""
    kept: list[str] = []
    for part in parts:
        if any(mark in part for mark in ANY):
            break
        kept.append(part)
    return kept


def _remote(url: str) -> list[_File]:
    """List the Parquet files at a URL through fsspec, which finds credentials in the environment or in a profile."""
    failed: Exception | None = None
    found: list[_File] = []
    fsspec = extra("fsspec")
    try:
        files, path = fsspec.core.url_to_fs(url)
        pattern = any(mark in path for mark in ANY)
        folder = not pattern and files.isdir(path)
        base = "/".join(_before_pattern(path.split("/"))) if pattern else path.rstrip("/")
        listed = files.glob(path) if pattern else files.find(path) if folder else [path]
        for each in sorted(map(str, listed)):
            name = each[len(base) :].lstrip("/") if pattern or folder else ""
            if not name or _is_data(name):
                found.append(_File(lambda each=each: files.open(each, "rb"), _keys(name)))  # type: ignore[misc]
        return found
    except Exception as raised:  # no row was read, but a store's own message may quote a credential
        failed = raised
    missing = isinstance(failed, ImportError | ValueError)
    raise DataUnavailable(
        f"The files must be reachable at their URL. Found that they are not ({type(failed).__name__}). "
        + ("Install fsspec and its part for this kind of URL." if missing else "Check the URL and the credentials.")
    )
