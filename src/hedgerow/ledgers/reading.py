"""A ledger without its table: to look at, check and export. It charges nothing, and waits for nobody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from hedgerow.engines.wire import Account
from hedgerow.errors import InvalidInput, LedgerBroken
from hedgerow.ledgers import replay, views
from hedgerow.ledgers.binding import version_now
from hedgerow.ledgers.chain import Head
from hedgerow.ledgers.durable import EVERYBODY, account_of, cap_in, now
from hedgerow.ledgers.store import Store
from hedgerow.ledgers.urls import store_at
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Entry
from hedgerow.privacy.planned import Parts
from hedgerow.questions.wire import thing

if TYPE_CHECKING:
    import pandas as pd


class Reading:
    """What ``read`` gives: each question is to the store as it is then."""

    def __init__(self, store: Store, block: int = 0) -> None:
        """``block``: of the first, whose ledger it is, or of one that was appended."""
        self._store, self._block = store, block
        if not store.exists():
            raise InvalidInput(f"There must be a ledger to read. Found none on {store.name}. Check the URL.")
        account = thing("account", account_of(store, block)[0]["account"], Account)
        self.budget: Budget = account.budget

    @property
    def blocks(self) -> dict[str, Reading]:
        """Each block that was appended, by its name: its budget, entries and spending."""
        lines = self._store.lines(kinds=(replay.BLOCK,))
        names = [replay.block_in(line) for line in lines]
        return {name: Reading(self._store, i + 1) for i, name in enumerate(names)}

    def entries(self) -> Sequence[Entry]:
        kinds = [replay.of_block(kind, self._block) for kind in (replay.CHARGE, replay.RELEASE)]
        return tuple(replay.entries_in(self._store.lines(kinds=kinds)))

    @property
    def spent(self) -> float:
        """In the budget's currency."""
        return float(self._parts().spent)

    @property
    def remaining(self) -> float:
        """For all but planned noise."""
        return max(0.0, float(self._parts().left(Fraction(self.budget.total))[1]))

    def _parts(self) -> Parts:
        events = [event for entry in self.entries() for event in entry.events]
        parts = Parts().after(events, [self.budget.cost(event) for event in events])
        if parts is None:
            raise LedgerBroken(
                f"A ledger must have one share of planned noise. Found several on {self._store.name}. Run `hedgerow ledger verify`."
            )
        return parts

    @property
    def caps(self) -> dict[str, float]:
        """Of each who has one, in the budget's currency."""
        found: dict[str, float] = {}
        for line in self._store.lines(kinds=(replay.CAP,)):
            found.update(cap_in(line, self.budget))
        return found

    def spending(self, days: float | None = None) -> pd.DataFrame:
        """Who charged how much on which day (UTC)."""
        return views.spending(self._store, self.budget, days, self._block)

    @property
    def head(self) -> Head:
        return self._store.head()

    def verify(self, head: Head | str | None = None) -> Head:
        """Check every line, and that those up to ``head`` are still there."""
        return views.verified(self._store, head)

    def export(self) -> Iterator[str]:
        """Every line as JSON, with its hash."""
        return views.exported(self._store)

    def accept_version(self) -> None:
        """Let the package as it is now take the ledger up. Answers may differ from then on; what was spent stays spent."""
        with self._store.turn():
            self._store.append([(now(), EVERYBODY, replay.ACCEPTED, replay.body(version=version_now()))])

    def close(self) -> None:
        self._store.close()


def read(url: str) -> Reading:
    """The ledger at a URL, to look at."""
    return Reading(store_at(url))


def exists(url: str) -> bool:
    """Whether there is a ledger at a URL, with its first line."""
    store = store_at(url)
    try:
        return store.exists() and store.head().number > 0
    finally:
        store.close()
