"""A reusable holdout: it stands between a model search and the test set, so that the test set stays a test set.

Papers: Dwork et al., *The reusable holdout: preserving validity in adaptive data analysis* (Thresholdout); Rogers et
al., *Guaranteed validity for empirical approaches to adaptive data analysis* (Guess and Check). Proof:
docs/proofs/holdout.md.

A score is a mean over rows of values in [0, 1]. It is first guessed, from the training set. While the guess is near
the holdout's own value, the guess is the answer, and the holdout has revealed one bit, in a round that is already
paid for. Where it is not near, the answer is measured with noise, and the round ends. When the budget buys no further
round, the holdout is exhausted: earlier scores remain valid.

Each score has an interval for the population, and all of them hold together with probability 1 − β (``widths``),
provided that the holdout's rows are independent draws from the population and that nobody knows more about them than
the scores. The adjacency is replace-one: one row of the holdout has other values, and n is public.

Differs: Thresholdout's noise is σ, 2σ and 4σ for a number of rows that no theorem names. Here the noise follows from
a budget; a round is charged before it begins, together with the measurement that ends it. The threshold's noise is
fresh in every round, everything is discrete, and a measurement is rounded, so that it reveals little.

A model's ``predict`` is code that sees the holdout's features: it must run in the user's own process
(docs/threat-model.md). Its prediction for a row must depend on that row alone. Otherwise one row moves more than one
value and the budget's promise is void; ``by_row=True`` shows the model one row at a time.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from hedgerow import _html
from hedgerow._checks import number, whole
from hedgerow._types import Integers
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.generalise import widths
from hedgerow.generalise.metrics import OF_PROBABILITIES, UNITS, Metric, PerRow, in_units, metric_of
from hedgerow.generalise.pairs import PairMetric, area, concordant_units, discordant_units, score_function
from hedgerow.generalise.scoring import HoldoutScorer, WholeTrainingSet
from hedgerow.generalise.search import EarlyStopping, SelectedRule, best_side
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.guard_round import ABOVE, GuardRound
from hedgerow.privacy.ledger import Accountant, Ledger, Receipt
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.privacy.process import NotCopyable
from hedgerow.textbook.sparse_vector import FINEST

if TYPE_CHECKING:
    import pandas as pd

ROUND, MEASUREMENT = "holdout: round", "holdout: measurement"  # reasons, as the ledger stores them
AnyMetric = Metric | PairMetric | str | PerRow


@final
@dataclass(frozen=True)
class Score:
    """A mean on the holdout's population: between ``low`` and ``high`` with probability 1 − β, for all scores together.

    ``source``: "guess" where the guess was near enough; "holdout" where the score was measured.
    ``by``: the reason that the interval rests on.
    ``cost``: the charge for this score, in the budget's currency.
    """

    value: float
    low: float
    high: float
    source: Literal["guess", "holdout"]
    metric: str
    name: str
    cost: float
    by: str
    greater_is_better: bool = True

    @property
    def error(self) -> float:
        """The larger distance from the value to an end of the interval."""
        return max(self.high - self.value, self.value - self.low)

    def __repr__(self) -> str:
        label = f"{self.name}: " if self.name else ""
        return (
            f"Score({label}{self.metric} {self.value:.4f} in [{self.low:.4f}, {self.high:.4f}], "
            f"{self.source}, cost {self.cost:.3g})"
        )


SHOWN = 20  # a notebook shows at most this many scores


@final
class _HoldoutRows:
    """Features and target of a set of rows."""

    def __init__(self, given: Any, target: str | None) -> None:
        if isinstance(given, tuple) and len(given) == 2 and target is None:
            self.X, y = given
        elif isinstance(target, str) and hasattr(given, "columns") and target in given.columns:
            self.X, y = given.drop(columns=target), given[target]
        else:
            raise InvalidInput(
                "A holdout must be a frame with its target column, or a pair (X, y). Found neither. "
                "Use Holdout(frame, budget, target=…)."
            )
        self.y: NDArray[Any] = _read_only(np.asarray(y))
        self.n = int(self.y.shape[0])
        rows = self.X.shape[0] if hasattr(self.X, "shape") else len(self.X)
        if self.y.ndim != 1 or self.n < 1 or rows != self.n:
            raise InvalidInput(
                f"A holdout must have at least one row and one target for each row. "
                f"Found {rows} rows and targets of shape {self.y.shape}. Pass features and targets of equal length."
            )
        if isinstance(self.X, np.ndarray):
            self.X = _read_only(self.X)

    def features_for_model(self) -> Any:
        """Return the features for a model, copied if they are a frame: its writes must not change later scores."""
        return self.X.copy() if hasattr(self.X, "iloc") else self.X

    def row(self, i: int) -> Any:
        """Return the features of one row."""
        return self.X.iloc[i : i + 1].copy() if hasattr(self.X, "iloc") else self.X[i : i + 1]

    def column(self, name: Any) -> NDArray[np.float64]:
        """Return a column of numbers, NaN where a row has none. Rows are read one by one, and none is refused."""
        values = np.asarray(self.X[name] if hasattr(self.X, "columns") else self.X[:, name])
        if values.dtype.kind in "biuf":
            return values.astype(np.float64)
        return np.array([_float(value) for value in values], dtype=np.float64)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of the array that cannot be written to."""
    seen = array.view()
    seen.flags.writeable = False
    return seen


def _float(value: Any) -> float:
    """Convert to a float; NaN if that fails."""
    try:
        return float(value)
    except Exception:  # an error message would reveal the value
        return math.nan


@final
class Holdout(NotCopyable):
    """A test set that may be scored again and again, with intervals that hold for all scores together.

    Parameters
    ----------
    frame : DataFrame or (X, y)
        The rows that are held out: a frame that contains the target column, or a pair of arrays.
    budget : Budget
        The total privacy budget, with replace-one neighbours.
    target : str, optional
        The name of the target column, if ``frame`` is a frame.
    train : DataFrame or (X, y), optional
        The training set, which guesses come from. Without it each score needs a ``guess``, or is measured.
    rounds : int
        The number of guesses that may be wrong.
    questions : int
        About how many scores will be asked. It sets the threshold; more may be asked.
    threshold : float, optional
        The threshold of a comparison, as a fraction of the rows, if it is not set by ``questions``.
    beta : float
        The probability that any of the intervals fails.
    ledger : Ledger, optional
        The ledger that pays, by default one of the holdout's own. If it pays for anything else, more is known about
        the rows than the scores, and intervals rest on privacy alone.
    seed : int, optional
        Makes the noise repeatable and therefore not private: for tests only.

    Raises
    ------
    InvalidInput
        If the rows, the budget or an option do not fit.

    Example
    -------
    >>> holdout = Holdout(frame, Budget(1.0, 0.0), target="y", train=train_frame)
    >>> holdout.score(model).value
    """

    def __init__(
        self,
        frame: Any,
        budget: Budget,
        *,
        target: str | None = None,
        train: Any = None,
        rounds: int = 10,
        questions: int = 10_000,
        threshold: float | None = None,
        beta: float = 0.05,
        ledger: Ledger | None = None,
        seed: int | None = None,
    ) -> None:
        account = Accountant(budget) if ledger is None else ledger
        if account.budget != budget:
            raise InvalidInput("budget must be that of the ledger. Found another. Pass the budget it was opened with.")
        if budget.neighbours != "replace":
            raise InvalidInput(
                "neighbours must be 'replace' for a holdout, whose number of rows is public. Found 'add-remove'. "
                "Use Budget(ε, δ), at half of ε: one row replaced is one removed and one added."
            )
        if not 0 < number(beta) < 1 or not (threshold is None or 0 < number(threshold) < 1):
            raise InvalidInput(
                f"beta and threshold must be between 0 and 1. Found {beta!r} and {threshold!r}. "
                "Give a probability and a fraction."
            )
        self._held, self._train = _HoldoutRows(frame, target), None if train is None else _HoldoutRows(train, target)
        self._ledger, self._noise = account, Noise() if seed is None else Seeded(seed)
        self.plan = widths.plan_holdout(
            Amount(budget, account.remaining), budget, rows=self._held.n,
            trained_on=None if self._train is None else self._train.n, rounds=whole("rounds", rounds),
            questions=whole("questions", questions), beta=beta, threshold=threshold,
        )  # fmt: skip
        self._round: tuple[GuardRound, Receipt] | None = None
        account.end_replay()  # nothing that the ledger paid for earlier is replayed here
        self._asked, self._charges = widths.QuestionCounts(), 0
        self._scores: list[Score] = []
        self._discordant: dict[Any, Score] = {}  # by positive class: the mean over pairs of "the classes differ"

    # Scores.

    def score(
        self, model: Any, metric: AnyMetric = "accuracy", *, guess: float | None = None, name: str = "",
        by_row: bool = False,
    ) -> Score:  # fmt: skip
        """Return a model's mean score or loss, with its interval for the population.

        Parameters
        ----------
        model : object with ``predict``, or function of the features
            The model to score.
        metric : Metric, str or function
            The score or loss of a row: "accuracy", "zero_one_loss", "squared_error", "absolute_error", "log_loss",
            "brier", or a function of (y, prediction). "auc" is the area under the ROC curve.
        guess : float, optional
            The expected value, in place of the model's score on the training set.
        name : str
            A label for the leaderboard.
        by_row : bool
            Predict row by row. A row on which the model raises gets the worst value.

        Returns
        -------
        Score

        Raises
        ------
        InvalidInput
            If the model or the metric does not suit the holdout.

        Example
        -------
        >>> holdout.score(model).value <= 1
        True
        """
        if _is_area(metric):
            return self._area(model, metric, guess, name, by_row, compared=True)
        kind = metric_of(metric, model)
        return self._score(lambda rows: _values(model, kind, rows, by_row), kind, guess, name, compared=True)

    def measure(self, model: Any, metric: AnyMetric = "accuracy", *, name: str = "", by_row: bool = False) -> Score:
        """Return a model's score, measured in any case: for the model that was chosen in the end.

        It costs a measurement, a fifth of a round.

        Parameters
        ----------
        model, metric, name, by_row
            As in ``score``.

        Returns
        -------
        Score

        Raises
        ------
        BudgetExceeded
            If the holdout is exhausted.

        Example
        -------
        >>> holdout.measure(model, name="final").name
        'final'
        """
        if _is_area(metric):
            return self._area(model, metric, None, name, by_row, compared=False)
        kind = metric_of(metric, model)
        return self._score(lambda rows: _values(model, kind, rows, by_row), kind, None, name, compared=False)

    def mean(
        self, function: Callable[[Any, NDArray[Any]], Any], *, guess: float | None = None, name: str = ""
    ) -> Score:
        """Return the mean of any function(X, y) that gives each row a value in [0, 1]: a statistical query.

        The value of a row must depend on that row alone.

        Parameters
        ----------
        function : callable
            Takes X and y, and returns a value in [0, 1] for each row.
        guess : float, optional
            The expected value. Default: the mean over the training set.
        name : str
            A label for the leaderboard.

        Returns
        -------
        Score

        Raises
        ------
        BudgetExceeded
            If the holdout is exhausted.

        Example
        -------
        >>> holdout.mean(lambda X, y: X["age"] > 40).value <= 1
        True
        """
        kind = Metric(name or getattr(function, "__name__", "mean"), lambda y, predicted: predicted)

        def values(sample: _HoldoutRows) -> Integers:
            return in_units(_call_model(lambda: function(sample.features_for_model(), sample.y)), sample.n, kind.worst)

        return self._score(values, kind, guess, name, compared=True)

    def calibration(self, model: Any, bins: int = 10, *, positive: Any = None) -> pd.DataFrame:
        """Return how often the positive class occurs where the model says how probable it is, in bins of probability.

        Each bin costs two scores: the share of rows in it, and the share that is also positive. All bars hold together
        with those of all other scores.

        Parameters
        ----------
        model : object with ``predict_proba``, or function of the features that returns probabilities
            The model.
        bins : int
            The number of equal bins between 0 and 1.
        positive : optional
            The positive class. Default: the second of the model's two classes.

        Returns
        -------
        pandas.DataFrame
            One row per bin: its ends, the share of the rows in it, and the observed frequency with its interval.

        Raises
        ------
        BudgetExceeded
            If the holdout is exhausted.

        Example
        -------
        >>> holdout.calibration(lambda rows: rows["age"] / 100, bins=2, positive=1).shape[0]
        2
        """
        import pandas as pd

        label = PairMetric(positive).label(model)
        says, edges = score_function(model, label), np.linspace(0.0, 1.0, whole("bins", bins) + 1)
        found = []
        for k in range(len(edges) - 1):

            def inside(X: Any, k: int = k) -> NDArray[np.bool_]:
                found = np.searchsorted(edges, np.asarray(says(X), float), side="right") - 1
                return np.asarray(np.clip(found, 0, bins - 1) == k)

            every = self.mean(lambda X, y: inside(X), name=f"share of bin {k + 1}")
            both = self.mean(lambda X, y: inside(X) & (np.asarray(y) == label), name=f"positive share of bin {k + 1}")
            value, low, high = area((both.value, both.low, both.high), (every.value, every.low, every.high))
            found.append((edges[k], edges[k + 1], every.value, value, low, high))
        return pd.DataFrame(found, columns=["from", "to", "share", "observed", "low", "high"])

    def _area(self, model: Any, metric: Any, guess: float | None, name: str, by_row: bool, *, compared: bool) -> Score:
        """Return an area under the ROC curve: one mean over pairs for each model, and one for the classes alone."""
        kind = metric if isinstance(metric, PairMetric) else PairMetric()
        label = kind.label(model)
        scores = score_function(model, label)

        def is_positive(sample: _HoldoutRows) -> NDArray[np.bool_]:
            return np.asarray(np.asarray(sample.y) == label, dtype=bool)

        if label not in self._discordant:
            mixed = self._pair_mean(lambda rows: discordant_units(is_positive(rows)), None, compared=False)
            self._discordant[label] = mixed
        mixed = self._discordant[label]
        told = None if guess is None else number(guess) * mixed.value
        ahead = self._pair_mean(
            lambda rows: concordant_units(_predictions(scores, rows, by_row), is_positive(rows)),
            told,
            compared=compared,
        )
        value, low, high = area((ahead.value, ahead.low, ahead.high), (mixed.value, mixed.low, mixed.high))
        score = Score(value, low, high, ahead.source, kind.name, name, ahead.cost + mixed.cost, ahead.by)
        self._discordant[label] = replace(mixed, cost=0.0)
        self._scores.append(score)
        return score

    def _pair_mean(self, total: Callable[[_HoldoutRows], int], guess: float | None, *, compared: bool) -> Score:
        """Return a mean over pairs of rows. It is not listed among the scores."""
        if self._held.n < 2:
            raise InvalidInput("An AUC must have at least two rows. Found 1. Hold out more.")
        metric = Metric("pairs", lambda y, predicted: predicted)
        told = None if guess is None else guess / 2  # in sums over n rows, which are at most n/2 for pairs
        found = self._score(
            lambda rows: np.array([total(rows)], np.int64), metric, told, "", compared=compared, pairs=True
        )
        self._scores.pop()
        return found

    def _score(
        self,
        values: Callable[[_HoldoutRows], Integers],
        metric: Metric,
        guess: float | None,
        name: str,
        *,
        compared: bool,
        pairs: bool = False,
    ) -> Score:
        """Compare with the guess, or measure; then record the score with its interval.

        With ``pairs`` the values are of pairs of rows: their sum is at most n/2, and one row moves it by at most 1.
        """
        with self._ledger.exclusively():
            guessed = self._guess_sum(values, guess) if compared else None
            with self._ledger.asking() as bill:
                if guessed is None:
                    receipt = self._charge_measurement()
                    total = _total(values(self._held))
                    before, after = self._asked.next(), self._asked.next(measured=1)
                    rows, is_below = self._measure(total, receipt), False
                    self._ledger.record(receipt, rows, self._noise.private)
                else:
                    round_, receipt = self._open_round()
                    total = _total(values(self._held))
                    # |total − guess| is 1-sensitive, because one row moves the total by at most 1.
                    is_below = round_.excess(abs(total - guessed)) is None
                    before, after = self._asked.next(), self._asked.next(compared=1, above=not is_below)
                    rows = guessed / UNITS if is_below else self._measure(total, receipt)
                    if not is_below:
                        self._round = None
                        self._ledger.record(receipt, (ABOVE, rows), self._noise.private)
                self._asked = after
            alone = len(self._ledger.entries()) == self._charges
            interval = widths.interval_of_pairs if pairs else widths.interval
            low, high, by = interval(self.plan, before, after, rows, is_below, alone)
            score = Score(
                rows / (self._held.n / 2 if pairs else self._held.n), low, min(1.0, high + 1 / UNITS), "guess" if is_below else "holdout", metric.name, name,
                bill.cost, by, metric.greater_is_better,
            )  # fmt: skip
            self._scores.append(score)
            return score

    def _guess_sum(self, values: Callable[[_HoldoutRows], Integers], guess: float | None) -> int | None:
        """Return the guess for the sum over the holdout, in units. Public: the holdout's rows do not enter it."""
        if guess is not None:
            if not 0 <= number(guess) <= 1:
                raise InvalidInput(f"guess must be between 0 and 1. Found {guess!r}. Guess the mean over rows.")
            return round(number(guess) * self._held.n * UNITS)
        if self._train is None:
            return None
        return round(_total(values(self._train)) * self._held.n / self._train.n)

    def _measure(self, total: int, receipt: Receipt) -> float:
        """Return the total in rows with noise, clipped and rounded: only this is revealed and recorded."""
        noisy = self._noise.add(total / UNITS, receipt)
        step = self.plan.resolution
        return min(float(self._held.n), max(0.0, round(noisy / step) * step))

    def _open_round(self) -> tuple[GuardRound, Receipt]:
        """Return the open round, or open the next.

        A round is charged, together with the measurement that will end it, before the holdout's rows are read.
        """
        if self._round is None or not self._round[0].is_open:  # an interrupt may have left a round that is over
            self._require(self.plan.guard, self.plan.measurement)
            receipt = self._ledger.charge(self.plan.guard, self.plan.measurement, why=ROUND, keep=False)
            threshold = math.floor(self.plan.threshold / FINEST)
            self._round = self._noise.open_round(receipt, threshold, FINEST), receipt
            self._asked, self._charges = replace(self._asked, rounds=self._asked.rounds + 1), self._charges + 1
        return self._round

    def _charge_measurement(self) -> Receipt:
        """Charge a measurement outside a round."""
        self._require(self.plan.measurement)
        self._charges += 1
        return self._ledger.charge(self.plan.measurement, why=MEASUREMENT, keep=False)

    def _require(self, *events: Any) -> None:
        """Refuse if the budget does not cover these events."""
        if not self._ledger.affords(*events):
            raise BudgetExceeded(
                "The holdout must have enough budget for the next score. "
                f"Found {self._ledger.remaining:.4g} {self._ledger.budget.currency} left "
                f"after {len(self._scores)} scores, {self._asked.above + self._asked.measured} of them measured: "
                "it is exhausted. Earlier scores remain in `scores`; continue with fresh rows."
            )

    # Results, and what is left.

    @property
    def scores(self) -> tuple[Score, ...]:
        """All scores, in order."""
        return tuple(self._scores)

    @property
    def exhausted(self) -> bool:
        """True if the next comparison would be refused."""
        return self._round is None and not self._ledger.affords(self.plan.guard, self.plan.measurement)

    @property
    def ledger(self) -> Ledger:
        """The ledger that pays."""
        return self._ledger

    @property
    def rows(self) -> int:
        """The number of rows held out."""
        return self._held.n

    @property
    def private(self) -> bool:
        """True unless the noise comes from a seed."""
        return self._noise.private

    def leaderboard(self, metric: str | None = None) -> pd.DataFrame:
        """Return the scores of one metric, best first.

        Parameters
        ----------
        metric : str, optional
            Name of the metric. Default: the metric that was used last.

        Returns
        -------
        pandas.DataFrame
            One row per score, with its interval and source.

        Example
        -------
        >>> score = holdout.score(model, name="over forty")
        >>> list(holdout.leaderboard().columns)
        ['name', 'value', 'low', 'high', 'source']
        """
        import pandas as pd

        wanted = metric if metric is not None or not self._scores else self._scores[-1].metric
        chosen = [score for score in self._scores if score.metric == wanted]
        chosen.sort(key=lambda score: -score.value if score.greater_is_better else score.value)
        columns = ("name", "value", "low", "high", "source")
        return pd.DataFrame(
            [{column: getattr(score, column) for column in columns} for score in chosen], columns=list(columns)
        )

    # Search.

    def select_features(self, columns: Any = None, *, positive: Any = None, margin: float = 0.0) -> list[SelectedRule]:
        """Return the columns that tell the target's ``positive`` class from the rest, best first; each costs one score.

        For each numeric column the training set gives a cut, its mean, and a side; the score is how often a row's
        side is right. Columns whose score is above ½ + ``margin`` are kept.

        Parameters
        ----------
        columns : iterable, optional
            The columns to try. Default: all.
        positive : optional
            The class of the target to tell from the rest. Default: the largest label.
        margin : float
            Keep columns whose score is above ½ + ``margin``.

        Returns
        -------
        list of Selected
            The columns that are kept, with their cuts and scores, best first.

        Raises
        ------
        InvalidInput
            If the holdout has no training set.
        BudgetExceeded
            If the holdout is exhausted.

        Example
        -------
        >>> [rule.column for rule in holdout.select_features(["age", "visits"], margin=0.2)]
        []
        """
        if self._train is None:
            raise InvalidInput("Feature selection must have a training set. Found none. Pass train=… to the holdout.")
        train = self._train
        names = list(range(train.X.shape[1])) if columns is None and not hasattr(train.X, "columns") else columns
        names = list(train.X.columns) if names is None else list(names)
        label = max(train.y.tolist()) if positive is None else positive
        found = []
        for column in names:
            cut, side = best_side(train.column(column), train.y == label)

            def right(sample: _HoldoutRows, column: Any = column, cut: float = cut, side: bool = side) -> Integers:
                return in_units(((sample.column(column) > cut) == side) == (sample.y == label), sample.n, 0.0)

            kind = Metric("feature", lambda y, predicted: predicted)
            score = self._score(right, kind, None, str(column), compared=True)
            if score.value > 0.5 + margin:
                found.append(SelectedRule(column, cut, side, score))
        return sorted(found, key=lambda one: -one.score.value)

    def early_stopping(self, metric: AnyMetric = "accuracy", *, patience: int = 5) -> EarlyStopping:
        """Return an object whose ``update(model)`` scores a model and returns True when it is time to stop.

        It is time after ``patience`` updates without improvement.

        Parameters
        ----------
        metric : Metric, str or function
            The score to watch.
        patience : int
            Number of updates without improvement before it is time to stop.

        Returns
        -------
        EarlyStopping

        Example
        -------
        >>> stopping = holdout.early_stopping("accuracy", patience=3)  # doctest: +SKIP
        >>> stopping.update(model)  # doctest: +SKIP
        """
        sign = (
            1
            if _is_area(metric)
            else -1
            if isinstance(metric, str) and metric in OF_PROBABILITIES
            else metric_of(metric).sign
        )
        return EarlyStopping(lambda model: self.score(model, metric), sign, whole("patience", patience))

    def scorer(self, metric: AnyMetric = "accuracy") -> HoldoutScorer:
        """Return a scorer for scikit-learn's ``scoring=``: greater is better.

        The rows that scikit-learn passes make the guess, and the holdout checks it.

        Parameters
        ----------
        metric : Metric, str or function
            The score of a model.

        Returns
        -------
        HoldoutScorer

        Example
        -------
        >>> scorer = holdout.scorer("accuracy")
        """

        def scored(model: Any, X: Any, y: Any) -> float:
            """Return the signed score of a model. The rows that were handed over make the guess."""
            handed = _HoldoutRows((X, y), None)
            if _is_area(metric):
                label = (metric if isinstance(metric, PairMetric) else PairMetric()).label(model)
                is_positive = np.asarray(np.asarray(handed.y) == label, dtype=bool)
                ahead = concordant_units(_predictions(score_function(model, label), handed, False), is_positive)
                return self.score(model, metric, guess=min(1.0, ahead / max(1, discordant_units(is_positive)))).value
            kind = metric_of(metric, model)
            guess = _total(_values(model, kind, handed, False)) / (handed.n * UNITS)
            return kind.sign * self.score(model, kind, guess=guess).value

        return HoldoutScorer(scored)

    @property
    def cv(self) -> WholeTrainingSet:
        """A splitter for scikit-learn's ``cv=``: fit on all rows, and let the holdout judge."""
        return WholeTrainingSet()

    def __repr__(self) -> str:
        warning = f"NOT PRIVATE: seed {self._noise.seed}, " if isinstance(self._noise, Seeded) else ""
        left = self._spending_in_words()
        return f"Holdout({warning}{self.rows} rows, {len(self._scores)} scores, {left})"

    def _spending_in_words(self) -> str:
        """Return what of the budget is spent, in words."""
        budget = self._ledger.budget
        if self.exhausted:
            return "exhausted"
        return f"spent {self._ledger.spent:.4g} of {budget.total:.4g} {budget.currency}"

    def _repr_html_(self) -> str:
        lines = [
            (s.name or "–", s.metric, f"{s.value:.4f}", f"{s.low:.4f} to {s.high:.4f}", s.source, f"{s.cost:.3g}")
            for s in self._scores[-SHOWN:]
        ]
        head = ("model", "metric", "score", "interval", "from", "cost")
        warning = "NOT PRIVATE: the noise comes from a seed. " if isinstance(self._noise, Seeded) else ""
        said = f"{warning}Holdout of {self.rows:,} rows, {self._spending_in_words()}; the last {len(lines)} of {len(self._scores)} scores"
        return _html.table(head, lines, said)


def _is_area(metric: Any) -> bool:
    """Return True for the area under the ROC curve, which is no mean over rows."""
    return isinstance(metric, PairMetric) or (isinstance(metric, str) and metric == "auc")


def _predictions(scores: Callable[[Any], Any], sample: _HoldoutRows, by_row: bool) -> Any:
    """Return the score of each row; NaN for a row that is shown alone and on which the model raises."""
    with np.errstate(all="ignore"):
        if not by_row:
            return _call_model(lambda: scores(sample.features_for_model()))
        found = np.full(sample.n, np.nan)
        for i in range(sample.n):
            with contextlib.suppress(Exception):  # caused by the row, so it must not show
                found[i] = float(np.asarray(scores(sample.row(i))).ravel()[0])
        return found


def _total(units: Integers) -> int:
    return int(units.sum())


def _values(model: Any, metric: Metric, sample: _HoldoutRows, by_row: bool) -> Integers:
    """Return the value of each row, in units."""
    predict = getattr(model, metric.wants, model)
    if not callable(predict):
        raise InvalidInput(
            f"model must have {metric.wants}, or be a function. Found {type(model).__name__}. Give a fitted model."
        )
    if by_row:
        return np.array([_alone(predict, metric, sample, i) for i in range(sample.n)], dtype=np.int64)
    with np.errstate(all="ignore"):
        return in_units(
            _call_model(lambda: metric.rows(sample.y, predict(sample.features_for_model()))), sample.n, metric.worst
        )


def _alone(predict: Callable[[Any], Any], metric: Metric, sample: _HoldoutRows, i: int) -> int:
    """Return the value of one row that the model is shown alone; the worst value if the model raises."""
    try:
        with np.errstate(all="ignore"):
            return int(in_units(metric.rows(sample.y[i : i + 1], predict(sample.row(i))), 1, metric.worst)[0])
    except Exception:  # caused by the row, so it must not show
        return int(metric.worst * UNITS)


def _call_model(values: Callable[[], Any]) -> Any:
    """Return what a user's function gives; hide its error, which may quote rows."""
    try:
        return values()
    except InvalidInput:
        raise
    except Exception:
        pass
    raise InvalidInput(
        "A model and a metric must give every row a value. Found that one of them raised an error. Try both on the "
        "training set, or score with by_row=True."
    )
