"""Ledgers: a filter, a log, a replay and a log of answers, composed under one lock.

- ``filter``: may this be charged?
- ``log``: the entries, in order, durable where the log is.
- ``replay``: from entries to the state of the ledger, and the charges that a repeated opening meets.
- ``answer_log``: the answers that were given, so that a repeated question gets the same answer.
- ``receipt``: takes a charge through filter and log, and permits the draws.

Nothing can be drawn without a receipt, because ``noise`` accepts nothing else. A receipt gives each of its events once,
in the order in which they were charged. It cannot be copied, pickled or taken to another process.

A ledger of another kind is composed of other parts. It must pass tests/privacy/test_ledgers.py.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, final

from hedgerow._progress import tell
from hedgerow._threads import one_thread
from hedgerow.privacy.answer_log import AnswerLog, MemoryAnswerLog
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Event
from hedgerow.privacy.filter import FIT, Filter, Standing
from hedgerow.privacy.log import Entry, Log, MemoryLog, NoSnapshots, Snapshots
from hedgerow.privacy.process import NotCopyable, OwnersLock
from hedgerow.privacy.receipt import Bill, Cashier, OpenBills, Receipt
from hedgerow.privacy.replay import Replay

__all__ = [
    "FIT",
    "Accountant",
    "Bill",
    "Entry",
    "HasLedger",
    "Ledger",
    "LedgerParts",
    "Receipt",
    "Standing",
    "one_at_a_time",
]

Asked = TypeVar("Asked")


@dataclass(frozen=True)
class LedgerParts:
    """The parts that a ledger is composed of, each with one job."""

    filter: Filter
    log: Log
    replay: Replay
    answer_log: AnswerLog
    snapshots: Snapshots = field(default_factory=NoSnapshots)
    bills: OpenBills = field(default_factory=OpenBills)
    turn: OwnersLock = field(default_factory=OwnersLock)

    @classmethod
    def in_memory(
        cls,
        filter: Filter,
        earlier: Sequence[Entry] = (),
        answers: Sequence[tuple[Any, Any]] = (),
        log: Log | None = None,
    ) -> LedgerParts:
        """Return parts that end with their process. ``earlier`` entries count as spent."""
        log = MemoryLog() if log is None else log
        replay = Replay(filter, log, earlier)
        return cls(filter, log, replay, MemoryAnswerLog(replay, answers))

    @functools.cached_property
    def cashier(self) -> Cashier:
        """The only part that issues receipts."""
        return Cashier(self.filter, self.log, self.replay)


class Balance:
    """The amounts that a ledger has spent and has left, as its filter says."""

    _parts: LedgerParts

    @property
    def budget(self) -> Budget:
        """The budget that the ledger enforces."""
        return self._parts.filter.budget

    @property
    def spent(self) -> float:
        """The sum of all costs so far, in the budget's currency."""
        return self._parts.filter.spent

    @property
    def remaining(self) -> float:
        """The amount left in the budget's currency, for all events except planned noise."""
        return self._parts.filter.remaining

    @property
    def limit(self) -> str:
        """The name of what ``remaining`` is left of: the budget, or the cap of an analyst."""
        return self._parts.filter.limit

    @property
    def slack(self) -> float:
        """The part of the reserved δ that is left."""
        return self._parts.filter.slack

    @property
    def set_aside(self) -> float:
        """The reserved δ, spent or not: the ``slack`` that the ledger was made with."""
        return self._parts.filter.set_aside

    @property
    def standing(self) -> Standing:
        """The exact spending so far."""
        return self._parts.filter.standing

    @property
    def spent_epsilon(self) -> float:
        """The ε, at the budget's δ, of the recorded events: the smallest of three bounds (see ``Filter``).

        The promise to the people in the data is the budget, not this number.
        """
        return self._parts.filter.spent_epsilon

    def dp_event(self) -> Any:
        """Return the recorded events in dp-accounting's form (see ``conversion.dp_events``).

        Returns
        -------
        dp_accounting.DpEvent

        Example
        -------
        >>> event = hr.Accountant(hr.Budget(1.0, 1e-6)).dp_event()
        """
        return self._parts.filter.dp_event()

    def affords(self, *planned: Event) -> bool:
        """Return True if all these events together would pass the filter.

        Parameters
        ----------
        *planned : Event
            The draws that are planned.

        Returns
        -------
        bool

        Example
        -------
        >>> from hedgerow.privacy.events import Laplace
        >>> hr.Accountant(hr.Budget(1.0, 0.0)).affords(Laplace(sensitivity=1.0, scale=2.0, grid=1.0))
        True
        """
        return self._parts.filter.affords(*planned)


class Ledger(Balance, NotCopyable):
    """A record of all that was charged and released, which admits or refuses each charge before anything is drawn.

    Entries are public, except for values that are drawn and not yet recorded. A ledger can resume from earlier entries,
    which count as spent (see ``Replay``).

    A ledger exists once. Copying returns the same object, pickling and use in a forked process are refused, and threads
    take turns.
    """

    opened_by_other_version = False
    """True if another version of the package made the entries of the opening. Its fit may be another hypothesis."""

    earlier_fit: str | None = None
    """The version of the fit that the ledger was begun with, where this session has another."""

    blocks: Sequence[str] = ()
    """The names of the appended blocks, in order, if the ledger records them."""

    def __init__(self, parts: LedgerParts) -> None:
        """Compose a ledger of its parts."""
        self._parts, self._turn = parts, parts.turn

    # The record

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event charged so far, in order."""
        return tuple(event for entry in self._parts.log.entries for event in entry.events)

    def entries(self) -> Sequence[Entry]:
        """Return every entry so far, in order.

        Returns
        -------
        sequence of Entry

        Example
        -------
        >>> hr.Accountant(hr.Budget(1.0, 1e-6)).entries()
        ()
        """
        return tuple(self._parts.log.entries)

    def authors(self) -> Sequence[tuple[str, float]]:
        """Return, for every entry, the analyst who was billed and the time in seconds since 1970.

        Returns nothing for a ledger in memory, which keeps neither.

        Returns
        -------
        sequence of tuples

        Example
        -------
        >>> hr.Accountant(hr.Budget(1.0, 1e-6)).authors()
        ()
        """
        return ()

    @property
    def charged(self) -> float:
        """The sum of what this process has charged since it opened the ledger, in the budget's currency."""
        return self._parts.bills.total

    @property
    def answer_log(self) -> AnswerLog:
        """The answers that were given. Keep no reference to it: opening a session may replace it."""
        return self._parts.answer_log

    def answers(self) -> Sequence[tuple[Any, Any]]:
        """Return every answered question with its answer, in order.

        Returns
        -------
        sequence of tuples

        Example
        -------
        >>> hr.Accountant(hr.Budget(1.0, 1e-6)).answers()
        ()
        """
        return self._parts.answer_log.answers()

    @property
    def snapshots(self) -> Snapshots:
        """The store of the engine's state, if it is kept."""
        return self._parts.snapshots

    # Turns

    def exclusively(self) -> contextlib.AbstractContextManager[None]:
        """Return a context manager that holds the ledger's lock: no other thread charges or asks meanwhile.

        A mechanism holds the lock for a whole question, so that nothing comes between the steps in which it reads,
        compares, charges, draws and remembers. The context can be nested. A forked process is refused.

        Returns
        -------
        context manager

        Example
        -------
        >>> ledger = hr.Accountant(hr.Budget(1.0, 1e-6))
        >>> with ledger.exclusively():
        ...     spent = ledger.spent
        """
        return self._turn

    def committing_once(self) -> contextlib.AbstractContextManager[None]:
        """Return a context manager that holds the lock, and at its end waits for the disk once for all it encloses.

        Charges, draws and records have the order that they always have. Nothing that was drawn may leave the process
        before the context has ended, and nothing at all if it ends with an exception.

        Returns
        -------
        context manager

        Example
        -------
        >>> ledger = hr.Accountant(hr.Budget(1.0, 1e-6))
        >>> with ledger.committing_once():
        ...     pass
        """
        return self.exclusively()

    @contextlib.contextmanager
    def on_behalf_of(self, analyst: str) -> Iterator[None]:
        """Hold the lock and bill to this analyst meanwhile. A ledger in memory keeps no names, so it ignores them.

        Parameters
        ----------
        analyst : str
            The name to bill.

        Yields
        ------
        None

        Example
        -------
        >>> with hr.Accountant(hr.Budget(1.0, 1e-6)).on_behalf_of("ana"):
        ...     pass
        """
        with self.exclusively():
            yield

    def share_turn(self, other: Ledger) -> None:
        """Share one lock with another ledger, so that threads take turns in both together.

        Parameters
        ----------
        other : Ledger
            The ledger whose lock is shared.

        Example
        -------
        >>> hr.Accountant(hr.Budget(1.0, 1e-6)).share_turn(hr.Accountant(hr.Budget(1.0, 1e-6)))
        """
        self._turn.share(other._turn)

    @contextlib.contextmanager
    def closed(self) -> Iterator[None]:
        """Refuse every charge while a function sees private values, so that its behavior cannot show in the ledger.

        Yields
        ------
        None

        Example
        -------
        >>> with hr.Accountant(hr.Budget(1.0, 1e-6)).closed():
        ...     pass
        """
        with self.exclusively(), self._parts.cashier.alone():
            yield

    # Charges, draws, records

    @contextlib.contextmanager
    def asking(self, question: Any = None) -> Iterator[Bill]:
        """Open the bill of one question.

        It collects all charges until the context ends, and their entries name the question.

        Parameters
        ----------
        question : optional
            The question, noted in the entries.

        Yields
        ------
        Bill

        Example
        -------
        >>> ledger = hr.Accountant(hr.Budget(1.0, 1e-6))
        >>> with ledger.asking("a question") as bill:
        ...     pass
        >>> bill.cost
        0.0
        """
        with self.exclusively(), self._parts.bills.open_bill(question) as bill:
            yield bill

    @contextlib.contextmanager
    def spending_at_most(self, most: float) -> Iterator[Bill]:
        """Hold the lock, and refuse charges meanwhile that exceed ``most`` together.

        It limits a purchase to the price that was agreed: some prices are those of a first step.

        Parameters
        ----------
        most : float
            The largest sum of charges, in the budget's currency.

        Yields
        ------
        Bill

        Example
        -------
        >>> ledger = hr.Accountant(hr.Budget(1.0, 1e-6))
        >>> with ledger.spending_at_most(0.001):
        ...     pass
        """
        with self.exclusively(), self._parts.bills.open_bill(None, most) as bill:
            yield bill

    def charge(
        self, *planned: Event, why: str = "", about: Mapping[str, Any] | None = None, keep: bool = True
    ) -> Receipt:
        """Charge all the events or none, and return the receipt from which to draw them.

        What was charged is spent, drawn or not.

        Parameters
        ----------
        *planned : Event
            The draws.
        why : str
            The purpose, for the entry.
        about : mapping, optional
            Public facts about the draws, for the entry.
        keep : bool
            False if the drawn values are not to be recorded, because they are large and useless by themselves. The
            caller then records the result with ``record``.

        Returns
        -------
        Receipt

        Raises
        ------
        BudgetExceeded
            If the events cost more than is left.

        Example
        -------
        >>> from hedgerow.privacy.events import Laplace
        >>> ledger = hr.Accountant(hr.Budget(1.0, 0.0))
        >>> receipt = ledger.charge(Laplace(sensitivity=1.0, scale=2.0, grid=1.0), why="an example")
        >>> ledger.spent
        0.5
        """
        cashier, bills = self._parts.cashier, self._parts.bills
        costs = cashier.costs(planned)
        tell(lambda: f"{why or 'charging'} · {self.spent / self.budget.total:.0%} of the budget spent")
        with self.exclusively(), cashier.alone():
            bills.require_room(math.fsum(costs))
            receipt = cashier.charge(self, planned, costs, why, about or {}, bills.question, keep)
            bills.add(receipt.number, receipt.cost)
            return receipt

    def record(self, receipt: Receipt, released: Any, private: bool = True) -> None:
        """Record a value that came out of the receipt's draws. From now on the value is public.

        ``private`` is False where the noise came from a seed.

        Parameters
        ----------
        receipt : Receipt
            The receipt of the charge.
        released : object
            The value. It is public from now on.
        private : bool
            False if the noise came from a seed.

        Raises
        ------
        InvalidInput
            If the receipt is of another ledger, or was recorded before.

        Example
        -------
        >>> from hedgerow.privacy.events import Laplace
        >>> ledger = hr.Accountant(hr.Budget(1.0, 0.0))
        >>> receipt = ledger.charge(Laplace(sensitivity=1.0, scale=2.0, grid=1.0), keep=False)
        >>> ledger.record(receipt, 12.0)
        """
        with self.exclusively():
            self._parts.cashier.record(receipt, released, private)

    def mark_guard_used(self) -> None:
        """Note that an open guard round was compared (see ``AnswerLog.mark_guard_used``).

        Example
        -------
        >>> hr.Accountant(hr.Budget(1.0, 1e-6)).mark_guard_used()
        """
        self._parts.answer_log.mark_guard_used()

    # Opening a session

    def opening(self) -> contextlib.AbstractContextManager[None]:
        """Return a context manager for opening a session: no other process opens or charges meanwhile.

        Returns
        -------
        context manager

        Example
        -------
        >>> with hr.Accountant(hr.Budget(1.0, 1e-6)).opening():
        ...     pass
        """
        return contextlib.nullcontext()

    def begin_replay(self) -> None:
        """Begin an opening. Charges that an interrupted opening paid for are replayed, and not billed again.

        Example
        -------
        >>> ledger = hr.Accountant(hr.Budget(1.0, 1e-6))
        >>> ledger.begin_replay()
        >>> ledger.end_replay()
        ()
        """
        with self.exclusively():
            self._parts.replay.begin()

    def end_replay(self) -> tuple[Entry, ...]:
        """End the opening and return the earlier entries that it did not replay. From now on every charge is new.

        Returns
        -------
        tuple of Entry

        Example
        -------
        >>> ledger = hr.Accountant(hr.Budget(1.0, 1e-6))
        >>> ledger.begin_replay()
        >>> ledger.end_replay()
        ()
        """
        with self.exclusively():
            return self._parts.replay.end()

    # Other blocks and other processes (docs/proofs/blocks.md)

    def of_block(self, name: str, place: int, budget: Budget, binding: Callable[[], Any]) -> Ledger:
        """Make or resume the account of an appended block of rows.

        Parameters
        ----------
        name : str
            The name of the block.
        place : int
            The number of the block, in the order of appending.
        budget : Budget
            The budget of the block.
        binding : callable
            A function that returns the record by which a durable ledger recognizes the block's table.

        Returns
        -------
        Ledger

        Example
        -------
        >>> ledger = hr.Accountant(hr.Budget(1.0, 1e-6))
        >>> ledger.of_block("february", 2, hr.Budget(0.5, 1e-6), binding=lambda: None).budget.epsilon
        0.5
        """
        return Accountant(budget)

    def sync(self) -> None:
        """Read the charges of other processes now, before a charge that must succeed, and not only at that charge.

        Example
        -------
        >>> hr.Accountant(hr.Budget(1.0, 1e-6)).sync()
        """

    def retry_when_behind(self, learn: Callable[[Sequence[Entry]], None], ask: Callable[[], Asked]) -> Asked:
        """Ask, and ask again if other processes have charged in the meantime.

        Parameters
        ----------
        learn : callable
            A function that learns from the entries of other processes.
        ask : callable
            The question, without arguments.

        Returns
        -------
        object
            The result of ``ask``.

        Example
        -------
        >>> hr.Accountant(hr.Budget(1.0, 1e-6)).retry_when_behind(lambda entries: None, lambda: 3)
        3
        """
        return ask()

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

    Example
    -------
    >>> ledger = hr.Accountant(hr.Budget(1.0, 1e-6))
    >>> ledger.spent, ledger.budget.epsilon
    (0.0, 1.0)
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
        super().__init__(LedgerParts.in_memory(Filter(budget, slack, standing), earlier, answers, MemoryLog(book)))


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
