"""Linear models of scikit-learn on a session: ``fit`` names columns, ``predict`` and ``score`` take your own frame.

    model = hr.estimators.LogisticRegression(session, target="smoker", features=["age", "sex"]).fit()
    model.predict(my_frame), model.coef_, model.error_bound_

``fit`` asks the session a convex question (``minimize``). It is therefore free unless ``within`` asks for a tighter
bound, and fitting again costs nothing. ``fit(["age"], "smoker")`` names other columns. Features are those of the
universe. A number, in your frame too, is replaced by the representative of its bin and standardized by public bounds to
[−1, 1]. Categories, and the attributes named in ``onehot``, get one column per value but the first, their reference
(``coding="full"`` keeps all). ``coef_`` refers to these columns, which ``coef_names_`` lists. Predictions are in the
units of the target.

Within ``Pipeline``, ``cross_val_score`` and ``GridSearchCV`` scikit-learn passes a part of a frame to ``fit``. A model
whose target was named at construction accepts that: the columns of the frame are the features if none were named, and
its rows are ignored, because the model describes the table of the session. Every fold therefore gets the same model,
for free. The folds differ in the part of your frame that ``score`` uses, and a search chooses the parameters that score
best there. Without a frame of your own, score on ``session.synthetic()``. Searches must use one process
(``n_jobs=None``), because a session cannot leave its process.

After ``fit``: ``coef_``, ``intercept_``, ``coefficients_`` (a frame with an interval for every coefficient and what it
rests on), ``error_bound_`` (a bound on the excess risk at the session's 1 − β, or None if nothing public bounds it),
and ``source_`` and ``cost_`` as in the answer. ``effects()`` gives mean predictions by the values of each feature, and
``calibration()`` of a logistic regression predicted beside observed shares, both free.

The checks of scikit-learn for parameters, cloning, tags and repr apply. Those that fit on arrays do not: the data
belong to the session, and ``fit`` never sees a row. A clone shares the session and its one budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from hedgerow._checks import whole
from hedgerow._extras import extra
from hedgerow._types import Array
from hedgerow.answer import Answer
from hedgerow.answering.model_effects import calibration_table, mean_predictions, sampled_outcomes
from hedgerow.convex.minimize import minimize
from hedgerow.convex.sets import Box, L1Ball, L2Ball, Unconstrained
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.data.coding import cells_of, code_column, column_of, numbers
from hedgerow.erm.search import PrivateSearch
from hedgerow.errors import InvalidInput
from hedgerow.losses import Hinge, Huber, Logistic, Loss, MultinomialLogistic, Pinball, Poisson, Squared
from hedgerow.query.counts import Query
from hedgerow.universe.universe import Universe

extra("sklearn")
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin  # noqa: E402
from sklearn.metrics import d2_tweedie_score, r2_score  # noqa: E402
from sklearn.utils.validation import check_is_fitted  # noqa: E402

Names = Sequence[str]

__all__ = [
    "HuberRegressor",
    "Lasso",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "Median",
    "PoissonRegressor",
    "PrivateSearch",
    "Quantile",
    "QuantileRegressor",
    "Ridge",
]


@runtime_checkable
class EstimatorSession(Protocol):
    """A session, a release or a service, as far as an estimator needs it."""

    @property
    def universe(self) -> Universe: ...

    def ask(self, query: Query, *, within: float | None = None) -> Answer: ...


LEAST_ROWS = 20  # fewer rows are not judged by their units
WITHOUT_SCALING = (
    "The session scales numbers and encodes categories itself: pass the columns as they are, without StandardScaler or "
    "OneHotEncoder. To train a pipeline of your own, use session.synthetic(…)."
)


def _is_scaled(values: Array, low: float, high: float) -> bool:
    """Return True for numbers as a ``StandardScaler`` or a ``MinMaxScaler`` leaves them."""
    known = values[np.isfinite(values)]
    if known.size == 0 or high - low <= 1:
        return False
    standard = abs(known.mean()) < 1e-6 and abs(known.std() - 1) < 1e-6
    unit = known.min() == 0 and known.max() == 1 and bool(np.any(known % 1))
    return bool(standard or unit)


class _Bound(BaseEstimator):  # type: ignore[misc]
    """Base of all estimators: asks the session and stores the bound, source and cost of its answer."""

    session: EstimatorSession
    within: float | None

    def _require_session(self) -> None:
        if not isinstance(self.session, EstimatorSession):
            raise InvalidInput(
                f"session must be a session, a release or a connection. Found {type(self.session).__name__}. Use "
                "hr.open, hr.load or hr.connect."
            )

    def _ask(self, loss: Loss, over: ConvexSet) -> Answer:
        """Ask for the minimizer of a loss over a set, and store the bound, source and cost."""
        answer = self.session.ask(minimize(loss, over), within=self.within)
        self.error_bound_, self.source_, self.cost_ = answer.error, answer.source, answer.cost
        self.coefficients_ = answer.coefficients
        return answer


class _Linear(_Bound):
    """Linear model z = ⟨x, coef⟩ + intercept on the features of the universe."""

    def __init__(
        self, session: EstimatorSession, *, target: str | None = None, features: Names = (), radius: float | None = 5.0,
        fit_intercept: bool = True, onehot: Names = (), interactions: Sequence[Names] = (), where: Query | None = None,
        within: float | None = None, coding: str = "reference",
    ) -> None:  # fmt: skip
        """Store the parameters. ``radius`` bounds the norm of coefficients and intercept; None for no bound."""
        self.session = session
        self.target = target
        self.features = features
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.onehot = onehot
        self.interactions = interactions
        self.where = where
        self.within = within
        self.coding = coding

    def _loss(self, **about: Any) -> Loss:
        """Return the loss of this model."""
        raise NotImplementedError

    def _over(self) -> ConvexSet:
        """Return the set of allowed coefficients."""
        return Unconstrained() if self.radius is None else L2Ball(self.radius)

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Fit on the columns named here or at construction: ``X`` lists the features, ``y`` is the target.

        If ``X`` is a frame, its columns are the features, unless some were named at construction. Its rows, and labels
        in ``y``, are ignored.

        Parameters
        ----------
        X : list of str or frame, optional
            The features, by name. The rows of a frame are ignored.
        y : str, optional
            The name of the target. Labels in an array are ignored.

        Returns
        -------
        self

        Raises
        ------
        InvalidInput
            If no target is named, a column is unknown, or the numbers of a frame are scaled.

        Example
        -------
        >>> model = hr.estimators.LinearRegression(session).fit(["age", "sex"], "income")
        """
        self._require_session()
        features, target = self._columns(X, y)
        if not isinstance(target, str):
            raise InvalidInput(
                f"The target must be the name of a column. Found {type(target).__name__}. The session has the rows: "
                "name "
                'the columns, as in fit(["age", "sex"], "smoker").'
            )
        about = {"target": target, "features": features, "interactions": self.interactions, "where": self.where}
        loss = self._loss(intercept=self.fit_intercept, onehot=self.onehot, coding=self.coding, **about)
        answer = self._ask(loss, self._over())
        self._risk = loss.on(self.session.universe)
        self.target_ = target
        self.feature_names_in_ = np.array(self._risk.features.attributes, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        self.coef_names_ = self._risk.features.feature_names[: -1 if self.fit_intercept else None]
        theta = answer.value.reshape((-1, *self._risk.outputs))
        self._theta = theta
        self.coef_ = theta[:-1].T if self.fit_intercept else theta.T
        self.intercept_ = theta[-1] if self.fit_intercept else np.zeros(self._risk.outputs)[()]
        return self

    def _columns(self, X: Any, y: Any) -> tuple[Names, Any]:
        """Return the features and the target, as named here or at construction."""
        columns = getattr(X, "columns", None)
        if isinstance(X, np.ndarray) and self.target is not None:
            self._own_rows(X, self.features)
            return self.features, self.target
        if columns is None or self.target is None:
            return self.features if X is None else _names(X), self.target if y is None else y
        target = y if isinstance(y, str) else self.target
        X = self._with_plain_names(X)
        features = self.features or tuple(name for name in map(str, X.columns) if name != target)
        encoded = [name for name in features if name not in self.session.universe.names and self._is_encoded(name)]
        if encoded:
            raise InvalidInput(f"X must have columns of the universe. Found {encoded[0]!r}. {WITHOUT_SCALING}")
        self._own_rows(X, [name for name in features if name in X.columns and name in self.session.universe.names])
        return features, target

    def _with_plain_names(self, X: Any) -> Any:
        """Return a frame without the prefixes that a ``ColumnTransformer`` adds to names, as in ``numbers__age``."""
        known = self.session.universe.names
        ends = {name: name.rpartition("__")[2] for name in map(str, getattr(X, "columns", ())) if name not in known}
        renamed = {name: end for name, end in ends.items() if end in known}
        return X.rename(renamed) if renamed and not hasattr(X, "iloc") else X.rename(columns=renamed) if renamed else X

    def _is_encoded(self, name: str) -> bool:
        """Return True for a name that a one-hot encoder makes, such as ``sex_F``."""
        return name.rpartition("__")[2].startswith(tuple(f"{known}_" for known in self.session.universe.names))

    def _own_rows(self, X: Any, names: Names) -> Any:
        """Return the caller's rows as columns by name. Refuse arrays of another width, and numbers in other units.

        The rows are the caller's own, not the session's, so they may be refused.
        """
        if isinstance(X, np.ndarray):
            if X.ndim != 2 or X.shape[1] != len(names):
                raise InvalidInput(
                    f"X must have one column for each of the features {', '.join(names) or '(none)'}. Found an array "
                    f"of shape {X.shape}. {WITHOUT_SCALING}"
                )
            X = {name: X[:, i] for i, name in enumerate(names)}
        for name in names:
            declared = self.session.universe[name].bounds
            values = np.asarray(X[name])
            if declared is None or values.dtype.kind not in "iuf" or values.size < LEAST_ROWS:
                continue
            low, high = float(np.nanmin(declared[0])), float(np.nanmax(declared[1]))
            if np.mean((values < low) | (values > high)) > 0.5 or _is_scaled(values, low, high):
                raise InvalidInput(
                    f"X must be in the units of the universe. Found {name!r} scaled, or mostly outside of its declared "
                    f"range, {low:g} to {high:g}. {WITHOUT_SCALING}"
                )
        return X

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns that ``coef_`` refers to.

        Parameters
        ----------
        input_features : optional
            Ignored. It is part of scikit-learn's interface.

        Returns
        -------
        array of str

        Example
        -------
        >>> model = hr.estimators.LinearRegression(session).fit(["age"], "income")
        >>> model.get_feature_names_out().tolist()
        ['age']
        """
        check_is_fitted(self, "coef_")
        return np.array(self.coef_names_, dtype=object)

    def _scores(self, X: Any) -> Array:
        """Compute z for every row of a frame."""
        check_is_fitted(self, "coef_")
        names, X = self._risk.features.attributes, self._with_plain_names(X)
        X = self._own_rows(
            X, [n for n in names if isinstance(X, np.ndarray) or n in getattr(X, "columns", () if X is None else X)]
        )
        cells = {name: cells_of(self.session.universe, name, X) for name in names}
        rows = self._risk.features.rows(cells)
        if not names:  # no features: one constant row for all
            rows = np.repeat(rows, _length(X), axis=0)
        return np.asarray(rows @ self._theta)

    def _of_rows(self, rows: Array) -> Array:
        """Return the predictions of feature vectors: numbers, or the probability or score of the second class."""
        return np.asarray(rows @ self._theta)

    def _hypothesis(self) -> Any:
        """Return the public hypothesis of the session; refuse a connection, which has none."""
        found = getattr(self.session, "hypothesis", None)
        if found is None:
            raise InvalidInput(
                f"The session must have its hypothesis here. Found {type(self.session).__name__}. Use a session, or "
                "the service's release file with hr.load."
            )
        return found

    def effects(self) -> Any:
        """Return mean predictions by the values of each feature, all other features as in the hypothesis. It is free.

        Returns
        -------
        DataFrame
            ``feature``, ``value``, ``prediction`` (of a classifier of two classes the probability of the second, or the
            score), and its ``difference`` from the prediction at the first value.

        Raises
        ------
        InvalidInput
            If the target has more than two classes, or the session is a connection.

        Example
        -------
        >>> model = hr.estimators.LinearRegression(session).fit(["age", "sex"], "income")
        >>> list(model.effects().columns)
        ['feature', 'value', 'prediction', 'difference']
        """
        check_is_fitted(self, "coef_")
        if self._risk.outputs:
            raise InvalidInput(
                f"Effects must be of a number or of two classes. Found {self._risk.outputs[0]} classes. Use "
                "predict_proba on a frame of your own."
            )
        return mean_predictions(self._risk, self._hypothesis(), self._of_rows)

    def _labels(self, X: Any, y: Any) -> NDArray[Any]:
        """Return the true labels: ``y``, or the target column of the frame."""
        return column_of(X, self.target_) if y is None else np.asarray(y)


class _Classifier(ClassifierMixin, _Linear):  # type: ignore[misc]
    """Classifier: predicts one of the declared values of the target."""

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Fit on the named columns. Sets ``classes_`` to the declared values of the target."""
        super().fit(X, y)
        self.classes_ = _array(self.session.universe[self.target_].labels)
        if not self._risk.outputs:  # like scikit-learn: one row of coefficients for two classes
            self.coef_, self.intercept_ = self.coef_[None, :], np.atleast_1d(self.intercept_)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return z for each row; with more than two classes one z per class.

        Parameters
        ----------
        X : frame
            One row per record to score, with the features as columns.

        Returns
        -------
        array
            One number per row, or one row of numbers if there are more than two classes.

        Example
        -------
        >>> model = hr.estimators.LogisticRegression(session).fit(["age", "visits"], "smoker")
        >>> model.decision_function(frame).shape
        (3000,)
        """
        return self._scores(X)

    def _predicted_cells(self, X: Any) -> NDArray[np.int64]:
        """Return the index of the predicted class of each row."""
        z = self._scores(X)
        return z.argmax(axis=1) if self._risk.outputs else (z > 0).astype(np.int64)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely value of the target for each row, one of ``classes_``.

        Parameters
        ----------
        X : frame
            One row per record to classify, with the features as columns.

        Returns
        -------
        array

        Example
        -------
        >>> model = hr.estimators.LogisticRegression(session).fit(["age", "visits"], "smoker")
        >>> model.predict(frame).shape
        (3000,)
        """
        cells = self._predicted_cells(X)
        return self.classes_[cells]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on your own frame. Its target column is the truth unless ``y`` is given.

        Parameters
        ----------
        X : frame
            Records of your own.
        y : array, optional
            The true labels. Default: the target column of the frame.
        sample_weight : array, optional
            The weight of each record.

        Returns
        -------
        float

        Example
        -------
        >>> model = hr.estimators.LinearSVC(session).fit(["age", "visits"], "smoker")
        >>> 0 <= model.score(frame, y == 1) <= 1
        True
        """
        right = self._predicted_cells(X) == code_column(self.session.universe[self.target_], self._labels(X, y))
        return float(np.average(right, weights=sample_weight))


class LogisticRegression(_Classifier):
    """Logistic regression: P(target = second value) = 1/(1 + e^−z).

    A target of more than two values gets one z per class and a softmax.

    Parameters: see ``LinearRegression``.

    Example
    -------
    >>> model = hr.estimators.LogisticRegression(session).fit(["age", "sex"], "smoker")
    >>> model.classes_.tolist()
    [False, True]
    """

    def _loss(self, **about: Any) -> Loss:
        several = self.session.universe[about["target"]].size > 2
        return MultinomialLogistic(**about) if several else Logistic(**about)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class for each row.

        Parameters
        ----------
        X : frame
            One row per record to classify, with the features as columns.

        Returns
        -------
        array
            One row per record, one column per class.

        Example
        -------
        >>> model = hr.estimators.LogisticRegression(session).fit(["age", "visits"], "smoker")
        >>> model.predict_proba(frame).shape
        (3000, 2)
        """
        z = self._scores(X)
        if self._risk.outputs:
            return np.asarray(softmax(z, axis=1))
        return np.column_stack([expit(-z), expit(z)])

    def _of_rows(self, rows: Array) -> Array:
        return np.asarray(expit(rows @ self._theta))

    def calibration(self, X: Any = None, y: Any = None, *, bins: int = 10) -> Any:
        """Return predicted beside observed shares, in groups of records with similar predictions.

        Parameters
        ----------
        X : DataFrame, optional
            A frame of your own, with the target in ``y`` or as a column. Default: records of the public hypothesis,
            where a shortfall shows what the model cannot express, and noise in the hypothesis does not show.
        y : array, optional
            The true labels of the frame's rows.
        bins : int
            The largest number of groups.

        Returns
        -------
        DataFrame
            ``share`` of the records, the mean ``predicted`` probability of the second class, and its ``observed``
            share.

        Raises
        ------
        InvalidInput
            If the target has more than two classes, or the number of groups is not a whole number of at least 1.

        Example
        -------
        >>> model = hr.estimators.LogisticRegression(session).fit(["age", "sex"], "smoker")
        >>> list(model.calibration(bins=4).columns)
        ['share', 'predicted', 'observed']
        """
        check_is_fitted(self, "coef_")
        if self._risk.outputs:
            raise InvalidInput(
                f"Calibration must be of two classes. Found {self._risk.outputs[0]} classes. Predict one of them, with "
                "a target of two values."
            )
        whole("bins", bins)
        if X is None:
            predicted, cells, weights = sampled_outcomes(self._risk, self._hypothesis(), self._of_rows)
        else:
            predicted, weights = expit(self._scores(X)), np.ones(_length(X))
            cells = code_column(self.session.universe[self.target_], self._labels(X, y))
        return calibration_table(predicted, (cells == 1).astype(float), weights, bins)

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of ``predict_proba``.

        Parameters
        ----------
        X : frame
            One row per record to classify, with the features as columns.

        Returns
        -------
        array
            One row per record, one column per class.

        Example
        -------
        >>> model = hr.estimators.LogisticRegression(session).fit(["age", "visits"], "smoker")
        >>> model.predict_log_proba(frame).shape
        (3000, 2)
        """
        return np.log(self.predict_proba(X))


class LinearSVC(_Classifier):
    """Linear support vector machine: the hinge loss, for a target of two values.

    Parameters: see ``LinearRegression``.

    Example
    -------
    >>> model = hr.estimators.LinearSVC(session).fit(["age", "sex"], "smoker")
    """

    def _loss(self, **about: Any) -> Loss:
        return Hinge(**about)


class _Regressor(RegressorMixin, _Linear):  # type: ignore[misc]
    """Regressor: predicts a number."""

    def _of_rows(self, rows: Array) -> Array:
        return self._in_units(rows @ self._theta)

    def predict(self, X: Any) -> Array:
        """Return the prediction for each row, in the units of the target.

        Parameters
        ----------
        X : frame
            One row per record, with the features as columns.

        Returns
        -------
        array

        Example
        -------
        >>> model = hr.estimators.LinearRegression(session).fit(["age", "visits"], "income")
        >>> model.predict(frame).shape
        (3000,)
        """
        return self._in_units(self._scores(X))

    def _in_units(self, z: Array) -> Array:
        """Return predictions in the units of the target."""
        declared = self.session.universe[self.target_]
        if declared.values is None:
            return z
        centre, half = declared.scale
        return centre + half * z

    def _truth(self, X: Any, y: Any) -> Array:
        """Return the true numbers: values of a numeric target, else cell indices."""
        declared, given = self.session.universe[self.target_], self._labels(X, y)
        numeric = declared.values is not None and declared.ordered
        return numbers(given) if numeric else code_column(declared, given).astype(float)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R² on your own frame. Its target column is the truth unless ``y`` is given.

        Parameters
        ----------
        X : frame
            Records of your own.
        y : array, optional
            The true numbers. Default: the target column of the frame.
        sample_weight : array, optional
            The weight of each record.

        Returns
        -------
        float

        Example
        -------
        >>> model = hr.estimators.LinearRegression(session).fit(["age", "visits"], "income")
        >>> model.score(frame) <= 1
        True
        """
        return float(r2_score(self._truth(X, y), self.predict(X), sample_weight=sample_weight))


class LinearRegression(_Regressor):
    """Least-squares regression.

    Parameters
    ----------
    session : Session
        The session that answers.
    target : str, optional
        Column to predict. It must be given before ``fit``, or to ``fit``.
    features : sequence of str
        Columns to predict it from.
    radius : float, optional
        Bound on the norm of coefficients and intercept; None for no bound.
    fit_intercept : bool
        Fit an intercept.
    onehot : sequence of str
        Numeric columns to encode as categories.
    interactions : sequence of sequence of str
        Sets of columns whose products are features too.
    where : Query, optional
        A count that selects the records. Default: all.
    within : float, optional
        Pay for this bound on the excess risk, if the free one is wider.
    coding : str
        "reference": beside an intercept a category has no column for its first value, and its coefficients are
        differences from it. "full": one column for every value.

    Example
    -------
    >>> model = hr.estimators.LinearRegression(session).fit(["age", "sex"], "income")
    >>> model.coef_names_
    ('age', 'sex=M')
    """

    def _loss(self, **about: Any) -> Loss:
        return Squared(**about)


class Ridge(_Regressor):
    """Least squares with (alpha/2)·‖θ‖² added to the average of ½(z − y)². The intercept is penalized too.

    Parameters: see ``LinearRegression``.

    Example
    -------
    >>> model = hr.estimators.Ridge(session, alpha=0.1).fit(["age", "sex"], "income")
    """

    def __init__(
        self, session: EstimatorSession, *, alpha: float = 0.01, target: str | None = None, features: Names = (),
        radius: float | None = 5.0, fit_intercept: bool = True, onehot: Names = (), interactions: Sequence[Names] = (),
        where: Query | None = None, within: float | None = None, coding: str = "reference",
    ) -> None:  # fmt: skip
        super().__init__(
            session, target=target, features=features, radius=radius, fit_intercept=fit_intercept, onehot=onehot,
            interactions=interactions, where=where, within=within, coding=coding,
        )  # fmt: skip
        self.alpha = alpha

    def _loss(self, **about: Any) -> Loss:
        return Squared(ridge=self.alpha, **about)


class Lasso(_Regressor):
    """Least squares over {‖θ‖₁ ≤ radius}. Each weight of the penalized form corresponds to some radius.

    Parameters: see ``LinearRegression``.

    Example
    -------
    >>> model = hr.estimators.Lasso(session, radius=1.0).fit(["age", "sex"], "income")
    """

    def _loss(self, **about: Any) -> Loss:
        return Squared(**about)

    def _over(self) -> ConvexSet:
        return Unconstrained() if self.radius is None else L1Ball(self.radius)


class HuberRegressor(_Regressor):
    """Robust regression: squared loss up to residuals of ``width``, linear beyond.

    ``width`` is in units of half the range of the target.

    Parameters: see ``LinearRegression``.

    Example
    -------
    >>> model = hr.estimators.HuberRegressor(session, width=0.2).fit(["age", "sex"], "income")
    """

    def __init__(
        self, session: EstimatorSession, *, width: float = 0.2, target: str | None = None, features: Names = (),
        radius: float | None = 5.0, fit_intercept: bool = True, onehot: Names = (), interactions: Sequence[Names] = (),
        where: Query | None = None, within: float | None = None, coding: str = "reference",
    ) -> None:  # fmt: skip
        super().__init__(
            session, target=target, features=features, radius=radius, fit_intercept=fit_intercept, onehot=onehot,
            interactions=interactions, where=where, within=within, coding=coding,
        )  # fmt: skip
        self.width = width

    def _loss(self, **about: Any) -> Loss:
        return Huber(self.width, **about)


class QuantileRegressor(_Regressor):
    """Regression of a quantile of the target on the features; the median by default.

    Parameters: see ``LinearRegression``. ``quantile`` is the quantile to fit, 0.5 for the median.

    Example
    -------
    >>> model = hr.estimators.QuantileRegressor(session, quantile=0.9).fit(["age"], "income")
    """

    def __init__(
        self, session: EstimatorSession, *, quantile: float = 0.5, target: str | None = None, features: Names = (),
        radius: float | None = 5.0, fit_intercept: bool = True, onehot: Names = (), interactions: Sequence[Names] = (),
        where: Query | None = None, within: float | None = None, coding: str = "reference",
    ) -> None:  # fmt: skip
        super().__init__(
            session, target=target, features=features, radius=radius, fit_intercept=fit_intercept, onehot=onehot,
            interactions=interactions, where=where, within=within, coding=coding,
        )  # fmt: skip
        self.quantile = quantile

    def _loss(self, **about: Any) -> Loss:
        return Pinball(self.quantile, **about)


class PoissonRegressor(_Regressor):
    """Poisson regression: counts with mean e^z. Means above e^clip are cut off.

    Parameters: see ``LinearRegression``.

    Example
    -------
    >>> model = hr.estimators.PoissonRegressor(session).fit(["age"], "visits")
    """

    def __init__(
        self, session: EstimatorSession, *, clip: float = 3.0, target: str | None = None, features: Names = (),
        radius: float | None = 5.0, fit_intercept: bool = True, onehot: Names = (), interactions: Sequence[Names] = (),
        where: Query | None = None, within: float | None = None, coding: str = "reference",
    ) -> None:  # fmt: skip
        super().__init__(
            session, target=target, features=features, radius=radius, fit_intercept=fit_intercept, onehot=onehot,
            interactions=interactions, where=where, within=within, coding=coding,
        )  # fmt: skip
        self.clip = clip

    def _loss(self, **about: Any) -> Loss:
        return Poisson(self.clip, **about)

    def predict(self, X: Any) -> Array:
        """Return the predicted mean for each row."""
        return self._in_units(self._scores(X))

    def _in_units(self, z: Array) -> Array:
        return np.exp(np.minimum(z, self.clip))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return D², the share of the Poisson deviance explained, on your own frame."""
        return float(d2_tweedie_score(self._truth(X, y), self.predict(X), power=1, sample_weight=sample_weight))


class Quantile(_Bound):
    """A quantile of one numeric attribute, computed on the representatives of its bins: ``value_`` after ``fit``.

    Parameters
    ----------
    session : Session
        The session that answers.
    attribute : str, optional
        The attribute. It must be given before ``fit``.
    quantile : float
        The quantile, between 0 and 1.
    where : Query, optional
        A count that selects the records. Default: all.
    within : float, optional
        Pay for this bound on the excess risk, if the free one is wider.

    Example
    -------
    >>> 0 <= hr.estimators.Quantile(session, "income", quantile=0.9).fit().value_ <= 99
    True
    """

    def __init__(
        self, session: EstimatorSession, attribute: str | None = None, *, quantile: float = 0.5, where: Query | None = None,
        within: float | None = None,
    ) -> None:  # fmt: skip
        self.session = session
        self.attribute = attribute
        self.quantile = quantile
        self.where = where
        self.within = within

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Ask for the quantile. ``X`` may name another attribute. The rows of a frame are ignored.

        Parameters
        ----------
        X : str, optional
            The name of another attribute.
        y : optional
            Ignored.

        Returns
        -------
        self

        Raises
        ------
        InvalidInput
            If the attribute has no numbers.

        Example
        -------
        >>> quantile = hr.estimators.Quantile(session, quantile=0.9).fit("income")
        """
        self._require_session()
        name = self.attribute if X is None or hasattr(X, "columns") else X
        if not isinstance(name, str) or self.session.universe[name].values is None:
            raise InvalidInput(
                f"A quantile must be of a numeric attribute. Found {name!r}. Name a Range, Integers or Flag."
            )
        loss = Pinball(self.quantile, target=name, where=self.where)
        z = float(self._ask(loss, Box(-1.0, 1.0)).value[0])
        centre, half = self.session.universe[name].scale
        self.value_ = centre + half * z
        return self

    def predict(self, X: Any) -> Array:
        """Return the value once for every row of a frame.

        Parameters
        ----------
        X : frame or array
            Any rows.

        Returns
        -------
        array

        Example
        -------
        >>> hr.estimators.Median(session, "income").fit().predict(frame).shape
        (3000,)
        """
        check_is_fitted(self, "value_")
        return np.full(_length(X), self.value_)


class Median(Quantile):
    """Median of one numeric attribute.

    Parameters: see ``Quantile``.

    Example
    -------
    >>> 0 <= hr.estimators.Median(session, "income").fit().value_ <= 99
    True
    """

    def __init__(
        self,
        session: EstimatorSession,
        attribute: str | None = None,
        *,
        where: Query | None = None,
        within: float | None = None,
    ) -> None:
        self.session = session
        self.attribute = attribute
        self.where = where
        self.within = within

    quantile = 0.5


def _names(X: Any) -> tuple[str, ...]:
    """Return a list of column names as a tuple; refuse anything else."""
    if not isinstance(X, list | tuple) or not all(isinstance(name, str) for name in X):
        raise InvalidInput(
            f"X must be a list of column names, or a frame. Found {type(X).__name__}. The session has the rows: name the "
            'columns, as in fit(["age", "sex"], "smoker"), or give features= and target= to the estimator.'
        )
    return tuple(X)


def _length(frame: Any) -> int:
    return len(next(iter(frame.values()))) if isinstance(frame, dict) else len(frame)


def _array(labels: Sequence[Any]) -> NDArray[Any]:
    """Return labels as an array of their common type."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        return np.array(labels)
    array: NDArray[Any] = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array
