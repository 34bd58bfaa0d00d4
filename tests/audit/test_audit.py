"""The audit refutes the broken sparse vectors and does not refute ours; confidence 0.999 throughout."""

import math

import numpy as np
import pytest
from paying import paid

from hedgerow import audit
from hedgerow.errors import InvalidInput
from hedgerow.privacy.conversion import gaussian_mu
from hedgerow.privacy.events import Laplace
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.research.audit_cases import own_mechanisms as mechanisms
from hedgerow.research.audit_cases.broken_sparse_vector import algorithm_3, algorithm_4, algorithm_5, algorithm_6
from hedgerow.research.audit_cases.gallery import HALF, ONE_WAY, OTHER_WAY, contrast, low_release, play_sparse_vector
from hedgerow.research.games import adaptive_composition

CLAIMED = 0.5


def audited(variant, values, neighbour, statistic, runs, epsilon, c, seed=0):
    rng = np.random.default_rng(seed)
    outputs = [iter(statistic(variant(v, 0.0, c, epsilon, runs, rng)).tolist()) for v in (values, neighbour)]
    return audit.epsilon_lower_bound(outputs[0].__next__, outputs[1].__next__, runs)


def ours(values, c: int, epsilon: float, noise: Noise, threshold: float = 0.0) -> np.ndarray:
    """Our sparse vector with c rounds in ε, played once."""
    return play_sparse_vector(np.asarray(values), c, epsilon, 1, noise, threshold=threshold)


def audited_ours(values, neighbour, runs: int, c: int, epsilon: float, noise: Noise, statistic=contrast) -> float:
    return audit.epsilon_lower_bound(
        lambda: int(statistic(ours(values, c, epsilon, noise))[0]),
        lambda: int(statistic(ours(neighbour, c, epsilon, noise))[0]),
        runs,
    )


@pytest.mark.parametrize("variant", [algorithm_4, algorithm_5, algorithm_6])
def test_a_variant_whose_noise_does_not_grow_with_the_answers_is_refuted(variant):
    assert audited(variant, ONE_WAY, OTHER_WAY, contrast, 4000, CLAIMED, c=HALF) > 2 * CLAIMED


def test_a_variant_that_releases_the_compared_value_is_refuted():
    values, neighbour = np.array([0.0] * 6 + [1.0]), np.array([1.0] * 6 + [0.0])
    assert audited(algorithm_3, values, neighbour, low_release, 400_000, 1.0, c=1) > 1.0


@pytest.mark.audit
def test_our_sparse_vector_passes_where_the_broken_ones_are_refuted():
    assert audited_ours(ONE_WAY, OTHER_WAY, 800, HALF, CLAIMED, Seeded(1)) <= CLAIMED


def test_the_audit_comes_close_to_the_loss_of_one_round():
    # many values that move one way and one that moves the other: the worst case of AboveThreshold
    values, neighbour = [0.0] * 8 + [1.0], [1.0] * 8 + [0.0]
    last = lambda answers: int((answers[:, -1] == 1).all())  # noqa: E731

    def bound(noise):
        return audit.epsilon_lower_bound(
            lambda: last(ours(values, 1, 2.0, noise, threshold=2.0)),
            lambda: last(ours(neighbour, 1, 2.0, noise, threshold=2.0)),
            5000,
        )

    assert 0.5 < bound(Seeded(3)) <= 2.0


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("c", [1, HALF])
def test_our_sparse_vector_passes_a_long_audit_with_the_operating_systems_randomness(epsilon, c):
    assert audited_ours(ONE_WAY, OTHER_WAY, 4000, c, epsilon, Noise()) <= epsilon
    values, neighbour = np.array([0.0] * 8 + [1.0]), np.array([1.0] * 8 + [0.0])
    position = lambda answers: (answers[:, 8] == 1).astype(int)  # noqa: E731
    assert audited_ours(values, neighbour, 4000, c, epsilon, Noise(), position) <= epsilon


@pytest.mark.audit
@pytest.mark.parametrize("variant", [algorithm_4, algorithm_5, algorithm_6])
def test_the_losses_of_broken_variants_grow_with_the_number_of_values(variant):
    assert audited(variant, ONE_WAY, OTHER_WAY, contrast, 400_000, CLAIMED, c=HALF) > 6 * CLAIMED


def test_laplace_noise_is_audited_close_to_its_loss():
    rng = np.random.default_rng(0)
    draws = [iter((rng.laplace(size=50_000) + shift > 0.5).tolist()) for shift in (0.0, 1.0)]
    bound = audit.epsilon_lower_bound(draws[0].__next__, draws[1].__next__, 50_000)
    assert 0.4 < bound <= 1.0


@pytest.mark.audit
def test_a_composition_of_laplace_releases_stays_within_the_sum_of_their_losses():
    noise, event = Seeded(5), Laplace(1.0, 2.0)

    def adversary(results):
        # asks the next value on the scale that the last answer suggests: adaptive, each step ε = ½
        sign = 1 if not results or results[-1] >= 0 else -1
        return lambda data: float(noise.add(sign * data, paid(event)))

    def run(data):
        return lambda: sum(z > 0 for z in adaptive_composition(adversary, data, 4))

    bound = audit.epsilon_lower_bound(run(0), run(1), 1500)  # so many have a bound above 0.3 in 99 of 100 audits
    assert 0.3 < bound <= 4 * event.epsilon


def test_identical_mechanisms_are_not_told_apart():
    rng = np.random.default_rng(1)
    draws = [iter(rng.integers(0, 50, 2000).tolist()) for _ in range(2)]
    assert audit.epsilon_lower_bound(draws[0].__next__, draws[1].__next__, 2000) == pytest.approx(0, abs=0.5)


def test_delta_is_taken_off_before_the_ratio():
    always, rarely = (lambda: 1), iter(([1] + [0] * 99) * 200).__next__
    strict = audit.epsilon_lower_bound(always, iter(([1] + [0] * 99) * 200).__next__, 20_000)
    loose = audit.epsilon_lower_bound(always, rarely, 20_000, delta=0.5)
    assert strict - loose == pytest.approx(math.log(2), abs=0.03)


# Scores


def shifted(mu: float, runs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(mu, 1, runs), rng.normal(0, 1, runs)


def test_gaussian_scores_are_audited_close_to_their_loss_and_not_beyond_it() -> None:
    """μ = 1.17 is the loss ε = 2 at δ = 0.05."""
    first, second = shifted(gaussian_mu(2.0, 0.05), 40_000)
    assert 1.5 < audit.epsilon_lower_bound_of_scores(first, second, delta=0.05, confidence=1 - 1e-6) <= 2.0


def test_it_does_not_matter_which_neighbour_has_the_larger_scores_or_comes_first() -> None:
    first, second = shifted(1.5, 1000)  # few enough that every score is tried as a threshold
    bounds = [
        audit.epsilon_lower_bound_of_scores(a, b, delta=0.01)
        for a, b in ((first, second), (second, first), (-first, -second), (-second, -first))
    ]
    assert np.ptp(bounds) < 1e-9 < bounds[0]


def test_scores_of_two_values_are_audited_as_an_event() -> None:
    """Randomised response at ε = 1.5: the event that tells most is one of the values, whichever way it is compared."""
    rng = np.random.default_rng(0)
    p = 1 / (1 + math.exp(-1.5))
    first, second = rng.random(20_000) < p, rng.random(20_000) < 1 - p
    assert 1.3 < audit.epsilon_lower_bound_of_scores(first, second) <= 1.5


def test_bounds_on_scores_are_wrong_as_rarely_as_they_say() -> None:
    """Audits at confidence 0.8 of a loss that one event attains; runs_to_tell has 10^-6 for either error."""
    runs, allowed = audit.runs_to_tell(0.2, 0.4, 1e-6, 1e-6)
    rng, p = np.random.default_rng(3), 1 / (1 + math.exp(-1.0))
    bounds = [
        audit.epsilon_lower_bound_of_scores(rng.random(200) < p, rng.random(200) < 1 - p, confidence=0.8)
        for _ in range(runs)
    ]
    assert sum(bound > 1.0 for bound in bounds) <= allowed


def test_equal_and_constant_scores_tell_nothing() -> None:
    assert audit.epsilon_lower_bound_of_scores(np.zeros(100), np.zeros(100)) == 0
    assert audit.epsilon_lower_bound_of_scores(*shifted(0.0, 4000)) < 0.1


def test_infinite_scores_are_the_largest_and_nan_is_refused() -> None:
    assert audit.epsilon_lower_bound_of_scores(np.full(400, np.inf), np.zeros(400)) > 2
    with pytest.raises(InvalidInput, match="scores must be one number for each run"):
        audit.epsilon_lower_bound_of_scores([0.0, math.nan, 1.0, 2.0], [0.0] * 4)
    with pytest.raises(InvalidInput, match="runs must be at least 4"):
        audit.epsilon_lower_bound_of_scores([0.0] * 3, [1.0] * 4)


def test_clopper_pearson_covers_as_often_as_it_says():
    for p in (0.01, 0.3, 0.9):
        outside = [0.0, 0.0]
        for hits in range(51):
            probability = math.comb(50, hits) * p**hits * (1 - p) ** (50 - hits)
            low, high = audit.clopper_pearson(hits, 50, 0.05)
            outside[0] += probability * (low > p)
            outside[1] += probability * (high < p)
        assert max(outside) <= 0.05


def test_the_number_of_runs_is_the_least_that_meets_both_error_rates():
    runs, allowed = audit.runs_to_tell(0.1, 0.3, 1e-6, 0.01)
    tail = lambda n, f, p: sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(f + 1))  # noqa: E731
    assert 1 - tail(runs, allowed, 0.1) <= 1e-6
    assert tail(runs, allowed, 0.3) <= 0.01
    for f in range(runs - 1):
        assert 1 - tail(runs - 1, f, 0.1) > 1e-6 or tail(runs - 1, f, 0.3) > 0.01


def test_an_audit_without_runs_is_refused():
    with pytest.raises(InvalidInput, match="runs must be at least 2"):
        audit.epsilon_lower_bound(lambda: 0, lambda: 0, 1)


# Whole mechanisms, on the smallest tables where they have something to hide: one row of ten, or of two, is replaced.


@pytest.mark.audit
@pytest.mark.parametrize(
    ("run", "tables"),
    [
        (mechanisms.run_pmw, mechanisms.PAIR),
        (mechanisms.run_mwem, mechanisms.PAIR),
        (mechanisms.run_small_db, mechanisms.TWO_ROWS),
    ],
)
def test_a_whole_mechanism_is_not_refuted_and_a_claim_of_a_tenth_of_its_loss_is(run, tables):
    noise = Seeded(9)
    found = audit.distinguish(lambda data: run(data, noise), *tables, runs=800, kind="sequence")
    assert 0.4 < found.epsilon <= mechanisms.PURE.epsilon


def test_the_bound_of_an_audit_is_that_of_clopper_and_pearson_at_a_quarter_of_its_error():
    """All of 100 runs against none: p ≥ e^(1/100) and q ≤ 1 − e^(1/100), each but for e, a quarter of 1 − confidence."""
    found = audit.epsilon_lower_bound(lambda: 0, lambda: 1, 200, confidence=0.99)
    p = (0.01 / 4) ** (1 / 100)
    assert found == pytest.approx(math.log(p / (1 - p)), rel=1e-9)
