"""Buy measurements during the stream: charge, draw and learn them; and relearn them from ledger entries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hedgerow._numbers import few_digits
from hedgerow._types import Names
from hedgerow.data import counting as exact
from hedgerow.data.source import DataSource
from hedgerow.engine.practical.free_answers import LARGEST_NOISE, FreeAnswers
from hedgerow.engine.practical.measurement import Measurement
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Entry, Ledger, Receipt
from hedgerow.privacy.noise import Noise
from hedgerow.query.linear import Linear, as_linear, require_table

WAY = 1.5  # a bar has room for this many standard deviations between the measurement and the combined answer
WHOLE_MARGINAL = 4  # a whole marginal is measured if it costs at most this many times as much as the query alone
ROUNDING = 2.0 ** -(exact.WEIGHT_BITS + 1)  # rounding of the weights of a query that is not a count
EVERYONE = Linear((), (), (), np.array(1.0), True)  # the query that counts every row
TABLE, QUERY, NUMBER = "measured table", "measured query", "measured number"  # reasons, as the ledger stores them


@dataclass(frozen=True)
class WantedBar:
    """A bar of ``within`` for a query, or with ``table`` for every cell of the table on its attributes.

    ``spread`` is the standard deviation of the error of the answer known already, as a fraction; infinite if unknown.
    """

    query: Linear
    within: float
    spread: float = math.inf
    table: bool = False


@dataclass(frozen=True)
class Purchase:
    """One planned measurement: a whole table, n itself (a table on no attributes), or a query alone."""

    event: Laplace | Gaussian
    names: Names = ()
    query: Linear | None = None


class Purchases:
    """Price and buy the measurements that give a bar of ``within``."""

    def __init__(self, data: DataSource, ledger: Ledger, noise: Noise, knowledge: FreeAnswers) -> None:
        self.ledger, self._data, self._noise, self._known = ledger, data, noise, knowledge

    def cell(self, names: Names) -> Linear:
        """Return the query for the first cell of the table on ``names``; all cells have the same price."""
        universe = self._data.universe
        return Linear.product(universe, {n: np.arange(universe[n].size) == 0 for n in names})

    def buy(self, *wanted: WantedBar) -> None:
        """Buy all these bars, or refuse at no cost with the narrowest bar that could be bought."""
        plan = self.plan(wanted)
        for purchase in plan:
            if purchase.query is None:
                require_table(purchase.names, self._data.universe.sizes(purchase.names))
            else:
                require_table(purchase.query.attributes, purchase.query.shape)
        if not self.ledger.affords(*(purchase.event for purchase in plan)):
            price, ledger = self.price(wanted), self.ledger
            raise BudgetExceeded(
                f"The price of the answer must be at most {ledger.remaining:.4g} {ledger.budget.currency}, what is "
                f"left of {ledger.limit}. Found {price:.4g} ({few_digits(100 * price / ledger.budget.total, 3)} % of "
                f"the whole budget); nothing was charged. {self._instead(wanted)}"
            )
        for purchase in plan:
            if purchase.query is None:
                self.table(purchase.names, purchase.event)
            else:
                self.query(purchase.query, purchase.event)

    def price(self, wanted: Sequence[WantedBar]) -> float:
        """Return the cost of these bars in the budget's currency. Public, and equal to what a purchase is charged."""
        return math.fsum(self.ledger.budget.cost(purchase.event) for purchase in self.plan(wanted))

    def plan(self, wanted: Sequence[WantedBar]) -> list[Purchase]:
        """Plan the measurements for these bars: whole tables where they cost little more and can be paid for."""
        for tables, fine in ((True, True), (False, True), (True, False)):
            plan = self._plan(wanted, tables=tables, fine=fine)
            if self.ledger.affords(*(purchase.event for purchase in plan)):
                return plan
        return self._plan(wanted, tables=False, fine=False)

    def _plan(self, wanted: Sequence[WantedBar], *, tables: bool, fine: bool) -> list[Purchase]:
        """Plan the measurements, with or without whole tables.

        With ``fine`` the noise is at most as large as the known answer's error, because a noisier measurement would
        teach little.
        """
        budget, rows = self.ledger.budget, self._known.rows
        plan: list[Purchase] = []
        least = min(one.within for one in wanted)
        doubt = rows.doubt
        if doubt > least / 2:  # n is private and known too inaccurately for such a bar: measure it first
            unit = _event(budget, 1.0, alone=True)
            scale = least / 3 * rows.low / self._known.bars.width(EVERYONE, unit, alone=False)
            plan.append(Purchase(_event(budget, min(scale, LARGEST_NOISE), alone=True)))
            doubt = least / 3
        for one in wanted:
            whole = self._event_for(one, doubt, len(plan), alone=False, fine=fine)
            if one.table:
                plan.append(Purchase(whole, one.query.attributes))
                continue
            alone = self._event_for(one, doubt, len(plan), alone=True, fine=fine)
            if tables and budget.cost(whole) <= WHOLE_MARGINAL * budget.cost(alone):
                plan.append(Purchase(whole, one.query.attributes))
            else:
                plan.append(Purchase(alone, query=one.query))
        return plan

    def _instead(self, wanted: Sequence[WantedBar]) -> str:
        """Return advice that names the narrowest bar that can be bought."""
        low, high = 1.0, 1.0 / max(one.within for one in wanted)
        if not self._pays(wanted, high):
            return "What is left buys no bar narrower than the free one: stop here."
        for _ in range(30):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self._pays(wanted, middle) else (middle, high)
        return f"Ask for a bar {high * 1.0001:.4g} times as wide, or stop here."

    def _pays(self, wanted: Sequence[WantedBar], factor: float) -> bool:
        """Return True if the budget covers these bars made wider by ``factor``."""
        wider = [replace(one, within=factor * one.within) for one in wanted]
        return self.ledger.affords(*(purchase.event for purchase in self._plan(wider, tables=False, fine=False)))

    def table(self, names: Names, event: Laplace | Gaussian) -> None:
        """Measure a whole marginal."""
        require_table(names, self._data.universe.sizes(names))  # refuse a table that is too large before the charge
        receipt = self.ledger.charge(event, why=TABLE, about={"attributes": names})
        drawn = self._noise.add(self._data.marginal(names), receipt)
        self._known.learn(Measurement(names, np.asarray(drawn, dtype=float), event))

    def query(self, query: Linear, event: Laplace | Gaussian) -> None:
        """Measure one query, rounded to the grid."""
        require_table(query.attributes, self._data.universe.sizes(query.attributes))  # refuse before the charge
        counted = exact.on_grid(self._data.universe, query)
        step = exact.step_of(query, self._known.grid)
        event = replace(event, grid=step)
        receipt = self.ledger.charge(event, why=QUERY, about={"query": query})
        value = self._noise.add(exact.exact_count(counted, self._data.marginal(counted.attributes), step), receipt)
        self._known.learn(_of_query(query, value, event))

    def number(self, event: Laplace | Gaussian) -> tuple[Receipt, float]:
        """Charge for a number that is not a count; return the receipt to draw it from and the reach of its noise."""
        receipt = self.ledger.charge(event, why=NUMBER)
        width = self._known.bars.number(event)
        self._known.bars.add_number()
        return receipt, width

    def resume(self, entries: Sequence[Entry]) -> None:
        """Relearn the measurements that these entries record."""
        for entry in entries:
            event = entry.event
            if entry.why == NUMBER:  # its share of β is used up, even if the value was never released
                self._known.bars.add_number()
            elif entry.why in (TABLE, QUERY) and entry.is_complete and isinstance(event, Laplace | Gaussian):
                self._known.learn(self._read_measurement(entry, event))

    def _read_measurement(self, entry: Entry, event: Laplace | Gaussian) -> Measurement:
        """Rebuild the measurement of an entry, and refuse one that does not fit the universe.

        The check is needed because anyone who can write to a ledger can write anything into it.
        """
        universe, (drawn,) = self._data.universe, entry.released
        query, names = as_linear(entry.about.get("query")), tuple(entry.about.get("attributes", ()))
        if query is not None and set(query.attributes) <= set(universe.names):
            if universe.sizes(query.attributes) == query.shape and np.ndim(drawn) == 0:
                return _of_query(query, drawn, event)
        elif set(names) <= set(universe.names) and np.shape(drawn) == universe.sizes(names):
            return Measurement(names, np.asarray(drawn, dtype=float), event)
        raise InvalidInput(
            "Every measurement in a ledger must fit the session's universe. "
            f"Found one in entry {entry.number} that does not. Open the ledger with the universe it was written with."
        )

    def _event_for(self, wanted: WantedBar, doubt: float, after: int, *, alone: bool, fine: bool) -> Laplace | Gaussian:
        """Return the noise that gives the combined answer a bar of ``within``.

        Bars are proportional to the noise scale. The interval of n takes a part of ``within``, and so does the
        rounding of a query that is not a count. So does the step from the measurement to the combined answer: with
        noise of deviation s and a known answer of deviation τ, their mean by precision lies s²/(s² + τ²) of their
        distance away from the measurement, and that distance has deviation √(s² + τ²): a step of deviation s²/√(s² +
        τ²).
        """
        budget, rows, bars, query = self.ledger.budget, self._known.rows, self._known.bars, wanted.query
        unit = _event(budget, 1.0, alone=alone)
        rounded = self._known.grid / 2 / rows.low + ROUNDING if alone and not query.is_count else 0.0
        left = max(wanted.within - doubt - rounded, wanted.within / 4)
        room = (1 - 1e-9) * left * rows.low / (1 + doubt)
        width = bars.width(query, unit, alone=alone, after=after)
        most = min(room / width, LARGEST_NOISE)
        if math.isfinite(wanted.spread):
            deviation = math.sqrt(_variance(unit)) * (1.0 if alone else _norm(query))
            τ = wanted.spread * rows.estimate
            low, high = 0.0, most
            for _ in range(50):
                scale = (low + high) / 2
                s = scale * deviation
                fits = scale * width + WAY * s * s / math.hypot(s, τ, 1e-300) <= room
                low, high = (scale, high) if fits else (low, scale)
            most = min(low, τ / deviation) if fine and τ > 0 else low
        return _event(budget, most, alone=alone)


def _of_query(query: Linear, value: float, event: Laplace | Gaussian) -> Measurement:
    """Build the measurement of a single query."""
    rounding = 0.0 if query.is_count else ROUNDING
    return Measurement(query.attributes, np.asarray(value), event, query, rounding=rounding)


def _variance(event: Laplace | Gaussian) -> float:
    """Return the variance of the event's noise."""
    return event.sigma**2 if isinstance(event, Gaussian) else 2 * event.scale**2


def _norm(query: Linear) -> float:
    """Return ‖q − mean of q‖₂ over the cells of its attributes."""
    return float(np.linalg.norm(query.table - query.table.mean())) if query.attributes else 1.0


def _event(budget: Budget, scale: float, *, alone: bool) -> Laplace | Gaussian:
    """Return noise of this scale on one count, or on a whole marginal."""
    if not scale > 0:
        raise InvalidInput(
            "within must be at least the smallest error that noise on a grid can have. Found a smaller one. Ask for "
            "a wider bar."
        )
    if budget.pure:
        return Laplace(budget.linear() if alone else budget.marginal_l1(), scale)
    distance = budget.linear() if alone else budget.marginal_l2()
    if not math.isfinite(distance / scale * (distance / scale)):  # nor is its cost
        raise InvalidInput(
            "within must be at least the smallest error that noise on a grid can have. Found a smaller one. Ask for "
            "a wider bar."
        )
    return Gaussian(distance, scale)
