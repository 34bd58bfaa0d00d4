"""The answers that were given about a dataset, by the names of their questions, so that no front gives another one.

A front computes an answer and asks whether it may give it. The first answer to a question is given to everybody; who
computes another one meanwhile, perhaps with other last digits on another processor, gives the first one instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from hedgerow.errors import InvalidInput
from hedgerow.ledger.answer_log import answer_in, line_body, name_of, notes_in
from hedgerow.privacy.accounts import BlocksQuestion
from hedgerow.query.bound import Estimate
from hedgerow.release_file.document import check_estimate
from hedgerow.release_file.replica import GivenAnswer
from hedgerow.serialize import encode
from hedgerow.server.messages import pack, unpack
from hedgerow.server.pool import PublishedState
from hedgerow.universe.universe import Universe

FRONT = "a front"  # who gave an answer


class GivenAnswers:
    """All answers that were given about a dataset, for its fronts. Nothing is in memory before the first front asks."""

    def __init__(self) -> None:
        self.count = 0  # times that answers of fronts were accepted
        self._given: dict[str, GivenAnswer] = {}
        self._of_fronts: set[str] = set()
        self._read = 0  # how many of the published lists are in ``_given``
        self._reading = asyncio.Lock()

    async def read(self, published: PublishedState) -> None:
        """Take in what others gave, until nothing is missing."""
        while self._read < len(published.given):
            async with self._reading:
                await asyncio.to_thread(self._take_in, published, len(published.given))

    def _take_in(self, published: PublishedState, upto: int) -> None:
        for who, blob in published.given[self._read : upto]:
            if blob and who != FRONT:
                self._given.update((name, pair) for pair in unpack(blob) if (name := name_of(pair[0])) is not None)
        self._read = max(self._read, upto)

    def accept(self, published: PublishedState, proposed: Sequence[tuple[str, GivenAnswer]]) -> tuple[str, bytes]:
        """Count proposed answers as given, unless some questions have other answers.

        Return these others as a line of a ledger, and the pickled answers that are new. Nothing may wait between
        ``read`` and
        this.
        """
        others = [
            self._given[name]
            for name, (_, estimate) in proposed
            if name in self._given and not _is_equal(self._given[name][1], estimate)
        ]
        if others:
            return line_body(others), b""
        new = {name: pair for name, pair in proposed if name not in self._given}
        if not new:
            return "", b""
        self._given |= new
        self._of_fronts |= new.keys()
        self.count += 1
        blob = pack(list(new.values()))
        published.add(FRONT, blob)
        return "", blob

    def has_any(self, fresh: bytes) -> bool:
        """Return True if a front gave an answer to one of these questions."""
        return any(name_of(bound) in self._of_fronts for bound, _ in unpack(fresh))


def read_proposed(body: str, universe: Universe) -> list[tuple[str, GivenAnswer]]:
    """Return the answers that a front proposes, each with the name of its question."""
    found: list[tuple[str, GivenAnswer]] = []
    for note in notes_in(body):
        bound, estimate = answer_in(note, universe)
        if isinstance(bound, BlocksQuestion) or (getattr(bound, "is_number", False) and np.ndim(estimate.value)):
            raise InvalidInput(
                "A front's answer must have the form of its question. Found another form. Run the same version of "
                "hedgerow on the engine and all fronts."
            )
        check_estimate(universe, bound, estimate)  # else every purchase would fail on it, and so would the next start
        name = name_of(bound)
        if name is not None:
            found.append((name, (bound, estimate)))
    return found


def _is_equal(one: Estimate, other: Estimate) -> bool:
    return bool(encode(one) == encode(other))
