"""Columns of a source, in batches of rows: what every reader gives, and nothing of how it got there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hedgerow.data import schema
from hedgerow.errors import InvalidInput

ROWS_OF_AN_ENGINE = 1 << 15  # of a batch: few, for an engine may not hold more than 2 GiB of texts in one


@dataclass(frozen=True)
class Source:
    """``batches(positions)`` gives the columns at these positions, some rows at a time, in the order of the rows.

    ``types``: what is public of each column, where the source has types. ``dictionary(position)``: the values that a
    column's encoding lists, which are rows' values until the owner calls them public.
    """

    columns: list[str]
    batches: Callable[[Sequence[int]], Iterator[list[Any]]]
    types: list[schema.Column] = field(default_factory=list)
    dictionary: Callable[[int], tuple[Any, ...] | None] = lambda position: None

    def type_of(self, position: int) -> schema.Column:
        return self.types[position] if self.types else schema.NOTHING

    def positions(self, names: Sequence[str]) -> list[int]:
        """Where the named columns are; InvalidInput where one is not there, or there twice."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise InvalidInput(
                f"The table must have every column the universe declares. Found no {_listed(missing)}. "
                "Rename the column, or take it out of the universe."
            )
        twice = [name for name in names if self.columns.count(name) > 1]
        if twice:
            raise InvalidInput(
                f"The table must have each declared column once. Found {_listed(twice)} more than once. "
                "Rename all but one of them."
            )
        return [self.columns.index(name) for name in names]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:8]))


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'
