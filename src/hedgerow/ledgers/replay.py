"""Entries from lines: a charge is one line, and each thing that came out of it another."""

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

FORMAT = 1
ACCOUNT, CHARGE, RELEASE, ANSWERS, CAP, SNAPSHOT, ACCEPTED, BLOCK = (
    "account", "charge", "release", "answers", "cap", "snapshot", "version", "block",
)  # fmt: skip
"""The kinds of lines. A block that was appended has an account of its own, ``block``, and its lines say whose they are."""


def of_block(kind: str, block: int) -> str:
    """The kind of such a line of a block; of the first, which is number 0, as in a ledger without others."""
    return f"{kind}:{block}" if block else kind


def kind_and_block(kind: str) -> tuple[str, int]:
    name, _, block = kind.partition(":")
    return name, int(block or 0)


def body(**fields: Any) -> str:
    return json.dumps({"v": FORMAT, **fields}, sort_keys=True, separators=(",", ":"))


def written_charge(entry: Entry) -> str:
    return dumps(entry)


def written_release(entry: Entry) -> str:
    """What came out last."""
    return body(number=entry.number, released=write_value(entry.released[-1]), private=entry.private)


def read_charge(line: Line, number: int) -> Entry:
    """The charge of a line, which must be the next one."""
    entry = loads(line.body, Entry)
    if entry.number != number or entry.released:
        raise LedgerBroken(
            f"Line {line.number} of the ledger must be charge {number}. Found {entry.number}. Restore the ledger from a copy."
        )
    return entry


def released_number(line: Line) -> int:
    return int(json.loads(line.body)["number"])


def with_release(entry: Entry, line: Line) -> Entry:
    """The entry with what a line says came out of it."""
    record = json.loads(line.body)
    value = read_value(record["released"])
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    if len(entry.released) >= entry.releases:
        raise LedgerBroken(
            f"Line {line.number} of the ledger must be something that was to come out of charge {entry.number}. Found one thing "
            "more. Restore the ledger from a copy."
        )
    return replace(entry, released=(*entry.released, value), private=entry.private and bool(record["private"]))


def entries_in(lines: Iterable[Line]) -> list[Entry]:
    """All entries, from all lines of charges and releases of one block."""
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
    """The entries of a ledger, of which those before a snapshot are read when the first of them is looked at."""

    def __init__(self, older: int, load: Callable[[], list[Entry]], known: dict[int, Entry]) -> None:
        """``known``: older ones that are at hand. They are newer than what is loaded."""
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
        assert index == len(self), "a ledger only grows at its end"
        self._newer.append(entry)

    def __delitem__(self, index: Any) -> None:
        raise TypeError("a ledger only grows")
