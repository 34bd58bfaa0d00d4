"""The blocks of a session: tables of different people, each with its own budget and its own engine (docs/blocks.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from hedgerow.answering.answer_cache import AnswerCache
from hedgerow.data.source import DataSource
from hedgerow.engine.interface import Engine
from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Ledger

if TYPE_CHECKING:
    from hedgerow.engine.sampling import RowSampling

# default name of the block that a session is opened on
FIRST = "1"


@runtime_checkable
class Closes(Protocol):
    """A durable ledger, which holds a database connection that must be closed."""

    def close(self) -> None:
        """Write pending lines and close the connection."""
        ...


@dataclass(frozen=True, eq=False)
class Block:
    """One table of a session: its rows, the ledger that pays for releases about them, and the engine that answers."""

    name: str
    data: DataSource = field(repr=False)
    ledger: Ledger
    engine: Engine = field(repr=False)
    cache: AnswerCache = field(repr=False)
    beta: float
    sampling: RowSampling | None = field(default=None, repr=False)

    @property
    def rows(self) -> float:
        """Number of rows n: exact under replace-one, a private estimate under add/remove."""
        return self.engine.rows

    @property
    def budget(self) -> Budget:
        """Privacy budget of this block."""
        return self.ledger.budget

    @property
    def spent(self) -> float:
        """Amount spent so far, in the budget's currency."""
        return self.ledger.spent

    @property
    def remaining(self) -> float:
        """Amount left, in the budget's currency."""
        return self.ledger.remaining

    def close(self) -> None:
        """Write what a durable ledger has not written yet, and close its database connection."""
        if isinstance(self.ledger, Closes):
            self.ledger.close()


class Appending(Protocol):
    """A function that makes a block from more rows. ``opening`` supplies it."""

    def __call__(self, blocks: Sequence[Block], name: str, source: Any, **options: Any) -> Block: ...


def block_range(names: Sequence[str], first: str, last: str | None) -> slice:
    """Return the places of the blocks from ``first`` to ``last``, by default of ``first`` alone."""
    end = first if last is None else last
    for name in (first, end):
        if name not in names:
            raise InvalidInput(f"A block must be one of {', '.join(names)}. Found {name!r}. Name one of these.")
    start, stop = names.index(first), names.index(end)
    if start > stop:
        raise InvalidInput(
            f"The first block of a range must come before its last. Found {first!r} after {last!r}. Swap them."
        )
    return slice(start, stop + 1)
