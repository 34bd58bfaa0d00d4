"""Linear queries bound to a universe: functions of a few attributes with values in [0, 1].

The canonical form makes equal functions equal values, however they were written. Attributes are in universe order, and
those on which the function is constant are dropped. A table that is a product of one vector per attribute (every
conjunction is) is kept as these vectors, which are small, fast to evaluate and cheap to compare.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import _memory
from hedgerow._types import Array, Names
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.query.bound import BoundQuestion, Estimate, Labels
from hedgerow.universe.universe import Universe

LARGEST_TABLE = 50_000_000  # a table that is written out has at most this many cells; a product needs no table
WIDE = 1 << 16  # a marginal with more cells is contracted from both sides, split in the middle, not axis by axis
AT_ONCE = 1 << 22  # many queries are answered in chunks of at most this many intermediate numbers
LONG = 1 << 12  # a key holds the digest of an array of more bytes


def key_of(packed: bytes) -> bytes:
    """Return the bytes of an array for a key: as they are, or a digest of more than ``LONG``.

    A session keeps the key of every question that it answered.
    """
    return packed if len(packed) <= LONG else hashlib.blake2b(packed, digest_size=32).digest()


class LinearRespondent(Protocol):
    """Anything that answers linear queries."""

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Answer a linear query, with a bar of ``within`` if given."""
        ...

    def hypothesis_answer(self, query: Linear) -> float:
        """Return the hypothesis' own answer: free, and without a bar."""

    @property
    def least_rows(self) -> float:
        """Number of rows n if it is public, else a lower bound on it."""


class Linear(BoundQuestion):
    """A bound linear query: ⟨q, D⟩ for a q: X → [0, 1] that depends on ``attributes`` only."""

    __slots__ = ("__dict__", "_table", "attributes", "is_count", "shape", "vectors")

    def __init__(
        self,
        attributes: tuple[str, ...],
        shape: tuple[int, ...],
        vectors: tuple[NDArray[Any], ...] | None,
        table: Array | None,
        is_count: bool,
    ) -> None:
        """Store the parts. Use ``from_table`` or ``product``, which bring a query into canonical form."""
        self.attributes, self.shape, self.vectors, self._table, self.is_count = (
            attributes,
            shape,
            vectors,
            table,
            is_count,
        )

    @classmethod
    def from_table(cls, universe: Universe, attributes: Sequence[str], table: ArrayLike) -> Linear:
        """Return the query whose value on a record is ``table`` at the record's cells of ``attributes``.

        The axes of the table are in the order of ``attributes``.
        """
        names = tuple(universe.names[universe.index(name)] for name in attributes)  # the universe's own strings
        if len(set(names)) != len(names):
            raise InvalidInput(f"The attributes of a query must be distinct. Found {names!r}. Name each once.")
        weights = np.asarray(table, dtype=float) + 0.0  # turns −0.0 into 0.0, so that equal functions have equal bytes
        if weights.shape != universe.sizes(names):
            raise InvalidInput(
                f"Weights must have shape {universe.sizes(names)}, one number per cell of {names!r}. "
                f"Found {weights.shape}. Give one weight for every cell."
            )
        require_weights(weights)
        order = sorted(range(len(names)), key=lambda i: universe.index(names[i]))
        return cls.canonical(tuple(names[i] for i in order), np.transpose(weights, order))

    @classmethod
    def canonical(cls, names: tuple[str, ...], table: Array) -> Linear:
        """Return the query with this table of weights in [0, 1], with axes in the order of the universe."""
        kept = [i for i in range(table.ndim) if not _constant_along(table, i)]
        table = table[tuple(slice(None) if i in kept else 0 for i in range(table.ndim))]
        names = tuple(names[i] for i in kept)
        is_count = _is_mask(table)
        vectors = _factors(table)
        if vectors is not None and is_count:
            vectors = tuple(v.astype(bool) for v in vectors)
        kept_table = None if vectors is not None else np.array(table, order="C")
        return cls(names, table.shape, vectors, kept_table, is_count)

    @classmethod
    def product(cls, universe: Universe, masks: dict[str, NDArray[np.bool_]]) -> Linear:
        """Return a conjunction, the product of one boolean mask per attribute. Fast: no table is built."""
        kept: list[tuple[int, NDArray[np.bool_], bytes]] = []
        for name, mask in masks.items():
            packed = mask.tobytes()
            false = packed.count(0)
            if false == len(packed):
                return cls((), (), (), np.array(0.0), True)
            if false:
                kept.append((universe.index(name), mask, key_of(packed)))
        if not kept:
            return cls((), (), (), np.array(1.0), True)
        if len(kept) > 1:
            kept.sort(key=operator.itemgetter(0))
        names = tuple([universe.names[i] for i, _, _ in kept])
        vectors, packs = tuple([mask for _, mask, _ in kept]), tuple([packed for _, _, packed in kept])
        made = cls(names, tuple(map(len, vectors)), vectors, None, True)
        made.__dict__["key"] = names, True, packs  # the keys are here already
        return made

    @classmethod
    def of_vectors(cls, names: tuple[str, ...], vectors: Sequence[NDArray[Any]]) -> Linear:
        """Return the query with these ``vectors``, one per attribute in the order of the universe. No table is built.

        The vectors must be in canonical form: none is constant, at most one is not 0/1, and a constant factor is in the
        first vector.
        """
        floats = [np.asarray(v, dtype=float) + 0.0 for v in vectors]
        for vector in floats:
            require_weights(vector)
        shaped = bool(names) and [v.ndim for v in floats] == [1] * len(names) and all(v.size for v in floats)
        if not shaped or any(_constant_along(v, 0) for v in floats) or not _scaled_once(floats):
            raise InvalidInput(
                "The vectors of a query must be in canonical form. Found vectors in another form. Bind the question "
                "to its universe again."
            )
        is_count = all(map(_is_mask, floats))
        kept = tuple(v.astype(bool) for v in floats) if is_count else tuple(floats)
        return cls(names, tuple(v.size for v in floats), kept, None, is_count)

    @property
    def table(self) -> Array:
        """Weights over the cells of ``attributes``, written out when first needed."""
        if self._table is None:
            assert self.vectors is not None
            require_table(self.attributes, self.shape)
            self._table = _outer(self.vectors)
        return self._table

    @cached_property
    def key(self) -> Hashable:
        """Hashable key, equal for two queries of one universe exactly if they are the same function."""
        return self._parts(key_of)

    @property
    def plain_name(self) -> str:  # type: ignore[override]
        """Names and bytes, as text."""
        return repr(self._parts(bytes))

    def _parts(self, written: Callable[[bytes], bytes]) -> tuple[Any, ...]:
        """Return all that the query is made of, with the bytes of its arrays as ``written``."""
        if self.vectors:
            return (self.attributes, self.is_count, tuple(written(v.tobytes()) for v in self.vectors))
        return (self.attributes, "table", written(self.table.tobytes()))

    @property
    def packed(self) -> tuple[bytes, ...]:
        """Bytes of each vector of a product, as in its key."""
        found: tuple[bytes, ...] = self.key[2] if self.vectors else ()  # type: ignore[index]
        return found

    is_fraction: ClassVar[bool] = True
    labels: ClassVar[Labels] = ()

    @property
    def tables(self) -> tuple[Names, ...]:
        """The one attribute set of the query."""
        return (self.attributes,)

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The query itself."""
        return (self,)

    @property
    def condition(self) -> Condition | None:
        """The records that it counts; None if it has other weights than 0 and 1."""
        return Condition(self, self, self) if self.is_count else None

    @property
    def stored(self) -> tuple[Linear, Literal["values"]]:
        """The query itself: its cells have a stored form."""
        return self, "values"

    def ask(self, respondent: LinearRespondent, within: float | None) -> Estimate:
        """Ask for the answer to this query."""
        return respondent.linear(self, within)

    def dot(self, marginal: NDArray[Any]) -> float:
        """Return ⟨q, marginal⟩ for a marginal over ``attributes``."""
        if not self.vectors:
            return float(np.vdot(self.table, marginal))
        for vector in reversed(self.vectors):
            marginal = marginal @ vector
        return float(marginal)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Linear) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Linear({', '.join(self.attributes) or 'constant'})"


@dataclass(frozen=True, eq=False)
class Condition:
    """A count that is true or false for each record: certainly true where ``low`` is 1, possibly where ``high`` is 1.

    ``share`` interpolates between the two.
    """

    low: Linear
    high: Linear
    share: Linear

    @property
    def is_exact(self) -> bool:
        """True if no bin is cut."""
        return self.low is self.high

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of all attributes involved, possibly repeated."""
        return (*self.low.attributes, *self.high.attributes, *self.share.attributes)


def as_linear(found: object) -> Linear | None:
    """Return a value that was read from a record, if it is a linear query; None for anything else."""
    return found if isinstance(found, Linear) else None


def marginal_cells(universe: Universe, names: Sequence[str]) -> list[Linear]:
    """Return each cell of a marginal as a count, in the order of the flattened table."""
    _memory.require_listing("A table", universe.cells(names), sum(universe.sizes(names)), "Ask about fewer attributes")
    one = [np.eye(universe[name].size, dtype=bool) for name in names]
    shape = universe.sizes(names)
    return [
        Linear.product(universe, {n: eye[i] for n, eye, i in zip(names, one, cell, strict=True)})
        for cell in np.ndindex(shape)
    ]


@dataclass(frozen=True, eq=False)
class Products(Sequence[Linear]):
    """Counts on the same attributes, each given by a set of cells of every attribute.

    They are stored as one array of masks per attribute, with a line for each count. ``queries`` are the counts that
    were stacked, if there are such.
    """

    attributes: Names
    masks: tuple[NDArray[np.bool_], ...]
    queries: Sequence[Linear] | None = None

    @classmethod
    def of(cls, queries: Sequence[Linear]) -> Products:
        """Stack the vectors of queries on the same attributes."""
        vectors = [q.vectors or () for q in queries]
        stacked = (stack_vectors([v[axis] for v in vectors]) for axis in range(len(queries[0].attributes)))
        return cls(queries[0].attributes, tuple(mask.astype(bool, copy=False) for mask in stacked), queries)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of cells of each attribute, with a line for each count."""
        return np.stack([np.count_nonzero(mask, axis=1) for mask in self.masks], axis=1).astype(np.int64, copy=False)

    def __len__(self) -> int:
        return len(self.masks[0])

    def __getitem__(self, i: Any) -> Any:
        if self.queries is not None:
            return self.queries[i]
        shape = tuple(mask.shape[1] for mask in self.masks)
        return Linear(self.attributes, shape, tuple(mask[i] for mask in self.masks), None, True)


class GroupedQueries(list[Linear]):
    """Queries that are answered together. They are grouped by attributes, and counts are stacked, only once."""

    @cached_property
    def groups(self) -> list[tuple[Names, NDArray[np.int64], Sequence[Linear]]]:
        """Attributes, positions and queries of each group; ``Products`` where all of them are products."""
        found: list[tuple[Names, NDArray[np.int64], Sequence[Linear]]] = []
        for names, members in group_queries(self).items():
            asked: Sequence[Linear] = [self[i] for i in members]
            found.append((names, np.array(members), Products.of(asked) if all(map(is_product, asked)) else asked))
        return found


def stacked_groups(queries: Sequence[Linear]) -> list[tuple[Names, NDArray[np.int64], Sequence[Linear]]]:
    """Return the groups of a batch (``GroupedQueries.groups``), or of other queries."""
    return (queries if isinstance(queries, GroupedQueries) else GroupedQueries(queries)).groups


def is_product(query: Linear) -> bool:
    """Return True if the query counts the records in a product of sets of cells."""
    return bool(query.vectors) and query.is_count


def answer_all(queries: Sequence[Linear], marginal_of: Callable[[tuple[str, ...]], NDArray[Any]]) -> Array:
    """Return ⟨q, marginal⟩ for many queries, grouped by attributes so that each marginal is read once."""
    values = np.empty(len(queries))
    if isinstance(queries, Products):
        marginal = marginal_of(queries.attributes)
        for chunk in _chunks(len(queries), marginal.shape):
            values[chunk] = _answer_products([mask[chunk] for mask in queries.masks], marginal)
        return values
    for attributes, members, asked in stacked_groups(queries):
        marginal = marginal_of(attributes)
        for chunk in _chunks(len(members), marginal.shape):
            if isinstance(asked, Products):
                values[members[chunk]] = _answer_products([mask[chunk] for mask in asked.masks], marginal)
            else:
                values[members[chunk]] = _answer_group(asked[chunk], marginal)
    return values


def stack_vectors(vectors: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return vectors of one length as the lines of an array. Faster than ``np.stack``, which first reshapes each."""
    return np.concatenate(vectors).reshape(len(vectors), -1)


def group_queries(queries: Iterable[Linear]) -> dict[Names, list[int]]:
    """Return the positions of the queries by their attributes."""
    groups: dict[Names, list[int]] = defaultdict(list)
    for i, query in enumerate(queries):
        groups[query.attributes].append(i)
    return groups


def _chunks(count: int, shape: tuple[int, ...]) -> Iterator[slice]:
    """Yield slices of the queries that are small enough to bound the memory of stacked arrays."""
    chunk = min(4096, max(1, AT_ONCE // max(_folds(shape), 1)))
    return (slice(start, start + chunk) for start in range(0, count, chunk))


def _folds(shape: tuple[int, ...]) -> int:
    """Return the number of intermediate results that one query needs on a marginal of this shape."""
    cells = math.prod(shape)
    if cells <= WIDE:
        return cells // shape[0] if shape else 1
    half = _middle(shape)
    return math.prod(shape[:half]) + math.prod(shape[half:])


def _middle(shape: tuple[int, ...]) -> int:
    """Return the place to split the axes so that both sides have few cells."""
    return min(range(1, len(shape) + 1), key=lambda k: math.prod(shape[:k]) + math.prod(shape[k:]))


def _answer_group(queries: Sequence[Linear], marginal: NDArray[Any]) -> Array:
    """Answer queries on the same attributes, together if all of them are products."""
    if not queries[0].attributes:
        return np.array([q.dot(marginal) for q in queries])
    products = [q.vectors for q in queries if q.vectors]
    if len(products) < len(queries):
        return np.array([q.dot(marginal) for q in queries])
    return _answer_products([stack_vectors([v[axis] for v in products]) for axis in range(marginal.ndim)], marginal)


def _answer_products(vectors: Sequence[NDArray[Any]], marginal: NDArray[Any]) -> Array:
    """Answer products. ``vectors`` has one array per axis, with a line for each query."""
    along = [each.astype(float) for each in vectors]
    if marginal.size > WIDE:
        half = _middle(marginal.shape)
        left, right = (_write_out(along[side]) for side in (slice(half), slice(half, None)))
        folded = right @ marginal.reshape(left.shape[1], -1).astype(float, copy=False).T
        return np.asarray(np.einsum("qr,qr->q", left, folded))
    partial = along[0] @ marginal.reshape(marginal.shape[0], -1).astype(float, copy=False)
    for axis in range(1, marginal.ndim):
        partial = np.einsum("qir,qi->qr", partial.reshape(len(partial), marginal.shape[axis], -1), along[axis])
    answers: Array = partial.reshape(len(partial))
    return answers


def _write_out(vectors: Sequence[Array]) -> Array:
    """Write out the product of each query's vectors over all their cells, one line per query."""
    lines = np.ones((len(vectors[0]) if vectors else 1, 1))
    for along in vectors:
        lines = (lines[:, :, None] * along[:, None, :]).reshape(len(along), -1)
    return lines


def spread(query: Linear, names: Sequence[str]) -> Array:
    """Return the query's table with an axis of length one for every name that it does not depend on."""
    sizes = dict(zip(query.attributes, query.shape, strict=True))
    return query.table.reshape([sizes.get(name, 1) for name in names])


def require_table(attributes: Sequence[str], shape: Sequence[int]) -> None:
    """Refuse, by public sizes alone, a query whose table would have too many cells."""
    cells = math.prod(shape)
    if cells > LARGEST_TABLE:
        raise TooLarge(
            f"A query's table must have at most {LARGEST_TABLE} cells. Found {cells} on {tuple(attributes)!r}. "
            "Ask about fewer attributes, or declare coarser bins."
        )
    way_out = "Ask about fewer attributes, or declare coarser bins"
    _memory.require(f"A query's table on {tuple(attributes)!r}", cells, _memory.TABLE, way_out)


def require_weights(weights: Array) -> None:
    """Refuse weights outside [0, 1]."""
    if np.isnan(weights).any():
        raise InvalidInput("Weights must be numbers. Found NaN. Replace it by a number between 0 and 1.")
    if weights.size and (weights.min() < 0 or weights.max() > 1):
        raise InvalidInput(
            f"Weights must lie in [0, 1]. Found {weights.min():g} … {weights.max():g}. Rescale them to [0, 1]."
        )


def _constant_along(table: Array, axis: int) -> bool:
    """Return True if the table does not depend on this axis."""
    return bool((table == table.take([0], axis=axis)).all())


def _outer(vectors: Sequence[NDArray[Any]]) -> Array:
    """Return the outer product of some vectors."""
    table = np.ones(())
    for vector in vectors:
        table = np.multiply.outer(table, vector.astype(float))
    return table


def _factors(table: Array) -> tuple[Array, ...] | None:
    """Return vectors whose product is the table, at most one of them not 0/1; None if there are none.

    A table that is a product with largest value g has the vector max_{other axes}(table)/g on every 0/1 axis, exactly.
    """
    if table.ndim == 0:
        return None
    g = table.max()
    axes = range(table.ndim)
    highest = [table.max(axis=tuple(j for j in axes if j != i)) for i in axes]
    vectors = [h / g for h in highest]
    weighted = [i for i in axes if not _is_mask(vectors[i])]
    if len(weighted) > 1:
        return None
    carrier = weighted[0] if weighted else 0
    vectors[carrier] = highest[carrier]
    return tuple(vectors) if np.array_equal(_outer(vectors), table) else None


def _scaled_once(vectors: Sequence[Array]) -> bool:
    """Return True if these vectors, none constant, are those that ``_factors`` finds for their product."""
    weighted = [i for i, vector in enumerate(vectors) if not _is_mask(vector)]
    if len(weighted) != 1 or weighted == [0]:
        return len(weighted) < 2
    carrier = vectors[weighted[0]]
    return not _is_mask(carrier / carrier.max())


def _is_mask(array: Array) -> bool:
    return bool(np.isin(array, (0.0, 1.0)).all())
