"""Free answers, written down before they are given.

A free answer follows from what was released before it, so after a crash the same question has the same answer, unless
something is released before it is asked again. Answers are therefore in the journal until they are in the ledger. They
are in the ledger's own form. No code is read from the file.
"""

from __future__ import annotations

from hedgerow.ledger import answer_log
from hedgerow.release_file.replica import adopt_answers
from hedgerow.server.commits import GroupCommits
from hedgerow.server.messages import unpack
from hedgerow.server.registry import ServiceRegistry
from hedgerow.session import Session


class AnswerJournal:
    """The journal of a service, in its registry."""

    def __init__(self, registry: ServiceRegistry, commits: GroupCommits) -> None:
        self._registry, self._commits = registry, commits

    async def note(self, dataset: str, answers: bytes) -> int:
        """Write pickled answers of a worker down, and return the number of their line."""

        def write() -> int:
            body = answer_log.line_body(unpack(answers))
            self._registry.write("INSERT INTO given (dataset, answers) VALUES (?, ?)", (dataset, body))
            ((number,),) = self._registry.rows("SELECT last_insert_rowid()")
            return int(number)

        return await self._commits.run(write)

    async def end(self, dataset: str, upto: int) -> None:
        """Remove lines that are in the ledger."""
        await self._commits.run(
            lambda: self._registry.write("DELETE FROM given WHERE dataset = ? AND number <= ?", (dataset, upto))
        )

    def adopt_into(self, dataset: str, session: Session) -> None:
        """Let a session adopt the answers given before the service restarted, and write them into the ledger."""
        found = self._registry.rows("SELECT answers FROM given WHERE dataset = ? ORDER BY number", (dataset,))
        notes = [note for (body,) in found for note in answer_log.notes_in(body)]
        if not notes or len(session.blocks) != 1:
            return
        adopt_answers(session, (answer_log.answer_in(note, session.universe) for note in notes))  # type: ignore[misc]
        for block in session.blocks.values():
            if (flush := getattr(block.ledger, "flush", None)) is not None:
                flush()
        self._registry.write("DELETE FROM given WHERE dataset = ?", (dataset,))
