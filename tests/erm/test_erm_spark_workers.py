"""The functions that workers run on rows, here on batches in Spark's form: they give the sums of the same rows in memory, to the last bit."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

from hedgerow import losses
from hedgerow.convex import sets
from hedgerow.erm import spark_rows, values
from hedgerow.erm.exact_sums import Digits
from hedgerow.erm.problem import prepare_problem
from hedgerow.erm.rows import Arrays
from hedgerow.erm.units import kept_rows, persons
from hedgerow.privacy.budget import Budget

RNG = np.random.default_rng(3)
WORDS = ["1.5", " -2 ", "true", "nothing", "nan", "1e400", None]
THETA = np.array([0.5, -0.25, 0.125])


def table(rows: int = 90) -> pa.Table:
    numbers = RNG.normal(size=rows) * 10.0 ** RNG.integers(-3, 4, rows)
    words = pa.array(RNG.choice(np.array(WORDS, object), rows).tolist(), pa.string())
    whole = pa.array(RNG.integers(-5, 6, rows))
    return pa.table({"c0": numbers, "c1": words, "c2": whole, "c3": RNG.normal(size=rows), "c4": words})


def in_memory(given: pa.Table) -> Arrays:
    columns = [values.labels(given[f"c{i}"].to_pylist()) for i in range(3)]
    return Arrays(np.column_stack(columns), given["c3"].to_pylist())


def read(given: pa.Table) -> list[pa.RecordBatch]:
    return list(
        spark_rows._read_batches(given.select(["c0", "c1", "c2", "c3"]).to_batches(max_chunksize=40), features=3)
    )


def test_sums_of_parts_are_those_of_all_rows() -> None:
    given = table()
    posed = prepare_problem(
        in_memory(given), loss=losses.Logistic(), over=sets.L2Ball(1.0), budget=Budget(1.0, 1e-6), row_bound=1.0, norm="l2",
        label_bound=None, expected_rows=None,
    )  # fmt: skip
    alike = spark_rows.arithmetic()
    clipped = list(spark_rows._clip_batches(read(given), posed, alike))
    assert len(clipped) == 3
    heavy = functools.partial(np.full, fill_value=0.5)
    for features in (None, np.array([0, 2])):
        fewer = posed if features is None else posed.with_features(features)
        theta = THETA[: fewer.p]
        public = dataclasses.replace(fewer, X=fewer.X[:0], y=fewer.y[:0])
        rows_of = functools.partial(spark_rows._problem_of, public=public, features=features)
        for weighted in (False, True):
            rows = clipped
            if weighted:
                rows = list(spark_rows._weigh_batches(clipped, rows_of, lambda problem: heavy(len(problem.y)), alike))
            digits = functools.partial(Digits, fewer.bits, fewer.slope_bits)
            total = np.zeros((digits().lines, fewer.p), np.int64)
            for part in (rows[:1], rows[1:], [], [rows[0].slice(0, 0)]):  # as workers have them
                rule = functools.partial(spark_rows._slopes, theta=theta)
                for found in spark_rows._digits(part, rows_of, rule, digits(), weighted, alike):
                    total.reshape(-1)[found.column(0).to_numpy()] += found.column(1).to_numpy()
            summed = fewer.capped_sum(Digits(fewer.bits, fewer.slope_bits, total).total(90), 90)
            assert np.array_equal(summed, fewer.gradient(theta, weights=0.5 if weighted else 1.0)) and np.any(summed)


def test_rows_of_a_person_are_kept_as_in_memory() -> None:
    given = table()
    read_there = pa.Table.from_batches(spark_rows._read_batches(given.to_batches(), features=3))
    whose = persons(given["c4"].to_pylist())
    assert read_there["person"].to_pylist() == list(whose)
    everyone = spark_rows._unpack_rows(read_there["x"].combine_chunks(), 3)
    y = read_there["y"].to_numpy()
    stay = kept_rows(everyone, y, list(whose), 4)
    here = sorted(map(tuple, np.column_stack([everyone[stay], y[stay]])))
    there = []
    for person in set(read_there["person"].to_pylist()):
        of_one = read_there.filter(pa.compute.equal(read_there["person"], pa.scalar(person, pa.binary())))
        left = spark_rows._keep_rows(of_one, 4)
        there += map(
            tuple, np.column_stack([spark_rows._unpack_rows(left["x"].combine_chunks(), 3), left["y"].to_numpy()])
        )
    assert sorted(there) == here and len(here) < 90


def test_rows_are_numbered_by_how_their_worker_computes_and_others_are_refused() -> None:
    (found,) = spark_rows._count_partition(read(table()))
    assert found.to_pylist() == [{"arithmetic": spark_rows.arithmetic(), "rows": 90}]
    with pytest.raises(RuntimeError, match="of another kind"):
        spark_rows._require_arithmetic("numpy 1")


def test_no_row_stays_on_the_workers_or_in_the_copy_when_a_fit_is_over() -> None:
    """And a cluster that has died meanwhile does not take the model that was paid for with it."""
    rows: Any = object.__new__(spark_rows.SparkRows)
    rows._held, rows._spark, rows._folder = [mock.MagicMock(), mock.MagicMock()], mock.MagicMock(), "a folder"
    rows.close()
    for frame in rows._held:
        frame.unpersist.assert_called_once()
    rows._spark.createDataFrame.assert_called_once_with([], spark_rows.ROW)
    writing = rows._spark.createDataFrame.return_value.write.mode
    writing.assert_called_once_with("overwrite")
    writing.return_value.parquet.assert_called_once_with("a folder")
    rows._held[0].unpersist.side_effect = RuntimeError("the session is dead")
    rows.close()
