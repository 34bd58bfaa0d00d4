"""Factorization release: unbiased answers to a workload that is known in advance, with exact expected errors.

Papers: Li et al., *The matrix mechanism* (2015); Xiao et al., *An optimal and scalable matrix mechanism for noisy
marginals* (2023), whose residual basis ``fit/residuals`` has. Proof: docs/proofs/matrix.md.

Symbols: z_s the residual of the table on attributes s, k_s the whole number by whose root its coordinates are
multiplied, σ²/k_s the noise on them, Δ(k) the ℓ2 sensitivity of all multiplied coordinates together, c_s the mean over
the workload of ‖q_s‖², the part of a question's squared norm that lies along s.

All residuals are one draw. The mean squared error of the workload is Σ c_s·σ²/k_s at σ = Δ(k)/√(2ρ). Two rows cannot be
far apart in all residuals at once, so Δ(k)² is less than the sum of what each set needs alone. The k_s are those with
the smaller error of two: k_s ∝ √c_s/‖z_s of one row‖, the best if Δ(k)² were a sum of the rows' own squares, and
k_s ∝ √c_s/Δ_s, the best where each set is charged alone. All of it is public, so errors are known before anything is
drawn. An answer is the least-squares estimate from the noisy residuals. Its error is a sum of independent discrete
Gaussians, plus that of rounding coordinates to a grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow import _memory
from hedgerow._types import Names
from hedgerow.data.source import DataSource
from hedgerow.engine.matrix_answers import MatrixEngine, MatrixPlan
from hedgerow.engine.practical.fit.residuals import center, coordinates
from hedgerow.engine.practical.measure.prefit import (
    MOST_MULTIPLE,
    STEPS_OF_MULTIPLES,
    event_of_part,
    joint_event,
)
from hedgerow.engine.practical.measurement import along, are_few, varying_names
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


@dataclass(frozen=True)
class MatrixDraw:
    """A plan, with the one event that all of its residuals are drawn from.

    ``times`` are the k_s in the order of the plan's sets.
    """

    plan: MatrixPlan
    times: tuple[int, ...]
    charged: Gaussian | Planned

    @property
    def noise(self) -> Gaussian:
        """The noise on every multiplied coordinate."""
        return _noise_of(self.charged)


def plan_matrix(
    budget: Budget, universe: Universe, tables: Sequence[Names], queries: Sequence[Linear], *, rows: int, beta: float
) -> MatrixDraw:
    """Plan the release of tables and single queries, from public facts alone. Each of them counts alike."""
    if budget.pure or budget.neighbours != "replace":
        raise InvalidInput(
            "The budget of method='matrix' must have a delta above 0, for Gaussian noise, and neighbours='replace', "
            f"for a public n. Found {budget!r}. Use method='adaptive', or 'mwem'."
        )
    asked = sorted({varying_names(universe, names) for names in (*tables, *(q.attributes for q in queries))})
    needed = sorted({s for names in asked for s in subsets(names) if s}, key=lambda s: (len(s), s))
    if not needed:
        raise InvalidInput("The workload must ask about some attribute. Found none. List tables, counts or means.")
    if not are_few([universe[name].size for name in {n for s in needed for n in s}]):
        raise InvalidInput("Attributes of method='matrix' must have few values. Found too many. Use method='adaptive'.")
    cells = sum(universe.cells(s) for s in needed)
    _memory.require("The tables of the workload and below", cells, 64, "Name fewer tables, or use method='adaptive'")
    contrasts = {n: by for n in dict.fromkeys(n for s in needed for n in s) for by in along(universe.sizes((n,)))}
    parts, amount = _parts(universe, needed, tables, queries), Amount.share_of(budget, SPARE)
    own = [math.prod(contrasts[n].contribution.square for n in s) for s in needed]
    alone = [budget.tensor_l2([contrasts[n].contribution for n in s]) ** 2 for s in needed]
    plans = []
    for squares in (own, alone):
        times = _multiples([math.sqrt(parts[s] / square) for s, square in zip(needed, squares, strict=True)])
        event = joint_event(amount, contrasts, needed, times, rows)
        plans.append(
            (event.sigma**2 * math.fsum(parts[s] / k for s, k in zip(needed, times, strict=True)), times, event)
        )
    _, times, event = min(plans, key=lambda plan: plan[0])
    promised = sum(universe.cells(names) for names in tables) + len(queries)
    charged = _cheapest(budget, event)
    plan = MatrixPlan(
        universe, rows, beta, tuple(needed), tuple(event_of_part(_noise_of(charged), k) for k in times),
        max(1, promised), tuple(tables), tuple(queries),
    )  # fmt: skip
    return MatrixDraw(plan, tuple(times), charged)


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


def _multiples(wanted: Sequence[float]) -> list[int]:
    """Return whole numbers in nearly these proportions."""
    least = min(wanted)
    return [min(round(STEPS_OF_MULTIPLES * each / least), MOST_MULTIPLE) for each in wanted]


def _cheapest(budget: Budget, event: Gaussian) -> Gaussian | Planned:
    """Return the event as planned noise, which is smaller at the same cost, or as it is."""
    return budget.plan_noise(event, 1.0, event.grid) or event


def run_matrix(data: DataSource, ledger: Ledger, noise: Noise, made: MatrixDraw) -> MatrixEngine:
    """Charge, draw and learn all residuals of the plan, as one draw."""
    plan, about = made.plan, {"sets": [list(s) for s in made.plan.sets], "times": list(made.times)}
    receipt = Allowance(ledger, ledger.remaining).charge(made.charged, why="matrix: residuals", about=about)
    exact = [
        coordinates(counts, made.noise.grid, times=k)
        for counts, k in zip(data.marginals(plan.sets), made.times, strict=True)
    ]
    drawn = np.asarray(noise.add(np.concatenate([each.ravel() for each in exact]), receipt), dtype=float)
    parts = np.split(drawn, np.cumsum([each.size for each in exact])[:-1])
    found = [part.reshape(each.shape) / math.sqrt(k) for part, each, k in zip(parts, exact, made.times, strict=True)]
    return MatrixEngine(plan, plan.measurements(found))


def _noise_of(charged: Gaussian | Planned) -> Gaussian:
    return charged.event if isinstance(charged, Planned) else charged


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
