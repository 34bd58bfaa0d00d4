"""A chain of lines that several processes write, as far as one of them has read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final

from hedgerow.errors import LedgerBroken, LedgerUnavailable
from hedgerow.ledger import binding, chain, replay
from hedgerow.ledger.caps import Author
from hedgerow.ledger.chain import Head, Line, check_lines
from hedgerow.ledger.store import Store

CLOCK = 10_000_000  # microseconds by which the clock may be behind the ledger's last line
OF_ALL = (replay.CAP, replay.BLOCK, replay.ACCEPTED)  # kinds of lines that concern every block

Body = tuple[str, str]
"""The kind and the body of a line to be written."""


@final
class SharedChain:
    """The lines of one block in a store: where this process has read to, and whether it may still write.

    ``head`` is the last line that was read or written here, and ``blocks`` the names of the appended blocks.
    """

    def __init__(self, store: Store, block: int, author: Author, *, is_bound: bool) -> None:
        """Make a chain that has read no line yet. ``is_bound`` says whether its ledger belongs to a table."""
        self.store, self.block, self.author, self.is_bound = store, block, author, is_bound
        self.head, self.blocks, self._is_broken = Head(), list[str](), False
        self.is_in_group, self.is_off_disk = False, False
        """True while lines are written without waiting for the disk, and once one of them was."""

    def at(self, head: Head, blocks: list[str]) -> SharedChain:
        """Return the chain as read up to a head."""
        found = SharedChain(self.store, self.block, self.author, is_bound=self.is_bound)
        found.head, found.blocks = head, blocks
        return found

    @property
    def is_broken(self) -> bool:
        """True after a failed write: it is unknown whether the line was written; the next opening will see."""
        return self._is_broken

    def fail(self) -> None:
        """Note that a write failed."""
        self._is_broken = True

    def require_whole(self) -> None:
        """Refuse to go on after a failed write."""
        if self._is_broken:
            raise LedgerUnavailable(
                "A session whose ledger failed while it wrote must be opened again before it is asked. Found a "
                "question to the old session. Open the session again: what was charged stays spent."
            )

    def require_clock(self) -> None:
        """Refuse to charge while the clock is far behind the ledger's last line."""
        behind = self.head.time - chain.now()
        if behind > CLOCK:
            raise LedgerUnavailable(
                f"The clock must not go back. Found it {behind / 1e6:.0f} s before the ledger's last line. Nothing was "
                "released. Set the clock, and ask again."
            )

    # Reading

    def unread(self) -> Iterator[tuple[str, Line]]:
        """Yield the lines since the last look, each with its kind. The kind is "" for a line of another block.

        A line counts as read when the next one is asked for. If the caller fails on it, it comes again.
        """
        self.require_whole()
        head = self.store.head()
        if head.number < self.head.number or (head.number == self.head.number and head.hash != self.head.hash):
            # Charges since the copy was made are known here, but not to sessions that open the copy.
            self.fail()
            raise LedgerUnavailable(
                "A ledger must have the lines that were written to it. Found a different last line: line "
                f"{self.head.number} is missing or differs, as after a copy was restored. Nothing was released. Bring "
                "back the ledger that this session wrote to."
            )
        if head.number == self.head.number:
            return
        for line in check_lines(self.store.lines(self.head.number), self.head):
            kind = self._of(line)
            if kind == replay.BLOCK:
                self.blocks.append(replay.block_in(line))
            elif kind == replay.ACCEPTED:
                accepted = replay.accepted_in(line)
                if self.is_bound:
                    require_version(accepted)
            else:
                yield kind, line
            self.head = line.head

    def _of(self, line: Line) -> str:
        """Return the kind of a line that concerns this block, or an empty text for a line of another block."""
        replay.require_known([line.kind], len(self.blocks))
        kind, block = replay.kind_and_block(line.kind)
        return kind if block == self.block or kind in OF_ALL else ""

    def line(self, number: int) -> Line:
        """Return a line as it follows from the one before it."""
        found = list(self.store.lines(after=number - 2, upto=number))
        if [line.number for line in found] != [number - 1, number]:
            raise LedgerBroken(
                f"A ledger must have the lines that were written to it. Found none at {number}. Restore the ledger "
                "from a copy."
            )
        return next(check_lines(found[1:], found[0].head))

    # Writing

    def own(self, kind: str) -> str:
        """Return the kind of this block's lines."""
        return kind if kind == replay.CAP else replay.of_block(kind, self.block)

    def append(self, said: Sequence[Body], snapshot: str | None = None) -> None:
        """Write lines after the last one that was read. Raises Moved if another process has written meanwhile."""
        who = self.author.who
        lines = [(chain.now(), who, self.own(kind), body) for kind, body in said]
        self.head = self.store.append(lines, self.head, snapshot, durable=not self.is_in_group)
        self.is_off_disk = self.is_in_group

    def begin_group(self) -> None:
        """Write lines without waiting for the disk. The first line after ``end_group`` waits for all of them."""
        self.is_in_group = True

    def end_group(self) -> None:
        """Wait for the disk again with every line."""
        self.is_in_group = False

    def append_anywhere(self, kind: str, body: str, *, durable: bool) -> None:
        """Write a line after whatever is there. Unless ``durable``, do not wait for the disk."""
        said = (chain.now(), self.author.who, self.own(kind), body)
        quick = None if durable else self.store.append_quickly(said, self.head)
        head = quick or self.store.append([said], durable=durable)
        if head.number == self.head.number + 1:
            self.head = head


def require_version(accepted: str) -> None:
    """Refuse to charge beside another version: each would believe its own fit of what both measured."""
    if accepted != binding.version_now():
        raise LedgerUnavailable(
            f"A ledger must be used by one version at a time. Found that its owner accepted hedgerow {accepted[:40]}, "
            f"where this session has {binding.version_now()}. Nothing was released. Open the session again with that "
            "version."
        )
