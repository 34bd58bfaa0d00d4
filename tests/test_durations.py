"""Work that would take days is refused from public sizes, before anything is charged, and the refusal says what to do."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from people import SMALL, frame

import hedgerow as hr
from hedgerow import _duration, opening
from hedgerow.privacy.ledger import Accountant

BUDGET = hr.Budget(1.0, 1e-6)
GUESSED = hr.Budget(1.0, 1e-6, "add-remove")
X, Y = np.zeros((20, 4)), np.ones(20)
WIDE = hr.Universe({f"x{i}": hr.Integers(0, 9) for i in range(20)})


def refused(work, account: Accountant) -> str:
    with pytest.raises(hr.TooLarge, match=r"must take at most .* hours on a fast core\. Found about ") as found:
        work()
    assert account.spent == 0
    assert f"or set {_duration.VARIABLE} to more hours." in str(found.value)
    return str(found.value)


@pytest.mark.parametrize(
    ("solver", "options"),
    [
        ("mirror_descent", {"over": hr.L2Ball(1.0), "iterations": 5000}),
        ("frank_wolfe", {"over": hr.L1Ball(1.0), "iterations": 5000}),
        ("frank_wolfe_general", {"over": hr.L2Ball(1.0), "iterations": 5000}),
        ("whitened_descent", {"over": None, "iterations": 5000}),
    ],
)
def test_a_fit_of_days_is_refused(solver, options) -> None:
    """5,000 steps over the 10^10 rows that are guessed, of 4 features each."""
    account = Accountant(GUESSED)
    about = {"loss": hr.losses.Logistic(), "budget": account, "expected_rows": 10**10, "limit": "100 TB"}
    said = refused(lambda: getattr(hr.erm, solver)(X, Y, **about, **options), account)
    assert "in 5000 steps" in said and "Take fewer steps or rows" in said and re.search(r"\d days\.", said)


def test_more_steps_than_can_be_planned_are_refused() -> None:
    for options in ({"iterations": 10**12}, {"iterations": 10**30}):
        with pytest.raises(hr.TooLarge, match="The number of steps must be at most"):
            hr.erm.mirror_descent(
                X, Y, loss=hr.losses.Logistic(), over=hr.L2Ball(1.0), budget=BUDGET, limit="1 GB", **options
            )
    with pytest.raises(hr.TooLarge, match="The number of steps must be at most"):
        hr.erm.noisy_sgd(X, Y, loss=hr.losses.Logistic(), over=hr.L2Ball(1.0), budget=BUDGET, epochs=1e300)


def test_an_opening_of_days_is_refused_before_the_table_is_read() -> None:
    account = Accountant(BUDGET)
    about = {"universe": WIDE, "budget": BUDGET, "model_cells": 10**10, "limit": "100 TB"}
    said = refused(lambda: hr.open("there is no such file.csv", ledger=account, **about), account)
    assert "20 attributes" in said and "lower model_cells" in said
    with pytest.raises(hr.TooLarge, match="hours on a fast core"):
        hr.release("there is no such file.csv", **about)


def test_a_draft_of_too_long_is_refused(monkeypatch) -> None:
    account = Accountant(BUDGET, slack=BUDGET.delta / 2)
    monkeypatch.setenv(_duration.VARIABLE, "1e-9")
    table = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    said = refused(lambda: hr.Universe.draft(table, budget=BUDGET, ledger=account), account)
    assert "2 columns" in said and "codebook" in said


def test_the_limit_is_the_owners_and_a_day_where_nothing_is_said(monkeypatch) -> None:
    monkeypatch.delenv(_duration.VARIABLE, raising=False)
    assert _duration.most_hours() == 24.0
    _duration.require("It", 24 * 3600, "Do less")
    with pytest.raises(hr.TooLarge, match=r"at most 24 hours on a fast core\. Found about 24 hours\. Do less, or set"):
        _duration.require("It", 24 * 3600 + 1, "Do less")
    monkeypatch.setenv(_duration.VARIABLE, "48")
    _duration.require("It", 24 * 3600 + 1, "Do less")
    for nonsense in ("", "a day", "0", "-1", "nan"):
        monkeypatch.setenv(_duration.VARIABLE, nonsense)
        with pytest.raises(hr.InvalidInput, match="a number of hours above 0"):
            _duration.require("It", 1.0, "Do less")


def test_an_estimate_grows_with_public_sizes_alone() -> None:
    """Rows and their values are no part of it: two tables of one universe are opened or refused alike."""
    small, wide = opening.require_time(SMALL), opening.require_time(WIDE)
    assert 0 < small < wide < opening.require_time(WIDE, 10**7)
    assert opening.require_time(WIDE, 10**7) == pytest.approx(20 * (wide - 190 * _duration.PAIR) + 190 * _duration.PAIR)


def test_a_sparse_matrix_is_not_judged_by_its_entries(monkeypatch) -> None:
    """The number of entries that are not 0 is private: an empty matrix and a full one are fitted or refused alike."""
    import scipy.sparse

    monkeypatch.setenv(_duration.VARIABLE, "1e-7")  # 0.36 ms
    outcomes = []
    for filled in (np.zeros((2000, 4)), np.ones((2000, 4))):
        with pytest.raises(hr.TooLarge) as found:
            hr.erm.mirror_descent(
                scipy.sparse.csr_matrix(filled), np.ones(2000), loss=hr.losses.Logistic(), over=hr.L2Ball(1.0),
                budget=BUDGET, iterations=1000,
            )  # fmt: skip
        outcomes.append(str(found.value))
    assert outcomes[0] == outcomes[1]


def test_times_are_written_as_people_say_them() -> None:
    said = [_duration.format_duration(s) for s in (0.2, 59, 119, 120, 7200, 3 * 86_400, 10**9, 10**30)]
    assert said == ["1 s", "59 s", "119 s", "2 minutes", "2 hours", "3 days", "32 years", "10^22 years"]


def test_ordinary_requests_are_far_below_the_limit(monkeypatch) -> None:
    monkeypatch.setenv(_duration.VARIABLE, str(1 / 60))  # a minute
    hr.open(frame(300), universe=SMALL, budget=BUDGET, seed=1)
    hr.erm.auto(X, Y, loss=hr.losses.Logistic(), over=hr.L2Ball(1.0), budget=BUDGET, seed=1)
