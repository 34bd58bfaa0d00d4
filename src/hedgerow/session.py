"""A session: any number of adaptively chosen questions about one sensitive table under one privacy budget.

The session binds a question to the universe, recognises repeats, asks the engine of its profile, and says what each answer
cost. Everything it stores or shows has been released and billed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hedgerow._checks import number
from hedgerow._progress import counting_bar
from hedgerow._types import Array
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.data.source import DataSource
from hedgerow.engines.engine import Engine
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Entry, Ledger, one_at_a_time
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.privacy.process import OneOnly
from hedgerow.questions.bound import Bound, Estimate, Labels, Source
from hedgerow.questions.counts import BoundMarginal, Query
from hedgerow.questions.counts import bound as bound_to
from hedgerow.questions.linear import Linear
from hedgerow.questions.universe import Universe

if TYPE_CHECKING:
    import pandas as pd

Scale = Literal["fraction", "rows"]
AT_ONCE = 8192  # questions of a batch that are answered together


@dataclass(frozen=True)
class Answer:
    """A private answer. ``error`` is a half-width that holds for all answers of the session at once with 1 − β.

    Of a convex question ``value`` is θ and ``error`` a bound on its excess risk: how much larger its average loss on the
    table may be than the least of the set. Of a table there is one ``error`` for each cell. It is None where nothing public
    bounds it. ``resolution`` is how much of it the universe's bins account for; ``typical`` the size that errors of questions
    like it have on average, which is no bound. ``cost`` is what was charged for it, in the budget's currency: ε when δ = 0,
    else ρ.
    """

    query: Query
    value: Any
    error: float | Array | None
    source: Source
    cost: float
    labels: Labels = ()
    resolution: float | Array = 0.0
    typical: float | Array | None = None

    @property
    def interval(self) -> tuple[Any, Any] | None:
        """Where the truth lies, with 1 − β together with all other answers; None where nothing bounds it."""
        return None if self.error is None else (self.value - self.error, self.value + self.error)

    @property
    def frame(self) -> pd.DataFrame:
        """A marginal as a table with one row per cell."""
        import pandas as pd

        columns = {"value": self.value, "error": self.error, "typical": self.typical}
        if not self.labels:
            return pd.DataFrame({name: [value] for name, value in columns.items()})
        names, labels = [n for n, _ in self.labels], [list(v) for _, v in self.labels]
        index = pd.MultiIndex.from_product(labels, names=names)
        shape = np.shape(self.value)
        cells = {
            name: np.broadcast_to(np.nan if value is None else value, shape).ravel() for name, value in columns.items()
        }
        return pd.DataFrame(cells, index=index).reset_index()

    def __repr__(self) -> str:
        bar = "" if self.error is None else f" ± {np.max(self.error):.4g}"
        value = f"{self.value:.6g}" if isinstance(self.value, float) else f"array{np.shape(self.value)}"
        return f"Answer({value}{bar}, {self.source}, cost {self.cost:.3g})"


class Memory:
    """An engine that is not asked twice: what was answered is answered again, unless a better bar is asked for."""

    def __init__(self, engine: Engine, ledger: Ledger) -> None:
        """What the ledger knows was answered is known."""
        self._engine, self._ledger = engine, ledger
        self._known: dict[Hashable, Estimate] = {bound.key: estimate for bound, estimate in ledger.answers()}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._known

    def keep(self, bound: Bound[Any], estimate: Estimate) -> Estimate:
        kept = _copied(estimate)  # whoever gets the answer may change it
        self._known[bound.key] = kept
        self._ledger.note(bound, kept)
        return estimate

    def linear(self, query: Linear, within: float | None) -> Estimate:
        known = self._kept(query, within)
        return self.keep(query, self._engine.linear(query, within)) if known is None else known

    def believed(self, query: Linear) -> float:
        return self._engine.believed(query)

    def marginal(self, table: BoundMarginal, within: float | None) -> Estimate:
        known = self._kept(table, within)
        return self.keep(table, self._engine.marginal(table, within)) if known is None else known

    def minimise(self, question: BoundMinimize, within: float | None) -> Estimate:
        known = self._kept(question, within)
        return self.keep(question, self._engine.minimise(question, within)) if known is None else known

    def _kept(self, bound: Bound[Any], within: float | None) -> Estimate | None:
        known = self._known.get(bound.key)
        if known is None or (within is not None and (known.error is None or np.max(known.error) > within * (1 + 1e-9))):
            return None
        return replace(_copied(known), source="repeat")


def _copied(estimate: Estimate) -> Estimate:
    arrays: dict[str, Any] = {
        name: value.copy()
        for name in ("value", "error", "resolution", "typical")
        if isinstance(value := getattr(estimate, name), np.ndarray)
    }
    return replace(estimate, **arrays) if arrays else estimate


class Session(OneOnly):
    """Made by ``hr.open`` or ``hr.release``. Threads may share it: they take turns. A fork of its process cannot ask."""

    def __init__(self, data: DataSource, ledger: Ledger, noise: Noise, engine: Engine) -> None:
        """``engine`` answers; the session remembers, scales and reports."""
        self._ledger, self._data, self._noise, self._engine = ledger, data, noise, engine
        self._memory = Memory(engine, ledger)

    @property
    def ledger(self) -> Ledger:
        """Where every charge and release is written."""
        return self._ledger

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

    def ask(self, query: Query, *, within: float | None = None, scale: Scale = "fraction") -> Answer:
        """A private answer. ``within`` pays for a direct measurement exactly when the free bound is not that good.

        Of a convex question it pays until the bound is that good or nothing is left: the bar says which.
        """
        _require_scale(scale)
        wanted = None if within is None else number(within)
        if wanted is not None and not 0 < wanted <= 1:
            raise InvalidInput(
                f"within must be above 0 and at most 1. Found {within!r}. Give a fraction, such as 0.01."
            )
        return self._asked(query, bound_to(query, self.universe), wanted, scale)

    def ask_all(
        self, queries: Iterable[Query], *, scale: Scale = "fraction", progress: bool | None = None
    ) -> list[Answer]:
        """Answers to many questions, in order; the same as asking one by one, but vectorised where that changes nothing.

        ``progress`` shows a bar; by default when there are more than 1,000 questions.
        """
        _require_scale(scale)
        asked = list(queries)
        # a bad question is refused before anything is spent
        bound = [bound_to(query, self.universe) for query in asked]
        answers: list[Answer] = []
        with counting_bar("answering", len(asked), progress) as advance:
            for start in range(0, len(asked), AT_ONCE):
                some = slice(start, start + AT_ONCE)
                answers += self._batch(list(zip(asked[some], bound[some], strict=True)), scale, advance)
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
    def _batch(self, asked: list[tuple[Query, Bound[Any]]], scale: Scale, advance: Callable[[], None]) -> list[Answer]:
        """Answers in order. Where the engine can answer for free they are computed together."""
        fresh = {b.key: b for _, b in asked if isinstance(b, Linear) and b.key not in self._memory}
        free = self._engine.free(list(fresh.values()))
        ready = {} if free is None else dict(zip(fresh, free, strict=True))
        answers = []
        for query, bound in asked:
            found = ready.pop(bound.key, None)
            if found is None:
                answers.append(self._asked(query, bound, None, scale))
            else:
                self._memory.keep(bound, found)
                answers.append(self._answer(query, bound, found, 0.0, scale))
            advance()
        return answers

    def _asked(self, query: Query, bound: Bound[Any], within: float | None, scale: Scale) -> Answer:
        with self.ledger.asking(query) as bill:
            estimate = bound.ask(self._memory, within)
            return self._answer(query, bound, estimate, bill.cost, scale)

    def _answer(self, query: Query, bound: Bound[Any], estimate: Estimate, cost: float, scale: Scale) -> Answer:
        value, error, coarse, usual = estimate.value, estimate.error, estimate.resolution, estimate.typical
        if scale == "rows" and bound.is_fraction:
            error = None if error is None else self._engine.error_in_rows(value, error)
            value, coarse, usual = value * self.rows, coarse * self.rows, None if usual is None else usual * self.rows
        return Answer(query, value, error, estimate.source, cost, bound.labels, coarse, usual)

    def __repr__(self) -> str:
        warning = f"NOT PRIVATE: seed {self._noise.seed}, " if isinstance(self._noise, Seeded) else ""
        return f"Session({warning}{self.universe!r}, {self.budget!r}, spent {self.spent:.4g} of {self.budget.total:.4g} {self.budget.currency})"


def _require_scale(scale: str) -> None:
    if scale not in ("fraction", "rows"):
        raise InvalidInput(f"scale must be 'fraction' or 'rows'. Found {scale!r}. Choose one.")
