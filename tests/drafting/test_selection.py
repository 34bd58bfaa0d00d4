"""The selection of values to name: only common ones, and a value of a single row with probability at most δ."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal, localcontext

import numpy as np
import pytest
from paying import paid

import hedgerow as hr
from hedgerow.audit import exact
from hedgerow.data.value_counts import ValueCounts
from hedgerow.drafting.selection import common_values, threshold_event
from hedgerow.errors import InvalidInput
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.events import Gaussian, ThresholdedCounts
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise, Seeded

BUDGET = hr.Budget(1.0, 1e-6)


def exact_tail(sigma: float, k: int) -> float:
    """P[Z ≥ k] of the discrete Gaussian, in forty digits."""
    with localcontext() as context:
        context.prec = 40
        weight = [(-(Decimal(j) ** 2) / (2 * Decimal(sigma) ** 2)).exp() for j in range(int(60 * sigma) + 200)]
        return float(sum(weight[k:]) / (2 * sum(weight) - 1))


@pytest.mark.parametrize("sigma", [0.3, 0.7, 1.0, 3.0, 11.3, 80.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_the_delta_of_a_threshold_is_at_least_the_exact_tail_and_hardly_more(sigma, delta) -> None:
    amount = Amount(BUDGET, 1 / sigma**2)  # ρ = Δ²/2σ² with Δ = √2
    event = threshold_event(amount, delta)
    assert event.noise.sigma == pytest.approx(sigma)
    tail = exact_tail(event.noise.sigma, event.threshold - 1)
    assert tail <= event.delta <= 1.25 * tail
    assert event.delta <= delta


@pytest.mark.parametrize("sigma", [0.7, 3.0, 80.0])
def test_the_threshold_is_the_least_whose_tail_fits(sigma) -> None:
    event = threshold_event(Amount(BUDGET, 1 / sigma**2), 1e-6)
    assert event.threshold == 2 or ThresholdedCounts(event.noise, event.threshold - 1).delta > 1e-6


def test_a_value_of_one_row_is_told_as_often_as_the_event_says() -> None:
    """With a large δ, so that it is seen: 20,000 draws, five standard deviations either way."""
    event, runs = ThresholdedCounts(Gaussian(math.sqrt(2), 3.0), 5), 20_000
    noisy = Noise().add(np.ones(runs, np.int64), paid(event))
    told, tail = float(np.mean(noisy >= event.threshold)), exact_tail(3.0, 4)
    assert abs(told - tail) < 5 * math.sqrt(tail / runs)
    assert tail <= event.delta


PAIRS = [([1, 30], [0, 31]), ([1, 0], [0, 1]), ([30, 30], [29, 31]), ([1, 30], [0, 30])]


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_no_pair_of_neighbours_has_more_than_the_claim(pair) -> None:
    """By the exact laws of both: δ(ε) is at most the event's own δ and that of the noise."""
    event = ThresholdedCounts(Gaussian(math.sqrt(2), 4.0), 18)
    law = exact.thresholded_pair(event.noise, event.threshold, *pair)
    noise = exact.gaussian_pair(event.noise, shift=1.0).then(exact.gaussian_pair(event.noise, shift=1.0))
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0):
        assert law.delta(epsilon) <= event.delta + noise.delta(epsilon)
    assert law.delta(20.0) >= 0.7 * event.delta or 0 not in pair[1]  # the tail is there, and no smaller than said


def test_only_released_values_are_recorded() -> None:
    event = threshold_event(Amount(BUDGET, 0.01), 1e-7)
    tally = ValueCounts(Counter({"F": 900, "M": 800, "alone": 1, **{f"id{i}": 1 for i in range(50)}}), missing=700)
    ledger = Accountant(BUDGET, slack=5e-7)
    told = common_values(tally, event, ledger, Seeded(1), "values of sex")
    assert [value for value, _ in told] == ["F", "M", None]
    (entry,) = ledger.entries()
    assert entry.released == (told,) and entry.why == "values of sex"
    assert "alone" not in repr(entry) and "id1" not in repr(entry)
    assert ledger.slack == pytest.approx(5e-7 - event.delta)


def test_an_empty_column_tells_nothing() -> None:
    event = threshold_event(Amount(BUDGET, 0.01), 1e-7)
    assert common_values(ValueCounts(), event, Accountant(BUDGET, slack=5e-7), Seeded(1), "") == ()


@pytest.mark.parametrize("delta", [0.0, 0.5, -1.0, math.nan])
def test_a_threshold_needs_a_delta(delta) -> None:
    with pytest.raises(InvalidInput, match=r"delta must be above 0 and below 0\.5"):
        threshold_event(Amount(BUDGET, 0.05), delta)


def test_an_event_that_would_tell_every_value_is_refused() -> None:
    with pytest.raises(InvalidInput, match="threshold must be at least 2"):
        ThresholdedCounts(Gaussian(1.0, 3.0), 1)
    with pytest.raises(InvalidInput, match="grid must be 1 for counts"):
        ThresholdedCounts(Gaussian(1.0, 3.0, 0.5), 9)


def test_a_pure_budget_cannot_pay_for_it() -> None:
    assert hr.Budget(5.0, 0.0).cost(ThresholdedCounts(Gaussian(1.0, 3.0), 30)) == math.inf
    with pytest.raises(hr.BudgetExceeded, match="delta must be at most"):
        Accountant(BUDGET).charge(ThresholdedCounts(Gaussian(1.0, 9.0), 60))
