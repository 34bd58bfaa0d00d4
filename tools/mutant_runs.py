"""Run tests with one change made: in a copy of src, in a process of its own that ends in time."""

from __future__ import annotations

import compileall
import gc
import multiprocessing
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
SERVER = multiprocessing.get_context("forkserver")
HEAVY = (
    "numpy scipy.special scipy.optimize scipy.sparse scipy.stats pandas pyarrow duckdb numba hypothesis pytest opendp.prelude dp_accounting "
    "sqlalchemy sqlglot ibis sklearn.linear_model rich.progress typer threadpoolctl"
)
SERVER.set_forkserver_preload(HEAVY.split())
CAUGHT, SURVIVED, NOT_SETTLED = "caught", "survived", "not settled"
OUTCOMES = {0: SURVIVED, 1: CAUGHT}  # of pytest's status; any other settles nothing
IMPORTED = 70  # status if the package was imported before the tests
OUT_OF_TIME = "out of time"
CRASHED = "the tests end by a signal"
NOT_RUN = "not run yet"
BROKEN = "the tests cannot be collected"


class Change(Protocol):
    """A change of one file of the package."""

    @property
    def id(self) -> str: ...

    def found_in(self, package: Path) -> Path: ...

    def changed(self, text: str) -> str: ...


@dataclass(frozen=True)
class Verdict:
    """``by``: the test that failed, or what went wrong. ``asked``: how many tests were run at most."""

    id: str
    outcome: str
    by: str
    seconds: float
    asked: int = 0


@contextmanager
def copied(base: Path, change: Change | None = None) -> Iterator[Path]:
    """Copy the sources with a change. File times are kept, and with them all caches except those of changed files."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        src = Path(shutil.copytree(base, Path(folder) / "src"))
        if change is None:
            compileall.compile_dir(src, quiet=1)
        else:
            file = change.found_in(src / "hedgerow")
            text = file.read_text()
            file.write_text(change.changed(text))
            compiles = "@compiled(" in text
            for cache in [
                *file.parent.glob(f"__pycache__/{file.stem}.*"),
                *(src.rglob("*.nb[ci]") if compiles else ()),
            ]:
                cache.unlink(missing_ok=True)
        yield src


def pytest(src: Path, tests: Sequence[str], limit: float, jobs: int = 1, work: int = 0) -> tuple[int | None, str]:
    """Its status, None when out of time, and what it printed. ``work``: seconds of the processor, 0 for any."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as scratch:
        process = SERVER.Process(target=_pytest, args=(str(src), tuple(tests), jobs, scratch, work))
        process.start()
        process.join(limit)
        settled = process.exitcode not in (None, -signal.SIGXCPU, -signal.SIGKILL)
        if process.exitcode is None:
            os.killpg(process.pid or 0, signal.SIGKILL)  # with whatever the tests have started
            process.join()
        printed = Path(scratch, "printed")
        return process.exitcode if settled else None, printed.read_text(errors="replace") if printed.exists() else ""


def _pytest(src: str, tests: Sequence[str], jobs: int, scratch: str, work: int) -> None:
    """Run pytest in a process that has imported the heavy libraries already."""
    os.setsid()
    if work:
        resource.setrlimit(resource.RLIMIT_CPU, (work, work + 5))
    with open(Path(scratch, "printed"), "w") as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
    os.environ["PYTHONPATH"] = src  # for what the tests start
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = scratch  # what fails here must not be tried again elsewhere
    os.environ["HEDGEROW_NO_SHRINKING"] = "1"
    sys.path.insert(0, src)
    os.chdir(ROOT)
    if "hedgerow" in sys.modules:  # the package without the change, of which every test would pass
        sys.exit(IMPORTED)
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
        "not audit" if work else "",
    ]
    shared = ["-n", str(jobs), "--dist", "worksteal"] if jobs > 1 else ["-p", "no:xdist"]
    sys.exit(pytest.main([*quick, *shared, *(f"tests/{test}" for test in tests)]))


def judged(change: Change, tests: Sequence[str], limit: float, base: Path, work: int = 0) -> Verdict:
    """Run the tests on a changed copy."""
    began = time.monotonic()
    with copied(base, change) as src:
        status, printed = pytest(src, tests, limit, work=work)
    outcome = NOT_SETTLED if status is None else OUTCOMES.get(status, NOT_SETTLED)
    failed = failed_tests(printed)
    by = failed[0] if failed else OUT_OF_TIME if status is None else ""
    is_import = "ImportError while loading conftest" in printed or failed
    if status is not None and status < 0 and work:
        outcome, by = CAUGHT, CRASHED
    elif outcome == NOT_SETTLED and status is not None and work:  # nothing can be collected, or pytest itself broke
        outcome, by = (CAUGHT, BROKEN) if is_import else (outcome, printed[-200:])
    return Verdict(change.id, outcome, by, time.monotonic() - began, len(tests))


def failed_tests(printed: str) -> list[str]:
    """The tests that pytest says failed, below tests/. Their parameters may have spaces, and " - " begins a message."""
    found = re.findall(r"^(?:FAILED|ERROR) tests/(.+?)(?: - .*)?$", printed, re.MULTILINE)
    return [node if node.endswith("]") else node.partition("[")[0] for node in found]


def require_copy(src: Path) -> None:
    """Refuse to run unless the copy is what Python imports."""
    where = subprocess.run(
        [sys.executable, "-c", "import hedgerow; print(hedgerow.__file__)"],
        env={**os.environ, "PYTHONPATH": str(src)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    if not where.stdout.startswith(str(src)):
        raise SystemExit(f"The copy must be what is imported. Found {where.stdout.strip()}. Is another in the way?")
