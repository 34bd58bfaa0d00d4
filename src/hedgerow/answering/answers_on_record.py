"""The answers on record in a ledger, or in a release file, whoever asked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from hedgerow.answer import Answer
from hedgerow.answering.scaling import scaled_answer
from hedgerow.engine.interface import Answers
from hedgerow.privacy.ledger import Entry
from hedgerow.query.bound import Bound, Estimate
from hedgerow.query.counts import OverTime, Query
from hedgerow.query.counts import bound as bound_to
from hedgerow.query.linear import Linear
from hedgerow.query.row_statistic import RowStatistic
from hedgerow.query.wording import asked_again
from hedgerow.serialize import question_of
from hedgerow.universe.universe import Universe


def answers_on_record(
    recorded: Iterable[tuple[Bound[Any], Estimate]], log: Iterable[Entry], universe: Universe, engine: Answers
) -> Iterator[Answer]:
    """Iterate over recorded answers as fractions, each with what it cost. A count is described by its cells."""
    costs = costs_of_questions(log, universe)
    for bound, estimate in recorded:
        query = query_of(bound, universe)
        if query is not None:
            yield scaled_answer(query, bound, estimate, costs.get(bound.key, 0.0), "fraction", engine)


def costs_of_questions(log: Iterable[Entry], universe: Universe) -> dict[Hashable, float]:
    """Return what each question cost in all, by the key of the bound question."""
    costs: dict[Hashable, float] = {}
    for entry in log:
        if isinstance(entry.asked, Query) and not isinstance(entry.asked, OverTime | RowStatistic):
            key = bound_to(entry.asked, universe).key
            costs[key] = costs.get(key, 0.0) + entry.cost
    return costs


def query_of(bound: Bound[Any], universe: Universe) -> Query | None:
    """Return a question that binds to ``bound``; None if it has functions of the user."""
    found = question_of(bound)
    if found is None:
        return None
    return asked_again(found[0], universe) if isinstance(found[0], Linear) else found[0]
