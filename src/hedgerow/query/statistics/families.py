"""Families of comparisons: all groups against one, or all pairs of groups.

All error bars of a session hold together with probability 1 − β, so those of a family do, whatever its size: β is not
divided among the comparisons.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow._types import Array
from hedgerow.errors import InvalidInput
from hedgerow.query.composed import ComposedQuestion
from hedgerow.query.counts import Count, Quantity, Query, Resolution, bound_condition, count, is_boolean
from hedgerow.query.linear import spread
from hedgerow.query.raw_rows import RawRows
from hedgerow.query.statistics.differences import difference_of, quantity_of_difference
from hedgerow.query.statistics.groups import GroupedQuestion, require_kept
from hedgerow.query.statistics.odds import odds_of, quotient_of
from hedgerow.query.statistics.statistic import SeveralQuestions, Statistic, offer
from hedgerow.universe.universe import Universe

MEASURES: dict[str, Callable[[Universe, Query, Query, Resolution], ComposedQuestion]] = {
    "difference": difference_of,
    "ratio": quotient_of,
    "odds ratio": odds_of,
}
MOST_COMPARISONS = 20_000


@dataclass(frozen=True, eq=False, repr=False)
class GroupContrast(Statistic):
    """Comparisons of groups, made by ``compare``."""

    of: Query
    against: Query | None = None
    measure: str = "difference"

    @property
    def quantity(self) -> Quantity:
        """Quantity of a difference, or a number for a ratio."""
        return quantity_of_difference(self.of, self.of) if self.measure == "difference" else "number"

    def __post_init__(self) -> None:
        if not (isinstance(self.of, GroupedQuestion) and self.of.of is not None and len(self.of.attributes) == 1):
            raise InvalidInput(
                f"Comparisons must be of one question for each value of one attribute. Found {self.of!r}. "
                'Give group_by("race").mean("income") or the like.'
            )
        if self.measure not in MEASURES:
            raise InvalidInput(
                f"measure must be one of {', '.join(MEASURES)}. Found {self.measure!r}. Choose one of these."
            )
        if self.against is not None and not is_boolean(self.against):
            raise InvalidInput(f"against must be a value of the attribute. Found {self.against!r}. Name one group.")

    def on(self, universe: Universe, resolution: Resolution = "values") -> SeveralQuestions:
        """Bind one comparison for each pair of groups."""
        assert isinstance(self.of, GroupedQuestion)
        (name,) = self.of.attributes
        parts = self.of.parts(universe).tolist()  # which refuses too many groups, before their masks are listed
        ((_, labels),) = self.of.axes(universe)
        pairs: Sequence[tuple[int, int]]
        axis: tuple[str, tuple[Any, ...]]
        if self.against is None:
            pairs = list(itertools.combinations(range(len(labels)), 2))
            axis = (f"{name} pair", tuple(f"{labels[i]} against {labels[j]}" for i, j in pairs))
        else:
            at = self.place(universe)
            pairs = [(i, at) for i in range(len(labels)) if i != at]
            axis = (name, tuple(labels[i] for i, _ in pairs))
        if not pairs or len(pairs) > MOST_COMPARISONS:
            raise InvalidInput(
                f"Comparisons must be at least 1 and at most {MOST_COMPARISONS}. Found {len(pairs)}. Compare with one "
                "group, or group by another attribute."
            )
        require_kept("A question of comparisons", universe, parts[:1], len(labels), "Compare fewer groups")
        compare_parts = MEASURES[self.measure]
        found = tuple(compare_parts(universe, parts[i], parts[j], resolution) for i, j in pairs)
        return SeveralQuestions(found, (axis,), all(part.is_fraction for part in found))

    def true_value(self, rows: RawRows) -> Array:
        """Return the comparisons of the true answers of the groups."""
        values = np.asarray(self.of.true_value(rows))
        values = values / (1 - values) if self.measure == "odds ratio" else values
        if self.against is None:
            first, second = np.triu_indices(len(values), 1)
        else:
            at = self.place(rows.universe)
            first = np.delete(np.arange(len(values)), at)
            second = np.full(first.size, at)
        a, b = values[first], values[second]
        return np.asarray(a - b if self.measure == "difference" else a / b)

    def place(self, universe: Universe) -> int:
        """Return the cell of the group that the others are compared with."""
        assert self.against is not None and isinstance(self.of, GroupedQuestion)
        (name,) = self.of.attributes
        if self.of.by is not None:
            raise InvalidInput(
                f"against must be left out where dates are grouped by period. Found {self.against!r}. Compare all "
                "pairs, or group by the bins of the universe."
            )
        chosen = bound_condition(self.against, universe, "bins").low
        cells = np.zeros(0, dtype=np.intp)
        if set(chosen.attributes) <= {name}:
            cells = np.flatnonzero(np.broadcast_to(spread(chosen, (name,)), universe.sizes((name,))))
        if cells.size != 1:
            raise InvalidInput(
                f"against must be one value of {name!r}. Found {self.against!r}. Name one of its values."
            )
        return int(cells[0])

    def __repr__(self) -> str:
        against = "" if self.against is None else f", against={self.against!r}"
        return f"compare({self.of!r}{against}, measure={self.measure!r})"


def compare(of: Query, against: Any = None, *, measure: str = "difference") -> Query:
    """Compare groups: each with one of them, or all pairs.

    All bars of a session hold together with probability 1 − β. So do those of all comparisons: no correction for their
    number is needed, and ``answer.excludes(0)`` (1 for a ratio) says which of them are proven.

    Parameters
    ----------
    of : Query
        A question for each value of one attribute, such as ``group_by("race").mean("income")``.
    against : optional
        Value of the attribute: the group that all others are compared with. Default: all pairs of groups.
    measure : {"difference", "ratio", "odds ratio"}
        The number of a group minus that of the other; divided by it; or the ratio of the odds of two shares.

    Returns
    -------
    Query

    Example
    -------
    >>> compare(group_by("race").share(count(insured=True)), against="White", measure="odds ratio")  # doctest: +SKIP
    """
    if isinstance(of, GroupedQuestion) and of.of is None:
        of = GroupedQuestion(of.attributes, Count(()))
    if against is None or isinstance(against, Query) or not isinstance(of, GroupedQuestion):
        return GroupContrast(of, against, measure)
    return GroupContrast(of, count({of.attributes[0]: against}), measure)


offer(GroupContrast, compare)
