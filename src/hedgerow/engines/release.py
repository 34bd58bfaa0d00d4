"""An offline release: the whole budget is spent at once on a workload, and whatever is asked later costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hedgerow._types import Array
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.data.source import DataSource
from hedgerow.engines.engine import AnswersForNothing
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy.ledger import Entry, Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.questions.bound import Bound, Estimate
from hedgerow.questions.composed import BoundCount
from hedgerow.questions.counts import BoundMarginal
from hedgerow.questions.linear import Linear, marginal_cells
from hedgerow.questions.quotients import BoundMean
from hedgerow.questions.universe import Universe
from hedgerow.textbook import mwem
from hedgerow.textbook.mwem import MWEMConfig, MWEMRelease


class Offline(AnswersForNothing):
    """A hypothesis released all at once (``mwem``): within 3α on its workload, with no promise elsewhere."""

    def __init__(self, released: MWEMRelease, config: MWEMConfig, workload: Sequence[Linear]) -> None:
        self.hypothesis, self.rows, self._error = released.hypothesis, config.scale, config.error
        self._promised = {query.key for query in workload} if released.stopped else set()

    def believed(self, query: Linear) -> float:
        return self.hypothesis.answer(query)

    @property
    def least_rows(self) -> float:
        return self.rows  # n is public

    def linear(self, query: Linear, within: float | None) -> Estimate:
        error = self._error if query.key in self._promised else None
        if within is not None and (error is None or error > within):
            raise BudgetExceeded(
                f"within must be at least what the release promises ({'nothing' if error is None else f'{error:.4g}'}). "
                f"Found {within:g}, and the whole budget is spent. Open a session instead."
            )
        return Estimate(self.hypothesis.answer(query), error, "hypothesis")

    def error_in_rows(self, value: Any, error: float | Array) -> float | Array:
        return error * self.rows  # n is public

    total_error_in_rows = error_in_rows

    def free(self, queries: Sequence[Linear]) -> list[Estimate]:
        return [self.linear(query, None) for query in queries]

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        errors = [
            self.linear(cell, within).error for cell in marginal_cells(self.hypothesis.universe, table.attributes)
        ]
        error = None if None in errors else self._error
        return Estimate(self.hypothesis.marginal(table.attributes), error, "hypothesis")

    def minimise(self, question: BoundMinimize, within: float | None) -> Estimate:
        """θ of the released hypothesis; a release promises nothing about it."""
        if within is not None:
            raise BudgetExceeded(
                f"within must be left out of a convex question to a release, whose whole budget is spent. Found {within:g}. "
                "Open a session instead."
            )
        return Estimate(question.fitted(self.hypothesis)[0].theta, None, "hypothesis")

    def resume(self, entries: Sequence[Entry]) -> None:
        """Nothing: all of it was learned, or read from the ledger, when it was released."""

    def state(self) -> None:
        """None: it learns once."""


def released(data: DataSource, ledger: Ledger, noise: Noise, *, workload: Sequence[Bound[Any]], beta: float) -> Offline:
    """The lecture's offline mechanism on a workload of linear questions, marginals cell by cell."""
    if ledger.budget.neighbours != "replace":
        raise InvalidInput(
            "MWEM must know n, so neighbours must be 'replace'. Found 'add-remove'. Use method='adaptive'."
        )
    queries = list(dict.fromkeys(query for bound in workload for query in _linear(bound, data.universe)))
    config = mwem.configure(
        ledger.budget, cells=data.universe.size, scale=float(data.rows), queries=len(queries), beta=beta
    )
    return Offline(mwem.release(config, queries, data, ledger, noise), config, queries)


def _linear(bound: Bound[Any], universe: Universe) -> Sequence[Linear]:
    match bound:
        case Linear():
            return [bound]
        case BoundMarginal():
            return marginal_cells(universe, bound.attributes)
        case BoundCount():
            return [bound.low, bound.high]
        case BoundMean():
            return [bound.numerator, bound.denominator]
    raise InvalidInput(
        "The workload of method='mwem' must be of counts, tables and means. Found another. Use method='adaptive'."
    )
