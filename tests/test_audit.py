"""The audit refutes the broken sparse vectors and does not refute ours; confidence 0.999 throughout."""

import math

import numpy as np
import pytest
from broken_sparse_vector import algorithm_3, algorithm_4, algorithm_5, algorithm_6
from paying import paid

from hedgerow import audit
from hedgerow.data import Histogram
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import gaussian_mu
from hedgerow.privacy.events import Exponential, Laplace
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.questions.linear import Linear
from hedgerow.questions.universe import Universe
from hedgerow.textbook import mwem, pmw, small_db, sparse_vector
from hedgerow.textbook.games import adaptive_composition

HALF = 20
ONE_WAY, OTHER_WAY = np.array([0.0] * HALF + [1.0] * HALF), np.array([1.0] * HALF + [0.0] * HALF)
CLAIMED = 0.5


def contrast(answers: np.ndarray) -> np.ndarray:
    """How many more of the second half than of the first were above: what tells ONE_WAY from OTHER_WAY."""
    above = answers == 1
    return above[:, HALF:].sum(axis=1) - above[:, :HALF].sum(axis=1)


def low_release(answers: np.ndarray) -> np.ndarray:
    """How many were below before a number below 0 was released; −1 where there was none."""
    first = (answers != 0).argmax(axis=1)
    number = answers[np.arange(len(answers)), first]
    return np.where((number < 0) & (answers != 0).any(axis=1), first, -1)


def audited(variant, values, neighbour, statistic, runs, epsilon, c, seed=0):
    rng = np.random.default_rng(seed)
    outputs = [iter(statistic(variant(v, 0.0, c, epsilon, runs, rng)).tolist()) for v in (values, neighbour)]
    return audit.epsilon_lower_bound(outputs[0].__next__, outputs[1].__next__, runs)


def ours(values, c: int, epsilon: float, noise: Noise, threshold: float = 0.0) -> np.ndarray:
    """Our sparse vector with c rounds in ε, played to its end; −1 for what was not answered."""
    accountant = Accountant(Budget(epsilon, 0.0))
    config = sparse_vector.SparseVector(threshold, sparse_vector.guard_round(epsilon / c), rounds=c)
    progress = sparse_vector.Progress()
    answers = np.full((1, len(values)), -1.0)
    for j, value in enumerate(values):
        try:
            outcome, progress = sparse_vector.step(config, progress, value, accountant, noise)
        except BudgetExceeded:
            break
        answers[0, j] = outcome.above
    return answers


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


def test_our_sparse_vector_passes_where_the_broken_ones_are_refuted():
    assert audited_ours(ONE_WAY, OTHER_WAY, 4000, HALF, CLAIMED, Seeded(1)) <= CLAIMED


def test_the_audit_comes_close_to_the_loss_of_one_round():
    # many values that move one way and one that moves the other: the worst case of AboveThreshold
    values, neighbour = [0.0] * 8 + [1.0], [1.0] * 8 + [0.0]
    last = lambda answers: int((answers[:, -1] == 1).all())  # noqa: E731

    def bound(noise):
        return audit.epsilon_lower_bound(
            lambda: last(ours(values, 1, 2.0, noise, threshold=2.0)),
            lambda: last(ours(neighbour, 1, 2.0, noise, threshold=2.0)),
            20_000,
        )

    assert 0.5 < bound(Seeded(3)) <= 2.0


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("c", [1, 5, HALF])
def test_our_sparse_vector_passes_a_long_audit_with_the_operating_systems_randomness(epsilon, c):
    assert audited_ours(ONE_WAY, OTHER_WAY, 20_000, c, epsilon, Noise()) <= epsilon
    values, neighbour = np.array([0.0] * 8 + [1.0]), np.array([1.0] * 8 + [0.0])
    position = lambda answers: (answers[:, 8] == 1).astype(int)  # noqa: E731
    assert audited_ours(values, neighbour, 20_000, c, epsilon, Noise(), position) <= epsilon


@pytest.mark.audit
@pytest.mark.parametrize("variant", [algorithm_4, algorithm_5, algorithm_6])
def test_the_losses_of_broken_variants_grow_with_the_number_of_values(variant):
    assert audited(variant, ONE_WAY, OTHER_WAY, contrast, 400_000, CLAIMED, c=HALF) > 6 * CLAIMED


def test_laplace_noise_is_audited_close_to_its_loss():
    rng = np.random.default_rng(0)
    draws = [iter((rng.laplace(size=50_000) + shift > 0.5).tolist()) for shift in (0.0, 1.0)]
    bound = audit.epsilon_lower_bound(draws[0].__next__, draws[1].__next__, 50_000)
    assert 0.4 < bound <= 1.0


def test_a_composition_of_laplace_releases_stays_within_the_sum_of_their_losses():
    noise, event = Seeded(5), Laplace(1.0, 2.0)

    def adversary(results):
        # asks the next value on the scale that the last answer suggests: adaptive, each step ε = ½
        sign = 1 if not results or results[-1] >= 0 else -1
        return lambda data: float(noise.add(sign * data, paid(event)))

    def run(data):
        return lambda: sum(z > 0 for z in adaptive_composition(adversary, data, 4))

    bound = audit.epsilon_lower_bound(run(0), run(1), 6000)
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


# Whole mechanisms, on the smallest tables where they have something to hide: one row of ten is replaced.

ONE = Universe.from_sizes({"x": 2})
HAS_X, WEIGHTED = Linear.from_table(ONE, ("x",), [0.0, 1.0]), Linear.from_table(ONE, ("x",), [0.25, 1.0])
TABLE, NEIGHBOUR = (Histogram(ONE, np.array(counts)) for counts in ([10, 0], [9, 1]))


def run_pmw(data: Histogram, epsilon: float, noise: Noise):
    """Two rounds, so small that no theorem applies: what is at stake is privacy alone."""
    guard, measurement = sparse_vector.guard_round(epsilon / 4), Laplace(1.0, 4 / epsilon)
    config = pmw.PMWConfig(10.0, 2, 9, 0.1, 0.1, "hoeffding", 2, guard, measurement)
    mechanism = pmw.OnlinePMW(config, data, Accountant(Budget(epsilon, 0.0)), noise)
    seen = []
    for query in (HAS_X, WEIGHTED, HAS_X):
        try:
            answer = mechanism.ask(query)
        except BudgetExceeded:
            break
        seen.append(None if answer.measured_rows is None else min(max(round(answer.measured_rows), -3), 4))
    return tuple(seen)


def run_mwem(data: Histogram, epsilon: float, noise: Noise):
    config = mwem.MWEMConfig(10.0, 0.05, 0.1, "hoeffding", 2, Exponential(1.0, epsilon / 4), Laplace(1.0, 4 / epsilon))
    released = mwem.release(config, [HAS_X, WEIGHTED], data, Accountant(Budget(epsilon, 0.0)), noise)
    return tuple((query.is_count, min(max(round(rows), -3), 6)) for query, rows in released.measurements)


def run_small_db(data: Histogram, epsilon: float, noise: Noise):
    released = small_db.release([HAS_X, WEIGHTED], data, Accountant(Budget(epsilon, 0.0)), noise, size=4)
    return tuple(released.counts.tolist())


def audited_mechanism(run, epsilon: float, runs: int, noise: Noise) -> float:
    return audit.epsilon_lower_bound(lambda: run(TABLE, epsilon, noise), lambda: run(NEIGHBOUR, epsilon, noise), runs)


@pytest.mark.parametrize("run", [run_pmw, run_mwem, run_small_db])
def test_a_whole_mechanism_is_not_refuted_and_a_claim_of_a_tenth_of_its_loss_is(run):
    bound = audited_mechanism(run, 4.0, 3000, Seeded(9))
    assert 0.4 < bound <= 4.0


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("run", [run_pmw, run_mwem, run_small_db])
def test_a_whole_mechanism_passes_a_long_audit_with_the_operating_systems_randomness(run, epsilon):
    assert audited_mechanism(run, epsilon, 8_000, Noise()) <= epsilon


def test_the_bound_of_an_audit_is_that_of_clopper_and_pearson_at_a_quarter_of_its_error():
    """All of 100 runs against none: p ≥ e^(1/100) and q ≤ 1 − e^(1/100), each but for e, a quarter of 1 − confidence."""
    found = audit.epsilon_lower_bound(lambda: 0, lambda: 1, 200, confidence=0.99)
    p = (0.01 / 4) ** (1 / 100)
    assert found == pytest.approx(math.log(p / (1 - p)), rel=1e-9)
