import dataclasses

import numpy as np
import pytest

from hedgerow.data import HistogramSource
from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Exponential
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.query.linear import Linear
from hedgerow.textbook import bounds, mwem
from hedgerow.universe.universe import Universe

UNIVERSE = Universe.from_sizes({"a": 4, "b": 3, "c": 2})
N = 10**7
PURE, APPROXIMATE = Budget(1.0, 0.0), Budget(1.0, 1e-9)
RNG = np.random.default_rng(0)
WORKLOAD = [Linear.from_table(UNIVERSE, ("a", "b"), t) for t in RNG.integers(0, 2, (20, 4, 3))] + [
    Linear.from_table(UNIVERSE, ("b", "c"), t) for t in RNG.random((20, 3, 2))
]


def skewed() -> HistogramSource:
    counts = np.zeros(UNIVERSE.size, np.int64)
    counts[[5, 9]] = N // 2
    return HistogramSource(UNIVERSE, counts)


def configured(budget=APPROXIMATE, **change):
    given = {"cells": UNIVERSE.size, "scale": N, "queries": len(WORKLOAD), "beta": 0.05, "alpha": 0.05} | change
    return mwem.configure(budget, **given)


def worst(released, data) -> float:
    return max(abs(q.dot(data.marginal(q.attributes)) / N - released.hypothesis.answer(q)) for q in WORKLOAD)


@pytest.mark.audit
@pytest.mark.parametrize("noise", [Noise(), Seeded(0)], ids=["private", "seeded"])
@pytest.mark.parametrize("step", ["paper", "hoeffding"])
@pytest.mark.parametrize("budget", [PURE, APPROXIMATE, Budget(1.0, 1e-9, "add-remove")])
def test_it_stops_early_with_every_query_within_three_alpha(budget, step, noise):
    config, accountant = configured(budget, step=step), Accountant(budget)
    released = mwem.release(config, WORKLOAD, skewed(), accountant, noise)
    assert released.stopped
    assert 0 < released.updates < config.rounds
    assert worst(released, skewed()) <= config.error
    assert accountant.spent < budget.total  # what the early stop saved is left


@pytest.mark.parametrize("step", ["paper", "hoeffding"])
@pytest.mark.parametrize("budget", [PURE, APPROXIMATE])
def test_all_rounds_together_cost_the_budget_and_no_more(budget, step):
    config = configured(budget, step=step)
    total = config.rounds * (budget.cost(config.choice) + budget.cost(config.measurement))
    assert total <= budget.total * (1 + 1e-12)
    assert total == pytest.approx(budget.total)


def test_uniform_data_stop_in_the_first_round():
    data = HistogramSource(UNIVERSE, np.full(UNIVERSE.size, N // UNIVERSE.size))
    released = mwem.release(configured(), WORKLOAD, data, Accountant(APPROXIMATE), Seeded(0))
    assert (released.updates, released.stopped, len(released.measurements)) == (0, True, 1)


def test_the_scores_move_by_at_most_one_when_a_row_is_replaced():
    rng = np.random.default_rng(1)
    seen = []

    class Watched(Seeded):
        def choose(self, scores, receipt):
            seen.append(scores)
            return super().choose(scores, receipt)

    one_round, moved = dataclasses.replace(configured(), rounds=1), []
    for _ in range(50):
        counts = rng.integers(1, 1000, UNIVERSE.size)
        neighbour = counts.copy()
        neighbour[rng.integers(UNIVERSE.size)] -= 1
        neighbour[rng.integers(UNIVERSE.size)] += 1
        seen.clear()
        for c in (counts, neighbour):
            mwem.release(one_round, WORKLOAD, HistogramSource(UNIVERSE, c), Accountant(APPROXIMATE), Watched(0))
        moved.append(np.abs(seen[0] - seen[1]).max())
    assert max(moved) <= 1
    assert max(moved) == 1  # attained by counts: the sensitivity is not overstated


def test_the_choice_is_among_all_queries_also_those_that_are_right():
    class Perverse(Seeded):
        def choose(self, scores, receipt):
            assert len(scores) == len(WORKLOAD)
            assert isinstance(receipt.redeem(Exponential), Exponential)
            return int(np.argmin(scores))

    released = mwem.release(configured(), WORKLOAD, skewed(), Accountant(APPROXIMATE), Perverse(0))
    assert released.stopped  # a query that is right ends it, as |y| ≤ 2α


def test_grouped_and_dense_evaluation_agree(monkeypatch):
    dense = mwem.release(configured(), WORKLOAD, skewed(), Accountant(APPROXIMATE), Seeded(7))
    monkeypatch.setattr(mwem, "LARGEST_MATRIX", 0)
    grouped = mwem.release(configured(), WORKLOAD, skewed(), Accountant(APPROXIMATE), Seeded(7))
    assert dense.measurements == grouped.measurements
    assert np.allclose(dense.hypothesis.marginal(UNIVERSE.names), grouped.hypothesis.marginal(UNIVERSE.names))


def test_without_an_alpha_the_smallest_that_the_rows_guarantee_is_taken():
    config = configured(alpha=None)
    needed = lambda a: mwem.rows_needed(APPROXIMATE, a, 0.05, len(WORKLOAD), UNIVERSE.size)  # noqa: E731
    assert needed(config.alpha) <= N < needed(config.alpha * 0.99)
    assert config.alpha < bounds.mwem_alpha(N, 0.05, 1.0, 1e-9, len(WORKLOAD), UNIVERSE.size)


def test_an_empty_workload_and_too_few_rows_are_refused():
    with pytest.raises(InvalidInput, match="workload must have at least one query"):
        mwem.release(configured(), [], skewed(), Accountant(PURE), Seeded(0))
    with pytest.raises(InvalidInput, match="rows must be at least"):
        configured(scale=100)
    with pytest.raises(InvalidInput, match="queries must be at least 1"):
        configured(queries=0)


def test_events_are_for_the_one_row_that_a_neighbour_moves():
    for budget in (PURE, APPROXIMATE, Budget(1.0, 1e-9, "add-remove")):
        config = configured(budget)
        assert config.choice.sensitivity == config.measurement.sensitivity == 1


def test_measurements_are_the_releases_in_the_ledger():
    accountant = Accountant(APPROXIMATE)
    released = mwem.release(configured(), WORKLOAD, skewed(), accountant, Seeded(0))
    drawn = [entry.released for entry in accountant.entries() if entry.why == "mwem: measurement"]
    assert drawn == [(measured,) for _, measured in released.measurements]


def test_an_error_of_three_alpha_does_not_stop_it_and_one_of_alpha_does():
    half = Linear.from_table(UNIVERSE, ("c",), [1.0, 0.0])
    for share, stops in ((0.5 + 3 * 0.05, False), (0.5 + 0.05, True)):
        counts = np.full((4, 3, 2), (1 - share) / 12 * N)
        counts[..., 0] = share / 12 * N
        data = HistogramSource(UNIVERSE, counts.round().astype(np.int64))
        released = mwem.release(configured(queries=1), [half], data, Accountant(APPROXIMATE), Seeded(0))
        assert (released.updates == 0) == stops


@pytest.mark.parametrize("budget", [PURE, APPROXIMATE])
def test_all_choices_and_measurements_are_right_to_within_alpha_but_for_beta(budget):
    """¾α and ¼α; the promise of 3α is these and the 2α at which it stops. A choice is off by t with probability k·e^(−εt/2Δ)."""
    config = configured(budget)
    w, T, noise = (
        config.alpha * mwem.rows_needed(budget, 0.05, 0.05, len(WORKLOAD), UNIVERSE.size) - 2,
        config.rounds,
        config.measurement,
    )
    chosen = T * len(WORKLOAD) * np.exp(-config.choice.epsilon * 0.75 * w / 2)
    spread = w / 4
    measured = T * np.exp(-spread / noise.scale) if budget.pure else 2 * T * np.exp(-(spread**2) / (2 * noise.sigma**2))
    assert chosen <= 0.025 * (1 + 1e-9) and measured <= 0.025 * (1 + 1e-9)
    assert config.error == pytest.approx((2 + 0.75 + 0.25) * config.alpha)


def test_scores_are_whole_steps_so_that_no_rounding_depends_on_the_data():
    rng = np.random.default_rng(2)
    steps = np.array([1.0, 2.0**-10])
    for _ in range(100):
        counted, believed = rng.integers(0, 2**30, 2) * steps, rng.random(2) * 2.0**30
        scores = mwem._scores(counted, believed, steps) / steps
        assert np.array_equal(scores, np.round(scores))
