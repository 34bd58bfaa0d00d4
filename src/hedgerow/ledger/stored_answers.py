"""The answers of a durable ledger: when they are written, and how a repeated question finds its answer.

An answer that cost nothing is a function of the entries before it. It is written together with the next charge, which
is the first event that could change it, or when very many answers are waiting. Until then the same question would be
answered in the same way, so a crash loses nothing. An answer that rests on a comparison with a guard's open round
cannot be worked out again. It is written before it is given, the answers of one ``ask_all`` together, but without
waiting for the disk.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np

from hedgerow.ledger import account, answer_log, replay
from hedgerow.ledger.chain import Line
from hedgerow.ledger.shared_chain import SharedChain
from hedgerow.privacy.process import OwnersLock
from hedgerow.privacy.receipt import OpenBills
from hedgerow.privacy.replay import Replay

TOGETHER = 50_000  # at most this many free answers wait in memory for the next charge
CELLS = 1_000_000  # at most this many numbers do the waiting answers have in all


@final
class AnswerIndex:
    """The answers that wait to be written, and the line of each written answer, which is read when it is needed."""

    def __init__(self, known: dict[str, int]) -> None:
        self.known = known
        self._waiting: list[tuple[Any, Any]] = []
        self._cells = 0
        self.has_compared = False  # True if an answer that waits cannot be worked out again

    def read(self, line: Line) -> None:
        """Find the answers in a line."""
        self.known.update(dict.fromkeys(answer_log.names_in(line.body), line.number))

    def add(self, question: Any, answer: Any) -> None:
        """Let an answer wait."""
        self._waiting.append((question, answer))
        self._cells += np.size(answer.value)

    @property
    def waits(self) -> Sequence[tuple[Any, Any]]:
        """The answers that wait, in order."""
        return tuple(self._waiting)

    @property
    def is_full(self) -> bool:
        """True if too many answers wait."""
        return len(self._waiting) >= TOGETHER or self._cells >= CELLS

    @property
    def body(self) -> str:
        """The body of a line with the answers that wait."""
        return answer_log.line_body(self._waiting)

    def forget_waiting(self) -> None:
        """Forget the waiting answers once they are written."""
        self._waiting.clear()
        self._cells, self.has_compared = 0, False


@final
class StoredAnswerLog:
    """Answers in the lines of a store."""

    def __init__(
        self, chain: SharedChain, index: AnswerIndex, earlier: Replay, bills: OpenBills, turn: OwnersLock
    ) -> None:
        self._chain, self._index, self._earlier, self._bills, self._turn = chain, index, earlier, bills, turn
        self._is_at_once = False
        self._looked_at: tuple[int, dict[Any, answer_log.Note]] = (0, {})

    def note(self, question: Any, answer: Any) -> None:
        """Store an answer.

        An answer that was paid for, or that rests on a guard's comparison, is written at once. Others wait. So do all
        answers of a group of questions that wait for the disk together.
        """
        with self._turn:
            self._index.add(question, answer)
            if self._chain.is_in_group:
                return
            paid = self._bills.has_charges
            if paid or self._index.is_full or (self._index.has_compared and not self._is_at_once):
                self.flush(durable=paid)

    def mark_guard_used(self) -> None:
        """Note that the next answer cannot be computed again. It is then written before it is given."""
        self._index.has_compared = True

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Collect the answers of one ``ask_all``, and write them together before any of them is given."""
        with self._turn:
            self._is_at_once = True
            try:
                yield
            finally:
                self._is_at_once = False
                if self._index.has_compared and not self._chain.is_in_group:  # write before any of the answers is given
                    self.flush(durable=False)

    def flush(self, *, durable: bool = True) -> None:
        """Write the answers that wait. Unless ``durable``, do not wait for the disk."""
        with self._turn:
            if not self._index.waits:
                return
            if self._index.has_compared:
                self._chain.require_whole()
            if self._chain.is_broken:  # these answers can be worked out again
                return
            self._chain.append_anywhere(replay.ANSWERS, self._index.body, durable=durable)
            self._index.forget_waiting()

    def write_left_over(self) -> None:
        """Write an answer whose write failed: it must be written before it can be repeated."""
        if self._index.has_compared and not self._is_at_once and not self._chain.is_in_group:
            self.flush(durable=False)

    def recall(self, question: Any) -> Any | None:
        """Return the stored answer to a question, or None. It is read from its line when it is first needed."""
        known = self._index.known
        name = answer_log.name_of(question) if known and not self._earlier.has_other_sessions else None
        number = known.get(name or "")
        if number is None:
            return None
        if self._looked_at[0] != number:
            self._looked_at = (
                number,
                {note["name"]: note for note in answer_log.notes_in(self._chain.line(number).body)},
            )
        note = self._looked_at[1].get(name)
        return None if note is None else answer_log.estimate_in(note)

    def answers(self) -> Sequence[tuple[Any, Any]]:
        """Return every answer of every process, in order."""
        store = self._chain.store
        universe = account.universe_of(store)
        lines = store.lines(kinds=(self._chain.own(replay.ANSWERS),))
        found = (
            []
            if universe is None
            else [answer_log.answer_in(note, universe) for line in lines for note in answer_log.notes_in(line.body)]
        )
        return (*found, *self._index.waits)
