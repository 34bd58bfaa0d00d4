"""Read random rows of a table without a scan.

The raw values are mapped into memory from files that only their owner can read.


A store is built once, batch by batch, from any source that ``readers`` can open. The type of a column is declared and
never inferred from its values, so that the form of one row's value does not depend on another row. The type is
``float`` (the number of each value, NaN if it has none), ``bool`` (True if a flag is true) or ``str`` (the text, "" if
it is missing), by the rule of ``coding``.

    columns.json    the declaration, the number of rows, the identity of the source, and a checksum of every file
    numbers.f64     numbers and flags, row by row, so that a row is one place in memory
    cells.i64       the cells of a universe, row by row, if one is given: a raw value does not always determine its cell
                    (for example a word that a flag declares, or a value that is missing or no number)
    <i>.ends, <i>.utf8    the texts of column i, one after the other, and where each ends

Files have mode 0600, in a folder of mode 0700. A store in a folder is used again if its declaration, its source's path,
size and time of change, and all checksums are the same. Otherwise a new store is built beside it and takes its place.
Sources without a time of change (a frame, a server's table) are read every time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _progress
from hedgerow._json import parse, write_spaced
from hedgerow._types import Array, Integers, Names
from hedgerow.data.coding import Coder, numbers_of, texts_of
from hedgerow.data.csv_file import Csv
from hedgerow.data.readers import open_batches
from hedgerow.data.schema import hide_engine_errors
from hedgerow.data.source import declaration_of
from hedgerow.errors import InvalidInput
from hedgerow.universe.attributes import Flag, Range
from hedgerow.universe.attributes import Integers as IntegerRange
from hedgerow.universe.universe import Universe

Kind = type[float] | type[bool] | type[str]
Columns = Mapping[str, Kind]
KINDS: dict[str, Kind] = {"float": float, "bool": bool, "str": str}
FORM = 2  # the version of the files' format
MANIFEST, NUMBERS, CELLS = "columns.json", "numbers.f64", "cells.i64"
BLOCK = 1 << 22  # bytes read at a time when a file is checked


def columns_of(universe: Universe) -> Columns:
    """Return the raw types of a universe's attributes: numbers, flags, and texts for categories."""
    kinds: dict[str, Kind] = {}
    for name in universe.names:
        attribute = universe[name]
        kinds[name] = (
            bool if isinstance(attribute, Flag) else float if isinstance(attribute, IntegerRange | Range) else str
        )
    return kinds


class RowStore:
    """The raw values of a table, with access to any row. Everything it returns is secret.

    ``row_store`` and ``in_memory`` make such objects.
    """

    def __init__(
        self,
        columns: Columns,
        rows: int,
        numbers: Array,
        texts: Mapping[str, tuple[Integers, NDArray[np.uint8]]],
        coded: Universe | None = None,
        cells: Integers | None = None,
    ) -> None:
        self.columns, self.rows = dict(columns), rows
        self._numbers, self._texts = numbers, dict(texts)
        self._coded, self._cells = coded, cells
        self._places = {name: i for i, name in enumerate(_numeric(columns))}

    def require(self, names: Names) -> None:
        """Refuse a column that was not declared, which is a public fact."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise InvalidInput(
                f"The rows must have every column that is asked for. Found no {', '.join(map(repr, missing))}. "
                f"Declared are {', '.join(map(repr, self.columns))}."
            )

    def take(self, indices: Integers, names: Names) -> list[NDArray[Any]]:
        """Return the values of these rows, one array per name."""
        self.require(names)
        numbers = self._numbers[indices] if any(name in self._places for name in names) else None
        found: list[NDArray[Any]] = []
        for name in names:
            if name in self._places:
                assert numbers is not None
                column = np.ascontiguousarray(numbers[:, self._places[name]])
                found.append(column != 0 if self.columns[name] is bool else column)
            else:
                found.append(self._taken_texts(name, indices))
        return found

    def require_cells(self, universe: Universe) -> None:
        """Refuse a universe whose cells were not stored, which is a public fact."""
        if self._coded != universe:
            raise InvalidInput(
                "The rows must be stored with the session's universe, so that expressions have the same meaning as for "
                "the table. Found none, or another. Give it, as in stored(source, columns, coded=universe), or ask a "
                "function."
            )

    def cells(self, indices: Integers, universe: Universe, names: Names) -> list[Integers]:
        """Return the cells of these rows, as the table has them."""
        self.require_cells(universe)
        assert self._cells is not None
        found = self._cells[indices]
        return [found[:, universe.index(name)] for name in names]

    def _taken_texts(self, name: str, indices: Integers) -> NDArray[Any]:
        """Return the texts of these rows."""
        ends, content = self._texts[name]
        found = np.empty(indices.size, dtype=object)
        for k, (start, end) in enumerate(zip(ends[indices].tolist(), ends[indices + 1].tolist(), strict=True)):
            found[k] = content[start:end].tobytes().decode("utf-8", "replace")
        return found

    def __reduce__(self) -> Any:
        raise InvalidInput("Rows must stay in their process. Found an attempt to copy them out. Open the store there.")

    def __repr__(self) -> str:
        return f"Rows({', '.join(f'{name}: {kind.__name__}' for name, kind in self.columns.items())})"


def in_memory(columns: Mapping[str, Any], coded: Universe | None = None) -> RowStore:
    """Return rows from arrays, for simulations: numbers as they are, flags from boolean arrays, all else as texts."""
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    kinds: dict[str, Kind] = {
        n: {"b": bool, "i": float, "u": float, "f": float}.get(a.dtype.kind, str) for n, a in arrays.items()
    }
    count = len(next(iter(arrays.values())))
    columns_of_numbers = [arrays[name].astype(float) for name in _numeric(kinds)]
    numbers = np.ascontiguousarray(np.column_stack([np.zeros((count, 0)), *columns_of_numbers]))
    texts = {}
    for name in kinds:
        if kinds[name] is str:
            lengths, content = _text_bytes(texts_of(arrays[name]))
            texts[name] = np.concatenate([[0], np.cumsum(lengths)]), np.frombuffer(content, np.uint8)
    cells = None if coded is None else _code_rows([Coder(coded[n]).cells(arrays[n]) for n in coded.names], count)
    return RowStore(kinds, count, numbers, texts, coded, cells)


def _code_rows(cells: Sequence[Integers], rows: int) -> Integers:
    """Return cells as an array with one line per row and one column per attribute."""
    return np.ascontiguousarray(np.column_stack([np.zeros((rows, 0), np.int64), *cells]).astype(np.int64))


def row_store(
    source: Any,
    columns: Columns,
    folder: str | Path | None = None,
    *,
    coded: Universe | None = None,
    table: str | None = None,
    csv: Csv | None = None,
    progress: bool = False,
) -> RowStore:
    """Return the store of a source's columns in a folder: the existing one if it still fits, otherwise a new one.

    With ``coded``, the cells of that universe are stored too, so that its expressions can be asked. Without a folder,
    the rows are in files without a name, which disappear with the object or with the process, however it ends.
    """
    declared = _require_declaration(columns)
    if os.name != "posix":  # elsewhere a file mode hides nothing, and a mapped file cannot be removed
        raise InvalidInput(
            f"Rows must be stored on a system with POSIX file modes. Found {os.name!r}. Run it on Linux or macOS."
        )
    if folder is None:
        place = Path(tempfile.mkdtemp(prefix="hedgerow-rows-"))
        try:
            return hide_engine_errors(lambda: _build(source, declared, coded, place, None, table, csv, progress))
        finally:  # mapped files stay mapped, and disappear with their process, however it ends
            shutil.rmtree(place, ignore_errors=True)
    place = Path(folder)
    identity = _identity(source, table, csv)
    if place.exists():
        _require_private(place)
        found = hide_engine_errors(lambda: _reopen_store(place, declared, coded, identity))
        if found is not None:
            return found
    place.parent.mkdir(parents=True, exist_ok=True)
    return hide_engine_errors(lambda: _build_store(source, declared, coded, place, identity, table, csv, progress))


def _require_declaration(columns: Columns) -> dict[str, Kind]:
    """Refuse a declaration of columns that is not a mapping from names to float, bool or str."""
    if not columns or not all(type(name) is str and kind in KINDS.values() for name, kind in columns.items()):
        raise InvalidInput(
            "columns must be a mapping from each name to its type: float, bool or str. Found something else. For "
            "example {'age': float}."
        )
    return dict(columns)


def _numeric(columns: Columns) -> list[str]:
    """Return the names of the columns of numbers and flags."""
    return [name for name, kind in columns.items() if kind is not str]


def _identity(source: Any, table: str | None, csv: Csv | None) -> dict[str, Any] | None:
    """Return the facts by which a file is recognized, or None if the source is no file."""
    path = source
    if isinstance(source, str) and "://" in source:
        scheme, _, rest = source.partition("://")
        path = rest.partition("?")[0] if scheme in ("sqlite", "duckdb") else None
    if not isinstance(path, str | Path) or not Path(path).is_file():
        return None
    beside = [
        Path(f"{path}{end}") for end in ("-wal", ".wal")
    ]  # where SQLite and DuckDB keep changes that are not yet in the file
    about = [os.stat(file) for file in (Path(path), *(log for log in beside if log.is_file()))]
    return {
        "path": str(Path(path).resolve()), "size": [each.st_size for each in about],
        "changed": [each.st_mtime_ns for each in about], "table": table, "csv": None if csv is None else repr(csv),
    }  # fmt: skip


def _require_private(folder: Path) -> None:
    """Refuse a folder that others can open, or that contains other files."""
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o077:
        raise InvalidInput(
            f"The folder of rows must be one that nobody but its owner can open. Found {str(folder)!r} otherwise. "
            "Run chmod 700 on it, or name a new one."
        )
    if any(folder.iterdir()) and not (folder / MANIFEST).is_file():
        raise InvalidInput(
            f"The folder of rows must be empty, or a store. Found other files in {str(folder)!r}. Name a new one."
        )


def _reopen_store(
    folder: Path, columns: dict[str, Kind], coded: Universe | None, identity: dict[str, Any] | None
) -> RowStore | None:
    """Return the existing store if it has these columns of this source and is unchanged, and otherwise None."""
    try:
        manifest = parse((folder / MANIFEST).read_text())
        found = [manifest[key] for key in ("form", "source", "columns", "coded")]
        same = found == [FORM, identity, _names(columns), _declaration(coded)]
        if identity is None or not same or any(_checksum(folder / n) != s for n, s in manifest["files"].items()):
            return None
        return _map_store(folder, columns, coded, manifest["rows"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _names(columns: Columns) -> list[list[str]]:
    return [[name, kind.__name__] for name, kind in columns.items()]


def _declaration(universe: Universe | None) -> str | None:
    """Return a hash of a universe's declaration."""
    if universe is None:
        return None
    return hashlib.sha256(declaration_of(universe)).hexdigest()


def _checksum(path: Path) -> str:
    """Return the SHA-256 hash of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _map_store(folder: Path, columns: dict[str, Kind], coded: Universe | None, rows: int) -> RowStore:
    """Map a store into memory."""
    width = len(_numeric(columns))
    numbers = _map(folder / NUMBERS, np.float64).reshape(rows, width) if width else np.zeros((rows, 0))
    texts = {
        name: (_map(folder / f"{i}.ends", np.int64), _map(folder / f"{i}.utf8", np.uint8))
        for i, (name, kind) in enumerate(columns.items())
        if kind is str
    }
    cells = None if coded is None else _map(folder / CELLS, np.int64).reshape(rows, len(coded.names))
    return RowStore(columns, rows, numbers, texts, coded, cells)


def _map(path: Path, kind: Any) -> NDArray[Any]:
    """Map a file as a plain array, because every slice of a ``memmap`` would cost microseconds more."""
    return np.asarray(np.memmap(path, kind, "r")) if path.stat().st_size else np.zeros(0, kind)


def _build_store(
    source: Any,
    columns: dict[str, Kind],
    coded: Universe | None,
    folder: Path,
    identity: Any,
    table: str | None,
    csv: Csv | None,
    progress: bool,
) -> RowStore:
    """Build a store beside the folder, and then put it in its place. Whoever has the old one mapped keeps it."""
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        _build(source, columns, coded, made, identity, table, csv, progress)
        if folder.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
            os.replace(folder, old)
            os.replace(made, folder)
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.replace(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return _map_store(folder, columns, coded, parse((folder / MANIFEST).read_text())["rows"])


def _build(
    source: Any,
    columns: dict[str, Kind],
    coded: Universe | None,
    folder: Path,
    identity: Any,
    table: str | None,
    csv: Csv | None,
    progress: bool,
) -> RowStore:
    """Write a store into an empty folder."""
    found = open_batches(source, table, csv)
    names = list(dict.fromkeys([*columns, *(coded.names if coded is not None else ())]))
    positions = found.positions(names)
    coders = {} if coded is None else {name: Coder(coded[name]) for name in coded.names}
    usual = Coder(Flag())
    # Flags of the universe are read with the words that they declare.
    flags = {name: coder for name, coder in coders.items() if isinstance(coder.attribute, Flag)}
    numeric = _numeric(columns)
    texts = [i for i, kind in enumerate(columns.values()) if kind is str]
    count = 0
    with contextlib.ExitStack() as files:
        files_of = {n: files.enter_context(_File(folder / n)) for n in _file_names(numeric, texts, coded)}
        lengths = dict.fromkeys(texts, 0)
        advance = files.enter_context(_progress.show_count("storing rows", progress))
        for i in texts:
            files_of[f"{i}.ends"].write(np.zeros(1, np.int64))
        for batch in found.batches(positions):
            size = len(batch[0])
            table_of_numbers = np.empty((size, len(numeric)))
            # The columns after these are needed only for cells.
            for i, (kind, column) in enumerate(zip(columns.values(), batch, strict=False)):
                if kind is str:
                    each, content = _text_bytes(texts_of(column))
                    ends = lengths[i] + np.cumsum(each)
                    lengths[i] = int(ends[-1]) if ends.size else lengths[i]
                    files_of[f"{i}.ends"].write(ends)
                    files_of[f"{i}.utf8"].write(content)
                else:
                    place = numeric.index(names[i])
                    truths = flags.get(names[i], usual)
                    table_of_numbers[:, place] = numbers_of(column) if kind is float else truths.cells(column) == 1
            if numeric:
                files_of[NUMBERS].write(table_of_numbers)
            if coded is not None:
                cells = [coder.cells(batch[names.index(name)]) for name, coder in coders.items()]
                files_of[CELLS].write(_code_rows(cells, size))
            count += size
            advance(count)
        sums = {name: file.seal() for name, file in files_of.items()}
    manifest = {
        "form": FORM, "source": identity, "columns": _names(columns), "coded": _declaration(coded), "rows": count,
        "files": sums,
    }  # fmt: skip
    with _File(folder / MANIFEST) as file:
        file.write(write_spaced(manifest).encode())
    return _map_store(folder, columns, coded, count)


def _file_names(numeric: Sequence[str], texts: Sequence[int], coded: Universe | None) -> Iterator[str]:
    """Yield the names of the files of a store."""
    if coded is not None:
        yield CELLS
    if numeric:
        yield NUMBERS
    for i in texts:
        yield f"{i}.ends"
        yield f"{i}.utf8"


def _text_bytes(texts: Any) -> tuple[Integers, Any]:
    """Return the length of every text of an Arrow array of bytes, and all texts joined."""
    if len(texts) == 0:
        return np.zeros(0, np.int64), b""
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    all_of_it = b"" if content is None else memoryview(content)[int(ends[0]) : int(ends[-1])]
    return np.diff(ends), all_of_it


class _File:
    """A new file that only its owner can read, with its checksum."""

    def __init__(self, path: Path) -> None:
        self._path, self._digest = path, hashlib.sha256()

    def __enter__(self) -> _File:
        self._file: IO[bytes] = os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", 0)
        return self

    def write(self, data: Any) -> None:
        """Write bytes or an array, and add them to the checksum."""
        some = (
            memoryview(np.ascontiguousarray(data).data).cast("B") if isinstance(data, np.ndarray) else memoryview(data)
        )
        if len(some):
            self._digest.update(some)
            while len(some):
                some = some[self._file.write(some) :]

    def seal(self) -> str:
        """Return the checksum of the written store."""
        return self._digest.hexdigest()

    def __exit__(self, *raised: object) -> None:
        self._file.close()
