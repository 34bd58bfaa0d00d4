"""The practical profile: the privacy proof of the theory profile, with every other choice made for accuracy.

Before the first question a share of the budget buys noisy marginals chosen for a public workload (``prefit``). The
hypothesis is the log-linear model that fits all released measurements. A question is answered from it for free, with
an error bar from public quantities (``free_answers``). As the stream goes on, the rest of the budget buys

    within=   a direct measurement, exactly when the free bar is wider than the analyst asked for (``purchases``), and
    a guard   (sparse vector) for questions that the measurements do not bound: "wrong" buys a measurement and a refit.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow._types import Names
from hedgerow.convex.losses.custom import Custom
from hedgerow.convex.minimize import BoundMinimize, bound_convex
from hedgerow.data import counting as exact
from hedgerow.data.source import DataSource
from hedgerow.engine.interface import bar_for_ratio
from hedgerow.engine.practical.certificate.certificate_purchase import buy_certificate, is_drowned
from hedgerow.engine.practical.certificate.certified_bounds import LARGEST, CertifiedCounts
from hedgerow.engine.practical.convex.convex_answers import Convex
from hedgerow.engine.practical.convex.loss_certificate import CertifiedLosses, certified_losses
from hedgerow.engine.practical.fit.value_groups import measure_wide as merging_of
from hedgerow.engine.practical.free_answers import BlockPrior, FittedModel, FreeAnswers
from hedgerow.engine.practical.guard import (
    Guard,
    GuardWatch,
    Precomputed,
    is_countable,
    plan_guard,
    require_hits,
    rounded_rows,
)
from hedgerow.engine.practical.measure.candidates import EverySmallSet, ListedSets, WorkloadSets
from hedgerow.engine.practical.measure.prefit import MODEL_CELLS, Prefit
from hedgerow.engine.practical.measure.purchases import Purchases, WantedBar
from hedgerow.engine.practical.measurement import Measurement, varying_names
from hedgerow.engine.practical.public import PracticalAnswers, estimate, table_estimate
from hedgerow.engine.public import PrivateEngine
from hedgerow.errors import BudgetExceeded
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Entry, Ledger, one_at_a_time
from hedgerow.privacy.noise import Noise
from hedgerow.query.bound import Bound, Estimate, is_within
from hedgerow.query.counts import BoundMarginal, Query
from hedgerow.query.counts import bound as bound_to
from hedgerow.query.linear import Linear
from hedgerow.query.workloads import Workload
from hedgerow.textbook.sparse_vector import FINEST
from hedgerow.universe.universe import Universe

# Share of β for the bars of measurements when there is a certificate: bars depend on β through a logarithm, the
# certificate through a quantile.
OF_BARS = 0.35
LEAST_RESERVE, MOST_RESERVE = 0.01, 0.05  # limits of the default reserve, as shares of the budget
RESERVE_OF_UNKNOWN = 0.02  # default reserve where n is private, so that what it buys is unknown
# The default reserve pays for this many counts, each with a bar of this share of the rows, which fails with this
# probability.
RESERVED_COUNTS, RESERVED_WITHIN, RESERVED_DOUBT = 10, 0.01, 1e-4
CERTIFICATE = {"rho": 0.052, "epsilon": 0.03}  # share of the opening's budget for the certificate: errors grow by 3 %
LOSSES = {"rho": 0.1, "epsilon": 0.1}  # share of it that certifies the convex questions which the workload declares


class PracticalEngine(PrivateEngine):
    """Answer from a fitted hypothesis; measure and refit when an analyst asks for it or the guard fires."""

    public: PracticalAnswers

    def __init__(
        self,
        data: DataSource,
        ledger: Ledger,
        noise: Noise,
        *,
        knowledge: FreeAnswers,
        guard: Guard | None,
        trusted_losses: Collection[Custom] = (),
        losses: CertifiedLosses | None = None,
        state: dict[str, Any] | None = None,
        opened: dict[str, Any] | None = None,
        opening: dict[str, Any] | None = None,
        next_prior: BlockPrior | None = None,
    ) -> None:
        """Build the engine from what the opening released, or restore it from a snapshot.

        ``state`` is a stored snapshot of the engine. ``opened`` is the part of such a snapshot that describes the
        opening, and ``opening`` what was learned by then. ``next_prior`` is the result of the opening, from which a
        block that is appended next begins.
        """
        self.ledger, self.guard, self._data = ledger, guard, data
        self.knowledge, self._opened, self.next_prior = knowledge, opened, next_prior
        self._watch = None if guard is None else GuardWatch(guard, ledger, noise)
        if state is not None and self._watch is not None:
            self._watch.resume((), tops=state["tops"])
        self._ahead = Precomputed(data, self.knowledge)
        certified = CertifiedLosses() if losses is None else losses
        n_is_public = ledger.budget.neighbours == "replace"
        self.public = PracticalAnswers(knowledge, certified, opening, n_is_public=n_is_public)
        self._noise, self._trusted_losses = noise, tuple(trusted_losses)

    @cached_property
    def _purchases(self) -> Purchases:
        """The purchases of a stream; an opening makes none."""
        return Purchases(self._data, self.ledger, self._noise, self.knowledge)

    @cached_property
    def _convex(self) -> Convex:
        """The answers to convex questions."""
        return Convex(self._data, self._noise, self.public, self._purchases, self._watch, self._trusted_losses)

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """All released measurements. Public."""
        return self.public.measurements

    @one_at_a_time
    def free(self, queries: Sequence[Linear]) -> list[Estimate] | None:
        """Answer all queries from the hypothesis; None while a guard is on, because it must be asked in order."""
        if self._watch is not None and self._watch.is_on:
            return None
        return self.public.free(queries)

    @one_at_a_time
    def expect(self, queries: Sequence[Linear]) -> None:
        """Announce the queries that are asked next, so that their answers are computed in one batch."""
        promise = 1.0 if self._watch is None else self._watch.guard.promise
        self._ahead = Precomputed(self._data, self.knowledge, queries, promise)

    @one_at_a_time
    def hypothesis_answer(self, query: Linear) -> float:
        """Return the hypothesis' answer."""
        return self.public.hypothesis_answer(query)

    @one_at_a_time
    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Answer a linear query: for free if its bar is narrow enough, else by a purchase or after asking the guard."""
        found = self._ahead.free(query) if within is None else None
        value, error = self.knowledge.free(query, within) if found is None else (found.value, found.error)
        if within is not None and not is_within(error, within):
            return self._buy([self._wanted_bar(query, within)])[0]
        watch, typical_error = self._watch, self.knowledge.typical_of(query) if found is None else found.typical
        if within is not None:  # met for free. The guard says nothing about a value that was moved to meet ``within``
            return estimate(value, error, typical_error)
        if watch is not None and error > watch.guard.promise and is_countable(query) and watch.is_on:
            if watch.is_above(self._gap(query) if found is None else self._ahead.gap(query)):
                try:
                    return self._buy([self._wanted_bar(query, watch.guard.promise / 3)])[0]
                except BudgetExceeded:  # the hypothesis is known to be wrong here, but nothing better can be bought
                    return estimate(value, error, typical_error)
            error = min(error, self._promised_bar(watch.guard, query))
        return estimate(value, error, typical_error)

    @one_at_a_time
    def ratio(self, numerator: Linear, denominator: Linear, within: float | None) -> tuple[Estimate, Estimate]:
        """Answer both queries so that their ratio has a bar of ``within``: met, or refused before any payment.

        The rows of the numerator must be among the rows of the denominator.
        """
        if within is not None and (wanted := self._wanted_bars_of_ratio(numerator, denominator, within)):
            bought = dict(zip((one.query.key for one in wanted), self._buy(wanted), strict=True))
        else:
            bought = {}
        top, bottom = (bought.get(q.key) or self.linear(q, None) for q in (numerator, denominator))
        return top, bottom

    @one_at_a_time
    def price(self, bound: Bound[Any], within: float) -> float:
        """Return the cost of asking ``bound`` with ``within``, in the budget's currency. Public; nothing is charged."""
        quote = self.make_quote()
        bound.ask(quote, within)
        return quote.price

    def make_quote(self) -> PracticalQuote:
        """Return a quote on this engine."""
        return PracticalQuote(self)

    @one_at_a_time
    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Answer a whole table with a bar for each cell.

        ``within`` limits the widest bar. A purchase buys the whole table, not its cells.
        """
        values, errors = self.knowledge.table(table.attributes, within)
        typical_error = self.knowledge.typical_cells(table.attributes)
        if within is None or is_within(errors, within):
            return table_estimate(values, errors, "hypothesis", typical_error)
        names = varying_names(self._data.universe, table.attributes)
        known, spread = self.knowledge.table(table.attributes, None)[0], _spread(float(typical_error.mean()))
        self._purchases.buy(WantedBar(self._purchases.cell(names), within, spread, table=True))
        values, errors = self.knowledge.table_with(table.attributes, known, spread, within)
        return table_estimate(values, errors, "measured", typical_error)

    def _wanted_bar(self, query: Linear, within: float) -> WantedBar:
        """Describe the purchase of ``query`` with a bar of ``within``."""
        return WantedBar(query, within, _spread(self.knowledge.typical_of(query)))

    def _buy(self, wanted: Sequence[WantedBar]) -> list[Estimate]:
        """Buy measurements, and answer by combining each with the earlier estimate, weighted by precision."""
        known = [self.knowledge.free(one.query, None)[0] for one in wanted]
        self._purchases.buy(*wanted)
        found = []
        for one, before in zip(wanted, known, strict=True):
            value, error = self.knowledge.free_with(one.query, before, one.spread, one.within)
            typical_error = self.knowledge.typical_of(one.query)
            found.append(
                Estimate(value, error, "measured", typical=None if math.isnan(typical_error) else typical_error)
            )
        return found

    def _wanted_bars_of_ratio(self, numerator: Linear, denominator: Linear, within: float) -> list[WantedBar]:
        """List the purchases that give the ratio a bar of ``within`` (``bar_for_ratio``)."""
        (t, above), (b, below) = (self.knowledge.free(query, None) for query in (numerator, denominator))
        each = bar_for_ratio((t, above), (b, below), within)
        if each is None:
            return []
        queries = {q.key: q for q, bar in ((numerator, above), (denominator, below)) if bar > each and q.attributes}
        return [self._wanted_bar(query, each) for query in queries.values()]

    @one_at_a_time
    def minimize(self, question: BoundMinimize, within: float | None) -> Estimate:
        """Return θ and a bound on its excess risk; ``within`` buys a better one (``convex``)."""
        return self._convex.answer(question, within)

    @one_at_a_time
    def resume(self, entries: Sequence[Entry]) -> None:
        """Learn from entries of the stream: purchased measurements and ended rounds of the guard."""
        if not entries:
            return
        self._purchases.resume(entries)
        if self._watch is not None:
            self._watch.resume(entries)

    @one_at_a_time
    def state(self) -> dict[str, Any]:
        """Return a snapshot of everything the engine knows, public and as plain data."""
        return {
            "learned": self.knowledge.learned.state(),
            "shares": [*self.knowledge.bars.shares, self.knowledge.bars.numbers],
            "tops": 0 if self._watch is None else self._watch.tops,
            "opened": self._opened,
        }

    def _gap(self, query: Linear) -> float:
        """Return the distance in rows of the count from the hypothesis' answer, as ``guard.gaps`` does. Private."""
        query, known = exact.on_grid(self._data.universe, query), self.knowledge
        step = exact.step_of(query, known.grid)
        believed = exact.nearest(known.rows.estimate * known.answer(query), step)
        return abs(exact.exact_count(query, self._data.marginal(query.attributes), step) - believed)

    def _promised_bar(self, guard: Guard, query: Linear) -> float:
        """Return the bar of a fraction after the guard said ⊥.

        |N − ñv| ≤ 3w rows (the threshold is 2w), plus what rounding hid from the comparison, plus the error of ñ
        where n is private.
        """
        known = self.knowledge
        most = 1.5 * guard.config.threshold + 5 * FINEST + rounded_rows(query, known.grid, known.rows.high)
        return (most + (0.0 if self.ledger.budget.neighbours == "replace" else known.rows.off)) / known.rows.estimate


class PracticalQuote:
    """Predict the price of questions: answer as if every purchase had succeeded, and add up the costs."""

    def __init__(self, engine: PracticalEngine) -> None:
        self._engine, self.price = engine, 0.0

    def hypothesis_answer(self, query: Linear) -> float:
        """Return the hypothesis' answer."""
        return self._engine.hypothesis_answer(query)

    @property
    def least_rows(self) -> float:
        """The smallest number of rows that the data may have."""
        return self._engine.least_rows

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Answer from the hypothesis; if a purchase would be needed, add its cost and state ``within`` as the bar."""
        value, error = self._engine.knowledge.free(query, within)
        if within is not None and not is_within(error, within):
            self.price += self._engine._purchases.price([self._engine._wanted_bar(query, within)])
            error = within
        return estimate(value, error)

    def ratio(self, numerator: Linear, denominator: Linear, within: float | None) -> tuple[Estimate, Estimate]:
        """Answer both queries; add the cost of the purchases that the ratio's bar would need."""
        wanted = [] if within is None else self._engine._wanted_bars_of_ratio(numerator, denominator, within)
        if wanted:
            self.price += self._engine._purchases.price(wanted)
        bars = {one.query.key: one.within for one in wanted}
        found = []
        for query in (numerator, denominator):
            value, error = self._engine.knowledge.free(query, None)
            found.append(estimate(value, bars.get(query.key, error)))
        return found[0], found[1]

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Answer a table; if a purchase would be needed, add its cost."""
        known, universe = self._engine.knowledge, self._engine.hypothesis.universe
        values, errors = known.table(table.attributes, within)
        if within is not None and not is_within(errors, within):
            spread = _spread(float(known.typical_cells(table.attributes).mean()))
            cell = self._engine._purchases.cell(varying_names(universe, table.attributes))
            self.price += self._engine._purchases.price([WantedBar(cell, within, spread, table=True)])
            errors = np.minimum(errors, within)
        return Estimate(values, errors, "hypothesis")

    def minimize(self, question: BoundMinimize, within: float | None) -> Estimate:
        """Answer a convex question; add the cost of the purchase that ``within`` would need."""
        estimate, cost = self._engine._convex.quote(question, within)
        self.price += cost
        return estimate


def _spread(typical: float) -> float:
    """Return the standard deviation of an error with this mean size; infinite if the mean size is unknown (NaN)."""
    return math.inf if math.isnan(typical) else math.sqrt(math.pi / 2) * typical


def build_practical_engine(
    data: DataSource,
    ledger: Ledger,
    noise: Noise,
    *,
    workload: Workload | Iterable[Query] | None,
    queries: int,
    beta: float,
    guard: float | None,
    reserve: float | None,
    everything: bool = False,
    certify: bool = True,
    trusted_losses: Collection[Custom] = (),
    model_cells: int = MODEL_CELLS,
    prior: BlockPrior | None = None,
    pay_for_hits: bool = False,
) -> PracticalEngine:
    """Open the practical engine: spend all but the reserve and the guard's share on a hypothesis for the workload.

    ``prior`` is the result of an earlier block's opening, from which this opening begins.
    """
    budget = ledger.budget
    if pay_for_hits:
        require_hits(budget)
    rows = float(data.rows) if budget.neighbours == "replace" else None
    wanted, declared = attribute_sets(data.universe, workload), declared_losses(data.universe, workload)
    planned = None if rows is None else plan_guard(budget, rows, queries, beta / 2, guard, pay_for_hits)
    if reserve is None:
        reserve = typical_reserve(budget, rows)
    if planned is not None and reserve + 2 * planned.share >= 1:  # the owner's reserve leaves nothing for a guard
        planned = None
    kept = (guard or 0.0) if planned is None else planned.share
    share = 1 - reserve - 2 * kept  # twice: as much again pays for the measurements that the guard triggers
    allowance = Allowance(ledger, share * budget.total)
    whole = allowance.left
    certifying = allowance.carve(CERTIFICATE[budget.currency] * whole if certify else 0.0)
    of_losses = allowance.carve(LOSSES[budget.currency] * whole if certify and declared else 0.0)
    with ledger.exclusively():
        state = ledger.snapshots.last_state()
        if state is None:
            # The certificate's noise is part of the planned share, unless the certificate would not be bought: a
            # planned share buys nothing else.
            beside = certifying.left
            if budget.pure or (beside > 0 and rows is not None and is_drowned(certifying, rows, (1 - OF_BARS) * beta)):
                beside = 0.0
            one_by_one = _is_charged_one_by_one(ledger)
            may_plan = not (pay_for_hits and kept > 0)  # no planned noise beside rounds of hits
            with_singles = _began_with_singles(ledger)
            fitting = prefit(
                data, noise, wanted, allowance, rows, model_cells, prior, beside, one_by_one, may_plan, with_singles,
                _recorded_times(ledger),
            )  # fmt: skip
            learned = fitting.run(everything=everything)
            estimate = learned.rows
            next_prior: BlockPrior | None = learned.as_prior()
            opening: dict[str, Any] | None = None
        else:
            learned = FittedModel.restore(data.universe, rows, state["learned"], prior)
            estimate = float(state["opened"]["rows"])
            before = state["opened"].get("learned")  # older snapshots, from before blocks existed, lack it
            begun = None if before is None else FittedModel.restore(data.universe, rows, before, prior)
            next_prior = None if begun is None else begun.as_prior()
            opening = before
        if rows is None and guard:  # n is private: a guard is bought only on request, and planned for the estimate of n
            planned = plan_guard(budget, estimate, queries, beta / 2, guard, pay_for_hits)
        doubt = beta if planned is None else beta / 2
        if of_losses.left > 0:  # half of β for measurements and certificate, half for the declared losses
            doubt /= 2
        if state is None:
            if ledger.opened_by_other_version:  # its certificate is of the hypothesis that it fitted
                certifying = certifying.carve(0.0)
            known = certify_knowledge(data, noise, learned, certifying, doubt, fitting.planned)
            losses = (
                certified_losses(data, noise, known, declared, of_losses, doubt, trusted_losses)
                if of_losses.left > 0 and not ledger.opened_by_other_version
                else CertifiedLosses()
            )
        else:
            known = restore_knowledge(data, learned, doubt, rows, state, prior)
            losses = CertifiedLosses.restore(declared, state["opened"]["losses"])
    if state is None:
        opening = learned.state()
    if state is not None:
        opened = state["opened"]
    elif not ledger.snapshots.keeps_state:
        opened = None
    else:
        opened = {"rows": estimate, "certified": None, "losses": losses.state(declared), "learned": opening}
        if known.certified is not None:
            opened |= {"certified": known.certified.state()}
    return PracticalEngine(
        data, ledger, noise, knowledge=known, guard=planned, trusted_losses=trusted_losses, losses=losses, state=state, opened=opened,
        opening=opening, next_prior=next_prior,
    )  # fmt: skip


def typical_reserve(budget: Budget, rows: float | None) -> float:
    """Return the default reserve: the share of the budget for a few accurate counts. Public.

    With few rows this is ``MOST_RESERVE``. A count with a bar of w rows that fails with probability β costs x/w² of ρ
    with Gaussian noise (σ²·2x = w²), where x = ln(2/β), and x/w of ε with Laplace noise.
    """
    if rows is None:
        return RESERVE_OF_UNKNOWN
    x, within = math.log(2 / RESERVED_DOUBT), RESERVED_WITHIN * rows
    each = x / within if budget.pure else x / within**2
    return min(max(RESERVED_COUNTS * each / budget.total, LEAST_RESERVE), MOST_RESERVE)


def prefit(
    data: DataSource,
    noise: Noise,
    workload: WorkloadSets,
    allowance: Allowance,
    rows: float | None,
    model_cells: int,
    prior: BlockPrior | None = None,
    beside: float = 0.0,
    one_by_one: bool = False,
    may_plan: bool = True,
    began_with_singles: bool = False,
    recorded_times: Mapping[Names, int] | None = None,
) -> Prefit:
    """Measure the wide attributes, merge their rare values, and return the prefit on the resulting groups."""
    merging, measurements = merging_of(data, noise, allowance)
    learned = FittedModel.nothing(data.universe, rows, merging, prior)
    for measurement in measurements:
        learned.add_values(measurement)
    on_groups = workload.on(merging.inner)
    return Prefit(
        merging.view(data),
        noise,
        on_groups,
        allowance,
        rows,
        learned,
        model_cells,
        beside,
        one_by_one,
        may_plan,
        began_with_singles,
        recorded_times,
    )


def _is_charged_one_by_one(ledger: Ledger) -> bool:
    """Return True if the ledger holds an overview of a version that charged each of its residuals by itself."""
    for entry in ledger.entries():
        if entry.why == "prefit: residuals":
            return False
        if entry.why == "prefit: residual" and entry.about.get("attributes"):
            return True
    return False


def _began_with_singles(ledger: Ledger) -> bool:
    """Return True if the ledger holds tables of an opening whose first ones were those of single attributes."""
    for entry in ledger.entries():
        if entry.why == "prefit: residuals":
            return False
        if entry.why == "prefit: marginal" and entry.about.get("attributes"):
            return True
    return False


def _recorded_times(ledger: Ledger) -> dict[Names, int]:
    """Return the multiples with which the ledger's first overview of several sets was drawn; none without one."""
    for entry in ledger.entries():
        if entry.why == "prefit: residuals":
            about = entry.about
            return {tuple(s): int(k) for s, k in zip(about["sets"], about["times"], strict=True)}
    return {}


def certify_knowledge(
    data: DataSource, noise: Noise, learned: FittedModel, allowance: Allowance, beta: float, planned: float
) -> FreeAnswers:
    """Return what was learned with bars and a certificate, which share β.

    Without a certificate the bars have all of β.
    """
    public = data.rows if allowance.budget.neighbours == "replace" else None
    if allowance.left > 0:
        known = FreeAnswers(learned, OF_BARS * beta, public)
        known.certified = buy_certificate(data, noise, known, allowance, (1 - OF_BARS) * beta, OF_BARS * beta, planned)
        if known.certified is not None:
            return known
    return FreeAnswers(learned, beta, public)


def restore_knowledge(
    data: DataSource,
    learned: FittedModel,
    beta: float,
    rows: float | None,
    state: dict[str, Any],
    prior: BlockPrior | None = None,
) -> FreeAnswers:
    """Restore the knowledge from a snapshot (``PracticalEngine.state``).

    The certificate is about the knowledge at the opening, so that is restored too.
    """
    public, record = None if rows is None else data.rows, state["opened"]["certified"]
    if record is None:
        return FreeAnswers(learned, beta, public, state["shares"])
    known = FreeAnswers(learned, OF_BARS * beta, public, state["shares"])
    before = FreeAnswers(
        FittedModel.restore(data.universe, rows, state["opened"]["learned"], prior), OF_BARS * beta, public
    )
    known.certified = CertifiedCounts.restore(before, record)
    return known


def declared_losses(universe: Universe, workload: Workload | Iterable[Query] | None) -> list[BoundMinimize]:
    """List the convex questions of a workload, in its order."""
    if workload is None or isinstance(workload, Workload):
        return []
    return bound_convex(workload, universe)


def attribute_sets(universe: Universe, workload: Workload | Iterable[Query] | None) -> WorkloadSets:
    """Return the attribute sets that a workload asks about, with their weights.

    The default is all sets of up to three attributes, weighted so that questions about one, two and three attributes
    are equally frequent.
    """
    if workload is None:
        return EverySmallSet(universe)
    chosen = workload.on(universe) if isinstance(workload, Workload) else list(workload)
    sets: dict[Names, float] = {}
    for query in chosen:
        for names, weight in bound_to(query, universe).weighted_sets(LARGEST):
            sets[names] = sets.get(names, 0.0) + weight
    return ListedSets(universe, sets)
