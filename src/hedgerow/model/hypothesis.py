"""The hypothesis: a public log-linear model of the private data, with exact marginals.

Hardt & Rothblum, "A multiplicative weights mechanism for privacy-preserving data analysis" (2010), and Ullman,
"Private multiplicative weights beyond linear queries" (2015), keep one weight per element of the universe. An update
by a query on attributes A multiplies the weights by a table over A, so

    D̂(x) = exp(Σ_A θ_A(x_A)) / Z          θ_A: the sum of all log tables added on attributes A

and a junction tree gives every marginal without an array over the universe. A dense universe is one clique.

Differs: the papers renormalise the histogram at every step. Here the log tables are the truth, and probabilities are
computed from them when a marginal is requested. A single clique is multiplied in place: the update waits for the next
marginal and is done in the same pass over memory, which gives the normaliser as well.

``PairTables`` has the probabilities on all pairs of attributes at once, from one calibration of a junction tree:

    G[(a, v), (b, w)] = P(x_a = v, x_b = w)        one matrix over the values of all attributes
    U_C[s, (a, v)]    = P(x_a = v, x_S = s)        a from the part of the tree below clique C, S its separator

Given its separator, the part of the tree below a clique is independent of the rest. So U of a child D passes through
its parent C as U_D/P(S_D): onto single attributes of C, which gives their pairs with everything below D; onto C's own
separator, for cliques further up; and onto the separator of another child E, where it meets U_E. Every step is a sum
over one clique's cells for each row, and no pair needs an elimination of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import _memory
from hedgerow._types import Array, Names
from hedgerow.errors import InvalidInput
from hedgerow.model.junction_tree import BYTES_PER_CELL, FEW_CELLS, JunctionTree, too_large
from hedgerow.model.small_tables import CliqueTable, SmallTables, fits
from hedgerow.universe.universe import Universe

if TYPE_CHECKING:
    from hedgerow.query.linear import Linear

MEMORY = 2**31  # default memory limit in bytes
SMALL = 1 << 12  # a universe of at most this many cells is one clique: a tree would gain nothing
MODERATE = 1 << 22  # up to this size one clique is used if the tree would have at least a quarter of its cells,
MOST_AXES = 32  # and if NumPy's arrays can have that many axes
JOINED = 1 << 14  # waiting updates are joined into one table of at most this many cells (128 kB: it stays in the cache)
SAFE_RANGE = 400.0  # updates in place since the last rebuild may move log weights this far: exp(-708 + 400) is tiny
MOST_UPDATES = 4096  # and there may be this many of them, each with a rounding error of 2e-16


class Hypothesis:
    """A distribution over the universe, uniform at first, that ``add_factor`` multiplies by tables over few attributes.

    ``memory_limit``: in bytes; by default 2 GiB, or less where there is little memory. A factor or marginal that
        needs more is refused before anything changes.
    ``cliques``: attribute sets that are known to be added later.
    ``dense``: True keeps one array over the whole universe, False never does. By default that is done where the
        universe is small or a tree would save little.
    ``final``: True if factors are added once and then only asked for marginals. Nothing is compiled for it then, up to
        a moderate size.
    """

    def __init__(
        self,
        universe: Universe,
        memory_limit: int | None = None,
        cliques: Iterable[Iterable[str]] = (),
        *,
        dense: bool | None = None,
        final: bool = False,
    ) -> None:
        self.universe, self.dense, self._final = universe, dense, final
        # A quarter of the memory in force leaves room for the answers that are computed from the tables.
        self.memory_limit = min(MEMORY, _memory.in_force() // 4) if memory_limit is None else memory_limit
        self._sets: frozenset[Names] = frozenset(universe.order(c) for c in cliques)
        self._tree = self._plan_tree(self._sets)
        self._factors: dict[Names, Array] = {}
        self._owned: set[Names] = set()  # factors that no copy shares, and that may be changed in place
        self._cache: dict[Names, Array] = {}
        self._cached_bytes = 0
        self._beliefs: list[Array] | None = None  # probabilities on every clique; a single clique's are not normalised
        self._beliefs_shared = False
        self._small: SmallTables | None = None  # small tables computed from these beliefs
        self._total = 1.0  # the sum of a single clique's beliefs
        self._waiting: list[tuple[Names, Array]] = []  # factors that a single clique's beliefs do not include yet
        self._range, self._updates = 0.0, 0  # range and number of updates in place since the beliefs were rebuilt

    @property
    def cliques(self) -> tuple[Names, ...]:
        """The maximal cliques: attributes inside one of them have a marginal at the cost of one sum."""
        return self._tree.cliques

    @property
    def factors(self) -> dict[Names, Array]:
        """Copies of the log tables, one for each attribute set; they determine the distribution."""
        return {names: table.copy() for names, table in self._factors.items()}

    def add_factor(self, attributes: Iterable[str], log_table: ArrayLike) -> None:
        """Multiply the distribution by exp(log_table), whose axes follow ``attributes`` as given."""
        self.add_factors({tuple(attributes): np.asarray(log_table, dtype=float)})

    def add_factors(self, factors: Mapping[Names, Array]) -> None:
        """Add several factors with one change of structure. All are added or, on a refusal, none."""
        tables = [self._align(tuple(names), table) for names, table in factors.items()]
        new = {names for names, *_ in tables} - self._sets
        if any(self._tree.home(names) is None for names in new):
            self._tree, self._beliefs = self._plan_tree(self._sets | new), None
        self._sets |= new
        self._forget()
        for names, table, low, high in tables:
            self._multiply(names, table, low, high)
            if names in self._owned:
                self._factors[names] += table
            else:
                self._factors[names] = self._factors[names] + table if names in self._factors else table.copy()
                self._owned.add(names)

    @classmethod
    def of_factors(cls, universe: Universe, factors: Mapping[Names, Array], *, dense: bool | None = None) -> Hypothesis:
        """Return the hypothesis that is made of these factors at once.

        The same factors give the same numbers to the last bit, however a mechanism came to them.
        """
        made = cls(universe, dense=dense)
        made.add_factors(factors)
        made.settle()
        return made

    def settle(self) -> None:
        """Apply all factors now, not with the next marginal.

        The same factors then give the same numbers to the last bit, whatever is asked next and in which order.
        """
        self._current()

    def require(self, attributes: Iterable[str]) -> None:
        """Refuse attributes on which a factor would be refused, from public sizes alone. Nothing changes."""
        names = self.universe.order(attributes)
        if self._tree.home(names) is None:
            self._plan_tree(self._sets | {names})

    def marginal(self, attributes: Iterable[str]) -> Array:
        """Return the probabilities on these attributes, axes in universe order: a read-only, cached array."""
        key = attributes if type(attributes) is tuple else tuple(attributes)
        known = self._cache.get(key)
        if known is None:
            names = self.universe.order(key)
            known = self._cache[names] if names in self._cache else self._remember(names, self._compute(names))
            self._cache[key] = known
        return known

    def can_tabulate(self, attributes: Names, cells: int) -> bool:
        """Return True if no table on the way to that of these attributes has more cells than this, by sizes alone."""
        return self._is_small(attributes) or self._tree.can_tabulate(attributes, BYTES_PER_CELL * cells)

    def expect(self, sets: Sequence[Names]) -> None:
        """Announce the marginals that are requested next, so that their common parts are computed once.

        These parts are kept until other marginals are announced.
        """
        self._small_tables().expect(s for s in sets if s not in self._cache and self._is_small(s))

    def answer(self, query: Linear) -> float:
        """Return ⟨q, D̂⟩. A conjunction over attributes of many cliques needs no table over all of them."""
        names = query.attributes
        if len(self._tree.cliques) == 1 and names == self._tree.cliques[0]:
            # This avoids a second array of that size. The result is the same to the last bit whatever was asked before.
            return query.dot(self._current()[0]) / self._total
        if names in self._cache or query.vectors is None or self._tree.home(names) is not None:
            return query.dot(self.marginal(names))
        weights = {n: v.astype(float) for n, v in zip(names, query.vectors, strict=True)}
        return float(self._tree.eliminate(self._current(), (), weights, memory_limit=self.memory_limit))

    def sample(self, rows: int, rng: np.random.Generator, *, rounded: bool = False) -> NDArray[np.int32]:
        """Draw records (rows × attributes, as cells), independent or ``rounded``: counts match the distribution."""
        if int(rows) != rows or rows < 0:
            raise InvalidInput(
                f"rows must be a whole number of at least 0. Found {rows!r}. Give the number of records."
            )
        return self._tree.sample(self._current(), int(rows), rng, rounded=rounded)

    def copy(self) -> Hypothesis:
        """Return an independent hypothesis with the same distribution; arrays are shared until either changes."""
        self._owned, self._beliefs_shared = set(), True
        twin = Hypothesis.__new__(Hypothesis)
        twin.__dict__.update(self.__dict__)
        twin._owned, twin._waiting = set(), list(self._waiting)
        twin._factors, twin._cache = dict(self._factors), dict(self._cache)
        return twin

    # From factors to probabilities.

    def _compute(self, names: Names) -> Array:
        """Compute a marginal; use the pass of a waiting update if it gives the sums."""
        if not names:
            return np.ones(())
        summed = self._caught_up(names)
        if summed is None:
            summed = self._sum_out(names)
        return np.asarray(summed / summed.sum())

    def _sum_out(self, names: Names) -> Array:
        if self._is_small(names):
            return self._small_tables().marginal(names)
        return self._tree.marginal(self._current(), names, memory_limit=self.memory_limit)

    def _is_small(self, names: Names) -> bool:
        return self._tree.home(names) is None and fits(self._tree, names, self.memory_limit)

    def _small_tables(self) -> SmallTables:
        """Return the small tables of the current beliefs."""
        beliefs = self._current()
        if self._small is None:
            self._small = SmallTables(self._tree, beliefs)
        return self._small

    def _current(self) -> list[Array]:
        """Return the beliefs on every clique with all factors applied."""
        if self._beliefs is None:
            flat = np.zeros(self._tree.cells)
            beliefs = self._tree.split(flat)
            for names, table in (
                self._join_factors(self._factors.items()) if len(beliefs) == 1 else self._factors.items()
            ):
                self._tree.add(beliefs, names, table)
            (self._tree.calibrate_once if self._final else self._tree.calibrate_flat)(flat)
            self._beliefs, self._beliefs_shared, self._total, self._small = beliefs, False, 1.0, None
            self._range, self._updates, self._waiting = 0.0, 0, []
        self._caught_up(())
        return self._beliefs

    # A single clique, multiplied in place.

    def _multiply(self, names: Names, table: Array, low: float, high: float) -> None:
        """Apply a new factor to the beliefs: to a single clique now or at the next marginal, else by a rebuild."""
        if self._beliefs is None:
            return
        self._range += high - low
        self._updates += 1
        if len(self._beliefs) > 1 or self._range > SAFE_RANGE or self._updates > MOST_UPDATES:
            self._beliefs, self._waiting = None, []
        elif table.size > JOINED:
            self._apply(names, table, (), high)
        else:
            self._waiting.append((names, table.copy()))

    def _caught_up(self, wanted: Names) -> Array | None:
        """Apply the waiting updates as few tables; return the sums on ``wanted`` if they came with the last."""
        if not self._waiting:
            return None
        *earlier, (names, last) = self._join_factors(self._waiting)
        self._waiting = []
        for before, table in earlier:
            self._apply(before, table, ())
        return self._apply(names, last, wanted)

    def _join_factors(self, tables: Iterable[tuple[Names, Array]]) -> list[tuple[Names, Array]]:
        """Join factors into fewer tables: neighbours are added while the union of their attributes is small."""
        joined: list[tuple[Names, Array]] = []
        for names, table in tables:
            before, sum_before = joined[-1] if joined else ((), np.zeros(()))
            union = self.universe.order((*before, *names))
            if joined and self.universe.cells(union) <= JOINED:
                joined[-1] = union, self._spread(sum_before, before, union) + self._spread(table, names, union)
            else:
                joined.append((names, table))
        return joined

    def _apply(self, names: Names, table: Array, wanted: Names, top: float | None = None) -> Array | None:
        """Multiply a single clique by exp(table) in one pass; return the sums on ``wanted`` if they came with it."""
        from hedgerow.model import kernels
        from hedgerow.model import memory_layout as folds

        assert self._beliefs is not None
        if self._beliefs_shared:
            self._beliefs, self._beliefs_shared = [self._beliefs[0].copy()], False
        belief = self._beliefs[0]
        top = float(table.max()) if top is None else top
        if table.size == belief.size:
            if belief.size <= FEW_CELLS:
                belief *= np.exp(table.reshape(belief.shape) - top)
                self._total = float(belief.sum())
            else:
                self._total = kernels.exp_times(belief.reshape(-1), table.reshape(-1), top)
            return None
        small = self.universe.cells(wanted) <= JOINED
        by, onto = folds.update_folds(belief.shape, self._axes(names), self._axes(wanted if small else ()))
        sums = by.times(belief, np.exp(table - top), onto)
        self._total = float(sums.sum())
        return sums if small else None

    def _axes(self, names: Names) -> tuple[int, ...]:
        return tuple(self.universe.index(n) for n in names)

    def _spread(self, table: Array, names: Names, union: Names) -> Array:
        sizes = dict(zip(names, table.shape, strict=True))
        return table.reshape([sizes.get(n, 1) for n in union])

    # Housekeeping.

    def _remember(self, names: Names, table: Array) -> Array:
        """Cache a marginal, read-only; empty the cache when it is full."""
        self._cached_bytes += table.nbytes
        if self._cached_bytes > self.memory_limit // 8:
            self._forget()
        table.flags.writeable = False
        self._cache[names] = table
        return table

    def _forget(self) -> None:
        self._cache, self._cached_bytes = {}, 0

    def _plan_tree(self, sets: Iterable[Names]) -> JunctionTree:
        """Return the junction tree of these sets, or one clique where that is better, within the memory limit."""
        size, free = self.universe.size, self.dense is None and len(self.universe.names) <= MOST_AXES
        tree = JunctionTree(self.universe, sets, dense=bool(self.dense) or (free and size <= SMALL))
        if free and size <= MODERATE and 4 * tree.cells >= size:
            tree = JunctionTree(self.universe, dense=True)
        if tree.bytes > self.memory_limit:
            raise too_large(tree, self.memory_limit)
        return tree

    def _align(self, given: Names, table: Array) -> tuple[Names, Array, float, float]:
        """Return the factor with its axes in universe order, and its least and greatest entry."""
        from hedgerow.model import kernels

        names = self.universe.order(given)
        if len(names) != len(given):
            raise InvalidInput(f"The attributes of a factor must be distinct. Found {given!r}. Name each once.")
        shape = self.universe.sizes(given)
        if table.shape != shape:
            raise InvalidInput(
                f"A log table on {given!r} must have shape {shape}. Found {table.shape}. Give one number per cell."
            )
        if names != given:
            table = np.transpose(table, [given.index(n) for n in names])
        table = np.asarray(table, order="C")
        if table.size <= FEW_CELLS:
            low, high = float(table.min()), float(table.max())  # NaN if any entry is NaN
        else:
            low, high = kernels.extremes(table.reshape(-1))
        if not math.isfinite(high - low):
            raise InvalidInput(
                "A log table must be finite. Found an entry that is not. Use a large negative number for log 0."
            )
        return names, table, low, high

    def __repr__(self) -> str:
        return (
            f"Hypothesis({len(self.universe.names)} attributes, {self.universe.size} cells, "
            f"{len(self._factors)} factors, {len(self.cliques)} cliques)"
        )


class PairTables:
    """The layout of the matrix of all pairs: block (a, b) is the table on a and b."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        ends = np.cumsum([0, *sizes.values()])
        self.starts = ends[:-1]
        self.values = int(ends[-1])
        self._slices = {name: slice(int(a), int(b)) for name, a, b in zip(sizes, ends, ends[1:], strict=False)}

    def block(self, matrix: NDArray[Any], names: Names) -> NDArray[Any]:
        """Return the table of one pair, as a view into the matrix."""
        first, second = names
        return matrix[self._slices[first], self._slices[second]]

    def sums(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of each block, as a matrix over attributes."""
        return np.asarray(np.add.reduceat(np.add.reduceat(matrix, self.starts, axis=0), self.starts, axis=1))

    def pair_matrix(self, tree: JunctionTree, beliefs: Sequence[Array]) -> Array:
        """Return G of a calibrated tree. Blocks of an attribute with itself are not filled in."""
        found = np.empty((self.values, self.values))
        singles = self._singles(tree, beliefs)
        np.multiply.outer(singles, singles, out=found)  # right for attributes in different trees, which are independent
        below: dict[int, list[tuple[int, NDArray[np.int64], Array]]] = {}  # by parent: child, rows of G, Uᵀ
        for c, names in enumerate(tree.cliques):
            clique = CliqueTable(names, beliefs[c])
            own, rest = tree.separators[c], [n for n in names if n not in tree.separators[c]]
            for i, a in enumerate(names):
                for b in names[:i]:
                    self._put(found, self._places([a]), self._places([b]), clique.onto((a,), (b,)))
            rows = [self._places(rest)]
            parts = [np.concatenate([clique.onto(own, (n,)) for n in rest], axis=1)]
            children = below.pop(c, [])
            for k, (child, places, table) in enumerate(children):
                shared = tree.separators[child]
                given = table / np.maximum(clique.sum(shared).reshape(-1, 1), 1e-300)
                for n in (n for n in names if n not in shared):
                    self._put(found, self._places([n]), places, clique.through(given, shared, (n,)))
                for other, theirs, there in children[:k]:
                    apart = tree.separators[other]
                    meeting = clique.through(given, shared, apart)
                    meeting /= np.maximum(clique.sum(apart).reshape(-1, 1), 1e-300)
                    self._put(found, places, theirs, meeting.T @ there)
                rows.append(places)
                parts.append(clique.through(given, shared, own))
            if tree.parents[c] >= 0 and own:
                below.setdefault(tree.parents[c], []).append((c, np.concatenate(rows), np.concatenate(parts, axis=1)))
        return found

    def _places(self, names: Sequence[str]) -> NDArray[np.int64]:
        return np.concatenate([np.arange(self._slices[n].start, self._slices[n].stop) for n in names])

    def _put(self, matrix: Array, rows: NDArray[np.int64], columns: NDArray[np.int64], table: Array) -> None:
        matrix[np.ix_(rows, columns)] = table
        matrix[np.ix_(columns, rows)] = table.T

    def _singles(self, tree: JunctionTree, beliefs: Sequence[Array]) -> Array:
        """Return the probabilities on all single attributes, end to end."""
        found, seen = np.empty(self.values), set()
        for names, belief in zip(tree.cliques, beliefs, strict=True):
            for i, name in enumerate(names):
                if name not in seen:
                    seen.add(name)
                    found[self._slices[name]] = belief.sum(axis=tuple(k for k in range(belief.ndim) if k != i))
        return found
