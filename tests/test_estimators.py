"""Estimators bound to a session: fitted by column names, used on the analyst's own frame, one budget for all."""

from __future__ import annotations

import copy
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from people import SMALL, frame, opened
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.utils import estimator_checks

import hedgerow as hr
from hedgerow.data import Table
from hedgerow.data.coding import code_column
from hedgerow.errors import InvalidInput
from hedgerow.estimators import (
    HuberRegressor,
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Median,
    PoissonRegressor,
    Quantile,
    QuantileRegressor,
    Ridge,
)
from hedgerow.unsafe import unsafe_answer

FEATURES = ["age", "sex"]
CLASSIFIERS = [LogisticRegression, LinearSVC]
REGRESSORS = [LinearRegression, Ridge, Lasso, HuberRegressor, QuantileRegressor, PoissonRegressor]
OTHERS = [Median, Quantile]


@pytest.fixture(scope="module")
def session(table) -> hr.Session:
    return opened(table, budget=hr.Budget(2.0, 1e-6))


@pytest.fixture(scope="module")
def mine() -> pd.DataFrame:
    return frame(3000, seed=9)


def target_of(kind: type) -> str:
    return "smoker" if kind in CLASSIFIERS else "region"


@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
def test_a_model_fits_columns_by_name_and_predicts_on_my_frame(session, mine, kind) -> None:
    model = kind(session, target=target_of(kind), features=FEATURES).fit()
    predicted = model.predict(mine)
    assert predicted.shape == (len(mine),)
    assert model.coef_names_ == ("age", "sex=M") and model.coef_.shape[-1] == 2
    full = kind(session, target=target_of(kind), features=FEATURES, coding="full").fit()
    assert full.coef_names_ == ("age", "sex=F", "sex=M") and full.coef_.shape[-1] == 3
    assert list(model.feature_names_in_) == FEATURES and model.n_features_in_ == 2
    assert model.source_ in ("hypothesis", "repeat") and model.cost_ == 0
    assert model.error_bound_ is None or model.error_bound_ > 0
    assert model.score(mine) == model.score(mine, mine[target_of(kind)])
    if kind is not QuantileRegressor:  # a conditional median is no conditional mean
        best = (mine.smoker == mine.smoker.mode()[0]).mean() if kind in CLASSIFIERS else 0.0
        assert model.score(mine) > best - 0.02


def test_predictions_are_near_those_of_the_best_model(session, mine) -> None:
    """The non-private minimiser of the same loss over the same set, used on the same frame."""
    model = LogisticRegression(session, target="smoker", features=FEATURES).fit()
    best = clone(model).fit()
    best._theta = unsafe_answer(
        session._data, hr.minimize(model._loss(target="smoker", features=FEATURES), hr.L2Ball(5.0))
    )
    assert np.abs(model.predict_proba(mine) - best.predict_proba(mine)).max() < 0.05
    assert (model.predict(mine) == best.predict(mine)).mean() > 0.9


def test_probabilities_are_those_of_the_scores(session, mine) -> None:
    model = LogisticRegression(session).fit(FEATURES, "smoker")
    p = model.predict_proba(mine)
    z = model.decision_function(mine)
    assert np.allclose(p.sum(axis=1), 1) and np.allclose(p[:, 1], 1 / (1 + np.exp(-z)))
    assert np.array_equal(model.predict(mine), model.classes_[p.argmax(axis=1)])
    assert np.allclose(z, model.intercept_ + coded_features(mine) @ model.coef_[0])
    assert np.allclose(np.log(p), model.predict_log_proba(mine))


def test_effects_are_mean_predictions_with_a_feature_set_to_each_value(session, mine) -> None:
    model = LogisticRegression(session, target="smoker", features=FEATURES).fit()
    effects = model.effects()
    assert effects.columns.tolist() == ["feature", "value", "prediction", "difference"]
    assert effects.feature.tolist() == ["age"] * 8 + ["sex"] * 2 and effects.difference[0] == effects.difference[8] == 0
    records = session.synthetic(20_000)
    for row in effects.itertuples():
        expected = model.predict_proba(records.assign(**{row.feature: row.value}))[:, 1].mean()
        assert row.prediction == pytest.approx(expected, abs=0.01)
    number = LinearRegression(session, target="age", features=["sex"]).fit().effects()  # in the units of the target
    assert number.prediction.between(0, 7).all()
    assert set(model.coefficients_.basis) == {"bootstrap"} and np.isfinite(model.coefficients_.error).all()


def test_calibration_compares_predicted_with_observed_shares(session, mine) -> None:
    model = LogisticRegression(session, target="smoker", features=FEATURES).fit()
    free, own = model.calibration(), model.calibration(mine, bins=4)
    assert free.share.sum() == pytest.approx(1) and (free.predicted - free.observed).abs().max() < 0.1
    assert len(own) <= 4 and own.predicted.is_monotonic_increasing
    assert (own.share * own.observed).sum() == pytest.approx((mine.smoker).mean())
    several = LogisticRegression(session, target="region", features=["age"]).fit()
    with pytest.raises(InvalidInput, match=r"Calibration must be of two classes. Found 4"):
        several.calibration()
    with pytest.raises(InvalidInput, match=r"Effects must be of a number or of two classes. Found 4"):
        several.effects()


def coded_features(mine: pd.DataFrame) -> np.ndarray:
    return np.column_stack([(mine.age - 3.5) / 3.5, mine.sex == "M"]).astype(float)


def test_several_classes_have_one_row_of_coefficients_each(session, mine) -> None:
    model = LogisticRegression(session, target="region", features=["age"]).fit()
    assert model.coef_.shape == (4, 1) and model.intercept_.shape == (4,)
    p = model.predict_proba(mine)
    assert p.shape == (len(mine), 4) and np.allclose(p.sum(axis=1), 1)
    assert model.score(mine) >= (mine.region == mine.region.mode()[0]).mean() - 0.02


def test_a_regression_predicts_in_the_targets_own_units(session, mine) -> None:
    model = LinearRegression(session, target="region", features=["age"]).fit()
    line = np.polyfit(mine.age, mine.region, 1)
    assert np.abs(model.predict(mine) - np.polyval(line, mine.age)).max() < 0.25
    counts = PoissonRegressor(session, target="region", features=["age"]).fit().predict(mine)
    assert (counts > 0).all() and abs(counts.mean() - mine.region.mean()) < 0.1


def test_quantiles_of_an_attribute_are_values_of_it(session, mine) -> None:
    median = Median(session, "age").fit()
    ninth = Quantile(session, "age", quantile=0.9).fit()
    assert median.value_ == pytest.approx(mine.age.median(), abs=0.3)
    assert ninth.value_ == pytest.approx(mine.age.quantile(0.9), abs=0.3)
    assert Quantile(session, "age").fit().source_ == "repeat"  # the median by another name
    assert np.array_equal(median.predict(mine), np.full(len(mine), median.value_))
    women = Median(session, "age", where=hr.count(sex="F")).fit()
    assert women.value_ == pytest.approx(mine.age[mine.sex == "F"].median(), abs=0.5)


def test_fitting_twice_costs_once_and_within_pays(mine) -> None:
    session = opened(Table(frame(200_000), SMALL), reserve=0.5, guard=0.0)
    model = LogisticRegression(session, target="smoker", features=["age", "sex", "region"], radius=2.0, within=0.2)
    before = session.spent
    model.fit()
    assert model.error_bound_ <= 0.2 and model.cost_ == pytest.approx(session.spent - before)
    assert clone(model).fit().source_ == "repeat" and clone(model).fit().cost_ == 0


def test_the_intercept_can_be_left_out_and_a_constant_predicted(session, mine) -> None:
    without = LinearRegression(session, target="region", features=["age"], fit_intercept=False).fit()
    assert without.intercept_ == 0 and without.coef_.shape == (1,)
    constant = LinearRegression(session, target="region").fit()
    assert constant.coef_.shape == (0,) and len(set(constant.predict(mine))) == 1


def test_frames_of_other_libraries_and_mappings_give_the_same_predictions(session, mine) -> None:
    model = LogisticRegression(session, target="smoker", features=FEATURES).fit()
    expected = model.predict(mine)
    assert np.array_equal(model.predict(pl.from_pandas(mine)), expected)
    assert np.array_equal(model.predict({name: mine[name].tolist() for name in FEATURES}), expected)


def test_my_values_are_coded_as_the_tables_are() -> None:
    universe = hr.Universe(
        r=hr.Range(0, 10, bins=4), ro=hr.Range(edges=[0, 1, 5], other=True), i=hr.Integers(2, 6),
        io=hr.Integers(2, 6, other=True), c=hr.Categories(["x", "y"]), co=hr.Categories([1, 2.5], other=True), f=hr.Flag(),
    )  # fmt: skip
    values = pd.DataFrame(
        {
            "r": [-3.0, 2.5, 2.4, 10, np.nan, 12], "ro": [-3.0, 1.0, 5.0, 0.5, np.nan, 6], "i": [0, 2, 6, 9, 4.7, np.nan],
            "io": [0, 2, 6, 9, 4.7, np.nan], "c": ["x", "y", "z", None, "y", ""], "co": [1, 2.5, 3, 1, np.nan, 2.5],
            "f": ["yes", "NO", "1", None, "True ", "0"],
        }
    )  # fmt: skip
    for row in range(len(values)):  # one row at a time: its cell is where the count is
        one = values.iloc[[row]]
        table = Table(one, universe)
        for name in universe.names:
            cell = int(code_column(universe[name], one[name].to_numpy())[0])
            assert table.marginal((name,))[cell] == 1, (name, one[name].iloc[0])


# Within scikit-learn's tools: free, whatever rows they hand over


def test_a_cross_validation_scores_one_model_on_every_part_of_my_frame(session, mine) -> None:
    before = session.spent
    model = LogisticRegression(session, target="smoker", features=FEATURES)
    scores = cross_val_score(model, mine[FEATURES], mine.smoker, cv=KFold(4))
    fitted = clone(model).fit()
    parts = [mine.iloc[test] for _, test in KFold(4).split(mine)]
    assert scores.tolist() == [fitted.score(part) for part in parts] and len(set(scores)) > 1
    assert session.spent == before


def test_a_search_chooses_what_is_best_on_my_frame_for_nothing(session, mine) -> None:
    before = session.spent
    search = GridSearchCV(
        Ridge(session, target="region", features=["age"]), {"alpha": [0.01, 50.0], "fit_intercept": [True, False]}, cv=3
    ).fit(mine[["age"]], mine.region)
    assert search.best_params_ == {"alpha": 0.01, "fit_intercept": True}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all() and session.spent == before
    by_auc = GridSearchCV(
        LogisticRegression(session, target="smoker"), {"radius": [0.5, 5.0]}, scoring="roc_auc", cv=3
    ).fit(mine[FEATURES], mine.smoker)
    assert by_auc.best_score_ > 0.55 and list(by_auc.best_estimator_.feature_names_in_) == FEATURES


def test_a_pipeline_prepares_my_frame_and_names_the_features(session, mine) -> None:
    raw = mine.assign(age=mine.age * 10)

    def years(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(age=frame.age // 10)

    model = Pipeline([("years", FunctionTransformer(years)), ("model", LogisticRegression(session, target="smoker"))])
    model.fit(raw[FEATURES], raw.smoker)
    plain = LogisticRegression(session, target="smoker", features=FEATURES).fit()
    assert np.array_equal(model.predict(raw), plain.predict(mine)) and model.score(raw, raw.smoker) == plain.score(mine)
    assert plain.get_feature_names_out().tolist() == ["age", "sex=M"]
    assert model[-1].get_feature_names_out().tolist() == ["age", "sex=M"]


def test_columns_pass_through_a_column_transformer_with_its_names_or_without(session, mine) -> None:
    plain = LogisticRegression(session, target="smoker", features=FEATURES).fit()
    for verbose in (True, False):
        through = ColumnTransformer(
            [("numbers", "passthrough", FEATURES[:1]), ("rest", "passthrough", FEATURES[1:])],
            verbose_feature_names_out=verbose,
        )
        model = Pipeline([("columns", through), ("model", LogisticRegression(session, target="smoker"))])
        model.set_output(transform="pandas").fit(mine[FEATURES], mine.smoker)
        assert np.array_equal(model.predict(mine[FEATURES]), plain.predict(mine))
        assert list(model[-1].feature_names_in_) == FEATURES
    polars_frame = pl.from_pandas(mine[FEATURES]).rename({"age": "numbers__age"})
    assert np.array_equal(plain.predict(polars_frame), plain.predict(mine))


@pytest.mark.parametrize(
    "step",
    [
        ColumnTransformer([("hot", OneHotEncoder(sparse_output=False), ["sex"]), ("rest", "passthrough", ["age"])]),
        StandardScaler(),
        MinMaxScaler(),
    ],
    ids=["one-hot", "standard", "unit"],
)
def test_options_that_the_session_sets_itself_are_refused_with_advice(session, mine, step) -> None:
    columns = ["age"] if not isinstance(step, ColumnTransformer) else FEATURES
    model = Pipeline([("step", step), ("model", LogisticRegression(session, target="smoker"))])
    with pytest.raises(InvalidInput, match=r"The session scales numbers and encodes categories itself.*synthetic"):
        model.set_output(transform="pandas").fit(mine[columns], mine.smoker)


def test_the_rows_of_a_frame_do_not_change_a_fit(session, mine) -> None:
    for kind in [*CLASSIFIERS, *REGRESSORS]:
        model = kind(session, target=target_of(kind), features=["age"])
        expected = clone(model).fit().coef_
        assert np.array_equal(model.fit(mine.head(7), mine[target_of(kind)].head(7)).coef_, expected)
    with_target = LogisticRegression(session, target="smoker").fit(mine)  # the target is no feature of itself
    assert list(with_target.feature_names_in_) == ["age", "sex", "region"]
    assert Median(session, "age").fit(mine).value_ == Median(session, "age").fit().value_


# scikit-learn's contract, as far as no rows are needed

CHECKS = [
    estimator_checks.check_estimator_cloneable,
    estimator_checks.check_estimator_repr,
    estimator_checks.check_get_params_invariance,
    estimator_checks.check_set_params,
    estimator_checks.check_no_attributes_set_in_init,
    estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
    estimator_checks.check_estimator_tags_renamed,
    estimator_checks.check_valid_tag_types,
    estimator_checks.check_mixin_order,
]


@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS, *OTHERS])
@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_the_checks_of_scikit_learn_that_need_no_rows_pass(session, kind, check) -> None:
    check(kind.__name__, kind(session))


def test_kinds_are_known_to_scikit_learn(session) -> None:
    assert all(is_classifier(kind(session)) for kind in CLASSIFIERS)
    assert all(is_regressor(kind(session)) for kind in REGRESSORS)


def test_a_clone_has_the_same_session_so_the_budget_is_one(session) -> None:
    model = Ridge(session, target="region", features=["age"], alpha=0.3)
    assert clone(model).session is session and clone(model).alpha == 0.3
    assert copy.deepcopy(session) is session


def test_importing_the_package_does_not_load_scikit_learn() -> None:
    code = "import sys, hedgerow; assert 'sklearn' not in sys.modules; hedgerow.estimators.Ridge; assert 'sklearn' in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda s: LogisticRegression(s).fit(frame(5), "smoker"), r"X must be a list of column names, or a frame. Found DataFrame"),
        (lambda s: LogisticRegression(s).fit(["age"], [0, 1]), r"The target must be the name of a column. Found list"),
        (lambda s: LogisticRegression(s, features=["age"]).fit(), r"The target must be the name of a column. Found NoneType"),
        (lambda s: LogisticRegression("table").fit(["age"], "smoker"), r"session must be a session, a release or a connection. Found str"),
        (lambda s: LinearSVC(s).fit(["age"], "region"), r"The target of Hinge must have two values. Found 'region' with 4"),
        (lambda s: LinearRegression(s, radius=None).fit(["age"], "region"), r"Squared must be minimised over a bounded set"),
        (lambda s: LinearRegression(s).fit(["age", "height"], "region"), r"An attribute must be one of .* Found 'height'"),
        (lambda s: Median(s, "sex").fit(), r"A quantile must be of a numeric attribute. Found 'sex'"),
        (lambda s: Median(s).fit(), r"A quantile must be of a numeric attribute. Found None"),
        (
            lambda s: LogisticRegression(s).fit(["age"], "smoker").predict({"sex": ["F"]}),
            r"X must be a table with a column 'age'. Found dict without it",
        ),
    ],
)  # fmt: skip
def test_a_bad_fit_is_refused_by_name(session, use, message) -> None:
    before = session.spent
    with pytest.raises(InvalidInput, match=message):
        use(session)
    assert session.spent == before


def test_predicting_before_fitting_is_refused(session, mine) -> None:
    with pytest.raises(NotFittedError):
        LogisticRegression(session, target="smoker").predict(mine)


def test_rows_in_other_units_are_refused_and_arrays_are_taken_in_the_order_of_the_features() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(17, 90, 400), "pay": rng.uniform(0, 100, 400)})
    frame["smoker"] = rng.random(400) < frame["age"] / 90
    universe = hr.Universe(age=hr.Integers(17, 90), pay=hr.Range(0, 100, 10), smoker=hr.Flag())
    with pytest.warns(hr.errors.NotPrivateWarning):
        session = hr.open(frame, universe=universe, budget=hr.Budget(1.0, 1e-5), seed=1)
    model = hr.estimators.LogisticRegression(session, target="smoker", features=["age", "pay"])
    X = frame[["age", "pay"]]
    expected = model.fit().predict(X)
    assert (model.fit(X.to_numpy(), frame["smoker"]).predict(X.to_numpy()) == expected).all()
    scaled = (X - X.mean()) / X.std()
    for rows in (scaled, scaled.to_numpy()):
        with pytest.raises(InvalidInput, match=r"in the units of the universe\. Found 'age'"):
            model.fit(rows, frame["smoker"])
        with pytest.raises(InvalidInput, match="in the units of the universe"):
            model.predict(rows)
    with pytest.raises(InvalidInput, match=r"one column for each of the features age, pay\. Found an array of shape"):
        model.fit(np.zeros((400, 5)), frame["smoker"])
    assert len(model.predict(pd.DataFrame({"age": [5.0], "pay": [3.0]}))) == 1  # single rows are clamped, as in a table
