"""Non-private diagnostics for benchmarks and tests. Every function here looks at the data and is named ``unsafe_…``.

Never show what they return to anyone who may not see the table itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hedgerow._types import Array
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.convex.solver.public_minimum import minimised
from hedgerow.data import DataSource, Table
from hedgerow.errors import InvalidInput
from hedgerow.questions.bound import Estimate
from hedgerow.questions.counts import BoundMarginal, Query
from hedgerow.questions.linear import Linear
from hedgerow.questions.universe import Universe

if TYPE_CHECKING:
    from hedgerow.session import Answer

__all__ = ["unsafe_answer", "unsafe_error", "unsafe_excess_risk"]


def unsafe_answer(source: Any, query: Query, universe: Universe | None = None) -> float | Array:
    """The true value of a query on the table, with no noise."""
    data = source if isinstance(source, DataSource) else Table(source, _declared(source, universe))
    return query.on(data.universe).ask(_Truth(data), None).value


class _Truth:
    """Answers from the table itself."""

    def __init__(self, data: DataSource) -> None:
        self._data = data

    def believed(self, query: Linear) -> float:
        return query.dot(self._data.marginal(query.attributes)) / self._data.rows

    def linear(self, query: Linear, within: float | None) -> Estimate:
        return Estimate(self.believed(query), 0.0, "measured")

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        return Estimate(np.asarray(self._data.marginal(table.attributes) / self._data.rows), 0.0, "measured")

    def minimise(self, question: BoundMinimize, within: float | None) -> Estimate:
        counts = self._data.marginal(question.attributes)
        return Estimate(minimised(question.risk, counts, question.over).theta, None, "measured")


def unsafe_excess_risk(
    source: Any, query: Query, theta: ArrayLike, universe: Universe | None = None, *, tolerance: float = 1e-8
) -> float:
    """err(D, θ): how much larger the average loss of θ on the table is than the least over the query's set."""
    data = source if isinstance(source, DataSource) else Table(source, _declared(source, universe))
    bound = query.on(data.universe)
    if not isinstance(bound, BoundMinimize):
        raise InvalidInput(f"The query must be made by hr.minimize. Found {query!r}. Use unsafe_error for others.")
    counts = data.marginal(bound.attributes)
    least = minimised(bound.risk, counts, bound.over, tolerance)
    return (bound.risk.objective(counts).value(np.asarray(theta, dtype=float)) - least.value) / data.rows


def unsafe_error(source: Any, answer: Answer, universe: Universe | None = None) -> float:
    """The largest true error of an answer, as a fraction of the table."""
    return float(np.max(np.abs(np.asarray(answer.value) - unsafe_answer(source, answer.query, universe))))


def _declared(source: Any, universe: Universe | None) -> Universe:
    """The universe given, or for a frame of whole numbers from 0 the one its largest values imply."""
    if universe is not None:
        return universe
    return Universe.from_sizes({str(name): int(source[name].max()) + 1 for name in source.columns})
