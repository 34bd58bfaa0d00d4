"""The exact checker agrees with closed forms and brute force, and finds an event that claims too little."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from paying import paid

from hedgerow.audit import (
    Pair,
    above_threshold_pair,
    check_pair,
    exponential_pair,
    gaussian_pair,
    laplace_pair,
)
from hedgerow.errors import InvalidInput
from hedgerow.privacy.conversion import gaussian_delta
from hedgerow.privacy.events import AboveThreshold, Exponential, Gaussian, Laplace
from hedgerow.privacy.noise import Seeded
from hedgerow.research.audit_cases.gallery import threshold_law
from hedgerow.textbook import sparse_vector

EVENTS = [Laplace(1.0, 2.0), Laplace(3.0, 2.0, 0.25), Gaussian(1.0, 2.0), Gaussian(3.0, 1.5, 0.5)]


def pair_of(event) -> Pair:
    return laplace_pair(event) if isinstance(event, Laplace) else gaussian_pair(event)


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_holds_and_no_smaller_claim_would(event) -> None:
    pair = pair_of(event)
    assert check_pair(pair, event).holds
    assert not check_pair(pair, (event.epsilon, 0.99 * event.rho)).holds
    if isinstance(event, Laplace):
        assert not check_pair(pair, (0.999 * event.epsilon, event.rho)).holds


def test_randomised_response_has_its_closed_forms() -> None:
    ε = 1.3
    p = 1 / (1 + math.exp(-ε))
    pair = Pair.of([p, 1 - p], [1 - p, p])
    assert pair.epsilon == pytest.approx(ε)
    assert pair.delta(0.4) == pytest.approx(p - math.exp(0.4) * (1 - p))
    assert pair.epsilon_at(pair.delta(0.4)) == pytest.approx(0.4)
    assert pair.renyi(2.0) == pytest.approx(math.log(p**2 / (1 - p) + (1 - p) ** 2 / p))
    assert pair.rho() == pytest.approx(ε * math.tanh(ε / 2), rel=2e-3)


def test_a_gaussian_density_has_the_analytic_profile_and_rho() -> None:
    log = [lambda z, m=m: scipy.stats.norm.logpdf(z, m, 1.0) for m in (0.0, 0.7)]
    pair = Pair.of_densities(*log, -38.0, 38.7)
    for ε in (0.0, 0.5, 2.0):
        assert pair.delta(ε) == pytest.approx(gaussian_delta(0.7, ε), rel=1e-5)
    assert pair.rho([1.5, 3.0, 10.0]) == pytest.approx(0.7**2 / 2, rel=1e-8)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(1, 9), st.floats(0.3, 8))
def test_laplace_tails_in_closed_form_are_those_of_the_sum(steps, scale) -> None:
    at = np.arange(-int(60 * scale) - 60, int(60 * scale) + 80)
    laws = [np.exp(-np.abs(at - c) / scale) * math.tanh(0.5 / scale) for c in (0, steps)]
    brute, quick = Pair.of(*laws), laplace_pair(Laplace(float(steps), scale))
    assert quick.epsilon == pytest.approx(brute.epsilon, abs=1e-9)
    for ε in (0.0, 0.1, 0.5):
        assert quick.delta(ε) == pytest.approx(brute.delta(ε), abs=1e-9)
    assert quick.renyi(2.5) == pytest.approx(brute.renyi(2.5), abs=1e-9)


def test_an_outcome_that_one_neighbour_never_has_is_an_infinite_loss() -> None:
    pair = Pair.of([0.9, 0.1], [1.0, 0.0])
    assert pair.epsilon == math.inf == pair.renyi(2.0)
    assert pair.delta(5.0) == pytest.approx(0.1)
    assert pair.epsilon_at(0.05) == math.inf
    assert not check_pair(pair, (1.0, 1.0)).holds


def test_losses_of_independent_outputs_add_up() -> None:
    one, two = laplace_pair(Laplace(1.0, 2.0)), laplace_pair(Laplace(1.0, 3.0))
    assert one.then(two).epsilon == pytest.approx(one.epsilon + two.epsilon)
    assert one.then(two).renyi(3.0) == pytest.approx(one.renyi(3.0) + two.renyi(3.0))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-1, 1)), min_size=1, max_size=6))
def test_no_scores_break_the_exponential_mechanism(scores) -> None:
    event = Exponential(1.0, 1.5)
    before = [s for s, _ in scores]
    assert check_pair(exponential_pair(before, [s + d for s, d in scores], event), event).holds


@pytest.mark.parametrize("gap", [False, True])
def test_no_short_sequence_breaks_a_guard_round_and_some_come_close(gap) -> None:
    event, losses = AboveThreshold(1.0, 0.5, 0.5), []
    for moves in itertools.product((-1, 0, 1), repeat=4):
        verdict = check_pair(
            above_threshold_pair([1, 1, 1, 1], [1 + m for m in moves], event, threshold=3, gap=gap), event
        )
        assert verdict.holds
        losses.append(verdict.epsilon)
    assert max(losses) > 0.6


def test_half_the_noise_on_values_breaks_a_guard_round() -> None:
    event = AboveThreshold(1.0, 0.5, 0.5)
    broken = dataclasses.replace(event, epsilon_query=1.5)  # what would be drawn: the claim is that of the event
    assert not check_pair(above_threshold_pair([0] * 40 + [1], [1] * 40 + [0], broken, threshold=9), event).holds


def test_the_law_of_a_round_is_what_is_drawn() -> None:
    """Frequencies of 2500 rounds on the same grid, within five standard deviations of the sums."""
    values, noise, runs = [0.0, 2.0, 1.0], Seeded(3), 2500
    config = sparse_vector.SparseVector(1.0, AboveThreshold(1.0, 0.5, 0.5), rounds=1, gap=True)
    counts = np.zeros(4)
    for _ in range(runs):
        round_ = noise.open_round(paid(config.guard), 1, 1.0, on_grid=True)
        counts[next((i for i, v in enumerate(values) if round_.excess(int(v)) is not None), 3)] += 1
    law = np.exp(above_threshold_pair(values, values, config.guard, threshold=1.0).log_p)
    assert np.all(np.abs(counts / runs - law) < 5 * np.sqrt(law * (1 - law) / runs))


def test_a_gap_reveals_no_less_than_the_place_and_adds_up_to_it() -> None:
    event = AboveThreshold(1.0, 0.5, 0.5)
    plain = np.exp(above_threshold_pair([0, 2], [1, 1], event, threshold=1).log_p)
    gaps = np.exp(above_threshold_pair([0, 2], [1, 1], event, threshold=1, gap=True).log_p)
    parts = (gaps.size - 1) // 2
    assert np.allclose([gaps[:parts].sum(), gaps[parts:-1].sum(), gaps[-1]], plain, atol=1e-12)


def test_patterns_with_fresh_thresholds_end_rounds_as_a_round_does() -> None:
    """The first "above" of a pattern is where a round would end."""
    event, values = AboveThreshold(1.0, 0.5, 0.5), [0.0, 2.0, 1.0]
    ends = np.exp(above_threshold_pair(values, values, event, threshold=0.0).log_p)
    for fresh in (False, True):
        law, first = threshold_law(values, event, fresh), np.zeros(4)
        for pattern, probability in zip(itertools.product((False, True), repeat=3), law, strict=True):
            first[pattern.index(True) if True in pattern else 3] += probability
        assert np.allclose(first, ends)


def test_laws_that_are_none_are_refused() -> None:
    with pytest.raises(InvalidInput, match="Probabilities must add up to 1"):
        Pair.of([0.5, 0.4], [0.5, 0.5])
    with pytest.raises(InvalidInput, match="same outcomes"):
        Pair.of([1.0], [0.5, 0.5])
    with pytest.raises(InvalidInput, match="multiples of the grid"):
        above_threshold_pair([0.5], [1.5], AboveThreshold(1.0, 0.5, 0.5))
    with pytest.raises(InvalidInput, match="grid steps to be summed"):
        gaussian_pair(Gaussian(1.0, 1.0, 2.0**-30))
