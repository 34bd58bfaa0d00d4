"""Opening a session on a sensitive table: the source, the budget and the profile that will answer."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hedgerow._checks import number, positive
from hedgerow._memory import MODEL, in_bytes, limited, require, require_libraries, require_listing, require_values
from hedgerow._progress import phases, tell
from hedgerow._threads import one_thread
from hedgerow.convex.losses.custom import Custom
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.data import DataSource
from hedgerow.data.contributions import Unit
from hedgerow.data.csv_file import Csv
from hedgerow.data.holding import held
from hedgerow.data.rows import Rows, columns_of, stored
from hedgerow.engines.engine import Engine
from hedgerow.engines.practical.engine import MOST_RESERVE, Practical, prefitted
from hedgerow.engines.practical.knowledge import Prior
from hedgerow.engines.practical.prefit import LARGEST_MODEL_CELLS, MODEL_CELLS
from hedgerow.engines.release import released
from hedgerow.errors import InvalidInput
from hedgerow.model.preparing import compiling
from hedgerow.privacy.advice import advise
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant, Ledger
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.questions.counts import Query
from hedgerow.questions.counts import bound as bound_to
from hedgerow.questions.universe import Universe
from hedgerow.questions.workloads import Workload, marginals
from hedgerow.session import FIRST, LONGEST_NAME, Block, Memory, Session


@one_thread
def open(
    source: Any,
    *,
    universe: Universe,
    budget: Budget,
    table: str | None = None,
    csv: Csv | None = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    profile: Literal["practical", "theory"] = "practical",
    queries: int = 100_000,
    beta: float = 0.05,
    alpha: float | None = None,
    workload: Workload | Iterable[Query] | None = None,
    guard: float | None = None,
    reserve: float | None = None,
    model_cells: int = MODEL_CELLS,
    vouched: Collection[Custom] = (),
    rows: bool | str | Path | Rows = False,
    ledger: Ledger | str | None = None,
    who: str = "",
    block: str = FIRST,
    seed: int | None = None,
    limit: int | str | None = None,
    progress: bool | None = None,
) -> Session:
    """Open a session on a sensitive table.

    ``source``: a CSV or Parquet path, a pandas, polars, Arrow or Spark frame, an Ibis table, or a database URL with ``table``.
    It is read once, now, and every value of every row has its cell: docs/reading.md says which.
    ``csv``: how a CSV file is written, where not with commas, double quotes, UTF-8 and a header line.
    ``unit``: the column that says whose a row is, where a person may have several; ``rows_per_unit`` of each are kept, chosen by a
    hash, and the promise is a person's, who comes or goes with all of them (docs/people.md).
    ``profile``: "practical" spends most of the budget on a hypothesis before the first question; "theory" is the
    textbook mechanism with its guarantee, for which ``queries``, ``beta`` and ``alpha`` are the theorem's k, β and α.
    ``workload``: what the practical hypothesis should know best; all sets of up to three attributes by default. Convex questions
    in it are certified: a tenth of what the opening spends bounds the excess risk of them all. In the theory profile they
    state the largest constants of the losses that will be asked.
    ``guard``: the share of the budget for the sparse vector; by default a public rule, 0 for none.
    ``reserve``: the share kept for ``ask(within=…)``; by default a public rule, what ten counts to a hundredth of the rows would cost, but
    between 1 and 5 per cent, and 2 where n is private.
    ``model_cells``: how large the hypothesis may become, in cells of its junction tree (some 50 bytes each, and time in proportion).
    Strong pairs beyond it are measured all the same, and correct answers and records.
    ``vouched``: losses of one's own (``losses.Custom``) that may be minimised on the data, where their functions see private
    values; any other is answered from the hypothesis alone. Only for functions that the owner has read.
    ``rows``: keep the raw values too, so that ``hr.statistic`` and ``flip`` can be asked of a few rows at random: a folder that
    the owner alone can open, in which a store that still fits is used again, or True for temporary files (docs/sampling.md).
    ``ledger``: where every charge and release is written; in memory by default. One that has entries is taken up again: the
    session then knows, and has spent, what it had, provided that it is opened with the same options on the same table. So
    is the ledger of an opening that was interrupted (Ctrl-C): opened again with it, it goes on where it stopped. A URL,
    ``sqlite:///people.ledger`` or ``postgresql://…``, is one that lasts: the same call resumes, and processes share it (docs/ledger.md).
    ``who``: on whose behalf a durable ledger is charged, for caps and for its view of who spent what.
    ``block``: what the table is called, where others are to be appended to it (docs/blocks.md).
    ``seed``: repeatable, and therefore not private: for tests.
    ``limit``: how much memory the opening and any question may take, in bytes or as in "2GB"; by default half of the machine's. What
    would take more is refused before anything is read or charged, by public sizes (docs/limitations.md).
    ``progress``: whether to say what is being done; by default on a terminal and in a notebook.
    """
    _require_options(profile, queries, beta, reserve, guard, model_cells)
    if not isinstance(block, str) or not 0 < len(block) <= LONGEST_NAME or not block.isprintable():
        raise InvalidInput(
            f"block must be a name of up to {LONGEST_NAME} printable characters. Found {block!r}. Give a short text."
        )
    if alpha is not None:
        alpha = positive("alpha", alpha, "Give the error that the theorem is asked for, or leave it out.")
    allowed, workload = _vouched(vouched), _workload(workload)
    budget, whose = _of_units(budget, unit, rows_per_unit, source)
    chosen = _Options(profile, workload, queries, beta, alpha, guard, reserve, model_cells, allowed)
    most = in_bytes(limit)
    with limited(most), phases(progress):
        _require_types(universe, budget, table, None, seed)
        require_libraries()
        require_memory(universe, workload, model_cells)
        tell(lambda: "reading the table")
        given = None if isinstance(ledger, str) else ledger
        data, account, noise = _prepared(source, universe, budget, table, csv, given, seed, whose)
        if isinstance(ledger, str):
            named = {} if block == FIRST else {"block": block}
            account = _durable(ledger, budget, data, who, chosen.declared(universe, unit) | named)
        elif who:
            raise InvalidInput(
                f"who must be given with a ledger that lasts. Found {who!r} without. Give ledger='sqlite:///…'."
            )
        kept = _kept_rows(rows, source, data, universe, budget, table, csv)
        engine = _opened(data, account, noise, chosen, beta, None, resumable=ledger is not None)
    sampled = None
    if kept is not None:
        from hedgerow.engines.sampling import Sampling

        sampled = Sampling(kept, universe, account, noise, queries=queries, beta=beta)
    appending = _Appending(chosen, noise, whose, unit, progress)
    return Session(data, account, noise, engine, beta, sampled, block=block, appending=appending, limit=most)


@dataclass(frozen=True)
class _Options:
    """How the engine of every block is made."""

    profile: str
    workload: Workload | list[Query] | None
    queries: int
    beta: float
    alpha: float | None
    guard: float | None
    reserve: float | None
    model_cells: int
    vouched: tuple[Custom, ...]

    def declared(self, universe: Universe, unit: str | None) -> dict[str, Any]:
        """What a ledger that lasts is held to."""
        names = ("profile", "queries", "beta", "alpha", "workload", "guard", "reserve", "vouched")
        options = {"universe": universe} | {name: getattr(self, name) for name in names}
        options |= {} if unit is None else {"unit": unit}
        return options | ({} if self.model_cells == MODEL_CELLS else {"model_cells": self.model_cells})


def _opened(
    data: DataSource,
    account: Ledger,
    noise: Noise,
    options: _Options,
    beta: float,
    prior: Prior | None,
    *,
    resumable: bool,
) -> Engine:
    """The engine of a table, with all that its ledger has. ``prior``: with what its hypothesis begins."""
    with account.opening(), _keeping_what_was_paid(account, resumable=resumable):
        engine = _engine(data, account, noise, options, beta, prior)
        engine.resume(account.rest())
        account.remember(engine.state)
    return engine


def _engine(
    data: DataSource, account: Ledger, noise: Noise, options: _Options, beta: float, prior: Prior | None
) -> Engine:
    universe, workload = data.universe, options.workload
    if options.profile == "theory":
        asked = [] if workload is None or isinstance(workload, Workload) else list(workload)
        from hedgerow.engines import theory

        convex = [q for q in (bound_to(query, universe) for query in asked) if isinstance(q, BoundMinimize)]
        return theory.calibrated(
            data, account, noise, convex=convex, queries=options.queries, beta=beta, alpha=options.alpha, vouched=options.vouched
        )  # fmt: skip
    return prefitted(
        data, account, noise, workload=workload, queries=options.queries, beta=beta, guard=options.guard, reserve=options.reserve,
        vouched=options.vouched, model_cells=options.model_cells, prior=prior,
    )  # fmt: skip


@dataclass(frozen=True)
class _Appending:
    """How more rows become a block of a session: as its first table was opened, on an account of their own."""

    options: _Options
    noise: Noise
    whose: Unit | None
    unit: str | None
    progress: bool | None

    @one_thread
    def __call__(self, blocks: Sequence[Block], name: str, source: Any, **given: Any) -> Block:
        first, universe = blocks[0], blocks[0].data.universe
        budget = self._budget(first, given["budget"])
        account: Ledger | None = given["ledger"]
        _require_types(universe, budget, given["table"], account, None)
        if account is not None and (first.ledger.keeps_state or any(account is block.ledger for block in blocks)):
            raise InvalidInput(
                "ledger must be a block's own, of a session whose ledger is in memory. Found another. Leave it out."
            )
        if self.unit is not None and isinstance(source, DataSource):
            raise InvalidInput(
                "unit must come with a table that has its column. Found a source of counts alone. Append the file or frame itself."
            )
        with phases(self.progress):
            tell(lambda: "reading the block")
            data = _read(source, universe, budget, given["table"], given["csv"], self.whose, stacklevel=6)
            if any(data is block.data for block in blocks):
                raise InvalidInput(
                    "The rows of a block must not be those of another. Found the same table. Append new rows alone."
                )
            if account is None:
                account = first.ledger.of_block(name, len(blocks), budget, lambda: self._binding(data))
            elif account.budget != budget:
                raise InvalidInput(
                    "budget must be that of the ledger. Found another. Pass the budget it was opened with."
                )
            beta = first.beta / 2 / (len(blocks) * (len(blocks) + 1))  # of all that ever come, half of a second β
            before = blocks[-1].engine
            prior = before.next_prior if isinstance(before, Practical) else None
            resumable = given["ledger"] is not None or account.keeps_state
            engine = _opened(data, account, self.noise, self.options, beta, prior, resumable=resumable)
        return Block(name, data, account, engine, Memory(engine, account), beta)

    def _budget(self, first: Block, budget: Any) -> Budget:
        """Of the same kind as the first block's."""
        if self.options.profile == "theory" and first.budget.neighbours != "replace":
            raise InvalidInput(
                "Blocks of the theory profile must have neighbours='replace', for its fractions are of a public number of rows. Found "
                "'add-remove'. Use profile='practical'."
            )
        if budget is None:
            return first.budget
        if not isinstance(budget, Budget):
            raise InvalidInput(
                f"budget must be an hr.Budget. Found {type(budget).__name__}. For example hr.Budget(epsilon=1, delta=1e-6)."
            )
        promised = budget if self.unit is None else budget.per_unit(first.budget.rows_per_unit)
        kinds = [(each.neighbours, each.pure, each.rows_per_unit) for each in (first.budget, promised)]
        if kinds[0] != kinds[1]:
            raise InvalidInput(
                f"The budget of a block must be like the first, {first.budget!r}, but for its epsilon and delta, and delta 0 or not as there. "
                f"Found {promised!r}. Give such a one, or leave it out."
            )
        return promised

    def _binding(self, data: DataSource) -> Any:
        from hedgerow import ledgers  # which needs what a plain install does not have

        declared = ledgers.declared(**self.options.declared(data.universe, self.unit))
        return ledgers.Binding(functools.cache(data.fingerprint), declared)


def _durable(url: str, budget: Budget, data: DataSource, who: str, options: dict[str, Any]) -> Ledger:
    from hedgerow import ledgers  # which needs what a plain install does not have

    binding = ledgers.Binding(data.fingerprint, ledgers.declared(**options))
    return ledgers.opened(url, budget, who=who, binding=binding)


@one_thread
def release(
    source: Any,
    *,
    universe: Universe,
    budget: Budget,
    workload: Workload | Iterable[Query] | None = None,
    table: str | None = None,
    csv: Csv | None = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    method: Literal["adaptive", "mwem"] = "adaptive",
    beta: float = 0.05,
    model_cells: int = MODEL_CELLS,
    seed: int | None = None,
    limit: int | str | None = None,
    progress: bool | None = None,
) -> Session:
    """Spend the whole budget at once on a workload known in advance; then ask and draw synthetic records for free.

    ``method``: "adaptive" is the engine of the practical profile; "mwem" the lecture's offline mechanism.
    ``model_cells``: how large the hypothesis may become, and ``limit``: how much memory may be used, as in ``open``.
    ``progress``: whether to say what is being done; by default on a terminal and in a notebook.
    """
    _require_options("practical", 1, beta, 0.0, 0.0, model_cells)
    workload = _workload(workload)
    if method not in ("adaptive", "mwem"):
        raise InvalidInput(f"method must be 'adaptive' or 'mwem'. Found {method!r}. Choose one.")
    budget, whose = _of_units(budget, unit, rows_per_unit, source)
    most = in_bytes(limit)
    with limited(most), phases(progress):
        _require_types(universe, budget, table, None, seed)
        require_libraries()
        require_memory(universe, workload, model_cells, one_by_one=method == "mwem")
        tell(lambda: "reading the table")
        data, ledger, noise = _prepared(source, universe, budget, table, csv, None, seed, whose)
        engine: Engine
        if method == "mwem":
            asked = (
                workload.on(universe) if isinstance(workload, Workload) else list(workload or marginals(2).on(universe))
            )
            engine = released(data, ledger, noise, workload=[bound_to(query, universe) for query in asked], beta=beta)
        else:
            engine = prefitted(
                data,
                ledger,
                noise,
                workload=workload,
                queries=1,
                beta=beta,
                guard=0.0,
                reserve=0.0,
                everything=True,
                model_cells=model_cells,
            )
    return Session(data, ledger, noise, engine, beta, limit=most)


def require_memory(
    universe: Universe,
    workload: Workload | Sequence[Query] | None,
    model_cells: int = MODEL_CELLS,
    *,
    one_by_one: bool = False,
) -> None:
    """Refuse, by public sizes, an opening that would take more memory than the limit. Nothing was read or charged yet.

    ``one_by_one``: whether tables of the workload are asked cell by cell.
    """
    require_values(dict(zip(universe.names, universe.shape, strict=True)))
    cells = min(LARGEST_MODEL_CELLS // MODEL_CELLS * model_cells, universe.size)
    require("A model of model_cells, which grows to twice as many,", cells, MODEL, "Lower model_cells")
    if isinstance(workload, Workload):
        require_listing(
            f"The workload {workload!r}", workload.length(universe), workload.values(universe), "Name fewer"
        )
        if not one_by_one:
            return
    elif workload is None:
        workload = marginals(2) if one_by_one else []
    asked = workload.on(universe) if isinstance(workload, Workload) else workload
    bound = [bound_to(query, universe) for query in asked]  # which refuses what is too large by itself
    if one_by_one:
        tables = [universe.sizes(names) for each in bound for names in each.tables]
        listed = sum(math.prod(sizes) for sizes in tables)
        require_listing("The workload of MWEM", listed, max(map(sum, tables), default=0), "Use method='adaptive'")


@contextmanager
def _keeping_what_was_paid(ledger: Ledger, *, resumable: bool) -> Iterator[None]:
    """Ctrl-C while opening leaves what was charged and released in the ledger, and says so."""
    ledger.take_up()
    try:
        yield
    except KeyboardInterrupt as stopped:
        way_out = (
            "Open again with the same ledger to go on from there"
            if resumable
            else (
                "It is lost with this ledger: count it, and pass ledger=hr.Accountant(budget) to be able to go on next time"
            )
        )
        stopped.add_note(
            f"{ledger.spent:.4g} of {ledger.budget.total:.4g} {ledger.budget.currency} was spent. {way_out}."
        )
        raise


def _prepared(
    source: Any,
    universe: Universe,
    budget: Budget,
    table: str | None,
    csv: Csv | None,
    ledger: Ledger | None,
    seed: int | None,
    unit: Unit | None,
) -> tuple[DataSource, Ledger, Noise]:
    _require_types(universe, budget, table, ledger, seed)
    account = Accountant(budget) if ledger is None else ledger
    if account.budget != budget:
        raise InvalidInput("budget must be that of the ledger. Found another. Pass the budget it was opened with.")
    with compiling(universe):
        data = _read(source, universe, budget, table, csv, unit, stacklevel=6)
    return data, account, Noise() if seed is None else Seeded(seed)


def _read(
    source: Any,
    universe: Universe,
    budget: Budget,
    table: str | None,
    csv: Csv | None,
    unit: Unit | None,
    *,
    stacklevel: int,
) -> DataSource:
    data = source if isinstance(source, DataSource) else held(source, universe, table=table, csv=csv, unit=unit)
    if data.universe != universe:
        raise InvalidInput("The data must be coded by the session's universe. Found another. Pass the same universe.")
    if budget.neighbours == "replace" and data.rows == 0:
        raise InvalidInput("The table must have at least one row. Found 0. Check the source.")
    advise(budget, data.rows if budget.neighbours == "replace" else None, universe.shape, stacklevel=stacklevel)
    return data


def _of_units(budget: Any, unit: Any, rows_per_unit: Any, source: Any) -> tuple[Budget, Unit | None]:
    """The budget of a person with several rows, and how many of them are kept."""
    if unit is None:
        if rows_per_unit is not None:
            raise InvalidInput(
                f"rows_per_unit must come with unit. Found {rows_per_unit!r} alone. Name the column that says whose a row is; where no "
                "person has more rows anyway, say so in the budget: Budget(…, rows_per_unit=…)."
            )
        return budget, None
    if not isinstance(budget, Budget):
        raise InvalidInput(
            f"budget must be an hr.Budget. Found {type(budget).__name__}. For example hr.Budget(1, 1e-6, 'add-remove')."
        )
    if isinstance(source, DataSource):
        raise InvalidInput(
            "unit must come with a table that has its column. Found a source of counts alone. Open the file or frame itself."
        )
    promised = budget.per_unit(rows_per_unit)
    return promised, Unit(unit, promised.rows_per_unit)


def _require_types(universe: Any, budget: Any, table: Any, ledger: Any, seed: Any) -> None:
    """Before anything is read: arguments of another type are refused in a sentence."""
    wanted = [
        ("universe", universe, Universe, "hr.Universe", "Declare it, as in hr.Universe(sex=hr.Flag())."),
        ("budget", budget, Budget, "hr.Budget", "For example hr.Budget(epsilon=1, delta=1e-6)."),
        ("table", table, str | None, "the name of a table", "Give a text, with a database URL."),
        ("ledger", ledger, Ledger | None, "a ledger", "Pass an hr.Accountant, or leave it out."),
        ("seed", seed, int | None, "a whole number", "Leave it out, unless this is a test."),
    ]
    for name, given, kind, called, way_out in wanted:
        if not isinstance(given, kind):
            article = "an " if called.startswith("hr") else ""
            raise InvalidInput(f"{name} must be {article}{called}. Found {type(given).__name__}. {way_out}")


def _workload(workload: Any) -> Workload | list[Query] | None:
    """A workload, or the questions of one, each looked at before any row is."""
    if workload is None or isinstance(workload, Workload):
        return workload
    asked = list(workload) if isinstance(workload, Iterable) and not isinstance(workload, str | bytes) else None
    if asked is None or not all(isinstance(query, Query) for query in asked):
        raise InvalidInput(
            f"workload must be a workload, such as hr.marginals(2), or a list of questions. Found {type(workload).__name__}. "
            "Give one of these, or leave it out."
        )
    return asked


def _kept_rows(
    rows: bool | str | Path | Rows,
    source: Any,
    data: DataSource,
    universe: Universe,
    budget: Budget,
    table: str | None,
    csv: Csv | None,
) -> Rows | None:
    """The store of raw values, of the same table as the counts."""
    if rows is False:
        return None
    if budget.neighbours != "replace":
        raise InvalidInput(
            "rows must come with neighbours='replace', for the number of rows is in what a sample costs. Found 'add-remove'. "
            "Leave rows out and ask counts, or use textbook.subsampled.poisson_plan at a public rate."
        )
    if not isinstance(rows, bool | str | Path | Rows):
        raise InvalidInput(
            f"rows must be True, a folder or a store of rows. Found {type(rows).__name__}. Say rows=True."
        )
    if isinstance(source, DataSource) and not isinstance(rows, Rows):
        raise InvalidInput(
            "rows must be a store where the source has counts alone. Found none. Open the file or frame itself, or give "
            "rows=data.rows.stored(…)."
        )
    if not isinstance(rows, Rows):
        folder = None if rows is True else rows
        rows = stored(
            source, columns_of(universe), folder, coded=universe, table=table, csv=csv, progress=sys.stderr.isatty()
        )
    if rows.rows != data.rows:  # a public number
        raise InvalidInput(
            f"The rows must be those of the table, {data.rows}. Found {rows.rows}. Open a source that does not change, and can be "
            "read twice."
        )
    return rows


def _vouched(losses: Collection[Custom]) -> tuple[Custom, ...]:
    if isinstance(losses, Custom) or not all(isinstance(loss, Custom) for loss in losses):
        raise InvalidInput("vouched must be a list of losses.Custom. Found something else. List the losses.")
    return tuple(losses)


def _require_options(profile: Any, queries: Any, beta: Any, reserve: Any, guard: Any, model_cells: Any) -> None:
    if profile not in ("practical", "theory"):
        raise InvalidInput(f"profile must be 'practical' or 'theory'. Found {profile!r}. Choose one.")
    if not isinstance(queries, int) or isinstance(queries, bool) or queries < 1:
        raise InvalidInput(f"queries must be a whole number of at least 1. Found {queries!r}. Say how many you expect.")
    if not isinstance(model_cells, int) or isinstance(model_cells, bool) or model_cells < 1:
        raise InvalidInput(
            f"model_cells must be a whole number of at least 1. Found {model_cells!r}. Leave it out, or give {MODEL_CELLS}."
        )
    if not 0 < number(beta) < 1:
        raise InvalidInput(f"beta must be between 0 and 1. Found {beta!r}. Give the probability of failure.")
    if reserve is None:  # whatever the rule says once the table is known, a guard leaves room for it
        reserve = MOST_RESERVE
    kept, guarded = number(reserve), 0.0 if guard is None else number(guard)
    if not (kept >= 0 and guarded >= 0 and kept + 2 * guarded < 1):
        raise InvalidInput(
            f"reserve and guard must be shares with reserve + 2·guard below 1. Found {reserve!r} and {guard!r}. Lower them."
        )
