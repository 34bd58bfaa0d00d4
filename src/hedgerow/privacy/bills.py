"""Bills of questions: which entries each question paid for, and how much it cost."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hedgerow.errors import BudgetExceeded

FIT = 1e-9  # relative error of a price that was computed before


@dataclass
class Bill:
    """The charges of one question: the cost of each of its entries, by entry number, in the budget's currency.

    ``most`` is the largest sum that they may have.
    """

    charges: dict[int, float] = field(default_factory=dict)
    most: float = math.inf

    @property
    def cost(self) -> float:
        """The sum of the charges."""
        return math.fsum(self.charges.values())


class OpenBills:
    """The bills of the questions that are being asked now, the innermost question last."""

    def __init__(self) -> None:
        self._open: list[tuple[Bill, Any]] = []
        self.total = 0.0
        """The sum of all charges of this process, whether their questions were answered or refused."""

    @contextlib.contextmanager
    def open_bill(self, question: Any, most: float = math.inf) -> Iterator[Bill]:
        """Open a bill. It collects all charges until the context ends."""
        bill = Bill(most=most)
        self._open.append((bill, question))
        try:
            yield bill
        finally:
            self._open.pop()

    @property
    def question(self) -> Any:
        """The question that is being asked now, or None."""
        return self._open[-1][1] if self._open else None

    @property
    def has_charges(self) -> bool:
        """True if a question that is being asked now was charged for."""
        return any(bill.charges for bill, _ in self._open)

    def require_room(self, cost: float) -> None:
        """Refuse a charge that would make an open bill exceed its limit."""
        for bill, _ in self._open:
            if bill.cost + cost > bill.most * (1 + FIT):
                raise BudgetExceeded(
                    f"A question must cost at most {bill.most:.4g}, as was agreed. Found that it costs "
                    f"{bill.cost + cost:.4g} by now. Ask for its price again."
                )

    def add(self, number: int, cost: float) -> None:
        """Put an entry on the bill of every question that is being asked now."""
        self.total += cost
        for bill, _ in self._open:
            bill.charges[number] = cost
