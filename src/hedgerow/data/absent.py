"""The place of a table in a session that answers from its ledger alone: whatever would count rows is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from hedgerow._types import Counts, Integers, Names
from hedgerow.data.source import DataSource
from hedgerow.errors import InvalidInput
from hedgerow.universe.universe import Universe


class AbsentTable(DataSource):
    """A table that is not read. ``rows`` is the public n of the ledger's last snapshot, or None if n is private.

    A session on it resumes its ledger, answers for free, and can neither charge for a draw nor be told apart from the
    session on the table until then. Its ledger is not compared with the table, because there is none to compare.
    """

    is_present = False

    def __init__(self, universe: Universe, rows: int | None) -> None:
        super().__init__(universe)
        self._rows = rows

    @property
    def rows(self) -> int:
        """The number of rows, where it is public."""
        if self._rows is None:
            _refuse()
        return self._rows

    def fingerprint(self) -> str:
        """Refuse: the fingerprint is of rows."""
        _refuse()

    def merge_values(self, universe: Universe, groups: Mapping[str, Integers]) -> DataSource:
        """Return another absent table."""
        return AbsentTable(universe, self._rows)

    def _count_all(self, sets: Sequence[Names]) -> list[Counts]:
        _refuse()

    def _distinct(self) -> Iterator[Any]:
        _refuse()


def _refuse() -> NoReturn:
    raise InvalidInput(
        "A question that reads the table must be asked of a session that has it. Found a session without its table. "
        "Open the session on the table."
    )
