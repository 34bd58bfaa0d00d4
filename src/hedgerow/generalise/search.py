"""Search helpers of a holdout: feature selection and early stopping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray


class Scored(Protocol):
    """Anything with a score."""

    @property
    def value(self) -> float:
        """The score."""
        ...


@final
@dataclass(frozen=True)
class SelectedRule:
    """A column, the cut and side of it that go with the positive class, and the score of that rule."""

    column: Any
    cut: float
    above: bool
    score: Any


def best_side(values: NDArray[Any], positive: NDArray[np.bool_]) -> tuple[float, bool]:
    """Return the mean of a column, and True if rows above it tend to be positive."""
    known = values[np.isfinite(values)]
    cut = float(np.mean(known)) if known.size else 0.0
    return cut, bool(np.mean((values > cut) == positive) >= 0.5)


@final
class EarlyStopping:
    """The best model so far, and the number of updates since."""

    def __init__(self, scored: Callable[[Any], Scored], sign: int, patience: int) -> None:
        self._scored, self._sign, self._patience = scored, sign, patience
        self.best: Scored | None = None
        self.best_update, self.updates = 0, 0

    def update(self, model: Any) -> bool:
        """Score a model; return True once ``patience`` updates have brought no improvement."""
        score = self._scored(model)
        self.updates += 1
        if self.best is None or self._sign * score.value > self._sign * self.best.value:
            self.best, self.best_update = score, self.updates
        return self.updates - self.best_update >= self._patience
