"""What analysts ask: symbolic questions, written without a universe and bound to one by ``on``.

Questions are values: equal when they are written alike up to order and grouping, and, once bound, equal exactly when
they are the same function of a record (see ``linear``), so that a repeat is recognised however it was written.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow._types import Names
from hedgerow.errors import InvalidInput
from hedgerow.questions.attributes import OTHER, isnt
from hedgerow.questions.bound import Bound, Estimate, Labels
from hedgerow.questions.linear import AnswersLinear, Linear, require_table
from hedgerow.questions.universe import Universe


class Query:
    """A question about the table. ``on`` binds it to a universe; ``&``, ``|`` and ``~`` combine counts."""

    def on(self, universe: Universe) -> Bound[Any]:
        raise NotImplementedError

    def _identity(self) -> Any:
        raise NotImplementedError

    def __and__(self, other: Query) -> Query:
        return Combined("and", (self, other))

    def __or__(self, other: Query) -> Query:
        return Combined("or", (self, other))

    def __invert__(self) -> Query:
        return Not(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Query) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


class Count(Query):
    """See ``count``: a conjunction of predicates on single attributes."""

    __slots__ = ("predicates",)

    def __init__(self, predicates: tuple[tuple[str, Any], ...]) -> None:
        self.predicates = predicates

    def on(self, universe: Universe) -> Linear:
        masks: dict[str, NDArray[np.bool_]] = {}
        for name, predicate in self.predicates:
            mask = _mask(universe, name, predicate)
            masks[name] = masks[name] & mask if name in masks else mask
        return Linear.product(universe, masks)

    def _identity(self) -> Any:
        return ("count", frozenset((name, _predicate_identity(p)) for name, p in self.predicates))

    def __and__(self, other: Query) -> Query:
        return Count(self.predicates + other.predicates) if isinstance(other, Count) else super().__and__(other)

    def __repr__(self) -> str:
        return f"count({', '.join(f'{name}={_shown(p)}' for name, p in self.predicates)})"


class Combined(Query):
    """A conjunction ("and") or disjunction ("or") of questions that are true or false for each record."""

    operation: str
    parts: tuple[Query, ...]

    def __init__(self, operation: str, parts: tuple[Query, ...]) -> None:
        for part in parts:
            _require_boolean(part)
        flat: list[Query] = []
        for part in parts:
            flat.extend(part.parts if isinstance(part, Combined) and part.operation == operation else (part,))
        self.operation, self.parts = operation, tuple(flat)

    def on(self, universe: Universe) -> Linear:
        parts = [_bound_count(part, universe) for part in self.parts]
        names = universe.order(name for query in parts for name in query.attributes)
        require_table(names, universe.sizes(names))
        tables = [_spread(query, names).astype(bool) for query in parts]
        combine = np.logical_and if self.operation == "and" else np.logical_or
        full = np.broadcast_to(reduce(combine, tables), universe.sizes(names))
        return Linear.from_table(universe, names, full)

    def _identity(self) -> Any:
        return (self.operation, frozenset(part._identity() for part in self.parts))

    def __repr__(self) -> str:
        return "(" + f" {'&' if self.operation == 'and' else '|'} ".join(map(repr, self.parts)) + ")"


class Not(Query):
    """The records for which a question is false."""

    def __init__(self, part: Query) -> None:
        _require_boolean(part)
        self.part = part

    def on(self, universe: Universe) -> Linear:
        part = _bound_count(self.part, universe)
        return Linear.from_table(universe, part.attributes, 1.0 - part.table)

    def _identity(self) -> Any:
        return ("not", self.part._identity())

    def __invert__(self) -> Query:
        return self.part

    def __repr__(self) -> str:
        return f"~{self.part!r}"


class Weighted(Query):
    """See ``linear``."""

    def __init__(self, attributes: tuple[str, ...], weights: NDArray[np.float64]) -> None:
        self.attributes, self.weights = attributes, weights

    def on(self, universe: Universe) -> Linear:
        return Linear.from_table(universe, self.attributes, self.weights)

    def _identity(self) -> Any:
        return ("linear", self.attributes, self.weights.shape, self.weights.tobytes())

    def __repr__(self) -> str:
        return f"linear({self.attributes!r}, …)"


class Parity(Query):
    """See ``parity``."""

    def __init__(self, attributes: tuple[str, ...]) -> None:
        self.attributes = attributes

    def on(self, universe: Universe) -> Linear:
        names = universe.order(self.attributes)
        for name in names:
            if universe[name].size != 2:
                raise InvalidInput(
                    f"A parity must be of two-valued attributes. Found {name!r} with {universe[name].size} values. "
                    "Use flags."
                )
        odd = reduce(np.logical_xor.outer, [np.array([False, True])] * len(names))
        return Linear.from_table(universe, names, odd)

    def _identity(self) -> Any:
        return ("parity", frozenset(self.attributes))

    def __repr__(self) -> str:
        return f"parity({', '.join(map(repr, self.attributes))})"


class AnswersMarginals(Protocol):
    """Whoever answers whole tables."""

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate: ...


@dataclass(frozen=True, eq=False)
class BoundMarginal:
    """The table of fractions on ``attributes``, in universe order."""

    universe: Universe
    attributes: Names

    is_fraction: ClassVar[bool] = True

    @property
    def key(self) -> Hashable:
        return ("marginal", self.attributes)

    @property
    def tables(self) -> tuple[Names, ...]:
        return (self.attributes,)

    @property
    def labels(self) -> Labels:
        return tuple((name, self.universe[name].labels) for name in self.attributes)

    def ask(self, respondent: AnswersMarginals, within: float | None) -> Estimate:
        return respondent.marginal(self, within)


class Marginal(Query):
    """See ``marginal``."""

    def __init__(self, attributes: tuple[str, ...]) -> None:
        self.attributes = attributes

    def on(self, universe: Universe) -> BoundMarginal:
        names = universe.order(self.attributes)
        require_table(names, universe.sizes(names))
        return BoundMarginal(universe, names)

    def _identity(self) -> Any:
        return ("marginal", frozenset(self.attributes))

    def __repr__(self) -> str:
        return f"marginal({', '.join(map(repr, self.attributes))})"


@dataclass(frozen=True, eq=False)
class BoundMean:
    """low + (high − low)·⟨numerator, D⟩ / ⟨denominator, D⟩: a mean among the records of the denominator."""

    numerator: Linear
    denominator: Linear
    low: float
    high: float

    is_fraction: ClassVar[bool] = False
    labels: ClassVar[Labels] = ()

    @property
    def key(self) -> Hashable:
        return ("mean", self.numerator.key, self.denominator.key, self.low, self.high)

    @property
    def tables(self) -> tuple[Names, ...]:
        return (self.numerator.attributes, self.denominator.attributes)

    def ask(self, respondent: AnswersLinear, within: float | None) -> Estimate:
        """A ratio of two linear answers; its bar is the worst the two bars allow."""
        top, bottom = respondent.linear(self.numerator, within), respondent.linear(self.denominator, within)
        t, b = float(top.value), float(bottom.value)
        width = self.high - self.low
        share = min(1.0, max(0.0, t / b)) if b > 0 else 0.5
        error: float | None = None
        if top.error is not None and bottom.error is not None:
            above, below = float(top.error), float(bottom.error)
            least, most = b - below, b + below
            upper = 1.0 if least <= 0 else min(1.0, (t + above) / least)
            lower = 0.0 if most <= 0 else max(0.0, (t - above) / most)
            error = width * max(upper - share, share - lower)
        source = "measured" if "measured" in (top.source, bottom.source) else top.source
        return Estimate(self.low + width * share, error, source)


class Mean(Query):
    """See ``mean``."""

    def __init__(self, attribute: str, where: Query | None) -> None:
        if where is not None:
            _require_boolean(where)
        self.attribute, self.where = attribute, where

    def on(self, universe: Universe) -> BoundMean:
        declared = universe[self.attribute]
        if declared.values is None:
            raise InvalidInput(
                f"A mean must be of a numeric attribute. Found {self.attribute!r}, which has labels only. "
                "Declare it as a Range, Integers or Flag."
            )
        known = np.nan_to_num(declared.values, nan=np.nanmin(declared.values))
        low, high = float(known.min()), float(known.max())
        rescaled = (known - low) / (high - low) if high > low else np.zeros(declared.size)
        among = self.where or Count(())
        if declared.other:  # the extra cell has no value: the mean is over the records that have one
            among = among & count({self.attribute: isnt(OTHER)})
        denominator = _bound_count(among, universe)
        if not denominator.attributes and not denominator.table:
            raise InvalidInput(
                f"A mean must be among records that can exist. Found {among!r}, which holds for none. Change where."
            )
        names = universe.order((self.attribute, *denominator.attributes))
        require_table(names, universe.sizes(names))
        value = rescaled.reshape([-1 if name == self.attribute else 1 for name in names])
        numerator = Linear.from_table(universe, names, _spread(denominator, names) * value)
        return BoundMean(numerator, denominator, low, high)

    def _identity(self) -> Any:
        return ("mean", self.attribute, None if self.where is None else self.where._identity())

    def __repr__(self) -> str:
        return f"mean({self.attribute!r}" + (f", where={self.where!r})" if self.where else ")")


def count(predicates: Mapping[str, Any] | None = None, /, **named: Any) -> Query:
    """The fraction of records that satisfy every predicate.

    A predicate is a value, a set of values, an inclusive (low, high) range, a boolean mask over the attribute's cells,
    or ``isnt`` of one of these. Use a mapping where a name is not an identifier.
    """
    return Count((*(predicates or {}).items(), *named.items()))


def conjunction(*flags: str, **predicates: Any) -> Query:
    """The fraction of records for which all the named flags hold, and the predicates too."""
    return Count((*((name, True) for name in flags), *predicates.items()))


def any_of(*parts: Query | str) -> Query:
    """The fraction of records for which at least one part holds; a name stands for that flag."""
    if not parts:
        raise InvalidInput("any_of must have at least one part. Found none. Name a flag or give a count.")
    return Combined("or", tuple(conjunction(p) if isinstance(p, str) else p for p in parts))


def mean(attribute: str, where: Query | None = None) -> Query:
    """The mean of a bounded attribute (by its bins' representative values), among the records of ``where`` if given."""
    return Mean(attribute, where)


def marginal(*attributes: str) -> Query:
    """The contingency table on the attributes: an array of fractions, one per cell."""
    if not attributes:
        raise InvalidInput("A marginal must be on at least one attribute. Found none. Name the attributes.")
    return Marginal(tuple(attributes))


def interval(attribute: str, low: Any, high: Any) -> Query:
    """The fraction of records with low <= attribute <= high."""
    return count({attribute: (low, high)})


def threshold(attribute: str, at_most: Any) -> Query:
    """The fraction of records with attribute <= at_most: the empirical distribution function."""
    return count({attribute: (None, at_most)})


def parity(*attributes: str) -> Query:
    """The fraction of records in which an odd number of the two-valued attributes hold."""
    if not attributes:
        raise InvalidInput("A parity must be of at least one attribute. Found none. Name the attributes.")
    return Parity(tuple(attributes))


def linear(attributes: str | Sequence[str], weights: ArrayLike) -> Query:
    """The mean of any [0, 1]-valued function of a few attributes, given as a table over their cells."""
    names = (attributes,) if isinstance(attributes, str) else tuple(attributes)
    return Weighted(names, np.array(weights, dtype=float))


QUESTIONS: set[type[Query]] = {Count, Combined, Not, Weighted, Parity, Marginal, Mean}
"""All there are. What a class of one's own bound would be believed to be a count, and billed as one."""


def bound(query: object, universe: Universe) -> Bound[Any]:
    """The question about this universe, bound by the package's own code: whatever the asker did to the object."""
    if type(query) not in QUESTIONS:
        raise InvalidInput(
            f"A question must be made by hr.count, hr.marginal, hr.mean or another. Found {type(query).__name__}. "
            "For example hr.count(smoker=True)."
        )
    found: Bound[Any] = type(query).on(query, universe)  # type: ignore[attr-defined]
    return found


def _mask(universe: Universe, name: str, predicate: Any) -> NDArray[np.bool_]:
    attribute = universe[name]
    try:
        return attribute.mask(predicate)
    except InvalidInput as refused:
        raise InvalidInput(f"Attribute {name!r}: {refused}") from None


def _bound_count(query: Query, universe: Universe) -> Linear:
    found = bound(query, universe)
    if not (isinstance(found, Linear) and found.is_count):
        raise InvalidInput(
            f"What is combined by &, |, ~ or where must be true or false for each record. Found {query!r}. "
            "Combine counts."
        )
    return found


def _require_boolean(query: object) -> None:
    if type(query) not in (Count, Combined, Not, Parity, Weighted):
        raise InvalidInput(
            f"What is combined by &, |, ~ or where must be a count. Found {query!r}. Combine counts, such as count(sex='F')."
        )


def _spread(query: Linear, names: Sequence[str]) -> NDArray[np.float64]:
    """The query's table with an axis of length one for every name it does not depend on."""
    sizes = dict(zip(query.attributes, query.shape, strict=True))
    return query.table.reshape([sizes.get(name, 1) for name in names])


def _predicate_identity(predicate: Any) -> Any:
    if isinstance(predicate, np.ndarray):
        return (
            ("mask", predicate.tobytes())
            if predicate.dtype == bool
            else _predicate_identity(frozenset(predicate.tolist()))
        )
    if isinstance(predicate, isnt):
        return ("isnt", _predicate_identity(predicate.predicate))
    if isinstance(predicate, tuple):
        return ("range", *predicate)
    if isinstance(predicate, Iterable) and not isinstance(predicate, str):
        return ("in", frozenset(predicate))
    return ("in", frozenset([predicate]))


def _shown(predicate: Any) -> str:
    if isinstance(predicate, np.ndarray) and predicate.dtype == bool:
        plain = np.asarray(predicate)  # a class of the analyst's own is not asked to count
        return f"mask({plain.sum()} of {plain.size} cells)"
    return repr(predicate)
