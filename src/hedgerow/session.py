"""A session answers any number of adaptively chosen questions about one sensitive table under one privacy budget.

A table that grows is a sequence of blocks. Each block has its own budget and its own engine (docs/blocks.md). A session
answers questions about all of its blocks together.

The session binds a question to the universe, recognizes a repeated question, passes a new one to the engine of its
profile, and reports the cost of each answer. Everything that the session stores or shows has been released and billed.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hedgerow._checks import require_name
from hedgerow._memory import limit_memory
from hedgerow._renamed import renamed_methods
from hedgerow._threads import one_thread
from hedgerow.answer import Answer
from hedgerow.answering.answer_cache import AnswerCache, AnswerHistory
from hedgerow.answering.askable import Askable, bind_questions
from hedgerow.answering.blocks import FIRST, Appending, Block, block_range
from hedgerow.answering.over_time import answer_over_time, series_of
from hedgerow.answering.released_session import ReleasedSession
from hedgerow.answering.row_questions import RowQuestions, answer_of_rows
from hedgerow.answering.scaling import Scale, bar_of_answer, bar_of_fraction, require_scale, scaled_answer
from hedgerow.answering.spending import Spending
from hedgerow.data.csv_file import Csv
from hedgerow.data.source import DataSource
from hedgerow.engine.interface import Engine
from hedgerow.engine.multi_block import BlockPart, MultiBlockEngine
from hedgerow.engine.over_time import Series
from hedgerow.engine.public import PublicAnswers
from hedgerow.errors import InvalidInput
from hedgerow.privacy.accounts import Accounts, Bills
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Bill, Ledger
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.privacy.process import NotCopyable
from hedgerow.query.bound import Bound
from hedgerow.query.counts import OverTime, Query, Resolution
from hedgerow.query.row_statistic import RowStatistic
from hedgerow.release_file.publishing import Publishing
from hedgerow.universe.universe import Universe

if TYPE_CHECKING:
    from hedgerow.engine.sampling import RowSampling


@renamed_methods(over="select_blocks", flip="sample_yes_no", flips="sample_yes_no_stream")
@renamed_methods(spelling=True, generalization="generalisation")
class Session(RowQuestions, Spending, Publishing, Askable, NotCopyable):
    """Questions and answers about one sensitive table. Made by ``hr.open`` or ``hr.release``.

    Threads may share a session: they take turns. A fork of the process cannot ask: two copies could spend one budget.

    Example
    -------
    >>> with hr.open("people.csv", universe=universe, budget=hr.Budget(1.0, 1e-6)) as session:
    ...     answer = session.ask(hr.count(sex="F"))
    """

    def __init__(
        self,
        data: DataSource,
        ledger: Ledger,
        noise: Noise,
        engine: Engine,
        beta: float = 0.05,
        sampling: RowSampling | None = None,
        *,
        block: str = FIRST,
        appending: Appending | None = None,
        limit: int | None = None,
    ) -> None:
        """Combine a table, its ledger and an engine into a session. Use ``hr.open`` instead of calling this.

        ``engine`` answers questions about the coded table, ``sampling`` those about raw rows. The session caches,
        scales and reports answers. ``beta`` is the probability with which any error bar may fail. ``block`` is the name
        of the first table, and ``appending`` makes further blocks. ``limit`` is the memory, in bytes, that a question
        may use.
        """
        self._limit = limit
        first = Block(block, data, ledger, engine, AnswerCache(engine, ledger.answer_log), beta, sampling)
        self._begin([first], noise, appending, is_whole=True)

    def _begin(self, blocks: list[Block], noise: Noise, appending: Appending | None, *, is_whole: bool) -> None:
        """Set the fields that a session and a view of some of its blocks have in common."""
        self._blocks, self._noise, self._appending, self._is_whole = blocks, noise, appending, is_whole
        self._history = AnswerHistory()
        self._settle()

    def _settle(self) -> None:
        """Choose the engine and the ledger: those of the only block, or a combination over several blocks."""
        blocks, self._data = self._blocks, self._blocks[0].data
        self._beta = math.fsum(block.beta for block in blocks)
        self._engine: Engine
        self._ledger: Ledger | Accounts
        if len(blocks) == 1:
            (one,) = blocks
            self._engine, self._ledger, self._cache, self._sampling = one.engine, one.ledger, one.cache, one.sampling
            return
        names, ledgers = [block.name for block in blocks], [block.ledger for block in blocks]
        self._ledger = Accounts(names, ledgers, [block.engine.resume for block in blocks])
        self._engine = MultiBlockEngine([BlockPart(block.engine, block.cache, block.ledger) for block in blocks])
        self._cache, self._sampling = AnswerCache(self._engine, self._ledger.answer_log), None

    @contextlib.contextmanager
    def _exclusively(self) -> Iterator[None]:
        """Hold the ledger exclusively and run linear algebra on one thread."""
        with self._take_turn(), one_thread:
            yield

    @contextlib.contextmanager
    def _take_turn(self, query: Query | None = None) -> Iterator[Bill | Bills]:
        """Take a question's turn, in the ledgers of all blocks that exist once the turn has come.

        Another thread may have appended a block while this one waited, so the ledger is checked again after locking.
        """
        while True:
            ledger = self._ledger
            with ledger.exclusively():
                if ledger is self._ledger:
                    with contextlib.nullcontext(Bill()) if query is None else ledger.asking(query) as bill:
                        yield bill
                    return

    @contextlib.contextmanager
    def on_behalf_of(self, analyst: str) -> Iterator[None]:
        """Bill questions to this analyst meanwhile, as ``analyst=`` of ``hr.open`` does for a whole session.

        Threads wait for each other: one session serves several analysts one after the other.

        Parameters
        ----------
        analyst : str
            Name in the ledger, such as ``"ana"`` or, with a project, ``"heart/ana"``.

        Yields
        ------
        None
            Nothing; use it in a ``with`` statement.

        Example
        -------
        >>> with session.on_behalf_of("ana"):
        ...     answer = session.ask(hr.count(sex="M"))
        """
        with contextlib.ExitStack() as stack:
            for block in self._blocks:
                stack.enter_context(block.ledger.on_behalf_of(analyst))
            yield

    # Blocks

    def append(
        self,
        source: Any,
        *,
        block: str | None = None,
        budget: Budget | None = None,
        table: str | None = None,
        csv: Csv | None = None,
        ledger: Ledger | None = None,
    ) -> Session:
        """Append new rows as a block with its own budget. Later questions are about all blocks.

        Nobody may be in two blocks: the promise is that neighbors differ in one row of one block (docs/blocks.md). The
        universe and the options are those of the opening. The block's hypothesis starts from what the opening of the
        previous block released. All appended blocks together share a second β.

        Parameters
        ----------
        source, table, csv
            The new rows, as in ``hr.open``.
        block : str, optional
            Name of the block. Default: its number.
        budget : Budget, optional
            Budget of the block. Default: that of the first block. Another one may differ in ε and δ only.
        ledger : Ledger, optional
            Earlier ledger of this block, to resume it in a session whose ledgers are in memory. A durable ledger holds
            the ledgers of all blocks: the same calls in the same order resume, and bill nothing twice.

        Returns
        -------
        Session
            This session.

        Raises
        ------
        InvalidInput
            If the session was not opened on a table, the name is taken, or the budget is of another kind.

        Example
        -------
        >>> session.append("february.csv", block="february")  # doctest: +SKIP
        """
        if self._appending is None:
            raise InvalidInput(
                "Rows must be appended to a session that was opened on a table. Found "
                f"{'a release, which is finished' if self._is_whole else 'a view of some of its blocks'}. Use "
                "hr.open(…).append(…)."
            )
        with limit_memory(self._limit), self._exclusively():  # no other thread can append a block of the same name now
            name = str(len(self._blocks) + 1) if block is None else block
            require_name("block", name)
            if name in self.blocks:
                raise InvalidInput(f"block must be a new name. Found {name!r}, which the session has. Choose another.")
            options = {"budget": budget, "table": table, "csv": csv, "ledger": ledger}
            self._blocks.append(self._appending(self._blocks, name, source, **options))
            self._settle()
        return self

    @property
    def blocks(self) -> dict[str, Block]:
        """Blocks by name, in order: each with its ``rows``, ``budget``, ``ledger``, ``spent`` and ``remaining``."""
        return {block.name: block for block in self._blocks}

    def select_blocks(self, first: str, last: str | None = None) -> Session:
        """Return a view of this session that answers about one block, or about a range of blocks.

        Parameters
        ----------
        first : str
            Name of the block, or of the first block of the range.
        last : str, optional
            Name of the last block of the range. Default: ``first``.

        Returns
        -------
        Session
            It shares the ledgers of this session.

        Raises
        ------
        InvalidInput
            If the session has no block of this name.

        Example
        -------
        >>> block.select_blocks("january").ask(hr.count(smoker=True)).source
        'hypothesis'
        """
        view = Session.__new__(Session)
        view._limit, view.draft_cost = self._limit, self.draft_cost
        view._begin(self._blocks[block_range(list(self.blocks), first, last)], self._noise, None, is_whole=False)
        return view

    def public_view(self) -> ReleasedSession:
        """Return a view that answers from released values alone, and charges nothing whatever is asked.

        It also knows what was bought before. Give it to a program that may ask and may not spend.

        Returns
        -------
        ReleasedSession
            It shares the lock of this session.
        """
        return ReleasedSession(self, self._engine.public, self._ledger.answer_log, self._limit, self._beta)

    def close(self) -> None:
        """Write what a durable ledger has not written yet, and close the connection to its database.

        Example
        -------
        >>> session = hr.open("people.csv", universe=universe, budget=hr.Budget(1.0, 1e-6))
        >>> session.close()
        """
        for block in self._blocks:
            block.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _require_all(self) -> None:
        """Refuse a question about all rows unless every block that the ledger knows is part of the session."""
        known = self._blocks[0].ledger.blocks
        if self._is_whole and len(known) >= len(self._blocks):
            raise InvalidInput(
                "All blocks of the ledger must be appended before a question about all rows. Found that "
                f"{known[len(self._blocks) - 1]!r} is not. Append it again, which bills nothing twice, or ask about "
                "some blocks: session.select_blocks(first, last)."
            )

    @property
    def universe(self) -> Universe:
        """Public universe that codes the rows."""
        return self._data.universe

    @one_thread
    def ask(
        self,
        query: Query,
        *,
        within: float | None = None,
        scale: Scale = "fraction",
        resolution: Resolution = "values",
    ) -> Answer:
        """Answer a question privately.

        Parameters
        ----------
        query : Query
            The question, made by ``hr.count``, ``hr.marginal``, ``hr.mean``, ``hr.minimize``, and so on.
        within : float, optional
            Error bar to pay for. A direct measurement is bought only if the free bar is wider. The unit is a fraction
            of the rows, or the unit of the values for a mean, a quantile and the like. For a convex question the
            session pays until the bound is at most ``within`` or the budget is used up; the bar of the answer tells
            which.
        scale : {"fraction", "rows"}
            Scale of counts: a fraction of the rows, or a number of rows.
        resolution : {"values", "bins"}
            ``"values"`` asks about the values themselves. ``"bins"`` asks about the coded table, in which a value is
            the representative of its bin.

        Returns
        -------
        Answer

        Raises
        ------
        InvalidInput
            If the question does not fit the universe.
        BudgetExceeded
            If the answer would cost more than is left. The decision is made before the data are read.
        TooLarge
            If the question would need more memory than the limit.
        """
        require_scale(scale)
        self._require_all()
        with limit_memory(self._limit):
            if type(query) is OverTime:
                return self._asked_over_time(query, within, resolution)
            if type(query) is RowStatistic:
                wanted = None if within is None else bar_of_fraction(within)
                return answer_of_rows(query, wanted, scale, self.rows, self._ledger, self._sampling)
            bound = bind_questions([query], self.universe, resolution)[0]
            return self._ask_bound(query, bound, None if within is None else bar_of_answer(within, bound), scale)

    def price(self, query: Query, *, within: float | None = None, resolution: Resolution = "values") -> float:
        """Return the cost, in the budget's currency, of asking ``query`` with this ``within`` now.

        The price is 0 if the free bar is at most ``within``. Only released values are read, and nothing is charged.

        - For a convex question the price is that of measuring the excess risk once. If that turns out too large,
          learning from it costs more.
        - A guard round that a part of the question opens is not included.
        - The theory profile and a release sell no ``within``: the price is 0 if the answer has such a bar anyway (for a
          ratio, judged by the current hypothesis), else the question is refused. The cost of learning from the stream
          is not included.
        - With several blocks the price is that of the block that pays most.
        - A count over time has no ``within``: its price is that of the sums that are due.

        Parameters
        ----------
        query : Query
            The question.
        within : float, optional
            The error that is wanted, as in ``ask``.
        resolution : {"values", "bins"}
            As in ``ask``.

        Returns
        -------
        float
        """
        self._require_all()
        with limit_memory(self._limit), self._exclusively():
            if type(query) is OverTime:
                return self._series(query, within, resolution).price()
            bound = bind_questions([query], self.universe, resolution)[0]
            wanted = bar_of_answer(within, bound)
            return self._cache.price(bound, wanted)

    def _asked_over_time(self, query: OverTime, within: float | None, resolution: Resolution) -> Answer:
        """Answer a count over time: the rows of each block, and of all blocks up to it."""
        with self._take_turn(query) as bill, one_thread:
            series = self._series(query, within, resolution)
            nodes = self._ledger.retry_when_behind(self._engine.resume, series.draw_nodes)
            answer = answer_over_time(query, series, nodes, self._blocks, bill.cost)
            self._history.add(answer)
            return answer

    def _series(self, query: OverTime, within: float | None, resolution: Resolution) -> Series:
        """Bind a count over time to the blocks of this session."""
        return series_of(query, self._blocks, self._noise, within, resolution, is_whole=self._is_whole)

    def _ask_bound(self, query: Query, bound: Bound[Any], within: float | None, scale: Scale) -> Answer:
        """Answer one bound question and bill it."""
        with self._take_turn(query) as bill:
            estimate = self._ledger.retry_when_behind(self._engine.resume, lambda: self._cache.ask(bound, within))
            answer = scaled_answer(query, bound, estimate, bill.cost, scale, self._engine)
            self._history.add(answer)
            return answer

    def _public_answers(self) -> PublicAnswers:
        """Return all that was released, as an object that answers for free."""
        return self._engine.public

    def _generator(self) -> np.random.Generator:
        """Return the source of randomness of synthetic records."""
        return self._noise.generator()

    def _facts(self) -> dict[str, Any]:
        """Return the public facts about the session as a whole."""
        facts = super()._facts()
        if len(self._blocks) > 1:
            facts |= {"blocks": ", ".join(self.blocks), "bars_fail": self._failing}
        return facts

    @property
    def _failing(self) -> float:
        """Probability that any error bar of a session of several blocks fails, however many blocks are appended."""
        return 2 * self._blocks[0].beta if self._is_whole else self._beta

    def __repr__(self) -> str:
        warning = f"NOT PRIVATE: seed {self._noise.seed}, " if isinstance(self._noise, Seeded) else ""
        return f"Session({warning}{self.universe!r}, {self.budget!r}, spent {self.spent:.4g} of {self.budget.total:.4g} {self.budget.currency})"
