"""Estimate the tables of measured pairs: what is believed of them, plus the measured interaction as far as it is clear.

    P       the counts that are believed without the pair's own interaction
    d       the measured interaction less that of P, in cells; v the variance of its noise in a cell
    q       P + ½√v: the size of a cell, of which its true deviation from P is thought to be a part
    w_k     Pr[the true deviation of a cell is N(0, s_k·q²)], over fixed relative variances s_k

Most pairs of a wide table are nearly as believed and some are far from it, in a few cells. So one variance for all
cells of a pair would shrink the strong cells too much and the weak ones too little. The mixture over s_k is fitted to
all pairs together by expectation maximization (``InteractionPrior.fit``), then to each pair with that as its prior, and
each cell gets its posterior mean (Stephens, "False discovery rates: a new deal", 2017). A pair whose interaction is
noise stays as believed; a cell that stands out of the noise is believed as measured.

The result is moved to the nearest table without negative counts and raked to the margins of P, which are the
estimated counts of single attributes.

Everything here is a function of released values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.engine.practical.fit.residuals import Evidence, center

RELATIVE: Array = np.array([0.0, *(4.0 ** np.arange(-8, 4))])  # s_k
FLOOR = 0.5  # part of the noise's standard deviation by which every cell counts as larger
STEPS, OWN_STEPS = 30, 15  # steps of expectation maximization, for all pairs and for one
OWN = 3.0  # number of cells for which the prior of all pairs counts when the mixture of one pair is fitted
MOST_CELLS = 200_000  # most cells that the mixture of all pairs is fitted to
SWEEPS, AGREES = 60, 1e-9  # most raking sweeps of a pair, and when they end


@dataclass(frozen=True, eq=False)
class InteractionPrior:
    """The mixture weights w_k that all measured pairs have in common."""

    weights: Array

    @classmethod
    def fit(cls, cells: Iterable[tuple[Array, Array, float]]) -> InteractionPrior:
        """Fit the weights to the cells of all pairs: P, d and v of each."""
        found = [(np.square(_sizes(p, v)).ravel() / v, np.square(d).ravel() / v) for p, d, v in cells]
        weights = np.full(len(RELATIVE), 1 / len(RELATIVE))
        if not found:
            return cls(weights)
        sizes, squares = (np.concatenate(each) for each in zip(*found, strict=True))
        every = -(-len(sizes) // MOST_CELLS)
        likelihood = _likelihood(sizes[::every], squares[::every])
        for _ in range(STEPS):
            weights = _responsibilities(weights, likelihood).mean(axis=1)
        return cls(weights)

    def shrink(self, believed: Array, off: Array, variance: float) -> Array:
        """Return the posterior mean of each cell's deviation."""
        sizes, squares = np.square(_sizes(believed, variance)).ravel() / variance, np.square(off).ravel() / variance
        likelihood, weights = _likelihood(sizes, squares), self.weights
        for _ in range(OWN_STEPS):
            sums = _responsibilities(weights, likelihood).sum(axis=1)
            weights = (sums + OWN * self.weights) / (sizes.size + OWN)
        spread = RELATIVE[:, None] * sizes
        kept = (_responsibilities(weights, likelihood) * (spread / (1 + spread))).sum(axis=0)
        return np.asarray(kept.reshape(off.shape) * off)


def _sizes(believed: Array, variance: float) -> Array:
    return np.asarray(np.maximum(believed, 0.0) + FLOOR * math.sqrt(variance))


def _likelihood(sizes: Array, squares: Array) -> Array:
    """Return the density of each cell for every s_k, up to a factor of the cell's own; all in units of the noise."""
    total = 1 + RELATIVE[:, None] * sizes
    logs = -0.5 * (squares / total + np.log(total))
    return np.asarray(np.exp(logs - logs.max(axis=0)))


def _responsibilities(weights: Array, likelihood: Array) -> Array:
    """Return the probability of each s_k for every cell."""
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
    moved = center(prior.shrink(believed, *deviations(believed, pair, evidence)))
    total = float(believed.sum())
    found = np.maximum(onto_simplex(believed + moved, total), 1e-12 * total / believed.size)
    return _rake(found, believed.sum(axis=1), believed.sum(axis=0))


def _rake(table: Array, rows: Array, columns: Array) -> Array:
    """Scale the rows and columns of a positive table until they have these sums."""
    for _ in range(SWEEPS):
        table = table * (rows / np.maximum(table.sum(axis=1), 1e-300))[:, None]
        sums = table.sum(axis=0)
        table = table * (columns / np.maximum(sums, 1e-300))
        if float(np.abs(sums - columns).sum()) < AGREES * float(rows.sum()):
            break
    return np.asarray(table)


def onto_simplex(counts: Array, total: float) -> Array:
    """Return the nearest table without negative counts that sums to ``total``."""
    largest = np.sort(counts, axis=None)[::-1]
    shifts = (np.cumsum(largest) - total) / np.arange(1, largest.size + 1)
    return np.asarray(np.maximum(counts - shifts[np.flatnonzero(largest > shifts)[-1]], 0.0))
