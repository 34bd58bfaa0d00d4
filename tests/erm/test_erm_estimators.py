"""The estimators: scikit-learn's own checks, payment, and accuracy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from hedgerow import erm, errors
from hedgerow.erm import estimators
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Gaussian
from hedgerow.privacy.ledger import Accountant

BUDGET = Budget(1.0, 1e-6)
GENEROUS = Budget(50.0, 1e-6)
CLASSIFIERS = ["LogisticRegression", "LinearSVC"]
REGRESSORS = ["LinearRegression", "Ridge", "Lasso", "HuberRegressor"]

EXPECTED_FAILURES = {
    "check_complex_data": "one complex number makes an array complex: its type is private, and each value has a place",
    "check_dtype_object": "one odd value makes an array of objects: its type is private, and each value has a place",
    "check_supervised_y_no_nan": "what a label holds is never refused",
    "check_estimators_empty_data_messages": "its message has the number of rows in it, which may be private",
    "check_classifiers_train": "passes a list of lists, whose number of columns is no public fact",
    "check_regressors_train": "passes a list of lists, whose number of columns is no public fact",
}
"""Checks of scikit-learn that do not apply under privacy, with the reason. The tag ``poor_score`` tells it not to ask for
accuracy on its tables of a few dozen rows, where the noise is all there is, and a private classifier that knows one class
only refuses to fit, as the checks allow."""


@pytest.mark.parametrize("name", [*CLASSIFIERS, *REGRESSORS])
def test_the_checks_of_scikit_learn_pass(name) -> None:
    check_estimator(getattr(erm, name)(budget=BUDGET), expected_failed_checks=EXPECTED_FAILURES, on_skip=None)


def classes(n: int = 4000, count: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, count, n)
    centres = np.eye(4)[:count] - 0.25
    X = 0.5 * centres[y] + 0.1 * rng.normal(size=(n, 4))
    return X, np.array(["red", "green", "blue"])[y]


def line(n: int = 5000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 4)) / 2
    coefficients = np.array([3.0, -2.0, 0.0, 0.0])
    return X, X @ coefficients + 1.0 + 0.1 * rng.normal(size=n), coefficients


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("count", [2, 3])
def test_classes_that_lie_apart_are_told_apart(name, count) -> None:
    X, y = classes(count=count)
    model = getattr(erm, name)(budget=Budget(5.0, 1e-6), random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert set(model.predict(X)) <= {"red", "green", "blue"}


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_line_is_found_in_the_units_of_the_data(name) -> None:
    X, y, coefficients = line()
    bounds = {"row_bound": 0.5 if name == "Lasso" else 1.0, "label_bound": 4.0, "radius": 1.5}
    model = getattr(erm, name)(budget=GENEROUS, random_state=0, **bounds).fit(X, y)
    assert np.abs(model.coef_ - coefficients).max() < 0.25
    assert model.intercept_ == pytest.approx(1.0, abs=0.1)
    assert model.score(X, y) > 0.95


def test_probabilities_sum_to_one_and_agree_with_the_decisions() -> None:
    for count in (2, 3):
        X, y = classes(count=count)
        model = erm.LogisticRegression(budget=BUDGET, random_state=0).fit(X, y)
        probabilities = model.predict_proba(X)
        assert np.allclose(probabilities.sum(axis=1), 1)
        assert np.array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))


def test_several_classes_share_one_budget() -> None:
    X, y = classes(500, 3)
    model = erm.LogisticRegression(budget=BUDGET, random_state=0).fit(X, y)
    spent = sum(BUDGET.cost(event) for result in model.results_ for event in result.events)
    assert len(model.results_) == 3
    assert 0.99 * BUDGET.total < spent <= BUDGET.total * (1 + 1e-9)


def test_stated_classes_are_kept_even_where_no_row_has_them() -> None:
    X, y = classes(500)
    model = erm.LogisticRegression(budget=BUDGET, classes=["red", "green", "blue"], random_state=0).fit(X, y)
    assert list(model.classes_) == ["blue", "green", "red"]


def test_the_noise_is_new_at_every_fit_unless_seeded() -> None:
    X, y, _ = line(300)
    private = [erm.LinearRegression(budget=BUDGET, label_bound=4.0).fit(X, y).coef_ for _ in range(2)]
    seeded = [erm.LinearRegression(budget=BUDGET, label_bound=4.0, random_state=1).fit(X, y).coef_ for _ in range(2)]
    assert not np.array_equal(*private)
    assert np.array_equal(*seeded)


def test_sparse_rows_are_fitted_like_dense_ones() -> None:
    X, y, _ = line(500)
    X[:, 2:] = 0
    both = [erm.Ridge(budget=BUDGET, random_state=0).fit(rows, y).coef_ for rows in (X, sp.csr_array(X))]
    assert np.allclose(both[0], both[1], atol=1e-9)


def test_it_works_inside_scikit_learns_tools() -> None:
    X, y = classes(1000)
    model = clone(erm.LogisticRegression(budget=Budget(5.0, 1e-6), random_state=0))
    assert cross_val_score(model, X, y, cv=3).mean() > 0.8


def test_an_accountant_is_no_budget_of_one_fit() -> None:
    X, y, _ = line(50)
    with pytest.raises(errors.InvalidInput, match="Budget"):
        erm.Ridge(budget=Accountant(BUDGET)).fit(X, y)


ONE_FIT = Budget(0.2, 1e-6)


@pytest.mark.parametrize("name", [*CLASSIFIERS, *REGRESSORS])
def test_every_fit_is_charged_to_the_ledger_whichever_clone_it_is_of(name) -> None:
    X, y = classes(300, 3) if name in CLASSIFIERS else line(300)[:2]
    ledger = Accountant(BUDGET)
    model = getattr(erm, name)(budget=ONE_FIT, ledger=ledger, random_state=0).fit(X, y)
    spent = ledger.spent
    assert 0.9 * ONE_FIT.total < spent <= ONE_FIT.total * (1 + 1e-9)
    clone(model).fit(X, y)
    assert ledger.spent == pytest.approx(2 * spent)
    assert all(entry.why.startswith("erm: ") and entry.released for entry in ledger.entries())


def test_a_search_stops_when_the_ledger_is_empty() -> None:
    X, y, _ = line(300)
    ledger = Accountant(BUDGET)
    model = erm.Ridge(budget=ONE_FIT, ledger=ledger, label_bound=4.0, random_state=0)
    affordable = int(BUDGET.total / ONE_FIT.total)
    search = GridSearchCV(model, {"alpha": np.geomspace(0.1, 10, affordable)}, cv=2, error_score="raise")
    with pytest.raises(errors.BudgetExceeded, match=r"A fit must cost at most rho = .* what is left"):
        search.fit(X, y)
    assert len(ledger.entries()) == affordable and ledger.spent <= BUDGET.total
    by_default = pytest.raises(errors.BudgetExceeded)  # it goes on without scores, and fails at the refit
    with by_default, pytest.warns(FitFailedWarning), pytest.warns(UserWarning, match="scores are non-finite"):
        GridSearchCV(model.set_params(ledger=Accountant(BUDGET)), search.param_grid, cv=2).fit(X, y)


def test_a_fit_that_does_not_fit_spends_nothing() -> None:
    """Not even where what is left would pay for the first of three classes."""
    X, y = classes(300, 3)
    ledger = Accountant(BUDGET)
    ledger.charge(Gaussian(1.0, (2 * (BUDGET.total - 0.5 * ONE_FIT.total)) ** -0.5))
    spent = ledger.spent
    with pytest.raises(errors.BudgetExceeded):
        erm.LogisticRegression(budget=ONE_FIT, ledger=ledger, random_state=0).fit(X, y)
    assert ledger.spent == spent


@pytest.mark.parametrize(
    ("ledger", "message"),
    [
        (BUDGET, r"ledger must be an Accountant. Found Budget"),
        (Accountant(Budget(1.0, 0.0)), "budget must have the same neighbours and rows_per_unit"),
        (
            Accountant(Budget(1.0, 1e-6, neighbours="add-remove")),
            "budget must have the same neighbours and rows_per_unit",
        ),
    ],
)
def test_a_ledger_that_cannot_pay_is_refused_by_name(ledger, message) -> None:
    X, y, _ = line(50)
    with pytest.raises(errors.InvalidInput, match=message):
        erm.Ridge(budget=ONE_FIT, ledger=ledger).fit(X, y)


def test_a_second_fit_without_a_ledger_is_warned_about_once(monkeypatch) -> None:
    X, y, _ = line(50)
    monkeypatch.setattr(estimators, "_unaccounted", estimators._Unaccounted())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        erm.Ridge(budget=ONE_FIT, ledger=Accountant(BUDGET), random_state=0).fit(X, y)
        model = erm.Ridge(budget=ONE_FIT, random_state=0).fit(X, y)
        assert not [w for w in seen if w.category is errors.UnaccountedWarning]
        for _ in range(3):
            clone(model).fit(X, y)
    said = [w for w in seen if w.category is errors.UnaccountedWarning]
    assert len(said) == 1 and "Found a second fit without one" in str(said[0].message)
    assert said[0].filename == __file__


def test_classes_read_off_the_labels_are_warned_about_and_stated_ones_are_not() -> None:
    X, y = classes(200)
    with pytest.warns(errors.NotPrivateWarning, match="classes must be stated"):
        erm.LogisticRegression(budget=BUDGET).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.NotPrivateWarning)
        erm.LogisticRegression(budget=BUDGET, classes=["red", "green"]).fit(X, y)


@pytest.mark.filterwarnings("ignore::hedgerow.errors.UnaccountedWarning")
def test_the_penalty_is_of_the_public_number_of_rows_however_many_there_are(monkeypatch) -> None:
    """Under add/remove how many there are is private, and a penalty that followed it would be told for nothing."""
    penalties, loss = [], erm.Ridge._loss
    monkeypatch.setattr(erm.Ridge, "_loss", lambda self, n: penalties.append(n) or loss(self, n))
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, (400, 2)), rng.uniform(-1, 1, 400)
    for n in (20, 200, 400):
        erm.Ridge(Budget(1.0, 1e-6, "add-remove"), alpha=3.0, expected_rows=200, random_state=0).fit(X[:n], y[:n])
    assert penalties == [200, 200, 200]


def test_residuals_count_linearly_beyond_the_width_that_was_asked_for() -> None:
    (loss,) = {erm.HuberRegressor(Budget(1.0, 1e-6), width=0.25)._loss(n) for n in (1, 100)}
    inside, outside = loss.derivative(np.array([0.2, 0.3]), 0.0)
    assert (inside, outside) == (0.2, 0.25)


@pytest.mark.parametrize("name", ["LogisticRegression", "LinearSVC", "Ridge"])
def test_a_radius_bounds_the_coefficients(name) -> None:
    X, y, _ = line(500)
    labels = y > 1 if name in CLASSIFIERS else y
    model = getattr(erm, name)(budget=BUDGET, radius=0.5, fit_intercept=False, random_state=0).fit(X, labels)
    assert np.linalg.norm(model.coef_) <= 0.5 * (1 + 1e-9)


def test_a_label_bound_of_nothing_is_refused_by_name() -> None:
    X, y, _ = line(50)
    with pytest.raises(errors.InvalidInput, match="label_bound must be"):
        erm.LinearRegression(budget=BUDGET, label_bound=0.0).fit(X, y)


def test_there_is_no_default_budget() -> None:
    with pytest.raises(TypeError):
        erm.LogisticRegression()


FORMS = {  # of one column of labels, as other rows' values make numpy and pandas hold it
    "whole numbers": lambda column: np.array(column),
    "floats, for one is missing": lambda column: np.array([*column[:-1], np.nan]),
    "texts, for one is": lambda column: np.array([*map(str, column[:-1]), "neither"]),
    "texts of floats": lambda column: np.array([*(str(float(label)) for label in column[:-1]), "neither"]),
    "objects": lambda column: [*column[:-1], None],
    "masked": lambda column: np.ma.MaskedArray(column, [*[False] * (len(column) - 1), True]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("classes", [[0, 1, 2], ["0", "1", "2"], ["00", "1.0", "other"], [2.0, 1.0, -7.5]])
def test_the_class_of_a_row_does_not_depend_on_what_another_rows_label_is(classes, form) -> None:
    column, known = [1, 1, 2, 0, 1, 1], np.unique(classes)
    expected = estimators.code_labels(np.array(column), known)
    found = estimators.code_labels(estimators.values.column(FORMS[form](column)), known)
    assert found[:-1].tolist() == expected[:-1].tolist() and len(set(expected.tolist())) > 1


@pytest.mark.parametrize(
    "classes",
    [["1", "01", "2"], [2**53, 2**53 + 1], ["100", "1e2"], ["true", "1"], ["1", "1.0"], ["inf", "Infinity"]],
    ids=str,
)
def test_classes_that_are_one_number_are_refused_whatever_the_rows(classes) -> None:
    for n in (0, 5):
        with pytest.raises(errors.InvalidInput, match="must be different numbers"):
            erm.LogisticRegression(Budget(1.0, 1e-6, "add-remove"), classes=classes, expected_rows=9).fit(
                np.zeros((n, 2)), np.zeros(n)
            )


def test_names_and_bytes_are_classes_too() -> None:
    known = np.unique(["nan", "north", "1"])
    assert estimators.code_labels(np.array([float("nan"), 1.0]), known).tolist() == [1, 0]
    assert estimators.code_labels(np.array(["nan", "1", "north", "?"]), known).tolist() == [1, 0, 2, 0]
    assert estimators.code_labels(np.array([b"a", b"b"]), np.unique([b"a", b"b"])).tolist() == [0, 1]


@pytest.mark.parametrize("name", ["LogisticRegression", "LinearSVC", "LinearRegression", "Ridge", "HuberRegressor", "Lasso"])  # fmt: skip
@pytest.mark.parametrize("rows", [None, 0, -1, 2.5])
def test_the_message_about_a_missing_guess_does_not_depend_on_the_number_of_rows(name, rows) -> None:
    stated = {"classes": [0, 1]} if name in ("LogisticRegression", "LinearSVC") else {}
    said = set()
    for n in (0, 1, 2, 50):
        with pytest.raises(errors.InvalidInput, match="rows must be a public guess") as refused:
            getattr(erm, name)(Budget(1.0, 1e-6, "add-remove"), expected_rows=rows, **stated).fit(
                np.zeros((n, 2)), np.zeros(n)
            )
        said.add(str(refused.value))
    assert len(said) == 1
