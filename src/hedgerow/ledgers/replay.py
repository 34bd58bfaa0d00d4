"""Turn entries into lines of a ledger and back: a charge is one line, and each of its released values is another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, MutableSequence
from dataclasses import replace
from typing import Any, overload

import numpy as np

import hedgerow.engines.wire  # noqa: F401  # the forms of entries
from hedgerow.errors import LedgerBroken
from hedgerow.ledgers.chain import Line
from hedgerow.privacy.ledger import Entry
from hedgerow.questions.wire import dumps, loads
from hedgerow.questions.wire_values import read_value, write_value

FORMAT = 1  # the version of the format of lines
ACCOUNT, CHARGE, RELEASE, ANSWERS, CAP, SNAPSHOT, ACCEPTED, BLOCK = (
    "account", "charge", "release", "answers", "cap", "snapshot", "version", "block",
)  # fmt: skip
"""The kinds of lines.

An appended block has an account line of its own, of kind ``block``. The kind of its other lines names the block.
"""


def of_block(kind: str, block: int) -> str:
    """Return the kind of a line of a block.

    The first block, number 0, has the kinds of a ledger without other blocks.
    """
    return f"{kind}:{block}" if block else kind


def kind_and_block(kind: str) -> tuple[str, int]:
    """Split the kind of a line into the plain kind and the number of the block."""
    name, _, block = kind.partition(":")
    return name, int(block or 0)


def body(**fields: Any) -> str:
    """Return the body of a line with these fields."""
    return json.dumps({"v": FORMAT, **fields}, sort_keys=True, separators=(",", ":"))


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


def released_number(line: Line) -> int:
    """Return the number of the entry that a release belongs to."""
    return int(json.loads(line.body)["number"])


def with_release(entry: Entry, line: Line) -> Entry:
    """Return the entry with the released value that a line adds to it."""
    record = json.loads(line.body)
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
            number = released_number(line)
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
