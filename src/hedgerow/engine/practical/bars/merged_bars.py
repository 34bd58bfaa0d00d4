"""Error bars where the model knows only groups of values: questions about values, bounded by tables of both.

A question q lies between the largest question about groups below it and the smallest above it, and so does its true
count: q⁻ ≤ q ≤ q⁺ gives lower(q⁻) ≤ ⟨q, D⟩ ≤ upper(q⁺). A question that divides no group has the bars of its own.
Tables of values and tables of groups have half of β each (docs/proofs/merging.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.engine.practical.bars.count_bars import CountBars
from hedgerow.engine.practical.bars.error_bars import JointEstimate
from hedgerow.engine.practical.fit.value_groups import ValueGroups
from hedgerow.engine.practical.measurement import Measurement, RowCountInterval
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.query.linear import GroupedQueries, Linear, stacked_groups


class MergedBars:
    """The counterpart of ``CountBars`` for measurements of values and of groups."""

    def __init__(self, merging: ValueGroups, beta: float) -> None:
        self._merging = merging
        self._values, self._groups = CountBars(merging.universe, beta / 2), CountBars(merging.inner, beta / 2)
        self.shares: list[int] = []
        self._has_groups = self._has_values = False

    def add_overview(self, overview: JointEstimate) -> None:
        """Add an overview, which is of groups."""
        self._has_groups = True
        self._groups.add_overview(overview)

    def add(self, measurement: Measurement) -> None:
        """Add a table or a query of groups or of values."""
        self.shares.append(self._values.numbers)
        if measurement.of_groups:
            self._has_groups = True
            self._groups.add(measurement)
        else:
            self._has_values |= measurement.query is None
            self._values.add(measurement)

    # Purchases are about values.

    def width(self, query: Linear, event: Laplace | Gaussian, *, alone: bool, after: int = 0) -> float:
        """Return the half-width in rows that a measurement of values would give a query."""
        return self._values.width(query, event, alone=alone, after=after)

    def number(self, event: Laplace | Gaussian) -> float:
        """Return the half-width in rows that the next measurement would give a number that is not a count."""
        return self._values.number(event)

    @property
    def numbers(self) -> int:
        """The number of released numbers that have taken a share of β."""
        return self._values.numbers

    def add_number(self) -> None:
        """Record the release of a number that is not a count."""
        self._values.add_number()

    # Knowledge is about both.

    def rows(self) -> RowCountInterval:
        """Return n, with the intersection of both intervals."""
        if not (self._has_values and self._has_groups):
            return self._values.rows() if self._has_values else self._groups.rows()
        a, b = self._values.rows(), self._groups.rows()
        low, high = max(a.low, b.low), min(a.high, b.high)
        high = max(low, high)
        return RowCountInterval(min(high, max(low, b.estimate)), low, high, b.deviation)

    def intervals(self, queries: Sequence[Linear], row_count: RowCountInterval) -> tuple[Array, Array]:
        """Return intervals for the true fractions: the intersection of those by values and those by groups."""
        self._merging.expect(queries)
        asked, below, above = GroupedQueries(), [], []  # the questions about groups, and where they are
        for query in queries:
            inner, outer = self._merging.around(query)
            above.append(len(asked))
            asked.append(outer)
            if inner is not outer:
                asked.append(inner)
            below.append(len(asked) - 1)
        least, most = self._groups.intervals(asked, row_count)
        low, high = least[below], most[above]
        if self._has_values or self._values.queries:
            by_values = self._values.intervals(queries, row_count)
            low, high = np.maximum(by_values[0], low), np.minimum(by_values[1], high)
        return low, np.maximum(low, high)

    def interval(self, query: Linear, row_count: RowCountInterval) -> tuple[float, float]:
        """Return the ends that ``intervals`` gives for the true fraction of one query."""
        below, above = self._merging.around(query)
        low, high = self._values.interval(query, row_count)
        least, most = self._groups.interval(above, row_count)
        if below is not above:
            least = self._groups.interval(below, row_count)[0]
        low, high = max(low, least), min(high, most)
        return low, max(low, high)

    def cell_intervals(self, names: Names, row_count: RowCountInterval) -> tuple[Array, Array]:
        """Return intervals for every cell of a table of values.

        A cell of values is at most its cell of groups, and equal to it where each of its groups has one value.
        """
        low, high = self._values.cell_intervals(names, row_count)
        least, most = self._groups.cell_intervals(names, row_count)
        alone = np.ones(least.shape, bool)
        for axis, name in enumerate(names):
            if name in self._merging.groups:
                groups = self._merging.groups[name]
                wide = [-1 if i == axis else 1 for i in range(least.ndim)]
                alone = alone & (np.bincount(groups) == 1).reshape(wide)
        least = np.where(alone, least, 0.0)
        for axis, name in enumerate(names):
            if name in self._merging.groups:
                least = np.take(least, self._merging.groups[name], axis=axis)
                most = np.take(most, self._merging.groups[name], axis=axis)
        low, high = np.maximum(low, least), np.minimum(high, most)
        return low, np.maximum(low, high)

    def covers(self, names: Names) -> bool:
        """Return True if some measurement of values or of groups estimates the counts on these attributes."""
        return self._values.covers(names) or self._groups.covers(names)

    def deviations(self, names: Names, queries: Sequence[Linear]) -> Array:
        """Return the standard deviations of what was measured of these queries, in rows. Not a bound.

        A question that divides groups gets the deviation of the smallest question above it, times its part of that
        question.
        """
        found = self._values.deviations(names, queries)
        if not self._merging.touches(names):
            return np.minimum(found, self._groups.deviations(names, queries))
        above = [self._merging.around(query)[1] for query in queries]
        for group, members, asked in stacked_groups(above):
            if group:
                parts = np.array([self._merging.part(queries[i], above[i]) for i in members.tolist()])
                found[members] = np.minimum(found[members], self._groups.deviations(group, asked) * parts)
        return found

    def deviation(self, query: Linear) -> float:
        """Return what ``deviations`` gives for one query."""
        found, above = self._values.deviation(query), self._merging.around(query)[1]
        if not above.attributes:
            return found
        return min(found, self._groups.deviation(above) * self._merging.part(query, above))

    def distance(self, names: Names, believed: Array, row_count: RowCountInterval) -> float:
        """Return a bound on the ℓ2 distance of the true fractions from ``believed``."""
        by_values = self._values.distance(names, believed, row_count)
        return (
            by_values
            if self._merging.touches(names)
            else min(by_values, self._groups.distance(names, believed, row_count))
        )
