"""Every formula of a loss on secret samples, against all samples of tiny tables: exact laws of outputs, exact losses.

Tables are all that there are of a few rows of values 0 and 1 (and two candidates' scores), samples are all there are with their probabilities, and
noise is on whole numbers, so that its law is a geometric one whose tails are summed.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from loss_laws import Losses, delta
from scipy.stats import norm

from hedgerow.privacy import amplification
from hedgerow.privacy.events import (
    COIN,
    DistinctRows,
    Exponential,
    FlippedRows,
    Laplace,
    PoissonSample,
    RepeatedRows,
    Subsampled,
)

ROUNDED = 1e-9
Sample = DistinctRows | RepeatedRows | PoissonSample
FIXED: list[Sample] = [kind(size, n) for kind in (DistinctRows, RepeatedRows) for n in (1, 2, 4) for size in (1, 2, 3, 4) if kind is RepeatedRows or size <= n]  # fmt: skip
POISSON: list[Sample] = [PoissonSample(heads) for heads in (1, COIN // 10, COIN // 2, COIN)]


def samples(sample: Sample, n: int) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Each sample of n rows, by their numbers, with its probability."""
    match sample:
        case DistinctRows(size=size):
            every = list(itertools.combinations(range(n), size))
            yield from ((1 / len(every), rows) for rows in every)
        case RepeatedRows(size=size):
            yield from ((n**-size, rows) for rows in itertools.product(range(n), repeat=size))
        case PoissonSample(heads=heads):
            q = heads / COIN
            for rows in itertools.chain.from_iterable(itertools.combinations(range(n), k) for k in range(n + 1)):
                yield q ** len(rows) * (1 - q) ** (n - len(rows)), rows


def noisy_sum(sample: Sample, values: tuple[int, ...], epsilon: float) -> np.ndarray:
    """The law of the sample's sum with discrete Laplace noise; its ends are of all that is beyond."""
    r, k = math.exp(-epsilon), np.arange(-3, 10)
    law = np.zeros(k.size)
    for p, rows in samples(sample, len(values)):
        away = k - sum(values[i] for i in rows)
        each = (1 - r) / (1 + r) * r ** np.abs(away)
        each[[0, -1]] = 1 / (1 + r) * r ** np.abs(away[[0, -1]])  # where every ratio is that of the last
        law += p * each
    return law


def choice(sample: Sample, scores: tuple[tuple[int, int], ...], epsilon: float) -> np.ndarray:
    """The law of the exponential mechanism on scores summed over the sample."""
    law = np.zeros(2)
    for p, rows in samples(sample, len(scores)):
        total = epsilon / 2 * np.array([sum(scores[i][j] for i in rows) for j in range(2)], dtype=float)
        law += p * np.exp(total - np.logaddexp(*total))
    return law


def neighbours(sample: Sample, kinds: tuple, most: int = 4) -> Iterator[tuple[tuple, tuple]]:
    """All pairs of tables with the values ``kinds``, one row of which is another, or is not there."""
    if isinstance(sample, PoissonSample):
        for n in range(1, most):
            yield from ((rows, rows[1:]) for rows in itertools.combinations_with_replacement(kinds, n))
            yield from ((rows, rows[:-1]) for rows in itertools.combinations_with_replacement(kinds, n))
        return
    for rest in itertools.combinations_with_replacement(kinds, sample.rows - 1):
        yield from (((one, *rest), (other, *rest)) for one, other in itertools.permutations(kinds, 2))


def largest_loss(pairs: Iterator[tuple[np.ndarray, np.ndarray]]) -> float:
    return max(float(np.abs(np.log(p / q)).max()) for p, q in pairs)


@pytest.mark.parametrize("inner", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("sample", FIXED + POISSON, ids=repr)
def test_noise_on_a_sample_loses_exactly_what_the_formula_says(sample: Sample, inner: float) -> None:
    event = Subsampled(sample, Laplace(1.0, 1 / inner))
    found = largest_loss(
        (noisy_sum(sample, one, inner), noisy_sum(sample, other, inner)) for one, other in neighbours(sample, (0, 1))
    )
    assert found == pytest.approx(event.epsilon, rel=ROUNDED)
    assert amplification.inner_epsilon(sample, event.epsilon) == pytest.approx(inner, rel=1e-6)
    assert Subsampled(sample, Laplace(1.0, 1 / amplification.inner_epsilon(sample, 0.3))).epsilon <= 0.3 * (1 + 1e-12)


@pytest.mark.parametrize("inner", [0.1, 3.0])
@pytest.mark.parametrize("sample", [sample for sample in FIXED if sample.size < 4] + POISSON, ids=repr)
def test_a_choice_from_a_sample_loses_no_more_than_the_formula_says(sample: Sample, inner: float) -> None:
    event = Subsampled(sample, Exponential(1.0, inner))
    # what one row may do to a score: come with ±1, or be another between 0 and 1
    kinds = ((0, 0), (1, -1), (-1, 1)) if isinstance(sample, PoissonSample) else ((0, 0), (0, 1), (1, 0), (1, 1))
    law = functools.cache(lambda rows: choice(sample, rows, inner))
    found = largest_loss((law(one), law(other)) for one, other in neighbours(sample, kinds, 3))
    assert 0.02 * event.epsilon <= found <= event.epsilon * (1 + ROUNDED)


@pytest.mark.parametrize("lies", [2.0**-10, 0.1, 0.49])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_flips_of_all_tables_lose_exactly_what_the_formula_says(n: int, lies: float) -> None:
    """Two flips of one table: the row of each is drawn anew, and so is each lie."""
    event = FlippedRows(math.floor(lies * COIN), n, 2)
    α = event.heads / COIN

    def law(yes: int) -> np.ndarray:
        p = sum((1 - α if row < yes else α) / n for row in range(n))
        return np.array([p * p, p * (1 - p), (1 - p) ** 2])

    found = largest_loss((law(i), law(i + 1)) for i in range(n))
    assert found == pytest.approx(event.epsilon, rel=1e-6)


def mixtures(z: float, q: float, relation: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """The two laws of a step's noisy sum, in cells: the row is 1, or not there; or 1 and, replaced, −1."""
    edges = np.concatenate([[-np.inf], np.linspace(-9 * z - 1, 9 * z + 1, 4001), [np.inf]])

    def cells(row: float) -> np.ndarray:
        return (1 - q) * np.diff(norm.cdf(edges / z)) + q * np.diff(norm.cdf((edges - row) / z))

    one, other = cells(1.0), cells(0.0 if relation == "add-remove" else -1.0)
    keep = (one > 1e-30) & (other > 1e-30)
    return [(one[keep], other[keep]), (other[keep], one[keep])]


POISSON_CASES = [
    (1.0, 1e-5, 0.1, 1),
    (1.0, 1e-5, 0.1, 30),
    (0.5, 1e-6, 0.01, 1000),
    (4.0, 1e-3, 0.5, 3),
    (1.0, 1e-5, 1.0, 5),
]


def share_of_delta(relation: str, epsilon: float, delta_: float, rate: float, steps: int, less: float = 1.0) -> float:
    """The δ of all steps, composed, in the worse direction, as a share of what the event says; with so many times less noise."""
    event = amplification.subsampled_gaussian(
        epsilon, delta_, relation, heads=math.ceil(rate * COIN), steps=steps, sensitivity=1.0, values=1
    )
    z, q = event.noise.sigma / event.noise.sensitivity / less, event.sample.heads / COIN
    laws = [Losses(atoms=((tuple(np.log(p / against)), tuple(p), steps),)) for p, against in mixtures(z, q, relation)]
    return max(delta(law, epsilon) for law in laws) / delta_


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize(("epsilon", "delta_", "rate", "steps"), POISSON_CASES)
def test_noise_on_poisson_samples_has_no_more_delta_than_its_event_says(relation, epsilon, delta_, rate, steps) -> None:
    """Cells show a little less than there is: by less than 1 %."""
    assert share_of_delta(relation, epsilon, delta_, rate, steps) <= 0.99
    assert share_of_delta(relation, epsilon, delta_, rate, steps, less=3.0) > 1
