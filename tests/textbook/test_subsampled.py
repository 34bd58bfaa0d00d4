"""Statistical queries from a few random rows: cost, accuracy, and Theorem 5 on simulated populations.

Accuracy: each promise holds but with probability β. The number of runs and the failures allowed among them are the smallest for
which a mechanism that keeps the promise fails the test with probability at most 10⁻⁶, and one that breaks it three times as often
as allowed passes with probability at most 0.01 (0.05 for whole populations).
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sequential import is_kept

from hedgerow import audit
from hedgerow.data.row_store import in_memory
from hedgerow.data.row_values import STEPS, statistic_values
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import COIN, DistinctRows, Laplace, PoissonSample, RepeatedRows, Subsampled
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Seeded
from hedgerow.query.row_statistic import statistic
from hedgerow.textbook import subsampled

BETA = 0.1
RUNS, ALLOWED = audit.runs_to_tell(BETA, 3 * BETA, false_fail=1e-6, false_pass=0.01)
ROWS = in_memory({"x": np.arange(50_000) % 2 == 0})
HALF = statistic_values(ROWS, statistic(lambda x: x, "x", vectorised=True))


def answers(plan: subsampled.SamplePlan, runs: int, budget: Budget, seed: int = 0) -> np.ndarray:
    ledger, noise = Accountant(budget), Seeded(seed)
    return np.array([subsampled.answer(plan, HALF, ROWS.rows, ledger, noise).value for _ in range(runs)])


@pytest.mark.parametrize(
    "plan",
    [
        subsampled.plan(ROWS.rows, alpha=0.05, beta=BETA),
        subsampled.plan(ROWS.rows, alpha=0.05, beta=BETA, replace=True),
        subsampled.plan(ROWS.rows, alpha=0.05, beta=BETA, size=10_000),
        subsampled.plan(ROWS.rows, alpha=0.002, beta=BETA),  # all rows: the noise alone
        subsampled.affordable(ROWS.rows, epsilon=1e-3, size=500, beta=BETA),
        subsampled.affordable(ROWS.rows, epsilon=1e-3, size=500, beta=BETA, replace=True),
    ],
    ids=["chosen", "replaced", "given", "everything", "affordable", "affordable, replaced"],
)
def test_an_answer_is_within_alpha_of_the_table_but_with_probability_beta(plan) -> None:
    found = answers(plan, RUNS, Budget(1e6, 0.0))
    assert (np.abs(found - 0.5) > plan.alpha).sum() <= ALLOWED


def test_under_add_remove_a_poisson_sample_is_as_accurate() -> None:
    plan = subsampled.poisson_plan(0.9 * ROWS.rows, alpha=0.1, beta=BETA)
    assert isinstance(plan.event.sample, PoissonSample) and plan.event.sample.heads < COIN
    found = answers(plan, RUNS, Budget(1e6, 0.0, "add-remove"))
    assert (np.abs(found - 0.5 / 0.9) > plan.alpha).sum() <= ALLOWED
    with pytest.raises(InvalidInput, match="size must be larger"):
        subsampled.poisson_plan(1e6, alpha=0.1, beta=BETA, size=10)


def test_noise_has_the_scale_that_the_accuracy_leaves_and_the_sample_the_size_of_theorem_5() -> None:
    α, β, k = 0.1, 0.05, 1000
    plan = subsampled.plan(10**9, alpha=α, beta=β, queries=k, replace=True)
    size = math.ceil(2 * math.log(4 * k / β) / α**2)
    assert plan.event.sample == RepeatedRows(size, 10**9) and plan.scale == size
    assert plan.event.inner.scale == pytest.approx(size * α / 2 / math.log(2 * k / β), rel=1e-3)
    assert plan.event.inner.sensitivity == 1 and plan.event.inner.grid == 1 / STEPS
    assert subsampled.sample_size(α, β, k, 10**9) == pytest.approx(size, abs=1)
    assert 90 < subsampled.sample_size(α, β, k, 100) <= 100


def test_a_query_costs_the_exact_loss_of_its_sample_and_no_more_than_twice_that_of_all_rows() -> None:
    few, all_rows = (subsampled.plan(10**6, alpha=0.01, beta=0.05, size=s) for s in (None, 10**6))
    assert few.event.epsilon == pytest.approx(
        math.log1p(few.event.sample.size / 10**6 * math.expm1(1 / few.event.inner.scale))
    )
    assert all_rows.event.epsilon < few.event.epsilon < 2.1 * all_rows.event.epsilon
    spent = subsampled.affordable(10**6, epsilon=0.01, size=1000, beta=0.05).event.epsilon
    assert spent == pytest.approx(0.01) and spent <= 0.01 * (1 + 1e-13)


def test_a_plan_for_more_rows_than_there_are_is_refused_for_it_would_be_billed_too_little() -> None:
    ledger = Accountant(Budget(1.0, 0.0))
    with pytest.raises(InvalidInput, match="must be for the table's 50000 rows"):
        subsampled.answer(subsampled.plan(10**6, alpha=0.1, beta=0.1), HALF, ROWS.rows, ledger, Seeded(0))
    cheap = Subsampled(DistinctRows(10, ROWS.rows), Laplace(0.5, 10.0, subsampled.GRID))
    with pytest.raises(InvalidInput, match="The sensitivity must be 1 row"):
        subsampled.answer(subsampled.SamplePlan(cheap, 0.1, 0.1, 10.0), HALF, ROWS.rows, ledger, Seeded(0))
    with pytest.raises(InvalidInput, match="size must be at least about"):
        subsampled.plan(10**6, alpha=0.01, beta=0.1, size=10)
    assert ledger.spent == 0


def test_a_refused_query_looks_at_no_row_and_a_paid_one_at_its_sample_alone() -> None:
    looked: list[int] = []

    def watching(indices: np.ndarray) -> np.ndarray:
        looked.append(indices.size)
        return np.zeros(indices.size, np.int64)

    plan = subsampled.affordable(ROWS.rows, epsilon=0.6, size=7, beta=0.1)
    ledger = Accountant(Budget(1.0, 0.0))
    subsampled.answer(plan, watching, ROWS.rows, ledger, Seeded(0))
    with pytest.raises(BudgetExceeded):
        subsampled.answer(plan, watching, ROWS.rows, ledger, Seeded(0))
    assert looked == [7]


def test_releases_are_recorded_once_and_rows_never() -> None:
    ledger = Accountant(Budget(1.0, 0.0))
    plan = subsampled.affordable(ROWS.rows, epsilon=0.1, size=64, beta=0.1)
    found = subsampled.answer(plan, HALF, ROWS.rows, ledger, Seeded(0))
    (entry,) = ledger.entries()
    assert entry.released == (found.value * 64,) and entry.cost == found.cost and not entry.private
    assert (entry.released[0] * STEPS).is_integer()


def test_the_best_of_several_is_chosen_from_a_sample() -> None:
    event = subsampled.Subsampled(DistinctRows(2000, ROWS.rows), subsampled.Exponential(1.0, 1.0))
    ledger = Accountant(Budget(1.0, 0.0))

    def scored(indices: np.ndarray) -> np.ndarray:
        return np.stack([np.full(indices.size, STEPS // 4), HALF(indices), np.full(indices.size, STEPS // 3)])

    assert subsampled.choose(event, scored, ROWS.rows, ledger, Seeded(0)) == 1
    assert ledger.spent == pytest.approx(event.epsilon) and ledger.entries()[0].released == (1,)


# Theorem 5


def votes(answers: list[float], bits: np.ndarray, mechanism) -> tuple[float, float]:
    """The last question of an analyst who overfits: how many of the features that looked common a record has."""
    signs = np.where(np.array(answers) > 0.5, 1.0, -1.0)

    def agrees(x: np.ndarray) -> np.ndarray:
        whole = x.astype(np.int64)[:, None]
        return ((whole >> bits & 1) * 2 - 1) @ signs / bits.size / 2 + 0.5

    return mechanism(agrees), 0.5


@pytest.mark.parametrize("replace", [False, True])
def test_theorem_5_answers_are_within_alpha_of_the_population_under_an_adaptive_analyst(replace) -> None:
    """The population is uniform bits, of which every statistic is ½: what is above it in the sample is chance."""
    α, β, d = 0.8, 0.2, 10
    n = subsampled.population_rows(alpha=α, beta=β, queries=d + 1)
    planned = subsampled.for_population(n + n // 50, alpha=α, beta=β, queries=d + 1, replace=replace)
    n, bits = n + n // 50, np.arange(d)

    def fails(seed: int) -> bool:
        rows = in_memory({"x": np.random.default_rng(seed).integers(0, 1 << d, n)})
        ledger, noise = Accountant(planned.budget), Seeded(seed)

        def ask(function) -> float:
            valued = statistic_values(rows, statistic(function, "x", vectorised=True))
            return subsampled.answer(planned.plan, valued, rows.rows, ledger, noise).value

        said = [ask(lambda x, j=j: x.astype(np.int64) >> j & 1) for j in bits]
        last, truth = votes(said, bits, ask)
        assert ledger.spent <= planned.budget.total * (1 + 1e-12)
        return any(abs(a - 0.5) > α for a in said) or abs(last - truth) > α

    assert is_kept(map(fails, itertools.count()), β, 3 * β)


def test_theorem_5_asks_for_an_eighth_of_alpha_on_the_sample_and_refuses_a_table_that_is_too_small() -> None:
    α, β, k = 0.4, 0.1, 50
    n = subsampled.population_rows(alpha=α, beta=β, queries=k)
    found = subsampled.for_population(n, alpha=α, beta=β, queries=k)
    assert found.plan.alpha == α / 8 and found.plan.beta == pytest.approx(α * β / 16 / k)
    assert (found.budget.epsilon, found.budget.delta) == (α / 64, α * β / 32)
    with pytest.raises(InvalidInput, match=f"rows must be at least {n}"):
        subsampled.for_population(n // 2, alpha=α, beta=β, queries=k)
    # and it grows like √k: a hundred times the queries, ten times the rows, up to the logarithm
    assert 10 < subsampled.population_rows(alpha=α, beta=β, queries=100 * k) / n < 20
