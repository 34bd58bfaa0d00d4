"""The cost of secret samples of a few rows: the exact loss of the worst neighbours, from the law of the outputs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy
from paying import paid

from hedgerow.audit.exact import Pair
from hedgerow.errors import InvalidInput
from hedgerow.privacy.amplification import inner_epsilon
from hedgerow.privacy.budget import Budget
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
from hedgerow.privacy.noise import Seeded

SAMPLES = [
    DistinctRows(1, 1), DistinctRows(1, 5), DistinctRows(3, 4), DistinctRows(4, 4),
    RepeatedRows(1, 1), RepeatedRows(2, 2), RepeatedRows(3, 5), RepeatedRows(6, 2), PoissonSample(COIN // 3),
]  # fmt: skip


def drawn(sample, ones: int, rows: int) -> np.ndarray:
    """P[j of the sample's values are 1], of a table with so many ones."""
    size = getattr(sample, "size", rows)
    j = np.arange(size + 1)
    if isinstance(sample, DistinctRows):
        return scipy.stats.hypergeom.pmf(j, rows, ones, size)
    if isinstance(sample, RepeatedRows):
        return scipy.stats.binom.pmf(j, size, ones / rows)
    return scipy.stats.binom.pmf(j, ones, sample.heads / COIN)


def released(sample, ones: int, rows: int, noise: Laplace) -> np.ndarray:
    """The law of the noisy count, far into both tails, relative to what it is worth there."""
    at = np.arange(-40, 60)
    law = [np.exp(-np.abs(at - j) / noise.scale) for j in range(len(drawn(sample, ones, rows)))]
    return drawn(sample, ones, rows) @ np.array(law) * math.tanh(0.5 / noise.scale)


@pytest.mark.parametrize("sample", SAMPLES, ids=repr)
@pytest.mark.parametrize("inner", [0.01, 0.4, 1.0, 2.5])
def test_the_loss_of_a_sampled_count_is_attained_and_exceeded_by_no_neighbours(sample, inner) -> None:
    event = Subsampled(sample, Laplace(1.0, 1 / inner))
    n = getattr(sample, "rows", 6)
    losses = []
    for ones in range(n):
        one, other = (released(sample, i, n, event.inner) for i in (ones, ones + 1))
        losses.append(float(np.abs(np.log(one / other)).max()))
    assert max(losses) == pytest.approx(event.epsilon, rel=1e-9)


def test_the_counterexample_to_proposition_7_costs_what_we_say_and_more_than_is_printed() -> None:
    """n = ℓ = 2, {1, 0} against {0, 0}, ε′ = 1: a row that is drawn twice moves the sum by two."""
    event = Subsampled(RepeatedRows(2, 2), Laplace(1.0, 1.0))
    one, other = released(event.sample, 1, 2, event.inner), released(event.sample, 0, 2, event.inner)
    loss = Pair.of(one, other).epsilon
    printed = math.log(1 + (1 - (1 - 1 / 2) ** 2) * math.expm1(1.0))
    assert loss == pytest.approx(event.epsilon, rel=1e-6)
    assert event.epsilon == pytest.approx(2 * math.log((1 + math.e) / 2), rel=1e-12)
    assert printed < 0.7 * loss


@pytest.mark.parametrize("sample", [*SAMPLES, DistinctRows(100, 10**9), RepeatedRows(10**5, 10**9)], ids=repr)
@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.3, 4.0, 700.0])
def test_the_exact_formula_is_solved_and_never_costs_more(sample, epsilon) -> None:
    cost = sample.loss(inner_epsilon(sample, epsilon))
    assert cost <= epsilon * (1 + 1e-13) and cost == pytest.approx(epsilon, rel=1e-9)


def test_a_sampled_choice_is_billed_by_the_same_formula() -> None:
    event = Subsampled(DistinctRows(3, 10), Exponential(1.0, 0.7))
    assert event.epsilon == pytest.approx(math.log(1 + 0.3 * math.expm1(0.7)))
    assert event.rho == pytest.approx(event.epsilon * math.tanh(event.epsilon / 2))


@pytest.mark.parametrize(("heads", "rows"), [(COIN // 10, 1), (COIN // 10, 7), (COIN // 3, 2), (COIN // 1000, 500)])
def test_the_loss_of_a_flip_is_attained_and_exceeded_by_no_neighbours(heads, rows) -> None:
    event = FlippedRows(heads, rows)
    yes = [event.flip + (1 - 2 * event.flip) * i / rows for i in range(rows + 1)]
    losses = [max(abs(math.log(b / a)), abs(math.log((1 - b) / (1 - a)))) for a, b in itertools.pairwise(yes)]
    assert max(losses) == pytest.approx(event.each, rel=1e-9)
    assert FlippedRows(heads, rows, 9).epsilon == pytest.approx(9 * event.each)
    assert FlippedRows(heads, rows, 9).rho == pytest.approx(9 * event.each * math.tanh(event.each / 2))


def test_a_loss_is_charged_only_under_the_neighbours_it_was_worked_out_for() -> None:
    replaced, come_and_go = Budget(1.0, 1e-6), Budget(1.0, 1e-6, "add-remove")
    poisson = Subsampled(PoissonSample(5), Laplace(1.0, 1.0))
    assert come_and_go.cost(poisson) > 0
    with pytest.raises(InvalidInput, match="Use DistinctRows or RepeatedRows"):
        replaced.cost(poisson)
    for event in (Subsampled(DistinctRows(1, 9), Laplace(1.0, 1.0)), FlippedRows(COIN // 8, 9)):
        assert replaced.cost(event) > 0
        with pytest.raises(InvalidInput, match="Use PoissonSample at a public rate"):
            come_and_go.cost(event)


def test_rows_are_drawn_as_they_were_paid_for_each_set_as_likely() -> None:
    """χ² of 1500 samples on the 10 pairs of 5 rows, and on the 25 sequences: seeded; p below 10⁻⁶ would be a defect."""
    noise = Seeded(3)
    for sample, cells in ((DistinctRows(2, 5), 10), (RepeatedRows(2, 5), 25)):
        seen: dict[tuple[int, ...], int] = {}
        for _ in range(1500):
            found = noise.draw_rows(paid(Subsampled(sample, Laplace(1.0, 1.0))))
            key = tuple(sorted(found.tolist())) if cells == 10 else tuple(found.tolist())
            seen[key] = seen.get(key, 0) + 1
        assert len(seen) == cells
        assert scipy.stats.chisquare(list(seen.values())).pvalue > 1e-6


def test_flips_say_yes_as_often_as_their_law_has_it() -> None:
    """100,000 flips of a table where 3 of 10 say yes, with lies of ⅛: five standard deviations are below 0.008."""
    said = Seeded(4).flips(lambda indices: indices < 3, paid(FlippedRows(COIN // 8, 10, 100_000)))
    assert said.dtype == bool and abs(said.mean() - (1 / 8 + 6 / 8 * 0.3)) < 0.008
