"""Parts of a release file's document: hypotheses, measurements, queries and numbers, each checked on reading."""

from __future__ import annotations

import numpy as np

from hedgerow._json import Json, fields, read_list, refuse
from hedgerow._types import Array, Names
from hedgerow.engine.practical.measurement import Measurement
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.query.linear import Linear
from hedgerow.serialize import decode
from hedgerow.serialize.values import (
    read_array,
    read_flag,
    read_names,
    read_number,
    read_whole,
    write_array,
    write_names,
)
from hedgerow.universe.universe import Universe

LARGEST_SET = 32  # most attributes of one table
LARGEST = 1e30  # largest number, so that no sum or square of several of them exceeds all floats


def write_hypothesis(hypothesis: Hypothesis) -> Json:
    """Return a hypothesis as JSON: its factors."""
    factors = [[write_names("A name", names), write_array(table)] for names, table in hypothesis.factors.items()]
    return {"dense": hypothesis.dense, "factors": factors}


def read_hypothesis(universe: Universe, record: Json) -> Hypothesis:
    """Read a hypothesis on a universe."""
    dense, factors = fields(record, "dense", "factors")
    if dense is not None:
        read_flag("dense", dense)
    tables: dict[Names, Array] = {}
    for pair in read_list("factors", factors):
        if type(pair) is not list or len(pair) != 2:
            refuse("A factor", "names and a table", pair)
        names = read_attributes(universe, pair[0])
        if names in tables:
            refuse("The factors of a hypothesis", "on different attributes", names)
        tables[names] = read_table("A factor", pair[1], universe.sizes(names))
    return Hypothesis.of_factors(universe, tables, dense=dense)


def require_measurement(universe: Universe, groups: Universe, measurement: Measurement, axes: Json) -> None:
    """Refuse a measurement that does not fit the universe, or the order of its axes."""
    names, of = measurement.attributes, groups if measurement.of_groups or measurement.residual else universe
    if measurement.query is not None:
        require_fits(universe, measurement.query)
        if names != measurement.query.attributes:
            refuse("A measurement", "about the attributes of its query", names)
    elif names != of.order(names) or measurement.values.shape != of.sizes(names):
        refuse("A measurement", "of a table of the universe", names)
    if not are_ordinary(measurement.values) or not LARGEST**-1 <= measurement.variance <= LARGEST:
        refuse("A measurement", f"of numbers of at most {LARGEST:g}", "others")
    if sorted(read_list("layout", axes)) != list(range(measurement.values.ndim)):
        refuse("A layout", "the axes of its measurement in some order", axes)


def read_attributes(universe: Universe, record: Json) -> Names:
    """Read attributes of a universe, in its order."""
    names = read_names("names", record)
    if len(names) > LARGEST_SET or names != universe.order(names) or len(set(names)) != len(names):
        refuse("names", "attributes of the universe, in its order", names)
    return tuple(universe.names[universe.index(name)] for name in names)


def read_query(universe: Universe, record: Json) -> Linear:
    """Read a linear query on a universe."""
    query = decode("a query", record, Linear)
    require_fits(universe, query)
    return query


def require_fits(universe: Universe, query: Linear) -> None:
    if query.attributes != universe.order(query.attributes) or query.shape != universe.sizes(query.attributes):
        refuse("A query", "on attributes of the universe, in its order", query.attributes)


def read_table(role: str, record: Json, shape: tuple[int, ...]) -> Array:
    """Read floats of this shape."""
    found = read_array(record, "float64")
    if found.shape != shape or not are_ordinary(found):
        refuse(role, f"numbers of shape {shape}, of at most {LARGEST:g}", f"shape {found.shape}")
    return found


def are_ordinary(numbers: Array) -> bool:
    """Return True if no number is larger than ``LARGEST`` or undefined."""
    return bool((np.abs(numbers) <= LARGEST).all())


def read_count(role: str, record: Json, most: int = 2**53) -> int:
    """Read a whole number from 0 to ``most``."""
    found = read_whole(role, record)
    if not 0 <= found <= most:
        refuse(role, f"from 0 to {most}", found)
    return found


def read_positive(role: str, record: Json, most: float = LARGEST) -> float:
    """Read a number from 0 to ``most``."""
    found = read_number(role, record)
    if not 0 <= found <= most:
        refuse(role, f"from 0 to {most:g}", found)
    return found
