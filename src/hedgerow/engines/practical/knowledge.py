"""What the session knows: a function of released measurements alone, in the order in which they were released."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.data import exact_counts
from hedgerow.engines.practical.error_bars import ErrorBars
from hedgerow.engines.practical.measurement import Measurement, Rows, varying
from hedgerow.engines.practical.residuals import Evidence, Overview
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.model.junction_tree import junction_cells
from hedgerow.model.log_linear import Local, LogLinear, Target, minimise
from hedgerow.questions.linear import Linear, answer_all
from hedgerow.questions.universe import Universe, subsets

ROOM = 4_000_000  # cells of the junction tree, for what a session measures later
LOCAL_STEPS, REFIT_STEPS = 40, 200
ONE_WAY_TRUST = 9.0  # one-way tables are trusted over the uniform start
RIDGE_FLOOR = 0.2
LARGEST_NOISE = 2.0**exact_counts.NOISE_BITS  # of what is bought: less noise than asked for, where that is more


@dataclass
class Learned:
    """Released measurements, their combination, and the model fitted to them. All public."""

    universe: Universe
    evidence: Evidence
    model: LogLinear
    rows: float
    overview: Overview | None = None
    measurements: list[Measurement] = field(default_factory=list)
    _public_rows: float | None = None
    _priors: dict[object, Array] = field(default_factory=dict, repr=False)
    _local: dict[Names, Array] = field(default_factory=dict, repr=False)

    @classmethod
    def nothing(cls, universe: Universe, rows: float | None = None) -> Learned:
        """``rows``: n where it is public."""
        return cls(universe, Evidence(universe, rows), LogLinear(universe, ()), rows or 1.0, _public_rows=rows)

    def add(self, measurement: Measurement) -> None:
        self.measurements.append(measurement)
        self._local = {}
        if measurement.query is None:
            self.evidence.add(measurement)
            if self._public_rows is None:
                self.rows = max(1.0, self.evidence.total[0])

    def has_room(self, names: Names) -> bool:
        """Whether the model can take these attributes into one clique: a public fact."""
        return junction_cells(self.universe, [*self.model.tops, names]) <= ROOM

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
        self.model = larger

    def refit(self, steps: int, tolerance: float = 1.0) -> float:
        """Fit the model to all measurements, from where it is, to a decrement of ``tolerance`` nats; the objective."""
        if not (self.model.sets or self.model.queries):
            return 0.0
        targets = [self._target(s) for s in self.model.sets]
        single = {m.query.key: m for m in self.measurements if m.query is not None}
        targets += [
            Target(single[key].values, self._ridge(self._priors[key], single[key].variance, 1.0))
            for key in self.model.queries
        ]
        self._local = {}
        return minimise(self.model, targets, self.rows, steps=steps, tolerance=tolerance)

    def corrected(self, names: Names) -> Array | None:
        """The model's marginal fitted to what was measured on ``names`` but did not fit the model; None if nothing was."""
        if names in self.model.sets or len(names) < 2 or names not in self.evidence:
            return None
        if names not in self._local:
            table = self.model.marginal(names)
            for order in range(2, len(names) + 1):
                sets = [s for s in subsets(names, order) if len(s) == order and s not in self.model.sets]
                if not sets:
                    continue
                local, targets = Local(names, table, sets), []
                for s in sets:
                    counts, variance = self.evidence.estimate(s)
                    prior = table.sum(axis=tuple(i for i, n in enumerate(names) if n not in s))
                    targets.append(Target(counts, self._ridge(prior, variance, 1.0)))
                minimise(local, targets, self.rows, steps=LOCAL_STEPS, tolerance=0.5)
                table = local.table()
            self._local[names] = table
        return self._local[names]

    def _target(self, names: Names) -> Target:
        counts, variance = self.evidence.estimate(names)
        return Target(counts, self._ridge(self._priors[names], variance, ONE_WAY_TRUST if len(names) == 1 else 1.0))

    def _ridge(self, prior: Array, variance: float, trust: float) -> Array:
        sd = math.sqrt(variance)
        believed = np.maximum(self.rows * prior, 0.01 * sd)
        return np.maximum(variance / (trust * believed), RIDGE_FLOOR * sd)


class Knowledge:
    """The model with its error bars and the number of rows: answers that cost nothing."""

    def __init__(self, learned: Learned, beta: float, public_rows: int | None) -> None:
        """``public_rows``: n where it is public."""
        self.universe, self.learned, self.bars = learned.universe, learned, ErrorBars(learned.universe, beta)
        self._public_rows = public_rows
        if learned.overview is not None:
            self.bars.add_overview(learned.overview)
        for measurement in learned.measurements:
            if not measurement.residual:
                self.bars.add(measurement)
        self._settle()

    def _settle(self) -> None:
        """What follows from the measurements so far."""
        self.hypothesis: Hypothesis = self.learned.model.hypothesis()
        known = self._public_rows
        self.rows = self.bars.rows() if known is None else Rows(known, known, known)
        scale = min(self.rows.estimate, 2.0**exact_counts.EXACT_BITS)
        self.grid = exact_counts.grid_for(scale, min(scale, LARGEST_NOISE))

    def learn(self, measurement: Measurement) -> None:
        """One more measurement: bars, and the hypothesis refitted to everything released so far."""
        names, query = measurement.attributes, measurement.query
        self.bars.add(measurement)
        self.learned.add(measurement)
        if self.learned.has_room(names):  # otherwise the measurement still bounds and corrects its own answers
            self.learned.grow(*(() if query is not None or not names else (names,)), query=query)
            self.learned.refit(REFIT_STEPS, 0.1)
        self._settle()

    def free(self, query: Linear, within: float | None) -> tuple[float, float]:
        """The hypothesis' answer inside the interval that is known, and the bar around it."""
        ends = self.bars.intervals([query], self.rows)
        value, error = _placed(np.array([self.answer(query)]), *ends, within)
        return float(value[0]), float(error[0])

    def free_all(self, queries: Sequence[Linear]) -> tuple[Array, Array]:
        """The same of many at once."""
        values = answer_all(queries, self.believed)
        return _placed(values, *self.bars.intervals(queries, self.rows), None)

    def table(self, names: Names, within: float | None) -> tuple[Array, float]:
        """A whole marginal, and a bar that holds for each of its cells."""
        kept = varying(self.universe, names)
        believed = self.believed(kept) if kept else np.ones(())
        values, errors = _placed(believed, *self.bars.cell_intervals(kept, self.rows), within)
        return values.reshape(self.universe.sizes(names)), float(errors.max())

    def believed(self, names: Names) -> Array:
        """The hypothesis' marginal, corrected by measurements that were too large for it."""
        corrected = self.learned.corrected(names)
        return self.hypothesis.marginal(names) if corrected is None else corrected

    def answer(self, query: Linear) -> float:
        corrected = self.learned.corrected(query.attributes)
        return self.hypothesis.answer(query) if corrected is None else query.dot(corrected)

    def distance(self, names: Names, marginal: Array) -> float:
        """How far in ℓ2 the true fractions may be from these."""
        return self.bars.distance(names, marginal, self.rows)


def _placed(values: Array, low: Array, high: Array, within: float | None) -> tuple[Array, Array]:
    """Values moved into their intervals, and the bar around each.

    Where a bar of ``within`` is possible about some value of the interval, the value is moved to have it.
    """
    values = np.clip(values, low, high)
    if within is not None:
        reachable = high - low <= 2 * within
        values = np.where(reachable, np.clip(values, high - within, low + within), values)
    return values, np.maximum(high - values, values - low)
