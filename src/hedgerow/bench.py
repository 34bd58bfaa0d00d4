"""Non-private diagnostics for benchmarks and tests. Every function here looks at the data and is named ``unsafe_…``.

Never show what they return to anyone who may not see the table itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data import PrivateData, Table
from hedgerow.linear import Linear
from hedgerow.queries import BoundMarginal, BoundMean, Query
from hedgerow.universe import Universe

if TYPE_CHECKING:
    from hedgerow.session import Session


def unsafe_answer(source: Any, query: Query, universe: Universe | None = None) -> float | NDArray[np.float64]:
    """The true value of a query on the table, with no noise."""
    data = source if isinstance(source, PrivateData) else Table(source, _declared(source, universe))
    bound, rows = query.on(data.universe), data.rows
    if isinstance(bound, BoundMarginal):
        return np.asarray(data.marginal(bound.attributes) / rows)
    if isinstance(bound, BoundMean):
        among = _fraction(data, bound.denominator)
        share = _fraction(data, bound.numerator) / among if among else 0.0
        return bound.low + (bound.high - bound.low) * share
    return _fraction(data, bound)


def unsafe_error(session: Session, query: Query) -> float:
    """The largest true error of the session's answer to a query. Asks the session, so it may spend budget."""
    answer = session.ask(query)
    return float(np.max(np.abs(np.asarray(answer.value) - unsafe_answer(session._data, query))))


def _fraction(data: PrivateData, query: Linear) -> float:
    return query.dot(data.marginal(query.attributes)) / data.rows


def _declared(source: Any, universe: Universe | None) -> Universe:
    """The universe given, or for a frame of whole numbers from 0 the one its largest values imply."""
    if universe is not None:
        return universe
    return Universe.from_sizes({str(name): int(source[name].max()) + 1 for name in source.columns})
