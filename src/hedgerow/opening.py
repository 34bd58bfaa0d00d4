"""Open a session on a sensitive table: read the source, check the budget, and build the engine of the profile."""

from __future__ import annotations

import functools
import math
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Unpack

from hedgerow import _duration
from hedgerow._checks import require_name
from hedgerow._memory import MODEL, in_bytes, limit_memory, require, require_libraries, require_listing, require_values
from hedgerow._progress import phases, tell
from hedgerow._renamed import renamed_parameters
from hedgerow._threads import one_thread
from hedgerow.answering.answer_cache import AnswerCache
from hedgerow.answering.blocks import FIRST, Block
from hedgerow.convex.losses.custom import Custom
from hedgerow.convex.minimize import bound_convex
from hedgerow.data import DataSource
from hedgerow.data.contributions import PersonColumn
from hedgerow.data.csv_file import Csv
from hedgerow.data.row_store import RowStore, columns_of, row_store
from hedgerow.data.table import open_source
from hedgerow.engine.interface import FIT_VERSION, Engine
from hedgerow.engine.practical.engine import build_practical_engine
from hedgerow.engine.practical.free_answers import BlockPrior
from hedgerow.engine.practical.measure.prefit import LARGEST_MODEL_CELLS, MODEL_CELLS
from hedgerow.engine.release import run_convex, run_mwem, run_small_db
from hedgerow.errors import FitChangedWarning, InvalidInput
from hedgerow.model.log_linear import compile_ahead
from hedgerow.privacy.allowance import advise
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant, Ledger
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.profiles import (
    Practical,
    ProfileOptions,
    Theory,
    checked_workload,
    profile_of,
    read_workload,
    with_questions,
)
from hedgerow.query.counts import Query
from hedgerow.query.counts import bound as bound_to
from hedgerow.query.workloads import Workload, marginals
from hedgerow.session import Session
from hedgerow.universe.universe import Universe

METHODS = ("adaptive", "matrix", "mwem", "small_db", "convex")


@renamed_parameters(rows="keep_rows", who="analyst", vouched="trusted_losses")
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
    profile: Literal["practical", "theory"] | Practical | Theory = "practical",
    trusted_losses: Collection[Custom] = (),
    keep_rows: bool | str | Path | RowStore = False,
    ledger: Ledger | str | None = None,
    analyst: str = "",
    block: str = FIRST,
    seed: int | None = None,
    limit: int | str | None = None,
    progress: bool | None = None,
    **options: Unpack[ProfileOptions],
) -> Session:
    """Open a session on a sensitive table.

    The source is read once, now. Every value of every row is assigned to a cell of the universe (docs/reading.md).

    Parameters
    ----------
    source
        A CSV or Parquet path; a pandas, polars, Arrow or Spark frame; an Ibis table; or a database URL with ``table``.
    universe : Universe
        The public description of the columns.
    budget : Budget
        The privacy promise: ε, δ and the neighboring relation.
    table : str, optional
        Name of the table, with a database URL.
    csv : Csv, optional
        Format of a CSV file that is not written with commas, double quotes, UTF-8 and a header line.
    unit : str, optional
        Column that says whose row it is, if a person may have several. ``rows_per_unit`` rows of each person are kept,
        chosen by a hash. The promise is then about a person who joins or leaves with all of their rows
        (docs/people.md).
    rows_per_unit : int, optional
        Number of rows that are kept of each person.
    profile : {"practical", "theory"} or Practical or Theory
        "practical" spends most of the budget on a hypothesis before the first question. "theory" is the textbook
        mechanism with its guarantee. ``hr.Practical(…)`` and ``hr.Theory(…)`` are the same with their options, which
        they document.
    trusted_losses : collection of losses.Custom
        Custom losses that may be minimized on the data, where their functions see private values. List only functions
        that the owner has read. Any other custom loss is answered from the hypothesis alone.
    keep_rows : bool, path or RowStore
        Keep the raw values too, so that ``hr.statistic`` and ``sample_yes_no`` can sample a few random rows: a folder
        that only the owner can open, in which a store that still fits is reused, or True for temporary files
        (docs/sampling.md).
    ledger : Ledger or str, optional
        Record of every charge and every release. Default: in memory. A URL, ``sqlite:///people.ledger`` or
        ``postgresql://…``, names a durable ledger: the same call resumes it, and processes share it (docs/ledger.md). A
        ledger that has entries is resumed: the session then knows what was released and has spent what was charged,
        provided that table and options are the same. The ledger of an interrupted opening (Ctrl-C) is resumed where it
        stopped.
    analyst : str
        Analyst on whose behalf a durable ledger is charged, for caps and for the ledger's view of spending.
    block : str
        Name of the table, if others will be appended to it (docs/blocks.md).
    seed : int, optional
        Makes the noise repeatable and therefore not private. For tests only.
    limit : int or str, optional
        Memory that the opening, and any one question, may use: in bytes, or as in "2GB". Default: half of the machine's
        memory. Larger work is refused by its public size before anything is read or charged (docs/limitations.md).
    progress : bool, optional
        Show what is being done. Default: on a terminal and in a notebook.
    **options
        Options of a profile that is given by name: ``queries``, ``beta`` and ``workload`` of either; ``guard``,
        ``reserve``, ``model_cells`` and ``pay_for_hits`` of ``hr.Practical``; ``alpha`` of ``hr.Theory``. ``hr.open(…,
        reserve=0.1)`` means ``hr.open(…, profile=hr.Practical(reserve=0.1))``.

    Returns
    -------
    Session

    Raises
    ------
    InvalidInput
        If an argument does not make sense, an option belongs to the other profile, or the ledger belongs to another
        table or other options.
    TooLarge
        If the model or the workload would need more memory than the limit.
    DataUnavailable
        If the table cannot be read.

    Example
    -------
    >>> universe = hr.Universe(age=hr.Range(17, 90, bins=8), smoker=hr.Flag())  # doctest: +SKIP
    >>> session = hr.open("people.csv", universe=universe, budget=hr.Budget(1, 1e-9))  # doctest: +SKIP
    """
    engine_profile = profile_of(profile, options)
    if isinstance(universe, Universe):
        engine_profile = with_questions(engine_profile, universe)
    require_name("block", block)
    chosen = _Options(engine_profile, _check_trusted(trusted_losses))
    budget, whose = _unit_budget(budget, unit, rows_per_unit, source)
    most = in_bytes(limit)
    with limit_memory(most), phases(progress):
        _require_types(universe, budget, table, None, seed)
        require_libraries()
        require_memory(universe, chosen.workload, chosen.model_cells)
        tell(_show_reading(require_time(universe, chosen.model_cells)))
        given = None if isinstance(ledger, str) else ledger
        data, account, noise = _prepare(source, universe, budget, table, csv, given, seed, whose, stacklevel=7)
        if isinstance(ledger, str):
            named = {} if block == FIRST else {"block": block}
            account = _durable(ledger, budget, data, analyst, chosen.declaration(universe, unit) | named)
        elif analyst:
            raise InvalidInput(
                f"analyst must come with a durable ledger. Found {analyst!r} without one. Give ledger='sqlite:///…'."
            )
        kept = _kept_rows(keep_rows, source, data, universe, budget, table, csv)
        engine = _open_engine(data, account, noise, chosen, engine_profile.beta, None, resumable=ledger is not None)
    _warn_of_another_fit(account)
    sampled = None
    if kept is not None:
        from hedgerow.engine.sampling import RowSampling

        sampled = RowSampling(kept, universe, account, noise, queries=engine_profile.queries, beta=engine_profile.beta)
    appending = _Appending(chosen, noise, whose, unit, progress)
    return Session(
        data, account, noise, engine, engine_profile.beta, sampled, block=block, appending=appending, limit=most
    )


@dataclass(frozen=True)
class _Options:
    """Options that the engine of every block is built from."""

    profile: Practical | Theory
    trusted_losses: tuple[Custom, ...]

    @property
    def workload(self) -> Workload | list[Query] | None:
        """Questions that the owner declared."""
        found: Workload | list[Query] | None = checked_workload(self.profile.workload)
        return found

    @property
    def model_cells(self) -> int:
        """Largest size of the hypothesis."""
        return self.profile.model_cells if isinstance(self.profile, Practical) else MODEL_CELLS

    def declaration(self, universe: Universe, unit: str | None) -> dict[str, Any]:
        """Return the options that a durable ledger is bound to. They must not change when it is resumed."""
        return {
            "universe": universe,
            **self.profile.declared,
            "vouched": self.trusted_losses,  # the name in ledgers of earlier versions
            **({} if unit is None else {"unit": unit}),
        }


def _open_engine(
    data: DataSource,
    account: Ledger,
    noise: Noise,
    options: _Options,
    beta: float,
    prior: BlockPrior | None,
    *,
    resumable: bool,
) -> Engine:
    """Build the engine of a table and let it learn all that the ledger holds.

    ``prior`` is the hypothesis that the engine starts from. ``resumable`` tells whether the caller keeps the ledger.
    """
    with account.opening(), _replayed_opening(account, resumable=resumable):
        engine = _engine(data, account, noise, options, beta, prior)
        engine.resume(account.end_replay())
        account.snapshots.remember(engine.state)
    return engine


def _engine(
    data: DataSource, account: Ledger, noise: Noise, options: _Options, beta: float, prior: BlockPrior | None
) -> Engine:
    """Build the engine of the chosen profile."""
    universe, workload, profile = data.universe, options.workload, options.profile
    if isinstance(profile, Theory):
        asked = [] if workload is None or isinstance(workload, Workload) else list(workload)
        from hedgerow.engine import theory

        convex = bound_convex(asked, universe)
        return theory.build_theory_engine(
            data, account, noise, convex=convex, queries=profile.queries, beta=beta, alpha=profile.alpha, trusted_losses=options.trusted_losses
        )  # fmt: skip
    return build_practical_engine(
        data, account, noise, workload=workload, queries=profile.queries, beta=beta, guard=profile.guard, reserve=profile.reserve,
        trusted_losses=options.trusted_losses, model_cells=profile.model_cells, prior=prior,
        pay_for_hits=profile.pay_for_hits,
    )  # fmt: skip


@dataclass(frozen=True)
class _Appending:
    """Make further rows a block of a session: opened like the first table, with its own ledger."""

    options: _Options
    noise: Noise
    whose: PersonColumn | None
    unit: str | None
    progress: bool | None

    @one_thread
    def __call__(self, blocks: Sequence[Block], name: str, source: Any, **given: Any) -> Block:
        first, universe = blocks[0], blocks[0].data.universe
        budget = self._budget(first, given["budget"])
        account: Ledger | None = given["ledger"]
        _require_types(universe, budget, given["table"], account, None)
        if account is not None and (
            first.ledger.snapshots.keeps_state or any(account is block.ledger for block in blocks)
        ):
            raise InvalidInput(
                "ledger must be that of this block, in a session whose ledger is in memory. Found another "
                "ledger. Leave ledger out."
            )
        if self.unit is not None and isinstance(source, DataSource) and source.is_present:
            raise InvalidInput(
                "unit must come with a table that has its column. Found a source of counts only. Append the file or "
                "frame itself."
            )
        with phases(self.progress):
            tell(lambda: "reading the block")
            data = _read_source(source, universe, budget, given["table"], given["csv"], self.whose, stacklevel=6)
            if any(data is block.data for block in blocks):
                raise InvalidInput(
                    "The rows of a block must not be those of another. Found the same table. Append only new rows."
                )
            if account is None:
                account = first.ledger.of_block(name, len(blocks), budget, lambda: self._binding(data))
            elif account.budget != budget:
                raise InvalidInput(
                    "budget must be that of the ledger. Found another. Pass the budget it was opened with."
                )
            # half of a second β, divided over all blocks that may ever be appended: Σ 1/(i(i + 1)) = 1
            beta = first.beta / 2 / (len(blocks) * (len(blocks) + 1))
            prior = blocks[-1].engine.next_prior
            resumable = given["ledger"] is not None or account.snapshots.keeps_state
            engine = _open_engine(data, account, self.noise, self.options, beta, prior, resumable=resumable)
        return Block(name, data, account, engine, AnswerCache(engine, account.answer_log), beta)

    def _budget(self, first: Block, budget: Any) -> Budget:
        """Return the budget of a block, after checking that it is of the same kind as that of the first block."""
        if isinstance(self.options.profile, Theory) and first.budget.neighbours != "replace":
            raise InvalidInput(
                "Blocks of the theory profile must have neighbours='replace', because it divides by a public number "
                "of rows. Found 'add-remove'. Use profile='practical'."
            )
        if budget is None:
            return first.budget
        if not isinstance(budget, Budget):
            raise InvalidInput(
                f"budget must be an hr.Budget. Found {type(budget).__name__}. For example hr.Budget(epsilon=1, "
                "delta=1e-6)."
            )
        promised = budget if self.unit is None else budget.per_unit(first.budget.rows_per_unit)
        kinds = [(each.neighbours, each.pure, each.rows_per_unit) for each in (first.budget, promised)]
        if kinds[0] != kinds[1]:
            raise InvalidInput(
                f"The budget of a block must equal that of the first, {first.budget!r}, except for epsilon and delta, "
                f"and delta must be 0 for both or for neither. Found {promised!r}. Change it, or leave it out."
            )
        return promised

    def _binding(self, data: DataSource) -> Any:
        """Return what ties the block's part of a durable ledger to its table and options."""
        from hedgerow import ledger as ledgers  # needs libraries that a plain install does not have

        declared = ledgers.comparable_options(**self.options.declaration(data.universe, self.unit))
        return ledgers.Binding(functools.cache(data.fingerprint) if data.is_present else None, declared, FIT_VERSION)


def _durable(url: str, budget: Budget, data: DataSource, analyst: str, options: dict[str, Any]) -> Ledger:
    """Open the durable ledger at a URL, bound to this table and these options."""
    from hedgerow import ledger as ledgers  # needs libraries that a plain install does not have

    found = data.fingerprint if data.is_present else None
    binding = ledgers.Binding(found, ledgers.comparable_options(**options), FIT_VERSION)
    return ledgers.opened(url, budget, who=analyst, binding=binding)


def _warn_of_another_fit(account: Ledger) -> None:
    """Warn where a later fit answers new questions of a ledger otherwise than the fit that it was begun with."""
    if account.earlier_fit is not None:
        warnings.warn(
            f"The fit of a ledger should be the one that it was begun with. Found fit {FIT_VERSION}, where the ledger "
            f"notes fit {account.earlier_fit[:40]}. Recorded answers repeat; new ones follow fit {FIT_VERSION}, and "
            "may differ from what the earlier fit would have answered.",
            FitChangedWarning,
            stacklevel=4,
        )


@one_thread
def release(
    source: Any,
    *,
    universe: Universe,
    budget: Budget,
    workload: Workload | Iterable[Any] | str | None = None,
    table: str | None = None,
    csv: Csv | None = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    method: Literal["adaptive", "matrix", "mwem", "small_db", "convex"] = "adaptive",
    beta: float = 0.05,
    model_cells: int = MODEL_CELLS,
    seed: int | None = None,
    limit: int | str | None = None,
    progress: bool | None = None,
) -> Session:
    """Spend the whole budget at once on a workload that is known in advance.

    The session that is returned answers questions and draws synthetic records for free.

    Parameters
    ----------
    source, universe, budget, table, csv, unit, rows_per_unit, beta, model_cells, seed, limit, progress
        As in ``open``.
    workload : Workload or iterable of Query, optional
        Questions that the release should answer best. Default: all sets of up to three attributes; for "matrix", "mwem"
        and "small_db", all pairs. For "convex" it must be a list of ``hr.minimize``.
    method : {"adaptive", "matrix", "mwem", "small_db", "convex"}
        "adaptive" is the engine of the practical profile. "matrix" gives the workload unbiased answers, whose exact
        expected errors ``hr.plan`` states beforehand. The others are textbook mechanisms with a promise for the
        workload: "mwem" (MWEM); "small_db", which chooses a small table among all tables of its size, for universes of
        a few cells, and spends ε alone (its session has δ = 0); "convex", private multiplicative weights for known
        losses.

    Returns
    -------
    Session

    Raises
    ------
    InvalidInput
        If an option does not suit the table, the universe or the method.
    BudgetExceeded
        If the budget is too small for the method.
    TooLarge
        If the model would need more memory than the limit.

    Example
    -------
    >>> r = hr.release("adult.csv", universe=universe, budget=budget, workload=hr.marginals(3))  # doctest: +SKIP
    >>> r.synthetic(10_000)  # doctest: +SKIP
    """
    workload = checked_workload(
        Practical(queries=1, beta=beta, workload=workload, guard=0.0, reserve=0.0, model_cells=model_cells).workload
    )
    if isinstance(universe, Universe):
        workload = read_workload(workload, universe)
    if method not in METHODS:
        raise InvalidInput(f"method must be one of {', '.join(METHODS)}. Found {method!r}. Choose one.")
    budget, whose = _unit_budget(budget, unit, rows_per_unit, source)
    if method == "small_db" and isinstance(budget, Budget):
        budget = replace(budget, delta=0.0)  # one choice is dearer in ρ, and needs no δ
    most = in_bytes(limit)
    with limit_memory(most), phases(progress):
        _require_types(universe, budget, table, None, seed)
        require_libraries()
        require_memory(universe, workload, model_cells, one_by_one=method in ("mwem", "small_db"))
        tell(_show_reading(require_time(universe, model_cells)))
        data, ledger, noise = _prepare(source, universe, budget, table, csv, None, seed, whose, stacklevel=6)
        engine: Engine
        if method != "adaptive":
            asked = (
                workload.on(universe) if isinstance(workload, Workload) else list(workload or marginals(2).on(universe))
            )
            bound = [bound_to(query, universe) for query in asked] if method != "convex" else []
        if method == "matrix":
            from hedgerow.engine.matrix import plan_matrix, run_matrix, split_workload

            asked_of = split_workload(bound, universe)
            engine = run_matrix(
                data, ledger, noise, plan_matrix(budget, universe, *asked_of, rows=data.rows, beta=beta)
            )
        elif method == "mwem":
            engine = run_mwem(data, ledger, noise, workload=bound, beta=beta)
        elif method == "small_db":
            vc = workload.vc_dimension(universe) if isinstance(workload, Workload) else None
            engine = run_small_db(data, ledger, noise, workload=bound, beta=beta, vc=vc)
        elif method == "convex":
            engine = run_convex(data, ledger, noise, workload=bound_convex(asked, universe), beta=beta)
        else:
            engine = build_practical_engine(
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
    """Refuse an opening whose public sizes need more memory than the limit, before anything is read or charged.

    ``one_by_one`` tells whether the tables of the workload are asked cell by cell.
    """
    require_values(dict(zip(universe.names, universe.shape, strict=True)))
    cells = _most_cells(universe, model_cells)
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
    bound = [bound_to(query, universe) for query in asked]  # refuses a question that is too large by itself
    if one_by_one:
        tables = [universe.sizes(names) for each in bound for names in each.tables]
        numbers = sum(math.prod(sizes) for sizes in tables)
        require_listing("The workload of MWEM", numbers, max(map(sum, tables), default=0), "Use method='adaptive'")


def require_time(universe: Universe, model_cells: int = MODEL_CELLS) -> float:
    """Return the estimated seconds of an opening, from public sizes. Refuse one that would take days.

    The time to read the rows is not part of it.
    """
    cells, pairs = _most_cells(universe, model_cells), math.comb(len(universe.names), 2)
    seconds = cells * _duration.MODEL + pairs * _duration.PAIR
    what = f"An opening of {len(universe.names)} attributes, with a model of up to {cells} cells,"
    _duration.require(what, seconds, "Declare fewer attributes, or lower model_cells")
    return seconds


def _show_reading(seconds: float) -> Callable[[], str]:
    """Return the words for the first phase, with the time of the phases after it if that is long."""
    later = f"; what follows takes at least {_duration.format_duration(seconds)}" if seconds > 60 else ""
    return lambda: "reading the table" + later


def _most_cells(universe: Universe, model_cells: int) -> int:
    """Return the largest number of cells that the model may grow to."""
    return min(LARGEST_MODEL_CELLS // MODEL_CELLS * model_cells, universe.size)


@contextmanager
def _replayed_opening(ledger: Ledger, *, resumable: bool) -> Iterator[None]:
    """Begin to replay the ledger. After Ctrl-C, add a note on what was spent and how to go on."""
    ledger.begin_replay()
    try:
        yield
    except KeyboardInterrupt as stopped:
        way_out = (
            "Open again with the same ledger to go on from there"
            if resumable
            else (
                "It is lost with this ledger: count it as spent, and pass ledger=hr.Accountant(budget) to be able to "
                "go on next time"
            )
        )
        stopped.add_note(
            f"{ledger.spent:.4g} of {ledger.budget.total:.4g} {ledger.budget.currency} was spent. {way_out}."
        )
        raise


def _prepare(
    source: Any,
    universe: Universe,
    budget: Budget,
    table: str | None,
    csv: Csv | None,
    ledger: Ledger | None,
    seed: int | None,
    unit: PersonColumn | None,
    stacklevel: int,
) -> tuple[DataSource, Ledger, Noise]:
    """Read the table, and make the ledger and the noise of a session."""
    _require_types(universe, budget, table, ledger, seed)
    account = Accountant(budget) if ledger is None else ledger
    if account.budget != budget:
        raise InvalidInput("budget must be that of the ledger. Found another. Pass the budget it was opened with.")
    with compile_ahead(universe):
        data = _read_source(source, universe, budget, table, csv, unit, stacklevel=stacklevel)
    return data, account, Noise() if seed is None else Seeded(seed)


def _read_source(
    source: Any,
    universe: Universe,
    budget: Budget,
    table: str | None,
    csv: Csv | None,
    unit: PersonColumn | None,
    *,
    stacklevel: int,
) -> DataSource:
    """Read the source into a data source, and check and warn by public facts."""
    data = source if isinstance(source, DataSource) else open_source(source, universe, table=table, csv=csv, unit=unit)
    if data.universe != universe:
        raise InvalidInput(
            "The data must be coded by the session's universe. Found data with another universe. Pass the universe "
            "that coded the data."
        )
    if budget.neighbours == "replace" and data.rows == 0:
        raise InvalidInput("The table must have at least one row. Found 0. Check the source.")
    advise(budget, data.rows if budget.neighbours == "replace" else None, universe.shape, stacklevel=stacklevel)
    return data


def _unit_budget(budget: Any, unit: Any, rows_per_unit: Any, source: Any) -> tuple[Budget, PersonColumn | None]:
    """Return the budget per person and the rule for which rows of a person are kept, if a unit is named."""
    if unit is None:
        if rows_per_unit is not None:
            raise InvalidInput(
                f"rows_per_unit must come with unit. Found {rows_per_unit!r} alone. Name the column that says whose "
                "row it is. If no person has more rows anyway, state that in the budget: Budget(…, rows_per_unit=…)."
            )
        return budget, None
    if not isinstance(budget, Budget):
        raise InvalidInput(
            f"budget must be an hr.Budget. Found {type(budget).__name__}. For example hr.Budget(1, 1e-6, 'add-remove')."
        )
    if isinstance(source, DataSource) and source.is_present:
        raise InvalidInput(
            "unit must come with a table that has its column. Found a source of counts only. Open the file or frame "
            "itself."
        )
    promised = budget.per_unit(rows_per_unit)
    return promised, PersonColumn(unit, promised.rows_per_unit)


def _require_types(universe: Any, budget: Any, table: Any, ledger: Any, seed: Any) -> None:
    """Refuse arguments of the wrong type, before anything is read."""
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


def _kept_rows(
    keep_rows: bool | str | Path | RowStore,
    source: Any,
    data: DataSource,
    universe: Universe,
    budget: Budget,
    table: str | None,
    csv: Csv | None,
) -> RowStore | None:
    """Return the store of raw values of the table that was counted, or None if none is wanted."""
    if keep_rows is False:
        return None
    if budget.neighbours != "replace":
        raise InvalidInput(
            "keep_rows must come with neighbours='replace', because the cost of a sample depends on the number of "
            "rows. Found 'add-remove'. Leave keep_rows out and ask counts, or use textbook.subsampled.poisson_plan "
            "at a public rate."
        )
    if not isinstance(keep_rows, bool | str | Path | RowStore):
        raise InvalidInput(
            f"keep_rows must be True, a folder or a store of rows. Found {type(keep_rows).__name__}. Pass "
            "keep_rows=True."
        )
    if isinstance(source, DataSource) and not isinstance(keep_rows, RowStore):
        raise InvalidInput(
            "keep_rows must be a store of rows if the source has only counts. Found none. Open the file or frame "
            "itself, or give keep_rows=data.rows.row_store(…)."
        )
    store = keep_rows
    if not isinstance(store, RowStore):
        folder = None if store is True else store
        store = row_store(
            source, columns_of(universe), folder, coded=universe, table=table, csv=csv, progress=sys.stderr.isatty()
        )
    if store.rows != data.rows:  # public under replace-one
        raise InvalidInput(
            f"The stored rows must be the {data.rows} rows of the table. Found {store.rows}. Open a source that does "
            "not change and can be read twice."
        )
    return store


def _check_trusted(losses: Collection[Custom]) -> tuple[Custom, ...]:
    """Check the list of custom losses that the owner trusts."""
    if isinstance(losses, Custom) or not all(isinstance(loss, Custom) for loss in losses):
        raise InvalidInput(
            "trusted_losses must be a list of losses.Custom. Found another object. Give a list, such as [loss]."
        )
    return tuple(losses)
