"""The attribute sets that a workload asks about and their weights. Public; never listed where all small sets are asked.

w_t          the frequency of questions about the attributes t
weight of c  Σ_t w_t·|c ∩ t| = Σ_{a∈c} Σ_{t∋a} w_t: a sum over the attributes of c, whatever the number of sets t
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence

from hedgerow._types import Names
from hedgerow.engine.practical.measurement import varying_names
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
