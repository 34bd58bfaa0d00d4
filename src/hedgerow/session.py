"""A session: any number of adaptively chosen questions about one sensitive table under one privacy budget.

A table that grows comes in blocks, each with a budget and an engine of its own (docs/blocks.md); a session is asked about all of them.

The session binds a question to the universe, recognises repeats, asks the engine of its profile, and says what each answer
cost. Everything it stores or shows has been released and billed.
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
from hedgerow._memory import KEPT, RECORD, STACKED, at_most, limited, require
from hedgerow._progress import counting_bar
from hedgerow._shelf import Shelf
from hedgerow._threads import one_thread
from hedgerow._types import Array
from hedgerow.answer import Answer
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.data.csv_file import Csv
from hedgerow.data.source import DataSource
from hedgerow.engines.engine import Engine
from hedgerow.engines.over_time import Column, Series, estimated
from hedgerow.engines.practical.certificate import Certificate
from hedgerow.engines.together import Part, Together
from hedgerow.engines.wire import question_of
from hedgerow.errors import InvalidInput
from hedgerow.generalise.statement import Generalisation, stated
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.accounts import Accounts, Bills
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Bill, Entry, Ledger
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.privacy.process import OneOnly
from hedgerow.questions.bound import Bound, Estimate, Source
from hedgerow.questions.composed import Composed
from hedgerow.questions.counts import BoundMarginal, OverTime, Query, Resolution
from hedgerow.questions.counts import bound as bound_to
from hedgerow.questions.linear import Linear
from hedgerow.questions.row_statistic import RowStatistic
from hedgerow.questions.universe import Universe
from hedgerow.questions.words import asked_again
from hedgerow.report import Charge, Report

if TYPE_CHECKING:
    import pandas as pd

    from hedgerow.engines.sampling import Sampling
    from hedgerow.sql.result import Result
    from hedgerow.textbook.scq import Counted

Scale = Literal["fraction", "rows"]
AT_ONCE = 8192  # questions of a batch that are answered together
REPORTED = 1000  # answers that a report has, the last ones
FIRST = "1"  # what the block is called that a session is opened on
LONGEST_NAME = 200  # characters
REPORTED_CELLS = 1_000_000  # and these have in all, but for the last one


@runtime_checkable
class Closes(Protocol):
    """A ledger that lasts."""

    def close(self) -> None: ...


class Notes(Protocol):
    """Where answers are written down: a ledger, or that of several blocks."""

    def note(self, question: Any, answer: Any) -> None: ...

    def recall(self, question: Any) -> Any | None: ...


class Memory:
    """An engine that is not asked twice: what was answered is answered again, unless a better bar is asked for."""

    def __init__(self, engine: Engine, ledger: Notes) -> None:
        self._engine, self._ledger = engine, ledger
        self._known: dict[Hashable, Estimate] = {}
        self._shelf = Shelf()
        self._ready: dict[Hashable, Estimate] = {}

    def __contains__(self, bound: Bound[Any]) -> bool:
        return self._known_of(bound) is not None

    def said(self, bound: Bound[Any], value: Any) -> bool:
        """Whether that is what was answered last."""
        known = self._known_of(bound)
        return known is not None and np.array_equal(known.value, value)

    def keep(self, bound: Bound[Any], estimate: Estimate) -> Estimate:
        kept = _with_arrays(estimate, self._shelf.put)  # whoever gets the answer may change it
        self._known[bound.key] = kept
        self._ledger.note(bound, kept)
        return estimate

    def prepare(self, queries: Iterable[Linear]) -> None:
        """Answers to these that need nothing private, computed together, for when they are asked."""
        fresh = {query.key: query for query in queries if query not in self}
        free = self._engine.free(list(fresh.values()))
        self._ready = {} if free is None else dict(zip(fresh, free, strict=True))
        self._engine.expect(list(fresh.values()) if free is None else ())

    def ready(self, query: Linear) -> Estimate | None:
        """What was prepared of it, now answered."""
        found = self._ready.pop(query.key, None)
        return None if found is None else self.keep(query, found)

    def ask(self, bound: Bound[Any], within: float | None) -> Estimate:
        """What is composed of others is remembered too."""
        if not isinstance(bound, Composed):
            return bound.ask(self, within)
        known = self._kept(bound, within)
        asked: Any = self if within is None else Current(self, self._engine)
        return self.keep(bound, bound.ask(asked, within)) if known is None else known

    def linear(self, query: Linear, within: float | None) -> Estimate:
        known = self._kept(query, within)
        if known is None and within is None:
            known = self.ready(query)
        return self.keep(query, self._engine.linear(query, within)) if known is None else known

    def believed(self, query: Linear) -> float:
        return self._engine.believed(query)

    @property
    def least_rows(self) -> float:
        return self._engine.least_rows

    def ratio(self, numerator: Linear, denominator: Linear, within: float | None) -> tuple[Estimate, Estimate]:
        """Not by what is known of its parts, whose bars may be too wide for it; what is found is known from now on."""
        top, bottom = self._engine.ratio(numerator, denominator, within)
        return self.keep(numerator, top), self.keep(denominator, bottom)

    def has(self, bound: Bound[Any], within: float) -> bool:
        """Whether it was answered with such a bar."""
        return self._kept(bound, within) is not None

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        known = self._kept(table, within)
        return self.keep(table, self._engine.marginal(table, within)) if known is None else known

    def minimise(self, question: BoundMinimize, within: float | None) -> Estimate:
        known = self._kept(question, within)
        return self.keep(question, self._engine.minimise(question, within)) if known is None else known

    def _kept(self, bound: Bound[Any], within: float | None) -> Estimate | None:
        known = self._known_of(bound)
        if known is None or (within is not None and (known.error is None or np.max(known.error) > within * (1 + 1e-9))):
            return None
        return replace(_with_arrays(known, self._shelf.taken), source="repeat")

    def _known_of(self, bound: Bound[Any]) -> Estimate | None:
        known = self._known.get(bound.key)
        if known is None:
            known = self._ledger.recall(bound)
            if known is not None:
                self._known[bound.key] = known
        return known


class Current:
    """A memory for what is bought: of a part that was answered before, the better of that and what is known by now."""

    def __init__(self, memory: Memory, engine: Engine) -> None:
        self._memory, self._engine = memory, engine

    def linear(self, query: Linear, within: float | None) -> Estimate:
        said = self._memory.linear(query, within)
        free = self._engine.free([query]) if said.source == "repeat" else None
        if not free or free[0].error is None or (said.error is not None and said.error <= free[0].error):
            return said
        return free[0]

    def believed(self, query: Linear) -> float:
        return self._engine.believed(query)

    @property
    def least_rows(self) -> float:
        return self._engine.least_rows

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        return self._memory.marginal(table, within)


def _with_arrays(estimate: Estimate, kept: Callable[[Array], Array]) -> Estimate:
    arrays: dict[str, Any] = {
        name: kept(value)
        for name in ("value", "error", "resolution", "typical", "coefficients")
        if isinstance(value := getattr(estimate, name), np.ndarray)
    }
    return replace(estimate, **arrays) if arrays else estimate


@dataclass(frozen=True, eq=False)
class Block:
    """One table of a session: its rows, who pays for what is told of them, and what answers about them."""

    name: str
    data: DataSource = field(repr=False)
    ledger: Ledger
    engine: Engine = field(repr=False)
    memory: Memory = field(repr=False)
    beta: float
    sampling: Sampling | None = field(default=None, repr=False)

    @property
    def rows(self) -> float:
        """n under replace-one, a private estimate of it under add/remove."""
        return self.engine.rows

    @property
    def budget(self) -> Budget:
        return self.ledger.budget

    @property
    def spent(self) -> float:
        return self.ledger.spent

    @property
    def remaining(self) -> float:
        return self.ledger.remaining


class Appending(Protocol):
    """How a block is made of more rows (``opening``)."""

    def __call__(self, blocks: Sequence[Block], name: str, source: Any, **options: Any) -> Block: ...


class Session(OneOnly):
    """Made by ``hr.open`` or ``hr.release``. Threads may share it: they take turns. A fork of its process cannot ask."""

    def __init__(
        self,
        data: DataSource,
        ledger: Ledger,
        noise: Noise,
        engine: Engine,
        beta: float = 0.05,
        sampling: Sampling | None = None,
        *,
        block: str = FIRST,
        appending: Appending | None = None,
        limit: int | None = None,
    ) -> None:
        """``engine`` answers, ``sampling`` what is asked of rows; the session remembers, scales and reports.

        ``beta``: with which bars may fail. ``block``: what its table is called, where others are appended by ``appending``.
        ``limit``: how many bytes of memory a question may take.
        """
        self._limit = limit
        first = Block(block, data, ledger, engine, Memory(engine, ledger), beta, sampling)
        self._begin([first], noise, appending, is_whole=True)

    def _begin(self, blocks: list[Block], noise: Noise, appending: Appending | None, *, is_whole: bool) -> None:
        self._blocks, self._noise, self._appending, self._is_whole = blocks, noise, appending, is_whole
        self._given: deque[Answer] = deque()
        self._given_cells = 0
        self._settle()

    def _settle(self) -> None:
        """Who answers and who pays: a block's own, or several together."""
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
        self._engine = Together([Part(block.engine, block.memory, block.ledger) for block in blocks])
        self._memory, self._sampling = Memory(self._engine, self._ledger), None

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        with self._asking(), one_thread:
            yield

    @contextlib.contextmanager
    def _asking(self, query: Query | None = None) -> Iterator[Bill | Bills]:
        """A question's turn, in the accounts of all blocks that there are once it has it: another thread may have appended one."""
        while True:
            ledger = self._ledger
            with ledger.exclusively():
                if ledger is self._ledger:
                    with contextlib.nullcontext(Bill()) if query is None else ledger.asking(query) as bill:
                        yield bill
                    return

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
        """New rows, as a block with a budget of its own; the session itself, which is asked about all of its blocks from now on.

        Nobody may be in two blocks: what is promised is that neighbours differ in one row of one block (docs/blocks.md).
        ``source``, ``table``, ``csv``: as in ``hr.open``. Universe and options are those of the opening.
        ``block``: its name, by default its number. ``budget``: by default that of the first block; another may have other ε and δ.
        ``ledger``: of a block whose session is in memory, to be taken up again. A durable ledger has those of all blocks: the
        same calls, in the same order, resume, and bill nothing twice.
        Its hypothesis begins with what the opening of the block before came to. All that is appended shares a second β.
        """
        if self._appending is None:
            raise InvalidInput(
                "Rows must be appended to a session that was opened on a table. Found "
                f"{'a release, which is over' if self._is_whole else 'some of its blocks'}. Use hr.open(…).append(…)."
            )
        with limited(self._limit), self._alone():  # from here on no other thread appends one of the same name
            name = str(len(self._blocks) + 1) if block is None else block
            if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
                raise InvalidInput(
                    f"block must be a name of up to {LONGEST_NAME} printable characters. Found {name!r}. Give a short text."
                )
            if name in self.blocks:
                raise InvalidInput(f"block must be a new name. Found {name!r}, which the session has. Choose another.")
            options = {"budget": budget, "table": table, "csv": csv, "ledger": ledger}
            self._blocks.append(self._appending(self._blocks, name, source, **options))
            self._settle()
        return self

    @property
    def blocks(self) -> dict[str, Block]:
        """By name, in the order in which they were appended: each with its ``rows``, ``budget``, ``ledger``, ``spent`` and ``remaining``."""
        return {block.name: block for block in self._blocks}

    def over(self, first: str, last: str | None = None) -> Session:
        """This session, asked about the rows of one block, or of all from one to another."""
        names = list(self.blocks)
        for name in (first, first if last is None else last):
            if name not in names:
                raise InvalidInput(f"A block must be one of {', '.join(names)}. Found {name!r}. Name one of these.")
        start, end = names.index(first), names.index(first if last is None else last)
        if start > end:
            raise InvalidInput(
                f"The first block of a range must come before its last. Found {first!r} after {last!r}. Turn them round."
            )
        view = Session.__new__(Session)
        view._limit = self._limit
        view._begin(self._blocks[start : end + 1], self._noise, None, is_whole=False)
        return view

    def close(self) -> None:
        """Let a ledger that lasts write what is not written yet, and let go of its database."""
        for block in self._blocks:
            if isinstance(block.ledger, Closes):
                block.ledger.close()

    def _require_all(self) -> None:
        """An answer about all rows is about all blocks that the ledger knows of."""
        known = self._blocks[0].ledger.blocks
        if self._is_whole and len(known) >= len(self._blocks):
            raise InvalidInput(
                f"All blocks of the ledger must be there to be asked about. Found that {known[len(self._blocks) - 1]!r} is not. Append it "
                "again, which bills nothing twice, or ask about those that are there: session.over(first, last)."
            )

    @property
    def ledger(self) -> Ledger:
        """Where every charge and release is written."""
        if isinstance(self._ledger, Accounts):
            raise InvalidInput(
                f"A ledger must be one block's, for each pays for its own rows. Found {len(self._blocks)} blocks. Use session.blocks[name].ledger."
            )
        return self._ledger

    @property
    def universe(self) -> Universe:
        return self._data.universe

    @property
    def budget(self) -> Budget:
        """What is promised; of several blocks, to whoever is in any of them."""
        return self._ledger.budget

    @property
    def private(self) -> bool:
        """Whether the noise is unknown to everyone; not with a ``seed``."""
        return self._noise.private

    @property
    def hypothesis(self) -> Hypothesis:
        """The public model that answers come from."""
        return self._engine.hypothesis

    @property
    def rows(self) -> float:
        """n under replace-one, a private estimate of it under add/remove."""
        return self._engine.rows

    @property
    def certificate(self) -> Certificate | None:
        """What holds of all small questions at once, asked or not: ``str`` says it. None where nothing was certified."""
        return self._engine.certificate

    @property
    def spent(self) -> float:
        """What has been spent, in the budget's currency (ε when δ = 0, else ρ); of several blocks, in the one that spent most."""
        return self._ledger.spent

    @property
    def remaining(self) -> float:
        """What is left; of several blocks, in the one that has least."""
        return self._ledger.remaining

    @property
    def spent_epsilon(self) -> float:
        """What has been spent as an ε at the budget's δ."""
        return self._ledger.spent_epsilon

    @property
    def log(self) -> tuple[Entry, ...]:
        """Every billed use of the data so far, in order."""
        return tuple(replace(entry, private=entry.private and self.private) for entry in self._ledger.entries())

    @property
    def generalisation(self) -> Generalisation:
        """What holds of the population that the rows are independent draws from, for all answers so far, and by which theorem.

        Of several blocks, for all that was answered about all of them.
        """
        asked = sum(int(np.size(estimate.value)) for _, estimate in self._ledger.answers())
        rows = self.rows if self.budget.neighbours == "replace" else None
        return stated(self.budget, rows=rows, asked=asked, sample_beta=self._beta)

    def population_error(self, answer: Answer) -> float | None:
        """The bar for the population of an answer given as a fraction; None where no theorem bounds it (``generalisation``).

        Of several blocks, for what was answered about all of them: an answer from before one was appended is about fewer rows.
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
        """A private answer. ``within`` pays for a direct measurement exactly when the free bound is not that good.

        It is a fraction of the rows, or of a mean, a quantile and others in the units of their values. Of a convex question it
        pays until the bound is that good or nothing is left: the bar says which. ``resolution="bins"`` asks about the coded
        table, in which a value is its bin's representative, and not about the values themselves.
        """
        _require_scale(scale)
        self._require_all()
        with limited(self._limit):
            if type(query) is OverTime:
                return self._asked_over_time(query, within, resolution)
            if type(query) is RowStatistic:
                return self._asked_of_rows(query, None if within is None else _fraction(within), scale)
            bound = self._bound([query], resolution)[0]
            return self._asked(query, bound, None if within is None else _wanted(within, bound), scale)

    def price(self, query: Query, *, within: float | None = None, resolution: Resolution = "values") -> float:
        """What asking it with this ``within`` would cost now, in the budget's currency; 0 where the free bar is that good.

        It reads released values alone and charges nothing. Of a convex question it is the price of measuring the excess risk
        once: learning from it, where it turns out too large, costs more. A guard's round that a part of the question opens is not
        in it. The theory profile and a release sell no ``within``: 0 where the answer has such a bar anyway (of a ratio as
        the hypothesis has it now), else a refusal; what learning from the stream costs there is not in it. Of several blocks it is
        what the one that pays most pays. A count over time has no ``within``: its price is that of the sums that are due.
        """
        self._require_all()
        with limited(self._limit), self._alone():
            if type(query) is OverTime:
                return self._series(query, within, resolution).price()
            bound = self._bound([query], resolution)[0]
            wanted = _wanted(within, bound)
            return 0.0 if self._memory.has(bound, wanted) else self._engine.price(bound, wanted)

    def flip(self, predicate: Query, *, lies: float = 0.05) -> bool:
        """What one row at random says to a question of yes or no; it lies with probability ``lies``. Needs ``rows``."""
        with self._ledger.asking(predicate):
            return self._of_rows().flip(predicate, lies)

    def flips(self, predicate: Query, *, lies: float = 0.05, at_once: int | None = None) -> Iterator[Counted]:
        """The fraction of rows that say yes, better with every flip, for as long as you take more. Needs ``rows``.

        All intervals of one call hold together, so you may stop by looking at them.
        """
        return self._of_rows().counting(predicate, lies, at_once)

    def _of_rows(self) -> Sampling:
        if self._sampling is None:
            raise InvalidInput(
                "The session must be opened with rows, and have one block, to be asked of raw values. Found none. "
                "Use hr.open(…, rows=True), or ask hr.count or hr.mean."
            )
        return self._sampling

    def _asked_of_rows(self, query: RowStatistic, within: float | None, scale: Scale) -> Answer:
        with self._ledger.asking(query) as bill:
            found = self._of_rows().ask(query, within)
            times = self.rows if scale == "rows" else 1.0
            error = None if found.error is None else found.error * times
            return Answer(query, found.value * times, error, found.source, bill.cost)

    def _asked_over_time(self, query: OverTime, within: float | None, resolution: Resolution) -> Answer:
        with self._asking(query) as bill, one_thread:
            series = self._series(query, within, resolution)
            nodes = self._ledger.following(self._engine.resume, series.drawn)
            count = len(self._blocks)
            # half of what is kept for what is appended: for each series, and each time that it has grown
            beta = self._blocks[0].beta / 2 / (series.number * (series.number + 1)) / (count * (count + 1))
            values, errors, usual = estimated(nodes, count, query.span, beta)
            labels = (("block", tuple(self.blocks)), ("count", ("in it", "so far")))
            source: Source = "measured" if bill.cost else "repeat"
            answer = Answer(query, values, errors, source, bill.cost, labels, typical=usual)
            self._give(answer)
            return answer

    def _series(self, query: OverTime, within: float | None, resolution: Resolution) -> Series:
        if within is not None:
            raise InvalidInput(
                f"within must be left out of a count over time. Found {within!r}. Its share says what it costs: over_time(share=0.02)."
            )
        if not self._is_whole:
            raise InvalidInput(
                "A count over time must be asked of all blocks, from the first on. Found some. Ask the session itself."
            )
        columns = [Column(block.data, block.ledger) for block in self._blocks]
        return Series(query, query.counts(self.universe, resolution), columns, self._noise)

    def ask_all(
        self,
        queries: Iterable[Query],
        *,
        scale: Scale = "fraction",
        resolution: Resolution = "values",
        progress: bool | None = None,
    ) -> list[Answer]:
        """Answers to many questions, in order; the same as asking one by one, but vectorised where that changes nothing.

        ``progress`` shows a bar; by default on a terminal and in a notebook, for more than 1,000 questions.
        """
        _require_scale(scale)
        if isinstance(queries, Query | str) or not isinstance(queries, Iterable):
            raise InvalidInput(
                f"queries must be a list of questions. Found a {type(queries).__name__}. Put it in a list, or use ask."
            )
        self._require_all()
        asked = list(queries)
        answers: list[Answer] = []
        with limited(self._limit), counting_bar("answering", len(asked), progress) as advance:
            # a bad question is refused before anything is spent
            bound = self._bound(asked, resolution)
            at_once = at_most(STACKED * max(self.universe.shape), AT_ONCE)
            for start in range(0, len(asked), at_once):
                some = slice(start, start + at_once)
                answers += self._batch(list(zip(asked[some], bound[some], strict=True)), scale, advance)
        return answers

    def _bound(self, queries: Sequence[Query], resolution: Resolution) -> list[Bound[Any]]:
        """Bind questions to the universe, and refuse those whose parts leave more behind than the memory limit allows."""
        bound = [bound_to(query, self.universe, resolution) for query in queries]
        cells = sum(each.kept_cells(self.universe) for each in bound if isinstance(each, Composed))
        require("The tables of all parts of what is asked", cells, KEPT, "Ask fewer at a time, or of coarser bins")
        return bound

    def sql(self, statement: str) -> pd.DataFrame:
        """The rows of a SELECT from ``data``: each aggregate with its guaranteed and its typical error beside it.

        Counts are in rows. Every declared value of what is grouped by has its row. docs/sql.md says what is supported.
        """
        return self.sql_result(statement).frame

    def sql_result(self, statement: str) -> Result:
        """Return the same, with answers in its cells."""
        from hedgerow.sql.result import run

        with limited(self._limit):
            return run(statement, self.universe, lambda queries: self.ask_all(queries, scale="rows"))

    def synthetic(self, rows: int | None = None, *, resolution: Literal["values", "bins"] = "values") -> pd.DataFrame:
        """Synthetic records whose counts match the hypothesis, free. As many as the table has unless told.

        A number is drawn evenly inside its bin, for the hypothesis knows no more; with ``resolution="bins"`` it is the bin's
        representative. What the session certifies of its answers is in the frame's ``attrs``: records are counted in whole
        rows, and are that much farther from the table.
        """
        import pandas as pd

        wanted = round(self.rows) if rows is None else rows
        if not isinstance(wanted, int | np.integer) or isinstance(wanted, bool) or wanted < 1:
            raise InvalidInput(f"rows must be a whole number of at least 1. Found {rows!r}. Say how many records.")
        if resolution not in ("values", "bins"):
            raise InvalidInput(f"resolution must be 'values' or 'bins'. Found {resolution!r}. Choose one.")
        self._require_all()
        with limited(self._limit), self._alone():
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
            records.attrs["certificate"] = str(self.certificate)  # a text, which every file of a frame can hold
        return records

    def _batch(self, asked: list[tuple[Query, Bound[Any]]], scale: Scale, advance: Callable[[], None]) -> list[Answer]:
        with self._alone():
            return self._together(asked, scale, advance)

    def _together(
        self, asked: list[tuple[Query, Bound[Any]]], scale: Scale, advance: Callable[[], None]
    ) -> list[Answer]:
        """Answers in order. Where the engine can answer for free they are computed together."""
        self._memory.prepare(part for _, bound in asked for part in _linears(bound))
        answers = []
        try:
            with self._ledger.at_once():
                for query, bound in asked:
                    found = self._memory.ready(bound) if isinstance(bound, Linear) else None
                    if found is None:
                        answers.append(self._asked(query, bound, None, scale))
                    else:
                        answers.append(self._answer(query, bound, found, 0.0, scale))
                    advance()
        finally:
            self._memory.prepare(())  # what was not asked after all is forgotten, for later it may be known better
        return answers

    def _asked(self, query: Query, bound: Bound[Any], within: float | None, scale: Scale) -> Answer:
        with self._asking(query) as bill:
            estimate = self._ledger.following(self._engine.resume, lambda: self._memory.ask(bound, within))
            return self._answer(query, bound, estimate, bill.cost, scale)

    def _answer(self, query: Query, bound: Bound[Any], estimate: Estimate, cost: float, scale: Scale) -> Answer:
        answer = self._scaled(query, bound, estimate, cost, scale)
        self._give(answer)
        return answer

    def _give(self, answer: Answer) -> None:
        """Remember it for a report, with as many before it as there is room for."""
        if len(self._given) == REPORTED:
            self._given_cells -= np.size(self._given.popleft().value)
        self._given.append(answer)
        self._given_cells += np.size(answer.value)
        while self._given_cells > REPORTED_CELLS and len(self._given) > 1:
            self._given_cells -= np.size(self._given.popleft().value)

    def _scaled(self, query: Query, bound: Bound[Any], estimate: Estimate, cost: float, scale: Scale) -> Answer:
        value, error, coarse, usual = estimate.value, estimate.error, estimate.resolution, estimate.typical
        in_rows = not isinstance(bound, Linear) and isinstance(bound, Composed) and bound.in_rows
        if in_rows or (scale == "rows" and bound.is_fraction):
            bar_in_rows = self._engine.total_error_in_rows if in_rows else self._engine.error_in_rows
            error = None if error is None else bar_in_rows(np.abs(value), error)
            if usual is not None:  # ñv − nt = ñ(v − t) + (ñ − n)t: where n is private, its own error is part of it
                usual = np.hypot(usual * self.rows, np.abs(value) * self._engine.typical_of_rows)
                usual = usual if np.ndim(usual) else float(usual)
            value, coarse = value * self.rows, coarse * self.rows
        labels = bound.labels if estimate.labels is None else estimate.labels
        return Answer(query, value, error, estimate.source, cost, labels, coarse, usual, estimate.coefficients)

    def _answered(self) -> Iterator[Answer]:
        """Everything the ledger has an answer to, whoever asked; a count is said by its cells."""
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
        """What was spent and said so far, to read (``.html``) or to keep (``.json``, ``.save(path)``): nothing private.

        ``everybody``: with the answers of all sessions on the ledger, as fractions, in place of this one's as they were given.
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
        """What anybody may know of the session as a whole."""
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
        """The probability with which any bar of a session of several blocks may fail, whatever comes."""
        return 2 * self._blocks[0].beta if self._is_whole else self._beta

    def _repr_html_(self) -> str:
        certificate = self.certificate
        said = "" if certificate is None else _html.paragraph(certificate)
        return _html.table(("session", ""), self._lines()) + said

    def __str__(self) -> str:
        return "\n".join(f"{name:>15}  {fact}" for name, fact in self._lines())

    def _lines(self) -> list[tuple[str, str]]:
        return [
            (name.replace("_", " "), f"{fact:.6g}" if isinstance(fact, float) else str(fact))
            for name, fact in self._facts().items()
        ]

    def __repr__(self) -> str:
        warning = f"NOT PRIVATE: seed {self._noise.seed}, " if isinstance(self._noise, Seeded) else ""
        return f"Session({warning}{self.universe!r}, {self.budget!r}, spent {self.spent:.4g} of {self.budget.total:.4g} {self.budget.currency})"


def _linears(bound: Bound[Any]) -> Iterable[Linear]:
    """The linear queries that a question is sure to need."""
    if isinstance(bound, Linear):
        return (bound,)
    return bound.linears if isinstance(bound, Composed) else ()


def _wanted(within: Any, bound: Bound[Any]) -> float:
    """A bar that may be asked for: a fraction of the rows, or in the units of the answer."""
    if not isinstance(bound, Composed) or bound.is_fraction:
        return _fraction(within)
    if bound.in_rows:
        raise InvalidInput(f"within must be left out of a total. Found {within!r}. Buy the mean, which is of one row.")
    wanted = number(within)
    if not 0 < wanted < np.inf:
        raise InvalidInput(f"within must be above 0. Found {within!r}. Give it in the units of the answer.")
    return wanted


def _fraction(within: Any) -> float:
    wanted = number(within)
    if not 0 < wanted <= 1:
        raise InvalidInput(f"within must be above 0 and at most 1. Found {within!r}. Give a fraction, such as 0.01.")
    return wanted


def _require_scale(scale: str) -> None:
    if scale not in ("fraction", "rows"):
        raise InvalidInput(f"scale must be 'fraction' or 'rows'. Found {scale!r}. Choose one.")
