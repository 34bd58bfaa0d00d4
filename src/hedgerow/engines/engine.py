"""What answers a session. A profile is an engine; tests/engines/test_engines.py is what every one must pass.

An engine is a function of public entries: the ledger's of its opening, met again when it is opened again, and those of the
stream, which ``resume`` takes up. Nothing else that it learned survives, and nothing else is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from hedgerow._types import Array
from hedgerow.convex.minimize import Minimises
from hedgerow.engines.practical.certificate import Certificate
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.ledger import Entry
from hedgerow.questions.bound import Bound, Estimate
from hedgerow.questions.counts import AnswersMarginals
from hedgerow.questions.linear import AnswersLinear, Linear


def require_sold(said: Estimate, within: float) -> None:
    """Refuse a bar that nobody sells."""
    bar = said.error
    if bar is None or float(np.max(bar)) > within * (1 + 1e-9):
        found = "none" if bar is None else f"{float(np.max(bar)):.4g}"
        raise InvalidInput(
            f"within must be at least the bar that the answer has, for this session sells no narrower one. Found {within:g}, where the "
            f'bar is {found}. Ask without within, or open a session with profile="practical".'
        )


def bar_for_ratio(numerator: tuple[float, float], denominator: tuple[float, float], within: float) -> float | None:
    """What bar for both gives t/b one of ``within``, where the one is part of the other; None where what is known is enough.

    Each is a value and its bar. Bars of e for both give t/b one of e(1 + t/b)/(b − e): what e is enough, for every t and b that are
    possible.
    """
    (t, above), (b, below) = numerator, denominator
    least = b - below
    share = 1.0 if least <= 0 else min(1.0, (t + above) / least)
    if least > 0 and max(above, below) * (1 + share) <= within * least * (1 + 1e-9):
        return None
    if least <= 0:
        raise BudgetExceeded(
            "The records that a ratio is among must be known to exist before it is bought. "
            f"Found {b:.4g} ± {below:.4g} of the rows. Ask for their count within less than that first."
        )
    return within * least / (1 + share + within)


class AnswersForNothing:
    """An engine of which every question is answered at no price, or refused."""

    certificate: Certificate | None = None
    typical_of_rows = 0.0  # no answer has a typical error

    def linear(self, query: Linear, within: float | None) -> Estimate:
        raise NotImplementedError

    def ratio(self, numerator: Linear, denominator: Linear, within: float | None) -> tuple[Estimate, Estimate]:
        """Both as they are: the ratio's bar says whether that is what was asked for."""
        return self.linear(numerator, None), self.linear(denominator, None)

    def quoting(self) -> Any:
        """Who says, from public values alone, what an answer would be: the engine itself where no answer consults the data."""
        return self

    def price(self, bound: Bound[Any], within: float) -> float:
        """Nothing is sold: 0 where the answer has such a bar anyway, and otherwise a refusal."""
        require_sold(bound.ask(self.quoting(), within), within)
        return 0.0

    def expect(self, queries: Sequence[Linear]) -> None:
        """Each is answered when it is asked."""


class Engine(AnswersLinear, AnswersMarginals, Minimises, Protocol):
    """Answers linear queries, whole tables and convex questions, each from the hypothesis or by paying for better."""

    @property
    def hypothesis(self) -> Hypothesis:
        """The public model that answers come from."""

    @property
    def rows(self) -> float:
        """n where it is public, else an estimate of it."""

    @property
    def typical_of_rows(self) -> float:
        """The mean error of that estimate; 0 where n is public."""

    @property
    def certificate(self) -> Certificate | None:
        """What holds of all small questions, asked or not; None where nothing was certified."""

    def ratio(self, numerator: Linear, denominator: Linear, within: float | None) -> tuple[Estimate, Estimate]:
        """Both, such that the one's share of the other, which holds it, has a bar of ``within``: met, or refused unpaid."""

    def price(self, bound: Bound[Any], within: float) -> float:
        """What asking it with this ``within`` would cost now, in the budget's currency. Public, and nothing is charged."""

    def quoting(self) -> Any:
        """Who says, from public values alone, what an answer would be; its ``price``, where it has one, is what that would cost."""

    def free(self, queries: Sequence[Linear]) -> list[Estimate] | None:
        """Answers that consult nothing private, all at once; None where each may depend on the one before."""

    def expect(self, queries: Sequence[Linear]) -> None:
        """These are asked next, each once: what does not depend on earlier answers may be worked out together. None ends it."""

    def error_in_rows(self, value: Any, error: float | Array) -> float | Array:
        """The bar of rows·value around the true number of rows, where ``error`` is that of the fraction."""

    def total_error_in_rows(self, value: Any, error: float | Array) -> float | Array:
        """The bar of rows·value around a total over the rows, where ``error`` is that of its mean over all rows. ``value``: its size."""

    def resume(self, entries: Sequence[Entry]) -> None:
        """Learn what these entries of a stream taught, in order: its own, taken up again, or those of other processes."""

    def state(self) -> Any | None:
        """All that it knows, public and as JSON, from which it is made again without its entries; None where they are few."""
