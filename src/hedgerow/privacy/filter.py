"""The privacy filter: it admits or refuses each charge from public facts, before anything is drawn.

Papers: Feldman & Zrnic "Individual privacy accounting via a Rényi filter" (costs may be chosen adaptively, each fixed
from public facts before its draw); Whitehouse et al. "Fully adaptive composition in differential privacy", Theorem 1
(for events that have a δ of their own).

A filter only adds up. It knows no receipts, no lock and no storage. Every filter must pass
tests/privacy/test_filters.py.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

from hedgerow import errors
from hedgerow.privacy import conversion
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Event, Planned
from hedgerow.privacy.log import Entry
from hedgerow.privacy.renyi_events import RenyiEvent

FIT = Fraction(1, 10**12)
"""Tolerance of the filter, as a share of the total: costs carry rounding errors, and an exact fit must pass."""


def exact_total(amounts: Iterable[float]) -> Fraction:
    """Return the exact sum. Equal amounts are counted first, because a fit may charge for 10⁴ equal events."""
    return sum((count * Fraction(amount) for amount, count in Counter(amounts).items()), Fraction(0))


@final
@dataclass(frozen=True)
class Parts:
    """The amounts charged so far, at their prices: to the share of planned noise, and to the rest of the budget.

    ``share`` is None as long as no planned noise was charged.
    """

    share: float | None = None
    planned: Fraction = Fraction(0)
    others: Fraction = Fraction(0)

    @property
    def spent(self) -> Fraction:
        """The sum of both parts."""
        return self.planned + self.others

    def after(self, events: Sequence[Event], costs: Sequence[float]) -> Parts | None:
        """Return the amounts with these events charged too.

        Returns None where planned noise comes too late, or with another share than before.
        """
        shares = {event.share for event in events if isinstance(event, Planned)}
        if shares and self.share is None and self.spent > 0:
            return None  # the share could depend on what was released
        known = shares if self.share is None else shares | {self.share}
        if len(known) > 1:
            return None
        planned = exact_total(c for e, c in zip(events, costs, strict=True) if isinstance(e, Planned))
        every = exact_total(costs)
        return Parts(next(iter(known), None), self.planned + planned, self.others + every - planned)

    def subtract_from(self, total: Fraction) -> tuple[Fraction, Fraction]:
        """Return the rest of such a total, for planned noise and for everything else."""
        share = Fraction(0 if self.share is None else self.share) * total
        return share - self.planned, total - share - self.others


@final
@dataclass(frozen=True)
class Standing:
    """The exact spending of a ledger at some point, from which a ledger can resume without reading its first entries.

    ``spent`` is the total cost, and ``planned`` the part of it for planned noise. ``failing`` is the sum of the
    events' own δ. ``counts`` is the number of times each event was charged.
    """

    spent: Fraction = Fraction(0)
    failing: Fraction = Fraction(0)
    counts: Mapping[Event, int] = field(default_factory=dict)
    planned: Fraction = Fraction(0)  # the part of ``spent`` that went to planned noise


class Filter:
    """Adaptively chosen events pass as long as the sum of their costs stays within the budget.

    Part of δ, the ``slack``, can be set aside at the start for events that have a δ of their own. The rest of δ is
    converted to ρ. Both sums are filtered.

    Planned noise has a share of the total. The first planned event declares that share before anything else is charged.
    Planned noise then passes within that share, and all other events within the rest (see ``planned``).
    """

    def __init__(self, budget: Budget, slack: float = 0.0, standing: Standing | None = None) -> None:
        """Make a filter that has spent ``standing``."""
        if type(budget) is not Budget:  # a subclass could set prices of its own
            raise errors.InvalidInput(
                f"budget must be a Budget. Found {type(budget).__name__}. Make one: Budget(1.0, 1e-6)."
            )
        self._budget = budget
        self._total = Fraction(budget.total if slack == 0 else budget.rho(slack))
        so_far = standing or Standing()
        self._slack, self._failing = Fraction(slack), so_far.failing
        self._counts: dict[Event, int] = dict(so_far.counts)
        self._charged = _parts_of(so_far)  # exact fractions, so that many small costs do not vanish in rounding

    @property
    def budget(self) -> Budget:
        """The budget that the filter enforces."""
        return self._budget

    @property
    def spent(self) -> float:
        """The sum of all costs so far, in the budget's currency."""
        return float(self._charged.spent)

    @property
    def remaining(self) -> float:
        """The amount left in the budget's currency, for all events except planned noise."""
        return max(0.0, float(self._charged.subtract_from(self._total)[1]))

    @property
    def limit(self) -> str:
        """The name of what ``remaining`` is left of, for messages."""
        return "the budget"

    @property
    def slack(self) -> float:
        """The part of the reserved δ that is left."""
        return max(0.0, float(self._slack - self._failing))

    @property
    def set_aside(self) -> float:
        """The reserved δ, spent or not: the ``slack`` that the filter was made with."""
        return float(self._slack)

    @property
    def standing(self) -> Standing:
        """The exact spending so far."""
        return Standing(self._charged.spent, self._failing, dict(self._counts), self._charged.planned)

    def affords(self, *planned: Event) -> bool:
        """Return True if all these events together would pass the filter."""
        try:
            self.admit(planned, [self.budget.cost(event) for event in planned])
        except errors.BudgetExceeded:
            return False
        return True

    def admit(self, planned: tuple[Event, ...], costs: Sequence[float]) -> float:
        """Return the cost of the events for the receipt, or refuse them, from public facts alone. Nothing is spent."""
        for event, cost in zip(planned, costs, strict=True):
            if not math.isfinite(cost):
                raise errors.BudgetExceeded(
                    f"cost must be finite in {self.budget.currency}. Found infinity for {type(event).__name__} noise, "
                    f"which a budget with delta = {self.budget.delta:g} cannot pay for. Use Laplace noise, or give a "
                    "delta above 0."
                )
        parts = self._charged.after(planned, costs)
        if parts is None or (parts.share is not None and self._slack > 0):
            raise errors.BudgetExceeded(
                "Planned noise must have one share, declared before anything else is charged to an account without "
                "slack. Found another share, an earlier charge or slack. Charge the noise as it is."
            )
        if any(isinstance(e, RenyiEvent) for e in planned) and (parts.share is not None or self._slack > 0):
            raise errors.BudgetExceeded(
                "An event that is priced at one Rényi order must be charged to an account without planned noise and "
                f"without slack. Found {'slack' if parts.share is None else 'planned noise'}. Use another event, or an "
                "account of its own."
            )
        if not self._fits(parts):
            if parts.planned > self._charged.planned:
                raise errors.BudgetExceeded(
                    f"cost of planned noise must be at most its share of {self.budget.currency} = "
                    f"{float(self._total):.4g}, {parts.share}, and that of all else the rest. Found "
                    f"{float(parts.planned):.4g} and {float(parts.others):.4g} with this charge. Plan less, or charge "
                    "the noise as it is."
                )
            raise errors.BudgetExceeded(
                f"cost must be at most {self.budget.currency} = {self.remaining:.4g} (what is left of "
                f"{float(self._total):.4g}). Found {math.fsum(costs):.4g}. Ask for a looser error, or stop here."
            )
        failing = exact_total(event.delta for event in planned)
        if self._failing + failing > self._slack * (1 + FIT):
            raise errors.BudgetExceeded(
                f"delta must be at most {float(self._slack - self._failing):.4g} (what is left of the slack). "
                f"Found {float(failing):.4g}. Open the accountant with a larger slack."
            )
        return math.fsum(costs)

    def count(self, entry: Entry) -> None:
        """Add the events of an admitted entry to the sums."""
        parts = self._charged.after(entry.events, [self.budget.cost(event) for event in entry.events])
        if parts is None:
            raise errors.InvalidInput(
                "Planned noise must be the first that a ledger was charged for, with one share. Found an earlier entry "
                f"with {entry.events!r}. Pass all entries, in their order."
            )
        self._charged = parts
        self._failing += exact_total(event.delta for event in entry.events)
        for event in entry.events:
            self._counts[event] = self._counts.get(event, 0) + 1

    def count_earlier(self, entry: Entry) -> None:
        """Add the events of an entry that is recorded already, even beyond the budget: they were drawn."""
        if not all(map(math.isfinite, map(self.budget.cost, entry.events))):
            raise errors.InvalidInput(
                f"An earlier entry must have a cost in {self.budget.currency}. Found {entry.events!r}. Resume the "
                "ledger with its own budget."
            )
        self.count(entry)

    def require_slack(self) -> None:
        """Refuse a slack that is smaller than what the earlier entries took of it."""
        if self._failing > self._slack * (1 + FIT):  # else the same δ would also be converted to ρ
            raise errors.InvalidInput(
                f"slack must be at least the delta of the earlier entries, {float(self._failing):.4g}. Found "
                f"{self.set_aside!r}. Pass the slack that the ledger had."
            )

    def would_fit(self, charges: Iterable[Sequence[Event]]) -> bool:
        """Return True if these charges, by themselves and in this order, fit the total."""
        parts: Parts | None = Parts()
        for events in charges:
            parts = parts and parts.after(events, [self.budget.cost(event) for event in events])
        return self._fits(parts)

    def _fits(self, parts: Parts | None) -> bool:
        """Return True if planned noise is within its share and all else within the rest."""
        return parts is not None and min(parts.subtract_from(self._total)) >= -self._total * FIT

    @property
    def spent_epsilon(self) -> float:
        """The ε, at the budget's δ, of the counted events: the smallest of three bounds.

        The bounds are the sum of ε; the sum of ρ, converted together with planned noise; and the sum of Rényi
        divergences, as for `dp_event()`. The last two read the events as a list that was fixed in advance. The promise
        to the people in the data is the budget, not this number.
        """
        if not self._counts:
            return 0.0
        basic = math.fsum(event.epsilon * count for event, count in list(self._counts.items()))
        delta = self.budget.delta - float(self._failing)
        if any(isinstance(event, RenyiEvent) for event in list(self._counts)):  # their costs are no ρ
            return min(conversion.renyi_epsilon(dict(self._counts), delta), self.budget.epsilon)
        noise = math.fsum(e.continuous_rho * count for e, count in list(self._counts.items()) if isinstance(e, Planned))
        found = self.budget.epsilon_of_rows(basic, float(self._charged.others), delta, planned=noise)
        if self.budget.pure or self.budget.rows_per_unit > 1:  # the Rényi bound is for one row only
            return found
        return min(found, conversion.renyi_epsilon(dict(self._counts), delta))

    def dp_event(self) -> Any:
        """Return the counted events in dp-accounting's form (see ``conversion.dp_events``)."""
        return conversion.dp_events(dict(self._counts))


def _parts_of(standing: Standing) -> Parts:
    """Return what was charged to planned noise and to all else."""
    share = next((event.share for event in standing.counts if isinstance(event, Planned)), None)
    return Parts(share, standing.planned, standing.spent - standing.planned)
