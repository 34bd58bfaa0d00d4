"""The bars of ``error_bars`` for one count at a time, with everything kept that recurs from question to question.

An analyst who asks count after count asks about the same few attributes by the same few kinds of sets. For each set of
attributes the measurements that bound it are found once, with their noise and the constants of their widths; for each
kind of sets (``nats_of_kinds``) the tail of the noise is computed once. What is left for each question is to add up the
measured cells that it counts. ``ErrorBars.intervals`` gives the same numbers for many questions at once, and is the
specification of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array, Names
from hedgerow.engine.practical.bars.error_bars import (
    KEPT_PARTS,
    ErrorBars,
    JointEstimate,
    doubt_of,
    doubt_of_subset,
    gaussian_tail,
    nats_of_kinds,
    tail,
)
from hedgerow.engine.practical.measurement import Measurement, RowCountInterval
from hedgerow.privacy.events import Gaussian
from hedgerow.query.linear import Linear, is_product
from hedgerow.universe.universe import Universe

KEPT_TAILS = 4_096  # most tails that are kept for one table


@dataclass(frozen=True)
class _Table:
    """A released table that bounds the counts on some attributes.

    ``values``: the counts; ``total``: their sum. ``merged``: the number of measured cells in each of them. ``tail``:
    the bound on the noise of a count of norm 1, by its code, unless it depends on the norm (``noise``).
    """

    values: Array
    total: float
    merged: float
    variance: float
    tail: Callable[[float], float]
    noise: Callable[[float, float], float] | None = None
    joint: JointEstimate | None = None
    kept: dict[float, float] = field(default_factory=dict)

    def deviation(self, names: Names, sets: Sequence[NDArray[np.bool_]], norm: float) -> float:
        """Return the standard deviation of a count with this norm after centring, in rows."""
        if self.joint is not None:
            return self.joint.deviation_of_count(names, sets)
        return math.sqrt(self.variance * self.merged) * norm

    def width(self, code: float, norm: float, deviation: float) -> float:
        """Return how large the noise of a count may be, in rows."""
        if self.noise is not None:
            return self.noise(code, norm * math.sqrt(self.merged))
        found = self.kept.get(code)
        if found is None:
            if len(self.kept) >= KEPT_TAILS:
                self.kept.clear()
            found = self.kept[code] = self.tail(code)
        return deviation * found


@dataclass(frozen=True)
class _Part:
    """The largest set of attributes within a question that was measured, and the tables that bound it.

    ``places`` are the positions of its attributes in the question's. ``brings``: no part before it has one of them.
    """

    names: Names
    places: tuple[int, ...]
    brings: bool
    cells: int
    of_class: float
    tables: list[_Table]


@dataclass(frozen=True)
class _Plan:
    """Everything that bounds counts on some attributes.

    They were ``measured`` together, or in parts that make up the ``whole``.
    """

    measured: bool
    whole: bool
    kinds: list[tuple[bool, Array]]  # of each attribute: is it ordered, and the nats of its sets
    parts: list[_Part]


class CountBars(ErrorBars):
    """Error bars that also answer one count at a time, fast."""

    def __init__(self, universe: Universe, beta: float) -> None:
        super().__init__(universe, beta)
        self._plans: dict[Names, _Plan] = {}

    def add_overview(self, overview: JointEstimate) -> None:
        """Add a family that was measured at once."""
        super().add_overview(overview)
        self._plans = {}

    def add(self, measurement: Measurement) -> None:
        """Add a table or a query."""
        super().add(measurement)
        if measurement.query is None:
            self._plans = {}

    def interval(self, query: Linear, row_count: RowCountInterval) -> tuple[float, float]:
        """Return the ends that ``intervals`` gives for the true fraction of one query."""
        if not is_product(query) or (self.queries and query.key in self.queries):
            ends = self.intervals([query], row_count)
            return float(ends[0][0]), float(ends[1][0])
        plan = self._plan(query.attributes)
        sets, codes, sizes = _describe(query, plan)
        low, high, room = 0.0, 1.0, 1.0
        for part in plan.parts:
            below, above = _bound(part, sets, codes, sizes, row_count)
            high = min(high, above)
            low = max(low, below) if plan.measured else low
            room -= 1 - below if part.brings else 0.0
        if plan.whole and not plan.measured:
            low = max(0.0, room)
        return low, max(low, high)

    def deviation(self, query: Linear) -> float:
        """Return the standard deviation, in rows, of the best measurement of a query; infinite without one."""
        names = query.attributes
        if not is_product(query) or (self.queries and query.key in self.queries):
            return float(self.deviations(names, [query])[0])
        plan, found = self._plan(names), math.inf
        if plan.measured:
            (part,) = plan.parts
            sets, _, sizes = _describe(query, plan)
            norm = _norm(math.prod(sizes), part.cells)
            found = min(table.deviation(names, sets, norm) for table in part.tables)
        return found

    def _plan(self, names: Names) -> _Plan:
        """Return what bounds counts on these attributes."""
        if names in self._plans:
            return self._plans[names]
        universe, covered, parts = self.universe, set[str](), []
        measured = self.covers(names)
        for part in [names] if measured else self.largest_parts(names):
            places = tuple(names.index(name) for name in part)
            of_class = doubt_of("products", ordered=any(universe[name].ordered for name in part))
            of_class -= math.log(2) if len(part) == 1 else 0.0
            tables = self._tables_on(part)
            parts.append(_Part(part, places, not covered.issuperset(part), universe.cells(part), of_class, tables))
            covered.update(part)
        kinds = [(universe[n].ordered, nats_of_kinds(universe[n].size, universe[n].ordered)) for n in names]
        if len(self._plans) >= KEPT_PARTS:
            self._plans = {}
        return self._plans.setdefault(names, _Plan(measured, covered == set(names), kinds, parts))

    def _tables_on(self, names: Names) -> list[_Table]:
        """Return the released tables that bound counts on measured attributes, each with the tail of its noise."""
        cells, found = self.universe.cells(names), []
        if self.overview is not None and self.overview.covers(names):
            y, rounding = self.overview.onto(names), self.overview.rounding
            base = self.overview_doubt + math.log(len(self.overview.sets))
            most = math.sqrt(cells) + math.sqrt(2 * (base + doubt_of("tables")))

            def joint_tail(code: float) -> float:
                return min(float(gaussian_tail(base + code, 2 * rounding)), most) + rounding

            found.append(_Table(y, float(y.sum()), 1.0, math.nan, joint_tail, joint=self.overview))
        for measurement, doubt in self.supporting_measurements(names):
            found.append(_table_of(measurement, doubt, names, cells, self.universe.cells(measurement.attributes)))
        return found


def _table_of(measurement: Measurement, doubt: float, names: Names, cells: int, measured: int) -> _Table:
    """Return a measured table, summed to these attributes, with the tail of its noise."""
    event, y = measurement.event, measurement.onto(names)
    base = doubt + doubt_of_subset(len(measurement.attributes), len(names))
    x = base + doubt_of("tables")
    if isinstance(event, Gaussian):
        most, step = math.sqrt(cells) + math.sqrt(2 * x), event.grid / event.sigma
        return _Table(
            y, float(y.sum()), measured / cells, measurement.variance,
            lambda code: min(float(gaussian_tail(base + code, step)), most),
        )  # fmt: skip
    scale, grid = event.scale, event.grid
    widest = scale * (measured + math.sqrt(2 * measured * x) + x) + grid * measured
    return _Table(
        y, float(y.sum()), measured / cells, measurement.variance, lambda _: math.inf,
        lambda code, norm: min(float(tail(event, np.asarray(norm), base + code)), widest),
    )  # fmt: skip


def _describe(query: Linear, plan: _Plan) -> tuple[list[NDArray[np.bool_]], list[float], list[int]]:
    """Return the set of cells of each attribute, the nats of its kind, and its size."""
    sets, codes, sizes = list(query.vectors or ()), [], []
    for mask, (is_ordered, nats) in zip(sets, plan.kinds, strict=True):
        size, is_run = int(np.count_nonzero(mask)), False
        if is_ordered and mask.size > 3:
            is_run = np.count_nonzero(mask[1:] != mask[:-1]) + (mask[0] != mask[-1]) <= 2
        codes.append(float(nats[int(is_run), size]))
        sizes.append(size)
    return sets, codes, sizes


def _norm(total: int, cells: int) -> float:
    """Return ‖q − c‖₂ of a count of ``total`` cells, with c the mean of q."""
    return math.sqrt(max(total - total * (total / cells), 0.0))


def _bound(
    part: _Part,
    sets: Sequence[NDArray[np.bool_]],
    codes: Sequence[float],
    sizes: Sequence[int],
    row_count: RowCountInterval,
) -> tuple[float, float]:
    """Return both ends for the true fraction of the part of a count that is about measured attributes."""
    inside = [sets[place] for place in part.places]
    code, total = part.of_class, 1
    for place in part.places:
        code += codes[place]
        total *= sizes[place]
    c, norm = total / part.cells, _norm(total, part.cells)
    low, high = 0.0, 1.0
    for table in part.tables:
        found = table.values
        for mask in reversed(inside):
            found = found @ mask
        off = float(found) - c * table.total
        width = table.width(code, norm, table.deviation(part.names, inside, norm))
        below, above = off - width, off + width
        low = max(low, c + below / (row_count.low if below < 0 else row_count.high))
        high = min(high, c + above / (row_count.high if above < 0 else row_count.low))
    return low, max(low, high)
