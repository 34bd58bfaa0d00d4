"""JSON forms of questions, bound linear queries and workloads.

Differences that do not change a question (order, repeats) do not change its text.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hedgerow._json import Json, canonical, fields, kind_of, read_list, read_text, refuse
from hedgerow.errors import InvalidInput
from hedgerow.query.counts import CombinedQuery, Count, Marginal, Not, OverTime, Parity, Query, WeightedQuery, linear
from hedgerow.query.counts import marginal as make_marginal
from hedgerow.query.counts import parity as make_parity
from hedgerow.query.linear import Linear, require_weights
from hedgerow.query.ratios import Mean, Ratio, Share, mean, ratio, share
from hedgerow.query.statistics import STATISTICS
from hedgerow.query.workloads import WORKLOADS
from hedgerow.serialize.registry import decode, encode, register, register_dataclass
from hedgerow.serialize.values import (
    read_array,
    read_names,
    read_number,
    read_pair,
    read_whole,
    write_array,
    write_names,
    write_number,
    write_text,
    write_whole,
)
from hedgerow.universe.attributes import not_
from hedgerow.universe.labels import read_label, write_label

PERIOD = re.compile(r"\d{4}(-[-QW0-9]{1,9})?")  # a date or the label of a period: "2020-01-31", "2020-Q1", "2020"


def _sort_records(records: Iterable[Json]) -> list[Json]:
    """Return distinct records, sorted by their text."""
    return [record for _, record in sorted({canonical(record): record for record in records}.items())]


def _write_predicate(predicate: Any) -> Json:
    """Return a predicate as a record."""
    if isinstance(predicate, not_):
        return {"kind": "isnt", "predicate": _write_predicate(predicate.predicate)}
    if isinstance(predicate, np.ndarray) and predicate.ndim == 1 and predicate.dtype == bool:
        return {"kind": "mask", "cells": write_array(predicate)}
    if type(predicate) is tuple:
        if len(predicate) != 2:
            raise InvalidInput(
                f"A range must be (low, high). Found {len(predicate)} ends. Use a set for a list of values."
            )
        low, high = (write_label(_end(end)) for end in predicate)
        return {"kind": "between", "low": low, "high": high}
    if isinstance(predicate, np.ndarray):
        predicate = predicate.tolist() if predicate.ndim == 1 else predicate
    wanted = predicate if isinstance(predicate, set | frozenset | list) else [predicate]
    written = sorted(((write_label(label), label) for label in wanted), key=lambda pair: canonical(pair[0]))
    distinct: dict[Any, Json] = {}
    for record, label in written:
        distinct.setdefault(label, record)
    return {"kind": "in", "values": list(distinct.values())}


def _read_predicate(record: Json) -> Any:
    """Rebuild a predicate from its record."""
    kind = kind_of(record)
    if kind == "isnt":
        return not_(_read_predicate(*fields(record, "predicate")))
    if kind == "mask":
        mask = read_array(fields(record, "cells")[0], "bool")
        return mask if mask.ndim == 1 else refuse("A mask", "of one axis", mask.ndim)
    if kind == "between":
        return tuple(_end(read_label(end)) for end in fields(record, "low", "high"))
    if kind == "in":
        labels = [read_label(label) for label in read_list("The values of a predicate", fields(record, "values")[0])]
        return labels[0] if len(labels) == 1 and not isinstance(labels[0], tuple) else frozenset(labels)
    return refuse("The kind of a predicate", "in, between, mask or isnt", kind)


def _end(end: Any) -> Any:
    """Check an end of a range and return it.

    A text must look like a date or a period; the attribute judges the rest.
    """
    if isinstance(end, str) and PERIOD.fullmatch(end):
        return end
    if end is not None and not isinstance(end, bool | int | float | np.number | datetime.date):
        refuse("An end of a range", "a number, a date or None", end, "Use a set for a list of values.")
    return end


def _write_count(query: Count) -> dict[str, Json]:
    return {
        "predicates": _sort_records([write_text("A name", name), _write_predicate(p)] for name, p in query.predicates)
    }


def _read_count(predicates: Json) -> Count:
    pairs = [read_pair("A predicate", pair) for pair in read_list("predicates", predicates)]
    return Count(tuple((read_text("A name", name), _read_predicate(predicate)) for name, predicate in pairs))


def _read_combined(operation: Json, parts: Json) -> CombinedQuery:
    if operation not in ("and", "or"):
        refuse("operation", "'and' or 'or'", operation)
    if not read_list("parts", parts):
        refuse("parts", "at least one question", parts)
    return CombinedQuery(operation, tuple(decode("a part", part, Query) for part in parts))


def _write_set(query: Parity) -> dict[str, Json]:
    """Return attributes whose order does not matter."""
    return {"attributes": sorted(set(write_names("A name", query.attributes)))}


def _write_axes(query: Marginal) -> dict[str, Json]:
    """Return attributes whose order matters, each once."""
    return {"attributes": list(dict.fromkeys(write_names("A name", query.attributes)))}


def _read_set(make: Callable[..., Query], attributes: Json) -> Any:
    """Make a question from a list of attributes."""
    return make(*read_names("attributes", attributes))


def _read_linear(attributes: Json, weights: Json) -> Any:
    return linear(read_names("attributes", attributes), read_array(weights, "float64"))


def _read_mean(attribute: Json, where: Json) -> Any:
    return mean(read_text("attribute", attribute), None if where is None else decode("where", where, Query))


def _write_combined(query: CombinedQuery) -> dict[str, Json]:
    return {"operation": query.operation, "parts": _sort_records(encode(part) for part in query.parts)}


def _read_not(part: Json) -> Any:
    return ~decode("a part", part, Query)


def _write_linear(query: WeightedQuery) -> dict[str, Json]:
    return {"attributes": write_names("A name", query.attributes), "weights": write_array(query.weights)}


def _write_mean(query: Mean) -> dict[str, Json]:
    where = None if query.where is None else encode(query.where)
    return {"attribute": write_text("A name", query.attribute), "where": where}


register("count", Count, _write_count, _read_count)
register("combined", CombinedQuery, _write_combined, _read_combined)
register("not", Not, lambda query: {"part": encode(query.part)}, _read_not)
register("parity", Parity, _write_set, functools.partial(_read_set, make_parity))
register("marginal", Marginal, _write_axes, functools.partial(_read_set, make_marginal))
register("linear", WeightedQuery, _write_linear, _read_linear)
register("mean", Mean, _write_mean, _read_mean)
register(
    "share",
    Share,
    lambda query: {"part": encode(query.part), "where": encode(query.where)},
    lambda part, where: share(decode("a part", part, Query), decode("where", where, Query)),  # type: ignore[arg-type, return-value]
)
register(
    "ratio",
    Ratio,
    lambda query: {"above": encode(query.above), "below": encode(query.below)},
    lambda above, below: ratio(decode("above", above, Query), decode("below", below, Query)),  # type: ignore[arg-type, return-value]
)
register(
    "over_time",
    OverTime,
    lambda query: {
        "counted": encode(query.counted),
        "span": write_whole("span", query.span),
        "share": write_number("share", query.share),
    },
    lambda counted, span, share: OverTime(
        decode("counted", counted, Query), read_whole("span", span), read_number("share", share)
    ),
)
STATISTICS.each(lambda name, statistic: register_dataclass(statistic, name))


# A bound linear query. Its reader knows the universe, and must check the attributes and the shape against it.


def _write_bound(query: Linear) -> dict[str, Json]:
    """Return the fields of a bound linear query."""
    vectors = [write_array(vector) for vector in query.vectors] if query.vectors else None
    table = write_array(query.table) if vectors is None else None
    return {"attributes": write_names("A name", query.attributes), "vectors": vectors, "table": table}


def _read_bound(attributes: Json, vectors: Json, table: Json) -> Linear:
    """Rebuild a bound linear query, in canonical form."""
    names = read_names("attributes", attributes)
    if len(set(names)) != len(names):
        refuse("The attributes of a query", "distinct", names)
    if (vectors is None) == (table is None):
        refuse("A bound question", "given by vectors or by a table", "both" if table is not None else "neither")
    if vectors is not None:
        return Linear.of_vectors(names, [read_array(v, "bool", "float64") for v in read_list("vectors", vectors)])
    weights = read_array(table, "float64") + 0.0
    if weights.ndim != len(names) or 0 in weights.shape:
        refuse("The table of a question", f"over {len(names)} attributes with a cell each", weights.shape)
    require_weights(weights)
    return Linear.canonical(names, weights)


register("bound", Linear, _write_bound, _read_bound)


for workload in WORKLOADS:
    register_dataclass(workload, workload.__name__.lower())  # its kind is the name of the function that makes it
