"""Choose among private models: the best of a random number of private fits, by private scores, under one bill.

Papers: Liu & Talwar, "Private selection from private candidates"; Papernot & Steinke, "Hyperparameter tuning with Rényi
differential privacy", Theorem 6. Proof: docs/proofs/private_search.md.

Symbols: m candidates; K the number of runs, random and secret, of a Poisson law; ρ₀ the zCDP loss of one run.

    one run     take a candidate at random, fit it to all rows and score it on the same rows, with ρ₀ together
    release     the model and the score of the run with the best score, of K runs

A fit that is private hardly overfits, so scores on the rows that trained it choose well, and no row is kept from
training. All K runs together cost what ``RandomRuns`` states, whatever the candidates and the outcome.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hedgerow._checks import number
from hedgerow._extras import extra
from hedgerow._types import Array
from hedgerow.erm import values
from hedgerow.erm.estimators import LinearModel, choose_classes, code_labels, flat_labels
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy.allowance import Allowance, Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import epsilon_of_rho
from hedgerow.privacy.events import Gaussian
from hedgerow.privacy.ledger import Accountant, Ledger
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.privacy.renyi_events import LEAST_MEAN, MOST_MEAN, RandomRuns

extra("sklearn")
from sklearn.base import BaseEstimator, clone  # noqa: E402
from sklearn.utils.validation import check_is_fitted  # noqa: E402

GRID = 2.0**-10  # grid of a score, in rows
TRIED = 8  # candidates that are tried by default, of many
REHEARSAL = 10  # rows of zeros to which each candidate is fitted first
ROWS_AT_ONCE = 4_096  # rows that are scored at a time, to save memory


@dataclass(frozen=True)
class SearchBill:
    """The bill of a search, known before any row is read.

    Attributes
    ----------
    cost : float
        The price of the whole search, in the budget's currency.
    runs : float
        The expected number of runs.
    each : float
        ρ₀, the price of one run: of a fit and its score.
    share : float
        The price of one fit as a share of the cost: a fit without a search would have all of it.
    split : float
        The share that each fit would have if all candidates were fitted and scored once.
    tried : float
        The probability that a given candidate is tried at all.
    score_sigma : float
        Standard deviation of a score's noise, in rows.
    """

    cost: float
    runs: float
    each: float
    share: float
    split: float
    tried: float
    score_sigma: float


class PrivateSearch(BaseEstimator):  # type: ignore[misc]
    """The best of several private models, chosen privately by their scores on the rows that trained them.

    Use it if few of the candidates are good. Where a default is good, one fit with the whole budget is better
    (docs/erm.md).

    Parameters
    ----------
    candidates : list of estimators
        Models of ``hr.erm`` that are not fitted. Their own budgets, ledgers and seeds are not used.
    budget : Budget
        The price of the whole search. It needs a delta above 0.
    tried : float, optional
        The least probability with which each candidate is tried. More of it means more runs, and less for each.
        Default: a half, or less for more than 16 candidates, so that 8 of them are tried.
    scoring : float
        The share of a run's price that pays for its score.
    random_state : int, optional
        A seed. It makes the noise repeatable, and so not private.
    ledger : Accountant, optional
        The account that pays, if the people are asked more than this.

    Attributes
    ----------
    best_estimator_, best_index_ : the model of the best run, and the position of its candidate.
    best_score_ : its noisy score, an average over the rows that trained it, too high on average as the best of several.
    bill_ : the bill.

    Example
    -------
    >>> models = [hr.erm.Ridge(hr.Budget(1.0, 1e-6), alpha=a, label_bound=10) for a in (1, 10, 100)]  # doctest: +SKIP
    >>> search = hr.erm.PrivateSearch(models, hr.Budget(1.0, 1e-6)).fit(X, y)  # doctest: +SKIP
    """

    def __init__(
        self, candidates: Sequence[Any], budget: Budget, *, tried: float | None = None, scoring: float = 0.2,
        random_state: int | None = None, ledger: Ledger | None = None,
    ) -> None:  # fmt: skip
        self.candidates = candidates
        self.budget = budget
        self.tried = tried
        self.scoring = scoring
        self.random_state = random_state
        self.ledger = ledger

    def bill(self) -> SearchBill:
        """Return the bill of ``fit``. Nothing is spent and no row is read.

        Returns
        -------
        SearchBill

        Raises
        ------
        InvalidInput
            If the budget or the candidates do not suit a search.
        BudgetExceeded
            If the budget is too small for so many candidates.

        Example
        -------
        >>> models = [hr.erm.Ridge(hr.Budget(1.0, 1e-6), alpha=a) for a in (1, 10, 100)]
        >>> 0 < hr.erm.PrivateSearch(models, hr.Budget(1.0, 1e-6)).bill().share < 1
        True
        """
        return self._bill_of(self._event())

    def _bill_of(self, event: RandomRuns) -> SearchBill:
        m, cost, fit = len(self.candidates), self._payer.cost(event), 1 - self.scoring
        return SearchBill(
            cost, event.expected, event.each, fit * event.each / cost, fit / m, _chance_of_a_try(event.mean, m),
            _score_noise(self.scoring * event.each).sigma,
        )  # fmt: skip

    @property
    def _payer(self) -> Budget:
        """The budget of the account that pays, by which a search is priced."""
        return self.budget if self.ledger is None else self.ledger.budget

    def _event(self) -> RandomRuns:
        """Return the event that uses the whole budget, of the fewest runs that try each candidate often enough."""
        if not isinstance(self.budget, Budget) or self.budget.pure or self.budget.rows_per_unit > 1:
            raise InvalidInput(
                f"budget must be a Budget with a delta above 0 and one row a person. Found {self.budget!r}. Use "
                "Budget(1.0, 1e-6)."
            )
        if not self.candidates or any(not isinstance(each, LinearModel) for each in self.candidates):
            raise InvalidInput(
                "candidates must be at least one model of hr.erm. Found none, or another kind of object. Give models "
                "such as hr.erm.Ridge(budget)."
            )
        m = len(self.candidates)
        tried = min(0.5, TRIED / m) if self.tried is None else number(self.tried)
        for name, given in {"tried": tried, "scoring": number(self.scoring)}.items():
            if not 0 < given < 1:
                raise InvalidInput(f"{name} must be between 0 and 1. Found {given!r}. Leave it out.")
        mean = _fewest_runs(m, tried)
        low, high = 0.0, self.budget.total
        for _ in range(100):
            middle = (low + high) / 2
            fits = middle > 0 and self._payer.cost(RandomRuns(middle, mean)) <= self.budget.total
            low, high = (middle, high) if fits else (low, middle)
        if low < 1e-6 * self.budget.total:
            raise BudgetExceeded(
                f"The budget must pay for a random number of runs. Found too little for about {mean:.3g}. Name fewer "
                "candidates."
            )
        return RandomRuns(low, mean)

    def fit(self, X: Any, y: Any) -> Self:
        """Search, and spend the budget.

        Parameters
        ----------
        X : array, frame or sparse matrix
            One row per person.
        y : array
            One label per row.

        Returns
        -------
        self

        Raises
        ------
        InvalidInput
            If the rows, the labels or the candidates do not fit together.

        Example
        -------
        >>> models = [hr.erm.Ridge(hr.Budget(1.0, 1e-6), alpha=a) for a in (1, 10)]
        >>> search = hr.erm.PrivateSearch(models, hr.Budget(1.0, 1e-6)).fit(X, y)  # doctest: +SKIP
        """
        event = self._event()
        features, labels = values.matrix(X), values.column(flat_labels(y))
        if labels.size != features.shape[0]:
            raise InvalidInput("y must have one label for each row of X. Found a different number. Match the lengths.")
        if self.budget.neighbours == "replace" and labels.size < 2:
            raise InvalidInput("X must have at least two rows for a search. Found fewer. Add rows.")
        if self._payer.neighbours != self.budget.neighbours:
            raise InvalidInput(
                "budget must have the same neighbours as the ledger's budget. Found other neighbours. Make them equal."
            )
        payer = Allowance.of(self.budget) if self.ledger is None else Allowance.of(self.ledger, self.budget.total)
        for index in range(len(self.candidates)):  # whatever is wrong with a candidate is refused before the charge
            rehearsal = np.zeros((REHEARSAL, features.shape[1]))
            self._fit_candidate(index, event.each, rehearsal, np.zeros(REHEARSAL), 0)
        noise = Noise() if self.random_state is None else Seeded(int(self.random_state))
        paid = payer.charge(event, why="private search", keep=False)
        best: tuple[float, int, Any] | None = None
        for run in range(noise.draw_runs(paid)):
            index = int(noise.subsample(len(self.candidates), 1)[0])
            model = self._fit_candidate(index, event.each, features, labels, run)
            receipt = Accountant(self.budget).charge(_score_noise(self.scoring * event.each))
            score = float(noise.add(_score(model, features, labels), receipt))
            if best is None or score > best[0]:
                best = score, index, model
        assert best is not None
        self.bill_, self.best_index_, self.best_estimator_ = self._bill_of(event), best[1], best[2]
        # Under add-remove the number of rows is private: the public guess stands for it.
        guess = getattr(best[2], "expected_rows", None) or 1
        self.best_score_ = best[0] / (labels.size if self.budget.neighbours == "replace" else guess)
        told = (best[1], self.best_score_), best[2].coef_, best[2].intercept_  # and no other model, score or number
        payer.ledger.record(paid, np.concatenate([np.ravel(each) for each in told]), noise.private)
        return self

    def _fit_candidate(self, index: int, each: float, X: Any, y: NDArray[Any], run: int) -> Any:
        """Fit a candidate with an account that has the part of ρ₀ that is not for the score."""
        δ, each = self.budget.delta, (1 - self.scoring) * each
        of_run = Budget(epsilon_of_rho(each, δ) * (1 - 1e-9), δ, self.budget.neighbours)
        theirs = self.candidates[index]
        seed = None if self.random_state is None else int(self.random_state) * 100_003 + run
        ledger = Accountant(Budget(max(self.budget.epsilon, of_run.epsilon), δ, self.budget.neighbours))
        # A seed of the candidate's own would give all of its runs the same noise.
        model = clone(theirs).set_params(budget=of_run, ledger=ledger, random_state=seed).fit(X, y)
        if ledger.spent > each * (1 + 1e-9):
            raise BudgetExceeded(
                f"A run must cost at most rho = {each:.4g}. Found {ledger.spent:.4g}. Use models of hr.erm as they are."
            )
        return model.set_params(budget=theirs.budget, ledger=theirs.ledger, random_state=theirs.random_state)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predictions of the best model.

        Parameters
        ----------
        X : array, frame or sparse matrix
            One row per record.

        Returns
        -------
        array

        Example
        -------
        >>> models = [hr.erm.Ridge(hr.Budget(1.0, 1e-6), alpha=a) for a in (1, 10)]
        >>> search = hr.erm.PrivateSearch(models, hr.Budget(1.0, 1e-6)).fit(X, y)  # doctest: +SKIP
        >>> search.predict(X).shape
        (3000,)
        """
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict(values.matrix(X)))


def _chance_of_a_try(mean: float, candidates: int) -> float:
    """Return the probability that a given candidate is in one of the runs."""
    return 1 - RandomRuns(1.0, mean).generating_function(1 - 1 / candidates)


def _fewest_runs(candidates: int, tried: float) -> float:
    """Return the least μ by which each candidate is tried with this probability."""
    low, high = LEAST_MEAN, MOST_MEAN
    if _chance_of_a_try(high, candidates) < tried:
        raise InvalidInput(
            f"tried must be smaller, because there are many candidates. Found {tried!r}. Name fewer of them."
        )
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _chance_of_a_try(middle, candidates) >= tried else (middle, high)
    return high


def _score_noise(each: float) -> Gaussian:
    """Return the noise of a score: a sum over rows of numbers in [0, 1], rounded to the grid."""
    return Amount(Budget(1.0, 1e-6), each).gaussian(1.0 + GRID, GRID)


def _score(model: Any, X: Any, y: NDArray[Any]) -> float:
    """Return the number of right classes, or Σ 1 − |prediction − target|/(2·label_bound). Private."""
    found = _row_scores(model, X)
    if hasattr(model, "classes_"):
        return float(np.count_nonzero(code_labels(y, model.classes_) == choose_classes(found)))
    bound = model.label_bound
    mine, theirs = (
        np.clip(each, -bound, bound) / bound / 2  # halves of shares, whose difference cannot overflow
        for each in (np.nan_to_num(found[:, 0], nan=0.0), values.labels(y))
    )
    return math.fsum((1 - np.abs(mine - theirs)).tolist())


@np.errstate(all="ignore")  # a warning would tell of a row that is too large for a product
def _row_scores(model: Any, X: Any) -> Array:
    """Return ⟨x, coef⟩ + intercept of every row, to the last bit a function of the row and the model alone.

    BLAS adds a row up in an order that may depend on the number of rows and on the row's place. A row between two
    classes could change its class because another row came.
    """
    coefficients = np.atleast_2d(model.coef_).T
    if sp.issparse(X):  # row by row
        return np.asarray(X @ coefficients + model.intercept_)
    scores = np.zeros((X.shape[0], coefficients.shape[1]))
    for start in range(0, X.shape[0], ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        for column, each in zip(np.ascontiguousarray(X[some].T), coefficients, strict=True):
            scores[some] += np.multiply.outer(column, each)
    return np.asarray(scores + model.intercept_)
