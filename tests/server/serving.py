"""Real services for tests: an application in this process, or a process of its own on a loopback port."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

import hedgerow as hr

UNIVERSE = hr.Universe(age=hr.Integers(17, 90), sex=hr.Categories(["F", "M"]), smoker=hr.Flag())
BUDGET = hr.Budget(8, 1e-6)
DESK = """
source = "people.csv"
ledger = "sqlite:///people.ledger"
[budget]
epsilon = 8.0
delta = 1e-6
[options]
reserve = 0.4
[universe.age]
kind = "Integers"
low = 17
high = 90
[universe.sex]
kind = "Categories"
values = ["F", "M"]
[universe.smoker]
kind = "Flag"
"""


def people(n: int = 3000, last: int = 20) -> pd.DataFrame:
    """A table whose last row has this age, so that two of them are neighbors."""
    ages = [17 + (7 * i) % 74 for i in range(n - 1)]
    return pd.DataFrame(
        {"age": [*ages, last], "sex": ["FM"[i % 2] for i in range(n)], "smoker": [i % 3 == 0 for i in range(n)]}
    )


def desk(folder: Path) -> Path:
    """Write a table and its hedgerow.toml, and return the path of the file."""
    people().to_csv(folder / "people.csv", index=False)
    (folder / "hedgerow.toml").write_text(DESK)
    return folder / "hedgerow.toml"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextlib.contextmanager
def process(*arguments: str, port: int) -> Iterator[subprocess.Popen[str]]:
    """Run ``hedgerow serve`` and wait until it answers. It is killed at the end if it still runs."""
    with configured(*arguments, "--listen", f"127.0.0.1:{port}", port=port) as running:
        yield running


@contextlib.contextmanager
def configured(*arguments: str | Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """Run ``hedgerow serve`` with a configuration file, or other arguments, that say where it listens."""
    given = ["--service", *arguments] if len(arguments) == 1 else arguments
    command = [sys.executable, "-m", "hedgerow.cli", "serve", *map(str, given)]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        wait_for(port, running)
        yield running
    finally:
        running.kill()
        running.communicate()


def wait_for(port: int, running: subprocess.Popen[str], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if running.poll() is not None:
            raise AssertionError(running.communicate())
        with contextlib.suppress(OSError, urllib.error.URLError):  # noqa: SIM117
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/health", timeout=5):
                return
        time.sleep(0.1)
    raise AssertionError("the service did not start")
