"""The sensitive table, of which mechanisms see only counts over the cells of a few attributes.

A table is read once, when it is opened, batch by batch; each row is coded into its cells by itself (``coding``), and
the cells alone are kept: a snapshot, so that the whole budget is about one dataset. Whether a table can be opened
depends on public facts: no value is refused. What an engine raises is replaced by a message that quotes no row.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.coding import Coder
from hedgerow.csv_file import Csv
from hedgerow.errors import DataUnavailable, HedgerowError, InvalidInput, TooLarge
from hedgerow.sources import opened
from hedgerow.universe import Universe

Counts = NDArray[np.int64]
Result = TypeVar("Result")
LARGEST_MARGINAL = 50_000_000  # cells of one table of counts
CACHED_CELLS = 50_000_000  # cells of all cached tables together
MOST_ROWS = 2**50  # of any table: all exact arithmetic on counts is proved up to here
COLUMN_TYPES = {"uint8": "UTINYINT", "uint16": "USMALLINT", "uint32": "UINTEGER", "uint64": "UBIGINT"}


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
    """A table from a file, a frame or a database: each row coded into its cells, and only the cells kept, by DuckDB."""

    def __init__(self, source: Any, universe: Universe, *, table: str | None = None, csv: Csv | None = None) -> None:
        super().__init__(universe)
        self._engine: Any = _without_messages(
            lambda: _kept(coded_batches(source, universe, table=table, csv=csv), universe)
        )

    def _count(self, names: tuple[str, ...]) -> Counts:
        steps = zip(names, _strides(self.universe.sizes(names)), strict=True)
        terms = [f"c{self.universe.index(name)}::INTEGER * {step}" for name, step in steps]
        cell = " + ".join(terms) or "0"  # the position in the flattened array, which is below LARGEST_MARGINAL
        counting = f"SELECT {cell} AS cell, count(*) AS rows FROM coded GROUP BY cell"
        found = _without_messages(lambda: self._engine.cursor().execute(counting).fetchnumpy())
        counts = np.zeros(self.universe.cells(names), np.int64)
        counts[found["cell"]] = found["rows"]
        return counts.reshape(self.universe.sizes(names))

    def _cells(self) -> NDArray[np.int64]:
        """Every row's cells, in the order of the rows: for tests of how tables are read."""
        found = self._engine.cursor().execute("SELECT * FROM coded ORDER BY rowid").fetchnumpy()
        return np.column_stack([found[f"c{i}"].astype(np.int64) for i in range(len(self.universe.names))])


def _strides(sizes: tuple[int, ...]) -> list[int]:
    return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]


def coded_batches(
    source: Any, universe: Universe, *, table: str | None = None, csv: Csv | None = None
) -> Iterator[list[NDArray[Any]]]:
    """The cells of a source's rows, an array an attribute, some rows at a time: each row by itself, in order."""
    found = opened(source, table, csv)
    positions = found.positions(universe.names)
    coders = [Coder(universe[name]) for name in universe.names]
    kinds = [np.min_scalar_type(size - 1) for size in universe.shape]
    for batch in found.batches(positions):
        yield [coder.cells(column).astype(kind) for coder, column, kind in zip(coders, batch, kinds, strict=True)]


def _kept(batches: Iterator[list[NDArray[Any]]], universe: Universe) -> Any:
    """An embedded engine that holds the cells."""
    import duckdb
    import pyarrow as pa

    engine = duckdb.connect()
    with contextlib.suppress(Exception):  # some notebooks refuse the setting
        engine.execute("SET enable_progress_bar = false")
    kinds = [COLUMN_TYPES[np.min_scalar_type(size - 1).name] for size in universe.shape]
    engine.execute(f"CREATE TABLE coded ({', '.join(f'c{i} {kind}' for i, kind in enumerate(kinds))})")
    for cells in batches:
        engine.register("batch", pa.table({f"c{i}": column for i, column in enumerate(cells)}))
        engine.execute("INSERT INTO coded SELECT * FROM batch")
        engine.unregister("batch")
    return engine


def _without_messages(work: Callable[[], Result]) -> Result:
    """What the work returns. Whatever an engine says about its failure is dropped whole, for it may quote a row.

    The refusal is raised after the failure was handled, so that it does not carry the failure as its context.
    """
    refusal: HedgerowError | None = None
    try:
        return work()
    except HedgerowError as own:
        refusal = type(own)(*own.args)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic of a compiled library is not an Exception
        pass
    raise refusal or DataUnavailable(
        "The table must be readable by the engine. Found that it is not (the engine's message is withheld: it may "
        "quote rows). Check the file's format, its types and the connection."
    )
