"""A table's columns in batches of rows, in the form that every reader provides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hedgerow.data import schema
from hedgerow.data.headers import list_names, missing_columns, require_header
from hedgerow.errors import InvalidInput

# Rows of a batch from a database engine: few, because some hold at most 2 GiB of text in one.
ROWS_OF_AN_ENGINE = 1 << 15


@dataclass(frozen=True)
class BatchSource:
    """A table that can be read, column by column, some rows at a time.

    - ``columns``: the names of the columns.
    - ``batches(positions)``: yields the columns at these positions, some rows at a time, in the order of the rows.
    - ``types``: the public facts about each column, if the source has types.
    - ``dictionary(position)``: the values that a column's encoding lists. They are private values of rows until the
      owner calls them public.
    - ``is_text``: True if the columns are the fields of the first line of a text file.
    """

    columns: list[str]
    batches: Callable[[Sequence[int]], Iterator[list[Any]]]
    types: list[schema.Column] = field(default_factory=list)
    dictionary: Callable[[int], tuple[Any, ...] | None] = lambda position: None
    is_text: bool = False

    def type_of(self, position: int) -> schema.Column:
        """Return the public facts about a column."""
        return self.types[position] if self.types else schema.NOTHING

    def all_names(self, delimiter: str | None) -> list[str]:
        """Return the names of all columns, each once, or refuse a first line that cannot be a header.

        Columns of a text file that have no name are left out: they number the rows.
        """
        if self.is_text:
            require_header(self.columns, delimiter)
        return [name for name in dict.fromkeys(self.columns) if name or not self.is_text]

    def positions(self, names: Sequence[str]) -> list[int]:
        """Return the positions of the named columns, and refuse a name that is missing or occurs twice."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise missing_columns(missing, names, self.columns, is_text=self.is_text)
        twice = [name for name in names if self.columns.count(name) > 1]
        if twice:
            raise InvalidInput(
                f"The table must have each declared column once. Found {list_names(twice)} more than once. "
                "Rename all but one of them."
            )
        return [self.columns.index(name) for name in names]


def quote_identifier(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
