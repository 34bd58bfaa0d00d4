"""The public part of a factorization release: unbiased answers from noisy residuals, and the errors known beforehand.

``engine/matrix`` has the papers, plans the noise and draws it. What is here needs neither a table nor a ledger, so a
release file can hold it. Proof: docs/proofs/matrix.md.

Symbols: σ_s the noise on each coordinate of the residual on attributes s.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.engine.offline_answers import ReleaseEngine
from hedgerow.engine.practical.fit.residuals import Overview, from_coordinates
from hedgerow.engine.practical.free_answers import FittedModel
from hedgerow.engine.practical.measurement import Measurement, varying_names
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.events import Gaussian
from hedgerow.query.bound import Estimate
from hedgerow.query.counts import BoundMarginal
from hedgerow.query.linear import Linear
from hedgerow.query.support import MeasuredSets, Support
from hedgerow.universe.universe import Universe, subsets

STEPS, MODEL_WAYS = 100, 2  # steps of the fit of the model that answers all other questions, and its largest sets


@dataclass(frozen=True)
class MatrixPlan:
    """The residuals that a workload needs, with their noise, and the errors that follow. Public.

    ``promised`` are the numbers of the workload; ``noise`` is that of each residual's coordinates, in the order of
    ``sets``.
    """

    universe: Universe
    rows: int
    beta: float
    sets: tuple[Names, ...]
    noise: tuple[Gaussian, ...]
    promised: int
    tables: tuple[Names, ...]
    queries: tuple[Linear, ...]

    @cached_property
    def overview(self) -> Overview:
        """The noise of every estimate, as that of an overview whose values are 0."""
        return self.learn(self.measurements([np.zeros([m - 1 for m in self.universe.sizes(s)]) for s in self.sets]))

    def learn(self, measurements: Sequence[Measurement]) -> Overview:
        """Return the overview of these noisy residuals."""
        return Overview(self.universe, measurements, float(self.rows))

    def measurements(self, drawn: Sequence[Array]) -> list[Measurement]:
        """Return the measurements with these noisy coordinates."""
        return [
            Measurement(
                s,
                np.ascontiguousarray(from_coordinates(values)),  # in the order of a file, so that sums have its bits
                event,
                residual=True,
            )
            for s, event, values in zip(self.sets, self.noise, drawn, strict=True)
        ]

    def deviation(self, query: Linear) -> float:
        """Return the standard deviation of the estimate of a query, in rows."""
        return float(self.overview.deviations(query.attributes, [query])[0])

    def deviation_of_cells(self, names: Names) -> float:
        """Return the standard deviation of each cell of a table, in rows."""
        inside, universe = varying_names(self.universe, names), self.universe
        return math.sqrt(
            math.fsum(
                self._variances[s]
                * math.prod(1 - 1 / m for m in universe.sizes(s))
                * (universe.cells(s) / universe.cells(inside)) ** 2
                for s in subsets(inside)
                if s
            )
        )

    @cached_property
    def _variances(self) -> dict[Names, float]:
        """σ_s², the variance of each coordinate."""
        return {s: event.sigma**2 for s, event in zip(self.sets, self.noise, strict=True)}

    def bar(self, deviation: float | Array) -> float | Array:
        """Return the bar, as a fraction, of a number with this deviation. All promised numbers hold together.

        A sum of independent discrete Gaussians is sub-Gaussian, with its variance as parameter. Rounding of the
        coordinates moves the estimate by at most ``rounding`` deviations.
        """
        z = math.sqrt(2 * math.log(2 * self.promised / self.beta))
        found: float | Array = (z + self.overview.rounding) * deviation / self.rows
        return found

    @cached_property
    def widest(self) -> float:
        """The widest bar of the workload."""
        found = [*map(self.deviation_of_cells, self.tables), *map(self.deviation, self.queries)]
        return float(self.bar(max(found)))

    @cached_property
    def typical(self) -> float:
        """The mean absolute error over all numbers of the workload, of noise alone: √(2/π) times the mean deviation."""
        cells = [self.universe.cells(names) for names in self.tables]
        total = math.fsum(c * d for c, d in zip(cells, map(self.deviation_of_cells, self.tables), strict=True))
        total += math.fsum(map(self.deviation, self.queries))
        return math.sqrt(2 / math.pi) * total / (sum(cells) + len(self.queries)) / self.rows


class MatrixEngine(ReleaseEngine):
    """An engine on released residuals: unbiased answers to the workload, a fitted model for all other questions."""

    def __init__(self, plan: MatrixPlan, measurements: Sequence[Measurement]) -> None:
        """``measurements`` are the noisy residuals of the plan, in its order."""
        self.plan, self.measurements = plan, tuple(measurements)
        self._overview = plan.learn(measurements)
        self._rows, self.error, self.promised = float(plan.rows), math.inf, {}
        self._tables = {varying_names(plan.universe, names) for names in plan.tables}
        self._sets = MeasuredSets(plan.sets, plan.universe.names)
        self._keys: set[Hashable] = {query.key for query in plan.queries}

    @cached_property
    def hypothesis(self) -> Hypothesis:
        """The model that answers all other questions, fitted to the released residuals."""
        learned = FittedModel.nothing(self.plan.universe, self._rows)
        for measurement in self.measurements:
            learned.add(measurement)
        learned.overview = self._overview
        for s in self.plan.sets:
            if len(s) <= MODEL_WAYS and learned.has_room(s):
                learned.grow(s)
        learned.refit(STEPS)
        return learned.hypothesis()

    def support(self, tables: Sequence[Names]) -> Support:
        """Return which of the tables the released residuals cover, and what is assumed of the others."""
        return self._sets.support(varying_names(self.plan.universe, names) for names in tables)

    @property
    def measured(self) -> list[tuple[Names, float]]:
        """The attribute sets of the released residuals, each with the standard deviation of one cell, in rows."""
        return [(names, self.plan.deviation_of_cells(names)) for names in self.plan.sets if names]

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Answer from the residuals where they cover the question; a bar is there for the workload alone."""
        if not self._overview.covers(query.attributes):
            return super().linear(query, within)
        value = min(1.0, max(0.0, query.dot(self._overview.onto(query.attributes)) / self.rows))
        deviation = self.plan.deviation(query)
        promised = query.key in self._keys or self._is_cell(query)
        error = float(self.plan.bar(deviation)) if promised else None
        self._require(error, within)
        return Estimate(value, error, "measured", typical=self._typical(deviation))

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Answer a table from the residuals where they cover it."""
        names = varying_names(self.plan.universe, table.attributes)
        if not names or not self._overview.covers(names):
            return super().marginal(table, within)
        sizes = self.plan.universe.sizes(table.attributes)
        values = np.clip(self._overview.onto(names) / self.rows, 0.0, 1.0).reshape(sizes)
        deviation = np.full(sizes, self.plan.deviation_of_cells(names))
        error = np.asarray(self.plan.bar(deviation)) if names in self._tables else None
        self._require(None if error is None else float(error.max()), within)
        return Estimate(values, error, "measured", typical=np.asarray(self._typical(1.0) * deviation))

    def _is_cell(self, query: Linear) -> bool:
        """Return True if the query is a cell of a promised table."""
        return (
            query.attributes in self._tables
            and query.vectors is not None
            and all(np.count_nonzero(v) == 1 and v.sum() == 1 for v in query.vectors)
        )

    def _typical(self, deviation: float) -> float:
        return math.sqrt(2 / math.pi) * deviation / self.rows

    def _require(self, error: float | None, within: float | None) -> None:
        if within is not None and (error is None or error > within):
            self.refuse_narrower(error, within)
