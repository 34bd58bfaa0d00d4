"""Ratios, odds ratios, trends, associations and families of comparisons, on a session and on its file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow import unsafe
from hedgerow.query.counts import Query, bound
from hedgerow.query.parse import question
from hedgerow.query.statistics import GroupContrast
from hedgerow.serialize import dumps, loads

UNIVERSE = hr.Universe(
    group=hr.Categories(["a", "b", "c"]),
    level=hr.Categories(["low", "middle", "high"], missing=True),
    age=hr.Integers(20, 27),
    ill=hr.Flag(),
    cost=hr.Range(0, 100, bins=10),
)
SEX = [hr.count(group="a"), hr.count(group="b")]
QUESTIONS = [
    hr.ratio(hr.mean("cost", SEX[0]), hr.mean("cost", SEX[1])),
    hr.ratio(hr.share(hr.count(ill=True), SEX[0]), hr.count(ill=True)),
    hr.relative_risk(hr.count(ill=True), *SEX),
    hr.odds_ratio(hr.count(ill=True), *SEX),
    hr.odds_ratio(hr.count(ill=True, age=(20, 23)), *SEX),
    hr.trend("cost", over="age"),
    hr.trend(hr.count(ill=True), over="age"),
    hr.trend(hr.count(ill=True), over="level", where=hr.count(group={"a", "b"})),
    hr.cramers_v("group", "ill"),
    hr.cramers_v("level", "ill", where=hr.count(group="a")),
    hr.cramers_v("age", "group"),
    hr.compare(hr.group_by("group").mean("cost"), against="a"),
    hr.compare(hr.group_by("group").mean("cost"), against="c", measure="ratio"),
    hr.compare(hr.group_by("group").share(hr.count(ill=True))),
    hr.compare(hr.group_by("group").share(hr.count(ill=True)), measure="odds ratio"),
    hr.compare(hr.group_by("group").count()),
]


def people(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(8)
    group = rng.choice(["a", "b", "c"], rows, p=[0.5, 0.4, 0.1])
    age = rng.integers(20, 28, rows)
    level = np.where(rng.random(rows) < 0.1, None, rng.choice(["low", "middle", "high"], rows).astype(object))
    ill = rng.random(rows) < 0.15 + 0.04 * (age - 20) + 0.2 * (group == "b")
    cost = np.clip(10 + 2.0 * (age - 20) + 15 * (group == "a") + rng.normal(0, 5, rows), 0, 99.9)
    return pd.DataFrame({"group": group, "level": level, "age": age, "ill": ill, "cost": cost})


FRAME = people(40_000)


@pytest.fixture(scope="module")
def session() -> hr.Session:
    return hr.open(FRAME, universe=UNIVERSE, budget=hr.Budget(2.0, 1e-6), seed=3, progress=False)


@pytest.mark.parametrize("query", QUESTIONS, ids=repr)
def test_the_truth_is_in_the_interval_and_the_question_is_stored_written_and_repeated(session, query: Query) -> None:
    said, truth = session.ask(query), np.asarray(unsafe.unsafe_answer(FRAME, query, UNIVERSE))
    assert said.cost == 0 and said.interval is not None
    low, high = said.interval
    assert np.all((low <= truth + 1e-9) & (truth <= high + 1e-9)), (low, truth, high)
    assert np.all((low <= said.value) & (said.value <= high))
    again = session.ask(query)
    assert again.source == "repeat" and np.array_equal(again.value, said.value)
    assert np.array_equal(again.interval[0], low) and np.array_equal(again.interval[1], high)
    assert loads(dumps(query)) == query
    if not isinstance(query, GroupContrast):
        assert question(repr(query)) == query
    assert bound(loads(dumps(query)), UNIVERSE).key == bound(query, UNIVERSE).key
    assert loads(dumps(said)) == said


def test_differences_are_proven_where_they_exist_and_nowhere_else(session) -> None:
    a, b, c = (hr.count(group=name) for name in "abc")
    assert session.ask(hr.ratio(hr.mean("cost", a), hr.mean("cost", b))).excludes(1)
    assert session.ask(hr.odds_ratio(hr.count(ill=True), b, a)).excludes(1)
    assert not session.ask(hr.odds_ratio(hr.count(ill=True), a, c)).excludes(1)  # equal by construction
    assert session.ask(hr.trend(hr.count(ill=True), over="age")).excludes(0)
    assert session.ask(hr.trend("cost", over="age"), resolution="bins").excludes(0)
    assert session.ask(hr.cramers_v("group", "ill")).excludes(0)
    assert not session.ask(hr.cramers_v("level", "group")).excludes(0)
    proven = session.ask(hr.compare(hr.group_by("group").share(hr.count(ill=True)), against="a")).excludes(0)
    assert proven.tolist() == [True, False]


def test_a_family_has_the_bars_of_its_members_asked_alone(session) -> None:
    family = session.ask(hr.compare(hr.group_by("group").mean("cost")))
    assert family.labels == (("group pair", ("a against b", "a against c", "b against c")),)
    for k, (i, j) in enumerate([("a", "b"), ("a", "c"), ("b", "c")]):
        alone = session.ask(hr.difference(*(hr.mean("cost", hr.count(group=name)) for name in (i, j))))
        assert family.value[k] == pytest.approx(alone.value) and family.error[k] == pytest.approx(alone.error)
    assert session.ask(hr.compare(hr.group_by("group").mean("cost"), against="b")).labels == (("group", ("a", "c")),)


def test_an_interval_with_one_end_excludes_what_is_on_the_other_side() -> None:
    answer = hr.Answer(hr.count(), 3.0, None, "hypothesis", 0.0, lower=1.5)
    assert answer.interval == (1.5, np.inf) and answer.excludes(1) and not answer.excludes(5)
    assert "between 1.5 and inf" in str(answer)
    assert not hr.Answer(hr.count(), 3.0, None, "hypothesis", 0.0).excludes(1)
    table = hr.Answer(hr.marginal("a"), np.array([0.1, 0.4]), np.array([0.2, 0.1]), "hypothesis", 0.0, (("a", (0, 1)),))
    assert table.excludes(0).tolist() == [False, True]
    with pytest.raises(hr.InvalidInput, match="finite"):
        answer.excludes(np.nan)


def test_the_ends_of_a_ratio_are_nearer_than_its_bar_and_shown(session) -> None:
    said = session.ask(hr.odds_ratio(hr.count(ill=True), *SEX))
    assert said.lower is not None and said.lower > said.value - said.error
    assert "guaranteed between" in str(said) and {"lower", "upper"} <= set(said.frame.columns)


def test_the_association_of_two_by_two_has_the_interval_of_the_correlation(session) -> None:
    universe = hr.Universe(a=hr.Flag(), b=hr.Flag())
    rng = np.random.default_rng(1)
    a = rng.random(20_000) < 0.4
    frame = pd.DataFrame({"a": a, "b": a ^ (rng.random(a.size) < 0.3)})
    opened = hr.open(frame, universe=universe, budget=hr.Budget(1.0, 1e-6), seed=3, progress=False)
    strength, correlation = opened.ask(hr.cramers_v("a", "b")), opened.ask(hr.correlation("a", "b"))
    assert strength.value == pytest.approx(correlation.value)
    assert (strength.upper or strength.value + strength.error) == pytest.approx(correlation.interval[1], abs=0.01)


def test_the_strongest_associations_are_free_and_the_same_in_the_file(session, tmp_path) -> None:
    spent, entries = session.spent, len(session.log)
    found = session.associations()
    assert (session.spent, len(session.log)) == (spent, entries)
    assert set(found[0].columns) == {"group", "cost"} or set(found[0].columns) == {"age", "cost"}
    for one in found:
        truth = unsafe.unsafe_answer(FRAME, hr.cramers_v(*one.columns), UNIVERSE)
        assert one.lower <= truth + 1e-9 and truth <= one.upper + 1e-9
    assert len(found.frame) == 10 and found.frame["proven"].iloc[0] and not found.frame["proven"].iloc[-1]
    release = hr.load(session.publish(tmp_path / "people.hedgerow"))
    assert str(release.associations()) == str(found) and str(release.associations(3)) == "\n".join(map(str, found[:3]))
    assert "not proven" in str(found) and "Cramér" in found._repr_html_()
    with pytest.raises(hr.InvalidInput, match="most must be"):
        session.associations(0)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: hr.ratio(hr.mean("cost"), 3), "A ratio must have two questions"),
        (lambda: hr.ratio(hr.marginal("ill"), hr.mean("cost")).on(UNIVERSE), "A ratio must be between two numbers"),
        (lambda: hr.ratio(hr.correlation("age", "cost"), hr.mean("cost")).on(UNIVERSE), "cannot be negative"),
        (lambda: hr.odds_ratio(hr.count(ill=True), hr.mean("age"), hr.count()), "must be a count"),
        (lambda: hr.trend(hr.mean("age", where=hr.count(ill=True)), over="cost"), "A trend must be of a numeric"),
        (lambda: hr.trend("age", over="age").on(UNIVERSE), "two attributes"),
        (lambda: hr.trend("group", over="age").on(UNIVERSE), "numeric attribute"),
        (lambda: hr.cramers_v("age", "age").on(UNIVERSE), "two attributes"),
        (lambda: hr.cramers_v("age", "ill", where=hr.count(cost=(3, 9))).on(UNIVERSE), "must not cut bins"),
        (lambda: hr.compare(hr.mean("age")), "for each value of one attribute"),
        (lambda: hr.compare(hr.group_by("group").count(), measure="quotient"), "measure must be one of"),
        (lambda: hr.compare(hr.group_by("group").count(), against=hr.count(group={"a", "b"})).on(UNIVERSE), "one value"),
        (lambda: hr.compare(hr.group_by("group").mean("age"), measure="odds ratio").on(UNIVERSE), "two shares"),
    ],
)  # fmt: skip
def test_incomparable_values_are_refused(ask, words: str) -> None:
    with pytest.raises(hr.InvalidInput, match=words):
        ask()
