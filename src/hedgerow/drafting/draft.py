"""Draft a universe: each column from its codebook, else from its schema, else from its rows for a part of the price."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hedgerow import _duration
from hedgerow._checks import whole
from hedgerow._memory import require_libraries
from hedgerow.data.batches import BatchSource
from hedgerow.data.csv_file import Csv
from hedgerow.data.readers import TrustSchema
from hedgerow.data.table import hide_engine_errors, open_before_rows
from hedgerow.data.value_counts import Counted, ValueCounts, count_values
from hedgerow.drafting.kinds import most_common_kind
from hedgerow.drafting.numbers import bounds, candidates, ends, quantile_cut, quantile_sensitivity
from hedgerow.drafting.public import MOST_INTEGERS, from_codebook, from_column
from hedgerow.drafting.selection import common_values, threshold_event
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant, Ledger
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.universe.attributes import OTHER, Attribute, Categories, Flag, Integers, Range
from hedgerow.universe.dates import Dates, date_of, day_of
from hedgerow.universe.universe import Universe

FOR_KINDS = 0.1  # share of a column's part that finds its kind; the rest finds its values
FOR_BOUNDS = 0.35  # share of the rest that finds the powers of two of numbers; as much finds closer ends
CELLS = 64  # the number of cells among which the ends of numbers are sought
CUTS = 1024  # the number of candidates for the cuts of numbers
FIRST_YEAR, LAST_YEAR = 1800, 2200  # the range in which dates are sought
BY_MONTH = 10  # dates of at most this many years get a cell per month; others get a cell per year


def draft(
    source: Any,
    *,
    budget: Budget | None = None,
    ledger: Ledger | None = None,
    table: str | None = None,
    csv: Csv | None = None,
    columns: Iterable[str] | None = None,
    codebook: Mapping[str, Any] | None = None,
    public: Iterable[str] = (),
    bins: int = 16,
    most: int = 64,
    seed: int | None = None,
) -> Universe:
    """Draft a universe for a table. Read, correct and save it before a session is opened with it.

    Public facts are free: the ``codebook``, enumerations and checks of a database, boolean types, and the dictionaries
    of the columns that ``public`` lists. For all other columns the rows are read and ``budget`` is spent. Common values
    become categories, and the rest is ``other``. Numbers get ``bins`` with cuts at their quantiles, and a few whole
    numbers get one cell each. Dates come by month or year. Types of frames and Parquet files count only if the owner
    calls them public, with ``hr.TrustSchema(source)``, because a reader may have inferred them from rows.

    Parameters
    ----------
    source : path, frame, table or URL
        The table, as for ``hr.open``.
    budget : Budget, optional
        The price of the draft, all of which is spent. It needs a δ for columns of text.
    ledger : Ledger, optional
        The account that pays; by default a new one. It must have the budget's neighbours and, for text, half of the
        budget's δ as slack.
    table : str, optional
        The table to open, with a database URL.
    csv : Csv, optional
        The dialect of a CSV file.
    columns : iterable of str, optional
        The columns to draft; by default all of them.
    codebook : mapping, optional
        By column, an attribute, a list of values or a pair of ends.
    public : iterable of str
        Columns whose dictionary (a pandas categorical, an Arrow dictionary) is public.
    bins : int
        The number of bins of a number.
    most : int
        The largest number of categories of a column.
    seed : int, optional
        Makes the draft repeatable, and therefore not private. For tests only.

    Returns
    -------
    Universe

    Raises
    ------
    InvalidInput
        If a column has no public values and there is no budget, or if an option is wrong.
    TooLarge
        If there are too many bins.
    """
    bins, most = whole("bins", bins), whole("most", most)
    if bins > CUTS:  # each bin has a charge of its own, and there are only so many cuts to choose from
        raise TooLarge(f"bins must be at most {CUTS}. Found {bins}. Use fewer, or give a codebook.")
    if budget is not None and not isinstance(budget, Budget):
        raise InvalidInput(
            f"budget must be an hr.Budget. Found {type(budget).__name__}. For example Budget(0.1, 1e-8)."
        )
    if budget is not None and budget.rows_per_unit > 1:
        raise InvalidInput(
            f"A draft's budget must be for single rows. Found rows_per_unit={budget.rows_per_unit}. Draft from a table "
            "with one row per person, or declare the universe."
        )
    if type(source).__module__.startswith("pyarrow") and hasattr(source, "empty_table"):
        source = TrustSchema(source.empty_table())  # a schema without rows, so no row decided its types
    found = hide_engine_errors(lambda: open_before_rows(source, table, csv))
    names = list(columns) if columns is not None else list(dict.fromkeys(found.columns))
    positions = dict(zip(names, found.positions(names), strict=True))
    known, called_public = dict(codebook or {}), set(public)
    drafted: dict[str, Attribute | None] = {}
    for name in names:
        listed = found.dictionary(positions[name]) if name in called_public else None
        facts = found.type_of(positions[name])
        drafted[name] = from_codebook(name, known[name]) if name in known else from_column(facts, listed, bins)
    unknown = [name for name, attribute in drafted.items() if attribute is None]
    if unknown and budget is None:
        raise InvalidInput(
            "A column must have public values to be drafted for free. Found none for "
            f"{', '.join(map(repr, unknown[:8]))}{', …' if len(unknown) > 8 else ''}. Give budget=, a codebook, or "
            "leave them out with columns=[…]."
        )
    if unknown and budget is not None:
        require_libraries()
        _duration.require(
            f"A draft of {len(unknown)} columns in {bins} bins",
            len(unknown) * (_duration.COLUMN + bins * _duration.CUT),
            "Draft fewer with columns=[…], or give a codebook",
        )
        drawn = _Drafting(
            found, budget, _account_for(budget, ledger), Noise() if seed is None else Seeded(seed), bins, most
        )
        drafted.update(drawn.columns(unknown, [positions[name] for name in unknown]))
    return Universe({name: attribute for name, attribute in drafted.items() if attribute is not None})


def _account_for(budget: Budget, ledger: Ledger | None) -> Ledger:
    """Return the account that pays for a draft, and refuse one that does not fit the budget."""
    if ledger is None:
        return Accountant(budget, slack=budget.delta / 2)
    if not isinstance(ledger, Ledger) or ledger.budget.neighbours != budget.neighbours:
        raise InvalidInput(
            "ledger must be an account with the budget's neighbours. Found another. Pass one, or leave it out."
        )
    if ledger.budget.pure != budget.pure:
        raise InvalidInput(
            "ledger and budget must both have a delta, or neither. Found one of each. Give matching ones."
        )
    if ledger.slack < budget.delta / 2 * (1 - 1e-12):
        raise InvalidInput(
            f"ledger must have slack for half of the draft's delta, {budget.delta / 2:.4g}. Found {ledger.slack:.4g}. "
            "Open it with Accountant(budget, slack=…)."
        )
    return ledger


class _Drafting:
    """Draft columns from their rows, each for an equal part of the price."""

    def __init__(self, source: BatchSource, budget: Budget, ledger: Ledger, noise: Noise, bins: int, most: int) -> None:
        self._source, self._budget, self._ledger, self._noise = source, budget, ledger, noise
        self._bins, self._most = bins, most

    def columns(self, names: list[str], positions: list[int]) -> dict[str, Attribute]:
        """Return the attributes of these columns."""
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

    def _column(self, name: str, kind: str | None, tally: ValueCounts, part: Amount, delta: float) -> Attribute:
        """Draft one column, by its type or by the kind of its values."""
        if kind == "text":
            return self._categories(name, tally, part, delta)
        what, missing = most_common_kind(
            tally, part.part(FOR_KINDS).marginal(), self._ledger, self._noise, f"draft: kinds of {name}"
        )
        rest = part.part(1 - FOR_KINDS)
        if kind == "date" or (kind not in ("whole", "number") and what == "date"):
            return self._dates(name, tally.days, rest, missing)
        if kind in ("whole", "number") or what in ("whole", "number"):
            return self._numbers(name, tally.numbers, kind == "whole" or what == "whole", rest, missing)
        return self._categories(name, tally, rest, delta)

    def _categories(self, name: str, tally: ValueCounts, part: Amount, delta: float) -> Attribute:
        """Draft a column of text by its common values."""
        event = threshold_event(part, delta)
        told = common_values(tally, event, self._ledger, self._noise, f"draft: values of {name}")
        kept = [value for value, _ in told if value not in ("\0", OTHER)][: self._most]
        if not any(value is not None for value in kept):
            return Categories([OTHER])  # no value is common, so all share one cell
        if {str(value).lower() for value in kept if value is not None} == {"true", "false"}:
            return Flag(missing=None in kept)
        return Categories(kept, other=True)

    def _numbers(self, name: str, numbers: Counted, is_whole: bool, part: Amount, missing: bool) -> Attribute:
        """Draft a column of numbers: first the ends, then cuts at quantiles."""
        pay = (self._ledger, self._noise)
        noise = part.part(FOR_BOUNDS).marginal()
        around = bounds(numbers, noise, *pay, f"draft: powers of two of {name}")
        if around is None:
            return Range(0.0, 1.0, 1, missing=missing)
        coarse = candidates(*around, is_whole, CELLS)
        found = ends(numbers, coarse, noise, *pay, f"draft: ends of {name}")
        low, high = around if found is None else (coarse[found[0]], coarse[found[1]])
        if is_whole and high - low <= MOST_INTEGERS:  # ``high`` is the first number above the range
            return Integers(int(low), max(int(low), int(high) - 1), missing=missing)
        cuts = candidates(low, high, is_whole, CUTS)
        each = part.part((1 - 2 * FOR_BOUNDS) / max(1, self._bins - 1))
        inner = set()
        for k in range(1, self._bins):
            event = each.choice(quantile_sensitivity(self._budget, k, self._bins))
            chosen = quantile_cut(numbers, cuts, k, self._bins, event, *pay, f"draft: cut {k} of {name}")
            inner.add(float(cuts[chosen]))
        edges = sorted({low, high, *(cut for cut in inner if low < cut < high)})
        return Range(edges=edges, whole=is_whole, missing=missing)

    def _dates(self, name: str, days: Counted, part: Amount, missing: bool) -> Attribute:
        """Draft a column of dates by the first and the last year that occur."""
        years = range(FIRST_YEAR, LAST_YEAR + 1)
        cuts = np.array([day_of(_first_of(year)) for year in years], float)
        found = ends(days, cuts, part.marginal(), self._ledger, self._noise, f"draft: years of {name}")
        first, after = (0, len(years) - 1) if found is None else found
        by: Any = "month" if after - first <= BY_MONTH else "year"
        return Dates(_first_of(years[first]), date_of(cuts[after] - 1), by, missing=missing)


def _first_of(year: int) -> datetime.date:
    return datetime.date(year, 1, 1)


def from_schema(
    source: Any,
    *,
    table: str | None = None,
    columns: Iterable[str] | None = None,
    codebook: Mapping[str, Any] | None = None,
    public: Iterable[str] = (),
    bins: int = 16,
) -> Universe:
    """Draft a universe from the schema alone: no row is read and nothing is spent.

    Parameters
    ----------
    source : Arrow schema, frame, path or URL
        An Arrow schema, a frame or a Parquet file, whose types the caller hereby calls public; or a database URL, whose
        enumerations and checks are read.
    table : str, optional
        The table to open, with a database URL.
    columns : iterable of str, optional
        The columns to draft; by default all of them.
    codebook : mapping, optional
        By column, an attribute, a list of values or a pair of ends, for what the schema leaves open.
    public : iterable of str
        Columns whose dictionary is public.
    bins : int
        The number of bins of a number.

    Returns
    -------
    Universe

    Raises
    ------
    InvalidInput
        If neither the schema nor the codebook says what the values of a column are.
    """
    is_url = isinstance(source, str) and "://" in source
    whole_source = (
        source if is_url or isinstance(source, TrustSchema) or hasattr(source, "empty_table") else TrustSchema(source)
    )
    return draft(whole_source, table=table, columns=columns, codebook=codebook, public=public, bins=bins)
