"""A reusable holdout: it stands between a search for a model and the test set, and stays a test set.

Papers: Dwork et al., *The reusable holdout: preserving validity in adaptive data analysis* (Thresholdout); Rogers et al., *Guaranteed
validity for empirical approaches to adaptive data analysis* (Guess and Check). Proof: docs/proofs/holdout.md.

A score is a mean over rows of values in [0, 1]. It is first guessed, from the training set. While the guess is near the holdout's own
value, the guess is the answer, and the holdout has told one bit, in a round that is paid for already. Where it is not, the
answer is measured with noise, and the round is over. When the budget buys no further round the holdout is exhausted: earlier
scores remain, and hold.

Each score has an interval for the population, and all of them hold together with 1 − β (``widths``), if the holdout's rows are independent
draws from it, of which nobody knows more than the scores. Replace-one: one row of the holdout has other values, n is public.

Differs: Thresholdout's noise is σ, 2σ and 4σ for a number of rows that no theorem names; here it follows from a budget, in a round
charged before it begins together with the measurement that ends it. The threshold's noise is fresh in every round, everything is
discrete, and a measurement is rounded, so that it says few words.

A model's ``predict`` is code that sees the holdout's features: this is for one's own process (docs/threat-model.md). What it predicts for a
row must depend on that row alone, else one row moves more than one value and the budget's promise is void; ``by_row=True`` shows
it one row at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from hedgerow._checks import number, whole
from hedgerow._types import Integers
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.generalise import widths
from hedgerow.generalise.metrics import UNITS, Metric, PerRow, in_units, metric_of
from hedgerow.generalise.scoring import HoldoutScorer, WholeTrainingSet
from hedgerow.generalise.search import EarlyStopping, Selected, best_side
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.guard_round import ABOVE, GuardRound
from hedgerow.privacy.ledger import Accountant, Ledger, Receipt
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.privacy.process import OneOnly
from hedgerow.textbook.sparse_vector import FINEST

if TYPE_CHECKING:
    import pandas as pd

ROUND, MEASUREMENT = "holdout: round", "holdout: measurement"
AnyMetric = Metric | str | PerRow


@final
@dataclass(frozen=True)
class Score:
    """A mean on the holdout's population. With 1 − β it is between ``low`` and ``high``, for all scores together.

    ``source``: "guess" where the training set, or whoever guessed, was right enough; "holdout" where it was measured. ``by``: the
    reason for the interval. ``cost``: what was charged for it, in the budget's currency.
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
        """The larger half of the interval."""
        return max(self.high - self.value, self.value - self.low)

    def __repr__(self) -> str:
        label = f"{self.name}: " if self.name else ""
        return f"Score({label}{self.metric} {self.value:.4f} in [{self.low:.4f}, {self.high:.4f}], {self.source}, cost {self.cost:.3g})"


@final
class _Rows:
    """Features and target of a set of rows."""

    def __init__(self, given: Any, target: str | None) -> None:
        if isinstance(given, tuple) and len(given) == 2 and target is None:
            self.X, y = given
        elif target is not None and hasattr(given, "columns") and target in given.columns:
            self.X, y = given.drop(columns=target), given[target]
        else:
            raise InvalidInput(
                "A holdout must be a frame with its target column, or a pair (X, y). Found neither. Holdout(frame, budget, target=…)."
            )
        self.y: NDArray[Any] = _read_only(np.asarray(y))
        self.n = int(self.y.shape[0])
        rows = self.X.shape[0] if hasattr(self.X, "shape") else len(self.X)
        if self.y.ndim != 1 or self.n < 1 or rows != self.n:
            raise InvalidInput(
                f"A holdout must have one target for each of its rows, and a row. Found {rows} rows and {self.y.shape} targets. "
                "Give both of one length."
            )
        if isinstance(self.X, np.ndarray):
            self.X = _read_only(self.X)

    def shown(self) -> Any:
        """The features for a model: one that writes to what it is shown would change later scores."""
        return self.X.copy() if hasattr(self.X, "iloc") else self.X

    def row(self, i: int) -> Any:
        return self.X.iloc[i : i + 1].copy() if hasattr(self.X, "iloc") else self.X[i : i + 1]

    def column(self, name: Any) -> NDArray[np.float64]:
        """A column of numbers, with NaN where a row has none: of each row by itself, and no row is refused."""
        values = np.asarray(self.X[name] if hasattr(self.X, "columns") else self.X[:, name])
        if values.dtype.kind in "biuf":
            return values.astype(np.float64)
        return np.array([_float(value) for value in values], dtype=np.float64)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    seen = array.view()
    seen.flags.writeable = False
    return seen


def _float(value: Any) -> float:
    try:
        return float(value)
    except Exception:  # what it is would be told by the message
        return math.nan


@final
class Holdout(OneOnly):
    """``Holdout(frame, budget, target="y", train=train_frame)``, or with pairs (X, y) of arrays and without ``target``.

    ``train``: where guesses come from; without it each score needs a ``guess``, or is measured. ``rounds``: how many guesses may be
    wrong; ``questions``: about how many will be asked, which sets the threshold (or ``threshold`` does, a fraction); more may be.
    ``ledger``: who pays; one of its own by default. Where it pays for anything else, something else is known of the rows, and intervals rest on
    privacy alone. ``seed``: repeatable, and therefore not private: for tests.
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
                "A holdout must know its number of rows, so neighbours must be 'replace'. Found 'add-remove'. Use Budget(ε, δ), at half "
                "of ε: one row replaced is one removed and one added."
            )
        if not 0 < number(beta) < 1 or not (threshold is None or 0 < number(threshold) < 1):
            raise InvalidInput(
                f"beta and threshold must be between 0 and 1. Found {beta!r} and {threshold!r}. Give a probability and a fraction."
            )
        self._held, self._train = _Rows(frame, target), None if train is None else _Rows(train, target)
        self._ledger, self._noise = account, Noise() if seed is None else Seeded(seed)
        self.plan = widths.planned(
            Amount(budget, account.remaining), budget, rows=self._held.n,
            trained_on=None if self._train is None else self._train.n, rounds=whole("rounds", rounds),
            questions=whole("questions", questions), beta=beta, threshold=threshold,
        )  # fmt: skip
        self._round: tuple[GuardRound, Receipt] | None = None
        account.rest()  # what it paid for before is not asked again here
        self._asked, self._charges = widths.Asked(), 0
        self._scores: list[Score] = []

    # Asking

    def score(
        self, model: Any, metric: AnyMetric = "accuracy", *, guess: float | None = None, name: str = "",
        by_row: bool = False,
    ) -> Score:  # fmt: skip
        """A model's mean score or loss. ``model``: has ``predict``, or is a function of the features.

        ``guess``: what it is believed to be, instead of its score on the training set. ``by_row``: predict row by row; a row
        on which the model raises is as bad as can be.
        """
        kind = metric_of(metric)
        return self._scored(lambda rows: _values(model, kind, rows, by_row), kind, guess, name, compared=True)

    def measure(self, model: Any, metric: AnyMetric = "accuracy", *, name: str = "", by_row: bool = False) -> Score:
        """The same, measured in any case: for the model that was chosen. It costs a measurement, a fifth of a round."""
        kind = metric_of(metric)
        return self._scored(lambda rows: _values(model, kind, rows, by_row), kind, None, name, compared=False)

    def mean(
        self, function: Callable[[Any, NDArray[Any]], Any], *, guess: float | None = None, name: str = ""
    ) -> Score:
        """The mean of any function(X, y) that gives each row a value in [0, 1], of that row alone: a statistical query."""
        kind = Metric(name or getattr(function, "__name__", "mean"), lambda y, predicted: predicted)

        def values(rows: _Rows) -> Integers:
            return in_units(_called(lambda: function(rows.shown(), rows.y)), rows.n, kind.worst)

        return self._scored(values, kind, guess, name, compared=True)

    def _scored(
        self, values: Callable[[_Rows], Integers], metric: Metric, guess: float | None, name: str, *, compared: bool
    ) -> Score:
        with self._ledger.exclusively():
            guessed = self._guessed(values, guess) if compared else None
            with self._ledger.asking() as bill:
                if guessed is None:
                    receipt = self._charged_for_a_measurement()
                    total = _total(values(self._held))
                    before, after = self._asked.next(), self._asked.next(measured=1)
                    rows, is_below = self._measured(total, receipt), False
                    self._ledger.record(receipt, rows, self._noise.private)
                else:
                    round_, receipt = self._opened()
                    total = _total(values(self._held))
                    # |total − guess| is 1-sensitive, for one row moves the total by at most 1
                    is_below = round_.excess(abs(total - guessed)) is None
                    before, after = self._asked.next(), self._asked.next(compared=1, above=not is_below)
                    rows = guessed / UNITS if is_below else self._measured(total, receipt)
                    if not is_below:
                        self._round = None
                        self._ledger.record(receipt, (ABOVE, rows), self._noise.private)
                self._asked = after
            alone = len(self._ledger.entries()) == self._charges
            low, high, by = widths.interval(self.plan, before, after, rows, is_below, alone)
            score = Score(
                rows / self._held.n, low, min(1.0, high + 1 / UNITS), "guess" if is_below else "holdout", metric.name, name,
                bill.cost, by, metric.greater_is_better,
            )  # fmt: skip
            self._scores.append(score)
            return score

    def _guessed(self, values: Callable[[_Rows], Integers], guess: float | None) -> int | None:
        """The guess for the sum over the holdout, in units. Public: the holdout has no part in it."""
        if guess is not None:
            if not 0 <= number(guess) <= 1:
                raise InvalidInput(f"guess must be between 0 and 1. Found {guess!r}. Guess the mean over rows.")
            return round(number(guess) * self._held.n * UNITS)
        if self._train is None:
            return None
        return round(_total(values(self._train)) * self._held.n / self._train.n)

    def _measured(self, total: int, receipt: Receipt) -> float:
        """The total, in rows, with noise, clipped and rounded: only this is told, and written down."""
        noisy = self._noise.add(total / UNITS, receipt)
        step = self.plan.resolution
        return min(float(self._held.n), max(0.0, round(noisy / step) * step))

    def _opened(self) -> tuple[GuardRound, Receipt]:
        """The open round, or the next: charged, with the measurement that will end it, before the holdout is looked at."""
        if self._round is None or not self._round[0].is_open:  # an interrupt may have left one that is over
            self._require(self.plan.guard, self.plan.measurement)
            receipt = self._ledger.charge(self.plan.guard, self.plan.measurement, why=ROUND, keep=False)
            threshold = math.floor(self.plan.threshold / FINEST)
            self._round = self._noise.open_round(receipt, threshold, FINEST), receipt
            self._asked, self._charges = replace(self._asked, rounds=self._asked.rounds + 1), self._charges + 1
        return self._round

    def _charged_for_a_measurement(self) -> Receipt:
        self._require(self.plan.measurement)
        self._charges += 1
        return self._ledger.charge(self.plan.measurement, why=MEASUREMENT, keep=False)

    def _require(self, *events: Any) -> None:
        if not self._ledger.affords(*events):
            raise BudgetExceeded(
                f"The holdout must have budget for what is asked. Found {self._ledger.remaining:.4g} {self._ledger.budget.currency} left "
                f"after {len(self._scores)} scores, {self._asked.above + self._asked.measured} of them measured: it is exhausted. Earlier "
                "scores remain in `scores`; go on with fresh rows."
            )

    # What was said, and what is left

    @property
    def scores(self) -> tuple[Score, ...]:
        """Every score, in order."""
        return tuple(self._scores)

    @property
    def exhausted(self) -> bool:
        """Whether the next score that is compared would be refused."""
        return self._round is None and not self._ledger.affords(self.plan.guard, self.plan.measurement)

    @property
    def ledger(self) -> Ledger:
        return self._ledger

    @property
    def rows(self) -> int:
        return self._held.n

    @property
    def private(self) -> bool:
        return self._noise.private

    def leaderboard(self, metric: str | None = None) -> pd.DataFrame:
        """The scores of one metric, best first: by default the last one's."""
        import pandas as pd

        wanted = metric if metric is not None or not self._scores else self._scores[-1].metric
        chosen = [score for score in self._scores if score.metric == wanted]
        chosen.sort(key=lambda score: -score.value if score.greater_is_better else score.value)
        columns = ("name", "value", "low", "high", "source")
        return pd.DataFrame(
            [{column: getattr(score, column) for column in columns} for score in chosen], columns=list(columns)
        )

    # Ways to search

    def select_features(self, columns: Any = None, *, positive: Any = None, margin: float = 0.0) -> list[Selected]:
        """The columns that tell the target's ``positive`` class from the rest, the best first: one score each.

        Of each numeric column the training set says a cut, its mean, and a side; the score is how often a row's side
        is right. Kept are those whose score is above ½ + margin.
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

            def right(rows: _Rows, column: Any = column, cut: float = cut, side: bool = side) -> Integers:
                return in_units(((rows.column(column) > cut) == side) == (rows.y == label), rows.n, 0.0)

            kind = Metric("feature", lambda y, predicted: predicted)
            score = self._scored(right, kind, None, str(column), compared=True)
            if score.value > 0.5 + margin:
                found.append(Selected(column, cut, side, score))
        return sorted(found, key=lambda one: -one.score.value)

    def early_stopping(self, metric: AnyMetric = "accuracy", *, patience: int = 5) -> EarlyStopping:
        """``stopping.update(model)`` scores a model and says whether it is time to stop: no better for so many updates."""
        kind = metric_of(metric)
        return EarlyStopping(lambda model: self.score(model, kind), kind.sign, whole("patience", patience))

    def scorer(self, metric: AnyMetric = "accuracy") -> HoldoutScorer:
        """For scikit-learn's ``scoring=``: the rows it is handed make the guess, the holdout checks it. More is better."""
        kind = metric_of(metric)

        def scored(model: Any, X: Any, y: Any) -> float:
            handed = _Rows((X, y), None)
            guess = _total(_values(model, kind, handed, False)) / (handed.n * UNITS)
            return kind.sign * self.score(model, kind, guess=guess).value

        return HoldoutScorer(scored)

    @property
    def cv(self) -> WholeTrainingSet:
        """For scikit-learn's ``cv=``: fit on all rows it is given, and let the holdout judge."""
        return WholeTrainingSet()

    def __repr__(self) -> str:
        warning = f"NOT PRIVATE: seed {self._noise.seed}, " if isinstance(self._noise, Seeded) else ""
        left = "exhausted" if self.exhausted else f"spent {self._ledger.spent:.4g} of {self._ledger.budget.total:.4g}"
        return f"Holdout({warning}{self.rows} rows, {len(self._scores)} scores, {left} {self._ledger.budget.currency})"


def _total(units: Integers) -> int:
    return int(units.sum())


def _values(model: Any, metric: Metric, rows: _Rows, by_row: bool) -> Integers:
    """Of each row, in units."""
    predict = getattr(model, metric.wants, model)
    if not callable(predict):
        raise InvalidInput(
            f"model must have {metric.wants}, or be a function. Found a {type(model).__name__}. Give a fitted model."
        )
    if by_row:
        return np.array([_alone(predict, metric, rows, i) for i in range(rows.n)], dtype=np.int64)
    with np.errstate(all="ignore"):
        return in_units(_called(lambda: metric.rows(rows.y, predict(rows.shown()))), rows.n, metric.worst)


def _alone(predict: Callable[[Any], Any], metric: Metric, rows: _Rows, i: int) -> int:
    try:
        with np.errstate(all="ignore"):
            return int(in_units(metric.rows(rows.y[i : i + 1], predict(rows.row(i))), 1, metric.worst)[0])
    except Exception:  # the row's own doing: nobody hears of it
        return int(metric.worst * UNITS)


def _called(values: Callable[[], Any]) -> Any:
    """What a user's function gives. What it raises may quote rows, and is not passed on."""
    try:
        return values()
    except InvalidInput:
        raise
    except Exception:
        pass
    raise InvalidInput(
        "A model and a metric must give every row a value. Found that they raised. Try them on the training set, or score with by_row=True."
    )
