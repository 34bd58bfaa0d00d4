"""Spark gives the same cells and counts as other sources, no row reaches this process, and lost workers lose nothing."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import textwrap
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import spark
from awkward_values import AWKWARD

import hedgerow as hr
from hedgerow.data import HistogramSource, Table
from hedgerow.data.contributions import PersonColumn
from hedgerow.data.readers import open_batches
from hedgerow.data.spark_table import SparkTable
from hedgerow.data.table import open_source
from hedgerow.errors import DataUnavailable, InvalidInput

UNIVERSE = hr.Universe(age=hr.Integers(0, 9), sex=hr.Categories(["F", "M"], other=True), x=hr.Range(0, 1, bins=3))
SETS = [names for k in range(4) for names in itertools.combinations(UNIVERSE.names, k)]
BUDGET = hr.Budget(20.0, 1e-6, "add-remove")


def rows(count: int) -> list[tuple[object, ...]]:
    rng = np.random.default_rng(0)
    ages, reals = rng.integers(-2, 13, count).tolist(), rng.normal(0.5, 0.4, count).tolist()
    sexes = rng.choice(["F", "M", "f", "", "é"], count).tolist()
    missing = rng.random((count, 3)) < 0.05
    return [
        tuple(None if gone else value for value, gone in zip(row, lost, strict=True))
        for row, lost in zip(zip(ages, sexes, reals, strict=True), missing, strict=True)
    ]


def frame_of(given: list[tuple[object, ...]], schema: str = "age int, sex string, x double"):
    return spark.session().createDataFrame(given, schema)


@pytest.mark.audit
def test_a_frame_on_spark_is_counted_there_as_it_would_be_here() -> None:
    frame = frame_of(rows(300)).repartition(3)
    there, here = open_source(frame, UNIVERSE), Table(frame, UNIVERSE)
    assert isinstance(there, SparkTable) and here.rows == 300
    for a, b in zip(there.marginals(SETS), here.marginals(SETS), strict=True):
        assert np.array_equal(a, b) and a.dtype == np.int64
    assert there.fingerprint() == here.fingerprint()
    asked = [hr.count(sex="F", age=(2, 5)), hr.marginal("age", "sex"), hr.mean("x")]
    one, other = (hr.open(data, universe=UNIVERSE, budget=BUDGET, seed=3) for data in (there, here))
    for mine, theirs in zip(one.ask_all(asked), other.ask_all(asked), strict=True):
        assert np.array_equal(mine.value, theirs.value) and np.array_equal(mine.error, theirs.error)


def test_awkward_values_have_the_cells_of_the_rule_and_change_no_other_row() -> None:
    texts = [value for value in AWKWARD if isinstance(value, str) and value.isprintable() and len(value) < 2000]
    reals = [float("nan"), float("inf"), -float("inf"), -0.0, 1 / 3, 2 / 3, 1.0, 5e-324, None]
    given = [(None, text, reals[i % len(reals)]) for i, text in enumerate(texts)]
    universe = hr.Universe(
        sex=hr.Categories(["F", "M", "3", "NULL"], other=True, missing=True),
        x=hr.Range(0, 1, bins=3, other=True, missing=True),
    )
    there = open_source(frame_of(given).repartition(2), universe)
    assert isinstance(there, SparkTable)
    counts = _by_rule(given, universe)
    assert np.array_equal(there.marginal(("sex", "x")), counts)
    assert there.fingerprint() == HistogramSource(universe, counts).fingerprint()


def _by_rule(given, universe):
    from hedgerow.data.coding import Coder

    sex, x = Coder(universe["sex"]), Coder(universe["x"])
    counts = np.zeros(universe.shape, np.int64)
    for _, text, real in given:
        counts[sex.cell(text), x.cell(real)] += 1
    return counts


@pytest.mark.audit
def test_the_same_rows_of_a_person_stay_there_and_here() -> None:
    given = [(f" {i % 40}", i % 10, "FM"[i % 7 % 2], None) for i in range(400)]
    frame = frame_of(given, "who string, age int, sex string, x double").repartition(3)
    unit = PersonColumn("who", 3)
    there, here = open_source(frame, UNIVERSE, unit=unit), Table(frame, UNIVERSE, unit=unit)
    assert there.rows == here.rows == 120 and there.fingerprint() == here.fingerprint()
    session = hr.open(frame, universe=UNIVERSE, budget=BUDGET, unit="who", rows_per_unit=3)
    assert session.budget.rows_per_unit == 3


@pytest.mark.audit
def test_other_types_come_by_their_text_and_those_without_are_refused() -> None:
    from datetime import date, datetime

    given = [(Decimal("1.50"), date(2020, 1, 31), datetime(2021, 5, 6, 23, 59), bytearray(b"F"), [1], 2.0)] * 2
    frame = frame_of(given, "d decimal(9,2), day date, at timestamp_ntz, b binary, l array<int>, f float")
    universe = hr.Universe(
        d=hr.Range(0, 3, bins=3), day=hr.Dates("2020-01-01", "2021-12-31", "year"), at=hr.Dates("2020-01-01", "2021-12-31", "year"),
        b=hr.Categories(["M", "F"]), l=hr.Categories(["x", "[1]"]), f=hr.Integers(0, 3),
    )  # fmt: skip
    assert [open_source(frame, universe).marginal([name]).argmax() for name in universe.names] == [1, 0, 1, 1, 1, 2]
    kinds = [column.kind for column in open_batches(hr.TrustSchema(frame), None, None).types]
    assert kinds == ["number", "date", "date", None, None, "number"]
    with pytest.raises(InvalidInput, match="must be Dates"):
        open_source(hr.TrustSchema(frame), hr.Universe(day=hr.Range(0, 1, bins=2)))
    assert isinstance(open_source(hr.TrustSchema(frame), hr.Universe(f=hr.Integers(0, 3))), SparkTable)
    with pytest.raises(InvalidInput, match="Found 'variant'"):
        open_source(spark.session().sql("SELECT parse_json('1') AS v"), hr.Universe(v=hr.Flag()))


@pytest.mark.audit
def test_a_table_goes_on_with_a_new_session_of_spark_after_its_own_is_gone() -> None:
    data = open_source(frame_of(rows(200)), UNIVERSE)
    spark.session().stop()
    spark.session.cache_clear()
    with pytest.raises(DataUnavailable) as refused:
        data.marginal(["age"])
    assert refused.value.__context__ is None
    spark.session()
    assert data.marginal(["age"]).sum() == 200


@pytest.mark.audit
def test_a_purchase_fails_with_its_session_of_spark_and_succeeds_with_the_next() -> None:
    """The charge of the count that failed is spent, and no more. Free answers stay free."""
    session = hr.open(frame_of(rows(400)), universe=UNIVERSE, budget=BUDGET, seed=3, reserve=0.7)
    asked = hr.count(sex="F", age=(2, 5))
    free, spent = session.ask(asked), session.spent
    spark.session().stop()
    spark.session.cache_clear()
    session._data.forget()
    assert session.ask(asked).value == free.value and session.spent == spent
    with pytest.raises(DataUnavailable):
        session.ask(asked, within=free.error * 0.95)
    reserved = session.spent
    assert spent < reserved < BUDGET.total
    spark.session()
    bought = session.ask(asked, within=free.error * 0.95)
    assert bought.error <= free.error * 0.95 and session.spent > reserved


CLUSTER = """
import numpy as np, pandas as pd, spark, hedgerow as hr
from hedgerow import erm, losses
session = spark.cluster()
universe = hr.Universe(a=hr.Integers(0, 9), b=hr.Integers(0, 6), c=hr.Flag())
budget, ids = hr.Budget(1.0, 1e-9), np.arange(1_000_000)
columns = {"a": ids % 10, "b": ids % 7, "c": (ids % 100 < 37).astype(int)}
frame = session.range(ids.size, numPartitions=16).selectExpr("id % 10 AS a", "id % 7 AS b", "int(id % 100 < 37) AS c")
asked = [hr.count(a=(2, 5), b=3), hr.marginal("a", "c"), hr.mean("b")]

there = spark.losing_an_executor(session, lambda: hr.open(frame, universe=universe, budget=budget, seed=3))  # while rows are coded and written
here = hr.open(pd.DataFrame(columns), universe=universe, budget=budget, seed=3)
for mine, theirs in zip(there.ask_all(asked), here.ask_all(asked), strict=True):
    assert np.array_equal(mine.value, theirs.value) and np.array_equal(mine.error, theirs.error)

def counted():
    there._data.forget()
    return there._data.marginals([("a", "b"), ("c",), ()])

counts = spark.losing_an_executor(session, counted)
for mine, theirs in zip(counts, here._data.marginals([("a", "b"), ("c",), ()]), strict=True):
    assert np.array_equal(mine, theirs)

given = dict(loss=losses.Logistic(), budget=budget, seed=3, iterations=4)
there = spark.losing_an_executor(session, lambda: erm.whitened_descent(frame, "c", **given), after=3)  # while gradients are summed
here = erm.whitened_descent(pd.DataFrame(columns)[["a", "b"]], columns["c"], **given)
assert np.array_equal(there.theta, here.theta)
print("unharmed")
"""


@pytest.mark.audit
def test_a_worker_that_dies_in_the_midst_of_a_scan_changes_nothing() -> None:
    """On a cluster of processes: a master, two workers with an executor each, one of which is killed, three times."""
    pytest.importorskip("pyspark")
    tests = Path(__file__).resolve().parent.parent
    path = os.pathsep.join([str(tests), str(tests.parent / "src"), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", CLUSTER], capture_output=True, text=True, timeout=600,
                         env={**os.environ, "PYTHONPATH": path})  # fmt: skip
    told = [line for line in ran.stderr.splitlines() if not line.startswith("\tat ")]
    assert "unharmed" in ran.stdout, "\n".join(told)[-5000:]


def test_the_code_of_the_page_runs_on_spark() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "spark.md").read_text()
    code = textwrap.dedent(re.search(r"^(    session = .*?)\n\n", page, re.DOTALL | re.MULTILINE)[1])  # type: ignore[index]
    frame = spark.session().createDataFrame(pd.DataFrame({"age": range(500), "smoker": [0, 1] * 250}))
    names = {"hr": hr, "frame": frame, "universe": hr.Universe(age=hr.Integers(0, 499), smoker=hr.Flag())}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hr.PublicWarning)  # small
        exec(compile(code, "spark.md", "exec", dont_inherit=True), names)
    assert names["session"].rows == 500 and len(names["model"].theta) == 1
