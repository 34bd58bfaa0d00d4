"""The durable ledger: every charge is on the disk before its receipt is issued, and every release before it is seen.

    charge   one line, committed; from here on it is spent, whatever happens
    draw     from the receipt
    record   one line with the released value, committed; only then does the draw return
    answer   one line, committed before the answer to a question that paid is given

An answer that cost nothing is a function of the entries before it. It is written together with the next charge, which
is the first event that could change it, or when very many answers are waiting. Until then the same question would be
answered in the same way, so a crash loses nothing. An answer that rests on a comparison with a guard's open round
cannot be worked out again. It is written before it is given, the answers of one ``ask_all`` together, but without
waiting for the disk.

Other processes. A question takes its turn with its first charge. It then finds out whether other processes have charged
since. If so, the engine learns what their entries taught, and the question is asked again (``following``). The charges
of other processes are in the filter's sums before any charge.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from hedgerow._json import parse, spaced
from hedgerow.errors import BudgetExceeded, InvalidInput, LedgerBroken, LedgerUnavailable
from hedgerow.ledger import answer_log, replay
from hedgerow.ledger import spending as views
from hedgerow.ledger.binding import Binding, bound_record, digest, require_other, require_same, version_now
from hedgerow.ledger.chain import Head, Line, checked
from hedgerow.ledger.store import Moved, Store
from hedgerow.ledger.urls import store_at
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Event, Planned
from hedgerow.privacy.ledger import FIT, Bill, Entry, Ledger, Receipt, Standing
from hedgerow.serialize import LedgerTerms, decode, decode_state, encode, encode_state, loads
from hedgerow.universe.universe import Universe

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
TOGETHER = 50_000  # at most this many free answers wait in memory for the next charge
CELLS = 1_000_000  # at most this many numbers do the waiting answers have in all
EVERY = 200  # take a snapshot after this many charges
CLOCK = 10_000_000  # microseconds by which the clock may be behind the ledger's last line
TRIALS = 1000  # attempts to append a line; an attempt fails only if another process wrote a line meanwhile
OF_ALL = (replay.CAP, replay.BLOCK, replay.ACCEPTED)  # kinds of lines that concern every block
EVERYBODY = ""  # the analyst on whose behalf a session is opened: what is learned then serves everybody


class Behind(Exception):
    """Raised when other processes have charged since the engine last looked, so that it must learn from them first."""


class Durable(Ledger):
    """A ledger in a ``Store``. A store that has lines is resumed, with its sums, entries, answers and caps."""

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
        super().__init__(budget, slack)  # refuses a wrong budget before anything is written
        self._store, self._who = store, _name("who", who)
        self._is_open, self._is_bound, self._block = binding is None, binding is not None, 0
        store.create()
        with store.turn():
            store.make_room()
            if block is not None:
                self._block = self._placed(*block, budget, binding)
            elif store.head() == Head():  # a truncated file may have a line 0
                self._begin(budget, slack, earlier, binding)
            self._require_account(budget, slack, binding)
            self._take_up(budget, slack)

    def _placed(self, name: str, place: int, budget: Budget, binding: Binding | None) -> int:
        """Return the number of a block, which is its place. Write a new block down once; a known one is found again."""
        assert binding is not None
        lines = list(self._store.lines(kinds=(replay.BLOCK,)))
        names = [replay.block_in(line) for line in lines]
        due = names[place - 1] if place <= len(names) else None
        if place > len(names) + 1 or (due or name) != name or name in names[: place - 1]:
            raise InvalidInput(
                f"Blocks must be appended once, in the order of the ledger. Found {name!r}, where "
                f"{'a new one' if due is None else repr(due)} is next. Append the blocks that the ledger has, and then "
                "new ones."
            )
        if due is None:
            for earlier in range(place):
                require_other(account_of(self._store, earlier)[0]["table"], binding)
            said = self._account(budget, 0.0, binding, block=_name("block", name))
            self._store.append([(now(), EVERYBODY, replay.BLOCK, said)], after=self._store.head())
        return place

    def of_block(self, name: str, place: int, budget: Budget, binding: Callable[[], Any]) -> Durable:
        """Make or resume the ledger of an appended block in the same store, under the same lock."""
        with self.exclusively():
            made = Durable(self._store, budget, binding=binding(), who=self._who, block=(name, place))
            made.share_turn(self)
            self._catch_up()
            return made

    @property
    def blocks(self) -> Sequence[str]:  # type: ignore[override]
        """The names of the appended blocks, in order."""
        return tuple(self._blocks)

    def _of(self, line: Line) -> str:
        """Return the kind of a line that concerns this block, or an empty text for a line of another block."""
        replay.require_known([line.kind], len(self._blocks))
        kind, block = replay.kind_and_block(line.kind)
        return kind if block == self._block or kind in OF_ALL else ""

    def _take_up(self, budget: Budget, slack: float) -> None:
        """Read everything in the store, starting from its last snapshot."""
        loaded = _Loaded(self._store, budget, self._block)
        super().__init__(budget, slack, loaded.entries, standing=loaded.standing, book=loaded.book)
        self._book, self._changed, self._state = loaded.book, loaded.changed, loaded.state
        self._head, self._by, self._caps, self._known = loaded.head, loaded.by, loaded.caps, loaded.known
        self._incomplete, self._charges, self._kept_at = loaded.incomplete, len(loaded.book), loaded.kept_at
        self._blocks = loaded.blocks
        self._fresh: list[tuple[Any, Any]] = []
        self._fresh_cells = 0
        self._questions: list[Bill] = []
        self._news: dict[int, None] = {}
        self._has_turn = self._can_learn = self._is_charging = self._is_broken = False
        self._has_compared = self._is_at_once = False
        self._state_now: Callable[[], Any] | None = None
        self._looked_at: tuple[int, dict[Any, answer_log.Note]] = (0, {})

    # Opening

    def _begin(self, budget: Budget, slack: float, earlier: Sequence[Entry], binding: Binding | None) -> None:
        """Write the first lines of a new ledger: its account, and the earlier entries."""
        said = [self._account(budget, slack, binding)]
        kinds = [replay.ACCOUNT]
        for entry in earlier:
            said.append(replay.written_charge(views.without_releases(entry)))
            kinds.append(replay.CHARGE)
            for so_far in views.releases_of(entry):
                said.append(replay.written_release(so_far))
                kinds.append(replay.RELEASE)
        self._store.append(
            [(now(), EVERYBODY, kind, body) for kind, body in zip(kinds, said, strict=True)], after=Head()
        )

    def _account(self, budget: Budget, slack: float, binding: Binding | None, **more: str) -> str:
        """Return the body of an account line."""
        return replay.body(
            account=encode(LedgerTerms(budget, slack)),
            table=None if binding is None else bound_record(binding),
            options=None if binding is None else dict(binding.options),
            version=version_now(),
            **more,
        )

    def _require_account(self, budget: Budget, slack: float, binding: Binding | None) -> None:
        """Refuse another account, declaration, version or table than the ledger's own."""
        record, wrote = account_of(self._store, self._block)
        self.opened_by_other_version = record["version"] != version_now()
        account = decode("account", record["account"], LedgerTerms)
        if account.budget != budget:
            raise InvalidInput(
                f"budget must be that of the ledger. Found another: {budget!r}, where it was {account.budget!r}. "
                "Pass the budget it was opened with; another needs a new ledger, to be added to this one's."
            )
        if account.slack != slack:
            raise InvalidInput(
                f"slack must be that of the ledger. Found {slack!r}, where it was {account.slack!r}. Pass what it was "
                "opened with."
            )
        if (binding is None) != (record["table"] is None):
            raise InvalidInput(
                "A ledger must be resumed as it was made: with a table, or without. Found the other. Use hr.open for a "
                "ledger with a table, and hedgerow.ledger.opened for one without."
            )
        if binding is not None:
            require_same(record["table"], record["options"], wrote, binding)

    @contextlib.contextmanager
    def opening(self) -> Iterator[None]:
        """Hold the turn while a session is opened, and take a snapshot at the end.

        No other process opens or charges meanwhile.
        """
        with self._store.turn():
            if self._store.head().number != self._head.number:  # another process has written since
                if self._is_bound:
                    self._require_version(account_of(self._store, self._block)[1])
                self._take_up(self.budget, self.set_aside)
            with self.exclusively():
                yield
                self._is_open = True
                if self._charges > self._kept_at:
                    self._keep_state()

    def rest(self) -> tuple[Entry, ...]:
        """End the opening and return the entries that the engine has yet to learn from."""
        return (*self._changed, *super().rest())

    def remembered(self) -> Any | None:
        """Return the engine's state in the last snapshot, or None. ``rest`` then returns the entries since."""
        return self._state

    keeps_state = True

    def remember(self, state: Callable[[], Any]) -> None:
        """Register the function that returns the engine's state for snapshots."""
        self._state_now, self._state = state, None

    @property
    def who(self) -> str:
        """The analyst on whose behalf charges are made now. While a session is being opened, this is everybody."""
        return self._who if self._is_open else EVERYBODY

    # Questions and charges

    @contextlib.contextmanager
    def asking(self, question: Any = None) -> Iterator[Bill]:
        """Open the bill of one question. The turn, if the question took it, ends with the question."""
        with super().asking(question) as bill:
            # An answer whose write failed must be written before it can be repeated.
            if self._has_compared and not self._is_at_once:
                self.flush(durable=False)
            self._questions.append(bill)
            try:
                yield bill
            finally:
                self._questions.pop()
                if not self._questions and self._has_turn:
                    self._has_turn = False
                    with contextlib.suppress(LedgerUnavailable):  # the answer is written, and a snapshot can wait
                        if self._charges >= self._kept_at + EVERY:
                            self._keep_state()
                    self._store.end_turn()

    def charge(
        self, *planned: Event, why: str = "", about: Mapping[str, Any] | None = None, keep: bool = True
    ) -> Receipt:
        """Charge the events within the turn, after counting what other processes charged."""
        with self.exclusively(), self._at_turn():
            self._learn_first()
            self._is_charging = True
            try:
                return super().charge(*planned, why=why, about=about, keep=keep)
            finally:
                self._is_charging = False

    def look(self) -> None:
        """Take the turn and read the charges of other processes now."""
        with self.exclusively(), self._at_turn():
            self._learn_first()

    def _learn_first(self) -> None:
        """Catch up, and raise Behind if the engine should learn from new entries before it goes on."""
        self._catch_up()
        if self._news and self._can_learn:
            raise Behind(self)

    def following(self, learn: Callable[[Sequence[Entry]], None], ask: Callable[[], T]) -> T:
        """Return ``ask()``.

        If other processes have charged, ``learn`` from their entries and ask again within a turn.
        """
        self._can_learn = True
        try:
            return ask()
        except Behind as behind:
            if behind.args[0] is not self:  # raised by another block, whose own ``following`` surrounds this one
                raise
        finally:
            self._can_learn = False
        with self._store.turn():
            self._catch_up()
            news = [self._book[number] for number in sorted(self._news)]
            self._news.clear()
            learn(news)
            return ask()

    @contextlib.contextmanager
    def _at_turn(self) -> Iterator[None]:
        """Hold the turn for this charge. Within a question, keep it until the question ends."""
        if self._questions and not self._has_turn:
            self._store.take_turn()
            self._has_turn = True
        with self._store.turn():
            yield

    def refresh(self) -> None:
        """Count what other processes have charged. The engine learns from their entries with the next charge."""
        with self.exclusively():
            self._catch_up()

    def _require_whole(self) -> None:
        """Refuse to go on after a failed write."""
        if self._is_broken:
            raise LedgerUnavailable(
                "A session must be opened again after its ledger failed in mid-write. Found one that was not. Open it "
                "again: what was charged stays spent."
            )

    def _catch_up(self) -> None:
        """Read the lines that other processes have written since the last look."""
        self._require_whole()
        head = self._store.head()
        if head.number < self._head.number or (head.number == self._head.number and head.hash != self._head.hash):
            # Charges since the copy was made are known here, but not to sessions that open the copy.
            self._is_broken = True
            raise LedgerUnavailable(
                f"A ledger must have the lines that were written to it. Found another end: line {self._head.number} is "
                "missing or differs, as after a copy was restored. Nothing was released. Bring back the ledger that "
                "this session wrote to."
            )
        if head.number == self._head.number:
            return
        for line in checked(self._store.lines(self._head.number), self._head):
            self._heard(line)
            self._head = line.head

    def _heard(self, line: Line) -> None:
        """Apply a line that another process, or the ledger of another block, has written."""
        kind = self._of(line)
        if kind == replay.CHARGE:
            entry = replay.read_charge(line, self._charges)
            self.take_in(entry)
            self._charges += 1
            self._by[line.who] = self._by.get(line.who, Fraction(0)) + _of_a_cap(self.budget, entry)
        elif kind == replay.RELEASE:
            number = replay.released_number(line, self._charges)
            entry = replay.with_release(self._incomplete.get(number) or self._book[number], line)
            self.take_in(entry)
        elif kind == replay.ANSWERS:
            self._known.update(dict.fromkeys(answer_log.names_in(line.body), line.number))
            return
        elif kind == replay.CAP:
            self._caps.update(cap_in(line, self.budget))
            return
        elif kind == replay.BLOCK:
            self._blocks.append(replay.block_in(line))
            return
        elif kind == replay.ACCEPTED:
            accepted = replay.accepted_in(line)
            if self._is_bound:
                self._require_version(accepted)
            return
        else:
            return
        self._news[entry.number] = None
        self._follow(entry)

    def _require_version(self, accepted: str) -> None:
        """Refuse to charge beside another version: each would believe its own fit of what both measured."""
        if accepted != version_now():
            raise LedgerUnavailable(
                f"A ledger must be used by one version at a time. Found that its owner accepted hedgerow {accepted[:40]}, where this session has "
                f"{version_now()}. Nothing was released. Open the session again with that version."
            )

    def _follow(self, entry: Entry) -> None:
        """Keep track of the entries whose values are not all recorded."""
        if entry.is_complete:
            self._incomplete.pop(entry.number, None)
        else:
            self._incomplete[entry.number] = entry

    def _keep(self, entry: Entry) -> None:
        """Write a charge or its newly released value to the store."""
        is_new = entry.number == self._charges
        try:
            if is_new:
                self._write(replay.CHARGE, replay.written_charge(entry), alone=True)
            else:
                self._write(replay.RELEASE, replay.written_release(entry))
        except BaseException:
            self._is_broken = True  # it is unknown whether the line was written; the next opening will see
            raise
        self._follow(entry)
        if is_new:
            self._charges += 1
            self._by[self.who] = self._by.get(self.who, Fraction(0)) + _of_a_cap(self.budget, entry)

    def _write(self, kind: str, body: str, *, alone: bool = False, snapshot: str | None = None) -> None:
        """Append one line, and before it the answers that wait to be written.

        With ``alone`` the line is refused if another process has charged since the last look.
        """
        for _ in range(TRIALS):
            own = kind if kind == replay.CAP else replay.of_block(kind, self._block)
            said = [(now(), self.who, own, body)]
            if self._fresh:
                said.insert(0, (now(), self.who, self._answers_kind, answer_log.written(self._fresh)))
            try:
                self._head = self._store.append(said, self._head, snapshot)
                self._are_written()
                return
            except Moved:
                before = self._charges
                self._catch_up()
                if alone and self._charges != before:
                    break
        raise LedgerUnavailable(
            "Only the session that has the turn must charge. Found a charge of another process meanwhile, so the turn "
            "was lost. Nothing was released. Open the session again."
        )

    def _require_clock(self) -> None:
        """Refuse to charge while the clock is far behind the ledger's last line."""
        behind = self._head.time - now()
        if behind > CLOCK:
            raise LedgerUnavailable(
                f"The clock must not go back. Found it {behind / 1e6:.0f} s before the ledger's last line. Nothing was "
                "released. Set the clock, and ask again."
            )

    # Answers

    @property
    def _answers_kind(self) -> str:
        return replay.of_block(replay.ANSWERS, self._block)

    def note(self, question: Any, answer: Any) -> None:
        """Store an answer.

        An answer that was paid for, or that rests on a guard's comparison, is written at once. Others wait.
        """
        with self.exclusively():
            self._fresh.append((question, answer))
            self._fresh_cells += np.size(answer.value)
            paid = any(bill.charges for bill in self._questions)
            many = len(self._fresh) >= TOGETHER or self._fresh_cells >= CELLS
            if paid or many or (self._has_compared and not self._is_at_once):
                self.flush(durable=paid)

    def mark_guard_used(self) -> None:
        """Note that the next answer cannot be worked out again, so that it is written before it is given."""
        self._has_compared = True

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Collect the answers of one ``ask_all``, and write them together before any of them is given."""
        with self.exclusively():
            self._is_at_once = True
            try:
                yield
            finally:
                self._is_at_once = False
                if self._has_compared:  # write before any of the answers is given
                    self.flush(durable=False)

    def flush(self, *, durable: bool = True) -> None:
        """Write the answers that wait. Unless ``durable``, do not wait for the disk."""
        with self.exclusively():
            if not self._fresh:
                return
            if self._has_compared:
                self._require_whole()
            if self._is_broken:  # these answers can be worked out again
                return
            said = (now(), self.who, self._answers_kind, answer_log.written(self._fresh))
            quick = None if durable else self._store.append_quickly(said, self._head)
            head = quick or self._store.append([said], durable=durable)
            self._are_written()
            if head.number == self._head.number + 1:
                self._head = head

    def _are_written(self) -> None:
        """Forget the waiting answers once they are written."""
        self._fresh.clear()
        self._fresh_cells, self._has_compared = 0, False

    def recall(self, question: Any) -> Any | None:
        """Return the stored answer to a question, or None. It is read from its line when it is first needed."""
        name = answer_log.name_of(question) if self._known and not self.has_other_sessions else None
        number = self._known.get(name or "")
        if number is None:
            return None
        if self._looked_at[0] != number:
            self._looked_at = number, {note["name"]: note for note in answer_log.notes_in(self._line(number).body)}
        note = self._looked_at[1].get(name)
        return None if note is None else answer_log.estimate_in(note)

    def _line(self, number: int) -> Line:
        """Return a line as it follows from the one before it."""
        found = list(self._store.lines(after=number - 2, upto=number))
        if [line.number for line in found] != [number - 1, number]:
            raise LedgerBroken(
                f"A ledger must have the lines that were written to it. Found none at {number}. Restore the ledger from a copy."
            )
        return next(checked(found[1:], found[0].head))

    def answers(self) -> Sequence[tuple[Any, Any]]:
        """Return every answer of every process, in order."""
        universe = universe_of(self._store)
        lines = self._store.lines(kinds=(self._answers_kind,))
        found = (
            []
            if universe is None
            else [answer_log.answer_in(note, universe) for line in lines for note in answer_log.notes_in(line.body)]
        )
        return (*found, *self._fresh)

    # Caps: the shares of the budget that analysts and projects may spend

    def cap(self, who: str, epsilon: float) -> None:
        """Set the largest part of the budget that ``who`` may spend, as an ε at the budget's δ. A cap can be set again.

        A cap holds in each block separately, because nobody is in two blocks. A session of ``who="heart/ana"`` is under
        the cap of the project ``"heart"``, which all analysts of the project share, and under its own cap.
        """
        amount = dataclasses.replace(self.budget, epsilon=epsilon).total
        if amount > self.budget.total or not _name("who", who):
            raise InvalidInput(
                f"A cap must have a name, and be at most the budget's epsilon = {self.budget.epsilon:g}. Found "
                f"{epsilon:g} for {who!r}. Give less."
            )
        with self.exclusively(), self._store.turn():
            self._catch_up()
            self._write(replay.CAP, replay.body(who=who, amount=amount, epsilon=float(epsilon)))
            self._caps[who] = amount

    @property
    def remaining(self) -> float:
        """The amount left: the least of what is left of the budget and of the caps that the session is under."""
        return min(super().remaining, self._left())

    def _left(self) -> float:
        """Return what is left of the tightest cap, or infinity without a cap."""
        return min((float(max(Fraction(0), cap - spent)) for _, cap, spent in self._capped()), default=float("inf"))

    def _capped(self) -> list[tuple[str, Fraction, Fraction]]:
        """Return each cap that the session is under: its name, its amount, and how much of it is spent.

        The cap of a project holds for all of its analysts together.
        """
        parts = self.who.split("/")
        found = []
        for name in ("/".join(parts[: i + 1]) for i in range(len(parts))):
            if name in self._caps:
                inside = (spent for who, spent in self._by.items() if who == name or who.startswith(f"{name}/"))
                found.append((name, Fraction(self._caps[name]), sum(inside, Fraction(0))))
        return found

    def _admitted(self, planned: tuple[Event, ...], costs: list[float]) -> float:
        """Return the cost of the events, or refuse them, also by the caps."""
        if self._is_charging:  # a new charge; a replayed charge is already written, and ``affords`` writes nothing
            self._require_clock()
        cost = super()._admitted(planned, costs)
        more = sum(map(Fraction, costs), Fraction(0))
        for name, cap, spent in self._capped():
            # The price of planned noise is for the whole budget, while a cap is an ε by itself.
            if any(isinstance(event, Planned) for event in planned):
                raise BudgetExceeded(
                    f"Planned noise must be charged on everybody's behalf. Found it under the cap of {name!r}. Charge "
                    "the noise as it is."
                )
            if spent + more > cap * (1 + FIT):
                raise BudgetExceeded(
                    f"cost must be at most {self.budget.currency} = {max(0.0, float(cap - spent)):.4g} (what is left "
                    f"of {name!r}'s {float(cap):.4g}). Found {cost:.4g}. Ask for a looser error, or have the cap "
                    "raised."
                )
        return cost

    def spending(self, days: float | None = None) -> pd.DataFrame:
        """Return how much each analyst charged on each day (UTC), in the budget's currency.

        ``days`` limits the table to the last so many days.
        """
        return views.spending(self._store, self.budget, days, self._block)

    # Checks

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
        return views.verified(self._store, head)

    def export(self) -> Iterator[str]:
        """Yield every line as JSON, with its hash."""
        return views.exported(self._store)

    def _keep_state(self) -> None:
        """Take a snapshot of the spending and the engine's state, so that neither must be rebuilt from all entries."""
        if self._state_now is None or self._news or self._is_broken:
            return
        state = self._state_now()
        if state is None:
            return
        standing = self.standing
        text = spaced(
            {
                "v": replay.FORMAT,
                "version": version_now(),
                "entries": self._charges,
                "spent": str(standing.spent),
                "failing": str(standing.failing),
                "planned": str(standing.planned),
                "counts": [[encode(event), count] for event, count in standing.counts.items()],
                "by": {who: str(spent) for who, spent in self._by.items()},
                "incomplete": [
                    [
                        replay.written_charge(views.without_releases(e)),
                        [replay.written_release(r) for r in views.releases_of(e)],
                    ]
                    for e in self._incomplete.values()
                ],
                "state": encode_state(state),
            }
        )
        self._write(replay.SNAPSHOT, replay.body(entries=self._charges, sha256=digest(text)), snapshot=text)
        self._kept_at = self._charges

    def close(self) -> None:
        """Flush and close the ledger."""
        with self.exclusively():
            self.flush()
            self._store.close()


def _of_a_cap(budget: Budget, entry: Entry) -> Fraction:
    """Return how much an entry takes of a cap.

    A cap is an ε by itself. The price of planned noise is for the whole budget, so under a cap planned noise counts
    with its full ρ.
    """
    costs = (e.continuous_rho if isinstance(e, Planned) else budget.cost(e) for e in entry.events)
    return sum(map(Fraction, costs), Fraction(0))


class _Loaded:
    """The content of a stored ledger, from its last snapshot and all lines since."""

    def __init__(self, store: Store, budget: Budget, block: int = 0) -> None:
        def own(kind: str) -> str:
            return replay.of_block(kind, block)

        self.by: dict[str, Fraction] = {}
        self.incomplete: dict[int, Entry] = {}
        self.standing, self.state, self.head, older = Standing(), None, Head(), 0
        head, record = _snapshot(store, own(replay.SNAPSHOT))
        appended = list(store.lines(kinds=(replay.BLOCK,)))
        self.blocks = [replay.block_in(line) for line in appended]
        if block:
            self.head = appended[block - 1].head  # no line before this one concerns the block
        # another version may store the state differently
        if record is not None and (record.get("v"), record.get("version")) == (replay.FORMAT, version_now()):
            self.head, self.state, older = head, decode_state(record["state"]), record["entries"]
            counts = {decode("event", event, Event): count for event, count in record["counts"]}
            planned = Fraction(record.get("planned", "0"))
            self.standing = Standing(Fraction(record["spent"]), Fraction(record["failing"]), counts, planned)
            self.by = {who: Fraction(spent) for who, spent in record["by"].items()}
            for charged, released in record["incomplete"]:
                entry = loads(charged, Entry)
                for line in released:
                    entry = replay.with_release(entry, Line(0, 0, "", replay.RELEASE, line, ""))
                self.incomplete[entry.number] = entry
        lines = list(checked(store.lines(self.head.number), self.head))
        upto = self.head.number
        self.kept_at = older
        self.book = replay.Book(
            older,
            lambda: replay.entries_in(store.lines(kinds=(own(replay.CHARGE), own(replay.RELEASE)))),
            dict(self.incomplete),
        )
        since: dict[int, Entry] = {}
        charges = older
        for line in lines:
            if line.kind == own(replay.CHARGE):
                entry = replay.read_charge(line, charges)
                charges += 1
                self.by[line.who] = self.by.get(line.who, Fraction(0)) + _of_a_cap(budget, entry)
            elif line.kind == own(replay.RELEASE):
                number = replay.released_number(line, charges)
                entry = replay.with_release(since[number] if number in since else self.book[number], line)
            else:
                continue
            since[entry.number] = entry
        for number, entry in since.items():
            if number < older:
                self.book[number] = entry
                self.incomplete.pop(number, None)
            if not entry.is_complete:
                self.incomplete[number] = entry
        self.changed = tuple(entry for number, entry in sorted(since.items()) if number < older)
        self.entries = [entry for number, entry in sorted(since.items()) if number >= older]
        self.head = lines[-1].head if lines else self.head
        early = [] if upto == 0 else store.lines(kinds=(own(replay.ANSWERS), replay.CAP), upto=upto)
        self.known: dict[str, int] = {}  # the line of each answer, which is read when it is needed
        self.caps: dict[str, float] = {}
        for line in (*early, *lines):
            if line.kind == own(replay.ANSWERS):
                self.known.update(dict.fromkeys(answer_log.names_in(line.body), line.number))
            elif line.kind == replay.CAP:
                self.caps.update(cap_in(line, budget))


def _snapshot(store: Store, own: str) -> tuple[Head, dict[str, Any] | None]:
    """Return the last snapshot of this kind and the head of its line, or nothing if there is none.

    The snapshot must be at its place, and its hash must be the one in the chain.
    """
    found: tuple[Head, dict[str, Any] | None] = Head(), None
    for number, kind in store.snapshots():
        if replay.kind_and_block(kind)[0] == replay.SNAPSHOT and kind != own:
            continue  # the snapshot of another block
        text = store.snapshot(number)
        near = list(store.lines(after=max(0, number - 2), upto=number))
        *_, line = [None] if len(near) < 2 else [near[0], *checked(near[1:], near[0].head)]
        if line is None or line.kind != own or replay.record_in(line, sha256=str)["sha256"] != digest(text):
            raise LedgerBroken(
                f"The snapshot at line {number} must be the one that was taken there. Found another. Restore the "
                "ledger from a copy; without its snapshots it is read from its first line."
            )
        found = line.head, parse(text)
    return found


def now() -> int:
    """Return the time in microseconds since 1970, UTC."""
    return time.time_ns() // 1000


def cap_in(line: Line, budget: Budget) -> dict[str, float]:
    """Return the name and amount of the cap in a line.

    The cap is an ε, and each block converts it by its own budget.
    """
    record = replay.record_in(line, who=str, epsilon=(int, float))
    capped = dataclasses.replace(budget, epsilon=min(float(record["epsilon"]), budget.epsilon))
    return {str(record["who"]): capped.total}


def account_of(store: Store, block: int = 0) -> tuple[dict[str, Any], str]:
    """Return the account record of the ledger or of an appended block, and the version that the owner accepted last."""
    line = next(iter(store.lines(upto=1)), None)
    if line is None or line.kind != replay.ACCOUNT:
        raise LedgerBroken(
            "A ledger must begin with its account. Found something else. Restore the ledger from a copy."
        )
    next(checked([line], Head()))
    appended = list(store.lines(kinds=(replay.BLOCK,)))
    replay.require_known(store.kinds(), len(appended))
    if block:
        line = appended[block - 1]
    record = replay.record_in(line, account=dict, table=(dict, NoneType), options=(dict, NoneType), version=str)
    accepted = [replay.accepted_in(line) for line in store.lines(kinds=(replay.ACCEPTED,), after=line.number)]
    return record, (accepted or [record["version"]])[-1]


def universe_of(store: Store) -> Universe | None:
    """Return the universe that the ledger's session declared, or None for a ledger without a table."""
    options = account_of(store)[0]["options"]
    return None if options is None else loads(options["universe"], Universe)


def _name(role: str, text: str) -> str:
    """Refuse a name that is not a short printable text."""
    if not isinstance(text, str) or len(text) > 200 or not text.isprintable():
        raise InvalidInput(
            f"{role} must be a name of up to 200 printable characters. Found another. Give a short text."
        )
    return text


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
        ledger.rest()
    return ledger
