"""The input of every solver: checked rows, the public facts about them, and exact sums.

Papers: Talwar, Thakurta & Zhang "Private empirical risk minimization beyond the worst case" (the problem); Mironov "On
significance of the least significant bits for differential privacy" (the reason for exact sums).

Symbols: rows (x, y), scores z = ⟨x, θ⟩, loss ℓ(z, y) with slope ℓ' and curvature ℓ''; L a bound on the ℓ2 norm of one
row's gradient ℓ'(z, y)·x; n the public number of rows; p parameters; C the constraint set.

Features, clipped by their source (``rows``), and slopes are truncated to whole multiples of two public units, which are
powers of two. The units are so small that the truncation does not matter, and so large that a sum of n products is a
whole number below 2^53. Float64 adds such numbers without error in any order, so a neighbour moves the sum by its own
row's gradient and by nothing else.

n is public if neighbours replace a row. If they add or remove one, n is private, and the caller states ``rows``, a
public guess of it. Scales, step sizes and iteration counts depend on the guess alone; the data enter only through sums.
If the guess was too small, the sums remain exact, in more passes (``exact_sums``), and each coordinate is cut at the
largest sum of 8 times as many rows. This cut does not expand any ℓq norm, but it may expand other norms. A solver that
bills a sum in another metric takes the sum uncut (``cut=False``) and cuts it in that metric
(docs/proofs/cuts_and_projections.md).
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
from hedgerow.erm.rows import Norm, NoRows, RowSource
from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget

_SMALLEST, _LARGEST = 1e-20, 1e20  # limits of any public scale, so that products of a few scales stay within float64
_SPARE = 3  # bits kept free if n is a guess: one pass then suffices for sums of up to 8 times as many rows


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """Checked and clipped rows with the public facts about them. Built by ``prepare_problem``.

    Its repr shows no rows.
    """

    X: Matrix  # private: whole multiples of ``unit``, up to 2^bits
    y: Array  # private
    p: int
    bits: int  # bits of a feature
    slope_bits: int  # bits of a slope
    loss: Loss
    over: ConvexSet
    budget: Budget
    n: int  # public: the number of rows, or the caller's guess of it
    row_bound: float
    norm: Norm
    label_bound: float
    held_at: float | None = None  # a bound on slopes that replaces that of the loss over the set

    def __repr__(self) -> str:
        return f"Problem(n={self.n}, p={self.p}, loss={self.loss!r}, over={self.over!r})"

    @functools.cached_property
    def slope_bound(self) -> float:
        """The largest |ℓ'|. Refused if it is infinite."""
        if self.held_at is not None:
            return self.held_at
        reach = self.over.radius_l1(self.p) if self.norm == "linf" else self.over.radius_l2(self.p)
        return _slope_bound(self.loss, self.row_bound * reach, self.label_bound)

    @property
    def unit(self) -> float:
        """The unit of features, a power of two."""
        return _power_of_two(self.row_bound) * 2.0**-self.bits

    @property
    def slope_unit(self) -> float:
        """The unit of slopes, a power of two, so that scaling a sum back is exact as well."""
        return _power_of_two(self.slope_bound) * 2.0**-self.slope_bits

    @property
    def most_rows(self) -> int:
        """The number of rows for which sums are kept whole. Larger sums are cut."""
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
        """Δ: the ℓ2 sensitivity of the sum of all gradients."""
        return self.budget.gradient(self.lipschitz)

    @property
    def lipschitz_l1(self) -> float:
        """A bound on the largest coordinate of one row's gradient: the Lipschitz constant in the ℓ1 norm."""
        return self.slope_bound * self.row_bound

    @property
    def smoothness(self) -> float:
        """A bound on ℓ''·‖x‖₂², the rate at which one row's gradient changes. Infinite for a loss with kinks."""
        return self.loss.smoothness * self.row_l2**2

    def scores(self, theta: Array) -> Array:
        """Return ⟨x, θ⟩ for every row. Private."""
        return row_products(self.X, theta * self.unit)

    @np.errstate(all="ignore")
    def gradient(
        self,
        theta: Array,
        keep: NDArray[np.int64] | None = None,
        weights: Array | float = 1.0,
        cut: bool = True,
    ) -> Array:
        """Return Σ weight·ℓ'(⟨x, θ⟩, y)·x over all rows, or over those numbered in ``keep``. Private.

        Weights are at most 1. The sum is exact, as described in the module. Without ``cut``, a sum of more than
        ``most_rows`` rows is rounded, with a relative error of ``exact_sums.ROUNDED`` per coordinate.
        """
        X, y = (self.X, self.y) if keep is None else (self.X[keep], self.y[keep])
        return self.sum_of(self.loss.derivative(row_products(X, theta * self.unit), y) * weights, X, cut)

    def sum_of(self, slopes: Array, X: Matrix, cut: bool = True) -> Array:
        """Return Σ slope·x over the rows of X, which are some or all rows of the table in any layout. Exact.

        Private.
        """
        total = exact_sum(X, self.slopes_in_units(slopes), self.bits, self.slope_bits)
        return self.capped_sum(total, int(X.shape[0]), cut)

    @np.errstate(all="ignore")
    def slopes_in_units(self, slopes: Array) -> Array:
        """Return slopes in whole units, truncated towards 0, so that no row counts for more than its slope."""
        top = self._top_slope
        return np.clip(np.trunc(np.nan_to_num(slopes) / self.slope_unit), -top, top)

    def capped_sum(self, total: Array, rows: int, cut: bool = True) -> Array:
        """Return a sum of products of units as a number, cut if it has more than ``most_rows`` rows. Private."""
        if cut and rows > self.most_rows:  # the cut expands neither an ℓq norm nor the distance in any coordinate
            edge = self.most_rows * self._top_slope * math.floor(self.row_bound / self.unit)
            total = np.clip(total, -edge, edge)
        return total * (self.unit * self.slope_unit)

    @property
    def _top_slope(self) -> int:
        """The largest slope, in units."""
        return math.floor(self.slope_bound / self.slope_unit)

    # Every pass over all rows goes through the following members, so that the rows may be elsewhere (`spark_rows`). A
    # rule is a function of a problem that holds some of the rows, and it computes each row by itself.

    @property
    def is_here(self) -> bool:
        """True if the rows are in ``X`` and ``y``."""
        return True

    @property
    def held_rows(self) -> int:
        """The true number of rows. Private if n is."""
        return int(self.X.shape[0])

    def sums(self, rule: Callable[[Problem], tuple[Matrix, Matrix]], bits: int, more_bits: int) -> Array:
        """Return leftᵀ·right exactly, for the two matrices of whole numbers that the rule makes of the rows. Private.

        ``bits`` and ``more_bits`` bound the sizes of their entries.
        """
        left, right = rule(self)
        return exact_sum(left, right, bits, more_bits)

    def of_each_row(self, rule: Callable[[Problem], Array]) -> Array:
        """Return a weight for every row, to be passed to ``gradient``. Private."""
        return rule(self)

    def with_features(self, kept: NDArray[np.intp]) -> Self:
        """Return the same rows with these features only."""
        X = self.X[:, kept]
        # `row_products` needs contiguous rows
        rows = np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X
        return dataclasses.replace(self, X=rows, p=int(kept.size))

    def prepare_labels(self, raw: Array) -> Array:
        """Return labels in the form that the loss takes, clipped."""
        return np.clip(self.loss.as_labels(raw), -self.label_bound, self.label_bound)


@np.errstate(all="ignore")
def prepare_problem(
    source: RowSource,
    *,
    loss: Loss,
    over: ConvexSet,
    budget: Budget,
    row_bound: float,
    norm: Norm,
    label_bound: float | None,
    expected_rows: int | None,
) -> Problem:
    """Check the input and return the problem.

    Refusals are about shapes, parameters and the stated domain, never about a row.
    """
    bound = require_scale("row_bound", row_bound)
    if norm not in get_args(Norm):
        raise InvalidInput(f"norm must be 'l2' or 'linf'. Found {norm!r}. Say which norm row_bound bounds.")
    n, p = public_rows(source.count, expected_rows, budget), source.features
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
    bits = both // 2  # so that sums of products of two features are exact as well
    if over.is_bounded:
        require_scale("The size of the set", over.radius_l2(p), zero=True)
    require_scale("ridge", loss.ridge, zero=True)
    problem = Problem(
        X=source.clip_rows(bound, norm, _power_of_two(bound) * 2.0**-bits),
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
    return dataclasses.replace(problem, y=problem.prepare_labels(problem.y))


def describe_problem(
    rows: int, features: int, *, loss: Loss, over: ConvexSet, budget: Budget, row_bound: float, label_bound: float
) -> Problem:
    """Return the problem of a table that was not read: public facts without rows, from which solvers can plan."""
    return prepare_problem(
        NoRows(rows, features), loss=loss, over=over, budget=budget, row_bound=row_bound, norm="l2",
        label_bound=label_bound, expected_rows=None if budget.neighbours == "replace" else rows,
    )  # fmt: skip


def require_here(problem: Problem, solver: str) -> None:
    """Refuse rows on a cluster for a solver that needs them in memory. The place of the rows is public."""
    if not problem.is_here:
        raise InvalidInput(
            f"X must be in memory for {solver}, which reads single rows repeatedly. Found a Spark frame. Use auto, "
            "whitened_descent, mirror_descent, frank_wolfe, frank_wolfe_general or lasso, or load the rows into "
            "memory with frame.toPandas()."
        )


def require_count(name: str, value: int) -> int:
    """Return a whole number of at least 1, such as a number of iterations. Refuse anything else."""
    return whole(name, value, "Leave it out.")


def require_steps(value: int) -> int:
    """Return a number of steps. Refuse anything else, and more steps than there is memory to plan."""
    steps = require_count("iterations", value)
    _memory.require("The number of steps", steps, _memory.STEP, "Take fewer steps", "steps")
    return steps


def typical_radius(problem: Problem) -> float:
    """Return ‖C‖₂, or without a constraint 2.5·√p/‖x‖₂.

    The latter means coefficients of 2.5 on features of the size that row_bound suggests.
    """
    if problem.over.is_bounded:
        return problem.over.radius_l2(problem.p)
    return 2.5 * math.sqrt(problem.p) / problem.row_l2


def require_scale(name: str, value: float, zero: bool = False) -> float:
    """Return a positive number that is far from the limits of float64, or 0 if ``zero`` allows it.

    Refuse anything else.
    """
    if zero and value == 0:
        return 0.0
    size = positive(name, value)
    if not _SMALLEST <= size <= _LARGEST:
        raise InvalidInput(
            f"{name} must be between {_SMALLEST:g} and {_LARGEST:g}. Found {size:.3g}. Change the units of X or y."
        )
    return size


def _power_of_two(bound: float) -> float:
    """Return the least power of two that is at least ``bound``."""
    mantissa, exponent = math.frexp(bound)
    return math.ldexp(1.0, exponent - (mantissa == 0.5))


def public_rows(count: int, expected_rows: int | None, budget: Budget) -> int:
    """Return n: the number of rows, or the stated guess if the number is private.

    Then a table without rows is accepted, too.
    """
    if budget.neighbours == "replace":
        if count == 0:
            raise InvalidInput("X must have at least one row when neighbours replace a row. Found 0. Add rows.")
        if expected_rows is not None:
            raise InvalidInput("expected_rows must be left out when neighbours replace a row. Found a value. Drop it.")
        return count
    if (
        expected_rows is None
        or isinstance(expected_rows, bool)
        or not 1 <= number(expected_rows) < math.inf
        or int(expected_rows) != expected_rows
    ):
        raise InvalidInput(
            "expected_rows must be a public guess of the number of rows when neighbours add or remove one, because "
            f"the true number is private. Found {expected_rows!r}. Give expected_rows=…, or a budget with "
            "neighbours='replace'."
        )
    return int(expected_rows)


def _require_set(over: ConvexSet) -> ConvexSet:
    """Refuse anything but a constraint set."""
    if not isinstance(over, ConvexSet):
        raise InvalidInput(f"over must be a set. Found {type(over).__name__}. Use one such as L2Ball(1.0).")
    return over


def _require_one_score(loss: Loss) -> None:
    """Refuse a loss that is not the package's own, or that has a score per class."""
    if not isinstance(loss, Loss):
        raise InvalidInput(f"loss must be a hedgerow loss. Found {type(loss).__name__}. Use one of hedgerow.losses.")
    if loss.labels == "class":
        raise InvalidInput(
            f"loss must have one score per row. Found {type(loss).__name__}, which has one per class. "
            "Fit one Logistic per class."
        )


def _slope_bound(loss: Loss, reach: float, label_bound: float) -> float:
    """Return the largest slope of the loss for scores within ``reach``. Refuse an unbounded one."""
    bound = loss.lipschitz(reach, label_bound)
    if not math.isfinite(bound):
        raise InvalidInput(
            f"The slope of the loss must be bounded over the set. Found {type(loss).__name__} over an unbounded set. "
            "Give a bounded set such as L2Ball(1.0), or a Lipschitz loss such as Huber or Logistic."
        )
    return require_scale("The slope of the loss", bound)
