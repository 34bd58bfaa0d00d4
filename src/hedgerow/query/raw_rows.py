"""The rows of a table as they are, from which a question computes its true answer by its definition.

Only ``unsafe`` reads a table in this way, for benchmarks and tests; a session never does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array, Names
from hedgerow.universe.universe import Universe


class RawRows(Protocol):
    """Rows of a table: their cells, their numbers, and which of them a condition selects. Private."""

    universe: Universe
    count: int

    def cells(self, name: str) -> NDArray[np.int64]:
        """Return the cell of each row on an attribute."""
        ...

    def numbers(self, name: str) -> Array:
        """Return the number of each row on a numeric attribute, NaN where it is missing."""
        ...

    def scores(self, name: str) -> Array:
        """Return the numbers of an attribute, or the positions of its labels if it has none."""
        ...

    def values(self, name: str, where: Any) -> Array:
        """Return the numbers of the rows where a condition holds and the number is not missing."""
        ...

    def table(self, names: Names, where: Any) -> Array:
        """Return the number of rows in each cell of some attributes, where a condition holds."""
        ...

    def satisfy(self, predicates: Sequence[tuple[str, Any]]) -> NDArray[np.bool_]:
        """Return for each row whether it satisfies all predicates on attributes."""
        ...

    def weights(self, query: Any) -> Array:
        """Return the value of a linear query on each row."""
        ...

    def holds(self, where: Any) -> NDArray[np.bool_]:
        """Return for each row whether a condition holds; None holds everywhere."""
        ...
