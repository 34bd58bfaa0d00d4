"""Stored and sent objects come back unchanged and have one text, and every other text is refused."""

from __future__ import annotations

import base64
import datetime
import json
import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hostile_json import json_values, read_or_refused, tampered
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow import serialize
from hedgerow.errors import InvalidInput
from hedgerow.privacy import events
from hedgerow.privacy.renyi_events import RenyiEvent
from hedgerow.query.bound import Estimate
from hedgerow.query.counts import QUESTIONS, bound
from hedgerow.query.linear import Linear
from hedgerow.query.workloads import Workload
from hedgerow.serialize import records
from hedgerow.serialize.values import VALUE_KINDS, read_value, write_value
from hedgerow.universe.attributes import Attribute
from hedgerow.universe.labels import read_label, write_label

STORED = json.loads((Path(__file__).parent / "wire_v1.json").read_text())
"""One record of every kind at least. They must load for ever: add to them, never change one."""
RECORDS = list(STORED.values())
UNIVERSE = hr.Universe(age=hr.Integers(0, 4), sex=hr.Categories(["F", "M"]), smoker=hr.Flag(), retired=hr.Flag())

numbers = st.one_of(st.integers(), st.floats(allow_nan=False), st.booleans())
labels = st.recursive(
    st.one_of(
        numbers,
        st.none(),
        st.text(),
        st.dates(),
        st.datetimes(timezones=st.none() | st.just(datetime.UTC)).map(lambda t: t.replace(fold=0)),
        st.times().map(lambda t: t.replace(fold=0)),
        st.decimals(allow_nan=False),
        st.integers(-(2**63), 2**63 - 1).map(np.int64),
        st.text().map(np.str_),
        st.floats(allow_nan=False).map(np.float64),
        st.booleans().map(np.bool_),
    ),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)
values = st.recursive(
    labels | st.just(math.nan),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple)),
    max_leaves=6,
)
names = st.text(max_size=4)
masks = st.lists(st.booleans(), max_size=20).map(lambda bits: np.array(bits, dtype=bool))
predicates = st.recursive(
    st.one_of(
        labels.filter(lambda label: not isinstance(label, tuple)),
        st.sets(labels, max_size=4),
        st.frozensets(labels, max_size=4),
        st.lists(labels, max_size=4),
        st.lists(st.integers(0, 9), max_size=4).map(lambda v: np.array(v, dtype=np.int64)),
        st.tuples(st.none() | numbers, st.none() | numbers),
        masks,
    ),
    lambda inner: inner.map(hr.not_),
    max_leaves=2,
)
tables = st.tuples(st.integers(1, 3), st.integers(1, 3)).flatmap(
    lambda shape: st.lists(st.floats(0, 1), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]).map(
        lambda flat: np.array(flat).reshape(shape)
    )
)
boolean = st.recursive(
    st.one_of(
        st.dictionaries(names, predicates, max_size=3).map(hr.count),
        st.lists(names, min_size=1, max_size=3).map(lambda n: hr.parity(*n)),
        st.lists(names, min_size=1, max_size=3).map(lambda n: hr.conjunction(*n)),
        st.tuples(names, st.none() | numbers, st.none() | numbers).map(lambda t: hr.interval(*t)),
        st.tuples(names, numbers).map(lambda t: hr.threshold(*t)),
        st.tuples(names, names, tables).map(lambda t: hr.linear(t[:2], t[2])),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] & p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] | p[1]),
        st.lists(inner, min_size=1, max_size=3).map(lambda p: hr.any_of(*p)),
        inner.map(lambda q: ~q),
    ),
    max_leaves=5,
)
questions = st.one_of(
    boolean,
    st.lists(names, min_size=1, max_size=3).map(lambda n: hr.marginal(*n)),
    st.tuples(names, st.none() | boolean).map(lambda t: hr.mean(*t)),
    st.tuples(names, st.floats(0.01, 0.99), st.none() | boolean).map(lambda t: hr.quantile(*t)),
    st.tuples(names, st.floats(0.01, 0.99), st.none() | boolean).map(lambda t: hr.interpolated_quantile(*t)),
    st.tuples(names, st.none() | boolean).map(lambda t: hr.median(*t)),
    st.tuples(names, st.none() | boolean).map(lambda t: hr.total(*t)),
    st.tuples(names, st.none() | boolean).map(lambda t: hr.variance(*t)),
    st.tuples(names, names, st.none() | boolean).map(lambda t: hr.correlation(*t)),
    st.tuples(names, st.none() | st.just([0, 1.5, 3]), st.none() | boolean).map(lambda t: hr.histogram(*t)),
    st.tuples(names, st.integers(1, 9)).map(lambda t: hr.top(*t)),
    st.tuples(boolean, boolean).map(lambda t: hr.share(*t)),
    st.tuples(boolean, boolean).map(lambda t: hr.ratio(*t)),
    st.tuples(boolean, names).map(lambda t: hr.ratio(hr.mean(t[1]), t[0])),
    st.tuples(boolean, boolean, boolean).map(lambda t: hr.relative_risk(*t)),
    st.tuples(boolean, boolean, boolean).map(lambda t: hr.odds_ratio(*t)),
    st.tuples(boolean | names, names, st.none() | boolean).map(lambda t: hr.trend(*t)),
    st.tuples(names, names, st.none() | boolean).map(lambda t: hr.cramers_v(*t)),
    st.tuples(names, names, st.none() | st.integers(0, 9)).map(
        lambda t: hr.compare(hr.group_by(t[0]).mean(t[1]), t[2])
    ),
    st.tuples(boolean, names, st.none() | boolean).map(lambda t: hr.difference(t[0], hr.mean(*t[1:]))),
    st.lists(names, min_size=1, max_size=3).map(lambda n: hr.group_by(*n).count()),
    st.tuples(names, names, st.none() | boolean).map(lambda t: hr.group_by(t[0]).mean(*t[1:])),
    st.tuples(names, names, boolean).map(lambda t: hr.group_by(t[0], t[1]).share(t[2])),
    st.tuples(names, names).map(lambda t: hr.group_by(t[0]).quantile(t[1], 0.9)),
)
askable = st.recursive(
    st.one_of(
        st.sampled_from(["F", "M"]).map(lambda v: hr.count(sex=v)),
        st.sets(st.integers(0, 4), min_size=1).map(lambda v: hr.count(age=v)),
        st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda e: hr.interval("age", min(e), max(e))),
        st.integers(0, 4).map(lambda v: hr.count(age=hr.not_(v))),
        st.lists(st.booleans(), min_size=5, max_size=5).map(lambda m: hr.count(age=np.array(m))),
        st.just(hr.parity("retired", "smoker")),
        st.just(hr.any_of("smoker", "retired")),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] & p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] | p[1]),
        inner.map(lambda q: ~q),
    ),
    max_leaves=6,
)
weighted = st.lists(st.floats(0, 1), min_size=10, max_size=10).map(
    lambda w: hr.linear(("sex", "age"), np.array(w).reshape(2, 5))
)
edges = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6, unique=True).map(sorted)
attributes = st.one_of(
    st.just(hr.Flag()),
    st.tuples(st.lists(labels, min_size=1, max_size=6, unique=True), st.booleans())
    .filter(lambda t: hr.OTHER not in t[0])
    .map(lambda t: hr.Categories(t[0], other=t[1])),
    st.tuples(st.integers(-(10**20), 10**20), st.integers(0, 9), st.booleans()).map(
        lambda t: hr.Integers(t[0], t[0] + t[1], other=t[2])
    ),
    st.tuples(edges, st.booleans()).map(lambda t: hr.Range(edges=t[0], other=t[1])),
    st.tuples(st.integers(-50, 50), st.integers(1, 9), st.booleans()).map(
        lambda t: hr.Range(t[0], t[0] + 4 * t[1], bins=t[1], other=t[2], whole=True)
    ),
    edges.flatmap(
        lambda e: st.lists(st.floats(-1e6, 1e6), min_size=len(e) - 1, max_size=len(e) - 1).map(
            lambda v: hr.Range(edges=e, values=v)
        )
    ),
)
universes = st.dictionaries(names, attributes, min_size=1, max_size=4).map(hr.Universe)
ways = st.none() | st.integers(1, 5)
workloads = st.one_of(
    st.tuples(st.integers(1, 5), ways).map(lambda t: hr.marginals(t[0], most_cells=t[1])),
    names.map(hr.intervals),
    names.map(hr.thresholds),
    ways.map(hr.parities),
    st.tuples(ways, st.booleans()).map(lambda t: hr.conjunctions(t[0], monotone=t[1])),
)
sizes = st.floats(0.01, 100)
gaussians = st.tuples(sizes, sizes, st.integers(-3, 3)).map(lambda t: events.Gaussian(t[0], t[1], 2.0 ** t[2]))
laplaces = st.tuples(sizes, sizes).map(lambda t: events.Laplace(*t))
samples = st.integers(1, 2**32).map(events.PoissonSample)
some_rows = st.tuples(st.integers(1, 9), st.integers(9, 10**9)).map(lambda t: events.DistinctRows(*t)) | st.tuples(
    st.integers(1, 10**9), st.integers(1, 10**9)
).map(lambda t: events.RepeatedRows(*t))
deltas = st.floats(1e-12, 0.5)
all_events = st.one_of(
    gaussians,
    laplaces,
    samples,
    st.tuples(sizes, sizes).map(lambda t: events.Exponential(*t)),
    st.tuples(sizes, sizes, sizes).map(lambda t: events.AboveThreshold(*t)),
    st.tuples(sizes, deltas).map(lambda t: events.ApproximateDP(*t)),
    st.tuples(gaussians | laplaces, st.integers(1, 10**6)).map(lambda t: events.Repeated(*t)),
    st.tuples(st.floats(4.0, 100), st.floats(0.01, 1.0)).map(
        lambda t: events.Planned(events.Gaussian(1.0, t[0]), t[1])
    ),
    st.tuples(sizes, deltas, st.integers(1, 10**6), samples, gaussians).map(lambda t: events.SubsampledGaussian(*t)),
    st.tuples(sizes, deltas, sizes, gaussians, gaussians).map(lambda t: events.PerturbedObjective(*t)),
    st.tuples(st.floats(1.0, 50.0), st.integers(200, 10**6)).map(
        lambda t: events.ThresholdedCounts(events.Gaussian(1.0, t[0]), t[1])
    ),
    some_rows,
    st.tuples(some_rows | samples, laplaces).map(lambda t: events.Subsampled(*t)),
    st.tuples(st.integers(1, 2**31 - 1), st.integers(1, 10**9), st.integers(1, 10**6)).map(
        lambda t: events.FlippedRows(*t)
    ),
)


def sent(thing):
    """There and back as a text, which must be the text of what came back."""
    text = serialize.dumps(thing)
    assert json.loads(text) == serialize.to_json(thing)
    found = serialize.loads(text)
    assert serialize.dumps(found) == text
    return found


@given(st.one_of(questions, universes, workloads, all_events, attributes))
def test_objects_come_back_equal_to_those_that_were_sent(thing) -> None:
    found = sent(thing)
    assert type(found) is type(thing)
    assert found == thing
    assert hash(found) == hash(thing)


@given(st.one_of(askable, weighted))
def test_a_question_that_comes_back_is_the_same_function_of_a_record(query) -> None:
    original, found = bound(query, UNIVERSE), bound(sent(query), UNIVERSE)
    assert found.key == original.key
    again = sent(original)
    assert again == original
    assert again.key == original.key
    assert (again.attributes, again.shape, again.is_count) == (original.attributes, original.shape, original.is_count)
    assert np.array_equal(again.table, original.table)


@given(askable)
def test_a_mean_that_comes_back_is_the_same_two_functions(where) -> None:
    try:
        original = bound(hr.mean("age", where), UNIVERSE)
    except InvalidInput:  # among nobody
        return
    found = bound(sent(hr.mean("age", where)), UNIVERSE)
    assert (found.numerator, found.denominator) == (original.numerator, original.denominator)
    assert sent(original.numerator) == original.numerator


def test_a_product_of_many_attributes_is_sent_without_its_table() -> None:
    wide = hr.Universe.from_sizes({f"a{i}": 10 for i in range(30)})
    query = bound(hr.count({f"a{i}": 3 for i in range(30)}), wide)
    assert sent(query) == query
    steep = bound(hr.mean("a0", hr.count({f"a{i}": 3 for i in range(1, 6)})), wide).numerator
    assert len(serialize.dumps(steep)) < 2000
    assert sent(steep) == steep


@pytest.mark.parametrize(
    "vectors",
    [
        [[0.0, 1.0], [0.0, 0.5]],  # the factor ½ belongs to the first
        [[0.5, 1.0], [0.5, 1.0]],
        [[1.0, 1.0], [0.0, 1.0]],
        [[0.0, 0.0], [0.0, 1.0]],
        [[0.0, 2.0], [0.0, 1.0]],
        [[0.0, math.nan], [0.0, 1.0]],
        [[], [0.0, 1.0]],
        [[0.0, 1.0]],
        [[[0.0, 1.0]], [0.0, 1.0]],
    ],
)
def test_vectors_that_no_bound_question_has_are_refused(vectors) -> None:
    arrays = [json_array(np.array(vector, dtype=float)) for vector in vectors]
    with pytest.raises(InvalidInput):
        serialize.from_json({"v": 1, "kind": "bound", "attributes": ["a", "b"], "vectors": arrays, "table": None})


@given(st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=3), min_size=1, max_size=3))
def test_vectors_are_accepted_exactly_when_they_are_those_of_their_table(vectors) -> None:
    arrays = [np.array(vector) for vector in vectors]
    universe = hr.Universe.from_sizes({str(i): len(vector) for i, vector in enumerate(vectors)})
    table = np.ones(())
    for array in arrays:
        table = np.multiply.outer(table, array)
    canonical = Linear.from_table(universe, universe.names, table)
    try:
        found = Linear.of_vectors(universe.names, arrays)
    except InvalidInput:
        own = [vector.tolist() for vector in canonical.vectors or ()]
        assert canonical.attributes != universe.names or own != vectors
    else:
        assert found == canonical


@given(universes)
def test_a_universe_that_comes_back_has_the_same_representative_values(universe) -> None:
    found = sent(universe)
    for name in universe.names:
        a, b = universe[name], found[name]
        assert [type(label) for label in b.labels] == [
            type(getattr(label, "item", lambda v=label: v)()) for label in a.labels
        ]
        assert (a.values is None) == (b.values is None)
        assert a.values is None or np.array_equal(a.values, b.values, equal_nan=True)


@given(values)
@example(np.str_("a\0"))
def test_plain_values_come_back(value) -> None:
    found = sent(value)
    assert repr(found) == repr(write_read_free(value))


def write_read_free(value):
    """The value with Python's own numbers and texts for numpy's."""
    if isinstance(value, list | tuple):
        return type(value)(write_read_free(item) for item in value)
    if isinstance(value, np.str_):
        return "".join([value])  # item() would lose a NUL at the end
    return value.item() if isinstance(value, np.generic) else value


@given(
    st.sampled_from([bool, np.int64, np.float64]),
    st.lists(st.integers(0, 4), max_size=4),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_arrays_come_back_to_the_last_bit(dtype, shape, seed, flipped) -> None:
    rng = np.random.default_rng(seed)
    array = rng.integers(0, 2**62, size=shape).view(np.float64).astype(dtype) if shape else np.array(seed % 2, dtype)
    array = array.T if flipped else array
    found = sent(array)
    assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert found.flags.writeable


def test_non_finite_numbers_in_arrays_and_answers_come_back() -> None:
    array = np.array([math.nan, math.inf, -math.inf, -0.0, 5e-324])
    assert sent(array).tobytes() == array.tobytes()
    assert [repr(sent(x)) for x in (math.nan, math.inf, -math.inf, -0.0, 0.1)] == ["nan", "inf", "-inf", "-0.0", "0.1"]


def test_equivalent_questions_have_one_text() -> None:
    female, old = hr.count(sex="F"), hr.count(age=(3, None))
    alike = [
        (hr.count(sex="F", age=(1, 3)), hr.count({"age": (1, 3)}, sex="F")),
        (hr.count(age={1, 2}), hr.count(age=[2, 1, 2])),
        (hr.count(age={1, 2}), hr.count(age=np.array([2, 1]))),
        (hr.count(sex="F"), hr.count(sex={"F"})),
        (female & female, female),
        (female | old, old | female | old),
        (~~(female | old), female | old),
        (hr.count(smoker=True) & ~~(female | old) & old, (old | female) & hr.count(smoker=True) & old),
        (hr.marginal("sex", "age"), hr.marginal("sex", "age", "age")),
        (hr.parity("a", "b"), hr.parity("b", "a")),
        (hr.threshold("age", 3), hr.interval("age", None, 3)),
    ]
    for first, second in alike:
        assert first == second
        assert serialize.dumps(first) == serialize.dumps(second)


def test_a_range_is_not_a_set_of_its_ends() -> None:
    between, ends, label = hr.count(age=(1, 3)), hr.count(age={1, 3}), hr.count(age={(1, 3)})
    assert len({serialize.dumps(q) for q in (between, ends, label)}) == 3
    assert [sent(q) for q in (between, ends, label)] == [between, ends, label]


def test_a_range_may_have_dates_and_periods_as_texts() -> None:
    for ends in (("2020-01-31", "2020-02-29"), ("2020-Q1", "2020-03"), ("2020", None)):
        assert sent(hr.count(seen=ends)) == hr.count(seen=ends)


def test_every_kind_of_question_attribute_workload_and_event_has_a_form() -> None:
    made = set(serialize.registered().values())
    attributes = {cls for cls in Attribute.__subclasses__() if cls.__module__.startswith("hedgerow")}
    for kinds in (
        QUESTIONS,
        attributes,
        Workload.__subclasses__(),
        events.KINDS.values(),
        [each for each in events.Event.__subclasses__() if each is not RenyiEvent],  # which is a base of events
        [each for each in RenyiEvent.__subclasses__() if each.__module__.startswith("hedgerow")],
    ):
        assert set(kinds) - made == set()


def test_every_kind_has_a_record_that_is_kept() -> None:
    own = {kind for kind, made in serialize.registered().items() if made.__module__.startswith("hedgerow")}
    assert {record["kind"] for record in RECORDS} == {*own, *VALUE_KINDS, "value"}


@pytest.mark.parametrize("name", STORED)
def test_a_record_of_version_1_loads_and_is_written_as_it_was(name) -> None:
    text = json.dumps(STORED[name], allow_nan=False, sort_keys=True, separators=(",", ":"))
    assert serialize.dumps(serialize.loads(text)) == text


def test_stored_records_mean_what_they_meant() -> None:
    read = {name: serialize.from_json(record) for name, record in STORED.items()}
    assert read["count of every predicate"] == hr.count(
        {"age": (17, None), "sex": "F", "region": {"north", "south"}, "job": hr.not_({None, 3, 0.5})},
        bins=np.array([True, False, True, True, False, False, False, False, True]),
    )
    assert read["linear"] == hr.linear(("sex", "age"), [[0.0, 0.25, 0.5], [1.0, 0.1, 0.0]])
    assert read["mean"] == hr.mean("age", where=hr.count(sex="F") | ~hr.parity("a", "b"))
    assert read["Universe"] == hr.Universe(
        age=hr.Range(17, 90, bins=2, other=True),
        born=hr.Categories([datetime.date(1990, 1, 1), "1990", 1990, 1990.5, None, Decimal("1.50")], other=True),
        children=hr.Integers(0, 12),
        smoker=hr.Flag(),
    )
    assert read["estimate"] == Estimate(0.25, 0.125, "hypothesis", 0.0, None)
    assert read["estimate with a resolution"] == Estimate(0.25, 0.125, "hypothesis", 0.0625, 0.03125)
    assert read["Laplace"] == events.Laplace(1.0, 2.5, 0.25)
    assert read["array of truths"].tolist() == [[True, False, True, True, False], [False, False, True, True, True]]


# Strangers


@given(json_values)
def test_any_json_is_refused_in_words_or_read(record) -> None:
    read_or_refused(record)
    read_or_refused({"v": 1, "kind": "value", "value": record})
    if isinstance(record, dict):
        read_or_refused({"v": 1, **record})


@settings(max_examples=250, deadline=None)
@given(tampered(RECORDS))
def test_a_record_with_a_part_changed_is_refused_in_words_or_read(record) -> None:
    read_or_refused(record)


@pytest.mark.audit
@settings(max_examples=10_000, deadline=None)
@given(tampered(RECORDS))
def test_thousands_of_records_with_a_part_changed_are_refused_in_words_or_read(record) -> None:
    read_or_refused(record)


def json_array(array) -> dict:
    return {name: value for name, value in serialize.to_json(array).items() if name != "v"}


def nested(depth: int):
    record: object = {"kind": "count", "predicates": []}
    for _ in range(depth):
        record = {"kind": "combined", "operation": "or", "parts": [{"kind": "not", "part": record}]}
    return {"v": 1, **record}  # type: ignore[dict-item]


ring: dict = {"v": 1, "kind": "not"}
ring["part"] = ring
one = np.zeros(1)
GOOD_ARRAY = json_array(one)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (None, "an object"),
        ([], "an object"),
        ({}, "version"),
        ({"kind": "Flag"}, "version v must be 1. Found None"),
        ({"v": 2, "kind": "Flag"}, "version v must be 1. Found 2"),
        ({"v": True, "kind": "Flag"}, "version"),
        ({"v": 1.0, "kind": "Flag"}, "version"),
        ({"v": "1", "kind": "Flag"}, "version"),
        ({"v": 1}, "kind"),
        ({"v": 1, "kind": "Session"}, "kind of a record must be one of .*Found 'Session'"),
        ({"v": 1, "kind": "builtins.eval", "args": ["1"]}, "kind"),
        ({"v": 1, "kind": ["count"]}, "kind"),
        ({"v": 1, "kind": "count"}, "fields of 'count' must be predicates. Found none"),
        ({"v": 1, "kind": "Flag", "extra": 1}, "fields of 'Flag' must be false, missing, other, true. Found 'extra'"),
        ({"v": 1, "kind": "not", "part": {"v": 1, "kind": "count", "predicates": []}}, "fields"),
        ({"v": 1, "kind": "not", "part": {"kind": "Flag"}}, "kind of a part"),
        ({"v": 1, "kind": "not", "part": {"kind": "marginal", "attributes": ["a"]}}, "must be a count"),
        ({"v": 1, "kind": "combined", "operation": "xor", "parts": []}, "operation"),
        ({"v": 1, "kind": "combined", "operation": "or", "parts": []}, "at least one"),
        ({"v": 1, "kind": "marginal", "attributes": []}, "at least one"),
        ({"v": 1, "kind": "marginal", "attributes": "age"}, "a list"),
        ({"v": 1, "kind": "marginal", "attributes": [1]}, "a text"),
        ({"v": 1, "kind": "marginal", "attributes": ["\ud800"]}, "whole characters"),
        ({"v": 1, "kind": "count", "predicates": [["a", {"kind": "between", "low": "x", "high": None}]]}, "end of a range"),
        ({"v": 1, "kind": "count", "predicates": [["a", {"kind": "in", "values": [{"kind": "Flag"}]}]]}, "value"),
        ({"v": 1, "kind": "count", "predicates": [["a", {"kind": "in", "values": [[1]]}]]}, "value"),
        ({"v": 1, "kind": "count", "predicates": [["a", {"kind": "mask", "cells": GOOD_ARRAY}]]}, "dtype"),
        ({"v": 1, "kind": "Integers", "low": 0, "high": 2**53, "other": False}, "at most"),
        ({"v": 1, "kind": "Integers", "low": 3, "high": 1, "other": False}, "low <= high"),
        ({"v": 1, "kind": "Integers", "low": 0.0, "high": 1, "other": False}, "whole"),
        ({"v": 1, "kind": "Integers", "low": 0, "high": 1, "other": 0}, "true or false"),
        (
            {"v": 1, "kind": "Universe", "attributes": [
                [str(i), {"kind": "Integers", "low": 1, "high": 2**20, "other": False}] for i in range(3)
            ]},
            "cells of all attributes",
        ),
        ({"v": 1, "kind": "Universe", "attributes": [["a", {"kind": "Flag"}], ["a", {"kind": "Flag"}]]}, "distinct"),
        ({"v": 1, "kind": "Universe", "attributes": []}, "at least one"),
        ({"v": 1, "kind": "Categories", "values": [1, True], "other": False}, "distinct"),
        ({"v": 1, "kind": "Categories", "values": [{"kind": "float", "text": "nan"}], "other": False}, "'inf' or '-inf'"),
        ({"v": 1, "kind": "Range", "edges": [0, 1], "values": [{"kind": "float", "text": "nan"}], "other": False}, "finite"),
        ({"v": 1, "kind": "Laplace", "sensitivity": -1.0, "scale": 1.0, "grid": 1.0}, "above 0"),
        ({"v": 1, "kind": "Laplace", "sensitivity": True, "scale": 1.0, "grid": 1.0}, "a number"),
        ({"v": 1, "kind": "Laplace", "sensitivity": {"kind": "PoissonSample", "heads": 1}, "scale": 1, "grid": 1}, "value"),
        ({"v": 1, "kind": "Repeated", "event": {"kind": "PoissonSample", "heads": 1}, "times": 2}, "Gaussian, Laplace"),
        ({"v": 1, "kind": "Repeated", "event": 1.0, "times": 2}, "kind of event"),
        ({"v": 1, "kind": "estimate", "value": 0.5, "error": None}, "fields of 'estimate' must be basis, coefficients, error, lower, resolution, simulation, source"),
        ({"v": 1, "kind": "estimate", "value": 0.5, "error": None, "source": "measured", "bar": 1}, "Found 'bar'"),
        ({"v": 1, "kind": "value", "value": math.nan}, "finite"),
        ({"v": 1, "kind": "value", "value": math.inf}, "finite"),
        ({"v": 1, "kind": "value", "value": 2**53 + 1}, "2\\^53"),
        ({"v": 1, "kind": "value", "value": (1, 2)}, "JSON's own types"),
        ({"v": 1, "kind": "value", "value": np.float64(1)}, "JSON's own types"),
        ({"v": 1, "kind": "value", "value": {1: 2}}, "texts"),
        ({"v": 1, "kind": "value", "value": GOOD_ARRAY}, "beside v"),
        ({"v": 1, "kind": "integer", "text": "12"}, "beyond 2\\^53"),
        ({"v": 1, "kind": "integer", "text": "9" * 5000}, "beyond 2\\^53"),
        ({"v": 1, "kind": "integer", "text": "٣" * 30}, "beyond 2\\^53"),
        ({"v": 1, "kind": "date", "text": "20200101"}, "as Python writes it"),
        ({"v": 1, "kind": "decimal", "text": "sNaN"}, "as Python writes it"),
        ({"v": 1, **GOOD_ARRAY, "dtype": "object"}, "dtype"),
        ({"v": 1, **GOOD_ARRAY, "shape": [2]}, "base64 of 16 bytes"),
        ({"v": 1, **GOOD_ARRAY, "shape": [10**15]}, "sides"),
        ({"v": 1, **GOOD_ARRAY, "shape": [10**7, 10**7]}, "at most"),
        ({"v": 1, **GOOD_ARRAY, "shape": [-1]}, "sides"),
        ({"v": 1, **GOOD_ARRAY, "shape": [1] * 100}, "sides"),
        ({"v": 1, **GOOD_ARRAY, "data": "AAAAAAAAAA?="}, "base64"),
        ({"v": 1, **GOOD_ARRAY, "data": "AAAAAAAAAAB="}, "zeros beyond"),
        ({"v": 1, **GOOD_ARRAY, "dtype": "bool", "data": base64.b64encode(b"\x01").decode()}, "zeros beyond"),
        (ring, "nested"),
        (nested(10_000), "nested"),
        (nested(34), "nested"),
    ],
)  # fmt: skip
def test_a_bad_record_is_refused_with_the_reason(record, said) -> None:
    with pytest.raises(InvalidInput, match=said) as refusal:
        serialize.from_json(record)
    assert "Found" in str(refusal.value)
    assert len(str(refusal.value)) < 1500


def test_records_that_share_their_parts_do_not_unfold_without_end(monkeypatch) -> None:
    monkeypatch.setattr(records, "MOST_ITEMS", 2**16)
    shared: list = []
    for _ in range(80):
        shared = [shared, shared]
    with pytest.raises(InvalidInput, match="items"):
        serialize.from_json({"v": 1, "kind": "value", "value": shared})


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "nul", '{"v": 1, "kind": "value", "value": NaN}', '{"v": 1, "kind": "value", "value": -Infinity}',
        '{"v": 1, "kind": "value", "value": 1e999}', '{"v": 1, "kind": "value", "value": %s}' % ("9" * 5000),
        '{"v": 1, "kind": "Flag", "kind": "Flag"}', "[" * 100_000, '{"a":' * 100_000, "null", "1", b"{}", None,
    ],
)  # fmt: skip
def test_a_text_that_is_no_record_is_refused(text) -> None:
    with pytest.raises(InvalidInput, match="Found"):
        serialize.loads(text)


def test_a_text_that_is_too_long_is_neither_read_nor_written(monkeypatch) -> None:
    text = serialize.dumps(hr.marginal("sex"))
    monkeypatch.setattr(records, "LONGEST_TEXT", len(text) - 1)
    for attempt in (lambda: serialize.loads(text), lambda: serialize.dumps(hr.marginal("sex"))):
        with pytest.raises(InvalidInput, match=f"at most {len(text) - 1} characters"):
            attempt()


def test_a_reader_says_what_it_expects() -> None:
    question = serialize.to_json(hr.count(sex="F"))
    assert serialize.from_json(question, hr.Query) == hr.count(sex="F")
    with pytest.raises(InvalidInput, match=r"kind of a record must be one of AboveThreshold.*Found 'count'"):
        serialize.from_json(question, events.Event)
    with pytest.raises(InvalidInput, match="must be a str"):
        serialize.from_json(serialize.to_json(1.5), str)


@pytest.mark.parametrize(
    "thing",
    [
        object(), {1, 2}, {"a": 1}, b"bytes", 1j, np.float32(0.7), np.datetime64("2020-01-01"), np.array(["a"]),
        np.array([1], dtype=object), 10**1000, "\ud83d", datetime.timedelta(1), len, hr.Query, hr.Accountant(hr.Budget(1.0, 0.0)),
        hr.count(age=(1, 2, 3)), hr.count(age=("a", "b")), hr.count(age=np.ones((2, 2), bool)),
        hr.count(age=range(3)), hr.count(age={"a": 1}), hr.count(age=b"F"), hr.count({1: 2}), hr.mean(1),
        hr.Categories([object()]),
        hr.Universe(a=hr.Categories([object()])), hr.Integers(0, 2**21), Attribute(("a",)),
    ],
    ids=lambda thing: type(thing).__name__,
)  # fmt: skip
def test_objects_without_a_registered_form_are_refused(thing) -> None:
    with pytest.raises(InvalidInput, match=r"must .*Found"):
        serialize.to_json(thing)


def test_records_that_could_not_be_read_back_are_not_written() -> None:
    deep = hr.count(a=1)
    for i in range(5000):
        deep = (deep | hr.count(b=i)) & hr.count(c=i)
        if i == 40:
            shallow = deep
    for question in (deep, shallow):
        with pytest.raises(InvalidInput, match="nested"):
            serialize.to_json(question)


@given(labels)
@example(np.str_("a\0"))
def test_a_label_is_read_as_it_was_written(label) -> None:
    found = read_label(write_label(label))
    assert found == label
    assert hash(found) == hash(label)


def test_an_answer_can_be_registered_by_its_owner() -> None:
    class Answer:
        def __init__(self, query, value, labels) -> None:
            self.query, self.value, self.labels = query, value, labels

    serialize.register(
        "answer of this test",
        Answer,
        lambda a: {"query": serialize.encode(a.query), "value": write_value(a.value), "labels": write_value(a.labels)},
        lambda query, value, labels: Answer(
            serialize.decode("query", query, hr.Query), read_value(value), read_value(labels)
        ),
    )
    answer = Answer(hr.marginal("sex"), np.array([0.25, 0.75]), (("sex", ("F", None)),))
    found = sent(answer)
    assert (found.query, found.value.tolist(), found.labels) == (answer.query, [0.25, 0.75], answer.labels)
    with pytest.raises(InvalidInput, match="fields of 'answer of this test' must be labels, query, value"):
        serialize.from_json({"v": 1, "kind": "answer of this test"})
    with pytest.raises(InvalidInput, match="a new kind and a new type"):
        serialize.register("count", int, lambda i: {}, lambda: 0)
