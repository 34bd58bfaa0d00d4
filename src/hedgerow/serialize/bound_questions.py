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
    """Return a question that has a JSON form and binds to the same meaning again, with its resolution.

    Parameters
    ----------
    bound : Bound
        The bound question.

    Returns
    -------
    tuple of a question and a resolution, or None
        None if there is no such question, because it contains functions of the user.

    Example
    -------
    >>> hr.serialize.question_of(hr.count(sex="F").on(universe))[1]
    'values'
    """
    return bound.stored


def bound_question(question: Linear | Query, universe: Universe, resolution: Resolution) -> Bound[Any]:
    """Bind a stored question to the universe.

    Parameters
    ----------
    question : Linear or Query
        The question, as ``question_of`` returned it.
    universe : Universe
        The declared columns.
    resolution : str
        "values" or "bins".

    Returns
    -------
    Bound

    Raises
    ------
    InvalidInput
        If the question does not fit the universe.

    Example
    -------
    >>> question, resolution = hr.serialize.question_of(hr.count(sex="F").on(universe))
    >>> bound = hr.serialize.bound_question(question, universe, resolution)
    """
    if isinstance(question, Query):
        return bound_to(question, universe, resolution)
    if universe.sizes(question.attributes) != question.shape:
        raise InvalidInput(
            "A linear query must be bound to the session's universe. Found another shape. Bind it to that universe."
        )
    return question
