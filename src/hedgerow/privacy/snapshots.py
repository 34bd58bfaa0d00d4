"""Snapshots of an engine's state, from which a session opens without fitting everything again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Snapshots(Protocol):
    """Where the state of an engine is kept, if it is kept."""

    @property
    def keeps_state(self) -> bool:
        """True if the state that ``remember`` provides is stored."""
        ...

    def remember(self, state: Callable[[], Any]) -> None:
        """Register the function that returns the engine's state as JSON."""
        ...

    def remembered(self) -> Any | None:
        """Return the last stored state, or None. ``Ledger.end_replay`` then returns the entries since that state."""
        ...


class NoSnapshots:
    """Keep no state: a session in memory is opened from all entries."""

    keeps_state = False

    def remember(self, state: Callable[[], Any]) -> None:
        """Do nothing."""

    def remembered(self) -> Any | None:
        """Return None."""
        return None
