"""The public part of the theory profile: answers from the hypothesis, without bars.

``engine/theory`` compares answers with the data. What is here needs neither a table nor a ledger, so a release file can
hold it.
"""

from __future__ import annotations

from typing import Any

from hedgerow._types import Array
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.engine.public import PublicAnswers, require_sold
from hedgerow.engine.sampled_fit import theta_on
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.query.bound import Estimate
from hedgerow.query.counts import BoundMarginal
from hedgerow.query.linear import Linear


class TheoryAnswers(PublicAnswers):
    """The public part of the theory profile: the hypothesis' answers, without bars.

    The theorem's bar holds for an answer that the mechanism gave, because only the mechanism compares it with the data.
    """

    def __init__(self, hypothesis: Hypothesis, rows: float, doubt: float) -> None:
        """``doubt`` is the part of the estimate ``rows`` by which it may be off; it is 0 where n is public."""
        self._hypothesis, self._rows, self.doubt = hypothesis, rows, doubt

    @property
    def hypothesis(self) -> Hypothesis:
        """The public model that counts and convex questions share."""
        return self._hypothesis

    @property
    def rows(self) -> float:
        """The number of rows n, or its estimate ñ where n is private."""
        return self._rows

    @property
    def least_rows(self) -> float:
        """The smallest number of rows that the data may have, ñ − h."""
        return self.rows * (1 - self.doubt)

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Return the hypothesis' answer, without a bar."""
        return self._without_bar(self.hypothesis_answer(query), within)

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Return the hypothesis' table, without bars."""
        return self._without_bar(self.hypothesis.marginal(table.attributes).copy(), within)

    def minimize(self, question: BoundMinimize, within: float | None) -> Estimate:
        """Return the θ that minimizes the loss on the hypothesis, without a bound on its excess risk."""
        return self._without_bar(theta_on(question, self.hypothesis), within)

    def _without_bar(self, value: float | Array, within: float | None) -> Estimate:
        """Return an estimate without a bar, or refuse if one was asked for."""
        found = Estimate(value, None, "hypothesis")
        if within is not None:
            require_sold(found, within)
        return found

    def total_error_in_rows(self, value: Any, error: float | Array) -> float | Array:
        """Return the bar of a total from |ñv − nt| ≤ |ñ − n||v| + n|v − t|.

        Where all values are far from 0, the first term is by far the larger. ``error_in_rows`` does not need it:
        |ñv − N| ≤ 3αñ, and h more where a measured v was clipped to 1.
        """
        h = self.doubt * self.rows
        reach: float | Array = h * value + (self.rows + h) * error
        return reach
