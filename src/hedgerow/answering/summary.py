"""Summarize a whole table for free: every column, and the strongest associations, with error bars.

p_ij, p_i, p_j    shares of rows in a cell of two columns, and in the values of each column
V                 Cramér's V = √(φ² / (min(r, c) − 1)), φ² = Σ (p_ij − p_i p_j)² / (p_i p_j): 0 if the columns are
                  independent, 1 if one determines the other; computed on the hypothesis, and therefore without a bar
p_ij − p_i p_j    how many more rows the cell has than independent columns would have; its bar follows from the bars
                  e_ij, e_i, e_j of the three shares: e_ij + e_i p_j + p_i e_j + e_i e_j
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow import _html
from hedgerow._types import Array
from hedgerow.answer import Answer
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.query.counts import Query, count, marginal
from hedgerow.query.ratios import mean
from hedgerow.query.statistics import quantile, variance
from hedgerow.universe.attributes import MISSING, Integers
from hedgerow.universe.universe import Universe

if TYPE_CHECKING:
    import pandas as pd

QUARTILES = {"25%": 0.25, "50%": 0.5, "75%": 0.75}
STATISTICS = ("count", "unique", "top", "freq", "mean", "std", "min", *QUARTILES, "max", "missing")
STRONGEST = 10  # number of associations that are listed
MOST_PAIRS = 5_000  # at most this many pairs of columns are compared, the smallest first
MOST_CELLS = 100_000  # a pair with more cells is not compared
WIDEST = 10_000  # a column with more values has no listed quartiles' table, only its mean

Ask = Callable[[Query], Answer]


@dataclass(frozen=True, eq=False)
class Association:
    """Two columns that depend on each other, and the cell in which they differ most from independent ones.

    ``difference`` is p_ij − p_i p_j of that cell, ``error`` its bar.
    """

    columns: tuple[str, str]
    cramers_v: float
    values: tuple[Any, Any]
    difference: float
    error: float | None


@dataclass(frozen=True, eq=False)
class Summary:
    """A description of every column, made by ``describe()``. All bars hold together, with those of all answers.

    ``columns`` has the statistics of each column by name; ``errors`` their bars, where there are any. ``count``, ``freq``
    and ``missing`` are numbers of rows. ``min``, ``max`` and ``unique`` are those of the declared universe, because the
    table's own are private. ``associations`` are the strongest ones.
    """

    columns: dict[str, dict[str, Any]]
    errors: dict[str, dict[str, float]]
    associations: tuple[Association, ...]

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
        """The strongest associations as a frame."""
        import pandas as pd

        names = ("first", "second", "cramers_v", "first_value", "second_value", "difference", "error")
        return pd.DataFrame([dict(zip(names, row, strict=True)) for row in self._rows()], columns=list(names))

    def _rows(self) -> list[tuple[Any, ...]]:
        return [
            (*one.columns, one.cramers_v, *one.values, one.difference, math.nan if one.error is None else one.error)
            for one in self.associations
        ]

    @property
    def html(self) -> str:
        """The summary as one self-contained HTML page."""
        return _html.page("Summary", self._repr_html_())

    def _repr_html_(self) -> str:
        head = ("", *self.columns)
        rows = [(name, *(self._cell(column, name) for column in self.columns)) for name in STATISTICS]
        found = _html.table(head, rows, "± is the guaranteed error")
        if self.associations:
            pairs = [(" × ".join(one.columns), f"{one.cramers_v:.3f}", *_difference(one)) for one in self.associations]
            found += _html.table(("columns", "Cramér's V", "cell", "share beyond independence"), pairs)
        return found

    def __str__(self) -> str:
        lines = []
        for column, statistics in self.columns.items():
            said = [f"{name} {self._cell(column, name)}" for name in STATISTICS if name in statistics]
            lines.append(f"{column}: {', '.join(said)}")
        for one in self.associations:
            cell, difference = _difference(one)
            lines.append(f"{' × '.join(one.columns)}: V {one.cramers_v:.3f}, {cell} {difference}")
        return "\n".join(lines)

    def _cell(self, column: str, name: str) -> str:
        """Return a statistic with its bar as text."""
        if name not in self.columns[column]:
            return ""
        value, error = self.columns[column][name], self.errors[column].get(name)
        shown = f"{value:.6g}" if isinstance(value, float) else str(value)
        return shown if error is None else f"{shown} ± {error:.2g}"


def describe(universe: Universe, hypothesis: Hypothesis, rows: float, fraction: Ask, in_rows: Ask) -> Summary:
    """Summarize a table by free answers, which ``fraction`` and ``in_rows`` give in the two scales."""
    columns: dict[str, dict[str, Any]] = {}
    errors: dict[str, dict[str, float]] = {}
    everyone = in_rows(count({}))
    for name in universe.names:
        found: dict[str, Any] = {"count": float(rows), "unique": universe[name].size}
        bars: dict[str, float] = {} if not everyone.error else {"count": float(np.max(everyone.error))}
        columns[name], errors[name] = found, bars
        if universe[name].size <= WIDEST:
            _add_most_frequent(found, bars, in_rows(marginal(name)))
        if _is_number(universe, name):
            _add_number(found, bars, universe, name, fraction)
        if universe[name].missing:
            _add(found, bars, "missing", in_rows(count({name: MISSING})))
    return Summary(columns, errors, _associations(universe, hypothesis, fraction))


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
    edges = getattr(universe[name], "edges", None)
    if edges is not None:
        found["min"], found["max"] = float(edges[0]), float(edges[-1])
    elif isinstance(attribute := universe[name], Integers):
        found["min"], found["max"] = attribute.low, attribute.high


def _add(found: dict[str, Any], bars: dict[str, float], name: str, answer: Answer) -> None:
    """Add an answer and its bar."""
    found[name] = float(answer.value)
    if answer.error is not None:
        bars[name] = float(np.max(answer.error))


def _associations(universe: Universe, hypothesis: Hypothesis, fraction: Ask) -> tuple[Association, ...]:
    """Return the strongest associations between two columns."""
    names = [name for name in universe.names if universe[name].size > 1]
    pairs = [pair for pair in itertools.combinations(names, 2) if universe.cells(pair) <= MOST_CELLS]
    pairs = sorted(pairs, key=lambda pair: (universe.cells(pair), pair))[:MOST_PAIRS]
    strengths = {pair: cramers_v(hypothesis.marginal(pair)) for pair in pairs}
    strongest = sorted(strengths, key=lambda pair: (-strengths[pair], pair))[:STRONGEST]
    return tuple(_association(pair, strengths[pair], fraction) for pair in strongest)


def cramers_v(table: Array) -> float:
    """Return Cramér's V of a table of shares of two columns."""
    shares = np.maximum(table, 0.0) / max(float(np.maximum(table, 0.0).sum()), 1e-300)
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    square = np.divide(np.square(shares - expected), expected, out=np.zeros_like(shares), where=expected > 0).sum()
    return math.sqrt(min(1.0, float(square) / max(1, min(table.shape) - 1)))


def _association(pair: tuple[str, str], strength: float, fraction: Ask) -> Association:
    """Return an association with the cell that differs most from independence, and the bar of that difference."""
    joint, first, second = fraction(marginal(*pair)), fraction(marginal(pair[0])), fraction(marginal(pair[1]))
    apart = joint.value - np.outer(first.value, second.value)
    i, j = np.unravel_index(int(np.argmax(np.abs(apart))), apart.shape)
    error = None
    if joint.error is not None and first.error is not None and second.error is not None:
        e = float(np.broadcast_to(joint.error, apart.shape)[i, j])
        a, b = (float(np.broadcast_to(one.error, one.value.shape)[k]) for one, k in ((first, i), (second, j)))  # type: ignore[arg-type]
        p, q = float(first.value[i]), float(second.value[j])
        error = e + a * q + p * b + a * b
    values = tuple(joint.labels[axis][1][k] for axis, k in ((0, i), (1, j)))
    return Association(pair, strength, (values[0], values[1]), float(apart[i, j]), error)


def _difference(one: Association) -> tuple[str, str]:
    """Return the cell and the difference of an association as texts."""
    cell = " and ".join(f"{name} = {value}" for name, value in zip(one.columns, one.values, strict=True))
    return cell, f"{one.difference:+.3g}" + ("" if one.error is None else f" ± {one.error:.2g}")


def _frame(columns: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Return statistics as a frame with a row for each statistic that some column has."""
    import pandas as pd

    used = [name for name in STATISTICS if any(name in each for each in columns.values())]
    kept: dict[Hashable, list[Any]] = {
        column: [each.get(name, math.nan) for name in used] for column, each in columns.items()
    }
    return pd.DataFrame(kept, index=used)
