"""Opening a session on a sensitive table: the source, the budget and the profile that will answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Literal

from hedgerow.convex.losses.custom import Custom
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.data import DataSource, Table
from hedgerow.data.csv_file import Csv
from hedgerow.engines import theory
from hedgerow.engines.engine import Engine
from hedgerow.engines.practical.engine import prefitted
from hedgerow.engines.release import released
from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant, Ledger
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.questions.counts import Query
from hedgerow.questions.counts import bound as bound_to
from hedgerow.questions.universe import Universe
from hedgerow.questions.workloads import Workload, marginals
from hedgerow.session import Session


def open(
    source: Any,
    *,
    universe: Universe,
    budget: Budget,
    table: str | None = None,
    csv: Csv | None = None,
    profile: Literal["practical", "theory"] = "practical",
    queries: int = 100_000,
    beta: float = 0.05,
    alpha: float | None = None,
    workload: Workload | Iterable[Query] | None = None,
    guard: float | None = None,
    reserve: float = 0.05,
    vouched: Collection[Custom] = (),
    ledger: Ledger | None = None,
    seed: int | None = None,
) -> Session:
    """Open a session on a sensitive table.

    ``source``: a CSV or Parquet path, a pandas, polars or Arrow frame, an Ibis table, or a database URL with ``table``.
    It is read once, now, and every value of every row has its cell: docs/reading.md says which.
    ``csv``: how a CSV file is written, where not with commas, double quotes, UTF-8 and a header line.
    ``profile``: "practical" spends most of the budget on a hypothesis before the first question; "theory" is the
    textbook mechanism with its guarantee, for which ``queries``, ``beta`` and ``alpha`` are the theorem's k, β and α.
    ``workload``: what the practical hypothesis should know best; all sets of up to three attributes by default. In the theory
    profile, the convex questions in it state the largest constants of the losses that will be asked.
    ``guard``: the share of the budget for the sparse vector; by default a public rule, 0 for none.
    ``reserve``: the share kept for ``ask(within=…)``.
    ``vouched``: losses of one's own (``losses.Custom``) that may be minimised on the data, where their functions see private
    values; any other is answered from the hypothesis alone. Only for functions that the owner has read.
    ``ledger``: where every charge and release is written; in memory by default. One that has entries is taken up again: the
    session then knows, and has spent, what it had, provided that it is opened with the same options on the same table.
    ``seed``: repeatable, and therefore not private: for tests.
    """
    _require_options(profile, queries, beta, reserve, guard)
    allowed = _vouched(vouched)
    data, account, noise = _prepared(source, universe, budget, table, csv, ledger, seed)
    engine: Engine
    if profile == "theory":
        asked = [] if workload is None or isinstance(workload, Workload) else list(workload)
        convex = [q for q in (bound_to(query, universe) for query in asked) if isinstance(q, BoundMinimize)]
        engine = theory.calibrated(
            data, account, noise, convex=convex, queries=queries, beta=beta, alpha=alpha, vouched=allowed
        )
    else:
        engine = prefitted(
            data, account, noise, workload=workload, queries=queries, beta=beta, guard=guard, reserve=reserve,
            vouched=allowed,
        )  # fmt: skip
    engine.resume(account.rest())
    return Session(data, account, noise, engine)


def release(
    source: Any,
    *,
    universe: Universe,
    budget: Budget,
    workload: Workload | Iterable[Query] | None = None,
    table: str | None = None,
    csv: Csv | None = None,
    method: Literal["adaptive", "mwem"] = "adaptive",
    beta: float = 0.05,
    seed: int | None = None,
) -> Session:
    """Spend the whole budget at once on a workload known in advance; then ask and draw synthetic records for free.

    ``method``: "adaptive" is the engine of the practical profile; "mwem" the lecture's offline mechanism.
    """
    _require_options("practical", 1, beta, 0.0, 0.0)
    data, ledger, noise = _prepared(source, universe, budget, table, csv, None, seed)
    engine: Engine
    if method == "mwem":
        asked = workload.on(universe) if isinstance(workload, Workload) else list(workload or marginals(2).on(universe))
        engine = released(data, ledger, noise, workload=[bound_to(query, universe) for query in asked], beta=beta)
    else:
        engine = prefitted(
            data, ledger, noise, workload=workload, queries=1, beta=beta, guard=0.0, reserve=0.0, everything=True
        )
    return Session(data, ledger, noise, engine)


def _prepared(
    source: Any,
    universe: Universe,
    budget: Budget,
    table: str | None,
    csv: Csv | None,
    ledger: Ledger | None,
    seed: int | None,
) -> tuple[DataSource, Ledger, Noise]:
    account = Accountant(budget) if ledger is None else ledger
    if account.budget != budget:
        raise InvalidInput("budget must be that of the ledger. Found another. Pass the budget it was opened with.")
    data = source if isinstance(source, DataSource) else Table(source, universe, table=table, csv=csv)
    if data.universe != universe:
        raise InvalidInput("The data must be coded by the session's universe. Found another. Pass the same universe.")
    if budget.neighbours == "replace" and data.rows == 0:
        raise InvalidInput("The table must have at least one row. Found 0. Check the source.")
    return data, account, Noise() if seed is None else Seeded(seed)


def _vouched(losses: Collection[Custom]) -> tuple[Custom, ...]:
    if isinstance(losses, Custom) or not all(isinstance(loss, Custom) for loss in losses):
        raise InvalidInput("vouched must be a list of losses.Custom. Found something else. List the losses.")
    return tuple(losses)


def _require_options(profile: str, queries: int, beta: float, reserve: float, guard: float | None) -> None:
    if profile not in ("practical", "theory"):
        raise InvalidInput(f"profile must be 'practical' or 'theory'. Found {profile!r}. Choose one.")
    if not isinstance(queries, int) or queries < 1:
        raise InvalidInput(f"queries must be a whole number of at least 1. Found {queries!r}. Say how many you expect.")
    if not 0 < beta < 1:
        raise InvalidInput(f"beta must be between 0 and 1. Found {beta!r}. Give the probability of failure.")
    shares = reserve + 2 * (guard or 0.0)
    if not (reserve >= 0 and (guard is None or guard >= 0) and shares < 1):
        raise InvalidInput(
            f"reserve and guard must be shares with reserve + 2·guard below 1. Found {reserve!r} and {guard!r}. Lower them."
        )
