"""Answers composed of several linear ones. The error bars of the parts, and the bins, determine the bar of the whole.

The bars of the parts hold together with probability 1 − β, and so do the intervals that follow from them, whatever the
analyst composes. docs/proofs/error_bars.md proves each case. The value of a composed answer is interpolated inside the
bins. Its interval is not: it covers all tables of values that the coded table allows.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.query.bound import BarUnit, BoundQuestion, Estimate, Labels, Source
from hedgerow.query.linear import Condition, Linear, LinearRespondent, require_table, spread
from hedgerow.universe.universe import Universe

NEARER = 1e-9  # an end is nearer than the bar says if it is so by more than this part of the ends' size
Ends = tuple[Any, Any]
"""Least and greatest possible value of a quantity: numbers, or arrays of numbers."""


class LinearKnowledge(Protocol):
    """Knowledge about linear queries."""

    def interval(self, query: Linear) -> tuple[float, float]:
        """Return an interval that contains the answer."""

    def value(self, query: Linear) -> float:
        """Return the best single answer."""

    def hypothesis_answer(self, query: Linear) -> float:
        """Return the hypothesis' answer. Nothing is asked."""

    @property
    def least_rows(self) -> float:
        """Lower bound on the number of rows."""


class AnswerKnowledge:
    """Knowledge from a respondent's answers and their error bars. Each query is asked once."""

    def __init__(self, respondent: LinearRespondent) -> None:
        self.respondent = respondent
        self._said: dict[Hashable, Estimate] = {}

    def estimate(self, query: Linear) -> Estimate:
        """Return the answer to a query, asked on first use."""
        said = self._said.get(query.key)
        if said is None:
            said = self._said[query.key] = self.respondent.linear(query, None)
        return said

    def interval(self, query: Linear) -> tuple[float, float]:
        """Return the answer plus and minus its bar, within [0, 1]."""
        if not query.attributes:
            return float(query.table), float(query.table)
        said = self.estimate(query)
        if said.error is None:
            return 0.0, 1.0
        return max(0.0, float(said.value - said.error)), min(1.0, float(said.value + said.error))

    def value(self, query: Linear) -> float:
        """Return the value of the answer."""
        return float(self.estimate(query).value) if query.attributes else float(query.table)

    def hypothesis_answer(self, query: Linear) -> float:
        """Return the hypothesis' answer, without asking."""
        return float(self.respondent.hypothesis_answer(query)) if query.attributes else float(query.table)

    @property
    def least_rows(self) -> float:
        """Lower bound on the number of rows."""
        return self.respondent.least_rows

    def buy(self, query: Linear, within: float) -> tuple[float, float]:
        """Ask for a bar of ``within``, and pay for it if necessary. Return the interval."""
        self._said[query.key] = self.respondent.linear(query, within)
        return self.interval(query)

    @property
    def source(self) -> Source:
        """ "measured" if any answer was measured, else "hypothesis"."""
        return "measured" if any(said.source == "measured" for said in self._said.values()) else "hypothesis"

    def typical(self, query: Linear) -> float | None:
        """Return the typical error of an answer that was given, or None if it is unknown. Nothing is asked."""
        said = self._said.get(query.key)
        found = 0.0 if not query.attributes else None if said is None else said.typical
        return None if found is None else float(found)


class HypothesisKnowledge:
    """Knowledge from the hypothesis taken as exact. The width that remains is due to the bins."""

    def __init__(self, respondent: LinearRespondent) -> None:
        self._respondent = respondent

    def interval(self, query: Linear) -> tuple[float, float]:
        """Return the hypothesis' answer as both ends."""
        believed = self.hypothesis_answer(query)
        return believed, believed

    def value(self, query: Linear) -> float:
        """Return the hypothesis' answer."""
        return self.hypothesis_answer(query)

    def hypothesis_answer(self, query: Linear) -> float:
        """Return the hypothesis' answer."""
        return float(self._respondent.hypothesis_answer(query)) if query.attributes else float(query.table)

    @property
    def least_rows(self) -> float:
        """Lower bound on the number of rows."""
        return self._respondent.least_rows


class ComposedQuestion(BoundQuestion):
    """A question whose answer follows from the answers to linear queries."""

    is_fraction: bool = False
    is_composed: ClassVar[bool] = True
    is_number: ClassVar[bool] = True
    """True if the answer is one number, False if it is a table."""
    labels: Labels = ()
    asked_as: tuple[Any, Any] | None = None
    """Question that it was bound from, with its resolution."""

    @property
    def stored(self) -> tuple[Any, Any] | None:
        """The question that it was bound from, with its resolution; None for a part of another question."""
        return self.asked_as

    @property
    def bar_unit(self) -> BarUnit:
        """A fraction of the rows for a share of them, rows for a sum, else the unit of the values."""
        return "fraction" if self.is_fraction else "rows" if self.in_rows else "value"

    @property
    def sides(self) -> tuple[Linear, Linear] | None:
        """The lower and the upper count between which it lies, if it is a count; else None."""
        return None

    @property
    def key(self) -> Hashable:
        """Hashable key, equal for two questions exactly if they ask the same."""
        raise NotImplementedError

    @property
    def tables(self) -> Sequence[Names]:
        """Attribute sets whose marginals determine the answer."""
        return [query.attributes for query in self.linears]

    @property
    def linears(self) -> Sequence[Linear]:
        """Linear queries that the answer needs in any case. They can be asked together in a batch."""
        raise NotImplementedError

    def kept_cells(self, universe: Universe) -> int:
        """Return the number of cells in the tables of its parts, which stay cached for repeats."""
        return sum(map(universe.cells, self.tables))

    @property
    def is_coarse(self) -> bool:
        """True if bins are cut, so that the coded table does not determine the answer. A public fact."""
        raise NotImplementedError

    @property
    def limits(self) -> Ends:
        """Least and greatest value in any table."""
        raise NotImplementedError

    def ends(self, known: LinearKnowledge) -> Ends:
        """Return the least and the greatest value that the knowledge allows."""
        raise NotImplementedError

    def best(self, known: LinearKnowledge) -> Any:
        """Return the best single answer, interpolated inside bins."""
        raise NotImplementedError

    def typical(self, known: AnswerKnowledge) -> Any:
        """Return the typical error, one for each cell of a table, if it follows from those of the parts, else None.

        It uses only queries that ``ends`` asked, so that nothing more is asked of an engine.
        """
        return None

    def buy(self, known: AnswerKnowledge, within: float, free: Ends) -> Ends:
        """Pay for ends at most twice ``within`` apart. Refuse before paying if they cannot be bought.

        ``free`` are the ends that are known already.
        """
        raise BudgetExceeded(
            f"within must be at least {np.max(_half(free)):.4g} here, which the bars of the parts allow. Found "
            f"{within:g}. Buy the counts that the answer is made of, or ask without within."
        )

    def ask(self, respondent: LinearRespondent, within: float | None) -> Estimate:
        """Answer the question from the answers to its parts, and pay for a bar of ``within`` if necessary."""
        known = AnswerKnowledge(respondent)
        low, high = _order_ends(*self.ends(known))
        coarse = _half(self.ends(HypothesisKnowledge(respondent))) if self.is_coarse else 0.0
        if within is not None and np.max(_half((low, high))) > within:
            if np.max(coarse) >= within:
                raise InvalidInput(
                    f"within must be above {np.max(coarse):.4g}, which the universe's bins leave open. Found "
                    f"{within:g}. "
                    'Ask with resolution="bins" about the coded table, or about whole bins.'
                )
            bought = self.buy(known, within, (low, high))
            low, high = _order_ends(np.maximum(low, bought[0]), np.minimum(high, bought[1]))
        value = np.clip(self.best(known), low, high)
        if within is not None and np.all(high - low <= 2 * within * (1 + 1e-12)):
            value = np.clip(value, high - within, low + within)
        with np.errstate(invalid="ignore"):  # a ratio may be infinite for certain, and then has no finite bar
            error = np.maximum(high - value, value - low)
        coarse = np.where(np.isfinite(error), np.minimum(coarse, error), 0.0)
        least, most = self.limits
        typical = None if self.is_coarse else self.typical(known)
        if np.ndim(value) == 0:
            known_at_all = bool(np.isfinite(error) and (high - low < most - least or most == least))
            bar = float(error) if known_at_all else None
            nearer = self._nearer_ends(float(value), bar, low, high)
            return Estimate(float(value), bar, known.source, float(coarse), typical, lower=nearer[0], upper=nearer[1])
        if not (self.is_fraction or self.in_rows):  # an interval over all possible values is no bar
            error = np.where((low <= least) & (high >= most) & np.less(least, most), np.inf, error)
        nearer = self._nearer_ends(value, error, low, high)
        return Estimate(value, error, known.source, coarse, typical, lower=nearer[0], upper=nearer[1])

    def _nearer_ends(self, value: Any, error: Any, low: Any, high: Any) -> tuple[Any, Any]:
        """Return the ends that are nearer than ``error`` says; None for one that is not. A fraction has none."""
        if self.is_fraction or self.in_rows:
            return None, None
        least, most = self.limits
        if np.ndim(value):
            slack = NEARER * (np.abs(low) + np.abs(high))
            with np.errstate(invalid="ignore"):
                is_nearer = [np.any(low > value - error + slack), np.any(high < value + error - slack)]
            return np.asarray(low) if is_nearer[0] else None, np.asarray(high) if is_nearer[1] else None
        if error is None:  # at most one end is known
            return float(low) if low > least else None, float(high) if high < most else None
        slack = NEARER * (abs(low) + abs(high))
        return (
            float(low) if low > value - error + slack else None,
            float(high) if high < value + error - slack else None,
        )


def _half(ends: Ends) -> Any:
    """Return half the distance between the ends."""
    return (np.asarray(ends[1]) - np.asarray(ends[0])) / 2


def _order_ends(low: Any, high: Any) -> Ends:
    """Return the ends, replaced by their middle where low exceeds high. That can happen if an error bar fails."""
    middle = np.minimum(low, high) + np.abs(np.subtract(high, low)) / 2 if np.all(np.isfinite(high)) else high
    crossed = np.greater(low, high)
    return np.where(crossed, middle, low), np.where(crossed, middle, high)


def typical_total(universe: Universe, names: Names, table: Array, known: AnswerKnowledge) -> float | None:
    """Return the typical error of ⟨table, D⟩ whose interval ``total_between`` found before; None if it is unknown."""
    table = np.broadcast_to(table, universe.sizes(names))
    least, most = float(table.min()), float(table.max())
    if least == most:
        return 0.0
    typical_error = known.typical(
        Linear.from_table(universe, names, np.clip((table - least) / (most - least), 0.0, 1.0))
    )
    return None if typical_error is None else typical_error * (most - least)


def total_between(universe: Universe, names: Names, table: Array, known: LinearKnowledge) -> tuple[float, float]:
    """Return an interval for ⟨table, D⟩, for any table of finite numbers.

    It combines the bar of the whole table with the bars of its positive and its negative part. A table that is monotone
    in one attribute and a box in the others is a mixture of boxes, and so are its two parts; the certificate for boxes
    then covers each part, although it need not cover their difference.
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
class BoundCount(ComposedQuestion):
    """A count that cuts bins: at least ``low``, at most ``high``. ``share`` interpolates."""

    universe: Universe
    low: Linear
    high: Linear
    share: Linear

    is_fraction = True
    is_coarse = True
    limits = (0.0, 1.0)

    @property
    def key(self) -> Hashable:
        """Key of the question."""
        return ("cut", self.low.key, self.high.key, self.share.key)

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The lower and the upper count."""
        return self.low, self.high

    @property
    def sides(self) -> tuple[Linear, Linear]:
        """The lower and the upper count."""
        return self.low, self.high

    @property
    def condition(self) -> Condition:
        """The records of the lower count, and perhaps those of the cut bins."""
        return Condition(self.low, self.high, self.share)

    def kept_cells(self, universe: Universe) -> int:
        """Return 0: the two counts were bound before, and are products or checked by themselves."""
        return 0

    def ends(self, known: LinearKnowledge) -> Ends:
        """Return the lower end of the lower count and the upper end of the upper count."""
        return known.interval(self.low)[0], known.interval(self.high)[1]

    def best(self, known: LinearKnowledge) -> float:
        """Return the interpolated count on the hypothesis."""
        return known.hypothesis_answer(self.share)

    @property
    def gap(self) -> Linear:
        """The records of the cut bins: high − low."""
        names = self.universe.order((*self.low.attributes, *self.high.attributes))
        require_table(names, self.universe.sizes(names))
        cut = np.broadcast_to(spread(self.high, names) - spread(self.low, names), self.universe.sizes(names))
        return Linear.from_table(self.universe, names, cut)

    def buy(self, known: AnswerKnowledge, within: float, free: Ends) -> Ends:
        """Buy the lower count. The truth exceeds it by at most the records of the cut bins."""
        open_ = min(known.interval(self.gap)[1], known.interval(self.high)[1] - known.interval(self.low)[0])
        room = within - open_ / 2
        if room <= 0:
            raise InvalidInput(
                f"within must be above {open_ / 2:.4g}, half of what the cut bins may hold. Found {within:g}. "
                'Ask with resolution="bins" about the coded table, or about whole bins.'
            )
        low = known.buy(self.low, room)
        return low[0], low[1] + open_
