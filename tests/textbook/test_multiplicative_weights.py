import math

import numpy as np
import pytest

from hedgerow.errors import InvalidInput
from hedgerow.textbook import multiplicative_weights as experts

RNG = np.random.default_rng(12)


def test_halving_makes_at_most_log2_n_mistakes_when_one_expert_is_perfect():
    for experts_count in (2, 7, 64):
        for _ in range(50):
            truth = RNG.random(200) < 0.5
            advice = RNG.random((200, experts_count)) < 0.5
            advice[:, RNG.integers(experts_count)] = truth
            assert experts.run_halving(advice, truth).mistakes <= experts.halving_mistakes(experts_count)


def test_halving_meets_its_bound_when_half_of_the_experts_err_every_day():
    # expert i errs on day t when bit t of i is 1, and on a tie "down" is predicted, which is wrong
    bits = (np.arange(16)[None, :] >> np.arange(4)[:, None]) & 1
    result = experts.run_halving(bits == 0, np.ones(4, bool))
    assert result.mistakes == experts.halving_mistakes(16) == 4
    assert np.flatnonzero(result.weights).tolist() == [0]


def test_weighted_majority_stays_within_its_bound_of_the_best_expert():
    for _ in range(50):
        truth = RNG.random(300) < 0.5
        wrong = RNG.random((300, 20)) < RNG.uniform(0.1, 0.6, 20)
        result = experts.weighted_majority(truth[:, None] ^ wrong, truth)
        assert result.mistakes <= experts.weighted_majority_mistakes(20, int(wrong.sum(axis=0).min()))


def test_weighted_majority_survives_a_game_longer_than_float64_can_halve():
    truth = np.ones(5000, bool)
    advice = np.zeros((5000, 3), bool)
    advice[:, 2] = True
    result = experts.weighted_majority(advice, truth)
    assert result.mistakes <= experts.weighted_majority_mistakes(3, 0)
    assert result.weights.argmax() == 2


@pytest.mark.audit
@pytest.mark.parametrize("adversary", ["random", "against the leader"])
def test_multiplicative_weights_regret_less_than_2_root_t_ln_n_against_any_distribution(adversary):
    T, N = 400, 30
    losses = RNG.uniform(-1, 1, (T, N))
    if adversary == "against the leader":
        for t in range(T):
            p = experts.multiplicative_weights(losses[: t + 1], gamma=experts.learning_rate(N, T))[t]
            losses[t] = np.where(p > np.median(p), 1.0, -1.0)
    played = experts.multiplicative_weights(losses)
    assert np.allclose(played.sum(axis=1), 1)
    assert (played * losses).sum() - losses.sum(axis=0).min() <= experts.regret_bound(N, T)


def test_a_perfect_expert_ends_up_with_nearly_all_the_weight():
    losses = np.ones((500, 10))
    losses[:, 3] = -1
    assert experts.multiplicative_weights(losses)[-1, 3] > 0.99


def test_picked_experts_follow_the_distributions_of_the_deterministic_form():
    losses = RNG.uniform(-1, 1, (50, 4))
    played = experts.multiplicative_weights(losses)
    runs = 1000
    picks = np.stack([experts.multiplicative_weights_picks(losses, RNG.random(50)) for _ in range(runs)])
    frequency = (picks[:, :, None] == np.arange(4)).mean(axis=0)
    # 200 frequencies; Hoeffding with a union bound: a false alarm has probability below 1e-9
    assert np.abs(frequency - played).max() < math.sqrt(math.log(2 * 200 / 1e-9) / (2 * runs))


def test_too_few_rounds_for_the_regret_bound_are_refused():
    with pytest.raises(
        InvalidInput, match=r"rounds must be at least 4 ln N = 18\.4 for N of at least 2 experts. Found 18"
    ):
        experts.learning_rate(100, 18)
    assert experts.learning_rate(100, 19) <= 0.5


def test_losses_and_steps_out_of_range_are_refused():
    with pytest.raises(InvalidInput, match="Losses must be"):
        experts.multiplicative_weights([[0.0, 1.1]], gamma=0.1)
    with pytest.raises(InvalidInput, match=r"gamma must be in \(0, ½\]"):
        experts.multiplicative_weights([[0.0, 1.0]], gamma=0.6)
    with pytest.raises(InvalidInput, match="days × experts"):
        experts.run_halving([True, False], [True, False])
    with pytest.raises(InvalidInput, match="alpha must be between 0 and 1"):
        experts.update_bound(0.0, 8, "paper")
    with pytest.raises(InvalidInput, match="step must be 'paper' or 'hoeffding'"):
        experts.step_size(0.1, "fast")


def test_an_update_moves_the_answer_towards_the_truth_and_nothing_else_about_it_matters():
    weights = np.log(np.array([0.1, 0.2, 0.3, 0.4]))
    query = np.array([1.0, 0.0, 0.0, 1.0])
    before = query @ experts.normalize(weights)
    lower = experts.normalize(weights + experts.log_factor(query, overshoots=True, eta=0.3))
    higher = experts.normalize(weights + experts.log_factor(query, overshoots=False, eta=0.3))
    assert query @ lower < before < query @ higher
    # 1 − q and −q differ by a constant, which normalising takes away
    assert np.allclose(higher, experts.normalize(weights + 0.3 * query))
    assert np.allclose(
        experts.normalize(weights + experts.linear_log_factor(query, overshoots=True, eta=0.3)) * (1 - 0.3 * before),
        experts.normalize(weights) * (1 - 0.3 * query),
    )


def test_the_potential_falls_by_what_theorem_4_10_says_at_every_mistake():
    for step, gain in (("paper", 0.1**2 / 4), ("hoeffding", 2 * 0.1**2)):
        for _ in range(200):
            D, p = RNG.dirichlet(np.full(16, 0.2)), RNG.dirichlet(np.full(16, 0.5))
            query = (RNG.random(16) < 0.5).astype(float)
            gap = query @ p - query @ D
            if abs(gap) < 0.1:
                continue
            factor = experts.log_factor(query, overshoots=bool(gap > 0), eta=experts.step_size(0.1, step))
            after = experts.normalize(np.log(p) + factor)
            assert D @ np.log(after / p) >= gain  # Ψ − Ψ'


@pytest.mark.parametrize("step", ["paper", "hoeffding"])
def test_algorithm_5_answers_every_query_within_alpha_in_at_most_the_bounded_number_of_updates(step):
    D = np.zeros(256)
    D[[3, 200]] = 0.5
    queries = (RNG.random((300, 256)) < 0.5).astype(float)
    p, updates = experts.multiplicative_weights_for_queries(queries, D, alpha=0.1, step=step)
    assert np.abs(queries @ (p - D)).max() <= 0.1
    assert 0 < updates <= experts.update_bound(0.1, 256, step)


def test_hoeffdings_step_allows_eight_times_fewer_updates_than_the_papers():
    assert experts.update_bound(0.01, 2**20, "paper") == pytest.approx(
        8 * experts.update_bound(0.01, 2**20, "hoeffding"), abs=8
    )
    assert experts.update_bound(0.1, 10**100, "paper") == math.floor(400 * 100 * math.log(10))
