"""No promise of a mechanism is below the lower bounds, and the tables that prove these bounds can be run."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from people import SMALL

import hedgerow as hr
from hedgerow import losses
from hedgerow.errors import InvalidInput
from hedgerow.planning import lower_bounds
from hedgerow.planning.theorems import Goal, convex_mechanisms, mechanisms, solve
from hedgerow.privacy.events import Laplace
from hedgerow.research.hard_instance import reconstruction_instance

BUDGETS = [hr.Budget(1.0, 1e-6), hr.Budget(0.1, 0.0), hr.Budget(1.0, 1e-6, "add-remove"), hr.Budget(5.0, 1e-12)]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("rows", [10**3, 10**6])
def test_no_mechanism_promises_less_than_what_none_can_reach(budget: hr.Budget, rows: int) -> None:
    for k in (1, 64, 10_000):
        least = max(b.error for b in lower_bounds.lower_bounds(budget, rows, k, 1e-4, 4096) if b.constant)
        assert least > 0
        for mechanism in mechanisms(4096):
            error = solve(mechanism, Goal(budget, rows, 0.5, k, 1e-4), "accuracy")
            if error is not None and mechanism.about == "counts":
                assert least <= error


@pytest.mark.parametrize("kind", [losses.Logistic, losses.Hinge, losses.Squared])
def test_no_fit_promises_less_than_what_none_can_reach(kind: type[losses.Loss]) -> None:
    question = hr.minimize(kind(target="smoker", features=["age"]), over=hr.L2Ball(1.0)).on(SMALL)
    bounds = lower_bounds.lower_bounds(BUDGETS[0], 10**5, 1, 0.05, SMALL.size, [question])
    (least,) = [b.error for b in bounds if b.about == "minimizers"]
    assert least > 0
    for mechanism in convex_mechanisms([question], SMALL.size):
        if not mechanism.in_expectation:  # an expectation may be smaller than what holds but for β
            error = solve(mechanism, Goal(BUDGETS[0], 10**5, 1.0, 1, 0.05), "accuracy")
            assert error is None or least <= error
    strong = hr.minimize(kind(target="smoker", features=["age"], ridge=0.1), over=hr.L2Ball(1.0)).on(SMALL)
    assert not [
        b for b in lower_bounds.lower_bounds(BUDGETS[0], 10**5, 1, 0.05, SMALL.size, [strong]) if b.about != "counts"
    ]


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.01])
@pytest.mark.parametrize("beta", [0.3, 0.05, 1e-6])
def test_the_steps_that_may_be_told_apart_are_the_first_for_which_privacy_allows_it(delta: float, beta: float) -> None:
    ε = 0.3
    t = lower_bounds.told_apart(hr.Budget(ε, delta), beta)
    allows = lambda s: math.exp(s * ε) * beta + sum(delta * math.exp(i * ε) for i in range(s)) >= 1 - beta  # noqa: E731
    assert allows(t) and not any(allows(s) for s in range(t))


def test_geometric_noise_comes_near_the_bound_of_one_count() -> None:
    """The best known noise for one count: an error of about ln(1/β)/ε rows, the bound being half of that."""
    β, n = 0.01, 10**4
    least = lower_bounds.one_count(hr.Budget(0.1, 0.0), n, β) * n
    reached = Laplace(1.0, 10.0).scale * math.log(1 / β)
    assert reached / 3 < least < reached


def chances(epsilon: float, beta: float) -> list[float]:
    """Chances of the larger of two answers, row by row: as fast from β to 1 − β as ε allows, in an odd number of rows."""
    found = [beta]
    while found[-1] < 1 - beta or len(found) % 2:
        found.append(min(math.exp(epsilon) * found[-1], 1 - math.exp(-epsilon) * (1 - found[-1])))
    return found


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("beta", [0.02, 0.1])
def test_a_mechanism_of_two_answers_is_not_below_the_bound_of_one_count_and_is_below_twice_the_bound(
    epsilon, beta
) -> None:
    """For odd n the answers (n − 1)/2 and (n + 1)/2 err by at most (n − 1)/2 rows, if the right one is given at both ends."""
    larger = chances(epsilon, beta)
    n = len(larger) - 1
    for p, q in itertools.pairwise(larger):  # a row more or less, or another: ε for both answers
        for a, b in ((p, q), (1 - p, 1 - q)):
            assert math.exp(-epsilon) * (1 - 1e-12) <= a / b <= math.exp(epsilon) * (1 + 1e-12)
    error = (n - 1) / 2
    for k, p in enumerate(larger):
        wrong = (1 - p) * (abs((n - 1) / 2 - k) > error) + p * (abs((n + 1) / 2 - k) > error)
        assert wrong <= beta * (1 + 1e-12)
    least = lower_bounds.one_count(hr.Budget(epsilon, 0.0), n, beta)
    assert least <= error / n < 2 * least


@pytest.mark.parametrize("rows", [100, 10**4])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_under_add_remove_many_counts_have_the_bound_of_two_steps(rows: int, delta: float) -> None:
    """A mechanism for rows that come and go changes one row in two steps, so it is (2ε, δ(1 + e^ε))-private for that."""
    alone = lower_bounds.many_counts(hr.Budget(0.3, delta, "add-remove"), rows, 1000, 4096, 0.05)
    steps = hr.Budget(0.6, delta * (1 + math.exp(0.3)), "replace")
    assert alone == pytest.approx(lower_bounds.many_counts(steps, rows, 1000, 4096, 0.05))
    assert alone < lower_bounds.many_counts(hr.Budget(0.3, delta, "replace"), rows, 1000, 4096, 0.05)


@pytest.mark.parametrize("copies", [1, 4])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.2, 0.6])
def test_accurate_answers_give_the_secret_away_as_far_as_the_bound_says(copies: int, share: float) -> None:
    rng = np.random.default_rng(3)
    made = reconstruction_instance(128, 600, generator=rng, copies=copies)
    error = math.sqrt(share / 36 * 128) * copies / 600  # the bound on wrong bits is then the share
    off = error * np.sign(rng.normal(size=128))
    wrong = np.mean(made.rebuild(made.answers + off) != made.secret)
    assert made.most_wrong(error) == pytest.approx(share)
    assert wrong <= share + 1e-12
    assert made.counts.sum() == 600 and made.answers[0] == pytest.approx(made.secret.sum() * copies / 600)


def test_the_bound_of_many_counts_follows_from_the_secret() -> None:
    """c_g and the constant, at one m and g by hand."""
    ε, β, n, m = 0.5, 0.01, 64, 64
    by_hand = math.sqrt(m * (1 / (1 + math.exp(ε)) - β)) / (6 * n)
    assert lower_bounds.many_counts(hr.Budget(ε, 0.0), n, m, m + 1, β) >= by_hand
    assert lower_bounds.many_counts(hr.Budget(ε, 0.0), n, 1, 2, β) < by_hand
    few, many = (lower_bounds.many_counts(hr.Budget(ε, 0.0), 10**6, k, 10**6, β) for k in (64, 64 * 4))
    assert many == pytest.approx(2 * few)  # of order √k


def test_the_least_number_of_evaluations_is_of_order_k_over_alpha_squared() -> None:
    assert lower_bounds.evaluations(0.01, 10) == pytest.approx(10 * 2 / 25 / (32 * 0.01**2), rel=0.01)
    assert lower_bounds.evaluations(0.005, 10) == pytest.approx(4 * lower_bounds.evaluations(0.01, 10), rel=0.01)
    assert lower_bounds.evaluations(0.2, 10) == 0
    assert lower_bounds.is_hard(100, 10_001) and not lower_bounds.is_hard(100, 10_000)


def test_the_lasso_has_the_growth_of_its_lower_bound() -> None:
    question = hr.minimize(losses.Squared(target="smoker", features=["age"]), over=hr.L1Ball(1.0)).on(SMALL)
    bounds = lower_bounds.lower_bounds(hr.Budget(0.1, 1e-12), 10**5, 1, 0.05, SMALL.size, [question])
    assert [b.by for b in bounds if not b.constant] == ["Talwar et al., Theorem 5.8"]
    bounds = lower_bounds.lower_bounds(hr.Budget(1.0, 1e-12), 10**5, 1, 0.05, SMALL.size, [question])
    assert all(b.constant for b in bounds)


@pytest.mark.parametrize("given", [{"bits": 3}, {"rows": 10}, {"copies": 0}])
def test_an_instance_that_cannot_be_built_is_refused(given: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match="power of two"):
        reconstruction_instance(**{"bits": 16, "rows": 100, "generator": np.random.default_rng(0), **given})  # type: ignore[arg-type]
