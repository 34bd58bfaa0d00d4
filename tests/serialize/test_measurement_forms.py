"""Released measurements come back to the last bit, with the record that drew them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import hedgerow as hr
from hedgerow import serialize
from hedgerow.engine.practical.measurement import Measurement
from hedgerow.errors import InvalidInput
from hedgerow.privacy.events import Exponential, Gaussian, Laplace

UNIVERSE = hr.Universe(age=hr.Integers(0, 4), sex=hr.Categories(["F", "M"]))
NOISY = np.array([[0.1, -7.0], [3.0, 1e9], [5.25, 0.0], [2.0, 2.0], [1 / 3, 1.0]])
MEASUREMENTS = [
    Measurement(("age", "sex"), NOISY, Gaussian(2**0.5, 3.0)),
    Measurement(("age", "sex"), NOISY, Gaussian(1.0, 3.0, 0.125), residual=True),
    Measurement((), np.asarray(17.5), Laplace(1.0, 2.0, 0.5)),
    Measurement(("sex",), np.asarray(12), Laplace(1.0, 2.0), hr.count(sex="F").on(UNIVERSE)),
    Measurement(
        ("age", "sex"), np.asarray(12.5), Laplace(1.0, 2.0, 0.5), hr.mean("age", hr.count(sex="F")).on(UNIVERSE).numerator,
        rounding=2.0**-27,
    ),
]  # fmt: skip


@pytest.mark.parametrize("measurement", MEASUREMENTS)
def test_a_measurement_comes_back_as_it_was(measurement) -> None:
    text = serialize.dumps(measurement)
    found = serialize.loads(text, Measurement)
    assert serialize.dumps(found) == text
    assert found.values.tobytes() == measurement.values.tobytes()
    for name in ("attributes", "event", "query", "residual", "rounding", "variance"):
        assert getattr(found, name) == getattr(measurement, name)
    assert found.values.dtype == measurement.values.dtype


def test_every_field_of_a_measurement_is_written() -> None:
    fields = {field.name for field in dataclasses.fields(Measurement) if not field.name.startswith("_")}
    whole = Measurement(("age",), np.zeros(8), Gaussian(1.0, 3.0), residual=True, of_groups=True, ranged=("age",))
    assert set(serialize.to_json(whole)) == {"v", "kind", *fields}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"attributes": ["age"]}, "1 axes"),
        ({"attributes": ["age", "age"]}, "one per attribute"),
        ({"event": {"kind": "Exponential", "sensitivity": 1.0, "epsilon": 1.0}}, "Gaussian, Laplace"),
        ({"query": serialize.encode(hr.count(sex="F"))}, "kind of query must be one of bound"),
        ({"query": serialize.encode(hr.count(sex="F").on(UNIVERSE))}, "0 axes"),
        ({"residual": 0}, "true or false"),
        ({"rounding": -1.0}, "at least 0"),
        ({"rounding": {"kind": "float", "text": "nan"}}, "at least 0"),
        ({"values": [1.0]}, "array"),
    ],
)
def test_a_bad_measurement_is_refused_with_the_reason(changes, said) -> None:
    with pytest.raises(InvalidInput, match=said):
        serialize.from_json({**serialize.to_json(MEASUREMENTS[0]), **changes})


@pytest.mark.parametrize(
    "measurement",
    [
        Measurement(("age",), NOISY, Gaussian(1.0, 3.0)),
        Measurement(("age", "age"), NOISY, Gaussian(1.0, 3.0)),
        Measurement(("sex",), NOISY[0], Laplace(1.0, 2.0), hr.count(sex="F").on(UNIVERSE)),
        Measurement(("sex",), NOISY[0], Laplace(1.0, 2.0), rounding=1.0),
        Measurement(("sex",), NOISY[0] > 0, Laplace(1.0, 2.0)),
        Measurement(("sex",), NOISY[0], Exponential(1.0, 2.0)),
    ],
)
def test_records_that_could_not_be_read_back_are_not_written(measurement) -> None:
    with pytest.raises(InvalidInput, match=r"must .*Found"):
        serialize.to_json(measurement)
