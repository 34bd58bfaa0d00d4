"""A bound question said again: what a ledger keeps of a count is its cells, and people read names and values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.questions.attributes import Attribute, Integers, isnt
from hedgerow.questions.counts import Count, Query, Weighted
from hedgerow.questions.linear import Linear
from hedgerow.questions.universe import Universe


def asked_again(query: Linear, universe: Universe) -> Query:
    """A question that binds to this one."""
    if query.is_count and query.vectors is not None:
        masks = zip(query.attributes, query.vectors, strict=True)
        return Count(tuple((name, _predicate(universe[name], np.asarray(mask, bool))) for name, mask in masks))
    if query.is_count and not query.attributes and query.table:
        return Count(())
    return Weighted(query.attributes, np.asarray(query.table, float))


def _predicate(attribute: Attribute, mask: NDArray[np.bool_]) -> Any:
    """The shortest that has these cells."""
    chosen = [label for label, is_in in zip(attribute.labels, mask, strict=True) if is_in]
    if len(chosen) == 1:
        return chosen[0]
    places = np.flatnonzero(mask)
    if isinstance(attribute, Integers) and places.size and places[-1] - places[0] + 1 == places.size:
        ends = (attribute.labels[places[0]], attribute.labels[places[-1]])
        if all(isinstance(end, int) for end in ends):
            return ends
    others = [label for label, is_in in zip(attribute.labels, mask, strict=True) if not is_in]
    return isnt(others[0]) if len(others) == 1 else set(chosen)
