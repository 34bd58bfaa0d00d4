"""Measurements that are bought while the stream goes on: charged, drawn, learned; and learned again from their entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hedgerow._types import Names
from hedgerow.data import exact_counts as exact
from hedgerow.data.source import DataSource
from hedgerow.engines.practical.knowledge import LARGEST_NOISE, Knowledge
from hedgerow.engines.practical.measurement import Measurement
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Entry, Ledger, Receipt
from hedgerow.privacy.noise import Noise
from hedgerow.questions.linear import Linear, require_table

WHOLE_MARGINAL = 4  # a whole marginal is measured when it costs at most this much more than the query alone
ROUNDING = 2.0 ** -(exact.WEIGHT_BITS + 1)  # of a query that is no count, before it is counted
EVERYONE = Linear((), (), (), np.array(1.0), True)
TABLE, QUERY, NUMBER = "measured table", "measured query", "measured number"


class Purchases:
    """What a bar of ``within`` costs, and buying it."""

    def __init__(self, data: DataSource, ledger: Ledger, noise: Noise, knowledge: Knowledge) -> None:
        self.ledger, self._data, self._noise, self._known = ledger, data, noise, knowledge

    def buy(self, query: Linear, within: float) -> None:
        """A bar of ``within`` for a query: by its whole marginal if that costs little more, else by itself."""
        budget = self.ledger.budget
        self._buy_rows(within, self._event_for(query, within, alone=True))
        alone = self._event_for(query, within, alone=True)
        whole = self._event_for(query, within, alone=False)
        if budget.cost(whole) <= WHOLE_MARGINAL * budget.cost(alone):
            self.table(query.attributes, whole)
        else:
            self.query(query, alone)

    def buy_table(self, names: Names, within: float) -> None:
        """A bar of ``within`` for every cell of a table."""
        universe = self._data.universe
        cell = Linear.product(universe, {n: np.arange(universe[n].size) == 0 for n in names})
        self._buy_rows(within, self._event_for(cell, within, alone=False))
        self.table(names, self._event_for(cell, within, alone=False))

    def table(self, names: Names, event: Laplace | Gaussian) -> None:
        """Measure a whole marginal."""
        require_table(names, self._data.universe.sizes(names))  # before the charge
        receipt = self.ledger.charge(event, why=TABLE, about={"attributes": names})
        drawn = self._noise.add(self._data.marginal(names), receipt)
        self._known.learn(Measurement(names, np.asarray(drawn, dtype=float), event))

    def query(self, query: Linear, event: Laplace | Gaussian) -> None:
        """Measure one query, rounded to the grid."""
        require_table(query.attributes, self._data.universe.sizes(query.attributes))  # before the charge
        counted = exact.on_grid(self._data.universe, query)
        step = exact.step_of(query, self._known.grid)
        event = replace(event, grid=step)
        receipt = self.ledger.charge(event, why=QUERY, about={"query": query})
        value = self._noise.add(exact.counted(counted, self._data.marginal(counted.attributes), step), receipt)
        self._known.learn(_of_query(query, value, event))

    def number(self, event: Laplace | Gaussian) -> tuple[Receipt, float]:
        """Pay for a number that is no count: what it is drawn from, and how far its noise reaches."""
        receipt = self.ledger.charge(event, why=NUMBER)
        width = self._known.bars.number(event)
        self._known.bars.add_number()
        return receipt, width

    def resume(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            event = entry.event
            if entry.why == NUMBER:  # its share of β is used, whether or not it came out
                self._known.bars.add_number()
            elif entry.why in (TABLE, QUERY) and entry.is_complete and isinstance(event, Laplace | Gaussian):
                self._known.learn(self._measured(entry, event))

    def _measured(self, entry: Entry, event: Laplace | Gaussian) -> Measurement:
        """What the entry says was measured, if that can be: whoever could write into a ledger could write anything."""
        universe, (drawn,) = self._data.universe, entry.released
        query, names = entry.about.get("query"), tuple(entry.about.get("attributes", ()))
        if isinstance(query, Linear) and set(query.attributes) <= set(universe.names):
            if universe.sizes(query.attributes) == query.shape and np.ndim(drawn) == 0:
                return _of_query(query, drawn, event)
        elif set(names) <= set(universe.names) and np.shape(drawn) == universe.sizes(names):
            return Measurement(names, np.asarray(drawn, dtype=float), event)
        raise InvalidInput(
            f"A measurement in a ledger must be of the session's universe. Found another in entry {entry.number}. "
            "Open it with the ledger and the universe that it was written with."
        )

    def _buy_rows(self, within: float, event: Laplace | Gaussian) -> None:
        """Where n is private and known too badly for a bar of ``within``, buy it too: if what follows is affordable."""
        if self._known.rows.doubt <= within / 2:
            return
        budget = self.ledger.budget
        unit = _event(budget, 1.0, alone=True)
        scale = within / 3 * self._known.rows.estimate / self._known.bars.width(EVERYONE, unit, alone=False)
        counting = _event(budget, min(scale, LARGEST_NOISE), alone=True)
        if not self.ledger.affords(counting, event):
            raise BudgetExceeded(
                f"The budget must afford to measure the number of rows besides, at "
                f"{budget.cost(counting) + budget.cost(event):.4g} in all. Found {self.ledger.remaining:.4g} left. "
                "Ask for a looser error, or stop here."
            )
        self.table((), counting)

    def _event_for(self, query: Linear, within: float, *, alone: bool) -> Laplace | Gaussian:
        """The noise that gives the query a bar of ``within``: bars are proportional to its scale.

        n's interval and the rounding of a query that is no count take their part of it.
        """
        budget, rows, bars = self.ledger.budget, self._known.rows, self._known.bars
        unit = _event(budget, 1.0, alone=alone)
        rounded = self._known.grid / 2 / rows.low + ROUNDING if alone and not query.is_count else 0.0
        room = (1 - 1e-9) * max(within - rows.doubt - rounded, within / 4) * rows.low / (1 + rows.doubt)
        return _event(budget, min(room / bars.width(query, unit, alone=alone), LARGEST_NOISE), alone=alone)


def _of_query(query: Linear, value: float, event: Laplace | Gaussian) -> Measurement:
    rounding = 0.0 if query.is_count else ROUNDING
    return Measurement(query.attributes, np.asarray(value), event, query, rounding=rounding)


def _event(budget: Budget, scale: float, *, alone: bool) -> Laplace | Gaussian:
    """Noise of this scale on one count, or on a whole marginal."""
    if budget.pure:
        return Laplace(budget.linear() if alone else budget.marginal_l1(), scale)
    return Gaussian(budget.linear() if alone else budget.marginal_l2(), scale)
