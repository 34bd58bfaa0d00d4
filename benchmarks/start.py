"""CPU seconds from nothing to an answer, each in a process of its own, into docs/benchmarks-start.md.

python benchmarks/start.py
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks-start.md"
ROWS, RUNS = 50_000, 7
FIRST_ANSWER = """
import hedgerow as hr
universe = hr.Universe(age=hr.Integers(17, 90), sex=hr.Categories(["F", "M"]), smoker=hr.Flag(), region=hr.Integers(0, 9))
session = hr.open("people.csv", universe=universe, budget=hr.Budget(epsilon=1, delta=1e-9))
session.ask(hr.count(smoker=True, age=(40, 65)))
"""
WIDE = """
import pandas as pd, hedgerow as hr
frame = pd.read_csv("wide.csv")
universe = hr.Universe.from_json({name: 6 for name in frame.columns})
session = hr.open(frame, universe=universe, budget=hr.Budget(epsilon=1, delta=1e-9))
session.ask(hr.count(c0=1, c1=2))
"""
DESK = """source = "people.csv"
ledger = "sqlite:///people.ledger"
[budget]
epsilon = 1.0
delta = 1e-9
[universe]
age = { kind = "Integers", low = 17, high = 90 }
sex = { kind = "Categories", values = ["F", "M"] }
smoker = { kind = "Flag" }
region = { kind = "Integers", low = 0, high = 9 }
"""


def cpu(command: list[str], folder: Path, **environment: str) -> float:
    """Run a command; return its CPU seconds, those of its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=os.environ | environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def typical(command: list[str], folder: Path) -> float:
    return statistics.median(cpu(command, folder) for _ in range(RUNS))


def measured(folder: Path) -> list[tuple[str, float, str]]:
    """Return what was done, its CPU seconds, and its bar."""
    python, desk = sys.executable, str(Path(sys.executable).with_name("hedgerow"))
    people = [f"{17 + i * 7 % 74},{'FM'[i * 3 % 2]},{i % 4 == 0},{i * 11 % 10}" for i in range(ROWS)]
    (folder / "people.csv").write_text("\n".join(["age,sex,smoker,region", *people]))
    wide = [",".join(str((i * (k + 3)) // 7 % 6) for k in range(12)) for i in range(ROWS)]
    (folder / "wide.csv").write_text("\n".join([",".join(f"c{k}" for k in range(12)), *wide]))
    (folder / "hedgerow.toml").write_text(DESK)
    numpy = typical([python, "-c", "import numpy"], folder)
    cold = cpu(
        [python, "-c", FIRST_ANSWER],
        folder,
        NUMBA_CACHE_DIR=str(folder / "one"),
        PYTHONPYCACHEPREFIX=str(folder / "two"),
    )
    cold_wide = cpu([python, "-c", WIDE], folder, NUMBA_CACHE_DIR=str(folder / "three"))
    cpu([desk, "open", "--yes"], folder)
    return [
        ("`import numpy`, for comparison", numpy, ""),
        ("`import hedgerow`", typical([python, "-c", "import hedgerow"], folder), f"{1.3 * numpy:.2f}"),
        (f"interpreter to first answer, a CSV file of {ROWS:,} × 4", typical([python, "-c", FIRST_ANSWER], folder), "1.2"),
        ("the same, the first time ever: no bytecode, nothing compiled", cold, "5"),
        (f"interpreter to first answer, a frame of {ROWS:,} × 12, compiled before", typical([python, "-c", WIDE], folder), ""),
        ("the same, loops compiled for the first time", cold_wide, ""),
        ("`hedgerow --help`", typical([desk, "--help"], folder), "0.3"),
        ("`hedgerow ask` on an opened ledger", typical([desk, "ask", "count(smoker=True)"], folder), "1"),
    ]  # fmt: skip


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(Path(folder))
    lines = [f"| {what} | {seconds:.2f} | {bar} |" for what, seconds, bar in rows]
    PAGE.write_text(
        "# Starting up\n\n"
        f"CPU seconds of a whole process, all its threads; the median of {RUNS} where it can be repeated.\n"
        "`make bench-start` measures them.\n\n" + "\n".join(["| | CPU s | bar |", "|---|---|---|", *lines, ""])
    )
    print(PAGE.read_text())
