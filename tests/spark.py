"""A real session of Spark, for as long as the tests run."""

from __future__ import annotations

import functools
import os
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.data import DataSource
from hedgerow.data.holding import held

SETTINGS = {
    "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
}  # fmt: skip


def started(master: str = "local[2]", **settings: str) -> Any:
    """A new session, or the one that runs; the test is skipped where there is no Spark, or no Java."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java here: install Debian's openjdk-17-jre-headless")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    builder = SparkSession.builder.master(master)
    for name, value in {**SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@functools.cache
def session() -> Any:
    """One for all tests of a process."""
    return started()


def spark_frame(folder: Path, universe: hr.Universe, cells: Any) -> DataSource:
    """The records of an array of cells, on Spark."""
    frame = pd.DataFrame(universe.decode(np.asarray(cells), numeric=True), columns=list(universe.names))
    kinds = {"i": "bigint", "f": "double", "b": "boolean"}
    rows = [
        tuple(each.item() if isinstance(each, np.generic) else each for each in row)
        for row in frame.itertuples(index=False)
    ]
    schema = ", ".join(f"`{name}` {kinds.get(frame[name].dtype.kind, 'string')}" for name in universe.names)
    return held(session().createDataFrame(rows, schema), universe)
