"""Sampling counting queries, counts that can be stopped at any time, and Theorem 11 on simulated populations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sequential import is_kept

from hedgerow.data.row_values import STEPS
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.generalise import transfer
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import COIN, FlippedRows, Laplace
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Seeded
from hedgerow.textbook import scq

N = 1000


def fifth(indices: np.ndarray) -> np.ndarray:
    """One row in five says yes."""
    return np.where(indices % 5 == 0, STEPS, 0)


def test_an_answer_is_one_row_and_one_coin_and_costs_exactly_that() -> None:
    config, ledger = scq.scq(N, 0.1), Accountant(Budget(1.0, 0.0))
    found = scq.sample_yes_no(config, fifth, N, ledger, Seeded(0))
    assert found.shape == (1,) and found.dtype == bool
    α = config.heads / COIN
    assert 0.1 - 2**-32 < α <= 0.1
    assert ledger.spent == pytest.approx(math.log(1 + (1 - 2 * α) / (α * N)), rel=1e-12)
    assert ledger.entries()[0].event == FlippedRows(config.heads, N, 1) and ledger.entries()[0].released[0] == found


def test_answers_average_to_within_alpha_of_the_table() -> None:
    """Lemma 12: the expectation is q + α(1 − 2q). 200,000 answers: five standard deviations are 0.005."""
    config = scq.scq(N, 0.1)
    said = scq.sample_yes_no(config, fifth, N, Accountant(Budget(1e9, 0.0)), Seeded(1), 200_000).mean()
    assert abs(said - (0.2 + 0.1 * 0.6)) < 0.005
    assert abs(scq.honest(said, config.flip) - 0.2) < 0.005 / 0.8


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: scq.scq(N, 0.5), "below 1/2"),
        (lambda: scq.scq(N, 1e-12), "at least 2"),
        (lambda: scq.scq(0, 0.1), "rows must be"),
        (
            lambda: scq.sample_yes_no(scq.scq(2 * N, 0.1), fifth, N, Accountant(Budget(1.0, 0.0)), Seeded(0)),
            "table's 1000 rows",
        ),
        (
            lambda: scq.sample_yes_no(scq.scq(N, 0.1), fifth, N, Accountant(Budget(1.0, 0.0, "add-remove")), Seeded(0)),
            "Poisson",
        ),
    ],
)
def test_events_are_refused_where_their_loss_is_not_proven(make, said) -> None:
    with pytest.raises(InvalidInput, match=said):
        make()


# Counts


def test_an_interval_narrows_as_it_runs_and_ends_with_the_budget() -> None:
    ledger, config = Accountant(Budget(2.0, 1e-6)), scq.scq(100_000, 0.05)
    found = list(scq.count_by_flips(config, fifth, 100_000, ledger, Seeded(2), beta=0.05, at_once=20_000))
    assert len(found) > 10
    for earlier, later in itertools.pairwise(found):
        assert earlier.low <= later.low <= later.value <= later.high <= earlier.high
        assert later.flips == earlier.flips + 20_000 and later.cost > earlier.cost
    assert found[-1].low <= 0.2 <= found[-1].high and found[-1].error < 0.01
    assert found[-1].cost == pytest.approx(ledger.spent)
    with pytest.raises(BudgetExceeded):
        next(scq.count_by_flips(config, fifth, 100_000, ledger, Seeded(2), beta=0.05, at_once=20_000))


def test_flips_come_a_tenth_more_at_a_time_unless_told() -> None:
    counted = scq.count_by_flips(scq.scq(N, 0.2), fifth, N, Accountant(Budget(1e9, 0.0)), Seeded(0), beta=0.1)
    assert [c.flips for c in itertools.islice(counted, 25)][-6:] == [20, 22, 24, 26, 28, 30]


def test_an_interval_holds_at_every_moment_so_that_one_may_stop_by_looking() -> None:
    """Each run is a failure if any of its 120 intervals misses: β = 0.1 is kept, and three times that would be noticed."""
    β = 0.1

    def misses(seed: int) -> bool:
        yes = np.cumsum(np.random.default_rng([seed, 5]).random(120) < 0.26)
        ends = [scq.interval(int(yes[t]), t + 1, β) for t in range(120)]
        return any(not low <= 0.26 <= high for low, high in ends)

    assert is_kept(map(misses, itertools.count()), β, 3 * β)


def test_an_interval_is_what_the_mixture_does_not_rule_out() -> None:
    for yes, asked in ((0, 1), (0, 50), (50, 50), (3, 10), (500, 1000), (1, 10**6)):
        low, high = scq.interval(yes, asked, 0.05)
        assert 0 <= low <= yes / asked <= high <= 1 and (low == 0) == (yes == 0) and (high == 1) == (yes == asked)
        mirrored = scq.interval(asked - yes, asked, 0.05)
        assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-9)
    # about twice the width of the normal interval, for never having to say when one looks
    low, high = scq.interval(5000, 10_000, 0.05)
    assert 1.96 * 0.5 / 100 < (high - low) / 2 < 2.1 * 1.96 * 0.5 / 100


def test_proposition_13_needs_as_many_flips_as_algorithm_1_needs_rows() -> None:
    assert scq.samples_for(0.1, 0.05, 10) == math.ceil(2 * math.log(4 * 10 / 0.05) / 0.01)


# The population


def test_theorem_11_expectations_are_within_alpha_of_the_population_under_an_adaptive_analyst() -> None:
    """Uniform bits; the analyst asks each bit, then for the majority of those that said yes. E[M(q)] is known from the table."""
    α, β, k = 0.6, 0.2, 40
    n = scq.population_rows(alpha=α, beta=β, queries=k)
    config, budget = scq.for_population(n, alpha=α, beta=β, queries=k)
    assert config.flip == pytest.approx(α / 2) and n >= transfer.theorem_10(α, β, k).rows

    def fails(seed: int) -> bool:
        bits = np.random.default_rng(seed).integers(0, 2, (n, k - 1))
        ledger, noise = Accountant(budget), Seeded(seed)
        said = [
            scq.sample_yes_no(config, lambda rows, j=j: bits[rows, j] * STEPS, n, ledger, noise)[0]
            for j in range(k - 1)
        ]
        common = (bits == np.array(said)).mean(axis=1) >= 0.5
        scq.sample_yes_no(config, lambda rows: common[rows] * STEPS, n, ledger, noise)
        in_table = [*bits.mean(axis=0), common.mean()]
        truth = [*[0.5] * (k - 1), _majority(k - 1)]
        expected = [config.flip + (1 - 2 * config.flip) * q for q in in_table]
        assert ledger.spent <= budget.total * (1 + 1e-12)
        return any(abs(e - t) > α for e, t in zip(expected, truth, strict=True))

    assert is_kept(map(fails, itertools.count()), β, 3 * β)
    with pytest.raises(InvalidInput, match=f"rows must be at least {n}"):
        scq.for_population(n - 1, alpha=α, beta=β, queries=k)


def _majority(d: int) -> float:
    """P[at least half of d fair bits agree with a fixed pattern]."""
    return sum(math.comb(d, j) for j in range((d + 1) // 2, d + 1)) / 2**d


def test_the_naive_converse_reads_every_row_and_costs_more() -> None:
    looked: list[int] = []

    def watching(indices: np.ndarray) -> np.ndarray:
        looked.extend(indices.tolist())
        return fifth(indices)

    ledger = Accountant(Budget(1e6, 0.0))
    said = [scq.naive_flip(0.05, 0.05, watching, N, ledger, Seeded(s)) for s in range(300)]
    assert looked[:N] == list(range(N)) and len(looked) == 300 * N
    assert abs(np.mean(said) - 0.2) < 0.12  # five standard deviations
    naive, honest = Laplace(1.0, 0.05 * N / math.log(20), 1 / STEPS), scq.scq(N, 0.05).event()
    assert ledger.entries()[0].event == naive and naive.epsilon > 2.5 * honest.epsilon
