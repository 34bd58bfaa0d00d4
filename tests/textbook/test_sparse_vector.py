import copy
import dataclasses
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paying import paid
from sequential import is_kept

from hedgerow import audit
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import AboveThreshold, Gaussian, Laplace, comparison_grid
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.textbook import sparse_vector
from hedgerow.textbook.sparse_vector import Progress, SparseVector, guard_round, step


def test_a_round_is_charged_once_however_many_values_are_below():
    budget = Budget(1.0, 0.0)
    accountant, config, progress = Accountant(budget), SparseVector(10_000.0, guard_round(0.5), rounds=2), Progress()
    costs = []
    for _ in range(300):
        outcome, progress = step(config, progress, 0.0, accountant, Seeded(0))
        assert not outcome.above
        costs.append(outcome.cost)
    assert costs == [0.5] + [0.0] * 299
    assert accountant.spent == 0.5


def test_it_stops_after_c_answers_above_and_charges_nothing_more():
    accountant, noise = Accountant(Budget(10.0, 0.0)), Seeded(0)
    config, progress = SparseVector(0.0, guard_round(1.0), rounds=3), Progress()
    for i in range(3):
        outcome, progress = step(config, progress, 1e6, accountant, noise)
        assert outcome.above
        assert progress == Progress(tops=i + 1)
    with pytest.raises(BudgetExceeded, match=r"must stop after 3 answers above its threshold\. Found 3"):
        step(config, progress, 1e6, accountant, noise)
    assert accountant.spent == pytest.approx(3.0)


def test_a_round_that_the_budget_cannot_pay_is_refused_before_any_noise_exists():
    class NoNoise(Noise):
        def open_round(self, *given, **named):
            raise AssertionError("drew noise that was not paid for")

    accountant = Accountant(Budget(0.4, 0.0))
    with pytest.raises(BudgetExceeded):
        step(SparseVector(0.0, guard_round(0.5), rounds=1), Progress(), 0.0, accountant, NoNoise())
    assert accountant.spent == 0


def test_a_round_opens_only_if_its_measurement_is_affordable_too():
    accountant = Accountant(Budget(1.0, 0.0))
    config = SparseVector(0.0, guard_round(0.6), rounds=1, measurement=Laplace(1.0, 2.0))
    with pytest.raises(BudgetExceeded, match="afford a round and its measurement"):
        step(config, Progress(), 0.0, accountant, Seeded(0))
    assert accountant.spent == 0


@pytest.mark.parametrize("value", [-1e9, 1e9])
def test_an_open_round_whose_measurement_was_spent_elsewhere_is_refused_whatever_the_value(value):
    accountant = Accountant(Budget(1.0, 0.0))
    config = SparseVector(0.0, guard_round(0.4), rounds=1, measurement=Laplace(1.0, 2.0))
    progress, _ = sparse_vector.ready(config, Progress(), accountant, Seeded(0))
    accountant.charge(Laplace(1.0, 5.0))
    with pytest.raises(BudgetExceeded, match="must afford a measurement"):
        step(config, progress, value, accountant, Seeded(0))


@pytest.mark.parametrize(
    ("budget", "measurement"), [(Budget(2.0, 0.0), Laplace(1.0, 2.0)), (Budget(2.0, 1e-6), Gaussian(1.0, 20.0))]
)
def test_numeric_sparse_measures_what_is_above_with_fresh_noise_and_charges_it(budget, measurement):
    accountant = Accountant(budget)
    config = SparseVector(100.0, guard_round(0.1), rounds=1, measurement=measurement)
    outcome, _ = step(config, Progress(), 100_000.0, accountant, Noise())
    assert outcome.above
    assert outcome.measured == pytest.approx(100_000, abs=1000)  # 50 standard deviations
    assert outcome.measured == int(outcome.measured)
    assert accountant.events == (config.guard, measurement)
    assert outcome.cost == pytest.approx(accountant.spent)


def test_nothing_is_released_about_a_value_below_but_that_it_is():
    config = SparseVector(1e6, guard_round(0.5), rounds=1, measurement=Laplace(1.0, 10.0), gap=True)
    outcome, _ = step(config, Progress(), 3.0, Accountant(Budget(1.0, 0.0)), Seeded(0))
    assert outcome == sparse_vector.Outcome(above=False, cost=0.5)


def test_the_threshold_noise_shows_in_no_repr_and_is_forgotten_after_its_round():
    accountant, noise, config = (
        Accountant(Budget(9.0, 0.0)),
        Seeded(0),
        SparseVector(1000.0, guard_round(0.5), rounds=9),
    )
    _, opened = step(config, Progress(), 0.0, accountant, noise)
    assert opened.is_open
    secret = opened.round._threshold
    assert isinstance(secret, int)
    assert repr(opened) == "Progress(tops=0)"
    assert str(secret) not in repr((opened, opened.round, config, accountant))
    _, closed = step(config, opened, 1e9, accountant, noise)
    assert not closed.is_open
    assert closed.round is None
    assert opened.round._threshold is None


def test_every_round_draws_a_fresh_threshold():
    accountant, noise, config = Accountant(Budget(9.0, 0.0)), Noise(), SparseVector(0.0, guard_round(0.1), rounds=20)
    drawn, progress = set(), Progress()
    for _ in range(20):
        progress, _ = sparse_vector.ready(config, progress, accountant, noise)
        drawn.add(progress.round._threshold)
        _, progress = step(config, progress, 1e9, accountant, noise)
    assert len(drawn) == 20


def test_the_gap_is_the_free_difference_on_the_grid_and_never_negative():
    config = SparseVector(5.0, guard_round(1.0), rounds=1, gap=True)
    gaps = []
    for seed in range(300):
        outcome, _ = step(config, Progress(), 8.0, Accountant(Budget(1.0, 0.0)), Seeded(seed))
        assert (outcome.gap is not None) == outcome.above
        if outcome.gap is not None:
            gaps.append(outcome.gap)
    assert min(gaps) >= 0
    assert all(gap == int(gap) for gap in gaps)
    # seen only when it is not negative, it overestimates 8 − 5: by far more than the error of 200 draws of sd < 6
    assert len(gaps) > 150
    assert np.mean(gaps) > 3 + 1


def test_the_gap_tells_neighbours_apart_no_better_than_its_round_allows():
    # the value that moves up follows values that move down: the worst neighbours of a round
    epsilon, config = 3.0, SparseVector(2.0, guard_round(3.0), rounds=1, gap=True)
    noise = Seeded(8)

    def run(values):
        def once():
            accountant, progress = Accountant(Budget(epsilon, 0.0)), Progress()
            for position, value in enumerate(values):
                outcome, progress = step(config, progress, value, accountant, noise)
                if outcome.above:
                    return position, min(int(outcome.gap), 8)
            return None

        return once

    bound = audit.epsilon_lower_bound(run([0.0, 0.0, 1.0]), run([1.0, 1.0, 0.0]), 1500)
    assert 0.3 < bound <= epsilon


def test_the_ratio_that_is_the_default_minimises_the_variance_of_a_comparison():
    variance = lambda r: guard_round(1.0, r).threshold_scale ** 2 + guard_round(1.0, r).query_scale ** 2  # noqa: E731
    best = variance(sparse_vector.LEAST_VARIANCE)
    assert all(best < variance(r) for r in (1.0, 1.4, 1.5, 1.7, 2.0))
    assert guard_round(0.7, 3.0).epsilon == pytest.approx(0.7)


@pytest.mark.parametrize("rounds", [1, 30])
@pytest.mark.parametrize("budget", [Budget(1.0, 0.0), Budget(1.0, 1e-6)], ids=["pure", "approximate"])
def test_all_comparisons_are_right_to_within_the_stated_width(budget, rounds):
    beta, queries = 0.1, 200
    config, width = sparse_vector.threshold_game_config(
        Amount.share_of(budget), threshold=1e6, rounds=rounds, queries=queries, beta=beta
    )

    def fails(seed):
        accountant, noise, progress = Accountant(budget), Seeded(seed), Progress()
        wrong = False
        for j in range(queries):  # the last value of a round must be seen, all others must not
            high = progress.tops < rounds - 1 and j % 5 == 4
            outcome, progress = step(config, progress, 1e6 + (width if high else -width), accountant, noise)
            wrong |= outcome.above != high
            if progress.tops == rounds:
                break
        assert accountant.spent <= budget.total * (1 + 1e-12)
        return wrong

    assert is_kept(map(fails, itertools.count()), beta, 3 * beta)  # and three times β would be noticed


def test_the_optimal_split_beats_its_neighbours():
    weight, ratio = sparse_vector.comparison_weight(50, 1000, 0.1)

    def width(r):  # of ε = 1: A + B for the same failure probabilities
        event = guard_round(1.0, r)
        return event.threshold_scale * math.log(2 * 50 / 0.1) + event.query_scale * math.log(1000 / 0.1)

    assert width(ratio) == pytest.approx(weight)
    assert width(ratio * 1.1) > weight < width(ratio / 1.1)


def test_the_round_that_a_cost_buys_costs_that_much():
    for budget in (Budget(1.0, 0.0), Budget(1.0, 1e-6)):
        for cost in (1e-9, 1e-3, 0.3, 5.0):
            epsilon = Amount(budget, cost).round_epsilon()
            assert budget.cost(guard_round(epsilon)) == pytest.approx(cost)


def test_threshold_value_noise_and_shifts_of_the_proof_are_on_one_grid():
    for epsilon in (1e-7, 0.01, 3.0):
        for sensitivity in (1.0, math.pi):
            guard = guard_round(epsilon, sensitivity=sensitivity)
            grid = max(comparison_grid(guard.threshold_scale), comparison_grid(guard.query_scale))
            draws = np.append(
                Noise()._comparisons(guard.threshold_scale, 100), Noise()._comparisons(guard.query_scale, 100)
            )
            assert guard.sensitivity >= sensitivity
            assert guard.sensitivity % grid == 0
            assert (draws % comparison_grid(guard.threshold_scale) == 0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SparseVector(math.nan, guard_round(1.0), 1), "threshold must be finite"),
        (lambda: SparseVector(0.0, guard_round(1.0), 0), "rounds must be a whole number of at least 1. Found 0"),
        (lambda: SparseVector(0.5, guard_round(1.0), 1, gap=True), "multiples of the grid when the gap is released"),
        (lambda: SparseVector(1e300, guard_round(1.0), 1), r"finite, within 2\^53 rows"),
        (lambda: SparseVector(3.0, guard_round(1.0), 1, gap=True, grid=0.75), "grid must be a power of two"),
        (lambda: SparseVector(3.0, guard_round(1.0), 1, gap=True, grid=2.0**-60), "scale must be between"),
        (lambda: SparseVector(3.0, guard_round(1.0), 1, Laplace(0.5, 9.0)), "at least the guard's sensitivity"),
        (
            lambda: SparseVector(3.0, guard_round(1.0, sensitivity=2.5), 1, Gaussian(2.5, 9.0)),
            "must be a multiple of its grid. Found 2.5 and 1.0",
        ),
        (lambda: guard_round(1.0, ratio=0.0), "ratio must be finite and above 0"),
    ],
)
def test_a_sparse_vector_that_its_proof_does_not_cover_is_refused(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def test_comparisons_are_exact_where_sums_of_float64_are_not():
    class Fixed(Seeded):
        draws = (2.0**-20, 0.0)  # τ, then ν

        def _comparison(self, scale):
            self.draws, drawn = self.draws[1:], self.draws[0]
            return drawn

    huge = 2.0**45  # where float64 cannot hold a 2^-20th
    config = SparseVector(huge, guard_round(0.5), rounds=1)
    outcome, _ = step(config, Progress(), huge, Accountant(Budget(1.0, 0.0)), Fixed(0))
    assert not outcome.above  # q < T + τ by a 2^-20th of a row


class Chosen(Seeded):
    """Comparisons with given noise: τ, then a ν for every value."""

    def __init__(self, *draws):
        super().__init__(0)
        self.draws = list(draws)

    def _comparison(self, scale):
        return self.draws.pop(0)


def test_whole_rows_and_fractions_of_rows_are_compared_without_rounding_at_every_size():
    config = SparseVector(0.5, guard_round(0.5), rounds=1)
    outcome, _ = step(config, Progress(), 2.0**53, Accountant(Budget(1.0, 0.0)), Chosen(2.0**53, 0.0))
    assert not outcome.above  # 2^53 < 0.5 + 2^53, though float64 has no room for the half


# What the values are


@pytest.mark.parametrize("grid", [1.0, 0.5, 2.0])
def test_the_gap_shows_no_digit_of_the_value_below_its_grid(grid):
    config = SparseVector(10.0, guard_round(0.5, sensitivity=2.0), rounds=1, gap=True, grid=grid)
    for value in (1000.3725, 1000 + 2**-19, 3e5 + math.pi):
        outcome, _ = step(config, Progress(), value, Accountant(Budget(1.0, 0.0)), Noise())
        assert outcome.gap is not None
        assert outcome.gap % grid == 0


SILENT = Laplace(1.0, 2.0**-40)  # its noise is 0


@given(st.floats(-1e9, 1e9), st.floats(0, 1))
def test_rounding_never_takes_neighbours_further_apart_than_their_sensitivity(value, change):
    config = SparseVector(-1e12, guard_round(1.0), 1, measurement=SILENT)
    neighbour = value + change
    if Fraction(neighbour) - Fraction(value) <= 1:  # in truth, not as float64 subtracts
        account = Accountant(Budget(2.0**42, 0.0))
        near, far = (step(config, Progress(), x, account, Seeded(0))[0].measured for x in (value, neighbour))
        assert 0 <= far - near <= 1


def test_a_value_between_two_steps_is_not_rounded_to_the_even_one():
    config = SparseVector(-1e6, guard_round(1.0), 1, measurement=SILENT)
    account = Accountant(Budget(2.0**42, 0.0))
    measured = [step(config, Progress(), x, account, Seeded(0))[0].measured for x in (0.5, 1.5)]
    assert measured == [0, 1]  # rounding to even would give 0 and 2: two rows for one


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize(
    ("value", "above"),
    [(math.nan, False), (math.inf, True), (-math.inf, False), (1e308, True), (-1e308, False), (10**400, True)],
)
def test_no_value_raises_and_what_is_not_a_number_counts_as_nothing(value, above, gap):
    config = SparseVector(1e6, guard_round(1.0), 1, measurement=Laplace(1.0, 5.0), gap=gap)
    outcome, _ = step(config, Progress(), value, Accountant(Budget(2.0, 0.0)), Noise())
    assert outcome.above == above
    assert not above or math.isfinite(outcome.measured)


# One threshold, one ⊤


@pytest.mark.parametrize(
    "again", [lambda p: p, copy.copy, copy.deepcopy, dataclasses.replace], ids=lambda f: f.__name__
)
def test_a_threshold_is_not_compared_with_after_its_top_however_its_progress_was_kept(again):
    accountant, noise = Accountant(Budget(2.0, 0.0)), Seeded(0)
    config = SparseVector(0.0, guard_round(0.5), rounds=4)
    opened, _ = sparse_vector.ready(config, Progress(), accountant, noise)
    kept, threshold = again(opened), opened.round._threshold
    _, after = step(config, opened, 1e6, accountant, noise)
    assert after.tops == 1
    for rounds in (2, 3, 4):  # used again, it opens a round of its own, which it pays for
        outcome, later = step(config, kept, -1e6, accountant, noise)
        assert (outcome.above, outcome.cost, len(accountant.events)) == (False, 0.5, rounds)
        assert later.round._threshold != threshold
    with pytest.raises(BudgetExceeded):
        step(config, kept, -1e6, accountant, noise)


def test_an_open_round_cannot_be_pickled():
    opened, _ = sparse_vector.ready(
        SparseVector(0.0, guard_round(0.5), 1), Progress(), Accountant(Budget(1.0, 0.0)), Noise()
    )
    with pytest.raises(InvalidInput, match="A GuardRound must stay in its process"):
        pickle.dumps(opened)


def test_an_open_round_goes_on_only_with_the_noise_that_was_paid_for():
    accountant = Accountant(Budget(10.0, 0.0))
    config = SparseVector(0.0, guard_round(0.1), rounds=4)
    opened, _ = sparse_vector.ready(config, Progress(), accountant, Noise())
    for another, account in (
        (SparseVector(0.0, guard_round(5.0), rounds=4), accountant),
        (config, Accountant(Budget(10.0, 0.0))),
    ):
        with pytest.raises(InvalidInput, match="must go on with the sparse vector and the account that opened it"):
            step(another, opened, 0.0, account, Noise())
    step(dataclasses.replace(config), opened, -1e6, accountant, Noise())
    assert accountant.events == (config.guard,)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, BudgetExceeded])
def test_a_round_is_over_after_its_top_whatever_is_raised_before_it_is_known(error):
    class Interrupted(Seeded):
        def add(self, value, receipt):
            raise error

    accountant = Accountant(Budget(10.0, 0.0))
    config = SparseVector(0.0, guard_round(0.5), rounds=4, measurement=Laplace(1.0, 10.0))
    opened, _ = sparse_vector.ready(config, Progress(), accountant, Interrupted(0))
    with pytest.raises(error):
        step(config, opened, 1e6, accountant, Interrupted(0))
    assert not opened.is_open
    outcome, _ = step(config, opened, -1e6, accountant, Seeded(0))
    assert outcome.cost == 0.5  # the next comparison is with a new threshold, paid for


@pytest.mark.parametrize("on_grid", [False, True])
@pytest.mark.parametrize(("first", "second"), [(0.02, 5.0), (5.0, 0.02)])
def test_a_round_has_the_noise_that_its_event_states(first, second, on_grid):
    """The noisy distance from the threshold has the variance of τ plus that of ν, 2(Δ/ε₁)² + 2(2Δ/ε₂)².

    The variance of N of them is off by √(5/N), 6 %, and the test allows 7 times that; half the noise is a quarter of it.
    """
    event, runs, noise = AboveThreshold(1.0, first, second), 1500, Seeded(5)
    unit, value = 1.0 if on_grid else sparse_vector.FINEST, 10**12
    excesses = []
    for _ in range(runs):
        opened = noise.open_round(paid(event), 0, unit, on_grid=on_grid)
        excesses.append((opened.excess(value) - value) * unit)
    stated = 2 / first**2 + 2 * (2 / second) ** 2
    assert np.var(excesses) == pytest.approx(stated, rel=0.41)
    assert abs(np.mean(excesses)) < 6 * math.sqrt(stated / runs)


def test_the_gap_is_released_only_where_it_was_asked_for():
    config, accountant = SparseVector(0.0, guard_round(1.0), rounds=1), Accountant(Budget(1.0, 0.0))
    outcome, _ = step(config, Progress(), 1e6, accountant, Seeded(0))
    assert outcome.above and outcome.gap is None and outcome.measured is None


def test_a_resumed_sparse_vector_has_its_remaining_tops():
    config, accountant, noise = SparseVector(0.0, guard_round(1.0), rounds=3), Accountant(Budget(9.0, 0.0)), Seeded(0)
    progress = Progress()
    for value in (1e6, 1e6, -1e6):  # two rounds end, and the third is open
        _, progress = step(config, progress, value, accountant, noise)
    assert sparse_vector.resume_state(config, accountant.entries()) == Progress(tops=2)
    other = SparseVector(5.0, guard_round(1.0), rounds=3)
    assert sparse_vector.resume_state(other, accountant.entries()) == Progress(tops=0)


@pytest.mark.parametrize("rounds", [1, 30])
@pytest.mark.parametrize("queries", [1, 10_000])
@pytest.mark.parametrize("beta", [0.2, 1e-4])
def test_within_the_promised_width_all_noise_of_all_rounds_and_values_stays_but_for_beta(rounds, queries, beta):
    """|τ| ≤ A in every round and ν ≤ B for every value, A + B = w, at ε = Δ = 1: the union of all that could be worse."""
    width, ratio = sparse_vector.comparison_weight(rounds, queries, beta)
    first, second = 1 / (1 + ratio), ratio / (1 + ratio)
    A = np.linspace(0, width, 10_001)
    failing = rounds * np.exp(-A * first) + queries / 2 * np.exp(-(width - A) * second / 2)
    assert failing.min() <= beta * (1 + 1e-6)


def test_the_measurements_of_earlier_tests_are_the_releases_in_the_ledger():
    config = SparseVector(0.0, guard_round(1.0), rounds=1, measurement=Laplace(1.0, 50.0))
    accountant = Accountant(Budget(2.0, 0.0))
    outcome, _ = step(config, Progress(), 1e6, accountant, Seeded(0))
    assert accountant.entries()[-1].released == (outcome.measured,)
