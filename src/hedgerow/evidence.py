"""All released tables as one set of independent estimates, and least-squares estimates of any table they cover.

Darroch & Speed, "Additive and multiplicative models and interactions" (1983); Xiao et al., "An optimal and scalable
matrix mechanism for noisy marginals" (2023), whose residual basis this is.

    z_s      the centred table on attributes s: what the marginal on s says beyond all smaller ones
    p_s      its precision, 1/variance of a cell before centring

A noisy marginal on c with independent cells of variance v splits into independent residuals on every s ⊆ c, each of
variance v·cells(c)/cells(s) a cell. Residuals of different measurements are combined by precision: exact generalised
least squares for any number of overlapping marginals, in closed form, and consistent by construction.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from hedgerow.measurements import Measurement
from hedgerow.universe import Universe

Array = NDArray[np.float64]
Names = tuple[str, ...]


def subsets(names: Names, least: int = 0) -> list[Names]:
    """All subsets of at least so many attributes, in order."""
    return [s for k in range(least, len(names) + 1) for s in itertools.combinations(names, k)]


class Evidence:
    """What has been measured so far, as residuals. Public."""

    def __init__(self, universe: Universe) -> None:
        self._universe = universe
        self._residuals: dict[Names, Array] = {}
        self._precisions: dict[Names, float] = {}

    def add(self, measurement: Measurement) -> None:
        names, cells = measurement.attributes, self._universe.cells
        for s in subsets(names):
            residual = measurement.onto(s)
            for axis in range(len(s)):
                residual = residual - residual.mean(axis=axis, keepdims=True)
            precision = cells(s) / (measurement.variance * cells(names))
            known = self._precisions.get(s, 0.0)
            if known:
                residual = (known * self._residuals[s] + precision * residual) / (known + precision)
            self._residuals[s], self._precisions[s] = residual, known + precision

    def __contains__(self, names: Names) -> bool:
        """Whether the table on these attributes can be estimated without a model."""
        return names in self._precisions

    @property
    def total(self) -> tuple[float, float]:
        """The estimate of n and its variance."""
        return float(self._residuals[()]), 1 / self._precisions[()]

    def estimate(self, names: Names) -> tuple[Array, float]:
        """The least-squares estimate of the counts on ``names``, and the variance of a cell."""
        universe = self._universe
        counts, variance = np.zeros(universe.sizes(names)), 0.0
        for s in subsets(names):
            spread = universe.cells(names) / universe.cells(s)
            shape = [universe[n].size if n in s else 1 for n in names]
            counts += self._residuals[s].reshape(shape) / spread
            freedom = math.prod(1 - 1 / size for size in universe.sizes(s))
            variance += freedom / (self._precisions[s] * spread**2)
        return counts, variance
