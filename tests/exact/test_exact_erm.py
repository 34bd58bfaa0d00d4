"""Every solver of empirical risk minimisation held to its sensitivities (``neighbouring``).

Huber's loss of a label that no score comes near has the slope ∓1 wherever θ is, so one row pulls as hard as a row can, and one
that is replaced pulls the other way. The row that changes is the last: samples of the others then stay as they are.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from neighbouring import BUDGETS, Case, faults, hold, moved, unbalanced
from preparing import prepared
from recorder import Recorder, Script, transcribed

from hedgerow import erm, losses
from hedgerow.convex import sets
from hedgerow.erm.solvers import SOLVERS, minimum
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Exponential
from hedgerow.privacy.ledger import Accountant, Ledger

FAR = 50.0
SLACK = 4e-7  # of δ, for what has one of its own
HUBER: dict[str, Any] = {"loss": losses.Huber(), "label_bound": FAR}
RIDGED: dict[str, Any] = {"loss": losses.Huber(ridge=0.5), "label_bound": FAR}
BALL, FREE = sets.L2Ball(1.0), None
APPROXIMATE = {budget.neighbours: budget for budget in BUDGETS.values() if not budget.pure}
Rows = tuple[np.ndarray, np.ndarray]


def rows(last: list[tuple[list[float], float]]) -> Rows:
    """Some small rows, and those at the end."""
    few = np.array([[0.1, 0.2, 0.0], [0.0, -0.3, 0.1], [0.2, 0.0, 0.1], [0.0, 0.1, -0.1]] * 10)
    X = np.vstack([few, *(np.array([x]) for x, _ in last)])
    return X, np.append(np.tile([0.1, -0.2], len(few) // 2), [y for _, y in last])


def pairs(budget: Budget) -> list[tuple[Rows, Rows]]:
    """A row that pulls, and one that pulls the other way or across; or that is not there."""
    along, corner, edge = [1.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, 0.0]
    tables = [rows([(x, FAR)]) for x in (along, corner, edge)]
    if budget.neighbours == "add-remove":
        return [(table, rows([])) for table in tables]
    across = [rows([([0.0, 1.0, 0.0], FAR)]), rows([([0.0, 0.0, 0.0], 0.0)]), rows([([1.0, -1.0, 0.0], FAR)])]
    back = [rows([(x, -FAR)]) for x in (along, corner, edge)]
    return [(table, other) for table, *others in zip(tables, across, back, strict=True) for other in others]


def small() -> Script:
    """Labels and moments are told to be nothing, so that rows are held at much less than they have; two features are named."""
    turns = itertools.cycle([0, 1])

    def scripted(site: str, event: Any, value: Any, drawn: Any) -> Any:
        if isinstance(event, Exponential):
            return next(turns)
        return np.zeros_like(drawn) if site.endswith(("label_size", "metric_of")) else drawn

    return scripted


def solved(name: str, budget: Budget, sites: set[str], **given: Any) -> Case:
    whitens = any("whitened" in site for site in sites)
    budget = Budget(100.0, 1e-3, budget.neighbours) if whitens else budget  # so that no noise hides a long row

    def run(table: Rows, ledger: Ledger, noise: Recorder) -> Any:
        guess = {} if budget.neighbours == "replace" else {"expected_rows": 41}
        return getattr(erm, name)(*table, budget=ledger, noise=noise, **guess, **given)

    ledger = (lambda: Accountant(budget)) if budget.pure else (lambda: Accountant(budget, slack=SLACK))
    X, y = rows([([0.3, 0.3, -0.3], 2.0)])
    elsewhere = -X[::-1] + 0.1, y[::-1]
    found = frozenset(f"erm.solvers.{site}" for site in sites)
    return Case(run, budget, pairs(budget), elsewhere, found, ledger=ledger, scripted=small() if whitens else None)


WHITENED = {f"whitened_descent:{name}" for name in ("metric_of", "descend_whitened", "label_size")}
SOLVED: dict[str, tuple[str, set[str], dict[str, Any]]] = {
    "mirror_descent": (
        "mirror_descent",
        {"mirror_descent:MirrorDescent.run.gradient"},
        {**HUBER, "over": BALL, "iterations": 3},
    ),
    "mirror_descent, l1": (
        "mirror_descent",
        {"mirror_descent:MirrorDescent.run.gradient"},
        {**HUBER, "over": sets.L1Ball(1.0), "norm": "linf", "iterations": 3},
    ),
    "noisy_sgd": (
        "noisy_sgd",
        {"noisy_sgd:NoisySgd.run.gradient"},
        {**HUBER, "over": BALL, "batch": 20, "epochs": 3.0},
    ),
    "frank_wolfe": ("frank_wolfe", {"frank_wolfe:descend"}, {**HUBER, "over": sets.L1Ball(1.0), "iterations": 3}),
    "frank_wolfe, vertices": (
        "frank_wolfe",
        {"frank_wolfe:descend"},
        {
            **RIDGED,
            "over": sets.Polytope(np.vstack([np.eye(3), -np.ones((1, 3)) / math.sqrt(3)])),
            "norm": "l2",
            "iterations": 3,
        },
    ),
    "frank_wolfe_general": (
        "frank_wolfe_general",
        {"frank_wolfe_general:FrankWolfeGeneral.run"},
        {**HUBER, "over": BALL, "iterations": 3},
    ),
    "output_perturbation": ("output_perturbation", {"output_perturbation:_noisy_minimum"}, {**RIDGED, "over": BALL}),
    "regularised_output_perturbation": (
        "regularised_output_perturbation",
        {"output_perturbation:_noisy_minimum"},
        {**HUBER},
    ),
    "whitened_descent": ("whitened_descent", WHITENED - {"whitened_descent:label_size"}, {**HUBER, "iterations": 3}),
    "whitened_descent, labels": (
        "whitened_descent",
        WHITENED,
        {"loss": losses.Squared(), "label_bound": FAR, "iterations": 3},
    ),
    "lasso": ("lasso", {*WHITENED, "frank_wolfe:descend"}, {"label_bound": FAR, "iterations": 3}),
    "lasso without refit": ("lasso", {"frank_wolfe:descend"}, {"label_bound": FAR, "iterations": 3, "refit": False}),
}
PURE = ("frank_wolfe", "frank_wolfe, vertices", "lasso without refit")

CASES: dict[str, Callable[[], Case]] = {
    f"{name}, {kind}": functools.partial(solved, solver, budget, sites, **given)
    for name, (solver, sites, given) in SOLVED.items()
    for kind, budget in BUDGETS.items()
    if name in PURE or not budget.pure
}


@pytest.mark.parametrize("name", CASES)
def test_one_row_moves_what_is_drawn_from_by_its_sensitivity_and_nothing_else_at_all(name: str) -> None:
    hold(CASES[name]())


# A guess of the number of rows that is too small: sums are cut, and pulled into balls, before noise is added. That must move no two
# of them apart in the norm in which they are billed, however many rows there are.

GUESS = 10
COUNTS = tuple(GUESS * times for times in (1, 8, 9, 20, 100))  # 8 times the guess are allowed for


def crowded(count: int, degrees: float) -> Rows:
    """So many rows that all pull one way, beside the axes."""
    angle = math.radians(degrees)
    return np.tile([math.cos(angle), math.sin(angle), 0.02], (count, 1)), np.full(count, FAR)


def newcomers(X: np.ndarray) -> np.ndarray:
    """Rows along the axes of what is left of the second moments, and corners: the worst that may come."""
    cut = np.clip(X.T @ X, -8 * GUESS, 8 * GUESS)
    _, axes = np.linalg.eigh(cut)
    corners = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0]])
    return np.vstack([axes.T, np.eye(3)[:1], corners])


def crowds(name: str) -> list[float]:
    """Shares of its sensitivity by which one more row moves what is drawn from."""
    solver, _, given = SOLVED[name]
    budget = Budget(50.0, 1e-3, "add-remove")  # knows the moments well, and tells directions apart
    shares = [0.0]

    def run(table: Rows, ledger: Ledger, noise: Recorder) -> Any:
        return getattr(erm, solver)(*table, budget=ledger, noise=noise, expected_rows=GUESS, **given)

    def transcript(table: Rows, history: Any = None) -> Any:
        return transcribed(run, table, Accountant(budget, slack=SLACK), Recorder(0, history))

    for count, degrees in itertools.product((1, *COUNTS), (9.0, 30.0)):
        X, y = crowded(count, degrees)
        one = transcript((X, y))
        for x in newcomers(X):
            for label in (FAR, -FAR):
                other = transcript((np.vstack([X, x]), np.append(y, label)), one.draws)
                assert faults(one, other, budget) == [], f"{count} rows, {degrees} degrees"
                shares += [share for _, share in moved(one, other, budget)]
    return shares


@pytest.mark.parametrize("name", SOLVED)
def test_one_more_row_moves_sums_of_up_to_a_hundred_times_the_guessed_rows_by_no_more_than_is_billed(name: str) -> None:
    assert 0.5 <= max(crowds(name)) <= 1


def test_every_solver_is_held_to_its_sensitivities() -> None:
    assert {solver for solver, *_ in SOLVED.values()} | {"objective_perturbation"} == set(SOLVERS)


@pytest.mark.parametrize("kind", APPROXIMATE)
def test_a_row_that_is_not_in_a_sample_moves_no_sum(kind: str) -> None:
    seen = set()
    for one, other in CASES[f"noisy_sgd, {kind}, approximate"]().transcripts():
        for before, a, b in zip(one.draws, one.draws[1:], other.draws[1:], strict=False):
            if before.kind == "sample":
                sampled = int(before.raw[0]) - 1 in before.out
                seen.add((sampled, a.raw != b.raw))
    assert seen == {(True, True), (False, False)}


# A tilted objective: what it tells is its minimum, of which the tilt is a function. Two tables that have one minimum have tilts
# that are no farther apart than their gradients there, and all that is left to hide is how near to it each was found.


def tilted(
    budget: Budget, table: Rows, minimum_: np.ndarray | None, over: sets.L2Ball | None = FREE
) -> tuple[Any, np.ndarray]:
    """A run whose exact minimum is the one given, and its tilt. Of a ball it is on the surface, and pushed against it."""
    given = {**HUBER, "over": over}
    guess = {} if budget.neighbours == "replace" else {"expected_rows": 41}
    tilts: list[np.ndarray] = []

    def scripted(site: str, event: Any, value: Any, drawn: Any) -> Any:
        if tilts or minimum_ is None:
            tilts.append(drawn)
            return drawn
        problem = prepared(*table, given["loss"], over or sets.Unconstrained(), budget, label_bound=FAR, **guess)
        X, Λ = problem.X * problem.unit, weight(budget, event, over)
        slopes = given["loss"].derivative(X @ minimum_, problem.y)
        sums = np.array([math.fsum(column) for column in (X * slopes[:, None]).T])
        pushed = (Λ if over is None else Λ + 3.0) * minimum_
        tilts.append(np.rint(-(sums + pushed) / event.grid) * event.grid)
        return tilts[0]

    def run(table: Rows, ledger: Ledger, noise: Recorder) -> Any:
        return erm.objective_perturbation(*table, budget=ledger, noise=noise, **guess, **given)

    found = transcribed(run, table, Accountant(budget, slack=SLACK), Recorder(0, scripted=scripted))
    return found, tilts[0]


def weight(budget: Budget, tilt: Any, over: sets.L2Ball | None = FREE) -> float:
    """Λ, from the event: curvature is λ/Λ, and Huber's λ is 1 for rows of length 1."""
    run, _ = tilted(budget, rows([]) if budget.neighbours == "add-remove" else pairs(budget)[0][0], None, over)
    (event,) = run.entries[0].events
    assert event.tilt == tilt
    return 1 / event.curvature


def found_minima(budget: Budget, over: sets.L2Ball | None = FREE) -> tuple[float, float, float]:
    """Shares of their sensitivities: how far the tilts move, how far the minima, and how far these are from the true one."""
    tilts, minima, off = [], [], []
    for first, second in pairs(budget):
        for minimum_ in (np.array([0.1, -0.2, 0.3]), np.array([-40.0, 30.0, 5.0])):
            minimum_ = minimum_ if over is None else minimum_ * (over.radius / np.linalg.norm(minimum_))
            (one, b1), (other, b2) = (tilted(budget, table, minimum_, over) for table in (first, second))
            assert [unbalanced(run) for run in (one, other)] == [[], []]
            assert one.entries[0].events == other.entries[0].events
            (event,) = one.entries[0].events
            tilts.append(float(np.linalg.norm(b1 - b2)) / event.tilt.sensitivity)
            m1, m2 = (np.array([float(x) for x in run.draws[1].raw]) for run in (one, other))
            minima.append(float(np.linalg.norm(m1 - m2)) / event.hide.sensitivity)
            off += [float(np.linalg.norm(m - minimum_)) / event.hide.sensitivity for m in (m1, m2)]
    return max(tilts), max(minima), max(off)


@pytest.mark.parametrize("over", [FREE, BALL], ids=["free", "on a ball"])
@pytest.mark.parametrize("kind", APPROXIMATE)
def test_tables_with_one_tilted_minimum_have_tilts_and_computed_minima_as_near_as_the_event_says(
    kind: str, over: sets.L2Ball | None
) -> None:
    tilts, minima, off = found_minima(APPROXIMATE[kind], over)
    assert 0.9 <= tilts <= 1 + 1e-9
    assert minima <= 1 and off <= 0.5


@pytest.mark.parametrize("kind", APPROXIMATE)
def test_minima_that_were_not_found_are_noticed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minimum, "_NEWTON_STEPS", 1)
    true = minimum._prove
    monkeypatch.setattr(minimum, "_prove", lambda *given: (true(*given)[0], 0.0))
    assert found_minima(APPROXIMATE[kind])[2] > 0.5


@pytest.mark.parametrize("radius", [0.05, 0.5, 50.0])
def test_a_minimum_is_within_its_distance_whether_or_not_the_set_binds(radius: float) -> None:
    """Output perturbation is billed for this distance besides 2L/Λ. A long descent finds the same minimum by other steps."""
    over, Λ, distance = sets.L2Ball(radius), 0.5, 1e-7
    table = rows([([1.0, 0.0, 0.0], 0.9), ([0.2, 0.9, 0.0], 0.8), ([0.0, 0.0, 0.3], -0.5)])
    problem = prepared(*table, losses.Huber(), over, APPROXIMATE["replace"])
    found = minimum.minimum(problem, over, Λ, np.zeros(3), distance)
    X, theta = problem.X * problem.unit, np.zeros(3)
    for _ in range(3000):
        theta = over.project(theta - (X.T @ losses.Huber().derivative(X @ theta, problem.y) + Λ * theta) / 6)
    assert np.linalg.norm(found - theta) <= distance + 1e-9
