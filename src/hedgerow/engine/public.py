"""The public part of an engine: everything that was released, and the answers that follow from it for free.

An engine has two parts. The public part (``engine.public``) holds the hypothesis, the evidence behind the error bars,
the certificate and the number of rows. All of it follows from released values, so it may be shown, copied, stored and
published. It answers every question, consults no table, and charges nothing. The engine itself adds the table, the
ledger and the guard: it is the only part that may charge.

Each profile has its own public part: ``practical.public``, ``theory``, ``release`` and ``multi_block`` (several
blocks).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.engine.certificate import Certificate
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.query.bound import Bound, Estimate, is_within
from hedgerow.query.counts import BoundMarginal
from hedgerow.query.linear import Linear
from hedgerow.query.support import Support


def require_sold(said: Estimate, within: float) -> None:
    """Refuse an answer whose bar is wider than ``within`` when nothing sells a narrower bar."""
    bar = said.error
    if not is_within(bar, within):
        found = "none" if bar is None else f"{float(np.max(bar)):.4g}"
        raise InvalidInput(
            "within must be at least the error bar of the answer, because no narrower bar is sold here. "
            f"Found {within:g}, where the bar is {found}. "
            "Ask without within, or ask the owner: a session of the practical profile sells narrower bars."
        )


class FreeEngine(ABC):
    """Base class of everything that answers a question for free or refuses it."""

    next_prior: Any = None
    """Nothing: the engine of a block that is appended next begins afresh."""

    @abstractmethod
    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Answer one linear query."""

    def ratio(self, numerator: Linear, denominator: Linear, within: float | None) -> tuple[Estimate, Estimate]:
        """Answer numerator and denominator as they are.

        ``within`` is ignored here: the caller computes the ratio's bar and decides whether the bar is narrow enough.
        """
        return self.linear(numerator, None), self.linear(denominator, None)

    def make_quote(self) -> Any:
        """Return the object that predicts answers from public values alone.

        This is the object itself when none of its answers consults the data.
        """
        return self

    def price(self, bound: Bound[Any], within: float) -> float:
        """Return 0 if the free answer already has a bar of ``within``; refuse otherwise, because nothing is sold."""
        require_sold(bound.ask(self.make_quote(), within), within)
        return 0.0

    def expect(self, queries: Sequence[Linear]) -> None:  # noqa: B027  # an engine that sells may override it
        """Do nothing: each query is answered when it is asked."""


class PublicAnswers(FreeEngine):
    """The public part of an engine: it answers every question from released values, or refuses it."""

    bounds_new_questions = False
    """True if released values bound the errors of questions that were not asked before."""

    @property
    @abstractmethod
    def hypothesis(self) -> Hypothesis:
        """The public model that answers come from."""

    @property
    @abstractmethod
    def rows(self) -> float:
        """The number of rows n if it is public, otherwise an estimate of n."""

    @property
    def least_rows(self) -> float:
        """The smallest number of rows that the data may have: n itself where it is public."""
        return self.rows

    @property
    def typical_of_rows(self) -> float:
        """The mean error of the estimate ``rows``; 0 if n is public, or if no typical errors are stated."""
        return 0.0

    @property
    def certificate(self) -> Certificate | None:
        """The released bound on the errors of all small questions, asked or not; None if nothing was certified."""
        return None

    def support(self, tables: Sequence[Names]) -> Support | None:
        """Return what was measured of the tables that a question follows from; None if nothing is known of that."""
        return None

    @property
    def measured(self) -> Sequence[tuple[Names, float]]:
        """The measured attribute sets, each with the standard deviation of one cell, in rows; none if unknown."""
        return ()

    def replicates(self) -> Sequence[Hypothesis]:
        """Return hypotheses fitted to other draws of the released noise; none if the engine cannot draw them."""
        return ()

    def hypothesis_answer(self, query: Linear) -> float:
        """Return the hypothesis' answer, without an error bar."""
        return self.hypothesis.answer(query)

    @abstractmethod
    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Answer a whole table."""

    @abstractmethod
    def minimize(self, question: BoundMinimize, within: float | None) -> Estimate:
        """Answer a convex question."""

    def free(self, queries: Sequence[Linear]) -> list[Estimate] | None:
        """Answer all queries at once; None if they are answered one by one."""
        return [self.linear(query, None) for query in queries]

    def error_in_rows(self, value: Any, error: float | Array) -> float | Array:
        """Return the bar of rows·value around the true number of rows; ``error`` is that of the fraction ``value``.

        Where n is public, the bar of the fraction is scaled and nothing is added.
        """
        return error * self.rows

    def total_error_in_rows(self, value: Any, error: float | Array) -> float | Array:
        """Return the bar of rows·value around a total over the rows; ``error`` is that of the mean over all rows.

        ``value`` is the absolute size of that mean.
        """
        return self.error_in_rows(value, error)


class PrivateEngine:
    """Base class of engines that may charge: public facts are those of their public part."""

    public: PublicAnswers

    @property
    def hypothesis(self) -> Hypothesis:
        """The public model that answers come from."""
        return self.public.hypothesis

    @property
    def rows(self) -> float:
        """The number of rows n if it is public, otherwise an estimate of n."""
        return self.public.rows

    @property
    def least_rows(self) -> float:
        """The smallest number of rows that the data may have."""
        return self.public.least_rows

    @property
    def typical_of_rows(self) -> float:
        """The mean error of the estimate ``rows``; 0 if n is public."""
        return self.public.typical_of_rows

    @property
    def certificate(self) -> Certificate | None:
        """The released bound on the errors of all small questions; None if nothing was certified."""
        return self.public.certificate

    def support(self, tables: Sequence[Names]) -> Support | None:
        """Return what was measured of the tables that a question follows from; None if nothing is known of that."""
        return self.public.support(tables)

    @property
    def measured(self) -> Sequence[tuple[Names, float]]:
        """The measured attribute sets, each with the standard deviation of one cell, in rows; none if unknown."""
        return self.public.measured

    def hypothesis_answer(self, query: Linear) -> float:
        """Return the hypothesis' answer, without an error bar."""
        return self.public.hypothesis_answer(query)

    def error_in_rows(self, value: Any, error: float | Array) -> float | Array:
        """Return the bar of rows·value around the true number of rows; ``error`` is that of the fraction ``value``."""
        return self.public.error_in_rows(value, error)

    def total_error_in_rows(self, value: Any, error: float | Array) -> float | Array:
        """Return the bar of rows·value around a total over the rows; ``error`` is that of the mean over all rows."""
        return self.public.total_error_in_rows(value, error)
