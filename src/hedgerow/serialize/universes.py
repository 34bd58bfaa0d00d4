"""JSON forms of attributes and universes."""

from __future__ import annotations

from typing import Any

from hedgerow._json import Json, read_list, read_text, refuse
from hedgerow.serialize.registry import decode, encode, register
from hedgerow.serialize.values import (
    read_flag,
    read_number,
    read_pair,
    read_whole,
    write_flag,
    write_number,
    write_text,
    write_whole,
)
from hedgerow.universe.attributes import MOST_CELLS, Attribute, Categories, Flag, Integers, Range
from hedgerow.universe.dates import Dates
from hedgerow.universe.labels import read_label, write_label
from hedgerow.universe.universe import Universe

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
    """Return the JSON fields of a Range: its edges and the values that represent its bins."""
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
    return {"attributes": [[write_text("A name", name), encode(universe[name])] for name in universe.names]}


def _read_universe(attributes: Json) -> Universe:
    """Read a universe, and refuse repeated names and too many cells."""
    declared: dict[str, Attribute] = {}
    cells = 0
    for pair in read_list("attributes", attributes):
        name, attribute = read_pair("An attribute", pair)
        if read_text("A name", name) in declared:
            refuse("The names of attributes", "distinct", name)
        declared[name] = decode("an attribute", attribute, Attribute)
        cells += declared[name].size
        _require_cells(cells)
    return Universe(declared)


def _require_cells(cells: int) -> None:
    """Refuse a universe with too many cells."""
    if cells > MOST_CELLS:
        refuse("The cells of all attributes together", f"at most {MOST_CELLS}", cells, "Declare coarser bins.")


register("Categories", Categories, _write_categories, _read_categories)
register("Dates", Dates, _write_dates, _read_dates)
register("Flag", Flag, _write_flag, _read_flag)
register("Integers", Integers, _write_integers, _read_integers)
register("Range", Range, _write_range, _read_range)
register("Universe", Universe, _write_universe, _read_universe)
