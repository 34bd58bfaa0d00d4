"""Measure the speed and the size of release files into docs/benchmarks-release.md: `python benchmarks/release_file.py`.

Each figure is of processes of its own. Rates are answers per second of CPU time to counts on one to three attributes that
were never asked before, after a thousand others; sessions of this code and of an earlier one (`--before`, a folder with
that code) answer the same questions in turn with the release, so that a busy machine slows all of them. Two and eight
processes that share the machine are measured by the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks-release.md"
SINGLE, BATCH, FIRST, ROUNDS, SECONDS, WARM = 2_000, 8_000, 1_000, 3, 4.0, 2.0
BEFORE = "b6ddc74"  # the last commit before release files
MILLION = {"a": 20, "b": 20, "c": 50, "d": 50}  # 10⁶ cells, all of them in the model of one four-way table


def table(name: str) -> tuple[Any, dict[str, int]]:
    """A benchmark table by name; "made" is 50,000 × 4, made up."""
    import numpy as np
    import pandas as pd

    if name in ("made", "million"):
        rng, sizes = (
            np.random.default_rng(0),
            {"age": 74, "sex": 2, "smoker": 2, "region": 10} if name == "made" else MILLION,
        )
        return pd.DataFrame({column: rng.integers(0, size, 50_000) for column, size in sizes.items()}), sizes
    import tables

    coded = tables.load(name)
    return coded.frame, coded.sizes


def questions(sizes: dict[str, int], many: int, seed: int) -> list[Any]:
    """Different counts on one to three attributes: values, ranges and sets."""
    import numpy as np

    import hedgerow as hr

    rng, found = np.random.default_rng(seed), {}
    while len(found) < many:
        parts: dict[str, Any] = {}
        for column in rng.choice(list(sizes), int(rng.integers(1, 4)), replace=False).tolist():
            size, kind = sizes[column], rng.random()
            low = int(rng.integers(size))
            if size == 2 or kind < 0.4:
                parts[column] = low
            elif kind < 0.8:
                parts[column] = (low, int(rng.integers(low, size)))
            else:
                parts[column] = {int(value) for value in rng.choice(size, int(rng.integers(1, size)), replace=False)}
        found[hr.count(parts)] = None
    return list(found)


def opened(name: str) -> tuple[Any, dict[str, int]]:
    import hedgerow as hr

    frame, sizes = table(name)
    options: dict[str, Any] = {"workload": [hr.marginal(*MILLION)]} if name == "million" else {}
    universe = hr.Universe.from_json(sizes)
    return hr.open(frame, universe=universe, budget=hr.Budget(1.0, 1e-9), guard=0.0, seed=1, **options), sizes


# What a process of its own does. Each prints one line of JSON for each line that it reads.


def serve(kind: str, where: str, name: str) -> None:
    """Open a session or load a release, and answer as many rounds as asked for; print CPU seconds of each part."""
    import hedgerow as hr

    if kind == "session":
        subject, sizes = opened(name)
    else:
        subject, sizes = hr.load(where), table(name)[1]
    for query in questions(sizes, FIRST, 1):
        subject.ask(query)
    subject.ask_all(questions(sizes, FIRST, 2), progress=False)
    print("ready", flush=True)
    for line in sys.stdin:
        seed = int(line)
        singles, batch = questions(sizes, SINGLE, 10 + seed), questions(sizes, BATCH, 1_000 + seed)
        start = time.process_time()
        for query in singles:
            subject.ask(query)
        middle = time.process_time()
        subject.ask_all(batch, progress=False)
        print(json.dumps([SINGLE / (middle - start), BATCH / (time.process_time() - middle)]), flush=True)


def answer_for(where: str, name: str) -> None:
    """Answer questions for some seconds by the clock, once told to begin; print how many."""
    import hedgerow as hr

    release, asked = hr.load(where), questions(table(name)[1], 4_000, os.getpid())
    for query in asked[:FIRST]:
        release.ask(query)
    print("ready", flush=True)
    sys.stdin.readline()
    for seconds in (WARM, SECONDS):  # pages that the system took away while others loaded come back first
        count, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            for query in asked[:50]:
                release.ask(query)
            count += 50
    print(count, flush=True)


def child(*arguments: str, code: Path = ROOT) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(code / "src"), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, str(Path(__file__).resolve()), *arguments]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def told(process: subprocess.Popen[str], line: str | None = None) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    if line is not None:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    return process.stdout.readline().strip()


def rates(name: str, where: Path, before: Path | None) -> dict[str, list[float]]:
    """The typical rate, single and in batches, of each subject; all of them take turns."""
    subjects = {"release": child("serve", "release", str(where), name), "session": child("serve", "session", "", name)}
    if before is not None:
        subjects["before"] = child("serve", "session", "", name, code=before)
    for process in subjects.values():
        assert told(process) == "ready"
    found: dict[str, list[list[float]]] = {subject: [] for subject in subjects}
    for seed in range(ROUNDS):
        for subject, process in subjects.items():
            found[subject].append(json.loads(told(process, str(seed))))
    for process in subjects.values():
        process.kill()
        process.wait()
    return {
        subject: [statistics.median(column) for column in zip(*runs, strict=True)] for subject, runs in found.items()
    }


def together(name: str, where: Path, many: int) -> float:
    """Answers per second by the clock of this many processes at once."""
    processes = [child("answer", str(where), name) for _ in range(many)]
    for process in processes:
        assert told(process) == "ready"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    total = sum(int(told(process)) for process in processes)
    for process in processes:
        process.wait()
    return total / SECONDS


def cpu(code: str) -> float:
    """CPU seconds that a process prints, or those of all of it if it prints nothing."""
    script = f"import time, os\nstart = sum(os.times()[:2])\n{code}\nprint(sum(os.times()[:2]) - start)"
    runs = []
    for _ in range(7):
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
        runs.append(float(subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True).stdout))  # fmt: skip
    return statistics.median(runs)


def main(before: Path | None) -> None:
    said = f"Written by `make bench-release`. {' '.join((__doc__ or '').split(chr(10) * 2)[1].split())}"
    lines = ["# Release files: speed and size", "", textwrap.fill(said, 118), ""]
    with tempfile.TemporaryDirectory() as folder:
        where = {name: Path(folder) / f"{name}.hedgerow" for name in ("adult", "made", "nltcs", "million")}
        sizes = []
        print("publishing", flush=True)
        for name, path in where.items():
            session, columns = opened(name)
            session.publish(path, answers="none")
            cells = session.universe.size
            sizes.append(f"| {name}: {len(columns)} columns, {cells:.2g} cells | {path.stat().st_size / 1e6:.2f} MB |")
        lines += [
            "## Answers per second of CPU",
            "",
            "| table | subject | one by one | in batches |",
            "|---|---|---|---|",
        ]
        for name in ("adult", "made"):
            print("asking", name, flush=True)
            found = rates(name, where[name], before)
            for subject, (single, batch) in found.items():
                called = {
                    "release": "the release",
                    "session": "its session",
                    "before": f"a session of commit {BEFORE}",
                }[subject]
                lines.append(f"| {name} | {called} | {single:,.0f} | {batch:,.0f} |")
            if before is not None:
                single, batch = (new / old for new, old in zip(found["release"], found["before"], strict=True))
                lines.append(f"| {name} | ratio (bar 3) | {single:.1f} | {batch:.1f} |")
        one, two, eight = (max(together("adult", where["adult"], many) for _ in range(3)) for many in (1, 2, 8))
        lines += [
            "",
            "## Processes that share the machine",
            "",
            "| processes | answers per second by the clock | of one |",
            "|---|---|---|",
        ]
        lines += [f"| {many} | {rate:,.0f} | {rate / one:.2f} |" for many, rate in ((1, one), (2, two), (8, eight))]
        lines += [
            "",
            f"Bars: two give 1.6 of one on two cores, eight no fewer than two. Here there are {os.cpu_count()}.",
            "",
        ]
        usual = cpu("import numpy, pandas")
        load = f"hr.load({str(where['adult'])!r}).ask(hr.count({{'age': (2, 9), 'sex': 1}}))"
        lines += ["## From a file to an answer", "", "| | CPU s | bar |", "|---|---|---|", f"| `import numpy, pandas` | {usual:.2f} | |",
            f"| import, load and first answer | {cpu('import hedgerow as hr; ' + load):.2f} | {1.2 * usual:.2f} |",
            f"| load and first answer, imported | {cpu('import numpy, pandas, hedgerow as hr; start = sum(os.times()[:2]); ' + load):.2f} | 0.30 |"]  # fmt: skip
        lines += ["", "## Sizes", "", "| table | file |", "|---|---|", *sizes, ""]
    PAGE.write_text("\n".join(lines))
    print(PAGE.read_text())


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(*sys.argv[2:])
    elif sys.argv[1:2] == ["answer"]:
        answer_for(*sys.argv[2:])
    else:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("--before", type=Path, help="folder with the code of an earlier commit")
        main(parser.parse_args().before)
