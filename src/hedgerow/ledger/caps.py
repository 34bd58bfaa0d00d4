"""Caps: the shares of the budget that analysts and projects may spend."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, final

from hedgerow.errors import BudgetExceeded
from hedgerow.ledger import replay
from hedgerow.ledger.chain import Line
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Event, Planned
from hedgerow.privacy.filter import FIT, Filter, Standing
from hedgerow.privacy.log import Entry
from hedgerow.privacy.renyi_events import RenyiEvent

ALL = "*"  # the name of the cap of all analysts together
EVERYBODY = ""  # the analyst on whose behalf a session is opened: what is learned then serves everybody


@final
class Author:
    """The analyst on whose behalf charges are made: everybody, while a session is being opened."""

    def __init__(self, name: str, is_opening: bool) -> None:
        self.name, self.is_opening = name, is_opening

    @property
    def who(self) -> str:
        """The name of the analyst, or an empty text for everybody."""
        return EVERYBODY if self.is_opening else self.name


@final
class Caps:
    """The caps of a ledger, and what each analyst has spent.

    A cap holds in each block separately, because nobody is in two blocks. The cap of a project holds for all of its
    analysts together, and the cap named ``*`` for all analysts of the table.
    """

    def __init__(self, budget: Budget, author: Author, amounts: dict[str, float], by: dict[str, Fraction]) -> None:
        self._budget, self._author = budget, author
        self.amounts, self.by = amounts, by

    def count(self, who: str, entry: Entry) -> None:
        """Add a recorded charge to what an analyst has spent."""
        self.by[who] = self.by.get(who, Fraction(0)) + of_a_cap(self._budget, entry)

    def read(self, line: Line) -> None:
        """Take over the cap in a line."""
        self.amounts.update(cap_in(line, self._budget))

    @property
    def tightest(self) -> tuple[float, str]:
        """The rest of the tightest cap that the author is under and its name, or infinity without a cap."""
        rests = ((float(max(Fraction(0), cap - spent)), name) for name, cap, spent in self._above())
        return min(rests, default=(float("inf"), EVERYBODY))

    def _above(self) -> list[tuple[str, Fraction, Fraction]]:
        """Return each cap that the author is under: its name, its amount, and how much of it is spent."""
        parts = self._author.who.split("/")
        found = []
        if ALL in self.amounts and self._author.who != EVERYBODY:
            all_together = (spent for who, spent in self.by.items() if who != EVERYBODY)
            found.append((ALL, Fraction(self.amounts[ALL]), sum(all_together, Fraction(0))))
        for name in ("/".join(parts[: i + 1]) for i in range(len(parts))):
            if name in self.amounts:
                inside = (spent for who, spent in self.by.items() if who == name or who.startswith(f"{name}/"))
                found.append((name, Fraction(self.amounts[name]), sum(inside, Fraction(0))))
        return found

    def require(self, planned: Sequence[Event], costs: Sequence[float], cost: float) -> None:
        """Refuse events beyond a cap."""
        more = sum(map(Fraction, costs), Fraction(0))
        for name, cap, spent in self._above():
            # Prices of planned noise, and of what is priced at one Rényi order, are for the whole budget. A cap is an ε
            # by itself, which converts at another order.
            if any(isinstance(event, Planned) for event in planned):
                raise BudgetExceeded(
                    f"Planned noise must be charged on everybody's behalf. Found it under the cap of {name!r}. Charge "
                    "the noise as it is."
                )
            if any(isinstance(event, RenyiEvent) for event in planned):
                raise BudgetExceeded(
                    "An event that is priced at one Rényi order must be charged on everybody's behalf. Found it under "
                    f"the cap of {name!r}. Use another event."
                )
            if spent + more > cap * (1 + FIT):
                raise BudgetExceeded(
                    f"cost must be at most {self._budget.currency} = {max(0.0, float(cap - spent)):.4g} (what is left "
                    f"of {name!r}'s {float(cap):.4g}). Found {cost:.4g}. Ask for a looser error, or have the cap "
                    "raised."
                )


@final
class CappedFilter(Filter):
    """A filter whose events must also pass the caps of the analyst who asks."""

    def __init__(self, budget: Budget, slack: float, standing: Standing, caps: Caps) -> None:
        super().__init__(budget, slack, standing)
        self._caps = caps

    @property
    def remaining(self) -> float:
        """The amount left: the least of what is left of the budget and of the caps that the session is under."""
        return min(super().remaining, self._caps.tightest[0])

    @property
    def limit(self) -> str:
        """The budget, or the tightest cap if less is left of it."""
        left, name = self._caps.tightest
        return f"the cap of {name!r}" if left < super().remaining else super().limit

    def admit(self, planned: tuple[Event, ...], costs: Sequence[float]) -> float:
        """Return the cost of the events, or refuse them, also by the caps."""
        cost = super().admit(planned, costs)
        self._caps.require(planned, costs, cost)
        return cost


def of_a_cap(budget: Budget, entry: Entry) -> Fraction:
    """Return how much an entry takes of a cap.

    A cap is an ε by itself. The price of planned noise is for the whole budget, so under a cap planned noise counts
    with its full ρ. What is priced at the budget's Rényi order may have no bound at a cap's, so it takes all of a cap
    that is set later.
    """
    return sum((Fraction(_largest_cost(budget, event)) for event in entry.events), Fraction(0))


def _largest_cost(budget: Budget, event: Event) -> float:
    """Return what an event costs under any cap."""
    if isinstance(event, RenyiEvent):
        return budget.total
    return event.continuous_rho if isinstance(event, Planned) else budget.cost(event)


def cap_in(line: Line, budget: Budget) -> dict[str, float]:
    """Return the name and amount of the cap in a line.

    The cap is an ε, and each block converts it by its own budget.
    """
    record: dict[str, Any] = replay.record_in(line, who=str, epsilon=(int, float))
    capped = dataclasses.replace(budget, epsilon=min(float(record["epsilon"]), budget.epsilon))
    return {str(record["who"]): capped.total}
