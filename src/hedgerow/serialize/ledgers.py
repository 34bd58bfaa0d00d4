"""A ledger as lines of JSON: its account, its entries and the answers that were given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant, Entry, Ledger
from hedgerow.query.bound import Bound, Estimate
from hedgerow.serialize.answers import AnsweredQuestion
from hedgerow.serialize.bound_questions import bound_question, question_of
from hedgerow.serialize.records import dumps, loads
from hedgerow.serialize.registry import decode, encode, register
from hedgerow.serialize.values import read_number, write_number
from hedgerow.universe.universe import Universe


class LedgerTerms:
    """The terms a ledger is opened with: its budget, and the δ set aside for events that have a δ of their own.

    Parameters
    ----------
    budget : Budget
        The total of the ledger.
    slack : float
        The δ that is set aside.

    Example
    -------
    >>> hr.serialize.LedgerTerms(hr.Budget(1.0, 1e-6), slack=0.0).slack
    0.0
    """

    def __init__(self, budget: Budget, slack: float) -> None:
        self.budget, self.slack = budget, slack


register(
    "account",
    LedgerTerms,
    lambda account: {"budget": encode(account.budget), "slack": write_number("slack", account.slack)},
    lambda budget, slack: LedgerTerms(decode("budget", budget, Budget), read_number("slack", slack)),
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

    Example
    -------
    >>> lines = list(hr.serialize.ledger_lines(session.ledger))
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

    Example
    -------
    >>> lines = list(hr.serialize.ledger_lines(session.ledger))
    >>> ledger = hr.serialize.ledger_from_lines(lines, universe)
    >>> ledger.spent == session.ledger.spent
    True
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
