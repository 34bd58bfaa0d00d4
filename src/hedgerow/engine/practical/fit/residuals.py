"""Combine all released tables into independent estimates, and estimate any table they cover by least squares.

Papers: Darroch & Speed, "Additive and multiplicative models and interactions" (1983); Xiao et al., "An optimal and
scalable matrix mechanism for noisy marginals" (2023), whose residual basis this is.

    z_s      the centred table on attributes s: what the marginal on s says beyond all smaller marginals
    p_s      its precision, 1/variance of a cell before centring

A noisy marginal on c with independent cells of variance v splits into independent residuals on every s ⊆ c, each with
variance v·cells(c)/cells(s) per cell. Residuals of different measurements are combined by precision. This is exact
generalised least squares for any number of overlapping marginals, in closed form, and consistent by construction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array, Names
from hedgerow.data.source import MOST_ROWS
from hedgerow.engine.practical.measurement import Contrasts, Measurement, along
from hedgerow.errors import InvalidInput
from hedgerow.query.linear import Linear, Products
from hedgerow.universe.universe import Universe, subsets

LARGEST = 2**53  # largest number of grid steps that float64 holds exactly
HALF = 35  # number of bits in the lower part of a sum that is kept in two parts
LOW = 2**HALF - 1  # mask of that lower part


def center(table: Array) -> Array:
    """Return the residual of a table: the table minus its means along every axis."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def coordinates(counts: NDArray[np.int64], grid: float, contrasts: Sequence[Contrasts] = (), times: int = 1) -> Array:
    """Return the residual of a table as coordinates along contrasts of each attribute, by default orthonormal ones.

    Orthonormal contrasts give Π(m − 1) independent numbers in place of Π m dependent ones. Each is multiplied by
    √``times``, and is the multiple of ``grid`` (a power of two) nearest to the exact number, and at most 2^53
    steps.

    A number is v·√(times/P) with whole v and P: v is a sum of counts along contrasts, P the product of the contrasts'
    squares. float64 rounds it, within a bound on its error; where that bound leaves a choice, an integer square root
    decides.
    """
    contrasts = contrasts or along(counts.shape)
    (high, low), P = _contrast_sums(counts, contrasts), np.ones((), np.int64)
    for each in contrasts:
        P = np.multiply.outer(P, each.squares)
    z = np.asarray((np.ldexp(high.astype(float), HALF) + low) * math.sqrt(times) / np.sqrt(P) / grid)
    below = np.floor(z)
    part = z - below
    steps = np.array(np.clip(below + (part > 0.5), -LARGEST, LARGEST))
    for cell in map(tuple, np.argwhere(np.abs(part - 0.5) <= 2.0**-49 * (np.abs(z) + 1))):
        steps[cell] = _round_residual((int(high[cell]) << HALF) + int(low[cell]), int(P[cell]), grid, times)
    return np.asarray(steps * grid)


def _contrast_sums(
    counts: NDArray[np.int64], contrasts: Sequence[Contrasts]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return v, the exact sums of counts along the contrasts of every axis, as high·2^35 + low with 0 ≤ low < 2^35.

    A sum is at most the number of rows times the largest entries of the contrasts. Where 64 bits may be too few for
    it, counts are taken a few bits at a time: so few that all sums are whole numbers below 2^53, which float64 holds
    exactly and multiplies fast.
    """
    entries = math.prod(int(np.abs(each.rows).max()) for each in contrasts)
    if MOST_ROWS * entries < 2**62:
        sums = _along_axes(counts.astype(np.int64), contrasts)
        return sums >> HALF, sums & LOW
    bits = min(53 - (counts.size * entries).bit_length(), 62 - HALF - 2)
    high = low = np.zeros((), np.int64)
    for shift in reversed(range(0, MOST_ROWS.bit_length(), bits)):
        some = _along_axes(((counts >> shift) & (2**bits - 1)).astype(float), contrasts).astype(np.int64)
        total = (low << bits) + some
        high, low = (high << bits) + (total >> HALF), total & LOW
    return high, low


def _along_axes(values: NDArray[Any], contrasts: Sequence[Contrasts]) -> NDArray[Any]:
    """Apply the contrasts of each axis."""
    for axis, each in enumerate(contrasts):
        values = np.moveaxis(values, axis, -1)
        if each.is_orthonormal:  # Helmert's contrasts, without a matrix product
            sums = np.cumsum(values, axis=-1)[..., :-1] - np.arange(1, each.size) * values[..., 1:]
        else:
            sums = np.tensordot(values, each.rows.astype(values.dtype), axes=(-1, 1))
        values = np.moveaxis(sums, -1, axis)
    return values


def _round_residual(v: int, P: int, grid: float, times: int) -> int:
    """Round v·√(times/P)/grid to the nearest whole number, halves away from zero, clipped at ±2^53."""
    above, below = grid.as_integer_ratio()
    twice = math.isqrt(4 * (v * below) ** 2 * times // (P * above**2))  # ⌊√x⌋ = ⌊√⌊x⌋⌋
    nearest = min((twice + 1) // 2, LARGEST)
    return nearest if v >= 0 else -nearest


def from_coordinates(values: Array, contrasts: Sequence[Contrasts] = ()) -> Array:
    """Return the centred table with these coordinates."""
    for axis, each in enumerate(contrasts or along([m + 1 for m in values.shape])):
        values = np.moveaxis(np.tensordot(each.inverse, values, axes=(1, axis)), 0, axis)
    return values


class Evidence:
    """Everything measured so far, as residuals. Public."""

    def __init__(self, universe: Universe, rows: float | None = None) -> None:
        """``rows`` is n where it is public, and then exact."""
        self._universe = universe
        self._residuals: dict[Names, Array] = {}
        self._precisions: dict[Names, float] = {}
        if rows is not None:
            self._residuals[()], self._precisions[()] = np.asarray(rows), math.inf

    def add(self, measurement: Measurement) -> None:
        """Split a measurement into residuals and combine them with those already known."""
        names, cells = measurement.attributes, self._universe.cells
        for s in [names] if measurement.residual else subsets(names):
            precision = cells(s) / (measurement.variance * _loss(measurement) * cells(names))
            self._combine(s, center(measurement.onto(s)), precision)

    def _combine(self, names: Names, residual: Array, precision: float) -> None:
        """Average a new residual with the known one, weighted by precision."""
        known = self._precisions.get(names, 0.0)
        if known == math.inf:
            return
        if known:
            residual = (known * self._residuals[names] + precision * residual) / (known + precision)
        self._residuals[names], self._precisions[names] = residual, known + precision

    def copy(self) -> Evidence:
        """Return a snapshot that later additions do not change."""
        twin = Evidence(self._universe)
        twin._residuals, twin._precisions = dict(self._residuals), dict(self._precisions)
        return twin

    @property
    def sets(self) -> list[Names]:
        """The sets whose tables can be estimated, in order."""
        return sorted((s for s in self._precisions if s in self), key=lambda s: (len(s), s))

    def __contains__(self, names: Names) -> bool:
        """Return True if the table on these attributes can be estimated without a model."""
        # Look up the set itself first: a set of many attributes has more subsets than memory holds.
        return names in self._precisions and all(s in self._precisions for s in subsets(names))

    @property
    def total(self) -> tuple[float, float]:
        """The estimate of n and its variance."""
        return float(self._residuals[()]), 1 / self._precisions[()]

    def lacks_residual(self, names: Names) -> bool:
        """Return True if the residual is all that is missing for an estimate of the table."""
        return names not in self._precisions and all(s in self._precisions for s in subsets(names)[:-1])

    def variance_below(self, names: Names) -> float:
        """Return the variance of a cell of the table on ``names``, without the part of its own residual."""
        return math.fsum(self._variance(s, names) for s in subsets(names)[:-1])

    def _variance(self, s: Names, names: Names) -> float:
        """Return what the residual on s adds to the variance of a cell of the table on ``names``."""
        spread = self._universe.cells(names) / self._universe.cells(s)
        return math.prod(1 - 1 / size for size in self._universe.sizes(s)) / (self._precisions[s] * spread**2)

    def interaction(self, names: Names) -> tuple[Array, float]:
        """Return the residual on ``names`` itself, and the variance of one of its cells."""
        return self._residuals[names], self._variance(names, names)

    def estimate(self, names: Names) -> tuple[Array, float]:
        """Return the least-squares estimate of the counts on ``names``, and the variance of a cell."""
        universe = self._universe
        counts, variance = np.zeros(universe.sizes(names)), 0.0
        for s in subsets(names):
            spread = universe.cells(names) / universe.cells(s)
            shape = [universe[n].size if n in s else 1 for n in names]
            counts += self._residuals[s].reshape(shape) / spread
            variance += self._variance(s, names)
        return counts, variance


class Overview:
    """Residuals of a whole family of sets, measured together before anything else: one Gaussian mechanism.

    A query q on A has the components q_s, the means of q over A∖s centred along s, and ⟨q, counts⟩ = Σ_{s⊆A} ⟨q_s,
    z_s⟩. Here z_s = J_s y_s, with y_s the coordinates and J_s the inverse of their contrasts. The noise is
    independent and jointly Gaussian, so the estimate has the variance Σ σ_s²‖J_sᵀq_s‖² (‖q_s‖² for orthonormal
    contrasts). The coordinates were rounded before the noise was added, y_s by at most b_s in ℓ2. That moves the
    estimate by at most Σ b_s‖J_sᵀq_s‖, which by Cauchy–Schwarz is at most ``rounding`` = (Σ b_s²/σ_s²)^½ standard
    deviations.
    """

    def __init__(self, universe: Universe, measurements: Sequence[Measurement], rows: float | None) -> None:
        self.universe, self.measured = universe, len(measurements)
        self._evidence = Evidence(universe, rows)
        self._variances: dict[Names, float] = {}
        for m in measurements:  # a set may have been measured twice
            known = self._variances.get(m.attributes)
            self._variances[m.attributes] = m.variance if known is None else 1 / (1 / known + 1 / m.variance)
        self._contrasts = {
            name: each for m in measurements for name, each in zip(m.attributes, m.contrasts, strict=True)
        }
        self._ranged = {name for m in measurements for name in m.ranged}
        if any(name not in m.ranged for m in measurements for name in m.attributes if name in self._ranged):
            raise InvalidInput(
                "All residuals of an overview must have the same contrasts along an attribute. "
                "Found contrasts of ranges in only some of them. Restore the ledger from a backup."
            )
        self.rounding = math.hypot(*(_rounding_share(m) for m in measurements))
        if rows is not None:
            self._variances[()] = 0.0
        for measurement in measurements:
            self._evidence.add(measurement)
        self.sets = [s for s in self._variances if s in self._evidence]
        self._tables: dict[Names, Array] = {}

    def covers(self, names: Names) -> bool:
        """Return True if the table on these attributes can be estimated from the overview alone."""
        return names in self._evidence

    def deviation(self, names: Names) -> float:
        """Return the average standard deviation of the residual on ``names`` along a unit vector."""
        return math.sqrt(self._variances[names] * math.prod(self._contrasts[name].loss for name in names))

    def onto(self, names: Names) -> Array:
        """Return the estimated counts on ``names``."""
        if names not in self._tables:
            self._tables[names] = self._evidence.estimate(names)[0]
        return self._tables[names]

    def deviations(self, names: Names, queries: Sequence[Linear]) -> Array:
        """Return the standard deviation of the estimate of each query on ``names``, in rows."""
        sizes = self.universe.sizes(names)
        if not isinstance(queries, Products) and names and all(q.vectors and q.is_count for q in queries):
            queries = Products.of(queries)
        if isinstance(queries, Products):
            true = queries.sizes.astype(float)
            share = true / np.array(sizes)
            inside, outside = true * (1 - share), share**2  # ‖centred mask‖², and the squared mean of a mask
            for i, name in enumerate(names):
                if name in self._ranged:
                    moved = queries.masks[i] @ self._contrasts[name].inverse
                    inside[:, i] = np.einsum("ij,ij->i", moved, moved)
            variance = np.zeros(len(queries))
            for s in subsets(names):
                factors = [inside[:, i] if n in s else outside[:, i] for i, n in enumerate(names)]
                variance += self._variances[s] * math.prod(factors, start=np.ones(len(queries)))
            return np.sqrt(variance)
        return np.array([self._deviation(names, q) for q in queries])

    def deviation_of_count(self, names: Names, sets: Sequence[NDArray[np.bool_]]) -> float:
        """Return the standard deviation of the estimate of one count, given by a set of cells of each attribute."""
        parts: list[tuple[float, Names]] = [(1.0, ())]
        for name, mask in zip(names, sets, strict=True):
            true, size = int(np.count_nonzero(mask)), mask.size
            inside, outside = true * (1 - true / size), (true / size) ** 2
            if name in self._ranged:
                moved = mask @ self._contrasts[name].inverse
                inside = float(moved @ moved)
            parts = [
                (factor * other, (*s, name) if within else s)
                for factor, s in parts
                for other, within in ((outside, False), (inside, True))
            ]
        return math.sqrt(sum(factor * self._variances[s] for factor, s in parts))

    def widest(self, names: Names) -> float:
        """Return the largest standard deviation of a table of norm 1 on ``names``.

        It belongs to a table that varies along some s ⊆ ``names`` alone.
        """
        cells = self.universe.cells
        along_s = {s: math.prod(self._contrasts[name].widest for name in s) for s in subsets(names)}
        return max(math.sqrt(self._variances[s] * along_s[s] * cells(s) / cells(names)) for s in along_s)

    def _deviation(self, names: Names, query: Linear) -> float:
        """Return the standard deviation of the estimate of one query, in rows."""
        variance = 0.0
        for s in subsets(names):
            away = tuple(i for i, n in enumerate(names) if n not in s)
            moved = center(query.table.mean(axis=away))
            for axis, name in enumerate(s):
                if name in self._ranged:
                    moved = np.tensordot(moved, self._contrasts[name].inverse, axes=(axis, 0))
                    moved = np.moveaxis(moved, -1, axis)
            variance += self._variances[s] * float((moved**2).sum())
        return math.sqrt(variance)


def _loss(measurement: Measurement) -> float:
    """Return the factor by which a cell of the residual has more variance than with orthonormal contrasts."""
    return math.prod(each.loss for each in measurement.contrasts) if measurement.residual else 1.0


def _rounding_share(measurement: Measurement) -> float:
    """Return b/σ of a residual: half a grid step in each coordinate; 0 for n itself, which is a whole number."""
    if not measurement.attributes:
        return 0.0
    event = measurement.event
    coordinates = math.prod(each.count for each in measurement.contrasts)
    return event.grid / 2 * math.sqrt(coordinates / measurement.variance)
