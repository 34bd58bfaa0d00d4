"""Candidates for the next measurement: the sets of a workload, the size of the model with each, and their scores.

    w_t          the frequency of questions about the attributes t
    weight of c  Σ_t w_t·|c ∩ t| = Σ_{a∈c} Σ_{t∋a} w_t: a sum over the attributes of c, whatever the number of sets t

The sets are public. They are not listed where all small sets are asked about.
All pairs are held as one matrix, from one calibration and one scan; larger sets are tables of their own.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array, Counts, Names
from hedgerow.engine.practical.fit.corrections import Corrections
from hedgerow.engine.practical.measurement import varying_names
from hedgerow.model.hypothesis import PairTables
from hedgerow.model.log_linear import LogLinear
from hedgerow.model.triangulation import cells_with, edge_cells
from hedgerow.universe.universe import Universe, subsets

MOST_LISTED = 600  # if there are more sets than this, only those near the model are candidates
MOST_NEAR = 1_000  # at most this many of them
Links = Mapping[str, set[str]]


class WorkloadSets(ABC):
    """A public workload on the attributes that have more than one value."""

    @abstractmethod
    def on(self, universe: Universe) -> WorkloadSets:
        """Return the same workload on a universe whose attributes have other values, some perhaps only one."""

    @abstractmethod
    def often(self, name: str) -> float:
        """Return Σ w_t over the sets t that contain this attribute."""

    @abstractmethod
    def above(self, s: Names, shares: Mapping[str, float]) -> float:
        """Return Σ w_t·Π shares of t∖s over the sets t that contain s."""

    @abstractmethod
    def pairs(self) -> list[Names]:
        """List all pairs inside the workload's sets."""

    @abstractmethod
    def larger(self, links: Links) -> list[Names]:
        """List sets of three or more attributes inside the workload's sets: all if they are few, else the linked ones.

        ``links`` maps each attribute to its neighbours in the model.
        """

    @abstractmethod
    def tables(self) -> dict[Names, float]:
        """Return all sets with their weights."""

    def weights(self, sets: Sequence[Names]) -> list[float]:
        """Return Σ w_t·|c ∩ t| for each set c."""
        often = {name: self.often(name) for name in {name for names in sets for name in names}}
        return [sum(often[name] for name in names) for names in sets]


class ListedSets(WorkloadSets):
    """A workload that lists its sets with their weights."""

    def __init__(self, universe: Universe, weights: Mapping[Names, float]) -> None:
        self._weights: dict[Names, float] = {}
        for names, weight in weights.items():
            if kept := varying_names(universe, names):
                self._weights[kept] = self._weights.get(kept, 0.0) + weight
        self._often: dict[str, float] = {}
        for names, weight in self._weights.items():
            for name in names:
                self._often[name] = self._often.get(name, 0.0) + weight
        self._above: dict[tuple[int, Hashable], dict[Names, float]] = {}
        inside = {s for t in self._weights for s in subsets(t, 2)}
        self._inside = sorted(inside, key=lambda s: (len(s), s))

    def on(self, universe: Universe) -> WorkloadSets:
        """Restrict the sets to the attributes that vary in this universe."""
        return ListedSets(universe, self._weights)

    def often(self, name: str) -> float:
        """Return Σ w_t over the sets t that contain this attribute."""
        return self._often.get(name, 0.0)

    def above(self, s: Names, shares: Mapping[str, float]) -> float:
        """Return Σ w_t·Π shares of t∖s over the sets t that contain s, from sums over all sets of that size."""
        key = (len(s), tuple(shares.items()))
        if key not in self._above:
            sums = self._above[key] = {}
            for t, weight in self._weights.items():
                for part in itertools.combinations(t, len(s)):
                    others = math.prod(shares[name] for name in t if name not in part)
                    sums[part] = sums.get(part, 0.0) + weight * others
        return self._above[key].get(s, 0.0)

    def pairs(self) -> list[Names]:
        """List all pairs inside the workload's sets."""
        return [s for s in self._inside if len(s) == 2]

    def larger(self, links: Links) -> list[Names]:
        """List the larger sets; of more than ``MOST_LISTED``, only those that the model's links connect."""
        sets = [s for s in self._inside if len(s) > 2]
        return sets if len(self._inside) <= MOST_LISTED else _spread([s for s in sets if _is_connected(s, links)])

    def tables(self) -> dict[Names, float]:
        """Return all sets with their weights."""
        return self._weights


class EverySmallSet(WorkloadSets):
    """All sets of up to three attributes; questions about one, two and three attributes are equally frequent."""

    MOST = 3

    def __init__(self, universe: Universe) -> None:
        self._names = varying_names(universe, universe.names)
        all_of_them, others = len(universe.names), len(universe.names) - len(self._names)
        # A set with an attribute of one value counts as the set of its other attributes.
        orders = range(1, min(self.MOST, all_of_them) + 1)
        self._weights = {
            k: sum(math.comb(others, order - k) / math.comb(all_of_them, order) for order in orders if order >= k)
            for k in orders
        }

    def on(self, universe: Universe) -> WorkloadSets:
        """Return the workload of all small sets of this universe."""
        return EverySmallSet(universe)

    def often(self, name: str) -> float:
        """Return Σ w_t over the sets t that contain this attribute."""
        return self.above((name,), dict.fromkeys(self._names, 1.0))

    def above(self, s: Names, shares: Mapping[str, float]) -> float:
        """Return the sum by Newton's identities for sums of products of the other attributes' shares."""
        a, b, c = (sum(shares[n] ** k for n in self._names) - sum(shares[n] ** k for n in s) for k in (1, 2, 3))
        products = 1.0, a, (a**2 - b) / 2, (a**3 - 3 * a * b + 2 * c) / 6
        return sum(w * products[k - len(s)] for k, w in self._weights.items() if k >= len(s))

    def pairs(self) -> list[Names]:
        """List all pairs of attributes."""
        return sorted(itertools.combinations(self._names, 2))

    def larger(self, links: Links) -> list[Names]:
        """List all triples if they are few, else those in which one attribute is linked to both others."""
        if math.comb(len(self._names), 2) + math.comb(len(self._names), 3) <= MOST_LISTED:
            return sorted(itertools.combinations(self._names, 3))
        place = {name: i for i, name in enumerate(self._names)}

        def joined() -> Iterator[Names]:
            for middle in self._names:
                around = sorted((links.get(middle, set()) - {middle}) & place.keys(), key=place.__getitem__)
                for first, last in itertools.combinations(around, 2):
                    yield tuple(sorted((first, middle, last), key=place.__getitem__))

        return _spread(sorted(set(joined())))

    def tables(self) -> dict[Names, float]:
        """Return all sets with their weights."""
        orders = (itertools.combinations(self._names, k) for k in self._weights)
        return {names: self._weights[len(names)] for names in itertools.chain.from_iterable(orders)}


def _is_connected(names: Names, links: Links) -> bool:
    """Return True if the links between these attributes connect all of them."""
    found, waiting = {names[0]}, [names[0]]
    while waiting:
        new = (links.get(waiting.pop(), set()) & set(names)) - found
        found |= new
        waiting += new
    return len(found) == len(names)


def _spread(sets: list[Names]) -> list[Names]:
    """Keep at most ``MOST_NEAR`` of the sets, evenly spaced."""
    return sets if len(sets) <= MOST_NEAR else [sets[i * len(sets) // MOST_NEAR] for i in range(MOST_NEAR)]


MOST_VALUES = 4_096  # most values of all attributes together for a matrix of all pairs: 128 MB
MOST_OFFERED = 25_000_000  # most cells of all tables compared in one round, each held as belief and as counts
FLOATS = 53  # number of bits that float64 holds exactly

Counting = Callable[[Sequence[Names]], list[Counts]]


class Candidates:
    """The sets that may be chosen in one prefit. Public, except for the counts that are cached here."""

    def __init__(self, universe: Universe, asked: WorkloadSets) -> None:
        self._universe, self._asked = universe, asked
        self._matrix = PairTables(dict(zip(universe.names, universe.shape, strict=True)))
        self._together = self._matrix.values <= MOST_VALUES
        self.pairs = asked.pairs()
        self._ends = np.array([[universe.index(n) for n in pair] for pair in self.pairs], np.int64).reshape(-1, 2)
        self._cells = np.prod(np.array(universe.shape, np.int64)[self._ends], axis=1)
        self._counts: NDArray[np.int64] | None = None  # the data's counts on all pairs: private

    def offer(self, model: LogLinear, limit: float, corrections: Corrections | None = None) -> OfferedCandidates:
        """Return the sets with which the model stays within ``limit`` cells; if there is none, the smallest set.

        With ``corrections``, pairs whose own table is within the limit are offered too: they need not enter the
        model.
        """
        links: dict[str, set[str]] = {}
        for clique in model.tree.cliques:
            for name in clique:
                links.setdefault(name, set()).update(clique)
        larger = self._asked.larger(links)
        edges = edge_cells(model.tree)
        sizes = model.tree.cells + np.concatenate(
            [edges[self._ends[:, 0], self._ends[:, 1]], [self._added_cells(names, edges, model) for names in larger]]
        )
        sets = [*self.pairs, *larger]
        if len(sets) <= MOST_LISTED:  # few enough to replace the upper bounds by exact sizes
            unsure = np.flatnonzero(sizes > limit)
            sizes[unsure] = cells_with(model.tree, model.tops, [sets[i] for i in unsure])
        if corrections is not None:
            outside = np.flatnonzero((self._cells <= limit) & (sizes[: len(self.pairs)] > limit))
            sizes[outside] = np.minimum(model.tree.cells, limit)
        kept = np.flatnonzero(sizes <= limit)
        if not kept.size:
            kept = np.array([np.argmin([self._universe.cells(s) for s in sets])])
        kept = self._in_memory(sets, kept)
        pairs = kept[kept < len(self.pairs)]
        return OfferedCandidates(self, model, [sets[i] for i in kept], sizes[kept], self._ends[pairs], corrections)

    def _in_memory(self, sets: Sequence[Names], kept: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keep the sets whose tables fit in memory together, smallest first. The matrix of pairs has its own limit."""
        cells = [self._universe.cells(sets[i]) for i in kept]
        alone = [each if i >= len(self.pairs) or not self._together else 0 for i, each in zip(kept, cells, strict=True)]
        if sum(alone) <= MOST_OFFERED:
            return kept
        order = np.argsort(alone, kind="stable")
        return np.sort(kept[order[np.cumsum(np.array(alone)[order]) <= MOST_OFFERED]])

    def members(self, sets: Sequence[Names]) -> NDArray[np.bool_]:
        """Return a boolean matrix of which attributes (columns) each set (row) contains."""
        found = np.zeros((len(sets), len(self._universe.names)), bool, order="F")
        rows = np.repeat(np.arange(len(sets)), [len(names) for names in sets])
        found[rows, [self._universe.index(name) for names in sets for name in names]] = True
        return found

    def _added_cells(self, names: Names, edges: Array, model: LogLinear) -> float:
        """Return an upper bound on the cells that a set of three or more attributes would add to the model's tree."""
        places = [self._universe.index(n) for n in names]
        missing = [edges[a, b] for i, a in enumerate(places) for b in places[:i] if edges[a, b] > 0]
        if len(missing) <= 1:  # at most one edge is missing: with that edge the set is a clique
            return float(sum(missing))
        sizes = sorted(self._universe.sizes(names))  # worst case: all but one attribute enter every clique
        return float((math.prod(sizes[:-1]) - 1) * model.tree.cells + math.prod(sizes))

    def model_pairs(self, model: LogLinear) -> Array | None:
        """Return the model's tables of all pairs as one matrix; None if the matrix would be too large."""
        return self._matrix.pair_matrix(model.tree, model.beliefs()) if self._together else None

    def count_pairs(self, counting: Counting) -> NDArray[np.int64]:
        """Return the data's counts on all pairs as one matrix, counted once. Private."""
        if self._counts is None:
            self._counts = np.zeros((self._matrix.values, self._matrix.values), np.int64)
            for pair, counts in zip(self.pairs, counting(self.pairs), strict=True):
                self.block(self._counts, pair)[:] = counts
        return self._counts

    def block(self, matrix: NDArray[np.int64] | Array, pair: Names) -> NDArray[np.int64] | Array:
        """Return the table of one pair, as a view into the matrix."""
        return self._matrix.block(matrix, pair)

    def sums(self, matrix: NDArray[np.int64] | Array, ends: NDArray[np.int64]) -> NDArray[np.int64] | Array:
        """Return the sums over the blocks of the pairs whose attributes are ``ends``."""
        return np.asarray(self._matrix.sums(matrix)[ends[:, 0], ends[:, 1]])


class OfferedCandidates:
    """The candidates of one round."""

    def __init__(
        self,
        home: Candidates,
        model: LogLinear,
        sets: list[Names],
        sizes: Array,
        ends: NDArray[np.int64],
        corrections: Corrections | None = None,
    ) -> None:
        """Compute the model's belief on every candidate.

        ``sizes``: number of cells of the model's tree with each set.
        ``ends``: the attributes of those sets that are pairs, which come first.
        """
        self.sets, self.sizes = sets, sizes
        self._home, self._ends = home, ends
        self._matrix = home.model_pairs(model)
        alone = sets if self._matrix is None else sets[len(ends) :]
        self._tables = dict(zip(alone, model.marginals(alone), strict=True))
        for s in sets if corrections is not None and corrections.outside else ():
            table = None if corrections is None else corrections.table(s)
            if table is not None and s in self._tables:
                self._tables[s] = table
            elif table is not None and self._matrix is not None:
                home.block(self._matrix, s)[:] = table

    def model_table(self, names: Names) -> Array:
        """Return the belief on one candidate, as it was at the start of the round."""
        found = self._tables.get(names)
        if found is None:
            assert self._matrix is not None
            found = np.asarray(self._home.block(self._matrix, names))
        return found

    def discounts(self, noise: float, shrinks: float, rows: float, residual: Mapping[Names, float]) -> Array:
        """Return Σ min(noise, shrinks·n·h) for each set; ``residual`` gives the noise of sets that have their own."""
        alone = [
            float(np.minimum(residual.get(s, noise), shrinks * rows * self._tables[s]).sum())
            for s in self.sets
            if s in self._tables
        ]
        if self._matrix is None:
            return np.array(alone)
        together = self._home.sums(np.minimum(noise, shrinks * rows * self._matrix), self._ends)
        return np.concatenate([together, alone])

    def distances(self, counting: Counting, rows: float, noise: int = 0) -> list[int]:
        """Return Σ (|count − round(n·h)| − noise)⁺ for each set, in whole rows. Private.

        One row moves a distance by at most 2 (replaced) or 1 (added or removed).
        """
        alone = [names for names in self.sets if names in self._tables]
        found = [
            distance(counts, rows * self._tables[names], noise)
            for names, counts in zip(alone, counting(alone), strict=True)
        ]
        if self._matrix is None:
            return found
        counts = self._home.count_pairs(counting)
        off = np.abs(counts - whole(rows * self._matrix, counts.size))
        off = np.maximum(off - noise, 0)
        return [*self._home.sums(off, self._ends).tolist(), *found]


def distance(counts: NDArray[np.int64], expected: Array, noise: int = 0) -> int:
    """Return Σ (|count − round(expected)| − noise)⁺ in whole rows; with noise 0 this is ‖counts − round(expected)‖₁."""
    return int(np.maximum(np.abs(counts - whole(expected, counts.size)) - noise, 0).sum())


def whole(expected: Array, cells: int) -> NDArray[np.int64]:
    """Round a public table to whole rows, clipped so that a sum of differences over ``cells`` cells fits an int64."""
    most = min(2**FLOATS, 2**62 // cells)
    return np.clip(np.round(expected), 0, most).astype(np.int64)
