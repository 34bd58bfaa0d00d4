"""Replay: rebuild the state of a ledger from its entries, and meet the charges of a repeated opening with them.

An opening charges the same events in the same order each time. So when a session is opened again, its charges are
matched with the entries of the opening before it. A matched charge costs nothing, and its receipt returns the values
that were released then. Every replay must pass tests/privacy/test_replays.py.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any

from hedgerow import errors
from hedgerow.privacy.events import Event
from hedgerow.privacy.filter import Filter
from hedgerow.privacy.log import Entry, Log


class Replay:
    """The earlier entries of a ledger, and how many of them the current opening has met.

    An entry whose values were not all recorded is lost and is charged again: a crash can count too much, never too
    little. Entries that an opening leaves unmet go to ``engine.resume``.
    """

    def __init__(self, filter: Filter, log: Log, earlier: Sequence[Entry] = ()) -> None:
        """Count the ``earlier`` entries in the filter, and restore them in the log. The first charge may meet them."""
        self._filter, self._log = filter, log
        self._first = len(log.entries)  # the number of the first entry of the current opening
        for entry in earlier:
            filter.count_earlier(entry)
            log.restore(entry)
        filter.require_slack()
        self._taken_up = tuple(earlier)
        self._pending = collections.deque(earlier)
        self._has_opened = not earlier  # False while an interrupted opening is still to be repeated
        self._has_session = self._has_sessions = False

    @property
    def has_other_sessions(self) -> bool:
        """True if an earlier session was paid from this account. Its answers may be about another table."""
        return self._has_sessions

    def begin(self) -> None:
        """Begin an opening, and meet the charges of an interrupted one, for example before Ctrl-C."""
        if self._has_opened:
            self._has_sessions = self._has_session  # the earlier session may have been about another table
            self._first, self._has_opened = len(self._log.entries), False
        self._has_session = True
        self._taken_up = tuple(self._log.entries[self._first :])
        self._pending = collections.deque(self._taken_up)

    def end(self) -> tuple[Entry, ...]:
        """End the opening and return the earlier entries that it did not meet. From now on every charge is new."""
        rest = tuple(self._pending)
        self._pending.clear()
        self._has_opened = True
        return rest

    def match(self, planned: tuple[Event, ...], why: str, about: Mapping[str, Any]) -> Entry | None:
        """Return the entry of this charge from when the session ran before, or None for a new charge."""
        while self._pending:
            entry = self._pending[0]
            if entry.events != planned or not _is_for(entry, why, about):
                self._require_fitted_then(planned)
                self._pending = collections.deque(self._taken_up)  # the next opening starts again at the first entry
                raise errors.InvalidInput(
                    "A ledger must be resumed by a session that is opened as before. Found a charge of "
                    f"{entry.events!r}{_purpose(entry)} where {planned!r} comes now. Open it with the same universe, "
                    "workload and options, and the version that wrote it."
                )
            self._pending.popleft()
            if entry.is_readable:
                return entry
        return None

    def _require_fitted_then(self, planned: tuple[Event, ...]) -> None:
        """Refuse a charge that was refused before: it left no entry, so it must be refused again."""
        met = self._taken_up[: len(self._taken_up) - len(self._pending)]
        before = (*self._log.entries[: self._first], *met)
        if not self._filter.would_fit((*(entry.events for entry in before), planned)):
            raise errors.BudgetExceeded(
                f"cost must be at most the {self._filter.budget.currency} that was left when the session ran before. "
                "Found more, which was refused then too. Continue without this charge."
            )


def _is_for(entry: Entry, why: str, about: Mapping[str, Any]) -> bool:
    """Return True if an entry's released values serve this charge: noise of one kind serves many tables."""
    if entry.why and why and entry.why != why:
        return False
    return not entry.about or (entry.about.keys() == about.keys() and all(entry.about[n] == about[n] for n in about))


def _purpose(entry: Entry) -> str:
    return f" for {entry.why!r}" if entry.why else ""
