"""Count the modules that a question goes through, from a trace of an opening, a count and a convex question.

    python tools/stops.py            the modules, in the order in which they are first entered
    python tools/stops.py --check    fail if there are more than LIMITS allows

A room is a folder, down to the second level: ``engine/practical`` is one room with the folders inside it. A stop is a
module that is entered from another room; a reader who follows the question must open that file. The other modules that
run are listed below the stop of their room, indented. Stops have a limit, and so have all modules together.

Not counted are the helpers at the top (``_types``, ``_checks`` …), code that runs while a module is imported, and
methods that a dataclass generates. Each path runs once before it is traced, so that nothing is left to import, and
loops run in Python, where a trace sees them.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import hedgerow as hr
from hedgerow.data import HistogramSource

SOURCE = Path(hr.__file__).parent
LIMITS = {"open": (24, 47), "count": (18, 27), "convex": (28, 47)}  # stops, and all modules

UNIVERSE = hr.Universe(age=hr.Range(20, 80, bins=4), region=hr.Categories(["north", "south", "east"]), smoker=hr.Flag())
CONVEX = hr.losses.Logistic(target="smoker", features=("age", "region"))


def modules(call: Callable[[], Any]) -> dict[str, bool]:
    """Return the modules that a call enters, in the order of first entry; True for those entered from another room."""
    call()
    found: dict[str, bool] = {}

    def entered(frame: FrameType, event: str, _: Any) -> None:
        name = module_of(frame)
        if event != "call" or name is None or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            return
        if frame.f_code.co_name == "<lambda>":  # is read where it was written, wherever it is called
            return
        caller = frame.f_back
        while caller is not None and module_of(caller) is None:  # a library's code between two of ours
            caller = caller.f_back
        by = None if caller is None else module_of(caller)
        found[name] = found.get(name, False) or by is None or room(by) != room(name)

    before = sys.getprofile()
    sys.setprofile(entered)
    try:
        call()
    finally:
        sys.setprofile(before)
    return found


def module_of(frame: FrameType) -> str | None:
    """Return the module of this package that the frame runs in, or None for helpers and other code."""
    if not frame.f_code.co_filename.startswith(f"{SOURCE}{os.sep}"):
        return None
    name = str(frame.f_globals["__name__"]).removeprefix("hedgerow.")
    return None if name.startswith("_") else name


def room(module: str) -> str:
    """Return the room of a module: its folder, down to the second level. A module at the top is a room."""
    return ".".join(module.split(".")[:-1][:2]) or module


def open_session(source: Any) -> hr.Session:
    return hr.open(source, universe=UNIVERSE, budget=hr.Budget(1.0, 1e-6), seed=1)


def asker(make: Callable[[], hr.Query]) -> Callable[[], None]:
    """Return a call that asks a question of a new session and checks that the answer was free."""
    table = HistogramSource(UNIVERSE, np.arange(1000, 1000 + UNIVERSE.size))
    sessions = [open_session(table), open_session(table)]

    def ask() -> None:
        answer = sessions.pop().ask(make())
        assert (answer.source, answer.cost) == ("hypothesis", 0.0)

    return ask


def trace() -> dict[str, dict[str, bool]]:
    """Return the modules of opening a CSV file, of a free count, and of a free convex question."""
    with tempfile.TemporaryDirectory() as folder:
        cells = np.column_stack(np.unravel_index(np.arange(2000) ** 2 % UNIVERSE.size, UNIVERSE.shape))
        path, columns = Path(folder) / "people.csv", UNIVERSE.decode(cells, numeric=True)
        rows = zip(*columns.values(), strict=True)
        path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]))
        return {
            "open": modules(lambda: open_session(path)),
            "count": modules(asker(lambda: hr.count(smoker=True, age=(40, 65)))),
            "convex": modules(asker(lambda: hr.minimize(CONVEX, over=hr.L2Ball(2.0)))),
        }


def stops(found: dict[str, bool]) -> list[str]:
    """Return the modules that are entered from another room."""
    return [name for name, is_stop in found.items() if is_stop]


def too_many(found: dict[str, dict[str, bool]], limits: dict[str, tuple[int, int]]) -> list[str]:
    """Return a sentence for each path that has more stops, or more modules, than its limits."""
    return [
        f"{path} must have at most {limit} {kind}. Found {count}. Shorten it."
        for path, entered in found.items()
        for kind, count, limit in zip(
            ("stops", "modules"), (len(stops(entered)), len(entered)), limits[path], strict=True
        )
        if count > limit
    ]


def listed(found: dict[str, bool]) -> list[str]:
    """Return each stop as a line, followed by the other modules of its room."""
    lines, inside = [], [name for name, is_stop in found.items() if not is_stop]
    for number, stop in enumerate(stops(found), 1):
        lines.append(f"{number:2d}  {stop}")
        others = [name for name in inside if room(name) == room(stop)]
        lines += [f"      {name.rpartition('.')[2]}" for name in others]
        inside = [name for name in inside if name not in others]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if there are more than allowed")
    given = parser.parse_args()
    warnings.simplefilter("ignore", hr.NotPrivateWarning)
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # before its first import
    found = trace()
    for path, entered in found.items():
        most, most_modules = LIMITS[path]
        print(f"{path}: {len(stops(entered))} stops, at most {most}; {len(entered)} modules, at most {most_modules}")
        print(*listed(entered), "", sep="\n")
    refused = too_many(found, LIMITS) if given.check else []
    print(*refused, sep="\n", end="\n" if refused else "", file=sys.stderr)
    return bool(refused)


if __name__ == "__main__":
    sys.exit(main())
