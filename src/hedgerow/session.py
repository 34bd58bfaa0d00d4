"""A session: any number of adaptively chosen questions about one sensitive table under one privacy budget.

The session binds a question to the universe, recognises repeats from its public log, asks the mechanism of its
profile, and says what each answer cost. Everything it stores or shows has been released and billed.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hedgerow._checks import number
from hedgerow.convex.losses.custom import Custom
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.data import DataSource, Table
from hedgerow.data.csv_file import Csv
from hedgerow.engines.practical.engine import Practical, prefitted
from hedgerow.engines.theory import Offline, Theory, convex_pmw
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Accountant, Entry, Ledger, one_at_a_time
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.privacy.process import OneOnly
from hedgerow.questions.counts import BoundMarginal, BoundMean, Query
from hedgerow.questions.counts import bound as bound_to
from hedgerow.questions.linear import Linear, marginal_cells
from hedgerow.questions.universe import Universe
from hedgerow.questions.workloads import Workload, marginals
from hedgerow.textbook import mwem
from hedgerow.textbook.pmw import OnlinePMW, configure

if TYPE_CHECKING:
    import pandas as pd

Source = Literal["hypothesis", "measured", "repeat"]


@dataclass(frozen=True)
class Answer:
    """A private answer. ``error`` is a half-width that holds for all answers of the session at once with 1 − β.

    Of a convex question ``value`` is θ and ``error`` a bound on its excess risk: how much larger its average loss on the
    table may be than the least of the set. ``error`` is None where nothing public bounds it. ``cost`` is in the budget's
    currency: ε when δ = 0, else ρ.
    """

    query: Query
    value: Any
    error: float | None
    source: Source
    cost: float
    _labels: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    @property
    def frame(self) -> pd.DataFrame:
        """A marginal as a table with one row per cell."""
        import pandas as pd

        if not self._labels:
            return pd.DataFrame({"value": [self.value], "error": [self.error]})
        names, labels = [n for n, _ in self._labels], [list(v) for _, v in self._labels]
        index = pd.MultiIndex.from_product(labels, names=names)
        return pd.DataFrame({"value": np.asarray(self.value).ravel()}, index=index).reset_index()

    def __repr__(self) -> str:
        bar = "" if self.error is None else f" ± {self.error:.4g}"
        value = f"{self.value:.6g}" if isinstance(self.value, float) else f"array{np.shape(self.value)}"
        return f"Answer({value}{bar}, {self.source}, cost {self.cost:.3g})"


class Session(OneOnly):
    """Made by ``hr.open`` or ``hr.release``. Threads may share it: they take turns. A fork of its process cannot ask."""

    def __init__(self, data: DataSource, ledger: Ledger, noise: Noise, engine: Theory | Offline | Practical) -> None:
        """``engine`` answers; the session remembers, scales and reports."""
        self._data, self.ledger, self._noise, self._engine = data, ledger, noise, engine
        self._answered: dict[Any, Answer] = {}

    @property
    def universe(self) -> Universe:
        return self._data.universe

    @property
    def budget(self) -> Budget:
        return self.ledger.budget

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
    def spent(self) -> float:
        """What has been spent, in the budget's currency (ε when δ = 0, else ρ)."""
        return self.ledger.spent

    @property
    def remaining(self) -> float:
        return self.ledger.remaining

    @property
    def spent_epsilon(self) -> float:
        """What has been spent as an ε at the budget's δ."""
        return self.ledger.spent_epsilon

    @property
    def log(self) -> tuple[Entry, ...]:
        """Every billed use of the data so far, in order."""
        return tuple(replace(entry, private=entry.private and self.private) for entry in self.ledger.entries())

    @one_at_a_time
    def ask(
        self, query: Query, *, within: float | None = None, scale: Literal["fraction", "rows"] = "fraction"
    ) -> Answer:
        """A private answer. ``within`` pays for a direct measurement exactly when the free bound is not that good.

        Of a convex question it pays until the bound is that good or nothing is left: the bar says which.
        """
        _require_scale(scale)
        wanted = None if within is None else number(within)
        if wanted is not None and not 0 < wanted <= 1:
            raise InvalidInput(
                f"within must be above 0 and at most 1. Found {within!r}. Give a fraction, such as 0.01."
            )
        bound = bound_to(query, self.universe)
        return self._scaled(self._bound(query, bound, wanted), bound, scale)

    def ask_all(
        self,
        queries: Iterable[Query],
        *,
        scale: Literal["fraction", "rows"] = "fraction",
        progress: bool | None = None,
    ) -> list[Answer]:
        """Answers to many questions, in order; the same as asking one by one, but vectorised where that changes nothing.

        ``progress`` shows a bar; by default when there are more than 1,000 questions.
        """
        _require_scale(scale)
        asked = list(queries)
        bound = [
            bound_to(query, self.universe) for query in asked
        ]  # a bad question is refused before anything is spent
        answers: list[Answer] = []
        with _bar(len(asked), progress) as advance:
            for start in range(0, len(asked), 8192):
                some = list(zip(asked[start : start + 8192], bound[start : start + 8192], strict=True))
                answers += [
                    self._scaled(a, b, scale) for a, (_, b) in zip(self._batch(some, advance), some, strict=True)
                ]
        return answers

    @one_at_a_time
    def synthetic(self, rows: int | None = None) -> pd.DataFrame:
        """Synthetic records whose counts match the hypothesis, free. As many as the table has unless told."""
        import pandas as pd

        wanted = round(self.rows) if rows is None else rows
        if not isinstance(wanted, int | np.integer) or wanted < 1:
            raise InvalidInput(f"rows must be a whole number of at least 1. Found {rows!r}. Say how many records.")
        codes = self.hypothesis.sample(int(wanted), self._noise.generator(), rounded=True)
        return pd.DataFrame(self.universe.decode(codes, numeric=True))

    @one_at_a_time
    def _batch(self, asked: list[tuple[Query, Any]], advance: Callable[[], None]) -> list[Answer]:
        """Answers in order. Where the engine can answer for free they are computed together."""
        fresh = {b.key: b for _, b in asked if isinstance(b, Linear) and b.key not in self._answered}
        free = self._engine.answer_free(list(fresh.values()))
        ready = {} if free is None else dict(zip(fresh, free, strict=True))
        answers = []
        for query, bound in asked:
            found = ready.pop(bound.key, None) if isinstance(bound, Linear) else None
            if found is None:
                answers.append(self._bound(query, bound, None))
            else:
                answers.append(Answer(query, *found, "hypothesis", 0.0))
                self._answered[bound.key] = answers[-1]
            advance()
        return answers

    def _bound(self, query: Query, bound: Any, within: float | None) -> Answer:
        return self._mean(query, bound, within) if isinstance(bound, BoundMean) else self._asked(query, bound, within)

    def _asked(self, query: Query, bound: Linear | BoundMarginal | BoundMinimize, within: float | None) -> Answer:
        known = self._answered.get(bound.key)
        if known is not None and (within is None or (known.error is not None and known.error <= within * (1 + 1e-9))):
            return replace(known, query=query, source="repeat", cost=0.0)
        labels: tuple[tuple[str, tuple[Any, ...]], ...] = ()
        value: Any
        with self.ledger.asking(repr(query)) as bill:
            if isinstance(bound, Linear):
                value, error, source = self._engine.answer(bound, within)
            elif isinstance(bound, BoundMinimize):
                value, error, source = self._engine.minimise(bound, within)
            else:
                value, error, source = self._engine.marginal(bound.attributes, within)
                labels = tuple((name, self.universe[name].labels) for name in bound.attributes)
        answer = Answer(query, value, error, source, bill.cost, labels)
        self._answered[bound.key] = answer
        return answer

    def _mean(self, query: Query, bound: BoundMean, within: float | None) -> Answer:
        """A ratio of two linear answers; its bar is the worst the two bars allow."""
        top = self._asked(query, bound.numerator, within)
        bottom = self._asked(query, bound.denominator, within)
        width = bound.high - bound.low
        share = min(1.0, max(0.0, top.value / bottom.value)) if bottom.value > 0 else 0.5
        error: float | None = None
        if top.error is not None and bottom.error is not None:
            least, most = bottom.value - bottom.error, bottom.value + bottom.error
            upper = 1.0 if least <= 0 else min(1.0, (top.value + top.error) / least)
            lower = 0.0 if most <= 0 else max(0.0, (top.value - top.error) / most)
            error = width * max(upper - share, share - lower)
        source: Source = "measured" if "measured" in (top.source, bottom.source) else top.source
        return Answer(query, bound.low + width * share, error, source, top.cost + bottom.cost)

    def _scaled(self, answer: Answer, bound: Any, scale: str) -> Answer:
        if scale == "fraction" or isinstance(bound, BoundMean | BoundMinimize):
            return answer
        error = None if answer.error is None else self._engine.error_in_rows(answer.value, answer.error)
        return replace(answer, value=answer.value * self.rows, error=error)

    def __repr__(self) -> str:
        warning = f"NOT PRIVATE: seed {self._noise.seed}, " if isinstance(self._noise, Seeded) else ""
        return f"Session({warning}{self.universe!r}, {self.budget!r}, spent {self.spent:.4g} of {self.budget.total:.4g} {self.budget.currency})"


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
    ``seed``: repeatable, and therefore not private: for tests.
    """
    data, ledger, noise = _prepared(source, universe, budget, table, csv, seed)
    _require_options(profile, queries, beta, reserve, guard)
    vouched = _vouched(vouched)
    if profile == "theory":
        share, scale, off = 1.0, float(data.rows), 0.0
        if budget.neighbours == "add-remove":  # n is private: a hundredth of the budget, and a tenth of β, estimate it
            share, event = 0.99, Amount.share_of(budget, 0.01).count()
            scale = max(1.0, float(noise.add(data.rows, ledger.charge(event, why="theory: number of rows"))))
            off, beta = _reach(event, 0.1 * beta), 0.9 * beta
        convex = _convex_questions(universe, workload)
        split = 2 if convex else 1  # budget and β: half for each kind of question
        config = configure(
            budget,
            cells=universe.size,
            scale=scale,
            queries=queries,
            beta=beta / split,
            alpha=alpha,
            share=share / split,
        )
        pmw = OnlinePMW(config, data, ledger, noise)
        if not convex:
            return Session(data, ledger, noise, Theory(pmw, off=off))
        beside = convex_pmw(
            convex, data, ledger, noise,
            hypothesis=pmw.hypothesis, rows=scale, queries=queries, beta=beta / split, share=share / split,
        )  # fmt: skip
        return Session(data, ledger, noise, Theory(pmw, beside, off, vouched))
    engine = prefitted(
        data, ledger, noise, workload=workload, queries=queries, beta=beta, guard=guard, reserve=reserve,
        vouched=vouched,
    )  # fmt: skip
    return Session(data, ledger, noise, engine)


def _vouched(losses: Collection[Custom]) -> tuple[Custom, ...]:
    if isinstance(losses, Custom) or not all(isinstance(loss, Custom) for loss in losses):
        raise InvalidInput("vouched must be a list of losses.Custom. Found something else. List the losses.")
    return tuple(losses)


def _convex_questions(universe: Universe, workload: Workload | Iterable[Query] | None) -> list[BoundMinimize]:
    asked = [] if workload is None or isinstance(workload, Workload) else list(workload)
    bound = [bound_to(query, universe) for query in asked]
    return [question for question in bound if isinstance(question, BoundMinimize)]


def _linear_queries(universe: Universe, workload: Workload | Iterable[Query] | None) -> list[Linear]:
    """A workload as linear queries, marginals cell by cell."""
    asked = workload.on(universe) if isinstance(workload, Workload) else list(workload or marginals(2).on(universe))
    found: list[Linear] = []
    for bound in (bound_to(query, universe) for query in asked):
        if isinstance(bound, BoundMinimize):
            raise InvalidInput(
                "The workload of method='mwem' must be of linear questions. Found a convex one. Use method='adaptive'."
            )
        if isinstance(bound, BoundMarginal):
            found += marginal_cells(universe, bound.attributes)
        else:
            found += [bound.numerator, bound.denominator] if isinstance(bound, BoundMean) else [bound]
    return found


def _reach(event: Laplace | Gaussian, beta: float) -> float:
    """How far its noise reaches, except with probability β: P[|Z| ≥ t] ≤ 2e^{−t/b}, or 2e^{−t²/2σ²}."""
    if isinstance(event, Laplace):
        return event.scale * math.log(2 / beta)
    return event.sigma * math.sqrt(2 * math.log(2 / beta))


def _prepared(
    source: Any, universe: Universe, budget: Budget, table: str | None, csv: Csv | None, seed: int | None
) -> tuple[DataSource, Ledger, Noise]:
    data = source if isinstance(source, DataSource) else Table(source, universe, table=table, csv=csv)
    if data.universe != universe:
        raise InvalidInput("The data must be coded by the session's universe. Found another. Pass the same universe.")
    if budget.neighbours == "replace" and data.rows == 0:
        raise InvalidInput("The table must have at least one row. Found 0. Check the source.")
    return data, Accountant(budget), Noise() if seed is None else Seeded(seed)


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
    data, ledger, noise = _prepared(source, universe, budget, table, csv, seed)
    _require_options("practical", 1, beta, 0.0, 0.0)
    if method == "mwem":
        if budget.neighbours != "replace":
            raise InvalidInput(
                "MWEM must know n, so neighbours must be 'replace'. Found 'add-remove'. Use method='adaptive'."
            )
        queries = list(dict.fromkeys(_linear_queries(universe, workload)))
        config = mwem.configure(budget, cells=universe.size, scale=float(data.rows), queries=len(queries), beta=beta)
        offline = Offline(mwem.release(config, queries, data, ledger, noise), config, queries)
        return Session(data, ledger, noise, offline)
    engine = prefitted(
        data, ledger, noise, workload=workload, queries=1, beta=beta, guard=0.0, reserve=0.0, everything=True
    )
    return Session(data, ledger, noise, engine)


@contextlib.contextmanager
def _bar(total: int, wanted: bool | None) -> Iterator[Callable[[], None]]:
    if not (total > 1000 if wanted is None else wanted):
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("answering", total=total)
        waiting = 0

        def advance() -> None:
            nonlocal waiting
            waiting += 1
            if waiting == 256:  # a bar that is told of every answer would take longer than the answers
                bar.advance(task, waiting)
                waiting = 0

        yield advance
        bar.advance(task, waiting)


def _require_scale(scale: str) -> None:
    if scale not in ("fraction", "rows"):
        raise InvalidInput(f"scale must be 'fraction' or 'rows'. Found {scale!r}. Choose one.")
