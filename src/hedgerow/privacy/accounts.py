"""Combine the accounts of several blocks of rows, for questions about all of these blocks.

Every row is in exactly one block, so neighbouring tables differ in one block. A person therefore loses only what the
account of that one block admits, whatever happens in the other blocks (docs/proofs/blocks.md). The combined spending is
the largest spending of any block, and the combined remainder is the smallest. Nothing is charged in this module: the
code that draws from a block charges the account of that block.
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
class BlocksQuestion:
    """A bound question about several blocks. It differs from the same question about one of them."""

    blocks: tuple[str, ...]
    question: Any

    @property
    def key(self) -> tuple[Any, ...]:
        """The identity of the question, including the blocks that it is about."""
        return ("blocks", self.blocks, self.question.key)


@dataclass
class Bills:
    """The bills of one question, one per block."""

    each: list[Bill]

    @property
    def cost(self) -> float:
        """The cost to any one row: the largest bill, because a row is in one block only."""
        return max(bill.cost for bill in self.each)


@final
class Accounts:
    """The accounts of several blocks, in order.

    Each block also has a ``learn`` function, by which its engine learns from entries that other processes charged.
    """

    def __init__(self, names: Sequence[str], ledgers: Sequence[Ledger], learn: Sequence[Callable[..., None]]) -> None:
        self._names, self._ledgers, self._learn = tuple(names), tuple(ledgers), tuple(learn)

    @property
    def budget(self) -> Budget:
        """The promise to a person in any of the blocks: the largest ε and the largest δ of the blocks' budgets."""
        budgets = [ledger.budget for ledger in self._ledgers]
        return Budget(
            max(b.epsilon for b in budgets), max(b.delta for b in budgets),
            budgets[0].neighbours, budgets[0].rows_per_unit,
        )  # fmt: skip

    @property
    def spent(self) -> float:
        """The largest amount that any block has spent, in its budget's currency."""
        return max(ledger.spent for ledger in self._ledgers)

    @property
    def remaining(self) -> float:
        """The smallest amount that any block has left, in its budget's currency."""
        return min(ledger.remaining for ledger in self._ledgers)

    @property
    def spent_epsilon(self) -> float:
        """The largest ε that any block has spent."""
        return max(ledger.spent_epsilon for ledger in self._ledgers)

    def entries(self) -> Sequence[Entry]:
        """Return the entries of all blocks, one block after the other."""
        return tuple(entry for ledger in self._ledgers for entry in ledger.entries())

    def authors(self) -> Sequence[tuple[str, float]]:
        """Return who was billed for each entry, and when, one block after the other."""
        return tuple(author for ledger in self._ledgers for author in ledger.authors())

    @contextlib.contextmanager
    def exclusively(self) -> Iterator[None]:
        """Hold the locks of all blocks, so that no other thread charges or asks in any of them."""
        with contextlib.ExitStack() as stack:
            for ledger in self._ledgers:  # always in the same order, so that no two threads deadlock
                stack.enter_context(ledger.exclusively())
            yield

    @contextlib.contextmanager
    def asking(self, question: Any = None) -> Iterator[Bills]:
        """Open a bill in every block for one question."""
        with contextlib.ExitStack() as stack:
            yield Bills([stack.enter_context(ledger.asking(question)) for ledger in self._ledgers])

    def retry_when_behind(self, learn: object, ask: Callable[[], T]) -> T:
        """Run ``ask`` under ``retry_when_behind`` of every ledger, each with the ``learn`` function of its block.

        The ``learn`` argument is ignored. It is there so that an ``Accounts`` can stand in for a ledger.
        """
        for ledger, each in zip(self._ledgers, self._learn, strict=True):
            ask = partial(ledger.retry_when_behind, each, ask)
        return ask()

    @property
    def answer_log(self) -> AnswersOfBlocks:
        """The answers to questions about exactly these blocks."""
        return AnswersOfBlocks(self._names, self._ledgers)

    def answers(self) -> Sequence[tuple[Any, Any]]:
        """Return the stored questions about exactly these blocks, with their answers."""
        return self.answer_log.answers()


@final
@dataclass(frozen=True)
class AnswersOfBlocks:
    """The answers to questions about several blocks. They are stored in the ledger of the last block."""

    names: tuple[str, ...]
    ledgers: tuple[Ledger, ...]

    def note(self, question: Any, answer: Any) -> None:
        """Store an answer about these blocks, to be returned when the question is repeated."""
        self.ledgers[-1].answer_log.note(BlocksQuestion(self.names, question), answer)

    def recall(self, question: Any) -> Any | None:
        """Return the stored answer to a question about exactly these blocks, or None."""
        return self.ledgers[-1].answer_log.recall(BlocksQuestion(self.names, question))

    def answers(self) -> Sequence[tuple[Any, Any]]:
        """Return the stored questions about exactly these blocks, with their answers."""
        return tuple(
            (asked.question, answer)
            for asked, answer in self.ledgers[-1].answers()
            if isinstance(asked, BlocksQuestion) and asked.blocks == self.names
        )

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Collect answers in every block and write them together at the end (see ``AnswerLog.at_once``)."""
        with contextlib.ExitStack() as stack:
            for ledger in self.ledgers:
                stack.enter_context(ledger.answer_log.at_once())
            yield
