"""Give every value its meaning and its cell, by one rule.

The rule is the same for the sensitive table, whatever its source, and for an analyst's own frames.


A value is missing, or it has a text and perhaps a number. This depends on the value alone: not on the type that
happened to carry it, and not on any other row. No value is refused. docs/reading.md states the rule. Numbers and dates
outside the declared range are clamped. Unknown categories and missing values go to the first cell. If an attribute has
``other=True``, all of these go to its extra last cell instead. With ``missing=True``, missing values go to a cell of
their own.

Columns come as NumPy arrays, Arrow arrays, series of pandas or polars, or lists. Several paths below code them, and the
choice of path changes the speed and nothing else: ``Coder.cell`` is the rule, and the others are faster ways to the
same cell.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hedgerow._compiled import compile_lazily
from hedgerow._truth import FALSE_WORDS, SPELLED, TRUE_WORDS, text_of_truth
from hedgerow.errors import InvalidInput
from hedgerow.universe.attributes import (
    BLANKS,
    Attribute,
    Categories,
    Flag,
    Integers,
    Range,
)
from hedgerow.universe.dates import FIRST_DAY, LAST_DAY, Dates, day_of
from hedgerow.universe.universe import Universe

Cells = NDArray[np.int64]
Number = int | float
LONGEST_NUMBER = 400  # a text of more characters has no number
EXACT = 2**53  # every whole number up to this one is a float
FEW_TEXTS = 1 << 17  # up to this many texts of a column are read by their distinct values, without compiled code
REMEMBERED = 1 << 16  # in a column of objects, remember the cells of at most this many distinct values
WHOLE = re.compile(r"[+-]?[0-9]+(\.0*)?")
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# a date, perhaps followed by a time, which is ignored
DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})([T ].*)?", re.DOTALL)
INFINITE = {"inf": math.inf, "infinity": math.inf}
NO_NUMBER, IN_DIGITS, IN_DECIMALS, BY_THE_RULE, NOTHING = range(
    5
)  # the results of scanning a text (see ``_classify_texts``)


def cells_of(universe: Universe, name: str, frame: Any) -> Cells:
    """Return the cell of every value of a frame's column."""
    return code_column(universe[name], column_of(frame, name))


def column_of(frame: Any, name: str) -> NDArray[Any]:
    """Return a column of a pandas, polars or Arrow frame, or of a mapping from names to values."""
    try:
        column = frame[name]
    except Exception:  # each kind of frame has its own error for a missing column
        raise InvalidInput(
            f"X must be a table with a column {name!r}. Found {type(frame).__name__} without it. "
            "Pass a frame with the columns the estimator was fitted on."
        ) from None
    if hasattr(column, "to_numpy"):
        return np.asarray(column.to_numpy())
    return column if isinstance(column, np.ndarray) else _objects(column)


def code_column(attribute: Attribute, column: Any) -> Cells:
    """Return the cell of each value of a column. Every value has one."""
    return Coder(attribute).cells(column)


def numbers(column: NDArray[Any]) -> NDArray[np.float64]:
    """Return the values as floats, with NaN for values that are no number."""
    if column.dtype.kind in "biuf":
        return column.astype(float)
    return np.array([_float(meaning(value)[1]) for value in column], dtype=float)


def numbers_of(column: Any) -> NDArray[np.float64]:
    """Return the number of every value of a column in any form, with NaN for values that have none.

    ``meaning`` is the rule.
    """
    import pyarrow as pa

    carried = _as_carrier(column)
    if isinstance(carried, pa.ChunkedArray):
        return np.concatenate([np.zeros(0), *map(numbers_of, carried.chunks)])
    if isinstance(carried, np.ndarray):
        if carried.dtype.kind in "biuf" and carried.dtype.itemsize <= 8:
            return carried.astype(np.float64)
        return np.array([_float(meaning(value)[1]) for value in carried], dtype=np.float64)
    kind = carried.type
    if pa.types.is_dictionary(kind):
        distinct = np.append(numbers_of(carried.dictionary), math.nan)
        places = carried.indices.cast(pa.int64()).fill_null(len(distinct) - 1)
        return np.asarray(distinct[places.to_numpy(zero_copy_only=False)])
    if pa.types.is_float16(kind):
        return numbers_of(carried.cast(pa.float32()))
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        filled = carried.fill_null(False if pa.types.is_boolean(kind) else 0) if carried.null_count else carried
        found = filled.to_numpy(zero_copy_only=False).astype(np.float64)
        if carried.null_count:
            found[carried.is_null().to_numpy(zero_copy_only=False)] = math.nan
        return np.asarray(found)
    if _is_text(kind):
        return _numbers_of_texts(carried.cast(pa.large_binary()))
    return numbers_of(_objects(_values(carried)))


def _numbers_of_texts(texts: Any) -> NDArray[np.float64]:
    """Read numbers from an Arrow array of bytes: plain notation by compiled code, all else by the rule."""
    import pyarrow as pa

    found, wholes = _scan(texts) if len(texts) else (np.zeros(0, np.uint8), np.zeros(0, np.int64))
    numbers = np.where(found == IN_DIGITS, wholes.astype(np.float64), math.nan)
    decimals, others = found == IN_DECIMALS, found == BY_THE_RULE
    if decimals.any():
        numbers[decimals] = texts.filter(pa.array(decimals)).cast(pa.large_string()).cast(pa.float64()).to_numpy()
    if others.any():
        read = [_float(meaning(text)[1]) for text in texts.filter(pa.array(others)).to_pylist()]
        numbers[others] = read
    return numbers


def texts_of(column: Any) -> Any:
    """Return the text of every value of a column as an Arrow array of bytes, empty where the value is missing.

    ``meaning`` is the rule.
    """
    import pyarrow as pa

    carried = _as_carrier(column)
    if isinstance(carried, pa.ChunkedArray):
        parts = [texts_of(chunk) for chunk in carried.chunks]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.large_binary())
    if isinstance(carried, pa.Array):
        if pa.types.is_dictionary(carried.type):
            spread = texts_of(carried.dictionary).take(carried.indices.cast(pa.int64()))
            return spread.fill_null(b"")
        if _is_text(carried.type):
            return carried.cast(pa.large_binary()).fill_null(b"")
        carried = _objects(_values(carried))
    read = [(meaning(value)[0] or "").encode("utf-8", "replace") for value in carried]
    return pa.array(read, pa.large_binary())


def _as_carrier(column: Any) -> Any:
    """Return a column as an Arrow or NumPy array with the same values."""
    import pyarrow as pa

    family = type(column).__module__.split(".")[0]
    if isinstance(column, pa.ChunkedArray | pa.Array):
        return column
    if family == "pandas":
        if isinstance(column.dtype, np.dtype):
            return _as_carrier(column.to_numpy())
        if column.dtype.name == "category":
            places = pa.array(column.cat.codes.to_numpy(), mask=column.cat.codes.to_numpy() < 0)
            return pa.DictionaryArray.from_arrays(places, texts_of(_objects(column.dtype.categories)))
        if str(column.dtype).startswith(("period", "interval")):
            return _objects(column)
        with contextlib.suppress(Exception):
            return pa.array(column.array, from_pandas=True)
        return _objects(column)
    if family == "polars":
        if not str(column.dtype).startswith(("Object", "Int128", "UInt128")):
            with contextlib.suppress(Exception):
                return column.to_arrow()
        return _objects(column.to_list())
    array = column if isinstance(column, np.ndarray) and column.ndim == 1 else _objects(column)
    if array.dtype.kind in "OU":
        with contextlib.suppress(Exception):  # most columns of objects contain only texts and missing values
            return pa.array(array, pa.large_string(), from_pandas=True)
    return array


def meaning(value: Any) -> tuple[str | None, Number | None]:
    """Return the text and the number of a value.

    Both are None if the value is missing. The number is None if the value has none.
    """
    try:
        return _meaning(value)
    except Exception:  # an object that cannot even be printed gets a text that no label has
        return "\0", None


def _meaning(value: Any) -> tuple[str | None, Number | None]:
    """Return the text and the number of a value, or fail on a strange object."""
    no_time = isinstance(value, np.datetime64 | np.timedelta64) and np.isnat(value)
    if value is None or no_time or type(value).__name__ in ("NAType", "NaTType"):
        return None, None
    if isinstance(value, str):
        text = str.__str__(value)
        return text, number_of(text)
    if isinstance(value, bool | np.bool_):
        return text_of_truth(bool(value)), int(value)
    if isinstance(value, np.timedelta64):  # NumPy holds an integer, in a unit that may depend on other rows
        value = value.astype("m8[us]").item()
    if isinstance(value, int | np.integer):
        whole = int(value)
        if whole.bit_length() > 4 * LONGEST_NUMBER:
            return "\0", None
        return str(whole), whole if len(str(whole)) <= LONGEST_NUMBER else None
    if isinstance(value, float | np.floating):
        return _meaning_of_float(float(value))
    if isinstance(value, complex | np.complexfloating) and value.imag == 0:
        return _meaning_of_float(float(value.real))
    if isinstance(value, decimal.Decimal):
        if value.is_nan():
            return None, None
        if value.is_infinite():
            return _meaning_of_float(float(value))
        text = format(value, "f") if abs(value.adjusted()) < LONGEST_NUMBER else str(value)
        return text, number_of(text)
    if isinstance(value, bytes | bytearray | memoryview):
        text = bytes(value).decode("utf-8", "replace")
    elif isinstance(value, datetime.timedelta):  # pandas prints its own subclass differently
        text = str(datetime.timedelta(value.days, value.seconds, value.microseconds))
    elif isinstance(value, np.datetime64):
        # pandas converts these units to seconds.
        whole_minutes = np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D", "h", "m")
        text = _time(str(value.astype("M8[s]") if whole_minutes else value).replace("T", " "))
    elif isinstance(value, datetime.datetime):
        text = _time(value.isoformat(sep=" "))
    elif type(value).__name__ == "Interval":  # its ends may be floats only because of another row
        ends = f"{_meaning(value.left)[0]}, {_meaning(value.right)[0]}"
        text = f"{'[' if value.closed_left else '('}{ends}{']' if value.closed_right else ')'}"
    else:
        text = value.isoformat() if isinstance(value, datetime.date) else str.__str__(str(value))
    return text, number_of(text)


def _meaning_of_float(value: float) -> tuple[str | None, Number | None]:
    """Return the text and the number of a float. A whole number has the text of an integer."""
    if math.isnan(value):
        return None, None
    if math.isinf(value):
        return ("inf" if value > 0 else "-inf"), value
    return (str(int(value)), int(value)) if value.is_integer() else (repr(value), value)


def _time(text: str) -> str:
    """Remove the zeros at the end of a fraction of a second."""
    return re.sub(r"(\.[0-9]*?)0+(?![0-9])", lambda found: found[1].rstrip("."), text, count=1)


def number_of(text: str) -> Number | None:
    """Return the number that a text states in decimal or scientific notation, or None.

    Whole numbers are exact, and others are the nearest float.
    """
    text = text.strip(BLANKS)
    if not text or len(text) > LONGEST_NUMBER:
        return None
    if WHOLE.fullmatch(text):
        return int(text.partition(".")[0])
    if DECIMAL.fullmatch(text):
        number = float(text)
        return int(number) if number.is_integer() else number
    size = INFINITE.get(text.lstrip("+-").lower()) if text[0] in "+-iI" and text[1:2] not in ("+", "-") else None
    return None if size is None else -size if text[0] == "-" else size


def date_in(text: str) -> int | None:
    """Return the days since 1970-01-01 of a text that begins with an ISO 8601 date, or None. Blanks are ignored."""
    found = DATE.fullmatch(text.strip(BLANKS))
    if found is None:
        return None
    try:
        return day_of(datetime.date(int(found[1]), int(found[2]), int(found[3])))
    except ValueError:  # the calendar has no such day
        return None


def _float(number: Any) -> float:
    """Return a number as a float, with NaN for None and infinity for a number that is too large."""
    try:
        return math.nan if number is None else float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


class Coder:
    """The coding of one attribute: from values to cells."""

    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute
        missing, other = attribute.missing_cell, attribute.other_cell
        self._outside = other if other is not None else 0
        self._missing = missing if missing is not None else self._outside
        self._unreadable = (
            other if other is not None else self._missing
        )  # the cell of a text that is no number, or no date, where there should be one
        self._place: Callable[[str, Number | None], int]
        self._numeric = isinstance(attribute, Integers | Range)
        self._usual_flag = False
        self._texts = 0  # the number of texts coded so far
        self._truths: dict[bool, int] | None = None  # cells of booleans, which match a label in any letter case
        if isinstance(attribute, Flag):
            self._place = self._by_word(attribute)
        elif isinstance(attribute, Categories):
            self._place = self._by_label(attribute)
        elif isinstance(attribute, Dates):
            self._firsts, self._last = attribute.firsts.tolist(), attribute.last
            self._place = lambda text, number: self._of_day(text)
        else:
            self._place = lambda text, number: (
                self._by_number(number)
                if number is not None
                else self._unreadable
                if text.strip(BLANKS)
                else self._missing
            )
        # True if floats and 64-bit integers hold the ends exactly, which is almost always so
        ends = (attribute.low, attribute.high) if isinstance(attribute, Integers) else (0, 0)
        self._plain = max(map(abs, ends)) <= EXACT

    def cell(self, value: Any) -> int:
        """Return the cell of one value. This method is the rule."""
        if self._truths is not None and type(value) in (bool, np.bool_):
            return self._truths[bool(value)]
        text, number = meaning(value)
        return self._missing if text is None else self._place(text, number)

    def _of_day(self, text: str) -> int:
        """Return the cell of a text that should be a date."""
        day = date_in(text)
        if day is None:
            return self._unreadable if text.strip(BLANKS) else self._missing
        if self.attribute.other and not self._firsts[0] <= day <= self._last:
            return self._outside
        return max(bisect_right(self._firsts, day) - 1, 0)

    def _by_word(self, attribute: Flag) -> Callable[[str, Number | None], int]:
        """Return the rule of a Flag: a boolean counts as itself, any other value by its text, or else by its number."""
        texts: dict[str, int] = {text: int(truth) for text, truth in SPELLED.items()}
        numbers: dict[Number, int] = {}
        for cell, words in ((0, attribute.false), (1, attribute.true)):
            for word in words:
                text, number = meaning(word)
                if text is not None:
                    texts[text.strip(BLANKS).casefold()] = cell
                if number is not None:
                    numbers[number] = cell
        self._truths = {False: 0, True: 1}
        self._usual_flag = not attribute.other and {n for n, cell in numbers.items() if cell} == {1}

        def place(text: str, number: Number | None) -> int:
            word = text.strip(BLANKS).casefold()
            if not word:
                return self._missing
            found = texts.get(word)
            if found is None and number is not None:
                found = numbers.get(number)
            return self._outside if found is None else found

        return place

    def _by_label(self, attribute: Categories) -> Callable[[str, Number | None], int]:
        """Return the rule of Categories: a label is found by its text, or else by its number if that is unique."""
        texts: dict[str, int] = {}
        words: dict[str, int] = {}
        numbered: list[tuple[Number, int]] = []
        for i, label in enumerate(attribute.listed):
            text, number = meaning(label)
            if text is None:
                self._missing = i
                continue
            texts.setdefault(attribute.spell(text), i)
            if number is not None and math.isfinite(_float(number)):
                numbered.append((number, i))
            if isinstance(label, bool | np.bool_):
                words |= dict.fromkeys(TRUE_WORDS if label else FALSE_WORDS, i)
        repeated = Counter(number for number, _ in numbered)
        by_number = {number: i for number, i in numbered if repeated[number] == 1}
        empty = texts.get("", self._missing)
        spelled = {truth: (text, text.title(), text.upper()) for text, truth in SPELLED.items()}
        self._truths = {
            truth: next((texts[t] for t in spelled[truth] if t in texts), by_number.get(int(truth), self._outside))
            for truth in (True, False)
        }

        def place(text: str, number: Number | None) -> int:
            """Return the cell of a value: by its text, else by a word for truth, else by its number."""
            compared = attribute.spell(text)
            if compared == "":
                return empty
            found = texts.get(compared)
            if found is None and words:
                found = words.get(text.strip(BLANKS).lower())
            if found is None and number is not None:
                found = by_number.get(number)
            return self._outside if found is None else found

        return place

    def _by_number(self, number: Number) -> int:
        """Return the cell of a number."""
        attribute = self.attribute
        if isinstance(attribute, Integers):
            low, high = attribute.low, attribute.high
        else:
            edges = cast(Range, attribute).edges
            number, low, high = _float(number), edges[0], edges[-1]  # type: ignore[assignment]
        if attribute.other and not low <= number <= high:
            return self._outside
        number = min(max(number, low), high)
        if isinstance(attribute, Integers):
            return math.floor(number) - low
        return bisect_right(edges, number, 1, len(edges) - 1) - 1

    def cells(self, column: Any) -> Cells:
        """Return the cell of every value of a column in any form."""
        import pyarrow as pa

        family = type(column).__module__.split(".")[0]
        if isinstance(column, pa.ChunkedArray):
            return np.concatenate([np.zeros(0, np.int64), *(self._of_arrow(chunk) for chunk in column.chunks)])
        if isinstance(column, pa.Array):
            return self._of_arrow(column)
        if family == "pandas":
            return self._of_pandas(column)
        if family == "polars":
            return self._of_polars(column)
        array = column if isinstance(column, np.ndarray) and column.ndim == 1 else _objects(column)
        if array.dtype.kind == "b":
            return self._of_truths(array, None)
        if array.dtype.kind in "iuf" and array.dtype.itemsize <= 8:
            return self._of_numbers(array, None)
        if array.dtype.kind == "M" and isinstance(self.attribute, Dates):
            return self._of_times(array)
        return self._of_objects(array)

    def _of_pandas(self, series: Any) -> Cells:
        """Code a pandas series."""
        import pyarrow as pa

        if isinstance(series.dtype, np.dtype):
            return self.cells(series.to_numpy())
        if series.dtype.name == "category":
            cells = self._of_objects(_objects(series.dtype.categories))
            return np.asarray(
                np.append(cells, self._missing)[series.cat.codes.to_numpy()]
            )  # the code of a missing value is -1
        if str(series.dtype).startswith(
            ("period", "interval")
        ):  # Arrow would hold numbers, which differ from the texts of these types
            return self._of_objects(_objects(series))
        try:
            carried = pa.array(series.array, from_pandas=True)
        except Exception:
            return self._of_objects(_objects(series))
        return self.cells(carried)

    def _of_polars(self, series: Any) -> Cells:
        """Code a polars series."""
        if str(series.dtype).startswith(("Object", "Int128", "UInt128")):  # Arrow would hold addresses, or refuse
            return self._of_objects(_objects(series.to_list()))
        try:
            carried = series.to_arrow()
        except Exception:
            return self._of_objects(_objects(series.to_list()))
        return self.cells(carried)

    def _of_arrow(self, array: Any) -> Cells:
        """Code an Arrow array."""
        import pyarrow as pa

        kind = array.type
        if pa.types.is_dictionary(kind):
            return self._spread(self.cells(array.dictionary), array.indices)
        if pa.types.is_float16(kind):
            return self._of_arrow(array.cast(pa.float32()))
        if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
            known = None if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)
            values = array.fill_null(False if pa.types.is_boolean(kind) else 0).to_numpy(zero_copy_only=False)
            return self._of_truths(values, known) if pa.types.is_boolean(kind) else self._of_numbers(values, known)
        if _is_text(kind):
            return self._of_texts(array.cast(pa.large_binary()))
        if isinstance(self.attribute, Dates) and (
            pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None)
        ):
            return self._of_times(array.to_numpy(zero_copy_only=False))
        try:
            encoded = array.dictionary_encode()
        except Exception:  # a type without equality, such as a list
            return self._of_objects(_objects(_values(array)))
        return self._spread(self._of_objects(_objects(_values(encoded.dictionary))), encoded.indices)

    def _spread(self, cells: Cells, indices: Any) -> Cells:
        """Give every row the cell of its distinct value.

        The indices are read from Arrow's own memory, because Arrow's conversions would import pandas if it is
        installed.
        """
        valid, values = indices.buffers()
        rows = slice(indices.offset, indices.offset + len(indices))
        places = np.frombuffer(values, indices.type.to_pandas_dtype())[rows] if len(indices) else np.zeros(0, np.int64)
        if indices.null_count:
            known = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")[rows].astype(bool)
            places = np.where(known, places, len(cells))
        return np.asarray(np.append(cells, self._missing)[places])

    def _of_truths(self, values: NDArray[Any], known: NDArray[np.bool_] | None) -> Cells:
        cells = np.where(values, self.cell(True), self.cell(False))
        return (cells if known is None else np.where(known, cells, self._missing)).astype(np.int64)

    def _of_times(self, times: NDArray[Any]) -> Cells:
        """Code NumPy times by the day that they are on. Years that Python's dates do not have count as no date."""
        day = times.astype("M8[D]")
        days = day.astype(np.int64)
        cells = np.maximum(np.searchsorted(self._firsts, days, side="right") - 1, 0)
        if self.attribute.other:
            cells = np.where((days < self._firsts[0]) | (days > self._last), self._outside, cells)
        cells = np.where((days < FIRST_DAY) | (days > LAST_DAY), self._unreadable, cells)
        return np.where(np.isnat(times), self._missing, cells).astype(np.int64)

    def _of_numbers(self, values: NDArray[Any], known: NDArray[np.bool_] | None) -> Cells:
        """Code an array of numbers. ``known`` marks the values that are not missing."""
        if values.dtype.kind == "f":
            values = values.astype(np.float64, copy=False)
            nan = np.isnan(values)
            if nan.any():
                known = ~nan if known is None else known & ~nan
        if known is not None:
            cells = np.full(len(values), self._missing, np.int64)
            cells[known] = self._of_numbers(values[known], None)
            return cells
        if isinstance(self.attribute, Dates):
            return np.full(len(values), self._unreadable, np.int64)
        if self._usual_flag:
            return np.asarray(values == 1, np.int64)
        if not self._numeric or not self._plain:
            distinct, positions = np.unique(values, return_inverse=True)
            return np.asarray(np.array([self.cell(v) for v in distinct.tolist()], np.int64)[positions.reshape(-1)])
        attribute = self.attribute
        if isinstance(attribute, Integers):
            if values.dtype.kind == "u":
                values = np.minimum(values, np.uint64(2**63 - 1))
            if values.dtype.kind != "f":
                values = values.astype(np.int64, copy=False)
            low, high = attribute.low, attribute.high
            inside = np.clip(values, low, high) - low
            cells = inside if values.dtype.kind == "i" else np.floor(inside).astype(np.int64)
        else:
            edges = np.asarray(cast(Range, attribute).edges)
            low, high = edges[0], edges[-1]
            values = values.astype(np.float64, copy=False)
            cells = np.searchsorted(edges[1:-1], values, side="right")
        if attribute.other:
            cells = np.where((values < low) | (values > high), self._outside, cells)
        return cells.astype(np.int64, copy=False)

    def _of_texts(self, texts: Any) -> Cells:
        """Code an Arrow array of bytes.

        If there are many rows, numbers in plain notation are read by compiled code, and all else by the rule.
        """
        import pyarrow as pa

        self._texts += len(texts)
        if not self._numeric or self._texts <= FEW_TEXTS:
            return self._of_distinct(texts)
        found, wholes = _scan(texts)
        cells = np.full(len(texts), self._unreadable, np.int64)
        cells[found == NOTHING] = self._missing
        digits = found == IN_DIGITS
        cells[digits] = self._of_numbers(wholes[digits], None)
        decimals = found == IN_DECIMALS
        if decimals.any():
            reals = texts.filter(pa.array(decimals)).cast(pa.large_string()).cast(pa.float64())
            cells[decimals] = self._of_numbers(reals.to_numpy(), None)
        others = found == BY_THE_RULE
        if others.any():
            cells[others] = self._of_distinct(texts.filter(pa.array(others)))
        return cells

    def _of_distinct(self, texts: Any) -> Cells:
        """Code texts by the rule, once per distinct text."""
        encoded = texts.dictionary_encode()
        cells = np.array([self.cell(text) for text in encoded.dictionary.to_pylist()], np.int64)
        return self._spread(cells, encoded.indices)

    def _of_objects(self, values: NDArray[Any]) -> Cells:
        """Code an array of Python objects."""
        import pyarrow as pa

        texts = None
        if values.dtype.kind in "OU":
            with contextlib.suppress(Exception):  # most columns of objects contain only texts and missing values
                texts = pa.array(values, pa.large_string(), from_pandas=True).cast(pa.large_binary())
        if texts is not None:
            return self._of_texts(texts)
        cells = np.empty(len(values), np.int64)
        remembered: dict[tuple[type, Any], int] = {}
        for i, value in enumerate(values):
            kind = type(value)
            if kind in (str, bytes, int, float):
                cell = remembered.get((kind, value))
                if cell is None:
                    cell = self.cell(value)
                    if len(remembered) < REMEMBERED:
                        remembered[kind, value] = cell
                cells[i] = cell
            else:
                cells[i] = self.cell(value)
        return cells


def _objects(values: Iterable[Any]) -> NDArray[Any]:
    """Return values as an array of Python objects, one per value (a list within a list stays one value)."""
    listed = list(values)
    array = np.empty(len(listed), dtype=object)
    for i, value in enumerate(listed):
        array[i] = value
    return array


def _is_text(kind: Any) -> bool:
    """Return True for Arrow types of texts and bytes."""
    import pyarrow as pa

    tests = ("is_string", "is_large_string", "is_string_view", "is_binary", "is_large_binary", "is_binary_view")
    return any(getattr(pa.types, test)(kind) for test in (*tests, "is_fixed_size_binary"))


def _values(array: Any) -> Iterable[Any]:
    """Yield the values of an Arrow array as Python objects, with NUL for what Python cannot hold (a year 300,000)."""
    for scalar in array:
        try:
            value = scalar.as_py()
        except Exception:
            value = "\0"
        yield value


def _scan(texts: Any) -> Any:
    """Run ``_classify_texts`` on an Arrow array of bytes."""
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    bytes_ = np.frombuffer(content, np.uint8) if content is not None and content.size else np.zeros(1, np.uint8)
    known = np.ones(len(texts), bool) if texts.null_count == 0 else np.asarray(texts.is_valid())
    return _classify_texts(bytes_, ends, known)


@compile_lazily()
def _classify_texts(content: NDArray[np.uint8], ends: NDArray[np.int64], known: NDArray[np.bool_]) -> Any:
    """Classify each text, and return the numbers of those in digits.

    A text is in digits, in plain decimals, certainly no number, for the rule to read, or nothing (missing or blank).
    After blanks, a number begins with a sign, a digit, a point, or the i of infinity.
    """
    found = np.zeros(known.size, np.uint8)  # NO_NUMBER
    wholes = np.zeros(known.size, np.int64)
    for row in range(known.size):
        found[row] = 4  # NOTHING
        if not known[row]:
            continue
        i, end = ends[row], ends[row + 1]
        start = i
        while i < end and (content[i] == 32 or 9 <= content[i] <= 13):
            i += 1
        if i == end:
            continue
        found[row] = 0  # NO_NUMBER
        c = content[i]
        if not (48 <= c <= 57 or c == 43 or c == 45 or c == 46 or c == 73 or c == 105):
            continue
        found[row] = 3  # BY_THE_RULE
        plain, negative = i == start and c != 43, c == 45
        if c == 43 or c == 45:
            i += 1
        first, whole = i, 0
        while i < end and 48 <= content[i] <= 57 and i - first < 18:
            whole = 10 * whole + (int(content[i]) - 48)  # int() avoids overflow of uint8 where this is not compiled
            i += 1
        digits = i - first
        if digits == 0:
            continue
        after = i
        while after < end and (content[after] == 32 or 9 <= content[after] <= 13):
            after += 1
        if after == end:
            found[row] = 1  # IN_DIGITS
            wholes[row] = -whole if negative else whole
            continue
        if not plain or digits > 15 or end - start > 40:
            continue
        if content[i] == 46:
            i += 1
            first = i
            while i < end and 48 <= content[i] <= 57:
                i += 1
            if i == first:
                continue
        if i < end and (content[i] == 101 or content[i] == 69):
            i += 1
            if i < end and (content[i] == 43 or content[i] == 45):
                i += 1
            first = i
            while i < end and 48 <= content[i] <= 57:
                i += 1
            if i == first or i - first > 2:
                continue
        if i == end:
            found[row] = 2  # IN_DECIMALS
    return found, wholes
