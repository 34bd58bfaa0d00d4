"""Read a ledger without its table: look at it, check it and export it.

Nothing is charged, and no lock is waited for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from hedgerow.errors import InvalidInput, LedgerBroken
from hedgerow.ledger import binding, chain, replay
from hedgerow.ledger import spending as views
from hedgerow.ledger.account import account_of
from hedgerow.ledger.caps import EVERYBODY, cap_in
from hedgerow.ledger.chain import Head
from hedgerow.ledger.snapshots import StoredContent
from hedgerow.ledger.store import Store
from hedgerow.ledger.urls import store_at
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.filter import Parts
from hedgerow.privacy.log import Entry
from hedgerow.serialize import LedgerTerms, decode

if TYPE_CHECKING:
    import pandas as pd


class Reading:
    """A read-only view of a ledger. Each call reads the store as it is at that moment."""

    def __init__(self, store: Store, block: int = 0) -> None:
        """Read one block of a ledger: 0 is the first block, and higher numbers are appended blocks."""
        self._store, self._block = store, block
        if not store.exists():
            raise InvalidInput(f"There must be a ledger to read. Found none on {store.name}. Check the URL.")
        account = decode("account", account_of(store, block)[0]["account"], LedgerTerms)
        self.budget: Budget = account.budget

    @property
    def blocks(self) -> dict[str, Reading]:
        """The views of the appended blocks, by name. Each has its own budget, entries and spending."""
        lines = self._store.lines(kinds=(replay.BLOCK,))
        names = [replay.block_in(line) for line in lines]
        return {name: Reading(self._store, i + 1) for i, name in enumerate(names)}

    def entries(self) -> Sequence[Entry]:
        """Return every entry of the block, in order."""
        kinds = [replay.of_block(kind, self._block) for kind in (replay.CHARGE, replay.RELEASE)]
        return tuple(replay.entries_in(self._store.lines(kinds=kinds)))

    @property
    def spent(self) -> float:
        """The amount spent, in the budget's currency."""
        return float(self._parts().spent)

    @property
    def remaining(self) -> float:
        """The amount left, in the budget's currency, for all events except planned noise."""
        return max(0.0, float(self._parts().subtract_from(Fraction(self.budget.total))[1]))

    def _parts(self) -> Parts:
        """Return what was charged to planned noise and to all else."""
        events = [event for entry in self.entries() for event in entry.events]
        parts = Parts().after(events, [self.budget.cost(event) for event in events])
        if parts is None:
            raise LedgerBroken(
                f"A ledger must have one share of planned noise. Found several on {self._store.name}. Run `hedgerow "
                "ledger verify`."
            )
        return parts

    @property
    def opening_rows(self) -> float | None:
        """The number of rows, or its estimate, by the engine's last snapshot.

        None if there is no snapshot that this version can resume: the table is then needed to rebuild the engine.
        """
        state = StoredContent(self._store, self.budget, self._block).state
        opened = state.get("opened") if isinstance(state, dict) else None
        return float(opened["rows"]) if isinstance(opened, dict) and "rows" in opened else None

    @property
    def caps(self) -> dict[str, float]:
        """The caps of analysts and projects, in the budget's currency, by name."""
        found: dict[str, float] = {}
        for line in self._store.lines(kinds=(replay.CAP,)):
            found.update(cap_in(line, self.budget))
        return found

    def spending(self, days: float | None = None) -> pd.DataFrame:
        """Return how much each analyst charged on each day (UTC), in the budget's currency.

        ``days`` limits the table to the last so many days.
        """
        return views.spending(self._store, self.budget, days, self._block)

    @property
    def head(self) -> Head:
        """The last line, which fixes all lines before it."""
        return self._store.head()

    def verify(self, head: Head | str | None = None) -> Head:
        """Check every line, and check that the lines up to ``head`` are still there. Return the current head."""
        return views.verify(self._store, head)

    def export(self) -> Iterator[str]:
        """Yield every line as JSON, with its hash."""
        return views.export_lines(self._store)

    def accept_version(self) -> None:
        """Allow the installed version of the package to resume the ledger.

        Answers may differ from then on. What was spent stays spent.
        """
        with self._store.turn():
            self._store.append([(chain.now(), EVERYBODY, replay.ACCEPTED, replay.body(version=binding.version_now()))])

    def close(self) -> None:
        """Close every connection."""
        self._store.close()


def read(url: str) -> Reading:
    """Open a ledger for reading only.

    Parameters
    ----------
    url : str
        The ledger's URL, such as ``sqlite:///people.ledger``.

    Returns
    -------
    Reading

    Raises
    ------
    InvalidInput
        If there is no ledger at the URL.
    """
    return Reading(store_at(url))


def exists(url: str) -> bool:
    """Return True if there is a ledger with at least its first line at a URL."""
    store = store_at(url)
    try:
        return store.exists() and store.head().number > 0
    finally:
        store.close()
