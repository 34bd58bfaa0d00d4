"""What every solver of empirical risk minimisation shares: checked rows, exact sums of gradients, and the result.

Papers: Talwar, Thakurta & Zhang "Private empirical risk minimization beyond the worst case" (the problem); Mironov "On
significance of the least significant bits for differential privacy" (why sums are exact).

Symbols: rows (x, y), scores z = ⟨x, θ⟩, loss ℓ(z, y) with slope ℓ' and curvature ℓ''; L a bound on the ℓ2 norm of one
row's gradient ℓ'(z, y)·x; n the public number of rows; p parameters; C the constraint set.

Rows are clipped to the stated bound, never trusted: a row outside it is scaled (ℓ2) or cut (ℓ∞) to it. Features are then
truncated, and slopes rounded, to whole multiples of two public units, so small that it does not matter and so large that
a sum of n products is a whole number below 2^53: float64 adds it without error in any order, and a neighbour moves the
sum by its own row's gradient and by nothing else.

n is public when neighbours replace a row. When they add or remove one it is not: the caller states `rows`, a public guess
of it, which is all that scales, step sizes and iteration counts ever see; the data enter through sums alone.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from hedgerow import events
from hedgerow.accounting import Accountant, Budget
from hedgerow.convex_set import ConvexSet
from hedgerow.erm.payment import Payment
from hedgerow.errors import InvalidInput
from hedgerow.events import Event
from hedgerow.losses import Loss
from hedgerow.noise import Noise, Seeded

Array = NDArray[np.float64]
Matrix = Any  # a dense float64 table or a scipy CSR array
Norm = Literal["l2", "linf"]

_EXACT = 53  # bits of a float64: sums below 2^53 units are exact
_SMALLEST = 1e-200  # products of units stay far from the ends of float64
_SPARE = 3  # bits kept free where n is a guess: sums stay exact up to 8 times as many rows


@dataclasses.dataclass(frozen=True)
class Result:
    """What a solver releases, and what it paid.

    `cost` is the ε at the budget's δ where a Budget paid for this call alone, and the currency that was charged (ρ, or ε
    if δ = 0) where an Accountant paid. `risk_bound` bounds the expected excess of the average loss over the best in the
    set, from public quantities; None where no theorem applies.
    """

    theta: Array
    events: tuple[Event, ...]
    cost: float
    risk_bound: float | None
    iterations: int
    solver: str


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """Checked and clipped rows with the public facts about them. Built by `prepared`; shows no rows in its repr."""

    X: Matrix  # whole multiples of `unit`
    y: Array
    unit: float
    slope_unit: float
    loss: Loss
    over: ConvexSet
    n: int  # public: the number of rows, or the stated guess of it
    row_bound: float
    norm: Norm
    slope_bound: float
    payment: Payment
    noise: Noise
    progress: bool

    def __repr__(self) -> str:
        return f"Problem(n={self.n}, p={self.p}, loss={self.loss!r}, over={self.over!r})"

    @property
    def budget(self) -> Budget:
        return self.payment.budget

    @property
    def p(self) -> int:
        return int(self.X.shape[1])

    @property
    def most_rows(self) -> int:
        """The most rows for which sums are exact and allowances for rounding hold."""
        return self.n if self.budget.neighbours == "replace" else self.n << _SPARE

    @property
    def row_l2(self) -> float:
        """A bound on ‖x‖₂."""
        return self.row_bound * (math.sqrt(self.p) if self.norm == "linf" else 1.0)

    @property
    def lipschitz(self) -> float:
        """L: a bound on the ℓ2 norm of one row's gradient."""
        return self.slope_bound * self.row_l2

    @property
    def lipschitz_l1(self) -> float:
        """A bound on the largest coordinate of one row's gradient: the Lipschitz constant in the ℓ1 norm."""
        return self.slope_bound * self.row_bound

    @property
    def smoothness(self) -> float:
        """A bound on ℓ''·‖x‖₂²: how fast one row's gradient may change. Infinite for a loss with kinks."""
        return self.loss.smoothness * self.row_l2**2

    def scores(self, theta: Array) -> Array:
        """⟨x, θ⟩ for every row. Private."""
        return row_products(self.X, theta * self.unit)

    def gradient(self, theta: Array, keep: NDArray[np.int64] | None = None, weights: Array | float = 1.0) -> Array:
        """Σ weight·ℓ'(⟨x, θ⟩, y)·x over all rows, or those numbered in `keep`; weights at most 1. Exact, as above. Private."""
        X, y = (self.X, self.y) if keep is None else (self.X[keep], self.y[keep])
        return self.sum_of(self.loss.derivative(row_products(X, theta * self.unit), y) * weights, X)

    def sum_of(self, slopes: Array, X: Matrix) -> Array:
        """Σ slope·x over the rows of X, some or all of the table's in any layout. Exact, as above. Private."""
        top = self.slope_bound / self.slope_unit  # a power of two
        # Towards 0, so that no row counts for more than its slope.
        whole = np.clip(np.trunc(np.nan_to_num(slopes) / self.slope_unit), -top, top)
        return np.asarray(X.T @ whole) * (self.unit * self.slope_unit)

    def gaussian(self, steps: int = 1, sensitivity: float | None = None) -> events.Gaussian:
        """The noise for each of `steps` sums of gradients (or sums of the stated ℓ2 sensitivity), p values each."""
        change = self.budget.gradient(self.lipschitz) if sensitivity is None else sensitivity
        return self.payment.gaussian(change, self.p, steps)


def prepared(
    X: Any,
    y: ArrayLike,
    loss: Loss,
    over: ConvexSet,
    budget: Budget | Accountant,
    *,
    row_bound: float = 1.0,
    norm: Norm = "l2",
    label_bound: float | None = None,
    rows: int | None = None,
    seed: int | None = None,
    noise: Noise | None = None,
    spend: float | None = None,
    progress: bool = False,
) -> Problem:
    """The checked problem. Every refusal is about shapes, parameters and the stated domain, never about a row.

    `label_bound`: targets of a regression are clipped to [−label_bound, label_bound]. `rows`: the public guess of n,
    needed when neighbours add or remove a row. `spend`: how much of an Accountant's currency to use; all that is left
    if not given. `seed` makes the noise repeatable, and so not private.
    """
    bound = events.positive("row_bound", row_bound)
    if norm not in ("l2", "linf"):
        raise InvalidInput(f"norm must be 'l2' or 'linf'. Found {norm!r}. Say which norm row_bound bounds.")
    payment = Payment.of(budget, spend)
    features, targets = _arrays(X, y, payment.budget)
    n = _public_rows(features.shape[0], rows, payment.budget)
    over.require(features.shape[1])
    targets = _labels(loss, targets, label_bound)
    if seed is not None and noise is not None:
        raise InvalidInput("seed and noise must not both be given. Found both. Drop one of them.")
    source = noise if noise is not None else Noise() if seed is None else Seeded(seed)

    spare = 0 if payment.budget.neighbours == "replace" else _SPARE
    bits = _EXACT - spare - math.ceil(math.log2(max(n, 2)))
    if bits < 16:
        raise InvalidInput(f"The number of rows must be at most 2^{_EXACT - 16}. Found about {n:.3g}. Use fewer rows.")
    unit = bound * 2.0 ** -(bits // 2)  # products of two features add up exactly as well
    reach = bound * (over.radius_l1(features.shape[1]) if norm == "linf" else over.radius_l2(features.shape[1]))
    slope_bound = _slope_bound(loss, reach, label_bound)
    if not _SMALLEST <= bound * slope_bound <= 1 / _SMALLEST:
        raise InvalidInput(
            f"row_bound times the slope of the loss must be between {_SMALLEST:g} and {1 / _SMALLEST:g}. "
            f"Found {bound * slope_bound:.3g}. Change the units of X or y."
        )
    return Problem(
        X=_truncated(_clipped(features, bound, norm), unit),
        y=targets,
        unit=unit,
        slope_unit=slope_bound * 2.0 ** -(bits - bits // 2),
        loss=loss,
        over=over,
        n=n,
        row_bound=bound,
        norm=norm,
        slope_bound=slope_bound,
        payment=payment,
        noise=source,
        progress=progress,
    )


def row_products(X: Matrix, vector: Array) -> Array:
    """⟨x, vector⟩ for every row x, each from that row alone, to the last bit.

    A matrix product would compute rows in blocks, and the last bit of one would depend on how many rows come before it: a
    neighbour's row could then move other rows across a kink of the loss.
    """
    return np.asarray(np.vecdot(X, vector) if isinstance(X, np.ndarray) else X @ vector)


def require_count(name: str, value: int) -> int:
    """A whole number of at least 1, such as a number of iterations."""
    if isinstance(value, bool) or int(value) != value or value < 1:
        raise InvalidInput(f"{name} must be a whole number of at least 1. Found {value!r}. Leave it out.")
    return int(value)


def usual_radius(problem: Problem) -> float:
    """‖C‖₂; without a constraint 2.5·√p/‖x‖₂: coefficients of 2.5 on features of the size that row_bound suggests."""
    if problem.over.is_bounded:
        return problem.over.radius_l2(problem.p)
    return 2.5 * math.sqrt(problem.p) / problem.row_l2


def _arrays(X: Any, y: ArrayLike, budget: Budget) -> tuple[Matrix, NDArray[Any]]:
    """Two-dimensional features and one label a row, numeric and finite. Where n is private, no row is as good as some."""
    features: Any
    if sp.issparse(X):
        features = sp.csr_array(X)
        if not features.has_canonical_format:  # entries stored in parts would be clipped part by part, and add up
            features = features.copy()
            features.sum_duplicates()
    else:
        features = np.asarray(X)
    targets = np.asarray(y)
    for name, array in (("X", features), ("y", targets)):
        if array.dtype.kind not in "biuf":
            raise InvalidInput(f"{name} must be numeric. Found dtype {array.dtype}. Encode it as numbers first.")
    with np.errstate(over="ignore"):  # what float64 cannot hold is infinite, and refused as such
        features, targets = features.astype(np.float64), targets.astype(np.float64)
    for name, values in (("X", features.data if sp.issparse(features) else features), ("y", targets)):
        if not np.isfinite(values).all():
            raise InvalidInput(f"{name} must be finite. Found NaN or infinity. Fill in or drop them by a public rule.")
    if features.ndim != 2 or features.shape[1] == 0:
        raise InvalidInput(f"X must be a table of rows and columns. Found {features.ndim} dimensions. Reshape it.")
    if targets.ndim != 1 or targets.size != features.shape[0]:
        raise InvalidInput("y must have one label for each row of X. Found another number of them. Match them.")
    if targets.size == 0 and budget.neighbours == "replace":
        raise InvalidInput("X must have a row, for there is none to replace. Found 0. Add rows.")
    return features, targets


def _public_rows(count: int, rows: int | None, budget: Budget) -> int:
    if budget.neighbours == "replace":
        if rows is not None:
            raise InvalidInput("rows must be left out when neighbours replace a row. Found a value. Drop it.")
        return count
    if rows is None or isinstance(rows, bool) or int(rows) != rows or rows < 1:
        raise InvalidInput(
            "rows must be a public guess of the number of rows when neighbours add or remove one, for their true number "
            f"is private. Found {rows!r}. Give rows=…, or a budget with neighbours='replace'."
        )
    return int(rows)


def _labels(loss: Loss, y: NDArray[Any], label_bound: float | None) -> Array:
    if not isinstance(loss, Loss):
        raise InvalidInput(f"loss must be a hedgerow loss. Found a {type(loss).__name__}. Use one of hedgerow.losses.")
    if loss.labels == "class":
        raise InvalidInput(
            f"loss must have one score a row. Found {type(loss).__name__}, which has one a class. "
            "Fit one Logistic a class."
        )
    labels = loss.check_labels(y)
    if loss.labels == "binary":
        return labels
    bound = events.positive("label_bound", 1.0 if label_bound is None else label_bound)
    return np.clip(labels, -bound, bound)


def _slope_bound(loss: Loss, reach: float, label_bound: float | None) -> float:
    bound = loss.lipschitz(reach, 1.0 if label_bound is None else label_bound)
    if not math.isfinite(bound):
        raise InvalidInput(
            f"The slope of the loss must be bounded over the set. Found {type(loss).__name__} over an unbounded set. "
            "Give a bounded set such as L2Ball(1.0), or a Lipschitz loss such as Huber or Logistic."
        )
    return bound


def _clipped(X: Matrix, bound: float, norm: Norm) -> Matrix:
    """Rows scaled to ℓ2 norm at most `bound`, or entries cut to it."""
    if norm == "linf":
        if sp.issparse(X):
            return sp.csr_array((np.clip(X.data, -bound, bound), X.indices, X.indptr), shape=X.shape)
        return np.clip(X, -bound, bound)
    # hypot-like scaling, so that huge finite entries cannot overflow to an infinite norm
    top = abs(X).max(axis=1).toarray().ravel() if sp.issparse(X) else np.abs(X).max(axis=1)
    safe = np.where(top > 0, top, 1.0)
    if sp.issparse(X):
        relative = sp.csr_array(sp.diags_array(1 / safe) @ X)
        lengths = np.sqrt(np.asarray(relative.multiply(relative).sum(axis=1)).ravel())
        return sp.csr_array(sp.diags_array(_scales(lengths, safe, bound)) @ relative)
    relative = X / safe[:, None]
    return relative * _scales(np.sqrt(np.einsum("ij,ij->i", relative, relative)), safe, bound)[:, None]


def _scales(lengths: Array, top: Array, bound: float) -> Array:
    """By what to multiply a row divided by its top entry so that it is the row itself, or the row at the bound."""
    cut = bound / np.where(lengths > 0, lengths, 1.0) * (1 - 1e-15)
    return np.minimum(top, cut)


def _truncated(X: Matrix, unit: float) -> Matrix:
    """Features in units, cut toward zero so that no norm grows."""
    if sp.issparse(X):
        whole = sp.csr_array((np.trunc(X.data / unit), X.indices, X.indptr), shape=X.shape)
        whole.eliminate_zeros()
        return whole
    return np.trunc(X / unit)
