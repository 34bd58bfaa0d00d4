"""Questions as analysts write them: symbolic, without a universe. ``on`` binds a question to a universe.

Questions are values. Two are equal if they are written alike up to order and grouping. Bound questions are equal
exactly if they are the same function of a record (see ``linear``), so that a repeat is recognized however it was
written.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Literal, NoReturn, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow._checks import listed_names, number, whole
from hedgerow._types import Array, Names
from hedgerow.errors import InvalidInput
from hedgerow.query.bound import Bound, BoundQuestion, Estimate, Labels
from hedgerow.query.composed import BoundCount, ComposedQuestion
from hedgerow.query.linear import Condition, Linear, require_table, spread
from hedgerow.query.raw_rows import RawRows
from hedgerow.universe.attributes import Cover, not_
from hedgerow.universe.universe import Universe

Resolution = Literal["values", "bins"]
"""Object of a question: the values of the table, or the table coded by the universe's bins."""

Quantity = Literal["count", "share", "points", "number", "value"]


class Query:
    """A question about the table. ``on`` binds it to a universe; ``&``, ``|`` and ``~`` combine counts.

    Example
    -------
    >>> query = hr.count(sex="F") & ~hr.count(smoker=True)
    >>> query.on(universe).attributes
    ('sex', 'smoker')
    """

    is_convex: ClassVar[bool] = False
    """True if the answer is a θ, whose error bounds the excess risk and not the distance of its entries."""
    is_asked_alone: ClassVar[bool] = False
    """True if it cannot be bound to a universe, but only be asked of a session."""
    is_condition: ClassVar[bool] = False
    """True if it counts the rows that satisfy a condition."""
    divides_rows: ClassVar[bool] = False
    """True if the cells of its answer count different rows."""

    @property
    def quantity(self) -> Quantity:
        """Quantity of its answer: a count of rows, a share, a difference of shares in points, a number or a value."""
        return "count"

    @property
    def is_compound(self) -> bool:
        """True for a condition of several parts, which stands in brackets within another."""
        return False

    def among(self, group: Query) -> Query | None:
        """Return the question restricted to a group of records; None if the question cannot be restricted.

        Parameters
        ----------
        group : Query
            A count that selects the records of the group.

        Returns
        -------
        Query or None

        Example
        -------
        >>> hr.count(smoker=True).among(hr.count(sex="F"))
        count(smoker=True, sex='F')
        """
        return None

    def on(self, universe: Universe, resolution: Resolution = "values") -> Bound[Any]:
        """Bind the question to a universe.

        Parameters
        ----------
        universe : Universe
            The declared columns.
        resolution : str
            "values" for the values themselves, "bins" for the table as the universe codes it.

        Returns
        -------
        Bound

        Raises
        ------
        InvalidInput
            If the question does not fit the universe.

        Example
        -------
        >>> hr.count(sex="F").on(universe).attributes
        ('sex',)
        """
        raise NotImplementedError

    def holds(self, rows: RawRows) -> NDArray[np.bool_]:
        """Return for each row whether the question, as a condition, holds. Not private: for ``unsafe`` alone.

        Parameters
        ----------
        rows : RawRows
            The rows of a table as they are.

        Returns
        -------
        array of bool

        Example
        -------
        >>> hr.count(smoker=True).holds(rows).any().item()
        True
        """
        return np.asarray(rows.weights(self) == 1)

    def true_value(self, rows: RawRows) -> float | Array:
        """Return the true answer, by its definition. Not private: for ``unsafe`` alone.

        Parameters
        ----------
        rows : RawRows
            The rows of a table as they are.

        Returns
        -------
        float or array

        Example
        -------
        >>> hr.mean("age").true_value(rows) > 40
        True
        """
        return float(self.holds(rows).mean())

    def _identity(self) -> Any:
        """Return a hashable value that is equal for equal questions."""
        raise NotImplementedError

    def __and__(self, other: Query) -> Query:
        return CombinedQuery("and", (self, other))

    def __or__(self, other: Query) -> Query:
        return CombinedQuery("or", (self, other))

    def __invert__(self) -> Query:
        return Not(self)

    def over_time(self, *, span: int = 32, share: float = 0.01) -> OverTime:
        """Count the rows of each block, and of all blocks up to it. See ``OverTime``.

        Parameters
        ----------
        span : int
            The largest number of blocks that the count will cover, a power of two.
        share : float
            The share of each block's budget that the count may spend.

        Returns
        -------
        OverTime

        Raises
        ------
        InvalidInput
            If the question is no count, or an option is out of range.

        Example
        -------
        >>> block.ask(hr.count(smoker=True).over_time(span=16)).value.shape
        (1, 2)
        """
        return OverTime(self, span, share)

    def __bool__(self) -> bool:
        raise InvalidInput(
            "A question must be combined by &, | or ~. Found and, or, not, or an if. Write count(a=1) & count(b=2), "
            "with brackets around each."
        )

    def _refuse_arithmetic(self, other: Any) -> NoReturn:
        raise InvalidInput(
            "A question must be asked before its answer is compared or calculated with. Found arithmetic or a "
            "comparison with a question. Use difference(a, b) or ratio(a, b), or the answers: session.ask(a) - "
            "session.ask(b)."
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse_arithmetic
    __lt__ = __le__ = __gt__ = __ge__ = _refuse_arithmetic

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Query) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


class Count(Query):
    """A conjunction of predicates on single attributes, made by ``count``."""

    __slots__ = ("predicates",)

    is_condition: ClassVar[bool] = True

    @property
    def is_compound(self) -> bool:
        """True with several predicates."""
        return len(self.predicates) > 1

    def __init__(self, predicates: tuple[tuple[str, Any], ...]) -> None:
        self.predicates = predicates

    def on(self, universe: Universe, resolution: Resolution = "values") -> Linear | BoundCount:
        """Bind the count: a product of masks, or an interval of two such products if a predicate cuts bins."""
        wanted: dict[str, tuple[Any, ...]] = {}
        for name, predicate in self.predicates:
            wanted[name] = (*wanted[name], predicate) if name in wanted else (predicate,)
        covers = {name: _cover(universe, name, predicates, resolution) for name, predicates in wanted.items()}
        masks: dict[str, NDArray[np.bool_]] = {}
        is_exact = True
        for name, cover in covers.items():
            masks[name] = cover.inside
            is_exact &= cover.touched is cover.inside
        low = Linear.product(universe, masks)
        if is_exact:
            return low
        high = Linear.product(universe, {name: cover.touched for name, cover in covers.items()})
        return _between(universe, low, high, _multiply_vectors(universe, {n: c.share for n, c in covers.items()}))

    def holds(self, rows: RawRows) -> NDArray[np.bool_]:
        """Return for each row whether all predicates hold."""
        return rows.satisfy(self.predicates)

    def among(self, group: Query) -> Query:
        """Return the count of the records that are in the group, too."""
        return self & group

    def _identity(self) -> Any:
        return ("count", frozenset((name, _predicate_identity(p)) for name, p in self.predicates))

    def __and__(self, other: Query) -> Query:
        return Count(self.predicates + other.predicates) if isinstance(other, Count) else super().__and__(other)

    def __repr__(self) -> str:
        return f"count({', '.join(f'{name}={_show_predicate(p)}' for name, p in self.predicates)})"


class CombinedQuery(Query):
    """A conjunction ("and") or disjunction ("or") of questions that are true or false for each record."""

    operation: str
    parts: tuple[Query, ...]

    is_condition: ClassVar[bool] = True

    @property
    def is_compound(self) -> bool:
        """True: it has parts."""
        return True

    def __init__(self, operation: str, parts: tuple[Query, ...]) -> None:
        for part in parts:
            require_boolean(part)
        flat: list[Query] = []
        for part in parts:
            flat.extend(part.parts if isinstance(part, CombinedQuery) and part.operation == operation else (part,))
        self.operation, self.parts = operation, tuple(flat)

    def on(self, universe: Universe, resolution: Resolution = "values") -> Linear | BoundCount:
        """Bind the combination: a table over the attributes of all parts."""
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

    def holds(self, rows: RawRows) -> NDArray[np.bool_]:
        """Return for each row whether all parts hold, or any."""
        combine = np.logical_and if self.operation == "and" else np.logical_or
        return np.asarray(combine.reduce([part.holds(rows) for part in self.parts]))

    def among(self, group: Query) -> Query:
        """Return the count of the records that are in the group, too."""
        return self & group

    def _identity(self) -> Any:
        return (self.operation, frozenset(part._identity() for part in self.parts))

    def __repr__(self) -> str:
        return "(" + f" {'&' if self.operation == 'and' else '|'} ".join(map(repr, self.parts)) + ")"


class Not(Query):
    """The records for which a question is false."""

    is_condition: ClassVar[bool] = True

    @property
    def is_compound(self) -> bool:
        """True: it has parts."""
        return True

    def __init__(self, part: Query) -> None:
        require_boolean(part)
        self.part = part

    def on(self, universe: Universe, resolution: Resolution = "values") -> Linear | BoundCount:
        """Bind the negation."""
        part = bound_condition(self.part, universe, resolution)
        low, high, share = (
            Linear.from_table(universe, q.attributes, 1.0 - q.table) for q in (part.high, part.low, part.share)
        )
        return low if part.is_exact else _between(universe, low, high, share)

    def holds(self, rows: RawRows) -> NDArray[np.bool_]:
        """Return for each row whether the part does not hold."""
        return ~self.part.holds(rows)

    def among(self, group: Query) -> Query:
        """Return the count of the records that are in the group, too."""
        return self & group

    def _identity(self) -> Any:
        return ("not", self.part._identity())

    def __invert__(self) -> Query:
        return self.part

    def __repr__(self) -> str:
        return f"~{self.part!r}"


class WeightedQuery(Query):
    """A [0, 1]-valued function of a few attributes, made by ``linear``."""

    def __init__(self, attributes: tuple[str, ...], weights: NDArray[np.float64]) -> None:
        self.attributes, self.weights = attributes, weights

    def on(self, universe: Universe, resolution: Resolution = "values") -> Linear:
        """Bind the table of weights."""
        return Linear.from_table(universe, self.attributes, self.weights)

    def true_value(self, rows: RawRows) -> float:
        """Return the mean weight of the rows."""
        return float(rows.weights(self).mean())

    def _identity(self) -> Any:
        return ("linear", self.attributes, self.weights.shape, self.weights.tobytes())

    def __repr__(self) -> str:
        return f"linear({self.attributes!r}, …)"


class Parity(Query):
    """The parity of some two-valued attributes, made by ``parity``."""

    def __init__(self, attributes: tuple[str, ...]) -> None:
        self.attributes = attributes

    def on(self, universe: Universe, resolution: Resolution = "values") -> Linear:
        """Bind the parity: a table that is 1 where an odd number of attributes hold."""
        names = universe.order(self.attributes)
        for name in names:
            if universe[name].size != 2:
                raise InvalidInput(
                    f"A parity must have two-valued attributes. Found {name!r} with {universe[name].size} values. "
                    "Use flags."
                )
        odd = reduce(np.logical_xor.outer, [np.array([False, True])] * len(names))
        return Linear.from_table(universe, names, odd)

    def among(self, group: Query) -> Query:
        """Return the count of the records that are in the group, too."""
        return self & group

    def _identity(self) -> Any:
        return ("parity", frozenset(self.attributes))

    def __repr__(self) -> str:
        return f"parity({', '.join(map(repr, self.attributes))})"


class OverTime(Query):
    """A count for each block of a session, and for all blocks up to it, in rows (docs/blocks.md).

    ``span``: number of blocks in one tree of sums, a power of two. Noise grows slowly within a tree, and with the
    square root of the number of trees after that. ``share``: largest share of its budget that a block pays for this
    question, however many blocks follow.
    """

    is_asked_alone = True

    def __init__(self, counted: Query, span: int, share: float) -> None:
        require_boolean(counted)
        size = whole("span", span)
        if size & (size - 1) or size > 2**20:
            raise InvalidInput(
                f"span must be a power of two, at most 2^20. Found {span!r}. Use 32, or about as many blocks as will "
                "come."
            )
        if not 0 < number(share) <= 1:
            raise InvalidInput(
                f"share must be above 0 and at most 1. Found {share!r}. Give a part of the budget, such as 0.01."
            )
        self.counted, self.span, self.share = counted, size, number(share)

    def on(self, universe: Universe, resolution: Resolution = "values") -> Bound[Any]:
        """Refuse to bind: a count over time is about blocks, and is asked alone."""
        raise InvalidInput(
            "A count over time must be asked alone, in a session with blocks. Found it among other questions. "
            "Use session.ask(hr.count(…).over_time())."
        )

    def counts(self, universe: Universe, resolution: Resolution) -> Linear:
        """Return the linear query that is counted in every block."""
        condition: Condition | None = bound(self.counted, universe, resolution).condition
        if condition is None or not condition.is_exact:
            raise InvalidInput(
                f"A count over time must count rows, by whole bins. Found {self.counted!r}, which does not. "
                'Ask with resolution="bins", or about whole bins.'
            )
        found = condition.low
        require_table(found.attributes, found.shape)  # each block counts this table: refuse before any of them pays
        return found

    def _identity(self) -> Any:
        return ("over time", self.counted._identity(), self.span, self.share)

    def __repr__(self) -> str:
        return f"{self.counted!r}.over_time(span={self.span}, share={self.share:g})"


class MarginalRespondent(Protocol):
    """Anything that answers whole tables."""

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Answer a marginal table, with a bar of ``within`` if given."""
        ...


@dataclass(frozen=True, eq=False)
class BoundMarginal(BoundQuestion):
    """The table of fractions on ``attributes``, in universe order. The answer has its axes as ``asked``."""

    universe: Universe
    attributes: Names
    asked: Names = ()

    is_fraction: ClassVar[bool] = True

    @property
    def key(self) -> Hashable:
        """Key of the question: the set of attributes."""
        return ("marginal", self.attributes)

    @property
    def tables(self) -> tuple[Names, ...]:
        """The one attribute set of the table."""
        return (self.attributes,)

    @property
    def stored(self) -> tuple[Query, Resolution]:
        """The marginal on these attributes, in the order of the universe."""
        return Marginal(self.attributes), "values"

    @property
    def labels(self) -> Labels:
        """Labels of each axis, in the order asked for."""
        return tuple((name, tuple(self.universe[name].labels)) for name in self.asked or self.attributes)

    def ask(self, respondent: MarginalRespondent, within: float | None) -> Estimate:
        """Ask for the table and put its axes in the order asked for."""
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
    """A contingency table, made by ``marginal``."""

    divides_rows: ClassVar[bool] = True

    def __init__(self, attributes: tuple[str, ...]) -> None:
        self.attributes = attributes

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundMarginal:
        """Bind the table, and refuse one that is too large."""
        names = universe.order(self.attributes)
        require_table(names, universe.sizes(names))
        asked = dict.fromkeys(universe.index(name) for name in self.attributes)
        return BoundMarginal(universe, names, tuple(universe.names[i] for i in asked))

    def true_value(self, rows: RawRows) -> Array:
        """Return the fraction of the rows in each cell."""
        return rows.table(tuple(dict.fromkeys(self.attributes)), None) / rows.count

    def _identity(self) -> Any:
        return ("marginal", tuple(dict.fromkeys(self.attributes)))

    def __repr__(self) -> str:
        return f"marginal({', '.join(map(repr, self.attributes))})"


def count(predicates: Mapping[str, Any] | None = None, /, **named: Any) -> Query:
    """Ask for the fraction of records that satisfy every predicate.

    Parameters
    ----------
    predicates : mapping, optional
        Predicates by attribute, for names that are not identifiers.
    **named
        Predicates by attribute. A predicate is a value, a set of values, an inclusive (low, high) range, a boolean mask
        over the cells of the attribute, or ``not_`` of one of these. A value or range that cuts bins is answered by an
        interval (docs/questions.md).

    Returns
    -------
    Query

    Raises
    ------
    InvalidInput
        If the predicates are not given by name.

    Example
    -------
    >>> count(smoker=True, age=(40, 65))
    count(smoker=True, age=(40, 65))
    """
    if not isinstance(predicates, Mapping | None):
        raise InvalidInput(
            f"A count must have named predicates. Found {predicates!r}. Write count(smoker=True), or "
            "conjunction('smoker')."
        )
    given = (*(predicates or {}).items(), *named.items())
    return Count(tuple((name, _as_given(value)) for name, value in given))


def _as_given(value: Any) -> Any:
    """Return a value of a predicate: None for NaN and pandas' own missing values, and a list for its series."""
    if type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and math.isnan(value)):
        return None
    return value.tolist() if type(value).__name__ in ("Series", "Index") and hasattr(value, "tolist") else value


def conjunction(*flags: str, **predicates: Any) -> Query:
    """Ask for the fraction of records for which all named flags hold, and all predicates too.

    Parameters
    ----------
    *flags : str
        Names of flags.
    **predicates
        Further predicates, as in ``count``.

    Returns
    -------
    Query

    Example
    -------
    >>> conjunction("smoker", "married", sex="F")  # doctest: +SKIP
    """
    return Count((*((name, True) for name in listed_names(flags)), *predicates.items()))


def any_of(*parts: Query | str) -> Query:
    """Ask for the fraction of records for which at least one part holds.

    Parameters
    ----------
    *parts : Query or str
        Counts; a name stands for the flag of that name.

    Returns
    -------
    Query

    Raises
    ------
    InvalidInput
        If no part is given.

    Example
    -------
    >>> any_of("smoker", count(age=(65, None)))  # doctest: +SKIP
    """
    if not parts:
        raise InvalidInput("any_of must have at least one part. Found none. Name a flag or give a count.")
    return CombinedQuery("or", tuple(conjunction(p) if isinstance(p, str) else p for p in parts))


def marginal(*attributes: str) -> Query:
    """Ask for the contingency table on some attributes: an array of fractions, one per cell.

    Parameters
    ----------
    *attributes : str
        Names of the attributes, one by one or in a list. The axes of the array are in this order.

    Returns
    -------
    Query

    Raises
    ------
    InvalidInput
        If no attribute is named.

    Example
    -------
    >>> marginal("age", "sex")  # doctest: +SKIP
    """
    names = listed_names(attributes)
    if not names:
        raise InvalidInput("A marginal must have at least one attribute. Found none. Name the attributes.")
    return Marginal(names)


def interval(attribute: str, low: Any, high: Any) -> Query:
    """Ask for the fraction of records with low <= attribute <= high.

    Parameters
    ----------
    attribute : str
        An ordered attribute.
    low, high
        The ends of the range. None leaves an end open.

    Returns
    -------
    Query

    Example
    -------
    >>> interval("age", 40, 65)  # doctest: +SKIP
    """
    return count({attribute: (low, high)})


def threshold(attribute: str, at_most: Any) -> Query:
    """Ask for the fraction of records with attribute <= at_most: the empirical distribution function.

    Parameters
    ----------
    attribute : str
        An ordered attribute.
    at_most
        The largest value that counts.

    Returns
    -------
    Query

    Example
    -------
    >>> threshold("age", 40)  # doctest: +SKIP
    """
    return count({attribute: (None, at_most)})


def parity(*attributes: str) -> Query:
    """Ask for the fraction of records in which an odd number of the named two-valued attributes hold.

    Parameters
    ----------
    *attributes : str
        Names of two-valued attributes.

    Returns
    -------
    Query

    Raises
    ------
    InvalidInput
        If no attribute is named.

    Example
    -------
    >>> parity("smoker", "married")  # doctest: +SKIP
    """
    names = listed_names(attributes)
    if not names:
        raise InvalidInput("A parity must have at least one attribute. Found none. Name the attributes.")
    return Parity(names)


def linear(attributes: str | Sequence[str], weights: ArrayLike) -> Query:
    """Ask for the mean of any [0, 1]-valued function of a few attributes.

    Parameters
    ----------
    attributes : str or sequence of str
        The attributes that the function depends on.
    weights : array_like
        The value of the function at each cell, with one axis per attribute in the given order.

    Returns
    -------
    Query

    Raises
    ------
    InvalidInput
        If the weights are not numbers.

    Example
    -------
    >>> linear("age", [0, 0, 0.5, 1])  # doctest: +SKIP
    """
    names = (attributes,) if isinstance(attributes, str) else tuple(attributes)
    try:
        table = np.array(weights, dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput(
            "weights must be numbers from 0 to 1, one for each cell. Found something else. Give a list of numbers, or "
            "nested lists for several attributes."
        ) from None
    return WeightedQuery(names, table)


QUESTIONS: set[type[Query]] = {Count, CombinedQuery, Not, WeightedQuery, Parity, Marginal, OverTime}
"""All classes of questions. Others are refused: a class of the analyst's own could return anything as a count, and it
would be billed as a count."""


def bound(query: object, universe: Universe, resolution: Resolution = "values") -> Bound[Any]:
    """Bind a question to a universe by the package's own code, whatever methods the caller attached to the object."""
    if type(query) not in QUESTIONS:
        raise InvalidInput(
            f"A question must be made by hr.count, hr.marginal, hr.mean or the like. Found {type(query).__name__}. "
            f"{_question_advice(query)}"
        )
    if resolution not in ("values", "bins"):
        raise InvalidInput(f"resolution must be 'values' or 'bins'. Found {resolution!r}. Choose one.")
    found: Bound[Any] = type(query).on(query, universe, resolution)  # type: ignore[attr-defined]
    if isinstance(found, ComposedQuestion):
        object.__setattr__(found, "asked_as", (query, resolution))
    return found


def _question_advice(given: object) -> str:
    """Return what to do instead of asking something that is no question."""
    if isinstance(given, str):
        return "Write hr.count(smoker=True) without quotes, or use session.sql for SQL."
    if isinstance(given, list | tuple | set):
        return "Ask several questions with session.ask_all([…])."
    if type(given).__name__ == "Groups":
        return "Say what to ask of each group, as in hr.group_by('sex').count()."
    return "For example hr.count(smoker=True)."


def _cover(universe: Universe, name: str, predicates: tuple[Any, ...], resolution: Resolution) -> Cover:
    """Return the cover of an attribute's cells by some predicates, at the resolution asked for."""
    attribute = universe[name]
    try:
        if resolution == "values":
            return attribute.cover(*predicates)
        return Cover.exactly(reduce(np.logical_and, [attribute.mask(predicate) for predicate in predicates]))
    except InvalidInput as refused:
        raise InvalidInput(f"Attribute {name!r}: {refused}") from None


def _between(universe: Universe, low: Linear, high: Linear, share: Linear) -> Linear | BoundCount:
    """Return the count between two bounds, which is exact if they are the same."""
    if low == high:
        return low
    return BoundCount(universe, low, high, share)


def _multiply_vectors(universe: Universe, shares: Mapping[str, NDArray[Any]]) -> Linear:
    """Return the product of these vectors. It is only evaluated on the hypothesis, so it needs no canonical form."""
    kept = {name: vector for name in universe.order(shares) if not np.all((vector := shares[name]) == 1)}
    if not kept:
        return Linear((), (), (), np.array(1.0), True)
    vectors = tuple(vector.astype(float) for vector in kept.values())
    return Linear(tuple(kept), tuple(v.size for v in vectors), vectors, None, False)


def bound_condition(query: Query, universe: Universe, resolution: Resolution = "values") -> Condition:
    """Bind a question that is combined by &, | or ~, or used as ``where``."""
    found: Condition | None = bound(query, universe, resolution).condition
    if found is None:
        raise InvalidInput(
            f"A part of &, |, ~ or where must be true or false for each record. Found {query!r}. Combine counts."
        )
    return found


def is_boolean(query: object) -> bool:
    """Return True if a query can be a part of &, |, ~ or where."""
    return type(query) in (Count, CombinedQuery, Not, Parity, WeightedQuery)


def require_boolean(query: object) -> None:
    """Refuse anything but a count as a part of &, |, ~ or where."""
    if not is_boolean(query):
        raise InvalidInput(
            f"A part of &, |, ~ or where must be a count. Found {query!r}. Combine counts, such as count(sex='F')."
        )


def _predicate_identity(predicate: Any) -> Any:
    """Return a hashable value that is equal for equal predicates."""
    if isinstance(predicate, np.ndarray):
        return (
            ("mask", predicate.tobytes())
            if predicate.dtype == bool
            else _predicate_identity(frozenset(predicate.tolist()))
        )
    if isinstance(predicate, not_):
        return ("isnt", _predicate_identity(predicate.predicate))
    if isinstance(predicate, tuple):
        return ("range", *predicate)
    if isinstance(predicate, Iterable) and not isinstance(predicate, str):
        return ("in", frozenset(predicate))
    return ("in", frozenset([predicate]))


def _show_predicate(predicate: Any) -> str:
    """Return a predicate as text; a mask as the number of its cells."""
    if isinstance(predicate, np.ndarray) and predicate.dtype == bool:
        plain = np.asarray(predicate)  # drops a subclass, whose sum() could do anything
        return f"mask({plain.sum()} of {plain.size} cells)"
    if isinstance(predicate, not_):
        return f"not_({_show_predicate(predicate.predicate)})"
    if isinstance(predicate, set | frozenset) and predicate:  # in one order, whatever the process's hash seed
        return "{" + ", ".join(sorted(map(repr, predicate), key=lambda text: (len(text), text))) + "}"
    return repr(predicate)
