"""Published variants of the sparse vector that are not as private as claimed, kept so that the audit can catch them.

The numbering is that of Lyu, Su & Li, *Understanding the sparse vector technique for differential privacy*. Each takes
the same arguments and claims ε-DP for 1-sensitive values and at most c answers above the threshold. All runs are played
at once. The result is a table of runs × values: 1 above, 0 below, −1 not answered, or the released number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array


def algorithm_3(values: Array, threshold: float, c: int, epsilon: float, runs: int, rng: np.random.Generator) -> Array:
    """Release the noisy value that was compared, which gives the noisy threshold away."""
    tau = rng.laplace(scale=2 / epsilon, size=(runs, 1))
    noisy = values + rng.laplace(scale=2 * c / epsilon, size=(runs, len(values)))
    above = noisy >= threshold + tau
    return _stop_after(np.where(above, noisy, 0.0), above, c)


def algorithm_4(values: Array, threshold: float, c: int, epsilon: float, runs: int, rng: np.random.Generator) -> Array:
    """Use query noise that does not grow with c, and one threshold noise for all rounds."""
    tau = rng.laplace(scale=4 / epsilon, size=(runs, 1))
    noisy = values + rng.laplace(scale=1 / (0.75 * epsilon), size=(runs, len(values)))
    above = noisy >= threshold + tau
    return _stop_after(above.astype(float), above, c)


def algorithm_5(values: Array, threshold: float, c: int, epsilon: float, runs: int, rng: np.random.Generator) -> Array:
    """Use no query noise at all, and never stop after c."""
    tau = rng.laplace(scale=2 / epsilon, size=(runs, 1))
    return (np.broadcast_to(values, (runs, len(values))) >= threshold + tau).astype(float)


def algorithm_6(values: Array, threshold: float, c: int, epsilon: float, runs: int, rng: np.random.Generator) -> Array:
    """Use query noise that does not grow with c, and never stop after c."""
    tau = rng.laplace(scale=2 / epsilon, size=(runs, 1))
    noisy = values + rng.laplace(scale=2 / epsilon, size=(runs, len(values)))
    return (noisy >= threshold + tau).astype(float)


def gaps_on_both_sides(values: Array, threshold: float, epsilon: float, runs: int, rng: np.random.Generator) -> Array:
    """Release by how much each noisy value missed the noisy threshold, below it as well, and never stop."""
    tau = rng.laplace(scale=2 / epsilon, size=(runs, 1))
    noisy = values + rng.laplace(scale=4 / epsilon, size=(runs, len(values)))
    gaps: Array = noisy - threshold - tau
    return gaps


def _stop_after(answers: Array, above: NDArray[np.bool_], c: int) -> Array:
    """Leave every value after the c-th above the threshold unanswered."""
    earlier: Array = np.cumsum(above, axis=1) - above
    return np.where(earlier >= c, -1.0, answers)
