"""The practical profile: the same privacy proof as the theory's, every other choice made for accuracy at the user's n.

Before the first question a share of the budget buys noisy marginals chosen for a public workload (``selection``). The
hypothesis is the log-linear model that fits all released measurements (``fit``). A question is answered from it for
free, with an error bar from public quantities (``measurements``). The rest of the budget buys, as the stream goes on,

    within=   a direct measurement, exactly when the free bar is wider than the analyst asked for, and
    a guard   (sparse vector) for questions the measurements do not bound: "wrong" buys a measurement and a refit.

The guard's share follows a public rule, ``planned_guard``: at small n its threshold would be too coarse to help, and it
gets nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from hedgerow._types import Array
from hedgerow.convex.losses.custom import Custom
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.data import exact_counts as exact
from hedgerow.data.source import DataSource
from hedgerow.engines.practical.convex import Convex
from hedgerow.engines.practical.error_bars import ErrorBars, Measurement, Rows, varying
from hedgerow.engines.practical.prefit import Learned, Prefit
from hedgerow.errors import BudgetExceeded
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.allowance import Allowance, Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Ledger, one_at_a_time
from hedgerow.privacy.noise import Noise
from hedgerow.questions.counts import BoundMean, Query
from hedgerow.questions.counts import bound as bound_to
from hedgerow.questions.linear import Linear, answer_all, require_table
from hedgerow.questions.universe import Universe
from hedgerow.questions.workloads import Workload
from hedgerow.textbook import sparse_vector

Source = Literal["hypothesis", "measured"]
REFIT_STEPS = 200
GUARD_ROUNDS = 8  # ⊤ the guard may answer; each is followed by a measurement and a refit
GUARD_SHARE = 0.1
WHOLE_MARGINAL = 4  # a whole marginal is measured when it costs at most this much more than the query alone
GUARD_HELPS = 0.02  # a guard that cannot promise this much is not bought
LARGEST_NOISE = 2.0**exact.NOISE_BITS  # of what is bought: less noise than asked for, where that is more
ROUNDING = 2.0 ** -(exact.WEIGHT_BITS + 1)  # of a query that is no count, before it is counted
EVERYONE = Linear((), (), (), np.array(1.0), True)


@dataclass(frozen=True)
class Guard:
    """A sparse vector for the stream, and what it promises: after ⊥ the answer is this close."""

    config: sparse_vector.SparseVector
    promise: float
    share: float


def planned_guard(budget: Budget, rows: float, queries: int, beta: float, share: float | None = None) -> Guard | None:
    """The guard that this share of the budget buys; None where it would cost more than it gives.

    All k comparisons of c rounds are right to within w = weight·Δ/ε rows (``sparse_vector.comparison_weight``), so with
    its threshold at 2w it never fires at errors below w, and after ⊥ the error is at most 3w. It is bought when 3w/n is
    at most 2 %, or when the owner asks for a share.
    """
    wanted = GUARD_SHARE if share is None else share
    if wanted == 0:
        return None
    weight, ratio = sparse_vector.comparison_weight(GUARD_ROUNDS, queries, beta)
    epsilon = Amount.share_of(budget, wanted).round_epsilon(GUARD_ROUNDS)
    width = weight * budget.linear() / epsilon
    if share is None and 3 * width > GUARD_HELPS * rows:
        return None
    round_ = sparse_vector.guard_round(epsilon, ratio, budget.linear())
    return Guard(sparse_vector.SparseVector(2 * width, round_, GUARD_ROUNDS), 3 * width / rows, wanted)


class Practical:
    """Answers from a fitted hypothesis; measures, when asked or when the guard says so, and refits."""

    def __init__(
        self,
        data: DataSource,
        ledger: Ledger,
        noise: Noise,
        *,
        learned: Learned,
        guard: Guard | None,
        beta: float,
        vouched: Collection[Custom] = (),
    ) -> None:
        """``beta`` is shared by the error bars and, where there is one, the guard."""
        self._data, self.ledger, self._noise = data, ledger, noise
        self._learned, self.guard, self.vouched = learned, guard, tuple(vouched)
        self._progress = sparse_vector.Progress()
        self._bars = ErrorBars(data.universe, beta if guard is None else beta / 2)
        if learned.overview is not None:
            self._bars.add_overview(learned.overview)
        for measurement in learned.measurements:
            if not measurement.residual:
                self._bars.add(measurement)
        self._settle()

    def _settle(self) -> None:
        """What follows from the measurements so far."""
        self.hypothesis: Hypothesis = self._learned.model.hypothesis()
        known = self._data.rows if self.ledger.budget.neighbours == "replace" else None
        self._rows = self._bars.rows() if known is None else Rows(known, known, known)
        scale = min(self._rows.estimate, 2.0**exact.EXACT_BITS)
        self._grid = exact.grid_for(scale, min(scale, LARGEST_NOISE))

    @property
    def rows(self) -> float:
        return self._rows.estimate

    def error_in_rows(self, value: Any, error: float) -> float:
        """The bar of ñ·value around the true count, error being that of the fraction: |ñv − nt| ≤ |ñ − n|v + n|v − t|."""
        off = 0.0 if self.ledger.budget.neighbours == "replace" else self._rows.off
        return off * float(np.max(value)) + self._rows.high * error

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """All released measurements: public."""
        return tuple(self._learned.measurements)

    @one_at_a_time
    def answer_free(self, queries: Sequence[Linear]) -> list[tuple[float, float | None]] | None:
        """Answers that consult nothing private, all at once; None while a guard would have to be asked in order."""
        if self._guarding:
            return None
        values = answer_all(queries, self._believed)
        low, high = self._bars.intervals(queries, self._rows)
        values, errors = _placed(values, low, high, None)
        return [(v, e if e < 1 else None) for v, e in zip(values.tolist(), errors.tolist(), strict=True)]

    @one_at_a_time
    def answer(self, query: Linear, within: float | None) -> tuple[float, float | None, Source]:
        value, error = self._free(query, within)
        if within is not None and error > within * (1 + 1e-9):
            self._measure(query, within)
            return *self._free(query, within), "measured"
        if self.guard is not None and self._guarding and error > self.guard.promise:
            if self._is_wrong(query):
                target = self.guard.promise / 3
                try:
                    self._measure(query, target)
                except BudgetExceeded:  # it was said that the hypothesis is wrong here, and no more can be bought
                    return value, error if error < 1 else None, "hypothesis"
                return *self._free(query, target), "measured"
            error = min(error, self._promised())
        return value, error if error < 1 else None, "hypothesis"

    @one_at_a_time
    def marginal(self, names: tuple[str, ...], within: float | None) -> tuple[Array, float | None, Source]:
        """The whole table; its bar holds for every cell, and ``within`` buys the table, not its cells."""
        source: Source = "hypothesis"
        values, error = self._table(names, within)
        if within is not None and error > within * (1 + 1e-9):
            kept = varying(self._data.universe, names)
            self._know_rows(within, self._event_for(self._a_cell(kept), within, alone=False))
            self._learn(kept, self._event_for(self._a_cell(kept), within, alone=False))
            values, error = self._table(names, within)
            source = "measured"
        return values, error if error < 1 else None, source

    @one_at_a_time
    def minimise(self, query: BoundMinimize, within: float | None) -> tuple[Array, float | None, Source]:
        """θ and a bound on its excess risk; ``within`` buys a better one (``practical_convex``)."""
        return Convex(self).answer(query, within)

    def _free(self, query: Linear, within: float | None) -> tuple[float, float]:
        """The hypothesis' answer inside the interval that is known, and the bar around it."""
        ends = self._bars.intervals([query], self._rows)
        value, error = _placed(np.array([self._answer(query)]), *ends, within)
        return float(value[0]), float(error[0])

    def _believed(self, names: tuple[str, ...]) -> Array:
        """The hypothesis' marginal, corrected by measurements that were too large for it."""
        corrected = self._learned.corrected(names)
        return self.hypothesis.marginal(names) if corrected is None else corrected

    def _answer(self, query: Linear) -> float:
        corrected = self._learned.corrected(query.attributes)
        return self.hypothesis.answer(query) if corrected is None else query.dot(corrected)

    @property
    def _guarding(self) -> bool:
        if self.guard is None or self._progress.tops >= self.guard.config.rounds:
            return False
        return self._progress.is_open or self.ledger.affords(self.guard.config.guard)

    @one_at_a_time
    def _is_wrong(self, query: Linear) -> bool:
        """Ask the guard whether the count differs from the hypothesis' by more than its threshold. One bit, billed."""
        assert self.guard is not None
        query = exact.on_grid(self._data.universe, query)
        step = exact.step_of(query, self._grid)
        believed = exact.nearest(self._rows.estimate * self._answer(query), step)
        gap = abs(exact.counted(query, self._data.marginal(query.attributes), step) - believed)
        outcome, self._progress = sparse_vector.step(self.guard.config, self._progress, gap, self.ledger, self._noise)
        return outcome.above

    def _promised(self) -> float:
        """What ⊥ says of a fraction: |N − ñv| ≤ 3w rows, the threshold being 2w, and n may be off."""
        assert self.guard is not None
        if self.ledger.budget.neighbours == "replace":
            return self.guard.promise
        return (1.5 * self.guard.config.threshold + 1 + self._rows.off) / self._rows.estimate

    def _measure(self, query: Linear, within: float) -> None:
        """Buy a bar of ``within`` for a query: by its whole marginal if that costs little more, else by itself."""
        budget = self.ledger.budget
        self._know_rows(within, self._event_for(query, within, alone=True))
        alone = self._event_for(query, within, alone=True)
        whole = self._event_for(query, within, alone=False)
        if budget.cost(whole) <= WHOLE_MARGINAL * budget.cost(alone):
            self._learn(query.attributes, whole)
        else:
            self._learn(query.attributes, alone, query)

    def _know_rows(self, within: float, event: Laplace | Gaussian) -> None:
        """Where n is private and known too badly for a bar of ``within``, buy it too: if what follows is affordable."""
        if self._rows.doubt <= within / 2:
            return
        budget = self.ledger.budget
        unit = _event(budget, 1.0, alone=True)
        scale = within / 3 * self._rows.estimate / self._bars.width(EVERYONE, unit, alone=False)
        counting = _event(budget, min(scale, LARGEST_NOISE), alone=True)
        if not self.ledger.affords(counting, event):
            raise BudgetExceeded(
                f"The budget must afford to measure the number of rows besides, at "
                f"{budget.cost(counting) + budget.cost(event):.4g} in all. Found {self.ledger.remaining:.4g} left. "
                "Ask for a looser error, or stop here."
            )
        self._learn((), counting)

    def _event_for(self, query: Linear, within: float, *, alone: bool) -> Laplace | Gaussian:
        """The noise that gives the query a bar of ``within``: bars are proportional to its scale.

        n's interval and the rounding of a query that is no count take their part of it.
        """
        budget, rows = self.ledger.budget, self._rows
        unit = _event(budget, 1.0, alone=alone)
        rounded = self._grid / 2 / rows.low + ROUNDING if alone and not query.is_count else 0.0
        room = (1 - 1e-9) * max(within - rows.doubt - rounded, within / 4) * rows.low / (1 + rows.doubt)
        return _event(budget, min(room / self._bars.width(query, unit, alone=alone), LARGEST_NOISE), alone=alone)

    def _learn(self, names: tuple[str, ...], event: Laplace | Gaussian, query: Linear | None = None) -> None:
        """Charge, draw, and refit the hypothesis to everything released so far."""
        require_table(names, self._data.universe.sizes(names))  # before the charge
        if query is None:
            receipt = self.ledger.charge(event, why="measurement")
            drawn = self._noise.add(self._data.marginal(names), receipt)
            measurement = Measurement(names, np.asarray(drawn, dtype=float), event)
        else:
            counted = exact.on_grid(self._data.universe, query)
            step = exact.step_of(query, self._grid)
            event = replace(event, grid=step)
            receipt = self.ledger.charge(event, why="measurement")
            value = self._noise.add(exact.counted(counted, self._data.marginal(counted.attributes), step), receipt)
            rounding = 0.0 if query.is_count else ROUNDING
            measurement = Measurement(names, np.asarray(value), event, query, rounding=rounding)
        self._bars.add(measurement)
        self._learned.add(measurement)
        if self._learned.has_room(names):  # otherwise the measurement still bounds and corrects its own answers
            self._learned.grow(*(() if query is not None or not names else (names,)), query=query)
            self._learned.refit(REFIT_STEPS, 0.1)
        self._settle()

    def _a_cell(self, names: tuple[str, ...]) -> Linear:
        universe = self._data.universe
        return Linear.product(universe, {n: np.arange(universe[n].size) == 0 for n in names})

    def _table(self, names: tuple[str, ...], within: float | None) -> tuple[Array, float]:
        kept = varying(self._data.universe, names)
        believed = self._believed(kept) if kept else np.ones(())
        values, errors = _placed(believed, *self._bars.cell_intervals(kept, self._rows), within)
        return values.reshape(self._data.universe.sizes(names)), float(errors.max())


def _event(budget: Budget, scale: float, *, alone: bool) -> Laplace | Gaussian:
    """Noise of this scale on one count, or on a whole marginal."""
    if budget.pure:
        return Laplace(budget.linear() if alone else budget.marginal_l1(), scale)
    return Gaussian(budget.linear() if alone else budget.marginal_l2(), scale)


def _placed(values: Array, low: Array, high: Array, within: float | None) -> tuple[Array, Array]:
    """Values moved into their intervals, and the bar around each.

    Where a bar of ``within`` is possible about some value of the interval, the value is moved to have it.
    """
    values = np.clip(values, low, high)
    if within is not None:
        reachable = high - low <= 2 * within
        values = np.where(reachable, np.clip(values, high - within, low + within), values)
    return values, np.maximum(high - values, values - low)


def prefitted(
    data: DataSource,
    ledger: Ledger,
    noise: Noise,
    *,
    workload: Workload | Iterable[Query] | None,
    queries: int,
    beta: float,
    guard: float | None,
    reserve: float,
    everything: bool = False,
    vouched: Collection[Custom] = (),
) -> Practical:
    """Spend all but the reserve and the guard's share on a hypothesis that knows the workload."""
    budget = ledger.budget
    rows = float(data.rows) if budget.neighbours == "replace" else None
    wanted = attribute_sets(data.universe, workload)
    planned = None if rows is None else planned_guard(budget, rows, queries, beta / 2, guard)
    kept = (guard or 0.0) if planned is None else planned.share
    share = 1 - reserve - 2 * kept  # as much again for what the guard finds
    learned = Prefit(data, noise, wanted, Allowance(ledger, share * budget.total), rows).run(everything=everything)
    if rows is None and guard:  # n is private: a guard is bought only on request, and planned for its estimate
        planned = planned_guard(budget, learned.rows, queries, beta / 2, guard)
    return Practical(data, ledger, noise, learned=learned, guard=planned, beta=beta, vouched=vouched)


def attribute_sets(universe: Universe, workload: Workload | Iterable[Query] | None) -> dict[tuple[str, ...], float]:
    """The attribute sets a workload asks about, with how often.

    By default all sets of up to three attributes, weighted so that questions about one, two and three are asked alike.
    """
    if workload is None:
        orders = [list(itertools.combinations(universe.names, k)) for k in (1, 2, 3)]
        return {names: 1 / len(sets) for sets in orders for names in sets}
    chosen = workload.on(universe) if isinstance(workload, Workload) else list(workload)
    sets: dict[tuple[str, ...], float] = {}
    for query in chosen:
        bound = bound_to(query, universe)
        parts = [bound.numerator, bound.denominator] if isinstance(bound, BoundMean) else [bound]
        for part in parts:
            if part.attributes:
                sets[part.attributes] = sets.get(part.attributes, 0.0) + 1.0
    return sets
