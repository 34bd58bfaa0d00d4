"""What a session paid: its budget, the amounts spent and left, and the log of every charge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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

    def _charges(self) -> Iterator[Charge]:
        """Iterate over all charges in the ledger, for the report."""
        for entry in self.log:
            about = "" if entry.asked is None else repr(entry.asked)
            yield Charge(entry.why, about, ", ".join(map(repr, entry.events)), entry.cost)
