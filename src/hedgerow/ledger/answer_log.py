"""Store answers in lines of a ledger, and find them again by name.

The name of a question is a hash of its meaning. A ledger of 10⁵ answers therefore recognizes a repeated question
without reading the stored questions.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from functools import lru_cache
from math import isfinite
from typing import Any

import numpy as np

from hedgerow._types import Names
from hedgerow.engine.wire import bound_question, question_of
from hedgerow.errors import InvalidInput, LedgerBroken
from hedgerow.privacy.accounts import BlocksQuestion
from hedgerow.query.bound import Bound, Estimate
from hedgerow.query.counts import Query
from hedgerow.query.linear import Linear
from hedgerow.query.wire import dumps, inner, thing
from hedgerow.universe.universe import Universe

Note = dict[str, Any]
_BEGINS, _ENDS = '{"answers":[', '],"v":1}'
_NAMES = re.compile('"name":"([0-9a-f]{32})","question":')


def name_of(bound: Bound[Any] | BlocksQuestion) -> str | None:
    """Return a name that is the same for the same question in every process.

    Returns None for a question that cannot be serialized. Such a question is answered anew each time.
    """
    if isinstance(bound, BlocksQuestion):
        of_one = name_of(bound.question)
        return None if of_one is None else _digest(json.dumps([*bound.blocks, of_one]))
    if isinstance(bound, Linear):
        meaning = repr(bound.key)  # names, booleans and bytes, which every process shows alike
    else:
        asked = question_of(bound)
        if asked is None:
            return None
        meaning = dumps(asked[0]) + ("" if asked[1] == "values" else asked[1])
    return _digest(meaning)


def _digest(meaning: str) -> str:
    return hashlib.blake2b(meaning.encode(), digest_size=16).hexdigest()


def written(notes: Iterable[tuple[Bound[Any] | BlocksQuestion, Estimate]]) -> str:
    """Return the body of a line that stores these answers."""
    return _BEGINS + ",".join(filter(None, (_written(*note) for note in notes))) + _ENDS


def _written(bound: Bound[Any] | BlocksQuestion, estimate: Estimate) -> str:
    """Return the JSON of one answer, or an empty text if its question cannot be serialized."""
    asked_of = bound.question if isinstance(bound, BlocksQuestion) else bound
    name, found = name_of(bound), question_of(asked_of)
    if name is None or found is None:
        return ""
    question, resolution = found
    if isinstance(question, Linear) and question.is_count and question.vectors and type(estimate.value) is float:
        asked = _count(question)  # most questions are counts, and storing them must cost next to nothing
    else:
        asked = json.dumps(inner(question), separators=(",", ":"))
    at = "" if resolution == "values" else f',"resolution":"{resolution}"'
    at += f',"blocks":{json.dumps(bound.blocks)}' if isinstance(bound, BlocksQuestion) else ""
    return f'{{"estimate":{_estimate(estimate)},"name":"{name}","question":{asked}{at}}}'


def _estimate(estimate: Estimate) -> str:
    """Write an estimate exactly as ``inner`` would, but faster where it is a plain number."""
    value, error, typical = estimate.value, estimate.error, estimate.typical
    plain = all(v is None or (type(v) is float and isfinite(v)) for v in (error, typical))
    if (
        plain
        and type(value) is float
        and isfinite(value)
        and type(estimate.resolution) is float
        and not estimate.resolution
    ):
        bar = "null" if error is None else repr(error)
        usual = "" if typical is None else f',"typical":{typical!r}'
        return f'{{"kind":"estimate","value":{value!r},"error":{bar},"source":"{estimate.source}"{usual}}}'
    return json.dumps(inner(estimate), separators=(",", ":"))


def _count(query: Linear) -> str:
    """Write a count exactly as ``inner`` would, but faster."""
    vectors = ",".join([_mask(v.tobytes()) for v in query.vectors or ()])
    return f'{{"kind":"bound","attributes":{_attributes(query.attributes)},"vectors":[{vectors}],"table":null}}'


@lru_cache(maxsize=4096)  # the same few masks come again and again
def _mask(truths: bytes) -> str:
    packed = base64.b64encode(np.packbits(np.frombuffer(truths, bool)).tobytes()).decode()
    return f'{{"kind":"array","dtype":"bool","shape":[{len(truths)}],"data":"{packed}"}}'


@lru_cache(maxsize=4096)
def _attributes(names: Names) -> str:
    return json.dumps(names)


def names_in(body: str) -> list[str]:
    """Return the names of the answers in a line, without parsing them.

    The pattern cannot match inside a text, where every quote has a backslash before it.
    """
    if not (body.startswith(_BEGINS) and body.endswith(_ENDS)):
        raise InvalidInput(
            "A line of answers must be of a form that this version reads. Found another. Read the ledger with the version that wrote it."
        )
    return _NAMES.findall(body)


def notes_in(body: str) -> list[Note]:
    """Return the answers in a line as JSON records, each with its ``name``."""
    found = record_in_text(body).get("answers")
    if not isinstance(found, list) or not all(
        isinstance(note, dict) and {"name", "question", "estimate"} <= note.keys() for note in found
    ):
        raise LedgerBroken("A line of answers must have them whole. Found another. Restore the ledger from a copy.")
    return found


def record_in_text(body: str) -> Note:
    """Return the record in a text; an empty one where the text is none."""
    try:
        record = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def estimate_in(note: Note) -> Estimate:
    """Return the estimate in a stored answer."""
    return thing("estimate", note["estimate"], Estimate)


def answer_in(note: Note, universe: Universe) -> tuple[Bound[Any] | BlocksQuestion, Estimate]:
    """Return the question and the estimate in a stored answer."""
    question: Linear | Query = thing("question", note["question"], (Linear, Query))
    bound = bound_question(question, universe, note.get("resolution", "values"))
    return BlocksQuestion(tuple(note["blocks"]), bound) if "blocks" in note else bound, estimate_in(note)
