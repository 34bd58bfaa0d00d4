"""Released measurements to and from JSON: see ``questions/wire``. With this module everything below it has its form too."""

from __future__ import annotations

import hedgerow.convex.wire  # noqa: F401  # registers its kinds
from hedgerow.engines.practical.error_bars import Measurement
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.questions.linear import Linear
from hedgerow.questions.wire import inner, register, thing
from hedgerow.questions.wire_values import (
    Json,
    read_array,
    read_flag,
    read_names,
    read_number,
    refuse,
    write_array,
    write_flag,
    write_names,
    write_number,
)


def _write_measurement(measurement: Measurement) -> dict[str, Json]:
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
    """Whoever reads one knows the universe, and must hold the attributes and the shape of the values against it."""
    names, counts = read_names("attributes", attributes), read_array(values, "float64", "int64")
    asked: Linear | None = None if query is None else thing("query", query, Linear)
    axes = len(names) if asked is None else 0
    if len(set(names)) != len(names) or counts.ndim != axes or 0 in counts.shape:
        refuse("The values of a measurement", f"a table with {axes} axes, one per attribute", counts.ndim)
    off = read_number("rounding", rounding)
    if not 0 <= off < 1:
        refuse("rounding", "at least 0 and below 1", off)
    drawn: Laplace | Gaussian = thing("event", event, (Laplace, Gaussian))
    return Measurement(names, counts, drawn, asked, read_flag("residual", residual), off)


register("measurement", Measurement, _write_measurement, _read_measurement)
