"""Bound questions as they are stored: the question that binds to the same meaning again, and its resolution."""

from __future__ import annotations

from typing import Any

from hedgerow.errors import InvalidInput
from hedgerow.query.bound import Bound
from hedgerow.query.counts import Query, Resolution
from hedgerow.query.counts import bound as bound_to
from hedgerow.query.linear import Linear
from hedgerow.universe.universe import Universe


def question_of(bound: Bound[Any]) -> tuple[Linear | Query, Resolution] | None:
    """Return a question with a JSON form that binds to ``bound`` again, and its resolution; None if there is none."""
    return bound.stored


def bound_question(question: Linear | Query, universe: Universe, resolution: Resolution) -> Bound[Any]:
    """Bind a stored question to the universe; refuse a linear query whose shape does not fit."""
    if isinstance(question, Query):
        return bound_to(question, universe, resolution)
    if universe.sizes(question.attributes) != question.shape:
        raise InvalidInput(
            "A linear query must be bound to the session's universe. Found another shape. Bind it to that universe."
        )
    return question
