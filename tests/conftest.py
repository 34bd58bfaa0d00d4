"""Fixtures of several test files; ``people`` makes the tables."""

from __future__ import annotations

import functools
import gc
import os
from collections.abc import Iterator

import hypothesis
import pytest
import threadpoolctl
import typer.testing
from people import SMALL, frame, opened

import hedgerow as hr
from hedgerow.data import Table

# A busy machine is no failure; and to know that something fails, no smallest example is needed (tools/mutants.py)
NO_SHRINKING = "HEDGEROW_NO_SHRINKING" in os.environ
PHASES = [
    phase
    for phase in hypothesis.Phase
    if not (NO_SHRINKING and phase in (hypothesis.Phase.shrink, hypothesis.Phase.explain))
]
hypothesis.settings.register_profile("untimed", deadline=None, phases=PHASES)
hypothesis.settings.load_profile("untimed")

# The commands do not change between two calls of them: they are put together once, and not for each
if hasattr(typer.testing, "_get_command"):
    typer.testing._get_command = functools.cache(typer.testing._get_command)


@pytest.fixture(scope="session", autouse=True)
def ledger_key(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The key of ledgers' fingerprints, away from that of whoever runs the tests; for their processes too."""
    os.environ["HEDGEROW_LEDGER_KEY_FILE"] = str(tmp_path_factory.mktemp("key") / "ledger.key")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Keep tests of inner parts on one thread, as public calls would."""
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(scope="session")
def table() -> Table:
    """The small table of people, which nothing changes."""
    return Table(frame(), SMALL)


@pytest.fixture(scope="module")
def session(table: Table) -> hr.Session:
    """A session on it that the tests of a file share."""
    return opened(table)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests that need Spark first and together, so that only one process starts it (a virtual machine, and workers)."""
    items.sort(key=lambda item: "spark" not in item.path.name)


def pytest_collection_finish() -> None:
    """Freeze imported objects, which stay until the end, so that the garbage collector does not visit them again and again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let the interpreter free it at its exit; extension modules report what is left there as leaks."""
    gc.unfreeze()
