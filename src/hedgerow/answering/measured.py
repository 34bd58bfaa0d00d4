"""List what was measured of a table, with the noise of each table: what a session, or a release, rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from hedgerow import _html
from hedgerow._types import Names

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 30  # a terminal or a notebook shows at most this many tables
HEAD = ("attributes", "cells", "noise")


@dataclass(frozen=True)
class MeasuredTable:
    """One measured table.

    Attributes
    ----------
    attributes : tuple of str
        Its attributes.
    cells : int
        Its number of cells.
    noise : float
        Standard deviation, in rows, of the best measured count of one cell.
    """

    attributes: Names
    cells: int
    noise: float

    def __str__(self) -> str:
        return f"{' × '.join(self.attributes)}: {self.cells:,} cells, noise of {self.noise:.3g} rows in each"


class MeasuredTables(Sequence[MeasuredTable]):
    """The measured tables, in the order in which they were first measured. ``frame`` has them as a DataFrame."""

    def __init__(self, listed: Sequence[MeasuredTable]) -> None:
        self._listed = tuple(listed)

    def __getitem__(self, place: Any) -> Any:
        return self._listed[place]

    def __len__(self) -> int:
        return len(self._listed)

    @property
    def frame(self) -> pd.DataFrame:
        """The tables as a frame."""
        import pandas as pd

        return pd.DataFrame([dict(zip(HEAD, astuple(one), strict=True)) for one in self._listed], columns=list(HEAD))

    def _left_out(self) -> list[str]:
        """Return a line that counts the tables which are not shown."""
        more = len(self) - SHOWN
        return [f"… and {more} more tables: .frame has all."] if more > 0 else []

    def __str__(self) -> str:
        lines = [*map(str, self._listed[:SHOWN]), *self._left_out()]
        return "\n".join(lines) or "No table was measured, or none is known."

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        lines = [(" × ".join(one.attributes), f"{one.cells:,}", f"{one.noise:.3g}") for one in self._listed[:SHOWN]]
        said = _html.table(("attributes", "cells", "noise of a cell, in rows"), lines)
        return said + "".join(map(_html.paragraph, self._left_out()))
