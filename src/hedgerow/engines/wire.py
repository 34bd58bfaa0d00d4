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

EVENTS = (Laplace, Gaussian)
DTYPES = ("float64", "int64")


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
