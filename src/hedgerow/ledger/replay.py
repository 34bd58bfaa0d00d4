"""Turn entries into lines of a ledger and back: a charge is one line, and each of its released values is another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableSequence
from dataclasses import replace
from typing import Any, overload

import numpy as np

from hedgerow._json import canonical, parse
from hedgerow.errors import InvalidInput, LedgerBroken
from hedgerow.ledger.chain import Line
from hedgerow.privacy.log import Entry
from hedgerow.serialize import dumps, loads
from hedgerow.serialize.values import read_value, write_value

FORMAT = 1  # the version of the format of lines
ACCOUNT, CHARGE, RELEASE, ANSWERS, CAP, SNAPSHOT, ACCEPTED, BLOCK = (
    "account", "charge", "release", "answers", "cap", "snapshot", "version", "block",
)  # fmt: skip
"""The kinds of lines.

An appended block has an account line of its own, of kind ``block``. The kind of its other lines names the block.
"""
KINDS = (ACCOUNT, CHARGE, RELEASE, ANSWERS, CAP, SNAPSHOT, ACCEPTED, BLOCK)


def of_block(kind: str, block: int) -> str:
    """Return the kind of a line of a block.

    The first block, number 0, has the kinds of a ledger without other blocks.
    """
    return f"{kind}:{block}" if block else kind


def kind_and_block(kind: str) -> tuple[str, int]:
    """Return the kind of a line and the number of its block.

    Refuse a kind that this version does not know: it may spend.
    """
    name, colon, block = kind.partition(":")
    number = int(block) if block.isascii() and block.isdigit() and block[0] != "0" and len(block) < 10 else 0
    if name not in KINDS or bool(colon) != (number > 0):
        raise InvalidInput(
            f"The kind of a line in a ledger must be one that this version knows. Found {kind[:40]!r}. "
            "Read the ledger with the version that wrote it."
        )
    return name, number


def require_known(kinds: Iterable[str], blocks: int) -> None:
    """Refuse a ledger with a line of an unknown kind, or of a block that was not appended."""
    for kind in kinds:
        _, block = kind_and_block(kind)
        if block > blocks:
            raise LedgerBroken(
                f"A line must be of a block that the ledger has. Found {kind[:40]!r}, where {blocks} were appended. "
                "Restore the ledger from a copy."
            )


def record_in(line: Line, **needed: type | tuple[type, ...]) -> dict[str, Any]:
    """Return the record of a line. Refuse another format, and a record that lacks a field of these types."""
    try:
        record = parse(line.body)
    except ValueError:
        record = None
    if isinstance(record, dict) and record.get("v") != FORMAT and "v" in record:
        raise InvalidInput(
            f"The format of a ledger must be {FORMAT}. Found {str(record['v'])[:40]!r} in line {line.number}. Read it "
            "with the version that wrote it."
        )
    if not isinstance(record, dict) or "v" not in record or not all(_has(record, *field) for field in needed.items()):
        raise LedgerBroken(
            f"Line {line.number} of the ledger must have the form of its kind. Found another form. Restore the ledger "
            "from a copy."
        )
    return record


def _has(record: dict[str, Any], name: str, kinds: type | tuple[type, ...]) -> bool:
    found = record.get(name)
    return isinstance(found, kinds) and not (isinstance(found, bool) and kinds is not bool)


def block_in(line: Line) -> str:
    """Return the name of the block that a line appends."""
    return str(record_in(line, block=str)["block"])


def accepted_in(line: Line) -> str:
    """Return the version that the owner accepted with a line."""
    return str(record_in(line, version=str)["version"])


def body(**fields: Any) -> str:
    """Return the body of a line with these fields."""
    return canonical({"v": FORMAT, **fields})


def written_charge(entry: Entry) -> str:
    """Return the body of the line for a charge."""
    return dumps(entry)


def written_release(entry: Entry) -> str:
    """Return the body of the line for the last released value of an entry."""
    return body(number=entry.number, released=write_value(entry.released[-1]), private=entry.private)


def read_charge(line: Line, number: int) -> Entry:
    """Return the charge in a line, which must have the given number."""
    entry = loads(line.body, Entry)
    if entry.number != number or entry.released:
        raise LedgerBroken(
            f"Line {line.number} of the ledger must be charge {number}. Found {entry.number}. Restore the ledger from "
            "a copy."
        )
    return entry


def released_number(line: Line, charges: int) -> int:
    """Return the number of the charge that a release belongs to, one of so many."""
    number = int(record_in(line, number=int, private=bool)["number"])
    if not 0 <= number < charges:
        raise LedgerBroken(
            f"Line {line.number} of the ledger must be a release of one of the {charges} charges before it. Found "
            "a release of another charge. Restore the ledger from a copy."
        )
    return number


def with_release(entry: Entry, line: Line) -> Entry:
    """Return the entry with the released value that a line adds to it."""
    record = record_in(line, private=bool)
    if "released" not in record:
        raise LedgerBroken(
            f"Line {line.number} of the ledger must contain the released value. Found none. Restore the ledger from a "
            "copy."
        )
    value = read_value(record["released"])
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    if len(entry.released) >= entry.releases:
        raise LedgerBroken(
            f"Line {line.number} of the ledger must be a value that charge {entry.number} was still to release. Found "
            "one value more. Restore the ledger from a copy."
        )
    return replace(entry, released=(*entry.released, value), private=entry.private and bool(record["private"]))


def entries_in(lines: Iterable[Line]) -> list[Entry]:
    """Return all entries, given all charge and release lines of one block."""
    found: list[Entry] = []
    for line in lines:
        kind, _ = kind_and_block(line.kind)
        if kind == CHARGE:
            found.append(read_charge(line, len(found)))
        elif kind == RELEASE:
            number = released_number(line, len(found))
            found[number] = with_release(found[number], line)
    return found


class Book(MutableSequence[Entry]):
    """The entries of a ledger. Entries before the last snapshot are read only when one of them is first needed."""

    def __init__(self, older: int, load: Callable[[], list[Entry]], known: dict[int, Entry]) -> None:
        """Make a book with ``older`` entries that ``load`` returns.

        ``known`` are those older entries that are at hand. They take precedence over the loaded ones.
        """
        self._older, self._load, self._known = older, load, known
        self._loaded: list[Entry] | None = None
        self._newer: list[Entry] = []

    def __len__(self) -> int:
        return self._older + len(self._newer)

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        if index >= self._older:
            return self._newer[index - self._older]
        if index in self._known:
            return self._known[index]
        if self._loaded is None:
            self._loaded = self._load()[: self._older]
        return self._loaded[index]

    def __setitem__(self, index: Any, entry: Any) -> None:
        if index >= self._older:
            self._newer[index - self._older] = entry
        else:
            self._known[index] = entry

    def __iter__(self) -> Iterator[Entry]:
        return (self[i] for i in range(len(self)))

    def insert(self, index: int, entry: Entry) -> None:
        """Append an entry. No other place is allowed."""
        assert index == len(self), "a ledger only grows at its end"
        self._newer.append(entry)

    def __delitem__(self, index: Any) -> None:
        raise TypeError("a ledger only grows")
