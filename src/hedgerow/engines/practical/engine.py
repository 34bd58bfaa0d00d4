"""The practical profile: the same privacy proof as the theory's, every other choice made for accuracy at the user's n.

Before the first question a share of the budget buys noisy marginals chosen for a public workload (``prefit``). The
hypothesis is the log-linear model that fits all released measurements, and a question is answered from it for free, with an
error bar from public quantities (``knowledge``). The rest of the budget buys, as the stream goes on,

    within=   a direct measurement, exactly when the free bar is wider than the analyst asked for (``purchases``), and
    a guard   (sparse vector) for questions the measurements do not bound: "wrong" buys a measurement and a refit.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from hedgerow._types import Array, Names
from hedgerow.convex.losses.custom import Custom
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.data import exact_counts as exact
from hedgerow.data.source import DataSource
from hedgerow.engines.practical.convex import Convex
from hedgerow.engines.practical.guard import Guard, Watch, planned_guard
from hedgerow.engines.practical.knowledge import Knowledge, Learned
from hedgerow.engines.practical.measurement import Measurement, varying
from hedgerow.engines.practical.prefit import Prefit
from hedgerow.engines.practical.purchases import Purchases
from hedgerow.errors import BudgetExceeded
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.ledger import Entry, Ledger, one_at_a_time
from hedgerow.privacy.noise import Noise
from hedgerow.questions.bound import Estimate
from hedgerow.questions.counts import BoundMarginal, Query
from hedgerow.questions.counts import bound as bound_to
from hedgerow.questions.linear import Linear
from hedgerow.questions.universe import Universe
from hedgerow.questions.workloads import Workload


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
        self.ledger, self.guard, self._data = ledger, guard, data
        self._n_is_public = ledger.budget.neighbours == "replace"
        public = data.rows if self._n_is_public else None
        self.knowledge = Knowledge(learned, beta if guard is None else beta / 2, public)
        self._purchases = Purchases(data, ledger, noise, self.knowledge)
        self._watch = None if guard is None else Watch(guard, ledger, noise)
        self._convex = Convex(data, noise, self.knowledge, self._purchases, self._watch, tuple(vouched))

    @property
    def hypothesis(self) -> Hypothesis:
        return self.knowledge.hypothesis

    @property
    def rows(self) -> float:
        return self.knowledge.rows.estimate

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """All released measurements: public."""
        return tuple(self.knowledge.learned.measurements)

    def error_in_rows(self, value: Any, error: float | Array) -> float | Array:
        """The bar of ñ·value around the true count, error being that of the fraction: |ñv − nt| ≤ |ñ − n|v + n|v − t|."""
        off = 0.0 if self._n_is_public else self.knowledge.rows.off
        reach: float | Array = off * value + self.knowledge.rows.high * error
        return reach

    @one_at_a_time
    def free(self, queries: Sequence[Linear]) -> list[Estimate] | None:
        """None while a guard would have to be asked in order."""
        if self._watch is not None and self._watch.is_on:
            return None
        values, errors = self.knowledge.free_all(queries)
        return [_estimate(v, e) for v, e in zip(values.tolist(), errors.tolist(), strict=True)]

    @one_at_a_time
    def believed(self, query: Linear) -> float:
        return self.knowledge.answer(query)

    @one_at_a_time
    def linear(self, query: Linear, within: float | None) -> Estimate:
        value, error = self.knowledge.free(query, within)
        if within is not None and error > within * (1 + 1e-9):
            self._purchases.buy(query, within)
            return Estimate(*self.knowledge.free(query, within), "measured")
        watch = self._watch
        if watch is not None and watch.is_on and error > watch.guard.promise:
            if watch.is_above(self._gap(query)):
                target = watch.guard.promise / 3
                try:
                    self._purchases.buy(query, target)
                except BudgetExceeded:  # it was said that the hypothesis is wrong here, and no more can be bought
                    return _estimate(value, error)
                return Estimate(*self.knowledge.free(query, target), "measured")
            error = min(error, self._promised(watch.guard))
        return _estimate(value, error)

    @one_at_a_time
    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """The whole table; its bar holds for every cell, and ``within`` buys the table, not its cells."""
        values, error = self.knowledge.table(table.attributes, within)
        if within is None or error <= within * (1 + 1e-9):
            return Estimate(values, error if error < 1 else None, "hypothesis")
        self._purchases.buy_table(varying(self._data.universe, table.attributes), within)
        values, error = self.knowledge.table(table.attributes, within)
        return Estimate(values, error if error < 1 else None, "measured")

    @one_at_a_time
    def minimise(self, question: BoundMinimize, within: float | None) -> Estimate:
        """θ and a bound on its excess risk; ``within`` buys a better one (``convex``)."""
        return self._convex.answer(question, within)

    @one_at_a_time
    def resume(self, entries: Sequence[Entry]) -> None:
        self._purchases.resume(entries)
        if self._watch is not None:
            self._watch.resume(entries)

    def _gap(self, query: Linear) -> float:
        """By how much the count differs from the hypothesis', in rows; one row moves it by at most 1. Private."""
        query, known = exact.on_grid(self._data.universe, query), self.knowledge
        step = exact.step_of(query, known.grid)
        believed = exact.nearest(known.rows.estimate * known.answer(query), step)
        return abs(exact.counted(query, self._data.marginal(query.attributes), step) - believed)

    def _promised(self, guard: Guard) -> float:
        """What ⊥ says of a fraction: |N − ñv| ≤ 3w rows, the threshold being 2w, and n may be off."""
        if self._n_is_public:
            return guard.promise
        return (1.5 * guard.config.threshold + 1 + self.knowledge.rows.off) / self.knowledge.rows.estimate


def _estimate(value: float, error: float) -> Estimate:
    return Estimate(value, error if error < 1 else None, "hypothesis")


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
    if planned is not None and reserve + 2 * planned.share >= 1:  # the owner reserves what a guard would take
        planned = None
    kept = (guard or 0.0) if planned is None else planned.share
    share = 1 - reserve - 2 * kept  # as much again for what the guard finds
    allowance = Allowance(ledger, share * budget.total)
    with ledger.exclusively():
        learned = Prefit(data, noise, wanted, allowance, rows).run(everything=everything)
    if rows is None and guard:  # n is private: a guard is bought only on request, and planned for its estimate
        planned = planned_guard(budget, learned.rows, queries, beta / 2, guard)
    return Practical(data, ledger, noise, learned=learned, guard=planned, beta=beta, vouched=vouched)


def attribute_sets(universe: Universe, workload: Workload | Iterable[Query] | None) -> dict[Names, float]:
    """The attribute sets a workload asks about, with how often.

    By default all sets of up to three attributes, weighted so that questions about one, two and three are asked alike.
    """
    if workload is None:
        orders = [list(itertools.combinations(universe.names, k)) for k in (1, 2, 3)]
        return {names: 1 / len(sets) for sets in orders for names in sets}
    chosen = workload.on(universe) if isinstance(workload, Workload) else list(workload)
    sets: dict[Names, float] = {}
    for names in (names for query in chosen for names in bound_to(query, universe).tables if names):
        sets[names] = sets.get(names, 0.0) + 1.0
    return sets
