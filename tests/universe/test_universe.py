"""The public universe: declarations, coded predicates, and refusals of undeclared values."""

from __future__ import annotations

import json

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import InvalidInput


@pytest.fixture
def universe() -> hr.Universe:
    return hr.Universe(
        age=hr.Range(17, 90, bins=8), sex=hr.Categories(["F", "M"]), smoker=hr.Flag(), children=hr.Integers(0, 4)
    )


def test_the_size_is_exact_however_large() -> None:
    universe = hr.Universe.from_sizes({f"bit{i}": 3 for i in range(300)})
    assert universe.size == 3**300


def test_a_domain_file_declares_integer_coded_columns(tmp_path) -> None:
    path = tmp_path / "domain.json"
    path.write_text(json.dumps({"age": 85, "income>50K": 2}))
    universe = hr.Universe.from_json(path)
    assert universe.shape == (85, 2)
    assert universe["age"].mask((3, 5)).nonzero()[0].tolist() == [3, 4, 5]


def test_names_are_put_in_universe_order_once_each(universe) -> None:
    assert universe.order(["smoker", "age", "smoker"]) == ("age", "smoker")


def test_a_value_a_set_a_range_a_mask_and_a_negation_select_cells(universe) -> None:
    assert universe["sex"].mask("F").tolist() == [True, False]
    assert universe["children"].mask({0, 4}).nonzero()[0].tolist() == [0, 4]
    assert universe["children"].mask((1, 3)).nonzero()[0].tolist() == [1, 2, 3]
    assert universe["children"].mask((None, 1)).nonzero()[0].tolist() == [0, 1]
    assert universe["children"].mask(hr.not_(0)).nonzero()[0].tolist() == [1, 2, 3, 4]
    assert universe["smoker"].mask(np.array([False, True])).tolist() == [False, True]


def test_a_bin_is_in_a_range_when_its_representative_is(universe) -> None:
    middles = universe["age"].values
    assert universe["age"].mask((40, 65)).tolist() == [40 <= m <= 65 for m in middles]


def test_a_number_selects_the_bin_that_holds_it(universe) -> None:
    age = universe["age"]
    assert age.cell(17) == 0
    assert age.cell(90) == 7
    assert age.cell(age.edges[1]) == 1


def test_representatives_can_be_stated() -> None:
    visits = hr.Range(edges=[0, 1, 5, 80], values=[0, 2, 10])
    assert visits.values.tolist() == [0, 2, 10]


def test_the_other_cell_is_last_and_can_be_asked_for() -> None:
    region = hr.Categories(["north", "south"], other=True)
    assert region.size == 3
    assert region.mask(hr.OTHER).tolist() == [False, False, True]


def test_universes_are_values(universe) -> None:
    again = hr.Universe({name: universe[name] for name in universe.names})
    assert again == universe
    assert hash(again) == hash(universe)
    assert hr.Universe(a=hr.Range(0, 1, bins=2)) != hr.Universe(a=hr.Range(0, 2, bins=2))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: hr.Universe(), "A universe must have at least one attribute. Found none."),
        (lambda: hr.Universe(a=3), "Attribute 'a' must be a Range, Categories, Dates, Flag or Integers. Found int."),
        (lambda: hr.Range(5, 1, bins=2), "must be finite and increasing. Found [5.0, 3.0, 1.0]"),
        (lambda: hr.Range(0, float("nan"), bins=2), "must be finite numbers. Found (0, nan)"),
        (lambda: hr.Range(0, 1, bins=0), "bins must be a whole number of at least 1. Found 0."),
        (lambda: hr.Range(0, 1), "must have low, high and bins, or edges"),
        (lambda: hr.Range(edges=[0, 1, 2], values=[1]), "must be 2 finite numbers, one per bin. Found 1."),
        (lambda: hr.Categories([]), "Categories must have at least one value. Found none."),
        (lambda: hr.Categories(["a", "a"]), "Categories must be distinct."),
        (lambda: hr.Integers(3, 1), "Integers must have whole ends with low <= high. Found (3, 1)."),
        (lambda: hr.Universe.from_sizes({"a": 0}), "The size of 'a' must be a whole number of at least 1. Found 0."),
        (lambda: hr.Universe.from_json("nowhere.json"), "The domain file must exist. Found nothing at 'nowhere.json'."),
    ],
)
def test_a_bad_declaration_is_refused_by_name(make, words) -> None:
    with pytest.raises(InvalidInput) as refused:
        make()
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (hr.count(height=3), "An attribute must be one of 'age', 'sex', 'smoker', 'children'. Found 'height'."),
        (hr.count(sex="X"), "Attribute 'sex': A value must be one that the universe declares: 'F', 'M'. Found 'X'."),
        (hr.count(age=200), "Attribute 'age': A value must be one that the universe declares"),
        (hr.count(age=(65, 40)), "A range must have low <= high. Found (65, 40). Swap the two ends."),
        (hr.count(age=(1, 2, 3)), "A range must be (low, high). Found (1, 2, 3)."),
        (hr.count(sex=("F", "M")), "A range must be for an attribute with an order."),
        (hr.count(sex=np.array([True])), "A mask must have one entry per cell (2). Found shape (1,)."),
        (hr.linear("sex", [0.5, np.nan]), "Weights must be numbers. Found NaN."),
        (hr.linear("sex", [0.5, 1.5]), "Weights must lie in [0, 1]. Found 0.5 … 1.5."),
        (hr.linear("sex", [0.5]), "Weights must have shape (2,), one number per cell of ('sex',). Found (1,)."),
        (hr.linear(("sex", "sex"), np.ones((2, 2))), "The attributes of a query must be distinct."),
        (hr.mean("sex"), "A mean must be of a numeric attribute. Found 'sex'"),
        (hr.parity("age"), "A parity must have two-valued attributes. Found 'age' with 8 values."),
        (hr.count(sex="F") & hr.linear("smoker", [0.5, 1]), "must be true or false for each record"),
    ],
)
def test_a_bad_question_is_refused_by_name(universe, query, words) -> None:
    with pytest.raises(InvalidInput) as refused:
        query.on(universe)
    assert words in str(refused.value)


def test_only_counts_combine() -> None:
    with pytest.raises(InvalidInput, match="must be a count"):
        hr.count(sex="F") & hr.marginal("sex")


def test_the_meaning_of_a_universe_cannot_be_changed_afterwards() -> None:
    given = np.array([1.0, 2.0])
    attribute = hr.Range(0, 2, bins=2, values=given)
    given[0] = 100.0
    assert attribute.values.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        attribute.values[0] = 100.0


def test_a_label_that_is_the_extra_cells_own_is_refused() -> None:
    with pytest.raises(hr.InvalidInput, match=r"must not list '\(other\)' with other=True"):
        hr.Categories(["a", hr.OTHER], other=True)
