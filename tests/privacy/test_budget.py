"""Budgets: their refusals, the sensitivities that follow from their neighbours, and the cost of events in their currency."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from hedgerow import errors
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import AboveThreshold, ApproximateDP, Exponential, Laplace


@pytest.mark.parametrize("ε", [0, -1, math.nan, math.inf, -math.inf, "1", True, None])
def test_an_epsilon_that_is_not_a_finite_number_above_zero_is_refused(ε) -> None:
    with pytest.raises(
        errors.InvalidInput, match=f"epsilon must be a finite number above 0. Found {re.escape(repr(ε))}"
    ):
        Budget(ε, 1e-9)


@pytest.mark.parametrize("δ", [-1e-9, 1, 1.5, math.nan, math.inf, "0", None, False])
def test_a_delta_outside_zero_to_one_is_refused(δ) -> None:
    with pytest.raises(errors.InvalidInput, match="delta must be at least 0 and below 1"):
        Budget(1.0, δ)


@pytest.mark.parametrize("neighbours", ["add", "", "Replace", None, 1])
def test_unknown_neighbours_are_refused_by_name(neighbours) -> None:
    with pytest.raises(
        errors.InvalidInput, match=f"neighbours must be 'replace' or 'add-remove'. Found {neighbours!r}"
    ):
        Budget(1.0, 0, neighbours)


def test_epsilon_and_delta_have_no_default() -> None:
    with pytest.raises(TypeError):
        Budget()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Budget(1.0)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("ask", "replace", "add_remove"),
    [
        (lambda b: b.linear(), 1, 1),
        (lambda b: b.bounded_sum(3.5), 7, 3.5),
        (lambda b: b.marginal_l1(), 2, 1),
        (lambda b: b.marginal_l2(), math.sqrt(2), 1),
        (lambda b: b.marginal_distance(), 2, 1),
        (lambda b: b.gradient(0.5), 1, 0.5),
    ],
)
def test_sensitivities_follow_the_neighbours(ask, replace, add_remove) -> None:
    assert ask(Budget(1, 0)) == ask(Budget(1, 0, "replace")) == replace
    assert ask(Budget(1, 0, "add-remove")) == add_remove


def test_brute_force_finds_no_neighbours_further_apart_than_the_stated_sensitivities() -> None:
    rng = np.random.default_rng(0)
    cells, target = 5, rng.random(5) * 4
    scores = rng.random((200, cells))
    moves = {
        "replace": [np.eye(cells)[i] - np.eye(cells)[j] for i in range(cells) for j in range(cells)],
        "add-remove": [sign * np.eye(cells)[i] for i in range(cells) for sign in (1, -1)],
    }
    table = np.array([3.0, 1, 0, 6, 2])
    for neighbours, steps in moves.items():
        budget = Budget(1, 0, neighbours)
        assert max(np.abs(m).sum() for m in steps) == budget.marginal_l1()
        assert max(np.sqrt((m**2).sum()) for m in steps) == pytest.approx(budget.marginal_l2())
        assert max(np.abs(scores @ m).max() for m in steps) <= budget.linear()
        assert max(np.abs((2 * scores - 1) @ m).max() for m in steps) <= budget.bounded_sum(1)
        distances = [abs(np.abs(table + m - target).sum() - np.abs(table - target).sum()) for m in steps]
        assert max(distances) <= budget.marginal_distance() * (1 + 1e-12)


@pytest.mark.parametrize("bound", [0, -1, math.nan])
def test_a_bound_that_bounds_nothing_is_refused(bound) -> None:
    for ask in (Budget(1, 0).bounded_sum, Budget(1, 0).gradient):
        with pytest.raises(errors.InvalidInput):
            ask(bound)


def test_the_total_is_epsilon_without_a_delta_and_rho_with_one() -> None:
    assert (Budget(0.7, 0).total, Budget(0.7, 0).currency, Budget(0.7, 0).pure) == (0.7, "epsilon", True)
    mixed = Budget(0.7, 1e-6)
    assert (mixed.total, mixed.currency, mixed.pure) == (mixed.rho(), "rho", False)


def test_slack_is_taken_from_delta_before_converting() -> None:
    budget = Budget(1, 1e-6)
    assert budget.rho(9e-7) == pytest.approx(Budget(1, 1e-7).rho(), rel=1e-9)
    assert budget.rho(9e-7) < budget.rho()


@pytest.mark.parametrize("slack", [-1e-9, 1e-6, 1, math.nan])
def test_a_slack_that_leaves_no_delta_is_refused(slack) -> None:
    with pytest.raises(errors.InvalidInput, match="slack must be"):
        Budget(1, 1e-6).rho(slack)


def test_a_pure_budget_has_no_rho() -> None:
    with pytest.raises(errors.InvalidInput, match="delta must be above 0"):
        Budget(1, 0).rho()


def test_the_cost_is_read_in_the_currency() -> None:
    for event in (Laplace(1, 10), Exponential(2, 0.1), AboveThreshold(1, 0.1, 0.2)):
        assert Budget(1, 0).cost(event) == event.epsilon
        assert Budget(1, 1e-9).cost(event) == event.rho


def test_a_budget_without_a_delta_cannot_price_an_event_that_has_one() -> None:
    assert Budget(1, 0).cost(ApproximateDP(0.1, 1e-9)) == math.inf
    assert Budget(1, 1e-6).cost(ApproximateDP(0.1, 1e-9)) < math.inf
