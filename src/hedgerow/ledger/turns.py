"""The turn of a question: from its first charge to its end nobody else charges."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import final

from hedgerow.errors import LedgerUnavailable
from hedgerow.ledger.store import Store


@final
class QuestionTurn:
    """The store's turn, which a question takes with its first charge and keeps until it ends."""

    def __init__(self, store: Store) -> None:
        self._store, self._questions, self._is_held = store, 0, False

    @contextlib.contextmanager
    def question(self, at_end: Callable[[], None]) -> Iterator[None]:
        """Ask a question, perhaps within another. Where the outermost took the turn, ``at_end`` runs before its end."""
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions and self._is_held:
                self._is_held = False
                try:
                    with contextlib.suppress(LedgerUnavailable):  # the answer is written, and a snapshot can wait
                        at_end()
                finally:
                    self._store.end_turn()

    @contextlib.contextmanager
    def charge(self) -> Iterator[None]:
        """Hold the turn for a charge. Within a question, keep it until the question ends."""
        if self._questions and not self._is_held:
            self._store.take_turn()
            self._is_held = True
        with self._store.turn():
            yield
