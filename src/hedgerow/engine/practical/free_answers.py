"""The session's public knowledge: a function of released measurements alone, in the order of their release.

``FittedModel`` holds the measurements and the model fitted to them. ``FreeAnswers`` adds error bars and answers
questions for free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, TypeVar

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.data import counting
from hedgerow.engine.practical.bars.count_bars import CountBars
from hedgerow.engine.practical.bars.merged_bars import MergedBars
from hedgerow.engine.practical.certificate.certified_bounds import CertifiedCounts
from hedgerow.engine.practical.fit.corrections import STANDS_OUT, CorrectedHypothesis, Corrections, blocks, ridge
from hedgerow.engine.practical.fit.interactions import (
    CommonFactors,
    InteractionPrior,
    deviations,
    pair_table,
    single_counts,
    with_margins,
)
from hedgerow.engine.practical.fit.residuals import Evidence, Overview
from hedgerow.engine.practical.fit.value_groups import ValueGroups
from hedgerow.engine.practical.measurement import Measurement, RowCountInterval, varying_names
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis, PairTables
from hedgerow.model.junction_tree import junction_cells
from hedgerow.model.log_linear import LogLinear, Target, minimize
from hedgerow.query.linear import Linear, Products, answer_all, is_product, stacked_groups
from hedgerow.query.support import MeasuredSets, Support
from hedgerow.universe.universe import Universe

Value = TypeVar("Value", float, Array)
KEPT_CELLS = 4_000_000  # most cells of the tables whose part of the noise is cached
LITTLE = 0.25  # part of the noise by which every cell is believed to vary, for its typical error
ROOM = 4_000_000  # most cells of the junction tree once the session's own measurements enter it
MANY_ATTRIBUTES = 30  # with more attributes than this the model is kept smaller,
ROOM_MESSAGES = 200_000_000  # by this limit on tree cells × values of all attributes, the work of making small tables
REFIT_STEPS = 200  # most steps of a fit after a purchase
ONE_WAY_TRUST = 9.0  # one-way tables are drawn this much less to the prior, which is uniform for them
ESTIMATED = 0.1  # ridge of a pair whose table is estimated, as a part of the ridge of its noisy counts
KEPT = 1e12  # ridge per row that holds on to what an earlier block taught and this block did not measure
NEAREST = 1e-4  # smallest τ²: two blocks are never assumed to agree better than to a hundredth
TINY = 1e-300  # avoids log 0
LARGEST_NOISE = 2.0**counting.NOISE_BITS  # a purchase never uses a larger noise scale than this


@dataclass(frozen=True, eq=False)
class BlockPrior:
    """The result of an earlier block's opening, from which the next block begins. Public.

    It holds the parameters of a log-linear model of groups of values. The next block may group values differently
    (``value_groups``).
    """

    merging: ValueGroups
    tables: dict[Names, Array]

    def onto(self, merging: ValueGroups) -> dict[Names, Array]:
        """Return the potentials for other groups: the mean over a group's values; for a single attribute, their sum."""
        found = {}
        for names, table in self.tables.items():
            carried = np.exp(table - table.max()) if merging.is_possible else table
            for axis, name in enumerate(names) if merging.is_possible else ():
                carried = merging.regroup(self.merging, name, carried, axis, summed=len(names) == 1)
            found[names] = np.log(np.maximum(carried, TINY)) if merging.is_possible else carried.copy()
        return found


@dataclass
class FittedModel:
    """Released measurements, their combination, and the model fitted to them. All public.

    Evidence and model are about groups of values (``value_groups``); where no attribute is wide, groups are the values
    themselves.
    """

    universe: Universe
    merging: ValueGroups
    evidence: Evidence
    model: LogLinear
    rows: float
    by_values: Evidence
    overview: Overview | None = None
    interactions: InteractionPrior | None = None  # of pairs outside the model, where all pairs were measured
    measurements: list[Measurement] = field(default_factory=list)
    _public_rows: float | None = None
    _priors: dict[object, Array] = field(default_factory=dict, repr=False)
    _corrections: Corrections | None = field(default=None, repr=False)
    _origin: dict[Names, Array] = field(default_factory=dict, repr=False)
    _fitted: tuple[Array, Hypothesis] | None = field(default=None, repr=False)  # parameters, and their hypothesis

    @classmethod
    def nothing(
        cls,
        universe: Universe,
        rows: float | None = None,
        merging: ValueGroups | None = None,
        prior: BlockPrior | None = None,
    ) -> FittedModel:
        """Return the state before any measurement.

        ``rows`` is n where it is public. ``prior`` is the belief to begin with; without it the model begins with the
        uniform distribution.
        """
        merging = merging or ValueGroups.none(universe)
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
        """The number of cells of the model that an earlier block left as prior."""
        return junction_cells(self.merging.inner, list(self._origin)) if self._origin else 0

    def _origins(self) -> Array:
        """Return the parameters that the model began with, and 0 for those it has gained since."""
        model = self.model
        origin = np.zeros_like(model.theta)
        for names, piece in zip(model.sets, model.split(origin), strict=False):
            if names in self._origin:
                piece[...] = self._origin[names]
        return origin

    def as_prior(self) -> BlockPrior:
        """Return the current model as the prior of the next block."""
        pieces = zip(self.model.sets, self.model.split(self.model.theta), strict=False)
        return BlockPrior(self.merging, {names: piece.copy() for names, piece in pieces})

    @classmethod
    def restore(
        cls, universe: Universe, rows: float | None, state: dict[str, Any], prior: BlockPrior | None = None
    ) -> FittedModel:
        """Rebuild, to the last bit, the knowledge that ``state`` described."""
        made = cls.nothing(universe, rows, ValueGroups.restore(universe, state["merging"]), prior)
        for measurement, axes in zip(state["measurements"], state["layouts"], strict=True):
            made._take(replace(measurement, values=_lay_out(measurement.values, axes)))
        residuals = [m for m in made.measurements if m.residual]
        inner = made.merging.inner
        if residuals:  # the first ``overview`` of them are the overview's; in older snapshots all are
            count = state.get("overview", len(residuals))
            if not 0 < count <= len(residuals):
                raise InvalidInput(
                    f"overview must be the number of residuals that belong to the overview. Found {count!r} of "
                    f"{len(residuals)}. Restore the ledger from a copy."
                )
            made.overview = Overview(inner, residuals[:count], rows)
        if state.get("interactions") is not None:  # where all pairs were measured
            made.interactions = InteractionPrior.restore(dict(zip(inner.names, inner.shape, strict=True)), state)
        sets = [tuple(names) for names in state["sets"]]
        made.model = LogLinear(inner, sets, {query.key: query for query in state["queries"]})
        made.model.settle(state["theta"].copy())
        made._priors = dict(zip([*made.model.sets, *made.model.queries], state["priors"], strict=True))
        return made

    def state(self) -> dict[str, Any]:
        """Return everything learned, as plain data that a later fit does not change."""
        model = self.model
        return {
            "merging": self.merging.state(),
            "measurements": list(self.measurements),
            "layouts": [_layout(measurement.values) for measurement in self.measurements],
            "sets": [list(names) for names in model.sets],
            "queries": list(model.queries.values()),
            "theta": model.theta.copy(),
            "priors": [self._priors[key].copy() for key in (*model.sets, *model.queries)],
            "overview": 0 if self.overview is None else self.overview.measured,
        } | ({} if (prior := self.interactions) is None else prior.state())

    def with_measurements(self, measurements: Sequence[Measurement]) -> FittedModel:
        """Return the same model with other values of its measurements, to be refitted from the present parameters.

        Tables that were not measured here, but by an earlier block, stay what they are.
        """
        layouts = [_layout(measurement.values) for measurement in measurements]
        state = {**self.state(), "measurements": list(measurements), "layouts": layouts}
        twin = FittedModel.restore(self.universe, self._public_rows, state)
        model = twin.model
        pieces = zip(model.sets, model.split(model.theta), strict=False)
        twin._origin = {names: piece.copy() for names, piece in pieces if names not in twin.evidence}
        return twin

    def add(self, measurement: Measurement) -> None:
        """Add a measurement of the prefit, which is of groups."""
        self._take(replace(measurement, of_groups=True) if self.merging.is_possible else measurement)

    def add_values(self, measurement: Measurement) -> None:
        """Add a measurement of single values, of a table or of a query."""
        self._take(measurement)

    def _take(self, measurement: Measurement) -> None:
        """Store a measurement and combine it with the evidence."""
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
        """The sets that were measured but are not in the model."""
        return self.current().outside

    def current(self) -> Corrections:
        """Return the corrections of the model as it is now."""
        if self._corrections is None:
            self._corrections = self.corrections(self.model.marginal)
        return self._corrections

    def marginal(self, names: Names) -> Array:
        """Return the belief about groups: the model's table, corrected by what was measured outside the model."""
        corrected = self.current().table(names)
        return self.model.marginal(names) if corrected is None else corrected

    def corrections(self, marginal: Callable[[Names], Array]) -> Corrections:
        """Return the corrections as of now; ``marginal`` gives the model's tables."""
        model = list(self.model.sets), list(self.model.tops)
        return Corrections(
            self.merging.inner,
            marginal,
            model,
            self.evidence.copy(),
            self.rows,
            everywhere=self.overview is None or self.interactions is not None,
            interactions=self.interactions,
            before={s: self._priors[s] for s in self.model.sets if s in self._priors},
        )

    def fit_interactions(self) -> None:
        """Fit what the measured pairs have in common (``interactions``)."""
        tables = PairTables(dict(zip(self.merging.inner.names, self.merging.inner.shape, strict=True)))
        matrix = tables.pair_matrix(self.model.tree, self.model.beliefs())
        cells: list[tuple[Array, Array, float]] = []
        off: dict[Names, Array] = {}
        variances: dict[Names, float] = {}
        for pair in (s for s in self.evidence.sets if len(s) == 2):
            believed = with_margins(tables.block(matrix, pair), pair, self.evidence, self.rows)
            off[pair], variances[pair] = deviations(believed, pair, self.evidence)
            if pair in self._priors:
                believed = with_margins(self._priors[pair], pair, self.evidence, self.rows)
            cells.append((believed, *deviations(believed, pair, self.evidence)))
        factors = CommonFactors.fit(tables.sizes, off, variances)
        self.interactions, self._corrections = replace(InteractionPrior.fit(cells), factors=factors), None

    def hypothesis(self) -> Hypothesis:
        """Return the current belief as a hypothesis over values."""
        # Reuse the hypothesis of unchanged parameters, with the tables it has computed.
        if self._fitted is not None and self._fitted[0] is self.model.theta:
            of_groups = self._fitted[1]
        else:
            of_groups = self.model.hypothesis()
        corrections = self.corrections(of_groups.marginal)
        if not (self.merging.is_possible or corrections.outside):
            return of_groups
        self._fitted = self.model.theta, of_groups  # safe to share: it is wrapped, so nobody updates it
        return CorrectedHypothesis(of_groups, corrections, self.merging, self.by_values.copy(), self.rows)

    def question_of_groups(self, query: Linear) -> Linear:
        """Return the question about groups that stands for this one in the model."""
        asked = self.merging.expected_question(query)
        return query if asked is query else Linear.canonical(asked.attributes, asked.table)

    def has_room(self, names: Names) -> bool:
        """Return True if the model can hold these attributes in one clique. A public fact."""
        inner, room = self.merging.inner, float(ROOM)
        if len(inner.names) > MANY_ATTRIBUTES:
            room = min(room, max(ROOM_MESSAGES / sum(inner.shape), self.model.tree.cells))
        return junction_cells(inner, [*self.model.tops, names]) <= room

    def grow(self, *sets: Names, query: Linear | None = None) -> None:
        """Add these sets to the model; its present belief on them becomes the prior of their tables."""
        larger = self.model.grow(sets, query)
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
        """Fit the model to all measurements, from its present parameters, and return the objective.

        The fit stops at a decrement of ``tolerance`` nats or after ``steps`` steps.
        """
        if not (self.model.sets or self.model.queries):
            return 0.0
        targets = [self._target(s) for s in self.model.sets]
        single = {self.question_of_groups(m.query).key: m for m in self.measurements if m.query is not None}
        targets += [
            Target(
                single[key].values,
                ridge(self.rows, self._priors[key], single[key].values, single[key].variance, stands_out=math.inf),
            )
            for key in self.model.queries
        ]
        self._corrections = None
        origin = self._origins() if self._origin else None
        return minimize(self.model, targets, self.rows, steps=steps, tolerance=tolerance, origin=origin)

    def _target(self, names: Names) -> Target:
        """Return the fit's target for one set: estimated counts, ridge and blocks."""
        if self._origin and names not in self.evidence:  # not measured in this block: keep the earlier block's table
            return Target(np.zeros(self.merging.inner.sizes(names)), np.asarray(KEPT * self.rows))
        counts, variance = self.evidence.estimate(names)
        prior = self._priors[names]
        trust = ONE_WAY_TRUST if len(names) == 1 else 1.0
        stands_out = STANDS_OUT if self.overview is None else math.inf  # with all pairs known, priors are not guesses
        drawn = ridge(self.rows, prior, counts, variance, trust, stands_out)
        if self.interactions is not None and len(names) == 1:
            return Target(single_counts(self.evidence, names, self.rows), ESTIMATED * drawn)
        if self.interactions is not None and len(names) == 2:
            believed = with_margins(prior, names, self.evidence, self.rows)
            return Target(pair_table(self.interactions, believed, names, self.evidence), ESTIMATED * drawn)
        if names in self._origin:
            return Target(counts, drawn * likeness(counts, self.rows * prior, variance))
        return Target(counts, drawn, blocks(self.rows, prior, counts, variance, stands_out))


def likeness(counts: Array, before: Array, variance: float) -> Array:
    """Return the factor by which each count is drawn more to an earlier block's count than to a mere guess.

    A guess may be off by all it says. The factor 1/τ² grows the nearer the counts are to the earlier block's: E Σ (y
    − m)² = Σ v + τ² Σ m², with m the earlier block's counts, v the noise variance and τ the relative error of m. One
    standard deviation more is allowed for. A count that stands out by itself is believed as it is.
    """
    off = np.square(counts - before)
    beyond = float(off.sum()) - (counts.size - math.sqrt(2 * counts.size)) * variance
    τ2 = min(1.0, max(beyond / max(float(np.square(before).sum()), 1e-300), NEAREST))
    return np.where(off > STANDS_OUT**2 * variance, 1.0, 1 / τ2)


class FreeAnswers:
    """The model with its error bars and the number of rows: the answers that cost nothing."""

    def __init__(self, learned: FittedModel, beta: float, public_rows: int | None, shares: Sequence[int] = ()) -> None:
        """Add bars to what was learned.

        ``public_rows`` is n where it is public. ``shares`` restores how β was divided: the numbers of
        ``ErrorBars.shares``, then the count of all of them.
        """
        self.universe, self.learned, self.beta = learned.universe, learned, beta
        self.bars: CountBars | MergedBars = CountBars(learned.universe, beta)
        if learned.merging.is_possible:
            self.bars = MergedBars(learned.merging, beta)
        self._public_rows = public_rows
        self.certified: CertifiedCounts | None = None
        self._sets: tuple[int, MeasuredSets] | None = None  # with the number of measurements that they are from
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
        """Recompute what follows from the measurements so far: hypothesis, number of rows, and grid of purchases."""
        self.hypothesis: Hypothesis = self.learned.hypothesis()
        self._kept: dict[Names, Array] = {}
        self._bought = {each.query.key for each in self.learned.measurements if each.query is not None}
        known = self._public_rows
        self.rows = self.bars.rows() if known is None else RowCountInterval(known, known, known)
        scale = min(self.rows.estimate, 2.0**counting.EXACT_BITS)
        self.grid = counting.grid_for(scale, min(scale, LARGEST_NOISE))

    def learn(self, measurement: Measurement) -> None:
        """Add a measurement: update the bars and refit the hypothesis to everything released so far."""
        names, query = measurement.attributes, measurement.query
        self.bars.add(measurement)
        self.learned.add_values(measurement)
        if self.learned.has_room(names):  # without room the measurement still bounds and corrects its own answers
            asked = None if query is None else self.learned.question_of_groups(query)
            if asked is None or asked.attributes:
                self.learned.grow(*(() if asked is not None or not names else (names,)), query=asked)
            self.learned.refit(REFIT_STEPS, 0.1)
        self._settle()

    def free(self, query: Linear, within: float | None) -> tuple[float, float]:
        """Return the hypothesis' answer, moved into the known interval, and the bar around it."""
        believed = self.answer(query)
        low, high = self.bars.interval(query, self.rows)
        made, names = self.certified, query.attributes
        if made is not None:
            then = believed if made.hypothesis is self.hypothesis else query.dot(self._certified_table(names))
            is_count = is_product(query)
            reach = made.reach_of_count(names, query) if is_count else float(made.reach(names, [query])[0])
            count = made.rows.estimate * then
            low, high = max(low, (count - reach) / self.rows.high), min(high, (count + reach) / self.rows.low)
            if not is_count:
                low, high = self._cut_to_mean(low, high, query, then)
            high = max(low, high)
        value = min(max(believed, low), high)
        if within is not None and high - low <= 2 * within:
            value = min(max(value, high - within), low + within)
        return value, max(high - value, value - low)

    def free_all(self, queries: Sequence[Linear], values: Array | None = None) -> tuple[Array, Array]:
        """Return answers and bars of many queries at once; ``values`` are the hypothesis' answers, if computed."""
        values = answer_all(queries, self.hypothesis_table) if values is None else values
        return _move_into_intervals(values, *self.intervals(queries, values), None)

    def intervals(self, queries: Sequence[Linear], believed: Array) -> tuple[Array, Array]:
        """Return intervals for the true fractions, from measurements and certificate.

        ``believed`` are the hypothesis' answers.
        """
        low, high = self.bars.intervals(queries, self.rows)
        made = self.certified
        if made is None:
            return low, high
        then = believed if made.hypothesis is self.hypothesis else answer_all(queries, self._certified_table)
        for names, members, asked in stacked_groups(queries):
            reach = made.reach(names, asked)
            low[members], high[members] = self._cut(low[members], high[members], then[members], reach)
            for i in () if isinstance(asked, Products) else members.tolist():
                low[i], high[i] = self._cut_to_mean(low[i], high[i], queries[i], then[i])
        return low, np.maximum(low, high)

    def table(self, names: Names, within: float | None) -> tuple[Array, Array]:
        """Return a whole marginal and the bar of each of its cells."""
        kept = varying_names(self.universe, names)
        believed = self.hypothesis_table(kept) if kept else np.ones(())
        values, errors = _move_into_intervals(believed, *self.cell_intervals(kept, believed), within)
        shape = self.universe.sizes(names)
        return values.reshape(shape), errors.reshape(shape)

    def cell_intervals(self, names: Names, believed: Array) -> tuple[Array, Array]:
        """Return intervals for the true fractions of every cell of a table."""
        low, high = self.bars.cell_intervals(names, self.rows)
        made = self.certified
        if made is None or not names:
            return low, high
        then = believed if made.hypothesis is self.hypothesis else self._certified_table(names)
        return self._cut(low, high, then, made.cells(names))

    # Answers that include a measurement which was just bought.

    def free_with(self, query: Linear, before: float, spread: float, within: float) -> tuple[float, float]:
        """Combine the earlier answer with the measurement bought for it, by precision; return value and bar."""
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
        value = _combine(
            before, spread, count / self.rows.estimate, math.sqrt(squares * bought.variance) / self.rows.estimate
        )
        placed, errors = _move_into_intervals(
            np.array([value]), *self.intervals([query], np.array([self.answer(query)])), within
        )
        return float(placed[0]), float(errors[0])

    def table_with(self, names: Names, before: Array, spread: float, within: float) -> tuple[Array, Array]:
        """Combine the earlier table with the one just bought, by precision; return values and bars."""
        kept, bought = varying_names(self.universe, names), self.learned.measurements[-1]
        counts = bought.values + (self.rows.estimate - bought.values.sum()) / bought.values.size
        deviation = math.sqrt(bought.variance * (1 - 1 / counts.size)) / self.rows.estimate
        values = _combine(before.reshape(counts.shape), spread, counts / self.rows.estimate, deviation)
        values, errors = _move_into_intervals(values, *self.cell_intervals(kept, self.hypothesis_table(kept)), within)
        shape = self.universe.sizes(names)
        return values.reshape(shape), errors.reshape(shape)

    def _certified_table(self, names: Names) -> Array:
        """Return the table that was certified; outside the certified family, the present one.

        There the reach of the certificate is infinite, so the table does not matter.
        """
        made = self.certified
        return (
            made.certified_table(names) if made is not None and names in made.family else self.hypothesis_table(names)
        )

    def _cut(self, low: Array, high: Array, then: Array, reach: float | Array) -> tuple[Array, Array]:
        """Cut intervals of fractions to the certificate: ñ·then ± reach rows."""
        assert self.certified is not None
        count = self.certified.rows.estimate * then
        low = np.maximum(low, (count - reach) / self.rows.high)
        high = np.minimum(high, (count + reach) / self.rows.low)
        return low, np.maximum(low, high)

    def _cut_to_mean(self, low: float, high: float, query: Linear, then: float) -> tuple[float, float]:
        """Cut the interval of a sum that a mean is made of: γ·n + ñ·(then − γ) ± reach rows, over n rows."""
        assert self.certified is not None
        gamma, reach = self.certified.of_mean(query.attributes, query)
        if not math.isfinite(reach):
            return low, high
        count, rows = self.certified.rows.estimate * (then - gamma), self.rows
        least, most = count - reach, count + reach
        low = max(low, gamma + least / (rows.low if least < 0 else rows.high))
        high = min(high, gamma + most / (rows.high if most < 0 else rows.low))
        return low, high

    # Average sizes of errors.

    def typical(self, queries: Sequence[Linear]) -> Array:
        """Return the mean error of questions like these, as fractions; NaN where it is unknown. Not a bound.

        For a measured question it is the mean size of what a fit leaves of the measurement's noise, E|Z| = √(2/π)·sd
        (``_kept_noise``). For a count that is inferred from measured parts it follows from the released typical error
        of all counts, by how much of the table it is about. For other sums, and where two attributes were never
        measured together, it is unknown.
        """
        found = np.full(len(queries), math.nan)
        for names, members, asked in stacked_groups(queries):
            deviations = self.bars.deviations(names, asked) if names else np.zeros(len(members))
            other: float | Array = math.nan
            if not np.isfinite(deviations).all() and (made := self._typical_of_inferred(names)) is not None:
                is_known = True if isinstance(asked, Products) else [is_product(query) for query in asked]
                other = np.where(is_known, made.typical_errors(names, asked), math.nan)
            if names and np.isfinite(deviations).any():
                deviations = deviations * np.sqrt(self._kept_parts(names, asked))
            found[members] = self._typical(deviations, other)
        return found

    def _typical_of_inferred(self, names: Names) -> CertifiedCounts | None:
        """Return what the certificate says of typical errors, if it is about questions on these attributes."""
        return None if self.support([names]).kind == "assumed" else self.certified

    def support(self, tables: Iterable[Names]) -> Support:
        """Return which of the tables were measured, and what is assumed of the others."""
        measured = self.learned.measurements
        if self._sets is None or self._sets[0] != len(measured):
            found = {varying_names(self.universe, each.attributes) for each in measured if each.query is None}
            self._sets = len(measured), MeasuredSets(found, varying_names(self.universe, self.universe.names))
        return self._sets[1].support(tables)

    def typical_of(self, query: Linear) -> float:
        """Return what ``typical`` gives for one query."""
        names = query.attributes
        deviation = self.bars.deviation(query) if names else 0.0
        if math.isfinite(deviation):
            kept = math.sqrt(self._kept_part(query)) if names else 1.0
            return math.sqrt(2 / math.pi) * deviation * kept / self.rows.estimate
        made = self._typical_of_inferred(names) if is_product(query) else None
        return math.nan if made is None else float(made.typical_errors(names, [query])[0]) / self.rows.estimate

    def typical_cells(self, names: Names) -> Array:
        """Return the mean error of the cells of a table, as fractions; NaN where it is unknown."""
        kept = varying_names(self.universe, names)
        deviation, other = np.asarray(0.0 if not kept else self._deviation_of_cell(kept)), np.asarray(math.nan)
        if not math.isfinite(deviation) and (made := self._typical_of_inferred(kept)) is not None:
            other = made.typical_cells(kept)
        typical_error = np.broadcast_to(self._typical(deviation, other), self.universe.sizes(kept))
        if kept and 0 < deviation < math.inf:
            typical_error = typical_error * np.sqrt(self._kept_noise(kept))
        return typical_error.reshape(self.universe.sizes(names)).copy()

    def _deviation_of_cell(self, names: Names) -> float:
        """Return the measured standard deviation of a cell, in rows; infinite if the table was not measured."""
        one = {n: np.arange(self.universe[n].size) == 0 for n in names}
        return float(self.bars.deviations(names, [Linear.product(self.universe, one)])[0])

    def _kept_noise(self, names: Names) -> Array:
        """Return the part of the noise's variance that the fit leaves in each cell of a measured table.

        A fit draws a measured cell to what is believed of it, and so errs less than the noise σ where little is
        believed: as if a cell believed to have N rows had the deviation N + ``LITTLE``·σ before it was measured.
        """
        found = self._kept.get(names)
        if found is None:
            deviation = self._deviation_of_cell(names)
            if 0 < deviation < math.inf:
                believed = self.rows.estimate * np.maximum(self.hypothesis_table(names), 0.0) / deviation + LITTLE
                found = np.square(believed / np.hypot(believed, 1.0))
            else:
                found = np.ones(self.universe.sizes(names))
            if found.size + sum(each.size for each in self._kept.values()) > KEPT_CELLS:
                self._kept = {}
            self._kept[names] = found
        return found

    def _kept_part(self, query: Linear) -> float:
        """Return the part of the noise's variance that the fit leaves in a query: (q − c)² on its cells, c its mean.

        It leaves all of it in what was measured by itself.
        """
        kept = self._kept_noise(query.attributes)
        if query.key in self._bought:
            return 1.0
        if is_product(query):
            c = math.prod([int(np.count_nonzero(mask)) for mask in query.vectors or ()]) / kept.size
            part, left = (1 - 2 * c) * query.dot(kept) + c * c * float(kept.sum()), c * (1 - c) * kept.size
        else:
            squares = np.square(query.table - query.table.mean())
            part, left = float(np.vdot(squares, kept)), float(squares.sum())
        return min(max(part / left, 0.0), 1.0) if left > 0 else 1.0

    def _kept_parts(self, names: Names, queries: Sequence[Linear]) -> Array:
        """Return what ``_kept_part`` gives for each query."""
        if not isinstance(queries, Products) or self._bought:
            return np.array([self._kept_part(query) for query in queries])
        kept = self._kept_noise(names)
        c, inside = (queries.sizes / kept.shape).prod(axis=1), answer_all(queries, lambda _: kept)
        part, left = (1 - 2 * c) * inside + c * c * float(kept.sum()), c * (1 - c) * kept.size
        return np.asarray(np.clip(np.divide(part, left, out=np.ones(len(queries)), where=left > 0), 0.0, 1.0))

    def _typical(self, deviations: Array, other: float | Array) -> Array:
        """Turn deviations in rows into mean errors as fractions, with ``other`` where nothing was measured."""
        return np.where(np.isfinite(deviations), math.sqrt(2 / math.pi) * deviations, other) / self.rows.estimate

    def hypothesis_table(self, names: Names) -> Array:
        """Return the hypothesis' marginal."""
        return self.hypothesis.marginal(names)

    def answer(self, query: Linear) -> float:
        """Return the hypothesis' answer to a query."""
        return self.hypothesis.answer(query)

    def deviations(self, names: Names, queries: Sequence[Linear]) -> Array:
        """Return the measured standard deviations of queries on ``names``, in rows; infinite where not measured."""
        return self.bars.deviations(names, queries)

    def measures(self, names: Names) -> bool:
        """Return True if a measurement covers these attributes."""
        return self.bars.covers(names)

    def least(self, names: Names) -> Array | None:
        """Return a lower bound on each cell's true fraction; None if the table is neither measured nor certified."""
        kept, made = varying_names(self.universe, names), self.certified
        if not (self.bars.covers(kept) or (made is not None and kept in made.family)):
            return None
        low = self.cell_intervals(kept, self.hypothesis_table(kept))[0]
        return np.maximum(low, 0.0).reshape(self.universe.sizes(names))

    def variation(self, names: Names, marginal: Array) -> float:
        """Return the certified total variation distance of the true fractions from ``marginal``, or infinity.

        Fractions are counts over n: ‖N/n − h‖₁ ≤ (‖N − ñh₀‖₁ + |n − ñ|)/n + ‖h₀ − h‖₁, with h₀ the table that was
        certified.
        """
        kept, made = varying_names(self.universe, names), self.certified
        if made is None or kept not in made.family:
            return math.inf
        then = made.certified_table(kept)
        apart = float(np.abs(then - marginal.reshape(then.shape)).sum())
        off = (
            0.0
            if self._public_rows is not None
            else max(self.rows.high - made.rows.estimate, made.rows.estimate - self.rows.low)
        )
        return (made.distance(kept) + off) / (2 * self.rows.low) + apart / 2

    def distance(self, names: Names, marginal: Array) -> float:
        """Return a bound on the ℓ2 distance between the true fractions and ``marginal``."""
        return self.bars.distance(names, marginal, self.rows)


def _combine(before: Value, spread: float, measured: Value, deviation: float) -> Value:
    """Return the mean of two estimates by precision; the measured one alone if the other's spread is unknown."""
    if not math.isfinite(spread):
        return measured
    share = spread**2 / (spread**2 + deviation**2)
    return before + share * (measured - before)


def _layout(values: Array) -> list[int]:
    """Return the axes in the order of their memory strides.

    This is the order in which the array is summed, so it must be restored for results that agree to the last bit.
    """
    return [int(axis) for axis in np.argsort([-abs(stride) for stride in values.strides], kind="stable")]


def _lay_out(values: Array, axes: list[int]) -> Array:
    return np.ascontiguousarray(values.transpose(axes)).transpose(np.argsort(axes)) if values.ndim else values


def _move_into_intervals(values: Array, low: Array, high: Array, within: float | None) -> tuple[Array, Array]:
    """Move values into their intervals and return the bar around each.

    Where some value of the interval would have a bar of ``within``, the value is moved to have it.
    """
    values = np.clip(values, low, high)
    if within is not None:
        reachable = high - low <= 2 * within
        values = np.where(reachable, np.clip(values, high - within, low + within), values)
    return values, np.maximum(high - values, values - low)
