"""Questions answered from a few rows at random: time per query as the table grows, against a full scan, and building the store.

python benchmarks/sampling.py             # up to 10⁸ rows: some ten minutes and 8 GB of disk; writes docs/benchmarks-sampling.md
python benchmarks/sampling.py --rows 6    # up to 10⁶ rows, printed only
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "benchmarks-sampling.md"
SIZE = 1000  # ℓ
CHUNK = 1 << 20
SQL = "SELECT avg(CASE WHEN x > 0.5 AND y * z < 0.3 THEN 1.0 ELSE 0.0 END) FROM t"
REPEATS = 301
COLUMNS = {"x": float, "y": float, "z": float}


def write_parquet(path: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(rows)
    schema = pa.schema([(name, pa.float64()) for name in COLUMNS])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
        for start in range(0, rows, CHUNK):
            size = min(CHUNK, rows - start)
            file.write_table(pa.table({name: generator.random(size) for name in COLUMNS}, schema=schema))


def build(source: str, folder: str) -> None:
    """Run in a separate process, and return its largest memory."""
    import resource

    from hedgerow.data.row_store import row_store

    row_store(write_small(Path(folder).parent), COLUMNS)  # imports and compiles
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, used = time.perf_counter(), time.process_time()
    rows = row_store(source, COLUMNS, folder).rows
    seconds, busy = time.perf_counter() - began, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"rows": rows, "seconds": seconds, "busy": busy, "before": before / 1024, "peak": peak / 1024}))


def write_small(folder: Path) -> Path:
    path = folder / "small.parquet"
    if not path.exists():
        write_parquet(path, CHUNK)
    return path


def timed(action: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    began = clock()
    action()
    return clock() - began


def holds(x: Any, y: Any, z: Any) -> Any:
    return (x > 0.5) & (y * z < 0.3)


def query(rows: Any, vectorised: bool) -> Callable[[], Any]:
    from hedgerow.data.row_values import statistic_values
    from hedgerow.privacy.budget import Budget
    from hedgerow.privacy.ledger import Accountant
    from hedgerow.privacy.noise import Noise
    from hedgerow.query.row_statistic import statistic
    from hedgerow.textbook import subsampled

    plan = subsampled.affordable(rows.rows, epsilon=1e-4, size=SIZE, beta=0.05)
    one = (lambda x, y, z: x > 0.5 and y * z < 0.3) if not vectorised else holds
    valued = statistic_values(rows, statistic(one, list(COLUMNS), vectorised=vectorised))
    ledger, noise = Accountant(Budget(1000.0, 1e-6)), Noise()
    return lambda: subsampled.answer(plan, valued, rows.rows, ledger, noise)


def per_query(folder: Path, powers: list[int], vectorised: bool) -> dict[int, tuple[float, float]]:
    """Medians of time, and of processor time, of queries to all tables in turn: in random order, as others may use the machine."""
    from hedgerow.data.row_store import row_store

    asked = {p: query(row_store(folder / f"{p}.parquet", COLUMNS, folder / f"{p}.rows"), vectorised) for p in powers}
    for p in powers:
        for _ in range(30):
            asked[p]()
    times: dict[int, list[tuple[float, float]]] = {p: [] for p in powers}
    order = np.random.default_rng(0)
    for _ in range(REPEATS):
        for p in order.permutation(powers).tolist():
            used = time.process_time()
            spent = timed(asked[p])
            times[p].append((spent, time.process_time() - used))
    return {
        p: (statistics.median(t for t, _ in found), statistics.median(c for _, c in found))
        for p, found in times.items()
    }


def full_scan(path: Path) -> float:
    """DuckDB's median, from its own table in memory."""
    import duckdb

    engine = duckdb.connect()
    engine.execute("SET threads = 2")
    engine.execute(f"CREATE TABLE t AS SELECT * FROM '{path}'")
    return statistics.median(timed(lambda: engine.execute(SQL).fetchall()) for _ in range(7))


def rows_for(queries: int, alpha: float, beta: float) -> int:
    """The least table on which so many queries are within α at (1, 10⁻⁶): it grows like √k."""
    from hedgerow.privacy.budget import Budget
    from hedgerow.textbook import subsampled

    total = Budget(1.0, 1e-6).total
    high = 1
    while queries * subsampled.plan(high, alpha=alpha, beta=beta, queries=queries).event.rho > total:
        high *= 2
    low = high // 2
    while high - low > high // 100:
        middle = (low + high) // 2
        fits = queries * subsampled.plan(middle, alpha=alpha, beta=beta, queries=queries).event.rho <= total
        low, high = (low, middle) if fits else (middle, high)
    return high


def at(k: int, alpha: float = 0.1, beta: float = 0.05) -> tuple[int, int, int, float, float]:
    """(k, n, ℓ, seconds of k sampled queries, of k full ones): of the processor, in medians of a few queries, times k."""
    from hedgerow.data.row_store import in_memory
    from hedgerow.data.row_values import statistic_values
    from hedgerow.privacy.budget import Budget
    from hedgerow.privacy.events import Laplace
    from hedgerow.privacy.ledger import Accountant
    from hedgerow.privacy.noise import Noise
    from hedgerow.query.row_statistic import statistic
    from hedgerow.textbook import subsampled

    n = rows_for(k, alpha, beta)
    generator = np.random.default_rng(k)
    rows = in_memory({name: generator.random(n) for name in COLUMNS})
    valued = statistic_values(rows, statistic(holds, list(COLUMNS), vectorised=True))
    plan = subsampled.plan(n, alpha=alpha, beta=beta, queries=k)
    ledger, noise = Accountant(Budget(1000.0, 1e-6)), Noise()
    everything, full = np.arange(n), Laplace(1.0, 1000.0, subsampled.GRID)

    def sampled() -> None:
        subsampled.answer(plan, valued, n, ledger, noise)

    def scanned() -> None:
        noise.add(float(valued(everything).sum() * subsampled.GRID), ledger.charge(full))

    for action in (sampled, scanned):
        action()
    ours = statistics.median(timed(sampled, time.process_time) for _ in range(REPEATS))
    theirs = statistics.median(timed(scanned, time.process_time) for _ in range(15))
    return k, n, int(plan.scale), k * ours, k * theirs


def slope(points: list[tuple[float, float]]) -> float:
    """Return the slope of the logarithms, by least squares."""
    logs = np.log(points)
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rows", type=int, default=8, help="the largest power of ten")
    options.add_argument("--build", nargs=2, help=argparse.SUPPRESS)
    given, _ = options.parse_known_args()
    if given.build:
        build(*given.build)
        return
    powers = list(range(5, given.rows + 1))
    lines: list[str] = []
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    try:
        built = []
        for p in powers:
            write_parquet(folder / f"{p}.parquet", 10**p)
            command = [sys.executable, __file__, "--build", str(folder / f"{p}.parquet"), str(folder / f"{p}.rows")]
            ran = subprocess.run(command, capture_output=True, text=True, check=True)
            built.append(json.loads(ran.stdout))
        block, alone = per_query(folder, powers, True), per_query(folder, powers, False)
        scan = full_scan(folder / f"{powers[-1]}.parquet")
    finally:
        shutil.rmtree(folder)
    lines += [
        f"One query at ℓ = {SIZE} rows of three columns, median of {REPEATS} in turn: time, and processor time. The store is built from "
        "Parquet by one process.",
        "",
        "| rows | vectorised | row by row | built, rows/s | of processor time | memory before, at most |",
        "|---|---|---|---|---|---|",
    ]
    for p, b in zip(powers, built, strict=True):
        asked = " | ".join(f"{1e3 * found[p][0]:.2f} ms, {1e3 * found[p][1]:.2f} ms" for found in (block, alone))
        speed = f"{b['rows'] / b['seconds'] / 1e6:.1f} M | {b['rows'] / b['busy'] / 1e6:.1f} M"
        lines.append(f"| 10^{p} | {asked} | {speed} | {b['before']:.0f} MB, {b['peak']:.0f} MB |")
    first, last = powers[0], powers[-1]
    grown = [[found[last][i] / found[first][i] for i in (0, 1)] for found in (block, alone)]
    lines += [
        "",
        f"From 10^{first} to 10^{last} rows a query takes {grown[0][0]:.2f} times as long ({grown[0][1]:.2f} of processor time), row by "
        f"row {grown[1][0]:.2f} times ({grown[1][1]:.2f}); the bar is 1.3. A full scan of 10^{last} rows by DuckDB, in memory on two "
        f"threads, takes {1e3 * scan:.0f} ms: {scan / block[last][0]:.0f} times as long (bar 100), row by row {scan / alone[last][0]:.0f}.",
        "",
        "Table 1 of the paper, k queries within 0.1 at (1, 10⁻⁶) on the least table for them: a median query's processor time, times k.",
        "",
        "| k | n | ℓ | sampled | full scans |",
        "|---|---|---|---|---|",
    ]
    table = [at(10**p) for p in range(3, 8)]
    for k, n, size, ours, theirs in table:
        lines.append(f"| 10^{round(math.log10(k))} | {n:,} | {size:,} | {ours:.3g} s | {theirs:.3g} s |")
    ours_slope, theirs_slope = (slope([(row[0], row[i]) for row in table[2:]]) for i in (3, 4))
    lines += ["", f"The last decades' slopes: k^{ours_slope:.2f} sampled, k^{theirs_slope:.2f} scanned."]
    print("\n".join(lines))
    if given.rows == 8:
        from hedgerow.research.pages import short_lines

        head = "# Questions about a few random rows\n\nFrom `python benchmarks/sampling.py`.\n\n"
        PAGE.write_text(short_lines(head + "\n".join(lines) + "\n"))


if __name__ == "__main__":
    main()
