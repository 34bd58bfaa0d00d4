"""Publishing a session: its privacy statement, and the file that answers without the table."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hedgerow.answering.blocks import Appending, Block
from hedgerow.privacy.accounts import Accounts
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise

if TYPE_CHECKING:
    from hedgerow.answering.privacy_statement import PrivacyStatement
    from hedgerow.release_file.signing import PrivateKey


class Publishing:
    """The methods of a session that write down what is public."""

    _blocks: list[Block]
    _ledger: Ledger | Accounts
    _noise: Noise
    _appending: Appending | None
    _beta: float
    draft_cost: tuple[float, float]

    def _exclusively(self) -> AbstractContextManager[object]:
        """Hold the ledger exclusively."""
        raise NotImplementedError

    def _numbers_given(self) -> int:
        """Return how many numbers all answers on record have."""
        raise NotImplementedError

    def statement(self) -> PrivacyStatement:
        """Return the privacy statement: what is protected, how, what was spent, and what is not covered.

        Its fields are those of the public registry of differential-privacy deployments, and the hazards of NIST SP
        800-226. Fields that only the owner knows are left to be added. Read it as ``.json``, ``.markdown`` or
        ``.html``, or keep it by ``.save(path)``. It contains nothing private.

        Returns
        -------
        PrivacyStatement

        Example
        -------
        >>> text = session.statement().markdown
        """
        from hedgerow.answering.privacy_statement import PrivacyStatement, privacy_statement

        blocks, names = self._blocks, [block.name for block in self._blocks]
        kinds = {type(event).__name__ for entry in self._ledger.entries() for event in entry.events}
        return PrivacyStatement(
            privacy_statement(
                blocks[0].data.universe,
                dict(zip(names, (block.budget for block in blocks), strict=True)),
                dict(zip(names, (block.spent for block in blocks), strict=True)),
                dict(zip(names, (block.rows for block in blocks), strict=True)),
                kinds,
                is_interactive=self._appending is not None,
                beta=self._beta,
                private=self._noise.private,
                guarded=any(getattr(block.engine, "guard", None) is not None for block in blocks),
                draft=self.draft_cost,
            )
        )

    def publish(
        self,
        path: str | Path,
        *,
        answers: Literal["all", "bought", "none"] = "bought",
        key: PrivateKey | None = None,
    ) -> Path:
        """Write all that is public into one file, which answers without the table: ``hr.load(path)``.

        The file holds the universe, the budget and what of it was spent, the hypothesis, the measurements behind the
        error bars, the certificate, the log of charges and the privacy statement (docs/release-file.md). It contains
        nothing private, costs nothing, and names no analyst.

        Parameters
        ----------
        path : path
            Where to write, for example ``people.hedgerow``. The file appears completely or not at all.
        answers : {"all", "bought", "none"}
            Which of the answers given are recorded in the file. Questions may reveal what their askers look for:
            "bought" keeps those that were measured, and "none" leaves out the questions of the log, too. What was
            measured is always part of the evidence.
        key : path, bytes or Ed25519PrivateKey, optional
            The owner's private key in PEM form, to sign the file (the extra ``signing``).

        Returns
        -------
        Path

        Example
        -------
        >>> session.publish("people.hedgerow")  # doctest: +SKIP
        """
        from hedgerow.release_file.publish import publish

        with self._exclusively():
            return publish(
                path,
                self._blocks,
                self._ledger.answers(),
                answers=answers,
                key=key,
                private=self._noise.private,
                numbers_given=self._numbers_given(),
                statement=dict(self.statement().record),
            )
