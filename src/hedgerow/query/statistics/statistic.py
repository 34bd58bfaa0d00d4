"""Bases of the statistics: a question that is defined by its fields, and questions that are asked together."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow._checks import number
from hedgerow._registry import ClassRegistry
from hedgerow._types import Array, Names
from hedgerow.errors import InvalidInput
from hedgerow.query.bound import Labels
from hedgerow.query.composed import (
    AnswerKnowledge,
    ComposedQuestion,
    Ends,
    LinearKnowledge,
)
from hedgerow.query.counts import (
    QUESTIONS,
    Query,
    Resolution,
    bound,
    require_boolean,
)
from hedgerow.query.linear import Linear, as_linear
from hedgerow.query.ratios import narrow
from hedgerow.universe.universe import Universe


@dataclass(frozen=True, eq=False)
class SingleQuestion(ComposedQuestion):
    """One linear query as a part of a composed question."""

    query: Linear

    is_fraction = True
    is_coarse = False
    limits = (0.0, 1.0)

    @property
    def key(self) -> Hashable:
        """Key of the query."""
        return self.query.key

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The query itself."""
        return (self.query,)

    @property
    def sides(self) -> tuple[Linear, Linear]:
        """The query, twice."""
        return self.query, self.query

    def kept_cells(self, universe: Universe) -> int:
        """Return 0: a linear query keeps no table."""
        return 0

    def ends(self, known: LinearKnowledge) -> Ends:
        """Return the interval of the query."""
        return known.interval(self.query)

    def best(self, known: LinearKnowledge) -> float:
        """Return the answer to the query."""
        return known.value(self.query)

    def typical(self, known: AnswerKnowledge) -> float | None:
        """Return the typical error of the query."""
        return known.typical(self.query)


@dataclass(frozen=True, eq=False)
class SeveralQuestions(ComposedQuestion):
    """Questions of one kind, one for each cell of a table."""

    parts: tuple[ComposedQuestion, ...]
    axes: Labels
    is_fraction: bool

    is_number = False

    @property
    def labels(self) -> Labels:  # type: ignore[override]
        """Labels of the axes."""
        return self.axes

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells along each axis."""
        return tuple(len(labels) for _, labels in self.axes)

    @property
    def key(self) -> Hashable:
        """Key of the question."""
        return ("several", self.shape, tuple(part.key for part in self.parts))

    @property
    def linears(self) -> list[Linear]:
        """Those of all parts."""
        return [query for part in self.parts for query in part.linears]

    @property
    def tables(self) -> list[Names]:
        """Those of all parts, each once."""
        return list(dict.fromkeys(names for part in self.parts for names in part.tables))

    def kept_cells(self, universe: Universe) -> int:
        """Return the sum over all parts."""
        return sum(part.kept_cells(universe) for part in self.parts)

    @property
    def in_rows(self) -> bool:  # type: ignore[override]
        """True if a part is a sum over all rows."""
        return any(part.in_rows for part in self.parts)

    @property
    def is_coarse(self) -> bool:
        """True if bins are cut in one of the parts."""
        return any(part.is_coarse for part in self.parts)

    @property
    def limits(self) -> Ends:
        """Limits of each part."""
        return self._each(lambda part: part.limits[0]), self._each(lambda part: part.limits[1])

    def _each(self, of: Callable[[ComposedQuestion], float]) -> Array:
        """Apply a function to every part."""
        return np.array([of(part) for part in self.parts], dtype=float).reshape(self.shape)

    def ends(self, known: LinearKnowledge) -> Ends:
        """Return the ends of each part."""
        found = np.array([part.ends(known) for part in self.parts], dtype=float).reshape(*self.shape, 2)
        return found[..., 0], found[..., 1]

    def best(self, known: LinearKnowledge) -> Array:
        """Return the best answer to each part."""
        return self._each(lambda part: part.best(known))

    def typical(self, known: AnswerKnowledge) -> Array | None:
        """Return the typical error of each part; None if that of one of them is unknown."""
        found = [part.typical(known) for part in self.parts]
        return None if None in found else np.array(found, dtype=float).reshape(self.shape)


STATISTICS: ClassRegistry[Query] = ClassRegistry()
"""Statistics, by the name of the function that makes them. This is the ``kind`` of their stored form."""
MAKERS: dict[str, Callable[..., Any]] = {}
"""Functions that make statistics, by name: a question that is written as text may call them."""

STATISTICS.each(lambda name, kind: QUESTIONS.add(kind))


def offer(kind: type[Query], *makers: Callable[..., Any]) -> None:
    """Offer a statistic, which is made by these functions. The name of the first is its name."""
    STATISTICS.add(kind, makers[0].__name__)
    MAKERS.update({maker.__name__: maker for maker in makers})


class Statistic(Query):
    """Base of questions that are defined by the values of their fields."""

    def _identity(self) -> Any:
        fields: list[Any] = [getattr(self, field.name) for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        return (type(self).__name__, *(v._identity() if isinstance(v, Query) else v for v in fields))

    def __repr__(self) -> str:
        fields: list[Any] = [(f.name, getattr(self, f.name)) for f in dataclasses.fields(self)]  # type: ignore[arg-type]
        told = ", ".join(f"{name}={value!r}" for name, value in fields if value is not None)
        return f"{type(self).__name__.lower()}({told})"


class OfRecords(Statistic):
    """Base of statistics over the records of a condition ``where``, or over all."""

    where: Query | None

    def among(self, group: Query) -> Query:
        """Return the statistic over the records of the group."""
        return dataclasses.replace(self, where=narrow(self.where, group))  # type: ignore[type-var]


def part_of(query: Query, universe: Universe, resolution: Resolution, what: str = "A difference") -> ComposedQuestion:
    """Bind a part of a difference, of a ratio or of a histogram; refuse anything but one number."""
    found = single(query, universe, resolution)
    if found.is_composed and found.is_number and not found.in_rows:
        return found
    raise InvalidInput(
        f"{what} must be between two numbers, such as counts or means. Found {query!r}. Compare its cells instead."
    )


def single(query: Query, universe: Universe, resolution: Resolution) -> ComposedQuestion:
    """Bind a question; a linear query becomes a composed one."""
    found = bound(query, universe, resolution)
    linear = as_linear(found)
    return found if linear is None else SingleQuestion(linear)  # type: ignore[return-value]


def require_where(where: object) -> None:
    """Refuse a ``where`` that is not a count."""
    if where is not None:
        require_boolean(where)


def real_number(name: str, value: object) -> float:
    """Check that a value is a number, and return it as a float."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidInput(f"{name} must be a number. Found {value!r}. Give a number.")
    return number(value)
