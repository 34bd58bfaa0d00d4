"""The durable ledger: a filter, a log, a replay and a log of answers over one store, which other processes share.

Every charge is on the disk before its receipt is issued, and every release before it is seen (see ``log``). Questions
that wait for the disk together (``committing_once``) have their charges in the database before their receipts, and
everything on the disk before any answer is given.

A question takes its turn with its first charge. It then finds out whether other processes have charged since. If so,
the engine learns what their entries taught, and the question is asked again (``retry_when_behind``). The charges of
other processes are in the filter's sums before any charge.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from hedgerow.errors import InvalidInput
from hedgerow.ledger import account, replay, snapshots
from hedgerow.ledger import spending as views
from hedgerow.ledger.binding import Binding
from hedgerow.ledger.caps import ALL, EVERYBODY, Author, CappedFilter, Caps
from hedgerow.ledger.chain import Head
from hedgerow.ledger.log import StoredLog
from hedgerow.ledger.shared_chain import SharedChain, require_version
from hedgerow.ledger.snapshots import StoredContent, StoredSnapshots
from hedgerow.ledger.store import Store
from hedgerow.ledger.stored_answers import AnswerIndex, StoredAnswerLog
from hedgerow.ledger.turns import QuestionTurn
from hedgerow.ledger.urls import store_at
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Event
from hedgerow.privacy.filter import Filter
from hedgerow.privacy.ledger import Ledger, LedgerParts
from hedgerow.privacy.log import Entry
from hedgerow.privacy.process import OwnersLock
from hedgerow.privacy.receipt import Bill, OpenBills, Receipt
from hedgerow.privacy.replay import Replay

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


class Behind(Exception):
    """Raised when other processes have charged since the engine last looked, so that it must learn from them first."""


@dataclass(frozen=True, kw_only=True)
class StoredParts(LedgerParts):
    """The parts of a durable ledger. ``changed`` are entries of the snapshot that were released since."""

    log: StoredLog
    answer_log: StoredAnswerLog
    snapshots: StoredSnapshots
    chain: SharedChain
    caps: Caps
    changed: tuple[Entry, ...]

    @classmethod
    def read(cls, budget: Budget, slack: float, chain: SharedChain, bills: OpenBills, turn: OwnersLock) -> StoredParts:
        """Read everything of one block, starting from its last snapshot, and leave the chain at its end."""
        found = StoredContent(chain.store, budget, chain.block)
        chain = chain.at(found.head, found.blocks)
        caps, index = Caps(budget, chain.author, found.caps, found.by), AnswerIndex(found.known)
        filter = CappedFilter(budget, slack, found.standing, caps)
        log = StoredLog(chain, found.book, found.charges, found.incomplete, filter, caps, index)
        earlier = Replay(filter, log, found.entries)
        return cls(
            filter=filter,
            log=log,
            replay=earlier,
            answer_log=StoredAnswerLog(chain, index, earlier, bills, turn),
            snapshots=StoredSnapshots(chain, log, filter, caps, found.taken_at, found.state),
            bills=bills,
            turn=turn,
            chain=chain,
            caps=caps,
            changed=found.changed,
        )

    def read_again(self) -> StoredParts:
        """Return the parts of what the store has now, under the same lock and for the same questions."""
        return StoredParts.read(self.filter.budget, self.filter.set_aside, self.chain, self.bills, self.turn)


class Durable(Ledger):
    """A ledger in a ``Store``. A store that has lines is resumed, with its sums, entries, answers and caps."""

    _parts: StoredParts

    def __init__(
        self,
        store: Store,
        budget: Budget,
        slack: float = 0.0,
        earlier: Sequence[Entry] = (),
        *,
        binding: Binding | None = None,
        who: str = EVERYBODY,
        block: tuple[str, int] | None = None,
    ) -> None:
        """Make or resume a ledger.

        ``earlier`` are entries with which a new ledger begins. ``block`` is the name and place of a block that is
        appended to the store's first one.
        """
        Filter(budget, slack)  # refuses a wrong budget before anything is written
        if who == ALL:
            raise InvalidInput(
                f"An analyst must have another name than {ALL!r}. Found the name of the cap of all. Rename it."
            )
        author = Author(account.checked_name("analyst", who), is_opening=binding is not None)
        place = 0
        store.create()
        with store.turn():
            store.make_room()
            if block is not None:
                place = account.place_block(store, *block, budget, binding)
            elif store.head() == Head():  # a truncated file may have a line 0
                account.begin(store, budget, slack, earlier, binding)
            record = account.require_account(store, place, budget, slack, binding)
            self.opened_by_other_version = account.is_of_other_version(record)
            self.earlier_fit = account.other_fit(record, binding)
            chain = SharedChain(store, place, author, is_bound=binding is not None)
            super().__init__(StoredParts.read(budget, slack, chain, OpenBills(), OwnersLock()))
        self._store, self._question_turn, self._can_learn = store, QuestionTurn(store), False

    # Blocks

    def of_block(self, name: str, place: int, budget: Budget, binding: Callable[[], Any]) -> Durable:
        """Make or resume the ledger of an appended block in the same store, under the same lock."""
        with self.exclusively():
            made = Durable(
                self._store, budget, binding=binding(), who=self._parts.chain.author.name, block=(name, place)
            )
            made.share_turn(self)
            self._parts.log.catch_up()
            return made

    @property
    def blocks(self) -> Sequence[str]:  # type: ignore[override]
        """The names of the appended blocks, in order."""
        return tuple(self._parts.chain.blocks)

    # Opening

    @contextlib.contextmanager
    def opening(self) -> Iterator[None]:
        """Hold the turn while a session is opened, and take a snapshot at the end.

        No other process opens or charges meanwhile.
        """
        with self._store.turn():
            chain = self._parts.chain
            if self._store.head().number != chain.head.number:  # another process has written since
                if chain.is_bound:
                    require_version(account.account_of(self._store, chain.block)[1])
                self._parts = self._parts.read_again()
            with self.exclusively():
                yield
                self._parts.chain.author.is_opening = False
                if self._parts.snapshots.is_due(after=1):
                    self._parts.snapshots.take()

    def end_replay(self) -> tuple[Entry, ...]:
        """End the opening and return the entries that the engine has yet to learn from."""
        return (*self._parts.changed, *super().end_replay())

    @property
    def who(self) -> str:
        """The analyst on whose behalf charges are made now. While a session is being opened, this is everybody."""
        return self._parts.chain.author.who

    # Questions and charges

    @contextlib.contextmanager
    def on_behalf_of(self, analyst: str) -> Iterator[None]:
        """Hold the lock and bill to this analyst meanwhile, under the caps of the analyst and of the project."""
        with self.exclusively():
            author = self._parts.chain.author
            before, author.name = author.name, account.checked_name("analyst", analyst)
            try:
                yield
            finally:
                author.name = before

    @contextlib.contextmanager
    def committing_once(self) -> Iterator[None]:
        """Hold the lock, keep the turn from the first charge on, and wait for the disk once, at the end.

        Every line is written when it always is, but without waiting for the disk. Lines so written survive the
        process: a charge that precedes its draw is counted whenever the process ends. A power cut may lose the last
        lines. What was drawn since has left the process by then in no way: the answers are written last, with the
        wait, and given after it. If the end fails, nothing may be given, and nothing more is charged.
        """
        with self.exclusively(), self._question_turn.question(self._keep_state):
            self._parts.chain.begin_group()
            try:
                yield
            finally:
                self._parts.log.end_group()
                self._parts.answer_log.write_left_over()

    @contextlib.contextmanager
    def asking(self, question: Any = None) -> Iterator[Bill]:
        """Open the bill of one question. The turn, if the question took it, ends with the question."""
        with self.exclusively():
            self._parts.answer_log.write_left_over()
            with super().asking(question) as bill, self._question_turn.question(self._keep_state):
                yield bill

    def _keep_state(self) -> None:
        """Take a snapshot now and then."""
        if self._parts.snapshots.is_due(after=snapshots.EVERY):
            self._parts.snapshots.take()

    def charge(
        self, *planned: Event, why: str = "", about: Mapping[str, Any] | None = None, keep: bool = True
    ) -> Receipt:
        """Charge the events within the turn, after counting what other processes charged."""
        with self.exclusively(), self._question_turn.charge():
            self._learn_first()
            return super().charge(*planned, why=why, about=about, keep=keep)

    def sync(self) -> None:
        """Take the turn and read the charges of other processes now."""
        with self.exclusively(), self._question_turn.charge():
            self._learn_first()

    def _learn_first(self) -> None:
        """Catch up, and raise Behind if the engine should learn from new entries before it goes on."""
        self._parts.log.catch_up()
        if self._parts.log.has_news and self._can_learn:
            raise Behind(self)

    def retry_when_behind(self, learn: Callable[[Sequence[Entry]], None], ask: Callable[[], T]) -> T:
        """Return ``ask()``.

        If other processes have charged, ``learn`` from their entries and ask again within a turn.
        """
        self._can_learn = True
        try:
            return ask()
        except Behind as behind:
            if behind.args[0] is not self:  # raised by another block, whose own retry surrounds this one
                raise
        finally:
            self._can_learn = False
        with self._store.turn():
            self._parts.log.catch_up()
            learn(self._parts.log.take_news())
            return ask()

    def refresh(self) -> None:
        """Count what other processes have charged. The engine learns from their entries with the next charge."""
        with self.exclusively():
            self._parts.log.catch_up()

    def flush(self, *, durable: bool = True) -> None:
        """Write the answers that wait. Unless ``durable``, do not wait for the disk."""
        self._parts.answer_log.flush(durable=durable)

    # Caps: the shares of the budget that analysts and projects may spend

    def cap(self, who: str, epsilon: float) -> None:
        """Set the largest part of the budget that ``who`` may spend, as an ε at the budget's δ. A cap can be set again.

        A cap holds in each block separately, because nobody is in two blocks. A session of ``who="heart/ana"`` is under
        the cap of the project ``"heart"``, which all analysts of the project share, and under its own cap. All analysts
        together are under the cap of ``"*"``.
        """
        amount = dataclasses.replace(self.budget, epsilon=epsilon).total
        if amount > self.budget.total or not account.checked_name("who", who):
            raise InvalidInput(
                f"A cap must have a name, and be at most the budget's epsilon = {self.budget.epsilon:g}. Found "
                f"{epsilon:g} for {who!r}. Give less."
            )
        with self.exclusively(), self._store.turn():
            self._parts.log.catch_up()
            self._parts.log.write(replay.CAP, replay.body(who=who, amount=amount, epsilon=float(epsilon)))
            self._parts.caps.amounts[who] = amount

    @property
    def caps(self) -> dict[str, float]:
        """The caps that are set, in the budget's currency, by the name of the analyst or project."""
        self.refresh()
        return dict(self._parts.caps.amounts)

    def is_capped(self, who: str) -> bool:
        """Return True if an analyst is under a cap of its own, and not only under that of a project."""
        self.refresh()
        return who in self._parts.caps.amounts

    def spending(self, days: float | None = None) -> pd.DataFrame:
        """Return how much each analyst charged on each day (UTC), in the budget's currency.

        ``days`` limits the table to the last so many days.
        """
        return views.spending(self._store, self.budget, days, self._parts.chain.block)

    def authors(self) -> Sequence[tuple[str, float]]:
        """Return who was billed for each entry of this block, and when."""
        return views.authors(self._store, self._parts.chain.block)

    # Checks

    @property
    def identity(self) -> str:
        """The hash of the first line, which no other ledger has."""
        return next(self._store.lines(upto=1)).hash

    @property
    def head(self) -> Head:
        """The last line, which fixes all lines before it.

        Noted elsewhere, it later reveals whether lines were cut off.
        """
        return self._store.head()

    def verify(self, head: Head | str | None = None) -> Head:
        """Check every line, and check that the lines up to ``head`` are still there.

        Returns the current head. Raises LedgerBroken if a check fails.
        """
        return views.verify(self._store, head)

    def export(self) -> Iterator[str]:
        """Yield every line as JSON, with its hash."""
        return views.export_lines(self._store)

    def close(self) -> None:
        """Flush and close the ledger."""
        with self.exclusively():
            self.flush()
            self._store.close()


def opened(
    url: str, budget: Budget, *, slack: float = 0.0, who: str = EVERYBODY, binding: Binding | None = None
) -> Durable:
    """Make or resume the ledger at a URL.

    ``hr.open(…, ledger=url)`` calls this with a binding to its table. Without a binding, for fits of ``hr.erm``,
    earlier charges count as spent and every charge is a new one.

    Parameters
    ----------
    url : str
        The URL, such as ``sqlite:///people.ledger`` or ``postgresql://user@host/database``.
    budget : Budget
        The budget. It must be the ledger's own if the ledger exists.
    slack : float
        The part of δ reserved for events that have a δ of their own.
    who : str
        The analyst on whose behalf charges are made.
    binding : Binding, optional
        The table and the options that the ledger belongs to.

    Returns
    -------
    Durable

    Raises
    ------
    InvalidInput
        If the ledger was made with another budget, slack, table, option or version.
    LedgerUnavailable
        If the database cannot be read or written.
    """
    ledger = Durable(store_at(url), budget, slack, who=who, binding=binding)
    if binding is None:
        ledger.end_replay()
    return ledger
