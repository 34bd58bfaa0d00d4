"""A table's columns, as every reader provides them: their names, what their types say publicly, and batches of rows.

Public types are those of a database table, and those of frames and Parquet files that the owner calls public
(``readers.TrustSchema``). CSV files and SQLite have none, because any row may hold anything. Other frames and files
have none, because whoever wrote them may have inferred the types from rows, so that one row decided them. pandas' own
dtypes have none, because pandas changes them by itself (docs/reading.md). A declaration that no value of its column's
type can match is a mistake, and is refused by name.

Readers work behind ``hide_engine_errors``, because an engine's message may quote a row, and put files that contain rows
into a private folder (``folder_of``).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from hedgerow._truth import SPELLED
from hedgerow.data.coding import Coder, date_in, meaning
from hedgerow.data.headers import list_names, missing_columns, require_header
from hedgerow.errors import DataUnavailable, HedgerowError, InvalidInput
from hedgerow.universe.attributes import Attribute, Categories, Flag, Integers, Range
from hedgerow.universe.dates import Dates

Kind = Literal["whole", "number", "truth", "date", "time", "text"]


@dataclass(frozen=True)
class Column:
    """The public facts about a column.

    ``kind`` is the kind of its values. ``labels`` are the values that its type lists (an enumeration). ``low`` and
    ``high`` are limits that the source enforces on its numbers. None means that nothing is known.
    """

    kind: Kind | None = None
    labels: tuple[Any, ...] | None = None
    low: float | None = None
    high: float | None = None


NOTHING = Column()
NUMBERS = {"decimal", "double", "float", "smallint", "int", "bigint"}  # sqlglot's names of numeric types


def of_arrow(kind: Any) -> Column:
    """Return what an Arrow type states."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return of_arrow(kind.value_type)
    if types.is_boolean(kind):
        return Column("truth")
    if types.is_integer(kind):
        return Column("whole")
    if types.is_floating(kind) or types.is_decimal(kind):
        return Column("number")
    if types.is_date(kind) or types.is_timestamp(kind):
        return Column("date")
    if types.is_time(kind) or types.is_duration(kind):
        return Column("time")
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return Column("text") if text else NOTHING


def of_pandas(dtype: Any) -> Column:
    """Return what a pandas dtype states, if somebody asked for that dtype.

    NumPy dtypes and "str" state nothing, because pandas infers them from all rows, so that one row could change them.
    """
    name = type(dtype).__name__
    if name == "ArrowDtype":
        return of_arrow(dtype.pyarrow_dtype)
    kinds: dict[str, Kind] = {"b": "truth", "i": "whole", "u": "whole", "f": "number"}
    masked = hasattr(dtype, "numpy_dtype") and name.endswith(
        ("BooleanDtype", "8Dtype", "16Dtype", "32Dtype", "64Dtype")
    )
    if masked:
        return Column(kinds.get(dtype.kind))
    return Column("text") if str(dtype) == "string" else NOTHING


def of_polars(dtype: Any) -> Column:
    """Return what a polars dtype states."""
    name = type(dtype).__name__ if not isinstance(dtype, type) else dtype.__name__
    if name == "Enum":
        return Column("text", labels=tuple(dtype.categories))
    if name.startswith(("Int", "UInt")):
        return Column("whole")
    kinds: dict[str, Kind] = {
        "Boolean": "truth", "Float32": "number", "Float64": "number", "Decimal": "number", "Date": "date",
        "Datetime": "date", "Time": "time", "Duration": "time", "String": "text", "Utf8": "text", "Categorical": "text",
    }  # fmt: skip
    return Column(kinds.get(name))


def of_ibis(kind: Any) -> Column:
    """Return what an Ibis type states."""
    tests: tuple[tuple[str, Kind], ...] = (
        ("is_boolean", "truth"), ("is_integer", "whole"), ("is_floating", "number"), ("is_decimal", "number"),
        ("is_date", "date"), ("is_timestamp", "date"), ("is_time", "time"), ("is_interval", "time"),
        ("is_string", "text"),
    )  # fmt: skip
    return Column(next((found for test, found in tests if getattr(kind, test)()), None))


def require_match(names: Sequence[str], attributes: Sequence[Attribute], columns: Sequence[Column]) -> None:
    """Refuse an attribute that no value of its column's type can match."""
    for name, attribute, column in zip(names, attributes, columns, strict=True):
        reason = mismatch(attribute, column.kind)
        if reason is not None:
            wanted, found = reason
            raise InvalidInput(
                f"Attribute {name!r} must be {wanted}. Found {found}, which no value of that type matches. "
                "Declare it by the column's type, or convert the column."
            )


def mismatch(attribute: Attribute, kind: Kind | None) -> tuple[str, str] | None:
    """Return what the attribute must be and what it is, for a refusal; None if some value of the column can match."""
    declared = type(attribute).__name__
    if kind is None or kind == "text":  # a text can spell anything
        return None
    numeric = kind in ("whole", "number")
    if isinstance(attribute, Integers | Range) and kind in ("date", "time"):
        return (
            "Dates, as its column holds dates" if kind == "date" else "text, as its column holds times"
        ), f"a {declared}"
    if isinstance(attribute, Dates) and kind != "date":
        return "numbers or categories, as its column holds no dates", "Dates"
    if isinstance(attribute, Flag):
        words = [meaning(word)[1] for word in (*attribute.true, *attribute.false)]
        if kind in ("date", "time") or (numeric and not any(word is not None for word in words)):
            return f"of the column's type, {kind}", "a Flag without such words"
    if isinstance(attribute, Categories):
        meanings = [meaning(label) for label in attribute.listed if label is not None]
        if kind == "truth":
            coder = Coder(attribute)
            matched = {coder.cell(True), coder.cell(False)} - {attribute.other_cell}
            named = {i for i, (text, number) in enumerate(meanings) if number in (0, 1) or str(text).lower() in SPELLED}
            possible = bool(named) and bool(matched)
        elif numeric:
            possible = any(number is not None for _, number in meanings)
        else:
            possible = any(date_in(text or "") is not None or ":" in (text or "") for text, _ in meanings)
        if not possible:
            what = {"truth": "truths", "date": "dates", "time": "times"}.get(kind, "numbers")
            return f"labels among which are {what}, as its column holds {what}", "others"
    return None


def of_statement(statement: str, dialect: str) -> dict[str, Column]:
    """Return what the checks of a CREATE TABLE statement say about single columns: lists of values, and limits.

    Other checks are ignored.
    """
    try:
        import sqlglot
        from sqlglot import expressions as sql

        parsed = sqlglot.parse_one(statement, read=dialect)
        checks = [check.this.unnest() for check in parsed.find_all(sql.CheckColumnConstraint)]
    except Exception:  # a dialect that cannot be parsed, so nothing is known
        return {}
    found: dict[str, Column] = {}
    for check in checks:
        for condition in _conjuncts(check):
            name, column = _condition(condition)
            if name is not None:
                found[name] = _both(found.get(name, NOTHING), column)
    return found


def _conjuncts(check: Any) -> list[Any]:
    """Return the parts of a condition that are joined by AND, without parentheses."""
    from sqlglot import expressions as sql

    check = check.unnest()
    return [*_conjuncts(check.left), *_conjuncts(check.right)] if isinstance(check, sql.And) else [check]


def _condition(condition: Any) -> tuple[str | None, Column]:
    """Return the column that a simple condition is about, or None, and what the condition says about it."""
    from sqlglot import expressions as sql

    named = _bare(condition.this)
    if not isinstance(named, sql.Column):
        return None, NOTHING
    name = named.name
    listed = _enumerated_values(condition)
    if listed is not None:
        labels = [_literal(each) for each in listed]
        return name, Column(labels=tuple(labels)) if labels and None not in labels else NOTHING
    low = high = None
    if isinstance(condition, sql.Between):
        low, high = _literal(condition.args["low"]), _literal(condition.args["high"])
    elif isinstance(condition, sql.GTE | sql.GT):
        low = _literal(condition.expression)
    elif isinstance(condition, sql.LTE | sql.LT):
        high = _literal(condition.expression)
    ends = [end if isinstance(end, int | float) else None for end in (low, high)]
    return name, Column(low=ends[0], high=ends[1])


def _enumerated_values(condition: Any) -> list[Any] | None:
    """Return the values of ``IN (…)``, or of ``= ANY (ARRAY[…])``, which is how PostgreSQL stores it, or else None."""
    from sqlglot import expressions as sql

    if isinstance(condition, sql.In):
        return list(condition.expressions)
    if isinstance(condition, sql.EQ) and isinstance(condition.expression, sql.Any):
        array = _bare(condition.expression.this)
        return list(array.expressions) if isinstance(array, sql.Array) else None
    return None


def _bare(expression: Any) -> Any:
    """Remove parentheses, and the casts that PostgreSQL adds to a condition."""
    from sqlglot import expressions as sql

    while isinstance(expression, sql.Cast | sql.Paren):
        expression = expression.this
    return expression


def _literal(expression: Any) -> Any:
    """Return the text or number of a literal, or None for any other expression."""
    from sqlglot import expressions as sql

    cast = [str(each.to.this.value).lower() for each in expression.find_all(sql.Cast)]
    sign, expression = 1, _bare(expression)
    if isinstance(expression, sql.Neg):
        sign, expression = -1, _bare(expression.this)
    if not isinstance(expression, sql.Literal):
        return None
    if expression.is_string and not any(kind in NUMBERS for kind in cast):
        return expression.this
    number = meaning(expression.this)[1]
    return None if number is None else sign * number


def _both(one: Column, other: Column) -> Column:
    """Combine two sets of facts about a column."""
    return Column(
        one.kind or other.kind,
        one.labels or other.labels,
        one.low if other.low is None else other.low if one.low is None else max(one.low, other.low),
        one.high if other.high is None else other.high if one.high is None else min(one.high, other.high),
    )


def with_statement(names: Sequence[str], columns: Sequence[Column], statement: str, dialect: str) -> list[Column]:
    """Add what the CREATE TABLE statement says to the columns."""
    known = of_statement(statement, dialect)
    padded = list(columns) or [NOTHING] * len(names)
    return [_both(column, known.get(name, NOTHING)) for name, column in zip(names, padded, strict=True)]


def of_enumeration(data_type: str) -> tuple[str, ...] | None:
    """Return the values of a DuckDB type ``ENUM('a', 'b')``, or None for another type."""
    if not data_type.startswith("ENUM("):
        return None
    return tuple(each.replace("''", "'") for each in re.findall(r"'((?:[^']|'')*)'", data_type))


# Rows of a batch from a database engine: few, because some hold at most 2 GiB of text in one.
ROWS_OF_AN_ENGINE = 1 << 15


@dataclass(frozen=True)
class BatchSource:
    """A table that can be read, column by column, some rows at a time.

    - ``columns``: the names of the columns.
    - ``batches(positions)``: yields the columns at these positions, some rows at a time, in the order of the rows.
    - ``types``: the public facts about each column, if the source has types.
    - ``dictionary(position)``: the values that a column's encoding lists. They are private values of rows until the
      owner calls them public.
    - ``is_text``: True if the columns are the fields of the first line of a text file.
    """

    columns: list[str]
    batches: Callable[[Sequence[int]], Iterator[list[Any]]]
    types: list[Column] = field(default_factory=list)
    dictionary: Callable[[int], tuple[Any, ...] | None] = lambda position: None
    is_text: bool = False

    def type_of(self, position: int) -> Column:
        """Return the public facts about a column."""
        return self.types[position] if self.types else NOTHING

    def all_names(self, delimiter: str | None) -> list[str]:
        """Return the names of all columns, each once, or refuse a first line that cannot be a header.

        Columns of a text file that have no name are left out: they number the rows.
        """
        if self.is_text:
            require_header(self.columns, delimiter)
        return [name for name in dict.fromkeys(self.columns) if name or not self.is_text]

    def positions(self, names: Sequence[str]) -> list[int]:
        """Return the positions of the named columns, and refuse a name that is missing or occurs twice."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise missing_columns(missing, names, self.columns, is_text=self.is_text)
        twice = [name for name in names if self.columns.count(name) > 1]
        if twice:
            raise InvalidInput(
                f"The table must have each declared column once. Found {list_names(twice)} more than once. "
                "Rename all but one of them."
            )
        return [self.columns.index(name) for name in names]


def quote_identifier(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


Result = TypeVar("Result")


def folder_of(owner: object) -> str:
    """Make a folder that only the current user can open, and remove it when ``owner`` is collected.

    A forked process that ends does not remove the folder.
    """
    made, here = tempfile.mkdtemp(prefix="hedgerow-cells-"), os.getpid()
    weakref.finalize(owner, lambda: shutil.rmtree(made, ignore_errors=True) if os.getpid() == here else None)
    return made


def hide_engine_errors(work: Callable[[], Result]) -> Result:
    """Run the work and return its result. If it fails, drop the engine's message, which may quote a row.

    The refusal is raised after the failure was handled, so that it does not carry the failure as its context.
    """
    refusal: HedgerowError | None = None
    try:
        return work()
    except HedgerowError as own:
        refusal = type(own)(*own.args)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic of a compiled library is not an Exception
        pass
    raise refusal or DataUnavailable(
        "The table must be readable by the engine. Found that it is not (the engine's message is withheld: it may "
        "quote rows). Check the file's format, its types and the connection."
    )
