"""Published variants of the sparse vector that are not as private as claimed, kept so that the audit can catch them.

The numbering is that of Lyu, Su & Li, *Understanding the sparse vector technique for differential privacy*. Each takes
the same arguments and claims ε-DP for 1-sensitive values and at most c answers above the threshold. All runs are played
at once: the result is runs × values, with 1 above, 0 below, −1 not answered, or the released number.
"""

import numpy as np


def algorithm_3(values, threshold, c, epsilon, runs, rng):
    """Releases the noisy value that was compared, which gives the noisy threshold away."""
    tau = rng.laplace(scale=2 / epsilon, size=(runs, 1))
    noisy = values + rng.laplace(scale=2 * c / epsilon, size=(runs, len(values)))
    above = noisy >= threshold + tau
    return _cut(np.where(above, noisy, 0.0), above, c)


def algorithm_4(values, threshold, c, epsilon, runs, rng):
    """Query noise that does not grow with c, and one threshold noise for all rounds."""
    tau = rng.laplace(scale=4 / epsilon, size=(runs, 1))
    noisy = values + rng.laplace(scale=1 / (0.75 * epsilon), size=(runs, len(values)))
    above = noisy >= threshold + tau
    return _cut(above.astype(float), above, c)


def algorithm_5(values, threshold, c, epsilon, runs, rng):
    """No query noise at all, and no end after c."""
    tau = rng.laplace(scale=2 / epsilon, size=(runs, 1))
    return (np.broadcast_to(values, (runs, len(values))) >= threshold + tau).astype(float)


def algorithm_6(values, threshold, c, epsilon, runs, rng):
    """Query noise that does not grow with c, and no end after c."""
    tau = rng.laplace(scale=2 / epsilon, size=(runs, 1))
    noisy = values + rng.laplace(scale=2 / epsilon, size=(runs, len(values)))
    return (noisy >= threshold + tau).astype(float)


def _cut(answers, above, c):
    """Nothing is answered after the c-th value above the threshold."""
    earlier = np.cumsum(above, axis=1) - above
    return np.where(earlier >= c, -1.0, answers)
