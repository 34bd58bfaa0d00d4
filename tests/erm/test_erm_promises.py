"""The statements of a solver's plan, derived again: the effect of one row, the noise, and the bound of the theorem."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from paying import paid

from hedgerow import losses
from hedgerow._types import Array
from hedgerow.convex.sets import L1Ball, L2Ball, Unconstrained
from hedgerow.convex.sets.potentials import Euclidean
from hedgerow.erm.problem import Problem, prepare_problem
from hedgerow.erm.rows import Arrays
from hedgerow.erm.solver import Draw
from hedgerow.erm.solvers import objective_perturbation, output_perturbation
from hedgerow.erm.solvers.descent import Schedule, descend
from hedgerow.erm.solvers.frank_wolfe import FrankWolfe, curvature
from hedgerow.erm.solvers.minimum import rounding_distance
from hedgerow.erm.solvers.mirror_descent import MirrorDescent, least_risk, potential_of
from hedgerow.erm.solvers.noisy_sgd import NoisySgd
from hedgerow.erm.solvers.whitened_descent import WhitenedDescent, label_event
from hedgerow.errors import InvalidInput
from hedgerow.privacy.allowance import Allowance, Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Exponential
from hedgerow.privacy.noise import Seeded

REPLACE, ADD_REMOVE = Budget(1.0, 1e-6), Budget(1.0, 1e-6, "add-remove")
ROWS, COLUMNS = 400, 5


def made(budget: Budget = REPLACE, seed: int = 0, **change: Any) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, COLUMNS))
    given: dict[str, Any] = {"loss": losses.Logistic(), "over": L2Ball(1.0), "row_bound": 1.0, "norm": "l2"}
    given |= {"label_bound": None, "expected_rows": ROWS if budget is ADD_REMOVE else None} | change
    return prepare_problem(Arrays(X, (X[:, 0] > 0).astype(float)), budget=budget, **given)


def all_of(budget: Budget) -> Amount:
    return Allowance.of(budget).quote()


class Watched(Draw):
    """Draws without noise, and remembers what was to be hidden."""

    def __init__(self, sample: Array | None = None) -> None:
        super().__init__(Seeded(0), paid(Exponential(1.0, 1.0)))
        object.__setattr__(self, "seen", [])
        object.__setattr__(self, "fixed", sample)

    def add(self, value: Array) -> Array:
        self.seen.append(value)
        return value

    def choose(self, scores: Array) -> int:
        self.seen.append(scores)
        return len(self.seen) % scores.size

    def sample(self, rows: int) -> Any:
        return self.fixed


def test_no_slope_counts_for_more_than_its_bound() -> None:
    problem = made()
    top = problem.sum_of(np.full(ROWS, problem.slope_bound), problem.X)
    assert np.array_equal(problem.sum_of(np.full(ROWS, 1e6), problem.X), top)
    one = problem.X[:1]
    assert np.linalg.norm(problem.sum_of(np.array([1e6]), one)) <= problem.lipschitz


def test_with_a_private_n_only_the_guess_of_n_is_seen() -> None:
    for guess in (1, 50, 10**6):
        assert made(ADD_REMOVE, expected_rows=guess).n == guess


@pytest.mark.parametrize("budget", [REPLACE, ADD_REMOVE], ids=["replace", "add-remove"])
def test_one_row_moves_the_scores_of_frank_wolfe_by_what_is_billed(budget) -> None:
    """And some row by more than half of that: two that are as far apart as the bounds allow."""
    given: dict[str, Any] = {"loss": losses.Squared(), "over": L1Ball(1.0), "norm": "linf", "label_bound": 1.0}
    problem = made(budget, **given)
    X, y = problem.X.copy(), problem.y.copy()
    whole = math.floor(1.0 / problem.unit)
    X[0], y[0] = whole, 1.0
    other = dataclasses.replace(problem, X=X.copy(), y=y.copy())
    X[0], y[0] = whole, -1.0
    problem = dataclasses.replace(problem, X=X, y=y)
    if budget is ADD_REMOVE:
        other = dataclasses.replace(other, X=X[1:], y=y[1:])
    solver = FrankWolfe(iterations=6)
    plan, seen = solver.plan(problem, all_of(budget)), []
    for each in (problem, other):
        draw = Watched()
        solver.run(each, plan, draw)
        seen.append(np.array(draw.seen))  # type: ignore[attr-defined]
    moved = np.abs(seen[0] - seen[1]).max()
    assert 0.3 * plan.events[0].sensitivity < moved <= plan.events[0].sensitivity


def test_the_bound_of_frank_wolfe_is_that_of_the_theorem() -> None:
    """2Γ/(T + 2) + (2Δ/nε₀)·ln k, and rounding is in Δ."""
    problem = made(loss=losses.Squared(), over=L1Ball(1.0), norm="linf", label_bound=1.0)
    plan = FrankWolfe(iterations=9).plan(problem, all_of(REPLACE))
    event = plan.events[0]
    stated = 2 * curvature(problem) / 11 + 2 * event.sensitivity / (ROWS * event.epsilon) * math.log(2 * COLUMNS)
    assert plan.risk_bound == pytest.approx(stated)
    exact = 2 * problem.slope_bound  # of a row in the unit cube, at a vertex of the ball
    assert event.sensitivity >= exact * (1 + ROWS * 2.0**-46) > exact


def test_a_step_of_sgd_sees_the_rows_of_its_sample_alone_and_scales_them_to_all() -> None:
    problem, some = made(), np.arange(0, ROWS, 7)
    solver = NoisySgd(batch=50, epochs=1.0)
    plan = solver.plan(problem, all_of(REPLACE))
    draw = Watched(some)
    theta = solver.run(problem, plan, draw)
    start = potential_of(problem).start
    assert np.array_equal(draw.seen[0], problem.gradient(start, some))  # type: ignore[attr-defined]
    expected = descend(lambda θ: problem.gradient(θ, some) / 50, potential_of(problem), plan.details.steps)
    assert theta == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("budget", [REPLACE, ADD_REMOVE], ids=["replace", "add-remove"])
def test_the_noise_of_sgd_is_for_the_longest_gradient_of_a_row(budget) -> None:
    problem = made(budget)
    plan = NoisySgd(batch=50, epochs=1.0).plan(problem, all_of(budget))
    assert plan.events[0].noise.sensitivity >= problem.lipschitz == problem.slope_bound


@pytest.mark.parametrize("budget", [REPLACE, ADD_REMOVE], ids=["replace", "add-remove"])
def test_noise_on_a_minimum_pays_for_how_far_the_computed_one_is(budget) -> None:
    """Two of them, each off by the distance; besides that neighbours' minima are 2L/Λ apart, or L/Λ."""
    problem = made(budget, over=Unconstrained())
    moved = (2 if budget is REPLACE else 1) * problem.lipschitz
    plan: Any = objective_perturbation.ObjectivePerturbation(radius=1.0).plan(problem, all_of(budget))
    assert plan.events[0].hide.sensitivity >= 2 * plan.details.distance
    assert plan.events[0].tilt.sensitivity >= moved
    plan = output_perturbation.RegularizedOutputPerturbation(radius=1.0).plan(problem, all_of(budget))
    assert plan.events[0].sensitivity >= moved / plan.details.weight + 2 * plan.details.distance


def test_within_a_set_the_distance_allows_for_what_a_long_tilt_does_to_the_proof_of_a_minimum() -> None:
    problem = made(over=L2Ball(1.0))
    plan: Any = objective_perturbation.ObjectivePerturbation().plan(problem, all_of(REPLACE))
    t = objective_perturbation.beyond(REPLACE.epsilon, REPLACE.delta)
    Λ, long = plan.details.weight, plan.events[0].tilt.sigma * (math.sqrt(COLUMNS) + t)
    more = rounding_distance(problem, problem.over, Λ, long) - rounding_distance(problem, problem.over, Λ)
    assert more == pytest.approx(2 * (4 * (COLUMNS + 16) + 8) * 2.0**-53 * long / Λ)
    assert plan.details.distance >= rounding_distance(problem, problem.over, Λ, long)


def test_hiding_the_distance_to_the_minimum_takes_about_a_hundredth_of_the_bound_within_a_set() -> None:
    """With many rows and a small budget, so that the minimum can be computed as closely as the comparison needs."""
    budget, n = Budget(0.01, 1e-6), 10**6
    about: dict[str, Any] = {"loss": losses.Logistic(), "over": L2Ball(1.0), "row_bound": 1.0, "norm": "l2"}
    problem = prepare_problem(
        Arrays(np.ones((n, 2)), np.ones(n)), budget=budget, label_bound=None, expected_rows=None, **about
    )
    plan: Any = objective_perturbation.ObjectivePerturbation().plan(problem, all_of(budget))
    hidden = objective_perturbation.hidden_risk(problem, plan.events[0].hide.sigma)
    assert plan.risk_bound is not None and 0 < hidden <= 0.015 * plan.risk_bound


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (1.0, 1e-40), (80.0, 1e-6), (1e-3, 5e-324)])
def test_a_tilt_longer_than_is_allowed_for_costs_next_to_nothing_of_any_delta(epsilon, delta) -> None:
    """P(‖b‖ > σ(√p + t)) ≤ e^(−t²/2), which is paid for on both sides: (1 + e^ε) times."""
    t = objective_perturbation.beyond(epsilon, delta)
    assert t >= 12 and math.log1p(math.exp(epsilon)) - t**2 / 2 <= math.log(1e-9) + math.log(delta)
    least = math.sqrt(2 * (math.log1p(math.exp(epsilon)) - math.log(1e-9) - math.log(delta)))
    assert t <= max(12.0, 1.01 * least)  # and no longer, for the noise that hides the minimum grows with it
    tiny = Budget(epsilon, delta) if epsilon == 1 else REPLACE
    problem = made(tiny, over=L2Ball(1.0))
    plan: Any = objective_perturbation.ObjectivePerturbation().plan(problem, all_of(tiny))
    long = plan.events[0].tilt.sigma * (math.sqrt(COLUMNS) + objective_perturbation.beyond(tiny.epsilon, tiny.delta))
    assert plan.details.distance >= rounding_distance(problem, problem.over, plan.details.weight, long)


def test_the_bounds_of_perturbations_are_those_of_their_docstrings() -> None:
    """(ΛR²/2 + pσ²/2Λ)/n, and (L + Δ‖C‖)·σ√p within a set of radius ‖C‖, (λ + Δ)·pσ²/2 without one."""
    assert objective_perturbation.risk_bound(100, 5, 2.0, 3.0, 4.0) == pytest.approx((6 + 5 * 16 / 6) / 100)
    assert objective_perturbation.risk_bound(100, 5, 2.0, 3.0, 4.0, width=1.5) == pytest.approx((6 + 4 * 1.5) / 100)
    inside = made(loss=losses.Logistic(ridge=0.1), over=L2Ball(2.0))
    plan: Any = objective_perturbation.ObjectivePerturbation().plan(inside, all_of(REPLACE))
    Λ, tilt, hide = plan.details.weight, plan.events[0].tilt, plan.events[0].hide
    exact = objective_perturbation.risk_bound(
        ROWS, COLUMNS, 2.0, Λ - ROWS * 0.1, tilt.sigma, ROWS * 0.1, inside.over.gaussian_width(COLUMNS)
    )
    hidden = (inside.lipschitz + 0.1 * 2) * hide.sigma * math.sqrt(COLUMNS)
    assert plan.risk_bound == pytest.approx(exact + hidden, rel=1e-9) and hidden > 1e-4 * exact
    stated = (inside.lipschitz + 0.1 * 2) * 0.3 * math.sqrt(COLUMNS)
    assert output_perturbation.risk_bound(inside, 0.3) == pytest.approx(stated)
    free = dataclasses.replace(inside, over=Unconstrained())
    assert output_perturbation.risk_bound(free, 0.3) == pytest.approx((free.smoothness + 0.1) * COLUMNS * 0.09 / 2)


def test_two_sums_of_labels_are_billed_as_two() -> None:
    """Σ|y/b|² and Σ|y/b|³ each move by up to 1 where a row is replaced: by √2 in ℓ2."""
    assert label_event(made(), all_of(REPLACE), 0.1).sensitivity >= math.sqrt(2)


def test_a_row_at_every_bound_of_its_entries_is_as_long_as_is_billed() -> None:
    problem = made(norm="linf", over=L1Ball(1.0))
    corner = np.full((1, COLUMNS), math.floor(problem.row_bound / problem.unit), dtype=float)
    length = np.linalg.norm(problem.sum_of(np.array([problem.slope_bound]), corner))
    assert 0.99 * problem.lipschitz < length <= problem.lipschitz


@pytest.mark.parametrize(("smooth", "mean"), [(False, 1.0), (True, 2.0)])
def test_descent_averages_its_steps_as_its_bound_says(smooth, mean) -> None:
    """Along a constant slope θ is −1, −2, −3 of it: their mean where the loss is smooth, else that of 0, −1, −2."""
    plan, far = Schedule(np.ones(3), 0.0, smooth, 0.0), L2Ball(100.0)
    found = descend(lambda θ: np.array([1.0, 0.0]), Euclidean(np.zeros(2), 1.0, 1.0, far.project), plan)
    assert found == pytest.approx([-mean, 0.0])


class Same(Watched):
    """The same choice every time."""

    def choose(self, scores: Array) -> int:
        return 3


def test_frank_wolfe_leaves_its_start_behind() -> None:
    """Its first step goes all the way, so where all choices are one vertex it ends there."""
    problem = made(loss=losses.Squared(), over=L1Ball(1.0), norm="linf", label_bound=1.0)
    solver = FrankWolfe(iterations=5)
    theta = solver.run(problem, solver.plan(problem, all_of(REPLACE)), Same())
    assert np.array_equal(theta, problem.over.vertex(3, COLUMNS).dense(COLUMNS))  # type: ignore[attr-defined]


@pytest.mark.parametrize("budget", [REPLACE, Budget(1.0, 0.0)], ids=["approximate", "pure"])
def test_all_choices_of_frank_wolfe_cost_the_budget_and_no_more(budget) -> None:
    problem = made(budget, loss=losses.Squared(), over=L1Ball(1.0), norm="linf", label_bound=1.0)
    amount = Amount(budget, budget.total)
    for iterations in (None, 7):
        plan = FrankWolfe(iterations=iterations).plan(problem, amount)
        assert math.fsum(map(budget.cost, plan.events)) == pytest.approx(budget.total)


class Told(Watched):
    """Releases what was released before, and remembers what was to be hidden now."""

    def __init__(self, before: list[Array]) -> None:
        super().__init__()
        object.__setattr__(self, "before", list(before))

    def add(self, value: Array) -> Array:
        self.seen.append(value)
        return self.before[len(self.seen) - 1]


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Squared()], ids=["Logistic", "Squared"])
def test_no_row_moves_a_release_of_whitened_descent_by_more_than_is_billed(loss) -> None:
    """Two tables with one history: a row far longer than the others, and a neighbour where it points the other way, or is short."""
    rng = np.random.default_rng(1)
    X, y = 0.05 * rng.normal(size=(ROWS, COLUMNS)), np.sign(rng.normal(size=ROWS))
    X[0], y[0] = [0.0, 0.0, 0.0, 0.6, 0.8], 1.0
    solver, amount = WhitenedDescent(iterations=8), all_of(REPLACE)
    for row, label in (([0.0, 0.0, 0.0, -0.6, 0.8], 1.0), ([0.0, 0.0, 0.0, 0.6, 0.8], -1.0), ([0.0] * 5, -1.0)):
        tables = [(X, y), (np.vstack([row, X[1:]]), np.array([label, *y[1:]]))]
        problems = [
            prepare_problem(
                Arrays(*table), loss=loss, over=Unconstrained(), budget=REPLACE, row_bound=1.0, norm="l2",
                label_bound=1.0, expected_rows=None,
            )
            for table in tables
        ]  # fmt: skip
        plan, first = solver.plan(problems[0], amount), Watched()
        solver.run(problems[0], plan, first)
        again = Told(first.seen)  # type: ignore[attr-defined]
        solver.run(problems[1], plan, again)
        moved = [np.linalg.norm(a - b) for a, b in zip(first.seen, again.seen, strict=True)]  # type: ignore[attr-defined]
        assert all(by <= event.sensitivity for by, event in zip(moved, plan.events, strict=True))
        assert max(moved) > 0.1


def test_descent_says_each_step_when_it_is_done() -> None:
    told: list[int] = []
    set_, plan = L2Ball(1.0), Schedule(np.ones(3), 0.0, False, 0.0)
    descend(lambda θ: np.zeros(2), Euclidean(np.zeros(2), 1.0, 1.0, set_.project), plan, told.append)
    assert told == [1, 2, 3]


@pytest.mark.parametrize("over", [Unconstrained(), L2Ball(1.0)], ids=repr)
@pytest.mark.parametrize(("n", "reach"), [(400, 1.0), (10**5, 1.0), (10**5, 0.01)])
def test_no_weight_has_a_much_better_bound_than_the_one_that_is_chosen(n, reach, over) -> None:
    """Among weights a billion times apart. For a short minimum the best one is large."""
    problem = dataclasses.replace(made(over=over), n=n)
    ε, δ = 1.0, 1e-6
    own, width = problem.n * problem.loss.ridge, objective_perturbation.width_of(problem)

    def promised(weight: float, sigma: float) -> float:
        return objective_perturbation.risk_bound(n, COLUMNS, reach, weight - own, sigma, own, width)

    found = promised(*objective_perturbation.weight_of(problem, ε, δ, reach))
    for weight in problem.smoothness * np.geomspace(1e-3, 1e6, 60):
        try:
            sigma = objective_perturbation.noise_scale(ε, δ, problem.smoothness, problem.lipschitz, weight, "replace")
        except InvalidInput:  # too little weight leaves nothing of epsilon to the tilt
            continue
        assert found <= 1.15 * promised(weight, sigma)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_the_choice_among_solvers_compares_the_bound_that_mirror_descent_has_with_many_steps(neighbours) -> None:
    """For a smooth loss whose bound is nearly all noise: with a small budget, and with so many steps that only they come near."""
    budget = Budget(0.1, 1e-6, neighbours)
    problem = made(budget, expected_rows=None if neighbours == "replace" else ROWS)
    plan = MirrorDescent(iterations=5000).plan(problem, all_of(budget))
    assert plan.risk_bound is not None
    assert 0.9 * plan.risk_bound <= least_risk(problem, all_of(budget)) <= plan.risk_bound


class Elsewhere(Problem):
    """A problem whose rows are on a cluster."""

    is_here = False


@pytest.mark.parametrize(
    "solver",
    [
        NoisySgd(), objective_perturbation.ObjectivePerturbation(), output_perturbation.OutputPerturbation(),
        output_perturbation.RegularizedOutputPerturbation(),
    ],
    ids=lambda solver: solver.name,
)  # fmt: skip
def test_a_solver_that_reads_single_rows_refuses_a_cluster_before_anything_is_planned(solver) -> None:
    here = made(loss=losses.Logistic(ridge=0.1))
    there = Elsewhere(**{field.name: getattr(here, field.name) for field in dataclasses.fields(here)})
    with pytest.raises(InvalidInput, match=f"must be in memory for {solver.name}, which reads single rows"):
        solver.plan(there, all_of(REPLACE))
