"""Ask a table on a Spark cluster: python examples/spark_cluster.py

Workers count, and only counts come to the process that asks; no row does. Here the cluster is this machine. It needs
Java 17 and PySpark (pip install 'hedgerow[spark]'), and says so where they are missing. The people are made up.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from typing import Any

import numpy as np
import pandas as pd

import hedgerow as hr

UNIVERSE = hr.Universe(
    age=hr.Integers(18, 89),
    region=hr.Categories(["north", "east", "south", "west"]),
    smoker=hr.Flag(),
)


def people() -> pd.DataFrame:
    """Make up 30,000 people, of whom the young smoke more."""
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, 30_000)
    return pd.DataFrame(
        {
            "age": age,
            "region": rng.choice(["north", "east", "south", "west"], 30_000),
            "smoker": rng.random(30_000) < 0.4 - 0.003 * age,
        }
    )


def missing() -> str | None:
    """Return what is missing for Spark, or None."""
    if importlib.util.find_spec("pyspark") is None:
        return "PySpark: pip install 'hedgerow[spark]'"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "Java: install OpenJDK 17 (on Debian: apt install openjdk-17-jre-headless)"
    return None


def spark_session() -> Any:
    """Start Spark with one worker, in this process's machine only."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[1]").appName("hedgerow")
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    local = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    for name, value in (settings | local).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(seed: int | None) -> None:
    lacking = missing()
    if lacking is not None:
        print(f"Skipped, because this machine has no {lacking}")
        return
    spark = spark_session()
    with tempfile.TemporaryDirectory() as folder:  # stands for the storage that the workers read
        people().to_parquet(f"{folder}/people.parquet", index=False)
        frame = spark.read.parquet(f"{folder}/people.parquet")
        session = hr.open(frame, universe=UNIVERSE, budget=hr.Budget(epsilon=1, delta=1e-6), seed=seed)
        print(f"Spark {spark.version} counted {session.rows:,} rows. None of them came here.\n")

        answer = session.ask(hr.count(smoker=True))
        print(f"Smokers: {answer.value:.1%} ± {answer.error:.1%}")
        for low, high in [(18, 41), (42, 65), (66, 89)]:
            part = session.ask(hr.share(hr.count(smoker=True), where=hr.count(age=(low, high))))
            print(f"  aged {low} to {high}: {part.value:5.1%} ± {part.error:.1%}")
        regions = session.sql("SELECT region, count(*) AS people FROM data GROUP BY region ORDER BY region")
        for row in regions.itertuples(index=False):
            print(f"  in the {row.region:<5}: {row.people:6,.0f} ± {row.people_error:,.0f} people")
    spark.stop()
    print("\nSpark has stopped. Answers from the hypothesis stay free:")
    old = session.ask(hr.mean("age", where=hr.count(smoker=True)))
    print(f"Smokers are {old.value:.1f} ± {old.error:.1f} years old on average.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)  # a seed repeats the same noise: for tests, not private
