"""What was measured but does not fit the model's tree, kept as corrections of what the model says of few attributes.

    outside    the measured sets on which the model has no table
    H_A        the model's table on attributes A
    B_A        what is believed of A: H_A where A holds nothing outside. Otherwise H_A raked to B_s for every set s ⊂ A outside and to
               the model's own tables inside A (iterative proportional fitting, Deming & Stephan 1940), so that sums over A agree
               with smaller questions as far as raking converges; where A itself is outside, after a fit to its counts as the model's own.

Records are drawn the same way: a pool from the tree, its weights raked to the model's tables and to the largest corrections, and records
drawn by weight.

A function of released values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow import _memory
from hedgerow._types import Array, Names
from hedgerow.engines.practical.merging import Merging
from hedgerow.engines.practical.residuals import Evidence
from hedgerow.engines.practical.shrinkage import as_target
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.model.kernels import rake
from hedgerow.model.log_linear import Local, minimise
from hedgerow.model.memory_layout import fold, update_folds
from hedgerow.questions.linear import Linear
from hedgerow.questions.universe import Universe, subsets

LOCAL_CELLS = 4_000_000  # of a table that is corrected
KEPT_CELLS = 16_000_000  # of all that are kept
LOCAL_STEPS = 40
SWEEPS, LARGE, FEWER_SWEEPS = 200, 100_000, 30  # of a table, and of one with more cells than that
AGREES = 1e-9  # how far, in all cells together, sums may still be apart when raking ends
POOL_SWEEPS, RAKED = 6, 400  # of records: of more corrections than these, the largest
POOL, LARGEST_POOL = 4, 4_000_000  # records in the pool for each that is drawn


def fitted(names: Names, table: Array, evidence: Evidence, rows: float) -> Array:
    """The table fitted to what was measured of it."""
    counts, variance = evidence.estimate(names)
    local = Local(names, table, [names])
    minimise(local, [as_target(rows, table, counts, variance)], rows, steps=LOCAL_STEPS, tolerance=0.5)
    return local.table()


class Corrections:
    """B_A for every A, from the model's H_A. Kept as they were, whatever is measured later."""

    def __init__(
        self,
        universe: Universe,
        marginal: Callable[[Names], Array],
        model: tuple[Sequence[Names], Sequence[Names]],
        evidence: Evidence,
        rows: float,
        *,
        everywhere: bool,
    ) -> None:
        """``model``: its sets and the largest of them.

        ``everywhere``: whether larger tables and records are corrected too, or, where very many pairs are outside, their own alone.
        """
        self._universe, self._marginal, self._evidence, self._rows = universe, marginal, evidence, rows
        sets, self._tops = model
        known = set(sets)
        self.outside = [s for s in evidence.sets if len(s) > 1 and s not in known]
        self._place = {s: i for i, s in enumerate(self.outside)}
        self._everywhere = everywhere
        self._kept: dict[Names, Array] = {}

    def table(self, names: Names) -> Array | None:
        """B_A, where it is not the model's own."""
        inside = self._inside(names)
        if not inside or self._universe.cells(names) > LOCAL_CELLS:
            return None
        if not (self._everywhere or names in inside):
            return None
        if names not in self._kept:
            found = self._corrected(names, inside)
            most = _memory.at_most(8 * _memory.ARRAY, KEPT_CELLS)  # an eighth of the limit
            if sum(table.size for table in self._kept.values()) + found.size > most:
                self._kept = {}
            self._kept[names] = found
        return self._kept[names]

    def _inside(self, names: Names) -> list[Names]:
        """What was measured outside the model on some of these attributes, in that order."""
        if 2 ** len(names) > len(self.outside):
            return [s for s in self.outside if set(s) <= set(names)]
        return sorted((s for s in subsets(names, 2) if s in self._place), key=self._place.__getitem__)

    def _corrected(self, names: Names, inside: list[Names]) -> Array:
        table = self._marginal(names)
        smaller = [s for s in inside if s != names]
        targets = self._targets(names, smaller)
        if smaller:
            table = raked(table, names, targets)
        if names in inside:
            table = raked(fitted(names, table, self._evidence, self._rows), names, targets)
        return table

    def _targets(self, names: Names, outside: list[Names]) -> dict[Names, Array]:
        """The tables inside ``names`` that sums must agree with."""
        shared = {tuple(n for n in top if n in names) for top in self._tops} - {(), names}
        targets = {s: self._marginal(s) for s in _largest(shared)}
        for s in _largest(set(outside)):
            table = self.table(s)
            assert table is not None
            targets[s] = table
        return targets

    def records(self, of_groups: Hypothesis, rows: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Records (of groups) whose counts match the model's tables and the corrections."""
        if not (self.outside and self._everywhere):
            return of_groups.sample(rows, rng, rounded=True)
        pool = of_groups.sample(max(rows, min(POOL * rows, LARGEST_POOL)), rng, rounded=True)
        targets = {top: self._marginal(top) for top in self._tops} | self._strongest()
        first = [pool[:, self._universe.index(name)] for name in self.outside[-1]]
        pool = pool[np.lexsort(first)]  # so that its counts, drawn at even steps of weight, are rounded and not random
        cumulative = np.cumsum(self._weights(pool, targets))
        wanted = (np.arange(rows) + rng.random()) / rows * cumulative[-1]
        places = np.minimum(np.searchsorted(cumulative, wanted, side="right"), len(pool) - 1)
        return np.asfortranarray(pool[rng.permutation(places)])

    def _strongest(self) -> dict[Names, Array]:
        """The corrections that records follow, those that move the model's tables most first."""
        found = {s: table for s in _largest(set(self.outside)) if (table := self.table(s)) is not None}
        moved = {s: float(np.abs(table - self._marginal(s)).sum()) for s, table in found.items()}
        return {s: found[s] for s in sorted(found, key=moved.__getitem__, reverse=True)[:RAKED]}

    def _weights(self, pool: NDArray[np.int32], targets: Mapping[Names, Array]) -> Array:
        columns = np.ascontiguousarray(pool.T)
        plans = []
        for names, table in targets.items():
            strides = np.cumprod([1, *table.shape[:0:-1]])[::-1].astype(np.int32)
            plans.append((np.array([self._universe.index(n) for n in names]), strides, table.ravel()))
        weights, places = np.full(len(pool), 1 / len(pool)), np.empty(len(pool), np.int32)
        sums = np.empty(max(target.size for _, _, target in plans))
        for _ in range(POOL_SWEEPS):
            for chosen, strides, target in plans:
                rake(columns, chosen, strides, target, weights, places, sums[: target.size])
            weights /= weights.sum()
        return weights


class Believed(Hypothesis):
    """A fitted hypothesis with its corrections, as a distribution of values: asked and drawn from, not updated.

    The tables of different sets of attributes agree as far as corrections do (``Corrections``).
    """

    def __init__(
        self,
        of_groups: Hypothesis,
        corrections: Corrections,
        merging: Merging,
        by_values: Evidence,
        rows: float,
    ) -> None:
        """``by_values``: what was measured of single values of merged attributes."""
        super().__init__(merging.inner, of_groups.memory_limit, dense=False)
        self.universe = merging.universe
        self._of_groups, self._corrections, self._merging = of_groups, corrections, merging
        self._by_values, self._rows = by_values, rows

    @property
    def cliques(self) -> tuple[Names, ...]:
        return self._of_groups.cliques

    @property
    def factors(self) -> dict[Names, Array]:
        """The log tables of the model: of groups of values, and without corrections."""
        return self._of_groups.factors

    def add_factors(self, factors: Mapping[Names, Array]) -> None:
        raise InvalidInput(
            "A hypothesis with corrections must stay as it was fitted. Found a factor to add. Ask within=, and it is refitted."
        )

    def copy(self) -> Hypothesis:
        return self  # nothing changes it

    def expect(self, sets: Sequence[Names]) -> None:
        self._of_groups.expect(sets)

    def _computed(self, names: Names) -> Array:
        if not names:
            return np.ones(())
        table = self._merging.spread(names, self._groups(names))
        if self._is_measured(names):
            table = fitted(names, table, self._by_values, self._rows)
        return np.asarray(table / table.sum())

    def _groups(self, names: Names) -> Array:
        found = self._corrections.table(names)
        return self._of_groups.marginal(names) if found is None else found

    def _is_measured(self, names: Names) -> bool:
        """Whether single values were, together."""
        return len(names) > 1 and self._merging.touches(names) and names in self._by_values

    def answer(self, query: Linear) -> float:
        names = query.attributes
        if not names:
            return float(query.table)
        if self._is_measured(names):
            return query.dot(self.marginal(names))
        found = self._corrections.table(names)
        asked = self._merging.expected(query)
        return self._of_groups.answer(asked) if found is None else asked.dot(found)

    def sample(self, rows: int, rng: np.random.Generator, *, rounded: bool = False) -> NDArray[np.int32]:
        """``rounded`` is what corrections are drawn by; independent records are those of the tree."""
        if rounded:
            codes = self._corrections.records(self._of_groups, int(rows), rng)
        else:
            codes = self._of_groups.sample(rows, rng)
        return self._merging.drawn(codes, rng.random((len(codes), len(self._merging.groups))))


def raked(table: Array, names: Names, targets: Mapping[Names, Array]) -> Array:
    """The table scaled, again and again, to have these sums: scaled to the one, it is summed for the next in the same pass."""
    table = np.maximum(table, 1e-12 / table.size)
    axes = [tuple(i for i, n in enumerate(names) if n in s) for s in targets]
    wanted = list(targets.values())
    found = fold(table.shape, axes[0]).sum(table) if axes else np.ones(())
    for _ in range(SWEEPS if table.size <= LARGE else FEWER_SWEEPS):
        apart = 0.0
        for i, target in enumerate(wanted):
            apart = max(apart, float(np.abs(found - target).sum()))
            scale, onto = update_folds(table.shape, axes[i], axes[(i + 1) % len(axes)])
            found = scale.times(table, target / np.maximum(found, 1e-300), onto)
        if apart < AGREES:
            break
    return np.asarray(table / table.sum())


def _largest(sets: set[Names]) -> list[Names]:
    return sorted(s for s in sets if not any(set(s) < set(t) for t in sets))
