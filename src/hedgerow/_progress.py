"""Progress bars for long loops: how far, from public counts only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(title: str, steps: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of steps done. Quiet unless `shown`."""
    if not shown:
        yield lambda step: None
        return
    from rich.progress import Progress

    with Progress(transient=True) as display:
        task = display.add_task(title, total=steps)
        yield lambda step: display.update(task, completed=step)


@contextmanager
def counting_bar(title: str, total: int, wanted: bool | None) -> Iterator[Callable[[], None]]:
    """A function to call once for each of ``total`` things. Shown if wanted, or by default if there are many."""
    if not (total > 1000 if wanted is None else wanted):
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True) as display:
        task = display.add_task(title, total=total)
        waiting = 0

        def advance() -> None:
            nonlocal waiting
            waiting += 1
            if waiting == 256:  # a bar that is told of everything would take longer than the work
                display.advance(task, waiting)
                waiting = 0

        yield advance
        display.advance(task, waiting)
