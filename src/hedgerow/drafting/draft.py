"""Draft a universe: each column from its codebook, else from its schema, else from its rows for a part of the price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hedgerow import _duration
from hedgerow._checks import did_you_mean, whole
from hedgerow._memory import require_libraries
from hedgerow.data.csv_file import Csv
from hedgerow.data.readers import TrustSchema, open_before_rows
from hedgerow.data.schema import hide_engine_errors
from hedgerow.drafting.columns import ColumnDrafting
from hedgerow.drafting.numbers import CANDIDATES
from hedgerow.drafting.public import from_codebook, from_column
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant, Ledger
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.universe.attributes import Attribute
from hedgerow.universe.universe import Universe


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
    become categories, and the rest is ``other``. A few numbers that are common get one cell each: as a flag if they are
    0 and 1, as categories if they look like codes. Other numbers get up to ``bins`` bins between round ends, with cuts
    at their quantiles. Dates come by month or year. ``universe.notes`` says of every column how sure the draft is of
    it, and about how many rows lie outside of what it declares. Types of frames and Parquet files count only if the
    owner calls them public, with ``hr.TrustSchema(source)``, because a reader may have inferred them from rows.

    Parameters
    ----------
    source : path, frame, table or URL
        The table, as for ``hr.open``.
    budget : Budget, optional
        The price of the draft. At most this is spent. It needs a δ for columns of text.
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
        With ``notes``, a sentence for every column.

    Raises
    ------
    InvalidInput
        If a column has no public values and there is no budget, or if an option is wrong.
    TooLarge
        If there are too many bins.
    """
    bins, most = whole("bins", bins), whole("most", most)
    if isinstance(columns, str):
        raise InvalidInput(f"columns must be a list of names. Found the text {columns!r}. Write [{columns!r}].")
    if bins > CANDIDATES:  # each bin has a charge of its own, and there are only so many cuts to choose from
        raise TooLarge(f"bins must be at most {CANDIDATES}. Found {bins}. Use fewer, or give a codebook.")
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
    names = list(columns) if columns is not None else found.all_names(None if csv is None else csv.delimiter)
    positions = dict(zip(names, found.positions(names), strict=True))
    if codebook is not None and not isinstance(codebook, Mapping):
        raise InvalidInput(
            f"codebook must be a mapping from names to declarations. Found {type(codebook).__name__}. Write "
            "codebook={'age': (17, 90)}."
        )
    known, called_public = dict(codebook or {}), set(public)
    _refuse_misspelled(known, found.columns)
    drafted: dict[str, Attribute | None] = {}
    notes: dict[str, str] = {}
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
        drawn = ColumnDrafting(
            found, budget, _account_for(budget, ledger), Noise() if seed is None else Seeded(seed), bins, most
        )
        for name, (attribute, note) in drawn.columns(unknown, [positions[name] for name in unknown]).items():
            drafted[name], notes[name] = attribute, note
    made = Universe({name: attribute for name, attribute in drafted.items() if attribute is not None})
    made.notes = {
        name: notes.get(name) or ("certain: from the codebook" if name in known else "certain: from the schema")
        for name in made.names
    }
    return made


def _refuse_misspelled(codebook: Mapping[str, Any], columns: Sequence[str]) -> None:
    """Refuse a name in a codebook that is no column, and is nearly that of one.

    A codebook may describe other tables.
    """
    for name in (name for name in codebook if name not in columns):
        if meant := did_you_mean(name, [column for column in columns if column not in codebook]):
            raise InvalidInput(f"A codebook must name columns of the source. Found {name!r}.{meant} Correct it.")


def _account_for(budget: Budget, ledger: Ledger | None) -> Ledger:
    """Return the account that pays for a draft, and refuse one that does not fit the budget."""
    if ledger is None:
        return Accountant(budget, slack=budget.delta / 2)
    if not isinstance(ledger, Ledger) or ledger.budget.neighbours != budget.neighbours:
        raise InvalidInput(
            "ledger must be an account with the budget's neighbours. Found an account with other neighbours, or an "
            "object that is no account. Pass a fitting account, or leave it out."
        )
    if ledger.budget.pure != budget.pure:
        raise InvalidInput(
            "ledger and budget must both have a delta, or neither. Found a delta in only one of them. Give both a "
            "delta, or both delta = 0."
        )
    if ledger.slack < budget.delta / 2 * (1 - 1e-12):
        raise InvalidInput(
            f"ledger must have slack for half of the draft's delta, {budget.delta / 2:.4g}. Found {ledger.slack:.4g}. "
            "Open it with Accountant(budget, slack=…)."
        )
    return ledger


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
