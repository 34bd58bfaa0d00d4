"""Snapshots of a durable ledger: its spending and its engine's state, so that neither is rebuilt from all entries.

A snapshot is believed only if its hash is in the chain at its place.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, final

from hedgerow._json import parse, write_spaced
from hedgerow.errors import LedgerBroken
from hedgerow.ledger import binding, replay, spending
from hedgerow.ledger.answer_log import names_in
from hedgerow.ledger.binding import digest
from hedgerow.ledger.caps import Caps, cap_in, of_a_cap
from hedgerow.ledger.chain import Head, Line, check_lines
from hedgerow.ledger.log import StoredLog
from hedgerow.ledger.shared_chain import SharedChain
from hedgerow.ledger.store import Store
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Event
from hedgerow.privacy.filter import Filter, Standing
from hedgerow.privacy.log import Entry
from hedgerow.serialize import decode, decode_state, encode, encode_state, loads

EVERY = 200  # take a snapshot after this many charges


@final
class StoredSnapshots:
    """The snapshots of one block of a ledger."""

    keeps_state = True

    def __init__(
        self, chain: SharedChain, log: StoredLog, filter: Filter, caps: Caps, taken_at: int, state: Any | None
    ) -> None:
        """Begin with the last snapshot, which was taken after ``taken_at`` charges."""
        self._chain, self._log, self._filter, self._caps = chain, log, filter, caps
        self._taken_at, self._state = taken_at, state
        self._state_now: Callable[[], Any] | None = None

    def remember(self, state: Callable[[], Any]) -> None:
        """Register the function that returns the engine's state for snapshots."""
        self._state_now, self._state = state, None

    def last_state(self) -> Any | None:
        """Return the engine's state in the last snapshot, or None. ``end_replay`` then returns the entries since."""
        return self._state

    def is_due(self, after: int) -> bool:
        """Return True if there were at least ``after`` charges since the last snapshot."""
        return self._log.charges >= self._taken_at + after

    def take(self) -> None:
        """Take a snapshot of the spending and the engine's state, unless the engine has yet to learn of something."""
        if self._state_now is None or self._log.has_news or self._chain.is_broken:
            return
        state = self._state_now()
        if state is None:
            return
        standing, charges = self._filter.standing, self._log.charges
        text = write_spaced(
            {
                "v": replay.FORMAT,
                "version": binding.version_now(),
                "entries": charges,
                "spent": str(standing.spent),
                "failing": str(standing.failing),
                "planned": str(standing.planned),
                "counts": [[encode(event), count] for event, count in standing.counts.items()],
                "by": {who: str(spent) for who, spent in self._caps.by.items()},
                "incomplete": [
                    [
                        replay.written_charge(spending.without_releases(e)),
                        [replay.written_release(r) for r in spending.releases_of(e)],
                    ]
                    for e in self._log.incomplete.values()
                ],
                "state": encode_state(state),
            }
        )
        self._log.write(replay.SNAPSHOT, replay.body(entries=charges, sha256=digest(text)), snapshot=text)
        self._taken_at = charges


class StoredContent:
    """The content of one block of a stored ledger, from its last snapshot and all lines since."""

    def __init__(self, store: Store, budget: Budget, block: int = 0) -> None:
        def own(kind: str) -> str:
            return replay.of_block(kind, block)

        self.by: dict[str, Fraction] = {}
        self.incomplete: dict[int, Entry] = {}
        self.standing, self.state, self.head, older = Standing(), None, Head(), 0
        head, record = _snapshot(store, own(replay.SNAPSHOT))
        appended = list(store.lines(kinds=(replay.BLOCK,)))
        self.blocks = [replay.block_in(line) for line in appended]
        if block:
            self.head = appended[block - 1].head  # no line before this one concerns the block
        # another version may store the state differently
        if record is not None and (record.get("v"), record.get("version")) == (replay.FORMAT, binding.version_now()):
            self.head, self.state, older = head, decode_state(record["state"]), record["entries"]
            counts = {decode("event", event, Event): count for event, count in record["counts"]}
            planned = Fraction(record.get("planned", "0"))
            self.standing = Standing(Fraction(record["spent"]), Fraction(record["failing"]), counts, planned)
            self.by = {who: Fraction(spent) for who, spent in record["by"].items()}
            for charged, released in record["incomplete"]:
                entry = loads(charged, Entry)
                for line in released:
                    entry = replay.with_release(entry, Line(0, 0, "", replay.RELEASE, line, ""))
                self.incomplete[entry.number] = entry
        lines = list(check_lines(store.lines(self.head.number), self.head))
        upto = self.head.number
        self.taken_at = older
        self.book = replay.Book(
            older,
            lambda: replay.entries_in(store.lines(kinds=(own(replay.CHARGE), own(replay.RELEASE)))),
            dict(self.incomplete),
        )
        since: dict[int, Entry] = {}
        charges = older
        for line in lines:
            if line.kind == own(replay.CHARGE):
                entry = replay.read_charge(line, charges)
                charges += 1
                self.by[line.who] = self.by.get(line.who, Fraction(0)) + of_a_cap(budget, entry)
            elif line.kind == own(replay.RELEASE):
                number = replay.released_number(line, charges)
                entry = replay.with_release(since[number] if number in since else self.book[number], line)
            else:
                continue
            since[entry.number] = entry
        for number, entry in since.items():
            if number < older:
                self.book[number] = entry
                self.incomplete.pop(number, None)
            if not entry.is_complete:
                self.incomplete[number] = entry
        self.charges = charges
        self.changed = tuple(entry for number, entry in sorted(since.items()) if number < older)
        self.entries = [entry for number, entry in sorted(since.items()) if number >= older]
        self.head = lines[-1].head if lines else self.head
        early = [] if upto == 0 else store.lines(kinds=(own(replay.ANSWERS), replay.CAP), upto=upto)
        self.known: dict[str, int] = {}  # the line of each answer, which is read when it is needed
        self.caps: dict[str, float] = {}
        for line in (*early, *lines):
            if line.kind == own(replay.ANSWERS):
                self.known.update(dict.fromkeys(names_in(line.body), line.number))
            elif line.kind == replay.CAP:
                self.caps.update(cap_in(line, budget))


def _snapshot(store: Store, own: str) -> tuple[Head, dict[str, Any] | None]:
    """Return the last snapshot of this kind and the head of its line, or nothing if there is none.

    The snapshot must be at its place, and its hash must be the one in the chain.
    """
    found: tuple[Head, dict[str, Any] | None] = Head(), None
    for number, kind in store.snapshots():
        if replay.kind_and_block(kind)[0] == replay.SNAPSHOT and kind != own:
            continue  # the snapshot of another block
        text = store.snapshot(number)
        near = list(store.lines(after=max(0, number - 2), upto=number))
        *_, line = [None] if len(near) < 2 else [near[0], *check_lines(near[1:], near[0].head)]
        if line is None or line.kind != own or replay.record_in(line, sha256=str)["sha256"] != digest(text):
            raise LedgerBroken(
                f"The snapshot at line {number} must be the one that was taken there. Found another snapshot. "
                "Restore the ledger from a copy. A ledger without snapshots works too, but is read from its "
                "first line."
            )
        found = line.head, parse(text)
    return found
