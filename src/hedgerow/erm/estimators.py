"""Private linear models with scikit-learn's interface: ``fit`` spends the budget, ``predict`` is free.

Every estimator takes a ``budget`` for one fit, and the public bounds to which rows and targets are clipped. ``radius``
bounds the norm of the coefficients. By default it is what the solver needs: no bound for whitened descent, otherwise
2.5·√p (1 for the lasso). scikit-learn is an optional dependency: ``pip install hedgerow[estimators]``.

The number of rows (if neighbours replace a row), the number of features and the set of class labels are public. State
the labels in ``classes``. If they are read from y, the fit is not private, and a warning says so. ``random_state``
makes the noise repeatable, and so not private.

Values in rows are never refused: every value is read by the rules of ``values``, so NaN, infinity and text each have a
meaning. A label belongs to the stated class that is the same number or, if it is no number, the same text. Any other
label belongs to the first class in ``classes_``. Two classes must not be the same number, such as "1" and "01". The
reason: one missing or textual label makes pandas and numpy convert a whole column of numbers to floats or text, and the
class of a row must not depend on the type that other rows gave its column.

An intercept is one more feature, constant at ``row_bound``, so that its coefficient has the scale of the others. It is
bounded together with them. Several classes are fitted one against the rest, each with an equal share of the budget.

Every fit spends ``budget``. Two fits on the same people, as in a search or a cross-validation, spend it twice. Give
such fits an account: ``LogisticRegression(budget=Budget(0.1, 1e-6), ledger=Accountant(Budget(1.0, 1e-6)))``. Clones
share the account, so every fit is charged there. When it is empty, ``fit`` raises BudgetExceeded before it looks at a
row. In a search use ``error_score="raise"``, and no extra processes: an account stays in its own process.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from hedgerow._checks import positive
from hedgerow._extras import extra
from hedgerow._renamed import renamed_arguments
from hedgerow._types import Array
from hedgerow.convex.losses.families import Hinge, Huber, Logistic, Loss, Squared
from hedgerow.convex.sets import L2Ball, Unconstrained
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.erm import values
from hedgerow.erm.auto import auto, whitens
from hedgerow.erm.problem import public_rows
from hedgerow.erm.solver import Result
from hedgerow.erm.solvers.lasso import lasso
from hedgerow.errors import BudgetExceeded, InvalidInput, NotPrivateWarning, UnaccountedWarning
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant, Ledger

extra("sklearn")
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin  # noqa: E402
from sklearn.exceptions import DataConversionWarning  # noqa: E402
from sklearn.utils.multiclass import check_classification_targets  # noqa: E402
from sklearn.utils.validation import check_is_fitted, validate_data  # noqa: E402


class _Unaccounted:
    """A count of the fits in this process that had no account. It is public, and leads to one warning."""

    def __init__(self) -> None:
        self.fits = 0

    def count_fit(self) -> None:
        """Count one more fit, and warn at the second."""
        self.fits += 1
        if self.fits == 2:
            warnings.warn(
                "Fits on the same people must share one account. Found a second fit without one, which spends its "
                "budget again. Pass ledger=Accountant(total) to each of them, unless the fits are on different people.",
                UnaccountedWarning,
                stacklevel=5,
            )


_unaccounted = _Unaccounted()


class LinearModel(BaseEstimator):  # type: ignore[misc]
    """A linear model ⟨x, coef⟩ + intercept, fitted by a private solver."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def _read(self, X: Any, y: Any) -> tuple[Any, NDArray[Any], int]:
        """Return finite features, raw labels and the public number of rows.

        It looks at shapes and names, not at values.
        """
        self._require_payer()
        features = values.matrix(X)
        validate_data(self, X, y, skip_check_array=True)
        labels = values.column(flat_labels(y))
        if labels.size != features.shape[0]:
            raise InvalidInput("y must have one label for each row of X. Found a different number. Match the lengths.")
        return features, labels, public_rows(labels.size, self.expected_rows, self.budget)

    def _require_payer(self) -> None:
        """Check that there is a budget, and an account that can pay it. Warn at the second fit without an account."""
        if not isinstance(self.budget, Budget):
            raise InvalidInput(f"budget must be a Budget. Found {type(self.budget).__name__}. Use Budget(1.0, 1e-6).")
        if self.ledger is None:
            _unaccounted.count_fit()
            return
        if not isinstance(self.ledger, Ledger):
            raise InvalidInput(
                f"ledger must be an Accountant. Found {type(self.ledger).__name__}. Use Accountant(Budget(1.0, 1e-6))."
            )
        theirs = self.ledger.budget  # public
        told = [(each.pure, each.neighbours, each.rows_per_unit) for each in (theirs, self.budget)]
        if told[0] != told[1]:
            raise InvalidInput(
                "budget must have the same neighbours and rows_per_unit as the ledger's budget, and delta = 0 "
                "if the ledger has delta = 0. Found a difference. Make them equal."
            )
        if self.budget.total > self.ledger.remaining * (1 + 1e-12):
            raise BudgetExceeded(
                f"A fit must cost at most {theirs.currency} = {self.ledger.remaining:.4g}, what is left of "
                f"{theirs.total:.4g}. Found {self.budget.total:.4g}. Fit fewer models, or each with a smaller budget."
            )

    def _payment(self, parts: int = 1) -> dict[str, Any]:
        """Return the solver's payment arguments, for each of the given number of parts of a fit."""
        if self.ledger is not None:
            return {"budget": self.ledger, "spend": self.budget.total / parts}
        if parts == 1:
            return {"budget": self.budget}
        return {"budget": Accountant(self.budget), "spend": self.budget.total / parts}

    def _solve(self, X: Any, y: Array, loss: Loss, **choices: Any) -> Result:
        """Fit a loss to features and labels with the solver that ``auto`` chooses."""
        X = self._with_intercept(X)
        seed = None if self.random_state is None else int(self.random_state)
        bound = self.row_bound * (math.sqrt(2) if self.fit_intercept else 1.0)
        over: ConvexSet = Unconstrained()
        if self.radius is not None or not whitens(loss, over, self.budget, X.shape[1]):
            radius = 2.5 * math.sqrt(X.shape[1]) if self.radius is None else self.radius
            over = L2Ball(radius / self.row_bound)
        return auto(
            X, y, loss=loss, over=over, row_bound=bound, expected_rows=self.expected_rows, seed=seed, **choices
        )  # fmt: skip

    def _with_intercept(self, X: Any) -> Any:
        """Add the constant column of the intercept, if one is wanted."""
        if not self.fit_intercept:
            return X
        column = np.full((X.shape[0], 1), float(self.row_bound))
        return sp.csr_array(sp.hstack([X, column])) if sp.issparse(X) else np.hstack([X, column])

    def _split(self, theta: Array) -> tuple[Array, float]:
        """Split θ into coefficients and intercept."""
        return (theta[:-1], float(theta[-1]) * self.row_bound) if self.fit_intercept else (theta, 0.0)

    def _scores(self, X: Any) -> Array:
        """Return ⟨x, coef⟩ + intercept for every row."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False, reset=False)
        X = values.matrix(X)
        scores: Array = np.asarray(X @ self.coef_.T) + self.intercept_
        return scores


@renamed_arguments(rows="expected_rows")
class _Classifier(ClassifierMixin, LinearModel):  # type: ignore[misc]
    """A linear classifier: one model for two classes, one model per class for more."""

    def __init__(
        self, budget: Budget, *, radius: float | None = None, row_bound: float = 1.0, fit_intercept: bool = True,
        classes: Any = None, expected_rows: int | None = None, random_state: int | None = None, ledger: Ledger | None = None,
    ) -> None:  # fmt: skip
        self.budget = budget
        self.radius = radius
        self.row_bound = row_bound
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.expected_rows = expected_rows
        self.random_state = random_state
        self.ledger = ledger

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # noise dominates on scikit-learn's tiny test tables
        return tags

    def _loss(self) -> Loss:
        """Return the loss to fit."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the classifier and spend the budget.

        Parameters
        ----------
        X : array, frame or sparse matrix
            One row per person. Rows are clipped to ``row_bound``.
        y : array
            One label per row.

        Returns
        -------
        self

        Raises
        ------
        BudgetExceeded
            If the account cannot pay for the fit.

        Example
        -------
        >>> model = hr.erm.LogisticRegression(hr.Budget(1.0, 1e-6), classes=[0, 1]).fit(X, y)
        """
        X, y, _ = self._read(X, y)
        if self.classes is None:
            warnings.warn(
                "classes must be stated for privacy. Found none, so they are read off y. Give classes=[…].",
                NotPrivateWarning,
                stacklevel=2,
            )
            check_classification_targets(y)
        self.classes_ = np.unique(y if self.classes is None else self.classes)
        if self.classes_.size < 2:
            raise InvalidInput("y must have two classes or more. Found 1 class. State them all in classes.")
        codes = code_labels(y, self.classes_)
        positives = [1] if self.classes_.size == 2 else list(range(self.classes_.size))
        payment = self._payment(len(positives))
        fits = [self._solve(X, (codes == code).astype(float), self._loss(), **payment) for code in positives]
        parts = [self._split(fit.theta) for fit in fits]
        self.coef_ = np.vstack([coefficients for coefficients, _ in parts])
        self.intercept_ = np.array([intercept for _, intercept in parts])
        self.results_ = tuple(fits)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the score of the second class, or the score of every class if there are more than two.

        Parameters
        ----------
        X : array, frame or sparse matrix
            One row per record to score.

        Returns
        -------
        array
            One number per row, or one row of numbers if there are more than two classes.

        Example
        -------
        >>> model = hr.erm.LogisticRegression(hr.Budget(1.0, 1e-6), classes=[0, 1]).fit(X, y)
        >>> model.decision_function(X).shape
        (3000,)
        """
        scores = self._scores(X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class of every row.

        Parameters
        ----------
        X : array, frame or sparse matrix
            One row per record to classify.

        Returns
        -------
        array

        Example
        -------
        >>> model = hr.erm.LogisticRegression(hr.Budget(1.0, 1e-6), classes=[0, 1]).fit(X, y)
        >>> model.predict(X).shape
        (3000,)
        """
        scores = self._scores(X)
        return np.asarray(self.classes_[choose_classes(scores)])


class LogisticRegression(_Classifier):
    """Private logistic regression with ‖coef‖₂·row_bound ≤ radius.

    Parameters
    ----------
    budget : Budget
        The price of one fit.
    radius : float, optional
        The bound on the coefficients. By default whatever the solver needs.
    row_bound : float
        Rows are clipped to this ℓ2 norm.
    fit_intercept : bool
        Fit a constant term, too.
    classes : list
        The class labels. They must be stated: labels read from y are not private.
    expected_rows : int, optional
        A public guess of the number of rows. Required if neighbours add or remove a row.
    random_state : int, optional
        A seed. It makes the noise repeatable, and so not private.
    ledger : Accountant, optional
        The account that pays for several fits on the same people.

    Example
    -------
    >>> model = hr.erm.LogisticRegression(hr.Budget(1.0, 1e-6), classes=[0, 1]).fit(X, y)
    """

    def _loss(self) -> Loss:
        return Logistic()

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every class for every row.

        Parameters
        ----------
        X : array, frame or sparse matrix
            One row per record to classify.

        Returns
        -------
        array
            One row per record, one column per class.

        Example
        -------
        >>> model = hr.erm.LogisticRegression(hr.Budget(1.0, 1e-6), classes=[0, 1]).fit(X, y)
        >>> model.predict_proba(X).shape
        (3000, 2)
        """
        each = expit(self.decision_function(X))
        if each.ndim == 1:
            return np.column_stack([1 - each, each])
        return np.asarray(each / each.sum(axis=1, keepdims=True))


class LinearSVC(_Classifier):
    """Private support vector machine (hinge loss) with ‖coef‖₂·row_bound ≤ radius.

    Parameters: see ``LogisticRegression``.

    Example
    -------
    >>> model = hr.erm.LinearSVC(hr.Budget(1.0, 1e-6), classes=[0, 1]).fit(X, y)
    """

    def _loss(self) -> Loss:
        return Hinge()


@renamed_arguments(rows="expected_rows")
class _Regressor(RegressorMixin, LinearModel):  # type: ignore[misc]
    """A linear regression.

    Targets are clipped to [−label_bound, label_bound] and scaled by it, so ``radius`` has no units of y.
    """

    def __init__(
        self, budget: Budget, *, radius: float | None = None, row_bound: float = 1.0, label_bound: float = 1.0,
        fit_intercept: bool = True, expected_rows: int | None = None, random_state: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:  # fmt: skip
        self.budget = budget
        self.radius = radius
        self.row_bound = row_bound
        self.label_bound = label_bound
        self.fit_intercept = fit_intercept
        self.expected_rows = expected_rows
        self.random_state = random_state
        self.ledger = ledger

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def _loss(self, n: int) -> Loss:
        """Return the loss to fit, for n rows."""
        return Squared()

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the regression and spend the budget.

        Parameters
        ----------
        X : array, frame or sparse matrix
            One row per person. Rows are clipped to ``row_bound``.
        y : array
            One target per row. Targets are clipped to ``label_bound``.

        Returns
        -------
        self

        Raises
        ------
        BudgetExceeded
            If the account cannot pay for the fit.

        Example
        -------
        >>> model = hr.erm.LinearRegression(hr.Budget(1.0, 1e-6), label_bound=1.0).fit(X, y)
        """
        X, y, n = self._read(X, y)
        bound = positive("label_bound", self.label_bound)
        found = self._solve_scaled(X, np.clip(values.labels(y), -bound, bound) / bound, n)
        coefficients, intercept = self._split(found.theta)
        self.coef_, self.intercept_ = coefficients * bound, intercept * bound
        self.result_ = found
        return self

    def _solve_scaled(self, X: Any, y: Array, n: int) -> Result:
        """Run the solver on clipped and scaled targets."""
        return self._solve(X, y, self._loss(n), **self._payment(), label_bound=1.0)

    def predict(self, X: Any) -> Array:
        """Return the predicted target of every row.

        Parameters
        ----------
        X : array, frame or sparse matrix
            One row per record.

        Returns
        -------
        array

        Example
        -------
        >>> model = hr.erm.LinearRegression(hr.Budget(1.0, 1e-6), label_bound=1.0).fit(X, y)
        >>> model.predict(X).shape
        (3000,)
        """
        return self._scores(X)


class LinearRegression(_Regressor):
    """Private least squares with ‖coef‖₂·row_bound ≤ radius·label_bound.

    Parameters
    ----------
    label_bound : float
        Targets are clipped to [−label_bound, label_bound].

    Other parameters: see ``LogisticRegression``.

    Example
    -------
    >>> model = hr.erm.LinearRegression(hr.Budget(1.0, 1e-6), label_bound=1.0).fit(X, y)
    """


@renamed_arguments(rows="expected_rows")
class Ridge(_Regressor):
    """Private least squares with the penalty alpha·‖coef‖² on the sum of squares, as in scikit-learn.

    The coefficients stay within the radius.

    Parameters
    ----------
    alpha : float
        The weight of the penalty.

    Other parameters: see ``LinearRegression``.

    Example
    -------
    >>> model = hr.erm.Ridge(hr.Budget(1.0, 1e-6), alpha=10.0, label_bound=1.0).fit(X, y)
    """

    def __init__(
        self, budget: Budget, *, alpha: float = 1.0, radius: float | None = None, row_bound: float = 1.0,
        label_bound: float = 1.0, fit_intercept: bool = True, expected_rows: int | None = None, random_state: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            budget, radius=radius, row_bound=row_bound, label_bound=label_bound, fit_intercept=fit_intercept, expected_rows=expected_rows,
            random_state=random_state, ledger=ledger,
        )  # fmt: skip
        self.alpha = alpha

    def _loss(self, n: int) -> Loss:
        return Squared(ridge=self.alpha / n)


@renamed_arguments(rows="expected_rows")
class HuberRegressor(_Regressor):
    """Private regression that is robust to outliers: large residuals count linearly.

    Parameters
    ----------
    width : float
        The residual at which the loss turns linear, in units of label_bound.

    Other parameters: see ``LinearRegression``.

    Example
    -------
    >>> model = hr.erm.HuberRegressor(hr.Budget(1.0, 1e-6), width=0.5, label_bound=1.0).fit(X, y)
    """

    def __init__(
        self, budget: Budget, *, width: float = 0.5, radius: float | None = None, row_bound: float = 1.0,
        label_bound: float = 1.0, fit_intercept: bool = True, expected_rows: int | None = None, random_state: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            budget, radius=radius, row_bound=row_bound, label_bound=label_bound, fit_intercept=fit_intercept, expected_rows=expected_rows,
            random_state=random_state, ledger=ledger,
        )  # fmt: skip
        self.width = width

    def _loss(self, n: int) -> Loss:
        return Huber(width=self.width)


class Lasso(_Regressor):
    """Private least squares with ‖coef‖₁·row_bound ≤ radius·label_bound.

    ``row_bound`` bounds every entry of a row, not the norm of the row.

    Parameters: see ``LinearRegression``.

    Example
    -------
    >>> model = hr.erm.Lasso(hr.Budget(1.0, 1e-6), radius=1.0, label_bound=1.0).fit(X, y)
    """

    def _solve_scaled(self, X: Any, y: Array, n: int) -> Result:
        """Run the private lasso on clipped and scaled targets."""
        seed = None if self.random_state is None else int(self.random_state)
        radius = 1.0 if self.radius is None else self.radius
        return lasso(
            self._with_intercept(X), y, radius=radius / self.row_bound, row_bound=self.row_bound, expected_rows=self.expected_rows, seed=seed,
            **self._payment(),
        )  # fmt: skip


def choose_classes(scores: Array) -> NDArray[np.int64]:
    """Return the class number for the scores of every row: one for two classes, else one per class."""
    return (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)


def flat_labels(y: Any) -> Any:
    """Return a single column of labels as a vector, with scikit-learn's warning. The shape is public."""
    if len(getattr(y, "shape", ())) == 2 and y.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning, stacklevel=4)
        return (y if isinstance(y, np.ndarray) else np.asarray(y))[:, 0]
    return y


def code_labels(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the class number of every label: that of the same number, else of the same text, else 0."""
    known = list(enumerate(classes.tolist()))
    spelt = {text: code for code, label in known if (text := _text(label)) is not None}
    numbered: dict[float, int] = {}
    for code, label in known:
        if math.isnan(number := values.as_number(label)):
            continue
        if number in numbered:
            raise InvalidInput(
                f"Classes that are numbers must be different numbers. Found {known[numbered[number]][1]!r} and "
                f"{label!r}. Join them, or give them names that are no numbers."
            )
        numbered[number] = code

    def code_of(label: Any) -> int:
        number = values.as_number(label)
        return numbered[number] if number in numbered else spelt.get(_text(label) or "", 0)

    if isinstance(y, np.ma.MaskedArray) or y.dtype.kind in "OTVmM":
        each = (code_of(label) for label in np.ma.asarray(y).tolist())
        return np.fromiter(each, dtype=np.int64, count=y.size)
    distinct, where = np.unique(y, return_inverse=True)
    return np.array([code_of(label) for label in distinct.tolist()], dtype=np.int64)[where]


def _text(label: Any) -> str | None:
    """Return the text that numpy would write for a label in a column of text, or None if it would not write one."""
    if isinstance(label, bytes):
        return label.decode("latin-1")
    return str(label) if isinstance(label, str | int | float) else None
