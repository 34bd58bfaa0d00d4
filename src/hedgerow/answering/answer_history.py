"""Remember the most recent answers, within a limit on their number and on their size."""

from __future__ import annotations

from collections import deque

import numpy as np

from hedgerow.answer import Answer

# a report holds at most this many answers: the most recent ones
REPORTED = 1000
# the answers of a report have at most this many cells in total; the most recent answer is kept whatever its size
REPORTED_CELLS = 1_000_000


class AnswerHistory:
    """The answers that a report lists."""

    def __init__(self) -> None:
        self._answers: deque[Answer] = deque()
        self._cells = 0

    def add(self, answer: Answer) -> None:
        """Remember an answer, and drop the oldest ones beyond the limits."""
        if len(self._answers) == REPORTED:
            self._cells -= _cells(self._answers.popleft())
        self._answers.append(answer)
        self._cells += _cells(answer)
        while self._cells > REPORTED_CELLS and len(self._answers) > 1:
            self._cells -= _cells(self._answers.popleft())

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The remembered answers, oldest first."""
        return tuple(self._answers)


def _cells(answer: Answer) -> int:
    """Return the number of cells of an answer."""
    return 1 if type(answer.value) is float else np.size(answer.value)
