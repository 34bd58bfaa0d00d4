"""Several accounts, each of a block of rows of its own: what a question about all of them is charged to.

A row is in one block, so neighbours differ in one block, and a person loses what that block's account filters, whatever happens in
the others (docs/proofs/blocks.md). So what is spent is the most that any of them has spent, and what is left the least. There is no
charge here: whoever draws charges the accounts of the blocks that it draws from.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, final

from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Bill, Entry, Ledger

T = TypeVar("T")


@final
@dataclass(frozen=True)
class OfBlocks:
    """A bound question about several blocks: another than the same about one of them."""

    blocks: tuple[str, ...]
    question: Any

    @property
    def key(self) -> tuple[Any, ...]:
        return ("blocks", self.blocks, self.question.key)


@dataclass
class Bills:
    """What one question was charged in each block."""

    each: list[Bill]

    @property
    def cost(self) -> float:
        """To any one row."""
        return max(bill.cost for bill in self.each)


@final
class Accounts:
    """The accounts of some blocks, in order, with what each block's engine does to learn what others were told."""

    def __init__(self, names: Sequence[str], ledgers: Sequence[Ledger], learn: Sequence[Callable[..., None]]) -> None:
        self._names, self._ledgers, self._learn = tuple(names), tuple(ledgers), tuple(learn)

    @property
    def budget(self) -> Budget:
        """What is promised to whoever is in any of the blocks."""
        budgets = [ledger.budget for ledger in self._ledgers]
        return Budget(
            max(b.epsilon for b in budgets), max(b.delta for b in budgets), budgets[0].neighbours, budgets[0].rows_per_unit
        )  # fmt: skip

    @property
    def spent(self) -> float:
        return max(ledger.spent for ledger in self._ledgers)

    @property
    def remaining(self) -> float:
        return min(ledger.remaining for ledger in self._ledgers)

    @property
    def spent_epsilon(self) -> float:
        return max(ledger.spent_epsilon for ledger in self._ledgers)

    def entries(self) -> Sequence[Entry]:
        """Of one block after the other."""
        return tuple(entry for ledger in self._ledgers for entry in ledger.entries())

    @contextlib.contextmanager
    def exclusively(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for ledger in self._ledgers:  # always in one order, so that no two wait for each other
                stack.enter_context(ledger.exclusively())
            yield

    @contextlib.contextmanager
    def asking(self, question: Any = None) -> Iterator[Bills]:
        with contextlib.ExitStack() as stack:
            yield Bills([stack.enter_context(ledger.asking(question)) for ledger in self._ledgers])

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for ledger in self._ledgers:
                stack.enter_context(ledger.at_once())
            yield

    def following(self, learn: object, ask: Callable[[], T]) -> T:
        """As a ledger's, of each: every block has a ``learn`` of its own."""
        for ledger, each in zip(self._ledgers, self._learn, strict=True):
            ask = partial(ledger.following, each, ask)
        return ask()

    # Answers about several blocks are kept with the last of them.

    def note(self, question: Any, answer: Any) -> None:
        self._ledgers[-1].note(OfBlocks(self._names, question), answer)

    def recall(self, question: Any) -> Any | None:
        return self._ledgers[-1].recall(OfBlocks(self._names, question))

    def answers(self) -> Sequence[tuple[Any, Any]]:
        """Those about these blocks together."""
        return tuple(
            (asked.question, answer)
            for asked, answer in self._ledgers[-1].answers()
            if isinstance(asked, OfBlocks) and asked.blocks == self._names
        )
