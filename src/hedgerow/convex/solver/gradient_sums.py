"""Sums of gradients over private counts, with a sensitivity that includes the rounding of float64 sums.

Proof: docs/proofs/private_minimum.md.

Symbols: L = sup ‖∇ℓ_x(θ)‖₂, N the largest number of rows for which a sum is computed, p the dimension.

At a public θ the computed gradient of each record is some vector of length at most L, whatever its rounding error. One
row therefore moves the exact sum of these vectors by at most L, or 2L if it is replaced. The computed sum is within
N·L·(cells + p + 16)·2^−52 of the exact one, and twice that is added to the billed sensitivity.

If n is private, the sum is clipped to the ball of radius L·(N − n)/SLOPE around the origin. The radius moves by L/SLOPE
per row and is zero from N rows on. For tables of up to about N/SLOPE rows the clipping changes nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array
from hedgerow.convex.bound_loss import Risk
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.convex.solver.private_minimum import ULP
from hedgerow.privacy.budget import Budget

SPARE = 256  # if n is private, N is this many times the estimated number of rows
SLOPE = 100  # if n is private, the ball that holds a sum shrinks by L/SLOPE per row
HIDDEN = 1e-3  # the most that rounding may add to the sensitivity, as a share of L


@final
@dataclass(frozen=True, eq=False, repr=False)
class GradientSums:
    """The sum Σ D(x)·∇ℓ_x(θ) for one loss and set. ``rows`` is n, or a public estimate if n is private."""

    risk: Risk
    over: ConvexSet
    budget: Budget
    rows: float

    @cached_property
    def _lipschitz(self) -> float:
        """L with a margin for the rounding of a gradient."""
        return self.risk.lipschitz(self.over) * (1 + 2.0**-40)

    @property
    def _is_private(self) -> bool:
        return self.budget.neighbours == "add-remove"

    @property
    def _most_rows(self) -> float:
        """N."""
        return self.rows * SPARE if self._is_private else self.rows

    @property
    def _rounded(self) -> float:
        """A bound on the rounding error of a sum, in the ℓ2 norm."""
        return self._most_rows * ULP * (math.prod(self.risk.shape) + self.risk.dimension + 16) * self._lipschitz

    @property
    def are_certain(self) -> bool:
        """True if rounding adds next to nothing and squares of lengths stay within float64. A public fact."""
        return 1e-100 < self._lipschitz < 1e100 and 2 * self._rounded <= HIDDEN * self._lipschitz

    @property
    def sensitivity(self) -> float:
        """The ℓ2 sensitivity of the sum."""
        return self.budget.gradient(self._lipschitz) * taper_factor(self.budget) + 2 * self._rounded

    def at(self, theta: Array, counts: NDArray[np.int64]) -> Array:
        """Return the sum of gradients at θ. Private."""
        with np.errstate(all="ignore"):
            total = np.nan_to_num(self.risk.objective(counts).gradient(theta))
            if not self._is_private:
                return total
            room = self._lipschitz * max(self._most_rows - float(counts.sum()), 0.0) / SLOPE
            return np.asarray(total * min(1.0, room / max(float(np.linalg.norm(total)), 1e-300)))


def taper_factor(budget: Budget) -> float:
    """Return the factor by which clipping to a ball that shrinks as rows are added multiplies a sensitivity.

    It is 1 under replace-one, where n is public and nothing is clipped.
    """
    return 1 + 1 / SLOPE if budget.neighbours == "add-remove" else 1.0
