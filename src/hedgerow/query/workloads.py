"""Named classes of queries: all k-way marginals, intervals, thresholds, parities and conjunctions.

A workload is a public value, written without a universe. ``on`` lists its queries. ``vc_dimension`` is the known
Vapnik–Chervonenkis dimension of the class, or the bound log₂|Q| if only that is known (Dwork & Roth, Lemma 4.7).
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hedgerow.errors import InvalidInput
from hedgerow.query.counts import Query, count, interval, marginal, parity
from hedgerow.universe.attributes import Integers
from hedgerow.universe.universe import Universe


class Workload(ABC):
    """A named class of queries. ``on(universe)`` lists them.

    Example
    -------
    >>> [str(query) for query in hr.thresholds("days").on(universe)][:2]
    ['count(days=(None, 0.0))', 'count(days=(None, 1.0))']
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Readable name of the class."""
        ...

    @abstractmethod
    def queries(self, universe: Universe) -> Iterator[Query]:
        """Yield the queries on a universe.

        Parameters
        ----------
        universe : Universe
            The declared columns.

        Yields
        ------
        Query

        Example
        -------
        >>> sum(1 for query in hr.marginals(1).queries(universe)) == len(universe.names)
        True
        """
        ...

    def on(self, universe: Universe) -> list[Query]:
        """Return the list of queries on a universe.

        Parameters
        ----------
        universe : Universe
            The declared columns.

        Returns
        -------
        list of Query

        Raises
        ------
        InvalidInput
            If the universe lacks what the class is about, such as an ordered attribute.

        Example
        -------
        >>> len(hr.thresholds("days").on(universe))
        10
        """
        return list(self.queries(universe))

    def length(self, universe: Universe) -> int:
        """Return an upper bound on the number of queries.

        Parameters
        ----------
        universe : Universe
            The declared columns.

        Returns
        -------
        int

        Example
        -------
        >>> hr.intervals("days").length(universe)
        55
        """
        return len(self.on(universe))

    def values(self, universe: Universe) -> int:
        """Return the number of attribute values in the mask of one query.

        Parameters
        ----------
        universe : Universe
            The declared columns.

        Returns
        -------
        int

        Example
        -------
        >>> hr.intervals("days").values(universe)
        10
        """
        return 0

    def vc_dimension(self, universe: Universe) -> int:
        """Return the VC dimension of the class, or the bound log₂|Q|.

        Parameters
        ----------
        universe : Universe
            The declared columns.

        Returns
        -------
        int

        Example
        -------
        >>> hr.intervals("days").vc_dimension(universe)
        2
        """
        return math.floor(math.log2(max(2, len(self.on(universe)))))

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, repr=False)
class Marginals(Workload):
    """All k-way marginals, made by ``marginals``."""

    k: int
    most_cells: int | None = None

    def __post_init__(self) -> None:
        _require_ways(self.k)

    @property
    def name(self) -> str:
        """Readable name of the class."""
        return f"marginals({self.k})"

    def queries(self, universe: Universe) -> Iterator[Query]:
        """Yield the marginals, without those that have too many cells."""
        for names in itertools.combinations(universe.names, min(self.k, len(universe.names))):
            if self.most_cells is None or universe.cells(names) <= self.most_cells:
                yield marginal(*names)

    def length(self, universe: Universe) -> int:
        """Return the number of sets of k attributes."""
        return math.comb(len(universe.names), min(self.k, len(universe.names)))

    def vc_dimension(self, universe: Universe) -> int:
        """Return the bound log₂ of the number of cells of all tables."""
        cells = sum(universe.cells(names) for names in itertools.combinations(universe.names, self.k))
        return math.floor(math.log2(max(2, cells)))


@dataclass(frozen=True, repr=False)
class Intervals(Workload):
    """All intervals of one attribute, made by ``intervals``."""

    attribute: str

    @property
    def name(self) -> str:
        """Readable name of the class."""
        return f"intervals({self.attribute!r})"

    def queries(self, universe: Universe) -> Iterator[Query]:
        """Yield the intervals of cells."""
        places = range(len(_ordered_values(universe, self.attribute)))
        for low, high in itertools.combinations_with_replacement(places, 2):
            yield _cells(universe, self.attribute, low, high)

    def length(self, universe: Universe) -> int:
        """Return the number of pairs of cells."""
        return math.comb(universe[self.attribute].size + 1, 2)

    def values(self, universe: Universe) -> int:
        """Return the number of cells of the attribute."""
        return universe[self.attribute].size

    def vc_dimension(self, universe: Universe) -> int:
        """Return 2, or the number of cells if that is smaller."""
        return min(2, universe[self.attribute].size)


@dataclass(frozen=True, repr=False)
class Thresholds(Workload):
    """All thresholds of one attribute, made by ``thresholds``."""

    attribute: str

    @property
    def name(self) -> str:
        """Readable name of the class."""
        return f"thresholds({self.attribute!r})"

    def queries(self, universe: Universe) -> Iterator[Query]:
        """Yield one threshold per cell."""
        for place in range(len(_ordered_values(universe, self.attribute))):
            yield _cells(universe, self.attribute, None, place)

    def length(self, universe: Universe) -> int:
        """Return the number of cells of the attribute."""
        return universe[self.attribute].size

    def values(self, universe: Universe) -> int:
        """Return the number of cells of the attribute."""
        return universe[self.attribute].size

    def vc_dimension(self, universe: Universe) -> int:
        """Return 1."""
        return 1


@dataclass(frozen=True, repr=False)
class Parities(Workload):
    """Parities of two-valued attributes, made by ``parities``."""

    k: int | None = None

    @property
    def name(self) -> str:
        """Readable name of the class."""
        return "parities"

    def queries(self, universe: Universe) -> Iterator[Query]:
        """Yield the parities of all subsets of up to k attributes."""
        for names in _subsets(_two_valued(universe), self.k):
            yield parity(*names)

    def length(self, universe: Universe) -> int:
        """Return the number of subsets."""
        return _count_subsets(len(_two_valued(universe)), self.k)

    def vc_dimension(self, universe: Universe) -> int:
        """Return d for all subsets of d attributes, else the bound log₂|Q|."""
        return len(_two_valued(universe)) if self.k is None else super().vc_dimension(universe)


@dataclass(frozen=True, repr=False)
class Conjunctions(Workload):
    """Conjunctions of two-valued attributes, made by ``conjunctions``."""

    k: int | None = None
    monotone: bool = True

    @property
    def name(self) -> str:
        """Readable name of the class."""
        return "conjunctions"

    def queries(self, universe: Universe) -> Iterator[Query]:
        """Yield the conjunctions of all subsets of up to k attributes."""
        for names in _subsets(_two_valued(universe), self.k):
            for signs in [(1,) * len(names)] if self.monotone else itertools.product((1, 0), repeat=len(names)):
                yield count({n: universe[n].labels[sign] for n, sign in zip(names, signs, strict=True)})

    def length(self, universe: Universe) -> int:
        """Return the number of subsets, times their signs."""
        return _count_subsets(len(_two_valued(universe)), self.k, 1 if self.monotone else 2)

    def vc_dimension(self, universe: Universe) -> int:
        """Return d for all subsets of d attributes, else the bound log₂|Q|."""
        return len(_two_valued(universe)) if self.k is None else super().vc_dimension(universe)


WORKLOADS = (Conjunctions, Intervals, Marginals, Parities, Thresholds)


def marginals(k: int, *, most_cells: int | None = None) -> Workload:
    """Ask for all k-way marginals.

    Parameters
    ----------
    k : int
        Number of attributes of each table.
    most_cells : int, optional
        Leave out tables with more cells.

    Returns
    -------
    Workload

    Example
    -------
    >>> marginals(2)
    marginals(2)
    """
    return Marginals(k, most_cells)


def intervals(attribute: str) -> Workload:
    """Ask for all intervals of the cells of one ordered attribute. Their VC dimension is 2.

    Parameters
    ----------
    attribute : str
        An ordered attribute.

    Returns
    -------
    Workload

    Example
    -------
    >>> hr.intervals("days").length(universe)
    55
    """
    return Intervals(attribute)


def thresholds(attribute: str) -> Workload:
    """Ask for all thresholds ``attribute <= t``, with t one of its cells. Their VC dimension is 1.

    Parameters
    ----------
    attribute : str
        An ordered attribute.

    Returns
    -------
    Workload

    Example
    -------
    >>> hr.thresholds("days").length(universe)
    10
    """
    return Thresholds(attribute)


def parities(k: int | None = None) -> Workload:
    """List the parities of up to k two-valued attributes. Over all d of them the VC dimension is d.

    Parameters
    ----------
    k : int, optional
        Largest number of attributes. Default: all.

    Returns
    -------
    Workload

    Example
    -------
    >>> hr.parities(2).length(hr.Universe(a=hr.Flag(), b=hr.Flag(), c=hr.Flag()))
    6
    """
    return Parities(k)


def conjunctions(k: int | None = None, *, monotone: bool = True) -> Workload:
    """List the conjunctions of up to k two-valued attributes. Over all d of them the VC dimension is d.

    Parameters
    ----------
    k : int, optional
        Largest number of attributes. Default: all.
    monotone : bool
        Leave out conjunctions with negated attributes.

    Returns
    -------
    Workload

    Example
    -------
    >>> hr.conjunctions(2).length(hr.Universe(a=hr.Flag(), b=hr.Flag(), c=hr.Flag()))
    6
    """
    return Conjunctions(k, monotone)


def _require_ways(k: int) -> None:
    """Refuse a number of attributes that is not a whole number of at least 1."""
    if not isinstance(k, int) or k < 1:
        raise InvalidInput(
            f"k must be a whole number of at least 1. Found {k!r}. Give the number of attributes of a table."
        )


def _ordered_values(universe: Universe, attribute: str) -> list[float]:
    """Return the numbers of an ordered attribute's cells; refuse an attribute without an order."""
    declared = universe[attribute]
    if not declared.ordered or declared.values is None:
        raise InvalidInput(f"Attribute {attribute!r} must have an order. Found categories. Choose a Range or Integers.")
    return [v for v in declared.values.tolist() if not math.isnan(v)]


def _cells(universe: Universe, attribute: str, low: int | None, high: int) -> Query:
    """Return the count of the cells from ``low`` to ``high``.

    Bins are named by a mask, because a range between representatives would cut the outer bins.
    """
    declared = universe[attribute]
    if declared.values is None or isinstance(declared, Integers):
        first, last = (None if end is None else float(declared.values[end]) for end in (low, high))  # type: ignore[index]
        return interval(attribute, first, last)
    places = np.arange(declared.size)
    return count({attribute: (places >= (low or 0)) & (places <= high)})


def _two_valued(universe: Universe) -> list[str]:
    """Return the names of the attributes with two values."""
    return [name for name, size in zip(universe.names, universe.shape, strict=True) if size == 2]


def _subsets(names: list[str], k: int | None) -> Iterator[tuple[str, ...]]:
    """Yield the non-empty subsets of up to k names."""
    most = len(names) if k is None else min(k, len(names))
    return itertools.chain.from_iterable(itertools.combinations(names, i) for i in range(1, most + 1))


def _count_subsets(attributes: int, k: int | None, signs: int = 1) -> int:
    """Return the number of non-empty subsets of up to k attributes, with ``signs`` choices for each member."""
    most = attributes if k is None else min(k, attributes)
    return sum(math.comb(attributes, i) * signs**i for i in range(1, most + 1))
