"""Events, budgets, estimates, released measurements and the entries of a ledger, to and from JSON: see ``questions/wire``.

With this module everything below it has its form too.
"""

from __future__ import annotations

import numpy as np

import hedgerow.convex.wire  # noqa: F401  # registers its kinds
from hedgerow._types import Array
from hedgerow.engines.practical.measurement import Measurement
from hedgerow.errors import InvalidInput
from hedgerow.privacy import events
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Event, Gaussian, Laplace
from hedgerow.privacy.ledger import Entry
from hedgerow.questions.bound import Estimate
from hedgerow.questions.counts import Query
from hedgerow.questions.linear import Linear
from hedgerow.questions.wire import inner, register, register_dataclass, thing
from hedgerow.questions.wire_values import (
    Json,
    kind_of,
    read_array,
    read_flag,
    read_list,
    read_names,
    read_number,
    read_pairs,
    read_text,
    read_value,
    read_whole,
    refuse,
    write_array,
    write_flag,
    write_names,
    write_number,
    write_text,
    write_value,
    write_whole,
)

EVENTS = (Laplace, Gaussian)
DTYPES = ("float64", "int64")


for event in events.KINDS.values():
    register_dataclass(event)


def _write_measurement(measurement: Measurement) -> dict[str, Json]:
    measurement = _checked(measurement)
    return {
        "attributes": write_names("A name", measurement.attributes),
        "values": write_array(measurement.values),
        "event": inner(measurement.event),
        "query": None if measurement.query is None else inner(measurement.query),
        "residual": write_flag("residual", measurement.residual),
        "rounding": write_number("rounding", measurement.rounding),
    }


def _read_measurement(
    attributes: Json, values: Json, event: Json, query: Json, residual: Json, rounding: Json
) -> Measurement:
    return _checked(
        Measurement(
            read_names("attributes", attributes),
            read_array(values, *DTYPES),
            thing("event", event, EVENTS),
            None if query is None else thing("query", query, Linear),
            read_flag("residual", residual),
            read_number("rounding", rounding),
        )
    )


def _checked(measurement: Measurement) -> Measurement:
    """What can be seen without the universe, against which a reader must hold the attributes and the shape."""
    names, values = measurement.attributes, measurement.values
    axes = len(names) if measurement.query is None else 0
    if len(set(names)) != len(names) or values.ndim != axes or 0 in values.shape or str(values.dtype) not in DTYPES:
        found = f"{values.dtype} on {values.ndim} axes"
        refuse("The values of a measurement", f"numbers on {axes} axes, one per attribute", found)
    if type(measurement.event) not in EVENTS:
        refuse("The event of a measurement", "Laplace or Gaussian", type(measurement.event).__name__)
    if not 0 <= measurement.rounding < 1:
        refuse("rounding", "at least 0 and below 1", measurement.rounding)
    return measurement


register("measurement", Measurement, _write_measurement, _read_measurement)


def _write_estimate(estimate: Estimate) -> dict[str, Json]:
    return {
        "value": write_value(estimate.value),
        "error": write_value(estimate.error),
        "source": write_text("source", estimate.source),
        "resolution": write_value(estimate.resolution),
        "typical": write_value(estimate.typical),
    }


def _read_estimate(value: Json, error: Json, source: Json, resolution: Json, typical: Json) -> Estimate:
    found, said = read_value(value), read_text("source", source)
    bar, coarse, usual = (
        _read_widths(name, record)
        for name, record in (("error", error), ("resolution", resolution), ("typical", typical))
    )
    if said not in ("hypothesis", "measured", "repeat"):
        refuse("source", "'hypothesis', 'measured' or 'repeat'", said)
    if coarse is None:
        refuse("resolution", "a number, or one for each cell", coarse)
    return Estimate(found, bar, said, coarse, usual)  # type: ignore[arg-type]


def _read_widths(name: str, record: Json) -> float | Array | None:
    """A number, one for each cell, or none."""
    found = read_value(record)
    if found is None or isinstance(found, float) or (isinstance(found, np.ndarray) and found.dtype == float):
        return found
    if isinstance(found, int) and not isinstance(found, bool):
        return float(found)
    refuse(name, "a number, one for each cell, or null", found)


register("estimate", Estimate, _write_estimate, _read_estimate)


# Entries. What an entry is about is public values and linear queries; a question without a form is left out, for it is only named.


def _write_entry(entry: Entry) -> dict[str, Json]:
    return {
        "number": write_whole("number", entry.number),
        "events": [inner(event) for event in entry.events],
        "cost": write_number("cost", entry.cost),
        "why": write_text("why", entry.why),
        "about": [[write_text("A name", name), _write_about(value)] for name, value in sorted(entry.about.items())],
        "asked": _write_asked(entry.asked),
        "kept": write_flag("kept", entry.kept),
        "released": [write_value(value) for value in entry.released],
        "private": write_flag("private", entry.private),
    }


def _write_about(value: object) -> Json:
    return inner(value) if isinstance(value, Linear) else write_value(value)


def _write_asked(question: object) -> Json:
    try:
        return None if question is None else inner(question)
    except InvalidInput:
        return None


def _read_entry(
    number: Json,
    events: Json,
    cost: Json,
    why: Json,
    about: Json,
    asked: Json,
    kept: Json,
    released: Json,
    private: Json,
) -> Entry:
    facts = {}
    for name, value in read_pairs("about", about):
        is_query = kind_of(value) == kind_of(inner(_EVERYONE))
        facts[name] = thing("query", value, Linear) if is_query else read_value(value)
    place, paid = read_whole("number", number), read_number("cost", cost)
    if place < 0 or not paid >= 0:
        refuse("number and cost", "at least 0", [place, paid])
    if not read_list("events", events):
        refuse("events", "what was charged, one at least", events)
    return Entry(
        number=place,
        events=tuple(thing("event", event, Event) for event in read_list("events", events)),
        cost=paid,
        why=read_text("why", why),
        about=facts,
        asked=None if asked is None else thing("asked", asked, Query),
        kept=read_flag("kept", kept),
        released=tuple(read_value(value) for value in read_list("released", released)),
        private=read_flag("private", private),
    )


_EVERYONE = Linear((), (), (), np.array(1.0), True)
register("entry", Entry, _write_entry, _read_entry)
register(
    "budget",
    Budget,
    lambda budget: {
        "epsilon": write_number("epsilon", budget.epsilon),
        "delta": write_number("delta", budget.delta),
        "neighbours": write_text("neighbours", budget.neighbours),
    },
    lambda epsilon, delta, neighbours: Budget(
        read_number("epsilon", epsilon),
        read_number("delta", delta),
        read_text("neighbours", neighbours),  # type: ignore[arg-type]
    ),
)
