"""The wording of a bound count parses to the same count."""

from __future__ import annotations

import numpy as np
import pytest
from people import SMALL

import hedgerow as hr
from hedgerow.query.counts import bound
from hedgerow.query.linear import Linear
from hedgerow.query.wording import restate

UNIVERSE = hr.Universe(
    age=hr.Range(0, 80, bins=4), job=hr.Categories(["a", "b", None], other=True), day=hr.Dates("2020-01-01", "2020-12-31", by="month"),
    n=hr.Integers(0, 9, missing=True), smoker=hr.Flag(),
)  # fmt: skip


@pytest.mark.parametrize("name", UNIVERSE.names)
def test_any_cells_of_any_column(name: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        mask = rng.random(UNIVERSE[name].size) < rng.choice([0.2, 0.5, 0.9])
        asked = bound(hr.count({name: mask, "smoker": True}), UNIVERSE)
        assert isinstance(asked, Linear)
        assert bound(restate(asked, UNIVERSE), UNIVERSE) == asked


def test_it_is_short() -> None:
    told = [
        hr.count(age=(2, 5)),
        hr.count(sex="F", smoker=True),
        hr.count(region=3),
        hr.count(age=hr.not_(4)),
        hr.count(),
    ]
    for query in told:
        asked = bound(query, SMALL)
        assert isinstance(asked, Linear)
        assert repr(restate(asked, SMALL)) == repr(query)


def test_months_are_told_by_their_days() -> None:
    asked = bound(hr.count(day=np.arange(12) < 2), UNIVERSE)
    assert isinstance(asked, Linear)
    assert repr(restate(asked, UNIVERSE)) == "count(day=(datetime.date(2020, 1, 1), datetime.date(2020, 2, 29)))"


def test_alternatives_are_told_as_such() -> None:
    for query in (
        hr.count(sex="F") | hr.count(smoker=True),
        hr.count(age=(0, 3)) | hr.count(sex="M") | hr.count(region=2),
    ):
        asked = bound(query, SMALL)
        assert isinstance(asked, Linear)
        again = restate(asked, SMALL)
        assert bound(again, SMALL) == asked
        assert repr(again) == repr(query)


def test_a_query_without_product_form_is_described_by_its_weights() -> None:
    asked = bound(hr.count(sex="F", age=(0, 3)) | hr.count(sex="M", smoker=True), SMALL)
    assert isinstance(asked, Linear)
    assert bound(restate(asked, SMALL), SMALL) == asked
    assert repr(restate(asked, SMALL)).startswith("linear(")
