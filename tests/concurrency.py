"""Forks and threads, for tests of actions that must happen once."""

from __future__ import annotations

import os
import signal
import threading


def forked(function, fork=os.fork):
    """Run the function in a fork of this process; return its result or its error as text. A fork that hangs is ended."""
    reading, writing = os.pipe()
    child = fork()
    if child == 0:
        signal.alarm(20)
        try:
            said = f"returned {function()!r}"
        except BaseException as raised:
            said = f"{type(raised).__name__}: {raised}"
        os.write(writing, said.encode()[:4000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, "the fork hung or died"
    return said


def together(*tasks) -> None:
    """Run the tasks at once, and raise what one of them raised."""
    start, raised = threading.Barrier(len(tasks)), []

    def run(task) -> None:
        start.wait()
        try:
            task()
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]
