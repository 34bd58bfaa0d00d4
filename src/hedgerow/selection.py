"""Which marginals to measure: the prefit of the practical profile, and the offline release.

McKenna et al., "AIM: an adaptive and iterative mechanism for differentially private synthetic data" (2022), whose frame
this keeps: all one-way marginals first, then rounds of the exponential mechanism and a measurement, with a larger share
of the budget once a round taught little.

Differs from AIM:
- the hypothesis is fitted to least-squares estimates of everything measured (``evidence``, ``fit``), not to raw tables;
- one-way marginals share their budget by (cells × workload marginals that contain them)^⅔, which is what the sum of
  their errors in the workload asks for;
- the noise expected in a cell counts against a candidate only up to what the hypothesis believes is there:
  Σ min(E|noise|, 0.8·n·h), as a fit that shrinks towards the hypothesis cannot add more error than that;
- where the whole workload can be measured with little noise, it is, without choosing (``measure_all``).

Privacy. Everything measured is charged before it is drawn. A score is w·(‖M D − round(n·h)‖₁ − discount), w ≤ 1 and the
rest public: its sensitivity is ``budget.marginal_distance()``, as one row moves one count up and, under replace-one,
another down. All parameters are constants or functions of public sizes, the budget and released values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting import Accountant, Budget
from hedgerow.data import PrivateData
from hedgerow.events import Exponential, Gaussian, Laplace
from hedgerow.evidence import Evidence, subsets
from hedgerow.fit import LogLinear, Target, minimise
from hedgerow.junction_tree import junction_cells
from hedgerow.linear import Linear
from hedgerow.measurements import Measurement
from hedgerow.noise import Noise
from hedgerow.universe import Universe

Array = NDArray[np.float64]
Names = tuple[str, ...]

ONE_WAY_SHARE = 0.3
CHOICE_SHARE = 0.1  # of a round, for choosing; the rest measures
ROUNDS_PER_ATTRIBUTE = 16  # the first rounds are this fraction of the budget; they grow as they teach less
FACTOR = 4.0  # in cost, when a round taught little: half the noise
SHRINKS = 0.8
MODEL_CELLS = 500_000  # of the junction tree while choosing
LARGEST_MODEL_CELLS = 1_000_000  # when everything has been measured and only the fit remains
ROUND_STEPS, FINAL_STEPS = 20, 150
ONE_WAY_TRUST = 9.0  # one-way tables are trusted over the uniform start
RIDGE_FLOOR = 0.1
PRECISION = 1e-3


@dataclass
class Learned:
    """What the session knows: released measurements, their combination, and the model fitted to them. All public."""

    universe: Universe
    evidence: Evidence
    model: LogLinear
    rows: float
    measurements: list[Measurement] = field(default_factory=list)
    _priors: dict[object, Array] = field(default_factory=dict, repr=False)

    @classmethod
    def nothing(cls, universe: Universe) -> Learned:
        return cls(universe, Evidence(universe), LogLinear(universe, ()), 1.0)

    def add(self, measurement: Measurement) -> None:
        self.measurements.append(measurement)
        if measurement.query is None:
            self.evidence.add(measurement)

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

    def refit(self, steps: int) -> None:
        """Fit the model to all measurements, from where it is, to within a thousandth of a nat per parameter.

        The noise of the measurements moves the optimum by about half a nat per parameter: nearer is not better.
        """
        targets = [self._target(s) for s in self.model.sets]
        single = {m.query.key: m for m in self.measurements if m.query is not None}
        targets += [
            Target(single[key].values, self._ridge(key, single[key].variance, 1.0)) for key in self.model.queries
        ]
        minimise(self.model, targets, self.rows, steps=steps, tolerance=PRECISION * len(self.model.theta))

    def _target(self, names: Names) -> Target:
        counts, variance = self.evidence.estimate(names)
        return Target(counts, self._ridge(names, variance, ONE_WAY_TRUST if len(names) == 1 else 1.0))

    def _ridge(self, key: object, variance: float, trust: float) -> Array:
        sd = math.sqrt(variance)
        believed = np.maximum(self.rows * self._priors[key], 0.01 * sd)
        return np.maximum(variance / (trust * believed), RIDGE_FLOOR * sd)


class Prefit:
    """One release: what is left of its allowance, and what has been learned."""

    def __init__(
        self,
        data: PrivateData,
        accountant: Accountant,
        noise: Noise,
        workload: dict[Names, float],
        allowance: float,
        rows: float | None,
        on_progress: Callable[[float], None] = lambda done: None,
    ) -> None:
        """``rows``: n where it is public. ``allowance``: how much may be spent, in the currency."""
        self._data, self._accountant, self._noise, self._workload = data, accountant, noise, workload
        self._budget, self._universe = accountant.budget, data.universe
        self._allowance = self._left = allowance
        self._public_rows, self._on_progress = rows, on_progress
        self.learned = Learned.nothing(data.universe)

    def run(self) -> Learned:
        self._one_way_marginals()
        self._rounds()
        self.learned.refit(FINAL_STEPS)
        self._on_progress(1.0)
        return self.learned

    def _measure(self, names: Names, cost: float) -> None:
        event = measurement_for(self._budget, cost)
        self._accountant.charge(event)
        self._left -= cost
        values = self._noise.add(self._data.marginal(names), event)
        self.learned.add(Measurement(names, np.asarray(values, dtype=float), event))
        known = self._public_rows
        self.learned.rows = max(1.0, self.learned.evidence.total[0]) if known is None else known

    def _one_way_marginals(self) -> None:
        universe, share = self._universe, ONE_WAY_SHARE * self._allowance
        demand = np.array(
            [universe[a].size * sum(w for t, w in self._workload.items() if a in t) for a in universe.names]
        )
        demand = np.maximum(demand, 0.05 * demand.max()) ** (2 / 3)
        for name, part in zip(universe.names, demand / demand.sum(), strict=True):
            self._measure((name,), share * float(part))
        self.learned.grow(*((name,) for name in universe.names))
        self.learned.refit(50)

    def _rounds(self) -> None:
        candidates = sorted({s for t in self._workload for s in subsets(t, 2)}, key=lambda s: (len(s), s))
        if not candidates:
            return
        demand = np.array([sum(w * len({*c} & {*t}) for t, w in self._workload.items()) for c in candidates])
        weights = demand / demand.max()
        cost = self._left / (ROUNDS_PER_ATTRIBUTE * len(self._universe.names))
        last = False
        while not last:
            last = self._left < 2 * cost
            cost = self._left if last else cost
            choice, measured = CHOICE_SHARE * cost, (1 - CHOICE_SHARE) * cost
            names, believed, discount = self._choose(candidates, weights, choice, measured)
            self._measure(names, measured)
            self.learned.grow(names)
            self.learned.refit(ROUND_STEPS)
            change = self.learned.rows * float(np.abs(self.learned.model.marginal(names) - believed).sum())
            if change <= discount:
                cost *= FACTOR
            self._on_progress(1 - self._left / self._allowance)

    def _choose(
        self, candidates: list[Names], weights: Array, choice: float, measured: float
    ) -> tuple[Names, Array, float]:
        """The exponential mechanism over the candidates that fit the model; with it, what was believed and the discount."""
        learned, universe = self.learned, self._universe
        spent = 1 - self._left / self._allowance
        limit = MODEL_CELLS * max(spent, 0.1)
        allowed = [
            i for i, c in enumerate(candidates) if junction_cells(universe, [*learned.model.tops, c]) <= limit
        ] or [int(np.argmin([universe.cells(c) for c in candidates]))]
        event = choice_for(self._budget, choice)
        noise = _mean_absolute(measurement_for(self._budget, measured))
        beliefs = self._beliefs([candidates[i] for i in allowed])
        scores, discounts = np.empty(len(allowed)), np.empty(len(allowed))
        for j, i in enumerate(allowed):
            expected = learned.rows * beliefs[j]
            discounts[j] = np.minimum(noise, SHRINKS * expected).sum()
            distance = np.abs(self._data.marginal(candidates[i]) - np.round(expected)).sum()
            scores[j] = weights[i] * (distance - discounts[j])
        self._accountant.charge(event)
        self._left -= choice
        j = self._noise.choose(scores, event)
        return candidates[allowed[j]], beliefs[j], float(discounts[j])

    def _beliefs(self, sets: list[Names]) -> list[Array]:
        """The model's marginals, smaller ones as sums of larger ones where that saves an elimination."""
        model = self.learned.model
        found: dict[Names, Array] = {}
        for names in sorted(sets, key=len, reverse=True):
            if names in found:
                continue
            found[names] = table = model.marginal(names)
            for s in subsets(names, 2)[:-1]:
                if s not in found:
                    found[s] = table.sum(axis=tuple(i for i, n in enumerate(names) if n not in s))
        return [found[s] for s in sets]


def measurement_for(budget: Budget, cost: float) -> Laplace | Gaussian:
    """The noise on a whole marginal that costs this much."""
    if budget.pure:
        return Laplace(budget.marginal_l1(), budget.marginal_l1() / cost)
    return Gaussian(budget.marginal_l2(), budget.marginal_l2() / math.sqrt(2 * cost))


def choice_for(budget: Budget, cost: float) -> Exponential:
    """The choice by ℓ1 distances that costs this much. Scores are floats, so Δ has room for their rounding."""
    epsilon = cost if budget.pure else math.sqrt(8 * cost)
    return Exponential(budget.marginal_distance() * (1 + 2**-30), epsilon)


def _mean_absolute(event: Laplace | Gaussian) -> float:
    return event.scale if isinstance(event, Laplace) else event.sigma * math.sqrt(2 / math.pi)
