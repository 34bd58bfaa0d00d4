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
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hedgerow import _memory
from hedgerow._types import Names
from hedgerow.data.source import DataSource
from hedgerow.engine.matrix_answers import MatrixEngine, MatrixPlan
from hedgerow.engine.practical.contrasts import along, are_few
from hedgerow.engine.practical.fit.residuals import center, coordinates
from hedgerow.engine.practical.measure.prefit import residual_event
from hedgerow.engine.practical.measurement import varying_names
from hedgerow.engine.release import linear_queries
from hedgerow.errors import InvalidInput
from hedgerow.privacy.allowance import Allowance, Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Gaussian, Planned
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.query.bound import Bound
from hedgerow.query.counts import BoundMarginal
from hedgerow.query.linear import Linear
from hedgerow.universe.universe import Universe, subsets

LEAST = 1e-6  # a residual counts at least this share of the largest, because an estimate needs all residuals below it
SPARE = 1 - 1e-9  # share of the budget that is divided, so that rounding of the parts never exceeds it


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


def run_matrix(data: DataSource, ledger: Ledger, noise: Noise, plan: MatrixPlan) -> MatrixEngine:
    """Charge, draw and learn all residuals of the plan."""
    allowance, drawn = Allowance(ledger, ledger.remaining), []
    for s, event in zip(plan.sets, plan.charged, strict=True):
        receipt = allowance.charge(event, why="matrix: residual", about={"attributes": s})
        grid = event.event.grid if isinstance(event, Planned) else event.grid
        drawn.append(np.asarray(noise.add(coordinates(data.marginal(s), grid), receipt), dtype=float))
    return MatrixEngine(plan, plan.measurements(drawn))


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
