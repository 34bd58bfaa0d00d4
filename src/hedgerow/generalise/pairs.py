"""Scores of pairs of rows, which a holdout averages: the area under the ROC curve.

Papers: Hoeffding 1963, §5 (means over pairs, "U-statistics"); Hanley & McNeil 1982 (the area as a probability).

    AUC = P[a row of the positive class has the higher score, or half if equal | one row of each class]
        = C/D    C  mean over pairs i < j of: the classes differ and the positive row is ahead (half if equal)
                 D  mean over pairs of: the classes differ

The sum over pairs, divided by n − 1, moves by at most 1 if one row is replaced, because the row is in n − 1 pairs and
each moves by at most 1. So it is measured and compared like a sum over rows (docs/proofs/holdout.md). It is a whole
number of units: whole numbers of half pairs, divided once and rounded down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InvalidInput
from hedgerow.generalise.metrics import UNITS


@final
@dataclass(frozen=True)
class PairMetric:
    """The area under the ROC curve. ``positive`` is the label of the positive class; by default the model's second."""

    positive: Any = None
    name: str = "auc"

    greater_is_better = True
    sign = 1

    def label(self, model: Any) -> Any:
        """Return the positive class: as declared, else the model's second of two classes, else 1."""
        if self.positive is not None:
            return self.positive
        classes = getattr(model, "classes_", None)
        if classes is None:
            return 1
        if len(classes) != 2:
            raise InvalidInput(
                f"An AUC must be of two classes. Found a model of {len(classes)}. Use log_loss or accuracy, or one "
                "class against the rest with hedgerow.generalise.pairs.PairMetric(positive=…) and a function of "
                "scores."
            )
        return classes[1]


def concordant_units(scores: Any, is_positive: NDArray[np.bool_]) -> int:
    """Return the sum over pairs of rows of different classes with the positive one ahead, over n − 1, in units.

    A score that is no number is behind all others of the other class.
    """
    given = np.asarray(scores)
    if given.dtype.kind not in "buif" or given.shape != is_positive.shape:
        raise InvalidInput(
            f"A model must give one score for each of {is_positive.size} rows. Found shape {given.shape} of "
            f"{given.dtype}. Use decision_function, predict_proba or a function that returns one number for each row."
        )
    values = given.astype(np.float64)
    ahead = np.where(np.isnan(values), -np.inf, values)[is_positive]
    behind = np.sort(np.where(np.isnan(values), np.inf, values)[~is_positive])
    halves = np.searchsorted(behind, ahead, side="left") + np.searchsorted(behind, ahead, side="right")
    return _units(int(halves.sum()), is_positive.size)


def discordant_units(is_positive: NDArray[np.bool_]) -> int:
    """Return the number of pairs of rows of different classes, over n − 1, in units."""
    positive = int(is_positive.sum())
    return _units(2 * positive * (is_positive.size - positive), is_positive.size)


def _units(halves: int, rows: int) -> int:
    """Return a number of half pairs over n − 1, in whole units. A change by n − 1 pairs is one by at most UNITS."""
    return halves * UNITS // (2 * max(1, rows - 1))


def score_function(model: Any, label: Any) -> Callable[[Any], Any]:
    """Return the function that gives each row the model's score of the positive class."""
    classes = getattr(model, "classes_", None)
    if hasattr(model, "predict_proba") and classes is not None:
        column = [i for i, known in enumerate(classes) if known == label]
        if len(column) != 1:
            raise InvalidInput(
                f"The positive class must be one of the model's classes. Found {label!r}. Name another as positive."
            )
        return lambda X: np.asarray(model.predict_proba(X))[:, column[0]]
    chosen = getattr(model, "decision_function", None) or getattr(model, "predict", model)
    if not callable(chosen):
        raise InvalidInput(
            "model must have predict_proba, decision_function or predict, or be a function. "
            f"Found {type(model).__name__}. Give a fitted model."
        )
    return chosen  # type: ignore[no-any-return]


def area(concordant: tuple[float, float, float], discordant: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return value, low and high of C/D from those of C and D; the interval is [0, 1] if D may be 0."""
    (c, c_low, c_high), (d, d_low, d_high) = concordant, discordant
    low = c_low / d_high if d_high > 0 else 0.0
    high = c_high / d_low if d_low > 0 else 1.0
    low, high = min(1.0, max(0.0, low)), min(1.0, max(0.0, high))
    value = c / d if d > 0 else 0.5
    return min(high, max(low, value)), low, high
