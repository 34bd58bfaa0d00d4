"""How a table is read: every value has a place by a fixed rule, so that no row is refused, warned about or heard of.

What one row holds must not decide whether a call succeeds, nor how another row is read. One text among numbers makes numpy
turn a whole array to text, one complex number makes it complex, and a gap makes integers floats or objects. So types of values
are never refused. Each value becomes a number by itself:

 - a number is itself, a complex one its real part, True and False are 1 and 0;
 - text is the number, or the truth value, that it spells;
 - all else is missing, as are NaN, None, masked and null entries, dates, and text that spells no number. Missing is 0;
 - what is too large for a float, or infinite, is the largest float of its sign, to be clipped like any long row.

What is refused is a shape: it is public, for X must be an array, a frame or a sparse matrix. The number of columns of a list
of lists is not: any of its rows decides it. A list of labels has only a length, which is as public as that of X.
"""

from __future__ import annotations

import contextlib
import numbers
from decimal import Decimal
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hedgerow._types import Array, Matrix
from hedgerow.errors import InvalidInput

_LARGEST = float(np.finfo(np.float64).max)
_TRUTH = {"true": 1.0, "false": 0.0}


@np.errstate(all="ignore")
def matrix(X: Any) -> Matrix:
    """X as finite numbers, rows one after the other in memory; a copy where anything changes."""
    if sp.issparse(X):
        features: Any = _whole_entries(X)
    elif (columns := _columns(X)) is not None:
        read = [_finite(_one_a_row(as_numbers(column))) for column in columns]
        features = np.column_stack(read) if read else np.empty((0, 0))
    elif isinstance(X, np.ndarray) or hasattr(X, "__array__"):
        features = np.ascontiguousarray(_finite(as_numbers(X)))
    else:
        raise InvalidInput(
            f"X must be an array, a frame or a sparse matrix, whose shape is public. Found a {type(X).__name__}. "
            "Make it one: numpy.array(X)."
        )
    if features.ndim != 2 or features.shape[1] == 0:
        raise InvalidInput(f"X must be a table of rows and columns. Found {_shape(features)}. Reshape it.")
    return features


@np.errstate(all="ignore")
def labels(y: Any) -> Array:
    """y as finite numbers, one a row."""
    return _finite(as_numbers(column(y)))


def column(y: Any) -> NDArray[Any]:
    """y as an array of one dimension, its values as they are."""
    if isinstance(y, list | tuple):  # value by value: numpy would find one type, or shape, for all
        values = np.empty(len(y), dtype=object)
        for i, value in enumerate(y):
            values[i] = value
    else:
        values = y if isinstance(y, np.ma.MaskedArray) else np.asarray(y)
    if values.ndim != 1:
        raise InvalidInput(f"y must have one label for each row of X. Found {values.ndim} dimensions. Give a column.")
    return values


@np.errstate(all="ignore")
def as_numbers(values: Any) -> Array:
    """Every value as a number, by the rule above; NaN where it is missing."""
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), np.nan, as_numbers(values.data))
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64, copy=False)
    if array.dtype.kind == "c":
        return array.real.astype(np.float64)
    if array.dtype.kind in "mM":
        return np.full(array.shape, np.nan)
    each = (as_number(value) for value in array.ravel().tolist())
    return np.fromiter(each, dtype=np.float64, count=array.size).reshape(array.shape)


def as_number(value: Any) -> float:
    """One value as a number; NaN where it is missing."""
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if isinstance(value, str):
        return _spelt(value.strip())
    if isinstance(value, complex | np.complexfloating):
        value = value.real
    if not isinstance(value, numbers.Real | Decimal | np.bool_) or isinstance(value, np.timedelta64):
        return np.nan
    try:
        return float(value)
    except OverflowError:  # a whole number or fraction beyond float64
        return np.inf if value > 0 else -np.inf  # type: ignore[operator]
    except Exception:  # whatever a number of someone's own making does
        return np.nan


def _spelt(text: str) -> float:
    with contextlib.suppress(ValueError):
        return float(text)
    with contextlib.suppress(ValueError):
        return complex(text).real
    return _TRUTH.get(text.lower(), np.nan)


def _columns(X: Any) -> list[Any] | None:
    """Those of a frame, of pandas, polars or pyarrow: put into one array first, one column's type would decide on the others'."""
    if hasattr(X, "iloc") and len(X.shape) == 2:
        return [X.iloc[:, j] for j in range(X.shape[1])]
    listed = getattr(X, "get_columns", getattr(X, "itercolumns", None))
    return None if listed is None else list(listed())


def _one_a_row(column: Array) -> Array:
    """A column of structures or lists of one length has them along further dimensions: no numbers, so all missing."""
    return column if column.ndim == 1 else np.full(column.shape[0], np.nan)


def _shape(array: Any) -> str:
    """Without the number of rows, which may be private."""
    return "no columns" if array.ndim == 2 else f"{array.ndim} dimensions"


def _finite(values: Array) -> Array:
    return values if np.isfinite(values).all() else np.nan_to_num(values, nan=0.0, posinf=_LARGEST, neginf=-_LARGEST)


def _whole_entries(X: Any) -> Any:
    """CSR with every entry stored once: one stored in parts would be clipped part by part, and add up.

    Parts are added in the order in which they are stored, whatever other rows hold; scipy's order is not so sure.
    """
    stored = X if X.format in ("csr", "csc") else X.tocoo()
    if stored.format == "csc":
        stored = stored.tocsr()
    if stored.format == "csr":
        fresh = sp.csr_array((_finite(as_numbers(stored.data)), stored.indices, stored.indptr), shape=stored.shape)
        if fresh.has_canonical_format:  # looked up afresh, for a flag may be out of date
            return fresh
        stored = fresh.tocoo()
    rows, columns = stored.coords
    order = np.lexsort((columns, rows))  # stable
    rows, columns, parts = rows[order], columns[order], _finite(as_numbers(stored.data))[order]
    first = np.ones(rows.size, dtype=bool)
    first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    sums: Array = np.bincount(np.cumsum(first) - 1, weights=parts, minlength=int(first.sum())).astype(np.float64)
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows[first], minlength=stored.shape[0]))])
    return sp.csr_array((_finite(sums), columns[first], ends), shape=stored.shape)
