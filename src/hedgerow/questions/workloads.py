"""Named classes of queries: all k-way marginals, intervals, thresholds, parities and conjunctions.

A workload is a public value and written without a universe. ``on`` lists its queries; ``vc_dimension`` is the known
Vapnik–Chervonenkis dimension of the class, or the bound log₂|Q| where only that is known (Dwork & Roth, Lemma 4.7).
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hedgerow.errors import InvalidInput
from hedgerow.questions.attributes import Integers
from hedgerow.questions.counts import Query, count, interval, marginal, parity
from hedgerow.questions.universe import Universe


class Workload(ABC):
    """A class of queries known by name; iterate ``on(universe)``."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @abstractmethod
    def queries(self, universe: Universe) -> Iterator[Query]: ...

    def on(self, universe: Universe) -> list[Query]:
        return list(self.queries(universe))

    def length(self, universe: Universe) -> int:
        """At most how many queries there are."""
        return len(self.on(universe))

    def values(self, universe: Universe) -> int:
        """Of how many values each query may name some."""
        return 0

    def vc_dimension(self, universe: Universe) -> int:
        return math.floor(math.log2(max(2, len(self.on(universe)))))

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, repr=False)
class Marginals(Workload):
    """See ``marginals``."""

    k: int
    most_cells: int | None = None

    def __post_init__(self) -> None:
        _require_ways(self.k)

    @property
    def name(self) -> str:
        return f"marginals({self.k})"

    def queries(self, universe: Universe) -> Iterator[Query]:
        for names in itertools.combinations(universe.names, min(self.k, len(universe.names))):
            if self.most_cells is None or universe.cells(names) <= self.most_cells:
                yield marginal(*names)

    def length(self, universe: Universe) -> int:
        return math.comb(len(universe.names), min(self.k, len(universe.names)))

    def vc_dimension(self, universe: Universe) -> int:
        cells = sum(universe.cells(names) for names in itertools.combinations(universe.names, self.k))
        return math.floor(math.log2(max(2, cells)))


@dataclass(frozen=True, repr=False)
class Intervals(Workload):
    """See ``intervals``."""

    attribute: str

    @property
    def name(self) -> str:
        return f"intervals({self.attribute!r})"

    def queries(self, universe: Universe) -> Iterator[Query]:
        places = range(len(_ordered_values(universe, self.attribute)))
        for low, high in itertools.combinations_with_replacement(places, 2):
            yield _cells(universe, self.attribute, low, high)

    def length(self, universe: Universe) -> int:
        return math.comb(universe[self.attribute].size + 1, 2)

    def values(self, universe: Universe) -> int:
        return universe[self.attribute].size

    def vc_dimension(self, universe: Universe) -> int:
        return min(2, universe[self.attribute].size)


@dataclass(frozen=True, repr=False)
class Thresholds(Workload):
    """See ``thresholds``."""

    attribute: str

    @property
    def name(self) -> str:
        return f"thresholds({self.attribute!r})"

    def queries(self, universe: Universe) -> Iterator[Query]:
        for place in range(len(_ordered_values(universe, self.attribute))):
            yield _cells(universe, self.attribute, None, place)

    def length(self, universe: Universe) -> int:
        return universe[self.attribute].size

    def values(self, universe: Universe) -> int:
        return universe[self.attribute].size

    def vc_dimension(self, universe: Universe) -> int:
        return 1


@dataclass(frozen=True, repr=False)
class Parities(Workload):
    """See ``parities``."""

    k: int | None = None

    @property
    def name(self) -> str:
        return "parities"

    def queries(self, universe: Universe) -> Iterator[Query]:
        for names in _subsets(_two_valued(universe), self.k):
            yield parity(*names)

    def length(self, universe: Universe) -> int:
        return _how_many(len(_two_valued(universe)), self.k)

    def vc_dimension(self, universe: Universe) -> int:
        return len(_two_valued(universe)) if self.k is None else super().vc_dimension(universe)


@dataclass(frozen=True, repr=False)
class Conjunctions(Workload):
    """See ``conjunctions``."""

    k: int | None = None
    monotone: bool = True

    @property
    def name(self) -> str:
        return "conjunctions"

    def queries(self, universe: Universe) -> Iterator[Query]:
        for names in _subsets(_two_valued(universe), self.k):
            for signs in [(1,) * len(names)] if self.monotone else itertools.product((1, 0), repeat=len(names)):
                yield count({n: universe[n].labels[sign] for n, sign in zip(names, signs, strict=True)})

    def length(self, universe: Universe) -> int:
        return _how_many(len(_two_valued(universe)), self.k, 1 if self.monotone else 2)

    def vc_dimension(self, universe: Universe) -> int:
        return len(_two_valued(universe)) if self.k is None else super().vc_dimension(universe)


WORKLOADS = (Conjunctions, Intervals, Marginals, Parities, Thresholds)


def marginals(k: int, *, most_cells: int | None = None) -> Workload:
    """All k-way marginals, or those with at most ``most_cells`` cells. The VC dimension is that of their cells."""
    return Marginals(k, most_cells)


def intervals(attribute: str) -> Workload:
    """All intervals of the cells of one ordered attribute; VC dimension 2."""
    return Intervals(attribute)


def thresholds(attribute: str) -> Workload:
    """All thresholds ``attribute <= t``, t one of its cells; VC dimension 1."""
    return Thresholds(attribute)


def parities(k: int | None = None) -> Workload:
    """Parities of up to k two-valued attributes; of all d of them the VC dimension is d."""
    return Parities(k)


def conjunctions(k: int | None = None, *, monotone: bool = True) -> Workload:
    """Conjunctions of up to k two-valued attributes, negated ones too unless ``monotone``; VC dimension d over all d."""
    return Conjunctions(k, monotone)


def _require_ways(k: int) -> None:
    if not isinstance(k, int) or k < 1:
        raise InvalidInput(
            f"k must be a whole number of at least 1. Found {k!r}. Say how many attributes meet in a table."
        )


def _ordered_values(universe: Universe, attribute: str) -> list[float]:
    declared = universe[attribute]
    if not declared.ordered or declared.values is None:
        raise InvalidInput(f"Attribute {attribute!r} must have an order. Found categories. Choose a Range or Integers.")
    return [v for v in declared.values.tolist() if not math.isnan(v)]


def _cells(universe: Universe, attribute: str, low: int | None, high: int) -> Query:
    """The cells from one to another: of bins by a mask, for their representatives are inside them."""
    declared = universe[attribute]
    if declared.values is None or isinstance(declared, Integers):
        first, last = (None if end is None else float(declared.values[end]) for end in (low, high))  # type: ignore[index]
        return interval(attribute, first, last)
    places = np.arange(declared.size)
    return count({attribute: (places >= (low or 0)) & (places <= high)})


def _two_valued(universe: Universe) -> list[str]:
    return [name for name, size in zip(universe.names, universe.shape, strict=True) if size == 2]


def _subsets(names: list[str], k: int | None) -> Iterator[tuple[str, ...]]:
    most = len(names) if k is None else min(k, len(names))
    return itertools.chain.from_iterable(itertools.combinations(names, i) for i in range(1, most + 1))


def _how_many(attributes: int, k: int | None, signs: int = 1) -> int:
    """The subsets of up to k of them, with one of so many signs for each member."""
    most = attributes if k is None else min(k, attributes)
    return sum(math.comb(attributes, i) * signs**i for i in range(1, most + 1))
