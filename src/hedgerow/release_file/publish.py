"""Collect what a session may publish, and write it to a file."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from hedgerow._json import Json
from hedgerow.answering.answers_on_record import RecordedAnswer, costs_of_questions
from hedgerow.answering.blocks import Block
from hedgerow.errors import InvalidInput
from hedgerow.privacy.ledger import Entry
from hedgerow.query.bound import Bound, Estimate
from hedgerow.release_file.container import pack, save
from hedgerow.release_file.document import write_document
from hedgerow.release_file.publication import Publication, PublishedBlock
from hedgerow.release_file.signing import PrivateKey
from hedgerow.report import Charge
from hedgerow.universe.universe import Universe

Choice = Literal["all", "bought", "none"]
CHOICES: tuple[Choice, ...] = ("all", "bought", "none")


def publish(
    path: str | Path,
    blocks: Sequence[Block],
    combined: Iterable[tuple[Any, Estimate]],
    *,
    answers: Choice,
    key: PrivateKey | None,
    private: bool,
    numbers_given: int,
    statement: dict[str, Json],
) -> Path:
    """Write the public part of these blocks to a release file, completely or not at all.

    ``combined`` are the answers about all blocks together.
    """
    require_choice(answers)
    universe = blocks[0].data.universe
    published = Publication(
        universe,
        private,
        tuple(_publish_block(block, answers) for block in blocks),
        _choose_answers(combined, [block.ledger.entries() for block in blocks], universe, answers)
        if len(blocks) > 1
        else (),
        numbers_given,
        statement,
        importlib.metadata.version("hedgerow"),
    )
    return save(pack(write_document(published), key), path)


def require_choice(answers: Any) -> None:
    """Refuse an unknown choice of answers."""
    if answers not in CHOICES:
        raise InvalidInput(f"answers must be 'all', 'bought' or 'none'. Found {answers!r}. Choose one.")


def _publish_block(block: Block, answers: Choice) -> PublishedBlock:
    """Return the public side of a block."""
    ledger, engine = block.ledger, block.engine
    entries = ledger.entries()
    head = getattr(ledger, "head", None)
    return PublishedBlock(
        block.name,
        ledger.budget,
        ledger.spent,
        ledger.spent_epsilon,
        block.beta,
        engine.public,
        getattr(engine, "guard", None) is not None,
        tuple(_charge(entry, answers) for entry in entries),
        _choose_answers(ledger.answers(), [entries], block.data.universe, answers),
        len(entries),
        None if head is None else str(head),
    )


def _charge(entry: Entry, answers: Choice) -> Charge:
    """Return a charge for the log. Its question is named unless no answers are published."""
    asked = "" if entry.asked is None or answers == "none" else repr(entry.asked)
    return Charge(entry.why, asked, ", ".join(map(repr, entry.events)), entry.cost)


def _choose_answers(
    given: Iterable[tuple[Any, Estimate]], logs: Collection[Sequence[Entry]], universe: Universe, answers: Choice
) -> tuple[RecordedAnswer, ...]:
    """Return the last answer to each question, as far as the owner publishes them."""
    last: dict[Any, tuple[Bound[Any], Estimate]] = {}
    for bound, estimate in given if answers != "none" else ():
        if hasattr(bound, "blocks"):  # about several blocks: published with them
            continue
        last[bound.key] = bound, estimate
    costs: dict[Any, float] = {}
    for log in logs:  # a row is in one block only, so a question costs it the largest bill
        for question, cost in costs_of_questions(log, universe).items():
            costs[question] = max(cost, costs.get(question, 0.0))
    return tuple(
        RecordedAnswer(bound, estimate, costs.get(question, 0.0))
        for question, (bound, estimate) in last.items()
        if answers == "all" or estimate.source == "measured"
    )
