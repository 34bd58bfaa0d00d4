"""Minimize a loss over a weighted sample of a public hypothesis, where the joint table of its attributes is too large.

Paper: Mak, Morton & Wood, *Monte Carlo bounding techniques for determining solution quality in stochastic programs*
(1999).

Symbols: D̂ the hypothesis, f(θ) = Σ D̂(x)·ℓ_x(θ), f_k the same on an independent sample k, θ̂ the minimizer on the main
sample, p the dimension.

The records are drawn from D̂ under a public seed, so the same hypothesis gives the same θ̂. Their weights are raked to
D̂'s own tables of the target with every feature. At the minimum the fit's residuals are orthogonal to every feature, so
these tables matter most, and the records follow them up to chance only.

The sample's own error is bounded as in the paper. E[f_k(θ̂) − min f_k] ≥ f(θ̂) − min f, because a mean of minima is at
most the minimum of the mean. So an upper confidence bound on the left side, from K independent samples, is one on the
excess risk that θ̂ has on D̂. Everything here is a function of released values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from hedgerow import _scipy as scipy
from hedgerow._types import Array, Names
from hedgerow.convex.bound_loss import LARGEST_SAMPLE, GlmRisk
from hedgerow.convex.minimize import COARSE, TOLERANCE, BoundMinimize
from hedgerow.convex.solver.public_minimum import Minimum, minimize_objective
from hedgerow.convex.solver.weighted_rows import WeightedRows
from hedgerow.model.kernels import rake
from hedgerow.privacy.noise import public_generator

FEWEST = 20_000  # records of a sample of very many parameters
NUMBERS = 4 * 10**7  # a sample has about as many records as this many numbers, cells of a row or its parameters, allow
CHECKS, CHECK_SHARE = 4, 4  # K, and the factor by which its samples are smaller
CONFIDENCE = 0.99  # of the bound on the sample's own error, over the public seed
SWEEPS = 6  # raking sweeps over all tables
LARGEST_PAIR = 1 << 16  # a larger table of a pair is not raked to
SEED = 8128  # public: it makes a fit repeatable


class SampledHypothesis(Protocol):
    """A public distribution with small tables and records."""

    def marginal(self, attributes: Names, /) -> Array:
        """Return the distribution's table on the attributes."""
        ...

    def sample(self, rows: int, rng: np.random.Generator, *, rounded: bool = False) -> NDArray[np.int32]:
        """Draw records; ``rounded`` records have counts near those of the distribution."""
        ...


@final
@dataclass(frozen=True, eq=False, repr=False)
class SampledMinimum:
    """A minimizer θ on a sample, and a bound on its excess risk on the hypothesis itself."""

    theta: Array
    simulation: float


def theta_on(question: BoundMinimize, hypothesis: SampledHypothesis, fewer: int = 1) -> Array:
    """Return the minimizer of a question on a hypothesis: on the table of its attributes, or on a sample. Public.

    The sample has ``fewer`` times fewer records than that of ``fit_on_sample``.
    """
    if question.risk.is_listable:
        return question.fit_on(hypothesis)[0].theta
    return _fit(question, hypothesis, fewer, SEED)[0].theta


def fit_on_sample(question: BoundMinimize, hypothesis: SampledHypothesis) -> SampledMinimum:
    """Minimize the loss on a sample of the hypothesis, and bound what the sample itself adds to the excess risk."""
    theta = _fit(question, hypothesis, 1, SEED)[0].theta
    gaps = []
    for k in range(1, CHECKS + 1):
        least, check = _fit(question, hypothesis, CHECK_SHARE, SEED + k)
        gaps.append((check.value(theta) - least.value + least.gap) / check.mass)
    spread = float(scipy.special.stdtrit(CHECKS - 1, CONFIDENCE)) * float(np.std(gaps, ddof=1)) / math.sqrt(CHECKS)
    return SampledMinimum(theta, max(float(np.mean(gaps)), 0.0) + spread)


def _fit(question: BoundMinimize, hypothesis: SampledHypothesis, fewer: int, seed: int) -> tuple[Minimum, WeightedRows]:
    """Draw a sample, and minimize the loss on it."""
    risk = question.risk.glm
    assert risk is not None  # other losses of this size are refused when they are bound
    rows = WeightedRows.of(risk, *draw_records(risk, hypothesis, sample_size(risk) // fewer, seed))
    return minimize_objective(risk, rows, question.over, TOLERANCE if risk.is_smooth else COARSE), rows


def sample_size(risk: GlmRisk) -> int:
    """Return the number of records of the main sample. A public fact."""
    each = risk.features.dimension * max(1, math.prod(risk.outputs)) + len(risk.attributes)
    return max(FEWEST, min(LARGEST_SAMPLE, NUMBERS // each))


def draw_records(risk: GlmRisk, hypothesis: SampledHypothesis, rows: int, seed: int) -> tuple[NDArray[np.int32], Array]:
    """Return records on the attributes of the loss, one column each, and their weights, which add up to 1."""
    universe, names = risk.universe, risk.attributes
    codes = hypothesis.sample(rows, public_generator(seed), rounded=True)
    columns = np.ascontiguousarray(codes.T[[universe.index(name) for name in names]], dtype=np.int32)
    weights = np.full(columns.shape[1], 1 / columns.shape[1])
    tables = [
        (np.array([names.index(name) for name in pair]), np.asarray(hypothesis.marginal(pair), dtype=float))
        for feature in names
        if feature != risk.target
        for pair in [universe.order([risk.target, feature])]
        if universe.cells(pair) <= LARGEST_PAIR
    ]
    places, sums = np.empty(weights.size, np.int32), np.empty(max((t.size for _, t in tables), default=0))
    for _ in range(SWEEPS):
        for chosen, table in tables:
            strides = np.array([table.shape[1], 1], np.int32)
            rake(columns, chosen, strides, table.ravel(), weights, places, sums[: table.size])
        weights /= weights.sum()
    return columns, weights
