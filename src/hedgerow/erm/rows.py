"""Sources of rows: the only code of this package that reads rows, clips them and truncates them to whole units.

Rows are read by fixed rules (``values``) and clipped to the stated bound, never trusted. A row outside the bound is
scaled to it (ℓ2), or its entries are cut to it (ℓ∞). Features are then truncated to whole multiples of a public unit,
so that sums over rows are exact (``exact_sums``). All of this happens row by row: the values of one row have no
influence on another.

``Arrays`` has the rows in memory, ``spark_rows`` on a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, final

import numpy as np
import scipy.sparse as sp

from hedgerow._types import Array, Matrix
from hedgerow.erm import values
from hedgerow.erm.units import Whose, kept_rows
from hedgerow.errors import InvalidInput

Norm = Literal["l2", "linf"]


class RowSource(Protocol):
    """Rows with one label each. A source refuses shapes, which are public, and never the values of a row."""

    @property
    def count(self) -> int:
        """The number of rows. Private if neighbours add or remove a row."""

    @property
    def features(self) -> int:
        """The number of columns. Public."""

    @property
    def is_dense(self) -> bool:
        """True if each feature of each row is a number in this process' memory. Public."""

    def clip_rows(self, bound: float, norm: Norm, unit: float) -> Matrix:
        """Return rows of norm at most ``bound``, in whole units. Private."""

    def labels(self) -> Array:
        """Return a finite number for each row. Private."""


@final
@dataclass(frozen=True)
class NoRows:
    """A source whose sizes are known, and whose rows are not. Solvers can plan for it, and none can run on it."""

    count: int
    features: int
    is_dense: ClassVar[bool] = False

    def clip_rows(self, bound: float, norm: Norm, unit: float) -> Matrix:
        """Return no rows."""
        return np.zeros((0, self.features))

    def labels(self) -> Array:
        """Return no labels."""
        return np.zeros(0)


@final
class Arrays:
    """The rows of an array, a frame or a sparse matrix."""

    def __init__(self, X: Any, y: Any) -> None:
        self._X, self._y = values.matrix(X), values.labels(y)
        if self._y.size != self._X.shape[0]:
            raise InvalidInput("y must have one label for each row of X. Found a different number. Match the lengths.")

    def of_units(self, unit: Whose, most: int) -> Arrays:
        """Keep at most ``most`` rows of each person."""
        stay = kept_rows(self._X, self._y, unit, most)
        bounded = Arrays.__new__(Arrays)
        bounded._X, bounded._y = self._X[stay], self._y[stay]
        return bounded

    @property
    def count(self) -> int:
        """The number of rows."""
        return int(self._X.shape[0])

    @property
    def features(self) -> int:
        """The number of columns."""
        return int(self._X.shape[1])

    @property
    def is_dense(self) -> bool:
        """True unless the matrix is sparse."""
        return not sp.issparse(self._X)

    def clip_rows(self, bound: float, norm: Norm, unit: float) -> Matrix:
        """Return rows of norm at most ``bound``, in whole units."""
        return in_whole_units(self._X, bound, norm, unit)

    def labels(self) -> Array:
        """Return the label of each row."""
        return self._y


def in_whole_units(X: Matrix, bound: float, norm: Norm, unit: float) -> Matrix:
    """Return rows of norm at most ``bound``, in whole units, each computed by itself."""
    return _truncate(_clip_rows(X, bound, norm), unit)


def _clip_rows(X: Matrix, bound: float, norm: Norm) -> Matrix:
    """Scale rows to ℓ2 norm at most ``bound``, or cut their entries to it."""
    if norm == "linf":
        if sp.issparse(X):
            return sp.csr_array((np.clip(X.data, -bound, bound), X.indices, X.indptr), shape=X.shape)
        return np.clip(X, -bound, bound)
    # divide by the largest entry first, so that the norm of huge finite entries cannot overflow
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
    """Return the factors by which to multiply rows that were divided by their top entries.

    The result is the row itself, or the row scaled to the bound if it is longer.
    """
    cut = bound / np.where(lengths > 0, lengths, 1.0) * (1 - 1e-15)
    return np.minimum(top, cut)


def _truncate(X: Matrix, unit: float) -> Matrix:
    """Return features in units, truncated toward zero so that no norm grows."""
    if sp.issparse(X):
        whole = sp.csr_array((np.trunc(X.data / unit), X.indices, X.indptr), shape=X.shape, copy=True)
        whole.eliminate_zeros()  # works in place, hence the copy: the indices may be the caller's own
        return whole
    return np.trunc(X / unit)
