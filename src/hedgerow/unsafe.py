"""Non-private diagnostics for benchmarks and tests. Every function here reads the data and is named ``unsafe_…``.

Never show their results to anyone who may not see the table itself.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow._types import Array, Names
from hedgerow.convex.minimize import BoundMinimize, bound_convex
from hedgerow.convex.solver.public_minimum import minimize_over
from hedgerow.data import DataSource, Table
from hedgerow.data.coding import Coder, cells_of, date_in, meaning
from hedgerow.data.csv_file import Csv
from hedgerow.data.owner_inspection import inspect_columns
from hedgerow.data.readers import open_before_rows
from hedgerow.errors import InvalidInput
from hedgerow.query.bound import Estimate
from hedgerow.query.counts import (
    BoundMarginal,
    Query,
    Resolution,
)
from hedgerow.query.linear import Linear
from hedgerow.query.raw_rows import RawRows
from hedgerow.universe.attributes import not_
from hedgerow.universe.dates import days_given
from hedgerow.universe.universe import Universe

if TYPE_CHECKING:
    import pandas as pd

    from hedgerow.answer import Answer

__all__ = ["unsafe_answer", "unsafe_error", "unsafe_excess_risk", "unsafe_inspect"]


def unsafe_answer(
    source: Any, query: Query, universe: Universe | None = None, *, resolution: Resolution = "values"
) -> float | Array:
    """Return the true value of a query on the table, without noise. Not private.

    For a pandas frame the value is computed from the values themselves, by the declared rules: a number outside the
    range counts as its nearest end, a fraction in a column of whole numbers as the whole number below. For a source
    that is already coded, and with ``resolution="bins"``, the value is that of the coded table, in which a question
    that cuts bins is interpolated.

    Parameters
    ----------
    source
        A frame, any other source of ``hr.open``, or a coded data source.
    query : Query
        The question.
    universe : Universe, optional
        Needed unless the source is coded or is a frame of whole numbers from 0.
    resolution : {"values", "bins"}
        As in ``Session.ask``.

    Returns
    -------
    float or array

    Example
    -------
    >>> truth = hr.unsafe.unsafe_answer(frame, hr.count(y=1), hr.Universe(y=hr.Integers(0, 1)))
    >>> truth == float(frame["y"].mean())
    True
    """
    is_frame = type(source).__module__.startswith("pandas")
    if is_frame and resolution == "values" and not query.is_convex:
        return query.true_value(_FrameRows(source, _declared_universe(source, universe)))
    data = source if isinstance(source, DataSource) else Table(source, _declared_universe(source, universe))
    bound = query.on(data.universe, resolution)
    value = bound.ask(_Truth(data), None).value
    return value * data.rows if bound.in_rows else value


class _FrameRows(RawRows):
    """The rows of a frame, from which each question computes its answer by its definition."""

    def __init__(self, frame: Any, universe: Universe) -> None:
        self.universe = universe
        self.count = len(frame)
        self._cells = {name: cells_of(universe, name, frame) for name in universe.names}
        self._numbers = {name: self._read_column(name, frame) for name in universe.names}

    def _read_column(self, name: str, frame: Any) -> Array | None:
        """Return the numbers of a column, clipped to their cell, or None if the attribute is not numeric."""
        declared, cells = self.universe[name], self._cells[name]
        if declared.bounds is None:
            return None
        low, high = (bound[cells] for bound in declared.bounds)
        column = frame[name]
        if declared.days is not None:
            days = (date_in(meaning(value)[0] or "") for value in column)
            found = np.array([np.nan if day is None else day for day in days], dtype=float)
        elif column.dtype.kind in "iuf":
            found = column.to_numpy(dtype=float)
        else:
            read = (meaning(value)[1] for value in column)
            found = np.array([np.nan if number is None else number for number in read], dtype=float)
        found = np.floor(found) if declared.is_whole else found
        return np.asarray(np.clip(np.where(np.isnan(found), low, found), low, high))

    def cells(self, name: str) -> NDArray[np.int64]:
        """Return the cell of each row on an attribute."""
        return self._cells[name]

    def numbers(self, name: str) -> Array:
        """Return the numbers of a column."""
        found = self._numbers[name]
        assert found is not None
        return found

    def scores(self, name: str) -> Array:
        """Return the numbers of a column, or the positions of its labels."""
        if self._numbers[name] is not None:
            return self.numbers(name)
        cells = self._cells[name]
        return np.where(cells < len(self.universe[name].listed), cells.astype(float), np.nan)

    def holds(self, where: Query | None) -> NDArray[np.bool_]:
        """Return for each row whether a condition holds."""
        return np.ones(self.count, bool) if where is None else where.holds(self)

    def weights(self, query: Query) -> Array:
        """Return the value of a linear query on each row."""
        (linear,) = query.on(self.universe).linears
        return np.asarray(linear.table[tuple(self._cells[name] for name in linear.attributes)] * np.ones(self.count))

    def table(self, names: Names, where: Query | None) -> Array:
        """Return the number of rows in each cell of some attributes."""
        kept, found = self.holds(where), np.zeros(self.universe.sizes(names))
        np.add.at(found, tuple(self._cells[name][kept] for name in names), 1.0)
        return found

    def satisfy(self, predicates: Sequence[tuple[str, Any]]) -> NDArray[np.bool_]:
        """Return for each row whether it satisfies all predicates."""
        parts = [self._satisfies(name, predicate) for name, predicate in predicates]
        return np.asarray(np.logical_and.reduce([np.ones(self.count, bool), *parts]))

    def _satisfies(self, name: str, predicate: Any) -> NDArray[np.bool_]:
        """Return for each row whether the value of one attribute satisfies a predicate."""
        declared, cells, numbers = self.universe[name], self._cells[name], self._numbers[name]
        if isinstance(predicate, not_):
            return ~self._satisfies(name, predicate.predicate)
        if isinstance(predicate, tuple) and numbers is not None:
            low, high = (
                (-np.inf if predicate[0] is None else _in_days(predicate[0])[0]),
                (np.inf if predicate[1] is None else _in_days(predicate[1])[1]),
            )
            return (numbers >= low) & (numbers <= high)
        if not declared.has_bins or (isinstance(predicate, np.ndarray) and predicate.dtype == bool):
            return np.asarray(declared.mask(predicate)[cells])
        wanted = predicate if isinstance(predicate, set | frozenset | list | np.ndarray) else [predicate]
        assert numbers is not None
        found = [
            cells == declared.cell(value)
            if value is None or (isinstance(value, str) and (declared.days is None or declared.has_label(value)))
            else (numbers >= _in_days(value)[0]) & (numbers <= _in_days(value)[1])
            for value in wanted
        ]
        return np.asarray(np.logical_or.reduce([np.zeros(self.count, bool), *found]))

    def values(self, name: str, where: Query | None) -> Array:
        """Return the numbers of a column in the rows where a condition holds and the number is not missing."""
        numbers = self.numbers(name)
        return numbers[self.holds(where) & ~np.isnan(numbers)]


def unsafe_respondent(data: DataSource) -> _Truth:
    """Return an object that answers bound questions from the table itself. Not private."""
    return _Truth(data)


def _in_days(value: Any) -> tuple[Any, Any]:
    """Return the first and the last day of a date or a period, and a number twice."""
    return days_given(value) if isinstance(value, str | datetime.date) else (value, value)


class _Truth:
    """An engine that answers from the table itself, without noise."""

    def __init__(self, data: DataSource) -> None:
        self._data = data

    def hypothesis_answer(self, query: Linear) -> float:
        """Return the true fraction of a linear query."""
        return query.dot(self._data.marginal(query.attributes)) / self._data.rows

    @property
    def least_rows(self) -> float:
        """Number of rows."""
        return self._data.rows

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Answer a linear query exactly."""
        return Estimate(self.hypothesis_answer(query), 0.0, "measured")

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Answer a marginal table exactly."""
        return Estimate(np.asarray(self._data.marginal(table.attributes) / self._data.rows), 0.0, "measured")

    def minimize(self, question: BoundMinimize, within: float | None) -> Estimate:
        """Return the minimizer of a loss on the table."""
        counts = self._data.marginal(question.attributes)
        return Estimate(minimize_over(question.risk, counts, question.over).theta, None, "measured")


def unsafe_excess_risk(
    source: Any, query: Query, theta: ArrayLike, universe: Universe | None = None, *, tolerance: float = 1e-8
) -> float:
    """Return err(D, θ): the average loss of θ on the table minus the least over the query's set. Not private.

    Parameters
    ----------
    source, universe
        As in ``unsafe_answer``.
    query : Query
        A convex question, made by ``hr.minimize``.
    theta : array_like
        The parameters to judge.
    tolerance : float
        Numerical tolerance of the minimum.

    Returns
    -------
    float

    Raises
    ------
    InvalidInput
        If the query is not convex.

    Example
    -------
    >>> loss = hr.losses.Squared(target="y", features=["visits"])
    >>> declared = hr.Universe(visits=hr.Integers(0, 9), y=hr.Integers(0, 1))
    >>> hr.unsafe.unsafe_excess_risk(frame, hr.minimize(loss, hr.L2Ball(1.0)), [0.0, 0.0], declared) >= 0
    True
    """
    data = source if isinstance(source, DataSource) else Table(source, _declared_universe(source, universe))
    if not query.is_convex:
        raise InvalidInput(f"The query must be made by hr.minimize. Found {query!r}. Use unsafe_error for others.")
    (bound,) = bound_convex([query], data.universe)
    counts = data.marginal(bound.attributes)
    least = minimize_over(bound.risk, counts, bound.over, tolerance)
    return (bound.risk.objective(counts).value(np.asarray(theta, dtype=float)) - least.value) / data.rows


def unsafe_error(source: Any, answer: Answer, universe: Universe | None = None) -> float:
    """Return the largest true error of an answer, as a fraction of the table. Not private.

    Parameters
    ----------
    source, universe
        As in ``unsafe_answer``.
    answer : Answer
        The answer to judge.

    Returns
    -------
    float

    Example
    -------
    >>> answer = session.ask(hr.count(visits=(0, 4)))
    >>> hr.unsafe.unsafe_error("people.csv", answer, universe) <= answer.error
    True
    """
    return float(np.max(np.abs(np.asarray(answer.value) - unsafe_answer(source, answer.query, universe))))


def unsafe_inspect(
    source: Any, universe: Universe, *, table: str | None = None, csv: Csv | None = None, examples: int = 3
) -> pd.DataFrame:
    """Count, for each column, the rows that the universe does not describe. Not private.

    The frame lists how many rows are missing, are clamped to an end of the range, or match nothing declared; the cells
    that such rows are assigned to; and the most common of these values. It is for the owner alone: correct the universe
    with it, and never show it.

    Parameters
    ----------
    source, table, csv
        As in ``hr.open``.
    universe : Universe
        The declaration to check.
    examples : int
        Number of common values to list for each column.

    Returns
    -------
    pandas.DataFrame

    Example
    -------
    >>> found = hr.unsafe.unsafe_inspect(frame, hr.Universe(visits=hr.Integers(0, 5)))
    >>> int(found.loc["visits", "clamped"]) == int((frame["visits"] > 5).sum())
    True
    """
    import pandas as pd

    found = open_before_rows(source, table, csv)
    attributes = [universe[name] for name in universe.names]
    inspected_columns = inspect_columns(found, found.positions(universe.names), attributes)
    lines = [
        {
            "column": name,
            "kind": type(attribute).__name__,
            "rows": inspection.rows,
            "missing": inspection.missing,
            "missing go to": attribute.labels[Coder(attribute).cell(None)],
            "clamped": inspection.clamped,
            "unmatched": inspection.unmatched,
            "unmatched go to": attribute.labels[Coder(attribute).cell("\0")],
            "examples": ", ".join(repr(value) for value, _ in inspection.examples.most_common(examples)),
        }
        for name, attribute, inspection in zip(universe.names, attributes, inspected_columns, strict=True)
    ]
    return pd.DataFrame(lines).set_index("column")


def _declared_universe(source: Any, universe: Universe | None) -> Universe:
    """Return the given universe, or for a frame of whole numbers from 0 the one that its largest values imply."""
    if universe is not None:
        return universe
    return Universe.from_sizes({str(name): int(source[name].max()) + 1 for name in source.columns})
