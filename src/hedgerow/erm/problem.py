"""What every solver of empirical risk minimisation is given: checked rows, the public facts about them, and exact sums.

Papers: Talwar, Thakurta & Zhang "Private empirical risk minimization beyond the worst case" (the problem); Mironov "On
significance of the least significant bits for differential privacy" (why sums are exact).

Symbols: rows (x, y), scores z = ⟨x, θ⟩, loss ℓ(z, y) with slope ℓ' and curvature ℓ''; L a bound on the ℓ2 norm of one
row's gradient ℓ'(z, y)·x; n the public number of rows; p parameters; C the constraint set.

Features, clipped by their source (`rows`), and slopes are truncated to whole multiples of two public units, powers of two, so
small that it does not matter and so large that a sum of n products is a whole number below 2^53: float64 adds it without error
in any order, and a neighbour moves the sum by its own row's gradient and by nothing else.

n is public when neighbours replace a row. When they add or remove one it is not: the caller states `rows`, a public guess
of it, which is all that scales, step sizes and iteration counts ever see; the data enter through sums alone. If the guess was
too small the sums are as exact, in more passes (`exact_sums`), and each coordinate is cut at what 8 times as many rows could add
up to. That contracts every ℓq norm, and no other: a solver that bills a sum in another metric takes it uncut (`cut=False`) and
cuts it there (docs/proofs/cuts_and_projections.md).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Self, get_args

import numpy as np
from numpy.typing import NDArray

from hedgerow import _memory
from hedgerow._checks import number, positive, whole
from hedgerow._types import Array, Matrix
from hedgerow.convex.losses.families import Loss
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.erm.exact_sums import EXACT, exact_sum, row_products
from hedgerow.erm.rows import Norm, RowSource
from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget

_SMALLEST, _LARGEST = 1e-20, 1e20  # of any public scale: products of a few stay far from the ends of float64
_SPARE = 3  # bits kept free where n is a guess: one pass is enough for sums of up to 8 times as many rows


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """Checked and clipped rows with the public facts about them. Built by `prepared`; shows no rows in its repr."""

    X: Matrix  # private: in whole units, up to 2^bits of them
    y: Array  # private
    p: int
    bits: int
    slope_bits: int
    loss: Loss
    over: ConvexSet
    budget: Budget
    n: int  # public: the number of rows, or the stated guess of it
    row_bound: float
    norm: Norm
    label_bound: float
    held_at: float | None = None  # a bound on slopes that is not that of the loss over the set

    def __repr__(self) -> str:
        return f"Problem(n={self.n}, p={self.p}, loss={self.loss!r}, over={self.over!r})"

    @functools.cached_property
    def slope_bound(self) -> float:
        """The largest |ℓ'|; refused where there is none."""
        if self.held_at is not None:
            return self.held_at
        reach = self.over.radius_l1(self.p) if self.norm == "linf" else self.over.radius_l2(self.p)
        return _slope_bound(self.loss, self.row_bound * reach, self.label_bound)

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
    def gradient_change(self) -> float:
        """Δ: how far one neighbour moves the sum of all gradients, in ℓ2."""
        return self.budget.gradient(self.lipschitz)

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
    def gradient(
        self,
        theta: Array,
        keep: NDArray[np.int64] | None = None,
        weights: Array | float = 1.0,
        cut: bool = True,
    ) -> Array:
        """Σ weight·ℓ'(⟨x, θ⟩, y)·x over all rows, or those numbered in `keep`; weights at most 1. Exact, as above. Private.

        Without `cut`, sums of more rows than are allowed for are rounded, to a relative error of `exact_sums.ROUNDED` a coordinate.
        """
        X, y = (self.X, self.y) if keep is None else (self.X[keep], self.y[keep])
        return self.sum_of(self.loss.derivative(row_products(X, theta * self.unit), y) * weights, X, cut)

    def sum_of(self, slopes: Array, X: Matrix, cut: bool = True) -> Array:
        """Σ slope·x over the rows of X, some or all of the table's in any layout. Exact, as above. Private."""
        total = exact_sum(X, self.slopes_in_units(slopes), self.bits, self.slope_bits)
        return self.held_sum(total, int(X.shape[0]), cut)

    @np.errstate(all="ignore")
    def slopes_in_units(self, slopes: Array) -> Array:
        """Towards 0, so that no row counts for more than its slope."""
        top = self._top_slope
        return np.clip(np.trunc(np.nan_to_num(slopes) / self.slope_unit), -top, top)

    def held_sum(self, total: Array, rows: int, cut: bool = True) -> Array:
        """A sum of so many rows' products of units, as a number; of more rows than are allowed for, cut. Private."""
        if cut and rows > self.most_rows:  # moves no two sums apart in an ℓq norm, nor any coordinate of theirs
            edge = self.most_rows * self._top_slope * math.floor(self.row_bound / self.unit)
            total = np.clip(total, -edge, edge)
        return total * (self.unit * self.slope_unit)

    @property
    def _top_slope(self) -> int:
        return math.floor(self.slope_bound / self.slope_unit)

    # What is asked of all rows goes through these, so that rows may be elsewhere (`spark_rows`): a rule is a function of some rows
    # of the problem, as a problem, and computes each by itself.

    @property
    def is_here(self) -> bool:
        """Whether the rows are in `X` and `y`."""
        return True

    @property
    def held_rows(self) -> int:
        """How many rows there are. Private where n is."""
        return int(self.X.shape[0])

    def sums(self, rule: Callable[[Problem], tuple[Matrix, Matrix]], bits: int, more_bits: int) -> Array:
        """Leftᵀ·right, exactly, of the two matrices of whole numbers, of so many bits, that the rule makes of the rows. Private."""
        left, right = rule(self)
        return exact_sum(left, right, bits, more_bits)

    def of_each_row(self, rule: Callable[[Problem], Array]) -> Array:
        """A weight for every row, to be given to `gradient`. Private."""
        return rule(self)

    def with_features(self, kept: NDArray[np.intp]) -> Self:
        """The same rows with these features alone."""
        X = self.X[:, kept]
        rows = (
            np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X
        )  # one after the other, as `row_products` wants
        return dataclasses.replace(self, X=rows, p=int(kept.size))

    def labelled(self, raw: Array) -> Array:
        """Labels as the loss takes them, clipped."""
        return np.clip(self.loss.as_labels(raw), -self.label_bound, self.label_bound)


@np.errstate(all="ignore")
def prepared(
    source: RowSource,
    *,
    loss: Loss,
    over: ConvexSet,
    budget: Budget,
    row_bound: float,
    norm: Norm,
    label_bound: float | None,
    rows: int | None,
) -> Problem:
    """The checked problem. Every refusal is about shapes, parameters and the stated domain, never about a row."""
    bound = require_scale("row_bound", row_bound)
    if norm not in get_args(Norm):
        raise InvalidInput(f"norm must be 'l2' or 'linf'. Found {norm!r}. Say which norm row_bound bounds.")
    n, p = public_rows(source.count, rows, budget), source.features
    _memory.require_libraries()
    size = p * _memory.PARAMETER + (n * p * _memory.ENTRY if source.is_dense else 0)
    _memory.require_bytes(
        f"A fit of {p} parameters to {n} rows", size, "Use fewer features or rows, or a sparse matrix"
    )
    _require_set(over).require(p)
    _require_one_score(loss)
    largest = 1.0 if label_bound is None or loss.labels == "binary" else require_scale("label_bound", label_bound)
    spare = 0 if budget.neighbours == "replace" else _SPARE
    both = EXACT - spare - math.ceil(math.log2(max(n, 2)))
    if both < 16:
        raise InvalidInput(f"The number of rows must be at most 2^{EXACT - 16}. Found about {n:.3g}. Use fewer rows.")
    bits = both // 2  # products of two features add up exactly as well
    if over.is_bounded:
        require_scale("The size of the set", over.radius_l2(p), zero=True)
    require_scale("ridge", loss.ridge, zero=True)
    problem = Problem(
        X=source.clipped(bound, norm, _power_of_two(bound) * 2.0**-bits),
        y=source.labels(),
        p=p,
        bits=bits,
        slope_bits=both - bits,
        loss=loss,
        over=over,
        budget=budget,
        n=n,
        row_bound=bound,
        norm=norm,
        label_bound=largest,
    )
    return dataclasses.replace(problem, y=problem.labelled(problem.y))


def require_here(problem: Problem, solver: str) -> None:
    """Refused where rows are on a cluster: a public fact."""
    if not problem.is_here:
        raise InvalidInput(
            f"X must be in memory for {solver}, which goes back to single rows. Found a frame of Spark. Use auto, whitened_descent, "
            "mirror_descent, frank_wolfe, frank_wolfe_general or lasso, or bring the rows here: frame.toPandas()."
        )


def require_count(name: str, value: int) -> int:
    """A whole number of at least 1, such as a number of iterations."""
    return whole(name, value, "Leave it out.")


def usual_radius(problem: Problem) -> float:
    """‖C‖₂; without a constraint 2.5·√p/‖x‖₂: coefficients of 2.5 on features of the size that row_bound suggests."""
    if problem.over.is_bounded:
        return problem.over.radius_l2(problem.p)
    return 2.5 * math.sqrt(problem.p) / problem.row_l2


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


def public_rows(count: int, rows: int | None, budget: Budget) -> int:
    """n. Where it is private, no row is as good as some."""
    if budget.neighbours == "replace":
        if count == 0:
            raise InvalidInput("X must have a row, for there is none to replace. Found 0. Add rows.")
        if rows is not None:
            raise InvalidInput("rows must be left out when neighbours replace a row. Found a value. Drop it.")
        return count
    if rows is None or isinstance(rows, bool) or not 1 <= number(rows) < math.inf or int(rows) != rows:
        raise InvalidInput(
            "rows must be a public guess of the number of rows when neighbours add or remove one, for their true number "
            f"is private. Found {rows!r}. Give rows=…, or a budget with neighbours='replace'."
        )
    return int(rows)


def _require_set(over: ConvexSet) -> ConvexSet:
    if not isinstance(over, ConvexSet):
        raise InvalidInput(f"over must be a set. Found a {type(over).__name__}. Use one such as L2Ball(1.0).")
    return over


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
