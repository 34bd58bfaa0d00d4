"""Answer questions from a few randomly drawn rows: statistics of raw values, and randomized yes/no answers.

This engine works beside the profile's engine and charges the same ledger. Nothing it releases goes into the
hypothesis. It requires replace-one neighbours, because the number of rows n enters every privacy loss and so must be
public. Proofs: docs/proofs/subsampled.md, docs/proofs/scq.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

from hedgerow.data.row_store import RowStore
from hedgerow.data.row_values import Valued, linear_values, statistic_values
from hedgerow.errors import InvalidInput
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.query.bound import Estimate, is_within
from hedgerow.query.counts import bound
from hedgerow.query.row_statistic import RowStatistic
from hedgerow.query.row_trial import require_usable
from hedgerow.textbook import scq, subsampled
from hedgerow.universe.universe import Universe


@final
class RowSampling:
    """Answer row statistics, each within the error that was asked for, and randomized yes/no questions about random
    rows.

    Up to ``queries`` statistics hold their bars together with probability 1 − ``beta``.
    """

    def __init__(
        self, store: RowStore, universe: Universe, ledger: Ledger, noise: Noise, *, queries: int, beta: float
    ) -> None:
        self.ledger, self._rows, self._universe, self._noise = ledger, store, universe, noise
        self._queries, self._beta = queries, beta
        self._known: dict[RowStatistic, Estimate] = {}  # in memory only: a Python function has no stored form

    @property
    def beta(self) -> float:
        """The probability that some bar of a statistic fails."""
        return self._beta

    def ask(self, question: RowStatistic, within: float | None, beta: float | None = None) -> Estimate:
        """Return the average of the function over the rows; repeat a known answer for free if it is accurate enough.

        With another ``beta``, all statistics asked with it hold together except with that probability.
        """
        wanted = question.within if within is None else within
        if wanted is None:
            raise InvalidInput("within must be given for a statistic. Found none. Pass, for example, within=0.05.")
        known = self._known.get(question)
        if known is not None and is_within(known.error, wanted):
            return Estimate(known.value, known.error, "repeat")
        self._try(question)
        failure = self._beta if beta is None else beta
        plan = subsampled.plan(self._rows.rows, alpha=wanted, beta=failure, queries=self._queries)
        valued = statistic_values(self._rows, question)
        found = subsampled.answer(plan, valued, self._rows.rows, self.ledger, self._noise)
        estimate = Estimate(min(1.0, max(0.0, found.value)), found.error, "measured")
        self._known[question] = estimate
        return estimate

    def _try(self, asked: RowStatistic) -> None:
        """Refuse a function that fails on all made-up records.

        It may ask the session nothing, as on the table's rows.
        """
        self._rows.require(asked.attributes)
        with self.ledger.exclusively(), self.ledger.closed():
            require_usable(asked, self._rows.columns, self._universe)

    def sample_yes_no(self, predicate: Any, lies: float) -> bool:
        """Return the predicate's value on one random row, inverted with probability ``lies``."""
        n = self._rows.rows
        answers = scq.sample_yes_no(scq.scq(n, lies), self._values_of(predicate), n, self.ledger, self._noise)
        return bool(answers[0])

    def count_stream(self, predicate: Any, lies: float, at_once: int | None) -> Iterator[scq.FlipInterval]:
        """Draw randomized yes/no answers and yield an interval for the count that narrows as they come in."""
        n = self._rows.rows
        valued = self._values_of(predicate)
        return scq.count_by_flips(
            scq.scq(n, lies), valued, n, self.ledger, self._noise, beta=self._beta / self._queries, at_once=at_once
        )

    def _values_of(self, predicate: Any) -> Valued:
        """Return a function from row numbers to the predicate's values; refuse a question that is not yes or no for a
        row.
        """
        if type(predicate) is RowStatistic:
            self._try(predicate)
            return statistic_values(self._rows, predicate)
        condition = bound(predicate, self._universe).condition
        if condition is not None and not condition.is_exact:
            raise InvalidInput(
                f"A predicate must cover whole bins. Found {predicate!r}, which cuts a bin. "
                "Use hr.statistic with a function of the values, or ask about whole bins."
            )
        if condition is None:
            raise InvalidInput(
                f"A predicate must be true or false for each record. Found {predicate!r}. "
                "Pass, for example, hr.count(smoker=True)."
            )
        return linear_values(self._rows, self._universe, condition.low)
