"""Check, export and summarize a ledger. Nothing here waits for a writer."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hedgerow._json import canonical, parse
from hedgerow.errors import LedgerBroken
from hedgerow.ledger import answer_log, replay
from hedgerow.ledger.binding import digest
from hedgerow.ledger.chain import Head, Line, check_lines
from hedgerow.ledger.store import Store
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.log import Entry

if TYPE_CHECKING:
    import pandas as pd


def without_releases(entry: Entry) -> Entry:
    """Return an entry as it was when it was charged."""
    return replace(entry, released=(), private=True)


def releases_of(entry: Entry) -> list[Entry]:
    """Return the entry as it was after each of its releases."""
    return [replace(entry, released=entry.released[: i + 1]) for i in range(len(entry.released))]


def verify(store: Store, head: Head | str | None = None) -> Head:
    """Check the whole ledger and return its head.

    Every line must follow from those before it, charges must be in order, every snapshot must have the hash in its
    line, and the line of ``head`` must still be there. Raises LedgerBroken otherwise.
    """
    wanted = Head.of(head) if isinstance(head, str) else head
    last, snapshots, charges = Head(), {}, dict[int, int]()
    seen = wanted is None or wanted.number == 0
    for line in check_lines(store.lines(), last):
        last = line.head
        if (line.number == 1) != (line.kind == replay.ACCOUNT):
            raise LedgerBroken(
                "A ledger must begin with its account, and have only one. Found another first line, or a second "
                "account. Restore it from a copy."
            )
        kind, block = replay.kind_and_block(line.kind)
        if kind == replay.CHARGE:
            charges[block] = charges.get(block, 0) + _is_charge(line, charges.get(block, 0))
        elif kind == replay.SNAPSHOT:
            snapshots[line.number] = replay.record_in(line, sha256=str)["sha256"]
        else:
            _require_form(line, kind, charges.get(block, 0))
        seen = seen or (wanted is not None and (line.number, line.hash) == (wanted.number, wanted.hash))
    for number, _ in store.snapshots():
        if snapshots.get(number) != digest(store.snapshot(number)):
            raise LedgerBroken(
                f"The snapshot at line {number} must be the one that was taken there. Found another snapshot. Restore "
                "the ledger from a copy."
            )
    if not seen:
        raise LedgerBroken(
            f"The ledger must still have line {wanted.number if wanted else 0} as it was. Found {last.number} lines, "
            "without it: lines were cut off, or this is another ledger. Restore it from a copy."
        )
    return last


def _is_charge(line: Line, number: int) -> int:
    if replay.record_in(line, number=int)["number"] != number:
        raise LedgerBroken(
            f"Line {line.number} of the ledger must be charge {number}. Found another line. Restore it from a copy."
        )
    return 1


def _require_form(line: Line, kind: str, charges: int) -> None:
    """Refuse a line whose record is not what its kind needs."""
    match kind:
        case replay.RELEASE:
            replay.released_number(line, charges)
        case replay.ANSWERS:
            answer_log.names_in(line.body)
        case replay.ACCEPTED:
            replay.accepted_in(line)
        case replay.BLOCK:
            replay.block_in(line)
        case _:
            replay.record_in(line)


def export_lines(store: Store) -> Iterator[str]:
    """Yield every line as JSON, with its hash."""
    for line in store.lines():
        record: dict[str, Any] = {name: getattr(line, name) for name in Line.__slots__}
        yield canonical(record)


def import_lines(lines: Iterator[str]) -> Iterator[Line]:
    """Yield exported lines again, checked."""
    return check_lines((Line(**parse(line)) for line in lines), Head())


def authors(store: Store, block: int = 0) -> list[tuple[str, float]]:
    """Return the analyst and the time of each charge, in order."""
    return [(line.who, line.time / 1e6) for line in store.lines(kinds=(replay.of_block(replay.CHARGE, block),))]


def spending(store: Store, budget: Budget, days: float | None, block: int = 0) -> pd.DataFrame:
    """Return the sum of the charges of each analyst and day (UTC).

    The sums are in the budget's currency, and also given as a share of the budget.
    """
    import pandas as pd

    since = None if days is None else datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=days)
    rows = []
    for line in store.lines(kinds=(replay.of_block(replay.CHARGE, block),)):
        when = datetime.datetime.fromtimestamp(line.time / 1e6, datetime.UTC)
        if since is None or when >= since:
            rows.append((line.who, when.date(), float(replay.record_in(line, cost=(int, float))["cost"])))
    table = pd.DataFrame(rows, columns=["who", "day", "spent"])
    summed = table.groupby(["who", "day"], as_index=False).agg(charges=("spent", "size"), spent=("spent", "sum"))
    summed["share"] = summed["spent"] / budget.total
    return summed
