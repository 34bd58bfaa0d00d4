"""The log of a ledger: its entries in order, which are only added and completed.

An entry says what was paid for, why, and what was released.
``MemoryLog`` ends with its process. ``ledger.log.StoredLog`` keeps the entries in a database. Every log must pass
tests/privacy/test_logs.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, final

from hedgerow.privacy.events import Event, Exponential, FlippedRows, Gaussian, Laplace, Planned, Repeated

WRITTEN_DOWN = (Laplace, Gaussian, Exponential, Repeated, FlippedRows, Planned)
"""Events that release exactly what is drawn, so that a ledger can return the recorded values instead of drawing again.
"""


@final
@dataclass(frozen=True, eq=False)
class Entry:
    """One entry of a ledger: the events that were paid for, the reason, and the released values. Entries are public.

    - ``about``: details of ``why``, for the code that resumes the session.
    - ``asked``: the question that caused the charge, or None.
    - ``kept``: True if the ledger records the drawn values.
    - ``released``: the drawn values, in order. Where ``kept`` is False, the value that was computed from them, if any.
    - ``private``: False if the noise came from a seed.
    """

    number: int
    events: tuple[Event, ...]
    cost: float
    why: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    asked: Any = None
    kept: bool = True
    released: tuple[Any, ...] = ()
    private: bool = True

    @property
    def event(self) -> Event:
        """The only event, or the first of several."""
        return self.events[0]

    @property
    def releases(self) -> int:
        """The number of values to release: one per draw, or one in all where the drawn values are not kept."""
        return sum(1 for event in self.events for _ in event.draws) if self.kept else 1

    @property
    def is_complete(self) -> bool:
        """True if all values that were paid for are recorded, or if the ledger does not keep them."""
        return not self.kept or len(self.released) == self.releases

    @property
    def is_readable(self) -> bool:
        """True if a receipt can return all values again.

        Guard rounds, samples, values that are not kept and values that were never drawn cannot be returned again.
        """
        return self.kept and self.is_complete and all(isinstance(event, WRITTEN_DOWN) for event in self.events)


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
