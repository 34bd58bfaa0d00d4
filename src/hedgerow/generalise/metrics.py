"""Scores and losses of single rows, in [0, 1], which a holdout averages.

A value outside [0, 1] is clipped. A value that is not a number counts as the worst: 0 for a score, 1 for a loss.
Values are then rounded down to whole units of 2^-20, so that sums are exact and one row moves a sum by at most one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow._checks import positive
from hedgerow._types import Integers
from hedgerow.errors import InvalidInput

UNITS = 2**20
"""The number of units in a row's value of 1."""

PerRow = Callable[[NDArray[Any], Any], Any]


@dataclass(frozen=True)
class Metric:
    """A score or loss of a row: ``rows(y, prediction)`` gives one value for each row, from that row alone.

    ``wants`` is the method of a model that gives the predictions.
    """

    name: str
    rows: PerRow
    greater_is_better: bool = True
    wants: Literal["predict", "predict_proba"] = "predict"

    @property
    def worst(self) -> float:
        """The worst value: 0 for a score, 1 for a loss."""
        return 0.0 if self.greater_is_better else 1.0

    @property
    def sign(self) -> int:
        """1 for a score, −1 for a loss."""
        return 1 if self.greater_is_better else -1


def in_units(values: Any, rows: int, worst: float) -> Integers:
    """Clip one value per row and convert it to whole units.

    Shapes and types may raise; the values of rows never do.
    """
    given = np.asarray(values)
    if given.dtype.kind not in "buif" or given.shape != (rows,):
        raise InvalidInput(
            f"A metric must give one number for each of {rows} rows. "
            f"Found shape {given.shape} of {given.dtype}. Return an array of floats."
        )
    known = np.nan_to_num(given.astype(np.float64), nan=worst, posinf=1.0, neginf=0.0)
    units: Integers = np.floor(np.clip(known, 0.0, 1.0) * UNITS).astype(np.int64)
    return units


def _agree(y: NDArray[Any], predicted: Any) -> NDArray[np.float64]:
    agreed: NDArray[np.float64] = np.asarray(np.asarray(y) == np.asarray(predicted), dtype=np.float64)
    return agreed


accuracy = Metric("accuracy", _agree)
zero_one_loss = Metric("zero_one_loss", lambda y, predicted: 1.0 - _agree(y, predicted), greater_is_better=False)


def squared_error(scale: float = 1.0) -> Metric:
    """Return the loss ((y − prediction)/scale)², clipped at 1.

    ``scale`` is the error from which on the loss is 1; choose it from public knowledge.
    """
    s = positive("scale", scale)

    def rows(y: NDArray[Any], predicted: Any) -> Any:
        return ((_floats(y) - _floats(predicted)) / s) ** 2

    return Metric("squared_error", rows, greater_is_better=False)


def absolute_error(scale: float = 1.0) -> Metric:
    """Return the loss |y − prediction|/scale, clipped at 1."""
    s = positive("scale", scale)

    def rows(y: NDArray[Any], predicted: Any) -> Any:
        return np.abs(_floats(y) - _floats(predicted)) / s

    return Metric("absolute_error", rows, greater_is_better=False)


def log_loss(classes: Any, most: float = 5.0) -> Metric:
    """Return the loss −ln(probability of the true class)/most, clipped at 1. Multiply by ``most`` for the log loss.

    ``classes`` are in the order of ``predict_proba``'s columns.
    """
    known, cap = np.asarray(classes), positive("most", most)

    def rows(y: NDArray[Any], probabilities: Any) -> Any:
        told = _probabilities(probabilities, known)
        true = np.asarray(y)[:, None] == known[None, :]  # a class that is not named has probability 0
        with np.errstate(divide="ignore", invalid="ignore"):
            return -np.log(np.where(true, told, 0.0).sum(axis=1)) / cap

    return Metric(f"log_loss/{cap:g}", rows, greater_is_better=False, wants="predict_proba")


def brier(classes: Any) -> Metric:
    """Return the Brier score: half the squared distance of the probabilities from the true class, 0 if it is certain.

    For two classes it is (y − probability)². ``classes`` are in the order of ``predict_proba``'s columns.
    """
    known = np.asarray(classes)

    def rows(y: NDArray[Any], probabilities: Any) -> Any:
        told = _probabilities(probabilities, known)
        true = np.asarray(y)[:, None] == known[None, :]
        beside = 1.0 - true.any(axis=1)  # a class that is not named
        return (((true - told) ** 2).sum(axis=1) + beside) / 2

    return Metric("brier", rows, greater_is_better=False, wants="predict_proba")


def _probabilities(given: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Return the columns of predict_proba, which must be one for each class."""
    told = np.asarray(given, dtype=np.float64)
    if told.ndim != 2 or told.shape[1] != classes.size:
        raise InvalidInput(
            f"predict_proba must give a column for each of {classes.size} classes. Found shape {told.shape}. Name all "
            "classes."
        )
    return told


def _floats(values: Any) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)


NAMED = {
    "accuracy": accuracy,
    "zero_one_loss": zero_one_loss,
    "squared_error": squared_error(),
    "absolute_error": absolute_error(),
}


OF_PROBABILITIES: dict[str, Callable[[Any], Metric]] = {"log_loss": log_loss, "brier": brier}


def metric_of(given: Any, model: Any = None) -> Metric:
    """Return a metric from a metric, its name, or a function of (y, prediction) whose values are scores.

    Metrics of probabilities take the classes from the model.
    """
    if isinstance(given, Metric):
        return given
    if isinstance(given, str) and given in OF_PROBABILITIES:
        classes = getattr(model, "classes_", None)
        if classes is None:
            raise InvalidInput(
                f"{given} must know the classes. Found a model without classes_. Give the metric "
                f"hedgerow.generalise.metrics.{given}(classes), with the classes in the order of predict_proba's "
                "columns."
            )
        return OF_PROBABILITIES[given](classes)
    if isinstance(given, str) and given in NAMED:
        return NAMED[given]
    if callable(given):
        return Metric(getattr(given, "__name__", "custom"), given)
    raise InvalidInput(
        f"metric must be a Metric, a function of (y, prediction), or one of {', '.join((*NAMED, *OF_PROBABILITIES))} "
        f"and auc. Found {given!r}. Choose one of these."
    )
