"""The lines of a ledger and their hash chain: each line's hash fixes its content and all lines before it.

    hash_k = SHA-256([hash_{k−1}, k, time, who, kind, body] as JSON),   hash_0 = 00…0

So no line can be changed, removed, moved or inserted without breaking every hash after it. If lines are cut off at the
end, the shorter chain is still valid. Only a ``Head`` that was noted elsewhere reveals such a cut.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hedgerow._json import write_ordered
from hedgerow.errors import InvalidInput, LedgerBroken

NOTHING = "0" * 64  # the hash before the first line


@dataclass(frozen=True, slots=True)
class Head:
    """The last line of a chain: its number, hash and time. The number and the hash together fix the whole chain."""

    number: int = 0
    hash: str = NOTHING
    time: int = 0

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"

    @classmethod
    def of(cls, text: str) -> Head:
        """Read a head from the text that ``str`` wrote. The time is not part of that text."""
        number, _, digest = text.partition(":")
        if not (number.isascii() and number.isdigit() and len(digest) == 64 and set(digest) <= set("0123456789abcdef")):
            raise InvalidInput(f"A head must be its number and its hash. Found {text[:80]!r}. Give str(ledger.head).")
        return cls(int(number), digest)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a ledger.

    ``time`` is in microseconds since 1970, UTC. ``who`` is the analyst on whose behalf the line was written. ``body``
    is JSON, in the form that belongs to ``kind``.
    """

    number: int
    time: int
    who: str
    kind: str
    body: str
    hash: str

    @property
    def head(self) -> Head:
        """The head of a chain that ends with this line."""
        return Head(self.number, self.hash, self.time)


def now() -> int:
    """Return the time of a new line."""
    return time.time_ns() // 1000


def next_line(before: Head, time: int, who: str, kind: str, body: str) -> Line:
    """Return the line that follows a head, with its hash."""
    number = before.number + 1
    return Line(number, time, who, kind, body, _hash(before.hash, number, time, who, kind, body))


def _hash(before: str, *said: int | str) -> str:
    return hashlib.sha256(write_ordered([before, *said]).encode()).hexdigest()


def check_lines(lines: Iterable[Line], before: Head) -> Iterator[Line]:
    """Yield the lines, and raise LedgerBroken at the first that does not follow from the one before it."""
    for line in lines:
        said = (line.time, line.who, line.kind, line.body)
        if line.number != before.number + 1 or line.hash != _hash(before.hash, line.number, *said):
            raise LedgerBroken(
                f"Line {before.number + 1} of the ledger must follow from those before it. Found another: it was "
                "changed, removed or moved. Restore the ledger from a copy, and find out who can write to it."
            )
        if line.time < before.time:
            raise LedgerBroken(
                f"Line {line.number} of the ledger must be no earlier than the one before. Found an earlier time. "
                "Restore the ledger from a copy."
            )
        yield line
        before = line.head
