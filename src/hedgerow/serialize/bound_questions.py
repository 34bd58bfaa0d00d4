"""Bound questions as they are stored: the question that binds to the same meaning again, and its resolution."""

from __future__ import annotations

from typing import Any

from hedgerow.convex.minimize import BoundMinimize, Minimize
from hedgerow.errors import InvalidInput
from hedgerow.query.bound import Bound
from hedgerow.query.composed import ComposedQuestion
from hedgerow.query.counts import BoundMarginal, Query, Resolution
from hedgerow.query.counts import bound as bound_to
from hedgerow.query.counts import marginal as make_marginal
from hedgerow.query.linear import Linear
from hedgerow.query.statistics import BoundTop
from hedgerow.universe.universe import Universe


def question_of(bound: Bound[Any]) -> tuple[Linear | Query, Resolution] | None:
    """Return a question with a JSON form that binds to ``bound`` again, and its resolution; None if there is none."""
    match bound:
        case Linear():
            return bound, "values"
        case BoundMarginal():
            return make_marginal(*bound.attributes), "values"
        case BoundMinimize(risk=risk, over=over) if risk.is_glm:
            return Minimize(risk.loss, over), "values"  # type: ignore[attr-defined]
        case BoundTop():  # its labels are part of the answer; it follows from its table, which is stored
            return None
        case ComposedQuestion(asked_as=asked) if asked is not None:
            return asked
    return None


def bound_question(question: Linear | Query, universe: Universe, resolution: Resolution) -> Bound[Any]:
    """Bind a stored question to the universe; refuse a linear query whose shape does not fit."""
    if isinstance(question, Query):
        return bound_to(question, universe, resolution)
    if universe.sizes(question.attributes) != question.shape:
        raise InvalidInput(
            "A linear query must be bound to the session's universe. Found another shape. Bind it to that universe."
        )
    return question
