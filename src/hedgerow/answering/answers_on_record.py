"""The answers on record in a ledger, or in a release file, whoever asked."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hedgerow.answer import Answer
from hedgerow.answering.scaling import scaled_answer
from hedgerow.engine.interface import Answers
from hedgerow.errors import HedgerowError
from hedgerow.privacy.ledger import Entry
from hedgerow.query.bound import Bound, Estimate
from hedgerow.query.composed import ComposedQuestion
from hedgerow.query.counts import BoundMarginal, Query
from hedgerow.query.counts import bound as bound_to
from hedgerow.query.linear import Linear
from hedgerow.query.wording import restate
from hedgerow.serialize import question_of
from hedgerow.universe.universe import Universe


@dataclass(frozen=True)
class RecordedAnswer:
    """An answer that was given: the bound question, its estimate, and what the question cost in all."""

    bound: Bound[Any]
    estimate: Estimate
    cost: float


def with_costs(
    recorded: Iterable[tuple[Bound[Any], Estimate]], log: Iterable[Entry], universe: Universe
) -> Iterator[RecordedAnswer]:
    """Iterate over recorded answers, each with what it cost."""
    costs = costs_of_questions(log, universe)
    for bound, estimate in recorded:
        yield RecordedAnswer(bound, estimate, costs.get(bound.key, 0.0))


def answers_on_record(recorded: Iterable[RecordedAnswer], universe: Universe, engine: Answers) -> Iterator[Answer]:
    """Iterate over recorded answers as fractions. A count is described by its cells."""
    for each in recorded:
        query = query_of(each.bound, universe)
        if query is not None:
            yield scaled_answer(query, each.bound, each.estimate, each.cost, "fraction", engine)


def split_parts(
    recorded: Sequence[RecordedAnswer], engine: Answers, most: int
) -> tuple[list[RecordedAnswer], list[RecordedAnswer]]:
    """Split recorded answers into the last ``most`` that people asked for, and the counts that these are composed of.

    A mean is composed of counts. They were recorded just before it, in the order in which they were asked. Answers
    to a question that was charged by itself are never taken for parts.
    """
    by_key = {each.bound.key: each.estimate for each in recorded}
    asked: list[RecordedAnswer] = []
    parts: list[RecordedAnswer] = []
    places: dict[Hashable, int] = {}
    last = 0
    for each in reversed(recorded):
        if isinstance(each.bound, ComposedQuestion):
            places = _lookups(each.bound, by_key, engine)
            last = len(places)
        elif places.get(each.bound.key, last) < last and not each.cost:
            parts.append(each)
            last = places[each.bound.key]
            continue
        else:
            places, last = {}, 0
        if len(asked) == most:
            break
        asked.append(each)
    return asked[::-1], parts[::-1]


def _lookups(bound: ComposedQuestion, by_key: dict[Hashable, Estimate], engine: Answers) -> dict[Hashable, int]:
    """Return the recorded answers that a composed question looks up, in order: answer it again from these alone."""
    respondent = RecordedRespondent(by_key, engine)
    with contextlib.suppress(HedgerowError, LookupError):  # paid for with other parts, which are not on record
        bound.ask(respondent, None)
    return respondent.places


class RecordedRespondent:
    """A respondent that looks answers up in a record, and notes which, in the order of their first use."""

    def __init__(self, by_key: dict[Hashable, Estimate], engine: Answers) -> None:
        self._by_key, self._engine = by_key, engine
        self.places: dict[Hashable, int] = {}

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Return the recorded answer to a linear query; raise LookupError if there is none."""
        return self._look_up(query.key)

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Return the recorded answer to a table; raise LookupError if there is none."""
        return self._look_up(table.key)

    def _look_up(self, key: Hashable) -> Estimate:
        self.places.setdefault(key, len(self.places))
        return self._by_key[key]

    def hypothesis_answer(self, query: Linear) -> float:
        """Return the hypothesis' answer, which is free and not on record."""
        return self._engine.hypothesis_answer(query)

    @property
    def least_rows(self) -> float:
        """Lower bound on the number of rows."""
        return self._engine.least_rows


def costs_of_questions(log: Iterable[Entry], universe: Universe) -> dict[Hashable, float]:
    """Return what each question cost in all, by the key of the bound question."""
    costs: dict[Hashable, float] = {}
    for entry in log:
        if isinstance(entry.asked, Query) and not entry.asked.is_asked_alone:
            key = bound_to(entry.asked, universe).key
            costs[key] = costs.get(key, 0.0) + entry.cost
    return costs


def query_of(bound: Bound[Any], universe: Universe) -> Query | None:
    """Return a question that binds to ``bound``; None if it has functions of the user."""
    found = question_of(bound)
    if found is None:
        return None
    return restate(found[0], universe) if isinstance(found[0], Linear) else found[0]
