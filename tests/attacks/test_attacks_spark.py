"""Attacks on tables of Spark: sources that change or fail while they are read, and rows that try to show themselves."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import spark

import hedgerow as hr
from hedgerow.data.contributions import PersonColumn
from hedgerow.data.table import open_source

UNIVERSE = hr.Universe(
    code=hr.Integers(0, 199), price=hr.Range(0, 2, bins=2, other=True), day=hr.Dates("2020-01-01", "2020-12-31", "month"),
    inside=hr.Categories(["{1, null}", "{2, x}"], other=True), text=hr.Categories(["F", "M"], other=True),
)  # fmt: skip
COLUMNS = [
    "code", "cast(price AS decimal(38, 18)) AS price", "date_add(date'2020-01-01', days) AS day",
    "named_struct('a', place, 'b', word) AS inside", "cast(bytes AS string) AS text",
]  # fmt: skip
SCHEMA = "code int, price string, days int, place int, word string, bytes binary"


@contextlib.contextmanager
def driver_log() -> Iterator[Any]:
    """All that Spark's driver logs meanwhile, and, in a local session, its workers."""
    jvm = spark.session().sparkContext._jvm
    log4j = jvm.org.apache.logging.log4j
    root = log4j.LogManager.getContext(False).getConfiguration().getRootLogger()
    written = jvm.java.io.StringWriter()
    appender = log4j.core.appender.WriterAppender.createAppender(None, None, written, "heard", False, False)
    appender.start()
    root.addAppender(appender, None, None)
    level = root.getLevel().toString()
    try:
        yield written.toString
    finally:
        root.removeAppender("heard")
        spark.session().sparkContext.setLogLevel(level)


def test_neither_errors_nor_logs_mention_the_row_at_which_a_source_fails(caplog, capsys) -> None:
    """Spark's error, its driver's log and a logger of pyspark quote the value that could not be cast."""
    given = spark.session().createDataFrame([("1", True), ("Jane Roe", True)], "a string, b boolean")
    failing = given.selectExpr("int(a) AS a", "b")
    universe, loss = hr.Universe(a=hr.Integers(0, 9), b=hr.Flag()), hr.losses.Logistic()
    reads = [
        lambda: open_source(failing, universe),
        lambda: hr.erm.auto(failing, "b", loss=loss, over=hr.L2Ball(1.0), row_bound=1.0, budget=hr.Budget(1.0, 1e-6)),
        lambda: hr.Universe.draft(failing, budget=hr.Budget(1.0, 1e-6)),
    ]
    with driver_log() as said:
        spark.session().sparkContext._jvm.org.apache.logging.log4j.LogManager.getRootLogger().error("it hears")
        for read in reads:
            with pytest.raises(hr.DataUnavailable) as refused:
                read()
            assert refused.value.__context__ is None and refused.value.__cause__ is None
            assert "Jane" not in str(refused.value)
        assert "it hears" in said() and "Jane" not in said()
    assert "Jane" not in caplog.text + "".join(capsys.readouterr())


def test_a_source_that_is_another_at_every_read_is_one_table_whose_persons_keep_their_rows() -> None:
    frame = spark.session().range(600, numPartitions=3)
    frame = frame.selectExpr("int(rand() * 10) AS a", "rand() < 0.5 AS b", "int(rand() * 40) AS who")
    universe = hr.Universe(a=hr.Integers(0, 9), b=hr.Flag())
    root = spark.session().sparkContext._jvm.org.apache.logging.log4j.LogManager.getRootLogger()
    before = root.getLevel().toString()
    data = open_source(frame, universe, unit=PersonColumn("who", 2))
    assert root.getLevel().toString() == before != "OFF"  # logs go on after rows that could be read
    ab, a, everybody = data.marginals([("a", "b"), ("a",), ()])
    data.forget()
    assert np.array_equal(data.marginal(("a", "b")), ab)
    assert np.array_equal(ab.sum(axis=1), a) and 70 <= everybody <= 80  # of 40 persons, of whom each has 15 rows


@pytest.mark.audit
def test_a_row_of_any_values_moves_one_count_in_whatever_parts_and_order_rows_come() -> None:
    rows = [(i * 3 % 200, f"{i % 3}.25", i, 1 + i % 2, [None, "x"][i % 2], b"FM"[i % 2 : i % 2 + 1]) for i in range(60)]
    strange = (None, "9" * 19 + "." + "9" * 18, 2**31 - 2**25, None, "\x00\n'); --", b"\xff\xfe\xc0")
    session = spark.session()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")  # of pandas' version
        tables = [
            open_source(session.createDataFrame(given, SCHEMA).repartition(parts).selectExpr(*COLUMNS), UNIVERSE)
            for given, parts in ((rows, 1), ([strange, *reversed(rows)], 5))
        ]
        one, other = (table.marginals([(name,) for name in UNIVERSE.names]) for table in tables)
    for mine, theirs in zip(one, other, strict=True):
        assert np.abs(theirs - mine).sum() == 1 and (theirs - mine).max() == 1 and mine.sum() == 60
