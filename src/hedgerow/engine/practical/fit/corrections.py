"""Correct the model's small tables by measurements, each count only as far as it stands out of the noise.

Measurements that do not fit into the junction tree correct the tables around them (``Corrections``):

    outside    the measured sets on which the model has no table
    H_A        the model's table on attributes A
    B_A        the belief on A: H_A if A contains no set outside. Otherwise H_A raked to B_s for every set s ⊂ A outside
               and to the model's own tables inside A (iterative proportional fitting, Deming & Stephan 1940), so that
               sums over A agree with smaller questions as far as raking converges. If A itself is outside, the table is
               fitted to A's counts, as the model's own tables are, and raked again.

Synthetic records are drawn the same way: a pool is sampled from the tree, its weights are raked to the model's tables
and to the largest corrections, and records are drawn by weight.

A fit draws each noisy count to its prior, ``as_target``:

    y, v    the counts of a table and the variance of each
    n·h     their prior: the counts that were believed before the measurement

A count is drawn by the ridge a = max(v/(n·h), c·√v) of ``log_linear``, as if log(count / n·h) had variance 1 before
anything was measured. A count that stands out of the noise by itself is not drawn.

In a table of wide attributes hardly any single cell stands out, although thousands together may: for example all
cells that an independent guess puts beside the diagonal of two dependent numbers. Blocks of neighbouring values are
therefore counted and drawn as well, each with the noise of its sum (``log_linear.BlockSums``). A cell's logarithm is
the sum of its own part and of its blocks' parts.

Everything here is a function of released values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow import _memory
from hedgerow._types import Array, Names
from hedgerow.engine.practical.fit.interactions import InteractionPrior, mean_pair_table, with_margins
from hedgerow.engine.practical.fit.residuals import Evidence
from hedgerow.engine.practical.fit.value_groups import ValueGroups
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.model.kernels import rake
from hedgerow.model.log_linear import BlockSums, LocalModel, Target, minimize
from hedgerow.model.memory_layout import fold, update_folds
from hedgerow.query.linear import Linear
from hedgerow.universe.universe import Universe, subsets

RIDGE_FLOOR = 0.2  # c above: the ridge is at least this many standard deviations
STANDS_OUT = 3.0  # a count this many standard deviations above its prior is believed as it is
WIDE = 24  # an attribute with at least this many values is divided into blocks
STRIDES = (4, 16)  # numbers of neighbouring values that make a block


def ridge(
    rows: float,
    prior: Array,
    counts: Array,
    variance: float | Array,
    trust: float = 1.0,
    stands_out: float = STANDS_OUT,
) -> Array:
    """Return how strongly each count is drawn to its prior; counts ``stands_out`` deviations above it are not drawn."""
    sd = np.sqrt(variance)
    believed = np.maximum(np.maximum(rows * prior, counts - stands_out * sd), 0.01 * sd)
    return np.asarray(np.maximum(variance / (trust * believed), RIDGE_FLOOR * sd))


def blocks(
    rows: float, prior: Array, counts: Array, variance: float, stands_out: float = STANDS_OUT
) -> tuple[BlockSums, ...]:
    """Return the blocks of a table of several attributes, finer ones first; none if no attribute is wide."""
    found = []
    for stride in STRIDES if counts.ndim > 1 else ():
        cuts = [np.arange(m) // (stride if m >= max(WIDE, 2 * stride) else 1) for m in counts.shape]
        shape = tuple(int(cut[-1]) + 1 for cut in cuts)
        if math.prod(shape) < counts.size:
            place = np.ravel_multi_index(np.ix_(*cuts), shape).ravel()
            before, now = (np.asarray(np.bincount(place, table.ravel()), float) for table in (prior, counts))
            noise = np.asarray(variance * np.bincount(place), float)
            found.append(BlockSums(place, ridge(rows, before, now, noise, stands_out=stands_out)))
    return tuple(found)


def as_target(rows: float, prior: Array, counts: Array, variance: float) -> Target:
    """Bundle a measured table with its ridge and blocks into a target of the fit."""
    return Target(counts, ridge(rows, prior, counts, variance), blocks(rows, prior, counts, variance))


LOCAL_CELLS = 4_000_000  # a larger table is not corrected
KEPT_CELLS = 16_000_000  # most cells of corrected tables that are cached
LOCAL_STEPS = 40  # most steps of the fit of one table
SWEEPS, LARGE, FEWER_SWEEPS = 200, 100_000, 30  # raking sweeps of a table; a table above LARGE cells gets fewer
FEW_SWEEPS = 10  # raking sweeps where all pairs were measured: their estimates agree only as far as the noise lets them
AGREES = 1e-9  # raking ends when the sums differ by less than this in all cells together
POOL_SWEEPS, RAKED = 6, 400  # raking sweeps of records, and the number of corrections (the largest) they follow
POOL, LARGEST_POOL = 4, 4_000_000  # records in the pool for each record drawn, and the most in all


def fit_table(names: Names, table: Array, evidence: Evidence, rows: float) -> Array:
    """Return the table fitted to the evidence about it."""
    counts, variance = evidence.estimate(names)
    local = LocalModel(names, table, [names])
    minimize(local, [as_target(rows, table, counts, variance)], rows, steps=LOCAL_STEPS, tolerance=0.5)
    return local.table()


class Corrections:
    """The belief B_A for every A, from the model's H_A, as of one moment: later measurements do not change it."""

    def __init__(
        self,
        universe: Universe,
        marginal: Callable[[Names], Array],
        model: tuple[Sequence[Names], Sequence[Names]],
        evidence: Evidence,
        rows: float,
        *,
        everywhere: bool,
        interactions: InteractionPrior | None = None,
        before: Mapping[Names, Array] | None = None,
    ) -> None:
        """``model`` holds the model's sets and the largest of them.

        With ``everywhere``, larger tables and records are corrected too. Without it, only the tables of sets outside
        are. With ``interactions``, all measured pairs are estimated by themselves, and count as outside. ``before``
        holds what was believed of the model's sets before it took them.
        """
        self._universe, self._marginal, self._evidence, self._rows = universe, marginal, evidence, rows
        sets, self._tops = model
        self._before = {} if before is None else before
        known = {s for s in sets if interactions is None or len(s) > 2}
        self.outside = [s for s in evidence.sets if len(s) > 1 and s not in known]
        self._place = {s: i for i, s in enumerate(self.outside)}
        self._everywhere, self._interactions = everywhere, interactions
        self._kept: dict[Names, Array] = {}

    def table(self, names: Names) -> Array | None:
        """Return B_A, or None where it is the model's own table."""
        inside = self._inside(names)
        if not inside or self._universe.cells(names) > LOCAL_CELLS:
            return None
        if not (self._everywhere or names in inside):
            return None
        if names not in self._kept:
            found = self._correct(names, inside)
            most = _memory.at_most(8 * _memory.ARRAY, KEPT_CELLS)  # at most an eighth of the memory limit
            if sum(table.size for table in self._kept.values()) + found.size > most:
                self._kept = {}
            self._kept[names] = found
        return self._kept[names]

    def _inside(self, names: Names) -> list[Names]:
        """List the sets outside the model that lie within these attributes, in the order of ``outside``."""
        if 2 ** len(names) > len(self.outside):
            return [s for s in self.outside if set(s) <= set(names)]
        return sorted((s for s in subsets(names, 2) if s in self._place), key=self._place.__getitem__)

    def _correct(self, names: Names, inside: list[Names]) -> Array:
        """Rake the model's table to the corrections inside it, and fit it to its own counts if it was measured."""
        if self._interactions is not None and len(names) == 2:
            now = before = with_margins(self._marginal(names), names, self._evidence, self._rows)
            if names in self._before:
                before = with_margins(self._before[names], names, self._evidence, self._rows)
            return mean_pair_table(self._interactions, before, now, names, self._evidence) / self._rows
        table = self._marginal(names)
        smaller = [s for s in inside if s != names]
        targets = self._targets(names, smaller)
        if smaller:
            table = rake_table(table, names, targets, FEW_SWEEPS if self._interactions is not None else SWEEPS)
        if names in inside:
            table = rake_table(fit_table(names, table, self._evidence, self._rows), names, targets)
        return table

    def _targets(self, names: Names, outside: list[Names]) -> dict[Names, Array]:
        """Return the tables inside ``names`` that sums must agree with."""
        shared = {tuple(n for n in top if n in names) for top in self._tops} - {(), names}
        targets = {s: self._marginal(s) for s in _largest(shared)}
        for s in _largest(set(outside)):
            table = self.table(s)
            assert table is not None
            targets[s] = table
        return targets

    def records(self, of_groups: Hypothesis, rows: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Sample records (of groups) whose counts match the model's tables and the corrections."""
        if not (self.outside and self._everywhere):
            return of_groups.sample(rows, rng, rounded=True)
        pool = of_groups.sample(max(rows, min(POOL * rows, LARGEST_POOL)), rng, rounded=True)
        targets = {top: self._marginal(top) for top in self._tops} | self._strongest()
        first = [pool[:, self._universe.index(name)] for name in self.outside[-1]]
        pool = pool[np.lexsort(first)]  # sorted, so that drawing at even steps of weight rounds its counts
        cumulative = np.cumsum(self._weights(pool, targets))
        wanted = (np.arange(rows) + rng.random()) / rows * cumulative[-1]
        places = np.minimum(np.searchsorted(cumulative, wanted, side="right"), len(pool) - 1)
        return np.asfortranarray(pool[rng.permutation(places)])

    def _strongest(self) -> dict[Names, Array]:
        """Return the corrections that records follow: those that move the model's tables most."""
        found = {s: table for s in _largest(set(self.outside)) if (table := self.table(s)) is not None}
        moved = {s: float(np.abs(table - self._marginal(s)).sum()) for s, table in found.items()}
        return {s: found[s] for s in sorted(found, key=moved.__getitem__, reverse=True)[:RAKED]}

    def _weights(self, pool: NDArray[np.int32], targets: Mapping[Names, Array]) -> Array:
        """Return weights of the pool's records, raked to the target tables."""
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


class CorrectedHypothesis(Hypothesis):
    """A fitted hypothesis with its corrections, as a distribution over values; it is never updated.

    The tables of different attribute sets agree as far as the corrections do (``Corrections``).
    """

    def __init__(
        self,
        of_groups: Hypothesis,
        corrections: Corrections,
        merging: ValueGroups,
        by_values: Evidence,
        rows: float,
    ) -> None:
        """``by_values`` is the evidence about single values of merged attributes."""
        super().__init__(merging.inner, of_groups.memory_limit, dense=False)
        self.universe = merging.universe
        self._of_groups, self._corrections, self._merging = of_groups, corrections, merging
        self._by_values, self._rows = by_values, rows

    @property
    def cliques(self) -> tuple[Names, ...]:
        """The cliques of the model's tree."""
        return self._of_groups.cliques

    @property
    def factors(self) -> dict[Names, Array]:
        """The log tables of the model: of groups of values, without corrections."""
        return self._of_groups.factors

    def add_factors(self, factors: Mapping[Names, Array]) -> None:
        """Refuse: the hypothesis stays as it was fitted."""
        raise InvalidInput(
            "A hypothesis with corrections must stay as it was fitted. Found a factor to add. "
            "Ask a question with within= to have it refitted."
        )

    def copy(self) -> Hypothesis:
        """Return the hypothesis itself: nothing changes it."""
        return self

    def can_tabulate(self, attributes: Names, cells: int) -> bool:
        """Return True if the model makes the table on these attributes from tables of at most so many cells."""
        return self._of_groups.can_tabulate(attributes, cells)

    def expect(self, sets: Sequence[Names]) -> None:
        """Announce the tables that are asked for next."""
        self._of_groups.expect(sets)

    def _compute(self, names: Names) -> Array:
        """Return the table of values: the groups' table spread by shares, then fitted to measured values."""
        if not names:
            return np.ones(())
        table = self._merging.spread(names, self._groups(names))
        if self._is_measured(names):
            table = fit_table(names, table, self._by_values, self._rows)
        return np.asarray(table / table.sum())

    def _groups(self, names: Names) -> Array:
        """Return the corrected table of groups."""
        found = self._corrections.table(names)
        return self._of_groups.marginal(names) if found is None else found

    def _is_measured(self, names: Names) -> bool:
        """Return True if single values of these attributes were measured together."""
        return len(names) > 1 and self._merging.touches(names) and names in self._by_values

    def answer(self, query: Linear) -> float:
        """Return the answer to a query, from the table of groups where that is enough."""
        names = query.attributes
        if not names:
            return float(query.table)
        if self._is_measured(names):
            return query.dot(self.marginal(names))
        found = self._corrections.table(names)
        asked = self._merging.expected_question(query)
        return self._of_groups.answer(asked) if found is None else asked.dot(found)

    def sample(self, rows: int, rng: np.random.Generator, *, rounded: bool = False) -> NDArray[np.int32]:
        """Sample records: with ``rounded`` they follow the corrections, else they are independent draws."""
        if rounded:
            codes = self._corrections.records(self._of_groups, int(rows), rng)
        else:
            codes = self._of_groups.sample(rows, rng)
        return self._merging.draw_values(codes, rng.random((len(codes), len(self._merging.groups))))


def rake_table(table: Array, names: Names, targets: Mapping[Names, Array], sweeps: int = SWEEPS) -> Array:
    """Scale the table repeatedly until it has these sums, or ``sweeps`` times.

    One pass scales the table to one target and sums it for the next.
    """
    table = np.maximum(table, 1e-12 / table.size)
    axes = [tuple(i for i, n in enumerate(names) if n in s) for s in targets]
    wanted = list(targets.values())
    found = fold(table.shape, axes[0]).sum(table) if axes else np.ones(())
    for _ in range(sweeps if table.size <= LARGE else min(sweeps, FEWER_SWEEPS)):
        apart = 0.0
        for i, target in enumerate(wanted):
            apart = max(apart, float(np.abs(found - target).sum()))
            scale, onto = update_folds(table.shape, axes[i], axes[(i + 1) % len(axes)])
            found = scale.times(table, target / np.maximum(found, 1e-300), onto)
        if apart < AGREES:
            break
    return np.asarray(table / table.sum())


def _largest(sets: set[Names]) -> list[Names]:
    """Keep the sets that no other set contains, in order."""
    return sorted(s for s in sets if not any(set(s) < set(t) for t in sets))
