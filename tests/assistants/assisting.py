"""Desks for tests of assistants: a small table as a release, and as a session that may buy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import people

import hedgerow as hr
from hedgerow.assistants.desk import AssistantDesk, PurchaseRule

T = TypeVar("T")
QUESTIONS = [
    "count(smoker=True)",
    "share(count(smoker=True), where=count(sex='F'))",
    "mean('age')",
    "quantile('age', 0.9)",
    "group_by('sex').mean('age')",
    "marginal('sex', 'smoker')",
    "difference(mean('age', where=count(sex='F')), mean('age', where=count(sex='M')))",
    "top('region', 1)",
    "histogram('age', edges=[0, 4, 8])",
    "total('age')",
]
CALLS: dict[str, dict[str, Any]] = {  # one call of every free tool
    "describe_dataset": {},
    "summarise_columns": {"columns": ["age", "smoker"]},
    "synthetic_rows": {"rows": 5},
    "ask": {"questions": QUESTIONS, "compare": [[0, 1]]},
    "sql": {"statement": "SELECT sex, count(*), avg(age) FROM data GROUP BY sex"},
    "explain_answer": {"question": "count(sex='F')", "other": "count(sex='M')"},
    "fit_model": {"target": "smoker", "features": ["age", "sex"]},
    "price": {"question": "count(smoker=True)", "within": 0.5},
}


def release_of(folder: Path, rows: int = 4000) -> Path:
    """Write a release of the small table."""
    return people.opened(people.frame(rows)).publish(folder / "people.hedgerow")


def release_desk(folder: Path) -> AssistantDesk:
    return AssistantDesk(hr.load(release_of(folder)), "people")


def buying_desk(folder: Path, epsilon: float = 0.9, *, needs_approval: bool = True) -> AssistantDesk:
    """A session on a durable ledger with a cap for the assistant."""
    session = people.opened(people.frame(4000), ledger=f"sqlite:///{folder / 'people.ledger'}", reserve=0.6)
    session.ledger.cap("assistant", epsilon)
    return AssistantDesk(session, "people", PurchaseRule("assistant", needs_approval))


def run(work: Callable[[], Awaitable[T]], seconds: float = 120) -> T:
    """Run a coroutine to its end, or fail when it takes too long."""

    async def limited() -> T:
        return await asyncio.wait_for(work(), seconds)

    return asyncio.run(limited())
