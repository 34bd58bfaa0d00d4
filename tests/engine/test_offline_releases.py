"""Releases by textbook mechanisms promise what their theorems do, for the declared workload and for nothing else."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import hedgerow as hr
from hedgerow import losses
from hedgerow.data import HistogramSource
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.textbook import bounds, convex_offline, convex_pmw, mwem, small_db

TINY = hr.Universe(a=hr.Flag(), b=hr.Flag())
TINY_COUNTS = np.array([[600_000, 100_000], [50_000, 250_000]])
FIT = hr.Universe.from_sizes({"y": 2, "a": 3, "b": 2})
FIT_COUNTS = (
    np.random.default_rng(0)
    .multinomial(10**8, 0.8 / 12 + 0.2 * np.random.default_rng(1).dirichlet(np.ones(12)))
    .reshape(2, 3, 2)
)
BUDGET, BALL = hr.Budget(1.0, 1e-9), hr.L2Ball(1.0)
ASKED = [
    hr.minimize(losses.Logistic(target="y", features=["a", "b"]), over=hr.L2Ball(1.0)),
    hr.minimize(losses.Huber(target="y", features=["a"]), over=hr.L2Ball(1.0)),
]


@pytest.mark.parametrize("workload", [hr.marginals(2), [hr.count(a=True), hr.marginal("a", "b")]], ids=["VC", "list"])
def test_small_db_is_within_its_promise_and_costs_no_delta(workload) -> None:
    source = HistogramSource(TINY, TINY_COUNTS)
    made = hr.release(source, universe=TINY, budget=BUDGET, workload=workload, method="small_db", seed=0)
    answer = made.ask(hr.marginal("a", "b"))
    assert np.max(np.abs(answer.value - TINY_COUNTS / TINY_COUNTS.sum())) <= np.max(answer.error) < 0.3
    assert made.budget == hr.Budget(1.0, 0.0) and made.spent == pytest.approx(1.0) and answer.cost == 0
    assert len(made.synthetic(100)) == 100
    with pytest.raises(hr.BudgetExceeded, match="the bar that the release promises"):
        made.ask(hr.count(a=True), within=0.001)


def test_the_size_of_small_db_is_the_best_that_can_be_enumerated() -> None:
    size, error = small_db.best_size(4, 10**6, 4, 0.05, 1.0)
    promise = lambda m: math.sqrt(math.log(4) / m) + 2 * (bounds.ln_databases(4, m) + math.log(20)) / 1e6  # noqa: E731
    assert error == pytest.approx(promise(size)) and small_db.databases(4, size) <= small_db.MOST_DATABASES
    assert error <= min(promise(m) for m in (1, 10, 100)) + 1e-12
    few, many = (small_db.best_size(4, n, 4, 0.05, 1.0)[0] for n in (100, 10**6))
    assert few < many
    by_count, by_class = (small_db.best_size(2, 10**9, 10**60, 0.05, 1.0, vc)[1] for vc in (None, 1))
    assert by_class < by_count  # so many questions of VC dimension 1
    with pytest.raises(hr.HedgerowError, match="databases to choose from"):
        small_db.best_size(10**7, 10**6, 4, 0.05, 1.0)


def test_the_convex_release_is_within_its_promise_on_declared_losses() -> None:
    source = HistogramSource(FIT, FIT_COUNTS)
    made = hr.release(source, universe=FIT, budget=BUDGET, workload=ASKED, method="convex", seed=0)
    for question in ASKED:
        answer, bound = made.ask(question), question.on(FIT)
        counts = source.marginal(bound.attributes) / source.rows
        best = bound.fit_on(_Shares(counts))[0]
        objective = bound.risk.objective(counts)
        assert answer.cost == 0 and 0 < answer.error < 0.2
        assert objective.value(answer.value) - objective.value(best.theta) <= answer.error
    other = hr.minimize(losses.Squared(target="y", features=["b"]), over=hr.L2Ball(1.0))
    assert made.ask(other).error is None and made.ask(hr.count(y=1)).error is None
    assert made.ask(ASKED[0], within=0.5).error < 0.5
    with pytest.raises(hr.BudgetExceeded, match="the excess risk that the release promises"):
        made.ask(ASKED[0], within=1e-6)


class _Shares:
    def __init__(self, shares: np.ndarray) -> None:
        self._shares = shares

    def marginal(self, names) -> np.ndarray:
        return self._shares


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"budget": hr.Budget(1.0, 1e-9, "add-remove")}, "needs a public n"),
        ({"workload": [hr.count(y=1)]}, "must be convex questions"),
        ({"workload": [hr.minimize(losses.Logistic(target="y", features=["a"]))]}, "must be convex questions"),
        ({"method": "magic"}, "method must be one of"),
    ],
)
def test_a_convex_release_that_makes_no_sense_is_refused(changes, said) -> None:
    source = HistogramSource(FIT, FIT_COUNTS)
    with pytest.raises(hr.InvalidInput, match=said):
        hr.release(source, **{"universe": FIT, "budget": BUDGET, "workload": ASKED, "method": "convex", **changes})


def test_a_convex_release_of_too_few_rows_says_what_to_do() -> None:
    source = HistogramSource(FIT, FIT_COUNTS // 10**6)
    with pytest.raises(hr.InvalidInput, match="must have more rows for the convex questions"):
        hr.release(source, universe=FIT, budget=BUDGET, workload=ASKED, method="convex")


def test_a_convex_release_that_did_not_stop_promises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = convex_offline.OfflineRelease(Hypothesis(FIT), (np.zeros(3), np.zeros(2)), 7, stopped=False)
    monkeypatch.setattr(convex_offline, "release", lambda *given: found)
    made = hr.release(
        HistogramSource(FIT, FIT_COUNTS), universe=FIT, budget=BUDGET, workload=ASKED, method="convex", seed=0
    )
    assert made.ask(ASKED[0]).error is None


@pytest.mark.parametrize("stopped", [True, False])
def test_mwem_promises_its_workload_if_it_stopped(monkeypatch: pytest.MonkeyPatch, stopped: bool) -> None:
    run = mwem.release
    monkeypatch.setattr(mwem, "release", lambda *given: dataclasses.replace(run(*given), stopped=stopped))
    source = HistogramSource(TINY, 1000 * TINY_COUNTS)
    made = hr.release(source, universe=TINY, budget=BUDGET, workload=hr.marginals(2), method="mwem", seed=0)
    assert (made.ask(hr.count(a=True, b=True)).error is not None) == stopped


def test_losses_with_kinks_are_not_held_up_by_what_float64_can_compute() -> None:
    """With very many rows n·err is certain to within a larger part of S only, which α then pays for, as online."""
    risk = losses.Hinge(target="y", features=["a", "b"]).on(FIT)
    given = {"cells": FIT.size, "rows": 1e9, "queries": 1, "beta": 0.05}
    share = convex_pmw.numerical_share(BUDGET, [(risk, BALL)], risk.scale(BALL), 0.1, 1e9)
    assert share is not None and share > convex_pmw.NUMERICAL
    found = convex_offline.best_configuration(BUDGET, [(risk, BALL)], alpha=0.1, **given)
    assert found is not None and found.online.numerical == share
    assert found.choice.sensitivity == pytest.approx(2 * risk.scale(BALL) * (1 + share))
