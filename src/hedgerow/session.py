"""A session answers any number of adaptively chosen questions about one sensitive table under one privacy budget.

A table that grows is a sequence of blocks. Each block has its own budget and its own engine (docs/blocks.md). A session
answers questions about all of its blocks together.

The session binds a question to the universe, recognizes a repeated question, passes a new one to the engine of its
profile, and reports the cost of each answer. Everything that the session stores or shows has been released and billed.
"""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np

from hedgerow import _html
from hedgerow._checks import number
from hedgerow._memory import KEPT, RECORD, STACKED, at_most, limit_memory, require
from hedgerow._progress import show_bar
from hedgerow._renamed import renamed_methods
from hedgerow._spill import Shelf
from hedgerow._threads import one_thread
from hedgerow._types import Array
from hedgerow.answer import Answer
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.data.csv_file import Csv
from hedgerow.data.source import DataSource
from hedgerow.engine.certificate import Certificate
from hedgerow.engine.interface import Engine
from hedgerow.engine.multi_block import BlockPart, MultiBlockEngine
from hedgerow.engine.over_time import BlockSource, Series, estimate_counts
from hedgerow.errors import InvalidInput
from hedgerow.generalise.statement import PopulationStatement, population_statement
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.accounts import Accounts, Bills
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Bill, Entry, Ledger
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.privacy.process import NotCopyable
from hedgerow.query.bound import Bound, Estimate, Source
from hedgerow.query.composed import ComposedQuestion
from hedgerow.query.counts import BoundMarginal, OverTime, Query, Resolution
from hedgerow.query.counts import bound as bound_to
from hedgerow.query.linear import Linear
from hedgerow.query.row_statistic import RowStatistic
from hedgerow.query.wording import asked_again
from hedgerow.report import Charge, Report
from hedgerow.serialize import question_of
from hedgerow.universe.universe import Universe

if TYPE_CHECKING:
    import pandas as pd

    from hedgerow.engine.sampling import RowSampling
    from hedgerow.sql.result import SqlResult
    from hedgerow.textbook.scq import FlipInterval

Scale = Literal["fraction", "rows"]
# ask_all answers at most this many questions in one vectorized batch
AT_ONCE = 8192
# a report holds at most this many answers: the most recent ones
REPORTED = 1000
# default name of the block that a session is opened on
FIRST = "1"
# a block's name has at most this many characters
LONGEST_NAME = 200
# the answers of a report have at most this many cells in total; the most recent answer is kept whatever its size
REPORTED_CELLS = 1_000_000


@runtime_checkable
class Closes(Protocol):
    """A durable ledger, which holds a database connection that must be closed."""

    def close(self) -> None:
        """Write pending lines and close the connection."""
        ...


class AnswerCache:
    """An engine that caches its answers: a repeat gets its earlier answer, unless it asks for a tighter bar."""

    def __init__(self, engine: Engine, ledger: Ledger | Accounts) -> None:
        self._engine, self._ledger = engine, ledger
        self._known: dict[Hashable, Estimate] = {}
        self._shelf = Shelf()
        self._ready: dict[Hashable, Estimate] = {}

    def __contains__(self, bound: Bound[Any]) -> bool:
        return self._known_of(bound) is not None

    def said(self, bound: Bound[Any], value: Any) -> bool:
        """Return True if ``value`` is the answer that this question was given last."""
        known = self._known_of(bound)
        return known is not None and np.array_equal(known.value, value)

    def keep(self, bound: Bound[Any], estimate: Estimate) -> Estimate:
        """Cache the answer and note it in the ledger. Return the answer unchanged."""
        kept = _with_arrays(estimate, self._shelf.put)  # a copy, because the caller may modify the returned arrays
        self._known[bound.key] = kept
        self._ledger.answer_log.note(bound, kept)
        return estimate

    def prepare(self, queries: Iterable[Linear]) -> None:
        """Compute, in one batch, the free answers to these queries, so that they are ready when the queries are asked.

        If the engine has no free answers, tell it instead which queries come next. An empty list discards what was
        prepared.
        """
        fresh = {query.key: query for query in queries if query not in self}
        free = self._engine.free(list(fresh.values()))
        self._ready = {} if free is None else dict(zip(fresh, free, strict=True))
        self._engine.expect(list(fresh.values()) if free is None else ())

    def ready(self, query: Linear) -> Estimate | None:
        """Return the prepared answer to a query and cache it, or None if there is none."""
        found = self._ready.pop(query.key, None)
        return None if found is None else self.keep(query, found)

    def ask(self, bound: Bound[Any], within: float | None) -> Estimate:
        """Answer a bound question. A question composed of several others is cached as a whole, too."""
        if not isinstance(bound, ComposedQuestion):
            return bound.ask(self, within)
        known = self._kept(bound, within)
        asked: Any = self if within is None else Current(self, self._engine)
        return self.keep(bound, bound.ask(asked, within)) if known is None else known

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Answer a linear query: from the cache, else as prepared, else by the engine."""
        known = self._kept(query, within)
        if known is None and within is None:
            known = self.ready(query)
        return self.keep(query, self._engine.linear(query, within)) if known is None else known

    def hypothesis_answer(self, query: Linear) -> float:
        """Return the hypothesis' answer to a linear query, without an error bar."""
        return self._engine.hypothesis_answer(query)

    @property
    def least_rows(self) -> float:
        """Lower bound on the number of rows."""
        return self._engine.least_rows

    def ratio(self, numerator: Linear, denominator: Linear, within: float | None) -> tuple[Estimate, Estimate]:
        """Ask the engine for numerator and denominator such that their ratio has a bar of ``within``, and cache both.

        Cached answers to the two parts are not used, because their bars may be too wide for the ratio.
        """
        top, bottom = self._engine.ratio(numerator, denominator, within)
        return self.keep(numerator, top), self.keep(denominator, bottom)

    def has(self, bound: Bound[Any], within: float) -> bool:
        """Return True if a cached answer to this question has a bar of at most ``within``."""
        return self._kept(bound, within) is not None

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Answer a whole marginal table, from the cache or by the engine."""
        known = self._kept(table, within)
        return self.keep(table, self._engine.marginal(table, within)) if known is None else known

    def minimize(self, question: BoundMinimize, within: float | None) -> Estimate:
        """Answer a convex question, from the cache or by the engine."""
        known = self._kept(question, within)
        return self.keep(question, self._engine.minimize(question, within)) if known is None else known

    def _kept(self, bound: Bound[Any], within: float | None) -> Estimate | None:
        """Return the cached answer, marked as a repeat, if its bar is at most ``within``; else None."""
        known = self._known_of(bound)
        if known is None or (within is not None and (known.error is None or np.max(known.error) > within * (1 + 1e-9))):
            return None
        return replace(_with_arrays(known, self._shelf.take_copy), source="repeat")

    def _known_of(self, bound: Bound[Any]) -> Estimate | None:
        """Return the cached answer as it is stored, read from the ledger if it is not in memory."""
        known = self._known.get(bound.key)
        if known is None:
            known = self._ledger.answer_log.recall(bound)
            if known is not None:
                self._known[bound.key] = known
        return known


class Current:
    """A view of the cache for questions that pay for a tighter bar.

    For a part that was answered before, the view returns the better of the cached answer and the engine's current free
    answer, because the engine may have learned more since then.
    """

    def __init__(self, memory: AnswerCache, engine: Engine) -> None:
        self._memory, self._engine = memory, engine

    def linear(self, query: Linear, within: float | None) -> Estimate:
        """Return the answer with the smaller bar: the cached one, or the engine's free answer of today."""
        said = self._memory.linear(query, within)
        free = self._engine.free([query]) if said.source == "repeat" else None
        if not free or free[0].error is None or (said.error is not None and said.error <= free[0].error):
            return said
        return free[0]

    def hypothesis_answer(self, query: Linear) -> float:
        """Return the hypothesis' answer to a linear query, without an error bar."""
        return self._engine.hypothesis_answer(query)

    @property
    def least_rows(self) -> float:
        """Lower bound on the number of rows."""
        return self._engine.least_rows

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        """Answer a whole marginal table through the cache."""
        return self._memory.marginal(table, within)


def _with_arrays(estimate: Estimate, kept: Callable[[Array], Array]) -> Estimate:
    """Return the estimate with each of its arrays replaced by ``kept(array)``."""
    arrays: dict[str, Any] = {
        name: kept(value)
        for name in ("value", "error", "resolution", "typical", "coefficients")
        if isinstance(value := getattr(estimate, name), np.ndarray)
    }
    return replace(estimate, **arrays) if arrays else estimate


@dataclass(frozen=True, eq=False)
class Block:
    """One table of a session: its rows, the ledger that pays for releases about them, and the engine that answers."""

    name: str
    data: DataSource = field(repr=False)
    ledger: Ledger
    engine: Engine = field(repr=False)
    memory: AnswerCache = field(repr=False)
    beta: float
    sampling: RowSampling | None = field(default=None, repr=False)

    @property
    def rows(self) -> float:
        """Number of rows n: exact under replace-one, a private estimate under add/remove."""
        return self.engine.rows

    @property
    def budget(self) -> Budget:
        """Privacy budget of this block."""
        return self.ledger.budget

    @property
    def spent(self) -> float:
        """Amount spent so far, in the budget's currency."""
        return self.ledger.spent

    @property
    def remaining(self) -> float:
        """Amount left, in the budget's currency."""
        return self.ledger.remaining


class Appending(Protocol):
    """A function that makes a block from more rows. ``opening`` supplies it."""

    def __call__(self, blocks: Sequence[Block], name: str, source: Any, **options: Any) -> Block: ...


@renamed_methods(over="select_blocks", flip="sample_yes_no", flips="sample_yes_no_stream")
@renamed_methods(spelling=True, generalization="generalisation")
class Session(NotCopyable):
    """Questions and answers about one sensitive table. Made by ``hr.open`` or ``hr.release``.

    Threads may share a session: they take turns. A fork of the process cannot ask, because two copies could spend the
    same budget twice.
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
        first = Block(block, data, ledger, engine, AnswerCache(engine, ledger), beta, sampling)
        self._begin([first], noise, appending, is_whole=True)

    def _begin(self, blocks: list[Block], noise: Noise, appending: Appending | None, *, is_whole: bool) -> None:
        """Set the fields that a session and a view of some of its blocks have in common."""
        self._blocks, self._noise, self._appending, self._is_whole = blocks, noise, appending, is_whole
        self._given: deque[Answer] = deque()
        self._given_cells = 0
        self._settle()

    def _settle(self) -> None:
        """Choose the engine and the ledger: those of the only block, or a combination over several blocks."""
        blocks, self._data = self._blocks, self._blocks[0].data
        self._beta = math.fsum(block.beta for block in blocks)
        self._engine: Engine
        self._ledger: Ledger | Accounts
        if len(blocks) == 1:
            (one,) = blocks
            self._engine, self._ledger, self._memory, self._sampling = one.engine, one.ledger, one.memory, one.sampling
            return
        names, ledgers = [block.name for block in blocks], [block.ledger for block in blocks]
        self._ledger = Accounts(names, ledgers, [block.engine.resume for block in blocks])
        self._engine = MultiBlockEngine([BlockPart(block.engine, block.memory, block.ledger) for block in blocks])
        self._memory, self._sampling = AnswerCache(self._engine, self._ledger), None

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the ledger exclusively and run linear algebra on one thread."""
        with self._asking(), one_thread:
            yield

    @contextlib.contextmanager
    def _asking(self, query: Query | None = None) -> Iterator[Bill | Bills]:
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
        """Bill questions to this analyst meanwhile, as ``who=`` of ``hr.open`` does for a whole session.

        Threads wait for each other: one session serves several analysts one after the other.

        Parameters
        ----------
        analyst : str
            Name in the ledger, such as ``"ana"`` or, with a project, ``"heart/ana"``.
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
        with limit_memory(self._limit), self._alone():  # no other thread can append a block of the same name now
            name = str(len(self._blocks) + 1) if block is None else block
            if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
                raise InvalidInput(
                    f"block must be a name of up to {LONGEST_NAME} printable characters. Found {name!r}. Give a short "
                    "text."
                )
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
        """
        names = list(self.blocks)
        for name in (first, first if last is None else last):
            if name not in names:
                raise InvalidInput(f"A block must be one of {', '.join(names)}. Found {name!r}. Name one of these.")
        start, end = names.index(first), names.index(first if last is None else last)
        if start > end:
            raise InvalidInput(
                f"The first block of a range must come before its last. Found {first!r} after {last!r}. Swap them."
            )
        view = Session.__new__(Session)
        view._limit = self._limit
        view._begin(self._blocks[start : end + 1], self._noise, None, is_whole=False)
        return view

    def close(self) -> None:
        """Write what a durable ledger has not written yet, and close its database connection."""
        for block in self._blocks:
            if isinstance(block.ledger, Closes):
                block.ledger.close()

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
    def ledger(self) -> Ledger:
        """Ledger that records every charge and every release. Only a session of one block has one."""
        if isinstance(self._ledger, Accounts):
            raise InvalidInput(
                "A session must have one block to have a ledger, because each block has its own. Found "
                f"{len(self._blocks)} blocks. Use session.blocks[name].ledger."
            )
        return self._ledger

    @property
    def universe(self) -> Universe:
        """Public universe that codes the rows."""
        return self._data.universe

    @property
    def budget(self) -> Budget:
        """Privacy budget. With several blocks: the promise to a person in any one of them."""
        return self._ledger.budget

    @property
    def private(self) -> bool:
        """True if nobody can know the noise; False if it comes from a ``seed``."""
        return self._noise.private

    @property
    def hypothesis(self) -> Hypothesis:
        """Public model of the data that free answers come from."""
        return self._engine.hypothesis

    @property
    def rows(self) -> float:
        """Number of rows n: exact under replace-one, a private estimate under add/remove."""
        return self._engine.rows

    @property
    def certificate(self) -> Certificate | None:
        """Bounds that hold for all small questions at once, asked or not, or None if nothing was certified.

        ``str(session.certificate)`` states them in words.
        """
        return self._engine.certificate

    @property
    def spent(self) -> float:
        """Amount spent, in the budget's currency: ε if δ = 0, else ρ.

        With several blocks it is the amount of the block that spent most.
        """
        return self._ledger.spent

    @property
    def remaining(self) -> float:
        """Amount left, in the budget's currency.

        With several blocks it is the amount of the block that has the least left.
        """
        return self._ledger.remaining

    @property
    def spent_epsilon(self) -> float:
        """Amount spent, expressed as an ε at the budget's δ."""
        return self._ledger.spent_epsilon

    @property
    def log(self) -> tuple[Entry, ...]:
        """Every billed use of the data so far, in order."""
        return tuple(replace(entry, private=entry.private and self.private) for entry in self._ledger.entries())

    @property
    def generalisation(self) -> PopulationStatement:
        """Bound on the distance between all answers so far and the population, and the theorem that gives it.

        The bound assumes that the rows are independent draws from the population. With several blocks it covers the
        answers about all of them.
        """
        asked = sum(int(np.size(estimate.value)) for _, estimate in self._ledger.answers())
        rows = self.rows if self.budget.neighbours == "replace" else None
        return population_statement(self.budget, rows=rows, asked=asked, sample_beta=self._beta)

    def population_error(self, answer: Answer) -> float | None:
        """Return the error bar of a fraction for the population, or None if no theorem gives one.

        ``generalisation`` states the theorem. With several blocks only answers about all of them are covered: an answer
        given before a block was appended is about fewer rows.

        Parameters
        ----------
        answer : Answer
            An answer of this session.

        Returns
        -------
        float or None
        """
        bound = bound_to(answer.query, self.universe)
        if not bound.is_fraction or (len(self._blocks) > 1 and not self._memory.said(bound, answer.value)):
            return None
        return self.generalisation.error(None if answer.error is None else float(np.max(answer.error)))

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
        _require_scale(scale)
        self._require_all()
        with limit_memory(self._limit):
            if type(query) is OverTime:
                return self._asked_over_time(query, within, resolution)
            if type(query) is RowStatistic:
                return self._asked_of_rows(query, None if within is None else _fraction(within), scale)
            bound = self._bound([query], resolution)[0]
            return self._asked(query, bound, None if within is None else _wanted(within, bound), scale)

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
        with limit_memory(self._limit), self._alone():
            if type(query) is OverTime:
                return self._series(query, within, resolution).price()
            bound = self._bound([query], resolution)[0]
            wanted = _wanted(within, bound)
            return 0.0 if self._memory.has(bound, wanted) else self._engine.price(bound, wanted)

    def sample_yes_no(self, predicate: Query, *, lies: float = 0.05) -> bool:
        """Return the yes/no answer of one random row, which is false with probability ``lies``.

        The session must be opened with ``keep_rows=``.

        Parameters
        ----------
        predicate : Query
            A count, as the yes/no question.
        lies : float
            Probability of a false answer.

        Returns
        -------
        bool
        """
        with self._ledger.asking(predicate):
            return self._of_rows().sample_yes_no(predicate, lies)

    def sample_yes_no_stream(
        self, predicate: Query, *, lies: float = 0.05, at_once: int | None = None
    ) -> Iterator[FlipInterval]:
        """Estimate the fraction of rows that say yes from a stream of flips, more precisely with each flip taken.

        All intervals of one call hold together, so the caller may look at them to decide when to stop. The session
        must be opened with ``keep_rows=``.

        Parameters
        ----------
        predicate : Query
            A count, as the yes/no question.
        lies : float
            Probability that one flip is false.
        at_once : int, optional
            Number of flips between two intervals. Default: a tenth of all flips so far.

        Returns
        -------
        iterator of FlipInterval
            Estimates with their error bars.
        """
        return self._of_rows().count_stream(predicate, lies, at_once)

    def _of_rows(self) -> RowSampling:
        """Return the sampler of raw rows, or refuse if the session keeps none."""
        if self._sampling is None:
            raise InvalidInput(
                "The session must be opened with rows and have one block to answer about raw values. Found no stored "
                "rows. Use hr.open(…, keep_rows=True), or ask hr.count or hr.mean."
            )
        return self._sampling

    def _asked_of_rows(self, query: RowStatistic, within: float | None, scale: Scale) -> Answer:
        """Answer a statistic of raw values by sampling rows."""
        with self._ledger.asking(query) as bill:
            found = self._of_rows().ask(query, within)
            times = self.rows if scale == "rows" else 1.0
            error = None if found.error is None else found.error * times
            return Answer(query, found.value * times, error, found.source, bill.cost)

    def _asked_over_time(self, query: OverTime, within: float | None, resolution: Resolution) -> Answer:
        """Answer a count over time: the rows of each block, and of all blocks up to it."""
        with self._asking(query) as bill, one_thread:
            series = self._series(query, within, resolution)
            nodes = self._ledger.retry_when_behind(self._engine.resume, series.draw_nodes)
            count = len(self._blocks)
            # half of the β of appended blocks, divided over all series and all numbers of blocks that a series may have
            beta = self._blocks[0].beta / 2 / (series.number * (series.number + 1)) / (count * (count + 1))
            values, errors, usual = estimate_counts(nodes, count, query.span, beta)
            labels = (("block", tuple(self.blocks)), ("count", ("in it", "so far")))
            source: Source = "measured" if bill.cost else "repeat"
            answer = Answer(query, values, errors, source, bill.cost, labels, typical=usual)
            self._give(answer)
            return answer

    def _series(self, query: OverTime, within: float | None, resolution: Resolution) -> Series:
        """Bind a count over time to the blocks of this session."""
        if within is not None:
            raise InvalidInput(
                f"within must be left out of a count over time. Found {within!r}. Set its cost by its share: "
                "over_time(share=0.02)."
            )
        if not self._is_whole:
            raise InvalidInput(
                "A count over time must be about all blocks, from the first on. Found some of them. Ask the session "
                "itself."
            )
        columns = [BlockSource(block.data, block.ledger) for block in self._blocks]
        return Series(query, query.counts(self.universe, resolution), columns, self._noise)

    def ask_all(
        self,
        queries: Iterable[Query],
        *,
        scale: Scale = "fraction",
        resolution: Resolution = "values",
        progress: bool | None = None,
    ) -> list[Answer]:
        """Answer many questions in order.

        The answers equal those of asking one by one; they are computed together where that changes nothing. A question
        that does not fit the universe is refused before anything is spent.

        Parameters
        ----------
        queries : iterable of Query
            The questions.
        scale, resolution
            As in ``ask``.
        progress : bool, optional
            Show a progress bar. Default: on a terminal and in a notebook, for more than 1,000 questions.

        Returns
        -------
        list of Answer
        """
        _require_scale(scale)
        if isinstance(queries, Query | str) or not isinstance(queries, Iterable):
            raise InvalidInput(
                f"queries must be a list of questions. Found a {type(queries).__name__}. Put it in a list, or use ask."
            )
        self._require_all()
        asked = list(queries)
        answers: list[Answer] = []
        with limit_memory(self._limit), show_bar("answering", len(asked), progress) as advance:
            # binding comes first, so that a bad question is refused before anything is spent
            bound = self._bound(asked, resolution)
            at_once = at_most(STACKED * max(self.universe.shape), AT_ONCE)
            for start in range(0, len(asked), at_once):
                some = slice(start, start + at_once)
                answers += self._batch(list(zip(asked[some], bound[some], strict=True)), scale, advance)
        return answers

    def _bound(self, queries: Sequence[Query], resolution: Resolution) -> list[Bound[Any]]:
        """Bind questions to the universe, and refuse them if the tables of their parts exceed the memory limit."""
        bound = [bound_to(query, self.universe, resolution) for query in queries]
        cells = sum(each.kept_cells(self.universe) for each in bound if isinstance(each, ComposedQuestion))
        require("The tables of all parts of the questions", cells, KEPT, "Ask fewer at a time, or with coarser bins")
        return bound

    def sql(self, statement: str) -> pd.DataFrame:
        """Run a SELECT on the table ``data`` and return its rows, with the errors of each aggregate beside it.

        Each aggregate has two more columns: its guaranteed error and its typical error. Counts are in rows. Every
        declared value of a GROUP BY column gets a row. docs/sql.md lists the supported SQL.

        Parameters
        ----------
        statement : str
            The SELECT statement.

        Returns
        -------
        pandas.DataFrame

        Example
        -------
        >>> session.sql("SELECT sex, count(*) FROM data GROUP BY sex")  # doctest: +SKIP
        """
        return self.sql_result(statement).frame

    def sql_result(self, statement: str) -> SqlResult:
        """Run a SELECT as ``sql`` does, and return a result whose cells are answers.

        Parameters
        ----------
        statement : str
            The SELECT statement.

        Returns
        -------
        SqlResult
        """
        from hedgerow.sql.result import run_statement

        with limit_memory(self._limit):
            return run_statement(statement, self.universe, lambda queries: self.ask_all(queries, scale="rows"))

    def synthetic(self, rows: int | None = None, *, resolution: Literal["values", "bins"] = "values") -> pd.DataFrame:
        """Draw synthetic records whose counts match the hypothesis. Costs nothing.

        Parameters
        ----------
        rows : int, optional
            Number of records. Default: as many as the table has.
        resolution : {"values", "bins"}
            With ``"values"`` a number is drawn uniformly inside its bin, because the hypothesis knows no more. With
            ``"bins"`` it is the representative of its bin.

        Returns
        -------
        pandas.DataFrame
            The records. ``attrs["certificate"]`` states what the session certifies about its answers. Counts of the
            records are whole numbers, so they deviate from the table by up to that rounding more.
        """
        import pandas as pd

        wanted = round(self.rows) if rows is None else rows
        if not isinstance(wanted, int | np.integer) or isinstance(wanted, bool) or wanted < 1:
            raise InvalidInput(f"rows must be a whole number of at least 1. Found {rows!r}. Say how many records.")
        if resolution not in ("values", "bins"):
            raise InvalidInput(f"resolution must be 'values' or 'bins'. Found {resolution!r}. Choose one.")
        self._require_all()
        with limit_memory(self._limit), self._alone():
            way_out = "Draw fewer at a time"
            require("Synthetic records", int(wanted) * len(self.universe.names), RECORD, way_out, "values")
            generator = self._noise.generator()
            codes = self.hypothesis.sample(int(wanted), generator, rounded=True)
            if resolution == "bins":
                columns = self.universe.decode(codes, numeric=True)
            else:
                columns = {
                    name: self.universe[name].draw(codes[:, i], generator.random(len(codes)))
                    for i, name in enumerate(self.universe.names)
                }
        records = pd.DataFrame(columns)
        if self.certificate is not None:
            records.attrs["certificate"] = str(self.certificate)  # every file format of a frame can store text
        return records

    def _batch(self, asked: list[tuple[Query, Bound[Any]]], scale: Scale, advance: Callable[[], None]) -> list[Answer]:
        """Answer one batch of questions in one turn."""
        with self._alone():
            return self._together(asked, scale, advance)

    def _together(
        self, asked: list[tuple[Query, Bound[Any]]], scale: Scale, advance: Callable[[], None]
    ) -> list[Answer]:
        """Answer a batch in order. Free answers are computed together."""
        self._memory.prepare(part for _, bound in asked for part in _linears(bound))
        answers = []
        try:
            with self._ledger.answer_log.at_once():
                for query, bound in asked:
                    found = self._memory.ready(bound) if isinstance(bound, Linear) else None
                    if found is None:
                        answers.append(self._asked(query, bound, None, scale))
                    else:
                        answers.append(self._answer(query, bound, found, 0.0, scale))
                    advance()
        finally:
            self._memory.prepare(())  # discard unused prepared answers: a later answer may be more precise
        return answers

    def _asked(self, query: Query, bound: Bound[Any], within: float | None, scale: Scale) -> Answer:
        """Answer one bound question and bill it."""
        with self._asking(query) as bill:
            estimate = self._ledger.retry_when_behind(self._engine.resume, lambda: self._memory.ask(bound, within))
            return self._answer(query, bound, estimate, bill.cost, scale)

    def _answer(self, query: Query, bound: Bound[Any], estimate: Estimate, cost: float, scale: Scale) -> Answer:
        """Scale an estimate to an answer and remember it for the report."""
        answer = self._scaled(query, bound, estimate, cost, scale)
        self._give(answer)
        return answer

    def _give(self, answer: Answer) -> None:
        """Remember an answer for the report, and drop the oldest ones beyond the report's limits."""
        if len(self._given) == REPORTED:
            self._given_cells -= np.size(self._given.popleft().value)
        self._given.append(answer)
        self._given_cells += np.size(answer.value)
        while self._given_cells > REPORTED_CELLS and len(self._given) > 1:
            self._given_cells -= np.size(self._given.popleft().value)

    def _scaled(self, query: Query, bound: Bound[Any], estimate: Estimate, cost: float, scale: Scale) -> Answer:
        """Turn an estimate into an answer, in fractions or in rows."""
        value, error, coarse, usual = estimate.value, estimate.error, estimate.resolution, estimate.typical
        in_rows = not isinstance(bound, Linear) and isinstance(bound, ComposedQuestion) and bound.in_rows
        if in_rows or (scale == "rows" and bound.is_fraction):
            bar_in_rows = self._engine.total_error_in_rows if in_rows else self._engine.error_in_rows
            error = None if error is None else bar_in_rows(np.abs(value), error)
            if usual is not None:  # ñv − nt = ñ(v − t) + (ñ − n)t: the error of ñ counts too if n is private
                usual = np.hypot(usual * self.rows, np.abs(value) * self._engine.typical_of_rows)
                usual = usual if np.ndim(usual) else float(usual)
            value, coarse = value * self.rows, coarse * self.rows
        labels = bound.labels if estimate.labels is None else estimate.labels
        return Answer(query, value, error, estimate.source, cost, labels, coarse, usual, estimate.coefficients)

    def _answered(self) -> Iterator[Answer]:
        """Iterate over all answers in the ledger, whoever asked. A count is described by its cells."""
        costs: dict[Hashable, float] = {}
        for entry in self.log:
            if isinstance(entry.asked, Query) and not isinstance(entry.asked, OverTime | RowStatistic):
                key = bound_to(entry.asked, self.universe).key
                costs[key] = costs.get(key, 0.0) + entry.cost
        for bound, estimate in self._ledger.answers():
            found = question_of(bound)
            if found is not None:
                query = asked_again(found[0], self.universe) if isinstance(found[0], Linear) else found[0]
                yield self._scaled(query, bound, estimate, costs.get(bound.key, 0.0), "fraction")

    def report(self, *, everybody: bool = False) -> Report:
        """Return a document of what was spent and answered so far. It contains nothing private.

        Read it as ``.html``, or keep it by ``.json`` or ``.save(path)``.

        Parameters
        ----------
        everybody : bool
            List the answers of all sessions on the ledger, as fractions, instead of the answers of this session as
            given.

        Returns
        -------
        Report
        """
        certificate = self.certificate
        return Report(
            self._facts(),
            tuple((name, type(self.universe[name]).__name__, self.universe[name].size) for name in self.universe.names),
            None if certificate is None else str(certificate),
            tuple(
                Charge(e.why, "" if e.asked is None else repr(e.asked), ", ".join(map(repr, e.events)), e.cost)
                for e in self.log
            ),
            tuple(deque(self._answered(), REPORTED) if everybody else self._given),
        )

    def _facts(self) -> dict[str, Any]:
        """Return the public facts about the session as a whole."""
        public = self.budget.neighbours == "replace"
        return {
            "private": "yes" if self.private else "NO: the noise comes from a seed",
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "neighbours": self.budget.neighbours,
            **({} if self.budget.rows_per_unit == 1 else {"rows_per_unit": self.budget.rows_per_unit}),
            "rows" if public else "rows_estimated": self.rows,
            "cells": self.universe.size,
            "spent": self.spent,
            "spent_of": self.budget.total,
            "currency": self.budget.currency,
            **({} if len(self._blocks) == 1 else {"blocks": ", ".join(self.blocks), "bars_fail": self._failing}),
        }

    @property
    def _failing(self) -> float:
        """Probability that any error bar of a session of several blocks fails, however many blocks are appended."""
        return 2 * self._blocks[0].beta if self._is_whole else self._beta

    def _repr_html_(self) -> str:
        certificate = self.certificate
        said = "" if certificate is None else _html.paragraph(certificate)
        return _html.table(("session", ""), self._lines()) + said

    def __str__(self) -> str:
        return "\n".join(f"{name:>15}  {fact}" for name, fact in self._lines())

    def _lines(self) -> list[tuple[str, str]]:
        """Return the public facts as pairs of texts, for display."""
        return [
            (name.replace("_", " "), f"{fact:.6g}" if isinstance(fact, float) else str(fact))
            for name, fact in self._facts().items()
        ]

    def __repr__(self) -> str:
        warning = f"NOT PRIVATE: seed {self._noise.seed}, " if isinstance(self._noise, Seeded) else ""
        return f"Session({warning}{self.universe!r}, {self.budget!r}, spent {self.spent:.4g} of {self.budget.total:.4g} {self.budget.currency})"


def _linears(bound: Bound[Any]) -> Iterable[Linear]:
    """Return the linear queries that answering a question needs in any case."""
    if isinstance(bound, Linear):
        return (bound,)
    return bound.linears if isinstance(bound, ComposedQuestion) else ()


def _wanted(within: Any, bound: Bound[Any]) -> float:
    """Check a requested error bar and return it: a fraction of the rows, or a number in the units of the answer."""
    if not isinstance(bound, ComposedQuestion) or bound.is_fraction:
        return _fraction(within)
    if bound.in_rows:
        raise InvalidInput(f"within must be left out of a total. Found {within!r}. Buy the mean instead.")
    wanted = number(within)
    if not 0 < wanted < np.inf:
        raise InvalidInput(f"within must be above 0. Found {within!r}. Give it in the units of the answer.")
    return wanted


def _fraction(within: Any) -> float:
    """Check that a requested error bar is a fraction above 0 and at most 1, and return it."""
    wanted = number(within)
    if not 0 < wanted <= 1:
        raise InvalidInput(f"within must be above 0 and at most 1. Found {within!r}. Give a fraction, such as 0.01.")
    return wanted


def _require_scale(scale: str) -> None:
    """Refuse an unknown scale."""
    if scale not in ("fraction", "rows"):
        raise InvalidInput(f"scale must be 'fraction' or 'rows'. Found {scale!r}. Choose one.")
