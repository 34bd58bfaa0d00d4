"""What the session knows: a function of released measurements alone, in the order in which they were released."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TypeVar

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.data import exact_counts
from hedgerow.engines.practical.certificate import Certified
from hedgerow.engines.practical.corrections import Believed, Corrections
from hedgerow.engines.practical.error_bars import ErrorBars
from hedgerow.engines.practical.measurement import Measurement, Rows, varying
from hedgerow.engines.practical.merged_bars import MergedBars
from hedgerow.engines.practical.merging import Merging
from hedgerow.engines.practical.residuals import Evidence, Overview
from hedgerow.engines.practical.shrinkage import STANDS_OUT, blocks, ridge
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.model.junction_tree import junction_cells
from hedgerow.model.log_linear import LogLinear, Target, minimise
from hedgerow.questions.linear import Linear, answer_all
from hedgerow.questions.universe import Universe
from hedgerow.questions.wire import inner, thing
from hedgerow.questions.wire_values import (
    Json,
    read_array,
    read_list,
    read_names,
    read_whole,
    refuse,
    write_array,
    write_names,
)

Value = TypeVar("Value", float, Array)
ROOM = 4_000_000  # cells of the junction tree, for what a session measures later
MANY_ATTRIBUTES = 30  # of more than so many the model is smaller,
ROOM_MESSAGES = 200_000_000  # by its cells times the values of all attributes: what tables of small sets go through
REFIT_STEPS = 200
ONE_WAY_TRUST = 9.0  # one-way tables are trusted over the uniform start
KEPT = 1e12  # the ridge, for each row, of what an earlier block taught and this one did not measure
NEAREST = 1e-4  # τ² at least: two blocks are never taken to be alike to less than a hundredth
TINY = 1e-300
LARGEST_NOISE = 2.0**exact_counts.NOISE_BITS  # of what is bought: less noise than asked for, where that is more


@dataclass(frozen=True, eq=False)
class Prior:
    """What an earlier block's opening came to, for the next block to begin with. Public.

    The parameters of a log-linear model of groups of values, whose groups the next block's need not be (``merging``).
    """

    merging: Merging
    tables: dict[Names, Array]

    def onto(self, merging: Merging) -> dict[Names, Array]:
        """The same potentials, of other groups: the mean over a group's values, and of one attribute alone their sum."""
        found = {}
        for names, table in self.tables.items():
            carried = np.exp(table - table.max()) if merging.is_possible else table
            for axis, name in enumerate(names) if merging.is_possible else ():
                carried = merging.regrouped(self.merging, name, carried, axis, summed=len(names) == 1)
            found[names] = np.log(np.maximum(carried, TINY)) if merging.is_possible else carried.copy()
        return found


@dataclass
class Learned:
    """Released measurements, their combination, and the model fitted to them. All public.

    The evidence and the model are of groups of values (``merging``), which are the values themselves where none is wide.
    """

    universe: Universe
    merging: Merging
    evidence: Evidence
    model: LogLinear
    rows: float
    by_values: Evidence
    overview: Overview | None = None
    measurements: list[Measurement] = field(default_factory=list)
    _public_rows: float | None = None
    _priors: dict[object, Array] = field(default_factory=dict, repr=False)
    _corrections: Corrections | None = field(default=None, repr=False)
    _origin: dict[Names, Array] = field(default_factory=dict, repr=False)
    _fitted: tuple[Array, Hypothesis] | None = field(
        default=None, repr=False
    )  # parameters, and the hypothesis they make

    @classmethod
    def nothing(
        cls,
        universe: Universe,
        rows: float | None = None,
        merging: Merging | None = None,
        prior: Prior | None = None,
    ) -> Learned:
        """``rows``: n where it is public. ``prior``: what is believed before anything is measured, where not that all is alike."""
        merging = merging or Merging.none(universe)
        inner = merging.inner
        made = cls(
            universe,
            merging,
            Evidence(inner, rows),
            LogLinear(inner, ()),
            rows or 1.0,
            Evidence(universe, rows),
            _public_rows=rows,
        )
        if prior is not None:
            made._origin = prior.onto(merging)
            made.model = LogLinear(inner, made._origin)
            made.model.settle(made._origins())
            made._priors = {s: made.model.marginal(s) for s in made.model.sets}
        return made

    @property
    def prior_cells(self) -> int:
        """How large the model is that it began with."""
        return junction_cells(self.merging.inner, list(self._origin)) if self._origin else 0

    def _origins(self) -> Array:
        """The parameters that the model began with, and 0 for what it has since."""
        model = self.model
        origin = np.zeros_like(model.theta)
        for names, piece in zip(model.sets, model.split(origin), strict=False):
            if names in self._origin:
                piece[...] = self._origin[names]
        return origin

    def as_prior(self) -> Prior:
        """For the block that comes next, as of now."""
        pieces = zip(self.model.sets, self.model.split(self.model.theta), strict=False)
        return Prior(self.merging, {names: piece.copy() for names, piece in pieces})

    @classmethod
    def restored(cls, universe: Universe, rows: float | None, record: Json, prior: Prior | None = None) -> Learned:
        """What ``state`` described, to the last bit."""
        made = cls.nothing(universe, rows, Merging.restored(universe, record["merging"]), prior)
        for measured, axes in zip(read_list("measurements", record["measurements"]), record["layouts"], strict=True):
            measurement = thing("a measurement", measured, Measurement)
            made._take(replace(measurement, values=_laid_out(measurement.values, axes)))
        residuals = [m for m in made.measurements if m.residual]
        inner = made.merging.inner
        if residuals:  # the first are the overview's; in older snapshots all are
            count = read_whole("overview", record.get("overview", len(residuals)))
            if not 0 < count <= len(residuals):
                refuse("overview", "how many of the residuals are the overview's", count)
            made.overview = Overview(inner, residuals[:count], rows)
        queries = [thing("a query", query, Linear) for query in record["queries"]]
        sets = [read_names("names", names) for names in record["sets"]]
        made.model = LogLinear(inner, sets, {query.key: query for query in queries})
        made.model.settle(read_array(record["theta"], "float64"))
        priors = [read_array(prior, "float64") for prior in record["priors"]]
        made._priors = dict(zip([*made.model.sets, *made.model.queries], priors, strict=True))
        return made

    def state(self) -> Json:
        model = self.model
        return {
            "merging": self.merging.state(),
            "measurements": [inner(measurement) for measurement in self.measurements],
            "layouts": [_layout(measurement.values) for measurement in self.measurements],
            "sets": [write_names("A name", names) for names in model.sets],
            "queries": [inner(query) for query in model.queries.values()],
            "theta": write_array(model.theta),
            "priors": [write_array(self._priors[key]) for key in (*model.sets, *model.queries)],
            "overview": 0 if self.overview is None else self.overview.measured,
        }

    def add(self, measurement: Measurement) -> None:
        """One of the prefit's, which are of groups."""
        self._take(replace(measurement, of_groups=True) if self.merging.is_possible else measurement)

    def add_values(self, measurement: Measurement) -> None:
        """One of single values, of a table or of a query."""
        self._take(measurement)

    def _take(self, measurement: Measurement) -> None:
        self.measurements.append(measurement)
        self._corrections = None
        if measurement.query is not None:
            return
        if measurement.of_groups or not self.merging.touches(measurement.attributes):
            self.evidence.add(measurement)
        else:
            self.evidence.add(self.merging.of_groups(measurement))
            self.by_values.add(measurement)
        if self._public_rows is None:
            self.rows = max(1.0, self.evidence.total[0])

    @property
    def outside(self) -> list[Names]:
        """What was measured and is not in the model."""
        return self.current().outside

    def current(self) -> Corrections:
        """Of the model as it is."""
        if self._corrections is None:
            self._corrections = self.corrections(self.model.marginal)
        return self._corrections

    def marginal(self, names: Names) -> Array:
        """What is believed of groups: the model's table, corrected by what was measured outside it."""
        corrected = self.current().table(names)
        return self.model.marginal(names) if corrected is None else corrected

    def corrections(self, marginal: Callable[[Names], Array]) -> Corrections:
        """As of now. ``marginal``: the model's."""
        model = list(self.model.sets), list(self.model.tops)
        return Corrections(
            self.merging.inner, marginal, model, self.evidence.copy(), self.rows, everywhere=self.overview is None
        )

    def hypothesis(self) -> Hypothesis:
        """What is believed of everything, as of now."""
        if self._fitted is not None and self._fitted[0] is self.model.theta:  # with the tables that it has made
            of_groups = self._fitted[1]
        else:
            of_groups = self.model.hypothesis()
        corrections = self.corrections(of_groups.marginal)
        if not (self.merging.is_possible or corrections.outside):
            return of_groups
        self._fitted = self.model.theta, of_groups  # which nobody updates, as it is inside another
        return Believed(of_groups, corrections, self.merging, self.by_values.copy(), self.rows)

    def asked_of_groups(self, query: Linear) -> Linear:
        """The question about groups that stands for this one in the model."""
        asked = self.merging.expected(query)
        return query if asked is query else Linear.canonical(asked.attributes, asked.table)

    def has_room(self, names: Names) -> bool:
        """Whether the model can take these attributes into one clique: a public fact."""
        inner, room = self.merging.inner, float(ROOM)
        if len(inner.names) > MANY_ATTRIBUTES:
            room = min(room, max(ROOM_MESSAGES / sum(inner.shape), self.model.tree.cells))
        return junction_cells(inner, [*self.model.tops, names]) <= room

    def grow(self, *sets: Names, query: Linear | None = None) -> None:
        """Give the model these sets; what it believes of them now is the prior of their tables."""
        larger = self.model.grown(sets, query)
        if larger is self.model:
            return
        for s in larger.sets:
            if s not in self._priors:
                self._priors[s] = self.model.marginal(s)
        for key, q in larger.queries.items():
            if key not in self._priors:
                self._priors[key] = np.asarray(q.dot(self.model.marginal(q.attributes)))
        self.model, self._corrections = larger, None

    def refit(self, steps: int, tolerance: float = 1.0) -> float:
        """Fit the model to all measurements, from where it is, to a decrement of ``tolerance`` nats; the objective."""
        if not (self.model.sets or self.model.queries):
            return 0.0
        targets = [self._target(s) for s in self.model.sets]
        single = {self.asked_of_groups(m.query).key: m for m in self.measurements if m.query is not None}
        targets += [
            Target(
                single[key].values,
                ridge(self.rows, self._priors[key], single[key].values, single[key].variance, stands_out=math.inf),
            )
            for key in self.model.queries
        ]
        self._corrections = None
        origin = self._origins() if self._origin else None
        return minimise(self.model, targets, self.rows, steps=steps, tolerance=tolerance, origin=origin)

    def _target(self, names: Names) -> Target:
        if self._origin and names not in self.evidence:  # nothing was measured of it here: it stays as it was before
            return Target(np.zeros(self.merging.inner.sizes(names)), np.asarray(KEPT * self.rows))
        counts, variance = self.evidence.estimate(names)
        prior = self._priors[names]
        trust = ONE_WAY_TRUST if len(names) == 1 else 1.0
        stands_out = STANDS_OUT if self.overview is None else math.inf  # all pairs being known, priors are no guesses
        drawn = ridge(self.rows, prior, counts, variance, trust, stands_out)
        if names in self._origin:
            return Target(counts, drawn * likeness(counts, self.rows * prior, variance))
        return Target(counts, drawn, blocks(self.rows, prior, counts, variance, stands_out))


def likeness(counts: Array, before: Array, variance: float) -> Array:
    """How much more each count is drawn to what an earlier block makes of it than to a guess, which may be off by all it says.

    By as much as the counts are nearer to it: E Σ (y − m)² = Σ v + τ² Σ m², m the earlier block's counts, v the noise and τ how far, of
    itself, it is off. A deviation more is allowed for. A count that stands out by itself is believed itself.
    """
    off = np.square(counts - before)
    beyond = float(off.sum()) - (counts.size - math.sqrt(2 * counts.size)) * variance
    τ2 = min(1.0, max(beyond / max(float(np.square(before).sum()), 1e-300), NEAREST))
    return np.where(off > STANDS_OUT**2 * variance, 1.0, 1 / τ2)


class Knowledge:
    """The model with its error bars and the number of rows: answers that cost nothing."""

    def __init__(self, learned: Learned, beta: float, public_rows: int | None, shares: Sequence[int] = ()) -> None:
        """``public_rows``: n where it is public. ``shares``: the numbers of ``ErrorBars.shares``, and last all of them."""
        self.universe, self.learned = learned.universe, learned
        self.bars: ErrorBars | MergedBars = ErrorBars(learned.universe, beta)
        if learned.merging.is_possible:
            self.bars = MergedBars(learned.merging, beta)
        self._public_rows = public_rows
        self.certified: Certified | None = None
        if learned.overview is not None:
            self.bars.add_overview(learned.overview)
        added = [measurement for measurement in learned.measurements if not measurement.residual]
        for measurement, numbers in zip_longest(added, shares):
            while self.bars.numbers < (numbers or 0):
                self.bars.add_number()
            if measurement is not None:
                self.bars.add(measurement)
        self._settle()

    def _settle(self) -> None:
        """What follows from the measurements so far."""
        self.hypothesis: Hypothesis = self.learned.hypothesis()
        known = self._public_rows
        self.rows = self.bars.rows() if known is None else Rows(known, known, known)
        scale = min(self.rows.estimate, 2.0**exact_counts.EXACT_BITS)
        self.grid = exact_counts.grid_for(scale, min(scale, LARGEST_NOISE))

    def learn(self, measurement: Measurement) -> None:
        """One more measurement: bars, and the hypothesis refitted to everything released so far."""
        names, query = measurement.attributes, measurement.query
        self.bars.add(measurement)
        self.learned.add_values(measurement)
        if self.learned.has_room(names):  # otherwise the measurement still bounds and corrects its own answers
            asked = None if query is None else self.learned.asked_of_groups(query)
            if asked is None or asked.attributes:
                self.learned.grow(*(() if asked is not None or not names else (names,)), query=asked)
            self.learned.refit(REFIT_STEPS, 0.1)
        self._settle()

    def free(self, query: Linear, within: float | None) -> tuple[float, float]:
        """The hypothesis' answer inside the interval that is known, and the bar around it."""
        value = np.array([self.answer(query)])
        values, errors = _placed(value, *self.intervals([query], value), within)
        return float(values[0]), float(errors[0])

    def free_all(self, queries: Sequence[Linear], values: Array | None = None) -> tuple[Array, Array]:
        """The same of many at once. ``values``: the hypothesis' own answers, where they are at hand."""
        values = answer_all(queries, self.believed) if values is None else values
        return _placed(values, *self.intervals(queries, values), None)

    def intervals(self, queries: Sequence[Linear], believed: Array) -> tuple[Array, Array]:
        """Where the true fractions are, by what was measured and what was certified. ``believed``: the hypothesis' answers."""
        low, high = self.bars.intervals(queries, self.rows)
        made = self.certified
        if made is None:
            return low, high
        then = believed if made.hypothesis is self.hypothesis else answer_all(queries, self._certified_table)
        for names, members in _grouped(queries).items():
            reach = made.reach(names, [queries[i] for i in members])
            low[members], high[members] = self._cut(low[members], high[members], then[members], reach)
        return low, high

    def table(self, names: Names, within: float | None) -> tuple[Array, Array]:
        """A whole marginal, and the bar of each of its cells."""
        kept = varying(self.universe, names)
        believed = self.believed(kept) if kept else np.ones(())
        values, errors = _placed(believed, *self.cell_intervals(kept, believed), within)
        shape = self.universe.sizes(names)
        return values.reshape(shape), errors.reshape(shape)

    def cell_intervals(self, names: Names, believed: Array) -> tuple[Array, Array]:
        """As ``intervals``, of every cell of a table."""
        low, high = self.bars.cell_intervals(names, self.rows)
        made = self.certified
        if made is None or not names:
            return low, high
        then = believed if made.hypothesis is self.hypothesis else self._certified_table(names)
        return self._cut(low, high, then, made.cells(names))

    # With what was just bought

    def free_with(self, query: Linear, before: float, spread: float, within: float) -> tuple[float, float]:
        """The answer by what was known before and the measurement that was bought for it, each with its precision."""
        bought = next(
            m
            for m in reversed(self.learned.measurements)
            if (m.query == query if m.query is not None else m.attributes == query.attributes)
        )
        if bought.query is None:
            share = query.dot(np.full(query.shape, 1 / math.prod(query.shape)))
            counts = bought.values
            count = query.dot(counts) + share * (self.rows.estimate - float(counts.sum()))
            squares = float(((query.table - share) ** 2).sum())
        else:
            count, squares = float(bought.values), 1.0
        value = _combined(
            before, spread, count / self.rows.estimate, math.sqrt(squares * bought.variance) / self.rows.estimate
        )
        placed, errors = _placed(np.array([value]), *self.intervals([query], np.array([self.answer(query)])), within)
        return float(placed[0]), float(errors[0])

    def table_with(self, names: Names, before: Array, spread: float, within: float) -> tuple[Array, Array]:
        """The same of a whole table."""
        kept, bought = varying(self.universe, names), self.learned.measurements[-1]
        counts = bought.values + (self.rows.estimate - bought.values.sum()) / bought.values.size
        deviation = math.sqrt(bought.variance * (1 - 1 / counts.size)) / self.rows.estimate
        values = _combined(before.reshape(counts.shape), spread, counts / self.rows.estimate, deviation)
        values, errors = _placed(values, *self.cell_intervals(kept, self.believed(kept)), within)
        shape = self.universe.sizes(names)
        return values.reshape(shape), errors.reshape(shape)

    def _certified_table(self, names: Names) -> Array:
        """Where nothing was certified the reach is infinite, whatever the table."""
        made = self.certified
        return made.believed(names) if made is not None and names in made.family else self.believed(names)

    def _cut(self, low: Array, high: Array, then: Array, reach: float | Array) -> tuple[Array, Array]:
        """Intervals of fractions cut to what is certified: ñ·then ± reach rows."""
        assert self.certified is not None
        count = self.certified.rows.estimate * then
        low = np.maximum(low, (count - reach) / self.rows.high)
        high = np.minimum(high, (count + reach) / self.rows.low)
        return low, np.maximum(low, high)

    # How large errors are on average

    def typical(self, queries: Sequence[Linear]) -> Array:
        """The mean error of questions like these, as fractions; NaN where nobody knows. No bound.

        Of what was measured it is that of the measurement's noise, E|Z| = √(2/π)·sd; of the rest what was released of all, by
        how much each is about.
        """
        found, made = np.full(len(queries), math.nan), self.certified
        for names, members in _grouped(queries).items():
            asked = [queries[i] for i in members]
            deviations = self.bars.deviations(names, asked) if names else np.zeros(len(members))
            other = math.nan if made is None or np.isfinite(deviations).all() else made.usual(names, asked)
            found[members] = self._usual(deviations, other)
        return found

    def typical_cells(self, names: Names) -> Array:
        kept = varying(self.universe, names)
        one = {n: np.arange(self.universe[n].size) == 0 for n in kept}
        made, deviation = self.certified, np.zeros(1)
        if kept:
            deviation = self.bars.deviations(kept, [Linear.product(self.universe, one)])
        other = math.nan if made is None or np.isfinite(deviation).all() else made.usual_cells(kept)
        usual = np.broadcast_to(self._usual(deviation[0], other), self.universe.sizes(kept))
        return usual.reshape(self.universe.sizes(names)).copy()

    def _usual(self, deviations: Array, other: float | Array) -> Array:
        return np.where(np.isfinite(deviations), math.sqrt(2 / math.pi) * deviations, other) / self.rows.estimate

    def believed(self, names: Names) -> Array:
        """The hypothesis' marginal."""
        return self.hypothesis.marginal(names)

    def answer(self, query: Linear) -> float:
        return self.hypothesis.answer(query)

    def deviations(self, names: Names, queries: Sequence[Linear]) -> Array:
        """Of what was measured of queries on ``names``, in rows; infinite where nothing was."""
        return self.bars.deviations(names, queries)

    def measures(self, names: Names) -> bool:
        return self.bars.covers(names)

    def least(self, names: Names) -> Array | None:
        """A lower bound on the true fraction of each cell; None where no table of so many attributes is known."""
        kept, made = varying(self.universe, names), self.certified
        if not (self.bars.covers(kept) or (made is not None and kept in made.family)):
            return None
        low = self.cell_intervals(kept, self.believed(kept))[0]
        return np.maximum(low, 0.0).reshape(self.universe.sizes(names))

    def variation(self, names: Names, marginal: Array) -> float:
        """How far the true fractions may be from these in total variation, by what is certified; infinite where nothing is.

        Fractions are counts over n: ‖N/n − h‖₁ ≤ (‖N − ñh₀‖₁ + |n − ñ|)/n + ‖h₀ − h‖₁, h₀ the table that was certified.
        """
        kept, made = varying(self.universe, names), self.certified
        if made is None or kept not in made.family:
            return math.inf
        then = made.believed(kept)
        apart = float(np.abs(then - marginal.reshape(then.shape)).sum())
        off = (
            0.0
            if self._public_rows is not None
            else max(self.rows.high - made.rows.estimate, made.rows.estimate - self.rows.low)
        )
        return (made.distance(kept) + off) / (2 * self.rows.low) + apart / 2

    def distance(self, names: Names, marginal: Array) -> float:
        """How far in ℓ2 the true fractions may be from these."""
        return self.bars.distance(names, marginal, self.rows)


def _combined(before: Value, spread: float, measured: Value, deviation: float) -> Value:
    """The mean of two estimates by their precisions; the measured one alone where nobody knows the other's."""
    if not math.isfinite(spread):
        return measured
    share = spread**2 / (spread**2 + deviation**2)
    return before + share * (measured - before)


def _grouped(queries: Sequence[Linear]) -> dict[Names, list[int]]:
    groups: dict[Names, list[int]] = {}
    for i, query in enumerate(queries):
        groups.setdefault(query.attributes, []).append(i)
    return groups


def _layout(values: Array) -> list[int]:
    """Its axes in the order of its memory, which is the order of sums over it, to whose last bits all else is true."""
    return [int(axis) for axis in np.argsort([-abs(stride) for stride in values.strides], kind="stable")]


def _laid_out(values: Array, axes: list[int]) -> Array:
    return np.ascontiguousarray(values.transpose(axes)).transpose(np.argsort(axes)) if values.ndim else values


def _placed(values: Array, low: Array, high: Array, within: float | None) -> tuple[Array, Array]:
    """Values moved into their intervals, and the bar around each.

    Where a bar of ``within`` is possible about some value of the interval, the value is moved to have it.
    """
    values = np.clip(values, low, high)
    if within is not None:
        reachable = high - low <= 2 * within
        values = np.where(reachable, np.clip(values, high - within, low + within), values)
    return values, np.maximum(high - values, values - low)
