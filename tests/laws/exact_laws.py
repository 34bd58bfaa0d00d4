"""Exact laws of noise, and tests of draws against them with stated error rates.

A draw k of a discrete law with distribution F becomes u = F(k−1) + v·P[k], v uniform: uniform on [0, 1], exactly, whatever
the law. So draws of many scales and grids are tested together, by chi-square on bins that are thin towards the ends.

FALSE_FAIL is the chance that right draws fail one such test. There are fewer than 300 of them in a run of the tests, so that
a right sampler fails the run once in a million. FALSE_PASS is the chance that draws of a wrong law, which the test names,
pass it. The number of draws that both need follows (``draws_needed``), and every test states what it has power against.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy import special, stats

from hedgerow.privacy.events import Exponential, Gaussian, Laplace

FALSE_FAIL, FALSE_PASS = 3e-9, 1e-6
SCALES = (0.5, 0.8, 1.25)  # what every test of a scale must tell from 1
ENDS = np.array([0.01, 0.03, 0.08, 0.17, 0.3, 0.42, 0.5, 0.58, 0.7, 0.83, 0.92, 0.97, 0.99])  # of the bins of u
RIGHT = np.diff(np.concatenate([[0.0], ENDS, [1.0]]))


def spread_of(event: Laplace | Gaussian) -> float:
    """b or σ, in steps of the event's grid."""
    return (event.scale if isinstance(event, Laplace) else event.sigma) / event.grid


def laplace_below(k: np.ndarray, s: float) -> np.ndarray:
    """P[X ≤ k], P[k] ∝ e^(−|k|/s): P[X ≥ k] = e^(−k/s)/(1 + e^(−1/s)) for k ≥ 1."""
    rest = 1 + math.exp(-1 / s)
    k = np.asarray(k, dtype=float)
    return np.where(k >= 0, 1 - np.exp(-(np.maximum(k, 0) + 1) / s) / rest, np.exp(np.minimum(k, 0) / s) / rest)


def gaussian_below(k: np.ndarray, s: float) -> np.ndarray:
    """P[X ≤ k], P[k] ∝ e^(−k²/2s²): summed, or by the continuous law, from which a wide one differs by 1/(24 s²) at most."""
    k = np.asarray(k, dtype=float)
    if s > 300:
        return special.ndtr((k + 0.5) / s)
    reach = np.arange(-math.ceil(40 * s) - 1, math.ceil(40 * s) + 2)
    sums = np.cumsum(np.exp(-(reach**2.0) / (2 * s * s)))
    return sums[np.clip(k - reach[0], 0, reach.size - 1).astype(int)] / sums[-1]


def uniforms(noise: np.ndarray, event: Laplace | Gaussian, rng: np.random.Generator) -> np.ndarray:
    """Transform noise in rows to numbers that are uniform if it has the law of the event. It must be on the grid."""
    k = np.asarray(noise, dtype=float).ravel() / event.grid
    assert np.array_equal(k, np.rint(k)), "noise off its grid"
    below = functools.partial(laplace_below if isinstance(event, Laplace) else gaussian_below, s=spread_of(event))
    low, high = below(k - 1), below(k)
    return low + rng.random(k.size) * (high - low)


def choice_uniform(scores: np.ndarray, chosen: int, event: Exponential, rng: np.random.Generator) -> float:
    """The same of a choice, by candidates from the best to the worst: P[i] ∝ exp(ε·score_i/2Δ)."""
    weights = special.softmax(np.asarray(scores, dtype=float) * event.epsilon / (2 * event.sensitivity))
    order = np.argsort(-weights, kind="stable")
    place = int(np.flatnonzero(order == chosen)[0])
    return float(weights[order[:place]].sum() + rng.random() * weights[chosen])


def wrong_scale(kind: type, times: float) -> np.ndarray:
    """The probabilities of the bins of u if the noise is so many times as wide as the law, on a fine grid."""
    law = stats.laplace if kind is Laplace else stats.norm
    return np.diff(np.concatenate([[0.0], law.cdf(law.ppf(ENDS) / times), [1.0]]))


def draws_needed(right: np.ndarray, wrong: np.ndarray) -> int:
    """Return the number of draws with which a chi-square test at FALSE_FAIL misses ``wrong`` with probability at most FALSE_PASS."""
    freedom, effect = right.size - 1, float(((wrong - right) ** 2 / right).sum())
    critical = stats.chi2.isf(FALSE_FAIL, freedom)
    count = math.ceil(20 / right.min())
    while stats.ncx2.cdf(critical, freedom, count * effect) > FALSE_PASS:
        count = math.ceil(1.05 * count)
    return count


COARSE = np.array([0.1, 0.3, 0.5, 0.7, 0.9])  # ends for few draws, which tell a scale from its half and its double
ROUGHLY = (0.5, 2.0)


@functools.cache
def needed_roughly(kind: type) -> int:
    """Return the number of draws that tell each of ROUGHLY from the right scale, by the coarse bins."""
    law, right = (stats.laplace if kind is Laplace else stats.norm), np.diff(np.concatenate([[0.0], COARSE, [1.0]]))
    bins = [np.diff(np.concatenate([[0.0], law.cdf(law.ppf(COARSE) / times), [1.0]])) for times in ROUGHLY]
    return max(draws_needed(right, wrong) for wrong in bins)


@functools.cache
def needed_for_scales(kind: type) -> int:
    """Return the number of draws that tell each of SCALES from the right one."""
    return max(draws_needed(RIGHT, wrong_scale(kind, times)) for times in SCALES)


def p_value(counts: np.ndarray, right: np.ndarray) -> float:
    """Return the p-value of a chi-square test of counts against probabilities."""
    total = counts.sum()
    assert right.min() * total >= 20 * (1 - 1e-9), f"{total} draws are too few for bins as thin as {right.min():.2g}"
    return float(stats.chi2.sf(((counts - total * right) ** 2 / (total * right)).sum(), right.size - 1))


def is_uniform(u: np.ndarray, ends: np.ndarray = ENDS) -> bool:
    right = np.diff(np.concatenate([[0.0], ends, [1.0]]))
    return p_value(np.bincount(np.searchsorted(ends, u), minlength=right.size), right) > FALSE_FAIL


PAIRS = 5  # bins a side, in tests of two uniforms against each other


def are_independent(u: np.ndarray, v: np.ndarray) -> bool:
    """Pairs of uniforms fall into each square alike. Equal, opposite or sorted pairs do not: 500 are then enough."""
    squares = (PAIRS * u).astype(int).clip(0, PAIRS - 1) * PAIRS + (PAIRS * v).astype(int).clip(0, PAIRS - 1)
    return p_value(np.bincount(squares, minlength=PAIRS**2), np.full(PAIRS**2, PAIRS**-2)) > FALSE_FAIL


PAIRS_NEEDED = draws_needed(
    np.full(PAIRS**2, PAIRS**-2),  # against a fifth of the pairs being equal
    0.8 * np.full(PAIRS**2, PAIRS**-2) + 0.2 * np.eye(PAIRS).ravel() / PAIRS,
)
