"""Explain an answer in sentences: what its bar means, what it rests on, and what would make the bar narrower."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from hedgerow.display.titles import UNINFORMATIVE
from hedgerow.errors import HedgerowError

HALF = 0.5  # the part of the present bar whose price is stated
LISTED = 3  # an explanation names at most this many tables


def explain(answer: Any, session: Any = None) -> str:
    """Return the explanation of an answer, a sentence on each line.

    Parameters
    ----------
    answer : Answer
        The answer.
    session : Session, optional
        A session or service that states the price of a narrower bar, for free.
    """
    return "\n".join([_meaning(answer), *_basis(answer), *_bins(answer), *_workload(answer), *_price(answer, session)])


def _meaning(answer: Any) -> str:
    """Say what the bar of an answer promises."""
    if answer.error is None:
        return "Nothing that was released bounds the error of this answer: read the value as a hint."
    if answer.query.is_convex:
        return (
            f"The average loss of these parameters on the table exceeds the least possible by at most "
            f"{float(np.max(answer.error)):.3g}. This holds together with all other bars."
        )
    error = np.asarray(answer.error, float)
    bounded = error[np.isfinite(error)]
    if not bounded.size:
        return f"{UNINFORMATIVE.capitalize()}: the interval of each cell covers the whole range."
    of_rest = (
        "" if bounded.size == error.size else f" {error.size - bounded.size} of {error.size} cells are {UNINFORMATIVE}."
    )
    typical = answer.typical
    typical_error = (
        "" if typical is None else f" Typically the error is about {float(np.max(typical)):.2g}; that is no bound."
    )
    return (
        f"The truth is within {float(bounded.max()):.3g} of the value, together with all other bars, with the "
        f"probability that the session states, however the questions were chosen.{of_rest}{typical_error}"
    )


def _basis(answer: Any) -> Iterator[str]:
    """Say what the answer rests on."""
    if answer.source == "measured":
        yield "The question was measured itself."
    elif answer.support is not None:
        yield f"{'' if answer.support.kind == 'assumed' else 'The value was '}{answer.support}."


def _bins(answer: Any) -> Iterator[str]:
    """Say which part of the bar comes from bins, and how to remove it."""
    coarse = float(np.max(answer.resolution))
    if coarse > 0:
        yield (
            f"{coarse:.3g} of the bar comes from bins that the question cuts: no budget removes it. Ask about whole "
            'bins, or with resolution="bins".'
        )


def _workload(answer: Any) -> Iterator[str]:
    """Say which workload at the opening would have measured the question."""
    if answer.support is not None and answer.support.missing and answer.source != "measured":
        tables = [f"hr.marginal({', '.join(map(repr, names))})" for names in answer.support.missing[:LISTED]]
        yield f"A session that is opened with workload=[{', '.join(tables)}] measures it directly, if the tables are small."


def _price(answer: Any, session: Any) -> Iterator[str]:
    """Say what a narrower bar costs."""
    if session is None or answer.query.is_convex or answer.error is None or np.ndim(answer.value):
        return
    wanted = float(answer.resolution) + HALF * (float(answer.error) - float(answer.resolution))
    if not (math.isfinite(wanted) and wanted > 0):
        return
    try:
        cost = session.price(answer.query, within=wanted)
    except HedgerowError as refused:
        yield f"A bar of {wanted:.3g} is not for sale: {refused}"
        return
    price = f"costs {cost / session.budget.total:.2%} of the budget" if cost else "is free"
    yield f"A bar of {wanted:.3g} {price}: ask with within={wanted:.3g}."
