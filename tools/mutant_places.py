"""Write into the catalogue of mutants which function each is in, where that is not said yet: `tools/mutants.py --locate`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

import located
from mutant import Mutant


def locate(mutants: Sequence[Mutant], catalogue: Path, package: Path) -> int:
    """Turn "file.py" into "file.py::function" in each call of a writer; the number of places written."""
    without = {m.id: place for m in mutants if not m.where and (place := _place(m, package))}
    for file in sorted(catalogue.glob("of_*.py")):
        text = file.read_text()
        lines = text.splitlines(keepends=True)
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and len(call.args) > 4:
                named, given = call.args[:2]
                if isinstance(named, ast.Constant) and isinstance(given, ast.Constant) and named.value in without:
                    file_name = str(given.value)
                    old, new = f'"{file_name}"', f'"{file_name}::{without[str(named.value)]}"'
                    line = lines[given.lineno - 1]
                    lines[given.lineno - 1] = line.replace(old, new, 1)
        file.write_text("".join(lines))
    return len(without)


def _place(mutant: Mutant, package: Path) -> str:
    text = mutant.found_in(package).read_text()
    spans = located.spans(text, "", mutant.old)
    if len(spans) != 1:
        found = text.count(mutant.old)
        if found != 1:
            raise SystemExit(
                f"The old syntax of {mutant.id} must be in {mutant.file} once. Found it {len(spans)} times. Say where."
            )
        begin = text.index(mutant.old)
        lead = len(mutant.old) - len(mutant.old.lstrip())
        spans = [(begin + lead, begin + len(mutant.old.rstrip()))]
    return located.enclosing(text, *spans[0])
