"""Convex questions come back as they were sent; a loss made of functions is not sent."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow import losses, serialize
from hedgerow.convex.losses.families import Loss
from hedgerow.convex.losses.loss import LinearLoss
from hedgerow.convex.sets import SETS, ConvexSet, InterpolationBall, NuclearBall, VertexSet
from hedgerow.errors import InvalidInput
from hedgerow.query.counts import QUESTIONS, bound

UNIVERSE = hr.Universe(
    age=hr.Range(17, 90, bins=4), sex=hr.Categories(["F", "M"]), smoker=hr.Flag(), children=hr.Integers(0, 3)
)
sizes = st.floats(1e-6, 1e6)
numbers = st.floats(-1e6, 1e6)
vectors = st.lists(numbers, min_size=1, max_size=4)
sets = st.one_of(
    st.just(hr.Unconstrained()),
    sizes.map(hr.L1Ball),
    sizes.map(hr.L2Ball),
    sizes.map(hr.Simplex),
    st.tuples(numbers, sizes).map(lambda t: hr.Box(t[0], t[0] + t[1])),
    vectors.map(lambda low: hr.Box(low, [end + 1.5 for end in low])),
    vectors.map(lambda low: hr.Box(low, 2e6)),
    st.tuples(sizes, st.integers(1, 9)).map(lambda t: hr.GroupL1Ball(*t)),
    st.tuples(sizes, st.lists(st.integers(0, 3), min_size=1, max_size=5)).map(lambda t: hr.GroupL1Ball(*t)),
    st.tuples(sizes, st.floats(0, 1)).map(lambda t: InterpolationBall(*t)),
    st.tuples(sizes, st.integers(1, 4), st.integers(1, 4)).map(lambda t: NuclearBall(t[0], t[1:])),
    st.integers(1, 4).flatmap(
        lambda p: st.lists(st.lists(numbers, min_size=p, max_size=p), min_size=1, max_size=4).map(hr.Polytope)
    ),
)
wheres = st.sampled_from([None, hr.count(sex="F"), hr.count(age=(20, 60)) | ~hr.count(sex={"F"})])
about = st.fixed_dictionaries(
    {},
    optional={
        "target": st.none() | st.text(max_size=4),
        "features": st.lists(st.text(max_size=4), max_size=3),
        "intercept": st.booleans(),
        "interactions": st.lists(st.lists(st.text(max_size=4), max_size=3), max_size=2),
        "onehot": st.lists(st.text(max_size=4), max_size=2),
        "where": wheres,
        "ridge": st.floats(0, 1e6),
    },
)
OWN = {
    losses.SmoothedHinge: {"width": sizes},
    losses.Huber: {"width": sizes},
    losses.Pinball: {"quantile": st.floats(0.01, 0.99)},
    losses.Poisson: {"clip": st.floats(-100, 100)},
    losses.MultinomialLogistic: {"classes": st.none() | st.integers(2, 9)},
}
FAMILIES = [getattr(losses, name) for name in losses.__all__ if name not in ("Loss", "Custom")]
all_losses = st.sampled_from(FAMILIES).flatmap(
    lambda family: st.tuples(about, st.fixed_dictionaries({}, optional=OWN.get(family, {}))).map(
        lambda given: family(**given[0], **given[1])
    )
)
asked = {"target": "smoker", "features": ["age", "sex"], "interactions": [["age", "sex"]], "onehot": ["age"]}
custom = losses.Custom(
    lambda theta, records: np.zeros(len(records["age"])),
    lambda theta, records: np.zeros((len(records["age"]), 1)),
    ("age",),
    1,
    1.0,
)


def sent(thing):
    text = serialize.dumps(thing)
    found = serialize.loads(text)
    assert serialize.dumps(found) == text
    return found


@given(st.one_of(all_losses, sets, st.tuples(all_losses, sets).map(lambda t: hr.minimize(*t))))
def test_objects_come_back_equal_to_those_that_were_sent(thing) -> None:
    found = sent(thing)
    assert type(found) is type(thing)
    assert found == thing
    assert hash(found) == hash(thing)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
@given(where=wheres)
def test_a_convex_question_that_comes_back_is_the_same_question(family, where) -> None:
    query = hr.minimize(family(**asked, where=where, ridge=0.1), over=hr.L2Ball(2.0))
    assert bound(sent(query), UNIVERSE).key == bound(query, UNIVERSE).key


def test_a_minimum_over_everything_comes_back() -> None:
    query = hr.minimize(losses.Logistic(target="smoker", features=["age"]))
    assert sent(query) == query


def subclasses(cls: type) -> set[type]:
    return {cls, *(below for direct in cls.__subclasses__() for below in subclasses(direct))}


def test_every_loss_set_and_question_has_a_form() -> None:
    made = set(serialize.registered().values())
    own = {cls for base in (LinearLoss, ConvexSet) for cls in subclasses(base) if cls.__module__.startswith("hedgerow")}
    assert {*FAMILIES, *SETS, *QUESTIONS} - made == set()
    assert own - made == {LinearLoss, Loss, ConvexSet, VertexSet}  # what others are made from


@pytest.mark.parametrize("thing", [custom, hr.minimize(custom, over=hr.L2Ball(1.0))])
def test_a_loss_made_of_functions_is_refused_with_the_reason(thing) -> None:
    with pytest.raises(InvalidInput, match=r"Found Custom, and functions have no JSON form\. Ask it"):
        serialize.to_json(thing)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"loss": {"kind": "Custom"}}, r"kind of loss must be one of Absolute.*Found 'Custom'"),
        ({"loss": {"kind": "L2Ball", "radius": 1.0}}, "kind of loss"),
        ({"over": None}, "kind of over must be one of Box"),
        ({"over": {"kind": "L2Ball", "radius": -1.0}}, "above 0"),
        ({"over": {"kind": "L2Ball", "radius": {"kind": "float", "text": "inf"}}}, "above 0"),
        ({"over": {"kind": "L2Ball", "radius": [1.0]}}, "a number"),
        ({"over": {"kind": "Box", "low": [], "high": 1.0}}, "one length"),
        ({"over": {"kind": "Box", "low": [[0.0]], "high": 1.0}}, "a number"),
        ({"over": {"kind": "NuclearBall", "radius": 1.0, "shape": [2, 3, 4]}}, "2 items"),
        ({"over": {"kind": "NuclearBall", "radius": 1.0, "shape": [0, 3]}}, "at least 1"),
        ({"over": {"kind": "GroupL1Ball", "radius": 1.0, "groups": [0.5]}}, "whole"),
        ({"over": {"kind": "Polytope", "vertices": [[0.0]]}}, "array"),
    ],
)
def test_a_bad_question_is_refused_with_the_reason(changes, said) -> None:
    record = serialize.to_json(hr.minimize(losses.Logistic(target="smoker"), over=hr.L2Ball(1.0)))
    with pytest.raises(InvalidInput, match=said):
        serialize.from_json({**record, **changes})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("features", "age"), ("features", [1]), ("intercept", 1), ("interactions", [["a"], "b"]), ("where", "1 = 1"),
        ("where", {"kind": "L1Ball", "radius": 1.0}), ("ridge", -1.0), ("ridge", {"kind": "float", "text": "nan"}),
        ("width", 0.0), ("width", "1"), ("width", None), ("target", 3), ("onehot", None),
    ],
)  # fmt: skip
def test_a_bad_loss_is_refused(field, value) -> None:
    record = serialize.to_json(losses.Huber(target="age"))
    assert serialize.from_json(json.loads(json.dumps(record))) == losses.Huber(target="age")
    with pytest.raises(InvalidInput, match=r"must .*Found"):
        serialize.from_json({**record, field: value})


def test_a_loss_with_fields_of_strange_types_is_not_written() -> None:
    for loss in (losses.Squared(target=3), losses.Squared(features=[1]), losses.Squared(intercept="yes")):
        with pytest.raises(InvalidInput, match=r"must .*Found"):
            serialize.to_json(loss)


def test_infinite_ends_of_ranges_in_where_are_sent() -> None:
    loss = losses.Absolute(target="age", where=hr.count(age=(-math.inf, 60)))
    assert sent(loss) == loss
