"""Titles state a question in plain words, without names of classes or brackets of calls."""

from __future__ import annotations

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.display.pictures import is_ordered
from hedgerow.display.titles import sentence, title, unit

F, OLD = hr.count(sex="F"), hr.count(age=(40, 65))
TOLD = [
    (hr.count(), "all rows"),
    (hr.count(sex="F", age=(40, 65)), "rows where sex is F and age is 40 to 65"),
    (hr.count(age=(None, 30)), "rows where age is at most 30"),
    (hr.count(smoker=True), "rows where smoker holds"),
    (hr.count(smoker=hr.not_(True)), "rows where smoker does not hold"),
    (hr.count(region=hr.not_("north")), "rows where region is not north"),
    (hr.count(region={"b", "a", "c"}), "rows where region is a, b or c"),
    (hr.count(age=np.arange(9) < 2), "rows where age is in 2 of 9 cells"),
    (F | OLD, "rows where sex is F or age is 40 to 65"),
    (~(F | OLD), "rows where not (sex is F or age is 40 to 65)"),
    (hr.marginal("age", "sex"), "rows by age and sex"),
    (hr.mean("age", where=F), "mean of age where sex is F"),
    (hr.mean("age"), "mean of age"),
    (hr.median("age"), "median of age"),
    (hr.quantile("age", 0.9, where=F), "90 % quantile of age where sex is F"),
    (hr.share(OLD, where=F), "share where age is 40 to 65, among rows where sex is F"),
    (hr.group_by("sex").mean("age"), "mean of age, by sex"),
    (hr.group_by("sex").share(OLD), "share where age is 40 to 65, by sex"),
    (hr.relative_risk(OLD, F, ~F), "relative risk of age is 40 to 65: sex is F, against sex is not F"),
    (hr.odds_ratio(OLD, F, ~F), "odds ratio of age is 40 to 65: sex is F, against sex is not F"),
    (hr.trend("income", over="age"), "trend of mean of income over age"),
    (hr.cramers_v("age", "sex"), "association of age and sex (Cramér's V)"),
    (hr.ratio(hr.mean("age", where=F), hr.mean("age")), "mean of age where sex is F, divided by mean of age"),
    (hr.compare(hr.group_by("sex").mean("age"), against="F"), "mean of age, by sex: differences, each against sex is F"),
    (hr.compare(hr.group_by("sex").mean("age")), "mean of age, by sex: differences, all pairs"),
    (hr.interpolated_quantile("age", 0.25), "25 % quantile of age"),
    (hr.survival("days", "died"), "share without the event (died holds), by days"),
    (hr.group_by("sex").count(), "rows, by sex"),
    (hr.difference(hr.mean("age", where=F), hr.mean("age")), "mean of age where sex is F, minus mean of age"),
    (hr.histogram("age", edges=[0, 40, 90]), "rows by age"),
    (hr.total("visits"), "sum of visits"),
    (hr.correlation("age", "visits"), "correlation of age and visits"),
    (hr.top("job", 5), "the 5 most frequent values of job"),
    (hr.minimize(hr.losses.Logistic(target="smoker", features=["age", "sex"]), hr.L2Ball(1)),
     "logistic model of smoker on age and sex"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "told"), TOLD, ids=[told for _, told in TOLD])
def test_a_question_in_plain_words(query: hr.Query, told: str) -> None:
    assert title(query) == told
    assert sentence(query) == told[0].upper() + told[1:]


def test_the_unit_of_an_axis() -> None:
    gap = hr.compare(hr.group_by("sex").mean("age"), against="F")
    assert unit(gap, True) == "difference in mean of age"  # and no number of rows
    assert (
        unit(hr.difference(F, OLD), False) == "difference in share of rows" and unit(hr.ratio(F, OLD), True) == "ratio"
    )
    assert unit(F, False) == "share of rows" and unit(hr.marginal("age"), True) == "number of rows"
    assert unit(hr.group_by("sex").mean("age", where=OLD), False) == "mean of age"


def test_a_question_shows_itself_as_it_is_written() -> None:
    assert repr(hr.median("age")) == "quantile('age', 0.5)"
    assert repr(hr.group_by("sex").mean("age")) == "group_by('sex').mean('age')"
    assert repr(hr.group_by("sex").count(OLD)) == "group_by('sex').count(count(age=(40, 65)))"
    assert (
        repr(hr.interpolated_quantile("age", 0.25, where=F))
        == "interpolated_quantile('age', 0.25, where=count(sex='F'))"
    )


def test_the_order_of_numbers_intervals_and_dates_means_something() -> None:
    assert is_ordered([0, 1, 2, "(missing)"]) and is_ordered(["[0, 5)", "[5, 9)", "[9, 12]", "(other)"])
    assert is_ordered(["2020-01", "2020-02", "2020-03"]) and is_ordered(["2020-Q1", "2020-Q2", "2020-Q3"])
    assert is_ordered(["2019", "2020", "2021"]) and is_ordered(["Monday", "Tuesday", "Wednesday"])
    assert not is_ordered(["a", "b", "c"]) and not is_ordered([False, True])
