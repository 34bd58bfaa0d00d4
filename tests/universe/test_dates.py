"""Dates in bins, flags with their own words, missing values as a cell: declarations and questions."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import InvalidInput

D = datetime.date


@pytest.mark.parametrize(
    ("by", "firsts"),
    [
        ("day", 61), ("week", [D(2020, 1, 15), D(2020, 1, 20), D(2020, 1, 27), D(2020, 2, 3)]),
        ("month", [D(2020, 1, 15), D(2020, 2, 1), D(2020, 3, 1)]), ("quarter", [D(2020, 1, 15)]), ("year", [D(2020, 1, 15)]),
    ],
)  # fmt: skip
def test_bins_begin_where_their_period_does_and_end_with_the_range(by, firsts) -> None:
    dates = hr.Dates("2020-01-15", "2020-03-15", by)
    assert dates.plain_labels[: len(firsts)] == tuple(firsts) if isinstance(firsts, list) else dates.size == firsts
    low, high = dates.bounds
    assert np.array_equal(low[1:], high[:-1] + 1)  # no day is in two bins or in none
    assert (dates.plain_labels[0], dates.edges[-1]) == (D(2020, 1, 15), D(2020, 3, 15))
    assert high[-1] - low[0] + 1 == 61


def test_quarters_and_years_go_over_the_year() -> None:
    assert hr.Dates("2019-11-05", "2021-02-01", "quarter").plain_labels == (
        D(2019, 11, 5), D(2020, 1, 1), D(2020, 4, 1), D(2020, 7, 1), D(2020, 10, 1), D(2021, 1, 1),
    )  # fmt: skip
    assert hr.Dates("2019-11-05", "2021-02-01", "year").plain_labels == (D(2019, 11, 5), D(2020, 1, 1), D(2021, 1, 1))
    assert hr.Dates("9998-11-05", "9999-12-31", "year").size == 2


def test_every_date_is_in_the_bin_of_its_period() -> None:
    dates = hr.Dates("2015-01-01", "2024-12-31", "month")
    for day in (D(2015, 1, 1), D(2016, 2, 29), D(2020, 12, 31), D(2024, 12, 31)):
        assert dates.plain_labels[dates.cell(day)] == day.replace(day=1)
        assert (
            dates.cell(day)
            == dates.cell(day.isoformat())
            == dates.cell(datetime.datetime(day.year, day.month, day.day, 23))
        )


def test_a_range_has_dates_as_ends() -> None:
    dates = hr.Dates("2020-01-01", "2020-12-31", "month", missing=True)
    inside = dates.mask((D(2020, 3, 1), D(2020, 5, 31)))
    assert inside.nonzero()[0].tolist() == [2, 3, 4] == dates.mask(("2020-03-01", "2020-05-31")).nonzero()[0].tolist()
    assert dates.mask(hr.not_((D(2020, 3, 1), None))).nonzero()[0].tolist() == [0, 1, 12]
    assert hr.count(d=(D(2020, 3, 1), None)).on(hr.Universe(d=dates)).table.sum() == 10


def test_edges_of_ones_own_are_first_days_and_a_last_one() -> None:
    dates = hr.Dates(edges=["2020-01-01", "2020-03-01", "2020-03-01"])
    assert dates.size == 2 and dates.bounds[1].tolist()[1] == dates.bounds[0].tolist()[1]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: hr.Dates("2020-02-01", "2020-01-01", "day"), "Dates must have low <= high. Found (2020-02-01, 2020-01-01)."),
        (lambda: hr.Dates("2020-02-30", "2020-03-01", "day"), "A date must be a datetime.date"),
        (lambda: hr.Dates(20200101, "2020-03-01", "day"), "A date must be a datetime.date"),
        (lambda: hr.Dates("2020-01-01", "2020-03-01"), "Dates must have low, high and by, or edges."),
        (lambda: hr.Dates("2020-01-01", "2020-03-01", "decade"), "Dates must have low, high and by, or edges."),
        (lambda: hr.Dates(edges=["2020-01-01"]), "must be increasing, at least two"),
        (lambda: hr.Dates(edges=["2020-01-01", "2020-01-01", "2020-02-01"]), "must be increasing, at least two"),
        (lambda: hr.Dates("0001-01-01", "9999-12-31", "day"), "at most 1048576 bins"),
        (lambda: hr.Dates("2020-01-01", "2020-12-31", "month").cell(D(2021, 1, 1)), "A value must be one that the universe declares"),
        (lambda: hr.Dates("2020-01-01", "2020-12-31", "month").cell("spring"), "A date must be"),
        (lambda: hr.Dates("2020-01-01", "2020-12-31", "month").mask(("a", "b")), "A date must be"),
        (lambda: hr.Categories("FM"), "Categories must be a list of values. Found 'FM'."),
        (lambda: hr.Categories(3), "Categories must be a list of values. Found 3."),
        (lambda: hr.Categories([["a"]]), "Categories must be plain values"),
        (lambda: hr.Categories(["a", None], missing=True), "must not list None with missing=True"),
        (lambda: hr.Categories(["a", hr.MISSING], missing=True), "must not list '(missing)' with missing=True"),
        (lambda: hr.Categories(["a", " a"], spaces="strip"), "must differ in more than what spaces='strip'"),
        (lambda: hr.Categories(["a", "A"], case="ignore"), "must differ in more than what spaces="),
        (lambda: hr.Categories(["a"], case="upper"), "spaces must be 'strip' or 'exact', and case"),
        (lambda: hr.Flag(true="x", false=["y", "X "]), "must be either true or false. Found 'x' in both."),
        (lambda: hr.Flag(true=[]), "true must be a word or a number"),
        (lambda: hr.Flag(true=[None]), "true must be a word or a number"),
    ],
)  # fmt: skip
def test_a_bad_declaration_is_refused_by_name(make, words) -> None:
    with pytest.raises(InvalidInput) as refused:
        make()
    assert words in str(refused.value)


def test_none_asks_for_what_is_missing() -> None:
    for attribute in (
        hr.Categories(["Y", "N", None]), hr.Categories(["Y", "N"], missing=True), hr.Integers(0, 1, missing=True),
        hr.Range(0, 2, bins=2, missing=True), hr.Flag(missing=True), hr.Dates("2020-01-01", "2020-01-02", "day", missing=True),
    ):  # fmt: skip
        assert attribute.mask(None).tolist() == [False, False, True]
    both = hr.Integers(0, 1, missing=True, other=True)
    assert both.labels == (0, 1, hr.MISSING, hr.OTHER) and np.isnan(both.values[2:]).all()
    assert both.mask(hr.OTHER).tolist() == [False, False, False, True]
    with pytest.raises(InvalidInput, match="A value must be one that the universe declares"):
        hr.Integers(0, 1).mask(None)


def test_a_mean_is_over_the_records_that_have_a_number() -> None:
    universe = hr.Universe(a=hr.Integers(0, 3, missing=True, other=True))
    bound = hr.mean("a").on(universe)
    assert bound.denominator.table.tolist() == [1, 1, 1, 1, 0, 0]


def test_a_label_is_asked_for_by_the_rule_it_is_read_by() -> None:
    sex = hr.Categories([" Female", "Male"], case="ignore")
    assert sex.cell("female") == sex.cell("Female ") == 0
    with pytest.raises(InvalidInput, match="A value must be one"):
        hr.Categories(["Female"]).cell("female")
    assert hr.Categories(["a", "a "]).spaces == "exact" and hr.Categories(["a", "b "]).spaces == "strip"


PERIODS = {
    "day": D(2020, 2, 1),
    "week": "2020-02-03/2020-02-09",
    "month": "2020-02",
    "quarter": "2020-Q1",
    "year": "2020",
}


@pytest.mark.parametrize("by", PERIODS)
def test_a_label_asks_for_its_whole_bin_as_the_table_shows_it(by) -> None:
    universe = hr.Universe(t=hr.Dates("2019-12-20", "2021-03-15", by, missing=True))
    dates = universe["t"]
    assert PERIODS[by] in dates.labels
    for cell, label in enumerate(dates.labels):
        asked = hr.count(t=label).on(universe)
        assert np.flatnonzero(asked.vectors[0] if asked.vectors else asked.table).tolist() == [cell]
    assert hr.count(t=dates.labels[0]) == hr.count(t=dates.labels[0])


def test_a_text_for_a_longer_period_is_all_its_days() -> None:
    days, months = hr.Dates("2020-01-01", "2021-12-31", "day"), hr.Dates("2020-01-01", "2021-12-31", "month")
    assert days.cover("2020-02").inside.sum() == 29 and days.cover("2020-02").is_exact
    assert days.cover({"2020-Q1", "2021"}).inside.sum() == 91 + 365
    assert np.array_equal(months.cover("2021").inside, months.cover(("2021-01", "2021-12")).inside)
    assert not months.cover(D(2020, 1, 1)).is_exact  # a date is one day, even the first of its month
    for wrong in ("2020-13", "2020-Q5", "0000", "2020-1", "1999", "2020-02-30"):
        with pytest.raises(InvalidInput):
            months.cover(wrong)


def test_a_table_of_dates_keeps_its_fingerprint_when_labels_become_texts() -> None:
    from hedgerow.data.source import declaration_of

    universe = hr.Universe(t=hr.Dates("2020-01-15", "2020-02-15", "month", missing=True))
    assert b"[datetime.date(2020, 1, 15), datetime.date(2020, 2, 1), '(missing)']" in declaration_of(universe)


@pytest.mark.parametrize("by", ["year", "quarter", "month", "week", "day", "weekday", "month of year"])
def test_groups_of_dates_hold_every_day_once(by) -> None:
    universe = hr.Universe(t=hr.Dates("2019-12-20", "2021-03-15", "day", missing=True), a=hr.Flag())
    grouped = hr.group_by("t", by=by).count()
    parts = [part.on(universe) for part in grouped.parts(universe).tolist()]
    total = sum(np.asarray(part.vectors[0] if part.vectors else part.table, int) for part in parts)
    assert (total == 1).all() and len(parts) == len(grouped.axes(universe)[0][1])


def test_a_histogram_of_dates_has_its_first_days_and_both_ends_of_the_last_bin() -> None:
    universe = hr.Universe(t=hr.Dates("2020-01-01", "2020-12-31", "day"))
    bound = hr.histogram("t", ["2020-01-01", D(2020, 2, 1), "2020-03-01"]).on(universe)
    assert bound.labels[0][1] == ("2020-01-01/2020-01-31", "2020-02-01/2020-03-01")
    assert [int(np.sum(part.query.vectors[0])) for part in bound.parts] == [31, 30]
    for wrong in (["2020-02-01", "2020-01-01"], ["2020-01-01"], "2020", ["2020-01-01", 3], 5):
        with pytest.raises(InvalidInput):
            hr.histogram("t", wrong)
