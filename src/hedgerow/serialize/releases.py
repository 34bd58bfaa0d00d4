"""JSON forms of events, budgets, estimates, released measurements and ledger entries."""

from __future__ import annotations

from typing import get_args

import numpy as np

from hedgerow._json import Json, kind_of, read_list, read_text, refuse
from hedgerow._types import Array
from hedgerow.engine.practical.measurement import FEWEST, Measurement
from hedgerow.errors import InvalidInput
from hedgerow.privacy import events
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Event, Gaussian, Laplace
from hedgerow.privacy.ledger import Entry
from hedgerow.query.bound import GUARANTEED, Basis, Estimate, Source
from hedgerow.query.counts import Query
from hedgerow.query.linear import Linear, as_linear
from hedgerow.query.row_statistic import RowStatistic
from hedgerow.serialize.registry import decode, encode, register, register_dataclass, register_refusal
from hedgerow.serialize.values import (
    read_array,
    read_flag,
    read_names,
    read_number,
    read_pairs,
    read_value,
    read_whole,
    write_array,
    write_flag,
    write_names,
    write_number,
    write_text,
    write_value,
    write_whole,
)

EVENTS = (Laplace, Gaussian)  # the only noise that a measurement may carry
DTYPES = ("float64", "int64")  # the only types of a measurement's values


for event in events.KINDS.values():
    register_dataclass(event)
register_refusal(
    RowStatistic,
    "A question must be an expression, such as hr.count, to be stored or sent. "
    "Found a statistic, whose function has no JSON form. Ask a session in the process that defines the function.",
)


def _write_measurement(measurement: Measurement) -> dict[str, Json]:
    """Return the JSON fields of a measurement; fields that older records lack are written only where they differ."""
    measurement = _check_measurement(measurement)
    return {
        "attributes": write_names("A name", measurement.attributes),
        "values": write_array(measurement.values),
        "event": encode(measurement.event),
        "query": None if measurement.query is None else encode(measurement.query),
        "residual": write_flag("residual", measurement.residual),
        "rounding": write_number("rounding", measurement.rounding),
        **({"of_groups": True} if measurement.of_groups else {}),
        **({"ranged": write_names("A name", measurement.ranged)} if measurement.ranged else {}),
    }


def _read_measurement(
    attributes: Json,
    values: Json,
    event: Json,
    query: Json,
    residual: Json,
    rounding: Json,
    of_groups: Json = False,
    ranged: Json = None,
) -> Measurement:
    """Build a measurement from its JSON fields."""
    return _check_measurement(
        Measurement(
            read_names("attributes", attributes),
            read_array(values, *DTYPES),
            decode("event", event, EVENTS),
            None if query is None else decode("query", query, Linear),
            read_flag("residual", residual),
            read_number("rounding", rounding),
            read_flag("of_groups", of_groups),
            () if ranged is None else read_names("ranged", ranged),
        )
    )


def _check_measurement(measurement: Measurement) -> Measurement:
    """Check all of a measurement that can be checked without the universe.

    A reader who has the universe must also check the attributes and the shape against it.
    """
    names, values = measurement.attributes, measurement.values
    axes = len(names) if measurement.query is None else 0
    if len(set(names)) != len(names) or values.ndim != axes or 0 in values.shape or str(values.dtype) not in DTYPES:
        found = f"{values.dtype} on {values.ndim} axes"
        refuse("The values of a measurement", f"numbers on {axes} axes, one per attribute", found)
    if type(measurement.event) not in EVENTS:
        refuse("The event of a measurement", "Laplace or Gaussian", type(measurement.event).__name__)
    may_be = [n for n, m in zip(names, values.shape, strict=axes > 0) if measurement.residual and m >= FEWEST]
    if measurement.ranged != tuple(n for n in may_be if n in measurement.ranged):
        refuse("ranged", f"attributes of a residual, each with at least {FEWEST} values, in order", measurement.ranged)
    if not 0 <= measurement.rounding < 1:
        refuse("rounding", "at least 0 and below 1", measurement.rounding)
    return measurement


register("measurement", Measurement, _write_measurement, _read_measurement)


def _write_estimate(estimate: Estimate) -> dict[str, Json]:
    """Return the JSON fields of an estimate, which has exactly one JSON text.

    Fields that older records lack are left out where they have their default.
    """
    coarse, usual = estimate.resolution, estimate.typical
    return {
        "value": write_value(estimate.value),
        "error": write_value(estimate.error),
        "source": write_text("source", estimate.source),
        **({"resolution": write_value(coarse)} if isinstance(coarse, np.ndarray) or coarse != 0 else {}),
        **({} if usual is None else {"typical": write_value(usual)}),
        **({} if estimate.coefficients is None else {"coefficients": write_value(estimate.coefficients)}),
        **({} if estimate.lower is None else {"lower": write_value(estimate.lower)}),
        **({} if estimate.upper is None else {"upper": write_value(estimate.upper)}),
        **({} if estimate.basis == GUARANTEED else {"basis": write_text("basis", estimate.basis)}),
        **({} if estimate.simulation is None else {"simulation": write_value(estimate.simulation)}),
    }


def _read_estimate(
    value: Json,
    error: Json,
    source: Json,
    resolution: Json = 0.0,
    typical: Json = None,
    coefficients: Json = None,
    lower: Json = None,
    upper: Json = None,
    basis: Json = GUARANTEED,
    simulation: Json = None,
) -> Estimate:
    """Build an estimate from its JSON fields."""
    found, said = read_value(value), read_text("source", source)
    bar, coarse, usual, each, low, high = (
        _read_widths(name, record)
        for name, record in (
            ("error", error),
            ("resolution", resolution),
            ("typical", typical),
            ("coefficients", coefficients),
            ("lower", lower),
            ("upper", upper),
        )
    )
    if said not in get_args(Source):
        refuse("source", f"one of {', '.join(get_args(Source))}", said)
    if coarse is None:
        refuse("resolution", "a number, or one for each cell", coarse)
    if not (each is None or (isinstance(each, np.ndarray) and each.shape == np.shape(found))):
        refuse("coefficients", "one number for each entry of the value", each)
    for name, end in (("lower", low), ("upper", high)):
        if end is not None and np.shape(end) != np.shape(found):
            refuse(name, "a number, or one for each cell of the value", end)
    if basis not in get_args(Basis):
        refuse("basis", f"one of {', '.join(get_args(Basis))}", basis)
    sampled = None if simulation is None else read_number("simulation", simulation)
    return Estimate(found, bar, said, coarse, usual, coefficients=each, lower=low, upper=high, basis=basis, simulation=sampled)  # type: ignore[arg-type]  # fmt: skip


def _read_widths(name: str, record: Json) -> float | Array | None:
    """Read a number, an array with one number for each cell, or None."""
    found = read_value(record)
    if found is None or isinstance(found, float) or (isinstance(found, np.ndarray) and found.dtype == float):
        return found
    if isinstance(found, int) and not isinstance(found, bool):
        return float(found)
    refuse(name, "a number, one for each cell, or null", found)


register("estimate", Estimate, _write_estimate, _read_estimate)


# Entries. The facts of an entry (``about``) are public values and linear queries. A question without a JSON form is
# left out, because an entry only names its question.


def _write_entry(entry: Entry) -> dict[str, Json]:
    """Return the JSON fields of a ledger entry."""
    return {
        "number": write_whole("number", entry.number),
        "events": [encode(event) for event in entry.events],
        "cost": write_number("cost", entry.cost),
        "why": write_text("why", entry.why),
        "about": [[write_text("A name", name), _write_about(value)] for name, value in sorted(entry.about.items())],
        "asked": _write_asked(entry.asked),
        "kept": write_flag("kept", entry.kept),
        "released": [write_value(value) for value in entry.released],
        "private": write_flag("private", entry.private),
    }


def _write_about(value: object) -> Json:
    query = as_linear(value)
    return write_value(value) if query is None else encode(query)


def _write_asked(question: object) -> Json:
    """Return the JSON form of the question, or None if it has none."""
    try:
        return None if question is None else encode(question)
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
    """Build a ledger entry from its JSON fields."""
    facts = {}
    for name, value in read_pairs("about", about):
        is_query = kind_of(value) == kind_of(encode(_EVERYONE))
        facts[name] = decode("query", value, Linear) if is_query else read_value(value)
    place, paid = read_whole("number", number), read_number("cost", cost)
    if place < 0 or not paid >= 0:
        refuse("number and cost", "at least 0", [place, paid])
    if not read_list("events", events):
        refuse("events", "a list of at least one charged event", events)
    return Entry(
        number=place,
        events=tuple(decode("event", event, Event) for event in read_list("events", events)),
        cost=paid,
        why=read_text("why", why),
        about=facts,
        asked=None if asked is None else decode("asked", asked, Query),
        kept=read_flag("kept", kept),
        released=tuple(read_value(value) for value in read_list("released", released)),
        private=read_flag("private", private),
    )


# The query that counts every row: its JSON form shows the kind that marks a query.
_EVERYONE = Linear((), (), (), np.array(1.0), True)
register("entry", Entry, _write_entry, _read_entry)
register(
    "budget",
    Budget,
    lambda budget: {
        "epsilon": write_number("epsilon", budget.epsilon),
        "delta": write_number("delta", budget.delta),
        "neighbours": write_text("neighbours", budget.neighbours),
        **({} if budget.rows_per_unit == 1 else {"rows_per_unit": write_whole("rows_per_unit", budget.rows_per_unit)}),
    },
    lambda epsilon, delta, neighbours, rows_per_unit=1: Budget(
        read_number("epsilon", epsilon),
        read_number("delta", delta),
        read_text("neighbours", neighbours),  # type: ignore[arg-type]
        read_whole("rows_per_unit", rows_per_unit),
    ),
)
