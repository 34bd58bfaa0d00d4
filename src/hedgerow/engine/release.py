"""Offline release: spend the whole budget at once on a workload, then answer every later question for free."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from hedgerow.convex.minimize import BoundMinimize
from hedgerow.data.source import DataSource
from hedgerow.engine.public import PublicAnswers
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.ledger import Entry, Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.query.bound import Bound, Estimate
from hedgerow.query.composed import BoundCount
from hedgerow.query.counts import BoundMarginal
from hedgerow.query.linear import Linear, marginal_cells
from hedgerow.query.ratios import BoundMean
from hedgerow.textbook import mwem
from hedgerow.universe.universe import Universe


class ReleaseEngine(PublicAnswers):
    """An engine on a hypothesis that MWEM released (``textbook/mwem``).

    Answers are within 3α on the workload if MWEM stopped early; nothing is promised for other questions.
    """

    def __init__(self, hypothesis: Hypothesis, rows: float, error: float, promised: Mapping[Hashable, Linear]) -> None:
        """``error`` is the bar of the ``promised`` questions, which are given by their keys."""
        self._hypothesis, self._rows, self.error, self.promised = hypothesis, rows, error, dict(promised)

    @property
    def public(self) -> ReleaseEngine:
        """The release itself: all of it is public."""
        return self

    @property
    def hypothesis(self) -> Hypothesis:
        """The hypothesis that MWEM released."""
        return self._hypothesis

    @property
    def rows(self) -> float:
        """The number of rows n, which is public."""
        return self._rows

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Answer from the hypothesis; a bar narrower than the promised one is refused."""
        error = self.error if query.key in self.promised else None
        if within is not None and (error is None or error > within):
            raise BudgetExceeded(
                "within must be at least the bar that the release promises "
                f"({'none' if error is None else f'{error:.4g}'}). "
                f"Found {within:g}, and the whole budget is spent. Open a session instead."
            )
        return Estimate(self.hypothesis.answer(query), error, "hypothesis")

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Answer a table from the hypothesis; it has a bar only if the release promises one for every cell."""
        errors = [
            self.linear(cell, within).error for cell in marginal_cells(self.hypothesis.universe, table.attributes)
        ]
        error = None if None in errors else self.error
        return Estimate(self.hypothesis.marginal(table.attributes), error, "hypothesis")

    def minimize(self, question: BoundMinimize, within: float | None) -> Estimate:
        """Return the θ that minimizes the loss on the released hypothesis, without any promise about it."""
        if within is not None:
            raise BudgetExceeded(
                "within must be left out of a convex question to a release, because its whole budget is spent. "
                f"Found {within:g}. Open a session instead."
            )
        return Estimate(question.fit_on(self.hypothesis)[0].theta, None, "hypothesis")

    def resume(self, entries: Sequence[Entry]) -> None:
        """Do nothing: the hypothesis was learned, or read from the ledger, when it was released."""

    def state(self) -> None:
        """Return None: the hypothesis is learned once and never changes."""


def run_release(
    data: DataSource, ledger: Ledger, noise: Noise, *, workload: Sequence[Bound[Any]], beta: float
) -> ReleaseEngine:
    """Run MWEM, the offline mechanism of [W], on a workload of linear questions; a marginal enters cell by cell."""
    if ledger.budget.neighbours != "replace":
        raise InvalidInput(
            "neighbours must be 'replace' for MWEM, which needs a public n. Found 'add-remove'. Use method='adaptive'."
        )
    queries = list(dict.fromkeys(query for bound in workload for query in _linear(bound, data.universe)))
    config = mwem.configure(
        ledger.budget, cells=data.universe.size, scale=float(data.rows), queries=len(queries), beta=beta
    )
    made = mwem.release(config, queries, data, ledger, noise)
    promised = {query.key: query for query in queries} if made.stopped else {}
    return ReleaseEngine(made.hypothesis, config.scale, config.error, promised)


def _linear(bound: Bound[Any], universe: Universe) -> Sequence[Linear]:
    """Return the linear queries whose answers determine the answer of ``bound``."""
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
        "The workload of method='mwem' must consist of counts, tables and means. Found another kind of question. "
        "Use method='adaptive'."
    )
