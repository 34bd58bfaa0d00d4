"""The interface between a session and its engine. Every profile is an engine and must pass
tests/engine/test_engines.py.

The state of an engine is a function of public ledger entries alone. The entries of its opening are replayed when the
session is opened again; ``resume`` then learns from the entries of the question stream. Nothing else survives a
restart, and nothing else is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from hedgerow._types import Array, Names
from hedgerow.convex.minimize import ConvexRespondent
from hedgerow.engine.certificate import Certificate
from hedgerow.engine.public import PublicAnswers
from hedgerow.errors import BudgetExceeded
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.ledger import Entry
from hedgerow.query.bound import ROUNDING, Bound, Estimate
from hedgerow.query.counts import MarginalRespondent
from hedgerow.query.linear import Linear, LinearRespondent
from hedgerow.query.support import Support

FIT_VERSION = "2"
"""The version of the rule that fits a hypothesis to entries. Raise it where the same entries give other answers.

Every ledger notes the version that it was begun with. tests/ledger/test_stored_ledgers.py compares the fit of stored
entries with what was stored for its version.
"""


def bar_for_ratio(numerator: tuple[float, float], denominator: tuple[float, float], within: float) -> float | None:
    """Return the bar e that numerator and denominator both need so that their ratio t/b has a bar of ``within``.

    The rows of the numerator are among the rows of the denominator. Each argument is a pair of value and bar. Bars of
    e for both give the ratio a bar of e(1 + t/b)/(b − e); the returned e is small enough for every possible t and b.
    Return None if the bars known already are narrow enough. Refuse with ``BudgetExceeded`` if the denominator may be
    zero.
    """
    (t, above), (b, below) = numerator, denominator
    least = b - below
    share = 1.0 if least <= 0 else min(1.0, (t + above) / least)
    if least > 0 and max(above, below) * (1 + share) <= within * least * (1 + ROUNDING):
        return None
    if least <= 0:
        raise BudgetExceeded(
            "The denominator of a ratio must be known to be above zero before a bar for the ratio is bought. "
            f"Found {b:.4g} ± {below:.4g} of the rows. "
            "First ask for the count of the denominator with a narrower error."
        )
    return within * least / (1 + share + within)


class Answers(LinearRespondent, MarginalRespondent, ConvexRespondent, Protocol):
    """Anything that answers linear queries, whole tables and convex questions about one table: an engine, or its public
    part (``engine/public``), which answers for free or refuses.
    """

    @property
    def hypothesis(self) -> Hypothesis:
        """The public model that answers come from."""

    @property
    def rows(self) -> float:
        """The number of rows n if it is public, otherwise an estimate of n."""

    @property
    def typical_of_rows(self) -> float:
        """The mean error of the estimate ``rows``; 0 if n is public."""

    @property
    def certificate(self) -> Certificate | None:
        """The released bound on the errors of all small questions, asked or not; None if nothing was certified."""

    def ratio(self, numerator: Linear, denominator: Linear, within: float | None) -> tuple[Estimate, Estimate]:
        """Answer both queries so that numerator/denominator has a bar of ``within``.

        The rows of the numerator are among the rows of the denominator. The bar is either met, or refused before
        anything is paid.
        """

    def price(self, bound: Bound[Any], within: float) -> float:
        """Return the cost, in the budget's currency, of asking ``bound`` with ``within`` now.

        The price is public, and nothing is charged.
        """

    def make_quote(self) -> Any:
        """Return an object that predicts answers from public values alone.

        If that object has a ``price`` attribute, it is the cost of the answers predicted so far.
        """

    def free(self, queries: Sequence[Linear]) -> list[Estimate] | None:
        """Answer all queries at once without consulting private data; None if each answer may depend on the one
        before.
        """

    def support(self, tables: Sequence[Names]) -> Support | None:
        """Return what was measured of the tables that a question follows from; None if the engine cannot say."""

    @property
    def measured(self) -> Sequence[tuple[Names, float]]:
        """The measured attribute sets, each with the standard deviation of one cell, in rows."""

    def expect(self, queries: Sequence[Linear]) -> None:
        """Announce the queries that are asked next, each once, so that the engine can compute independent answers
        together.

        An empty sequence ends the announcement.
        """

    def error_in_rows(self, value: Any, error: float | Array) -> float | Array:
        """Return the bar of rows·value around the true number of rows, where ``error`` is the bar of the fraction
        ``value``.
        """

    def total_error_in_rows(self, value: Any, error: float | Array) -> float | Array:
        """Return the bar of rows·value around a total over the rows, where ``error`` is the bar of the mean over all
        rows.

        ``value`` is the absolute size of that mean.
        """


class Engine(Answers, Protocol):
    """Answer from the hypothesis, or by paying for a better answer."""

    @property
    def public(self) -> PublicAnswers:
        """All that was released, as an object that answers for free."""

    @property
    def next_prior(self) -> Any | None:
        """Released knowledge that the engine of a block which is appended next begins from; None if it begins from
        nothing.
        """

    def resume(self, entries: Sequence[Entry]) -> None:
        """Learn in order from entries of the stream: the engine's own from an earlier run, or those of other
        processes.
        """

    def state(self) -> Any | None:
        """Return all that the engine knows, public and as JSON, so that it can be restored without its entries.

        Return None if the engine has few entries to replay.
        """
