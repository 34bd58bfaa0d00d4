"""The accounts of a session: its budget, the amounts spent and left, and the log of every charge."""

from __future__ import annotations

import contextlib
import datetime
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hedgerow._checks import number
from hedgerow.answering.answers_on_record import RecordedAnswer, with_costs
from hedgerow.data.source import DataSource
from hedgerow.errors import InvalidInput
from hedgerow.privacy.accounts import Accounts
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Entry, Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.report import Charge


class Spending:
    """The public facts that a session reads from its ledger, or from the ledgers of its blocks."""

    _ledger: Ledger | Accounts
    _noise: Noise
    draft_cost: tuple[float, float]
    _data: DataSource

    @property
    def ledger(self) -> Ledger:
        """Ledger that records every charge and every release. Only a session of one block has one."""
        if isinstance(self._ledger, Accounts):
            raise InvalidInput(
                "A session must have one block to have a ledger, because each block has its own. Found "
                "several blocks. Use session.blocks[name].ledger."
            )
        return self._ledger

    @property
    def budget(self) -> Budget:
        """Privacy budget. With several blocks: the promise to a person in any one of them."""
        return self._ledger.budget

    @property
    def private(self) -> bool:
        """True if nobody can know the noise; False if it comes from a ``seed``."""
        return self._noise.private

    @property
    def spent(self) -> float:
        """Amount spent, in the budget's currency: ε if δ = 0, else ρ.

        With several blocks it is the amount of the block that spent most.
        """
        return self._ledger.spent

    @property
    def remaining(self) -> float:
        """Amount left, in the budget's currency.

        With several blocks it is the amount of the block that has the least left.
        """
        return self._ledger.remaining

    @property
    def spent_epsilon(self) -> float:
        """Amount spent, expressed as an ε at the budget's δ."""
        return self._ledger.spent_epsilon

    @property
    def log(self) -> tuple[Entry, ...]:
        """Every billed use of the data so far, in order."""
        return tuple(replace(entry, private=entry.private and self.private) for entry in self._ledger.entries())

    def note_draft(self, epsilon: float, delta: float) -> None:
        """Note what drafting the universe from these rows cost before, outside of the ledger.

        Reports, statements and published files then state it beside the budget. ``hedgerow`` notes the draft of its
        file; note a draft that ``hr.Universe.draft`` was paid for with an account of its own.

        Parameters
        ----------
        epsilon, delta : float
            The price of the draft.

        Raises
        ------
        InvalidInput
            If they are no price.

        Example
        -------
        >>> block.note_draft(0.1, 1e-10)
        >>> block.draft_cost
        (0.1, 1e-10)
        """
        if not (0 <= number(epsilon) < math.inf and 0 <= number(delta) < 1):
            raise InvalidInput(
                f"The price of a draft must be an epsilon of at least 0 and a delta below 1. Found {epsilon!r} and "
                f"{delta!r}. Give those of the draft."
            )
        self.draft_cost = float(epsilon), float(delta)

    def _charges(self, *, names: bool = False) -> Iterator[Charge]:
        """Iterate over all charges in the ledger, for the report: with ``names``, who was billed and when, if known."""
        log, authors = self.log, self._ledger.authors() if names else ()
        if len(authors) != len(log):
            authors = [("", 0.0)] * len(log)
        for entry, (who, seconds) in zip(log, authors, strict=True):
            about = "" if entry.asked is None else repr(entry.asked)
            when = f"{datetime.datetime.fromtimestamp(seconds, datetime.UTC):%Y-%m-%d %H:%M}" if seconds else ""
            yield Charge(entry.why, about, ", ".join(map(repr, entry.events)), entry.cost, who, when)

    def _on_record(self) -> Iterator[RecordedAnswer]:
        """Iterate over all answers in the ledger, whoever asked."""
        return with_costs(self._ledger.answers(), self.log, self._data.universe)

    def _numbers_given(self) -> int:
        """Return how many numbers all answers on record have."""
        return sum(int(np.size(estimate.value)) for _, estimate in self._ledger.answers())

    def _write_together(self) -> contextlib.AbstractContextManager[object]:
        """Write the answers of a batch into the ledger together."""
        return self._ledger.answer_log.at_once()
