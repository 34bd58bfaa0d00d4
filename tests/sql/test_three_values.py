"""True, false and NULL: WHERE keeps the same records, and HAVING the same groups, as DuckDB."""

from __future__ import annotations

import itertools
import math
import random

import checking
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.answer import Answer
from hedgerow.sql import run_statement

UNIVERSE = hr.Universe(f=hr.Flag(missing=True), m=hr.Categories(["p", "q", None]), k=hr.Integers(0, 2, missing=True))
ATOMS = (
    "f",
    "m = 'p'",
    "m IN ('q', NULL)",
    "m IN (NULL)",
    "k > 0",
    "k BETWEEN 1 AND 2",
    "m IS NULL",
    "f IS NULL",
    "NULL",
    "TRUE",
)
AROUND = ("{}", "NOT ({})", "({}) IS TRUE", "({}) IS FALSE", "({}) IS NOT TRUE", "({}) IS NOT FALSE")
AT_ONCE = 40


@pytest.fixture(scope="module")
def truth() -> checking.Truth:
    """Every combination of values, each with a number of records of its own."""
    every = itertools.product([True, False, None], ["p", "q", None], [0, 2, None])
    rows = [values for i, values in enumerate(every) for _ in range((i + 1) ** 2)]
    f, m, k = zip(*rows, strict=True)
    frame = pd.DataFrame({"f": pd.array(f, "boolean"), "m": list(m), "k": pd.array(k, "Int64")})
    return checking.Truth(frame, UNIVERSE)


def twice_around(atom: str) -> list[str]:
    return [outer.format(inner.format(atom)) for outer in AROUND for inner in AROUND]


def joined(how_many: int) -> list[str]:
    choice = random.Random(0).choice
    found = []
    for _ in range(how_many):
        left, right = (choice(AROUND).format(choice(ATOMS)) for _ in range(2))
        found.append(choice(AROUND).format(f"({left}) {choice(['AND', 'OR'])} ({right})"))
    return found


@pytest.mark.parametrize("conditions", [*map(twice_around, ATOMS), joined(200)], ids=[*ATOMS, "joined"])
def test_a_condition_counts_the_records_of_which_it_is_true(truth, conditions) -> None:
    for start in range(0, len(conditions), AT_ONCE):
        some = conditions[start : start + AT_ONCE]
        outputs = ", ".join(f"count(*) FILTER (WHERE {each}) AS x{i}" for i, each in enumerate(some))
        ours, theirs = (ask(f"SELECT {outputs} FROM data").iloc[0] for ask in (truth.ours, truth.theirs))
        wrong = [each for i, each in enumerate(some) if ours[f"x{i}"] != theirs[f"x{i}"]]
        assert not wrong


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT m, count(*) AS n FROM data GROUP BY 1 ORDER BY 2 DESC",
        "SELECT count(*) AS n, m FROM data GROUP BY 2 ORDER BY 1",
        "SELECT f, count(*) AS n FROM data WHERE f IS NOT NULL GROUP BY f HAVING stddev_pop(k) > 0.5 ORDER BY 1",
        "SELECT f, count(*) AS n FROM data WHERE f IS NOT NULL GROUP BY f HAVING stddev_pop(k) < 0.5 ORDER BY 1",
    ],
)
def test_outputs_are_named_by_their_place_and_groups_kept_by_their_deviation(truth, statement) -> None:
    ours, theirs = (ask(statement).astype(object) for ask in (truth.ours, truth.theirs))
    for name in theirs.columns:
        assert ours[name].fillna("NULL").tolist() == theirs[name].fillna("NULL").tolist()


def test_a_literal_0_or_1_is_a_truth_for_flags_alone() -> None:
    assert [hr.Flag().read_literal(value) for value in (0, 1, True, 2)] == [False, True, True, 2]
    for attribute in (hr.Integers(0, 3), hr.Categories([0, 1, 2]), hr.Range(0, 4, bins=4)):
        assert [type(attribute.read_literal(value)) for value in (0, 1)] == [int, int]


NOBODY = "avg(k) FILTER (WHERE m = 'p' AND m = 'q')"  # NULL in every group
HAVING = (
    "count(*) > 0",
    "count(*) < 0",
    f"{NOBODY} > 1",
    "count(*) BETWEEN 50 AND 100",
    "count(*) BETWEEN {0} AND {0}",
)


@pytest.mark.parametrize("operator", ["AND", "OR"])
def test_having_keeps_the_groups_of_which_it_is_true(truth, operator) -> None:
    sizes = truth.theirs("SELECT m, count(*) AS n FROM data GROUP BY m")["n"]
    of = [each.format(int(sizes[1])) for each in HAVING]  # and one group is as large as that
    for left, right, around in itertools.product(of, of, ("{}", "NOT ({})")):
        having = around.format(f"{left} {operator} {right}")
        statement = f"SELECT m, count(*) AS x0 FROM data GROUP BY m HAVING {having}"
        ours, theirs = ({*ask(statement)["x0"].astype(int)} for ask in (truth.ours, truth.theirs))
        assert ours == theirs, having


@pytest.mark.parametrize(("variance", "error"), [(4.0, 3.0), (4.0, 0.5), (1.0, 2.0), (0.0, 1.0), (9.0, 9.0)])
def test_the_bar_of_a_deviation_reaches_to_the_farther_root_of_its_variance(variance, error) -> None:
    def told(queries: list[hr.Query]) -> list[Answer]:
        return [Answer(query, variance, error, "measured", 0.0) for query in queries]

    (row,) = run_statement("SELECT stddev_pop(k) AS x FROM data", UNIVERSE, told).frame.itertuples()
    ends = [math.sqrt(max(0.0, end)) for end in (variance - error, variance + error)]
    assert row.x == math.sqrt(variance)
    assert row.x_error == pytest.approx(max(abs(row.x - end) for end in ends))


@pytest.mark.parametrize("variance", [4.0, 0.25, 0.0, -1.0])
def test_a_deviation_is_the_root_of_a_variance_that_is_a_plain_number_too(variance) -> None:
    """Whoever answers without bars gives numbers. A noisy variance below 0 has the root of 0."""
    (row,) = run_statement(
        "SELECT stddev_pop(k) AS x, 2 * var_pop(k) AS y FROM data", UNIVERSE, lambda qs: [variance] * len(qs)
    ).rows
    assert row == (math.sqrt(max(0.0, variance)), 2 * variance)
