"""Sums of gradients over private counts, with a sensitivity that includes how float64 adds them.

Proof: docs/proofs/private_minimum.md. Symbols: L = sup ‖∇ℓ_x(θ)‖₂, N the most rows a table may have here, p the dimension.

At a public θ the gradient of each record is some vector of length at most L, whatever float64 made of it, so a row moves the exact
sum of these vectors by at most L, or 2L where it is replaced. The computed sum is within N·L·(cells + p + 16)·2^−52 of it, and
twice that is billed besides. Where n is private the sum is held within L·(N − n)/SLOPE of the origin, which moves by
L/SLOPE a row and is nothing from N rows on; for tables of up to N/SLOPE rows that changes nothing.
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

SPARE = 256  # times as many rows as estimated, where n is private: N
SLOPE = 100
HIDDEN = 1e-3  # of the sensitivity: the most that rounding may add


@final
@dataclass(frozen=True, eq=False, repr=False)
class GradientSums:
    """Σ D(x)·∇ℓ_x(θ) for one loss and set; ``rows`` is n, or about so many where it is private."""

    risk: Risk
    over: ConvexSet
    budget: Budget
    rows: float

    @cached_property
    def _lipschitz(self) -> float:
        return self.risk.lipschitz(self.over) * (1 + 2.0**-40)

    @property
    def _is_private(self) -> bool:
        return self.budget.neighbours == "add-remove"

    @property
    def _most_rows(self) -> float:
        return self.rows * SPARE if self._is_private else self.rows

    @property
    def _rounded(self) -> float:
        return self._most_rows * ULP * (math.prod(self.risk.shape) + self.risk.dimension + 16) * self._lipschitz

    @property
    def are_certain(self) -> bool:
        """Whether rounding adds next to nothing, and squares of lengths stay within float64: public facts."""
        return 1e-100 < self._lipschitz < 1e100 and 2 * self._rounded <= HIDDEN * self._lipschitz

    @property
    def sensitivity(self) -> float:
        """In the ℓ2 norm."""
        return self.budget.gradient(self._lipschitz) * tapered(self.budget) + 2 * self._rounded

    def at(self, theta: Array, counts: NDArray[np.int64]) -> Array:
        """Private."""
        with np.errstate(all="ignore"):
            total = np.nan_to_num(self.risk.objective(counts).gradient(theta))
            if not self._is_private:
                return total
            room = self._lipschitz * max(self._most_rows - float(counts.sum()), 0.0) / SLOPE
            return np.asarray(total * min(1.0, room / max(float(np.linalg.norm(total)), 1e-300)))


def tapered(budget: Budget) -> float:
    """What holding a value within a radius that falls as rows come multiplies its sensitivity by, where n is private."""
    return 1 + 1 / SLOPE if budget.neighbours == "add-remove" else 1.0
