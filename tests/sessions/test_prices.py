"""A price equals the later charge, even if parts of a question were answered before."""

from __future__ import annotations

import contextlib

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr

UNIVERSE = hr.Universe(
    age=hr.Integers(0, 4), visits=hr.Integers(-2, 2), city=hr.Categories(["x", "y", "z", "w"]), smoker=hr.Flag()
)


def opened(budget: hr.Budget, seed: int) -> hr.Session:
    rng = np.random.default_rng(seed)
    people = pd.DataFrame(
        {
            "age": rng.integers(0, 5, 400),
            "visits": rng.integers(-2, 3, 400),
            "city": rng.choice(["x", "y", "z", "w"], 400, p=[0.4, 0.3, 0.2, 0.1]),
            "smoker": rng.random(400) < 0.3,
        }
    )
    return hr.open(people, universe=UNIVERSE, budget=budget, reserve=0.7, guard=0.0, seed=seed, progress=False)


@pytest.mark.parametrize(
    "budget", [hr.Budget(30.0, 0.0), hr.Budget(10.0, 1e-6), hr.Budget(20.0, 1e-6, "add-remove")], ids=repr
)
def test_a_question_whose_parts_were_bought_or_asked_before_costs_its_price(budget) -> None:
    """A part keeps the answer that it was given, whose bar may be narrower than that of the model."""
    compared = 0
    for seed in range(4):
        session = opened(budget, seed)
        group = hr.count(age={0, 2, 4}, city={"x", "z"})
        session.ask(group, within=0.03)
        session.ask(hr.count(city="y", smoker=False))
        session.ask(hr.marginal("age", "city"), within=0.06)
        for within in (0.2, 0.05, 0.02):
            for query in (
                hr.mean("visits", where=group),
                hr.share(hr.count(smoker=True), where=group),
                hr.difference(group, hr.count(city="y", smoker=False)),
            ):
                try:
                    price = session.price(query, within=within)
                    before = session.spent
                    answer = session.ask(query, within=within)
                except hr.BudgetExceeded:
                    continue
                assert answer.cost == pytest.approx(price) == pytest.approx(session.spent - before)
                compared += price > 0
    assert compared > 3


def test_the_theory_profile_prices_nothing_that_it_does_not_sell() -> None:
    """Its answers have one bar: a narrower one is refused before anything is asked."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "age": rng.integers(0, 5, 2000),
            "visits": rng.integers(-2, 3, 2000),
            "city": rng.choice(["x", "y", "z", "w"], 2000),
            "smoker": rng.random(2000) < 0.3,
        }
    )
    session = hr.open(people, universe=UNIVERSE, budget=hr.Budget(10.0, 1e-6), profile="theory", seed=0)
    bar = session.ask(hr.count(age=1)).error
    assert bar is not None and session.price(hr.count(age=2), within=1.01 * bar) == 0.0
    spent = session.spent
    with pytest.raises(hr.InvalidInput, match="at least the bar"):
        session.price(hr.count(age=2), within=0.9 * bar)
    assert session.spent == spent


@pytest.mark.parametrize("budget", [hr.Budget(30.0, 0.0), hr.Budget(10.0, 1e-6)], ids=repr)
@pytest.mark.parametrize("within", [5e-324, 1e-300, 1e-160, 1e-15])
def test_a_bar_that_no_budget_buys_is_refused_for_nothing(budget, within) -> None:
    session = opened(budget, 1)
    spent = session.spent
    for question in (hr.count(smoker=True), hr.marginal("city"), hr.mean("age")):
        with pytest.raises(hr.HedgerowError, match="must"):
            session.ask(question, within=within)
        with contextlib.suppress(hr.HedgerowError):  # or a price that nobody can pay
            assert session.price(question, within=within) > session.remaining
    assert session.spent == spent
