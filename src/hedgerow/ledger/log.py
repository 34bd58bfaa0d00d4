"""The log of a durable ledger: every charge and every release is a line in a database before anything follows from it.

charge   one line, committed; from here on it is spent, whatever happens
draw     from the receipt
record   one line with the released value, committed; only then does the draw return
answer   one line, committed before the answer to a question that paid is given

Several questions may wait for the disk together (``Durable.committing_once``): their lines are committed in this
order, but only the last one, with all their answers, waits for the disk. The answers are given after that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from hedgerow.errors import LedgerUnavailable
from hedgerow.ledger import replay
from hedgerow.ledger.caps import Caps
from hedgerow.ledger.chain import Line
from hedgerow.ledger.shared_chain import SharedChain
from hedgerow.ledger.store import Moved
from hedgerow.ledger.stored_answers import AnswerIndex
from hedgerow.privacy.filter import Filter
from hedgerow.privacy.log import Entry

TRIALS = 1000  # attempts to append a line; an attempt fails only if another process wrote a line meanwhile


@final
class StoredLog:
    """Entries in a store, which other processes may write too. What they charged is counted in the filter and the caps.

    ``index`` has the answers that wait: they are written before the next line.
    """

    def __init__(
        self,
        chain: SharedChain,
        book: replay.Book,
        charges: int,
        incomplete: dict[int, Entry],
        filter: Filter,
        caps: Caps,
        index: AnswerIndex,
    ) -> None:
        self._chain, self._book, self._filter, self._caps, self._index = chain, book, filter, caps, index
        self._charges, self.incomplete = charges, incomplete
        self._news: dict[int, None] = {}

    @property
    def entries(self) -> Sequence[Entry]:
        """Every entry so far, in order. Those before the last snapshot are read when one of them is first needed."""
        return self._book

    @property
    def charges(self) -> int:
        """The number of charges that are in the store."""
        return self._charges

    # This process

    def require_ready(self) -> None:
        """Refuse to charge while the clock is far behind the ledger's last line."""
        self._chain.require_clock()

    def append(self, entry: Entry) -> None:
        """Write a new charge. It is refused if another process has charged since the last look."""
        self._book.append(entry)
        self._commit(replay.CHARGE, replay.written_charge(entry), alone=True)
        self._follow(entry)
        self._charges += 1
        self._caps.count(self._chain.author.who, entry)

    def update(self, entry: Entry) -> None:
        """Write the last released value of an entry."""
        self._book[entry.number] = entry
        self._commit(replay.RELEASE, replay.written_release(entry))
        self._follow(entry)

    def _commit(self, kind: str, body: str, *, alone: bool = False) -> None:
        """Write a line, after whose failure nothing more is charged."""
        try:
            self.write(kind, body, alone=alone)
        except BaseException:
            self._chain.fail()  # it is unknown whether the line was written; the next opening will see
            raise

    def write(self, kind: str, body: str, *, alone: bool = False, snapshot: str | None = None) -> None:
        """Append one line, and before it the answers that wait to be written.

        With ``alone`` the line is refused if another process has charged since the last look.
        """
        for _ in range(TRIALS):
            said = [(kind, body)]
            if self._index.waits and kind != replay.ANSWERS and not self._chain.is_off_disk:
                said.insert(0, (replay.ANSWERS, self._index.body))
            try:
                self._chain.append(said, snapshot)
                if any(each == replay.ANSWERS for each, _ in said):
                    self._index.forget_waiting()
                return
            except Moved:
                before = self._charges
                self.catch_up()
                if alone and self._charges != before:
                    break
        raise LedgerUnavailable(
            "Only the session that has the turn must charge. Found a charge of another process meanwhile, so the turn "
            "was lost. Nothing was released. Open the session again."
        )

    def end_group(self) -> None:
        """Write the answers of a group of questions, and wait until every line is on the disk."""
        self._chain.end_group()
        if self._chain.is_off_disk:
            self._chain.require_whole()
            self._commit(replay.ANSWERS, self._index.body)

    # Other processes

    def catch_up(self) -> None:
        """Read the lines that other processes, or the ledgers of other blocks, have written since the last look."""
        for kind, line in self._chain.unread():
            match kind:
                case replay.CHARGE:
                    self._count_charge(line)
                case replay.RELEASE:
                    self._take_release(line)
                case replay.ANSWERS:
                    self._index.read(line)
                case replay.CAP:
                    self._caps.read(line)

    def _count_charge(self, line: Line) -> None:
        """Count a charge of another process. It is spent here too."""
        entry = replay.read_charge(line, self._charges)
        if entry.number >= len(self._book):
            self._filter.count_earlier(entry)
        self.restore(entry)
        self._charges += 1
        self._caps.count(line.who, entry)
        self._apply_remote(entry)

    def _take_release(self, line: Line) -> None:
        """Take over what another process released."""
        number = replay.released_number(line, self._charges)
        entry = replay.with_release(self.incomplete.get(number) or self._book[number], line)
        self.restore(entry)
        self._apply_remote(entry)

    def _apply_remote(self, entry: Entry) -> None:
        """Keep an entry for the engine, which has yet to learn from it."""
        self._news[entry.number] = None
        self._follow(entry)

    def restore(self, entry: Entry) -> None:
        """Take over an entry that is recorded already: a new one, or a known one with more released values."""
        if entry.number < len(self._book):
            self._book[entry.number] = entry
        else:
            self._book.append(entry)

    def _follow(self, entry: Entry) -> None:
        """Keep track of the entries whose values are not all recorded."""
        if entry.is_complete:
            self.incomplete.pop(entry.number, None)
        else:
            self.incomplete[entry.number] = entry

    @property
    def has_news(self) -> bool:
        """True if other processes have charged or released since ``take_news``."""
        return bool(self._news)

    def take_news(self) -> list[Entry]:
        """Return the entries of other processes that the engine has yet to learn from."""
        news = [self._book[number] for number in sorted(self._news)]
        self._news.clear()
        return news
