"""Frank–Wolfe: privacy of a step, the exact fast selection, convergence, sparse rows, refusals."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from paying import paid
from preparing import prepared
from scipy import stats

from hedgerow import audit, errors
from hedgerow.convex.sets import Box, GroupL1Ball, L1Ball, L2Ball, Polytope, Simplex, Unconstrained
from hedgerow.erm.solvers.frank_wolfe import best_steps, frank_wolfe, score_sensitivity
from hedgerow.erm.solvers.frank_wolfe_general import frank_wolfe_general
from hedgerow.losses import Hinge, Huber, Logistic, Squared
from hedgerow.privacy import events
from hedgerow.privacy import noise as noise_module
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise, Seeded

LOOSE = Budget(1e6, 1e-6)  # almost no noise: what is left is the optimisation


def regression(n: int = 2000, p: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 1.0], (n, p))
    theta = np.zeros(p)
    theta[:2] = 0.5, -0.3
    return X, np.clip(X @ theta + 0.1 * rng.normal(size=n), -1, 1), theta


def risk(X, y, theta) -> float:
    return float(np.mean((X @ theta - y) ** 2)) / 2


# The selection


@pytest.mark.parametrize("source", [Seeded(3), Noise()], ids=["seeded", "operating system"])
def test_the_fast_selection_has_the_law_of_the_exponential_mechanism(source) -> None:
    """A χ² test that fails once in 10^6 runs; scores from the best to those of no weight."""
    scores = np.array([0.0, 0.3, -1.0, 2.0, 1.4, -2.5, 2.0, -400.0])
    event = events.Exponential(0.7, 1.1)
    runs = 4000
    counts = np.bincount([source._staircase(scores, event) for _ in range(runs)], minlength=8)
    p = np.exp(scores / event.scale)
    expected = runs * p / p.sum()
    assert counts[-1] == 0
    assert np.sum((counts - expected)[:-1] ** 2 / expected[:-1]) < stats.chi2.ppf(1 - 1e-6, 6)


def test_the_fast_selection_takes_over_for_many_scores_and_finds_a_clear_best(monkeypatch) -> None:
    scores = np.zeros(3 * noise_module._FEW)
    scores[12345] = 1e6
    monkeypatch.setattr(Noise, "_largest_gumbel", None)
    assert Seeded(0).choose(scores, paid(events.Exponential(1.0, 1.0))) == 12345


def test_the_fast_selection_reaches_every_one_of_many_equal_scores() -> None:
    noise, event = Seeded(1), events.Exponential(1.0, 1.0)
    seen = {noise._staircase(np.zeros(20), event) for _ in range(400)}
    assert seen == set(range(20))  # misses one of them with probability below 20·0.95^400 < 10^-7


# Privacy

CONFIDENCE = 0.999


def test_a_step_at_full_sensitivity_costs_what_it_says_and_the_printed_noise_four_times_its_price() -> None:
    """Two scores that one replaced row of B = 1 moves by 2 each, in opposite directions, from 5 apart."""
    ε0, runs, rng = 1.0, 12_000, np.random.default_rng(0)
    event, noise = events.Exponential(2.0, ε0), Seeded(2)
    near, far = np.array([0.0, -5.0]), np.array([-2.0, -3.0])  # to be maximised: minus the scores
    ours = audit.epsilon_lower_bound(
        lambda: noise.choose(near, paid(event)),
        lambda: noise.choose(far, paid(event)),
        runs // 4,
        confidence=CONFIDENCE,
    )
    printed = audit.epsilon_lower_bound(
        lambda: int(np.argmax(near + rng.laplace(0, 1 / ε0, 2))),  # λ = B/ε₀
        lambda: int(np.argmax(far + rng.laplace(0, 1 / ε0, 2))),
        runs,
        confidence=CONFIDENCE,
    )
    assert ours <= ε0
    assert printed > 2 * ε0


@pytest.mark.parametrize("neighbours, factor", [("replace", 2.0), ("add-remove", 1.0)])
def test_the_event_has_the_sensitivity_of_a_sum_of_scores(neighbours, factor) -> None:
    X, y, _ = regression(200)
    rows = None if neighbours == "replace" else 200
    found = frank_wolfe(
        X,
        y,
        loss=Squared(),
        over=L1Ball(1.5),
        budget=Budget(1.0, 1e-6, neighbours),
        expected_rows=rows,
        label_bound=0.5,
        seed=0,
    )
    B = (1.5 + 0.5) * 1.5  # |ℓ'| ≤ R + label bound, |⟨x, s⟩| ≤ R
    assert found.events[0].sensitivity == pytest.approx(factor * B, rel=1e-9)
    assert found.events[0].sensitivity >= factor * B


@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget(0.3, 0.0)], ids=["approximate", "pure"])
def test_the_events_fill_the_budget_and_no_more(budget) -> None:
    X, y, _ = regression(300)
    found = frank_wolfe(X, y, loss=Squared(), over=L1Ball(1.0), budget=budget, seed=0)
    spent = sum(map(budget.cost, found.events))
    assert len(found.events) == found.iterations
    assert 0.999 * budget.total < spent <= budget.total
    assert found.cost <= budget.epsilon


def test_an_accountant_pays_only_what_is_to_be_spent() -> None:
    X, y, _ = regression(300)
    accountant = Accountant(Budget(1.0, 1e-6))
    frank_wolfe(X, y, loss=Squared(), over=L1Ball(1.0), budget=accountant, spend=accountant.remaining / 4, seed=0)
    assert accountant.spent == pytest.approx(accountant.budget.total / 4)


def test_the_number_of_steps_sees_no_row() -> None:
    X, y, _ = regression(300)
    steps = [
        frank_wolfe(rows, labels, loss=Squared(), over=L1Ball(1.0), budget=Budget(1.0, 1e-6), seed=0).iterations
        for rows, labels in ((X, y), (0 * X, 0 * y), (100 * X, -100 * y))
    ]
    assert len(set(steps)) == 1


# Convergence

SETS = [L1Ball(1.0), Polytope(np.vstack([np.eye(8), -np.eye(8)]))]


@pytest.mark.parametrize("over", SETS, ids=lambda over: type(over).__name__)
def test_without_noise_it_finds_the_minimum_at_the_rate_of_the_theorem(over) -> None:
    X, y, _ = regression()
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    assert over.contains(best)
    for T in (10, 100, 400):
        found = frank_wolfe(X, y, loss=Squared(), over=over, budget=LOOSE, iterations=T, seed=0)
        assert over.contains(found.theta)
        assert 0 <= risk(X, y, found.theta) - risk(X, y, best) <= 2 * 4 / (T + 2)


def test_a_simplex_is_searched_through_its_vertices() -> None:
    rng = np.random.default_rng(1)
    X, mixture = rng.choice([-1.0, 1.0], (3000, 5)), np.array([0.6, 0.0, 0.4, 0.0, 0.0])
    y = X @ mixture
    found = frank_wolfe(X, y, loss=Squared(), over=Simplex(), budget=LOOSE, iterations=300, seed=0)
    assert Simplex().contains(found.theta)
    assert np.abs(found.theta - mixture).max() < 0.03


@pytest.mark.parametrize("over", [L2Ball(1.0), Box(-0.6, 0.6), GroupL1Ball(1.0, 4)])
def test_general_sets_reach_the_minimum_without_noise(over) -> None:
    X, y, _ = regression()
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    found = frank_wolfe_general(X, y, loss=Squared(), over=over, budget=LOOSE, iterations=300, row_bound=3.0, seed=0)
    assert over.contains(found.theta)
    assert risk(X, y, found.theta) - risk(X, y, best) < 0.01


@pytest.mark.parametrize("solver", [frank_wolfe, frank_wolfe_general])
def test_the_average_risk_is_within_the_bound_of_the_theorem(solver) -> None:
    """The mean of 10 runs; a run exceeds its bound in expectation only by luck, and here the bound is loose."""
    X, y, _ = regression(20_000)
    best = risk(X, y, np.linalg.lstsq(X, y, rcond=None)[0])
    for budget in (Budget(1.0, 1e-6), Budget(0.1, 1e-6)):
        runs = [
            solver(X, y, loss=Squared(), over=L1Ball(1.0), budget=budget, norm="linf", seed=seed) for seed in range(10)
        ]
        assert np.mean([risk(X, y, run.theta) - best for run in runs]) <= runs[0].risk_bound


def test_a_ridge_pulls_towards_zero() -> None:
    X, y, _ = regression()
    found = [
        frank_wolfe(X, y, loss=Squared(ridge=r), over=L1Ball(1.0), budget=LOOSE, iterations=300, seed=0)
        for r in (0, 1.0)
    ]
    assert np.linalg.norm(found[1].theta) == pytest.approx(np.linalg.norm(found[0].theta) / 2, rel=0.1)


def test_the_schedule_is_near_the_least_of_its_bound() -> None:
    for fit, noise, power in ((8.0, 1e-3, 0.5), (1.0, 1e-4, 1.0)):
        chosen = best_steps(fit, noise, power)
        least = min(best_steps(fit, noise, power, T).risk_bound for T in range(1, 3000))
        assert chosen.risk_bound <= 2.5 * least


# Sparse rows


def test_sparse_and_dense_rows_give_the_same_vertices() -> None:
    X, y, _ = regression(500, 30)
    X = X * (np.random.default_rng(4).random(X.shape) < 0.2)
    runs = [
        frank_wolfe(rows, y, loss=Squared(), over=L1Ball(1.0), budget=Budget(5.0, 1e-6), iterations=50, seed=3).theta
        for rows in (X, sp.csr_array(X), sp.csc_matrix(X))
    ]
    assert np.array_equal(runs[0], runs[1])
    assert np.array_equal(runs[0], runs[2])


def test_a_million_sparse_features_take_memory_linear_in_the_non_zeros() -> None:
    n, p, per_row = 2000, 1_000_000, 50
    rng = np.random.default_rng(0)
    held = n * per_row
    X = sp.csr_array(
        (rng.uniform(-1, 1, held), rng.integers(0, p, held), np.arange(0, held + 1, per_row)), shape=(n, p)
    )
    y = rng.choice([0.0, 1.0], n)
    tracemalloc.start()
    found = frank_wolfe(X, y, loss=Logistic(), over=L1Ball(1.0), budget=Budget(1.0, 1e-6), iterations=3, seed=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.count_nonzero(found.theta) <= 4
    assert peak < 20 * 8 * (held + 2 * p)  # a dense table would take 8·n·p bytes, two thousand times as much


def test_an_entry_stored_in_parts_is_clipped_as_a_whole() -> None:
    whole = prepared(np.array([[5.0, 0.0]]), [1.0], Squared(), L1Ball(1.0), Budget(1.0, 1e-6), norm="linf")
    parts = sp.csr_array((np.ones(5), np.zeros(5, dtype=int), [0, 5]), shape=(1, 2))
    stored = prepared(parts, [1.0], Squared(), L1Ball(1.0), Budget(1.0, 1e-6), norm="linf")
    assert np.array_equal(stored.X.toarray(), whole.X)
    assert parts.nnz == 5  # the caller's table is left alone


# Refusals


def test_a_set_without_vertices_is_refused_with_the_way_out() -> None:
    X, y, _ = regression(50)
    with pytest.raises(errors.InvalidInput, match="frank_wolfe_general"):
        frank_wolfe(X, y, loss=Squared(), over=L2Ball(1.0), budget=LOOSE)


def test_an_unbounded_set_is_refused() -> None:
    X, y, _ = regression(50)
    with pytest.raises(errors.InvalidInput, match="bounded"):
        frank_wolfe_general(X, y, loss=Huber(), over=Unconstrained(), budget=LOOSE)


@pytest.mark.parametrize("solver", [frank_wolfe, frank_wolfe_general])
def test_a_loss_with_kinks_is_refused(solver) -> None:
    X, y, _ = regression(50)
    with pytest.raises(errors.InvalidInput, match="smooth"):
        solver(X, (y > 0).astype(float), loss=Hinge(), over=L1Ball(1.0), budget=LOOSE)


@pytest.mark.parametrize("iterations", [0, -1, 2.5, True])
def test_a_number_of_steps_that_is_none_is_refused(iterations) -> None:
    X, y, _ = regression(50)
    with pytest.raises(errors.InvalidInput, match="iterations"):
        frank_wolfe(X, y, loss=Squared(), over=L1Ball(1.0), budget=LOOSE, iterations=iterations)


def test_rows_outside_the_bound_count_as_rows_at_it() -> None:
    X, y, _ = regression(300)
    runs = [
        frank_wolfe(rows, y, loss=Squared(), over=L1Ball(1.0), budget=Budget(5.0, 1e-6), iterations=20, seed=3).theta
        for rows in (X, 1000 * X)
    ]
    assert np.array_equal(runs[0], runs[1])


def test_the_sensitivity_includes_the_rounding_of_a_ridge() -> None:
    """With a ridge far larger than the slopes the scores are the ridge's, whose last bit is worth more than a row's slope."""
    X, y, over = np.full((100, 3), 1e-9), np.zeros(100), L1Ball(1.0)
    budget = Budget(1.0, 1e-6)
    plain, ridged = (
        score_sensitivity(prepared(X, y, Logistic(ridge=r), over, budget, row_bound=1e-9, norm="linf"))
        for r in (0.0, 1e3)
    )
    assert ridged - plain >= 100 * 1e3 * 2.0**-50
