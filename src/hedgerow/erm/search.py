"""Choose among private models: the best of a random number of private fits, by private scores, under one bill.

Papers: Liu & Talwar, "Private selection from private candidates"; Papernot & Steinke, "Hyperparameter tuning with Rényi
differential privacy", Theorem 2. Proof: docs/proofs/private_search.md.

Symbols: m candidates; K the number of runs, random and secret, of a public law; ρ₀ the zCDP loss of one run.

    one run     take a candidate at random, fit it to the training rows with ρ₀, score it on the other rows with ρ₀
    release     the model and the score of the run with the best score, of K runs

A row is either a training row or a scoring row, by a coin that does not depend on its values. So a run costs ρ₀ and not
twice that. All K runs together cost what ``RandomRuns`` states, whatever the number of candidates and the outcome.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow._checks import number
from hedgerow._extras import extra
from hedgerow.erm import values
from hedgerow.erm.estimators import LinearModel, code_labels, flat_labels
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy.allowance import Allowance, Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import epsilon_of_rho
from hedgerow.privacy.events import Gaussian
from hedgerow.privacy.ledger import Accountant, Ledger
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.privacy.renyi_events import COINS, MOST_RUNS, RandomRuns

extra("sklearn")
from sklearn.base import BaseEstimator, clone  # noqa: E402
from sklearn.utils.validation import check_is_fitted  # noqa: E402

GRID = 2.0**-10  # grid of a score, in rows
REHEARSAL = 10  # rows of zeros to which each candidate is fitted first
RUNS_PER_CANDIDATE = 2.0  # default expectation of K, per candidate


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
        ρ₀, the price of one fit and of one score.
    share : float
        ρ₀ as a share of the cost: a fit without a search would have all of it.
    split : float
        The share that each candidate would have if all were fitted and scored once, with the same split of the rows.
    tried : float
        The probability that a given candidate is tried at all.
    score_sigma : float
        Standard deviation of a score's noise, in scoring rows.
    """

    cost: float
    runs: float
    each: float
    share: float
    split: float
    tried: float
    score_sigma: float


class PrivateSearch(BaseEstimator):  # type: ignore[misc]
    """The best of several private models, chosen privately by their scores on held-out rows.

    It suits many candidates of which few are good. With fewer than about six, or where a default is good, one fit with
    the whole budget is better (docs/erm.md).

    Parameters
    ----------
    candidates : list of estimators
        Models of ``hr.erm`` that are not fitted. Their own budgets and ledgers are not used.
    budget : Budget
        The price of the whole search. It needs a delta above 0.
    runs : float, optional
        The expected number of runs. Default: twice the number of candidates, at most 200.
    validation : float
        The share of the rows that score and do not train.
    shape : float
        η of the law of the number of runs: 0 is a logarithmic law, 1 a geometric one, which costs more and is less
        often 1.
    random_state : int, optional
        A seed. It makes the noise repeatable, and so not private.
    ledger : Accountant, optional
        The account that pays, if the people are asked more than this.

    Attributes
    ----------
    best_estimator_, best_index_ : the model of the best run, and the position of its candidate.
    best_score_ : its noisy score, an average over the scoring rows that is too high on average, as it is the best of several.
    bill_ : the bill.

    Example
    -------
    >>> models = [hr.erm.Ridge(hr.Budget(1.0, 1e-6), alpha=a, label_bound=10) for a in (1, 10, 100)]  # doctest: +SKIP
    >>> search = hr.erm.PrivateSearch(models, hr.Budget(1.0, 1e-6)).fit(X, y)  # doctest: +SKIP
    """

    def __init__(
        self, candidates: Sequence[Any], budget: Budget, *, runs: float | None = None, validation: float = 0.2,
        shape: float = 0.0, random_state: int | None = None, ledger: Ledger | None = None,
    ) -> None:  # fmt: skip
        self.candidates = candidates
        self.budget = budget
        self.runs = runs
        self.validation = validation
        self.shape = shape
        self.random_state = random_state
        self.ledger = ledger

    def bill(self) -> SearchBill:
        """Return the bill of ``fit``. Nothing is spent and no row is read."""
        event = self._event()
        law = np.array(event.weights) / COINS
        m, cost = len(self.candidates), self._payer.cost(event)
        missed = float(law @ (1 - 1 / m) ** np.arange(1.0, law.size + 1))
        return SearchBill(
            cost, event.runs, event.each, event.each / cost, 1 / m, 1 - missed, _score_noise(event.each).sigma
        )

    @property
    def _payer(self) -> Budget:
        """The budget of the account that pays, by which a search is priced."""
        return self.budget if self.ledger is None else self.ledger.budget

    def _event(self) -> RandomRuns:
        """Return the event that uses the whole budget, with the largest ρ₀."""
        if not isinstance(self.budget, Budget) or self.budget.pure or self.budget.rows_per_unit > 1:
            raise InvalidInput(
                f"budget must be a Budget with a delta above 0 and one row a person. Found {self.budget!r}. Use "
                "Budget(1.0, 1e-6)."
            )
        if not self.candidates or any(not isinstance(each, LinearModel) for each in self.candidates):
            raise InvalidInput(
                "candidates must be models of hr.erm, one at least. Found none, or another kind. Use such as hr.erm.Ridge(budget)."
            )
        if not 0 < number(self.validation) < 1:
            raise InvalidInput(f"validation must be between 0 and 1. Found {self.validation!r}. Use 0.2.")
        runs = min(RUNS_PER_CANDIDATE * len(self.candidates), MOST_RUNS) if self.runs is None else self.runs
        low, high = 0.0, self.budget.total
        for _ in range(100):
            middle = (low + high) / 2
            fits = middle > 0 and self._payer.cost(RandomRuns(middle, runs, self.shape)) <= self.budget.total
            low, high = (middle, high) if fits else (low, middle)
        if low < 1e-6 * self.budget.total:
            raise BudgetExceeded(
                f"The budget must pay for a random number of runs. Found too little for {runs:g} expected runs. Expect fewer."
            )
        return RandomRuns(low, runs, self.shape)

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
        BudgetExceeded
            If the account cannot pay, or a candidate's solver needs a δ of its own.
        """
        event, bill = self._event(), self.bill()
        features, labels = values.matrix(X), values.column(flat_labels(y))
        if labels.size != features.shape[0]:
            raise InvalidInput("y must have one label for each row of X. Found a different number. Match the lengths.")
        if self.budget.neighbours == "replace" and labels.size < 2:
            raise InvalidInput("X must have at least two rows, to train and to score. Found fewer. Add rows.")
        if self._payer.neighbours != self.budget.neighbours:
            raise InvalidInput("budget must have the neighbours of the ledger's. Found others. Match them.")
        payer = Allowance.of(self.budget) if self.ledger is None else Allowance.of(self.ledger, self.budget.total)
        for index in range(len(self.candidates)):  # whatever is wrong with a candidate is refused before the charge
            rehearsal = np.zeros((REHEARSAL, features.shape[1]))
            self._fit_candidate(index, event.each, rehearsal, np.zeros(REHEARSAL), 0)
        noise = Noise() if self.random_state is None else Seeded(int(self.random_state))
        receipt = payer.charge(event, why="private search", keep=False)
        training, scoring = self._split(labels.size, noise)
        best: tuple[float, int, Any] | None = None
        for run in range(noise.draw_runs(receipt)):
            index = int(noise.subsample(len(self.candidates), 1)[0])
            model = self._fit_candidate(index, event.each, features[training], labels[training], run)
            ledger = Accountant(self.budget)
            receipt = ledger.charge(_score_noise(event.each))
            score = float(noise.add(_score(model, features[scoring], labels[scoring]), receipt))
            if best is None or score > best[0]:
                best = score, index, model
        assert best is not None
        self.bill_, self.best_index_, self.best_estimator_ = bill, best[1], best[2]
        # Under add-remove the number of scoring rows is private: the public guess stands for it.
        guess = (getattr(best[2], "expected_rows", None) or 1) * self.validation / (1 - self.validation)
        self.best_score_ = best[0] / (scoring.size if self.budget.neighbours == "replace" else guess)
        return self

    def _split(self, rows: int, noise: Noise) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the training rows and the scoring rows: by a number that is public, or by a coin for each row."""
        if self.budget.neighbours == "replace":
            order = noise.subsample(rows, rows)
            scoring = min(max(1, round(self.validation * rows)), rows - 1)
            return np.sort(order[scoring:]), np.sort(order[:scoring])
        scores = noise.subsample(COINS_OF_A_ROW, rows, replace=True) < self.validation * COINS_OF_A_ROW
        return np.flatnonzero(~scores), np.flatnonzero(scores)

    def _fit_candidate(self, index: int, each: float, X: Any, y: NDArray[Any], run: int) -> Any:
        """Fit a candidate with an account that has ρ₀."""
        δ = self.budget.delta
        of_run = Budget(epsilon_of_rho(each, δ) * (1 - 1e-9), δ, self.budget.neighbours)
        model = clone(self.candidates[index])
        ledger = Accountant(Budget(max(self.budget.epsilon, of_run.epsilon), δ, self.budget.neighbours))
        model.set_params(budget=of_run, ledger=ledger)
        if getattr(model, "expected_rows", None) is not None:
            model.set_params(expected_rows=max(1, round(model.expected_rows * (1 - self.validation))))
        if self.random_state is not None:
            model.set_params(random_state=int(self.random_state) * 100_003 + run)
        model.fit(X, y)
        if ledger.spent > each * (1 + 1e-9):
            raise BudgetExceeded(
                f"A run must cost at most rho = {each:.4g}. Found {ledger.spent:.4g}. Use models of hr.erm as they are."
            )
        return model.set_params(budget=self.candidates[index].budget, ledger=self.candidates[index].ledger)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predictions of the best model."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict(values.matrix(X)))


COINS_OF_A_ROW = 2**32


def _score_noise(each: float) -> Gaussian:
    """Return the noise of a score: a sum over rows of numbers in [0, 1], rounded to the grid."""
    return Amount(Budget(1.0, 1e-6), each).gaussian(1.0 + GRID, GRID)


def _score(model: Any, X: Any, y: NDArray[Any]) -> float:
    """Return the number of right classes, or Σ 1 − |prediction − target|/(2·label_bound). Private."""
    if y.size == 0:  # scikit-learn refuses to predict for no rows, and how many rows score is private
        return 0.0
    found = np.asarray(model.predict(X))
    if hasattr(model, "classes_"):
        return float(np.count_nonzero(code_labels(y, model.classes_) == code_labels(found, model.classes_)))
    bound = model.label_bound
    off = np.abs(np.clip(found, -bound, bound) - np.clip(values.labels(y), -bound, bound)) / (2 * bound)
    return math.fsum((1 - off).tolist())
