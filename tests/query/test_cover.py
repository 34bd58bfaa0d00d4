"""A predicate on values, as it is read on the cells that contain them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.data.coding import Coder

AGE = hr.Range(17, 90, bins=8, whole=True)
WAGE = hr.Range(edges=[0, 10, 20, 40])
ranges = st.tuples(st.integers(-5, 25), st.integers(-5, 25)).map(sorted).map(tuple)
halves = ranges.map(lambda ends: (ends[0] / 2, ends[1] / 2))
predicates = st.one_of(
    ranges.filter(lambda ends: ends[1] >= 0 and ends[0] <= 20),
    halves.filter(lambda ends: ends[1] >= 0),
    st.integers(0, 20),
    st.sets(st.integers(0, 20), max_size=6),
)
attributes = st.one_of(
    st.lists(st.integers(1, 19), max_size=4, unique=True).map(lambda inner: hr.Range(edges=[0, *sorted(inner), 20])),
    st.lists(st.integers(1, 19), max_size=4, unique=True).map(
        lambda inner: hr.Range(edges=[0, *sorted(inner), 20], whole=True, other=True)
    ),
    st.integers(1, 8).map(lambda bins: hr.Range(0, 20, bins=bins, whole=True)),
    st.just(hr.Integers(0, 20)),
)


def satisfies(predicate, value: float) -> bool:
    """Return True if the value satisfies the predicate, by the definition."""
    if isinstance(predicate, hr.not_):
        return not satisfies(predicate.predicate, value)
    if isinstance(predicate, tuple):
        return predicate[0] <= value <= predicate[1]
    return value in (predicate if isinstance(predicate, set) else {predicate})


@given(attributes, st.lists(predicates, min_size=1, max_size=2), st.booleans())
def test_a_cell_is_inside_when_all_it_may_hold_is_meant_and_touched_when_anything_is(
    attribute, wanted, negated
) -> None:
    asked = [hr.not_(p) for p in wanted] if negated else wanted
    if not negated and len(wanted) == 2 and all(isinstance(p, tuple) for p in wanted):
        low, high = max(p[0] for p in wanted), min(p[1] for p in wanted)
        if low <= high and (high < 0 or low > 20):
            return  # where no record can be
    cover = attribute.cover(*asked)
    step = 1.0 if attribute.is_whole else 0.25
    seen: dict[int, list[bool]] = {}
    for value in np.arange(-2, 23, step):
        cell = Coder(attribute).cell(float(value))
        if attribute.other and cell == attribute.size - 1:
            continue
        counts_as = min(max(float(value), 0.0), 20.0)
        seen.setdefault(cell, []).append(all(satisfies(p, counts_as) for p in asked))
    for cell, hits in seen.items():
        assert not cover.inside[cell] or all(hits)
        assert cover.touched[cell] or not any(hits)
        assert 0 <= cover.share[cell] <= 1
        assert cover.share[cell] == 1 or not cover.inside[cell]
        assert cover.share[cell] == 0 or cover.touched[cell]
        if len(asked) == 1:  # and no more is left open than there is
            assert cover.inside[cell] == all(hits) or not attribute.is_whole
            assert cover.touched[cell] == any(hits)


def test_the_share_of_whole_numbers_is_how_many_of_a_bin_are_meant() -> None:
    assert AGE.cover((40, 65)).share == pytest.approx([0, 0, 5 / 9, 1, 1, 3 / 9, 0, 0])
    assert AGE.cover(25).share == pytest.approx([1 / 10, 0, 0, 0, 0, 0, 0, 0])
    assert AGE.cover({27, 28, 90}).share == pytest.approx([0, 2 / 9, 0, 0, 0, 0, 0, 1 / 10])


def test_the_share_of_a_continuous_bin_is_its_length_and_of_one_value_that_of_a_whole_number() -> None:
    assert WAGE.cover((5, 25)).share == pytest.approx([0.5, 1, 0.25])
    assert WAGE.cover(30).share == pytest.approx([0, 0, 1 / 20])
    assert WAGE.cover(30.5).share.tolist() == [0, 0, 0]
    assert WAGE.cover(30.5).touched.tolist() == [False, False, True]
    assert WAGE.cover((0, 10)).touched.tolist() == [True, True, False]  # 10 itself is in the second bin


def test_labels_masks_and_whole_bins_are_exact() -> None:
    for predicate in (
        WAGE.labels[1],
        {WAGE.labels[0], WAGE.labels[2]},
        np.array([True, False, True]),
        (0, 40),
        (None, 99),
    ):
        assert WAGE.cover(predicate).is_exact
    assert AGE.cover((27, 44)).is_exact
    assert AGE.cover(set(range(17, 27))).is_exact
    assert AGE.cover(hr.not_((27, 44))).touched.tolist() == [True, False, False, True, True, True, True, True]


def test_a_negation_swaps_what_is_inside_and_what_is_not_touched() -> None:
    cover, negated = WAGE.cover((5, 25)), WAGE.cover(hr.not_((5, 25)))
    assert np.array_equal(negated.inside, ~cover.touched)
    assert np.array_equal(negated.touched, ~cover.inside)
    assert negated.share == pytest.approx(1 - cover.share)


def test_two_ranges_of_one_attribute_are_their_intersection() -> None:
    assert WAGE.cover((2, 8), (5, 30)).share == pytest.approx(WAGE.cover((5, 8)).share)
    assert not WAGE.cover((2, 3), (5, 6)).touched.any()


def test_whole_bins_have_whole_edges_and_means() -> None:
    assert AGE.edges == (17, 27, 36, 45, 54, 63, 72, 81, 90)
    assert AGE.bounds[0].tolist() == [17, 27, 36, 45, 54, 63, 72, 81]
    assert AGE.bounds[1].tolist() == [26, 35, 44, 53, 62, 71, 80, 90]
    assert AGE.values[0] == 21.5
    for value in range(10, 100):  # whole numbers are in the bins that they would be in without it
        assert Coder(AGE).cell(value) == Coder(hr.Range(17, 90, bins=8)).cell(value)


def test_cells_without_a_number_have_no_bounds() -> None:
    assert hr.Categories(["a"]).bounds is None
    assert math.isnan(hr.Range(0, 1, bins=2, other=True).bounds[0][-1])
    assert hr.Integers(3, 4).bounds[1].tolist() == [3, 4]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: hr.Range(0.5, 9, bins=2, whole=True), "The ends of a Range of whole numbers must be whole. Found 0.5"),
        (lambda: hr.Range(0, 3, bins=6, whole=True), "must each hold one. Found 6 bins from 0 to 3."),
        (lambda: AGE.cover((91, 100)), "must overlap the declared range, 17 to 90. Found (91, 100)"),
        (lambda: hr.Integers(0, 3).cover((7, 9)), "must overlap the declared range, 0 to 3."),
        (lambda: hr.Integers(10**299, 10**299 + 3).cover((7, 9)), "100000000000… (300 characters). Found (7, 9)"),
        (lambda: AGE.cover(25.5), "A value must be one that the universe declares"),
        (lambda: AGE.cover(16), "A value must be one that the universe declares"),
        (lambda: AGE.cover(("a", "b")), "The ends of a range must be numbers, or None. Found 'a'."),
    ],
)
def test_impossible_predicates_are_refused_by_name(make, words) -> None:
    with pytest.raises(hr.InvalidInput) as refused:
        make()
    assert words in str(refused.value)
