"""Groups: one question for each cell of some attributes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _memory
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.query.bound import Bound
from hedgerow.query.counts import (
    QUESTIONS,
    Count,
    Query,
    Resolution,
    bound,
    count,
    marginal,
)
from hedgerow.query.ratios import mean, share
from hedgerow.query.statistics.quantiles import median, quantile
from hedgerow.query.statistics.spread import variance
from hedgerow.query.statistics.statistic import SeveralQuestions, Statistic, offer, single
from hedgerow.query.statistics.totals import total
from hedgerow.universe.universe import Universe

MOST_GROUPS = 20_000  # a question is asked of at most this many groups


@dataclass(frozen=True, eq=False, repr=False)
class GroupedQuestion(Statistic):
    """A question for each group, made by ``group_by``. Without one, the fraction of records in each group."""

    attributes: tuple[str, ...]
    of: Query | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(dict.fromkeys(self.attributes)))
        if not self.attributes:
            raise InvalidInput("Groups must have at least one attribute. Found none. Name the attributes.")
        if self.of is not None and (type(self.of) not in QUESTIONS or self.of.among(Count(())) is None):
            raise InvalidInput(
                f"The question for each group must be a count, share, mean, quantile, total, variance or correlation. "
                f"Found {self.of!r}. Ask it for each group separately."
            )

    def on(self, universe: Universe, resolution: Resolution = "values") -> Bound[Any]:
        """Bind the question once for each group."""
        if self.of is None:
            return marginal(*self.attributes).on(universe)
        parts = tuple(single(part, universe, resolution) for part in self.parts(universe).ravel().tolist())
        axes = tuple((name, tuple(universe[name].labels)) for name in self.attributes)
        return SeveralQuestions(parts, axes, all(part.is_fraction for part in parts))

    def parts(self, universe: Universe) -> NDArray[np.object_]:
        """Return the question of each group, as an array with one axis per attribute."""
        assert self.of is not None
        shape = universe.sizes(self.attributes)
        if math.prod(shape) > MOST_GROUPS:
            raise TooLarge(
                f"Groups must be at most {MOST_GROUPS}. Found {math.prod(shape)}. Group by fewer attributes."
            )
        _memory.require_listing("A question of groups", math.prod(shape), sum(shape), "Group by fewer attributes")
        found = np.empty(shape, dtype=object)
        for cell in np.ndindex(shape):
            group = count({n: np.arange(m) == i for n, m, i in zip(self.attributes, shape, cell, strict=True)})
            part = found[cell] = self.of.among(group)
            assert part is not None
            if not any(cell):  # all other groups are as large
                require_kept("A question of groups", universe, [part], math.prod(shape), "Group by fewer attributes")
        return found


def require_kept(what: str, universe: Universe, alike: Sequence[Query], times: int, way_out: str) -> None:
    """Refuse to ask these questions ``times`` times if the tables that they leave cached exceed the memory limit."""
    parts = [bound(query, universe) for query in alike]
    cells = sum(part.kept_cells(universe) for part in parts) * times
    _memory.require(f"{what}, with a table for each group,", cells, _memory.KEPT, way_out)


class Groups:
    """Groups of records by the cells of some attributes. Its methods ask for their counts, means and so on."""

    def __init__(self, attributes: tuple[str, ...]) -> None:
        self._attributes = attributes

    def count(self, where: Query | None = None) -> Query:
        """Ask for the fraction of records in each group, counting only those of ``where`` if given."""
        return GroupedQuestion(self._attributes, where)

    def mean(self, attribute: str, where: Query | None = None) -> Query:
        """Ask for the mean of an attribute in each group."""
        return GroupedQuestion(self._attributes, mean(attribute, where))

    def share(self, part: Query, where: Query | None = None) -> Query:
        """Ask for the fraction of each group for which ``part`` holds."""
        return GroupedQuestion(self._attributes, share(part, Count(()) if where is None else where))

    def median(self, attribute: str, where: Query | None = None) -> Query:
        """Ask for the median of an attribute in each group."""
        return GroupedQuestion(self._attributes, median(attribute, where))

    def quantile(self, attribute: str, q: float, where: Query | None = None) -> Query:
        """Ask for a quantile of an attribute in each group."""
        return GroupedQuestion(self._attributes, quantile(attribute, q, where))

    def total(self, attribute: str, where: Query | None = None) -> Query:
        """Ask for the sum of an attribute over each group."""
        return GroupedQuestion(self._attributes, total(attribute, where))

    def variance(self, attribute: str, where: Query | None = None) -> Query:
        """Ask for the variance of an attribute in each group."""
        return GroupedQuestion(self._attributes, variance(attribute, where))

    def __repr__(self) -> str:
        return f"group_by({', '.join(map(repr, self._attributes))})"


def group_by(*attributes: str) -> Groups:
    """Group records by the cells of some attributes. The methods of the result ask one question of all groups.

    Parameters
    ----------
    *attributes : str
        Names of the attributes.

    Returns
    -------
    Groups

    Example
    -------
    >>> group_by("sex").mean("age")  # doctest: +SKIP
    """
    if not attributes:
        raise InvalidInput("Groups must have at least one attribute. Found none. Name the attributes.")
    return Groups(tuple(attributes))


offer(GroupedQuestion, group_by)
