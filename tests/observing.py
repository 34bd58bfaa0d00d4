"""Record everything that can be seen of a piece of work as lines of text, with noise that makes two tables release the same.

``Transcript.watch`` records the result or the error of an act, and everything that it writes: warnings, logging, both
output streams (of compiled libraries too), and files. Two transcripts are equal or show the first line that differs.

``Conditioned`` is noise that draws and records its outcomes, or replays recorded outcomes whatever the values: two
runs are then conditioned on the same released history, and all else that differs between them is a leak.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import logging
import os
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import hedgerow as hr
from hedgerow.privacy.noise import Noise

ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")
PACKAGE = str(Path(hr.__file__).parent)
HOME = str(Path(__file__).parents[1])
RELATED = ("__cause__", "__context__")


class Diverged(BaseException):
    """Raised where a draw, or the number of draws, depends on the table."""


# What is seen


def described(thing: Any) -> str:
    """Describe a value by type, shape, order and every bit, and by its repr if its class defines one."""
    kind = f"{type(thing).__module__}.{type(thing).__qualname__}"
    match thing:
        case np.ndarray() if thing.dtype != object:
            facts = (thing.dtype.str, thing.shape, thing.flags.c_contiguous, thing.flags.writeable)
            return f"{kind}{facts}{thing.tobytes().hex()}"
        case np.ndarray():
            return f"{kind}{thing.shape}{described(thing.tolist())}"
        case pd.DataFrame():
            columns = [described(thing[name].to_numpy()) for name in thing]
            return f"{kind}{list(thing.columns)}{list(map(str, thing.dtypes))}{thing.index!r}{columns}"
        case Mapping():
            return f"{kind}{[(described(key), described(value)) for key, value in thing.items()]}"
        case list() | tuple() | set() | frozenset():
            return f"{kind}{[described(each) for each in thing]}"
        case float() | np.generic():
            return f"{kind}({thing!r})"
    parts = ""
    if dataclasses.is_dataclass(thing):
        fields = [field.name for field in dataclasses.fields(thing) if not field.name.startswith("_")]
        parts = described({name: getattr(thing, name) for name in fields})
    return ADDRESS.sub("0x", f"{kind} {thing!r} {parts}")


def failure(raised: BaseException, hidden: Any = None, frames: bool = True) -> list[str]:
    """Describe an exception with everything that a debugger or a crash report would show."""
    lines = [f"raised {type(raised).__qualname__} {described(raised.args)} {raised} {getattr(raised, '__notes__', ())}"]
    for frame, line in traceback.walk_tb(raised.__traceback__):
        if frame.f_code.co_filename.startswith(PACKAGE):
            lines.append(f"  in {frame.f_code.co_filename}:{line} {frame.f_code.co_qualname}")
            shown = {name: value for name, value in frame.f_locals.items() if frames and value is not hidden}
            lines += [f"    {name} = {_shown(value)}" for name, value in shown.items()]
    for name in RELATED:
        other = getattr(raised, name)
        lines += [f"  {name}"] + (["    None"] if other is None else failure(other, hidden, frames))
    return lines


def _shown(value: Any) -> str:
    """Describe a local variable by its repr. Its inside counts only if the repr shows it."""
    try:
        return ADDRESS.sub("0x", repr(value))
    except Exception as problem:
        return f"no repr: {type(problem).__name__}"


class Transcript:
    """The observed lines, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._digest = hashlib.sha256()

    def write(self, *lines: str) -> None:
        self.lines += lines
        for line in lines:
            # the same questions wherever the project lies
            self._digest.update(line.replace(HOME, "").encode("utf-8", "surrogatepass"))

    def choice(self, n: int) -> int:
        """Return a number below n that follows from all lines so far, so that any difference changes all later questions."""
        self.write("chosen")
        return int.from_bytes(self._digest.digest()[:8]) % n

    def watch(self, name: str, act: Callable[[], Any], hidden: Any = None, frames: bool = True) -> Any:
        """Return the result of an act, or None if it fails, and record every text that it shows meanwhile.

        ``hidden``: an argument of the caller that its own frame shows anyway. ``frames``: include the locals of tracebacks.
        """
        found = None
        self.write(f"— {name}")
        with self._listening():
            try:
                found = act()
                self.write(f"gave {described(found)}")
            except Diverged as diverged:
                self.write(f"diverged: {diverged}")
            except Exception as raised:
                self.write(*failure(raised, hidden, frames))
        return found

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        records: list[str] = []
        handler = logging.Handler(logging.NOTSET)
        handler.emit = lambda record: records.append(f"{record.name} {record.levelname} {record.getMessage()}")  # type: ignore[method-assign]
        root, level, home = logging.getLogger(), logging.getLogger().level, Path.cwd()
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            root.addHandler(handler)
            root.setLevel(logging.NOTSET)
            logging.getLogger("numba").setLevel(logging.WARNING)  # of its compiler, once a process
            os.chdir(folder)
            try:
                with _streams(records):
                    yield
            finally:
                os.chdir(home)
                root.removeHandler(handler)
                root.setLevel(level)
                self.write(*(f"said {record}" for record in records))
                self.write(*(f"warned {w.category.__name__} {w.message} {w.filename}:{w.lineno}" for w in warned))
                files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
                self.write(*(f"wrote {path.relative_to(folder)} {path.read_bytes().hex()}" for path in files))


@contextlib.contextmanager
def _streams(into: list[str]) -> Iterator[None]:
    """Capture both output streams by their descriptors, because compiled libraries bypass Python's streams."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with tempfile.TemporaryFile() as file:
        kept = {number: os.dup(number) for number in (1, 2)}
        with (
            contextlib.redirect_stdout(open(1, "w", closefd=False)) as out,
            contextlib.redirect_stderr(open(2, "w", closefd=False)) as err,
        ):
            for number in kept:
                os.dup2(file.fileno(), number)
            try:
                yield
            finally:
                out.flush()
                err.flush()
                for number, copy in kept.items():
                    os.dup2(copy, number)
                    os.close(copy)
        file.seek(0)
        printed = file.read()
        if printed:
            into.append(f"printed {printed!r}")


def first_difference(one: Transcript, other: Transcript) -> str:
    """Return the first difference of two transcripts, or "" if they agree to the last bit."""
    for i, (a, b) in enumerate(zip(one.lines, other.lines, strict=False)):
        if a != b:
            act = next((line for line in reversed(one.lines[: i + 1]) if line.startswith("—")), "")
            return f"{act}\n  one:   {a[:2000]}\n  other: {b[:2000]}"
    return "" if len(one.lines) == len(other.lines) else "one is longer"


# The same released history


class History:
    """The draws in order, each with its event; ``again`` replays them.

    Every possible outcome is a history: ``tops`` makes every ``tops``-th comparison ⊤ and no other, and ``wild`` every
    ``wild``-th release far off, so that rare branches run.
    """

    def __init__(self, drawn: list[tuple[str, Any]] | None = None, tops: int = 0, wild: int = 0) -> None:
        self.drawn: list[tuple[str, Any]] = []
        self._earlier = None if drawn is None else iter(drawn)
        self._tops, self._wild = tops, wild

    def again(self) -> History:
        return History(self.drawn)

    def next(self, what: str, draw: Callable[[], Any]) -> Any:
        if self._earlier is None:
            found = self._drawn(what, draw)
        else:
            then, found = next(self._earlier, ("nothing", None))
            if then != what:
                raise Diverged(f"drew {what} where the other drew {then}")
        self.drawn.append((what, found))
        return found.copy() if isinstance(found, np.ndarray) else found

    def _drawn(self, what: str, draw: Callable[[], Any]) -> Any:
        if what == "comparison" and self._tops:
            turn = sum(what == then for then, _ in self.drawn) + 1
            return 0 if turn % self._tops == 0 else None
        found = draw()
        if isinstance(found, float | np.ndarray) and self._wild and (len(self.drawn) + 1) % self._wild == 0:
            return found * -1000.0  # still on the grid
        return found


class Conditioned(Noise):
    """Noise whose released values, choices and outcomes of comparisons are those of a history, if it has one."""

    def __init__(self, history: History, seed: int) -> None:
        super().__init__()
        self._history, self._bits, self._seeds = history, np.random.SFC64(seed), np.random.SeedSequence(seed)

    def _words(self, count: int) -> Any:
        return np.asarray(self._bits.random_raw(count), dtype=np.uint64)

    def _add_in_steps(self, steps: Any, event: Any) -> Any:
        return steps + self._integers(event, steps.size)  # OpenDP takes no seed

    def generator(self) -> np.random.Generator:
        return np.random.default_rng(self._seeds.spawn(1)[0])

    def _noisy(self, value: Any, event: Any) -> Any:
        return self._history.next(f"{event!r} {np.shape(value)}", lambda: super(Conditioned, self)._noisy(value, event))

    def _largest_gumbel(self, values: Any, event: Any) -> int:
        return self._history.next(
            f"{event!r} {values.shape}", lambda: super(Conditioned, self)._largest_gumbel(values, event)
        )

    def _staircase(self, values: Any, event: Any) -> int:
        return self._history.next(
            f"{event!r} {values.shape}", lambda: super(Conditioned, self)._staircase(values, event)
        )

    def open_round(self, receipt: Any, threshold: int, unit: float, on_grid: bool = False) -> Any:
        return _Round(super().open_round(receipt, threshold, unit, on_grid), self._history)


class _Round:
    """A guard round with the outcomes of the history."""

    def __init__(self, real: Any, history: History) -> None:
        self._real, self._history, self.is_open = real, history, True

    def excess(self, value: int) -> int | None:
        above = self._history.next("comparison", lambda: self._real.excess(value))
        if above is not None:
            self.is_open = False
            if self._real.is_open:
                self._real._over()  # as the round itself would have done
        return above

    def __repr__(self) -> str:
        return "a round"
