"""Offline release: spend the whole budget at once on a workload, then answer every later question for free."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from hedgerow._types import Array
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.data.source import DataSource
from hedgerow.engine.public import PublicAnswers
from hedgerow.engine.sampled_fit import theta_on
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.ledger import Entry, Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.query.bound import Bound, Estimate
from hedgerow.query.composed import BoundCount
from hedgerow.query.counts import BoundMarginal
from hedgerow.query.linear import Linear, marginal_cells
from hedgerow.query.ratios import BoundMean
from hedgerow.textbook import bounds, convex_offline, mwem, small_db
from hedgerow.universe.universe import Universe

EMPTY = 1e-30  # the weight of a cell without rows, far below every promise
ROOM = 1.0 + 1e-6  # factor on the least α, which is found by bisection


class ReleaseEngine(PublicAnswers):
    """An engine on a hypothesis that MWEM or SmallDB released (``textbook/mwem``, ``textbook/small_db``).

    Nothing is promised for questions outside the workload.
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
        """The hypothesis that was released."""
        return self._hypothesis

    @property
    def rows(self) -> float:
        """The number of rows n, which is public."""
        return self._rows

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Answer from the hypothesis; a bar narrower than the promised one is refused."""
        error = self.error if query.key in self.promised else None
        if within is not None and (error is None or error > within):
            self.refuse_narrower(error, within)
        return Estimate(self.hypothesis.answer(query), error, "hypothesis")

    @staticmethod
    def refuse_narrower(error: float | None, within: float) -> NoReturn:
        """Refuse a bar that is narrower than the promised one, because nothing can be bought."""
        raise BudgetExceeded(
            "within must be at least the bar that the release promises "
            f"({'none' if error is None else f'{error:.4g}'}). "
            f"Found {within:g}, and the whole budget is spent. Open a session instead."
        )

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
        return Estimate(theta_on(question, self.hypothesis), None, "hypothesis")

    def resume(self, entries: Sequence[Entry]) -> None:
        """Do nothing: the hypothesis was learned, or read from the ledger, when it was released."""

    def state(self) -> None:
        """Return None: the hypothesis is learned once and never changes."""


class ConvexReleaseEngine(ReleaseEngine):
    """An engine on a hypothesis that the offline convex mechanism released (``textbook/convex_offline``).

    The θ of every declared question is within α of the best if the mechanism stopped by itself.
    """

    def __init__(
        self, hypothesis: Hypothesis, rows: float, alpha: float | None, found: Mapping[Hashable, Array]
    ) -> None:
        """``alpha`` is the excess risk of the θ in ``found``, which are given by the keys of their questions."""
        super().__init__(hypothesis, rows, math.inf, {})
        self._alpha, self._found = alpha, dict(found)

    def minimize(self, question: BoundMinimize, within: float | None) -> Estimate:
        """Return the released θ of a declared question with its bound; any other is answered from the hypothesis."""
        theta = self._found.get(question.key)
        if theta is None:
            return super().minimize(question, within)
        if within is not None and not (self._alpha is not None and self._alpha <= within):
            raise BudgetExceeded(
                "within must be at least the excess risk that the release promises "
                f"({'none' if self._alpha is None else f'{self._alpha:.4g}'}). "
                f"Found {within:g}, and the whole budget is spent. Open a session instead."
            )
        return Estimate(theta.copy(), self._alpha, "hypothesis")


def run_mwem(
    data: DataSource, ledger: Ledger, noise: Noise, *, workload: Sequence[Bound[Any]], beta: float
) -> ReleaseEngine:
    """Run MWEM, the offline mechanism of [W], on a workload of linear questions; a marginal enters cell by cell."""
    _require_public_rows(ledger, "mwem")
    queries = list(dict.fromkeys(query for bound in workload for query in linear_queries(bound, data.universe)))
    config = mwem.configure(
        ledger.budget, cells=data.universe.size, scale=float(data.rows), queries=len(queries), beta=beta
    )
    made = mwem.release(config, queries, data, ledger, noise)
    promised = {query.key: query for query in queries} if made.stopped else {}
    return ReleaseEngine(made.hypothesis, config.scale, config.error, promised)


def linear_queries(bound: Bound[Any], universe: Universe) -> Sequence[Linear]:
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
        "The workload of this method must consist of counts, tables and means. Found another kind of question. "
        "Use method='adaptive'."
    )


def run_small_db(
    data: DataSource, ledger: Ledger, noise: Noise, *, workload: Sequence[Bound[Any]], beta: float, vc: int | None
) -> ReleaseEngine:
    """Run SmallDB on a workload of linear questions, with the size that promises the least error.

    ``vc`` is the VC dimension of the questions, if it is known.
    """
    _require_public_rows(ledger, "small_db")
    universe = data.universe
    queries = list(dict.fromkeys(query for bound in workload for query in linear_queries(bound, universe)))
    known = vc if all(query.is_count for query in queries) else None
    size, error = small_db.best_size(universe.size, data.rows, len(queries), beta, ledger.budget.epsilon, known)
    chosen = small_db.release(queries, data, ledger, noise, size=size)
    hypothesis = Hypothesis(universe)
    hypothesis.add_factor(universe.names, np.log(np.maximum(chosen.counts, EMPTY)))
    return ReleaseEngine(hypothesis, float(data.rows), error, {query.key: query for query in queries})


def run_convex(
    data: DataSource, ledger: Ledger, noise: Noise, *, workload: Sequence[BoundMinimize], beta: float
) -> ConvexReleaseEngine:
    """Run the offline convex mechanism on declared losses, at the least α that the budget allows."""
    _require_public_rows(ledger, "convex")
    if not workload or any(question.scale is None for question in workload):
        raise InvalidInput(
            "The workload of method='convex' must be convex questions over bounded sets. Found none, or an unbounded "
            "set. Use, for example, workload=[hr.minimize(loss, over=hr.L2Ball(1.0))]."
        )
    if not all(question.is_trusted(()) for question in workload):
        raise InvalidInput(
            "The losses of method='convex' must be those of hedgerow.losses. Found a user-defined one. "
            "Open a session with trusted_losses=[loss]."
        )
    questions = list(dict.fromkeys(workload))
    losses = [(question.risk, question.over) for question in questions]
    S = max(question.scale for question in questions if question.scale is not None)
    rows = float(data.rows)
    given: dict[str, Any] = {"cells": data.universe.size, "rows": rows, "queries": len(questions), "beta": beta}

    def needed(share: float) -> float:
        found = convex_offline.best_configuration(ledger.budget, losses, alpha=share * S, **given)
        return math.inf if found is None else 0.0

    share = bounds.smallest_alpha(needed, rows)
    config = convex_offline.best_configuration(ledger.budget, losses, alpha=min(share * ROOM, 1.0) * S, **given)
    if config is None:
        raise InvalidInput(
            f"The table must have more rows for the convex questions of the workload. Found {data.rows}. Fit each by "
            "itself with hr.erm, or open a session with profile='practical'."
        )
    made = convex_offline.release(config, losses, data, ledger, noise)
    found = dict(zip((question.key for question in questions), made.answers, strict=True))
    return ConvexReleaseEngine(made.hypothesis, rows, config.online.alpha if made.stopped else None, found)


def _require_public_rows(ledger: Ledger, method: str) -> None:
    """Refuse neighbours for which n is private."""
    if ledger.budget.neighbours != "replace":
        raise InvalidInput(
            f"neighbours must be 'replace' for method={method!r}, which needs a public n. Found 'add-remove'. "
            "Use method='adaptive'."
        )
