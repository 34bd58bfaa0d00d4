"""The question that a page's address asks: filters, up to three columns to group by, and a measure.

An address names columns and cells by their numbers in the universe, because their names may be long or hostile:

    ?by=7&by=1&measure=mean&of=0&f2=1&f0=0.3-5

(or ``from0=3&to0=5`` for one range) groups the rows for which column 2 is in cell 1, and column 0 in cell 0 or in cells
3 to 5, by columns 7 and 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.query.counts import Query
from hedgerow.universe.attributes import Integers
from hedgerow.universe.universe import Universe

MEASURES = {
    "share": "share of all rows",
    "rows": "number of rows",
    "rate": "share of each group that matches the filter",
    "mean": "mean",
    "median": "median",
}
MOST_COLUMNS = 3
MOST_CELLS = 1_500  # cells of a picture


@dataclass(frozen=True)
class Exploration:
    """Filters by column, columns to group by, a measure, and the column whose mean or median is asked."""

    universe: Universe
    filters: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    by: tuple[str, ...] = ()
    measure: str = "share"
    of: str = ""

    @classmethod
    def read(cls, universe: Universe, parameters: Sequence[tuple[str, str]]) -> Exploration:
        """Read the parameters of an address. Unknown ones are refused."""
        filters: dict[str, tuple[int, ...]] = {}
        by: list[str] = []
        measure, of = "share", ""
        for name, value in parameters:
            if name == "by" and value:
                by.append(_column(universe, value))
            elif name == "measure" and value in MEASURES:
                measure = value
            elif name == "of" and value:
                of = _column(universe, value)
            elif name[:1] == "f" and name[1:].isdecimal() and value:
                column = _column(universe, name[1:])
                filters[column] = tuple(sorted({*filters.get(column, ()), *_cells(value, universe[column].size)}))
        given = dict(parameters)
        for number in (name[4:] for name in given if name[:4] == "from" and name[4:].isdecimal()):
            low, high = given[f"from{number}"], given.get(f"to{number}", given[f"from{number}"])
            ends = sorted((low, high), key=lambda end: (len(end), end))
            column = _column(universe, number)
            filters[column] = tuple(_cells("-".join(ends), universe[column].size))
        by = list(dict.fromkeys(by))[:MOST_COLUMNS]
        numbers = numeric_columns(universe)
        if measure in ("mean", "median") and of not in numbers:
            of = numbers[0] if numbers else ""
            measure = measure if of else "share"
        if measure == "rate" and not filters:
            measure = "share"
        return cls(universe, filters, tuple(by), measure, of if measure in ("mean", "median") else "")

    @property
    def where(self) -> Query | None:
        """The filters as one question, or None without any."""
        if not self.filters:
            return None
        return hr.count({name: _predicate(self.universe, name, cells) for name, cells in self.filters.items()})

    @property
    def cells(self) -> int:
        """Number of cells of the picture."""
        found = 1
        for name in self.by:
            found *= self.universe[name].size
        return found

    @property
    def scale(self) -> str:
        """Scale in which the service is asked."""
        return "rows" if self.measure == "rows" else "fraction"

    def question(self) -> Query:
        """Return the question."""
        if self.cells > MOST_CELLS:
            raise InvalidInput(
                f"A picture must have at most {MOST_CELLS:,} cells. Found {self.cells:,}. Group by fewer columns, or "
                "use SQL."
            )
        where, groups = self.where, hr.group_by(*self.by) if self.by else None
        found: Query
        if self.measure in ("mean", "median"):
            found = getattr(hr if groups is None else groups, self.measure)(self.of, where=where)
            return found
        if self.measure == "rate" and where is not None:
            return where if groups is None else groups.share(where)
        if groups is None:
            return hr.count({}) if where is None else where
        return hr.marginal(*self.by) if where is None else groups.count(where)

    def counts(self) -> Query | None:
        """Return the table of counts that the question is made of, or None if the question can be bought as it is.

        A smaller error of these counts makes the error of the question smaller.
        """
        if self.measure in ("share", "rows") and (self.where is None or not self.by):
            return None
        names = tuple(dict.fromkeys((*self.by, *([self.of] if self.of else ()), *self.filters)))
        found = replace(self, by=names)
        return hr.marginal(*names) if found.cells <= MOST_CELLS else None

    @property
    def part_measure(self) -> str:
        """Measure of the question that is offered for sale: the question itself, or its counts."""
        return "rows" if self.measure == "rows" else "share" if self.counts() is not None else self.measure

    def pairs(self) -> list[tuple[str, str]]:
        """Return the parameters of this exploration's address."""
        names = list(self.universe.names)
        found = [("by", str(names.index(name))) for name in self.by]
        if self.measure != "share":
            found.append(("measure", self.measure))
        if self.of:
            found.append(("of", str(names.index(self.of))))
        return [*found, *((f"f{names.index(name)}", _write_cells(cells)) for name, cells in self.filters.items())]

    @property
    def address(self) -> str:
        """The query string, with its question mark, or an empty text."""
        pairs = self.pairs()
        return f"?{urlencode(pairs)}" if pairs else ""

    def toggle(self, column: str, cell: int) -> Exploration:
        """Return the exploration with one cell more, or less, in a column's filter."""
        cells = set(self.filters.get(column, ())) ^ {cell}
        return self.with_filter(column, sorted(cells))

    def with_filter(self, column: str, cells: Sequence[int]) -> Exploration:
        """Return the exploration with this filter of a column; without any cell, the filter is removed."""
        kept = {name: old for name, old in self.filters.items() if name != column}
        return replace(self, filters={**kept, **({column: tuple(cells)} if cells else {})})

    def group_by(self, *by: str) -> Exploration:
        """Return the exploration by these columns."""
        return replace(self, by=tuple(dict.fromkeys(by))[:MOST_COLUMNS])


def numeric_columns(universe: Universe) -> list[str]:
    """Return the columns that have a mean."""
    found = []
    for name in universe.names:
        try:
            hr.mean(name).on(universe)
        except InvalidInput:
            continue
        found.append(name)
    return found


def _predicate(universe: Universe, name: str, cells: Sequence[int]) -> Any:
    """Return a filter as a person would write it: a range of whole numbers, or a set of labels."""
    attribute = universe[name]
    labels = [attribute.labels[i] for i in cells]
    is_span = len(cells) > 1 and all(b == a + 1 for a, b in pairwise(cells))
    if isinstance(attribute, Integers) and is_span and cells[-1] < len(attribute.listed):
        return (labels[0], labels[-1])
    return labels[0] if len(labels) == 1 and not isinstance(labels[0], tuple) else set(labels)


def _column(universe: Universe, given: str) -> str:
    if not given.isascii() or not given.isdecimal() or len(given) > 6 or int(given) >= len(universe.names):
        raise InvalidInput(
            "The column must be one of the dataset's columns. Found a number that stands for none. Choose a column "
            "on the page."
        )
    return str(universe.names[int(given)])


def _cells(given: str, size: int) -> list[int]:
    """Read cells such as ``0.3-5``."""
    found: list[int] = []
    for part in given.split("."):
        low, dash, high = part.partition("-")
        ends = (low, high) if dash else (low, low)
        if not all(end.isascii() and end.isdecimal() and len(end) < 9 and int(end) < size for end in ends):
            raise InvalidInput(
                "A filter must name cells of its column. Found cells of no such column. Choose the filter on the page."
            )
        found += range(int(ends[0]), int(ends[1]) + 1)
    return found


def _write_cells(cells: Sequence[int]) -> str:
    """Write cells in short, such as ``0.3-5``."""
    runs: list[list[int]] = []
    for cell in cells:
        if runs and runs[-1][1] == cell - 1:
            runs[-1][1] = cell
        else:
            runs.append([cell, cell])
    return ".".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
