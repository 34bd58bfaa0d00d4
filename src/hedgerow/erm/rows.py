"""Where rows come from: the only code here that reads them, clips them and cuts them to whole units.

Rows are read by fixed rules (`values`) and clipped to the stated bound, never trusted: a row outside it is scaled (ℓ2) or cut
(ℓ∞) to it. Features are then truncated to whole multiples of a public unit, so that sums over rows are exact (`exact_sums`).
All of it happens row by row: what one row holds decides nothing about another.

`Arrays` has them in memory; `spark_rows` on a cluster.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, final

import numpy as np
import scipy.sparse as sp

from hedgerow._types import Array, Matrix
from hedgerow.erm import values
from hedgerow.erm.units import Whose, kept
from hedgerow.errors import InvalidInput

Norm = Literal["l2", "linf"]


class RowSource(Protocol):
    """Rows with one label each. What it refuses is a shape, which is public; never what a row holds."""

    @property
    def count(self) -> int:
        """How many rows there are. Private where neighbours add or remove one."""

    @property
    def features(self) -> int:
        """How many columns there are. Public."""

    @property
    def is_dense(self) -> bool:
        """Whether each feature of each row has a number in memory here. Public."""

    def clipped(self, bound: float, norm: Norm, unit: float) -> Matrix:
        """Rows of norm at most `bound`, in whole units. Private."""

    def labels(self) -> Array:
        """A finite number for each row. Private."""


@final
class Arrays:
    """Rows of an array, a frame or a sparse matrix."""

    def __init__(self, X: Any, y: Any) -> None:
        self._X, self._y = values.matrix(X), values.labels(y)
        if self._y.size != self._X.shape[0]:
            raise InvalidInput("y must have one label for each row of X. Found another number of them. Match them.")

    def of_units(self, unit: Whose, most: int) -> Arrays:
        """At most so many rows of each person."""
        stay = kept(self._X, self._y, unit, most)
        bounded = Arrays.__new__(Arrays)
        bounded._X, bounded._y = self._X[stay], self._y[stay]
        return bounded

    @property
    def count(self) -> int:
        return int(self._X.shape[0])

    @property
    def features(self) -> int:
        return int(self._X.shape[1])

    @property
    def is_dense(self) -> bool:
        return not sp.issparse(self._X)

    def clipped(self, bound: float, norm: Norm, unit: float) -> Matrix:
        return in_whole_units(self._X, bound, norm, unit)

    def labels(self) -> Array:
        return self._y


def in_whole_units(X: Matrix, bound: float, norm: Norm, unit: float) -> Matrix:
    """Rows of norm at most `bound`, in whole units: each by itself."""
    return _truncated(_clipped(X, bound, norm), unit)


def _clipped(X: Matrix, bound: float, norm: Norm) -> Matrix:
    """Rows scaled to ℓ2 norm at most `bound`, or entries cut to it."""
    if norm == "linf":
        if sp.issparse(X):
            return sp.csr_array((np.clip(X.data, -bound, bound), X.indices, X.indptr), shape=X.shape)
        return np.clip(X, -bound, bound)
    # hypot-like scaling, so that huge finite entries cannot overflow to an infinite norm
    if sp.issparse(X):
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        top = abs(X).max(axis=1).toarray().ravel()
        safe = np.where(top > 0, top, 1.0)
        relative = X.data / safe[row]
        lengths = np.sqrt(np.bincount(row, weights=relative * relative, minlength=X.shape[0]))
        return sp.csr_array((relative * _scales(lengths, safe, bound)[row], X.indices, X.indptr), shape=X.shape)
    top = np.abs(X).max(axis=1)
    safe = np.where(top > 0, top, 1.0)
    relative = X / safe[:, None]
    return relative * _scales(np.sqrt(np.einsum("ij,ij->i", relative, relative)), safe, bound)[:, None]


def _scales(lengths: Array, top: Array, bound: float) -> Array:
    """By what to multiply a row divided by its top entry so that it is the row itself, or the row at the bound."""
    cut = bound / np.where(lengths > 0, lengths, 1.0) * (1 - 1e-15)
    return np.minimum(top, cut)


def _truncated(X: Matrix, unit: float) -> Matrix:
    """Features in units, cut toward zero so that no norm grows."""
    if sp.issparse(X):
        whole = sp.csr_array((np.trunc(X.data / unit), X.indices, X.indptr), shape=X.shape, copy=True)
        whole.eliminate_zeros()  # in place: the indices may be the caller's own
        return whole
    return np.trunc(X / unit)
