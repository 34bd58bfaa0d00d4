"""Privacy amplification by secret samples: the noise that a sample saves, and a check of every event that claims it.

Papers: Mironov, Talwar & Zhang "Rényi differential privacy of the sampled Gaussian mechanism" (its composition over
steps is in ``conversion.subsampled_epsilon``); Balle, Barthe & Gaboardi "Privacy amplification by subsampling" and
Fish, Reyzin & Rubinstein "Sampling without compromising accuracy", Proposition 6 (pure losses of a few random rows).

Symbols: q the rate at which each row enters the sample of a step, independently of the others; T the number of steps; Δ
the change of a sum when one row is added or removed; z = σ/Δ the noise multiplier.

Replacing a row is removing one row and adding another. So (ε/2, δ/(1 + e^{ε/2})) for adding or removing one row implies
(ε, δ) for replacing one.
"""

from __future__ import annotations

import math

from hedgerow.errors import InvalidInput
from hedgerow.privacy.conversion import subsampled_epsilon, subsampled_multiplier
from hedgerow.privacy.events import (
    COIN,
    DistinctRows,
    FlippedRows,
    Gaussian,
    PoissonSample,
    RepeatedRows,
    Subsampled,
    SubsampledGaussian,
    grid_at_most,
)

_MARGIN = 1e-6  # share of ε and δ kept for the difference between noise on a grid and continuous noise
_FINE = 5e-7  # rounding to the noise's grid adds at most this share of Δ, which is less than the margin of z


def sample_rate(heads: int) -> float:
    """Return the rate of a Poisson sample: the probability that a row is in it."""
    return heads / COIN


def subsampled_gaussian(
    epsilon: float, delta: float, neighbours: str, *, heads: int, steps: int, sensitivity: float, values: int
) -> SubsampledGaussian:
    """Return the event with the least noise that is (epsilon, delta)-private under ``neighbours``.

    Each of its ``steps`` sums has ``values`` values and the ℓ2 sensitivity ``sensitivity``.
    """
    z = _multiplier(epsilon, delta, heads, steps, neighbours)
    noise = Gaussian(sensitivity, z * sensitivity, grid_at_most(sensitivity * _FINE / math.sqrt(values)))
    return SubsampledGaussian(epsilon, delta, steps, PoissonSample(heads), noise)


def _multiplier(epsilon: float, delta: float, heads: int, steps: int, neighbours: str) -> float:
    """Return the noise multiplier σ/Δ, rounded up."""
    ε, δ = _for_rows_that_come_and_go(epsilon, delta, neighbours)
    return subsampled_multiplier(ε, δ, sample_rate(heads), steps) * (1 + 1e-6)


def _for_rows_that_come_and_go(epsilon: float, delta: float, neighbours: str) -> tuple[float, float]:
    """Return the (ε, δ) that must hold for adding or removing a row, less the margin."""
    ε, δ = epsilon * (1 - _MARGIN), delta * (1 - _MARGIN)
    return (ε / 2, δ / (1 + math.exp(ε / 2))) if neighbours == "replace" else (ε, δ)


def require_private(event: SubsampledGaussian, neighbours: str) -> None:
    """Refuse an event that states a smaller (ε, δ) than its draws have."""
    ε, δ = _for_rows_that_come_and_go(event.epsilon, event.delta, neighbours)
    noise = event.noise
    if not noise.grid <= noise.sensitivity * _FINE:
        raise InvalidInput(
            f"grid of subsampled noise must be at most {_FINE:g} of its sensitivity, because the proof is about "
            f"continuous noise. Found {noise.grid:.4g} and {noise.sensitivity:.4g}. Make the event with "
            "amplification.subsampled_gaussian."
        )
    z = noise.sigma / (noise.sensitivity * (1 + _FINE))
    if not subsampled_epsilon(z, δ, sample_rate(event.sample.heads), event.steps) <= ε:
        raise InvalidInput(
            f"epsilon of subsampled noise must be at least that of its {event.steps} steps. Found less, "
            f"{event.epsilon:.4g}. Make the event with amplification.subsampled_gaussian."
        )


# Pure losses. The exact formulas are methods of the samples in ``events``. The functions below invert and check them.


def inner_epsilon(sample: DistinctRows | RepeatedRows | PoissonSample, epsilon: float) -> float:
    """Return the ε′ available to a mechanism on the sample if the whole may cost ``epsilon``.

    This solves the sample's exact ``loss`` formula for ε′. The result is rounded down by more than the rounding error,
    so that the whole never costs more than ``epsilon``.
    """
    if isinstance(sample, RepeatedRows):
        rate, loss = 1 / sample.rows, epsilon / sample.size
    else:
        rate = sample_rate(sample.heads) if isinstance(sample, PoissonSample) else sample.size / sample.rows
        loss = epsilon
    if loss > 500:  # log(1 + (e^loss − 1)/rate) without overflow
        return (loss - math.log(rate) + math.log1p((rate - 1) * math.exp(-loss))) * (1 - 1e-14)
    return math.log1p(math.expm1(loss) / rate) * (1 - 1e-14)


def require_same_neighbors(event: Subsampled | FlippedRows, neighbours: str) -> None:
    """Refuse an event whose loss was worked out for the other kind of neighbours."""
    comes_and_goes = isinstance(event, Subsampled) and isinstance(event.sample, PoissonSample)
    if comes_and_goes != (neighbours == "add-remove"):
        raise InvalidInput(
            "A sample must be of fixed size under neighbours='replace', and a Poisson sample under "
            f"neighbours='add-remove'. Found the other kind for neighbours={neighbours!r}. "
            + (
                "Use PoissonSample at a public rate, or open with neighbours='replace'."
                if neighbours == "add-remove"
                else "Use DistinctRows or RepeatedRows."
            )
        )
