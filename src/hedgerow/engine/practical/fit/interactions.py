"""Estimate the tables of measured pairs: what is believed of them, plus the measured interaction as far as it is clear.

    P       the counts that are believed without the pair's own interaction
    d       the measured interaction less that of P, in cells; v the variance of its noise in a cell
    q       P + ½√v: the size of a cell, of which its true deviation from P is thought to be a part
    w_k     Pr[the true deviation of a cell is N(0, s_k·q²)], over fixed relative variances s_k; the last is the
            probability that the cell is empty, and its deviation −P

Most pairs of a wide table are nearly as believed and some are far from it, in a few cells. So one variance for all
cells of a pair would shrink the strong cells too much and the weak ones too little. The mixture over s_k is fitted to
all pairs together by expectation maximization (``InteractionPrior.fit``), then to each pair with that as its prior, and
each cell gets its posterior mean (Stephens, "False discovery rates: a new deal", 2017). A pair whose interaction is
noise stays as believed; a cell that stands out of the noise is believed as measured.

The result is moved to the nearest table without negative counts and raked to the margins of P, which are the
estimated counts of single attributes.

A pair is estimated so from two beliefs: that of the model before it took the pair, and the model's own table moved by
what the deviations of all pairs have in common (``CommonFactors``). The two err in different cells, so their mean errs
less than either.

    D       the deviations of all pairs from what the model believes, as one symmetric matrix over the values of all
            attributes; each attribute's rows are divided by a number s_a, so that all noise is about alike
    U, λ    its eigenvectors and eigenvalues
    e       the edge of the noise: noise alone has hardly an eigenvalue beyond e = 2·√(largest sum of variances in a
    row)

Values that deviate from the model mostly do so alike in many pairs: what explains one deviation of an attribute
explains others. So the matrix of true deviations has few large eigenvalues, and noise spreads over all of them. An
eigenvalue becomes sign(λ)·√(λ² − e²), and 0 within the edge: the shrinkage that is optimal in mean square for a matrix
of few directions in noise (Gavish & Donoho, "Optimal shrinkage of singular values", 2017). Of a cell's noise the part
h_i + h_j − h_i·h_j is left, h_i the kept share of the unit vector of value i.

Everything here is a function of released values, and continuous in them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.engine.practical.fit.residuals import Evidence, center

RELATIVE: Array = np.array([0.0, *(4.0 ** np.arange(-8, 4))])  # s_k
FLOOR = 0.5  # part of the noise's standard deviation by which every cell counts as larger
STEPS, OWN_STEPS = 30, 15  # steps of expectation maximization, for all pairs and for one
OWN = 3.0  # number of cells for which the prior of all pairs counts when the mixture of one pair is fitted
LEAST_NOISE = 1e-3  # least part of a cell's noise that is taken to be left
MOST_CELLS = 200_000  # most cells that the mixture of all pairs is fitted to
SWEEPS, AGREES = 60, 1e-9  # most raking sweeps of a pair, and when they end


class CommonDeviations(NamedTuple):
    """The deviations of a pair's cells by the common factors, and the variance of their noise."""

    off: Array
    noise: Array


@dataclass(frozen=True, eq=False)
class CommonFactors:
    """The kept directions: their ``vectors`` and ``signs``, and the ``kept`` share h of every value."""

    sizes: Mapping[str, int]
    vectors: Array
    signs: Array
    kept: Array

    @classmethod
    def none(cls) -> CommonFactors:
        """Return factors of no attribute."""
        return cls({}, np.zeros((0, 0)), np.zeros(0), np.zeros(0))

    @classmethod
    def fit(
        cls, sizes: Mapping[str, int], off: Mapping[Names, Array], variances: Mapping[Names, float]
    ) -> CommonFactors:
        """Find the factors of the pairs' deviations ``off``, whose cells have noise of these variances."""
        logs: dict[str, list[float]] = {name: [] for name in sizes}
        for pair, variance in variances.items():
            for name in pair:
                logs[name].append(0.5 * math.log(variance))
        means = {name: math.fsum(each) / len(each) for name, each in logs.items() if each}
        half = math.fsum(means.values()) / max(len(means), 1) / 2
        scale = {name: math.exp(means.get(name, half) - half) for name in sizes}
        place = _places(sizes)
        matrix = np.zeros((sum(sizes.values()),) * 2)
        spread = dict.fromkeys(sizes, 0.0)
        for (a, b), table in off.items():
            unit = scale[a] * scale[b]
            matrix[place[a], place[b]] = table / unit
            matrix[place[b], place[a]] = table.T / unit
            spread[a] += variances[a, b] / unit**2 * sizes[b]
            spread[b] += variances[a, b] / unit**2 * sizes[a]
        edge = 4 * max(spread.values(), default=0.0)
        values, vectors = np.linalg.eigh(matrix)
        beyond = np.square(values) > edge
        values, vectors = values[beyond], vectors[:, beyond]
        shrunk = np.sqrt(np.square(values) - edge)
        kept = np.square(vectors) @ (shrunk / np.abs(values))
        rows = np.concatenate([np.full(size, scale[name]) for name, size in sizes.items()] or [np.zeros(0)])
        return cls(sizes, rows[:, None] * vectors * np.sqrt(shrunk), np.sign(values), kept)

    @classmethod
    def restore(cls, sizes: Mapping[str, int], state: Mapping[str, Any] | None) -> CommonFactors:
        """Rebuild the factors that ``state`` described; without them there are none."""
        return cls.none() if state is None else cls(sizes, state["vectors"], state["signs"], state["kept"])

    def state(self) -> dict[str, Any]:
        """Return the factors as plain data."""
        return {"vectors": self.vectors, "signs": self.signs, "kept": self.kept}

    def of_pair(self, pair: Names, variance: float) -> CommonDeviations | None:
        """Return what the factors say of a pair whose cells have noise of this variance; None without factors."""
        if not len(self.signs):
            return None
        place = _places(self.sizes)
        a, b = place[pair[0]], place[pair[1]]
        left = self.kept[a][:, None] + self.kept[b] - np.multiply.outer(self.kept[a], self.kept[b])
        off = (self.vectors[a] * self.signs) @ self.vectors[b].T
        return CommonDeviations(off, np.maximum(left, LEAST_NOISE) * variance)


def _places(sizes: Mapping[str, int]) -> dict[str, slice]:
    """Return the rows of each attribute's values."""
    ends = np.cumsum([0, *sizes.values()]).tolist()
    return {name: slice(first, last) for name, first, last in zip(sizes, ends, ends[1:], strict=False)}


@dataclass(frozen=True, eq=False)
class InteractionPrior:
    """The mixture weights w_k that all measured pairs have in common, and their common factors."""

    weights: Array
    factors: CommonFactors = field(default_factory=CommonFactors.none)

    @classmethod
    def fit(cls, cells: Iterable[tuple[Array, Array, float]]) -> InteractionPrior:
        """Fit the weights to the cells of all pairs: P, d and v of each."""
        found = [_mixture(p, d, v) for p, d, v in cells]
        weights = np.full(len(RELATIVE) + 1, 1 / (len(RELATIVE) + 1))
        if not found:
            return cls(weights)
        likelihood = np.concatenate([each.likelihood for each in found], axis=1)
        likelihood = likelihood[:, :: -(-likelihood.shape[1] // MOST_CELLS)]
        for _ in range(STEPS):
            weights = _responsibilities(weights, likelihood).mean(axis=1)
        return cls(weights)

    @classmethod
    def restore(cls, sizes: Mapping[str, int], state: Mapping[str, Any]) -> InteractionPrior:
        """Rebuild the prior that ``state`` described.

        The states of earlier fits have no factors, and no probability of empty cells.
        """
        weights = np.asarray(state["interactions"])
        weights = np.append(weights, np.zeros(len(RELATIVE) + 1 - len(weights)))
        return cls(weights, CommonFactors.restore(sizes, state.get("factors")))

    def state(self) -> dict[str, Any]:
        """Return the weights and the factors as plain data."""
        return {"interactions": self.weights, "factors": self.factors.state()}

    def shrink(self, believed: Array, off: Array, variance: float, noise: Array | None = None) -> Array:
        """Return the posterior mean of each cell's deviation; ``noise`` are its variances, if they differ."""
        cells, weights = _mixture(believed, off, variance, noise), self.weights
        for _ in range(OWN_STEPS):
            sums = _responsibilities(weights, cells.likelihood).sum(axis=1)
            weights = (sums + OWN * self.weights) / (off.size + OWN)
        found = (_responsibilities(weights, cells.likelihood) * cells.means).sum(axis=0)
        return np.asarray(found.reshape(off.shape))


class _Mixture(NamedTuple):
    """The likelihood of every cell under each component, up to a factor of the cell's own, and its posterior mean."""

    likelihood: Array
    means: Array


def _mixture(believed: Array, off: Array, variance: float, noise: Array | None = None) -> _Mixture:
    own = np.full(off.size, variance) if noise is None else noise.ravel()
    there, d = np.maximum(believed, 0.0).ravel(), off.ravel()
    total = own + RELATIVE[:, None] * np.square(there + FLOOR * math.sqrt(variance))
    empty = np.square(d + there) / own + np.log(own)
    logs = -0.5 * np.vstack([np.square(d) / total + np.log(total), empty])
    return _Mixture(np.exp(logs - logs.max(axis=0)), np.vstack([(1 - own / total) * d, -there]))


def _responsibilities(weights: Array, likelihood: Array) -> Array:
    """Return the probability of each component for every cell."""
    joint = weights[:, None] * likelihood
    return np.asarray(joint / joint.sum(axis=0))


def single_counts(evidence: Evidence, single: Names, rows: float) -> Array:
    """Return the estimated counts of one attribute."""
    return onto_simplex(evidence.estimate(single)[0], rows)


def with_margins(table: Array, pair: Names, evidence: Evidence, rows: float) -> Array:
    """Return the counts that a table of fractions says of a pair, raked to the estimated counts of both attributes."""
    found = np.maximum(rows * table, 1e-12 * rows / table.size)
    return _rake(found, *(single_counts(evidence, (name,), rows) for name in pair))


def deviations(believed: Array, pair: Names, evidence: Evidence) -> tuple[Array, float]:
    """Return how far the measured interaction of a pair is from that of ``believed``, and the variance of a cell."""
    measured, variance = evidence.interaction(pair)
    return center(measured - believed), variance


def pair_table(prior: InteractionPrior, believed: Array, pair: Names, evidence: Evidence) -> Array:
    """Return the estimated counts of a measured pair, with the margins of ``believed``."""
    return _move_table(believed, prior.shrink(believed, *deviations(believed, pair, evidence)))


def mean_pair_table(prior: InteractionPrior, before: Array, now: Array, pair: Names, evidence: Evidence) -> Array:
    """Return the mean of the estimates from both beliefs, that of the model before it took the pair and its own."""
    first = pair_table(prior, before, pair, evidence)
    variance = evidence.interaction(pair)[1]
    if (common := prior.factors.of_pair(pair, variance)) is not None:
        now = _move_table(now, prior.shrink(now, common.off, variance, common.noise))
    elif now is before:
        return first
    return np.asarray((first + pair_table(prior, now, pair, evidence)) / 2)


def _move_table(believed: Array, off: Array) -> Array:
    """Return the counts moved by an interaction, without negative counts and with the same margins."""
    total = float(believed.sum())
    found = np.maximum(onto_simplex(believed + center(off), total), 1e-12 * total / believed.size)
    return _rake(found, believed.sum(axis=1), believed.sum(axis=0))


def _rake(table: Array, row_sums: Array, columns: Array) -> Array:
    """Scale the rows and columns of a positive table until they have these sums."""
    for _ in range(SWEEPS):
        table = table * (row_sums / np.maximum(table.sum(axis=1), 1e-300))[:, None]
        sums = table.sum(axis=0)
        table = table * (columns / np.maximum(sums, 1e-300))
        if float(np.abs(sums - columns).sum()) < AGREES * float(row_sums.sum()):
            break
    return np.asarray(table)


def onto_simplex(counts: Array, total: float) -> Array:
    """Return the nearest table without negative counts that sums to ``total``."""
    largest = np.sort(counts, axis=None)[::-1]
    shifts = (np.cumsum(largest) - total) / np.arange(1, largest.size + 1)
    return np.asarray(np.maximum(counts - shifts[np.flatnonzero(largest > shifts)[-1]], 0.0))
