"""Record which tests run which lines of the package: a plugin of pytest, for `tools/mutants.py --record`.

    REACHED=.mutants python -m pytest -p reached_lines -n 2 …

Each process of pytest writes one file below the folder that REACHED names: for each file of the package and each line, the tests that ran
the line; and for each test its outcome and its seconds. A fixture that several tests share counts for the file of the test that asks first.
Lines that run at the import of a module belong to no test, and neither do loops that numba compiles, nor what a test runs in a process of
its own: tools/mutants.py has rules for these.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "hedgerow"
EVERY = 240.0  # seconds between two writings: what a broken run has recorded is not lost


class Recorder:
    def __init__(self, folder: Path) -> None:
        self.file = folder / f"reached-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}-{os.getpid()}.json.gz"
        self.coverage = coverage.Coverage(data_file=None, config_file=False, source=[str(PACKAGE)], messages=False)
        self.tests: dict[str, tuple[str, float]] = {}
        self.variants: dict[str, int] = {}
        self.written = time.monotonic()
        self.coverage.start()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Run the first and the last variant of each test: the others reach the same lines, but for a few."""
        variants: dict[str, list[pytest.Item]] = {}
        for item in items:
            variants.setdefault(item.nodeid.partition("[")[0], []).append(item)
        self.variants = {name: len(each) for name, each in variants.items()}
        kept = {each[i].nodeid for each in variants.values() for i in (0, -1)}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
        items[:] = [item for item in items if item.nodeid in kept]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")
            if time.monotonic() - self.written > EVERY:
                self.write()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[Any]:
        if fixturedef.scope == "function":
            return (yield)
        node = request._pyfuncitem.nodeid
        self.coverage.switch_context(node.partition("::")[0])
        try:
            return (yield)
        finally:
            self.coverage.switch_context(node)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome, seconds = self.tests.get(report.nodeid, ("passed", 0.0))
        if report.outcome != "passed":
            outcome = report.outcome
        self.tests[report.nodeid] = outcome, round(seconds + report.duration, 3)

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        self.write()

    def write(self) -> None:
        self.written = time.monotonic()
        data = self.coverage.get_data()
        names: dict[str, int] = {}
        lines = {
            Path(file).relative_to(PACKAGE).as_posix(): {
                line: [names.setdefault(test, len(names)) for test in tests if test]
                for line, tests in data.contexts_by_lineno(file).items()
            }
            for file in sorted(data.measured_files())
        }
        with gzip.open(self.file, "wt") as written:
            json.dump({"names": list(names), "lines": lines, "tests": self.tests, "variants": self.variants}, written)


def pytest_configure(config: pytest.Config) -> None:
    folder = os.environ.get("REACHED")
    is_controller = getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput")
    if folder and not is_controller:
        config.pluginmanager.register(Recorder(Path(folder)), "reached lines")
