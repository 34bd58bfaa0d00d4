"""The session whose ledgers are stored in ``fixtures``: its table, its options, its questions, and how to load it again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from fresh_ledgers import postgres_url, sqlite_url

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.ledger.urls import store_at

FIXTURES = Path(__file__).parent / "fixtures"
VERSION = "0.1.0"
KEY = "5eed" * 16  # the owner's key of the stored ledgers, whose tables are made up
UNIVERSE = hr.Universe(a=hr.Integers(0, 3), b=hr.Integers(0, 3), c=hr.Integers(0, 3))
BUDGET = hr.Budget(1.0, 1e-6)
WITHIN = 0.01
FREE = [hr.count(a=1), hr.count(a=(1, 2), c=0), hr.marginal("a", "b"), hr.mean("c", where=hr.count(b=2))]
BOUGHT = [hr.count(a=1, b=2), hr.marginal("b", "c")]
LATE = hr.count(b=3, c=1)  # asked by another analyst, after a crash
LINES = ("number", "time", "who", "kind", "body", "hash")
SNAPSHOTS = ("number", "body")


def table(seed: int) -> HistogramSource:
    rng = np.random.default_rng(seed)
    return HistogramSource(UNIVERSE, rng.multinomial(20_000, rng.dirichlet(np.ones(64))).reshape(4, 4, 4))


def opened(url: str, who: str = "") -> hr.Session:
    """The session and its second block."""
    session = hr.open(
        table(0), universe=UNIVERSE, budget=BUDGET, guard=0.2, reserve=0.4, workload=hr.marginals(1), ledger=url, analyst=who
    )  # fmt: skip
    session.append(table(1), block="later")
    return session


def heard(answer: hr.Answer) -> list[Any]:
    return [np.asarray(answer.value).tolist(), np.asarray(answer.error, dtype=float).tolist()]


def spent(session: hr.Session) -> list[float]:
    return [block.spent for block in session.blocks.values()]


def believed(session: hr.Session) -> list[Any]:
    """Return two tables of the fit of each block, as a function of the entries alone."""
    engines = [block.engine for block in session.blocks.values()]
    return [engine.hypothesis.marginal(names).tolist() for engine in engines for names in (("a", "c"), ("b", "c"))]


def answers(session: hr.Session) -> list[list[Any]]:
    """The answers to every question of the stored session, in its order: of both blocks, of one, and of the late one."""
    found = [heard(session.ask(query)) for query in FREE]
    found += [heard(session.ask(query, within=WITHIN)) for query in BOUGHT]
    found += [heard(session.select_blocks("later").ask(query)) for query in FREE]
    return [*found, heard(session.ask(LATE, within=WITHIN))]


def expected(kind: str) -> dict[str, Any]:
    """Return what the stored ledger had spent and answered when it was made."""
    found: dict[str, Any] = json.loads((FIXTURES / f"{kind}-{VERSION}.json").read_text())
    return found


def rows(url: str) -> Iterator[str]:
    """The rows of a ledger's tables, as JSON, a line each."""
    store = store_at(url)
    for name, columns in (("hedgerow_lines", LINES), ("hedgerow_snapshots", SNAPSHOTS)):
        for row in store._rows(f"SELECT {', '.join(columns)} FROM {name} ORDER BY number"):
            yield json.dumps([name, *row], separators=(",", ":"))
    store.close()


def on_sqlite() -> str:
    """The URL of a copy of the stored file."""
    url = sqlite_url()
    shutil.copy(FIXTURES / f"sqlite-{VERSION}.ledger", url.removeprefix("sqlite:///"))
    return url


def on_postgres() -> str:
    """The URL of a schema into which the stored rows were loaded."""
    url = postgres_url()
    store = store_at(url)
    store.create()
    with store._connection() as connection:
        for text in (FIXTURES / f"postgres-{VERSION}.jsonl").read_text().splitlines():
            name, *row = json.loads(text)
            connection.execute(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(row))})", row)
        connection.commit()
    store.close()
    return url
