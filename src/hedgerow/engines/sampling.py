"""What answers a session's questions from a few rows at random: statistics of raw values, and flips.

Beside the profile's engine, on the same ledger: nothing of it goes into the hypothesis. Only where neighbours replace a row, for the
number of rows is in every loss. Proofs: docs/proofs/subsampled.md, docs/proofs/scq.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

from hedgerow.data.row_values import Valued, linear_values, statistic_values
from hedgerow.data.rows import Rows
from hedgerow.errors import InvalidInput
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.questions.bound import Estimate
from hedgerow.questions.composed import BoundCount
from hedgerow.questions.counts import bound
from hedgerow.questions.linear import Linear
from hedgerow.questions.row_statistic import RowStatistic
from hedgerow.questions.universe import Universe
from hedgerow.textbook import scq, subsampled


@final
class Sampling:
    """Statistics, each within what it asked for, all of up to k of them together with probability 1 − β; and flips."""

    def __init__(
        self, rows: Rows, universe: Universe, ledger: Ledger, noise: Noise, *, queries: int, beta: float
    ) -> None:
        self.ledger, self._rows, self._universe, self._noise = ledger, rows, universe, noise
        self._queries, self._beta = queries, beta
        self._known: dict[RowStatistic, Estimate] = {}  # in this process alone: functions cannot be written down

    def ask(self, question: RowStatistic, within: float | None) -> Estimate:
        """The average of the function over the rows. One that was asked before, at least as well, is repeated for free."""
        wanted = question.within if within is None else within
        if wanted is None:
            raise InvalidInput("A statistic must say how well: within. Found none. For example within=0.05.")
        known = self._known.get(question)
        if known is not None and known.error is not None and known.error <= wanted * (1 + 1e-9):
            return Estimate(known.value, known.error, "repeat")
        plan = subsampled.plan(self._rows.rows, alpha=wanted, beta=self._beta, queries=self._queries)
        valued = statistic_values(self._rows, question)
        found = subsampled.answer(plan, valued, self._rows.rows, self.ledger, self._noise)
        estimate = Estimate(min(1.0, max(0.0, found.value)), found.error, "measured")
        self._known[question] = estimate
        return estimate

    def flip(self, predicate: Any, lies: float) -> bool:
        """What one row at random says, which lies with that probability."""
        n = self._rows.rows
        answers = scq.flips(scq.scq(n, lies), self._valued(predicate), n, self.ledger, self._noise)
        return bool(answers[0])

    def counting(self, predicate: Any, lies: float, at_once: int | None) -> Iterator[scq.Counted]:
        """Flips, and an interval that narrows as they come."""
        n = self._rows.rows
        valued = self._valued(predicate)
        return scq.counting(
            scq.scq(n, lies), valued, n, self.ledger, self._noise, beta=self._beta / self._queries, at_once=at_once
        )

    def _valued(self, predicate: Any) -> Valued:
        if type(predicate) is RowStatistic:
            return statistic_values(self._rows, predicate)
        asked = bound(predicate, self._universe)
        if isinstance(asked, BoundCount):
            raise InvalidInput(
                f"A predicate must be of whole bins. Found {predicate!r}, which cuts one. Ask hr.statistic with a function of the "
                "values, or about whole bins."
            )
        if not isinstance(asked, Linear) or not asked.is_count:
            raise InvalidInput(
                f"A predicate must be yes or no of a record. Found {predicate!r}. For example hr.count(smoker=True)."
            )
        return linear_values(self._rows, self._universe, asked)
