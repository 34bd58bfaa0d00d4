"""Everything that is stored or sent, to and from JSON, by its public names; and a ledger as lines of it.

``dumps`` and ``loads`` are of any question, universe, event, measurement, estimate, answer or entry. docs/wire.md has the forms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import hedgerow.engines.wire  # noqa: F401  # registers its kinds
from hedgerow.convex.minimize import BoundMinimize, Minimize
from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant, Entry, Ledger
from hedgerow.questions.bound import Bound, Estimate
from hedgerow.questions.counts import BoundMarginal, Query
from hedgerow.questions.counts import bound as bound_to
from hedgerow.questions.counts import marginal as make_marginal
from hedgerow.questions.linear import Linear
from hedgerow.questions.universe import Universe
from hedgerow.questions.wire import dumps, from_json, inner, loads, register, thing, to_json
from hedgerow.questions.wire_values import (
    Json,
    read_number,
    read_pairs,
    read_value,
    refuse,
    write_number,
    write_text,
    write_value,
)
from hedgerow.session import Answer

__all__ = ["dumps", "from_json", "ledger_from_lines", "ledger_lines", "loads", "to_json"]


def _write_answer(answer: Answer) -> dict[str, Json]:
    return {
        "query": inner(answer.query),
        "estimate": inner(Estimate(answer.value, answer.error, answer.source, answer.resolution, answer.typical)),
        "cost": write_number("cost", answer.cost),
        "labels": [[write_text("A name", name), write_value(labels)] for name, labels in answer.labels],
    }


def _read_answer(query: Json, estimate: Json, cost: Json, labels: Json) -> Answer:
    found = thing("estimate", estimate, Estimate)
    named = tuple((name, _read_labels(values)) for name, values in read_pairs("labels", labels))
    return Answer(
        thing("query", query, Query), found.value, found.error, found.source, read_number("cost", cost), named,
        found.resolution, found.typical,
    )  # fmt: skip


def _read_labels(record: Json) -> tuple[Any, ...]:
    labels = read_value(record)
    if not isinstance(labels, tuple):
        refuse("labels", "a tuple for every name", labels)
    return labels


register("answer", Answer, _write_answer, _read_answer)


class Answered:
    """A question that was answered, bound to its universe, and what was said."""

    def __init__(self, question: Linear | Query, estimate: Estimate) -> None:
        self.question, self.estimate = question, estimate


register(
    "answered",
    Answered,
    lambda note: {"question": inner(note.question), "estimate": inner(note.estimate)},
    lambda question, estimate: Answered(
        thing("question", question, (Linear, Query)), thing("estimate", estimate, Estimate)
    ),
)


class Account:
    """What a ledger is opened with: its budget, and the δ set aside for events that have one of their own."""

    def __init__(self, budget: Budget, slack: float) -> None:
        self.budget, self.slack = budget, slack


register(
    "account",
    Account,
    lambda account: {"budget": inner(account.budget), "slack": write_number("slack", account.slack)},
    lambda budget, slack: Account(thing("budget", budget, Budget), read_number("slack", slack)),
)


def ledger_lines(ledger: Ledger) -> Iterator[str]:
    """A ledger as lines of JSON: its budget and slack, its entries, and the answers that were given.

    A question that has no form, one with functions of the user's own, is left out: it is answered anew.
    """
    yield dumps(Account(ledger.budget, ledger.set_aside))
    for entry in ledger.entries():
        yield dumps(entry)
    for bound, estimate in ledger.answers():
        question = _question(bound)
        if question is not None:
            yield dumps(Answered(question, estimate))


def ledger_from_lines(lines: Iterable[str], universe: Universe) -> Accountant:
    """The ledger that was written, to be taken up again: ``hr.open(…, ledger=ledger)``."""
    account: Account | None = None
    entries: list[Entry] = []
    answers: list[tuple[Bound[Any], Estimate]] = []
    for line in lines:
        found: object = loads(line)
        match found:
            case Account() if account is None:
                account = found
            case Budget() if account is None:  # as ledgers without a slack were written before
                account = Account(found, 0.0)
            case Entry() if account is not None:
                entries.append(found)
            case Answered() if account is not None:
                answers.append((_bound(found.question, universe), found.estimate))
            case _:
                raise InvalidInput(
                    f"A line of a ledger must be its account, the first, or an entry or an answer. Found {type(found).__name__}. "
                    "Read the lines as they were written."
                )
    if account is None:
        raise InvalidInput("A ledger must begin with its account. Found no line. Read the lines as they were written.")
    return Accountant(account.budget, account.slack, entries, answers)


def _question(bound: Bound[Any]) -> Linear | Query | None:
    """What has a form, and binds to the same question again."""
    match bound:
        case Linear():
            return bound
        case BoundMarginal():
            return make_marginal(*bound.attributes)
        case BoundMinimize(risk=risk, over=over) if risk.is_glm:
            return Minimize(risk.loss, over)  # type: ignore[attr-defined]
    return None


def _bound(question: Linear | Query, universe: Universe) -> Bound[Any]:
    if isinstance(question, Query):
        return bound_to(question, universe)
    if universe.sizes(question.attributes) != question.shape:
        raise InvalidInput("A linear query must be of the session's universe. Found another shape. Pass its universe.")
    return question
