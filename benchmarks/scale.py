"""Large tables: a Parquet file opened beside the raw engine that counts the same marginals, and the driver of a Spark cluster.

python benchmarks/scale.py             # 10⁸ rows of 8 columns: a quarter of an hour and 1 GB of disk; writes docs/benchmarks-data.md
python benchmarks/scale.py --rows 7    # 10⁷ rows; writes nothing
python benchmarks/scale.py --only driver   # one section anew
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "benchmarks-data.md"
HEAD = "# Large tables: benchmarks\n\nWritten by `python benchmarks/scale.py`; `--only table`, `wide` or `driver` writes one section anew.\n\n"
TITLES = {
    "table": "A Parquet file and the raw engine",
    "driver": "The driver of a Spark cluster",
    "wide": "A Parquet file with more values than can all be counted",
}
SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 6, "f": 8, "g": 10, "h": 12}
MOST_COUNTED = 1 << 21  # cells, as in hedgerow.data.table
WIDER = 2  # how many times as many values the columns of the wide table have: so many cells that rows are kept
CHUNK = 1 << 20
FEW = 10**5
TOGETHER, ALONE = 5_000, 100  # questions of a turn: of `ask_all`, and one after the other of `ask`
ROUNDS = 8
MANY_ON_SPARK = 3 * 10**6


def write(path: Path, rows: int) -> None:
    """Columns that depend on their neighbours, with many small values and few large ones."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(rows)
    schema = pa.schema([(name, pa.int32()) for name in SIZES])
    with pq.ParquetWriter(path, schema) as file:
        for start in range(0, rows, CHUNK):
            size = min(CHUNK, rows - start)
            drawn, columns = generator.random(size), {}
            for name, m in SIZES.items():
                drawn = (drawn + generator.random(size)) / 2
                columns[name] = (drawn**2 * m).astype(np.int32)
            file.write_table(pa.table(columns, schema=schema))


def ours(path: str) -> dict[str, Any]:
    """Opening with prefit and certificate, the sets that were counted for it, and a stream of answers beside that of few rows."""
    import hedgerow as hr
    from hedgerow.data import Table

    counted: list[tuple[str, ...]] = []
    count = Table._count_all

    def noted(self: Table, sets: object) -> object:
        counted.extend(sets)  # type: ignore[arg-type]
        return count(self, sets)  # type: ignore[arg-type]

    Table._count_all = noted  # type: ignore[method-assign, assignment]
    universe = hr.Universe({name: hr.Integers(0, m - 1) for name, m in SIZES.items()})
    few = Path(path).with_name("few.parquet")
    write(few, FEW)
    budget = hr.Budget(1.0, 1e-9)
    small = hr.open(few, universe=universe, budget=budget)  # imports and compiles, too
    counted.clear()
    before, began, used = peak(), time.perf_counter(), time.process_time()
    large = hr.open(path, universe=universe, budget=budget)
    taken = {
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - used,
        "before": before,
        "peak": peak(),
    }
    sets = list(dict.fromkeys(counted))
    if cells() > MOST_COUNTED:
        return {**taken, "sets": sets}
    streams = [in_turns(small, large, n) for n in (TOGETHER, ALONE)]
    noisier = hr.Budget(budget.epsilon * FEW / large.rows, budget.delta)
    noisy = hr.open(path, universe=universe, budget=noisier)
    streams += [in_turns(small, noisy, n, ROUNDS + 2) for n in (TOGETHER, ALONE)]
    return {**taken, "sets": sets, "streams": streams}


def in_turns(small: Any, large: Any, count: int, first: int = 0) -> list[float]:
    """Processor time of an answer of each, in seconds, and how many tables each has measured."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(first, first + ROUNDS + 2):
        questions = stream(turn, count)
        for found, session in list(zip(times, (small, large), strict=True))[:: 1 if turn % 2 else -1]:
            asked = time.process_time()
            if count == TOGETHER:
                session.ask_all(questions)
            else:
                for question in questions:
                    session.ask(question)
            found.append(time.process_time() - asked)
    each = [float(np.median(found[2:])) / count for found in times]
    return [*each, *(float(len(session.log)) for session in (small, large))]


def stream(turn: int, count: int) -> list[Any]:
    """Questions of three attributes that were not asked before."""
    import hedgerow as hr

    rng = np.random.default_rng([turn, count])
    questions = []
    for _ in range(count):
        names = rng.choice(list(SIZES), 3, replace=False)
        values = [sorted(int(v) for v in rng.choice(SIZES[n], rng.integers(1, SIZES[n]), replace=False)) for n in names]
        questions.append(hr.count({str(n): set(v) for n, v in zip(names, values, strict=True)}))
    return questions


def raw(path: str, sets: list[list[str]]) -> dict[str, Any]:
    """The same tables of counts by DuckDB alone, on one thread: processor time."""
    import duckdb

    every = ", ".join(SIZES)
    grouped = ", ".join(f"({', '.join(names)})" for names in sets)
    ways = {
        "a query each": [
            f"SELECT {', '.join([*names, 'count(*)'])} FROM '{path}'"
            + (f" GROUP BY {', '.join(names)}" if names else "")
            for names in sets
        ],
        "grouping sets": [f"SELECT {every}, count(*) FROM '{path}' GROUP BY GROUPING SETS ({grouped})"],
    }
    if cells() <= MOST_COUNTED:
        ways["one grouping by all columns"] = [f"SELECT {every}, count(*) FROM '{path}' GROUP BY {every}"]
    times = {}
    for how, queries in ways.items():
        engine = duckdb.connect()
        engine.execute("SET threads = 1")
        used = time.process_time()
        for query in queries:
            found = engine.execute(query).fetchnumpy()
        if how.startswith("one"):
            table = np.zeros(tuple(SIZES.values()), np.int64)
            table[tuple(found[name] for name in SIZES)] = found["count_star()"]
            for names in sets:
                table.sum(axis=tuple(i for i, name in enumerate(SIZES) if name not in names))
        times[how] = time.process_time() - used
    return times


def cells() -> int:
    return int(np.prod(list(SIZES.values())))


def widen() -> None:
    SIZES.update({name: WIDER * size for name, size in SIZES.items()})


def table_section(rows: int, wide: bool = False) -> list[str]:
    """Return the rows of a table. Of the wide table only the opening is measured, since its answers are the same."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        write(path, 10**rows)
        mine = run("ours", path, wide=wide)
        theirs = run("raw", path, json.dumps(mine["sets"]), wide=wide)
    best = min(theirs["a query each"], theirs["grouping sets"])
    beside = (
        "" if wide else f" and {mine['cpu'] / theirs['one grouping by all columns']:.2f} times as long as the third"
    )
    lines = [
        f"10^{rows} rows of {len(SIZES)} columns. Opening counts {len(mine['sets'])} marginals, which the raw engine (DuckDB) counts too, by GROUP BY. "
        "Processor time; DuckDB is held to one thread.",
        "",
        "| what | processor time |",
        "|---|---|",
        f"| hedgerow: read, coded, copied, counted, fitted and certified | {mine['cpu']:.1f} s |",
        *(f"| DuckDB: {how} | {taken:.1f} s |" for how, taken in theirs.items()),
        "",
        f"Opening takes {mine['cpu'] / best:.2f} times as long as the faster of DuckDB's first two ways (bar 1.5){beside}, {mine['seconds']:.0f} s on the clock beside whatever else the machine did, and "
        f"{mine['peak']:.0f} MB at most, of which {mine['before']:.0f} MB before (bar 2 GB). The universe has {cells():,} cells: "
        + (
            "more than can all be counted, so hedgerow keeps rows."
            if wide
            else "few enough that hedgerow, too, counts them all and keeps no row."
        ),
    ]
    if wide:
        return lines
    lines += [
        "",
        f"Streams of answers from the hypothesis, processor time of each answer at the median of {ROUNDS} streams: {TOGETHER:,} asked together, and {ALONE} one after the other.",
        "",
        f"| asked | budget of the larger table | 10^5 rows | 10^{rows} rows | ratio (bar 1.1) | entries of the log |",
        "|---|---|---|---|---|---|",
        *(
            f"| {how} | {words} | {few * 1e6:.0f} µs | {many * 1e6:.0f} µs | {many / few:.2f} | {small:.0f}, {large:.0f} |"
            for (words, how), (few, many, small, large) in zip(
                itertools.product(
                    ("the same", "so much less that noise is the same share of rows"), ("together", "one by one")
                ),
                mine["streams"],
                strict=True,
            )
        ),
        "",
        "No answer looks at rows. With the same budget the prefit learns more of more rows: it measures more tables, and error bars look at more "
        "of them. The last two lines leave the number of rows as the only difference.",
    ]
    return lines


def driver(path: str) -> dict[str, Any]:
    """Open and fit a table of this size on a cluster of processes; return the memory of the process that asks."""
    from pyspark.sql import SparkSession

    import hedgerow as hr
    from hedgerow import erm, losses

    rows = int(path)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4", "spark.driver.memory": "512m",
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.log.level": "OFF",
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }  # fmt: skip
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    columns = [f"int((id * {7 + i} + id / {13 + i}) % {m}) AS {name}" for i, (name, m) in enumerate(SIZES.items())]
    frame = session.range(rows, numPartitions=16).selectExpr(*columns)
    universe = hr.Universe({name: hr.Integers(0, m - 1) for name, m in SIZES.items()})
    before, began = peak(), time.perf_counter()
    opened = hr.open(frame, universe=universe, budget=hr.Budget(1.0, 1e-9), seed=1)
    opened.ask_all(stream(0, 250))
    taken = time.perf_counter() - began
    began = time.perf_counter()
    erm.whitened_descent(
        frame.select("b", "c", "d", "a"), "a", loss=losses.Logistic(), row_bound=8.0, budget=hr.Budget(1.0, 1e-9), iterations=4, seed=1
    )  # fmt: skip
    fitted = time.perf_counter() - began
    virtual = session.sparkContext._jvm
    virtual.java.lang.System.gc()
    runtime = virtual.java.lang.Runtime.getRuntime()
    heap = (runtime.totalMemory() - runtime.freeMemory()) / 2**20
    session.stop()
    return {"before": before, "peak": peak(), "heap": heap, "opened": taken, "fitted": fitted}


def driver_section() -> list[str]:
    lines = [
        "A frame of 8 columns is opened, with prefit and certificate, and a logistic regression is fitted on it, on a cluster of processes of one machine (a master, "
        "two workers with an executor each). Memory of the driver's two processes: Python at most, and what Java's heap holds at the end.",
        "",
        "| rows | Python before | Python at most | Java's heap | opened in | fitted in |",
        "|---|---|---|---|---|---|",
    ]
    most = {}
    for rows in (FEW, MANY_ON_SPARK):
        found = run("driver", Path(str(rows)))
        most[rows] = found["peak"] + found["heap"]
        lines.append(
            f"| {rows:,} | {found['before']:.0f} MB | {found['peak']:.0f} MB | {found['heap']:.0f} MB | {found['opened']:.0f} s | {found['fitted']:.0f} s |"
        )
    lines += [
        "",
        f"With {MANY_ON_SPARK // FEW} times as many rows the driver holds {most[MANY_ON_SPARK] / most[FEW]:.2f} times as much.",
    ]
    return lines


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(part: str, path: Path, sets: str = "[]", wide: bool = False) -> dict[str, Any]:
    """Run in a separate process, and return its memory."""
    command = [sys.executable, "-W", "ignore", __file__, "--part", part, "--path", str(path), "--sets", sets]
    command += ["--wide"] if wide else []
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(found.splitlines()[-1])  # type: ignore[no-any-return]


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--rows", type=int, default=8, help="a power of ten")
    given.add_argument("--quick", action="store_true", help="10^6 rows, no cluster, nothing written")
    given.add_argument("--only", choices=TITLES, help="one section")
    given.add_argument("--part", choices=("ours", "raw", "driver"))
    given.add_argument("--path")
    given.add_argument("--sets")
    given.add_argument("--wide", action="store_true")
    options = given.parse_args()
    if options.quick:
        options.rows = 6
    if options.wide:
        widen()
    if options.part is not None:
        parts = {"ours": ours, "driver": driver, "raw": lambda path: raw(path, json.loads(options.sets))}
        print(json.dumps(parts[options.part](options.path)))
        return
    for name in [options.only] if options.only else TITLES:
        if name == "driver" and (options.quick or shutil.which("java") is None):
            print("The driver of a Spark cluster: left out, it takes Java and some minutes.")
            continue
        if name == "wide":
            widen()
        lines = driver_section() if name == "driver" else table_section(options.rows, name == "wide")
        print("\n".join(lines), flush=True)
        if options.rows == 8:
            from hedgerow.research.pages import short_lines

            parts = PAGE.read_text().split("\n## ")[1:] if PAGE.exists() else []
            texts = dict(part.split("\n", 1) for part in parts) | {TITLES[name]: "\n" + "\n".join(lines) + "\n"}
            PAGE.write_text(
                short_lines(
                    HEAD + "\n".join(f"## {title}\n{texts[title]}" for title in TITLES.values() if title in texts)
                )
            )


if __name__ == "__main__":
    main()
