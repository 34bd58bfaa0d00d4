"""Privacy by secret samples: how much noise they save, and that an event claims no more than that.

Papers: Mironov, Talwar & Zhang "Rényi differential privacy of the sampled Gaussian mechanism"; the composition over steps is
in ``conversion.subsampled_epsilon``. Balle, Barthe & Gaboardi "Privacy amplification by subsampling" and Fish,
Reyzin & Rubinstein "Sampling without compromising accuracy", Proposition 6 (pure losses of a few rows at random).

Symbols: q the rate at which every row is in a step's sample, independently; T steps; Δ how far one row that comes or goes
moves a sum; z = σ/Δ the noise multiplier.

To replace a row is to remove one and add one, so (ε, δ) for replaced rows is (ε/2, δ/(1 + e^{ε/2})) for rows that come and go.
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

_MARGIN = 1e-6  # of ε and δ, for noise on a grid
_FINE = 5e-7  # of Δ: what rounding to the grid of the noise adds to it at most, less than z's own margin


def sample_rate(heads: int) -> float:
    return heads / COIN


def subsampled_gaussian(
    epsilon: float, delta: float, neighbours: str, *, heads: int, steps: int, sensitivity: float, values: int
) -> SubsampledGaussian:
    """The event of least noise that is (epsilon, delta)-private under the neighbours, for sums of so many values."""
    z = _multiplier(epsilon, delta, heads, steps, neighbours)
    noise = Gaussian(sensitivity, z * sensitivity, grid_at_most(sensitivity * _FINE / math.sqrt(values)))
    return SubsampledGaussian(epsilon, delta, steps, PoissonSample(heads), noise)


def _multiplier(epsilon: float, delta: float, heads: int, steps: int, neighbours: str) -> float:
    ε, δ = _for_rows_that_come_and_go(epsilon, delta, neighbours)
    return subsampled_multiplier(ε, δ, sample_rate(heads), steps) * (1 + 1e-6)


def _for_rows_that_come_and_go(epsilon: float, delta: float, neighbours: str) -> tuple[float, float]:
    ε, δ = epsilon * (1 - _MARGIN), delta * (1 - _MARGIN)
    return (ε / 2, δ / (1 + math.exp(ε / 2))) if neighbours == "replace" else (ε, δ)


def require_private(event: SubsampledGaussian, neighbours: str) -> None:
    """Refuse an event that claims less loss than its draws have."""
    ε, δ = _for_rows_that_come_and_go(event.epsilon, event.delta, neighbours)
    noise = event.noise
    if not noise.grid <= noise.sensitivity * _FINE:
        raise InvalidInput(
            f"grid of subsampled noise must be at most {_FINE:g} of its sensitivity, for the proof is of continuous noise. "
            f"Found {noise.grid:.4g} and {noise.sensitivity:.4g}. Make the event with amplification.subsampled_gaussian."
        )
    z = noise.sigma / (noise.sensitivity * (1 + _FINE))
    if not subsampled_epsilon(z, δ, sample_rate(event.sample.heads), event.steps) <= ε:
        raise InvalidInput(
            f"epsilon of subsampled noise must be what its {event.steps} steps have. Found less, {event.epsilon:.4g}. "
            "Make the event with amplification.subsampled_gaussian."
        )


# Pure losses: the exact formulas are the samples' own (``events``); here is what they need


def inner_epsilon(sample: DistinctRows | RepeatedRows | PoissonSample, epsilon: float) -> float:
    """The ε′ that what is drawn from the sample may have, where the whole may cost ε: the exact formula, solved.

    Rounded down by more than its rounding, so that it never costs more.
    """
    if isinstance(sample, RepeatedRows):
        rate, loss = 1 / sample.rows, epsilon / sample.size
    else:
        rate = sample_rate(sample.heads) if isinstance(sample, PoissonSample) else sample.size / sample.rows
        loss = epsilon
    if loss > 500:  # log(1 + (e^loss − 1)/rate) without overflow
        return (loss - math.log(rate) + math.log1p((rate - 1) * math.exp(-loss))) * (1 - 1e-14)
    return math.log1p(math.expm1(loss) / rate) * (1 - 1e-14)


def require_neighbours(event: Subsampled | FlippedRows, neighbours: str) -> None:
    """Refuse a loss that was worked out for other neighbours."""
    comes_and_goes = isinstance(event, Subsampled) and isinstance(event.sample, PoissonSample)
    if comes_and_goes != (neighbours == "add-remove"):
        raise InvalidInput(
            "A sample must be of fixed size where rows are replaced, and a Poisson sample where they come and go. Found the "
            f"other, for neighbours={neighbours!r}. "
            + (
                "Use PoissonSample at a public rate, or open with neighbours='replace'."
                if neighbours == "add-remove"
                else "Use DistinctRows or RepeatedRows."
            )
        )
