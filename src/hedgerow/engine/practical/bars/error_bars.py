"""Error bars that released measurements imply for every later answer.

A measurement is a noisy table of counts on some attributes, or the noisy value of one query, and is public from then
on. It bounds any query q on attributes A inside its own: the true count of q is ⟨q, y⟩ up to |⟨q − c, Z⟩|, where y
are the noisy counts, Z their noise and c any constant (⟨c, counts⟩ = c·n is known). The best c is the mean of q.

The bars hold together, for every question an adaptive analyst may choose after seeing everything. Measurement j has
the share β_j of the failure probability (``_share``), fixed before its noise is drawn. A union bound over the three
classes below, each taken over every subset A of the measured attributes (``doubt_of_subset``), makes its noise small
for all q of a class at once (docs/proofs/error_bars.md):

    products  a set of cells of each attribute; a set of a rarer kind has more of the class's share (``_code``)
    lines     α + βi on the i-th cell of one ordered attribute within a product of the others, γ elsewhere: the sums
              that means are made of. All α, β and γ of one product lie in a plane, and the noise in a plane is small
              (Gaussian noise only)
    tables    anything else; by Cauchy–Schwarz against the norm of the noise

Nothing here depends on the data except through released values.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array, Names
from hedgerow.engine.practical.measurement import Measurement, RowCountInterval, varying_names
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.query.linear import Linear, Products, answer_all, is_product, stacked_groups
from hedgerow.universe.universe import Universe

# How the failure probability β is divided.
# Share of β_j for each class; if no attribute is ordered, products also get the share of lines.
SHARES = {"products": 0.5, "lines": 0.4, "tables": 0.1}
OF_FIRST = 0.6  # share of β for the first measurement: after an overview, most answers have its bar
EARLY = 8  # number of later measurements with nearly equal shares of the rest
OF_ALL_ATTRIBUTES = 0.5  # share of β_j for questions about all attributes of a table; its proper subsets share the rest
ALL_OR_NONE = 0.02  # along each attribute, part of a class's share for the sets of all its cells and of none
# Parts of the rest by the kind of set, for an ordered attribute (True) and for another (False).
OF_KINDS = {True: {"value": 0.42, "run": 0.42, "set": 0.16}, False: {"value": 0.6, "set": 0.4}}

# Arithmetic.
EXACT_SETS = 256  # with at most this many cells, the sets of an attribute are counted in whole numbers
ROUNDED, OF_ALL = 1e-9, 1e-7  # weights this near to a line, in parts of their range (per cell, in all), count as a line
CANCELLED = 1e-6  # if centring leaves less than this part of Σ q², the centred sum is computed directly
KEPT_PARTS = 2_000  # most attribute sets whose measured parts are cached, whatever is asked
FINE_STEP = 0.25  # coarsest grid, in standard deviations, on which discrete noise is compared with continuous noise


class JointEstimate(Protocol):
    """Estimates of all tables of a family from one jointly Gaussian release (``residuals.Overview``)."""

    sets: list[Names]
    rounding: float

    def covers(self, names: Names) -> bool:
        """Return True if the table on ``names`` can be estimated."""
        ...

    def onto(self, names: Names) -> Array:
        """Return the estimated counts on ``names``."""
        ...

    def deviations(self, names: Names, queries: Sequence[Linear]) -> Array:
        """Return the standard deviation of the estimate of each query, in rows."""
        ...

    def deviation_of_count(self, names: Names, sets: Sequence[NDArray[np.bool_]]) -> float:
        """Return that of one count, given by a set of cells of each attribute."""
        ...

    def widest(self, names: Names) -> float:
        """Return the largest standard deviation of a table of norm 1 on ``names``."""
        ...


class ErrorBars:
    """Intervals for the true fraction of any query, from all measurements so far, valid together at 1 − β."""

    def __init__(self, universe: Universe, beta: float) -> None:
        self.universe, self._beta = universe, beta
        self._tables: list[tuple[Measurement, float]] = []  # each table with its ln(1/β_j)
        self._with: dict[str, list[tuple[Measurement, float]]] = {}  # the same tables by attribute
        self.queries: dict[object, list[tuple[Measurement, float]]] = {}
        self._supports: dict[Names, list[tuple[Measurement, float]]] = {}
        self._largest_parts: dict[Names, list[Names]] = {}
        self._numbers = 0
        self.shares: list[int] = []  # before each measurement, how many numbers had already taken a share of β
        self.overview: JointEstimate | None = None
        self.overview_doubt = 0.0

    @property
    def _doubt(self) -> float:
        """The ln(1/β_j) of the next measurement."""
        return self._doubt_after(0)

    def _doubt_after(self, others: int) -> float:
        """Return ln(1/β_j) of the measurement that follows ``others`` further ones."""
        j = 1 + len(self._tables) + sum(map(len, self.queries.values())) + self._numbers + others
        return -math.log(_share(j) * self._beta)

    def add_overview(self, overview: JointEstimate) -> None:
        """Add a family that was measured at once, with one share of β for all its tables. Call it before ``add``."""
        self.overview, self.overview_doubt = overview, self._doubt
        self._numbers += 1
        self._largest_parts = {}

    def add(self, measurement: Measurement) -> None:
        """Add a table or a query. Residuals are part of an overview and are not added here."""
        doubt = self._doubt
        self.shares.append(self._numbers)
        if measurement.query is not None:
            self.queries.setdefault(measurement.query.key, []).append((measurement, doubt))
        else:
            self._tables.append((measurement, doubt))
            for name in measurement.attributes:
                self._with.setdefault(name, []).append((measurement, doubt))
            self._supports, self._largest_parts = {}, {}

    def width(self, query: Linear, event: Laplace | Gaussian, *, alone: bool, after: int = 0) -> float:
        """Return the half-width in rows that a measurement would give a query, alone or as part of its marginal.

        ``after`` is the number of measurements that come first. For the constant query it is the half-width of n.
        """
        doubt = self._doubt_after(after)
        if alone:
            return _one_tail(event, math.log(2) + doubt)
        total, squares = _sums([query])
        cells = math.prod(query.shape)
        norm = _norms([query], squares, total**2 / cells) if query.attributes else np.ones(1)
        imagined = Measurement(query.attributes, np.empty(0), event)
        return float(self._width(imagined, doubt, [query], norm, cells)[0])

    def number(self, event: Laplace | Gaussian) -> float:
        """Return the half-width in rows that the next measurement would give a number that is not a count."""
        return _one_tail(event, math.log(2) + self._doubt)

    @property
    def numbers(self) -> int:
        """The number of released numbers, an overview among them, that have taken a share of β."""
        return self._numbers

    def add_number(self) -> None:
        """Record the release of such a number: it takes its share of β as any measurement does."""
        self._numbers += 1

    def distance(self, names: Names, believed: Array, row_count: RowCountInterval) -> float:
        """Return a bound on the ℓ2 distance of the true fractions from ``believed``; infinite if never measured."""
        names = varying_names(self.universe, names)
        believed = believed.reshape(self.universe.sizes(names))
        if not names:
            return 0.0
        cells = self.universe.cells(names)
        known = [
            (m.onto(names), _table_norm(m, doubt, self.universe.cells(m.attributes), cells, len(names)))
            for m, doubt in self.supporting_measurements(names)
        ]
        if self.overview is not None and self.overview.covers(names):
            x = self.overview_doubt + doubt_of("tables") + math.log(len(self.overview.sets))
            noise = self.overview.widest(names) * (math.sqrt(cells) + math.sqrt(2 * x) + self.overview.rounding)
            known.append((self.overview.onto(names), noise))
        unknown = (row_count.high - row_count.low) * float(np.linalg.norm(believed))
        off = [float(np.linalg.norm(y - row_count.estimate * believed)) + noise + unknown for y, noise in known]
        return min(off, default=math.inf) / row_count.low

    def covers(self, names: Names) -> bool:
        """Return True if some measurement estimates the counts on these attributes."""
        return bool(self.supporting_measurements(names)) or (self.overview is not None and self.overview.covers(names))

    def deviations(self, names: Names, queries: Sequence[Linear]) -> Array:
        """Return the standard deviation, in rows, of the best measurement of each query; infinite without one."""
        found = np.full(len(queries), math.inf)
        if self.overview is not None and self.overview.covers(names):
            found = self.overview.deviations(names, queries)
        support = self.supporting_measurements(names)
        if support:
            cells = self.universe.cells(names)
            total, squares = _sums(queries)
            norm = _norms(queries, squares, total**2 / cells)
            for measurement, _ in support:
                merged = self.universe.cells(measurement.attributes) / cells
                found = np.minimum(found, math.sqrt(measurement.variance * merged) * norm)
        for i, query in enumerate(queries) if self.queries else ():
            for measurement, _ in self.queries.get(query.key, ()):
                found[i] = min(found[i], math.sqrt(measurement.variance))
        return found

    def intervals(self, queries: Sequence[Linear], row_count: RowCountInterval) -> tuple[Array, Array]:
        """Return lower and upper ends for the true fraction of each query; [0, 1] where nothing is known."""
        low, high = np.zeros(len(queries)), np.ones(len(queries))
        unmeasured: dict[Names, tuple[list[int], Products]] = {}
        for names, members, asked in stacked_groups(queries):
            if not names:
                low[members] = high[members] = [float(q.table) for q in asked]
            elif self.covers(names):
                low[members], high[members] = self._group(names, asked, row_count)
            elif isinstance(asked, Products):
                unmeasured[names] = members.tolist(), asked
            elif counts := [i for i in members.tolist() if is_product(queries[i])]:
                unmeasured[names] = counts, Products.of([queries[i] for i in counts])
        self._bound_by_parts(unmeasured, row_count, low, high)
        for i, query in enumerate(queries) if self.queries else ():
            for measurement, doubt in self.queries.get(query.key, ()):
                width = _one_tail(measurement.event, math.log(2) + doubt)
                if not query.is_count:  # the value was rounded to the grid before the noise
                    width += measurement.event.grid / 2
                y = float(measurement.values)
                low[i] = max(low[i], (y - width) / row_count.high - measurement.rounding)
                high[i] = min(high[i], (y + width) / row_count.low + measurement.rounding)
        return low, np.maximum(low, high)

    def rows(self) -> RowCountInterval:
        """Return n as estimated from the tables' totals: every total is a noisy count of all rows."""
        low, high, weighted, weights = 1.0, math.inf, 0.0, 0.0
        if self.overview is not None:
            everyone = [Linear((), (), (), np.array(1.0), True)]
            total, width = float(self.overview.onto(())), float(self._joint_width((), everyone)[0])
            low, high = max(low, total - width), total + width
            weights = 1 / float(self.overview.deviations((), everyone)[0]) ** 2
            weighted = total * weights
        for measurement, doubt in self._tables:
            cells = self.universe.cells(measurement.attributes)
            total = float(measurement.onto(()))
            one = Linear((), (), (), np.array(1.0), True)
            width = float(self._width(measurement, doubt, [one], np.array([math.sqrt(cells)]), 1)[0])
            low, high = max(low, total - width), min(high, total + width)
            weighted += total / (cells * measurement.variance)
            weights += 1 / (cells * measurement.variance)
        high = max(low, high)
        return RowCountInterval(min(high, max(low, weighted / weights)), low, high, 1 / math.sqrt(weights))

    def cell_intervals(self, names: Names, row_count: RowCountInterval) -> tuple[Array, Array]:
        """Return lower and upper ends for every cell of a marginal, as if its cells were asked one by one."""
        shape = self.universe.sizes(names)
        if not names:
            return np.ones(()), np.ones(())
        one = [Linear.product(self.universe, {n: np.arange(m) == 0 for n, m in zip(names, shape, strict=True)})]
        low, high = np.zeros(shape), np.ones(shape)
        cells = math.prod(shape)
        known: list[tuple[Array, float]] = []
        if self.overview is not None and self.overview.covers(names):
            known.append((self.overview.onto(names), float(self._joint_width(names, one)[0])))
        for measurement, doubt in self.supporting_measurements(names):
            merged = self.universe.cells(measurement.attributes) / cells
            norm = np.array([math.sqrt((1 - 1 / cells) * merged)])
            known.append((measurement.onto(names), float(self._width(measurement, doubt, one, norm, cells)[0])))
        for y, width in known:
            off = y - y.sum() / cells
            low = np.maximum(low, 1 / cells + _over(off - width, row_count.high, row_count.low))
            high = np.minimum(high, 1 / cells + _over(off + width, row_count.low, row_count.high))
        if not known:
            for part in self.largest_parts(names):
                wide = [m if n in part else 1 for n, m in zip(names, shape, strict=True)]
                high = np.minimum(high, self.cell_intervals(part, row_count)[1].reshape(wide))
        return low, np.maximum(low, high)

    def _group(self, names: Names, asked: Sequence[Linear], row_count: RowCountInterval) -> tuple[Array, Array]:
        """Return intervals of queries on the same, measured attributes."""
        support = self.supporting_measurements(names)
        overview = self.overview if self.overview is not None and self.overview.covers(names) else None
        cells = self.universe.cells(names)
        total, squares = _sums(asked)
        c = total / cells
        norm = _norms(asked, squares, total * c)
        low, high = np.zeros(len(asked)), np.ones(len(asked))
        if overview is not None:
            y = overview.onto(names)
            off = answer_all(asked, lambda _: y) - c * y.sum()
            width = self._joint_width(names, asked)
            low = np.maximum(low, c + _over(off - width, row_count.high, row_count.low))
            high = np.minimum(high, c + _over(off + width, row_count.low, row_count.high))
        for measurement, doubt in support:
            y = measurement.onto(names)
            merged = self.universe.cells(measurement.attributes) / cells  # number of measured cells in each cell of A
            off = answer_all(asked, lambda _, y=y: y) - c * y.sum()  # type: ignore[misc]
            width = self._width(measurement, doubt, asked, norm * math.sqrt(merged), cells)
            low = np.maximum(low, c + _over(off - width, row_count.high, row_count.low))
            high = np.minimum(high, c + _over(off + width, row_count.low, row_count.high))
        return low, np.maximum(low, high)

    def _joint_width(self, names: Names, asked: Sequence[Linear]) -> Array:
        """Return how far the overview's estimate may be off, by the smallest class the query belongs to.

        Centring by c changes only the component on no attributes, which the deviation includes in any case.
        """
        assert self.overview is not None
        base = self.overview_doubt + math.log(len(self.overview.sets))
        ordered, rounding = self._order(asked[0].attributes), self.overview.rounding
        code = _code(asked, ordered)
        table = math.sqrt(self.universe.cells(names)) + math.sqrt(2 * (base + doubt_of("tables")))
        # Grid steps are at most 2·rounding standard deviations, because rounding² is Σ (step/2)²·entries/deviation².
        others = np.isinf(code)
        product = gaussian_tail(base + np.where(others, 0.0, code), 2 * rounding)
        spread = np.where(others, table, np.minimum(product, table))
        for i in np.flatnonzero(others).tolist():
            spread[i] = min(spread[i], _plane_tail(base + _line_code(asked[i], ordered), 2 * rounding))
        width: Array = self.overview.deviations(names, asked) * (spread + rounding)
        return width

    def _width(self, measurement: Measurement, doubt: float, asked: Sequence[Linear], norm: Array, cells: int) -> Array:
        """Return how large ⟨q − c, Z⟩ may be, by the smallest class q belongs to."""
        event, measured = measurement.event, self.universe.cells(measurement.attributes)
        base = doubt + doubt_of_subset(len(measurement.attributes), len(asked[0].attributes))
        ordered = self._order(asked[0].attributes)
        code = _code(asked, ordered)
        others = np.isinf(code)
        product, x = tail(event, norm, base + np.where(others, 0.0, code)), base + doubt_of("tables")
        if isinstance(event, Gaussian):  # ‖Z_A‖₂ ≤ sd·(√cells + √(2x)) (Hsu, Kakade & Zhang 2012)
            table = event.sigma * (math.sqrt(cells) + math.sqrt(2 * x)) * norm
            for i in np.flatnonzero(others & (norm > 0)).tolist():
                planar = _plane_tail(base + _line_code(asked[i], ordered), event.grid / event.sigma)
                table[i] = min(table[i], event.sigma * norm[i] * planar)
        else:
            table = np.full(len(asked), _laplace_sum(event, measured, x))
        width: Array = np.where(others, table, np.minimum(product, table))
        return width

    def _order(self, names: Names) -> list[bool]:
        return [self.universe[name].ordered for name in names]

    def supporting_measurements(self, names: Names) -> list[tuple[Measurement, float]]:
        """Return the three most precise measurements that contain these attributes."""
        if names not in self._supports:
            wanted = set(names)
            near = self._with.get(names[0], []) if names else self._tables
            inside = [entry for entry in near if wanted <= set(entry[0].attributes)]
            inside.sort(key=lambda e: e[0].variance * self.universe.cells(e[0].attributes))
            self._supports[names] = inside[:3]
        return self._supports[names]

    def _bound_by_parts(
        self, groups: dict[Names, tuple[list[int], Products]], row_count: RowCountInterval, low: Array, high: Array
    ) -> None:
        """Tighten the intervals of conjunctions by Fréchet's bounds, in place.

        A conjunction is at most its least likely part, and at least 1 minus what its parts exclude. ``groups`` are
        the queries by attributes that were never measured together. Each part is computed once for all of them.
        """
        room = np.ones(len(low))
        uses: dict[Names, list[_Use]] = {}  # uses of each part
        whole: list[int] = []  # queries whose parts cover all their attributes
        for names, (members, asked) in groups.items():
            masks = dict(zip(names, asked.masks, strict=True))
            covered: set[str] = set()
            for part in self.largest_parts(names):
                is_new = not covered.issuperset(part)
                uses.setdefault(part, []).append(_Use(members, is_new, [masks[name] for name in part]))
                covered.update(part)
            if covered == set(names):
                whole += members
        for part in sorted(uses, key=_larger_first):  # always in the same order, whatever else is in the batch
            at = [i for use in uses[part] for i in use.members]
            brings = np.concatenate([np.full(len(use.members), use.brings) for use in uses[part]])
            along = zip(*(use.masks for use in uses[part]), strict=True)
            below, above = self._group(part, Products(part, tuple(map(np.concatenate, along))), row_count)
            high[at] = np.minimum(high[at], above)
            room[at] -= np.where(brings, 1 - below, 0.0)
        low[whole] = np.maximum(0.0, room[whole])

    def largest_parts(self, names: Names) -> list[Names]:
        """Return the largest subsets of these attributes that were measured."""
        if names in self._largest_parts:
            return self._largest_parts[names]
        wanted = set(names)
        measured = {m.attributes for name in names for m, _ in self._with.get(name, [])}
        measured.update(s for s in (self.overview.sets if self.overview else ()) if not wanted.isdisjoint(s))
        parts = {self.universe.order(wanted & set(m)) for m in measured} - {()}
        largest = sorted((p for p in parts if not any(set(p) < set(o) for o in parts)), key=_larger_first)
        if len(self._largest_parts) >= KEPT_PARTS:
            self._largest_parts = {}
        return self._largest_parts.setdefault(names, largest)


def _share(j: int) -> float:
    """Return the j-th measurement's share of β.

    The first has ``OF_FIRST``. The others have EARLY/(i(i+1)) of the rest for i = EARLY, EARLY + 1, …, which add up
    to 1.
    """
    i = EARLY + j - 2
    return OF_FIRST if j == 1 else (1 - OF_FIRST) * EARLY / (i * (i + 1))


def doubt_of_subset(measured: int, asked: int) -> float:
    """Return ln(1/w) for the part w of β_j that questions about ``asked`` of the measured attributes have.

    It is for all of them, or for one of the 2^measured − 1 proper subsets.
    """
    if asked == measured:
        return -math.log(OF_ALL_ATTRIBUTES)
    return math.log((2**measured - 1) / (1 - OF_ALL_ATTRIBUTES))


def doubt_of(which: str, *, ordered: bool = True) -> float:
    """Return ln(2/w) for the two-sided part w of β_j of a class; without an ordered attribute there are no lines."""
    return math.log(2 / (SHARES[which] + (0.0 if ordered else SHARES["lines"])))


def _table_norm(measurement: Measurement, doubt: float, measured: int, cells: int, asked: int) -> float:
    """Return a bound on ‖Z_A‖₂, where Z_A is the noise summed to ``cells`` cells of ``asked`` attributes.

    It is the bound for the class of all tables.
    """
    event, x = measurement.event, doubt + doubt_of("tables") + doubt_of_subset(len(measurement.attributes), asked)
    if isinstance(event, Gaussian):
        return event.sigma * math.sqrt(measured / cells) * (math.sqrt(cells) + math.sqrt(2 * x))
    return _laplace_sum(event, measured, x)


def _laplace_sum(event: Laplace, cells: int, x: float) -> float:
    """Return t with Pr[‖Z‖₁ > t] ≤ e^{−x} for independent discrete Laplace noise in so many cells.

    A sum of M exponentials of mean b exceeds b·(M + √(2Mx) + x) with this probability. Because the noise is discrete,
    |Z_i| may be larger than an exponential: by a grid step at most, and by b·ln 2 at most, as Pr[|Z_i| ≥ t] ≤
    2e^{−t/b}. So where the grid is coarse, the bound is still proportional to b.
    """
    rounded = min(event.grid, event.scale * math.log(2))
    return event.scale * (cells + math.sqrt(2 * cells * x) + x) + rounded * cells


def _larger_first(names: Names) -> tuple[int, Names]:
    """Sort key: larger sets first, then by name."""
    return -len(names), names


@dataclass(frozen=True)
class _Use:
    """One use of a part of conjunctions: the queries, their masks, and whether the part brings a new attribute.

    ``brings`` is True if no part before it had one of its attributes.
    """

    members: list[int]
    brings: bool
    masks: list[NDArray[np.bool_]]


def _over(value: Array, if_positive: float, if_negative: float) -> Array:
    """Divide by the end of n's interval that makes value / n a valid end: which one depends on the sign."""
    return np.where(value < 0, value / if_negative, value / if_positive)


def _sums(queries: Sequence[Linear]) -> tuple[Array, Array]:
    """Return Σ q and Σ q² over the cells of the query's own attributes."""
    if isinstance(queries, Products):
        cells = queries.sizes.prod(axis=1, dtype=float)
        return cells, cells
    totals, squares = np.empty(len(queries)), np.empty(len(queries))
    for i, query in enumerate(queries):
        if query.vectors and query.is_count:
            totals[i] = squares[i] = math.prod([int(np.count_nonzero(v)) for v in query.vectors])
        else:
            totals[i], squares[i] = query.table.sum(), float(np.vdot(query.table, query.table))
    return totals, squares


def _norms(queries: Sequence[Linear], squares: Array, of_means: Array) -> Array:
    """Return ‖q − c‖₂ with c the mean of q; where weights are nearly equal, without cancellation."""
    left = np.maximum(squares - of_means, 0.0)
    for i in np.flatnonzero(left < CANCELLED * squares).tolist():
        if not queries[i].is_count:
            left[i] = np.square(queries[i].table - queries[i].table.mean()).sum()
    norms: Array = np.sqrt(left)
    return norms


@functools.lru_cache(maxsize=64)
def _sets_of_a_size(m: int) -> Array:
    """Return ln((m − 3)·C(m, k)) for k = 0 … m, with m > 3 cells: exact where that is quick, else an upper bound."""
    if m <= EXACT_SETS:
        return np.array([math.log((m - 3) * math.comb(m, k)) for k in range(m + 1)])
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, m + 1)))])  # logarithms of factorials
    return np.asarray(math.log(m - 3) + np.maximum(0.0, logs[m] - logs - logs[::-1]) + 1e-9 * logs[m])


def _code(queries: Sequence[Linear], ordered: Sequence[bool]) -> Array:
    """Return ln(2/w) for the part w of β_j that each product has; infinite for a query that is no product.

    The queries are on the same attributes, which ``ordered`` describes. Along each attribute a product has the part
    of its class's share that ``_nats`` gives. These parts add up to at most 1, and so do their products. On a single
    attribute, a set and its complement have the same noise up to its sign, and count as one.
    """
    code = np.full(len(queries), math.inf)
    of_class = doubt_of("products", ordered=any(ordered))
    chosen: slice | list[int] = slice(None)
    if isinstance(queries, Products):
        products = queries
    else:
        chosen = [i for i, q in enumerate(queries) if q.is_count and (q.vectors or not q.attributes)]
        if not chosen:
            return code
        if not ordered:
            code[chosen] = of_class
            return code
        products = Products.of([queries[i] for i in chosen])
    nats = np.full(len(products), of_class - (math.log(2) if len(ordered) == 1 else 0.0))
    for mask, size, is_ordered in zip(products.masks, products.sizes.T, ordered, strict=True):
        nats += _nats(mask, size, is_ordered)
    code[chosen] = nats
    return code


def _nats(mask: NDArray[np.bool_], size: NDArray[np.int64], is_ordered: bool) -> Array:
    """Return ln(1/w) for the part w of one attribute's share that each set of cells has.

    ``size`` is the number of cells of each set. The sets of all cells and of none have half of ``ALL_OR_NONE`` each.
    ``OF_KINDS`` divides the rest among the kinds that exist: one value or all but one, of which there are 2m (m if m
    = 2); runs of 2 … m − 2 cells of an ordered attribute, on a circle, m(m−3); and any set of k cells, for such k,
    (m−3)·C(m, k). A set of two kinds has both parts. Logarithms are used because with 1,100 cells or more there are
    so many sets that their parts underflow a float.
    """
    m = mask.shape[1]
    is_run = np.zeros(len(mask), np.int64)
    if m > 3 and is_ordered:  # on a circle, so the complement of a run is one
        changes = np.count_nonzero(mask[:, 1:] != mask[:, :-1], axis=1) + (mask[:, 0] != mask[:, -1])
        is_run = np.asarray(changes <= 2, np.int64)
    found: Array = nats_of_kinds(m, is_ordered)[is_run, size]
    return found


@functools.lru_cache(maxsize=64)
def nats_of_kinds(m: int, is_ordered: bool) -> Array:
    """Return ln(1/w) for sets of 0 … m cells of an attribute: other sets in the first line, runs in the second."""
    size, is_run = np.arange(m + 1), np.array([[False], [True]])
    kinds = OF_KINDS[is_ordered] if m > 3 else {"value": 1.0}
    is_value, between = ((size == 1) | (size == m - 1)) & (m > 1), (size > 1) & (size < m - 1)
    part = np.where(is_value, math.log(kinds["value"] / (m if m == 2 else 2 * m)), -math.inf)
    if m > 3:
        part = np.where(between, math.log(kinds["set"]) - _sets_of_a_size(m), part)
    part = np.stack([part, part])
    if m > 3 and is_ordered:
        part = np.where(between & is_run, np.logaddexp(part, math.log(kinds["run"] / (m * (m - 3)))), part)
    all_or_none = (size == 0) | (size == m)
    found: Array = -np.where(all_or_none, math.log(ALL_OR_NONE / 2), math.log(1 - ALL_OR_NONE) + part)
    found.flags.writeable = False
    return found


def _line_code(query: Linear, ordered: Sequence[bool]) -> float:
    """Return ln(2/w), as ``_code`` does, for a line; infinite for a query that is not a line.

    A line is described by its ordered attribute and by the product of the others. A query as near to a line as floats
    come counts as one: the rest, at most (m + 1)·near in each cell, moves the noise by less than what ``_plane_tail``
    adds to x.
    """
    table = query.table
    for axis in np.flatnonzero(ordered):
        lines = np.moveaxis(table, axis, -1)
        near = float(np.ptp(table)) * max(1e-15, min(ROUNDED, OF_ALL / (table.size * lines.shape[-1])))
        steps = np.diff(lines, axis=-1)
        if steps.size and np.abs(steps - steps[..., :1]).max() > near:
            continue  # not a straight line along this axis
        for inside in (np.ones(lines.shape[:-1], bool), *_unlike_most(lines, near)):
            within, without = lines[inside], lines[~inside]
            if not inside.any() or np.ptp(within, axis=0).max() > near or (without.size and np.ptp(without) > near):
                continue
            every = range(inside.ndim)
            sides = [np.asarray(inside.any(axis=tuple(i for i in every if i != k))) for k in every]
            if inside.sum() != math.prod(int(side.sum()) for side in sides):
                continue
            nats = doubt_of("lines") + math.log(sum(ordered))
            for side, is_ordered in zip(sides, np.delete(ordered, axis), strict=True):
                nats += float(_nats(side[None], np.array([side.sum()]), bool(is_ordered))[0])
            return nats
    return math.inf


def _unlike_most(lines: Array, near: float) -> Iterator[NDArray[np.bool_]]:
    """Yield where lines differ from a constant: the most frequent first value, and any other that is as frequent."""
    values, counts = np.unique(lines[..., 0], return_counts=True)
    for value in values[counts == counts.max()]:
        yield np.abs(lines - value).max(axis=-1) > near


def _plane_tail(x: float, step: float) -> float:
    """Return z with Pr[sup of ⟨q, Z⟩ over the unit q of a plane > z deviations] ≤ 2e^{−x}, for discrete Gaussian noise.

    The argument is that of ``gaussian_tail``. The squared norm of Gaussian noise in a plane is exponential, with
    tail e^{−z²/2}, and half the time W does not bring Z nearer.
    """
    if step > FINE_STEP:
        return math.sqrt(2) + math.sqrt(2 * x)
    return math.sqrt(2 * (x + 1e-3)) * math.sqrt(1 + (1.5 * step) ** 2)


def _one_tail(event: Laplace | Gaussian, x: float) -> float:
    """Return t with Pr[Z > t] ≤ e^{−x} for one value; for discrete Laplace noise Pr[Z ≥ t] ≤ e^{−t/b}."""
    return event.sigma * math.sqrt(2 * x) if isinstance(event, Gaussian) else event.scale * x


def tail(event: Laplace | Gaussian, norm: Array, x: float | Array) -> Array:
    """Return t with Pr[Σ qᵢZᵢ > t] ≤ e^{−x} for independent noise, ‖q‖₂ = norm and |qᵢ| ≤ 1.

    Laplace of scale b: E e^{λqZ} ≤ (1 − λ²b²q²)^{−1} ≤ (1 − λ²b²)^{−q²}, so t = b(x − ‖q‖² ln(1 − s²))/s for any s =
    λb below 1; s² = x/(x + ‖q‖²) is near the best.
    """
    if isinstance(event, Gaussian):
        return event.sigma * norm * gaussian_tail(x, event.grid / event.sigma)
    square = norm**2 + 1e-300
    s = np.sqrt(x / (x + square))
    return event.scale * (x + square * np.log1p(x / square)) / s


def gaussian_tail(x: float | Array, step: float) -> Array:
    """Return z with Pr[⟨q, Z⟩ > z·deviation] ≤ e^{−x} for independent discrete Gaussian noise.

    Each entry is on a grid of at most ``step`` deviations. z = √(2x) holds by sub-Gaussianity. Where the grids are
    fine, add Gaussian noise W of 1.5 steps: each entry of Z + W has a density of at most 1 + 10⁻¹⁶ times that of
    Gaussian noise with both variances, and ⟨q, W⟩ is positive half the time. So twice the normal tail is enough,
    which is at most e^{−z²/2}/(z√(2π)). Inserting a z₁ that is too large for z in the second factor gives a z₂ that
    is too small, and inserting z₂ gives a z₃ that is large enough.
    """
    plain: Array = np.sqrt(2 * np.asarray(x, dtype=float))
    if step > FINE_STEP:
        return plain
    doubled = np.maximum(np.asarray(x, dtype=float) + math.log(2) + 1e-3, 2.5)
    first = np.sqrt(2 * doubled)
    second = np.sqrt(2 * (doubled - np.log(first * math.sqrt(2 * math.pi))))
    third = np.sqrt(2 * (doubled - np.log(second * math.sqrt(2 * math.pi))))
    normal: Array = third * math.sqrt(1 + (1.5 * step) ** 2)
    return np.minimum(plain, normal)
