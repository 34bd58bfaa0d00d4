"""Receipts and bills: nothing is charged that a filter refuses, and nothing is drawn that was not charged.

    charge   the filter admits the events, or refuses them all and nothing is spent
             the filter counts them
             the log makes the entry durable
             only then is there a receipt
    draw     each event of the receipt once, in the order charged, in the process that charged it
    record   the log makes the value durable, and only then does the draw return it

Whatever is interrupted in between, too much is counted and never too little. ``noise`` accepts nothing but receipts,
and only a ``Cashier`` issues them.

A ``Bill`` lists the entries that a question paid for, and how much it cost.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, cast, final

import numpy as np

from hedgerow import errors
from hedgerow.errors import BudgetExceeded
from hedgerow.privacy.events import Event
from hedgerow.privacy.filter import Filter
from hedgerow.privacy.log import Entry, Log
from hedgerow.privacy.process import NotCopyable, ProcessGuard
from hedgerow.privacy.replay import Replay

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


Drawn = TypeVar("Drawn")

_issued = object()  # the token by which a cashier proves that it made a receipt


class Recorder(Protocol):
    """The ledger of a receipt, which records what is drawn against it."""

    def record(self, receipt: Receipt, released: Any, private: bool = True) -> None:
        """Record a released value, durably."""
        ...

    def mark_guard_used(self) -> None:
        """Note that an open guard round was compared."""
        ...


@final
class Receipt(NotCopyable):
    """Proof that events were paid for. Each event may be drawn once, in order. Only a ledger makes receipts.

    Drawn values are recorded in the ledger. Where the ledger already has the values, because a session was resumed, the
    receipt returns the recorded values and nothing is drawn. A receipt cannot be copied, pickled or taken to another
    process.
    """

    __slots__ = ("_home", "_keeps", "_ledger", "_read", "_undrawn", "cost", "events", "number")

    def __init__(self, issued: object, ledger: Recorder, entry: Entry) -> None:
        if issued is not _issued:
            raise errors.InvalidInput("A receipt must come from a ledger. Found another maker. Charge the events.")
        self.number, self.events, self.cost = entry.number, entry.events, entry.cost
        self._home, self._ledger = ProcessGuard(), ledger
        self._undrawn: Iterator[Event] = (part for event in entry.events for part in event.draws)
        self._read, self._keeps = iter(entry.released), entry.kept

    def redeem(self, *kinds: type[Event]) -> Event:
        """Return the next event that was paid for and not drawn. The event is used up, even if the draw fails."""
        self._home.require("A receipt", "Draw there, and pass on what was released.")
        event = next(self._undrawn, None)
        if event is None:
            raise errors.InvalidInput(
                "A receipt must be drawn from once per event that it paid for. Found one draw more. Charge the event "
                "first."
            )
        if not isinstance(event, kinds):
            raise errors.InvalidInput(
                f"event must be {' or '.join(kind.__name__ for kind in kinds)}. Found {type(event).__name__}, which is "
                "next on the receipt. Draw what was charged, in that order."
            )
        return event

    def released(self, draw: Callable[[], Drawn], private: bool) -> Drawn:
        """Return the recorded value if there is one. Otherwise draw, record and return the value."""
        for earlier in self._read:
            return cast(Drawn, earlier.copy() if isinstance(earlier, np.ndarray) else earlier)
        drawn = draw()
        if self._keeps:
            self._ledger.record(self, drawn, private)
        return drawn

    def mark_guard_used(self) -> None:
        """Tell the ledger that a guard round was compared (see ``AnswerLog.mark_guard_used``)."""
        self._ledger.mark_guard_used()

    def __repr__(self) -> str:
        return (
            f"Receipt({self.number}: {', '.join(type(event).__name__ for event in self.events)}, cost {self.cost:.4g})"
        )


@final
class Cashier(NotCopyable):
    """Take charges through the filter into the log, and issue the receipts. The ledger's lock is held meanwhile."""

    def __init__(self, filter: Filter, log: Log, replay: Replay) -> None:
        self._filter, self._log, self._replay = filter, log, replay
        self._charging = threading.Lock()

    def costs(self, planned: tuple[Event, ...]) -> list[float]:
        """Return the price of each event. Refuse a charge for nothing, and anything that is not an event."""
        if not planned:
            raise errors.InvalidInput("A charge must be for at least one event. Found none. Say what will be drawn.")
        return [self._filter.budget.cost(event) for event in planned]

    def charge(
        self,
        ledger: Recorder,
        planned: tuple[Event, ...],
        costs: Sequence[float],
        why: str,
        about: Mapping[str, Any],
        asked: Any,
        keep: bool,
    ) -> Receipt:
        """Charge all the events or none, and return the receipt of ``ledger`` from which to draw them."""
        entry = self._replay.match(planned, why, about)
        if entry is None:
            self._log.require_ready()
            cost = self._filter.admit(planned, costs)
            number = len(self._log.entries)
            entry = Entry(number, planned, cost, why, MappingProxyType(dict(about)), asked, keep)
            self._filter.count(entry)  # an interrupt after this line counts too much, never too little
            self._log.append(entry)
        return Receipt(_issued, ledger, entry)

    def record(self, receipt: Receipt, released: Any, private: bool) -> None:
        """Record a value that came out of the receipt's draws."""
        entries = self._log.entries
        entry = entries[receipt.number] if receipt.number < len(entries) else None
        if entry is None or entry.events is not receipt.events or len(entry.released) >= entry.releases:
            raise errors.InvalidInput(
                "A release must be recorded once, in the ledger that was charged. Found a second record or another "
                "ledger. Charge again."
            )
        if isinstance(released, np.ndarray):  # the caller may change its own array later
            released = released.copy()
            released.flags.writeable = False
        self._log.update(replace(entry, released=(*entry.released, released), private=entry.private and private))

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Refuse a charge within a charge, even in one thread, as in a signal handler: it would see the old sum."""
        if not self._charging.acquire(blocking=False):
            raise errors.InvalidInput(
                "A charge must end before the next. Found a charge within another. Ask after it has ended."
            )
        try:
            yield
        finally:
            self._charging.release()
