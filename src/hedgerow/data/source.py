"""The sensitive table as mechanisms see it: counts over the cells of a few attributes, and nothing else.

To count somewhere else, add a ``DataSource`` here beside ``histogram`` and ``table``; tests/data/test_sources.py is what it must pass.
"""

from __future__ import annotations

import dataclasses
import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from hedgerow import _memory
from hedgerow._types import Counts, Integers, Names
from hedgerow.errors import TooLarge
from hedgerow.questions.attributes import WholeLabels
from hedgerow.questions.universe import Universe

LARGEST_MARGINAL = 50_000_000  # cells of one table of counts
COUNTED_CELLS = 50_000_000  # cells of all tables that are counted at once
CACHED_CELLS = 16_000_000  # cells of all cached tables together
SUMMED = 1 << 21  # cells of a table from which smaller ones are summed: faster than another scan of many rows
MOST_COMPARED = 100_000  # pairs of sets of attributes
FIRST_FIELDS = ("labels", "values", "other", "ordered", "low", "high", "edges")  # of attributes
MOST_ROWS = 2**50  # of any table: all exact arithmetic on counts is proved up to here


class DataSource(ABC):
    """Counts of a sensitive table by cell. Everything it returns is secret until noise is added. Threads may share it."""

    def __init__(self, universe: Universe) -> None:
        self.universe = universe
        self._cache: dict[Names, Counts] = {}
        self._cached_cells = 0
        self._caching = threading.Lock()

    def __copy__(self) -> Self:
        return self  # and so are all that look at it: the table is one

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
        """n: public under replace-one adjacency, secret under add/remove."""
        return int(self.marginal(()))

    def marginal(self, attributes: Iterable[str]) -> Counts:
        """How many records fall in each cell of the attributes (axes in universe order). Cached, and read-only."""
        return self.marginals([attributes])[0]

    def marginals(self, sets: Iterable[Iterable[str]]) -> list[Counts]:
        """The marginals of many sets of attributes, in their order: those that are not known yet in one scan.

        One that is part of another is summed from it, which gives the same whole numbers.
        """
        asked = [self.universe.order(attributes) for attributes in sets]
        with self._caching:
            known = dict(self._cache)
        wanted = [names for names in dict.fromkeys(asked) if names not in known]
        if wanted:
            self._find(wanted, known)
        return [known[names] for names in asked]

    def _find(self, wanted: Sequence[Names], known: dict[Names, Counts]) -> None:
        """Add these to the known ones, and to the cache."""
        self._require_room(wanted)
        larger = self._larger({*known, *wanted}, wanted)
        scanned = [names for names in wanted if names not in larger]
        known.update(zip(scanned, self._count_all(scanned) if scanned else [], strict=True))
        for names in sorted(larger, key=len, reverse=True):  # what is summed from may have been summed itself
            known[names] = np.asarray(known[larger[names]].sum(axis=_beside(larger[names], names)))
        with self._caching:
            for names in wanted:
                known[names].flags.writeable = False
                self._keep(names, known[names])

    def _larger(self, tables: Collection[Names], wanted: Sequence[Names]) -> dict[Names, Names]:
        """Of each set that is part of one of the tables, and not too large to be summed, the smallest such.

        Of very many sets it is not looked for: going through all pairs of them would take longer than the scan.
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
        """Into the cache, from which the oldest leave."""
        before = self._cache.pop(names, None)  # another thread may have counted it too
        self._cached_cells += counts.size - (0 if before is None else before.size)
        self._cache[names] = counts
        most = _memory.at_most(8 * _memory.ARRAY, CACHED_CELLS)  # an eighth of the limit
        while self._cached_cells > most:
            self._cached_cells -= self._cache.pop(next(iter(self._cache))).size

    def forget(self) -> None:
        """Drop what is cached: it is counted again when it is asked for."""
        with self._caching:
            self._cache, self._cached_cells = {}, 0

    def fingerprint(self) -> str:
        """What two tables share if and only if they hold the same records, however often each, under one universe.

        In any order, for an engine may give rows in any, and no mechanism sees it. As secret as the table: who has it can
        check a guess of all rows.
        """
        digest = hashlib.sha256(_declaration(self.universe))
        for records in self._distinct():
            digest.update(records.astype("<i8").tobytes())
        return digest.hexdigest()

    @abstractmethod
    def merged(self, universe: Universe, groups: Mapping[str, Integers]) -> DataSource:
        """The same rows under a universe with fewer values: of each attribute in ``groups``, the group of every value."""

    @abstractmethod
    def _count_all(self, sets: Sequence[Names]) -> list[Counts]:
        """A new array for each set. They are distinct and fit in memory."""

    @abstractmethod
    def _distinct(self) -> Iterator[Integers]:
        """Each record that occurs once, with how often in the last column: in the order of the cells, some at a time."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.universe!r})"


def _beside(names: Names, kept: Names) -> tuple[int, ...]:
    """The axes of a table that are summed away."""
    return tuple(i for i, name in enumerate(names) if name not in kept)


def _declaration(universe: Universe) -> bytes:
    """Everything that a universe declares."""
    declared = []
    for name in universe.names:
        attribute = universe[name]
        fields = [
            _plain(getattr(attribute, field.name))
            if field.name in FIRST_FIELDS
            else (field.name, repr(getattr(attribute, field.name)))
            for field in dataclasses.fields(attribute)
            if field.name in FIRST_FIELDS or getattr(attribute, field.name) != field.default
        ]  # what was added later shows only where it is used, so that older fingerprints stay what they were
        declared.append((str(name), type(attribute).__name__, fields))
    return repr(declared).encode()


def _plain(value: Any) -> Any:
    """Of Python's own classes, so that equal values are written alike."""
    if isinstance(value, tuple | WholeLabels):
        return [_plain(each) for each in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
