"""The way of a question through the house, from a trace of it: how many doors it goes through.

    python tools/stops.py            the stops, in the order in which they are first entered
    python tools/stops.py --check    fail where there are more than LIMITS allows

A folder is a room, down to the second level: ``engine/practical`` is one with the folders inside it. A stop is a module that is entered from another room: whoever follows the question must open that file. What
such a module calls in its own room is behind its door; it is listed below its door, indented, and not counted. The helpers at the
top (``_types``, ``_checks`` …) are no rooms. What runs while a module is imported is no stop, nor what a dataclass generates. Each way is
gone once before it is traced, so that nothing is left to import, and loops run in Python, where a trace sees them.
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
LIMITS = {"open": 31, "count": 19, "convex": 28}  # with what an answer rests on, and the intervals of coefficients

UNIVERSE = hr.Universe(age=hr.Range(20, 80, bins=4), region=hr.Categories(["north", "south", "east"]), smoker=hr.Flag())
CONVEX = hr.losses.Logistic(target="smoker", features=("age", "region"))


def modules(way: Callable[[], Any]) -> dict[str, bool]:
    """The modules that a call enters, in the order of first entry, and whether from another room."""
    way()
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
        way()
    finally:
        sys.setprofile(before)
    return found


def module_of(frame: FrameType) -> str | None:
    """The module of ours that the frame runs in; none for helpers, which are no rooms."""
    if not frame.f_code.co_filename.startswith(f"{SOURCE}{os.sep}"):
        return None
    name = str(frame.f_globals["__name__"]).removeprefix("hedgerow.")
    return None if name.startswith("_") else name


def room(module: str) -> str:
    """The folder, with the folders inside it from the third level on; a module at the top is a room by itself."""
    return ".".join(module.split(".")[:-1][:2]) or module


def opened(source: Any) -> hr.Session:
    return hr.open(source, universe=UNIVERSE, budget=hr.Budget(1.0, 1e-6), seed=1)


def asked(make: Callable[[], hr.Query]) -> Callable[[], None]:
    """A way to ask a question, each time of a session that has not heard it, and to see that the answer was free."""
    table = HistogramSource(UNIVERSE, np.arange(1000, 1000 + UNIVERSE.size))
    sessions = [opened(table), opened(table)]

    def ask() -> None:
        answer = sessions.pop().ask(make())
        assert (answer.source, answer.cost) == ("hypothesis", 0.0)

    return ask


def traced() -> dict[str, dict[str, bool]]:
    """The stops of opening a CSV file, of a count answered free, and of a convex question answered free."""
    with tempfile.TemporaryDirectory() as folder:
        cells = np.column_stack(np.unravel_index(np.arange(2000) ** 2 % UNIVERSE.size, UNIVERSE.shape))
        path, columns = Path(folder) / "people.csv", UNIVERSE.decode(cells, numeric=True)
        rows = zip(*columns.values(), strict=True)
        path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]))
        return {
            "open": modules(lambda: opened(path)),
            "count": modules(asked(lambda: hr.count(smoker=True, age=(40, 65)))),
            "convex": modules(asked(lambda: hr.minimize(CONVEX, over=hr.L2Ball(2.0)))),
        }


def doors(found: dict[str, bool]) -> list[str]:
    return [name for name, is_stop in found.items() if is_stop]


def too_many(found: dict[str, dict[str, bool]], limits: dict[str, int]) -> list[str]:
    return [
        f"{way} must have at most {limits[way]} stops. Found {len(doors(entered))}. Give it a straighter way."
        for way, entered in found.items()
        if len(doors(entered)) > limits[way]
    ]


def shown(found: dict[str, bool]) -> list[str]:
    """Each door with what is behind it in its room."""
    lines, inside = [], [name for name, is_stop in found.items() if not is_stop]
    for number, door in enumerate(doors(found), 1):
        lines.append(f"{number:2d}  {door}")
        behind = [name for name in inside if room(name) == room(door)]
        lines += [f"      {name.rpartition('.')[2]}" for name in behind]
        inside = [name for name in inside if name not in behind]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="The stops of a question on its way.")
    parser.add_argument("--check", action="store_true", help="fail where there are more than allowed")
    given = parser.parse_args()
    warnings.simplefilter("ignore", hr.NotPrivateWarning)
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # before its first import
    found = traced()
    for way, entered in found.items():
        print(f"{way}: {len(doors(entered))} stops, at most {LIMITS[way]} ({len(entered)} modules)")
        print(*shown(entered), "", sep="\n")
    refused = too_many(found, LIMITS) if given.check else []
    print(*refused, sep="\n", end="\n" if refused else "", file=sys.stderr)
    return bool(refused)


if __name__ == "__main__":
    sys.exit(main())
