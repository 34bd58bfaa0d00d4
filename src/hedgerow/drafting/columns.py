"""Draft columns from their rows, each for an equal part of the price, and say how sure the draft is of each."""

from __future__ import annotations

import datetime
import itertools
import re
from typing import Any

import numpy as np

from hedgerow._truth import FALSE_WORDS, TRUE_WORDS
from hedgerow.data.schema import BatchSource, hide_engine_errors
from hedgerow.data.value_counts import Counted, ValueCounts, count_values
from hedgerow.drafting.kinds import KindEstimate, most_common_kind
from hedgerow.drafting.numbers import (
    CANDIDATES,
    EndEstimate,
    bins_worth,
    bounds,
    candidates,
    ends,
    nice_cuts,
    quantile_cut,
    quantile_sensitivity,
)
from hedgerow.drafting.public import MOST_INTEGERS
from hedgerow.drafting.selection import common_values, threshold_event
from hedgerow.errors import InvalidInput
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.universe.attributes import OTHER, Attribute, Categories, Flag, Integers, Range
from hedgerow.universe.dates import Dates, date_of, day_of

FOR_KINDS = 0.1  # share of a column's part that finds its kind; the rest finds its values
FOR_COMMON = 0.25  # share of the rest that finds common numbers
FOR_BOUNDS = 0.35  # share of what then remains that finds the powers of two of numbers; as much finds closer ends
CELLS = 64  # the number of cells among which the ends of numbers are sought
FIRST_YEAR, LAST_YEAR = 1800, 2200  # the range in which dates are sought
BY_MONTH = 10  # dates of at most this many years get a cell per month; others get a cell per year
OUTSIDE = 0.005  # the share of the rows that a draft cuts off on each side of numbers, as far as noise lets it see
UNLISTED = 0.01  # the share of numbers that may be missing among the common ones, if these are to be a list
UNSURE = 0.05  # a draft whose noise is a larger share of the rows than this is a guess
WRITTEN = "Dates must be written as 2020-01-31, and numbers with a decimal point"
LONG_TAIL = 4.0  # a scale whose widest bin is this many times the middle one has a long tail
# A column whose name has one of these words holds codes: their sizes mean nothing.
CODES = re.compile(
    r"(^|[^a-z])(codes?|id|zip|postcode|race|ethnic\w*|region|state|county|type|class|category|group|sex|gender|"
    r"status|occupation|job|industry|diagnosis|icd\w*)([^a-z]|$)",
    re.IGNORECASE,
)

Drafted = tuple[Attribute, str]
"""Attribute, and a sentence that says how sure the draft is of it."""


class ColumnDrafting:
    """Draft columns of a table, each for an equal part of the price."""

    def __init__(self, source: BatchSource, budget: Budget, ledger: Ledger, noise: Noise, bins: int, most: int) -> None:
        self._source, self._budget, self._ledger, self._noise = source, budget, ledger, noise
        self._bins, self._most = bins, most

    def columns(self, names: list[str], positions: list[int]) -> dict[str, Drafted]:
        """Return the attributes of these columns, with a note each."""
        total = self._budget.epsilon if self._budget.pure else self._budget.rho(self._budget.delta / 2)
        part = Amount(self._budget, total * (1 - 1e-9) / len(names))
        delta = self._budget.delta / 2 / len(names) * (1 - 1e-9)
        facts = [self._source.type_of(position) for position in positions]
        if self._budget.pure and any(column.kind in (None, "text", "time") for column in facts):
            raise InvalidInput(
                "budget must have a delta above 0 to draft columns of text, or without a type. Found 0. Give one, or a "
                "codebook."
            )
        tallies = hide_engine_errors(lambda: count_values(self._source, positions))
        return {
            name: self._column(name, column.kind, tally, part, delta)
            for name, column, tally in zip(names, facts, tallies, strict=True)
        }

    def _column(self, name: str, kind: str | None, tally: ValueCounts, part: Amount, delta: float) -> Drafted:
        """Draft one column, by its type or by the kind of its values."""
        event = part.part(FOR_KINDS).marginal()
        found = most_common_kind(tally, event, self._ledger, self._noise, f"draft: kinds of {name}")
        rest = part.part(1 - FOR_KINDS)
        if kind == "date" or (kind not in ("text", "whole", "number") and found.kind == "date"):
            return self._dates(name, tally.days, rest, found)
        if kind in ("whole", "number") or (kind != "text" and found.kind in ("whole", "number")):
            whole = kind == "whole" or (kind != "number" and found.kind == "whole")
            return self._numbers(name, tally.numbers, whole, rest, found, delta)
        return self._categories(name, tally, rest, found, delta)

    def _categories(self, name: str, tally: ValueCounts, part: Amount, found: KindEstimate, delta: float) -> Drafted:
        """Draft a column of text by its common values."""
        event = threshold_event(part, delta)
        told = common_values(tally, event, self._ledger, self._noise, f"draft: values of {name}")
        told = tuple((value, n) for value, n in told if value not in ("\0", OTHER))[: self._most]
        kept = [value for value, _ in told]
        if not any(value is not None for value in kept):
            return Categories([OTHER]), (
                "a guess: no value is common, so all share one cell. Leave the column out, or list its values. "
                f"{WRITTEN}"
            )
        others = 1 - sum(n for _, n in told) / found.rows
        unlisted = _share(others, found.level)
        flag = _flag_of([value for value in kept if value is not None])
        if flag is not None:
            return Flag(missing=None in kept), f"{_sure(found)}: a flag ({flag}); {unlisted} have another value"
        return (
            Categories(kept, other=True),
            f"{_sure(found)}: {len(kept)} common value{'s' * (len(kept) > 1)}; {unlisted} have "
            f"another{_encoding_warning(kept)}{f'. {WRITTEN}' if others > 0.5 else ''}",
        )

    def _numbers(
        self, name: str, numbers: Counted, whole: bool, part: Amount, found: KindEstimate, delta: float
    ) -> Drafted:
        """Draft a column of numbers: by its common ones if they are few, otherwise by ends and cuts at quantiles."""
        if not self._budget.pure:
            listed = self._common_numbers(name, numbers, whole, part.part(FOR_COMMON), found, delta)
            if listed is not None:
                return listed
            part = part.part(1 - FOR_COMMON)
        pay = (self._ledger, self._noise)
        event = part.part(FOR_BOUNDS).marginal()
        around = bounds(numbers, event, *pay, f"draft: powers of two of {name}")
        if around is None:
            return Range(0.0, 1.0, 1, missing=found.missing), (
                "a guess: too few rows, or too little budget, to see any number, so all share one cell. Declare the "
                "column"
            )
        cuts = nice_cuts(*around, whole, CELLS)
        reached = ends(numbers, cuts, OUTSIDE * found.rows, event, *pay, f"draft: ends of {name}")
        low, high = (cuts[0], cuts[-1]) if reached is None else (cuts[reached.first], cuts[reached.last])
        outside = _outside(reached, found)
        if whole and high - low <= MOST_INTEGERS:  # ``high`` is the first number above the range
            last = max(int(low), int(high) - 1)
            return Integers(
                int(low), last, missing=found.missing
            ), f"{_sure(found, reached)}: {outside}{_of_code(name)}"
        part = part.part(1 - 2 * FOR_BOUNDS)
        bins = bins_worth(found.rows, self._bins, lambda m: self._cut_event(part, 1, m))
        allowed = candidates(low, high, whole, CANDIDATES)
        if high > 16 * max(abs(low), 1.0):  # numbers of many sizes need cuts that grow with them
            allowed = np.unique(
                np.append(allowed[::2], np.geomspace(max(abs(low), 1.0), high, CANDIDATES // 2).round())
            )
        inner = set()
        for k in range(1, bins):
            chosen = quantile_cut(
                numbers, allowed, k, bins, self._cut_event(part, k, bins), *pay, f"draft: cut {k} of {name}"
            )
            inner.add(float(allowed[chosen]))
        edges = sorted({float(low), float(high), *(cut for cut in inner if low < cut < high)})
        widths = np.diff(edges)
        scale = "a long tail, as of money; " if widths[-1] > LONG_TAIL * np.median(widths) else ""
        fewer = f"; {len(edges) - 1} bins, because noise allows no more" if bins < self._bins else ""
        attribute = Range(edges=edges, whole=whole, missing=found.missing)
        return attribute, f"{_sure(found, reached)}: {scale}{outside}{fewer}{_of_code(name)}"

    def _cut_event(self, part: Amount, cut: int, bins: int) -> Any:
        """Return the event that chooses one cut. The cuts between these bins share a part of the price."""
        return part.part(1 / max(1, bins - 1)).choice(quantile_sensitivity(self._budget, cut, bins))

    def _common_numbers(
        self, name: str, numbers: Counted, whole: bool, part: Amount, found: KindEstimate, delta: float
    ) -> Drafted | None:
        """Draft a column by its common numbers, or return None if these are not nearly all."""
        tally = ValueCounts()
        for value, times in zip(numbers[0].tolist(), numbers[1].tolist(), strict=True):
            tally.texts[repr(int(value)) if float(value).is_integer() else repr(value)] += times
        event = threshold_event(part, delta)
        told = common_values(tally, event, self._ledger, self._noise, f"draft: common numbers of {name}")
        if not 0 < len(told) <= min(self._most, MOST_INTEGERS):
            return None
        rows = found.rows * (1 - found.others)
        noise = found.level * found.rows + event.noise.sigma * len(told) ** 0.5
        left = rows * (1 if not found.missing else 0) - sum(n for _, n in told)
        if found.missing:  # the number of rows with a number is not known closely
            return None
        if left > UNLISTED * rows + noise:
            return None
        values = sorted(float(text) for text, _ in told if text is not None)
        unlisted = _share(left / rows, noise / rows)
        sure = _sure(found)
        if values == [0.0, 1.0]:
            return Flag(missing=found.missing), f"{sure}: a flag of 0 and 1; {unlisted} are another number"
        consecutive = all(b - a == 1 for a, b in itertools.pairwise(values)) and values[0].is_integer()
        if consecutive and len(values) > 2 and not CODES.search(name):
            note = f"{sure}: counts or ratings of {int(values[0])} to {int(values[-1])}; {unlisted} lie outside"
            return Integers(int(values[0]), int(values[-1]), missing=found.missing), (
                f"{note}. If the numbers are codes, declare Categories"
            )
        codes = [int(value) if value.is_integer() else value for value in values]
        return Categories(
            codes, other=True, missing=found.missing
        ), f"{sure}: {len(codes)} codes; {unlisted} are another number"

    def _dates(self, name: str, days: Counted, part: Amount, found: KindEstimate) -> Drafted:
        """Draft a column of dates by the first and the last year that occur."""
        years = range(FIRST_YEAR, LAST_YEAR + 1)
        cuts = np.array([day_of(_first_of(year)) for year in years], float)
        allowed = OUTSIDE * found.rows
        reached = ends(days, cuts, allowed, part.marginal(), self._ledger, self._noise, f"draft: years of {name}")
        first, after = (0, len(years) - 1) if reached is None else (reached.first, reached.last)
        by: Any = "month" if after - first <= BY_MONTH else "year"
        note = f"{_sure(found, reached)}: {_outside(reached, found)}"
        return Dates(_first_of(years[first]), date_of(cuts[after] - 1), by, missing=found.missing), note


def _first_of(year: int) -> datetime.date:
    return datetime.date(year, 1, 1)


def _flag_of(values: list[str]) -> str | None:
    """Return the two words of a flag that a column consists of, or None."""
    words = {str(value).lower() for value in values}
    pairs = zip(TRUE_WORDS, FALSE_WORDS, strict=True)
    return next((f"{yes} and {no}" for yes, no in pairs if words == {yes, no}), None)


def _encoding_warning(kept: list[str | None]) -> str:
    """Return a warning if common values have characters that the declared encoding could not read."""
    return (
        ". Some have characters that the declared encoding cannot read: declare the file's, such as latin-1"
        if any("\ufffd" in value for value in kept if value is not None)
        else ""
    )


def _of_code(name: str) -> str:
    """Return a warning if the name of a column says that its numbers are codes."""
    return (
        ". Its name says that the numbers are codes: list them as Categories, or leave it out"
        if CODES.search(name)
        else ""
    )


def _sure(found: KindEstimate, reached: EndEstimate | str | None = "") -> str:
    """Return how sure a draft is, as its noise lets it be."""
    if reached is None or not found.is_clear:
        return "a guess"
    noise = found.level if isinstance(reached, str) else 2 * reached.noise / found.rows
    return "clear" if noise <= UNSURE else "likely"


def _share(share: float, noise: float) -> str:
    """Write a share of the rows with its noise."""
    return f"about {100 * max(0.0, share):.1f} % ± {100 * noise:.1f} % of the rows"


def _outside(reached: EndEstimate | None, found: KindEstimate) -> str:
    """Say how many rows lie outside the drafted ends, as far as noise tells."""
    if reached is None:
        return "too few rows, or too little budget, to find closer ends"
    noise = 2 * reached.noise / found.rows
    below, above = (_share(rows / found.rows, noise) for rows in (reached.below, reached.above))
    others = f"; {_share(found.others, found.level)} are of another kind" if found.others > found.level else ""
    return f"{below} lie below and {above.removesuffix(' of the rows')} above, and count as the ends{others}"
