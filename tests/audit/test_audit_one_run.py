"""One run with canaries: the paper's numbers, coverage on a mechanism of known ε, power, and a session that leaks."""

import itertools
import math

import numpy as np
import pytest
from sequential import is_kept

from hedgerow import audit
from hedgerow.audit.one_run import canaries_needed
from hedgerow.errors import InvalidInput
from hedgerow.privacy.noise import Seeded
from hedgerow.research.audit_cases import own_mechanisms, session_cases


def responses(epsilon: float, rng: np.random.Generator):
    """Randomised response on every canary: ε-DP, and for guesses from it Theorem 5.2 is tight."""
    p = 1 / (1 + math.exp(-epsilon))
    return lambda coins: np.where(rng.random(coins.size) < p, coins, ~coins) + 0.5 * rng.random(coins.size)


def test_the_papers_example_comes_out() -> None:
    """Appendix D: 1000 canaries, 100 guesses of which 75 are right, δ = 10^-4, 95 %."""
    assert audit.epsilon_of_guesses(75, 100, 1000, delta=1e-4, confidence=0.95) == pytest.approx(0.673, abs=5e-4)


def test_without_a_delta_it_is_the_tail_of_a_binomial() -> None:
    rate, right = 1 / (1 + math.exp(-0.5)), 8
    tail = sum(math.comb(10, k) * rate**k * (1 - rate) ** (10 - k) for k in range(right, 11))
    assert audit.probability_of_guessing(right, 10, 40, 0.5, 0.0) == pytest.approx(tail)


def test_a_delta_is_paid_for_every_canary_and_counts_no_less_than_once() -> None:
    without, with_few, with_many = (
        audit.probability_of_guessing(60, 100, m, 0.1, d) for m, d in ((100, 0.0), (100, 1e-4), (1000, 1e-4))
    )
    assert without < with_few < with_many
    assert (with_many - without) == pytest.approx(10 * (with_few - without))


def test_a_bound_is_above_the_true_loss_as_rarely_as_it_says() -> None:
    """Confidence 0.8, with 10^-6 for either error."""
    rng, seen = np.random.default_rng(0), []

    def is_wrong(seed: int) -> bool:
        found = audit.one_run(responses(1.0, rng), 60, guesses=40, noise=Seeded(seed), confidence=0.8)
        seen.append(found.epsilon > 1.0)
        return seen[-1]

    assert is_kept(map(is_wrong, itertools.count()), 0.2, 0.4, false_fail=1e-6, false_pass=1e-6)
    assert any(seen)


def test_many_canaries_find_most_of_a_known_loss() -> None:
    found = audit.one_run(responses(2.0, np.random.default_rng(1)), 4000, guesses=4000, noise=Seeded(1))
    assert 1.7 < found.epsilon <= 2.0 < found.reachable


def test_a_run_that_reveals_its_members_is_caught_and_a_silent_one_is_not() -> None:
    tells = audit.one_run(lambda coins: coins, 200, guesses=100, noise=Seeded(2), delta=1e-5)
    assert tells.right == 100 and tells.epsilon == tells.reachable > 3
    silent = audit.one_run(lambda coins: np.zeros(coins.size), 200, guesses=100, noise=Seeded(3), confidence=0.999)
    assert silent.epsilon < 0.5


def test_fewer_canaries_than_stated_cannot_show_an_epsilon() -> None:
    needed = canaries_needed(3.0)
    assert (
        audit.epsilon_of_guesses(needed, needed, needed)
        >= 3.0
        > audit.epsilon_of_guesses(needed - 1, needed - 1, needed - 1)
    )


@pytest.mark.parametrize(("budget", "share"), [(own_mechanisms.PURE, 0.5), (own_mechanisms.ONE_RUN, 0.1)])
def test_a_whole_session_is_told_from_chance_and_within_its_claim(budget, share) -> None:
    """About 975 of 1000 guesses are right, or 800. Fewer than 915 or 700 have a probability below 10^-9; more than the claim, 10^-3."""
    scores = session_cases.canary_scores(budget)
    found = audit.one_run(scores, 4000, guesses=1000, delta=budget.delta, confidence=0.999)
    assert share * budget.epsilon < found.epsilon <= budget.epsilon


def test_impossible_numbers_are_refused() -> None:
    with pytest.raises(InvalidInput, match="right must be at most guesses"):
        audit.epsilon_of_guesses(5, 4, 10)
    with pytest.raises(InvalidInput, match="guesses must be even"):
        audit.one_run(lambda coins: coins, 10, guesses=3)
    with pytest.raises(InvalidInput, match="run must give 10 scores"):
        audit.one_run(lambda coins: coins[:5], 10, guesses=4)
    with pytest.raises(InvalidInput, match="confidence must be between"):
        audit.epsilon_of_guesses(1, 2, 3, confidence=1.0)
