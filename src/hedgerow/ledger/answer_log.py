"""Store answers in lines of a ledger, and find them again by name.

The name of a question is a hash of its meaning. A ledger of 10⁵ answers therefore recognizes a repeated question
without decoding the stored questions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from hedgerow._json import parse, write_ordered, write_spaced
from hedgerow.errors import InvalidInput, LedgerBroken
from hedgerow.ledger.replay import FORMAT
from hedgerow.privacy.accounts import BlocksQuestion
from hedgerow.query.bound import Bound, Estimate
from hedgerow.query.counts import Query
from hedgerow.query.linear import Linear
from hedgerow.serialize import bound_question, decode, dumps, encode, question_of
from hedgerow.universe.universe import Universe

Note = dict[str, Any]


def name_of(bound: Bound[Any] | BlocksQuestion) -> str | None:
    """Return a name that is the same for the same question in every process.

    Returns None for a question that cannot be serialized. Such a question is answered anew each time.
    """
    if isinstance(bound, BlocksQuestion):
        of_one = name_of(bound.question)
        return None if of_one is None else _digest(write_spaced([*bound.blocks, of_one]))
    if bound.plain_name is not None:
        return _digest(bound.plain_name)
    asked = question_of(bound)
    return None if asked is None else _digest(dumps(asked[0]) + ("" if asked[1] == "values" else asked[1]))


def _digest(meaning: str) -> str:
    return hashlib.blake2b(meaning.encode(), digest_size=16).hexdigest()


def line_body(notes: Iterable[tuple[Bound[Any] | BlocksQuestion, Estimate]]) -> str:
    """Return the body of a line that stores these answers.

    Answers to questions that cannot be serialized are left out.
    """
    records = (_record(*note) for note in notes)
    return write_ordered({"answers": [record for record in records if record is not None], "v": FORMAT})


def _record(bound: Bound[Any] | BlocksQuestion, estimate: Estimate) -> Note | None:
    """Return the record of one answer, or None if its question cannot be serialized."""
    name, found = name_of(bound), question_of(bound.question if isinstance(bound, BlocksQuestion) else bound)
    if name is None or found is None:
        return None
    question, resolution = found
    note: Note = {"estimate": encode(estimate), "name": name, "question": encode(question)}
    if resolution != "values":
        note["resolution"] = resolution
    if isinstance(bound, BlocksQuestion):
        note["blocks"] = list(bound.blocks)
    return note


def names_in(body: str) -> list[str]:
    """Return the names of the answers in a line."""
    return [note["name"] for note in notes_in(body)]


def notes_in(body: str) -> list[Note]:
    """Return the answers in a line as JSON records, each with its ``name``."""
    record = record_in_text(body)
    if record.get("v") != FORMAT:
        raise InvalidInput(
            "A line of answers must be of a form that this version reads. Found an unknown form. Read the ledger "
            "with the version that wrote it."
        )
    found = record.get("answers")
    if not isinstance(found, list) or not all(map(_is_note, found)):
        raise LedgerBroken("A line of answers must be complete. Found one that is not. Restore the ledger from a copy.")
    return found


def _is_note(note: Any) -> bool:
    """Return True if a record has what a stored answer needs."""
    return isinstance(note, dict) and {"question", "estimate"} <= note.keys() and isinstance(note.get("name"), str)


def record_in_text(body: str) -> Note:
    """Return the record in a text; an empty one where the text is none."""
    try:
        record = parse(body)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def estimate_in(note: Note) -> Estimate:
    """Return the estimate in a stored answer."""
    return decode("estimate", note["estimate"], Estimate)


def answer_in(note: Note, universe: Universe) -> tuple[Bound[Any] | BlocksQuestion, Estimate]:
    """Return the question and the estimate in a stored answer."""
    question: Linear | Query = decode("question", note["question"], (Linear, Query))
    bound = bound_question(question, universe, note.get("resolution", "values"))
    return BlocksQuestion(tuple(note["blocks"]), bound) if "blocks" in note else bound, estimate_in(note)
