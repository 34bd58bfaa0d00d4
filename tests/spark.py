"""A real session of Spark, for as long as the tests run."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.data import DataSource
from hedgerow.data.table import open_source

SETTINGS = {
    "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.log.level": "ERROR",
    # Small files are read as tasks of their own, so that sums of several workers are added up.
    "spark.sql.files.maxPartitionBytes": "64k", "spark.sql.files.openCostInBytes": "64k",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # nothing runs long enough to be compiled well
    "spark.ui.showConsoleProgress": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
}  # fmt: skip


def started(master: str = "local[1]", **settings: str) -> Any:
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


def cluster() -> Any:
    """A session on a cluster of processes of this machine: a master, and two workers with an executor each."""
    settings = {"spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    return started("local-cluster[2,1,1024]", **settings)


def executors(session: Any) -> list[int]:
    """The processes of a cluster's executors."""
    every = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True).stdout.splitlines()
    mine = "--driver-url spark://CoarseGrainedScheduler@127.0.0.1:" + session.conf.get("spark.driver.port")
    return [int(line.split()[0]) for line in every if "CoarseGrainedExecutorBackend" in line and mine in line]


def losing_an_executor(session: Any, work: Callable[[], Any], after: int = 0) -> Any:
    """Return the result of work during which an executor is killed. On a busy machine that may take a few trials."""
    for _ in range(5):
        with _killing(session, after) as killed:
            found = work()
        if killed:
            return found
    raise AssertionError("no stage was caught in its midst: give it more partitions")


@contextlib.contextmanager
def _killing(session: Any, after: int) -> Iterator[list[Any]]:
    """One is killed once some, but not all, tasks of a stage are done; that of the stage after so many have been seen."""
    until = time.monotonic() + 200
    while not (there := executors(session)) and time.monotonic() < until:  # on a busy machine they start late
        time.sleep(0.1)
    victim, over, killed = there[0], threading.Event(), []

    def kill() -> None:
        tracker, seen = session.sparkContext.statusTracker(), set()
        while not over.wait(0.005):
            for stage in tracker.getActiveStageIds():
                found = tracker.getStageInfo(stage)
                seen.add(stage)
                if found and len(seen) > after and 0 < found.numCompletedTasks < found.numTasks - 2:
                    os.kill(victim, signal.SIGKILL)
                    killed.append((stage, found.numCompletedTasks, found.numTasks))
                    return

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()
    assert not killed or victim not in executors(session)


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
    return open_source(session().createDataFrame(rows, schema), universe)
