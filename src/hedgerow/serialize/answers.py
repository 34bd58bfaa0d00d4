"""JSON forms of answers, of arithmetic on answers, and of answered questions in a ledger."""

from __future__ import annotations

from typing import Any

from hedgerow._json import Json, read_text, refuse
from hedgerow.answer import OPERATORS, Answer, Combination
from hedgerow.query.bound import Estimate
from hedgerow.query.counts import Query, Resolution
from hedgerow.query.linear import Linear
from hedgerow.query.support import KINDS, SeparatedPair, Support
from hedgerow.serialize.registry import decode, encode, register
from hedgerow.serialize.values import (
    read_number,
    read_pairs,
    read_value,
    write_number,
    write_text,
    write_value,
)


def _write_support(support: Support) -> Json:
    """Return what an answer rests on as a JSON value."""
    return {
        "kind": support.kind,
        "tables": [list(names) for names in support.tables],
        "separated": [[pair.first, pair.second, list(pair.given)] for pair in support.separated],
        "missing": [list(names) for names in support.missing],
    }


def _read_support(record: Json) -> Support | None:
    """Read what an answer rests on; refuse anything else."""
    match record:
        case None:
            return None
        case {"kind": kind, "tables": tables, "separated": separated, "missing": missing} if kind in KINDS:
            pairs = []
            for each in separated if isinstance(separated, list) else refuse("separated", "a list", separated):
                match each:
                    case [str() as first, str() as second, given]:
                        pairs.append(SeparatedPair(first, second, _read_names(given)))
                    case _:
                        refuse("separated", "two names and a list of names each", each)
            return Support(kind, _read_tables(tables), tuple(pairs), _read_tables(missing))
    refuse("support", f"a record whose kind is one of {', '.join(KINDS)}", record)


def _read_tables(record: Json) -> tuple[tuple[str, ...], ...]:
    """Read a list of lists of names."""
    return tuple(map(_read_names, record if isinstance(record, list) else refuse("tables", "a list", record)))


def _read_names(record: Json) -> tuple[str, ...]:
    """Read a list of names."""
    if not isinstance(record, list) or not all(isinstance(name, str) for name in record):
        refuse("names", "a list of texts", record)
    return tuple(map(str, record))


def _write_answer(answer: Answer) -> dict[str, Json]:
    """Return the fields of an answer as JSON values; an unknown support is left out."""
    return ({} if answer.support is None else {"support": _write_support(answer.support)}) | {
        "query": encode(answer.query),
        "estimate": encode(
            Estimate(
                answer.value,
                answer.error,
                answer.source,
                answer.resolution,
                answer.typical,
                coefficients=answer.coefficient_errors,
                lower=answer.lower,
                upper=answer.upper,
                basis=answer.coefficient_basis,
                simulation=answer.simulation,
            )
        ),
        "cost": write_number("cost", answer.cost),
        "labels": [[write_text("A name", name), write_value(labels)] for name, labels in answer.labels],
    }


def _read_answer(query: Json, estimate: Json, cost: Json, labels: Json, support: Json = None) -> Answer:
    """Rebuild an answer from its fields."""
    found = decode("estimate", estimate, Estimate)
    named = tuple((name, _read_labels(values)) for name, values in read_pairs("labels", labels))
    return Answer(
        decode("query", query, Query), found.value, found.error, found.source, read_number("cost", cost), named,
        found.resolution, found.typical, found.coefficients, found.lower, found.upper,
        found.basis, found.simulation, _read_support(support),
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
    """A question, as bound to its universe, with the answer that was given.

    Parameters
    ----------
    question : Linear or Query
        The question, as ``question_of`` returned it.
    estimate : Estimate
        The answer that was given.
    resolution : str
        "values" or "bins".

    Example
    -------
    >>> bound, estimate = next(iter(session.ledger.answers()))
    >>> note = hr.serialize.AnsweredQuestion(hr.serialize.question_of(bound)[0], estimate)
    """

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
