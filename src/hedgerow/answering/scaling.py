"""Turn estimates into answers, as fractions or in rows, and check the scale and the bar that an analyst asks for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from hedgerow._checks import number
from hedgerow.answer import Answer
from hedgerow.engine.interface import Answers
from hedgerow.errors import InvalidInput
from hedgerow.query.bound import Bound, Estimate
from hedgerow.query.composed import ComposedQuestion
from hedgerow.query.counts import Query
from hedgerow.query.linear import Linear
from hedgerow.query.support import MEASURED

Scale = Literal["fraction", "rows"]


def scaled_answer(
    query: Query, bound: Bound[Any], estimate: Estimate, cost: float, scale: Scale, engine: Answers
) -> Answer:
    """Turn an estimate into an answer, in fractions or in rows. ``engine`` knows the number of rows."""
    value, error, coarse, typical_error = estimate.value, estimate.error, estimate.resolution, estimate.typical
    in_rows = not isinstance(bound, Linear) and isinstance(bound, ComposedQuestion) and bound.in_rows
    if in_rows or (scale == "rows" and bound.is_fraction):
        n = engine.rows
        bar_in_rows = engine.total_error_in_rows if in_rows else engine.error_in_rows
        error = None if error is None else bar_in_rows(np.abs(value), error)
        if typical_error is not None:  # ñv − nt = ñ(v − t) + (ñ − n)t: the error of ñ counts too if n is private
            typical_error = np.hypot(typical_error * n, np.abs(value) * engine.typical_of_rows)
            typical_error = typical_error if np.ndim(typical_error) else float(typical_error)
        value, coarse = value * n, coarse * n
        estimate = replace(estimate, lower=None, upper=None)
    labels = bound.labels if estimate.labels is None else estimate.labels
    return Answer(
        query, value, error, estimate.source, cost, labels, coarse, typical_error, estimate.coefficients, estimate.lower,
        estimate.upper, estimate.basis, estimate.simulation,
        MEASURED if estimate.source == "measured" else engine.support(bound.tables),
    )  # fmt: skip


def require_scale(scale: str) -> None:
    """Refuse an unknown scale."""
    if scale not in ("fraction", "rows"):
        raise InvalidInput(f"scale must be 'fraction' or 'rows'. Found {scale!r}. Choose one.")


def bar_of_answer(within: Any, bound: Bound[Any]) -> float:
    """Check a requested error bar and return it: a fraction of the rows, or a number in the units of the answer."""
    if not isinstance(bound, ComposedQuestion) or bound.is_fraction:
        return bar_of_fraction(within)
    if bound.in_rows:
        raise InvalidInput(f"within must be left out of a total. Found {within!r}. Buy the mean instead.")
    wanted = number(within)
    if not 0 < wanted < np.inf:
        raise InvalidInput(f"within must be above 0. Found {within!r}. Give it in the units of the answer.")
    return wanted


def bar_of_fraction(within: Any) -> float:
    """Check that a requested error bar is a fraction above 0 and at most 1, and return it."""
    wanted = number(within)
    if not 0 < wanted <= 1:
        raise InvalidInput(f"within must be above 0 and at most 1. Found {within!r}. Give a fraction, such as 0.01.")
    return wanted
