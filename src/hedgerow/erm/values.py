"""Reading of tables: every value is read by a fixed rule, so no row is refused, warned about or revealed by an error.

The values of one row must not decide if a call succeeds, nor how another row is read. One text among numbers makes
numpy convert a whole array to text, one complex number makes it complex, and a gap turns integers to floats or objects.
So types of values are never refused. Each value becomes a number by itself:

- a number is itself, a complex number its real part, True and False are 1 and 0;
- text is the number, or the truth value, that it spells;
- everything else is missing: NaN, None, masked and null entries, dates, and text that spells no number. Missing is 0;
- a value that is infinite or too large for a float is the largest float of its sign, to be clipped like any long row.

Only shapes are refused. Shapes are public, because X must be an array, a frame or a sparse matrix. A list of lists is
not accepted: any one of its rows would decide the number of columns. A list of labels has only a length, which is as
public as that of X.
"""

from __future__ import annotations

import contextlib
import numbers
from decimal import Decimal
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hedgerow._truth import SPELLED
from hedgerow._types import Array, Matrix
from hedgerow.errors import InvalidInput

_LARGEST = float(np.finfo(np.float64).max)  # stands for infinity


@np.errstate(all="ignore")
def matrix(X: Any) -> Matrix:
    """Return X as finite numbers with contiguous rows. It is a copy if anything changes."""
    if sp.issparse(X):
        features: Any = _whole_entries(X)
    elif (columns := _columns(X)) is not None:
        read = [_finite(_one_a_row(as_numbers(column))) for column in columns]
        features = np.column_stack(read) if read else np.empty((0, 0))
    elif isinstance(X, np.ndarray) or hasattr(X, "__array__"):
        features = np.ascontiguousarray(_finite(as_numbers(X)))
    else:
        raise InvalidInput(
            f"X must be an array, a frame or a sparse matrix, whose shape is public. Found {type(X).__name__}. "
            "Convert it with numpy.array(X)."
        )
    if features.ndim != 2 or features.shape[1] == 0:
        raise InvalidInput(f"X must be a table of rows and columns. Found {_shape(features)}. Reshape it.")
    return features


@np.errstate(all="ignore")
def labels(y: Any) -> Array:
    """Return y as finite numbers, one per row."""
    return _finite(as_numbers(column(y)))


def column(y: Any) -> NDArray[Any]:
    """Return y as a one-dimensional array of unchanged values."""
    if isinstance(y, list | tuple):  # value by value, because numpy would choose one type, or shape, for all
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
    """Return every value as a number by the rules of this module, NaN if it is missing."""
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
    """Return one value as a number, NaN if it is missing."""
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if isinstance(value, str):
        return _spelling_of(value.strip())
    if isinstance(value, complex | np.complexfloating):
        value = value.real
    if not isinstance(value, numbers.Real | Decimal | np.bool_) or isinstance(value, np.timedelta64):
        return np.nan
    try:
        return float(value)
    except OverflowError:  # a whole number or fraction beyond float64
        return np.inf if value > 0 else -np.inf  # type: ignore[operator]
    except Exception:  # a user-defined number may raise anything
        return np.nan


def _spelling_of(text: str) -> float:
    """Return the number or truth value that a text spells, NaN if it spells none."""
    with contextlib.suppress(ValueError):
        return float(text)
    with contextlib.suppress(ValueError):
        return complex(text).real
    return float(SPELLED.get(text.lower(), np.nan))


def _columns(X: Any) -> list[Any] | None:
    """Return the columns of a pandas, polars or pyarrow frame, or None for anything else.

    They are read one by one. In one array, the type of one column would decide how the others are read.
    """
    if hasattr(X, "iloc") and len(X.shape) == 2:
        return [X.iloc[:, j] for j in range(X.shape[1])]
    listed = getattr(X, "get_columns", getattr(X, "itercolumns", None))
    return None if listed is None else list(listed())


def _one_a_row(column: Array) -> Array:
    """Return a column with one number per row.

    A column of structures or lists has further dimensions. It holds no numbers, so all its values are missing.
    """
    return column if column.ndim == 1 else np.full(column.shape[0], np.nan)


def _shape(array: Any) -> str:
    """Describe a shape without the number of rows, which may be private."""
    return "no columns" if array.ndim == 2 else f"{array.ndim} dimensions"


def _finite(values: Array) -> Array:
    """Replace NaN by 0 and infinities by the largest floats."""
    return values if np.isfinite(values).all() else np.nan_to_num(values, nan=0.0, posinf=_LARGEST, neginf=-_LARGEST)


def _whole_entries(X: Any) -> Any:
    """Return a CSR matrix with every entry stored once.

    An entry stored in parts would be clipped part by part, and the parts would add up to more. Parts are added in the
    order in which they are stored, independently of other rows; scipy does not guarantee such an order.
    """
    stored = X if X.format in ("csr", "csc") else X.tocoo()
    if stored.format == "csc":
        stored = stored.tocsr()
    if stored.format == "csr":
        fresh = sp.csr_array((_finite(as_numbers(stored.data)), stored.indices, stored.indptr), shape=stored.shape)
        if fresh.has_canonical_format:  # computed for the new array, because a stored flag may be out of date
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
