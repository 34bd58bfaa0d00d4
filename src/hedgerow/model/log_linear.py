"""Fit the log-linear hypothesis to all measurements.

    p(x) ∝ exp(Σ_s θ_s(x_s) + Σ_q t_q·q(x))       one table per attribute set s, one number per single query q
    minimise  n·log Z(θ) − ⟨θ, y⟩ + ½ Σ a·θ²       y least-squares counts of the measurements, a their ridge

The objective is the dual of a maximum-entropy problem: its optimum is the distribution of largest entropy whose
counts n·μ stay near y, with squared deviations weighted by 1/a. The ridge is a = max(v/(n·h), c·√v), with v the
variance of a cell and h the hypothesis' marginal before the set was added. It trusts a noisy cell as much as the
table around it deserves, and keeps the potentials of cells with negative noisy counts from running to −∞. Blocks of a
table's cells may have potentials and ridges of their own beside those of the cells. The problem is convex and smooth.
It is solved by L-BFGS with the diagonal 1/(n·μ + a) as preconditioner, warm-started from the last fit (Nocedal &
Wright, ch. 7).

``FlatSums`` adds all tables of a model to its cliques, and sums its cliques onto all tables, in two compiled loops.
This suits a model of many small tables, whose arithmetic takes less time than a function call for each: every cell of
a table's clique has the place of its parameter, computed once. ``compile_ahead`` compiles all loops of large models
while a table is read.

Everything here is post-processing of released values.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._compiled import compile_lazily
from hedgerow._types import Array, Names
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.model.junction_tree import FEW_CLIQUES, JunctionTree
from hedgerow.model.small_tables import SmallTables, fits
from hedgerow.model.triangulation import FEW, cells_with
from hedgerow.query.linear import Linear
from hedgerow.universe.attributes import Integers
from hedgerow.universe.universe import Universe, subsets

MEMORY = 20  # number of pairs that L-BFGS keeps


@dataclass(frozen=True, eq=False)
class Target:
    """The target of a table or query of the model: counts y and ridge a (for each cell, or one number)."""

    counts: Array
    ridge: Array
    blocks: tuple[BlockSums, ...] = ()


@dataclass(frozen=True, eq=False)
class BlockSums:
    """Sums over blocks of a table's cells: the block of each cell, and a ridge for each block."""

    place: NDArray[np.int64]
    ridge: Array


class _Parts:
    """θ as a sum of parts, one for each cell and one for each block that contains it, laid end to end."""

    def __init__(self, targets: Sequence[Target]) -> None:
        ridges = [np.broadcast_to(t.ridge, t.counts.shape).ravel() for t in targets]
        starts = np.cumsum([0, *(t.counts.size for t in targets)])
        self._cells = end = int(starts[-1])
        self._blocks: list[tuple[slice, NDArray[np.int64], slice]] = []
        for target, start in zip(targets, starts, strict=False):
            for blocks in target.blocks:
                own = slice(end, end := end + blocks.ridge.size)
                self._blocks.append((slice(start, start + target.counts.size), blocks.place, own))
                ridges.append(blocks.ridge)
        self.ridge = np.concatenate(ridges)

    def whole(self, parts: Array) -> Array:
        """Add up the parts, cell by cell."""
        if not self._blocks:
            return parts
        total = parts[: self._cells].copy()
        for cells, place, own in self._blocks:
            total[cells] += parts[own][place]
        return total

    def sums(self, values: Array) -> Array:
        """Return the values of cells, followed by their sums over blocks."""
        sums = [np.bincount(place, values[cells], own.stop - own.start) for cells, place, own in self._blocks]
        return np.concatenate([values, *sums]) if sums else values

    def split(self, whole: Array) -> Array:
        """Split a sum into parts, weighted by the ridges.

        The largest blocks take what their cells have in common, then the smaller ones.
        """
        parts = np.concatenate([whole, np.zeros(self.ridge.size - self._cells)])
        for cells, place, own in reversed(self._blocks):
            a = self.ridge[cells]
            common = np.bincount(place, a * parts[cells]) / (self.ridge[own] + np.bincount(place, a))
            parts[own] = common
            parts[cells] -= common[place]
        return parts


class LogLinear:
    """The model's structure and parameters: tables on a downward-closed family of attribute sets, and queries."""

    def __init__(
        self, universe: Universe, sets: Iterable[Names], queries: Mapping[object, Linear] | None = None
    ) -> None:
        self.universe = universe
        self.sets = sorted(sets, key=lambda s: (len(s), s))
        self.queries = dict(queries or {})
        spans = {*self.sets, *(q.attributes for q in self.queries.values())}
        self.tops = sorted(s for s in spans if not any(set(s) < set(t) for t in spans))
        self.tree = JunctionTree(universe, self.tops)
        self._flat = None if self.queries else FlatSums.plan(self.tree, self.sets)
        self._plans = [self.tree.marginal_plan(top) for top in self.tops]
        self._parts = [self._part(s) for s in self.sets]
        self._query_parts = [self._part(q.attributes) for q in self.queries.values()]
        shapes = [universe.sizes(s) for s in self.sets] + [()] * len(self.queries)
        self._cuts = np.cumsum([0, *(math.prod(shape) for shape in shapes)])
        self._shapes = shapes
        self.theta = np.zeros(self._cuts[-1])
        self._beliefs: list[Array] | None = None  # beliefs at the parameters that were evaluated last
        self._settled = False  # True if those parameters are ``theta``
        self._small: SmallTables | None = None  # small tables computed from those beliefs

    def _part(self, names: Names) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """Return the top set that contains these names, their shape along its axes, and the axes to sum away."""
        home = next(i for i, top in enumerate(self.tops) if set(names) <= set(top))
        top = self.tops[home]
        wide = tuple(self.universe[n].size if n in names else 1 for n in top)
        return home, wide, tuple(i for i, n in enumerate(top) if n not in names)

    def split(self, flat: Array) -> list[Array]:
        """Return the parameters of each set and query, as views of a flat array."""
        cuts = self._cuts
        return [flat[a:b].reshape(s) for a, b, s in zip(cuts[:-1], cuts[1:], self._shapes, strict=True)]

    def tables(self) -> list[Array]:
        """Return the log tables of the top sets, including those of their subsets and the queries."""
        return self._tables(self.theta)

    def _tables(self, flat: Array) -> list[Array]:
        """Return the log tables of the top sets for these parameters."""
        tables = [np.zeros(self.universe.sizes(top)) for top in self.tops]
        pieces = self.split(flat)
        for piece, (home, wide, _) in zip(pieces, self._parts, strict=False):
            tables[home] += piece.reshape(wide)
        for piece, query, (home, wide, _) in zip(
            pieces[len(self.sets) :], self.queries.values(), self._query_parts, strict=True
        ):
            tables[home] += float(piece) * query.table.reshape(wide)
        return tables

    def evaluate(self, flat: Array) -> tuple[float, Array]:
        """Return log Z and the expected statistics: the marginals on every set, then the answers to every query."""
        self._settled, self._small = False, None
        if self._beliefs is None:
            self._buffer = np.empty(self.tree.cells)  # reused, because fresh memory would cost more time than the sums
            self._beliefs = self.tree.split(self._buffer)
        potentials, cliques = self._buffer, self._beliefs
        if self._flat is not None:
            self._flat.potentials(flat, potentials)
            log_partition, means = self.tree.calibrate_flat(potentials), np.empty_like(flat)
            self._flat.means(potentials, means)
            return log_partition, means
        potentials.fill(0.0)
        for (home, fold), table in zip(self._plans, self._tables(flat), strict=True):
            fold.add(cliques[home], table)
        log_partition = self.tree.calibrate_flat(potentials)
        tops = [fold.sum(cliques[home]) for home, fold in self._plans]
        means = np.empty_like(flat)
        for mean, (home, _, away) in zip(self.split(means), self._parts, strict=False):
            mean[...] = tops[home].sum(axis=away) if away else tops[home]
        for i, (query, (home, wide, _)) in enumerate(zip(self.queries.values(), self._query_parts, strict=True)):
            means[len(means) - len(self.queries) + i] = float((tops[home] * query.table.reshape(wide)).sum())
        return log_partition, means

    def grow(self, sets: Iterable[Names], query: Linear | None = None) -> LogLinear:
        """Return the same distribution in a family that also has these sets, their subsets and the query."""
        family = {*self.sets, *(s for names in sets for s in subsets(names, 1))}
        queries = self.queries if query is None else {**self.queries, query.key: query}
        if len(family) == len(self.sets) and len(queries) == len(self.queries):
            return self
        larger = LogLinear(self.universe, family, queries)
        old = dict(zip([*self.sets, *self.queries], self.split(self.theta), strict=True))
        for name, piece in zip([*larger.sets, *larger.queries], larger.split(larger.theta), strict=True):
            if name in old:
                piece[...] = old[name]
        return larger

    def settle(self, flat: Array) -> None:
        """Set the parameters."""
        self.theta, self._settled = flat, False

    def beliefs(self) -> list[Array]:
        """Return the current probabilities on every clique of the tree: views that the next fit overwrites."""
        if not self._settled:
            self.evaluate(self.theta)
            self._settled = True
        assert self._beliefs is not None
        return self._beliefs

    def marginal(self, names: Names) -> Array:
        """Return the model's current table on these attributes."""
        if self._is_small(names):
            return self._small_tables().marginal(names)
        return self.tree.marginal(self.beliefs(), names)

    def marginals(self, sets: Sequence[Names]) -> list[Array]:
        """Return many tables; their common parts are computed once."""
        small = self._small_tables()
        small.expect(names for names in sets if self._is_small(names))
        found = [self.marginal(names) for names in sets]
        small.expect(())
        return found

    def _is_small(self, names: Names) -> bool:
        return self.tree.home(names) is None and fits(self.tree, names)

    def _small_tables(self) -> SmallTables:
        """Return the small tables of the current beliefs."""
        beliefs = self.beliefs()
        if self._small is None:
            self._small = SmallTables(self.tree, beliefs)
        return self._small

    def hypothesis(self, memory_limit: int | None = None) -> Hypothesis:
        """Return the model as a hypothesis."""
        made = Hypothesis(self.universe, memory_limit, final=True)
        made.add_factors(dict(zip(self.tops, self.tables(), strict=True)))
        return made


class LocalModel:
    """A correction of a larger model on a few attributes: p(x) ∝ base(x)·exp(Σ_s θ_s(x_s))."""

    def __init__(self, names: Names, base: Array, sets: Sequence[Names]) -> None:
        self._base = np.maximum(base, 1e-12 / base.size)
        self._wide = [tuple(m if n in s else 1 for n, m in zip(names, base.shape, strict=True)) for s in sets]
        self._away = [tuple(i for i, n in enumerate(names) if n not in s) for s in sets]
        self._cuts = np.cumsum([0, *(math.prod(w) for w in self._wide)])
        self.theta = np.zeros(self._cuts[-1])

    def table(self) -> Array:
        """Return the corrected probabilities."""
        weights = self._weights(self.theta)[0]
        return np.asarray(weights / weights.sum())

    def settle(self, flat: Array) -> None:
        """Set the parameters."""
        self.theta = flat

    def evaluate(self, flat: Array) -> tuple[float, Array]:
        """Return log Z and the marginals on every set."""
        weights, top = self._weights(flat)
        total = float(weights.sum())
        means = [np.asarray(weights.sum(axis=away)).ravel() for away in self._away]
        return math.log(total) + top, np.concatenate(means) / total

    def _weights(self, flat: Array) -> tuple[Array, float]:
        """Return exp of the log weights less their maximum, and that maximum."""
        logs = np.log(self._base)
        for a, b, wide in zip(self._cuts[:-1], self._cuts[1:], self._wide, strict=True):
            logs = logs + flat[a:b].reshape(wide)
        top = float(logs.max())
        return np.exp(logs - top), top


def minimize(
    model: LogLinear | LocalModel,
    targets: Sequence[Target],
    rows: float,
    *,
    steps: int,
    tolerance: float,
    origin: Array | None = None,
) -> float:
    """Fit ``model.theta`` in place until the decrement ⟨g, P g⟩ is below the tolerance (in nats); return the objective.

    The fit starts from the present parameters. ``origin`` are the parameters that the ridge draws to, 0 by default:
    those of a distribution that is believed before anything is measured.
    """
    y = np.concatenate([t.counts.ravel() for t in targets])
    parts = _Parts(targets)
    a = parts.ridge

    def moved_to(x: Array) -> Array:
        return parts.whole(x) if origin is None else origin + parts.whole(x)

    def objective(x: Array) -> tuple[float, Array, Array]:
        theta = moved_to(x)
        log_partition, means = model.evaluate(theta)
        value = rows * log_partition - float(theta @ y) + 0.5 * float((a * x) @ x)
        return value, parts.sums(rows * means - y) + a * x, parts.sums(means)

    x = parts.split(model.theta if origin is None else model.theta - origin)
    value, gradient, means = objective(x)
    if not math.isfinite(value):  # a warm start from another scale of n may overflow; the uniform start never does
        x = np.zeros_like(x)
        value, gradient, means = objective(x)
    pairs: list[tuple[Array, Array, float]] = []
    for _ in range(steps):
        precondition = 1.0 / (rows * means + a)
        if gradient @ (precondition * gradient) < tolerance:
            break
        direction = _lbfgs(gradient, precondition, pairs)
        slope = -float(gradient @ direction)
        size = 1.0 if pairs else min(1.0, 2.0 / max(float(np.abs(direction).max()), 1e-12))
        while True:  # backtrack to the minimum of a parabola
            moved = x - size * direction
            new_value, new_gradient, new_means = objective(moved)
            if new_value <= value + 1e-4 * size * slope or size < 1e-8:
                break
            rise = new_value - value - size * slope
            size *= min(0.5, max(0.1, -slope * size / (2 * rise))) if math.isfinite(new_value) else 0.1
        if size < 1e-8:
            if not pairs:
                break
            pairs = []
            continue
        s, v = moved - x, new_gradient - gradient
        curvature = float(s @ v)
        if curvature > 0:
            pairs = [*pairs, (s, v, 1 / curvature)][-MEMORY:]
        x, value, gradient, means = moved, new_value, new_gradient, new_means
    model.settle(moved_to(x))
    return value


def _lbfgs(gradient: Array, precondition: Array, pairs: list[tuple[Array, Array, float]]) -> Array:
    """Return the L-BFGS direction: the two-loop recursion, with the preconditioner scaled to the last pair."""
    q = gradient.copy()
    weights = []
    for s, v, r in reversed(pairs):
        w = r * float(s @ q)
        weights.append(w)
        q -= w * v
    q *= precondition
    if pairs:
        s, v, _ = pairs[-1]
        q *= float(s @ v) / float(v @ (precondition * v))
    for (s, v, r), w in zip(pairs, reversed(weights), strict=True):
        q += s * (w - r * float(v @ q))
    return q


MOST_PLACES = 1_000_000  # with more places in all, adding tables one by one along memory is faster (``memory_layout``)
FEW_TABLES, FEW_PLACES = 32, 1 << 17  # up to this size tables are added one by one, and nothing is compiled


class FlatSums:
    """The map between parameters of tables on ``sets`` and beliefs on the cliques of a tree, both laid end to end."""

    def __init__(self, tree: JunctionTree, sets: Sequence[Names], homes: Sequence[int]) -> None:
        starts = np.cumsum([0, *(int(np.prod(shape)) for shape in tree.shapes)])
        places, first = [np.zeros(0, np.int32)], 0
        for names, home in zip(sets, homes, strict=True):
            shape = tree.shapes[home]
            place, stride = np.full((1,) * len(shape), first), 1
            for axis in reversed(range(len(shape))):
                if tree.cliques[home][axis] in names:
                    line = stride * np.arange(shape[axis])
                    place = place + line.reshape([-1 if k == axis else 1 for k in range(len(shape))])
                    stride *= shape[axis]
            places.append(np.broadcast_to(place, shape).reshape(-1).astype(np.int32))
            first += stride
        self._places = np.concatenate(places)
        self._few = len(sets) <= FEW_TABLES and self._places.size <= FEW_PLACES
        self._starts = starts[list(homes)].astype(np.int64)
        self._ends = starts[[home + 1 for home in homes]].astype(np.int64)
        self._tables = list(zip(self._starts.tolist(), self._ends.tolist(), places[1:], strict=True))

    @staticmethod
    def plan(tree: JunctionTree, sets: Sequence[Names]) -> FlatSums | None:
        """Return the map; None if it would be large, or if a set lies in no clique."""
        homes = [tree.home(names) for names in sets]
        inside = [home for home in homes if home is not None]
        if len(inside) < len(homes) or sum(int(np.prod(tree.shapes[h])) for h in inside) > MOST_PLACES:
            return None
        return FlatSums(tree, sets, inside)

    def potentials(self, parameters: Array, found: Array) -> None:
        """Set the cliques' log potentials from the parameters."""
        found.fill(0.0)
        if not self._few:
            _add(parameters, self._starts, self._ends, self._places, found)
        for start, end, places in self._tables if self._few else ():
            found[start:end] += parameters[places]

    def means(self, beliefs: Array, found: Array) -> None:
        """Set the tables' sums from the cliques' beliefs."""
        found.fill(0.0)
        if not self._few:
            _sum(beliefs, self._starts, self._ends, self._places, found)
        for start, end, places in self._tables if self._few else ():
            found += np.bincount(places, beliefs[start:end], minlength=found.size)


@compile_lazily()
def _add(parameters: Array, starts: Any, ends: Any, places: Any, found: Array) -> None:
    """Add parameters to the cells of their cliques."""
    at = 0
    for t in range(starts.size):
        for i in range(starts[t], ends[t]):
            found[i] += parameters[places[at]]
            at += 1


@compile_lazily()
def _sum(beliefs: Array, starts: Any, ends: Any, places: Any, found: Array) -> None:
    """Add the cells of cliques to the sums of their tables."""
    at = 0
    for t in range(starts.size):
        for i in range(starts[t], ends[t]):
            found[places[at]] += beliefs[i]
            at += 1


@contextlib.contextmanager
def compile_ahead(universe: Universe) -> Iterator[None]:
    """Compile in a thread if a model of this universe needs compiled loops; wait for the thread on exit."""
    if len(universe.names) <= FEW:
        yield
        return
    thread = threading.Thread(target=compile_all, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def compile_all() -> None:
    """Run every loop that a large model needs once, on a made-up chain of attributes.

    A failure is ignored here: the first real use fails again and can say what was being done.
    """
    names = [f"a{i}" for i in range(1 + max(FEW, FEW_CLIQUES, FEW_TABLES))]
    pairs = list(itertools.pairwise(names))
    with contextlib.suppress(Exception):
        tree = JunctionTree(Universe({name: Integers(0, 1) for name in names}), pairs)
        tree.calibrate(tree.zeros())
        sums = FlatSums.plan(tree, [*pairs, (names[0],)])
        assert sums is not None
        parameters, beliefs = np.zeros(4 * len(pairs) + 2), np.zeros(tree.cells)
        sums.potentials(parameters, beliefs)
        sums.means(beliefs, parameters)
        cells_with(tree, pairs, [(names[0], names[2])])
