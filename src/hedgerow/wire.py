"""JSON forms, by their public names, of everything that is stored or sent; and a ledger as lines of JSON.

``dumps`` and ``loads`` convert any question, universe, event, measurement, estimate, answer or entry. docs/wire.md
describes the forms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hedgerow.answer import OPERATORS, Answer, Combination
from hedgerow.engine.wire import AnsweredQuestion, LedgerTerms, bound_question, question_of
from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant, Entry, Ledger
from hedgerow.query.bound import Bound, Estimate
from hedgerow.query.counts import Query
from hedgerow.query.wire import dumps, from_json, inner, loads, register, thing, to_json
from hedgerow.query.wire_values import (
    Json,
    read_number,
    read_pairs,
    read_text,
    read_value,
    refuse,
    write_number,
    write_text,
    write_value,
)
from hedgerow.universe.universe import Universe

__all__ = ["dumps", "from_json", "ledger_from_lines", "ledger_lines", "loads", "to_json"]


def _write_answer(answer: Answer) -> dict[str, Json]:
    """Return the fields of an answer as JSON values."""
    return {
        "query": inner(answer.query),
        "estimate": inner(
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
    found = thing("estimate", estimate, Estimate)
    named = tuple((name, _read_labels(values)) for name, values in read_pairs("labels", labels))
    return Answer(
        thing("query", query, Query), found.value, found.error, found.source, read_number("cost", cost), named,
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
    return inner(part) if isinstance(part, Query) else write_number("A part", part)


def _read_part(record: Json) -> Query | float:
    """Read a part of a combination."""
    return thing("a part", record, Query) if isinstance(record, dict) else read_number("A part", record)


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


def ledger_lines(ledger: Ledger) -> Iterator[str]:
    """Write a ledger as lines of JSON: its budget and slack, its entries, and the answers that were given.

    A question that has no JSON form, because it contains functions of the user, is left out. It is answered anew after
    reading.

    Parameters
    ----------
    ledger : Ledger
        The ledger to write.

    Returns
    -------
    iterator of str
        One JSON text per line.
    """
    yield dumps(LedgerTerms(ledger.budget, ledger.set_aside))
    for entry in ledger.entries():
        yield dumps(entry)
    for bound, estimate in ledger.answers():
        asked = question_of(bound)
        if asked is not None:
            yield dumps(AnsweredQuestion(asked[0], estimate, asked[1]))


def ledger_from_lines(lines: Iterable[str], universe: Universe) -> Accountant:
    """Read back a ledger that ``ledger_lines`` wrote, to resume it by ``hr.open(…, ledger=ledger)``.

    Parameters
    ----------
    lines : iterable of str
        The lines, in order.
    universe : Universe
        The universe of the session.

    Returns
    -------
    Accountant

    Raises
    ------
    InvalidInput
        If a line is not what a ledger writes.
    """
    account: LedgerTerms | None = None
    entries: list[Entry] = []
    answers: list[tuple[Bound[Any], Estimate]] = []
    for line in lines:
        found: object = loads(line)
        match found:
            case LedgerTerms() if account is None:
                account = found
            case Budget() if account is None:  # the older form, without a slack
                account = LedgerTerms(found, 0.0)
            case Entry() if account is not None:
                entries.append(found)
            case AnsweredQuestion() if account is not None:
                answers.append((bound_question(found.question, universe, found.resolution), found.estimate))
            case _:
                raise InvalidInput(
                    "A ledger must be its account on the first line, then entries and answers. Found "
                    f"{type(found).__name__}. Read the lines as they were written."
                )
    if account is None:
        raise InvalidInput("A ledger must begin with its account. Found no line. Read the lines as they were written.")
    return Accountant(account.budget, account.slack, entries, answers)
