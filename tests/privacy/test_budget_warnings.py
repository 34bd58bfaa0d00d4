"""Warnings about a budget that is probably a mistake, and about arguments of a wrong type, from public facts alone."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.errors import InvalidInput, PublicWarning

UNIVERSE = hr.Universe(a=hr.Flag())
FRAME = pd.DataFrame({"a": [0, 1] * 500})
REASONABLE = hr.Budget(1.0, 1e-6)


def said(budget: hr.Budget, frame: pd.DataFrame = FRAME) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hr.open(frame, universe=UNIVERSE, budget=budget)
    public = [w for w in caught if w.category is PublicWarning]
    assert all(w.filename == __file__ for w in public)
    return [str(w.message) for w in public]


def test_a_reasonable_budget_is_opened_without_a_word() -> None:
    """Also one of the largest epsilon that is not warned of."""
    assert said(REASONABLE) == said(hr.Budget(10.0, 1e-6)) == []


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (hr.Budget(1.0, 0.5), "delta should be far below 1 / rows = 0.001. Found 0.5"),
        (hr.Budget(1.0, 0.5, "add-remove"), "delta should be far below a thousandth. Found 0.5"),
        (hr.Budget(1.0, 0.00101), "delta should be far below 1 / rows"),
        (hr.Budget(1000.0, 1e-6), "epsilon should be at most 10. Found 1000"),
        (hr.Budget(10.1, 1e-6, "add-remove"), "epsilon should be at most 10. Found 10.1"),
        (hr.Budget(0.001, 1e-6), "The table should have at least"),
    ],
)
def test_a_budget_that_promises_little_does_not_pass_without_a_word(budget, words) -> None:
    (found,) = said(budget)
    assert found.startswith(words)


def test_no_text_depends_on_a_private_number_of_rows() -> None:
    budget = hr.Budget(0.01, 1e-3, "add-remove")
    assert said(budget, FRAME[:5]) == said(budget, FRAME) == []


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"budget": (1, 1e-9)}, "budget must be an hr.Budget. Found tuple."),
        ({"workload": 3}, "workload must be a workload, such as hr.marginals(2), or a list of questions. Found int."),
        ({"workload": "ab"}, "A workload must name columns of the universe. Found 'ab'"),
        ({"workload": [3]}, "workload must be a workload"),
        ({"universe": {"a": 2}}, "universe must be an hr.Universe. Found dict."),
        ({"table": 3}, "table must be the name of a table. Found int."),
        ({"ledger": 3}, "ledger must be a ledger. Found int."),
        ({"seed": "a"}, "seed must be a whole number. Found str."),
        ({"alpha": "a", "profile": "theory"}, "alpha must be a finite number above 0. Found 'a'."),
        ({"beta": "a"}, "beta must be between 0 and 1. Found 'a'."),
        ({"reserve": "a"}, "reserve and guard must be shares"),
        ({"guard": "a"}, "reserve and guard must be shares"),
        ({"queries": 1.5}, "queries must be a whole number of at least 1. Found 1.5."),
    ],
)
def test_an_argument_of_a_wrong_type_is_refused_in_a_sentence(how, words) -> None:
    with pytest.raises(InvalidInput) as refused:
        hr.open(FRAME, **{"universe": UNIVERSE, "budget": REASONABLE, **how})
    assert str(refused.value).startswith(words)


def test_a_release_refuses_likewise() -> None:
    with pytest.raises(InvalidInput, match="workload must be"):
        hr.release(FRAME, universe=UNIVERSE, budget=REASONABLE, workload=3)
    with pytest.raises(InvalidInput, match="method must be"):
        hr.release(FRAME, universe=UNIVERSE, budget=REASONABLE, method="x")
