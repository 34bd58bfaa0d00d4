"""Theorems 5, 10 and 11 and Proposition 20 of [F] on simulated populations, against analysts who overfit; and the monitors.

A mechanism is anything that, given a sample as counts of cells, answers queries: ``Mechanism`` of ``research.monitors``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from hedgerow.generalise import transfer
from hedgerow.research.analysts import ANALYSTS, Player
from hedgerow.research.monitors import (
    Ask,
    Mechanism,
    draw_counts,
    exponential_monitor,
    query_monitor,
    simulate,
    worst_error,
)

GAMES, FALSE_FAIL = 60, 1e-6
each_analyst = pytest.mark.parametrize("name", ANALYSTS)


def uniform(cells: int) -> np.ndarray:
    return np.full(cells, 1 / cells)


def naive(sample: np.ndarray) -> Ask:
    """Answers with the sample's own mean."""
    return lambda query: float(query @ sample) / int(sample.sum())


def noisy(scale: float, rng: np.random.Generator) -> Mechanism:
    """Answers with Laplace noise on the sample's mean."""

    def mechanism(sample: np.ndarray) -> Ask:
        return lambda query: float(np.clip(query @ sample / sample.sum() + rng.laplace(scale=scale), 0, 1))

    return mechanism


def subsampled(size: int, inner: float, rng: np.random.Generator) -> Mechanism:
    """Algorithm 1 without replacement: the mean of ℓ rows, with Laplace noise of scale 1/(ℓε′)."""

    def mechanism(sample: np.ndarray) -> Ask:
        def ask(query: np.ndarray) -> float:
            rows = rng.multivariate_hypergeometric(sample, size, method="marginals")
            return float(np.clip(query @ rows / size + rng.laplace(scale=1 / (size * inner)), 0, 1))

        return ask

    return mechanism


def flipped(flip: float, rng: np.random.Generator) -> Mechanism:
    """Algorithm 3: one row's bit, flipped with a small probability."""

    def mechanism(sample: np.ndarray) -> Ask:
        shares = sample / sample.sum()
        return lambda query: float((query[rng.choice(query.size, p=shares)] > 0.5) != (rng.random() < flip))

    return mechanism


def failures(game: Callable[[], bool]) -> int:
    return sum(game() for _ in range(GAMES))


def most(beta: float) -> int:
    """Failures of GAMES that a mechanism which fails with β at most exceeds with probability FALSE_FAIL."""
    return int(stats.binom.ppf(1 - FALSE_FAIL, GAMES, beta))


def playing(name: str, queries: int, population: np.ndarray, rng: np.random.Generator) -> Callable[[Ask], None]:
    player: Player = ANALYSTS[name]
    return lambda ask: player(ask, queries, population, rng)


def theorem_5(alpha: float, beta: float, queries: int) -> tuple[int, int, float]:
    """n, ℓ and ε′ for which Algorithm 1 is what Theorem 4 needs: ℓ from its accuracy, ε′ from the exact amplification."""
    needs = transfer.theorem_4(alpha, beta)
    size = math.ceil(2 * math.log(4 * queries / needs.sample_beta) / needs.sample_error**2)
    inner = 2 * math.log(2 * queries / needs.sample_beta) / (size * needs.sample_error)
    each = needs.epsilon / (2 * math.sqrt(2 * queries * math.log(1 / needs.delta)))
    return math.ceil(size * math.expm1(inner) / math.expm1(each)), size, inner


@each_analyst
def test_theorem_5_subsampled_answers_are_right_about_the_population(name: str) -> None:
    """False fail: below 1e-6. A mechanism that fails in nine games of ten passes with probability below 1e-12."""
    rng, alpha, beta, queries = np.random.default_rng(5), 0.5, 0.2, 20
    rows, size, inner = theorem_5(alpha, beta, queries)
    population = uniform(64)

    def game() -> bool:
        analyst = playing(name, queries, population, rng)
        turns = simulate(subsampled(size, inner, rng), analyst, population, draw_counts(population, rows, rng))
        return worst_error(turns) > alpha

    assert failures(game) <= most(beta) < 0.6 * GAMES


@each_analyst
def test_theorem_11_flipped_bits_have_the_populations_mean(name: str) -> None:
    """Accuracy is of the bit's expectation given the sample, (1 − α)·q(S) + α/2 at a flip of α/2."""
    rng, alpha, beta, queries = np.random.default_rng(11), 0.5, 0.2, 50
    needs = transfer.theorem_10(alpha, beta, queries)
    flip = needs.sample_error
    private = 2 * math.sqrt(2 * queries * math.log(1 / needs.delta)) / (flip * needs.epsilon)
    population, rows = uniform(256), math.ceil(max(private, needs.rows))

    def game() -> bool:
        analyst = playing(name, queries, population, rng)
        turns = simulate(flipped(flip, rng), analyst, population, draw_counts(population, rows, rng))
        return any(abs((1 - 2 * flip) * t.on_sample + flip - t.on_population) > alpha for t in turns)

    assert failures(game) <= most(beta) < 0.6 * GAMES


@pytest.mark.parametrize("name", ["greedy", "least squares", "tracing"])
def test_the_same_analysts_break_a_sample_that_answers_for_itself(name: str) -> None:
    """The check can fail: with few rows and no noise the worst error is above α in nearly every game."""
    rng, population = np.random.default_rng(1), uniform(500)

    def game() -> bool:
        turns = simulate(naive, playing(name, 150, population, rng), population, draw_counts(population, 50, rng))
        return worst_error(turns) > 0.3

    assert failures(game) > most(0.2)


@each_analyst
def test_an_analyst_asks_the_given_number_of_questions_within_bounds(name: str) -> None:
    rng, population = np.random.default_rng(2), uniform(50)
    for k in (1, 2, 9):
        turns = simulate(naive, playing(name, k, population, rng), population, draw_counts(population, 40, rng))
        assert len(turns) == k
        assert all(turn.query.min() >= 0 and turn.query.max() <= 1 for turn in turns)


def test_an_adaptive_analyst_finds_more_than_a_static_one() -> None:
    rng, population = np.random.default_rng(3), uniform(1000)
    gaps = {
        name: np.mean(
            [
                simulate(naive, playing(name, 200, population, rng), population, draw_counts(population, 300, rng))[
                    -1
                ].gap
                for _ in range(8)
            ]
        )
        for name in ANALYSTS
    }
    assert abs(gaps["random"]) < 0.03
    assert gaps["greedy"] > 0.1 and gaps["tracing"] > 0.15 and gaps["least squares"] > 0.15


# Monitors


def average(pick: Callable[[], float], games: int) -> tuple[float, float]:
    """A mean of gaps, and its standard error."""
    found = np.array([pick() for _ in range(games)])
    return float(found.mean()), float(found.std() / math.sqrt(games))


@pytest.mark.parametrize("name", ["greedy", "tracing"])
def test_the_choice_of_the_monitor_of_algorithm_2_on_a_private_mechanism_is_not_far(name: str) -> None:
    """Lemma 18: at most e^(2ε) − 1 on average, 100 games, five standard errors; where the sample answers for itself it is far."""
    rng, population, rows, queries, epsilon = np.random.default_rng(4), uniform(400), 400, 40, 0.05
    scale = queries / (epsilon * rows)  # each query costs ε/k

    def gap(mechanism: Mechanism) -> float:
        samples = [draw_counts(population, rows, rng) for _ in range(3)]
        analyst = playing(name, queries, population, rng)
        return exponential_monitor(mechanism, analyst, population, samples, epsilon, rng).gap

    mean, error = average(lambda: gap(noisy(scale, rng)), 100)
    assert mean <= math.expm1(2 * epsilon) + 5 * error
    assert error < 0.015
    mean, error = average(lambda: _largest_pick(naive, name, population, rng), 10)
    assert mean > math.expm1(2 * epsilon) + 5 * error


def _largest_pick(mechanism: Mechanism, name: str, population: np.ndarray, rng: np.random.Generator) -> float:
    """The monitor with a choice so sharp that it takes the largest gap there is."""
    samples = [draw_counts(population, 50, rng) for _ in range(3)]
    analyst = playing(name, 40, population, rng)
    return exponential_monitor(mechanism, analyst, population, samples, 100.0, rng).gap


def test_the_monitor_takes_a_query_or_its_negation() -> None:
    rng, population = np.random.default_rng(6), np.array([0.5, 0.5])
    below = lambda ask: ask(np.array([0.0, 1.0]))  # noqa: E731
    picked = exponential_monitor(naive, below, population, [np.array([90, 10])], 10.0, rng)
    assert picked.negated and picked.gap == pytest.approx(0.4) and picked.turn.gap == pytest.approx(-0.4)


def test_proposition_20_the_expected_error_of_an_answer_is_what_privacy_and_the_sample_allow() -> None:
    """E|q(D) − a| ≤ E|q(S) − a| + e^ε − 1 over all histories; and it is made of the gap that Algorithm 5 picks."""
    rng, population, rows, queries, epsilon = np.random.default_rng(7), uniform(400), 400, 40, 0.2
    mechanism = noisy(queries / (epsilon * rows), rng)
    errors, on_sample, gaps = [], [], []
    for _ in range(300):
        analyst = playing("tracing", queries, population, rng)
        pick = query_monitor(mechanism, analyst, population, draw_counts(population, rows, rng), queries - 1)
        errors.append(pick.turn.error)
        on_sample.append(abs(pick.turn.answer - pick.turn.on_sample))
        gaps.append(pick.gap)
        assert pick.turn.error <= pick.gap + on_sample[-1] + 1e-12
    allowed = transfer.in_expectation(epsilon, 0.0, float(np.mean(on_sample)))
    slack = 5 * float(np.std(errors)) / math.sqrt(300)
    assert np.mean(errors) <= allowed + slack
    assert np.mean(gaps) <= math.expm1(epsilon) + 5 * np.std(gaps) / math.sqrt(300)


def test_given_an_unlucky_history_the_printed_proposition_fails() -> None:
    """The mechanism that publishes its sample with probability δ = α/4, after which an analyst asks for the sample itself."""
    rng, alpha, cells, rows = np.random.default_rng(8), 0.4, 10_000, 10
    population = uniform(cells)
    given, overall = [], []
    for _ in range(400):
        sample = draw_counts(population, rows, rng)
        published = rng.random() < alpha / 4
        query = (sample > 0).astype(float) if published else np.full(cells, 0.5)
        answer = 1.0 if published else 0.5
        overall.append(abs(float(query @ population) - answer))
        if published:
            given.append(overall[-1])
    assert np.mean(given) > alpha
    assert np.mean(overall) <= transfer.in_expectation(0.0, alpha / 4, alpha / 2)
