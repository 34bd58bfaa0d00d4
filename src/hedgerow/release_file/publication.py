"""Everything that an owner publishes, as values: the public part of every block, the answers and the charges."""

from __future__ import annotations

from dataclasses import dataclass, field

from hedgerow._json import Json
from hedgerow.answering.answers_on_record import RecordedAnswer
from hedgerow.engine.public import PublicAnswers
from hedgerow.privacy.budget import Budget
from hedgerow.report import Charge
from hedgerow.universe.universe import Universe


@dataclass(frozen=True)
class PublishedBlock:
    """The public side of one block of rows.

    ``guarded``: a guard was on, so that the session may have answered new questions with narrower bars. ``spent`` and
    ``spent_epsilon`` are what was spent by the time of publishing. ``head`` is the last line of a durable ledger.
    """

    name: str
    budget: Budget
    spent: float
    spent_epsilon: float
    beta: float
    public: PublicAnswers = field(repr=False)
    guarded: bool
    charges: tuple[Charge, ...] = field(repr=False)
    answers: tuple[RecordedAnswer, ...] = field(repr=False)
    entries: int
    head: str | None


@dataclass(frozen=True)
class Publication:
    """Everything that a release file holds.

    ``answers`` are those about all blocks together. ``numbers_given`` is how many numbers the session had answered,
    published or not, because statements about the population count them.
    """

    universe: Universe
    private: bool
    blocks: tuple[PublishedBlock, ...]
    answers: tuple[RecordedAnswer, ...] = field(repr=False)
    numbers_given: int
    statement: dict[str, Json] = field(repr=False)
    version: str
