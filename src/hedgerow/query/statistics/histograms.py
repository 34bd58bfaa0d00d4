"""Histograms: a count for each bin."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow import _memory
from hedgerow.errors import InvalidInput
from hedgerow.query.counts import (
    Query,
    Resolution,
    count,
)
from hedgerow.query.linear import Linear
from hedgerow.query.statistics.statistic import (
    SeveralQuestions,
    SingleQuestion,
    Statistic,
    offer,
    part_of,
    real_number,
    require_where,
)
from hedgerow.universe.attributes import Range
from hedgerow.universe.universe import Universe


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(Statistic):
    """A histogram, made by ``histogram``."""

    attribute: str
    edges: tuple[float, ...] | None = None
    where: Query | None = None

    def __post_init__(self) -> None:
        require_where(self.where)
        if self.edges is None:
            return
        cuts = tuple(real_number("An edge", edge) for edge in self.edges)
        if len(cuts) < 2 or not all(a < b for a, b in itertools.pairwise(cuts)):
            raise InvalidInput(f"edges must be at least two increasing numbers. Found {cuts[:6]!r}. Sort them.")
        object.__setattr__(self, "edges", cuts)

    def on(self, universe: Universe, resolution: Resolution = "values") -> SeveralQuestions:
        """Bind one count for each bin."""
        declared = universe[self.attribute]
        if self.edges is None:
            _memory.require_listing("A histogram", declared.size, declared.size, "Give edges of fewer bins")
            masks = np.eye(declared.size, dtype=bool)
            cells: list[Query | None] = [count({self.attribute: mask}) for mask in masks]
            labels = tuple(declared.labels)
        else:
            cells, labels = _half_open(universe, self.attribute, self.edges), tuple(Range(edges=self.edges).labels)
        none = SingleQuestion(Linear((), (), (), np.array(0.0), True))
        parts = tuple(
            none if cell is None else part_of(cell if self.where is None else cell & self.where, universe, resolution)
            for cell in cells
        )
        return SeveralQuestions(parts, ((self.attribute, labels),), True)


def _half_open(universe: Universe, attribute: str, edges: tuple[float, ...]) -> list[Query | None]:
    """Return one count per bin, with its lower edge and without its upper one; the last bin has both.

    The count is None for a bin in which no record can be.
    """
    declared = universe[attribute]
    if declared.bounds is None:
        raise InvalidInput(
            f"A histogram with edges must have a numeric attribute. Found {attribute!r}, which has labels only. "
            "Leave the edges out."
        )
    least, most = np.nanmin(declared.bounds[0]), np.nanmax(declared.bounds[1])
    closed = [*(math.nextafter(edge, -math.inf) for edge in edges[1:-1]), edges[-1]]
    pairs = zip(edges, closed, strict=False)
    return [None if a > most or b < least else count({attribute: (a, b)}) for a, b in pairs]


def histogram(attribute: str, edges: Sequence[float] | None = None, where: Query | None = None) -> Query:
    """Ask for the fraction of records in each bin.

    As in NumPy, a bin includes its lower edge but not its upper one, the last bin includes both, and records outside
    are in no bin.

    Parameters
    ----------
    attribute : str
        The attribute.
    edges : sequence of float, optional
        Increasing edges of the bins. Default: the cells of the universe.
    where : Query, optional
        A count that selects the records. Default: all.

    Returns
    -------
    Query

    Example
    -------
    >>> histogram("age", edges=[20, 40, 60, 80])  # doctest: +SKIP
    """
    return Histogram(attribute, None if edges is None else tuple(edges), where)


offer(Histogram, histogram)
