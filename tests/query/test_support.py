"""The basis of an answer follows from the measured sets alone, and is stated in words."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.query.support import MEASURED, MeasuredSets, SeparatedPair, Support
from hedgerow.serialize.registry import decode, encode

ORDER = ("a", "b", "c", "d", "e")


@pytest.mark.parametrize(
    ("sets", "asked", "kind", "words"),
    [
        ([("a", "b")], ("a", "b"), "measured", "measured together"),
        ([("a", "b", "c")], ("a", "c"), "measured", "measured together"),
        ([("a",)], ("a",), "measured", "measured"),
        ([("a", "b"), ("b", "c"), ("a", "c")], ("a", "b", "c"), "inferred", "the measured parts a × b, a × c, b × c"),
        ([("a",), ("b",)], ("a", "b"), "assumed", "a and b were never measured together: assumed independent"),
        ([("a", "b"), ("b", "c")], ("a", "c"), "assumed", "assumed independent given b"),
        ([("a", "b", "d"), ("b", "c", "d")], ("a", "b", "c"), "assumed", "assumed independent given b and d"),
        ([], (), "measured", "measured"),
    ],
)
def test_an_answer_is_measured_or_inferred_or_assumed(sets, asked, kind, words) -> None:
    found = MeasuredSets(sets, ORDER).support([asked])
    assert found.kind == kind
    assert words in str(found)


def test_no_choice_of_measured_sets_calls_a_pair_measured_that_is_in_none_of_them() -> None:
    every = [s for k in (1, 2, 3) for s in itertools.combinations(ORDER[:4], k)]
    for sets in itertools.combinations(every, 3):
        found = MeasuredSets(sets, ORDER)
        for asked in every:
            support = found.support([asked])
            covered = any(set(asked) <= set(s) for s in sets)
            unseen = {pair for pair in itertools.combinations(asked, 2) if not any(set(pair) <= set(s) for s in sets)}
            assert (support.kind == "measured") == covered or not asked
            assert {(each.first, each.second) for each in support.separated} == unseen
            assert (support.kind == "assumed") == bool(unseen) or (len(asked) == 1 and not covered)


def test_a_question_of_several_tables_has_the_weakest_support_of_them() -> None:
    measured = MeasuredSets([("a", "b"), ("c",)], ORDER)
    found = measured.support([("a", "b"), ("a", "c")])
    assert found.kind == "assumed" and found.missing == (("a", "c"),)
    assert found.join_with(MEASURED).kind == "assumed" == MEASURED.join_with(found).kind


def test_support_is_sent_and_read_again() -> None:
    support = Support("assumed", (("a", "b"),), (SeparatedPair("a", "c", ("b",)),), (("a", "c"),))
    answer = hr.Answer(hr.count(a=1), 0.5, 0.1, "hypothesis", 0.0, support=support)
    assert decode("answer", encode(answer), hr.Answer).support == support
    without = hr.Answer(hr.count(a=1), 0.5, 0.1, "hypothesis", 0.0)
    assert "support" not in encode(without) and decode("answer", encode(without), hr.Answer).support is None
    for wrong in ({"kind": "known"}, [], {**encode(answer)["support"], "separated": [["a"]]}):
        with pytest.raises(hr.InvalidInput, match="must be"):
            decode("answer", {**encode(answer), "support": wrong}, hr.Answer)


def table(columns: int, rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    first = rng.integers(0, 2, rows)
    return pd.DataFrame(
        {f"c{i}": np.where(rng.random(rows) < 0.7, first, rng.integers(0, 2, rows)) for i in range(columns)}
    )


@pytest.fixture(scope="module")
def session() -> hr.Session:
    universe = hr.Universe({f"c{i}": hr.Flag() for i in range(4)})
    workload = [hr.marginal("c0", "c1"), hr.marginal("c2"), hr.marginal("c3")]
    with pytest.warns(hr.NotPrivateWarning):
        return hr.open(table(4, 2000), universe=universe, budget=hr.Budget(1.0, 1e-6), workload=workload, seed=1)


def test_a_session_says_of_every_answer_what_it_rests_on(session) -> None:
    together, apart = session.ask(hr.count(c0=True, c1=True)), session.ask(hr.count(c0=True, c3=True))
    assert together.support.kind == "measured" and apart.support.kind == "assumed"
    assert "never measured together" in str(apart) and "assumed" in repr(apart)
    assert (together - apart).support.kind == "assumed"
    assert session.ask(hr.group_by("c0").mean("c1")).support.kind == "measured"


def test_a_purchase_comes_from_a_measurement(session) -> None:
    free = session.ask(hr.count(c1=True, c3=True))
    bought = session.ask(hr.count(c1=True, c3=True), within=free.error / 3)
    assert bought.cost > 0 and bought.support == MEASURED


def test_the_measured_tables_are_listed_with_their_noise(session) -> None:
    listed = {one.attributes: one for one in session.measured}
    assert ("c0", "c1") in listed and ("c0", "c3") not in listed
    assert all(0 < one.noise < 2000 and one.cells == 2 ** len(names) for names, one in listed.items())
    assert list(session.measured.frame.columns) == ["attributes", "cells", "noise"]
    assert "c0 × c1: 4 cells" in str(session.measured)


def test_an_explanation_names_the_assumption_the_workload_and_the_price(session) -> None:
    said = session.ask(hr.count(c0=True, c2=True)).explain(session)
    assert "c0 and c2 were never measured together" in said
    assert "hr.marginal('c0', 'c2')" in said
    assert "% of the budget" in said or "is free" in said
    assert "% of the budget" not in session.ask(hr.count(c0=True, c2=True)).explain()
