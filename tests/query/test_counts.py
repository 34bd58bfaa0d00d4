"""Queries are values: every way of writing a function of a record is the same query, evaluated alike."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.query import linear
from hedgerow.query.linear import Linear, answer_all

UNIVERSE = hr.Universe(age=hr.Integers(0, 4), sex=hr.Categories(["F", "M"]), smoker=hr.Flag(), retired=hr.Flag())


def by_brute_force(query: hr.Query) -> np.ndarray:
    """The query's value on every record of the universe, evaluated record by record through its symbols."""
    values = np.empty(UNIVERSE.shape)
    for cell in itertools.product(*map(range, UNIVERSE.shape)):
        values[cell] = _holds(query, dict(zip(UNIVERSE.names, cell, strict=True)))
    return values


def _holds(query, record) -> bool:
    kind = type(query).__name__
    if kind == "Count":
        return all(UNIVERSE[name].mask(p)[record[name]] for name, p in query.predicates)
    if kind == "Not":
        return not _holds(query.part, record)
    if kind == "CombinedQuery":
        return (all if query.operation == "and" else any)(_holds(part, record) for part in query.parts)
    return sum(record[name] for name in set(query.attributes)) % 2 == 1


def spread(query: Linear) -> np.ndarray:
    sizes = dict(zip(query.attributes, query.shape, strict=True))
    return np.broadcast_to(query.table.reshape([sizes.get(n, 1) for n in UNIVERSE.names]), UNIVERSE.shape)


counts = st.one_of(
    st.sampled_from(["F", "M"]).map(lambda v: hr.count(sex=v)),
    st.booleans().map(lambda v: hr.count(smoker=v)),
    st.sets(st.integers(0, 4), min_size=1).map(lambda v: hr.count(age=v)),
    st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda e: hr.interval("age", min(e), max(e))),
    st.integers(0, 4).map(lambda v: hr.threshold("age", v)),
    st.integers(0, 4).map(lambda v: hr.count(age=hr.not_(v))),
    st.just(hr.parity("smoker", "retired")),
    st.just(hr.conjunction("smoker", "retired")),
)
expressions = st.recursive(
    counts,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] & p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] | p[1]),
        inner.map(lambda q: ~q),
    ),
    max_leaves=6,
)


@given(expressions)
def test_a_bound_query_is_the_function_that_was_written(query) -> None:
    assert np.array_equal(spread(query.on(UNIVERSE)), by_brute_force(query))


@given(expressions, expressions)
def test_two_bound_queries_are_equal_exactly_when_they_are_the_same_function(first, second) -> None:
    a, b = first.on(UNIVERSE), second.on(UNIVERSE)
    assert (a == b) == np.array_equal(spread(a), spread(b))


@given(expressions)
def test_a_table_spelled_out_is_the_same_query(query) -> None:
    bound = query.on(UNIVERSE)
    written = hr.linear(UNIVERSE.names, by_brute_force(query)).on(UNIVERSE)
    assert written == bound
    assert hash(written) == hash(bound)


@given(st.permutations(list(UNIVERSE.names)), st.integers(0, 2**32 - 1))
def test_the_order_in_which_attributes_are_named_does_not_matter(names, seed) -> None:
    table = np.random.default_rng(seed).random(UNIVERSE.shape)
    axes = [UNIVERSE.index(n) for n in names]
    assert hr.linear(names, table.transpose(axes)).on(UNIVERSE) == hr.linear(UNIVERSE.names, table).on(UNIVERSE)


@given(expressions, st.integers(0, 2**32 - 1))
def test_the_answer_is_the_inner_product_with_the_marginal(query, seed) -> None:
    joint = np.random.default_rng(seed).dirichlet(np.ones(UNIVERSE.size)).reshape(UNIVERSE.shape)
    bound = query.on(UNIVERSE)
    away = tuple(i for i, n in enumerate(UNIVERSE.names) if n not in bound.attributes)
    expected = (by_brute_force(query) * joint).sum()
    assert bound.dot(joint.sum(axis=away)) == pytest.approx(expected, abs=1e-12)
    several = answer_all([bound] * 3, lambda names: joint.sum(axis=away))
    assert several == pytest.approx([expected] * 3, abs=1e-12)


@pytest.mark.parametrize("at_once", [1 << 22, 3000])
def test_many_answers_from_a_wide_marginal_are_those_of_one_by_one(at_once, monkeypatch) -> None:
    monkeypatch.setattr(linear, "AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    universe = hr.Universe.from_sizes({"a": 12, "b": 2, "c": 31, "d": 5, "e": 23})
    marginal = rng.dirichlet(np.ones(universe.size)).reshape(universe.shape)
    assert marginal.size > linear.WIDE
    masks = [
        {n: np.arange(m) < rng.integers(1, m) for n, m in zip("abcde", universe.shape, strict=True)} for _ in range(9)
    ]
    weighted = [np.where(np.arange(12) < 5, 0.25, 0.5), *([True] + [False] * (m - 1) for m in universe.shape[1:])]
    asked = [*(Linear.product(universe, m) for m in masks), Linear.of_vectors(universe.names, weighted)]
    assert answer_all(asked, lambda _: marginal) == pytest.approx([q.dot(marginal) for q in asked], rel=1e-12)
    counts = rng.integers(0, 10**6, universe.shape)
    assert answer_all(asked[:9], lambda _: counts).tolist() == [float(q.dot(counts)) for q in asked[:9]]  # exactly


def test_questions_written_alike_up_to_order_are_equal_before_they_are_bound() -> None:
    assert hr.count(sex="F", age=(1, 3)) == hr.count({"age": (1, 3)}, sex="F")
    assert hr.count(age={1, 2}) == hr.count(age=[2, 1])
    assert ~~hr.count(sex="F") == hr.count(sex="F")
    assert (hr.count(sex="F") | hr.count(age=1)) == (hr.count(age=1) | hr.count(sex="F"))
    assert hr.count(sex="F") != hr.count(sex="M")
    assert hr.marginal("age", "sex").on(UNIVERSE).key == hr.marginal("sex", "age").on(UNIVERSE).key


def test_a_product_with_one_weighted_axis_is_recognised_however_it_was_built() -> None:
    weights = np.linspace(0, 1, 5)
    among = hr.mean("age", where=hr.count(sex="F")).on(UNIVERSE).numerator
    spelled = hr.linear(("sex", "age"), np.outer([1.0, 0.0], weights)).on(UNIVERSE)
    assert among == spelled
    assert spelled.vectors is not None


def test_a_mean_rescales_the_attribute_to_the_unit_interval() -> None:
    bound = hr.mean("age").on(UNIVERSE)
    assert (bound.low, bound.high) == (0.0, 4.0)
    assert bound.denominator.attributes == ()
    assert bound.numerator.table.tolist() == [0, 0.25, 0.5, 0.75, 1]


def test_the_mean_of_an_attribute_with_an_other_cell_is_over_the_records_that_have_a_value() -> None:
    universe = hr.Universe(age=hr.Integers(0, 2, other=True), sex=hr.Flag())
    bound = hr.mean("age").on(universe)
    assert bound.denominator == hr.count(age=hr.not_(hr.OTHER)).on(universe)
    assert bound.numerator.table.tolist() == [0, 0.5, 1, 0]


def test_constants_depend_on_nothing() -> None:
    assert hr.count().on(UNIVERSE).attributes == ()
    assert hr.count().on(UNIVERSE).dot(np.array(1.0)) == 1.0
    nobody = (hr.count(sex="F") & hr.count(sex="M")).on(UNIVERSE)
    assert nobody.attributes == ()
    assert nobody.dot(np.array(1.0)) == 0.0


def test_a_conjunction_of_many_attributes_needs_no_table() -> None:
    wide = hr.Universe.from_sizes({f"a{i}": 10 for i in range(30)})
    bound = hr.count({f"a{i}": 3 for i in range(30)}).on(wide)
    assert len(bound.attributes) == 30
    with pytest.raises(hr.TooLarge, match=str(10**30)):
        _ = bound.table


def test_workloads_list_their_queries_and_know_their_vc_dimension() -> None:
    bits = hr.Universe.from_sizes({f"b{i}": 2 for i in range(5)})
    assert len(hr.marginals(3).on(bits)) == 10
    assert len(hr.thresholds("age").on(UNIVERSE)) == 5
    assert hr.thresholds("age").vc_dimension(UNIVERSE) == 1
    assert len(hr.intervals("age").on(UNIVERSE)) == 15
    assert hr.intervals("age").vc_dimension(UNIVERSE) == 2
    assert len(hr.parities().on(bits)) == 2**5 - 1
    assert hr.parities().vc_dimension(bits) == 5
    assert len(hr.conjunctions(2, monotone=False).on(bits)) == 5 * 2 + 10 * 4


def _shatters(queries: list[Linear], points: tuple[tuple[int, ...], ...], universe: hr.Universe) -> bool:
    patterns = set()
    for query in queries:
        where = [universe.index(n) for n in query.attributes]
        patterns.add(tuple(bool(query.table[tuple(p[i] for i in where)]) for p in points))
    return len(patterns) == 2 ** len(points)


@pytest.mark.parametrize(
    "workload",
    [hr.thresholds("x"), hr.intervals("x"), hr.parities(), hr.conjunctions(), hr.conjunctions(monotone=False)],
)
def test_the_vc_dimension_is_not_too_small(workload) -> None:
    universe = (
        hr.Universe(x=hr.Integers(0, 3)) if "(" in workload.name else hr.Universe.from_sizes({"a": 2, "b": 2, "c": 2})
    )
    queries = [q.on(universe) for q in workload.on(universe)]
    points = list(itertools.product(*map(range, universe.shape)))
    d = workload.vc_dimension(universe)
    assert not any(_shatters(queries, chosen, universe) for chosen in itertools.combinations(points, d + 1))


def test_a_question_reads_the_same_in_every_process() -> None:
    """The order of a set of texts follows the process's hash seed; a question's text must not."""
    letters = set("hedgrow")
    shown = "{'d', 'e', 'g', 'h', 'o', 'r', 'w'}"
    assert repr(hr.count(letter=letters)) == f"count(letter={shown})"
    assert repr(hr.count(letter=frozenset(letters))) == f"count(letter={shown})"
    assert repr(hr.count(letter=hr.not_(letters))) == f"count(letter=not_({shown}))"
