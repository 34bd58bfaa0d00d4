"""What analysts ask: symbolic questions, written without a universe and bound to one by ``on``.

Questions are values: equal when they are written alike up to order and grouping, and, once bound, equal exactly when
they are the same function of a record (see ``linear``), so that a repeat is recognised however it was written.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow._checks import number, whole
from hedgerow._types import Array, Names
from hedgerow.errors import InvalidInput
from hedgerow.questions.attributes import Cover, isnt
from hedgerow.questions.bound import Bound, Estimate, Labels
from hedgerow.questions.composed import BoundCount, Composed
from hedgerow.questions.linear import Linear, require_table, spread
from hedgerow.questions.universe import Universe

Resolution = Literal["values", "bins"]
"""Whether a question is about the values of the table, or about the table coded by the universe's bins."""


class Query:
    """A question about the table. ``on`` binds it to a universe; ``&``, ``|`` and ``~`` combine counts."""

    def on(self, universe: Universe, resolution: Resolution = "values") -> Bound[Any]:
        raise NotImplementedError

    def _identity(self) -> Any:
        raise NotImplementedError

    def __and__(self, other: Query) -> Query:
        return Combined("and", (self, other))

    def __or__(self, other: Query) -> Query:
        return Combined("or", (self, other))

    def __invert__(self) -> Query:
        return Not(self)

    def over_time(self, *, span: int = 32, share: float = 0.01) -> OverTime:
        """How many rows there were in each block, and in all up to it: see ``OverTime``."""
        return OverTime(self, span, share)

    def __bool__(self) -> bool:
        raise InvalidInput(
            "A question must be combined by &, | or ~. Found and, or, not, or an if. Write count(a=1) & count(b=2), with "
            "brackets around each."
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Query) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


class Count(Query):
    """See ``count``: a conjunction of predicates on single attributes."""

    __slots__ = ("predicates",)

    def __init__(self, predicates: tuple[tuple[str, Any], ...]) -> None:
        self.predicates = predicates

    def on(self, universe: Universe, resolution: Resolution = "values") -> Linear | BoundCount:
        wanted: dict[str, tuple[Any, ...]] = {}
        for name, predicate in self.predicates:
            wanted[name] = (*wanted[name], predicate) if name in wanted else (predicate,)
        covers = {name: _cover(universe, name, predicates, resolution) for name, predicates in wanted.items()}
        masks, is_exact = {}, True
        for name, cover in covers.items():
            masks[name] = cover.inside
            is_exact &= cover.touched is cover.inside
        low = Linear.product(universe, masks)
        if is_exact:
            return low
        high = Linear.product(universe, {name: cover.touched for name, cover in covers.items()})
        return _between(universe, low, high, _weighted(universe, {n: c.share for n, c in covers.items()}))

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
            require_boolean(part)
        flat: list[Query] = []
        for part in parts:
            flat.extend(part.parts if isinstance(part, Combined) and part.operation == operation else (part,))
        self.operation, self.parts = operation, tuple(flat)

    def on(self, universe: Universe, resolution: Resolution = "values") -> Linear | BoundCount:
        parts = [bound_condition(part, universe, resolution) for part in self.parts]
        names = universe.order(name for part in parts for name in part.attributes)
        require_table(names, universe.sizes(names))
        combine = np.logical_and if self.operation == "and" else np.logical_or
        sizes = universe.sizes(names)

        def whole(tables: list[NDArray[Any]]) -> NDArray[Any]:
            return np.broadcast_to(reduce(combine, tables), sizes)

        low = Linear.from_table(universe, names, whole([spread(part.low, names).astype(bool) for part in parts]))
        if all(part.is_exact for part in parts):
            return low
        high = Linear.from_table(universe, names, whole([spread(part.high, names).astype(bool) for part in parts]))
        shares = [spread(part.share, names) for part in parts]
        if self.operation == "and":
            share = reduce(np.multiply, shares)
        else:
            share = 1.0 - reduce(np.multiply, [1.0 - share for share in shares])
        return _between(universe, low, high, Linear.from_table(universe, names, np.broadcast_to(share, sizes)))

    def _identity(self) -> Any:
        return (self.operation, frozenset(part._identity() for part in self.parts))

    def __repr__(self) -> str:
        return "(" + f" {'&' if self.operation == 'and' else '|'} ".join(map(repr, self.parts)) + ")"


class Not(Query):
    """The records for which a question is false."""

    def __init__(self, part: Query) -> None:
        require_boolean(part)
        self.part = part

    def on(self, universe: Universe, resolution: Resolution = "values") -> Linear | BoundCount:
        part = bound_condition(self.part, universe, resolution)
        low, high, share = (
            Linear.from_table(universe, q.attributes, 1.0 - q.table) for q in (part.high, part.low, part.share)
        )
        return low if part.is_exact else _between(universe, low, high, share)

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

    def on(self, universe: Universe, resolution: Resolution = "values") -> Linear:
        return Linear.from_table(universe, self.attributes, self.weights)

    def _identity(self) -> Any:
        return ("linear", self.attributes, self.weights.shape, self.weights.tobytes())

    def __repr__(self) -> str:
        return f"linear({self.attributes!r}, …)"


class Parity(Query):
    """See ``parity``."""

    def __init__(self, attributes: tuple[str, ...]) -> None:
        self.attributes = attributes

    def on(self, universe: Universe, resolution: Resolution = "values") -> Linear:
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


class OverTime(Query):
    """A count of a session's blocks as they came: of each, and of all up to it, in rows (docs/blocks.md).

    ``span``: of how many blocks a tree of sums is, a power of two: noise grows slowly within it, and with the root of the number of
    trees after it. ``share``: the most that it costs a block, of its budget, however many come after.
    """

    def __init__(self, counted: Query, span: int, share: float) -> None:
        require_boolean(counted)
        size = whole("span", span)
        if size & (size - 1) or size > 2**20:
            raise InvalidInput(
                f"span must be a power of two, at most 2^20. Found {span!r}. Use 32, or about as many blocks as will come."
            )
        if not 0 < number(share) <= 1:
            raise InvalidInput(
                f"share must be above 0 and at most 1. Found {share!r}. Give a part of the budget, such as 0.01."
            )
        self.counted, self.span, self.share = counted, size, number(share)

    def on(self, universe: Universe, resolution: Resolution = "values") -> Bound[Any]:
        raise InvalidInput(
            "A count over time must be asked alone, of a session of blocks. Found it among other questions. "
            "Use session.ask(hr.count(…).over_time())."
        )

    def counts(self, universe: Universe, resolution: Resolution) -> Linear:
        """What is counted in every block."""
        found = bound(self.counted, universe, resolution)
        if not isinstance(found, Linear) or not found.is_count:
            raise InvalidInput(
                f"A count over time must count rows, by whole bins. Found {self.counted!r}, which does not. "
                'Ask with resolution="bins", or about whole bins.'
            )
        require_table(found.attributes, found.shape)  # of which each block is counted: refused before any pays
        return found

    def _identity(self) -> Any:
        return ("over time", self.counted._identity(), self.span, self.share)

    def __repr__(self) -> str:
        return f"{self.counted!r}.over_time(span={self.span}, share={self.share:g})"


class AnswersMarginals(Protocol):
    """Whoever answers whole tables."""

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate: ...


@dataclass(frozen=True, eq=False)
class BoundMarginal:
    """The table of fractions on ``attributes``, in universe order; it comes with its axes as they were ``asked`` for."""

    universe: Universe
    attributes: Names
    asked: Names = ()

    is_fraction: ClassVar[bool] = True

    @property
    def key(self) -> Hashable:
        return ("marginal", self.attributes)

    @property
    def tables(self) -> tuple[Names, ...]:
        return (self.attributes,)

    @property
    def labels(self) -> Labels:
        return tuple((name, tuple(self.universe[name].labels)) for name in self.asked or self.attributes)

    def ask(self, respondent: AnswersMarginals, within: float | None) -> Estimate:
        said = respondent.marginal(self, within)
        order = [self.attributes.index(name) for name in self.asked or self.attributes]
        shape = np.shape(said.value)

        def turned(found: float | Array | None) -> Array | None:
            return None if found is None else np.transpose(np.broadcast_to(found, shape), order).copy()

        coarse = turned(said.resolution) if np.ndim(said.resolution) else said.resolution
        value, error, typical = turned(said.value), turned(said.error), turned(said.typical)
        assert value is not None and coarse is not None
        return Estimate(value, error, said.source, coarse, typical)


class Marginal(Query):
    """See ``marginal``."""

    def __init__(self, attributes: tuple[str, ...]) -> None:
        self.attributes = attributes

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundMarginal:
        names = universe.order(self.attributes)
        require_table(names, universe.sizes(names))
        asked = dict.fromkeys(universe.index(name) for name in self.attributes)
        return BoundMarginal(universe, names, tuple(universe.names[i] for i in asked))

    def _identity(self) -> Any:
        return ("marginal", tuple(dict.fromkeys(self.attributes)))

    def __repr__(self) -> str:
        return f"marginal({', '.join(map(repr, self.attributes))})"


def count(predicates: Mapping[str, Any] | None = None, /, **named: Any) -> Query:
    """The fraction of records that satisfy every predicate.

    A predicate is a value, a set of values, an inclusive (low, high) range, a boolean mask over the attribute's cells,
    or ``isnt`` of one of these. Use a mapping where a name is not an identifier. Values and ranges that cut bins are
    answered by an interval: see docs/questions.md.
    """
    if not isinstance(predicates, Mapping | None):
        raise InvalidInput(
            f"A count must be of named predicates. Found {predicates!r}. Write count(smoker=True), or conjunction('smoker')."
        )
    return Count((*(predicates or {}).items(), *named.items()))


def conjunction(*flags: str, **predicates: Any) -> Query:
    """The fraction of records for which all the named flags hold, and the predicates too."""
    return Count((*((name, True) for name in flags), *predicates.items()))


def any_of(*parts: Query | str) -> Query:
    """The fraction of records for which at least one part holds; a name stands for that flag."""
    if not parts:
        raise InvalidInput("any_of must have at least one part. Found none. Name a flag or give a count.")
    return Combined("or", tuple(conjunction(p) if isinstance(p, str) else p for p in parts))


def marginal(*attributes: str) -> Query:
    """The contingency table on the attributes: an array of fractions, one per cell, its axes in the order given."""
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


QUESTIONS: set[type[Query]] = {Count, Combined, Not, Weighted, Parity, Marginal, OverTime}
"""All there are. What a class of one's own bound would be believed to be a count, and billed as one."""


def bound(query: object, universe: Universe, resolution: Resolution = "values") -> Bound[Any]:
    """The question about this universe, bound by the package's own code: whatever the asker did to the object."""
    if type(query) not in QUESTIONS:
        raise InvalidInput(
            f"A question must be made by hr.count, hr.marginal, hr.mean or another. Found {type(query).__name__}. "
            "For example hr.count(smoker=True)."
        )
    if resolution not in ("values", "bins"):
        raise InvalidInput(f"resolution must be 'values' or 'bins'. Found {resolution!r}. Choose one.")
    found: Bound[Any] = type(query).on(query, universe, resolution)  # type: ignore[attr-defined]
    if isinstance(found, Composed):
        object.__setattr__(found, "asked_as", (query, resolution))
    return found


def _cover(universe: Universe, name: str, predicates: tuple[Any, ...], resolution: Resolution) -> Cover:
    attribute = universe[name]
    try:
        if resolution == "values":
            return attribute.cover(*predicates)
        return Cover.exactly(reduce(np.logical_and, [attribute.mask(predicate) for predicate in predicates]))
    except InvalidInput as refused:
        raise InvalidInput(f"Attribute {name!r}: {refused}") from None


def _between(universe: Universe, low: Linear, high: Linear, share: Linear) -> Linear | BoundCount:
    """The count between two, which is exact where they are the same."""
    if low == high:
        return low
    return BoundCount(universe, low, high, share)


def _weighted(universe: Universe, shares: Mapping[str, NDArray[Any]]) -> Linear:
    """The product of these vectors: only believed, never asked, so that it needs no canonical form."""
    kept = {name: vector for name in universe.order(shares) if not np.all((vector := shares[name]) == 1)}
    if not kept:
        return Linear((), (), (), np.array(1.0), True)
    vectors = tuple(vector.astype(float) for vector in kept.values())
    return Linear(tuple(kept), tuple(v.size for v in vectors), vectors, None, False)


@dataclass(frozen=True, eq=False)
class Condition:
    """A count that holds or not for each record: surely where ``low`` is 1, perhaps where ``high`` is."""

    low: Linear
    high: Linear
    share: Linear

    @property
    def is_exact(self) -> bool:
        return self.low is self.high

    @property
    def attributes(self) -> tuple[str, ...]:
        return (*self.low.attributes, *self.high.attributes, *self.share.attributes)


def bound_condition(query: Query, universe: Universe, resolution: Resolution = "values") -> Condition:
    """What is combined by &, |, ~ or where."""
    found = bound(query, universe, resolution)
    if isinstance(found, Linear) and found.is_count:
        return Condition(found, found, found)
    if isinstance(found, BoundCount):
        return Condition(found.low, found.high, found.share)
    raise InvalidInput(
        f"What is combined by &, |, ~ or where must be true or false for each record. Found {query!r}. Combine counts."
    )


def require_boolean(query: object) -> None:
    if type(query) not in (Count, Combined, Not, Parity, Weighted):
        raise InvalidInput(
            f"What is combined by &, |, ~ or where must be a count. Found {query!r}. Combine counts, such as count(sex='F')."
        )


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
