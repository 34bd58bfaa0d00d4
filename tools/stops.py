"""How many modules a question goes through, from a trace of it: the fewer, the easier to follow.

    python tools/stops.py            the stops, in the order in which they are first entered
    python tools/stops.py --check    fail where there are more than LIMITS allows

A stop is a module of hedgerow of which at least one written function runs, the helpers at the top included: whoever follows
the question must open that file. What runs while a module is imported is no stop, nor what a dataclass generates. Each way
is gone once before it is traced, so that nothing is left to import, and loops run in Python, where a trace sees them.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import hedgerow as hr
from hedgerow.data import Histogram

SOURCE = Path(hr.__file__).parent
GOALS = {"open": 18, "count": 10, "convex": 14}
NOT_YET = {"open": 26, "count": 14, "convex": 24}  # where the goal is not reached yet: no more than this, until it is
LIMITS = {**GOALS, **NOT_YET}

UNIVERSE = hr.Universe(age=hr.Range(20, 80, bins=4), region=hr.Categories(["north", "south", "east"]), smoker=hr.Flag())
CONVEX = hr.losses.Logistic(target="smoker", features=("age", "region"))


def stops(way: Callable[[], Any]) -> list[str]:
    """The modules that a call enters, in the order of first entry."""
    way()
    found: dict[str, None] = {}

    def entered(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if (
            event == "call"
            and code.co_flags & inspect.CO_OPTIMIZED
            and code.co_filename.startswith(f"{SOURCE}{os.sep}")
        ):
            found.setdefault(str(frame.f_globals["__name__"]).removeprefix("hedgerow."))

    before = sys.getprofile()
    sys.setprofile(entered)
    try:
        way()
    finally:
        sys.setprofile(before)
    return list(found)


def opened(source: Any) -> hr.Session:
    return hr.open(source, universe=UNIVERSE, budget=hr.Budget(1.0, 1e-6), seed=1)


def asked(make: Callable[[], hr.Query]) -> Callable[[], None]:
    """A way to ask a question, each time of a session that has not heard it, and to see that the answer was free."""
    table = Histogram(UNIVERSE, np.arange(1000, 1000 + UNIVERSE.size))
    sessions = [opened(table), opened(table)]

    def ask() -> None:
        answer = sessions.pop().ask(make())
        assert (answer.source, answer.cost) == ("hypothesis", 0.0)

    return ask


def traced() -> dict[str, list[str]]:
    """The stops of opening a CSV file, of a count answered free, and of a convex question answered free."""
    with tempfile.TemporaryDirectory() as folder:
        cells = np.column_stack(np.unravel_index(np.arange(2000) ** 2 % UNIVERSE.size, UNIVERSE.shape))
        path, columns = Path(folder) / "people.csv", UNIVERSE.decode(cells, numeric=True)
        rows = zip(*columns.values(), strict=True)
        path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]))
        return {
            "open": stops(lambda: opened(path)),
            "count": stops(asked(lambda: hr.count(smoker=True, age=(40, 65)))),
            "convex": stops(asked(lambda: hr.minimize(CONVEX, over=hr.L2Ball(2.0)))),
        }


def too_many(found: dict[str, list[str]], limits: dict[str, int]) -> list[str]:
    return [
        f"{way} must go through at most {limits[way]} modules. Found {len(modules)}. Give it a straighter way."
        for way, modules in found.items()
        if len(modules) > limits[way]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="The modules that a question goes through.")
    parser.add_argument("--check", action="store_true", help="fail where there are more than allowed")
    given = parser.parse_args()
    warnings.simplefilter("ignore", hr.NotPrivateWarning)
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # before its first import
    found = traced()
    width = max(len(name) for modules in found.values() for name in modules) + 2
    heads = [f"{way}: {len(modules)} (goal {GOALS[way]})" for way, modules in found.items()]
    print("   ", *(head.ljust(width) for head in heads))
    for number, row in enumerate(zip_longest(*found.values(), fillvalue=""), 1):
        print(f"{number:3d} ", *(name.ljust(width) for name in row))
    refused = too_many(found, LIMITS) if given.check else []
    print(*refused, sep="\n", end="\n" if refused else "", file=sys.stderr)
    return bool(refused)


if __name__ == "__main__":
    sys.exit(main())
