"""Do the tests notice harm? Each mutant of tests/mutants/ is one small harmful change; the tests it names must fail with it.

    python tools/mutants.py                    all of them; writes docs/mutants.md
    python tools/mutants.py --area privacy     those of some areas
    python tools/mutants.py --only L03 B11     some of them
    python tools/mutants.py --list             what there is

A mutant is applied to a copy of src of its own, never in place. First all named tests must pass on an unchanged copy, the one that mutants
are copies of: so all that was compiled for it is there, but what is made of a changed file.

    caught        a named test fails
    survived      all named tests pass: harm that nobody would hear of, and status 1
    not settled   neither: out of time, or pytest itself broke

Seeded results (tests/transcripts.py) notice nearly every change and do not say whether it does harm, so no mutant names them.
"""

from __future__ import annotations

import argparse
import compileall
import gc
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

ROOT = Path(__file__).resolve().parent.parent
SOURCE, REPORT = ROOT / "src", ROOT / "docs" / "mutants.md"
sys.path.insert(0, str(ROOT / "tests" / "mutants"))

from catalogue import MUTANTS, NOT_WRITTEN  # noqa: E402
from mutant import Mutant  # noqa: E402

SERVER = multiprocessing.get_context("forkserver")
HEAVY = (
    "numpy scipy.special scipy.optimize scipy.sparse scipy.stats pandas pyarrow duckdb numba hypothesis pytest opendp.prelude dp_accounting "
    "sqlalchemy sqlglot ibis sklearn.linear_model rich.progress typer threadpoolctl"
)
SERVER.set_forkserver_preload(HEAVY.split())
CAUGHT, SURVIVED, NOT_SETTLED = "caught", "survived", "not settled"
OUTCOMES = {0: SURVIVED, 1: CAUGHT}  # of pytest's status; any other settles nothing


@dataclass(frozen=True)
class Verdict:
    mutant: Mutant
    outcome: str
    by: str  # the test that failed, or what went wrong
    seconds: float


@contextmanager
def copied(base: Path, mutant: Mutant | None = None) -> Iterator[Path]:
    """A copy of such a folder as src, changed. Times of files are kept, and with them all caches but those of what is changed."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        src = Path(shutil.copytree(base, Path(folder) / "src"))
        if mutant is None:
            compileall.compile_dir(src, quiet=1)
        else:
            file = src / "hedgerow" / mutant.file
            text = file.read_text()
            file.write_text(changed(mutant, text))
            compiles = "@compiled(" in text
            for cache in [
                *file.parent.glob(f"__pycache__/{file.stem}.*"),
                *(src.rglob("*.nb[ci]") if compiles else ()),
            ]:
                cache.unlink(missing_ok=True)
        yield src


def changed(mutant: Mutant, text: str) -> str:
    if text.count(mutant.old) != 1 or mutant.old == mutant.new:
        raise SystemExit(
            f"The old text of {mutant.id} must occur once in {mutant.file}. Found {text.count(mutant.old)}. Renew it."
        )
    return text.replace(mutant.old, mutant.new)


def pytest(src: Path, tests: Sequence[str], limit: float, jobs: int = 1) -> tuple[int | None, str]:
    """Its status, None when out of time, and what it printed."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as scratch:
        process = SERVER.Process(target=_pytest, args=(str(src), tuple(tests), jobs, scratch))
        process.start()
        process.join(limit)
        settled = process.exitcode is not None
        if not settled:
            os.killpg(process.pid or 0, signal.SIGKILL)  # with whatever the tests have started
            process.join()
        printed = Path(scratch, "printed")
        return process.exitcode if settled else None, printed.read_text(errors="replace") if printed.exists() else ""


def _pytest(src: str, tests: Sequence[str], jobs: int, scratch: str) -> None:
    """In a process of its own, that has what is heavy to import already."""
    os.setsid()
    with open(Path(scratch, "printed"), "w") as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
    os.environ["PYTHONPATH"] = src  # for what the tests start
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = scratch  # what fails here must not be tried again elsewhere
    os.environ["HEDGEROW_NO_SHRINKING"] = "1"
    sys.path.insert(0, src)
    os.chdir(ROOT)
    import pytest

    gc.freeze()  # what was there before the tests is not looked through again and again
    quick = [
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:unraisableexception",
        "--hypothesis-seed=0",
        "--tb=no",
        "--assert=plain",
        "-m",
        "",
    ]
    shared = ["-n", str(jobs), "--dist", "worksteal"] if jobs > 1 else ["-p", "no:xdist"]
    sys.exit(pytest.main([*quick, *shared, *(f"tests/{test}" for test in tests)]))


def judged(mutant: Mutant, limit: float, base: Path) -> Verdict:
    began = time.monotonic()
    with copied(base, mutant) as src:
        status, printed = pytest(src, mutant.tests, limit)
    outcome = NOT_SETTLED if status is None else OUTCOMES.get(status, NOT_SETTLED)
    failed = re.search(r"^FAILED tests/(\S+)|^ERROR tests/(\S+)", printed, re.MULTILINE)
    by = (failed[1] or failed[2]) if failed else "out of time" if status is None else ""
    return Verdict(mutant, outcome, by, time.monotonic() - began)


def require_sound(mutants: Sequence[Mutant], limit: float, jobs: int, src: Path) -> None:
    """All named tests must pass without a mutant, and on the copy, or nothing that follows would mean anything."""
    where = subprocess.run(
        [sys.executable, "-c", "import hedgerow; print(hedgerow.__file__)"],
        env={**os.environ, "PYTHONPATH": str(src)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    if not where.stdout.startswith(str(src)):
        raise SystemExit(f"The copy must be what is imported. Found {where.stdout.strip()}. Is another in the way?")
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    print(f"{len(mutants)} mutants, {len(tests)} tests: these must pass without a mutant …", flush=True)
    status, printed = pytest(src, tests, limit, jobs)
    if status != 0:
        raise SystemExit(f"All named tests must pass without a mutant. Found that they do not:\n{printed[-3000:]}")


def report(verdicts: Sequence[Verdict]) -> str:
    counted = [v for v in verdicts if not v.mutant.equivalent]
    lines = ["| area | caught | survived | not settled |", "|---|---|---|---|"]
    for area in dict.fromkeys(v.mutant.area for v in counted):
        found = [v.outcome for v in counted if v.mutant.area == area]
        lines.append(f"| {area} | " + " | ".join(str(found.count(o)) for o in (CAUGHT, SURVIVED, NOT_SETTLED)) + " |")
    total = [v.outcome for v in counted]
    lines.append("| **all** | " + " | ".join(f"**{total.count(o)}**" for o in (CAUGHT, SURVIVED, NOT_SETTLED)) + " |")
    for outcome in (SURVIVED, NOT_SETTLED):
        left = [v for v in counted if v.outcome == outcome]
        lines += ["", f"## {outcome.capitalize()}", ""]
        lines += [f"- {v.mutant.id} (`{v.mutant.file}`): {v.mutant.note}" for v in left] or ["None."]
    return "\n".join(lines)


def document(verdicts: Sequence[Verdict]) -> str:
    equivalent = [
        f"- {v.mutant.id} (`{v.mutant.file}`): {v.mutant.equivalent}" for v in verdicts if v.mutant.equivalent
    ]
    return "\n".join(
        [
            "# Mutants",
            "",
            "Small harmful changes to the library, and whether the tests that each names notice it: `make mutants` writes this page.",
            "The changes are in `tests/mutants/`, with what a user would suffer from each. Seeded results are not asked.",
            "",
            report(verdicts),
            "",
            "## Equivalent: no test can notice them, and why",
            "",
            *(equivalent or ["None."]),
            "",
            "## Not written: what the design leaves no line for",
            "",
            *(f"- {line}" for line in NOT_WRITTEN),
            "",
        ]
    )


def main() -> int:
    asked = argparse.ArgumentParser(description="Do the tests notice harm?")
    asked.add_argument("--only", nargs="+", default=[], metavar="ID")
    asked.add_argument("--area", nargs="+", default=[])
    asked.add_argument("--list", action="store_true", help="show them and run nothing")
    asked.add_argument("--jobs", type=int, default=2)
    asked.add_argument("--limit", type=float, default=120.0, help="seconds for each mutant")
    asked.add_argument("--verbose", action="store_true", help="a line for each, with the test that failed")
    given = asked.parse_args()
    unknown = {*given.only} - {m.id for m in MUTANTS} | {*given.area} - {m.area for m in MUTANTS}
    if unknown:
        asked.error(f"unknown: {', '.join(sorted(unknown))}. See --list.")
    chosen = [m for m in MUTANTS if m.id in (given.only or [m.id]) and m.area in (given.area or [m.area])]
    if given.list:
        for m in chosen:
            print(f"{m.id}  {m.area:10} {m.file}: {m.note}")
        return 0
    os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_CACHE_DIR": ""}  # caches are beside the sources, so in the copy
    running = [m for m in chosen if not m.equivalent]
    verdicts: dict[str, Verdict] = {m.id: Verdict(m, "equivalent", "", 0.0) for m in chosen if m.equivalent}
    columns = (TextColumn("mutants"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with copied(SOURCE) as base:
        require_sound(running, 10 * given.limit, given.jobs, base)
        with ThreadPoolExecutor(given.jobs) as pool, Progress(*columns) as display:
            task = display.add_task("mutants", total=len(running))
            for done in as_completed([pool.submit(judged, m, given.limit, base) for m in running]):
                v = done.result()
                verdicts[v.mutant.id] = v
                display.advance(task)
                if given.verbose or v.outcome != CAUGHT:
                    display.console.print(
                        f"{v.mutant.id} {v.outcome} in {v.seconds:.1f} s  {v.by}", markup=False, soft_wrap=True
                    )
    ordered = [verdicts[m.id] for m in chosen]
    print(report(ordered))
    if len(chosen) == len(MUTANTS):
        REPORT.write_text(document(ordered))
    return int(any(v.outcome == SURVIVED for v in ordered))


if __name__ == "__main__":
    sys.exit(main())
