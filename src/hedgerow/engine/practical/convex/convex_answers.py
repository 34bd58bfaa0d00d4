"""Convex questions in the practical profile: answered on the fitted hypothesis, guarded, and bought with ``within``.

Paper: Ullman, *Private Multiplicative Weights Beyond Linear Queries*, Figure 3. Proof:
docs/proofs/practical_convex.md.

Symbols: D the data and D̂ the hypothesis, as fractions on the risk's attributes; θ̂ = argmin ℓ_D̂; err(D, θ) = ℓ_D(θ)
− min ℓ_D; S the scale of the loss; τ the gap that the solver may leave, per row; g(x) = ∇ℓ_x(θ̂), v = θ − θ̂.

A free answer is θ̂. Its bar is the excess risk that the measured tables leave possible (``excess_bounds``), or the
certified bar if the question was declared in the workload (``loss_certificate``). Where that is not enough, the guard
compares n·err(D, θ̂)/(2S) with its threshold for counts: one row moves this number by at most 1. ``within=`` measures
n·err(D, θ̂): one row moves this number by 2S (by S where rows are added or removed). If the released
                value is not good enough, the engine teaches the hypothesis: by the marginal on the risk's attributes
                where its noise leaves something to see, else by θ from noisy gradient descent and the one linear query
                ⟨u, D⟩ that tells θ̂ from θ (Figure 3's update). Then it refits and measures again.

Differs: err is 2S-sensitive in rows, being a supremum over θ of sums of terms in [−S, S]; the paper's 3S is loose. It
is computed as a whole number (``excess``), whose sensitivity includes the gap that the solver may leave on any table,
and all rounding.

User-defined functions see public values only: such a loss is answered on the hypothesis, and neither guarded nor
measured unless the owner trusts it when the session was opened.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hedgerow._types import Array
from hedgerow.convex.losses.custom import Custom
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.convex.solver.excess import Excess, excess_of, in_rows, per_row
from hedgerow.convex.solver.gradient_sums import GradientSums
from hedgerow.data.source import DataSource
from hedgerow.engine.practical.guard import GuardWatch
from hedgerow.engine.practical.measure.prefit import LARGEST_MODEL_CELLS
from hedgerow.engine.practical.measure.purchases import Purchases
from hedgerow.engine.practical.public import PracticalAnswers
from hedgerow.errors import InvalidInput
from hedgerow.model.junction_tree import junction_cells
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.events import Gaussian, Laplace, grid_at_most
from hedgerow.privacy.noise import Noise
from hedgerow.query.bound import Estimate
from hedgerow.query.linear import Linear
from hedgerow.textbook.sparse_vector import FINEST

FINE = 2.0**-10  # grid of released numbers, as a part of sensitivity and noise
SURROGATE = 0.01  # most that the surrogate's err may differ from the loss's, as a part of the bar asked or promised
CHECK = 2 / 3  # part of ``within`` for the noise of a measured err; the rest is for err itself
ATTEMPTS = 3  # attempts to bring err below ``within``
STEPS = 40  # steps of noisy gradient descent


class Convex:
    """Answer convex questions in the practical profile, with the same purchases and guard as counts."""

    def __init__(
        self,
        data: DataSource,
        noise: Noise,
        public: PracticalAnswers,
        purchases: Purchases,
        watch: GuardWatch | None,
        trusted_losses: tuple[Custom, ...],
    ) -> None:
        self._data, self._noise, self._public, self._known = data, noise, public, public.knowledge
        self._purchases, self._watch, self._trusted = purchases, watch, trusted_losses
        self._ledger = purchases.ledger

    def answer(self, query: BoundMinimize, within: float | None) -> Estimate:
        """Return θ with a bar: free, bought to meet ``within``, or checked by the guard."""
        theta, error = self._public.free_minimum(query)
        if within is not None and error > within:
            return self._buy(query, theta, error, within)
        # The scale of a set of one point is 0: there is nothing to compare.
        if within is None and self._watch is not None and self._watch.is_on and query.scale:
            return self._ask_guard(self._watch, query, theta, error)
        return self._public.convex_estimate(query, theta, error)

    def quote(self, query: BoundMinimize, within: float | None) -> tuple[Estimate, float]:
        """Return the free answer and the price of measuring how good it is, if ``within`` asks for that.

        Teaching the hypothesis costs more, and is not part of the price.
        """
        theta, error = self._public.free_minimum(query)
        if within is None or error <= within:
            return self._public.convex_estimate(query, theta, error), 0.0
        return self._public.convex_estimate(query, theta, within), self._ledger.budget.cost(
            self._check(query, theta, within)[1]
        )

    # The guard.

    def _ask_guard(self, watch: GuardWatch, query: BoundMinimize, theta: Array, error: float) -> Estimate:
        """Ask the guard about the free answer; on ⊤ teach the hypothesis and answer again."""
        guard, budget = watch.guard, self._ledger.budget
        assert query.scale is not None
        unit = budget.bounded_sum(query.scale)  # the amount of err that corresponds to one row of a linear query
        excess = self._excess(query, theta, SURROGATE * guard.promise * unit)
        if excess is None or error <= guard.promise * unit:
            return self._public.convex_estimate(query, theta, error)
        watch.ready()
        if not watch.is_above(in_rows(excess, self._data.marginal(query.attributes), FINEST)):
            most = 1.5 * guard.config.threshold + 3 * FINEST  # 3w, because the threshold is 2w, and the grid
            row = per_row(excess, FINEST) * excess.unit
            promised = (most * row + excess.below) / self._known.rows.low
            return self._public.convex_estimate(query, theta, min(error, promised))
        allowance = min(guard.share * budget.total / guard.config.rounds, self._ledger.remaining)
        if allowance > 0:
            self._teach(query, theta, allowance)
            theta, error = self._public.free_minimum(query)
        return self._public.convex_estimate(query, theta, error, "measured")

    # Purchases.

    def _buy(self, query: BoundMinimize, theta: Array, error: float, within: float) -> Estimate:
        """Measure err until it is small enough or the budget ends; return the answer with the best bar.

        That bar may be wider than ``within``.
        """
        excess, event = self._check(query, theta, within)
        cost = self._ledger.budget.cost(event)
        best = theta, error
        for attempt in range(ATTEMPTS):
            if attempt and not self._ledger.affords(event):
                break
            bound = min(error, self._measure_excess(query, replace(excess, theta=theta), event))
            if bound < best[1]:
                best = theta, bound
            allowance = (self._ledger.remaining - cost) / (ATTEMPTS - attempt)
            if bound <= within or attempt == ATTEMPTS - 1 or allowance <= 0:
                break
            proposed = self._teach(query, theta, allowance)
            theta, error = self._public.free_minimum(query)
            if proposed is not None:
                theta, error = proposed, math.inf
        return self._public.convex_estimate(query, *best, "measured")

    def _excess(self, query: BoundMinimize, theta: Array, error: float) -> Excess | None:
        """Plan how err of a public θ is computed on the data; None if that is not certain for every table."""
        if query.scale is None or not query.risk.is_listable or not query.is_trusted(self._trusted):
            return None
        return excess_of(query.risk, query.over, theta, self._ledger.budget, self._known.rows.high, error)

    def _check(self, query: BoundMinimize, theta: Array, within: float) -> tuple[Excess, Laplace | Gaussian]:
        """Return how n·err is computed, and the noise on it that leaves CHECK·within: the same for every θ."""
        budget, rows = self._ledger.budget, self._known.rows
        excess = self._excess(query, theta, SURROGATE * within)
        if excess is None:
            if not query.is_trusted(self._trusted):
                raise InvalidInput(
                    "within must be used with one of hedgerow.losses, or with a loss that the owner trusts. "
                    f"Found {query.risk!r}. "
                    "Ask without within, or have the owner open the session with trusted_losses=[loss]."
                )
            raise InvalidInput(
                f"within must be used with a loss whose excess risk can be measured: over a bounded set, with a scale "
                f"that floating point resolves at {rows.high:.0f} rows, and small enough for a certified minimum. "
                f"Found {query.over!r} and {math.prod(query.shape)} cells. "
                "Change the set, use fewer features, or ask without within."
            )
        room = max(CHECK * within * rows.low - excess.below, 0.1 * within * rows.low)
        sensitivity = excess.sensitivity(0.0)
        unit: Laplace | Gaussian = Laplace(sensitivity, 1.0) if budget.pure else Gaussian(sensitivity, 1.0)
        scale = room / self._known.bars.number(unit)
        grid = max(grid_at_most(min(sensitivity, scale) * FINE), excess.unit)
        kind = Laplace if budget.pure else Gaussian
        return excess, kind(excess.sensitivity(grid), scale, grid)

    def _measure_excess(self, query: BoundMinimize, excess: Excess, event: Laplace | Gaussian) -> float:
        """Return an upper bound on err(D, θ) for a public θ, from a billed measurement."""
        receipt, width = self._purchases.number(event)
        noisy = float(self._noise.add(excess.value(self._data.marginal(query.attributes), event.grid), receipt))
        return (max(noisy, 0.0) + width + excess.below) / self._known.rows.low

    # Teaching the hypothesis.

    def _teach(self, query: BoundMinimize, theta: Array, allowance: float) -> Array | None:
        """Spend up to the allowance on measuring what D̂ gets wrong here, and refit.

        Return θ where a private oracle found one.
        """
        names, budget, universe = query.attributes, self._ledger.budget, self._data.universe
        whole = Amount(budget, allowance).marginal()
        noise = whole.scale if isinstance(whole, Laplace) else whole.sigma
        inner, tops = self._known.learned.merging.inner, self._known.learned.model.tops
        fits = junction_cells(inner, [*tops, names]) <= LARGEST_MODEL_CELLS
        if fits and noise * math.prod(query.shape) <= self._known.rows.estimate:
            self._purchases.table(names, whole)
            return None
        proposed = self._oracle(query, theta, 0.75 * allowance)
        if proposed is None:
            return None
        u = query.risk.directional(theta, proposed)
        size = float(np.abs(u).max())
        if not (fits and size > 0):
            return proposed
        linear = Linear.from_table(universe, names, np.clip((u / size + 1) / 2, 0.0, 1.0))
        if linear.attributes:
            self._purchases.query(linear, Amount(budget, 0.25 * allowance * (1 - 1e-9)).count())
        return proposed

    def _oracle(self, query: BoundMinimize, theta: Array, allowance: float) -> Array | None:
        """Return θ by projected descent from θ̂ on noisy gradient sums: the average of the later steps, each billed."""
        budget, rows, p = self._ledger.budget, self._known.rows, query.risk.dimension
        L, n = query.risk.lipschitz(query.over), rows.estimate
        sums = GradientSums(query.risk, query.over, budget, rows.high)
        if not sums.are_certain:
            return None
        each, l2 = allowance / STEPS * (1 - 1e-9), sums.sensitivity
        grid = grid_at_most(min(l2, l2 / math.sqrt(2 * each)) * FINE / p)
        l1, l2 = math.sqrt(p) * l2 + p * grid, l2 + math.sqrt(p) * grid
        event = Amount(budget, each).noise(l1, l2, grid)
        variance = 2 * event.scale**2 if isinstance(event, Laplace) else event.sigma**2
        diameter = query.over.diameter_l2(p)
        step = diameter / math.sqrt(STEPS * (L**2 + p * variance / n**2))
        if query.risk.is_smooth:  # steps of 1/smoothness, unless their noise would carry θ across the set
            step = max(step, min(1 / query.risk.smoothness, diameter * n / math.sqrt(STEPS * p * variance)))
        counts = self._data.marginal(query.attributes)
        total: Array = np.zeros(p)
        for k in range(STEPS):
            # The draw need not be stored: θ is used at once, and the hypothesis learns from a later query.
            receipt = self._ledger.charge(event, why="gradient", keep=False)
            noisy = np.asarray(self._noise.add(sums.at(theta, counts), receipt))
            theta = query.over.project(theta - step * noisy / n)
            total += theta if k >= STEPS // 2 else 0.0
        return query.over.project(total / (STEPS - STEPS // 2))
