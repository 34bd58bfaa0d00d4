"""Open the session that the file describes: once, for a stated price. Every later command resumes it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import hedgerow as hr
from hedgerow.cli.file import File
from hedgerow.cli.published_file import PublishedFile
from hedgerow.data.absent import AbsentTable
from hedgerow.errors import InvalidInput

if TYPE_CHECKING:
    from hedgerow.ledger import Reading
    from hedgerow.release_file.release import Release
    from hedgerow.session import Session


Use = Literal["read", "ask", "charge"]
"""Use of a session: read what was released; ask what only a guard would charge for; or anything."""


def is_open(file: File) -> bool:
    """Return True if the ledger exists. The table is not read."""
    return hr.ledger.exists(file.ledger)


def open_reading(file: File) -> Reading:
    """Open the ledger for reading, without its table."""
    require_open(file)
    return hr.ledger.read(file.ledger)


def require_open(file: File) -> None:
    """Refuse to go on before the session was opened."""
    if not is_open(file):
        raise InvalidInput(
            "The session must be opened before it is asked, because opening spends most of the budget. Found no "
            f"ledger at {file.ledger_shown!r}. Run `hedgerow open`."
        )


@contextlib.contextmanager
def session(
    file: File | PublishedFile,
    analyst: str = "",
    seed: int | None = None,
    *,
    first: bool = False,
    use: Use = "charge",
) -> Iterator[Any]:
    """Resume the session of the file's ledger with all of its blocks, and close it at the end.

    A release file gives its release, which has no table to read. Closing writes the answers that are not written yet.
    With ``first`` the session is opened if there is none. Unless its ``use`` may be charged, the table is not read.
    """
    if isinstance(file, PublishedFile):
        if analyst or seed is not None:
            raise InvalidInput(
                "--analyst and --seed must be left out for a release file, because nothing is charged or drawn. "
                "Found one. Leave it out."
            )
        yield file.release
        return
    if not first:
        require_open(file)
    opened = (None if use == "charge" else open_without_table(file, use, analyst, seed)) or open_session(
        file, analyst, seed
    )
    try:
        yield opened
    finally:
        opened.close()


def open_session(file: File, analyst: str = "", seed: int | None = None) -> Session:
    """Open or resume the session of the file, with all of its blocks. The caller closes it."""
    blocks = file.blocks  # read first, so that invalid blocks are refused before anything is spent
    opened = hr.open(
        file.source, universe=file.universe, budget=file.budget, table=file.table, csv=file.csv, ledger=file.ledger,
        analyst=analyst, seed=seed, **file.block, **file.options,
    )  # fmt: skip
    opened.note_draft(*file.draft)
    try:
        for block in blocks:
            opened.append(**block)
    except BaseException:
        opened.close()
        raise
    return opened


def open_without_table(file: File, use: Use, analyst: str = "", seed: int | None = None) -> Session | None:
    """Resume the session from its ledger alone, or return None where that needs the table.

    It does in the theory profile, where raw rows are kept, where a guard would compare a question with the table, and
    where the ledger has no snapshot that this version can resume.
    """
    if not file.is_practical or file.options.get("keep_rows", False):
        return None
    reading, replaces = hr.ledger.read(file.ledger), file.budget.neighbours == "replace"
    try:
        found = [each.opening_rows for each in (reading, *reading.blocks.values())]
    finally:
        reading.close()
    blocks = file.blocks
    if None in found or len(found) != 1 + len(blocks):
        return None
    first, *others = (AbsentTable(file.universe, round(rows or 0) if replaces else None) for rows in found)
    opened = hr.open(
        first, universe=file.universe, budget=file.budget, ledger=file.ledger, analyst=analyst, seed=seed,
        **file.block, **file.options,
    )  # fmt: skip
    opened.note_draft(*file.draft)
    try:
        for block, table in zip(blocks, others, strict=True):
            opened.append(**{**block, "source": table, "table": None, "csv": None})
    except BaseException:
        opened.close()
        raise
    if use == "ask" and any(getattr(block.engine, "guard", None) is not None for block in opened.blocks.values()):
        opened.close()
        return None
    return opened


def first_ledger(opened: Session) -> Any:
    """Return the ledger of the first block, whose chain of lines includes those of all blocks."""
    return next(iter(opened.blocks.values())).ledger


def account(opened: Session | Release) -> dict[str, Any]:
    """Return the public facts about a session's budget."""
    return {
        "private": opened.private and all(entry.private for entry in getattr(opened, "log", ())),
        "spent": opened.spent,
        "remaining": opened.remaining,
        "total": opened.budget.total,
        "currency": opened.budget.currency,
        "spent_epsilon": opened.spent_epsilon,
        "epsilon": opened.budget.epsilon,
        "delta": opened.budget.delta,
    }


def spent_line(record: dict[str, Any]) -> str:
    """Return what was spent, in one line."""
    loud = "" if record["private"] else "NOT PRIVATE (seeded): "
    share = record["spent"] / record["total"]
    return (
        f"{loud}spent {share:.1%} of ε = {record['epsilon']:g}, δ = {record['delta']:g} "
        f"({record['currency']} {record['spent']:.4g} of {record['total']:.4g}; {record['remaining']:.3g} left)"
    )
