"""Many questions to one session: time where a guard compares each, memory where each is a large table.

`python benchmarks/streams.py` writes docs/benchmarks-streams.md. Bars: 1,008 questions of eight attributes to a table of 10⁶ rows
take at most 1 s of CPU; a session that is asked for tables of a million cells, again and again, stays within 1 GB.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy loads its BLAS

import itertools
import platform
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import hedgerow as hr
from hedgerow.research.pages import short_lines

ROOT = Path(__file__).resolve().parent.parent
BUDGET = hr.Budget(1.0, 1e-9)
EIGHT = {"a": 10, "b": 2, "c": 8, "d": 5, "e": 16, "f": 3, "g": 7, "h": 4}
QUESTIONS = 1008
TABLES, SEEDS = 20, 5


def universe(sizes: dict[str, int]) -> hr.Universe:
    return hr.Universe(**{name: hr.Integers(0, size - 1) for name, size in sizes.items()})  # type: ignore[arg-type]


def table(sizes: dict[str, int], rows: int) -> pd.DataFrame:
    """Columns that depend on a common cause."""
    rng = np.random.default_rng(0)
    cause = rng.integers(0, 4, rows)
    return pd.DataFrame(
        {name: ((rng.random(rows) ** 1.5 * m).astype(int) + (cause if m > 4 else 0)) % m for name, m in sizes.items()}
    )


def questions(attributes: int) -> list[hr.Query]:
    rng = np.random.default_rng(1)
    sets = itertools.cycle(itertools.combinations(EIGHT, attributes))
    return [
        hr.count({n: tuple(map(int, np.sort(rng.integers(0, EIGHT[n], 2)))) for n in names})
        for names in itertools.islice(sets, QUESTIONS)
    ]


def seconds(rows: int, attributes: int, together: bool, seed: int = 0) -> tuple[float, int]:
    """CPU of the questions, and how many a guard was asked."""
    session = hr.open(table(EIGHT, rows), universe=universe(EIGHT), budget=BUDGET, seed=seed)
    watch, compared = session._engine._watch, 0  # type: ignore[attr-defined]
    if watch is not None:
        usual = watch.is_above

        def counted(value: float) -> bool:
            nonlocal compared
            compared += 1
            return bool(usual(value))

        watch.is_above = counted
    asked, began = questions(attributes), time.process_time()
    if together:
        session.ask_all(asked, progress=False)
    else:
        for query in asked:
            session.ask(query)
    return time.process_time() - began, compared


def megabytes() -> None:
    """Three-way tables of a 501-value and a 76-value attribute with each of the others, then all of them again."""
    sizes = {"salary": 501, "organisation": 76} | {f"other{i}": 33 for i in range(TABLES)}
    workload = [
        hr.marginal("salary", "organisation"),
        *(hr.marginal("organisation", f"other{i}") for i in range(TABLES)),
    ]
    session = hr.open(table(sizes, 135_727), universe=universe(sizes), budget=BUDGET, workload=workload, seed=1)
    print(_peak())
    for source in ("hypothesis", "repeat"):
        for i in range(TABLES):
            answer = session.ask(hr.marginal("salary", "organisation", f"other{i}"))
            assert answer.source == source
    print(_peak())


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3  # of kilobytes, as Linux counts


def stated(found: list[float]) -> str:
    return f"{np.mean(found):.2f} ± {np.std(found, ddof=1) / len(found) ** 0.5:.2f}"


def main() -> None:
    warnings.simplefilter("ignore")
    if "--memory" in sys.argv:
        megabytes()
        return
    seconds(10_000, 8, together=True)  # compiled, and warm
    lines = [
        "# Streams of questions",
        "",
        f"Measured by `benchmarks/streams.py` (`make bench`), Python {platform.python_version()}, one thread.",
        "",
        "## With a guard",
        f"CPU seconds of {QUESTIONS} counts of random intervals at ε = 1, δ = 1e-9. At 10⁵ rows no guard is used. At 10⁶ rows the guard",
        "checks every answer whose bar is wider than the guard's promise. For questions asked together, everything except the guard's noise is computed at once.",
        f"Means of {SEEDS} sessions and their standard errors.",
        "",
        "| rows | attributes of a question | guard asked | one by one | together |",
        "|---|---|---|---|---|",
    ]
    for rows, attributes in itertools.product((100_000, 1_000_000), (3, 8)):
        runs = [[seconds(rows, attributes, way, seed) for way in (False, True)] for seed in range(SEEDS)]
        assert all(alone[1] == together[1] for alone, together in runs)
        alone, together = (stated([run[way][0] for run in runs]) for way in (0, 1))
        compared = np.mean([run[0][1] for run in runs])
        lines.append(f"| {rows:,} | {attributes} | {compared:.0f} | {alone} s | {together} s |")
    ran = subprocess.run([sys.executable, __file__, "--memory"], capture_output=True, text=True, check=True)
    opened, asked = map(float, ran.stdout.split())
    lines += [
        "",
        "## Large tables",
        f"{TABLES} tables of 501 × 76 × 33 cells (1.3 million), asked one after another, and then again, without keeping the answers: at",
        f"most {asked:.0f} MB, including {opened:.0f} MB for the opening.",
    ]
    text = "\n".join(lines) + "\n"
    (ROOT / "docs" / "benchmarks-streams.md").write_text(short_lines(text))
    print(text)


if __name__ == "__main__":
    main()
