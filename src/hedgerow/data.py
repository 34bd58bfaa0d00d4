"""The sensitive table. The only module that sees rows, and only as counts over the cells of a few attributes.

A table is coded into cells once, inside the engine, when it is opened: a snapshot, so that the whole budget is about
one dataset, and n rows never enter Python objects. Anything the engine raises about rows is replaced by a message
that quotes none of them.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.errors import DataUnavailable, InvalidInput, TooLarge
from hedgerow.universe import Categories, Flag, Integers, Range, Universe

Counts = NDArray[np.int64]
LARGEST_MARGINAL = 50_000_000  # cells of one table of counts
CACHED_CELLS = 50_000_000  # cells of all cached tables together
MOST_ROWS = 2**50  # of any table: all exact arithmetic on counts is proved up to here
TRUE_WORDS = ("true", "t", "yes", "y", "1", "1.0")


class PrivateData(ABC):
    """Counts of a sensitive table by cell. Everything it returns is secret until noise is added."""

    def __init__(self, universe: Universe) -> None:
        self.universe = universe
        self._cache: dict[tuple[str, ...], Counts] = {}

    @property
    def rows(self) -> int:
        """n: public under replace-one adjacency, secret under add/remove."""
        return int(self.marginal(()))

    def marginal(self, attributes: Iterable[str]) -> Counts:
        """How many records fall in each cell of the attributes (axes in universe order). Cached; do not write to it."""
        names = self.universe.order(attributes)
        if names not in self._cache:
            cells = self.universe.cells(names)
            if cells > LARGEST_MARGINAL:
                raise TooLarge(
                    f"A marginal must have at most {LARGEST_MARGINAL} cells. Found {cells} on {names!r}. "
                    "Ask about fewer attributes, or declare coarser bins."
                )
            counts = self._count(names)
            counts.flags.writeable = False
            while self._cache and sum(c.size for c in self._cache.values()) + cells > CACHED_CELLS:
                self._cache.pop(next(iter(self._cache)))
            self._cache[names] = counts
        return self._cache[names]

    @abstractmethod
    def _count(self, names: tuple[str, ...]) -> Counts: ...

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.universe!r})"


class Histogram(PrivateData):
    """A table given as its counts over the whole universe: n is only a scale, so a billion rows cost nothing.

    What is no histogram of at most ``MOST_ROWS`` rows is refused here, to the owner who made it, before any question.
    """

    def __init__(self, universe: Universe, counts: ArrayLike) -> None:
        super().__init__(universe)
        array = np.asarray(counts)
        if array.size != universe.size or not np.issubdtype(array.dtype, np.integer) or (array < 0).any():
            raise InvalidInput(
                f"A histogram must hold {universe.size} counts, whole and not negative. Found other values or another size. "
                "Give one count per cell of the universe."
            )
        if array.sum(dtype=float) > MOST_ROWS:  # a float cannot overflow, and what it rounds is far from what matters
            raise InvalidInput("A histogram must hold at most 2^50 rows in all. Found more. Give smaller counts.")
        self._counts = array.reshape(universe.shape).astype(np.int64)

    def _count(self, names: tuple[str, ...]) -> Counts:
        away = tuple(i for i, name in enumerate(self.universe.names) if name not in names)
        return np.asarray(self._counts.sum(axis=away))


class Table(PrivateData):
    """A table in a file, a frame or a database, counted by its engine through Ibis (DuckDB for files and frames)."""

    def __init__(self, source: Any, universe: Universe, *, table: str | None = None) -> None:
        super().__init__(universe)
        with _no_rows_in_errors():
            expression, embedded = _opened(source, table)
            _require_columns(expression, universe)
            coded = expression.select(
                **{
                    f"c{i}": _cell_of(expression[name], universe[name]).cast("int16" if size < 2**15 else "int32")
                    for i, (name, size) in enumerate(zip(universe.names, universe.shape, strict=True))
                }
            )
            # the engine keeps the snapshot; a database of the owner's is read in place
            self._coded = embedded.create_table("coded", coded) if embedded is not None else coded

    def _count(self, names: tuple[str, ...]) -> Counts:
        cell: Any = None
        for name in names:  # the cell's position in the flattened array
            code = self._coded[f"c{self.universe.index(name)}"].cast("int64")
            cell = code if cell is None else cell * self.universe[name].size + code
        with _no_rows_in_errors():
            if cell is None:
                return np.asarray(self._coded.count().to_pyarrow().as_py(), dtype=np.int64)
            found = self._coded.select(cell=cell).group_by("cell").agg(rows=lambda t: t.count()).to_pyarrow()
        counts = np.zeros(self.universe.cells(names), np.int64)
        counts[found["cell"].to_numpy()] = found["rows"].to_numpy()
        return counts.reshape(self.universe.sizes(names))


def _opened(source: Any, table: str | None) -> tuple[Any, Any]:
    """The source as an Ibis table, and the embedded engine that should keep a snapshot of it (None: read in place)."""
    import ibis

    if isinstance(source, ibis.Table):
        return source, None
    if isinstance(source, str) and "://" in source:
        if table is None:
            raise InvalidInput("A database URL must come with table=. Found none. Name the table to open.")
        return ibis.connect(source).table(table), None
    engine = ibis.duckdb.connect()
    engine.raw_sql("SET enable_progress_bar = false")
    if isinstance(source, str | Path):
        return _read_file(engine, Path(source)), engine
    if type(source).__module__.split(".")[0] in ("pandas", "polars", "pyarrow"):
        return ibis.memtable(source.collect() if hasattr(source, "collect") else source), engine
    raise InvalidInput(
        "A source must be a CSV or Parquet path, a pandas, polars or Arrow frame, an Ibis table, or a database URL. "
        f"Found {type(source).__name__}. Open one of these."
    )


def _read_file(engine: Any, path: Path) -> Any:
    if not path.exists():
        raise InvalidInput(f"The data file must exist. Found nothing at {str(path)!r}. Check the path.")
    kind = [s for s in (s.lower() for s in path.suffixes) if s in (".csv", ".tsv", ".parquet")]
    if not kind:
        raise InvalidInput(f"The data file must be .csv, .tsv or .parquet. Found {path.name!r}. Convert it first.")
    if kind[-1] == ".parquet":
        return engine.read_parquet(str(path))
    # every column as text: which types a sniffer would guess, and on which row it would fail, depends on the rows
    return engine.read_csv(str(path), all_varchar=True, header=True, null_padding=True, strict_mode=False)


def _require_columns(expression: Any, universe: Universe) -> None:
    missing = [name for name in universe.names if name not in expression.columns]
    if missing:
        raise InvalidInput(
            f"The table must have every column the universe declares. Found no {', '.join(map(repr, missing[:8]))}. "
            "Rename the column, or take it out of the universe."
        )


def _cell_of(column: Any, attribute: Any) -> Any:
    """The cell of each value as an engine expression that cannot fail, whatever the column holds."""
    import ibis

    outside = attribute.size - 1 if attribute.other else 0
    if isinstance(attribute, Flag):
        if column.type().is_boolean():
            return column.fill_null(False).cast("int32")
        return column.cast("string").lower().strip().isin(TRUE_WORDS).fill_null(False).cast("int32")
    if isinstance(attribute, Categories):
        listed = attribute.labels[: attribute.size - 1] if attribute.other else attribute.labels
        text, number = column.cast("string"), None if column.type().is_boolean() else _number(column)
        branches = []
        for i, label in enumerate(listed):
            numeric = isinstance(label, int | float | np.number) and not isinstance(label, bool) and number is not None
            if isinstance(label, bool):
                matches = text.lower().isin(TRUE_WORDS if label else ("false", "f", "no", "n", "0", "0.0"))
            else:
                matches = cast(Any, number) == float(label) if numeric else text == str(label)
            branches.append((matches, i))
        return ibis.cases(*branches, else_=outside).cast("int32")
    number = _number(column)
    if isinstance(attribute, Integers):
        low, high = attribute.low, attribute.high
        inside = number.clip(lower=low, upper=high).floor().cast("int32") - low
    else:
        edges = cast(Range, attribute).edges
        low, high = edges[0], edges[-1]  # type: ignore[assignment]
        inside = ibis.literal(0).cast("int32")
        for edge in edges[1:-1]:
            inside = inside + (number >= edge).cast("int32")
    if attribute.other:
        inside = ((number < low) | (number > high)).ifelse(outside, inside)
    return inside.fill_null(outside).cast("int32")


def _number(column: Any) -> Any:
    """The column as float64, null where it is not a number."""
    kind = column.type()
    if kind.is_integer():
        return column.cast("float64")
    number = column if kind.is_floating() else column.try_cast("float64")
    return number.isnan().ifelse(None, number)


@contextlib.contextmanager
def _no_rows_in_errors() -> Iterator[None]:
    try:
        yield
    except (InvalidInput, TooLarge):
        raise
    except Exception:  # an engine's message may quote a row, so it is dropped whole
        raise DataUnavailable(
            "The table must be readable by the engine. Found that it is not (the engine's message is withheld: it may "
            "quote rows). Check the file's format, its types and the connection."
        ) from None
