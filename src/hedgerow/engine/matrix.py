"""Factorization release: unbiased answers to a workload that is known in advance, with exact expected errors.

Papers: Li et al., *The matrix mechanism* (2015); Xiao et al., *An optimal and scalable matrix mechanism for noisy
marginals* (2023), whose residual basis ``fit/residuals`` has. Proof: docs/proofs/matrix.md.

Symbols: z_s the residual of the table on attributes s, σ_s the noise on its coordinates, Δ_s their ℓ2 sensitivity, c_s
the mean over the workload of ‖q_s‖², the part of a question's squared norm that lies along s.

The mean squared error of the workload is Σ c_s·σ_s². For a cost Σ Δ_s²/2σ_s² = ρ it is least at costs in proportion to
Δ_s·√c_s (Lagrange), and then it is (Σ Δ_s·√c_s)²/2ρ. All of it is public, so errors are known before anything is
drawn. An answer is the least-squares estimate from the noisy residuals. Its error is a sum of independent discrete
Gaussians, plus that of rounding coordinates to a grid.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow import _memory
from hedgerow._types import Array, Names
from hedgerow.data.source import DataSource
from hedgerow.engine.practical.contrasts import along, are_few
from hedgerow.engine.practical.fit.residuals import Overview, center, coordinates, from_coordinates
from hedgerow.engine.practical.free_answers import FittedModel
from hedgerow.engine.practical.measure.prefit import residual_event
from hedgerow.engine.practical.measurement import Measurement, varying_names
from hedgerow.engine.release import ReleaseEngine, linear_queries
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.allowance import Allowance, Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Gaussian, Planned
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.query.bound import Bound, Estimate
from hedgerow.query.counts import BoundMarginal
from hedgerow.query.linear import Linear
from hedgerow.query.support import MeasuredSets, Support
from hedgerow.universe.universe import Universe, subsets

LEAST = 1e-6  # a residual counts at least this share of the largest, because an estimate needs all residuals below it
SPARE = 1 - 1e-9  # share of the budget that is divided, so that rounding of the parts never exceeds it
STEPS, MODEL_WAYS = 100, 2  # steps of the fit of the model that answers all other questions, and its largest sets


@dataclass(frozen=True)
class MatrixPlan:
    """The residuals that a workload needs, with their noise, and the errors that follow. Public.

    ``promised`` are the numbers of the workload; ``charged`` the events in the order of ``sets``.
    """

    universe: Universe
    rows: int
    beta: float
    sets: tuple[Names, ...]
    charged: tuple[Gaussian | Planned, ...]
    promised: int
    tables: tuple[Names, ...]
    queries: tuple[Linear, ...]

    @cached_property
    def overview(self) -> Overview:
        """The noise of every estimate, as that of an overview whose values are 0."""
        return self.learn([np.zeros([m - 1 for m in self.universe.sizes(s)]) for s in self.sets])

    def learn(self, drawn: Sequence[Array]) -> Overview:
        """Return the overview with these noisy coordinates."""
        return Overview(self.universe, self.measurements(drawn), float(self.rows))

    def measurements(self, drawn: Sequence[Array]) -> list[Measurement]:
        """Return the measurements with these noisy coordinates."""
        return [
            Measurement(
                s, from_coordinates(values), event.event if isinstance(event, Planned) else event, residual=True
            )
            for s, event, values in zip(self.sets, self.charged, drawn, strict=True)
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
        events = (event.event if isinstance(event, Planned) else event for event in self.charged)
        return {s: event.sigma**2 for s, event in zip(self.sets, events, strict=True)}

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


def plan_matrix(
    budget: Budget, universe: Universe, tables: Sequence[Names], queries: Sequence[Linear], *, rows: int, beta: float
) -> MatrixPlan:
    """Plan the release of tables and single queries, from public facts alone. Each of them counts alike."""
    if budget.pure or budget.neighbours != "replace":
        raise InvalidInput(
            "The budget of method='matrix' must have a delta above 0, for Gaussian noise, and neighbours='replace', for a "
            f"public n. Found {budget!r}. Use method='adaptive', or 'mwem'."
        )
    asked = sorted({varying_names(universe, names) for names in (*tables, *(q.attributes for q in queries))})
    needed = sorted({s for names in asked for s in subsets(names) if s}, key=lambda s: (len(s), s))
    if not needed:
        raise InvalidInput("The workload must ask about some attribute. Found none. List tables, counts or means.")
    if not are_few([universe[name].size for name in {n for s in needed for n in s}]):
        raise InvalidInput("Attributes of method='matrix' must have few values. Found too many. Use method='adaptive'.")
    cells = sum(universe.cells(s) for s in needed)
    _memory.require("The tables of the workload and below", cells, 64, "Name fewer tables, or use method='adaptive'")
    parts = _parts(universe, needed, tables, queries)
    contrasts = {s: along(universe.sizes(s)) for s in needed}
    weights = [budget.tensor_l2([c.contribution for c in contrasts[s]]) * math.sqrt(parts[s]) for s in needed]
    charged = tuple(
        _cheapest(budget, residual_event(Amount.share_of(budget, SPARE * w / math.fsum(weights)), contrasts[s], rows))
        for s, w in zip(needed, weights, strict=True)
    )
    promised = sum(universe.cells(names) for names in tables) + len(queries)
    return MatrixPlan(universe, rows, beta, tuple(needed), charged, max(1, promised), tuple(tables), tuple(queries))


def _parts(
    universe: Universe, needed: Sequence[Names], tables: Sequence[Names], queries: Sequence[Linear]
) -> dict[Names, float]:
    """Return c_s for every set: the mean over questions of ‖q_s‖², for a table the mean over its cells."""
    found = dict.fromkeys(needed, 0.0)
    for names in tables:
        inside = varying_names(universe, names)
        for s in subsets(inside):
            if s:
                spread = universe.cells(inside) / universe.cells(s)
                found[s] += math.prod(1 - 1 / m for m in universe.sizes(s)) / spread**2
    for query in queries:
        for s in subsets(query.attributes):
            if s:
                away = tuple(i for i, name in enumerate(query.attributes) if name not in s)
                found[s] += float((center(query.table.mean(axis=away)) ** 2).sum())
    least = LEAST * max(found.values())
    return {s: max(part, least) for s, part in found.items()}


def _cheapest(budget: Budget, event: Gaussian) -> Gaussian | Planned:
    """Return the event as planned noise, which is smaller at the same cost, or as it is."""
    return budget.plan_noise(event, 1.0, event.grid) or event


class MatrixEngine(ReleaseEngine):
    """An engine on released residuals: unbiased answers to the workload, a fitted model for all other questions."""

    def __init__(self, plan: MatrixPlan, drawn: Sequence[Array]) -> None:
        """``drawn`` are the noisy coordinates of the plan's residuals."""
        self._plan, self._measured, self._overview = plan, plan.measurements(drawn), plan.learn(drawn)
        self._rows, self.error, self.promised = float(plan.rows), math.inf, {}
        self._tables = {varying_names(plan.universe, names) for names in plan.tables}
        self._sets = MeasuredSets(plan.sets, plan.universe.names)
        self._keys: set[Hashable] = {query.key for query in plan.queries}

    @cached_property
    def hypothesis(self) -> Hypothesis:
        """The model that answers all other questions, fitted to the released residuals."""
        learned = FittedModel.nothing(self._plan.universe, self._rows)
        for measurement in self._measured:
            learned.add(measurement)
        learned.overview = self._overview
        for s in self._plan.sets:
            if len(s) <= MODEL_WAYS and learned.has_room(s):
                learned.grow(s)
        learned.refit(STEPS)
        return learned.hypothesis()

    def support(self, tables: Sequence[Names]) -> Support:
        """Return which of the tables the released residuals cover, and what is assumed of the others."""
        return self._sets.support(varying_names(self._plan.universe, names) for names in tables)

    @property
    def measured(self) -> list[tuple[Names, float]]:
        """The attribute sets of the released residuals, each with the standard deviation of one cell, in rows."""
        return [(names, self._plan.deviation_of_cells(names)) for names in self._plan.sets if names]

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Answer from the residuals where they cover the question; a bar is there for the workload alone."""
        if not self._overview.covers(query.attributes):
            return super().linear(query, within)
        value = min(1.0, max(0.0, query.dot(self._overview.onto(query.attributes)) / self.rows))
        deviation = self._plan.deviation(query)
        promised = query.key in self._keys or self._is_cell(query)
        error = float(self._plan.bar(deviation)) if promised else None
        self._require(error, within)
        return Estimate(value, error, "measured", typical=self._typical(deviation))

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Answer a table from the residuals where they cover it."""
        names = varying_names(self._plan.universe, table.attributes)
        if not names or not self._overview.covers(names):
            return super().marginal(table, within)
        sizes = self._plan.universe.sizes(table.attributes)
        values = np.clip(self._overview.onto(names) / self.rows, 0.0, 1.0).reshape(sizes)
        deviation = np.full(sizes, self._plan.deviation_of_cells(names))
        error = np.asarray(self._plan.bar(deviation)) if names in self._tables else None
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


def run_matrix(data: DataSource, ledger: Ledger, noise: Noise, plan: MatrixPlan) -> MatrixEngine:
    """Charge, draw and learn all residuals of the plan."""
    allowance, drawn = Allowance(ledger, ledger.remaining), []
    for s, event in zip(plan.sets, plan.charged, strict=True):
        receipt = allowance.charge(event, why="matrix: residual", about={"attributes": s})
        grid = event.event.grid if isinstance(event, Planned) else event.grid
        drawn.append(np.asarray(noise.add(coordinates(data.marginal(s), grid), receipt), dtype=float))
    return MatrixEngine(plan, drawn)


def split_workload(bound: Iterable[Bound[Any]], universe: Universe) -> tuple[list[Names], list[Linear]]:
    """Return the tables of a workload, and its other questions as linear queries."""
    tables: dict[Names, None] = {}
    queries: dict[Linear, None] = {}
    for each in bound:
        if isinstance(each, BoundMarginal):
            tables[each.attributes] = None
        else:
            queries.update(dict.fromkeys(linear_queries(each, universe)))
    return list(tables), list(queries)
