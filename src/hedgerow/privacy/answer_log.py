"""The answers that were given, so that a repeated question gets the same answer.

``MemoryAnswerLog`` ends with its process. ``ledger.stored_answers.StoredAnswerLog`` keeps the answers in a database.
Every answer log must pass tests/privacy/test_answer_logs.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Protocol

from hedgerow.privacy.replay import Replay


class AnswerLog(Protocol):
    """Answered questions with their answers, in order."""

    def note(self, question: Any, answer: Any) -> None:
        """Store an answer, so that a repeated question gets the same answer."""
        ...

    def recall(self, question: Any) -> Any | None:
        """Return the last answer to a question, or None.

        Returns None where several sessions share the account, because the answer may be about another table.
        """
        ...

    def answers(self) -> Sequence[tuple[Any, Any]]:
        """Return every answered question with its answer, in order."""
        ...

    def at_once(self) -> contextlib.AbstractContextManager[None]:
        """Return a context manager for answers that are found one by one and given together when the context ends."""
        ...

    def mark_guard_used(self) -> None:
        """Note that an open guard round was compared, so that the next answer does not follow from the entries alone.

        A durable ledger writes such an answer before it is given.
        """
        ...

    def flush(self, *, durable: bool = True) -> None:
        """Write the answers that wait. Unless ``durable``, do not wait for the disk."""
        ...


class MemoryAnswerLog:
    """Answers in memory."""

    def __init__(self, replay: Replay, answers: Sequence[tuple[Any, Any]] = ()) -> None:
        """Begin with the ``answers`` that were given before. ``replay`` knows of other sessions on the account."""
        self._replay = replay
        self._answers = list(answers)
        self._recalled = {question.key: answer for question, answer in answers}

    def note(self, question: Any, answer: Any) -> None:
        """Store an answer, so that a repeated question gets the same answer."""
        self._answers.append((question, answer))
        self._recalled[question.key] = answer

    def recall(self, question: Any) -> Any | None:
        """Return the last answer to a question, or None."""
        return None if self._replay.has_other_sessions else self._recalled.get(question.key)

    def answers(self) -> Sequence[tuple[Any, Any]]:
        """Return every answered question with its answer, in order."""
        return tuple(self._answers)

    def at_once(self) -> contextlib.AbstractContextManager[None]:
        """Return a context manager that does nothing: an answer in memory is stored when it is noted."""
        return contextlib.nullcontext()

    def mark_guard_used(self) -> None:
        """Do nothing: the open guard round ends with the memory that holds the answers."""

    def flush(self, *, durable: bool = True) -> None:
        """Do nothing: no answer waits."""
