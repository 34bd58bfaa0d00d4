"""The released side of a session, asked like a published release, and nothing that could be charged.

A session may spend without ``within``: a guard's round, a count over time, a statistic of raw values. A view answers
from released values alone, so nothing that is asked of it can be billed, by construction. What was bought before is
repeated with its bar.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hedgerow._memory import limit_memory
from hedgerow.answer import Answer
from hedgerow.answering.answer_cache import AnswerCache, AnswerHistory, AnswerStore
from hedgerow.answering.answers_on_record import RecordedAnswer
from hedgerow.answering.askable import Askable, bind_questions
from hedgerow.answering.scaling import Scale, bar_of_answer, require_scale, scaled_answer
from hedgerow.engine.public import PublicAnswers
from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.noise import public_generator
from hedgerow.query.bound import Bound, Estimate
from hedgerow.query.counts import OverTime, Query, Resolution
from hedgerow.query.row_statistic import RowStatistic
from hedgerow.report import Charge
from hedgerow.universe.universe import Universe


class ReleasedAnswers(AnswerCache):
    """Free answers from released values. Bought answers repeat; nothing is stored."""

    def __init__(self, public: PublicAnswers, record: AnswerStore) -> None:
        super().__init__(public, BoughtAnswers(record))

    def keep(self, bound: Bound[Any], estimate: Estimate) -> Estimate:
        """Return the answer, and keep nothing."""
        return estimate


class BoughtAnswers:
    """The measured answers of a ledger, as the log of a cache."""

    def __init__(self, record: AnswerStore) -> None:
        self._record = record

    def note(self, question: Any, answer: Any) -> None:
        """Do nothing: a view writes nothing."""

    def recall(self, question: Any) -> Any | None:
        """Return the answer that was bought for a question, or None."""
        found = self._record.recall(question)
        return found if found is not None and found.source == "measured" else None


class ReleasedSession(Askable):
    """The released side of a session, asked like the session. Every answer is free.

    Made by ``session.public_view()``.
    """

    def __init__(
        self, session: Askable, public: PublicAnswers, record: AnswerStore, limit: int | None, beta: float
    ) -> None:
        """Look at a session. ``public`` is the released part of its engine, ``record`` its answers."""
        self._session, self._limit, self._beta = session, limit, beta
        self._engine: PublicAnswers = public
        self.draft_cost = session.draft_cost
        self._cache, self._history = ReleasedAnswers(public, record), AnswerHistory()

    def ask(
        self,
        query: Query,
        *,
        within: float | None = None,
        scale: Scale = "fraction",
        resolution: Resolution = "values",
    ) -> Answer:
        """Answer a question for free. With ``within`` it is refused if the free bar is wider.

        Parameters
        ----------
        query, within, scale, resolution
            As in ``Release.ask``.

        Returns
        -------
        Answer
        """
        require_scale(scale)
        with limit_memory(self._limit):
            require_free(query)
            bound = bind_questions([query], self.universe, resolution)[0]
            return self._ask_bound(query, bound, None if within is None else bar_of_answer(within, bound), scale)

    def price(self, query: Query, *, within: float | None = None, resolution: Resolution = "values") -> float:
        """Return what the session would charge for this question. Nothing is charged."""
        return self._session.price(query, within=within, resolution=resolution)

    def _ask_bound(self, query: Query, bound: Bound[Any], within: float | None, scale: Scale) -> Answer:
        require_free(query)
        with self._exclusively():
            answer = scaled_answer(query, bound, self._cache.ask(bound, within), 0.0, scale, self._engine)
            self._history.add(answer)
            return answer

    # Public facts, which are those of the session

    @property
    def blocks(self) -> Mapping[str, Any]:
        """Blocks by name, in order."""
        return self._session.blocks

    @property
    def universe(self) -> Universe:
        """Public universe that codes the rows."""
        return self._session.universe

    @property
    def budget(self) -> Budget:
        """Privacy budget of the session."""
        return self._session.budget

    @property
    def spent(self) -> float:
        """Amount that the session has spent, in the budget's currency."""
        return self._session.spent

    @property
    def spent_epsilon(self) -> float:
        """Amount that the session has spent, expressed as an ε at the budget's δ."""
        return self._session.spent_epsilon

    @property
    def private(self) -> bool:
        """True if nobody can know the noise; False if it comes from a ``seed``."""
        return self._session.private

    @contextlib.contextmanager
    def _exclusively(self) -> Iterator[None]:
        with self._session._exclusively():
            yield

    def _public_answers(self) -> PublicAnswers:
        return self._engine

    def _generator(self) -> np.random.Generator:
        return public_generator()

    def _charges(self, *, names: bool = False) -> Iterator[Charge]:
        return self._session._charges()  # never with names: whoever has only this view is no owner

    def _on_record(self) -> Iterator[RecordedAnswer]:
        return self._session._on_record()

    def _numbers_given(self) -> int:
        return self._session._numbers_given()

    def _require_all(self) -> None:
        self._session._require_all()


def require_free(query: Query) -> None:
    """Refuse a question that only the table can answer, because every answer to it is charged."""
    if isinstance(query, OverTime | RowStatistic):
        kind = "A count over time" if isinstance(query, OverTime) else "A statistic of raw values"
        raise InvalidInput(
            f"{kind} must be asked of a session, because each answer reads the table and is charged. Found a view of "
            "what was released. Ask the owner, or ask a count or a mean."
        )
