"""Count the code that privacy rests on: what a reviewer of the promise must read.

    python tools/core.py            a line for each room, and the total
    python tools/core.py --check    fail where the total is above LIMIT

A module is in the core if it names a table, a ledger, a receipt or a source of noise, for types too: only such a module
can read rows, charge or draw. So is every module of the rooms in ``WHOLE``, which fix sensitivities, costs and codes for
them. All other modules compute from released values. BESIDE are rooms that reach a table through a session alone
(``DOORS``), or work on made-up tables (``NOT_PRODUCT``); ``tests/test_layers.py`` says what each of them may import.

This is not the whole product: a mistake elsewhere cannot reveal a row, but it can make an answer wrong. So the last
lines count the product as well, with and without its doors.

Docstrings, comments and blank lines do not count.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "hedgerow"
LIMIT = 28_000
NAMES = {
    *("DataSource", "Table", "SparkTable", "HistogramSource", "RowStore", "Ledger", "Accountant", "Receipt"),
    *("Noise", "Seeded", "RowSampling", "Block", "Session"),
}
WHOLE = {
    *("privacy", "data", "ledger", "drafting", "textbook", "erm", "universe", "convex", "opening", "profiles"),
    *("query/linear", "query/counts", "query/bound", "query/row_statistic", "query/row_trial"),
    *("engine", "session", "errors"),  # all of an engine, its error bars too: they stand beside what it measures
}
NOT_PRODUCT = {"research", "audit", "demo", "unsafe"}  # experiments, and tables that are made up
DOORS = {"cli", "server", "console", "assistants", "client", "estimators", "__init__"}  # they ask a session
BESIDE = NOT_PRODUCT | DOORS | {"planning"}  # a plan works on made-up rows


def place(path: Path) -> str:
    """Return the path of a module inside the package, without its ending."""
    return path.relative_to(SOURCE).with_suffix("").as_posix()


def code_lines(path: Path) -> int:
    """Return the number of lines of code, without docstrings, comments and blank lines."""
    text = path.read_text()
    inside: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                inside.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and i not in inside for i, line in lines)


def is_within(module: str, rooms: set[str]) -> bool:
    """Return True if the module is one of these rooms, or inside one."""
    return any(module == room or module.startswith(f"{room}/") for room in rooms)


def imported(path: Path) -> Iterator[str]:
    """Yield every name that a module imports from the package, those for types alone too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hedgerow"):
            yield from (alias.name for alias in node.names)


def core() -> dict[str, int]:
    """Return the lines of code of each module of the core."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        module = place(path)
        if is_within(module, BESIDE):
            continue
        if is_within(module, WHOLE) or module.startswith("_") or not NAMES.isdisjoint(imported(path)):
            found[module] = code_lines(path)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help=f"fail above {LIMIT} lines")
    given = parser.parse_args()
    modules, every = core(), {place(path): code_lines(path) for path in SOURCE.rglob("*.py")}
    product = {module: lines for module, lines in every.items() if not is_within(module, NOT_PRODUCT)}
    inner = sum(lines for module, lines in product.items() if not is_within(module, DOORS))
    rooms = Counter[str]()
    for module, lines in modules.items():
        rooms[module.partition("/")[0]] += lines
    print(*(f"{lines:7,}  {room}" for room, lines in rooms.most_common()), sep="\n")
    total = rooms.total()
    print(f"{total:7,}  in the core; at most {LIMIT:,}")
    print(f"{inner:7,}  in the product without its doors, {sum(product.values()):,} with them")
    print(f"{sum(every.values()):7,}  in the package, with research, audit, demo and unsafe")
    return int(given.check and total > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
