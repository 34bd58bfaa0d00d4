"""Exact marginals of a log-linear model over many attributes, by a junction tree.

Lauritzen & Spiegelhalter, "Local computations with probabilities on graphical structures" (1988); Koller & Friedman,
"Probabilistic Graphical Models", ch. 9–10.

    P(x) = exp(Σ_C θ_C(x_C) − A)     θ_C: log potential of clique C,  A: log partition function
    S                                separator: the attributes that a clique shares with its parent
    W(r | s), Z(s)                   exp(θ + messages from below), and its sum over r, the rest of the clique

The tree is a forest over the maximal cliques of a triangulated graph, children before parents. One pass upward turns
every clique into the conditional W/Z = P(r | s), which costs one exp per cell; one pass downward multiplies it by
P(s).

Differs: messages go up as logarithms and down as probabilities. So there is no division of messages, and an entry far
below its neighbours keeps its relative accuracy however wide the range of the potentials.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.model import triangulation
from hedgerow.model.triangulation import bits

if TYPE_CHECKING:
    from hedgerow.model.memory_layout import Fold
    from hedgerow.universe.universe import Universe

BYTES_PER_CELL = 16  # memory per cell of a clique: its beliefs and one temporary of the same shape
FEW_CLIQUES, FEW_CELLS = 8, 1 << 14  # a tree of at most this size is calibrated without compiled code
ONCE_CLIQUES, ONCE_CELLS = 256, 1 << 20  # so is a larger one that is calibrated only once
LOWEST_LOG = -708.0  # exp of anything below counts as 0: it would be subnormal


def junction_cells(sizes: Mapping[str, int] | Universe, cliques: Iterable[Iterable[str]]) -> int:
    """Return the exact number of cells of the junction tree of these attribute sets. Nothing is allocated."""
    names = _sizes(sizes)
    return triangulation.cells(tuple(names.values()), frozenset(_mask(c, _positions(tuple(names))) for c in cliques))


class JunctionTree:
    """The structure of the model: maximal cliques, their forest, and operations on arrays over them.

    ``sizes`` gives the number of values of every attribute, in universe order; axes are always in that order.
    Attributes in no clique get one of their own. Nothing is allocated until ``zeros``. With ``dense`` there is one
    clique of all attributes.
    """

    def __init__(
        self, sizes: Mapping[str, int] | Universe, cliques: Iterable[Iterable[str]] = (), *, dense: bool = False
    ) -> None:
        self.sizes = _sizes(sizes)
        names = tuple(self.sizes)
        self._position = _positions(names)
        sets = frozenset(_mask(c, self._position) for c in cliques)
        full = (1 << len(names)) - 1
        forest = [(full, -1)] if dense else triangulation.forest(tuple(self.sizes.values()), sets)
        self._masks = [mask for mask, _ in forest]
        self.parents = tuple(parent for _, parent in forest)
        self.cliques: tuple[tuple[str, ...], ...] = tuple(tuple(names[i] for i in bits(m)) for m in self._masks)
        self.shapes: tuple[tuple[int, ...], ...] = tuple(self._shape(c) for c in self.cliques)
        self._clique_cells = [math.prod(s) for s in self.shapes]
        self.cells: int = sum(self._clique_cells)
        self._by_size = sorted(range(len(self.cliques)), key=self._clique_cells.__getitem__)
        # For each attribute, the cliques that contain it, as bits: the smallest clique first.
        self._holding = dict.fromkeys(names, 0)
        for place, i in enumerate(self._by_size):
            for name in self.cliques[i]:
                self._holding[name] |= 1 << place
        shared = [m & self._masks[p] if p >= 0 else 0 for m, p in forest]
        self.separators: tuple[tuple[str, ...], ...] = tuple(tuple(names[i] for i in bits(m)) for m in shared)
        self._starts = [0, *accumulate(self._clique_cells)]

    @property
    def bytes(self) -> int:
        """The memory that calibration takes, in bytes."""
        return BYTES_PER_CELL * self.cells

    @property
    def largest(self) -> tuple[str, ...]:
        """The attributes of the largest clique."""
        return self.cliques[self._clique_cells.index(max(self._clique_cells))]

    def home(self, attributes: Iterable[str]) -> int | None:
        """Return the smallest clique that contains all these attributes; None if no clique does."""
        holding = (1 << len(self.cliques)) - 1
        for name in attributes:
            holding &= self._holding[name]
        return self._by_size[(holding & -holding).bit_length() - 1] if holding else None

    def axes(self, names: Iterable[str], clique: int) -> tuple[int, ...]:
        """Return the positions of these attributes among the axes of a clique."""
        wanted = set(names)
        return tuple(k for k, n in enumerate(self.cliques[clique]) if n in wanted)

    def zeros(self) -> list[Array]:
        """Return log potentials of the uniform distribution: one array per clique, all views of one flat array."""
        return self.split(np.zeros(self.cells))

    def split(self, flat: Array) -> list[Array]:
        """Return the cliques' arrays as views of one flat array."""
        return [
            flat[a:b].reshape(shape) for a, b, shape in zip(self._starts, self._starts[1:], self.shapes, strict=False)
        ]

    def marginal_plan(self, attributes: Sequence[str]) -> tuple[int, Fold]:
        """Return the home clique of these attributes, and the fold that sums onto them or adds a table."""
        from hedgerow.model.memory_layout import fold

        home = self.home(attributes)
        if home is None:
            raise InvalidInput(
                f"The attributes must lie in a clique. Found {tuple(attributes)!r}. Build the tree with them."
            )
        return home, fold(self.shapes[home], self.axes(attributes, home))

    def add(self, potentials: Sequence[Array], attributes: Sequence[str], log_table: Array) -> None:
        """Add a log table (axes in universe order) to the potentials of its home clique, in place."""
        home, fold = self.marginal_plan(attributes)
        fold.add(potentials[home], log_table)

    def calibrate(self, potentials: Sequence[Array]) -> tuple[list[Array], float]:
        """Return the probabilities on every clique, and the log partition function A = log Σ_x exp(Σ_C θ_C)."""
        flat = np.concatenate([np.ravel(p) for p in potentials], dtype=float)
        log_partition = self.calibrate_flat(flat)
        return self.split(flat), log_partition

    def calibrate_flat(self, flat: Array) -> float:
        """Calibrate in place, on the one array that ``split`` takes apart; return A.

        A small tree is calibrated with NumPy, because compiled code would not be worth its start.
        """
        if len(self.cliques) <= FEW_CLIQUES and self.cells <= FEW_CELLS:
            return self._calibrate_by_arrays(self.split(flat))
        return self._calibrate_by_loops(flat)

    def calibrate_once(self, flat: Array) -> float:
        """Calibrate a tree once, as ``calibrate_flat`` does, but without compiled code up to a larger size."""
        if len(self.cliques) <= ONCE_CLIQUES and self.cells <= ONCE_CELLS:
            return self._calibrate_by_arrays(self.split(flat))
        return self._calibrate_by_loops(flat)

    def _calibrate_by_loops(self, flat: Array) -> float:
        from hedgerow.model import kernels

        plan, indices, separators = self._program
        scratch = np.empty((2, separators))
        return kernels.calibrate(flat, plan, indices, scratch[0], scratch[1])

    def _calibrate_by_arrays(self, cliques: Sequence[Array]) -> float:
        """Turn log potentials into probabilities in place, equal to ``kernels.calibrate`` up to rounding."""
        log_partition, scales = 0.0, []
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for i, parent in enumerate(self.parents):  # children first
                others = self._axes_beside(i, self.separators[i])
                top = cliques[i].max(axis=others, keepdims=True)
                logs = cliques[i] - top
                cliques[i][...] = np.where(logs > LOWEST_LOG, np.exp(logs), 0.0)  # W(r | s)
                scales.append(cliques[i].sum(axis=others, keepdims=True))  # Z(s)
                message = top + np.log(scales[i])
                if parent < 0:
                    log_partition += float(message.reshape(()))
                else:
                    cliques[parent][...] += self._along(message, i, parent)
            for i in reversed(range(len(self.parents))):
                parent, above = self.parents[i], np.ones(())
                if parent >= 0:
                    above = cliques[parent].sum(axis=self._axes_beside(parent, self.separators[i]))
                cliques[i][...] *= above.reshape(scales[i].shape) / scales[i]  # P(r | s) P(s)
        return log_partition

    def _axes_beside(self, clique: int, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(k for k, name in enumerate(self.cliques[clique]) if name not in names)

    def _along(self, message: Array, child: int, parent: int) -> Array:
        """Lay a message over a child's separator along the axes of its parent."""
        shared = self.separators[child]
        return message.reshape([self.sizes[name] if name in shared else 1 for name in self.cliques[parent]])

    def marginal(self, beliefs: Sequence[Array], attributes: Sequence[str], *, memory_limit: float = math.inf) -> Array:
        """Return the probabilities on these attributes (in universe order), from calibrated beliefs.

        Where a table on the way would exceed the memory limit, they are computed for each value of the widest
        attribute by itself.
        """
        if self.home(attributes) is None:
            is_small = BYTES_PER_CELL * math.prod(self._shape(attributes)) <= memory_limit
            if is_small and not self.can_tabulate(attributes, memory_limit):
                return self._by_value(beliefs, attributes, memory_limit)
            return self.eliminate(beliefs, attributes, {}, memory_limit=memory_limit)
        home, fold = self.marginal_plan(attributes)
        return fold.sum_in_order(beliefs[home])

    def _by_value(self, beliefs: Sequence[Array], attributes: Sequence[str], memory_limit: float) -> Array:
        """Return the probabilities on these attributes, one value of the widest attribute after the other."""
        widest = max(range(len(attributes)), key=lambda i: self.sizes[attributes[i]])
        name, rest = attributes[widest], [*attributes[:widest], *attributes[widest + 1 :]]
        parts = [
            self.eliminate(beliefs, rest, {name: value}, memory_limit=memory_limit)
            for value in np.eye(self.sizes[name])
        ]
        return np.stack(parts, axis=widest)

    def can_tabulate(self, attributes: Sequence[str], memory_limit: float) -> bool:
        """Return True if no table on the way to that of these attributes exceeds the memory limit."""
        if self.home(attributes) is not None:
            return True
        try:
            self._steps(tuple(attributes), (), memory_limit)
        except TooLarge:
            return False
        return True

    def eliminate(
        self,
        beliefs: Sequence[Array],
        keep: Sequence[str],
        weights: Mapping[str, Array],
        *,
        memory_limit: float = math.inf,
    ) -> Array:
        """Return Σ_x P(x) times one weight vector per attribute in ``weights``, as a table over ``keep``.

        Variables are eliminated over the part of the forest that connects the attributes. No array past the memory
        limit is made: the sizes are checked first, on the structure alone.
        """
        waiting: dict[int, list[_Table]] = {}
        result = _Table((), np.ones(()))
        for step in self._steps(tuple(keep), tuple(weights), memory_limit):
            table = _Table(self.cliques[step.clique], beliefs[step.clique])
            if step.shared:
                table = table.condition_on(step.shared)
            for name in table.names:
                if name in weights and name not in step.shared:
                    table = table.weigh(name, weights[name])
            for arriving, names in zip(waiting.pop(step.clique, []), step.products, strict=True):
                table = table.times(arriving, names)
            table = table.onto(step.kept)
            if step.shared:
                waiting.setdefault(self.parents[step.clique], []).append(table)
            else:
                result = result.times(table, (*result.names, *table.names))
        return result.onto(tuple(keep)).values

    def sample(
        self, beliefs: Sequence[Array], rows: int, rng: np.random.Generator, *, rounded: bool = False
    ) -> NDArray[np.int32]:
        """Draw records (rows × attributes) from the root cliques down, each clique given what is already drawn.

        With ``rounded`` the draws are not independent: within each cell of what is already drawn, records are spread
        evenly over the cumulative probabilities, in random order, so that every count is its expectation rounded up
        or down.
        """
        codes = np.empty((rows, len(self.sizes)), np.int32, order="F")
        for i in reversed(range(len(self.cliques))):
            names, shared = self.cliques[i], self.separators[i]
            new = tuple(n for n in names if n not in shared)
            order = [names.index(n) for n in (*shared, *new)]
            cumulative = np.cumsum(np.transpose(beliefs[i], order))
            width = math.prod(self._shape(new))
            given = np.zeros(rows, np.int64)  # each record's cell of the shared attributes
            for name in shared:
                given *= self.sizes[name]
                given += codes[:, self._position[name]]
            first, last = given * width, (given + 1) * width - 1
            low = np.where(first > 0, cumulative[first - 1], 0.0)
            high = cumulative[last]
            share = _evenly(given, rng) if rounded else rng.random(rows)
            target = np.minimum(low + share * (high - low), np.nextafter(high, -1.0))
            cell = np.searchsorted(cumulative, target, side="right")  # never a cell of probability 0
            cell = np.clip(cell, first, last) - first
            for name in reversed(new):
                cell, codes[:, self._position[name]] = np.divmod(cell, self.sizes[name])
        return codes

    def _steps(self, keep: tuple[str, ...], weighted: tuple[str, ...], memory_limit: float) -> list[_Step]:
        """Return the steps of the elimination in order, with every size checked."""
        below: dict[int, list[tuple[str, ...]]] = {}
        steps = []
        result: tuple[str, ...] = ()
        for i, top in self._connecting_cliques(_mask((*keep, *weighted), self._position)):
            shared = () if top else self.separators[i]
            names, products = set(self.cliques[i]), []
            arrivals = below.pop(i, [])
            for j, arriving in enumerate(arrivals):
                needed = {*keep, *shared}.union(*arrivals[j + 1 :])
                names = (names | {*arriving}) & needed
                products.append(self._check_names(names, memory_limit))
            kept = self._check_names(names & {*keep, *shared}, memory_limit)
            if top:
                result = self._check_names({*result, *kept}, memory_limit)
            else:
                below.setdefault(self.parents[i], []).append(kept)
            steps.append(_Step(i, shared, products, kept))
        return steps

    def _connecting_cliques(self, wanted: int) -> list[tuple[int, bool]]:
        """Return the cliques that connect the wanted attributes, children first, and whether each is a top."""
        children: dict[int, list[int]] = {}
        tops = []
        for i, (mask, parent) in enumerate(zip(self._masks, self.parents, strict=True)):
            own = mask & ~self._masks[parent] if parent >= 0 else mask
            if own & wanted or i in children:
                if parent >= 0:
                    children.setdefault(parent, []).append(i)
                else:
                    tops.append(i)
        connecting = []
        for top in tops:
            while len(children.get(top, ())) == 1 and self._masks[top] & wanted & ~self._masks[children[top][0]] == 0:
                top = children[top][0]  # the clique above adds nothing
            connecting.append((top, True))
            stack = [top]
            while stack:
                for child in children.get(stack.pop(), ()):
                    connecting.append((child, False))
                    stack.append(child)
        return sorted(connecting)

    def _check_names(self, names: Iterable[str], memory_limit: float) -> tuple[str, ...]:
        """Return the names in universe order; refuse a table on them that exceeds the memory limit."""
        ordered = tuple(sorted(names, key=self._position.__getitem__))
        cells = math.prod(self._shape(ordered))
        if BYTES_PER_CELL * cells > memory_limit:
            raise TooLarge(
                f"A table of the hypothesis must fit the memory limit of {memory_limit:.0f} bytes. "
                f"Found {cells} cells ({BYTES_PER_CELL * cells} bytes) on {', '.join(ordered)}. {_WAY_OUT}"
            )
        return ordered

    def _shape(self, names: Iterable[str]) -> tuple[int, ...]:
        return tuple(self.sizes[n] for n in names)

    @cached_property
    def _program(self) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """The input of ``kernels.calibrate``: a row per clique, the index arrays of folds, the separators' cells."""
        from hedgerow.model.memory_layout import fold

        rows, indices, places, separator = [], [], 0, 0
        for i, parent in enumerate(self.parents):
            shared = self.separators[i]
            cells = math.prod(self._shape(shared))
            row = [self._starts[i], self._starts[i + 1], separator, separator + cells, parent]
            separator += cells
            for clique in (i, parent):
                if clique < 0:
                    row += [0, 0, 0, 0, 0]
                    continue
                along = fold(self.shapes[clique], self.axes(shared, clique), widen=False)
                middle = places + along.outer.size
                end = middle + along.middle.size
                row += [places, middle, end, along.length, along.constant]
                indices += [along.outer, along.middle]
                places = end
            rows.append(row)
        return np.array(rows, np.int64), np.concatenate(indices), separator

    def __repr__(self) -> str:
        return f"JunctionTree({len(self.sizes)} attributes, {len(self.cliques)} cliques, {self.cells} cells)"


def _evenly(groups: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """Return for the m members of each group the numbers (i + u)/m, i = 0 … m − 1, in random order.

    u is uniform, drawn once for each group.
    """
    order = np.lexsort((rng.random(len(groups)), groups))
    _, first, inverse, sizes = np.unique(groups[order], return_index=True, return_inverse=True, return_counts=True)
    shares = np.empty(len(groups))
    shares[order] = (np.arange(len(groups)) - first[inverse] + rng.random(len(sizes))[inverse]) / sizes[inverse]
    return shares


def too_large(tree: JunctionTree, memory_limit: float) -> TooLarge:
    """Return the error for a tree that exceeds the memory limit."""
    names = tree.largest
    return TooLarge(
        f"The cliques of the hypothesis must fit the memory limit of {memory_limit:.0f} bytes. "
        f"Found {tree.cells} cells ({tree.bytes} bytes), "
        f"of which {math.prod(tree.sizes[n] for n in names)} are on the clique "
        f"{', '.join(names)}. {_WAY_OUT}"
    )


_WAY_OUT = "Use coarser bins, fewer attributes, or a larger memory_limit."


@dataclass(frozen=True)
class _Step:
    """One clique of a variable elimination: the names left after each product with a table from below, and at last."""

    clique: int
    shared: tuple[str, ...]
    products: list[tuple[str, ...]]
    kept: tuple[str, ...]


@dataclass(frozen=True)
class _Table:
    """A named array, for variable elimination."""

    names: tuple[str, ...]
    values: Array

    def onto(self, names: Sequence[str]) -> _Table:
        """Sum onto these names, with axes in their order."""
        wanted = set(names)
        summed = self.values.sum(axis=tuple(i for i, n in enumerate(self.names) if n not in wanted))
        left = [n for n in self.names if n in wanted]
        return _Table(tuple(names), np.transpose(summed, [left.index(n) for n in names]))

    def condition_on(self, names: Sequence[str]) -> _Table:
        """Return the conditional probabilities given these names; 0 where their own probability underflows."""
        rest = tuple(i for i, n in enumerate(self.names) if n not in names)
        above = self.values.sum(axis=rest, keepdims=True)
        return _Table(self.names, np.divide(self.values, above, out=np.zeros_like(self.values), where=above > 0))

    def weigh(self, name: str, weights: Array) -> _Table:
        """Multiply by weights along one attribute."""
        axis = self.names.index(name)
        return _Table(
            self.names, self.values * weights.reshape([-1 if k == axis else 1 for k in range(len(self.names))])
        )

    def times(self, other: _Table, keep: Sequence[str]) -> _Table:
        """Return the product summed onto ``keep``, as a batch of matrix products: the full product is never made."""
        mine, theirs, wanted = set(self.names), set(other.names), set(keep)
        batch = [n for n in self.names if n in theirs and n in wanted]
        inner = [n for n in self.names if n in theirs and n not in wanted]
        left = [n for n in self.names if n not in theirs and n in wanted]
        right = [n for n in other.names if n not in mine and n in wanted]
        a, b = self.onto([*batch, *left, *inner]).values, other.onto([*batch, *inner, *right]).values
        shape = a.shape[: len(batch) + len(left)] + b.shape[len(batch) + len(inner) :]
        rows = math.prod(a.shape[: len(batch)])
        wide = math.prod(a.shape[len(batch) + len(left) :])
        product = a.reshape(rows, -1, wide) @ b.reshape(rows, wide, -1)
        return _Table((*batch, *left, *right), product.reshape(shape)).onto(keep)


def _mask(names: Iterable[str], position: Mapping[str, int]) -> int:
    """Return the attributes as a bit mask of their positions."""
    mask = 0
    for name in names:
        if name not in position:
            raise InvalidInput(f"An attribute must be in the universe. Found {name!r}. Check the spelling.")
        mask |= 1 << position[name]
    return mask


@lru_cache(maxsize=64)
def _positions(names: tuple[str, ...]) -> dict[str, int]:
    return {name: i for i, name in enumerate(names)}


def _sizes(sizes: Mapping[str, int] | Universe) -> dict[str, int]:
    if isinstance(sizes, Mapping):
        return dict(sizes)
    return dict(zip(sizes.names, sizes.shape, strict=True))
