"""Error bars where the model knows only groups of values: questions about values, bounded by tables of both.

A question q lies between the largest question about groups below it and the smallest above it, and so does its true
count: q⁻ ≤ q ≤ q⁺ gives lower(q⁻) ≤ ⟨q, D⟩ ≤ upper(q⁺). A question that divides no group has the bars of its own.
Tables of values and tables of groups have half of β each (docs/proofs/merging.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.engine.practical.bars.error_bars import ErrorBars, JointEstimate
from hedgerow.engine.practical.fit.value_groups import ValueGroups
from hedgerow.engine.practical.measurement import Measurement, RowCountInterval
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.query.linear import Linear


class MergedBars:
    """The counterpart of ``ErrorBars`` for measurements of values and of groups."""

    def __init__(self, merging: ValueGroups, beta: float) -> None:
        self._merging = merging
        self._values, self._groups = ErrorBars(merging.universe, beta / 2), ErrorBars(merging.inner, beta / 2)
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

    def intervals(self, queries: Sequence[Linear], rows: RowCountInterval) -> tuple[Array, Array]:
        """Return intervals for the true fractions: the intersection of those by values and those by groups."""
        low, high = self._values.intervals(queries, rows)
        pairs = [self._merging.around(query) for query in queries]
        least, most = self._groups.intervals([q for pair in pairs for q in pair], rows)
        low, high = np.maximum(low, least[::2]), np.minimum(high, most[1::2])
        return low, np.maximum(low, high)

    def cell_intervals(self, names: Names, rows: RowCountInterval) -> tuple[Array, Array]:
        """Return intervals for every cell of a table of values.

        A cell of values is at most its cell of groups, and equal to it where each of its groups has one value.
        """
        low, high = self._values.cell_intervals(names, rows)
        least, most = self._groups.cell_intervals(names, rows)
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
        for i, query in enumerate(queries):
            above = self._merging.around(query)[1]
            if above.attributes:
                whole = float(self._groups.deviations(above.attributes, [above])[0])
                found[i] = min(found[i], whole * self._merging.part(query, above))
        return found

    def distance(self, names: Names, believed: Array, rows: RowCountInterval) -> float:
        """Return a bound on the ℓ2 distance of the true fractions from ``believed``."""
        by_values = self._values.distance(names, believed, rows)
        return (
            by_values if self._merging.touches(names) else min(by_values, self._groups.distance(names, believed, rows))
        )
