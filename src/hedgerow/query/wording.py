"""Turn a bound question back into a readable one. A ledger keeps the cells of a count; people read names and values."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InvalidInput
from hedgerow.query.counts import Count, Query, WeightedQuery
from hedgerow.query.linear import Linear
from hedgerow.universe.attributes import Attribute, Integers, not_
from hedgerow.universe.dates import Dates
from hedgerow.universe.universe import Universe


def restate(query: Linear, universe: Universe) -> Query:
    """Return a question that binds to this bound query."""
    if not query.attributes and query.is_count:
        return Count(()) if query.table else ~Count(())
    if query.is_count and query.vectors is not None:
        masks = zip(query.attributes, query.vectors, strict=True)
        return Count(tuple((name, predicate_of(universe[name], np.asarray(mask, bool))) for name, mask in masks))
    if query.is_count:  # "or" of conditions on single columns is the negation of a product
        rest = ~np.asarray(query.table, bool)
        found = [np.asarray(rest.any(axis=tuple(k for k in range(rest.ndim) if k != i))) for i in range(rest.ndim)]
        if rest.any() and np.array_equal(reduce(np.logical_and.outer, found), rest):
            conditions = zip(query.attributes, found, strict=True)
            return reduce(or_, [Count(((name, predicate_of(universe[name], ~mask)),)) for name, mask in conditions])
    return WeightedQuery(query.attributes, np.asarray(query.table, float))


def predicate_of(attribute: Attribute, mask: NDArray[np.bool_]) -> Any:
    """Return the first predicate that covers exactly these cells, or the mask itself if there is none."""
    for said in _ways(attribute, mask):
        try:
            cover = attribute.cover(said)
        except (InvalidInput, TypeError):
            continue
        if np.array_equal(cover.inside, mask) and np.array_equal(cover.touched, mask):
            return said
    return mask


def _ways(attribute: Attribute, mask: NDArray[np.bool_]) -> Iterator[Any]:
    """Yield candidate predicates for a mask, the shortest first."""
    labels, places = attribute.labels, np.flatnonzero(mask)
    if places.size == 1:
        yield labels[places[0]]
    elif places.size and places[-1] - places[0] + 1 == places.size:
        if isinstance(attribute, Integers):
            yield labels[places[0]], labels[places[-1]]
        if isinstance(attribute, Dates) and places[-1] + 1 < len(attribute.edges):
            end = attribute.edges[places[-1] + 1]
            yield attribute.edges[places[0]], end - datetime.timedelta(days=1)
            yield attribute.edges[places[0]], end
    others = [label for label, is_in in zip(labels, mask, strict=True) if not is_in]
    if len(others) == 1:
        yield not_(others[0])
    yield {label for label, is_in in zip(labels, mask, strict=True) if is_in}
