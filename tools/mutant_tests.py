"""Choose the tests of a mutant that an operator made: those that run the line, near ones and fast ones first.

``reached_lines`` has recorded which tests run which lines. Lines that belong to no test are those of constants, of compiled loops, and of
what runs in other processes: for these the tests are taken that run lines which name the constant or the function. Tests that import
the module or bear its name (tools/near.py) come last.
"""

from __future__ import annotations

import ast
import gzip
import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from mutant_operators import Site
from near import ROOT, near

NOT_ASKED = re.compile(
    r"^tests/(test_transcripts|mutants/|test_docs|test_imports|test_layers|test_public_names|test_release)"
)
SLOW = re.compile("spark|audit")
UNKNOWN = 2.0  # seconds of a test that was not recorded


class Reached:
    """The records of a folder, put together."""

    def __init__(self, folder: Path, package: Path) -> None:
        self.package = package
        self.lines: dict[str, dict[int, set[str]]] = {}
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.variants: dict[str, dict[str, float]] = {}
        self._near: dict[str, frozenset[str]] = {}
        for file in sorted(folder.glob("reached-*.json.gz")):
            with gzip.open(file, "rt") as record:
                self._add(json.load(record))
        if not self.seconds:
            raise SystemExit(
                f"{folder.name} must hold a record of which tests run which lines. Found none. Run with --record."
            )

    def _add(self, record: dict[str, object]) -> None:
        names, lines, tests, variants = (record[key] for key in ("names", "lines", "tests", "variants"))
        assert (
            isinstance(names, list)
            and isinstance(lines, dict)
            and isinstance(tests, dict)
            and isinstance(variants, dict)
        )
        for node, (outcome, seconds) in tests.items():
            function = _function(node)
            if outcome == "failed":
                self.failed.add(function)
            elif outcome == "passed":
                times = variants.get(function, 1)
                self.seconds[function] = max(self.seconds.get(function, 0.0), seconds * times)
                self.variants.setdefault(function, {})[node] = seconds
        for file, by_line in lines.items():
            found = self.lines.setdefault(file, {})
            for line, numbers in by_line.items():
                found.setdefault(int(line), set()).update(_function(names[number]) for number in numbers)

    @cached_property
    def _of_file(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for test in self.seconds:
            found.setdefault(test.partition("::")[0], []).append(test)
        return found

    @cached_property
    def _texts(self) -> dict[str, str]:
        return {path.relative_to(self.package).as_posix(): path.read_text() for path in self.package.rglob("*.py")}

    def of_lines(self, file: str, lines: Iterable[int]) -> set[str]:
        """Return the tests that run one of these lines. All tests of a file run a fixture that they share."""
        by_line = self.lines.get(file, {})
        contexts = {context for line in lines for context in by_line.get(line, ())}
        tests = {
            test for context in contexts for test in ([context] if "::" in context else self._of_file.get(context, []))
        }
        return {
            test for test in tests if test in self.seconds and test not in self.failed and not NOT_ASKED.match(test)
        }

    def of(self, site: Site) -> set[str]:
        """The tests of a mutant."""
        in_function = bool(site.where) and any(c.islower() for c in site.where.rpartition(".")[2][:2])
        found = self.of_lines(site.file, site.lines) or self.of_lines(site.file, site.statement)
        if in_function and found:
            return found
        for name in site.names:
            named = {test for file, lines in self._naming(name, site) for test in self.of_lines(file, lines)}
            if named:
                return found | named
        return found

    def near(self, file: str) -> frozenset[str]:
        """Return the tests of files that are named after the module or import it. Work in other processes is in no record."""
        if file not in self._near:
            files = [
                test for test in near([f"src/hedgerow/{file}"]) if not NOT_ASKED.match(test) and not SLOW.search(test)
            ]
            self._near[file] = frozenset(f"{test}::{name}" for test in files for name in _functions(test))
        return self._near[file] - self.failed

    def _naming(self, name: str, site: Site) -> Iterator[tuple[str, list[int]]]:
        word = re.compile(rf"\b{re.escape(name)}\b")
        for file, text in self._texts.items():
            if name in text:
                lines = [n for n, line in enumerate(text.splitlines(), 1) if word.search(line)]
                yield file, [n for n in lines if file != site.file or n not in site.statement]

    def ordered(self, site: Site, seconds: float) -> tuple[list[str], int]:
        """Return the tests to run within the time, and the number of all tests."""
        tests, beside = self.of(site), self.near(site.file)
        words = {part for part in re.split(r"[/._]", site.file.removesuffix(".py")) if len(part) > 2}
        asked = {part for part in re.split(r"[._]", site.where.lower()) if len(part) > 2}

        def distance(test: str) -> float:
            said = set(re.split(r"[/._:]", test.lower()))
            alike = len(words & said) + len({w + "s" for w in words} & said) + len(asked & said)
            apart = 1 if test in tests else 4 if alike else 20
            return (self.seconds.get(test, UNKNOWN) + 0.2) / (1 + 2 * alike) * (10 if SLOW.search(test) else 1) * apart

        chosen: list[str] = []
        left = seconds
        for test in sorted(tests | beside, key=lambda test: (distance(test), test)):
            nodes = {test: self.seconds.get(test, UNKNOWN)}
            if nodes[test] > min(left, 0.2 * seconds):
                nodes = self.variants.get(test, nodes)  # of a long test two variants
            for node, time in nodes.items():
                if time <= left or not chosen:
                    chosen.append(node)
                    left -= time + 0.02
        return chosen, len(tests)

    def time_of(self, tests: Iterable[str]) -> float:
        return sum(self.seconds.get(test, self.variants.get(_function(test), {}).get(test, UNKNOWN)) for test in tests)


def _functions(file: str) -> list[str]:
    tree = ast.parse((ROOT / file).read_text())
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


def _function(node: str) -> str:
    return node.partition("[")[0]
