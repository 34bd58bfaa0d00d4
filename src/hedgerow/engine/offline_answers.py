"""The public part of an offline release: answers from a hypothesis that a textbook mechanism released.

``engine/release`` runs the mechanisms. What is here needs neither a table nor a ledger, so a release file can hold it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import NoReturn

from hedgerow._types import Array
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.engine.public import PublicAnswers
from hedgerow.engine.sampled_fit import theta_on
from hedgerow.errors import BudgetExceeded
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.ledger import Entry
from hedgerow.query.bound import Estimate
from hedgerow.query.counts import BoundMarginal
from hedgerow.query.linear import Linear, marginal_cells


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
        self, hypothesis: Hypothesis, rows: float, alpha: float | None, found: Sequence[tuple[BoundMinimize, Array]]
    ) -> None:
        """``alpha`` is the excess risk of the θ in ``found``, each after its question; None if nothing is promised."""
        super().__init__(hypothesis, rows, math.inf, {})
        self.alpha, self.found = alpha, tuple(found)
        self._theta = {question.key: theta for question, theta in found}

    def minimize(self, question: BoundMinimize, within: float | None) -> Estimate:
        """Return the released θ of a declared question with its bound; any other is answered from the hypothesis."""
        theta = self._theta.get(question.key)
        if theta is None:
            return super().minimize(question, within)
        if within is not None and not (self.alpha is not None and self.alpha <= within):
            raise BudgetExceeded(
                "within must be at least the excess risk that the release promises "
                f"({'none' if self.alpha is None else f'{self.alpha:.4g}'}). "
                f"Found {within:g}, and the whole budget is spent. Open a session instead."
            )
        return Estimate(theta.copy(), self.alpha, "hypothesis")
