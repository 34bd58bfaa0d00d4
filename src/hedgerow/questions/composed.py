"""Answers made of several linear ones: a bar for each part gives a bar for the whole, and the bins have their share of it.

The parts' bars hold together with 1 − β, and so do the intervals that follow from them, whatever the analyst composes.
docs/proofs/error_bars.md proves each way. What a composed question believes is interpolated in the bins; what it promises is
not: the interval is that of all tables of values that the coded one allows.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.questions.bound import Estimate, Labels, Source
from hedgerow.questions.linear import AnswersLinear, Linear, require_table, spread
from hedgerow.questions.universe import Universe

Ends = tuple[Any, Any]
"""The least and the greatest value that something may have: numbers, or arrays of them."""


class Knows(Protocol):
    """What is known of linear queries."""

    def interval(self, query: Linear) -> tuple[float, float]:
        """Where its answer lies."""

    def value(self, query: Linear) -> float:
        """The best single answer."""

    def believed(self, query: Linear) -> float:
        """What the hypothesis says: nothing is asked."""

    @property
    def least_rows(self) -> float:
        """How many rows there are at least."""


class Answers:
    """What a respondent answers, with its bars."""

    def __init__(self, respondent: AnswersLinear) -> None:
        self.respondent = respondent
        self._said: dict[Hashable, Estimate] = {}

    def estimate(self, query: Linear) -> Estimate:
        said = self._said.get(query.key)
        if said is None:
            said = self._said[query.key] = self.respondent.linear(query, None)
        return said

    def interval(self, query: Linear) -> tuple[float, float]:
        if not query.attributes:
            return float(query.table), float(query.table)
        said = self.estimate(query)
        if said.error is None:
            return 0.0, 1.0
        return max(0.0, float(said.value - said.error)), min(1.0, float(said.value + said.error))

    def value(self, query: Linear) -> float:
        return float(self.estimate(query).value) if query.attributes else float(query.table)

    def believed(self, query: Linear) -> float:
        return float(self.respondent.believed(query)) if query.attributes else float(query.table)

    @property
    def least_rows(self) -> float:
        return self.respondent.least_rows

    def buy(self, query: Linear, within: float) -> tuple[float, float]:
        """Pay, if need be, for a bar of ``within``."""
        self._said[query.key] = self.respondent.linear(query, within)
        return self.interval(query)

    @property
    def source(self) -> Source:
        return "measured" if any(said.source == "measured" for said in self._said.values()) else "hypothesis"

    def typical(self, query: Linear) -> float | None:
        found = self.estimate(query).typical if query.attributes else 0.0
        return None if found is None else float(found)


class Beliefs:
    """The hypothesis taken at its word: what is open then is the bins' part."""

    def __init__(self, respondent: AnswersLinear) -> None:
        self._respondent = respondent

    def interval(self, query: Linear) -> tuple[float, float]:
        believed = self.believed(query)
        return believed, believed

    def value(self, query: Linear) -> float:
        return self.believed(query)

    def believed(self, query: Linear) -> float:
        return float(self._respondent.believed(query)) if query.attributes else float(query.table)

    @property
    def least_rows(self) -> float:
        return self._respondent.least_rows


class Composed:
    """A question whose answer follows from those to linear queries."""

    is_fraction: bool = False
    in_rows: ClassVar[bool] = False
    """Whether the answer is a sum over all rows, and so always given in rows."""
    labels: Labels = ()
    asked_as: tuple[Any, Any] | None = None
    """The question that it was bound from and its resolution: what a ledger can write down."""

    @property
    def key(self) -> Hashable:
        raise NotImplementedError

    @property
    def tables(self) -> Sequence[Names]:
        return [query.attributes for query in self.linears]

    @property
    def linears(self) -> Sequence[Linear]:
        """Linear queries that it surely needs, to be asked many at once."""
        raise NotImplementedError

    def kept_cells(self, universe: Universe) -> int:
        """How many cells the tables of its parts have, which are kept for when they are asked again."""
        return sum(map(universe.cells, self.tables))

    @property
    def is_coarse(self) -> bool:
        """Whether bins leave something open: a public fact."""
        raise NotImplementedError

    @property
    def limits(self) -> Ends:
        """What it lies between in any table."""
        raise NotImplementedError

    def ends(self, known: Knows) -> Ends:
        """The least and the greatest value that what is known allows."""
        raise NotImplementedError

    def best(self, known: Knows) -> Any:
        """The answer by interpolation."""
        raise NotImplementedError

    def typical(self, known: Answers) -> float | None:
        """The typical error, where it follows from that of a part."""
        return None

    def bought(self, known: Answers, within: float, free: Ends) -> Ends:
        """Ends that are nearer to each other than twice ``within``, paid for; or a refusal before anything is."""
        raise BudgetExceeded(
            f"within must be at least {np.max(_half(free)):.4g} here, what the bars of the parts allow. Found {within:g}. "
            "Buy the counts that it is made of, or ask without within."
        )

    def ask(self, respondent: AnswersLinear, within: float | None) -> Estimate:
        known = Answers(respondent)
        low, high = _ordered(*self.ends(known))
        coarse = _half(self.ends(Beliefs(respondent))) if self.is_coarse else 0.0
        if within is not None and np.max(_half((low, high))) > within:
            if np.max(coarse) >= within:
                raise InvalidInput(
                    f"within must be above {np.max(coarse):.4g}, what the universe's bins leave open. Found {within:g}. "
                    'Ask with resolution="bins" about the coded table, or about whole bins.'
                )
            bought = self.bought(known, within, (low, high))
            low, high = _ordered(np.maximum(low, bought[0]), np.minimum(high, bought[1]))
        value = np.clip(self.best(known), low, high)
        if within is not None and np.all(high - low <= 2 * within * (1 + 1e-12)):
            value = np.clip(value, high - within, low + within)
        error = np.maximum(high - value, value - low)
        coarse = np.where(np.isfinite(error), np.minimum(coarse, error), 0.0)
        least, most = self.limits
        if np.ndim(value) == 0:
            known_at_all = bool(np.isfinite(error) and (high - low < most - least or most == least))
            typical = self.typical(known) if not self.is_coarse else None
            return Estimate(float(value), float(error) if known_at_all else None, known.source, float(coarse), typical)
        return Estimate(value, error, known.source, coarse)


def _half(ends: Ends) -> Any:
    return (np.asarray(ends[1]) - np.asarray(ends[0])) / 2


def _ordered(low: Any, high: Any) -> Ends:
    """Ends that contradict each other, as they may where a bar fails, meet."""
    middle = np.minimum(low, high) + np.abs(np.subtract(high, low)) / 2 if np.all(np.isfinite(high)) else high
    crossed = np.greater(low, high)
    return np.where(crossed, middle, low), np.where(crossed, middle, high)


def total_between(universe: Universe, names: Names, table: Array, known: Knows) -> tuple[float, float]:
    """Where ⟨table, D⟩ lies, for any table of finite numbers: by its own bar, and by those of its two signs.

    A table that is monotone in one attribute and a box in the others is a mixture of boxes, and so are its two signs, though
    the table that joins them is none.
    """
    least, most = float(table.min()), float(table.max())
    if least == most:
        return least, most
    whole = known.interval(Linear.from_table(universe, names, np.clip((table - least) / (most - least), 0.0, 1.0)))
    low, high = least + (most - least) * whole[0], least + (most - least) * whole[1]
    if least < 0 < most:
        above = known.interval(Linear.from_table(universe, names, np.clip(table / most, 0.0, 1.0)))
        below = known.interval(Linear.from_table(universe, names, np.clip(table / least, 0.0, 1.0)))
        low = max(low, most * above[0] + least * below[1])
        high = min(high, most * above[1] + least * below[0])
    return (low, high) if low <= high else ((low + high) / 2,) * 2


@dataclass(frozen=True, eq=False)
class BoundCount(Composed):
    """A count that cuts bins: at least ``low``, at most ``high``; ``share`` interpolates."""

    universe: Universe
    low: Linear
    high: Linear
    share: Linear

    is_fraction = True
    is_coarse = True
    limits = (0.0, 1.0)

    @property
    def key(self) -> Hashable:
        return ("cut", self.low.key, self.high.key, self.share.key)

    @property
    def linears(self) -> tuple[Linear, ...]:
        return self.low, self.high

    def kept_cells(self, universe: Universe) -> int:
        """None: what it is between was bound before, and is a product or judged by itself."""
        return 0

    def ends(self, known: Knows) -> Ends:
        return known.interval(self.low)[0], known.interval(self.high)[1]

    def best(self, known: Knows) -> float:
        return known.believed(self.share)

    @property
    def gap(self) -> Linear:
        """high − low: the records of the bins that are cut."""
        names = self.universe.order((*self.low.attributes, *self.high.attributes))
        require_table(names, self.universe.sizes(names))
        cut = np.broadcast_to(spread(self.high, names) - spread(self.low, names), self.universe.sizes(names))
        return Linear.from_table(self.universe, names, cut)

    def bought(self, known: Answers, within: float, free: Ends) -> Ends:
        """The lower count is bought, for the truth is above it by at most what the bins that are cut hold."""
        open_ = min(known.interval(self.gap)[1], known.interval(self.high)[1] - known.interval(self.low)[0])
        room = within - open_ / 2
        if room <= 0:
            raise InvalidInput(
                f"within must be above {open_ / 2:.4g}, half of what the bins that are cut may hold. Found {within:g}. "
                'Ask with resolution="bins" about the coded table, or about whole bins.'
            )
        low = known.buy(self.low, room)
        return low[0], low[1] + open_
