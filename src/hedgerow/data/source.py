"""The sensitive table as mechanisms see it: counts over the cells of a few attributes, and nothing else.

To count somewhere else, add a ``DataSource`` here beside ``histogram`` and ``table``; tests/data/test_sources.py is what it must pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from hedgerow._types import Counts
from hedgerow.errors import TooLarge
from hedgerow.questions.universe import Universe

LARGEST_MARGINAL = 50_000_000  # cells of one table of counts
CACHED_CELLS = 50_000_000  # cells of all cached tables together
MOST_ROWS = 2**50  # of any table: all exact arithmetic on counts is proved up to here


class DataSource(ABC):
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
