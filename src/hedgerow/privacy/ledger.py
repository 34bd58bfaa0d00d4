"""Ledgers that admit or refuse each charge before anything is drawn, and the receipts that permit the draws.

Papers: Feldman & Zrnic "Individual privacy accounting via a Rényi filter" (costs may be chosen adaptively, each fixed
from public facts before its draw); Whitehouse et al. "Fully adaptive composition in differential privacy", Theorem 1
(for events that have a δ of their own).

Nothing can be drawn without a receipt, because ``noise`` accepts nothing else. A receipt gives each of its events once,
in the order in which they were charged. It cannot be copied, pickled or taken to another process.

To store a ledger elsewhere, subclass ``Ledger``. The subclass must pass tests/privacy/test_ledgers.py.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import math
import threading
from abc import ABC
from collections.abc import Callable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar, Concatenate, ParamSpec, Protocol, TypeVar, cast, final

import numpy as np

from hedgerow import errors
from hedgerow._progress import tell
from hedgerow._threads import one_thread
from hedgerow.privacy import conversion
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Event, Exponential, FlippedRows, Gaussian, Laplace, Planned, Repeated
from hedgerow.privacy.planned import Parts
from hedgerow.privacy.process import NotCopyable, ProcessGuard

Drawn = TypeVar("Drawn")
FIT = Fraction(1, 10**12)
"""Tolerance of the filter, as a share of the total: costs carry rounding errors, and an exact fit must pass."""
WRITTEN_DOWN = (Laplace, Gaussian, Exponential, Repeated, FlippedRows, Planned)
"""Events that release exactly what is drawn, so that a ledger can return the recorded values instead of drawing again.
"""

_issued = object()  # the token by which a ledger proves that it made a receipt


@final
class Receipt(NotCopyable):
    """Proof that events were paid for. Each event may be drawn once, in order. Only a ledger makes receipts.

    Drawn values are recorded in the ledger. Where the ledger already has the values, because a session was resumed, the
    receipt returns the recorded values and nothing is drawn.
    """

    __slots__ = ("_home", "_keeps", "_ledger", "_read", "_undrawn", "cost", "events", "number")

    def __init__(self, issued: object, ledger: Ledger, entry: Entry) -> None:
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
        """Tell the ledger that a guard round was compared (see ``Ledger.mark_guard_used``)."""
        self._ledger.mark_guard_used()

    def __repr__(self) -> str:
        return (
            f"Receipt({self.number}: {', '.join(type(event).__name__ for event in self.events)}, cost {self.cost:.4g})"
        )


@final
@dataclass(frozen=True, eq=False)
class Entry:
    """One entry of a ledger: the events that were paid for, the reason, and the released values. Entries are public.

    - ``about``: details of ``why``, for the code that resumes the session.
    - ``asked``: the question that caused the charge, or None.
    - ``kept``: True if the ledger records the drawn values.
    - ``released``: the drawn values, in order. Where ``kept`` is False, the value that was computed from them, if any.
    - ``private``: False if the noise came from a seed.
    """

    number: int
    events: tuple[Event, ...]
    cost: float
    why: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    asked: Any = None
    kept: bool = True
    released: tuple[Any, ...] = ()
    private: bool = True

    @property
    def event(self) -> Event:
        """The only event, or the first of several."""
        return self.events[0]

    @property
    def releases(self) -> int:
        """The number of values to release: one per draw, or one in all where the drawn values are not kept."""
        return sum(1 for event in self.events for _ in event.draws) if self.kept else 1

    @property
    def is_complete(self) -> bool:
        """True if all values that were paid for are recorded, or if the ledger does not keep them."""
        return not self.kept or len(self.released) == self.releases

    @property
    def is_readable(self) -> bool:
        """True if a receipt can return all values again.

        Guard rounds, samples, values that are not kept and values that were never drawn cannot be returned again.
        """
        return self.kept and self.is_complete and all(isinstance(event, WRITTEN_DOWN) for event in self.events)


@dataclass
class Bill:
    """The charges of one question: the cost of each of its entries, by entry number, in the budget's currency."""

    charges: dict[int, float] = field(default_factory=dict)

    @property
    def cost(self) -> float:
        """The sum of the charges."""
        return math.fsum(self.charges.values())


@final
@dataclass(frozen=True)
class Standing:
    """The exact spending of a ledger at some point, from which a ledger can resume without reading its first entries.

    ``spent`` is the total cost, of which ``planned`` is the cost of planned noise. ``failing`` is the sum of the
    events' own δ. ``counts`` is the number of times each event was charged.
    """

    spent: Fraction = Fraction(0)
    failing: Fraction = Fraction(0)
    counts: Mapping[Event, int] = field(default_factory=dict)
    planned: Fraction = Fraction(0)  # the part of ``spent`` that went to planned noise


class Ledger(NotCopyable, ABC):
    """A privacy filter: adaptively chosen events pass as long as the sum of their costs stays within the budget.

    Part of δ, the ``slack``, can be set aside at the start for events that have a δ of their own. The rest of δ is
    converted to ρ. The ledger filters both sums. Entries are public, except for values that are drawn and not yet
    recorded.

    Planned noise has a share of the total. The first planned event declares that share before anything else is charged.
    Planned noise then passes within that share, and all other events within the rest (see ``planned``).

    A ledger can resume from ``earlier`` entries, which count as spent. While the mechanism that made these entries
    repeats its steps, each of its charges is matched with the next earlier entry, and the receipt returns the values
    that were released then. Entries that remain unmatched go to ``engine.resume``. An entry whose values were not all
    recorded is lost and is charged again: a crash can count too much, never too little. ``standing`` is the spending
    before the earlier entries, and ``book`` reads those older entries on demand.

    A ledger exists once. Copying returns the same object, pickling and use in a forked process are refused, and threads
    take turns.
    """

    def __init__(
        self,
        budget: Budget,
        slack: float = 0.0,
        earlier: Sequence[Entry] = (),
        answers: Sequence[tuple[Any, Any]] = (),
        standing: Standing | None = None,
        book: MutableSequence[Entry] | None = None,
    ) -> None:
        if type(budget) is not Budget:  # a subclass could set prices of its own
            raise errors.InvalidInput(
                f"budget must be a Budget. Found a {type(budget).__name__}. Make one: Budget(1.0, 1e-6)."
            )
        self._budget = budget
        self._total = Fraction(budget.total if slack == 0 else budget.rho(slack))
        so_far = standing or Standing()
        self._slack, self._failing = Fraction(slack), so_far.failing
        self._entries: MutableSequence[Entry] = [] if book is None else book
        self._counts: dict[Event, int] = dict(so_far.counts)
        self._parts = self._parts_of(so_far)  # exact fractions, so that many small costs do not vanish in rounding
        self._first = len(self._entries)  # the number of the first entry of the current opening
        self._turn = getattr(self, "_turn", None) or _Turn()  # a ledger that is read again keeps its lock
        self._charging = threading.Lock()
        self._bills: list[tuple[Bill, Any]] = []
        self._answers = list(answers)
        self._recalled = {question.key: answer for question, answer in answers}
        for entry in earlier:
            self._require_price(entry)
            self._count(entry)
        if self._failing > self._slack * (1 + FIT):  # else the same δ would also be converted to ρ
            raise errors.InvalidInput(
                f"slack must be at least the delta of the earlier entries, {float(self._failing):.4g}. Found "
                f"{slack!r}. Pass the slack that the ledger had."
            )
        self._taken_up = tuple(earlier)
        self._pending = collections.deque(earlier)
        self._has_opened = not earlier  # False while an interrupted opening is still to be repeated
        self._has_session = self._has_sessions = False

    @property
    def has_other_sessions(self) -> bool:
        """True if an earlier session was paid from this account. Its answers may be about another table."""
        return self._has_sessions

    @property
    def budget(self) -> Budget:
        """The budget that the ledger enforces."""
        return self._budget

    @property
    def spent(self) -> float:
        """The sum of all costs so far, in the budget's currency."""
        return float(self._parts.spent)

    @property
    def remaining(self) -> float:
        """The amount left in the budget's currency, for all events except planned noise."""
        return max(0.0, float(self._parts.subtract_from(self._total)[1]))

    @property
    def slack(self) -> float:
        """The part of the reserved δ that is left."""
        return max(0.0, float(self._slack - self._failing))

    @property
    def set_aside(self) -> float:
        """The reserved δ, spent or not: the ``slack`` that the ledger was made with."""
        return float(self._slack)

    @property
    def standing(self) -> Standing:
        """The exact spending so far."""
        return Standing(self._parts.spent, self._failing, dict(self._counts), self._parts.planned)

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event charged so far, in order."""
        return tuple(event for entry in self._entries for event in entry.events)

    def entries(self) -> Sequence[Entry]:
        """Return every entry so far, in order."""
        return tuple(self._entries)

    def exclusively(self) -> contextlib.AbstractContextManager[None]:
        """Return a context manager that holds the ledger's lock: no other thread charges or asks meanwhile.

        A mechanism holds the lock for a whole question, so that nothing comes between the steps in which it reads,
        compares, charges, draws and remembers. The context can be nested. A forked process is refused.
        """
        return self._turn

    @staticmethod
    def _parts_of(standing: Standing) -> Parts:
        """Return what was charged to planned noise and to all else."""
        share = next((event.share for event in standing.counts if isinstance(event, Planned)), None)
        return Parts(share, standing.planned, standing.spent - standing.planned)

    opened_by_other_version = False
    """True if another version of the package made the entries of the opening. Its fit may be another hypothesis."""

    # Blocks of rows that are appended: each has an account of its own (docs/proofs/blocks.md).

    blocks: Sequence[str] = ()
    """The names of the appended blocks, in order, if the ledger records them."""

    def of_block(self, name: str, place: int, budget: Budget, binding: Callable[[], Any]) -> Ledger:
        """Make or resume the account of the ``place``-th appended block of rows.

        ``binding`` returns the record by which a durable ledger recognizes its table.
        """
        return Accountant(budget)

    def look(self) -> None:
        """Read the charges of other processes now, before a charge that must succeed, and not only at that charge."""

    def share_turn(self, other: Ledger) -> None:
        """Share one lock with another ledger, so that threads take turns in both together."""
        self._turn = other._turn

    @contextlib.contextmanager
    def closed(self) -> Iterator[None]:
        """Refuse every charge while a function sees private values, so that its behavior cannot show in the ledger."""
        with self.exclusively(), self._alone():
            yield

    @contextlib.contextmanager
    def asking(self, question: Any = None) -> Iterator[Bill]:
        """Open the bill of one question.

        It collects all charges until the context ends, and their entries name the question.
        """
        with self.exclusively():
            bill = Bill()
            self._bills.append((bill, question))
            try:
                yield bill
            finally:
                self._bills.pop()

    def affords(self, *planned: Event) -> bool:
        """Return True if all these events together would pass the filter."""
        try:
            self._admitted(planned, [self.budget.cost(event) for event in planned])
        except errors.BudgetExceeded:
            return False
        return True

    def charge(
        self, *planned: Event, why: str = "", about: Mapping[str, Any] | None = None, keep: bool = True
    ) -> Receipt:
        """Charge all the events or none, and return the receipt from which to draw them.

        What was charged is spent, drawn or not. With ``keep=False`` the drawn values are not recorded, because they are
        large and useless by themselves. The caller then records the result with ``record``.
        """
        if not planned:
            raise errors.InvalidInput("A charge must be for at least one event. Found none. Say what will be drawn.")
        costs = [self.budget.cost(event) for event in planned]
        tell(lambda: f"{why or 'charging'} · {self.spent / self.budget.total:.0%} of the budget spent")
        with self.exclusively(), self._alone():
            entry = self._earlier(planned, why, about or {})
            if entry is None:
                cost = self._admitted(planned, costs)
                asked = self._bills[-1][1] if self._bills else None
                entry = Entry(len(self._entries), planned, cost, why, MappingProxyType(dict(about or {})), asked, keep)
                self._count(entry)  # an interrupt after this line counts too much, never too little
                self._keep(entry)
            receipt = Receipt(_issued, self, entry)
            for bill, _ in self._bills:
                bill.charges[entry.number] = entry.cost
            return receipt

    def _count(self, entry: Entry) -> None:
        """Add an entry to the sums and to the list of entries."""
        parts = self._parts.after(entry.events, [self.budget.cost(event) for event in entry.events])
        if parts is None:
            raise errors.InvalidInput(
                "Planned noise must be the first that a ledger was charged for, with one share. Found an earlier entry "
                f"with {entry.events!r}. Pass all entries, in their order."
            )
        self._parts = parts
        self._failing += sum((Fraction(event.delta) for event in entry.events), Fraction(0))
        self._entries.append(entry)
        for event in entry.events:
            self._counts[event] = self._counts.get(event, 0) + 1

    def _earlier(self, planned: tuple[Event, ...], why: str, about: Mapping[str, Any]) -> Entry | None:
        """Return the entry of this charge from when the session ran before, or None for a new charge."""
        while self._pending:
            entry = self._pending[0]
            if entry.events != planned or not _is_for(entry, why, about):
                self._require_fitted_then(planned)
                self._pending = collections.deque(self._taken_up)  # the next opening starts again at the first entry
                raise errors.InvalidInput(
                    "A ledger must be resumed by a session that is opened as before. Found a charge of "
                    f"{entry.events!r}{_purpose(entry)} where {planned!r} comes now. Open it with the same universe, "
                    "workload and options, and the version that wrote it."
                )
            self._pending.popleft()
            if entry.is_readable:
                return entry
        return None

    def _require_fitted_then(self, planned: tuple[Event, ...]) -> None:
        """Refuse a charge that was refused before: it left no entry, so it must be refused again."""
        before = (*self._entries[: self._first], *self._taken_up[: len(self._taken_up) - len(self._pending)])
        then: Parts | None = Parts()
        for events in (*(e.events for e in before), planned):
            then = then and then.after(events, [self.budget.cost(event) for event in events])
        if not self._fits(then):
            raise errors.BudgetExceeded(
                f"cost must be at most the {self.budget.currency} that was left when the session ran before. Found "
                "more, which was refused then too. Continue without this charge."
            )

    def take_up(self) -> None:
        """Begin an opening, and replay what an interrupted opening paid for, for example before Ctrl-C.

        The charges of the interrupted opening are matched and not billed again.
        """
        with self.exclusively():
            if self._has_opened:
                self._has_sessions = self._has_session  # the earlier session may have been about another table
                self._first, self._has_opened = len(self._entries), False
            self._has_session = True
            self._taken_up = tuple(self._entries[self._first :])
            self._pending = collections.deque(self._taken_up)

    def take_in(self, entry: Entry) -> None:
        """Apply an entry that another process made.

        A new entry counts as spent here too. For a known entry, the released values are updated.
        """
        if entry.number < len(self._entries):
            self._entries[entry.number] = entry
            return
        self._require_price(entry)
        self._count(entry)

    def _require_price(self, entry: Entry) -> None:
        """Refuse an earlier entry that has no price in this budget's currency."""
        if not all(map(math.isfinite, map(self.budget.cost, entry.events))):
            raise errors.InvalidInput(
                f"An earlier entry must have a cost in {self.budget.currency}. Found {entry.events!r}. Resume the "
                "ledger with its own budget."
            )

    def rest(self) -> tuple[Entry, ...]:
        """End the opening and return the earlier entries that it did not match. From now on every charge is new."""
        with self.exclusively():
            rest = tuple(self._pending)
            self._pending.clear()
            self._has_opened = True
            return rest

    def record(self, receipt: Receipt, released: Any, private: bool = True) -> None:
        """Record a value that came out of the receipt's draws. From now on the value is public.

        ``private`` is False where the noise came from a seed.
        """
        with self.exclusively():
            entry = self._entries[receipt.number] if receipt.number < len(self._entries) else None
            if entry is None or entry.events is not receipt.events or len(entry.released) >= entry.releases:
                raise errors.InvalidInput(
                    "A release must be recorded once, in the ledger that was charged. Found a second record or another "
                    "ledger. Charge again."
                )
            if isinstance(released, np.ndarray):  # the caller may change its own array later
                released = released.copy()
                released.flags.writeable = False
            self._entries[receipt.number] = replace(
                entry, released=(*entry.released, released), private=entry.private and private
            )
            self._keep(self._entries[receipt.number])

    def note(self, question: Any, answer: Any) -> None:
        """Store an answer, so that a repeated question gets the same answer."""
        self._answers.append((question, answer))
        self._recalled[question.key] = answer

    def mark_guard_used(self) -> None:
        """Note that an open guard round was compared, so that the next answer does not follow from the entries alone.

        A durable ledger writes such an answer before it is given.
        """

    def at_once(self) -> contextlib.AbstractContextManager[None]:
        """Return a context manager for answers that are found one by one and given together when the context ends."""
        return contextlib.nullcontext()

    def answers(self) -> Sequence[tuple[Any, Any]]:
        """Return every answered question with its answer, in order."""
        return tuple(self._answers)

    def recall(self, question: Any) -> Any | None:
        """Return the last answer to a question, or None.

        Returns None where several sessions share the account, because the answer may be about another table.
        """
        return None if self._has_sessions else self._recalled.get(question.key)

    def opening(self) -> contextlib.AbstractContextManager[None]:
        """Return a context manager for opening a session: no other process opens or charges meanwhile."""
        return contextlib.nullcontext()

    keeps_state: ClassVar[bool] = False
    """True if the ledger stores the state that ``remember`` provides."""

    def remember(self, state: Callable[[], Any]) -> None:
        """Register a function that returns the engine's state as JSON.

        A durable ledger stores that state now and then.
        """

    def remembered(self) -> Any | None:
        """Return the last stored state, or None. ``rest`` then returns the entries since that state."""

    def following(self, learn: Callable[[Sequence[Entry]], None], ask: Callable[[], Drawn]) -> Drawn:
        """Return ``ask()``.

        If other processes have charged in the meantime, ``learn`` from their entries and ask again.
        """
        return ask()

    def _keep(self, entry: Entry) -> None:
        """Make an entry durable before anything else happens. The entry is new, or has newly released values."""

    def _admitted(self, planned: tuple[Event, ...], costs: list[float]) -> float:
        """Return the cost of the events for the receipt, or refuse them, from public facts alone."""
        for event, cost in zip(planned, costs, strict=True):
            if not math.isfinite(cost):
                raise errors.BudgetExceeded(
                    f"cost must be finite in {self.budget.currency}. Found infinity for {type(event).__name__} noise, "
                    f"which a budget with delta = {self.budget.delta:g} cannot pay for. Use Laplace noise, or give a "
                    "delta above 0."
                )
        parts = self._parts.after(planned, costs)
        if parts is None or (parts.share is not None and self._slack > 0):
            raise errors.BudgetExceeded(
                "Planned noise must have one share, declared before anything else is charged to an account without "
                "slack. Found another share, an earlier charge or slack. Charge the noise as it is."
            )
        if not self._fits(parts):
            if parts.planned > self._parts.planned:
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
        failing = sum((Fraction(event.delta) for event in planned), Fraction(0))
        if self._failing + failing > self._slack * (1 + FIT):
            raise errors.BudgetExceeded(
                f"delta must be at most {float(self._slack - self._failing):.4g} (what is left of the slack). "
                f"Found {float(failing):.4g}. Open the accountant with a larger slack."
            )
        return math.fsum(costs)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Refuse a charge within a charge, even in one thread, as in a signal handler: it would see the old sum."""
        if not self._charging.acquire(blocking=False):
            raise errors.InvalidInput(
                "A charge must end before the next. Found a charge within another. Ask after it has ended."
            )
        try:
            yield
        finally:
            self._charging.release()

    def _fits(self, parts: Parts | None) -> bool:
        """Return True if planned noise is within its share and all else within the rest."""
        return parts is not None and min(parts.subtract_from(self._total)) >= -self._total * FIT

    @property
    def spent_epsilon(self) -> float:
        """The ε, at the budget's δ, of the recorded events: the smallest of three bounds.

        The bounds are the sum of ε; the sum of ρ, converted together with planned noise; and the sum of Rényi
        divergences, as for `dp_event()`. The last two read the events as a list that was fixed in advance. The promise
        to the people in the data is the budget, not this number.
        """
        if not self._entries:
            return 0.0
        basic = math.fsum(event.epsilon * count for event, count in list(self._counts.items()))
        delta = self.budget.delta - float(self._failing)
        noise = math.fsum(e.continuous_rho * count for e, count in list(self._counts.items()) if isinstance(e, Planned))
        found = self.budget.epsilon_of_rows(basic, float(self._parts.others), delta, planned=noise)
        if self.budget.pure or self.budget.rows_per_unit > 1:  # the Rényi bound is for one row only
            return found
        return min(found, conversion.renyi_epsilon(dict(self._counts), delta))

    def dp_event(self) -> Any:
        """Return the recorded events in dp-accounting's form (see ``conversion.dp_events``)."""
        return conversion.dp_events(dict(self._counts))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.budget!r}, spent={self.spent:.4g} {self.budget.currency})"


@final
class Accountant(Ledger):
    """A ledger in memory, which ends with its process.

    Parameters
    ----------
    budget : Budget
        The budget that all charges together must respect.
    slack : float
        The part of δ reserved for events that have a δ of their own.
    earlier : sequence of Entry
        Entries of a ledger to resume. They count as spent.
    answers : sequence of (question, answer)
        Answers that were given before, for repeated questions.
    standing : Standing, optional
        The spending before the ``earlier`` entries.
    book : mutable sequence of Entry, optional
        The entries before the ``earlier`` ones, read on demand.

    Raises
    ------
    InvalidInput
        If ``budget`` is no Budget, or if an earlier entry does not fit it.
    """


def _is_for(entry: Entry, why: str, about: Mapping[str, Any]) -> bool:
    """Return True if an entry's released values serve this charge: noise of one kind serves many tables."""
    if entry.why and why and entry.why != why:
        return False
    return not entry.about or (entry.about.keys() == about.keys() and all(entry.about[n] == about[n] for n in about))


def _purpose(entry: Entry) -> str:
    return f" for {entry.why!r}" if entry.why else ""


class _Turn:
    """The lock of an account. It can be taken only in the process that made the account."""

    def __init__(self) -> None:
        self._home, self._lock = ProcessGuard(), threading.RLock()

    def __enter__(self) -> None:
        # Check the process before the lock: in a fork the lock may be held by a thread that does not exist there.
        self._home.require("An account", "Ask there, and pass on the answers.")
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()


class HasLedger(Protocol):
    """A mechanism or session that has a ledger, which pays for all it draws."""

    @property
    def ledger(self) -> Ledger:
        """The ledger that pays."""
        ...


_Self = TypeVar("_Self", bound=HasLedger)
_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


def one_at_a_time(
    method: Callable[Concatenate[_Self, _Given], _Answer],
) -> Callable[Concatenate[_Self, _Given], _Answer]:
    """Decorate a method that answers a question: it holds the ledger's lock and runs linear algebra on one thread."""

    @functools.wraps(method)
    def alone(self: _Self, /, *given: _Given.args, **named: _Given.kwargs) -> _Answer:
        with self.ledger.exclusively(), one_thread:
            return method(self, *given, **named)

    return alone
