"""What every solver of empirical risk minimisation shares: checked rows, exact sums of gradients, and the result.

Papers: Talwar, Thakurta & Zhang "Private empirical risk minimization beyond the worst case" (the problem); Mironov "On
significance of the least significant bits for differential privacy" (why sums are exact).

Symbols: rows (x, y), scores z = ⟨x, θ⟩, loss ℓ(z, y) with slope ℓ' and curvature ℓ''; L a bound on the ℓ2 norm of one
row's gradient ℓ'(z, y)·x; n the public number of rows; p parameters; C the constraint set.

Rows are read by fixed rules (`rows`) and clipped to the stated bound, never trusted: a row outside it is scaled (ℓ2) or cut
(ℓ∞) to it. Features and slopes are then truncated to whole multiples of two public units, powers of two, so small that it
does not matter and so large that a sum of n products is a whole number below 2^53: float64 adds it without error in any
order, and a neighbour moves the sum by its own row's gradient and by nothing else.

n is public when neighbours replace a row. When they add or remove one it is not: the caller states `rows`, a public guess
of it, which is all that scales, step sizes and iteration counts ever see; the data enter through sums alone. If the guess was
too small the sums are as exact, in more passes (`sums`), and cut at what 8 times as many rows could add up to.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from hedgerow._checks import positive
from hedgerow._types import Array, Matrix
from hedgerow.convex.losses.families import Loss
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.erm import values as reading
from hedgerow.erm.exact_sums import EXACT, exact_sum, row_products
from hedgerow.errors import InvalidInput
from hedgerow.privacy import events
from hedgerow.privacy.allowance import Payment
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Event
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise, Seeded

Norm = Literal["l2", "linf"]

_SMALLEST, _LARGEST = 1e-20, 1e20  # of any public scale: products of a few stay far from the ends of float64
_SPARE = 3  # bits kept free where n is a guess: one pass is enough for sums of up to 8 times as many rows


@dataclasses.dataclass(frozen=True)
class Result:
    """What a solver releases, and what it paid.

    `cost` is the ε at the budget's δ where a Budget paid for this call alone, and the currency that was charged (ρ, or ε
    if δ = 0) where an Ledger paid. `risk_bound` bounds the expected excess of the average loss over the best in the
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

    X: Matrix  # in whole units, up to 2^bits of them
    y: Array
    bits: int
    slope_bits: int
    loss: Loss
    over: ConvexSet
    n: int  # public: the number of rows, or the stated guess of it
    row_bound: float
    norm: Norm
    slope_bound: float
    label_bound: float
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
    def unit(self) -> float:
        """Of features, a power of two."""
        return _power_of_two(self.row_bound) * 2.0**-self.bits

    @property
    def slope_unit(self) -> float:
        """Of slopes, a power of two: scaling a sum back is exact as well."""
        return _power_of_two(self.slope_bound) * 2.0**-self.slope_bits

    @property
    def most_rows(self) -> int:
        """Sums are cut at what so many rows could add up to."""
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

    @np.errstate(all="ignore")
    def gradient(self, theta: Array, keep: NDArray[np.int64] | None = None, weights: Array | float = 1.0) -> Array:
        """Σ weight·ℓ'(⟨x, θ⟩, y)·x over all rows, or those numbered in `keep`; weights at most 1. Exact, as above. Private."""
        X, y = (self.X, self.y) if keep is None else (self.X[keep], self.y[keep])
        return self.sum_of(self.loss.derivative(row_products(X, theta * self.unit), y) * weights, X)

    @np.errstate(all="ignore")
    def sum_of(self, slopes: Array, X: Matrix) -> Array:
        """Σ slope·x over the rows of X, some or all of the table's in any layout. Exact, as above. Private."""
        top = math.floor(self.slope_bound / self.slope_unit)
        # Towards 0, so that no row counts for more than its slope.
        whole = np.clip(np.trunc(np.nan_to_num(slopes) / self.slope_unit), -top, top)
        total = exact_sum(X, whole, self.bits, self.slope_bits)
        if X.shape[0] > self.most_rows:  # cutting each coordinate moves no two sums apart
            edge = self.most_rows * top * math.floor(self.row_bound / self.unit)
            total = np.clip(total, -edge, edge)
        return total * (self.unit * self.slope_unit)

    def gaussian(self, steps: int = 1, sensitivity: float | None = None) -> events.Gaussian:
        """The noise for each of `steps` sums of gradients (or sums of the stated ℓ2 sensitivity), p values each."""
        change = self.budget.gradient(self.lipschitz) if sensitivity is None else sensitivity
        return self.payment.gaussian(change, self.p, steps)


@np.errstate(all="ignore")
def prepared(
    X: Any,
    y: ArrayLike,
    loss: Loss,
    over: ConvexSet,
    budget: Budget | Ledger,
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
    needed when neighbours add or remove a row. `spend`: how much of an Ledger's currency to use; all that is left
    if not given. `seed` makes the noise repeatable, and so not private.
    """
    bound = require_scale("row_bound", row_bound)
    if norm not in ("l2", "linf"):
        raise InvalidInput(f"norm must be 'l2' or 'linf'. Found {norm!r}. Say which norm row_bound bounds.")
    payment = Payment.of(budget, spend)
    features, targets = _arrays(X, y, payment.budget)
    n, p = _public_rows(features.shape[0], rows, payment.budget), features.shape[1]
    over.require(p)
    _require_one_score(loss)
    largest = 1.0 if label_bound is None or loss.labels == "binary" else require_scale("label_bound", label_bound)
    targets = np.clip(loss.as_labels(targets), -largest, largest)
    if seed is not None and noise is not None:
        raise InvalidInput("seed and noise must not both be given. Found both. Drop one of them.")
    source = noise if noise is not None else Noise() if seed is None else Seeded(seed)

    spare = 0 if payment.budget.neighbours == "replace" else _SPARE
    both = EXACT - spare - math.ceil(math.log2(max(n, 2)))
    if both < 16:
        raise InvalidInput(f"The number of rows must be at most 2^{EXACT - 16}. Found about {n:.3g}. Use fewer rows.")
    bits = both // 2  # products of two features add up exactly as well
    if over.is_bounded:
        require_scale("The size of the set", over.radius_l2(p), zero=True)
    require_scale("ridge", loss.ridge, zero=True)
    reach = bound * (over.radius_l1(p) if norm == "linf" else over.radius_l2(p))
    slope_bound = _slope_bound(loss, reach, largest)
    return Problem(
        X=_truncated(_clipped(features, bound, norm), _power_of_two(bound) * 2.0**-bits),
        y=targets,
        bits=bits,
        slope_bits=both - bits,
        loss=loss,
        over=over,
        n=n,
        row_bound=bound,
        norm=norm,
        slope_bound=slope_bound,
        label_bound=largest,
        payment=payment,
        noise=source,
        progress=progress,
    )


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


def _arrays(X: Any, y: ArrayLike, budget: Budget) -> tuple[Matrix, Array]:
    """Features and one label a row, as numbers. Where n is private, no row is as good as some."""
    features, targets = reading.matrix(X), reading.labels(y)
    if targets.size != features.shape[0]:
        raise InvalidInput("y must have one label for each row of X. Found another number of them. Match them.")
    if targets.size == 0 and budget.neighbours == "replace":
        raise InvalidInput("X must have a row, for there is none to replace. Found 0. Add rows.")
    return features, targets


def require_scale(name: str, value: float, zero: bool = False) -> float:
    """A positive number that is far from the ends of float64, or 0 where that makes sense."""
    if zero and value == 0:
        return 0.0
    size = positive(name, value)
    if not _SMALLEST <= size <= _LARGEST:
        raise InvalidInput(
            f"{name} must be between {_SMALLEST:g} and {_LARGEST:g}. Found {size:.3g}. Change the units of X or y."
        )
    return size


def _power_of_two(bound: float) -> float:
    """The least that is at least `bound`."""
    mantissa, exponent = math.frexp(bound)
    return math.ldexp(1.0, exponent - (mantissa == 0.5))


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


def _require_one_score(loss: Loss) -> None:
    if not isinstance(loss, Loss):
        raise InvalidInput(f"loss must be a hedgerow loss. Found a {type(loss).__name__}. Use one of hedgerow.losses.")
    if loss.labels == "class":
        raise InvalidInput(
            f"loss must have one score a row. Found {type(loss).__name__}, which has one a class. "
            "Fit one Logistic a class."
        )


def _slope_bound(loss: Loss, reach: float, label_bound: float) -> float:
    bound = loss.lipschitz(reach, label_bound)
    if not math.isfinite(bound):
        raise InvalidInput(
            f"The slope of the loss must be bounded over the set. Found {type(loss).__name__} over an unbounded set. "
            "Give a bounded set such as L2Ball(1.0), or a Lipschitz loss such as Huber or Logistic."
        )
    return require_scale("The slope of the loss", bound)


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
