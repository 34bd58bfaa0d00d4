"""JSON forms of everything that is stored or sent: questions, universes and workloads, each under its kind.

    >>> from hedgerow.query.counts import count
    >>> dumps(count(sex="F"))
    '{"kind":"count","predicates":[["sex",{"kind":"in","values":["F"]}]],"v":1}'
    >>> loads(dumps(count(sex="F")))
    count(sex='F')

The outermost record states its version ``v``; ``kind`` is the public name of the function or class that made the
object. Equal objects written with the same values have the same text, and reading gives back an equal object. Reading
makes objects of registered kinds only, through their constructors. It refuses everything else with InvalidInput:
another version, another kind, a missing or an additional field, a wrong type, and records that are nested too deep or
too large. docs/wire.md has the rules and an example of each form. ``wire_registry`` is the mechanism, ``wire_values``
has the forms of plain values; the rest is here.

Higher layers add their own kinds. ``encode`` returns the fields of an object. ``decode`` takes them by name and must
check every one of them. Objects within objects are written by ``inner`` and read by ``thing``:

    register(
        "answer", Answer,
        lambda a: {"query": inner(a.query), "value": write_value(a.value), "cost": write_number("cost", a.cost)},
        lambda query, value, cost: Answer(thing("query", query, Query), read_value(value), read_number("cost", cost)),
    )

A frozen dataclass whose fields are annotated with plain types and registered ones needs only
``register_dataclass(cls)``.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hedgerow.errors import InvalidInput
from hedgerow.query.counts import (
    CombinedQuery,
    Count,
    Marginal,
    Not,
    OverTime,
    Parity,
    Query,
    WeightedQuery,
    linear,
)
from hedgerow.query.counts import marginal as make_marginal
from hedgerow.query.counts import parity as make_parity
from hedgerow.query.linear import Linear, require_weights
from hedgerow.query.ratios import Mean, Ratio, Share, mean, ratio, share
from hedgerow.query.statistics import STATISTICS
from hedgerow.query.wire_registry import (
    VERSION,
    dumps,
    from_json,
    inner,
    loads,
    register,
    register_dataclass,
    register_refusal,
    registered,
    text_of,
    thing,
    to_json,
)
from hedgerow.query.wire_values import (
    Json,
    fields,
    kind_of,
    read_array,
    read_flag,
    read_label,
    read_list,
    read_names,
    read_number,
    read_text,
    read_whole,
    refuse,
    write_array,
    write_flag,
    write_label,
    write_names,
    write_number,
    write_text,
    write_whole,
)
from hedgerow.query.workloads import WORKLOADS
from hedgerow.universe.attributes import Attribute, Categories, Flag, Integers, Range, not_
from hedgerow.universe.dates import Dates
from hedgerow.universe.universe import Universe

__all__ = [
    "MOST_CELLS",
    "VERSION",
    "dumps",
    "from_json",
    "inner",
    "loads",
    "register",
    "register_dataclass",
    "register_refusal",
    "registered",
    "thing",
    "to_json",
]

# the attributes of a universe that is read have at most this many cells in total, because a short record, such as two
# ends of Integers, can declare any number of them
MOST_CELLS = 2**21


# Universes


# Optional properties of an attribute are written only if they are set, so that older texts stay valid and unchanged.


def _extras(attribute: Attribute) -> dict[str, Json]:
    """Return the optional fields of an attribute."""
    return {"missing": True} if attribute.missing else {}


def _write_categories(attribute: Categories) -> dict[str, Json]:
    listed, case = attribute.listed, attribute.case
    record: dict[str, Json] = {"values": [write_label(label) for label in listed]}
    if attribute.spaces != Categories(listed, case="ignore" if case == "ignore" else "exact").spaces:
        record["spaces"] = attribute.spaces
    if case != "exact":
        record["case"] = case
    return record | {"other": write_flag("other", attribute.other)} | _extras(attribute)


def _read_categories(
    values: Json, other: Json, spaces: Json = None, case: Json = "exact", missing: Json = False
) -> Categories:
    labels = [read_label(label) for label in read_list("The values of categories", values)]
    return Categories(
        labels, other=read_flag("other", other), spaces=spaces, case=case, missing=read_flag("missing", missing)
    )


def _write_flag(attribute: Flag) -> dict[str, Json]:
    words = {"true": attribute.true, "false": attribute.false}
    usual = {"true": Flag.true, "false": Flag.false}
    record: dict[str, Json] = {
        name: [write_label(word) for word in given] for name, given in words.items() if given != usual[name]
    }
    return record | ({"other": True} if attribute.other else {}) | _extras(attribute)


def _read_flag(true: Json = None, false: Json = None, other: Json = False, missing: Json = False) -> Flag:
    words = [
        None if given is None else [read_label(word) for word in read_list("The words of a flag", given)]
        for given in (true, false)
    ]
    return Flag(*words, other=read_flag("other", other), missing=read_flag("missing", missing))


def _write_integers(attribute: Integers) -> dict[str, Json]:
    _require_cells(attribute.size)
    ends = {"low": write_whole("low", attribute.low), "high": write_whole("high", attribute.high)}
    return {**ends, "other": write_flag("other", attribute.other), **_extras(attribute)}


def _read_integers(low: Json, high: Json, other: Json, missing: Json = False) -> Integers:
    ends = read_whole("low", low), read_whole("high", high)
    _require_cells(ends[1] - ends[0] + 1)
    return Integers(*ends, other=read_flag("other", other), missing=read_flag("missing", missing))


def _write_range(attribute: Range) -> dict[str, Json]:
    assert attribute.values is not None
    values = attribute.values[: len(attribute.edges) - 1]
    return {
        "edges": [write_number("An edge", edge) for edge in attribute.edges],
        "values": [write_number("A value", value) for value in values],
        "other": write_flag("other", attribute.other),
        **({"whole": True} if attribute.whole else {}),
        **_extras(attribute),
    }


def _read_range(edges: Json, values: Json, other: Json, whole: Json = False, missing: Json = False) -> Range:
    return Range(
        edges=[read_number("An edge", edge) for edge in read_list("edges", edges)],
        values=[read_number("A value", value) for value in read_list("values", values)],
        other=read_flag("other", other),
        whole=read_flag("whole", whole),
        missing=read_flag("missing", missing),
    )


def _write_dates(attribute: Dates) -> dict[str, Json]:
    kept = attribute.edges if attribute.by is None else (attribute.edges[0], attribute.edges[-1])
    record = {"edges": [write_label(edge) for edge in kept], "by": attribute.by}
    return {**record, "other": write_flag("other", attribute.other), **_extras(attribute)}


def _read_dates(edges: Json, by: Json, other: Json, missing: Json = False) -> Dates:
    days = [read_label(edge) for edge in read_list("edges", edges)]
    extras: dict[str, Any] = {"other": read_flag("other", other), "missing": read_flag("missing", missing)}
    if by is None:
        return Dates(edges=days, **extras)
    if len(days) != 2 or type(by) is not str:
        refuse("The edges of dates by a period", "two", len(days))
    return Dates(days[0], days[1], by, **extras)  # type: ignore[arg-type]


def _write_universe(universe: Universe) -> dict[str, Json]:
    _require_cells(sum(universe.shape))
    return {"attributes": [[write_text("A name", name), inner(universe[name])] for name in universe.names]}


def _read_universe(attributes: Json) -> Universe:
    declared: dict[str, Attribute] = {}
    cells = 0
    for pair in read_list("attributes", attributes):
        name, attribute = _pair("An attribute", pair)
        if read_text("A name", name) in declared:
            refuse("The names of attributes", "distinct", name)
        declared[name] = thing("an attribute", attribute, Attribute)
        cells += declared[name].size
        _require_cells(cells)
    return Universe(declared)


def _require_cells(cells: int) -> None:
    """Refuse a universe with too many cells."""
    if cells > MOST_CELLS:
        refuse("The cells of all attributes together", f"at most {MOST_CELLS}", cells, "Declare coarser bins.")


def _pair(role: str, record: Json) -> tuple[Json, Json]:
    """Return the two items of a pair; refuse anything else."""
    if type(record) is not list or len(record) != 2:
        refuse(role, "a pair of a name and a value", record)
    return record[0], record[1]


register("Categories", Categories, _write_categories, _read_categories)
register("Dates", Dates, _write_dates, _read_dates)
register("Flag", Flag, _write_flag, _read_flag)
register("Integers", Integers, _write_integers, _read_integers)
register("Range", Range, _write_range, _read_range)
register("Universe", Universe, _write_universe, _read_universe)


# Questions. Differences that do not change a question (order, repeats) do not change its text.


def _sort_records(records: Iterable[Json]) -> list[Json]:
    """Return distinct records, sorted by their text."""
    return [record for _, record in sorted({text_of(record): record for record in records}.items())]


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
    written = sorted(((write_label(label), label) for label in wanted), key=lambda pair: text_of(pair[0]))
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
    """Check an end of a range and return it."""
    if end is not None and not isinstance(end, bool | int | float | np.number | datetime.date):
        refuse("An end of a range", "a number, a date or None", end, "Use a set for a list of values.")
    return end


def _write_count(query: Count) -> dict[str, Json]:
    return {
        "predicates": _sort_records([write_text("A name", name), _write_predicate(p)] for name, p in query.predicates)
    }


def _read_count(predicates: Json) -> Count:
    pairs = [_pair("A predicate", pair) for pair in read_list("predicates", predicates)]
    return Count(tuple((read_text("A name", name), _read_predicate(predicate)) for name, predicate in pairs))


def _read_combined(operation: Json, parts: Json) -> CombinedQuery:
    if operation not in ("and", "or"):
        refuse("operation", "'and' or 'or'", operation)
    if not read_list("parts", parts):
        refuse("parts", "at least one question", parts)
    return CombinedQuery(operation, tuple(thing("a part", part, Query) for part in parts))


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
    return mean(read_text("attribute", attribute), None if where is None else thing("where", where, Query))


def _write_combined(query: CombinedQuery) -> dict[str, Json]:
    return {"operation": query.operation, "parts": _sort_records(inner(part) for part in query.parts)}


def _read_not(part: Json) -> Any:
    return ~thing("a part", part, Query)


def _write_linear(query: WeightedQuery) -> dict[str, Json]:
    return {"attributes": write_names("A name", query.attributes), "weights": write_array(query.weights)}


def _write_mean(query: Mean) -> dict[str, Json]:
    where = None if query.where is None else inner(query.where)
    return {"attribute": write_text("A name", query.attribute), "where": where}


register("count", Count, _write_count, _read_count)
register("combined", CombinedQuery, _write_combined, _read_combined)
register("not", Not, lambda query: {"part": inner(query.part)}, _read_not)
register("parity", Parity, _write_set, functools.partial(_read_set, make_parity))
register("marginal", Marginal, _write_axes, functools.partial(_read_set, make_marginal))
register("linear", WeightedQuery, _write_linear, _read_linear)
register("mean", Mean, _write_mean, _read_mean)
register(
    "share",
    Share,
    lambda query: {"part": inner(query.part), "where": inner(query.where)},
    lambda part, where: share(thing("a part", part, Query), thing("where", where, Query)),  # type: ignore[arg-type, return-value]
)
register(
    "ratio",
    Ratio,
    lambda query: {"above": inner(query.above), "below": inner(query.below)},
    lambda above, below: ratio(thing("above", above, Query), thing("below", below, Query)),  # type: ignore[arg-type, return-value]
)
register(
    "over_time",
    OverTime,
    lambda query: {
        "counted": inner(query.counted),
        "span": write_whole("span", query.span),
        "share": write_number("share", query.share),
    },
    lambda counted, span, share: OverTime(
        thing("counted", counted, Query), read_whole("span", span), read_number("share", share)
    ),
)
for name, statistic in STATISTICS.items():
    register_dataclass(statistic, name)  # its kind is the name of the function that makes it


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
