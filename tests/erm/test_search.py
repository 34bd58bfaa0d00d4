"""A private search spends exactly its announced bill, and finds a candidate that is much better than the others."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import hedgerow as hr
from hedgerow.erm import search as searching
from hedgerow.erm import values
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy.events import Gaussian
from hedgerow.privacy.renyi_events import COINS, RandomRuns

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

BUDGET = hr.Budget(1.0, 1e-6)
COMING = hr.Budget(1.0, 1e-6, "add-remove")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 3)) / 2
Y = (X @ [3.0, -2.0, 1.0] + 0.2 * RNG.normal(size=4000) > 0).astype(int)
TARGET = X @ [3.0, -2.0, 1.0]


def classifiers(count: int = 3, budget: hr.Budget = BUDGET) -> list[object]:
    """One that can fit, and others whose coefficients hardly leave 0."""
    given = {"classes": [0, 1], "fit_intercept": False, "expected_rows": None if budget is BUDGET else 4000}
    bad, good = [hr.erm.LogisticRegression(budget, radius=1e-9, **given)], [hr.erm.LogisticRegression(budget, **given)]
    return bad * (count - 1) + good


def search(**options) -> hr.erm.PrivateSearch:
    return hr.erm.PrivateSearch(classifiers(), BUDGET, random_state=1, **options)


def test_a_search_finds_the_candidate_that_is_far_better() -> None:
    models = [hr.erm.Ridge(BUDGET, alpha=alpha, label_bound=6.0) for alpha in (1e9, 1e9, 1.0)]
    found = [hr.erm.PrivateSearch(models, BUDGET, tried=0.7, random_state=seed).fit(X, TARGET) for seed in range(6)]
    assert [each.best_index_ for each in found].count(2) >= 3  # it is tried in seven searches of ten, and then wins
    assert max(each.best_score_ for each in found) > 0.9


def test_the_bill_is_the_whole_budget_and_is_what_is_spent() -> None:
    account = hr.Accountant(BUDGET)
    one = hr.erm.PrivateSearch(classifiers(), hr.Budget(0.5, 1e-6), ledger=account, random_state=0)
    bill = one.bill()
    assert account.spent == 0
    one.fit(X, Y)
    assert account.spent == bill.cost == one.bill_.cost
    assert bill.cost == pytest.approx(hr.Budget(0.5, 1e-6).total, rel=1e-9) and bill.cost <= hr.Budget(0.5, 1e-6).total
    (entry,) = account.entries()
    assert isinstance(entry.events[0], RandomRuns) and entry.events[0].each == bill.each
    (told,) = entry.released  # neither the number of runs nor a score but the best
    best = one.best_estimator_
    assert np.array_equal(told, [one.best_index_, one.best_score_, *best.coef_.ravel(), *best.intercept_])
    assert not entry.private  # the seed is known
    assert BUDGET.cost(entry.events[0]) == bill.cost


@pytest.mark.parametrize("count", [4, 16, 64])
def test_the_bill_says_how_often_a_candidate_is_tried(count) -> None:
    made = hr.erm.PrivateSearch(classifiers(count), BUDGET, scoring=0.25)
    bill, event = made.bill(), made._event()
    law = np.array(event.weights) / COINS
    assert law @ np.arange(1, law.size + 1) == pytest.approx(bill.runs)
    assert bill.tried == pytest.approx(1 - sum(p * (1 - 1 / count) ** k for k, p in enumerate(law, 1)))
    assert bill.tried == pytest.approx(min(0.5, 8 / count), rel=1e-6)
    assert bill.split == pytest.approx(0.75 / count) and bill.share == pytest.approx(0.75 * bill.each / bill.cost)
    assert bill.score_sigma == pytest.approx(1 / math.sqrt(2 * 0.25 * bill.each), rel=2e-3)


def test_more_chances_of_being_tried_leave_less_for_a_run() -> None:
    few, some, many = (hr.erm.PrivateSearch(classifiers(8), BUDGET, tried=tried).bill() for tried in (0.2, 0.5, 0.7))
    assert few.each > 1.5 * some.each > 2 * many.each > 0 and few.runs < some.runs < many.runs
    assert few.cost == pytest.approx(many.cost, rel=1e-6)


@pytest.mark.parametrize("budget", [BUDGET, COMING], ids=["replace", "add-remove"])
def test_each_run_has_its_own_account_that_holds_no_more_than_a_run_may_cost(budget, monkeypatch) -> None:
    accounts: list[hr.Accountant] = []

    class Watched(hr.Accountant):
        def __init__(self, *given, **named) -> None:
            super().__init__(*given, **named)
            accounts.append(self)

    monkeypatch.setattr(searching, "Accountant", Watched)
    made = hr.erm.PrivateSearch(classifiers(budget=budget), budget, random_state=3).fit(X, Y)
    del accounts[:3]  # of the rehearsals
    assert len(accounts) >= 2
    for of_fit, of_score in zip(accounts[::2], accounts[1::2], strict=True):
        assert of_fit.spent + of_score.spent <= made.bill_.each * (1 + 1e-9)  # each row trains and scores
        assert of_fit.spent > 0.99 * 0.8 * made.bill_.each and of_score.spent > 0.99 * 0.2 * made.bill_.each
        (entry,) = of_score.entries()
        assert isinstance(entry.events[0], Gaussian) and entry.events[0].sensitivity >= 1


@pytest.mark.parametrize("label", [0, 1])
def test_one_row_moves_a_score_by_at_most_one(label) -> None:
    model = hr.erm.LogisticRegression(BUDGET, classes=[0, 1], random_state=0).fit(X, Y)
    regression = hr.erm.Ridge(BUDGET, label_bound=2.0, random_state=0).fit(X, TARGET)
    for each, labels in ((model, Y), (regression, TARGET)):
        full = searching._score(each, X, labels)
        for value in (label, -100.0, 100.0, math.nan):
            changed = labels.astype(float).copy()
            changed[7] = value
            assert abs(searching._score(each, X, changed) - full) <= 1 + 1e-9
        assert abs(searching._score(each, X[1:], labels[1:]) - full) <= 1 + 1e-9
        assert 0 <= full <= len(X)


@pytest.mark.parametrize("laid_out", [np.asarray, sp.csr_array])
def test_a_row_of_any_size_moves_a_score_by_at_most_one_and_warns_of_nothing(laid_out) -> None:
    """Products that overflow add up to infinity or NaN, which is one wrong row, and no word about it."""
    rows = np.random.default_rng(3).normal(size=(300, 9))
    target = rows @ np.array([3.0, -2, 1, -1, 2, -3, 1, -2, 2])
    wide = hr.Budget(30.0, 1e-6)
    fitted = [
        (hr.erm.Ridge(wide, label_bound=20.0, random_state=0).fit(rows, target), target),
        (hr.erm.LogisticRegression(wide, classes=[0, 1], random_state=0).fit(rows, target > 0), target > 0),
        (hr.erm.LinearSVC(wide, classes=[0, 1, 2], random_state=0).fit(rows, target > 0), target > 0),
    ]
    for model, labels in fitted:
        full = searching._score(model, laid_out(rows), labels)
        assert full > 250  # not what a missing score would be rounded to
        for large in (math.inf, -math.inf, 1e308, -1e308 * np.sign(model.coef_[0]), 1e308 * np.sign(rows[0])):
            changed = rows.copy()
            changed[7] = large
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert abs(searching._score(model, values.matrix(laid_out(changed)), labels) - full) <= 1 + 1e-9


@pytest.mark.parametrize("laid_out", [np.asarray, sp.csr_array])
def test_the_score_of_a_row_depends_on_no_other_row_to_the_last_bit(laid_out) -> None:
    rows = np.random.default_rng(4).normal(size=(67, 9))
    model = hr.erm.LogisticRegression(BUDGET, classes=[0, 1, 2], random_state=0).fit(rows, np.zeros(67))
    scores = searching._row_scores(model, laid_out(rows))
    for some in (slice(1, None), slice(0, 1), slice(5, 22), slice(None, None, -1)):
        assert np.array_equal(searching._row_scores(model, laid_out(rows[some])), scores[some])
    assert scores == pytest.approx(model.decision_function(rows))


@pytest.mark.parametrize("bound", [5e-324, 1.0, 1e308])
def test_a_score_is_a_share_of_a_bound_of_any_size(bound) -> None:
    model = hr.erm.Ridge(BUDGET, label_bound=bound)
    model.coef_, model.intercept_ = np.zeros(3), bound
    assert searching._score(model, X, np.full(len(X), -math.inf)) == 0
    assert searching._score(model, X, np.full(len(X), math.inf)) == len(X)


def test_a_seed_of_a_candidate_is_not_used_so_that_its_runs_are_independent() -> None:
    models = [model.set_params(random_state=5) for model in classifiers(2)]
    account = hr.Accountant(BUDGET)
    with warnings.catch_warnings():
        warnings.simplefilter("error", hr.NotPrivateWarning)
        made = hr.erm.PrivateSearch(models[1:], BUDGET, ledger=account).fit(X, Y)
        other = hr.erm.PrivateSearch(models[1:], BUDGET).fit(X, Y)
    assert not np.array_equal(made.best_estimator_.coef_, other.best_estimator_.coef_)
    assert account.entries()[0].private and made.best_estimator_.random_state == models[1].random_state == 5


def test_a_grid_of_parameters_is_a_list_of_candidates() -> None:
    grid = ParameterGrid({"row_bound": [1.0, 2.0], "radius": [None, 3.0]})
    one = hr.erm.LogisticRegression(BUDGET, classes=[0, 1])
    made = hr.estimators.PrivateSearch([clone(one).set_params(**each) for each in grid], BUDGET, random_state=0).fit(
        X, Y
    )
    assert made.predict(X).shape == Y.shape and set(made.predict(X)) <= {0, 1}
    assert clone(made).get_params()["scoring"] == 0.2
    assert made.best_estimator_.budget == BUDGET and made.best_estimator_.ledger is None


def test_an_account_without_enough_is_refused_before_a_row_is_read() -> None:
    account = hr.Accountant(BUDGET)
    account.charge(Gaussian(1.0, 1 / math.sqrt(2 * 0.9 * BUDGET.total)))
    with pytest.raises(BudgetExceeded):
        hr.erm.PrivateSearch(classifiers(), hr.Budget(0.9, 1e-6), ledger=account).fit(X, Y)
    assert account.spent == pytest.approx(0.9 * BUDGET.total)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": []}, "candidates must be at least one model of hr.erm"),
        ({"candidates": [object()]}, "candidates must be at least one model of hr.erm"),
        # a search in a search: what it costs is known at one Rényi order, and the bill of the outer one uses two
        (
            {"candidates": [hr.erm.PrivateSearch(classifiers(), BUDGET)]},
            "candidates must be at least one model of hr.erm",
        ),
        ({"budget": hr.Budget(1.0, 0.0)}, "delta above 0"),
        ({"budget": hr.Budget(1.0, 1e-6, rows_per_unit=2)}, "one row a person"),
        ({"scoring": 1.0}, "scoring must be between 0 and 1"),
        ({"tried": 0.0}, "tried must be between 0 and 1"),
        ({"tried": 0.9, "candidates": classifiers(100)}, "tried must be smaller"),
    ],
)
def test_arguments_that_make_no_search_are_refused(options, message) -> None:
    with pytest.raises(InvalidInput, match=message):
        hr.erm.PrivateSearch(**{"candidates": classifiers(), "budget": BUDGET} | options).fit(X, Y)


@pytest.mark.parametrize(
    "wrong", [{"classes": None}, {"row_bound": -1.0}, {"expected_rows": 10}, {"radius": "wide"}, {"classes": [0]}]
)
def test_a_candidate_that_cannot_be_fitted_is_refused_before_anything_is_spent(wrong) -> None:
    account = hr.Accountant(BUDGET)
    models = [*classifiers(), classifiers()[-1].set_params(**wrong)]
    with pytest.raises((InvalidInput, TypeError, ValueError)):
        hr.erm.PrivateSearch(models, BUDGET, ledger=account).fit(X, Y)
    assert account.spent == 0


def test_too_many_runs_for_the_budget_are_refused() -> None:
    with pytest.raises(BudgetExceeded, match="random number of runs"):
        hr.erm.PrivateSearch(classifiers(16), hr.Budget(0.01, 0.3), tried=0.5).bill()


def test_a_solver_with_a_delta_of_its_own_is_refused() -> None:
    class Other(hr.erm.LogisticRegression):
        def _solve(self, X, y, loss, **payment):
            return hr.erm.objective_perturbation(X, y, loss=loss, over=hr.L2Ball(1.0), **payment)

    with pytest.raises(BudgetExceeded):
        hr.erm.PrivateSearch([Other(BUDGET, classes=[0, 1])], BUDGET).fit(X, Y)


@pytest.mark.parametrize("rows", range(4))
def test_a_private_number_of_rows_raises_nothing_however_few_there_are(rows) -> None:
    given = {"expected_rows": 100}
    models = [hr.erm.LogisticRegression(COMING, classes=[0, 1], **given), hr.erm.Ridge(COMING, **given)]
    for seed in range(4):
        one = hr.erm.PrivateSearch([*models, hr.erm.Lasso(COMING, **given)], COMING, random_state=seed)
        assert one.fit(np.ones((rows, 2)), np.ones(rows)).best_index_ in (0, 1, 2)


@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_rows_for_a_search_are_refused_before_anything_is_spent(rows) -> None:
    account = hr.Accountant(BUDGET)
    with pytest.raises(InvalidInput, match="two rows"):
        hr.erm.PrivateSearch(classifiers(), BUDGET, ledger=account).fit(np.ones((rows, 3)), np.ones(rows))
    assert account.spent == 0


def test_rows_with_undeclared_values_raise_nothing() -> None:
    odd = X.astype(object).copy()
    odd[3, 1], odd[5, 0] = "a word", None
    labels = Y.astype(object).copy()
    labels[9] = "neither"
    made = hr.erm.PrivateSearch(classifiers(), BUDGET, random_state=2).fit(odd, labels)
    assert made.best_index_ in (0, 1, 2)


class Spender(hr.erm.Ridge):
    """A model that pays once more from the account that it was given."""

    def fit(self, X, y):
        super().fit(X, y)
        self.ledger.charge(Gaussian(1.0, 2 / math.sqrt(self.ledger.spent)))
        return self


def test_a_candidate_that_spends_more_than_a_run_may_cost_is_refused_before_the_charge() -> None:
    account = hr.Accountant(BUDGET)
    with pytest.raises(BudgetExceeded, match="A run must cost at most"):
        hr.erm.PrivateSearch([Spender(BUDGET, label_bound=6.0)], hr.Budget(0.5, 1e-6), ledger=account).fit(X, TARGET)
    assert account.spent == 0
