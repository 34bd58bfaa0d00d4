"""Named classes of queries: all k-way marginals, intervals, thresholds, parities and conjunctions.

A workload is public and written without a universe. ``on`` lists its queries; ``vc_dimension`` is the known
Vapnik–Chervonenkis dimension of the class, or the bound log₂|Q| where only that is known (Dwork & Roth, Lemma 4.7).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hedgerow.errors import InvalidInput
from hedgerow.questions.counts import Query, count, interval, marginal, parity, threshold
from hedgerow.questions.universe import Universe


@dataclass(frozen=True)
class Workload:
    """A class of queries known by name; iterate ``on(universe)``."""

    name: str
    _queries: Callable[[Universe], Iterator[Query]]
    _dimension: Callable[[Universe], int] | None = None

    def on(self, universe: Universe) -> list[Query]:
        return list(self._queries(universe))

    def vc_dimension(self, universe: Universe) -> int:
        if self._dimension is not None:
            return self._dimension(universe)
        return math.floor(math.log2(max(2, len(self.on(universe)))))

    def __repr__(self) -> str:
        return self.name


def marginals(k: int, *, most_cells: int | None = None) -> Workload:
    """All k-way marginals, or those with at most ``most_cells`` cells. The VC dimension is that of their cells."""
    _require_ways(k)

    def tables(universe: Universe) -> Iterator[Query]:
        for names in itertools.combinations(universe.names, min(k, len(universe.names))):
            if most_cells is None or universe.cells(names) <= most_cells:
                yield marginal(*names)

    def dimension(universe: Universe) -> int:
        cells = sum(universe.cells(names) for names in itertools.combinations(universe.names, k))
        return math.floor(math.log2(max(2, cells)))

    return Workload(f"marginals({k})", tables, dimension)


def intervals(attribute: str) -> Workload:
    """All intervals of one ordered attribute; VC dimension 2."""

    def ranges(universe: Universe) -> Iterator[Query]:
        values = _ordered_values(universe, attribute)
        for low, high in itertools.combinations_with_replacement(values, 2):
            yield interval(attribute, low, high)

    return Workload(f"intervals({attribute!r})", ranges, lambda u: min(2, u[attribute].size))


def thresholds(attribute: str) -> Workload:
    """All thresholds ``attribute <= t``; VC dimension 1."""

    def cuts(universe: Universe) -> Iterator[Query]:
        for value in _ordered_values(universe, attribute):
            yield threshold(attribute, value)

    return Workload(f"thresholds({attribute!r})", cuts, lambda u: 1)


def parities(k: int | None = None) -> Workload:
    """Parities of up to k two-valued attributes; of all d of them the VC dimension is d."""

    def odd(universe: Universe) -> Iterator[Query]:
        for names in _subsets(_two_valued(universe), k):
            yield parity(*names)

    return Workload("parities", odd, (lambda u: len(_two_valued(u))) if k is None else None)


def conjunctions(k: int | None = None, *, monotone: bool = True) -> Workload:
    """Conjunctions of up to k two-valued attributes, negated ones too unless ``monotone``; VC dimension d over all d."""

    def literals(universe: Universe) -> Iterator[Query]:
        for names in _subsets(_two_valued(universe), k):
            for signs in [(1,) * len(names)] if monotone else itertools.product((1, 0), repeat=len(names)):
                yield count({n: universe[n].labels[sign] for n, sign in zip(names, signs, strict=True)})

    return Workload("conjunctions", literals, (lambda u: len(_two_valued(u))) if k is None else None)


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


def _two_valued(universe: Universe) -> list[str]:
    return [name for name, size in zip(universe.names, universe.shape, strict=True) if size == 2]


def _subsets(names: list[str], k: int | None) -> Iterator[tuple[str, ...]]:
    most = len(names) if k is None else min(k, len(names))
    return itertools.chain.from_iterable(itertools.combinations(names, i) for i in range(1, most + 1))
