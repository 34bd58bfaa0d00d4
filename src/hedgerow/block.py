"""A block: the rows that a session was opened on, or that were appended to it (docs/blocks.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hedgerow.data.source import DataSource
from hedgerow.engines.engine import Engine
from hedgerow.engines.sampling import Sampling
from hedgerow.memory import Memory
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Ledger

FIRST = "1"  # what the block is called that a session is opened on
LONGEST_NAME = 200  # characters


@dataclass(frozen=True, eq=False)
class Block:
    """One table of a session: its rows, who pays for what is told of them, and what answers about them."""

    name: str
    data: DataSource = field(repr=False)
    ledger: Ledger
    engine: Engine = field(repr=False)
    memory: Memory = field(repr=False)
    beta: float
    sampling: Sampling | None = field(default=None, repr=False)

    @property
    def rows(self) -> float:
        """n under replace-one, a private estimate of it under add/remove."""
        return self.engine.rows

    @property
    def budget(self) -> Budget:
        return self.ledger.budget

    @property
    def spent(self) -> float:
        return self.ledger.spent

    @property
    def remaining(self) -> float:
        return self.ledger.remaining


class Appending(Protocol):
    """How a block is made of more rows (``opening``)."""

    def __call__(self, blocks: Sequence[Block], name: str, source: Any, **options: Any) -> Block: ...
