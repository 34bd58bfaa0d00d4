"""The contract of every solver in the registry, and of `auto`. A new solver is held to it as soon as it is registered.

Each is tried in the first of SETTINGS in which it can run, under both kinds of neighbours.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from preparing import prepared

import hedgerow as hr
from hedgerow import erm, errors, losses
from hedgerow.convex import sets
from hedgerow.erm.auto import Auto
from hedgerow.erm.problem import Problem
from hedgerow.erm.solver import Planner, solve
from hedgerow.erm.solvers import SOLVERS
from hedgerow.privacy.allowance import Allowance
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Event
from hedgerow.privacy.ledger import Accountant, Receipt
from hedgerow.privacy.noise import Seeded

PLANNERS: dict[str, type[Planner]] = {**SOLVERS, "auto": Auto}
BUDGETS = {kind: Budget(1.0, 1e-3, kind) for kind in ("replace", "add-remove")}
SLACK = 4e-4
SETTINGS: list[dict[str, Any]] = [
    {"loss": losses.Logistic(ridge=0.1), "over": sets.L1Ball(2.0)},
    {"loss": losses.Logistic(), "over": sets.L2Ball(2.0)},
    {"loss": losses.Logistic(), "over": sets.Unconstrained()},
]
OPTIONS = {"iterations": 5, "epochs": 2.0}  # so that no run is long

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = (X[:, 0] + 0.3 * RNG.normal(size=60) > 0).astype(float)


def table(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """A neighbour of the table, as far off as can be."""
    if kind == "add-remove":
        return X[1:], Y[1:]
    return np.vstack([[[1e9, -np.inf, np.nan, -1e-9]], X[1:]]), np.append(1 - Y[0], Y[1:])


def solver_of(name: str) -> Planner:
    fields = {field.name for field in dataclasses.fields(PLANNERS[name])}
    return PLANNERS[name](**{option: value for option, value in OPTIONS.items() if option in fields})


def problem_of(name: str, kind: str, setting: dict[str, Any], data: Any = (X, Y)) -> Problem:
    solver = solver_of(name)
    loss, over = getattr(solver, "loss", setting["loss"]), getattr(solver, "over", setting["over"])
    choices = {"norm": solver.norm} if hasattr(solver, "norm") else {}
    if kind == "add-remove":
        choices["expected_rows"] = 60
    return prepared(*data, loss, over, BUDGETS[kind], **choices)


@functools.cache
def setting_of(name: str) -> dict[str, Any]:
    for setting in SETTINGS:
        try:
            solver_of(name).plan(problem_of(name, "replace", setting), Allowance.of(BUDGETS["replace"]).quote())
        except errors.InvalidInput:
            continue
        return setting
    raise AssertionError(f"{name} can run in none of the settings: add one in which it can.")


def call(name: str, kind: str, payer: Any, data: Any = (X, Y), **choices: Any) -> erm.Result:
    function = getattr(erm, name)
    given = {**OPTIONS, **setting_of(name), **({"expected_rows": 60} if kind == "add-remove" else {})}
    known = {k: v for k, v in given.items() if k in inspect.signature(function).parameters}
    return function(*data, budget=payer, **known, **choices)


class Watching(Seeded):
    """Keeps the receipt that is drawn from, and what the ledger had charged at every draw."""

    def __init__(self, account: Accountant) -> None:
        super().__init__(3)
        self.account, self.receipts, self.drawn, self.charged = account, [], [], []

    def _redeem(self, receipt: Receipt, *kinds: type[Any]) -> Any:
        self.receipts.append(receipt)
        self.charged.append(self.account.events)
        self.drawn.append(super()._redeem(receipt, *kinds))
        return self.drawn[-1]


every_solver = pytest.mark.parametrize("name", PLANNERS)
either_neighbour = pytest.mark.parametrize("kind", BUDGETS)


# The front door


def test_every_public_solver_is_in_the_registry_under_its_name() -> None:
    functions = {name for name in erm.__all__ if inspect.isfunction(getattr(erm, name))}
    assert functions == set(PLANNERS) | {
        "by_statistical_queries"
    }  # which reads few rows, where a planner's solver reads all
    assert all(PLANNERS[name].name == name == getattr(erm, name).__name__ for name in PLANNERS)


@every_solver
def test_a_solver_s_function_has_the_shared_parameters_and_its_own_fields(name) -> None:
    function, planner = getattr(erm, name), PLANNERS[name]
    shared = {
        k: p for k, p in inspect.signature(solve).parameters.items() if k != "planner" and not hasattr(planner, k)
    }
    parameters, own = inspect.signature(function).parameters, inspect.signature(planner).parameters
    assert set(parameters) == set(shared) | set(own)
    assert all(parameters[option].default == own[option].default for option in own)
    assert all(parameters[k].kind == inspect.Parameter.KEYWORD_ONLY for k in set(parameters) - {"X", "y"})
    described = inspect.getdoc(function)
    assert described.startswith(re.split(r"\n\n(?:Parameters|Example)\n", inspect.getdoc(planner))[0])
    assert all(f"\n{parameter}\n    " in described for parameter in parameters)


@every_solver
@pytest.mark.parametrize("given", [{}, {"budget": BUDGETS["replace"], "colour": "red"}], ids=["missing", "unknown"])
def test_parameters_that_are_missing_or_unknown_are_refused_like_any_function_s(name, given) -> None:
    known = {k: v for k, v in setting_of(name).items() if k in inspect.signature(getattr(erm, name)).parameters}
    with pytest.raises(TypeError, match=r"budget|colour"):
        getattr(erm, name)(X, Y, **known, **given)


def test_only_their_own_defaults_differ() -> None:
    shared = inspect.signature(solve).parameters
    own = {
        (name, k): p.default
        for name in PLANNERS
        for k, p in inspect.signature(getattr(erm, name)).parameters.items()
        if k in shared and p.default != shared[k].default
    }
    assert own == {
        ("frank_wolfe", "norm"): "linf",
        ("lasso", "label_bound"): 1.0,
        ("regularised_output_perturbation", "over"): None,
        ("whitened_descent", "over"): None,
    }


# Plan


@every_solver
@either_neighbour
def test_a_plan_sees_no_row(name, kind) -> None:
    setting, amount = setting_of(name), Allowance.of(BUDGETS[kind]).quote()
    problem = problem_of(name, kind, setting)
    plan = solver_of(name).plan(problem, amount)
    assert plan == solver_of(name).plan(problem_of(name, kind, setting, table(kind)), amount)
    assert plan == solver_of(name).plan(dataclasses.replace(problem, X=None, y=None), amount)
    assert plan.events and plan.iterations >= 1
    assert plan.risk_bound is None or 0 < plan.risk_bound < math.inf


# Charge, then draw


@every_solver
@either_neighbour
def test_all_events_are_charged_before_the_first_draw_and_each_is_drawn_once(name, kind) -> None:
    account = Accountant(BUDGETS[kind], slack=SLACK)
    noise = Watching(account)
    found = call(name, kind, account, noise=noise)
    assert noise.charged[0] == noise.charged[-1] == account.events == found.events
    (entry,) = account.entries()
    assert entry.why == f"erm: {found.solver}" and entry.cost == found.cost
    assert len(set(map(id, noise.receipts))) == 1
    assert noise.drawn == [part for event in found.events for part in event.draws]
    with pytest.raises(errors.InvalidInput, match="one draw more"):
        noise.receipts[0].redeem(Event)


@every_solver
@either_neighbour
def test_a_spend_is_used_and_not_exceeded_and_what_is_left_pays_again(name, kind) -> None:
    account = Accountant(BUDGETS[kind], slack=SLACK)
    spend, taken = account.remaining / 3, 0
    for _ in range(2):
        found = call(name, kind, account, spend=spend, seed=0)
        taken += 1
        assert 0.99 * spend <= found.cost <= spend * (1 + 1e-9)
        if account.slack == 0:  # all of it goes with the first event that has a δ of its own
            break
    assert account.spent == pytest.approx(taken * found.cost, rel=1e-12)


@every_solver
@either_neighbour
def test_a_budget_pays_for_one_call_and_its_epsilon_is_not_exceeded(name, kind) -> None:
    found = call(name, kind, BUDGETS[kind], seed=0)
    assert 0.9 <= found.cost <= 1.0 + 1e-12
    with pytest.raises(errors.InvalidInput, match="spend must be left out"):
        call(name, kind, BUDGETS[kind], spend=0.1)


# Refusals cost nothing


def refused(name: str, account: Accountant, **choices: Any) -> None:
    with pytest.raises((errors.InvalidInput, errors.BudgetExceeded)):
        call(name, account.budget.neighbours, account, **choices)
    assert account.spent == 0 and account.entries() == ()


@every_solver
@either_neighbour
def test_a_refusal_charges_nothing(name, kind) -> None:
    account = Accountant(BUDGETS[kind], slack=SLACK)
    refused(name, account, spend=2 * account.remaining)
    refused(name, account, spend=-1.0)
    refused(name, account, row_bound=0.0)
    refused(name, account, seed=0, noise=Seeded(0))
    refused(name, account, data=(X, Y[:-1]))
    if "loss" in inspect.signature(getattr(erm, name)).parameters:
        refused_loss = {**setting_of(name), "loss": losses.MultinomialLogistic(classes=2)}
        with pytest.raises(errors.InvalidInput, match="one score per row"):
            getattr(erm, name)(
                X, Y, budget=account, **refused_loss, **({"expected_rows": 60} if kind != "replace" else {})
            )
        assert account.spent == 0


NUMBERS = [
    (name, field.name)
    for name, planner in PLANNERS.items()
    for field in dataclasses.fields(planner)
    if str(field.type).split()[0] in ("int", "float")
]


@pytest.mark.parametrize(("name", "option"), NUMBERS)
@pytest.mark.parametrize("value", [-1, 0, math.nan, math.inf], ids=str)
def test_an_option_that_makes_no_sense_is_refused_by_name_and_charges_nothing(name, option, value) -> None:
    account = Accountant(BUDGETS["replace"], slack=SLACK)
    setting = {k: v for k, v in setting_of(name).items() if not hasattr(PLANNERS[name], k)}
    with pytest.raises(errors.InvalidInput, match=option):
        getattr(erm, name)(X, Y, budget=account, **setting, **{option: value})
    assert account.spent == 0 and account.entries() == ()


@every_solver
def test_without_a_delta_it_runs_or_says_that_it_needs_one(name) -> None:
    account = Accountant(Budget(1.0, 0.0))
    try:
        found = call(name, "replace", account, seed=0)
    except errors.InvalidInput as refusal:
        assert "delta must be above 0" in str(refusal) and account.spent == 0
    else:
        assert all(math.isfinite(event.epsilon) for event in found.events) and account.spent <= 1.0 + 1e-12


# Results


@every_solver
@either_neighbour
def test_theta_is_in_the_set_and_depends_on_the_seed_alone(name, kind) -> None:
    runs = [call(name, kind, BUDGETS[kind], seed=seed) for seed in (7, 7, 8, 9, 10)]
    over = getattr(solver_of(name), "over", setting_of(name)["over"])
    assert all(run.theta.shape == (4,) and np.isfinite(run.theta).all() for run in runs)
    assert all(over.contains(run.theta, 1e-6) for run in runs)
    assert np.array_equal(runs[0].theta, runs[1].theta)
    assert any(not np.array_equal(runs[0].theta, run.theta) for run in runs[2:])


@every_solver
@either_neighbour
def test_a_neighbour_s_result_has_the_same_bill(name, kind) -> None:
    one, other = (call(name, kind, BUDGETS[kind], data, seed=1) for data in ((X, Y), table(kind)))
    facts = [(run.events, run.cost, run.risk_bound, run.iterations, run.solver) for run in (one, other)]
    assert facts[0] == facts[1]


# A session pays


def opened(**options: Any) -> hr.Session:
    universe = hr.Universe(a=hr.Range(0, 4, bins=4), b=hr.Flag())
    frame = pd.DataFrame({"a": [0, 1, 2, 3] * 50, "b": [True, False] * 100})
    return hr.open(frame, universe=universe, budget=Budget(1.0, 1e-6), reserve=0.5, **options)


@every_solver
def test_a_session_pays_and_its_log_has_the_events(name) -> None:
    session = opened(seed=0)
    spend, before, logged = session.remaining / 4, session.spent, len(session.log)
    plan = solver_of(name).plan(problem_of(name, "replace", setting_of(name)), Allowance.of(BUDGETS["replace"]).quote())
    if any(event.delta for event in plan.events):  # a session sets no δ aside
        with pytest.raises(errors.BudgetExceeded, match="slack"):
            call(name, "replace", session, spend=spend, seed=0)
        assert session.spent == before
        return
    found = call(name, "replace", session, spend=spend, seed=0)
    *_, entry = session.log
    assert len(session.log) == logged + 1 and entry.events == found.events and entry.why == f"erm: {found.solver}"
    assert session.spent - before == pytest.approx(found.cost, rel=1e-9) and entry.cost == found.cost
    with pytest.raises(errors.BudgetExceeded):
        call(name, "replace", session, spend=2 * session.remaining, seed=0)


def test_the_log_has_what_came_out_and_whether_a_seed_was_used() -> None:
    session = opened()
    drawn = [call("auto", "replace", session, spend=session.remaining / 4, **given) for given in ({}, {"seed": 0})]
    unseeded, seeded = session.log[-2:]
    for entry, found in zip((unseeded, seeded), drawn, strict=True):
        assert np.array_equal(entry.released[0], found.theta)
    assert unseeded.private and not seeded.private


def test_an_object_without_a_ledger_pays_for_nothing() -> None:
    for payer in (None, 1.0, object(), type("Impostor", (), {"ledger": BUDGETS["replace"]})()):
        with pytest.raises(errors.InvalidInput, match="budget must be a Budget or an Accountant, or a session"):
            call("auto", "replace", payer)
