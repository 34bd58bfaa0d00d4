"""The log of a ledger: its entries in order, which are only added and completed.

``MemoryLog`` ends with its process. ``ledger.log.StoredLog`` keeps the entries in a database. Every log must pass
tests/privacy/test_logs.py.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from typing import Any, Protocol

from hedgerow.privacy.entry import Entry


class Log(Protocol):
    """Append-only entries. What was appended or updated is durable before the call returns."""

    @property
    def entries(self) -> Sequence[Entry]:
        """Every entry so far, in order."""
        ...

    def require_ready(self) -> None:
        """Refuse a charge that the log could not record."""
        ...

    def append(self, entry: Entry) -> None:
        """Record a new charge. The number of its entry is the length of the log."""
        ...

    def update(self, entry: Entry) -> None:
        """Record the last released value of an entry."""
        ...

    def restore(self, entry: Entry) -> None:
        """Take over an entry that is recorded already: a new one, or a known one with more released values."""
        ...


class MemoryLog:
    """A log in memory. ``book`` holds the entries before the ones that are added."""

    def __init__(self, book: MutableSequence[Entry] | None = None) -> None:
        self._book: MutableSequence[Entry] = [] if book is None else book

    @property
    def entries(self) -> Sequence[Entry]:
        """Every entry so far, in order."""
        return self._book

    def require_ready(self) -> None:
        """Do nothing: memory is always ready."""

    def append(self, entry: Entry) -> None:
        """Add a new entry at the end."""
        self._book.append(entry)

    def update(self, entry: Entry) -> None:
        """Replace an entry by itself with one more released value."""
        self._book[entry.number] = entry

    def restore(self, entry: Entry) -> None:
        """Add a recorded entry at the end, or replace a known one."""
        if entry.number < len(self._book):
            self._book[entry.number] = entry
        else:
            self._book.append(entry)


class Snapshots(Protocol):
    """A store of an engine's state, if it is kept."""

    @property
    def keeps_state(self) -> bool:
        """True if the state that ``remember`` provides is stored."""
        ...

    def remember(self, state: Callable[[], Any]) -> None:
        """Register the function that returns the engine's state as JSON."""
        ...

    def last_state(self) -> Any | None:
        """Return the last stored state, or None. ``Ledger.end_replay`` then returns the entries since that state."""
        ...


class NoSnapshots:
    """Keep no state: a session in memory is opened from all entries."""

    keeps_state = False

    def remember(self, state: Callable[[], Any]) -> None:
        """Do nothing."""

    def last_state(self) -> Any | None:
        """Return None."""
        return None
