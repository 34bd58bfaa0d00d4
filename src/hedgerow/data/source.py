"""The sensitive table as mechanisms see it: counts over the cells of a few attributes, and nothing else.

To count elsewhere, add a ``DataSource`` beside ``HistogramSource`` and ``table.Table``. It must pass
tests/data/test_sources.py.
"""

from __future__ import annotations

import dataclasses
import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from hedgerow import _memory
from hedgerow._types import Counts, Integers, Names
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.universe.attributes import WholeLabels
from hedgerow.universe.universe import Universe

LARGEST_MARGINAL = 50_000_000  # the most cells of one table of counts
COUNTED_CELLS = 50_000_000  # the most cells of all tables that are counted at once
CACHED_CELLS = 16_000_000  # the most cells of all cached tables together
# Sum a smaller table from one of at most this many cells, which is faster than another scan of many rows.
SUMMED = 1 << 21
MOST_COMPARED = 100_000  # compare at most this many pairs of attribute sets when looking for larger tables
# Fields that every fingerprint includes.
FIRST_FIELDS = ("labels", "values", "other", "ordered", "low", "high", "edges")
MOST_ROWS = 2**50  # the most rows of a table: exact arithmetic on counts is proved up to here


class DataSource(ABC):
    """Counts of a sensitive table by cell.

    Everything it returns is secret until noise is added. Threads may share it.
    """

    is_present: ClassVar[bool] = True
    """False if the rows are not there to be counted (``absent``)."""

    def __init__(self, universe: Universe) -> None:
        self.universe = universe
        self._cache: dict[Names, Counts] = {}
        self._cached_cells = 0
        self._caching = threading.Lock()

    def __copy__(self) -> Self:
        return self  # copies of objects that use the table share the one table

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value for name, value in vars(self).items() if name not in ("_cache", "_cached_cells", "_caching")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _cache={}, _cached_cells=0, _caching=threading.Lock())

    @property
    def rows(self) -> int:
        """n, the number of rows: public under replace-one adjacency, secret under add/remove."""
        return int(self.marginal(()))

    def marginal(self, attributes: Iterable[str]) -> Counts:
        """Return the number of records in each cell of the attributes, with axes in universe order.

        The array is cached and read-only.
        """
        return self.marginals([attributes])[0]

    def marginals(self, sets: Iterable[Iterable[str]]) -> list[Counts]:
        """Return the marginals of many sets of attributes, in their order. Unknown ones are counted in one scan.

        A marginal that is part of another is summed from it, which gives the same whole numbers.
        """
        asked = [self.universe.order(attributes) for attributes in sets]
        with self._caching:
            known = dict(self._cache)
        wanted = [names for names in dict.fromkeys(asked) if names not in known]
        if wanted:
            self._find(wanted, known)
        return [known[names] for names in asked]

    def _find(self, wanted: Sequence[Names], known: dict[Names, Counts]) -> None:
        """Count these sets, and add them to ``known`` and to the cache."""
        self._require_room(wanted)
        larger = self._larger({*known, *wanted}, wanted)
        scanned = [names for names in wanted if names not in larger]
        known.update(zip(scanned, self._count_all(scanned) if scanned else [], strict=True))
        for names in sorted(larger, key=len, reverse=True):  # a table that is summed from may itself have been summed
            known[names] = np.asarray(known[larger[names]].sum(axis=_beside(larger[names], names)))
        with self._caching:
            for names in wanted:
                known[names].flags.writeable = False
                self._keep(names, known[names])

    def _larger(self, tables: Collection[Names], wanted: Sequence[Names]) -> dict[Names, Names]:
        """Return, for each wanted set, the smallest of the tables that contains it and is quick to sum.

        Returns nothing if there are very many sets, because comparing all pairs would take longer than the scan.
        """
        if len(tables) * len(wanted) > MOST_COMPARED:
            return {}
        sizes = sorted((self.universe.cells(names), names) for names in tables if names)
        handy = [(set(names), names) for size, names in sizes if size <= SUMMED]
        of_more = {k: [(held, names) for held, names in handy if len(names) > k] for k in set(map(len, wanted))}
        found = {}
        for names in wanted:
            inside = next((table for held, table in of_more[len(names)] if held.issuperset(names)), None)
            if inside is not None:
                found[names] = inside
        return found

    def _require_room(self, wanted: Sequence[Names]) -> None:
        """Refuse tables that are too large, alone or together."""
        cells = {names: self.universe.cells(names) for names in wanted}
        for names, size in cells.items():
            if size > LARGEST_MARGINAL:
                raise TooLarge(
                    f"A marginal must have at most {LARGEST_MARGINAL} cells. Found {size} on {names!r}. "
                    "Ask about fewer attributes, or declare coarser bins."
                )
        if sum(cells.values()) > COUNTED_CELLS:
            raise TooLarge(
                f"Marginals that are counted at once must have at most {COUNTED_CELLS} cells in all. "
                f"Found {sum(cells.values())}. Ask for fewer at a time."
            )

    def _keep(self, names: Names, counts: Counts) -> None:
        """Add a table to the cache, and drop the oldest tables if the cache is full."""
        before = self._cache.pop(names, None)  # another thread may have counted the same table
        self._cached_cells += counts.size - (0 if before is None else before.size)
        self._cache[names] = counts
        most = _memory.at_most(8 * _memory.ARRAY, CACHED_CELLS)  # an eighth of the memory limit
        while self._cached_cells > most:
            self._cached_cells -= self._cache.pop(next(iter(self._cache))).size

    def forget(self) -> None:
        """Drop the cache. Its tables are counted again when they are needed."""
        with self._caching:
            self._cache, self._cached_cells = {}, 0

    def fingerprint(self) -> str:
        """Return a hash that two tables share if and only if they have the same records under the same universe.

        The order of the rows does not matter, because an engine may deliver them in any order and no mechanism sees it.
        The hash is as secret as the table: whoever has it can check a guess of all rows.
        """
        digest = hashlib.sha256(declaration_of(self.universe))
        for records in self._distinct():
            digest.update(records.astype("<i8").tobytes())
        return digest.hexdigest()

    @abstractmethod
    def merge_values(self, universe: Universe, groups: Mapping[str, Integers]) -> DataSource:
        """Return the same rows under a universe with fewer values.

        ``groups`` has, for each attribute that changes, the group of every value.
        """

    @abstractmethod
    def _count_all(self, sets: Sequence[Names]) -> list[Counts]:
        """Return a new array of counts for each set. The sets are distinct and their tables fit in memory."""

    @abstractmethod
    def _distinct(self) -> Iterator[Integers]:
        """Yield each distinct record, with its count in the last column, in the order of the cells, some at a time."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.universe!r})"


def _beside(names: Names, kept: Names) -> tuple[int, ...]:
    """Return the axes of a table that are summed out."""
    return tuple(i for i, name in enumerate(names) if name not in kept)


def declaration_of(universe: Universe) -> bytes:
    """Return everything that a universe declares, as bytes."""
    declared = []
    for name in universe.names:
        attribute = universe[name]
        fields = [
            _plain(attribute.plain_labels if field.name == "labels" else getattr(attribute, field.name))
            if field.name in FIRST_FIELDS
            else (field.name, repr(getattr(attribute, field.name)))
            for field in dataclasses.fields(attribute)
            if field.name in FIRST_FIELDS or getattr(attribute, field.name) != field.default
        ]  # newer fields appear only where they are used, so that older fingerprints remain valid
        declared.append((str(name), type(attribute).__name__, fields))
    return repr(declared).encode()


def _plain(value: Any) -> Any:
    """Convert a value to Python's own classes, so that equal values are written alike."""
    if isinstance(value, tuple | WholeLabels):
        return [_plain(each) for each in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def compose_groups(first: Mapping[str, Integers], then: Mapping[str, Integers]) -> dict[str, Integers]:
    """Return the groups that result from grouping values twice."""
    return {**first, **{name: group[first[name]] if name in first else group for name, group in then.items()}}


def merge_records(
    universe: Universe, groups: Mapping[str, Integers], batches: Iterable[Integers]
) -> Iterator[Integers]:
    """Yield distinct records with their counts after grouping, given those before grouping."""
    records = np.concatenate([np.zeros((0, len(universe.names) + 1), np.int64), *batches])
    for i, name in enumerate(universe.names):
        if name in groups:
            records[:, i] = groups[name][records[:, i]]
    distinct, places = np.unique(records[:, :-1], axis=0, return_inverse=True)
    counts = np.zeros(len(distinct), np.int64)
    np.add.at(counts, places.ravel(), records[:, -1])
    yield np.column_stack([distinct, counts])


class HistogramSource(DataSource):
    """A table given by its counts over the whole universe. A billion rows cost no more than ten.

    Parameters
    ----------
    universe : Universe
        The universe.
    counts : array_like of int
        One count per cell of the universe, at most ``MOST_ROWS`` (2^50) in all.

    Raises
    ------
    InvalidInput
        If the counts are no such histogram. The owner, who made the counts, sees this before any question.
    """

    def __init__(self, universe: Universe, counts: ArrayLike) -> None:
        super().__init__(universe)
        array = np.asarray(counts)
        if array.size != universe.size or not np.issubdtype(array.dtype, np.integer) or (array < 0).any():
            raise InvalidInput(
                f"A histogram must hold {universe.size} counts, whole and not negative. Found other values or another "
                "size. Give one count per cell of the universe."
            )
        if array.sum(dtype=float) > MOST_ROWS:  # a float cannot overflow, and its rounding does not matter at this size
            raise InvalidInput("A histogram must hold at most 2^50 rows in all. Found more. Give smaller counts.")
        self._counts = array.reshape(universe.shape).astype(np.int64)

    def merge_values(self, universe: Universe, groups: Mapping[str, Integers]) -> HistogramSource:
        """Return the histogram under a universe with fewer values, given the group of every value."""
        counts = self._counts
        for name, group in groups.items():
            axis = self.universe.index(name)
            fewer = np.zeros((universe[name].size, *np.delete(counts.shape, axis)), np.int64)
            np.add.at(fewer, group, np.moveaxis(counts, axis, 0))
            counts = np.moveaxis(fewer, 0, axis)
        return HistogramSource(universe, counts)

    def _count_all(self, sets: Sequence[Names]) -> list[Counts]:
        return [np.asarray(self._counts.sum(axis=self._axes_beside(names))) for names in sets]

    def _axes_beside(self, names: Names) -> tuple[int, ...]:
        return tuple(i for i, name in enumerate(self.universe.names) if name not in names)

    def _distinct(self) -> Iterator[Integers]:
        occurring = np.argwhere(self._counts)
        yield np.column_stack([occurring, self._counts[self._counts > 0]])
