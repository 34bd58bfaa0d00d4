"""Former names work through one release and warn once; docs/glossary.md lists them all."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow import _renamed
from hedgerow.data.source import HistogramSource
from hedgerow.privacy.events import Gaussian

UNIVERSE = hr.Universe(age=hr.Integers(0, 3))
BUDGET = hr.Budget(1.0, 1e-6)


@pytest.fixture(autouse=True)
def nothing_was_warned_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(_renamed, "warned", set())
    yield


def session(**options: Any) -> Any:
    counts = HistogramSource(UNIVERSE, [300, 200, 100, 400])
    return hr.open(counts, universe=UNIVERSE, budget=BUDGET, seed=1, **options)


def fit(**options: Any) -> Any:
    budget = hr.Budget(1.0, 1e-6, "add-remove")
    X, y = np.linspace(-1, 1, 40).reshape(20, 2), np.arange(20) % 2
    return hr.erm.auto(X, y, loss=hr.losses.Logistic(), over=hr.L2Ball(1.0), budget=budget, seed=1, **options)


OLD: dict[str, tuple[Callable[[], Any], str]] = {
    "hr.isnt": (lambda: hr.isnt is hr.not_, "hr.not_"),
    "hr.Typed": (lambda: hr.Typed is hr.TrustSchema, "hr.TrustSchema"),
    "open(rows=)": (lambda: session(rows=False), "keep_rows="),
    "open(vouched=)": (lambda: session(vouched=()), "trusted_losses="),
    "open(who=)": (lambda: session(who=""), "analyst="),
    "auto(rows=)": (lambda: np.array_equal(fit(rows=20).theta, fit(expected_rows=20).theta), "expected_rows="),
    "Ridge(rows=)": (lambda: hr.erm.Ridge(BUDGET, rows=7).expected_rows == 7, "expected_rows="),
    "LogisticRegression(rows=)": (
        lambda: hr.erm.LogisticRegression(BUDGET, rows=7).expected_rows == 7,
        "expected_rows=",
    ),
    "Session.over": (lambda: session().over("1").blocks, "select_blocks"),
    "L2Ball.minimise": (lambda: hr.L2Ball(1.0).minimise(np.array([1.0, 0.0]))[0] == -1.0, "minimize"),
    "Budget.bounded": (lambda: BUDGET.bounded(3.0) == BUDGET.bounded_sum(3.0), "bounded_sum"),
    "Budget.planned": (lambda: BUDGET.planned(Gaussian(1.0, 100.0), 0.9) is not None, "plan_noise"),
    "hedgerow.audit.checked": (lambda: hr.audit.checked is hr.audit.check_pair, "check_pair"),
}


@pytest.mark.parametrize("name", OLD)
def test_a_former_name_works_and_warns_of_the_present_one(name: str) -> None:
    use, present = OLD[name]
    with pytest.warns(DeprecationWarning, match=f"is now .*{present}"):
        assert use()


def test_the_warning_comes_once_and_at_the_line_that_uses_the_name() -> None:
    with pytest.warns(DeprecationWarning) as caught:
        assert BUDGET.bounded(1.0) == BUDGET.bounded(1.0)
    assert [each.filename for each in caught] == [__file__]


@pytest.mark.parametrize(("old", "present"), [("flip", "sample_yes_no"), ("flips", "sample_yes_no_stream")])
def test_flips_of_a_session_go_to_their_present_names(old: str, present: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"Session.{old} is now {present}"):
        assert getattr(session(), old).__name__ == present


def test_an_old_and_a_present_name_together_are_refused() -> None:
    with pytest.raises(hr.InvalidInput, match="keep_rows must be given once"):
        session(rows=False, keep_rows=False)


def test_other_spellings_work_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        assert hr.Budget(1.0, 1e-6, neighbors="add-remove").neighbors == "add-remove"
        assert hr.generalize is hr.generalise
        assert hr.statistic(lambda age: age > 1, "age", vectorized=True).vectorised
        assert hr.erm.regularized_output_perturbation is hr.erm.regularised_output_perturbation
        assert session().generalization == session().generalisation


def test_signatures_show_present_names_alone() -> None:
    shown = {*inspect.signature(hr.open).parameters, *inspect.signature(hr.erm.lasso).parameters}
    assert (
        not shown & {"rows", "who", "vouched"} and {"keep_rows", "analyst", "trusted_losses", "expected_rows"} <= shown
    )
    assert "neighbors" not in inspect.signature(hr.Budget).parameters
