"""The head of a ledger in a file that is kept elsewhere, so that an older copy of the ledger is noticed and refused.

A ledger that was restored from a backup looks like one that spent less. Its last line is then not the noted one, or is
missing. The file has the number and the hash of the last line, and belongs on another disk or machine than the ledger's
backups.
"""

from __future__ import annotations

import os
from pathlib import Path

from hedgerow.errors import LedgerUnavailable
from hedgerow.ledger.chain import Head
from hedgerow.session import Session


class HeadFile:
    """A file with the head of one ledger. It only moves forward."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number = self.noted.number

    @property
    def noted(self) -> Head:
        """The head in the file, or that of an empty ledger if there is no file yet."""
        try:
            return Head.of(self._path.read_text(encoding="ascii").strip())
        except FileNotFoundError:
            return Head()
        except (OSError, UnicodeDecodeError):
            raise _unusable(self._path) from None

    def note(self, session: Session) -> None:
        """Write the head of a session's ledger down, if the ledger has more lines than before."""
        (block, *_) = session.blocks.values()
        head = getattr(block.ledger, "head", None)
        if head is None or head.number <= self._number:
            return
        beside = self._path.with_name(f"{self._path.name}.new")
        try:
            with beside.open("w", encoding="ascii") as file:
                file.write(f"{head}\n")
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        except OSError:
            raise _unusable(self._path) from None
        self._number = head.number


def _unusable(path: Path) -> LedgerUnavailable:
    return LedgerUnavailable(
        f"The head of the ledger must be noted in {path.name!r}. Found that it cannot be read or written. Check its "
        "disk."
    )
