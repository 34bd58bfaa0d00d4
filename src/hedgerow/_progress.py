"""A progress bar for long loops: how far, from public counts only."""

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
