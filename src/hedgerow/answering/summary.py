"""Summarize a whole table for free: every column, and the strongest associations, with error bars."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow import _html
from hedgerow._numbers import few_digits
from hedgerow.answer import Answer
from hedgerow.answering.associations import Associations, strongest_associations
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.query.counts import Query, count, marginal
from hedgerow.query.ratios import mean
from hedgerow.query.statistics import quantile, variance
from hedgerow.universe.attributes import MISSING, Integers
from hedgerow.universe.dates import Dates, date_of
from hedgerow.universe.universe import Universe

if TYPE_CHECKING:
    import pandas as pd

QUARTILES = {"25%": 0.25, "50%": 0.5, "75%": 0.75}
STATISTICS = ("count", "unique", "top", "freq", "mean", "std", "min", *QUARTILES, "max", "missing")
LISTED = 10  # number of associations that are listed
WIDEST = 10_000  # a column with more values has no listed quartiles' table, only its mean

Ask = Callable[[Query], Answer]


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """A description of every column, made by ``describe()``. All bars hold together, with those of all answers.

    ``columns`` has the statistics of each column by name; ``errors`` has their bars; a statistic without a bar is not
    in it. ``count``, ``freq`` and ``missing`` are numbers of rows. ``min``, ``max`` and ``unique`` are those of the
    declared universe, because the table's own are private. ``associations`` are the strongest ones. ``tables`` are the
    numbers of rows by value, for columns with up to 10,000 values.
    """

    columns: dict[str, dict[str, Any]]
    errors: dict[str, dict[str, float]]
    associations: Associations
    tables: tuple[Answer, ...] = ()

    @property
    def frame(self) -> pd.DataFrame:
        """The statistics as a frame, in the form of ``pandas.DataFrame.describe``: a row each, a column per column."""
        return _frame(self.columns)

    @property
    def error_frame(self) -> pd.DataFrame:
        """The bars of ``frame``, in the same form. A statistic that is public or has no bar has NaN."""
        return _frame(self.errors)

    @property
    def association_frame(self) -> pd.DataFrame:
        """The strongest associations as a frame, as ``session.associations()`` gives it."""
        return self.associations.frame

    def plot(self) -> Any:
        """Draw a panel for each column, with both errors, and one for the strongest associations.

        Returns
        -------
        matplotlib figure
        """
        from hedgerow.display.pictures import draw_summary

        return draw_summary(self.tables, [(" × ".join(one.columns), one.cramers_v) for one in self.associations])

    @property
    def html(self) -> str:
        """The summary as one self-contained HTML page."""
        return _html.page("Summary", self._repr_html_())

    def _repr_html_(self) -> str:
        head = ("", *self.columns)
        lines = [(name, *(self._cell(column, name) for column in self.columns)) for name in STATISTICS]
        found = _html.table(head, lines, "± is the guaranteed error")
        return found + (self.associations._repr_html_() if len(self.associations) else "")

    def __str__(self) -> str:
        lines = [
            "Numbers after ± are guaranteed errors. min, max and unique are those of the declaration. "
            "A mean or a quantile without ± may be any declared value."
        ]
        for column, statistics in self.columns.items():
            lines.append(column)
            lines += [f"  {name:>8}  {self._cell(column, name)}" for name in STATISTICS if name in statistics]
        return "\n".join([*lines, *(str(one) for one in self.associations)])

    def __repr__(self) -> str:
        return str(self)

    def _cell(self, column: str, name: str) -> str:
        """Return a statistic with its bar as text."""
        if name not in self.columns[column]:
            return ""
        value, error = self.columns[column][name], self.errors[column].get(name)
        shown = f"{value:.6g}" if isinstance(value, float) else str(value)
        days = " days" if isinstance(value, datetime.date) else ""
        return shown if error is None else f"{shown} ± {few_digits(error, 2)}{days}"


def describe(universe: Universe, hypothesis: Hypothesis, rows: float, fraction: Ask, in_rows: Ask) -> Summary:
    """Summarize a table by free answers, which ``fraction`` and ``in_rows`` give in the two scales."""
    columns: dict[str, dict[str, Any]] = {}
    errors: dict[str, dict[str, float]] = {}
    tables: list[Answer] = []
    everyone = in_rows(count({}))
    for name in universe.names:
        found: dict[str, Any] = {"count": float(rows), "unique": universe[name].size}
        bars: dict[str, float] = {} if not everyone.error else {"count": float(np.max(everyone.error))}
        columns[name], errors[name] = found, bars
        if universe[name].size <= WIDEST:
            tables.append(in_rows(marginal(name)))
            _add_most_frequent(found, bars, tables[-1])
        if _is_number(universe, name):
            _add_number(found, bars, universe, name, fraction)
        if universe[name].missing:
            _add(found, bars, "missing", in_rows(count({name: MISSING})))
    return Summary(columns, errors, strongest_associations(universe, hypothesis, fraction, LISTED), tuple(tables))


def _is_number(universe: Universe, name: str) -> bool:
    """Return True if a mean of this column can be asked."""
    try:
        mean(name).on(universe)
    except InvalidInput:
        return False
    return True


def _add_most_frequent(found: dict[str, Any], bars: dict[str, float], table: Answer) -> None:
    """Add the value that the hypothesis holds for the most frequent, and how often it occurs."""
    at = int(np.argmax(table.value))
    found["top"], found["freq"] = table.labels[0][1][at], float(table.value[at])
    if table.error is not None:
        bars["freq"] = float(np.broadcast_to(table.error, table.value.shape)[at])


def _add_number(found: dict[str, Any], bars: dict[str, float], universe: Universe, name: str, fraction: Ask) -> None:
    """Add mean, standard deviation and quartiles of a number, and the ends of its declared range."""
    _add(found, bars, "mean", fraction(mean(name)))
    spread = fraction(variance(name))
    if np.isfinite(spread.value):
        v = max(0.0, float(spread.value))
        found["std"] = math.sqrt(v)
        if spread.error is not None:
            e = float(np.max(spread.error))
            bars["std"] = max(math.sqrt(v + e) - math.sqrt(v), math.sqrt(v) - math.sqrt(max(v - e, 0.0)))
    for called, part in QUARTILES.items():
        _add(found, bars, called, fraction(quantile(name, part)))
    attribute = universe[name]
    edges = getattr(attribute, "edges", None)
    if isinstance(attribute, Dates):  # days since 1970 become dates; their bars and their spread stay days
        for called in ("mean", *QUARTILES):
            found[called] = date_of(found[called])
        found["min"], found["max"] = attribute.edges[0], attribute.edges[-1]
    elif edges is not None:
        found["min"], found["max"] = float(edges[0]), float(edges[-1])
    elif isinstance(attribute, Integers):
        found["min"], found["max"] = attribute.low, attribute.high


def _add(found: dict[str, Any], bars: dict[str, float], name: str, answer: Answer) -> None:
    """Add an answer and its bar."""
    found[name] = float(answer.value)
    if answer.error is not None:
        bars[name] = float(np.max(answer.error))


def _frame(columns: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Return statistics as a frame with a row for each statistic that some column has."""
    import pandas as pd

    used = [name for name in STATISTICS if any(name in each for each in columns.values())]
    kept: dict[Hashable, list[Any]] = {
        column: [each.get(name, math.nan) for name in used] for column, each in columns.items()
    }
    return pd.DataFrame(kept, index=used)
