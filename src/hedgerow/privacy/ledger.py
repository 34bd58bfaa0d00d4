"""Who pays: a ledger refuses or records before anything is drawn, and its receipts are what may be drawn from.

Papers: Feldman & Zrnic "Individual privacy accounting via a Rényi filter" (costs may be chosen adaptively, each fixed from
public facts before its draw); Whitehouse et al. "Fully adaptive composition in differential privacy", Theorem 1 (for events
that have a δ of their own).

A draw without a receipt cannot be written: ``noise`` takes nothing else. A receipt gives each of its events once, in the
order in which they were charged, and cannot be copied, pickled or taken to another process.

To keep a ledger somewhere else, subclass ``Ledger``; tests/privacy/test_ledgers.py is what it must pass.
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
from hedgerow.privacy.process import Home, OneOnly

Drawn = TypeVar("Drawn")
FIT = Fraction(1, 10**12)
"""Share of the total by which a sum may exceed it: costs carry rounding errors, and an exact fit must pass."""
WRITTEN_DOWN = (Laplace, Gaussian, Exponential, Repeated, FlippedRows, Planned)
"""Events of which all that is released is what was drawn, so that it can be read again."""

_issued = object()  # what a ledger shows when it makes a receipt


@final
class Receipt(OneOnly):
    """Proof that events were paid for: each may be drawn once, in order. Made by a ledger alone.

    What is drawn is written down in the ledger. Where it has been before, in a session that is taken up again, it is read
    from there, and nothing is drawn.
    """

    __slots__ = ("_home", "_keeps", "_ledger", "_read", "_undrawn", "cost", "events", "number")

    def __init__(self, issued: object, ledger: Ledger, entry: Entry) -> None:
        if issued is not _issued:
            raise errors.InvalidInput("A receipt must come from a ledger. Found another maker. Charge the events.")
        self.number, self.events, self.cost = entry.number, entry.events, entry.cost
        self._home, self._ledger = Home(), ledger
        self._undrawn: Iterator[Event] = (part for event in entry.events for part in event.draws)
        self._read, self._keeps = iter(entry.released), entry.kept

    def redeem(self, *kinds: type[Event]) -> Event:
        """The next event that was paid for and not drawn. It is used up, whatever happens now."""
        self._home.require("A receipt", "Draw there, and pass on what was released.")
        event = next(self._undrawn, None)
        if event is None:
            raise errors.InvalidInput(
                "A receipt must be drawn from once for each event it paid for. Found one draw more. Charge it first."
            )
        if not isinstance(event, kinds):
            raise errors.InvalidInput(
                f"event must be {' or '.join(kind.__name__ for kind in kinds)}. Found {type(event).__name__}, which is "
                "next on the receipt. Draw what was charged, in that order."
            )
        return event

    def released(self, draw: Callable[[], Drawn], private: bool) -> Drawn:
        """What came out, written down; or what came out before."""
        for earlier in self._read:
            return cast(Drawn, earlier.copy() if isinstance(earlier, np.ndarray) else earlier)
        drawn = draw()
        if self._keeps:
            self._ledger.record(self, drawn, private)
        return drawn

    def compared(self) -> None:
        """What a guard's round just said cannot be said again: the ledger takes care of the answer that follows."""
        self._ledger.compared()

    def __repr__(self) -> str:
        return (
            f"Receipt({self.number}: {', '.join(type(event).__name__ for event in self.events)}, cost {self.cost:.4g})"
        )


@final
@dataclass(frozen=True, eq=False)
class Entry:
    """One line of a ledger: what was paid for, why, and what came out. Public.

    ``about``: what ``why`` is about, for whoever takes the session up again. ``asked``: the question in whose course it was
    charged. ``released``: what was drawn, in order; where ``kept`` is False, what was made of it instead, if anything. Not
    ``private`` where the noise came from a seed.
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
        """The only event, or the first."""
        return self.events[0]

    @property
    def releases(self) -> int:
        """How many things come out: one for each draw, or what was made of them all."""
        return sum(1 for event in self.events for _ in event.draws) if self.kept else 1

    @property
    def is_complete(self) -> bool:
        """Whether all that was paid for came out before the ledger was left. What is not kept is not waited for."""
        return not self.kept or len(self.released) == self.releases

    @property
    def is_readable(self) -> bool:
        """Whether a receipt can give all of it again. A round, a sample, what was not kept or not drawn here would be new."""
        return self.kept and self.is_complete and all(isinstance(event, WRITTEN_DOWN) for event in self.events)


@dataclass
class Bill:
    """What one question was charged: the numbers of its entries, and what each cost in the budget's currency."""

    charges: dict[int, float] = field(default_factory=dict)

    @property
    def cost(self) -> float:
        return math.fsum(self.charges.values())


@final
@dataclass(frozen=True)
class Standing:
    """What a ledger had spent at some point, exactly: for one that is taken up from there rather than from its first entry."""

    spent: Fraction = Fraction(0)
    failing: Fraction = Fraction(0)
    counts: Mapping[Event, int] = field(default_factory=dict)
    planned: Fraction = Fraction(0)  # of what is spent


class Ledger(OneOnly, ABC):
    """A filter: adaptively chosen events pass as long as the sum of their costs stays within the budget.

    `slack` is the part of δ set aside, once and for all, for events that have a δ of their own; the rest of δ converts
    to ρ. Both sums are filtered. Entries are public, but for what is drawn and not yet recorded.

    Planned noise has a share of the total, which the first of it declares before anything else is charged: it passes within that
    share, and all else within the rest (``planned``).

    ``earlier``: the entries of a ledger that is taken up again. They are spent. While the mechanism that made them goes the
    same way again, each charge is the next of them, and its receipt gives what came out then; what is left is for
    ``engine.resume``. An entry of which not all that came out was written down is lost, and charged again: too much, never
    too little. ``standing`` and ``book``: what was spent before those, and where its entries are read when they are asked for.

    There is one of it: copies are itself, pickles and forks of its process are refused, and threads take turns.
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
        if type(budget) is not Budget:  # another type could price events as it likes
            raise errors.InvalidInput(
                f"budget must be a Budget. Found a {type(budget).__name__}. Make one: Budget(1.0, 1e-6)."
            )
        self._budget = budget
        self._total = Fraction(budget.total if slack == 0 else budget.rho(slack))
        so_far = standing or Standing()
        self._slack, self._failing = Fraction(slack), so_far.failing
        self._entries: MutableSequence[Entry] = [] if book is None else book
        self._counts: dict[Event, int] = dict(so_far.counts)
        self._parts = self._parts_of(so_far)  # exact, so that many small costs do not drown in rounding
        self._first = len(self._entries)  # the first entry of an opening
        self._turn = getattr(self, "_turn", None) or _Turn()  # one that is read anew keeps its threads in order
        self._charging = threading.Lock()
        self._bills: list[tuple[Bill, Any]] = []
        self._answers = list(answers)
        self._recalled = {question.key: answer for question, answer in answers}
        for entry in earlier:
            self._require_price(entry)
            self._count(entry)
        if self._failing > self._slack * (1 + FIT):  # the rest of δ converts to ρ, and would be promised twice
            raise errors.InvalidInput(
                f"slack must be at least the delta of the earlier entries, {float(self._failing):.4g}. Found {slack!r}. "
                "Pass the slack that the ledger had."
            )
        self._taken_up = tuple(earlier)
        self._pending = collections.deque(earlier)
        self._has_opened = not earlier  # else there is an opening to go through again
        self._has_session = self._has_sessions = False

    @property
    def has_other_sessions(self) -> bool:
        """Whether an earlier session paid from this account, perhaps about another table: its answers are not this one's."""
        return self._has_sessions

    @property
    def budget(self) -> Budget:
        return self._budget

    @property
    def spent(self) -> float:
        return float(self._parts.spent)

    @property
    def remaining(self) -> float:
        """For all but planned noise."""
        return max(0.0, float(self._parts.left(self._total)[1]))

    @property
    def slack(self) -> float:
        """What is left of the δ set aside."""
        return max(0.0, float(self._slack - self._failing))

    @property
    def set_aside(self) -> float:
        """The δ set aside, spent or not: what ``slack`` was."""
        return float(self._slack)

    @property
    def standing(self) -> Standing:
        """What is spent so far, exactly."""
        return Standing(self._parts.spent, self._failing, dict(self._counts), self._parts.planned)

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(event for entry in self._entries for event in entry.events)

    def entries(self) -> Sequence[Entry]:
        """Every charge so far, in order."""
        return tuple(self._entries)

    def exclusively(self) -> contextlib.AbstractContextManager[None]:
        """`with ledger.exclusively():` no other thread charges or asks meanwhile. Refused in a fork.

        A mechanism holds it for a whole question, so that no other comes between what it reads, compares, charges,
        draws and remembers. It may be nested.
        """
        return self._turn

    @staticmethod
    def _parts_of(standing: Standing) -> Parts:
        share = next((event.share for event in standing.counts if isinstance(event, Planned)), None)
        return Parts(share, standing.planned, standing.spent - standing.planned)

    opened_by_other_version = False
    """Whether another version of the package made the entries of the opening: what it fitted to them may be another hypothesis."""

    # Blocks of rows that are appended: each has an account of its own (docs/proofs/blocks.md).

    blocks: Sequence[str] = ()
    """The names of the blocks that were appended, in order, as far as a ledger knows of them."""

    def of_block(self, name: str, place: int, budget: Budget, binding: Callable[[], Any]) -> Ledger:
        """The account of another block of rows, the ``place``-th that is appended, made or taken up.

        ``binding``: what a ledger that lasts knows its table by.
        """
        return Accountant(budget)

    def look(self) -> None:
        """Find out now, and not at the next charge, what other processes have charged: before a charge that must come to something."""

    def share_turn(self, other: Ledger) -> None:
        """From now on threads take turns in both as in one."""
        self._turn = other._turn

    @contextlib.contextmanager
    def closed(self) -> Iterator[None]:
        """Nothing can be charged meanwhile: what a function does that sees private values must not show here."""
        with self.exclusively(), self._alone():
            yield

    @contextlib.contextmanager
    def asking(self, question: Any = None) -> Iterator[Bill]:
        """One question's turn: the bill of all that is charged meanwhile, each entry of which names the question."""
        with self.exclusively():
            bill = Bill()
            self._bills.append((bill, question))
            try:
                yield bill
            finally:
                self._bills.pop()

    def affords(self, *planned: Event) -> bool:
        """Whether all these events would pass, together."""
        try:
            self._admitted(planned, [self.budget.cost(event) for event in planned])
        except errors.BudgetExceeded:
            return False
        return True

    def charge(
        self, *planned: Event, why: str = "", about: Mapping[str, Any] | None = None, keep: bool = True
    ) -> Receipt:
        """Pay for all the events or for none; the receipt to draw them from. What was charged is spent, drawn or not.

        ``keep=False``: what is drawn is not written down, where it is large and teaches nothing by itself; ``record`` then
        says what came of it.
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
                self._count(entry)  # from here on an interrupt counts too much, never too little
                self._keep(entry)
            receipt = Receipt(_issued, self, entry)
            for bill, _ in self._bills:
                bill.charges[entry.number] = entry.cost
            return receipt

    def _count(self, entry: Entry) -> None:
        parts = self._parts.after(entry.events, [self.budget.cost(event) for event in entry.events])
        if parts is None:
            raise errors.InvalidInput(
                f"Planned noise must be the first that a ledger was charged for, with one share. Found an earlier entry with "
                f"{entry.events!r}. Take up all entries, in their order."
            )
        self._parts = parts
        self._failing += sum((Fraction(event.delta) for event in entry.events), Fraction(0))
        self._entries.append(entry)
        for event in entry.events:
            self._counts[event] = self._counts.get(event, 0) + 1

    def _earlier(self, planned: tuple[Event, ...], why: str, about: Mapping[str, Any]) -> Entry | None:
        """The entry that this charge was when the session ran before; None for a new one."""
        while self._pending:
            entry = self._pending[0]
            if entry.events != planned or not _is_for(entry, why, about):
                self._require_fitted_then(planned)
                self._pending = collections.deque(self._taken_up)  # whoever opens it next begins at the first
                raise errors.InvalidInput(
                    f"A ledger must be taken up by a session that is opened as before. Found a charge of {entry.events!r}{_purpose(entry)} "
                    f"where {planned!r} comes now. Open it with the same universe, workload and options, and the version that wrote it."
                )
            self._pending.popleft()
            if entry.is_readable:
                return entry
        return None

    def _require_fitted_then(self, planned: tuple[Event, ...]) -> None:
        """A charge that was refused left no entry: it is refused again."""
        before = (*self._entries[: self._first], *self._taken_up[: len(self._taken_up) - len(self._pending)])
        then: Parts | None = Parts()
        for events in (*(e.events for e in before), planned):
            then = then and then.after(events, [self.budget.cost(event) for event in events])
        if not self._fits(then):
            raise errors.BudgetExceeded(
                f"cost must be at most what was left in {self.budget.currency} when the session ran before. Found more, and it "
                "was refused then. Go on with what is known."
            )

    def take_up(self) -> None:
        """An opening begins. What an earlier one paid for that did not end, as after Ctrl-C, is met again."""
        with self.exclusively():
            if self._has_opened:
                self._has_sessions = self._has_session  # perhaps of another table
                self._first, self._has_opened = len(self._entries), False
            self._has_session = True
            self._taken_up = tuple(self._entries[self._first :])
            self._pending = collections.deque(self._taken_up)

    def take_in(self, entry: Entry) -> None:
        """An entry that was made elsewhere: the next one, which is spent here too, or what came out of one that is known."""
        if entry.number < len(self._entries):
            self._entries[entry.number] = entry
            return
        self._require_price(entry)
        self._count(entry)

    def _require_price(self, entry: Entry) -> None:
        if not all(map(math.isfinite, map(self.budget.cost, entry.events))):
            raise errors.InvalidInput(
                f"An earlier entry must have a cost in {self.budget.currency}. Found {entry.events!r}. Take it up with its budget."
            )

    def rest(self) -> tuple[Entry, ...]:
        """The opening ends: the earlier entries that it did not meet again. From now on every charge is a new one."""
        with self.exclusively():
            rest = tuple(self._pending)
            self._pending.clear()
            self._has_opened = True
            return rest

    def record(self, receipt: Receipt, released: Any, private: bool = True) -> None:
        """Something that came out of the receipt's draws, from now on public. Not ``private`` where they came from a seed."""
        with self.exclusively():
            entry = self._entries[receipt.number] if receipt.number < len(self._entries) else None
            if entry is None or entry.events is not receipt.events or len(entry.released) >= entry.releases:
                raise errors.InvalidInput(
                    "A release must be recorded once, in the ledger that was charged. Found another. Charge again."
                )
            if isinstance(released, np.ndarray):  # whoever drew it may change it
                released = released.copy()
                released.flags.writeable = False
            self._entries[receipt.number] = replace(
                entry, released=(*entry.released, released), private=entry.private and private
            )
            self._keep(self._entries[receipt.number])

    def note(self, question: Any, answer: Any) -> None:
        """An answer that was given, so that it is given again when the question is."""
        self._answers.append((question, answer))
        self._recalled[question.key] = answer

    def compared(self) -> None:
        """A guard's open round was asked, so that the next answer is no function of the entries alone."""

    def at_once(self) -> contextlib.AbstractContextManager[None]:
        """While answers are found that are given together, at its end."""
        return contextlib.nullcontext()

    def answers(self) -> Sequence[tuple[Any, Any]]:
        """Every question that was answered, with its answer, in order."""
        return tuple(self._answers)

    def recall(self, question: Any) -> Any | None:
        """What was answered to it last. Nothing where several sessions share the account: the answer may be about another table."""
        return None if self._has_sessions else self._recalled.get(question.key)

    def opening(self) -> contextlib.AbstractContextManager[None]:
        """While a session is opened: no other process opens, or charges, meanwhile."""
        return contextlib.nullcontext()

    keeps_state: ClassVar[bool] = False
    """Whether it ever asks for what ``remember`` is given."""

    def remember(self, state: Callable[[], Any]) -> None:
        """How to ask whoever answers for all that it knows, as JSON: a ledger that lasts keeps it now and then."""

    def remembered(self) -> Any | None:
        """What was kept last; ``rest`` are then the entries since."""

    def following(self, learn: Callable[[Sequence[Entry]], None], ask: Callable[[], Drawn]) -> Drawn:
        """``ask()``; where entries of other processes turn out to be ahead of whoever answers, after they are learned."""
        return ask()

    def _keep(self, entry: Entry) -> None:
        """Make the entry durable before anything else happens: a new one, or one with what was released."""

    def _admitted(self, planned: tuple[Event, ...], costs: list[float]) -> float:
        """What the events cost, as the receipt says; or a refusal, from public facts."""
        for event, cost in zip(planned, costs, strict=True):
            if not math.isfinite(cost):
                raise errors.BudgetExceeded(
                    f"cost must be finite in {self.budget.currency}. Found infinity for {type(event).__name__} noise, "
                    f"which a budget with delta = {self.budget.delta:g} cannot pay for. Use Laplace noise, or give a delta above 0."
                )
        parts = self._parts.after(planned, costs)
        if parts is None or (parts.share is not None and self._slack > 0):
            raise errors.BudgetExceeded(
                "Planned noise must have one share, declared before anything else is charged to an account without slack. Found "
                "another share, an earlier charge or slack. Charge the noise as it is."
            )
        if not self._fits(parts):
            if parts.planned > self._parts.planned:
                raise errors.BudgetExceeded(
                    f"cost of planned noise must be at most its share of {self.budget.currency} = {float(self._total):.4g}, {parts.share}, "
                    f"and that of all else the rest. Found {float(parts.planned):.4g} and {float(parts.others):.4g} with this charge. "
                    "Plan less, or charge the noise as it is."
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
        """Not even within a charge of the same thread, as a signal's handler would be: it would see the old sum."""
        if not self._charging.acquire(blocking=False):
            raise errors.InvalidInput("A charge must end before the next. Found one within another. Ask after it.")
        try:
            yield
        finally:
            self._charging.release()

    def _fits(self, parts: Parts | None) -> bool:
        """Whether planned noise is within its share, and all else within the rest."""
        return parts is not None and min(parts.left(self._total)) >= -self._total * FIT

    @property
    def spent_epsilon(self) -> float:
        """The ε, at the budget's δ, of the recorded events: the smallest of the bounds at hand.

        Bounds: the sum of ε; the conversion of the sum of ρ, planned noise apart; the sum of Rényi divergences, as of `dp_event()`. The
        last two read the events as a list fixed beforehand: the promise made to the data is the budget, not this.
        """
        if not self._entries:
            return 0.0
        basic = math.fsum(event.epsilon * count for event, count in list(self._counts.items()))
        delta = self.budget.delta - float(self._failing)
        noise = math.fsum(e.continuous_rho * count for e, count in list(self._counts.items()) if isinstance(e, Planned))
        found = self.budget.epsilon_of_rows(basic, float(self._parts.others), delta, planned=noise)
        if self.budget.pure or self.budget.rows_per_unit > 1:  # the Rényi accountant knows one row alone
            return found
        return min(found, conversion.renyi_epsilon(dict(self._counts), delta))

    def dp_event(self) -> Any:
        """The recorded events for dp-accounting (``conversion.dp_events``)."""
        return conversion.dp_events(dict(self._counts))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.budget!r}, spent={self.spent:.4g} {self.budget.currency})"


@final
class Accountant(Ledger):
    """A ledger in memory: it ends with its process."""


def _is_for(entry: Entry, why: str, about: Mapping[str, Any]) -> bool:
    """Tell whether what came out of an entry is what a charge is for now, as far as both say: noise of one kind serves many tables."""
    if entry.why and why and entry.why != why:
        return False
    return not entry.about or (entry.about.keys() == about.keys() and all(entry.about[n] == about[n] for n in about))


def _purpose(entry: Entry) -> str:
    return f" for {entry.why!r}" if entry.why else ""


class _Turn:
    """The lock of an account, taken only in the account's process."""

    def __init__(self) -> None:
        self._home, self._lock = Home(), threading.RLock()

    def __enter__(self) -> None:
        # before the lock, which in a fork may be held by a thread that is not there
        self._home.require("An account", "Ask there, and pass on the answers.")
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()


class HasLedger(Protocol):
    """A mechanism, or a session: what it draws, its ledger pays for."""

    @property
    def ledger(self) -> Ledger: ...


_Self = TypeVar("_Self", bound=HasLedger)
_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


def one_at_a_time(
    method: Callable[Concatenate[_Self, _Given], _Answer],
) -> Callable[Concatenate[_Self, _Given], _Answer]:
    """A question to a mechanism: asked while it has its ledger to itself, and the processor without threads that wait."""

    @functools.wraps(method)
    def alone(self: _Self, /, *given: _Given.args, **named: _Given.kwargs) -> _Answer:
        with self.ledger.exclusively(), one_thread:
            return method(self, *given, **named)

    return alone
