"""The public state of a session in another process, which gives the session's free answers without its table.

A session whose free answers follow from released values alone has a ``PublicState``: plain data, which may be sent to
other processes. A ``Replica`` answers from it. An answer that a replica gave is adopted by the session and by the other
replicas, so that a repeated question has one answer everywhere.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from hedgerow._memory import in_force, limit_memory
from hedgerow._threads import one_thread
from hedgerow.answering.answer_cache import AnswerCache
from hedgerow.answering.askable import bind_questions
from hedgerow.answering.blocks import Block
from hedgerow.engine.practical.public import PracticalAnswers, practical_state, restore_practical
from hedgerow.privacy.budget import Budget
from hedgerow.query.bound import Bound, Estimate
from hedgerow.query.counts import Query, Resolution
from hedgerow.release_file.container import one_error, unpack
from hedgerow.release_file.document import read_document
from hedgerow.release_file.publication import Publication, PublishedBlock
from hedgerow.release_file.release import Release
from hedgerow.universe.universe import Universe

GivenAnswer = tuple[Bound[Any], Estimate]


@dataclass(frozen=True)
class StateFile:
    """The public state of a session as the bytes of a release file, which another machine may send."""

    data: bytes = field(repr=False)


class HasBlocks(Protocol):
    """A session, as far as its public state is concerned."""

    @property
    def blocks(self) -> Mapping[str, Block]: ...

    @property
    def private(self) -> bool: ...


@dataclass(frozen=True)
class PublicState:
    """All that the free answers of a session of one block follow from. Every field is public."""

    universe: Universe
    budget: Budget
    spent: float
    spent_epsilon: float
    beta: float
    private: bool
    rows: int | None
    learned: dict[str, Any] = field(repr=False)


def public_state(session: HasBlocks) -> PublicState | None:
    """Return the public state of a session, or None if its free answers may depend on the table.

    They may if a guard compares questions with the table, in the theory profile, and where there are several blocks.
    """
    if len(session.blocks) != 1:
        return None
    (block,) = session.blocks.values()
    return None if getattr(block.engine, "guard", None) is not None else state_of_block(block, session.private)


def state_of_block(block: Block, is_private: bool) -> PublicState | None:
    """Return what was released about a block, None in the theory profile. Its free answers may depend on more."""
    public = block.engine.public
    if type(public) is not PracticalAnswers:
        return None
    with block.ledger.exclusively():
        rows = round(public.rows) if block.budget.neighbours == "replace" else None
        return PublicState(
            block.data.universe, block.budget, block.spent, block.ledger.spent_epsilon, block.beta, is_private, rows,
            practical_state(public),
        )  # fmt: skip


def given_answers(session: HasBlocks) -> list[GivenAnswer]:
    """Return every answer on the record of a session of one block."""
    (block,) = session.blocks.values()
    with block.ledger.exclusively():
        return [(bound, estimate) for bound, estimate in block.ledger.answers() if not hasattr(bound, "blocks")]


def adopt_answers(session: HasBlocks, given: Iterable[GivenAnswer]) -> None:
    """Note free answers that a replica gave, as if the session had given them. Answers that it has already stay."""
    (block,) = session.blocks.values()
    with block.ledger.exclusively(), one_thread:
        for bound, estimate in given:
            if bound not in block.cache:
                block.cache.keep(bound, estimate)


class ReplicaLog:
    """The answers that all replicas and the session gave, and those that this replica gave since the last exchange."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Estimate] = {}
        self.fresh: list[GivenAnswer] = []

    def note(self, question: Any, answer: Any) -> None:
        """Remember an answer of this replica until the session accepts it."""
        self.fresh.append((question, answer))

    def recall(self, question: Any) -> Any | None:
        """Return the accepted answer to a question, or None."""
        return self._known.get(question.key)

    def accept(self, given: Iterable[GivenAnswer]) -> None:
        """Count answers as given."""
        self._known.update((bound.key, estimate) for bound, estimate in given)


class Replica:
    """The free answers of a session. Answers are kept when the session has accepted them."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit, self._log = limit, ReplicaLog()
        self._published: Publication | None = None
        self._cache: AnswerCache | None = None
        self._release: Release | None = None

    @property
    def release(self) -> Release:
        """The published state, asked like a session."""
        assert self._release is not None, "a replica is asked after it has learned a state"
        return self._release

    def learn(self, state: PublicState | StateFile) -> None:
        """Answer from another state from now on. Answers that were accepted repeat; others are forgotten.

        With a file, accepted answers are forgotten, too: who sends files sends these anew.
        """
        if isinstance(state, StateFile):
            with limit_memory(self._limit), one_error(), one_thread:
                self._published, self._log = read_document(unpack(state.data, in_force()).document), ReplicaLog()
        else:
            with one_thread:
                public = restore_practical(state.universe, state.learned, state.rows)
            block = PublishedBlock(
                "1", state.budget, state.spent, state.spent_epsilon, state.beta, public, False, (), (), 0, None
            )
            version = importlib.metadata.version("hedgerow")
            self._published = Publication(state.universe, state.private, (block,), (), 0, {}, version)
        self.forget_own()

    def forget_own(self) -> None:
        """Forget the answers that were not accepted."""
        assert self._published is not None
        self._log.fresh.clear()
        self._cache = AnswerCache(self._published.blocks[0].public, self._log)
        self._release = Release.of(self._published, self._cache, self._limit)

    def accept_own(self) -> None:
        """Count the answers of the last question as given."""
        self._log.accept(self._log.fresh)
        self._log.fresh.clear()

    def adopt(self, given: Iterable[GivenAnswer]) -> None:
        """Count answers of the session and of other replicas as given."""
        pairs = list(given)
        self._log.accept(pairs)
        if self._cache is not None:
            for bound, estimate in pairs:
                self._cache.adopt(bound, estimate)

    def rehearse(self, query: Query, resolution: Resolution) -> None:
        """Answer a question as if for the first time, and forget the answer. What it takes is public."""
        assert self._published is not None
        with limit_memory(self._limit), one_thread:
            (bound,) = bind_questions([query], self._published.universe, resolution)
            public: Any = self._published.blocks[0].public
            bound.ask(public.afresh() if isinstance(public, PracticalAnswers) else public, None)

    def take_fresh(self) -> list[GivenAnswer]:
        """Return the answers of the last question that were not given before."""
        return list(self._log.fresh)
