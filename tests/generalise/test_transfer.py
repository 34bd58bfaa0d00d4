"""The transfer theorems as functions: their constants, their inverses, and their form for add-remove neighbours."""

from __future__ import annotations

import itertools
import math

import pytest

from hedgerow.errors import InvalidInput
from hedgerow.generalise import transfer
from hedgerow.privacy.budget import Budget

ALPHAS, BETAS = (0.05, 0.1, 0.3), (0.01, 0.05, 0.2)
pairs = pytest.mark.parametrize(("alpha", "beta"), list(itertools.product(ALPHAS, BETAS)))


@pairs
def test_the_rows_of_theorem_4_give_its_accuracy(alpha: float, beta: float) -> None:
    needs = transfer.theorem_4(alpha, beta)
    found = transfer.monitored_error(needs.epsilon, needs.delta, needs.sample_error, needs.sample_beta, beta)
    assert found <= alpha
    assert found >= alpha / 8  # no better than the sample: the check has power


@pairs
def test_the_rows_of_theorem_10_give_its_accuracy(alpha: float, beta: float) -> None:
    needs = transfer.theorem_10(alpha, beta, queries=500)
    found = transfer.counted_by_sampling(needs.epsilon, needs.delta, needs.sample_error, needs.rows, 500, beta)
    assert needs.sample_error < found <= alpha


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_rows_of_proposition_20_give_its_accuracy(alpha: float) -> None:
    needs = transfer.proposition_20(alpha)
    assert needs.sample_error < transfer.in_expectation(needs.epsilon, needs.delta, needs.sample_error) <= alpha


def test_theorem_10_counts_negations_too() -> None:
    printed = 1024 * math.log(500 / 0.05) / 0.1**2
    assert transfer.theorem_10(0.1, 0.05, 500).rows == pytest.approx(printed + 1024 * math.log(2) / 0.1**2)


@pytest.mark.parametrize(("delta", "sample_beta"), [(0.0, 1e-4), (1e-6, 1e-4), (1e-5, 1e-8)])
def test_the_price_of_failures_is_the_least_that_the_theorem_allows(delta: float, sample_beta: float) -> None:
    beta, best = 0.05, math.inf
    for c in (10 ** (e / 2000) for e in range(-18_000, 1)):
        left = beta - sample_beta / c
        if left > 0:
            best = min(best, c + 2 * delta / left)
    assert transfer.jung_extra(delta, sample_beta, beta) == pytest.approx(best, rel=2e-3)
    assert transfer.jung_extra(delta, sample_beta, beta) <= best


def test_the_newer_theorem_needs_no_more_privacy_than_the_older() -> None:
    for alpha, beta in itertools.product(ALPHAS, BETAS):
        needs = transfer.theorem_4(alpha, beta)
        given = (needs.epsilon, needs.delta * 1e-3, needs.sample_error, needs.sample_beta * 1e-3, beta)
        assert transfer.jung(*given) <= transfer.monitored_error(*given) * 1.001


def test_jung_at_known_numbers() -> None:
    assert transfer.jung(0.01, 0.0, 0.02, 0.0, 0.05) == pytest.approx(0.02 + math.expm1(0.01))
    assert transfer.jung(0.01, 0.0, 0.02, 1e-4, 0.05) == pytest.approx(0.02 + math.expm1(0.01) + 0.002)
    assert transfer.jung(0.0, 1e-6, 0.02, 0.0, 0.05) == pytest.approx(0.02 + 2e-6 / 0.05)


def test_every_way_back_leads_there() -> None:
    epsilon = transfer.jung_epsilon(0.1, 1e-7, 0.03, 1e-5, 0.05)
    assert transfer.jung(epsilon, 1e-7, 0.03, 1e-5, 0.05) == pytest.approx(0.1)
    epsilon = transfer.monitored_epsilon(0.1, 1e-7, 0.03, 1e-5, 0.05)
    assert transfer.monitored_error(epsilon, 1e-7, 0.03, 1e-5, 0.05) == pytest.approx(0.1)
    epsilon = transfer.in_expectation_epsilon(0.1, 0.01, 0.03)
    assert transfer.in_expectation(epsilon, 0.01, 0.03) == pytest.approx(0.1)
    rows = transfer.sample_gap_rows(0.1, 0.02, 1e-7, 1000, 0.05)
    assert transfer.sample_gap(0.02, 1e-7, rows, 1000, 0.05) == pytest.approx(0.1, rel=1e-6)
    assert transfer.sample_gap(0.02, 1e-7, rows / 1.01, 1000, 0.05) > 0.1


@pytest.mark.parametrize(("delta", "beta"), [(1e-7, 0.05), (1e-4, 0.2), (0.0, 0.01)])
def test_a_sixteenth_of_what_privacy_leaves_pays_for_failures_on_the_sample(delta: float, beta: float) -> None:
    alpha, epsilon = 0.1, 0.03
    needs = transfer.on_sample(alpha, epsilon, delta, beta)
    assert 16 * needs.sample_beta / beta == pytest.approx(alpha - math.expm1(epsilon) - 2 * delta / beta)
    assert transfer.jung(epsilon, delta, needs.sample_error, needs.sample_beta, beta) == pytest.approx(alpha)


def test_tables_that_no_sample_can_answer_are_refused() -> None:
    with pytest.raises(InvalidInput, match="alpha must be above"):
        transfer.sample_gap_rows(0.1, 0.5, 0.0, 10, 0.05)
    with pytest.raises(InvalidInput, match="alpha must be above"):
        transfer.jung_epsilon(0.1, 0.0, 0.2, 0.0, 0.05)
    with pytest.raises(InvalidInput, match="alpha must be above"):
        transfer.monitored_epsilon(0.1, 0.0, 0.2, 0.0, 0.05)
    with pytest.raises(InvalidInput, match="beta must be"):
        transfer.jung(0.1, 0.0, 0.2, 0.0, 0.0)


def test_rows_that_come_and_go_transfer_as_one_that_is_replaced() -> None:
    assert transfer.replace_one(Budget(0.1, 1e-6)) == (0.1, 1e-6)
    assert transfer.replace_one(Budget(0.1, 1e-6, "add-remove")) == (0.2, pytest.approx(1e-6 * (1 + math.exp(0.1))))


def test_a_promise_that_says_nothing_is_one() -> None:
    assert transfer.jung(1.0, 0.0, 0.0, 0.0, 0.05) == 1.0
    assert transfer.sample_gap(5000.0, 0.0, 100, 10, 0.05) == 1.0
    assert transfer.theorem_8(0.01, 0.0, 1, 1e-3) == 1.0


def test_few_words_is_hoeffding_for_one_query_and_grows_with_what_can_be_asked() -> None:
    assert transfer.few_words(1000, 0.0, 0.05) == pytest.approx(math.sqrt(math.log(40) / 2000))
    assert transfer.naive(10_000, 100, 10, 0.05) > 5 * transfer.few_words(10_000, 0.0, 0.05)


def test_theorem_8_counts_noise_sample_and_privacy() -> None:
    expected = 1 / (400 * 0.5) + 1 / 40 + math.expm1(0.02) + 1e-3
    assert transfer.theorem_8(0.02, 1e-3, 400, 0.5) == pytest.approx(expected)
