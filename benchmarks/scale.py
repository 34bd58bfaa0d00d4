"""A large Parquet file opened, against the raw engine that counts the same marginals: CPU time of one thread, and memory.

python benchmarks/scale.py             # 10⁸ rows of 8 columns: some ten minutes and 1 GB of disk
python benchmarks/scale.py --rows 7    # 10⁷ rows
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 6, "f": 8, "g": 10, "h": 12}
CHUNK = 1 << 20


def write(path: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(rows)
    schema = pa.schema([(name, pa.int32()) for name in SIZES])
    with pq.ParquetWriter(path, schema) as file:
        for start in range(0, rows, CHUNK):
            size = min(CHUNK, rows - start)
            columns = {name: (generator.random(size) ** 2 * m).astype(np.int32) for name, m in SIZES.items()}
            file.write_table(pa.table(columns, schema=schema))


def ours(path: str) -> dict[str, object]:
    """Opening with prefit and certificate, and the sets that were counted for it."""
    import hedgerow as hr
    from hedgerow.data import Table

    counted: list[tuple[str, ...]] = []
    count = Table._count_all

    def noted(self: Table, sets: object) -> object:
        counted.extend(sets)  # type: ignore[arg-type]
        return count(self, sets)  # type: ignore[arg-type]

    Table._count_all = noted  # type: ignore[method-assign, assignment]
    universe = hr.Universe({name: hr.Integers(0, m - 1) for name, m in SIZES.items()})
    small = Path(path).with_name("small.parquet")
    write(small, 2000)
    hr.open(small, universe=universe, budget=hr.Budget(1.0, 1e-9))  # imports and compiles
    counted.clear()
    before, began, used = peak(), time.perf_counter(), time.process_time()
    session = hr.open(path, universe=universe, budget=hr.Budget(1.0, 1e-9))
    taken = {
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - used,
        "before": before,
        "peak": peak(),
    }
    questions = [hr.count({"a": 0, "b": {0, 1}, "h": (2, i % 12)}) for i in range(2, 12)]
    asked = time.process_time()
    session.ask_all(questions)
    return {**taken, "asking": time.process_time() - asked, "sets": list(dict.fromkeys(counted))}


def raw(path: str, sets: list[list[str]]) -> dict[str, object]:
    """The same tables of counts by DuckDB alone, on one thread: a query each, and all of them as grouping sets."""
    import duckdb

    times = {}
    for how in ("queries", "grouping sets"):
        engine = duckdb.connect()
        engine.execute("SET threads = 1")
        used = time.process_time()
        if how == "queries":
            for names in sets:
                columns = ", ".join(names)
                group = (
                    f"SELECT {columns}, count(*) FROM read_parquet('{path}') GROUP BY {columns}"
                    if names
                    else f"SELECT count(*) FROM read_parquet('{path}')"
                )
                engine.execute(group).fetchnumpy()
        else:
            every = ", ".join(SIZES)
            grouped = ", ".join(f"({', '.join(names)})" for names in sets)
            engine.execute(
                f"SELECT {every}, count(*) FROM read_parquet('{path}') GROUP BY GROUPING SETS ({grouped})"
            ).fetchnumpy()
        times[how] = time.process_time() - used
    return times


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--rows", type=int, default=8, help="a power of ten")
    given.add_argument("--part", choices=("ours", "raw"))
    given.add_argument("--path")
    given.add_argument("--sets")
    options = given.parse_args()
    if options.part is not None:
        print(json.dumps(ours(options.path) if options.part == "ours" else raw(options.path, json.loads(options.sets))))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        write(path, 10**options.rows)
        mine = run("ours", path)
        sets = mine.pop("sets")
        theirs = run("raw", path, json.dumps(sets))
        best = min(theirs.values())
        print(f"10^{options.rows} rows, {len(sets)} marginals: ours {mine}, raw {theirs}")
        print(f"opening takes {mine['cpu'] / best:.2f} of the raw engine's CPU time, {mine['peak']:.0f} MB at most")


def run(part: str, path: Path, sets: str = "") -> dict[str, float]:
    """In a process of its own, whose memory is told."""
    command = [sys.executable, "-W", "ignore", __file__, "--part", part, "--path", str(path), "--sets", sets]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()
