"""One table at the disposal of one assistant: what it may ask, what it may spend, and what it was told."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hedgerow.answer import Answer
from hedgerow.answering.askable import Askable
from hedgerow.answering.scaling import Scale
from hedgerow.assistants.quoting import safe_text
from hedgerow.query.counts import Query, Resolution
from hedgerow.session import Session

if TYPE_CHECKING:
    from hedgerow.assistants.holdout import ModelHoldout


@dataclass(frozen=True)
class AssistantLimits:
    """The sizes of arguments and results. An assistant reads every word of a result, so results are short."""

    questions: int = 200  # of one call
    cells: int = 60  # of one table that is shown
    shown: int = 300  # cells and answers of one result
    columns: int = 60
    labels: int = 30  # of one column
    values: int = 1_000  # of all synthetic records of one result
    rows: int = 200  # of a SQL result, and of synthetic records
    history: int = 200


@dataclass(frozen=True)
class PurchaseRule:
    """The owner's permission to buy: on whose behalf, and whether a person must approve each purchase.

    The amount is limited by the cap of ``analyst`` in the ledger, which lasts, and not by this process.
    """

    analyst: str
    needs_approval: bool = True


Sale = Callable[[Session, Query, float, Scale, Resolution], Answer]
"""A function that makes a purchase. A service first looks whether its owner must approve it."""


def ask_session(session: Session, query: Query, within: float, scale: Scale, resolution: Resolution) -> Answer:
    """Make a purchase without further conditions."""
    return session.ask(query, within=within, scale=scale, resolution=resolution)


class AssistantDesk:
    """A table with the rules that the owner made for one assistant.

    ``view`` answers from released values alone: every tool but ``buy`` uses it. ``numbers`` counts the numbers that
    were read here, because statements about the population count them. ``calls`` are the latest calls.
    """

    def __init__(
        self,
        table: Askable,
        name: str = "data",
        purchases: PurchaseRule | None = None,
        *,
        holdout: ModelHoldout | None = None,
        limits: AssistantLimits | None = None,
        shows_spending: bool = True,
        quotes_prices: bool = True,
    ) -> None:
        """Set the rules.

        ``table`` is a published release or a session. ``shows_spending`` is False where amounts would tell what other
        analysts do. ``quotes_prices`` is False where ``table`` is a copy that cannot price.
        """
        self.table, self.name, self.purchases, self.holdout = table, name, purchases, holdout
        self.limits = AssistantLimits() if limits is None else limits
        self.shows_spending, self.quotes_prices, self.numbers = shows_spending, quotes_prices, 0
        self.sell: Sale = ask_session
        self.calls: deque[dict[str, Any]] = deque(maxlen=self.limits.history)

    @property
    def view(self) -> Askable:
        """The table as it may be asked for free."""
        return self.table.public_view()

    @property
    def confidence(self) -> float:
        """Probability with which all bars hold together."""
        return 1 - self.view.generalisation.sample_beta

    def note(self, tool: str, asked: str, charged: float) -> None:
        """Remember a call for the history."""
        self.calls.append({"tool": tool, "asked": safe_text(asked), "charged": charged})
