"""Measure openings as tables become wider, longer and finer, and a table of 200 attributes from opening to records.

python benchmarks/width.py            # up to 200 attributes and 10⁷ rows; writes docs/benchmarks-width.md and its picture
python benchmarks/width.py --quick    # up to 30 attributes and 10⁵ rows, printed only
python benchmarks/width.py --seeds 5  # of the openings, whose mean and standard error are told

Processor time at ε = 1, δ = 1e-9, defaults otherwise. Each attribute depends on two earlier ones.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import hedgerow as hr
from hedgerow.errors import NotPrivateWarning
from hedgerow.research.pages import short_lines

DOCS = Path(__file__).resolve().parent.parent / "docs"
BUDGET = hr.Budget(1, 1e-9)
MIXED = (2, 3, 5, 2, 8, 4, 2, 10)  # values of the attributes of the widest table, in turn
ATTRIBUTES, ROWS, BINS = (5, 10, 20, 30, 50, 100, 200), (10**4, 10**5, 10**6, 10**7), (2, 4, 8, 16, 32)
WARM = (
    [2] * 4,
    [2] * 24,
    [2, 12] * 10,
)  # opened first, for imports and machine code: narrow, wide, and of larger tables
ANSWERS = RECORDS = 100_000
BARS = {(20, 2): 2.0, (30, 2): 3.0, (100, 2): 20.0}  # seconds, by attributes and their values, of 20,000 rows
warnings.simplefilter("ignore", NotPrivateWarning)


def table(rows: int, sizes: Sequence[int], seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    columns: list[np.ndarray] = []
    for i, size in enumerate(sizes):
        z = rng.normal(size=rows)
        for parent in rng.choice(i, min(i, 2), replace=False) if i else []:
            z += rng.normal(scale=1.6) * (2.0 * columns[parent] / (sizes[parent] - 1) - 1)
        cuts = np.quantile(z[:100_000], np.sort(rng.dirichlet(np.full(size, 3.0)).cumsum()[:-1]))
        columns.append(np.searchsorted(cuts, z).astype(np.uint8))
    return {f"a{i}": column for i, column in enumerate(columns)}


def write(path: Path, rows: int, sizes: Sequence[int]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(table(rows, sizes)), path)


def opened(path: str, sizes: list[int], seed: int, stream: bool) -> dict[str, Any]:
    """Measure one opening in a separate process."""
    universe = hr.Universe.from_sizes({f"a{i}": m for i, m in enumerate(sizes)})
    for warm in WARM:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder) / "rows.parquet", 2_000, warm)
            few = hr.Universe.from_sizes({f"a{i}": m for i, m in enumerate(warm)})
            before = hr.open(Path(folder) / "rows.parquet", universe=few, budget=BUDGET, seed=0)
            rng = np.random.default_rng(0)
            before.ask_all([hr.count(conditions(few, rng)) for _ in range(20)], progress=False)
            before.synthetic(10)
    began, used = time.perf_counter(), time.process_time()
    session = hr.open(path, universe=universe, budget=BUDGET, seed=seed)
    found = {"open": time.process_time() - used, "open, by the clock": time.perf_counter() - began}
    found["cells"] = sum(math.prod(universe.sizes(c)) for c in session.hypothesis.cliques)
    if stream:
        rng = np.random.default_rng(1)
        questions = [hr.count(conditions(universe, rng)) for _ in range(ANSWERS)]
        began = time.perf_counter()
        session.ask_all(questions, progress=False)
        found["answers, by the clock"], began = time.perf_counter() - began, time.perf_counter()
        session.synthetic(RECORDS)
        found["records, by the clock"] = time.perf_counter() - began
    found["MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def conditions(universe: hr.Universe, rng: np.random.Generator) -> dict[str, np.ndarray]:
    chosen = rng.choice(len(universe.names), int(rng.integers(1, 4)), replace=False)
    return {universe.names[i]: np.arange(universe.shape[i]) <= rng.integers(0, universe.shape[i] - 1) for i in chosen}


def measured(rows: int, sizes: Sequence[int], seeds: int, stream: bool = False) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, rows, sizes)
        found = []
        for seed in range(seeds):
            told = json.dumps({"path": str(path), "sizes": list(sizes), "seed": seed, "stream": stream})
            done = subprocess.run([sys.executable, __file__, "--one", told], check=True, capture_output=True, text=True)
            found.append(json.loads(done.stdout.splitlines()[-1]))
            print(f"{rows:,} rows × {len(sizes)} attributes of {sizes[-1]}: {found[-1]}", file=sys.stderr, flush=True)
        return found


def exponent(points: list[tuple[float, float]]) -> float:
    """Return the exponent of a power through the points, by least squares of logarithms."""
    x, y = np.log(np.array(points)).T
    return float(np.polyfit(x, y, 1)[0])


def stated(runs: list[dict[str, Any]]) -> str:
    seconds = np.array([run["open"] for run in runs])
    error = f" ± {seconds.std(ddof=1) / math.sqrt(len(seconds)):.2g}" if len(seconds) > 1 else ""
    return f"{seconds.mean():.2f}{error}"


def mean(runs: list[dict[str, Any]]) -> float:
    return float(np.mean([run["open"] for run in runs]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--one")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(opened(**json.loads(given.one))))
        return
    attributes = [d for d in ATTRIBUTES if d <= 30 or not given.quick]
    rows = [n for n in ROWS if n <= 10**5 or not given.quick]
    wide = {d: measured(20_000, [2] * d, given.seeds) for d in attributes}
    tens = measured(50_000, [10] * 20, given.seeds)
    long = {n: measured(n, [2] * 20, 1) for n in rows}
    fine = {m: measured(50_000, [m] * 10, given.seeds) for m in BINS}
    by_width = exponent([(d, mean(runs)) for d, runs in wide.items() if d >= 20])
    by_length = exponent([(n, mean(runs)) for n, runs in long.items()])
    by_cells = exponent([(m**3, mean(runs)) for m, runs in fine.items() if m >= 4])
    lines = [
        "# Wide tables",
        "",
        "From `python benchmarks/width.py`: processor seconds to open a session at ε = 1, δ = 1e-9, with compiled loops ready; "
        f"mean of {given.seeds} seeds and its standard error. Each attribute depends on two earlier ones.",
        "",
        "| attributes of two values, 20,000 rows | opening | bar | cells of the model |",
        "|---|---|---|---|",
    ]
    for d, runs in wide.items():
        bar = BARS.get((d, 2))
        lines.append(
            f"| {d} | {stated(runs)} | {'' if bar is None else f'{bar:g}'} | {np.mean([r['cells'] for r in runs]):,.0f} |"
        )
    lines += ["", f"From 20 attributes on, the time of opening grows as attributes^{by_width:.2f} (bar 2).", ""]
    lines += [f"20 attributes of ten values, 50,000 rows: {stated(tens)} (bar 8).", ""]
    lines += ["| rows, 20 attributes of two values | opening |", "|---|---|"]
    lines += [f"| {n:,} | {stated(runs)} |" for n, runs in long.items()]
    lines += ["", f"The time grows as rows^{by_length:.2f} (bar 1).", ""]
    lines += ["| values of each of ten attributes, 50,000 rows | opening | cells of the model |", "|---|---|---|"]
    lines += [f"| {m} | {stated(runs)} | {np.mean([r['cells'] for r in runs]):,.0f} |" for m, runs in fine.items()]
    lines += ["", f"The time grows as (cells of a three-way table)^{by_cells:.2f}.", ""]
    if not given.quick:
        (last,) = measured(10**6, [MIXED[i % len(MIXED)] for i in range(200)], 1, stream=True)
        whole = sum(last[part] for part in last if part.endswith("clock"))
        lines += [
            f"200 attributes of {min(MIXED)} to {max(MIXED)} values and 10⁶ rows, by the clock: opened in {last['open, by the clock']:.0f} s, "
            f"{ANSWERS:,} answers in {last['answers, by the clock']:.0f} s, {RECORDS:,} records in {last['records, by the clock']:.0f} s; "
            f"{whole:.0f} s in all (bar 300) and {last['MB'] / 1024:.1f} GB (bar 4).",
            "",
        ]
    print("\n".join(lines))
    if not given.quick:
        lines += ["![processor time of opening](benchmark-width.png)"]
        (DOCS / "benchmarks-width.md").write_text(short_lines("\n".join(lines) + "\n"))
        draw({"attributes": wide, "rows": long, "values of an attribute": fine})


def draw(curves: dict[str, dict[int, list[dict[str, Any]]]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(curves), figsize=(10, 3), sharey=True, layout="constrained")
    for axis, (name, runs) in zip(axes, curves.items(), strict=True):
        axis.loglog(list(runs), [mean(each) for each in runs.values()], "o-")
        axis.set_xlabel(name)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds to open")
    figure.savefig(DOCS / "benchmark-width.png", dpi=110)


if __name__ == "__main__":
    main()
