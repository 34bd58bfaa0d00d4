"""Progress of long work, from public facts only: bars for loops, and one line that says what is being done.

Progress is shown on a terminal, and in a notebook as plain text, which needs no widgets.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_told: ContextVar[Callable[[str], None] | None] = ContextVar("_told", default=None)


def in_notebook() -> bool:
    """Return True inside a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


def is_watched() -> bool:
    """Return True if somebody can see output change: in a notebook or on a terminal."""
    return in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


@contextmanager
def phases(wanted: bool | None) -> Iterator[None]:
    """Show what ``tell`` reports inside this context, each message in place of the last.

    ``wanted`` turns it on or off. By default it is shown if somebody watches, and stays with a ``listener``.
    """
    if wanted is None and _told.get() is not None:
        yield
        return
    if not (is_watched() if wanted is None else wanted):
        yield
        return
    with _line() as write:
        before = _told.set(write)
        try:
            yield
        finally:
            _told.reset(before)


@contextmanager
def listener(write: Callable[[str], None]) -> Iterator[None]:
    """Hand what ``tell`` reports inside this context to a function, such as one that shows it in a browser."""
    before = _told.set(write)
    try:
        yield
    finally:
        _told.reset(before)


def tell(words: Callable[[], str]) -> None:
    """Report what is being done now. ``words`` is called only if the report is shown."""
    told = _told.get()
    if told is not None:
        told(words())


@contextmanager
def bar(title: str, steps: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """Show a progress bar. Yields a function to call with the number of steps done. Silent unless ``shown``."""
    if not shown:
        yield lambda step: None
        return
    if in_notebook():
        with _line() as write:
            yield lambda step: write(f"{title}: {step:,} of {steps:,}")
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as display:
        task = display.add_task(title, total=steps)
        yield lambda step: display.update(task, completed=step)


@contextmanager
def show_bar(title: str, total: int, wanted: bool | None) -> Iterator[Callable[[], None]]:
    """Show a progress bar. Yields a function to call once for each of ``total`` things.

    It is shown if ``wanted``, or by default if the things are many and somebody watches.
    """
    if not (total > 1000 and is_watched() if wanted is None else wanted):
        yield lambda: None
        return
    with bar(title, total, True) as show:
        done = 0

        def advance() -> None:
            nonlocal done
            done += 1
            if done % 256 == 0:  # updating the bar for every thing would take longer than the work
                show(done)

        yield advance
        show(done)


@contextmanager
def _line() -> Iterator[Callable[[str], None]]:
    """Show one line of text that is overwritten again and again, and erased at the end."""
    longest = 0

    def write(words: str) -> None:
        nonlocal longest
        longest = max(longest, len(words))
        with contextlib.suppress(OSError, ValueError):  # a closed output must not stop the work
            sys.stderr.write(f"\r{words:<{longest}}")
            sys.stderr.flush()

    try:
        yield write
    finally:
        write("")
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write("\r")


@contextmanager
def show_count(title: str, shown: bool) -> Iterator[Callable[[int], None]]:
    """Show a count without a total. Yields a function to call with the number done. Silent unless ``shown``."""
    if not shown:
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}: {task.completed:,.0f}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(title, total=None)
        yield lambda done: display.update(task, completed=done)
