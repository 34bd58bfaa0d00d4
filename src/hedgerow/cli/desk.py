"""A session as the file describes it: opened once, for a price that was said, and taken up by every later command."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import hedgerow as hr
from hedgerow.cli.file import File
from hedgerow.errors import InvalidInput

if TYPE_CHECKING:
    from hedgerow.ledgers import Reading
    from hedgerow.session import Session


def is_open(file: File) -> bool:
    """Whether there is a ledger yet: nothing of the table is looked at."""
    return hr.ledgers.exists(file.ledger)


def reading(file: File) -> Reading:
    """The ledger, without its table."""
    require_open(file)
    return hr.ledgers.read(file.ledger)


def require_open(file: File) -> None:
    if not is_open(file):
        raise InvalidInput(
            f"The session must be opened before it is asked, for that spends most of the budget. Found no ledger at "
            f"{file.ledger_shown!r}. Run `hedgerow open`."
        )


@contextlib.contextmanager
def session(file: File, who: str = "", seed: int | None = None, *, first: bool = False) -> Iterator[Session]:
    """The session of the file's ledger with all of its blocks, taken up; ``first``: made, if there is none. What it answers is written at its end."""
    if not first:
        require_open(file)
    blocks = file.blocks  # refused, where they make no sense, before anything is spent
    opened = hr.open(
        file.source, universe=file.universe, budget=file.budget, table=file.table, csv=file.csv, ledger=file.ledger,
        who=who, seed=seed, **file.block, **file.options,
    )  # fmt: skip
    try:
        for block in blocks:
            opened.append(**block)
        yield opened
    finally:
        opened.close()


def first_ledger(opened: Session) -> Any:
    """That of the first block, whose chain of lines is that of all."""
    return next(iter(opened.blocks.values())).ledger


def account(opened: Session) -> dict[str, Any]:
    """What anybody may know of a session's budget."""
    return {
        "private": opened.private and all(entry.private for entry in opened.log),
        "spent": opened.spent,
        "remaining": opened.remaining,
        "total": opened.budget.total,
        "currency": opened.budget.currency,
        "spent_epsilon": opened.spent_epsilon,
        "epsilon": opened.budget.epsilon,
        "delta": opened.budget.delta,
    }


def spent_line(record: dict[str, Any]) -> str:
    """What was spent, in a line."""
    loud = "" if record["private"] else "NOT PRIVATE (seeded): "
    share = record["spent"] / record["total"]
    return (
        f"{loud}spent {share:.1%} of ε = {record['epsilon']:g}, δ = {record['delta']:g} "
        f"({record['currency']} {record['spent']:.4g} of {record['total']:.4g}; {record['remaining']:.3g} left)"
    )
