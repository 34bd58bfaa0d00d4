"""JSON forms of answers, of arithmetic on answers, and of answered questions in a ledger."""

from __future__ import annotations

from typing import Any

from hedgerow._json import Json, read_text, refuse
from hedgerow.answer import OPERATORS, Answer, Combination
from hedgerow.query.bound import Estimate
from hedgerow.query.counts import Query, Resolution
from hedgerow.query.linear import Linear
from hedgerow.serialize.registry import decode, encode, register
from hedgerow.serialize.values import (
    read_number,
    read_pairs,
    read_value,
    write_number,
    write_text,
    write_value,
)


def _write_answer(answer: Answer) -> dict[str, Json]:
    """Return the fields of an answer as JSON values."""
    return {
        "query": encode(answer.query),
        "estimate": encode(
            Estimate(
                answer.value,
                answer.error,
                answer.source,
                answer.resolution,
                answer.typical,
                coefficients=answer.coefficient_errors,
            )
        ),
        "cost": write_number("cost", answer.cost),
        "labels": [[write_text("A name", name), write_value(labels)] for name, labels in answer.labels],
    }


def _read_answer(query: Json, estimate: Json, cost: Json, labels: Json) -> Answer:
    """Rebuild an answer from its fields."""
    found = decode("estimate", estimate, Estimate)
    named = tuple((name, _read_labels(values)) for name, values in read_pairs("labels", labels))
    return Answer(
        decode("query", query, Query), found.value, found.error, found.source, read_number("cost", cost), named,
        found.resolution, found.typical, found.coefficients,
    )  # fmt: skip


def _read_labels(record: Json) -> tuple[Any, ...]:
    """Read the labels of one axis; refuse anything but a tuple."""
    labels = read_value(record)
    if not isinstance(labels, tuple):
        refuse("labels", "a tuple for every name", labels)
    return labels


register("answer", Answer, _write_answer, _read_answer)


def _write_part(part: Query | float) -> Json:
    """Return a part of a combination, a question or a number, as a JSON value."""
    return encode(part) if isinstance(part, Query) else write_number("A part", part)


def _read_part(record: Json) -> Query | float:
    """Read a part of a combination."""
    return decode("a part", record, Query) if isinstance(record, dict) else read_number("A part", record)


def _read_combination(operator: Json, left: Json, right: Json) -> Combination:
    """Rebuild arithmetic on answers from its fields."""
    sign = read_text("operator", operator)
    if sign not in OPERATORS:
        refuse("operator", f"one of {' '.join(OPERATORS)}", sign)
    return Combination(sign, _read_part(left), _read_part(right))


register(
    "arithmetic",
    Combination,
    lambda made: {"operator": made.operator, "left": _write_part(made.left), "right": _write_part(made.right)},
    _read_combination,
)


class AnsweredQuestion:
    """A question, as bound to its universe, with the answer that was given."""

    def __init__(self, question: Linear | Query, estimate: Estimate, resolution: Resolution = "values") -> None:
        self.question, self.estimate, self.resolution = question, estimate, resolution


def _write_answered(note: AnsweredQuestion) -> dict[str, Json]:
    """Return the JSON fields of an answered question; the default resolution is left out."""
    written: dict[str, Json] = {"question": encode(note.question), "estimate": encode(note.estimate)}
    return written if note.resolution == "values" else {**written, "resolution": note.resolution}


def _read_answered_question(question: Json, estimate: Json, resolution: Json = "values") -> AnsweredQuestion:
    """Build an answered question from its JSON fields."""
    if resolution not in ("values", "bins"):
        refuse("resolution", "'values' or 'bins'", resolution)
    return AnsweredQuestion(
        decode("question", question, (Linear, Query)), decode("estimate", estimate, Estimate), resolution
    )


register("answered", AnsweredQuestion, _write_answered, _read_answered_question)
